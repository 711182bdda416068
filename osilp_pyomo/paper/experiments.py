"""The numerical section of the paper, run again: its inputs, its sweeps, its algorithms as printed and as corrected.

Zong and Jiang, "Online Semi-infinite Linear Programming: Efficient Algorithms via Function Approximation",
arXiv:2603.16200, section "Numerical Experiments". The paper does not say how large the finite support is, what J and
lambda are, nor how Phi is scaled; here the support has 100 columns, drawn anew in each trial, and the right-hand side
is drawn once for each number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet
from scipy.optimize import linprog

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._pools import processes
from osilp_pyomo._reporting import bar
from osilp_pyomo.api import compile_online
from osilp_pyomo.index.bases import RBF
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.profile import Profile
from osilp_pyomo.online.policies import AccelerateThenRefine, Greedy, MirrorDescent, Policy, SimpleGD
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.resolve import Resolve
from osilp_pyomo.online.stages.batch import PROJECTED
from osilp_pyomo.paper.algorithms import PrintedAccelerate, PrintedMirrorDescent, PrintedTwoStage
from osilp_pyomo.studies.compare import Study, compare
from osilp_pyomo.studies.trial import FRAMES

ROWS, ARRIVALS = 2000, 5000
SUPPORT = 100
KINDS = ("uniform", "normal", "cauchy", "permutation")
BENCHMARKS = ("discretized", "projected")


@dataclass(frozen=True)
class Experiment:
    """One figure of the paper: an input, what is swept, and what stays ``fixed``: m or T."""

    name: str
    kind: str
    along: str
    sizes: tuple[int, ...]
    fixed: int

    @property
    def title(self) -> str:
        """What it is called on the page."""
        fixed = f"m = {self.fixed:,} rows" if self.along == "horizon" else f"T = {self.fixed:,} arrivals"
        return f"{self.kind.capitalize()} input, {fixed}"

    @property
    def parts(self) -> list[tuple[int, tuple[int, ...]]]:
        """Numbers of rows, each with the horizons that are run on it."""
        if self.along == "horizon":
            return [(self.fixed, self.sizes)]
        return [(points, (self.fixed,)) for points in self.sizes]


def experiments(quick: bool) -> list[Experiment]:
    """All figures of the section; fewer sizes and a shorter horizon beyond the paper's when it has to be quick."""
    horizons = (500, 1000, 2000, 5000, 7500) if quick else (250, 500, 1000, 2000, 5000, 10000, 20000)
    rows = (100, 400, 2000) if quick else (50, 100, 250, 500, 1000, 2000, 4000)
    return [
        *(Experiment(f"{kind}-T", kind, "horizon", horizons, ROWS) for kind in KINDS),
        *(Experiment(f"{kind}-m", kind, "points", rows, ARRIVALS) for kind in KINDS),
    ]


@dataclass(frozen=True)
class PaperInput:
    """A sampler of the paper's arrivals: rewards and columns that are white noise along the index.

    For "uniform", "normal" and "cauchy" the support, from which arrivals are drawn with replacement; for
    "permutation" all arrivals, five groups of columns, whose order is drawn.
    """

    kind: str
    points: int

    def __call__(self, rng: np.random.Generator, horizon: int) -> tuple[pd.DataFrame, dict[str, FloatArray]]:
        size = (SUPPORT, self.points)
        if self.kind == "uniform":
            rewards, columns = rng.uniform(0, 1, SUPPORT), rng.uniform(0, 4, size)
        elif self.kind == "normal":
            rewards, columns = rng.normal(1, 1, SUPPORT), rng.normal(4, 1, size)
        elif self.kind == "cauchy":
            rewards, columns = rng.standard_cauchy(SUPPORT), 2 + rng.standard_cauchy(size)
        else:
            rewards, columns = rng.uniform(0, 1, horizon), self._groups(rng, horizon)
        return pd.DataFrame({"value": rewards}), {"column": columns}

    def _groups(self, rng: np.random.Generator, horizon: int) -> FloatArray:
        count, m = horizon // 5, self.points
        return np.concatenate([
            rng.uniform(0, 3, (count, m)),
            rng.normal(2, 1, (count, m)),
            rng.uniform(0, 2, (count, 1)) + rng.normal(size=(count, m)),
            rng.uniform(0.5, 1.5, (count, 1)) * rng.normal(size=(count, m)),
            rng.integers(-1, 2, (horizon - 4 * count, m)).astype(float),
        ])  # fmt: skip


def paper_program(kind: str, points: int, horizon: int, seed: int) -> OnlineProgram:
    """The paper's problem with m rows: two example arrivals without values, the real ones are drawn in each trial."""
    rng = np.random.default_rng([seed, points])
    limit = rng.uniform(0.4, 0.8, points) if kind == "permutation" else rng.uniform(2, 3, points)
    knots = (np.arange(points) + 0.5) / points
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.value = pyo.Param(m.T, mutable=True)
    m.column = Profile(m.T, over=m.u, points=knots, kind="nearest", outside="clamp", initialize=lambda m, t: t)
    m.limit = Profile(over=m.u, points=knots, kind="nearest", outside="clamp", initialize=horizon * limit)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.column[t](u) * m.x[t] for t in m.T) <= m.limit(u))
    return compile_online(m, stages=m.T, horizon=horizon, grid=knots, basis=RBF(10))


def least_stage(kind: str, points: int, seed: int) -> tuple[float, float]:
    """What the printed J is at least on a drawn instance with the printed Phi, and the lambda behind it.

    J >= 1152 (C + D)^2 log(1/delta_hat) / lambda^2. lambda, the constant of f(w) - f(w*) >= lambda |w - w*|, is at most
    the smallest such ratio at sampled w; f(w) = d'w + mean(r - C w)+ is the sample's dual.
    """
    program, rng = paper_program(kind, points, ARRIVALS, seed), np.random.default_rng(seed)
    data, profiles = PaperInput(kind, points)(rng, SUPPORT)
    rewards, use = data["value"].to_numpy(), points * program.project(data, profiles).use[PROJECTED][:, 0]
    budget = points * program.evaluator.resources[PROJECTED].total / ARRIVALS
    count, size = use.shape
    best = linprog(
        np.concatenate([budget, np.full(count, 1 / count)]), A_ub=-np.hstack([use, np.eye(count)]), b_ub=-rewards
    )
    assert best.x is not None
    dual = best.x[:size]
    away = dual * rng.uniform(0, 2, (4000, size)) + rng.exponential(dual.max() + 1e-9, (4000, size)) * rng.choice(
        [0.0, 1e-3, 1e-2, 0.1], (4000, 1)
    )
    values = away @ budget + np.maximum(rewards - away @ use.T, 0).mean(axis=1)
    distances = np.linalg.norm(away - dual, axis=1)
    sharpness = float(((values - best.fun)[distances > 0] / distances[distances > 0]).min())
    scale = float(np.abs(rewards).max() / budget.min())
    levels = max(1.0, np.ceil(np.log(max(scale * ARRIVALS, np.e))))
    widest = float((np.abs(use).max() + budget.max()) ** 2)
    return sharpness, 1152 * widest * float(np.log(levels / 0.1)) / sharpness**2


def paper_policies(points: int) -> dict[str, tuple[Policy, tuple[str, ...]]]:
    """The algorithms by the names of the paper's figures, each with the guards that it runs under."""
    return {
        "Ours-MD, printed": (PrintedMirrorDescent(points), ("none", "projected")),
        "Ours-log, printed": (PrintedAccelerate(points), ("projected",)),
        "Ours-log, printed, J = 10": (PrintedTwoStage(points), ("projected",)),
        "Simple-GD, printed": (SimpleGD(scale="paper"), ("none",)),
        "Ours-MD": (MirrorDescent(), ("none", "projected", "pointwise")),
        "Ours-log": (AccelerateThenRefine(), ("projected", "pointwise")),
        "Simple-GD": (SimpleGD(), ("none", "pointwise")),
        "Resolve": (Resolve(), ("projected", "pointwise")),
        "Accept everything": (Greedy(), ("none",)),
    }


def reproduce(
    folder: Path, chosen: Sequence[Experiment], trials: int, seed: int = 0, workers: int = 2, progress: bool = True
) -> dict[str, Study]:
    """Run experiments; a folder that holds some of their trials goes on with the rest."""
    studies = {}
    with processes(workers) as pool, bar(progress, iterable=chosen, desc="experiments") as shown:
        for experiment in shown:
            shown.set_postfix_str(experiment.title, refresh=True)
            studies[experiment.name] = run_experiment(experiment, trials, seed, pool, folder, progress)
    return studies


def run_experiment(
    experiment: Experiment, trials: int, seed: int, executor: Any, folder: Path, progress: bool = True
) -> Study:
    """Run one figure's trials, going on with what the folder holds of it."""
    pieces = []
    for points, horizons in experiment.parts:
        policies = paper_policies(points)
        program = paper_program(experiment.kind, points, max(horizons), seed)
        pieces.append(compare(
            program, {name: policy for name, (policy, _) in policies.items()},
            sampler=PaperInput(experiment.kind, points), trials=trials,
            order="permutation" if experiment.kind == "permutation" else "iid", horizons=horizons,
            guards={name: guards for name, (_, guards) in policies.items()}, benchmarks=BENCHMARKS, seed=seed,
            executor=executor, progress=progress, path=folder / f"{experiment.name}-{points}",
        ))  # fmt: skip
    return pieces[0] if len(pieces) == 1 else _together(pieces)


def _together(studies: Sequence[Study]) -> Study:
    """Studies of different numbers of rows as one."""
    tables = {}
    for name in FRAMES:
        frames = [getattr(study, name).assign(grid=number) for number, study in enumerate(studies)]
        tables[name] = pd.concat(frames, ignore_index=True)
    grids = [grid for study in studies for grid in study.settings["grids"]]
    return Study({**studies[0].settings, "grids": grids}, tables)
