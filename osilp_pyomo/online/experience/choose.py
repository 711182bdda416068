"""Which policy decides where none is named, and why: the best by ``benchmarks/regret.py`` for stages of a kind."""

from __future__ import annotations

from osilp_pyomo._arrays import BoolArray
from osilp_pyomo.online.experience.policy import ExperienceReplay
from osilp_pyomo.online.policies import Policy
from osilp_pyomo.online.resolve import Resolve
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import BoxStage, StageSolver

# Below so many arrivals there is little to practise on, and solving again is soon done.
_FEW = 100


def default_policy(
    evaluator: Evaluator, solver: StageSolver, horizon: int, needing: BoolArray, projected: bool = False
) -> tuple[Policy, str]:
    """A policy for stages of a program, and why it is that one, in half a sentence.

    ``needing`` (R,) says which rows need something; of arrivals that are ``projected`` nothing is known at points.
    """
    linear = evaluator.template.linear
    if projected:
        return Resolve(), "of projected arrivals nothing is known at single points"
    if not linear:
        return Resolve(), "stages are not linear"
    if not isinstance(solver, BoxStage):
        return Resolve(exact=True), "a stage is more than bounds or one of several options"
    if needing.any() or any(group.equality for group in evaluator.groups):
        return Resolve(exact=True), "a row needs something, or is an equality"
    if horizon < _FEW:
        return Resolve(exact=True), f"fewer than {_FEW} arrivals are expected"
    # As good as solving again, or better, on most instances, and a hundred times as fast.
    return ExperienceReplay(), "least regret for microseconds an arrival, where stages are linear"


def default_text(found: tuple[Policy, str]) -> str:
    """The choice in a line."""
    policy, why = found
    told = "Resolve(exact=True)" if policy == Resolve(exact=True) else f"{type(policy).__name__}()"
    return f"{told} unless another is named ({why})"
