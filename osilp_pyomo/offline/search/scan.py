"""Separation oracles over a finite set of points and over the continuum: where is a row violated most?

A search is made once for a family and asked again for every candidate x. Over the continuum it
evaluates the row on a fixed scan, takes every local maximum of the scan that could be one of the
row, and polishes all of them together: a Newton step from finite differences, made safe by a
direct search whose step shrinks, so that kinks, jumps and bounds are met as well. It needs values
only, and so serves traced and sampled rows alike.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from scipy.spatial import cKDTree

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import DomainError
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.grids import tensor_points
from osilp_pyomo.index.sobol import sobol_points
from osilp_pyomo.lp.finite import RowBlock, excess_of, violation_scale
from osilp_pyomo.offline.problem import SCALE_FLOOR, Family, examples_at
from osilp_pyomo.offline.search.local import polish, sweep

# The scan's matrix is kept when it is at most this large (bytes): a scan is then one product, some
# ten times faster than evaluating the coefficients again.
CACHE_BYTES = 2**28
# How often a scan may be updated before it is computed again, lest rounding adds up.
_UPDATES = 20
# Local maxima polished together at most: as many as there may be binding points on an interval, fewer in several
# dimensions, and few where each point is a call of the user's rule.
CANDIDATES = {"interval": 400, "box": 48, "sampled": 8}
# A scan of an interval has as many points as this many coefficients allow, within limits.
_INTERVAL_BUDGET, _FEWEST, _MOST = 2_000_000, 1024, 4096
# Tensor points along each axis and further Sobol points of a scan, by dimension.
_SCAN = {2: (49, 1024), 3: (15, 2048), 4: (8, 4096), 5: (6, 8192)}
_NEIGHBOURS = {2: 8, 3: 14, 4: 18, 5: 24}
# Dimensions in which a scan has all corners of the box; in more there are too many.
_CORNERS = 11


@dataclass(frozen=True, eq=False)
class Violations:
    """Local maximizers of the excess, the worst first.

    ``scale`` is what each is to be measured by, ``typical`` the size of the row at most points; ``members`` tells
    which family of the search each point belongs to, by its place there.
    """

    points: FloatArray
    excess: FloatArray
    scale: FloatArray
    typical: float
    members: IntArray

    @property
    def worst(self) -> float:
        """Largest excess found; negative where the row has slack everywhere."""
        return float(self.excess[0])

    @cached_property
    def relative_to_typical(self) -> float:
        """Largest excess relative to the size of the row at its point and at most others."""
        return float(np.max(self.excess / np.maximum(self.scale, self.typical)))

    @cached_property
    def relative(self) -> float:
        """Largest excess relative to the scale at its point."""
        return float(np.max(self.excess / self.scale))


class Search(ABC):
    """A separation oracle: finds the points at which x violates the rows of families.

    Attributes
    ----------
    families : tuple of Family
        One, or several that are separated together.
    numbers : array of int
        Their numbers in the problem.
    covers_continuum : bool
        Whether it stands for the whole index, so that rows may be added anywhere in it.
    separation : str
        How it separates: "search" finds what a scan can see, everything else is proved.
    margin : float
        What a largest excess that is proved may miss by rounding.
    """

    families: tuple[Family, ...]
    numbers: IntArray
    covers_continuum: bool = True
    separation: str = "search"
    margin: float = 0.0

    @abstractmethod
    def worst(self, x: FloatArray) -> Violations:
        """The points that x violates, the worst first."""

    @abstractmethod
    def rows(self, members: IntArray, points: FloatArray) -> RowBlock:
        """The rows of some of its families, by place, at one point each."""

    @abstractmethod
    def beginning(self) -> tuple[IntArray, FloatArray]:
        """Families, by place, and points to begin with, so that the first LP is seldom unbounded."""

    @abstractmethod
    def examples(self, most: int) -> tuple[IntArray, RowBlock]:
        """Families, by place, and rows of them, at most so many per family, that show how large they are."""

    @abstractmethod
    def on_families(self, families: Sequence[Family]) -> Self:
        """A search like this one for other families of the problem, with these coefficients and other limits."""

    def learn(self, member: int, points: FloatArray) -> bool:
        """Evaluate these points of a family as well from now on; False for a search that misses nothing."""
        return False

    def distinct(self, points: FloatArray) -> IntArray:
        """Which of some violated points are worth a row each."""
        return np.arange(len(points))

    @property
    def memory(self) -> int:
        """Bytes held."""
        return 0


class ScanSearch(Search):
    """Separation oracle that evaluates one family on a fixed scan."""

    def __init__(self, family: Family, points: FloatArray, number: int = 0) -> None:
        self.families = (family,)
        self.numbers = np.array([number])
        self._lay(points)

    @property
    def family(self) -> Family:
        """The one family."""
        return self.families[0]

    def _lay(self, points: FloatArray) -> None:
        self.points = points
        self.neighbours = neighbours(points, self.family.domain)
        self.lower, self.upper = self.family.limits(points)
        self._matrix: FloatArray | None = None
        self._last: tuple[FloatArray, FloatArray, int] | None = None
        self._cacheable = points.shape[0] * len(self.family.rows.columns) * 8 <= CACHE_BYTES

    def on_families(self, families: Sequence[Family]) -> Self:
        other = copy.copy(self)
        other.families = (families[int(self.numbers[0])],)
        other._last = None
        other.lower, other.upper = other.family.limits(self.points)
        return other

    def on_values(self, family: Family) -> Self:
        """The same scan for a family whose coefficients are others, and whose limits are the same."""
        other = copy.copy(self)
        other.families, other._matrix, other._last = (family,), None, None
        return other

    def rows(self, members: IntArray, points: FloatArray) -> RowBlock:
        return self.family.block(points)

    def beginning(self) -> tuple[IntArray, FloatArray]:
        """A few spread points of the scan."""
        wanted = min(len(self.points), 16 * self.family.domain.dimension)
        chosen = np.unique(np.linspace(0, len(self.points) - 1, wanted).astype(int))
        return np.zeros(len(chosen), dtype=np.int64), self.points[chosen]

    def examples(self, most: int) -> tuple[IntArray, RowBlock]:
        return examples_at(self.family, self.points, most)

    def distinct(self, points: FloatArray) -> IntArray:
        return apart(points / self.family.domain.width, 1e-7)

    @property
    def memory(self) -> int:
        """Bytes held for the scan."""
        return self.points.nbytes + self.neighbours.nbytes + (0 if self._matrix is None else self._matrix.nbytes)

    def _scan(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Excess at the scan points, and the size of the row at most of them."""
        if self._cacheable and self._matrix is None:
            self._matrix = self.family.matrix(self.points)
        activity = self._activity(x) if self._matrix is None else self._matrix @ x[self.family.rows.columns]
        sizes = violation_scale(activity, np.zeros(len(activity)), self.lower, self.upper)
        return excess_of(activity, self.lower, self.upper), float(np.median(sizes))

    def _activity(self, x: FloatArray) -> FloatArray:
        """Value of the row at the scan points; from the last one, where few of very many columns have changed."""
        change, known, updates = x, None, 0
        if self._last is not None and self._last[2] < _UPDATES:
            moved = x - self._last[0]
            if np.count_nonzero(moved) < 0.5 * np.count_nonzero(x):
                change, known, updates = moved, self._last[1], self._last[2] + 1
        activity = self.family.used_by(change).activity(self.points, change)
        if known is not None:
            activity += known
        self._last = x.copy(), activity, updates
        return activity

    def _found(self, points: FloatArray, excess: FloatArray, typical: float, x: FloatArray) -> Violations:
        scale = np.maximum(self.family.used_by(x).scale(points, x), SCALE_FLOOR * typical)
        return Violations(points, excess, scale, typical, np.zeros(len(points), dtype=np.int64))


class FiniteSearch(ScanSearch):
    """Separation over the points of a grid, and no others."""

    covers_continuum = False

    def worst(self, x: FloatArray) -> Violations:
        excess, typical = self._scan(x)
        # Points of a grid are not polished, so that there is no need to spare them.
        peaks = local_maxima(excess, self.neighbours)[: CANDIDATES["interval"]]
        return self._found(self.points[peaks], excess[peaks], typical, x)


class ContinuumSearch(ScanSearch):
    """Separation over every point of the domain, by a scan and local search from its peaks."""

    def __init__(self, family: Family, number: int = 0) -> None:
        columns = len(family.rows.columns) if family.route == "traced" else _INTERVAL_BUDGET
        super().__init__(family, scan_points(family.domain, columns, family.user_domain), number)

    @property
    def _candidates(self) -> int:
        if self.family.route == "sampled":
            return CANDIDATES["sampled"]
        return CANDIDATES["interval" if self.family.domain.dimension == 1 else "box"]

    def learn(self, member: int, points: FloatArray) -> bool:
        """Put points into the scan, so that what lies between its own points is not missed again."""
        self._lay(np.concatenate([self.points, points]))
        return True

    def worst(self, x: FloatArray) -> Violations:
        """Scan the excess, and polish the peaks that are highest or may rise most to local maxima."""
        excess, typical = self._scan(x)
        peaks = local_maxima(excess, self.neighbours)
        # Between scan points a smooth row rises above its peak by less than it falls to the neighbours.
        rise = np.abs(excess[peaks, None] - excess[self.neighbours[peaks]]).max(axis=1)
        promising = excess[peaks] + rise > 0
        promising[:8] = True
        # Half of the places go to the highest peaks, half to those that may rise most between the scan points.
        peaks, rise = peaks[promising], rise[promising]
        half = self._candidates // 2
        rising = half + np.argsort(-(excess[peaks] + rise)[half:], kind="stable")
        peaks = np.concatenate([peaks[:half], peaks[rising][:half]])
        starts, values = self.points[peaks], excess[peaks]

        family = self.family.used_by(x)

        def function(at: FloatArray) -> FloatArray:
            return family.excess(at, x)

        if self.family.domain.dimension >= 3 and self.family.route == "traced":
            swept, swept_values = sweep(function, self.family.domain, starts, values)
            starts, values = np.concatenate([starts, swept]), np.concatenate([values, swept_values])
        points, values = polish(
            function,
            self.family.domain,
            starts,
            values,
            step=0.5 / len(self.points) ** (1 / self.family.domain.dimension),
            flat=1e-15 * np.maximum(family.scale(starts, x), SCALE_FLOOR * typical),
        )
        order = np.argsort(-values, kind="stable")
        points, values = points[order], values[order]
        kept = apart(points / self.family.domain.width, 1e-8)
        return self._found(points[kept], values[kept], typical, x)


def scan_points(domain: Domain, columns: int, declared: Domain | None = None) -> FloatArray:
    """Points of a scan: a tensor grid with the box's ends, Sobol points, and the domain's marks.

    An interval is scanned more finely where there are few columns to evaluate. Where there are no points, the message
    speaks of the domain as ``declared``.
    """
    if domain.body is not None:
        return domain.body.filled(_FEWEST)
    dimension = domain.dimension
    if dimension == 1:
        along, cloud = int(np.clip(_INTERVAL_BUDGET // max(1, columns), _FEWEST, _MOST)) + 1, 0
    else:
        along, cloud = _SCAN.get(dimension, (2 if dimension <= _CORNERS else 1, 4096))
    unit = [tensor_points([np.linspace(0, 1, along)] * dimension)] if along > 1 else []
    if cloud:
        unit.append(sobol_points(cloud, dimension))
    points = np.concatenate(unit)
    points = domain.lower * (1 - points) + domain.upper * points
    if dimension == 1 and len(domain.marks[0]):
        points = np.unique(np.concatenate([points[:, 0], domain.marks[0]]))[:, None]
        points = points[(points[:, 0] >= domain.lower[0]) & (points[:, 0] <= domain.upper[0])]
    elif any(len(marks) for marks in domain.marks) and np.prod([len(m) or 3 for m in domain.marks]) <= 20_000:
        axes = [
            marks[(marks >= low) & (marks <= high)] if len(marks) else np.linspace(low, high, 3)
            for marks, low, high in zip(domain.marks, domain.lower, domain.upper, strict=True)
        ]
        points = np.concatenate([points, tensor_points(axes)])
    if domain.inside is not None:
        points = points[domain.inside(points)]
        if len(points) < 16:
            # A small or thin set: look for it with many more points, which costs no coefficients.
            more = domain.lower + sobol_points(2**18, dimension, seed=0) * domain.width
            if dimension == 1:
                # An end may stand for infinity: then what lies far out is very near to it.
                near = domain.width * 10.0 ** -np.linspace(3, 16, 512)[:, None]
                more = np.concatenate([more, domain.lower + near, domain.upper - near])
            points = np.concatenate([points, more[domain.inside(more)][:4096]])
    if not len(points):
        raise DomainError(
            f"Index {declared or domain}: no point was found where the 'where' condition is true; a set without "
            "interior needs other coordinates, an empty one no constraint."
        )
    return points


def neighbours(points: FloatArray, domain: Domain) -> IntArray:
    """For each point the numbers of the points around it, an array (m, k)."""
    count = len(points)
    if count == 1:
        return np.zeros((1, 1), dtype=np.int64)
    if domain.dimension == 1:
        order = np.argsort(points[:, 0], kind="stable")
        result = np.empty((count, 2), dtype=np.int64)
        result[order, 0] = np.concatenate([order[:1], order[:-1]])
        result[order, 1] = np.concatenate([order[1:], order[-1:]])
        return result
    wanted = min(count, _NEIGHBOURS.get(domain.dimension, 30) + 1)
    unit = (points - domain.lower) / domain.width
    return _nearest(unit.round(12).tobytes(), domain.dimension, wanted)


@lru_cache(maxsize=8)
def _nearest(unit: bytes, dimension: int, wanted: int) -> IntArray:
    """For each point the nearest others; families over boxes of one shape are scanned at the same points of it."""
    points = np.frombuffer(unit).reshape(-1, dimension)
    _, found = cKDTree(points).query(points, k=wanted)
    return np.asarray(found, dtype=np.int64)[:, 1:]


def local_maxima(values: FloatArray, around: IntArray) -> IntArray:
    """Numbers of the points not lower than any of their neighbours, highest first."""
    peaks = np.flatnonzero(values >= values[around].max(axis=1))
    return peaks[np.argsort(-values[peaks], kind="stable")]


def apart(unit: FloatArray, distance: float, most: int | None = None) -> IntArray:
    """Numbers of the points that are not within ``distance`` of an earlier one; the first ``most`` of them."""
    kept: list[int] = []
    left = np.arange(len(unit))
    while len(left) and len(kept) != most:
        kept.append(int(left[0]))
        left = left[np.abs(unit[left] - unit[left[0]]).max(axis=1) > distance]
    return np.array(kept, dtype=np.int64)


def peaks_of(excess: FloatArray, least: float) -> IntArray:
    """Rows whose excess is above ``least`` and above that of the rows beside them, the highest first.

    Grid points stand in their order along an axis: neighbours of a peak would be rows that say the same.
    """
    inner = np.concatenate([[-np.inf], excess, [-np.inf]])
    found = np.flatnonzero((excess > least) & (excess >= inner[:-2]) & (excess >= inner[2:]))
    return found[np.argsort(-excess[found], kind="stable")]
