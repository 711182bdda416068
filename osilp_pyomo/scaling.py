"""Units and bases: the variables in a form that a solver with absolute tolerances can work with.

A capacitance in farads, a cost in billions or a polynomial of degree ten in powers of u is a legitimate model, but
HiGHS calls anything below 1e-10 feasible and drops coefficients below 1e-9. While a model is solved

- variables that their rows keep far from 1 are measured in other units, and so is the objective;
- free variables whose functions of the index are almost dependent (powers of u) are replaced by combinations
  whose functions are orthogonal on the scan.

Ordinary models are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from osilp_pyomo.domains import FloatArray
from osilp_pyomo.problem import FiniteLP, IntArray, SemiInfiniteLP

# Columns and costs within this factor of 1 are left alone.
_ORDINARY = 1000.0
# Rows of each family that are looked at, and coefficients in all of them.
_ROWS, _COEFFICIENTS = 256, 2_000_000
# Free columns whose functions have a condition number between these are made orthogonal, if they are not too many.
_DEPENDENT, _HOPELESS, _MOST_MIXED = 1e3, 1e14, 200


@dataclass(frozen=True, eq=False)
class Scaling:
    """``x = transform @ y`` and ``objective = cost * objective'`` where y and objective' are solved for.

    The transform is diagonal (``units``) but for a block over the columns ``mixed``, which is the inverse of
    ``triangle``.
    """

    units: FloatArray
    cost: float = 1.0
    mixed: IntArray | None = None
    triangle: FloatArray | None = None

    @classmethod
    def none(cls, lp: FiniteLP) -> Scaling:
        """Everything as it is."""
        return cls(np.ones(lp.columns))

    def with_column(self) -> Scaling:
        """One more column, as it is, and an objective of its own."""
        return Scaling(np.append(self.units, 1.0), 1.0, self.mixed, self.triangle)

    def rows(self, columns: IntArray, matrix: FloatArray) -> tuple[IntArray, FloatArray]:
        """Rows over x, given over some columns, as rows over y."""
        scaled = matrix * self.units[columns]
        if self.mixed is None or self.triangle is None:
            return columns, scaled
        inside = np.isin(columns, self.mixed)
        block = np.zeros((len(matrix), len(self.mixed)))
        block[:, np.searchsorted(self.mixed, columns[inside])] = matrix[:, inside]
        mixed = solve_triangular(self.triangle, block.T, trans="T").T
        return np.concatenate([columns[~inside], self.mixed]), np.column_stack([scaled[:, ~inside], mixed])

    def matrix(self, rows: Any) -> Any:
        """A sparse matrix over x as one over y."""
        scaled = sparse.csr_array(rows * self.units[None, :])
        if self.mixed is None or self.triangle is None:
            return scaled
        kept = np.ones(len(self.units))
        kept[self.mixed] = 0.0
        block = solve_triangular(self.triangle, rows[:, self.mixed].toarray().T, trans="T").T
        place = sparse.csr_array(
            (np.ones(len(self.mixed)), (np.arange(len(self.mixed)), self.mixed)),
            shape=(len(self.mixed), len(self.units)),
        )
        result = sparse.csr_array(scaled * kept[None, :] + sparse.csr_array(block) @ place)
        result.eliminate_zeros()
        return result

    def point(self, y: FloatArray) -> FloatArray:
        """The user's x."""
        x: FloatArray = self.units * y
        if self.mixed is not None and self.triangle is not None:
            x[self.mixed] = solve_triangular(self.triangle, y[self.mixed])
        return x

    def reduced_costs(self, reduced: FloatArray) -> FloatArray:
        """Reduced costs of x from those of y."""
        result: FloatArray = reduced * self.cost / self.units
        if self.mixed is not None and self.triangle is not None:
            result[self.mixed] = self.cost * (self.triangle.T @ reduced[self.mixed])
        return result


def scaling_for(problem: SemiInfiniteLP, points: Sequence[FloatArray]) -> Scaling:
    """Scale by the ordinary rows, and by the semi-infinite ones at some of the points of each family."""
    core = problem.core
    units = np.ones(core.columns)
    for row in range(len(core.row_lower)):
        entries = slice(core.matrix.indptr[row], core.matrix.indptr[row + 1])
        limit = _largest_limit(core.row_lower[row : row + 1], core.row_upper[row : row + 1])
        _shrink(units, core.matrix.indices[entries], np.abs(core.matrix.data[entries]), limit)
    free = np.flatnonzero(np.isneginf(core.column_lower) & np.isposinf(core.column_upper) & ~core.integer)
    samples = []
    for family, at in zip(problem.families, points, strict=True):
        wanted = min(len(at), _ROWS, max(8, _COEFFICIENTS // max(1, core.columns)))
        chosen = at[np.unique(np.linspace(0, len(at) - 1, wanted).astype(int))]
        matrix = family.matrix(chosen)
        limit = _largest_limit(*family.limits(chosen))
        _shrink(units, family.rows.columns, np.abs(matrix).max(axis=0, initial=0.0), limit)
        if 2 <= len(free) <= _MOST_MIXED:
            inside = np.isin(family.rows.columns, free)
            sample = np.zeros((len(chosen), len(free)))
            sample[:, np.searchsorted(free, family.rows.columns[inside])] = matrix[:, inside]
            samples.append(sample)
    units = np.where(units < 1 / _ORDINARY, 2.0 ** np.round(np.log2(units)), 1.0)
    units[core.integer] = 1.0
    triangle = _triangle(np.concatenate(samples)) if samples else None
    scaling = Scaling(units, 1.0, free, triangle) if triangle is not None else Scaling(units)
    _, cost = scaling.rows(np.arange(core.columns), core.cost[None])
    largest = float(np.abs(cost).max(initial=0.0))
    if largest == 0 or 1 / _ORDINARY <= largest <= _ORDINARY:
        return scaling
    return Scaling(units, float(2.0 ** np.round(np.log2(largest))), scaling.mixed, scaling.triangle)


def _triangle(sample: FloatArray) -> FloatArray | None:
    """The triangle R of ``sample = Q R`` where its columns are almost dependent, or far from 1; else None."""
    sizes = np.abs(sample).max(axis=0, initial=0.0)
    if len(sample) < sample.shape[1] or not sizes.all():
        return None
    spread = np.linalg.svd(sample / sizes, compute_uv=False)
    small = bool(np.any(sizes < 1 / _ORDINARY))
    if spread[-1] * _HOPELESS <= spread[0] or (spread[-1] * _DEPENDENT >= spread[0] and not small):
        return None
    triangle: FloatArray = np.linalg.qr(sample / sizes, mode="r") * sizes / np.sqrt(len(sample))
    return triangle


def _largest_limit(lower: FloatArray, upper: FloatArray) -> float:
    limits = np.concatenate([lower, upper])
    return float(np.abs(limits[np.isfinite(limits)]).max(initial=0.0))


def _shrink(units: FloatArray, columns: IntArray, coefficients: FloatArray, limit: float) -> None:
    """Lower the units of columns whose coefficients are large beside the largest limit of their rows.

    Never the other way: coefficients may be small at the points looked at and large elsewhere.
    """
    if limit > 0:
        large = coefficients > limit
        units[columns[large]] = np.minimum(units[columns[large]], limit / coefficients[large])
