"""Integrals of a formula as functions of its data, over a box, over points with weights, or over quantiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.curves.splines import PiecewisePolynomial
from osilp_pyomo.index.curves.stack import CurveStack, Table
from osilp_pyomo.index.enclosures.enclosure import Enclosure, NoEnclosureError, Opening, coordinates
from osilp_pyomo.index.formula import Formula, kernel_of
from osilp_pyomo.index.quadrature.adaptive import REACHED, Line, Quadrature, composite, integrate, integrate_box
from osilp_pyomo.index.quadrature.hidden import hidden_places

# An integral whose error may be a larger share of its size is refused: it may not exist.
_TRUSTED = 1e-6
# Values that are so many times the mean of a function make it doubtful whether its absolute value has an integral.
_HIGH = 1e4
# Functions that are integrated together, and points of a sample times functions.
_TOGETHER, _BLOCK = 4096, 2**20
# Pieces between the nodes of a rule that stays as it is, at most.
_MOST_CUTS = 400


@dataclass(frozen=True)
class Accuracy:
    """How well an integral was found: ``error`` is an estimate, ``place`` where it is largest.

    ``size`` is the integral of the absolute value, and ``points`` how many values were taken.
    """

    text: str
    error: float
    size: float
    place: float
    points: int

    @property
    def reached(self) -> bool:
        """Whether the error is small beside the size."""
        return bool(self.error <= REACHED * self.size + np.finfo(float).tiny)


_RECORD: ContextVar[list[Accuracy] | None] = ContextVar("integrals", default=None)


@contextmanager
def recorded_integrals() -> Iterator[list[Accuracy]]:
    """What integrals were computed meanwhile, and how well."""
    record: list[Accuracy] = []
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


@contextmanager
def without_record() -> Iterator[None]:
    """Integrals that are only compared with each other are not told of."""
    token = _RECORD.set(None)
    try:
        yield
    finally:
        _RECORD.reset(token)


class Integrand:
    """A formula with data in its slots: a function of the coordinates for each of many columns of data."""

    def __init__(self, formula: Formula, slots: Sequence[Any]) -> None:
        self.formula = formula
        self.slots = tuple(slots)
        source, switches = formula.source(self.slots)
        self._kernel = kernel_of(source)
        self.switches = [self._called(kernel_of(each)) for each in switches]

    def _called(self, kernel: Any) -> Callable[[IntArray, Sequence[FloatArray]], FloatArray]:
        def call(owner: IntArray, axes: Sequence[FloatArray]) -> FloatArray:
            slots = [slot[owner][:, None] if isinstance(slot, np.ndarray) else slot for slot in self.slots]
            shape = axes[0].shape
            return np.broadcast_to(np.asarray(kernel(slots, axes), dtype=float), shape)

        return call

    def values(self, owner: IntArray, axes: Sequence[FloatArray]) -> FloatArray:
        """Values (n, m) of the functions with these numbers (n,) at coordinates (n, m) each."""
        return self._called(self._kernel)(owner, axes)

    def knots(self, axis: int) -> FloatArray:
        """Knots of its curves along an axis; those of a curve that goes round, too."""
        found = [np.empty(0)]
        for slot in self.slots:
            if isinstance(slot, CurveStack):
                curves = [slot.form] if slot.form is not None else slot.members()
                found += [np.concatenate(each.knots) for each in curves if isinstance(each, Table)]
                found += [each.breaks for each in curves if isinstance(each, PiecewisePolynomial)]
        return np.unique(np.concatenate(found))

    def enclosed(self, owner: IntArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """What the functions can be between two places of their only coordinate."""
        found = self._enclosed(owner, low[None], high[None], 0)
        if found is None:
            return None
        bounds = [np.broadcast_to(each, (1, len(owner)))[0] for each in found.value]
        return bounds[0], bounds[1]

    def steepness(self, owner: IntArray, low: FloatArray, high: FloatArray) -> FloatArray | None:
        """How steep the functions can be there at most."""
        found = self._enclosed(owner, low[None], high[None], 1)
        if found is None or 0 not in found.slopes:
            return None
        bounds = [np.broadcast_to(each, (1, len(owner)))[0] for each in found.slopes[0]]
        return np.maximum(np.abs(bounds[0]), np.abs(bounds[1]))

    def enclosure(self, owner: IntArray, low: FloatArray, high: FloatArray) -> Enclosure | None:
        """The functions and their slopes over boxes (d, n)."""
        return self._enclosed(owner, low, high, 1)

    def _enclosed(self, owner: IntArray, low: FloatArray, high: FloatArray, order: int) -> Enclosure | None:
        slots = [slot[owner] if isinstance(slot, np.ndarray) else slot for slot in self.slots]
        try:
            with np.errstate(all="ignore"):
                found = self.formula.enclose(slots, coordinates(low, high), Opening(len(low), order))
        except NoEnclosureError:
            return None
        return found if isinstance(found, Enclosure) else None


class Measure(ABC):
    """What is integrated over, and with which weight."""

    #: How many coordinates it has.
    dimension: int
    #: What to do where an integral over it cannot be computed.
    way_out = "Take a sample, as by .rvs(10_000, random_state=1)."

    @abstractmethod
    def integrate(self, integrand: Integrand, count: int) -> Quadrature:
        """Integrals of ``count`` functions."""

    @abstractmethod
    def points(self, integrand: Integrand, count: int) -> tuple[FloatArray, FloatArray]:
        """Points (k, d) and weights by which all these functions are integrated well."""


@dataclass(frozen=True, eq=False)
class BoxMeasure(Measure):
    """The volume of a box; ``marks`` are places along each axis where a function may have a kink or a jump."""

    lines: tuple[Line, ...]
    marks: tuple[FloatArray, ...]

    way_out = (
        "Take the place out of the set, or give it as a point of the ContinuousSet where the function jumps there."
    )

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return len(self.lines)

    def _breaks(self, integrand: Integrand) -> list[FloatArray]:
        return [
            _within(line, np.concatenate([marks, integrand.knots(axis)]))
            for axis, (line, marks) in enumerate(zip(self.lines, self.marks, strict=True))
        ]

    def integrate(self, integrand: Integrand, count: int) -> Quadrature:
        if len(self.lines) > 1:
            return self._on_box(integrand, count)
        return self._on_line(integrand, count, looked_into=True)

    def _on_box(self, integrand: Integrand, count: int) -> Quadrature:
        """One variable within the other, and the other way round where values are large: both may differ there.

        Where the absolute value has no integral, as that of (u - v) / (u + v)**3, each order gives another number.
        """
        highest = np.zeros(count)

        def watched(owner: IntArray, axes: Sequence[FloatArray]) -> FloatArray:
            values = integrand.values(owner, axes)
            np.maximum.at(highest, owner, np.nan_to_num(np.abs(values)).max(axis=1, initial=0.0))
            return values

        hidden = hidden_places(integrand.values, integrand.enclosure, count, self.lines)
        breaks = [np.concatenate(each) for each in zip(self._breaks(integrand), hidden, strict=True)]
        found = integrate_box(watched, count, self.lines, breaks, integrand.switches)
        volume = float(np.prod([np.diff(line.ends) for line in self.lines]))
        if not np.any((highest * volume > _HIGH * found.sizes) & np.isfinite(found.errors)):
            return found

        def turned(function: Callable[[IntArray, Sequence[FloatArray]], FloatArray]) -> Any:
            return lambda owner, axes: function(owner, axes[::-1])

        switches = [turned(switch) for switch in integrand.switches]
        other = integrate_box(turned(integrand.values), count, self.lines[::-1], breaks[::-1], switches)
        apart = np.abs(found.values - other.values)
        wrong = apart > _TRUSTED * found.sizes + other.errors
        return replace(found, errors=np.where(wrong, apart, found.errors), points=found.points + other.points)

    def _on_line(self, integrand: Integrand, count: int, looked_into: bool) -> Quadrature:
        return integrate(
            lambda owner, u: integrand.values(owner, [u]),
            count,
            self.lines[0],
            self._breaks(integrand)[0],
            [lambda owner, u, each=each: each(owner, [u]) for each in integrand.switches],  # type: ignore[misc]
            integrand.enclosed if looked_into else None,
            steepness=integrand.steepness if looked_into else None,
        )

    def points(self, integrand: Integrand, count: int) -> tuple[FloatArray, FloatArray]:
        if len(self.lines) == 1:
            # Each node becomes a term: none are spent on what an enclosure cannot exclude.
            cuts = [_few(self._on_line(integrand, count, looked_into=False).cuts)]
        else:
            cuts = []
            for line, breaks in zip(self.lines, self._breaks(integrand), strict=True):
                cuts.append(np.unique(np.clip(np.concatenate([line.ends, line.numbers(breaks)]), *line.ends)))
        rules = [composite(line, each) for line, each in zip(self.lines, cuts, strict=True)]
        places = np.stack([axis.ravel() for axis in np.meshgrid(*(rule[0] for rule in rules), indexing="ij")], axis=1)
        weights = np.array([1.0])
        for _, each in rules:
            weights = np.multiply.outer(weights, each).ravel()
        return places, weights


@dataclass(frozen=True, eq=False)
class PointMeasure(Measure):
    """Points (k, d) with weights; ``lost`` is the mass beyond them, of a distribution without end."""

    places: FloatArray
    weights: FloatArray
    lost: float = 0.0

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return self.places.shape[1]

    def integrate(self, integrand: Integrand, count: int) -> Quadrature:
        values, sizes, ends = np.zeros((3, count))
        step = max(1, _BLOCK // len(self.places))
        with np.errstate(all="ignore"):
            for first in range(0, count, step):
                owner = np.arange(first, min(first + step, count))
                axes = [np.broadcast_to(axis, (len(owner), len(self.places))) for axis in self.places.T]
                found = integrand.values(owner, axes)
                values[owner], sizes[owner] = found @ self.weights, np.abs(found) @ self.weights
                # Beyond its values a tail may go on growing.
                ends[owner] = 10 * np.maximum(np.abs(found[:, 0]), np.abs(found[:, -1]))
        rounding = 4 * np.finfo(float).eps * sizes
        errors = rounding + self.lost * (sizes + ends)
        return Quadrature(
            values, errors, rounding, sizes, np.full(count, np.nan), count * len(self.places), np.empty(0)
        )

    def points(self, integrand: Integrand, count: int) -> tuple[FloatArray, FloatArray]:
        return self.places, self.weights


@dataclass(frozen=True, eq=False)
class QuantileMeasure(Measure):
    """A distribution on the line, by its quantiles: the mean is the integral over the probability.

    ``below(q)`` is the quantile of q, ``above(q)`` that of 1 - q, and ``side(x)`` the probabilities on both sides of a
    place. Each half is integrated by itself, so that two tails that cancel do not hide that there is no mean.
    """

    below: Callable[[FloatArray], FloatArray]
    above: Callable[[FloatArray], FloatArray]
    sides: Callable[[FloatArray], tuple[FloatArray, FloatArray]]

    dimension = 1

    def _halves(self, integrand: Integrand, count: int) -> list[Quadrature]:
        knots = integrand.knots(0)
        found = []
        for quantile, at_knots in zip((self.below, self.above), self.sides(knots), strict=True):

            def place(q: FloatArray, quantile: Callable[[FloatArray], FloatArray] = quantile) -> FloatArray:
                unique, where = np.unique(q, return_inverse=True)
                return np.asarray(quantile(unique), dtype=float)[where.reshape(-1)].reshape(q.shape)

            found.append(
                integrate(
                    lambda owner, q, place=place: integrand.values(owner, [place(q)]),  # type: ignore[misc]
                    count,
                    _HALF,
                    _within(_HALF, at_knots),
                    [
                        lambda owner, q, each=each, place=place: each(owner, [place(q)])  # type: ignore[misc]
                        for each in integrand.switches
                    ],
                )
            )
        return found

    def integrate(self, integrand: Integrand, count: int) -> Quadrature:
        low, high = self._halves(integrand, count)
        first = low.errors > high.errors
        return Quadrature(
            low.values + high.values,
            low.errors + high.errors,
            low.rounding + high.rounding,
            low.sizes + high.sizes,
            np.where(first, self.below(low.places), self.above(high.places)),
            low.points + high.points,
            np.empty(0),
        )

    def points(self, integrand: Integrand, count: int) -> tuple[FloatArray, FloatArray]:
        places, weights = [], []
        for quantile, half in zip((self.below, self.above), self._halves(integrand, count), strict=True):
            q, weight = composite(_HALF, _few(half.cuts))
            places.append(np.asarray(quantile(q), dtype=float))
            weights.append(weight)
        return np.concatenate(places)[:, None], np.concatenate(weights)


# Probabilities up to a half.
_HALF = Line(0.0, 0.5)


def _within(line: Line, places: FloatArray) -> FloatArray:
    return places[(places > line.lower) & (places < line.upper)]


def _few(cuts: FloatArray) -> FloatArray:
    """Cuts of which there are few enough for a rule that becomes terms of a model."""
    if len(cuts) <= _MOST_CUTS:
        return cuts
    return cuts[np.unique(np.linspace(0, len(cuts) - 1, _MOST_CUTS).round().astype(int))]


def refuse_inaccurate(found: Quadrature, name: str, variable: str, measure: Measure) -> None:
    """Refuse integrals that are not known to six digits: they may not exist."""
    with np.errstate(all="ignore"):
        shares = np.where(found.sizes > 0, (found.errors - found.rounding) / found.sizes, 0.0)
        shares = np.where(np.isfinite(found.values) & np.isfinite(found.errors), shares, np.inf)
    worst = int(np.argmax(shares))
    if shares[worst] <= _TRUSTED:
        return
    place = "" if np.isnan(found.places[worst]) else f" near {variable} = {found.places[worst]:.6g}"
    told = f"found {found.values[worst]:g}, with an estimated error of {found.errors[worst]:.2g}"
    if np.isnan(found.values[worst]):
        told = f"after {found.points:,} values of it"
    raise DataError(f"{name}: it cannot be computed to six digits{place} ({told}); it may not exist. {measure.way_out}")


@dataclass(frozen=True, eq=False)
class IntegralFunction:
    """The integral of a formula as a function of the data in its slots.

    ``fill`` tells what fills each slot: the number of an argument, or a curve.
    """

    name: str
    formula: Formula
    fill: tuple[int | CurveStack, ...]
    measure: Measure
    dimension: int
    variable: str = "u"

    takes_arrays = True

    def __call__(self, *coordinates: FloatArray) -> FloatArray:
        given = np.broadcast_arrays(*(np.asarray(axis, dtype=float) for axis in coordinates))
        data = np.stack([axis.ravel() for axis in given])
        # Whole columns of data are often equal: those of every row that is asked for at one point of an index.
        unique, places = np.unique(data, axis=1, return_inverse=True)
        values = np.empty(unique.shape[1])
        for first in range(0, unique.shape[1], _TOGETHER):
            part = slice(first, first + _TOGETHER)
            values[part] = self._integrate(unique[:, part])
        return values[places.reshape(-1)].reshape(given[0].shape)

    def _integrate(self, data: FloatArray) -> FloatArray:
        slots = [each if isinstance(each, CurveStack) else data[each] for each in self.fill]
        found = self.measure.integrate(Integrand(self.formula, slots), data.shape[1])
        refuse_inaccurate(found, self.name, self.variable, self.measure)
        record = _RECORD.get()
        if record is not None:
            largest = int(np.argmax(found.errors))
            record.append(
                Accuracy(
                    self.name,
                    float(found.errors[largest]),
                    float(found.sizes[largest]),
                    float(found.places[largest]),
                    found.points,
                )
            )
        return found.values
