"""Exact separation oracle for rows affine in an uncertain vector: all rows over one set in one call.

For a candidate x each row is an affine function of xi, and the support function of the set tells where that is largest.
Nothing is scanned, and nothing can be missed: exchange with this search is exact.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.lp.finite import RowBlock
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import AffineRows
from osilp_pyomo.offline.search.scan import Search, Violations

# Coefficients are kept as a full array too where this share of them is not zero, and they are not too many.
_FILLED, _MOST_DENSE = 0.2, 2**25


class AffineSearch(Search):
    """Separation oracle for all families over one set whose rows are affine in its vectors."""

    def __init__(self, families: Sequence[Family], numbers: Sequence[int], body: Body) -> None:
        self.families = tuple(families)
        self.numbers = np.array(numbers)
        self.body = body
        self.separation = body.separation
        rows = [_affine(family) for family in families]
        self._dense: FloatArray | None = None
        if all(each.columns is rows[0].columns for each in rows):
            self.columns = rows[0].columns
            held = sum(each.matrix.size for each in rows)
            if held <= _MOST_DENSE and sum(np.count_nonzero(each.matrix) for each in rows) > _FILLED * held:
                self._dense = np.array([each.matrix for each in rows])
        else:
            self.columns = np.unique(np.concatenate([each.columns for each in rows]))
        # Row r (1 + d) + k holds what entry k of (1, xi) adds to the coefficients of row r.
        if self._dense is None:
            stacked = self._stacked(rows)
            held = stacked.shape[0] * stacked.shape[1]
            if stacked.nnz > _FILLED * held and held <= _MOST_DENSE:
                self._dense = stacked.toarray().reshape(len(rows), -1, len(self.columns))
        self._matrix: Any = stacked if self._dense is None else self._dense.reshape(-1, len(self.columns))
        self._set_limits(rows)

    def _stacked(self, rows: Sequence[AffineRows]) -> sparse.csr_array:
        size = len(rows[0].matrix)
        data, places, counts = [], [], []
        for each in rows:
            used = each.matrix != 0
            data.append(each.matrix[used])
            places.append(np.broadcast_to(np.searchsorted(self.columns, each.columns), used.shape)[used])
            counts.append(used.sum(axis=1))
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        shape = (len(rows) * size, len(self.columns))
        return sparse.csr_array((np.concatenate(data), np.concatenate(places), starts), shape=shape)

    def _set_limits(self, rows: Sequence[AffineRows]) -> None:
        """Both limits of each row as affine functions of xi; infinity and zeros where there is none."""
        none = np.zeros(1 + self.body.dimension)
        none[0] = np.inf
        self._upper = np.array([none if each.upper is None else each.upper for each in rows])
        self._lower = np.array([-none if each.lower is None else each.lower for each in rows])
        self._sides = [
            (sign, np.flatnonzero(np.isfinite(limit[:, 0])), limit)
            for sign, limit in ((1.0, self._upper), (-1.0, self._lower))
        ]
        self._one_sided = len(self._sides[0][1]) == len(rows) and not len(self._sides[1][1])

    @property
    def memory(self) -> int:
        if self._dense is not None:
            return int(self._dense.nbytes)
        return int(self._matrix.data.nbytes + self._matrix.indices.nbytes)

    def on_families(self, families: Sequence[Family]) -> Self:
        return self.on_members([families[number] for number in self.numbers])

    def on_members(self, families: Sequence[Family]) -> Self:
        """The same search for other families with these coefficients, given in its own order."""
        other = copy.copy(self)
        other.families = tuple(families)
        other._set_limits([_affine(family) for family in families])
        return other

    def serves(self, families: Sequence[Family]) -> bool:
        """Whether families have the very coefficients and the very set of this search; their limits may be others."""
        return len(families) == len(self.families) and all(
            isinstance(one.rows, AffineRows)
            and isinstance(other.rows, AffineRows)
            and one.domain.body is other.domain.body
            and one.rows.columns is other.rows.columns
            and one.rows.matrix is other.rows.matrix
            for one, other in zip(self.families, families, strict=True)
        )

    def beginning(self) -> tuple[IntArray, FloatArray]:
        """Every row at the centre of the set: the nominal problem."""
        count = len(self.families)
        return np.arange(count), np.tile(self.body.centre, (count, 1))

    def examples(self, most: int) -> tuple[IntArray, RowBlock]:
        members, points = self.beginning()
        return members, self.rows(members, points)

    def rows(self, members: IntArray, points: FloatArray) -> RowBlock:
        vectors = np.ones((len(points), 1 + self.body.dimension))
        vectors[:, 1:] = points
        lower, upper = ((vectors * limit[members]).sum(axis=1) for limit in (self._lower, self._upper))
        return RowBlock(self.columns, self._coefficients(members, vectors), lower, upper)

    def _coefficients(self, members: IntArray, vectors: FloatArray) -> FloatArray:
        """Coefficients of some rows, each at its (1, xi): an array (p, n)."""
        if self._dense is not None:
            result: FloatArray = (vectors[:, None, :] @ self._dense[members])[:, 0]
            return result
        count, size = vectors.shape
        places = (members[:, None] * size + np.arange(size)).ravel()
        shape = (count, self._matrix.shape[0])
        weights = sparse.csr_array((vectors.ravel(), places, np.arange(count + 1) * size), shape=shape)
        return (weights @ self._matrix).toarray()

    def worst(self, x: FloatArray) -> Violations:
        activity = (self._matrix @ x[self.columns]).reshape(len(self.families), -1)
        if self._one_sided:
            # All rows are at most something, as they mostly are.
            members, overrun = self._sides[0][1], activity - self._upper
        else:
            members = np.concatenate([rows for _, rows, _ in self._sides])
            overrun = np.concatenate([sign * (activity[rows] - limit[rows]) for sign, rows, limit in self._sides])
        points = self.body.support(overrun[:, 1:])
        # A convex program that could not be proved says so.
        self.separation = self.body.separation
        excess = overrun[:, 0] + (overrun[:, 1:] * points).sum(axis=1)
        order = np.argsort(-excess, kind="stable")
        members, points, excess = members[order], points[order], excess[order]
        # Most rows are as large as the terms of all entries of their vector together.
        sizes = np.sort(np.abs(activity).sum(axis=1))
        typical = float(sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2 if len(sizes) else 0.0
        # Rows with slack need no measure for their violation.
        scale, overrun_rows = np.ones(len(excess)), int(np.searchsorted(-excess, 0.0))
        if overrun_rows:
            scale[:overrun_rows] = self.rows(members[:overrun_rows], points[:overrun_rows]).scale(x)
        return Violations(points, excess, scale, typical, members)


def _affine(family: Family) -> AffineRows:
    assert isinstance(family.rows, AffineRows)
    return family.rows
