"""Builders of small semi-infinite programs, from functions of the variables and of the index.

Every builder gives a ``Program``, which is a model in waiting: ``build()`` makes the Pyomo model anew.  Its arguments:

over
    the box of the index: a list of intervals, one per coordinate; an end ``None`` is at infinity, and a function
    that makes an index set may stand for an interval; a row with a box of its own is a pair (box, row)
where
    a condition on the coordinates that leaves a part of the box
each
    members of an ordinary set; the rows stand once for each member, which precedes the coordinates
subject_to
    ordinary constraints, as functions of the variables
x, y, t, ... = free(), bounded(), integer(), binary()
    the variables by name, in the order in which all functions take them, before the coordinates
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet
from pyomo.environ import Expr_if, cos, sin

from osilp_pyomo import SemiInfiniteConstraint

# ---------------------------------------------------------------------------
# Variables: scalars without an index, otherwise indexed by a count or by a list
# ---------------------------------------------------------------------------


def free(index=None, **options):
    places = range(index) if isinstance(index, int) else index
    return lambda: pyo.Var(**options) if places is None else pyo.Var(places, **options)


def bounded(low, high, index=None):
    return free(index, bounds=(low, high))


def integer(low, high, index=None):
    return free(index, bounds=(low, high), domain=pyo.Integers)


def binary(index):
    return free(index, domain=pyo.Binary)


# ---------------------------------------------------------------------------
# Programs in general
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A program with `dimension` index coordinates and the function that builds its model."""

    dimension: int
    build: Callable[[], pyo.ConcreteModel]


def _index_set(interval):
    if callable(interval):
        return interval()
    return pyo.RangeSet(*interval, 0) if None in interval else ContinuousSet(bounds=interval)


def _program(sense, objective, rows, over=None, where=None, each=None, subject_to=(), **variables):
    rows = [row if isinstance(row, tuple) else (over, row) for row in rows]

    def build():
        m = pyo.ConcreteModel()
        letters = iter("uvwrs")
        sets = {}
        for box in {id(box): box for box, _ in rows}.values():
            sets[id(box)] = [_index_set(interval) for interval in box]
            for each_set in sets[id(box)]:
                setattr(m, next(letters), each_set)
        members = []
        if each is not None:
            m.members = pyo.Set(initialize=list(each))
            members = [m.members]
        for name, make in variables.items():
            setattr(m, name, make())
        decided = [getattr(m, name) for name in variables]
        m.objective = pyo.Objective(expr=objective(*decided), sense=sense)
        for number, constraint in enumerate(subject_to):
            setattr(m, f"ordinary{number}", pyo.Constraint(expr=constraint(*decided)))
        condition = None if where is None else lambda m, *z: where(*z)
        for number, (box, row) in enumerate(rows):
            # The default binds this row: rules are called again when the loop is over.
            rule = lambda m, *z, row=row: row(*decided, *z)  # noqa: E731
            index = [*members, *sets[id(box)]]
            setattr(m, f"row{number}", SemiInfiniteConstraint(*index, rule=rule, where=condition))
        return m

    return Program(len(rows[0][0]), build)


def minimize(objective, *rows, **parts):
    """Least objective(variables) such that rows(variables, index) hold for every index."""
    return _program(pyo.minimize, objective, rows, **parts)


def maximize(objective, *rows, **parts):
    return _program(pyo.maximize, objective, rows, **parts)


# ---------------------------------------------------------------------------
# Programs of one row and one vector x
# ---------------------------------------------------------------------------


def inner(x, row):
    """Sum of products of a vector, or an indexed variable in its own order, with numbers or expressions."""
    return sum(x[k] * value for k, value in zip(x if isinstance(x, pyo.Var) else range(len(x)), row, strict=True))


def value_at(limit, z):
    """A limit at an index: a function of the coordinates, or a number."""
    return limit(*z) if callable(limit) else limit


def covering(cost, row, limit, over, x=None, **parts):
    """Least cost'x such that row(z)'x >= limit(z) for every index z; x is free unless told."""
    return minimize(
        lambda x: inner(x, cost),
        lambda x, *z: inner(x, row(*z)) >= value_at(limit, z),
        over=over,
        x=x or free(len(cost)),
        **parts,
    )


def packing(gain, row, limit, over, x=None, **parts):
    """Largest gain'x such that row(z)'x <= limit(z) for every index z; x is free unless told."""
    return maximize(
        lambda x: inner(x, gain),
        lambda x, *z: inner(x, row(*z)) <= value_at(limit, z),
        over=over,
        x=x or free(len(gain)),
        **parts,
    )


def polar(gain, over, where=None, **parts):
    """Largest gain'x such that z'x <= 1 for every z of a set: a row is its index."""
    return packing(gain, lambda *z: z, 1, over, where=where, **parts)


def convex_body(gain, support=1, over=None, **parts):
    """Largest gain'x on the convex body whose support function is given on unit vectors d."""
    at = (lambda d: support) if not callable(support) else support
    return packing(gain, unit_vector, lambda *z: at(unit_vector(*z)), over or sphere(len(gain)), **parts)


def least_upper_bound(function, over, where=None):
    """Least t above all values of a function."""
    return minimize(lambda t: t, lambda t, *z: t >= function(*z), over=over, where=where, t=free())


def greatest_lower_bound(function, over):
    """Largest t below all values of a function."""
    return maximize(lambda t: t, lambda t, *z: t <= function(*z), over=over, t=free())


# ---------------------------------------------------------------------------
# Approximation
# ---------------------------------------------------------------------------


def moments(degree, interval=(0, 1)):
    """Integrals of the powers of u over an interval."""
    a, b = interval
    return [(b ** (k + 1) - a ** (k + 1)) / (k + 1) for k in range(degree + 1)]


def powers(degree):
    return lambda u: [u**k for k in range(degree + 1)]


def cosines(order):
    return lambda u: [cos(k * u) for k in range(order + 1)]


def total(x):
    return sum(x[k] for k in x)


def polynomial(x, u):
    """The polynomial in u whose coefficients are the indexed variable x."""
    return sum(x[k] * u**k for k in x)


def cosine_sum(a, u):
    return sum(a[k] * cos(k * u) for k in a)


def sine_sum(b, u):
    return sum(b[k] * sin(k * u) for k in b)


def affine(*z):
    return (1, *z)


def monomials(exponents):
    """The products of powers of the coordinates, one per tuple of exponents."""

    def values(*z):
        row = []
        for exponent in exponents:
            term = 1
            for coordinate, k in zip(z, exponent, strict=True):
                term = term * coordinate**k
            row.append(term)
        return row

    return values


def best_uniform(basis, function, over, x, error=None, **parts):
    """Least error such that |basis(z)'x - function(z)| <= error, as two families of rows."""
    return minimize(
        lambda x, error: error,
        lambda x, error, *z: inner(x, basis(*z)) - value_at(function, z) <= error,
        lambda x, error, *z: inner(x, basis(*z)) - value_at(function, z) >= -error,
        over=over,
        x=x,
        error=error or free(),
        **parts,
    )


def best_uniform_by_signs(basis, function, over, x, error=None, **parts):
    """The same as one family of rows, which stand once for each sign."""
    return minimize(
        lambda x, error: error,
        lambda x, error, sign, *z: sign * (value_at(function, z) - inner(x, basis(*z))) <= error,
        over=over,
        each=(-1, 1),
        x=x,
        error=error or free(),
        **parts,
    )


def best_polynomial(degree, function, interval=(-1, 1), where=None):
    return best_uniform(powers(degree), function, [interval], free(degree + 1), where=where)


# ---------------------------------------------------------------------------
# Boxes, directions and functions
# ---------------------------------------------------------------------------

CIRCLE = [(0, 2 * np.pi)]
HALF_LINE = [(0, None)]
LINE = [(None, None)]


def cube(dimension, low=-1, high=1):
    return [(low, high)] * dimension


def unit_cube(dimension):
    return cube(dimension, 0, 1)


def sphere(dimension):
    """The angles of all directions of a space."""
    return [(0, np.pi)] * (dimension - 2) + CIRCLE


def half_sphere(dimension):
    """The angles of all directions up to their sign."""
    return [(0, np.pi)] * (dimension - 1)


def unit_vector(*angles):
    """Spherical coordinates: len(angles) angles give len(angles) + 1 components."""
    components, radius = [], 1
    for angle in angles:
        components.append(radius * cos(angle))
        radius = radius * sin(angle)
    return [*components, radius]


def square_sum(z):
    return sum(each**2 for each in z)


def in_ball(*z):
    return square_sum(z) <= 1


def indicator(condition):
    return Expr_if(condition, 1, 0)


def larger(a, b):
    return Expr_if(a >= b, a, b)


def hat(u, place, width):
    """Height 1 at a place, 0 from a distance of `width` on."""
    return Expr_if(abs(u - place) <= width, 1 - abs(u - place) / width, 0)


def quadratic_form(matrix, d):
    n = len(d)
    return sum(float(matrix[i][j]) * d[i] * d[j] for i in range(n) for j in range(n) if matrix[i][j])
