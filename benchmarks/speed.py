"""Where users wait: solving again, sweeps, threads, and other solvers of HiGHS.

    python benchmarks/speed.py [--quick]

Solving again is compared with a new ``osilp.solve`` of the same model, two threads with one on the same work, and a
linear program that is begun by the interior point method with the simplex. All answers are compared, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
from figures import Figure, shown, timed
from pyomo.contrib.pyros import BoxSet, CardinalitySet
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import _threads
from osilp_pyomo.demo import demo_model
from osilp_pyomo.model.trace import trace_model


def figures(quick: bool = False) -> list[Figure]:
    """All of them; ``quick`` with smaller models."""
    turns = 3 if quick else 7
    found = [
        *again_figures(quick, turns),
        *thread_figures(5_000 if quick else 50_000, 200 if quick else 500, turns),
        engine_figure(6 if quick else 12, turns),
    ]
    # The limits are meant for the whole sizes.
    return [Figure(each.what, each.value, each.unit, each.peer) for each in found] if quick else found


def robust_model(kind: str, size: int, rows: int, dimension: int) -> Any:
    """A robust LP with random data, and a Param ``room`` in each row."""
    rng = np.random.default_rng(1)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(size), bounds=(0, 1))
    m.room = pyo.Param(mutable=True, initialize=size / 4)
    m.reward = pyo.Objective(expr=osilp.dot(rng.uniform(1, 2, size), m.x), sense=pyo.maximize)
    use, factors = rng.uniform(0.5, 1.5, (rows, size)), rng.normal(0, 0.1, (rows, dimension, size))
    over = BoxSet([(-1, 1)] * dimension)
    if kind == "budget":
        over = CardinalitySet([0] * dimension, [1] * dimension, gamma=dimension / 3)
    m.cap = osilp.SemiInfiniteConstraint(
        range(rows), over, rule=lambda m, i, xi: osilp.dot(use[i] + xi @ factors[i], m.x) <= m.room
    )
    return m


def again_figures(quick: bool, turns: int) -> list[Figure]:
    """After one Param has changed: a solver that was kept against a new solve; and a sweep of 20 values."""
    found = []
    arrivals = 300 if quick else 1_000
    cases: dict[str, tuple[Any, Callable[[Any, float], None]]] = {
        f"README, {arrivals:,} arrivals": (
            demo_model(arrivals=arrivals),
            lambda m, share: m.value[1].set_value(0.5 + 0.1 * share),
        ),
        "robust, box, 50 x 30 x 10": (robust_model("box", 50, 30, 10), lambda m, share: m.room.set_value(12.5 + share)),
        "robust, budget, 50 x 30 x 10": (
            robust_model("budget", 50, 30, 10),
            lambda m, share: m.room.set_value(12.5 + share),
        ),
    }
    for name, (m, change) in cases.items():
        solver = osilp.PersistentSolver(m)
        solver.solve(load=False)
        state = {"new": 0.0, "again": 0.0}

        def solved(how: str, m: Any = m, change: Any = change, solver: Any = solver, state: Any = state) -> float:
            # Another value each time, the same for both.
            state[how] += 0.1
            change(m, state[how])
            run = solver.solve if how == "again" else (lambda **options: osilp.solve(m, **options))
            return float(run(load=False, progress=False).objective)

        (new, again), (one, other) = timed(lambda: solved("new"), lambda: solved("again"), turns=turns)
        assert abs(one - other) <= 1e-7 * abs(one), (name, one, other)
        found.append(Figure(f"solving again, {name}", again / new, "x", "a new solve", 0.25))
    m = robust_model("box", 50, 30, 10)
    values = np.linspace(8, 16, 20).tolist()
    (one_solve, sweep), _ = timed(
        lambda: osilp.solve(m, load=False, progress=False),
        lambda: osilp.sweep(m, [(m.room, values)]),
        turns=max(2, turns // 2),
    )
    found.append(Figure("sweep of 20 values, robust, box", sweep / one_solve, "x", "one solve", 5.0))
    return found


def thread_figures(arrivals: int, columns: int, turns: int) -> list[Figure]:
    """Two threads against one: coefficients of a scan, and a proof in two dimensions."""
    family = trace_model(demo_model(arrivals=arrivals)).problem.families[0]
    points = np.linspace(0, 1, 2_000)[:, None]
    x = np.random.default_rng(0).uniform(size=arrivals)

    def scanned(threads: int) -> Any:
        _threads.use_threads(threads)
        return family.activity(points, x)

    rng = np.random.default_rng(3)
    m = pyo.ConcreteModel()
    m.u, m.v, m.T = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 1)), pyo.RangeSet(columns)
    place, reward = rng.uniform(size=(columns + 1, 2)), rng.uniform(size=columns + 1)
    m.place = pyo.Param(m.T, [0, 1], mutable=True, initialize=lambda m, t, k: place[t, k])
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(reward[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def capacity(m: Any, u: Any, v: Any) -> Any:
        terms = (pyo.exp(-((u - m.place[t, 0]) ** 2 + (v - m.place[t, 1]) ** 2) / 0.02) * m.x[t] for t in m.T)
        return sum(terms) <= columns * (0.024 + 0.006 * pyo.sin(5 * u + 3 * v))

    def proved(threads: int) -> float:
        _threads.use_threads(threads)
        result = osilp.solve(m, load=False, progress=False)
        assert result.certified
        return float(result.proof["seconds"].sum())

    (one, two), (alone, together) = timed(lambda: scanned(1), lambda: scanned(2), turns=turns)
    assert np.array_equal(alone, together)
    found = [Figure(f"scan of 2,000 x {arrivals:,}, two threads", one / two, "x", "one thread", 1.5, at_least=True)]
    proofs = [(proved(1), proved(2)) for _ in range(max(2, turns // 2))]
    one, two = (min(each) for each in zip(*proofs, strict=True))
    found.append(
        Figure(f"proof in the plane, {columns} columns, two threads", one / two, "x", "one thread", 1.5, at_least=True)
    )
    return found


def engine_figure(periods: int, turns: int) -> Figure:
    """A production plan with affine rules: its counterpart begun by the interior point method against the simplex."""
    demand = BoxSet([(80, 120)] * periods)
    m = pyo.ConcreteModel()
    m.P, m.F = pyo.RangeSet(0, periods - 1), pyo.RangeSet(0, 2)
    m.make = osilp.FunctionVar(m.P, m.F, over=demand, sees=lambda m, p, f: range(p), bounds=(0, 60))
    m.worst = pyo.Var()
    m.cost = pyo.Objective(expr=m.worst)

    @m.SemiInfiniteConstraint(m.P, demand)
    def stock(m: Any, p: int, xi: Any) -> Any:
        made = sum(m.make[q, f](xi) for q in range(p + 1) for f in m.F)
        return (0, 60 + made - sum(xi[q] for q in range(p + 1)), 200)

    @m.SemiInfiniteConstraint(demand)
    def paid(m: Any, xi: Any) -> Any:
        price = {(p, f): (1 + 0.5 * f) * (1 + 0.5 * np.sin(p)) for p in m.P for f in m.F}
        return m.worst >= sum(price[p, f] * m.make[p, f](xi) for p in m.P for f in m.F)

    def solved(solver: str) -> float:
        return float(osilp.solve(m, method="counterpart", solver=solver, load=False, progress=False).objective)

    (begun, plain), (one, other) = timed(lambda: solved("ipm"), lambda: solved("highs"), turns=turns)
    assert abs(one - other) <= 1e-7 * abs(one)
    return Figure(f"plan of {periods} periods with affine rules, begun by ipm", begun / plain, "x", "the simplex")


if __name__ == "__main__":
    shown("Speed", figures("--quick" in sys.argv))
