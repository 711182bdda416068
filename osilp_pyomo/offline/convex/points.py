"""Points to begin at, and points with room in every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.lp.conic import ConeProgram, solve_cones
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.convex.newton import Look, Newton

# Points that are drawn where all simple ones fail, and how far from zero.
_DRAWN, _SIZES = 40, (1.0, 0.1, 10.0)
# Linear programs for the largest room, and the share of their room that a point must have.
_ROUNDS, _SHARE = 30, 0.25
# How often a point is moved towards room, and by what more than was needed at first.
_MOVES, _FARTHER = 4, 1.0 + 1e-9
# What moving there may cost of the objective, relative to 1 + its size.
_CHEAP = 1e-9
# Values this small beside the largest are zero.
_TIDY = 1e-13
# A violation below this share of a row's size is rounding.
_ROUNDING = 1e-15


def start_of(newton: Newton, given: FloatArray, filled: Callable[[FloatArray], FloatArray]) -> Look | str:
    """What is seen at a point at which all functions have values; a status where ordinary rows allow none.

    ``filled`` gives columns that stand for terms the values of those.

    Raises
    ------
    DataError
        No such point is found.
    """
    core, trouble = newton.core, None
    given = np.concatenate([given, np.full(newton.core.columns - len(given), np.nan)])
    for x in _candidates(core, given):
        near = _nearest(core, x)
        if isinstance(near, str):
            return near
        for tried in (near, x) if core.violation(x) <= 0 else (near,):
            whole = filled(tried)
            look = newton.look(whole) if np.all(np.isfinite(whole)) else None
            if look is not None:
                return look
        if trouble is None:
            trouble = _trouble(newton, near)
    raise DataError(
        f"{trouble or 'Its functions'} have no value at any of the values that were tried; give the variables bounds, "
        "or initial values, at which they are defined."
    )


def _trouble(newton: Newton, x: FloatArray) -> str | None:
    """Whose function has no value at x."""
    with np.errstate(all="ignore"):
        value, gradient = newton.gradient(x)
    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
        return "The functions of the objective"
    for source in newton.sources:
        try:
            source.worst(x)
        except DataError:
            return f"The functions of '{source.name}'"
    return None


def _candidates(core: FiniteLP, given: FloatArray) -> Iterator[FloatArray]:
    """Values to begin with: those of the model, the middle of the bounds, and others."""
    low, high = core.column_lower, core.column_upper
    with np.errstate(all="ignore"):
        middle = np.where(
            np.isfinite(low) & np.isfinite(high),
            (low + high) / 2,
            np.where(np.isfinite(low), low + 1, np.where(np.isfinite(high), high - 1, 0.0)),
        )
    yield np.clip(np.where(np.isfinite(given), given, middle), low, high)
    yield middle
    free = ~np.isfinite(low) & ~np.isfinite(high)
    yield np.where(free, 1.0, middle)
    rng = np.random.default_rng(20260)
    down = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2, -1.0))
    up = np.where(np.isfinite(high), high, down + 2)
    for k in range(_DRAWN):
        drawn = down + rng.random(len(low)) * (up - down)
        yield np.where(free, drawn * _SIZES[k % len(_SIZES)], drawn)


def _nearest(core: FiniteLP, x: FloatArray) -> FloatArray | str:
    """The point of ordinary rows and bounds that is nearest to x, a little inside; a status where there is none."""
    if core.violation(x) <= 0:
        return x
    program = replace(core, cost=-x, offset=0.0)
    found = solve_cones(ConeProgram(program, quadratic=sparse.csr_array(np.eye(core.columns))), any_point=True)
    return found.status if found.x is None else np.clip(found.x, core.column_lower, core.column_upper)


def room_point(newton: Newton, look: Look) -> FloatArray | None:
    """A point with ample room in every row, not far from what was seen; None where none is found.

    The linear program of all known rows asks for the largest room common to them, each by its length; rows that the
    answer meets are added until it keeps a quarter of that room.
    """
    core, x = newton.core, look.x
    before = None if newton.inner is None else newton.inner[0]
    reach = 1 + np.abs(x)
    rows = len(core.row_lower)
    for _ in range(_ROUNDS):
        pool = newton.pool
        length = np.linalg.norm(pool.matrix * reach, axis=1)
        length = np.where(length > 0, length, 1.0)
        room = np.concatenate([np.zeros(rows), length])[:, None]
        program = FiniteLP(
            maximize=True,
            cost=np.append(np.zeros(core.columns), 1.0),
            column_lower=np.append(np.maximum(core.column_lower, x - reach), -np.inf),
            column_upper=np.append(np.minimum(core.column_upper, x + reach), 1.0),
            matrix=sparse.csr_array(
                sparse.hstack([sparse.vstack([core.matrix, sparse.csr_array(pool.matrix)]), sparse.csr_array(room)])
            ),
            row_lower=np.concatenate([core.row_lower, np.full(len(pool.right), -np.inf)]),
            row_upper=np.concatenate([core.row_upper, pool.right]),
        )
        found = solve_cones(ConeProgram(program), any_point=True)
        if found.x is None or found.x[-1] <= 1e-12:
            break
        inside = np.clip(found.x[:-1], core.column_lower, core.column_upper)
        seen = newton.look(inside)
        if seen is None:
            # Half the way back, where the functions have values.
            reach = reach / 2
            continue
        # Rows that touch at the point itself are among those that are known now.
        longer = np.linalg.norm(newton.pool.matrix * reach, axis=1)
        if np.all(newton.pool.right - newton.pool.matrix @ inside >= _SHARE * found.x[-1] * longer):
            return inside
    inner = newton.inner
    return inner[0] if inner is not None and inner[0] is not before else None


def tidied(newton: Newton, look: Look) -> Look:
    """A look at values without what an interior point method leaves of zeros and bounds, where that is no worse."""
    core, x = newton.core, look.x
    size = _TIDY * max(1.0, float(np.abs(x).max(initial=0.0)))
    clean = np.where(np.abs(x) <= size, 0.0, x)
    for end in (core.column_lower, core.column_upper):
        clean = np.where(np.abs(clean - end) <= size, end, clean)
    equal = np.flatnonzero(core.row_lower == core.row_upper)
    if len(equal):
        rows = core.matrix[equal]
        free = np.flatnonzero(clean == x)
        missed = core.row_upper[equal] - rows @ clean
        clean[free] += np.linalg.lstsq(rows[:, free].toarray(), missed, rcond=1e-12)[0]
    clean = np.clip(clean, core.column_lower, core.column_upper)
    seen = newton.look(clean, keep=False)
    if seen is None or core.violation(clean) > core.violation(x):
        return look
    worse = seen.value - look.value > _CHEAP * (1 + abs(look.value)) or np.any(seen.violations > look.violations)
    return look if worse else seen


def moved_inside(newton: Newton, look: Look) -> tuple[Look, bool]:
    """A look at a point that violates nothing, as near as convexity tells; whether it was moved there.

    On the way to a point with room s in a row, a violation v is gone after the share ``v / (v + s)``. A point that was
    met on the way and has room serves, unless moving towards it costs too much.
    """
    look = tidied(newton, look)
    if all(each.worst <= _ROUNDING * each.typical for each in look.found):
        return look, False
    best: Look | None = None
    for goal in (lambda: None if newton.inner is None else newton.inner[0], lambda: room_point(newton, look)):
        inner = goal()
        moved = None if inner is None else _moved_towards(newton, look, inner)
        if moved is not None and (best is None or moved.value < best.value):
            best = moved
        if best is not None and best.value - look.value <= _CHEAP * (1 + abs(look.value)):
            break
    return (look, False) if best is None else (tidied(newton, best), True)


def _moved_towards(newton: Newton, look: Look, inner: FloatArray) -> Look | None:
    """A look at the first point on the way to one with room that violates nothing; None where there is none."""
    goal = newton.look(inner, keep=False)
    if goal is None:
        return None
    room = np.array([-each.worst for each in goal.found])
    if np.any(room <= 0):
        return None
    now, factor = look, _FARTHER
    for _ in range(_MOVES):
        missed = now.violations + np.array([_ROUNDING * each.typical for each in now.found])
        share = factor * float(np.max(missed / (missed + room)))
        seen = newton.look(now.x + min(1.0, share) * (goal.x - now.x), keep=False)
        if seen is None:
            return None
        now, factor = seen, 2 * factor
        if not np.any(now.violations > 0):
            return now
    return None
