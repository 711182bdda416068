"""The page of ``osilp reproduce``: claim by claim what the paper states, what was measured, and whether they agree."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from osilp_pyomo._reporting import tracked
from osilp_pyomo.paper.claims import Claim, all_claims
from osilp_pyomo.paper.experiments import KINDS, Experiment, least_stage, paper_policies
from osilp_pyomo.show.drawing import svg_of
from osilp_pyomo.show.pages.html import definitions, heading, page, paragraph, picture, table
from osilp_pyomo.studies.compare import Study
from osilp_pyomo.studies.sweep_displays import OverrunDisplay, RegretDisplay

_UNSTATED = (
    "The paper does not state the size of the finite support (here 100 columns, drawn anew in each trial), the "
    "constants J and lambda of Algorithm 5, nor the scaling of Phi; an 'Algorithm GR', mentioned once, is not defined; "
    "its figures are not in its source. So 'reproduce' can only mean: run what the text says, and compare with what "
    "the text claims. The right-hand side d is drawn once for each number of rows m; the index is u_i = (i - 1/2)/m, "
    "and Phi is the 10 radial basis functions of two resolutions, as printed."
)
_VARIANTS = (
    "As printed means: Phi without quadrature weights, so that Phi'a grows with m; steps 1/sqrt(T) for Algorithm 2 and "
    "Simple-GD and 1/log T for Algorithm 5. Its J is larger than any T (below), so that its first stage never ends; "
    '"J = 10" is the printed algorithm otherwise. As corrected means: Phi with quadrature weights, steps that do not '
    "depend on units, a learner that steps with its own decision, and J = 10."
)
_BENCHMARKS = (
    "R*_m is the optimum of all m rows, which the paper calls R*_T and measures regret against; R*_Phi that of the 10 "
    "rows on test functions, which is larger. A run that keeps only the test functions overruns single rows and can "
    "earn more than R*_m: its regret is then negative, which is no success. So every regret names its benchmark, and "
    "violation at single points stands beside the paper's v, which is tested against the span of Phi."
)
_RULES = (
    "Rules use medians over trials, because on Cauchy input means do not exist; tables and pictures show means. A "
    "claim is judged on what the paper measures it by; 'only' names the condition under which it holds otherwise."
)


def paper_page(studies: Mapping[str, Study], experiments: Sequence[Experiment], pictures: bool = True) -> str:
    """The page."""
    return page(
        "The paper's numerical section, run again", _parts(studies, experiments, list(all_claims(studies)), pictures)
    )


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """One row per claim: where it stands, what it says, the verdict, and the figures of the first variant."""
    return pd.DataFrame({
        "claim": range(1, len(claims) + 1),
        "where": [claim.where for claim in claims],
        "the paper states": [claim.statement for claim in claims],
        "measured": [claim.verdict for claim in claims],
        "figures": [
            "; ".join(f"{each.algorithms}, {each.basis}: {each.figures}" for each in claim.shown) for claim in claims
        ],
    })  # fmt: skip


def write_paper_page(
    folder: Path, studies: Mapping[str, Study], experiments: Sequence[Experiment], pictures: bool = True
) -> Path:
    """Write the page into a folder."""
    target = folder / "paper.html"
    target.write_text(paper_page(studies, experiments, pictures), encoding="utf-8")
    return target


def _parts(
    studies: Mapping[str, Study], experiments: Sequence[Experiment], claims: Sequence[Claim], pictures: bool
) -> Iterator[str]:
    """The parts of the page from top to bottom."""
    first = next(iter(studies.values()))
    yield paragraph(
        'Zong and Jiang, "Online Semi-infinite Linear Programming: Efficient Algorithms via Function Approximation" '
        f"(arXiv:2603.16200), section Numerical Experiments; {first.settings['trials']} trials for each point of each "
        f"figure, seed {first.settings['seed']}. Means over trials; intervals are 95 %."
    )
    counts = pd.Series([claim.verdict for claim in claims]).value_counts()
    yield paragraph(
        f"Of {len(claims)} claims: " + "; ".join(f"{verdict} {count}" for verdict, count in counts.items()) + ".",
        "note",
    )
    yield table(claims_table(claims), wordy=["the paper states", "where", "measured", "figures"])
    for text in (_UNSTATED, _VARIANTS, _BENCHMARKS, _RULES):
        yield paragraph(text)
    for number, claim in enumerate(claims, 1):
        yield from _claim(number, claim)
    yield heading("The figures")
    for experiment in tracked(experiments, True, "pictures"):
        study = studies[experiment.name]
        yield heading(experiment.title, 3)
        for text in study.doubts():
            yield paragraph(text, "note")
        if pictures:
            for kind in (RegretDisplay, OverrunDisplay):
                yield picture(svg_of(kind.from_study(study)), f"{kind.title}: {experiment.title}", kind.caption)
        yield "<details><summary>All numbers</summary>"
        yield table(study.table([
            "relative_regret_discretized", "relative_regret_projected", "relative_violation", "overrun_points",
            "test_violation", "remaining", "step_microseconds",
        ]))  # fmt: skip
        yield "</details>"
    yield heading("The algorithms")
    yield definitions({
        name: f"{policy!r}, guard {', '.join(guards)}" for name, (policy, guards) in paper_policies(2000).items()
    })  # fmt: skip
    yield paragraph(_first_stage(first.settings["seed"]))
    yield heading("What every number means")
    yield definitions({measure.title: measure.definition for measure in first.measures})
    yield heading("Versions")
    yield paragraph(", ".join(f"{name} {number}" for name, number in first.settings["versions"].items()))


def _first_stage(seed: int) -> str:
    """Why the first stage of Algorithm 5 never ends as printed, with the numbers of drawn instances."""
    told = []
    for kind in KINDS:
        sharpness, least = least_stage(kind, 2000, seed)
        told.append(f"{least:.1e} on {kind} input (lambda <= {sharpness:.3g})")
    return (
        "A level of Algorithm 5's first stage has J >= 1152 (C + D)^2 log(1/delta_hat) / lambda^2 arrivals, C the "
        "largest Phi'a, D the largest Phi'd, and lambda the constant of the error bound f(w) - f(w*) >= lambda |w - "
        "w*|, at most the smallest such ratio that is found at sampled w. (Printed, delta_hat = log(delta/K) is "
        "negative and has no logarithm; delta/L with delta = 0.1 is taken.) With 2,000 rows and one instance drawn for "
        f"each input that is at least {'; '.join(told)}."
    )


def _claim(number: int, claim: Claim) -> Iterator[str]:
    yield heading(f"{number}. {claim.where}", 3)
    yield f"<blockquote>{html.escape(claim.statement)}</blockquote>"
    yield paragraph(f"Measured: {claim.verdict}.", "verdict")
    if claim.remark:
        yield paragraph(claim.remark, "note")
    yield paragraph(f"Rule: {claim.rule}")
    yield table(
        pd.DataFrame(
            [(each.algorithms, each.basis, each.holds, each.figures) for each in claim.findings],
            columns=["algorithms", "measured", "holds", "figures"],
        ),
        wordy=["figures", "algorithms", "measured"],
    )
