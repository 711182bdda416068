"""Plans against each other out of sample: nominal and robust, static and adjustable, at the same draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osilp_pyomo.errors import DataError, ModelError, OptionError
from osilp_pyomo.offline.plans import PlanComparison, judge
from osilp_pyomo.offline.results import Result

_WHAT = "compare_plans"


def compare_plans(plans: Mapping[str, Result], draws: Any, *, rows: str | None = None) -> PlanComparison:
    """Compare what plans cost, and how often they violate a row, at the same draws of the uncertain vector.

    Parameters
    ----------
    plans : dict of Result
        What :func:`solve` gave, by the plan's name: of a deterministic model, of robust ones, of models with decision
        rules. Decisions are found by their names; a decision that is a number in one plan and a rule in another stays
        that number at every draw.
    draws : DataFrame or array
        One vector per row, of what may happen: past values, or a sample; columns as in ``result.simulate``.
    rows : str, optional
        The plan by whose rows and objective all are judged. If not given: of those that all the others fit into the
        first that knows most of the columns of the draws.

    Returns
    -------
    PlanComparison
        ``frame`` with a row for each plan and draw, ``summary`` with one for each plan, ``plot()``. It prints as a
        table.

    Notes
    -----
    All plans are judged by the same rows over the uncertain vector, whatever rows they were made with; ordinary
    constraints are not looked at again. A variable that stands for a worst case takes the value that each draw needs.

    Examples
    --------
    >>> import numpy as np
    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.pyros import BoxSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.demand = pyo.Param(initialize=5, mutable=True)
    >>> m.x = pyo.Var(bounds=(0, 10))
    >>> m.meet = pyo.Constraint(expr=m.x >= m.demand)
    >>> m.cost = pyo.Objective(expr=2 * m.x)
    >>> robust = osilp.robustify(m, [(m.demand, BoxSet([(4, 6)]))])
    >>> plans = {"nominal": osilp.solve(m, load=False), "robust": osilp.solve(robust)}
    >>> print(osilp.compare_plans(plans, np.linspace(4.1, 5.9, 10).reshape(-1, 1)))
    2 plans at the same 10 draws; objective to minimize, by the rows of 'robust'
            mean 95 % below worst against first violated by at most
    nominal   10         10    10                 50.0 %       0.15
    robust    12         12    12            +2    0.0 %          0
    """
    if not isinstance(plans, Mapping) or not plans:
        raise OptionError(
            f"{_WHAT}: plans must be a dict of results by the plan's name (got {type(plans).__name__}), such as "
            "{'nominal': r0, 'robust': r1}."
        )
    for name, plan in plans.items():
        if not isinstance(plan, Result):
            raise OptionError(f"{_WHAT}: plan {name!r} must be what solve gives back (got {type(plan).__name__}).")
        if plan.policy is not None:
            raise ModelError(
                f"{_WHAT}: plan {name!r} is a program for each vector (column_generation), with no rules that other "
                "rows could judge; result.simulate has its cost at draws."
            )
        plan.values  # noqa: B018 - a result without values says so
    named = {str(name): plan for name, plan in plans.items()}
    if len(named) < len(plans):
        raise OptionError(f"{_WHAT}: two plans have the same name as text ({', '.join(map(repr, plans))}).")
    judges = [name for name, plan in named.items() if plan.recourse is not None]
    if not judges:
        raise ModelError(
            f"{_WHAT}: no plan has rows over an uncertainty set, so that nothing says what a draw changes; give the "
            "result of the robust model, or of robustify, among them."
        )
    if rows is not None and rows not in judges:
        raise OptionError(
            f"{_WHAT}: rows must name a plan with rows over an uncertainty set ({', '.join(map(repr, judges))}; got "
            f"{rows!r})."
        )
    senses = {plan.sense for plan in named.values()}
    if len(senses) > 1:
        raise ModelError(f"{_WHAT}: some plans minimize and some maximize, so that their costs are not the same thing.")
    if rows is None:
        # Rows that do not know an entry would judge all draws as if it were always the same.
        entries = {name: len(plan.recourse.entries(draws)) for name, plan in named.items() if plan.recourse is not None}
        judges.sort(key=lambda name: -entries[name])
    chosen, frame = _judged(named, judges if rows is None else [rows], draws)
    if not len(frame):
        raise DataError(f"{_WHAT}: there are no draws; give at least one vector.")
    return PlanComparison(frame, senses.pop(), chosen)


def _judged(plans: Mapping[str, Result], judges: list[str], draws: Any) -> tuple[str, Any]:
    """The first judge whose rows hold all the decisions, and what it finds."""
    refused: ModelError | None = None
    for name in judges:
        try:
            return name, judge(plans, name, draws, _WHAT)
        except ModelError as error:
            refused = refused or error
    assert refused is not None
    raise refused
