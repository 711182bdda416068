"""Regret, violation and time of every policy on the instances of the paper and beyond.

Run ``python benchmarks/regret.py``; 20 seeds in two processes take about forty minutes, ``--quick`` a minute. Parts of
it run alone: ``python benchmarks/regret.py R --seeds 20``.

Game P: regret against R*_Phi, the optimum on test functions, with the projected guard.
Game F: regret against R*_T, the optimum of all 2,000 rows, with the pointwise guard, so that no row is ever overrun.
Game R: the README's model, its limit a share of T / 1000; regret against R*_T, with the pointwise guard.

Seeds begin at 1000: those below were used to choose the steps of ExperienceReplay. In games F and R every policy is
also compared with Resolve(exact=True) on the same arrivals: the mean difference of regrets, with half a 95 % interval.

Both optima are computed here, by scipy, and not by the package. A limit is what was measured when the methods were
first tried out, and half a 95 % interval more, so that it is missed only where the whole interval lies above. Tuned
methods have none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from figures import Figure, growth, shown
from pyomo.dae import ContinuousSet
from scipy.optimize import linprog

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model

FIRST_SEED = 1000
POINTS = 2000
KNOTS = (np.arange(POINTS) + 0.5) / POINTS

GAME_P = {
    "Algorithm 1, printed step": osilp.GradientDescent(scale="paper"),
    "GradientDescent": osilp.GradientDescent(),
    "MirrorDescent": osilp.MirrorDescent(),
    "MirrorDescent entropy": osilp.MirrorDescent("entropy"),
    "AccelerateThenRefine": osilp.AccelerateThenRefine(),
    "MirrorDescent remaining": osilp.MirrorDescent(target="remaining"),
    "MirrorDescent entropy remaining": osilp.MirrorDescent("entropy", "remaining"),
    "Resolve": osilp.Resolve(),
}
GAME_F = {
    "MirrorDescent": osilp.MirrorDescent(),
    "MirrorDescent entropy": osilp.MirrorDescent("entropy"),
    "AccelerateThenRefine": osilp.AccelerateThenRefine(),
    "SimpleGD": osilp.SimpleGD(),
    "entropy on points": osilp.MirrorDescent("entropy", "remaining", view="pointwise"),
    "ExperienceReplay": osilp.ExperienceReplay(),
    "Resolve exact": osilp.Resolve(exact=True),
}
GAMES = {"P": GAME_P, "F": GAME_F, "R": GAME_F}
CASES_P = [("normal", 500), ("normal", 2000), ("normal", 5000), ("normal", 20000), ("permutation", 2000),
           ("permutation", 5000), ("smooth", 2000), ("smooth", 5000)]  # fmt: skip
CASES_F = [("normal", 5000), ("normal fresh", 5000), ("permutation", 5000), ("smooth", 5000), ("uniform", 5000),
           ("cauchy", 5000)]  # fmt: skip
CASES_R = [("README", 500), ("README", 1000), ("README", 4000)]
CASES = {"P": CASES_P, "F": CASES_F, "R": CASES_R}
# What ExperienceReplay may lose at most beside Resolve(exact=True), as a ratio of mean regrets.
RATIO = {"R": 1.1, "F": 1.3}
MEASURED = {
    ("P", "Algorithm 1, printed step"): [0.0458, 0.0223, 0.0147, 0.0084, None, 0.0090, None, 0.0210],
    ("P", "AccelerateThenRefine"): [0.0703, 0.0188, 0.0084, 0.0045, None, 0.0056, None, 0.028],
    ("P", "MirrorDescent entropy remaining"): [0.0174, 0.0093, 0.0056, 0.0025, None, 0.0059, None, 0.0063],
    ("P", "Resolve"): [0.0105, 0.0029, 0.0015, 0.0004, None, 0.0017, None, 0.0018],
    ("F", "Resolve exact"): [0.0034, 0.0062, 0.0155, 0.0020, 0.0018, 0.086],
}


def field(rng, count):
    """Gaussian random fields of length .1 and unit variance at the knots."""
    nodes = np.linspace(0, 1, 120)
    factor = np.linalg.cholesky(np.exp(-((nodes[:, None] - nodes) ** 2) / 0.02) + 1e-8 * np.eye(120))
    weights = np.linalg.solve(factor.T, rng.normal(size=(120, count)))
    return (np.exp(-((KNOTS[:, None] - nodes) ** 2) / 0.02) @ weights).T


def instance(kind, horizon, seed):
    """Different rewards and columns, which of them each arrival is, and the limit an arrival."""
    rng = np.random.default_rng([seed, horizon])
    limit = rng.uniform(2, 3, POINTS)
    support = horizon if kind == "normal fresh" else 100
    if kind.startswith("normal"):
        rewards, columns = rng.normal(1, 1, support), rng.normal(4, 1, (support, POINTS))
    elif kind == "uniform":
        rewards, columns = rng.uniform(0, 1, support), rng.uniform(0, 4, (support, POINTS))
    elif kind == "cauchy":
        rewards, columns = rng.standard_cauchy(support), 2 + rng.standard_cauchy((support, POINTS))
    elif kind == "smooth":
        support = 300
        limit = 2.5 + 0.5 * np.tanh(field(rng, 1)[0])
        rewards, columns = rng.normal(1, 1, support), 4 + field(rng, support)
    else:
        size, support = horizon // 5, horizon
        limit, rewards = rng.uniform(0.4, 0.8, POINTS), rng.uniform(0, 1, horizon)
        columns = np.concatenate([
            rng.uniform(0, 3, (size, POINTS)),
            rng.normal(2, 1, (size, POINTS)),
            rng.uniform(0, 2, (size, 1)) + rng.normal(size=(size, POINTS)),
            rng.uniform(0.5, 1.5, (size, 1)) * rng.normal(size=(size, POINTS)),
            rng.integers(-1, 2, (horizon - 4 * size, POINTS)).astype(float),
        ])  # fmt: skip
        return rewards, columns, rng.permutation(horizon), limit
    which = np.arange(horizon) if support == horizon else rng.integers(support, size=horizon)
    return rewards, columns, which, limit


def program_for(horizon, limit):
    """Two example arrivals without values; the curves of the real ones come beside the data."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.value = pyo.Param(m.T, mutable=True)
    m.column = osilp.Profile(m.T, over=m.u, points=KNOTS, kind="nearest", outside="clamp", initialize=lambda m, t: t)
    m.limit = osilp.Profile(over=m.u, points=KNOTS, kind="nearest", outside="clamp", initialize=limit * horizon)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.column[t](u) * m.x[t] for t in m.T) <= m.limit(u)
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=KNOTS, basis=osilp.RBF(10))


def optimum(rewards, columns, counts, limit):
    """The LP over different arrivals, each as often as it comes; rows that are violated are added."""
    rows = np.zeros(len(limit), dtype=bool)
    rows[np.linspace(0, len(limit) - 1, min(len(limit), 20)).astype(int)] = True
    while True:
        found = linprog(
            -rewards, A_ub=columns[:, rows].T, b_ub=limit[rows], bounds=list(zip(0 * counts, counts, strict=True))
        )
        excess = np.where(rows, 0, found.x @ columns - limit)
        if excess.max() <= 1e-9 * np.abs(limit).max():
            return -found.fun
        rows[np.argsort(-excess)[:60]] |= np.sort(-excess)[:60] < 0


def readme(horizon, seed):
    """Arrivals of the README's model, their columns at the knots, and the limit an arrival."""
    rng = np.random.default_rng([seed, horizon])
    data = pd.DataFrame({"value": rng.uniform(size=horizon), "place": rng.uniform(size=horizon)})
    columns = np.exp(-(((KNOTS - data.place.to_numpy()[:, None]) / 0.1) ** 2))
    return data, columns, (60 + 20 * np.sin(6 * KNOTS)) / 1000


def one_seed(job):
    """The runs of one instance: a record for every policy."""
    game, kind, horizon, seed = job
    if game == "R":
        data, columns, limit = readme(horizon, seed)
        m = demo_model(arrivals=horizon)
        program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(10))
        best = optimum(data.value.to_numpy(), columns, np.ones(horizon), horizon * limit)
        return runs_of(job, program, data, None, "pointwise", best)
    rewards, columns, which, limit = instance(kind, horizon, seed)
    program = program_for(horizon, limit)
    data, profiles = pd.DataFrame({"value": rewards[which]}), {"column": columns[which]}
    seen, counts = np.unique(which, return_counts=True)
    if game == "P":
        phi = program.evaluator.phi(0)
        best = optimum(rewards[seen], columns[seen] @ phi, counts.astype(float), horizon * (limit @ phi))
        return runs_of(job, program, program.project(data, profiles), None, "projected", best)
    best = optimum(rewards[seen], columns[seen], counts.astype(float), horizon * limit)
    return runs_of(job, program, data, profiles, "pointwise", best)


def runs_of(job, program, arrivals, profiles, guard, best):
    """A record for every policy on the arrivals of one instance."""
    game, kind, horizon, seed = job
    rows = []
    for name, policy in GAMES[game].items():
        started = time.perf_counter()
        run = program.replay(policy, arrivals, guard, profiles=profiles)
        rows.append({
            "game": game, "kind": kind, "horizon": horizon, "seed": seed, "policy": name,
            "regret": 1 - run.objective / best, "violation": run.relative_violation,
            "seconds": time.perf_counter() - started,
        })  # fmt: skip
    return rows


def regrets(runs):
    """A line for every policy on every instance: its mean regret, with half a 95 % interval."""
    for (game, kind, horizon, policy), part in runs.groupby(["game", "kind", "horizon", "policy"], sort=False):
        cases = CASES[game]
        measured = MEASURED.get((game, policy), [None] * len(cases))[cases.index((kind, horizon))]
        half = 1.96 * part.regret.std(ddof=1) / np.sqrt(len(part))
        yield Figure(
            f"{game}, {kind}, T {horizon:,}, {policy}: regret +- {100 * half:.2g}",
            100 * part.regret.mean(),
            "%",
            "R*_Phi by scipy" if game == "P" else "R*_T by scipy",
            None if measured is None else 100 * (measured + half),
        )


def differences(runs):
    """Lines for every policy on every instance of games F and R: how its regret differs from that of Resolve."""
    for (game, kind, horizon), part in runs[runs.game != "P"].groupby(["game", "kind", "horizon"], sort=False):
        table = part.pivot_table(index="seed", columns="policy", values="regret")
        known = table["Resolve exact"]
        for policy in table.columns.drop("Resolve exact"):
            difference = table[policy] - known
            half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
            yield Figure(
                f"{game}, {kind}, T {horizon:,}, {policy} less Resolve exact: regret +- {100 * half:.2g}",
                100 * difference.mean(),
                "%",
                "the same arrivals",
            )
            if policy == "ExperienceReplay":
                yield Figure(
                    f"{game}, {kind}, T {horizon:,}, {policy}: regret over that of Resolve exact",
                    table[policy].mean() / known.mean(),
                    "x",
                    "mean regrets",
                    RATIO[game],
                )


def violations_and_times(runs):
    """A line for every policy: the largest violation of all its runs, the time a step, and how a run grows with T."""
    for (game, policy), part in runs.groupby(["game", "policy"], sort=False):
        if not part.violation.isna().all():
            yield Figure(
                f"{game}, {policy}: largest violation",
                100 * part.violation.astype(float).max(),
                "%",
                "the limits of rows",
            )
        yield Figure(f"{game}, {policy}: time a step, median", 1e6 * (part.seconds / part.horizon).median(), "us")
        best = part[part.kind == "normal"].groupby("horizon").seconds.min()
        # What is over within milliseconds says nothing of growth.
        if len(best) > 1 and best.min() > 0.02:
            yield growth(f"a run by T, {game}, {policy}", best.index, best)


def figures(quick=False, games="PFR", count=20):
    seeds = range(FIRST_SEED, FIRST_SEED + (3 if quick else count))
    cases = [(game, *case) for game in games for case in CASES[game]]
    if quick:
        cases = [("P", "normal", 500), ("P", "normal", 2000), ("F", "normal", 5000), ("R", "README", 500)]
    jobs = [(*case, seed) for case in cases for seed in seeds]
    # Threads of HiGHS and BLAS do not survive a fork.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        runs = pd.DataFrame([row for rows in pool.map(one_seed, jobs) for row in rows])
    return [*regrets(runs), *differences(runs), *violations_and_times(runs)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("games", nargs="?", default="PFR")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args()
    shown("Regret", figures(chosen.quick, chosen.games, chosen.seeds))
