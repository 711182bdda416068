"""Regions: subsets of a box by what is known of their conditions over smaller boxes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.enclosure import Condition, Enclosure, Opening, all_of
from osilp_pyomo.index.extended_form import Lift


class Region(ABC):
    """A subset of a box, or a set around it, that can be told over boxes.

    ``exact`` says whether it is the subset itself, up to rounding.
    """

    exact: bool = True

    @abstractmethod
    def enclose(self, axes: Sequence[Enclosure], opening: Opening) -> Condition:
        """Where boxes lie inside of it, where outside, and functions that are at most zero in it."""


@dataclass(frozen=True, eq=False)
class ConvexRegion(Region):
    """``rows @ u <= limits`` and ``|matrix @ u - centre| <= 1`` for some balls, all up to a little.

    Members of an uncertainty set are told up to rounding, so that the region is a little larger than the set.
    """

    rows: FloatArray
    limits: FloatArray
    balls: tuple[tuple[FloatArray, FloatArray], ...] = ()
    slack: float = 1e-9
    exact: bool = True

    @classmethod
    def of_lift(cls, lift: Lift) -> ConvexRegion | None:
        """The region of a set that is described in its own coordinates, as many as it has dimensions; else None."""
        matrix = lift.matrix
        if matrix.shape[0] != matrix.shape[1] or np.linalg.cond(matrix) > 1e6:
            return None
        inverse = np.linalg.inv(matrix)
        shift = inverse @ lift.offset
        sides = [
            (np.eye(len(matrix)), lift.upper, 1.0),
            (np.eye(len(matrix)), lift.lower, -1.0),
            (lift.rows, lift.row_upper, 1.0),
            (lift.rows, lift.row_lower, -1.0),
        ]
        rows = np.concatenate([sign * (part @ inverse) for part, _, sign in sides])
        limits = np.concatenate([sign * (limit + part @ shift) for part, limit, sign in sides])
        finite = np.isfinite(limits)
        balls = tuple((ball.matrix @ inverse, ball.centre + ball.matrix @ shift) for ball in lift.balls)
        return cls(rows[finite], limits[finite], balls)

    def enclose(self, axes: Sequence[Enclosure], opening: Opening) -> Condition:
        functions = [
            _affine(row, -limit - self.slack * max(1.0, abs(limit)), axes)
            for row, limit in zip(self.rows, self.limits, strict=True)
        ]
        for matrix, centre in self.balls:
            squares = [
                _affine(row, -offset, axes).through(iv.square, _doubled, lambda a: iv.exact(2.0), opening.order)
                for row, offset in zip(matrix, centre, strict=True)
            ]
            total = reduce(lambda one, other: one + other, squares)
            functions.append(total + Enclosure(iv.exact(-1.0 - 2 * self.slack)))
        if not functions:
            everywhere = np.ones((1, 1), dtype=bool)
            return Condition(everywhere, ~everywhere)
        return all_of([_at_most_zero(each) for each in functions])


def _doubled(a: iv.Interval) -> iv.Interval:
    return 2 * a[0], 2 * a[1]


def _at_most_zero(function: Enclosure) -> Condition:
    low, high = map(np.atleast_2d, function.value)
    return Condition(high <= 0, low > 0, (function,), (-function,))


def _affine(row: FloatArray, offset: float, axes: Sequence[Enclosure]) -> Enclosure:
    total = Enclosure(iv.exact(offset))
    for factor, axis in zip(row.tolist(), axes, strict=True):
        if factor:
            total = total + axis.times(iv.exact(factor))
    return total
