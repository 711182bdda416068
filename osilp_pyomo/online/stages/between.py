"""What rows can be beyond the points of a guard: between two neighbouring points, by enclosed second derivatives.

Between two points h apart a column a(u) lies below its chord plus ``sup (-a'')+ h^2 / 8``, and a limit b(u) above its
chord less ``sup (b'')+ h^2 / 8``. So a guard of points keeps the whole index if each column is lifted at each point by
what the cells beside it can add, and the limits are lowered once. Where a cell holds a kink or a jump, both of its ends
are lifted to the enclosed maximum over the cell.

Let L be what is left at the points, so counted, and c what a decision uses there, lifted. What is truly left between
two points is never below the chord of L, and a use never above the chord of c. If L - c >= 0 at both ends of a cell,
nothing in it is overrun. But L may be below zero at an end: a limit near zero was lowered, a budget made smaller, or
something else was done than decided. Then the chord of L crosses zero inside, and a use that keeps both ends, none at
this one and all that is left at the other, has a chord above that of L on the way. With L0 < 0 <= L1 a use with c0 <=
0 stays below max(chord of L, 0), so that what is kept stays kept and what is overrun gets no worse, if and only if its
chord is <= 0 where that of L is zero, that is ``c1 <= c0 L1 / L0``: for c0 = 0 nothing at the other end. A guard asks
for a little more, c1 <= 0: beside a point that was overrun a point counts as overrun (``left_beside`` in
``kernels/fitting.py``). Then for any cell either both ends are kept, or the use is <= 0 on all of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.enclosures.enclosure import Enclosure, NoEnclosureError, Opening, coordinates
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.offline.rows import Kernel
from osilp_pyomo.online.stages.template import Arrivals, StageFamily, Term

# Boxes of the index over which a smooth column is enclosed. A lift is found for all data that lie in the same parts of
# their octaves, the numbers between two powers of two, and is remembered; so many parts has an octave.
_BOXES, _PARTS = 128, 128
# Numbers of lifts that are remembered, and of one chunk of enclosures.
_REMEMBERED, _CHUNK = 4_000_000, 2**15
# Data that are larger than so many widths of the index are not told apart.
_FAR = 1e150
# A lift above this share of a column is that of a peak between two points.
_PEAK = 2e-3


class Between:
    """One family between the points (M,) of its guard, which lie on an interval and have its ends among them.

    ``places`` are those points from left to right, ``order`` the number that each of them has in the guard.
    """

    def __init__(self, family: StageFamily, order: IntArray, places: FloatArray) -> None:
        self._family, self._order = family, order
        self._low, self._high = places[:-1], places[1:]
        width = self._high - self._low
        # Between neighbouring floating-point numbers there is nothing.
        self._wide = np.nextafter(self._low, np.inf) < self._high
        # What a second derivative of 1 makes of a chord's distance.
        self._bulge = np.where(self._wide, width**2 / 8, 0.0)
        edges = np.linspace(places[0], places[-1], _BOXES + 1)
        self._box = np.clip(np.searchsorted(edges, self._low, side="right") - 1, 0, _BOXES - 1)
        # A cell may reach into the next box: boxes overlap by the widest cell.
        self._edges = edges[:-1], np.minimum(edges[1:] + width.max(initial=0.0), places[-1])
        self._width = float(places[-1] - places[0])
        # For each term and sign: lifts by the parts of octaves that the data lie in; None where it is not smooth.
        self._known: dict[tuple[int, int], dict[tuple[int, ...], FloatArray | None]] = {}
        self._remembered = 0
        # The slots of a family's only term, where they are all numbers.
        self._only: tuple[int, ...] | None = None
        if len(family.terms) == 1 and all(isinstance(slot, int) for slot in family.terms[0].slots):
            self._only = tuple(slot for slot in family.terms[0].slots if isinstance(slot, int))

    def _at_points(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """What cells ask of their left and right ends (B, M - 1), as lifts of the guard's points (B, M)."""
        lifts = np.zeros((len(left), len(self._order)))
        lifts[:, self._order[:-1]] = left
        lifts[:, self._order[1:]] = np.maximum(lifts[:, self._order[1:]], right)
        return lifts

    @property
    def beside(self) -> IntArray:
        """The neighbours (2, M) of each point on its left and right; itself where there is nothing between them."""
        result = np.tile(np.arange(len(self._order)), (2, 1))
        left, right = self._order[:-1][self._wide], self._order[1:][self._wide]
        result[0, right], result[1, left] = left, right
        return result

    # -- columns -----------------------------------------------------------------------------------------

    def lifts(self, number: int, sign: int, arrivals: Arrivals) -> FloatArray:
        """What a term, by its number in the family, is to be lifted by at each point for each arrival (B, M).

        It depends on the arrival alone, so that single steps, batches and runs that were resumed count the same. It is
        not finite where a part of the formula overflows.

        Raises
        ------
        NoEnclosureError
            A curve that came with an arrival is a function of which nothing is known but its values.
        """
        most = max(1, _REMEMBERED // len(self._order))
        if len(arrivals) > most:
            parts = [arrivals.part(slice(k, k + most)) for k in range(0, len(arrivals), most)]
            return np.concatenate([self.lifts(number, sign, part) for part in parts])
        term = self._family.terms[number]
        given: list[Any] = [arrivals.values[slot] if isinstance(slot, int) else slot for slot in term.slots]
        if not all(isinstance(slot, np.ndarray) for slot in given):
            return self._by_cells(term, sign, given, len(arrivals))
        codes, which = self._codes(given, len(arrivals))
        known = self._known.setdefault((number, sign), {})
        new = [row for row in codes if row not in known]
        if new:
            if self._remembered > _REMEMBERED:
                self._known.clear()
                self._remembered = 0
                known, new = self._known.setdefault((number, sign), {}), codes
            known.update(zip(new, self._enclosed(term.formula, sign, np.array(new, dtype=np.int64)), strict=True))
            self._remembered += len(new) * len(self._order)
        rows = [known[row] for row in codes]
        if len(rows) == 1 and rows[0] is not None:
            return rows[0][None] if len(arrivals) == 1 else np.repeat(rows[0][None], len(arrivals), axis=0)
        nothing = np.zeros(len(self._order))
        result: FloatArray = np.stack([nothing if row is None else row for row in rows])[which]
        rough = np.flatnonzero([rows[k] is None for k in which])
        if len(rough):
            result[rough] = self._by_cells(term, sign, [slot[rough] for slot in given], len(rough))
        return result

    def known_lift(self, sign: int, values: Sequence[Any]) -> FloatArray | None:
        """The lift (M,) of the only term for one arrival, where it was asked for before and is finite; else None."""
        known = self._known.get((0, sign))
        if known is None or self._only is None:
            return None
        width = self._width
        return known.get(tuple([_part(values[slot].item() / width) for slot in self._only]))

    def _codes(self, given: Sequence[FloatArray], count: int) -> tuple[list[tuple[int, ...]], IntArray]:
        """Which parts of octaves the data lie in: the different ones, and which of those each arrival has.

        They are measured by the width of the index, so that its unit does not matter.
        """
        if count == 1:
            return [tuple(_part(slot.item(0) / self._width) for slot in given)], np.zeros(1, dtype=np.int64)
        which = np.zeros(count, dtype=np.int64)
        columns = [_parts(slot / self._width) for slot in given]
        for column in columns:
            different, place = np.unique(column, return_inverse=True)
            _, which = np.unique(which * len(different) + place, return_inverse=True)
        first = np.zeros(which.max(initial=0) + 1, dtype=np.int64)
        first[which[::-1]] = np.arange(count)[::-1]
        return [tuple(int(column[k]) for column in columns) for k in first.tolist()], which

    def _enclosed(self, formula: Formula | None, sign: int, codes: IntArray) -> list[FloatArray | None]:
        """For data in parts (n, slots) the lifts (M,) of a column.

        None where it has kinks, where its bend is not known, or is so strong that it is a peak between two points.
        """
        if formula is None:
            return [None] * len(codes)
        low, high = self._edges
        result: list[FloatArray | None] = []
        step = max(1, _CHUNK // _BOXES)
        for start in range(0, len(codes), step):
            some = codes[start : start + step]
            slots = [Enclosure(_interval(some[:, k][:, None], self._width)) for k in range(codes.shape[1])]
            opening = Opening(1, 2)
            with np.errstate(all="ignore"):
                found = formula.enclose(slots, coordinates(low[None], high[None]), opening)
                if not opening.smooth or not isinstance(found, Enclosure) or found.rest is not None:
                    return [None] * len(codes)
                bend = np.broadcast_to(_concave(found, sign), (len(some), _BOXES))
                size = np.broadcast_to(np.maximum(*map(np.abs, found.value)), (len(some), _BOXES)).max(axis=1)
                cells = bend[:, self._box] * self._bulge
                smooth = cells.max(axis=1, initial=0.0) <= _PEAK * size
            # What is not finite is no smooth lift: it is looked at again cell by cell, and refused by whoever asked.
            smooth &= np.isfinite(cells).all(axis=1)
            lifts = self._at_points(cells, cells)
            result += [lift if good else None for lift, good in zip(lifts, smooth.tolist(), strict=True)]
        return result

    def _by_cells(self, term: Term, sign: int, given: Sequence[Any], count: int) -> FloatArray:
        """Lifts of any column, enclosed over each cell for each arrival."""
        result = np.empty((count, len(self._order)))
        step = max(1, _CHUNK // max(1, len(self._low)))
        for start in range(0, count, step):
            at = slice(start, start + step)
            slots = [
                slot[at][:, None]
                if isinstance(slot, np.ndarray)
                else (slot if not isinstance(slot, CurveStack) or len(slot) == 1 < count else slot[at])
                for slot in given
            ]
            result[at] = self._at_points(*self._cells(term.formula, term.kernel, sign, slots, len(result[at])))
        return result

    def _cells(
        self, formula: Formula | None, kernel: Kernel, sign: int, slots: Sequence[Any], count: int
    ) -> tuple[FloatArray, FloatArray]:
        """What the left and the right end of each cell (B, M - 1) are to be lifted by.

        Either up to the chord between the numbers next to them inside, and by how far the function can lie above that,
        or each up to the maximum over the inside. A function that jumps at an end is thus seen as it goes on inside.
        """
        if formula is None:
            raise NoEnclosureError("it is called at points, not traced")
        shape = (count, len(self._low))
        inner = np.nextafter(self._low, np.inf), np.nextafter(self._high, -np.inf)
        with np.errstate(all="ignore"):
            found = formula.enclose(slots, coordinates(inner[0][None], inner[1][None]), Opening(1, 2))
            if not isinstance(found, Enclosure):
                raise NoEnclosureError("a condition stands where a number is expected")
            # What is not smooth is somewhere in an interval, at the ends too.
            bulge = np.broadcast_to(_concave(found, sign) * self._bulge + _spread(found), shape)
            top = np.broadcast_to(found.value[1] if sign > 0 else -found.value[0], shape)

            def values(places: FloatArray) -> FloatArray:
                return sign * np.broadcast_to(np.asarray(kernel(slots, [places[None]]), dtype=float), shape)

            ends = values(self._low), values(self._high)
            chords = [np.maximum(values(each) - end, 0.0) + bulge for each, end in zip(inner, ends, strict=True)]
            tops = [np.maximum(top - end, 0.0) for end in ends]
            smooth = chords[0] + chords[1] < tops[0] + tops[1]
            left, right = (np.where(smooth, *each) for each in zip(chords, tops, strict=True))
        return np.where(self._wide, left, 0.0), np.where(self._wide, right, 0.0)

    # -- limits ------------------------------------------------------------------------------------------

    def lowering(self, sign: int) -> FloatArray:
        """What a limit is to be lowered by at each point of the guard (M,)."""
        side = self._family.limits.upper if sign > 0 else self._family.limits.lower
        assert side is not None
        left, right = np.zeros((1, len(self._low))), np.zeros((1, len(self._low)))
        for group in side:
            for column in range(len(group.columns)):
                part = slice(column, column + 1)
                slots = [slot[part][:, None] if isinstance(slot, np.ndarray) else slot[part] for slot in group.slots]
                # A limit is lowered where minus the limit can exceed its chord.
                more = self._cells(group.formula, group.kernel, -sign, slots, 1)
                left, right = left + more[0], right + more[1]
        return self._at_points(left, right)[0]


def _concave(found: Enclosure, sign: int) -> FloatArray:
    """By how much a function, or minus it, can bend downwards over boxes."""
    pair = found.bends.get((0, 0))
    if pair is None:
        return np.zeros((1, 1))
    return np.maximum(-pair[0] if sign > 0 else pair[1], 0.0)


def _spread(found: Enclosure) -> Any:
    """How far what a function has beside its smooth base can move over boxes."""
    return 0.0 if found.rest is None else found.rest[1] - found.rest[0]


def _part(value: float) -> int:
    """Which part of its octave a number lies in, as :func:`_parts` tells it."""
    mantissa, exponent = math.frexp(value if -_FAR < value < _FAR else math.copysign(_FAR, value))
    return exponent * 4 * _PARTS + math.floor(mantissa * 2 * _PARTS) if value else 0


def _parts(values: FloatArray) -> IntArray:
    """Which parts of their octaves numbers lie in; 0 for zero."""
    mantissa, exponent = np.frexp(np.clip(values, -_FAR, _FAR))
    codes = exponent.astype(np.int64) * 4 * _PARTS + np.floor(mantissa * 2 * _PARTS).astype(np.int64)
    return np.where(values != 0, codes, 0)


def _interval(codes: IntArray, unit: float) -> tuple[FloatArray, FloatArray]:
    """All numbers that lie in parts of octaves, measured by a unit, and their neighbours."""
    place = (codes + 2 * _PARTS) % (4 * _PARTS) - 2 * _PARTS
    exponent = (codes - place) // (4 * _PARTS)
    low, high = (unit * np.ldexp((place + end) / (2 * _PARTS), exponent) for end in (0, 1))
    low, high = np.where(codes == 0, 0.0, low), np.where(codes == 0, 0.0, high)
    # Numbers beyond are all taken together.
    low, high = np.where(low <= -_FAR * unit / 2, -np.inf, low), np.where(high >= _FAR * unit / 2, np.inf, high)
    # A quotient by the unit, and its product, are rounded.
    return low - 4 * 2.0**-52 * np.abs(low), high + 4 * 2.0**-52 * np.abs(high)


def objection(family: StageFamily, points: FloatArray) -> str | None:
    """Why nothing is known of a family between the points of its guard; None where something is."""
    domain = family.domain
    if domain.body is not None:
        return "its index is an uncertainty set"
    if domain.dimension > 1:
        return "its index has several dimensions"
    if not domain.bounded or domain.inside is not None:
        return "its index is unbounded or restricted by where="
    if len(points) < 2 or points.min() > domain.lower[0] or points.max() < domain.upper[0]:
        return "the ends of its index are not among the points"
    if family.mixed:
        return "its use mixes index and decision"
    sides = [group for side in (family.limits.lower, family.limits.upper) if side is not None for group in side]
    formulas = [*(term.formula for term in family.terms), *(group.formula for group in sides)]
    if any(formula is None for formula in formulas):
        return "its rule is called at points, not traced"
    return None
