"""Numbers that optima are made of: quadrature rules, finite linear programs, maxima in one dimension."""

from itertools import combinations, product

import numpy as np
from pyomo.environ import value
from scipy.optimize import linprog, minimize_scalar

# ---------------------------------------------------------------------------
# Quadrature rules on an interval: (nodes, weights)
# ---------------------------------------------------------------------------


def _legendre(n):
    return np.polynomial.legendre.Legendre.basis(n)


def gauss(n, a=0.0, b=1.0):
    """n points, exact to degree 2n - 1."""
    t, w = np.polynomial.legendre.leggauss(n)
    return (a + b) / 2 + (b - a) / 2 * t, (b - a) / 2 * w


def _with_ends(nodes, a, b):
    """Nodes with weights that integrate as many powers as there are nodes, on [-1, 1] and moved."""
    t = np.array(sorted(nodes))
    legendre = np.polynomial.legendre.legvander(t, len(t) - 1).T
    w = np.linalg.solve(legendre, [2.0] + [0.0] * (len(t) - 1))
    assert (w > 0).all()
    return (a + b) / 2 + (b - a) / 2 * t, (b - a) / 2 * w


def lobatto(n, a=0.0, b=1.0):
    """n points with both ends, exact to degree 2n - 3; three of them are Simpson's rule."""
    return _with_ends([-1, *_legendre(n - 1).deriv().roots().real, 1], a, b)


def radau_left(n, a=0.0, b=1.0):
    """n points with the left end, exact to degree 2n - 2: roots of P_{n-1} + P_n."""
    roots = (_legendre(n - 1) + _legendre(n)).roots().real
    roots[np.argmin(roots)] = -1.0
    return _with_ends(roots, a, b)


def radau_right(n, a=0.0, b=1.0):
    t, w = radau_left(n, a, b)
    return (a + b) - t[::-1], w[::-1]


def trapezoid(n, a=0.0, b=1.0):
    """n steps of the trapezoidal rule."""
    weights = np.full(n + 1, (b - a) / n)
    weights[[0, -1]] /= 2
    return np.linspace(a, b, n + 1), weights


def integral(rule, function):
    return float(sum(w * value(function(float(t))) for t, w in zip(*rule, strict=True)))


def positive_rule_exists(nodes, degree):
    """Whether nonnegative weights at the nodes integrate all powers up to a degree over [0, 1]."""
    legendre = np.polynomial.legendre.legvander(2 * nodes - 1, degree).T
    found = linprog(np.zeros(len(nodes)), A_eq=legendre, b_eq=[1.0] + [0.0] * degree, bounds=(0, None))
    return found.status == 0


# ---------------------------------------------------------------------------
# Extreme values
# ---------------------------------------------------------------------------


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


def largest_of_finite_lp(gain, rows, limits, bounds):
    """Largest gain'x with finitely many rows, those to which a robust program reduces."""
    answer = linprog(-np.array(gain, float), np.array(rows, float), limits, bounds=bounds, method="highs")
    assert answer.status == 0
    return -answer.fun


# ---------------------------------------------------------------------------
# Vertices of polytopes
# ---------------------------------------------------------------------------


def corners(n, low=-1, high=1):
    return list(product((low, high), repeat=n))


def budget_corners(n, budget):
    """Corners of the cube [0, 1]**n with at most `budget` coordinates equal to 1."""
    return [
        [1.0 if k in chosen else 0.0 for k in range(n)]
        for size in range(budget + 1)
        for chosen in combinations(range(n), size)
    ]


def signed_units(n):
    """The vertices of the unit ball of the 1-norm."""
    return [[sign * (j == k) for j in range(n)] for k in range(n) for sign in (-1, 1)]


def slab_vertices(width):
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
