"""What is left of a budget on every piece of an interval, where columns are steps: exact, whatever the grid.

The pieces are those between the places where accepted arrivals, and the limit, step. Places that turn out to make no
difference are forgotten, so that there are about as many pieces as arrivals were accepted; beyond a number of them
those neighbours are taken together, with what the poorer one has left, that lose the least by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.online.kernels.fitting import BUDGET_ROUNDING, NEGLIGIBLE
from osilp_pyomo.online.stages.steps import Steps

# Pieces that are told apart.
_MOST = 200_000
# A whole unit is refused for certain where the share of it that fits falls short of 1 by more than this.
_CLEARLY = 2e-9


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

    def holding(self, points: FloatArray) -> IntArray:
        """In which piece each of some points lies."""
        return np.searchsorted(self.places, points, side="right") - 1

    def cut(self, places: Sequence[FloatArray]) -> Pieces:
        """The same, cut at more places."""
        new = np.unique(np.concatenate([each[np.isfinite(each)].ravel() for each in places]))
        at = self.holding(new)
        new, at = new[self.places[at] != new], at[self.places[at] != new]
        if not len(new):
            return self
        return Pieces(
            np.insert(self.places, at + 1, new),
            np.insert(self.total, at + 1, self.total[at]),
            np.insert(self.left, at + 1, self.left[at]),
        )

    def merged(self) -> Pieces:
        """The same without places at which nothing changes; with fewer pieces where there are too many."""
        kept = np.ones(len(self.places), dtype=bool)
        kept[1:] = (np.diff(self.left) != 0) | (np.diff(self.total) != 0)
        result = Pieces(self.places[kept], self.total[kept], self.left[kept])
        return result if len(result.places) <= _MOST else result._coarser()

    def part(self, at: slice) -> Pieces:
        """Some pieces that follow each other."""
        return Pieces(self.places[at], self.total[at], self.left[at])

    def with_part(self, at: slice, part: Pieces) -> Pieces:
        """The same with others in the place of some, of which the outermost are what they were."""
        arrays = (
            np.concatenate([all_of_it[: at.start], new, all_of_it[at.stop :]])
            for all_of_it, new in ((self.places, part.places), (self.total, part.total), (self.left, part.left))
        )
        result = Pieces(*arrays)
        return result if len(result.places) <= _MOST else result._coarser()

    def _coarser(self) -> Pieces:
        """The same with at least an eighth fewer pieces: where that costs the least, two have what the poorer has."""
        lengths = np.append(np.diff(self.places), self.places[-1] - self.places[0])
        richer = np.diff(self.left)
        lost = np.abs(richer) * np.where(richer > 0, lengths[1:], lengths[:-1])
        quarter = len(lost) // 4 + 1
        cheap = np.argpartition(lost, quarter - 1)[:quarter]
        # No piece is in two pairs, so that no row of them ends up with what its poorest has.
        even = cheap % 2 == 0
        pairs = cheap[even] if 2 * even.sum() >= quarter else cheap[~even]
        starts = np.delete(np.arange(len(self.places)), pairs + 1)
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


@dataclass(frozen=True, eq=False)
class Looked:
    """The points of an interval that decide about some arrivals, and what their decisions change there.

    ``cut`` are those of the ``pieces`` that are ``among`` what those arrivals may use, cut where they step; the
    ``points`` (m,), in their order, lie in the pieces ``at`` (m,) of them. One piece on each side is among them that no
    arrival uses. Where ``uses`` are known, some of the pieces are looked at, else all.
    """

    pieces: Pieces
    among: slice
    cut: Pieces
    points: FloatArray
    at: IntArray
    uses: Steps | None = None

    @classmethod
    def everywhere(cls, pieces: Pieces, columns: Sequence[Steps]) -> Looked:
        """All pieces, cut where columns step."""
        cut = pieces.cut([each.places for each in columns])
        return cls(pieces, slice(0, len(pieces.places)), cut, cut.places, np.arange(len(cut.places)))

    @classmethod
    def where_it_matters(cls, pieces: Pieces, uses: Steps, size: float, refused: BoolArray) -> tuple[Looked, BoolArray]:
        """The points for arrivals that are taken whole or not at all, and nowhere use less than nothing.

        What an arrival does not fit into now it does not fit into later. So a single point is enough for one that is
        refused. Between two places where others step, each of them uses the same everywhere: the piece with the least
        left decides, now and when some of them were taken. ``refused`` (B,) are arrivals that another row refuses;
        those that this one does are added to them. ``size`` is that of the row, which its slack is measured by.
        """
        refused, tight = refused.copy(), []
        arrival, begins, ends, use = _parts_in_use(pieces, uses, ~refused)
        first, last = pieces.holding(begins), np.searchsorted(pieces.places, ends)
        for one, begin, amount, low, high in zip(
            arrival.tolist(), begins.tolist(), use.tolist(), first.tolist(), last.tolist(), strict=True
        ):
            if refused[one]:
                continue
            least = low + int(pieces.left[low:high].argmin())
            slack = BUDGET_ROUNDING * max(abs(pieces.total.item(least)), size)
            if amount > NEGLIGIBLE * slack and amount * (1 - _CLEARLY) > pieces.left.item(least) + slack:
                refused[one] = True
                tight.append(max(pieces.places.item(least), begin))
        low, high = (int(first.min()), int(last.max())) if len(first) else (0, 0)
        among = slice(max(low - 1, 0), min(high + 1, len(pieces.places)))
        part, places = pieces.part(among), uses.part(~refused).places
        end = pieces.places[among.stop] if among.stop < len(pieces.places) else np.inf
        places = np.unique(places[(places > part.places[0]) & (places < end)])
        cut = part.cut([places])
        _, begins, ends, _ = _parts_in_use(part, uses, ~refused)
        edges = np.concatenate([cut.places[:1], places])
        covered = np.zeros(len(edges) + 1, dtype=np.int64)
        np.add.at(covered, np.searchsorted(edges, begins, side="right") - 1, 1)
        np.add.at(covered, np.searchsorted(edges, ends), -1)
        used = np.cumsum(covered[:-1]) > 0
        least_left = _first_least(cut, np.searchsorted(cut.places, edges), size)[used]
        points = np.unique(np.concatenate([cut.places[least_left], tight]))
        return cls(pieces, among, cut, points, cut.holding(points), uses), refused

    @property
    def left(self) -> FloatArray:
        """What is left at the points."""
        return self.cut.left[self.at]

    def after(self, left: FloatArray, taken: FloatArray) -> Pieces:
        """The pieces when so much is left at the points, after decisions ``taken`` (B, n)."""
        if self.uses is None:
            return self.pieces if np.array_equal(left, self.left) else replace(self.cut, left=left).merged()
        accepted = taken[:, 0] != 0
        arrival, begins, ends, use = _parts_in_use(self.cut, self.uses, accepted)
        if not len(arrival):
            return self.pieces
        result, amounts = self.cut.left.copy(), use * taken[arrival, 0]
        first, last = self.cut.holding(begins), np.searchsorted(self.cut.places, ends)
        # One after the other, as single steps do, lest sums be rounded otherwise.
        for amount, low, high in zip(amounts.tolist(), first.tolist(), last.tolist(), strict=True):
            result[low:high] -= amount
        return self.pieces.with_part(self.among, replace(self.cut, left=result).merged())


def _first_least(pieces: Pieces, starts: IntArray, size: float) -> IntArray:
    """Of each run of pieces, which begin at ``starts``, the first with the least that would fit into it."""
    room = pieces.left + BUDGET_ROUNDING * np.maximum(np.abs(pieces.total), size)
    lengths = np.diff(np.append(starts, len(room)))
    found = np.flatnonzero(room == np.repeat(np.minimum.reduceat(room, starts), lengths))
    return found[np.searchsorted(found, starts)]


def _parts_in_use(
    pieces: Pieces, uses: Steps, wanted: BoolArray
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Where some of the arrivals use something: their numbers, beginnings and ends of those parts, and how much."""
    start = np.full((len(uses.places), 1), pieces.places[0])
    begins = np.maximum(np.concatenate([start, uses.places], axis=1), pieces.places[0])
    ends = np.concatenate([begins[:, 1:], np.full_like(start, np.inf)], axis=1)
    some = (uses.values > 0) & (begins < ends) & wanted[:, None]
    return np.nonzero(some)[0], begins[some], ends[some], uses.values[some]


def _least(points: FloatArray, values: FloatArray) -> FloatArray:
    """The least that a function can be from each point on, before the next: linear between them, or a single number."""
    alone = np.nextafter(points[:-1], np.inf) >= points[1:]
    return np.append(np.where(alone, values[:-1], np.minimum(values[:-1], values[1:])), values[-1])
