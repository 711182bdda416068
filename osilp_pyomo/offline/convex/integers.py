"""Outer approximation: convex problems with integers, by integer programs over linear rows and convex ones between.

HiGHS solves the integer program of all linear rows that are known; its value is a bound. With the integers of its
answer fixed the problem is convex, and solved as such: its value bounds from the other side, and the rows that touch
there are added. A choice of integers that allows nothing is excluded by the very rows that contradict each other
(Duran and Grossmann, 1986; Fletcher and Leyffer, 1994).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel, LPSolution
from osilp_pyomo.offline.conflicts import Conflict
from osilp_pyomo.offline.convex.newton import Look, Newton, Pool
from osilp_pyomo.offline.convex.solve import Outcome, Parts, run_from, solve_parts
from osilp_pyomo.offline.curved.terms import CurvedTerm
from osilp_pyomo.offline.exchange import ExchangeOptions
from osilp_pyomo.offline.problem import SemiInfiniteLP

# Integer programs at most, and a bracket, relative to 1 + |objective|, that is closed.
_PROGRAMS, _CLOSED = 200, 1e-7
# Why there is no conflict.
_WHOLE = "no conflict but that of whole numbers is known"


class _Tangents:
    """Linear functions below the convex part of an objective, as rows over x and one more column that is above it."""

    def __init__(self, objective: CurvedTerm | None, columns: int) -> None:
        self._objective = objective
        self.matrix, self.right = np.zeros((0, columns + 1)), np.zeros(0)

    def touch(self, x: FloatArray) -> None:
        """Add the one at x, where the objective has a slope."""
        if self._objective is None:
            return
        with np.errstate(all="ignore"):
            value, slopes = self._objective.linearised(x, np.zeros((1, 0)))
        row = np.zeros(self.matrix.shape[1])
        row[self._objective.columns] = slopes[0]
        right = float(row[:-1] @ x - value[0])
        row[-1] = -1.0
        if np.all(np.isfinite(row)) and np.isfinite(right):
            self.matrix, self.right = np.vstack([self.matrix, row]), np.append(self.right, right)


def by_outer_approximation(problem: SemiInfiniteLP, options: ExchangeOptions) -> Outcome:
    """Solve a convex problem with integers; its bound is that of HiGHS' branch and bound."""
    started = time.monotonic()
    until = np.inf if options.time_limit is None else started + options.time_limit
    parts = Parts.of(problem)
    integer = np.append(problem.core.integer, np.zeros(parts.core.columns - parts.columns, dtype=bool))
    assert problem.convex is not None
    relaxed = parts.newton(options, until)
    first = run_from(parts, relaxed, problem.convex.start, options)
    log, pool = list(relaxed.log), relaxed.pool
    if isinstance(first, str) or first.status == "infeasible":
        return solve_parts(problem, parts, parts.newton(options, until), problem.convex.start, options)
    tangents = _Tangents(parts.objective, parts.core.columns)
    if first.look is not None:
        tangents.touch(first.look.x)
    best: tuple[Look, FloatArray] | None = None
    status, bound, seen = "iteration_limit", -np.inf, set[bytes]()
    for _ in range(_PROGRAMS):
        chosen = _integer_program(parts, integer, pool, tangents, until)
        if chosen.x is None:
            status = chosen.status if best is None else "optimal" if chosen.status == "infeasible" else chosen.status
            bound = max(bound, chosen.bound) if np.isfinite(chosen.bound) else bound
            break
        bound = max(bound, chosen.bound)
        if best is not None and best[0].value - bound <= _CLOSED * (1 + abs(best[0].value)):
            status = "optimal"
            break
        fixed = np.round(chosen.x[:-1][integer])
        if fixed.tobytes() in seen:
            # The same choice again: its rows leave nothing but rounding to be gained.
            status = "optimal" if best is not None else "undecided"
            break
        seen.add(fixed.tobytes())
        newton = _with_integers(parts, integer, fixed, options, until, pool)
        ended = run_from(parts, newton, chosen.x[:-1], options)
        pool = newton.pool
        log += newton.log
        if not isinstance(ended, str) and ended.look is not None:
            tangents.touch(ended.look.x)
            if ended.status == "optimal" and (best is None or ended.look.value < best[0].value):
                best = ended.look, fixed
        if time.monotonic() > until:
            status = "time_limit"
            break
    return _answer(problem, parts, options, until, status, bound, best, log)


def _answer(
    problem: SemiInfiniteLP,
    parts: Parts,
    options: ExchangeOptions,
    until: float,
    status: str,
    bound: float,
    best: tuple[Look, FloatArray] | None,
    log: list[dict[str, Any]],
) -> Outcome:
    """The convex problem at the best integers once more, proved and audited, with the bound of all of them."""
    if best is None:
        why = _WHOLE if status == "infeasible" else ""
        return Outcome(status, np.nan, np.nan, tuple(log), conflict=Conflict(why_none=why))
    look, fixed = best
    integer = np.append(problem.core.integer, np.zeros(parts.core.columns - parts.columns, dtype=bool))
    newton = _with_integers(parts, integer, fixed, options, until, Pool(parts.core.columns))
    own = replace(parts, core=newton.core)
    solved = solve_parts(problem, own, newton, look.x, options)
    if solved.x is None or solved.checked is None:
        return solved
    x = solved.x.copy()
    x[problem.core.integer] = fixed
    value = parts.sign * solved.objective
    remark = f"convex: {len(log)} iterations in all; the bound is that of HiGHS' branch and bound"
    ended = solved.status if status == "optimal" else status
    return replace(solved, status=ended, bound=parts.sign * min(bound, value), x=x, log=tuple(log), remark=remark)


def _with_integers(
    parts: Parts, integer: Any, fixed: FloatArray, options: ExchangeOptions, until: float, pool: Pool
) -> Newton:
    """The loop with integers held at their values, and all rows that are known."""
    low, high = parts.core.column_lower.copy(), parts.core.column_upper.copy()
    low[integer] = high[integer] = fixed
    core = replace(parts.core, column_lower=low, column_upper=high)
    newton = Newton(core, parts.objective, parts.sources, options.report, until, parts.sign)
    newton.pool = pool
    return newton


def _integer_program(parts: Parts, integer: Any, pool: Pool, tangents: _Tangents, until: float) -> LPSolution:
    """The integer program of all linear rows that are known; its last column is the convex part of the objective."""
    core = parts.core
    extra = 1.0 if len(tangents.right) else 0.0
    matrix = sparse.vstack(
        [
            sparse.hstack([core.matrix, sparse.csr_array((len(core.row_lower), 1))]),
            sparse.csr_array(np.hstack([pool.matrix, np.zeros((len(pool.right), 1))])),
            sparse.csr_array(tangents.matrix),
        ],
        format="csr",
    )
    open_below = np.full(len(pool.right) + len(tangents.right), -np.inf)
    program = FiniteLP(
        maximize=False,
        cost=np.append(core.cost, extra),
        offset=core.offset,
        column_lower=np.append(core.column_lower, -np.inf if extra else 0.0),
        column_upper=np.append(core.column_upper, np.inf if extra else 0.0),
        integer=np.append(integer, False),
        matrix=matrix,
        row_lower=np.concatenate([core.row_lower, open_below]),
        row_upper=np.concatenate([core.row_upper, pool.right, tangents.right]),
    )
    model = HighsModel(program)
    if np.isfinite(until):
        model.limit_time(max(1e-2, until - time.monotonic()))
    return model.solve()
