"""Infeasible and unbounded programs, and those on either side of the line.

Columns: name, optimum unless there is none, program, reason.
"""

from math import pi

from pyomo.environ import Expr_if, exp, sqrt

from optima.known import Known, table, table_without_optimum
from optima.models import (
    CIRCLE,
    affine,
    bounded,
    convex_body,
    covering,
    cube,
    free,
    in_ball,
    inner,
    integer,
    maximize,
    minimize,
    packing,
    polar,
    polynomial,
    powers,
    sphere,
    square_sum,
    unit_cube,
    unit_vector,
)


def band_around_square(margin):
    return minimize(
        lambda x: x[0],
        lambda x, u: polynomial(x, u) <= u**2 + 1 / 8 + margin,
        lambda x, u: polynomial(x, u) >= u**2 - 1 / 8 - margin,
        over=unit_cube(1),
        x=free(2),
    )


def in_disc(x, u):
    return inner(x, unit_vector(u)) <= 1


def disc_and_line(distance):
    """Least x_0 on the line x_0 + x_1 = distance inside the unit disc."""
    return minimize(lambda x: x[0], in_disc, over=CIRCLE, subject_to=[lambda x: x[0] + x[1] == distance], x=free(2))


def chord_end(distance):
    half = distance / 2
    return half - sqrt(0.5 - half**2)


def moments_near_a_point_mass(second):
    return covering((1, 1 / 2, second), powers(2), -1, unit_cube(1))


def directions_up_to(angle, gain=(0, 1)):
    return convex_body(gain, over=[(0, angle)])


def at_most_one(function, over):
    """Least x above a function, and at most 1."""
    return minimize(lambda x: x, lambda x, *z: x >= function(*z), over=over, x=bounded(None, 1))


def bump(u, place, width):
    return -(((u - place) / width) ** 2)


# fmt: off
INFEASIBLE = table_without_optimum(
    "infeasible",
    ("exp_above_line_through_a_low_point",
     minimize(lambda x, y: x + y, lambda x, y, u: x * u + y >= exp(u), over=cube(1), x=free(), y=bounded(None, 0)),
     "At u = 0 the row needs y >= 1, but y <= 0."),
    ("band_too_narrow_for_a_line",
     minimize(lambda x: x[0], lambda x, u: (u**2 - 0.1, polynomial(x, u), u**2 + 0.1), over=cube(1), x=free(2)),
     "The best uniform error of a line for u**2 on [-1, 1] is 1/2, but the band allows 0.1."),
    ("band_narrower_by_a_thousandth", band_around_square(-1e-3),
     "A line approximates u**2 on [0, 1] to 1/8 and no better."),
    ("half_plane_away_from_the_disc",
     minimize(lambda x: x[0], in_disc, over=CIRCLE, subject_to=[lambda x: x[0] + x[1] >= 3], x=free(2)),
     "On the unit disc x + y is at most sqrt(2), but it has to reach 3."),
    ("line_just_outside_the_disc", disc_and_line(sqrt(2) + 1e-3), "The line x + y = sqrt(2) + 0.001 misses the disc."),
    ("peak_above_the_bound",
     minimize(lambda x: x, lambda x, u: x >= 2 * exp(bump(u, 0.61803, 0.02)), over=unit_cube(1), x=bounded(0, 1.5)),
     "The peak needs x >= 2 near u = 0.61803, but x <= 1.5; away from it every x >= 0 would do."),
    ("narrow_step_forbids", at_most_one(lambda u: Expr_if(abs(u - 0.3141) <= 0.0001, 2, u), unit_cube(1)),
     "x >= 2 where |u - 0.3141| <= 0.0001, and x <= 1."),
    ("narrow_bump_forbids", at_most_one(lambda u: 0.5 * u + 1.9 * exp(bump(u, 0.3141, 0.0005)), unit_cube(1)),
     "A Gaussian of width 0.0005 reaches 2 at u = 0.3141, and x <= 1."),
    ("narrow_bump_in_the_square_forbids",
     at_most_one(lambda u, v: 0.2 * u + 1.9 * exp(bump(u, 0.3141, 0.02) + bump(v, 0.6666, 0.02)), unit_cube(2)),
     "The same in two dimensions with width 0.02."),
    ("no_integer_in_the_band",
     minimize(lambda x, y: x + y, lambda x, y, u: (0.3, x + y * u, 0.7), over=unit_cube(1),
              x=integer(-10, 10), y=bounded(-10, 10)),
     "At u = 0 the integer x would have to lie between 0.3 and 0.7."),
    ("plane_between_disc_and_bound",
     covering((0, 1, 1), affine, lambda *z: square_sum(z), cube(2), where=in_ball, subject_to=[lambda x: x[0] <= 0.5]),
     "On the disc the plane has to lie above u**2 + v**2, so its constant, the mean over the boundary circle, is at "
     "least 1, but it is at most 1/2."),
    ("point_outside_the_cross_polytope", polar((0, 1, 0), cube(3), subject_to=[lambda x: x[0] >= 2]),
     "Rows over the cube describe the unit ball of the 1-norm, but x_0 >= 2."),
    ("ball_and_half_space_apart",
     minimize(lambda x: x[3], lambda x, *z: inner(x, unit_vector(*z)) <= 1, over=sphere(4),
              subject_to=[lambda x: x[0] + x[1] + x[2] >= sqrt(3) + 1e-3], x=free(4)),
     "sum z_k x_k <= 1 on the sphere and x_0 + x_1 + x_2 >= sqrt(3) + 0.001 (three angles of a four-dimensional "
     "ball)."),
)

UNBOUNDED = table_without_optimum(
    "unbounded",
    ("quarter_of_the_directions", directions_up_to(pi / 2, gain=(1, -1)),
     "Only directions of the first quadrant are constrained, so y may decrease and x - y increase without limit."),
    ("steep_ray", directions_up_to(pi / 2 - 0.01),
     "Directions up to pi/2 - 0.01 leave the ray (-100, 1) free, which raises y."),
    ("very_steep_ray", directions_up_to(pi / 2 - 1e-4), "Directions up to pi/2 - 0.0001: the ray is (-10000, 1)."),
    ("extrapolated_line", packing((1, 0), affine, exp, [(1, 2)]),
     "A line below exp on [1, 2] may be arbitrarily steep downwards, so its value at 0 is not bounded."),
    ("impossible_moments", covering((1, 1 / 2, 1 / 5), powers(2), 0, unit_cube(1)),
     "No distribution has mean 1/2 and second moment 1/5; the multiples of (u - 1/2)**2 are feasible and lower the "
     "objective by 1/20 each."),
    ("variance_just_negative", moments_near_a_point_mass(0.25 - 1e-4),
     "Second moment 1/4 - 1e-4 with mean 1/2: multiples of (u - 1/2)**2 lower the objective without end, and are the "
     "only ones that do."),
    ("half_of_the_disc",
     minimize(lambda x: x[1], lambda x, u, v: x[0] * u + x[1] * v <= 1, over=[(-1, 1), (0, 1)],
              where=in_ball, x=free(2)),
     "Rows over the upper half of the disc do not constrain the negative second direction."),
    ("positive_cube", polar((1, -1, 0), unit_cube(3)),
     "Rows over [0, 1]**3 leave the negative directions free, and x_0 - x_1 increases along one of them."),
    ("tangential_ray",
     maximize(lambda x: polynomial(x, 1), lambda x, u: polynomial(x, u) >= 0, over=unit_cube(1),
              subject_to=[lambda x: polynomial(x, 1 / 2) == 0], x=free(3)),
     "p >= 0 of degree two with p(1/2) = 0 leaves multiples of (u - 1/2)**2, which touch zero; p(1) grows along them."),
    ("tangential_ray_in_two_dimensions",
     covering((1, 1, 1.5), lambda u, v: (u**2, v**2, u * v), -1, unit_cube(2)),
     "Multiples of (u - v)**2 touch zero along the diagonal and lower the objective, which gives them the value -1."),
)

BARELY = table(
    "barely feasible",
    ("band_wider_by_a_thousandth", -1 / 8 - 1e-3, band_around_square(1e-3),
     "The least x_0 with x_0 + x_1 u in the band of half-width 1/8 + d: at u = 0 the row says x_0 >= -1/8 - d, "
     "attained by the line u - 1/8 - d + e u with small e >= 0 that also meets 1 - 1/8 - d at 1 and stays below u**2 "
     "+ 1/8 + d at 1/2."),
    ("line_just_inside_the_disc", chord_end(sqrt(2) - 1e-3), disc_and_line(sqrt(2) - 1e-3),
     "The line x + y = sqrt(2) - 0.001 cuts a short chord; its end is known."),
) + table(
    "barely bounded",
    ("variance_just_positive", -1.0, moments_near_a_point_mass(0.25 + 1e-4),
     "With 1/4 + 1e-4 the moments are those of a distribution, so the least value is -1."),
    ("variance_zero", -1.0, moments_near_a_point_mass(0.25),
     "With 1/4 they are those of a point mass at 1/2: the value is p(1/2) >= -1."),
    ("no_ray_left", 1.0, directions_up_to(pi / 2), "Directions up to pi/2 bind y at 1."),
)
# fmt: on

PROBLEMS: list[Known] = [*INFEASIBLE, *UNBOUNDED, *BARELY]
