"""Where probability of a sample may be moved to, and how far: vectors of a convex support with at least their distance.

``(xi, t)`` with xi in the support and ``|xi - sample| <= t``. A row affine in both says for every xi what one with the
distance itself would say, and is no longer curved: it has a counterpart by duality, for supports without ends too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.index.convex_sets import MEMBERSHIP, Body
from osilp_pyomo.index.enclosures.regions import Region
from osilp_pyomo.index.extended_form import Lift
from osilp_pyomo.index.lp_sets import LiftedBody
from osilp_pyomo.lp.conic import ConeRows

# How far places that count as nearby are moved, relative to their size.
_NEARBY = 1e-6

ORDERS: dict[Any, float] = {1: 1, 2: 2, "inf": np.inf}


class TransportBody(LiftedBody):
    """Vectors of a support, and at least their distance from a sample in the norm 1, 2 or "inf".

    Parameters
    ----------
    sample : array (d)
    lower, upper : arrays (d)
        Bounds of the support, of which any may be infinite.
    norm : 1, 2 or "inf"
    support : Body, optional
        The support, where it is no box.
    ended : bool
        Whether the distance is at most the longest within the support. Rows that only more distance relaxes need no
        such end; those of decision rules, whose coefficients of the distance are decided, do.

    Examples
    --------
    >>> ray = TransportBody(np.zeros(2), np.array([-1.0, -1.0]), np.full(2, np.inf), 2)
    >>> ray.contains(np.array([[3.0, 4.0, 5.0], [3.0, 4.0, 4.9], [-2.0, 0.0, 9.0]]))
    array([ True, False, False])
    """

    def __init__(
        self,
        sample: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        norm: Any,
        support: Body | None = None,
        ended: bool = False,
    ) -> None:
        self._sample, self._norm, self._support = sample, norm, support
        self._ends = lower, upper
        own = None if support is None else support.lift()
        if ended and norm == 1 and own is None:
            # Moves up and down tell no distances beyond what is needed, up to an end.
            own = Lift.plain(len(sample), lower=lower, upper=upper)
        lift = _of_box(sample, lower, upper, norm) if own is None else _of_lift(sample, own, norm)
        self._distances = None if own is None else lift.coordinates - own.coordinates
        if ended:
            far = np.maximum(upper - sample, sample - lower)
            lift = _ended(lift, far if norm == 1 else np.array([np.linalg.norm(far, ORDERS[norm])]))
        self._ended = ended
        super().__init__(lift, "the support and the distance from a sample")

    def _find_box(self) -> None:
        lower, upper = self._ends
        far = np.maximum(upper - self._sample, self._sample - lower)
        self.lower = np.append(lower, 0.0)
        self.upper = np.append(upper, np.linalg.norm(far, ORDERS[self._norm]))
        if self._support is None and self._norm != 1:
            # The coordinates are a move and a distance.
            self._lift = replace(self._lift, known_largest=np.append(far, self.upper[-1]))
        elif self._distances is not None:
            known = self._lift.largest
            known[-self._distances :] = self.upper[-1]
            self._lift = replace(self._lift, known_largest=known)

    @cached_property
    def centre(self) -> FloatArray:
        """The sample, which is moved nowhere."""
        return np.append(self._sample, 0.0)

    def nearby(self, point: FloatArray) -> FloatArray:
        """Places to all sides of one, each with its own distance: no more than needed."""
        if self._support is not None:
            places = self._support.nearby(point[:-1])
        else:
            step = _NEARBY * np.maximum(1.0, np.abs(point[:-1]))
            places = np.clip(point[:-1] + np.concatenate([np.diag(step), -np.diag(step)]), *self._ends)
        return np.column_stack([places, np.linalg.norm(places - self._sample, ORDERS[self._norm], axis=1)])

    def _drawn(self, count: int, seed: int) -> FloatArray:
        """Moves of all sizes within the support, some with more than their distance."""
        rng = np.random.default_rng(seed)
        if self._support is None:
            size = np.where(np.isfinite(self.upper - self.lower), self.upper - self.lower, 1.0 + np.abs(self.centre))
            moves = rng.normal(size=(count, len(self._sample))) * size[:-1]
            places = np.clip(self._sample + moves, *self._ends)
        else:
            others = self._support.cloud(count, seed)
            places = self._sample + rng.uniform(size=(len(others), 1)) * (others - self._sample)
        distance = np.linalg.norm(places - self._sample, ORDERS[self._norm], axis=1)
        more = np.where(rng.uniform(size=len(places)) < 0.5, 1.0, 1.0 + rng.uniform(size=len(places)))
        longest = self.upper[-1] if self._ended else np.inf
        return np.column_stack([places, np.minimum(distance * more, longest)])

    def contains(self, points: FloatArray) -> BoolArray:
        places, distance = points[:, :-1], points[:, -1]
        size = MEMBERSHIP * np.maximum(1.0, np.abs(places).max(axis=1))
        lower, upper = self._ends
        inside = np.all((places >= lower - size[:, None]) & (places <= upper + size[:, None]), axis=1)
        if self._support is not None:
            inside &= self._support.contains(places)
        if self._ended:
            inside &= distance <= self.upper[-1] * (1 + MEMBERSHIP)
        return inside & (np.linalg.norm(places - self._sample, ORDERS[self._norm], axis=1) <= distance + size)

    def region(self) -> Region | None:
        return None


def _ended(lift: Lift, longest: FloatArray) -> Lift:
    """The same with distances, the last coordinates, that are at most so long."""
    kept = np.flatnonzero(np.isfinite(longest))
    rows = np.zeros((len(kept), lift.coordinates))
    rows[np.arange(len(kept)), lift.coordinates - len(longest) + kept] = 1.0
    return replace(
        lift,
        rows=np.concatenate([lift.rows, rows]),
        row_lower=np.append(lift.row_lower, np.full(len(kept), -np.inf)),
        row_upper=np.append(lift.row_upper, longest[kept]),
    )


def _of_box(sample: FloatArray, lower: FloatArray, upper: FloatArray, norm: Any) -> Lift:
    """Over bounds: for the norm 1 moves up and down, else moves and a distance."""
    dimension = len(sample)
    offset, eye, none = np.append(sample, 0.0), np.eye(dimension), np.zeros((dimension, 1))
    if norm == 1:
        matrix = np.concatenate([np.column_stack([eye, -eye]), np.ones((1, 2 * dimension))])
        return Lift.plain(
            2 * dimension,
            lower=0.0,
            upper=np.concatenate([upper - sample, sample - lower]),
            offset=offset,
            matrix=matrix,
        )
    low, high = np.append(lower - sample, 0.0), np.append(upper - sample, np.inf)
    if norm == 2:
        cone = ConeRows.second_order(np.roll(np.eye(dimension + 1), 1, axis=0), np.zeros(dimension + 1), dimension + 1)
        return Lift.plain(dimension + 1, lower=low, upper=high, offset=offset, other_cones=(cone,))
    rows = np.concatenate([np.column_stack([eye, none - 1.0]), np.column_stack([-eye, none - 1.0])])
    return Lift.plain(dimension + 1, lower=low, upper=high, rows=rows, row_upper=0.0, offset=offset)


def _of_lift(sample: FloatArray, support: Lift, norm: Any) -> Lift:
    """Over any convex set: its coordinates, and distances of the entries (norm 1) or of the vector."""
    dimension, own = len(sample), support.coordinates
    count = dimension if norm == 1 else 1
    moved = support.offset - sample
    rows = np.column_stack([support.rows, np.zeros((len(support.rows), count))])
    lower, upper = support.row_lower, support.row_upper
    cones = [cone.widened(np.arange(own), own + count) for cone in support.cones]
    if norm == 2:
        entries = np.zeros((dimension + 1, own + 1))
        entries[0, own], entries[1:, :own] = 1.0, support.matrix
        cones.append(ConeRows.second_order(entries, np.append(0.0, moved), dimension + 1))
    else:
        mark = np.eye(dimension) if norm == 1 else np.ones((dimension, 1))
        near = np.concatenate([np.column_stack([side * support.matrix, -mark]) for side in (1.0, -1.0)])
        rows = np.concatenate([rows, near])
        lower = np.concatenate([lower, np.full(2 * dimension, -np.inf)])
        upper = np.concatenate([upper, -moved, moved])
    matrix = np.zeros((dimension + 1, own + count))
    matrix[:dimension, :own], matrix[dimension, own:] = support.matrix, 1.0
    return Lift.plain(
        own + count,
        lower=np.concatenate([support.lower, np.zeros(count)]),
        upper=np.concatenate([support.upper, np.full(count, np.inf)]),
        rows=rows,
        row_lower=lower,
        row_upper=upper,
        offset=np.append(support.offset, 0.0),
        matrix=matrix,
        other_cones=tuple(cones),
        known_largest=np.concatenate([support.largest, np.full(count, np.inf)]),
    )
