"""Which of the user's constraints and objectives hold the value of rows that were written for them.

A worst case over distributions is a Block of rows and an expression of their value; whoever reads a result knows the
constraint in which that expression stands, and not the Block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData

# Under this name a Block keeps the expression of its value as private data.
_VALUE = "value_of_rows"


def mark_value(block: Any, expression: Any) -> None:
    """Tell that an expression is the value of the rows on a Block."""
    block.private_data("osilp_pyomo")[_VALUE] = expression


def used_by(model: Any, families: Iterable[Any]) -> Mapping[str, tuple[str, ...]]:
    """For each Block of added rows among some families the constraints and objectives that use its value, by name."""
    values = {id(value): block.name for block, value in _values(families)}
    found: dict[str, list[str]] = {name: [] for name in values.values()}
    if values:
        for row in model.component_data_objects((pyo.Objective, pyo.Constraint), active=True, descend_into=True):
            if not isinstance(row, SemiInfiniteConstraintData):
                for name in _used(row, values):
                    found[name].append(row.name)
    return {name: tuple(users) for name, users in found.items() if users}


def _values(families: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Blocks of added rows, with the expressions of their values."""
    known = set()
    for family in families:
        block = family.parent_block()
        while block is not None and id(block) not in known:
            known.add(id(block))
            value = block.private_data("osilp_pyomo").get(_VALUE)
            if value is not None:
                yield block, value
            block = block.parent_block()


def _used(row: Any, values: Mapping[int, str]) -> set[str]:
    """The values that stand in a row."""
    found: set[str] = set()
    left = [row.expr]
    while left:
        node = left.pop()
        if id(node) in values:
            found.add(values[id(node)])
        elif hasattr(node, "is_expression_type") and node.is_expression_type() and type(node) is not LinearExpression:
            left.extend(node.args)
    return found
