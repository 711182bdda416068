"""``osilp demo``: a model offline three ways, online by five policies, a table and a report."""

from __future__ import annotations

import argparse
from pathlib import Path

from osilp_pyomo._options import whole_number
from osilp_pyomo.cli.output import DONE, print_json, result_record, silent, study_record, write_report
from osilp_pyomo.demo import compare_demo, demo_model, offline_table, solve_demo


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("--arrivals", type=int, default=1000, metavar="T", help="number of arrivals (default 1000)")
    command.add_argument("--trials", type=int, default=4, metavar="N", help="random orders of the arrivals (default 4)")
    command.add_argument("--out", default="osilp-demo", metavar="FOLDER", help="where the report goes (osilp-demo)")


def run(chosen: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    model = demo_model(chosen.arrivals)
    whole_number(chosen.trials, "demo: trials")
    talk = silent if chosen.json else print
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
    talk("\nThe same model online: each request is decided when it comes, and no point of the index is ever overrun.\n")
    study = compare_demo(model, chosen.trials)
    talk(study)
    report = write_report(study, Path(chosen.out) / "report.html", talk)
    if chosen.json:
        offline = {name: result_record(result) for name, result in results}
        print_json({"offline": offline, "online": study_record(study), "report": str(report)})
    return DONE
