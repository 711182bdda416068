"""Rows affine in an uncertain vector, as numbers: ``sum_j (a_0j + sum_k xi_k a_kj) x_j`` between affine limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.rows import BLOCK_SIZE, Rows


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
        """The same coefficients with every limit at zero."""
        zero = np.zeros(len(self.matrix))
        return AffineRows(
            self.columns, self.matrix, None if self.lower is None else zero, None if self.upper is None else zero
        )
