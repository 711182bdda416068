"""A study as one page: the model, what was run, the table, pictures, what every number means, versions and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from osilp_pyomo._reporting import tracked
from osilp_pyomo.online.runs import BENCHMARKS
from osilp_pyomo.show.drawing import svg_of
from osilp_pyomo.show.html import definitions, heading, page, paragraph, picture, preformatted, table
from osilp_pyomo.show.mathml import model_mathml
from osilp_pyomo.studies.displays import displays_of

_GUARDS = {
    "pointwise": "no point of the index that is within its limit is ever taken beyond it; a lower limit, which is not "
    "met at the beginning, is not guarded",
    "projected": "no test function that is within its budget is ever taken beyond it; single points may be",
    "none": "nothing is kept",
}


def study_page(study: Any, pictures: bool, progress: bool) -> str:
    """The page of a study."""
    return page("Online against offline on one model", _parts(study, pictures, progress))


def _parts(study: Any, pictures: bool, progress: bool) -> Iterator[str]:
    """The parts of the page from top to bottom."""
    settings, measures = study.settings, study.measures
    yield heading("The model")
    yield model_mathml(settings["model"])
    yield paragraph(
        f"t runs over the arrivals, {settings['model']['horizon']:,} of them in the model; each brings "
        f"{settings['model']['data']}. Limits are totals over these arrivals"
        + (
            " and grow or shrink with the number of arrivals where another one was run."
            if settings["budget"] == "per_arrival"
            else ", and stay so where another number of arrivals was run."
        )
    )
    yield heading("What was run")
    yield table(
        pd.DataFrame(settings["policies"], columns=["policy", "with its settings", "guards"]),
        wordy=["policy", "with its settings"],
    )
    yield paragraph(_what_was_run(study))
    yield heading("Summary")
    if not study.complete:
        yield paragraph(
            f"{study.finished} of {study.expected} trials are finished; the numbers below are of those.", "note"
        )
    for text in study.doubts():
        yield paragraph(text, "note")
    if len(study.runs):
        yield paragraph("Means over trials with half the width of their 95 % intervals (Student's t).")
        yield table(study.table(), wordy=["policy"])
        rest = [measure.column for measure in measures if measure.title not in study.table().columns]
        yield heading("The other measures", 3)
        yield table(study.table(rest), wordy=["policy"])
    if len(study.offline):
        yield heading("The offline benchmarks", 3)
        yield table(_offline(study))
    if pictures:
        yield heading("Pictures")
        for display in tracked(list(displays_of(study)), progress, "pictures"):
            yield heading(display.title, 3)
            yield picture(svg_of(display), display.title, display.caption)
    yield heading("What every number means")
    yield definitions({measure.title: measure.definition for measure in measures})
    yield paragraph(
        "A regret says nothing without its benchmark: "
        + "; ".join(BENCHMARKS[name] for name in study.benchmarks)
        + ". A run that overruns rows can earn more than a benchmark that keeps them."
    )
    yield heading("What the program understood of the model")
    yield preformatted(settings["description"])
    yield heading("Versions and seed")
    versions = ", ".join(f"{name} {number}" for name, number in settings["versions"].items())
    yield paragraph(f"Seed {settings['seed']}. {versions}. Program {settings['program'][:16]}.")


_IN_ORDER = {
    "given": "in their order", "permutation": "in random order", "iid": "drawn with replacement",
    "drift": "drifting from low to high", "season": "going up and down", "regime": "in regimes that change",
    "blocks": "in blocks of like ones", "sorted": "from low to high",
}  # fmt: skip


def drawn_text(settings: Mapping[str, Any]) -> str:
    """Where the arrivals of a trial come from, in words."""
    order, _, by = settings["order"].partition(" by ")
    how = f"{_IN_ORDER[order]}, ranked by {by}" if by else _IN_ORDER[order]
    if settings["sampler"] is None:
        return f"{settings['arrivals']:,} arrivals {how}"
    drawn = f"drawn by {settings['sampler']}"
    return drawn if order == "given" else f"{drawn}, {how}"


def _what_was_run(study: Any) -> str:
    settings = study.settings
    sizes = ", ".join(f"{size:,}" for size in settings["horizons"])
    grids = "; ".join(grid or "that of the program" for grid in settings["grids"])
    guards = "; ".join(f"{guard} ({_GUARDS[guard]})" for guard in settings["guards"])
    return (
        f"{settings['trials']} trials for each number of arrivals T = {sizes}. Grid: {grids}. Arrivals: "
        f"{drawn_text(settings)}. Every policy meets the same arrivals of a trial. Guard: {guards}. Where use can be "
        "negative, a guard demands more than the benchmark, which keeps its rows at the end only."
    )


def _offline(study: Any) -> pd.DataFrame:
    groups = study.offline.groupby(["horizon", "grid", "points", "benchmark"], sort=False)
    frame = groups.agg(
        trials=("trial", "size"),
        optimal=("status", lambda status: int((status == "optimal").sum())),
        objective=("objective", "mean"),
        bound=("bound", "mean"),
        violation=("violation", "max"),
        rows=("rows", "mean"),
        seconds=("seconds", "mean"),
    ).reset_index()
    frame["benchmark"] = [BENCHMARKS[name] for name in frame["benchmark"]]
    for column, form in (("objective", ".8g"), ("bound", ".8g"), ("violation", ".2g"), ("rows", ".0f"),
                         ("seconds", ".2g")):  # fmt: skip
        frame[column] = [format(value, form) for value in frame[column]]
    return frame.drop(columns="grid").rename(columns={
        "horizon": "T", "objective": "mean objective", "bound": "mean bound", "violation": "largest violation",
        "rows": "mean rows", "seconds": "mean seconds",
    })  # fmt: skip
