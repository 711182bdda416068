"""The worst value of an expression over an index, as a variable with a semi-infinite row on a Block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from itertools import count
from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr.relational_expr import RelationalExpression

from osilp_pyomo.errors import OptionError
from osilp_pyomo.model.added_rows import mark_value
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.sets import single_sets


def worst_case(
    m: Any, over: Any, rule: Callable[..., Any], *, sense: Any = pyo.minimize, name: str | None = None
) -> Any:
    """The worst value of an expression over an uncertainty set or a continuous index, for an objective or a row.

    Adds one Block with a variable and a :class:`SemiInfiniteConstraint` that keeps it on the safe side of every value,
    and gives back the variable as an expression.

    Parameters
    ----------
    m : model or Block
        Gets the new Block.
    over : set, or tuple of sets
        What the worst case is looked for in, as in :class:`SemiInfiniteConstraint`.
    rule : callable
        ``rule(m, *members)`` gives an expression that is linear or convex in the variables, such as a cost.
    sense : pyo.minimize or pyo.maximize
        That of the objective in which it stands: the largest value where a cost is minimized, the smallest one where a
        reward is maximized. In a constraint the largest stands for what must stay small.
    name : str, optional
        Name of the Block.

    Returns
    -------
    Expression
        It stands for the worst case only where the solver is pressed to make it small (large, for ``pyo.maximize``).

    Examples
    --------
    A cost per unit that is known up to a tenth:

    >>> from pyomo.contrib.pyros import BoxSet
    >>> m = pyo.ConcreteModel()
    >>> m.x = pyo.Var([0, 1], bounds=(0, 1))
    >>> m.demand = pyo.Constraint(expr=m.x[0] + m.x[1] == 1)
    >>> prices = BoxSet([(0.9, 1.1), (0.7, 1.3)])
    >>> m.cost = pyo.Objective(expr=worst_case(m, prices, lambda m, price: price[0] * m.x[0] + price[1] * m.x[1]))
    >>> import osilp_pyomo as osilp
    >>> round(osilp.solve(m).objective, 6)
    1.1
    """
    if sense not in (pyo.minimize, pyo.maximize):
        raise OptionError(f"worst_case: sense must be pyo.minimize or pyo.maximize (got {sense!r}).")
    # Expressions of Pyomo can be called too, for their value.
    if not callable(rule) or hasattr(rule, "is_expression_type"):
        raise OptionError(
            "worst_case: it needs a function of the model and the index, such as lambda m, xi: xi[0] * m.x (got "
            f"{type(rule).__name__})."
        )
    largest = sense == pyo.minimize

    def kept(block: Any, *members: Any) -> Any:
        value = rule(block.parent_block(), *members)
        if isinstance(value, RelationalExpression):
            raise OptionError(
                "worst_case: its rule gives a relation; return the expression whose worst value is meant, such as a "
                "cost, without <= or >=."
            )
        if value.__class__ not in native_numeric_types and not hasattr(value, "is_expression_type"):
            raise OptionError(
                f"worst_case: its rule must give one expression, such as a cost (got {type(value).__name__})."
            )
        return value <= block.worst if largest else value >= block.worst

    with suppress(TypeError, ValueError):
        # Its arguments keep the names that the user gave them, and are as many.
        kept.__signature__ = signature(rule)  # type: ignore[attr-defined]

    def write(block: Any) -> Any:
        block.worst = pyo.Var()
        sets = tuple(single_sets(over if isinstance(over, tuple) else (over,)))
        block.rows = SemiInfiniteConstraint(*sets, rule=kept)
        return block.worst

    return on_new_block(m, name, "value", write)


def on_new_block(m: Any, wanted: str | None, called: str, write: Callable[[Any], Any]) -> Any:
    """Make a Block, write on it, and give its value back as an expression ``called`` so; it goes if that fails."""
    if getattr(m, "ctype", None) is not pyo.Block:
        raise OptionError(f"the worst case needs a model or Block to be written on (got {type(m).__name__}).")
    if wanted is not None and m.component(wanted) is not None:
        raise OptionError(f"the worst case cannot be named '{wanted}': the model has a component of that name.")
    new_block: Any = pyo.Block
    block = new_block(concrete=True)
    m.add_component(wanted or _free_name(m, "worst_case"), block)
    try:
        # Thousands of small nodes would set off the garbage collector again and again, in vain.
        with PauseGC():
            value = pyo.Expression(expr=write(block))
        block.add_component(called, value)
        mark_value(block, value)
    except Exception:
        m.del_component(block)
        raise
    return value


def _free_name(m: Any, name: str) -> str:
    """The name, or the same with the next number behind it."""
    numbers = (number for number in count(2) if m.component(f"{name}_{number}") is None)
    return name if m.component(name) is None else f"{name}_{next(numbers)}"
