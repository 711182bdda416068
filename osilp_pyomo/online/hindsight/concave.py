"""Concave arrivals, all known at once: R*_Phi, R*_T, prices, and the gap between a bound and an answer.

Exact over the continuum, resources are single points of the index; points that the answer overruns are added. The
answer is a mixture of decisions, moved towards nothing until it satisfies every row.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import ModelError
from osilp_pyomo.offline.assemble import make_result
from osilp_pyomo.offline.audit import Audit, FamilyAudit, audit_points
from osilp_pyomo.offline.conflicts import Conflict
from osilp_pyomo.offline.prices import Price, atomic_price, projected_price
from osilp_pyomo.offline.results import Result
from osilp_pyomo.offline.search.scan import peaks_of, scan_points
from osilp_pyomo.offline.solved import Point, Solved, as_proved
from osilp_pyomo.online.hindsight.concave_dual import (
    ConcaveProblem,
    DualSolution,
    Part,
    ResourceUse,
    minimize_dual,
    projected_rows,
)
from osilp_pyomo.online.hindsight.lp import DecisionNames, ordinary_duals, stage_subject
from osilp_pyomo.online.stages.batch import PROJECTED, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import StageSolver
from osilp_pyomo.online.stages.template import Arrivals

# A gap, or a violation, that is told as inaccurate.
_INACCURATE = 1e-6
# A dual value this many times what all arrivals could earn, with rows still violated: no decisions keep them.
_UNBOUNDED = 1e4
# Rounds of adding points, of letting points go, and points in one round.
_ROUNDS, _DROPPING, _POINTS_PER_ROUND = 40, 8, 12
# A violation relative to the limit that needs no further point.
_VIOLATION = 1e-9
# Decisions of each arrival that the audit compares with the one a price asked for.
_AUDITED = 48


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
    if method == "exchange" and evaluator.template.families:
        found, rows = _exchange(problem, batch, found)
    solved = _solved(problem, rows, found, null, method)
    subject = stage_subject(evaluator.template, DecisionNames(evaluator.template, arrivals.index))
    return make_result(subject, method, solved, time.monotonic() - started)


def _point_rows(problem: ConcaveProblem, chosen: list[FloatArray]) -> ResourceUse:
    """Resources of single points, and ordinary rows."""
    evaluator, batch = problem.evaluator, problem.batch
    resources = evaluator.resources[PROJECTED]
    usage, budget, floor, parts, first = [], [], [], [], 0
    for group in evaluator.groups:
        if group.family is None:
            at = group.slices[PROJECTED]
            usage.append(batch.use[PROJECTED][:, :, at] * resources.unit[at])
            fixed = batch.fixed[PROJECTED][:, at].sum(axis=0) if len(batch.fixed[PROJECTED]) else 0.0
            budget.append((resources.total[at] - fixed) * resources.unit[at])
            floor.append(resources.floor[at])
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
    return ResourceUse(np.concatenate(usage, axis=2), np.concatenate(budget), np.concatenate(floor), tuple(parts))


def _exchange(problem: ConcaveProblem, batch: Batch, found: DualSolution) -> tuple[DualSolution, ResourceUse]:
    """Add points that the answer overruns until there are none."""
    families = problem.template.families
    chosen = [np.empty((0, family.domain.dimension)) for family in families]
    kept: ResourceUse | None = None
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


def _start(rows: ResourceUse, before: ResourceUse | None, dual: FloatArray) -> FloatArray:
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
    places = peaks_of(excess / scale, _VIOLATION)[:_POINTS_PER_ROUND]
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
    problem: ConcaveProblem, rows: ResourceUse, x: FloatArray, null: FloatArray | None, method: str
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


def _solved(
    problem: ConcaveProblem, rows: ResourceUse, found: DualSolution, null: FloatArray | None, method: str
) -> Solved:
    """An answer that keeps every row, the bound, prices, and what the audit sees."""
    evaluator, template = problem.evaluator, problem.template
    sense = 1.0 if template.maximize else -1.0
    x, repaired = _repaired(problem, rows, found.x, null, method)
    objective = sense * problem.earned(x) + template.offset
    bound = sense * found.bound + template.offset
    looks = tuple(_look(problem, number, x) for number in range(len(template.families)))
    missed = _missed(problem, rows, found.dual)
    audit = Audit(looks, _ordinary_violation(problem, rows, x), missed, bound, missed, abs(objective - bound))
    over = problem.used(rows, x) - rows.budget
    shares = np.where(np.isneginf(rows.floor), np.abs(over), over) / np.where(
        rows.budget != 0, np.abs(rows.budget), 1.0
    )
    scaled = max((look.relative for look in looks), default=0.0) if method == "exchange" else 0.0
    broken = max(scaled, float(shares.max(initial=0.0)), audit.ordinary_violation)
    if broken > _INACCURATE and abs(found.bound) > _UNBOUNDED * problem.size:
        why = "what conflicts is not looked for among convex stages"
        return as_proved(Solved("infeasible", np.nan, np.nan, conflict=Conflict(why_none=why)))
    point = Point(
        x.ravel(),
        audit,
        tuple(_price(problem, rows, found.dual, number, sense) for number in range(len(template.families))),
        ordinary_duals(evaluator, lambda number, _: _ordinary_dual(rows.parts[number], found.dual)),
        np.full(x.size, np.nan),
        repaired,
        float(np.maximum(over, 0.0).max()) if method == "projected" else np.nan,
    )
    parts = [part for part in rows.parts if part.family is not None]
    return Solved(
        "optimal",
        objective,
        bound,
        point,
        rows=sum(len(part.points) if part.phi is None else part.phi.shape[1] for part in parts),
        memory=int(problem.batch.use[PROJECTED].nbytes + rows.usage.nbytes),
        log=({"passes": found.passes},),
        complaint=_complaint(broken, missed, objective, bound),
    )


def _ordinary_dual(part: Part, dual: FloatArray) -> float:
    return float(dual[part.at][0] / part.unit[0])


def _complaint(broken: float, missed: float, objective: float, bound: float) -> str | None:
    """What, if anything, is wrong with an answer."""
    size = _INACCURATE * (1 + abs(objective))
    if broken > _INACCURATE:
        return f"a row is violated by {broken:.2g} of its limit"
    if missed > size:
        return (
            f"the audit found decisions worth {missed:.2g} more at the price than those found, so that the bound is no "
            "bound"
        )
    if abs(objective - bound) > size:
        return f"objective {objective:.10g} and bound {bound:.10g} are apart"
    return None


def _ordinary_violation(problem: ConcaveProblem, rows: ResourceUse, x: FloatArray) -> float:
    """Largest violation of bounds, of the stages' own rows and of ordinary rows, relative to their size."""
    batch, template = problem.batch, problem.template
    over = np.maximum(batch.lower - x, x - batch.upper) / (1 + np.abs(x))
    worst = float(over.max(initial=0.0))
    if template.own_rows:
        excess, size = problem.evaluator.own_excess(batch, x)
        worst = max(worst, float((excess / np.where(size > 0, size, 1.0)).max(initial=0.0)))
    excess = problem.used(rows, x) - rows.budget
    for part in rows.parts:
        if part.family is None:
            own = np.abs(excess[part.at]) if np.isneginf(rows.floor[part.at]).any() else excess[part.at]
            worst = max(worst, float((own / np.maximum(np.abs(rows.budget[part.at]), 1e-300)).max()))
    return worst


def _missed(problem: ConcaveProblem, rows: ResourceUse, dual: FloatArray) -> float:
    """By how much sampled decisions are worth more at a price than those that the stage solver found, all together.

    The bound is the dual's value, which is one only if every stage was solved; this looks at it without the solver.
    """
    batch, template = problem.batch, problem.template
    weights, densities = batch.rewards - rows.usage @ dual, problem.densities(rows, dual)
    found = problem.respond(rows, dual)

    def worth(x: FloatArray) -> FloatArray:
        value = (template.values(batch.arrivals, x) * weights).sum(axis=1)
        for number, (points, masses) in densities:
            value = value - problem.evaluator.mixed_use(batch.arrivals, x, number, points) @ masses
        return value

    best, rng = worth(found), np.random.default_rng(20261)
    low = np.where(np.isfinite(batch.lower), batch.lower, found - 1 - np.abs(found))
    high = np.where(np.isfinite(batch.upper), batch.upper, found + 1 + np.abs(found))
    missed = np.zeros(len(batch))
    for k in range(_AUDITED):
        # Every other one near the decision that was found, where a solver that stopped early would be beaten.
        share = 1.0 if k % 2 else 10.0 ** -rng.uniform(0, 6)
        x = found + share * (low + rng.random(found.shape) * (high - low) - found)
        allowed = np.ones(len(batch), dtype=bool)
        if template.own_rows:
            allowed = np.all(problem.evaluator.own_excess(batch, x)[0] <= 0, axis=1)
        gain = np.where(allowed, np.nan_to_num(worth(x) - best, nan=0.0, posinf=0.0, neginf=0.0), 0.0)
        missed = np.maximum(missed, gain)
    return float(missed.sum())


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


def _price(problem: ConcaveProblem, rows: ResourceUse, dual: FloatArray, number: int, sense: float) -> Price:
    evaluator, family = problem.evaluator, problem.template.families[number]
    parts = [part for part in rows.parts if part.family == number]
    if parts[0].phi is None:
        points = np.concatenate([part.points for part in parts])
        masses = np.concatenate([sense * part.sign * dual[part.at] for part in parts])
        kept = np.abs(masses) > 1e-10 * np.abs(masses).max(initial=0.0)
        return atomic_price(family.name, family.domain, points[kept], masses[kept])
    duals = np.sum([sense * part.sign * dual[part.at] / part.unit for part in parts], axis=0)
    return projected_price(family.name, evaluator.functionals[number], duals / evaluator.masses[number])
