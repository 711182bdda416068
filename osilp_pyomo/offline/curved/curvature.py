"""Is what is not linear convex (concave where it must be)? A proof, or two points between which it bends the wrong way.

Rules settle most terms one by one. What they leave open is looked at as a whole: the matrix of a quadratic function,
pairs of points that disprove it, and at last its Hessian enclosed over boxes that cover the variables' bounds and the
index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import ModelError, NotConvexError
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import Enclosure, NoEnclosureError, Opening
from osilp_pyomo.index.enclosures.intervals import exact
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.curved.rules import (
    Known,
    data,
    known_of,
    number,
    semidefinite,
    variable,
)
from osilp_pyomo.offline.curved.tape import NoSlopeError
from osilp_pyomo.offline.curved.terms import CurvedGroup, CurvedTerm

CONVEX_SIDE, CONCAVE_SIDE = 1.0, -1.0

# Points whose Hessians are looked at, and pairs of points whose middles are.
_HESSIANS, _PAIRS = 48, 256
# Points of the index at which simple pairs are tried.
_SIMPLE = 8
# Where a variable has no bound it is tried within this distance of the other one, or of zero.
_REACH = 10.0
# By which share of the values a middle must be on the wrong side, and how negative an eigenvalue that hints at it is.
_WRONG, _NEGATIVE = 1e-9, 1e-8
# Boxes that a proof of a Hessian may take, how many are cut at a time, and coordinates that boxes may have.
_BOXES, _AT_A_TIME, _COORDINATES = 20_000, 512, 12
# Entries of a Hessian below this share of the largest one anywhere are rounding.
_NOTHING = 1e-13
# Variables of two points that are shown.
_SHOWN = 6


@dataclass(frozen=True)
class Subject:
    """Whose term it is, on which side it must bend (1 convex, -1 concave), and the index it has."""

    what: str
    side: float
    domain: Domain | None = None

    @property
    def kind(self) -> str:
        return "convex" if self.side > 0 else "concave"


def refuse_wrong_curvature(term: CurvedTerm, subject: Subject, core: FiniteLP) -> None:
    """Refuse a term that is not proved to bend as it must.

    Raises
    ------
    NotConvexError
        Names the term, and two points between which it bends the wrong way, where there are such.
    """
    low, high = core.column_lower, core.column_upper
    try:
        open_text = _settle_by_rules(term, subject, low, high)
        if open_text is None:
            return
        found = _disproof(term, subject, low, high)
        if found is None and _enclosed(term, subject, low, high):
            return
    except NoSlopeError as error:
        raise ModelError(f"{subject.what}: {error} (found {term.groups[0].texts[0]}).") from None
    if found is None:
        raise NotConvexError(
            f"{subject.what}: it could not be proved to be {subject.kind} in the variables (found {open_text}); write "
            "it by functions whose curvature is known (squares, exp, log, sqrt of sums of squares, abs, maxima of "
            "linear terms), or give its variables bounds within which it is."
        )
    raise NotConvexError(_wrong_way(found, open_text, subject, term, core))


def _wrong_way(
    found: tuple[FloatArray, FloatArray, FloatArray], text: str, subject: Subject, term: CurvedTerm, core: FiniteLP
) -> str:
    one, other, point = found

    def named(x: FloatArray) -> str:
        shown = [f"{core.column_names[k]} = {x[k]:.6g}" for k in term.columns[:_SHOWN]]
        return ", ".join(shown) + (", ..." if len(term.columns) > _SHOWN else "")

    where = f" at {subject.domain.describe(point)}" if subject.domain is not None else ""
    rules = {
        "O": "an objective is minimized where it is convex and maximized where it is concave",
        "C": "a constraint '<=' must be convex, one '>=' concave",
        "S": "a row '<=' must be convex in the variables, one '>=' concave",
    }
    return (
        f"{subject.what}: it is not {subject.kind} in the variables (found {text}): between ({named(one)}) and "
        f"({named(other)}){where} it bends the wrong way. Offline {rules[subject.what[0]]}; give the variables bounds "
        "within which it is, or write it in another way; if such terms belong to arrivals use "
        "compile_online(model, stages=...).solve_offline()."
    )


# -- by rules ----------------------------------------------------------------------------------------------------


def _settle_by_rules(term: CurvedTerm, subject: Subject, low: FloatArray, high: FloatArray) -> str | None:
    """None where rules, or the matrix of what is quadratic, prove the curvature; else a term that they leave open."""
    left = [
        group for group in term.groups if not _bends_right(_known_group(group, subject.domain, low, high), subject.side)
    ]
    known = [
        (group, place, _known_term(group, place, subject.domain, low, high))
        for group in left
        for place in range(len(group.columns))
    ]
    found = [each for each in known if not _bends_right(each[2], subject.side)]
    if not found:
        return None
    first = found[0][0].texts[found[0][1]]
    if any(each.quadratic is None for _, _, each in found):
        return first
    # All that the rules leave open is quadratic: its matrix, with that of all other quadratic terms, decides.
    settled = [group for group in term.groups if not any(group is each for each in left)]
    known += [
        (group, place, _known_term(group, place, subject.domain, low, high))
        for group in settled
        for place in range(len(group.columns))
    ]
    matrix = np.zeros((len(term.columns),) * 2)
    for group, place, each in known:
        if each.quadratic is not None:
            places = np.searchsorted(term.columns, group.columns[place])
            np.add.at(matrix, (places[:, None], places[None, :]), each.quadratic.matrix)
    return None if semidefinite(subject.side * matrix) else first


def _bends_right(known: Known, side: float) -> bool:
    return known.convex if side > 0 else known.concave


def _index_axes(domain: Domain | None) -> list[Known]:
    if domain is None:
        return []
    ends = zip(domain.lower.tolist(), domain.upper.tolist(), strict=True)
    return [data(low, high, f"u{axis}") for axis, (low, high) in enumerate(ends)]


def _known_group(group: CurvedGroup, domain: Domain | None, low: FloatArray, high: FloatArray) -> Known:
    """What the rules know of all terms of a group together, from the ranges of their data and variables."""
    if len(group.columns) == 1:
        return _known_term(group, 0, domain, low, high)
    slots = [
        data(float(slot.min()), float(slot.max()), f"s{k}")
        if isinstance(slot, np.ndarray)
        else data(-np.inf, np.inf, f"s{k}")
        for k, slot in enumerate(group.slots)
    ]
    size = group.columns.shape[1]
    axes = [
        variable(place, size, float(low[column].min()), float(high[column].max()))
        for place, column in enumerate(group.columns.T)
    ]
    return known_of(group.formula, slots, [*_index_axes(domain), *axes], size)


def _known_term(group: CurvedGroup, place: int, domain: Domain | None, low: FloatArray, high: FloatArray) -> Known:
    """What the rules know of one term, whose data are numbers."""
    size = group.columns.shape[1]
    slots = [
        number(float(slot[place]), repr(float(slot[place])), size)
        if isinstance(slot, np.ndarray)
        else data(-np.inf, np.inf, f"s{k}")
        for k, slot in enumerate(group.slots)
    ]
    axes = [variable(k, size, float(low[column]), float(high[column])) for k, column in enumerate(group.columns[place])]
    return known_of(group.formula, slots, [*_index_axes(domain), *axes], size)


# -- by points that disprove it -----------------------------------------------------------------------------------


def _tried_box(term: CurvedTerm, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of all columns within which points are tried."""
    down = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2 * _REACH, -_REACH))
    up = np.where(np.isfinite(high), high, down + 2 * _REACH)
    return down, up


def _simple_pairs(used: IntArray, down: FloatArray, up: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Pairs that are easy to read: ends of the box along one variable, and opposite corners of two."""
    still = np.clip(0.0, down, up)
    for column in used[:_SHOWN]:
        one, other = still.copy(), still.copy()
        one[column], other[column] = down[column], up[column]
        yield one, other
        for half in (one, other):
            # From the middle on: what bends both ways may be straight from end to end.
            middle = half.copy()
            middle[column] = (down[column] + up[column]) / 2
            yield middle, half
    for first, second in combinations(used[:_SHOWN], 2):
        for crossed in (True, False):
            one, other = still.copy(), still.copy()
            one[first], other[first] = down[first], up[first]
            one[second], other[second] = (up[second], down[second]) if crossed else (down[second], up[second])
            yield one, other


def _disproof(
    term: CurvedTerm, subject: Subject, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Two values of the variables and a point of the index between which it bends the wrong way; None without any."""
    down, up = _tried_box(term, low, high)
    rng = np.random.default_rng(20260)
    points = np.zeros((1, 0))
    if subject.domain is not None:
        domain = subject.domain
        unit = np.concatenate([np.full((1, domain.dimension), 0.5), rng.random((64, domain.dimension))])
        points = domain.lower + unit * domain.width
        inside = domain.contains(points)
        points = points[inside] if inside.any() else points
    used = term.columns

    def wrong(one: FloatArray, other: FloatArray, at: FloatArray) -> bool:
        with np.errstate(all="ignore"):
            ends = np.array([term.values(each, at)[0] for each in (one, other, (one + other) / 2)])
        if not np.all(np.isfinite(ends)):
            return False
        return bool(subject.side * (ends[2] - ends[:2].mean()) > _WRONG * np.abs(ends).max() + 1e-300)

    for one, other in _simple_pairs(used, down, up):
        for at in points[:_SIMPLE, None]:
            if wrong(one, other, at):
                return one, other, at[0]
    for trial in range(_PAIRS):
        at = points[[trial % len(points)]]
        one = down.copy()
        one[used] += rng.random(len(used)) * (up - down)[used]
        other = one.copy()
        # Pairs along one variable, and along all of them.
        moved = used[[trial // 2 % len(used)]] if trial % 2 else used
        other[moved] = down[moved] + rng.random(len(moved)) * (up - down)[moved]
        if wrong(one, other, at):
            return one, other, at[0]
    for trial in range(_HESSIANS):
        at = points[[trial % len(points)]]
        middle = down + (0.05 + 0.9 * rng.random(len(down))) * (up - down)
        with np.errstate(all="ignore"):
            bent = subject.side * term.hessian(middle, at, np.ones(1))
        if not np.all(np.isfinite(bent)):
            continue
        values, vectors = np.linalg.eigh((bent + bent.T) / 2)
        if values[0] >= -_NEGATIVE * max(abs(values[0]), values[-1]):
            continue
        for share in 0.5 ** np.arange(1, 16):
            step = np.zeros(len(down))
            step[used] = vectors[:, 0] * share * float(np.min((up - down)[used]))
            pair = np.clip(middle - step, down, up), np.clip(middle + step, down, up)
            if wrong(*pair, at):
                return *pair, at[0]
    return None


# -- by enclosures ------------------------------------------------------------------------------------------------


def _enclosed(term: CurvedTerm, subject: Subject, low: FloatArray, high: FloatArray) -> bool:
    """Whether enclosures of the Hessian over boxes that cover everything prove it."""
    used, dimension = term.columns, term.dimension
    domain = subject.domain
    index_low = np.empty(0) if domain is None else domain.lower
    index_high = np.empty(0) if domain is None else domain.upper
    if dimension + len(used) > _COORDINATES:
        return False
    start = np.concatenate([index_low, low[used]]), np.concatenate([index_high, high[used]])
    boxes = start[0][:, None], start[1][:, None]
    whole = np.where(np.isfinite(start[1] - start[0]), start[1] - start[0], 1.0)
    looked, scale = 0, 0.0
    while boxes[0].shape[1]:
        looked += boxes[0].shape[1]
        if looked > _BOXES:
            return False
        some, rest = (end[:, -_AT_A_TIME:] for end in boxes), tuple(end[:, :-_AT_A_TIME] for end in boxes)
        lower, upper = some
        try:
            middle, radius = _hessians(term, lower, upper)
        except NoEnclosureError:
            return False
        finite = np.abs(middle[np.isfinite(middle)])
        scale = max(scale, float(finite.max(initial=0.0)))
        good = np.array(
            [
                _is_semidefinite(subject.side * centre, spread, _NOTHING * scale)
                for centre, spread in zip(middle, radius, strict=True)
            ]
        )
        lower, upper = lower[:, ~good], upper[:, ~good]
        width = (upper - lower) / whole[:, None]
        if np.any(~np.isfinite(width)) or np.any(width.max(axis=0, initial=0.0) < 1e-9):
            return False
        axis = np.argmax(width, axis=0)
        place = np.arange(len(axis))
        cut = (lower[axis, place] + upper[axis, place]) / 2
        left_high, right_low = upper.copy(), lower.copy()
        left_high[axis, place] = right_low[axis, place] = cut
        boxes = (
            np.concatenate([rest[0], lower, right_low], axis=1),
            np.concatenate([rest[1], left_high, upper], axis=1),
        )
    return True


def _hessians(term: CurvedTerm, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middles and radii (boxes, n, n) of Hessians over boxes with ends (d + n, boxes)."""
    dimension, count, boxes = term.dimension, len(term.columns), low.shape[1]
    total = np.zeros((2, count, count, boxes))
    # Coordinates of the index are numbers here: only derivatives by the variables are wanted.
    index = [Enclosure((low[axis][None], high[axis][None])) for axis in range(dimension)]
    for group in term.groups:
        places = np.searchsorted(term.columns, group.columns)
        axes = [
            Enclosure((low[dimension + place], high[dimension + place]), {k: exact(1.0)})
            for k, place in enumerate(places.T)
        ]
        slots = [slot[:, None] if isinstance(slot, np.ndarray) else slot[slice(None)] for slot in group.slots]
        opening = Opening(group.columns.shape[1], 2)
        with np.errstate(all="ignore"):
            found = group.formula.enclose(slots, [*index, *axes], opening)
        if not isinstance(found, Enclosure) or not opening.smooth:
            raise NoEnclosureError("it has kinks")
        for (i, j), pair in found.bends.items():
            for end, each in zip(total, pair, strict=True):
                block = np.broadcast_to(each, (len(places), boxes))
                np.add.at(end, (places[:, i], places[:, j]), block)
                if i != j:
                    np.add.at(end, (places[:, j], places[:, i]), block)
    with np.errstate(all="ignore"):
        middle = (total[0] + total[1]) / 2
        radius = (total[1] - total[0]) / 2
    return middle.transpose(2, 0, 1), radius.transpose(2, 0, 1)


def _is_semidefinite(middle: FloatArray, radius: FloatArray, nothing: float) -> bool:
    """Whether all symmetric matrices of an interval are positive semidefinite, but for rounding."""
    if not (np.all(np.isfinite(middle)) and np.all(np.isfinite(radius))):
        return False
    diagonal = np.diagonal(middle) - np.diagonal(radius)
    used = np.flatnonzero((np.abs(middle) + radius).max(axis=0, initial=0.0) > nothing)
    if np.any(diagonal[used] < -nothing):
        return False
    root = np.sqrt(np.maximum(np.diagonal(middle)[used], nothing))
    root = np.where(root > 0, root, 1.0)
    scaled, spread = (each[np.ix_(used, used)] / root[:, None] / root[None] for each in (middle, radius))
    if not len(used):
        return True
    least = float(np.linalg.eigvalsh((scaled + scaled.T) / 2)[0]) - float(spread.sum(axis=1).max())
    return least >= -64 * 2.0**-52 * len(used)
