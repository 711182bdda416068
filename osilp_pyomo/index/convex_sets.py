"""Sets of uncertain vectors: their farthest points in given directions, their members, and their descriptions.

What a robust row needs of a set is its support function: where is ``c @ xi`` largest? Most sets of the field answer
in closed form, and for many directions at once; for the rest :mod:`osilp_pyomo.index.lp_sets` asks HiGHS.

Every convex set also has a :class:`~osilp_pyomo.index.extended_form.Lift`, its description by linear rows and balls
in coordinates of its own. It is what counterparts, intersections and local searches work with, and what the closed
forms are tested against.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DomainError
from osilp_pyomo.index.enclosures.regions import ConvexRegion, Region
from osilp_pyomo.index.extended_form import Ball, Lift, product_lift
from osilp_pyomo.index.sobol import sobol_points

# Extreme points that a cloud has at most, where each costs a program.
_DRAWN = {"linear program": 256, "convex program": 8, "search": 8}
# How far members that count as nearby are from each other, where a set is curved between them, and where it is not.
_NEARBY_ON_BALL, _NEARBY = 1e-6, 1e-8
# Members of which some are others that a point can be moved towards.
_OTHERS = 128
# What a member of a set may miss of its rows, relative to their size.
MEMBERSHIP = 1e-8


# Rows by which a set is told over boxes.
_MOST_ROWS = 64


class Body(ABC):
    """A set of vectors of one dimension.

    Attributes
    ----------
    dimension : int
    lower, upper : arrays
        A box around it, the smallest one unless that would cost many cone programs.
    separation : str
        How its farthest points are found: "closed form", "linear program", "enumeration", or "convex program".
    """

    dimension: int
    lower: FloatArray
    upper: FloatArray
    separation: str = "closed form"
    convex: bool = True

    @abstractmethod
    def support(self, directions: FloatArray) -> FloatArray:
        """For each direction (k, d) a point of the set where ``direction @ xi`` is largest, an array (k, d)."""

    @abstractmethod
    def contains(self, points: FloatArray) -> BoolArray:
        """Tell which of the points (m, d) belong to the set, up to rounding."""

    def brought_in(self, points: FloatArray) -> FloatArray:
        """Points (m, d) of the set, moved by what a solver leaves of its borders, where that is known.

        A row of small numbers would be blamed for what a point lies outside by, be it a billionth.
        """
        return points

    @abstractmethod
    def lift(self) -> Lift:
        """Its description by linear rows, balls and other cones; a set that is not convex has none."""

    def region(self) -> Region | None:
        """What is known of it over boxes; None where that would need coordinates of its own."""
        return ConvexRegion.of_lift(self.lift()) if self.convex else None

    @abstractmethod
    def __str__(self) -> str: ...

    @cached_property
    def centre(self) -> FloatArray:
        """A point of the set in the middle of its extreme points along the axes."""
        axes = np.concatenate([np.eye(self.dimension), -np.eye(self.dimension)])
        return self.support(axes).mean(axis=0)

    @cached_property
    def _clouds(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    def cloud(self, count: int, seed: int = 0) -> FloatArray:
        """Points spread over the set: extreme points in random directions, and mixtures of them."""
        if (count, seed) not in self._clouds:
            self._clouds[count, seed] = self._drawn(count, seed)
        return self._clouds[count, seed]

    def _drawn(self, count: int, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        half = max(1, min(count // 2, _DRAWN.get(self.separation, count)))
        width = np.where(self.upper > self.lower, self.upper - self.lower, 1.0)
        extreme = self._extremes(half, seed) if self.separation in _DRAWN else None
        if extreme is None:
            extreme = self.support(rng.normal(size=(half, self.dimension)) / width)
        if not self.convex:
            return np.unique(extreme, axis=0)
        # Few points in a mixture, so that it is not always near the middle.
        chosen = rng.integers(half, size=(max(1, count - half - 1), 3))
        weights = rng.dirichlet(np.full(3, 0.6), size=len(chosen))
        mixed = np.einsum("mk,mkd->md", weights, extreme[chosen])
        return np.concatenate([self.centre[None], extreme, mixed])

    def _extremes(self, count: int, seed: int) -> FloatArray:
        """Farthest points in random directions, where each costs a program: clouds of one seed share theirs."""
        known = self._farthest.get(seed % 2, np.empty((0, self.dimension)))
        if len(known) < count:
            width = np.where(self.upper > self.lower, self.upper - self.lower, 1.0)
            drawn = np.random.default_rng(seed % 2).normal(size=(count, self.dimension)) / width
            known = self._farthest[seed % 2] = np.concatenate([known, self.support(drawn[len(known) :])])
        return known[:count]

    @cached_property
    def _farthest(self) -> dict[int, FloatArray]:
        return {}

    def nearby(self, point: FloatArray) -> FloatArray:
        """Members a little to all sides of one, as far as there are: here towards other members."""
        return point + _NEARBY * (self.cloud(_OTHERS, seed=1)[: 2 * self.dimension + 2] - point)

    def filled(self, count: int) -> FloatArray:
        """Points for a scan: a cloud, and in few dimensions the Sobol points around the set that lie in it."""
        cloud = self.cloud(count)
        if not self.convex or self.dimension > 4:
            return cloud
        unit = sobol_points(4 * count, self.dimension)
        box = self.lower + unit * (self.upper - self.lower)
        return np.concatenate([cloud, box[self.contains(box)][:count]])


def _fits(excess: FloatArray, size: FloatArray | float) -> BoolArray:
    return excess <= MEMBERSHIP * np.maximum(1.0, size)


@dataclass(eq=False)
class BoxBody(Body):
    """``lower <= xi <= upper``; sides may be equal.

    Examples
    --------
    >>> BoxBody(np.array([0.0, 0.0]), np.array([1.0, 2.0])).support(np.array([[1.0, -1.0]]))
    array([[1., 0.]])
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        self.dimension = len(self.lower)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.where(directions > 0, self.upper, np.where(directions < 0, self.lower, self.centre))

    @cached_property
    def centre(self) -> FloatArray:
        return (self.lower + self.upper) / 2

    def contains(self, points: FloatArray) -> BoolArray:
        excess = np.maximum(points - self.upper, self.lower - points)
        return np.all(_fits(excess, np.maximum(np.abs(self.lower), np.abs(self.upper))), axis=1)

    def nearby(self, point: FloatArray) -> FloatArray:
        moves = np.diag(_NEARBY_ON_BALL * (self.upper - self.lower))
        return np.clip(point + np.concatenate([moves, -moves]), self.lower, self.upper)

    def lift(self) -> Lift:
        return Lift.plain(self.dimension, lower=self.lower, upper=self.upper)

    def __str__(self) -> str:
        return f"a box of dimension {self.dimension}"


@dataclass(eq=False)
class CardinalityBody(Body):
    """``origin + positive * a - negative * b`` with a, b in [0, 1] and ``sum(a + b) <= gamma``.

    The farthest point takes the deviations that gain most, the last one in part (Bertsimas and Sim, 2004).

    Examples
    --------
    >>> body = CardinalityBody(np.zeros(3), np.ones(3), np.ones(3), 1.5)
    >>> body.support(np.array([[3.0, -2.0, 1.0]]))
    array([[ 1. , -0.5,  0. ]])
    """

    origin: FloatArray
    positive: FloatArray
    negative: FloatArray
    gamma: float

    def __post_init__(self) -> None:
        self.dimension = len(self.origin)
        share = min(1.0, self.gamma)
        self.lower = self.origin - share * self.negative
        self.upper = self.origin + share * self.positive

    def support(self, directions: FloatArray) -> FloatArray:
        deviation = np.where(directions > 0, self.positive, -self.negative)
        gain = directions * deviation
        shares = np.clip(self.gamma - np.arange(self.dimension), 0.0, 1.0)
        taken = np.empty_like(gain)
        np.put_along_axis(taken, np.argsort(-gain, axis=1, kind="stable"), np.broadcast_to(shares, gain.shape), axis=1)
        return self.origin + np.where(gain > 0, taken * deviation, 0.0)

    @cached_property
    def centre(self) -> FloatArray:
        return self.origin

    def contains(self, points: FloatArray) -> BoolArray:
        moved = points - self.origin
        allowed = np.where(moved > 0, self.positive, self.negative)
        within = _fits(np.abs(moved) - allowed, np.abs(self.origin) + allowed)
        shares = np.abs(moved) / np.where(allowed > 0, allowed, np.inf)
        return np.all(within, axis=1) & _fits(shares.sum(axis=1) - self.gamma, self.gamma)

    def lift(self) -> Lift:
        return Lift.plain(
            2 * self.dimension,
            lower=0.0,
            upper=np.concatenate([self.positive > 0, self.negative > 0]).astype(float),
            rows=np.ones((1, 2 * self.dimension)),
            row_upper=self.gamma,
            offset=self.origin.astype(float),
            matrix=np.column_stack([np.diag(self.positive), -np.diag(self.negative)]),
        )

    def __str__(self) -> str:
        return f"a cardinality set of dimension {self.dimension} with gamma = {self.gamma:g}"

    def region(self) -> Region | None:
        """Its bounds, and one row for each choice of the sides on which the coordinates deviate."""
        sides = [
            [side / size for side, size in ((1.0, up), (-1.0, down)) if size > 0] or [0.0]
            for up, down in zip(self.positive, self.negative, strict=True)
        ]
        if math.prod(map(len, sides)) > _MOST_ROWS:
            return None
        choices = np.array(list(product(*sides)))
        axes = np.eye(self.dimension)
        rows = np.concatenate([axes, -axes, choices])
        return ConvexRegion(rows, np.concatenate([self.upper, -self.lower, self.gamma + choices @ self.origin]))


@dataclass(eq=False)
class BudgetBody(Body):
    """``xi >= origin`` and ``membership @ (xi - origin) <= budget``, where any two budgets are nested or disjoint.

    Such budgets make a polymatroid, on which the greedy point is optimal (Edmonds, 1970): coordinates by decreasing
    gain, each as far as its budgets still allow.

    Examples
    --------
    >>> body = BudgetBody(np.zeros(2), np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
    >>> body.support(np.array([[2.0, 1.0]]))
    array([[2., 1.]])
    """

    origin: FloatArray
    membership: FloatArray
    budget: FloatArray

    def __post_init__(self) -> None:
        self.dimension = len(self.origin)
        self.lower = self.origin
        self.upper = self.origin + np.where(self.membership.T > 0, self.budget, np.inf).min(axis=1)

    @staticmethod
    def nested(membership: FloatArray) -> bool:
        """Whether any two budgets are nested or disjoint."""
        common = membership @ membership.T
        own = np.diag(common)
        return bool(np.all((common == 0) | (common == own[:, None]) | (common == own[None, :])))

    def support(self, directions: FloatArray) -> FloatArray:
        left = np.tile(self.budget.astype(float), (len(directions), 1))
        moved = np.zeros(directions.shape)
        line = np.arange(len(directions))
        for axis in np.argsort(-directions, axis=1, kind="stable").T:
            members = self.membership.T[axis] > 0
            amount = np.where(members, left, np.inf).min(axis=1)
            amount = np.where(directions[line, axis] > 0, amount, 0.0)
            moved[line, axis] = amount
            left -= np.where(members, amount[:, None], 0.0)
        return self.origin + moved

    def contains(self, points: FloatArray) -> BoolArray:
        moved = points - self.origin
        above = np.all(_fits(-moved, np.abs(self.origin)), axis=1)
        return above & np.all(_fits(moved @ self.membership.T - self.budget, np.abs(self.budget)), axis=1)

    def lift(self) -> Lift:
        return Lift.plain(
            self.dimension,
            lower=0.0,
            rows=self.membership.astype(float),
            row_upper=self.budget,
            offset=self.origin.astype(float),
            known_largest=self.upper - self.lower,
        )

    def __str__(self) -> str:
        return f"a budget set of dimension {self.dimension} with {len(self.budget)} budgets"


@dataclass(eq=False)
class FactorBody(Body):
    """``origin + loadings @ z`` with z in [-1, 1]^F and ``|sum(z)| <= limit``.

    Unless all signs fit the limit, the farthest point has z = 1 where the gain is highest, -1 where it is lowest and
    one coordinate between.

    Examples
    --------
    >>> body = FactorBody(np.zeros(2), np.eye(2), 0.5)
    >>> body.support(np.array([[2.0, 1.0]]))
    array([[ 1. , -0.5]])
    """

    origin: FloatArray
    loadings: FloatArray
    limit: float

    def __post_init__(self) -> None:
        self.dimension = len(self.origin)
        axes = np.eye(self.dimension)
        self.upper = np.diagonal(self.support(axes)).copy()
        self.lower = np.diagonal(self.support(-axes)).copy()

    def support(self, directions: FloatArray) -> FloatArray:
        gain = directions @ self.loadings
        factors = gain.shape[1]
        free = np.sign(gain)
        total = free.sum(axis=1)
        ones = (factors + np.sign(total) * self.limit) / 2
        shares = 2 * np.clip(ones[:, None] - np.arange(factors), 0.0, 1.0) - 1
        tied = np.empty_like(gain)
        np.put_along_axis(tied, np.argsort(-gain, axis=1, kind="stable"), shares, axis=1)
        z = np.where((np.abs(total) <= self.limit)[:, None], free, tied)
        return self.origin + z @ self.loadings.T

    @cached_property
    def centre(self) -> FloatArray:
        return self.origin

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self.loadings), dtype=np.float64)

    def contains(self, points: FloatArray) -> BoolArray:
        moved = points - self.origin
        z = moved @ self._inverse.T
        on_plane = _fits(np.abs(z @ self.loadings.T - moved).max(axis=1), np.abs(points).max(axis=1))
        within = np.all(_fits(np.abs(z) - 1.0, 1.0), axis=1)
        return on_plane & within & _fits(np.abs(z.sum(axis=1)) - self.limit, self.limit)

    def lift(self) -> Lift:
        factors = self.loadings.shape[1]
        return Lift.plain(
            factors,
            lower=-1.0,
            upper=1.0,
            rows=np.ones((1, factors)),
            row_lower=-self.limit,
            row_upper=self.limit,
            offset=self.origin.astype(float),
            matrix=self.loadings.astype(float),
        )

    def __str__(self) -> str:
        return f"a factor model of dimension {self.dimension} with {self.loadings.shape[1]} factors"


@dataclass(eq=False)
class EllipsoidBody(Body):
    """``centre + axes @ z`` with ``|z| <= 1``; fewer axes than dimensions make it flat.

    Examples
    --------
    >>> EllipsoidBody(np.zeros(2), np.diag([1.0, 2.0])).support(np.array([[0.0, 1.0]]))
    array([[0., 2.]])
    """

    middle: FloatArray
    axes: FloatArray

    def __post_init__(self) -> None:
        self.dimension = len(self.middle)
        reach = np.linalg.norm(self.axes, axis=1)
        self.lower, self.upper = self.middle - reach, self.middle + reach

    def support(self, directions: FloatArray) -> FloatArray:
        gain = directions @ self.axes
        length = np.linalg.norm(gain, axis=1, keepdims=True)
        z = np.divide(gain, length, out=np.zeros_like(gain), where=length > 0)
        return self.middle + z @ self.axes.T

    @cached_property
    def centre(self) -> FloatArray:
        return self.middle

    @cached_property
    def _inverse(self) -> FloatArray:
        lengths = np.diagonal(self.axes)
        if self.axes.shape[0] == len(lengths) == np.count_nonzero(self.axes) and lengths.all():
            # Along the axes, as balls are: hundreds of dimensions need no factorization.
            return np.diag(1.0 / lengths)
        return np.asarray(np.linalg.pinv(self.axes), dtype=np.float64)

    def contains(self, points: FloatArray) -> BoolArray:
        moved = points - self.middle
        z = moved @ self._inverse.T
        on_plane = _fits(np.abs(z @ self.axes.T - moved).max(axis=1), np.abs(points).max(axis=1))
        return on_plane & _fits(np.linalg.norm(z, axis=1) - 1.0, 1.0)

    def nearby(self, point: FloatArray) -> FloatArray:
        z = self._inverse @ (point - self.middle)
        moves = _NEARBY_ON_BALL * np.eye(len(z))
        moved = np.concatenate([z + moves, z - moves])
        # Back onto the ball where a move has left it.
        moved /= np.maximum(1.0, np.linalg.norm(moved, axis=1, keepdims=True))
        return self.middle + moved @ self.axes.T

    def lift(self) -> Lift:
        count = self.axes.shape[1]
        balls = (Ball(np.eye(count), np.zeros(count)),) if count else ()
        return Lift.plain(
            count, lower=-1.0, upper=1.0, offset=self.middle.astype(float), matrix=self.axes.astype(float), balls=balls
        )

    def __str__(self) -> str:
        return f"an ellipsoid of dimension {self.dimension}"


@dataclass(eq=False)
class ScenarioBody(Body):
    """Finitely many vectors.

    Examples
    --------
    >>> ScenarioBody(np.array([[0.0, 1.0], [1.0, 0.0]])).support(np.array([[2.0, 1.0]]))
    array([[1., 0.]])
    """

    scenarios: FloatArray
    separation: str = field(default="enumeration", init=False)
    convex: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.dimension = self.scenarios.shape[1]
        self.lower, self.upper = self.scenarios.min(axis=0), self.scenarios.max(axis=0)

    def support(self, directions: FloatArray) -> FloatArray:
        return self.scenarios[np.argmax(directions @ self.scenarios.T, axis=1)]

    @cached_property
    def centre(self) -> FloatArray:
        """The scenario nearest to the mean."""
        width = np.where(self.upper > self.lower, self.upper - self.lower, 1.0)
        distance = np.abs((self.scenarios - self.scenarios.mean(axis=0)) / width).sum(axis=1)
        nearest: FloatArray = self.scenarios[np.argmin(distance)]
        return nearest

    def contains(self, points: FloatArray) -> BoolArray:
        near = [np.abs(self.scenarios - point).max(axis=1).min() for point in points]
        return _fits(np.array(near), np.abs(self.scenarios).max(initial=0.0))

    def lift(self) -> Lift:
        raise DomainError(f"{self} is not convex and has no description by rows.")

    def __str__(self) -> str:
        return f"{len(self.scenarios)} scenarios of dimension {self.dimension}"


@dataclass(eq=False)
class ProductBody(Body):
    """Every combination of members of its parts.

    Examples
    --------
    >>> interval = BoxBody(np.zeros(1), np.ones(1))
    >>> ProductBody((interval, EllipsoidBody(np.zeros(1), np.eye(1)))).support(np.array([[1.0, -1.0]]))
    array([[ 1., -1.]])
    """

    parts: tuple[Body, ...]

    def __post_init__(self) -> None:
        self.dimension = sum(part.dimension for part in self.parts)
        self.lower = np.concatenate([part.lower for part in self.parts])
        self.upper = np.concatenate([part.upper for part in self.parts])
        self.convex = all(part.convex for part in self.parts)

    @property
    def separation(self) -> str:  # type: ignore[override]
        """That of its parts as they are now: a cone program that could not be proved changes it."""
        ways = {way for part in self.parts for way in part.separation.split(" and ")}
        for alone in ("search", "convex program"):
            if alone in ways:
                return alone
        return " and ".join(sorted(ways))

    def _pieces(self, array: FloatArray) -> list[FloatArray]:
        ends = np.cumsum([part.dimension for part in self.parts])
        return np.split(array, ends[:-1], axis=-1)

    def support(self, directions: FloatArray) -> FloatArray:
        pieces = self._pieces(directions)
        return np.concatenate([part.support(piece) for part, piece in zip(self.parts, pieces, strict=True)], axis=1)

    @cached_property
    def centre(self) -> FloatArray:
        return np.concatenate([part.centre for part in self.parts])

    def contains(self, points: FloatArray) -> BoolArray:
        pieces = self._pieces(points)
        return np.all([part.contains(piece) for part, piece in zip(self.parts, pieces, strict=True)], axis=0)

    def lift(self) -> Lift:
        return product_lift([part.lift() for part in self.parts])

    def __str__(self) -> str:
        return f"the product of {' and '.join(str(part) for part in self.parts)}"
