"""Formulas evaluated with derivatives in the variables: values, gradients, and weighted sums of Hessians.

Values go forward through the tree, and gradients backward, as in reverse differentiation. The Hessian of a composition
is the sum over its nodes of what the result gains by the node, times the node's own second derivatives, between the
gradients of its arguments. All of it is done for many terms and points at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.formula import Formula, define
from osilp_pyomo.index.nodes import FUNCTIONS, NODES

#: Local value, first derivatives by argument and second derivatives by pair of arguments; None or no entry for zero.
Local = tuple[Any, list[Any], dict[tuple[int, int], Any]]

# Nodes that are true or false: they have no slope.
_STEPPED = frozenset(name for name, node in NODES.items() if not node.smooth)


class NoSlopeError(Exception):
    """A variable stands inside of something that has no derivative, such as a Profile or a comparison."""


class _Part:
    """What a node of the tree is: its value, its arguments that hold variables, and its derivatives by them."""

    __slots__ = ("adjoint", "axis", "parents", "root", "seconds", "slopes", "spread", "value")

    def __init__(
        self,
        value: Any,
        parents: Sequence[_Part] = (),
        slopes: Sequence[Any] = (),
        seconds: dict[tuple[int, int], Any] | None = None,
        axis: int = -1,
    ) -> None:
        self.value = value
        self.parents = parents
        self.slopes = slopes
        self.seconds = seconds or {}
        self.axis = axis
        self.root = False
        self.adjoint: Any = None
        self.spread: tuple[IntArray, FloatArray] | None = None

    @property
    def variable(self) -> bool:
        return self.axis >= 0 or bool(self.parents)


class Tape:
    """A formula evaluated for terms (rows) at points (columns).

    Parameters
    ----------
    formula : Formula
        Its coordinates below ``dimension`` are those of the index, the others its variables.
    slots : sequence
        Data that broadcast to (terms, points), and curves.
    index : sequence of arrays (1, points)
    variables : sequence of arrays (terms, 1)
    """

    def __init__(
        self, formula: Formula, slots: Sequence[Any], index: Sequence[FloatArray], variables: Sequence[FloatArray]
    ) -> None:
        self._parts: list[_Part] = []
        self._count = len(variables)
        leaves = {axis: _Part(value, axis=axis) for axis, value in enumerate(variables)}
        self._leaves = leaves

        def coordinate(axis: int) -> _Part:
            return _Part(index[axis]) if axis < len(index) else leaves[axis - len(index)]

        points = index[0].shape[1] if len(index) else 1
        terms = len(variables[0]) if len(variables) else 1
        self._shape = (terms, points)
        with np.errstate(all="ignore"):
            self._top = formula.fold(
                lambda text: _Part(float(text)), [_Part(slot) for slot in slots], coordinate, self._node
            )
        self.values: FloatArray = np.broadcast_to(np.asarray(self._top.value, dtype=float), self._shape)

    def _node(self, name: str, arguments: list[_Part]) -> _Part:
        if name == "same":
            return arguments[0]
        if name == "curve":
            if any(each.variable for each in arguments[1:]):
                raise NoSlopeError("a Profile of a variable has no derivative")
            return _Part(arguments[0].value(*(np.asarray(each.value) for each in arguments[1:])))
        varying = [k for k, each in enumerate(arguments) if each.variable]
        if varying and name in _STEPPED:
            raise NoSlopeError("a comparison of variables has no derivative")
        value, slopes, seconds = _local(name, [each.value for each in arguments], varying)
        if not varying:
            return _Part(value)
        place = {k: number for number, k in enumerate(varying)}
        part = _Part(
            value,
            [arguments[k] for k in varying],
            [slopes[k] for k in varying],
            {(place[i], place[j]): each for (i, j), each in seconds.items() if i in place and j in place},
        )
        part.root = name == "sqrt"
        self._parts.append(part)
        return part

    def _backward(self) -> None:
        """Carry to every node what the result gains by it."""
        for part in self._parts:
            part.adjoint = 0.0
        for leaf in self._leaves.values():
            leaf.adjoint = np.zeros(self._shape)
        self._top.adjoint = np.ones(self._shape)
        with np.errstate(all="ignore"):
            for part in reversed(self._parts):
                if part.root:
                    self._mend_root(part)
                for parent, slope in zip(part.parents, part.slopes, strict=True):
                    parent.adjoint = parent.adjoint + part.adjoint * slope

    def _mend_root(self, part: _Part) -> None:
        """A root of zero has the slope zero where its argument has: a norm is smallest there; else it has none."""
        zero = np.broadcast_to(np.asarray(part.value == 0), self._shape)
        if zero.any():
            _, gradient = self._gradient_of(part.parents[0])
            flat = zero & np.all(gradient == 0, axis=0)
            slope = np.broadcast_to(part.slopes[0], self._shape)
            part.slopes = [np.where(flat, 0.0, slope)]
            part.seconds = {key: np.where(flat, 0.0, each) for key, each in part.seconds.items()}

    def gradient(self) -> FloatArray:
        """Derivatives by the variables, an array (variables, terms, points)."""
        self._backward()
        result = np.zeros((self._count, *self._shape))
        for axis, leaf in self._leaves.items():
            result[axis] = leaf.adjoint
        return result

    def _gradient_of(self, part: _Part) -> tuple[IntArray, FloatArray]:
        """The variables that a node holds, and its derivatives by them (variables, terms, points)."""
        if part.axis >= 0:
            return np.array([part.axis]), np.ones((1, *self._shape))
        if part.spread is None:
            found = [self._gradient_of(parent) for parent in part.parents]
            axes = found[0][0] if len(found) == 1 else np.unique(np.concatenate([each for each, _ in found]))
            gradient = np.zeros((len(axes), *self._shape))
            for (own, inner), slope in zip(found, part.slopes, strict=True):
                gradient[np.searchsorted(axes, own)] += slope * inner
            part.spread = axes, gradient
        return part.spread

    def hessian(self, weights: FloatArray) -> FloatArray:
        """Sum over points of weights (points) times Hessians, for each term (terms, variables, variables)."""
        self._backward()
        terms = self._shape[0]
        result = np.zeros((terms, self._count, self._count))
        with np.errstate(all="ignore"):
            for part in self._parts:
                for (i, j), second in part.seconds.items():
                    factor = np.broadcast_to(part.adjoint * second, self._shape) * weights
                    one, left = self._gradient_of(part.parents[i])
                    two, right = self._gradient_of(part.parents[j])
                    block = np.einsum("atk,tk,btk->tab", left, factor, right, optimize=True)
                    result[:, one[:, None], two[None, :]] += block
                    if i != j:
                        result[:, two[:, None], one[None, :]] += block.transpose(0, 2, 1)
        return result


def _local(name: str, values: list[Any], varying: list[int]) -> Local:
    """Value and derivatives of a node from the values of its arguments; derivatives by those that vary."""
    if name in _RULES:
        return _RULES[name](values, varying)
    if name in FUNCTIONS:
        function = _function(name)
        value, slope, bend = function(np.asarray(values[0], dtype=float), bool(varying))
        return value, [slope], {} if bend is None else {(0, 0): bend}
    return _evaluated(name, len(values))(*values), [None] * len(values), {}


@cache
def _function(name: str) -> Callable[[Any, bool], tuple[Any, Any, Any]]:
    """A function of one number with both derivatives, from the texts that the table of nodes has of it."""
    node = FUNCTIONS[name]
    call = node.source(["v"])
    names = {"m": "np", "a": "arc", "v": "v", "r": "r"}
    if not node.slope:
        text = f"def f(v, wanted):\n    return {call}, 0.0, None\n"
    else:
        slope, bend = node.slope.format(**names), node.bend.format(**names)
        text = f"def f(v, wanted):\n    r = {call}\n    return (r, {slope}, {bend}) if wanted else (r, None, None)\n"
    function: Callable[[Any, bool], tuple[Any, Any, Any]] = define(text, "f")
    return function


@cache
def _evaluated(name: str, count: int) -> Callable[..., Any]:
    """The value alone of a node, as its numpy source has it."""
    arguments = [f"a{k}" for k in range(count)]
    function: Callable[..., Any] = define(
        f"def f({', '.join(arguments)}):\n    return {NODES[name].source(arguments)}\n", "f"
    )
    return function


def _sum(values: list[Any], varying: list[int]) -> Local:
    total = values[0]
    for each in values[1:]:
        total = total + each
    return total, [1.0] * len(values), {}


def _negation(values: list[Any], varying: list[int]) -> Local:
    return -np.asarray(values[0]), [-1.0], {}


def _product(values: list[Any], varying: list[int]) -> Local:
    one, other = values
    return one * other, [other, one], {(0, 1): 1.0}


def _quotient(values: list[Any], varying: list[int]) -> Local:
    one, other = np.asarray(values[0], dtype=float), np.asarray(values[1], dtype=float)
    inverse = 1.0 / other
    value = one * inverse
    return value, [inverse, -value * inverse], {(0, 1): -inverse * inverse, (1, 1): 2 * value * inverse * inverse}


def _power(values: list[Any], varying: list[int]) -> Local:
    base, exponent = np.asarray(values[0], dtype=float), np.asarray(values[1], dtype=float)
    if exponent.size == 1 and exponent.item() == 2:
        return base * base, [2 * base, None], {(0, 0): 2.0}
    value = base**exponent
    slope = np.where(exponent == 0, 0.0, exponent * base ** (exponent - 1))
    factor = exponent * (exponent - 1)
    bend = np.where(factor == 0, 0.0, factor * base ** (exponent - 2))
    if 1 not in varying:
        return value, [slope, None], {(0, 0): bend}
    logarithm = np.log(base)
    mixed = base ** (exponent - 1) * (1 + exponent * logarithm)
    return value, [slope, value * logarithm], {(0, 0): bend, (0, 1): mixed, (1, 1): value * logarithm * logarithm}


def _absolute(values: list[Any], varying: list[int]) -> Local:
    return np.abs(values[0]), [np.sign(values[0])], {}


def _largest(values: list[Any], varying: list[int]) -> Local:
    return _extreme(values, 1.0)


def _smallest(values: list[Any], varying: list[int]) -> Local:
    return _extreme(values, -1.0)


def _extreme(values: list[Any], sign: float) -> Local:
    """The largest (1) or smallest (-1); of several that are, the first one's slope, which is a subgradient."""
    broadcast = np.broadcast_arrays(*(np.asarray(each, dtype=float) for each in values))
    chosen = np.argmax(sign * np.stack(broadcast), axis=0)
    value = np.choose(chosen, broadcast) if len(broadcast) <= 32 else np.max(sign * np.stack(broadcast), axis=0) * sign
    return value, [(chosen == k).astype(float) for k in range(len(values))], {}


def _either(values: list[Any], varying: list[int]) -> Local:
    test = np.asarray(values[0]) != 0
    return np.where(test, values[1], values[2]), [None, test.astype(float), (~test).astype(float)], {}


_RULES: dict[str, Callable[[list[Any], list[int]], Local]] = {
    "+": _sum,
    "-": _negation,
    "*": _product,
    "/": _quotient,
    "**": _power,
    "abs": _absolute,
    "max": _largest,
    "min": _smallest,
    "if": _either,
}
