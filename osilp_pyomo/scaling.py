"""Units: columns and the objective in sizes that a solver with absolute tolerances can work with.

A capacitance in farads or a cost in billions is a legitimate model, but HiGHS calls anything below 1e-10
feasible. Variables that their rows keep below a thousandth are measured in smaller units while a model is solved,
and so is an objective far from 1; ordinary models are left as they are. Units are powers of two: nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osilp_pyomo.domains import FloatArray
from osilp_pyomo.problem import FiniteLP, IntArray, SemiInfiniteLP

# Columns and costs within this factor of 1 are left alone.
_ORDINARY = 1000.0
# Rows of each family that are looked at, and coefficients in all of them.
_ROWS, _COEFFICIENTS = 256, 2_000_000


@dataclass(frozen=True, eq=False)
class Scaling:
    """``x = columns * x'`` and ``objective = cost * objective'`` where the primed ones are solved for."""

    columns: FloatArray
    cost: float = 1.0

    @classmethod
    def none(cls, lp: FiniteLP) -> Scaling:
        """Everything as it is."""
        return cls(np.ones(lp.columns))

    def with_column(self) -> Scaling:
        """One more column, as it is, and an objective of its own."""
        return Scaling(np.append(self.columns, 1.0))


def scaling_for(problem: SemiInfiniteLP, points: Sequence[FloatArray]) -> Scaling:
    """Scale by the ordinary rows, and by the semi-infinite ones at some of the points of each family."""
    core = problem.core
    units = np.ones(core.columns)
    for row in range(len(core.row_lower)):
        entries = slice(core.matrix.indptr[row], core.matrix.indptr[row + 1])
        limit = _largest_limit(core.row_lower[row : row + 1], core.row_upper[row : row + 1])
        _shrink(units, core.matrix.indices[entries], np.abs(core.matrix.data[entries]), limit)
    for family, at in zip(problem.families, points, strict=True):
        wanted = min(len(at), _ROWS, max(8, _COEFFICIENTS // max(1, core.columns)))
        chosen = at[np.unique(np.linspace(0, len(at) - 1, wanted).astype(int))]
        largest = np.abs(family.matrix(chosen)).max(axis=0, initial=0.0)
        _shrink(units, family.rows.columns, largest, _largest_limit(*family.limits(chosen)))
    units = np.where(units < 1 / _ORDINARY, 2.0 ** np.round(np.log2(units)), 1.0)
    units[core.integer] = 1.0
    cost = float(np.abs(core.cost * units).max(initial=0.0))
    if cost == 0 or 1 / _ORDINARY <= cost <= _ORDINARY:
        return Scaling(units)
    return Scaling(units, float(2.0 ** np.round(np.log2(cost))))


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
