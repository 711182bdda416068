"""The paper's algorithms as they are printed, to be compared with what they are meant to be.

Zong and Jiang, arXiv:2603.16200. The printed Phi has no quadrature weights: its columns sum to O(m), so that its rows
and budgets are m times those of this package, Phi'a = m C and Phi'd = m D. With w = m w_printed a printed step gamma
(Phi'a x - Phi'd) of the dual is a step gamma m^2 (C x - D), which is how these policies take it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.policies import FirstOrder, GradientDescent, Policy, Seen, Setting, State


@dataclass(frozen=True)
class PrintedMirrorDescent(FirstOrder):
    """Algorithm 2 with the Euclidean potential, as printed: w <- max(w + (Phi'a x - Phi'd) / sqrt(T), 0).

    ``points`` is m, the number of rows.
    """

    points: int

    def settings(self, setting: Setting) -> FloatArray:
        return GradientDescent(float(self.points) ** 2, "paper").settings(setting)


@dataclass(frozen=True)
class PrintedAccelerate(FirstOrder):
    """Algorithm 5 as printed: it never leaves its first stage, so that its dual takes steps of 1 / log T throughout.

    The first stage has L J arrivals with J >= 1152 (C + D)^2 log(1/delta_hat) / lambda^2, which was larger than any T
    of the paper on every instance drawn (``reproduction.least_stage``). What decides in that stage is w_t, and not the
    learner.
    """

    points: int

    def settings(self, setting: Setting) -> FloatArray:
        horizon = max(setting.horizon, 2)
        step = float(self.points) ** 2 * np.sqrt(horizon) / np.log(horizon)
        return GradientDescent(step, "paper").settings(setting)


@dataclass(frozen=True)
class PrintedTwoStage(Policy):
    """Algorithm 5 as printed but for J, which is small enough here for the second stage to be reached.

    The learner steps with the decision of w_t, from eta_1 = eps_0 / (3 r^2), in a ball of radius V_1 = eps_0 around the
    last level's average; both are halved from level to level. A level's average is over the points before its steps.
    The refine stage begins at the last average and takes steps of 1/T. r is the largest reward seen so far.

    Not as printed: the refine stage's guard goes on with the budget that is left (printed, it gets the whole budget
    again, which is the same as no guard from then on), and a guard takes the part of an arrival that still fits
    (printed: nothing).
    """

    points: int
    per_level: int = 10

    def start(self, setting: Setting) -> State:
        vectors = {name: np.zeros(setting.size) for name in ("dual", "learner", "centre", "sum")}
        return {**vectors, "largest": np.zeros(1), "refining": np.zeros(1)}

    def price(self, state: State, setting: Setting) -> FloatArray:
        return state["dual"]

    def meet(self, state: State, setting: Setting, rewards: FloatArray, usage: FloatArray, reach: FloatArray) -> State:
        return {**state, "largest": np.maximum(state["largest"], np.abs(rewards).max())}

    def learn(self, state: State, setting: Setting, seen: Seen) -> State:
        scale, reward = float(self.points), max(float(state["largest"][0]), 1e-300)
        gradient = scale * (seen.used - setting.budget)
        # eps_0 = r / min Phi'd, the size that a dual can have.
        size = reward / (scale * max(float(setting.budget.min()), 1e-300))
        levels = int(np.ceil(np.log(max(size * setting.horizon, np.e))))
        level, place = divmod(seen.t, self.per_level)
        if state["refining"][0]:
            return {**state, "dual": self._moved(state["dual"], gradient / setting.horizon, setting)}
        dual = self._moved(state["dual"], gradient / np.log(max(setting.horizon, 2)), setting)
        step, radius = size / (3 * reward**2) / 2**level, size / 2**level
        total = (state["sum"] if place else 0.0) + state["learner"]
        learner = state["learner"] + self.points * step * gradient
        learner = _into_ball(learner, state["centre"], scale * radius, setting.floor)
        if place + 1 < self.per_level:
            return {**state, "dual": dual, "learner": learner, "sum": total}
        average = total / self.per_level
        if level + 1 >= levels:
            return {**state, "dual": average, "refining": np.ones(1)}
        return {**state, "dual": dual, "learner": average, "centre": average, "sum": np.zeros(setting.size)}

    def _moved(self, dual: FloatArray, step: FloatArray, setting: Setting) -> FloatArray:
        return np.maximum(dual + self.points * step, setting.floor)


def _into_ball(dual: FloatArray, centre: FloatArray, radius: float, floor: FloatArray) -> FloatArray:
    """The point of orthant and ball together that is nearest to a dual y: max(floor, (y + mu c) / (1 + mu))."""

    def at(share: float) -> FloatArray:
        return np.maximum(dual + share * (centre - dual), floor)

    if np.linalg.norm(at(0.0) - centre) <= radius:
        return at(0.0)
    far, near = 0.0, 1.0
    for _ in range(60):
        middle = (far + near) / 2
        far, near = (middle, near) if np.linalg.norm(at(middle) - centre) > radius else (far, middle)
    return at(near)
