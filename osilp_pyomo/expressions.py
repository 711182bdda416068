"""Coefficient trees as numpy functions.

``group_terms`` sorts trees by shape. Thousands of arrivals usually share one shape, which becomes one numpy
function with an array for each leaf that differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_logical_types, native_numeric_types, native_types
from pyomo.core.expr import logical_expr as logical
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.curves import CurveStack
from osilp_pyomo.errors import DataError
from osilp_pyomo.profiles import ProfileExpression
from osilp_pyomo.rows import TermGroup

_FUNCTIONS = {
    "exp": "exp", "log": "log", "log10": "log10", "sqrt": "sqrt", "ceil": "ceil", "floor": "floor",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


class CannotCompileError(Exception):
    """An expression node has no numpy counterpart; the rule is then sampled, and told why."""


# -- shapes ------------------------------------------------------------------------------------


def _token(node: Any) -> tuple[str, int]:
    """Name and number of arguments of an expression node."""
    name = _name_of_class(node.__class__)
    if name is None:
        if isinstance(node, relational.InequalityExpression):
            name = "<" if node.strict else "<="
        elif isinstance(node, numeric.UnaryFunctionExpression) and node.getname() in _FUNCTIONS:
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
        source, switches = source_of(shape, literals, slots)
        groups.append(
            TermGroup(
                compiled(source),
                tuple(slots),
                np.array([entry[0] for entry in found], dtype=np.int64),
                tuple(parameters),
                tuple(dict.fromkeys(entry[1] for entry in found)),
                tuple(compiled(switch) for switch in switches),
            )
        )
    return tuple(groups)


def _slot(leaves: tuple[Any, ...], what: str) -> tuple[Any, str | None, str | None]:
    """The data of one slot over all columns: (array or curves, Param name, literal)."""
    first = leaves[0]
    if first.__class__ in native_numeric_types:
        if all(leaf.__class__ in native_numeric_types for leaf in leaves):
            if all(leaf == first for leaf in leaves):
                return None, None, repr(int(first) if float(first).is_integer() else float(first))
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


def _common_name(leaves: tuple[Any, ...]) -> str | None:
    """Name of the one indexed component that holds all the leaves, if there is one."""
    if any(leaf.__class__ in native_types for leaf in leaves):
        return None
    owner = leaves[0].parent_component()
    if not owner.is_indexed() or owner.ctype.__name__ == "Var":
        return None
    return str(owner.name) if all(leaf.parent_component() is owner for leaf in leaves) else None


# -- numpy source ------------------------------------------------------------------------------


def source_of(
    shape: tuple[Any, ...], literals: Sequence[str | None], slots: Sequence[Any] = ()
) -> tuple[str, list[str]]:
    """Numpy source of a shape, and of the functions whose sign decides where it has kinks or jumps.

    ``literals[k]`` is the text of slot k where all columns have the same number there; ``slots`` are the data of
    the others.
    """
    number, kept = [], 0
    for literal in literals:
        number.append(f"s[{kept}]" if literal is None else f"({literal})")
        kept += literal is None
    slot = len(literals)
    stack: list[str] = []
    switches: list[str] = []
    # Prefix order read from its end is a stack machine; arguments come off in their own order.
    for token in reversed(shape):
        if token == "#":
            slot -= 1
            kept -= literals[slot] is None
            stack.append(number[slot])
        elif isinstance(token, int):
            stack.append(f"u[{token}]")
        else:
            name, count = token
            arguments = [stack.pop() for _ in range(count)]
            if name == "curve":
                slot -= 1
                stack.append(f"{number[slot]}({', '.join(arguments)})")
                kept -= 1
                if not all(argument.startswith("u[") for argument in arguments):
                    switches += _knot_switches(arguments, slots[kept])
            else:
                stack.append(_source(name, arguments, switches))
    (source,) = stack
    curves = [f"s[{k}](" for k, each in enumerate(slots) if isinstance(each, CurveStack)]
    switches = [switch for switch in switches if not any(curve in switch for curve in curves)]
    return source, list(dict.fromkeys(switches))


def _knot_switches(arguments: list[str], curves: CurveStack) -> list[str]:
    """Where a formula in place of the bare index meets a knot of a curve (those of the bare index are marks)."""
    switches = []
    for argument, knots in zip(arguments, curves.common_knots(), strict=True):
        switches += [f"({argument} - ({float(knot)!r}))" for knot in knots]
    return switches


def _source(name: str, arguments: list[str], switches: list[str]) -> str:
    first = arguments[0]
    if name == "+":
        return f"({' + '.join(arguments)})"
    if name in ("*", "/"):
        return f"({first} {name} {arguments[1]})"
    if name == "**":
        return _power(first, arguments[1])
    if name == "-":
        return f"(-{first})"
    if name == "same":
        return first
    if name == "abs":
        switches.append(first)
        return f"np.abs({first})"
    if name == "if":
        return f"np.where({first}, {arguments[1]}, {arguments[2]})"
    if name in ("min", "max"):
        result = first
        for other in arguments[1:]:
            switches.append(f"({result} - {other})")
            result = f"np.{name}imum({result}, {other})"
        return result
    if name in ("<=", "<", "==", "!="):
        switches.append(f"({first} - {arguments[1]})")
        return f"({first} {name} {arguments[1]})"
    if name.startswith("ranged"):
        left, right = ("<" if mark == "<" else "<=" for mark in name[-2:])
        low, middle, high = arguments
        switches.extend([f"({low} - {middle})", f"({middle} - {high})"])
        return f"(({low} {left} {middle}) & ({middle} {right} {high}))"
    if name in ("and", "or"):
        return "(" + {"and": " & ", "or": " | "}[name].join(arguments) + ")"
    if name == "not":
        return f"np.logical_not({first})"
    return f"np.{_FUNCTIONS[name]}({first})"


def _power(base: str, exponent: str) -> str:
    """Powers: small whole ones by products, which numpy does many times faster than its power."""
    try:
        whole = int(exponent.strip("()"))
    except ValueError:
        return f"np.sqrt({base})" if exponent == "(0.5)" else f"({base} ** {exponent})"
    if whole == 2:
        return f"np.square({base})"
    if 3 <= whole <= 16:
        return f"whole_power({base}, {whole})"
    # A float exponent lets numpy take whole numbers to negative powers too.
    return f"({base} ** ({float(whole)!r}))"


def whole_power(base: FloatArray, exponent: int) -> FloatArray:
    """``base ** exponent`` by repeated squaring."""
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = np.square(base)
    assert result is not None
    return result


class CompiledKernel:
    """A numpy function made from its source; travels between processes as that source."""

    def __init__(self, source: str) -> None:
        self.source = source
        names = {"np": np, "whole_power": whole_power, "inf": np.inf, "nan": np.nan}
        self._function = eval(f"lambda s, u: {source}", names)

    def __call__(self, slots: Sequence[Any], coordinates: Sequence[FloatArray]) -> Any:
        return self._function(slots, coordinates)

    def __reduce__(self) -> tuple[Any, ...]:
        return compiled, (self.source,)

    def __repr__(self) -> str:
        return f"CompiledKernel({self.source!r})"


@lru_cache(maxsize=4096)
def compiled(source: str) -> CompiledKernel:
    """The function of a source text; the same text gives the same function."""
    return CompiledKernel(source)
