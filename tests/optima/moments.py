"""Moment problems: the largest mean of a function over all distributions with given moments.

The program is the dual: the least value at the moments of a function in a span that lies above the given one.
Columns: name, optimum, program, reason; a bound is `covering(moments, span, function, over)`.
"""

from math import e

import numpy as np
from pyomo.environ import Expr_if, exp, sqrt

from optima.known import Known, table
from optima.models import (
    HALF_LINE,
    LINE,
    affine,
    covering,
    cube,
    free,
    indicator,
    larger,
    minimize,
    polynomial,
    powers,
    square_sum,
    unit_cube,
)

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


def normal_tail(n, x0, over=LINE):
    return covering(NORMAL[: 2 * n + 1], powers(2 * n), lambda u: indicator(u >= x0), over)


def excess_over(level):
    return lambda u: Expr_if(u >= level, u - level, 0)


def worst_cvar(over):
    return minimize(
        lambda x, t: t + 20 * (x[0] + x[2]),
        lambda x, t, u: polynomial(x, u) >= 0,
        lambda x, t, u: polynomial(x, u) >= u - t,
        over=over,
        x=free(3),
        t=free(),
    )


def multivariate_bound(second_moments, condition, over):
    """Largest probability of a condition with mean 0 and given second moments, by a quadratic."""
    n = len(over)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]

    def quadratic(c, b, A, *z):
        linear = sum(b[i] * z[i] for i in range(n))
        return c + linear + sum(A[i, j] * z[i] * z[j] for i, j in pairs) >= indicator(condition(*z))

    return minimize(
        lambda c, b, A: c + sum(second_moments[i][j] * A[i, j] for i, j in pairs),
        quadratic,
        over=over,
        c=free(),
        b=free(n),
        A=free(pairs),
    )


def steps(u, v):
    return (1, indicator(u >= 0.5), indicator(v >= 0.5))


def either_step(u, v):
    return indicator(steps(u, v)[1] + steps(u, v)[2] >= 1)


# fmt: off
PROBLEMS: list[Known] = table(
    "moment problem",
    # One variable on an interval.
    ("scarf_bound", 0.25, covering((1, 5, 26), powers(2), excess_over(5.75), [(0, 10)]),
     "With mean 5, variance 1 and level 5.75 the expected excess is at most (sqrt(1 + 0.75**2) - 0.75) / 2 = 1/4, "
     "attained by atoms at 4.5 and 7, which lie in the support [0, 10]."),
    ("cantelli_bound", 4 / 7, covering((1, 0, 1 / 3), powers(2), lambda u: indicator(u >= 0.5), cube(1)),
     "With mean 0 and variance 1/3 the probability of u >= 1/2 is at most (1/3) / (1/3 + 1/4), attained by atoms at "
     "1/2 and -2/3, inside [-1, 1]."),
    ("chebyshev_bound", 1 / 4, covering((1, 0, 1), powers(2), lambda u: indicator(abs(u) >= 2), [(-3, 3)]),
     "With mean 0 and variance 1 the probability of |u| >= 2 is at most 1/4, attained by atoms at -2, 0 and 2, inside "
     "[-3, 3]."),
    ("markov_bound", 2 / 5, covering((1, 2), powers(1), lambda u: indicator(u >= 5), [(0, 10)]),
     "With support [0, 10] and mean 2 the probability of u >= 5 is at most 2/5."),
    ("largest_exponential_moment", 0.9 * exp(1 / 3) + 0.1 * e, covering((1, 0.4, 0.2), powers(2), exp, unit_cube(1)),
     "With support [0, 1], mean 0.4 and variance 0.04 the largest mean of exp has atoms at the right end and at 0.4 - "
     "0.04/0.6 = 1/3, with masses 0.1 and 0.9."),
    ("chebyshev_markov_with_eight_moments_on_an_interval", chebyshev_markov(4, 1.0), normal_tail(4, 1.0, [(-6, 6)]),
     "The same on [-6, 6], which holds all atoms."),
    ("worst_cvar_on_an_interval", sqrt(19), worst_cvar([(-10, 10)]), "The same on [-10, 10], which holds the atoms."),
    ("staircase_above_line", 2.5,
     covering((1, 2.5), affine, lambda u: sum(indicator(u >= k) for k in range(1, 6)), [(0, 10)]),
     "The least line above the staircase min(floor(u), 5) on [0, 10] has the value 2.5 at 2.5: the concave envelope "
     "is u up to 5."),
    # One variable on a line or half-line.
    ("cantelli_on_the_whole_line", 1 / 5, covering((1, 0, 1), powers(2), lambda u: indicator(u >= 2), LINE),
     "Mean 0, variance 1: P(u >= 2) <= 1/5."),
    ("two_sided_with_four_moments", 2 / 11,
     covering((1, 0, 1, 0, 3), powers(4), lambda u: indicator(abs(u) >= 2), LINE),
     "Moments 0, 1, 0, 3: P(|u| >= 2) = P(t >= 4) for t = u**2 of mean 1 and variance 2 is at most 2/(2 + 9) by "
     "Cantelli; the other atom t = 1/3 is positive."),
    ("chebyshev_markov_with_four_moments", chebyshev_markov(2, 0.5), normal_tail(2, 0.5),
     "Chebyshev, Markov, Stieltjes: canonical atoms through 0.5."),
    ("chebyshev_markov_with_eight_moments", chebyshev_markov(4, 1.0), normal_tail(4, 1.0),
     "The same with eight moments of the normal law, on the whole line."),
    ("chebyshev_markov_with_six_moments", chebyshev_markov(3, -0.4), normal_tail(3, -0.4),
     "The same with six moments."),
    ("worst_cvar_on_the_whole_line", sqrt(19), worst_cvar(LINE),
     "The largest CVaR at 5% with mean 0 and variance 1 is sqrt(0.95/0.05)."),
    ("markov_with_mass_at_infinity", 2 / 3,
     covering((1, 1, 2), powers(2), lambda u: indicator(u >= 1.5), HALF_LINE),
     "Mean 1 and second moment 2 on the half-line: P(u >= 3/2) <= 2/3 (Markov), approached with mass running to "
     "infinity; the bound u/1.5 attains it, and Cantelli's 4/5 is larger."),
    ("cantelli_on_the_half_line", 1 / 5, covering((1, 1, 2), powers(2), lambda u: indicator(u >= 3), HALF_LINE),
     "Mean 1 and variance 1: P(u >= 3) <= 1/5 with the other atom at 1/2."),
    ("cantelli_on_the_negative_half_line", 1 / 5,
     covering((1, -1, 2), powers(2), lambda u: indicator(u <= -3), [(None, 0)]),
     "The mirror image on (-inf, 0]: P(u <= -3) <= 1/5."),
    # Several variables.
    ("largest_mean_of_a_supermodular_function", 0.4 + 0.3 * e + 0.3 * e**2,
     covering((1, 0.3, 0.6), affine, lambda u, v: exp(u + v), unit_cube(2)),
     "exp(u+v) is convex and supermodular, so with means 0.3 and 0.6 the worst distribution is the comonotone one on "
     "the corners: masses 0.4, 0.3, 0.3 at (0,0), (0,1), (1,1)."),
    ("probability_of_a_corner", 0.6,
     covering((1, 0.3, 0.4), affine, lambda u, v: Expr_if(u >= 0.5, indicator(v >= 0.5), 0), unit_cube(2)),
     "With means 0.3 and 0.4 on the unit square both coordinates reach 1/2 with probability at most min(0.3, 0.4) / "
     "0.5; the indicator jumps along two lines."),
    ("probability_outside_a_disc", 1 / 4,
     covering((1, 1), lambda u, v: (1, u**2 + v**2), lambda u, v: indicator(u**2 + v**2 >= 4), cube(2, -3, 3)),
     "With mean squared norm 1 the probability of the norm reaching 2 is at most 1/4 (Markov); the whole circle of "
     "radius 2 binds."),
    ("largest_mean_in_three_dimensions", 0.3 + 0.2 * e + 0.3 * e**2 + 0.2 * e**3,
     covering((1, 0.2, 0.5, 0.7), affine, lambda u, v, w: exp(u + v + w), unit_cube(3)),
     "exp(u+v+w) is convex and supermodular, so with means 0.2, 0.5, 0.7 the comonotone distribution on the corners "
     "is the worst: masses 0.3, 0.2, 0.3, 0.2."),
    ("chebyshev_outside_a_ball", 1 / 3,
     multivariate_bound(np.eye(3).tolist(), lambda *z: square_sum(z) >= 9, cube(3, -4, 4)),
     "Mean 0 and covariance I in [-4, 4]**3: P(|z| >= 3) <= 3/9, with atoms on the sphere and at zero."),
    ("chebyshev_of_a_half_plane", 4.2 / 20.2,
     multivariate_bound([[1, 0.3], [0.3, 0.5]], lambda u, v: u + 2 * v >= 4, cube(2, -10, 10)),
     "Marshall and Olkin: P(u + 2 v >= 4) <= s/(s + 16), s = a'Sa = 4.2 with S = ((1, .3), (.3, .5)); the box [-10, "
     "10]**2 holds suitable atoms."),
    ("chebyshev_outside_a_disc_in_the_plane", 1.5 / 4,
     multivariate_bound([[1, 0], [0, 0.5]], lambda *z: square_sum(z) >= 4, LINE * 2),
     "Covariance diag(1, 1/2) on the whole plane: P(|z| >= 2) <= 1.5/4."),
    ("mean_of_the_larger_of_two", 1.0,
     covering((1, 0, 0, 4), lambda u, v: (1, u, v, (u - v) ** 2), larger, cube(2, -3, 3)),
     "E max(u, v) = E|u - v|/2 for means 0, at most sqrt(E (u - v)**2)/2 = 1; the quadratic touches along the two "
     "lines u - v = +-2."),
    ("bonferroni", 0.5, covering((1, 0.2, 0.3), steps, either_step, unit_cube(2)),
     "Given P(u >= 1/2) = 0.2 and P(v >= 1/2) = 0.3 the largest P(either) is 0.5: the functions are steps on the "
     "square."),
) + table(
    "unbounded index",
    ("markov_bound_on_the_half_line", 2 / 5, covering((1, 2), affine, lambda u: indicator(u >= 5), HALF_LINE),
     "Markov: with mean 2 the probability of u >= 5 is at most 2/5."),
    ("scarf_bound_on_the_half_line", 3 / 4, covering((1, 1, 2), powers(2), excess_over(0.5), HALF_LINE),
     "With mean 1, variance 1 and level 1/2 on the half-line the expected excess is at most 1 - (1/2)(1/2), attained "
     "by atoms at 0 and 2 (Scarf's second case)."),
    ("largest_laplace_transform", 1 - (1 - exp(-2)) / 2,
     covering((1, 1, 2), powers(2), lambda u: exp(-u), HALF_LINE),
     "With the moments 1 and 2 on the half-line the largest mean of exp(-u) has atoms at 0 and 2 of mass 1/2 each."),
    ("line_above_a_hump", exp(-1), covering((1, 1), affine, lambda u: u * exp(-u), HALF_LINE),
     "u exp(-u) is concave near its maximum at 1, so a line above it has at least the value 1/e at 1, which the "
     "constant 1/e attains."),
    ("quotient_on_the_half_line", 1.0,
     minimize(lambda x: x, lambda x, u: x * (1 + u**2) >= 2 * u, over=HALF_LINE, x=free()),
     "x (1 + u**2) >= 2u holds for all u exactly when x >= 1, with equality at u = 1."),
    ("hump_on_a_half_strip", 2 * exp(-1),
     minimize(lambda x, y: x + y, lambda x, y, u, v: x + y * v >= u * exp(-u) * (1 + v),
              over=[(0, None), (0, 1)], x=free(), y=free()),
     "x + y v >= u exp(-u) (1 + v) on the half-line times [0, 1]: at u = 1 the rows need x >= 1/e and x + y >= 2/e, "
     "which is the objective."),
)
# fmt: on
