"""One side of a family at a given x as one function of the index, enclosed over boxes.

It is the excess ``h(u) = sum_j x_j a_j(u) - b(u)``: the row holds where h <= 0. Columns come in chunks; their intervals
are added with the weights x, rounding included.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._threads import in_threads
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.enclosure import Condition, Enclosure, Key, NoEnclosureError, Opening, coordinates
from osilp_pyomo.index.enclosures.intervals import Interval
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.proof.joined_curves import join_curves
from osilp_pyomo.offline.roundings import rounding_of_sum
from osilp_pyomo.offline.rows import TermGroup, TracedRows

# Numbers in one interval end of a chunk: its temporaries stay in the cache.
_CHUNK = 2**15
# Nodes of a formula that cost as much as a column does, and conditions that may be taken at most.
_NODES, _MOST_CONDITIONS = 12, 64
# What a pass over the formula of one group costs however few its boxes are, in columns and boxes.
_CALL = 2_000
_UNIT = 2.0**-52


@dataclass(frozen=True, eq=False)
class Expansion:
    """A function over n boxes as dense arrays, lower ends first: value and rest (2, n), gradients (2, d, n), ...

    ``base``, ``base_slopes`` and ``bends`` are those of its smooth base; ``rest`` is what it has more than that.
    """

    value: FloatArray
    slopes: FloatArray
    base: FloatArray
    base_slopes: FloatArray
    bends: FloatArray
    rest: FloatArray

    def take(self, kept: IntArray) -> Expansion:
        """Some of the boxes."""
        return Expansion(*(getattr(self, name)[..., kept] for name in self.__dataclass_fields__))


def expansion_of(found: Enclosure, dimension: int, boxes: int) -> Expansion:
    """A single function's enclosure as dense arrays."""

    def dense(pair: Interval | None) -> FloatArray:
        if pair is None:
            return np.zeros((2, boxes))
        return np.stack([np.broadcast_to(end, (1, boxes))[0] for end in pair])

    slopes, base_slopes = np.zeros((2, dimension, boxes)), np.zeros((2, dimension, boxes))
    bends = np.zeros((2, dimension, dimension, boxes))
    for axis, pair in found.slopes.items():
        slopes[:, axis] = dense(pair)
    for axis, pair in found.base_slopes.items():
        base_slopes[:, axis] = dense(pair)
    for (i, j), pair in found.bends.items():
        bends[:, i, j] = bends[:, j, i] = dense(pair)
    return Expansion(dense(found.value), slopes, dense(found.base), base_slopes, bends, dense(found.rest))


class EnclosedRow:
    """The excess of one side of a family at x: ``side`` 1 over its upper limit, -1 below its lower one.

    Raises
    ------
    NoEnclosureError
        A part of the row has no formula.
    """

    def __init__(self, family: Family, x: FloatArray, side: float) -> None:
        rows = family.rows
        if not isinstance(rows, TracedRows):
            raise NoEnclosureError("its rule is called at points, and nothing is known between them")
        used = rows.take(x != 0)
        limit = rows.upper if side > 0 else rows.lower
        assert limit is not None
        self.dimension = family.domain.dimension
        self.terms: list[tuple[TermGroup, FloatArray]] = [(group, side * x[group.columns]) for group in used.groups]
        self.terms += [(group, np.full(len(group.columns), -side)) for group in limit]
        self.columns = sum(len(weights) for _, weights in self.terms)
        self._enclosed = join_curves(self.terms)
        self._nodes = sum(
            len(weights) * max(_NODES, 0 if group.formula is None else len(group.formula.shape))
            for group, weights in self._enclosed
        )
        self.domain, self.region = family.domain, family.domain.region
        self.numbering = _numbered(self._enclosed)

    @property
    def cost(self) -> float:
        """What a look at one box costs: a number for each column and derivative, and some for the box itself."""
        derivatives = 1 + self.dimension + self.dimension * (self.dimension + 1) // 2
        return self._nodes / _NODES * derivatives / 3 + 8 * self.dimension

    def work(self, boxes: int, passes: int = 3) -> float:
        """What a look at boxes costs: over them, at their middles, and by further passes; few boxes take no less."""
        return passes / 3 * max(boxes * self.cost, _CALL * len(self._enclosed))

    @property
    def block(self) -> int:
        """How many boxes are looked at together."""
        return int(np.clip(2**20 * _NODES // max(1, self._nodes), 64, 4096))

    def opening(self, order: int, **how: object) -> Opening:
        """How the row is opened over boxes."""
        return Opening(self.dimension, order, numbering=self.numbering, **how)  # type: ignore[arg-type]

    def enclose(self, low: FloatArray, high: FloatArray, opening: Opening) -> Expansion:
        """The excess over boxes with ends (d, n)."""
        axes = coordinates(low, high)
        boxes = low.shape[1]
        total: Enclosure | None = None
        with np.errstate(all="ignore"):
            for number, (group, weights) in enumerate(self._enclosed):
                for found in self._enclosed_parts(number, group, weights, axes, opening):
                    total = found if total is None else total + found
            return expansion_of(total or Enclosure(iv.exact(0.0)), self.dimension, boxes)

    def _enclosed_parts(
        self, number: int, group: TermGroup, weights: FloatArray, axes: Sequence[Enclosure], opening: Opening
    ) -> Iterator[Enclosure]:
        """The weighted sums of the parts of a group's columns; of a smooth one in threads, where nothing is noted."""
        parts = list(_parts(len(weights), axes[0].value[0].shape[-1]))

        def enclosed(part: slice, opened: Opening) -> Enclosure:
            with np.errstate(all="ignore"):
                return _weighted(group.enclose(part, axes, opened), weights[part])

        def alone(part: slice) -> tuple[Enclosure, bool]:
            opened = Opening(self.dimension, opening.order)
            return enclosed(part, opened), opened.smooth

        opening.begin(number)
        yield enclosed(parts[0], opening)
        left = parts[1:]
        if opening.smooth and len(left) > 1:
            done = list(in_threads(alone, left))
            if all(smooth for _, smooth in done):
                yield from (found for found, _ in done)
                return
        for part in left:
            opening.begin(number)
            yield enclosed(part, opening)

    def smallest_terms(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """A lower bound of the sum of the row's absolute terms over boxes."""
        axes, boxes = coordinates(low, high), low.shape[1]
        total, opening = np.zeros(boxes), self.opening(0)
        with np.errstate(all="ignore"):
            for number, (group, weights) in enumerate(self.terms):
                for part in _parts(len(weights), boxes):
                    opening.begin(number)
                    least = iv.absolute(group.enclose(part, axes, opening).value)[0]
                    least = np.where(np.isfinite(least), least, 0.0)
                    total += np.abs(weights[part]) @ np.broadcast_to(least, (len(weights[part]), boxes))
        return total

    def rounding(self, points: FloatArray) -> FloatArray:
        """How far the excess may be at points (m, d) from what the row's own functions give."""
        return rounding_of_sum(self.terms, points, self.domain, 2 + self.columns)

    def inside(self, low: FloatArray, high: FloatArray, opening: Opening) -> Condition | None:
        """What is known over boxes of the condition that the row is restricted to; None where there is none.

        It has an opening of its own, apart from that of the row's terms.
        """
        if self.region is None:
            return None
        with np.errstate(all="ignore"):
            return self.region.enclose(coordinates(low, high), opening)


def _numbered(terms: Sequence[tuple[TermGroup, FloatArray]]) -> dict[Key, int]:
    """A number for each condition of the terms; one that stands in several of them has one number."""
    numbers: dict[Hashable, int] = {}
    result: dict[Key, int] = {}
    for number, (group, weights) in enumerate(terms):
        if group.formula is None:
            continue
        # The data of a single column are numbers; those of several columns belong to this group alone.
        slots: list[Hashable] = [
            float(slot[0]) if len(weights) == 1 and isinstance(slot, np.ndarray) else ("slot", number, place)
            for place, slot in enumerate(group.slots)
        ]
        for place, condition in enumerate(group.formula.conditions(slots)):
            result[number, place] = numbers.setdefault(condition, len(numbers))
    # Of very many conditions no box is on both sides of a few only, and all would be carried along.
    return result if len(numbers) <= _MOST_CONDITIONS else {}


def _parts(columns: int, boxes: int) -> Iterator[slice]:
    # Parts of almost equal size: a single column left over would look like a function that all columns share.
    count = -(-columns // max(2, _CHUNK // max(1, boxes)))
    edges = np.linspace(0, columns, count + 1).astype(int).tolist()
    return (slice(start, end) for start, end in pairwise(edges))


def _weighted(found: Enclosure, weights: FloatArray) -> Enclosure:
    """The weighted sum of columns."""
    if len(weights) == 1:
        return found.times(iv.exact(weights[:, None]))
    above, below, size = np.maximum(weights, 0.0), np.minimum(weights, 0.0), np.abs(weights)
    mixed = bool(below.any())
    # A sum of products, added in any order, misses at most this share of the sum of their sizes.
    share = (len(weights) + 2) * _UNIT

    def total(pair: Interval) -> Interval:
        low, high = pair
        if np.ndim(low) < 2 or np.shape(low)[0] == 1:
            # The same for every column.
            return iv.multiply(_summed(weights), pair)
        down, up = above @ low, above @ high
        if mixed:
            down, up = down + below @ high, up + below @ low
        margin = share * (size @ iv.magnitude(pair)) + 1e-300
        return (down - margin)[None], (up + margin)[None]

    def totals(entries: Mapping[Any, Interval]) -> dict[Any, Interval]:
        return {key: total(pair) for key, pair in entries.items()}

    if found.rest is None and found.base_slopes is found.slopes:
        return Enclosure(total(found.value), totals(found.slopes), totals(found.bends))
    return Enclosure(
        total(found.value),
        totals(found.slopes),
        totals(found.bends),
        total(found.rest) if found.rest is not None else None,
        total(found.base),
        totals(found.base_slopes),
    )


def _summed(weights: FloatArray) -> Interval:
    total = np.array([[weights.sum()]])
    margin = len(weights) * _UNIT * np.abs(weights).sum()
    return total - margin, total + margin
