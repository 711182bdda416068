"""Convex terms: functions of variables and index as arrays, and as rows of the index alone where x is fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.formula import Formula, kernel_of
from osilp_pyomo.offline.curved.tape import Tape
from osilp_pyomo.offline.rows import TermGroup

# Numbers of one array of a tape at most: points come in parts, so that a long formula stays in the cache.
_TAPE = 2**17
# Functions with kinks.
_KINKS = frozenset({"abs", "max", "min"})


@dataclass(frozen=True, eq=False)
class CurvedGroup:
    """Terms of one shape that are not linear in the variables.

    Parameters
    ----------
    formula : Formula
        Its coordinates are those of the index, and after them the variables of a term.
    slots : tuple
        Data, one entry per term, as in :class:`TermGroup`.
    columns : array of int (terms, variables)
        The column of each variable of each term.
    dimension : int
        Coordinates of the index.
    texts : tuple of str
        The terms as the user wrote them.
    """

    formula: Formula
    slots: tuple[Any, ...]
    columns: IntArray
    dimension: int
    texts: tuple[str, ...]

    def tape(self, x: FloatArray, points: FloatArray) -> Tape:
        """Its terms evaluated at points (m, d)."""
        slots = [slot[:, None] if isinstance(slot, np.ndarray) else slot[slice(None)] for slot in self.slots]
        index = [points[None, :, axis] for axis in range(self.dimension)]
        return Tape(self.formula, slots, index, [x[column][:, None] for column in self.columns.T])

    def parts(self, points: FloatArray) -> list[slice]:
        """Parts of the points that are evaluated together."""
        step = max(1, _TAPE // max(1, len(self.columns)))
        return (
            [slice(start, start + step) for start in range(0, len(points), step)] if self.dimension else [slice(None)]
        )

    def fixed_at(self, x: FloatArray, first: int) -> TermGroup:
        """The terms as functions of the index alone, in columns of their own from ``first`` on."""
        shape: list[Any] = []
        literals: list[str | None] = []
        data: list[Any] = []
        own = iter(self.literals_and_slots())
        for token in self.formula.shape:
            if isinstance(token, int) and token >= self.dimension:
                shape.append("#")
                literals.append(None)
                data.append(x[self.columns[:, token - self.dimension]])
                continue
            shape.append(token)
            if token == "#" or (isinstance(token, tuple) and token[0] == "curve"):
                literal, slot = next(own)
                literals.append(literal)
                if literal is None:
                    data.append(slot)
        slots = tuple(data)
        formula = Formula(tuple(shape), tuple(literals))
        source, switches = formula.source(slots)
        columns = first + np.arange(len(self.columns))
        return TermGroup(kernel_of(source), slots, columns, switches=tuple(map(kernel_of, switches)), formula=formula)

    @property
    def kinked(self) -> bool:
        """Whether its terms may have kinks: absolute values, maxima, and norms, which have one at zero."""
        shape = self.formula.shape
        for place, token in enumerate(shape):
            if isinstance(token, tuple):
                if token[0] in _KINKS:
                    return True
                if token[0] == "sqrt" and not isinstance(shape[place + 1], int):
                    return True
        return False

    def literals_and_slots(self) -> list[tuple[str | None, Any]]:
        """For each slot of the formula its literal, or its data."""
        rest = iter(self.slots)
        return [(text, None if text is not None else next(rest)) for text in self.formula.literals]

    def take(self, place: int) -> CurvedGroup:
        """One of the terms."""
        slots = tuple(
            slot.take(np.array([place])) if isinstance(slot, CurveStack) else slot[[place]] for slot in self.slots
        )
        return CurvedGroup(self.formula, slots, self.columns[[place]], self.dimension, (self.texts[place],))


@dataclass(frozen=True, eq=False)
class CurvedTerm:
    """The part of an objective or row that is not linear in the variables, a sum of groups."""

    groups: tuple[CurvedGroup, ...]
    dimension: int

    @cached_property
    def columns(self) -> IntArray:
        """The columns of its variables, increasing."""
        return np.unique(np.concatenate([group.columns.ravel() for group in self.groups]))

    @property
    def terms(self) -> int:
        """Number of its terms."""
        return sum(len(group.columns) for group in self.groups)

    def values(self, x: FloatArray, points: FloatArray) -> FloatArray:
        """Values at points (m, d)."""
        result = np.zeros(len(points))
        for group in self.groups:
            for at in group.parts(points):
                result[at] += group.tape(x, points[at]).values.sum(axis=0)
        return result

    def linearised(self, x: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (m), and gradients (m, n) over ``columns``."""
        values, gradient = np.zeros(len(points)), np.zeros((len(self.columns), len(points)))
        for group in self.groups:
            places = np.searchsorted(self.columns, group.columns)
            for at in group.parts(points):
                tape = group.tape(x, points[at])
                values[at] += tape.values.sum(axis=0)
                for axis, slopes in enumerate(tape.gradient()):
                    np.add.at(gradient[:, at], places[:, axis], slopes)
        return values, gradient.T

    def hessian(self, x: FloatArray, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Sum over the points of weights times Hessians, an array (n, n) over ``columns``."""
        result = np.zeros((len(self.columns),) * 2)
        for group in self.groups:
            places = np.searchsorted(self.columns, group.columns)
            for at in group.parts(points):
                blocks = group.tape(x, points[at]).hessian(weights[at])
                np.add.at(result, (places[:, :, None], places[:, None, :]), blocks)
        return result

    def negated(self) -> CurvedTerm:
        """Its negative."""
        groups = [
            replace(group, formula=Formula((("-", 1), *group.formula.shape), group.formula.literals))
            for group in self.groups
        ]
        return CurvedTerm(tuple(groups), self.dimension)

    def fixed_at(self, x: FloatArray, first: int) -> list[TermGroup]:
        """Its terms as functions of the index alone, in columns from ``first`` on whose values are 1."""
        result = []
        for group in self.groups:
            result.append(group.fixed_at(x, first))
            first += len(group.columns)
        return result


@dataclass(frozen=True, eq=False)
class ConvexPart:
    """What of a problem is not linear.

    Parameters
    ----------
    objective : CurvedTerm, optional
        What is added to the linear objective.
    rows : dict
        What is added to ordinary rows, by their number; the limits of the core's row are those of the whole.
    families : dict
        What is added to the rows of families, by their number.
    start : array
        Values of the variables to begin with; not numbers where there are none.
    """

    objective: CurvedTerm | None
    rows: Mapping[int, CurvedTerm]
    families: Mapping[int, CurvedTerm]
    start: FloatArray
