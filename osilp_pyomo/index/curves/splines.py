"""Piecewise polynomials: the functions of a basis as curves, with their derivatives and ranges over boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DomainError
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.intervals import Interval

# How far outside of its pieces a curve is still asked for by the rounding of a coordinate, relative to their length.
_OVERSHOT = 1e-12
# What Horner's rule may lose of the sum of absolute terms, for each of its steps.
_PER_STEP = 4 * 2.0**-52


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """A function of one coordinate that is a polynomial between neighbouring breaks.

    ``coefficients`` (pieces, degree + 1) are those of powers of the distance from a piece's left break, the constant
    first; each may be another number by its ``doubt``. From degree 2 on the derivative is continuous, of degree 1 it
    jumps at breaks, and of degree 0 the function does: there the value is that of the piece to the right.

    Examples
    --------
    >>> parabola = PiecewisePolynomial("p", np.array([0.0, 1.0]), np.array([[0.0, 0.0, 1.0]]))
    >>> float(parabola(np.array([0.5]))[0]), float(parabola.derivative()(np.array([0.5]))[0])
    (0.25, 1.0)
    """

    name: str
    breaks: FloatArray
    coefficients: FloatArray
    doubt: FloatArray | None = None

    dimension = 1

    def __call__(self, *coordinates: FloatArray) -> FloatArray:
        return evaluate_pieces(self.name, self.breaks, self.coefficients[None], coordinates[0])

    @property
    def degree(self) -> int:
        """Of its pieces."""
        return self.coefficients.shape[1] - 1

    def derivative(self) -> PiecewisePolynomial:
        """Its first derivative; the name gets a tick."""
        powers = np.arange(1, self.coefficients.shape[1])
        slopes = self.coefficients[:, 1:] * powers if self.degree else np.zeros((len(self.coefficients), 1))
        return PiecewisePolynomial(f"{self.name}'", self.breaks, slopes)

    @cached_property
    def _derivatives(self) -> list[tuple[FloatArray, FloatArray]]:
        """Coefficients, and their doubt, of the curve and its first two derivatives; the second may jump at breaks."""
        doubt = np.zeros_like(self.coefficients) if self.doubt is None else self.doubt
        found = [(self.coefficients, doubt)]
        for _ in range(2):
            values, lost = found[-1]
            powers = np.arange(1, max(2, values.shape[1]))
            padded = [np.pad(each, ((0, 0), (0, 1))) if each.shape[1] == 1 else each for each in (values, lost)]
            found.append((padded[0][:, 1:] * powers, padded[1][:, 1:] * powers))
        return found

    def value_over(self, w: Interval) -> Interval:
        """What its values can be over intervals."""
        return _range(self.breaks, *self._derivatives[0], w)

    def slope_over(self, w: Interval) -> Interval:
        """What its derivative can be over intervals, those to both sides of breaks that they touch among it."""
        found = _range(self.breaks, *self._derivatives[1], w)
        return found if self.degree else iv.choose(self._meets_break(w, "touches"), iv.EVERYTHING, found)

    def bend_over(self, w: Interval) -> Interval:
        """What its second derivative can be over intervals, on either side of breaks that they touch."""
        found = _range(self.breaks, *self._derivatives[2], w)
        return found if self.degree > 1 else iv.choose(self._meets_break(w, "holds"), iv.EVERYTHING, found)

    def _meets_break(self, w: Interval, how: str) -> BoolArray:
        """Whether a break between two pieces lies in an interval, its ends among it where it is enough to touch it."""
        inner = self.breaks[1:-1]
        sides = ("left", "right") if how == "touches" else ("right", "left")
        below, above = (np.searchsorted(inner, end, side=side) for end, side in zip(w, sides, strict=True))  # type: ignore[call-overload]
        found: BoolArray = np.asarray(above > below)
        return found


def _range(breaks: FloatArray, coefficients: FloatArray, doubt: FloatArray, w: Interval) -> Interval:
    """Smallest and largest value of pieces over intervals, each piece developed in the middle of the part it shares."""
    a, b = np.broadcast_arrays(*w)
    low, high = np.full(a.shape, np.inf), np.full(a.shape, -np.inf)
    slack = _OVERSHOT * (breaks[-1] - breaks[0])
    said = np.flatnonzero(np.any((coefficients != 0) | (doubt != 0), axis=1))
    first, last = (int(said[0]), int(said[-1]) + 1) if len(said) else (0, 0)
    # A function of a basis is zero but on a few pieces.
    zero = (a <= breaks[first]) | (b >= breaks[last]) | (first == last)
    low, high = np.where(zero, 0.0, low), np.where(zero, 0.0, high)
    for left, right, powers, doubts in zip(
        breaks[first:last], breaks[first + 1 : last + 1], coefficients[first:last], doubt[first:last], strict=True
    ):
        met = ~((b < left) | (a > right))
        if not met.any():
            continue
        start, end = np.maximum(a[met], left), np.minimum(b[met], right)
        middle, radius = (start + end) / 2 - left, (end - start) / 2 * (1 + 2.0**-50) + 2.0**-50 * np.abs(left)
        centred = _shifted(powers, middle)
        spread = sum(np.abs(each) * radius**power for power, each in enumerate(centred) if power)
        size = sum(abs(each) * (np.abs(middle) + radius) ** power for power, each in enumerate(powers))
        lost = _PER_STEP * len(powers) ** 2 * size
        lost = lost + sum(each * (np.abs(middle) + radius) ** power for power, each in enumerate(doubts))
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


def evaluate_pieces(name: str, breaks: FloatArray, coefficients: FloatArray, at: FloatArray) -> FloatArray:
    """Values (q, ...) of q curves on common breaks, from coefficients (q, pieces, degree + 1).

    Coordinates are the same for all curves, or an array with one row for each, or several rows for a single one.
    """
    low, high = breaks[0], breaks[-1]
    slack = _OVERSHOT * (high - low)
    if at.size and not (at.min() >= low - slack and at.max() <= high + slack):
        outside = ~((at >= low - slack) & (at <= high + slack))
        raise DomainError(
            f"'{name}': asked for its value at {float(np.asarray(at)[outside][0]):g}, outside of [{low:g}, {high:g}], "
            "on which it is declared."
        )
    # Numbers beyond the last inner break belong to the last piece, and those before the first one to the first.
    piece = np.searchsorted(breaks[1:-1], at, side="right")
    away = at - breaks[piece]
    count = len(coefficients)
    if at.ndim == 2 and at.shape[0] > 1:
        # A row of coordinates for each curve, or several rows for one.
        rows: Any = np.arange(at.shape[0])[:, None] if count > 1 else 0
    else:
        rows = slice(None)
        piece, away = (piece[0], away[0]) if at.ndim == 2 else (piece, away)
    result: FloatArray = coefficients[rows, piece, -1]
    for power in range(coefficients.shape[2] - 2, -1, -1):
        result = result * away + coefficients[rows, piece, power]
    return result[0] if at.ndim < 2 and count == 1 else result


def stacked_pieces(curves: Sequence[Any]) -> FloatArray | None:
    """Coefficients (q, pieces, degree + 1) of curves on common breaks; None where they are others."""
    first = curves[0]
    if not all(isinstance(each, PiecewisePolynomial) for each in curves):
        return None
    if not all(each.breaks is first.breaks or np.array_equal(each.breaks, first.breaks) for each in curves):
        return None
    most = max(each.coefficients.shape[1] for each in curves)
    return np.stack([np.pad(each.coefficients, ((0, 0), (0, most - each.coefficients.shape[1]))) for each in curves])


def spline_curves(name: str, knots: FloatArray, degree: int) -> list[PiecewisePolynomial]:
    """The B-splines on some knots, clamped at both ends, as curves."""
    from scipy.interpolate import BSpline, PPoly  # slow to load, and needed for curves only

    breaks = np.unique(knots)
    curves = []
    for number in range(len(knots) - degree - 1):
        weights = np.zeros(len(knots) - degree - 1)
        weights[number] = 1.0
        pieces = PPoly.from_spline(BSpline(knots, weights, degree).tck)
        kept = np.searchsorted(pieces.x, breaks[:-1], side="right") - 1
        curves.append(PiecewisePolynomial(f"{name}_{number}", breaks, pieces.c[::-1, kept].T.copy()))
    return curves


def bernstein_curves(name: str, low: float, high: float, count: int) -> list[PiecewisePolynomial]:
    """The Bernstein polynomials of degree ``count - 1`` on an interval, as curves."""
    from scipy.interpolate import BPoly, PPoly

    breaks = np.array([low, high])
    curves = []
    for number in range(count):
        weights = np.zeros((count, 1))
        weights[number] = 1.0
        pieces = PPoly.from_bernstein_basis(BPoly(weights, breaks))
        curves.append(PiecewisePolynomial(f"{name}_{number}", breaks, pieces.c[::-1].T.copy()))
    return curves


def step_curves(name: str, low: float, high: float, count: int) -> list[PiecewisePolynomial]:
    """One on each of some equal cells of an interval, zero elsewhere, as curves."""
    breaks = np.linspace(low, high, count + 1)
    return [PiecewisePolynomial(f"{name}_{number}", breaks, row[:, None]) for number, row in enumerate(np.eye(count))]
