"""Piecewise polynomials: the functions of a spline basis as curves, with their derivatives and ranges over boxes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import BPoly, PPoly
from scipy.interpolate import BSpline as ScipyBSpline

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DomainError
from osilp_pyomo.index.curves import Table
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.intervals import Interval

# How far outside of its pieces a curve is still asked for by the rounding of a coordinate, relative to their length.
_OVERSHOT = 1e-12
# What Horner's rule may lose of the sum of absolute terms, for each of its steps.
_PER_STEP = 4 * 2.0**-52


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """A function of one coordinate that is a polynomial between neighbouring breaks, with a continuous derivative.

    ``coefficients`` (pieces, degree + 1) are those of powers of the distance from a piece's left break, the constant
    first. Functions of degree 1 and 0 have kinks and jumps and are held as a :class:`~osilp_pyomo.index.curves.Table`.

    Examples
    --------
    >>> parabola = PiecewisePolynomial("p", np.array([0.0, 1.0]), np.array([[0.0, 0.0, 1.0]]))
    >>> float(parabola(np.array([0.5]))[0]), parabola.derivative().kind
    (0.25, 'linear')
    """

    name: str
    breaks: FloatArray
    coefficients: FloatArray

    dimension = 1

    def __call__(self, *coordinates: FloatArray) -> FloatArray:
        (at,) = coordinates
        piece = self._piece(at)
        away = at - self.breaks[piece]
        result: FloatArray = self.coefficients[piece, -1]
        for power in range(self.coefficients.shape[1] - 2, -1, -1):
            result = result * away + self.coefficients[piece, power]
        return result

    def _piece(self, at: FloatArray) -> FloatArray:
        """Numbers of the pieces in which coordinates lie; refused outside of all of them."""
        low, high = self.breaks[0], self.breaks[-1]
        slack = _OVERSHOT * (high - low)
        outside = (at < low - slack) | (at > high + slack)
        if np.any(outside):
            raise DomainError(
                f"'{self.name}': asked for its value at {float(np.asarray(at)[outside][0]):g}, outside of "
                f"[{low:g}, {high:g}], on which it is declared."
            )
        return np.clip(np.searchsorted(self.breaks, at, side="right") - 1, 0, len(self.breaks) - 2)

    def derivative(self) -> PiecewisePolynomial | Table:
        """Its first derivative."""
        powers = np.arange(1, self.coefficients.shape[1])
        return curve_of_pieces(f"{self.name}'", self.breaks, self.coefficients[:, 1:] * powers)

    @cached_property
    def slopes(self) -> FloatArray:
        """Coefficients of the first derivative, piece by piece."""
        return self.coefficients[:, 1:] * np.arange(1, self.coefficients.shape[1])

    @cached_property
    def bends(self) -> FloatArray:
        """Coefficients of the second derivative, piece by piece; it may jump at breaks."""
        return self.slopes[:, 1:] * np.arange(1, self.slopes.shape[1])

    def value_over(self, w: Interval) -> Interval:
        """What its values can be over intervals."""
        return _range(self.breaks, self.coefficients, w)

    def slope_over(self, w: Interval) -> Interval:
        """What its derivative can be over intervals."""
        return _range(self.breaks, self.slopes, w)

    def bend_over(self, w: Interval) -> Interval:
        """What its second derivative can be over intervals, on either side of breaks that they touch."""
        return _range(self.breaks, self.bends, w)


def _range(breaks: FloatArray, coefficients: FloatArray, w: Interval) -> Interval:
    """Smallest and largest value of pieces over intervals, each piece developed in the middle of the part it shares."""
    a, b = np.broadcast_arrays(*w)
    low, high = np.full(a.shape, np.inf), np.full(a.shape, -np.inf)
    slack = _OVERSHOT * (breaks[-1] - breaks[0])
    for left, right, powers in zip(breaks[:-1], breaks[1:], coefficients, strict=True):
        met = ~((b < left) | (a > right))
        if not met.any():
            continue
        start, end = np.maximum(a[met], left), np.minimum(b[met], right)
        middle, radius = (start + end) / 2 - left, (end - start) / 2 * (1 + 2.0**-50) + 2.0**-50 * np.abs(left)
        centred = _shifted(powers, middle)
        spread = sum(np.abs(each) * radius**power for power, each in enumerate(centred) if power)
        size = sum(abs(each) * (np.abs(middle) + radius) ** power for power, each in enumerate(powers))
        lost = _PER_STEP * len(powers) ** 2 * size
        low[met] = np.minimum(low[met], centred[0] - spread - lost)
        high[met] = np.maximum(high[met], centred[0] + spread + lost)
    known = (a >= breaks[0] - slack) & (b <= breaks[-1] + slack) & (low <= high)
    # Outside of all pieces nothing is known.
    return iv.choose(known, iv.moved(low, high), iv.EVERYTHING)


def _shifted(powers: FloatArray, by: FloatArray) -> list[FloatArray]:
    """Coefficients of a polynomial around other points: repeated division by (s - by)."""
    rest = [np.full(by.shape, each) for each in powers]
    for start in range(len(rest) - 1):
        for power in range(len(rest) - 2, start - 1, -1):
            rest[power] = rest[power] + by * rest[power + 1]
    return rest


def curve_of_pieces(name: str, breaks: FloatArray, coefficients: FloatArray) -> PiecewisePolynomial | Table:
    """A curve from the coefficients of its pieces; straight pieces and steps as values at knots.

    Straight pieces that do not meet, as the second derivative of a quadratic spline's integral would have, do not occur
    among derivatives of splines: each loses one degree and one continuous derivative at a time.
    """
    degree = coefficients.shape[1] - 1
    if degree >= 2:
        return PiecewisePolynomial(name, breaks, coefficients)
    if degree == 1:
        last = coefficients[-1, 0] + coefficients[-1, 1] * (breaks[-1] - breaks[-2])
        return Table(name, (breaks,), np.append(coefficients[:, 0], last), "linear", "error")
    steps = coefficients[:, 0] if degree == 0 else np.zeros(len(breaks) - 1)
    return Table(name, (breaks,), np.append(steps, steps[-1]), "previous", "error")


def spline_curves(name: str, knots: FloatArray, degree: int) -> list[PiecewisePolynomial | Table]:
    """The B-splines on some knots, clamped at both ends, as curves."""
    breaks = np.unique(knots)
    curves = []
    for number in range(len(knots) - degree - 1):
        weights = np.zeros(len(knots) - degree - 1)
        weights[number] = 1.0
        pieces = PPoly.from_spline(ScipyBSpline(knots, weights, degree))
        kept = np.searchsorted(pieces.x, breaks[:-1], side="right") - 1
        curves.append(curve_of_pieces(f"{name}_{number}", breaks, pieces.c[::-1, kept].T.copy()))
    return curves


def bernstein_curves(name: str, low: float, high: float, count: int) -> list[PiecewisePolynomial | Table]:
    """The Bernstein polynomials of degree ``count - 1`` on an interval, as curves."""
    breaks = np.array([low, high])
    curves = []
    for number in range(count):
        weights = np.zeros((count, 1))
        weights[number] = 1.0
        pieces = PPoly.from_bernstein_basis(BPoly(weights, breaks))
        curves.append(curve_of_pieces(f"{name}_{number}", breaks, pieces.c[::-1].T.copy()))
    return curves
