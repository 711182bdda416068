"""``osilp reproduce``: the numerical section of the paper, claim by claim."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from osilp_pyomo._jit import HAS_NUMBA
from osilp_pyomo._options import whole_number
from osilp_pyomo.cli.output import DONE, print_json
from osilp_pyomo.paper.claims import all_claims
from osilp_pyomo.paper.experiments import experiments, reproduce
from osilp_pyomo.paper.page import claims_table, write_paper_page
from osilp_pyomo.show.drawing import can_draw


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("--quick", action="store_true", help="10 trials and fewer sizes: about ten minutes")
    command.add_argument("--trials", type=int, metavar="N", help="trials for each point (default 100, quick 10)")
    command.add_argument("--seed", type=int, default=0, help="same seed, same numbers (default 0)")
    command.add_argument("--workers", type=int, default=2, metavar="N", help="processes (default 2)")
    command.add_argument("--out", metavar="FOLDER", help="trials and page (default osilp-paper, or osilp-paper-quick)")


def run(chosen: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    trials = (10 if chosen.quick else 100) if chosen.trials is None else chosen.trials
    whole_number(trials, "reproduce: trials")
    workers = whole_number(chosen.workers, "reproduce: workers")
    folder = Path(chosen.out or ("osilp-paper-quick" if chosen.quick else "osilp-paper"))
    figures = experiments(chosen.quick)
    if not HAS_NUMBA and not chosen.json:
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
        print_json({"claims": told, "page": str(written)})
        return DONE
    with pd.option_context("display.max_colwidth", None):
        print(claims_table(claims)[["claim", "where", "measured"]].to_string(index=False))
    print(f"\nWhat the paper states and what was measured, claim by claim: {written}")
    return DONE
