"""Where rows come from: families and ordinary constraints at an x, as linear rows that touch them there.

A convex row ``g(x, u) <= 0`` is the family of linear rows ``g(y, u) + grad g(y, u)'(x - y) <= 0`` over all y, of which
one is made at each y that is met. With x fixed, g is a function of the index alone, and is searched, audited and proved
like the rows of a linear problem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.lp.finite import violation_scale
from osilp_pyomo.offline.curved.terms import CurvedTerm
from osilp_pyomo.offline.problem import Family, as_affine
from osilp_pyomo.offline.rows import TracedRows
from osilp_pyomo.offline.search.choose import searches_for
from osilp_pyomo.offline.search.scan import ContinuumSearch, Search, Violations

# A step of differences along the index, in widths of it, and dimensions of an index whose worst point is followed.
_STEP, _FOLLOWED = 1e-4, 3
# A maximum is strict where its second derivative is below minus this share of the largest one.
_STRICT = 1e-6


@dataclass(frozen=True, eq=False)
class Cuts:
    """Linear rows ``matrix @ x <= right`` at points of the index, and the sides (1 above, -1 below) they belong to."""

    matrix: FloatArray
    right: FloatArray
    points: FloatArray
    sides: FloatArray

    def __len__(self) -> int:
        return len(self.right)


class Source(ABC):
    """Rows of one kind."""

    name: str
    dimension: int
    #: Whether its rows may have kinks in x.
    kinked: bool

    @abstractmethod
    def worst(self, x: FloatArray) -> Violations:
        """Where x violates its rows most, or is nearest to."""

    @abstractmethod
    def cuts(self, x: FloatArray, points: FloatArray) -> Cuts:
        """Rows that touch its own at x, one at each point."""

    @abstractmethod
    def beginning(self) -> FloatArray:
        """Points to begin with."""

    @abstractmethod
    def hessian(self, x: FloatArray, points: FloatArray, masses: FloatArray) -> FloatArray:
        """What its rows at points, with these masses, add to the Hessian of the Lagrange function."""

    def followed(self, x: FloatArray, points: FloatArray, masses: FloatArray) -> FloatArray:
        """What the Hessian has more because the worst points move with x."""
        return np.zeros((len(x), len(x)))

    def turned(self, x: FloatArray, points: FloatArray) -> FloatArray:
        """How its rows change where points move along the index, by its widths (points, coordinates, columns)."""
        return np.zeros((len(points), 0, len(x)))

    def moved(self, points: FloatArray, shares: FloatArray) -> FloatArray:
        """Points moved by shares of the index's widths, as far as they stay in it."""
        return points


class OrdinaryRow(Source):
    """An ordinary constraint; its index is a single point without coordinates."""

    dimension = 0

    def __init__(self, name: str, term: CurvedTerm, linear: FloatArray, limit: float, side: float) -> None:
        self.name, self._term, self._linear, self._limit, self._side = name, term, linear, limit, side
        self.kinked = any(group.kinked for group in term.groups)

    def worst(self, x: FloatArray) -> Violations:
        value = self._term.values(x, np.zeros((1, 0))) + self._linear @ x
        limits = np.array([-np.inf]), np.array([self._limit])
        scale = violation_scale(self._side * value, np.abs(self._linear) @ np.abs(x) + np.abs(value), *limits)
        excess = self._side * (value - self._limit)
        return Violations(np.zeros((1, 0)), excess, scale, float(scale[0]), np.zeros(1, dtype=np.int64))

    def cuts(self, x: FloatArray, points: FloatArray) -> Cuts:
        value, gradient = self._term.linearised(x, np.zeros((1, 0)))
        row = np.zeros(len(x))
        row[self._term.columns] = gradient[0]
        right = self._side * (self._limit - value + row @ x)
        matrix, side = self._side * (row + self._linear)[None], np.array([self._side])
        # None where it is not among the rows that bind.
        count = len(points)
        return Cuts(matrix[:count], right[:count], points, side[:count])

    def beginning(self) -> FloatArray:
        return np.zeros((1, 0))

    def hessian(self, x: FloatArray, points: FloatArray, masses: FloatArray) -> FloatArray:
        result = np.zeros((len(x), len(x)))
        used = self._term.columns
        result[np.ix_(used, used)] = self._side * self._term.hessian(x, np.zeros((1, 0)), np.array([masses.sum()]))
        return result


class FamilyRows(Source):
    """The rows of one family, which has a convex term or is linear.

    ``first`` is a column beyond those of the problem: from there on stand the terms that are fixed at an x.
    """

    def __init__(self, family: Family, term: CurvedTerm | None, number: int, first: int) -> None:
        self.family, self.term, self.number, self._first = family, term, number, first
        self.name, self.dimension = family.name, family.domain.dimension
        self.kinked = term is not None and any(group.kinked for group in term.groups)
        self._search: Search | None = None
        self._last: tuple[bytes, Family, Search] | None = None

    def extended(self, x: FloatArray) -> FloatArray:
        """x, and ones for the terms that are fixed at it."""
        return np.concatenate([x, np.ones(0 if self.term is None else self.term.terms)])

    def fixed(self, x: FloatArray) -> tuple[Family, Search]:
        """The family as linear rows of the index at x, and its search; their variables are those of ``extended``."""
        if self.term is None:
            if self._search is None:
                self._search = self._searched(self.family)
            return self.family, self._search
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            family = self._family_at(x)
            if isinstance(self._search, ContinuumSearch):
                search: Search = self._search.on_values(family)
            else:
                family = as_affine(family)
                search = self._searched(family)
                self._search = search
            self._last = key, family, search
        return self._last[1], self._last[2]

    def _searched(self, family: Family) -> Search:
        (search,) = searches_for([family])
        search.numbers = np.array([self.number])
        return search

    def _family_at(self, x: FloatArray) -> Family:
        rows = self.family.rows
        assert isinstance(rows, TracedRows)
        assert self.term is not None
        fixed = TracedRows([*rows.groups, *self.term.fixed_at(x, self._first)], rows.lower, rows.upper)
        fixed.templates = ()
        names = [*self.family.column_names, *(text for group in self.term.groups for text in group.texts)]
        return replace(self.family, rows=fixed, curvature=None, column_names=names)

    def worst(self, x: FloatArray) -> Violations:
        _, search = self.fixed(x)
        return search.worst(self.extended(x))

    def learn(self, points: FloatArray) -> None:
        """Look at these points from now on."""
        if self._search is not None:
            self._search.learn(0, points)
            self._last = None

    def beginning(self) -> FloatArray:
        assert self._search is not None
        return self._search.beginning()[1]

    def cuts(self, x: FloatArray, points: FloatArray) -> Cuts:
        if not len(points):
            return Cuts(np.zeros((0, len(x))), np.zeros(0), points, np.zeros(0))
        lower, upper = self.family.limits(points)
        matrix = np.zeros((len(points), len(x)))
        if len(self.family.rows.columns):
            matrix[:, self.family.rows.columns] = self.family.matrix(points)
        activity, moved = matrix @ x, np.zeros(len(points))
        if self.term is not None:
            value, gradient = self.term.linearised(x, points)
            matrix[:, self.term.columns] += gradient
            activity, moved = activity + value, gradient @ x[self.term.columns] - value
        above = activity - upper >= lower - activity
        sides = np.where(above, 1.0, -1.0)
        return Cuts(sides[:, None] * matrix, sides * (np.where(above, upper, lower) + moved), points, sides)

    def hessian(self, x: FloatArray, points: FloatArray, masses: FloatArray) -> FloatArray:
        result = np.zeros((len(x), len(x)))
        if self.term is not None:
            side = 1.0 if self._upper else -1.0
            used = self.term.columns
            result[np.ix_(used, used)] = side * self.term.hessian(x, points, masses)
        return result

    @property
    def _upper(self) -> bool:
        return isinstance(self.family.rows, TracedRows) and self.family.rows.upper is not None

    def turned(self, x: FloatArray, points: FloatArray) -> FloatArray:
        domain = self.family.domain
        if domain.body is not None or self.dimension > _FOLLOWED or not len(points):
            return super().turned(x, points)
        step = np.diag(_STEP * domain.width)
        ends = [np.clip(points[:, None] + sign * step, domain.lower, domain.upper) for sign in (1.0, -1.0)]
        rows = [self.cuts(x, end.reshape(-1, self.dimension)).matrix.reshape(*end.shape[:2], -1) for end in ends]
        shares = np.abs(ends[0] - ends[1]).max(axis=2) / domain.width
        return (rows[0] - rows[1]) / shares[:, :, None]

    def moved(self, points: FloatArray, shares: FloatArray) -> FloatArray:
        domain = self.family.domain
        if not shares.size:
            return points
        tried = np.clip(points + shares * domain.width, domain.lower, domain.upper)
        return np.where(domain.contains(tried)[:, None], tried, points)

    def followed(self, x: FloatArray, points: FloatArray, masses: FloatArray) -> FloatArray:
        """``-g_xu inv(g_uu) g_ux`` at those points that are strict maxima inside of the domain."""
        domain, dimension, result = self.family.domain, self.dimension, np.zeros((len(x), len(x)))
        if domain.body is not None or dimension > _FOLLOWED or not len(points):
            return result
        step = np.diag(_STEP * domain.width)
        pairs = list(combinations(range(dimension), 2))
        moves = [np.zeros(dimension), *step, *-step]
        for i, j in pairs:
            moves += [step[i] + step[j], -step[i] - step[j]]
        around = points[:, None] + np.array(moves)
        flat = around.reshape(-1, dimension)
        inside = np.all((flat >= domain.lower) & (flat <= domain.upper), axis=1) & domain.contains(flat)
        kept = np.flatnonzero(inside.reshape(len(points), -1).all(axis=1))
        if not len(kept):
            return result
        cuts = self.cuts(x, around[kept].reshape(-1, dimension))
        rows = cuts.matrix.reshape(len(kept), len(moves), -1)
        values = (cuts.matrix @ x - cuts.right).reshape(len(kept), -1)
        sides = cuts.sides.reshape(len(kept), -1)
        for place, number in enumerate(kept.tolist()):
            if np.all(sides[place] == sides[place, 0]):
                result += masses[number] * _bent_by_moving(values[place], rows[place], np.diagonal(step), pairs)
        return result


def _bent_by_moving(
    values: FloatArray, rows: FloatArray, width: FloatArray, pairs: Sequence[tuple[int, int]]
) -> FloatArray:
    """``-g_xu inv(g_uu) g_ux`` from values and gradients around a maximum; zero where it is not a strict one."""
    dimension = len(width)
    bent = np.zeros((dimension, dimension))
    up, down = values[1 : dimension + 1], values[dimension + 1 : 2 * dimension + 1]
    bent[np.arange(dimension), np.arange(dimension)] = (up + down - 2 * values[0]) / width**2
    for k, (i, j) in enumerate(pairs):
        both = values[2 * dimension + 1 + 2 * k : 2 * dimension + 3 + 2 * k].sum()
        mixed = (both - up[i] - down[i] - up[j] - down[j] + 2 * values[0]) / (2 * width[i] * width[j])
        bent[i, j] = bent[j, i] = mixed
    slopes = (rows[1 : dimension + 1] - rows[dimension + 1 : 2 * dimension + 1]) / (2 * width[:, None])
    eigenvalues = np.linalg.eigvalsh(bent * np.outer(width, width))
    if not np.all(np.isfinite(eigenvalues)) or eigenvalues[-1] >= -_STRICT * max(1e-300, -eigenvalues[0]):
        return np.zeros((rows.shape[1],) * 2)
    result: FloatArray = -slopes.T @ np.linalg.solve(bent, slopes)
    return result


def near(found: Violations, margin: float, most: int) -> IntArray:
    """Which of some local maxima are violated or nearly so, the worst first, and at least the worst one."""
    wanted = np.flatnonzero(found.excess > -margin * np.maximum(found.scale, found.typical))
    return wanted[:most] if len(wanted) else np.zeros(1, dtype=np.int64)


def fixed_families(sources: Sequence[FamilyRows], x: FloatArray) -> tuple[tuple[Family, ...], list[Search], FloatArray]:
    """All families at x with their searches, and the values of their variables."""
    found = [source.fixed(x) for source in sources]
    longest = max((source.extended(x) for source in sources), key=len, default=x)
    return tuple(family for family, _ in found), [search for _, search in found], longest
