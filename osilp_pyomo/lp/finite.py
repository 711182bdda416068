"""A finite LP in labelled arrays, rows of it in numbers, and what violations are measured by."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo._threads import one_thread

# How far from a whole number a bound of an integer may lie and count as it.
WHOLE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class FiniteLP:
    """Optimize ``cost @ x + offset`` over ``row_lower <= matrix @ x <= row_upper`` and column bounds.

    Names are there for whoever speaks to the user; an LP within another needs none.
    """

    maximize: bool
    cost: FloatArray
    column_lower: FloatArray
    column_upper: FloatArray
    matrix: Any  # scipy.sparse.csr_array (rows, columns)
    row_lower: FloatArray
    row_upper: FloatArray
    offset: float = 0.0
    integer: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))  # none, if not given
    column_names: Sequence[str] = ()
    row_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if len(self.integer) < self.columns:
            object.__setattr__(self, "integer", np.zeros(self.columns, dtype=bool))
        if self.integer.any():
            # A whole number between 0.2 and 2.7 is 1 or 2. HiGHS' own presolve of such bounds has given wrong optima.
            lower = np.where(self.integer, np.ceil(self.column_lower - WHOLE), self.column_lower)
            upper = np.where(self.integer, np.floor(self.column_upper + WHOLE), self.column_upper)
            object.__setattr__(self, "column_lower", lower)
            object.__setattr__(self, "column_upper", upper)

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
        # A row such as x == 0 is missed by a rounding of the other variables, which is all of its own size. Beside very
        # large variables that could hide what counts, so that it ends somewhere.
        rounding = min(_ROUNDINGS * np.finfo(float).eps * float(np.abs(x).max(initial=0.0)), _HIDDEN)
        entries = abs(self.matrix).max(axis=1).toarray().ravel() if self.matrix.nnz else np.zeros(len(activity))
        for value, terms, lower, upper, lost in (
            (activity, size, self.row_lower, self.row_upper, rounding * entries),
            (x, np.abs(x), self.column_lower, self.column_upper, 0.0),
        ):
            excess = np.maximum(value - upper, lower - value) - lost
            worst = max(worst, float(np.max(excess / violation_scale(value, terms, lower, upper), initial=0.0)))
        return worst


# By which share a weight may be changed so that equations balance.
_MOST_CHANGED = 1e-3
# Roundings of the largest variable that an ordinary row may be missed by, and how much that may be at most.
_ROUNDINGS, _HIDDEN = 16, 1e-12
# Turns in which equations are closed.
_REFINED = 8


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
        size: FloatArray = np.abs(self.matrix) @ np.abs(x[self.columns])
        return size

    def scale(self, x: FloatArray) -> FloatArray:
        """What violations of the rows are measured by; see :func:`violation_scale`."""
        return violation_scale(self.matrix @ x[self.columns], self.size(x), self.lower, self.upper)


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


def balanced(matrix: FloatArray, weights: FloatArray, missed: FloatArray) -> FloatArray:
    """Weights with which ``matrix @ weights`` is smaller by what is missed, each changed by as small a share as can be.

    Weights that are zero stay so, and all keep their signs; where that cannot be, they are left as they are. Solvers
    leave the equations of their duals open by some 1e-10, and here they are closed up to rounding.
    """
    used = np.flatnonzero(weights)
    if not len(used) or not len(missed):
        return weights
    share = closing_shares(matrix[:, used] * weights[used], missed)
    if share is None:
        return weights
    result = weights.copy()
    result[used] *= 1 - share
    return result


def closing_shares(terms: FloatArray, missed: FloatArray) -> FloatArray | None:
    """By which small shares of the terms (n, k) of n equations these are closed; None where none are small."""
    size = np.abs(terms).sum(axis=1)
    size = np.where(size > 0, size, 1.0)
    share = _shortest(terms / size[:, None], missed / size)
    return share if np.all(np.abs(share) < _MOST_CHANGED) else None


def _shortest(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The shortest vector with ``matrix @ vector = right``, or that comes nearest to it."""
    import scipy.linalg  # slow to load, and seldom needed; loaded before its threads are limited

    # Of matrices of this size several threads make no faster work, and where cores are shared a far slower one.
    with one_thread():
        return _shortest_by(scipy.linalg, matrix, right)


def _shortest_by(linalg: Any, matrix: FloatArray, right: FloatArray) -> FloatArray:
    """From the matrix' square, which is several times as fast as a factorization of it, where that is good enough.

    Whoever balances does so again while it helps.
    """
    if len(matrix) <= matrix.shape[1]:
        square = matrix @ matrix.T
        # Equations that say the same are no trouble for a square that is a little larger.
        square[np.diag_indices_from(square)] += 1e-11 * np.trace(square) / len(square)
        with suppress(linalg.LinAlgError):
            factor = linalg.cho_factor(square, check_finite=False)
            share, left = np.zeros(matrix.shape[1]), right
            for _ in range(_REFINED):
                # What the larger square leaves open is closed in turns, far faster than by a factorization.
                share = share + matrix.T @ linalg.cho_solve(factor, left, check_finite=False)
                left = right - matrix @ share
                if np.abs(left).max(initial=0.0) <= 1e-3 * np.abs(right).max(initial=0.0):
                    return share
    # A pivoted QR is as short as singular values are, and faster.
    found: FloatArray = linalg.lstsq(matrix, right, cond=1e-12, lapack_driver="gelsy", check_finite=False)[0]
    return found
