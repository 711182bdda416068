"""Bases: non-negative test functions Phi on the index set.

Projecting a semi-infinite row on a basis replaces "for all u" by q rows: the row is multiplied by
each test function and integrated over u by the grid's quadrature. Because the functions are
non-negative, every point that satisfies the row satisfies its projection: the projected problem is
a relaxation. A Dirac "function" picks the row at one point, so discretizing is projecting too.

All functions of one axis are defined on the unit interval and placed on an axis by t = (u - lower) /
width; in several dimensions the products over the axes are taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import BasisError, DomainError
from osilp_pyomo.index.domain import Domain, on_points
from osilp_pyomo.index.grids import GridPoints

# Rows of Phi made at a time: bounds the memory of a dense piece of a sparse matrix.
_CHUNK = 8192
# Local test functions (hats, splines, cells) leave most of Phi zero; below this share of non-zeros
# a sparse matrix is both smaller and faster to multiply by.
_SPARSE_BELOW = 0.2


@dataclass(frozen=True, eq=False)
class Functionals:
    """q linear functionals of a function h of the index: ``matrix.T @ h(points)``.

    ``labels`` names each of them; ``basis`` evaluates the test functions at other points.
    """

    domain: Domain
    points: FloatArray
    matrix: Any  # (m, q), numpy or scipy.sparse
    labels: tuple[str, ...]
    basis: Basis

    @property
    def atomic(self) -> bool:
        """Whether each functional is the value at one point."""
        return isinstance(self.basis, Dirac)

    def __len__(self) -> int:
        return len(self.labels)


class Basis(ABC):
    """What every basis can do: become functionals on a grid."""

    def on(self, grid: GridPoints) -> Functionals:
        """Place the basis on a grid; negative, non-finite or zero columns are refused by name."""
        from scipy import sparse  # slow to load, as the parts of scipy below, and seldom needed at once

        domain, points, weights = grid.domain, grid.points, grid.weights
        labels = self.labels(domain)
        pieces: list[Any] = []
        for start in range(0, len(points), _CHUNK):
            part = slice(start, start + _CHUNK)
            values = self.evaluate(domain, points[part])
            self._check(values, labels, domain, points[part])
            weighted = values * weights[part, None]
            share = np.count_nonzero(weighted) / max(1, weighted.size)
            pieces.append(sparse.csr_array(weighted) if share < _SPARSE_BELOW else weighted)
        matrix: Any
        if any(sparse.issparse(piece) for piece in pieces):
            matrix = sparse.csr_array(sparse.vstack([sparse.csr_array(piece) for piece in pieces]))
        else:
            matrix = np.concatenate(pieces)
        total = np.asarray(abs(matrix).sum(axis=0)).ravel()
        if np.any(total == 0):
            empty = int(np.argmin(total))
            raise BasisError(
                f"{self!r}: column {empty} ({labels[empty]}) is zero at every point of the grid on {domain}, so it "
                "says nothing; use a finer grid or fewer test functions."
            )
        return Functionals(domain, points, matrix, labels, self)

    def _check(self, values: FloatArray, labels: tuple[str, ...], domain: Domain, points: FloatArray) -> None:
        bad = ~np.isfinite(values) | (values < 0)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise BasisError(
                f"{self!r}: test functions must be finite and >= 0, or projecting is no relaxation; column "
                f"{column} ({labels[column]}) is {values[row, column]:g} at {domain.describe(points[row])}."
            )

    @abstractmethod
    def evaluate(self, domain: Domain, points: FloatArray) -> FloatArray:
        """Phi at points (m, d): an array (m, q)."""

    @abstractmethod
    def labels(self, domain: Domain) -> tuple[str, ...]:
        """Name every test function."""


class _AxisBasis(Basis):
    """A family of functions along each axis, multiplied out.

    Subclasses store ``count``, one number or one per axis, and say what they are on [0, 1].
    """

    count: int | Sequence[int]
    _least = 1

    def _validate(self) -> None:
        counts = np.atleast_1d(np.asarray(self.count))
        if counts.size == 0 or counts.dtype.kind not in "iu" or np.any(counts < self._least):
            raise BasisError(
                f"{type(self).__name__}: the number of functions along an axis must be a whole number >= "
                f"{self._least} (got {self.count!r})."
            )

    def along(self, domain: Domain) -> list[int]:
        """Number of functions along each axis of the domain."""
        if not domain.bounded:
            raise BasisError(
                f"{self!r} cannot be laid on {domain}: it is unbounded; use Functions(...) or Dirac(points), or "
                "method='exchange'."
            )
        counts = [int(size) for size in np.atleast_1d(np.asarray(self.count))]
        if len(counts) == 1:
            counts *= domain.dimension
        if len(counts) != domain.dimension:
            raise BasisError(
                f"{self!r} on {domain}: give one number of functions, or one for each of the "
                f"{domain.dimension} axes (got {len(counts)})."
            )
        return counts

    def evaluate(self, domain: Domain, points: FloatArray) -> FloatArray:
        unit = np.clip((points - domain.lower) / domain.width, 0.0, 1.0)
        return _products([self._unit(unit[:, axis], size) for axis, size in enumerate(self.along(domain))])

    def labels(self, domain: Domain) -> tuple[str, ...]:
        names = []
        for axis, size in enumerate(self.along(domain)):
            places = domain.lower[axis] + self._centres(size) * domain.width[axis]
            names.append([f"{domain.names[axis]} = {place:.4g}" for place in places])
        return _label_products(names)

    @staticmethod
    @abstractmethod
    def _centres(size: int) -> FloatArray:
        """Where on [0, 1] each function stands, for its name."""

    @abstractmethod
    def _unit(self, t: FloatArray, size: int) -> FloatArray:
        """The functions at t in [0, 1]: an array (m, size)."""


@dataclass(frozen=True)
class RBF(_AxisBasis):
    """The paper's Gaussian test functions at two resolutions.

    Of ``count`` functions, ceil(share * count) stand at the equidistant coarse centres, the rest at
    the midpoints between them, from the left. Widths are sigma = Delta / (2 ln(1/rho)) as the paper
    prints; ``width="overlap"`` takes sigma = Delta / sqrt(2 ln(1/rho)), for which neighbouring
    functions really meet their neighbour's centre at the height rho.

    Parameters
    ----------
    count : int or sequence of int
        Number of functions along each axis (K).
    share : float
        Share of coarse centres (alpha).
    overlap : tuple of float
        Overlap degrees (rho) of the coarse and of the fine layer.
    width : "paper" or "overlap"
        Which formula gives the widths.

    Notes
    -----
    For K = 10 the fine centres are .1, .3, .5 and .7: as printed, [.8, 1] has no fine function.

    Examples
    --------
    >>> RBF(10).evaluate(Domain.box(u=(0, 1)), np.array([[0.2], [0.5]])).shape
    (2, 10)
    """

    count: int | Sequence[int]
    share: float = 0.6
    overlap: tuple[float, float] = (0.6, 0.3)
    width: str = "paper"
    _least = 2

    def __post_init__(self) -> None:
        self._validate()
        if not 0 < self.share <= 1:
            raise BasisError(f"RBF: the share of coarse centres must lie in (0, 1] (got {self.share!r}).")
        if len(self.overlap) != 2 or not all(0 < rho < 1 for rho in self.overlap):
            raise BasisError(f"RBF: the two overlap degrees must lie between 0 and 1 (got {self.overlap!r}).")
        if self.width not in ("paper", "overlap"):
            raise BasisError(f"RBF: width must be 'paper' or 'overlap' (got {self.width!r}).")
        for size in np.atleast_1d(np.asarray(self.count)):
            if self._coarse(int(size)) < 2:
                raise BasisError(
                    f"RBF: {size} functions at share {self.share:g} leave fewer than two coarse centres; ask for more."
                )

    def _coarse(self, size: int) -> int:
        # The rounding of share * size must not lift a whole number to the next one.
        return int(np.ceil(self.share * size - 1e-9))

    def layers(self, size: int) -> tuple[FloatArray, FloatArray]:
        """Centres and widths (sigma) of the functions on [0, 1], coarse layer first."""
        coarse = self._coarse(size)
        spacing = 1.0 / (coarse - 1)
        fine = (spacing / 2 + np.arange(size - coarse) * spacing) % 1.0
        logs = np.log(1.0 / np.asarray(self.overlap))
        sigma = spacing / (2 * logs) if self.width == "paper" else spacing / np.sqrt(2 * logs)
        centres = np.concatenate([np.linspace(0, 1, coarse), fine])
        return centres, np.repeat(sigma, [coarse, size - coarse])

    def _centres(self, size: int) -> FloatArray:  # type: ignore[override]
        return self.layers(size)[0]

    def _unit(self, t: FloatArray, size: int) -> FloatArray:
        centres, sigma = self.layers(size)
        values: FloatArray = np.exp(-(((t[:, None] - centres) / sigma) ** 2) / 2)
        return values


@dataclass(frozen=True)
class Hat(_AxisBasis):
    """Piecewise linear functions on equidistant nodes, both ends among them; they sum to 1.

    Parameters
    ----------
    count : int or list of int
        Functions along each axis, or one number per axis.

    Examples
    --------
    >>> Hat(3).evaluate(Domain.box(u=(0, 1)), np.array([[0.25]]))
    array([[0.5, 0.5, 0. ]])
    """

    count: int | Sequence[int]
    _least = 2

    def __post_init__(self) -> None:
        self._validate()

    @staticmethod
    def _centres(size: int) -> FloatArray:
        return np.linspace(0, 1, size)

    def _unit(self, t: FloatArray, size: int) -> FloatArray:
        values: FloatArray = np.maximum(0.0, 1.0 - np.abs(t[:, None] * (size - 1) - np.arange(size)))
        return values


@dataclass(frozen=True)
class BSpline(_AxisBasis):
    """B-splines of the given degree on equidistant knots, clamped at both ends; they sum to 1.

    Parameters
    ----------
    count : int or list of int
        Functions along each axis, or one number per axis.
    degree : int
        Of the pieces; 1 gives hat functions.

    Examples
    --------
    >>> float(BSpline(8).evaluate(Domain.box(u=(0, 1)), np.array([[0.3]])).sum())
    1.0
    """

    count: int | Sequence[int]
    degree: int = 3

    def __post_init__(self) -> None:
        self._validate()
        if not isinstance(self.degree, int) or self.degree < 0:
            raise BasisError(f"BSpline: the degree must be a whole number >= 0 (got {self.degree!r}).")
        if np.min(np.asarray(self.count)) <= self.degree:
            raise BasisError(
                f"BSpline: degree {self.degree} needs at least {self.degree + 1} functions along an axis "
                f"(got {self.count!r})."
            )

    def _knots(self, size: int) -> FloatArray:
        inner = np.linspace(0, 1, size - self.degree + 1)
        return np.concatenate([np.zeros(self.degree), inner, np.ones(self.degree)])

    def _centres(self, size: int) -> FloatArray:  # type: ignore[override]
        knots = self._knots(size)
        span = max(1, self.degree)
        return np.array([knots[k + 1 : k + 1 + span].mean() for k in range(size)])

    def _unit(self, t: FloatArray, size: int) -> FloatArray:
        from scipy.interpolate import BSpline as ScipyBSpline

        values: FloatArray = ScipyBSpline.design_matrix(t, self._knots(size), self.degree).toarray()
        # De Boor's recursion is a convex combination; what lies below zero is rounding.
        return np.maximum(values, 0.0)


@dataclass(frozen=True)
class Bernstein(_AxisBasis):
    """The Bernstein polynomials: ``count`` of them along an axis, of degree count - 1; they sum to 1.

    Parameters
    ----------
    count : int or list of int
        Functions along each axis, or one number per axis.

    Examples
    --------
    >>> Bernstein(3).evaluate(Domain.box(u=(0, 1)), np.array([[0.5]]))
    array([[0.25, 0.5 , 0.25]])
    """

    count: int | Sequence[int]

    def __post_init__(self) -> None:
        self._validate()

    @staticmethod
    def _centres(size: int) -> FloatArray:
        return np.arange(size) / max(1, size - 1)

    def _unit(self, t: FloatArray, size: int) -> FloatArray:
        from scipy.special import comb

        powers = np.arange(size)
        values: FloatArray = comb(size - 1, powers) * t[:, None] ** powers * (1 - t[:, None]) ** (size - 1 - powers)
        return values


@dataclass(frozen=True)
class Indicator(_AxisBasis):
    """One for each of ``count`` equal cells along an axis, zero elsewhere: averages over cells.

    Parameters
    ----------
    count : int or list of int
        Functions along each axis, or one number per axis.

    Examples
    --------
    >>> Indicator(2).evaluate(Domain.box(u=(0, 1)), np.array([[0.4], [1.0]]))
    array([[1., 0.],
           [0., 1.]])
    """

    count: int | Sequence[int]

    def __post_init__(self) -> None:
        self._validate()

    @staticmethod
    def _centres(size: int) -> FloatArray:
        return (np.arange(size) + 0.5) / size

    def _unit(self, t: FloatArray, size: int) -> FloatArray:
        cell = np.minimum((t * size).astype(int), size - 1)
        return (cell[:, None] == np.arange(size)).astype(float)


class Functions(Basis):
    """Test functions of the user's own.

    Parameters
    ----------
    functions : callables
        Each takes the coordinates as numpy arrays, ``f(u)`` or ``f(u, v)``, and returns as many
        values, none of them negative.

    Examples
    --------
    >>> own = Functions(lambda u: 1 - u, lambda u: u)
    >>> own.evaluate(Domain.box(u=(0, 1)), np.array([[0.25]]))
    array([[0.75, 0.25]])
    """

    def __init__(self, *functions: Callable[..., ArrayLike]) -> None:
        if not functions or not all(callable(function) for function in functions):
            raise BasisError("Functions: give one or more callables of the index, such as lambda u: u**2.")
        self.functions = functions

    def __repr__(self) -> str:
        return f"Functions({len(self.functions)} functions)"

    def evaluate(self, domain: Domain, points: FloatArray) -> FloatArray:
        return np.stack([on_points(f, points).astype(float) for f in self.functions], axis=1)

    def labels(self, domain: Domain) -> tuple[str, ...]:
        return tuple(getattr(f, "__name__", type(f).__name__) for f in self.functions)


class Tensor(Basis):
    """Products of one basis per axis, such as ``Tensor(RBF(10), Hat(5))``.

    Parameters
    ----------
    *bases : Basis
        One for each axis, in the order of the index.

    Examples
    --------
    >>> Tensor(Hat(3), Indicator(2)).evaluate(Domain.box(u=(0, 1), v=(0, 1)), np.array([[0.5, 0.9]]))
    array([[0., 0., 0., 1., 0., 0.]])
    """

    def __init__(self, *bases: Basis) -> None:
        if len(bases) < 2 or not all(isinstance(basis, Basis) and not isinstance(basis, Dirac) for basis in bases):
            raise BasisError("Tensor: give one basis for each axis, at least two, none of them Dirac.")
        self.bases = bases

    def __repr__(self) -> str:
        return f"Tensor({', '.join(map(repr, self.bases))})"

    def _axes(self, domain: Domain) -> list[Domain]:
        if len(self.bases) != domain.dimension:
            raise BasisError(
                f"{self!r} on {domain}: give one basis for each of the {domain.dimension} axes (got {len(self.bases)})."
            )
        return [
            Domain((name,), low, high) for name, low, high in zip(domain.names, domain.lower, domain.upper, strict=True)
        ]

    def evaluate(self, domain: Domain, points: FloatArray) -> FloatArray:
        parts = zip(self.bases, self._axes(domain), points.T, strict=True)
        return _products([basis.evaluate(axis, values[:, None]) for basis, axis, values in parts])

    def labels(self, domain: Domain) -> tuple[str, ...]:
        parts = zip(self.bases, self._axes(domain), strict=True)
        return _label_products([list(basis.labels(axis)) for basis, axis in parts])


class Dirac(Basis):
    """The row itself at single points: at the given ones, or at every point of the grid.

    ``Dirac()`` makes the projected method the discretized one.

    Parameters
    ----------
    points : array, optional
        Points of the index, one row each in several dimensions; every point of the grid if not given.

    Examples
    --------
    >>> from osilp_pyomo.index.grids import Midpoint
    >>> Dirac([0.2, 0.7]).on(Midpoint(5).on(Domain.box(u=(0, 1)))).points.ravel()
    array([0.2, 0.7])
    """

    def __init__(self, points: ArrayLike | None = None) -> None:
        self.points = None if points is None else np.array(points, dtype=float)

    def __repr__(self) -> str:
        return "Dirac()" if self.points is None else f"Dirac({len(self.points)} points)"

    def on(self, grid: GridPoints) -> Functionals:
        domain = grid.domain
        points = grid.points
        if self.points is not None:
            try:
                points = domain.points(self.points)
            except DomainError as error:
                raise BasisError(f"{self!r}: {error}") from None
            points = points[domain.contains(points)]
            if not len(points):
                raise BasisError(f"{self!r}: the 'where' condition on {domain} is false at all of its points.")
        from scipy import sparse

        labels = tuple(domain.describe(point) for point in points)
        return Functionals(domain, points, sparse.eye_array(len(points), format="csr"), labels, self)

    def evaluate(self, domain: Domain, points: FloatArray) -> FloatArray:
        raise BasisError(f"{self!r}: a Dirac measure has no values; ask the price for its atoms.")

    def labels(self, domain: Domain) -> tuple[str, ...]:
        raise BasisError(f"{self!r}: a Dirac measure takes its names from the points of a grid.")


def _products(factors: list[FloatArray]) -> FloatArray:
    """Row by row, all products of one column of each factor; the last factor's changes fastest."""
    result = factors[0]
    for factor in factors[1:]:
        result = (result[:, :, None] * factor[:, None, :]).reshape(len(result), -1)
    return result


def _label_products(names: list[list[str]]) -> tuple[str, ...]:
    labels = names[0]
    for more in names[1:]:
        labels = [f"{left}, {right}" for left in labels for right in more]
    return tuple(labels)
