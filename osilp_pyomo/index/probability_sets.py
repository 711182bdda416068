"""Probabilities near given ones, by a divergence: the convex sets behind reweighted scenarios."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.index.convex_sets import MEMBERSHIP
from osilp_pyomo.index.enclosures.regions import Region
from osilp_pyomo.index.extended_form import Ball, Lift
from osilp_pyomo.index.lp_sets import LiftedBody
from osilp_pyomo.lp.conic import EXPONENTIAL, ConeRows

# Halvings by which a draw is brought into the set.
_HALVINGS = 40
# The largest share of the way to the given probabilities by which a farthest point is brought into the set.
_PULLED = 1e-6


class ProbabilityBody(LiftedBody):
    """Probabilities p with ``lower <= p <= upper`` and a divergence from ``weights`` that is limited, by more than 0.

    Parameters
    ----------
    weights, lower, upper : arrays (n)
    kullback_leibler : float, optional
        Largest ``sum p log(p / weights)``.
    chi_square : float, optional
        Largest ``sum (p - weights)^2 / weights``.
    total_variation : float, optional
        Largest half of ``sum |p - weights|``.

    Examples
    --------
    >>> near = ProbabilityBody(np.full(2, 0.5), np.zeros(2), np.ones(2), chi_square=0.04)
    >>> near.support(np.array([[1.0, 0.0]])).round(6)
    array([[0.6, 0.4]])
    """

    def __init__(
        self,
        weights: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        *,
        kullback_leibler: float | None = None,
        chi_square: float | None = None,
        total_variation: float | None = None,
    ) -> None:
        self._weights = weights
        if kullback_leibler is not None or chi_square is not None:
            # A scenario without probability has an infinite divergence from any.
            upper = np.where(weights > 0, upper, 0.0)
        # The farthest probabilities put all on the rarest scenario: limits beyond that say nothing.
        rarest = float(weights[weights > 0].min())
        self._limits = {
            "kullback": None if kullback_leibler is None or kullback_leibler >= -np.log(rarest) else kullback_leibler,
            "square": None if chi_square is None or chi_square >= 1 / rarest - 1 else chi_square,
            "variation": total_variation,
        }
        self._ends = lower, upper
        super().__init__(self._described(), "probabilities near given ones")

    def _described(self) -> Lift:
        """Coordinates: the probabilities, then terms of the divergence, then differences from the weights."""
        count, (lower, upper) = len(self._weights), self._ends
        used = np.flatnonzero(self._weights > 0)
        terms = len(used) if self._limits["kullback"] is not None else 0
        apart = count if self._limits["variation"] is not None else 0
        total = count + terms + apart
        rows, low, high = [np.concatenate([np.ones(count), np.zeros(total - count)])], [1.0], [1.0]
        cones, balls = [], []
        if self._limits["kullback"] is not None:
            rows.append(np.concatenate([np.zeros(count), np.ones(terms), np.zeros(apart)]))
            low.append(-np.inf)
            high.append(float(self._limits["kullback"]))
            # p exp(-t / p) <= weight says t >= p log(p / weight).
            entries, offset = np.zeros((3 * terms, total)), np.zeros(3 * terms)
            entries[3 * np.arange(terms), count + np.arange(terms)] = -1.0
            entries[3 * np.arange(terms) + 1, used] = 1.0
            offset[2::3] = self._weights[used]
            cones.append(ConeRows(EXPONENTIAL, 3, _sparse(entries), offset))
        if self._limits["square"] is not None:
            size = 1 / np.sqrt(self._weights[used] * float(self._limits["square"]))
            matrix = np.zeros((len(used), total))
            matrix[np.arange(len(used)), used] = size
            balls.append(Ball(matrix, size * self._weights[used]))
        if self._limits["variation"] is not None:
            for side in (1.0, -1.0):
                rows += list(np.column_stack([side * np.eye(count), np.zeros((count, terms)), -np.eye(count)]))
                low += [-np.inf] * count
                high += (side * self._weights).tolist()
            rows.append(np.concatenate([np.zeros(count + terms), np.ones(apart)]))
            low.append(-np.inf)
            high.append(2 * float(self._limits["variation"]))
        # No term is below -weight / e, so that none is above the limit and 1 / e.
        far = 1.0 + float(self._limits["kullback"] or 0.0)
        return Lift.plain(
            total,
            lower=np.concatenate([lower, np.full(terms, -np.inf), np.zeros(apart)]),
            upper=np.concatenate([upper, np.full(terms, np.inf), np.full(apart, np.inf)]),
            rows=np.array(rows),
            row_lower=np.array(low),
            row_upper=np.array(high),
            offset=np.zeros(count),
            matrix=np.eye(count, total),
            balls=tuple(balls),
            other_cones=tuple(cones),
            known_largest=np.concatenate([np.ones(count), np.full(terms, far), np.ones(apart)]),
        )

    def _find_box(self) -> None:
        self.lower, self.upper = self._ends

    @cached_property
    def centre(self) -> FloatArray:
        """The given probabilities."""
        return self._weights

    def _drawn(self, count: int, seed: int) -> FloatArray:
        """Other probabilities, moved towards the given ones until they belong to the set."""
        others = np.random.default_rng(seed).dirichlet(np.ones(self.dimension), size=count)
        low, high = np.zeros(count), np.ones(count)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = self._within_limits(self._weights + middle[:, None] * (others - self._weights))
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return self._weights + low[:, None] * (others - self._weights)

    def support(self, directions: FloatArray) -> FloatArray:
        return self.brought_in(super().support(directions))

    def brought_in(self, points: FloatArray) -> FloatArray:
        found = np.clip(points, *self._ends)
        found = found / found.sum(axis=1, keepdims=True)
        low, high = np.zeros(len(found)), np.full(len(found), _PULLED)
        kept = self._within_limits(found)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = self._within_limits(found + middle[:, None] * (self._weights - found))
            low, high = np.where(inside, low, middle), np.where(inside, middle, high)
        return np.where(kept[:, None], found, found + high[:, None] * (self._weights - found))

    def contains(self, points: FloatArray) -> BoolArray:
        return self._within_limits(points, MEMBERSHIP) & (np.abs(points.sum(axis=1) - 1) <= MEMBERSHIP)

    def _within_limits(self, points: FloatArray, tolerance: float = 0.0) -> BoolArray:
        """Whether numbers that sum to 1 are within their bounds and near enough to the given probabilities."""
        lower, upper = self._ends
        inside = np.all((points >= lower - tolerance) & (points <= upper + tolerance), axis=1)
        share = np.where(
            self._weights > 0, np.maximum(points, 0.0) / np.where(self._weights > 0, self._weights, 1.0), 0.0
        )
        with np.errstate(all="ignore"):
            kullback = np.where(points > 0, points * np.log(np.where(share > 0, share, 1.0)), 0.0).sum(axis=1)
        square = ((share - 1) ** 2 * self._weights).sum(axis=1)
        variation = np.abs(points - self._weights).sum(axis=1) / 2
        for name, value in (("kullback", kullback), ("square", square), ("variation", variation)):
            limit = self._limits[name]
            if limit is not None:
                inside &= value <= limit + tolerance
        return inside

    def region(self) -> Region | None:
        return None


def _sparse(entries: FloatArray) -> object:
    from scipy import sparse  # loaded when a set needs it, not when the package is imported

    return sparse.csr_array(entries)
