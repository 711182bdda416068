"""Enclosures: what a formula and its derivatives can be anywhere in a box, for many boxes at once.

An :class:`Enclosure` holds intervals for the value, the gradient and the Hessian of a function over boxes; the rules by
which they pass through sums, products and functions stand here, those of each function in
:mod:`osilp_pyomo.index.nodes`.

Kinks and jumps have no Hessian. There a function is split into a smooth *base* and a *rest*: ``max(a, b) = share a + (1
- share) b + rest`` with a share that may be chosen, and a rest of one sign. Where a slope counts (is the function
monotone?) both sides do, also in a box that only touches the kink: of two neighbours that meet at a ridge each would
otherwise leave it to the other. Of a condition that both holds and fails in a box one side can be *taken*; whoever
takes it looks at that part of the box only, where the condition's own functions are at most zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.intervals import Interval, Map

Gradient = dict[int, Interval]
Hessian = dict[tuple[int, int], Interval]
# A kink or a condition: its group of terms, and its place there.
Key = tuple[int, int]

# Sides of a condition that a box may be confined to.
OPEN, HOLDS, FAILS = 0, 1, 2


class NoEnclosureError(Exception):
    """A part of a formula has values that nothing is known of, such as a curve that is a Python function."""


def _sum(a: Interval | None, b: Interval | None) -> Interval | None:
    return b if a is None else a if b is None else iv.add(a, b)


def _scaled(factor: Interval, entries: Mapping[Any, Interval]) -> dict[Any, Interval]:
    return {key: iv.multiply(factor, each) for key, each in entries.items()}


def _merged(a: Mapping[Any, Interval], b: Mapping[Any, Interval]) -> dict[Any, Interval]:
    result = dict(a)
    for key, each in b.items():
        result[key] = iv.add(result[key], each) if key in result else each
    return result


@dataclass
class Opening:
    """How kinks and conditions of a formula are opened over boxes, and what was met of them.

    Kinks and conditions are counted in the order in which they are met in a group of terms, the same each time.

    Parameters
    ----------
    dimension, order : int
        Number of coordinates, and of the derivatives that are wanted: 0, 1 or 2.
    tilts : dict
        For a kink of ``max(a, b)`` the share (boxes) of a in its base ``share a + (1 - share) b``; where none is given,
        all of the function that is larger in most of the box.
    taken : array (conditions, boxes)
        Which side of each condition is taken.
    replay : Opening, optional
        Shares and sides as another opening chose them: for the base of a function at points of the same boxes.
    numbering : dict
        The number of each condition that may be taken; the same condition in several terms has one number.
    """

    dimension: int
    order: int = 2
    tilts: dict[Key, FloatArray] = field(default_factory=dict)
    taken: IntArray | None = None
    replay: Opening | None = None
    numbering: Mapping[Key, int] = field(default_factory=dict)
    straddled: dict[Key, bool] = field(default_factory=dict)
    shares: list[FloatArray] = field(default_factory=list)
    conditions: dict[int, Condition] = field(default_factory=dict)
    choices: list[Any] = field(default_factory=list)
    #: Whether neither kinks nor conditions nor curves were met.
    smooth: bool = True
    _place: tuple[int, int, int] = (0, 0, 0)

    def begin(self, group: int) -> None:
        """Begin with the terms of a group, or with further columns of it: kinks are counted from the first again."""
        self._place = group, 0, 0

    def share_at(self, w: Interval) -> FloatArray:
        """The share with which a function enters the base of ``max(a, b)``, where a - b lies in w."""
        group, kinks, conditions = self._place
        key, self._place = (group, kinks), (group, kinks + 1, conditions)
        if self.replay is not None:
            share = self.replay.shares[len(self.shares)]
        else:
            straddles = (w[0] < 0) & (w[1] > 0)
            share = np.where(w[1] >= -w[0], 1.0, 0.0)
            if key in self.tilts:
                share = np.where(straddles, self.tilts[key], share)
            self.straddled[key] = self.straddled.get(key, False) or bool(straddles.any())
        self.smooth = False
        self.shares.append(share)
        return share

    def known_sides(self, condition: Condition) -> tuple[BoolArray, BoolArray]:
        """Where a condition holds and where it fails: by itself, or because that side was taken.

        A condition with an answer for each column cannot be taken.
        """
        group, kinks, conditions = self._place
        key, self._place = (group, conditions), (group, kinks, conditions + 1)
        number = self.numbering.get(key)
        self.smooth = False
        if number is None or condition.holds.shape[0] > 1:
            return condition.holds, condition.fails
        self.conditions[number] = condition
        if self.taken is None or number >= len(self.taken):
            return condition.holds, condition.fails
        taken = self.taken[number][None]
        # A side that was taken is looked at alone, also where the other one is certain.
        holds = (taken == HOLDS) | (condition.holds & (taken == OPEN))
        fails = (taken == FAILS) | (condition.fails & (taken == OPEN))
        return holds, fails

    def recorded(self, choice: Any) -> Any:
        """A choice of the base, such as which of two functions it is: the same as in the opening that is replayed."""
        if self.replay is not None:
            choice = self.replay.choices[len(self.choices)]
        self.smooth = False
        self.choices.append(choice)
        return choice


@dataclass(frozen=True, eq=False)
class Condition:
    """What is known of a condition over boxes: where it holds all over the box, where it fails all over it.

    ``when`` are functions that are all at most zero where it holds, ``unless`` such where it fails; None where
    there are none.
    """

    holds: BoolArray
    fails: BoolArray
    when: tuple[Enclosure, ...] | None = None
    unless: tuple[Enclosure, ...] | None = None

    def negated(self) -> Condition:
        """Its contrary."""
        return Condition(self.fails, self.holds, self.unless, self.when)


def all_of(parts: Sequence[Condition]) -> Condition:
    """That all of some conditions hold."""
    holds, fails = parts[0].holds, parts[0].fails
    for part in parts[1:]:
        holds, fails = holds & part.holds, fails | part.fails
    known = [each for part in parts for each in part.when or ()]
    return Condition(holds, fails, tuple(known) or None, parts[0].unless if len(parts) == 1 else None)


class Enclosure:
    """Intervals for a function over boxes, each an array that broadcasts to (columns, boxes).

    ``value`` and ``slopes`` are those of the function; ``base``, ``base_slopes`` and ``bends`` those of its smooth
    base, and ``rest`` what it has more than that, None where there is nothing. Derivatives that are zero are left out.
    """

    __slots__ = ("base", "base_slopes", "bends", "rest", "slopes", "value")

    def __init__(
        self,
        value: Interval,
        slopes: Gradient | None = None,
        bends: Hessian | None = None,
        rest: Interval | None = None,
        base: Interval | None = None,
        base_slopes: Gradient | None = None,
    ) -> None:
        self.value = value
        self.slopes: Gradient = slopes or {}
        self.bends: Hessian = bends or {}
        self.rest = rest
        self.base = value if base is None else base
        self.base_slopes: Gradient = self.slopes if base_slopes is None else base_slopes

    @property
    def constant(self) -> bool:
        """Whether it is the same all over a box."""
        return not self.slopes and self.rest is None

    def __add__(self, other: Enclosure) -> Enclosure:
        value, slopes = iv.add(self.value, other.value), _merged(self.slopes, other.slopes)
        bends = _merged(self.bends, other.bends)
        if self.rest is None and other.rest is None:
            return Enclosure(value, slopes, bends)
        return Enclosure(
            value,
            slopes,
            bends,
            _sum(self.rest, other.rest),
            iv.add(self.base, other.base),
            _merged(self.base_slopes, other.base_slopes),
        )

    def __neg__(self) -> Enclosure:
        return self._linear(iv.negative)

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + (-other)

    def times(self, factor: Interval) -> Enclosure:
        """Times something that is the same all over a box."""
        return self._linear(lambda each: iv.multiply(factor, each))

    def over(self, divisor: Interval) -> Enclosure:
        """Divided by something that is the same all over a box."""
        return self._linear(lambda each: iv.divide(each, divisor))

    def _linear(self, linear: Map) -> Enclosure:
        """A linear function of it."""

        def mapped(entries: Mapping[Any, Interval]) -> dict[Any, Interval]:
            return {key: linear(each) for key, each in entries.items()}

        value, slopes, bends = linear(self.value), mapped(self.slopes), mapped(self.bends)
        if self.rest is None:
            return Enclosure(value, slopes, bends)
        return Enclosure(value, slopes, bends, linear(self.rest), linear(self.base), mapped(self.base_slopes))

    def multiply(self, other: Enclosure, order: int) -> Enclosure:
        """Product, by the rule of Leibniz."""
        if self.constant:
            return other.times(self.value)
        if other.constant:
            return self.times(other.value)
        value = iv.multiply(self.value, other.value)
        slopes: Gradient = {}
        if order >= 1:
            slopes = _merged(_scaled(other.value, self.slopes), _scaled(self.value, other.slopes))
        kinked = self.rest is not None or other.rest is not None
        base = base_slopes = rest = None
        if kinked:
            base = iv.multiply(self.base, other.base)
            if order >= 1:
                base_slopes = _merged(_scaled(other.base, self.base_slopes), _scaled(self.base, other.base_slopes))
            if other.rest is not None:
                rest = iv.multiply(self.base, other.rest)
            if self.rest is not None:
                rest = _sum(rest, iv.multiply(other.value, self.rest))
        bends: Hessian = {}
        if order >= 2:
            bends = _merged(_scaled(other.base, self.bends), _scaled(self.base, other.bends))
            mixed: Hessian = {}
            for i, one in self.base_slopes.items():
                for j, two in other.base_slopes.items():
                    key = (min(i, j), max(i, j))
                    term = iv.multiply(one, two)
                    if i == j:
                        term = (2 * term[0], 2 * term[1])
                    mixed[key] = iv.add(mixed[key], term) if key in mixed else term
            bends = _merged(bends, mixed)
        return Enclosure(value, slopes, bends, rest, base, base_slopes if kinked else None)

    def through(self, function: Map, slope: Map, bend: Map, order: int) -> Enclosure:
        """A function of it, by the chain rule; ``slope`` and ``bend`` enclose its first and second derivative."""
        value = function(self.value)
        if self.constant:
            return Enclosure(value)
        slopes: Gradient = {}
        base = base_slopes = rest = steep = None
        if order >= 1:
            # The exponential is its own derivative.
            steep = value if slope is function else slope(self.value)
            slopes = _scaled(steep, self.slopes)
        if self.rest is not None:
            base = function(self.base)
            # f(base + rest) - f(base) is the slope at some place between both, times the rest.
            rest = iv.multiply(slope(iv.hull(self.base, self.value)), self.rest)
            if order >= 1:
                steep = slope(self.base)
                base_slopes = _scaled(steep, self.base_slopes)
        bends: Hessian = {}
        if order >= 2 and steep is not None:
            bends = _scaled(steep, self.bends)
            bent = steep if bend is slope else bend(self.base)
            for (i, one), (j, two) in combinations_with_replacement(sorted(self.base_slopes.items()), 2):
                term = iv.multiply(bent, iv.square(one) if i == j else iv.multiply(one, two))
                bends[i, j] = iv.add(bends[i, j], term) if (i, j) in bends else term
        pole = ~(np.isfinite(value[0]) & np.isfinite(value[1]))
        if pole.any():
            # Behind a pole a function goes on elsewhere, whatever its slope says.
            slopes, bends = _unknown(slopes, pole), _unknown(bends, pole)
            base_slopes = None if base_slopes is None else _unknown(base_slopes, pole)
            rest = None if rest is None else iv.choose(pole, iv.EVERYTHING, rest)
        return Enclosure(value, slopes, bends, rest, base, base_slopes)

    def absolute(self, opening: Opening) -> Enclosure:
        """Its absolute value: the larger of itself and its negative."""
        w = self.value
        if self.constant:
            return Enclosure(iv.absolute(w))
        share = opening.share_at(w)
        tilt = iv.exact(2 * share - 1)
        inside = ~((w[0] > 0) | (w[1] < 0))
        sides = (np.where(inside, -1.0, tilt[0]), np.where(inside, 1.0, tilt[0]))
        return Enclosure(
            iv.absolute(w),
            _scaled(sides, self.slopes),
            _scaled(tilt, self.bends),
            _sum(None if self.rest is None else iv.multiply(tilt, self.rest), _more(share, (2 * w[0], 2 * w[1]))),
            iv.multiply(tilt, self.base),
            _scaled(tilt, self.base_slopes),
        )

    def larger(self, other: Enclosure, opening: Opening) -> Enclosure:
        """The larger of two functions."""
        value = np.maximum(self.value[0], other.value[0]), np.maximum(self.value[1], other.value[1])
        if self.constant and other.constant:
            return Enclosure(value)
        w = iv.subtract(self.value, other.value)
        share = opening.share_at(w)
        one, two = iv.exact(share), iv.exact(1 - share)
        inside = ~((w[0] > 0) | (w[1] < 0))
        zero = iv.exact(0.0)

        def hulls(a: Gradient, b: Gradient) -> Gradient:
            pairs = {axis: (a.get(axis, zero), b.get(axis, zero)) for axis in a.keys() | b.keys()}
            return {axis: iv.choose(inside, iv.hull(*pair), iv.choose(w[0] > 0, *pair)) for axis, pair in pairs.items()}

        def blend(a: Interval | None, b: Interval | None) -> Interval | None:
            return _sum(None if a is None else iv.multiply(one, a), None if b is None else iv.multiply(two, b))

        def blends(a: Mapping[Any, Interval], b: Mapping[Any, Interval]) -> dict[Any, Interval]:
            return {key: blend(a.get(key), b.get(key)) or zero for key in a.keys() | b.keys()}

        return Enclosure(
            value,
            hulls(self.slopes, other.slopes),
            blends(self.bends, other.bends),
            _sum(blend(self.rest, other.rest), _more(share, w)),
            blend(self.base, other.base),
            blends(self.base_slopes, other.base_slopes),
        )

    def given(self, condition: Condition, other: Enclosure, opening: Opening) -> Enclosure:
        """The function itself where a condition holds, another one where it fails."""
        yes, no = opening.known_sides(condition)
        zero = iv.exact(0.0)
        decided = bool((yes | no).all())

        def pick(a: Interval, b: Interval, unknown: Interval) -> Interval:
            return iv.choose(yes, a, b if decided else iv.choose(no, b, unknown))

        value = pick(self.value, other.value, self.value if decided else iv.hull(self.value, other.value))
        jumps = [] if decided else range(opening.dimension)
        axes = dict.fromkeys([*self.slopes, *other.slopes, *jumps])
        slopes = {axis: pick(self.slopes.get(axis, zero), other.slopes.get(axis, zero), iv.EVERYTHING) for axis in axes}
        # Where it is not known which of both it is, the base is the first, and the rest all that may be missing.
        first = opening.recorded(yes | ~no)

        def one_of(a: Mapping[Any, Interval], b: Mapping[Any, Interval]) -> dict[Any, Interval]:
            return {key: iv.choose(first, a.get(key, zero), b.get(key, zero)) for key in a.keys() | b.keys()}

        base = iv.choose(first, self.base, other.base)
        return Enclosure(
            value,
            slopes,
            one_of(self.bends, other.bends),
            pick(self.rest or zero, other.rest or zero, iv.subtract(value, base)),
            base,
            one_of(self.base_slopes, other.base_slopes),
        )

    def stepped(self, function: Map, opening: Opening) -> Enclosure:
        """A step function of it, such as floor: no slope where it stays on one step."""
        value = function(self.value)
        if self.constant:
            return Enclosure(value)
        jump = ~(value[0] == value[1])
        axes = range(opening.dimension)
        slopes = {axis: (np.where(jump, -np.inf, 0.0), np.where(jump, np.inf, 0.0)) for axis in axes}
        level = opening.recorded(value[0])
        return Enclosure(value, slopes, {}, iv.subtract(value, iv.exact(level)), (level, level), {})


def _unknown(entries: Mapping[Any, Interval], where: BoolArray) -> dict[Any, Interval]:
    """Derivatives of which nothing is known in some boxes."""
    return {key: iv.choose(where, iv.EVERYTHING, each) for key, each in entries.items()}


def _more(share: FloatArray, w: Interval) -> Interval:
    """What max(a, b) has more than ``share a + (1 - share) b``, where a - b lies in w: never less than nothing."""
    high = np.maximum(
        np.where(share < 1, (1 - share) * np.maximum(w[1], 0.0), 0.0),
        np.where(share > 0, share * np.maximum(-w[0], 0.0), 0.0),
    )
    return np.zeros_like(high), iv.moved(high, high)[1]


def coordinates(low: FloatArray, high: FloatArray) -> list[Enclosure]:
    """The coordinates themselves over boxes with ends (d, n); exact numbers where both ends are the same array."""
    one = iv.exact(1.0)
    if low is high:
        return [Enclosure(iv.exact(low[axis : axis + 1]), {axis: one}) for axis in range(len(low))]
    return [Enclosure((low[axis : axis + 1], high[axis : axis + 1]), {axis: one}) for axis in range(len(low))]
