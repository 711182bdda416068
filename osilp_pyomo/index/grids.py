"""Grids: a finite set of points with quadrature weights that stands for a continuous index.

A grid object only stores what was asked for; ``grid.on(domain)`` gives the points. Weights sum to
the volume of the box (before ``where`` takes points away), so that ``sum(weights * h(points))``
approximates the integral of h and nothing depends on how many points there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DomainError, GridError
from osilp_pyomo.index.convex_sets import BoxBody
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.sobol import sobol_points


@dataclass(frozen=True, eq=False)
class GridPoints:
    """Points (m, d) of a domain with one quadrature weight each."""

    domain: Domain
    points: FloatArray
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.points)


class Grid(ABC):
    """What every grid can do: place points on a domain."""

    def on(self, domain: Domain) -> GridPoints:
        """Place the grid on a domain and drop the points that ``where`` excludes."""
        points, weights = self._lay(domain)
        if domain.inside is not None:
            kept = domain.inside(points)
            points, weights = points[kept], weights[kept]
        if not len(points):
            raise GridError(
                f"{self!r} on {domain}: no grid point is left ({_why_none(domain)}); use a finer grid, or give points "
                "of the set by Points(...)."
            )
        return GridPoints(domain, points, weights)

    @abstractmethod
    def _lay(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        """Points and weights on the whole box."""


@dataclass(frozen=True)
class _TensorGrid(Grid):
    """A rule along each axis, multiplied out.

    ``count`` is the number of points along each axis, or one number per axis.
    """

    count: int | Sequence[int]

    def __post_init__(self) -> None:
        counts = np.atleast_1d(np.asarray(self.count))
        if counts.size == 0 or counts.dtype.kind not in "iu" or np.any(counts < self._least):
            raise GridError(
                f"{type(self).__name__}: the number of points along an axis must be a whole number >= "
                f"{self._least} (got {self.count!r})."
            )

    _least = 1

    def _lay(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        _need_bounded(self, domain)
        counts = np.atleast_1d(np.asarray(self.count))
        if len(counts) == 1:
            counts = np.repeat(counts, domain.dimension)
        if len(counts) != domain.dimension:
            raise GridError(
                f"{self!r} on {domain}: give one number of points, or one for each of the "
                f"{domain.dimension} axes (got {len(counts)})."
            )
        axes, axis_weights = [], []
        for size, low, high in zip(counts, domain.lower, domain.upper, strict=True):
            nodes, weights = self._rule(int(size))
            # Written as a convex combination so that nodes 0 and 1 give the bounds exactly.
            axes.append(low * (1 - nodes) + high * nodes)
            axis_weights.append(weights * (high - low))
        return tensor_points(axes), np.prod(tensor_points(axis_weights), axis=1)

    @staticmethod
    @abstractmethod
    def _rule(size: int) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights of the one-dimensional rule on [0, 1]."""


class Midpoint(_TensorGrid):
    """Midpoints of equal cells: u_i = (i - 1/2)/m on [0, 1], the paper's grid.

    Parameters
    ----------
    count : int or list of int
        Points along each axis, or one number per axis.

    Examples
    --------
    >>> Midpoint(4).on(Domain.box(u=(0, 1))).points.ravel()
    array([0.125, 0.375, 0.625, 0.875])
    """

    @staticmethod
    def _rule(size: int) -> tuple[FloatArray, FloatArray]:
        return (np.arange(size) + 0.5) / size, np.full(size, 1.0 / size)


class GaussLegendre(_TensorGrid):
    """Gauss-Legendre points: exact for polynomials of degree 2 count - 1.

    Parameters
    ----------
    count : int or list of int
        Points along each axis, or one number per axis.

    Examples
    --------
    >>> placed = GaussLegendre(2).on(Domain.box(u=(0, 1)))
    >>> float(np.round(placed.weights @ placed.points[:, 0] ** 3, 12))
    0.25
    """

    @staticmethod
    def _rule(size: int) -> tuple[FloatArray, FloatArray]:
        nodes, weights = np.polynomial.legendre.leggauss(size)
        return (nodes + 1) / 2, weights / 2


class Chebyshev(_TensorGrid):
    """Chebyshev points of the second kind with Clenshaw-Curtis weights; both ends are points.

    Parameters
    ----------
    count : int or list of int
        Points along each axis, or one number per axis.

    Examples
    --------
    >>> Chebyshev(3).on(Domain.box(u=(0, 2))).points.ravel()
    array([0., 1., 2.])
    """

    _least = 2

    @staticmethod
    def _rule(size: int) -> tuple[FloatArray, FloatArray]:
        order = size - 1
        nodes = (1 - np.cos(np.pi * np.arange(size) / order)) / 2
        # Weights from the integrals of the Chebyshev polynomials T_0, T_2, ...: the cosine series of
        # each nodal polynomial is a row of this small matrix.
        even = np.arange(0, order + 1, 2)
        series = np.cos(np.outer(np.arange(size), even) * np.pi / order)
        series[:, even == 0] /= 2
        series[:, even == order] /= 2
        weights = (2.0 / order) * (series @ (2.0 / (1 - even**2.0))) / 2
        weights[[0, -1]] /= 2
        return nodes, weights


@dataclass(frozen=True)
class _CountedGrid(Grid):
    """So many points, by a generator with a seed."""

    count: int
    seed: int | None = 0

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int | np.integer) or self.count < 1:
            raise GridError(
                f"{type(self).__name__}: the number of points must be a whole number >= 1 (got {self.count!r})."
            )


class _CloudGrid(_CountedGrid):
    """``count`` points in the whole box, equal weights."""

    def _lay(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        _need_bounded(self, domain)
        points = domain.lower + self._unit(domain.dimension) * domain.width
        return points, np.full(self.count, domain.volume / self.count)

    @abstractmethod
    def _unit(self, dimension: int) -> FloatArray:
        """Points of the unit cube."""


class Sobol(_CloudGrid):
    """Scrambled Sobol points (scipy.stats.qmc); ``seed=None`` leaves them unscrambled.

    Parameters
    ----------
    count : int
        How many points.
    seed : int or None
        For the scrambling; None leaves the points unscrambled.

    Examples
    --------
    >>> len(Sobol(100).on(Domain.box(u=(0, 1), v=(0, 1), w=(0, 1))))
    100
    """

    def _unit(self, dimension: int) -> FloatArray:
        return sobol_points(self.count, dimension, self.seed)


class Random(_CloudGrid):
    """Independent uniform points.

    Parameters
    ----------
    count : int
        How many points.
    seed : int or None
        Of the generator; None draws others each time.

    Examples
    --------
    >>> len(Random(50, seed=3).on(Domain.box(u=(0, 1))))
    50
    """

    def _unit(self, dimension: int) -> FloatArray:
        return np.random.default_rng(self.seed).uniform(size=(self.count, dimension))


class Extremes(_CountedGrid):
    """Extreme points of a set in ``count`` random directions: vertices, or points of a curved boundary.

    A row affine in the point is largest at one of them. Equal ones are kept once.

    Parameters
    ----------
    count : int
        How many directions; different ones may lead to the same point.
    seed : int or None
        Of the directions; None draws others each time.

    Examples
    --------
    >>> Extremes(100).on(Domain.box(u=(0, 1), v=(0, 2))).points
    array([[0., 0.],
           [0., 2.],
           [1., 0.],
           [1., 2.]])
    """

    def _lay(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        _need_bounded(self, domain)
        body = BoxBody(domain.lower, domain.upper) if domain.body is None else domain.body
        directions = np.random.default_rng(self.seed).normal(size=(self.count, domain.dimension)) / domain.width
        points = np.unique(body.support(directions), axis=0)
        return points, np.full(len(points), domain.volume / len(points))


class Points(Grid):
    """Given points, such as measured places or a sample of scenarios.

    Parameters
    ----------
    points : array
        m numbers for one coordinate, or an array (m, d).
    weights : array, optional
        Quadrature weights. Without them: in one dimension the length of each point's cell (halfway to
        its neighbours), in several the volume divided by the number of points.

    Examples
    --------
    >>> Points([0.0, 0.5, 1.0]).on(Domain.box(u=(0, 1))).weights
    array([0.25, 0.5 , 0.25])
    """

    def __init__(self, points: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.points = np.array(points, dtype=float)
        self.weights = None if weights is None else np.array(weights, dtype=float)
        if not self.points.size:
            raise GridError("Points: the grid is empty; give at least one point.")
        if not np.all(np.isfinite(self.points)):
            raise GridError("Points: every coordinate must be a finite number (found nan or inf).")
        if self.weights is not None:
            if self.weights.shape != (len(self.points),):
                raise GridError(
                    f"Points: there must be one weight a point (got {self.weights.size} weights for "
                    f"{len(self.points)} points)."
                )
            if not np.all(self.weights >= 0) or not np.all(np.isfinite(self.weights)):
                raise GridError(f"Points: quadrature weights must be finite and >= 0 (got {np.min(self.weights):g}).")

    def __repr__(self) -> str:
        return f"Points({len(self.points)} points)"

    def _lay(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        try:
            points = domain.points(self.points)
        except DomainError as error:
            raise GridError(f"{self!r}: {error}") from None
        if self.weights is not None:
            return points, self.weights
        if not domain.bounded:
            return points, np.full(len(points), 1.0 / len(points))
        if domain.dimension > 1:
            return points, np.full(len(points), domain.volume / len(points))
        return points, cell_lengths(points[:, 0], domain)


def cell_lengths(points: FloatArray, domain: Domain) -> FloatArray:
    """Length of the part of an interval that is nearest to each point; equal points share theirs."""
    places, where, repeats = np.unique(points, return_inverse=True, return_counts=True)
    edges = [float(domain.lower[0]), *((a + b) / 2 for a, b in pairwise(places)), float(domain.upper[0])]
    weights: FloatArray = (np.diff(edges) / repeats)[where]
    return weights


def tensor_points(axes: Sequence[FloatArray]) -> FloatArray:
    """All combinations of the axes' values, as rows; the last axis changes fastest."""
    return np.stack([mesh.ravel() for mesh in np.meshgrid(*axes, indexing="ij")], axis=1)


def _why_none(domain: Domain) -> str:
    if domain.body is not None:
        return "none of them lies in the set, for which Extremes(...) has points"
    return "the 'where' condition is false at all of them"


def _need_bounded(grid: Grid, domain: Domain) -> None:
    if not domain.bounded:
        raise GridError(
            f"{grid!r} cannot be laid on {domain}: it is unbounded; use method='exchange', or give the points by "
            "Points(...)."
        )
