"""Convex problems solved: the loop, then repair, proof, audit and prices of its answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.lp.finite import FiniteLP, RowBlock
from osilp_pyomo.lp.scaling import scaling_for
from osilp_pyomo.offline.audit import Audit, FamilyAudit, audit_families
from osilp_pyomo.offline.conflicts import NO_CONFLICT, Conflict, LabelledRows, find_conflict
from osilp_pyomo.offline.convex.lower import SafeBound
from osilp_pyomo.offline.convex.newton import Ended, Look, Newton, Pool
from osilp_pyomo.offline.convex.points import moved_inside, start_of
from osilp_pyomo.offline.convex.sources import FamilyRows, OrdinaryRow, Source, fixed_families
from osilp_pyomo.offline.curved.terms import ConvexPart, CurvedTerm
from osilp_pyomo.offline.exchange import ExchangeOptions
from osilp_pyomo.offline.prepare import compactify
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.proof.certify import ENOUGH, FamilyProof, ProofOptions, prove_families
from osilp_pyomo.offline.roundings import rounding_within_bounds
from osilp_pyomo.offline.search.scan import Search

# Iterations of the loop at most, and how often it may go on after proof or audit found a violation.
_ITERATIONS, _ROUNDS = 100, 6
# What is said beside a conflict.
_REMARK = "rows that are convex stand there as linear ones that touch them"


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a convex problem ended; ``x`` is None where there is no answer, and ``atoms`` where there are no prices.

    ``atoms`` are points and masses (d objective / d right-hand side) of each of ``families``.
    """

    status: str
    objective: float
    bound: float
    log: tuple[dict[str, Any], ...]
    families: tuple[Family, ...] = ()
    x: FloatArray | None = None
    checked: Audit | None = None
    atoms: tuple[tuple[FloatArray, FloatArray], ...] | None = None
    core_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None
    repaired: bool = False
    rows: int = 0
    memory: int = 0
    separation: tuple[str, ...] = ()
    conflict: Conflict = NO_CONFLICT
    proofs: tuple[FamilyProof, ...] = ()
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Parts:
    """A convex problem as a minimum: what is linear, the objective's convex term, and where rows come from.

    ``sign`` is -1 where the user's problem is a maximum; ``rows`` are numbers of the core's rows that are convex, -1
    for rows that are none of the user's: a term of the objective with kinks is a column of its own, at least as large
    as the term, so that all rows that touch it are kept. ``columns`` is the number of the user's variables.
    """

    core: FiniteLP
    objective: CurvedTerm | None
    sources: tuple[Source, ...]
    families: tuple[FamilyRows, ...]
    rows: tuple[int, ...]
    sign: float
    columns: int
    kinked: tuple[CurvedTerm, ...]

    @classmethod
    def of(cls, problem: SemiInfiniteLP) -> Parts:
        """The parts of a problem."""
        core, convex = problem.core, problem.convex
        assert convex is not None
        sign = -1.0 if core.maximize else 1.0
        low, high = core.row_lower.copy(), core.row_upper.copy()
        curved = list(convex.rows)
        low[curved], high[curved] = -np.inf, np.inf
        linear = replace(
            core,
            maximize=False,
            cost=sign * core.cost,
            offset=sign * core.offset,
            row_lower=low,
            row_upper=high,
            integer=np.zeros(core.columns, dtype=bool),
        )
        smooth, kinked = _without_kinks(convex.objective, sign)
        columns = core.columns + len(kinked)
        linear = _widened(linear, len(kinked))
        families = tuple(
            FamilyRows(compactify(family), convex.families.get(number), number, columns)
            for number, family in enumerate(problem.families)
        )
        found = [(number, _ordinary(core, convex, number, len(kinked))) for number in curved]
        kept = [(number, row) for number, row in found if row is not None]
        for place, term in enumerate(kinked):
            above = np.zeros(columns)
            above[core.columns + place] = -1.0
            kept.append((-1, OrdinaryRow("objective", term, above, 0.0, 1.0)))
        rows = tuple(number for number, _ in kept)
        sources = (*families, *(row for _, row in kept))
        return cls(linear, smooth, sources, families, rows, sign, core.columns, kinked)

    def filled(self, x: FloatArray) -> FloatArray:
        """Values of all columns from those of the user's: columns for terms with kinks have the terms' values."""
        with np.errstate(all="ignore"):
            return np.concatenate([x[: self.columns], *(term.values(x, np.zeros((1, 0))) for term in self.kinked)])

    def value(self, x: FloatArray) -> float:
        """The objective, for a minimum."""
        filled = self.filled(x)
        curved = 0.0 if self.objective is None else float(self.objective.values(filled, np.zeros((1, 0)))[0])
        return self.core.value(filled) + curved

    def newton(self, options: ExchangeOptions, until: float) -> Newton:
        """The loop over these parts."""
        return Newton(self.core, self.objective, self.sources, options.report, until, self.sign)


def _without_kinks(objective: CurvedTerm | None, sign: float) -> tuple[CurvedTerm | None, tuple[CurvedTerm, ...]]:
    """An objective's smooth terms for a minimum, and those with kinks one by one."""
    if objective is None:
        return None, ()
    objective = objective if sign > 0 else objective.negated()
    smooth = tuple(group for group in objective.groups if not group.kinked)
    kinked = [
        CurvedTerm((group.take(place),), 0)
        for group in objective.groups
        if group.kinked
        for place in range(len(group.columns))
    ]
    return CurvedTerm(smooth, 0) if smooth else None, tuple(kinked)


def _widened(core: FiniteLP, count: int) -> FiniteLP:
    """The linear part with free columns more, each of which costs 1."""
    if not count:
        return core
    return replace(
        core,
        cost=np.append(core.cost, np.ones(count)),
        column_lower=np.append(core.column_lower, np.full(count, -np.inf)),
        column_upper=np.append(core.column_upper, np.full(count, np.inf)),
        integer=np.append(core.integer, np.zeros(count, dtype=bool)),
        matrix=sparse.csr_array(sparse.hstack([core.matrix, sparse.csr_array((len(core.row_lower), count))])),
    )


def _ordinary(core: FiniteLP, convex: ConvexPart, number: int, more: int) -> OrdinaryRow | None:
    """A convex constraint; None where it has no limit."""
    upper = np.isfinite(core.row_upper[number])
    limit = float(core.row_upper[number] if upper else core.row_lower[number])
    if not np.isfinite(limit):
        return None
    linear = np.append(core.matrix[[number]].toarray()[0], np.zeros(more))
    return OrdinaryRow(core.row_names[number], convex.rows[number], linear, limit, 1.0 if upper else -1.0)


def solve_convex(problem: SemiInfiniteLP, options: ExchangeOptions) -> Outcome:
    """Solve a problem that is convex in its variables, over the whole index."""
    parts = Parts.of(problem)
    until = np.inf if options.time_limit is None else time.monotonic() + options.time_limit
    newton = parts.newton(options, until)
    assert problem.convex is not None
    start = problem.convex.start
    found = solve_parts(problem, parts, newton, start, options)
    if found.status != "undecided" or not np.isfinite(start).any() or time.monotonic() >= until:
        return found
    # The values of the user's variables are no more than a hint: from an optimum of before it may find no step.
    parts = Parts.of(problem)
    again = solve_parts(problem, parts, parts.newton(options, until), np.full_like(start, np.nan), options)
    return found if again.status == "undecided" else again


def solve_parts(
    problem: SemiInfiniteLP, parts: Parts, newton: Newton, start: FloatArray, options: ExchangeOptions
) -> Outcome:
    """Run the loop from a start, and make an answer of what it found."""
    ended = run_from(parts, newton, start, options)
    if isinstance(ended, str) or ended.look is None or ended.status in ("infeasible", "undecided"):
        status = ended if isinstance(ended, str) else ended.status
        conflict = conflict_of(problem, parts, newton.pool) if status == "infeasible" else NO_CONFLICT
        return Outcome(
            status, np.nan, np.nan, tuple(newton.log), conflict=conflict, remark=_REMARK if conflict.clauses else ""
        )
    settled = _settle(parts, newton, ended, options)
    bound = settled.ended.bound
    if bound is None:
        duals = np.zeros(len(problem.core.row_lower))
        bound = newton.best_bound(settled.look, newton.pool.multipliers(newton.sources, duals))
    return _outcome(parts, newton, settled, bound)


def run_from(parts: Parts, newton: Newton, start: FloatArray, options: ExchangeOptions) -> Ended | str:
    """Run the loop from a start; a status where there is none."""
    look = start_of(newton, start, parts.filled)
    if isinstance(look, str):
        return look
    for number, source in enumerate(parts.sources):
        with np.errstate(all="ignore"):
            newton.pool.add(number, source.cuts(look.x, source.beginning()))
    return newton.run(look, min(options.iteration_limit, _ITERATIONS))


@dataclass(frozen=True, eq=False)
class _Settled:
    """An answer that was repaired, proved and audited, and how the loop ended before."""

    ended: Ended
    look: Look
    repaired: bool
    families: tuple[Family, ...]
    searches: list[Search]
    proofs: tuple[FamilyProof, ...]
    looks: list[FamilyAudit]

    def missed(self, sources: Sequence[FamilyRows]) -> list[tuple[FamilyRows, FloatArray]]:
        """Points at which proof or audit found rows violated."""
        return [
            (source, points)
            for source, proof, seen in zip(sources, self.proofs, self.looks, strict=True)
            for points in (proof.violated, seen.worst[None] if seen.scaled > ENOUGH else None)
            if points is not None
        ]


def _settle(parts: Parts, newton: Newton, ended: Ended, options: ExchangeOptions) -> _Settled:
    """Repair, prove and audit an answer; where either finds a violation, the loop goes on from there."""
    for number in range(_ROUNDS):
        settled = _looked_at(parts, newton, ended, options, number)
        missed = settled.missed(parts.families)
        if not missed or ended.status != "optimal" or ended.look is None:
            break
        for source, points in missed:
            own = source.family.own_points(points)
            source.learn(own)
            newton.pool.add(source.number, source.cuts(settled.look.x, own))
        again = newton.look(ended.look.x)
        if again is None:
            break
        on = newton.run(again, len(newton.log) + min(options.iteration_limit, _ITERATIONS))
        if on.look is None or on.status not in ("optimal", "iteration_limit", "time_limit"):
            break
        ended = on
    return settled


def _looked_at(parts: Parts, newton: Newton, ended: Ended, options: ExchangeOptions, number: int) -> _Settled:
    assert ended.look is not None
    look, repaired = moved_inside(newton, ended.look)
    families, searches, x = fixed_families(parts.families, look.x)
    found = look.found[: len(families)]
    if ended.status == "optimal":
        proofs = prove_families(families, searches, found, x, ProofOptions(options.proof, newton.until))
    else:
        why = "it was stopped before its rows could hold"
        proofs = tuple(FamilyProof(family.name, "search", reason=why) for family in families)
    looks = audit_families(families, x, [each.points for each in found], number)
    return _Settled(ended, look, repaired, families, searches, proofs, looks)


def _outcome(parts: Parts, newton: Newton, settled: _Settled, bound: SafeBound | None) -> Outcome:
    """What was found, in the user's sense."""
    sign, look = parts.sign, settled.look
    value = parts.value(look.x)
    ordinary = max(parts.core.violation(look.x), _ordinary_violation(parts, look))
    count = len(newton.log)
    ended = Outcome(
        settled.ended.status,
        sign * value,
        sign * -np.inf,
        tuple(newton.log),
        tuple(source.family for source in parts.families),
        look.x[: parts.columns],
        Audit(tuple(settled.looks), ordinary, np.nan, np.nan, np.nan, np.nan),
        repaired=settled.repaired,
        rows=int(np.sum(newton.pool.source < len(parts.families))),
        memory=newton.pool.matrix.nbytes + sum(search.memory for search in settled.searches),
        separation=tuple(search.separation for search in settled.searches),
        proofs=settled.proofs,
        remark=f"convex: {count} iteration{'s' if count > 1 else ''}",
    )
    if bound is None:
        return ended
    checked = replace(
        bound.checked,
        families=tuple(settled.looks),
        ordinary_violation=ordinary,
        dual_bound=sign * bound.checked.dual_bound,
        gap=abs(value - bound.checked.dual_bound),
    )
    duals, reduced = _ordinary_duals(parts, bound)
    priced = zip(bound.multipliers.points, bound.multipliers.masses, bound.sides, strict=True)
    atoms = tuple((points, -sign * masses * sides) for points, masses, sides in priced)[: len(parts.families)]
    return replace(
        ended,
        bound=sign * bound.value,
        checked=checked,
        atoms=atoms,
        core_duals=duals,
        reduced_costs=reduced[: parts.columns],
    )


def _ordinary_violation(parts: Parts, look: Look) -> float:
    return max((max(0.0, each.relative) for each in look.found[len(parts.families) :]), default=0.0)


def _ordinary_duals(parts: Parts, bound: SafeBound) -> tuple[FloatArray, FloatArray]:
    """Duals of all ordinary rows, convex ones among them, and reduced costs, in the user's sense."""
    core = bound.linear.core
    reduced = core.cost - core.matrix.T @ bound.duals
    duals = bound.multipliers.ordinary.copy()
    first = len(parts.families)
    for number, masses, sides in zip(parts.rows, bound.multipliers.masses[first:], bound.sides[first:], strict=True):
        if number >= 0:
            duals[number] = -float(masses @ sides)
    return parts.sign * duals, parts.sign * reduced


def conflict_of(problem: SemiInfiniteLP, parts: Parts, pool: Pool) -> Conflict:
    """Which of the linear rows that touch the convex ones cannot hold together."""
    labelled = []
    columns = np.arange(parts.core.columns)
    for number, source in enumerate(parts.sources):
        own = np.flatnonzero(pool.source == number)
        # As they are declared: below a lower limit they stand in the pool with the other sign.
        side, right = pool.sides[own], pool.right[own]
        lower, upper = np.where(side < 0, -right, -np.inf), np.where(side < 0, np.inf, right)
        rows = RowBlock(columns, np.where(side < 0, -1.0, 1.0)[:, None] * pool.matrix[own], lower, upper)
        if isinstance(source, FamilyRows):
            family = source.family
            labels = [family.user_domain.label(family.user_points(pool.points[k][None])[0]) for k in own]
            sizes = np.array([1 / family.user_masses(pool.points[k][None], np.ones(1))[0] for k in own])
            lost = partial(_rounding_of, family, [pool.points[k] for k in own])
            labelled.append(LabelledRows("row", [source.name] * len(own), labels, rows, sizes, lost))
        else:
            nowhere, sizes = [None] * len(own), np.ones(len(own))
            labelled.append(LabelledRows("constraint", [source.name] * len(own), nowhere, rows, sizes))
    kept = [rows for rows in labelled if len(rows.rows)]
    core = replace(parts.core, matrix=sparse.csr_array(parts.core.matrix))
    return find_conflict(core, kept, scaling_for(core, []))


def _rounding_of(
    family: Family, points: Sequence[FloatArray], rows: IntArray, above: BoolArray, reach: FloatArray
) -> FloatArray:
    """What rounding may make of some rows of a family, each at a point."""
    return rounding_within_bounds(family, np.array([points[k] for k in rows.tolist()]), above, reach)
