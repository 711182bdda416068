"""The LP of a sample of linear arrivals, around a dual that is known roughly: on few rows, or on many by exchange."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.lp.columns import DenseColumns
from osilp_pyomo.lp.models import HIGHS
from osilp_pyomo.lp.wide import ColumnAnswer, solve_whole, solve_wide
from osilp_pyomo.offline.search.scan import peaks_of

# Points that join the rows of an exact sample LP in one round, and rounds.
_ROWS_A_ROUND, _ROUNDS = 40, 60
# A violation, relative to the budget, that counts as none.
_TOLERANCE = 1e-7


def solve_sample(
    columns: DenseColumns, budget: FloatArray, floor: FloatArray, dual: FloatArray, solver: str
) -> ColumnAnswer | None:
    """Maximize ``values @ x`` over ``x @ matrix <= budget`` (``==`` where the floor is -inf) and bounds.

    None where that has no solution. The answer depends on the data and the dual it starts from only, not on a solver's
    memory, so that a run that was stopped and resumed goes on exactly as if it never was.
    """
    if solver == HIGHS:
        return solve_whole(columns, budget, floor)[1]
    answer = solve_wide([columns], budget, floor, dual)
    return None if answer.dual is None else ColumnAnswer(answer.dual, answer.decisions(columns, 0))


def solve_exact_sample(
    columns: DenseColumns, budget: FloatArray, floor: FloatArray, dual: FloatArray, solver: str
) -> ColumnAnswer | None:
    """The same with a row for every grid point; those that are violated join the LP (an exchange)."""
    points = columns.matrix
    rows = (dual != 0) | ~np.isfinite(floor)
    # Where use is negative the bound of a column may hold nothing; one point is as good a start as any.
    if not rows.any():
        rows[int(np.argmin(budget))] = True
    scale = np.maximum(np.abs(budget), np.median(np.abs(budget)))
    scale = np.where(scale > 0, scale, 1.0)
    answer = None
    for _ in range(_ROUNDS):
        some = replace(columns, matrix=np.ascontiguousarray(points[:, rows]))
        found = solve_sample(some, budget[rows], floor[rows], dual[rows], solver)
        if found is None:
            return None
        dual = np.zeros(len(budget))
        dual[rows] = found.dual
        answer = ColumnAnswer(dual, found.x)
        excess = (found.x @ points - budget) / scale
        excess[rows] = 0.0
        worst = peaks_of(excess, _TOLERANCE)[:_ROWS_A_ROUND]
        if not len(worst):
            break
        rows[worst] = True
    return answer
