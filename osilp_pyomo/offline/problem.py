"""The problem as frozen, labelled arrays: what the numeric core works on, free of Pyomo.

A :class:`SemiInfiniteLP` is an ordinary :class:`FiniteLP` and some :class:`Family` objects. A family
is one row for every point of a domain::

    lower(u) <= sum_j a_j(u) x_j <= upper(u)    for all u in domain

Its coefficients are functions that are evaluated in blocks of (columns, points); the whole matrix
is never needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError, Opening, coordinates
from osilp_pyomo.lp.finite import FiniteLP, RowBlock, excess_of, violation_scale
from osilp_pyomo.offline.curved.terms import ConvexPart
from osilp_pyomo.offline.rows import AffineRows, RowCurvature, Rows, SampledRows, TermGroup, TracedRows

# Vectors of a set at which formulas are compared with the affine ones that they are taken for.
_COMPARED = 64
# From so many columns on, those that a decision leaves at zero are left out of what is evaluated.
_MANY_COLUMNS = 1_000
# Where a row all but vanishes, its violation is measured by this share of its size elsewhere.
SCALE_FLOOR = 1e-6

_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class Family:
    """One row for every point of a domain.

    ``route`` is "traced" or "sampled"; ``column_names`` names all columns of the LP, so that an
    error can speak of the user's variables; ``curvature`` is what is known of its functions of the index, ``lipschitz``
    what a coefficient or limit changes by at most along each coordinate, where the user has said so.
    """

    name: str
    domain: Domain
    rows: Rows
    column_names: Sequence[str]
    route: str = "traced"
    curvature: RowCurvature | None = None
    lipschitz: FloatArray | None = None

    @property
    def user_domain(self) -> Domain:
        """The domain as the user declared it."""
        return self.domain

    @property
    def as_declared(self) -> Family:
        """The family over the user's own domain, where this is one over a box that stands for that."""
        return self

    def user_points(self, points: FloatArray) -> FloatArray:
        """Points of ``domain`` in the user's coordinates."""
        return points

    def own_points(self, points: FloatArray) -> FloatArray:
        """Points in the user's coordinates as points of ``domain``."""
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
        for _, found in self.evaluated(points, lambda *block: block):
            yield found

    def evaluated(
        self, points: FloatArray, function: Callable[[IntArray, slice, FloatArray], _Value]
    ) -> Iterator[tuple[slice, _Value]]:
        """Points of each block, and what a function makes of it; every block is checked as :meth:`blocks` does."""

        def checked(columns: IntArray, at: slice, block: FloatArray) -> _Value:
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
            return function(columns, at, block)

        return self.rows.evaluated(points, checked)

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
        """Its rows at the points with whatever the formulas give, finite or not."""
        return self._assembled(self.rows.blocks(points), len(points))

    def _assembled(self, blocks: Iterator[tuple[IntArray, slice, FloatArray]], count: int) -> FloatArray:
        # Laid out column by column, as the blocks come; each column stands in exactly one block per point.
        result = np.empty((len(self.rows.columns), count))
        for columns, at, block in blocks:
            result[self._positions(columns), at] = block
        return result.T

    def used_by(self, x: FloatArray) -> Family:
        """The family without columns that x leaves at zero, where those are many: at x its rows keep their values."""
        if not isinstance(self.rows, TracedRows) or len(self.rows.columns) < _MANY_COLUMNS:
            return self
        used = x != 0
        if np.mean(used[self.rows.columns]) > 0.8:
            return self
        return replace(self, rows=self.rows.take(used))

    def activity(self, points: FloatArray, x: FloatArray) -> FloatArray:
        """Value of the row's left-hand side at the points."""
        result = np.zeros(len(points))
        for at, part in self.evaluated(points, lambda columns, _, block: x[columns] @ block):
            result[at] += part
        return result

    def activity_and_size(self, points: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value of the row's left-hand side, and the sum of its absolute terms: what it is the difference of."""
        activity, size, absolute = np.zeros(len(points)), np.zeros(len(points)), np.abs(x)

        def both(columns: IntArray, _: slice, block: FloatArray) -> tuple[FloatArray, FloatArray]:
            return x[columns] @ block, absolute[columns] @ np.abs(block)

        for at, (value, terms) in self.evaluated(points, both):
            activity[at] += value
            size[at] += terms
        return activity, size

    def excess(self, points: FloatArray, x: FloatArray) -> FloatArray:
        """By how much the row is overrun at each point; negative where there is slack."""
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


@dataclass(frozen=True, eq=False)
class SemiInfiniteLP:
    """An ordinary LP and the families of rows that hold for every point of their domains."""

    core: FiniteLP
    families: tuple[Family, ...]
    #: What of it is convex and not linear; only the solver of convex problems looks at it.
    convex: ConvexPart | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the families."""
        return tuple(family.name for family in self.families)


def examples_at(family: Family, points: FloatArray, most: int) -> tuple[IntArray, RowBlock]:
    """Rows of a family at some of the points, spread evenly, as examples of one family."""
    wanted = min(len(points), most)
    chosen = points[np.unique(np.linspace(0, len(points) - 1, wanted).astype(int))]
    return np.zeros(len(chosen), dtype=np.int64), family.block(chosen)


def _has_no_bend(group: TermGroup, domain: Domain) -> bool:
    """Whether second derivatives of a group's formula are zero, up to rounding, over the box around a set."""
    opening = Opening(domain.dimension, 2)
    axes = coordinates(domain.lower[:, None], domain.upper[:, None])
    try:
        with np.errstate(all="ignore"):
            found = group.enclose(slice(None), axes, opening)
    except NoEnclosureError:
        return False
    size = 1e-9 * (1e-300 + np.maximum(*map(np.abs, found.value)) / float(np.min(domain.width)) ** 2)
    return found.rest is None and all(
        bool(np.all((low >= -size) & (high <= size))) for low, high in found.bends.values()
    )


def as_affine(family: Family) -> Family:
    """A family over a set with its formulas as numbers, where they are affine there; else the family itself.

    A formula without kinks, jumps and curves is affine where its second derivatives are zero over a whole box around
    the set; its numbers are those of an affine function that agrees with it at some points.
    """
    rows, body = family.rows, family.domain.body
    if body is None or not isinstance(rows, TracedRows):
        return family
    groups = (*rows.groups, *(rows.lower or ()), *(rows.upper or ()))
    if any(group.switches or not all(isinstance(slot, np.ndarray) for slot in group.slots) for group in groups):
        return family
    if not all(_has_no_bend(group, family.domain) for group in groups):
        return family
    steps = np.diag(family.domain.width)
    corners = np.concatenate([body.centre[None], body.centre + steps])

    def fitted(values: FloatArray) -> FloatArray:
        """Numbers (1 + d, n) of affine functions from their values (1 + d, n) at the corners."""
        slopes = (values[1:] - values[0]) / np.diagonal(steps)[:, None]
        return np.concatenate([values[:1] - body.centre @ slopes, slopes])

    matrix = fitted(family.matrix_unchecked(corners))
    lower, upper = (
        None if given is None else fitted(limit[:, None])[:, 0]
        for given, limit in zip((rows.lower, rows.upper), rows.limits(corners), strict=True)
    )
    affine = AffineRows(rows.columns, matrix, lower, upper)
    affine.templates = rows.templates
    compared = body.cloud(_COMPARED, seed=3)
    found = replace(family, rows=affine)
    size = np.abs(matrix).max(axis=0) + 1e-300
    same = np.allclose(
        found.matrix_unchecked(compared) / size, family.matrix_unchecked(compared) / size, rtol=1e-12, atol=1e-12
    )
    limits = zip(affine.limits(compared), rows.limits(compared), strict=True)
    return found if same and all(np.allclose(one, other, rtol=1e-12, atol=1e-300) for one, other in limits) else family


def allow_calls(families: Sequence[Family], until: float) -> None:
    """Let rules that are called at points be called up to a moment, and not after it."""
    for family in families:
        if isinstance(family.rows, SampledRows):
            family.rows.until = until
