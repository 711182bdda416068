"""The offline methods on a problem in arrays: exact over the continuum, as a counterpart, on grids, projected."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import AUTO, DUAL
from osilp_pyomo.errors import DomainError, ModelError, NotLinearError, SolverError
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.index.choice_sets import ChoiceBody
from osilp_pyomo.index.grids import GridPoints
from osilp_pyomo.offline.audit import Audit, FamilyAudit, audit, audit_at, audit_families, audit_family
from osilp_pyomo.offline.choose import Choice, choose_method
from osilp_pyomo.offline.conflicts import NO_CONFLICT
from osilp_pyomo.offline.convex.integers import by_outer_approximation
from osilp_pyomo.offline.convex.solve import solve_convex
from osilp_pyomo.offline.duality.solve import by_counterpart
from osilp_pyomo.offline.exchange import Exchange, ExchangeOptions, ExchangeOutcome
from osilp_pyomo.offline.prepare import compactify
from osilp_pyomo.offline.prices import Price, atomic_price, projected_price
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP, allow_calls
from osilp_pyomo.offline.projection import project, solve_projected
from osilp_pyomo.offline.proof.certify import ENOUGH, FamilyProof, ProofOptions, prove_families
from osilp_pyomo.offline.rows import TimeUpError
from osilp_pyomo.offline.search.choose import searches_for
from osilp_pyomo.offline.search.clusters import join_close
from osilp_pyomo.offline.search.local import polish
from osilp_pyomo.offline.search.scan import FiniteSearch, Search, Violations
from osilp_pyomo.offline.solved import Point, Solved, as_proved, integers_fixed

# A bracket wider than this, relative to 1 + |objective|, is worth further iterations.
_BRACKET = 1e-8
# A bracket of a counterpart that is closed, relative to 1 + |objective|.
_SETTLED = 1e-6
# A relative violation that more iterations cannot lower.
_ROUNDING = 1e-14
# How often exchange may go on after its audit found a miss.
_AUDIT_ROUNDS = 4
# How often exchange may go on because its bracket was too wide.
_NARROWED = 4
# How often exchange may go on after its proof found a violation.
_PROOF_ROUNDS = 12
# How many budgets of a proof all of those rounds may take together.
_PROOF_BUDGETS = 2
# Peaks of an audit from which a local search starts.
_CLIMBED = 3
# A relative violation of rows that are in the LP above this is beyond HiGHS' arithmetic.
_ENFORCED = 1e-6
# A relative violation that is nothing but rounding of a sum.
_EXACTLY = 1e-13
# What joining atoms that straddle one binding point may cost of an integral's accuracy.
_SAME_ATOM = 1e-7


def solve_by(
    method: str, problem: SemiInfiniteLP, placed: Sequence[Any], options: ExchangeOptions, fix_integers: bool = False
) -> Solved:
    """Solve by a method, which has grids or test functions ``placed`` for each family if it needs them.

    Where there is no answer, and HiGHS took coefficients for rounding and left them out, it is looked for again with
    them. That a problem is infeasible is proved by a conflict, that it is unbounded by nothing.
    """
    started = time.monotonic()
    allow_calls(problem.families, np.inf if options.time_limit is None else started + options.time_limit)
    try:
        solved = _solve_once(method, problem, placed, options, fix_integers)
    except TimeUpError:
        return Solved("time_limit", np.nan, np.nan)
    finally:
        allow_calls(problem.families, np.inf)
    doubtful = solved.point is None or not solved.point.audit.proves_bound or solved.point.prices is None
    if options.keep_tiny or not solved.dropped or solved.conflict.clauses or not doubtful:
        return as_proved(solved, bool(problem.core.integer.any()))
    left = options.remaining_since(started)
    if left.time_limit is None or left.time_limit > 0:
        with suppress(SolverError):
            again = solve_by(method, problem, placed, replace(left, keep_tiny=True), fix_integers)
            if again.point is not None or solved.point is None:
                return again
    return as_proved(solved, bool(problem.core.integer.any()))


def _solve_once(
    method: str, problem: SemiInfiniteLP, placed: Sequence[Any], options: ExchangeOptions, fix_integers: bool
) -> Solved:
    if problem.convex is not None:
        return by_convex(method, problem, options, fix_integers)
    if method == AUTO:
        return by_choice(problem, options, fix_integers)
    if method == "exchange":
        return by_exchange(problem, options, fix_integers)
    if method == "counterpart":
        return by_counterpart(problem, options, fix_integers)
    if method == "discretized":
        return by_grid(problem, placed, options, fix_integers)
    return by_projection(problem, placed, options, fix_integers)


def by_choice(problem: SemiInfiniteLP, options: ExchangeOptions, fix_integers: bool = False) -> Solved:
    """The method that fits the problem; another where that one does not end, or gives no answer that it can prove."""
    started = time.monotonic()
    choice = choose_method(problem)
    if options.solver == DUAL:
        choice = Choice("exchange", "solver='dual' was asked for")
    if choice.method == "exchange":
        most = options.iteration_limit if choice.patience is None else min(choice.patience, options.iteration_limit)
        solved = by_exchange(problem, replace(options, iteration_limit=most), fix_integers)
        if most == options.iteration_limit or solved.status != "iteration_limit":
            return replace(solved, method="exchange", why=choice.why)
        choice = Choice("counterpart", f"exchange did not end within {most} iterations")
    try:
        answered = by_counterpart(problem, options.remaining_since(started), fix_integers)
    except ModelError:
        # Integers beside other cones than second-order ones.
        why = "its counterpart has whole numbers beside cones that no solver here takes together"
        return replace(by_exchange(problem, options, fix_integers), method="exchange", why=why)
    answered = replace(answered, method="counterpart", why=choice.why)
    left = options.remaining_since(started)
    told = answered.conflict.clauses or answered.status == "infeasible"
    endless = any(_exchange_would_wander(family) for family in problem.families)
    if told or endless or _is_settled(answered) or (left.time_limit is not None and left.time_limit <= 0):
        return answered
    # What the counterpart points to is where exchange begins.
    prices = None if answered.point is None else answered.point.prices
    begun = () if prices is None else tuple(price.points for price in prices)
    why = f"the counterpart was tried and ended '{answered.status}' without a proof"
    try:
        again = replace(by_exchange(problem, left, fix_integers, begun), method="exchange", why=why)
    except DomainError:
        # Its separation has no end in a set that has none.
        return answered
    return again if again.point is not None or answered.point is None else answered


def _exchange_would_wander(family: Family) -> bool:
    """Whether exchange would search for very long: in several dimensions without ends, or among choices."""
    domain = family.domain
    if isinstance(domain.body, ChoiceBody):
        return True
    return not domain.bounded and (domain.body is not None or domain.dimension > 1)


def _is_settled(solved: Solved) -> bool:
    """Whether a counterpart's answer is as good as it can be: proved, or what there is at a limit."""
    if solved.point is None:
        return False
    if solved.status != "optimal":
        return solved.status == "time_limit"
    close = abs(solved.objective - solved.bound) <= _SETTLED * (1 + abs(solved.objective))
    gap = solved.point.audit.gap
    close &= bool(np.isnan(gap)) or gap <= _SETTLED * (1 + abs(solved.objective))
    kept = all(look.scaled <= _ENFORCED for look in solved.point.audit.families)
    return close and kept and solved.point.audit.proves_bound and all(proof.proved for proof in solved.proofs)


def by_exchange(
    problem: SemiInfiniteLP,
    options: ExchangeOptions,
    fix_integers: bool = False,
    begun: Sequence[FloatArray] = (),
) -> Solved:
    """Exact over the continuum; goes on where the audit or the proof finds a violation that the search had missed.

    ``begun`` are points of each family, in the user's coordinates, whose rows it begins with.
    """
    for family in problem.families:
        if isinstance(family.domain.body, ChoiceBody):
            raise ModelError(
                f"SemiInfiniteConstraint '{family.name}': it has sums of maxima, which exchange does not take; use "
                "method='counterpart', or write the largest of all their sums as a list of pieces."
            )
        if family.domain.body is not None and not family.domain.bounded:
            raise ModelError(
                f"SemiInfiniteConstraint '{family.name}': it holds over {family.domain.body}, which has no end; use "
                "method='counterpart', or give the support bounds."
            )
    families = tuple(compactify(family) for family in problem.families)
    bounded = SemiInfiniteLP(problem.core, families)
    warmth = options.warmth
    held = None if warmth is None else warmth.exchange
    if held is not None and held.fits(families):
        searches = held.searches_for(families, searches_for(families, held.searches))
    else:
        held, searches = None, searches_for(families)
    exchange = Exchange(bounded, searches, options, held)
    cuts = () if held is None else held.cuts
    for number, points in enumerate(begun):
        # Whatever told them: a row that is none of the problem's would make the bound too high.
        own = families[number].own_points(points)
        exchange.add_points(number, own[families[number].domain.contains(own)])
    outcome = exchange.run()
    if outcome.status == "unbounded" and not _proves_unbounded(exchange):
        outcome = replace(outcome, status="undecided", objective=np.nan, bound=np.nan)
    for number in range(_AUDIT_ROUNDS + 1):
        outcome, proofs = _follow_proof(exchange, outcome, options, cuts)
        looks = _look(exchange, outcome, proofs, number)
        if number == _AUDIT_ROUNDS or outcome.status != "optimal":
            break
        if not _learn_from_audit(exchange, outcome, looks):
            break
        outcome = exchange.run_on(outcome)
    if warmth is not None:
        cuts = tuple(proof.cuts for proof in proofs)
        warmth.exchange = replace(exchange.held(), cuts=cuts) if outcome.x is not None else None
    if fix_integers:
        outcome = exchange.with_prices(outcome)
    checked = None
    if outcome.x is not None:
        fixed = integers_fixed(bounded, outcome.x)
        checked = audit(fixed, outcome.x, looks, _atoms(outcome), outcome.core_duals)
    bound = _safe_bound(problem, outcome.bound, checked)
    return replace(_solved(exchange, outcome, bound, families, checked, exchange_price), proofs=proofs)


def _proves_unbounded(exchange: Exchange) -> bool:
    """Whether a ray that keeps every row over its whole index, and a point to begin it at, are proved to be so."""
    if exchange.ray is None or exchange.witness is None:
        return False
    rays, searches, ray = exchange.ray
    if len(ray) != exchange.problem.core.columns:
        return False
    left = exchange.remaining().time_limit
    wanted = ProofOptions(until=np.inf if left is None else time.monotonic() + left, aim=_EXACTLY)

    def violation(problem: SemiInfiniteLP, looking: Sequence[Search], x: FloatArray) -> float:
        """The largest relative violation that is possible anywhere; not a number where nothing is proved."""
        found = [search.worst(x) for search in looking]
        proofs = prove_families(problem.families, looking, found, x, wanted)
        each = [proof.relative if proof.violated is None else np.nan for proof in proofs]
        return float(np.max([problem.core.violation(x), *each]))

    if not violation(exchange.problem, exchange.searches, exchange.witness) <= _ENFORCED:
        return False
    # A ray that is followed for ever leaves whatever it violates by the least. A solver leaves some 1e-10; where the
    # true ray is one of simple numbers, rounding finds it.
    ray = ray / np.abs(ray).max(initial=1e-300)
    for digits in (None, 9, 6, 3):
        tried = ray if digits is None else np.round(ray, digits)
        gains = (1 if exchange.problem.core.maximize else -1) * float(exchange.problem.core.cost @ tried) > 0
        if gains and violation(rays, searches, tried) <= _EXACTLY:
            return True
    return False


def _follow_proof(
    exchange: Exchange,
    outcome: ExchangeOutcome,
    options: ExchangeOptions,
    cuts: Sequence[FloatArray | None] = (),
) -> tuple[ExchangeOutcome, tuple[FamilyProof, ...]]:
    """Prove the rows of an answer, and go on where the proof finds them violated."""
    spent, most = 0.0, _PROOF_BUDGETS * ProofOptions(options.proof).budget.work
    for _ in range(_PROOF_ROUNDS):
        outcome = _narrow(exchange, outcome)
        proofs = _prove(exchange, outcome, options, cuts)
        spent += sum(proof.work for proof in proofs)
        if outcome.status != "optimal" or spent > most or not _learn(exchange, proofs):
            return outcome, proofs
        outcome = exchange.run_on(outcome)
    return outcome, _prove(exchange, outcome, options, cuts)


def _narrow(exchange: Exchange, outcome: ExchangeOutcome) -> ExchangeOutcome:
    """Go on with a smaller tolerance while the bracket is too wide."""
    for _ in range(_NARROWED):
        if outcome.status != "optimal":
            break
        wide = abs(outcome.objective - outcome.bound) > _BRACKET * (1 + abs(outcome.objective))
        # Without a Slater point the answer stays as violated as it is: only less violation makes it better.
        loose = not outcome.repaired and max((found.relative for found in outcome.found), default=0.0) > _ROUNDING
        if not ((wide or loose) and exchange.tighten(0.01)):
            break
        outcome = exchange.run_on(outcome)
    return outcome


def _look(
    exchange: Exchange, outcome: ExchangeOutcome, proofs: Sequence[FamilyProof], number: int
) -> list[FamilyAudit]:
    """What an audit sees on points of its own, near those that search and proof told, and uphill from its highest."""
    if outcome.x is None:
        return []
    families = exchange.problem.families
    near = _near(exchange.searches, outcome.found, len(families))
    for k, proof in enumerate(proofs):
        if proof.violated is not None:
            near[k] = np.concatenate([near[k], families[k].own_points(proof.violated)])
    hurry = exchange.out_of_time
    looks = audit_families(families, outcome.x, near, number, hurry)
    if hurry:
        return looks
    return [
        seen if family.domain.body is not None else _climbed(family, outcome.x, seen)
        for family, seen in zip(families, looks, strict=True)
    ]


def _learn_from_audit(exchange: Exchange, outcome: ExchangeOutcome, looks: Sequence[FamilyAudit]) -> bool:
    """Give points of the audit to the searches that had missed them; whether there were any."""
    missed = False
    for search, found in zip(exchange.searches, outcome.found, strict=True):
        for member, number in enumerate(search.numbers.tolist()):
            seen, enough = looks[number], max(10 * exchange.options.tolerance, 2 * found.relative)
            if seen.scaled > enough:
                missed |= search.learn(member, np.unique([seen.worst, seen.worst_scaled, *seen.peaks], axis=0))
    return missed


def _prove(
    exchange: Exchange, outcome: ExchangeOutcome, options: ExchangeOptions, cuts: Sequence[FloatArray | None]
) -> tuple[FamilyProof, ...]:
    """What is proved of each family's rows at an answer; nothing where there is none."""
    if outcome.x is None:
        return ()
    if outcome.status not in ("optimal", "inaccurate"):
        why = "it was stopped before its rows could hold"
        return tuple(FamilyProof(family.name, "search", reason=why) for family in exchange.problem.families)
    left = exchange.remaining().time_limit
    until = np.inf if left is None else time.monotonic() + left
    wanted = ProofOptions(options.proof, until, cuts=cuts)
    return prove_families(exchange.problem.families, exchange.searches, outcome.found, outcome.x, wanted)


def _learn(exchange: Exchange, proofs: Sequence[FamilyProof]) -> bool:
    """Add rows where a proof found them violated; whether there were any new ones."""
    new = 0
    for search in exchange.searches:
        for member, number in enumerate(search.numbers.tolist()):
            points = proofs[number].violated if proofs else None
            if points is not None:
                points = exchange.problem.families[number].own_points(points)
                search.learn(member, points)
                new += exchange.add_points(number, points)
    return new > 0


def by_convex(method: str, problem: SemiInfiniteLP, options: ExchangeOptions, fix_integers: bool = False) -> Solved:
    """Exact over the continuum for a problem that is convex in its variables."""
    if method not in (AUTO, "exchange"):
        raise NotLinearError(
            f"solve: method={method!r} needs linear rows and a linear objective, and the model has convex ones; use "
            "method='exchange'."
        )
    why = "it is not linear in its variables: rows that touch the convex ones are exchanged" if method == AUTO else ""
    solver = by_outer_approximation if problem.core.integer.any() else solve_convex
    found = solver(problem, options)
    if found.x is None or found.checked is None:
        ended = Solved(found.status, np.nan, np.nan, log=found.log, conflict=found.conflict, remark=found.remark)
        return replace(ended, method="exchange", why=why)
    prices, duals, reduced, checked = None, found.core_duals, found.reduced_costs, found.checked
    if found.atoms is not None:
        prices = tuple(exchange_price(family, *each) for family, each in zip(found.families, found.atoms, strict=True))
    if problem.core.integer.any() and not fix_integers:
        # Prices belong to the integers that are fixed, and are told where they are asked for.
        prices = duals = reduced = None
        checked = Audit(checked.families, checked.ordinary_violation, np.nan, np.nan, np.nan, np.nan)
    return Solved(
        found.status,
        found.objective,
        found.bound,
        Point(found.x, checked, prices, duals, reduced, found.repaired),
        found.rows,
        found.memory,
        found.log,
        found.separation,
        proofs=found.proofs,
        method="exchange",
        why=why,
        remark=found.remark,
    )


def by_grid(
    problem: SemiInfiniteLP, grids: Sequence[GridPoints], options: ExchangeOptions, fix_integers: bool = False
) -> Solved:
    """The LP over all grid rows, solved by adding the violated ones: its optimum, with fewer rows in memory."""
    searches = [
        FiniteSearch(family, placed.points, number)
        for number, (family, placed) in enumerate(zip(problem.families, grids, strict=True))
    ]
    exchange = Exchange(problem, searches, options)
    outcome = exchange.run()
    if fix_integers:
        outcome = exchange.with_prices(outcome)
    checked = None
    if outcome.x is not None:
        seen = [placed.points for placed in grids]
        checked = _audit_bound(problem, outcome.x, seen, _atoms(outcome), outcome.core_duals)
    solved = _solved(exchange, outcome, outcome.bound, problem.families, checked, _grid_price)
    return replace(solved, proofs=_prove_between(problem, solved, exchange.remaining()))


def by_projection(
    problem: SemiInfiniteLP,
    functionals: Sequence[Functionals],
    options: ExchangeOptions,
    fix_integers: bool = False,
) -> Solved:
    """The LP on test functions, Phi'A x <= Phi'b: a bound."""
    started = time.monotonic()
    rows = project(problem, functionals)
    found = solve_projected(
        problem,
        rows,
        time_limit=options.time_limit,
        fix_integers=fix_integers,
        solver=options.solver,
        keep_tiny=options.keep_tiny,
    )
    solution, priced = found.solution, found.priced
    held = sum(len(part.lower) for part in rows)
    if solution.x is None:
        return Solved(
            solution.status,
            solution.objective,
            solution.bound,
            rows=held,
            memory=found.memory,
            conflict=found.conflict,
            dropped=found.dropped,
        )
    prices = atoms = None
    if found.duals is not None:
        prices = tuple(
            projected_price(family.name, phi, duals, family.templates)
            for family, phi, duals in zip(problem.families, functionals, found.duals, strict=True)
        )
        atoms = [(price.points, price.masses) for price in prices]
    core_duals = None if priced.row_duals is None else priced.row_duals[: len(problem.core.row_lower)]
    checked = _audit_bound(problem, solution.x, [phi.points for phi in functionals], atoms, core_duals)
    violations = [part.violation(solution.x) for part in rows]
    test_violation = max((absolute for absolute, _ in violations), default=0.0)
    enforced = max((relative for _, relative in violations), default=0.0) <= _ENFORCED
    point = Point(solution.x, checked, prices, core_duals, priced.reduced_costs, False, test_violation)
    status = solution.status if enforced or solution.status != "optimal" else "inaccurate"
    value, loose = problem.core.value(solution.x), found.bound_is_loose
    solved = Solved(status, value, solution.bound, point, held, found.memory, bound_is_loose=loose)
    return replace(solved, proofs=_prove_between(problem, solved, options.remaining_since(started)))


def _prove_between(problem: SemiInfiniteLP, solved: Solved, options: ExchangeOptions) -> tuple[FamilyProof, ...]:
    """What is proved of an answer whose rows hold on a grid or on test functions, where no violation was seen."""
    point = solved.point
    if point is None or point.x is None:
        return ()
    if any(seen.scaled > ENOUGH for seen in point.audit.families) or options.proof is False:
        reason = "its rows hold at the points of a grid, or on test functions, only"
        return tuple(FamilyProof(family.name, "grid", reason=reason) for family in problem.families)
    families = tuple(compactify(family) for family in problem.families)
    searches = searches_for(families)
    until = np.inf if options.time_limit is None else time.monotonic() + max(0.0, options.time_limit)
    found = [search.worst(point.x) for search in searches]
    return prove_families(families, searches, found, point.x, ProofOptions(options.proof, until))


def _solved(
    exchange: Exchange,
    outcome: ExchangeOutcome,
    bound: float,
    families: tuple[Family, ...],
    checked: Audit | None,
    price_of: Any,
) -> Solved:
    point = None
    if outcome.x is not None and checked is not None:
        prices = None
        if outcome.duals is not None:
            prices = tuple(map(price_of, families, outcome.points, outcome.duals))
        point = Point(outcome.x, checked, prices, outcome.core_duals, outcome.reduced_costs, outcome.repaired)
    rows = sum(map(len, outcome.points))
    conflict = exchange.conflict() if outcome.status == "infeasible" else NO_CONFLICT
    return Solved(
        outcome.status,
        outcome.objective,
        bound,
        point,
        rows,
        outcome.memory,
        outcome.log,
        outcome.separation,
        conflict,
        exchange.model.dropped,
        exchange.model.bound_is_loose,
    )


def exchange_price(family: Family, points: FloatArray, duals: FloatArray) -> Price:
    """Price of a working set; atoms that straddle one binding point are joined.

    The dual equations hold at the joined atoms up to the square of their distance.
    """
    points, duals = _carrying(points, duals)
    if len(points) > 1:
        points, duals = join_close(points, duals, family.domain.width, _SAME_ATOM)
    masses = family.user_masses(points, duals)
    return atomic_price(family.name, family.user_domain, family.user_points(points), masses, family.templates)


def _grid_price(family: Family, points: FloatArray, duals: FloatArray) -> Price:
    points, duals = _carrying(points, duals)
    return atomic_price(family.name, family.domain, points, duals, family.templates)


def _carrying(points: FloatArray, duals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points with a price; duals a million million times smaller than the largest are the simplex's rounding."""
    kept = np.abs(duals) > 1e-12 * float(np.abs(duals).max(initial=0.0))
    return points[kept], duals[kept]


def _atoms(outcome: ExchangeOutcome) -> list[tuple[FloatArray, FloatArray]] | None:
    return None if outcome.duals is None else list(zip(outcome.points, outcome.duals, strict=True))


def _near(searches: Sequence[Search], found: Sequence[Violations], families: int) -> list[FloatArray]:
    """For each family the points that its search found."""
    near: dict[int, FloatArray] = {}
    if not found:
        return [np.empty((0, family.domain.dimension)) for search in searches for family in search.families]
    for search, each in zip(searches, found, strict=True):
        for member, number in enumerate(search.numbers.tolist()):
            near[number] = each.points[each.members == member]
    return [near[number] for number in range(families)]


def _safe_bound(problem: SemiInfiniteLP, bound: float, checked: Audit | None) -> float:
    """The LP's bound, moved outwards by what its prices miss of the dual equations."""
    if checked is None or not np.isfinite(checked.doubt) or problem.core.integer.any():
        return bound
    sign = 1.0 if problem.core.maximize else -1.0
    return sign * (max(sign * bound, sign * checked.dual_bound) + checked.doubt)


def _audit_bound(
    problem: SemiInfiniteLP,
    x: FloatArray,
    seen: Sequence[FloatArray],
    atoms: Sequence[tuple[FloatArray, FloatArray]] | None,
    core_duals: FloatArray | None,
) -> Audit:
    """Audit an answer whose rows hold on a grid or on test functions only, between those points too."""
    families = [compactify(family) for family in problem.families]
    looks = [
        _audit_closely(bounded, x, points[:: max(1, len(points) // 64)] if bounded is family else None)
        for family, bounded, points in zip(problem.families, families, seen, strict=True)
    ]
    return audit(integers_fixed(problem, x), x, looks, atoms, core_duals)


def _audit_closely(family: Family, x: FloatArray, near: FloatArray | None) -> FamilyAudit:
    """An audit of a family, and a local search from the highest points it saw."""
    seen = audit_family(family, x, near)
    if family.domain.body is not None:
        return seen.merge(audit_at(family, x, searches_for([family])[0].worst(x).points))
    return _climbed(family, x, seen)


def _climbed(family: Family, x: FloatArray, seen: FamilyAudit) -> FamilyAudit:
    """An audit, and a local search from its highest points."""
    starts = np.unique([seen.worst, seen.worst_scaled, *seen.peaks[:_CLIMBED]], axis=0)
    tops, _ = polish(
        lambda at: family.excess(at, x),
        family.domain,
        starts,
        family.excess(starts, x),
        step=seen.points ** (-1 / family.domain.dimension),
        flat=1e-15 * family.scale(starts, x),
    )
    return seen.merge(audit_at(family, x, tops))
