"""Convex bodies by their support functions, shapes inside and around them, eigenvalues.

Columns: name, optimum, program, reason.
"""

from itertools import product
from math import pi

import numpy as np
from pyomo.environ import cos, sqrt

from optima.known import Known, table
from optima.models import (
    CIRCLE,
    bounded,
    convex_body,
    covering,
    cube,
    free,
    greatest_lower_bound,
    half_sphere,
    inner,
    integer,
    larger,
    maximize,
    minimize,
    packing,
    polar,
    quadratic_form,
    sphere,
    square_sum,
    total,
    unit_cube,
    unit_vector,
)


def ellipsoid(*squared_half_axes):
    """The support function of an axis-parallel ellipsoid."""
    return lambda d: sqrt(sum(a * each**2 for a, each in zip(squared_half_axes, d, strict=True)))


def box(d):
    """The support function of the cube [-1, 1]**n."""
    return sum(abs(each) for each in d)


# ---------------------------------------------------------------------------
# Support functions: the largest gain'x on a convex body
# ---------------------------------------------------------------------------


def least_squares_residual(x, t, u, v):
    heights = (1, 0, 2)
    return t >= sum(d * (x[0] + k * x[1] - heights[k]) for k, d in enumerate(unit_vector(u, v)))


RIGHT_TRIANGLE = {"a": (0, 0), "b": (4, 0), "c": (0, 3)}
EQUILATERAL = {0: (0, 0), 1: (2, 0), 2: (1, sqrt(3))}
TETRAHEDRON = {0: (1, 1, 1), 1: (1, -1, -1), 2: (-1, 1, -1), 3: (-1, -1, 1)}


def smallest_ball_around(corner, dimension):
    def encloses(centre, radius, c, *z):
        d = unit_vector(*z)
        return inner(centre, d) + radius >= inner(corner[c], d)

    return minimize(
        lambda centre, radius: radius, encloses,
        over=sphere(dimension), each=corner, centre=free(dimension), radius=free(),
    )  # fmt: skip


def reaches_corner(point, distance, c, u):
    return distance[c] >= sum((point[k] - EQUILATERAL[c][k]) * d for k, d in enumerate(unit_vector(u)))


THIN = (10.0, 1.0, 0.1, 0.01)

# fmt: off
SUPPORT = table(
    "support function",
    ("disc", 5.0, convex_body((3, 4)), "The rows describe the unit disc, so the optimum is the norm of (3, 4)."),
    ("ball_in_three_dimensions", 3.0, convex_body((1, 2, 2)),
     "The rows describe the unit ball, so the optimum is the norm of (1, 2, 2)."),
    ("ball_in_four_dimensions", 5.0, convex_body((1, 2, 2, 4)),
     "The rows describe the unit ball of R**4, so the optimum is the norm of (1, 2, 2, 4)."),
    ("ball_in_five_dimensions", 4.0, convex_body((1, 1, 1, 2, 3)),
     "The rows describe the unit ball of R**5, so the optimum is the norm of (1, 1, 1, 2, 3)."),
    ("ball_in_six_dimensions", 3.0, convex_body((1, 1, 1, 1, 1, 2)),
     "The rows describe the unit ball of R**6, so the optimum is the norm of (1, 1, 1, 1, 1, 2)."),
    ("ellipsoid_in_three_dimensions", sqrt(14), convex_body((1, 1, 1), ellipsoid(1, 4, 9)),
     "The right-hand side sqrt(d' Q d) is the support function of an ellipsoid with Q = diag(1, 4, 9), so the optimum "
     "for (1, 1, 1) is sqrt(1 + 4 + 9)."),
    ("thin_ellipsoid_in_four_dimensions", sqrt(square_sum(THIN)),
     convex_body((1, 1, 1, 1), ellipsoid(*(a**2 for a in THIN))),
     "The ellipsoid with the half-axes 10, 1, 0.1, 0.01: max of the sum of coordinates is the norm of the half-axes."),
    ("rounded_square", 3 + 4 + 5, convex_body((3, 4), lambda d: box(d) + 1),
     "The square [-1, 1]**2 plus the unit disc: max 3x + 4y = |c|_1 + |c|_2."),
    ("box_plus_ellipsoid", 5 + sqrt(9),
     convex_body((1, -2, 2), lambda d: box(d) + ellipsoid(4, 1, 0.25)(d)),
     "Support functions add: |c|_1 of the cube and sqrt(c'Ac) of the ellipsoid."),
    ("ball_in_scaled_variables", sqrt(1e4 + 1 + 1e-6),
     packing((1, 1, 1), lambda u, v: [s * d for s, d in zip((0.01, 1, 1000), unit_vector(u, v), strict=True)], 1,
             sphere(3)),
     "The unit ball in y = (0.01 x_0, x_1, 1000 x_2): max of the sum of x is the norm of (100, 1, 0.001)."),
    ("disc_with_large_radius", sqrt(2) * 1e6,
     packing((1, 1), lambda u: [1e-5 * d for d in unit_vector(u)], 10, CIRCLE),
     "The disc of radius 1e6 with rows multiplied by 1e-5."),
    ("fourth_power_norm", 17**0.25, polar((1, 2), cube(2), lambda u, v: u**4 + v**4 <= 1),
     "Rows over the unit ball of the 4-norm describe the unit ball of its dual norm, so the optimum for (1, 2) is the "
     "4-norm of (1, 2)."),
    ("l_shaped_index_set", 4 / 3, polar((1, 1), unit_cube(2), lambda u, v: (u <= 0.5) | (v <= 0.5)),
     "On the unit square without the open upper right quarter the corners (1, 1/2) and (1/2, 1) bind at x = (2/3, "
     "2/3); weights 2/3 on each prove 4/3."),
    ("cross_polytope_in_five_dimensions", 7.0, polar((3, -7, 2, 5, -1), cube(5)),
     "Rows over the cube [-1, 1]**5 describe the unit ball of the 1-norm, so the optimum is the largest cost in "
     "absolute value."),
    ("least_squares_by_the_norm", sqrt(1.5),
     minimize(lambda x, t: t, least_squares_residual, over=sphere(3), x=free(2), t=free()),
     "t >= d'(A x - b) for all unit vectors d means t >= |A x - b|; the line through (0, 1), (1, 0), (2, 2) has the "
     "residuals 1/2, -1, 1/2."),
    ("smallest_enclosing_circle", 2.5, smallest_ball_around(RIGHT_TRIANGLE, 2),
     "The right triangle with legs 4 and 3 has its circumcircle, of radius 5/2, as smallest enclosing circle."),
    ("smallest_enclosing_ball_of_a_tetrahedron", sqrt(3), smallest_ball_around(TETRAHEDRON, 3),
     "The regular tetrahedron on alternate corners of the cube [-1, 1]**3 has the circumscribed ball of radius "
     "sqrt(3) around the origin."),
    ("fermat_point_of_an_equilateral_triangle", 2 * sqrt(3),
     minimize(lambda point, distance: total(distance), reaches_corner, over=CIRCLE, each=EQUILATERAL,
              point=free(2), distance=free(3)),
     "The sum of distances to the corners of an equilateral triangle of side 2 is least at the centre, where it is 3 "
     "* 2 / sqrt(3)."),
) + table(
    "integer",
    ("integer_point_in_a_disc", 5.0, convex_body((1, 2), 2.5, x=integer(-10, 10, 2)),
     "Among the integer points of the disc of radius 5/2 the point (1, 2) maximizes x + 2y."),
    ("integer_point_in_a_ball",
     max(x + 2 * y + 3 * z for x, y, z in product(range(-4, 5), repeat=3) if x * x + y * y + z * z <= 3.5**2),
     convex_body((1, 2, 3), 3.5, x=integer(-10, 10, 3)),
     "The integer points of the ball of radius 7/2 are enumerated; (1, 1, 3) and (2, 2, 2) both give 12."),
    ("integer_point_in_a_large_ball",
     max(3 * x + 4 * y + 5 * z for x, y, z in product(range(-8, 9), repeat=3) if x * x + y * y + z * z <= 50.5),
     convex_body((3, 4, 5), sqrt(50.5), x=integer(-8, 8, 3)),
     "The best whole point of the ball of radius sqrt(50.5), by enumeration."),
) + table(
    "loose rows",
    ("rows_that_never_bind", 14 / 5,
     convex_body((1, 1), 100, subject_to=[lambda x: x[0] + 2 * x[1] <= 4, lambda x: 3 * x[0] + x[1] <= 6]),
     "The rows are slack on the whole polygon, so the ordinary constraints decide: x + 2y <= 4 and 3x + y <= 6 meet "
     "at (8/5, 6/5)."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Inscribed shapes: a centre c plus a multiple of a shape, inside a body
# ---------------------------------------------------------------------------


def inscribed(shape, body, dimension):
    """Largest r such that the shape times r, moved by c, lies in the body; both are support functions."""

    def inside(c, r, *z):
        d = unit_vector(*z)
        return inner(c, d) + r * shape(d) <= body(d)

    return maximize(lambda c, r: r, inside, over=sphere(dimension), c=free(dimension), r=free())


def longest_box(body, dimension):
    """Largest sum of sides of an axis-parallel box in a body."""

    def inside(c, side, *z):
        d = unit_vector(*z)
        return inner(c, d) + sum(abs(d[k]) * side[k] / 2 for k in range(dimension)) <= body(d)

    sides = bounded(0, None, dimension)
    return maximize(lambda c, side: total(side), inside, over=sphere(dimension), c=free(dimension), side=sides)


def ball(d):
    return 1


def tilted_ellipse(d):
    """Half-axes 2 and 1, turned by 45 degrees; 2 d_0 d_1 is the sine of twice the angle."""
    return sqrt(2.5 + 1.5 * (2 * d[0] * d[1]))


def triangle(d):
    """The corners (0, 0), (3, 0), (0, 3)."""
    return larger(larger(3 * d[0], 3 * d[1]), 0)


# fmt: off
INSCRIBED = table(
    "inscribed shape",
    ("largest_disc_in_a_rounded_square", 2.0, inscribed(ball, lambda d: box(d) + 1, 2),
     "The square plus the unit disc has the width 4 in the axes' directions."),
    ("largest_tilted_ellipse_in_a_square", sqrt(2 / 5), inscribed(tilted_ellipse, box, 2),
     "The ellipse with half-axes 2 and 1 turned by 45 degrees extends sqrt(5/2) in both axes' directions, so it fits "
     "[-1, 1]**2 when scaled by sqrt(2/5)."),
    ("largest_disc_in_a_triangle", 3 / (2 + sqrt(2)), inscribed(ball, triangle, 2),
     "The triangle (0,0), (3,0), (0,3) as the intersection of its half planes at every direction: the support "
     "function is max(0, 3 cos u, 3 sin u), the inradius (legs 3, 3): (3 + 3 - 3 sqrt(2)) / 2 = 3/(2 + sqrt(2))."),
    ("largest_ball_in_an_ellipsoid", 1.0, inscribed(ball, ellipsoid(9, 4, 1), 3),
     "Half-axes 3, 2, 1: the ball has radius 1."),
    ("longest_box_in_an_ellipse", 2 * sqrt(10), longest_box(ellipsoid(9, 1), 2),
     "The largest sum of sides of an axis-parallel box in the ellipse with half-axes 3 and 1: the corner maximizes x "
     "+ y, which is sqrt(10)."),
    ("longest_box_in_an_ellipsoid", 2 * sqrt(14), longest_box(ellipsoid(9, 4, 1), 3),
     "The same in the ellipsoid with half-axes 3, 2, 1: twice sqrt(9 + 4 + 1)."),
)
# fmt: on

# ---------------------------------------------------------------------------
# Smallest eigenvalues and semidefinite programs
# ---------------------------------------------------------------------------

FIVE_CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]


def second_difference_matrix(n):
    """Tridiagonal (-1, 2, -1): its smallest eigenvalue is 2 - 2 cos(pi / (n + 1))."""
    return 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


def smallest_eigenvalue(matrix):
    """Largest t with d'(A - t I)d >= 0 for all unit vectors d."""
    return greatest_lower_bound(lambda *z: quadratic_form(matrix, unit_vector(*z)), half_sphere(len(matrix)))


def squares_of_directions(*z):
    return [d**2 for d in unit_vector(*z)]


def cut_by_direction(*z):
    d = unit_vector(*z)
    return sum((d[i] - d[j]) ** 2 for i, j in FIVE_CYCLE) / 4


def lovasz_row(x, t, *z):
    d = unit_vector(*z)
    return t + sum(x[i, j] * d[i] * d[j] for i, j in FIVE_CYCLE) >= sum(d) ** 2


def copositive_row(t, *z):
    form = square_sum(z) + 2 * sum(z[i] * z[j] for i, j in FIVE_CYCLE)
    return t * form - sum(z) ** 2 >= 0


# fmt: off
EIGENVALUES = table(
    "eigenvalue",
    ("smallest_eigenvalue_of_order_two", (5 - sqrt(5)) / 2, smallest_eigenvalue([[2, 1], [1, 3]]),
     "The largest t with d'(A - t I)d >= 0 on the circle is the smallest eigenvalue of A = [[2, 1], [1, 3]]."),
    ("smallest_eigenvalue_of_order_four", 2 - 2 * cos(pi / 5), smallest_eigenvalue(second_difference_matrix(4)),
     "The smallest eigenvalue of the second difference matrix of order 4 is 2 - 2 cos(pi/5)."),
    ("smallest_eigenvalue_of_order_five", 2 - sqrt(3), smallest_eigenvalue(second_difference_matrix(5)),
     "The smallest eigenvalue of the second difference matrix of order 5 is 2 - 2 cos(pi/6)."),
    ("smallest_eigenvalue_on_the_cube", 2 - sqrt(2),
     maximize(lambda t: t, lambda t, *z: quadratic_form(second_difference_matrix(3), z) - t * square_sum(z) >= 0,
              over=cube(3), t=free()),
     "u'(A - t I)u >= 0 is homogeneous, so the cube may replace the sphere; A is the second difference matrix of "
     "order 3. At the origin the row reads 0 >= 0, so there is no Slater point."),
    ("diagonal_above_the_ones_matrix", 36.0,
     covering((1, 4, 9), squares_of_directions, lambda u, v: sum(unit_vector(u, v)) ** 2, half_sphere(3)),
     "diag(y) - J is positive semidefinite exactly when sum 1/y_i <= 1, so the minimum of y_1 + 4 y_2 + 9 y_3 is (1 + "
     "2 + 3)**2."),
    ("lovasz_number_of_the_five_cycle", sqrt(5),
     minimize(lambda x, t: t, lovasz_row, over=half_sphere(5), x=bounded(-20, 20, FIVE_CYCLE), t=bounded(0, 20)),
     "The Lovasz number, the least t with t I - J + X positive semidefinite for X supported on the edges, is sqrt(5) "
     "for the five-cycle."),
    ("semidefinite_cut_bound_of_the_five_cycle", 5 / 2 * (1 + cos(pi / 5)),
     covering((1, 1, 1, 1, 1), squares_of_directions, cut_by_direction, half_sphere(5), x=bounded(0, 10, 5)),
     "Goemans and Williamson: the semidefinite bound on cuts of the five-cycle is 5/2 (1 + cos(pi/5)); this is its "
     "dual, sum y with diag(y) - L/4 semidefinite."),
    ("stability_number_of_the_five_cycle", 2.0,
     minimize(lambda t: t, copositive_row, over=unit_cube(5), t=bounded(0, 100)),
     "Motzkin and Straus: the least t with t u'(I + A)u >= (sum u)**2 for all nonnegative u is the stability number, "
     "2 for the five-cycle; the rows are homogeneous, so the unit cube suffices."),
)
# fmt: on

PROBLEMS: list[Known] = [*SUPPORT, *INSCRIBED, *EIGENVALUES]
