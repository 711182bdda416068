"""Speed of the controller: against numpy on the same column, times a step, and growth with points, functions and T.

Run ``python benchmarks/online.py``; it takes about two minutes, with ``--quick`` half a minute.
"""

import sys

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from figures import Figure, growth, seconds, shown
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

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


def compiled(horizon, smooth=False, points=POINTS, functions=FUNCTIONS):
    m = model(smooth)
    basis, grid = osilp.RBF(functions), osilp.Midpoint(points)
    return osilp.compile_online(m, stages=m.T, horizon=horizon, basis=basis, grid=grid)


def arrivals(count, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"value": rng.uniform(0, 1, count), "place": rng.uniform(0, 1, count)})


def stepping(controller, rows):
    def task():
        for value, place in rows:
            controller.step(value=value, place=place)

    return task


def met(program, projected, policy):
    """A task that replays arrivals that were projected before."""
    return lambda: program.controller(policy, "projected").meet(projected)


def steps(rows, turns):
    """A step beside what it cannot do without: the column at the points, and its projection."""
    program = compiled(10_000_000)
    u, phi = (np.arange(POINTS) + 0.5) / POINTS, np.ascontiguousarray(program.evaluator.phi(0)[:POINTS])

    def by_numpy():
        for _, place in rows:
            np.exp(-(((u - place) / 0.1) ** 2)) @ phi

    guards = ("none", "projected", "pointwise")
    tasks = [stepping(program.controller(osilp.MirrorDescent(), guard), rows) for guard in guards]
    by_hand, *ours = seconds(by_numpy, *tasks, turns=turns)
    return [
        Figure(
            f"step, {POINTS:,} points and {FUNCTIONS} functions, guard {guard}",
            taken / by_hand,
            "x",
            "numpy column and projection",
            3.0,
        )
        for guard, taken in zip(guards, ours, strict=True)
    ]


def replays(count, frame_count, turns):
    """Arrivals that were projected before, and arrivals of a DataFrame beside their projection."""
    program = compiled(count)
    projected = program.project(arrivals(count))
    policies = {"MirrorDescent": osilp.MirrorDescent(), "two stages": osilp.AccelerateThenRefine()}
    taken = seconds(*(met(program, projected, policy) for policy in policies.values()), turns=turns)
    lines = [
        Figure(f"replay of {count:,} projected arrivals, {name}, each", 1e6 * each / count, "us", limit=0.1)
        for name, each in zip(policies, taken, strict=True)
    ]
    frame = arrivals(frame_count)
    program = compiled(frame_count)
    alone, whole, pointwise = seconds(
        lambda: program.project(frame),
        lambda: program.replay(osilp.MirrorDescent(), frame, "projected"),
        lambda: program.replay(osilp.MirrorDescent(), frame, "pointwise"),
        turns=turns,
    )
    return [
        *lines,
        Figure("replay from a DataFrame, guard projected", whole / alone, "x", "projection alone", 1.3),
        Figure("replay from a DataFrame, guard pointwise", pointwise / alone, "x", "projection alone"),
    ]


def smooth_stages(rows, count, turns):
    """Log utility and quadratic use; the loop is compiled when many arrivals are met, and steps then use it too."""
    program = compiled(1_000_000, smooth=True)

    def step_time():
        (taken,) = seconds(stepping(program.controller(osilp.MirrorDescent(), "projected"), rows), turns=turns)
        return 1e6 * taken / len(rows)

    plain = step_time()
    replay = met(program, program.project(arrivals(count)), osilp.MirrorDescent())
    replay()
    (taken,) = seconds(replay, turns=turns)
    return [
        Figure("step of a smooth stage, plain", plain, "us", limit=100.0),
        Figure("replay of the smooth stage, projected arrivals, each", 1e6 * taken / count, "us", limit=10.0),
        Figure("step of the smooth stage once its loop is compiled", step_time(), "us", limit=100.0),
    ]


def growths(rows, count, turns):
    """How steps grow with grid points, and replays of projected arrivals with test functions and arrivals."""
    policy = osilp.MirrorDescent()
    points, functions, horizons = [2000, 8000, 32000], [10, 40, 160], [count // 9, count // 3, count]
    stepped = [stepping(compiled(10_000_000, points=each).controller(policy, "pointwise"), rows) for each in points]

    def replay(horizon, functions):
        program = compiled(horizon, functions=functions)
        return met(program, program.project(arrivals(horizon)), policy)

    by_functions = [replay(count // 9, each) for each in functions]
    by_horizon = [replay(each, FUNCTIONS) for each in horizons]
    return [
        growth("a step by grid points, guard pointwise", points, seconds(*stepped, turns=turns)),
        growth("a projected replay by test functions", functions, seconds(*by_functions, turns=turns)),
        growth("a projected replay by arrivals", horizons, seconds(*by_horizon, turns=turns)),
    ]


def figures(quick=False):
    rows = list(arrivals(100 if quick else 400).itertuples(index=False, name=None))
    turns = 5 if quick else 7
    return [
        *steps(rows, turns=60),
        *replays(200_000 if quick else 1_000_000, 5_000 if quick else 20_000, turns),
        *smooth_stages(rows, 20_000 if quick else 100_000, turns),
        *growths(rows, 90_000 if quick else 360_000, turns),
    ]


if __name__ == "__main__":
    shown("Online", figures("--quick" in sys.argv))
