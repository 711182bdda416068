"""Offline benchmarks: ratios from one run, each beside the limit it should keep.

Run ``python benchmarks/offline.py``; it takes about two minutes. Times on a shared machine vary, so every figure
is a ratio of two times measured in the same run, or an amount of memory.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import highspy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.tracing import trace_model


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


def best_time(function, repeats=3):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - started)
    return min(times), result


def coefficients():
    """Compiled coefficients against the same formula written by hand in numpy, and the time to get there."""
    m = build(5000)
    tracing, _ = best_time(lambda: declare(m), 1)
    compiling, traced = best_time(lambda: trace_model(m), 1)
    family = traced.problem.families[0]
    u = (np.arange(2000) + 0.5) / 2000
    place = np.array([m.place[t].value for t in m.T])

    def by_hand():
        return np.exp(-(((u[:, None] - place[None, :]) / 0.1) ** 2))

    hand, matrix = best_time(by_hand)
    ours, mine = best_time(lambda: family.matrix(u[:, None]))
    assert np.allclose(matrix, mine, rtol=1e-12)

    def by_hand_in_chunks():
        for first in range(0, 5000, 64):
            yield np.exp(-(((u[None, :] - place[first : first + 64, None]) / 0.1) ** 2)).sum()

    chunked, _ = best_time(lambda: sum(by_hand_in_chunks()))
    blocks, _ = best_time(lambda: sum(block.sum() for _, _, block in family.blocks(u[:, None])))
    return [
        ("compiled matrix 2,000 x 5,000 / numpy by hand", ours / hand, "<= 1.3"),
        ("compiled blocks / numpy by hand in the same blocks", blocks / chunked, "<= 1.3"),
        ("tracing the rule, 5,000 columns (s)", tracing, ""),
        ("splitting, compiling and checking them (s)", compiling, ""),
        ("both together (s)", tracing + compiling, "<= 0.5"),
    ]


def small_end_to_end():
    """From the Params to the loaded answer, 200 points x 500 columns."""
    grid = osilp.Midpoint(200)
    points = (np.arange(200) + 0.5) / 200

    def plain():
        m = declare_plain_rows(build(500), points)
        pyo.SolverFactory("appsi_highs").solve(m)
        return pyo.value(m.reward)

    def ours(method):
        m = declare(build(500))
        return osilp.solve(m, method=method, grid=grid).objective

    building, _ = best_time(lambda: build(500))
    plain_time, plain_value = best_time(plain, 2)
    discretized, value = best_time(lambda: ours("discretized"))
    projected, _ = best_time(lambda: ours("projected"))
    assert abs(plain_value - value) <= 1e-6 * abs(plain_value)
    return [
        ("plain Pyomo rows + appsi_highs / discretized, 200 x 500", plain_time / discretized, ">= 20"),
        ("  without declaring Params, Vars and objective", (plain_time - building) / (discretized - building), ""),
        ("plain Pyomo rows + appsi_highs / projected", plain_time / projected, ""),
    ]


def large_exact():
    """Exchange against the full LP handed straight to highspy, 2,000 points x 5,000 columns."""
    m = declare(build(5000))
    traced = trace_model(m)
    u = ((np.arange(2000) + 0.5) / 2000)[:, None]
    matrix, (_, upper) = traced.problem.families[0].matrix(u), traced.problem.families[0].limits(u)

    def full():
        lp = highspy.HighsLp()
        rows, columns = matrix.shape
        lp.num_col_, lp.num_row_, lp.sense_ = columns, rows, highspy.ObjSense.kMaximize
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = traced.problem.core.cost, np.zeros(columns), np.ones(columns)
        lp.row_lower_, lp.row_upper_ = np.full(rows, -np.inf), upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.arange(rows + 1) * columns
        lp.a_matrix_.index_ = np.tile(np.arange(columns), rows)
        lp.a_matrix_.value_ = matrix.ravel()
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.passModel(lp)
        highs.run()
        return highs.getInfo().objective_function_value

    full_time, full_value = best_time(full, 1)
    grid_time, grid_result = best_time(lambda: osilp.solve(m, method="discretized", grid=osilp.Midpoint(2000)), 2)
    exact_time, exact = best_time(lambda: osilp.solve(m), 2)
    return [
        ("full LP by highspy / exchange on the same 2,000 points", full_time / grid_time, ">= 5"),
        ("  relative difference of the two optima", abs(grid_result.objective / full_value - 1), "<= 1e-7"),
        ("full LP by highspy / exchange on the continuum", full_time / exact_time, ">= 5"),
        ("  relative difference (the grid's optimum is a bound)", full_value / exact.objective - 1, ""),
        ("  full LP by highspy (s)", full_time, ""),
    ]


def large_projected():
    """Peak memory of a process that projects 100,000 points x 5,000 columns."""
    done = subprocess.run([sys.executable, __file__, "projected"], capture_output=True, text=True, check=True)
    peak, seconds, held = (float(part) for part in done.stdout.split())
    return [
        ("projected 100,000 x 5,000: peak memory of the process (GB)", peak, "< 1"),
        ("  what the result says it held (GB)", held, ""),
        ("  seconds", seconds, ""),
    ]


def run_projected():
    result = osilp.solve(declare(build(5000)), method="projected", grid=osilp.Midpoint(100_000), basis=osilp.RBF(10))
    # Not ru_maxrss: that of a child starts at what its parent had.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()).group(1)
    print(int(peak) / 1e6, result.seconds, result.memory / 1e9)


def main():
    rows = []
    for part in (coefficients, small_end_to_end, large_exact, large_projected):
        print(f"{part.__doc__.splitlines()[0]}", file=sys.stderr)
        rows += part()
    table = pd.DataFrame(rows, columns=["figure", "measured", "limit"])
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    run_projected() if sys.argv[1:] == ["projected"] else main()
