"""Where a function of several variables may have a peak that no node of a coarse grid sees: enclosures of it tell.

On a line the pieces themselves are halved; here boxes are, and the ends of the smallest become places where the pieces
along each axis end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.enclosures.enclosure import Enclosure
from osilp_pyomo.index.quadrature.adaptive import NODES, Line

# Parts of each axis to begin with, nodes along it, rounds of halving, boxes of one function, and functions at most.
_FIRST, _ROUNDS, _MOST_BOXES, _MOST_FUNCTIONS = 4, 60, 400, 256
_NODES = 0.5 + 0.5 * NODES[1::3]
# As on a line: the least peak beside the largest value and beside the mean, and how many times what the nodes saw an
# enclosure may be.
_HIDDEN, _SMALL, _BESIDE = 0.05, 1e-4, 4.0
# A box is a place where something hid from this share of an axis on; so many of them are kept.
_NARROW, _KEPT = 1 / 16, 24

#: ``enclose(owner, low, high)``: the functions over boxes (d, n), with their slopes; None where nothing is known.
Enclose = Callable[[IntArray, FloatArray, FloatArray], "Enclosure | None"]


def hidden_places(
    values: Callable[[IntArray, Sequence[FloatArray]], FloatArray], enclose: Enclose, count: int, lines: Sequence[Line]
) -> list[FloatArray]:
    """Places along each axis between which functions may do what a coarse grid does not see."""
    none = [np.empty(0) for _ in lines]
    if count > _MOST_FUNCTIONS:
        return none
    ends = np.array([line.ends for line in lines])
    owner, low, high = _first_boxes(count, ends)
    held, largest = np.bincount(owner, minlength=count), np.zeros(count)
    narrow: list[tuple[FloatArray, FloatArray]] = []
    for _ in range(_ROUNDS):
        seen = _seen(values, owner, low, high, lines)
        np.maximum.at(largest, owner, np.abs(seen).max(axis=1))
        wide = _hiding(seen, enclose, owner, low, high, lines, largest)
        if wide is None:
            return none
        axis = np.argmax(np.where(np.isfinite(wide), wide, 0.0), axis=0)
        hides = (wide.max(axis=0) > 0) & (held[owner] < _MOST_BOXES)
        small = np.all((high - low) <= _NARROW * (ends[:, 1] - ends[:, 0])[:, None], axis=0)
        if np.any(small & ~hides):
            narrow.append((low[:, small & ~hides], high[:, small & ~hides]))
        if not hides.any():
            break
        low, high, axis, owner = low[:, hides], high[:, hides], axis[hides], owner[hides]
        held += np.bincount(owner, minlength=count)
        places = np.arange(len(owner))
        middle = 0.5 * (low[axis, places] + high[axis, places])
        left, right = high.copy(), low.copy()
        left[axis, places] = right[axis, places] = middle
        owner = np.concatenate([owner] * 2)
        low, high = np.concatenate([low, right], axis=1), np.concatenate([left, high], axis=1)
    return _ends_of(narrow, lines)


def _first_boxes(count: int, ends: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    cuts = [np.linspace(low, high, _FIRST + 1) for low, high in ends]
    low = np.array(list(product(*(each[:-1] for each in cuts)))).T
    high = np.array(list(product(*(each[1:] for each in cuts)))).T
    owner = np.repeat(np.arange(count), low.shape[1])
    return owner, np.tile(low, count), np.tile(high, count)


def _seen(
    values: Callable[[IntArray, Sequence[FloatArray]], FloatArray],
    owner: IntArray,
    low: FloatArray,
    high: FloatArray,
    lines: Sequence[Line],
) -> FloatArray:
    """Values (n, m) at nodes within each box."""
    shares = np.array(list(product(_NODES, repeat=len(lines)))).T
    axes = [
        line.place(one[:, None] + (other - one)[:, None] * share)[0]
        for line, one, other, share in zip(lines, low, high, shares, strict=True)
    ]
    with np.errstate(all="ignore"):
        return np.nan_to_num(values(owner, axes), nan=0.0, posinf=0.0, neginf=0.0)


def _hiding(
    seen: FloatArray,
    enclose: Enclose,
    owner: IntArray,
    low: FloatArray,
    high: FloatArray,
    lines: Sequence[Line],
    largest: FloatArray,
) -> FloatArray | None:
    """By how much functions may move along each axis (d, n) of boxes in which a peak may hide; zero elsewhere."""
    ends = [np.stack([line.place(each)[0] for line, each in zip(lines, side, strict=True)]) for side in (low, high)]
    found = enclose(owner, *ends)
    if found is None:
        return None
    shape = (len(owner),)
    bottom, top = (np.broadcast_to(each, (1, *shape))[0] for each in found.value)
    least, most = seen.min(axis=1), seen.max(axis=1)
    with np.errstate(all="ignore"):
        beyond = np.maximum(top - most, least - bottom)
        possible, means = np.zeros((2, len(largest)))
        np.maximum.at(possible, owner, np.where(np.isfinite(beyond), beyond, 0.0))
        np.maximum.at(means, owner, np.abs(seen).mean(axis=1))
        tall = np.maximum(_HIDDEN * largest, 1e-9 * possible)
        small = np.clip(_SMALL * means, 1e-9 * possible, tall)
        moves = np.zeros(low.shape)
        for axis, slope in found.slopes.items():
            steepest = [np.abs(np.broadcast_to(each, (1, *shape))[0]) for each in slope]
            moves[axis] = np.maximum(*steepest) * (ends[1][axis] - ends[0][axis])
        steep = np.isfinite(moves).all(axis=0) & (moves.max(axis=0) > _BESIDE * len(_NODES) * (most - least))
        hides: BoolArray = (beyond > np.maximum(tall[owner], _BESIDE * (most - least))) | (
            steep & (beyond > small[owner])
        )
        hides &= np.isfinite(beyond)
    if not found.slopes:
        moves = high - low
    return np.where(hides, np.where(np.isfinite(moves), moves, 0.0) + 1e-300 * (high - low), 0.0)


def _ends_of(narrow: Sequence[tuple[FloatArray, FloatArray]], lines: Sequence[Line]) -> list[FloatArray]:
    """The ends of the smallest boxes, along each axis."""
    if not narrow:
        return [np.empty(0) for _ in lines]
    low, high = (np.concatenate([each[side] for each in narrow], axis=1) for side in (0, 1))
    smallest = np.argsort(np.prod(high - low, axis=0), kind="stable")[:_KEPT]
    return [
        line.place(np.unique(np.concatenate([one[smallest], other[smallest]])))[0]
        for line, one, other in zip(lines, low, high, strict=True)
    ]
