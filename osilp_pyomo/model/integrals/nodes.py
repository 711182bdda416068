"""What an integral goes over, and the node of an expression that has its value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyomo.dae import ContinuousSet

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.index.quadrature.adaptive import Line
from osilp_pyomo.index.quadrature.measures import BoxMeasure, IntegralFunction, Measure
from osilp_pyomo.model.profile import NPVProfileExpression, ProfileExpression
from osilp_pyomo.model.sets import some_number

# Points at which a traced rule is compared with its own numbers, as shares of each coordinate's range.
_COMPARED = (0.43, 0.0781, 0.917)

# -- what is integrated over ---------------------------------------------------------------------------------------


class Over(ABC):
    """What an integral goes over, in the user's components; ``names`` has one name for each coordinate."""

    names: tuple[str, ...]

    @abstractmethod
    def measure(self) -> Measure:
        """The same in numbers, as they are now."""

    @abstractmethod
    def trials(self) -> FloatArray:
        """A few points of it."""

    @abstractmethod
    def text(self) -> str:
        """What it is in words, such as ``u in [0, 1]``."""


@dataclass(frozen=True, eq=False)
class OverSets(Over):
    """Continuous sets of the model."""

    sets: tuple[Any, ...]
    names: tuple[str, ...]

    def measure(self) -> BoxMeasure:
        lines, marks = [], []
        for each in self.sets:
            low, high = each.bounds()
            lines.append(Line(-np.inf if low is None else float(low), np.inf if high is None else float(high)))
            points = [float(point) for point in each] if isinstance(each, ContinuousSet) else []
            marks.append(np.array(points, dtype=float))
        return BoxMeasure(tuple(lines), tuple(marks))

    def trials(self) -> FloatArray:
        return np.array([[some_number(each, share) for each in self.sets] for share in _COMPARED])

    def text(self) -> str:
        parts = []
        for name, each in zip(self.names, self.sets, strict=True):
            low, high = each.bounds()
            left = "(-inf" if low is None else f"[{low:g}"
            right = "inf)" if high is None else f"{high:g}]"
            parts.append(f"{name} in {left}, {right}")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class OverMeasure(Over):
    """A sample, or a distribution."""

    given: Measure
    names: tuple[str, ...]
    words: str
    tried: FloatArray

    def measure(self) -> Measure:
        return self.given

    def trials(self) -> FloatArray:
        return self.tried

    def text(self) -> str:
        return self.words


# -- nodes of expressions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IntegralCurve:
    """The integral of a coefficient as a function of the data in it, in place of a Profile's curve in a node.

    ``fill`` has for each slot of the formula the number of the node's argument, or the Profile that stands there;
    ``written`` is the formula as it is printed.
    """

    formula: Formula
    fill: tuple[Any, ...]
    over: Over
    name: str
    dimension: int
    written: Formula

    def curve_table(self) -> IntegralFunction:
        """The function as plain data, with the sets and Profiles as they are now."""
        fill = tuple(
            each if each.__class__ is int else CurveStack.of_tables((each.curve_table(),)) for each in self.fill
        )
        return IntegralFunction(
            self.name, self.formula, fill, self.over.measure(), self.dimension, ", ".join(self.over.names)
        )

    def value_at(self, *data: float) -> float:
        """The integral for some data."""
        return float(self.curve_table()(*(np.array([number], dtype=float) for number in data))[0])

    def text(self, arguments: Sequence[str]) -> str:
        """The integral in words, with texts for the data."""

        def node(name: str, parts: list[str]) -> str:
            if name in _SIGNS:
                joined = _SIGNS[name].join(parts)
                return f"({joined})" if name == "+" else joined
            if name in ("-", "same"):
                return f"-{parts[0]}" if name == "-" else parts[0]
            return f"{parts[0]}({', '.join(parts[1:])})" if name == "curve" else f"{name}({', '.join(parts)})"

        slots = [arguments[each] if each.__class__ is int else str(each.name) for each in self.fill]
        body = self.written.fold(str, slots[: self.written.literals.count(None)], self.over.names.__getitem__, node)
        return f"{WORDS[isinstance(self.over, OverMeasure)]}({body}, {self.over.text()})"


_SIGNS = {"+": " + ", "*": "*", "/": "/", "**": "**", "<=": " <= ", "<": " < ", "==": " == "}
WORDS = {False: "integral", True: "mean"}


class IntegralExpression(ProfileExpression):
    """The node of an integral whose data hold a variable, which is fixed."""

    __slots__ = ()

    def _to_string(self, values: Sequence[str], verbose: bool, smap: Any) -> str:
        return str(self.curve.text(values))


class NPVIntegralExpression(NPVProfileExpression):
    """The node of an integral of data."""

    __slots__ = ()

    def potentially_variable_base_class(self) -> type:
        return IntegralExpression

    def _to_string(self, values: Sequence[str], verbose: bool, smap: Any) -> str:
        return str(self.curve.text(values))
