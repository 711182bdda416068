"""Upper bounds of a function over boxes from its enclosures.

With r = u - c, the smooth base of a function is ``base(c) + slope(c) r + r' H r / 2`` with a Hessian H from somewhere
in the box, so that an enclosure of the Hessian gives an upper bound that is exact up to the third power of the box's
width: a strict maximum does not have to be cut into ever smaller boxes (the cluster problem of first-order bounds). The
quadratic form is bounded in the eigenvectors of the middle of H, and along the axes; the smaller bound counts.
"""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import FloatArray

# Share of the sizes of all terms that their sum here may miss by rounding: some fifty operations.
_ROUNDING = 64 * 2.0**-52


def mean_value_bound(centre: FloatArray, slopes: FloatArray, down: FloatArray, up: FloatArray) -> FloatArray:
    """Bound by the value at the centre and the slopes in the box; r lies between ``down`` <= 0 and ``up`` >= 0."""
    rise = np.maximum(slopes[0] * down, slopes[1] * up)
    # A side without width adds nothing, however steep it is.
    rise = np.where(rise > 0, rise, np.where(np.isnan(rise) & ((down < 0) | (up > 0)), np.inf, 0.0)).sum(axis=0)
    return centre + rise + _ROUNDING * (np.abs(centre) + rise)


def second_order_bound(
    centre: FloatArray, slope: FloatArray, bends: FloatArray, down: FloatArray, up: FloatArray
) -> FloatArray:
    """Bound by value (n), gradient (2, d, n) at the centre and Hessian (2, d, d, n) in the box; infinite if unknown."""
    dimension, boxes = down.shape
    known = np.isfinite(bends).all(axis=(0, 1, 2)) & np.isfinite(slope).all(axis=(0, 1)) & np.isfinite(centre)
    result = np.full(boxes, np.inf)
    if not known.any():
        return result
    if not known.all():
        centre, slope, bends, down, up = (part[..., known] for part in (centre, slope, bends, down, up))
    far = np.maximum(-down, up)
    middle, radius = slope.mean(axis=0), (slope[1] - slope[0]) / 2
    steep = (radius * far).sum(axis=0)
    size = np.abs(centre) + (np.abs(slope).max(axis=0) * far).sum(axis=0)
    size += np.einsum("ijn,in,jn->n", np.abs(bends).max(axis=0), far, far)
    bound = _along_axes(middle, bends, down, up, far)
    if dimension > 1:
        bound = np.minimum(bound, _along_eigenvectors(middle, bends, down, up, far))
    result[known] = centre + bound + steep + _ROUNDING * size
    return result


def _largest(slope: FloatArray, bend: FloatArray, down: FloatArray, up: FloatArray) -> FloatArray:
    """Largest ``slope r + bend r^2 / 2`` for r between down and up."""
    ends = np.maximum((slope + bend * down / 2) * down, (slope + bend * up / 2) * up)
    with np.errstate(all="ignore"):
        top = -slope / bend
        inside = (bend < 0) & (top > down) & (top < up)
        return np.where(inside, -slope * slope / (2 * bend), ends)


def _along_axes(slope: FloatArray, bends: FloatArray, down: FloatArray, up: FloatArray, far: FloatArray) -> FloatArray:
    """Each axis alone; a mixed derivative m is at most ``|m| (r_i^2 f_j / f_i + r_j^2 f_i / f_j) / 2``."""
    axes = np.arange(len(slope))
    bend = bends[1][axes, axes]
    if len(slope) > 1:
        mixed = np.abs(bends).max(axis=0)
        mixed[axes, axes] = 0.0
        with np.errstate(all="ignore"):
            share = np.where((far[:, None] > 0) & (far[None] > 0), far[None] / far[:, None], 0.0)
        bend = bend + (mixed * share).sum(axis=1)
    return _largest(slope, bend, down, up).sum(axis=0)


def _along_eigenvectors(
    slope: FloatArray, bends: FloatArray, down: FloatArray, up: FloatArray, far: FloatArray
) -> FloatArray:
    """In the eigenvectors of the middle of H, to which its radius is added along the axes."""
    dimension = len(slope)
    axes = np.arange(dimension)
    thin = far == 0
    scale = np.where(thin, 1.0, far)
    off = thin[:, None] | thin[None]
    middle = np.where(off, 0.0, (bends[0] + bends[1]) / 2)
    radius = np.where(off, 0.0, (bends[1] - bends[0]) / 2)
    # |r_i| rad_ij |r_j| is at most half of r_i^2 rad_ij f_j / f_i and the same with i and j exchanged.
    middle[axes, axes] += (radius * scale[None] / scale[:, None]).sum(axis=1)
    matrices = np.moveaxis(middle, -1, 0)
    values, vectors = np.linalg.eigh(matrices)
    # What the decomposition misses of the matrix, and the vectors of a turned frame.
    missed = np.abs(matrices - (vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2)).max(axis=(1, 2))
    missed += 32 * dimension * 2.0**-52 * np.abs(values).max(axis=1)
    turned = np.einsum("nji,jn->in", vectors, slope)
    left = np.abs(slope - np.einsum("nij,jn->in", vectors, turned)) + 32 * dimension * 2.0**-52 * np.abs(slope).max(
        axis=0
    )
    positive, negative = np.maximum(vectors, 0.0), np.minimum(vectors, 0.0)
    high = np.einsum("nji,jn->in", positive, up) + np.einsum("nji,jn->in", negative, down)
    low = np.einsum("nji,jn->in", positive, down) + np.einsum("nji,jn->in", negative, up)
    margin = 32 * dimension * 2.0**-52 * np.maximum(np.abs(low), np.abs(high)).max(axis=0)
    bent = values.T
    quadratic = _largest(turned, bent, low - margin, high + margin).sum(axis=0)
    # A concave function lies below its tangent plane.
    plane = np.maximum(slope * down, slope * up).sum(axis=0)
    quadratic = np.where(bent.max(axis=0) + missed * dimension <= 0, np.minimum(quadratic, plane), quadratic)
    return quadratic + missed * dimension * (far**2).sum(axis=0) / 2 + (left * far).sum(axis=0)
