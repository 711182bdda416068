"""What is left of a budget on every piece of an interval, where columns are steps: exact, whatever the grid.

The pieces are those between the places where accepted arrivals, and the limit, step. Places that turn out to make no
difference are forgotten, so that there are about as many pieces as arrivals were accepted; beyond a number of them
neighbours are taken together, with what the poorer one has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.stages.steps import Steps

# Pieces that are told apart.
_MOST = 200_000


@dataclass(frozen=True, eq=False)
class Pieces:
    """Budgets on pieces: piece k begins at ``places[k]`` and ends before the next place, the last one at the end."""

    places: FloatArray
    total: FloatArray
    left: FloatArray

    @classmethod
    def of_cells(cls, points: FloatArray, budget: FloatArray) -> Pieces:
        """From a limit that is lowered at points, ends among them, so that between two it is at least the lesser."""
        least = _least(points, budget)
        return cls(points, least, least.copy()).merged()

    def cut(self, places: Sequence[FloatArray]) -> Pieces:
        """The same, cut at more places."""
        new = np.unique(np.concatenate([self.places, *(each[np.isfinite(each)].ravel() for each in places)]))
        at = np.searchsorted(self.places, new, side="right") - 1
        return Pieces(new, self.total[at], self.left[at])

    def merged(self) -> Pieces:
        """The same without places at which nothing changes; with fewer pieces where there are too many."""
        kept = np.ones(len(self.places), dtype=bool)
        kept[1:] = (np.diff(self.left) != 0) | (np.diff(self.total) != 0)
        result = Pieces(self.places[kept], self.total[kept], self.left[kept])
        return result if len(result.places) <= _MOST else result._coarser()

    def _coarser(self) -> Pieces:
        starts = np.arange(0, len(self.places), 2)
        total, left = (np.minimum.reduceat(each, starts) for each in (self.total, self.left))
        return Pieces(self.places[starts], total, left).merged()

    def paid(self, steps: Steps, amounts: FloatArray) -> Pieces:
        """What is left after so much (B,) of some columns."""
        finer = self.cut([steps.places])
        return replace(finer, left=finer.left - amounts @ steps.at(finer.places)).merged()

    def raised(self, points: FloatArray, change: FloatArray) -> Pieces:
        """What is left after a change of the limit that is known at points, ends among them, and linear between."""
        finer = self.cut([points])
        more = _least(points, change)[np.searchsorted(points, finer.places, side="right") - 1]
        return Pieces(finer.places, finer.total + more, finer.left + more).merged()


def _least(points: FloatArray, values: FloatArray) -> FloatArray:
    """The least that a function can be from each point on, before the next: linear between them, or a single number."""
    alone = np.nextafter(points[:-1], np.inf) >= points[1:]
    return np.append(np.where(alone, values[:-1], np.minimum(values[:-1], values[1:])), values[-1])
