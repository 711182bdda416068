"""What is known of a row's curvature in the index: is its excess at some x concave there?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.convexity import AFFINE, CONCAVE, CONVEX


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
