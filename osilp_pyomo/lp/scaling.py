"""Units and bases: the variables in a form that a solver with absolute tolerances can work with.

A capacitance in farads, a cost in billions or a polynomial of degree ten in powers of u is a legitimate model, but
HiGHS calls anything below 1e-10 feasible and drops coefficients below 1e-9. While a model is solved

- variables that their rows or bounds keep far from 1 are measured in other units, and so is the objective;
- free variables whose functions of the index are tiny or not far from dependent (powers of u) are replaced by
  combinations whose functions are orthogonal on the scan.

Ordinary models are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.lp.finite import FiniteLP, RowBlock

# Columns and costs within this factor of 1 are left alone.
_ORDINARY = 1000.0
# A limit is nothing below this share of what the terms of its row can be.
_NOTHING = 1e-9
# Rows of each family that are looked at, and coefficients in all of them.
_ROWS, _COEFFICIENTS = 256, 2_000_000
# Free columns whose functions have a condition number between these are made orthogonal, if they are not too many.
# A parabola in powers of u has 15: its LPs end in numerical trouble where it touches a limit.
_DEPENDENT, _HOPELESS, _MOST_MIXED = 10.0, 1e14, 200


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

    @cached_property
    def _plain(self) -> bool:
        """Whether everything is as it is."""
        return self.mixed is None and bool(np.all(self.units == 1.0))

    def rows(self, columns: IntArray, matrix: FloatArray) -> tuple[IntArray, FloatArray]:
        """Rows over x, given over some columns, as rows over y."""
        if self._plain:
            return columns, matrix
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
        if self._plain:
            return sparse.csr_array(rows, copy=True)
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


def example_rows(core: FiniteLP) -> int:
    """How many rows of a family are looked at for scaling."""
    return min(_ROWS, max(8, _COEFFICIENTS // max(1, core.columns)))


def scaling_for(core: FiniteLP, examples: Sequence[tuple[IntArray, RowBlock]]) -> Scaling:
    """Scale by the ordinary rows, and by examples of the semi-infinite ones, each with the family it belongs to."""
    # How large each variable can be by the row that allows it most, and its largest coefficient; 0 where unknown.
    reach, largest = np.zeros(core.columns), np.zeros(core.columns)
    bound = np.maximum(np.abs(core.column_lower), np.abs(core.column_upper))
    bound = np.where(np.isfinite(bound), bound, 0.0)

    def note_entries(matrix: Any, limits: FloatArray) -> None:
        """Note rows of a sparse matrix."""
        rows = np.repeat(np.arange(len(limits)), np.diff(matrix.indptr))
        columns, sizes = matrix.indices, np.abs(matrix.data)
        spread, used = np.zeros(len(limits)), np.zeros(len(limits), dtype=np.int64)
        np.maximum.at(spread, rows, sizes * bound[columns])
        np.add.at(used, rows, sizes > 0)
        # A limit that is nothing beside what other variables of the row can be says nothing of any of them.
        hidden = (spread > 0) & (limits <= _NOTHING * spread) & (used > 1)
        np.maximum.at(largest, columns, sizes)
        held = sizes > 0
        np.maximum.at(reach, columns[held], np.where(hidden, np.inf, limits)[rows[held]] / sizes[held])

    def note_all(columns: IntArray, sizes: FloatArray, limits: FloatArray) -> None:
        """Note many rows over the same columns at once."""
        spread = (sizes * bound[columns]).max(axis=1, initial=0.0)
        used = sizes > 0
        hidden = (spread > 0) & (limits <= _NOTHING * spread) & (used.sum(axis=1) > 1)
        allowed = np.where(hidden, np.inf, limits)[:, None] / np.where(used, sizes, 1.0)
        largest[columns] = np.maximum(largest[columns], sizes.max(axis=0))
        reach[columns] = np.maximum(reach[columns], np.where(used, allowed, 0.0).max(axis=0))

    note_entries(core.matrix, np.maximum(_finite(core.row_lower), _finite(core.row_upper)))
    free = np.flatnonzero(np.isneginf(core.column_lower) & np.isposinf(core.column_upper) & ~core.integer)
    samples, highest = [], 0.0
    for members, rows in examples:
        starts = np.flatnonzero(np.diff(members, prepend=-1))
        limits = np.maximum(_finite(rows.lower), _finite(rows.upper))
        if len(starts):
            sizes = np.abs(rows.matrix)
            highest_limits = limits
            if len(starts) < len(sizes):
                sizes = np.maximum.reduceat(sizes, starts, axis=0)
                highest_limits = np.maximum.reduceat(limits, starts)
            note_all(rows.columns, sizes, highest_limits)
        if 2 <= len(free) <= _MOST_MIXED:
            inside = np.isin(rows.columns, free)
            sample = np.zeros((len(rows), len(free)))
            sample[:, np.searchsorted(free, rows.columns[inside])] = rows.matrix[:, inside]
            samples.append(sample)
            if inside.any():
                highest = max(highest, float(limits.max(initial=0.0)))
    units = _units(core, reach, largest)
    scaling = Scaling(units)
    if samples:
        sample = np.concatenate(samples)
        # A free variable that stands in no family has nothing to be combined with.
        used = sample.any(axis=0)
        triangle = _triangle(sample[:, used])
        if triangle is not None:
            # The functions are about 1 now, and so their combinations are as large as the rows' limits.
            unit = float(2.0 ** np.round(np.log2(highest))) if 0 < highest < 1 / _ORDINARY else 1.0
            scaling = Scaling(units, 1.0, free[used], triangle / unit)
    _, cost = scaling.rows(np.arange(core.columns), core.cost[None])
    dearest = float(np.abs(cost).max(initial=0.0))
    if dearest == 0 or 1 / _ORDINARY <= dearest <= _ORDINARY:
        return scaling
    return Scaling(units, float(2.0 ** np.round(np.log2(dearest))), scaling.mixed, scaling.triangle)


def _units(core: FiniteLP, reach: FloatArray, largest: FloatArray) -> FloatArray:
    """Units of the variables, as powers of two; 1 for ordinary ones and for integers.

    Smaller where every row keeps a variable small; larger where its bounds let it be large and all coefficients
    seen are small. Free variables are not made larger: their coefficients may be small only where we looked.
    """
    bound = np.maximum(np.abs(core.column_lower), np.abs(core.column_upper))
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where((reach > 0) & (reach < 1 / _ORDINARY), reach, 1.0)
        growing = np.isfinite(bound) & (bound > _ORDINARY) & (largest > 0) & (largest < 1 / _ORDINARY)
        wanted = np.where(growing, np.minimum(bound, 1 / largest), wanted)
    wanted[core.integer] = 1.0
    units: FloatArray = np.exp2(np.round(np.log2(wanted)))
    return units


def _triangle(sample: FloatArray) -> FloatArray | None:
    """The triangle R of ``sample = Q R`` where its columns are almost dependent, or far from 1; else None."""
    sizes = np.abs(sample).max(axis=0, initial=0.0)
    if not 2 <= sample.shape[1] <= len(sample):
        return None
    spread = np.linalg.svd(sample / sizes, compute_uv=False)
    small = bool(np.any(sizes < 1 / _ORDINARY))
    if spread[-1] * _HOPELESS <= spread[0] or (spread[-1] * _DEPENDENT >= spread[0] and not small):
        return None
    triangle: FloatArray = np.linalg.qr(sample / sizes, mode="r") * sizes / np.sqrt(len(sample))
    return triangle


def _finite(limits: FloatArray) -> FloatArray:
    """Sizes of limits; 0 where there is none."""
    return np.where(np.isfinite(limits), np.abs(limits), 0.0)
