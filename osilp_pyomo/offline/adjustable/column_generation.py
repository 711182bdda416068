"""The best policy of all where everything is seen before it reacts: column-and-constraint generation.

A master program has some vectors with recourse of their own; a vector at which its decisions cannot be completed is
added with new columns and rows, until there is none (Zeng and Zhao, 2013). Where the coefficients of what reacts do not
change with the vector, and rows are affine in it, vectors between vertices are completed by mixtures of what is done at
these: so the vertices are all that has to be looked at. Zeng and Zhao find the worst of them by a program with
complementarity conditions, whose bounds on the duals are seldom known; here each vertex is looked at, and sets with too
many are refused.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import DataError, ModelError
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.lp.conic import ConeProgram
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.programs import solve_program
from osilp_pyomo.offline.adjustable.problem import AdjustableProblem, fixed_recourse
from osilp_pyomo.offline.adjustable.programs import Bounded, solve_bounding
from osilp_pyomo.offline.adjustable.tree import ScenarioTree, tree_of
from osilp_pyomo.offline.adjustable.vertices import vertices_of
from osilp_pyomo.offline.audit import audit
from osilp_pyomo.offline.functions.matching import MatchedRows
from osilp_pyomo.offline.functions.simulation import FunctionColumns
from osilp_pyomo.offline.functions.values import vectors_of
from osilp_pyomo.offline.problem import SemiInfiniteLP
from osilp_pyomo.offline.solved import Point, Solved

# Vertices that are looked at, at most; and those that are added at a time.
_MOST, _ADDED = 1024, 4
# What rows may be missed by at a vertex, relative to 1 + |limit|, and how often the master is solved at most.
_KEPT, _ROUNDS = 1e-9, 400


@dataclass(frozen=True, eq=False)
class BestPolicy:
    """Decisions that are made at once, and for every vector the cheapest that can follow, by a program of its own.

    ``moved`` are the numbers, among what is decided at once, of variables that stand for a worst case and take the
    value of the vector.
    """

    problem: AdjustableProblem
    here: FloatArray
    moved: IntArray

    def at(self, tree: ScenarioTree, *, whole: bool = False, loose: bool = True) -> Bounded:
        """The program of one vector, solved; if ``whole`` no variable moves; ``loose`` rows have room for rounding."""
        lp = tree.lp
        count = len(self.here)
        lower, upper = lp.column_lower.copy(), lp.column_upper.copy()
        lower[:count] = upper[:count] = self.here
        if not whole:
            lower[self.moved], upper[self.moved] = lp.column_lower[self.moved], lp.column_upper[self.moved]
        low, high = _loosened(lp) if loose else (lp.row_lower, lp.row_upper)
        lp = replace(
            lp,
            column_lower=lower,
            column_upper=upper,
            row_lower=low,
            row_upper=high,
            integer=np.zeros(len(lower), bool),
        )
        found = solve_program(ConeProgram(lp, ()))
        return Bounded(found.status, found.objective, found.x)

    def values(self, vectors: FloatArray, rules: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """What some rules decide at vectors (m, d), and the cost; not a number where nothing can follow."""
        decided, cost = np.full((len(vectors), len(rules)), np.nan), np.full(len(vectors), np.nan)
        for number, vector in enumerate(vectors):
            tree = tree_of(self.problem, {len(vector): vector[None]}, anywhere=True)
            found = self.at(tree, loose=False)
            if found.x is None:
                # By rounding, or because nothing can follow.
                found = self.at(tree)
            if found.x is not None:
                cost[number] = tree.lp.value(found.x)
                decided[number] = [tree.value(self.problem, rule, vector, found.x) for rule in rules]
        return decided, cost

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of the vector."""
        return tuple(self.problem.rows[0].family.domain.names)

    def function(self, name: str) -> PolicyValue:
        """One decision that reacts, as a function of the vector."""
        for number, rule in enumerate(self.problem.rules):
            if rule.name == name:
                return PolicyValue(name, self, number)
        raise ModelError(f"result.function: '{name}' stands in no row of the solved model, and nothing decides it.")

    def simulate(self, draws: Any) -> pd.DataFrame:
        """Every decision and the cost at draws of the vector."""
        what = "result.simulate"
        frame = (
            draws if isinstance(draws, pd.DataFrame) else pd.DataFrame(np.atleast_2d(np.asarray(draws, dtype=float)))
        )
        vectors = vectors_of(frame, self.names, what)
        decided, cost = self.values(vectors, range(len(self.problem.rules)))
        columns: dict[str, Any] = {rule.name: decided[:, number] for number, rule in enumerate(self.problem.rules)}
        for place in np.setdiff1d(np.arange(len(self.here)), self.moved).tolist():
            name = str(self.problem.core.column_names[int(self.problem.here[place])])
            columns[name] = np.full(len(vectors), self.here[place])
        return pd.DataFrame({**columns, "cost": cost}, index=frame.index)


@dataclass(frozen=True, eq=False)
class PolicyValue:
    """A decision that reacts, as the best policy makes it: a program is solved for each vector it is called with."""

    name: str
    policy: BestPolicy
    rule: int

    def __call__(self, vectors: Any) -> Any:
        if isinstance(vectors, pd.DataFrame):
            points = vectors_of(vectors, self.policy.names, f"'{self.name}'")
            return pd.Series(self.policy.values(points, [self.rule])[0][:, 0], index=vectors.index, name=self.name)
        points = np.asarray(vectors, dtype=float)
        if points.shape[-1:] != (len(self.policy.names),) or points.ndim > 2:
            raise DataError(
                f"'{self.name}': it is a function of a vector of dimension {len(self.policy.names)} (got an array of "
                f"shape {points.shape})."
            )
        found = self.policy.values(np.atleast_2d(points), [self.rule])[0][:, 0]
        return found if points.ndim > 1 else float(found[0])

    def __str__(self) -> str:
        return f"{self.name}(xi): the best that can follow, by a program for each vector (no formula)"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Generated:
    """How column generation ended; ``scenarios`` are the vectors of the last master, of ``vertices`` in all."""

    ended: Bounded
    policy: BestPolicy | None
    proved: bool
    scenarios: FloatArray
    vertices: int
    log: tuple[dict[str, Any], ...]


def generate_columns(problem: AdjustableProblem, what: str, time_limit: float | None = None) -> Generated:
    """Solve by column-and-constraint generation."""
    started = time.monotonic()
    body = _suited(problem, what)
    vertices = vertices_of(body, _MOST)
    if vertices is None:
        raise ModelError(
            f"{what}: the worst vector of {body} is found by looking at each of its vertices, and they are more than "
            f"{_MOST:,}, or not known; solve for affine rules, method='auto', and see how good they are by "
            "recourse_bound."
        )
    moved = _moved(problem)
    held = [int(np.argmin(np.abs(vertices - body.centre).sum(axis=1)))]
    log: list[dict[str, Any]] = []
    reacting = _reacting(problem)
    trees = [tree_of(reacting, {body.dimension: vertex[None]}, anywhere=True) for vertex in vertices]
    for _ in range(_ROUNDS):
        master = tree_of(problem, {body.dimension: vertices[held]})
        left = None if time_limit is None else max(1e-3, time_limit - (time.monotonic() - started))
        ended = solve_bounding(master.lp, left)
        if ended.status == "unbounded" and len(held) < len(vertices):
            held += [k for k in range(len(vertices)) if k not in held][:_ADDED]
            continue
        if ended.x is None or ended.status != "optimal":
            return Generated(ended, None, False, vertices[held], len(vertices), tuple(log))
        policy = BestPolicy(reacting, ended.x[: len(problem.here)], moved)
        worst = _worst(policy, trees)
        log.append({"bound": ended.bound, "scenarios": len(held), "seconds": time.monotonic() - started})
        new = [k for k in worst if k not in held][:_ADDED]
        if not new or (time_limit is not None and time.monotonic() - started > time_limit):
            status = "optimal" if not worst else "inaccurate" if not new else "time_limit"
            ended = replace(ended, status=status)
            return Generated(ended, policy, not worst, vertices[held], len(vertices), tuple(log))
        held += new
    return Generated(replace(ended, status="iteration_limit"), policy, False, vertices[held], len(vertices), tuple(log))


def _worst(policy: BestPolicy, trees: Sequence[ScenarioTree]) -> list[int]:
    """Vertices at which the decisions cannot be completed within the worst case that they promise, worst first."""
    sense = 1.0 if policy.problem.core.maximize else -1.0
    found = []
    for number, tree in enumerate(trees):
        if policy.at(tree, whole=True).x is None:
            cheapest = policy.at(tree)
            found.append((-np.inf if cheapest.x is None else sense * cheapest.bound, number))
    return [number for _, number in sorted(found)]


def _loosened(lp: FiniteLP) -> tuple[FloatArray, FloatArray]:
    """Limits of rows, with room for what solvers leave."""
    size = np.maximum(*(np.where(np.isfinite(limit), np.abs(limit), 0.0) for limit in (lp.row_lower, lp.row_upper)))
    room = _KEPT * (1 + size)
    return lp.row_lower - room, lp.row_upper + room


def _reacting(problem: AdjustableProblem) -> AdjustableProblem:
    """A problem without its ordinary rows, which decisions that are made at once satisfy."""
    core = problem.core
    none = np.empty(0)
    empty = sparse.csr_array((0, core.columns))
    return replace(problem, core=replace(core, matrix=empty, row_lower=none, row_upper=none, row_names=()))


def _moved(problem: AdjustableProblem) -> IntArray:
    """Variables that stand for a worst case: with a cost, without bounds, and in rows over the vector only."""
    core = problem.core
    free = np.isneginf(core.column_lower) & np.isposinf(core.column_upper) & (core.cost != 0) & ~core.integer
    used = np.asarray(abs(core.matrix).sum(axis=0)).ravel() > 0
    return np.flatnonzero((free & ~used)[problem.here])


def _suited(problem: AdjustableProblem, what: str) -> Body:
    """The one set of a problem to which the method applies; others are refused."""
    if problem.left_out:
        raise ModelError(
            f"{what}: '{problem.left_out[0]}' holds a rule at another vector than its own, of which the best policy "
            "takes no account; leave it out, or solve for affine rules, method='auto'."
        )
    for rule in problem.rules:
        if len(rule.seen) < rule.space.dimension:
            raise ModelError(
                f"{what}: '{rule.name}' sees {len(rule.seen)} of the {rule.space.dimension} entries of its vector, and "
                "the method is for decisions that see all; solve for affine rules, method='auto'."
            )
    bodies: list[Body] = []
    for rows in problem.rows:
        body = rows.family.domain.body
        if body is None or fixed_recourse(rows, problem.rules) is None or any(use.start for use in rows.uses):
            raise ModelError(
                f"{what}: in '{rows.family.name}' coefficients of what reacts change with the vector, or it is not "
                "affine in it, so that vertices do not tell all; solve for affine rules, method='auto'."
            )
        if not any(body is other for other in bodies):
            bodies.append(body)
    if len(bodies) > 1:
        raise ModelError(f"{what}: rows hold over {len(bodies)} uncertainty sets, and the method is for one.")
    return bodies[0]


def by_columns(
    problem: SemiInfiniteLP,
    matched: Sequence[MatchedRows],
    functions: Sequence[FunctionColumns],
    time_limit: float | None = None,
) -> tuple[SemiInfiniteLP, Solved, BestPolicy | None]:
    """Solve by column generation: the part of the problem that is decided at once, how it ended, and the policy."""
    own = AdjustableProblem.of_problem(problem, matched, functions, "solve: method='column_generation'")
    found = generate_columns(own, "solve: method='column_generation'", time_limit)
    core, here = own.core, own.here
    at_once = SemiInfiniteLP(
        replace(
            core,
            cost=core.cost[here],
            column_lower=core.column_lower[here],
            column_upper=core.column_upper[here],
            integer=core.integer[here],
            matrix=core.matrix[:, here],
            column_names=[core.column_names[k] for k in here.tolist()],
        ),
        (),
    )
    ended, policy = found.ended, found.policy
    why = (
        f"method='column_generation' was asked for: of {found.vertices} vertices {len(found.scenarios)} have recourse "
        "of their own" + (", and at all others the decisions can be completed" if found.proved else "")
    )
    if policy is None:
        # What is infeasible or unbounded here is so by HiGHS' word, without a proof.
        status = "undecided" if ended.status in ("infeasible", "unbounded") else ended.status
        return at_once, Solved(status, np.nan, np.nan, log=found.log, why=why), None
    if not found.proved and ended.status != "inaccurate":
        # Some vertices are not looked at yet: there is a bound, and no policy.
        return at_once, Solved(ended.status, np.nan, ended.bound, log=found.log, why=why), None
    point = Point(policy.here, audit(at_once, policy.here, [], None, None), (), None, None)
    value, bound = at_once.core.value(policy.here), ended.bound
    complaint = None if found.proved or ended.status != "inaccurate" else "a vertex cannot be completed, by rounding"
    solved = Solved(
        "optimal" if ended.status == "inaccurate" else ended.status,
        value,
        bound,
        point,
        rows=len(found.scenarios),
        log=found.log,
        complaint=complaint,
        why=why,
    )
    return at_once, solved, policy
