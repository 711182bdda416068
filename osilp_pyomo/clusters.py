"""Weighted points that stand close together, joined into their means."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from osilp_pyomo.domains import FloatArray
from osilp_pyomo.problem import IntArray


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
