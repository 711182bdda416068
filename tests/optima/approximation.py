"""Approximation from one side and in the maximum norm, extremal polynomials, filters.

Columns: name, optimum, program, reason.  One-sided approximation by polynomials has columns of its own: see there.
"""

from itertools import product
from math import cosh, e, pi, prod, sinh

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import Expr_if, cos, exp, log, sin, sqrt, tan

from optima.known import Known, table
from optima.models import (
    HALF_LINE,
    affine,
    best_polynomial,
    best_uniform,
    best_uniform_by_signs,
    bounded,
    cosine_sum,
    cosines,
    covering,
    cube,
    free,
    hat,
    in_ball,
    indicator,
    inner,
    integer,
    maximize,
    minimize,
    moments,
    monomials,
    packing,
    polynomial,
    powers,
    sine_sum,
    square_sum,
    total,
    unit_cube,
)
from optima.values import (
    chebyshev_polynomial,
    corners,
    gauss,
    integral,
    lobatto,
    positive_rule_exists,
    radau_left,
    radau_right,
    trapezoid,
)

# ---------------------------------------------------------------------------
# One-sided L1 approximation by polynomials in one variable
#
# The least integral over an interval of a polynomial above a function, or the largest of one below.  Columns: name,
# degree, function, interval, dual, reason.  The dual solution is a quadrature rule with nodes where the best
# polynomial touches, so the optimum is the rule applied to the function; a number stands for the optimum itself.
# ---------------------------------------------------------------------------

UNIT = (0, 1)
BOTH = (-1, 1)


def near_pole(u):
    return 1 / (u + 0.01)


def _optimum(dual, interval, function):
    return integral(dual[0](dual[1], *interval), function) if isinstance(dual, tuple) else float(dual)


def polynomials_above(kind, *rows):
    return table(kind, *(
        (name, _optimum(dual, interval, f), covering(moments(degree, interval), powers(degree), f, [interval]), reason)
        for name, degree, f, interval, dual, reason in rows
    ))  # fmt: skip


def polynomials_below(kind, *rows):
    return table(kind, *(
        (name, _optimum(dual, interval, f), packing(moments(degree, interval), powers(degree), f, [interval]), reason)
        for name, degree, f, interval, dual, reason in rows
    ))  # fmt: skip


# What degree_seven_above_fifty_waves needs of its touching points.
assert positive_rule_exists(np.linspace(0, 1, 51), 7)

# fmt: off
POLYNOMIALS = [
    *polynomials_above(
        "one-sided L1",
        ("exp_above_line", 1, exp, UNIT, (lobatto, 2),
         "The best line above a convex function is its chord, so the optimum is the trapezoidal rule."),
        ("exp_above_quadratic", 2, exp, UNIT, (radau_right, 2),
         "The third derivative is positive, so the dual measure is the Radau rule with the right end: 3/4 exp(1/3) + "
         "1/4 e."),
        ("exp_above_cubic", 3, exp, UNIT, (lobatto, 3),
         "The fourth derivative is positive, so the dual measure is the three-point Lobatto rule (Simpson)."),
        ("exp_above_degree_seven", 7, exp, UNIT, (lobatto, 5),
         "The eighth derivative is positive, so the dual measure is the five-point Lobatto rule."),
        ("tangent_above_quadratic", 2, tan, UNIT, (radau_right, 2),
         "All derivatives of tan are positive on [0, 1], so the dual measure is the Radau rule with the right end; "
         "the value is the 0.6490 of the literature."),
        ("tangent_above_quintic", 5, tan, UNIT, (lobatto, 4),
         "All derivatives of tan are positive on [0, 1], so for degree five the dual measure is the four-point "
         "Lobatto rule."),
        ("reciprocal_above_quadratic", 2, lambda u: 1 / (1 + u), UNIT, (radau_left, 2),
         "The third derivative of 1/(1+u) is negative, so the dual measure is the Radau rule with the left end: 1/4 + "
         "3/4 * 3/5."),
        ("absolute_value_above_quadratic", 2, abs, BOTH, (gauss, 2),
         "On [-1, 1] an even quadratic a + b u**2 stays above |u| when 4ab >= 1, and the minimum of 2a + 2b/3 is "
         "2/sqrt(3), touching at the Gauss nodes."),
        ("step_above_line", 1, lambda u: indicator(u <= 0.3), UNIT, 5 / 7,
         "The best line above the indicator of u <= 0.3 passes through (0.3, 1) and (1, 0); the masses 5/7 and 2/7 "
         "there have the mean 1/2 and prove it."),
        ("function_inside_the_span", 2, lambda u: 1 + 2 * u - u**2, UNIT, 5 / 3,
         "The function 1 + 2u - u**2 is itself a candidate, so every row binds and the optimum is its integral 5/3."),
        ("concave_kink_above_line", 1, lambda u: Expr_if(u <= 0.5, 1, 2 - 2 * u), UNIT, 1.0,
         "For a concave function the best mean value of a line above it is f(1/2) = 1; every slope between -2 and 0 "
         "is optimal, and with slope 0 the rows bind on all of [0, 1/2]."),
        ("near_pole_above_quintic", 5, near_pole, UNIT, (lobatto, 4),
         "Even derivatives of 1/(u + 0.01) are positive, so the dual measure is the four-point Lobatto rule."),
        ("near_pole_above_degree_thirteen", 13, near_pole, UNIT, (lobatto, 8),
         "The eight-point Lobatto rule, with monomials of degree 13."),
        ("right_pole_above_degree_thirteen", 13, lambda u: 1 / (1.1 - u), UNIT, (lobatto, 8),
         "All derivatives of 1/(1.1 - u) are positive: the eight-point Lobatto rule."),
        ("tangent_above_degree_eleven", 11, tan, UNIT, (lobatto, 7),
         "All derivatives of tan are positive on [0, 1]: the seven-point Lobatto rule."),
        ("steep_tangent_above_degree_ten", 10, lambda u: tan(1.5 * u), UNIT, (radau_right, 6),
         "tan(1.5 u), which rises to 14: the odd derivative is positive, so the six-point Radau rule with the right "
         "end."),
        ("entropy_above_cubic", 3, lambda u: Expr_if(u <= 0, 0, u * log(u + 1e-300)), UNIT, (lobatto, 3),
         "u log u has positive even derivatives, so Simpson's rule is the dual measure; the slope is minus infinity "
         "at the binding end 0."),
        ("square_root_above_degree_seven", 7, sqrt, UNIT, (gauss, 4),
         "Even derivatives of sqrt are negative, so the best polynomial above has the four-point Gauss rule as its "
         "dual measure."),
        ("power_above_degree_six", 6, lambda u: u**1.5, UNIT, (radau_left, 4),
         "Odd derivatives of u**1.5 from the third on alternate: the seventh is negative, so the dual measure is the "
         "four-point Radau rule with the left end."),
        ("absolute_power_above_degree_seven", 7, lambda u: abs(u) ** 1.5, BOTH, (gauss, 4),
         "|u|**1.5 = t**0.75 with t = u**2 has negative even derivatives in t, and even polynomials suffice, so the "
         "dual measure is the four-point Gauss rule on [-1, 1]."),
        ("absolute_value_above_degree_eleven", 11, abs, BOTH, (gauss, 6),
         "|u| = sqrt(t) with t = u**2, as above: the six-point Gauss rule on [-1, 1]."),
        ("degree_seven_above_fifty_waves", 7, lambda u: u**7 + cos(100 * pi * u), UNIT, 1 + 1 / 8,
         "u**7 + 1 touches u**7 + cos(100 pi u) at 51 points, on which some positive weights integrate all "
         "polynomials of degree seven."),
        ("rational_above_degree_seven", 7, lambda u: exp(u) / (2 - u), UNIT, (lobatto, 5),
         "exp(u)/(2 - u) has positive derivatives (a product of two such functions): the five-point Lobatto rule."),
    ),
    *polynomials_below(
        "one-sided L1",
        ("exp_below_cubic", 3, exp, UNIT, (gauss, 2),
         "The fourth derivative is positive, so the dual measure of the best cubic from below is the two-point Gauss "
         "rule."),
        ("absolute_value_below_quadratic", 2, abs, BOTH, (lobatto, 3),
         "u**2 is feasible with integral 2/3 on [-1, 1], and Simpson's rule, exact for quadratics, gives 2/3 for |u| "
         "as a bound."),
        ("square_root_below_line", 1, sqrt, UNIT, (lobatto, 2),
         "sqrt is concave, so the best line below it is the chord; the slope of sqrt is infinite at the binding point "
         "0."),
        ("near_pole_below_degree_nine", 9, near_pole, UNIT, (gauss, 5),
         "Even derivatives are positive, so the dual measure is the five-point Gauss rule."),
        ("entropy_below_degree_seven", 7, lambda u: u * log(u + 1e-300), UNIT, (gauss, 4),
         "The four-point Gauss rule; u is kept positive by an interval that starts at 0 and the usual guard of the "
         "logarithm."),
        ("square_root_below_degree_nine", 9, sqrt, UNIT, (lobatto, 6),
         "Even derivatives of sqrt are negative, so below it the dual measure is the six-point Lobatto rule, with the "
         "vertical tangent at the binding point 0."),
        ("absolute_value_below_degree_fifteen", 15, abs, BOTH, (lobatto, 9),
         "|u| = sqrt(t) with t = u**2: below it touches at t = 0, 1 and three inner points, which are the nine-point "
         "Lobatto rule on [-1, 1]."),
        ("exp_below_degree_eleven_on_a_long_interval", 11, lambda u: exp(u / 5), (0, 10), (gauss, 6),
         "The six-point Gauss rule on [0, 10]; the monomials reach 1e11 there, so that in rows divided by their "
         "largest number the constant's coefficient is 1e-11."),
        ("quadratic_below_waves_that_grow", 2, lambda u: u**2 + cos(50 * pi * u), UNIT, 1 / 3 - 1,
         "u**2 - 1 touches u**2 + cos(50 pi u) at the 25 points (2k + 1)/50, on which Simpson-like positive weights "
         "integrate quadratics (symmetric, with second moment between those of the centre and of the ends)."),
    ),
    *polynomials_above(
        "oscillating",
        ("line_above_a_rising_oscillation", 1, lambda u: u + sin(40 * pi * u), UNIT, 1.5,
         "u + sin(40 pi u) has 20 equal peaks on the line u + 1, and 1/2 lies between two of them, so the mean of a "
         "line above is at least 3/2; all 20 peaks bind."),
        ("parabola_above_an_oscillation", 2, lambda u: u**2 + cos(40 * pi * u), UNIT, 4 / 3,
         "u**2 + cos(40 pi u) peaks on u**2 + 1 at the multiples of 1/20; Simpson's nodes are among them, so 1/3 + 1 "
         "is optimal."),
    ),
    *polynomials_above(
        "scales",
        ("rows_of_a_million", 2, lambda u: 1e6 * exp(u), UNIT, (radau_right, 2), "The parabola above 1e6 exp(u)."),
        ("exp_over_five_decades", 5, lambda u: 1e-5 + exp(12 * u), UNIT, (lobatto, 4),
         "exp(12 u) from 1 to 160000 above by a quintic: the four-point Lobatto rule."),
    ),
    *polynomials_below(
        "free variables",
        ("exp_below_quintic_free", 5, exp, UNIT, (gauss, 3),
         "Free variables; the first relaxations are unbounded unless enough points are laid: the three-point Gauss "
         "rule."),
    ),
]
# fmt: on

# ---------------------------------------------------------------------------
# One-sided L1 approximation by other functions and in several variables
# ---------------------------------------------------------------------------

EXP_BY_LINE = (2 - e + (e - 1) * log(e - 1)) / 2
MEAN_OF_FIVE = (0.3, 0.45, 0.55, 0.7, 0.85)


def exponentials(count):
    return lambda u: [exp(-k * u) for k in range(count)]


def exp_above_multilinear(dimension):
    exponents = corners(dimension, 0, 1)
    means = [0.5 ** sum(each) for each in exponents]
    return covering(means, monomials(exponents), lambda *z: exp(sum(z)), unit_cube(dimension), x=free(exponents))


# A continuous RangeSet instead of a ContinuousSet.
UNIT_RANGE_SET = [lambda: pyo.RangeSet(0, 1, 0)]

# fmt: off
ONE_SIDED = table(
    "one-sided L1",
    ("exp_above_quartic_on_range_set", integral(radau_right(3), exp),
     minimize(lambda x: inner(x, moments(4)), lambda x, u: polynomial(x, u) - exp(u) >= 0,
              over=UNIT_RANGE_SET, x=free(5)),
     "The fifth derivative is positive, so the dual measure is the three-point Radau rule with the right end; the "
     "index set is a continuous RangeSet."),
    ("exp_above_quadratic_on_a_million", integral(radau_right(2), exp),
     covering((1, 1e6 / 2, 1e12 / 3), powers(2), lambda u: exp(u / 1e6), [(0, 1e6)]),
     "The two-point Radau rule on [0, 1e6], objective divided by the length; the monomials reach 1e12."),
    ("exp_above_quadratic_on_a_millionth", integral(radau_right(2), exp),
     covering((1, 1e-6 / 2, 1e-12 / 3), powers(2), lambda u: exp(u * 1e6), [(0, 1e-6)]),
     "The same on [0, 1e-6] for exp(1e6 u): the coefficient of the square is at most 1e-12."),
    ("exp_above_quintic_far_from_the_origin", integral(lobatto(4), exp),
     covering(moments(5), lambda u: powers(5)(u - 100), lambda u: exp(u - 100), [(100, 101)]),
     "The four-point Lobatto rule on [100, 101]: powers of u are nearly dependent there, so the function is written "
     "in powers of u - 100 for the limit only."),
    ("exponential_sums_on_the_half_line", integral(lobatto(3), exp),
     covering(moments(3), exponentials(4), lambda u: exp(exp(-u)), HALF_LINE),
     "With t = exp(-u) the sums of exp(-k u), k = 0..3, are cubics on (0, 1], and the objective is the integral over "
     "t, so Simpson's rule gives the value; one of its nodes is t = 0, at infinity."),
    ("exponential_sums_below_on_an_interval", integral(gauss(5, exp(-5), 1), lambda t: exp(3 * t)),
     packing(moments(9, (exp(-5), 1)), exponentials(10), lambda u: exp(3 * exp(-u)), [(0, 5)]),
     "With t = exp(-u), u in [0, 5], ten exponentials are polynomials of degree nine on [exp(-5), 1]: the five-point "
     "Gauss rule of exp(3 t)."),
    ("parabola_above_piecewise_linear", 1 / 3 + 1 / 96,
     covering(trapezoid(4)[1].tolist(), lambda u: [hat(u, k / 4, 1 / 4) for k in range(5)], lambda u: u**2,
              unit_cube(1)),
     "For a convex function the best piecewise linear function above it interpolates at the knots, so the optimum is "
     "the composite trapezoidal rule of step 1/4."),
    ("exp_above_bilinear", ((1 + e) / 2) ** 2, exp_above_multilinear(2),
     "exp(u+v) is convex in each coordinate, so its bilinear interpolant at the corners lies above it and the optimum "
     "is the mean of the four corner values."),
    ("exp_below_bilinear", e,
     packing((1, 1 / 2, 1 / 2, 1 / 4), monomials(corners(2, 0, 1)), lambda u, v: exp(u + v), unit_cube(2),
             x=free(corners(2, 0, 1))),
     "The midpoint rule is exact for bilinear functions, so exp(1/2 + 1/2) is a bound, and the tangent plane at the "
     "centre attains it because exp(u+v) is convex."),
    ("separable_sum_above_quadratics", integral(radau_right(2), exp) + integral(radau_right(2), tan),
     minimize(lambda x, y: inner(x, moments(2)) + inner(y, moments(2)[1:]),
              lambda x, y, u, v: polynomial(x, u) + polynomial(y, v) >= exp(u) + tan(v),
              over=unit_cube(2), x=free(3), y=free([1, 2])),
     "exp(u) + tan(v) under p(u) + q(v) with quadratic p and q separates: the product of the two Radau measures is "
     "dual feasible, so the optimum is the sum of the two one-dimensional optima."),
    ("exp_above_plane_on_disc", cosh(1),
     covering((1, 0, 0), affine, lambda u, v: exp(u), cube(2), where=in_ball),
     "On the unit disc the mean of a + b u + c v is a; the points (1, 0) and (-1, 0) give a >= cosh 1, attained by "
     "cosh 1 + u sinh 1."),
    ("exp_above_plane_on_triangle", (1 + e + e**2) / 3,
     covering((1, 1 / 3, 1 / 3), affine, lambda u, v: exp(u + 2 * v), unit_cube(2), where=lambda u, v: u + v <= 1),
     "The best plane above a convex function on a triangle interpolates at the vertices, so its mean is the mean of "
     "the three vertex values."),
    ("exp_above_trilinear", ((1 + e) / 2) ** 3, exp_above_multilinear(3),
     "exp(u+v+w) is convex in each coordinate, so the trilinear interpolant at the corners lies above it and the "
     "optimum is the mean of the eight corner values."),
    ("exp_below_affine_in_three_dimensions", exp(1.5),
     packing((1, 1 / 2, 1 / 2, 1 / 2), affine, lambda u, v, w: exp(u + v + w), unit_cube(3)),
     "By convexity the best affine function below has its mean equal to the value at the centre of the cube, where "
     "the tangent plane touches (Jensen)."),
    ("exp_above_affine_on_a_ball", cosh(1),
     covering((1, 0, 0, 0), affine, lambda u, v, w: exp(u), cube(3), where=in_ball),
     "On the unit ball of R**3 the mean of an affine function is its constant; the points (1, 0, 0) and (-1, 0, 0) "
     "give cosh 1, attained by cosh 1 + u sinh 1."),
    ("exp_above_multilinear_in_four_dimensions", ((1 + e) / 2) ** 4, exp_above_multilinear(4),
     "exp of the sum is convex in each coordinate, so the multilinear interpolant at the corners lies above it and "
     "the optimum is the mean of the 16 corner values."),
    ("convex_sum_above_affine_on_four_simplex", (5 + e**2 + exp(-1)) / 5,
     covering((1, 1 / 5, 1 / 5, 1 / 5, 1 / 5), affine, lambda u, v, w, r: exp(2 * u - w) + (v + r) ** 2,
              unit_cube(4), where=lambda *z: sum(z) <= 1),
     "On the simplex the best affine function above a convex function interpolates at the five vertices, where the "
     "values are 1, e**2, 2, 1/e, 2; the objective is the value at the centroid, their mean."),
    ("norm_below_affine_in_five_dimensions", sqrt(1 + square_sum(MEAN_OF_FIVE)),
     packing(affine(*MEAN_OF_FIVE), affine, lambda *z: sqrt(1 + square_sum(z)), unit_cube(5)),
     "By convexity the affine functions below sqrt(1 + |u|**2) reach its value at any inner point of the cube, here "
     "(0.3, 0.45, 0.55, 0.7, 0.85), and no more (Jensen)."),
    ("squares_above_affine_in_five_dimensions", 5 / 2,
     covering((1, *[1 / 2] * 5), affine, lambda *z: square_sum(z), unit_cube(5)),
     "Each square lies below its coordinate on [0, 1], so the sum of coordinates is the best affine function above, "
     "with mean 5/2; all 32 corners bind."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Splines
# ---------------------------------------------------------------------------


def linear_spline_above(knots, function):
    """Hat functions at equispaced knots on [0, 1], written as second differences of abs."""
    n = knots - 1

    def hats(u):
        return [(n / 2) * (abs(u - (k - 1) / n) - 2 * abs(u - k / n) + abs(u - (k + 1) / n)) for k in range(knots)]

    return covering(trapezoid(n)[1].tolist(), hats, function, unit_cube(1))


def two_kinks(u):
    return abs(u - 0.3) + abs(u - 0.65)


def cubed_exp(u):
    return exp(3 * u)


# fmt: off
SPLINES = table(
    "spline",
    ("spline_of_41_knots_above_exp", integral(trapezoid(40), cubed_exp), linear_spline_above(41, cubed_exp),
     "A convex function: the best linear spline above interpolates at the knots, the composite trapezoidal rule."),
    ("spline_of_151_knots_above_exp", integral(trapezoid(150), cubed_exp), linear_spline_above(151, cubed_exp),
     "The same with 151 variables."),
    ("spline_that_holds_the_function", integral(trapezoid(20), two_kinks), linear_spline_above(21, two_kinks),
     "The function has its kinks at the knots 0.3 and 0.65, so it is a candidate itself, every row binds, and the "
     "trapezoidal rule is exact for it."),
    ("plateau_on_both_sides_of_a_kink", 0.5 * 0.25**2 + 0.5 * 0.75**2,
     covering((1, 1 / 2, (0.25**2 + 0.75**2) / 2), lambda u: (1, u, abs(u - 0.25)), lambda u: abs(u - 0.25),
              unit_cube(1)),
     "Functions x0 + x1 u + x2 |u - 1/4| hold |u - 1/4| itself, whose integral is the value; all rows bind."),
    ("plateau_on_an_interval", 0.25,
     covering((2, 1 / 4), lambda u: (1, Expr_if(u >= 0.5, u - 0.5, 0)),
              lambda u: Expr_if(u <= 0.75, Expr_if(u >= 0.5, u - 0.5, 0), 0.25), unit_cube(1)),
     "A multiple x >= 1 of max(0, u - 1/2) (integral 1/8, plus the ramp 1/8) must stay above a function equal to it "
     "on [1/2, 3/4] and below it afterwards; binding on an interval, and x0 >= 0 adds nothing."),
) + table(
    "many variables",
    ("spline_of_401_knots_by_expr_if", integral(trapezoid(400), cubed_exp),
     covering(trapezoid(400)[1].tolist(), lambda u: [hat(u, k / 400, 1 / 400) for k in range(401)], cubed_exp,
              unit_cube(1)),
     "As above with 401 hat functions written with Expr_if."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Chebyshev approximation: least error in the maximum norm
# ---------------------------------------------------------------------------

TOTAL_DEGREE_2 = [(i, j) for i in range(3) for j in range(3 - i)]
BELOW_4_4 = [(i, j) for i in range(5) for j in range(5) if (i, j) != (4, 4)]
PROPER_PRODUCTS = [each for each in corners(3, 0, 1) if sum(each) < 3]


def square_root_by_line_error(a, b):
    c = ((sqrt(a) + sqrt(b)) / 2) ** 2
    return (sqrt(c) - sqrt(a) - (c - a) / (sqrt(a) + sqrt(b))) / 2


def exponential_sum(*z):
    return sum(exp(each) for each in z)


def powers_from_one(degree):
    return lambda u: [u**k for k in range(1, degree + 1)]


# fmt: off
CHEBYSHEV = table(
    "Chebyshev approximation",
    ("fourth_power_by_cubic", 1 / 8, best_polynomial(3, lambda u: u**4),
     "The error of the best approximation is T_4 / 8."),
    ("ninth_power_by_degree_eight", 2.0**-8, best_polynomial(8, lambda u: u**9),
     "The error of the best approximation is T_9 / 2**8, with ten binding points."),
    ("twelfth_power_by_degree_eleven", 2.0**-11, best_polynomial(11, lambda u: u**12),
     "Chebyshev: the monic polynomial of degree 12 of least norm on [-1, 1] has norm 2**-11."),
    ("absolute_value_by_quadratic", 1 / 8, best_polynomial(2, abs),
     "u**2 + 1/8 has the error 1/8 with alternating signs at -1, -1/2, 0, 1/2, 1."),
    ("exp_by_line", EXP_BY_LINE, best_polynomial(1, exp, UNIT),
     "The slope is e - 1, the errors at 0, log(e-1), 1 alternate, and the error is (2 - e + (e-1) log(e-1)) / 2."),
    ("square_root_by_line", 1 / 8, best_polynomial(1, sqrt, UNIT),
     "1/8 + u has the errors 1/8, -1/8, 1/8 at 0, 1/4, 1."),
    ("square_root_by_line_on_a_long_interval", square_root_by_line_error(0.0, 1e4),
     best_polynomial(1, sqrt, (0, 1e4)),
     "For a concave function the error is half the largest distance from the chord."),
    ("reciprocal_by_line_near_zero", 40.5, best_polynomial(1, lambda u: 1 / u, (0.01, 1)),
     "1/u on [a, b] by a line: (1/sqrt(a) - 1/sqrt(b))**2 / 2 with a = 0.01, b = 1."),
    ("simple_pole_by_quartic", 1 / 9, best_polynomial(4, lambda u: 1 / (u - 1.25)),
     "Chebyshev: the error for 1/(u - a) on [-1, 1] by degree n is (a - sqrt(a**2 - 1))**n / (a**2 - 1); a = 5/4 and "
     "n = 4 give 1/9."),
    ("near_pole_by_degree_twelve", (1.05 - sqrt(1.05**2 - 1)) ** 12 / (1.05**2 - 1),
     best_polynomial(12, lambda u: 1 / (1.05 - u)),
     "Bernstein: 1/(a - u) is approximated on [-1, 1] by degree n to (a - sqrt(a**2 - 1))**n / (a**2 - 1)."),
    ("oscillation_by_quartic", 1.0, best_polynomial(4, lambda u: cos(20 * pi * u), UNIT),
     "cos(20 pi u) alternates between 1 and -1 at 21 points of [0, 1], so no polynomial of degree 4 improves on zero."),
    ("waves_by_degree_fifteen", 1.0, best_polynomial(15, lambda u: cos(20 * pi * u), UNIT),
     "cos(20 pi u) alternates 21 times on [0, 1], so zero is the best polynomial of degree 15 and the error is 1."),
    ("fourth_power_on_two_intervals", 2 * ((1 - 0.25) / 4) ** 2,
     best_polynomial(3, lambda u: u**4, where=lambda u: abs(u) >= 0.5),
     "On 1/2 <= |u| <= 1 the least deviation of a monic quartic comes from T_2 in u**2 mapped onto [1/4, 1]: 2 ((1 - "
     "1/4) / 4)**2."),
    ("exp_by_line_with_integer_coefficients", 2 * log(2) - 1,
     best_uniform(affine, exp, unit_cube(1), integer(-10, 10, 2), bounded(0, 100)),
     "1 + 2u has the error 2 log 2 - 1 at u = log 2; a different constant errs by 1 or more at 0, and slopes 1 and 3 "
     "err by e - 2 and 4 - e or more at 1."),
    ("residual_polynomial_on_an_interval", 1 / chebyshev_polynomial(3, 1.25),
     best_uniform_by_signs(powers_from_one(3), 1, [(1, 9)], free(3)),
     "The least maximum of |1 - u q(u)| on [1, 9] with quadratic q is 1/T_3(10/8), the Chebyshev iteration."),
    ("residual_polynomial_of_degree_ten", 1 / chebyshev_polynomial(10, 1.01 / 0.99),
     best_uniform(powers_from_one(10), -1, [(0.01, 1)], free(range(1, 11))),
     "The smallest norm on [0.01, 1] of a polynomial of degree 10 that is 1 at zero is 1/T_10(1.01/0.99)."),
    ("residual_polynomial_on_two_intervals", 1 / chebyshev_polynomial(5, (1 + 0.04) / (1 - 0.04)),
     best_uniform(powers_from_one(10), -1, cube(1), free(range(1, 11)), where=lambda u: abs(u) >= 0.2),
     "On 0.2 <= |u| <= 1 the residual polynomial of degree 10 is that of degree 5 in u**2; the two intervals are one "
     "set with a where condition."),
    ("mixed_cubic_monomial_by_quadratics", 1 / 2,
     best_uniform(monomials(TOTAL_DEGREE_2), lambda u, v: u**2 * v, cube(2), free(TOTAL_DEGREE_2)),
     "u**2 v by polynomials of total degree 2 on the square: the error is T_2(u) T_1(v) / 2 (Ehlich and Zeller)."),
    ("mixed_monomial_of_degree_eight", 2.0**-6,
     best_uniform(monomials(BELOW_4_4), lambda u, v: -(u**4) * v**4, cube(2), free(BELOW_4_4)),
     "The least deviation of u**4 v**4 from the other monomials u**i v**j, i, j <= 4, is that of T_4(u) T_4(v) / 64 "
     "(product of Chebyshev functionals)."),
    ("exp_by_plane_on_disc", (exp(-1) + sinh(1) * log(sinh(1))) / 2,
     best_uniform(affine, lambda u, v: exp(u), cube(2), free(3), where=in_ball),
     "Averaging over v -> -v removes the coefficient of v, which leaves exp by a line on [-1, 1]: slope sinh 1 and "
     "error (1/e + sinh 1 log sinh 1) / 2."),
    ("sum_of_exponentials_by_affine", 3 * EXP_BY_LINE,
     best_uniform_by_signs(affine, exponential_sum, unit_cube(3), free(4)),
     "The errors of the three one-dimensional best lines add: masses at (0,0,0), (1,1,1) and at the three-fold "
     "interior alternation point annihilate affine functions and give three times the error for one exponential."),
    ("product_of_three_by_lower_products", 1.0,
     best_uniform_by_signs(monomials(PROPER_PRODUCTS), lambda u, v, w: u * v * w, cube(3),
                           bounded(-10, 10, PROPER_PRODUCTS), bounded(0, 100)),
     "The eight corners with signs u v w annihilate every proper sub-product, and the monomial u v w is 1 in absolute "
     "value there, so the error is 1."),
    ("sum_of_four_exponentials_by_affine", 4 * EXP_BY_LINE,
     best_uniform_by_signs(affine, exponential_sum, unit_cube(4), free(5)),
     "As in one dimension: the errors of the four best lines add, proved by masses at the two extreme corners and the "
     "interior alternation point."),
    ("sum_of_five_squares_by_affine", 5 / 2,
     best_uniform_by_signs(affine, lambda *z: square_sum(z), cube(5), free(6)),
     "On [-1, 1]**5 the squared norm is 0 at the centre and 5 at the corners, whose mean is the centre, so the "
     "constant 5/2 with error 5/2 is best."),
) + table(
    "badly scaled",
    ("large_exponential_by_line", 1e4 * EXP_BY_LINE,
     best_uniform(lambda u: (1, 1e4 * u), lambda u: 1e4 * exp(u), unit_cube(1), free(2)),
     "Ten thousand times the error of the best line for exp on [0, 1]; the slope has the coefficient 1e4 as well."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Filters and antennas: polynomials in the cosine
# ---------------------------------------------------------------------------


def dolph_chebyshev(order, edge):
    """Least side lobe on [edge, pi] of a sum of cosines that is 1 at zero."""
    return best_uniform(cosines(order), 0, [(edge, pi)], free(order + 1), subject_to=[lambda x, error: total(x) == 1])


def side_lobe(order, edge):
    return 1 / chebyshev_polynomial(order, (3 - cos(edge)) / (1 + cos(edge)))


def sign_by_cubic(a):
    ratio = 2 / 3 * (1 + a + a * a) ** 1.5 / sqrt(3) / (a * (1 + a))
    return (ratio - 1) / (ratio + 1)


PASS, STOP = [(0, 0.4 * pi)], [(0.6 * pi, pi)]
CENTRE, NEAR, FAR = [(0, 0.1)], [(0.5, 2.0)], [(1.5, pi)]

# fmt: off
FILTERS = table(
    "filter design",
    ("dolph_chebyshev_array_of_nine", 1 / chebyshev_polynomial(8, 1 / cos(0.6 / 2)), dolph_chebyshev(4, 0.6),
     "Nine symmetric elements, unit response at 0 and the least sidelobe level on [0.6, pi]: Dolph's weights give 1 / "
     "T_8(1 / cos(0.3))."),
    ("dolph_chebyshev_filter_of_length_eight", 1 / chebyshev_polynomial(7, 1 / cos(0.8 / 2)),
     best_uniform_by_signs(lambda u: [cos((k + 0.5) * u) for k in range(4)], 0, [(0.8, pi)], free(4),
                           subject_to=[lambda x, error: total(x) == 1]),
     "A linear-phase filter of even length 8 with unit gain at 0 and the least ripple on [0.8, pi]: the response is "
     "T_7(cos(u/2) / cos(0.4)) / T_7(1 / cos(0.4))."),
    ("dolph_chebyshev_of_order_thirty", side_lobe(30, 0.1), dolph_chebyshev(30, 0.1),
     "In cos w a polynomial of degree 30: the side lobe is 1/T_30 at the image of 1."),
    ("dolph_chebyshev_of_order_hundred", side_lobe(100, 0.03), dolph_chebyshev(100, 0.03),
     "The same with 101 coefficients and 100 binding points."),
    ("largest_main_lobe_with_unit_sidelobes", chebyshev_polynomial(6, 1 / cos(0.9 / 2)),
     maximize(total, lambda x, u: pyo.inequality(-1, cosine_sum(x, u), 1), over=[(0.9, pi)], x=free(4)),
     "The Dolph-Chebyshev problem turned round: with the sidelobes of seven elements within [-1, 1] on [0.9, pi], the "
     "response at 0 is at most T_6(1 / cos(0.45))."),
    ("half_band_filter", sign_by_cubic(cos(0.4 * pi)) / 2,
     minimize(lambda a, d: d,
              (PASS, lambda a, d, u: cosine_sum(a, u) <= 1 + d), (PASS, lambda a, d, u: cosine_sum(a, u) >= 1 - d),
              (STOP, lambda a, d, u: cosine_sum(a, u) <= d), (STOP, lambda a, d, u: cosine_sum(a, u) >= -d),
              a=free(5), d=free()),
     "A low-pass filter a_0 + .. + a_4 cos(4 w) with pass band [0, 0.4 pi] and stop band [0.6 pi, pi]: minus 1/2 it "
     "may be odd in cos w, and the sign function is approximated by an odd cubic on [a, 1] with the error (R - 1)/(R "
     "+ 1), R = 2/3 (1 + a + a**2)**1.5 / (sqrt(3) a (1 + a))."),
    ("weighted_side_lobes", side_lobe(6, 0.5) / 4,
     minimize(lambda a, d: d, (CENTRE, lambda a, d, u: (-2, cosine_sum(a, u), 2)),
              (NEAR, lambda a, d, u: cosine_sum(a, u) <= 4 * d), (NEAR, lambda a, d, u: cosine_sum(a, u) >= -4 * d),
              (FAR, lambda a, d, u: cosine_sum(a, u) <= 4 * d), (FAR, lambda a, d, u: cosine_sum(a, u) >= -4 * d),
              subject_to=[lambda a, d: total(a) == 1], a=free(7), d=free()),
     "Four families with weights: stop bands cover [0.5, pi] in two overlapping pieces, and the weight 4 there "
     "divides the side lobe 1/T_6 by 4; the pass band row |p(w)| <= 1 + 100 d on [0, 0.1] never binds."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Extremal polynomials
# ---------------------------------------------------------------------------

MIXED = [(i, j) for i in range(4) for j in range(4 - i)] + [(2, 2)]


def band_of_circle(x, u):
    height = sqrt(1 - u**2)
    return (-height, polynomial(x, u), height)


# fmt: off
EXTREMAL = table(
    "extremal polynomial",
    ("largest_leading_coefficient", 16.0,
     maximize(lambda x: x[5], lambda x, u: (-1, polynomial(x, u), 1), over=cube(1), x=free(6)),
     "Among quintics bounded by 1 on [-1, 1] the Chebyshev polynomial T_5 has the largest leading coefficient, 2**4."),
    ("largest_derivative_at_the_end", 16.0,
     maximize(lambda x: sum(k * x[k] for k in x), lambda x, u: pyo.inequality(-1, polynomial(x, u), 1),
              over=cube(1), x=free(5)),
     "Markov: a quartic bounded by 1 on [-1, 1] has at most the derivative 4**2 at 1."),
    ("largest_value_outside_the_interval", 97.0,
     maximize(lambda x: polynomial(x, 2), lambda x, u: (-1, polynomial(x, u), 1), over=cube(1), x=free(5)),
     "A quartic bounded by 1 on [-1, 1] is at most T_4(2) = 97 at 2."),
    ("snake_inside_the_unit_circle", 4.0, maximize(lambda x: x[4], band_of_circle, over=cube(1), x=free(5)),
     "With |p(u)| <= sqrt(1 - u**2) the quartic (1 - u**2) U_2(u) has the largest leading coefficient in absolute "
     "value, 4; at both ends the band has width zero, so there is no Slater point."),
    ("fejer_first_coefficient", 2 * cos(pi / 6),
     maximize(lambda a: a[1], lambda a, u: 1 + cosine_sum(a, u) >= 0, over=[(0, pi)], a=free(range(1, 5))),
     "Fejer: 1 + sum a_k cos(k u) >= 0 with four cosines forces a_1 <= 2 cos(pi / 6)."),
    ("bernstein_derivative", 3.0,
     maximize(lambda a, b: sum(k * b[k] for k in b), lambda a, b, u: (-1, cosine_sum(a, u) + sine_sum(b, u), 1),
              over=[(0, 2 * pi)], a=free(4), b=free(range(1, 4))),
     "Bernstein: a trigonometric polynomial of degree 3 bounded by 1 has a derivative of at most 3, attained by "
     "sin(3u) at 0."),
    ("steepest_line_between_two_parabolas", 2.0,
     maximize(lambda intercept, slope: slope,
              lambda intercept, slope, u: intercept + slope * u <= 1 + u**2,
              lambda intercept, slope, u: intercept + slope * u >= -1 - u**2,
              over=[(-1.7, 2.3)], intercept=free(), slope=free()),
     "The line a + b u between -1 - u**2 and 1 + u**2 has a + b <= 2 and a - b >= -2, so b <= 2; the line 2u attains "
     "it and touches at u = 1 and u = -1."),
    ("largest_mixed_coefficient_on_the_square", 4.0,
     maximize(lambda x: x[2, 2], lambda x, u, v: (-1, inner(x, monomials(MIXED)(u, v)), 1), over=cube(2),
              x=free(MIXED)),
     "For u**2 v**2 times a coefficient plus terms of total degree below 4, bounded by 1 on [-1, 1]**2, the "
     "coefficient is at most 4, attained by T_2(u) T_2(v) with its lower terms (Ehlich and Zeller)."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Trigonometric polynomials with dozens of binding points
# ---------------------------------------------------------------------------


def least_mean(order):
    """Least mean of a nonnegative sum of cosines that is 1 at zero."""
    at_zero = [lambda x: total(x) >= 1]
    return covering([1] + [0] * order, cosines(order), 0, [(0, pi)], subject_to=at_zero)


def least_mean_with_sines(order):
    return minimize(
        lambda a, b: a[0],
        lambda a, b, u: cosine_sum(a, u) + sine_sum(b, u) >= 0,
        over=[(0, 2 * pi)],
        subject_to=[lambda a, b: total(a) >= 1],
        a=free(order + 1),
        b=free(range(1, order + 1)),
    )


def least_mean_of_products(order, dimension):
    orders = list(product(range(order + 1), repeat=dimension))

    def products(*z):
        return [prod(cos(k * w) for k, w in zip(each, z, strict=True) if k) for each in orders]

    at_zero = [lambda x: total(x) >= 1]
    cost = [int(not any(each)) for each in orders]
    return covering(cost, products, 0, cube(dimension, 0, pi), x=free(orders), subject_to=at_zero)


def around_the_circle(a, b, u):
    return cosine_sum(a, 2 * pi * u) + sine_sum(b, 2 * pi * u)


def above_arc(a, b, u):
    return around_the_circle(a, b, u) >= indicator(u <= 0.25) + indicator(u >= 1)


def below_open_arc(a, b, u):
    return around_the_circle(a, b, u) <= indicator(u < 0.25) * indicator(u > 0)


# fmt: off
TRIGONOMETRIC = table(
    "trigonometric",
    ("fejer_kernel_of_order_25", 1 / 26, least_mean(25),
     "The mean equals the average over 26 equidistant points, one of which is zero, so it is at least 1/26; the Fejer "
     "kernel attains it."),
    ("fejer_kernel_with_sines", 1 / 31, least_mean_with_sines(30),
     "The same of order 30 with sines: 61 variables, 30 double zeros."),
    ("fejer_kernel_of_order_hundred", 1 / 101, least_mean(100),
     "The same of order 100: a hundred binding points on [0, pi] (every second counted)."),
    ("fejer_coefficient_of_order_thirty", 2 * cos(pi / 32),
     maximize(lambda a: a[1], lambda a, u: 1 + cosine_sum(a, u) >= 0, over=[(0, pi)], a=free(range(1, 31))),
     "Fejer: the largest first cosine coefficient of 1 + a_1 cos w + .. + a_30 cos 30 w >= 0 is 2 cos(pi/32)."),
    ("selberg_majorant", 0.3,
     minimize(lambda a, b: a[0], above_arc, over=unit_cube(1), a=free(20), b=free(range(1, 20))),
     "Selberg: the least mean of a trigonometric polynomial of order 19 above the indicator of an arc of length 1/4 "
     "is 1/4 + 1/20, as 20/4 is whole (20 equidistant points, six of them in the arc, prove it)."),
    ("selberg_minorant", 0.2,
     maximize(lambda a, b: a[0], below_open_arc, over=unit_cube(1), a=free(20), b=free(range(1, 20))),
     "The largest mean below the indicator of the open arc of length 1/4 is 1/4 - 1/20."),
    ("fejer_kernel_in_two_dimensions", 1 / 25, least_mean_of_products(4, 2),
     "As in one dimension, with 5 x 5 equidistant points: 1/25, attained by the product of two Fejer kernels, which "
     "vanishes along lines."),
    ("fejer_kernel_in_three_dimensions", 1 / 27, least_mean_of_products(2, 3),
     "The same in three dimensions with 3 x 3 x 3 points: the product kernel vanishes on planes."),
) + table(
    "many variables",
    ("fejer_kernel_of_order_150_with_sines", 1 / 151, least_mean_with_sines(150),
     "301 variables; see fejer_kernel_of_order_25."),
)
# fmt: on

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

    def separated(f, u):
        return sum(f[k] * sum(float(c) * u**j for j, c in enumerate(gegenbauer[k]) if c) for k in f) <= -1

    return minimize(
        lambda f: 1 + total(f), separated, over=[(-1, largest_cosine)], f=bounded(0, None, range(1, degree + 1))
    )


# fmt: off
DELSARTE = table(
    "Delsarte bound",
    ("cross_polytope_in_four_dimensions", 8.0, delsarte_bound(4, 0.0, 2),
     "At most 8 unit vectors of R**4 have pairwise nonpositive inner products; the linear programming bound of degree "
     "2 is sharp."),
    ("icosahedron", 12.0, delsarte_bound(3, 1 / sqrt(5), 5),
     "The linear programming bound of degree 5 for the largest cosine 1/sqrt(5) in R**3 is sharp, with the 12 "
     "vertices of the icosahedron."),
    ("kissing_number_in_eight_dimensions", 240.0, delsarte_bound(8, 0.5, 6),
     "The linear programming bound of degree 6 is sharp: 240, the minimal vectors of the lattice E8 (Levenshtein; "
     "Odlyzko and Sloane)."),
) + table(
    "badly scaled",
    ("kissing_number_in_twenty_four_dimensions", 196560.0, delsarte_bound(24, 0.5, 10),
     "The linear programming bound of degree 10 is sharp: 196560, the minimal vectors of the Leech lattice "
     "(Levenshtein; Odlyzko and Sloane)."),
)
# fmt: on

PROBLEMS: list[Known] = [
    *POLYNOMIALS,
    *ONE_SIDED,
    *SPLINES,
    *CHEBYSHEV,
    *FILTERS,
    *EXTREMAL,
    *TRIGONOMETRIC,
    *DELSARTE,
]
