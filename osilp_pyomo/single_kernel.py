"""The stage loop of one bounded linear decision, number by number.

The same decisions as :func:`kernels.run`, four times as fast where it is compiled, because nothing is passed around.
Interpreted it would be slower, so it is not used there.
"""

from __future__ import annotations

import numpy as np

from osilp_pyomo.compiling import compiled
from osilp_pyomo.domains import FloatArray
from osilp_pyomo.kernels import (
    ANYTIME,
    DISTANCES,
    ENTROPY,
    EUCLIDEAN,
    FIXED,
    GUARDED,
    KIND,
    NO_GUARD,
    NULL,
    OVERRUN,
    OWN_GUARD,
    PRICED,
    REMAINING_TARGET,
    REWARDS,
    SCALE_FREE,
    SEEN,
    STEP,
    TIE,
    TIE_SHARE,
    USED_UP,
    begin,
    nearest_to_zero,
    sizes,
)


@compiled
def share_that_fits(rows: FloatArray, t: int, x: float, remaining: FloatArray, slack: FloatArray) -> float:
    """Which share of the decision x of arrival t fits; 1 where all of it does."""
    share = 1.0
    for k in range(remaining.shape[0]):
        use = x * rows[t, 0, k]
        if use > slack[k] and remaining[k] >= -OVERRUN * slack[k] and use > remaining[k] + slack[k]:
            share = min(share, remaining[k] / use if remaining[k] > USED_UP * slack[k] else 0.0)
    return share


@compiled
def run_single(
    settings: FloatArray,
    first: int,
    horizon: float,
    budget: FloatArray,
    floor: FloatArray,
    rewards: FloatArray,
    usage: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    whole: bool,
    guard: int,
    others: FloatArray,
    slack: FloatArray,
    other_slack: FloatArray,
    remaining: FloatArray,
    other_remaining: FloatArray,
    dual: FloatArray,
    numbers: FloatArray,
    wanted: FloatArray,
    taken: FloatArray,
    reasons: FloatArray,
) -> int:
    """Decide arrivals one after the other by a policy with one dual; arguments as in :func:`kernels.run`."""
    size = dual.shape[0]
    kind, remaining_target = settings[KIND], settings[REMAINING_TARGET] != 0.0
    for t in range(rewards.shape[0]):
        r, low, high = rewards[t, 0], lower[t, 0], upper[t, 0]
        reach = high - low if high > low else 1.0
        square = 0.0
        for k in range(size):
            difference = reach * usage[t, 0, k] - budget[k]
            square += difference * difference
        numbers[SEEN] += 1.0
        numbers[REWARDS] += abs(r) * reach
        numbers[DISTANCES] += square
        if kind == ENTROPY:
            begin(settings, budget, numbers, dual)
        cost, terms = 0.0, 0.0
        for k in range(size):
            part = usage[t, 0, k] * dual[k]
            cost += part
            terms += abs(part)
        margin, reason = r - cost, PRICED
        if abs(margin) <= TIE_SHARE * (abs(r) + terms):
            x, reason = nearest_to_zero(low, high), TIE
        else:
            x = high if margin > 0 else low
        y = x
        if guard != NO_GUARD and x != 0.0:
            if guard == OWN_GUARD:
                share = share_that_fits(usage, t, x, remaining, slack)
            else:
                share = share_that_fits(others, t, x, other_remaining, other_slack)
            if share < 1.0:
                y = share * x
                if whole:
                    y = np.floor(y + 1e-9) if y > 0.0 else np.ceil(y - 1e-9)
                reason = NULL if y == 0.0 else GUARDED
        if kind != FIXED:
            width, spread = sizes(settings, budget, numbers)
            length = settings[STEP] / np.sqrt(numbers[SEEN] if settings[ANYTIME] != 0.0 else horizon)
            left = max(horizon - first - t, 1.0)
            if kind == EUCLIDEAN:
                length = length * width / spread
                for k in range(size):
                    target = remaining[k] / left if remaining_target else budget[k]
                    dual[k] = max(dual[k] - length * (target - x * usage[t, 0, k]), floor[k])
            else:
                if settings[SCALE_FREE] != 0.0:
                    length *= np.sqrt(size) / spread
                for k in range(size):
                    target = remaining[k] / left if remaining_target else budget[k]
                    dual[k] *= np.exp(-min(max(length * (target - x * usage[t, 0, k]), -30.0), 30.0))
        if y != 0.0:
            for k in range(size):
                remaining[k] -= y * usage[t, 0, k]
            if others.shape[0] > 0:
                for k in range(other_remaining.shape[0]):
                    other_remaining[k] -= y * others[t, 0, k]
        wanted[t, 0] = x
        taken[t, 0] = y
        reasons[t] = reason
    return -1
