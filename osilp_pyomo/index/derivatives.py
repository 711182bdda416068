"""Derivatives: the source of straight-line code that carries (value, first, second derivative) through a formula.

A formula comes as its shape (prefix order, see ``expressions.py``); each node becomes a line or two. Pyomo's own
differentiation refuses tanh, Expr_if, floor and our curves, also in parts that hold only data. Written with scalar
functions the code is fast on single numbers and can be compiled by numba; written with numpy's it takes arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

# value, first and second derivative of f at v, with f(v) already in {r}
_UNARY: dict[str, tuple[str, str, str]] = {
    "exp": ("{m}.exp({v})", "{r}", "{r}"),
    "log": ("{m}.log({v})", "1.0 / {v}", "-1.0 / ({v} * {v})"),
    "log10": ("{m}.log10({v})", "0.4342944819032518 / {v}", "-0.4342944819032518 / ({v} * {v})"),
    "sqrt": ("{m}.sqrt({v})", "0.5 / {r}", "-0.25 / ({v} * {r})"),
    "sin": ("{m}.sin({v})", "{m}.cos({v})", "-{r}"),
    "cos": ("{m}.cos({v})", "-{m}.sin({v})", "-{r}"),
    "tan": ("{m}.tan({v})", "1.0 + {r} * {r}", "2.0 * {r} * (1.0 + {r} * {r})"),
    "asin": ("{m}.{a}sin({v})", "1.0 / {m}.sqrt(1.0 - {v} * {v})", "{v} / (1.0 - {v} * {v}) ** 1.5"),
    "acos": ("{m}.{a}cos({v})", "-1.0 / {m}.sqrt(1.0 - {v} * {v})", "-{v} / (1.0 - {v} * {v}) ** 1.5"),
    "atan": ("{m}.{a}tan({v})", "1.0 / (1.0 + {v} * {v})", "-2.0 * {v} / (1.0 + {v} * {v}) ** 2"),
    "sinh": ("{m}.sinh({v})", "{m}.cosh({v})", "{r}"),
    "cosh": ("{m}.cosh({v})", "{m}.sinh({v})", "{r}"),
    "tanh": ("{m}.tanh({v})", "1.0 - {r} * {r}", "-2.0 * {r} * (1.0 - {r} * {r})"),
    "asinh": ("{m}.{a}sinh({v})", "1.0 / {m}.sqrt({v} * {v} + 1.0)", "-{v} / ({v} * {v} + 1.0) ** 1.5"),
    "acosh": ("{m}.{a}cosh({v})", "1.0 / {m}.sqrt({v} * {v} - 1.0)", "-{v} / ({v} * {v} - 1.0) ** 1.5"),
    "atanh": ("{m}.{a}tanh({v})", "1.0 / (1.0 - {v} * {v})", "2.0 * {v} / (1.0 - {v} * {v}) ** 2"),
    "ceil": ("{m}.ceil({v})", "", ""),
    "floor": ("{m}.floor({v})", "", ""),
}


class _Jet:
    """Names of a node's value and derivatives; None for a derivative that is zero."""

    def __init__(self, value: str, first: str | None = None, second: str | None = None) -> None:
        self.value, self.first, self.second = value, first, second


class JetWriter:
    """Writes the code of one formula, differentiated along one axis.

    Parameters
    ----------
    scalar : bool
        For single numbers (``math``) or for arrays (``numpy``).
    """

    def __init__(self, scalar: bool) -> None:
        self.scalar = scalar
        self.lines: list[str] = []
        self._module, self._arc = ("math", "a") if scalar else ("np", "arc")

    def _name(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _sum(self, *parts: str | None) -> str | None:
        found = [part for part in parts if part is not None]
        return self._name(" + ".join(found)) if found else None

    def write(self, shape: Sequence[Any], slots: Sequence[str], axes: Mapping[int, str], along: int) -> _Jet:
        """Write a formula; ``slots`` are the texts of its data, ``axes`` those of its coordinates."""
        stack: list[_Jet] = []
        slot = len(slots)
        # Prefix order read from its end is a stack machine.
        for token in reversed(shape):
            if token == "#":
                slot -= 1
                stack.append(_Jet(slots[slot]))
            elif isinstance(token, int):
                stack.append(_Jet(axes[token], "1.0" if token == along else None))
            else:
                name, count = token
                arguments = [stack.pop() for _ in range(count)]
                if name == "curve":
                    slot -= 1
                    stack.append(self._curve(slots[slot], arguments))
                else:
                    stack.append(self._node(name, arguments))
        (jet,) = stack
        return jet

    def _curve(self, curve: str, arguments: list[_Jet]) -> _Jet:
        if any(argument.first for argument in arguments):
            raise ValueError("a Profile of the decision has no derivative")
        return _Jet(self._name(f"{curve}({', '.join(argument.value for argument in arguments)})"))

    def _node(self, name: str, arguments: list[_Jet]) -> _Jet:
        first = arguments[0]
        if name == "same":
            return first
        if name == "+":
            return _Jet(
                self._name(" + ".join(part.value for part in arguments)),
                self._sum(*(part.first for part in arguments)),
                self._sum(*(part.second for part in arguments)),
            )
        if name == "-":
            return _Jet(
                self._name(f"-{first.value}"),
                None if first.first is None else self._name(f"-{first.first}"),
                None if first.second is None else self._name(f"-{first.second}"),
            )
        if name == "*":
            return self._product(first, arguments[1])
        if name == "/":
            return self._quotient(first, arguments[1])
        if name == "**":
            return self._power(first, arguments[1])
        if name in ("abs", "min", "max", "if"):
            return self._choice(name, arguments)
        if name in ("<=", "<", "==", "!="):
            return _Jet(self._name(f"{first.value} {name} {arguments[1].value}"))
        if name in ("and", "or"):
            mark = {"and": "&", "or": "|"}[name]
            return _Jet(self._name(f" {mark} ".join(f"({part.value})" for part in arguments)))
        if name == "not":
            return _Jet(self._name(f"({first.value}) == False"))
        if name.startswith("ranged"):
            left, right = ("<" if mark == "<" else "<=" for mark in name[-2:])
            low, middle, high = (part.value for part in arguments)
            return _Jet(self._name(f"({low} {left} {middle}) & ({middle} {right} {high})"))
        return self._unary(name, first)

    def _unary(self, name: str, inner: _Jet) -> _Jet:
        value, slope, bend = _UNARY[name]
        names = {"m": self._module, "a": self._arc, "v": inner.value}
        result = self._name(value.format(**names))
        names["r"] = result
        if inner.first is None or not slope:
            return _Jet(result)
        slope = self._name(slope.format(**names))
        bend = self._name(bend.format(**names))
        return self._chain(result, slope, bend, inner)

    def _chain(self, value: str, slope: str, bend: str, inner: _Jet) -> _Jet:
        first = self._name(f"{slope} * {inner.first}")
        second = f"{bend} * {inner.first} * {inner.first}"
        if inner.second is not None:
            second += f" + {slope} * {inner.second}"
        return _Jet(value, first, self._name(second))

    def _product(self, a: _Jet, b: _Jet) -> _Jet:
        value = self._name(f"{a.value} * {b.value}")
        firsts, seconds = [], []
        for one, other in ((a, b), (b, a)):
            if one.first is not None:
                firsts.append(f"{one.first} * {other.value}")
            if one.second is not None:
                seconds.append(f"{one.second} * {other.value}")
        if a.first is not None and b.first is not None:
            seconds.append(f"2.0 * {a.first} * {b.first}")
        return _Jet(value, self._sum(*firsts), self._sum(*seconds))

    def _quotient(self, a: _Jet, b: _Jet) -> _Jet:
        value = self._name(f"{a.value} / {b.value}")
        if a.first is None and b.first is None:
            return _Jet(value)
        parts = [part for part in (a.first, None if b.first is None else f"-{value} * {b.first}") if part]
        first = self._name(f"({' + '.join(parts)}) / {b.value}")
        parts = [] if a.second is None else [a.second]
        if b.first is not None:
            parts.append(f"-2.0 * {first} * {b.first}")
        if b.second is not None:
            parts.append(f"-{value} * {b.second}")
        return _Jet(value, first, self._name(f"({' + '.join(parts)}) / {b.value}") if parts else None)

    def _power(self, base: _Jet, exponent: _Jet) -> _Jet:
        if exponent.first is not None:
            # a ** b = exp(b log a)
            return self._unary("exp", self._product(exponent, self._unary("log", base)))
        power = exponent.value.strip("()")
        if power == "2":
            return self._product(base, base)
        value = self._name(f"{base.value} ** {exponent.value}")
        if base.first is None:
            return _Jet(value)
        slope = self._name(f"{exponent.value} * {base.value} ** ({exponent.value} - 1)")
        bend = self._name(f"{exponent.value} * ({exponent.value} - 1) * {base.value} ** ({exponent.value} - 2)")
        return self._chain(value, slope, bend, base)

    def _pick(self, test: str, yes: str | None, no: str | None) -> str | None:
        if yes is None and no is None:
            return None
        yes, no = yes or "0.0", no or "0.0"
        return self._name(f"({yes} if {test} else {no})" if self.scalar else f"np.where({test}, {yes}, {no})")

    def _choice(self, name: str, arguments: list[_Jet]) -> _Jet:
        if name == "if":
            test, yes, no = arguments[0].value, arguments[1], arguments[2]
            picked = [self._pick(test, getattr(yes, each), getattr(no, each)) for each in ("value", "first", "second")]
            return _Jet(picked[0] or "0.0", picked[1], picked[2])
        if name == "abs":
            inner = arguments[0]
            return self._either(f"{inner.value} >= 0", inner, self._node("-", [inner]))
        result = arguments[0]
        for other in arguments[1:]:
            mark = "<=" if name == "min" else ">="
            result = self._either(f"{result.value} {mark} {other.value}", result, other)
        return result

    def _either(self, test: str, yes: _Jet, no: _Jet) -> _Jet:
        test = self._name(test)
        picked = [self._pick(test, getattr(yes, each), getattr(no, each)) for each in ("value", "first", "second")]
        return _Jet(picked[0] or "0.0", picked[1], picked[2])


def slot_texts(literals: Sequence[str | None], slots: Sequence[str]) -> list[str]:
    """Texts of all slots: the literal where there is one, else the next of ``slots``."""
    rest = iter(slots)
    return [next(rest) if literal is None else f"({literal})" for literal in literals]


@lru_cache(maxsize=1024)
def made(source: str, name: str) -> Callable[..., Any]:
    """The function that a source text defines; the same text gives the same function."""
    names: dict[str, Any] = {"np": np, "math": math, "inf": math.inf, "nan": math.nan}
    exec(source, names)
    return names[name]


def function_text(name: str, arguments: str, lines: Sequence[str], result: str) -> str:
    """The source of a function from its lines."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}({arguments}):\n{body}    return {result}\n"
