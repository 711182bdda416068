"""The counterpart as a method: solved, proved by its own multipliers, and audited by what it did not use."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import ModelError, SolverError
from osilp_pyomo.lp.conic import SECOND_ORDER
from osilp_pyomo.lp.programs import Ended, solve_program
from osilp_pyomo.offline.audit import Audit, FamilyAudit, audit, audit_families
from osilp_pyomo.offline.conflicts import NO_CONFLICT, Conflict
from osilp_pyomo.offline.duality.counterpart import Counterpart, counterpart
from osilp_pyomo.offline.duality.sides import Atoms, Duals
from osilp_pyomo.offline.exchange import Exchange, ExchangeOptions
from osilp_pyomo.offline.prices import atomic_price
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.search.choose import searches_for
from osilp_pyomo.offline.solved import Point, Solved, integers_fixed

# Iterations of an exchange that is to tell which rows contradict each other.
_CONFLICT_ROUNDS = 60
# Ways in which farthest points of a set are found so fast that an audit can look at them.
_FAST = ("closed form", "enumeration")


def by_counterpart(problem: SemiInfiniteLP, options: ExchangeOptions, fix_integers: bool = False) -> Solved:
    """The robust counterpart: an equivalent finite program, linear or with cones."""
    started = time.monotonic()
    finite = counterpart(problem)
    _refuse_integers_in_cones(finite)
    ended = solve_program(finite.program, options.time_limit, keep_tiny=options.keep_tiny, fix_integers=fix_integers)
    size = finite.program.lp.matrix.nnz * 12 + sum(rows.matrix.nnz * 12 for rows in finite.program.cones)
    if ended.x is None:
        conflict = NO_CONFLICT
        if ended.status == "infeasible":
            conflict = _conflict(problem, options.remaining_since(started))
        return Solved(ended.status, ended.objective, ended.bound, memory=size, conflict=conflict, dropped=ended.dropped)
    return _answered(problem, finite, ended, size)


def _refuse_integers_in_cones(finite: Counterpart) -> None:
    other = next((rows.kind for rows in finite.program.cones if rows.kind != SECOND_ORDER), None)
    if other is not None and finite.program.lp.integer.any():
        raise ModelError(
            f"method='counterpart': whole numbers beside {other} cones cannot be solved; use method='exchange', or let "
            "the variables be continuous."
        )


def _answered(problem: SemiInfiniteLP, finite: Counterpart, ended: Ended, size: int) -> Solved:
    """A solution with its prices, proofs and audit."""
    assert ended.x is not None
    core = problem.core
    x, split = ended.x[: core.columns], len(core.row_lower)
    # What an interior point leaves beyond a bound is its rounding.
    x = np.clip(x, core.column_lower, core.column_upper)
    atoms = prices = core_duals = reduced = None
    if ended.row_duals is not None and ended.reduced_costs is not None:
        duals = Duals(ended.row_duals, ended.cone_duals, 1.0 if core.maximize else -1.0)
        atoms = finite.atoms(duals)
        prices = tuple(
            atomic_price(family.name, family.domain, *_carrying(*each), family.templates)
            for family, each in zip(problem.families, atoms, strict=True)
        )
        core_duals, reduced = ended.row_duals[:split], ended.reduced_costs[: core.columns]
    looks = _looks(problem, x, atoms)
    checked = audit(integers_fixed(problem, x), x, looks, atoms, core_duals)
    proofs = finite.proofs(problem.families, np.concatenate([x, ended.x[core.columns :]]))
    return Solved(
        ended.status,
        core.value(x),
        _bound(problem, ended, checked),
        Point(x, checked, prices, core_duals, reduced),
        len(finite.program.lp.row_lower) - split,
        size,
        bound_is_loose=ended.bound_is_loose,
        proofs=proofs,
    )


def _carrying(points: FloatArray, masses: FloatArray) -> Atoms:
    """Atoms with a mass; what is a million million times smaller than the largest is rounding."""
    kept = np.abs(masses) > 1e-12 * float(np.abs(masses).max(initial=0.0))
    return points[kept], masses[kept]


def _looks(problem: SemiInfiniteLP, x: FloatArray, atoms: list[Atoms] | None) -> list[FamilyAudit]:
    """An audit on vectors of its own, near the worst ones known: those of the prices, and by exact separation."""
    near = [np.empty((0, family.domain.dimension)) if atoms is None else atoms[number][0]
            for number, family in enumerate(problem.families)]  # fmt: skip
    fast = [number for number, family in enumerate(problem.families) if _is_fast(family)]
    for search in searches_for([problem.families[number] for number in fast]):
        found = search.worst(x)
        for member, place in enumerate(search.numbers.tolist()):
            number = fast[place]
            near[number] = np.concatenate([found.points[found.members == member], near[number]])
    return audit_families(problem.families, x, near)


def _is_fast(family: Family) -> bool:
    return family.domain.body is not None and family.domain.body.separation in _FAST


def _bound(problem: SemiInfiniteLP, ended: Ended, checked: Audit) -> float:
    """The bound of the program; that of a cone program is what its prices prove, moved by what they miss."""
    if ended.safe or problem.core.integer.any() or not np.isfinite(checked.doubt):
        return ended.bound
    sign = 1.0 if problem.core.maximize else -1.0
    return checked.dual_bound + sign * checked.doubt


def _conflict(problem: SemiInfiniteLP, options: ExchangeOptions) -> Conflict:
    """What cannot hold together, by exchange.

    The rows of a counterpart belong to multipliers, which say nothing to a reader; exchange knows the vectors.
    """
    nothing = Conflict(why_none="what conflicts is not known: exchange, which would tell, did not end")
    if options.time_limit is not None and options.time_limit <= 0:
        return nothing
    with suppress(SolverError):
        limited = replace(options, iteration_limit=min(options.iteration_limit, _CONFLICT_ROUNDS))
        exchange = Exchange(problem, searches_for(problem.families), limited)
        return exchange.conflict() if exchange.run().status == "infeasible" else nothing
    return nothing
