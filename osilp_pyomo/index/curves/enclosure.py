"""Enclosures of curves: what a function given by its values at knots can be over boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.curves.splines import PiecewisePolynomial
from osilp_pyomo.index.curves.stack import CurveStack, Table, takes_arrays
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.enclosure import Enclosure, NoEnclosureError, Opening
from osilp_pyomo.index.enclosures.intervals import Interval

# Knots inside of a box that are looked at one by one; with more of them, the range of the whole curve counts.
_KNOTS = 8
# What an argument may lose, relative to itself, when it is brought back by whole turns.
_TURNED = 2.0**-49


def enclose_curve(curves: CurveStack, arguments: Sequence[Enclosure], opening: Opening) -> Enclosure:
    """Curves of some columns at arguments that are enclosed."""
    if curves.missing or any(takes_arrays(curve) for curve in curves.members()):
        raise NoEnclosureError("a curve that is a Python function, or an integral, has values that nothing is known of")
    form = curves.form
    if form is None and len(curves) == 1 and isinstance(curves.members()[0], PiecewisePolynomial):
        spline, (argument,) = curves.members()[0], arguments
        return argument.through(spline.value_over, spline.slope_over, spline.bend_over, opening.order)
    if form is None:
        return _stacked([enclose_curve(CurveStack.of_tables((each,)), arguments, opening) for each in curves.members()])
    values = curves.array
    assert values is not None
    if form.outside == "wrap":
        arguments = [_unwound(form, axis, each, opening) for axis, each in enumerate(arguments)]
    places = [_Place(form, axis, each.value) for axis, each in enumerate(arguments)]
    if form.kind != "linear":
        return _steps(_hull_of_cells(values, places), places, opening)
    if len(arguments) == 1:
        return _straight_pieces(places[0], values, arguments[0], opening)
    return _multilinear(places, values, arguments, opening)


def _unwound(form: Table, axis: int, argument: Enclosure, opening: Opening) -> Enclosure:
    """An argument moved by whole turns, so that it begins in the first one."""
    low, high = form.knots[axis][0], form.knots[axis][-1]
    if not high > low:
        return Enclosure(iv.exact(low))
    own = np.floor((argument.value[0] - low) / (high - low))
    turns = np.where(np.isfinite(own), own, 0.0)

    def unwound(by: FloatArray) -> Enclosure:
        # The row's own function loses some digits of the argument as well.
        away = iv.moved(by * (high - low), by * (high - low), relative=_TURNED, least=_TURNED * abs(low))
        moved = argument + Enclosure(iv.negative(away))

        def as_it_is(own: Interval, other: Interval) -> Interval:
            """Where there is nothing to turn, nothing is lost."""
            return np.where(by == 0, own[0], other[0]), np.where(by == 0, own[1], other[1])

        value, base = as_it_is(argument.value, moved.value), as_it_is(argument.base, moved.base)
        return Enclosure(value, moved.slopes, moved.bends, moved.rest, base, moved.base_slopes)

    moved = unwound(turns)
    if argument.constant:
        return moved
    chosen = opening.recorded(turns)
    if opening.replay is None:
        return moved
    # The value is its own, the base that of the box: they may be turns apart.
    based = unwound(chosen)
    rest = iv.exact(0.0) if based.rest is None else based.rest
    return Enclosure(moved.value, moved.slopes, moved.bends, rest, based.base, based.base_slopes)


class _Place:
    """Which cells between knots an argument meets over boxes: numbers of the first and the last of them.

    A box that only touches a knot meets the cells on both of its sides.
    """

    def __init__(self, form: Table, axis: int, w: Interval) -> None:
        knots = form.knots[axis]
        low, high = knots[0], knots[-1]
        self.knots, self.wraps = knots, form.outside == "wrap"
        self.w = a, b = np.clip(w[0], low, high), np.clip(w[1], low, high)
        # Where nothing is known of the argument, or it passes the seam, all values count.
        self.beyond = ~(w[0] <= w[1])
        if self.wraps:
            self.beyond |= ~((w[0] >= low) & (w[1] < high))
        self.outside = (w[0] < low) | (w[1] > high)
        self.at_end = (w[0] <= low) | (w[1] >= high)
        if form.kind == "nearest":
            middle = (knots[1:] + knots[:-1]) / 2
            margin = 1e-15 * (np.abs(knots[1:]) + np.abs(knots[:-1]))
            self.first = np.searchsorted(middle + margin, a, side="left")
            self.last = np.searchsorted(middle - margin, b, side="right")
            self.touched = self.first, self.last
            return
        if form.kind == "previous":
            self.first = np.clip(np.searchsorted(knots, a, side="right") - 1, 0, len(knots) - 1)
            self.last = np.clip(np.searchsorted(knots, b, side="right") - 1, 0, len(knots) - 1)
            self.touched = np.clip(np.searchsorted(knots, a, side="left") - 1, 0, len(knots) - 1), self.last
            return
        most = max(0, len(knots) - 2)
        self.first = np.clip(np.searchsorted(knots, a, side="right") - 1, 0, most)
        # The line of a cell is right at both of its ends.
        self.last = np.maximum(np.clip(np.searchsorted(knots, b, side="left") - 1, 0, most), self.first)
        self.touched = (
            np.clip(np.searchsorted(knots, a, side="left") - 1, 0, most),
            np.clip(np.searchsorted(knots, b, side="right") - 1, 0, most),
        )

    @property
    def single(self) -> BoolArray:
        """Where one cell holds the whole argument."""
        return (self.first == self.last) & ~self.beyond & ~self.outside

    @property
    def jumps(self) -> BoolArray:
        """Where the curve may jump although it has straight pieces: at the seam of turns."""
        return (self.beyond | self.at_end) if self.wraps else self.beyond


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
    if place.at_end.any():
        slopes_low = np.where(place.at_end, np.minimum(slopes_low, 0.0), slopes_low)
        slopes_high = np.where(place.at_end, np.maximum(slopes_high, 0.0), slopes_high)
    slopes = {axis: iv.multiply((slopes_low, slopes_high), each) for axis, each in argument.slopes.items()}
    if place.jumps.any():
        zero = iv.exact(0.0)
        axes = range(opening.dimension)
        slopes = {axis: iv.choose(place.jumps, iv.EVERYTHING, slopes.get(axis, zero)) for axis in axes}
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
    """Steps between knots: no slope on one of them."""
    jumps = reduce(np.logical_or, (place.touched[0] != place.touched[1] for place in places))
    jumps = reduce(np.logical_or, (place.beyond for place in places), jumps)
    slopes = {axis: (np.where(jumps, -np.inf, 0.0), np.where(jumps, np.inf, 0.0)) for axis in range(opening.dimension)}
    level = opening.recorded(value[0])
    return Enclosure(value, slopes, {}, iv.subtract(value, iv.exact(level)), (level, level), {})


def _multilinear(
    places: Sequence[_Place], values: FloatArray, arguments: Sequence[Enclosure], opening: Opening
) -> Enclosure:
    """A table over several axes, read by straight lines along each."""
    single = reduce(np.logical_and, (place.single for place in places))
    cells = [place.first for place in places]
    chosen = [opening.recorded(cell) for cell in cells]
    total, corners = _in_cell(places, cells, values, arguments, opening.order)
    based = total if opening.replay is None else _in_cell(places, chosen, values, arguments, opening.order)[0]
    flat = values.reshape(len(values), -1)
    whole = flat.min(axis=1)[:, None], flat.max(axis=1)[:, None]
    within = np.maximum(total.value[0], corners[0]), np.minimum(total.value[1], corners[1])
    value = iv.choose(single, within, whole)
    # Slopes change at every face of a cell.
    unknown = reduce(np.logical_or, (place.touched[0] != place.touched[1] for place in places), ~single)
    unknown = reduce(np.logical_or, (place.at_end | place.jumps for place in places), unknown)
    zero = iv.exact(0.0)
    slopes = {
        axis: iv.choose(unknown, iv.EVERYTHING, total.slopes.get(axis, zero)) for axis in range(opening.dimension)
    }
    rest = iv.choose(single, zero if based.rest is None else based.rest, iv.subtract(value, based.base))
    return Enclosure(value, slopes, based.bends, rest, based.base, based.base_slopes)


def _in_cell(
    places: Sequence[_Place],
    cells: Sequence[IntArray],
    values: FloatArray,
    arguments: Sequence[Enclosure],
    order: int,
) -> tuple[Enclosure, Interval]:
    """The product of straight lines of one cell, wherever the arguments are; and the range of the cell's corners."""
    rows = np.arange(len(values))[:, None]
    shares = []
    for place, cell, argument in zip(places, cells, arguments, strict=True):
        knots = place.knots
        if len(knots) == 1:
            shares.append(Enclosure(iv.exact(0.0)))
            continue
        gap = iv.subtract(iv.exact(knots[cell + 1]), iv.exact(knots[cell]))
        away = argument + Enclosure(iv.negative(iv.exact(knots[cell])))
        shares.append(away.times(iv.reciprocal(gap)))
    total: Enclosure | None = None
    corners = []
    for corner in product((0, 1), repeat=len(places)):
        at = tuple(
            np.minimum(cell + upper, len(place.knots) - 1)
            for place, cell, upper in zip(places, cells, corner, strict=True)
        )
        weight = Enclosure(iv.exact(values[(rows, *at)]))
        corners.append(weight.value[0])
        for share, upper in zip(shares, corner, strict=True):
            weight = weight.multiply(share if upper else Enclosure(iv.exact(1.0)) - share, order)
        total = weight if total is None else total + weight
    assert total is not None
    return total, (np.minimum.reduce(corners), np.maximum.reduce(corners))


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
