"""solve: one model, four methods, results loaded back into it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from osilp_pyomo.assembly import result_of
from osilp_pyomo.errors import OptionError
from osilp_pyomo.exchange import ExchangeOptions
from osilp_pyomo.identity import ModelIdentity
from osilp_pyomo.methods import solve_by
from osilp_pyomo.progress import IterationReporter
from osilp_pyomo.results import Result
from osilp_pyomo.tracing import active_objective, refuse_no_model, trace_model
from osilp_pyomo.wide_model import AUTO, DUAL, check_solver

METHODS = ("exchange", "counterpart", "discretized", "projected")


def solve(
    model: Any,
    method: str = "exchange",
    *,
    grid: Any = None,
    basis: Any = None,
    tolerance: float = 1e-9,
    iteration_limit: int = 500,
    time_limit: float | None = None,
    fix_integers: bool = False,
    solver: str = AUTO,
    load: bool = True,
    tee: bool = False,
    progress: bool = True,
) -> Result:
    """Solve a Pyomo model with semi-infinite constraints offline.

    Parameters
    ----------
    model : ConcreteModel
        Read, and changed only in the values of its variables and of the Suffixes dual and rc.
    method : "exchange", "counterpart", "discretized" or "projected"
        Exact over the continuum with a bracket; as the finite LP that duality makes of rows affine in an uncertain
        vector of a set bounded by planes; on the points of a grid; or on test functions. The last two give bounds.
    grid : Grid, array of points, or {component: grid}
        For "discretized" and "projected"; a few thousand points if not given.
    basis : Basis, list of functions, or {component: basis}
        For "projected"; hat functions if not given.
    tolerance : float
        Violation that counts as none, relative to the size of the row's terms.
    iteration_limit, time_limit : int, float (seconds)
        When to stop early; the status then says so.
    fix_integers : bool
        For models with integer variables: give prices with the integers held at their values.
    solver : "auto", "dual" or "highs"
        How the LPs are solved: by what is expected to be faster, by the dual in as many dimensions as there are rows
        (for thousands of bounded, continuous columns), or by HiGHS with all columns. They agree to 1e-8.
    load : bool
        Put the values into the model.
    tee : bool
        Print the iterations.
    progress : bool
        Show a progress bar on a terminal when it takes more than two seconds.

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
    started = time.monotonic()
    if method not in METHODS:
        raise OptionError(f"solve: method must be one of {', '.join(METHODS)} (got {method!r}).")
    if not isinstance(tolerance, Real) or not 0 < tolerance < 1:
        raise OptionError(f"solve: tolerance must be a number between 0 and 1 (got {tolerance!r}).")
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise OptionError(f"solve: time_limit must be a number of seconds > 0 (got {time_limit!r}).")
    if not isinstance(iteration_limit, int) or iteration_limit < 1:
        raise OptionError(f"solve: iteration_limit must be a whole number >= 1 (got {iteration_limit!r}).")
    check_solver(solver, "solve")
    if solver == DUAL and method == "counterpart":
        raise OptionError("solve: method='counterpart' is one LP with as many rows as columns; use solver='highs'.")
    if basis is not None and method != "projected":
        raise OptionError(f"solve: basis= is for method='projected' only (got it with method={method!r}).")
    if grid is not None and method in ("exchange", "counterpart"):
        raise OptionError(f"solve: method={method!r} works on the continuum and takes no grid=; use 'discretized'.")
    refuse_no_model(model, "solve")
    traced = trace_model(model)
    with IterationReporter(method, tee, progress) as report:
        options = ExchangeOptions(tolerance, iteration_limit, time_limit, report, solver=solver)
        laid: Sequence[Any] = ()
        if method == "discretized":
            laid = traced.lay_grids(grid)
        elif method == "projected":
            laid = traced.lay_bases(grid, basis)
        solved = solve_by(method, traced.problem, laid, options, fix_integers)
    result = result_of(traced.problem, method, solved, time.monotonic() - started)
    result = replace(result, solved_for=ModelIdentity.of(traced.problem.core.cost))
    if result.answer is not None and active_objective(model) is None:
        result = replace(result, remark="the model has no active objective: any feasible values are an answer")
    if load and result.answer is not None:
        result.load_into(model, traced.variables, traced.constraints)
    if tee:
        print(result)
    return result
