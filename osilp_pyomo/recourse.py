"""How good is a decision rule? What no policy whatever can beat."""

from __future__ import annotations

from typing import Any

from osilp_pyomo._options import TIME_LIMIT, whole_number
from osilp_pyomo.errors import OptionError
from osilp_pyomo.model.trace import TracedModel, refuse_no_model, trace_model
from osilp_pyomo.offline.adjustable.bound import RecourseBound, bound_policies
from osilp_pyomo.offline.adjustable.problem import AdjustableProblem
from osilp_pyomo.offline.results import Result
from osilp_pyomo.online.stages.identity import ModelIdentity

_WHAT = "recourse_bound"


def recourse_bound(
    model: Any, result: Result, *, scenarios: int = 200, time_limit: float | None = None
) -> RecourseBound:
    """Bound what any policy can reach, affine or not, and compare the rules of a result with it.

    Parameters
    ----------
    model : ConcreteModel
        With decisions that react, :class:`FunctionVar` over an uncertainty set. Read only.
    result : Result
        What :func:`solve` gave for it.
    scenarios : int
        Vectors of the set that have recourse of their own, at most.
    time_limit : float, optional
        Seconds after which no further program is begun.

    Returns
    -------
    RecourseBound
        ``value`` is what no policy can beat, ``gap`` how much the rules of the result lose at most, ``ways`` what each
        way gave, ``scenarios`` the vectors of the first.

    Notes
    -----
    Two ways are gone, and the tighter bound is given. *Scenarios*: the vectors at which rows have a price, those at
    which they are tightest, and the vertices of the set where they are few; at each of them every rule has a value of
    its own, one value where it sees the same (Hadjiyiannis, Goulart and Kuhn, 2011). *Dual rules*: the dual problem
    restricted to affine rules, as a program of moments (Kuhn, Wiesemann and Georghiou, 2011); the distribution that it
    needs is chosen near the worst case, see :mod:`osilp_pyomo.offline.adjustable.dual_rules`. Rows with coefficients of
    rules that change with the vector are known to the first way only. Bounds are those of duals made feasible; of a
    model with whole numbers that of HiGHS' branch and bound.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.pyros import BoxSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> demand = BoxSet([(0, 4), (0, 4)])
    >>> m.stock, m.cost = pyo.Var(bounds=(0, None)), pyo.Var()
    >>> m.order = osilp.FunctionVar(over=demand, bounds=(0, None))
    >>> m.total = pyo.Objective(expr=m.cost)
    >>> @m.SemiInfiniteConstraint(demand)
    ... def enough(m, xi):
    ...     return m.stock + m.order(xi) >= xi[0] + xi[1]
    >>> @m.SemiInfiniteConstraint(demand)
    ... def worst(m, xi):
    ...     return m.cost >= 2 * m.stock + 3 * m.order(xi)
    >>> result = osilp.solve(m)
    >>> osilp.recourse_bound(m, result)
    no policy can cost less than 16; the rule costs 16, no more than rounding from it
    """
    refuse_no_model(model, _WHAT, "bound")
    if not isinstance(result, Result):
        raise OptionError(f"{_WHAT}: result must be what solve gives back (got {type(result).__name__}).")
    whole_number(scenarios, f"{_WHAT}: scenarios")
    TIME_LIMIT.check(time_limit, _WHAT)
    traced = trace_model(model, convex=True)
    solution = _solution_of(traced, result)
    problem = AdjustableProblem.of_problem(traced.problem, traced.matched, traced.functions, _WHAT)
    prices = None if result.answer is None or result.answer.price is None else dict(result.prices.items())
    return bound_policies(problem, solution, result.objective, prices, int(scenarios), time_limit)


def _solution_of(traced: TracedModel, result: Result) -> Any:
    """The values of a result, which must be one of the model."""
    if result.policy is not None:
        raise OptionError(
            f"{_WHAT}: the result is that of the best policy already; its bound is result.bound, {result.bound:.8g}."
        )
    if result.answer is None or result.solution is None:
        raise OptionError(f"{_WHAT}: the result has no values (status '{result.status}'), and no rule to be judged.")
    if not result.feasible:
        raise OptionError(
            f"{_WHAT}: the rules of the result violate rows (by {result.audit.ordinary_violation:.2g}, or see "
            "result.violation), so that they are no policy; solve by method='auto'."
        )
    same = isinstance(result.solved_for, ModelIdentity) and len(result.solution) == traced.problem.core.columns
    if not same or result.solved_for.difference(ModelIdentity.of(traced.problem.core.cost)) is not None:
        raise OptionError(f"{_WHAT}: the result is that of another model; solve this one, and give what comes back.")
    return result.solution
