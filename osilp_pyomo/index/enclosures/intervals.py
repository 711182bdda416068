"""Interval arithmetic on arrays: ends that no value of a function over a box lies beyond, rounded outwards.

An interval is a pair of arrays (lower ends, upper ends); an exact number is a pair of twice the same array. numpy
rounds sums, products, quotients and roots to the nearest number, so that one further unit in the last place on either
side holds what was lost (:data:`_UNIT`). Of its other functions numpy promises less; their ends are moved by
:data:`_FUNCTIONS`, sixteen units, four times what its slowest vector kernels are documented to miss.

An end that is not known is infinite, or not a number: whoever compares asks whether an end is ``<=`` something, which
not-a-number never is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray

Interval = tuple[FloatArray, FloatArray]
Map = Callable[[Interval], Interval]

# Twice the relative error of one rounding, and what is lost where a result is too small to be rounded like that.
_UNIT, _LEAST = 2.0**-52, 1e-307
# What numpy's functions may miss, relative to the value (sines and cosines: relative to one).
_FUNCTIONS = 16 * _UNIT
# How far an argument may lie outside of the domain of a function by the rounding of its own ends.
_OUTSIDE = 1e-12
# Splits a number of 53 digits in two; what a product below the other one loses may be too small for any number.
_SPLIT, _SMALL = 2.0**27 + 1, 1e-250

_INFINITE = np.array(np.inf)
EVERYTHING: Interval = (-_INFINITE, _INFINITE)


def exact(value: Any) -> Interval:
    """A number, or an array of numbers, as an interval."""
    array = np.asarray(value, dtype=float)
    return array, array


def is_exact(a: Interval) -> bool:
    """Whether both ends are the same array."""
    return a[0] is a[1]


def _rounded(low: FloatArray, high: FloatArray) -> Interval:
    """Ends of a product, quotient or root, moved outwards by one rounding."""
    return low - (np.abs(low) * _UNIT + _LEAST), high + (np.abs(high) * _UNIT + _LEAST)


def moved(low: FloatArray, high: FloatArray, relative: float = _FUNCTIONS, least: float = _LEAST) -> Interval:
    """Ends moved outwards."""
    return low - (np.abs(low) * relative + least), high + (np.abs(high) * relative + least)


def _sum_error(a: FloatArray, b: FloatArray, total: FloatArray) -> FloatArray:
    """What the sum of two numbers lost by rounding, exactly (Knuth)."""
    other = total - a
    return (a - (total - other)) + (b - other)


def _product_error(a: FloatArray, b: FloatArray, product: FloatArray) -> FloatArray:
    """What the product of two numbers lost by rounding, exactly (Dekker); not a number where that overflows."""
    (high, low), (other_high, other_low) = _halves(a), _halves(b)
    return ((high * other_high - product) + high * other_low + low * other_high) + low * other_low


def _halves(a: FloatArray) -> Interval:
    """A number as the sum of two with half of its digits each (Veltkamp)."""
    high = a * _SPLIT
    high = high - (high - a)
    return high, a - high


def _of_exact(value: FloatArray, lost: FloatArray) -> Interval:
    """The result of two exact numbers: exact itself where nothing was lost."""
    nothing = lost == 0
    if nothing.all():
        return value, value
    low, high = _rounded(value, value)
    return np.where(nothing, value, low), np.where(nothing, value, high)


def add(a: Interval, b: Interval) -> Interval:
    """Sum; one that is zero is so exactly."""
    if is_exact(a) and is_exact(b):
        total = a[0] + b[0]
        return _of_exact(total, _sum_error(a[0], b[0], total))
    low, high = a[0] + b[0], a[1] + b[1]
    return low - np.abs(low) * _UNIT, high + np.abs(high) * _UNIT


def negative(a: Interval) -> Interval:
    """Negative; of an exact number exact."""
    low = -a[1]
    return (low, low) if is_exact(a) else (low, -a[0])


def subtract(a: Interval, b: Interval) -> Interval:
    """Difference."""
    if is_exact(a) and is_exact(b):
        return add(a, negative(b))
    low, high = a[0] - b[1], a[1] - b[0]
    return low - np.abs(low) * _UNIT, high + np.abs(high) * _UNIT


def multiply(a: Interval, b: Interval) -> Interval:
    """Product."""
    if is_exact(a):
        a, b = b, a
    if is_exact(b):
        factor = b[0]
        if is_exact(a):
            product = a[0] * factor
            large = np.abs(product) > _SMALL
            lost = np.where(large, _product_error(a[0], factor, product), (a[0] != 0) & (factor != 0))
            return _of_exact(product, lost)
        if factor.size == 1:
            low, high = (a[0] * factor, a[1] * factor) if factor.item() >= 0 else (a[1] * factor, a[0] * factor)
            return _rounded(low, high)
        one, other = a[0] * factor, a[1] * factor
        return _rounded(np.minimum(one, other), np.maximum(one, other))
    p, q, r, s = a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]
    return _rounded(np.minimum(np.minimum(p, q), np.minimum(r, s)), np.maximum(np.maximum(p, q), np.maximum(r, s)))


def reciprocal(a: Interval) -> Interval:
    """One over it; everything where it holds zero."""
    with np.errstate(all="ignore"):
        low, high = _rounded(1 / a[1], 1 / a[0])
    crosses = ~((a[0] > 0) | (a[1] < 0))
    # From zero on upwards, or up to zero, it has one end still.
    low = np.where(crosses & ~((a[0] >= 0) & (a[1] > 0)), -np.inf, low)
    high = np.where(crosses & ~((a[1] <= 0) & (a[0] < 0)), np.inf, high)
    return low, high


def divide(a: Interval, b: Interval) -> Interval:
    """Quotient."""
    if is_exact(b) and not np.any(b[0] == 0):
        one, other = a[0] / b[0], a[1] / b[0]
        return _rounded(np.minimum(one, other), np.maximum(one, other))
    return multiply(a, reciprocal(b))


def square(a: Interval) -> Interval:
    """Square, which is never negative."""
    one, other = a[0] * a[0], a[1] * a[1]
    low, high = _rounded(np.minimum(one, other), np.maximum(one, other))
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.maximum(low, 0.0)), high


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval around both."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def absolute(a: Interval) -> Interval:
    """Absolute value."""
    one, other = np.abs(a[0]), np.abs(a[1])
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(one, other)), np.maximum(one, other)


def magnitude(a: Interval) -> FloatArray:
    """Largest absolute value."""
    return np.maximum(np.abs(a[0]), np.abs(a[1]))


def choose(test: BoolArray, a: Interval, b: Interval) -> Interval:
    """One of two, box by box; of exact numbers exact."""
    if is_exact(a) and is_exact(b):
        return exact(np.where(test, a[0], b[0]))
    return np.where(test, a[0], b[0]), np.where(test, a[1], b[1])


def rising(function: Callable[..., FloatArray], least: float = -np.inf, most: float = np.inf) -> Map:
    """An increasing function that is defined between two numbers; everything where its argument leaves them."""

    def enclose_all(a: Interval) -> Interval:
        with np.errstate(all="ignore"):
            return moved(function(a[0]), function(a[1]))

    def enclose(a: Interval) -> Interval:
        low, high = np.clip(a[0], least, most), np.clip(a[1], least, most)
        with np.errstate(all="ignore"):
            ends = moved(function(low), function(high))
        left = ~((a[0] >= least - _OUTSIDE) & (a[1] <= most + _OUTSIDE))
        return np.where(left, -np.inf, ends[0]), np.where(left, np.inf, ends[1])

    return enclose_all if np.isneginf(least) and np.isposinf(most) else enclose


def not_below(mapped: Map, least: float) -> Map:
    """A function whose values are never below a number."""

    def enclose(a: Interval) -> Interval:
        low, high = mapped(a)
        return np.maximum(low, least), high

    return enclose


def between(mapped: Map, least: float, most: float) -> Map:
    """A function whose values lie between two numbers."""

    def enclose(a: Interval) -> Interval:
        low, high = mapped(a)
        return np.maximum(low, least), np.minimum(high, most)

    return enclose


def cosine(a: Interval) -> Interval:
    """Cosine: its highest and lowest value where a multiple of pi lies inside."""
    with np.errstate(all="ignore"):
        one, other = np.cos(a[0]), np.cos(a[1])
        low, high = np.minimum(one, other) - _FUNCTIONS, np.maximum(one, other) + _FUNCTIONS
        # Multiples of pi are found up to rounding of the quotient; one that may lie inside counts.
        slack = 1e-15 * (1 + magnitude(a))
        first, last = (a[0] - slack) / np.pi, (a[1] + slack) / np.pi
        even = 2 * np.ceil(first / 2) <= last
        odd = 2 * np.ceil((first - 1) / 2) + 1 <= last
    # Beyond 1e8 turns the slack is no longer small beside a turn.
    wild = ~(magnitude(a) < 1e8)
    return np.where(odd | wild, -1.0, np.maximum(low, -1.0)), np.where(even | wild, 1.0, np.minimum(high, 1.0))


_HALF_PI = np.pi / 2


def sine(a: Interval) -> Interval:
    """Sine, as the cosine a quarter of a turn earlier."""
    with np.errstate(all="ignore"):
        one, other = np.sin(a[0]), np.sin(a[1])
        low, high = np.minimum(one, other) - _FUNCTIONS, np.maximum(one, other) + _FUNCTIONS
        slack = 1e-15 * (1 + magnitude(a))
        first, last = (a[0] - slack) / np.pi - 0.5, (a[1] + slack) / np.pi - 0.5
        top = 2 * np.ceil(first / 2) <= last
        bottom = 2 * np.ceil((first - 1) / 2) + 1 <= last
    wild = ~(magnitude(a) < 1e8)
    return np.where(bottom | wild, -1.0, np.maximum(low, -1.0)), np.where(top | wild, 1.0, np.minimum(high, 1.0))


def tangent(a: Interval) -> Interval:
    """Tangent; everything where a pole may lie inside."""
    with np.errstate(all="ignore"):
        low, high = moved(np.tan(a[0]), np.tan(a[1]))
        slack = 1e-15 * (1 + magnitude(a))
        pole = np.floor((a[0] - slack) / np.pi + 0.5) != np.floor((a[1] + slack) / np.pi + 0.5)
    pole |= ~(magnitude(a) < 1e8)
    return np.where(pole, -np.inf, low), np.where(pole, np.inf, high)


def hyperbolic_cosine(a: Interval) -> Interval:
    """Cosh: even, least at zero."""
    inside = absolute(a)
    with np.errstate(all="ignore"):
        low, high = moved(np.cosh(inside[0]), np.cosh(inside[1]))
    return np.maximum(low, 1.0), high


def power(a: Interval, exponent: FloatArray) -> Interval:
    """``a ** exponent`` for exact exponents, which broadcast against the ends.

    A whole exponent takes any base; another one takes bases from zero on.
    """
    whole = exponent == np.floor(exponent)
    even = whole & (exponent == 2 * np.floor(exponent / 2))
    least = np.where(whole, -np.inf, 0.0)
    low, high = np.maximum(a[0], least), np.maximum(a[1], least)
    with np.errstate(all="ignore"):
        one, other = np.power(low, exponent), np.power(high, exponent)
        bottom, top = moved(np.minimum(one, other), np.maximum(one, other))
    within = (a[0] <= 0) & (a[1] >= 0)
    # An even power turns at zero, where a negative one has a pole; an odd negative one jumps there.
    bottom = np.where(even, np.where(within & (exponent > 0), 0.0, np.maximum(bottom, 0.0)), bottom)
    bottom = np.where(exponent == 0, 1.0, bottom)
    top = np.where(exponent == 0, 1.0, top)
    pole = within & (exponent < 0)
    bottom = np.where(pole & ~even & ~(a[0] >= 0), -np.inf, bottom)
    top = np.where(pole, np.inf, top)
    outside = ~whole & ~(a[0] >= -_OUTSIDE)
    positive = ~whole & (exponent > 0)
    bottom = np.where(positive, np.maximum(bottom, 0.0), bottom)
    return np.where(outside, -np.inf, bottom), np.where(outside, np.inf, top)
