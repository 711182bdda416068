"""Families made ready for a scan: an unbounded index is mapped to a box, kinks become marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.grids import tensor_points
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import Rows, TermGroup, TracedRows

# Within this distance of the ends that stand for infinity, t counts powers of ten: up to so many more of them as all
# numbers of a row can stand. What a row is at infinity shows there, such as that x**2 outgrows any multiple of x.
_END, _POWERS = 1e-9, (51, 31, 16, 6, 0)
_FAR = (1 - _END) / _END
# What is nearer to an end than this share of it, or of the second number, is at the end.
_BESIDE, _LEAST = 4 * 2.0**-52, 1e-100
# Up to so many scales from the finite end, or from zero, the scan has four points per scale.
_NEAR = 500


# Rows with so many coefficients are kept until they are asked for at other points.
_KEPT = 2**16


@dataclass(frozen=True, eq=False)
class Compactification:
    """The map between an unbounded domain and its box."""

    domain: Domain
    powers: int = 0

    @cached_property
    def scale(self) -> FloatArray:
        """Length s of each axis: half of a half-line's box lies within s of its end.

        It is what the marks say, where there are any: half of them are nearer to the end, or to zero.
        """
        ends = np.where(np.isfinite(self.domain.lower), self.domain.lower, self.domain.upper)
        scale = np.where(np.isfinite(ends), np.maximum(1.0, np.abs(ends)), 1.0)
        for axis, marks in enumerate(self.domain.marks):
            origin = ends[axis] if np.isfinite(ends[axis]) else 0.0
            distances = np.abs(marks - origin)
            # A mark at the end itself, and the numbers right beside it, say nothing.
            distances = distances[distances > _BESIDE * max(abs(origin), _LEAST)]
            scale[axis] = float(np.median(distances)) if len(distances) else scale[axis]
        return scale

    def _beyond(self, gap: FloatArray) -> FloatArray:
        """Shares u / s at a distance ``gap`` from the end that stands for infinity: 1 / gap, then powers of ten."""
        power = self.powers * np.clip(1 - gap / _END, 0.0, 1.0)
        return np.where(gap >= _END, (1 - gap) / np.maximum(gap, _END), _FAR * 10.0**power)

    def outward(self, points: FloatArray) -> FloatArray:
        """From the box to the user's coordinates."""
        result = points.copy()
        for axis, (low, high, scale) in enumerate(zip(self.domain.lower, self.domain.upper, self.scale, strict=True)):
            t = points[:, axis]
            if np.isfinite(low) and np.isposinf(high):
                result[:, axis] = low + scale * self._beyond(1 - t)
            elif np.isneginf(low) and np.isfinite(high):
                result[:, axis] = high - scale * self._beyond(t)
            elif np.isneginf(low):
                r = 2 * t - 1
                gap = np.minimum(t, 1 - t)
                near = r / np.maximum((1 - r) * (1 + r), 1e-30)
                far = np.sign(r) * self._beyond(gap) / 4
                result[:, axis] = scale * np.where(gap >= _END, near, far)
        return result

    def inward(self, values: FloatArray, axis: int) -> FloatArray:
        """From one of the user's coordinates to the box."""
        low, high, scale = self.domain.lower[axis], self.domain.upper[axis], self.scale[axis]
        if np.isfinite(low) and np.isposinf(high):
            share = (values - low) / scale
            return np.where(share > _FAR, 1 - self._gap(share), share / (1 + share))
        if np.isneginf(low) and np.isfinite(high):
            share = (high - values) / scale
            return np.where(share > _FAR, self._gap(share), 1 / (1 + share))
        if np.isneginf(low):
            z = values / scale
            gap = self._gap(4 * np.abs(z))
            near = (1 + 2 * z / (1 + np.sqrt(1 + 4 * z * z))) / 2
            return np.where(4 * np.abs(z) > _FAR, np.where(z > 0, 1 - gap, gap), near)
        return values

    def _gap(self, share: FloatArray) -> FloatArray:
        """The distance from the end that stands for infinity of what lies farther out than ``_END`` tells."""
        if not self.powers:
            return 1 / (1 + share)
        power = np.log10(np.maximum(share, _FAR) / _FAR)
        return _END * np.clip(1 - power / self.powers, 0.0, 1.0)

    def box(self) -> Domain:
        """The bounded domain."""
        lower, upper = self.domain.lower.copy(), self.domain.upper.copy()
        left, right = np.isneginf(lower), np.isposinf(upper)
        open_axis = left | right
        lower[open_axis], upper[open_axis] = 0.0, 1.0
        if not self.powers:
            lower[left] += _END
            upper[right] -= _END
        inside = self.domain.inside
        predicate = None
        if inside is not None:

            def predicate(points: FloatArray) -> BoolArray:
                return inside(self.outward(points))

        marks = []
        for axis, each in enumerate(self.domain.marks):
            if open_axis[axis] and self.domain.dimension == 1:
                # Far from the origin the box is coarse: look for features of unit width there too.
                low, high = self.domain.lower[axis], self.domain.upper[axis]
                origin = low if np.isfinite(low) else high if np.isfinite(high) else 0.0
                near = origin + self.scale[axis] * np.linspace(-_NEAR, _NEAR, 8 * _NEAR + 1)
                each = np.unique(np.concatenate([each, near[(near >= low) & (near <= high)]]))
            marks.append(self.inward(each, axis))
        return Domain(self.domain.names, lower, upper, predicate, tuple(marks))


class _NormalisedRows(Rows):
    """Rows over the box, each divided by its largest number where that is above 1."""

    def __init__(self, rows: Rows, compact: Compactification) -> None:
        self._rows = rows
        self._compact = compact
        self.columns = rows.columns
        self.templates = rows.templates
        self._last: tuple[bytes, _Measured] | None = None

    def _measured(self, points: FloatArray) -> _Measured:
        """The rows in the user's coordinates, and what they are divided by; those of a few points are kept.

        Who asks for coefficients at some points asks for limits there next.
        """
        key = points.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        outward = self._compact.outward(points)
        limits, blocks = self._rows.limits(outward), self._rows.blocks(outward)
        size = np.ones(len(points))
        # What is not a finite number far out is found, and named, by whoever asked for the rows.
        for limit in limits:
            size = np.where(np.isfinite(limit), np.maximum(size, np.abs(limit)), size)
        few = len(points) * len(self.columns) <= _KEPT
        kept = list(blocks) if few else None
        for _, at, block in blocks if kept is None else kept:
            size[at] = np.fmax(size[at], np.abs(block).max(axis=0, initial=1.0))
        found = _Measured(outward, size, limits, kept)
        self._last = (key, found) if few else None
        return found

    def size(self, points: FloatArray) -> FloatArray:
        """What the row at each point of the box is divided by."""
        return self._measured(points).size

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        known = self._measured(points)
        for columns, at, block in self._rows.blocks(known.outward) if known.blocks is None else known.blocks:
            with np.errstate(all="ignore"):
                scaled = block / known.size[at]
            yield columns, at, scaled

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        known = self._measured(points)
        with np.errstate(all="ignore"):
            lower, upper = (limit / known.size for limit in known.limits)
        return lower, upper


@dataclass(frozen=True, eq=False)
class _Measured:
    """Rows at points of the box: the points in the user's coordinates, sizes, limits, and blocks if they are few."""

    outward: FloatArray
    size: FloatArray
    limits: tuple[FloatArray, FloatArray]
    blocks: list[tuple[IntArray, slice, FloatArray]] | None


@dataclass(frozen=True, eq=False)
class CompactFamily(Family):
    """A family over the box that stands for one over an unbounded domain."""

    compact: Compactification | None = None
    declared: Family | None = None

    @property
    def as_declared(self) -> Family:
        return self if self.declared is None else self.declared

    def user_points(self, points: FloatArray) -> FloatArray:
        assert self.compact is not None
        return self.compact.outward(points)

    def own_points(self, points: FloatArray) -> FloatArray:
        assert self.compact is not None
        inward = [self.compact.inward(points[:, axis], axis) for axis in range(points.shape[1])]
        return np.clip(np.stack(inward, axis=1), self.domain.lower, self.domain.upper)

    def user_masses(self, points: FloatArray, masses: FloatArray) -> FloatArray:
        assert isinstance(self.rows, _NormalisedRows)
        return masses / self.rows.size(points)

    @property
    def templates(self) -> tuple[TermGroup, ...]:
        assert isinstance(self.rows, _NormalisedRows)
        return self.rows.templates

    @property
    def user_domain(self) -> Domain:
        assert self.compact is not None
        return self.compact.domain


def _powers(family: Family) -> int:
    """How many powers of ten beyond 1e9 the numbers of a family's rows can stand, at all of its infinite ends."""
    if family.route == "sampled":
        return 0
    for powers in _POWERS[:-1]:
        compact = Compactification(family.domain, powers)
        box = compact.box()
        corners = tensor_points([np.array([low, high]) for low, high in zip(box.lower, box.upper, strict=True)])
        outward = compact.outward(corners)
        inside = family.domain.contains(outward)
        outward = outward[inside] if inside.any() else outward
        with np.errstate(all="ignore"):
            lower, upper = family.rows.limits(outward)
            numbers = family.matrix_unchecked(outward)
        if np.all(np.isfinite(numbers)) and not np.any(np.isnan(lower) | np.isposinf(lower) | np.isneginf(upper)):
            return powers
    return 0


def reach(family: Family) -> float:
    """How far out an index without an end is looked at: as far as the numbers of the rows can be computed.

    Zero where they cannot be computed much farther than they are looked at anyway.
    """
    if family.domain.bounded:
        return np.inf
    powers = _powers(family)
    return float(Compactification(family.domain).scale.max() / _END * 10.0**powers) if powers else 0.0


# A family is mapped for its search, for its audit and for what it is told by.
_known_powers: WeakKeyDictionary[Family, int] = WeakKeyDictionary()


def compactify(family: Family) -> Family:
    """The family itself where its domain is bounded, or a convex set, else one over a box that stands for it."""
    if family.domain.bounded or family.domain.body is not None:
        return family
    if family not in _known_powers:
        _known_powers[family] = _powers(family)
    compact = Compactification(family.domain, _known_powers[family])
    return CompactFamily(
        family.name,
        compact.box(),
        _NormalisedRows(family.rows, compact),
        family.column_names,
        family.route,
        compact=compact,
        declared=family,
    )


# Coefficients that a scan may have at places where rows switch; with more, those places are left out.
_SWITCH_COEFFICIENTS = 20_000_000


def switch_places(domain: Domain, groups: Sequence[TermGroup]) -> tuple[FloatArray, FloatArray]:
    """Numbers of an interval between which abs, Min, Max, Expr_if and curves switch: those below, and those above."""
    lows, highs = [np.empty(0)], [np.empty(0)]
    nodes = np.linspace(domain.lower[0], domain.upper[0], 2049)
    for group in groups:
        if len(group.columns) * len(nodes) * len(group.switches) > 4 * _SWITCH_COEFFICIENTS:
            continue
        for switch in group.switches:
            signs = replace(group, kernel=switch).block(slice(None), nodes[:, None]) > 0
            column, left = np.nonzero(signs[:, 1:] != signs[:, :-1])
            low, high = nodes[left], nodes[left + 1]
            # Curves have no entry per column, and no switch calls them: one inside another is left out.
            slots = [slot[column] if isinstance(slot, np.ndarray) else slot for slot in group.slots]
            for _ in range(60):
                middle = (low + high) / 2
                with np.errstate(all="ignore"):
                    value = np.broadcast_to(switch(slots, [middle]), middle.shape)
                same = (value > 0) == signs[column, left]
                low, high = np.where(same, middle, low), np.where(same, high, middle)
            lows.append(low)
            highs.append(high)
    return np.concatenate(lows), np.concatenate(highs)


def with_switch_points(domain: Domain, rows: TracedRows) -> Domain:
    """Mark where abs, Min, Max and Expr_if switch, so that a piece narrower than the scan is seen."""
    if domain.dimension > 1 or not domain.bounded or (rows.stepped and domain.inside is None):
        # The steps of rows that are made of nothing else are found one by one.
        return domain
    groups = (*rows.groups, *(rows.lower or ()), *(rows.upper or ()))
    places = np.unique(np.concatenate(switch_places(domain, groups)))
    if not len(places) or len(places) * len(rows.columns) > _SWITCH_COEFFICIENTS:
        return domain
    # The neighbours too: an open slot between two strict comparisons begins behind its switch.
    places = np.concatenate([places, np.nextafter(places, -np.inf), np.nextafter(places, np.inf)])
    places = places[(places >= domain.lower[0]) & (places <= domain.upper[0])]
    return replace(domain, marks=(np.unique(np.concatenate([domain.marks[0], places])),))
