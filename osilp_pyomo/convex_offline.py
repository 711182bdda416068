"""Concave arrivals, all known at once: the dual in as many dimensions as there are resources.

The dual function is b'w + sum_t max_x f_t(x) - w'g_t(x). Each evaluation is one vectorised pass of stage problems. It
is minimized by Newton's method where stages can tell how they answer to prices, else by L-BFGS-B; then a small LP
joins decisions of several passes (Dantzig and Wolfe): by convexity their mixture earns at least, and uses at most,
what the LP says, and its dual is the next price. The value of the dual is a bound, the mixture moved to where it
satisfies every row is an answer, and the two close up on each other.

Exact over the continuum, resources are single points of the index; points that the answer overruns are added.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import minimize

from osilp_pyomo.audit import Audit, FamilyAudit, audit_points
from osilp_pyomo.batches import Batch, Evaluator
from osilp_pyomo.domains import FloatArray
from osilp_pyomo.errors import AccuracyWarning, DataError, ModelError, warn_user
from osilp_pyomo.highs import HighsModel
from osilp_pyomo.prices import Price, atomic_price, projected_price
from osilp_pyomo.problem import FiniteLP
from osilp_pyomo.results import Answer, FamilyMap, Result
from osilp_pyomo.sample_lp import peaks_of
from osilp_pyomo.search import scan_points
from osilp_pyomo.stage_lp import DecisionNames
from osilp_pyomo.stage_problems import Densities, StageSolver
from osilp_pyomo.templates import Arrivals

# A gap, relative to 1 + |objective|, at which the mixture of passes is good enough; and passes to get there.
_GAP, _PASSES = 1e-8, 60
# A gap that is told as inaccurate.
_INACCURATE = 1e-6
# A dual value this many times what all arrivals could earn, with rows still violated: no decisions keep them.
_UNBOUNDED = 1e4
# Rounds of adding points, of letting points go, and points in one round.
_ROUNDS, _DROPPING, _POINTS_A_ROUND = 40, 8, 12
# A violation relative to the limit that needs no further point.
_VIOLATION = 1e-9


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
class Rows:
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

    def densities(self, rows: Rows, dual: FloatArray) -> Densities:
        """Prices of terms that mix index and decision."""
        found = []
        for part in rows.parts:
            if part.family is not None and self.template.families[part.family].mixed:
                own = part.sign * dual[part.at] / part.unit
                masses = own if part.phi is None else np.asarray(part.phi @ own).ravel()
                found.append((part.family, (part.points, masses)))
        return found

    def respond(self, rows: Rows, dual: FloatArray) -> FloatArray:
        """The best decisions (T, n) at a dual."""
        weights = self.batch.rewards - rows.usage @ dual
        return self.solver.best(self.batch, weights, self.densities(rows, dual))

    def used(self, rows: Rows, x: FloatArray) -> FloatArray:
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

    def hessian(self, rows: Rows, dual: FloatArray, x: FloatArray) -> FloatArray | None:
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
class Found:
    """Best dual and its value (a bound), the mixture of passes, what it uses, and how many passes there were."""

    dual: FloatArray
    bound: float
    x: FloatArray
    passes: int


def minimize_dual(problem: ConcaveProblem, rows: Rows, start: FloatArray, gap: float = _GAP) -> Found:
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
        return value, rows.budget - done.used

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
            return Found(best[1], best[0], x, len(passes))
        if best[0] - value <= 0.1 * gap * (1 + abs(best[0])):
            return Found(best[1], best[0], x, len(passes))
        # The LP's own dual swings; a point between it and the best one known moves steadily.
        evaluate(0.7 * best[1] + 0.3 * dual if _ % 2 else dual)
        kept.append(passes[-1])
    if mixture is None:
        return Found(best[1], best[0], passes[-1].x, len(passes))
    return Found(best[1], best[0], x, len(passes))


def _newton(problem: ConcaveProblem, rows: Rows, start: FloatArray, evaluate: Any, passes: list[Pass]) -> bool:
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


def _quasi_newton(whole: float, rows: Rows, start: FloatArray, evaluate: Any) -> None:
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


def _mixture(rows: Rows, passes: Sequence[Pass]) -> tuple[float, FloatArray, FloatArray] | None:
    """The LP over shares of passes: the most they earn together within the budget, its dual, and the shares."""
    count, resources = len(passes), len(rows.budget)
    used = np.stack([done.used for done in passes], axis=1)
    matrix = np.concatenate([used, np.ones((1, count))])
    lower = np.concatenate([np.where(np.isneginf(rows.floor), rows.budget, -np.inf), [1.0]])
    upper = np.concatenate([rows.budget, [1.0]])
    lp = FiniteLP(
        True, np.array([done.earned for done in passes]), 0.0, np.zeros(count), np.full(count, np.inf),
        np.zeros(count, dtype=bool), sparse.csr_array(matrix), lower, upper, [""] * count, [""] * (resources + 1),
    )  # fmt: skip
    found = HighsModel(lp).solve()
    if found.x is None or found.row_duals is None:
        return None
    shares = np.maximum(found.x, 0.0)
    return found.objective, np.maximum(found.row_duals[:-1], rows.floor), shares / shares.sum()


# -- offline results ------------------------------------------------------------------------------------------


def solve_convex(
    evaluator: Evaluator, solver: StageSolver, arrivals: Arrivals, null: FloatArray | None, method: str, started: float
) -> Result:
    """R*_T or R*_Phi of concave stages; ``null`` is a decision that leaves room in every row, if one is known."""
    batch = evaluator.batch(arrivals, keep_points=False)
    problem = ConcaveProblem(evaluator, solver, batch)
    rows = projected_rows(evaluator, batch)
    found = minimize_dual(problem, rows, np.zeros(len(rows.budget)))
    if not np.isfinite(found.bound):
        raise ModelError("solve_offline: the dual has no finite value; look for stages without a solution.")
    if method == "projected":
        return _result(problem, rows, found, null, method, started)
    found, rows = _exchange(problem, batch, found)
    return _result(problem, rows, found, null, method, started)


def projected_rows(evaluator: Evaluator, batch: Batch) -> Rows:
    """Resources of test functions and ordinary rows."""
    parts = tuple(
        Part(
            group.family, group.sign, group.projected,
            np.empty((0, 1)) if group.family is None else evaluator.points[group.family],
            None if group.family is None else evaluator.phi(group.family), evaluator.unit[group.projected],
        )
        for group in evaluator.groups
    )  # fmt: skip
    budget = evaluator.total - (batch.fixed.sum(axis=0) if len(batch.fixed) else 0.0)
    return Rows(batch.usage, budget, evaluator.floor, parts)


def _point_rows(problem: ConcaveProblem, chosen: list[FloatArray]) -> Rows:
    """Resources of single points, and ordinary rows."""
    evaluator, batch = problem.evaluator, problem.batch
    usage, budget, floor, parts, first = [], [], [], [], 0
    for group in evaluator.groups:
        if group.family is None:
            usage.append(batch.usage[:, :, group.projected] * evaluator.unit[group.projected])
            fixed = batch.fixed[:, group.projected].sum(axis=0) if len(batch.fixed) else 0.0
            budget.append((evaluator.total[group.projected] - fixed) * evaluator.unit[group.projected])
            floor.append(evaluator.floor[group.projected])
            size, points = 1, np.empty((0, 1))
        else:
            points = chosen[group.family]
            family = problem.template.families[group.family]
            pieces, constant = [], np.zeros(len(points))
            for start in range(0, len(batch), 2048):
                use, fixed_use = problem.template.on_points(
                    family, batch.arrivals.part(slice(start, start + 2048)), points
                )
                pieces.append(use)
                if fixed_use is not None:
                    constant += fixed_use.sum(axis=0)
            usage.append(group.sign * np.concatenate(pieces))
            budget.append(group.sign * (evaluator.limit(group, points) - constant))
            floor.append(np.zeros(len(points)))
            size = len(points)
        parts.append(Part(group.family, group.sign, slice(first, first + size), points, None, np.ones(size)))
        first += size
    return Rows(np.concatenate(usage, axis=2), np.concatenate(budget), np.concatenate(floor), tuple(parts))


def _exchange(problem: ConcaveProblem, batch: Batch, found: Found) -> tuple[Found, Rows]:
    """Add points that the answer overruns until there are none."""
    families = problem.template.families
    chosen = [np.empty((0, family.domain.dimension)) for family in families]
    kept: Rows | None = None
    for turn in range(_ROUNDS):
        added = 0
        for number in range(len(families)):
            more = _overrun(problem, number, found.x, chosen[number])
            added += len(more)
            chosen[number] = np.concatenate([chosen[number], more])
        if not added:
            break
        rows = _point_rows(problem, chosen)
        found = minimize_dual(problem, rows, _start(rows, kept, found.dual))
        kept = rows
        if turn < _DROPPING:
            # Points without a price make the dual ill-conditioned; at first they are let go.
            for part in rows.parts:
                if part.family is not None:
                    duals = found.dual[part.at]
                    used = duals > 1e-9 * found.dual.max()
                    single = sum(other.family == part.family for other in rows.parts) == 1
                    if single and used.any():
                        chosen[part.family] = part.points[used]
            kept = None
    return found, rows


def _start(rows: Rows, before: Rows | None, dual: FloatArray) -> FloatArray:
    """Prices of the points that were there before, which stand first among those of their row."""
    start = np.zeros(len(rows.budget))
    if before is not None:
        for part, old in zip(rows.parts, before.parts, strict=True):
            size = old.at.stop - old.at.start
            start[part.at.start : part.at.start + size] = dual[old.at]
    return start


def _overrun(problem: ConcaveProblem, number: int, x: FloatArray, known: FloatArray) -> FloatArray:
    """Points where a family is overrun most, refined; at least one, where none is known yet."""
    family = problem.template.families[number]
    points = scan_points(family.domain, len(problem.batch))
    excess, scale = excess_at(problem, number, x, points)
    places = peaks_of(excess / scale, _VIOLATION)[:_POINTS_A_ROUND]
    if not len(places):
        return points[[int(np.argmax(excess / scale))]] if not len(known) else np.empty((0, family.domain.dimension))
    found = points[places]
    if family.domain.dimension == 1 and len(points) > 2:
        found = _refined(problem, number, x, points, excess, places)
    if len(known):
        width = family.domain.width
        far = [np.abs((known - point) / width).max(axis=1).min() > 1e-9 for point in found]
        found = found[far]
    return found


def _refined(
    problem: ConcaveProblem, number: int, x: FloatArray, points: FloatArray, excess: FloatArray, places: Any
) -> FloatArray:
    """Tops of parabolas through the peaks of a scan, where they are higher."""
    order = np.argsort(points[:, 0])
    along, values = points[order, 0], excess[order]
    inverse = np.empty(len(order), dtype=int)
    inverse[order] = np.arange(len(order))
    tops = points[places].copy()
    for k, place in enumerate(inverse[places]):
        if not 0 < place < len(along) - 1:
            continue
        left, middle, right = along[place - 1 : place + 2]
        low, high = middle - left, right - middle
        a, c = values[place - 1] - values[place], values[place + 1] - values[place]
        bend = a * high + c * low
        if bend < 0:
            tops[k, 0] = np.clip(middle + 0.5 * (a * high**2 - c * low**2) / bend, left, right)
    better, _ = excess_at(problem, number, x, tops)
    return np.where((better > excess[places])[:, None], tops, points[places])


def excess_at(problem: ConcaveProblem, number: int, x: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By how much a family is overrun at points, and the size of its limit there."""
    evaluator = problem.evaluator
    family = problem.template.families[number]
    use = evaluator.at_points(family, problem.batch.arrivals, x, points)
    groups = [group for group in evaluator.groups if group.family == number]
    limits = [evaluator.limit(group, points) for group in groups]
    excess = np.max([group.sign * (use - limit) for group, limit in zip(groups, limits, strict=True)], axis=0)
    scale = np.max([np.abs(limit) for limit in limits], axis=0)
    return excess, np.where(np.maximum(scale, np.median(scale)) > 0, np.maximum(scale, np.median(scale)), 1.0)


def _repaired(
    problem: ConcaveProblem, rows: Rows, x: FloatArray, null: FloatArray | None, method: str
) -> tuple[FloatArray, bool]:
    """Move an answer towards the null decision until it overruns nothing; by convexity a little is enough."""
    if null is None:
        return x, False
    rest = np.broadcast_to(null, x.shape)
    share = 0.0
    if method == "projected":
        over, room = problem.used(rows, x) - rows.budget, rows.budget - problem.used(rows, rest)
        share = _share(over, room)
    else:
        for number, family in enumerate(problem.template.families):
            points = np.concatenate([scan_points(family.domain, len(x)), audit_points(family.domain, len(x), None)])
            over, _ = excess_at(problem, number, x, points)
            room, _ = excess_at(problem, number, rest, points)
            share = max(share, _share(over, -room))
        ordinary = [part for part in rows.parts if part.family is None]
        for part in ordinary:
            over = (problem.used(rows, x) - rows.budget)[part.at]
            room = (rows.budget - problem.used(rows, rest))[part.at]
            share = max(share, _share(over, room))
    if not np.isfinite(share):
        return x, False
    return (1 - share) * x + share * rest, True


def _share(over: FloatArray, room: FloatArray) -> float:
    violated = over > 0
    if not violated.any():
        return 0.0
    if np.any(room[violated] <= 0):
        return np.inf
    return float(np.max(over[violated] / (over[violated] + room[violated])))


def _result(
    problem: ConcaveProblem, rows: Rows, found: Found, null: FloatArray | None, method: str, started: float
) -> Result:
    evaluator, template, batch = problem.evaluator, problem.template, problem.batch
    sense = 1.0 if template.maximize else -1.0
    x, repaired = _repaired(problem, rows, found.x, null, method)
    objective = sense * problem.earned(x) + template.offset
    bound = sense * found.bound + template.offset
    looks = tuple(_look(problem, number, x) for number in range(len(template.families)))
    gap = abs(objective - bound)
    audit = Audit(looks, 0.0, 0.0, bound, 0.0, gap)
    prices = FamilyMap(
        {
            family.name: _price(problem, rows, found.dual, number, sense)
            for number, family in enumerate(template.families)
        }
    )
    duals: dict[str, float] = {}
    for group, part in zip(evaluator.groups, rows.parts, strict=True):
        if part.family is None:
            duals[group.name] = duals.get(group.name, 0.0) + sense * group.sign * float(
                found.dual[part.at][0] / part.unit[0]
            )
    names = pd.Index(list(DecisionNames(template, batch.arrivals.index)), dtype=object, name="variable")
    test = float(np.maximum(problem.used(rows, x) - rows.budget, 0.0).max()) if method == "projected" else np.nan
    answer = Answer(
        pd.Series(x.ravel(), index=names, name="value"),
        audit,
        FamilyMap({look.name: look.violation for look in looks}),
        FamilyMap({look.name: look.relative for look in looks}),
        FamilyMap(
            {look.name: family.domain.label(look.worst) for look, family in zip(looks, template.families, strict=True)}
        ),
        prices,
        pd.Series(duals, name="dual", dtype=float),
        pd.Series(np.nan, index=names, name="rc"),
        repaired,
        test,
    )
    status = "optimal"
    scaled = max((look.relative for look in looks), default=0.0) if method == "exchange" else 0.0
    over = problem.used(rows, x) - rows.budget
    over = np.where(np.isneginf(rows.floor), np.abs(over), over) / np.where(
        np.abs(rows.budget) > 0, np.abs(rows.budget), 1.0
    )
    broken = max(scaled, float(over.max(initial=0.0)))
    if broken > _INACCURATE and abs(found.bound) > _UNBOUNDED * problem.size:
        return Result(
            method, "infeasible", "maximize" if template.maximize else "minimize", np.nan, np.nan, pd.DataFrame(), 0, 0,
            time.monotonic() - started, {family.name: "traced" for family in template.families}, None,
        )  # fmt: skip
    if broken > _INACCURATE:
        status = "inaccurate"
        warn_user(
            f"{method}: the answer is less accurate than it should be: a row is violated by {broken:.2g} of its limit.",
            AccuracyWarning,
        )
    elif gap > _INACCURATE * (1 + abs(objective)):
        status = "inaccurate"
        warn_user(
            f"{method}: the answer is less accurate than it should be: objective {objective:.10g} and bound "
            f"{bound:.10g} are apart.",
            AccuracyWarning,
        )
    log = pd.DataFrame({"passes": [found.passes]})
    count = sum(
        len(part.points) if part.phi is None else part.phi.shape[1] for part in rows.parts if part.family is not None
    )
    return Result(
        method, status, "maximize" if template.maximize else "minimize", objective, bound, log, count,
        int(batch.usage.nbytes + rows.usage.nbytes), time.monotonic() - started,
        {family.name: "traced" for family in template.families}, answer,
    )  # fmt: skip


def _look(problem: ConcaveProblem, number: int, x: FloatArray) -> FamilyAudit:
    family = problem.template.families[number]
    points = audit_points(family.domain, len(x), None)
    excess, scale = excess_at(problem, number, x, points)
    worst = int(np.argmax(excess))
    relative = np.maximum(excess / scale, 0.0)
    at = int(np.argmax(relative))
    return FamilyAudit(
        family.name, len(points), max(0.0, float(excess[worst])), float(relative.max()), points[worst],
        float(np.median(scale)), float(relative.max()), points[at], points[[worst]],
    )  # fmt: skip


def _price(problem: ConcaveProblem, rows: Rows, dual: FloatArray, number: int, sense: float) -> Price:
    evaluator, family = problem.evaluator, problem.template.families[number]
    parts = [part for part in rows.parts if part.family == number]
    if parts[0].phi is None:
        points = np.concatenate([part.points for part in parts])
        masses = np.concatenate([sense * part.sign * dual[part.at] for part in parts])
        kept = np.abs(masses) > 1e-10 * np.abs(masses).max(initial=0.0)
        return atomic_price(family.name, family.domain, points[kept], masses[kept])
    duals = np.sum([sense * part.sign * dual[part.at] / part.unit for part in parts], axis=0)
    return projected_price(family.name, evaluator.functionals[number], duals / evaluator.masses[number])
