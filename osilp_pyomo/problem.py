"""The problem as frozen, labelled arrays: what the numeric core works on, free of Pyomo.

A :class:`SemiInfiniteLP` is an ordinary :class:`FiniteLP` and some :class:`Family` objects. A family
is one row for every point of a domain::

    lower(u) <= sum_j a_j(u) x_j <= upper(u)    for all u in domain

Its coefficients are functions that are evaluated in blocks of (columns, points); the whole matrix
is never needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from osilp_pyomo.bases import Functionals
from osilp_pyomo.domains import Domain, FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.row_curvature import RowCurvature

IntArray = NDArray[np.int64]

# Numbers in one block of coefficients: half a megabyte, so that the block and the temporaries of its formula
# stay in the cache; measured fastest between 2**15 and 2**17.
BLOCK_SIZE = 2**16
# Points in one block. Fewer make numpy's calls too short, more leave too few columns in a block.
BLOCK_POINTS = 4096
# From so many columns on, those that a decision leaves at zero are left out of what is evaluated.
_MANY_COLUMNS = 1_000
# Where a row all but vanishes, its violation is measured by this share of its size elsewhere.
SCALE_FLOOR = 1e-6


class Slot(Protocol):
    """Data of a group's columns, one entry a column: numbers, or curves."""

    def __getitem__(self, part: Any) -> Any: ...


Kernel = Callable[[Sequence[Any], Sequence[FloatArray]], Any]


@dataclass(frozen=True, eq=False)
class TermGroup:
    """Terms of one shape: the same formula, filled with other data for each column.

    Parameters
    ----------
    kernel : callable
        ``kernel(slots, coordinates)`` with slots of shape (c, 1) and coordinates of shape (1, m)
        gives something that broadcasts to (c, m).
    slots : tuple
        The data of the formula, each with one entry a column.
    columns : array of int
        The column of the LP that each entry belongs to.
    parameters : tuple of str or None
        The name of the Param that each slot holds; None for a plain number.
    variables : tuple of str
        Names of the variable components among the columns.
    switches : tuple of callables
        Functions, called like the kernel, at whose zeros it has a kink or jumps.
    """

    kernel: Kernel
    slots: tuple[Slot, ...]
    columns: IntArray
    parameters: tuple[str | None, ...] = ()
    variables: tuple[str, ...] = ()
    switches: tuple[Kernel, ...] = ()

    def block(self, part: slice, points: FloatArray) -> FloatArray:
        """Coefficients of some columns at some points, an array (c, m)."""
        size = len(range(*part.indices(len(self.columns))))
        slots = [slot[part][:, None] if isinstance(slot, np.ndarray) else slot[part] for slot in self.slots]
        coordinates = [points[None, :, axis] for axis in range(points.shape[1])]
        with np.errstate(all="ignore"):
            values = np.asarray(self.kernel(slots, coordinates), dtype=float)
        # What is not a finite number is looked for, and named, by whoever asked for the block.
        return values if values.shape == (size, len(points)) else np.broadcast_to(values, (size, len(points)))

    def taken(self, places: IntArray) -> TermGroup:
        """Some of the columns."""
        slots = tuple(slot.taken(places) if hasattr(slot, "taken") else slot[places] for slot in self.slots)
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

    def taken(self, kept: NDArray[np.bool_]) -> TracedRows:
        """The columns that are kept, of all columns of the LP."""
        groups = [group.taken(np.flatnonzero(kept[group.columns])) for group in self.groups]
        return TracedRows([group for group in groups if len(group.columns)], self.lower, self.upper)

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        for start in range(0, len(points), BLOCK_POINTS):
            at = slice(start, min(start + BLOCK_POINTS, len(points)))
            step = max(1, BLOCK_SIZE // max(1, at.stop - at.start))
            for group in self.groups:
                for first in range(0, len(group.columns), step):
                    part = slice(first, first + step)
                    yield group.columns[part], at, group.block(part, points[at])

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        def summed(terms: tuple[TermGroup, ...] | None, missing: float) -> FloatArray:
            if terms is None:
                return np.full(len(points), missing)
            return sum((group.total(points) for group in terms), np.zeros(len(points)))

        return summed(self.lower, -np.inf), summed(self.upper, np.inf)


class SampledRows(Rows):
    """Coefficients by calling the user's rule at each point."""

    def __init__(self, columns: IntArray, call: Callable[[FloatArray], tuple[dict[int, float], float, float]]) -> None:
        self.columns = columns
        self._call = call
        # The rule is slow and the same points are asked for again and again.
        self._known: dict[bytes, tuple[dict[int, float], float, float]] = {}

    def _row(self, point: FloatArray) -> tuple[dict[int, float], float, float]:
        key = point.tobytes()
        if key not in self._known:
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


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows in numbers: ``lower <= matrix @ x[columns] <= upper``."""

    columns: IntArray
    matrix: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, kept: Any) -> RowBlock:
        return RowBlock(self.columns, self.matrix[kept], self.lower[kept], self.upper[kept])

    def excess(self, x: FloatArray) -> FloatArray:
        """By how much each row is overrun."""
        return excess_of(self.matrix @ x[self.columns], self.lower, self.upper)

    def size(self, x: FloatArray) -> FloatArray:
        """Sum of each row's absolute terms."""
        return np.abs(self.matrix) @ np.abs(x[self.columns])

    def scale(self, x: FloatArray) -> FloatArray:
        """What violations of the rows are measured by; see :func:`violation_scale`."""
        return violation_scale(self.matrix @ x[self.columns], self.size(x), self.lower, self.upper)


@dataclass(frozen=True, eq=False)
class Family:
    """One row for every point of a domain.

    ``route`` is "traced" or "sampled"; ``column_names`` names all columns of the LP, so that an
    error can speak of the user's variables; ``curvature`` is what is known of its functions of the index.
    """

    name: str
    domain: Domain
    rows: Rows
    column_names: Sequence[str]
    route: str = "traced"
    curvature: RowCurvature | None = None

    @property
    def user_domain(self) -> Domain:
        """The domain as the user declared it."""
        return self.domain

    def user_points(self, points: FloatArray) -> FloatArray:
        """Points of ``domain`` in the user's coordinates."""
        return points

    def user_masses(self, points: FloatArray, masses: FloatArray) -> FloatArray:
        """Duals of the rows at points of ``domain`` as duals of the user's rows."""
        return masses

    @property
    def templates(self) -> tuple[TermGroup, ...]:
        """The formulas of its columns, for pricing other data; none where the rule is sampled."""
        return self.rows.templates

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        """Blocks of coefficients, each checked to hold finite numbers only."""
        for columns, at, block in self.rows.blocks(points):
            # A sum is not finite as soon as one entry is not, and costs one pass without temporaries.
            with np.errstate(all="ignore"):
                suspicious = not np.isfinite(block.sum())
            if suspicious and not np.all(np.isfinite(block)):
                column, k = np.argwhere(~np.isfinite(block))[0]
                raise DataError(
                    f"SemiInfiniteConstraint '{self.name}': the coefficient of {self.column_names[columns[column]]} "
                    f"is {block[column, k]} at {self._describe(points[at][k])}; keep the rule finite on "
                    f"{self.user_domain}, or leave such points out by 'where'."
                )
            yield columns, at, block

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits at the points, checked to be numbers."""
        lower, upper = self.rows.limits(points)
        for side, limit, none in (("left", lower, -np.inf), ("right", upper, np.inf)):
            bad = ~np.isfinite(limit) & (limit != none)
            if bad.any():
                k = int(np.argmax(bad))
                raise DataError(
                    f"SemiInfiniteConstraint '{self.name}': the {side}-hand side is {limit[k]} at "
                    f"{self._describe(points[k])}; keep the rule finite on {self.user_domain}, or leave such points "
                    "out by 'where'."
                )
        return lower, upper

    def _describe(self, point: FloatArray) -> str:
        return self.user_domain.describe(self.user_points(point[None])[0])

    def _positions(self, columns: IntArray) -> IntArray | slice:
        """Where columns stand in ``rows.columns``: a slice where it can be, which numpy copies faster."""
        first, last = np.searchsorted(self.rows.columns, columns[[0, -1]])
        if last - first == len(columns) - 1 and np.array_equal(self.rows.columns[first : last + 1], columns):
            return slice(first, last + 1)
        return np.searchsorted(self.rows.columns, columns)

    def matrix(self, points: FloatArray) -> FloatArray:
        """Coefficients at the points over ``rows.columns``, an array (m, n)."""
        return self._assembled(self.blocks(points), len(points))

    def block(self, points: FloatArray) -> RowBlock:
        """Its rows at the points."""
        return RowBlock(self.rows.columns, self.matrix(points), *self.limits(points))

    def matrix_unchecked(self, points: FloatArray) -> FloatArray:
        """The same with whatever the formulas give, finite or not."""
        return self._assembled(self.rows.blocks(points), len(points))

    def _assembled(self, blocks: Iterator[tuple[IntArray, slice, FloatArray]], count: int) -> FloatArray:
        # Laid out column by column, as the blocks come; each column stands in exactly one block a point.
        result = np.empty((len(self.rows.columns), count))
        for columns, at, block in blocks:
            result[self._positions(columns), at] = block
        return result.T

    def used_by(self, x: FloatArray) -> Family:
        """The same without columns that x leaves at zero, where those are many: at x its rows have the same values."""
        if not isinstance(self.rows, TracedRows) or len(self.rows.columns) < _MANY_COLUMNS:
            return self
        used = x != 0
        if np.mean(used[self.rows.columns]) > 0.8:
            return self
        return replace(self, rows=self.rows.taken(used))

    def activity(self, points: FloatArray, x: FloatArray) -> FloatArray:
        """Value of the row's left-hand side at the points."""
        result = np.zeros(len(points))
        for columns, at, block in self.blocks(points):
            result[at] += x[columns] @ block
        return result

    def activity_and_size(self, points: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value of the row's left-hand side, and the sum of its absolute terms: what it is the difference of."""
        activity, size, absolute = np.zeros(len(points)), np.zeros(len(points)), np.abs(x)
        for columns, at, block in self.blocks(points):
            activity[at] += x[columns] @ block
            size[at] += absolute[columns] @ np.abs(block)
        return activity, size

    def excess(self, points: FloatArray, x: FloatArray) -> FloatArray:
        """By how much the row is overrun at each point; negative where there is room."""
        return excess_of(self.activity(points, x), *self.limits(points))

    def scale(self, points: FloatArray, x: FloatArray) -> FloatArray:
        """What violations of the row at each point are measured by; see :func:`violation_scale`."""
        return violation_scale(*self.activity_and_size(points, x), *self.limits(points))

    def project(self, functionals: Functionals) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Phi'A over ``rows.columns`` (q, n), Phi'lower and Phi'upper; chunk by chunk."""
        result = np.zeros((len(self.rows.columns), len(functionals)))
        for columns, at, block in self.blocks(functionals.points):
            result[self._positions(columns)] += block @ functionals.matrix[at]
        limits = []
        for limit, none in zip(self.limits(functionals.points), (-np.inf, np.inf), strict=True):
            missing = ~np.isfinite(limit)
            projected = functionals.matrix.T @ np.where(missing, 0.0, limit)
            # A test function that meets a point without a limit has none.
            limits.append(np.where(functionals.matrix.T @ missing.astype(float) > 0, none, projected))
        return result.T, limits[0], limits[1]


def excess_of(activity: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """By how much limits are overrun; a large negative number, not infinity, where there are none."""
    return np.maximum(np.maximum(activity - upper, lower - activity), -1e300)


def violation_scale(activity: FloatArray, size: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The size of a row where it is compared: its value or limit, and a little of its terms.

    Where value and limit are both near zero a violation is measured by a thousandth of the absolute terms, so
    that a tolerance of 1e-9 stays a thousand times above their rounding.
    """
    limits = [np.where(np.isfinite(limit), np.abs(limit), 0.0) for limit in (lower, upper)]
    scale: FloatArray = np.maximum(np.abs(activity), np.maximum(*limits)) + 1e-3 * size
    # A row of zeros can be violated by its limit only.
    return np.where(scale > 0, scale, 1.0)


@dataclass(frozen=True, eq=False)
class FiniteLP:
    """Optimize ``cost @ x + offset`` over ``row_lower <= matrix @ x <= row_upper`` and column bounds."""

    maximize: bool
    cost: FloatArray
    offset: float
    column_lower: FloatArray
    column_upper: FloatArray
    integer: NDArray[np.bool_]
    matrix: Any  # scipy.sparse.csr_array (rows, columns)
    row_lower: FloatArray
    row_upper: FloatArray
    column_names: Sequence[str]
    row_names: Sequence[str]

    @property
    def columns(self) -> int:
        """Number of variables."""
        return len(self.cost)

    def value(self, x: FloatArray) -> float:
        """Objective at x."""
        return float(self.cost @ x + self.offset)

    def violation(self, x: FloatArray) -> float:
        """Largest violation of an ordinary row or bound at x, as a share of that row's or bound's size."""
        activity, size = self.matrix @ x, abs(self.matrix) @ np.abs(x)
        worst = 0.0
        for value, terms, lower, upper in (
            (activity, size, self.row_lower, self.row_upper),
            (x, np.abs(x), self.column_lower, self.column_upper),
        ):
            excess = np.maximum(value - upper, lower - value)
            worst = max(worst, float(np.max(excess / violation_scale(value, terms, lower, upper), initial=0.0)))
        return worst


@dataclass(frozen=True, eq=False)
class SemiInfiniteLP:
    """An ordinary LP and the families of rows that hold for every point of their domains."""

    core: FiniteLP
    families: tuple[Family, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the families."""
        return tuple(family.name for family in self.families)
