"""Rows whose worst index is hard to find, and rows that are badly scaled or degenerate.

Columns: name, optimum, program, reason.
"""

from math import atan, e, pi, prod

import numpy as np
from pyomo.environ import Expr_if, cos, exp, sin, sqrt

from optima.known import Known, table
from optima.models import (
    affine,
    bounded,
    covering,
    cube,
    free,
    greatest_lower_bound,
    larger,
    least_upper_bound,
    maximize,
    minimize,
    packing,
    polynomial,
    total,
    unit_cube,
)
from optima.values import largest_on_interval

# ---------------------------------------------------------------------------
# Oscillating rows and many local maxima
# ---------------------------------------------------------------------------

# The factors 1.2 + sin(rate z) + tilt z, as (rate, tilt).
WAVES = [(20, 0.1), (17, -0.05), (23, 0.02), (14, 0.03), (11, -0.04)]


def wave(k, z, sine):
    rate, tilt = WAVES[k]
    return 1.2 + sine(rate * z) + tilt * z


def product_of_waves(n):
    return least_upper_bound(lambda *z: prod(wave(k, each, sin) for k, each in enumerate(z)), unit_cube(n))


WAVE_MAXIMA = [largest_on_interval(lambda z, k=k: wave(k, z, np.sin), 0, 1) for k in range(5)]
SCHWEFEL = largest_on_interval(lambda z: z * np.sin(np.sqrt(np.abs(z))), -500, 500)


def schwefel(n):
    return least_upper_bound(lambda *z: sum(each * sin(sqrt(abs(each))) for each in z), cube(n, -500, 500))


def rastrigin(u, v):
    return 21 + u**2 + v**2 - (10 * cos(2 * pi * u) + 10 * cos(2 * pi * v))


def rosenbrock(u, v, w):
    return 1 + (100 * (v - u**2) ** 2 + (1 - u) ** 2) + (100 * (w - v**2) ** 2 + (1 - v) ** 2)


# fmt: off
MAXIMA = table(
    "oscillating",
    ("damped_oscillation", exp(-atan(40) / 40) * 40 / sqrt(1601),
     least_upper_bound(lambda u: exp(-u) * sin(40 * u), [(0, 3)]),
     "exp(-u) sin(40u) is largest at its first peak, u = atan(40) / 40."),
    ("plane_above_an_oscillation", 1.5,
     covering((1, 1 / 2, 1 / 2), affine, lambda u, v: u + sin(20 * pi * u) * sin(20 * pi * v), unit_cube(2)),
     "u + sin(20 pi u) sin(20 pi v) peaks on u + 1; the peaks are symmetric about the centre of the square, so the "
     "mean of a plane above is at least 3/2."),
) + table(
    "many maxima",
    ("plane_above_fifty_peaks", 2.0,
     covering((1, 1 / 2, 1 / 2), affine, lambda u, v: u + v + sin(10 * pi * u) * sin(10 * pi * v), unit_cube(2)),
     "1 + u + v touches u + v + sin(10 pi u) sin(10 pi v) at 50 peaks that are symmetric about the centre, so the "
     "least mean of a plane above is 2."),
    ("product_of_two_waves", prod(WAVE_MAXIMA[:2]), product_of_waves(2),
     "A product of positive functions of one coordinate each: the product of their maxima."),
    ("product_of_three_waves", prod(WAVE_MAXIMA[:3]), product_of_waves(3),
     "The same in three dimensions: about 36 peaks of nearly the same height."),
    ("product_of_four_waves", prod(WAVE_MAXIMA[:4]), product_of_waves(4), "The same in four dimensions."),
    ("product_of_five_waves", prod(WAVE_MAXIMA), product_of_waves(5), "The same in five dimensions."),
    ("schwefel_in_one_dimension", SCHWEFEL, schwefel(1), "u sin(sqrt |u|) on [-500, 500] is largest near 420.97."),
    ("schwefel_in_two_dimensions", 2 * SCHWEFEL, schwefel(2), "A sum of two such functions."),
    ("schwefel_in_three_dimensions", 3 * SCHWEFEL, schwefel(3), "A sum of three."),
) + table(
    "global minimum",
    ("himmelblau", 1.0,
     greatest_lower_bound(lambda u, v: 1 + (u**2 + v - 11) ** 2 + (u + v**2 - 7) ** 2, cube(2, -6, 6)),
     "Himmelblau's function has four global minima with value 0 in [-6, 6]**2."),
    ("rastrigin", 1.0, greatest_lower_bound(rastrigin, [(-4.3, 5.12), (-4.7, 5.12)]),
     "Rastrigin's function has the global minimum 0 at the origin among about a hundred local ones."),
    ("rosenbrock", 1.0, greatest_lower_bound(rosenbrock, cube(3, -2.3, 1.9)),
     "Rosenbrock's function of three variables has the minimum 0 at (1, 1, 1), at the end of a curved valley."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Narrow peaks, switches and kinks
# ---------------------------------------------------------------------------


def gaussian(width, *pairs):
    """exp(-distance**2 / width**2) of pairs (coordinate, place)."""
    return exp(-sum((z - place) ** 2 for z, place in pairs) / width**2)


LATTICE = [(i / 4, j / 4, k / 4) for i in range(5) for j in range(5) for k in range(8)]
NARROW_PLACES = [0.01 + 0.98 * (j + 0.37) / 450 for j in range(450)]


def cap(squared_distance):
    return Expr_if(squared_distance <= 0.0144, 1 - squared_distance / 0.0144, 0)


def caps(*z):
    return [cap(sum((each - p) ** 2 for each, p in zip(z, place, strict=True))) for place in LATTICE]


def narrow_caps(u):
    return [Expr_if(abs(u - place) <= 2e-6, 1, 0.001) for place in NARROW_PLACES]


# fmt: off
NARROW = table(
    "narrow peak",
    ("narrow_gaussian", 1.0, least_upper_bound(lambda u: gaussian(0.01, (u, 0.73131)), unit_cube(1)),
     "The Gaussian of width 0.01 has the maximum 1 at 0.73131."),
    ("narrow_gaussian_as_a_coefficient", 5.0,
     maximize(lambda x, y: x + 3 * y, lambda x, y, u: x + gaussian(0.01, (u, 0.27183)) * y <= 2,
              over=unit_cube(1), x=bounded(0, None), y=bounded(None, 1.5)),
     "The coefficient of y takes the values between 0 and 1, so x + y <= 2 and x <= 2 remain; with y <= 3/2 the best "
     "point is (1/2, 3/2)."),
    ("narrow_gaussian_in_the_square", 3.0,
     maximize(lambda x, y: x + 2 * y, lambda x, y, u, v: x + gaussian(0.05, (u, 0.317), (v, 0.811)) * y <= 2,
              over=unit_cube(2), x=bounded(0, 2), y=bounded(0, 1)),
     "The peak of width 0.05 raises the coefficient of y to 1 at (0.317, 0.811), so x + y <= 2 and x, y <= 2 with y "
     "<= 1 remain, and x + 2y is largest at (1, 1)."),
    ("narrow_gaussian_in_the_cube", 1.0,
     least_upper_bound(lambda u, v, w: gaussian(0.1, (u, 0.817), (v, 0.183), (w, 0.611)), unit_cube(3)),
     "The Gaussian of width 0.1 has the maximum 1 at (0.817, 0.183, 0.611)."),
) + table(
    "narrow switch",
    ("narrow_step_by_a_square", 2.0,
     least_upper_bound(lambda u: Expr_if((u - 0.3141) ** 2 <= 4e-10, 2, u), unit_cube(1)),
     "t >= 2 where (u - 0.3141)**2 <= 4e-10, a piece of width 4e-5 whose switch function has no sign change between "
     "coarse nodes; elsewhere t >= u."),
    ("narrow_stripe_in_the_square", 3.0,
     least_upper_bound(lambda u, v: Expr_if(abs(u - 0.3141) <= 0.0001, 2 + v, u), unit_cube(2)),
     "t >= 2 + v where |u - 0.3141| <= 0.0001: a stripe of the square."),
    ("narrow_ridge_along_a_kink", 1.0,
     least_upper_bound(lambda u, v: 1 - 2000 * abs(u - v - 0.1234), unit_cube(2)),
     "t >= 1 - 2000 |u - v - 0.1234|: a ridge along a slanted line, 0.001 wide."),
    ("many_narrow_caps", 450 / (1 + 0.001 * 449),
     packing([1] * 450, narrow_caps, 1, unit_cube(1), x=bounded(0, 10, 450)),
     "450 intervals of width 4e-6 on which x_j has the coefficient 1 and 0.001 elsewhere: by symmetry x_j = 1/(1 + "
     "0.449), and summing the rows proves it."),
) + table(
    "many variables",
    ("two_hundred_caps", 200.0, packing([1] * 200, caps, 1, [(0, 1), (0, 1), (0, 1.75)], x=bounded(0, None, 200)),
     "x_j times a bump of height 1 at its own place, all places at least as far apart as the bump is wide: every x_j "
     "is at most 1, for 200 bumps (1 - 100 d**2)+ on a 5 x 5 x 8 lattice of spacing 0.25 in [0, 1] x [0, 1] x [0, "
     "1.75]."),
) + table(
    "nonsmooth",
    ("sum_of_absolute_values", 3.5,
     minimize(lambda x: 3 * (x[0] + x[1] / 2) - 1,
              lambda x, u: polynomial(x, u) >= 2 * abs(u - 0.3) + abs(u - 0.8), over=unit_cube(1), x=free(2)),
     "a + b u above 2|u - 0.3| + |u - 0.8| on [0, 1]: the function is convex, so the chord is best; three times its "
     "mean plus a constant gives 3 (1.4 + 1.6) / 2 - 1."),
    ("distance_from_an_inner_point", 1.5,
     minimize(lambda a, b, t: t, lambda a, b, t, u, v: t >= a * abs(u - 0.25) + b * abs(v - 0.5),
              over=unit_cube(2), a=bounded(1, None), b=bounded(1.5, None), t=free()),
     "t >= a|u - 0.25| + b|v - 0.5| with a >= 1 and b >= 3/2: the farthest corners are at the distances 3/4 and 1/2, "
     "so the minimum of t is 3/4 + 3/4."),
    ("jump_in_the_coefficient", 7.0,
     maximize(lambda x, y: x + 2 * y + 1,
              lambda x, y, u: x + Expr_if(u <= 1 / 3, 1, 3 + u) * y <= Expr_if(u <= 1 / 3, 5, 8),
              over=unit_cube(1), x=bounded(0, None), y=bounded(0, None)),
     "The coefficient of y is 1 up to u = 1/3 and 3 + u beyond: x + y <= 5 and x + 4y <= 8 remain, and with x >= 0, y "
     ">= 0 the maximum of x + 2y + 1 is at (4, 1)."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Badly scaled and degenerate programs, several families
# ---------------------------------------------------------------------------


def ramp(u):
    return Expr_if(u >= 0.5, u - 0.5, 0)


# fmt: off
SCALES = table(
    "badly scaled",
    ("square_root_above_line_on_a_long_interval", sqrt(5e5), covering((1, 5e5), affine, sqrt, [(0, 1e6)]),
     "sqrt is concave, so the best mean of a line above it on [0, 10**6] is its value at the midpoint."),
    ("reciprocal_above_line_on_a_tiny_interval", 1.5,
     covering((1, 1.5e-6), affine, lambda u: 2e-6 / u, [(1e-6, 2e-6)]),
     "2e-6/u is convex, so the best line above it on [1e-6, 2e-6] is the chord, with the mean (2 + 1) / 2."),
    ("corner_of_a_long_thin_box", 1e3 * 5e2 + 1e-3,
     minimize(lambda x, y, t: t, lambda x, y, t, u, v: t >= x * u + y * v, over=[(0, 500), (0, 1e-3)],
              x=bounded(1000, None), y=bounded(1, None), t=free()),
     "With x >= 1000 and y >= 1 the sum x u + y v is largest at the far corner (500, 0.001), and least there for x = "
     "1000, y = 1."),
    ("steep_start", 1 / 400,
     minimize(lambda x, y: x, lambda x, y, u: x + y * u**2 >= u, over=unit_cube(1), x=free(), y=bounded(None, 100)),
     "x + y u**2 >= u with y <= 100: the maximum of u - 100 u**2 is 1/400, at u = 1/200."),
) + table(
    "scales",
    ("box_of_very_different_sides", 1e6 + 1e-6 + 1.0,
     least_upper_bound(lambda u, v: u + v + u * v, [(0, 1e6), (0, 1e-6)]),
     "u + v + u v increases in both coordinates of [0, 1e6] x [0, 1e-6], so the far corner decides: 1e6 + 1e-6 + 1."),
    ("small_objective", 1e-5, least_upper_bound(lambda u: 1e-5 * u * (2 - u), [(0, 2)]),
     "x >= 1e-5 u (2 - u): 1e-5 at u = 1."),
)

DEGENERATE = table(
    "degenerate",
    ("no_slater_point", 1.0,
     maximize(lambda x, y: x + y, lambda x, y, u: x * u <= 0, over=cube(1), x=free(), y=bounded(None, 1)),
     "x u <= 0 on [-1, 1] forces x = 0, and y <= 1, so x + y is at most 1."),
    ("band_of_width_zero", 3.0,
     minimize(lambda x, y: x + y, lambda x, y, u: (1 + 2 * u, x + y * u, 1 + 2 * u), over=unit_cube(1),
              x=free(), y=free()),
     "The band 1 + 2u <= x + y u <= 1 + 2u admits only x = 1, y = 2."),
    ("rows_binding_everywhere", 1.0,
     minimize(lambda x, y: 2 * x + y / 2, lambda x, y, u: x + y * ramp(u) >= 2 * ramp(u), over=unit_cube(1),
              x=free(), y=free()),
     "x + y h(u) >= 2 h(u) with h = max(u - 1/2, 0): x >= 0 and x + y/2 >= 1, so 2x + y/2 is least at (0, 2), where "
     "every row binds."),
    ("objective_parallel_to_a_row", 2.0,
     maximize(lambda x, y: x + y, lambda x, y, u: x + y * u <= 2, over=unit_cube(1),
              x=bounded(0, None), y=bounded(0, None)),
     "x + y <= 2 is the row at u = 1, parallel to the objective, so the whole edge of points (x, 2 - x) with 0 <= x "
     "<= 2 is optimal."),
    ("identical_rows", 1.0,
     maximize(lambda x, y: x - y, lambda x, y, u, v: x + y * (sin(u + v) ** 2 + cos(u + v) ** 2) <= 1,
              over=[(0, 2 * pi), (0, 1)], x=free(), y=bounded(0, None)),
     "x + y sin(u + v)**2 + y cos(u + v)**2 is the same row x + y <= 1 for every index; x - y with y >= 0 is largest "
     "at (1, 0)."),
    ("one_candidate_only", 1.0,
     minimize(total, lambda x, u: (u**2, polynomial(x, u), u**2), over=unit_cube(1), x=free(7)),
     "The band between u**2 and u**2 holds the single polynomial u**2 of degree six; its value at 1 is 1 (ranged "
     "row)."),
    ("identical_binding_directions", 1.0, packing((1, 1), lambda u, v: (u, v), larger, unit_cube(2)),
     "x u + y v <= max(u, v) over the square with x + y maximal: all rows with u = v bind."),
) + table(
    "ranged",
    ("ranged_line_between_parabolas", 2 - 1 / 8,
     maximize(lambda x: x[0] + 2 * x[1], lambda x, u: (u**2 - 1 / 8, polynomial(x, u), u**2 + 1 / 8),
              over=unit_cube(1), x=free(2)),
     "u - 1/8 is the only line between u**2 - 1/8 and u**2 + 1/8 on [0, 1] (the best uniform approximation, three "
     "alternations), so a + 2 b is 2 - 1/8; there is no Slater point."),
) + table(
    "several families",
    ("common_slope_for_three_families", 2 + 4 * e,
     minimize(lambda x, y: total(x) + 1.5 * y, lambda x, y, s, u: x[s] + y * u >= s * exp(u), over=unit_cube(1),
              each=(1, 2, 3), x=free([1, 2, 3]), y=free()),
     "The ends decide: x_s = max(s, s e - y), and the sum of x_s plus 3y/2 is least at y = 2(e - 1), where x = (1, 2, "
     "e + 2)."),
    ("families_on_different_intervals", 5 / 6,
     minimize(lambda x, y: (2 * x + y) / 3, ([(0, 1)], lambda x, y, u: x + y * u >= u**2),
              ([(1, 2)], lambda x, y, v: x + y * v >= 4 * v - 3), x=free(), y=free()),
     "The line must lie above u**2 on [0, 1] and above 4v - 3 on [1, 2]; this needs x >= 0 and x + 2y >= 5, so (2x + "
     "y)/3 = x/2 + (x + 2y)/6 is at least 5/6, attained by the line 5u/2."),
)
# fmt: on

PROBLEMS: list[Known] = [*MAXIMA, *NARROW, *SCALES, *DEGENERATE]
