"""Every function and operator that a formula can hold, and all that is known of each, in one table.

A formula is a tree in prefix order (:class:`osilp_pyomo.index.formula.Formula`). For each node of such a tree stands
here: the numpy source of its value; the functions whose sign changes where it has a kink or a jump; its first and
second derivative; what it and its derivatives can be over boxes; its curvature by the rules of disciplined convex
programming (Grant, Boyd and Ye, 2006) with the range of its values; its degree. Whoever needs another property of
formulas adds a method to :class:`Node`, not another reader of trees.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.curves.enclosure import enclose_curve
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.enclosure import Condition, Enclosure, NoEnclosureError, Opening, all_of
from osilp_pyomo.index.enclosures.intervals import Interval, Map

AFFINE, CONVEX, CONCAVE, UNKNOWN, DATA = "affine", "convex", "concave", "unknown", "data"
_FLIPPED = {CONVEX: CONCAVE, CONCAVE: CONVEX}
_ANYTHING = (-np.inf, np.inf)

Range = tuple[float, float]


@dataclass(frozen=True)
class Traits:
    """What the rules know of a formula: its curvature, and an interval that holds its values.

    The curvature of what depends on data only is "data"; a number that stands in the formula is its ``literal``.
    """

    curvature: str
    low: float
    high: float
    literal: float | None = None

    @property
    def constant(self) -> bool:
        """Whether it depends on data only."""
        return self.literal is not None or self.curvature == DATA

    @property
    def kind(self) -> str:
        """Its curvature, where data is affine."""
        return AFFINE if self.curvature == DATA else self.curvature


@dataclass(frozen=True)
class Jet:
    """Texts of a node's value and derivatives along one axis; None for a derivative that is zero."""

    value: str
    first: str | None = None
    second: str | None = None


class Code:
    """Straight-line code that carries values and derivatives through formulas, written line by line.

    Pyomo's own differentiation refuses tanh, Expr_if, floor and our curves, also in parts that hold only data. For
    single numbers (``scalar``) the code uses ``math``, is fast, and can be compiled by numba; else it takes arrays.
    """

    def __init__(self, scalar: bool) -> None:
        self.scalar = scalar
        self.lines: list[str] = []
        self.module, self.arc = ("math", "a") if scalar else ("np", "arc")

    def name(self, text: str) -> str:
        """A name for what a text computes."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def total(self, *parts: str | None) -> str | None:
        """A name for a sum; None where all parts are zero."""
        found = [part for part in parts if part is not None]
        return self.name(" + ".join(found)) if found else None

    def chain(self, value: str, slope: str, bend: str, inner: Jet) -> Jet:
        """The chain rule for f(inner), with f, f' and f'' at the inner value."""
        first = self.name(f"{slope} * {inner.first}")
        second = f"{bend} * {inner.first} * {inner.first}"
        if inner.second is not None:
            second += f" + {slope} * {inner.second}"
        return Jet(value, first, self.name(second))

    def either(self, test: str, yes: Jet, no: Jet) -> Jet:
        """One of two, by a test."""

        def pick(one: str | None, other: str | None) -> str | None:
            if one is None and other is None:
                return None
            one, other = one or "0.0", other or "0.0"
            return self.name(f"({one} if {test} else {other})" if self.scalar else f"np.where({test}, {one}, {other})")

        return Jet(pick(yes.value, no.value) or "0.0", pick(yes.first, no.first), pick(yes.second, no.second))


class Node(ABC):
    """A function or operator; its arguments come in their own order.

    ``apply`` is its value by Python's operators, which numbers, arrays and Pyomo's expressions have; None where they
    have none.
    """

    apply: Callable[..., Any] | None = None
    #: Whether it follows its arguments: a condition does not, it is true or false.
    smooth: bool = True

    @abstractmethod
    def source(self, arguments: Sequence[str]) -> str:
        """Numpy source of its value from those of its arguments."""

    def switches(self, arguments: Sequence[str]) -> list[str]:
        """Sources of the functions whose sign changes where it has a kink or a jump."""
        return []

    @abstractmethod
    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        """Write the code of its value and derivatives."""

    @abstractmethod
    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        """Its enclosure over boxes, or what is known there of a condition, from those of its arguments."""

    def traits(self, parts: Sequence[Traits]) -> Traits:
        """Curvature and range from those of its arguments."""
        with np.errstate(all="ignore"):
            low, high = self.range(parts)
        return Traits(DATA if all(part.constant for part in parts) else self.curvature(parts), low, high)

    def curvature(self, parts: Sequence[Traits]) -> str:
        """Its curvature by the rules; unknown where there is no rule."""
        return UNKNOWN

    def range(self, parts: Sequence[Traits]) -> Range:
        """An interval that holds its values; as wide as need be where there is no rule."""
        return _ANYTHING

    def degree(self, degrees: Sequence[int], literals: Sequence[str | None]) -> int | None:
        """Degree as a polynomial from those of its arguments, not all zero; None where it is none."""
        return None


class _Same(Node):
    """A named Expression: its content."""

    apply = staticmethod(lambda part: part)

    def source(self, arguments: Sequence[str]) -> str:
        return arguments[0]

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return parts[0]

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        return arguments[0]

    def traits(self, parts: Sequence[Traits]) -> Traits:
        return parts[0]

    def degree(self, degrees: Sequence[int], literals: Sequence[str | None]) -> int | None:
        return degrees[0]


class _Sum(Node):
    apply = staticmethod(lambda *parts: sum(parts))

    def source(self, arguments: Sequence[str]) -> str:
        return f"({' + '.join(arguments)})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return reduce(operator.add, parts)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        value = code.name(" + ".join(part.value for part in arguments))
        first = code.total(*(part.first for part in arguments))
        return Jet(value, first, code.total(*(part.second for part in arguments)))

    def curvature(self, parts: Sequence[Traits]) -> str:
        found = {part.kind for part in parts} - {AFFINE}
        return AFFINE if not found else found.pop() if len(found) == 1 else UNKNOWN

    def range(self, parts: Sequence[Traits]) -> Range:
        return sum(part.low for part in parts), sum(part.high for part in parts)

    def degree(self, degrees: Sequence[int], literals: Sequence[str | None]) -> int | None:
        return max(degrees)


class _Negation(Node):
    apply = staticmethod(operator.neg)

    def source(self, arguments: Sequence[str]) -> str:
        return f"(-{arguments[0]})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return -parts[0]

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        (inner,) = arguments
        first = None if inner.first is None else code.name(f"-{inner.first}")
        return Jet(code.name(f"-{inner.value}"), first, None if inner.second is None else code.name(f"-{inner.second}"))

    def curvature(self, parts: Sequence[Traits]) -> str:
        return _FLIPPED.get(parts[0].kind, parts[0].kind)

    def range(self, parts: Sequence[Traits]) -> Range:
        return -parts[0].high, -parts[0].low

    def degree(self, degrees: Sequence[int], literals: Sequence[str | None]) -> int | None:
        return degrees[0]


class _Product(Node):
    apply = staticmethod(operator.mul)

    def source(self, arguments: Sequence[str]) -> str:
        return f"({arguments[0]} * {arguments[1]})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return parts[0].multiply(parts[1], opening.order)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        a, b = arguments
        value = code.name(f"{a.value} * {b.value}")
        firsts, seconds = [], []
        for one, other in ((a, b), (b, a)):
            if one.first is not None:
                firsts.append(f"{one.first} * {other.value}")
            if one.second is not None:
                seconds.append(f"{one.second} * {other.value}")
        if a.first is not None and b.first is not None:
            seconds.append(f"2.0 * {a.first} * {b.first}")
        return Jet(value, code.total(*firsts), code.total(*seconds))

    def curvature(self, parts: Sequence[Traits]) -> str:
        one, other = parts
        return _times(one, other.kind) if one.constant else _times(other, one.kind)

    def range(self, parts: Sequence[Traits]) -> Range:
        return _corners(parts[0], parts[1].low, parts[1].high)

    def degree(self, degrees: Sequence[int], literals: Sequence[str | None]) -> int | None:
        return degrees[0] + degrees[1]


class _Quotient(Node):
    """``a / b``; its curvature is known where one of both is constant."""

    apply = staticmethod(operator.truediv)

    def source(self, arguments: Sequence[str]) -> str:
        return f"({arguments[0]} / {arguments[1]})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        one, other = parts
        if other.constant:
            return one.over(other.value)
        return one.multiply(_raised(other, np.array(-1.0), opening), opening.order)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        a, b = arguments
        value = code.name(f"{a.value} / {b.value}")
        if a.first is None and b.first is None:
            return Jet(value)
        parts = [part for part in (a.first, None if b.first is None else f"-{value} * {b.first}") if part]
        first = code.name(f"({' + '.join(parts)}) / {b.value}")
        parts = [] if a.second is None else [a.second]
        if b.first is not None:
            parts.append(f"-2.0 * {first} * {b.first}")
        if b.second is not None:
            parts.append(f"-{value} * {b.second}")
        return Jet(value, first, code.name(f"({' + '.join(parts)}) / {b.value}") if parts else None)

    def curvature(self, parts: Sequence[Traits]) -> str:
        one, other = parts
        if other.constant:
            return _times(other, one.kind)
        if one.constant and other.kind in (AFFINE, CONCAVE) and other.low > 0:
            return CONVEX if one.low >= 0 else CONCAVE if one.high <= 0 else UNKNOWN
        return UNKNOWN

    def range(self, parts: Sequence[Traits]) -> Range:
        one, other = parts
        return _ANYTHING if other.low <= 0 <= other.high else _corners(one, 1 / other.high, 1 / other.low)

    def degree(self, degrees: Sequence[int], literals: Sequence[str | None]) -> int | None:
        return degrees[0] if degrees[1] == 0 else None


def _times(factor: Traits, kind: str) -> str:
    """Curvature of a factor times something of a curvature."""
    if not factor.constant:
        return UNKNOWN
    if kind == AFFINE:
        return AFFINE
    return kind if factor.low >= 0 else _FLIPPED.get(kind, kind) if factor.high <= 0 else UNKNOWN


def _corners(one: Traits, low: float, high: float) -> Range:
    corners = np.array([one.low * low, one.low * high, one.high * low, one.high * high])
    corners = np.where(np.isnan(corners), 0.0, corners)
    return float(corners.min()), float(corners.max())


class _Power(Node):
    """``base ** exponent``; its curvature is known where the exponent is a literal."""

    apply = staticmethod(operator.pow)

    def source(self, arguments: Sequence[str]) -> str:
        """Small whole powers by products, which numpy does many times faster than its power."""
        base, exponent = arguments
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

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        base, exponent = parts
        if exponent.constant and iv.is_exact(exponent.value):
            return _raised(base, exponent.value[0], opening)
        # a ** b = exp(b log a)
        logarithm = NODES["log"].enclose([base], opening)
        return NODES["exp"].enclose([exponent.multiply(logarithm, opening.order)], opening)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        base, exponent = arguments
        if exponent.first is not None:
            # a ** b = exp(b log a)
            logarithm = NODES["*"].derive(code, [exponent, NODES["log"].derive(code, [base])])
            return NODES["exp"].derive(code, [logarithm])
        power = exponent.value
        if power.strip("()") == "2":
            return NODES["*"].derive(code, [base, base])
        value = code.name(f"{base.value} ** {power}")
        if base.first is None:
            return Jet(value)
        slope = code.name(f"{power} * {base.value} ** ({power} - 1)")
        bend = code.name(f"{power} * ({power} - 1) * {base.value} ** ({power} - 2)")
        return code.chain(value, slope, bend, base)

    def curvature(self, parts: Sequence[Traits]) -> str:
        base, power = parts[0], parts[1].literal
        if power is None:
            return UNKNOWN
        if power == 1:
            return base.kind
        even = power > 0 and power % 2 == 0
        if even and (base.kind == AFFINE or (base.kind == CONVEX and base.low >= 0)):
            return CONVEX
        if power > 1 and base.low >= 0 and base.kind in (AFFINE, CONVEX):
            return CONVEX
        if 0 < power < 1 and base.kind in (AFFINE, CONCAVE):
            return CONCAVE
        if power < 0 and base.low > 0 and base.kind in (AFFINE, CONCAVE):
            return CONVEX
        return UNKNOWN

    def range(self, parts: Sequence[Traits]) -> Range:
        base, power = parts[0], parts[1].literal
        if power is None:
            return _ANYTHING
        if power == int(power) and power > 0:
            ends = [base.low ** int(power), base.high ** int(power)]
            return (0.0 if power % 2 == 0 and base.low <= 0 <= base.high else min(ends)), max(ends)
        if base.low >= 0 and power > 0:
            return base.low**power, base.high**power
        return (0.0, np.inf) if base.low >= 0 else _ANYTHING

    def degree(self, degrees: Sequence[int], literals: Sequence[str | None]) -> int | None:
        exponent = literals[1]
        return degrees[0] * int(exponent) if exponent is not None and exponent.isdigit() else None


class _Absolute(Node):
    apply = staticmethod(abs)

    def source(self, arguments: Sequence[str]) -> str:
        return f"np.abs({arguments[0]})"

    def switches(self, arguments: Sequence[str]) -> list[str]:
        return [arguments[0]]

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return parts[0].absolute(opening)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        (inner,) = arguments
        negative = NODES["-"].derive(code, [inner])
        return code.either(code.name(f"{inner.value} >= 0"), inner, negative)

    def curvature(self, parts: Sequence[Traits]) -> str:
        inner = parts[0]
        return CONVEX if inner.kind == AFFINE or (inner.kind == CONVEX and inner.low >= 0) else UNKNOWN

    def range(self, parts: Sequence[Traits]) -> Range:
        low, high = abs(parts[0].low), abs(parts[0].high)
        return (0.0 if parts[0].low <= 0 <= parts[0].high else min(low, high)), max(low, high)


@dataclass(frozen=True)
class _Extreme(Node):
    """The smallest or the largest of its arguments."""

    function: str
    mark: str
    kind: str
    pick: Callable[..., float]

    def source(self, arguments: Sequence[str]) -> str:
        return reduce(lambda one, other: f"np.{self.function}({one}, {other})", arguments)

    def switches(self, arguments: Sequence[str]) -> list[str]:
        before = [self.source(arguments[:k]) for k in range(1, len(arguments))]
        return [f"({one} - {other})" for one, other in zip(before, arguments[1:], strict=True)]

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        if self.kind == CONVEX:
            return reduce(lambda one, other: one.larger(other, opening), parts)
        # The smallest is the negative of the largest negative.
        return -reduce(lambda one, other: one.larger(other, opening), [-part for part in parts])

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        result = arguments[0]
        for other in arguments[1:]:
            result = code.either(code.name(f"{result.value} {self.mark} {other.value}"), result, other)
        return result

    def curvature(self, parts: Sequence[Traits]) -> str:
        return self.kind if all(part.kind in (AFFINE, self.kind) for part in parts) else UNKNOWN

    def range(self, parts: Sequence[Traits]) -> Range:
        return self.pick(part.low for part in parts), self.pick(part.high for part in parts)


class _If(Node):
    def source(self, arguments: Sequence[str]) -> str:
        return f"np.where({', '.join(arguments)})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return parts[1].given(_as_condition(parts[0]), parts[2], opening)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        return code.either(arguments[0].value, arguments[1], arguments[2])

    def range(self, parts: Sequence[Traits]) -> Range:
        return min(parts[1].low, parts[2].low), max(parts[1].high, parts[2].high)


@dataclass(frozen=True)
class _Comparison(Node):
    mark: str
    apply: Callable[..., Any] | None = None

    smooth: bool = False

    def source(self, arguments: Sequence[str]) -> str:
        return f"({arguments[0]} {self.mark} {arguments[1]})"

    def switches(self, arguments: Sequence[str]) -> list[str]:
        return [f"({arguments[0]} - {arguments[1]})"]

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return _compared(self.mark, *parts)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        return Jet(code.name(f"{arguments[0].value} {self.mark} {arguments[1].value}"))


@dataclass(frozen=True)
class _Ranged(Node):
    """Two comparisons of three arguments."""

    left: str
    right: str

    smooth: bool = False

    def source(self, arguments: Sequence[str]) -> str:
        low, middle, high = arguments
        return f"(({low} {self.left} {middle}) & ({middle} {self.right} {high}))"

    def switches(self, arguments: Sequence[str]) -> list[str]:
        low, middle, high = arguments
        return [f"({low} - {middle})", f"({middle} - {high})"]

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        low, middle, high = parts
        return all_of([_compared(self.left, low, middle), _compared(self.right, middle, high)])

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        return Jet(code.name(self.source([part.value for part in arguments])))


@dataclass(frozen=True)
class _Connective(Node):
    mark: str

    smooth: bool = False

    def source(self, arguments: Sequence[str]) -> str:
        return "(" + f" {self.mark} ".join(arguments) + ")"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        conditions = [_as_condition(part) for part in parts]
        if self.mark == "&":
            return all_of(conditions)
        return all_of([each.negated() for each in conditions]).negated()

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        return Jet(code.name(f" {self.mark} ".join(f"({part.value})" for part in arguments)))


class _Not(Node):
    smooth = False

    def source(self, arguments: Sequence[str]) -> str:
        return f"np.logical_not({arguments[0]})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return _as_condition(parts[0]).negated()

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        return Jet(code.name(f"({arguments[0].value}) == False"))


class _Curve(Node):
    """A Profile at some coordinates; its first argument is the slot that holds it."""

    def source(self, arguments: Sequence[str]) -> str:
        return f"{arguments[0]}({', '.join(arguments[1:])})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        return enclose_curve(parts[0], parts[1:], opening)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        if any(argument.first for argument in arguments):
            raise ValueError("a Profile of the decision has no derivative")
        return Jet(code.name(self.source([argument.value for argument in arguments])))


def _raised(base: Enclosure, exponent: Any, opening: Opening) -> Enclosure:
    """A power with an exponent that is a number for each column."""
    if exponent.size == 1 and exponent.item() == 2:
        return base.through(iv.square, lambda a: (2 * a[0], 2 * a[1]), lambda a: iv.exact(2.0), opening.order)
    if exponent.size == 1 and exponent.item() == 1:
        return base

    def derived(times: Any, lower: Any) -> Map:
        def enclose(a: Interval) -> Interval:
            low, high = iv.power(a, lower)
            # A whole power has no further derivatives, whatever its base is raised to.
            return iv.multiply(iv.exact(times), (np.where(times == 0, 0.0, low), np.where(times == 0, 0.0, high)))

        return enclose

    slope = derived(exponent, exponent - 1)
    bend = derived(exponent * (exponent - 1), exponent - 2)
    return base.through(lambda a: iv.power(a, exponent), slope, bend, opening.order)


def _compared(mark: str, one: Enclosure, other: Enclosure) -> Condition:
    """What is known of a comparison."""
    if isinstance(one, Condition) or isinstance(other, Condition):
        raise NoEnclosureError("a comparison of conditions")
    gap = one - other
    low, high = map(np.atleast_2d, gap.value)
    if mark in ("==", "!="):
        same, apart = (low == 0) & (high == 0), (low > 0) | (high < 0)
        equal = Condition(same, apart, (gap, -gap))
        return equal if mark == "==" else equal.negated()
    if mark == "<=":
        return Condition(high <= 0, low > 0, (gap,), (-gap,))
    return Condition(high < 0, low >= 0, (gap,), (-gap,))


def _as_condition(part: Any) -> Condition:
    """A condition, or a number that stands for one: it holds where the number is not zero."""
    if isinstance(part, Condition):
        return part
    low, high = (np.atleast_2d(end) for end in part.value)
    return Condition((low > 0) | (high < 0), (low == 0) & (high == 0))


# What a monotone function makes of the curvature of its argument.
_CurvatureRule = Callable[[Traits], str]


def _bends(kind: str, taken: tuple[str, ...], where: Callable[[Traits], bool] = lambda inner: True) -> _CurvatureRule:
    """The rule "of such a curvature, where its argument is one of these, and where it lies"."""
    return lambda inner: kind if inner.kind in taken and where(inner) else UNKNOWN


@dataclass(frozen=True)
class Function(Node):
    """A function of one number.

    ``slope`` and ``bend`` are its derivatives at {v}, with its value already in {r}, in module {m}; none for steps.
    numpy calls the inverse functions arcsin and so on.
    """

    name: str
    slope: str = ""
    bend: str = ""
    rule: _CurvatureRule = lambda _: UNKNOWN
    values: Callable[[float, float], Range] = lambda low, high: _ANYTHING

    @property
    def _call(self) -> str:
        return "{m}.{a}" + self.name[1:] if self.name.startswith("a") else "{m}." + self.name

    def source(self, arguments: Sequence[str]) -> str:
        return f"{self._call.format(m='np', a='arc')}({arguments[0]})"

    def enclose(self, parts: Sequence[Any], opening: Opening) -> Any:
        (inner,) = parts
        if self.name in _STEPS:
            return inner.stepped(_STEPS[self.name], opening)
        return inner.through(*_ENCLOSED[self.name], opening.order)

    def derive(self, code: Code, arguments: Sequence[Jet]) -> Jet:
        (inner,) = arguments
        names = {"m": code.module, "a": code.arc, "v": inner.value}
        names["r"] = code.name(f"{self._call.format(**names)}({inner.value})")
        if inner.first is None or not self.slope:
            return Jet(names["r"])
        slope = code.name(self.slope.format(**names))
        return code.chain(names["r"], slope, code.name(self.bend.format(**names)), inner)

    def curvature(self, parts: Sequence[Traits]) -> str:
        return self.rule(parts[0])

    def range(self, parts: Sequence[Traits]) -> Range:
        return self.values(parts[0].low, parts[0].high)


def _monotone(function: Callable[[float], float], least: float = -np.inf) -> Callable[[float, float], Range]:
    """Values of an increasing function that is defined from ``least`` on."""
    return lambda low, high: (float(function(max(low, least))), float(function(max(high, least))))


def _nonnegative(inner: Traits) -> bool:
    return inner.low >= 0


_RISING_CONCAVE = _bends(CONCAVE, (AFFINE, CONCAVE))
_ROOT = "{m}.sqrt(1.0 - {v} * {v})"

#: Functions of one number, by Pyomo's names.
FUNCTIONS: dict[str, Function] = {
    each.name: each
    for each in (
        Function("exp", "{r}", "{r}", _bends(CONVEX, (AFFINE, CONVEX)), _monotone(np.exp)),
        Function(
            "log",
            "1.0 / {v}",
            "-1.0 / ({v} * {v})",
            _RISING_CONCAVE,
            lambda low, high: (float(np.log(low)), float(np.log(high))) if low > 0 else _ANYTHING,
        ),
        Function("log10", "0.4342944819032518 / {v}", "-0.4342944819032518 / ({v} * {v})", _RISING_CONCAVE),
        Function("sqrt", "0.5 / {r}", "-0.25 / ({v} * {r})", _RISING_CONCAVE, _monotone(np.sqrt, 0.0)),
        Function("sin", "{m}.cos({v})", "-{r}", values=lambda low, high: (-1.0, 1.0)),
        Function("cos", "-{m}.sin({v})", "-{r}", values=lambda low, high: (-1.0, 1.0)),
        Function(
            "tan",
            "1.0 + {r} * {r}",
            "2.0 * {r} * (1.0 + {r} * {r})",
            _bends(CONVEX, (AFFINE,), lambda inner: inner.low >= 0 and inner.high < np.pi / 2),
        ),
        Function("asin", f"1.0 / {_ROOT}", "{v} / (1.0 - {v} * {v}) ** 1.5"),
        Function("acos", f"-1.0 / {_ROOT}", "-{v} / (1.0 - {v} * {v}) ** 1.5"),
        Function(
            "atan",
            "1.0 / (1.0 + {v} * {v})",
            "-2.0 * {v} / (1.0 + {v} * {v}) ** 2",
            _bends(CONCAVE, (AFFINE, CONCAVE), _nonnegative),
        ),
        Function("sinh", "{m}.cosh({v})", "{r}", _bends(CONVEX, (AFFINE,), _nonnegative)),
        Function("cosh", "{m}.sinh({v})", "{r}", _bends(CONVEX, (AFFINE,)), lambda low, high: (1.0, np.inf)),
        Function(
            "tanh",
            "1.0 - {r} * {r}",
            "-2.0 * {r} * (1.0 - {r} * {r})",
            _bends(CONCAVE, (AFFINE, CONCAVE), _nonnegative),
            lambda low, high: (-1.0, 1.0),
        ),
        Function(
            "asinh",
            "1.0 / {m}.sqrt({v} * {v} + 1.0)",
            "-{v} / ({v} * {v} + 1.0) ** 1.5",
            _bends(CONCAVE, (AFFINE, CONCAVE), _nonnegative),
        ),
        Function("acosh", "1.0 / {m}.sqrt({v} * {v} - 1.0)", "-{v} / ({v} * {v} - 1.0) ** 1.5"),
        Function("atanh", "1.0 / (1.0 - {v} * {v})", "2.0 * {v} / (1.0 - {v} * {v}) ** 2"),
        Function("ceil"),
        Function("floor"),
    )
}


def _rooted(inside: Map) -> Map:
    """One over the root of something that is not negative."""
    return lambda a: iv.reciprocal(_ROOT_OF(inside(a)))


def _cubed(mapped: Map) -> Map:
    return lambda a: iv.power(mapped(a), np.array(3.0))


def _minus(mapped: Map) -> Map:
    return lambda a: iv.negative(mapped(a))


def _times_itself(factor: float, mapped: Map) -> Map:
    """A number times the argument times a function of it."""
    return lambda a: iv.multiply(iv.multiply(iv.exact(factor), a), mapped(a))


def _one_minus_square(a: Interval) -> Interval:
    return iv.subtract(iv.exact(1.0), iv.square(a))


def _one_plus_square(a: Interval) -> Interval:
    return iv.add(iv.exact(1.0), iv.square(a))


def _square_minus_one(a: Interval) -> Interval:
    return iv.subtract(iv.square(a), iv.exact(1.0))


def _bent_like(factor: float, value: Map, slope: Map) -> Map:
    """A number times the value of a function times its slope."""
    return lambda a: iv.multiply(iv.exact(factor), iv.multiply(value(a), slope(a)))


def _exp(values: FloatArray) -> FloatArray:
    """What is too large for a number is above the largest one, which a lower end may be."""
    return np.minimum(np.exp(values), np.finfo(float).max)


_EXP = iv.not_below(iv.rising(_exp), 0.0)
_ROOT_OF = iv.not_below(iv.rising(np.sqrt, 0.0), 0.0)
_SINH, _TANH = iv.rising(np.sinh), iv.between(iv.rising(np.tanh), -1.0, 1.0)
_TENTH = iv.exact(1 / np.log(10))
_TAN_SLOPE: Map = lambda a: _one_plus_square(iv.tangent(a))  # noqa: E731
_TANH_SLOPE = iv.between(lambda a: _one_minus_square(_TANH(a)), 0.0, 1.0)
_ASIN_SLOPE, _ASINH_SLOPE = _rooted(_one_minus_square), _rooted(_one_plus_square)
_ACOSH_SLOPE = _rooted(_square_minus_one)
_ATAN_SLOPE: Map = lambda a: iv.reciprocal(_one_plus_square(a))  # noqa: E731
_ATANH_SLOPE: Map = lambda a: iv.reciprocal(_one_minus_square(a))  # noqa: E731
_LOG_SLOPE: Map = lambda a: iv.reciprocal(a)  # noqa: E731


def _per_ten(mapped: Map) -> Map:
    # One over the logarithm of ten is itself rounded.
    factor = iv.moved(*_TENTH)
    return lambda a: iv.multiply(factor, mapped(a))


#: Enclosures of each function, its first and its second derivative, from an enclosure of its argument.
_ENCLOSED: dict[str, tuple[Map, Map, Map]] = {
    "exp": (_EXP, _EXP, _EXP),
    "log": (iv.rising(np.log, 0.0), _LOG_SLOPE, _minus(lambda a: iv.square(_LOG_SLOPE(a)))),
    "log10": (
        iv.rising(np.log10, 0.0),
        _per_ten(_LOG_SLOPE),
        _per_ten(_minus(lambda a: iv.square(_LOG_SLOPE(a)))),
    ),
    "sqrt": (
        _ROOT_OF,
        lambda a: iv.multiply(iv.exact(0.5), iv.reciprocal(_ROOT_OF(a))),
        lambda a: iv.multiply(iv.exact(-0.25), _cubed(lambda b: iv.reciprocal(_ROOT_OF(b)))(a)),
    ),
    "sin": (iv.sine, iv.cosine, _minus(iv.sine)),
    "cos": (iv.cosine, _minus(iv.sine), _minus(iv.cosine)),
    "tan": (iv.tangent, _TAN_SLOPE, _bent_like(2.0, iv.tangent, _TAN_SLOPE)),
    "asin": (iv.rising(np.arcsin, -1.0, 1.0), _ASIN_SLOPE, _times_itself(1.0, _cubed(_ASIN_SLOPE))),
    "acos": (
        lambda a: iv.negative(iv.rising(lambda w: -np.arccos(w), -1.0, 1.0)(a)),
        _minus(_ASIN_SLOPE),
        _times_itself(-1.0, _cubed(_ASIN_SLOPE)),
    ),
    "atan": (iv.rising(np.arctan), _ATAN_SLOPE, _times_itself(-2.0, lambda a: iv.square(_ATAN_SLOPE(a)))),
    "sinh": (_SINH, iv.hyperbolic_cosine, _SINH),
    "cosh": (iv.hyperbolic_cosine, _SINH, iv.hyperbolic_cosine),
    "tanh": (_TANH, _TANH_SLOPE, _bent_like(-2.0, _TANH, _TANH_SLOPE)),
    "asinh": (iv.rising(np.arcsinh), _ASINH_SLOPE, _times_itself(-1.0, _cubed(_ASINH_SLOPE))),
    "acosh": (iv.rising(np.arccosh, 1.0), _ACOSH_SLOPE, _times_itself(-1.0, _cubed(_ACOSH_SLOPE))),
    "atanh": (iv.rising(np.arctanh, -1.0, 1.0), _ATANH_SLOPE, _times_itself(2.0, lambda a: iv.square(_ATANH_SLOPE(a)))),
}

#: Functions with steps.
_STEPS: dict[str, Map] = {
    "floor": lambda a: (np.floor(a[0]), np.floor(a[1])),
    "ceil": lambda a: (np.ceil(a[0]), np.ceil(a[1])),
}

#: Every node by its name in a formula.
NODES: dict[str, Node] = {
    "same": _Same(),
    "+": _Sum(),
    "-": _Negation(),
    "*": _Product(),
    "/": _Quotient(),
    "**": _Power(),
    "abs": _Absolute(),
    "min": _Extreme("minimum", "<=", CONCAVE, min),
    "max": _Extreme("maximum", ">=", CONVEX, max),
    "if": _If(),
    "<=": _Comparison("<=", operator.le),
    "<": _Comparison("<", operator.lt),
    "==": _Comparison("==", operator.eq),
    "!=": _Comparison("!="),
    # Strict where the name has "<".
    **{f"ranged{a}{b}": _Ranged(a.replace("=", "<="), b.replace("=", "<=")) for a in "<=" for b in "<="},
    "and": _Connective("&"),
    "or": _Connective("|"),
    "not": _Not(),
    "curve": _Curve(),
    **FUNCTIONS,
}
