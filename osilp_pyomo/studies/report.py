"""A study as one page: the answer in a sentence, a picture and a table; below, folded, everything it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._reporting import tracked
from osilp_pyomo.online.runs import BENCHMARKS
from osilp_pyomo.show.drawing import svg_of
from osilp_pyomo.show.mathml import model_mathml
from osilp_pyomo.show.numbers import Units
from osilp_pyomo.show.pages.html import (
    answer_table,
    definitions,
    folded,
    heading,
    moving_part,
    page,
    paragraph,
    picture,
    preformatted,
    sentence,
    table,
)
from osilp_pyomo.studies.answer import GUARDED, KEPT, Answer, benchmark_text, names_of
from osilp_pyomo.studies.bars import bars_of
from osilp_pyomo.studies.displays import displays_of
from osilp_pyomo.studies.moving import moving_study

_GUARDS = {
    "pointwise": "no point of the index that is within its limit is ever taken beyond it; a lower limit, which is not "
    "met at the beginning, is not guarded",
    "projected": "no test function that is within its budget is ever taken beyond it; single points may be",
    "none": "nothing is kept",
}


def answer_of(study: Any, units: Mapping[str, Any] | None, what: str) -> Answer:
    """What a study says to somebody who has to choose."""
    return Answer.of(study, _units(study, units, what), what)


def _units(study: Any, units: Mapping[str, Any] | None, what: str) -> Units:
    settings = study.settings
    return Units(units, names_of(settings), settings.get("goal", ""), settings["model"], what)


def study_page(
    study: Any, pictures: bool, progress: bool, title: str | None = None, author: str | None = None,
    units: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """The page of a study: the answer, one picture and one table; all else is folded below."""
    settings = study.settings
    named = _units(study, units, "to_html")
    answer = Answer.of(study, named) if len(study.runs) else None
    moving = None if answer is None else moving_study(study, named, answer)
    name = settings.get("name", "")
    byline = " \u00b7 ".join(each for each in (f"model: {name}" if title and name else "", author) if each)
    parts = [*_first_screen(study, answer), *_folds(study, answer, pictures, progress, moving is not None)]
    return page(title or name or "Which policy to take", parts, moving, byline)


def _first_screen(study: Any, answer: Answer | None) -> Iterator[str]:
    """What somebody reads who has ten seconds."""
    if answer is not None:
        yield sentence(answer.headline(), "headline", answer.said_loudly)
        if answer.why():
            yield sentence(answer.why(), "why")
    if not study.complete:
        yield paragraph(
            f"{study.finished} of {study.expected} trials are finished; the numbers below are of those.", "note"
        )
    for text in study.doubts():
        yield paragraph(text, "note")
    if answer is None:
        return
    yield bars_of(answer)
    yield answer_table(answer.table())
    yield paragraph(_small_print(study, answer), "small")


def _small_print(study: Any, answer: Answer) -> str:
    """What the table is of, in a line."""
    trials = "One trial" if answer.trials == 1 else f"{answer.trials} trials"
    each = "" if answer.trials == 1 else " each"
    text = f"{trials} of {answer.horizon:,} arrivals{each}, decided one by one; every policy met the same arrivals."
    if answer.trials > 1:
        text += " \u00b1: 95 % interval of the mean."
    if answer.bound:
        text += " The best possible is a bound here, so that the true shares are better than these."
    others = []
    if len(study.settings["horizons"]) > 1:
        others.append("numbers of arrivals")
    if len(study.settings["grids"]) > 1:
        others.append("grids")
    return text + (f" Other {' and '.join(others)} that were run stand below." if others else "")


def _folds(study: Any, answer: Answer | None, pictures: bool, progress: bool, moves: bool) -> Iterator[str]:
    """Everything else, folded, from what is asked first to what is asked last."""
    settings, measures = study.settings, study.measures
    if moves:
        yield folded("Watch it happen", [moving_part()], "one trial, arrival by arrival; move the slider")
    if answer is not None:
        yield folded("What the words mean", [definitions(_words(answer, settings["guards"]))])
    yield folded("What was run", _run_parts(study))
    if answer is not None:
        yield folded("All numbers", _number_parts(study), "every measure with its 95 % interval")
    if pictures:
        yield folded("Pictures", _picture_parts(study, progress))
    yield folded("The model", _model_parts(study), "as mathematics")
    yield folded("What every number means", _meaning_parts(study, measures))
    versions = ", ".join(f"{name} {number}" for name, number in settings["versions"].items())
    yield folded(
        "Versions and seed",
        [paragraph(f"Seed {settings['seed']}. {versions}. Program {settings['program'][:16]}.")],
    )


def _words(answer: Answer, guards: Sequence[str]) -> dict[str, str]:
    kept = "capacity" if answer.capacity else "limits"
    guarded = {GUARDED[guard]: f"{_GUARDS[guard][0].upper()}{_GUARDS[guard][1:]}." for guard in guards}
    return {
        "arrival": "A request, a customer or an order; it is taken or refused, or served in part, when it comes.",
        "policy": "A rule that decides each arrival when it comes, before the next one is known.",
        "trial": "One run of all policies on the same arrivals; the next has others, or the same in another order.",
        **(guarded if len(guards) > 1 else {}),
        "best possible": benchmark_text(answer),
        kept: "Never exceeded means: in no trial, at no point that was looked at, those between the points of the grid "
        f"among them, by more than {KEPT:g} of the limit. Otherwise the largest excess is told, as a share of it.",
        "cannot tell": "The 95 % interval of the difference on the same arrivals, trial by trial, holds zero.",
        "decisions a second": "On the machine that ran this, on one of its cores; the median of the trials.",
    }


def _run_parts(study: Any) -> Iterator[str]:
    yield table(
        pd.DataFrame(study.settings["policies"], columns=["policy", "with its settings", "guards"]),
        wordy=["policy", "with its settings"],
    )
    yield paragraph(_what_was_run(study))


def _number_parts(study: Any) -> Iterator[str]:
    yield paragraph("Means over trials with half the width of their 95 % intervals (Student's t).")
    yield table(study.table(), wordy=["policy"])
    rest = [measure.column for measure in study.measures if measure.title not in study.table().columns]
    yield heading("The other measures", 3)
    yield table(study.table(rest), wordy=["policy"])
    if len(study.offline):
        yield heading("The offline benchmarks", 3)
        yield table(_offline(study))


def _picture_parts(study: Any, progress: bool) -> Iterator[str]:
    for display in tracked(list(displays_of(study)), progress, "pictures"):
        yield heading(display.title, 3)
        yield picture(svg_of(display), display.title, display.caption)


def _model_parts(study: Any) -> Iterator[str]:
    settings = study.settings
    yield f"<div class='wide'>{model_mathml(settings['model'])}</div>"
    yield paragraph(
        f"t runs over the arrivals, {settings['model']['horizon']:,} of them in the model; each brings "
        f"{settings['model']['data']}. Limits are totals over these arrivals"
        + (
            " and grow or shrink with the number of arrivals where another one was run."
            if settings["budget"] == "per_arrival"
            else ", and stay so where another number of arrivals was run."
        )
    )
    yield heading("What the program understood of the model", 3)
    yield preformatted(settings["description"])


def _meaning_parts(study: Any, measures: Any) -> Iterator[str]:
    yield definitions({measure.title: measure.definition for measure in measures})
    yield paragraph(
        "A regret says nothing without its benchmark: "
        + "; ".join(BENCHMARKS[name] for name in study.benchmarks)
        + ". A run that overruns rows can earn more than a benchmark that keeps them."
    )


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
        # Nothing where no trial has an optimum.
        frame[column] = ["" if np.isnan(value) else format(value, form) for value in frame[column]]
    return frame.drop(columns="grid").rename(columns={
        "horizon": "T", "objective": "mean objective", "bound": "mean bound", "violation": "largest violation",
        "rows": "mean rows", "seconds": "mean seconds",
    })  # fmt: skip
