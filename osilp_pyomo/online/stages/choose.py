"""Which solver a stage gets: by what its expressions are, or as asked for."""

from __future__ import annotations

from osilp_pyomo.errors import ModelError, OptionError
from osilp_pyomo.online.stages.convex import QuadraticStage, SmoothStage
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import BoxStage, ExactlyOneStage, LinearStage, OptionsStage, StageSolver
from osilp_pyomo.online.stages.newton import NewtonStage

#: Solvers of a stage, the best first; the first that can solves it.
STAGE_SOLVERS: tuple[type[StageSolver], ...] = (
    OptionsStage,
    ExactlyOneStage,
    BoxStage,
    LinearStage,
    NewtonStage,
    QuadraticStage,
    SmoothStage,
)
#: What a user can ask for.
ASKED_AS = tuple(dict.fromkeys(each.asked_as for each in STAGE_SOLVERS))


def choose_solver(evaluator: Evaluator, asked: str | None = None) -> StageSolver:
    """The simplest solver that solves the stages exactly, or the one asked for if it can."""
    template = evaluator.template
    if template.integer.any() and not template.linear:
        raise ModelError(
            f"compile_online: {template.decisions[int(template.integer.argmax())]} is integer and the stage is not "
            "linear; integer decisions need linear stages."
        )
    able = [each for each in STAGE_SOLVERS if each.solves(template)]
    for solver in able:
        if asked in (None, solver.asked_as):
            return solver(evaluator)
    raise OptionError(
        f"stage_solver={asked!r} cannot solve these stages; {', '.join(repr(each.asked_as) for each in able)} can, and "
        "a Pyomo solver by its name."
    )
