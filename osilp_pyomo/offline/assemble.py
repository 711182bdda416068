"""Results assembled: what a method found, in the user's names, and what is wrong with it if anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._reporting import warn_user
from osilp_pyomo.errors import AccuracyWarning
from osilp_pyomo.index.quadrature.measures import Accuracy
from osilp_pyomo.offline.conflicts import Clause
from osilp_pyomo.offline.functions.matching import MATCHED, CheckedRows, JoinedNames, MatchedRows
from osilp_pyomo.offline.prepare import compactify
from osilp_pyomo.offline.problem import SemiInfiniteLP
from osilp_pyomo.offline.proof.certify import FamilyProof
from osilp_pyomo.offline.results import CONFLICT, FEASIBLE, INTEGRALS, PROOF, Answer, FamilyMap, Result
from osilp_pyomo.offline.solved import Point, Solved

# What rows may be violated by, relative to their size, by the tolerances of exchange and HiGHS together.
_ROW_ACCURACY = 1e-8
# What that may be worth at most, as a share of the objective, in an answer that is called optimal.
_MOST_WORTH = 1e-5
# What of an objective is rounding beside its largest coefficient times the largest variable or row.
_NOTHING = 1e-10
# Of which share of the objective the rounding of rows at the prices may be, before it may be rounding that binds.
_HIDDEN = 0.01
# By which share of its terms the dual equation of a variable may be missed before an answer is called inaccurate.
_BALANCED = 1e-6


@dataclass(frozen=True, eq=False)
class Subject:
    """What a result speaks of, in the user's names.

    ``routes`` and ``indices`` have an entry for each family; ``place(number, point)`` is what the user calls a point of
    a family's index, ``label`` the same for one in the user's coordinates; ``variables`` is None where values are not
    kept in memory.
    """

    maximize: bool
    routes: Mapping[str, str]
    indices: Mapping[str, tuple[str, ...]]
    place: Callable[[int, FloatArray], Any]
    label: Callable[[int, FloatArray], Any]
    variables: Iterable[str] | None
    constraints: Iterable[str]
    matched: tuple[MatchedRows, ...] = ()

    @classmethod
    def of(cls, problem: SemiInfiniteLP, matched: tuple[MatchedRows, ...] = ()) -> Subject:
        """What a problem in arrays is about."""
        bounded = [compactify(family) for family in (*problem.families, *(each.family for each in matched))]
        names = problem.core.row_names
        return cls(
            problem.core.maximize,
            {family.name: family.route for family in problem.families},
            {family.name: family.user_domain.names for family in bounded},
            lambda number, point: bounded[number].user_domain.label(bounded[number].user_points(point[None])[0]),
            lambda number, point: bounded[number].user_domain.label(point),
            problem.core.column_names,
            names.first if isinstance(names, JoinedNames) else names,
            matched,
        )


def result_of(
    problem: SemiInfiniteLP,
    method: str,
    solved: Solved,
    seconds: float,
    matched: tuple[MatchedRows, ...] = (),
    checked: CheckedRows | None = None,
) -> Result:
    """What a method found for a problem in arrays, with what is left of rows that are equations over an index."""
    complaint = _complaint(method, problem, solved) if solved.status in ("optimal", "inaccurate") else None
    if complaint is None and checked is not None and solved.status == "optimal":
        complaint = _left_of_equations(matched, checked)
    return make_result(Subject.of(problem, matched), method, replace(solved, complaint=complaint), seconds, checked)


def _left_of_equations(matched: Sequence[MatchedRows], checked: CheckedRows) -> str | None:
    """What is wrong with equations that were to hold at every point."""
    for each, look in zip(matched, checked.looks, strict=True):
        if each.how == MATCHED and look.scaled > FEASIBLE:
            return f"the equation '{each.name}' is missed by {look.scaled:.2g} of its size"
    return None


def make_result(
    subject: Subject, method: str, solved: Solved, seconds: float, checked: CheckedRows | None = None
) -> Result:
    """What a method found as a result that speaks in the user's names; a doubtful answer warns.

    Every result is made here, and nowhere else is an answer called inaccurate.
    """
    status = solved.status
    if solved.complaint is not None:
        status = "inaccurate"
        warn_user(f"{method}: the answer is less accurate than it should be: {solved.complaint}.", AccuracyWarning)
    return Result(
        method,
        status,
        "maximize" if subject.maximize else "minimize",
        solved.objective,
        solved.bound,
        solved.rows,
        solved.memory,
        seconds,
        dict(subject.routes),
        None if solved.point is None else _answer(subject, solved.point, solved, checked),
        partial(pd.DataFrame, list(solved.log)),
        dict(zip(subject.routes, solved.separation, strict=False)) if method == "exchange" else {},
        indices=dict(subject.indices),
        conflict=partial(_conflict, solved.conflict.clauses),
        remark=_remark(solved),
        why=solved.why or f"method={method!r} was asked for",
        equations={each.name: each.how for each in subject.matched},
    )


def _remark(solved: Solved) -> str:
    """What should be known beside a status that says there is no answer."""
    if solved.point is not None or solved.conflict.clauses:
        return solved.remark
    if solved.dropped:
        return (
            "HiGHS left out coefficients that are tiny beside others of their row, which may be why; measure variables "
            "in units that bring them nearer to each other"
        )
    return solved.conflict.why_none


def integrals_told(accuracies: Sequence[Accuracy]) -> partial[pd.DataFrame]:
    """How well the integrals of a model were computed, a frame with one line for each; one that fell short warns."""
    worst: dict[str, Accuracy] = {}
    points: dict[str, int] = {}
    for each in accuracies:
        points[each.text] = points.get(each.text, 0) + each.points
        if each.text not in worst or each.error > worst[each.text].error:
            worst[each.text] = each
    for each in worst.values():
        if not each.reached:
            place = "" if np.isnan(each.place) else f", worst near {each.place:.6g}"
            warn_user(
                f"{each.text}: it is computed to about {each.error:.2g} only (its absolute value has the integral "
                f"{each.size:.6g}){place}.",
                AccuracyWarning,
            )
    return partial(_integrals, worst, points)


def _integrals(worst: Mapping[str, Accuracy], points: Mapping[str, int]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "integral": pd.Series([*worst], dtype=object),
            "error": pd.Series([each.error for each in worst.values()], dtype=float),
            "size": pd.Series([each.size for each in worst.values()], dtype=float),
            "place": pd.Series([each.place for each in worst.values()], dtype=float),
            "points": pd.Series([*points.values()], dtype=np.int64),
        },
        columns=list(INTEGRALS),
    )


def _conflict(clauses: Sequence[Clause]) -> pd.DataFrame:
    # Places may be numbers, tuples or nothing.
    return pd.DataFrame(
        {
            name: pd.Series([getattr(clause, name) for clause in clauses], dtype=float if number else object)
            for name, number in CONFLICT.items()
        }
    )


def _proof(proofs: Sequence[FamilyProof], open_at: Sequence[Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "how": [each.how for each in proofs],
            "largest": [each.largest for each in proofs],
            "boxes": np.array([each.boxes for each in proofs], dtype=np.int64),
            "seconds": [each.seconds for each in proofs],
            "open": pd.Series(list(open_at), dtype=object),
        },
        columns=list(PROOF),
    ).set_index(pd.Index([each.name for each in proofs], name="family", dtype=object))


def _answer(subject: Subject, point: Point, solved: Solved, checked: CheckedRows | None = None) -> Answer:
    looks, proofs = list(point.audit.families), tuple(solved.proofs)
    complete = len(proofs) == len(looks)
    if checked is not None:
        looks, proofs = [*looks, *checked.looks], (*proofs, *checked.proofs) if complete else proofs
    duals, of_equations = _split_duals(subject.matched, point.core_duals)

    open_at = [None if each.open_at is None else subject.label(k, each.open_at) for k, each in enumerate(proofs)]
    # Names are asked for now: the model may be another one when they are looked at.
    variables = None if subject.variables is None else list(subject.variables)
    return Answer(
        point.audit,
        FamilyMap({look.name: look.violation for look in looks}),
        FamilyMap({look.name: look.relative for look in looks}),
        FamilyMap({look.name: subject.place(number, look.worst) for number, look in enumerate(looks)}),
        None if point.prices is None else FamilyMap(dict(zip(subject.routes, point.prices, strict=True))),
        point.repaired,
        point.test_violation,
        complete and all(each.proved for each in proofs),
        point.audit.proves_bound and not solved.bound_is_loose,
        _worth(point, proofs) / (1 + abs(solved.objective)),
        tuple(each.why_not for each in proofs),
        of_equations,
        _late_series(point.x, variables, "variable", "value"),
        _late_series(duals, list(subject.constraints), "constraint", "dual"),
        _late_series(point.reduced_costs, variables, "variable", "rc"),
        partial(_proof, proofs, open_at),
    )


def _late_series(
    values: FloatArray | None, names: list[str] | None, kind: str, name: str
) -> partial[pd.Series | None] | None:
    if values is None or names is None:
        return None
    # Adding zero takes the sign from -0.0.
    return partial(_series, values + 0.0, names, kind, name)


def _series(values: FloatArray, names: list[str], kind: str, name: str) -> pd.Series | None:
    return pd.Series(values, index=pd.Index(names, dtype=object, name=kind), name=name)


def _split_duals(
    matched: Sequence[MatchedRows], duals: FloatArray | None
) -> tuple[FloatArray | None, dict[str, pd.Series]]:
    """Duals of ordinary constraints, and of the rows of each equation by what they are called."""
    if duals is None:
        return None, {}
    found: dict[str, pd.Series] = {}
    start = ordinary = len(duals) - sum(len(each.block) for each in matched)
    for each in matched:
        index = pd.Index(each.labels, name="function", dtype=object)
        found[each.name] = pd.Series(duals[start : start + len(index)] + 0.0, index=index, name="dual")
        start += len(index)
    return duals[:ordinary], found


def _worth(point: Point, proofs: Sequence[FamilyProof]) -> float:
    """What the largest violation that is possible anywhere is worth at the prices: how optimistic the objective is."""
    if point.prices is None or len(proofs) < len(point.prices):
        return 0.0
    return float(sum(each.largest * abs(price.total) for each, price in zip(proofs, point.prices, strict=False)))


def _complaint(method: str, problem: SemiInfiniteLP, solved: Solved) -> str | None:
    """What, if anything, is wrong with an answer that its method calls optimal."""
    if solved.point is None or solved.point.x is None:
        return None
    if solved.status == "inaccurate" and method == "counterpart":
        return (
            "Clarabel stopped short of its tolerance, and the prices do not prove the bound; look for numbers of very "
            "different size"
        )
    if solved.status == "inaccurate":
        return "HiGHS leaves rows of its LP violated; look for coefficients of very different size"
    seen = solved.point.audit
    worths = [0.0]
    if solved.point.prices is not None:
        priced = zip(seen.families, solved.point.prices, strict=True)
        worths += [look.size * abs(price.total) for look, price in priced]
    # An objective measured in billionths is to be as accurate as one measured in units. One that is a variable of its
    # own may be zero because large terms of its rows cancel: it has their size. What beside other variables and rows is
    # a solver's rounding is zero.
    cost, x = np.abs(problem.core.cost), np.abs(solved.point.x)
    terms = max(float((cost * x).max(initial=0.0)), *worths)
    others = max(float(x.max(initial=0.0)), *(min(1.0, look.size) for look in seen.families), 0.0)
    zero = _NOTHING * float(cost.max(initial=0.0)) * others
    problem_size = min(1.0, terms) if terms > zero else 1.0
    if problem.convex is not None:
        # What is convex has no largest term, and is solved up to a share of 1 + |objective|.
        problem_size = 1.0
    size = problem_size + abs(solved.objective)
    # Rows hold up to their tolerance, which is worth their price.
    allowed = FEASIBLE * size + min(_ROW_ACCURACY * sum(worths), _MOST_WORTH * size)
    if seen.ordinary_violation > FEASIBLE:
        return f"an ordinary row or bound is violated by {seen.ordinary_violation:.2g} of its size"
    if method == "counterpart" and max((look.scaled for look in seen.families), default=0.0) > FEASIBLE:
        return "exact separation found a row violated"
    if method == "exchange":
        scaled = max((look.scaled for look in seen.families), default=0.0)
        if scaled > FEASIBLE:
            return f"the audit found a row violated by {scaled:.2g} of its size"
        if abs(solved.objective - solved.bound) > allowed:
            return f"objective {solved.objective:.10g} and bound {solved.bound:.10g} are apart"
        if not solved.point.repaired and solved.point.prices is not None:
            # Without a Slater point the objective is optimistic, by about the violation times its price.
            looks = zip(seen.families, solved.point.prices, strict=True)
            optimism = sum(look.violation * abs(price.total) for look, price in looks)
            if optimism > FEASIBLE * size:
                return f"no point with room in every row is known, and the violation is worth about {optimism:.2g}"
    if np.isfinite(seen.rounding_of_rows) and seen.rounding_of_rows > _HIDDEN * size:
        return (
            f"where the prices are, rounding of the row is worth {seen.rounding_of_rows:.2g}, and may be all that "
            "binds there; write it without large numbers that cancel, and leave poles out by where="
        )
    if seen.unbalanced > _BALANCED:
        return (
            "no price balances what a variable without a bound earns and uses: the optimum may be far away, or is not "
            "attained; give the variables bounds"
        )
    if np.isfinite(seen.gap) and seen.gap > allowed:
        return f"the prices prove the bound {seen.dual_bound:.10g} only (objective {solved.objective:.10g})"
    return None
