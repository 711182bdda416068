"""Offline benchmarks: coefficients, small and large programs, memory, and growth with columns and points.

Run ``python benchmarks/offline.py``; it takes about three minutes, with ``--quick`` half a minute.
"""

import sys

import numpy as np
import pyomo.environ as pyo
from dense_highs import dense_highs
from figures import Figure, growth, peak_memory, seconds, shown, timed
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.model.trace import trace_model


def build(columns, seed=7):
    """The README's model at any size."""
    random = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(columns)
    m.value = pyo.Param(m.T, mutable=True, initialize=dict(enumerate(random.uniform(size=columns), 1)))
    m.place = pyo.Param(m.T, mutable=True, initialize=dict(enumerate(random.uniform(size=columns), 1)))
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    return m


def declare(m):
    scale = len(m.T) / 1000

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        taken = sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
        return taken <= scale * (60 + 20 * pyo.sin(6 * u))

    return m


def declare_plain_rows(m, points):
    """The same rows as ordinary Pyomo constraints over mutable Params."""
    scale = len(m.T) / 1000

    def row(m, k):
        u = float(points[k])
        taken = sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
        return taken <= scale * (60 + 20 * pyo.sin(6 * u))

    m.rows = pyo.Constraint(range(len(points)), rule=row)
    return m


def coefficients(points, columns):
    """Compiled coefficients against the same formula written by hand in numpy, and the time to get there."""
    m = build(columns)
    (tracing,) = seconds(lambda: declare(m), turns=1)
    (compiling,), (traced,) = timed(lambda: trace_model(m), turns=1)
    family = traced.problem.families[0]
    u = (np.arange(points) + 0.5) / points
    place = np.array([m.place[t].value for t in m.T])

    def by_hand():
        return np.exp(-(((u[:, None] - place[None, :]) / 0.1) ** 2))

    def by_hand_in_blocks():
        for first in range(0, columns, 64):
            yield np.exp(-(((u[None, :] - place[first : first + 64, None]) / 0.1) ** 2)).sum()

    (hand, ours), (matrix, mine) = timed(by_hand, lambda: family.matrix(u[:, None]), turns=5)
    assert np.allclose(matrix, mine, rtol=1e-12)
    blocks_by_hand, blocks = seconds(
        lambda: sum(by_hand_in_blocks()),
        lambda: sum(block.sum() for _, _, block in family.blocks(u[:, None])),
        turns=5,
    )
    return [
        Figure(f"compiled matrix {points:,} x {columns:,}", ours / hand, "x", "numpy by hand", 1.3),
        Figure("compiled blocks", blocks / blocks_by_hand, "x", "numpy by hand in the same blocks", 1.3),
        Figure(f"tracing the rule, {columns:,} columns", tracing, "s"),
        Figure("splitting, compiling and checking them", compiling, "s"),
        Figure("both together", tracing + compiling, "s", limit=0.5),
    ]


def small_end_to_end(turns):
    """From the Params to the loaded answer, 200 points x 500 columns."""
    grid = osilp.Midpoint(200)
    points = (np.arange(200) + 0.5) / 200

    def plain():
        m = declare_plain_rows(build(500), points)
        pyo.SolverFactory("appsi_highs").solve(m)
        return pyo.value(m.reward)

    def ours(method):
        return osilp.solve(declare(build(500)), method=method, grid=grid).objective

    (building, theirs, discretized, projected), (_, plain_value, value, _) = timed(
        lambda: build(500), plain, lambda: ours("discretized"), lambda: ours("projected"), turns=turns
    )
    assert abs(plain_value - value) <= 1e-6 * abs(plain_value)
    peer = "plain Pyomo rows + appsi_highs"
    return [
        Figure("speedup, discretized, 200 x 500", theirs / discretized, "x", peer, 20, at_least=True),
        Figure("the same, less declaring the rest", (theirs - building) / (discretized - building), "x", peer),
        Figure("speedup, projected, 200 x 500", theirs / projected, "x", peer),
    ]


def large_exact(points, columns, limit):
    """Exchange against the full LP handed straight to HiGHS."""
    m = declare(build(columns))
    problem = trace_model(m).problem
    u = ((np.arange(points) + 0.5) / points)[:, None]
    matrix, (_, upper) = problem.families[0].matrix(u), problem.families[0].limits(u)

    def full():
        highs = dense_highs(problem.core.cost, 1.0, matrix, upper)
        highs.run()
        return highs.getInfo().objective_function_value

    # Once: it is slow enough to be told apart from noise.
    (full_time,), (full_value,) = timed(full, turns=1)
    (grid_time, exact_time), (on_grid, exact) = timed(
        lambda: osilp.solve(m, method="discretized", grid=osilp.Midpoint(points)), lambda: osilp.solve(m), turns=2
    )
    peer = f"full LP {points:,} x {columns:,} by highspy"
    return [
        Figure("speedup, exchange on the same points", full_time / grid_time, "x", peer, limit, at_least=True),
        Figure("relative difference of their optima", abs(on_grid.objective / full_value - 1), "", peer, 1e-7),
        Figure("speedup, exchange on the continuum", full_time / exact_time, "x", peer, limit, at_least=True),
        Figure("relative excess of the optimum on points", full_value / exact.objective - 1, "", "the continuum's"),
        Figure("full LP by highspy", full_time, "s"),
    ]


def project(points, columns):
    result = osilp.solve(declare(build(columns)), method="projected", grid=osilp.Midpoint(points), basis=osilp.RBF(10))
    return result.seconds, result.memory


def large_projected(points, columns):
    """Memory of a process that projects more points than it could hold rows of."""
    (taken, held), peak = peak_memory(project, points, columns)
    name = f"projected {points:,} x {columns:,}"
    return [
        Figure(f"{name}, peak memory of the process", peak / 1e9, "GB", limit=1.0),
        Figure(f"{name}, what the result says it held", held / 1e9, "GB"),
        Figure(f"{name}, time", taken, "s"),
    ]


def growths(sizes, turns):
    """How the time of a solve grows, from the declared model to the answer."""
    models = [declare(build(columns)) for columns in sizes]
    by_columns = seconds(*(lambda m=m: osilp.solve(m, load=False) for m in models), turns=turns)
    # No more than search.CACHE_BYTES: beyond, coefficients are computed again in every round, and time jumps.
    points = [4 * size for size in sizes]
    by_points = seconds(
        *(
            lambda count=count: osilp.solve(models[0], method="discretized", grid=osilp.Midpoint(count), load=False)
            for count in points
        ),
        turns=turns,
    )
    return [
        growth("exchange by columns", sizes, by_columns),
        growth(f"discretized by grid points ({sizes[0]:,} columns)", points, by_points),
    ]


def figures(quick=False):
    """All of them; the limits of the large LP hold at its full size only."""
    size = (500, 1000) if quick else (2000, 5000)
    return [
        *coefficients(2000, 5000),
        *small_end_to_end(turns=1 if quick else 3),
        *large_exact(*size, limit=None if quick else 5),
        *large_projected(20_000 if quick else 100_000, 5000),
        *growths([500, 1000, 2000] if quick else [1000, 2000, 4000, 8000], turns=2 if quick else 3),
    ]


if __name__ == "__main__":
    shown("Offline", figures("--quick" in sys.argv))
