"""``osilp solve``: the model of a Python file, offline."""

from __future__ import annotations

import argparse
from io import StringIO
from pathlib import Path
from typing import Any

from osilp_pyomo._files import refuse_unwritable, write_text_at_once
from osilp_pyomo._options import SOLVE
from osilp_pyomo.api import solve
from osilp_pyomo.cli.model_files import load_module, model_of
from osilp_pyomo.cli.output import DONE, NOT_OPTIMAL, aside, print_json, result_record
from osilp_pyomo.cli.parsing import add_option, parse_call
from osilp_pyomo.errors import DataError, GridError, MissingPackageError, OptionError
from osilp_pyomo.index.registry import BASES, GRIDS
from osilp_pyomo.offline.results import Result
from osilp_pyomo.rows import rows_display
from osilp_pyomo.show.drawing import can_draw
from osilp_pyomo.show.pages.result import result_page

_DRAWN = (".png", ".svg", ".pdf")


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("file", metavar="FILE", help="a Python file with `model` or `build_model()`")
    written = {"grid": "Written like 'Midpoint(500)'.", "basis": "Written like 'RBF(10)'."}
    for option in SOLVE:
        if option.name not in ("load", "progress"):
            add_option(command, option, written.get(option.name, ""))
    command.add_argument("--values", metavar="CSV", help="write the values of the variables into a CSV file")
    command.add_argument(
        "--plot", metavar="FILE", help="draw rows, limits and prices along the index into a .png, .svg or .pdf file"
    )
    command.add_argument("--report", metavar="HTML", help="write a page with the answer, a picture, prices and values")


def run(chosen: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    grid = None if chosen.grid is None else parse_call(chosen.grid, GRIDS, "grid")
    basis = None if chosen.basis is None else parse_call(chosen.basis, BASES, "basis")
    for option in ("values", "plot", "report"):
        path = getattr(chosen, option)
        if path is not None:
            refuse_unwritable(path, f"--{option}")
    if chosen.plot is not None:
        _refuse_undrawable(chosen.plot)
    with aside(chosen.json):
        model = model_of(load_module(chosen.file), chosen.file)
    asked = {option.name: getattr(chosen, option.name) for option in SOLVE if hasattr(chosen, option.name)}
    asked |= {"grid": grid, "basis": basis, "tee": chosen.tee and not chosen.json}
    result = solve(model, **asked, load=False)
    if chosen.values is not None and result.answer is not None:
        write_text_at_once(chosen.values, result.values.to_csv())
    if chosen.plot is not None and result.answer is not None:
        rows_display(model, result).plot().savefig(chosen.plot)
    if chosen.report is not None:
        write_text_at_once(chosen.report, result_page(result, _title(model, chosen.file), _picture(model, result)))
    if chosen.json:
        print_json(result_record(result))
    elif not chosen.tee:
        print(result)
    return DONE if result.status == "optimal" else NOT_OPTIMAL


def _refuse_undrawable(path: str) -> None:
    """Refuse a picture that could not be written, before anything is solved."""
    kind = Path(path).suffix.lower()
    if kind not in _DRAWN:
        raise OptionError(f"--plot: the name of the file must end in {', '.join(_DRAWN)} (got '{path}').")
    if not can_draw():
        raise MissingPackageError(
            "--plot needs matplotlib, which is not installed; pip install 'osilp-pyomo[plot]', or leave it out."
        )


def _title(model: Any, file: str) -> str:
    """The model's own name, or that of its file."""
    return str(model.name) if model.name not in (None, "unknown") else Path(file).stem


def _picture(model: Any, result: Result) -> str | None:
    """A picture of the rows as SVG text, where there is an answer and something to draw it with."""
    if result.answer is None or not can_draw():
        return None
    try:
        figure = rows_display(model, result).plot()
    except (GridError, DataError):
        # An index without ends or of many dimensions, or no semi-infinite row: the page is complete without.
        return None
    written = StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()
