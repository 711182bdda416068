"""Weighted points that stand close together, joined into their means."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from osilp_pyomo._arrays import FloatArray, IntArray

# Points whose pairs are compared one by one; more than a working set ever binds.
_MOST_JOINED = 500


def cluster_means(
    points: FloatArray, weights: FloatArray, width: FloatArray, radius: float
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Join points (m, d) that are linked by steps of at most ``radius`` widths and whose weights agree in sign.

    Returns
    -------
    means, masses, counts : arrays
        Weighted mean, total weight and number of members of each cluster.

    Examples
    --------
    >>> cluster_means(np.array([[0.1], [0.2], [0.9]]), np.array([1.0, 3.0, 2.0]), np.ones(1), 0.15)
    (array([[0.175],
           [0.9  ]]), array([4., 2.]), array([2, 1]))
    """
    count = len(points)
    pairs = cKDTree(points / width).query_pairs(radius, p=np.inf, output_type="ndarray")
    pairs = pairs[weights[pairs[:, 0]] * weights[pairs[:, 1]] > 0]
    links = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    labels = connected_components(links, directed=False)[1]
    masses: FloatArray = np.bincount(labels, weights).astype(float)
    means = np.stack([np.bincount(labels, weights * axis) / masses for axis in points.T], axis=1)
    return means, masses, np.bincount(labels)


def join_close(
    points: FloatArray, weights: FloatArray, width: FloatArray, allowance: float
) -> tuple[FloatArray, FloatArray]:
    """Join pairs of points into their weighted means, the closest first, while that costs little.

    Replacing two masses by their mean changes the integral of a smooth function by about half its second
    derivative times w1 w2 / (w1 + w2) times the square of their distance; ``allowance`` is what that may be, in
    widths and relative to the whole mass.

    Examples
    --------
    >>> join_close(np.array([[0.3], [0.30001], [0.9]]), np.array([1.0, 3.0, 2.0]), np.ones(1), 1e-7)
    (array([[0.3000075],
           [0.9      ]]), array([4., 2.]))
    """
    points, weights = points.copy(), weights.copy()
    allowed = allowance * np.abs(weights).sum()
    while 1 < len(points) <= _MOST_JOINED:
        distance = np.square((points[:, None] - points[None]) / width).sum(axis=2)
        same_sign = weights[:, None] * weights[None] > 0
        mass = np.abs(weights[:, None] * weights[None] / np.where(same_sign, weights[:, None] + weights[None], 1.0))
        cost = np.where(same_sign, mass * distance, np.inf)
        np.fill_diagonal(cost, np.inf)
        first, second = np.unravel_index(int(np.argmin(cost)), cost.shape)
        if cost[first, second] > allowed:
            break
        both = weights[first] + weights[second]
        points[first] = (weights[first] * points[first] + weights[second] * points[second]) / both
        weights[first] = both
        points, weights = np.delete(points, second, axis=0), np.delete(weights, second)
    return points, weights
