"""Coefficient trees as numpy functions.

``group_terms`` sorts trees by shape. Thousands of arrivals usually share one shape, which becomes one numpy
function with an array for each leaf that differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_logical_types, native_numeric_types, native_types
from pyomo.core.expr import logical_expr as logical
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo.errors import DataError
from osilp_pyomo.index.curves import CurveStack
from osilp_pyomo.index.formula import Formula, kernel_of
from osilp_pyomo.index.nodes import FUNCTIONS
from osilp_pyomo.model.profile import ProfileExpression
from osilp_pyomo.offline.rows import TermGroup


class CannotCompileError(Exception):
    """An expression node has no numpy counterpart; the rule is then sampled, and told why."""


# -- shapes ------------------------------------------------------------------------------------


def _token(node: Any) -> tuple[str, int]:
    """Name and number of arguments of an expression node."""
    name = _name_of_class(node.__class__)
    if name is None:
        if isinstance(node, relational.InequalityExpression):
            name = "<" if node.strict else "<="
        elif isinstance(node, numeric.UnaryFunctionExpression) and node.getname() in FUNCTIONS:
            name = node.getname()
        elif node.is_named_expression_type():
            name = "same"
        else:
            raise CannotCompileError(f"{type(node).__name__} has no numpy counterpart")
    return name, len(node.args)


@cache
def _name_of_class(kind: type) -> str | None:
    """Name of a node where its class alone tells it."""
    return next((name for base, name in _NODE_NAMES if issubclass(kind, base)), None)


_NODE_NAMES: list[tuple[type, str]] = [
    (ProfileExpression, "curve"),
    (numeric.SumExpression, "+"),
    (numeric.ProductExpression, "*"),
    (numeric.DivisionExpression, "/"),
    (numeric.PowExpression, "**"),
    (numeric.NegationExpression, "-"),
    (numeric.AbsExpression, "abs"),
    (numeric.Expr_ifExpression, "if"),
    (numeric.MinExpression, "min"),
    (numeric.MaxExpression, "max"),
    (relational.RangedExpression, "ranged"),
    (relational.EqualityExpression, "=="),
    (relational.NotEqualExpression, "!="),
    (logical.AndExpression, "and"),
    (logical.OrExpression, "or"),
    (logical.NotExpression, "not"),
]


def shape_of(expression: Any, axes: Mapping[int, int]) -> tuple[tuple[Any, ...], list[Any]]:
    """Write a tree in prefix order: operators and coordinates make the shape, all other leaves are slots.

    ``axes`` maps the id of each placeholder to its coordinate.
    """
    shape: list[Any] = []
    slots: list[Any] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if node.__class__ in native_types:
            if node.__class__ in native_logical_types:
                node = float(node)
            elif node.__class__ not in native_numeric_types:
                raise CannotCompileError(f"{node!r} is not a number")
            shape.append("#")
            slots.append(node)
        elif id(node) in axes:
            shape.append(axes[id(node)])
        elif node.is_expression_type():
            token = _token(node)
            if token[0] == "+" and token[1] == 0:
                shape.append("#")
                slots.append(0.0)
                continue
            shape.append(token)
            if token[0] == "curve":
                slots.append(node.curve)
            elif token[0] == "ranged":
                shape[-1] = (f"ranged{''.join('<' if strict else '=' for strict in _strict(node))}", 3)
            stack.extend(reversed(node.args))
        else:
            shape.append("#")
            slots.append(node)
    return tuple(shape), slots


def _strict(node: Any) -> tuple[bool, bool]:
    strict = node.strict
    return tuple(strict) if isinstance(strict, tuple) else (strict, strict)


def group_terms(terms: Sequence[tuple[int, str, Any]], axes: Mapping[int, int], what: str) -> tuple[TermGroup, ...]:
    """Compile (column, variable name, coefficient) terms, one function for each shape.

    Raises
    ------
    CannotCompileError
        A node has no numpy counterpart.
    DataError
        A Param in a coefficient has no value.
    """
    members: dict[tuple[Any, ...], list[tuple[int, str, list[Any]]]] = {}
    for column, variable, coefficient in terms:
        shape, slots = shape_of(coefficient, axes)
        members.setdefault(shape, []).append((column, variable, slots))
    groups = []
    for shape, found in members.items():
        slots, parameters, literals = [], [], []
        for leaves in zip(*(entry[2] for entry in found), strict=True):
            slot, name, literal = _slot(leaves, what)
            literals.append(literal)
            if literal is None:
                slots.append(slot)
                parameters.append(name)
        source, switches = Formula(shape, tuple(literals)).source(slots)
        groups.append(
            TermGroup(
                kernel_of(source),
                tuple(slots),
                np.array([entry[0] for entry in found], dtype=np.int64),
                tuple(parameters),
                tuple(dict.fromkeys(entry[1] for entry in found)),
                tuple(map(kernel_of, switches)),
            )
        )
    return tuple(groups)


def _slot(leaves: tuple[Any, ...], what: str) -> tuple[Any, str | None, str | None]:
    """The data of one slot over all columns: (array or curves, Param name, literal)."""
    first = leaves[0]
    if first.__class__ in native_numeric_types:
        if all(leaf.__class__ in native_numeric_types for leaf in leaves):
            if all(leaf == first for leaf in leaves):
                return None, None, literal_text(first)
            return np.array(leaves, dtype=float), None, None
    elif hasattr(first, "curve_table"):
        return CurveStack.of_tables(tuple(leaf.curve_table() for leaf in leaves)), None, None
    numbers = np.empty(len(leaves))
    for k, leaf in enumerate(leaves):
        if leaf.__class__ in native_numeric_types:
            numbers[k] = leaf
            continue
        number = leaf(exception=False)
        if number is None:
            raise DataError(f"{what}: '{leaf.name}' has no value; give it one before solving.")
        if number.__class__ not in native_numeric_types:
            raise DataError(f"{what}: '{leaf.name}' is {number!r}, which is not a number.")
        numbers[k] = number
    return numbers, _common_name(leaves), None


def literal_text(number: Any) -> str:
    """A number as it stands in a formula: whole ones without a point, so that they are told as exponents."""
    return repr(int(number) if float(number).is_integer() else float(number))


def _common_name(leaves: tuple[Any, ...]) -> str | None:
    """Name of the one indexed component that holds all the leaves, if there is one."""
    if any(leaf.__class__ in native_types for leaf in leaves):
        return None
    owner = leaves[0].parent_component()
    if not owner.is_indexed() or owner.ctype.__name__ == "Var":
        return None
    return str(owner.name) if all(leaf.parent_component() is owner for leaf in leaves) else None
