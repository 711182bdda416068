"""Test functions for sets of any dimension: the cells of their extreme points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import BasisError
from osilp_pyomo.index.bases import Basis
from osilp_pyomo.index.convex_sets import Body, BoxBody
from osilp_pyomo.index.domain import Domain

# Extreme points among which the middles of cells are chosen.
_CANDIDATES = 1024


@dataclass(frozen=True)
class Cells(Basis):
    """One for each of ``count`` cells, zero elsewhere: a point belongs to the nearest of ``count`` extreme points.

    The extreme points are spread as far from each other as they can be, the first being farthest from the middle. A
    tensor of functions along each axis would need a number that grows like a power of the dimension; cells do not.

    Parameters
    ----------
    count : int
        How many cells.

    Examples
    --------
    >>> square = Domain.box(u=(0, 1), v=(0, 1))
    >>> Cells(4).evaluate(square, np.array([[0.1, 0.2], [0.9, 0.8]])).sum(axis=1)
    array([1., 1.])
    """

    count: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int | np.integer) or self.count < 1:
            raise BasisError(f"Cells: the number of cells must be a whole number >= 1 (got {self.count!r}).")

    def middles(self, domain: Domain) -> FloatArray:
        """The points that cells belong to, at most ``count``: a set may have fewer extreme points."""
        body = body_around(domain)
        candidates = np.unique(body.cloud(2 * _CANDIDATES, seed=2)[1 : _CANDIDATES + 1], axis=0)
        unit = (candidates - body.centre) / domain.width
        chosen = [int(np.argmax(np.square(unit).sum(axis=1)))]
        distance = np.square(unit - unit[chosen[0]]).sum(axis=1)
        while len(chosen) < self.count and distance.max() > 1e-18:
            chosen.append(int(np.argmax(distance)))
            distance = np.minimum(distance, np.square(unit - unit[chosen[-1]]).sum(axis=1))
        return candidates[chosen]

    def evaluate(self, domain: Domain, points: FloatArray) -> FloatArray:
        middles = self.middles(domain)
        gaps = (points[:, None, :] - middles[None]) / domain.width
        nearest = np.argmin(np.square(gaps).sum(axis=2), axis=1)
        return (nearest[:, None] == np.arange(len(middles))).astype(float)

    def labels(self, domain: Domain) -> tuple[str, ...]:
        return tuple(f"near {domain.describe(middle)}" for middle in self.middles(domain))


def body_around(domain: Domain) -> Body:
    """The set of a domain as one with a support function; a bounded box is one too."""
    if domain.body is not None:
        return domain.body
    if not domain.bounded or domain.inside is not None:
        raise BasisError(f"Cells cannot be laid on {domain}: they need an uncertainty set or a bounded box.")
    return BoxBody(domain.lower, domain.upper)
