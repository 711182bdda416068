"""Convex semi-infinite programs whose optimal values are known independently.

Columns: name, optimum, builder of the model, reason. Where no closed form is known the reason says how the number was
obtained; none comes from this package.
"""

from math import acosh, cosh, e, log, pi, sqrt
from math import cos as cosine

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import BoxSet, EllipsoidalSet
from pyomo.dae import ContinuousSet
from pyomo.environ import cos, exp, sin

import osilp_pyomo as osilp
from optima.known import Known


def model(rule, objective, variables, over=((0, 1),), sense=pyo.minimize, where=None, constraints=()):
    """A model with one family of rows; ``variables`` by name, ``rule(m, *index)`` and ``objective(m)``."""
    m = pyo.ConcreteModel()
    places = []
    for k, each in enumerate(over):
        place = ContinuousSet(bounds=each) if isinstance(each, tuple) else each
        if isinstance(each, tuple):
            m.add_component(f"u{k}", place)
        places.append(place)
    for name, variable in variables.items():
        m.add_component(name, variable)
    m.goal = pyo.Objective(expr=objective(m), sense=sense)
    m.row = osilp.SemiInfiniteConstraint(*places, rule=rule, where=where)
    for k, each in enumerate(constraints):
        m.add_component(f"c{k}", pyo.Constraint(expr=each(m)))
    return m


def norm(parts):
    return pyo.sqrt(sum(part**2 for part in parts))


def ball(curve, dimension, over, squared=False, where=None):
    """The smallest ball around the points of a curve or surface."""

    def rule(m, *u):
        parts = [m.x[i] - p for i, p in enumerate(curve(*u))]
        return (sum(part**2 for part in parts) if squared else norm(parts)) <= m.t

    variables = {"x": pyo.Var(range(dimension)), "t": pyo.Var()}
    return lambda: model(rule, lambda m: m.t, fresh(variables), over, where=where)


def fresh(variables):
    """New variables like these: a variable belongs to one model."""
    return {
        name: pyo.Var(*([variable.index_set()] if variable.is_indexed() else []))
        for name, variable in variables.items()
    }


def circle(u):
    return cos(u), sin(u)


def moment_curve(pairs):
    return lambda u: [f(k * u) for k in range(1, pairs + 1) for f in (cos, sin)]


def phases(dimension):
    """A curve without symmetry in many dimensions."""
    shift = np.random.default_rng(0).uniform(0, 6, dimension)
    return lambda u: [cos((i + 1) * u + float(shift[i])) / sqrt(i + 1) for i in range(dimension)]


def nearest(point, limit, over):
    """The nearest point of a convex set given by its support function."""
    return lambda: model(
        lambda m, u: m.x * cos(u) + m.y * sin(u) <= limit(u),
        lambda m: (m.x - point[0]) ** 2 + (m.y - point[1]) ** 2,
        {"x": pyo.Var(), "y": pyo.Var()},
        over,
    )


def mean_square(target, degree):
    """The integral of (polynomial - target)**2 over [0, 1], the target a polynomial too, by its coefficients."""

    def value(m):
        parts = [m.x[j] - (target[j] if j < len(target) else 0) for j in range(degree + 1)]
        return sum(parts[i] * parts[j] / (i + j + 1) for i in range(degree + 1) for j in range(degree + 1))

    return value


def fit(target, degree, derivative):
    """The polynomial next to a target whose derivative of an order is not negative anywhere."""

    def rule(m, u):
        factors = {j: np.prod([j - k for k in range(derivative)]) for j in range(derivative, degree + 1)}
        return sum(float(f) * m.x[j] * u ** (j - derivative) for j, f in factors.items()) >= 0

    return lambda: model(rule, mean_square(target, degree), {"x": pyo.Var(range(degree + 1))})


def array(elements, first, squared):
    """Complex weights of an antenna array, gain 1 in direction 0, smallest gain from ``first`` on."""

    def rule(m, u):
        real = sum(m.a[k] * cos(k * u) - m.b[k] * sin(k * u) for k in range(elements))
        imaginary = sum(m.a[k] * sin(k * u) + m.b[k] * cos(k * u) for k in range(elements))
        return (real**2 + imaginary**2 if squared else norm([real, imaginary])) <= m.t

    def build():
        places = range(elements)
        return model(
            rule,
            lambda m: m.t,
            {"a": pyo.Var(places), "b": pyo.Var(places), "t": pyo.Var()},
            ((first, 2 * pi - first),),
            constraints=(lambda m: sum(m.a.values()) == 1, lambda m: sum(m.b.values()) == 0),
        )

    return build


def dolph(elements, first):
    """The smallest gain that an array can have (Dolph, 1946): one over a Chebyshev polynomial."""
    return 1 / cosh((elements - 1) * acosh(1 / cosine(first / 2)))


def variables(**bounds):
    """Variables by name, each with its bounds."""
    return {name: pyo.Var(bounds=each) for name, each in bounds.items()}


def many(count, bounds=(None, None)):
    return {"x": pyo.Var(range(count), bounds=bounds)}


LINE, ROUND = (0.0, 1.0), (0.0, 2 * pi)
FREE, POSITIVE = (None, None), (0, None)
BETS = (0.5, 0.3, 0.2)

# x = sum l p(u), |x - p(u)| = r, (x - p(u))' p'(u) = 0, sum l = 1 at the binding places u, which were told by ECOS on 2,001
# points: solved by scipy's least_squares to 4e-14, with weights l > 0, and no point of 400,001 farther than r.
KKT = "the equations of the optimum, solved by scipy"

ROWS = [
    ("ball of a circle", 1.0, ball(circle, 2, [ROUND]), "its radius"),
    ("ball of a half circle", 1.0, ball(circle, 2, [(0, pi)]), "half the distance of its ends"),
    ("ball of a quarter of a circle", sqrt(0.5), ball(circle, 2, [(0, pi / 2)]), "half the distance of its ends"),
    ("its square", 0.5, ball(circle, 2, [(0, pi / 2)], squared=True), "the square of that"),
    ("ball of a segment", sqrt(5) / 2, ball(lambda u: (u, 2 * u), 2, [LINE]), "half its length"),
    ("ball of a square", sqrt(0.5), ball(lambda u, v: (u, v), 2, [LINE, LINE]), "half its diagonal"),
    (
        "ball of a triangle",
        sqrt(5) / 2,
        ball(lambda u, v: (2 * u, v), 2, [LINE, LINE], where=lambda m, u, v: u + v <= 1),
        "half the longest side of a right angle",
    ),
    ("ball in ten dimensions", sqrt(5), ball(moment_curve(5), 10, [ROUND]), "all at one distance from their mean"),
    ("ball in forty dimensions", sqrt(20), ball(moment_curve(20), 40, [ROUND]), "all at one distance from their mean"),
    ("ball of a curve, R^10", 1.373764669847, ball(phases(10), 10, [ROUND]), KKT),
    ("ball of a curve, R^40", 1.620640289370, ball(phases(40), 40, [ROUND]), KKT),
    ("nearest in a disc", (sqrt(5) - 1) ** 2, nearest((2, 1), lambda u: 1 + 0 * u, [ROUND]), "along the radius"),
    (
        "nearest in an ellipse",
        1.0,
        nearest((3, 0), lambda u: pyo.sqrt(4 * cos(u) ** 2 + sin(u) ** 2), [ROUND]),
        "the point (2, 0)",
    ),
    ("monotone fit", 1 / 12, fit((0, -1), 2, 1), "of a falling function the mean: Chebyshev's inequality"),
    ("convex fit", 1 / 180, fit((0, 0, -1), 3, 2), "of a concave function the best line"),
    (
        "fit from above",
        1 / 30,
        lambda: model(
            lambda m, u: m.x[0] + m.x[1] * u >= u**2, mean_square((0, 0, 1), 2), many(3), constraints=(lambda m: m.x[2] == 0,)
        ),
        "the secant, with multipliers 1/6 at both ends",
    ),
    (
        "peak-constrained cosines",
        (3 - sqrt(2)) ** 2,
        lambda: model(
            lambda m, u: 1 + m.x[0] * cos(u) + m.x[1] * cos(2 * u) >= 0, lambda m: (m.x[0] - 3) ** 2, many(2), [(0, pi)]
        ),
        "Fejer: the first coefficient is at most 2 cos(pi / 4)",
    ),
    ("array of four", dolph(4, 1.0), array(4, 1.0, False), "Dolph, 1946"),
    ("array of eight", dolph(8, 0.6), array(8, 0.6, False), "Dolph, 1946"),
    ("power of an array of six", dolph(6, 0.8) ** 2, array(6, 0.8, True), "Dolph, 1946, squared"),
    (
        "bets of Kelly",
        sum(p * log(p) for p in BETS),
        lambda: model(
            lambda m, u: m.x[0] + m.x[1] * u + m.x[2] * u**2 <= 1,
            lambda m: sum(p * pyo.log(m.x[i]) for i, p in enumerate(BETS)),
            many(3, (0, None)),
            sense=pyo.maximize,
        ),
        "the row binds at 1, and the bets are the probabilities",
    ),
    (
        "entropy",
        -log(6),
        lambda: model(
            lambda m, u: sum(m.x[i] * cos(2 * pi * (i + 1) * u) for i in range(6)) <= 1,
            lambda m: sum(m.x[i] * pyo.log(m.x[i]) for i in range(6)),
            many(6, (0, 1)),
        ),
        "the row binds at 0, and all are equal",
    ),
    (
        "log-sum-exp",
        1 + log(2),
        lambda: model(
            lambda m, u: m.x + m.y * u >= 1 + u, lambda m: pyo.log(exp(m.x) + exp(m.y)), variables(x=FREE, y=FREE)
        ),
        "x = y = 1",
    ),
    (
        "exponentials",
        2.0,
        lambda: model(lambda m, u: m.x * u + m.y * (1 - u) >= 0, lambda m: exp(m.x) + exp(m.y), variables(x=FREE, y=FREE)),
        "both are zero",
    ),
    (
        "robust least squares",
        0.25,
        lambda: model(
            lambda m, u: ((1 + u / 2) * m.x - 1) ** 2 <= m.t, lambda m: m.t, variables(x=FREE, t=FREE), [(-1, 1)]
        ),
        "x = 1, where both ends miss by a half",
    ),
    (
        "least variance, ellipsoid",
        1 / 16,
        lambda: model(
            lambda m, xi: (3 + xi[0]) * m.x[0] + (4 + xi[1]) * m.x[1] >= 1,
            lambda m: m.x[0] ** 2 + m.x[1] ** 2,
            many(2),
            [EllipsoidalSet([0, 0], np.eye(2).tolist(), 1)],
        ),
        "along the mean: 1 / (5 - 1)**2",
    ),
    (
        "least variance, box",
        1 / 25,
        lambda: model(
            lambda m, xi: xi[0] * m.x[0] + xi[1] * m.x[1] >= 1,
            lambda m: m.x[0] ** 2 + m.x[1] ** 2,
            many(2, (0, None)),
            [BoxSet([(3, 5), (4, 7)])],
        ),
        "the lower ends: 1 / (9 + 16)",
    ),
    (
        "convex row over a box of vectors",
        1.5,
        lambda: model(
            lambda m, xi: m.x[0] ** 2 + m.x[1] ** 2 + xi[0] * m.x[0] + xi[1] * m.x[1] <= m.t,
            lambda m: m.t,
            {**many(2), **variables(t=FREE)},
            [BoxSet([(-1, 1), (-1, 1)])],
            constraints=(lambda m: m.x[0] + m.x[1] == 1,),
        ),
        "both a half",
    ),
    (
        "ordinary disc",
        2.0,
        lambda: model(
            lambda m, u: m.x * u + m.y * (1 - u) <= 1,
            lambda m: m.x + m.y,
            variables(x=FREE, y=FREE),
            sense=pyo.maximize,
            constraints=(lambda m: m.x**2 + m.y**2 <= 2,),
        ),
        "(1, 1), where disc and rows meet",
    ),
    (
        "concave rows",
        e - 1,
        lambda: model(lambda m, u: pyo.log(1 + m.x) >= u, lambda m: m.x, variables(x=(0, 10))),
        "log(1 + x) = 1",
    ),
    (
        "absolute values",
        3.0,
        lambda: model(
            lambda m, u: m.x + u * m.y <= 4,
            lambda m: abs(m.x - 1) + abs(m.x + m.y) + abs(m.y - 2),
            variables(x=FREE, y=FREE),
        ),
        "the triangle's inequality",
    ),
    (
        "sum of distances",
        2 * sqrt(3),
        lambda: model(
            lambda m, u: m.x + u * m.y <= 4,
            lambda m: sum(norm([m.x - a, m.y - b]) for a, b in ((1, 0), (-1, 0), (0, sqrt(3)))),
            variables(x=FREE, y=FREE),
        ),
        "Fermat's point of a triangle of side 2",
    ),
    (
        "a hundred variables",
        0.005,
        lambda: model(
            lambda m, u: sum(m.x[k] * cos((k + 1) * u) for k in range(100)) <= 1,
            lambda m: sum((m.x[k] - 0.02) ** 2 for k in range(100)) / 2,
            many(100),
            [(0, pi)],
        ),
        "the projection onto a plane: the row binds at 0",
    ),
    (
        "an integer",
        0.36,
        lambda: model(
            lambda m, u: m.k + m.y >= 3 * u,
            lambda m: (m.k - 2.4) ** 2 + m.y**2,
            {"k": pyo.Var(domain=pyo.Integers, bounds=(0, 9)), **variables(y=FREE)},
        ),
        "3 costs 0.36, 2 costs 1.16",
    ),
]  # fmt: skip

PROBLEMS = [Known(name, "convex", 1, float(optimum), "optimal", reason, build) for name, optimum, build, reason in ROWS]
