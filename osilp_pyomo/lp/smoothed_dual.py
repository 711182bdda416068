"""The dual of an LP of few rows and many bounded columns, smoothed: Newton's method in as many dimensions as rows.

The LP ``max r'x, C'x <= B, 0 <= x <= span`` has the dual ``min B'w + sum_t span_t (r_t - C_t w)+`` over w >= 0: a
convex function of few variables, and a pass over the columns gives its value and slope. Its corners are rounded by
``(s)+ ~ m log(1 + exp(s / m))``, with m a share mu of each column's size, so that Newton's method works; mu is driven
down until few columns lie on the rounding. What is left is exact arithmetic on those columns (``lp/wide.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._jit import HAS_NUMBA, jit

# How much of its size a column is rounded by: at first, and the ratio between rounds.
_FIRST, _RATIO = 0.3, 0.25
# Rounds end when fewer columns than these, and these for each row, lie on the rounding, or it is this fine.
_FEWEST, _FEWEST_PER_ROW, _FINEST = 40, 2, 1e-9
# Steps in a round at most, halvings of one step, and the gain, as a share of the rounding, that ends a round.
_STEPS, _HALVINGS, _GAIN = 40, 25, 1e-6
# What is added to the diagonal of a curvature, whose diagonal is 1.
_RIDGE = 1e-9
# A step goes at most so many times as far as prices are large.
_FARTHEST = 10.0
# Beyond this many roundings log(1 + exp(z)) is z or nothing.
_FAR = 36.0
# A dual so many times the ratio of values and uses stands for a problem without solution.
_ENDLESS = 1e9


def sizes_of(matrix: FloatArray, dual: FloatArray) -> FloatArray:
    """What the threshold of a column is measured by: its use at the prices, none of which counts as nothing."""
    return np.abs(matrix) @ anchors(dual)


def anchors(dual: FloatArray) -> FloatArray:
    """Sizes of prices: their own, or a tenth of the mean, so that a row which is free today can have a price."""
    size = np.abs(dual)
    mean = float(size.mean()) if len(size) else 0.0
    return np.maximum(size, 0.1 * mean) if mean > 0 else np.ones(len(dual))


def minimize_smoothed(
    values: FloatArray,
    matrix: FloatArray,
    span: FloatArray,
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray,
    first: float | None = None,
) -> FloatArray:
    """A dual near that of ``max values @ x, x @ matrix <= budget, 0 <= x <= span``.

    Parameters
    ----------
    matrix : array (T, q)
    floor : array (q,)
        Least price of a row: 0, or -inf for equations.
    dual : array (q,)
        Where to begin.
    first : float, optional
        By how much of its size each column is rounded at first: about as far as the dual may be off.
    """
    if not len(dual):
        return dual
    share = _FIRST if first is None else min(first, _FIRST)
    scale = _price_size(values, matrix)
    while True:
        # A column that earns nothing, or uses nothing, is rounded like a small one among the others.
        sizes = np.maximum(np.abs(values), sizes_of(matrix, dual) if dual.any() else 0.0)
        rounding = share * np.maximum(sizes, 1e-3 * float(sizes.mean()) or 1.0)
        farthest = _FARTHEST * (scale + float(np.abs(dual).max(initial=0.0)))
        dual, near = _minimize(values, matrix, span, budget, floor, dual, rounding, farthest)
        if (
            share <= _FINEST
            or near < _FEWEST + _FEWEST_PER_ROW * len(budget)
            or np.abs(dual).max(initial=0.0) > _ENDLESS * scale
        ):
            return dual
        share *= _RATIO


def _price_size(values: FloatArray, matrix: FloatArray) -> float:
    """How large a price can be expected to be: a value over a use."""
    use = float(np.abs(matrix).max(initial=0.0))
    return (float(np.abs(values).max(initial=0.0)) or 1.0) / (use or 1.0)


def _minimize(
    values: FloatArray,
    matrix: FloatArray,
    span: FloatArray,
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray,
    rounding: FloatArray,
    farthest: float,
) -> tuple[FloatArray, int]:
    """Newton's method with prices kept above their floor; also how many columns lie on the rounding."""
    finest = float(rounding @ span)
    height, slope, curvature, near = _look(values, matrix, span, budget, dual, rounding)
    for _ in range(_STEPS):
        try:
            step = _newton_step(slope, curvature, dual, floor, farthest)
        except (RuntimeError, np.linalg.LinAlgError):
            # NNLS or the factorization gave up; the dual is a beginning, and this one will do.
            break
        if not -(slope @ step) > _GAIN * finest:
            break
        length = 1.0
        for _ in range(_HALVINGS):
            moved = np.maximum(dual + length * step, floor)
            seen = _look(values, matrix, span, budget, moved, rounding)
            if seen[0] <= height + 1e-4 * float(slope @ (moved - dual)):
                break
            length *= 0.4
        else:
            break
        dual, (height, slope, curvature, near) = moved, seen
    return dual, near


def _newton_step(
    slope: FloatArray, curvature: FloatArray, dual: FloatArray, floor: FloatArray, farthest: float
) -> FloatArray:
    """The step to the least value of the quadratic model among prices above their floor.

    As least squares with |L'(w + step) - b|, curvature = L L', which NNLS solves exactly; prices without a floor are
    differences of two.
    """
    size = np.sqrt(np.diag(curvature))
    size = np.where(size > 0, size, float(np.abs(slope).max(initial=0.0)) / farthest or 1.0)
    # Rows that the columns on the rounding do not tell apart: a little of the diagonal decides.
    scaled = curvature / np.outer(size, size) + _RIDGE * np.eye(len(dual))
    root = np.linalg.cholesky(scaled)
    target = root.T @ (dual * size) - np.linalg.solve(root, slope / size)
    free = ~np.isfinite(floor)
    found, _ = nnls(np.concatenate([root.T, -root.T[:, free]], axis=1), target)
    moved = found[: len(dual)].copy()
    moved[free] -= found[len(dual) :]
    step: FloatArray = moved / size - dual
    longest = float(np.abs(step).max(initial=0.0))
    return step if longest <= farthest else step * (farthest / longest)


def _look(
    values: FloatArray, matrix: FloatArray, span: FloatArray, budget: FloatArray, dual: FloatArray, rounding: FloatArray
) -> tuple[float, FloatArray, FloatArray, int]:
    """Value, slope and curvature of the smoothed dual, and how many columns lie on the rounding."""
    slope, curvature = budget.copy(), np.zeros((len(dual), len(dual)))
    height, near = _pass(values, matrix, span, rounding, dual, slope, curvature)
    return height + float(budget @ dual), slope, curvature, near


def _pass_loop(
    values: FloatArray,
    matrix: FloatArray,
    span: FloatArray,
    rounding: FloatArray,
    dual: FloatArray,
    slope: FloatArray,
    curvature: FloatArray,
) -> tuple[float, int]:
    """One pass over the columns: adds to slope and curvature, gives the height and the columns on the rounding."""
    columns, rows = matrix.shape
    height, near = 0.0, 0
    for t in range(columns):
        margin = values[t]
        for i in range(rows):
            margin -= matrix[t, i] * dual[i]
        z = margin / rounding[t]
        if z > _FAR:
            height += span[t] * margin
            for i in range(rows):
                slope[i] -= span[t] * matrix[t, i]
        elif z > -_FAR:
            small = np.exp(-abs(z))
            share = 1.0 / (1.0 + small) if z > 0 else small / (1.0 + small)
            height += span[t] * (max(margin, 0.0) + rounding[t] * np.log1p(small))
            taken = span[t] * share
            bend = taken * (1.0 - share) / rounding[t]
            if abs(z) < 1.0:
                near += 1
            for i in range(rows):
                slope[i] -= taken * matrix[t, i]
                part = bend * matrix[t, i]
                for j in range(i + 1):
                    curvature[i, j] += part * matrix[t, j]
    for i in range(rows):
        for j in range(i):
            curvature[j, i] = curvature[i, j]
    return height, near


def _pass_numpy(
    values: FloatArray,
    matrix: FloatArray,
    span: FloatArray,
    rounding: FloatArray,
    dual: FloatArray,
    slope: FloatArray,
    curvature: FloatArray,
) -> tuple[float, int]:
    margin = values - matrix @ dual
    with np.errstate(over="ignore"):
        z = margin / rounding
    small = np.exp(-np.abs(z))
    share = np.where(z > 0, 1.0, small) / (1.0 + small)
    taken = span * share
    slope -= taken @ matrix
    curved = np.abs(z) < _FAR
    some = matrix[curved]
    bend = taken[curved] * (1.0 - share[curved]) / rounding[curved]
    curvature += some.T @ (some * bend[:, None])
    height = float(span @ (np.maximum(margin, 0.0) + rounding * np.log1p(small)))
    return height, int(np.sum(np.abs(z) < 1.0))


_pass: Any = jit(_pass_loop) if HAS_NUMBA else _pass_numpy
