"""Results assembled: what a method found, in the user's names, and what is wrong with it if anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from osilp_pyomo._warnings import warn_user
from osilp_pyomo.errors import AccuracyWarning
from osilp_pyomo.offline.conflicts import Clause
from osilp_pyomo.offline.methods import Point, Solved
from osilp_pyomo.offline.prepare import compactify
from osilp_pyomo.offline.problem import SemiInfiniteLP
from osilp_pyomo.offline.results import CONFLICT, FEASIBLE, Answer, FamilyMap, Result


def result_of(problem: SemiInfiniteLP, method: str, solved: Solved, seconds: float) -> Result:
    """What a method found as a result that speaks in the user's names; a doubtful answer warns."""
    status = solved.status
    complaint = _complaint(method, problem, solved) if status in ("optimal", "inaccurate") else None
    if complaint is not None:
        status = "inaccurate"
        warn_user(f"{method}: the answer is less accurate than it should be: {complaint}.", AccuracyWarning)
    return Result(
        method,
        status,
        "maximize" if problem.core.maximize else "minimize",
        solved.objective,
        solved.bound,
        pd.DataFrame(list(solved.log)),
        solved.rows,
        solved.memory,
        seconds,
        {family.name: family.route for family in problem.families},
        None if solved.point is None else _answer(problem, solved.point),
        dict(zip(problem.names, solved.separation, strict=False)) if method == "exchange" else {},
        indices={family.name: family.user_domain.names for family in problem.families},
        conflict=_conflict(solved.conflict.clauses),
        remark=_remark(solved),
    )


def _remark(solved: Solved) -> str:
    """What should be known beside a status that says there is no answer."""
    if solved.point is not None or solved.conflict.clauses:
        return ""
    if solved.dropped:
        return (
            "HiGHS left out coefficients that are tiny beside others of their row, which may be why; measure variables "
            "in units that bring them nearer to each other"
        )
    return solved.conflict.why_none


def _conflict(clauses: Sequence[Clause]) -> pd.DataFrame:
    # Places may be numbers, tuples or nothing.
    return pd.DataFrame(
        {
            name: pd.Series([getattr(clause, name) for clause in clauses], dtype=float if number else object)
            for name, number in CONFLICT.items()
        }
    )


def _answer(problem: SemiInfiniteLP, point: Point) -> Answer:
    names, core, looks = problem.names, problem.core, point.audit.families
    variables = pd.Index(list(core.column_names), dtype=object, name="variable")
    constraints = pd.Index(list(core.row_names), dtype=object, name="constraint")
    worst = {}
    for family, look in zip(problem.families, looks, strict=True):
        bounded = compactify(family)
        worst[family.name] = family.domain.label(bounded.user_points(look.worst[None])[0])
    return Answer(
        pd.Series(point.x, index=variables, name="value"),
        point.audit,
        FamilyMap({look.name: look.violation for look in looks}),
        FamilyMap({look.name: look.relative for look in looks}),
        FamilyMap(worst),
        None if point.prices is None else FamilyMap(dict(zip(names, point.prices, strict=True))),
        # Adding zero takes the sign from -0.0.
        None if point.core_duals is None else pd.Series(point.core_duals + 0.0, index=constraints, name="dual"),
        None if point.reduced_costs is None else pd.Series(point.reduced_costs + 0.0, index=variables, name="rc"),
        point.repaired,
        point.test_violation,
    )


def _complaint(method: str, problem: SemiInfiniteLP, solved: Solved) -> str | None:
    """What, if anything, is wrong with an answer that its method calls optimal."""
    if solved.point is None:
        return None
    if solved.status == "inaccurate":
        return "HiGHS leaves rows of its LP violated; look for coefficients of very different size"
    # An objective measured in billionths is to be as accurate as one measured in units.
    problem_size = min(1.0, float(np.abs(problem.core.cost * solved.point.x).max(initial=0.0)) or 1.0)
    seen = solved.point.audit
    size = problem_size + abs(solved.objective)
    if seen.ordinary_violation > FEASIBLE:
        return f"an ordinary row or bound is violated by {seen.ordinary_violation:.2g} of its size"
    if method == "counterpart" and max((look.scaled for look in seen.families), default=0.0) > FEASIBLE:
        return "exact separation found a row violated"
    if method == "exchange":
        scaled = max((look.scaled for look in seen.families), default=0.0)
        if scaled > FEASIBLE:
            return f"the audit found a row violated by {scaled:.2g} of its size"
        if abs(solved.objective - solved.bound) > FEASIBLE * size:
            return f"objective {solved.objective:.10g} and bound {solved.bound:.10g} are apart"
        if not solved.point.repaired and solved.point.prices is not None:
            # Without a Slater point the objective is optimistic, by about the violation times its price.
            looks = zip(seen.families, solved.point.prices, strict=True)
            optimism = sum(look.violation * abs(price.total) for look, price in looks)
            if optimism > FEASIBLE * size:
                return f"no point with room in every row is known, and the violation is worth about {optimism:.2g}"
    if np.isfinite(seen.gap) and seen.gap > FEASIBLE * size:
        return f"the prices prove the bound {seen.dual_bound:.10g} only (objective {solved.objective:.10g})"
    return None
