"""The stage loop of linear stages, without Python in it where numba is installed.

One source serves both: with numba (extra ``fast``) the functions below are compiled, without it they run as they
stand, on numpy. Only the few primitives at the top exist in two forms, because a loop that is fastest compiled is
slowest interpreted. Both give the same decisions.

Letters are the paper's: w the dual, C = Phi'a the projected column, D = Phi'd the budget of one arrival, B what is
left of the whole budget.
"""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._jit import HAS_NUMBA, jit
from osilp_pyomo.online.kernels.fitting import (
    RESERVE,
    SLACK,
    TAIL,
    USED_UP,
    fits_into,
    fits_one,
    is_next_to_nothing,
    is_nothing_one,
    left_beside,
    share_ahead,
)

# How a dual is updated.
FIXED, EUCLIDEAN, ENTROPY, TWO_STAGE = 0, 1, 2, 3
# What guards a decision: nothing, what remains of the resources that are priced, or of others.
NO_GUARD, OWN_GUARD, OTHER_GUARD = 0, 1, 2
# Why a decision is what it is.
PRICED, TIE, GUARDED, NULL, OVERRUN = 0, 1, 2, 3, 4
# |f - w'g| below this share of its terms is a tie.
TIE_SHARE = 1e-9
# Running numbers beyond this are taken for infinite.
LARGEST = 1e300

# Places in the array of a policy's running numbers.
SEEN, REWARDS, DISTANCES, LEVEL, PLACE = 0, 1, 2, 3, 4
NUMBERS = 5
# Places in the array of a policy's settings.
KIND, STEP, SCALE_FREE, REMAINING_TARGET, LEVELS, PER_LEVEL, REFINE_STEP, STAGE, ANYTIME = 0, 1, 2, 3, 4, 5, 6, 7, 8
PAYABLE = 9
SETTINGS = 10
# Arrivals that use more than so many times their budget could not pay the entropy's first dual.
SCARCE, SCARCER = 6.0, 1.5
# Which stages of the two-stage method run.
BOTH, ACCELERATE_ONLY, REFINE_ONLY = 0.0, 1.0, 2.0


# -- primitives in two forms --------------------------------------------------------------------------


def _inner_loop(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


def _inner_abs_loop(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for k in range(a.shape[0]):
        total += abs(a[k] * b[k])
    return total


def _distance_loop(a: FloatArray, share: float, b: FloatArray) -> float:
    """|share a - b|^2."""
    total = 0.0
    for k in range(a.shape[0]):
        difference = share * a[k] - b[k]
        total += difference * difference
    return total


def _add_loop(target: FloatArray, share: float, a: FloatArray) -> None:
    for k in range(a.shape[0]):
        target[k] += share * a[k]


def _room_loop(remaining: FloatArray, margins: FloatArray, ahead: float, used: FloatArray) -> float:
    """Which share of a use that does not fit does."""
    room = 1.0
    for k in range(used.shape[0]):
        reserve = ahead * margins[RESERVE, k]
        if not fits_one(used[k], remaining[k], margins[SLACK, k], reserve, margins[TAIL, k]):
            left = remaining[k] - reserve
            room = min(room, left / used[k] if left > USED_UP * margins[SLACK, k] else 0.0)
    return room


def _capped_loop(remaining: FloatArray, margins: FloatArray, share: float, used: FloatArray) -> float:
    """Which part of a use takes no more than a share of what remains of any resource, its tails left aside."""
    part = 1.0
    for k in range(used.shape[0]):
        if used[k] > share * remaining[k] and not is_nothing_one(used[k], margins[SLACK, k], margins[TAIL, k]):
            part = min(part, max(share * remaining[k], 0.0) / used[k])
    return part


def _fits_loop(remaining: FloatArray, margins: FloatArray, ahead: float, used: FloatArray) -> bool:
    for k in range(used.shape[0]):
        if not fits_one(used[k], remaining[k], margins[SLACK, k], ahead * margins[RESERVE, k], margins[TAIL, k]):
            return False
    return True


def _step_loop(dual: FloatArray, share: float, target: FloatArray, used: FloatArray, floor: FloatArray) -> None:
    """W <- max(w - share (target - used), floor)."""
    for k in range(dual.shape[0]):
        dual[k] = max(dual[k] - share * (target[k] - used[k]), floor[k])


def _inner_numpy(a: FloatArray, b: FloatArray) -> float:
    return float(a @ b)


def _inner_abs_numpy(a: FloatArray, b: FloatArray) -> float:
    return float(np.abs(a * b).sum())


def _distance_numpy(a: FloatArray, share: float, b: FloatArray) -> float:
    difference = share * a - b
    return float(difference @ difference)


def _add_numpy(target: FloatArray, share: float, a: FloatArray) -> None:
    target += share * a


def _room_numpy(remaining: FloatArray, margins: FloatArray, ahead: float, used: FloatArray) -> float:
    reserve = ahead * margins[RESERVE]
    over = ~fits_into(used, remaining, margins[SLACK], reserve, margins[TAIL])
    left = remaining - reserve
    left = np.where(left > USED_UP * margins[SLACK], left, 0.0)[over]
    return float((left / used[over]).min(initial=1.0))


def _capped_numpy(remaining: FloatArray, margins: FloatArray, share: float, used: FloatArray) -> float:
    over = (used > share * remaining) & ~is_next_to_nothing(used, margins[SLACK], margins[TAIL])
    return float((np.maximum(share * remaining[over], 0.0) / used[over]).min(initial=1.0))


def _fits_numpy(remaining: FloatArray, margins: FloatArray, ahead: float, used: FloatArray) -> bool:
    return bool(np.all(fits_into(used, remaining, margins[SLACK], ahead * margins[RESERVE], margins[TAIL])))


def _step_numpy(dual: FloatArray, share: float, target: FloatArray, used: FloatArray, floor: FloatArray) -> None:
    np.maximum(dual - share * (target - used), floor, out=dual)


if HAS_NUMBA:
    inner, inner_abs, distance = jit(_inner_loop), jit(_inner_abs_loop), jit(_distance_loop)
    add, room, fits, step = jit(_add_loop), jit(_room_loop), jit(_fits_loop), jit(_step_loop)
    capped = jit(_capped_loop)
else:
    inner, inner_abs, distance = _inner_numpy, _inner_abs_numpy, _distance_numpy
    add, room, fits, step, capped = _add_numpy, _room_numpy, _fits_numpy, _step_numpy, _capped_numpy


# -- one decision ---------------------------------------------------------------------------------------


@jit
def nearest_to_zero(low: float, high: float) -> float:
    """The number of [low, high] that is nearest to zero."""
    return min(max(0.0, low), high)


@jit
def choose(
    rewards: FloatArray,
    usage: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    options: bool,
    dual: FloatArray,
    fractions: FloatArray,
    x: FloatArray,
) -> int:
    """Maximize ``(rewards - usage @ w) @ x`` over a box, or over "at most one of the options"; write x.

    ``fractions`` says what to do on ties; nan means the value nearest to zero. Returns PRICED or TIE.
    """
    reason = PRICED
    best, best_value = -1, 0.0
    for j in range(rewards.shape[0]):
        margin = rewards[j] - inner(usage[j], dual)
        size = abs(rewards[j]) + inner_abs(usage[j], dual)
        tied = abs(margin) <= TIE_SHARE * size
        if options:
            x[j] = 0.0
            if not tied and margin * upper[j] > best_value:
                best, best_value = j, margin * upper[j]
        elif tied:
            reason = TIE
            x[j] = nearest_to_zero(lower[j], upper[j])
            if not np.isnan(fractions[j]):
                x[j] = lower[j] + fractions[j] * (upper[j] - lower[j])
        elif margin > 0:
            x[j] = upper[j]
        else:
            x[j] = lower[j]
    if options and best >= 0:
        x[best] = upper[best]
    return reason


@jit
def total_usage(usage: FloatArray, fixed: FloatArray, x: FloatArray, used: FloatArray) -> None:
    """Write ``fixed + x @ usage``."""
    used[:] = fixed
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            add(used, x[j], usage[j])


@jit
def fit_one(
    integer: FloatArray, remaining: FloatArray, margins: FloatArray, ahead: float, used: FloatArray, x: FloatArray
) -> int:
    """Cut the decision of one variable down to what remains: the best that fits, for its value is linear."""
    share = room(remaining, margins, ahead, used)
    x[0] = share * x[0]
    if integer[0] != 0.0:
        wanted = x[0] / share if share > 0.0 else 0.0
        x[0] = np.floor(x[0] + 1e-9) if x[0] > 0.0 else np.ceil(x[0] - 1e-9)
        # What is a whole number but for rounding may be one too many.
        if x[0] != 0.0 and not fits(remaining, margins, ahead, used * (x[0] / wanted)):
            x[0] -= 1.0 if x[0] > 0.0 else -1.0
    return NULL if x[0] == 0.0 else GUARDED


@jit
def fit_options(
    rewards: FloatArray,
    usage: FloatArray,
    rows: FloatArray,
    upper: FloatArray,
    dual: FloatArray,
    remaining: FloatArray,
    margins: FloatArray,
    ahead: float,
    x: FloatArray,
) -> int:
    """Take the best of the whole options that fit into what remains of ``rows``."""
    best, best_value = -1, 0.0
    for j in range(x.shape[0]):
        x[j] = 0.0
        value = (rewards[j] - inner(usage[j], dual)) * upper[j]
        if value > best_value and fits(remaining, margins, ahead, rows[j] * upper[j]):
            best, best_value = j, value
    if best < 0:
        return NULL
    x[best] = upper[best]
    return GUARDED


# -- how duals learn --------------------------------------------------------------------------------------


@jit
def onto_ball(dual: FloatArray, centre: FloatArray, radius: float, floor: FloatArray) -> None:
    """Project on the orthant and the ball together: w(mu) = max(floor, (y + mu c) / (1 + mu)).

    The paper projects on the ball of radius V_l around the last level's average (Algorithm 3, line 5, with the
    index mended); taking the two projections one after the other is not the projection on both.
    """
    if distance(np.maximum(dual, floor), 1.0, centre) <= radius * radius:
        dual[:] = np.maximum(dual, floor)
        return
    low, high = 0.0, 1.0
    while distance(np.maximum((dual + high * centre) / (1.0 + high), floor), 1.0, centre) > radius * radius:
        high *= 2.0
        if high > 1e18:
            break
    for _ in range(60):
        middle = 0.5 * (low + high)
        point = np.maximum((dual + middle * centre) / (1.0 + middle), floor)
        if distance(point, 1.0, centre) > radius * radius:
            low = middle
        else:
            high = middle
    dual[:] = np.maximum((dual + high * centre) / (1.0 + high), floor)


@jit
def look(rewards: FloatArray, usage: FloatArray, reach: FloatArray, budget: FloatArray, numbers: FloatArray) -> None:
    """Add an arrival to the running means of |r| and |C - D|^2 that make the steps scale-free."""
    largest, square = 0.0, 0.0
    for j in range(rewards.shape[0]):
        largest = max(largest, abs(rewards[j]) * reach[j])
        square += distance(usage[j], reach[j], budget)
    numbers[SEEN] += 1.0
    numbers[REWARDS] += largest
    numbers[DISTANCES] += square / rewards.shape[0]


@jit
def begin(settings: FloatArray, budget: FloatArray, numbers: FloatArray, dual: FloatArray) -> None:
    """The entropy's first dual, mean |r| / (q D_k): from 0, as printed, it would never move.

    Where arrivals use many times their budget nobody could pay that, and the smaller the budget, the longer it takes to
    fall. With PAYABLE it then begins where the use of an arrival costs about what it earns.
    """
    if settings[KIND] != ENTROPY or numbers[REWARDS] <= 0.0 or inner(dual, dual) > 0.0:
        return
    reward = numbers[REWARDS] / numbers[SEEN]
    spread = np.sqrt(numbers[DISTANCES] / numbers[SEEN] / dual.shape[0])
    if settings[PAYABLE] != 0.0 and spread > 0.0:
        share = np.sqrt(inner(budget, budget) / dual.shape[0]) / spread
        reward *= min(1.0, max((SCARCE * share) ** SCARCER, share))
    for k in range(dual.shape[0]):
        size = abs(budget[k]) if budget[k] != 0.0 else spread
        dual[k] = reward / (dual.shape[0] * size) if size > 0.0 else 0.0


@jit
def sizes(settings: FloatArray, budget: FloatArray, numbers: FloatArray) -> tuple[float, float]:
    """Size of a dual, mean|r| / |D|, and of a subgradient, rms|C - D|, as seen so far; (1, 1) as printed."""
    if settings[SCALE_FREE] == 0.0:
        return 1.0, 1.0
    spread = np.sqrt(numbers[DISTANCES] / max(numbers[SEEN], 1.0))
    wide = np.sqrt(inner(budget, budget))
    reward = numbers[REWARDS] / max(numbers[SEEN], 1.0)
    wide = wide if wide > 0.0 else spread
    if wide <= 0.0 or spread <= 0.0:
        return 0.0, 1.0
    return reward / wide, spread


@jit
def accelerating(settings: FloatArray, numbers: FloatArray) -> bool:
    """Whether the two-stage method is still in its first stage."""
    if settings[KIND] != TWO_STAGE or settings[STAGE] == REFINE_ONLY:
        return False
    return settings[STAGE] == ACCELERATE_ONLY or numbers[LEVEL] < settings[LEVELS]


@jit
def learn(
    settings: FloatArray,
    horizon: float,
    budget: FloatArray,
    target: FloatArray,
    floor: FloatArray,
    used: FloatArray,
    learner_used: FloatArray,
    dual: FloatArray,
    learner: FloatArray,
    centre: FloatArray,
    average: FloatArray,
    numbers: FloatArray,
) -> None:
    """One dual step after an arrival whose wanted decision used ``used`` of each resource."""
    kind = settings[KIND]
    if kind == FIXED:
        return
    width, spread = sizes(settings, budget, numbers)
    length = settings[STEP] / np.sqrt(numbers[SEEN] if settings[ANYTIME] != 0.0 else horizon)
    if kind == EUCLIDEAN:
        step(dual, length * width / spread, target, used, floor)
    elif kind == ENTROPY:
        share = length
        if settings[SCALE_FREE] != 0.0:
            share *= np.sqrt(dual.shape[0]) / spread
        for k in range(dual.shape[0]):
            # A factor beyond e^30 would never come back.
            dual[k] *= np.exp(-min(max(share * (target[k] - used[k]), -30.0), 30.0))
    elif accelerating(settings, numbers):
        step(dual, settings[STEP] * width / (spread * np.log(max(horizon, 3.0))), target, used, floor)
        halved = 0.5 ** numbers[LEVEL]
        learner[:] = learner - halved * width / (3.0 * spread) * (budget - learner_used)
        onto_ball(learner, centre, halved * width, floor)
        numbers[PLACE] += 1.0
        add(average, 1.0, learner)
        if numbers[PLACE] >= settings[PER_LEVEL]:
            centre[:] = average / numbers[PLACE]
            learner[:] = centre
            average[:] = 0.0
            numbers[PLACE] = 0.0
            numbers[LEVEL] += 1.0
            if settings[STAGE] == BOTH and numbers[LEVEL] >= settings[LEVELS]:
                dual[:] = centre
    else:
        step(dual, settings[REFINE_STEP] * width / (spread * horizon), target, used, floor)


# -- the loop -----------------------------------------------------------------------------------------------


@jit
def run(
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
    """Decide arrivals one after the other; the state arrays are changed, decisions are written.

    ``rewards`` (B, n), ``usage`` (B, n, R), ``fixed`` (B or 0, R), ``others`` (B or 0, n, M) with the use of other
    resources that are guarded, ``forced`` (B or 0, n) with what was really done, ``caps`` (B or 0) with the share of
    what remains of a resource that an arrival may take at most; ``beside`` (2, n or 0) has the neighbours of guarded
    points, where one of those may have been overrun. ``first`` is the number of arrivals met before. Returns the number
    of an arrival whose stage problem is unbounded, or -1; the state is then that before it.
    """
    count = rewards.shape[1]
    used, learner_used = np.zeros(dual.shape[0]), np.zeros(dual.shape[0])
    target, nothing = budget.copy(), np.zeros(dual.shape[0])
    other_used, other_nothing = np.zeros(other_remaining.shape[0]), np.zeros(other_remaining.shape[0])
    reach, x, other, before = np.empty(count), np.empty(count), np.empty(count), numbers.copy()
    undecided = np.full(count, np.nan)
    for t in range(rewards.shape[0]):
        idle = fixed[t] if fixed.shape[0] > 0 else nothing
        tied = fractions[t] if fractions.shape[0] > 0 else undecided
        for j in range(count):
            span = upper[t, j] - lower[t, j]
            reach[j] = span if np.isfinite(span) and span > 0.0 else 1.0
        before[:] = numbers
        look(rewards[t], usage[t], reach, budget, numbers)
        begin(settings, budget, numbers, dual)
        reason = choose(rewards[t], usage[t], lower[t], upper[t], options, dual, tied, x)
        for j in range(count):
            if not np.isfinite(x[j]):
                numbers[:] = before
                return t
        total_usage(usage[t], idle, x, used)
        if caps.shape[0] > 0 and caps[t] < 1.0:
            part = capped(remaining, margins, caps[t], used)
            if part < 1.0:
                x *= part
                total_usage(usage[t], idle, x, used)
        wanted[t] = x
        if settings[REMAINING_TARGET] != 0.0:
            target[:] = remaining / max(horizon - first - t, 1.0)
        # The learner's own response must come before the guard: both work on what was wanted.
        if accelerating(settings, numbers):
            choose(rewards[t], usage[t], lower[t], upper[t], options, learner, tied, other)
            total_usage(usage[t], idle, other, learner_used)
        ahead = share_ahead(horizon, first + t)
        if forced.shape[0] > 0:
            x[:] = forced[t]
        elif guard == OWN_GUARD:
            left = left_beside(remaining, margins[SLACK], beside) if beside.shape[1] > 0 else remaining
            if not fits(left, margins, ahead, used):
                if options:
                    reason = fit_options(rewards[t], usage[t], usage[t], upper[t], dual, left, margins, ahead, x)
                else:
                    reason = fit_one(integer, left, margins, ahead, used, x)
        elif guard == OTHER_GUARD:
            total_usage(others[t], other_nothing, x, other_used)
            left = (
                left_beside(other_remaining, other_margins[SLACK], beside) if beside.shape[1] > 0 else other_remaining
            )
            if not fits(left, other_margins, ahead, other_used):
                if options:
                    reason = fit_options(rewards[t], usage[t], others[t], upper[t], dual, left, other_margins, ahead, x)
                else:
                    reason = fit_one(integer, left, other_margins, ahead, other_used, x)
        learn(settings, horizon, budget, target, floor, used, learner_used, dual, learner, centre, average, numbers)
        total_usage(usage[t], idle, x, used)
        add(remaining, -1.0, used)
        if others.shape[0] > 0:
            for j in range(count):
                if x[j] != 0.0:
                    add(other_remaining, -x[j], others[t, j])
        taken[t] = x
        reasons[t] = reason
    return -1
