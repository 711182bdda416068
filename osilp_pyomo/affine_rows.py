"""Rows affine in an uncertain vector, as numbers: ``sum_j (a_0j + sum_k xi_k a_kj) x_j`` between affine limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from osilp_pyomo.domains import FloatArray
from osilp_pyomo.problem import BLOCK_SIZE, Family, IntArray, Rows, TracedRows

# Vectors of a set at which formulas are compared with the affine ones that they are taken for.
_COMPARED = 64


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


def as_affine(family: Family) -> Family:
    """A family over a set with its formulas as numbers, where they are affine there; else the family itself.

    Formulas without kinks, jumps and curves are analytic: one that agrees with an affine function at many random
    points is that function.
    """
    rows, body = family.rows, family.domain.body
    if body is None or not isinstance(rows, TracedRows):
        return family
    groups = (*rows.groups, *(rows.lower or ()), *(rows.upper or ()))
    if any(group.switches or not all(isinstance(slot, np.ndarray) for slot in group.slots) for group in groups):
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
