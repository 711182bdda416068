"""The one picture of a report's first screen: a bar for each policy, drawn without any other package."""

from __future__ import annotations

import html
from collections.abc import Callable

import numpy as np

from osilp_pyomo.show.numbers import percent, plain
from osilp_pyomo.show.pages.html import unbroken
from osilp_pyomo.show.pages.panels import spread
from osilp_pyomo.studies.answer import Answer

# Policies that are drawn; the table has all of them.
_MOST = 8


def bars_of(answer: Answer) -> str:
    """Bars with 95 % intervals: shares of the best possible where these are known, else what was earned.

    Places are shares of the width, so that words keep their size on a narrow screen.
    """
    lines = answer.lines[:_MOST]
    shares = bool(answer.benchmark) and not answer.loses
    values = [(line.share, line.share_half) if shares else (line.earned, line.half) for line in lines]
    ends = [value + (0.0 if np.isnan(half) else half) for value, half in values]
    low, high = spread([value for value, _ in values], ends)
    high = max(1.0, high / 1.06) if shares else high

    def at(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.3f}%"

    drawn = []
    for number, (line, (value, half)) in enumerate(zip(lines, values, strict=True)):
        chosen = " chosen" if number == 0 else ""
        kind = "bad" if not line.keeps_points else "chosen" if number == 0 else "other"
        told = percent(value) if shares else plain(value, unit=answer.unit)
        drawn.append(
            f"<p class='barname{chosen}'><span>{html.escape(line.name)}</span><span>{unbroken(told)}</span></p>"
            f"<svg height='18' aria-hidden='true'>{_bar(kind, value, half, at)}"
            + (f"<line class='hundred' x1='{at(1)}' x2='{at(1)}' y1='-4' y2='22'/>" if shares else "")
            + "</svg>"
        )
    axis = _axis(at) if shares else ""
    caption = html.escape(_caption(answer, shares))
    return f"<figure class='bars'>{''.join(drawn)}{axis}<figcaption>{caption}</figcaption></figure>"


def _bar(kind: str, value: float, half: float, at: Callable[[float], str]) -> str:
    left, right = sorted((0.0, value))
    width = f"{float(at(right)[:-1]) - float(at(left)[:-1]):.3f}%"
    bar = f"<rect class='bar {kind}' x='{at(left)}' y='0' width='{width}' height='18' rx='2'/>"
    if not half > 0:
        return bar
    return f"{bar}<line class='whisker' x1='{at(value - half)}' x2='{at(value + half)}' y1='9' y2='9'/>"


def _axis(at: Callable[[float], str]) -> str:
    marks = [(0.0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"), (1.0, "end")]
    told = "".join(
        f"<text class='tick' x='{at(mark)}' y='14' text-anchor='{anchor}'>{100 * mark:.0f} %</text>"
        for mark, anchor in marks
    )
    return f"<svg height='18' aria-hidden='true'>{told}</svg>"


def _caption(answer: Answer, shares: bool) -> str:
    text = "Share of the best possible" if shares else "What is earned" if answer.maximize else "What it costs"
    if answer.trials > 1:
        text += "; thin line: 95 % interval"
    if any(not line.keeps_points for line in answer.lines):
        text += f"; orange: {'capacity exceeded' if answer.capacity else 'a limit broken'}"
    return f"{text}."
