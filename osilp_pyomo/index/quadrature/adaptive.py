"""Integrals of many functions of one variable at once, by adaptive Gauss-Kronrod rules, with an estimate of the error.

Gauss and Kronrod's pair of 7 and 15 nodes (Kronrod, 1965) on pieces that are halved where the estimate of Piessens and
others (QUADPACK, 1983) is too large. It departs from QUADPACK in three ways: all functions, and all their pieces, are
evaluated together; pieces begin at given places and at the zeros of given functions, where kinks and jumps are; and a
piece on which an enclosure of the function reaches far beyond what the nodes saw is halved however well the two rules
agree, so that a narrow peak between the nodes is found. There is no extrapolation: at a singularity pieces are halved
to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray

# Relative to the integral of the absolute value: what is aimed at, and what counts as reached.
AIM, REACHED = 1e-13, 1e-9
# Rounds of halving, pieces of one function, and pieces of all of them.
_ROUNDS, _MOST_PIECES, _MOST_IN_ALL = 400, 20_000, 2_000_000
# Values of one function of several variables.
_MOST_VALUES = 20_000_000
# Pieces to begin with, and places at which a switch is looked at.
_FIRST_PIECES, _SCANNED = 8, 257
# Functions of which there are more begin with fewer pieces: they are close to each other, as at the points of an index.
_MANY, _FEWER_PIECES = 64, 3
# How far beyond the values at the nodes, as a share of the largest value, an enclosure may reach; rounds of that.
_HIDDEN, _LOOKS = 0.05, 40
# The least height of a peak that steepness gives away, as a share of the mean absolute value.
_SMALL = 1e-4
# How many times what its nodes saw of a function, its values or its slopes, its enclosure may be without hiding a peak.
_BESIDE = 4.0
# Around what may be a pole: pieces that are not halved for ever, doublings of the smallest that are not trusted,
# doublings in a ring, by how much the inner of two rings must be smaller, and poles of one function.
_TINY, _UNSEEN, _RING, _GROWING, _POLES = 1e-100, 4, 10, 0.7, 32
_EPS = float(np.finfo(float).eps)

_K15 = np.array([
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926,
    0.741531185599394439863864773280788, 0.586087235467691130294144691693013, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245, 0.000000000000000000000000000000000,
])  # fmt: skip
_WK = np.array([
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518,
    0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649, 0.209482141084727828012999174891714,
])  # fmt: skip
_WG = np.array([
    0.129484966168869693270611432679082, 0.279705391489276667901467771423780, 0.381830050505118944950369775488975,
    0.417959183673469387755102040816327,
])  # fmt: skip
#: Nodes of the Kronrod rule on [-1, 1] in increasing order, and their weights.
NODES = np.concatenate([-_K15[:7], _K15[::-1]])
WEIGHTS = np.concatenate([_WK[:7], _WK[::-1]])
_GAUSS = np.zeros(15)
_GAUSS[1::2] = np.concatenate([_WG[:3], _WG[::-1]])

# Beyond the outermost nodes a jump is seen by neither rule: two more values, near the ends, are compared with the
# polynomial through the nodes.
_NEAR_ENDS = np.array([-1 + 1e-7, 1 - 1e-7])
_LOOKED_AT = np.concatenate([NODES, _NEAR_ENDS])
_BLIND = float(1 - NODES[-1])
_IN_ORDER = np.argsort(_LOOKED_AT)


def _interpolation(at: FloatArray) -> FloatArray:
    """The matrix (15, k) from values at the nodes to those of their polynomial elsewhere (barycentric formula)."""
    away = NODES[:, None] - NODES[None]
    np.fill_diagonal(away, 1.0)
    terms = (1 / away.prod(axis=1))[:, None] / (at[None] - NODES[:, None])
    return np.asarray(terms / terms.sum(axis=0))


_TO_ENDS = _interpolation(_NEAR_ENDS)

#: ``function(owner, u)``: values (n, m) of the functions with these numbers (n,) at places (n, m).
Functions = Callable[[IntArray, FloatArray], FloatArray]
#: ``enclosure(owner, lower, upper)``: what they can be anywhere in between, (n,) each; None where nothing is known.
Enclosed = Callable[[IntArray, FloatArray, FloatArray], "tuple[FloatArray, FloatArray] | None"]
#: ``steepness(owner, lower, upper)``: how steep they can be there at most, (n,) each.
Steepness = Callable[[IntArray, FloatArray, FloatArray], "FloatArray | None"]


@dataclass(frozen=True, eq=False)
class Line:
    """A part of the real line as an interval of t: finite ones as they are, others by a map that QUADPACK uses too.

    ``centre`` and ``scale`` say where and how wide the middle of a line without ends is.
    """

    lower: float
    upper: float
    centre: float = 0.0
    scale: float = 1.0

    @property
    def finite(self) -> bool:
        """Whether it has both ends."""
        return bool(np.isfinite(self.lower) and np.isfinite(self.upper))

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends in t."""
        if self.finite:
            return self.lower, self.upper
        return (-1.0 if np.isneginf(self.lower) else 0.0), (1.0 if np.isposinf(self.upper) else 0.0)

    def place(self, t: FloatArray) -> tuple[FloatArray, FloatArray | float]:
        """The places that numbers t stand for, and the derivative of the map."""
        if self.finite:
            return t, 1.0
        with np.errstate(all="ignore"):
            rest = 1.0 - np.abs(t)
            if np.isfinite(self.lower):
                return self.lower + self.scale * t / rest, self.scale / rest**2
            if np.isfinite(self.upper):
                return self.upper + self.scale * t / rest, self.scale / rest**2
            return self.centre + self.scale * t / rest, self.scale / rest**2

    def numbers(self, places: FloatArray) -> FloatArray:
        """The numbers t of places."""
        if self.finite:
            return places
        start = self.lower if np.isfinite(self.lower) else self.upper if np.isfinite(self.upper) else self.centre
        away = (places - start) / self.scale
        return away / (1.0 + np.abs(away))

    def landmarks(self) -> FloatArray:
        """Places where pieces of a line without ends begin; one of them fits the unit of the function."""
        if self.finite:
            return np.empty(0)
        start = self.lower if np.isfinite(self.lower) else self.upper if np.isfinite(self.upper) else self.centre
        away = self.scale * 4.0 ** np.arange(-8, 9)
        return np.concatenate([[start], start + away, start - away])


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Integrals of some functions, (n,) each.

    ``errors`` are estimates of what they are off by, ``rounding`` what of that comes from rounding, ``sizes`` the
    integrals of the absolute values, ``places`` where the estimate is largest, ``points`` how many values were taken in
    all, ``cuts`` where pieces of any of them end.
    """

    values: FloatArray
    errors: FloatArray
    rounding: FloatArray
    sizes: FloatArray
    places: FloatArray
    points: int
    cuts: FloatArray

    def reached(self, least: float = REACHED) -> BoolArray:
        """Whose error is small beside its size; of one that is not a number it is not."""
        return self.errors <= least * self.sizes + np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Pieces of an interval, each of one function, and the rules' answers on them.

    ``steepest`` is the largest slope from one node to the next, ``widest`` the largest distance between two.
    """

    owner: IntArray
    low: FloatArray
    high: FloatArray
    value: FloatArray
    error: FloatArray
    size: FloatArray
    seen: FloatArray
    steepest: FloatArray
    widest: FloatArray

    def take(self, which: BoolArray | IntArray | slice) -> _Pieces:
        return _Pieces(*(getattr(self, name)[..., which] for name in self.__dataclass_fields__))

    @classmethod
    def joined(cls, parts: Sequence[_Pieces]) -> _Pieces:
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in cls.__dataclass_fields__)
        )


def integrate(
    functions: Functions,
    count: int,
    line: Line,
    breaks: FloatArray | None = None,
    switches: Sequence[Functions] = (),
    enclosed: Enclosed | None = None,
    pieces: int = _FIRST_PIECES,
    steepness: Steepness | None = None,
) -> Quadrature:
    """Integrate functions over a line, each to nearly full precision where that can be had.

    Parameters
    ----------
    functions : callable
        ``functions(owner, u)`` with numbers of functions (n,) and places (n, m) gives their values (n, m).
    count : int
        How many functions there are.
    line : Line
        Where they are integrated.
    breaks : array, optional
        Places where any of them may have a kink or a jump.
    switches : sequence of callables
        Called like ``functions``: at their zeros there may be one too.
    enclosed : callable, optional
        Bounds of the functions between two places.
    pieces : int
        How many pieces to begin with at least.
    steepness : callable, optional
        Bounds of the absolute slopes between two places, which tell a narrow peak on a slope from the slope.

    Examples
    --------
    >>> powers = integrate(lambda owner, u: u ** owner[:, None], 3, Line(0, 1))
    >>> powers.values.round(12).tolist(), bool(powers.errors.max() < 1e-13)
    ([1.0, 0.5, 0.333333333333], True)
    """

    def rules(owner: IntArray, low: FloatArray, high: FloatArray) -> _Pieces:
        return _rules(functions, line, owner, low, high)

    owner, low, high = _first_pieces(
        count, line, breaks, switches, pieces if count <= _MANY else min(pieces, _FEWER_PIECES)
    )
    found = rules(owner, low, high)
    points = 15 * len(owner)
    if enclosed is not None:
        found, more = _looked_into(found, rules, line, enclosed, steepness, count)
        points += more
    done: list[_Pieces] = []
    done_value, done_size, done_error, done_count = np.zeros((4, count))
    for _ in range(_ROUNDS):
        live = found.owner
        value = done_value + np.bincount(live, found.value, count)
        size = done_size + np.bincount(live, found.size, count)
        error = done_error + np.bincount(live, found.error, count)
        held = done_count + np.bincount(live, minlength=count)
        aim = AIM * np.maximum(size, np.abs(value))
        open_ = error > aim
        # A piece is halved while it has more than its share of the error, its function is not there yet, and there is
        # something between its ends.
        coarse = found.error > np.maximum(0.5 * aim[live] / np.maximum(held[live], 1), 2 * _EPS * found.size)
        middle = found.low + 0.5 * (found.high - found.low)
        wide = (middle > found.low) & (middle < found.high)
        halved = open_[live] & coarse & wide & (held[live] < _MOST_PIECES)
        if not halved.any() or len(live) > _MOST_IN_ALL:
            break
        rest = found.take(~halved)
        # What is as good as it gets is put aside, so that a round costs what is still open.
        done.append(rest)
        for total, part in ((done_value, rest.value), (done_size, rest.size), (done_error, rest.error)):
            total += np.bincount(rest.owner, part, count)
        done_count += np.bincount(rest.owner, minlength=count)
        cut, at = found.take(halved), middle[halved]
        found = rules(np.concatenate([cut.owner] * 2), np.concatenate([cut.low, at]), np.concatenate([at, cut.high]))
        points += 15 * len(found.owner)
    return _summed(_Pieces.joined([*done, found]), count, line, points)


def _rules(functions: Functions, line: Line, owner: IntArray, low: FloatArray, high: FloatArray) -> _Pieces:
    """Both rules on some pieces; where a value is not a number the error is infinite."""
    half = 0.5 * (high - low)
    t = 0.5 * (low + high)[:, None] + half[:, None] * _LOOKED_AT
    u, slope = line.place(t)
    with np.errstate(all="ignore"):
        bare = functions(owner, u)
        values = bare * slope
        ends = values[:, 15:]
        values = values[:, :15]
        broken = ~np.isfinite(values)
        values = np.where(broken, 0.0, values)
        kronrod, gauss = values @ WEIGHTS, values @ _GAUSS
        size = np.abs(values) @ WEIGHTS * half
        spread = np.abs(values - kronrod[:, None] / 2) @ WEIGHTS * half
        error = np.abs(kronrod - gauss) * half
        scaled = spread * np.minimum(1.0, (200.0 * error / spread) ** 1.5)
        error = np.where((spread > 0) & (error > 0), scaled, error)
        missed = np.abs(ends - values @ _TO_ENDS).sum(axis=1)
        # At the very end of the line there may be a pole, which the rules see in their own way.
        error = error + np.where(np.isfinite(missed), missed, 0.0) * half * _BLIND
        error = np.where(broken.any(axis=1), np.inf, error)
    bare = np.where(np.isfinite(bare), bare, 0.0)
    seen = np.stack([bare.min(axis=1), bare.max(axis=1)])
    with np.errstate(all="ignore"):
        apart = np.abs(np.diff(u[:, _IN_ORDER]))
        steepest = np.nanmax(
            np.abs(np.diff(bare[:, _IN_ORDER])) / np.where(apart > 0, apart, np.nan), axis=1, initial=0
        )
    return _Pieces(owner, low, high, kronrod * half, error, size, seen, steepest, apart.max(axis=1))


def _first_pieces(
    count: int, line: Line, breaks: FloatArray | None, switches: Sequence[Functions], pieces: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Pieces between places where something may happen, some more of them where those are few."""
    low, high = line.ends
    common = [np.array([low, high]), line.numbers(line.landmarks())]
    if breaks is not None and len(breaks):
        common.append(line.numbers(np.asarray(breaks, dtype=float)))
    shared = np.unique(np.clip(np.concatenate(common), low, high))
    each = max(1, -(-pieces // max(1, len(shared) - 1)))
    shared = np.unique(np.concatenate([np.linspace(a, b, each + 1) for a, b in pairwise(shared)]))
    owners = [np.repeat(np.arange(count), len(shared))]
    places = [np.tile(shared, count)]
    for switch in switches:
        owner, place = _zeros(switch, count, line, shared)
        owners.append(owner)
        places.append(place)
    owner, place = np.concatenate(owners), np.concatenate(places)
    order = np.lexsort((place, owner))
    owner, place = owner[order], place[order]
    kept = (owner[1:] == owner[:-1]) & (place[1:] > place[:-1])
    return owner[:-1][kept], place[:-1][kept], place[1:][kept]


def _zeros(switch: Functions, count: int, line: Line, shared: FloatArray) -> tuple[IntArray, FloatArray]:
    """Zeros of functions, looked for between scanned places and at their dips towards zero; in t."""
    scan = np.unique(np.concatenate([np.linspace(*line.ends, _SCANNED)[1:-1], shared]))
    if not line.finite:
        scan = scan[(scan > -1) & (scan < 1)]

    def at(owner: IntArray, t: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            found = switch(owner, line.place(t)[0])
        return np.where(np.isfinite(found), found, 1.0)

    everyone = np.arange(count)
    values = at(everyone, np.broadcast_to(scan, (count, len(scan))))
    owner, left = np.nonzero(np.sign(values[:, :-1]) != np.sign(values[:, 1:]))
    low, high = scan[left], scan[left + 1]
    height = np.abs(values)
    dips, middle = np.nonzero((height[:, 1:-1] <= height[:, :-2]) & (height[:, 1:-1] <= height[:, 2:]))
    same = (np.sign(values[dips, middle]) == np.sign(values[dips, middle + 1])) & (
        np.sign(values[dips, middle + 1]) == np.sign(values[dips, middle + 2])
    )
    dips, middle = dips[same], middle[same]
    side = np.sign(values[dips, middle])
    bottom = _lowest(at, dips, side, scan[middle], scan[middle + 2])
    crossed = np.sign(at(dips, bottom[:, None])[:, 0]) != side
    owner = np.concatenate([owner, dips[crossed], dips[crossed]])
    low = np.concatenate([low, scan[middle][crossed], bottom[crossed]])
    high = np.concatenate([high, bottom[crossed], scan[middle + 2][crossed]])
    sign = np.sign(at(owner, low[:, None])[:, 0])
    for _ in range(70):
        half = low + 0.5 * (high - low)
        before = np.sign(at(owner, half[:, None])[:, 0]) == sign
        low, high = np.where(before, half, low), np.where(before, high, half)
    return np.concatenate([owner, owner, dips]), np.concatenate([low, high, bottom])


def _lowest(at: Functions, owner: IntArray, side: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Where functions on one side of zero come nearest to it, or cross it most, by golden section."""
    share = (np.sqrt(5.0) - 1) / 2
    for _ in range(60):
        one, other = high - share * (high - low), low + share * (high - low)
        values = side[:, None] * at(owner, np.stack([one, other], axis=1))
        left = values[:, 0] < values[:, 1]
        low, high = np.where(left, low, one), np.where(left, other, high)
    return 0.5 * (low + high)


def _looked_into(
    found: _Pieces,
    rules: Callable[[IntArray, FloatArray, FloatArray], _Pieces],
    line: Line,
    enclosed: Enclosed,
    steepness: Steepness | None,
    count: int,
) -> tuple[_Pieces, int]:
    """Halve pieces on which a function may be far from what its nodes saw; how many values that took."""
    points = 0
    rest: list[_Pieces] = []
    for _ in range(_LOOKS):
        bounds = enclosed(found.owner, line.place(found.low)[0], line.place(found.high)[0])
        if bounds is None:
            break
        least, most = found.seen
        largest = np.zeros(count)
        np.maximum.at(largest, found.owner, np.abs(found.seen).max(axis=0))
        for part in rest:
            np.maximum.at(largest, part.owner, np.abs(part.seen).max(axis=0))
        with np.errstate(invalid="ignore", over="ignore"):
            beyond = np.maximum(bounds[1] - most, least - bounds[0])
            # Where nothing but zeros was seen, rounding of the bounds is no peak.
            possible = np.zeros(count)
            np.maximum.at(possible, found.owner, np.where(np.isfinite(beyond), beyond, 0.0))
            threshold = np.maximum(_HIDDEN * largest, 1e-9 * possible)
            hides = beyond > np.maximum(threshold[found.owner], _BESIDE * (most - least))
        if steepness is not None:
            low = np.clip(_SMALL * _means([*rest, found], count), 1e-9 * possible, threshold)[found.owner]
            hides |= _steeper(found, ~hides & (beyond > low), low, line, steepness)
        middle = found.low + 0.5 * (found.high - found.low)
        held = np.bincount(found.owner, minlength=count)
        hides &= (middle > found.low) & (middle < found.high) & (held[found.owner] < 256)
        if not hides.any():
            break
        rest.append(found.take(~hides))
        cut, at = found.take(hides), middle[hides]
        found = rules(np.concatenate([cut.owner] * 2), np.concatenate([cut.low, at]), np.concatenate([at, cut.high]))
        points += 15 * len(found.owner)
    return _Pieces.joined([*rest, found]), points


def _means(parts: Sequence[_Pieces], count: int) -> FloatArray:
    """The mean of the absolute value of each function over its pieces, in t."""
    sizes, widths = np.zeros((2, count))
    for part in parts:
        sizes += np.bincount(part.owner, part.size, count)
        widths += np.bincount(part.owner, part.high - part.low, count)
    return np.asarray(sizes / np.where(widths > 0, widths, 1.0))


def _steeper(found: _Pieces, which: BoolArray, height: FloatArray, line: Line, steepness: Steepness) -> BoolArray:
    """On which of some pieces a function may be so much steeper than from node to node that a peak has room there."""
    result = np.zeros(len(which), dtype=bool)
    places = np.flatnonzero(which)
    if not len(places):
        return result
    looked = found.take(places)
    slopes = steepness(looked.owner, line.place(looked.low)[0], line.place(looked.high)[0])
    if slopes is None:
        return result
    with np.errstate(invalid="ignore", over="ignore"):
        room = slopes * looked.widest / 2 > height[places]
        result[places] = np.isfinite(slopes) & room & (slopes > _BESIDE * looked.steepest)
    return result


def _summed(found: _Pieces, count: int, line: Line, points: int) -> Quadrature:
    """The pieces of each function together; the smallest are added first."""
    order = np.argsort(np.abs(found.value), kind="stable")
    owner = found.owner[order]
    values = np.bincount(owner, found.value[order], count).astype(float)
    sizes = np.bincount(owner, found.size[order], count).astype(float)
    # A place where it jumps, or a narrow peak, is known up to rounding.
    heights = np.zeros(count)
    reach = np.abs(line.place(0.5 * (found.low + found.high))[0])
    np.maximum.at(heights, found.owner, np.abs(found.seen).max(axis=0) * np.minimum(reach, 1e300))
    rounding = 2 * _EPS * (2 * sizes + heights)
    errors = np.bincount(owner, found.error[order], count) + rounding
    doubtful = np.flatnonzero(~(errors <= REACHED * sizes + np.finfo(float).tiny))
    if len(doubtful):
        found = found.take(np.argsort(found.owner, kind="stable"))
        first, last = (np.searchsorted(found.owner, doubtful, side) for side in ("left", "right"))
        for one, low, high in zip(doubtful.tolist(), first.tolist(), last.tolist(), strict=True):
            own = found.take(slice(low, high))
            rounding[one], errors[one] = _around_poles(own, line, float(rounding[one]))
    places = np.full(count, np.nan)
    worst = np.lexsort((found.error, found.owner))
    places[found.owner[worst]] = line.place(0.5 * (found.low + found.high))[0][worst]
    cuts = np.unique(np.concatenate([found.low, found.high]))
    return Quadrature(values, errors, rounding, sizes, places, points, cuts)


def _around_poles(found: _Pieces, line: Line, rounding: float) -> tuple[float, float]:
    """Rounding and error of one function that is not known well, if poles are the reason.

    Where pieces end at the last digits, the absolute value is integrated over two rings around the place, each of some
    doublings of the distance. Where the integral exists they decrease towards the place, and the rest of their
    geometric series is what was not seen; where they do not, as at 1 / u, there is no integral, however many digits.
    """
    middle, width = 0.5 * (found.low + found.high), found.high - found.low
    error, height = found.error.copy(), np.abs(found.seen).max(axis=0)
    smallest = (width <= 8 * np.spacing(np.abs(middle))) | (width < _TINY) | ~np.isfinite(error)
    apart = np.ones(len(error), dtype=bool)
    missed = 0.0
    for _ in range(_POLES):
        ends = np.flatnonzero(smallest & apart)
        if not len(ends):
            break
        top = int(ends[np.lexsort((height[ends], ~np.isfinite(error[ends])))[-1]])
        nearest = max(0.5 * width[top], float(np.spacing(abs(middle[top]))))
        away = np.maximum(np.abs(found.low - middle[top]), np.abs(found.high - middle[top]))
        doublings = np.log2(np.maximum(away / nearest, 1.0))
        near, far = (
            float(found.size[(doublings >= first) & (doublings < first + _RING)].sum())
            for first in (_UNSEEN, _UNSEEN + _RING)
        )
        if near > _GROWING * far:
            return rounding, np.inf
        # The distance to the place is known to so many digits, and with it the function.
        error = np.where(doublings < _UNSEEN + _RING, np.minimum(error, 4 * found.size / 2**doublings), error)
        error[doublings < _UNSEEN] = 0.0
        apart &= doublings >= _UNSEEN + _RING
        missed += near * near / (far - near) if near > 0 else 0.0
    rest = float(np.max(height[apart] * np.minimum(np.abs(line.place(middle[apart])[0]), 1e300), initial=0.0))
    rounding = min(rounding, 2 * _EPS * (2 * float(found.size.sum()) + rest))
    return rounding, float(error.sum()) + missed + rounding


def integrate_box(
    functions: Callable[[IntArray, Sequence[FloatArray]], FloatArray],
    count: int,
    lines: Sequence[Line],
    breaks: Sequence[FloatArray],
    switches: Sequence[Callable[[IntArray, Sequence[FloatArray]], FloatArray]] = (),
) -> Quadrature:
    """Integrate functions of several variables, one variable within the other.

    At each place of the first variable the integral over the others is a function by itself, whose kinks are looked
    for there: a kink along a slanted line is met where it is.
    """
    taken = [0]
    try:
        return _integrate_box(functions, count, lines, breaks, switches, taken)
    except _TooManyValuesError:
        unknown, zero = np.full(count, np.nan), np.zeros(count)
        return Quadrature(unknown, np.full(count, np.inf), zero, zero, unknown, taken[0], np.empty(0))


class _TooManyValuesError(Exception):
    """An integral of several variables would take for ever."""


def _integrate_box(
    functions: Callable[[IntArray, Sequence[FloatArray]], FloatArray],
    count: int,
    lines: Sequence[Line],
    breaks: Sequence[FloatArray],
    switches: Sequence[Callable[[IntArray, Sequence[FloatArray]], FloatArray]],
    taken: list[int],
) -> Quadrature:
    first, *rest = lines
    inner: list[Quadrature] = []

    def counted(owner: IntArray, axes: Any) -> FloatArray:
        taken[0] += axes[0].size
        if taken[0] > _MOST_VALUES * max(1, count):
            raise _TooManyValuesError
        return functions(owner, axes)

    def across(owner: IntArray, u: FloatArray) -> FloatArray:
        flat, at = np.repeat(owner, u.shape[1]), u.ravel()

        def confined(function: Callable[[IntArray, Sequence[FloatArray]], FloatArray], single: bool) -> Any:
            def call(places: IntArray, v: Any) -> FloatArray:
                others = [v] if single else list(v)
                here = np.broadcast_to(at[places][:, None], others[0].shape)
                return function(flat[places], [here, *others])

            return call

        alone = len(rest) == 1
        looked = [confined(switch, alone) for switch in switches]
        if alone:
            found = integrate(confined(counted, True), len(flat), rest[0], breaks[1], looked, pieces=2)
        else:
            found = _integrate_box(confined(functions, False), len(flat), rest, breaks[1:], looked, taken)
        inner.append(replace(found, values=np.empty(0), places=np.empty(0)))
        return found.values.reshape(u.shape)

    found = integrate(across, count, first, breaks[0])
    points = sum(each.points for each in inner)
    # The inner integrals are off by a share of their size, and so is what they are integrated to.
    with np.errstate(all="ignore"):
        shares = [float(each.errors.sum() / each.sizes.sum()) if each.sizes.any() else 0.0 for each in inner]
    share = max((each if np.isfinite(each) else np.inf for each in shares), default=0.0)
    return replace(found, errors=found.errors + share * found.sizes, points=points)


def composite(line: Line, cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Places and weights of the Kronrod rule on all pieces between some numbers t."""
    half = 0.5 * np.diff(cuts)
    t = (cuts[:-1] + half)[:, None] + half[:, None] * NODES
    places, slope = line.place(t)
    return places.ravel(), (half[:, None] * WEIGHTS * slope).ravel()
