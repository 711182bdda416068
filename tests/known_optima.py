"""Linear semi-infinite programs whose optimal values are known independently.

Each problem is a function that builds a Pyomo model; its docstring says why the
optimal value is what it is.  The values come from closed forms, or from an exact
finite reformulation (vertices of a box, enumeration of integer points) evaluated
in this file.  None of them comes from solving the semi-infinite program itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from math import atan, cos, cosh, e, exp, log, pi, sinh, sqrt, tan

import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet
from scipy.optimize import linprog


@dataclass(frozen=True)
class Known:
    """One problem with its independently known answer."""

    name: str
    kind: str
    dimension: int
    optimum: float | None
    status: str
    reason: str
    build: Callable[[], pyo.ConcreteModel]


PROBLEMS: list[Known] = []


def register_in(problems):
    """A decorator for model builders that puts them into a list; the docstring becomes the reason."""

    def problem(kind, dimension, optimum, status="optimal"):
        def register(build):
            reason = " ".join(build.__doc__.split())
            value = None if optimum is None else float(optimum)
            problems.append(Known(build.__name__, kind, dimension, value, status, reason, build))
            return build

        return register

    return problem


problem = register_in(PROBLEMS)


def infeasible(dimension):
    return problem("infeasible", dimension, None, "infeasible")


def unbounded(dimension):
    return problem("unbounded", dimension, None, "unbounded")


# ---------------------------------------------------------------------------
# Helpers shared by the models
# ---------------------------------------------------------------------------


def indexed_by(*bounds):
    """A model with the continuous sets m.u, m.v, m.w, m.r, m.s, one per interval."""
    m = pyo.ConcreteModel()
    for name, interval in zip("uvwrs", bounds, strict=False):
        setattr(m, name, ContinuousSet(bounds=interval))
    return m


def polynomial(x, u):
    """The polynomial in u whose coefficients are the indexed variable x."""
    return sum(x[k] * u**k for k in x)


def integral_over_unit_interval(x):
    return sum(x[k] / (k + 1) for k in x)


def minimize(m, expression):
    m.cost = pyo.Objective(expr=expression, sense=pyo.minimize)


def maximize(m, expression):
    m.gain = pyo.Objective(expr=expression, sense=pyo.maximize)


def unit_vector(*angles):
    """Spherical coordinates: len(angles) angles give len(angles) + 1 components."""
    components, radius = [], 1
    for angle in angles:
        components.append(radius * pyo.cos(angle))
        radius = radius * pyo.sin(angle)
    return [*components, radius]


def inner(left, right):
    return sum(left[k] * right[k] for k in range(len(right)))


def quadratic_form(matrix, d):
    n = len(d)
    return sum(float(matrix[i][j]) * d[i] * d[j] for i in range(n) for j in range(n) if matrix[i][j])


def second_difference_matrix(n):
    """Tridiagonal (-1, 2, -1): its smallest eigenvalue is 2 - 2 cos(pi / (n + 1))."""
    return 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


FIVE_CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]

# Nodes and weights on [-1, 1].
SIMPSON = [(-1, 1 / 3), (0, 4 / 3), (1, 1 / 3)]
LOBATTO_4 = [(-1, 1 / 6), (-1 / sqrt(5), 5 / 6), (1 / sqrt(5), 5 / 6), (1, 1 / 6)]
LOBATTO_5 = [
    (-1, 1 / 10),
    (-sqrt(3 / 7), 49 / 90),
    (0, 32 / 45),
    (sqrt(3 / 7), 49 / 90),
    (1, 1 / 10),
]
GAUSS_2 = [(-1 / sqrt(3), 1), (1 / sqrt(3), 1)]
RADAU_LEFT_2 = [(-1, 1 / 2), (1 / 3, 3 / 2)]
RADAU_RIGHT_2 = [(-1 / 3, 3 / 2), (1, 1 / 2)]
RADAU_RIGHT_3 = [
    (-(1 + sqrt(6)) / 5, (16 - sqrt(6)) / 18),
    ((sqrt(6) - 1) / 5, (16 + sqrt(6)) / 18),
    (1, 2 / 9),
]


def on_unit_interval(rule, function):
    """Apply a quadrature rule given on [-1, 1] to a function on [0, 1]."""
    return sum(w / 2 * function((1 + t) / 2) for t, w in rule)


def chebyshev_polynomial(n, z):
    return float(np.polynomial.chebyshev.chebval(z, [0] * n + [1]))


EXP_BY_LINE = (2 - e + (e - 1) * log(e - 1)) / 2


def largest_over_vertices(gain, rows, right_hand_sides, bounds):
    """Maximize gain @ x over the finitely many rows of a robust program."""
    answer = linprog(-np.array(gain), np.array(rows), right_hand_sides, bounds=bounds)
    assert answer.status == 0
    return -answer.fun


# ---------------------------------------------------------------------------
# One-sided L1 approximation
# ---------------------------------------------------------------------------


def polynomial_above(degree, function):
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(degree + 1))
    minimize(m, integral_over_unit_interval(m.x))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= function(u)

    return m


def polynomial_below(degree, function):
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(degree + 1))
    maximize(m, integral_over_unit_interval(m.x))

    @m.SemiInfiniteConstraint(m.u)
    def support(m, u):
        return polynomial(m.x, u) <= function(u)

    return m


@problem("one-sided L1", 1, (1 + e) / 2)
def exp_above_line():
    """The best line above a convex function is its chord, so the optimum is the
    trapezoidal rule."""
    return polynomial_above(1, pyo.exp)


@problem("one-sided L1", 1, on_unit_interval(RADAU_RIGHT_2, exp))
def exp_above_quadratic():
    """The third derivative is positive, so the dual measure is the Radau rule with the
    right end: 3/4 exp(1/3) + 1/4 e."""
    return polynomial_above(2, pyo.exp)


@problem("one-sided L1", 1, on_unit_interval(SIMPSON, exp))
def exp_above_cubic():
    """The fourth derivative is positive, so the dual measure is the three-point Lobatto
    rule (Simpson)."""
    return polynomial_above(3, pyo.exp)


@problem("one-sided L1", 1, on_unit_interval(LOBATTO_5, exp))
def exp_above_degree_seven():
    """The eighth derivative is positive, so the dual measure is the five-point Lobatto
    rule."""
    return polynomial_above(7, pyo.exp)


@problem("one-sided L1", 1, on_unit_interval(GAUSS_2, exp))
def exp_below_cubic():
    """The fourth derivative is positive, so the dual measure of the best cubic from
    below is the two-point Gauss rule."""
    return polynomial_below(3, pyo.exp)


@problem("one-sided L1", 1, on_unit_interval(RADAU_RIGHT_2, tan))
def tangent_above_quadratic():
    """All derivatives of tan are positive on [0, 1], so the dual measure is the Radau
    rule with the right end; the value is the 0.6490 of the literature."""
    return polynomial_above(2, pyo.tan)


@problem("one-sided L1", 1, on_unit_interval(LOBATTO_4, tan))
def tangent_above_quintic():
    """All derivatives of tan are positive on [0, 1], so for degree five the dual
    measure is the four-point Lobatto rule."""
    return polynomial_above(5, pyo.tan)


@problem("one-sided L1", 1, on_unit_interval(RADAU_RIGHT_3, exp))
def exp_above_quartic_on_range_set():
    """The fifth derivative is positive, so the dual measure is the three-point Radau
    rule with the right end; the index set is a continuous RangeSet."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, 1, 0)
    m.x = pyo.Var(range(5))
    minimize(m, integral_over_unit_interval(m.x))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) - pyo.exp(u) >= 0

    return m


@problem("one-sided L1", 1, 0.7)
def reciprocal_above_quadratic():
    """The third derivative of 1/(1+u) is negative, so the dual measure is the Radau
    rule with the left end: 1/4 + 3/4 * 3/5."""
    return polynomial_above(2, lambda u: 1 / (1 + u))


@problem("one-sided L1", 1, 2 / sqrt(3))
def absolute_value_above_quadratic():
    """On [-1, 1] an even quadratic a + b u**2 stays above |u| when 4ab >= 1, and the
    minimum of 2a + 2b/3 is 2/sqrt(3), touching at the Gauss nodes."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(3))
    minimize(m, 2 * m.x[0] + 2 / 3 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= abs(u)

    return m


@problem("one-sided L1", 1, 2 / 3)
def absolute_value_below_quadratic():
    """u**2 is feasible with integral 2/3 on [-1, 1], and Simpson's rule, exact for
    quadratics, gives 2/3 for |u| as a bound."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(3))
    maximize(m, 2 * m.x[0] + 2 / 3 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def support(m, u):
        return polynomial(m.x, u) <= abs(u)

    return m


@problem("one-sided L1", 1, 1 / 2)
def square_root_below_line():
    """sqrt is concave, so the best line below it is the chord; the slope of sqrt is
    infinite at the binding point 0."""
    return polynomial_below(1, pyo.sqrt)


@problem("one-sided L1", 1, 1 / 3 + 1 / 96)
def parabola_above_piecewise_linear():
    """For a convex function the best piecewise linear function above it interpolates at
    the knots, so the optimum is the composite trapezoidal rule of step 1/4."""
    m = indexed_by((0, 1))
    m.K = pyo.RangeSet(0, 4)
    m.x = pyo.Var(m.K)
    minimize(m, sum(m.x[k] * (1 / 8 if k in (0, 4) else 1 / 4) for k in m.K))

    def hat(k, u):
        return pyo.Expr_if(abs(u - k / 4) <= 1 / 4, 1 - 4 * abs(u - k / 4), 0)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return sum(m.x[k] * hat(k, u) for k in m.K) >= u**2

    return m


@problem("one-sided L1", 1, 5 / 7)
def step_above_line():
    """The best line above the indicator of u <= 0.3 passes through (0.3, 1) and (1, 0);
    the masses 5/7 and 2/7 there have the mean 1/2 and prove it."""
    return polynomial_above(1, lambda u: pyo.Expr_if(u <= 0.3, 1, 0))


@problem("one-sided L1", 1, 5 / 3)
def function_inside_the_span():
    """The function 1 + 2u - u**2 is itself a candidate, so every row binds and the
    optimum is its integral 5/3."""
    return polynomial_above(2, lambda u: 1 + 2 * u - u**2)


@problem("one-sided L1", 1, 1.0)
def concave_kink_above_line():
    """For a concave function the best mean value of a line above it is f(1/2) = 1;
    every slope between -2 and 0 is optimal, and with slope 0 the rows bind on all of
    [0, 1/2]."""
    return polynomial_above(1, lambda u: pyo.Expr_if(u <= 0.5, 1, 2 - 2 * u))


@problem("one-sided L1", 2, ((1 + e) / 2) ** 2)
def exp_above_bilinear():
    """exp(u+v) is convex in each coordinate, so its bilinear interpolant at the corners
    lies above it and the optimum is the mean of the four corner values."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var([0, 1], [0, 1])
    minimize(m, sum(m.x[i, j] / 2 ** (i + j) for i, j in m.x))

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return sum(m.x[i, j] * u**i * v**j for i, j in m.x) >= pyo.exp(u + v)

    return m


@problem("one-sided L1", 2, e)
def exp_below_bilinear():
    """The midpoint rule is exact for bilinear functions, so exp(1/2 + 1/2) is a bound,
    and the tangent plane at the centre attains it because exp(u+v) is convex."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var([0, 1], [0, 1])
    maximize(m, sum(m.x[i, j] / 2 ** (i + j) for i, j in m.x))

    @m.SemiInfiniteConstraint(m.u, m.v)
    def support(m, u, v):
        return sum(m.x[i, j] * u**i * v**j for i, j in m.x) <= pyo.exp(u + v)

    return m


@problem(
    "one-sided L1",
    2,
    on_unit_interval(RADAU_RIGHT_2, exp) + on_unit_interval(RADAU_RIGHT_2, tan),
)
def separable_sum_above_quadratics():
    """exp(u) + tan(v) under p(u) + q(v) with quadratic p and q separates: the product
    of the two Radau measures is dual feasible, so the optimum is the sum of the two
    one-dimensional optima."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    m.y = pyo.Var([1, 2])
    minimize(m, integral_over_unit_interval(m.x) + integral_over_unit_interval(m.y))

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return polynomial(m.x, u) + polynomial(m.y, v) >= pyo.exp(u) + pyo.tan(v)

    return m


@problem("one-sided L1", 2, cosh(1))
def exp_above_plane_on_disc():
    """On the unit disc the mean of a + b u + c v is a; the points (1, 0) and (-1, 0)
    give a >= cosh 1, attained by cosh 1 + u sinh 1."""
    m = indexed_by((-1, 1), (-1, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0])

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**2 + v**2 <= 1)
    def cover(m, u, v):
        return m.x[0] + m.x[1] * u + m.x[2] * v >= pyo.exp(u)

    return m


@problem("one-sided L1", 2, (1 + e + e**2) / 3)
def exp_above_plane_on_triangle():
    """The best plane above a convex function on a triangle interpolates at the
    vertices, so its mean is the mean of the three vertex values."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + (m.x[1] + m.x[2]) / 3)

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u + v <= 1)
    def cover(m, u, v):
        return m.x[0] + m.x[1] * u + m.x[2] * v >= pyo.exp(u + 2 * v)

    return m


@problem("one-sided L1", 3, ((1 + e) / 2) ** 3)
def exp_above_trilinear():
    """exp(u+v+w) is convex in each coordinate, so the trilinear interpolant at the
    corners lies above it and the optimum is the mean of the eight corner values."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.powers = pyo.Set(initialize=list(product((0, 1), repeat=3)))
    m.x = pyo.Var(m.powers)
    minimize(m, sum(m.x[p] / 2 ** sum(p) for p in m.powers))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def cover(m, u, v, w):
        return sum(m.x[i, j, k] * u**i * v**j * w**k for i, j, k in m.powers) >= pyo.exp(u + v + w)

    return m


@problem("one-sided L1", 3, exp(1.5))
def exp_below_affine_in_three_dimensions():
    """By convexity the best affine function below has its mean equal to the value at
    the centre of the cube, where the tangent plane touches (Jensen)."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(4))
    maximize(m, m.x[0] + (m.x[1] + m.x[2] + m.x[3]) / 2)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def support(m, u, v, w):
        return m.x[0] + m.x[1] * u + m.x[2] * v + m.x[3] * w <= pyo.exp(u + v + w)

    return m


@problem("one-sided L1", 4, ((1 + e) / 2) ** 4)
def exp_above_multilinear_in_four_dimensions():
    """exp of the sum is convex in each coordinate, so the multilinear interpolant at
    the corners lies above it and the optimum is the mean of the 16 corner values."""
    m = indexed_by((0, 1), (0, 1), (0, 1), (0, 1))
    m.powers = pyo.Set(initialize=list(product((0, 1), repeat=4)))
    m.x = pyo.Var(m.powers)
    minimize(m, sum(m.x[p] / 2 ** sum(p) for p in m.powers))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def cover(m, u, v, w, r):
        return sum(m.x[i, j, k, n] * u**i * v**j * w**k * r**n for i, j, k, n in m.powers) >= pyo.exp(u + v + w + r)

    return m


@problem("one-sided L1", 4, (5 + e**2 + exp(-1)) / 5)
def convex_sum_above_affine_on_four_simplex():
    """On the simplex the best affine function above a convex function interpolates at
    the five vertices, where the values are 1, e**2, 2, 1/e, 2; the objective is the
    value at the centroid, their mean."""
    m = indexed_by((0, 1), (0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(5))
    minimize(m, m.x[0] + (m.x[1] + m.x[2] + m.x[3] + m.x[4]) / 5)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, where=lambda m, u, v, w, r: u + v + w + r <= 1)
    def cover(m, u, v, w, r):
        affine = m.x[0] + m.x[1] * u + m.x[2] * v + m.x[3] * w + m.x[4] * r
        return affine >= pyo.exp(2 * u - w) + (v + r) ** 2

    return m


MEAN_OF_FIVE = (0.3, 0.45, 0.55, 0.7, 0.85)


@problem("one-sided L1", 5, sqrt(1 + sum(z**2 for z in MEAN_OF_FIVE)))
def norm_below_affine_in_five_dimensions():
    """By convexity the affine functions below sqrt(1 + |u|**2) reach its value at any
    inner point of the cube, here (0.3, 0.45, 0.55, 0.7, 0.85), and no more (Jensen)."""
    m = indexed_by((0, 1), (0, 1), (0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(6))
    maximize(m, inner(m.x, (1, *MEAN_OF_FIVE)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def support(m, u, v, w, r, s):
        point = (1, u, v, w, r, s)
        return inner(m.x, point) <= pyo.sqrt(1 + u**2 + v**2 + w**2 + r**2 + s**2)

    return m


@problem("one-sided L1", 5, 5 / 2)
def squares_above_affine_in_five_dimensions():
    """Each square lies below its coordinate on [0, 1], so the sum of coordinates is the
    best affine function above, with mean 5/2; all 32 corners bind."""
    m = indexed_by((0, 1), (0, 1), (0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(6))
    minimize(m, m.x[0] + sum(m.x[k] for k in range(1, 6)) / 2)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def cover(m, u, v, w, r, s):
        point = (1, u, v, w, r, s)
        return inner(m.x, point) >= u**2 + v**2 + w**2 + r**2 + s**2

    return m


# ---------------------------------------------------------------------------
# Chebyshev approximation
# ---------------------------------------------------------------------------


def best_uniform_polynomial(degree, function, interval=(-1, 1), where=None):
    m = indexed_by(interval)
    m.x = pyo.Var(range(degree + 1))
    m.error = pyo.Var()
    minimize(m, m.error)
    options = {} if where is None else {"where": where}

    @m.SemiInfiniteConstraint(m.u, **options)
    def upper(m, u):
        return polynomial(m.x, u) - function(u) <= m.error

    @m.SemiInfiniteConstraint(m.u, **options)
    def lower(m, u):
        return polynomial(m.x, u) - function(u) >= -m.error

    return m


@problem("Chebyshev approximation", 1, 1 / 8)
def fourth_power_by_cubic():
    """The error of the best approximation is T_4 / 8."""
    return best_uniform_polynomial(3, lambda u: u**4)


@problem("Chebyshev approximation", 1, 2.0**-8)
def ninth_power_by_degree_eight():
    """The error of the best approximation is T_9 / 2**8, with ten binding points."""
    return best_uniform_polynomial(8, lambda u: u**9)


@problem("Chebyshev approximation", 1, 1 / 8)
def absolute_value_by_quadratic():
    """u**2 + 1/8 has the error 1/8 with alternating signs at -1, -1/2, 0, 1/2, 1."""
    return best_uniform_polynomial(2, abs)


@problem("Chebyshev approximation", 1, EXP_BY_LINE)
def exp_by_line():
    """The slope is e - 1, the errors at 0, log(e-1), 1 alternate, and the error is (2 -
    e + (e-1) log(e-1)) / 2."""
    return best_uniform_polynomial(1, pyo.exp, (0, 1))


@problem("Chebyshev approximation", 1, 1 / 8)
def square_root_by_line():
    """1/8 + u has the errors 1/8, -1/8, 1/8 at 0, 1/4, 1."""
    return best_uniform_polynomial(1, pyo.sqrt, (0, 1))


@problem("Chebyshev approximation", 1, 1 / 9)
def simple_pole_by_quartic():
    """Chebyshev: the error for 1/(u - a) on [-1, 1] by degree n is (a - sqrt(a**2 -
    1))**n / (a**2 - 1); a = 5/4 and n = 4 give 1/9."""
    return best_uniform_polynomial(4, lambda u: 1 / (u - 1.25))


@problem("Chebyshev approximation", 1, 1.0)
def oscillation_by_quartic():
    """cos(20 pi u) alternates between 1 and -1 at 21 points of [0, 1], so no polynomial
    of degree 4 improves on zero."""
    return best_uniform_polynomial(4, lambda u: pyo.cos(20 * pi * u), (0, 1))


@problem("Chebyshev approximation", 1, 2 * ((1 - 0.25) / 4) ** 2)
def fourth_power_on_two_intervals():
    """On 1/2 <= |u| <= 1 the least deviation of a monic quartic comes from T_2 in u**2
    mapped onto [1/4, 1]: 2 ((1 - 1/4) / 4)**2."""
    return best_uniform_polynomial(3, lambda u: u**4, where=lambda m, u: abs(u) >= 0.5)


@problem("Chebyshev approximation", 1, 2 * log(2) - 1)
def exp_by_line_with_integer_coefficients():
    """1 + 2u has the error 2 log 2 - 1 at u = log 2; a different constant errs by 1 or
    more at 0, and slopes 1 and 3 err by e - 2 and 4 - e or more at 1."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(2), domain=pyo.Integers, bounds=(-10, 10))
    m.error = pyo.Var(bounds=(0, 100))
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.u)
    def upper(m, u):
        return m.x[0] + m.x[1] * u - pyo.exp(u) <= m.error

    @m.SemiInfiniteConstraint(m.u)
    def lower(m, u):
        return m.x[0] + m.x[1] * u - pyo.exp(u) >= -m.error

    return m


@problem("Chebyshev approximation", 1, 1 / chebyshev_polynomial(3, 1.25))
def residual_polynomial_on_an_interval():
    """The least maximum of |1 - u q(u)| on [1, 9] with quadratic q is 1/T_3(10/8), the
    Chebyshev iteration."""
    m = indexed_by((1, 9))
    m.q = pyo.Var(range(3))
    m.error = pyo.Var()
    minimize(m, m.error)
    m.signs = pyo.Set(initialize=[-1, 1])

    @m.SemiInfiniteConstraint(m.signs, m.u)
    def residual(m, sign, u):
        return sign * (1 - u * polynomial(m.q, u)) <= m.error

    return m


@problem("Chebyshev approximation", 2, 1 / 2)
def mixed_cubic_monomial_by_quadratics():
    """u**2 v by polynomials of total degree 2 on the square: the error is T_2(u) T_1(v)
    / 2 (Ehlich and Zeller)."""
    m = indexed_by((-1, 1), (-1, 1))
    m.powers = pyo.Set(initialize=[(i, j) for i in range(3) for j in range(3 - i)])
    m.x = pyo.Var(m.powers)
    m.error = pyo.Var()
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def upper(m, u, v):
        return u**2 * v - sum(m.x[i, j] * u**i * v**j for i, j in m.powers) <= m.error

    @m.SemiInfiniteConstraint(m.u, m.v)
    def lower(m, u, v):
        return u**2 * v - sum(m.x[i, j] * u**i * v**j for i, j in m.powers) >= -m.error

    return m


@problem("Chebyshev approximation", 2, (exp(-1) + sinh(1) * log(sinh(1))) / 2)
def exp_by_plane_on_disc():
    """Averaging over v -> -v removes the coefficient of v, which leaves exp by a line
    on [-1, 1]: slope sinh 1 and error (1/e + sinh 1 log sinh 1) / 2."""
    m = indexed_by((-1, 1), (-1, 1))
    m.x = pyo.Var(range(3))
    m.error = pyo.Var()
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**2 + v**2 <= 1)
    def upper(m, u, v):
        return pyo.exp(u) - inner(m.x, (1, u, v)) <= m.error

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**2 + v**2 <= 1)
    def lower(m, u, v):
        return pyo.exp(u) - inner(m.x, (1, u, v)) >= -m.error

    return m


@problem("Chebyshev approximation", 3, 3 * EXP_BY_LINE)
def sum_of_exponentials_by_affine():
    """The errors of the three one-dimensional best lines add: masses at (0,0,0),
    (1,1,1) and at the three-fold interior alternation point annihilate affine functions
    and give three times the error for one exponential."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(4))
    m.error = pyo.Var()
    m.signs = pyo.Set(initialize=[-1, 1])
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.signs, m.u, m.v, m.w)
    def both(m, sign, u, v, w):
        value = pyo.exp(u) + pyo.exp(v) + pyo.exp(w)
        return sign * (value - inner(m.x, (1, u, v, w))) <= m.error

    return m


@problem("Chebyshev approximation", 3, 1.0)
def product_of_three_by_lower_products():
    """The eight corners with signs u v w annihilate every proper sub-product, and the
    monomial u v w is 1 in absolute value there, so the error is 1."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1))
    m.powers = pyo.Set(initialize=[p for p in product((0, 1), repeat=3) if sum(p) < 3])
    m.x = pyo.Var(m.powers, bounds=(-10, 10))
    m.error = pyo.Var(bounds=(0, 100))
    m.signs = pyo.Set(initialize=[-1, 1])
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.signs, m.u, m.v, m.w)
    def both(m, sign, u, v, w):
        approximant = sum(m.x[i, j, k] * u**i * v**j * w**k for i, j, k in m.powers)
        return sign * (u * v * w - approximant) <= m.error

    return m


@problem("Chebyshev approximation", 4, 4 * EXP_BY_LINE)
def sum_of_four_exponentials_by_affine():
    """As in one dimension: the errors of the four best lines add, proved by masses at
    the two extreme corners and the interior alternation point."""
    m = indexed_by((0, 1), (0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(5))
    m.error = pyo.Var()
    m.signs = pyo.Set(initialize=[-1, 1])
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.signs, m.u, m.v, m.w, m.r)
    def both(m, sign, u, v, w, r):
        value = pyo.exp(u) + pyo.exp(v) + pyo.exp(w) + pyo.exp(r)
        return sign * (value - inner(m.x, (1, u, v, w, r))) <= m.error

    return m


@problem("Chebyshev approximation", 5, 5 / 2)
def sum_of_five_squares_by_affine():
    """On [-1, 1]**5 the squared norm is 0 at the centre and 5 at the corners, whose
    mean is the centre, so the constant 5/2 with error 5/2 is best."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(6))
    m.error = pyo.Var()
    m.signs = pyo.Set(initialize=[-1, 1])
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.signs, m.u, m.v, m.w, m.r, m.s)
    def both(m, sign, u, v, w, r, s):
        value = u**2 + v**2 + w**2 + r**2 + s**2
        return sign * (value - inner(m.x, (1, u, v, w, r, s))) <= m.error

    return m


# ---------------------------------------------------------------------------
# Extremal polynomials
# ---------------------------------------------------------------------------


@problem("extremal polynomial", 1, 16.0)
def largest_leading_coefficient():
    """Among quintics bounded by 1 on [-1, 1] the Chebyshev polynomial T_5 has the
    largest leading coefficient, 2**4."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(6))
    maximize(m, m.x[5])

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return (-1, polynomial(m.x, u), 1)

    return m


@problem("extremal polynomial", 1, 16.0)
def largest_derivative_at_the_end():
    """Markov: a quartic bounded by 1 on [-1, 1] has at most the derivative 4**2 at
    1."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(5))
    maximize(m, sum(k * m.x[k] for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return pyo.inequality(-1, polynomial(m.x, u), 1)

    return m


@problem("extremal polynomial", 1, 97.0)
def largest_value_outside_the_interval():
    """A quartic bounded by 1 on [-1, 1] is at most T_4(2) = 97 at 2."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(5))
    maximize(m, sum(2**k * m.x[k] for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return (-1, polynomial(m.x, u), 1)

    return m


@problem("extremal polynomial", 1, 4.0)
def snake_inside_the_unit_circle():
    """With |p(u)| <= sqrt(1 - u**2) the quartic (1 - u**2) U_2(u) has the largest
    leading coefficient in absolute value, 4; at both ends the band has width zero, so
    there is no Slater point."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(5))
    maximize(m, m.x[4])

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        height = pyo.sqrt(1 - u**2)
        return (-height, polynomial(m.x, u), height)

    return m


@problem("extremal polynomial", 1, 2 * cos(pi / 6))
def fejer_first_coefficient():
    """Fejer: 1 + sum a_k cos(k u) >= 0 with four cosines forces a_1 <= 2 cos(pi /
    6)."""
    m = indexed_by((0, pi))
    m.a = pyo.Var(range(1, 5))
    maximize(m, m.a[1])

    @m.SemiInfiniteConstraint(m.u)
    def nonnegative(m, u):
        return 1 + sum(m.a[k] * pyo.cos(k * u) for k in m.a) >= 0

    return m


@problem("extremal polynomial", 1, 3.0)
def bernstein_derivative():
    """Bernstein: a trigonometric polynomial of degree 3 bounded by 1 has a derivative
    of at most 3, attained by sin(3u) at 0."""
    m = indexed_by((0, 2 * pi))
    m.a = pyo.Var(range(4))
    m.b = pyo.Var(range(1, 4))
    maximize(m, sum(k * m.b[k] for k in m.b))

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        cosines = sum(m.a[k] * pyo.cos(k * u) for k in m.a)
        sines = sum(m.b[k] * pyo.sin(k * u) for k in m.b)
        return (-1, cosines + sines, 1)

    return m


@problem("extremal polynomial", 1, 2.0)
def steepest_line_between_two_parabolas():
    """The line a + b u between -1 - u**2 and 1 + u**2 has a + b <= 2 and a - b >= -2,
    so b <= 2; the line 2u attains it and touches at u = 1 and u = -1."""
    m = indexed_by((-1.7, 2.3))
    m.intercept = pyo.Var()
    m.slope = pyo.Var()
    maximize(m, m.slope)

    @m.SemiInfiniteConstraint(m.u)
    def below(m, u):
        return m.intercept + m.slope * u <= 1 + u**2

    @m.SemiInfiniteConstraint(m.u)
    def above(m, u):
        return m.intercept + m.slope * u >= -1 - u**2

    return m


@problem("extremal polynomial", 2, 4.0)
def largest_mixed_coefficient_on_the_square():
    """For u**2 v**2 times a coefficient plus terms of total degree below 4, bounded by
    1 on [-1, 1]**2, the coefficient is at most 4, attained by T_2(u) T_2(v) with its
    lower terms (Ehlich and Zeller)."""
    m = indexed_by((-1, 1), (-1, 1))
    m.powers = pyo.Set(initialize=[(i, j) for i in range(4) for j in range(4 - i)] + [(2, 2)])
    m.x = pyo.Var(m.powers)
    maximize(m, m.x[2, 2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def band(m, u, v):
        return (-1, sum(m.x[i, j] * u**i * v**j for i, j in m.powers), 1)

    return m


# ---------------------------------------------------------------------------
# Sphere packing bounds of Delsarte
# ---------------------------------------------------------------------------


def delsarte_bound(dimension, largest_cosine, degree):
    """Minimize 1 + sum f_k subject to sum f_k P_k(u) <= -1 on [-1, largest_cosine],
    with the Gegenbauer polynomials P_k normalized to P_k(1) = 1."""
    power = np.polynomial.polynomial
    gegenbauer = [np.array([1.0]), np.array([0.0, 1.0])]
    for k in range(1, degree):
        ahead = (2 * k + dimension - 2) * power.polymulx(gegenbauer[k])
        gegenbauer.append(power.polysub(ahead, k * gegenbauer[k - 1]) / (k + dimension - 2))
    m = indexed_by((-1, largest_cosine))
    m.f = pyo.Var(range(1, degree + 1), bounds=(0, None))
    minimize(m, 1 + sum(m.f[k] for k in m.f))

    @m.SemiInfiniteConstraint(m.u)
    def separated(m, u):
        return sum(m.f[k] * sum(float(c) * u**j for j, c in enumerate(gegenbauer[k]) if c) for k in m.f) <= -1

    return m


@problem("Delsarte bound", 1, 8.0)
def cross_polytope_in_four_dimensions():
    """At most 8 unit vectors of R**4 have pairwise nonpositive inner products; the
    linear programming bound of degree 2 is sharp."""
    return delsarte_bound(4, 0.0, 2)


@problem("Delsarte bound", 1, 12.0)
def icosahedron():
    """The linear programming bound of degree 5 for the largest cosine 1/sqrt(5) in R**3
    is sharp, with the 12 vertices of the icosahedron."""
    return delsarte_bound(3, 1 / sqrt(5), 5)


@problem("Delsarte bound", 1, 240.0)
def kissing_number_in_eight_dimensions():
    """The linear programming bound of degree 6 is sharp: 240, the minimal vectors of
    the lattice E8 (Levenshtein; Odlyzko and Sloane)."""
    return delsarte_bound(8, 0.5, 6)


# ---------------------------------------------------------------------------
# Support functions and norms
# ---------------------------------------------------------------------------


@problem("support function", 1, 5.0)
def disc():
    """The rows describe the unit disc, so the optimum is the norm of (3, 4)."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(2))
    maximize(m, 3 * m.x[0] + 4 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return inner(m.x, unit_vector(u)) <= 1

    return m


@problem("support function", 2, 3.0)
def ball_in_three_dimensions():
    """The rows describe the unit ball, so the optimum is the norm of (1, 2, 2)."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(3))
    maximize(m, m.x[0] + 2 * m.x[1] + 2 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def inside(m, u, v):
        return inner(m.x, unit_vector(u, v)) <= 1

    return m


@problem("support function", 2, sqrt(14))
def ellipsoid_in_three_dimensions():
    """The right-hand side sqrt(d' Q d) is the support function of an ellipsoid with Q =
    diag(1, 4, 9), so the optimum for (1, 1, 1) is sqrt(1 + 4 + 9)."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(3))
    maximize(m, m.x[0] + m.x[1] + m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def inside(m, u, v):
        d = unit_vector(u, v)
        return inner(m.x, d) <= pyo.sqrt(d[0] ** 2 + 4 * d[1] ** 2 + 9 * d[2] ** 2)

    return m


@problem("support function", 2, 17**0.25)
def fourth_power_norm():
    """Rows over the unit ball of the 4-norm describe the unit ball of its dual norm, so
    the optimum for (1, 2) is the 4-norm of (1, 2)."""
    m = indexed_by((-1, 1), (-1, 1))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] + 2 * m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**4 + v**4 <= 1)
    def inside(m, u, v):
        return m.x[0] * u + m.x[1] * v <= 1

    return m


@problem("support function", 2, 4 / 3)
def l_shaped_index_set():
    """On the unit square without the open upper right quarter the corners (1, 1/2) and
    (1/2, 1) bind at x = (2/3, 2/3); weights 2/3 on each prove 4/3."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] + m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: (u <= 0.5) | (v <= 0.5))
    def inside(m, u, v):
        return m.x[0] * u + m.x[1] * v <= 1

    return m


@problem("support function", 2, sqrt(1.5))
def least_squares_by_the_norm():
    """t >= d'(A x - b) for all unit vectors d means t >= |A x - b|; the line through
    (0, 1), (1, 0), (2, 2) has the residuals 1/2, -1, 1/2."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(2))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def residual(m, u, v):
        d = unit_vector(u, v)
        data = (1, 0, 2)
        return m.t >= sum(d[k] * (m.x[0] + k * m.x[1] - data[k]) for k in range(3))

    return m


@problem("support function", 1, 2.5)
def smallest_enclosing_circle():
    """The right triangle with legs 4 and 3 has its circumcircle, of radius 5/2, as
    smallest enclosing circle."""
    m = indexed_by((0, 2 * pi))
    corner = {"a": (0, 0), "b": (4, 0), "c": (0, 3)}
    m.corners = pyo.Set(initialize=list(corner))
    m.centre = pyo.Var(range(2))
    m.radius = pyo.Var()
    minimize(m, m.radius)

    @m.SemiInfiniteConstraint(m.corners, m.u)
    def encloses(m, c, u):
        d = unit_vector(u)
        return inner(m.centre, d) + m.radius >= inner(corner[c], d)

    return m


@problem("support function", 2, sqrt(3))
def smallest_enclosing_ball_of_a_tetrahedron():
    """The regular tetrahedron on alternate corners of the cube [-1, 1]**3 has the
    circumscribed ball of radius sqrt(3) around the origin."""
    m = indexed_by((0, pi), (0, 2 * pi))
    corner = {0: (1, 1, 1), 1: (1, -1, -1), 2: (-1, 1, -1), 3: (-1, -1, 1)}
    m.corners = pyo.Set(initialize=list(corner))
    m.centre = pyo.Var(range(3))
    m.radius = pyo.Var()
    minimize(m, m.radius)

    @m.SemiInfiniteConstraint(m.corners, m.u, m.v)
    def encloses(m, c, u, v):
        d = unit_vector(u, v)
        return inner(m.centre, d) + m.radius >= inner(corner[c], d)

    return m


@problem("support function", 1, 2 * sqrt(3))
def fermat_point_of_an_equilateral_triangle():
    """The sum of distances to the corners of an equilateral triangle of side 2 is least
    at the centre, where it is 3 * 2 / sqrt(3)."""
    m = indexed_by((0, 2 * pi))
    corner = {0: (0, 0), 1: (2, 0), 2: (1, sqrt(3))}
    m.corners = pyo.Set(initialize=list(corner))
    m.point = pyo.Var(range(2))
    m.distance = pyo.Var(m.corners)
    minimize(m, sum(m.distance[c] for c in m.corners))

    @m.SemiInfiniteConstraint(m.corners, m.u)
    def reaches(m, c, u):
        d = unit_vector(u)
        return m.distance[c] >= sum((m.point[k] - corner[c][k]) * d[k] for k in range(2))

    return m


@problem("support function", 3, 5.0)
def ball_in_four_dimensions():
    """The rows describe the unit ball of R**4, so the optimum is the norm of (1, 2, 2,
    4)."""
    m = indexed_by((0, pi), (0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(4))
    maximize(m, m.x[0] + 2 * m.x[1] + 2 * m.x[2] + 4 * m.x[3])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def inside(m, u, v, w):
        return inner(m.x, unit_vector(u, v, w)) <= 1

    return m


@problem("one-sided L1", 3, cosh(1))
def exp_above_affine_on_a_ball():
    """On the unit ball of R**3 the mean of an affine function is its constant; the
    points (1, 0, 0) and (-1, 0, 0) give cosh 1, attained by cosh 1 + u sinh 1."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(4))
    minimize(m, m.x[0])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, where=lambda m, u, v, w: u**2 + v**2 + w**2 <= 1)
    def cover(m, u, v, w):
        return m.x[0] + m.x[1] * u + m.x[2] * v + m.x[3] * w >= pyo.exp(u)

    return m


@problem("support function", 4, 4.0)
def ball_in_five_dimensions():
    """The rows describe the unit ball of R**5, so the optimum is the norm of (1, 1, 1,
    2, 3)."""
    m = indexed_by((0, pi), (0, pi), (0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(5))
    maximize(m, m.x[0] + m.x[1] + m.x[2] + 2 * m.x[3] + 3 * m.x[4])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def inside(m, u, v, w, r):
        return inner(m.x, unit_vector(u, v, w, r)) <= 1

    return m


@problem("support function", 5, 3.0)
def ball_in_six_dimensions():
    """The rows describe the unit ball of R**6, so the optimum is the norm of (1, 1, 1,
    1, 1, 2)."""
    m = indexed_by((0, pi), (0, pi), (0, pi), (0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(6))
    maximize(m, sum(m.x[k] for k in range(5)) + 2 * m.x[5])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def inside(m, u, v, w, r, s):
        return inner(m.x, unit_vector(u, v, w, r, s)) <= 1

    return m


@problem("support function", 5, 7.0)
def cross_polytope_in_five_dimensions():
    """Rows over the cube [-1, 1]**5 describe the unit ball of the 1-norm, so the
    optimum is the largest cost in absolute value."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(5))
    maximize(m, inner(m.x, (3, -7, 2, 5, -1)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def inside(m, u, v, w, r, s):
        return inner(m.x, (u, v, w, r, s)) <= 1

    return m


# ---------------------------------------------------------------------------
# Smallest eigenvalues and semidefinite programs
# ---------------------------------------------------------------------------


@problem("eigenvalue", 1, (5 - sqrt(5)) / 2)
def smallest_eigenvalue_of_order_two():
    """The largest t with d'(A - t I)d >= 0 on the circle is the smallest eigenvalue of
    A = [[2, 1], [1, 3]]."""
    m = indexed_by((0, pi))
    m.t = pyo.Var()
    maximize(m, m.t)

    @m.SemiInfiniteConstraint(m.u)
    def semidefinite(m, u):
        return quadratic_form([[2, 1], [1, 3]], unit_vector(u)) - m.t >= 0

    return m


@problem("eigenvalue", 2, 36.0)
def diagonal_above_the_ones_matrix():
    """diag(y) - J is positive semidefinite exactly when sum 1/y_i <= 1, so the minimum
    of y_1 + 4 y_2 + 9 y_3 is (1 + 2 + 3)**2."""
    m = indexed_by((0, pi), (0, pi))
    m.y = pyo.Var(range(3))
    minimize(m, m.y[0] + 4 * m.y[1] + 9 * m.y[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def semidefinite(m, u, v):
        d = unit_vector(u, v)
        return sum(m.y[k] * d[k] ** 2 for k in range(3)) >= sum(d) ** 2

    return m


@problem("eigenvalue", 3, 2 - 2 * cos(pi / 5))
def smallest_eigenvalue_of_order_four():
    """The smallest eigenvalue of the second difference matrix of order 4 is 2 - 2
    cos(pi/5)."""
    m = indexed_by((0, pi), (0, pi), (0, pi))
    m.t = pyo.Var()
    maximize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def semidefinite(m, u, v, w):
        d = unit_vector(u, v, w)
        return quadratic_form(second_difference_matrix(4), d) >= m.t

    return m


@problem("eigenvalue", 3, 2 - sqrt(2))
def smallest_eigenvalue_on_the_cube():
    """u'(A - t I)u >= 0 is homogeneous, so the cube may replace the sphere; A is the
    second difference matrix of order 3. At the origin the row reads 0 >= 0, so there is
    no Slater point."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1))
    m.t = pyo.Var()
    maximize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def semidefinite(m, u, v, w):
        form = quadratic_form(second_difference_matrix(3), (u, v, w))
        return form - m.t * (u**2 + v**2 + w**2) >= 0

    return m


@problem("eigenvalue", 4, 2 - sqrt(3))
def smallest_eigenvalue_of_order_five():
    """The smallest eigenvalue of the second difference matrix of order 5 is 2 - 2
    cos(pi/6)."""
    m = indexed_by((0, pi), (0, pi), (0, pi), (0, pi))
    m.t = pyo.Var()
    maximize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def semidefinite(m, u, v, w, r):
        d = unit_vector(u, v, w, r)
        return quadratic_form(second_difference_matrix(5), d) >= m.t

    return m


@problem("eigenvalue", 4, sqrt(5))
def lovasz_number_of_the_five_cycle():
    """The Lovasz number, the least t with t I - J + X positive semidefinite for X
    supported on the edges, is sqrt(5) for the five-cycle."""
    m = indexed_by((0, pi), (0, pi), (0, pi), (0, pi))
    m.edges = pyo.Set(initialize=FIVE_CYCLE)
    m.x = pyo.Var(m.edges, bounds=(-20, 20))
    m.t = pyo.Var(bounds=(0, 20))
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def semidefinite(m, u, v, w, r):
        d = unit_vector(u, v, w, r)
        return m.t + sum(m.x[i, j] * d[i] * d[j] for i, j in m.edges) >= sum(d) ** 2

    return m


@problem("eigenvalue", 4, 5 / 2 * (1 + cos(pi / 5)))
def semidefinite_cut_bound_of_the_five_cycle():
    """Goemans and Williamson: the semidefinite bound on cuts of the five-cycle is 5/2
    (1 + cos(pi/5)); this is its dual, sum y with diag(y) - L/4 semidefinite."""
    m = indexed_by((0, pi), (0, pi), (0, pi), (0, pi))
    m.y = pyo.Var(range(5), bounds=(0, 10))
    minimize(m, sum(m.y[k] for k in range(5)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def semidefinite(m, u, v, w, r):
        d = unit_vector(u, v, w, r)
        laplacian = sum((d[i] - d[j]) ** 2 for i, j in FIVE_CYCLE)
        return sum(m.y[k] * d[k] ** 2 for k in range(5)) >= laplacian / 4

    return m


@problem("eigenvalue", 5, 2.0)
def stability_number_of_the_five_cycle():
    """Motzkin and Straus: the least t with t u'(I + A)u >= (sum u)**2 for all
    nonnegative u is the stability number, 2 for the five-cycle; the rows are
    homogeneous, so the unit cube suffices."""
    m = indexed_by((0, 1), (0, 1), (0, 1), (0, 1), (0, 1))
    m.t = pyo.Var(bounds=(0, 100))
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def copositive(m, u, v, w, r, s):
        z = (u, v, w, r, s)
        form = sum(z[k] ** 2 for k in range(5)) + 2 * sum(z[i] * z[j] for i, j in FIVE_CYCLE)
        return m.t * form - sum(z) ** 2 >= 0

    return m


# ---------------------------------------------------------------------------
# Moment problems
# ---------------------------------------------------------------------------


@problem("moment problem", 1, 0.25)
def scarf_bound():
    """With mean 5, variance 1 and level 5.75 the expected excess is at most (sqrt(1 +
    0.75**2) - 0.75) / 2 = 1/4, attained by atoms at 4.5 and 7, which lie in the support
    [0, 10]."""
    m = indexed_by((0, 10))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + 5 * m.x[1] + 26 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def excess(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= 5.75, u - 5.75, 0)

    return m


@problem("moment problem", 1, 4 / 7)
def cantelli_bound():
    """With mean 0 and variance 1/3 the probability of u >= 1/2 is at most (1/3) / (1/3
    + 1/4), attained by atoms at 1/2 and -2/3, inside [-1, 1]."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[2] / 3)

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= 0.5, 1, 0)

    return m


@problem("moment problem", 1, 1 / 4)
def chebyshev_bound():
    """With mean 0 and variance 1 the probability of |u| >= 2 is at most 1/4, attained
    by atoms at -2, 0 and 2, inside [-3, 3]."""
    m = indexed_by((-3, 3))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def tails(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(abs(u) >= 2, 1, 0)

    return m


@problem("moment problem", 1, 2 / 5)
def markov_bound():
    """With support [0, 10] and mean 2 the probability of u >= 5 is at most 2/5."""
    m = indexed_by((0, 10))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0] + 2 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= 5, 1, 0)

    return m


@problem("moment problem", 1, 0.9 * exp(1 / 3) + 0.1 * e)
def largest_exponential_moment():
    """With support [0, 1], mean 0.4 and variance 0.04 the largest mean of exp has atoms
    at the right end and at 0.4 - 0.04/0.6 = 1/3, with masses 0.1 and 0.9."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + 0.4 * m.x[1] + 0.2 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= pyo.exp(u)

    return m


@problem("moment problem", 2, 0.4 + 0.3 * e + 0.3 * e**2)
def largest_mean_of_a_supermodular_function():
    """exp(u+v) is convex and supermodular, so with means 0.3 and 0.6 the worst
    distribution is the comonotone one on the corners: masses 0.4, 0.3, 0.3 at (0,0),
    (0,1), (1,1)."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + 0.3 * m.x[1] + 0.6 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return m.x[0] + m.x[1] * u + m.x[2] * v >= pyo.exp(u + v)

    return m


@problem("moment problem", 2, 0.6)
def probability_of_a_corner():
    """With means 0.3 and 0.4 on the unit square both coordinates reach 1/2 with
    probability at most min(0.3, 0.4) / 0.5; the indicator jumps along two lines."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + 0.3 * m.x[1] + 0.4 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        corner = pyo.Expr_if(u >= 0.5, pyo.Expr_if(v >= 0.5, 1, 0), 0)
        return m.x[0] + m.x[1] * u + m.x[2] * v >= corner

    return m


@problem("moment problem", 2, 1 / 4)
def probability_outside_a_disc():
    """With mean squared norm 1 the probability of the norm reaching 2 is at most 1/4
    (Markov); the whole circle of radius 2 binds."""
    m = indexed_by((-3, 3), (-3, 3))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0] + m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        squared = u**2 + v**2
        return m.x[0] + m.x[1] * squared >= pyo.Expr_if(squared >= 4, 1, 0)

    return m


@problem("moment problem", 3, 0.3 + 0.2 * e + 0.3 * e**2 + 0.2 * e**3)
def largest_mean_in_three_dimensions():
    """exp(u+v+w) is convex and supermodular, so with means 0.2, 0.5, 0.7 the comonotone
    distribution on the corners is the worst: masses 0.3, 0.2, 0.3, 0.2."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(4))
    minimize(m, m.x[0] + 0.2 * m.x[1] + 0.5 * m.x[2] + 0.7 * m.x[3])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def cover(m, u, v, w):
        return m.x[0] + m.x[1] * u + m.x[2] * v + m.x[3] * w >= pyo.exp(u + v + w)

    return m


# ---------------------------------------------------------------------------
# Filter and antenna design
# ---------------------------------------------------------------------------


@problem("filter design", 1, 1 / chebyshev_polynomial(8, 1 / cos(0.6 / 2)))
def dolph_chebyshev_array_of_nine():
    """Nine symmetric elements, unit response at 0 and the least sidelobe level on [0.6,
    pi]: Dolph's weights give 1 / T_8(1 / cos(0.3))."""
    m = indexed_by((0.6, pi))
    m.x = pyo.Var(range(5))
    m.level = pyo.Var()
    minimize(m, m.level)
    m.unit_response = pyo.Constraint(expr=sum(m.x[k] for k in range(5)) == 1)

    @m.SemiInfiniteConstraint(m.u)
    def upper(m, u):
        return sum(m.x[k] * pyo.cos(k * u) for k in range(5)) <= m.level

    @m.SemiInfiniteConstraint(m.u)
    def lower(m, u):
        return sum(m.x[k] * pyo.cos(k * u) for k in range(5)) >= -m.level

    return m


@problem("filter design", 1, 1 / chebyshev_polynomial(7, 1 / cos(0.8 / 2)))
def dolph_chebyshev_filter_of_length_eight():
    """A linear-phase filter of even length 8 with unit gain at 0 and the least ripple
    on [0.8, pi]: the response is T_7(cos(u/2) / cos(0.4)) / T_7(1 / cos(0.4))."""
    m = indexed_by((0.8, pi))
    m.x = pyo.Var(range(4))
    m.ripple = pyo.Var()
    minimize(m, m.ripple)
    m.unit_gain = pyo.Constraint(expr=sum(m.x[k] for k in range(4)) == 1)
    m.signs = pyo.Set(initialize=[-1, 1])

    @m.SemiInfiniteConstraint(m.signs, m.u)
    def stopband(m, sign, u):
        response = sum(m.x[k] * pyo.cos((k + 0.5) * u) for k in range(4))
        return sign * response <= m.ripple

    return m


@problem("filter design", 1, chebyshev_polynomial(6, 1 / cos(0.9 / 2)))
def largest_main_lobe_with_unit_sidelobes():
    """The Dolph-Chebyshev problem turned round: with the sidelobes of seven elements
    within [-1, 1] on [0.9, pi], the response at 0 is at most T_6(1 / cos(0.45))."""
    m = indexed_by((0.9, pi))
    m.x = pyo.Var(range(4))
    maximize(m, sum(m.x[k] for k in range(4)))

    @m.SemiInfiniteConstraint(m.u)
    def sidelobes(m, u):
        return pyo.inequality(-1, sum(m.x[k] * pyo.cos(k * u) for k in range(4)), 1)

    return m


# ---------------------------------------------------------------------------
# Robust linear programs
# ---------------------------------------------------------------------------

SIGNS_2 = list(product((-1, 1), repeat=2))
SIGNS_3 = list(product((-1, 1), repeat=3))
SIGNS_4 = list(product((-1, 1), repeat=4))
SIGNS_5 = list(product((-1, 1), repeat=5))


@problem(
    "robust LP",
    2,
    largest_over_vertices(
        [3, 2],
        [[1 + 0.2 * u, 1 + 0.3 * v + 0.1 * u * v] for u, v in SIGNS_2] + [[2, 1]],
        [4 + 0.5 * u * v for u, v in SIGNS_2] + [5],
        (0, None),
    ),
)
def robust_bilinear_rows():
    """The row is bilinear in (u, v), so its worst case over the square is at one of the
    four corners; the finite program over the corners is exact."""
    m = indexed_by((-1, 1), (-1, 1))
    m.x = pyo.Var(range(2), bounds=(0, None))
    maximize(m, 3 * m.x[0] + 2 * m.x[1])
    m.capacity = pyo.Constraint(expr=2 * m.x[0] + m.x[1] <= 5)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def resource(m, u, v):
        return (1 + 0.2 * u) * m.x[0] + (1 + 0.3 * v + 0.1 * u * v) * m.x[1] <= 4 + 0.5 * u * v

    return m


@problem("robust LP", 2, 4 / (4 + sqrt(2)))
def robust_over_a_disc():
    """The worst case over the disc is x + y + |(x, y)| / 2 <= 1; for a given sum the
    norm is least at x = y, which gives 4 / (4 + sqrt(2))."""
    m = indexed_by((-1, 1), (-1, 1))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] + m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**2 + v**2 <= 1)
    def resource(m, u, v):
        return (1 + u / 2) * m.x[0] + (1 + v / 2) * m.x[1] <= 1

    return m


@problem(
    "robust LP",
    3,
    largest_over_vertices(
        [5, 4, 3],
        [[exp(0.3 * u), 1 + 0.2 * (u - v) ** 2, 1 + 0.4 * abs(v + w)] for u, v, w in SIGNS_3]
        + [[2 + 0.5 * u * u + 0.1 * w, 1 - 0.2 * v, 0.5 + 0.3 * w] for u, v, w in SIGNS_3],
        [6 + 0.4 * u - 0.2 * w for u, v, w in SIGNS_3] + [7 + 0.3 * v for u, v, w in SIGNS_3],
        (0, None),
    ),
)
def robust_convex_coefficients():
    """With nonnegative x both rows are convex in (u, v, w), so the worst cases are at
    corners of the cube and the finite program over the corners is exact."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(3), bounds=(0, None))
    maximize(m, 5 * m.x[0] + 4 * m.x[1] + 3 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def first(m, u, v, w):
        return (
            pyo.exp(0.3 * u) * m.x[0] + (1 + 0.2 * (u - v) ** 2) * m.x[1] + (1 + 0.4 * abs(v + w)) * m.x[2]
            <= 6 + 0.4 * u - 0.2 * w
        )

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def second(m, u, v, w):
        return (2 + 0.5 * u**2 + 0.1 * w) * m.x[0] + (1 - 0.2 * v) * m.x[1] + (0.5 + 0.3 * w) * m.x[2] <= 7 + 0.3 * v

    return m


def budget_corners(n, budget):
    """Corners of the cube [0, 1]**n with at most `budget` coordinates equal to 1."""
    return [
        [1.0 if k in chosen else 0.0 for k in range(n)]
        for size in range(budget + 1)
        for chosen in combinations(range(n), size)
    ]


@problem(
    "robust LP",
    3,
    largest_over_vertices(
        [4, 5, 6],
        [[2 + c[0], 3 + 2 * c[1], 4 + 1.5 * c[2]] for c in budget_corners(3, 2)],
        [10.0] * len(budget_corners(3, 2)),
        (0, 1.5),
    ),
)
def robust_with_a_budget_of_two():
    """Bertsimas and Sim: the cube [0, 1]**3 cut by u + v + w <= 2 has only corners with
    coordinates 0 and 1, so enumerating them gives the exact finite program."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(3), bounds=(0, 1.5))
    maximize(m, 4 * m.x[0] + 5 * m.x[1] + 6 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, where=lambda m, u, v, w: u + v + w <= 2)
    def weight(m, u, v, w):
        return (2 + u) * m.x[0] + (3 + 2 * v) * m.x[1] + (4 + 1.5 * w) * m.x[2] <= 10

    return m


@problem(
    "robust LP",
    3,
    max(4 * x + 5 * y + 6 * z for x, y, z in product((0, 1), repeat=3) if 3 * x + 5 * y + 5.5 * z <= 9),
)
def robust_binary_knapsack():
    """With nonnegative x every weight is largest at u = v = w = 1, which leaves a
    knapsack with the weights 3, 5, 5.5 and capacity 9, solved by enumeration."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(3), domain=pyo.Binary)
    maximize(m, 4 * m.x[0] + 5 * m.x[1] + 6 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def weight(m, u, v, w):
        return (2 + u) * m.x[0] + (3 + 2 * v) * m.x[1] + (4 + 1.5 * w) * m.x[2] <= 9

    return m


@problem(
    "robust LP",
    4,
    largest_over_vertices(
        [2, 3, -1, 1],
        [[1 + 0.3 * u, 1 + 0.4 * v, -0.5 + 0.5 * w, 0.2 + 0.6 * r] for u, v, w, r in SIGNS_4]
        + [[0.5 * v, -1 + 0.2 * w, 1 + 0.3 * r, 0.4 * u + 0.5] for u, v, w, r in SIGNS_4],
        [5 + 0.5 * (u + v) for u, v, w, r in SIGNS_4] + [4 - 0.5 * w for u, v, w, r in SIGNS_4],
        (-3, 3),
    ),
)
def robust_affine_rows_in_four_dimensions():
    """Both rows are affine in the index, so their worst cases over the cube are at the
    16 corners; the variables may have either sign."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(4), bounds=(-3, 3))
    maximize(m, inner(m.x, (2, 3, -1, 1)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def first(m, u, v, w, r):
        row = (1 + 0.3 * u, 1 + 0.4 * v, -0.5 + 0.5 * w, 0.2 + 0.6 * r)
        return inner(m.x, row) <= 5 + 0.5 * (u + v)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def second(m, u, v, w, r):
        row = (0.5 * v, -1 + 0.2 * w, 1 + 0.3 * r, 0.4 * u + 0.5)
        return inner(m.x, row) <= 4 - 0.5 * w

    return m


def convex_row_of_five(u, v, w, r, s, exponential):
    return (
        exponential(0.2 * (u + v - w)),
        1 + 0.3 * (r - s) ** 2,
        2 + 0.5 * abs(u + s),
        1 + 0.2 * w**4 - 0.1 * v,
    )


@problem(
    "robust LP",
    5,
    largest_over_vertices(
        [3, 4, 6, 2],
        [convex_row_of_five(*c, exp) for c in SIGNS_5] + [[1, 1, 1, 1]],
        [8 + 0.3 * sum(c) for c in SIGNS_5] + [5],
        (0, 4),
    ),
)
def robust_convex_row_in_five_dimensions():
    """With nonnegative x the row is convex in the index, so its worst case is at one of
    the 32 corners and the finite program over the corners is exact."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(4), bounds=(0, 4))
    maximize(m, inner(m.x, (3, 4, 6, 2)))
    m.total = pyo.Constraint(expr=sum(m.x[k] for k in range(4)) <= 5)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def resource(m, u, v, w, r, s):
        row = convex_row_of_five(u, v, w, r, s, pyo.exp)
        return inner(m.x, row) <= 8 + 0.3 * (u + v + w + r + s)

    return m


@problem(
    "robust LP",
    5,
    largest_over_vertices(
        [4, 5, 6, 3, 7],
        [[2 + c[0], 3 + 2 * c[1], 4 + 1.5 * c[2], 1 + 2 * c[3], 5 + 3 * c[4]] for c in budget_corners(5, 2)],
        [12.0] * len(budget_corners(5, 2)),
        (0, 1.5),
    ),
)
def robust_with_a_budget_in_five_dimensions():
    """Bertsimas and Sim: the cube [0, 1]**5 cut by a sum of at most 2 has only corners
    with coordinates 0 and 1, so enumerating the 16 of them gives the exact finite
    program."""
    m = indexed_by((0, 1), (0, 1), (0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(5), bounds=(0, 1.5))
    maximize(m, inner(m.x, (4, 5, 6, 3, 7)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s, where=lambda m, u, v, w, r, s: u + v + w + r + s <= 2)
    def weight(m, u, v, w, r, s):
        row = (2 + u, 3 + 2 * v, 4 + 1.5 * w, 1 + 2 * r, 5 + 3 * s)
        return inner(m.x, row) <= 12

    return m


MIXING = np.array(
    [
        [0.3, 0.1, 0.0, -0.2, 0.1],
        [0.0, 0.4, 0.1, 0.1, -0.1],
        [-0.1, 0.0, 0.5, 0.2, 0.0],
        [0.2, -0.2, 0.0, 0.3, 0.1],
        [0.1, 0.1, -0.1, 0.0, 0.6],
    ]
)


@problem(
    "robust LP",
    5,
    -largest_over_vertices(
        [-3, -2, -4, -3, -5],
        [-(1 + MIXING @ np.array(c)) for c in SIGNS_5],
        [-10.0 - c[0] + c[4] for c in SIGNS_5],
        (0, None),
    ),
)
def robust_covering_in_five_dimensions():
    """The covering row is affine in the index, so its worst case over the cube is at
    one of the 32 corners and the finite program over the corners is exact."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(5), bounds=(0, None))
    minimize(m, inner(m.x, (3, 2, 4, 3, 5)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def demand(m, u, v, w, r, s):
        z = (u, v, w, r, s)
        return sum(m.x[i] * (1 + sum(float(MIXING[i, j]) * z[j] for j in range(5))) for i in range(5)) >= 10 + u - s

    return m


# ---------------------------------------------------------------------------
# Integer variables
# ---------------------------------------------------------------------------


@problem("integer", 1, 4.0)
def exp_above_line_with_integers():
    """For the convex exp the ends decide: x >= 1 and x + y >= e, so x + y >= 3 in
    integers, and 2x + y = x + (x + y) is at least 4."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(domain=pyo.Integers, bounds=(-50, 50))
    m.y = pyo.Var(domain=pyo.Integers, bounds=(-50, 50))
    minimize(m, 2 * m.x + m.y)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x + m.y * u >= pyo.exp(u)

    return m


@problem("integer", 1, 5.0)
def integer_point_in_a_disc():
    """Among the integer points of the disc of radius 5/2 the point (1, 2) maximizes x +
    2y."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(2), domain=pyo.Integers, bounds=(-10, 10))
    maximize(m, m.x[0] + 2 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return inner(m.x, unit_vector(u)) <= 2.5

    return m


@problem(
    "integer",
    2,
    max(x + 2 * y + 3 * z for x, y, z in product(range(-4, 5), repeat=3) if x * x + y * y + z * z <= 3.5**2),
)
def integer_point_in_a_ball():
    """The integer points of the ball of radius 7/2 are enumerated; (1, 1, 3) and (2, 2,
    2) both give 12."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(3), domain=pyo.Integers, bounds=(-10, 10))
    maximize(m, m.x[0] + 2 * m.x[1] + 3 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def inside(m, u, v):
        return inner(m.x, unit_vector(u, v)) <= 3.5

    return m


@problem("integer", 1, e - 0.2)
def one_integer_and_one_continuous_variable():
    """x + y u >= exp(u) with only y an integer: the ends decide, x = max(1, e - y), and
    x + 0.8 y is e, e - 0.2, 2.6, 3.4 for y = 0, 1, 2, 3."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(bounds=(-50, 50))
    m.y = pyo.Var(domain=pyo.Integers, bounds=(-50, 50))
    minimize(m, m.x + 0.8 * m.y)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x + m.y * u >= pyo.exp(u)

    return m


# ---------------------------------------------------------------------------
# Nonsmooth, oscillating and sharply peaked rows
# ---------------------------------------------------------------------------


@problem("oscillating", 1, 1.5)
def line_above_a_rising_oscillation():
    """u + sin(40 pi u) has 20 equal peaks on the line u + 1, and 1/2 lies between two
    of them, so the mean of a line above is at least 3/2; all 20 peaks bind."""
    return polynomial_above(1, lambda u: u + pyo.sin(40 * pi * u))


@problem("oscillating", 1, 4 / 3)
def parabola_above_an_oscillation():
    """u**2 + cos(40 pi u) peaks on u**2 + 1 at the multiples of 1/20; Simpson's nodes
    are among them, so 1/3 + 1 is optimal."""
    return polynomial_above(2, lambda u: u**2 + pyo.cos(40 * pi * u))


@problem("oscillating", 1, exp(-atan(40) / 40) * 40 / sqrt(1601))
def damped_oscillation():
    """exp(-u) sin(40u) is largest at its first peak, u = atan(40) / 40."""
    m = indexed_by((0, 3))
    m.x = pyo.Var()
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x >= pyo.exp(-u) * pyo.sin(40 * u)

    return m


@problem("oscillating", 2, 1.5)
def plane_above_an_oscillation():
    """u + sin(20 pi u) sin(20 pi v) peaks on u + 1; the peaks are symmetric about the
    centre of the square, so the mean of a plane above is at least 3/2."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + (m.x[1] + m.x[2]) / 2)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        waves = pyo.sin(20 * pi * u) * pyo.sin(20 * pi * v)
        return m.x[0] + m.x[1] * u + m.x[2] * v >= u + waves

    return m


@problem("narrow peak", 1, 1.0)
def narrow_gaussian():
    """The Gaussian of width 0.01 has the maximum 1 at 0.73131."""
    m = indexed_by((0, 1))
    m.x = pyo.Var()
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x >= pyo.exp(-(((u - 0.73131) / 0.01) ** 2))

    return m


@problem("narrow peak", 1, 5.0)
def narrow_gaussian_as_a_coefficient():
    """The coefficient of y takes the values between 0 and 1, so x + y <= 2 and x <= 2
    remain; with y <= 3/2 the best point is (1/2, 3/2)."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(bounds=(0, None))
    m.y = pyo.Var(bounds=(None, 1.5))
    maximize(m, m.x + 3 * m.y)

    @m.SemiInfiniteConstraint(m.u)
    def resource(m, u):
        return m.x + pyo.exp(-(((u - 0.27183) / 0.01) ** 2)) * m.y <= 2

    return m


@problem("narrow peak", 2, 3.0)
def narrow_gaussian_in_the_square():
    """The peak of width 0.05 raises the coefficient of y to 1 at (0.317, 0.811), so x +
    y <= 2 and x, y <= 2 with y <= 1 remain, and x + 2y is largest at (1, 1)."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(bounds=(0, 2))
    m.y = pyo.Var(bounds=(0, 1))
    maximize(m, m.x + 2 * m.y)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def resource(m, u, v):
        distance = (u - 0.317) ** 2 + (v - 0.811) ** 2
        return m.x + pyo.exp(-distance / 0.05**2) * m.y <= 2

    return m


@problem("narrow peak", 3, 1.0)
def narrow_gaussian_in_the_cube():
    """The Gaussian of width 0.1 has the maximum 1 at (0.817, 0.183, 0.611)."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.x = pyo.Var()
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def cover(m, u, v, w):
        distance = (u - 0.817) ** 2 + (v - 0.183) ** 2 + (w - 0.611) ** 2
        return m.x >= pyo.exp(-distance / 0.1**2)

    return m


@problem("nonsmooth", 1, 3.5)
def sum_of_absolute_values():
    """a + b u above 2|u - 0.3| + |u - 0.8| on [0, 1]: the function is convex, so the
    chord is best; three times its mean plus a constant gives 3 (1.4 + 1.6) / 2 - 1."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(2))
    minimize(m, 3 * (m.x[0] + m.x[1] / 2) - 1)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= 2 * abs(u - 0.3) + abs(u - 0.8)

    return m


@problem("nonsmooth", 2, 1.5)
def distance_from_an_inner_point():
    """t >= a|u - 0.25| + b|v - 0.5| with a >= 1 and b >= 3/2: the farthest corners are
    at the distances 3/4 and 1/2, so the minimum of t is 3/4 + 3/4."""
    m = indexed_by((0, 1), (0, 1))
    m.a = pyo.Var(bounds=(1, None))
    m.b = pyo.Var(bounds=(1.5, None))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return m.t >= m.a * abs(u - 0.25) + m.b * abs(v - 0.5)

    return m


@problem("nonsmooth", 1, 7.0)
def jump_in_the_coefficient():
    """The coefficient of y is 1 up to u = 1/3 and 3 + u beyond: x + y <= 5 and x + 4y
    <= 8 remain, and with x >= 0, y >= 0 the maximum of x + 2y + 1 is at (4, 1)."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(bounds=(0, None))
    m.y = pyo.Var(bounds=(0, None))
    maximize(m, m.x + 2 * m.y + 1)

    @m.SemiInfiniteConstraint(m.u)
    def resource(m, u):
        coefficient = pyo.Expr_if(u <= 1 / 3, 1, 3 + u)
        limit = pyo.Expr_if(u <= 1 / 3, 5, 8)
        return m.x + coefficient * m.y <= limit

    return m


@problem("global minimum", 2, 1.0)
def himmelblau():
    """Himmelblau's function has four global minima with value 0 in [-6, 6]**2."""
    m = indexed_by((-6, 6), (-6, 6))
    m.t = pyo.Var()
    maximize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def below(m, u, v):
        return m.t <= 1 + (u**2 + v - 11) ** 2 + (u + v**2 - 7) ** 2

    return m


@problem("global minimum", 2, 1.0)
def rastrigin():
    """Rastrigin's function has the global minimum 0 at the origin among about a hundred
    local ones."""
    m = indexed_by((-4.3, 5.12), (-4.7, 5.12))
    m.t = pyo.Var()
    maximize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def below(m, u, v):
        waves = 10 * pyo.cos(2 * pi * u) + 10 * pyo.cos(2 * pi * v)
        return m.t <= 21 + u**2 + v**2 - waves

    return m


@problem("global minimum", 3, 1.0)
def rosenbrock():
    """Rosenbrock's function of three variables has the minimum 0 at (1, 1, 1), at the
    end of a curved valley."""
    m = indexed_by((-2.3, 1.9), (-2.3, 1.9), (-2.3, 1.9))
    m.t = pyo.Var()
    maximize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def below(m, u, v, w):
        first = 100 * (v - u**2) ** 2 + (1 - u) ** 2
        second = 100 * (w - v**2) ** 2 + (1 - v) ** 2
        return m.t <= 1 + first + second

    return m


# ---------------------------------------------------------------------------
# Badly scaled and degenerate problems
# ---------------------------------------------------------------------------


@problem("badly scaled", 1, sqrt(5e5))
def square_root_above_line_on_a_long_interval():
    """sqrt is concave, so the best mean of a line above it on [0, 10**6] is its value
    at the midpoint."""
    m = indexed_by((0, 1e6))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0] + 5e5 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x[0] + m.x[1] * u >= pyo.sqrt(u)

    return m


@problem("badly scaled", 1, 1.5)
def reciprocal_above_line_on_a_tiny_interval():
    """2e-6/u is convex, so the best line above it on [1e-6, 2e-6] is the chord, with
    the mean (2 + 1) / 2."""
    m = indexed_by((1e-6, 2e-6))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0] + 1.5e-6 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x[0] + m.x[1] * u >= 2e-6 / u

    return m


@problem("badly scaled", 1, 1e4 * EXP_BY_LINE)
def large_exponential_by_line():
    """Ten thousand times the error of the best line for exp on [0, 1]; the slope has
    the coefficient 1e4 as well."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(2))
    m.error = pyo.Var()
    minimize(m, m.error)

    @m.SemiInfiniteConstraint(m.u)
    def upper(m, u):
        return m.x[0] + 1e4 * m.x[1] * u - 1e4 * pyo.exp(u) <= m.error

    @m.SemiInfiniteConstraint(m.u)
    def lower(m, u):
        return m.x[0] + 1e4 * m.x[1] * u - 1e4 * pyo.exp(u) >= -m.error

    return m


@problem("badly scaled", 1, 196560.0)
def kissing_number_in_twenty_four_dimensions():
    """The linear programming bound of degree 10 is sharp: 196560, the minimal vectors
    of the Leech lattice (Levenshtein; Odlyzko and Sloane)."""
    return delsarte_bound(24, 0.5, 10)


@problem("badly scaled", 2, 1e3 * 5e2 + 1e-3)
def corner_of_a_long_thin_box():
    """With x >= 1000 and y >= 1 the sum x u + y v is largest at the far corner (500,
    0.001), and least there for x = 1000, y = 1."""
    m = indexed_by((0, 500), (0, 1e-3))
    m.x = pyo.Var(bounds=(1000, None))
    m.y = pyo.Var(bounds=(1, None))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return m.t >= m.x * u + m.y * v

    return m


@problem("badly scaled", 1, 1 / 400)
def steep_start():
    """x + y u**2 >= u with y <= 100: the maximum of u - 100 u**2 is 1/400, at u =
    1/200."""
    m = indexed_by((0, 1))
    m.x = pyo.Var()
    m.y = pyo.Var(bounds=(None, 100))
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x + m.y * u**2 >= u

    return m


@problem("degenerate", 1, 1.0)
def no_slater_point():
    """x u <= 0 on [-1, 1] forces x = 0, and y <= 1, so x + y is at most 1."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var()
    m.y = pyo.Var(bounds=(None, 1))
    maximize(m, m.x + m.y)

    @m.SemiInfiniteConstraint(m.u)
    def sign(m, u):
        return m.x * u <= 0

    return m


@problem("degenerate", 1, 3.0)
def band_of_width_zero():
    """The band 1 + 2u <= x + y u <= 1 + 2u admits only x = 1, y = 2."""
    m = indexed_by((0, 1))
    m.x = pyo.Var()
    m.y = pyo.Var()
    minimize(m, m.x + m.y)

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return (1 + 2 * u, m.x + m.y * u, 1 + 2 * u)

    return m


@problem("degenerate", 1, 1.0)
def rows_binding_everywhere():
    """x + y h(u) >= 2 h(u) with h = max(u - 1/2, 0): x >= 0 and x + y/2 >= 1, so 2x +
    y/2 is least at (0, 2), where every row binds."""
    m = indexed_by((0, 1))
    m.x = pyo.Var()
    m.y = pyo.Var()
    minimize(m, 2 * m.x + m.y / 2)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        ramp = pyo.Expr_if(u >= 0.5, u - 0.5, 0)
        return m.x + m.y * ramp >= 2 * ramp

    return m


@problem("degenerate", 1, 2.0)
def objective_parallel_to_a_row():
    """x + y <= 2 is the row at u = 1, parallel to the objective, so the whole edge of
    points (x, 2 - x) with 0 <= x <= 2 is optimal."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(bounds=(0, None))
    m.y = pyo.Var(bounds=(0, None))
    maximize(m, m.x + m.y)

    @m.SemiInfiniteConstraint(m.u)
    def resource(m, u):
        return m.x + m.y * u <= 2

    return m


@problem("degenerate", 2, 1.0)
def identical_rows():
    """x + y sin(u + v)**2 + y cos(u + v)**2 is the same row x + y <= 1 for every index;
    x - y with y >= 0 is largest at (1, 0)."""
    m = indexed_by((0, 2 * pi), (0, 1))
    m.x = pyo.Var()
    m.y = pyo.Var(bounds=(0, None))
    maximize(m, m.x - m.y)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def same(m, u, v):
        return m.x + m.y * (pyo.sin(u + v) ** 2 + pyo.cos(u + v) ** 2) <= 1

    return m


@problem("loose rows", 1, 14 / 5)
def rows_that_never_bind():
    """The rows are slack on the whole polygon, so the ordinary constraints decide: x +
    2y <= 4 and 3x + y <= 6 meet at (8/5, 6/5)."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] + m.x[1])
    m.first = pyo.Constraint(expr=m.x[0] + 2 * m.x[1] <= 4)
    m.second = pyo.Constraint(expr=3 * m.x[0] + m.x[1] <= 6)

    @m.SemiInfiniteConstraint(m.u)
    def loose(m, u):
        return inner(m.x, unit_vector(u)) <= 100

    return m


@problem("several families", 1, 2 + 4 * e)
def common_slope_for_three_families():
    """The ends decide: x_s = max(s, s e - y), and the sum of x_s plus 3y/2 is least at
    y = 2(e - 1), where x = (1, 2, e + 2)."""
    m = indexed_by((0, 1))
    m.members = pyo.Set(initialize=[1, 2, 3])
    m.x = pyo.Var(m.members)
    m.y = pyo.Var()
    minimize(m, sum(m.x[s] for s in m.members) + 1.5 * m.y)

    @m.SemiInfiniteConstraint(m.members, m.u)
    def cover(m, s, u):
        return m.x[s] + m.y * u >= s * pyo.exp(u)

    return m


@problem("several families", 1, 5 / 6)
def families_on_different_intervals():
    """The line must lie above u**2 on [0, 1] and above 4v - 3 on [1, 2]; this needs x
    >= 0 and x + 2y >= 5, so (2x + y)/3 = x/2 + (x + 2y)/6 is at least 5/6, attained by
    the line 5u/2."""
    m = indexed_by((0, 1), (1, 2))
    m.x = pyo.Var()
    m.y = pyo.Var()
    minimize(m, (2 * m.x + m.y) / 3)

    @m.SemiInfiniteConstraint(m.u)
    def left(m, u):
        return m.x + m.y * u >= u**2

    @m.SemiInfiniteConstraint(m.v)
    def right(m, v):
        return m.x + m.y * v >= 4 * v - 3

    return m


# ---------------------------------------------------------------------------
# Infeasible problems
# ---------------------------------------------------------------------------


@infeasible(1)
def exp_above_line_through_a_low_point():
    """At u = 0 the row needs y >= 1, but y <= 0."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var()
    m.y = pyo.Var(bounds=(None, 0))
    minimize(m, m.x + m.y)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x * u + m.y >= pyo.exp(u)

    return m


@infeasible(1)
def band_too_narrow_for_a_line():
    """The best uniform error of a line for u**2 on [-1, 1] is 1/2, but the band allows
    0.1."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0])

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return (u**2 - 0.1, m.x[0] + m.x[1] * u, u**2 + 0.1)

    return m


@infeasible(1)
def half_plane_away_from_the_disc():
    """On the unit disc x + y is at most sqrt(2), but it has to reach 3."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0])
    m.far = pyo.Constraint(expr=m.x[0] + m.x[1] >= 3)

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return inner(m.x, unit_vector(u)) <= 1

    return m


@infeasible(1)
def peak_above_the_bound():
    """The peak needs x >= 2 near u = 0.61803, but x <= 1.5; away from it every x >= 0
    would do."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(bounds=(0, 1.5))
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x >= 2 * pyo.exp(-(((u - 0.61803) / 0.02) ** 2))

    return m


@infeasible(1)
def no_integer_in_the_band():
    """At u = 0 the integer x would have to lie between 0.3 and 0.7."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(domain=pyo.Integers, bounds=(-10, 10))
    m.y = pyo.Var(bounds=(-10, 10))
    minimize(m, m.x + m.y)

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return (0.3, m.x + m.y * u, 0.7)

    return m


@infeasible(2)
def plane_between_disc_and_bound():
    """On the disc the plane has to lie above u**2 + v**2, so its constant, the mean
    over the boundary circle, is at least 1, but it is at most 1/2."""
    m = indexed_by((-1, 1), (-1, 1))
    m.x = pyo.Var(range(3))
    m.low = pyo.Constraint(expr=m.x[0] <= 0.5)
    minimize(m, m.x[1] + m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**2 + v**2 <= 1)
    def cover(m, u, v):
        return m.x[0] + m.x[1] * u + m.x[2] * v >= u**2 + v**2

    return m


@infeasible(3)
def point_outside_the_cross_polytope():
    """Rows over the cube describe the unit ball of the 1-norm, but x_0 >= 2."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(3))
    m.outside = pyo.Constraint(expr=m.x[0] >= 2)
    maximize(m, m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def inside(m, u, v, w):
        return inner(m.x, (u, v, w)) <= 1

    return m


# ---------------------------------------------------------------------------
# Unbounded problems
# ---------------------------------------------------------------------------


@unbounded(1)
def quarter_of_the_directions():
    """Only directions of the first quadrant are constrained, so y may decrease and x -
    y increase without limit."""
    m = indexed_by((0, pi / 2))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] - m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return inner(m.x, unit_vector(u)) <= 1

    return m


@unbounded(1)
def extrapolated_line():
    """A line below exp on [1, 2] may be arbitrarily steep downwards, so its value at 0
    is not bounded."""
    m = indexed_by((1, 2))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0])

    @m.SemiInfiniteConstraint(m.u)
    def support(m, u):
        return m.x[0] + m.x[1] * u <= pyo.exp(u)

    return m


@unbounded(1)
def impossible_moments():
    """No distribution has mean 1/2 and second moment 1/5; the multiples of (u - 1/2)**2
    are feasible and lower the objective by 1/20 each."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] / 2 + m.x[2] / 5)

    @m.SemiInfiniteConstraint(m.u)
    def nonnegative(m, u):
        return polynomial(m.x, u) >= 0

    return m


@unbounded(2)
def half_of_the_disc():
    """Rows over the upper half of the disc do not constrain the negative second
    direction."""
    m = indexed_by((-1, 1), (0, 1))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**2 + v**2 <= 1)
    def inside(m, u, v):
        return m.x[0] * u + m.x[1] * v <= 1

    return m


@unbounded(3)
def positive_cube():
    """Rows over [0, 1]**3 leave the negative directions free, and x_0 - x_1 increases
    along one of them."""
    m = indexed_by((0, 1), (0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    maximize(m, m.x[0] - m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def inside(m, u, v, w):
        return inner(m.x, (u, v, w)) <= 1

    return m


# ---------------------------------------------------------------------------
# Unbounded index sets
# ---------------------------------------------------------------------------


def indexed_by_half_line():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    return m


@problem("unbounded index", 1, 2 / 5)
def markov_bound_on_the_half_line():
    """Markov: with mean 2 the probability of u >= 5 is at most 2/5."""
    m = indexed_by_half_line()
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0] + 2 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return m.x[0] + m.x[1] * u >= pyo.Expr_if(u >= 5, 1, 0)

    return m


@problem("unbounded index", 1, 3 / 4)
def scarf_bound_on_the_half_line():
    """With mean 1, variance 1 and level 1/2 on the half-line the expected excess is at
    most 1 - (1/2)(1/2), attained by atoms at 0 and 2 (Scarf's second case)."""
    m = indexed_by_half_line()
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] + 2 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def excess(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= 0.5, u - 0.5, 0)

    return m


@problem("unbounded index", 1, 1 - (1 - exp(-2)) / 2)
def largest_laplace_transform():
    """With the moments 1 and 2 on the half-line the largest mean of exp(-u) has atoms
    at 0 and 2 of mass 1/2 each."""
    m = indexed_by_half_line()
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] + 2 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= pyo.exp(-u)

    return m


@problem("unbounded index", 1, exp(-1))
def line_above_a_hump():
    """u exp(-u) is concave near its maximum at 1, so a line above it has at least the
    value 1/e at 1, which the constant 1/e attains."""
    m = indexed_by_half_line()
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0] + m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x[0] + m.x[1] * u >= u * pyo.exp(-u)

    return m


@problem("unbounded index", 1, 1.0)
def quotient_on_the_half_line():
    """x (1 + u**2) >= 2u holds for all u exactly when x >= 1, with equality at u =
    1."""
    m = indexed_by_half_line()
    m.x = pyo.Var()
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x * (1 + u**2) >= 2 * u

    return m


@problem("unbounded index", 2, 2 * exp(-1))
def hump_on_a_half_strip():
    """x + y v >= u exp(-u) (1 + v) on the half-line times [0, 1]: at u = 1 the rows
    need x >= 1/e and x + y >= 2/e, which is the objective."""
    m = indexed_by_half_line()
    m.v = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.y = pyo.Var()
    minimize(m, m.x + m.y)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return m.x + m.y * v >= u * pyo.exp(-u) * (1 + v)

    return m
