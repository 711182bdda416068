"""Where the columns of arrivals step: columns that are piecewise constant along an interval, such as bookings.

A condition that is affine in the index, or becomes so where another one switches, switches once, and a secant tells
where up to rounding. The numbers around that place are tried one by one, and enclosures prove that the column is
constant everywhere else. A column for which that fails is cut in two until it is constant; what is left open then, a
few roundings wide, counts with the most that it can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.enclosures.enclosure import Enclosure, NoEnclosureError, Opening, coordinates
from osilp_pyomo.offline.rows import Kernel
from osilp_pyomo.offline.search.sweep import FLAT
from osilp_pyomo.online.stages.template import Arrivals, Term

# Numbers that are tried on each side of a switch.
_TRIED = 8
# Switches of which each is looked for between any two of the others.
_FEW = 3
# Intervals that are looked at for one arrival at most, and how long those may be together that are left open then,
# relative to the largest number of the index.
_MOST_CUT, _OPEN = 4_000, 1e-9
# Numbers below this share of those of the index are zero to anybody.
_NEXT_TO_ZERO = 1e-250
# Conditions of one formula that are looked for in this way.
MOST_SWITCHES = 16


@dataclass(frozen=True, eq=False)
class Steps:
    """Columns of B arrivals as steps: ``values[b, j]`` from ``places[b, j - 1]`` on, up to the next place.

    ``places`` (B, k) hold the first number behind each step in their order, infinity where there are fewer;
    ``values`` are (B, k + 1).
    """

    places: FloatArray
    values: FloatArray

    def part(self, at: slice | BoolArray) -> Steps:
        """Those of some arrivals."""
        return Steps(self.places[at], self.values[at])

    def at(self, points: FloatArray) -> FloatArray:
        """Values (B, m) at points (m,) in their order."""
        count = len(self.places)
        first = np.searchsorted(points, self.places)
        ends = np.concatenate([np.zeros((count, 1), dtype=np.int64), first, np.full((count, 1), len(points))], axis=1)
        return np.repeat(self.values.ravel(), np.diff(ends, axis=1).ravel()).reshape(count, len(points))


def find_steps(term: Term, arrivals: Arrivals, low: float, high: float, sign: int = 1) -> Steps:
    """Where the columns of a term step between two numbers, and their values.

    Where a few numbers are left open, the values times the ``sign`` are not below what they are.

    Raises
    ------
    NoEnclosureError
        A column has too many steps.
    """
    with np.errstate(all="ignore"):
        samples, proved = _tried(term, arrivals, low, high)
        values = _at(term, arrivals, samples)
    changed = values[:, 1:] != values[:, :-1]
    apart = samples[:, 1:] > np.nextafter(samples[:, :-1], np.inf)
    found = proved & ~np.any(changed & apart, axis=1) & np.isfinite(values).all(axis=1)
    steps = _gathered(samples, values, changed)
    lost = np.flatnonzero(~found)
    if not len(lost):
        return steps
    return _replaced(steps, lost, _steps_by_cutting(term, arrivals.take(lost), low, high, sign))


def _tried(term: Term, arrivals: Arrivals, low: float, high: float) -> tuple[FloatArray, BoolArray]:
    """Numbers around the switches of each arrival in their order, ends included; and whether it is flat elsewhere."""
    slots, count = arrivals.filled(term.slots), len(arrivals)
    ends = np.array([[low, high]])
    start, stop = np.full(count, low), np.full(count, high)
    roots = [_root(switch, slots, start, stop) for switch in term.switches]
    if 1 < len(roots) <= _FEW:
        # A condition on an absolute value switches once on each side of where that has its kink.
        cuts = np.sort(np.stack([start, *roots, stop], axis=1), axis=1)
        roots += [
            _root(switch, slots, cuts[:, k], cuts[:, k + 1])
            for switch in term.switches
            for k in range(cuts.shape[1] - 1)
        ]
    centre = np.sort(np.stack(roots, axis=1), axis=1) if roots else np.full((count, 1), low)
    around = np.clip(_neighbours(centre), low, high)
    left = np.concatenate([np.full((count, 1), low), around[:, :, -1]], axis=1)
    right = np.concatenate([around[:, :, 0], np.full((count, 1), high)], axis=1)
    # Where the numbers of two switches overlap there is nothing between them.
    right = np.maximum(left, right)
    proved = _is_flat(term, arrivals, left, right)
    samples = np.concatenate([np.broadcast_to(ends, (count, 2)), around.reshape(count, -1)], axis=1)
    return np.sort(samples, axis=1), proved


def _neighbours(centre: FloatArray) -> FloatArray:
    """So many numbers (..., n) on each side of others, and those themselves, in their order."""
    above: list[FloatArray] = [centre]
    below: list[FloatArray] = []
    for _ in range(_TRIED):
        above.append(np.nextafter(above[-1], np.inf))
        below.append(np.nextafter(below[-1] if below else centre, -np.inf))
    return np.stack([*below[::-1], *above], axis=-1)


def _root(switch: Kernel, slots: list[Any], left: FloatArray, right: FloatArray) -> FloatArray:
    """Where a function of the index would be zero if it were affine between two numbers (B,); their left one else."""

    def value(at: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(switch(slots, [at[:, None]]), dtype=float), (len(at), 1))[:, 0]

    first, last = value(left), value(right)
    slope = (last - first) / (right - left)
    root = left - first / slope
    # Once more from there, for what rounding has lost on the way.
    root = root - value(np.clip(root, left, right)) / slope
    return np.where((root >= left) & (root <= right), root, left)


def _is_flat(term: Term, arrivals: Arrivals, left: FloatArray, right: FloatArray) -> BoolArray:
    """For which arrivals a column is constant on each of its intervals (B, n)."""
    repeated = arrivals.take(np.repeat(np.arange(len(arrivals)), left.shape[1]))
    _, flat = _enclosed(term, repeated, left.ravel(), right.ravel())
    return np.asarray(flat.reshape(left.shape).all(axis=1))


def _enclosed(term: Term, arrivals: Arrivals, left: FloatArray, right: FloatArray) -> tuple[FloatArray, BoolArray]:
    """What each arrival's column can be on an interval of its own, lower ends first, and whether it is constant."""
    if term.formula is None:
        raise NoEnclosureError("it is called at points, not traced")
    slots = [slot.reshape(1, -1) for slot in arrivals.filled(term.slots)]
    found = term.formula.enclose(slots, coordinates(left[None], right[None]), Opening(1, 1))
    if not isinstance(found, Enclosure):
        raise NoEnclosureError("a condition stands where a number is expected")
    flat = np.ones((1, len(left)), dtype=bool)
    for down, up in found.slopes.values():
        flat &= (down >= -FLAT) & (up <= FLAT)
    return np.stack([np.broadcast_to(end, (1, len(left)))[0] for end in found.value]), flat[0]


def _at(term: Term, arrivals: Arrivals, places: FloatArray) -> FloatArray:
    """Values of the columns (B, m), each at its own places."""
    values = np.asarray(term.values(arrivals, [places]), dtype=float)
    return np.broadcast_to(values, places.shape)


def _gathered(samples: FloatArray, values: FloatArray, changed: BoolArray) -> Steps:
    """Steps from values at numbers in their order, and where those change."""
    count = changed.sum(axis=1)
    arrival, place = np.nonzero(changed)
    number = np.arange(len(arrival)) - np.repeat(np.cumsum(count) - count, count)
    places = np.full((len(samples), int(count.max(initial=0))), np.inf)
    result = np.repeat(values[:, :1], places.shape[1] + 1, axis=1)
    places[arrival, number] = samples[arrival, place + 1]
    result[arrival, number + 1] = values[arrival, place + 1]
    return Steps(places, result)


def _steps_by_cutting(term: Term, arrivals: Arrivals, low: float, high: float, sign: int) -> Steps:
    """Steps of columns, by cutting intervals in two until the column is constant on them.

    Near zero there are more numbers than can be tried: what is left open after so many cuts counts by its enclosure.
    """
    count = len(arrivals)
    arrival, left, right = np.arange(count), np.full(count, low), np.full(count, high)
    known: list[tuple[IntArray, FloatArray, FloatArray]] = []
    looked = 0
    while len(arrival):
        looked += len(arrival)
        some = arrivals.take(arrival)
        with np.errstate(all="ignore"):
            value, flat = _enclosed(term, some, left, right)
            known.append((arrival[flat], left[flat], _at(term, some, left[:, None])[:, 0][flat]))
        arrival, left, right, value = arrival[~flat], left[~flat], right[~flat], value[:, ~flat]
        middle = left + (right - left) / 2
        between = (middle > left) & (middle < right)
        # Of two neighbouring numbers each has its own value.
        alone = arrivals.take(arrival[~between])
        for at in (left, right):
            known.append((arrival[~between], at[~between], _at(term, alone, at[~between][:, None])[:, 0]))
        arrival, left, middle, right = arrival[between], left[between], middle[between], right[between]
        if looked > _MOST_CUT * count:
            if np.any(np.bincount(arrival, weights=right - left) > _OPEN * max(abs(low), abs(high))):
                raise NoEnclosureError("its conditions switch too often")
            some = arrivals.take(arrival)
            top = value[1 if sign > 0 else 0, between]
            # Numbers this near to zero are no others than zero to anybody, and what is next to them decides.
            outer = np.where(np.abs(left) > np.abs(right), left, right)
            nothing = np.abs(outer) <= _NEXT_TO_ZERO * max(abs(low), abs(high))
            top = np.where(nothing, _at(term, some, outer[:, None])[:, 0], top)
            known.append((arrival, left, _at(term, some, left[:, None])[:, 0]))
            known.append((arrival, np.nextafter(left, np.inf), top))
            break
        arrival = np.concatenate([arrival, arrival])
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    arrival, place, values = (np.concatenate(each) for each in zip(*known, strict=True))
    if not np.all(np.isfinite(values)):
        raise NoEnclosureError("it has no value at some points")
    return _of_intervals(count, arrival, place, values, sign)


def _of_intervals(count: int, arrival: IntArray, place: FloatArray, values: FloatArray, sign: int) -> Steps:
    """Steps from where intervals with a value begin; of several that begin at one place the most counts."""
    order = np.lexsort((-sign * values, place, arrival))
    arrival, place, values = arrival[order], place[order], values[order]
    first = np.ones(len(arrival), dtype=bool)
    first[1:] = (np.diff(arrival) != 0) | (np.diff(place) != 0)
    arrival, place, values = arrival[first], place[first], values[first]
    begins = np.ones(len(arrival), dtype=bool)
    begins[1:] = np.diff(arrival) != 0
    changed = begins.copy()
    changed[1:] |= values[1:] != values[:-1]
    arrival, place, values, begins = arrival[changed], place[changed], values[changed], begins[changed]
    number = np.arange(len(arrival)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    most = int(number.max(initial=0))
    places, result = np.full((count, most), np.inf), np.empty((count, most + 1))
    result[:] = values[begins][:, None]
    result[arrival, number] = values
    places[arrival[~begins], number[~begins] - 1] = place[~begins]
    return Steps(places, result)


def _replaced(steps: Steps, lost: IntArray, found: Steps) -> Steps:
    """The same with the steps of some arrivals in place of theirs."""
    most = max(steps.places.shape[1], found.places.shape[1])

    def wide(part: Steps) -> Steps:
        more = most - part.places.shape[1]
        return Steps(
            np.pad(part.places, ((0, 0), (0, more)), constant_values=np.inf), np.pad(part.values, ((0, 0), (0, more)))
        )

    result, new = wide(steps), wide(found)
    result.places[lost], result.values[lost] = new.places, new.values
    return result
