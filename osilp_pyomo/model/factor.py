"""Rows that are not linear, decomposed: g(x, u) = sum_k a_k(u) h_k(x).

Where that works, everything that depends on the index can be evaluated and projected before a decision is looked
for, and a step costs nothing in the number of grid points. exp(u x), |u - x| and 1/(u + x) cannot be decomposed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr import numeric_expr as numeric

# Powers of a sum that are multiplied out.
_HIGHEST_POWER = 4

Pair = tuple[Any, Any]


class NotSeparableError(Exception):
    """A term mixes the index with the decision; the node is its argument."""


def depends(expression: Any, placeholders: Collection[int]) -> tuple[bool, bool]:
    """Whether an expression depends on the index (by the ids of its placeholders), and on a free variable."""
    index = decision = False
    stack = [expression]
    while stack and not (index and decision):
        node = stack.pop()
        if node.__class__ in native_types:
            continue
        if id(node) in placeholders:
            index = True
        elif node.is_expression_type():
            stack.extend(node.args)
        elif node.is_variable_type() and not node.fixed:
            decision = True
    return index, decision


def separate(expression: Any, placeholders: Collection[int]) -> list[Pair]:
    """Pairs (a, h) with expression = sum a h, a free of the decision and h free of the index.

    Raises
    ------
    NotSeparableError
        With the node that mixes them.
    """
    on_index, on_decision = depends(expression, placeholders)
    if not on_decision:
        return [(expression, 1)]
    if not on_index:
        return [(1, expression)]
    parts = _parts(expression, placeholders)
    if parts is None:
        raise NotSeparableError(expression)
    return parts


def _parts(node: Any, placeholders: Collection[int]) -> list[Pair] | None:
    def apart(other: Any) -> list[Pair]:
        return separate(other, placeholders)

    if isinstance(node, numeric.SumExpression):
        return [pair for part in node.args for pair in apart(part)]
    if node.is_named_expression_type():
        return apart(node.args[0])
    if isinstance(node, numeric.NegationExpression):
        return [(-a, h) for a, h in apart(node.args[0])]
    if isinstance(node, numeric.ProductExpression):
        return _product(apart(node.args[0]), apart(node.args[1]))
    if isinstance(node, numeric.DivisionExpression):
        below = apart(node.args[1])
        if len(below) == 1:
            return [(a / below[0][0], h / below[0][1]) for a, h in apart(node.args[0])]
    if isinstance(node, numeric.PowExpression):
        return _power(apart(node.args[0]), node.args[1], placeholders)
    if isinstance(node, numeric.UnaryFunctionExpression) and node.getname() == "exp":
        return _exponential(apart(node.args[0]))
    if isinstance(node, numeric.Expr_ifExpression) and not depends(node.args[0], placeholders)[1]:
        test, then, other = node.args
        yes = [(numeric.Expr_ifExpression((test, a, 0)), h) for a, h in apart(then)]
        return yes + [(numeric.Expr_ifExpression((test, 0, a)), h) for a, h in apart(other)]
    return None


def _product(left: list[Pair], right: list[Pair]) -> list[Pair]:
    return [(a * b, h * g) for a, h in left for b, g in right]


def _power(base: list[Pair], exponent: Any, placeholders: Collection[int]) -> list[Pair] | None:
    if exponent.__class__ in native_numeric_types and exponent == int(exponent) and 2 <= exponent <= _HIGHEST_POWER:
        if len(base) == 1:
            return [(base[0][0] ** exponent, base[0][1] ** exponent)]
        result = base
        for _ in range(int(exponent) - 1):
            result = _product(result, base)
        return result
    if len(base) == 1 and not any(depends(exponent, placeholders)) and _never_negative(base[0][0]):
        return [(base[0][0] ** exponent, base[0][1] ** exponent)]
    return None


def _never_negative(factor: Any) -> bool:
    """Whether (a h)^p = a^p h^p is safe for a power that is not whole: a must not be negative."""
    return isinstance(factor, numeric.UnaryFunctionExpression) and factor.getname() in ("exp", "sqrt")


def _exponential(exponent: list[Pair]) -> list[Pair] | None:
    """exp(a(u) + h(x)) = exp(a(u)) exp(h(x)); a product in the exponent cannot be decomposed."""
    pure_index = [a * h for a, h in exponent if h.__class__ in native_numeric_types]
    pure_decision = [
        a * h for a, h in exponent if a.__class__ in native_numeric_types and h.__class__ not in native_types
    ]
    if len(pure_index) + len(pure_decision) != len(exponent):
        return None
    return [(pyo.exp(sum(pure_index)), pyo.exp(sum(pure_decision)))]
