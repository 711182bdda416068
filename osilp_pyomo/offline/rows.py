"""Rows as functions of the index: sums of formulas, calls of a rule, or affine functions in numbers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo._threads import in_threads
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.enclosures.enclosure import Enclosure, NoEnclosureError, Opening, coordinates
from osilp_pyomo.index.enclosures.intervals import moved
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.index.nodes import AFFINE, CONCAVE, CONVEX

# Numbers in one block of coefficients: half a megabyte, so that the block and the temporaries of its formula
# stay in the cache; measured fastest between 2**15 and 2**17.
BLOCK_SIZE = 2**16


# Nodes of a formula whose steps are found one by one at most.
_STEPPED = 200
# Limits below this are looked at: they may be what rounding left of terms that cancel.
_TINY = 1e-9

# Points in one block. Fewer make numpy's calls too short, more leave too few columns in a block.
BLOCK_POINTS = 4096
# Blocks that a thread takes at once: fewer, and handing them over takes a part of the time.
_TOGETHER = 4
# Fewer coefficients than these are evaluated sooner than they are handed to another thread.
_WORTH_THREADS = 2**15


class Slot(Protocol):
    """Data of a group's columns, one entry per column: numbers, or curves."""

    def __getitem__(self, part: Any) -> Any: ...


Kernel = Callable[[Sequence[Any], Sequence[FloatArray]], Any]
_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class TermGroup:
    """Terms of one shape: the same formula, filled with other data for each column.

    Parameters
    ----------
    kernel : callable
        ``kernel(slots, coordinates)`` with slots of shape (c, 1) and coordinates of shape (1, m)
        gives something that broadcasts to (c, m).
    slots : tuple
        The data of the formula, each with one entry per column.
    columns : array of int
        The column of the LP that each entry belongs to.
    parameters : tuple of str or None
        The name of the Param that each slot holds; None for a plain number.
    variables : tuple of str
        Names of the variable components among the columns.
    switches : tuple of callables
        Functions, called like the kernel, at whose zeros it has a kink or jumps.
    formula : Formula, optional
        What the kernel computes, for what is to be known of it over whole boxes.
    """

    kernel: Kernel
    slots: tuple[Slot, ...]
    columns: IntArray
    parameters: tuple[str | None, ...] = ()
    variables: tuple[str, ...] = ()
    switches: tuple[Kernel, ...] = ()
    formula: Formula | None = None

    def block(self, part: slice, points: FloatArray) -> FloatArray:
        """Coefficients of some columns at some points, an array (c, m)."""
        size = len(range(*part.indices(len(self.columns))))
        slots = [slot[part][:, None] if isinstance(slot, np.ndarray) else slot[part] for slot in self.slots]
        coordinates = [points[None, :, axis] for axis in range(points.shape[1])]
        with np.errstate(all="ignore"):
            values = np.asarray(self.kernel(slots, coordinates), dtype=float)
        # What is not a finite number is looked for, and named, by whoever asked for the block.
        return values if values.shape == (size, len(points)) else np.broadcast_to(values, (size, len(points)))

    def enclose(self, part: slice, axes: Sequence[Enclosure], opening: Opening, rounded: bool = False) -> Enclosure:
        """What coefficients of some columns can be over boxes, arrays that broadcast to (c, boxes).

        Data that are ``rounded`` may be other numbers nearby.
        """
        if self.formula is None:
            raise NoEnclosureError("its formula is not known")
        slots: list[Any] = [slot[part][:, None] if isinstance(slot, np.ndarray) else slot[part] for slot in self.slots]
        if rounded:
            slots = [Enclosure(moved(slot, slot)) if isinstance(slot, np.ndarray) else slot for slot in slots]
        found = self.formula.enclose(slots, axes, opening)
        if not isinstance(found, Enclosure):
            raise NoEnclosureError("a condition stands where a number is expected")
        return found

    def take(self, places: IntArray) -> TermGroup:
        """Some of the columns."""
        slots = tuple(slot.take(places) if isinstance(slot, CurveStack) else slot[places] for slot in self.slots)
        return replace(self, slots=slots, columns=self.columns[places])

    def total(self, points: FloatArray) -> FloatArray:
        """Sum of all terms at each point."""
        result = np.zeros(len(points))
        for start in range(0, len(points), BLOCK_POINTS):
            at = slice(start, start + BLOCK_POINTS)
            step = max(1, BLOCK_SIZE // len(points[at]))
            for first in range(0, len(self.columns), step):
                result[at] += self.block(slice(first, first + step), points[at]).sum(axis=0)
        return result


class Rows(ABC):
    """Where a family's coefficients and limits come from."""

    columns: IntArray
    #: Formulas of the columns, for pricing other data; none where there are none.
    templates: tuple[TermGroup, ...] = ()

    @abstractmethod
    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        """Yield (columns, points, coefficients (c, m)) until every coefficient was given once."""

    def evaluated(
        self, points: FloatArray, function: Callable[[IntArray, slice, FloatArray], _Value]
    ) -> Iterator[tuple[slice, _Value]]:
        """Yield (points, what a function makes of a block) for every block, evaluated where the block was."""
        for columns, at, block in self.blocks(points):
            yield at, function(columns, at, block)

    @abstractmethod
    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the row at the points; infinite where there is none."""


class TracedRows(Rows):
    """Coefficients as formulas of the index."""

    def __init__(
        self,
        groups: Sequence[TermGroup],
        lower: Sequence[TermGroup] | None,
        upper: Sequence[TermGroup] | None,
    ) -> None:
        self.groups = self.templates = tuple(groups)
        self.lower = None if lower is None else tuple(lower)
        self.upper = None if upper is None else tuple(upper)
        empty: IntArray = np.empty(0, dtype=np.int64)
        self.columns = np.unique(np.concatenate([empty, *(group.columns for group in self.groups)]))

    @property
    def stepped(self) -> bool:
        """Whether nothing but conditions makes the row change along its index, so that it is piecewise constant.

        A formula of very many conditions does not count: where all of them switch could not be found one by one.
        """
        groups = [group for part in (self.groups, self.lower, self.upper) for group in part or ()]
        return any(group.switches for group in groups) and all(
            group.formula is not None
            and len(group.formula.shape) <= _STEPPED
            and group.formula.piecewise_constant(group.slots)
            and (len(group.columns) == 1 or not any(isinstance(slot, CurveStack) for slot in group.slots))
            for group in groups
        )

    def take(self, kept: NDArray[np.bool_]) -> TracedRows:
        """The columns that are kept, of all columns of the LP."""
        groups = [group.take(np.flatnonzero(kept[group.columns])) for group in self.groups]
        return TracedRows([group for group in groups if len(group.columns)], self.lower, self.upper)

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        for _, found in self.evaluated(points, lambda *block: block):
            yield found

    def evaluated(
        self, points: FloatArray, function: Callable[[IntArray, slice, FloatArray], _Value]
    ) -> Iterator[tuple[slice, _Value]]:
        places = []
        for start in range(0, len(points), BLOCK_POINTS):
            at = slice(start, min(start + BLOCK_POINTS, len(points)))
            step = max(1, BLOCK_SIZE // max(1, at.stop - at.start))
            for group in self.groups:
                places += [(group, slice(first, first + step), at) for first in range(0, len(group.columns), step)]

        if len(points) * len(self.columns) < _WORTH_THREADS:
            for group, part, at in places:
                yield at, function(group.columns[part], at, group.block(part, points[at]))
            return

        def some(few: Sequence[tuple[TermGroup, slice, slice]]) -> list[_Value]:
            # The function too: a block that another core's cache holds is slow to read.
            return [function(group.columns[part], at, group.block(part, points[at])) for group, part, at in few]

        parts = [places[first : first + _TOGETHER] for first in range(0, len(places), _TOGETHER)]
        for few, values in zip(parts, in_threads(some, parts), strict=True):
            for (_, _, at), value in zip(few, values, strict=True):
                yield at, value

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        def summed(terms: tuple[TermGroup, ...] | None, missing: float) -> FloatArray:
            if terms is None:
                return np.full(len(points), missing)
            total = sum((group.total(points) for group in terms), np.zeros(len(points)))
            tiny = np.flatnonzero((np.abs(total) < _TINY) & (total != 0))
            if len(tiny):
                total[tiny] = np.where(_may_be_zero(terms, points[tiny]), 0.0, total[tiny])
            return total

        return summed(self.lower, -np.inf), summed(self.upper, np.inf)

    def homogeneous(self) -> TracedRows:
        """Rows with these coefficients and every limit at zero."""
        return TracedRows(self.groups, None if self.lower is None else (), None if self.upper is None else ())


def _may_be_zero(terms: Sequence[TermGroup], points: FloatArray) -> BoolArray:
    """Where a sum is nothing but the rounding of data that cancel: zero is among what it can be for data so near."""
    low, high = np.zeros(len(points)), np.zeros(len(points))
    axes = coordinates(points.T, points.T)
    try:
        with np.errstate(all="ignore"):
            for group in terms:
                found = group.enclose(slice(None), axes, Opening(points.shape[1], 0), rounded=True).value
                low, high = (
                    total + np.broadcast_to(end, (len(group.columns), len(points))).sum(axis=0)
                    for total, end in zip((low, high), found, strict=True)
                )
    except NoEnclosureError:
        return np.zeros(len(points), dtype=bool)
    return (low <= 0) & (high >= 0)


class TimeUpError(Exception):
    """A rule that is called at points would be called after the time that it may take."""


class SampledRows(Rows):
    """Coefficients by calling the user's rule at each point; not after the moment ``until``, if there is one."""

    def __init__(self, columns: IntArray, call: Callable[[FloatArray], tuple[dict[int, float], float, float]]) -> None:
        self.columns = columns
        self._call = call
        self.until = np.inf
        # The rule is slow and the same points are asked for again and again.
        self._known: dict[bytes, tuple[dict[int, float], float, float]] = {}

    def known_points(self) -> FloatArray:
        """Points at which the rule was called, an array (m, d)."""
        return np.array([np.frombuffer(key) for key in self._known])

    def _row(self, point: FloatArray) -> tuple[dict[int, float], float, float]:
        key = point.tobytes()
        if key not in self._known:
            if time.monotonic() > self.until:
                raise TimeUpError
            self._known[key] = self._call(point)
        return self._known[key]

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        place = {int(column): k for k, column in enumerate(self.columns)}
        size = max(1, BLOCK_SIZE // max(1, len(self.columns)))
        for start in range(0, len(points), size):
            at = slice(start, min(start + size, len(points)))
            block = np.zeros((len(self.columns), at.stop - at.start))
            for k, point in enumerate(points[at]):
                for column, coefficient in self._row(point)[0].items():
                    block[place[column], k] += coefficient
            yield self.columns, at, block

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = [self._row(point) for point in points]
        return np.array([row[1] for row in rows]), np.array([row[2] for row in rows])


class AffineRows(Rows):
    """One row for every vector xi, with coefficients ``(1, xi) @ matrix``.

    Parameters
    ----------
    columns : array of int
        Columns of the LP, increasing.
    matrix : array (1 + d, n)
        Nominal coefficients first, then what each entry of xi adds to them.
    lower, upper : arrays (1 + d) or None
        Limits ``(1, xi) @ lower``; None where there is none.

    Examples
    --------
    >>> rows = AffineRows(np.array([0]), np.array([[1.0], [0.5]]), None, np.array([3.0, 0.0]))
    >>> rows.limits(np.array([[2.0]]))
    (array([-inf]), array([3.]))
    """

    def __init__(
        self, columns: IntArray, matrix: FloatArray, lower: FloatArray | None, upper: FloatArray | None
    ) -> None:
        self.columns = columns
        self.matrix = matrix
        self.lower = lower
        self.upper = upper

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        if not len(self.columns):
            return
        step = max(1, BLOCK_SIZE // len(self.columns))
        for start in range(0, len(points), step):
            at = slice(start, min(start + step, len(points)))
            yield self.columns, at, (self.matrix[0] + points[at] @ self.matrix[1:]).T

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        def values(limit: FloatArray | None, missing: float) -> FloatArray:
            return np.full(len(points), missing) if limit is None else limit[0] + points @ limit[1:]

        return values(self.lower, -np.inf), values(self.upper, np.inf)

    def homogeneous(self) -> AffineRows:
        """Rows with these coefficients and every limit at zero."""
        zero = np.zeros(len(self.matrix))
        return AffineRows(
            self.columns, self.matrix, None if self.lower is None else zero, None if self.upper is None else zero
        )


@dataclass(frozen=True, eq=False)
class TermCurvature:
    """Curvature of some functions of the index: the Hessians of quadratic ones, the kinds of all others.

    ``hessians`` (n, d, d) holds zeros where a function is not quadratic; ``kinds`` (n) is "affine" where it is.
    """

    kinds: tuple[str, ...]
    hessians: FloatArray

    def concave(self, weights: FloatArray) -> tuple[bool, FloatArray]:
        """Whether the weighted sum of what is not quadratic is concave by rules, and the Hessian of the rest."""
        good = all(
            kind == AFFINE or weight == 0 or kind == (CONCAVE if weight > 0 else CONVEX)
            for kind, weight in zip(self.kinds, weights.tolist(), strict=True)
        )
        return good, np.einsum("n,nij->ij", weights, self.hessians)


@dataclass(frozen=True, eq=False)
class RowCurvature:
    """Curvature of a row's coefficients, in the order of its columns, and of its limits (one function, or None)."""

    columns: NDArray[np.int64]
    body: TermCurvature
    lower: TermCurvature | None
    upper: TermCurvature | None

    def concave(self, x: FloatArray, side: float, width: FloatArray, allowed: float) -> bool:
        """Whether the excess over the upper limit (side 1) or below the lower one (side -1) is concave at x.

        A quadratic part may bend upwards by at most ``allowed`` over a set of these widths, which is rounding.
        """
        limit = self.upper if side > 0 else self.lower
        if limit is None:
            return False
        good, hessian = self.body.concave(side * x[self.columns])
        good_limit, limit_hessian = limit.concave(np.array([-side]))
        if not (good and good_limit):
            return False
        bent = (hessian + limit_hessian) * np.outer(width, width)
        if not np.any(bent):
            return True
        return float(np.linalg.eigvalsh((bent + bent.T) / 2).max()) * len(width) / 8 <= allowed
