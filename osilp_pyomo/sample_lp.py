"""The LP of a sample of linear arrivals: few rows, many columns, solved around a dual that is known roughly.

Columns far from their threshold r = w'C are fixed by the sign of r - w'C; HiGHS solves the LP of the others, and the
answer stands when no fixed column disagrees with the new dual. It depends on the data and the dual it starts from
only, not on a solver's memory, so that a run that was stopped and resumed goes on exactly as if it never was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from osilp_pyomo.domains import FloatArray
from osilp_pyomo.highs import HighsModel
from osilp_pyomo.problem import FiniteLP, IntArray

# Columns in the first LP: enough for the threshold to move, few enough for a fast one.
_BAND = 400
# Points that join the rows of an exact sample LP in one round, and rounds.
_ROWS_A_ROUND, _ROUNDS = 40, 60
# A violation, relative to the budget, that counts as none.
_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class SampleAnswer:
    """Dual of the rows, and the decisions of the columns; None where the LP has no solution."""

    dual: FloatArray
    x: FloatArray


def solve_sample(
    values: FloatArray,
    matrix: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray,
) -> SampleAnswer | None:
    """Maximize ``values @ x`` over ``x @ matrix <= budget`` (``==`` where the floor is -inf) and bounds."""
    band = _BAND + 20 * len(budget)
    unbounded = ~(np.isfinite(lower) & np.isfinite(upper))
    while True:
        margin = values - matrix @ dual
        work = np.ones(len(values), dtype=bool)
        if band < len(values):
            work[:] = unbounded
            work[np.argpartition(np.abs(margin), band)[:band]] = True
        fixed = np.where(work, 0.0, np.where(margin > 0, upper, lower))
        found = _solve(values[work], matrix[work], lower[work], upper[work], budget - fixed @ matrix, floor)
        if found is not None:
            after = values - matrix @ found.dual
            size = np.abs(values) + np.abs(matrix) @ np.abs(found.dual)
            wrong = ~work & (np.sign(after) * np.sign(margin) < 0) & (np.abs(after) > 1e-9 * size)
            if not wrong.any():
                fixed[work] = found.x
                return SampleAnswer(found.dual, fixed)
            dual = found.dual
        elif work.all():
            return None
        band *= 4


def _solve(
    values: FloatArray, matrix: FloatArray, lower: FloatArray, upper: FloatArray, budget: FloatArray, floor: FloatArray
) -> SampleAnswer | None:
    rows, columns = len(budget), len(values)
    lp = FiniteLP(
        True, values, 0.0, lower, upper, np.zeros(columns, dtype=bool), sparse.csr_array(matrix.T),
        np.where(np.isfinite(floor), -np.inf, budget), budget, [""] * columns, [""] * rows,
    )  # fmt: skip
    found = HighsModel(lp).solve()
    if found.x is None or found.row_duals is None:
        return None
    return SampleAnswer(np.maximum(found.row_duals, floor), found.x)


def peaks_of(excess: FloatArray, least: float) -> IntArray:
    """Rows whose excess is above ``least`` and above that of the rows beside them, the highest first.

    Grid points stand in their order along an axis: neighbours of a peak would be rows that say the same.
    """
    inner = np.concatenate([[-np.inf], excess, [-np.inf]])
    found = np.flatnonzero((excess > least) & (excess >= inner[:-2]) & (excess >= inner[2:]))
    return found[np.argsort(-excess[found], kind="stable")]


def solve_exact_sample(
    values: FloatArray,
    points: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray,
) -> SampleAnswer | None:
    """The same with a row for every grid point; those that are violated join the LP (an exchange)."""
    rows = (dual != 0) | ~np.isfinite(floor)
    # Where use is negative the bound of a column may hold nothing; one point is as good a start as any.
    if not rows.any():
        rows[int(np.argmin(budget))] = True
    scale = np.maximum(np.abs(budget), np.median(np.abs(budget)))
    scale = np.where(scale > 0, scale, 1.0)
    answer = None
    for _ in range(_ROUNDS):
        found = solve_sample(
            values, np.ascontiguousarray(points[:, rows]), lower, upper, budget[rows], floor[rows], dual[rows]
        )
        if found is None:
            return None
        dual = np.zeros(len(budget))
        dual[rows] = found.dual
        answer = SampleAnswer(dual, found.x)
        excess = (found.x @ points - budget) / scale
        excess[rows] = 0.0
        worst = peaks_of(excess, _TOLERANCE)[:_ROWS_A_ROUND]
        if not len(worst):
            break
        rows[worst] = True
    return answer
