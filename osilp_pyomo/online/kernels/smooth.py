"""The stage loop of smooth stages with one decision: as in ``linear.py``, with Newton in place of a threshold.

The loop is made for the formulas of one program. In plain Python it serves single steps; for long replays it is
compiled by numba, which takes a few seconds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._jit import just_in_time
from osilp_pyomo.online.kernels.fitting import SLACK, share_ahead
from osilp_pyomo.online.kernels.linear import (
    GUARDED,
    NO_GUARD,
    NULL,
    OWN_GUARD,
    PRICED,
    REMAINING_TARGET,
    accelerating,
    add,
    begin,
    fits,
    learn,
    look,
    room,
    total_usage,
)

ITERATIONS = 100
# The bracket of a variable without a bound grows up to this.
FAR = 1e12
# A second derivative above this share of the first, and of itself, is no rounding: the stage is not concave.
BENDS = 1e-8


def make_newton(slope: Callable[..., Any], compile_it: bool) -> Callable[..., float]:
    """``newton(theta, p, low, high)``: the zero of a decreasing derivative; nan where arrays must have a look."""

    def newton(theta: Any, p: Any, low: float, high: float) -> float:
        if low >= high:
            return low
        left, right = low, high
        if left == -math.inf:
            left = min(-1.0, right - 1.0)
        if right == math.inf:
            right = max(1.0, left + 1.0)
        # The ends decide whether there is a zero inside at all.
        first, second = slope(theta, p, left)
        if second > BENDS * (1.0 + abs(second)) and second > BENDS * abs(first):
            return math.nan
        while low == -math.inf and first < 0.0 and left > -FAR:
            left, right = 2.0 * left, left
            first, second = slope(theta, p, left)
        if low > -math.inf and first <= 0.0:
            return low
        if not first >= 0.0:
            return math.nan
        first, second = slope(theta, p, right)
        if second > BENDS * (1.0 + abs(second)) and second > BENDS * abs(first):
            return math.nan
        while high == math.inf and first > 0.0 and right < FAR:
            left, right = right, 2.0 * right
            first, second = slope(theta, p, right)
        if high < math.inf and first >= 0.0:
            return high
        if not first <= 0.0:
            return math.nan
        x = 0.5 * (left + right)
        last, before = right - left, right - left
        for _ in range(ITERATIONS):
            first, second = slope(theta, p, x)
            if first != first or (second > BENDS * (1.0 + abs(second)) and second > BENDS * abs(first)):
                return math.nan
            if first > 0.0:
                left = x
            elif first < 0.0:
                right = x
            else:
                return x
            moved = x - first / second if second < 0.0 else 0.5 * (left + right)
            # Across a kink Newton goes to and fro: steps that do not get shorter are replaced by bisections.
            if not (left <= moved and moved <= right) or abs(moved - x) > 0.5 * before:
                moved = 0.5 * (left + right)
            last, before = abs(moved - x), last
            if last <= 1e-13 * (1.0 + abs(x)):
                return moved
            x = moved
        return math.nan

    if compile_it:
        return just_in_time(newton)

    def careful(theta: Any, p: Any, low: float, high: float) -> float:
        try:
            return newton(theta, p, low, high)
        except (ValueError, ZeroDivisionError, OverflowError):
            return math.nan

    return careful


def make_run(newton: Callable[..., float], values: Callable[..., Any], compile_it: bool) -> Callable[..., int]:
    """The loop over arrivals with one smooth decision; arguments as in :func:`kernels.run`."""

    def run(
        settings: FloatArray,
        first: int,
        horizon: float,
        budget: FloatArray,
        floor: FloatArray,
        theta: FloatArray,
        rewards: FloatArray,
        usage: FloatArray,
        fixed: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        forced: FloatArray,
        guard: int,
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
        gained: FloatArray,
    ) -> int:
        count = rewards.shape[1]
        used, learner_used = np.zeros(dual.shape[0]), np.zeros(dual.shape[0])
        target, nothing = budget.copy(), np.zeros(dual.shape[0])
        other_used, other_nothing = np.zeros(other_remaining.shape[0]), np.zeros(other_remaining.shape[0])
        h, reach, before = np.zeros(count), np.zeros(count), numbers.copy()
        for t in range(rewards.shape[0]):
            idle = fixed[t] if fixed.shape[0] > 0 else nothing
            before[:] = numbers
            data, low, high = theta[t], lower[t, 0], upper[t, 0]
            start = low if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0
            end = high if math.isfinite(high - start) and high > start else start + 1.0
            if values(data, end, reach) + values(data, start, h) > 0:
                return t
            for k in range(count):
                reach[k] = abs(reach[k] - h[k]) if math.isfinite(reach[k] - h[k]) else 1.0
            look(rewards[t], usage[t], reach, budget, numbers)
            begin(settings, budget, numbers, dual)
            x = newton(data, rewards[t] - usage[t] @ dual, low, high)
            other = x
            if accelerating(settings, numbers):
                other = newton(data, rewards[t] - usage[t] @ learner, low, high)
            if not math.isfinite(x) or not math.isfinite(other):
                numbers[:] = before
                return t
            if values(data, other, h) > 0:
                numbers[:] = before
                return t
            total_usage(usage[t], idle, h, learner_used)
            if other == x:
                used[:] = learner_used
            else:
                if values(data, x, h) > 0:
                    numbers[:] = before
                    return t
                total_usage(usage[t], idle, h, used)
            wanted[t, 0] = x
            reason, changed = PRICED, False
            if settings[REMAINING_TARGET] != 0.0:
                target[:] = remaining / max(horizon - first - t, 1.0)
            if forced.shape[0] > 0:
                x, changed = forced[t, 0], True
            elif guard != NO_GUARD:
                own = guard == OWN_GUARD
                ahead = share_ahead(horizon, first + t)
                if not own:
                    total_usage(others[t], other_nothing, h, other_used)
                if not (
                    fits(remaining, margins, ahead, used)
                    if own
                    else fits(other_remaining, other_margins, ahead, other_used)
                ):
                    # Use is convex and nothing is used at 0: what fits is an interval from 0.
                    inside, outside, changed = 0.0, x, True
                    room_left = (
                        room(remaining, margins, ahead, used)
                        if own
                        else room(other_remaining, other_margins, ahead, other_used)
                    )
                    for _ in range(60 if room_left > 0.0 else 0):
                        middle = 0.5 * (inside + outside)
                        values(data, middle, h)
                        if own:
                            total_usage(usage[t], idle, h, learner_used)
                            good = fits(remaining - margins[SLACK], margins, ahead, learner_used)
                        else:
                            total_usage(others[t], other_nothing, h, other_used)
                            good = fits(other_remaining - other_margins[SLACK], other_margins, ahead, other_used)
                        if good:
                            inside = middle
                        else:
                            outside = middle
                    if own:
                        # The learner's use was overwritten; it is needed below.
                        values(data, other, h)
                        total_usage(usage[t], idle, h, learner_used)
                    x = inside
                    reason = NULL if x == 0.0 else GUARDED
            learn(
                settings, horizon, budget, target, floor, used, learner_used, dual, learner, centre, average, numbers
            )  # fmt: skip
            if changed:
                values(data, x, h)
                total_usage(usage[t], idle, h, used)
            add(remaining, -1.0, used)
            if others.shape[0] > 0:
                for k in range(count):
                    add(other_remaining, -h[k], others[t, k])
            taken[t, 0] = x
            reasons[t] = reason
            gained[t] = 0.0
            for k in range(count):
                gained[t] += rewards[t, k] * h[k]
        return -1

    return just_in_time(run) if compile_it else run


def make_values(values: Callable[..., int], compile_it: bool) -> Callable[..., int]:
    """``values(theta, x, out)`` writes all functions of the decision; 1 where one of them has no value."""
    if compile_it:
        return just_in_time(values)

    def careful(theta: Any, x: float, out: FloatArray) -> int:
        try:
            return values(theta, x, out)
        except (ValueError, ZeroDivisionError, OverflowError):
            return 1

    return careful
