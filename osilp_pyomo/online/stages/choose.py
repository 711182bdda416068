"""Which solver a stage gets: by what its expressions are, or as asked for."""

from __future__ import annotations

from osilp_pyomo.errors import ModelError, OptionError
from osilp_pyomo.online.stages.convex import QuadraticStage, SmoothStage, is_quadratic
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import BoxStage, LinearStage, OptionsStage, StageSolver
from osilp_pyomo.online.stages.newton import NewtonStage
from osilp_pyomo.online.stages.template import StageTemplate

SOLVERS = ("closed form", "highs", "newton", "slsqp")


def choose_solver(evaluator: Evaluator, asked: str | None = None) -> StageSolver:
    """The simplest solver that solves the stages exactly, or the one asked for if it can."""
    template = evaluator.template
    if template.integer.any() and not template.linear:
        raise ModelError(
            f"compile_online: {template.decisions[int(template.integer.argmax())]} is integer and the stage is not "
            "linear; integer decisions need linear stages."
        )
    able = _able(template)
    if asked is None:
        return able[0][1](evaluator)
    for name, solver in able:
        if name == asked:
            return solver(evaluator)
    raise OptionError(
        f"stage_solver={asked!r} cannot solve these stages; {', '.join(repr(name) for name, _ in able)} can, and a "
        "Pyomo solver by its name."
    )


def _able(template: StageTemplate) -> list[tuple[str, type[StageSolver]]]:
    """Solvers that can solve the stages, the best first."""
    if template.linear:
        if template.options:
            return [("closed form", OptionsStage), ("highs", LinearStage)]
        if template.own_rows:
            return [("highs", LinearStage)]
        return [("closed form", BoxStage), ("highs", LinearStage)]
    able: list[tuple[str, type[StageSolver]]] = []
    if _separable(template):
        able.append(("newton", NewtonStage))
    if is_quadratic(template):
        able.append(("highs", QuadraticStage))
    return [*able, ("slsqp", SmoothStage)]


def _separable(template: StageTemplate) -> bool:
    """Whether the stage falls apart into problems of one variable over a box."""
    if template.own_rows or any(len(function.axes) > 1 for function in template.functions):
        return False
    return len(template.decisions) == 1 or not any(family.mixed for family in template.families)
