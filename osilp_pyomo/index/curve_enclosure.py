"""Enclosures of curves: what a function given by its values at knots can be over boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index import intervals as iv
from osilp_pyomo.index.curves import CurveStack, Function, Table
from osilp_pyomo.index.enclosure import Enclosure, NoEnclosureError, Opening
from osilp_pyomo.index.intervals import Interval

# Knots inside of a box that are looked at one by one; with more of them, the range of the whole curve counts.
_KNOTS = 8


def enclose_curve(curves: CurveStack, arguments: Sequence[Enclosure], opening: Opening) -> Enclosure:
    """Curves of some columns at arguments that are enclosed."""
    if curves.missing or any(isinstance(curve, Function) for curve in curves.members()):
        raise NoEnclosureError("a curve that is a Python function has values that nothing is known of")
    form = curves.form
    if form is None:
        return _stacked([enclose_curve(CurveStack.of_tables((each,)), arguments, opening) for each in curves.members()])
    values = curves.array
    assert values is not None
    if len(arguments) == 1:
        place = _Place(form, arguments[0].value, 0)
        if form.kind == "linear":
            return _straight_pieces(place, values, arguments[0], opening)
        return _steps(_hull_of_cells(values, [place]), [place], opening)
    places = [_Place(form, each.value, axis) for axis, each in enumerate(arguments)]
    if form.kind == "linear":
        return _multilinear(places, values, arguments, opening)
    return _steps(_hull_of_cells(values, places), places, opening)


class _Place:
    """Which cells between knots an argument meets over boxes: numbers of the first and the last of them."""

    def __init__(self, form: Table, w: Interval, axis: int) -> None:
        knots = form.knots[axis]
        low, high = knots[0], knots[-1]
        self.knots = knots
        self.beyond = ~(w[0] <= w[1])
        if form.outside == "wrap" and high > low:
            turns = np.floor((w[0] - low) / (high - low)) * (high - low)
            w = iv.subtract(w, iv.exact(turns))
            # Rounding may move an argument across the seam.
            self.beyond |= ~((w[0] >= low) & (w[1] <= high))
        clipped = np.clip(w[0], low, high), np.clip(w[1], low, high)
        self.touches_end = (w[0] <= low) | (w[1] >= high)
        self.outside = (w[0] < low) | (w[1] > high)
        self.w = clipped
        if form.kind == "nearest":
            middle = (knots[1:] + knots[:-1]) / 2
            margin = 1e-15 * (np.abs(knots[1:]) + np.abs(knots[:-1]))
            self.first = np.searchsorted(middle + margin, clipped[0], side="left")
            self.last = np.searchsorted(middle - margin, clipped[1], side="right")
            self.touched = self.first, self.last
            return
        most = len(knots) - (1 if form.kind == "previous" else 2)
        right = np.searchsorted(knots, clipped[0], side="right") - 1
        left = np.searchsorted(knots, clipped[1], side="left") - 1
        self.first = np.clip(right, 0, max(0, most))
        self.last = np.maximum(np.clip(left, 0, max(0, most)), self.first)
        # A box that only touches a knot knows the slopes on its other side too.
        self.touched = (
            np.clip(np.searchsorted(knots, clipped[0], side="left") - 1, 0, max(0, most)),
            np.clip(np.searchsorted(knots, clipped[1], side="right") - 1, 0, max(0, most)),
        )

    @property
    def single(self) -> BoolArray:
        """Where one cell holds the whole argument."""
        return (self.first == self.last) & ~self.beyond


def _range_over(values: FloatArray, first: IntArray, last: IntArray, unknown: BoolArray) -> Interval:
    """Smallest and largest of ``values[:, first .. last]``; of all values where those are many."""
    rows = np.arange(len(values))[:, None]
    low = high = values[rows, first]
    most = int(np.max(last - first, initial=0))
    for step in range(1, min(most, _KNOTS) + 1):
        each = values[rows, np.minimum(first + step, last)]
        low, high = np.minimum(low, each), np.maximum(high, each)
    wide = (last - first > _KNOTS) | unknown
    if wide.any():
        low = np.where(wide, values.min(axis=1)[:, None], low)
        high = np.where(wide, values.max(axis=1)[:, None], high)
    return low, high


def _straight_pieces(place: _Place, values: FloatArray, argument: Enclosure, opening: Opening) -> Enclosure:
    """A curve with straight pieces between its knots."""
    knots, (a, b) = place.knots, place.w
    rows = np.arange(len(values))[:, None]
    if len(knots) == 1:
        return Enclosure(iv.exact(values[:, :1]))
    rises = iv.divide(
        iv.subtract(iv.exact(values[:, 1:]), iv.exact(values[:, :-1])),
        iv.subtract(iv.exact(knots[1:]), iv.exact(knots[:-1])),
    )

    def rise(cell: IntArray) -> Interval:
        return rises[0][rows, cell], rises[1][rows, cell]

    def at(cell: IntArray, w: Interval) -> Interval:
        """The straight line of a cell, wherever the argument is."""
        away = iv.subtract(w, iv.exact(knots[cell]))
        return iv.add(iv.exact(values[rows, cell]), iv.multiply(rise(cell), away))

    ends = iv.hull(at(place.first, (a, a)), at(place.last, (b, b)))
    # Between two ends of one cell it is straight; knots inside are values of its own.
    inner = place.first + 1
    several = place.last > place.first
    inside = _range_over(values, np.minimum(inner, place.last), place.last, place.beyond)
    value = iv.choose(several | place.beyond, iv.hull(ends, inside), ends)
    if argument.constant:
        return Enclosure(value)
    first, last = place.touched
    slopes_low, _ = _range_over(rises[0], first, last, place.beyond)
    _, slopes_high = _range_over(rises[1], first, last, place.beyond)
    if place.touches_end.any():
        slopes_low = np.where(place.touches_end, np.minimum(slopes_low, 0.0), slopes_low)
        slopes_high = np.where(place.touches_end, np.maximum(slopes_high, 0.0), slopes_high)
    slopes = {axis: iv.multiply((slopes_low, slopes_high), each) for axis, each in argument.slopes.items()}
    cell = opening.recorded(np.clip(np.searchsorted(knots, (a + b) / 2, side="right") - 1, 0, len(knots) - 2))
    # The line through the cell in the middle, and what the curve has more than that.
    line = argument.times(rise(cell))
    start = iv.subtract(iv.exact(values[rows, cell]), iv.multiply(rise(cell), iv.exact(knots[cell])))
    base = iv.add(line.base, start)
    if not (several.any() or place.beyond.any() or place.outside.any() or argument.rest is not None):
        if opening.replay is None:
            return Enclosure(value, slopes, line.bends, base_slopes=line.base_slopes)
        return Enclosure(value, slopes, line.bends, iv.exact(0.0), base, line.base_slopes)
    more_low, more_high = np.zeros_like(value[0]), np.zeros_like(value[1])
    for cell_at, w in ((place.first, (a, a)), (place.last, (b, b))):
        gap = iv.subtract(at(cell_at, w), at(cell, w))
        more_low, more_high = np.minimum(more_low, gap[0]), np.maximum(more_high, gap[1])
    knot = np.minimum(inner, len(knots) - 1)
    gap = iv.subtract(iv.exact(values[rows, knot]), at(cell, iv.exact(knots[knot])))
    more_low = np.where(several, np.minimum(more_low, gap[0]), more_low)
    more_high = np.where(several, np.maximum(more_high, gap[1]), more_high)
    wide = (place.last - place.first > 1) | place.beyond | place.outside
    natural = iv.subtract(value, at(cell, argument.value))
    more = iv.choose(wide, natural, (more_low, more_high))
    rest = more if line.rest is None else iv.add(more, line.rest)
    return Enclosure(value, slopes, line.bends, rest, base, line.base_slopes)


def _hull_of_cells(values: FloatArray, places: Sequence[_Place]) -> Interval:
    """Smallest and largest value of steps over boxes; exact where at most two steps meet along each axis."""
    if len(places) == 1:
        place = places[0]
        return _range_over(values, place.first, place.last, place.beyond)
    rows = np.arange(len(values))[:, None]
    few = reduce(np.logical_and, (place.last - place.first <= 1 for place in places))
    few = reduce(np.logical_and, (~place.beyond for place in places), few)
    corners = [
        values[(rows, *(np.where(upper, place.last, place.first) for place, upper in zip(places, corner, strict=True)))]
        for corner in product((False, True), repeat=len(places))
    ]
    flat = values.reshape(len(values), -1)
    low = np.where(few, np.minimum.reduce(corners), flat.min(axis=1)[:, None])
    high = np.where(few, np.maximum.reduce(corners), flat.max(axis=1)[:, None])
    return low, high


def _steps(value: Interval, places: Sequence[_Place], opening: Opening) -> Enclosure:
    """Steps between knots: no slope on one of them.

    A step ends before the knot that the next one begins with: that knot is looked at in the box beyond it. A slope
    needs the whole box, the knot included.
    """
    jumps = reduce(np.logical_or, (place.touched[0] != place.touched[1] for place in places))
    jumps = reduce(np.logical_or, (place.beyond for place in places), jumps)
    slopes = {axis: (np.where(jumps, -np.inf, 0.0), np.where(jumps, np.inf, 0.0)) for axis in range(opening.dimension)}
    level = opening.recorded(value[0])
    return Enclosure(value, slopes, {}, iv.subtract(value, iv.exact(level)), (level, level), {})


def _multilinear(
    places: Sequence[_Place], values: FloatArray, arguments: Sequence[Enclosure], opening: Opening
) -> Enclosure:
    """A table over several axes, read by straight lines along each."""
    rows = np.arange(len(values))[:, None]
    single = reduce(np.logical_and, (place.single & ~place.outside for place in places))
    shares = []
    for place, argument in zip(places, arguments, strict=True):
        knots = place.knots
        if len(knots) == 1:
            shares.append(Enclosure(iv.exact(0.0)))
            continue
        gap = iv.subtract(iv.exact(knots[place.first + 1]), iv.exact(knots[place.first]))
        away = argument + Enclosure(iv.negative(iv.exact(knots[place.first])))
        shares.append(away.times(iv.reciprocal(gap)))
    total: Enclosure | None = None
    corners = []
    for corner in product((0, 1), repeat=len(places)):
        cell = tuple(
            np.minimum(place.first + upper, len(place.knots) - 1) for place, upper in zip(places, corner, strict=True)
        )
        weight = Enclosure(iv.exact(values[(rows, *cell)]))
        corners.append(weight.value[0])
        for share, upper in zip(shares, corner, strict=True):
            factor = share if upper else Enclosure(iv.exact(1.0)) - share
            weight = weight.multiply(factor, opening.order)
        total = weight if total is None else total + weight
    assert total is not None
    flat = values.reshape(len(values), -1)
    whole = flat.min(axis=1)[:, None], flat.max(axis=1)[:, None]
    cell_range = np.minimum.reduce(corners), np.maximum.reduce(corners)
    within = np.maximum(total.value[0], cell_range[0]), np.minimum(total.value[1], cell_range[1])
    value = iv.choose(single, within, whole)
    # Slopes change at every face of a cell.
    touching = reduce(np.logical_or, (place.touched[0] != place.touched[1] for place in places), ~single) | reduce(
        np.logical_or, (place.touches_end for place in places)
    )
    slopes = {
        axis: iv.choose(touching, iv.EVERYTHING, total.slopes.get(axis, iv.exact(0.0)))
        for axis in range(opening.dimension)
    }
    zero = iv.exact(0.0)
    rest = iv.choose(single, zero if total.rest is None else total.rest, iv.subtract(value, total.base))
    return Enclosure(value, slopes, total.bends, rest, total.base, total.base_slopes)


def _stacked(parts: Sequence[Enclosure]) -> Enclosure:
    """Enclosures of single columns, one below the other."""
    zero = iv.exact(0.0)

    def together(entries: Sequence[Interval]) -> Interval:
        count = max(np.shape(each[0])[-1] if np.ndim(each[0]) else 1 for each in entries)
        low, high = ([np.broadcast_to(each[side], (1, count)) for each in entries] for side in (0, 1))
        return np.concatenate(low), np.concatenate(high)

    def joined(entries: Sequence[dict[Any, Interval]]) -> dict[Any, Interval]:
        keys = dict.fromkeys(key for each in entries for key in each)
        return {key: together([each.get(key, zero) for each in entries]) for key in keys}

    return Enclosure(
        together([part.value for part in parts]),
        joined([part.slopes for part in parts]),
        joined([part.bends for part in parts]),
        together([part.rest or zero for part in parts]),
        together([part.base for part in parts]),
        joined([part.base_slopes for part in parts]),
    )
