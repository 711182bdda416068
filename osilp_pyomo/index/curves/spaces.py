"""Spaces of functions of the index: what a decision that is a function is a combination of.

A decision rule is a combination of polynomials in the entries of an uncertain vector (``1``, ``xi[0]``, ...), a curve
one of the functions of a basis on a box. A space evaluates its functions and their derivatives at points; it knows no
variable and no model.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import BasisError
from osilp_pyomo.index.bases import RBF, Basis, Bernstein, BSpline, Functions, Hat, Indicator, Tensor
from osilp_pyomo.index.curves.splines import PiecewisePolynomial, bernstein_curves, spline_curves, step_curves
from osilp_pyomo.index.domain import Domain, on_points

#: What one function of a vector is: the coordinates whose product it is, () for the number 1.
Monomial = tuple[int, ...]

# Derivatives of Gaussians that are written down.
_GAUSSIAN_ORDERS = 2


@dataclass(frozen=True, eq=False)
class FunctionSpace(ABC):
    """Functions of some coordinates.

    ``labels`` names each function; ``coordinates`` what the user calls the coordinates.
    """

    labels: tuple[Any, ...]
    coordinates: tuple[str, ...]

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    def __len__(self) -> int:
        return len(self.labels)

    @abstractmethod
    def evaluate(self, points: FloatArray, order: Sequence[int] | None = None) -> FloatArray:
        """All functions at points (m, d), or their derivatives of an order along each coordinate: an array (m, q)."""

    @abstractmethod
    def texts(self) -> list[str]:
        """Each function as mathematics; "1" for the constant one."""


@dataclass(frozen=True, eq=False)
class VectorFunctions(FunctionSpace):
    """Products of entries of an uncertain vector, as decision rules are made of.

    Examples
    --------
    >>> affine = VectorFunctions.affine(("xi[0]", "xi[1]"), seen=[1])
    >>> affine.labels, affine.evaluate(np.array([[2.0, 3.0]])).tolist()
    (('1', 'xi[1]'), [[1.0, 3.0]])
    """

    monomials: tuple[Monomial, ...]
    #: Entries of the vector that may be used, whether the functions use them or not.
    seen: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, coordinates: tuple[str, ...], monomials: Sequence[Monomial], seen: Sequence[int] = ()
    ) -> VectorFunctions:
        """Some monomials in named coordinates; ``seen`` are further entries that may be used."""
        labels = tuple("*".join(coordinates[k] for k in each) or "1" for each in monomials)
        known = tuple(sorted({*seen, *(k for each in monomials for k in each)}))
        return cls(labels, coordinates, tuple(monomials), known)

    @classmethod
    def constant(cls, coordinates: tuple[str, ...], seen: Sequence[int] = ()) -> VectorFunctions:
        """The constants."""
        return cls.of(coordinates, [()], seen)

    @classmethod
    def affine(cls, coordinates: tuple[str, ...], seen: Sequence[int]) -> VectorFunctions:
        """The affine functions of the entries that are seen."""
        return cls.of(coordinates, [(), *((k,) for k in seen)])

    @classmethod
    def quadratic(cls, coordinates: tuple[str, ...], seen: Sequence[int]) -> VectorFunctions:
        """The quadratic functions of the entries that are seen."""
        places = sorted(seen)
        pairs = [(j, k) for n, j in enumerate(places) for k in places[n:]]
        return cls.of(coordinates, [(), *((k,) for k in seen), *pairs])

    @cached_property
    def affine_form(self) -> tuple[IntArray, FloatArray, FloatArray] | None:
        """Entries of the vector, and the functions as ``constant + entries @ matrix``; None if one is not affine."""
        if max(map(len, self.monomials)) > 1:
            return None
        entries = np.array([each[0] for each in self.monomials if each], dtype=np.int64)
        constant = np.array([0.0 if each else 1.0 for each in self.monomials])
        matrix = np.zeros((len(entries), len(constant)))
        matrix[np.arange(len(entries)), np.flatnonzero(constant == 0)] = 1.0
        return entries, constant, matrix

    def evaluate(self, points: FloatArray, order: Sequence[int] | None = None) -> FloatArray:
        if order is not None:
            return np.stack([self._derivative(each, order, points) for each in self.monomials], axis=1)
        result = np.ones((len(points), len(self.monomials)))
        for factor in range(max(map(len, self.monomials))):
            places = [k for k, each in enumerate(self.monomials) if len(each) > factor]
            result[:, places] *= points[:, [self.monomials[k][factor] for k in places]]
        return result

    @staticmethod
    def _derivative(monomial: Monomial, order: Sequence[int], points: FloatArray) -> FloatArray:
        result = np.ones(len(points))
        for axis, times in enumerate(order):
            power = monomial.count(axis)
            if times > power:
                return np.zeros(len(points))
            result = result * math.perm(power, times) * points[:, axis] ** (power - times)
        return result

    def texts(self) -> list[str]:
        return list(map(str, self.labels))


class AxisFunctions(ABC):
    """Functions of one coordinate."""

    count: int

    @abstractmethod
    def evaluate(self, at: FloatArray, order: int) -> FloatArray:
        """Derivatives of an order at some places: an array (m, count)."""


@dataclass(frozen=True, eq=False)
class Curves(AxisFunctions):
    """Functions of one coordinate as curves: splines, polynomials, hats and steps.

    Examples
    --------
    >>> Curves("f", tuple(spline_curves("f", np.array([0.0, 0, 0, 1, 1, 1]), 2))).derived(1)[0].degree
    1
    """

    name: str
    curves: tuple[PiecewisePolynomial, ...]

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of functions."""
        return len(self.curves)

    @property
    def breaks(self) -> FloatArray:
        """Where one piece ends and the next begins."""
        return self.curves[0].breaks

    def derived(self, order: int) -> list[PiecewisePolynomial]:
        """Their derivatives as curves; refused where a derivative would be one of kinks or jumps."""
        found: list[PiecewisePolynomial] = list(self.curves)
        for done in range(order):
            found = [self._derivative(each, done) for each in found]
        return found

    def _derivative(self, curve: PiecewisePolynomial, done: int) -> PiecewisePolynomial:
        if curve.degree == 0 and np.any(curve.coefficients != curve.coefficients[0]):
            raise BasisError(
                f"'{self.name}': its derivative of order {done + 1} does not exist, because its functions jump; give "
                f"it a basis of a higher degree, such as BSpline(count, degree={done + 2})."
            )
        return curve.derivative()

    def evaluate(self, at: FloatArray, order: int) -> FloatArray:
        return np.stack([np.broadcast_to(each(at), at.shape) for each in self.derived(order)], axis=1)


@dataclass(frozen=True, eq=False)
class Gaussians(AxisFunctions):
    """Gaussians of one coordinate."""

    name: str
    centres: FloatArray
    widths: FloatArray

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of functions."""
        return len(self.centres)

    def formula(self, at: Any, order: int, exp: Callable[[Any], Any]) -> Any:
        """The functions, or derivatives of them, for whatever has operators."""
        if order > _GAUSSIAN_ORDERS:
            raise BasisError(
                f"'{self.name}': derivatives of Gaussians are known up to order {_GAUSSIAN_ORDERS} (asked for {order})."
            )
        share = (at - self.centres) / self.widths
        bell = exp(-(share**2) / 2)
        if order == 0:
            return bell
        if order == 1:
            return -share / self.widths * bell
        return (share**2 - 1) / self.widths**2 * bell

    def evaluate(self, at: FloatArray, order: int) -> FloatArray:
        found: FloatArray = self.formula(at[:, None], order, np.exp)
        return found


@dataclass(frozen=True, eq=False)
class CurveFunctions(FunctionSpace):
    """The functions of a basis on a box: products of functions along each axis, or functions of the user's own.

    ``numbers`` (q, d) tells for each product which function it takes along each axis.
    """

    domain: Domain
    basis: Basis
    axes: tuple[AxisFunctions, ...]
    numbers: Any
    own: tuple[Callable[..., Any], ...] = ()

    @classmethod
    def of(cls, name: str, domain: Domain, basis: Basis) -> CurveFunctions:
        """The functions of a basis on a box, by the name of what is made of them."""
        if isinstance(basis, Functions):
            labels = tuple(range(len(basis.functions)))
            return cls(labels, domain.names, domain, basis, (), np.empty((len(labels), 0)), basis.functions)
        axes = tuple(_along_axes(name, domain, basis))
        numbers = np.array(list(product(*(range(axis.count) for axis in axes))))
        return cls(tuple(range(len(numbers))), domain.names, domain, basis, axes, numbers)

    def evaluate(self, points: FloatArray, order: Sequence[int] | None = None) -> FloatArray:
        wanted = [0] * self.dimension if order is None else list(order)
        if self.own:
            self.refuse_derivative(wanted)
            return np.stack([on_points(each, points).astype(float) for each in self.own], axis=1)
        result = np.ones((len(points), len(self)))
        for axis, functions in enumerate(self.axes):
            result *= functions.evaluate(points[:, axis], wanted[axis])[:, self.numbers[:, axis]]
        return result

    def marks(self) -> list[tuple[FloatArray, bool]]:
        """Places along each axis where functions may bend, and whether they may jump there."""
        return [
            (each.breaks, any(curve.degree < 2 for curve in each.curves))
            if isinstance(each, Curves)
            else (np.empty(0), False)
            for each in self.axes or [None] * self.dimension
        ]

    def refuse_derivative(self, order: Sequence[int]) -> None:
        """Refuse derivatives of functions that nothing is known of but their values."""
        if self.own and any(order):
            raise BasisError(
                "Functions: the derivatives of functions of one's own are not known; use a BSpline, Bernstein or RBF "
                "basis, or declare the derivative with functions of its own."
            )

    def texts(self) -> list[str]:
        return [f"B{number}" for number in self.labels]


def _along_axes(name: str, domain: Domain, basis: Basis) -> Iterator[AxisFunctions]:
    """The functions of a basis along each axis of a box."""
    if not domain.bounded:
        raise BasisError(f"'{name}': {basis!r} cannot be laid on {domain}, which is unbounded; give the index bounds.")
    if isinstance(basis, Tensor):
        if len(basis.bases) != domain.dimension:
            raise BasisError(
                f"'{name}': {basis!r} has {len(basis.bases)} axes, and {domain} has {domain.dimension}; give one basis "
                "for each axis."
            )
        for axis, part in enumerate(basis.bases):
            along = Domain(domain.names[axis : axis + 1], domain.lower[axis : axis + 1], domain.upper[axis : axis + 1])
            yield from _along_axes(name, along, part)
        return
    if not isinstance(basis, BSpline | Hat | Indicator | Bernstein | RBF):
        raise BasisError(
            f"'{name}': its functions cannot be those of {basis!r}; use BSpline, Bernstein, Hat, Indicator, RBF, "
            "Functions, or a Tensor of them."
        )
    for axis, count in enumerate(basis.along(domain)):
        yield _axis_functions(name, basis, count, float(domain.lower[axis]), float(domain.upper[axis]))


def _axis_functions(name: str, basis: Any, count: int, low: float, high: float) -> AxisFunctions:
    if isinstance(basis, RBF):
        centres, widths = basis.layers(count)
        return Gaussians(name, low + centres * (high - low), widths * (high - low))
    if isinstance(basis, Bernstein):
        return Curves(name, tuple(bernstein_curves(name, low, high, count)))
    if isinstance(basis, BSpline):
        return Curves(name, tuple(spline_curves(name, low + basis._knots(count) * (high - low), basis.degree)))
    if isinstance(basis, Hat):
        knots = np.concatenate([[low], np.linspace(low, high, count), [high]])
        return Curves(name, tuple(spline_curves(name, knots, 1)))
    return Curves(name, tuple(step_curves(name, low, high, count)))
