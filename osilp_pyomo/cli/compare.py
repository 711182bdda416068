"""``osilp compare``: policies against the offline optimum, on the model of a Python file."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from osilp_pyomo._files import refuse_unwritable
from osilp_pyomo.api import compile_online
from osilp_pyomo.cli.model_files import UNNAMED, load_module, model_of
from osilp_pyomo.cli.output import DONE, aside, print_json, silent, study_record, write_report
from osilp_pyomo.cli.parsing import parse_call, with_module
from osilp_pyomo.errors import OptionError
from osilp_pyomo.index.registry import BASES, GRIDS
from osilp_pyomo.online.chunks.source import Chunks
from osilp_pyomo.online.controller import GUARDS
from osilp_pyomo.online.program import BUDGETS, OFFLINE, OnlineProgram
from osilp_pyomo.online.registry import POLICIES
from osilp_pyomo.studies.compare import compare
from osilp_pyomo.studies.trial import ORDERS


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("file", metavar="FILE", help="a Python file with `model` or `build_model()`")
    command.add_argument("--stages", required=True, metavar="SET", help="name of the Set of arrivals, such as T")
    command.add_argument(
        "--policies", nargs="+", metavar="POLICY", default=["MirrorDescent", "AccelerateThenRefine", "Resolve"],
        help="such as MirrorDescent 'Resolve(exact=True)', or names of the file (default MirrorDescent "
        f"AccelerateThenRefine Resolve); known: {', '.join(POLICIES)}",
    )  # fmt: skip
    command.add_argument("--trials", type=int, default=1, metavar="N", help="how often (default 1)")
    command.add_argument(
        "--order", choices=ORDERS, default="given",
        help="arrivals as they are (given, the default), shuffled (permutation), drawn with replacement (iid), or in a "
        "random order that changes with time",
    )  # fmt: skip
    command.add_argument(
        "--by", metavar="COLUMN", help="what an order that changes ranks arrivals by (default: what they earn)"
    )
    command.add_argument(
        "--data", metavar="TABLE", help="arrivals, a CSV or Parquet file; the model's own if not given"
    )
    command.add_argument("--sampler", metavar="NAME", help="a function sampler(rng, horizon) of the file")
    command.add_argument(
        "--horizon", type=int, metavar="T",
        help="arrivals that the model's limits are totals of (default: as many as it has)",
    )  # fmt: skip
    command.add_argument(
        "--horizons", type=int, nargs="+", metavar="T", help="numbers of arrivals to run, one after the other"
    )
    command.add_argument(
        "--guards", nargs="+", choices=GUARDS,
        help="what keeps decisions within the limits: nothing, every test function, every grid point",
    )  # fmt: skip
    command.add_argument(
        "--benchmarks", nargs="+", choices=OFFLINE, default=["exchange", "projected"],
        help="offline optima to compare with (default exchange projected)",
    )  # fmt: skip
    command.add_argument("--budget", choices=BUDGETS, default="per_arrival", help="whether limits grow with T")
    command.add_argument("--grid", metavar="GRID", help="such as 'Midpoint(500)'")
    command.add_argument("--basis", metavar="BASIS", help="such as 'RBF(10)'")
    command.add_argument("--seed", type=int, default=0, help="same seed, same numbers (default 0)")
    command.add_argument("--workers", type=int, metavar="N", help="processes (default: none, one trial after another)")
    command.add_argument("--save", metavar="FOLDER", help="keep every trial there, and go on with those that are there")
    command.add_argument("--report", metavar="HTML", help="write a page that begins with the answer")
    command.add_argument(
        "--title", metavar="TEXT", help="what stands at the top of the page; the model's name if not given"
    )
    command.add_argument("--author", metavar="TEXT", help="who stands below it")


def run(chosen: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    if chosen.report is None and (chosen.title or chosen.author):
        raise OptionError(
            "--title and --author stand on the page of --report; add --report page.html, or leave them out."
        )
    grid = None if chosen.grid is None else parse_call(chosen.grid, GRIDS, "grid")
    basis = None if chosen.basis is None else parse_call(chosen.basis, BASES, "basis")
    with aside(chosen.json):
        module = load_module(chosen.file)
    policies = [parse_call(text, with_module(POLICIES, module), "policy") for text in chosen.policies]
    sampler = None
    if chosen.sampler is not None:
        sampler = getattr(module, chosen.sampler, None)
        if not callable(sampler):
            raise OptionError(f"'{chosen.file}' has no function '{chosen.sampler}' for --sampler.")
    own = [each for each in (sampler, *map(type, policies)) if getattr(each, "__module__", "") == module.__name__]
    if own and chosen.workers is not None and module.__name__.startswith(UNNAMED):
        raise OptionError(
            f"--workers: other processes cannot import '{chosen.file}' by its name, and it holds a sampler or a "
            "policy; call the file like a Python module, such as model.py."
        )
    with aside(chosen.json):
        model = model_of(module, chosen.file)
    stages = model.component(chosen.stages) if hasattr(model, "component") else None
    if stages is None:
        raise OptionError(f"The model of '{chosen.file}' has no Set '{chosen.stages}' for --stages.")
    program = compile_online(model, stages=stages, horizon=chosen.horizon, grid=grid, basis=basis)
    if chosen.report is not None:
        refuse_unwritable(chosen.report, "--report")
    data = None if chosen.data is None else _read_table(chosen.data, program)
    study = compare(
        program, policies, data=data, trials=chosen.trials,
        order=chosen.order, by=chosen.by, sampler=sampler, horizons=chosen.horizons, guards=chosen.guards,
        benchmarks=chosen.benchmarks, budget=chosen.budget, seed=chosen.seed, executor=chosen.workers,
        path=chosen.save,
    )  # fmt: skip
    talk = silent if chosen.json else print
    talk(study)
    record = study_record(study)
    if chosen.report is not None:
        record["report"] = str(write_report(study, Path(chosen.report), talk, chosen.title, chosen.author))
    if chosen.json:
        print_json(record)
    return DONE


def _read_table(path: str, program: OnlineProgram) -> pd.DataFrame:
    """Arrivals of a file as one frame, read as chunks are."""
    return pd.concat(list(Chunks(path).frames(program.intake.columns)))
