"""Models in LaTeX: objective, rows for every point of an index, ordinary constraints, and variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo

from osilp_pyomo._displays import MOST_SHOWN
from osilp_pyomo.errors import ModelError
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.mathematics import aligned, constraint_latex, domain_latex, family_lines, tree_of
from osilp_pyomo.show.latex import latex, words


def to_latex(thing: Any) -> str:
    r"""A model, a constraint, an objective or an expression in LaTeX, without dollars.

    Rows of a :class:`SemiInfiniteConstraint` say for which index they hold. Long sums and families of very many
    constraints are cut short.

    Parameters
    ----------
    thing : model, Block, Constraint, SemiInfiniteConstraint, Objective or expression

    Returns
    -------
    str
        For display mathematics; what has several lines is an ``aligned`` block of amsmath.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, None))
    >>> m.height = pyo.Objective(expr=m.x)
    >>> m.above = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 4 * u * (1 - u))
    >>> print(to_latex(m))
    \begin{aligned}
    \min\quad & x \\
    \text{s.t.}\quad & 4\, u\, \left(1 - u\right) \le x && \forall\, u \in [0, 1] && \text{(above)} \\
    & 0 \le x
    \end{aligned}
    """
    if isinstance(thing, SemiInfiniteConstraint):
        return constraint_latex(thing, list(thing.values()))
    if isinstance(thing, SemiInfiniteConstraintData):
        return thing.to_latex()
    kind = getattr(thing, "ctype", None)
    if kind is pyo.Block:
        return aligned(_model_lines(thing))
    if kind is pyo.Objective and hasattr(thing, "sense"):
        return aligned([_objective_line(thing)])
    if kind is pyo.Constraint:
        return aligned(_constraint_lines(list(thing.values()) if hasattr(thing, "values") else [thing]))
    if hasattr(thing, "is_expression_type") or isinstance(thing, int | float):
        return latex(tree_of(thing))
    raise ModelError(
        "to_latex: expected a model, a Block, a Constraint, an Objective or an expression of Pyomo (got "
        f"{type(thing).__name__})."
    )


def _model_lines(model: Any) -> list[str]:
    lines = [_objective_line(each) for each in model.component_data_objects(pyo.Objective, active=True)]
    rows: list[str] = []
    for constraint in model.component_objects(pyo.Constraint, active=True, descend_into=True):
        by_index = isinstance(constraint, SemiInfiniteConstraint)
        members = [each for each in constraint.values() if each.active]
        rows += family_lines(constraint, members) if by_index else _constraint_lines(members)
    if rows:
        rows[0] = rf"{words('s.t.')}\quad {rows[0]}"
    variables = [
        domain_latex(list(each.values()))
        for each in model.component_objects(pyo.Var, descend_into=True)
        if len(each) and not getattr(each.parent_block(), "holds_functions", False)
    ]
    return [*lines, *rows, *variables]


def _objective_line(objective: Any) -> str:
    sense = r"\min" if objective.sense == pyo.minimize else r"\max"
    return rf"{sense}\quad & {latex(tree_of(objective.expr))}"


def _constraint_lines(members: Sequence[Any]) -> list[str]:
    lines = [f"& {latex(tree_of(each.expr))} && && {words(f'({each.name})')}" for each in members[:MOST_SHOWN]]
    if len(members) > MOST_SHOWN:
        lines.append(rf"& \dots && && {words(f'({len(members) - MOST_SHOWN:,} more)')}")
    return lines
