"""Rows over ellipsoids of many dimensions: each cone is decomposed into small ones.

Over an ellipsoid ``centre + axes z``, |z| <= 1, a row affine in the vector says ``|y(x)| <= t(x)`` with
``y = axes' g(x)``. Tangent planes of such a cone are poor cuts in many dimensions: hundreds of iterations do not
suffice for a hundred. The same cone is ``sum_k w_k <= t`` with ``w_k t >= y_k^2``, and each of those small cones is the
semi-infinite row ``2 a y_k - a^2 t <= w_k`` for all a in [-1, 1], tightest at a = y_k / t. Cuts of the parts combine in
exponentially many ways to cuts of the whole, and a few rounds do (Vielma, Dunning, Huchette and Lubin, 2017).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.convex_sets import EllipsoidBody
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.lp.finite import FiniteLP, RowBlock
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.rows import AffineRows, Rows
from osilp_pyomo.offline.search.choose import searches_for
from osilp_pyomo.offline.search.scan import Search, Violations

# Slopes that every small cone begins with: 1, 1/2, 1/4 and so on, of both signs.
_SLOPES = 8
# Coefficients that the parts of all cones may have together.
_MOST = 30_000_000


class _ConeRows(Rows):
    """``2 a y(x) - a^2 t(x) - w <= 0`` for a in [-1, 1]."""

    def __init__(self, part: FloatArray, part_limit: float, whole: FloatArray, whole_limit: float, column: int) -> None:
        used = np.flatnonzero((part != 0) | (whole != 0))
        self.columns = np.append(used, column)
        self._part, self._whole = np.append(part[used], 0.0), np.append(whole[used], 0.0)
        self._limits = part_limit, whole_limit

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        a = points[:, 0]
        block = 2 * a * self._part[:, None] - a**2 * self._whole[:, None]
        block[-1] = -1.0
        yield self.columns, slice(0, len(points)), block

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        a = points[:, 0]
        return np.full(len(points), -np.inf), a**2 * self._limits[1] - 2 * a * self._limits[0]


class ConeSearch(Search):
    """Separation oracle for all small cones: for each the a that makes its row tightest, in closed form."""

    separation = "closed form"

    def __init__(
        self,
        families: Sequence[Family],
        numbers: Sequence[int],
        parts: tuple[FloatArray, FloatArray],
        wholes: tuple[FloatArray, FloatArray],
        columns: IntArray,
    ) -> None:
        self.families = tuple(families)
        self.numbers = np.array(numbers)
        self._parts, self._wholes, self._columns = parts, wholes, columns

    def on_families(self, families: Sequence[Family]) -> Self:
        zero = np.zeros(len(self.numbers))
        own = [families[number] for number in self.numbers]
        return type(self)(own, self.numbers.tolist(), (self._parts[0], zero), (self._wholes[0], zero), self._columns)

    def beginning(self) -> tuple[IntArray, FloatArray]:
        """Tangent planes of each small cone at slopes from 1 down to one below which a part no longer matters."""
        count = len(self.families)
        slopes = 2.0 ** -np.arange(_SLOPES)
        slopes = np.concatenate([slopes, -slopes])
        return np.repeat(np.arange(count), len(slopes)), np.tile(slopes, count)[:, None]

    def examples(self, most: int) -> tuple[IntArray, RowBlock]:
        members, points = self.beginning()
        return members, self.rows(members, points)

    def rows(self, members: IntArray, points: FloatArray) -> RowBlock:
        a = points
        (part, part_limit), (whole, whole_limit) = self._parts, self._wholes
        matrix = 2 * a * part[members] - a**2 * whole[members]
        matrix[np.arange(len(members)), self._columns[members]] = -1.0
        upper = a[:, 0] ** 2 * whole_limit[members] - 2 * a[:, 0] * part_limit[members]
        return RowBlock(np.arange(matrix.shape[1]), matrix, np.full(len(upper), -np.inf), upper)

    def worst(self, x: FloatArray) -> Violations:
        (part, part_limit), (whole, whole_limit) = self._parts, self._wholes
        y, t, w = part @ x + part_limit, whole @ x + whole_limit, x[self._columns]
        a = np.where(t > 0, np.clip(y / np.where(t > 0, t, 1.0), -1.0, 1.0), np.sign(y))
        excess = 2 * a * y - a**2 * t - w
        order = np.argsort(-excess, kind="stable")
        # A part is measured by the whole cone: it need be no more accurate than that.
        return Violations(a[order, None], excess[order], np.maximum(np.abs(t), 1e-9)[order], 0.0, order)


@dataclass(frozen=True, eq=False)
class DecomposedCones:
    """A problem with its cones decomposed: columns of the first problem come first and keep their numbers.

    ``others`` are the numbers of the families that stay as they are, ``sides`` tells for each cone the family and
    limit it comes from and the numbers of its parts' families, in the order of the rows that were added.
    """

    problem: SemiInfiniteLP
    searches: tuple[Search, ...]
    others: tuple[int, ...]
    sides: tuple[tuple[int, float, IntArray], ...]

    def prices(
        self, families: Sequence[Family], points: Sequence[FloatArray], duals: Sequence[FloatArray], rows: FloatArray
    ) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """Price of each family of the first problem: points and masses that satisfy its dual equations.

        A cone's row has a dual m, and so have the planes of each part, spread over slopes a. Added up, they are the
        row of the first problem at ``z_k = 2 E[a] / (1 + sum E[a^2])``, which lies in the ball, times
        ``m (1 + sum E[a^2])``.
        """
        found_points: list[list[FloatArray]] = [[] for _ in families]
        found_masses: list[list[FloatArray]] = [[] for _ in families]
        for place, number in enumerate(self.others):
            found_points[number].append(points[place])
            found_masses[number].append(duals[place])
        for dual, (number, sign, parts) in zip(rows, self.sides, strict=True):
            body = families[number].domain.body
            assert isinstance(body, EllipsoidBody)
            mean = np.array([np.sum(duals[part] * points[part][:, 0]) for part in parts])
            square = float(sum(np.sum(duals[part] * points[part][:, 0] ** 2) for part in parts))
            if dual != 0:
                whole = dual + square
                found_points[number].append((body.centre + sign * body.axes @ (2 * mean / whole))[None])
                found_masses[number].append(np.array([sign * whole]))
        empty = [np.empty((0, family.domain.dimension)) for family in families]
        return (
            tuple(np.concatenate([none, *each]) for none, each in zip(empty, found_points, strict=True)),
            tuple(np.concatenate([np.empty(0), *each]) for each in found_masses),
        )


def decompose_cones(problem: SemiInfiniteLP) -> DecomposedCones | None:
    """Decompose the cones that ellipsoids make of rows; None where there are none, or they have too many parts."""
    cones = [number for number, family in enumerate(problem.families) if _is_cone(family)]
    sides = [(number, side) for number in cones for side in _sides(problem.families[number], problem.core.columns)]
    count = sum(len(side.parts) for _, side in sides)
    columns = problem.core.columns + count
    if not cones or count * columns > _MOST:
        return None
    core = _extended(problem.core, [side for _, side in sides], count)
    others = tuple(number for number in range(len(problem.families)) if number not in set(cones))
    families = [problem.families[number] for number in others]
    searches = searches_for(families)
    added = np.arange(problem.core.columns, columns)
    places, owners, first = [], [], 0
    for number, side in sides:
        parts = np.arange(first, first + len(side.parts))
        first += len(parts)
        places.append((number, side.sign, len(others) + parts))
        owners += [side] * len(parts)
    part_rows = np.concatenate([side.parts for _, side in sides])
    part_limits = np.concatenate([side.part_limits for _, side in sides])
    for row, limit, side, column in zip(part_rows, part_limits, owners, added.tolist(), strict=True):
        rows = _ConeRows(_padded(row, columns), float(limit), _padded(side.whole, columns), side.limit, column)
        families.append(Family("cone", Domain.box(a=(-1.0, 1.0)), rows, core.column_names))
    cone_search = ConeSearch(
        families[len(others) :],
        range(len(others), len(families)),
        (np.pad(part_rows, ((0, 0), (0, count))), part_limits),
        (np.array([_padded(side.whole, columns) for side in owners]), np.array([side.limit for side in owners])),
        added,
    )
    return DecomposedCones(SemiInfiniteLP(core, tuple(families)), (*searches, cone_search), others, tuple(places))


def _is_cone(family: Family) -> bool:
    return isinstance(family.rows, AffineRows) and isinstance(family.domain.body, EllipsoidBody)


@dataclass(frozen=True, eq=False)
class _Side:
    """One limit of a family: t(x) = whole @ x + limit and y(x) = parts @ x + part_limits."""

    sign: float
    whole: FloatArray
    limit: float
    parts: FloatArray
    part_limits: FloatArray


def _sides(family: Family, columns: int) -> Iterator[_Side]:
    rows, body = family.rows, family.domain.body
    assert isinstance(rows, AffineRows)
    assert isinstance(body, EllipsoidBody)
    matrix = np.zeros((len(rows.matrix), columns))
    matrix[:, rows.columns] = rows.matrix
    at_centre = np.concatenate([[1.0], body.centre])
    for limit, sign in ((rows.upper, 1.0), (rows.lower, -1.0)):
        if limit is not None:
            whole, slack = -sign * (at_centre @ matrix), float(sign * (at_centre @ limit))
            yield _Side(sign, whole, slack, body.axes.T @ matrix[1:], -(body.axes.T @ limit[1:]))


def _extended(core: FiniteLP, sides: Sequence[_Side], count: int) -> FiniteLP:
    """The ordinary LP with the parts' columns w >= 0, and a row ``sum w <= t(x)`` for each cone."""
    rows, limits, first = [], [], 0
    for side in sides:
        row = np.concatenate([-side.whole, np.zeros(count)])
        start = core.columns + first
        row[start : start + len(side.parts)] = 1.0
        first += len(side.parts)
        rows.append(row)
        limits.append(side.limit)
    own = sparse.hstack([core.matrix, sparse.csr_array((len(core.row_lower), count))])
    return replace(
        core,
        cost=np.concatenate([core.cost, np.zeros(count)]),
        column_lower=np.concatenate([core.column_lower, np.zeros(count)]),
        column_upper=np.concatenate([core.column_upper, np.full(count, np.inf)]),
        integer=np.concatenate([core.integer, np.zeros(count, dtype=bool)]),
        matrix=sparse.csr_array(sparse.vstack([own, sparse.csr_array(np.array(rows))])),
        row_lower=np.concatenate([core.row_lower, np.full(len(rows), -np.inf)]),
        row_upper=np.concatenate([core.row_upper, np.array(limits)]),
        column_names=[*core.column_names, *(f"part {k}" for k in range(count))],
        row_names=[*core.row_names, *("cone" for _ in rows)],
    )


def _padded(row: FloatArray, columns: int) -> FloatArray:
    return np.concatenate([row, np.zeros(columns - len(row))])
