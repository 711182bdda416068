"""``osilp solve``: the model of a Python file, offline."""

from __future__ import annotations

import argparse

from osilp_pyomo._files import refuse_unwritable, write_text_at_once
from osilp_pyomo._options import SOLVE
from osilp_pyomo.api import solve
from osilp_pyomo.cli.model_files import load_module, model_of
from osilp_pyomo.cli.output import DONE, NOT_OPTIMAL, aside, print_json, result_record
from osilp_pyomo.cli.parsing import add_option, parse_call
from osilp_pyomo.index.registry import BASES, GRIDS


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("file", metavar="FILE", help="a Python file with `model` or `build_model()`")
    written = {"grid": "Written like 'Midpoint(500)'.", "basis": "Written like 'RBF(10)'."}
    for option in SOLVE:
        if option.name not in ("load", "progress"):
            add_option(command, option, written.get(option.name, ""))
    command.add_argument("--values", metavar="CSV", help="write the values of the variables into a CSV file")


def run(chosen: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    grid = None if chosen.grid is None else parse_call(chosen.grid, GRIDS, "grid")
    basis = None if chosen.basis is None else parse_call(chosen.basis, BASES, "basis")
    if chosen.values is not None:
        refuse_unwritable(chosen.values, "--values")
    with aside(chosen.json):
        model = model_of(load_module(chosen.file), chosen.file)
    asked = {option.name: getattr(chosen, option.name) for option in SOLVE if hasattr(chosen, option.name)}
    asked |= {"grid": grid, "basis": basis, "tee": chosen.tee and not chosen.json}
    result = solve(model, **asked, load=False)
    if chosen.values is not None and result.answer is not None:
        write_text_at_once(chosen.values, result.values.to_csv())
    if chosen.json:
        print_json(result_record(result))
    elif not chosen.tee:
        print(result)
    return DONE if result.status == "optimal" else NOT_OPTIMAL
