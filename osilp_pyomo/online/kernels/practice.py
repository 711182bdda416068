"""The loop of a policy that goes through earlier arrivals again: decide, remember, practise.

A decision is made as in :mod:`linear`, at a price that is fixed while it is made. Then the learner, a dual of its own,
takes a subgradient step on this arrival and on each of some that were drawn from those remembered, and the price
follows the learner as a running mean. Both live at the points of a :class:`Spacing`, in units in which the budgets of
a row are 1 on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._jit import HAS_NUMBA, jit
from osilp_pyomo.online.kernels.linear import REWARDS, SEEN, nearest_to_zero, run, total_usage
from osilp_pyomo.online.kernels.single import run_single

# Places in the array of a policy's running numbers, beside those of the linear loop: steps taken, and the sum of the
# mean squares of (use - budget) at the points that are practised on.
STEPS, SPREADS = 3, 4
# Places in the array of the parameters of practising.
STEP, DECAY, WINDOW, LEAST_WINDOW, SCARCE, SCARCER = 0, 1, 2, 3, 4, 5
# The number of points beyond which steps grow with it, and by which power.
FEW_POINTS, ROUGHER = 128.0, 0.5


class Sample(NamedTuple):
    """Arrivals that are remembered, one in a place: rewards (N, n), use (N, n, P), bounds (N, n), and fixed use.

    ``idle`` (N or 0, P) is used whatever is decided.
    """

    rewards: FloatArray
    use: FloatArray
    lower: FloatArray
    upper: FloatArray
    idle: FloatArray


class Ground(NamedTuple):
    """Where prices are practised: points (P,) among all resources, the size of a budget there, and least prices."""

    points: IntArray
    scale: FloatArray
    floor: FloatArray
    budget: FloatArray


def _dot_loop(a: FloatArray, b: FloatArray) -> float:
    # Four sums side by side, because a processor adds faster than one sum can follow.
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    size = a.shape[0]
    whole = size - size % 4
    for k in range(0, whole, 4):
        first += a[k] * b[k]
        second += a[k + 1] * b[k + 1]
        third += a[k + 2] * b[k + 2]
        fourth += a[k + 3] * b[k + 3]
    for k in range(whole, size):
        first += a[k] * b[k]
    return (first + second) + (third + fourth)


def _move_loop(
    learner: FloatArray,
    mean: FloatArray,
    length: float,
    share: float,
    target: FloatArray,
    used: FloatArray,
    floor: FloatArray,
) -> None:
    """A subgradient step of the learner, cut off at the least prices, and the mean follows by a share."""
    for k in range(learner.shape[0]):
        moved = learner[k] - length * (target[k] - used[k])
        moved = max(moved, floor[k])
        learner[k] = moved
        mean[k] += share * (moved - mean[k])


def _dot_numpy(a: FloatArray, b: FloatArray) -> float:
    return float(a @ b)


def _move_numpy(
    learner: FloatArray,
    mean: FloatArray,
    length: float,
    share: float,
    target: FloatArray,
    used: FloatArray,
    floor: FloatArray,
) -> None:
    np.maximum(learner - length * (target - used), floor, out=learner)
    mean += share * (learner - mean)


if HAS_NUMBA:
    dot, move = jit(_dot_loop), jit(_move_loop)
else:
    dot, move = _dot_numpy, _move_numpy


@jit
def respond(
    rewards: FloatArray,
    use: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    options: bool,
    dual: FloatArray,
    x: FloatArray,
) -> bool:
    """Write what an arrival would want at a dual; False where that is not finite."""
    best, best_value = -1, 0.0
    for j in range(x.shape[0]):
        margin = rewards[j] - dot(use[j], dual)
        if options:
            x[j] = 0.0
            if margin * upper[j] > best_value:
                best, best_value = j, margin * upper[j]
        elif margin > 0.0:
            x[j] = upper[j]
        elif margin < 0.0:
            x[j] = lower[j]
        else:
            x[j] = nearest_to_zero(lower[j], upper[j])
        if not np.isfinite(x[j]):
            return False
    if best >= 0:
        x[best] = upper[best]
    return True


@jit
def remember(
    ground: Ground,
    sample: Sample,
    place: int,
    rewards: FloatArray,
    usage: FloatArray,
    fixed: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    numbers: FloatArray,
) -> None:
    """Put an arrival into its place of the sample, and count how far its uses lie from the budget of one arrival."""
    points, scale = ground.points, ground.scale
    sample.rewards[place] = rewards
    sample.lower[place] = lower
    sample.upper[place] = upper
    square = 0.0
    for j in range(rewards.shape[0]):
        span = upper[j] - lower[j]
        reach = span if np.isfinite(span) and span > 0.0 else 1.0
        sample.use[place, j] = usage[j][points] / scale
        away = reach * sample.use[place, j] - ground.budget
        square += dot(away, away)
    if sample.idle.shape[0] > 0:
        sample.idle[place] = fixed[points] / scale
    numbers[SPREADS] += square / (rewards.shape[0] * max(points.shape[0], 1))


@jit
def practise(
    parameters: FloatArray,
    ground: Ground,
    sample: Sample,
    place: int,
    drawn: IntArray,
    options: bool,
    left: float,
    remaining: FloatArray,
    dual: FloatArray,
    learner: FloatArray,
    numbers: FloatArray,
) -> None:
    """Steps on the arrival in a place of the sample and on those drawn; ``left`` arrivals are still to come.

    ``dual`` and ``learner`` are those of all resources; they are zero but at the points of the ground.
    """
    points, scale = ground.points, ground.scale
    size, count = points.shape[0], sample.rewards.shape[1]
    seen = max(numbers[SEEN], 1.0)
    # The size of a dual over that of a subgradient, in the units of the ground.
    budget, spread = np.sqrt(dot(ground.budget, ground.budget)), np.sqrt(size * numbers[SPREADS] / seen)
    far = budget * spread
    # A dual stands on a few points however many there are, so that it is longer than one spread over all of them.
    step = parameters[STEP] * max(1.0, size / FEW_POINTS) ** ROUGHER
    # Where an arrival uses many times its budget, few are served, and a dual is no larger than what one of them earns
    # over what it uses: a longer step would price out all others until the budgets of very many have paid for it. As
    # few of the arrivals gone through say what to serve, steps are shorter still.
    step *= min(1.0, parameters[SCARCE] * budget / spread) ** parameters[SCARCER] if spread > 0.0 else 1.0
    unit = step * numbers[REWARDS] / seen / far if far > 0.0 else 0.0
    window = max(parameters[LEAST_WINDOW], parameters[WINDOW] * min(seen, left + 1.0))
    share = 1.0 / (window * (drawn.shape[0] + 1.0))
    target = remaining[points] / scale / max(left, 1.0)
    for k in range(size):
        # Nothing is left of what is overrun; what a row needs is a budget below zero.
        if ground.budget[k] >= 0.0:
            target[k] = max(target[k], 0.0)
    mind, mean = learner[points] * scale, dual[points] * scale
    x, used, nothing = np.zeros(count), np.zeros(size), np.zeros(size)
    for j in range(drawn.shape[0] + 1):
        i = place if j == 0 else drawn[j - 1]
        numbers[STEPS] += 1.0
        if not respond(sample.rewards[i], sample.use[i], sample.lower[i], sample.upper[i], options, mind, x):
            continue
        idle = sample.idle[i] if sample.idle.shape[0] > 0 else nothing
        total_usage(sample.use[i], idle, x, used)
        # Before there are as many steps as the mean is to be of, it is that of all of them.
        portion = max(share, 1.0 / numbers[STEPS])
        move(mind, mean, unit / numbers[STEPS] ** parameters[DECAY], portion, target, used, ground.floor)
    learner[points] = mind / scale
    dual[points] = mean / scale


@jit
def run_practising(
    parameters: FloatArray,
    ground: Ground,
    sample: Sample,
    places: IntArray,
    drawn: IntArray,
    one_of_options: bool,
    single: bool,
    settings: FloatArray,
    first: int,
    horizon: float,
    budget: FloatArray,
    floor: FloatArray,
    rewards: FloatArray,
    usage: FloatArray,
    fixed: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    integer: FloatArray,
    options: bool,
    fractions: FloatArray,
    caps: FloatArray,
    forced: FloatArray,
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
    """Decide arrivals one after the other and practise after each; from ``settings`` on as in :func:`linear.run`.

    ``places`` (B,) says where in the sample each arrival is remembered, ``drawn`` (B, K) which places it is followed
    by; with ``single`` the stages are such as :func:`single.run_single` takes.
    """
    for t in range(rewards.shape[0]):
        one = slice(t, t + 1)
        if single:
            stopped = run_single(
                settings, first + t, horizon, budget, floor, rewards[one], usage[one], lower[one], upper[one],
                integer[0] != 0.0, caps[one], guard, beside, others[one], margins, other_margins, remaining,
                other_remaining, dual, learner, centre, average, numbers, wanted[one], taken[one], reasons[one],
            )  # fmt: skip
        else:
            stopped = run(
                settings, first + t, horizon, budget, floor, rewards[one], usage[one], fixed[one], lower[one],
                upper[one], integer, options, fractions[one], caps[one], forced[one], guard, beside, others[one],
                margins, other_margins, remaining, other_remaining, dual, learner, centre, average, numbers,
                wanted[one], taken[one], reasons[one],
            )  # fmt: skip
        if stopped >= 0:
            return t
        idle = fixed[t] if fixed.shape[0] > 0 else floor
        remember(ground, sample, places[t], rewards[t], usage[t], idle, lower[t], upper[t], numbers)
        left = horizon - first - t - 1.0
        practise(
            parameters, ground, sample, places[t], drawn[t], one_of_options, left, remaining, dual, learner, numbers
        )  # fmt: skip
    return -1
