"""Unbounded index sets, brought into a bounded box.

A half-line is mapped to [0, 1] by u = a + s t/(1 - t), a line by u = s (2t - 1)/(1 - (2t - 1)^2), up to
|u| of about 1e9 s. Each row is divided by its largest number, coefficient or limit (where that is above 1),
so that far out only the fastest growing terms are left: the last rows are the tail test that the row does
not turn negative at infinity. Violations on such an index are therefore relative to that number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from osilp_pyomo.domains import BoolArray, Domain, FloatArray
from osilp_pyomo.problem import Family, IntArray, Rows, TermGroup

# t is kept this far from the ends that stand for infinity.
_END = 1e-9
# Up to so many scales from the finite end, or from zero, the scan has four points a scale.
_NEAR = 500


@dataclass(frozen=True, eq=False)
class Compactification:
    """The map between an unbounded domain and its box."""

    domain: Domain

    @property
    def scale(self) -> FloatArray:
        """Length s of each axis: half of a half-line's box lies within s of its end."""
        ends = np.where(np.isfinite(self.domain.lower), self.domain.lower, self.domain.upper)
        return np.where(np.isfinite(ends), np.maximum(1.0, np.abs(ends)), 1.0)

    def outward(self, points: FloatArray) -> FloatArray:
        """From the box to the user's coordinates."""
        result = points.copy()
        for axis, (low, high, scale) in enumerate(zip(self.domain.lower, self.domain.upper, self.scale, strict=True)):
            t = points[:, axis]
            if np.isfinite(low) and np.isposinf(high):
                result[:, axis] = low + scale * t / (1 - t)
            elif np.isneginf(low) and np.isfinite(high):
                result[:, axis] = high - scale * (1 - t) / t
            elif np.isneginf(low):
                r = 2 * t - 1
                result[:, axis] = scale * r / ((1 - r) * (1 + r))
        return result

    def inward(self, values: FloatArray, axis: int) -> FloatArray:
        """From one of the user's coordinates to the box."""
        low, high, scale = self.domain.lower[axis], self.domain.upper[axis], self.scale[axis]
        if np.isfinite(low) and np.isposinf(high):
            share = (values - low) / scale
            return share / (1 + share)
        if np.isneginf(low) and np.isfinite(high):
            share = (high - values) / scale
            return 1 / (1 + share)
        if np.isneginf(low):
            z = values / scale
            return (1 + 2 * z / (1 + np.sqrt(1 + 4 * z * z))) / 2
        return values

    def box(self) -> Domain:
        """The bounded domain."""
        lower, upper = self.domain.lower.copy(), self.domain.upper.copy()
        left, right = np.isneginf(lower), np.isposinf(upper)
        open_axis = left | right
        lower[open_axis], upper[open_axis] = 0.0, 1.0
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

    def size(self, points: FloatArray) -> FloatArray:
        """What the row at each point of the box is divided by."""
        outward = self._compact.outward(points)
        result = np.ones(len(points))
        # What is not a finite number far out is found, and named, by whoever asked for the rows.
        for limit in self._rows.limits(outward):
            result = np.where(np.isfinite(limit), np.maximum(result, np.abs(limit)), result)
        for _, at, block in self._rows.blocks(outward):
            result[at] = np.fmax(result[at], np.abs(block).max(axis=0, initial=1.0))
        return result

    def blocks(self, points: FloatArray) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        size = self.size(points)
        for columns, at, block in self._rows.blocks(self._compact.outward(points)):
            with np.errstate(all="ignore"):
                scaled = block / size[at]
            yield columns, at, scaled

    def limits(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        size = self.size(points)
        lower, upper = self._rows.limits(self._compact.outward(points))
        with np.errstate(all="ignore"):
            return lower / size, upper / size


@dataclass(frozen=True, eq=False)
class CompactFamily(Family):
    """A family over the box that stands for one over an unbounded domain."""

    compact: Compactification | None = None

    def user_points(self, points: FloatArray) -> FloatArray:
        assert self.compact is not None
        return self.compact.outward(points)

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


def compactify(family: Family) -> Family:
    """The family itself where its domain is bounded, else one over a box that stands for it."""
    if family.domain.bounded:
        return family
    compact = Compactification(family.domain)
    return CompactFamily(
        family.name,
        compact.box(),
        _NormalisedRows(family.rows, compact),
        family.column_names,
        family.route,
        compact=compact,
    )
