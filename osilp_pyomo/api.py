"""The two verbs: solve a model offline, compile it for arrivals that come one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from osilp_pyomo._options import AUTO, DUAL, SOLVE, check_options, documented_by, whole_number
from osilp_pyomo._reporting import IterationReporter, say_to
from osilp_pyomo._threads import one_thread
from osilp_pyomo.errors import ModelError, OptionError
from osilp_pyomo.index.quadrature.measures import recorded_integrals
from osilp_pyomo.lp.highs import asked_of_highs
from osilp_pyomo.model.added_rows import used_by
from osilp_pyomo.model.stages.by_pyomo import PyomoStage
from osilp_pyomo.model.stages.read import read_stages
from osilp_pyomo.model.trace import TracedModel, active_objective, fixed_variables, refuse_no_model, trace_model
from osilp_pyomo.model.units import units_told
from osilp_pyomo.offline.adjustable.column_generation import by_columns
from osilp_pyomo.offline.assemble import integrals_told, result_of
from osilp_pyomo.offline.exchange import ExchangeOptions
from osilp_pyomo.offline.functions.matching import check_matched
from osilp_pyomo.offline.late import changed
from osilp_pyomo.offline.methods import solve_by
from osilp_pyomo.offline.results import Result
from osilp_pyomo.offline.solved import Solved
from osilp_pyomo.offline.warmth import Warmth
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.stages.choose import ASKED_AS, choose_solver
from osilp_pyomo.online.stages.concavity import check_curvature
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.identity import ModelIdentity


@documented_by(SOLVE)
def solve(
    model: Any,
    method: str = "auto",
    *,
    grid: Any = None,
    basis: Any = None,
    tolerance: float = 1e-9,
    iteration_limit: int = 500,
    time_limit: float | None = None,
    fix_integers: bool = False,
    solver: str = AUTO,
    solver_options: Mapping[str, Any] | None = None,
    proof: bool | str = AUTO,
    load: bool = True,
    tee: bool = False,
    progress: bool = True,
) -> Result:
    """Solve a Pyomo model with semi-infinite constraints offline.

    Parameters
    ----------
    model : ConcreteModel
        Read, and changed only in the values of its variables and of the Suffixes dual and rc.
    {options}
    solver_options : dict, optional
        Options of HiGHS by its own names, such as ``{"threads": 2}``; those that claims lean on are refused.

    Returns
    -------
    Result

    Examples
    --------
    The best parabola above exp on [0, 1] in the sense of area:

    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var([0, 1, 2])
    >>> m.area = pyo.Objective(expr=m.x[0] + m.x[1] / 2 + m.x[2] / 3)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x[0] + m.x[1] * u + m.x[2] * u**2 >= pyo.exp(u)
    >>> result = solve(m)
    >>> result.status, round(result.objective, 6)
    ('optimal', 1.72628)
    """
    return solve_as_read(
        model, lambda _: trace_model(model, convex=True), None, method=method, grid=grid, basis=basis,
        tolerance=tolerance, iteration_limit=iteration_limit, time_limit=time_limit, fix_integers=fix_integers,
        solver=solver, solver_options=solver_options, proof=proof, load=load, tee=tee, progress=progress,
    )  # fmt: skip


def solve_as_read(
    model: Any, read: Callable[[Sequence[Any]], TracedModel], warmth: Warmth | None, **options: Any
) -> Result:
    """Solve a model that is read in some way, from what was known before; with all options of :func:`solve`.

    ``read`` is given the list in which integrals are recorded that are computed meanwhile.
    """
    check_options(SOLVE, options, "solve")
    asked = SimpleNamespace(**options)
    method, load, tee = asked.method, asked.load, asked.tee
    started = time.monotonic()
    refuse_options_of_other_methods(options)
    refuse_no_model(model, "solve")
    with (
        asked_of_highs(asked.solver_options, "solve"),
        IterationReporter(method, tee, asked.progress) as report,
        recorded_integrals() as accuracies,
    ):
        traced = read(accuracies)
        if method == "column_generation":
            return _solve_by_columns(model, traced, asked.time_limit, load, tee, started)
        limits = (asked.tolerance, asked.iteration_limit, asked.time_limit)
        exchanging = ExchangeOptions(*limits, report, solver=asked.solver, proof=asked.proof, warmth=warmth)
        placed: Sequence[Any] = ()
        if method == "discretized":
            placed = traced.place_grids(asked.grid)
        elif method == "projected":
            placed = traced.place_bases(asked.grid, asked.basis)
        with one_thread():
            solved = solve_by(method, traced.problem, placed, exchanging, asked.fix_integers)
    result = tell(model, traced, solved, started, asked.time_limit, asked.proof, method, accuracies)
    if load and result.answer is not None:
        result.load_into(model, traced.variables, traced.constraints)
    say_to(tee, result)
    return result


def refuse_options_of_other_methods(options: Mapping[str, Any]) -> None:
    """Refuse options of :func:`solve` that its method has no use for."""
    method = options["method"]
    if options["solver"] == DUAL and method == "counterpart":
        raise OptionError("solve: method='counterpart' is one LP with as many rows as columns; use solver='highs'.")
    if options["basis"] is not None and method != "projected":
        raise OptionError(f"solve: basis= is for method='projected' only (got it with method={method!r}).")
    if options["grid"] is not None and method in ("auto", "exchange", "counterpart", "column_generation"):
        raise OptionError(f"solve: method={method!r} works on the continuum and takes no grid=; use 'discretized'.")


def tell(
    model: Any,
    traced: TracedModel,
    solved: Solved,
    started: float,
    time_limit: float | None,
    proof: bool | str,
    method: str,
    accuracies: Sequence[Any],
) -> Result:
    """What was found for a model, in its names."""
    checked = None
    if traced.matched and solved.point is not None and solved.point.x is not None:
        until = math.inf if time_limit is None else started + time_limit
        checked = check_matched(traced.matched, solved.point.x, proof, until)
    seconds = time.monotonic() - started
    result = result_of(traced.problem, solved.method or method, solved, seconds, traced.matched, checked)
    solution = None if solved.point is None else solved.point.x
    result = changed(
        result,
        solved_for=ModelIdentity.of(traced.problem.core.cost),
        recourse=traced.recourse,
        units=units_told(model, (*traced.families, *traced.equations)),
        solution=solution,
        fixed=fixed_variables(model),
        integrals=integrals_told(accuracies),
        used_by=used_by(model, traced.families),
        added=frozenset(model.private_data("osilp_pyomo").get("added", ())),
    )
    reactions = model.private_data("osilp_pyomo").get("reactions")
    if reactions is not None and result.answer is not None:
        values = result.values
        result = changed(result, nominal=reactions.values(dict(zip(values.index, values.tolist(), strict=True))))
    if result.answer is not None and active_objective(model) is None:
        result = changed(result, remark="the model has no active objective: any feasible values are an answer")
    return result


def _solve_by_columns(
    model: Any, traced: TracedModel, time_limit: float | None, load: bool, tee: bool, started: float
) -> Result:
    """Solve for the best of all policies; only what is decided at once has values."""
    with one_thread():
        at_once, solved, policy = by_columns(traced.problem, traced.matched, traced.functions, time_limit)
    result = result_of(at_once, "column_generation", solved, time.monotonic() - started)
    result = changed(result, policy=policy, solved_for=ModelIdentity.of(traced.problem.core.cost))
    if load and result.answer is not None:
        result.load(model)
        for each in traced.variables:
            # A policy without a formula has no coefficients.
            if each.name not in result.values.index:
                each.set_value(None)
    say_to(tee, result)
    return result


def compile_online(
    model: Any,
    stages: Any,
    horizon: int | None = None,
    grid: Any = None,
    basis: Any = None,
    *,
    stage_solver: str | None = None,
) -> OnlineProgram:
    """Compile a model for arrivals that come one by one.

    Parameters
    ----------
    model : ConcreteModel
        Read, never changed. Its mutable Params and Profiles that are indexed by the stages are the data of an
        arrival; its variables that are, the decisions.
    stages : Set, str or callable
        The Set of arrivals, such as ``m.T``, its name, or a function that maps an index to its stage.
    horizon : int, optional
        How many arrivals will come; as many as the model has stages if not given. The right-hand sides of rows over
        all stages are totals over the horizon.
    grid : Grid, array of points, number of points along each axis, or {component: grid}
        The points on which the index is seen.
    basis : Basis, list of functions, number of functions along each axis, or {component: basis}
        The test functions whose duals are learned.
    stage_solver : str, optional
        How to solve the problem of a stage: "closed form", "highs", "newton", "slsqp", or the name of a Pyomo solver;
        chosen by what the expressions are if not given.

    Returns
    -------
    OnlineProgram

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.T = pyo.RangeSet(3)
    >>> m.value = pyo.Param(m.T, mutable=True, initialize={1: 0.9, 2: 0.5, 3: 0.7})
    >>> m.place = pyo.Param(m.T, mutable=True, initialize={1: 0.2, 2: 0.3, 3: 0.8})
    >>> m.x = pyo.Var(m.T, bounds=(0, 1))
    >>> m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def usage(m, u):
    ...     return sum(pyo.exp(-((u - m.place[t]) / 0.2) ** 2) * m.x[t] for t in m.T) <= 1.5
    >>> program = compile_online(m, stages=m.T, basis=osilp.RBF(4))
    >>> program.replay(osilp.Greedy()).decisions.round(3).tolist()
    [1.0, 0.589, 0.0]
    """
    refuse_no_model(model, "compile_online", "compile")
    if horizon is not None:
        whole_number(horizon, "compile_online: horizon")
    read = read_stages(model, stages, horizon)
    template, own = read.template, read.arrivals
    horizon = len(own) if horizon is None else int(horizon)
    if horizon < 2:
        raise OptionError(f"compile_online: horizon must be at least 2 (got {horizon}).")
    for family in template.families:
        if not family.domain.bounded:
            raise ModelError(
                f"SemiInfiniteConstraint '{family.name}': its index {family.domain} is unbounded, which works offline "
                "only; give the index bounds."
            )
    evaluator = Evaluator.of(template, grid, basis)
    curvature = check_curvature(evaluator, own)
    named = stage_solver is not None and stage_solver not in ASKED_AS
    solver = PyomoStage(evaluator, str(stage_solver)) if named else choose_solver(evaluator, stage_solver)
    return OnlineProgram(template, own, horizon, evaluator, solver, curvature)
