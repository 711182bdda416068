"""Curves: functions of the index as plain data, many of them evaluated together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DomainError
from osilp_pyomo.index.curves.splines import evaluate_pieces, stacked_pieces
from osilp_pyomo.index.domain import on_points


@dataclass(frozen=True, eq=False)
class Table:
    """Values at knots along each axis, and how to read between and beyond them."""

    name: str
    knots: tuple[FloatArray, ...]
    values: FloatArray
    kind: str
    outside: str

    def __call__(self, *coordinates: FloatArray) -> FloatArray:
        return CurveStack.of_tables((self,))(*coordinates)[0]


@dataclass(frozen=True, eq=False)
class Function:
    """A curve given as a callable of the coordinates."""

    name: str
    function: Callable[..., Any]
    dimension: int

    takes_arrays = True

    def __call__(self, *coordinates: FloatArray) -> FloatArray:
        given = np.broadcast_arrays(*coordinates)
        points = np.stack([axis.ravel() for axis in given], axis=1)
        return on_points(self.function, points).astype(float).reshape(given[0].shape)


def takes_arrays(curve: Any) -> bool:
    """Whether a curve is a function that takes arrays of any shape, and of which nothing but values is known."""
    return bool(getattr(curve, "takes_arrays", False))


class CurveStack:
    """Curves of many columns, evaluated together: ``stack[part](u)`` gives an array (c, m).

    Curves on common knots are one array (c, knots), read by one interpolation; others are called
    one by one.
    """

    def __init__(
        self,
        curves: Sequence[Any],
        form: Table | None,
        values: FloatArray | None,
        pieces: FloatArray | None = None,
    ) -> None:
        self._curves = tuple(curves)
        self._form = form
        self._values = values
        # Of piecewise polynomials on common breaks: their coefficients, one curve after the other.
        self._pieces = pieces

    @classmethod
    def of_tables(cls, curves: tuple[Any, ...]) -> CurveStack:
        """Stack curves."""
        first = curves[0]
        alike = isinstance(first, Table) and all(
            isinstance(curve, Table)
            and (curve.kind, curve.outside) == (first.kind, first.outside)
            and (curve.knots is first.knots or all(map(np.array_equal, curve.knots, first.knots)))
            for curve in curves
        )
        if not alike:
            return cls(curves, None, None, stacked_pieces(curves))
        return cls((), first, np.stack([curve.values for curve in curves]))

    @classmethod
    def of_arrays(
        cls, name: str, knots: tuple[FloatArray, ...], values: FloatArray, kind: str, outside: str
    ) -> CurveStack:
        """Stack curves on common knots from one array, one curve per row."""
        return cls((), Table(name, knots, np.zeros(tuple(map(len, knots))), kind, outside), values)

    @classmethod
    def without_values(cls, dimension: int) -> CurveStack:
        """One curve that is not known yet."""
        return cls((Function("", float, dimension),), None, None)

    def __len__(self) -> int:
        return len(self._curves) if self._values is None else len(self._values)

    @property
    def missing(self) -> bool:
        """Whether a curve was never given."""
        return any(curve is None for curve in self._curves)

    @property
    def form(self) -> Table | None:
        """What curves on common knots share: their knots, and how they are read; None where they have none."""
        return self._form

    def members(self) -> tuple[Any, ...]:
        """The curves one by one; none where they are held as one array."""
        return self._curves

    @property
    def array(self) -> FloatArray | None:
        """Values at the common knots, one curve per row; None where the curves have no common knots."""
        return self._values

    def repeated(self, count: int) -> CurveStack:
        """A stack that repeats its single curve many times."""
        if self._values is None:
            return CurveStack(self._curves * count, None, None)
        return CurveStack((), self._form, np.broadcast_to(self._values, (count, *self._values.shape[1:])))

    def common_knots(self) -> tuple[FloatArray, ...]:
        """Knots along each axis where all curves share them; none where they do not."""
        if self._form is not None:
            return self._form.knots
        first = self._curves[0]
        return tuple(np.empty(0) for _ in range(len(first.knots) if isinstance(first, Table) else first.dimension))

    def __getitem__(self, part: slice) -> CurveStack:
        if self._values is None:
            return CurveStack(self._curves[part], None, None, None if self._pieces is None else self._pieces[part])
        return CurveStack((), self._form, self._values[part])

    def take(self, places: Any) -> CurveStack:
        """Curves at some places, in that order; a place may come often."""
        if self._values is None:
            pieces = None if self._pieces is None else self._pieces[places]
            return CurveStack([self._curves[place] for place in places], None, None, pieces)
        return CurveStack((), self._form, self._values[places])

    def sums(self) -> list[FloatArray]:
        """Two sums of each curve's values with random weights; nothing for functions, which have no values."""
        if self._values is None:
            return []
        values = self._values.reshape(len(self._values), -1)
        return list((values @ np.random.default_rng(0).normal(size=(values.shape[1], 2))).T)

    def identities(self) -> list[Any]:
        """Something for each curve that is equal for equal ones: its bytes, or the function itself."""
        if self._values is None:
            return list(self._curves)
        return [values.tobytes() for values in self._values]

    def same_values(self, other: CurveStack) -> bool:
        """Whether another stack holds curves of the same values; False where only a function could tell."""
        one, two = self._form, other._form
        if one is None or two is None or self._values is None or other._values is None:
            return False
        return (
            (one.kind, one.outside) == (two.kind, two.outside)
            and len(one.knots) == len(two.knots)
            and all(map(np.array_equal, one.knots, two.knots))
            and np.array_equal(self._values, other._values)
        )

    def __call__(self, *coordinates: Any) -> FloatArray:
        given = np.broadcast_arrays(*(np.atleast_2d(np.asarray(axis, dtype=float)) for axis in coordinates))
        if self._pieces is not None:
            return evaluate_pieces(self._curves[0].name, self._curves[0].breaks, self._pieces, given[0])
        if self._values is None:
            if len(self._curves) == 1 and not isinstance(self._curves[0], Table):
                return np.asarray(self._curves[0](*given))
            rows = len(self._curves)
            spread = [np.broadcast_to(axis, (rows, axis.shape[1])) for axis in given]
            if takes_arrays(self._curves[0]) and all(each is self._curves[0] for each in self._curves):
                return np.asarray(self._curves[0](*spread))
            return np.stack([curve(*(axis[k] for axis in spread)) for k, curve in enumerate(self._curves)])
        table = self._form
        assert table is not None
        places = [_place(axis, knots, table) for axis, knots in zip(given, table.knots, strict=True)]
        if len(places) == 1 and _is_all_knots(*places[0], table.knots[0]):
            return self._values
        row = np.arange(len(self._values))[:, None]
        result: Any = 0.0
        for corner in product((0, 1), repeat=len(places)):
            weight: Any = 1.0
            for (_, share), upper in zip(places, corner, strict=True):
                weight = weight * (share if upper else 1 - share)
            if np.any(weight):
                cell = tuple(
                    np.minimum(left + upper, len(knots) - 1)
                    for (left, _), upper, knots in zip(places, corner, table.knots, strict=True)
                )
                result = result + weight * self._values[(row, *cell)]
        return np.asarray(result)


def _is_all_knots(left: Any, share: FloatArray, knots: FloatArray) -> bool:
    """Whether the places asked for are the knots themselves: then nothing need be interpolated."""
    return left.shape == (1, len(knots)) and not share.any() and bool((left[0] == np.arange(len(knots))).all())


def _place(at: FloatArray, knots: FloatArray, table: Table) -> tuple[Any, FloatArray]:
    """Number of the knot to the left of each coordinate, and the share of the way to the next one."""
    low, high = knots[0], knots[-1]
    if table.outside == "wrap":
        at = low + np.mod(at - low, high - low) if high > low else np.full_like(at, low)
        # The end of a turn, which a number before it may be rounded to, is the beginning of the next one.
        at = np.where(at >= high, low, at)
    elif table.outside == "clamp":
        at = np.clip(at, low, high)
    elif np.any((at < low) | (at > high)):
        bad = float(at[(at < low) | (at > high)][0])
        raise DomainError(
            f"Profile '{table.name}': asked for its value at {bad:g}, outside its knots [{low:g}, {high:g}]; "
            "give it more points, or outside='clamp' or 'wrap'."
        )
    left = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 1)
    right = np.minimum(left + 1, len(knots) - 1)
    gap = knots[right] - knots[left]
    share = np.divide(at - knots[left], gap, out=np.zeros_like(at), where=gap > 0)
    if table.kind == "previous":
        share = np.zeros_like(share)
    elif table.kind == "nearest":
        share = (share >= 0.5).astype(float)
    return left, share
