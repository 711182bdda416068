"""Expressions with other leaves, such as numbers in place of the index, or an index in place of a Param."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo.model.arrays.blocks import TermBlock, block_of, light_node
from osilp_pyomo.model.arrays.trees import ArrayLeaf, rebuild

Replace = Callable[[Any], Any]

_ARITHMETIC: list[tuple[type, Callable[..., Any]]] = [
    (numeric.NegationExpression, operator.neg),
    (numeric.SumExpression, lambda *parts: sum(parts)),
    (numeric.ProductExpression, operator.mul),
    (numeric.DivisionExpression, operator.truediv),
    (numeric.PowExpression, operator.pow),
    (numeric.AbsExpression, abs),
]


def substituted(node: Any, replace: Replace) -> Any:
    """An expression with its leaves replaced; what holds none of them stays as it is, named Expressions too.

    Parts that hold nothing but numbers then are numbers.
    """
    if node is None or node.__class__ in native_types:
        return node
    if not node.is_expression_type():
        return replace(node)
    block = block_of(node)
    if block is not None:
        return _substituted_block(node, block, replace)
    parts = [substituted(part, replace) for part in node.args]
    if all(new is old for new, old in zip(parts, node.args, strict=True)):
        return node
    if node.is_named_expression_type():
        return parts[0]
    for kind, rule in _ARITHMETIC:
        if isinstance(node, kind):
            return reduce(rule, parts) if rule is operator.mul else rule(*parts)
    if isinstance(node, relational.RelationalExpression):
        return _relation(node, parts)
    found = node.create_node_with_local_data(tuple(parts))
    # A function of numbers is a number, and so is a Profile at one.
    return found() if all(part.__class__ in native_numeric_types for part in parts) else found


def _relation(node: Any, parts: list[Any]) -> Any:
    """A relation between other sides; it stays one, whatever they are."""
    if isinstance(node, relational.RangedExpression):
        return relational.RangedExpression(tuple(parts), node.strict)
    if isinstance(node, relational.EqualityExpression):
        return relational.EqualityExpression(tuple(parts))
    return relational.InequalityExpression(tuple(parts), node.strict)


def _substituted_block(node: Any, block: TermBlock, replace: Replace) -> Any:
    """A dot with its leaves replaced: terms one by one where variables become expressions."""

    def of_leaf(leaf: Any) -> Any:
        if leaf.__class__ is not ArrayLeaf:
            return replace(leaf)
        if leaf.numbers:
            return leaf
        found = [substituted(entry, replace) for entry in leaf.values.flat]
        if all(new is old for new, old in zip(found, leaf.values.flat, strict=True)):
            return leaf
        values = np.empty(len(found), dtype=object)
        values[:] = found
        return ArrayLeaf(values.reshape(leaf.values.shape))

    tree = rebuild(block.tree, of_leaf)
    variables = [replace(variable) for variable in block.variables]
    if all(new is old for new, old in zip(variables, block.variables, strict=True)):
        return node if tree is block.tree else numeric.SumExpression([light_node(TermBlock(tree, block.variables))])
    found = TermBlock(tree, block.variables)
    return sum(found.coefficient(place) * each for place, each in enumerate(variables))
