"""Sketches: pictures of a few centimetres as SVG, drawn without matplotlib, that stand within a card.

Lines are thinned to what such a picture can show, so that its size does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.show.cards.card import escaped, number_text
from osilp_pyomo.show.numbers import shortened

# Size of a sketch, and what is left of it for ticks at the left, above, and below.
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 340, 132, 52, 8, 32
# Steps along a line, and spikes.
_STEPS, _SPIKES = 160, 120
# Colours that people with any kind of colour vision tell apart; limits have that of the text.
BLUE, RED, TEXT = "#0072B2", "#D55E00", "currentColor"
# Lines of a picture of intervals.
_MOST_LINES, _LINE = 8, 22
# Letters of a name that fit beside the dots.
_NAME = 21


@dataclass(frozen=True, eq=False)
class Line:
    """Values along an axis, as a line, as spikes from zero, or as an area down to zero."""

    at: FloatArray
    values: FloatArray
    colour: str = BLUE
    kind: str = "line"
    dashed: bool = False


def sketch(lines: Sequence[Line], axis: str, ends: tuple[float, float], caption: str) -> str:
    """Lines over an axis, with the ends of both axes told.

    Examples
    --------
    >>> text = sketch([Line(np.array([0.0, 1.0]), np.array([2.0, 3.0]))], "u", (0, 1), "use of <band>")
    >>> text.startswith("<figure"), "use of &lt;band&gt;" in text, "<polyline" in text
    (True, True, True)
    """
    thin = [_thinned(line, ends) for line in lines]
    values = np.concatenate([line.values for line in thin] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    low = min(0.0, float(values.min(initial=0.0)))
    high = float(values.max(initial=low))
    high = high if high > low else low + 1.0

    def across(at: FloatArray) -> FloatArray:
        width = (ends[1] - ends[0]) or 1.0
        return _LEFT + (at - ends[0]) / width * (_WIDTH - _LEFT - 6)

    def down(value: FloatArray | float) -> FloatArray | float:
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    zero = float(down(0.0))
    drawn = [_drawn(line, across(line.at), np.asarray(down(line.values)), zero) for line in thin]
    bottom = _HEIGHT - _BOTTOM
    marks = [
        f"<line x1='{_LEFT}' x2='{_WIDTH - 6}' y1='{zero:.1f}' y2='{zero:.1f}' stroke='currentColor' "
        "stroke-opacity='.45'/>",
        _text(_LEFT - 5, _TOP + 9, number_text(_short(high)), "end"),
        _text(_LEFT - 5, bottom, number_text(_short(low)), "end"),
        _text(_LEFT, bottom + 13, number_text(ends[0]), "start"),
        _text(_WIDTH - 6, bottom + 13, number_text(ends[1]), "end"),
        _text((_WIDTH + _LEFT) / 2, bottom + 13, axis, "middle"),
    ]
    return _figure([*marks, *drawn], _HEIGHT - 14, caption)


def intervals(rows: Sequence[tuple[str, float, float, float]], unit: str, caption: str) -> str:
    """Means as dots with their intervals, one line for each: (name, mean, low, high).

    Examples
    --------
    >>> intervals([("Greedy", 5.0, 4.0, 6.0)], "%", "regret").count("<circle")
    1
    """
    shown = [row for row in rows[:_MOST_LINES] if np.isfinite(row[1])]
    numbers = [number for row in shown for number in row[1:] if np.isfinite(number)]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    high = high if high > low else low + 1.0
    left, right = 150, _WIDTH + 60

    def across(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left - 12)

    height = _LINE * len(shown) + 22
    zero = across(0.0)
    parts = [f"<line x1='{zero:.1f}' x2='{zero:.1f}' y1='2' y2='{height - 20}' stroke='currentColor' "
             "stroke-opacity='.45'/>"]  # fmt: skip
    for number, (name, mean, least, most) in enumerate(shown):
        y = _LINE * number + 13
        parts.append(_text(left - 10, y + 4, shortened(name, _NAME), "end"))
        if np.isfinite(least) and np.isfinite(most):
            parts.append(f"<line x1='{across(least):.1f}' x2='{across(most):.1f}' y1='{y}' y2='{y}' stroke='{BLUE}' "
                         "stroke-width='2'/>")  # fmt: skip
        parts.append(f"<circle cx='{across(mean):.1f}' cy='{y}' r='4' fill='{BLUE}'/>")
    parts += [
        _text(left, height - 6, number_text(_short(low), unit), "start"),
        _text(right - 12, height - 6, number_text(_short(high), unit), "end"),
    ]
    return _figure(parts, height, caption, right)


def _thinned(line: Line, ends: tuple[float, float]) -> Line:
    """A line with so many steps as can be seen: of each share of the axis the largest and the smallest value."""
    order = np.argsort(line.at, kind="stable")
    at, values = line.at[order], line.values[order]
    kept = np.isfinite(at) & np.isfinite(values)
    at, values = at[kept], values[kept]
    if line.kind == "spikes":
        if len(at) > _SPIKES:
            largest = np.sort(np.argsort(-np.abs(values), kind="stable")[:_SPIKES])
            at, values = at[largest], values[largest]
    elif len(at) > 2 * _STEPS:
        width = (ends[1] - ends[0]) or 1.0
        cells = np.clip((at - ends[0]) / width * _STEPS, 0, _STEPS - 1).astype(int)
        by_size = np.lexsort((values, cells))
        first = np.flatnonzero(np.r_[True, np.diff(cells[by_size]) > 0])
        last = np.r_[first[1:] - 1, len(cells) - 1]
        chosen = np.unique(np.concatenate([by_size[first], by_size[last]]))
        at, values = at[chosen], values[chosen]
    return Line(at, values, line.colour, line.kind, line.dashed)


def _drawn(line: Line, across: FloatArray, down: FloatArray, zero: float) -> str:
    if not len(across):
        return ""
    if line.kind == "spikes":
        stems = "".join(f"M{x:.1f} {zero:.1f}V{y:.1f}" for x, y in zip(across, down, strict=True))
        heads = "".join(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.6' fill='{line.colour}'/>"
            for x, y in zip(across, down, strict=True)
        )
        return f"<path d='{stems}' stroke='{line.colour}' stroke-width='1.8' fill='none'/>{heads}"
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
    if line.kind == "area":
        closed = f"{across[0]:.1f},{zero:.1f} {points} {across[-1]:.1f},{zero:.1f}"
        return f"<polygon points='{closed}' fill='{line.colour}' fill-opacity='.3' stroke='{line.colour}'/>"
    dash = " stroke-dasharray='5 3'" if line.dashed else ""
    return f"<polyline points='{points}' fill='none' stroke='{line.colour}' stroke-width='1.6'{dash}/>"


def _short(number: float) -> float:
    """A tick, to three digits."""
    return float(f"{number:.3g}")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}'>{escaped(text)}</text>"


def _figure(parts: Sequence[str], height: int, caption: str, width: int = _WIDTH) -> str:
    return (
        f"<figure><svg viewBox='0 0 {width} {height}' width='{width}' height='{height}' role='img' "
        f"aria-label='{escaped(caption)}' font-size='11' font-family='system-ui,sans-serif' fill='currentColor'>"
        f"{''.join(parts)}</svg><figcaption>{escaped(caption)}</figcaption></figure>"
    )
