"""The command line: ``osilp demo``, ``solve``, ``compare``, ``reproduce``.

Exit codes: 0 done; 1 refused, with a sentence that says why; 2 wrong usage; 3 solved, but there is no optimal answer;
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._jit import COMPILED
from osilp_pyomo._version import __version__
from osilp_pyomo.api import METHODS, compile_online, solve
from osilp_pyomo.cli.model_files import UNNAMED, load_module, model_of
from osilp_pyomo.cli.parsing import BASES, GRIDS, POLICIES, made, with_own
from osilp_pyomo.demo import compare_demo, demo_model, offline_table, solve_demo
from osilp_pyomo.errors import DataError, OptionError, OsilpError
from osilp_pyomo.offline.results import FamilyMap, Result
from osilp_pyomo.online.controller import GUARDS
from osilp_pyomo.online.program import BUDGETS, OFFLINE
from osilp_pyomo.online.stages.intake import whole_number
from osilp_pyomo.paper.claims import all_claims
from osilp_pyomo.paper.experiments import experiments, reproduce
from osilp_pyomo.paper.page import claims_table, write_paper_page
from osilp_pyomo.studies.compare import Study, StudyInterrupted, compare
from osilp_pyomo.studies.drawing import can_draw
from osilp_pyomo.studies.trial import ORDERS

DONE, REFUSED, NOT_OPTIMAL, INTERRUPTED = 0, 1, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    chosen = build_parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = chosen.run
    try:
        return command(chosen)
    except (OsilpError, OSError) as error:
        if chosen.debug:
            raise
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has seen enough; nothing more is to be written to it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        return _refuse(str(error), error)
    except KeyboardInterrupt as error:
        if chosen.debug:
            raise
        told = str(error) if isinstance(error, StudyInterrupted) else "stopped"
        print(f"osilp: {told}.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # a sampler's or a policy's own, for instance
        if chosen.debug:
            raise
        return _refuse(f"{type(error).__name__}: {error} (--debug shows where)", error)


def _refuse(sentence: str, error: Exception) -> int:
    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    print(f"osilp: {sentence}{notes}", file=sys.stderr)
    return REFUSED


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options; the documentation is made from it, too."""
    parser = argparse.ArgumentParser(
        prog="osilp",
        description="Semi-infinite linear programs in Pyomo: solved offline, and online policies compared with that.",
        epilog="Exit codes: 0 done; 1 refused, with a sentence that says why; 2 wrong usage; 3 solved, but there is no "
        "optimal answer; 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"osilp_pyomo {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_demo, _add_solve, _add_compare, _add_reproduce):
        command = add(commands)
        command.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        command.add_argument("--debug", action="store_true", help="show a traceback when something is refused or fails")
    return parser


# -- demo ------------------------------------------------------------------------------------------------------


def _add_demo(commands: Any) -> argparse.ArgumentParser:
    text = "a spectrum-sharing model: offline three ways, online by four policies, a table, and a report"
    command: argparse.ArgumentParser = commands.add_parser("demo", help=text, description=f"Run {text}.")
    command.add_argument("--arrivals", type=int, default=1000, metavar="T", help="number of arrivals (default 1000)")
    command.add_argument("--trials", type=int, default=4, metavar="N", help="random orders of the arrivals (default 4)")
    command.add_argument("--out", default="osilp-demo", metavar="FOLDER", help="where the report goes (osilp-demo)")
    command.set_defaults(run=_run_demo)
    return command


def _run_demo(chosen: argparse.Namespace) -> int:
    model = demo_model(chosen.arrivals)
    whole_number(chosen.trials, "demo: trials")
    talk = _silent if chosen.json else print
    talk(f"{chosen.arrivals} arrivals, one capacity row for every u in [0, 1]; maximize the reward.\n")
    talk(f"{model.usage!r}\n")
    results = solve_demo(model)
    exact = results[-1][1]
    low, high = exact.bracket
    talk(offline_table(results).to_string(index=False))
    talk(f"\nThe optimum lies in [{low:.10g}, {high:.10g}]; the first two objectives are upper bounds, because their")
    talk("rows hold against test functions or at grid points only: the violation says how far values break the row.")
    talk("\nWhere the capacity binds, and what one more unit there is worth:")
    talk(exact.price.atoms.to_string(index=False))
    talk("\nThe same model online: each request is decided when it comes, and no point of the grid is ever overrun.\n")
    study = compare_demo(model, chosen.trials)
    talk(study)
    report = _write_report(study, Path(chosen.out) / "report.html", talk)
    if chosen.json:
        offline = {name: _result_record(result) for name, result in results}
        _print_json({"offline": offline, "online": _study_record(study), "report": str(report)})
    return DONE


# -- solve -----------------------------------------------------------------------------------------------------


def _add_solve(commands: Any) -> argparse.ArgumentParser:
    text = "solve the model of a Python file offline"
    command: argparse.ArgumentParser = commands.add_parser(
        "solve", help=text, description=f"{_sentence(text)}; the file has `model` or `build_model()`."
    )
    command.add_argument("file", metavar="FILE", help="a Python file with `model` or `build_model()`")
    command.add_argument("--method", choices=METHODS, default="exchange", help="default: exchange, exact")
    command.add_argument("--grid", metavar="GRID", help="such as 'Midpoint(500)', for discretized and projected")
    command.add_argument("--basis", metavar="BASIS", help="such as 'RBF(10)', for projected")
    command.add_argument("--tolerance", type=float, default=1e-9, help="violation that counts as none (1e-9)")
    command.add_argument("--time-limit", type=float, metavar="SECONDS", help="when to stop early")
    command.add_argument("--tee", action="store_true", help="print the iterations")
    command.add_argument("--values", metavar="CSV", help="write the values of the variables into a CSV file")
    command.set_defaults(run=_run_solve)
    return command


def _run_solve(chosen: argparse.Namespace) -> int:
    grid = None if chosen.grid is None else made(chosen.grid, GRIDS, "grid")
    basis = None if chosen.basis is None else made(chosen.basis, BASES, "basis")
    with _aside(chosen.json):
        model = model_of(load_module(chosen.file), chosen.file)
    result = solve(
        model, chosen.method, grid=grid, basis=basis, tolerance=chosen.tolerance, time_limit=chosen.time_limit,
        load=False, tee=chosen.tee and not chosen.json,
    )  # fmt: skip
    if chosen.values is not None and result.answer is not None:
        result.values.to_csv(chosen.values)
    if chosen.json:
        _print_json(_result_record(result))
    elif not chosen.tee:
        print(result)
    return DONE if result.status == "optimal" else NOT_OPTIMAL


def _result_record(result: Result) -> dict[str, Any]:
    record: dict[str, Any] = {
        "method": result.method, "status": result.status, "sense": result.sense, "objective": result.objective,
        "bound": result.bound, "seconds": result.seconds, "rows": result.rows,
    }  # fmt: skip
    if result.answer is not None:
        record.update({
            "violation": dict(result.answer.violation), "worst_index": dict(result.answer.worst_index),
            "certified": result.certified, "values": result.values.to_dict(),
        })  # fmt: skip
        if result.answer.price is not None:
            record["price"] = {name: price.to_frame().to_dict("list") for name, price in result.answer.price.items()}
    if result.remark:
        record["remark"] = result.remark
    if len(result.conflict):
        record["conflict"] = result.conflict.to_dict("records")
    return record


# -- compare ---------------------------------------------------------------------------------------------------


def _add_compare(commands: Any) -> argparse.ArgumentParser:
    text = "run policies against the offline optimum on the model of a Python file"
    command: argparse.ArgumentParser = commands.add_parser(
        "compare", help=text, description=f"{_sentence(text)}; the file has `model` or `build_model()`."
    )
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
        help="arrivals as they are (given, the default), shuffled (permutation), or drawn with replacement (iid)",
    )  # fmt: skip
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
    command.add_argument("--report", metavar="HTML", help="write a page with tables and pictures")
    command.set_defaults(run=_run_compare)
    return command


def _run_compare(chosen: argparse.Namespace) -> int:
    grid = None if chosen.grid is None else made(chosen.grid, GRIDS, "grid")
    basis = None if chosen.basis is None else made(chosen.basis, BASES, "basis")
    with _aside(chosen.json):
        module = load_module(chosen.file)
    policies = [made(text, with_own(POLICIES, module), "policy") for text in chosen.policies]
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
    with _aside(chosen.json):
        model = model_of(module, chosen.file)
    stages = model.component(chosen.stages) if hasattr(model, "component") else None
    if stages is None:
        raise OptionError(f"The model of '{chosen.file}' has no Set '{chosen.stages}' for --stages.")
    program = compile_online(model, stages=stages, horizon=chosen.horizon, grid=grid, basis=basis)
    study = compare(
        program, policies, data=None if chosen.data is None else _read_table(chosen.data), trials=chosen.trials,
        order=chosen.order, sampler=sampler, horizons=chosen.horizons, guards=chosen.guards,
        benchmarks=chosen.benchmarks, budget=chosen.budget, seed=chosen.seed, executor=chosen.workers,
        path=chosen.save,
    )  # fmt: skip
    talk = _silent if chosen.json else print
    talk(study)
    record = _study_record(study)
    if chosen.report is not None:
        record["report"] = str(_write_report(study, Path(chosen.report), talk))
    if chosen.json:
        _print_json(record)
    return DONE


def _read_table(path: str) -> pd.DataFrame:
    if not Path(path).is_file():
        raise DataError(f"--data: there is no file '{path}'.")
    try:
        return pd.read_parquet(path) if path.endswith((".parquet", ".pq")) else pd.read_csv(path)
    except (ValueError, ImportError) as error:
        raise DataError(f"--data: '{path}' cannot be read ({type(error).__name__}: {error}).") from None


def _study_record(study: Study) -> dict[str, Any]:
    """A study as plain lists: what was run, and every run."""
    told = ("policies", "guards", "order", "sampler", "trials", "horizons", "benchmarks", "budget", "seed", "versions")
    summary = study.summary()
    summary.columns = pd.Index(["_".join(filter(None, levels)) for levels in summary.columns.to_list()])
    return {
        "settings": {name: study.settings[name] for name in told},
        "summary": summary.reset_index().to_dict("records"),
        "runs": study.runs.to_dict("records"),
        "doubts": study.doubts(),
    }


def _write_report(study: Study, path: Path, talk: Callable[..., Any]) -> Path:
    pictures = can_draw()
    written = study.to_html(path, pictures=pictures)
    why = "" if pictures else " (without pictures: matplotlib is not installed; pip install 'osilp-pyomo[plot]')"
    talk(f"\nReport: {written}{why}")
    return written


# -- reproduce -------------------------------------------------------------------------------------------------


def _add_reproduce(commands: Any) -> argparse.ArgumentParser:
    text = "run the numerical section of the paper again, and say claim by claim whether it agrees"
    command: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help=text, description=f"{_sentence(text)}. A run that was stopped goes on where it was."
    )
    command.add_argument("--quick", action="store_true", help="10 trials and fewer sizes: about ten minutes")
    command.add_argument("--trials", type=int, metavar="N", help="trials for each point (default 100, quick 10)")
    command.add_argument("--seed", type=int, default=0, help="same seed, same numbers (default 0)")
    command.add_argument("--workers", type=int, default=2, metavar="N", help="processes (default 2)")
    command.add_argument("--out", metavar="FOLDER", help="trials and page (default osilp-paper, or osilp-paper-quick)")
    command.set_defaults(run=_run_reproduce)
    return command


def _run_reproduce(chosen: argparse.Namespace) -> int:
    trials = (10 if chosen.quick else 100) if chosen.trials is None else chosen.trials
    whole_number(trials, "reproduce: trials")
    workers = whole_number(chosen.workers, "reproduce: workers")
    folder = Path(chosen.out or ("osilp-paper-quick" if chosen.quick else "osilp-paper"))
    figures = experiments(chosen.quick)
    if not COMPILED and not chosen.json:
        print(
            "numba is not installed, so that this takes about three times as long: pip install 'osilp-pyomo[fast]'.\n"
        )
    if not chosen.json:
        print(
            f"{len(figures)} figures, {trials} trials each; kept in '{folder}', where a run that is stopped goes on.\n"
        )
    studies = reproduce(folder, figures, trials, chosen.seed, workers)
    claims = list(all_claims(studies))
    written = write_paper_page(folder, studies, figures, can_draw())
    if chosen.json:
        told = [{"where": each.where, "statement": each.statement, "rule": each.rule, "verdict": each.verdict,
                 "findings": [vars(finding) for finding in each.findings]} for each in claims]  # fmt: skip
        _print_json({"claims": told, "page": str(written)})
        return DONE
    with pd.option_context("display.max_colwidth", None):
        print(claims_table(claims)[["claim", "where", "measured"]].to_string(index=False))
    print(f"\nWhat the paper states and what was measured, claim by claim: {written}")
    return DONE


# -- words -----------------------------------------------------------------------------------------------------


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _aside(json_only: bool) -> Any:
    """Where standard output is to hold one JSON object, what a user's file prints goes to standard error."""
    return redirect_stdout(sys.stderr) if json_only else nullcontext()


def _silent(*_: Any) -> None:
    """Say nothing, where one JSON object is all that is wanted."""


def _print_json(record: Any) -> None:
    print(json.dumps(_plain(record), indent=1))


def _plain(value: Any) -> Any:
    """A record that any reader of JSON takes: no NaN, no numpy, keys that are texts."""
    if isinstance(value, dict | FamilyMap):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value
