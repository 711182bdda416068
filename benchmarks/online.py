"""Speed of the controller: ratios against numpy on the same column, and times a step; one run, one table.

    python benchmarks/online.py

Peers and the package take turns, and the best of the turns count, because the machine may be busy with other things.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.compiling import COMPILED

POINTS, FUNCTIONS = 2000, 10


def model(smooth=False):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    earned = [pyo.log(1 + m.value[t] * m.x[t]) if smooth else m.value[t] * m.x[t] for t in m.T]
    m.reward = pyo.Objective(expr=sum(earned), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        amounts = {t: m.x[t] + m.x[t] ** 2 if smooth else m.x[t] for t in m.T}
        return sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * amounts[t] for t in m.T) <= 1e5 * (1 + u)

    return m


def compiled(horizon, smooth=False):
    m = model(smooth)
    basis, grid = osilp.RBF(FUNCTIONS), osilp.Midpoint(POINTS)
    return osilp.compile_online(m, stages=m.T, horizon=horizon, basis=basis, grid=grid)


def seconds(*tasks, turns=7):
    """Best time of each task, taking turns."""
    best = [np.inf] * len(tasks)
    for _ in range(turns):
        for k, task in enumerate(tasks):
            started = time.perf_counter()
            task()
            best[k] = min(best[k], time.perf_counter() - started)
    return best


def arrivals(count, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"value": rng.uniform(0, 1, count), "place": rng.uniform(0, 1, count)})


def stepping(controller, rows):
    def task():
        for value, place in rows:
            controller.step(value=value, place=place)

    return task


def main():
    lines = []
    program = compiled(10_000_000)
    rows = list(arrivals(400).itertuples(index=False, name=None))
    u, phi = (np.arange(POINTS) + 0.5) / POINTS, np.ascontiguousarray(program.evaluator.phi(0)[:POINTS])

    def by_numpy():
        for _, place in rows:
            np.exp(-(((u - place) / 0.1) ** 2)) @ phi

    tasks = [
        stepping(program.controller(osilp.MirrorDescent(), guard), rows) for guard in ("none", "projected", "pointwise")
    ]
    numpy_time, *steps = seconds(by_numpy, *tasks, turns=15)
    for guard, taken in zip(("none", "projected", "pointwise"), steps, strict=True):
        lines.append((f"step, guard {guard} / numpy column and projection", taken / numpy_time, 3.0, ""))

    count = 1_000_000
    projected = compiled(count).project(arrivals(count))
    big = compiled(count)
    for name, policy in {"MirrorDescent": osilp.MirrorDescent(), "two stages": osilp.AccelerateThenRefine()}.items():
        (taken,) = seconds(lambda policy=policy: big.controller(policy, "projected").meet(projected), turns=3)
        lines.append(
            (f"replay of {count:,} projected arrivals, {name}, guard projected", 1e6 * taken / count, 0.1, "us")
        )

    frame = arrivals(20_000)
    medium = compiled(len(frame))
    alone, whole, pointwise = seconds(
        lambda: medium.project(frame),
        lambda: medium.replay(osilp.MirrorDescent(), frame, "projected"),
        lambda: medium.replay(osilp.MirrorDescent(), frame, "pointwise"),
        turns=5,
    )
    lines.append(("replay from a DataFrame, guard projected / projection alone", whole / alone, 1.3, ""))
    lines.append(("replay from a DataFrame, guard pointwise / projection alone", pointwise / alone, np.nan, ""))

    smooth = compiled(1_000_000, smooth=True)
    (taken,) = seconds(stepping(smooth.controller(osilp.MirrorDescent(), "projected"), rows))
    lines.append(("step of a smooth stage (log utility, quadratic use), plain", 1e6 * taken / len(rows), 100.0, "us"))
    data = smooth.project(arrivals(100_000))
    smooth.controller(osilp.MirrorDescent(), "projected").meet(data)
    (taken,) = seconds(lambda: smooth.controller(osilp.MirrorDescent(), "projected").meet(data), turns=3)
    lines.append(("replay of the smooth stage, projected arrivals", 1e6 * taken / 100_000, 10.0, "us"))
    (taken,) = seconds(stepping(smooth.controller(osilp.MirrorDescent(), "projected"), rows))
    lines.append(("step of the smooth stage once its loop is compiled", 1e6 * taken / len(rows), 100.0, "us"))

    print(f"{POINTS:,} grid points, {FUNCTIONS} test functions, {'numba' if COMPILED else 'plain numpy'}")
    for name, figure, limit, unit in lines:
        verdict = "" if np.isnan(limit) else f"limit {limit:g}  {'met' if figure <= limit else 'MISSED'}"
        print(f"{name:<75} {figure:>8.3f} {unit:<3} {verdict}")


if __name__ == "__main__":
    main()
