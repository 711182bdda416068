"""How good the rules of an answer are: what no policy can beat, by scenarios and by dual rules, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import Shown
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.offline.adjustable.dual_rules import distributions, moment_program
from osilp_pyomo.offline.adjustable.problem import AdjustableProblem
from osilp_pyomo.offline.adjustable.programs import Bounded, solve_bounding
from osilp_pyomo.offline.adjustable.tree import merged, tree_of
from osilp_pyomo.offline.adjustable.vertices import vertices_of
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.rows import AffineRows

#: Columns of ``RecourseBound.ways``.
WAYS = ("way", "value", "gap", "status", "seconds", "about")
SCENARIOS, DUAL_RULES = "scenarios", "dual rules"
# Vertices up to which all of them are scenarios.
_VERTICES = 256
# Coefficients of a program of scenarios at most, and of one of moments.
_SCENARIO_SIZE, _MOMENT_SIZE = 600_000, 600_000
# A gap, relative to 1 + |objective|, that is none.
_CLOSED = 1e-9


@dataclass(frozen=True, eq=False)
class RecourseBound(Shown):
    """What no policy can beat, affine or not, and how far the rules of an answer are from it at most.

    Attributes
    ----------
    value : float
        The tighter of the bounds: no policy costs less (earns more, for a maximum). Infinite where there is none.
    objective : float
        That of the rules.
    gap : float
        How much the rules cost more than the best policy at most, in units of the objective.
    percent : float
        The same in per cent of the bound's size.
    scenarios : DataFrame
        The vectors that the bound by scenarios was made from.
    ways : DataFrame
        A row for each way: its bound and gap, how it ended, and what it was made from.
    left_out : tuple
        Rows that no way could use; without them a bound holds, and may be weaker.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.pyros import BoxSet
    >>> import osilp_pyomo as osilp
    >>> square = BoxSet([(-1, 1), (-1, 1)])
    >>> m = pyo.ConcreteModel()
    >>> m.y = osilp.FunctionVar([1, -1], over=square)
    >>> m.t = pyo.Var()
    >>> m.least = pyo.Objective(expr=m.t)
    >>> @m.SemiInfiniteConstraint([1, -1], [1, -1], square)
    ... def above(m, s, side, xi):
    ...     return m.y[s](xi) >= side * (xi[0] + s * xi[1])
    >>> @m.SemiInfiniteConstraint(square)
    ... def cost(m, xi):
    ...     return m.t >= m.y[1](xi) + m.y[-1](xi)
    >>> found = osilp.recourse_bound(m, osilp.solve(m))
    >>> found
    no policy can cost less than 2; the rule costs 4, at most 100 % more
    >>> round(found.gap, 6), len(found.scenarios)
    (2.0, 5)
    >>> found.ways[["way", "value"]].round(6)
              way  value
    0   scenarios    2.0
    1  dual rules    2.0
    """

    card = "bound"

    value: float
    objective: float
    maximize: bool
    scenarios: pd.DataFrame
    ways: pd.DataFrame
    left_out: tuple[str, ...] = ()
    integers: bool = False

    @property
    def gap(self) -> float:
        """How much the rules lose at most, against the best policy."""
        return max(0.0, (self.value - self.objective) * (1.0 if self.maximize else -1.0))

    @property
    def percent(self) -> float:
        """The gap in per cent of the bound's size; infinite where that is zero."""
        if self.gap == 0.0:
            return 0.0
        return 100 * self.gap / abs(self.value) if self.value and np.isfinite(self.value) else np.inf

    def __str__(self) -> str:
        verb, than = ("earn", "more") if self.maximize else ("cost", "less")
        if not np.isfinite(self.value):
            return (
                f"no bound: nothing is known of what the best policy {verb}s; see .ways for how each way ended "
                f"(the rule {verb}s {self.objective:.8g})"
            )
        lost = "less" if self.maximize else "more"
        digits = 0 if self.percent >= 10 else 1
        share = f"{self.percent:.{digits}f}" if self.percent >= 0.1 else f"{self.percent:.2g}"
        far = f"at most {share} % {lost}" if np.isfinite(self.percent) else f"at most {self.gap:.3g} {lost}"
        if self.gap <= _CLOSED * (1 + abs(self.objective)):
            far = "no more than rounding from it"
        text = f"no policy can {verb} {than} than {self.value:.8g}; the rule {verb}s {self.objective:.8g}, {far}"
        if self.integers:
            text += " (whole numbers: by HiGHS' branch and bound)"
        if self.left_out:
            text += f"\nwithout the rows {', '.join(map(repr, self.left_out[:4]))}, which hold rules at other vectors"
        return text

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class _Critical:
    """Vectors of the sets of one dimension in the order in which they matter, and the worst case among them."""

    body: Body
    points: FloatArray
    worst: FloatArray
    weights: FloatArray
    vertices: FloatArray | None


def bound_policies(
    problem: AdjustableProblem,
    solution: FloatArray,
    objective: float,
    prices: Mapping[str, Price] | None,
    most: int,
    time_limit: float | None = None,
) -> RecourseBound:
    """Bound what every policy can reach by both ways."""
    until = np.inf if time_limit is None else time.monotonic() + time_limit
    critical = {d: _critical(problem, d, solution, prices or {}) for d in problem.dimensions}
    found, frame = _by_scenarios(problem, critical, most, until)
    ways = (found, _by_dual_rules(problem, critical, objective, until))
    sense = 1.0 if problem.core.maximize else -1.0
    lines: list[dict[str, Any]] = [
        {
            "way": way,
            "value": ended.bound,
            "gap": max(0.0, sense * (ended.bound - objective)) if np.isfinite(ended.bound) else np.inf,
            "status": ended.status,
            "seconds": seconds,
            "about": about,
        }
        for way, ended, seconds, about in ways
    ]
    known = [line["value"] for line in lines if np.isfinite(line["value"])]
    value = sense * min((sense * float(each) for each in known), default=np.inf)
    return RecourseBound(
        value,
        objective,
        problem.core.maximize,
        frame,
        pd.DataFrame(lines, columns=list(WAYS)),
        problem.left_out,
        bool(problem.core.integer.any()),
    )


_Way = tuple[str, Bounded, float, str]


def _critical(
    problem: AdjustableProblem, dimension: int, solution: FloatArray, prices: Mapping[str, Price]
) -> _Critical:
    """Vectors with a price, those at which rows are tightest at an answer, and the vertices if they are few."""
    rows = [each for each in problem.rows if each.dimension == dimension and each.family.domain.body is not None]
    # The set that most rows hold over.
    bodies = [each.family.domain.body for each in rows]
    body = max(bodies, key=lambda each: sum(other is each for other in bodies))
    assert body is not None
    costly = np.flatnonzero(problem.core.cost)
    groups: list[tuple[bool, FloatArray, FloatArray]] = []
    for each in rows:
        price = prices.get(each.family.name)
        if price is not None and len(price.points):
            holds_costs = bool(np.isin(costly, each.family.rows.columns).any())
            groups.append((holds_costs, price.points, np.abs(price.masses)))
    groups.sort(key=lambda group: -group[2].sum() * (1e9 if group[0] else 1.0))
    priced = [points[np.argsort(-masses)] for _, points, masses in groups]
    tight = [_tightest(each.family.rows, each.family.domain.body, solution) for each in rows]
    vertices = vertices_of(body, _VERTICES)
    parts = [*priced, body.centre[None], *([] if vertices is None else [vertices]), *tight]
    worst = [(points, masses) for first, points, masses in groups if first]
    none = np.empty((0, dimension))
    return _Critical(
        body,
        merged(np.concatenate(parts), body.upper - body.lower),
        np.concatenate([none, *(points for points, _ in worst)]),
        np.concatenate([np.empty(0), *(masses for _, masses in worst)]),
        vertices,
    )


def _tightest(rows: object, body: Body | None, x: FloatArray) -> FloatArray:
    """Where a row that is affine in the vector is tightest, for each of its sides."""
    assert body is not None
    if not isinstance(rows, AffineRows):
        return np.empty((0, body.dimension))
    slopes = rows.matrix[1:] @ x[rows.columns]
    looks = [
        sign * (slopes - limit[1:]) for sign, limit in ((1.0, rows.upper), (-1.0, rows.lower)) if limit is not None
    ]
    looks = [look for look in looks if np.any(look)]
    return body.support(np.array(looks)) if looks else np.empty((0, body.dimension))


def _by_scenarios(
    problem: AdjustableProblem, critical: Mapping[int, _Critical], most: int, until: float
) -> tuple[_Way, pd.DataFrame]:
    """Scenarios with recourse of their own, as many as the program may have."""
    started = time.monotonic()
    entries = sum(1 + len(each.uses) + len(each.family.rows.columns) // 8 for each in problem.rows)
    count = max(1, min(most, _SCENARIO_SIZE // max(1, entries)))
    points = {dimension: each.points[:count] for dimension, each in critical.items()}
    tree = tree_of(problem, points)
    left = None if np.isinf(until) else max(1e-3, until - started)
    ended = solve_bounding(tree.lp, left)
    kept = sum(map(len, points.values()))
    every = all(
        each.vertices is not None and len(each.points) <= count and each.body.convex for each in critical.values()
    )
    about = f"{kept} vectors with recourse of their own" + (", all vertices among them" if every else "")
    frame = pd.concat(
        [
            pd.DataFrame(each, columns=_names(problem, dimension)) for dimension, each in points.items()
        ],
        ignore_index=True,
    )  # fmt: skip
    return (SCENARIOS, ended, time.monotonic() - started, about), frame


def _names(problem: AdjustableProblem, dimension: int) -> list[str]:
    return list(next(each.family.domain.names for each in problem.rows if each.dimension == dimension))


def _by_dual_rules(
    problem: AdjustableProblem, critical: Mapping[int, _Critical], objective: float, until: float
) -> _Way:
    """Dual rules under several distributions; the tightest bound of them."""
    started = time.monotonic()
    if len(critical) != 1:
        reason = "the model has uncertain vectors of several dimensions, and a distribution is chosen for one"
        return DUAL_RULES, Bounded("not tried"), 0.0, reason
    (each,) = critical.values()
    size = sum((1 + each.body.dimension) * (2 + len(rows.uses)) for rows in problem.rows)
    if size > _MOMENT_SIZE:
        return DUAL_RULES, Bounded("not tried"), 0.0, f"its program would have some {size:,} coefficients"
    sense = 1.0 if problem.core.maximize else -1.0
    best, about = Bounded("infeasible"), ""
    for moments in distributions(each.body, each.worst, each.weights, each.vertices):
        if time.monotonic() >= until:
            break
        program = moment_program(problem, moments, each.body)
        left = None if np.isinf(until) else max(1e-3, until - time.monotonic())
        ended = solve_bounding(program.lp, left)
        if not about or sense * ended.bound < sense * best.bound or np.isnan(best.bound):
            best, about = ended, _about(moments.name, program.left_out)
        if abs(best.bound - objective) <= _CLOSED * (1 + abs(objective)):
            break
    return DUAL_RULES, best, time.monotonic() - started, about


def _about(name: str, left_out: tuple[str, ...]) -> str:
    if not left_out:
        return name
    return f"{name}; without {len(left_out)} rows whose coefficients of rules change with the vector"
