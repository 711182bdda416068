"""Robust linear programs, with the index as the uncertain data, and programs with integers.

Most rows are convex in the index, so their worst cases lie at vertices and the finite program over the vertices is
exact.  `robust` makes both from the same coefficients, the semi-infinite program and its value over the vertices.
"""

from itertools import product
from math import e

import numpy as np
from pyomo.environ import cos, exp, sin, sqrt

from optima.known import Known, table
from optima.models import (
    CIRCLE,
    binary,
    bounded,
    covering,
    cube,
    free,
    in_ball,
    inner,
    integer,
    least_upper_bound,
    maximize,
    minimize,
    packing,
    polar,
    square_sum,
    unit_cube,
    value_at,
)
from optima.values import budget_corners, corners, largest_of_finite_lp, signed_units, slab_vertices

# ---------------------------------------------------------------------------
# Programs that reduce to vertices
#
# Columns: name, gain, bounds of x, rows, limits, vertices, box, reason, and further parts of the program by name.
# The largest gain'x such that row(z)'x <= limit(z) for each pair of the rows and limits and every z.
# ---------------------------------------------------------------------------


def robust(kind, name, gain, bounds, rows, limits, vertices, over, reason, fixed=(), where=None):
    """One problem as a table; `fixed` are ordinary rows, as pairs of coefficients and a limit."""
    pairs = list(zip(rows, limits, strict=True))
    optimum = largest_of_finite_lp(
        gain,
        [row(*z) for row, _ in pairs for z in vertices] + [row for row, _ in fixed],
        [value_at(limit, z) for _, limit in pairs for z in vertices] + [limit for _, limit in fixed],
        bounds,
    )
    program = maximize(
        lambda x: inner(x, gain),
        *(lambda x, *z, row=row, limit=limit: inner(x, row(*z)) <= value_at(limit, z) for row, limit in pairs),
        over=over,
        where=where,
        subject_to=[lambda x, row=row, limit=limit: inner(x, row) <= limit for row, limit in fixed],
        x=bounded(*bounds, len(gain)),
    )
    return table(kind, (name, optimum, program, reason))


def constants_and_slopes(constants, slopes):
    """The row whose coefficients are constants[j] + slopes[j] @ z."""
    return lambda *z: [c + inner(slope, z) for c, slope in zip(constants.tolist(), slopes.tolist(), strict=True)]


def convex_row_of_five(u, v, w, r, s):
    return (
        exp(0.2 * (u + v - w)),
        1 + 0.3 * (r - s) ** 2,
        2 + 0.5 * abs(u + s),
        1 + 0.2 * w**4 - 0.1 * v,
    )


RNG = np.random.default_rng(11)
MEAN = RNG.uniform(1, 3, (3, 8)).round(3)
SPREAD = RNG.uniform(-0.5, 0.5, (3, 8, 5)).round(3)
GAIN = RNG.uniform(1, 2, 8).round(3).tolist()
MULTILINEAR = RNG.uniform(-1, 1, (6, 16)).round(3).tolist()
MULTILINEAR_GAIN = RNG.uniform(0.5, 2, 6).round(3).tolist()
EXPONENTS = RNG.uniform(-0.6, 0.6, (5, 5)).round(3).tolist()
EXPONENTS_GAIN = RNG.uniform(1, 2, 5).round(3).tolist()
SUBSETS_OF_FOUR = [[k for k in range(4) if b >> k & 1] for b in range(16)]


def multilinear_row(*z):
    products = []
    for subset in SUBSETS_OF_FOUR:
        term = 1
        for k in subset:
            term = term * z[k]
        products.append(term)
    return [inner(coefficients, products) for coefficients in MULTILINEAR]


def exponential_row(*z):
    return [exp(inner(exponents, z)) for exponents in EXPONENTS]


def one_plus_twice(*z):
    return [1 + 2 * each for each in z]


def in_cross_polytope(*z):
    return sum(abs(each) for each in z) <= 1


BAND = 0.005
BAND_VERTICES = [(-1, -1), (-1, -1 + BAND), (-1 + BAND, -1), (1, 1), (1, 1 - BAND), (1 - BAND, 1)]

# fmt: off
VERTICES = [
    *robust(
        "robust LP", "robust_bilinear_rows", [3, 2], (0, None),
        [lambda u, v: (1 + 0.2 * u, 1 + 0.3 * v + 0.1 * u * v)], [lambda u, v: 4 + 0.5 * u * v],
        corners(2), cube(2), fixed=[([2, 1], 5)], reason=
        "The row is bilinear in (u, v), so its worst case over the square is at one of the four corners; the finite "
        "program over the corners is exact."),
    *robust(
        "robust LP", "robust_convex_coefficients", [5, 4, 3], (0, None),
        [lambda u, v, w: (exp(0.3 * u), 1 + 0.2 * (u - v) ** 2, 1 + 0.4 * abs(v + w)),
         lambda u, v, w: (2 + 0.5 * u**2 + 0.1 * w, 1 - 0.2 * v, 0.5 + 0.3 * w)],
        [lambda u, v, w: 6 + 0.4 * u - 0.2 * w, lambda u, v, w: 7 + 0.3 * v],
        corners(3), cube(3), reason=
        "With nonnegative x both rows are convex in (u, v, w), so the worst cases are at corners of the cube and the "
        "finite program over the corners is exact."),
    *robust(
        "robust LP", "robust_with_a_budget_of_two", [4, 5, 6], (0, 1.5),
        [lambda u, v, w: (2 + u, 3 + 2 * v, 4 + 1.5 * w)], [10],
        budget_corners(3, 2), unit_cube(3), where=lambda *z: sum(z) <= 2, reason=
        "Bertsimas and Sim: the cube [0, 1]**3 cut by u + v + w <= 2 has only corners with coordinates 0 and 1, so "
        "enumerating them gives the exact finite program."),
    *robust(
        "robust LP", "robust_affine_rows_in_four_dimensions", [2, 3, -1, 1], (-3, 3),
        [lambda u, v, w, r: (1 + 0.3 * u, 1 + 0.4 * v, -0.5 + 0.5 * w, 0.2 + 0.6 * r),
         lambda u, v, w, r: (0.5 * v, -1 + 0.2 * w, 1 + 0.3 * r, 0.4 * u + 0.5)],
        [lambda u, v, w, r: 5 + 0.5 * (u + v), lambda u, v, w, r: 4 - 0.5 * w],
        corners(4), cube(4), reason=
        "Both rows are affine in the index, so their worst cases over the cube are at the 16 corners; the variables "
        "may have either sign."),
    *robust(
        "robust LP", "robust_convex_row_in_five_dimensions", [3, 4, 6, 2], (0, 4),
        [convex_row_of_five], [lambda *z: 8 + 0.3 * sum(z)],
        corners(5), cube(5), fixed=[([1, 1, 1, 1], 5)], reason=
        "With nonnegative x the row is convex in the index, so its worst case is at one of the 32 corners and the "
        "finite program over the corners is exact."),
    *robust(
        "robust LP", "robust_with_a_budget_in_five_dimensions", [4, 5, 6, 3, 7], (0, 1.5),
        [lambda u, v, w, r, s: (2 + u, 3 + 2 * v, 4 + 1.5 * w, 1 + 2 * r, 5 + 3 * s)], [12],
        budget_corners(5, 2), unit_cube(5), where=lambda *z: sum(z) <= 2, reason=
        "Bertsimas and Sim: the cube [0, 1]**5 cut by a sum of at most 2 has only corners with coordinates 0 and 1, "
        "so enumerating the 16 of them gives the exact finite program."),
    *robust(
        "robust LP", "robust_three_rows_in_five_dimensions", GAIN, (0, 3),
        [constants_and_slopes(MEAN[i], SPREAD[i]) for i in range(3)], [10] * 3,
        corners(5), cube(5), reason=
        "Affine in u, so the 32 corners suffice for each of the three families."),
    *robust(
        "robust LP", "robust_multilinear_in_four_dimensions", MULTILINEAR_GAIN, (-2, 2),
        [multilinear_row], [1], corners(4), cube(4), reason=
        "Multilinear in u, so every row is largest at a corner; free signs of x."),
    *robust(
        "robust LP", "robust_exponentials_in_five_dimensions", EXPONENTS_GAIN, (0, None),
        [exponential_row], [4], corners(5), cube(5), reason=
        "Convex in u for x >= 0: corners suffice."),
    *robust(
        "robust where", "l1_ball_in_five_dimensions", [1, 1, 1, 1, 1], (0, None),
        [one_plus_twice], [5], signed_units(5), cube(5), where=in_cross_polytope, reason=
        "Coefficients 1 + 2 z_j with |z|_1 <= 1: affine, so the ten vertices +-e_k suffice."),
    *robust(
        "robust where", "l1_ball_in_four_dimensions", [3, 2, 2, 1], (0, None),
        [one_plus_twice], [5], signed_units(4), cube(4), where=in_cross_polytope, reason=
        "The same in four dimensions with unequal gains."),
    *robust(
        "robust where", "slanted_narrow_band", [1, -1], (None, 300),
        [lambda u, v: (u, v)], [1], BAND_VERTICES, cube(2), where=lambda u, v: abs(u - v) <= BAND, reason=
        "The band |u - v| <= 0.005 of the square is a hexagon with known vertices; x_0 - x_1 can grow far as the band "
        "is thin."),
    *robust(
        "robust where", "slanted_slab_in_the_cube", [1, 2, 3], (-5, 5),
        [lambda u, v, w: (u, v, w)], [1], slab_vertices(0.002), unit_cube(3),
        where=lambda u, v, w: abs(u + v + w - 1) <= 0.002, reason=
        "The slab |u + v + w - 1| <= 0.002 of the cube: vertices lie on the cube's edges."),
]
# fmt: on

# ---------------------------------------------------------------------------
# Robust programs with other worst cases.  Columns: name, optimum, program, reason.
# ---------------------------------------------------------------------------

MIXING = np.array(
    [
        [0.3, 0.1, 0.0, -0.2, 0.1],
        [0.0, 0.4, 0.1, 0.1, -0.1],
        [-0.1, 0.0, 0.5, 0.2, 0.0],
        [0.2, -0.2, 0.0, 0.3, 0.1],
        [0.1, 0.1, -0.1, 0.0, 0.6],
    ]
)
HALF_AXES = (1.0, 0.3, 0.1)


def concave_row(gain):
    n = len(gain)
    return packing(gain, lambda *z: z, lambda *z: 1 + square_sum(z) / 2, cube(n, -5, 5))


def ring(inner_radius):
    return lambda *z: (square_sum(z) <= 1) & (square_sum(z) >= inner_radius**2)


def two_discs(squared_radius):
    return lambda u, v: ((u + 0.5) ** 2 + v**2 <= 0.04) | ((u - 0.9) ** 2 + (v - 0.9) ** 2 <= squared_radius)


# fmt: off
ROBUST = table(
    "robust LP",
    ("robust_covering_in_five_dimensions",
     -largest_of_finite_lp([-3, -2, -4, -3, -5], [-(1 + MIXING @ np.array(z)) for z in corners(5)],
                           [-10.0 - z[0] + z[4] for z in corners(5)], (0, None)),
     covering((3, 2, 4, 3, 5), constants_and_slopes(np.ones(5), MIXING), lambda u, v, w, r, s: 10 + u - s, cube(5),
              x=bounded(0, None, 5)),
     "The covering row is affine in the index, so its worst case over the cube is at one of the 32 corners and the "
     "finite program over the corners is exact."),
    ("robust_over_a_disc", 4 / (4 + sqrt(2)),
     packing((1, 1), lambda u, v: (1 + u / 2, 1 + v / 2), 1, cube(2), where=in_ball),
     "The worst case over the disc is x + y + |(x, y)| / 2 <= 1; for a given sum the norm is least at x = y, which "
     "gives 4 / (4 + sqrt(2))."),
    ("robust_binary_knapsack",
     max(4 * x + 5 * y + 6 * z for x, y, z in product((0, 1), repeat=3) if 3 * x + 5 * y + 5.5 * z <= 9),
     packing((4, 5, 6), lambda u, v, w: (2 + u, 3 + 2 * v, 4 + 1.5 * w), 9, unit_cube(3), x=binary(3)),
     "With nonnegative x every weight is largest at u = v = w = 1, which leaves a knapsack with the weights 3, 5, 5.5 "
     "and capacity 9, solved by enumeration."),
    ("concave_row_in_three_dimensions", sqrt(2) * 3, concave_row((1, 2, 2)),
     "The row is largest at z = x, where it says |x|**2 <= 2, so the maximum of (1, 2, 2)'x is sqrt(2) times 3."),
    ("concave_row_in_five_dimensions", sqrt(2) * sqrt(55), concave_row((1, 2, 3, 4, 5)),
     "The same in five dimensions with the gain (1, .., 5)."),
    ("two_uncertain_rows_with_inner_maxima", 2 * sqrt(2),
     maximize(lambda x: x[0] - x[1], lambda x, j, u: x[j] * u - u**2 / 2 <= 1, over=[(-5, 5)], each=(0, 1), x=free(2)),
     "x u - u**2/2 <= 1 on [-5, 5] says |x| <= sqrt(2), for each of two variables by its own family."),
    ("corner_of_a_four_dimensional_box", 8.0 * (1 + 1e-3),
     minimize(lambda x: x, lambda x, u, v, w, r: 2 * x >= (1 + u) * (1 - v) * (1 + w) * (1 - r) + 0.016,
              over=cube(4), x=free()),
     "The product (1 + u)(1 - v)(1 + w)(1 - r) is 16 at a single corner of the box, so 2x >= 16.016."),
) + table(
    "robust where",
    ("ellipsoid_in_three_dimensions_by_where", sqrt(1 + 1 / 0.09 + 1 / 0.01),
     polar((1, 1, 1), cube(3), lambda *z: sum((each / a) ** 2 for each, a in zip(z, HALF_AXES, strict=True)) <= 1),
     "z'x <= 1 over the ellipsoid with half-axes a: sum (a_k x_k)**2 <= 1, so the largest sum of x is the norm of "
     "1/a."),
    ("ball_in_five_dimensions_by_where", sqrt(55), polar((1, 2, 3, 4, 5), cube(5), in_ball),
     "z'x <= 1 over the unit ball: the norm of (1, .., 5)."),
    ("annulus", 5.0, polar((3, 4), cube(2), ring(0.5)),
     "Over the annulus 0.5 <= |z| <= 1 the rows z'x <= 1 are those of the disc."),
    ("thin_ring", 5.0, polar((3, 4), cube(2), ring(0.99)),
     "The same with a ring of width 0.01."),
    ("thin_shell", 3.0, polar((1, 2, 2), cube(3), ring(0.99)),
     "The shell 0.99 <= |z| <= 1 in three dimensions: the ball's rows."),
    ("inside_of_a_thin_ring", 5.0,
     maximize(lambda t: 10 - t, lambda t, u, v: t >= 10 * (u**2 + v**2) - 5, over=cube(2),
              where=lambda u, v: abs(u**2 + v**2 - 0.99) <= 0.01, t=free()),
     "t >= 10 |z|**2 - 5 where 0.98 <= |z|**2 <= 1 says t >= 5, so 10 - t is at most 5; the row binds on the whole "
     "outer circle."),
    ("two_separated_discs", sqrt(2) / (0.9 * sqrt(2) + 0.05), polar((1, 1), cube(2), two_discs(0.0025)),
     "Over two discs the rows z'x <= 1 say centre'x + radius |x| <= 1; with x = s (1, 1)/ sqrt(2), which is best by "
     "symmetry of the binding disc at (0.9, 0.9), s = 1/(0.9 sqrt(2) + 0.05); the other disc has room, and the gain "
     "is sqrt(2) s."),
    ("small_disc_decides", 0.02 + 1.0 + 0.8,
     least_upper_bound(lambda u, v: u + v, cube(2), two_discs((0.02 / sqrt(2)) ** 2)),
     "t >= u + v over two discs: the small one of radius 0.02/sqrt(2) at (0.9, 0.9)."),
    ("two_short_intervals", 1 / 0.7002,
     maximize(lambda x: x, lambda x, u: x * u <= 1, over=unit_cube(1), x=free(),
              where=lambda u: (abs(u - 0.1) <= 0.0002) | (abs(u - 0.7) <= 0.0002)),
     "x u <= 1 where |u - 0.1| <= 0.0002 or |u - 0.7| <= 0.0002."),
    ("budget_of_three_halves", 1.5, least_upper_bound(lambda *z: sum(z), unit_cube(4), lambda *z: sum(z) <= 1.5),
     "t >= sum z over the unit cube of dimension 4 with the budget sum z <= 3/2: binding on a whole face."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Integer variables
# ---------------------------------------------------------------------------

KNAPSACK_GAIN = np.array([5, 4, 7, 3, 6, 2, 8, 4])
KNAPSACK_MEAN = np.array([2.0, 1.5, 3.0, 1.0, 2.5, 0.8, 3.5, 1.7])
KNAPSACK_COSINE = np.array([0.5, 0.1, 0.9, 0.2, 0.4, 0.1, 1.0, 0.3])
KNAPSACK_SINE = np.array([0.2, 0.4, 0.3, 0.1, 0.6, 0.2, 0.1, 0.5])


def best_knapsack():
    choices = (np.array(x) for x in product((0, 1), repeat=8))
    return max(
        KNAPSACK_GAIN @ x for x in choices if KNAPSACK_MEAN @ x + np.hypot(KNAPSACK_COSINE @ x, KNAPSACK_SINE @ x) <= 9
    )


def knapsack_weights(u):
    data = zip(KNAPSACK_MEAN.tolist(), KNAPSACK_COSINE.tolist(), KNAPSACK_SINE.tolist(), strict=True)
    return [mean + a * cos(u) + b * sin(u) for mean, a, b in data]


# fmt: off
INTEGERS = table(
    "integer",
    ("exp_above_line_with_integers", 4.0,
     minimize(lambda x, y: 2 * x + y, lambda x, y, u: x + y * u >= exp(u), over=unit_cube(1),
              x=integer(-50, 50), y=integer(-50, 50)),
     "For the convex exp the ends decide: x >= 1 and x + y >= e, so x + y >= 3 in integers, and 2x + y = x + (x + y) "
     "is at least 4."),
    ("one_integer_and_one_continuous_variable", e - 0.2,
     minimize(lambda x, y: x + 0.8 * y, lambda x, y, u: x + y * u >= exp(u), over=unit_cube(1),
              x=bounded(-50, 50), y=integer(-50, 50)),
     "x + y u >= exp(u) with only y an integer: the ends decide, x = max(1, e - y), and x + 0.8 y is e, e - 0.2, 2.6, "
     "3.4 for y = 0, 1, 2, 3."),
    ("knapsack_with_an_ellipse_of_weights", best_knapsack(),
     packing(KNAPSACK_GAIN.tolist(), knapsack_weights, 9, CIRCLE, x=binary(8)),
     "Weights mean + cos(u) A + sin(u) B: mean'x + |(A'x, B'x)| <= 9 over all 256 binary x."),
)
# fmt: on

PROBLEMS: list[Known] = [*VERTICES, *ROBUST, *INTEGERS]
