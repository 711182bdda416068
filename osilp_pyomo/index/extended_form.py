"""Extended formulations of convex sets: linear rows and balls in coordinates of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Ball:
    """``|matrix z - centre| <= 1`` in the Euclidean norm."""

    matrix: FloatArray
    centre: FloatArray

    def excess(self, z: FloatArray) -> float:
        """By how much ``|matrix z - centre|`` passes 1; negative inside."""
        return float(np.linalg.norm(self.matrix @ z - self.centre) - 1.0)


@dataclass(frozen=True, eq=False)
class Lift:
    """A convex set as ``{offset + matrix z}`` over all z between bounds, with linear rows and balls.

    ``lower <= z <= upper`` and ``row_lower <= rows z <= row_upper``; sides may be infinite.
    """

    offset: FloatArray
    matrix: FloatArray
    lower: FloatArray
    upper: FloatArray
    rows: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    balls: tuple[Ball, ...] = ()

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
        )

    @property
    def coordinates(self) -> int:
        """Number of coordinates z."""
        return self.matrix.shape[1]

    def points(self, z: FloatArray) -> FloatArray:
        """Points of the set for coordinates (k, L)."""
        return self.offset + z @ self.matrix.T


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
    )


def intersection_lift(lifts: Sequence[Lift]) -> Lift:
    """The intersection of convex sets: their coordinates side by side, tied by equal points."""
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
    return Lift(
        lifts[0].offset,
        first,
        whole.lower,
        whole.upper,
        np.concatenate([whole.rows, *ties]),
        np.concatenate([whole.row_lower, tied]),
        np.concatenate([whole.row_upper, tied]),
        whole.balls,
    )


def _widened(matrix: FloatArray, start: int, columns: int) -> FloatArray:
    result = np.zeros((len(matrix), columns))
    result[:, start : start + matrix.shape[1]] = matrix
    return result
