"""Extended formulations of convex sets: linear rows, balls and other cones in coordinates of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from osilp_pyomo._arrays import FloatArray

if TYPE_CHECKING:
    # Clarabel and scipy are loaded when a set needs them, not when the package is imported.
    from osilp_pyomo.lp.conic import ConeProgram, ConeRows


@dataclass(frozen=True, eq=False)
class Ball:
    """``|matrix z - centre| <= 1`` in the Euclidean norm."""

    matrix: FloatArray
    centre: FloatArray

    def excess(self, z: FloatArray) -> float:
        """By how much ``|matrix z - centre|`` passes 1; negative inside."""
        return float(np.linalg.norm(self.matrix @ z - self.centre) - 1.0)

    def cone(self) -> ConeRows:
        """The ball as a second-order cone."""
        from osilp_pyomo.lp.conic import ConeRows

        size = 1 + len(self.matrix)
        rows = np.concatenate([np.zeros((1, self.matrix.shape[1])), self.matrix])
        return ConeRows.second_order(rows, np.concatenate([[1.0], -self.centre]), size)


@dataclass(frozen=True, eq=False)
class Lift:
    """A convex set as ``{offset + matrix z}`` over all z between bounds, with linear rows, balls and other cones.

    ``lower <= z <= upper`` and ``row_lower <= rows z <= row_upper``; sides may be infinite. ``largest`` is what no
    coordinate exceeds in size, whatever it is that bounds it.
    """

    offset: FloatArray
    matrix: FloatArray
    lower: FloatArray
    upper: FloatArray
    rows: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    balls: tuple[Ball, ...] = ()
    other_cones: tuple[ConeRows, ...] = ()
    known_largest: FloatArray | None = None

    @classmethod
    def plain(
        cls,
        dimension: int,
        *,
        lower: FloatArray | float = -np.inf,
        upper: FloatArray | float = np.inf,
        rows: FloatArray | None = None,
        row_lower: FloatArray | float = -np.inf,
        row_upper: FloatArray | float = np.inf,
        offset: FloatArray | None = None,
        matrix: FloatArray | None = None,
        balls: tuple[Ball, ...] = (),
        other_cones: tuple[ConeRows, ...] = (),
        known_largest: FloatArray | None = None,
    ) -> Lift:
        """A description with the parts that are not given left out."""
        rows = np.empty((0, dimension)) if rows is None else rows
        matrix = np.eye(dimension) if matrix is None else matrix
        return cls(
            np.zeros(len(matrix)) if offset is None else offset,
            matrix,
            np.broadcast_to(lower, dimension).astype(float),
            np.broadcast_to(upper, dimension).astype(float),
            rows,
            np.broadcast_to(row_lower, len(rows)).astype(float),
            np.broadcast_to(row_upper, len(rows)).astype(float),
            balls,
            other_cones,
            known_largest,
        )

    @property
    def coordinates(self) -> int:
        """Number of coordinates z."""
        return self.matrix.shape[1]

    @property
    def plain_coordinates(self) -> bool:
        """Whether its coordinates are the vectors themselves."""
        square = self.matrix.shape[0] == self.matrix.shape[1]
        return square and not self.offset.any() and bool(np.array_equal(self.matrix, np.eye(len(self.matrix))))

    @property
    def cones(self) -> tuple[ConeRows, ...]:
        """Its balls and other cones, as cones."""
        return (*(ball.cone() for ball in self.balls), *self.other_cones)

    @property
    def largest(self) -> FloatArray:
        """What no coordinate exceeds in size; infinite where that is not known."""
        ends = np.maximum(np.abs(self.lower), np.abs(self.upper))
        return ends if self.known_largest is None else np.minimum(ends, self.known_largest)

    def points(self, z: FloatArray) -> FloatArray:
        """Points of the set for coordinates (k, L)."""
        return self.offset + z @ self.matrix.T

    def program(self, cost: FloatArray) -> ConeProgram:
        """The cone program that maximizes a linear function of the coordinates."""
        from scipy import sparse

        from osilp_pyomo.lp.conic import ConeProgram
        from osilp_pyomo.lp.finite import FiniteLP

        # Rows in units of their own: a set may be measured in any.
        heights = np.abs(self.rows).max(axis=1, initial=0.0)
        heights = np.where(heights > 0, heights, 1.0)
        linear = FiniteLP(
            maximize=True,
            cost=cost,
            column_lower=self.lower,
            column_upper=self.upper,
            matrix=sparse.csr_array(self.rows / heights[:, None]),
            row_lower=self.row_lower / heights,
            row_upper=self.row_upper / heights,
        )
        return ConeProgram(linear, self.cones)

    def excess(self, z: FloatArray) -> float:
        """By how much coordinates miss the worst of bounds, rows and cones; negative inside."""
        along = self.rows @ z
        parts = (z - self.upper, self.lower - z, along - self.row_upper, self.row_lower - along)
        worst = max(float(np.max(part, initial=-np.inf)) for part in parts)
        return max([worst, *(cone.excess(z) for cone in self.cones)])


def product_lift(lifts: Sequence[Lift]) -> Lift:
    """The product of convex sets: their coordinates side by side."""
    from scipy.linalg import block_diag  # loaded when a set needs it, not when the package is imported

    sizes = [lift.coordinates for lift in lifts]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return Lift(
        np.concatenate([lift.offset for lift in lifts]),
        block_diag(*(lift.matrix for lift in lifts)),
        np.concatenate([lift.lower for lift in lifts]),
        np.concatenate([lift.upper for lift in lifts]),
        block_diag(*(lift.rows for lift in lifts)),
        np.concatenate([lift.row_lower for lift in lifts]),
        np.concatenate([lift.row_upper for lift in lifts]),
        tuple(
            Ball(_widened(ball.matrix, start, int(starts[-1])), ball.centre)
            for lift, start in zip(lifts, starts[:-1], strict=True)
            for ball in lift.balls
        ),
        tuple(
            cone.widened(np.arange(start, start + lift.coordinates), int(starts[-1]))
            for lift, start in zip(lifts, starts[:-1], strict=True)
            for cone in lift.other_cones
        ),
        np.concatenate([lift.largest for lift in lifts]),
    )


def intersection_lift(lifts: Sequence[Lift]) -> Lift:
    """The intersection of convex sets, in the coordinates of one of them.

    Sets described in their vectors themselves are written in the coordinates of the others; only where several have
    coordinates of their own, these stand side by side, tied by equal points.
    """
    own = [lift for lift in lifts if not lift.plain_coordinates] or [lifts[0]]
    kept = {id(lift) for lift in own}
    base = _tied(own)
    for lift in lifts:
        if id(lift) not in kept:
            base = _cut(base, lift)
    return base


def _tied(lifts: Sequence[Lift]) -> Lift:
    """The intersection of sets with coordinates of their own: side by side, tied by equal points."""
    if len(lifts) == 1:
        return lifts[0]
    whole = product_lift(lifts)
    dimension = len(lifts[0].offset)
    first = np.zeros((dimension, whole.coordinates))
    first[:, : lifts[0].coordinates] = lifts[0].matrix
    ties, rights = [], []
    for number in range(1, len(lifts)):
        at = slice(number * dimension, (number + 1) * dimension)
        ties.append(first - whole.matrix[at])
        rights.append(whole.offset[at] - lifts[0].offset)
    tied = np.concatenate(rights)
    return replace(
        whole,
        offset=lifts[0].offset,
        matrix=first,
        rows=np.concatenate([whole.rows, *ties]),
        row_lower=np.concatenate([whole.row_lower, tied]),
        row_upper=np.concatenate([whole.row_upper, tied]),
    )


def _cut(base: Lift, plain: Lift) -> Lift:
    """A set cut by one that is described in its vectors themselves."""
    if base.plain_coordinates:
        base = replace(base, lower=np.maximum(base.lower, plain.lower), upper=np.minimum(base.upper, plain.upper))
        bounded = np.zeros(0, dtype=np.int64)
    else:
        bounded = np.flatnonzero(np.isfinite(plain.lower) | np.isfinite(plain.upper))
    rows = np.concatenate([np.eye(plain.coordinates)[bounded], plain.rows])
    lower = np.concatenate([plain.lower[bounded], plain.row_lower])
    upper = np.concatenate([plain.upper[bounded], plain.row_upper])
    shift = rows @ base.offset
    return replace(
        base,
        rows=np.concatenate([base.rows, rows @ base.matrix]),
        row_lower=np.concatenate([base.row_lower, lower - shift]),
        row_upper=np.concatenate([base.row_upper, upper - shift]),
        balls=(
            *base.balls,
            *(Ball(ball.matrix @ base.matrix, ball.centre - ball.matrix @ base.offset) for ball in plain.balls),
        ),
        other_cones=(
            *base.other_cones,
            *(
                replace(cone, matrix=cone.matrix @ base.matrix, offset=cone.offset + cone.matrix @ base.offset)
                for cone in plain.other_cones
            ),
        ),
        known_largest=np.minimum(base.largest, plain.largest) if base.plain_coordinates else base.known_largest,
    )


def _widened(matrix: FloatArray, start: int, columns: int) -> FloatArray:
    result = np.zeros((len(matrix), columns))
    result[:, start : start + matrix.shape[1]] = matrix
    return result
