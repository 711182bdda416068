"""Rays: directions in which a problem may be unbounded, as a semi-infinite LP of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.affine_rows import AffineRows
from osilp_pyomo.problem import SemiInfiniteLP
from osilp_pyomo.rows import Rows


def ray_problem(problem: SemiInfiniteLP) -> SemiInfiniteLP:
    """The same problem with all limits at zero, over a unit box: its optimum is a ray, or zero."""
    core = problem.core
    rays = replace(
        core,
        offset=0.0,
        column_lower=np.where(np.isfinite(core.column_lower), 0.0, -1.0),
        column_upper=np.where(np.isfinite(core.column_upper), 0.0, 1.0),
        integer=np.zeros(core.columns, dtype=bool),
        row_lower=_zero_where_finite(core.row_lower),
        row_upper=_zero_where_finite(core.row_upper),
    )
    families = tuple(replace(family, rows=_homogeneous(family.rows)) for family in problem.families)
    return SemiInfiniteLP(rays, families)


def _homogeneous(rows: Rows) -> Rows:
    return rows.homogeneous() if isinstance(rows, AffineRows) else _Homogeneous(rows)


class _Homogeneous(Rows):
    """The same coefficients with every limit at zero."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.columns = rows.columns

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        return self._rows.blocks(points)

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        lower, upper = self._rows.limits(points)
        return _zero_where_finite(lower), _zero_where_finite(upper)


def _zero_where_finite(limit: FloatArray) -> FloatArray:
    return np.where(np.isfinite(limit), 0.0, limit)
