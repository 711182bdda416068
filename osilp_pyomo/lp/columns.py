"""Columns of an LP in blocks, in memory or on disk, and the passes over them that a solver of wide LPs is made of.

A pass is a map over blocks and a sum: each function here looks at one block, given a dual, and returns something
small. Where and in which order the blocks are looked at does not change the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from osilp_pyomo._arrays import FloatArray, IntArray

Truths = NDArray[np.bool_]

# Numbers of the matrix that are looked at together: half a megabyte, which stays in the cache of a core.
_TOGETHER = 2**16
# A margin below this share of its terms is zero as far as rounding can tell.
TIE = 1e-9


class Block(Protocol):
    """Columns that can be had when they are needed; small enough to be sent to where they are needed."""

    def __len__(self) -> int: ...

    def load(self) -> DenseColumns:
        """The columns."""
        ...


@dataclass(frozen=True, eq=False)
class DenseColumns:
    """Columns with bounds: values (T,), matrix (T, q), lower and upper (T,); itself a block in memory."""

    values: FloatArray
    matrix: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def load(self) -> DenseColumns:
        """The columns themselves."""
        return self

    def take(self, places: IntArray | Truths) -> DenseColumns:
        """Some of the columns."""
        return DenseColumns(self.values[places], self.matrix[places], self.lower[places], self.upper[places])

    def parts(self) -> Iterator[tuple[slice, DenseColumns]]:
        """Parts that fit into the cache, and where they stand."""
        step = max(64, _TOGETHER // max(1, self.matrix.shape[1]))
        for start in range(0, len(self), step):
            at = slice(start, start + step)
            yield at, DenseColumns(self.values[at], self.matrix[at], self.lower[at], self.upper[at])

    @property
    def bounded(self) -> Truths:
        """Which columns have two bounds."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    @classmethod
    def concat(cls, parts: list[DenseColumns]) -> DenseColumns:
        """Several one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([each.values for each in parts]),
            np.concatenate([each.matrix for each in parts]),
            np.concatenate([each.lower for each in parts]),
            np.concatenate([each.upper for each in parts]),
        )


@dataclass(frozen=True, eq=False)
class Threshold:
    """A dual, and how far from its threshold ``r = C w`` a column may be to count as near, in shares of its size.

    The size of a column is its use at the ``anchors``, sizes of the prices (:func:`smoothed_dual.anchors`).
    """

    dual: FloatArray
    anchors: FloatArray
    width: float

    def look(self, part: DenseColumns) -> tuple[FloatArray, Truths]:
        """Margins r - C w of some columns, and which of them are near; those without two bounds always are."""
        margin = part.values - part.matrix @ self.dual
        if np.isinf(self.width):
            return margin, np.ones(len(part), dtype=bool)
        with np.errstate(over="ignore"):
            near = np.abs(margin) <= self.width * (np.abs(part.matrix) @ self.anchors)
        return margin, near | ~part.bounded


@dataclass(frozen=True, eq=False)
class Gathered:
    """The near columns of a block and their places; what the others use and earn, each at the bound of its sign."""

    places: IntArray
    near: DenseColumns
    used: FloatArray
    earned: float


def sample(block: Block, count: int, seed: int) -> DenseColumns:
    """Some columns of a block, drawn without regard to what they are."""
    columns = block.load()
    places = np.random.default_rng(seed).choice(len(columns), min(count, len(columns)), replace=False)
    return columns.take(np.sort(places))


def gather(block: Block, threshold: Threshold) -> Gathered:
    """The columns near a threshold; all others are decided by the sign of their margin."""
    columns = block.load()
    places: list[IntArray] = []
    used, earned = np.zeros(columns.matrix.shape[1]), 0.0
    for at, part in columns.parts():
        margin, near = threshold.look(part)
        x = np.where(near, 0.0, by_sign(part, margin))
        used += x @ part.matrix
        earned += float(x @ part.values)
        places.append(at.start + np.flatnonzero(near))
    chosen = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
    return Gathered(chosen, columns.take(chosen), used, earned)


@dataclass(frozen=True)
class Checked:
    """How many columns of a block disagree with a dual, how far from their threshold they are, and the worth of all."""

    wrong: int
    farthest: float
    bound: float


def check(block: Block, threshold: Threshold, dual: FloatArray, anchors: FloatArray) -> Checked:
    """Whether columns outside of a threshold disagree with a new dual, and what all columns add to its bound."""
    wrong, farthest, bound = 0, 0.0, 0.0
    for _, part in block.load().parts():
        before, near = threshold.look(part)
        after = part.values - part.matrix @ dual
        turned = ~near & disagreeing(part, dual, before, after)
        if turned.any():
            wrong += int(turned.sum())
            size = np.abs(part.matrix[turned]) @ anchors
            farthest = max(farthest, float(np.max(np.abs(after[turned]) / np.where(size > 0, size, 1.0))))
        bounds = by_sign(part, after)
        # A column without bound proves nothing where it should; its margin is zero up to rounding.
        bound += float(after @ np.where(np.isfinite(bounds), bounds, 0.0))
    return Checked(wrong, farthest, bound)


def disagreeing(columns: DenseColumns, dual: FloatArray, before: FloatArray, after: FloatArray) -> Truths:
    """Which columns stand at the wrong bound for a dual: upper where their margin was positive before, else lower."""
    turned = np.where(before > 0, after < 0, after > 0)
    if turned.any():
        size = np.abs(columns.values) + np.abs(columns.matrix) @ np.abs(dual)
        turned &= np.abs(after) > TIE * size
    return turned


def least_use(block: Block, dual: FloatArray) -> tuple[float, float]:
    """What the columns of a block use at least of the rows weighted by a dual, and the sum of its absolute terms."""
    least = size = 0.0
    for _, part in block.load().parts():
        if not part.bounded.all():
            return -np.inf, 0.0
        use = part.matrix @ dual
        least += float(use @ np.where(use > 0, part.lower, part.upper))
        size += float((np.abs(part.matrix) @ np.abs(dual)) @ np.maximum(np.abs(part.lower), np.abs(part.upper)))
    return least, size


def decisions(block: Block, threshold: Threshold, places: IntArray, near: FloatArray) -> FloatArray:
    """All decisions of a block, given those of its near columns and their places."""
    columns = block.load()
    x = np.empty(len(columns))
    for at, part in columns.parts():
        x[at] = by_sign(part, part.values - part.matrix @ threshold.dual)
    x[places] = near
    return x


def by_sign(part: DenseColumns, margin: FloatArray) -> FloatArray:
    """Each column at the bound that its sign asks for."""
    return np.where(margin > 0, part.upper, part.lower)
