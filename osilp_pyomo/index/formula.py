"""Formulas: trees of functions and operators in prefix order, and one way to fold over them.

What each node is stands in :mod:`osilp_pyomo.index.nodes`; from it a formula has its numpy function, its derivatives,
its curvature and its degree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import ModelError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.enclosure import Enclosure, Opening
from osilp_pyomo.index.nodes import AFFINE, NODES, Code, Jet, Traits

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Formula:
    """A tree in prefix order with slots for data.

    ``shape`` holds (name, number of arguments) for a node, a whole number for a coordinate, and "#" for a slot.
    ``literals[k]`` is the text of slot k where it is always the same number; None where data fill it.
    """

    shape: tuple[Any, ...]
    literals: tuple[str | None, ...]

    def fold(
        self,
        literal: Callable[[str], _Value],
        slots: Sequence[_Value],
        axis: Callable[[int], _Value],
        node: Callable[[str, list[_Value]], _Value],
    ) -> _Value:
        """What the whole is, from what its literals, data, coordinates and nodes are.

        A curve gets the slot that holds it as its first argument.
        """
        rest = iter(slots)
        leaves = [next(rest) if text is None else literal(text) for text in self.literals]
        stack: list[_Value] = []
        # Prefix order read from its end is a stack machine; arguments come off in their own order.
        for token in reversed(self.shape):
            if token == "#":
                stack.append(leaves.pop())
            elif isinstance(token, int):
                stack.append(axis(token))
            else:
                name, count = token
                arguments = [stack.pop() for _ in range(count)]
                stack.append(node(name, [leaves.pop(), *arguments] if name == "curve" else arguments))
        (result,) = stack
        return result

    @classmethod
    def sum_of(cls, parts: Sequence[Formula]) -> Formula:
        """The sum of formulas; its slots are theirs, one after the other."""
        shape = (("+", len(parts)), *(token for part in parts for token in part.shape))
        return cls(shape, tuple(literal for part in parts for literal in part.literals))

    def weighted(self) -> Formula:
        """The formula times the number in one further slot, the last one."""
        return Formula((("*", 2), *self.shape, "#"), (*self.literals, None))

    def source(self, slots: Sequence[Any] | None = None) -> tuple[str, list[str]]:
        """Numpy source, and that of the functions whose sign decides where it has kinks or jumps.

        ``slots`` are the data, which are looked at for curves and their knots.
        """
        count = self.literals.count(None)
        data = {f"s[{k}]": slot for k, slot in enumerate(slots or [None] * count)}
        switches: list[str] = []

        def node(name: str, arguments: list[str]) -> str:
            if name == "curve":
                switches.extend(_knot_switches(arguments[1:], data[arguments[0]]))
            switches.extend(NODES[name].switches(arguments))
            return NODES[name].source(arguments)

        source = self.fold("({})".format, list(data), "u[{}]".format, node)
        curves = [f"{name}(" for name, slot in data.items() if isinstance(slot, CurveStack)]
        switches = [switch for switch in switches if not any(curve in switch for curve in curves)]
        return source, list(dict.fromkeys(switches))

    def derive(self, code: Code, slots: Sequence[str], axes: Mapping[int, str], along: int) -> Jet:
        """Write its value and derivatives along one axis; ``slots`` are texts of data, ``axes`` of coordinates."""
        return self.fold(
            lambda text: Jet(f"({text})"),
            [Jet(slot) for slot in slots],
            lambda axis: Jet(axes[axis], "1.0" if axis == along else None),
            lambda name, arguments: NODES[name].derive(code, arguments),
        )

    def traits(self, slots: Sequence[Traits], axes: Mapping[int, Traits]) -> Traits:
        """Curvature and range by the rules of convex programming, from those of data and coordinates."""

        def literal(text: str) -> Traits:
            return Traits(AFFINE, float(text), float(text), float(text))

        return self.fold(literal, slots, axes.__getitem__, lambda name, parts: NODES[name].traits(parts))

    def enclose(self, slots: Sequence[Any], axes: Sequence[Enclosure], opening: Opening) -> Any:
        """What it and its derivatives can be over boxes; ``slots`` are the data of some columns, curves among them.

        A condition gives what is known of it there.
        """
        return self.fold(
            lambda text: Enclosure(iv.exact(float(text))),
            [Enclosure(iv.exact(slot)) if isinstance(slot, np.ndarray) else slot for slot in slots],
            axes.__getitem__,
            lambda name, parts: NODES[name].enclose(parts, opening),
        )

    def conditions(self, slots: Sequence[Hashable]) -> list[Hashable]:
        """What each of its conditions is, in the order in which an enclosure meets them: equal for equal ones.

        ``slots`` stand for the data.
        """
        found: list[Hashable] = []

        def node(name: str, parts: list[Hashable]) -> Hashable:
            if name == "if":
                found.append(parts[0])
            return (name, *parts)

        self.fold(lambda text: ("literal", float(text)), slots, lambda axis: ("axis", axis), node)
        return found

    def piecewise_constant(self, slots: Sequence[Any]) -> bool:
        """Whether it is constant between the places where its conditions switch; ``slots`` are the data."""
        held: list[Any] = [slot if isinstance(slot, CurveStack) else False for slot in slots]

        def node(name: str, parts: list[Any]) -> bool:
            """Whether it varies with the coordinates other than by steps."""
            if name == "curve":
                return parts[0].form is None or parts[0].form.kind == "linear"
            return any(parts[1:]) if name == "if" else NODES[name].smooth and any(parts)

        return not self.fold(lambda _: False, held, lambda _: True, node)

    def degree(self) -> int | None:
        """Degree as a polynomial of the coordinates; None where it is none."""

        def node(name: str, parts: list[tuple[int | None, str | None]]) -> tuple[int | None, str | None]:
            known = [degree for degree, _ in parts if degree is not None]
            if len(known) < len(parts) or not any(known):
                return (None if len(known) < len(parts) else 0), None
            return NODES[name].degree(known, [literal for _, literal in parts]), None

        data: list[tuple[int | None, str | None]] = [(0, None)] * self.literals.count(None)
        return self.fold(lambda text: (0, text), data, lambda _: (1, None), node)[0]


def _knot_switches(arguments: list[str], curves: CurveStack) -> list[str]:
    """Where a formula in place of the bare index meets a knot of a curve (those of the bare index are marks)."""
    if all(argument.startswith("u[") for argument in arguments):
        return []
    switches = []
    for argument, knots in zip(arguments, curves.common_knots(), strict=True):
        switches += [f"({argument} - ({float(knot)!r}))" for knot in knots]
    return switches


# -- functions from their source -------------------------------------------------------------------------------


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
        try:
            self.function = eval(f"lambda s, u: {source}", names)
        except (RecursionError, MemoryError):
            raise ModelError(
                f"A formula of {len(source):,} characters is too long to be compiled; write long sums by osilp.dot, or "
                "as several rows."
            ) from None

    def __call__(self, slots: Sequence[Any], coordinates: Sequence[FloatArray]) -> Any:
        return self.function(slots, coordinates)

    def __reduce__(self) -> tuple[Any, ...]:
        return kernel_of, (self.source,)

    def __repr__(self) -> str:
        return f"CompiledKernel({self.source!r})"


@lru_cache(maxsize=4096)
def kernel_of(source: str) -> CompiledKernel:
    """The numpy function of a source text; the same text gives the same function."""
    return CompiledKernel(source)


@lru_cache(maxsize=1024)
def define(source: str, name: str) -> Callable[..., Any]:
    """The function that a source text defines; the same text gives the same function."""
    names: dict[str, Any] = {"np": np, "math": math, "inf": math.inf, "nan": math.nan}
    exec(source, names)
    return names[name]


def function_text(name: str, arguments: str, lines: Sequence[str], result: str) -> str:
    """The source of a function from its lines."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}({arguments}):\n{body}    return {result}\n"
