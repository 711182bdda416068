"""What fits into what is left of a budget: the one definition, for all loops and stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._jit import HAS_NUMBA, jit

# Places in the array of a budget's margins: what is left may fall below zero by the slack; a reserve, which shrinks
# with the arrivals ahead, is kept for uses that are no larger than the tail.
SLACK, RESERVE, TAIL = 0, 1, 2
# The slack as a share of the budget: what rounding leaves.
BUDGET_ROUNDING = 1e-12
# The reserve before the first arrival as a share of the budget, and the shortest horizon that needs one.
BUDGET_RESERVE, LONG = 1e-3, 100
# Where every arrival must be served, this share of a budget is given out no faster than arrivals come; so many uses,
# and at most this share, are kept to the end for arrivals that have no other choice.
PACED, KEPT_USES, MOST_KEPT = 0.9, 3.0, 0.05
# Uses below this share of the slack count for nothing: thousand million of them are less than one slack.
NEGLIGIBLE = 1e-9
# A row with less than this many slacks left counts as used up: what fits into less would be decided by rounding.
USED_UP = 1000.0

# A point with less than minus this many slacks left was overrun: so far below zero rounding does not lead.
OVERRUN = 2.0


def make_margins(total: FloatArray, size: Any, horizon: int, reserve: float = BUDGET_RESERVE) -> FloatArray:
    """Margins (3, R) of budgets, measured by the size of the row that they belong to.

    Kernels reach everywhere. If a point could be used up to its last bit, whatever uses a billionth of it would be
    refused from then on, however far away it is. So a little is kept for such tails: as much as all arrivals ahead can
    take together, if each takes no more than the tail, a thousandth of its share of the budget. Nothing of it is left
    unused at the end.
    """
    slack = BUDGET_ROUNDING * np.maximum(np.abs(total), size)
    kept = (reserve if horizon >= LONG else 0.0) * np.maximum(total, 0.0)
    return np.stack([slack, kept, np.maximum(slack, kept) / horizon])


def nothing(slack: FloatArray, horizon: int) -> FloatArray:
    """Uses up to this are none: those of all arrivals together stay within the slack."""
    return np.maximum(1.0 / horizon, NEGLIGIBLE) * slack


def fits_into(use: Any, left: Any, slack: Any, reserve: Any, tail: Any) -> Any:
    """Whether a use of resources fits into what is left of them; numbers or arrays.

    What leaves the reserve does, and what is no larger than the tail, or uses exactly what is left, as the last of
    whole units does. Into a resource that was overrun before, by a smaller budget or by what was really done, nothing
    fits that uses more of it; and what is no number fits nowhere.
    """
    within = (use <= left + slack) & ((use <= tail) | (use >= left - slack))
    return (use <= NEGLIGIBLE * slack) | (use <= left - reserve + slack) | within


def is_next_to_nothing(use: Any, slack: Any, tail: Any) -> Any:
    """Whether a use is nothing or no more than a tail, which no caution is about; numbers or arrays."""
    return (use <= NEGLIGIBLE * slack) | (use <= tail)


def _left_beside_loop(left: FloatArray, slack: FloatArray, beside: IntArray) -> FloatArray:
    """What is left at points, and no more than at a neighbour that was overrun; what is infinite stays so.

    ``beside`` (2, n) are the neighbours of the first n points, themselves where they have none. Why is told in
    ``stages/between.py``.
    """
    result = left.copy()
    for k in range(beside.shape[1]):
        for j in (beside[0, k], beside[1, k]):
            if left[j] < -OVERRUN * slack[j] and left[j] < result[k] and left[k] < np.inf:
                result[k] = left[j]
    return result


def _left_beside_numpy(left: FloatArray, slack: FloatArray, beside: IntArray) -> FloatArray:
    result, count = left.copy(), beside.shape[1]
    overrun = np.where(left < -OVERRUN * slack, left, np.inf)
    np.minimum(left[:count], overrun[beside].min(axis=0), out=result[:count], where=left[:count] < np.inf)
    return result


left_beside = jit(_left_beside_loop) if HAS_NUMBA else _left_beside_numpy
fits_one, is_nothing_one = jit(fits_into), jit(is_next_to_nothing)


@jit
def share_ahead(horizon: float, met: int) -> float:
    """Which share of all arrivals comes after the next one."""
    return max(horizon - met - 1.0, 0.0) / horizon
