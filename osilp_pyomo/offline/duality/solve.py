"""The counterpart as a method: solved, proved by its own multipliers, and audited by what it did not use."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import ModelError, SolverError
from osilp_pyomo.index.choice_sets import ChoiceBody
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.lp.conic import SECOND_ORDER
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.programs import Ended, solve_program
from osilp_pyomo.lp.scaling import scaling_for
from osilp_pyomo.offline.audit import Audit, FamilyAudit, audit, audit_families
from osilp_pyomo.offline.conflicts import NO_CONFLICT, Conflict
from osilp_pyomo.offline.duality.choices import ChoiceFamily, TooManyChoicesError
from osilp_pyomo.offline.duality.counterpart import Counterpart, choice_families, counterpart
from osilp_pyomo.offline.duality.sides import Atoms, Duals
from osilp_pyomo.offline.exchange import Exchange, ExchangeOptions
from osilp_pyomo.offline.prepare import compactify
from osilp_pyomo.offline.prices import atomic_price
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.proof.certify import FamilyProof
from osilp_pyomo.offline.rows import TracedRows
from osilp_pyomo.offline.search.choose import searches_for
from osilp_pyomo.offline.solved import Point, Solved, integers_fixed

# What a cone program may miss, relative, where its prices do not prove the bound, and be called solved.
_SOLVED = 1e-8
# Iterations of an exchange that is to tell which rows contradict each other.
_CONFLICT_ROUNDS = 60
# How near to a bound an interior point's value counts as there, and what ordinary rows may then be violated by.
_SNAPPED, _UNBROKEN = 1e-8, 1e-9
# What an interior point leaves of a quantity that is zero, relative to the largest.
_DUST = 1e-11
# Shares of the way to a point inside of all cones, the smallest that suffices is taken.
_SHARES, _HALVINGS = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7), 4
# By which share costs are better than they are where prices of a vertex are looked for.
_BETTER = 1e-9
# How far points that stand beside an atom are from it, relative to its size.
_BESIDE = 1e-6
# How much further away they are where no simplex balances the equations with those: what that costs the bound is of
# second order.
_FURTHER = (1.0, 30.0)
# A relative violation from which on it is worth to move inside.
_NOTICED = 1e-7
# Atoms below this share of the largest are what an interior point leaves of rows that do not bind.
_NO_MASS = 1e-7
# What an atom may lie beyond an end of its index, relative to its size, and stand on it.
_BORDER = 1e-12
# Bounds of variables where a program with few of its rows has none.
_FAR = 1e6
# Ways in which farthest points of a set are found so fast that an audit can look at them.
_FAST = ("closed form", "enumeration")


def by_counterpart(problem: SemiInfiniteLP, options: ExchangeOptions, fix_integers: bool = False) -> Solved:
    """The robust counterpart: an equivalent finite program, linear or with cones."""
    started = time.monotonic()
    chosen = choice_families(problem)
    finite, ended = _choice_by_choice(problem, chosen, options, fix_integers)
    size = finite.program.lp.matrix.nnz * 12 + sum(rows.matrix.nnz * 12 for rows in finite.program.cones)
    if ended.x is None:
        conflict, status = NO_CONFLICT, ended.status
        if ended.status == "infeasible":
            conflict = _conflict(problem, options.remaining_since(started))
            if finite.program.cones and not conflict.clauses:
                # Planes and interior points stop short of a border by more than some models have room.
                status = "undecided"
        return Solved(status, ended.objective, ended.bound, memory=size, conflict=conflict, dropped=ended.dropped)
    return _answered(problem, finite, ended, size, chosen)


def _choice_by_choice(
    problem: SemiInfiniteLP, chosen: Mapping[int, ChoiceFamily], options: ExchangeOptions, fix_integers: bool
) -> tuple[Counterpart, Ended]:
    """The program and its answer; with sums of maxima, the last of those that violated choices are added to."""
    started = time.monotonic()
    while True:
        finite = counterpart(problem, chosen)
        _refuse_integers_in_cones(finite)
        left = options.remaining_since(started).time_limit
        last = None if options.warmth is None else options.warmth.program
        ended = solve_program(
            finite.program,
            left,
            keep_tiny=options.keep_tiny,
            fix_integers=fix_integers,
            solver=options.solver,
            last=last,
        )
        if not _learn(problem, finite, ended, chosen):
            return finite, ended
        left = options.remaining_since(started).time_limit
        if left is not None and left <= 0:
            return finite, replace(ended, status="time_limit")


def _learn(problem: SemiInfiniteLP, finite: Counterpart, ended: Ended, chosen: Mapping[int, ChoiceFamily]) -> bool:
    """Add violated choices of sums of maxima; whether there were any."""
    if not chosen:
        return False
    if ended.status == "unbounded":
        # Within a box, far out, what is left out shows itself.
        lp = finite.program.lp
        boxed = replace(
            lp, column_lower=np.maximum(lp.column_lower, -_FAR), column_upper=np.minimum(lp.column_upper, _FAR)
        )
        ended = solve_program(replace(finite.program, lp=boxed))
    if ended.x is None:
        return False
    x = ended.x[: problem.core.columns]
    x = np.clip(x, problem.core.column_lower, problem.core.column_upper)
    atoms = None
    if ended.row_duals is not None:
        atoms = finite.atoms(Duals(ended.row_duals, ended.cone_duals, 1.0 if problem.core.maximize else -1.0))
    learnt = False
    for number, each in chosen.items():
        near = np.empty((0, each.body.dimension)) if atoms is None else atoms[number][0]
        with suppress(TooManyChoicesError):
            learnt |= each.learn(x, near)
    return learnt


def _refuse_integers_in_cones(finite: Counterpart) -> None:
    other = next((rows.kind for rows in finite.program.cones if rows.kind != SECOND_ORDER), None)
    if other is not None and finite.program.lp.integer.any():
        raise ModelError(
            f"method='counterpart': whole numbers beside {other} cones cannot be solved; use method='exchange', or let "
            "the variables be continuous."
        )


def _answered(
    problem: SemiInfiniteLP, finite: Counterpart, ended: Ended, size: int, chosen: Mapping[int, ChoiceFamily]
) -> Solved:
    """A solution with its prices, proofs and audit."""
    assert ended.x is not None
    core = problem.core
    x, split = ended.x[: core.columns], len(core.row_lower)
    x = _settled(core, x) if finite.program.cones else np.clip(x, core.column_lower, core.column_upper)
    atoms = prices = core_duals = reduced = None
    if ended.row_duals is not None and ended.reduced_costs is not None:
        duals = Duals(ended.row_duals, ended.cone_duals, 1.0 if core.maximize else -1.0)
        atoms = [_members(family, *each) for family, each in zip(problem.families, finite.atoms(duals), strict=True)]
        prices = tuple(
            atomic_price(family.name, family.domain, *_carrying(*each), family.templates)
            for family, each in zip(problem.families, atoms, strict=True)
        )
        core_duals, reduced = ended.row_duals[:split], ended.reduced_costs[: core.columns]
    found = np.concatenate([x, ended.x[core.columns :]])
    proofs = finite.proofs(problem.families, found)
    families = tuple(map(compactify, problem.families))
    bounded, placed = SemiInfiniteLP(core, families), None if atoms is None else _placed(families, atoms)
    proved = all(proof.proved for proof in proofs)
    looks = _looks(bounded, x, placed, proved) if proved else []
    missed = max((look.scaled for look in looks), default=0.0) > _NOTICED
    if finite.program.cones and (missed or not proved):
        found, proofs = _moved_inside(finite, problem.families, found, proofs)
        found, proofs = _settled_again(finite, problem, found, proofs)
        x = found[: core.columns]
    proofs = tuple(chosen[number].proof(x, proof) if number in chosen else proof for number, proof in enumerate(proofs))
    if missed or not proved:
        looks = _looks(bounded, x, placed, all(proof.proved for proof in proofs))
    checked = None
    if atoms is not None and finite.program.cones and not core.integer.any():
        for times in _FURTHER:
            checked = checked or _crossed_over(problem, bounded, x, looks, atoms, times)
    if checked is None:
        checked = audit(integers_fixed(bounded, x), x, looks, placed, core_duals)
    status = ended.status
    doubtful = not ended.safe and ended.missed > _SOLVED and not checked.proves_bound
    # Of a row whose multipliers prove nothing at all a cone program may be far beyond the border.
    doubtful |= bool(finite.program.cones) and not all(np.isfinite(proof.largest) for proof in proofs)
    if doubtful and status == "optimal":
        status = "inaccurate"
    return Solved(
        status,
        core.value(x),
        _bound(problem, ended, checked),
        Point(x, checked, prices, core_duals, reduced),
        len(finite.program.lp.row_lower) - split,
        size,
        bound_is_loose=ended.bound_is_loose,
        proofs=proofs,
    )


def _settled(core: FiniteLP, x: FloatArray) -> FloatArray:
    """Values that keep ordinary rows and bounds up to rounding, next to those of an interior point, which never do.

    First what is near to a bound is put there; where rows are still violated by much of their own size, as those of
    quantities that must be zero are, an LP finds the values nearest to these that keep them.
    """
    x = np.clip(x, core.column_lower, core.column_upper)
    snapped = _snapped(core, x)
    dusted = _dusted(core, snapped)
    for tried in (snapped, x, dusted):
        if core.violation(tried) <= _UNBROKEN:
            return tried
    eye, none = sparse.eye_array(core.columns), sparse.csr_array(core.matrix.shape)
    held, anywhere = core.integer, np.full(core.columns, np.inf)
    nearest = FiniteLP(
        maximize=False,
        cost=np.repeat([0.0, 1.0], core.columns),
        column_lower=np.concatenate([np.where(held, snapped, core.column_lower), np.zeros(core.columns)]),
        column_upper=np.concatenate([np.where(held, snapped, core.column_upper), anywhere]),
        matrix=sparse.csr_array(
            sparse.vstack([sparse.hstack([core.matrix, none]), sparse.hstack([eye, -eye]), sparse.hstack([eye, eye])])
        ),
        row_lower=np.concatenate([core.row_lower, -anywhere, snapped]),
        row_upper=np.concatenate([core.row_upper, snapped, anywhere]),
    )
    found = HighsModel(nearest).solve().x
    if found is None:
        return min((x, dusted), key=core.violation)
    moved = found[: core.columns]
    return min((_snapped(core, moved), moved, _dusted(core, moved), x, dusted), key=core.violation)


def _dusted(core: FiniteLP, x: FloatArray) -> FloatArray:
    """Values without what an interior point leaves of zeros: rows between such quantities are missed by as much."""
    dust = np.abs(x) <= _DUST * np.abs(x).max(initial=0.0)
    return np.clip(np.where(dust, 0.0, x), core.column_lower, core.column_upper)


def _snapped(core: FiniteLP, x: FloatArray) -> FloatArray:
    """Values next to their bounds put there."""
    for bound in (core.column_lower, core.column_upper):
        x = np.where(np.isfinite(bound) & (np.abs(x - bound) <= _SNAPPED * (1 + np.abs(x))), bound, x)
    return x


def _moved_inside(
    finite: Counterpart, families: tuple[Family, ...], found: FloatArray, proofs: tuple[FamilyProof, ...]
) -> tuple[FloatArray, tuple[FamilyProof, ...]]:
    """A point of the program a little inside of its cones, where that makes its multipliers prove what they should.

    Over a set without an end multipliers that miss by a rounding prove nothing.
    """
    inner = finite.inner_point(found)
    if inner is None:
        return found, proofs
    best, low = (found, proofs), 0.0
    for share in _SHARES:
        moved = found + share * (inner - found)
        again = finite.proofs(families, moved)
        if all(proof.proved for proof in again) and not all(proof.proved for proof in best[1]):
            best = moved, again
        if all(proof.largest <= 0 for proof in again):
            best = moved, again
            break
        low = share
    else:
        return best
    # Each halving of the way that was too long keeps half of what it costs.
    for _ in range(_HALVINGS):
        middle = (low + share) / 2
        moved = found + middle * (inner - found)
        again = finite.proofs(families, moved)
        if all(proof.largest <= 0 for proof in again):
            share, best = middle, (moved, again)
        else:
            low = middle
    return best


def _settled_again(
    finite: Counterpart, problem: SemiInfiniteLP, found: FloatArray, proofs: tuple[FamilyProof, ...]
) -> tuple[FloatArray, tuple[FamilyProof, ...]]:
    """A point that was moved, with values that keep ordinary rows again, where its multipliers prove as much there."""
    x, rest = np.split(found, [problem.core.columns])
    if problem.core.violation(x) <= _UNBROKEN:
        return found, proofs
    settled = np.concatenate([_settled(problem.core, x), rest])
    again = finite.proofs(problem.families, settled)
    worse = any(before.proved and not after.proved for before, after in zip(proofs, again, strict=True))
    return (found, proofs) if worse else (settled, again)


def _crossed_over(
    problem: SemiInfiniteLP,
    bounded: SemiInfiniteLP,
    x: FloatArray,
    looks: Sequence[FamilyAudit],
    atoms: Sequence[Atoms],
    times: float,
) -> Audit | None:
    """The audit with prices of a vertex: those of the LP with rows at the atoms and next to them; None without proof.

    The duals of an interior point miss the dual equations by a little, which proves nothing where variables have no
    bounds; those of a simplex hold up to rounding. Points next to the atoms are ``times`` as far away as usual.
    """
    core = problem.core
    if np.all(np.isfinite(core.column_lower) & np.isfinite(core.column_upper)):
        return None
    # A variable with one bound may have a reduced cost of one sign: with a cost that is a little better than it is,
    # what a simplex leaves of its equation has that sign.
    one_sided = np.isfinite(core.column_lower).astype(float) - np.isfinite(core.column_upper)
    better = one_sided * _BETTER * (np.abs(core.cost) + np.abs(core.cost).max(initial=0.0))
    cost = core.cost + (better if core.maximize else -better)
    model = HighsModel(replace(core, cost=cost), scaling_for(core, []))
    places = []
    for family, (points, masses) in zip(problem.families, atoms, strict=True):
        kept = points[np.abs(masses) > _NO_MASS * np.abs(masses).max(initial=0.0)]
        near = np.concatenate([points[:0], kept, *(_nearby(family.domain, point, times) for point in kept)])
        if len(near):
            block = family.block(near)
            model.add_rows(block.columns, block.matrix, block.lower, block.upper)
        places.append(near)
    solution = model.solve()
    if solution.status != "optimal" or solution.row_duals is None:
        return None
    split = len(core.row_lower)
    parts = np.split(solution.row_duals[split:], np.cumsum([len(each) for each in places])[:-1])
    vertex = [(near[part != 0], part[part != 0]) for near, part in zip(places, parts, strict=True)]
    again = audit(bounded, x, looks, _placed(bounded.families, vertex), solution.row_duals[:split])
    return again if again.proves_bound else None


def _nearby(domain: Domain, point: FloatArray, times: float) -> FloatArray:
    """Points of an index to all sides of one."""
    if domain.body is not None:
        moved = point + times * (domain.body.nearby(point) - point)
        return moved if times == 1 else domain.body.brought_in(moved[domain.body.contains(moved)])
    step = np.diag(times * _BESIDE * np.maximum(1.0, np.abs(point)))
    return np.clip(np.concatenate([point + step, point - step]), domain.lower, domain.upper)


def _placed(families: Sequence[Family], atoms: Sequence[Atoms]) -> list[Atoms]:
    """Atoms of a problem as atoms of that over bounded domains."""
    placed = []
    for family, (points, masses) in zip(families, atoms, strict=True):
        own = family.own_points(points)
        placed.append((own, masses / family.user_masses(own, np.ones(len(own))) if len(own) else masses))
    return placed


def _members(family: Family, points: FloatArray, masses: FloatArray) -> Atoms:
    """Atoms that belong to the index: duals that are rounding point anywhere, and prove nothing."""
    if not len(points):
        return points, masses
    domain = family.domain
    if domain.body is None:
        # Of an end that was computed a rounding may lie beyond it.
        inside = np.clip(points, domain.lower, domain.upper)
        with np.errstate(invalid="ignore"):
            beside = np.abs(inside - points) <= _BORDER * np.maximum(1.0, np.abs(inside))
        points = np.where(beside, inside, points)
    kept = domain.contains(points) & np.all(np.isfinite(points), axis=1)
    return points[kept] if domain.body is None else domain.body.brought_in(points[kept]), masses[kept]


def _carrying(points: FloatArray, masses: FloatArray) -> Atoms:
    """Atoms with a mass; what is a million million times smaller than the largest is rounding."""
    kept = np.abs(masses) > 1e-12 * float(np.abs(masses).max(initial=0.0))
    return points[kept], masses[kept]


def _looks(problem: SemiInfiniteLP, x: FloatArray, atoms: list[Atoms] | None, proved: bool) -> list[FamilyAudit]:
    """An audit on vectors of its own, near the worst ones known: those of the prices, and by exact separation.

    Where a row that is curved is proved by its multipliers, climbing on it would tell nothing new.
    """
    near = [np.empty((0, family.domain.dimension)) if atoms is None else atoms[number][0]
            for number, family in enumerate(problem.families)]  # fmt: skip
    fast = [number for number, family in enumerate(problem.families) if _is_fast(family, proved)]
    for search in searches_for([problem.families[number] for number in fast]):
        found = search.worst(x)
        for member, place in enumerate(search.numbers.tolist()):
            number = fast[place]
            near[number] = np.concatenate([found.points[found.members == member], near[number]])
    return audit_families(problem.families, x, near, proved=proved)


def _is_fast(family: Family, proved: bool) -> bool:
    body = family.domain.body
    return body is not None and body.separation in _FAST and not (proved and isinstance(family.rows, TracedRows))


def _bound(problem: SemiInfiniteLP, ended: Ended, checked: Audit) -> float:
    """The bound of the program, and of what its prices prove the weaker one, moved by what they miss.

    Of a cone program only what the prices prove counts.
    """
    if problem.core.integer.any() or not np.isfinite(checked.doubt):
        return ended.bound
    sign = 1.0 if problem.core.maximize else -1.0
    proved = sign * checked.dual_bound + checked.doubt
    return sign * (max(sign * ended.bound, proved) if ended.safe else proved)


def _conflict(problem: SemiInfiniteLP, options: ExchangeOptions) -> Conflict:
    """What cannot hold together, by exchange.

    The rows of a counterpart belong to multipliers, which say nothing to a reader; exchange knows the vectors.
    """
    nothing = Conflict(why_none="what conflicts is not known: exchange, which would tell, did not end")
    if any(isinstance(family.domain.body, ChoiceBody) for family in problem.families):
        return Conflict(why_none="what conflicts is not known: exchange, which would tell, has no sums of maxima")
    if options.time_limit is not None and options.time_limit <= 0:
        return nothing
    with suppress(SolverError):
        limited = replace(options, iteration_limit=min(options.iteration_limit, _CONFLICT_ROUNDS))
        families = tuple(map(compactify, problem.families))
        exchange = Exchange(SemiInfiniteLP(problem.core, families), searches_for(families), limited)
        return exchange.conflict() if exchange.run().status == "infeasible" else nothing
    return nothing
