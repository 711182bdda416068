"""The stage loop of one bounded linear decision, number by number.

The same decisions as :func:`kernels.run`, four times as fast where it is compiled, because nothing is passed around.
Interpreted it would be slower, so it is not used there.
"""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._jit import jit
from osilp_pyomo.online.kernels.fitting import (
    RESERVE,
    SLACK,
    TAIL,
    USED_UP,
    fits_one,
    is_nothing_one,
    left_beside,
    share_ahead,
)
from osilp_pyomo.online.kernels.linear import (
    ANYTIME,
    DISTANCES,
    ENTROPY,
    FIXED,
    GUARDED,
    KIND,
    LARGEST,
    NO_GUARD,
    NULL,
    OWN_GUARD,
    PRICED,
    REFINE_STEP,
    REMAINING_TARGET,
    REWARDS,
    SCALE_FREE,
    SEEN,
    STEP,
    TIE,
    TIE_SHARE,
    TWO_STAGE,
    accelerating,
    begin,
    learn,
    nearest_to_zero,
    sizes,
)


@jit
def share_that_fits(
    rows: FloatArray, t: int, x: float, remaining: FloatArray, margins: FloatArray, ahead: float
) -> float:
    """Which share of the decision x of arrival t fits; 1 where all of it does."""
    share = 1.0
    for k in range(remaining.shape[0]):
        use = x * rows[t, 0, k]
        reserve = ahead * margins[RESERVE, k]
        if not fits_one(use, remaining[k], margins[SLACK, k], reserve, margins[TAIL, k]):
            left = remaining[k] - reserve
            share = min(share, left / use if left > USED_UP * margins[SLACK, k] else 0.0)
    return share


@jit
def share_within(rows: FloatArray, t: int, x: float, remaining: FloatArray, margins: FloatArray, cap: float) -> float:
    """Which part of the decision x of arrival t takes no more than a share of what remains, tails left aside."""
    part = 1.0
    for k in range(remaining.shape[0]):
        use = x * rows[t, 0, k]
        if use > cap * remaining[k] and not is_nothing_one(use, margins[SLACK, k], margins[TAIL, k]):
            part = min(part, max(cap * remaining[k], 0.0) / use)
    return part


@jit
def wanted_at(rows: FloatArray, t: int, reward: float, low: float, high: float, dual: FloatArray) -> tuple[float, int]:
    """What arrival t wants at a dual, and why."""
    cost, terms = 0.0, 0.0
    for k in range(dual.shape[0]):
        part = rows[t, 0, k] * dual[k]
        cost += part
        terms += abs(part)
    margin = reward - cost
    if abs(margin) <= TIE_SHARE * (abs(reward) + terms):
        return nearest_to_zero(low, high), TIE
    return (high if margin > 0 else low), PRICED


@jit
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
    caps: FloatArray,
    guard: int,
    beside: IntArray,
    others: FloatArray,
    margins: FloatArray,
    other_margins: FloatArray,
    remaining: FloatArray,
    other_remaining: FloatArray,
    dual: FloatArray,
    learner: FloatArray,
    centre: FloatArray,
    average: FloatArray,
    numbers: FloatArray,
    wanted: FloatArray,
    taken: FloatArray,
    reasons: FloatArray,
) -> int:
    """Decide arrivals one after the other; arguments as in :func:`kernels.run`.

    Returns the number of an arrival after which a running number is not finite, or -1.
    """
    size = dual.shape[0]
    kind, remaining_target = settings[KIND], settings[REMAINING_TARGET] != 0.0
    for t in range(rewards.shape[0]):
        r, low, high = rewards[t, 0], lower[t, 0], upper[t, 0]
        reach = high - low if high > low else 1.0
        square, check = 0.0, 0.0
        for k in range(size):
            difference = reach * usage[t, 0, k] - budget[k]
            square += difference * difference
        numbers[SEEN] += 1.0
        numbers[REWARDS] += abs(r) * reach
        numbers[DISTANCES] += square
        if kind == ENTROPY:
            begin(settings, budget, numbers, dual)
        x, reason = wanted_at(usage, t, r, low, high, dual)
        if caps.shape[0] > 0 and caps[t] < 1.0:
            x *= share_within(usage, t, x, remaining, margins, caps[t])
        y = x
        if guard != NO_GUARD and x != 0.0:
            ahead = share_ahead(horizon, first + t)
            left_over, kept = (remaining, margins) if guard == OWN_GUARD else (other_remaining, other_margins)
            if beside.shape[1] > 0:
                left_over = left_beside(left_over, kept[SLACK], beside)
            if guard == OWN_GUARD:
                share = share_that_fits(usage, t, x, left_over, margins, ahead)
            else:
                share = share_that_fits(others, t, x, left_over, other_margins, ahead)
            if share < 1.0:
                y = share * x
                if whole:
                    y = np.floor(y + 1e-9) if y > 0.0 else np.ceil(y - 1e-9)
                    # What is a whole number but for rounding may be one too many.
                    if guard == OWN_GUARD:
                        share = share_that_fits(usage, t, y, left_over, margins, ahead)
                    else:
                        share = share_that_fits(others, t, y, left_over, other_margins, ahead)
                    if y != 0.0 and share < 1.0:
                        y -= 1.0 if y > 0.0 else -1.0
                reason = NULL if y == 0.0 else GUARDED
        if kind == TWO_STAGE and accelerating(settings, numbers):
            # A few arrivals of many, so what they allocate does not matter.
            own = wanted_at(usage, t, r, low, high, learner)[0]
            learn(
                settings, horizon, budget, budget, floor, x * usage[t, 0], own * usage[t, 0], dual, learner, centre,
                average, numbers,
            )  # fmt: skip
        elif kind != FIXED:
            width, spread = sizes(settings, budget, numbers)
            length = settings[STEP] / np.sqrt(numbers[SEEN] if settings[ANYTIME] != 0.0 else horizon)
            left = max(horizon - first - t, 1.0)
            if kind != ENTROPY:
                if kind == TWO_STAGE:
                    length = settings[REFINE_STEP] * width / (spread * horizon)
                else:
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
                    check += abs(other_remaining[k])
        wanted[t, 0] = x
        taken[t, 0] = y
        reasons[t] = reason
        check += numbers[REWARDS] + numbers[DISTANCES]
        for k in range(size):
            check += abs(dual[k]) + abs(remaining[k])
        if not check < LARGEST:
            return t
    return -1
