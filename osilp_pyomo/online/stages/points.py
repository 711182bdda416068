"""The points at which a row is seen online: those of its grid, the ends of its index, and where its limits switch."""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.index.grids import GridPoints, tensor_points
from osilp_pyomo.offline.prepare import switch_places
from osilp_pyomo.online.stages.template import StageFamily


def all_points(functionals: Functionals, grid: GridPoints, extra: FloatArray) -> FloatArray:
    """Points of the test functions, then those of the grid and the extra ones that are not among them."""
    parts = [functionals.points]
    if functionals.points is not grid.points:
        known = {tuple(point) for point in functionals.points.tolist()}
        extra = np.concatenate([grid.points, extra])
        extra = extra[[tuple(point) not in known for point in extra.tolist()]]
    if len(extra):
        parts.append(extra)
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def ends_and_knots(family: StageFamily, points: FloatArray) -> FloatArray:
    """Corners of a box that a grid leaves out, and where limits have kinks or jumps, for guards and reports."""
    domain = family.domain
    if domain.dimension > 3:
        return np.empty((0, domain.dimension))
    corners = tensor_points([np.array([low, high]) for low, high in zip(domain.lower, domain.upper, strict=True)])
    corners = corners[domain.contains(corners)]
    if domain.dimension == 1 and domain.bounded:
        knots = _knots(family)
        corners = np.concatenate([corners, knots[domain.contains(knots)]])
    known = {tuple(point) for point in points.tolist()}
    new = dict.fromkeys(map(tuple, corners.tolist()))
    return np.array([point for point in new if point not in known]).reshape(-1, domain.dimension)


def _knots(family: StageFamily) -> FloatArray:
    """Where limits switch, and knots of curves (n, 1): once where a limit is continuous, on both sides of a jump."""
    domain = family.domain
    groups = [group for side in (family.limits.lower, family.limits.upper) if side is not None for group in side]
    low, high = (np.concatenate([each, domain.marks[0]]) for each in switch_places(domain, groups))
    # The numbers on both sides; a value at the switch itself may belong to either.
    ends = np.stack([np.nextafter(low, -np.inf), low, high, np.nextafter(high, np.inf)])
    ends = np.clip(ends, domain.lower[0], domain.upper[0])
    jumps = np.zeros(len(low), dtype=bool)
    for group in groups:
        values = np.stack([group.total(each[:, None]) for each in ends])
        jumps |= np.ptp(values, axis=0) > 1e-9 * np.abs(values).max(axis=0)
    return np.unique(np.concatenate([low[~jumps], *ends[:, jumps]]))[:, None]
