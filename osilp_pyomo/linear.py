"""Pyomo expressions as linear terms: coefficient * variable, with the coefficients left as they are.

Pyomo's own standard representation evaluates coefficients, or misses terms whose coefficients are conditions;
here anything without a free variable is a coefficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo.errors import DataError, NotLinearError


@dataclass
class LinearTerms:
    """``sum(coefficients) * variable`` terms and constant terms; nothing is evaluated.

    ``nonlinear`` holds pairs (factor, node) that are not linear, where those are asked for.
    """

    variables: dict[int, Any] = field(default_factory=dict)
    coefficients: dict[int, list[Any]] = field(default_factory=dict)
    constants: list[Any] = field(default_factory=list)
    nonlinear: list[tuple[Any, Any]] = field(default_factory=list)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Pairs of variable and its whole coefficient."""
        for key, parts in self.coefficients.items():
            whole = parts[0]
            for part in parts[1:]:
                whole = whole + part
            yield self.variables[key], whole


def linear_terms(
    expression: Any, what: str, sign: int = 1, into: LinearTerms | None = None, *, keep_nonlinear: bool = False
) -> LinearTerms:
    """Split an expression that is linear in its free variables.

    Parameters
    ----------
    expression : Pyomo expression or number
    what : str
        Whose expression it is, for the error.
    sign : 1 or -1
        Factor of the whole expression.
    into : LinearTerms, optional
        Terms to add to.
    keep_nonlinear : bool
        Keep terms that are not linear apart instead of refusing them.

    Raises
    ------
    NotLinearError
        Names the first term that is not linear.
    """
    terms = LinearTerms() if into is None else into
    stack: list[tuple[Any, Any]] = [(expression, sign)]
    while stack:
        node, factor = stack.pop()
        if node.__class__ in native_numeric_types or not has_free_variable(node):
            if node.__class__ not in native_numeric_types or node != 0:
                terms.constants.append(times(factor, node))
        elif not node.is_expression_type():
            terms.variables[id(node)] = node
            terms.coefficients.setdefault(id(node), []).append(factor)
        elif isinstance(node, numeric.SumExpression):
            stack.extend((part, factor) for part in reversed(node.args))
        elif isinstance(node, numeric.NegationExpression):
            stack.append((node.args[0], times(-1, factor)))
        elif node.is_named_expression_type():
            stack.append((_content(node, what), factor))
        elif isinstance(node, numeric.ProductExpression):
            left, right = node.args
            if not has_free_variable(left):
                stack.append((right, times(factor, left)))
            elif not has_free_variable(right):
                stack.append((left, times(factor, right)))
            elif keep_nonlinear:
                terms.nonlinear.append((factor, node))
            else:
                raise _not_linear(what, node)
        elif isinstance(node, numeric.DivisionExpression) and not has_free_variable(node.args[1]):
            stack.append((node.args[0], times(factor, 1 / node.args[1])))
        elif isinstance(node, numeric.PowExpression) and _is_one(node.args[1]):
            stack.append((node.args[0], factor))
        elif isinstance(node, numeric.Expr_ifExpression) and not has_free_variable(node.args[0]):
            try:
                _branch_terms(node, factor, what, terms)
            except NotLinearError:
                if not keep_nonlinear:
                    raise
                terms.nonlinear.append((factor, node))
        elif keep_nonlinear:
            terms.nonlinear.append((factor, node))
        else:
            raise _not_linear(what, node)
    return terms


def _content(node: Any, what: str) -> Any:
    """What a named Expression holds."""
    if node.args[0] is None:
        raise DataError(f"{what}: the Expression '{node.name}' is empty; give it an expression before solving.")
    return node.args[0]


def _branch_terms(node: Any, factor: Any, what: str, into: LinearTerms) -> None:
    """``Expr_if(test, then, other)`` with variables in its branches: the test moves to the coefficients."""
    test, then, other = node.args
    yes, no = linear_terms(then, what), linear_terms(other, what)
    yes_by_id = {id(variable): (variable, coefficient) for variable, coefficient in yes.items()}
    no_by_id = {id(variable): (variable, coefficient) for variable, coefficient in no.items()}
    for key in dict.fromkeys([*yes_by_id, *no_by_id]):
        variable = (yes_by_id.get(key) or no_by_id[key])[0]
        choice = numeric.Expr_ifExpression((test, yes_by_id.get(key, (None, 0))[1], no_by_id.get(key, (None, 0))[1]))
        into.variables[key] = variable
        into.coefficients.setdefault(key, []).append(times(factor, choice))
    if yes.constants or no.constants:
        choice = numeric.Expr_ifExpression((test, sum(yes.constants), sum(no.constants)))
        into.constants.append(times(factor, choice))


def _not_linear(what: str, node: Any) -> NotLinearError:
    return NotLinearError(
        f"{what}: it is not linear in the variables (found {short_text(str(node))}); offline only linear rows and "
        "objectives can be solved. Keep products and nonlinear functions of Vars out of it; if they belong to arrivals "
        "use compile_online(model, stages=...).solve_offline()."
    )


def has_free_variable(node: Any) -> bool:
    """Whether a Var that is not fixed occurs; also where Pyomo calls the node "potentially variable"."""
    if node.__class__ in native_types or not node.is_potentially_variable():
        # A relation between two pure data expressions calls itself not potentially variable: right.
        return False
    stack = [node]
    while stack:
        current = stack.pop()
        if current.__class__ in native_types:
            continue
        if current.is_expression_type():
            stack.extend(current.args)
        elif current.is_variable_type() and not current.fixed:
            return True
    return False


def _is_one(node: Any) -> bool:
    return node.__class__ in native_numeric_types and node == 1


def times(factor: Any, node: Any) -> Any:
    """A product, without factors of 1."""
    if _is_one(factor):
        return node
    if _is_one(node):
        return factor
    if _is_minus_one(factor) and _is_minus_one(node):
        return 1
    return factor * node


def _is_minus_one(node: Any) -> bool:
    return node.__class__ in native_numeric_types and node == -1


def short_text(text: str, length: int = 160) -> str:
    """A text cut to a length that fits into an error."""
    return text if len(text) <= length else f"{text[:length]}..."


def number_of(expression: Any, what: str, infinite: bool = False) -> float:
    """Value of a coefficient; None and nan are refused, and infinity unless it is a limit."""
    if expression.__class__ in native_numeric_types:
        number: Any = float(expression)
    else:
        number = pyo.value(expression, exception=False)
    if number is None:
        missing = next((leaf for leaf in leaves(expression) if leaf(exception=False) is None), None)
        name = str(expression) if missing is None else missing.name
        raise DataError(f"{what}: '{name}' has no value; give it one before solving.")
    if np.isnan(number) or (np.isinf(number) and not infinite):
        raise DataError(f"{what}: the coefficient {expression} is {number}; every coefficient must be a finite number.")
    return float(number)


def leaves(expression: Any) -> Iterator[Any]:
    """Variables and Params of an expression."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if node is None or node.__class__ in native_types:
            continue
        if node.is_expression_type():
            stack.extend(node.args)
        else:
            yield node
