"""More linear semi-infinite programs with known optima, chosen to be hard for a search over the index.

High degrees in powers of u, dozens of binding points, narrow pieces, thin sets, five dimensions, other units. Same
format as known_optima.py.
"""

from itertools import product
from math import cos, exp, log, pi, sqrt

import numpy as np
import pyomo.environ as pyo
from known_optima import (
    Known,
    indexed_by,
    inner,
    integral_over_unit_interval,
    maximize,
    minimize,
    polynomial,
    register_in,
    unit_vector,
)
from pyomo.dae import ContinuousSet
from scipy.optimize import linprog, minimize_scalar

PROBLEMS: list[Known] = []
problem = register_in(PROBLEMS)


def infeasible(dimension):
    return problem("infeasible", dimension, None, "infeasible")


def unbounded(dimension):
    return problem("unbounded", dimension, None, "unbounded")


def polynomial_above(degree, function, bounds=(0, 1)):
    """Least integral of a polynomial above a function."""
    a, b = bounds
    m = indexed_by(bounds)
    m.x = pyo.Var(range(degree + 1))
    minimize(m, sum(m.x[k] * ((b ** (k + 1) - a ** (k + 1)) / (k + 1)) for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= function(u)

    return m


def polynomial_below(degree, function, bounds=(0, 1)):
    a, b = bounds
    m = indexed_by(bounds)
    m.x = pyo.Var(range(degree + 1))
    maximize(m, sum(m.x[k] * ((b ** (k + 1) - a ** (k + 1)) / (k + 1)) for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def support(m, u):
        return polynomial(m.x, u) <= function(u)

    return m


def best_uniform(degree, function, bounds):
    """Least t with |polynomial - function| <= t."""
    m = indexed_by(bounds)
    m.x = pyo.Var(range(degree + 1))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u)
    def above(m, u):
        return polynomial(m.x, u) - function(u) <= m.t

    @m.SemiInfiniteConstraint(m.u)
    def below(m, u):
        return polynomial(m.x, u) - function(u) >= -m.t

    return m


# Quadrature rules on an interval: (nodes, weights).


def gauss(n, a=0.0, b=1.0):
    t, w = np.polynomial.legendre.leggauss(n)
    return (a + b) / 2 + (b - a) / 2 * t, (b - a) / 2 * w


def _with_ends(inner_nodes, a, b):
    """Nodes with weights that integrate as many powers as there are nodes, on [-1, 1] and moved."""
    t = np.array(sorted(inner_nodes))
    legendre = np.polynomial.legendre.legvander(t, len(t) - 1).T
    w = np.linalg.solve(legendre, [2.0] + [0.0] * (len(t) - 1))
    assert (w > 0).all()
    return (a + b) / 2 + (b - a) / 2 * t, (b - a) / 2 * w


def lobatto(n, a=0.0, b=1.0):
    """n points with both ends, exact to degree 2n - 3."""
    inside = np.polynomial.legendre.Legendre.basis(n - 1).deriv().roots().real
    return _with_ends([-1, *inside, 1], a, b)


def radau_left(n, a=0.0, b=1.0):
    """n points with the left end, exact to degree 2n - 2: roots of P_{n-1} + P_n."""
    roots = (np.polynomial.legendre.Legendre.basis(n - 1) + np.polynomial.legendre.Legendre.basis(n)).roots().real
    roots[np.argmin(roots)] = -1.0
    return _with_ends(roots, a, b)


def radau_right(n, a=0.0, b=1.0):
    t, w = radau_left(n, a, b)
    return (a + b) - t[::-1], w[::-1]


def apply_rule(rule, function):
    return float(sum(w * function(t) for t, w in zip(*rule, strict=True)))


def chebyshev_polynomial(n, z):
    """T_n(z) for z >= 1."""
    return float(np.cosh(n * np.arccosh(z)))


def largest_on_interval(function, a, b, points=200_001):
    """Global maximum of a smooth one-dimensional function: dense scan and Brent."""
    grid = np.linspace(a, b, points)
    values = function(grid)
    k = int(np.argmax(values))
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, points - 1)]
    found = minimize_scalar(lambda z: -function(z), bounds=(low, high), method="bounded", options={"xatol": 1e-14})
    return max(float(values[k]), -float(found.fun))


def finite_lp(gain, rows, limits, bounds, sense=-1.0):
    """Optimum of a finite LP with the rows that a robust program reduces to."""
    answer = linprog(sense * np.array(gain), np.array(rows), limits, bounds=bounds, method="highs")
    assert answer.status == 0
    return sense * answer.fun


def corners(n, low=-1, high=1):
    return list(product((low, high), repeat=n))


# ---------------------------------------------------------------------------
# One-sided L1 approximation of nonsmooth, singular and oscillating functions
# ---------------------------------------------------------------------------


def near_pole(u):
    return 1 / (u + 0.01)


@problem("one-sided L1", 1, apply_rule(lobatto(4), near_pole))
def near_pole_above_quintic():
    """Even derivatives of 1/(u + 0.01) are positive, so the dual measure is the
    four-point Lobatto rule."""
    return polynomial_above(5, near_pole)


@problem("one-sided L1", 1, apply_rule(gauss(5), near_pole))
def near_pole_below_degree_nine():
    """Even derivatives are positive, so the dual measure is the five-point Gauss rule."""
    return polynomial_below(9, near_pole)


@problem("one-sided L1", 1, apply_rule(lobatto(8), near_pole))
def near_pole_above_degree_thirteen():
    """The eight-point Lobatto rule, with monomials of degree 13."""
    return polynomial_above(13, near_pole)


@problem("one-sided L1", 1, apply_rule(lobatto(8), lambda u: 1 / (1.1 - u)))
def right_pole_above_degree_thirteen():
    """All derivatives of 1/(1.1 - u) are positive: the eight-point Lobatto rule."""
    return polynomial_above(13, lambda u: 1 / (1.1 - u))


@problem("one-sided L1", 1, apply_rule(lobatto(7), np.tan))
def tangent_above_degree_eleven():
    """All derivatives of tan are positive on [0, 1]: the seven-point Lobatto rule."""
    return polynomial_above(11, lambda u: pyo.tan(u))


@problem("one-sided L1", 1, apply_rule(radau_right(6), lambda u: np.tan(1.5 * u)))
def steep_tangent_above_degree_ten():
    """tan(1.5 u), which rises to 14: the odd derivative is positive, so the six-point
    Radau rule with the right end."""
    return polynomial_above(10, lambda u: pyo.tan(1.5 * u))


@problem("one-sided L1", 1, 2 / 3 * 0.5 * log(0.5))
def entropy_above_cubic():
    """u log u has positive even derivatives, so Simpson's rule is the dual measure; the
    slope is minus infinity at the binding end 0."""
    return polynomial_above(3, lambda u: pyo.Expr_if(u <= 0, 0, u * pyo.log(u + 1e-300)))


@problem("one-sided L1", 1, apply_rule(gauss(4), lambda u: u * np.log(u)))
def entropy_below_degree_seven():
    """The four-point Gauss rule; u is kept positive by an interval that starts at 0 and
    the usual guard of the logarithm."""
    return polynomial_below(7, lambda u: u * pyo.log(u + 1e-300))


@problem("one-sided L1", 1, apply_rule(gauss(4), np.sqrt))
def square_root_above_degree_seven():
    """Even derivatives of sqrt are negative, so the best polynomial above has the
    four-point Gauss rule as its dual measure."""
    return polynomial_above(7, lambda u: pyo.sqrt(u))


@problem("one-sided L1", 1, apply_rule(lobatto(6), np.sqrt))
def square_root_below_degree_nine():
    """Even derivatives of sqrt are negative, so below it the dual measure is the six-point
    Lobatto rule, with the vertical tangent at the binding point 0."""
    return polynomial_below(9, lambda u: pyo.sqrt(u))


@problem("one-sided L1", 1, apply_rule(radau_left(4), lambda u: u**1.5))
def power_above_degree_six():
    """Odd derivatives of u**1.5 from the third on alternate: the seventh is negative, so
    the dual measure is the four-point Radau rule with the left end."""
    return polynomial_above(6, lambda u: u**1.5)


@problem("one-sided L1", 1, apply_rule(gauss(4, -1, 1), lambda u: abs(u) ** 1.5))
def absolute_power_above_degree_seven():
    """|u|**1.5 = t**0.75 with t = u**2 has negative even derivatives in t, and even
    polynomials suffice, so the dual measure is the four-point Gauss rule on [-1, 1]."""
    return polynomial_above(7, lambda u: abs(u) ** 1.5, (-1, 1))


@problem("one-sided L1", 1, apply_rule(gauss(6, -1, 1), abs))
def absolute_value_above_degree_eleven():
    """|u| = sqrt(t) with t = u**2, as above: the six-point Gauss rule on [-1, 1]."""
    return polynomial_above(11, abs, (-1, 1))


@problem("one-sided L1", 1, apply_rule(lobatto(9, -1, 1), abs))
def absolute_value_below_degree_fifteen():
    """|u| = sqrt(t) with t = u**2: below it touches at t = 0, 1 and three inner points,
    which are the nine-point Lobatto rule on [-1, 1]."""
    return polynomial_below(15, abs, (-1, 1))


@problem("one-sided L1", 1, apply_rule(gauss(6, 0, 10), lambda u: np.exp(u / 5)))
def exp_below_degree_eleven_on_a_long_interval():
    """The six-point Gauss rule on [0, 10]; the monomials reach 1e11 there, so that in
    rows divided by their largest number the constant's coefficient is 1e-11."""
    return polynomial_below(11, lambda u: pyo.exp(u / 5), (0, 10))


@problem("one-sided L1", 1, apply_rule(radau_right(2, 0, 1e6), lambda u: np.exp(u / 1e6)) / 1e6)
def exp_above_quadratic_on_a_million():
    """The two-point Radau rule on [0, 1e6], objective divided by the length; the monomials
    reach 1e12."""
    m = indexed_by((0, 1e6))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] * 1e6 / 2 + m.x[2] * 1e12 / 3)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= pyo.exp(u / 1e6)

    return m


@problem("one-sided L1", 1, apply_rule(radau_right(2), np.exp))
def exp_above_quadratic_on_a_millionth():
    """The same on [0, 1e-6] for exp(1e6 u): the coefficient of the square is at most
    1e-12."""
    m = indexed_by((0, 1e-6))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] * 1e-6 / 2 + m.x[2] * 1e-12 / 3)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return polynomial(m.x, u) >= pyo.exp(u * 1e6)

    return m


@problem("one-sided L1", 1, apply_rule(lobatto(4, 100, 101), lambda u: np.exp(u - 100)))
def exp_above_quintic_far_from_the_origin():
    """The four-point Lobatto rule on [100, 101]: powers of u are nearly dependent
    there, so the function is written in powers of u - 100 for the limit only."""
    m = indexed_by((100, 101))
    m.x = pyo.Var(range(6))
    minimize(m, sum(m.x[k] / (k + 1) for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return sum(m.x[k] * (u - 100) ** k for k in m.x) >= pyo.exp(u - 100)

    return m


OSCILLATION_POINTS = np.linspace(0, 1, 51)


def _positive_rule_exists(nodes, degree):
    """Whether positive weights at the nodes integrate all powers up to a degree over [0, 1]."""
    legendre = np.polynomial.legendre.legvander(2 * nodes - 1, degree).T
    found = linprog(np.zeros(len(nodes)), A_eq=legendre, b_eq=[1.0] + [0.0] * degree, bounds=(0, None))
    return found.status == 0


assert _positive_rule_exists(OSCILLATION_POINTS, 7)


@problem("one-sided L1", 1, 1 + 1 / 8)
def degree_seven_above_fifty_waves():
    """u**7 + 1 touches u**7 + cos(100 pi u) at 51 points, on which some positive weights
    integrate all polynomials of degree seven."""
    return polynomial_above(7, lambda u: u**7 + pyo.cos(100 * pi * u))


@problem("one-sided L1", 1, 1 / 3 - 1)
def quadratic_below_waves_that_grow():
    """u**2 - 1 touches u**2 + cos(50 pi u) at the 25 points (2k + 1)/50, on
    which Simpson-like positive weights integrate quadratics (symmetric, with second moment
    between those of the centre and of the ends)."""
    return polynomial_below(2, lambda u: u**2 + pyo.cos(50 * pi * u))


@problem("one-sided L1", 1, apply_rule(lobatto(5), lambda u: np.exp(u) / (2 - u)))
def rational_above_degree_seven():
    """exp(u)/(2 - u) has positive derivatives (a product of two such functions): the
    five-point Lobatto rule."""
    return polynomial_above(7, lambda u: pyo.exp(u) / (2 - u))


@problem("one-sided L1", 1, (np.exp(0) + 4 * np.exp(0.5) + np.exp(1)) / 6)
def exponential_sums_on_the_half_line():
    """With t = exp(-u) the sums of exp(-k u), k = 0..3, are cubics on (0, 1], and the
    objective is the integral over t, so Simpson's rule gives the value; one of its nodes
    is t = 0, at infinity."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(range(4))
    minimize(m, integral_over_unit_interval(m.x))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return sum(m.x[k] * pyo.exp(-k * u) for k in m.x) >= pyo.exp(pyo.exp(-u))

    return m


@problem("one-sided L1", 1, apply_rule(gauss(5, exp(-5), 1), lambda t: np.exp(3 * t)))
def exponential_sums_below_on_an_interval():
    """With t = exp(-u), u in [0, 5], ten exponentials are polynomials of degree nine on
    [exp(-5), 1]: the five-point Gauss rule of exp(3 t)."""
    m = indexed_by((0, 5))
    m.x = pyo.Var(range(10))
    low = exp(-5)
    maximize(m, sum(m.x[k] * (1 - low ** (k + 1)) / (k + 1) for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def support(m, u):
        return sum(m.x[k] * pyo.exp(-k * u) for k in m.x) <= pyo.exp(3 * pyo.exp(-u))

    return m


def linear_spline_above(knots, function, below=False):
    """Hat functions at equispaced knots on [0, 1], written with abs."""
    n = knots - 1
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(knots))
    weight = [0.5 / n if k in (0, n) else 1 / n for k in range(knots)]
    minimize(m, sum(weight[k] * m.x[k] for k in range(knots)))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        # max(0, 1 - n|u - k/n|) by second differences of abs
        return sum(
            m.x[k] * (n / 2) * (abs(u - (k - 1) / n) - 2 * abs(u - k / n) + abs(u - (k + 1) / n)) for k in range(knots)
        ) >= function(u)

    return m


def trapezoid(n, function):
    z = np.linspace(0, 1, n + 1)
    return float(np.sum((function(z[:-1]) + function(z[1:])) / (2 * n)))


@problem("spline", 1, trapezoid(40, lambda z: np.exp(3 * z)))
def spline_of_41_knots_above_exp():
    """A convex function: the best linear spline above interpolates at the knots, the
    composite trapezoidal rule."""
    return linear_spline_above(41, lambda u: pyo.exp(3 * u))


@problem("spline", 1, trapezoid(150, lambda z: np.exp(3 * z)))
def spline_of_151_knots_above_exp():
    """The same with 151 variables."""
    return linear_spline_above(151, lambda u: pyo.exp(3 * u))


@problem("spline", 1, trapezoid(20, lambda z: np.abs(z - 0.3) + np.abs(z - 0.65)))
def spline_that_holds_the_function():
    """The function has its kinks at the knots 0.3 and 0.65, so it is a candidate itself,
    every row binds, and the trapezoidal rule is exact for it."""
    return linear_spline_above(21, lambda u: abs(u - 0.3) + abs(u - 0.65))


@problem("spline", 1, 0.5 * 0.25**2 + 0.5 * 0.75**2)
def plateau_on_both_sides_of_a_kink():
    """Functions x0 + x1 u + x2 |u - 1/4| hold |u - 1/4| itself, whose integral is the
    value; all rows bind."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] / 2 + m.x[2] * (0.25**2 + 0.75**2) / 2)

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x[0] + m.x[1] * u + m.x[2] * abs(u - 0.25) >= abs(u - 0.25)

    return m


@problem("spline", 1, 0.25)
def plateau_on_an_interval():
    """A multiple x >= 1 of max(0, u - 1/2) (integral 1/8, plus the ramp 1/8) must stay
    above a function equal to it on [1/2, 3/4] and below it afterwards; binding on an
    interval, and x0 >= 0 adds nothing."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(2))
    minimize(m, 2 * (m.x[0] + m.x[1] / 8))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        ramp = pyo.Expr_if(u >= 0.5, u - 0.5, 0)
        return m.x[0] + m.x[1] * ramp >= pyo.Expr_if(u <= 0.75, ramp, 0.25)

    return m


# ---------------------------------------------------------------------------
# Chebyshev approximation
# ---------------------------------------------------------------------------


@problem("uniform approximation", 1, 2.0**-11)
def twelfth_power_by_degree_eleven():
    """Chebyshev: the monic polynomial of degree 12 of least norm on [-1, 1] has norm
    2**-11."""
    return best_uniform(11, lambda u: u**12, (-1, 1))


@problem("uniform approximation", 1, (1.05 - sqrt(1.05**2 - 1)) ** 12 / (1.05**2 - 1))
def near_pole_by_degree_twelve():
    """Bernstein: 1/(a - u) is approximated on [-1, 1] by degree n to (a - sqrt(a**2 -
    1))**n / (a**2 - 1)."""
    return best_uniform(12, lambda u: 1 / (1.05 - u), (-1, 1))


@problem("uniform approximation", 1, 40.5)
def reciprocal_by_line_near_zero():
    """1/u on [a, b] by a line: (1/sqrt(a) - 1/sqrt(b))**2 / 2 with a = 0.01, b = 1."""
    return best_uniform(1, lambda u: 1 / u, (0.01, 1))


def _sqrt_by_line(a, b):
    c = ((sqrt(a) + sqrt(b)) / 2) ** 2
    return (sqrt(c) - sqrt(a) - (c - a) / (sqrt(a) + sqrt(b))) / 2


@problem("uniform approximation", 1, _sqrt_by_line(0.0, 1e4))
def square_root_by_line_on_a_long_interval():
    """For a concave function the error is half the largest distance from the chord."""
    return best_uniform(1, lambda u: pyo.sqrt(u), (0, 1e4))


@problem("uniform approximation", 1, 1.0)
def waves_by_degree_fifteen():
    """cos(20 pi u) alternates 21 times on [0, 1], so zero is the best polynomial of
    degree 15 and the error is 1."""
    return best_uniform(15, lambda u: pyo.cos(20 * pi * u), (0, 1))


@problem("uniform approximation", 1, 1 / chebyshev_polynomial(10, 1.01 / 0.99))
def residual_polynomial_of_degree_ten():
    """The smallest norm on [0.01, 1] of a polynomial of degree 10 that is 1 at zero is
    1/T_10(1.01/0.99)."""
    m = indexed_by((0.01, 1))
    m.x = pyo.Var(range(1, 11))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u)
    def above(m, u):
        return 1 + polynomial(m.x, u) <= m.t

    @m.SemiInfiniteConstraint(m.u)
    def below(m, u):
        return 1 + polynomial(m.x, u) >= -m.t

    return m


@problem("uniform approximation", 1, 1 / chebyshev_polynomial(5, (1 + 0.04) / (1 - 0.04)))
def residual_polynomial_on_two_intervals():
    """On 0.2 <= |u| <= 1 the residual polynomial of degree 10 is that of degree 5 in
    u**2; the two intervals are one set with a where condition."""
    m = indexed_by((-1, 1))
    m.x = pyo.Var(range(1, 11))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, where=lambda m, u: abs(u) >= 0.2)
    def above(m, u):
        return 1 + polynomial(m.x, u) <= m.t

    @m.SemiInfiniteConstraint(m.u, where=lambda m, u: abs(u) >= 0.2)
    def below(m, u):
        return 1 + polynomial(m.x, u) >= -m.t

    return m


@problem("uniform approximation", 2, 2.0**-6)
def mixed_monomial_of_degree_eight():
    """The least deviation of u**4 v**4 from the other monomials u**i v**j, i, j <= 4, is
    that of T_4(u) T_4(v) / 64 (product of Chebyshev functionals)."""
    m = indexed_by((-1, 1), (-1, 1))
    m.K = pyo.Set(initialize=[(i, j) for i in range(5) for j in range(5) if (i, j) != (4, 4)])
    m.x = pyo.Var(m.K)
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def above(m, u, v):
        return sum(m.x[i, j] * u**i * v**j for i, j in m.K) + u**4 * v**4 <= m.t

    @m.SemiInfiniteConstraint(m.u, m.v)
    def below(m, u, v):
        return sum(m.x[i, j] * u**i * v**j for i, j in m.K) + u**4 * v**4 >= -m.t

    return m


def _sign_by_cubic(a):
    ratio = 2 / 3 * (1 + a + a * a) ** 1.5 / sqrt(3) / (a * (1 + a))
    return (ratio - 1) / (ratio + 1)


@problem("filter", 1, _sign_by_cubic(cos(0.4 * pi)) / 2)
def half_band_filter():
    """A low-pass filter a_0 + .. + a_4 cos(4 w) with pass band [0, 0.4 pi] and stop band
    [0.6 pi, pi]: minus 1/2 it may be odd in cos w, and the sign function is approximated
    by an odd cubic on [a, 1] with the error (R - 1)/(R + 1), R = 2/3 (1 + a + a**2)**1.5 /
    (sqrt(3) a (1 + a))."""
    m = pyo.ConcreteModel()
    m.p = ContinuousSet(bounds=(0, 0.4 * pi))
    m.q = ContinuousSet(bounds=(0.6 * pi, pi))
    m.a = pyo.Var(range(5))
    m.d = pyo.Var()
    minimize(m, m.d)

    def response(m, w):
        return sum(m.a[k] * pyo.cos(k * w) for k in m.a)

    @m.SemiInfiniteConstraint(m.p)
    def pass_above(m, w):
        return response(m, w) <= 1 + m.d

    @m.SemiInfiniteConstraint(m.p)
    def pass_below(m, w):
        return response(m, w) >= 1 - m.d

    @m.SemiInfiniteConstraint(m.q)
    def stop_above(m, w):
        return response(m, w) <= m.d

    @m.SemiInfiniteConstraint(m.q)
    def stop_below(m, w):
        return response(m, w) >= -m.d

    return m


def _side_lobe(order, edge):
    return 1 / chebyshev_polynomial(order, (3 - cos(edge)) / (1 + cos(edge)))


def dolph_chebyshev(order, edge):
    m = pyo.ConcreteModel()
    m.w = ContinuousSet(bounds=(edge, pi))
    m.a = pyo.Var(range(order + 1))
    m.d = pyo.Var()
    minimize(m, m.d)
    m.centre = pyo.Constraint(expr=sum(m.a[k] for k in m.a) == 1)

    @m.SemiInfiniteConstraint(m.w)
    def above(m, w):
        return sum(m.a[k] * pyo.cos(k * w) for k in m.a) <= m.d

    @m.SemiInfiniteConstraint(m.w)
    def below(m, w):
        return sum(m.a[k] * pyo.cos(k * w) for k in m.a) >= -m.d

    return m


@problem("filter", 1, _side_lobe(30, 0.1))
def dolph_chebyshev_of_order_thirty():
    """In cos w a polynomial of degree 30: the side lobe is 1/T_30 at the image of 1."""
    return dolph_chebyshev(30, 0.1)


@problem("filter", 1, _side_lobe(100, 0.03))
def dolph_chebyshev_of_order_hundred():
    """The same with 101 coefficients and 100 binding points."""
    return dolph_chebyshev(100, 0.03)


@problem("filter", 1, 1 / (4 * chebyshev_polynomial(6, (3 - cos(0.5)) / (1 + cos(0.5)))))
def weighted_side_lobes():
    """Four families with weights: stop bands cover [0.5, pi] in two overlapping pieces, and
    the weight 4 there divides the side lobe 1/T_6 by 4; the pass band row |p(w)| <= 1 +
    100 d on [0, 0.1] never binds."""
    m = pyo.ConcreteModel()
    m.p = ContinuousSet(bounds=(0, 0.1))
    m.q = ContinuousSet(bounds=(0.5, 2.0))
    m.z = ContinuousSet(bounds=(1.5, pi))
    m.a = pyo.Var(range(7))
    m.d = pyo.Var()
    minimize(m, m.d)
    m.centre = pyo.Constraint(expr=sum(m.a[k] for k in m.a) == 1)

    def response(m, w):
        return sum(m.a[k] * pyo.cos(k * w) for k in m.a)

    @m.SemiInfiniteConstraint(m.p)
    def passing(m, w):
        return (-2, response(m, w), 2)

    @m.SemiInfiniteConstraint(m.q)
    def first(m, w):
        return response(m, w) <= 4 * m.d

    @m.SemiInfiniteConstraint(m.q)
    def first_below(m, w):
        return response(m, w) >= -4 * m.d

    @m.SemiInfiniteConstraint(m.z)
    def second(m, w):
        return response(m, w) <= 4 * m.d

    @m.SemiInfiniteConstraint(m.z)
    def second_below(m, w):
        return response(m, w) >= -4 * m.d

    return m


# ---------------------------------------------------------------------------
# Trigonometric polynomials with dozens of binding points
# ---------------------------------------------------------------------------


def least_mean(order, with_sines=False):
    """Least mean of a nonnegative trigonometric polynomial that is 1 at zero."""
    m = pyo.ConcreteModel()
    m.w = ContinuousSet(bounds=(0, 2 * pi) if with_sines else (0, pi))
    m.a = pyo.Var(range(order + 1))
    if with_sines:
        m.b = pyo.Var(range(1, order + 1))
    minimize(m, m.a[0])
    m.centre = pyo.Constraint(expr=sum(m.a[k] for k in m.a) >= 1)

    @m.SemiInfiniteConstraint(m.w)
    def nonnegative(m, w):
        cosines = sum(m.a[k] * pyo.cos(k * w) for k in m.a)
        return (cosines + sum(m.b[k] * pyo.sin(k * w) for k in m.b) if with_sines else cosines) >= 0

    return m


@problem("trigonometric", 1, 1 / 26)
def fejer_kernel_of_order_25():
    """The mean equals the average over 26 equidistant points, one of which is zero, so it
    is at least 1/26; the Fejer kernel attains it."""
    return least_mean(25)


@problem("trigonometric", 1, 1 / 31)
def fejer_kernel_with_sines():
    """The same of order 30 with sines: 61 variables, 30 double zeros."""
    return least_mean(30, True)


@problem("trigonometric", 1, 1 / 101)
def fejer_kernel_of_order_hundred():
    """The same of order 100: a hundred binding points on [0, pi] (every second counted)."""
    return least_mean(100)


@problem("trigonometric", 1, 2 * cos(pi / 32))
def fejer_coefficient_of_order_thirty():
    """Fejer: the largest first cosine coefficient of 1 + a_1 cos w + .. + a_30 cos 30 w >= 0
    is 2 cos(pi/32)."""
    m = pyo.ConcreteModel()
    m.w = ContinuousSet(bounds=(0, pi))
    m.a = pyo.Var(range(1, 31))
    maximize(m, m.a[1])

    @m.SemiInfiniteConstraint(m.w)
    def nonnegative(m, w):
        return 1 + sum(m.a[k] * pyo.cos(k * w) for k in m.a) >= 0

    return m


def selberg(order, length, above):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.a = pyo.Var(range(order + 1))
    m.b = pyo.Var(range(1, order + 1))
    (minimize if above else maximize)(m, m.a[0])

    @m.SemiInfiniteConstraint(m.u)
    def side(m, u):
        value = sum(m.a[k] * pyo.cos(2 * pi * k * u) for k in m.a)
        value = value + sum(m.b[k] * pyo.sin(2 * pi * k * u) for k in m.b)
        if above:
            return value >= pyo.Expr_if(u <= length, 1, 0) + pyo.Expr_if(u >= 1, 1, 0)
        return value <= pyo.Expr_if(u < length, 1, 0) * pyo.Expr_if(u > 0, 1, 0)

    return m


@problem("trigonometric", 1, 0.3)
def selberg_majorant():
    """Selberg: the least mean of a trigonometric polynomial of order 19 above the indicator
    of an arc of length 1/4 is 1/4 + 1/20, as 20/4 is whole (20 equidistant points, six of
    them in the arc, prove it)."""
    return selberg(19, 0.25, True)


@problem("trigonometric", 1, 0.2)
def selberg_minorant():
    """The largest mean below the indicator of the open arc of length 1/4 is 1/4 - 1/20."""
    return selberg(19, 0.25, False)


def bivariate_fejer(order, dimension):
    m = pyo.ConcreteModel()
    names = "uvw"[:dimension]
    for name in names:
        setattr(m, name, ContinuousSet(bounds=(0, pi)))
    m.K = pyo.Set(initialize=list(product(range(order + 1), repeat=dimension)), dimen=dimension)
    m.a = pyo.Var(m.K)
    minimize(m, m.a[(0,) * dimension])
    m.centre = pyo.Constraint(expr=sum(m.a[k] for k in m.K) >= 1)

    def rule(m, *w):
        total = 0
        for k in m.K:
            term = m.a[k]
            for i in range(dimension):
                if k[i]:
                    term = term * pyo.cos(k[i] * w[i])
            total = total + term
        return total >= 0

    return m, rule


@problem("trigonometric", 2, 1 / 25)
def fejer_kernel_in_two_dimensions():
    """As in one dimension, with 5 x 5 equidistant points: 1/25, attained by the product of
    two Fejer kernels, which vanishes along lines."""
    m, rule = bivariate_fejer(4, 2)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def nonnegative(m, u, v):
        return rule(m, u, v)

    return m


@problem("trigonometric", 3, 1 / 27)
def fejer_kernel_in_three_dimensions():
    """The same in three dimensions with 3 x 3 x 3 points: the product kernel vanishes on
    planes."""
    m, rule = bivariate_fejer(2, 3)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def nonnegative(m, u, v, w):
        return rule(m, u, v, w)

    return m


# ---------------------------------------------------------------------------
# Support functions
# ---------------------------------------------------------------------------


@problem("support function", 1, 3 + 4 + 5)
def rounded_square():
    """The square [-1, 1]**2 plus the unit disc: max 3x + 4y = |c|_1 + |c|_2."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(2))
    maximize(m, 3 * m.x[0] + 4 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return inner(m.x, unit_vector(u)) <= abs(pyo.cos(u)) + abs(pyo.sin(u)) + 1

    return m


SUM_C = np.array([1.0, -2.0, 2.0])
SUM_A = np.array([4.0, 1.0, 0.25])


@problem("support function", 2, np.abs(SUM_C).sum() + sqrt((SUM_C**2 * SUM_A).sum()))
def box_plus_ellipsoid():
    """Support functions add: |c|_1 of the cube and sqrt(c'Ac) of the ellipsoid."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(3))
    maximize(m, inner(m.x, SUM_C.tolist()))

    @m.SemiInfiniteConstraint(m.u, m.v)
    def inside(m, u, v):
        n = unit_vector(u, v)
        return inner(m.x, n) <= sum(abs(z) for z in n) + pyo.sqrt(sum(SUM_A[k] * n[k] ** 2 for k in range(3)))

    return m


THIN = np.array([10.0, 1.0, 0.1, 0.01])


@problem("support function", 3, sqrt((THIN**2).sum()))
def thin_ellipsoid_in_four_dimensions():
    """The ellipsoid with the half-axes 10, 1, 0.1, 0.01: max of the sum of coordinates is
    the norm of the half-axes."""
    m = indexed_by((0, pi), (0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(4))
    maximize(m, sum(m.x[k] for k in range(4)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def inside(m, u, v, w):
        n = unit_vector(u, v, w)
        return inner(m.x, n) <= pyo.sqrt(sum(float(THIN[k]) ** 2 * n[k] ** 2 for k in range(4)))

    return m


@problem("support function", 2, sqrt(1e4 + 1 + 1e-6))
def ball_in_scaled_variables():
    """The unit ball in y = (0.01 x_0, x_1, 1000 x_2): max of the sum of x is the norm of
    (100, 1, 0.001)."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(3))
    maximize(m, m.x[0] + m.x[1] + m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def inside(m, u, v):
        n = unit_vector(u, v)
        return 0.01 * m.x[0] * n[0] + m.x[1] * n[1] + 1000 * m.x[2] * n[2] <= 1

    return m


@problem("support function", 1, sqrt(2) * 1e6)
def disc_with_large_radius():
    """The disc of radius 1e6 with rows multiplied by 1e-5."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] + m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return 1e-5 * inner(m.x, unit_vector(u)) <= 10

    return m


@problem("inscribed shape", 1, 2.0)
def largest_disc_in_a_rounded_square():
    """The square plus the unit disc has the width 4 in the axes' directions."""
    m = indexed_by((0, 2 * pi))
    m.c = pyo.Var(range(2))
    m.r = pyo.Var()
    maximize(m, m.r)

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return inner(m.c, unit_vector(u)) + m.r <= abs(pyo.cos(u)) + abs(pyo.sin(u)) + 1

    return m


@problem("inscribed shape", 1, sqrt(2 / 5))
def largest_tilted_ellipse_in_a_square():
    """The ellipse with half-axes 2 and 1 turned by 45 degrees extends sqrt(5/2) in both
    axes' directions, so it fits [-1, 1]**2 when scaled by sqrt(2/5)."""
    m = indexed_by((0, 2 * pi))
    m.c = pyo.Var(range(2))
    m.s = pyo.Var()
    maximize(m, m.s)

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        h = pyo.sqrt(2.5 + 1.5 * pyo.sin(2 * u))
        return inner(m.c, unit_vector(u)) + m.s * h <= abs(pyo.cos(u)) + abs(pyo.sin(u))

    return m


@problem("inscribed shape", 1, 2 * sqrt(10))
def longest_box_in_an_ellipse():
    """The largest sum of sides of an axis-parallel box in the ellipse with half-axes 3 and
    1: the corner maximizes x + y, which is sqrt(10)."""
    m = indexed_by((0, 2 * pi))
    m.c = pyo.Var(range(2))
    m.side = pyo.Var(range(2), bounds=(0, None))
    maximize(m, m.side[0] + m.side[1])

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        n = unit_vector(u)
        box = sum(abs(n[k]) * m.side[k] / 2 for k in range(2))
        return inner(m.c, n) + box <= pyo.sqrt(9 * n[0] ** 2 + n[1] ** 2)

    return m


@problem("inscribed shape", 2, 2 * sqrt(14))
def longest_box_in_an_ellipsoid():
    """The same in the ellipsoid with half-axes 3, 2, 1: twice sqrt(9 + 4 + 1)."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.c = pyo.Var(range(3))
    m.side = pyo.Var(range(3), bounds=(0, None))
    maximize(m, sum(m.side[k] for k in range(3)))

    @m.SemiInfiniteConstraint(m.u, m.v)
    def inside(m, u, v):
        n = unit_vector(u, v)
        box = sum(abs(n[k]) * m.side[k] / 2 for k in range(3))
        return inner(m.c, n) + box <= pyo.sqrt(9 * n[0] ** 2 + 4 * n[1] ** 2 + n[2] ** 2)

    return m


@problem("inscribed shape", 2, 1.0)
def largest_ball_in_an_ellipsoid():
    """Half-axes 3, 2, 1: the ball has radius 1."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.c = pyo.Var(range(3))
    m.r = pyo.Var()
    maximize(m, m.r)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def inside(m, u, v):
        n = unit_vector(u, v)
        return inner(m.c, n) + m.r <= pyo.sqrt(9 * n[0] ** 2 + 4 * n[1] ** 2 + n[2] ** 2)

    return m


@problem("inscribed shape", 1, 3 / (2 + sqrt(2)))
def largest_disc_in_a_triangle():
    """The triangle (0,0), (3,0), (0,3) as the intersection of its half planes at every
    direction: the support function is max(0, 3 cos u, 3 sin u), the inradius (legs 3, 3):
    (3 + 3 - 3 sqrt(2)) / 2 = 3/(2 + sqrt(2))."""
    m = indexed_by((0, 2 * pi))
    m.c = pyo.Var(range(2))
    m.r = pyo.Var()
    maximize(m, m.r)

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        a, b = 3 * pyo.cos(u), 3 * pyo.sin(u)
        larger = pyo.Expr_if(a >= b, a, b)
        return inner(m.c, unit_vector(u)) + m.r <= pyo.Expr_if(larger >= 0, larger, 0)

    return m


# ---------------------------------------------------------------------------
# Moment problems
# ---------------------------------------------------------------------------


def whole_line():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(None, None, 0)
    return m


@problem("moment problem", 1, 1 / 5)
def cantelli_on_the_whole_line():
    """Mean 0, variance 1: P(u >= 2) <= 1/5."""
    m = whole_line()
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= 2, 1, 0)

    return m


@problem("moment problem", 1, 2 / 11)
def two_sided_with_four_moments():
    """Moments 0, 1, 0, 3: P(|u| >= 2) = P(t >= 4) for t = u**2 of mean 1 and variance 2 is
    at most 2/(2 + 9) by Cantelli; the other atom t = 1/3 is positive."""
    m = whole_line()
    m.x = pyo.Var(range(5))
    minimize(m, m.x[0] + m.x[2] + 3 * m.x[4])

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(abs(u) >= 2, 1, 0)

    return m


NORMAL = [1.0, 0, 1, 0, 3, 0, 15, 0, 105]


def chebyshev_markov(n, x0):
    """Largest P(u >= x0) given the first 2n moments of the normal law: the atoms are x0 and
    the roots of the Christoffel-Darboux kernel K_n(x0, .)."""
    hermite = [np.polynomial.hermite_e.HermiteE.basis(k) for k in range(n + 1)]
    size = [float(np.prod(np.arange(1, k + 1))) for k in range(n + 1)]
    kernel = sum(hermite[k](x0) * hermite[k] / size[k] for k in range(n + 1))
    atoms = np.append(kernel.roots().real, x0)
    mass = 1 / sum(np.array([hermite[k](atoms) ** 2 / size[k] for k in range(n + 1)]))
    assert abs(mass.sum() - 1) < 1e-9
    return float(mass[atoms >= x0 - 1e-12].sum())


def normal_tail(n, x0, bounds=None):
    m = whole_line() if bounds is None else indexed_by(bounds)
    m.x = pyo.Var(range(2 * n + 1))
    minimize(m, sum(NORMAL[k] * m.x[k] for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= x0, 1, 0)

    return m


@problem("moment problem", 1, chebyshev_markov(2, 0.5))
def chebyshev_markov_with_four_moments():
    """Chebyshev, Markov, Stieltjes: canonical atoms through 0.5."""
    return normal_tail(2, 0.5)


@problem("moment problem", 1, chebyshev_markov(4, 1.0))
def chebyshev_markov_with_eight_moments():
    """The same with eight moments of the normal law, on the whole line."""
    return normal_tail(4, 1.0)


@problem("moment problem", 1, chebyshev_markov(4, 1.0))
def chebyshev_markov_with_eight_moments_on_an_interval():
    """The same on [-6, 6], which holds all atoms."""
    return normal_tail(4, 1.0, (-6, 6))


@problem("moment problem", 1, chebyshev_markov(3, -0.4))
def chebyshev_markov_with_six_moments():
    """The same with six moments."""
    return normal_tail(3, -0.4)


@problem("moment problem", 1, 2 / 3)
def markov_with_mass_at_infinity():
    """Mean 1 and second moment 2 on the half-line: P(u >= 3/2) <= 2/3 (Markov), approached
    with mass running to infinity; the bound u/1.5 attains it, and Cantelli's 4/5 is
    larger."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] + 2 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= 1.5, 1, 0)

    return m


@problem("moment problem", 1, 1 / 5)
def cantelli_on_the_half_line():
    """Mean 1 and variance 1: P(u >= 3) <= 1/5 with the other atom at 1/2."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] + 2 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u >= 3, 1, 0)

    return m


@problem("moment problem", 1, 1 / 5)
def cantelli_on_the_negative_half_line():
    """The mirror image on (-inf, 0]: P(u <= -3) <= 1/5."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(None, 0, 0)
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] - m.x[1] + 2 * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def tail(m, u):
        return polynomial(m.x, u) >= pyo.Expr_if(u <= -3, 1, 0)

    return m


def worst_cvar(m):
    m.x = pyo.Var(range(3))
    m.t = pyo.Var()
    minimize(m, m.t + 20 * (m.x[0] + m.x[2]))

    @m.SemiInfiniteConstraint(m.u)
    def nonnegative(m, u):
        return polynomial(m.x, u) >= 0

    @m.SemiInfiniteConstraint(m.u)
    def excess(m, u):
        return polynomial(m.x, u) >= u - m.t

    return m


@problem("moment problem", 1, sqrt(19))
def worst_cvar_on_the_whole_line():
    """The largest CVaR at 5% with mean 0 and variance 1 is sqrt(0.95/0.05)."""
    return worst_cvar(whole_line())


@problem("moment problem", 1, sqrt(19))
def worst_cvar_on_an_interval():
    """The same on [-10, 10], which holds the atoms."""
    return worst_cvar(indexed_by((-10, 10)))


@problem("moment problem", 1, 2.5)
def staircase_above_line():
    """The least line above the staircase min(floor(u), 5) on [0, 10] has the value 2.5 at
    2.5: the concave envelope is u up to 5."""
    m = indexed_by((0, 10))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0] + 2.5 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return m.x[0] + m.x[1] * u >= sum(pyo.Expr_if(u >= k, 1, 0) for k in range(1, 6))

    return m


def quadratic_variables(m, n, objective):
    """Symmetric quadratic q(z) = x_0 + sum b_i z_i + sum_{i<=j} A_ij z_i z_j."""
    m.c = pyo.Var()
    m.b = pyo.Var(range(n))
    m.K = pyo.Set(initialize=[(i, j) for i in range(n) for j in range(i, n)], dimen=2)
    m.A = pyo.Var(m.K)
    minimize(m, m.c + sum(objective[i][j] * m.A[i, j] for i, j in m.K))


def quadratic(m, z):
    return m.c + sum(m.b[i] * z[i] for i in range(len(z))) + sum(m.A[i, j] * z[i] * z[j] for i, j in m.K)


@problem("moment problem", 3, 1 / 3)
def chebyshev_outside_a_ball():
    """Mean 0 and covariance I in [-4, 4]**3: P(|z| >= 3) <= 3/9, with atoms on the sphere
    and at zero."""
    m = indexed_by((-4, 4), (-4, 4), (-4, 4))
    quadratic_variables(m, 3, np.eye(3).tolist())

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def tail(m, u, v, w):
        return quadratic(m, (u, v, w)) >= pyo.Expr_if(u**2 + v**2 + w**2 >= 9, 1, 0)

    return m


@problem("moment problem", 2, 4.2 / 20.2)
def chebyshev_of_a_half_plane():
    """Marshall and Olkin: P(u + 2 v >= 4) <= s/(s + 16), s = a'Sa = 4.2 with S = ((1, .3),
    (.3, .5)); the box [-10, 10]**2 holds suitable atoms."""
    m = indexed_by((-10, 10), (-10, 10))
    quadratic_variables(m, 2, [[1, 0.3], [0.3, 0.5]])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def tail(m, u, v):
        return quadratic(m, (u, v)) >= pyo.Expr_if(u + 2 * v >= 4, 1, 0)

    return m


@problem("moment problem", 2, 1.5 / 4)
def chebyshev_outside_a_disc_in_the_plane():
    """Covariance diag(1, 1/2) on the whole plane: P(|z| >= 2) <= 1.5/4."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(None, None, 0)
    m.v = pyo.RangeSet(None, None, 0)
    quadratic_variables(m, 2, [[1, 0], [0, 0.5]])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def tail(m, u, v):
        return quadratic(m, (u, v)) >= pyo.Expr_if(u**2 + v**2 >= 4, 1, 0)

    return m


@problem("moment problem", 2, 1.0)
def mean_of_the_larger_of_two():
    """E max(u, v) = E|u - v|/2 for means 0, at most sqrt(E (u - v)**2)/2 = 1; the quadratic
    touches along the two lines u - v = +-2."""
    m = indexed_by((-3, 3), (-3, 3))
    m.x = pyo.Var(range(4))
    minimize(m, m.x[0] + 4 * m.x[3])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return m.x[0] + m.x[1] * u + m.x[2] * v + m.x[3] * (u - v) ** 2 >= pyo.Expr_if(u >= v, u, v)

    return m


@problem("moment problem", 2, 0.5)
def bonferroni():
    """Given P(u >= 1/2) = 0.2 and P(v >= 1/2) = 0.3 the largest P(either) is 0.5: the
    functions are steps on the square."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + 0.2 * m.x[1] + 0.3 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        a, b = pyo.Expr_if(u >= 0.5, 1, 0), pyo.Expr_if(v >= 0.5, 1, 0)
        return m.x[0] + m.x[1] * a + m.x[2] * b >= pyo.Expr_if(a + b >= 1, 1, 0)

    return m


# ---------------------------------------------------------------------------
# Robust programs on boxes
# ---------------------------------------------------------------------------

RNG = np.random.default_rng(11)
R5_MEAN = RNG.uniform(1, 3, (3, 8)).round(3)
R5_SPREAD = RNG.uniform(-0.5, 0.5, (3, 8, 5)).round(3)
R5_GAIN = RNG.uniform(1, 2, 8).round(3)


@problem(
    "robust",
    5,
    finite_lp(
        R5_GAIN,
        [R5_MEAN[i] + R5_SPREAD[i] @ np.array(z) for i in range(3) for z in corners(5)],
        [10] * 96,
        (0, 3),
    ),
)
def robust_three_rows_in_five_dimensions():
    """Affine in u, so the 32 corners suffice for each of the three families."""
    m = indexed_by(*[(-1, 1)] * 5)
    m.I = pyo.RangeSet(0, 2)
    m.x = pyo.Var(range(8), bounds=(0, 3))
    maximize(m, inner(m.x, R5_GAIN.tolist()))

    @m.SemiInfiniteConstraint(m.I, m.u, m.v, m.w, m.r, m.s)
    def capacity(m, i, *z):
        return (
            sum(
                m.x[j] * (float(R5_MEAN[i, j]) + sum(float(R5_SPREAD[i, j, k]) * z[k] for k in range(5)))
                for j in range(8)
            )
            <= 10
        )

    return m


M4 = RNG.uniform(-1, 1, (6, 16)).round(3)
M4_GAIN = RNG.uniform(0.5, 2, 6).round(3)
SUBSETS4 = [[k for k in range(4) if b >> k & 1] for b in range(16)]


def _multilinear(row, z):
    total = 0
    for value, subset in zip(row, SUBSETS4, strict=True):
        term = float(value)
        for k in subset:
            term = term * z[k]
        total = total + term
    return total


@problem(
    "robust",
    4,
    finite_lp(M4_GAIN, [[_multilinear(M4[j], z) for j in range(6)] for z in corners(4)], [1] * 16, (-2, 2)),
)
def robust_multilinear_in_four_dimensions():
    """Multilinear in u, so every row is largest at a corner; free signs of x."""
    m = indexed_by(*[(-1, 1)] * 4)
    m.x = pyo.Var(range(6), bounds=(-2, 2))
    maximize(m, inner(m.x, M4_GAIN.tolist()))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def row(m, *z):
        return sum(m.x[j] * _multilinear(M4[j], z) for j in range(6)) <= 1

    return m


X5 = RNG.uniform(-0.6, 0.6, (5, 5)).round(3)
X5_GAIN = RNG.uniform(1, 2, 5).round(3)


@problem(
    "robust",
    5,
    finite_lp(X5_GAIN, [[exp(X5[j] @ np.array(z)) for j in range(5)] for z in corners(5)], [4] * 32, (0, None)),
)
def robust_exponentials_in_five_dimensions():
    """Convex in u for x >= 0: corners suffice."""
    m = indexed_by(*[(-1, 1)] * 5)
    m.x = pyo.Var(range(5), bounds=(0, None))
    maximize(m, inner(m.x, X5_GAIN.tolist()))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s)
    def row(m, *z):
        return sum(m.x[j] * pyo.exp(sum(float(X5[j, k]) * z[k] for k in range(5))) for j in range(5)) <= 4

    return m


def concave_row(n, gain):
    m = indexed_by(*[(-5, 5)] * n)
    m.x = pyo.Var(range(n))
    maximize(m, inner(m.x, gain))
    sets = [getattr(m, name) for name in "uvwrs"[:n]]

    @m.SemiInfiniteConstraint(*sets)
    def row(m, *z):
        return sum(m.x[k] * z[k] - z[k] ** 2 / 2 for k in range(n)) <= 1

    return m


@problem("robust", 3, sqrt(2) * 3)
def concave_row_in_three_dimensions():
    """The row is largest at z = x, where it says |x|**2 <= 2, so the maximum of (1, 2, 2)'x
    is sqrt(2) times 3."""
    return concave_row(3, [1, 2, 2])


@problem("robust", 5, sqrt(2) * sqrt(55))
def concave_row_in_five_dimensions():
    """The same in five dimensions with the gain (1, .., 5)."""
    return concave_row(5, [1, 2, 3, 4, 5])


@problem("robust", 1, 2 * sqrt(2))
def two_uncertain_rows_with_inner_maxima():
    """x u - u**2/2 <= 1 on [-5, 5] says |x| <= sqrt(2), for each of two variables by its own
    family."""
    m = indexed_by((-5, 5))
    m.J = pyo.RangeSet(0, 1)
    m.x = pyo.Var(m.J)
    maximize(m, m.x[0] - m.x[1])

    @m.SemiInfiniteConstraint(m.J, m.u)
    def row(m, j, u):
        return m.x[j] * u - u**2 / 2 <= 1

    return m


@problem("robust", 4, 8.0 * (1 + 1e-3))
def corner_of_a_four_dimensional_box():
    """The product (1 + u)(1 - v)(1 + w)(1 - r) is 16 at a single corner of the box, so 2x >=
    16.016."""
    m = indexed_by(*[(-1, 1)] * 4)
    m.x = pyo.Var()
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r)
    def row(m, u, v, w, r):
        return 2 * m.x >= (1 + u) * (1 - v) * (1 + w) * (1 - r) + 0.016

    return m


# ---------------------------------------------------------------------------
# Robust programs with where
# ---------------------------------------------------------------------------


@problem(
    "robust where",
    5,
    finite_lp(
        [1] * 5, [[1 + 2 * s * (j == k) for j in range(5)] for k in range(5) for s in (-1, 1)], [5] * 10, (0, None)
    ),
)
def l1_ball_in_five_dimensions():
    """Coefficients 1 + 2 z_j with |z|_1 <= 1: affine, so the ten vertices +-e_k suffice."""
    m = indexed_by(*[(-1, 1)] * 5)
    m.x = pyo.Var(range(5), bounds=(0, None))
    maximize(m, sum(m.x[j] for j in range(5)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, m.s, where=lambda m, *z: sum(abs(each) for each in z) <= 1)
    def row(m, *z):
        return sum(m.x[j] * (1 + 2 * z[j]) for j in range(5)) <= 5

    return m


@problem(
    "robust where",
    4,
    finite_lp(
        [3, 2, 2, 1], [[1 + 2 * s * (j == k) for j in range(4)] for k in range(4) for s in (-1, 1)], [5] * 8, (0, None)
    ),
)
def l1_ball_in_four_dimensions():
    """The same in four dimensions with unequal gains."""
    m = indexed_by(*[(-1, 1)] * 4)
    m.x = pyo.Var(range(4), bounds=(0, None))
    maximize(m, 3 * m.x[0] + 2 * m.x[1] + 2 * m.x[2] + m.x[3])

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, where=lambda m, *z: sum(abs(each) for each in z) <= 1)
    def row(m, *z):
        return sum(m.x[j] * (1 + 2 * z[j]) for j in range(4)) <= 5

    return m


HALF_AXES = [1.0, 0.3, 0.1]


@problem("robust where", 3, sqrt(1 + 1 / 0.09 + 1 / 0.01))
def ellipsoid_in_three_dimensions_by_where():
    """z'x <= 1 over the ellipsoid with half-axes a: sum (a_k x_k)**2 <= 1, so the largest sum
    of x is the norm of 1/a."""
    m = indexed_by((-1, 1), (-1, 1), (-1, 1))
    m.x = pyo.Var(range(3))
    maximize(m, sum(m.x[k] for k in range(3)))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, where=lambda m, *z: sum((z[k] / HALF_AXES[k]) ** 2 for k in range(3)) <= 1)
    def row(m, *z):
        return inner(m.x, z) <= 1

    return m


def polar_of(where, bounds, gain):
    """Largest gain'x with z'x <= 1 over the part of a box where a condition holds."""
    m = indexed_by(*bounds)
    m.x = pyo.Var(range(len(bounds)))
    maximize(m, inner(m.x, gain))
    sets = [getattr(m, name) for name in "uvwrs"[: len(bounds)]]

    @m.SemiInfiniteConstraint(*sets, where=where)
    def row(m, *z):
        return inner(m.x, z) <= 1

    return m


@problem("robust where", 2, 5.0)
def annulus():
    """Over the annulus 0.5 <= |z| <= 1 the rows z'x <= 1 are those of the disc."""
    return polar_of(lambda m, u, v: (u**2 + v**2 <= 1) & (u**2 + v**2 >= 0.25), [(-1, 1)] * 2, [3, 4])


@problem("robust where", 2, 5.0)
def thin_ring():
    """The same with a ring of width 0.01."""
    return polar_of(lambda m, u, v: (u**2 + v**2 <= 1) & (u**2 + v**2 >= 0.99**2), [(-1, 1)] * 2, [3, 4])


@problem("robust where", 2, 5.0)
def inside_of_a_thin_ring():
    """t >= 10 |z|**2 - 5 where 0.98 <= |z|**2 <= 1 says t >= 5, so 10 - t is at most 5; the
    row binds on the whole outer circle."""
    m = indexed_by((-1, 1), (-1, 1))
    m.t = pyo.Var()
    maximize(m, 10 - m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: abs(u**2 + v**2 - 0.99) <= 0.01)
    def row(m, u, v):
        return m.t >= 10 * (u**2 + v**2) - 5

    return m


@problem("robust where", 3, 3.0)
def thin_shell():
    """The shell 0.99 <= |z| <= 1 in three dimensions: the ball's rows."""
    return polar_of(
        lambda m, u, v, w: (u**2 + v**2 + w**2 <= 1) & (u**2 + v**2 + w**2 >= 0.99**2), [(-1, 1)] * 3, [1, 2, 2]
    )


BAND = 0.005
BAND_VERTICES = [(-1, -1), (-1, -1 + BAND), (-1 + BAND, -1), (1, 1), (1, 1 - BAND), (1 - BAND, 1)]


@problem("robust where", 2, finite_lp([1, -1], BAND_VERTICES, [1] * 6, (None, 300)))
def slanted_narrow_band():
    """The band |u - v| <= 0.005 of the square is a hexagon with known vertices; x_0 - x_1
    can grow far as the band is thin."""
    m = polar_of(lambda m, u, v: abs(u - v) <= BAND, [(-1, 1)] * 2, [1, -1])
    m.x[0].setub(300)
    m.x[1].setub(300)
    return m


def _slab_vertices(width):
    """Vertices of |u + v + w - 1| <= width in the unit cube: on edges, where the sum is 1 +- width."""
    points = []
    for total in (1 - width, 1 + width):
        for axis in range(3):
            for others in product((0, 1), repeat=2):
                rest = total - sum(others)
                if 0 <= rest <= 1:
                    z = list(others)
                    z.insert(axis, rest)
                    points.append(z)
    return points


@problem("robust where", 3, finite_lp([1, 2, 3], _slab_vertices(0.002), [1] * len(_slab_vertices(0.002)), (-5, 5)))
def slanted_slab_in_the_cube():
    """The slab |u + v + w - 1| <= 0.002 of the cube: vertices lie on the cube's edges."""
    m = polar_of(lambda m, u, v, w: abs(u + v + w - 1) <= 0.002, [(0, 1)] * 3, [1, 2, 3])
    for k in range(3):
        m.x[k].setlb(-5)
        m.x[k].setub(5)
    return m


def _two_discs(u, v):
    return ((u + 0.5) ** 2 + v**2 <= 0.04) | ((u - 0.9) ** 2 + (v - 0.9) ** 2 <= 0.0025)


@problem("robust where", 2, sqrt(2) / (0.9 * sqrt(2) + 0.05))
def two_separated_discs():
    """Over two discs the rows z'x <= 1 say centre'x + radius |x| <= 1; with x = s (1, 1)/
    sqrt(2), which is best by symmetry of the binding disc at (0.9, 0.9), s = 1/(0.9 sqrt(2)
    + 0.05); the other disc has room, and the gain is sqrt(2) s."""
    return polar_of(lambda m, u, v: _two_discs(u, v), [(-1, 1)] * 2, [1, 1])


@problem("robust where", 2, 0.02 + 1.0 + 0.8)
def small_disc_decides():
    """t >= u + v over two discs: the small one of radius 0.02/sqrt(2) at (0.9, 0.9)."""
    m = indexed_by((-1, 1), (-1, 1))
    m.t = pyo.Var()
    minimize(m, m.t)
    radius = 0.02 / sqrt(2)

    @m.SemiInfiniteConstraint(
        m.u, m.v, where=lambda m, u, v: ((u + 0.5) ** 2 + v**2 <= 0.04) | ((u - 0.9) ** 2 + (v - 0.9) ** 2 <= radius**2)
    )
    def row(m, u, v):
        return m.t >= u + v

    return m


@problem("robust where", 1, 1 / 0.7002)
def two_short_intervals():
    """x u <= 1 where |u - 0.1| <= 0.0002 or |u - 0.7| <= 0.0002."""
    m = indexed_by((0, 1))
    m.x = pyo.Var()
    maximize(m, m.x)

    @m.SemiInfiniteConstraint(m.u, where=lambda m, u: (abs(u - 0.1) <= 0.0002) | (abs(u - 0.7) <= 0.0002))
    def row(m, u):
        return m.x * u <= 1

    return m


@problem("robust where", 5, sqrt(55))
def ball_in_five_dimensions_by_where():
    """z'x <= 1 over the unit ball: the norm of (1, .., 5)."""
    return polar_of(lambda m, *z: sum(each**2 for each in z) <= 1, [(-1, 1)] * 5, [1, 2, 3, 4, 5])


@problem("robust where", 4, 1.5)
def budget_of_three_halves():
    """t >= sum z over the unit cube of dimension 4 with the budget sum z <= 3/2: binding on a
    whole face."""
    m = indexed_by(*[(0, 1)] * 4)
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w, m.r, where=lambda m, *z: sum(z) <= 1.5)
    def row(m, *z):
        return m.t >= sum(z)

    return m


# ---------------------------------------------------------------------------
# Many local maxima
# ---------------------------------------------------------------------------


@problem("many maxima", 2, 2.0)
def plane_above_fifty_peaks():
    """1 + u + v touches u + v + sin(10 pi u) sin(10 pi v) at 50 peaks that are symmetric
    about the centre, so the least mean of a plane above is 2."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] / 2 + m.x[2] / 2)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def cover(m, u, v):
        return m.x[0] + m.x[1] * u + m.x[2] * v >= u + v + pyo.sin(10 * pi * u) * pyo.sin(10 * pi * v)

    return m


def _wave(rate, tilt):
    return lambda z: 1.2 + np.sin(rate * z) + tilt * z


WAVES = [(20, 0.1), (17, -0.05), (23, 0.02), (14, 0.03), (11, -0.04)]


def product_of_waves(n):
    m = indexed_by(*[(0, 1)] * n)
    m.t = pyo.Var()
    minimize(m, m.t)
    sets = [getattr(m, name) for name in "uvwrs"[:n]]

    @m.SemiInfiniteConstraint(*sets)
    def cover(m, *z):
        value = 1
        for k in range(n):
            value = value * (1.2 + pyo.sin(WAVES[k][0] * z[k]) + WAVES[k][1] * z[k])
        return m.t >= value

    return m


def _product_of_waves(n):
    return float(np.prod([largest_on_interval(_wave(*WAVES[k]), 0, 1) for k in range(n)]))


@problem("many maxima", 2, _product_of_waves(2))
def product_of_two_waves():
    """A product of positive functions of one coordinate each: the product of their maxima."""
    return product_of_waves(2)


@problem("many maxima", 3, _product_of_waves(3))
def product_of_three_waves():
    """The same in three dimensions: about 36 peaks of nearly the same height."""
    return product_of_waves(3)


@problem("many maxima", 4, _product_of_waves(4))
def product_of_four_waves():
    """The same in four dimensions."""
    return product_of_waves(4)


@problem("many maxima", 5, _product_of_waves(5))
def product_of_five_waves():
    """The same in five dimensions."""
    return product_of_waves(5)


def schwefel(n):
    m = indexed_by(*[(-500, 500)] * n)
    m.t = pyo.Var()
    minimize(m, m.t)
    sets = [getattr(m, name) for name in "uvwrs"[:n]]

    @m.SemiInfiniteConstraint(*sets)
    def cover(m, *z):
        return m.t >= sum(each * pyo.sin(pyo.sqrt(abs(each))) for each in z)

    return m


SCHWEFEL = largest_on_interval(lambda z: z * np.sin(np.sqrt(np.abs(z))), -500, 500)


@problem("many maxima", 1, SCHWEFEL)
def schwefel_in_one_dimension():
    """u sin(sqrt |u|) on [-500, 500] is largest near 420.97."""
    return schwefel(1)


@problem("many maxima", 2, 2 * SCHWEFEL)
def schwefel_in_two_dimensions():
    """A sum of two such functions."""
    return schwefel(2)


@problem("many maxima", 3, 3 * SCHWEFEL)
def schwefel_in_three_dimensions():
    """A sum of three."""
    return schwefel(3)


# ---------------------------------------------------------------------------
# Degenerate systems
# ---------------------------------------------------------------------------


@problem("degenerate", 1, 1.0)
def one_candidate_only():
    """The band between u**2 and u**2 holds the single polynomial u**2 of degree six; its
    value at 1 is 1 (ranged row)."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(7))
    minimize(m, sum(m.x[k] for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return (u**2, polynomial(m.x, u), u**2)

    return m


@problem("degenerate", 2, 1.0)
def identical_binding_directions():
    """x u + y v <= max(u, v) over the square with x + y maximal: all rows with u = v bind."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] + m.x[1])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def row(m, u, v):
        return m.x[0] * u + m.x[1] * v <= pyo.Expr_if(u >= v, u, v)

    return m


# ---------------------------------------------------------------------------
# Integers, ranged rows, scales
# ---------------------------------------------------------------------------

KNAP_GAIN = np.array([5, 4, 7, 3, 6, 2, 8, 4])
KNAP_MEAN = np.array([2.0, 1.5, 3.0, 1.0, 2.5, 0.8, 3.5, 1.7])
KNAP_A = np.array([0.5, 0.1, 0.9, 0.2, 0.4, 0.1, 1.0, 0.3])
KNAP_B = np.array([0.2, 0.4, 0.3, 0.1, 0.6, 0.2, 0.1, 0.5])


def _robust_knapsack():
    best = 0
    for x in product((0, 1), repeat=8):
        z = np.array(x)
        if KNAP_MEAN @ z + np.hypot(KNAP_A @ z, KNAP_B @ z) <= 9:
            best = max(best, int(KNAP_GAIN @ z))
    return best


@problem("integer", 1, _robust_knapsack())
def knapsack_with_an_ellipse_of_weights():
    """Weights mean + cos(u) A + sin(u) B: mean'x + |(A'x, B'x)| <= 9 over all 256 binary x."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(8), domain=pyo.Binary)
    maximize(m, sum(int(KNAP_GAIN[j]) * m.x[j] for j in range(8)))

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return (
            sum(
                m.x[j] * (float(KNAP_MEAN[j]) + float(KNAP_A[j]) * pyo.cos(u) + float(KNAP_B[j]) * pyo.sin(u))
                for j in range(8)
            )
            <= 9
        )

    return m


def _integer_ball():
    best = 0
    for z in product(range(-8, 9), repeat=3):
        if z[0] ** 2 + z[1] ** 2 + z[2] ** 2 <= 50.5:
            best = max(best, 3 * z[0] + 4 * z[1] + 5 * z[2])
    return best


@problem("integer", 2, _integer_ball())
def integer_point_in_a_large_ball():
    """The best whole point of the ball of radius sqrt(50.5), by enumeration."""
    m = indexed_by((0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(3), domain=pyo.Integers, bounds=(-8, 8))
    maximize(m, 3 * m.x[0] + 4 * m.x[1] + 5 * m.x[2])

    @m.SemiInfiniteConstraint(m.u, m.v)
    def row(m, u, v):
        return inner(m.x, unit_vector(u, v)) <= sqrt(50.5)

    return m


@problem("ranged", 1, 2 - 1 / 8)
def ranged_line_between_parabolas():
    """u - 1/8 is the only line between u**2 - 1/8 and u**2 + 1/8 on [0, 1] (the best uniform
    approximation, three alternations), so a + 2 b is 2 - 1/8; there is no Slater point."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[0] + 2 * m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def band(m, u):
        return (u**2 - 1 / 8, m.x[0] + m.x[1] * u, u**2 + 1 / 8)

    return m


@problem("scales", 2, 1e6 + 1e-6 + 1.0)
def box_of_very_different_sides():
    """u + v + u v increases in both coordinates of [0, 1e6] x [0, 1e-6], so the far corner
    decides: 1e6 + 1e-6 + 1."""
    m = indexed_by((0, 1e6), (0, 1e-6))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def row(m, u, v):
        return m.t >= u + v + u * v

    return m


@problem("scales", 1, 1e-5)
def small_objective():
    """x >= 1e-5 u (2 - u): 1e-5 at u = 1."""
    m = indexed_by((0, 2))
    m.x = pyo.Var()
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return m.x >= 1e-5 * u * (2 - u)

    return m


@problem("scales", 1, apply_rule(radau_right(2), np.exp) * 1e6)
def rows_of_a_million():
    """The parabola above 1e6 exp(u)."""
    return polynomial_above(2, lambda u: 1e6 * pyo.exp(u))


@problem("scales", 1, apply_rule(lobatto(4), lambda u: 1e-5 + np.exp(12 * u)))
def exp_over_five_decades():
    """exp(12 u) from 1 to 160000 above by a quintic: the four-point Lobatto rule."""
    return polynomial_above(5, lambda u: 1e-5 + pyo.exp(12 * u))


@problem("free variables", 1, apply_rule(gauss(3), np.exp))
def exp_below_quintic_free():
    """Free variables; the first relaxations are unbounded unless enough points are laid: the
    three-point Gauss rule."""
    return polynomial_below(5, lambda u: pyo.exp(u))


# ---------------------------------------------------------------------------
# Feasible and infeasible by a little, bounded and unbounded by a little
# ---------------------------------------------------------------------------


def band_around_square(margin):
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0])

    @m.SemiInfiniteConstraint(m.u)
    def above(m, u):
        return m.x[0] + m.x[1] * u <= u**2 + 1 / 8 + margin

    @m.SemiInfiniteConstraint(m.u)
    def below(m, u):
        return m.x[0] + m.x[1] * u >= u**2 - 1 / 8 - margin

    return m


@infeasible(1)
def band_narrower_by_a_thousandth():
    """A line approximates u**2 on [0, 1] to 1/8 and no better."""
    return band_around_square(-1e-3)


@problem("barely feasible", 1, -1 / 8 - 1e-3)
def band_wider_by_a_thousandth():
    """The least x_0 with x_0 + x_1 u in the band of half-width 1/8 + d: at u = 0 the row
    says x_0 >= -1/8 - d, attained by the line u - 1/8 - d + e u with small e >= 0 that
    also meets 1 - 1/8 - d at 1 and stays below u**2 + 1/8 + d at 1/2."""
    return band_around_square(1e-3)


def ellipse_and_line(distance):
    """A point of the line x_0 + x_1 = distance inside the unit disc."""
    m = indexed_by((0, 2 * pi))
    m.x = pyo.Var(range(2))
    minimize(m, m.x[0])
    m.line = pyo.Constraint(expr=m.x[0] + m.x[1] == distance)

    @m.SemiInfiniteConstraint(m.u)
    def inside(m, u):
        return inner(m.x, unit_vector(u)) <= 1

    return m


@infeasible(1)
def line_just_outside_the_disc():
    """The line x + y = sqrt(2) + 0.001 misses the disc."""
    return ellipse_and_line(sqrt(2) + 1e-3)


def _chord_end(distance):
    half = distance / 2
    return half - sqrt(0.5 - half**2)


@problem("barely feasible", 1, _chord_end(sqrt(2) - 1e-3))
def line_just_inside_the_disc():
    """The line x + y = sqrt(2) - 0.001 cuts a short chord; its end is known."""
    return ellipse_and_line(sqrt(2) - 1e-3)


@infeasible(1)
def narrow_step_forbids():
    """x >= 2 where |u - 0.3141| <= 0.0001, and x <= 1."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(bounds=(None, 1))
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return m.x >= pyo.Expr_if(abs(u - 0.3141) <= 0.0001, 2, u)

    return m


@infeasible(1)
def narrow_bump_forbids():
    """A Gaussian of width 0.0005 reaches 2 at u = 0.3141, and x <= 1."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(bounds=(None, 1))
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return m.x >= 0.5 * u + 1.9 * pyo.exp(-(((u - 0.3141) / 0.0005) ** 2))

    return m


@infeasible(2)
def narrow_bump_in_the_square_forbids():
    """The same in two dimensions with width 0.02."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(bounds=(None, 1))
    minimize(m, m.x)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def row(m, u, v):
        return m.x >= 0.2 * u + 1.9 * pyo.exp(-(((u - 0.3141) / 0.02) ** 2) - ((v - 0.6666) / 0.02) ** 2)

    return m


@infeasible(3)
def ball_and_half_space_apart():
    """sum z_k x_k <= 1 on the sphere and x_0 + x_1 + x_2 >= sqrt(3) + 0.001 (three angles of
    a four-dimensional ball)."""
    m = indexed_by((0, pi), (0, pi), (0, 2 * pi))
    m.x = pyo.Var(range(4))
    minimize(m, m.x[3])
    m.far = pyo.Constraint(expr=m.x[0] + m.x[1] + m.x[2] >= sqrt(3) + 1e-3)

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def inside(m, u, v, w):
        return inner(m.x, unit_vector(u, v, w)) <= 1

    return m


def moments_near_a_point_mass(second):
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] + m.x[1] / 2 + second * m.x[2])

    @m.SemiInfiniteConstraint(m.u)
    def nonnegative(m, u):
        return polynomial(m.x, u) >= -1

    return m


@unbounded(1)
def variance_just_negative():
    """Second moment 1/4 - 1e-4 with mean 1/2: multiples of (u - 1/2)**2 lower the objective
    without end, and are the only ones that do."""
    return moments_near_a_point_mass(0.25 - 1e-4)


@problem("barely bounded", 1, -1.0)
def variance_just_positive():
    """With 1/4 + 1e-4 the moments are those of a distribution, so the least value is -1."""
    return moments_near_a_point_mass(0.25 + 1e-4)


@problem("barely bounded", 1, -1.0)
def variance_zero():
    """With 1/4 they are those of a point mass at 1/2: the value is p(1/2) >= -1."""
    return moments_near_a_point_mass(0.25)


@unbounded(1)
def steep_ray():
    """Directions up to pi/2 - 0.01 leave the ray (-100, 1) free, which raises y."""
    m = indexed_by((0, pi / 2 - 0.01))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return inner(m.x, unit_vector(u)) <= 1

    return m


@unbounded(1)
def very_steep_ray():
    """Directions up to pi/2 - 0.0001: the ray is (-10000, 1)."""
    m = indexed_by((0, pi / 2 - 1e-4))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return inner(m.x, unit_vector(u)) <= 1

    return m


@problem("barely bounded", 1, 1.0)
def no_ray_left():
    """Directions up to pi/2 bind y at 1."""
    m = indexed_by((0, pi / 2))
    m.x = pyo.Var(range(2))
    maximize(m, m.x[1])

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return inner(m.x, unit_vector(u)) <= 1

    return m


@unbounded(1)
def tangential_ray():
    """p >= 0 of degree two with p(1/2) = 0 leaves multiples of (u - 1/2)**2, which touch zero;
    p(1) grows along them."""
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(3))
    maximize(m, m.x[0] + m.x[1] + m.x[2])
    m.zero = pyo.Constraint(expr=m.x[0] + m.x[1] / 2 + m.x[2] / 4 == 0)

    @m.SemiInfiniteConstraint(m.u)
    def nonnegative(m, u):
        return polynomial(m.x, u) >= 0

    return m


@unbounded(2)
def tangential_ray_in_two_dimensions():
    """Multiples of (u - v)**2 touch zero along the diagonal and lower the objective, which
    gives them the value -1."""
    m = indexed_by((0, 1), (0, 1))
    m.x = pyo.Var(range(3))
    minimize(m, m.x[0] * 1 + m.x[1] * 1 + m.x[2] * 1.5)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def row(m, u, v):
        return m.x[0] * u**2 + m.x[1] * v**2 + m.x[2] * u * v >= -1

    return m


# ---------------------------------------------------------------------------
# Many variables
# ---------------------------------------------------------------------------


@problem("many variables", 1, trapezoid(400, lambda z: np.exp(3 * z)))
def spline_of_401_knots_by_expr_if():
    """As above with 401 hat functions written with Expr_if."""
    n = 400
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(n + 1))
    minimize(m, sum(m.x[k] * (0.5 if k in (0, n) else 1) / n for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        return sum(m.x[k] * pyo.Expr_if(abs(u - k / n) <= 1 / n, 1 - n * abs(u - k / n), 0) for k in m.x) >= pyo.exp(
            3 * u
        )

    return m


@problem("many variables", 1, 1 / 151)
def fejer_kernel_of_order_150_with_sines():
    """301 variables; see fejer_kernel_of_order_25."""
    return least_mean(150, True)


@problem("many variables", 3, 200.0)
def two_hundred_caps():
    """x_j times a bump of height 1 at its own place, all places at least as far apart as the
    bump is wide: every x_j is at most 1, for 200 bumps (1 - 100 d**2)+ on a 5 x 5 x 8
    lattice of spacing 0.25 in [0, 1] x [0, 1] x [0, 1.75]."""
    m = indexed_by((0, 1), (0, 1), (0, 1.75))
    places = [(i / 4, j / 4, k / 4) for i in range(5) for j in range(5) for k in range(8)]
    m.J = pyo.RangeSet(0, 199)
    m.x = pyo.Var(m.J, bounds=(0, None))
    maximize(m, sum(m.x[j] for j in m.J))

    @m.SemiInfiniteConstraint(m.u, m.v, m.w)
    def row(m, u, v, w):
        total = 0
        for j in m.J:
            d = (u - places[j][0]) ** 2 + (v - places[j][1]) ** 2 + (w - places[j][2]) ** 2
            total = total + m.x[j] * pyo.Expr_if(d <= 0.0144, 1 - d / 0.0144, 0)
        return total <= 1

    return m


# ---------------------------------------------------------------------------
# Switches narrower than the scan
# ---------------------------------------------------------------------------


@problem("narrow switch", 1, 2.0)
def narrow_step_by_a_square():
    """t >= 2 where (u - 0.3141)**2 <= 4e-10, a piece of width 4e-5 whose switch function has
    no sign change between coarse nodes; elsewhere t >= u."""
    m = indexed_by((0, 1))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        return m.t >= pyo.Expr_if((u - 0.3141) ** 2 <= 4e-10, 2, u)

    return m


@problem("narrow switch", 2, 3.0)
def narrow_stripe_in_the_square():
    """t >= 2 + v where |u - 0.3141| <= 0.0001: a stripe of the square."""
    m = indexed_by((0, 1), (0, 1))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def row(m, u, v):
        return m.t >= pyo.Expr_if(abs(u - 0.3141) <= 0.0001, 2 + v, u)

    return m


@problem("narrow switch", 2, 1.0)
def narrow_ridge_along_a_kink():
    """t >= 1 - 2000 |u - v - 0.1234|: a ridge along a slanted line, 0.001 wide."""
    m = indexed_by((0, 1), (0, 1))
    m.t = pyo.Var()
    minimize(m, m.t)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def row(m, u, v):
        return m.t >= 1 - 2000 * abs(u - v - 0.1234)

    return m


@problem("narrow switch", 1, 450 / (1 + 0.001 * 449))
def many_narrow_caps():
    """450 intervals of width 4e-6 on which x_j has the coefficient 1 and 0.001 elsewhere: by
    symmetry x_j = 1/(1 + 0.449), and summing the rows proves it."""
    places = [0.01 + 0.98 * (j + 0.37) / 450 for j in range(450)]
    m = indexed_by((0, 1))
    m.x = pyo.Var(range(450), bounds=(0, 10))
    maximize(m, sum(m.x[j] for j in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def cap(m, u):
        return sum(m.x[j] * pyo.Expr_if(abs(u - places[j]) <= 2e-6, 1, 0.001) for j in m.x) <= 1

    return m
