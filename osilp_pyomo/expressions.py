"""From Pyomo expressions to linear terms, and from coefficient trees to numpy.

``linear_terms`` splits an expression into coefficient * variable terms without evaluating the
coefficients: they stay trees over the index, Params and numbers. ``group_terms`` sorts such trees by
shape. Thousands of arrivals usually share one shape, which becomes one numpy function with an array
for each leaf that differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_logical_types, native_numeric_types, native_types
from pyomo.core.expr import logical_expr as logical
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo.domains import FloatArray
from osilp_pyomo.errors import DataError, NotLinearError
from osilp_pyomo.problem import TermGroup
from osilp_pyomo.profiles import CurveStack, ProfileExpression

_FUNCTIONS = {
    "exp": "exp", "log": "log", "log10": "log10", "sqrt": "sqrt", "ceil": "ceil", "floor": "floor",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


class CannotCompileError(Exception):
    """An expression node has no numpy counterpart; the rule is then sampled, and told why."""


@dataclass
class LinearTerms:
    """``sum(coefficients) * variable`` terms and constant terms; nothing is evaluated."""

    variables: dict[int, Any] = field(default_factory=dict)
    coefficients: dict[int, list[Any]] = field(default_factory=dict)
    constants: list[Any] = field(default_factory=list)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Pairs of variable and its whole coefficient."""
        for key, parts in self.coefficients.items():
            whole = parts[0]
            for part in parts[1:]:
                whole = whole + part
            yield self.variables[key], whole


def linear_terms(expression: Any, what: str, sign: int = 1, into: LinearTerms | None = None) -> LinearTerms:
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

    Raises
    ------
    NotLinearError
        Names the first term that is not linear.
    """
    terms = LinearTerms() if into is None else into
    stack: list[tuple[Any, Any]] = [(expression, sign)]
    while stack:
        node, factor = stack.pop()
        if node.__class__ in native_numeric_types or not _has_free_variable(node):
            if node.__class__ not in native_numeric_types or node != 0:
                terms.constants.append(_times(factor, node))
        elif not node.is_expression_type():
            terms.variables[id(node)] = node
            terms.coefficients.setdefault(id(node), []).append(factor)
        elif isinstance(node, numeric.SumExpression):
            stack.extend((part, factor) for part in reversed(node.args))
        elif isinstance(node, numeric.NegationExpression):
            stack.append((node.args[0], _times(-1, factor)))
        elif node.is_named_expression_type():
            stack.append((_content(node, what), factor))
        elif isinstance(node, numeric.ProductExpression):
            left, right = node.args
            if not _has_free_variable(left):
                stack.append((right, _times(factor, left)))
            elif not _has_free_variable(right):
                stack.append((left, _times(factor, right)))
            else:
                raise _not_linear(what, node)
        elif isinstance(node, numeric.DivisionExpression) and not _has_free_variable(node.args[1]):
            stack.append((node.args[0], _times(factor, 1 / node.args[1])))
        elif isinstance(node, numeric.PowExpression) and _is_one(node.args[1]):
            stack.append((node.args[0], factor))
        elif isinstance(node, numeric.Expr_ifExpression) and not _has_free_variable(node.args[0]):
            _branch_terms(node, factor, what, terms)
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
        into.coefficients.setdefault(key, []).append(_times(factor, choice))
    if yes.constants or no.constants:
        choice = numeric.Expr_ifExpression((test, sum(yes.constants), sum(no.constants)))
        into.constants.append(_times(factor, choice))


def _not_linear(what: str, node: Any) -> NotLinearError:
    return NotLinearError(
        f"{what}: it is not linear in the variables (found {_short(str(node))}); offline only linear rows and "
        "objectives can be solved, so keep products and nonlinear functions of Vars out of it."
    )


def _has_free_variable(node: Any) -> bool:
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


def _times(factor: Any, node: Any) -> Any:
    if _is_one(factor):
        return node
    if _is_one(node):
        return factor
    if _is_minus_one(factor) and _is_minus_one(node):
        return 1
    return factor * node


def _is_minus_one(node: Any) -> bool:
    return node.__class__ in native_numeric_types and node == -1


def _short(text: str, length: int = 160) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


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
        return CurveStack.of(leaves), None, None
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
