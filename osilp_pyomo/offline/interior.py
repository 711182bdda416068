"""Slater points, with slack in every row, and rays, along which a problem may be unbounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.lp.finite import FiniteLP, RowBlock
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.scaling import Scaling
from osilp_pyomo.offline.prepare import CompactFamily
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.rows import AffineRows, Rows, TracedRows
from osilp_pyomo.offline.search.scan import Search, Violations

# LPs for the largest slack, and rows that one of them gains from a family; a handful of each was ever needed.
_ROUNDS, _ROWS_PER_ROUND = 30, 30
# Relative rounding of a sum of a few terms.
_EPSILON = 4e-16


def slater_point(
    problem: SemiInfiniteLP,
    searches: Sequence[Search],
    rows: Sequence[RowBlock],
    scaling: Scaling,
    x: FloatArray,
    known: FloatArray | None = None,
) -> FloatArray | None:
    """A Slater point, with slack in every family, integers as in x; None where none is found.

    ``rows`` are those that the LP for the largest slack starts with; ``known`` is a point with slack in these families.
    """
    core = problem.core
    if known is not None and core.violation(known) <= 1e-12 and np.array_equal(known[core.integer], x[core.integer]):
        return known
    # Zero, moved to the nearest bounds, is often a Slater point, and costs one scan to try.
    simple = np.clip(0.0, core.column_lower, core.column_upper)
    simple[core.integer] = x[core.integer]
    if core.violation(simple) <= 1e-12 and all(search.worst(simple).worst < 0 for search in searches):
        return simple
    return _largest_slack_point(problem, searches, rows, scaling, x)


def _largest_slack_point(
    problem: SemiInfiniteLP,
    searches: Sequence[Search],
    rows: Sequence[RowBlock],
    scaling: Scaling,
    x: FloatArray,
) -> FloatArray | None:
    """Maximize the slack common to all rows, as a share of each row's size.

    Stops as soon as a point is seen to have a quarter of the LP's slack on the whole domain.
    """
    core = problem.core
    model = HighsModel(_with_slack(core, x), scaling.with_column())
    for block in rows:
        _add_rows(model, block, core.columns)
    for _ in range(_ROUNDS):
        solution = model.solve()
        if solution.status != "optimal" or solution.x is None:
            return None
        slack, point = float(solution.x[-1]), solution.x[:-1]
        if slack <= 1e-12:
            return None
        enough = True
        for search in searches:
            found = search.worst(point)
            block = search.rows(found.members, found.points)
            tight = np.flatnonzero(-found.excess < 0.25 * slack * _row_measure(block))
            if len(tight):
                enough = False
                _add_rows(model, block[tight[: _ROWS_PER_ROUND * len(search.families)]], core.columns)
        if enough:
            return point
    return None


def repair_towards(
    core: FiniteLP, searches: Sequence[Search], x: FloatArray, found: Sequence[Violations], inner: FloatArray
) -> FloatArray | None:
    """Move x towards the Slater point ``inner``, just far enough to remove every violation that was found.

    Along the way the excess at each point of the index changes linearly, from e > 0 to -s < 0: a share
    e / (e + s) brings it to zero. None where ``inner`` has no slack at a violated point.
    """
    share = 0.0
    for search, each in zip(searches, found, strict=True):
        if each.worst <= 0:
            continue
        positive = each.excess > 0
        block = search.rows(each.members[positive], each.points[positive])
        rounding = _EPSILON * block.size(x)
        violated = each.excess[positive] > rounding
        if violated.any():
            # The rounding of the row's own terms is part of what has to be removed.
            excess = each.excess[positive][violated] + rounding[violated]
            slack = -block[violated].excess(inner)
            if np.any(slack <= 0):
                return None
            share = max(share, float(np.max(excess / (excess + slack))))
    moved = x + share * (inner - x)
    moved[core.integer] = x[core.integer]
    return np.clip(moved, core.column_lower, core.column_upper)


def _with_slack(core: FiniteLP, x: FloatArray) -> FiniteLP:
    """The ordinary rows with one more column, the slack, which is maximized and at most 1; integers as in x."""
    lower, upper = core.column_lower.copy(), core.column_upper.copy()
    lower[core.integer] = upper[core.integer] = x[core.integer]
    return FiniteLP(
        maximize=True,
        cost=np.append(np.zeros(core.columns), 1.0),
        column_lower=np.append(lower, -np.inf),
        column_upper=np.append(upper, 1.0),
        matrix=sparse.csr_array(sparse.hstack([core.matrix, sparse.csr_array((len(core.row_lower), 1))])),
        row_lower=core.row_lower,
        row_upper=core.row_upper,
    )


def _add_rows(model: HighsModel, block: RowBlock, slack_column: int) -> None:
    columns = np.append(block.columns, slack_column)
    measure = _row_measure(block)
    for limit, sign in ((block.upper, 1.0), (-block.lower, -1.0)):
        kept = np.isfinite(limit)
        if kept.any():
            rows = np.column_stack([sign * block.matrix, measure])[kept]
            model.add_rows(columns, rows, np.full(len(rows), -np.inf), limit[kept])


def _row_measure(block: RowBlock) -> FloatArray:
    """Size of rows, limits and coefficients: what their slack is a share of."""
    limits = [np.where(np.isfinite(limit), np.abs(limit), 0.0) for limit in (block.lower, block.upper)]
    coefficients = np.abs(block.matrix).max(axis=1, initial=0.0)
    return np.maximum(np.maximum(*limits), np.minimum(coefficients, 1.0))


def ray_problem(problem: SemiInfiniteLP) -> SemiInfiniteLP:
    """The homogeneous problem, all limits at zero, over a unit box: its optimum is a ray, or zero."""
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
    return SemiInfiniteLP(rays, tuple(map(_homogeneous_family, problem.families)))


def _homogeneous_family(family: Family) -> Family:
    rows = _homogeneous(family.rows)
    if isinstance(family, CompactFamily) and family.declared is not None:
        return replace(family, rows=rows, declared=_homogeneous_family(family.declared))
    return replace(family, rows=rows)


def _homogeneous(rows: Rows) -> Rows:
    return rows.homogeneous() if isinstance(rows, AffineRows | TracedRows) else _Homogeneous(rows)


class _Homogeneous(Rows):
    """The coefficients of other rows with every limit at zero."""

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
