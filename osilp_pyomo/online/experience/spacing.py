"""Which points of an index a price is practised on: fewer than a guard looks at, where columns are smooth.

A guard looks at a thousand points and more, so that nothing is overrun between them. For a price far fewer do, as long
as what is between two of them is nearly what lies on the straight line between them. So the widest spacing is taken at
which that holds for the limits and for every arrival so far; an arrival for which it does not makes it finer for good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._jit import HAS_NUMBA, jit
from osilp_pyomo.online.stages.batch import POINTWISE
from osilp_pyomo.online.stages.evaluator import Evaluator

#: Every so many points of an interval one is kept, from the widest to all of them.
SPACINGS = (16, 8, 4, 2, 1)
# How far a column may lie from the straight line, as a share of its largest use.
TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class Spacing:
    """Points (P,) that are kept of all resources, and what lies between them.

    Resource k lies at the share ``weight[k]`` of the way from the point ``before[k]`` to ``after[k]``, counted among
    those kept.
    """

    points: IntArray
    before: IntArray
    after: IntArray
    weight: FloatArray

    def between(self, values: FloatArray) -> FloatArray:
        """Values (..., P) at all resources (..., R), on straight lines."""
        result: FloatArray = values[..., self.before] * (1.0 - self.weight) + values[..., self.after] * self.weight
        return result

    def gathered(self, dual: FloatArray) -> FloatArray:
        """A dual (R,) that is zero but at the points kept, and as near to the given one as can be."""
        result, kept = np.zeros(len(dual)), np.zeros(len(self.points))
        np.add.at(kept, self.before, dual * (1.0 - self.weight))
        np.add.at(kept, self.after, dual * self.weight)
        result[self.points] = kept
        return result

    def first_rough(self, use: FloatArray, start: int) -> int:
        """The first arrival from ``start`` on whose use (B, n, R) lies too far from straight lines; B if none does."""
        if len(self.points) == use.shape[2]:
            return len(use)
        return int(_first_rough(use, start, self.points, self.before, self.after, self.weight, TOLERANCE))

    def keeps(self, total: FloatArray) -> bool:
        """Whether no limit lies below the straight line between its neighbours by more than a little."""
        line = self.between(total[self.points])
        return bool(np.all(line - total <= TOLERANCE * np.abs(line)))


def spacings_of(evaluator: Evaluator, total: FloatArray) -> dict[int, Spacing]:
    """The spacings that the limits of a program allow, from the widest to that which keeps every point."""
    found = {every: _spacing(evaluator, every) for every in SPACINGS}
    return {every: each for every, each in found.items() if every == 1 or each.keeps(total)}


def _spacing(evaluator: Evaluator, every: int) -> Spacing:
    """Every so many points of each row over an interval are kept; of any other row all."""
    points: list[int] = []
    size = evaluator.resources[POINTWISE].size
    before, after, weight = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.zeros(size)
    for group in evaluator.groups:
        at, first = group.slices[POINTWISE], len(points)
        count = at.stop - at.start
        places = np.zeros((count, 2)) if group.family is None else evaluator.points[group.family]
        if places.shape[1] != 1 or every == 1:
            points.extend(range(at.start, at.stop))
            before[at] = after[at] = first + np.arange(count)
            continue
        order = np.argsort(places[:, 0], kind="stable")
        kept = np.unique(np.append(np.arange(0, count, every), count - 1))
        points.extend((at.start + order[kept]).tolist())
        # Where each point lies among those kept, both in the order of the interval.
        left = np.clip(np.searchsorted(kept, np.arange(count), side="right") - 1, 0, max(len(kept) - 2, 0))
        right = np.minimum(left + 1, len(kept) - 1)
        along = places[order, 0]
        span = along[kept[right]] - along[kept[left]]
        share = (along - along[kept[left]]) / np.where(span > 0, span, 1.0)
        before[at.start + order], after[at.start + order] = first + left, first + right
        weight[at.start + order] = share
    return Spacing(np.array(points, dtype=np.int64), before, after, weight)


def _first_rough_loop(
    use: FloatArray,
    start: int,
    points: IntArray,
    before: IntArray,
    after: IntArray,
    weight: FloatArray,
    tolerance: float,
) -> int:
    for t in range(start, use.shape[0]):
        for j in range(use.shape[1]):
            column = use[t, j]
            largest, farthest = 0.0, 0.0
            for k in range(column.shape[0]):
                low, high = column[points[before[k]]], column[points[after[k]]]
                largest = max(largest, abs(column[k]))
                farthest = max(farthest, abs(column[k] - low - weight[k] * (high - low)))
            if farthest > tolerance * largest:
                return t
    return int(use.shape[0])


def _first_rough_numpy(
    use: FloatArray,
    start: int,
    points: IntArray,
    before: IntArray,
    after: IntArray,
    weight: FloatArray,
    tolerance: float,
) -> int:
    for t in range(start, len(use)):
        kept = use[t][:, points]
        low, high = kept[:, before], kept[:, after]
        farthest = np.abs(use[t] - low - weight * (high - low)).max(axis=1)
        if np.any(farthest > tolerance * np.abs(use[t]).max(axis=1)):
            return t
    return len(use)


_first_rough = jit(_first_rough_loop) if HAS_NUMBA else _first_rough_numpy
