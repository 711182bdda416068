"""Random rows ``x >= f(u)`` with places where they may be highest: for proofs, and for proofs that must fail.

Each function is written once and computed twice, by Pyomo's functions and by numpy's, so that what is true of a row does
not come from the code that proves it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BudgetSet, CardinalitySet, EllipsoidalSet, PolyhedralSet
from pyomo.core.expr.numeric_expr import MinExpression
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

BODIES = ("ellipsoid", "axis-aligned", "polytope", "budget", "cardinality")
KINDS = ("smooth", "kinks", "jump", "ridge", "peak", "minimum", "where", "profile")


class _Pyomo:
    exp, sin, choose = pyo.exp, pyo.sin, staticmethod(pyo.Expr_if)
    smaller = staticmethod(lambda a, b: MinExpression((a, b)))


class _Numpy:
    exp, sin, choose, smaller = np.exp, np.sin, np.where, np.minimum


@dataclass(frozen=True)
class RandomRow:
    """A function ``f(by, u, curve)`` of some coordinates in [0, 1], a condition on them or None, and places (k, d).

    With a ``body``, an uncertainty set inside of the box, the coordinates are those of its vectors.
    """

    kind: str
    dimension: int
    function: Callable
    where: Callable | None
    places: np.ndarray
    knots: np.ndarray | None = None
    values: np.ndarray | None = None
    body: object = None

    def model(self):
        """The smallest x above the function."""
        m = pyo.ConcreteModel()
        if self.body is not None:
            m.x = pyo.Var()
            m.height = pyo.Objective(expr=m.x)
            m.above = osilp.SemiInfiniteConstraint(
                self.body, rule=lambda m, xi: m.x >= self.function(_Pyomo, tuple(xi), None)
            )
            return m
        for name in "uvwr"[: self.dimension]:
            m.add_component(name, ContinuousSet(bounds=(0, 1)))
        sets = [m.component(name) for name in "uvwr"[: self.dimension]]
        m.x = pyo.Var()
        curve = None
        if self.knots is not None:
            m.p = curve = osilp.Profile(over=m.u, points=self.knots, initialize=self.values)
        m.height = pyo.Objective(expr=m.x)
        where = None if self.where is None else lambda m, *u: self.where(u)
        m.above = osilp.SemiInfiniteConstraint(
            *sets, rule=lambda m, *u: m.x >= self.function(_Pyomo, u, curve), where=where
        )
        return m

    def highest(self, rng, count=20_000):
        """The largest value at many points: everywhere, and ever nearer to the places where it may be highest."""
        points = [rng.uniform(size=(count, self.dimension)), self.places]
        for width in 10.0 ** -np.arange(1, 10):
            moves = rng.normal(size=(len(self.places), 40, self.dimension)) * width
            points.append((self.places[:, None] + moves).reshape(-1, self.dimension))
        u = np.clip(np.concatenate(points), 0, 1).T
        values = self.function(_Numpy, u, lambda at: np.interp(at, self.knots, self.values))
        values = np.broadcast_to(values, u.shape[1])
        return float(values[self.where(u)].max() if self.where is not None else values.max())


def _dot(weights, u):
    return sum(float(weight) * each for weight, each in zip(weights, u, strict=True))


def random_row(kind, dimension, rng):
    """A row of some kind in some dimensions."""
    top = rng.uniform(0.05, 0.95, dimension)
    slope, other = rng.normal(size=(2, dimension))
    bend = rng.uniform(0.1, 3, dimension)
    waves = rng.uniform(1, 6, dimension)
    phase = rng.uniform(0, 6)

    def cap(u, centre=top, weights=bend):
        return -sum(float(w) * (each - float(c)) ** 2 for w, each, c in zip(weights, u, centre, strict=True))

    def hills(by, u):
        return by.sin(_dot(waves, u) + phase)

    places, where, knots, values = [top], None, None, None
    if kind == "smooth":
        width = float(rng.uniform(0.1, 0.6))
        inner = rng.uniform(size=dimension)

        def function(by, u, curve):
            return 0.4 * hills(by, u) + by.exp(cap(u, inner, bend / width**2)) + 0.3 * _dot(slope, u)

        places.append(inner)
    elif kind == "kinks":

        def function(by, u, curve):
            return (
                cap(u)
                - abs(_dot(slope, u) - _dot(slope, top))
                - 0.5 * abs(_dot(other, u) - _dot(other, top))
                + 0.1 * _dot(other, u)
            )

    elif kind == "jump":
        height, tilt = float(rng.uniform(0.2, 1)), float(rng.uniform(0, 1.2))

        def function(by, u, curve):
            gap = _dot(slope, u) - float(slope @ top)
            return by.choose(gap <= 0, height, 0.0) + tilt * gap + cap(u)

    elif kind == "ridge":
        steep = float(rng.uniform(1, 20))

        def function(by, u, curve):
            gap = u[-1] - 0.5 - 0.3 * by.sin(3 * _dot(waves[:-1], u[:-1])) if dimension > 1 else u[0] - float(top[0])
            return -steep * abs(gap) + cap(u) + 0.2 * hills(by, u)

    elif kind == "peak":
        width = 10.0 ** -float(rng.uniform(3, 7))

        def function(by, u, curve):
            return 0.3 * hills(by, u) + by.exp(cap(u, top, np.full(dimension, 1 / width**2)))

    elif kind == "minimum":

        def function(by, u, curve):
            return by.smaller(
                _dot(slope, u) - float(slope @ top) + cap(u), 0.3 * hills(by, u) - _dot(other, u) + float(other @ top)
            )

    elif kind == "where":
        reach = float(rng.uniform(0.1, 0.4))
        cut = float(slope @ top) + 0.1

        def where(u):
            return (-cap(u, top, np.ones(dimension)) <= reach**2) & (_dot(slope, u) <= cut)

        def function(by, u, curve):
            return _dot(other, u) + 0.3 * hills(by, u)

        places += [top + reach * other / np.linalg.norm(other)]
    else:
        knots = np.unique(np.concatenate([[0, 1], rng.uniform(size=int(rng.integers(3, 30)))]))
        values = rng.normal(size=len(knots))
        inner = np.full((len(knots), dimension), top)
        inner[:, 0] = knots
        places += list(inner)

        def function(by, u, curve):
            return curve(u[0]) + 0.5 * hills(by, u) + cap(u)

    return RandomRow(kind, dimension, function, where, np.array(places), knots, values)


def random_body(kind, dimension, rng):
    """An uncertainty set inside of the unit box, which of the points (n, d) given lie in it, and a vector in it."""
    centre = rng.uniform(0.4, 0.6, dimension)
    if kind == "ellipsoid":
        turned = rng.normal(size=(dimension, dimension))
        shape = turned @ turned.T + 0.1 * np.eye(dimension)
        shape *= 0.16 / np.diag(shape).max()
        inverse = np.linalg.inv(shape)
        return (
            EllipsoidalSet(centre, shape),
            lambda u: np.einsum("ni,ij,nj->n", u - centre, inverse, u - centre) <= 1,
            centre,
        )
    if kind == "axis-aligned":
        radii = rng.uniform(0.1, 0.4, dimension)
        return (
            AxisAlignedEllipsoidalSet(centre, radii),
            lambda u: ((u - centre) ** 2 / radii**2).sum(axis=1) <= 1,
            centre,
        )
    if kind == "polytope":
        sides = rng.normal(size=(dimension + 1, dimension))
        rows = np.concatenate([np.eye(dimension), -np.eye(dimension), sides])
        limits = np.concatenate(
            [np.ones(dimension), np.zeros(dimension), sides @ centre + rng.uniform(0.1, 0.3, dimension + 1)]
        )
        return PolyhedralSet(rows, limits), lambda u: (u @ rows.T <= limits).all(axis=1), centre
    if kind == "budget":
        most = float(rng.uniform(0.4, 0.8)) * dimension
        return (
            BudgetSet(np.ones((1, dimension)), [most], np.zeros(dimension)),
            lambda u: (u >= 0).all(axis=1) & (u.sum(axis=1) <= most),
            np.full(dimension, 0.3),
        )
    reach, gamma = rng.uniform(0.2, 0.35, dimension), float(rng.uniform(0.5, 0.9)) * dimension
    return (
        CardinalitySet(centre, reach, gamma),
        lambda u: (
            (u >= centre).all(axis=1)
            & (u <= centre + reach).all(axis=1)
            & (((u - centre) / reach).sum(axis=1) <= gamma)
        ),
        centre + 0.3 * reach,
    )


def random_row_over_body(kind, body_kind, dimension, rng):
    """A row of some kind over an uncertainty set, and the largest value known of it."""
    row = random_row(kind, dimension, rng)
    body, inside, inner = random_body(body_kind, dimension, rng)
    row = replace(row, body=body)
    points = np.concatenate([rng.uniform(-0.2, 1.2, (20_000, dimension)), row.places])
    # From a point inside towards each of them, as far as the set reaches.
    low, high = np.zeros(len(points)), np.ones(len(points))
    for _ in range(50):
        middle = (low + high) / 2
        within = inside(inner + middle[:, None] * (points - inner))
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    reached = np.concatenate([inner + low[:, None] * (points - inner), points[inside(points)]])
    for width in 10.0 ** -np.arange(2, 9):
        best = reached[np.argsort(-row.function(_Numpy, reached.T, None))[:20]]
        near = (best[:, None] + rng.normal(size=(20, 60, dimension)) * width).reshape(-1, dimension)
        reached = np.concatenate([best, near[inside(near)]])
    return row, float(row.function(_Numpy, reached.T, None).max())
