"""compile_online: the same model, for arrivals that come one by one."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from osilp_pyomo.arrivals import whole_number
from osilp_pyomo.curvature import check_curvature
from osilp_pyomo.errors import ModelError, OptionError
from osilp_pyomo.laying import lay_out
from osilp_pyomo.program import OnlineProgram
from osilp_pyomo.pyomo_stage import PyomoStage
from osilp_pyomo.stage_choice import SOLVERS, choose_solver
from osilp_pyomo.stages import read_stages


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
    stages : Set or callable
        The Set of arrivals, such as ``m.T``, or a function that maps an index to its stage.
    horizon : int, optional
        How many arrivals will come; as many as the model has stages if not given. The right-hand sides of rows over
        all stages are totals over the horizon.
    grid : Grid, array of points, or {component: grid}
        The points on which the index is seen.
    basis : Basis, list of functions, or {component: basis}
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
    if getattr(model, "ctype", None) is not pyo.Block or not hasattr(model, "component_data_objects"):
        raise ModelError(f"compile_online: expected a Pyomo model or one of its blocks (got {type(model).__name__}).")
    if not model.is_constructed():
        raise ModelError(
            "compile_online: the model is abstract; call model.create_instance() and compile the instance."
        )
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
    evaluator = lay_out(template, grid, basis)
    curvature = check_curvature(evaluator, own)
    named = stage_solver is not None and stage_solver not in SOLVERS
    solver = PyomoStage(evaluator, str(stage_solver)) if named else choose_solver(evaluator, stage_solver)
    return OnlineProgram(template, own, horizon, evaluator, solver, curvature)
