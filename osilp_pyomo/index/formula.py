"""Formulas of the index as numpy functions: their source text, and where they have kinks or jumps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.curves import CurveStack

_FUNCTIONS = {
    "exp": "exp", "log": "log", "log10": "log10", "sqrt": "sqrt", "ceil": "ceil", "floor": "floor",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


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
