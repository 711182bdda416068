"""Exact separation oracle for rows that are piecewise constant along one index, such as bookings.

Every coefficient is a sum of steps. Where each of them steps is found once, by enclosures: an interval on which a
coefficient is not proved to be constant is cut in two until its ends are neighbouring numbers, so that no step is
missed, however short it is. For any x the row is then a running sum over the sorted steps, and its largest excess is
read off. Steps are as many as conditions in the row's terms: time and memory grow with their number, and not with
columns times points.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError, Opening, coordinates
from osilp_pyomo.lp.finite import RowBlock, excess_of, violation_scale
from osilp_pyomo.offline.problem import SCALE_FLOOR, Family, examples_at
from osilp_pyomo.offline.roundings import USUAL, width_beside
from osilp_pyomo.offline.rows import TermGroup, TracedRows
from osilp_pyomo.offline.search.scan import Search, Violations, local_maxima

# Peaks that are told at most.
_PEAKS = 512
# Values of limits that are computed one by one.
_CALLED = 2_000_000
# Intervals that are looked at together, and in all for each column: a condition with more switches than this is left to
# other searches.
_BLOCK, _MOST = 2**16, 2_000
# What the rounding of a slope of zero can be.
FLAT = 1e-250


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of some terms: the term, the first number behind the step, and the values before and behind it.

    ``start`` are the values of all terms at the lower end of the index, ``lost`` is what rounding may make of each term
    anywhere, beyond the usual share of its value: between two steps, where it is the rest of larger terms, and at a
    step, where the side that it is on is not decided right beside it.
    """

    term: IntArray
    place: FloatArray
    before: FloatArray
    behind: FloatArray
    start: FloatArray
    lost: FloatArray

    def absolute(self) -> _Steps:
        """The steps of the absolute values."""
        return replace(self, before=np.abs(self.before), behind=np.abs(self.behind), start=np.abs(self.start))


class SweepSearch(Search):
    """Separation over every point of an interval, for one family of piecewise constant rows."""

    separation = "sweep"

    def __init__(self, family: Family, steps: Sequence[_Steps | None], number: int = 0) -> None:
        self.families = (family,)
        self.numbers = np.array([number])
        body, lower, upper = steps
        assert body is not None
        places = [part.place for part in (body, lower, upper) if part is not None]
        self.places = np.unique(np.concatenate([family.domain.lower, *places]))
        self._body = body
        # Places behind the sorted steps of each part.
        self._order, self._last = _sorted(body, self.places)
        self._limit_margin = max((float(part.lost.sum()) for part in (lower, upper) if part is not None), default=0.0)
        self.lower, self.upper = (
            np.full(len(self.places), none) if part is None else self._limits(part, at)
            for part, none, at in ((lower, -np.inf, 0), (upper, np.inf, 1))
        )
        self._limit_size = sum(
            (_summed(part.absolute(), np.ones(len(part.start)), self.places) for part in (lower, upper) if part),
            np.zeros(len(self.places)),
        )
        self.neighbours = np.stack([np.arange(len(self.places)) - 1, np.arange(len(self.places)) + 1], axis=1).clip(
            0, len(self.places) - 1
        )

    def _limits(self, part: _Steps, side: int) -> FloatArray:
        """A limit at every place: by its own formulas, or where they are many as the sum of its steps."""
        if len(part.start) * len(self.places) <= _CALLED:
            return np.array(self.families[0].limits(self.places[:, None])[side])
        moved = float(np.abs(part.behind - part.before).sum() + np.abs(part.start).sum())
        self._limit_margin += (len(part.term) + len(part.start)) * 2.0**-52 * moved
        return _summed(part, np.ones(len(part.start)), self.places)

    def worst(self, x: FloatArray) -> Violations:
        weights = x[self._columns]
        activity = self._running(weights, self._body.before, self._body.behind, self._body.start)
        size = self._running(
            np.abs(weights), np.abs(self._body.before), np.abs(self._body.behind), np.abs(self._body.start)
        )
        excess = excess_of(activity, self.lower, self.upper)
        moved = np.abs(weights)[self._body.term] @ np.abs(self._body.behind - self._body.before)
        self.margin = self._limit_margin + (len(self._body.term) + len(weights)) * 2.0**-52 * float(moved + size[0])
        self.margin += float(np.abs(weights)[weights != 0] @ self._body.lost[weights != 0])
        if np.isfinite(excess.max()):
            self.margin += float((excess + USUAL * (size + self._limit_size)).max() - excess.max())
        scale = violation_scale(activity, size, self.lower, self.upper)
        typical = float(np.median(scale))
        peaks = local_maxima(excess, self.neighbours)[:_PEAKS]
        members = np.zeros(len(peaks), dtype=np.int64)
        return Violations(
            self.places[peaks, None], excess[peaks], np.maximum(scale[peaks], SCALE_FLOOR * typical), typical, members
        )

    @property
    def _columns(self) -> IntArray:
        rows = self.families[0].rows
        assert isinstance(rows, TracedRows)
        return np.concatenate([np.empty(0, dtype=np.int64), *(group.columns for group in rows.groups)])

    def _running(self, weights: FloatArray, before: FloatArray, behind: FloatArray, start: FloatArray) -> FloatArray:
        """The weighted sum of all terms at every place."""
        steps = (weights[self._body.term] * (behind - before))[self._order]
        total = np.concatenate([[0.0], np.cumsum(steps)])
        return float(weights @ start) + total[self._last]

    def distinct(self, points: FloatArray) -> IntArray:
        """Peaks in a row of equal ones say the same; each of the others says something else."""
        return np.arange(len(points))

    def rows(self, members: IntArray, points: FloatArray) -> RowBlock:
        return self.families[0].block(points)

    def beginning(self) -> tuple[IntArray, FloatArray]:
        chosen = self.places[np.unique(np.linspace(0, len(self.places) - 1, 16).astype(int))]
        return np.zeros(len(chosen), dtype=np.int64), chosen[:, None]

    def examples(self, most: int) -> tuple[IntArray, RowBlock]:
        return examples_at(self.families[0], self.places[:, None], most)

    def on_families(self, families: Sequence[Family]) -> Self:
        other = copy.copy(self)
        other.families = (families[int(self.numbers[0])],)
        other.lower, other.upper = other.families[0].limits(self.places[:, None])
        return other

    @property
    def memory(self) -> int:
        return int(sum(part.nbytes for part in vars(self._body).values()) + 4 * self.places.nbytes)


def sweep_for(family: Family, number: int) -> SweepSearch | None:
    """A sweep where a family's rows are piecewise constant along one index; else None."""
    rows, domain = family.rows, family.domain
    if domain.dimension > 1 or not domain.bounded or domain.inside is not None:
        return None
    if not isinstance(rows, TracedRows) or not rows.stepped:
        return None
    parts = (rows.groups, rows.lower, rows.upper)
    try:
        found = [None if part is None else _steps_of(part, domain.lower[0], domain.upper[0]) for part in parts]
    except NoEnclosureError:
        return None
    return SweepSearch(family, found, number)


def _steps_of(groups: Sequence[TermGroup], low: float, high: float) -> _Steps:
    """All steps of some groups between two numbers."""
    terms, places, before, behind, start, lost = [], [], [], [], [np.empty(0)], [np.empty(0)]
    first = 0
    for group in groups:
        count = len(group.columns)
        term, left, right, rounding = _jumps(group, low, high)
        lost.append(rounding)
        one, other = (_values(group, term, at) for at in (left, right))
        real = one != other
        terms.append(first + term[real])
        places.append(right[real])
        before.append(one[real])
        behind.append(other[real])
        start.append(_values(group, np.arange(count), np.full(count, low)))
        if not _add_up(group, start[-1], term[real], one[real], other[real], high):
            raise NoEnclosureError("its steps could not all be found")
        first += count
    numbers = [np.empty(0)]
    return _Steps(
        np.concatenate([np.empty(0, dtype=np.int64), *terms]),
        np.concatenate(numbers + places),
        np.concatenate(numbers + before),
        np.concatenate(numbers + behind),
        np.concatenate(start),
        np.concatenate(lost),
    )


def _add_up(
    group: TermGroup, start: FloatArray, term: IntArray, before: FloatArray, behind: FloatArray, high: float
) -> bool:
    """Whether the steps of each term lead from its first value to its last one."""
    total = start + np.bincount(term, weights=behind - before, minlength=len(start))
    size = np.abs(start) + np.bincount(term, weights=np.abs(before) + np.abs(behind), minlength=len(start))
    end = _values(group, np.arange(len(start)), np.full(len(start), high))
    return bool(np.all(np.abs(total - end) <= 1e-9 * (size + np.abs(end))))


def _jumps(group: TermGroup, low: float, high: float) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Neighbouring numbers between which terms of a group may step: the term, and the numbers on both sides.

    The last is what rounding may make of each term.
    """
    count = len(group.columns)
    term, left, right = np.arange(count), np.full(count, low), np.full(count, high)
    found: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []
    lost = np.zeros(count)
    looked = 0
    while len(term):
        looked += len(term)
        if looked > _MOST * count + 100_000:
            raise NoEnclosureError("its conditions switch too often")
        looks = [
            _not_constant(group, term[k : k + _BLOCK], left[k : k + _BLOCK], right[k : k + _BLOCK])
            for k in range(0, len(term), _BLOCK)
        ]
        open_now, range_now, usual = (np.concatenate(each) for each in zip(*looks, strict=True))
        np.maximum.at(lost, term[~open_now & ~usual], range_now[~open_now & ~usual])
        term, left, right, range_now = term[open_now], left[open_now], right[open_now], range_now[open_now]
        middle = left + (right - left) / 2
        done = (middle <= left) | (middle >= right)
        found.append((term[done], left[done], right[done], range_now[done]))
        term, left, middle, right = term[~done], left[~done], middle[~done], right[~done]
        term = np.concatenate([term, term])
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    term, left, right, jump = (np.concatenate(each) for each in zip(*found, strict=True))
    wide = _in_wide_stretch(term, left, right, low, high)
    np.maximum.at(lost, term[wide], jump[wide])
    return term, left, right, lost


def _in_wide_stretch(term: IntArray, left: FloatArray, right: FloatArray, low: float, high: float) -> BoolArray:
    """Neighbours in a stretch on which a condition of a term is undecided for more than some roundings of the index."""
    order = np.lexsort((left, term))
    term, left, right = term[order], left[order], right[order]
    begins = np.ones(len(term), dtype=bool)
    begins[1:] = (term[1:] != term[:-1]) | (left[1:] != right[:-1])
    stretch = np.cumsum(begins) - 1
    first = left[begins]
    last = np.full(len(first), -np.inf)
    np.maximum.at(last, stretch, right)
    allowed = width_beside(first[:, None], np.array([low]), np.array([high]))[:, 0]
    result = np.empty(len(term), dtype=bool)
    result[order] = (last - first > allowed)[stretch]
    return result


def _slots(group: TermGroup, term: IntArray) -> list[object]:
    return [slot[term][None, :] if isinstance(slot, np.ndarray) else slot for slot in group.slots]


def _not_constant(
    group: TermGroup, term: IntArray, left: FloatArray, right: FloatArray
) -> tuple[BoolArray, FloatArray, BoolArray]:
    """Where a term may have more than one value between two numbers, how far apart they are, if that is usual."""
    assert group.formula is not None
    with np.errstate(all="ignore"):
        found = group.formula.enclose(_slots(group, term), coordinates(left[None], right[None]), Opening(1, 1))
    # A term of steps has no slope where no condition is open, but for the rounding of zero, and any slope elsewhere.
    flat = np.ones((1, len(term)), dtype=bool)
    for low, high in found.slopes.values():
        flat &= (low >= -FLAT) & (high <= FLAT)
    low, high = (np.broadcast_to(end, (1, len(term)))[0] for end in found.value)
    apart = np.nan_to_num(high - low, nan=np.inf)
    return ~flat[0], apart, apart <= USUAL * np.minimum(np.abs(low), np.abs(high))


def _values(group: TermGroup, term: IntArray, at: FloatArray) -> FloatArray:
    """Values of terms, each at one number, by the row's own function."""
    with np.errstate(all="ignore"):
        values = group.kernel(_slots(group, term), [at[None, :]])
    return np.array(np.broadcast_to(np.asarray(values, dtype=float), (1, len(term)))[0])


def _sorted(steps: _Steps, places: FloatArray) -> tuple[IntArray, IntArray]:
    """The order of the steps along the index, and how many of them each place has behind it."""
    order = np.argsort(steps.place, kind="stable")
    return order, np.searchsorted(steps.place[order], places, side="right")


def _summed(steps: _Steps, weights: FloatArray, places: FloatArray) -> FloatArray:
    order, last = _sorted(steps, places)
    moves = (weights[steps.term] * (steps.behind - steps.before))[order]
    return float(weights @ steps.start) + np.concatenate([[0.0], np.cumsum(moves)])[last]
