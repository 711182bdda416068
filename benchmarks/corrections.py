"""What each correction to the paper is worth, one at a time, on its normal input with m = 2,000 rows and T = 5,000.

Run ``python benchmarks/corrections.py``; 8 seeds in two processes take about a minute, ``--quick`` half of one.

Regret is against R*_Phi, the optimum on test functions, which is computed here by scipy, and with the projected guard.
Line numbers are those of the source of arXiv:2603.16200.
"""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
from figures import Figure, shown
from regret_inputs import POINTS, instance, optimum, program_for

import osilp_pyomo as osilp
from osilp_pyomo.paper.algorithms import PrintedMirrorDescent
from osilp_pyomo.paper.experiments import KINDS, least_stage

ARRIVALS = 5000
STEPS = (1e-4, 1e-2, 0.1, 10.0)


@dataclass(frozen=True)
class TwoStage(osilp.Policy):
    """Algorithm 5 in plain Python, with the decision that its learner steps with and its averages to choose from.

    ``own``: the learner steps with the decision at its own dual, as the proof needs; else with that of w_t, as printed.
    ``after``: averages are over the points after the steps; else over those before them, as printed.
    The rest is as in :class:`osilp_pyomo.AccelerateThenRefine`.
    """

    own: bool = True
    after: bool = True
    refine_step: float = 50.0
    per_level: int = 10

    def start(self, setting):
        vectors = {name: np.zeros(setting.size) for name in ("dual", "learner", "centre", "sum")}
        return {**vectors, "rewards": 0.0, "squares": 0.0}

    def price(self, state, setting):
        return state["dual"]

    def meet(self, state, setting, rewards, usage, reach):
        square = np.sum((usage[0] * reach[0] - setting.budget) ** 2)
        return {
            **state,
            "rewards": state["rewards"] + abs(rewards[0]) * reach[0],
            "squares": state["squares"] + square,
        }

    def learn(self, state, setting, seen):
        count = seen.t + 1
        width = state["rewards"] / count / np.linalg.norm(setting.budget)
        spread = np.sqrt(state["squares"] / count)
        level, place = divmod(seen.t, self.per_level)
        levels = np.ceil(np.log(setting.horizon))
        if level >= levels:
            step = self.refine_step * width / (spread * setting.horizon)
            return {**state, "dual": np.maximum(state["dual"] + step * (seen.used - setting.budget), 0.0)}
        step = width / (spread * np.log(setting.horizon))
        dual = np.maximum(state["dual"] + step * (seen.used - setting.budget), 0.0)
        used = seen.respond(state["learner"]) if self.own else seen.used
        learner = state["learner"] + width / (3 * spread * 2**level) * (used - setting.budget)
        learner = nearest(learner, state["centre"], width / 2**level)
        total = (state["sum"] if place else 0.0) + (learner if self.after else state["learner"])
        if place + 1 < self.per_level:
            return {**state, "dual": dual, "learner": learner, "sum": total}
        average = total / self.per_level
        dual = average if level + 1 >= levels else dual
        return {**state, "dual": dual, "learner": average, "centre": average}


def nearest(dual, centre, radius):
    """The point of the orthant and the ball that is nearest to a dual: max(0, y + s (c - y)), s by bisection."""
    low, high = 0.0, 1.0
    if np.linalg.norm(np.maximum(dual, 0.0) - centre) <= radius:
        return np.maximum(dual, 0.0)
    for _ in range(60):
        middle = (low + high) / 2
        outside = np.linalg.norm(np.maximum(dual + middle * (centre - dual), 0.0) - centre) > radius
        low, high = (middle, high) if outside else (low, middle)
    return np.maximum(dual + high * (centre - dual), 0.0)


REGRETS = {
    "Algorithm 2, Phi without weights as printed": PrintedMirrorDescent(POINTS),
    "Algorithm 2, Phi with quadrature weights, step 1/sqrt(T)": osilp.GradientDescent(scale="paper"),
    "Algorithm 2, the same with a scale-free step": osilp.MirrorDescent(),
    "Algorithm 5": osilp.AccelerateThenRefine(),
    "Algorithm 5, by the plain Python of this benchmark": TwoStage(),
    "Algorithm 5, learner as printed (500, 717)": TwoStage(own=False),
    "Algorithm 5, averages as printed": TwoStage(after=False),
    "Algorithm 5, refine step as printed, 1/T": TwoStage(refine_step=1.0),
    "Algorithm 5, refine step and learner as printed": TwoStage(own=False, refine_step=1.0),
    "Algorithm 5, refine step and averages as printed": TwoStage(after=False, refine_step=1.0),
}


def one_seed(seed):
    """Regrets by policy; share of decisions that other steps change; overrun of test functions without a guard."""
    rewards, columns, which, limit = instance("normal", ARRIVALS, seed)
    program = program_for(ARRIVALS, limit)
    arrivals = program.project(pd.DataFrame({"value": rewards[which]}), {"column": columns[which]})
    seen, counts = np.unique(which, return_counts=True)
    phi = program.evaluator.phi(0)
    budget = ARRIVALS * (limit @ phi)
    best = optimum(rewards[seen], columns[seen] @ phi, counts.astype(float), budget)

    def decided(policy, guard="projected"):
        return program.replay(policy, arrivals, guard)

    row = {name: 1 - decided(policy).objective / best for name, policy in REGRETS.items()}
    first = decided(PrintedMirrorDescent(POINTS)).decisions.to_numpy()
    for factor in STEPS:
        other = program.replay(_ScaledPrinted(POINTS, factor), arrivals, "projected").decisions.to_numpy()
        row[f"changed {factor:g}"] = np.mean(np.abs(other - first) > 1e-9)
    open_ended = decided(osilp.AccelerateThenRefine(), "none").decisions.to_numpy()
    used = (open_ended @ (columns[which] @ phi)) / budget
    row["overrun"] = used.max() - 1
    return row


@dataclass(frozen=True)
class _ScaledPrinted(PrintedMirrorDescent):
    """The printed Algorithm 2 with a multiple of its step."""

    factor: float = 1.0

    def settings(self, setting):
        return osilp.GradientDescent(self.factor * float(self.points) ** 2, "paper").settings(setting)


def figures(quick=False):
    seeds = range(2 if quick else 8)
    # Threads of HiGHS and BLAS do not survive a fork.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        runs = pd.DataFrame(list(pool.map(one_seed, seeds)))
        stages = list(pool.map(least_stage, np.repeat(KINDS, len(seeds)), [POINTS] * 4 * len(seeds), [*seeds] * 4))
    lines = []
    for name in REGRETS:
        half = 1.96 * runs[name].std(ddof=1) / np.sqrt(len(runs))
        lines.append(Figure(f"{name}: regret +- {100 * half:.2g}", 100 * runs[name].mean(), "%", "R*_Phi by scipy"))
    lines += [
        Figure(f"printed Algorithm 2 with {factor:g} times its step: decisions that change",
               100 * runs[f"changed {factor:g}"].mean(), "%", "its own")
        for factor in STEPS
    ]  # fmt: skip
    lines += [
        Figure(
            f"budget as printed (544, 724), so no guard: {what} overrun", 100 * value, "%", "budgets of test functions"
        )
        for what, value in (("least", runs["overrun"].min()), ("largest", runs["overrun"].max()))
    ]
    least = [needed for _, needed in stages]
    lines += [
        Figure(f"J as printed (482, 700), {what} over inputs and seeds", value, "arrivals a level")
        for what, value in (("least", min(least)), ("largest", max(least)))
    ]
    return lines


if __name__ == "__main__":
    shown("Corrections", figures("--quick" in sys.argv))
