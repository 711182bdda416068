"""A convex set as duality wants it: coordinates that begin at zero, rows, and cones that are left out or kept.

A :class:`Frame` is a :class:`~osilp_pyomo.index.extended_form.Lift` in other coordinates: each is between 0 and 1, at
least 0, or free. Where a ball holds coordinates one by one, as that of an ellipsoid does, its multipliers need no
columns: they are what the dual equations of those coordinates say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.extended_form import Lift
from osilp_pyomo.lp.conic import EXPONENTIAL, SECOND_ORDER, ConeProgram, ConeRows, middle_of, solve_cones
from osilp_pyomo.lp.finite import FiniteLP

# What a point may miss of rows and cones, relative to their size, and belong to the set.
_KEPT = 1e-10
# What bounds may lie inside of those that a ball implies and still count as the ball's own.
_IMPLIED = 1e-12


@dataclass(frozen=True, eq=False)
class Frame:
    """``offset + matrix t`` with 0 <= t <= 1 where ``boxed``, t >= 0 where ``above``, and t free elsewhere.

    ``rows t <= limits`` with multipliers of either sign where ``tied``, and cones; the ``solved`` ones hold some of the
    free coordinates one by one, with the ``factor`` that each has there (see :meth:`of`). ``largest`` is what no
    coordinate exceeds in size.
    """

    offset: FloatArray
    matrix: FloatArray
    boxed: BoolArray
    above: BoolArray
    rows: FloatArray
    limits: FloatArray
    tied: BoolArray
    solved: tuple[SolvedCone, ...]
    cones: tuple[ConeRows, ...]
    largest: FloatArray

    @classmethod
    def of(cls, lift: Lift) -> Frame:
        """The frame of a set."""
        solved, kept, implied = _solved_cones(lift)
        lower, upper = np.where(implied, -np.inf, lift.lower), np.where(implied, np.inf, lift.upper)
        both = np.isfinite(lower) & np.isfinite(upper)
        only_upper = np.isfinite(upper) & ~np.isfinite(lower)
        base = np.where(np.isfinite(lower), lower, np.where(only_upper, upper, 0.0))
        far = lift.largest + np.abs(base)
        # Coordinates are about 1, also those that rows bound.
        usual = np.where(np.isfinite(far) & (far > 0) & ~implied, far, 1.0)
        with np.errstate(invalid="ignore"):
            unit = np.where(both, upper - lower, np.where(only_upper, -usual, usual))
        used = unit != 0
        rows, limits, tied = _one_sided(lift, base)
        # And so are the coefficients of rows: their multipliers are then of the size of what they bound.
        heights = np.abs(rows * unit).max(axis=1, initial=0.0)
        heights = np.where(heights > 0, heights, 1.0)
        rows, limits = rows / heights[:, None], limits / heights
        largest = np.where(both, 1.0, far / usual)
        return cls(
            lift.offset + lift.matrix @ base,
            (lift.matrix * unit)[:, used],
            both[used],
            (np.isfinite(lower) ^ np.isfinite(upper))[used],
            (rows * unit)[:, used],
            limits,
            tied,
            tuple(each.renumbered(np.cumsum(used) - 1) for each in solved),
            tuple(
                ConeRows(
                    cone.kind, cone.size, sparse.csr_array((cone.matrix * unit[None])[:, used]),
                    cone.offset + cone.matrix @ base,
                )
                for cone in kept
            ),
            largest[used],
        )  # fmt: skip

    @property
    def coordinates(self) -> int:
        """Number of coordinates."""
        return len(self.boxed)

    @cached_property
    def plain_box(self) -> bool:
        """Whether it is a box and nothing else, so that both limits of a row share their multipliers."""
        return bool(self.boxed.all()) and not len(self.rows) and not self.cones and not self.solved

    @cached_property
    def equations(self) -> IntArray:
        """Coordinates whose dual equations are rows of a counterpart: those that no solved cone holds."""
        held = np.zeros(self.coordinates, dtype=bool)
        for each in self.solved:
            held[each.coordinates] = True
        return np.flatnonzero(~held)

    def pulled_inside(self, t: FloatArray) -> FloatArray:
        """Coordinates that miss rows or cones by a little, moved into the set towards a point inside of it."""
        t = self._lengthened(t)
        along = self.rows @ t - self.limits
        slack = ~self.tied
        outside = float(np.max(along[slack], initial=0.0)) > 0 or any(cone.excess(t) > 0 for cone in self.cones)
        if not outside or self.inner is None:
            return t
        for share in 10.0 ** np.arange(-15.0, -3.0):
            moved = t + share * (self.inner - t)
            if np.max((self.rows @ moved - self.limits)[slack], initial=0.0) <= 0 and all(
                cone.excess(moved) <= 0 for cone in self.cones
            ):
                return moved
        return t

    def holds(self, t: FloatArray) -> bool:
        """Whether coordinates keep rows and cones up to some roundings; of bounds they are known to."""
        size = 1.0 + float(np.abs(t).max(initial=0.0))
        missed = self.rows @ t - self.limits
        missed = np.where(self.tied, np.abs(missed), missed)
        scale = size * np.abs(self.rows).max(axis=1, initial=0.0) + np.abs(self.limits)
        kept = bool(np.all(missed <= _KEPT * np.where(scale > 0, scale, 1.0)))
        return kept and all(
            cone.excess(t) <= _KEPT * (size * abs(cone.matrix).max() + np.abs(cone.offset).max()) for cone in self.cones
        )

    def _lengthened(self, t: FloatArray) -> FloatArray:
        """A coordinate that is nothing but the length of a second-order cone, made as large as it must be."""
        for cone, place in zip(self.cones, self._lengths, strict=True):
            if place is not None:
                missing = cone.excess(t)
                if missing > 0:
                    t = t.copy()
                    t[place] += missing * (1 + 1e-15) + 1e-15 * abs(t[place])
        return t

    @cached_property
    def _lengths(self) -> tuple[int | None, ...]:
        """For each cone the coordinate without an upper bound that is its first entry and stands nowhere else."""
        found: list[int | None] = []
        uses = np.count_nonzero(self.rows, axis=0) + sum(
            (np.asarray((cone.matrix != 0).sum(axis=0)).ravel() for cone in self.cones), np.zeros(self.coordinates)
        )
        for cone in self.cones:
            first = cone.matrix[[0]].tocoo()
            alone = cone.kind == SECOND_ORDER and len(cone.offset) == cone.size and first.nnz == 1
            place = int(first.col[0]) if alone else -1
            fits = alone and first.data[0] == 1.0 and uses[place] == 1 and not self.boxed[place]
            found.append(place if fits else None)
        return tuple(found)

    @cached_property
    def inner(self) -> FloatArray | None:
        """Coordinates with room in every row and cone, as much as can be; None where there are none."""
        size = self.coordinates
        norms = np.linalg.norm(self.rows, axis=1) * ~self.tied
        lp = FiniteLP(
            maximize=True,
            cost=np.append(np.zeros(size), 1.0),
            column_lower=np.append(np.where(self.boxed | self.above, 0.0, -np.inf), 0.0),
            column_upper=np.append(np.where(self.boxed, 1.0, np.inf), 1.0),
            matrix=sparse.csr_array(np.column_stack([self.rows, norms])),
            row_lower=np.where(self.tied, self.limits, -np.inf),
            row_upper=self.limits,
        )
        held = [
            ConeRows(SECOND_ORDER, 1 + len(each.factor), _picked_cone(each, size), np.append([1.0], -each.centre))
            for each in self.solved
        ]
        cones = []
        for cone in (*self.cones, *held):
            # The first entry of a second-order cone, the diagonal of a matrix, and c above b exp(a / b) have room.
            middle = middle_of(cone.kind, cone.size)
            shares = np.tile(middle, len(cone.offset) // cone.size)[:, None]
            cones.append(
                replace(cone, matrix=sparse.csr_array(sparse.hstack([cone.matrix, sparse.csr_array(-shares)])))
            )
        found = solve_cones(ConeProgram(lp, tuple(cones)), tolerance=1e-9)
        return None if found.x is None or found.x[-1] <= 0 else found.x[:-1]

    def points(self, t: FloatArray) -> FloatArray:
        """Points of the set for coordinates (k, L)."""
        return self.offset + t @ self.matrix.T


@dataclass(frozen=True, eq=False)
class SolvedCone:
    """``|factor * t[coordinates] - centre| <= 1``: its multipliers are the dual equations of its coordinates."""

    coordinates: IntArray
    factor: FloatArray
    centre: FloatArray

    def renumbered(self, places: IntArray) -> SolvedCone:
        """The same cone where its coordinates have other numbers."""
        return SolvedCone(places[self.coordinates], self.factor, self.centre)


def _picked_cone(cone: SolvedCone, size: int) -> sparse.csr_array:
    """Coefficients of a solved cone's entries."""
    count = len(cone.factor)
    return sparse.csr_array((cone.factor, (np.arange(1, count + 1), cone.coordinates)), shape=(count + 1, size))


def _solved_cones(lift: Lift) -> tuple[list[SolvedCone], list[ConeRows], BoolArray]:
    """Balls that hold coordinates one by one, all other cones, and the coordinates whose bounds those balls imply."""
    solved: list[SolvedCone] = []
    kept: list[ConeRows] = list(lift.other_cones)
    held = np.zeros(lift.coordinates, dtype=bool)
    elsewhere = np.zeros(lift.coordinates, dtype=bool)
    for cone in kept:
        elsewhere |= np.asarray(abs(cone.matrix).sum(axis=0)).ravel() > 0
    for ball in lift.balls:
        entries = ball.matrix != 0
        coordinates = np.argmax(entries, axis=1)
        single = bool(np.all(entries.sum(axis=1) == 1)) and len(np.unique(coordinates)) == len(coordinates)
        if not single or (held | elsewhere)[coordinates].any():
            kept.append(ball.cone())
            elsewhere |= entries.any(axis=0)
            continue
        factor = ball.matrix[np.arange(len(coordinates)), coordinates]
        ends = (ball.centre + np.array([[-1.0], [1.0]])) / factor
        inside = (lift.lower[coordinates] <= ends.min(axis=0) + _IMPLIED) & (
            lift.upper[coordinates] >= ends.max(axis=0) - _IMPLIED
        )
        if not inside.all():
            kept.append(ball.cone())
            elsewhere |= entries.any(axis=0)
            continue
        held[coordinates] = True
        solved.append(SolvedCone(coordinates, factor, ball.centre))
    return solved, kept, held


def _one_sided(lift: Lift, base: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Rows with one limit each, for coordinates that begin at the base; equations are tied."""
    shift = lift.rows @ base if len(lift.rows) else np.zeros(0)
    equal = (lift.row_lower == lift.row_upper) & np.isfinite(lift.row_lower)
    above = np.isfinite(lift.row_upper)
    below = np.isfinite(lift.row_lower) & ~equal
    rows = np.concatenate([lift.rows[above], -lift.rows[below]])
    limits = np.concatenate([(lift.row_upper - shift)[above], -(lift.row_lower - shift)[below]])
    return rows, limits, np.concatenate([equal[above], np.zeros(int(below.sum()), dtype=bool)])


def dual_rows(cone: ConeRows, columns: IntArray, total: int) -> ConeRows:
    """Rows that say that some columns, (cones, size) of them, lie in the dual of a cone's kind."""
    count, size = len(columns) // cone.size, cone.size
    if cone.kind != EXPONENTIAL:
        # Second-order and semidefinite cones are their own duals.
        return ConeRows(cone.kind, size, _picked(columns, total), np.zeros(len(columns)))
    # (u, v, w) with -u exp(v / u) <= e w is (u - v, -u, w) in the cone itself.
    turn = sparse.block_diag([np.array([[1.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])] * count)
    return ConeRows(cone.kind, size, sparse.csr_array(turn @ _picked(columns, total)), np.zeros(len(columns)))


def _picked(columns: IntArray, total: int) -> sparse.csr_array:
    count = len(columns)
    return sparse.csr_array((np.ones(count), (np.arange(count), columns)), shape=(count, total))
