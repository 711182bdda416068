"""The vertices of a set of vectors, all of them or none.

A box has them by its bounds. Of other sets the farthest points in some directions are vertices; the facets of their
hull say in which directions to look on, and when none of these leads farther, the hull is the set.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.convex_sets import Body, BoxBody, ScenarioBody
from osilp_pyomo.offline.functions.matching import affine_hull

# Dimensions in which a hull is computed; how far beyond a facet a new point must lie, by the set's width.
_HULL, _BEYOND = 7, 1e-9


def vertices_of(body: Body, most: int) -> FloatArray | None:
    """All vertices of a set; None where they are more than so many, or the set is not known to be a polytope."""
    if isinstance(body, ScenarioBody):
        return body.scenarios if len(body.scenarios) <= most else None
    if isinstance(body, BoxBody):
        wide = body.upper > body.lower
        if 2.0 ** np.count_nonzero(wide) > most:
            return None
        ends = zip(body.lower.tolist(), body.upper.tolist(), wide.tolist(), strict=True)
        return np.array(list(product(*((low, high) if open_ else (low,) for low, high, open_ in ends))))
    if not body.convex or body.lift().cones:
        return None
    return _by_hulls(body, most)


def _by_hulls(body: Body, most: int) -> FloatArray | None:
    centre, directions = affine_hull(body)
    if not len(directions):
        return centre[None]
    if len(directions) > _HULL:
        return None
    # Coordinates along the affine hull, in which the set is wide.
    inverse = np.asarray(np.linalg.pinv(directions), dtype=np.float64)
    width = np.where(body.upper > body.lower, body.upper - body.lower, 1.0)
    rng = np.random.default_rng(5)
    looks = np.concatenate([directions, -directions, rng.normal(size=(4 * len(directions), body.dimension)) / width])
    found = _distinct(body.support(looks), width)
    if len(directions) == 1:
        along = (found - centre) @ inverse[:, 0]
        return found[[int(np.argmin(along)), int(np.argmax(along))]]
    while len(found) <= most:
        beyond = _beyond_facets(body, found, (found - centre) @ inverse, inverse, width)
        if beyond is None:
            return None
        grown = _distinct(np.concatenate([found, beyond]), width)
        if len(grown) == len(found):
            return found
        found = grown
    return None


def _beyond_facets(
    body: Body, found: FloatArray, coordinates: FloatArray, inverse: FloatArray, width: FloatArray
) -> FloatArray | None:
    """Points of the set beyond facets of the hull of some of its points; None where there is no hull yet."""
    from scipy.spatial import ConvexHull, QhullError  # slow to load, and seldom needed

    scale = np.abs(coordinates).max(axis=0)
    try:
        hull = ConvexHull(coordinates / np.where(scale > 0, scale, 1.0))
    except QhullError:
        return None
    normals = np.unique(np.round(hull.equations[:, :-1], 12), axis=0) / np.where(scale > 0, scale, 1.0)
    looks = normals @ inverse.T
    far = body.support(looks)
    reached = np.einsum("kd,kd->k", looks, far)
    held = (looks @ found.T).max(axis=1)
    return far[reached > held + _BEYOND * (np.abs(looks) @ width)]


def _distinct(points: FloatArray, width: FloatArray) -> FloatArray:
    _, first = np.unique(np.round(points / width, 9), axis=0, return_index=True)
    return points[np.sort(first)]
