"""The dual of concave stages, in as many dimensions as there are resources.

The dual function is b'w + sum_t max_x f_t(x) - w'g_t(x). Each evaluation is one vectorised pass of stage problems. It
is minimized by Newton's method where stages can tell how they answer to prices, else by L-BFGS-B; then a small LP
joins decisions of several passes (Dantzig and Wolfe): by convexity their mixture earns at least, and uses at most,
what the LP says, and its dual is the next price. The value of the dual is a bound.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.online.stages.batch import PROJECTED, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import Densities, StageSolver

# A gap, relative to 1 + |objective|, at which the mixture of passes is good enough; and passes to get there.
_GAP, _PASSES = 1e-8, 60
# A bound this many times all that can be earned below what some decisions earn belongs to a problem that has none.
_BELOW, _FAR = 1e5, 1e9


@dataclass(frozen=True, eq=False)
class Part:
    """Resources of one side of one row: its family (None for an ordinary row), sign, points, and Phi (None: points)."""

    family: int | None
    sign: int
    at: slice
    points: FloatArray
    phi: Any
    unit: FloatArray


@dataclass(frozen=True, eq=False)
class ResourceUse:
    """Resources that arrivals use: coefficients (T, K, R) of the functions, and what is there of each (R,)."""

    usage: FloatArray
    budget: FloatArray
    floor: FloatArray
    parts: tuple[Part, ...]


class ConcaveProblem:
    """All arrivals, each as often as ``times`` says, against some resources."""

    def __init__(
        self, evaluator: Evaluator, solver: StageSolver, batch: Batch, times: FloatArray | None = None
    ) -> None:
        self.evaluator, self.solver, self.batch = evaluator, solver, batch
        self.times = np.ones(len(batch)) if times is None else times
        # What all arrivals could earn: the size of the objective where its value happens to be near zero.
        self.size = max(float(self.times @ (np.abs(batch.rewards) * evaluator.reach(batch)).sum(axis=1)), 1e-300)
        self.template = evaluator.template

    def densities(self, rows: ResourceUse, dual: FloatArray) -> Densities:
        """Prices of terms that mix index and decision."""
        found = []
        for part in rows.parts:
            if part.family is not None and self.template.families[part.family].mixed:
                own = part.sign * dual[part.at] / part.unit
                masses = own if part.phi is None else np.asarray(part.phi @ own).ravel()
                found.append((part.family, (part.points, masses)))
        return found

    def respond(self, rows: ResourceUse, dual: FloatArray) -> FloatArray:
        """The best decisions (T, n) at a dual."""
        weights = self.batch.rewards - rows.usage @ dual
        return self.solver.best(self.batch, weights, self.densities(rows, dual))

    def used(self, rows: ResourceUse, x: FloatArray) -> FloatArray:
        """Use (R,) of all arrivals together."""
        values = self.template.values(self.batch.arrivals, x)
        result = np.einsum("t,tk,tkr->r", self.times, values, rows.usage, optimize=True)
        for part in rows.parts:
            if part.family is not None and self.template.families[part.family].mixed:
                total = np.zeros(len(part.points))
                for start in range(0, len(x), 512):
                    at = slice(start, start + 512)
                    arrivals = self.batch.arrivals.part(at)
                    total += self.times[at] @ self.evaluator.mixed_use(arrivals, x[at], part.family, part.points)
                own = total if part.phi is None else np.asarray(part.phi.T @ total).ravel()
                result[part.at] += part.sign * own / part.unit
        return result

    def hessian(self, rows: ResourceUse, dual: FloatArray, x: FloatArray) -> FloatArray | None:
        """Second derivatives (R, R) of the dual function where stages can tell how they answer to prices."""
        tell = getattr(self.solver, "sensitivity", None)
        if tell is None:
            return None
        weights = self.batch.rewards - rows.usage @ dual
        jacobian, response = tell(self.batch, weights, self.densities(rows, dual), x)
        answers = np.einsum("tkr,tkn->trn", rows.usage, jacobian)
        for part in rows.parts:
            if part.family is not None and self.template.families[part.family].mixed:
                slopes = self.solver.mixed_slopes(self.batch, x, part.family, part.points)  # type: ignore[attr-defined]
                own = slopes if part.phi is None else slopes @ part.phi
                answers[:, part.at, 0] += part.sign * own / part.unit
        moved = (answers @ response) * self.times[:, None, None]
        return np.tensordot(moved, answers, axes=([0, 2], [0, 2]))

    def earned(self, x: FloatArray) -> float:
        """What decisions earn, as a maximum."""
        values = (self.template.values(self.batch.arrivals, x) * self.batch.rewards).sum(axis=1)
        return float(self.times @ (values + self.batch.earned))


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass of stage problems: decisions, what they earn and use."""

    x: FloatArray
    earned: float
    used: FloatArray


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Best dual and its value (a bound), the mixture of passes, and how many passes there were.

    Where the bound is below all that decisions can earn, no decisions keep the budget, and the problem is not
    ``solvable``; the dual is then one of those that lead down without end.
    """

    dual: FloatArray
    bound: float
    x: FloatArray
    passes: int
    solvable: bool = True


class _NoBottomError(Exception):
    """The dual leads down without end."""


def minimize_dual(problem: ConcaveProblem, rows: ResourceUse, start: FloatArray, gap: float = _GAP) -> DualSolution:
    """Solve the dual over some resources, with a primal mixture that uses at most the budget."""
    passes: list[Pass] = []
    best: list[Any] = [np.inf, start]

    def evaluate(dual: FloatArray) -> tuple[float, FloatArray]:
        x = problem.respond(rows, dual)
        done = Pass(x, problem.earned(x), problem.used(rows, x))
        if not (np.isfinite(done.earned) and np.all(np.isfinite(done.used))):
            raise DataError(
                "solve_offline: a stage earns or uses something that is not a finite number; bound its decisions."
            )
        passes.append(done)
        value = float(rows.budget @ dual) + done.earned - float(done.used @ dual)
        if value < best[0]:
            best[:] = value, dual.copy()
        if value < passes[0].earned - _BELOW * problem.size:
            raise _NoBottomError
        return value, rows.budget - done.used

    try:
        return _minimize(problem, rows, start, gap, evaluate, passes, best)
    except _NoBottomError:
        return DualSolution(best[1], best[0], passes[-1].x, len(passes), solvable=False)


def _minimize(
    problem: ConcaveProblem,
    rows: ResourceUse,
    start: FloatArray,
    gap: float,
    evaluate: Any,
    passes: list[Pass],
    best: list[Any],
) -> DualSolution:
    if not _newton(problem, rows, start, evaluate, passes):
        _quasi_newton(problem.size, rows, start, evaluate)
    # Passes far from the end are of no use to the mixture.
    kept = passes[-60:]
    for _ in range(_PASSES):
        mixture = _mixture(rows, kept)
        if mixture is None:
            break
        value, dual, shares = mixture
        x = sum(share * done.x for share, done in zip(shares, kept, strict=True) if share > 0)
        if best[0] - problem.earned(x) <= gap * (1 + abs(best[0])):
            return DualSolution(best[1], best[0], x, len(passes))
        if best[0] - value <= 0.1 * gap * (1 + abs(best[0])):
            return DualSolution(best[1], best[0], x, len(passes))
        # The LP's own dual swings; a point between it and the best one known moves steadily.
        evaluate(0.7 * best[1] + 0.3 * dual if _ % 2 else dual)
        kept.append(passes[-1])
    if mixture is None:
        last = passes[-1].x
        with contextlib.suppress(DataError):
            # Nothing keeps the budget so far; a dual much further out tells whether anything does.
            evaluate(_FAR * best[1])
        return DualSolution(best[1], best[0], last, len(passes))
    return DualSolution(best[1], best[0], x, len(passes))


def _newton(problem: ConcaveProblem, rows: ResourceUse, start: FloatArray, evaluate: Any, passes: list[Pass]) -> bool:
    """Newton steps on the dual, kept above the floor; False where stages have no second derivatives.

    A dual at its floor whose gradient points outwards stays there; the others take a damped Newton step (Levenberg and
    Marquardt), for where all stages sit at their bounds there is no curvature at all.
    """
    dual = np.maximum(start, rows.floor)
    value, gradient = evaluate(dual)
    if problem.hessian(rows, dual, passes[-1].x) is None:
        return False
    floor = np.where(np.isneginf(rows.floor), -np.inf, 0.0)
    # Scaled so that each budget, and the value, is about 1; there a step of size 1 is a long one.
    whole = max(abs(value), problem.size)
    unit = whole / np.where(np.abs(rows.budget) > 0, np.abs(rows.budget), 1.0)
    damping, stalled = 1.0, 0
    for _ in range(200):
        free = (dual > floor) | (gradient < 0)
        slope = gradient * unit / whole
        if not free.any() or np.abs(slope[free]).max() <= 1e-13 or stalled > 3:
            break
        hessian = problem.hessian(rows, dual, passes[-1].x)
        assert hessian is not None
        scaled = (unit[:, None] * hessian * unit) / whole
        part = scaled[np.ix_(free, free)] + damping * np.eye(int(free.sum()))
        step = np.zeros(len(dual))
        step[free] = -np.linalg.solve(part, slope[free]) * unit[free]
        trial = np.maximum(dual + step, floor)
        new_value, new_gradient = evaluate(trial)
        if new_value < value:
            stalled = stalled + 1 if value - new_value <= 1e-15 * (1 + abs(value)) else 0
            dual, value, gradient = trial, new_value, new_gradient
            damping = max(0.1 * damping, 1e-13)
        else:
            passes.append(passes[-2])  # the Hessian belongs to the dual that stays
            damping *= 10.0
            if damping > 1e8 or -float(gradient @ step) <= 1e-13 * (1 + abs(value)):
                break
    return True


def _quasi_newton(whole: float, rows: ResourceUse, start: FloatArray, evaluate: Any) -> None:
    """L-BFGS-B in units in which each budget, and the value, is about 1."""
    size = np.where(np.abs(rows.budget) > 0, np.abs(rows.budget), 1.0)
    scale = max(abs(evaluate(start)[0]), whole)

    def scaled(z: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = evaluate(z * scale / size)
        return value / scale, gradient / size

    bounds = [(None if np.isneginf(floor) else 0.0, None) for floor in rows.floor]
    minimize(
        scaled, start * size / scale, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 400, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30},
    )  # fmt: skip


def _mixture(rows: ResourceUse, passes: Sequence[Pass]) -> tuple[float, FloatArray, FloatArray] | None:
    """The LP over shares of passes: the most they earn together within the budget, its dual, and the shares."""
    count = len(passes)
    used = np.stack([done.used for done in passes], axis=1)
    matrix = np.concatenate([used, np.ones((1, count))])
    lower = np.concatenate([np.where(np.isneginf(rows.floor), rows.budget, -np.inf), [1.0]])
    upper = np.concatenate([rows.budget, [1.0]])
    lp = FiniteLP(
        maximize=True,
        cost=np.array([done.earned for done in passes]),
        column_lower=np.zeros(count),
        column_upper=np.full(count, np.inf),
        matrix=sparse.csr_array(matrix),
        row_lower=lower,
        row_upper=upper,
    )
    found = HighsModel(lp).solve()
    if found.x is None or found.row_duals is None:
        return None
    shares = np.maximum(found.x, 0.0)
    return found.objective, np.maximum(found.row_duals[:-1], rows.floor), shares / shares.sum()


def projected_rows(evaluator: Evaluator, batch: Batch) -> ResourceUse:
    """Resources of test functions and ordinary rows."""
    resources, fixed = evaluator.resources[PROJECTED], batch.fixed[PROJECTED]
    parts = tuple(
        Part(
            group.family, group.sign, group.slices[PROJECTED],
            np.empty((0, 1)) if group.family is None else evaluator.points[group.family],
            None if group.family is None else evaluator.phi(group.family), resources.unit[group.slices[PROJECTED]],
        )
        for group in evaluator.groups
    )  # fmt: skip
    budget = resources.total - (fixed.sum(axis=0) if len(fixed) else 0.0)
    return ResourceUse(batch.use[PROJECTED], budget, resources.floor, parts)
