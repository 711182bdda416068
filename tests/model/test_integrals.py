"""Integrals and expectations: closed forms, kinks, jumps, ends without end; what the models make of them."""

import math
import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.contrib.pyros import BoxSet
from pyomo.dae import ContinuousSet, Integral
from scipy import special

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.index.quadrature.adaptive import Line, integrate

E, PI, INF = np.e, np.pi, None


CLOSED_FORMS = [
    ("exp", (0, 1), lambda u: pyo.exp(u), E - 1),
    ("power", (0, 2), lambda u: u**7, 32.0),
    ("odd power", (-1, 1), lambda u: u**3 + u**2, 2 / 3),
    ("sine", (0, PI), lambda u: pyo.sin(u), 2.0),
    ("oscillating", (0, 1), lambda u: pyo.cos(200 * u), np.sin(200) / 200),
    ("rational", (0, 1), lambda u: 4 / (1 + u**2), PI),
    ("peak", (-1, 1), lambda u: 1 / (u**2 + 1e-6), 2000 * np.arctan(1000)),
    ("narrow", (0, 1), lambda u: pyo.exp(-(((u - 0.3) / 1e-4) ** 2)), 1e-4 * np.sqrt(PI)),
    (
        "narrow beside a slope",
        (-1.5, -0.5),
        lambda u: 3 * abs(u + 0.6) - pyo.exp(-(((u + 0.79) / 3e-4) ** 2)),
        3 * (0.9**2 + 0.1**2) / 2 - 3e-4 * np.sqrt(PI),
    ),
    (
        "low beside a high one",
        (0, 1),
        lambda u: 1e-3 / ((u - 0.2) ** 2 + 1e-6) + 4 * pyo.exp(-(((u - 0.83) / 1e-4) ** 2)),
        np.arctan(800) + np.arctan(200) + 4e-4 * np.sqrt(PI),
    ),
    ("very narrow", (0, 1), lambda u: pyo.exp(-(((u - 0.3217) / 1e-7) ** 2)), 1e-7 * np.sqrt(PI)),
    ("root", (0, 1), lambda u: pyo.sqrt(u), 2 / 3),
    ("log", (0, 1), lambda u: pyo.log(u), -1.0),
    ("integrable pole", (0, 1), lambda u: 1 / pyo.sqrt(u), 2.0),
    ("u log u", (0, 1), lambda u: u * pyo.log(u), -0.25),
    ("half circle", (-1, 1), lambda u: pyo.sqrt(1 - u**2), PI / 2),
    ("kink", (0, 1), lambda u: abs(u - 1 / 3), (1 / 9 + 4 / 9) / 2),
    ("kink of a power", (0, 1), lambda u: abs(u - 0.7) ** 0.5, (0.7**1.5 + 0.3**1.5) / 1.5),
    ("two kinks", (-2, 2), lambda u: abs(abs(u) - 1), 2.0),
    ("jump", (0, 1), lambda u: pyo.Expr_if(u <= 1 / PI, 1, 3), 3 - 2 / PI),
    ("narrow step", (0, 1), lambda u: pyo.Expr_if(abs(u - 0.437) <= 1e-7, 5, 0), 1e-6),
    ("step that turns", (0, 1), lambda u: pyo.Expr_if(pyo.inequality(0.2, u, 0.2000001), 1, 0), 1e-7),
    ("largest", (0, 2), lambda u: osilp_max(u, u**2), 0.5 + 7 / 3),
    ("smallest", (0, PI), lambda u: osilp_min(np.sin(u), 0.5), 2 * (1 - np.sqrt(3) / 2) + PI / 3),
    ("stairs", (0, 3.5), lambda u: pyo.floor(u), 4.5),
    ("many stairs", (0, 1), lambda u: pyo.floor(97 * u), 48.0),
    ("Gaussian", (INF, INF), lambda u: pyo.exp(-(u**2)), np.sqrt(PI)),
    ("Gaussian far out", (INF, INF), lambda u: pyo.exp(-((u - 50) ** 2)), np.sqrt(PI)),
    ("exponential", (0, INF), lambda u: pyo.exp(-3 * u), 1 / 3),
    ("slow tail", (1, INF), lambda u: u**-2, 1.0),
    ("gamma", (0, INF), lambda u: u**3 * pyo.exp(-u), 6.0),
    ("to the left", (INF, 0), lambda u: pyo.exp(u) * u**2, 2.0),
    ("Cauchy", (INF, INF), lambda u: 1 / (1 + u**2), PI),
    ("Gaussian that no node sees", (INF, INF), lambda u: pyo.exp(-(((u - 1e4) / 0.1) ** 2)), 0.1 * np.sqrt(PI)),
    ("bump far out", (0, 1e6), lambda u: pyo.exp(-((u - 500000.3) ** 2)), np.sqrt(PI)),
    ("square wave", (0, 1), lambda u: pyo.Expr_if(pyo.sin(200 * u) >= 0, 1, 0), 32 * PI / 200),
    ("terms that cancel", (0, 1), lambda u: 1e8 + u - 1e8, 0.5),
    ("kink without end", (INF, INF), lambda u: pyo.exp(-abs(u - 2)), 2.0),
    ("error function", (0, 2), lambda u: pyo.exp(-(u**2)) * 2 / np.sqrt(PI), special.erf(2)),
]


def osilp_max(one, other):
    return np.maximum(one, other)


def osilp_min(one, other):
    return np.minimum(one, other)


@pytest.mark.parametrize(
    ("bounds", "rule", "value"), [row[1:] for row in CLOSED_FORMS], ids=[r[0] for r in CLOSED_FORMS]
)
def test_closed_forms(bounds, rule, value):
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(*bounds, 0)
    m.x = pyo.Var(bounds=(0, 1))
    m.o = pyo.Objective(
        expr=osilp.integral(m.u, rule) + osilp.integral(m.u, lambda u: rule(u) * m.x), sense=pyo.minimize
    )
    m.x.fix(1)
    assert pyo.value(m.o) == pytest.approx(2 * value, rel=1e-9, abs=1e-12)
    m.x.unfix()
    m.c = pyo.Constraint(expr=m.x == 1)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(2 * value, rel=1e-9, abs=1e-12)
    line = result.integrals.iloc[0]
    assert abs(result.objective - 2 * value) <= 2 * result.integrals["error"].sum() + 1e-15 * line["size"]


BOXES = [
    ("product", lambda u, v: u * v**2, 1 / 6),
    ("exp", lambda u, v: pyo.exp(u * v), 1.3179021514544038),
    ("kink on the diagonal", lambda u, v: abs(u - v), 1 / 3),
    ("jump on a circle", lambda u, v: pyo.Expr_if(u**2 + v**2 <= 1, 1, 0), PI / 4),
    ("slanted jump", lambda u, v: pyo.Expr_if(u + 2 * v <= 1, 4, 0), 1.0),
]


@pytest.mark.parametrize(("rule", "value"), [row[1:] for row in BOXES], ids=[row[0] for row in BOXES])
def test_closed_forms_over_boxes(rule, value):
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 1))
    assert pyo.value(osilp.integral((m.u, m.v), rule)) == pytest.approx(value, rel=1e-9)


def test_three_dimensions():
    m = pyo.ConcreteModel()
    m.u, m.v, m.w = (ContinuousSet(bounds=(0, k)) for k in (1, 2, 3))
    found = osilp.integral((m.u, m.v, m.w), lambda u, v, w: u * v * w + 1)
    assert pyo.value(found) == pytest.approx(0.5 * 2 * 4.5 + 6, rel=1e-12)


def test_the_parabola_above_exp_by_both_integrals():
    def model(area):
        m = pyo.ConcreteModel()
        m.u = ContinuousSet(bounds=(0, 1))
        m.a = pyo.Var(range(3))
        m.o = pyo.Objective(expr=area(m))
        m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.a[0] + m.a[1] * u + m.a[2] * u**2 >= pyo.exp(u))
        return m

    def pyomos(m):
        m.area = Integral(m.u, wrt=m.u, rule=lambda m, u: m.a[0] + m.a[1] * u + m.a[2] * u**2)
        return m.area

    ours = model(lambda m: osilp.integral(m.u, lambda u: m.a[0] + m.a[1] * u + m.a[2] * u**2))
    theirs = model(pyomos)
    for m in (ours, theirs, theirs.clone()):
        result = osilp.solve(m)
        assert result.certified
        assert result.objective == pytest.approx(1.726279776, abs=1e-9)
    rows = pyo.TransformationFactory("osilp.discretize").create_using(theirs, grid=osilp.Midpoint(2000))
    pyo.SolverFactory("appsi_highs").solve(rows)
    assert pyo.value(rows.o) == pytest.approx(1.726279776, abs=2e-5)


def test_an_indexed_integral_of_pyomo():
    m = pyo.ConcreteModel()
    m.I = pyo.Set(initialize=[1, 2])
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(m.I, bounds=(0, None))
    # Both vanish at both ends, where Pyomo's trapezoid has its points.
    m.use = Integral(m.I, m.u, wrt=m.u, rule=lambda m, i, u: i * u * (1 - u) * m.x[i])
    m.row = pyo.Constraint(expr=m.use[1] + m.use[2] <= 1)
    m.o = pyo.Objective(expr=m.x[1] + m.x[2], sense=pyo.maximize)
    assert osilp.solve(m).objective == pytest.approx(6)


def test_coefficients_follow_what_changes():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.k = pyo.Param([1, 2], initialize={1: 1.0, 2: 2.0}, mutable=True)
    m.fixed = pyo.Var(initialize=1.0)
    m.fixed.fix()
    m.cap = osilp.Profile(over=m.u, points=[0, 0.3, 1], initialize=[1, 3, 2])
    m.x = pyo.Var([1, 2], bounds=(0, 1))
    m.o = pyo.Objective(
        expr=osilp.integral(m.u, lambda u: sum(pyo.exp(m.k[i] * u) * m.x[i] for i in (1, 2)) * m.fixed + m.cap(u)),
        sense=pyo.maximize,
    )

    def value(one, two, fixed):
        return fixed * ((np.exp(one) - 1) / one + (np.exp(two) - 1) / two) + 0.3 * 2 + 0.7 * 2.5

    for each in (m, m.clone(), pickle.loads(pickle.dumps(m))):
        assert osilp.solve(each).objective == pytest.approx(value(1, 2, 1), rel=1e-12)
        each.k[1], each.fixed.value = 3.0, 0.5
        assert osilp.solve(each).objective == pytest.approx(value(3, 2, 0.5), rel=1e-12)
        results = pyo.SolverFactory("appsi_highs").solve(each)
        pyo.assert_optimal_termination(results)
        assert pyo.value(each.o) == pytest.approx(value(3, 2, 0.5), rel=1e-9)


def test_by_arrays_and_by_terms():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    places = np.linspace(0, 1, 7)
    m.x = pyo.Var(range(7), bounds=(0, 1))
    by_arrays = osilp.integral(m.u, lambda u: osilp.dot(np.exp(-(((u - places) / 0.1) ** 2)), m.x))
    by_terms = osilp.integral(
        m.u, lambda u: sum(pyo.exp(-(((u - p) / 0.1) ** 2)) * m.x[k] for k, p in enumerate(places))
    )
    exact = 0.05 * np.sqrt(PI) * (special.erf((1 - places) / 0.1) + special.erf(places / 0.1))
    for expression in (by_arrays, by_terms):
        for k in range(7):
            for j in range(7):
                m.x[j].value = float(j == k)
            assert pyo.value(expression) == pytest.approx(exact[k], rel=1e-12)


def test_within_a_rule_over_another_index():
    """The x with x times the integral of exp(u v) over u in [0, 1] at most 1 for all v in [0, 2]."""
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 2))
    m.x = pyo.Var(bounds=(0, 10))
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = osilp.SemiInfiniteConstraint(m.v, rule=lambda m, v: osilp.integral(m.u, lambda u: pyo.exp(u * v) * m.x) <= 1)
    assert str(m.c) == "c: integral(exp(u*v), u in [0, 1])*x <= 1  for all v in [0, 2]"
    assert m.c.route == "traced"
    result = osilp.solve(m)
    assert result.objective == pytest.approx(2 / (np.exp(2) - 1), rel=1e-8)
    assert not result.certified


def test_integrals_of_integrals_and_weights():
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 2))
    m.x = pyo.Var()
    m.x.fix(2)
    inner = osilp.integral(m.u, lambda u: u * osilp.integral(m.v, lambda v: pyo.exp(u * v) * m.x))
    # The integral over v is (exp(2u) - 1) / u.
    assert pyo.value(inner) == pytest.approx(2 * ((np.exp(2) - 1) / 2 - 1), rel=1e-10)
    m.weight = osilp.Profile(over=m.u, points=[0, 0.5, 1], initialize=[0, 1, 0])
    assert pyo.value(osilp.integral(m.u, lambda u: u, weight=m.weight)) == pytest.approx(0.25)


def test_points_of_the_set_are_break_points():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1), initialize=[0.123456])
    m.f = osilp.Profile(over=m.u, initialize=lambda u: np.where(u < 0.123456, 1e6, 0.0))
    found = osilp.integral(m.u, lambda u: m.f(u))
    assert pyo.value(found) == pytest.approx(123456.0, rel=1e-14)


def test_convex_integrands():
    """The best line through exp in the mean square over [0, 1]: 4 e - 10 and 18 - 6 e."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.a = pyo.Var(range(2))
    m.o = pyo.Objective(expr=osilp.integral(m.u, lambda u: (m.a[0] + m.a[1] * u - pyo.exp(u)) ** 2))
    result = osilp.solve(m)
    assert [m.a[0].value, m.a[1].value] == pytest.approx([4 * E - 10, 18 - 6 * E], abs=1e-7)
    assert result.objective == pytest.approx((E**2 - 1) / 2 - (4 * E - 10) * (E - 1) - (18 - 6 * E), abs=1e-9)
    m.row = pyo.Constraint(expr=osilp.integral(m.u, lambda u: pyo.exp(m.a[0] + u)) <= 1)
    m.o.set_value(-m.a[0] + m.a[1] ** 2)
    osilp.solve(m)
    assert m.a[0].value == pytest.approx(-np.log(E - 1), abs=1e-6)
    m.row.deactivate()
    m.o.set_value(osilp.integral(m.u, lambda u: -(u + 1) * m.a[0] ** 2))
    with pytest.raises(errors.NotConvexError):
        osilp.solve(m)


def test_integrals_of_curves():
    """The least energy of a transfer from rest to rest in unit time is 12; the least area above exp is near its own."""
    m = pyo.ConcreteModel()
    m.t = ContinuousSet(bounds=(0, 1))
    m.x = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(6))
    m.ends = pyo.ConstraintList()
    for end, place in ((0.0, 0.0), (1.0, 1.0)):
        m.ends.add(m.x(end) == place)
        m.ends.add(m.x.derivative(end) == 0)
    m.o = pyo.Objective(expr=osilp.integral(m.t, lambda t: m.x.derivative(t, order=2) ** 2))
    assert osilp.solve(m).objective == pytest.approx(12, rel=1e-8)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.curve = osilp.FunctionVar(over=m.u, basis=osilp.BSpline(8))
    m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.curve(u) >= pyo.exp(u))
    m.o = pyo.Objective(expr=osilp.integral(m.u, lambda u: m.curve(u) * pyo.sin(u)))
    exact = (E * (np.sin(1) - np.cos(1)) + 1) / 2
    result = osilp.solve(m)
    assert exact <= result.objective <= exact + 1e-5
    assert result.integrals["error"].max() < 1e-14


def test_the_mean_of_a_decision_rule():
    demand = BoxSet([(2, 6)])
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=demand, bounds=(0, None))
    m.c = osilp.SemiInfiniteConstraint(demand, rule=lambda m, xi: m.y(xi) >= xi[0] - 1)
    draws = np.random.default_rng(0).uniform(2, 6, (500, 1))
    m.o = pyo.Objective(expr=osilp.expectation(draws, lambda xi: m.y(xi)))
    assert osilp.solve(m).objective == pytest.approx(draws.mean() - 1, rel=1e-9)


# -- expectations ------------------------------------------------------------------------------------


DISTRIBUTIONS = [
    (scipy.stats.norm(10, 2), lambda x: x**2, 104.0),
    (scipy.stats.norm(1000, 0.001), lambda x: x, 1000.0),
    (scipy.stats.lognorm(0.5), lambda x: x, np.exp(0.125)),
    (scipy.stats.expon(scale=3), lambda x: np.maximum(x - 3, 0), 3 / E),
    (scipy.stats.uniform(2, 4), lambda x: abs(x - 3), (0.5 + 4.5) / 4),
    (scipy.stats.gamma(0.5), lambda x: x, 0.5),
    (scipy.stats.beta(1000, 3000), lambda x: x, 0.25),
    (scipy.stats.t(5), lambda x: x**2, 5 / 3),
    (scipy.stats.norm(1e6, 1e-3), lambda x: x, 1e6),
    (scipy.stats.beta(0.5, 0.5), lambda x: x, 0.5),
    (scipy.stats.gamma(0.01), lambda x: x, 0.01),
    (scipy.stats.pareto(1.5), lambda x: x, 3.0),
    (scipy.stats.poisson(1e6), lambda x: x, 1e6),
    (scipy.stats.poisson(4.5), lambda x: x**2, 4.5 + 4.5**2),
    (scipy.stats.binom(10, 0.3), lambda x: np.maximum(x - 2, 0), None),
    (scipy.stats.rv_discrete(values=([1, 2, 7], [0.5, 0.25, 0.25])), lambda x: x, 2.75),
]


@pytest.mark.parametrize(("distribution", "rule", "value"), DISTRIBUTIONS)
def test_distributions(distribution, rule, value):
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.o = pyo.Objective(expr=osilp.expectation(distribution, lambda xi: rule(xi) * m.x), sense=pyo.maximize)
    if value is None:
        value = distribution.expect(rule)
    assert osilp.solve(m).objective == pytest.approx(value, rel=1e-9)


def test_what_is_not_reached_is_told_with_the_place():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(1e9, 1e9 + 1, 0)
    m.x = pyo.Var(bounds=(0, 1))
    m.o = pyo.Objective(expr=osilp.integral(m.u, lambda u: (u - 1e9) ** 2 * m.x), sense=pyo.maximize)
    with pytest.warns(errors.AccuracyWarning, match="it is computed to about 4.4e-07 only"):
        assert osilp.solve(m).objective == pytest.approx(1 / 3, rel=1e-6)
    m.o.set_value(osilp.expectation(scipy.stats.zipf(3.5), lambda xi: xi * m.x))
    with pytest.warns(errors.AccuracyWarning, match=r"mean over xi in zipf\(3.5\) of xi: it is computed to about"):
        result = osilp.solve(m)
    exact = special.zeta(2.5) / special.zeta(3.5)
    assert abs(result.objective - exact) <= result.integrals["error"].max() + 1e-12


def test_samples_with_names_and_weights():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(["a", "b"], bounds=(0, 1))
    frame = pd.DataFrame({"a": [1.0, 2.0, 6.0], "b": [3.0, 0.0, 0.0]}, index=[7, 8, 9])
    weights = pd.Series({9: 1.0, 8: 1.0, 7: 2.0})
    m.o = pyo.Objective(
        expr=osilp.expectation(frame, lambda xi: xi["a"] * m.x["a"] + xi[1] * m.x["b"], weights=weights),
        sense=pyo.maximize,
    )
    assert osilp.solve(m).objective == pytest.approx((2 * 1 + 2 + 6) / 4 + 1.5)
    # What is called with numbers, and what is not linear.
    m.o.set_value(osilp.expectation(frame, lambda xi: m.x["a"] if xi[0] > 1.5 else 0))
    assert osilp.solve(m).objective == pytest.approx(2 / 3)
    m.o.set_value(-osilp.expectation(frame["b"], lambda b: (m.x["b"] - b / 3) ** 2))
    osilp.solve(m)
    assert m.x["b"].value == pytest.approx(1 / 3, abs=1e-4)


# -- laws ----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.floats(-3, 3), st.floats(0.1, 4), st.lists(st.floats(-5, 5), min_size=1, max_size=5), st.floats(0.01, 0.99))
def test_integrals_are_additive_and_exact_for_polynomials(low, width, factors, cut):
    polynomial = np.polynomial.Polynomial(factors)
    middle, high = low + cut * width, low + width

    def of(start, end):
        return integrate(lambda owner, u: polynomial(u), 1, Line(start, end))

    whole, parts = of(low, high), [of(low, middle), of(middle, high)]
    primitive = polynomial.integ()
    size = max(1.0, float(whole.sizes[0]), float(np.abs(primitive([low, high])).max()))
    assert whole.values[0] == pytest.approx(primitive(high) - primitive(low), abs=1e-12 * size)
    assert sum(each.values[0] for each in parts) == pytest.approx(whole.values[0], abs=1e-12 * size)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31))
def test_the_error_is_at_least_what_it_is_off_by(seed):
    """Random kinks, jumps and peaks that are not told: the estimate holds."""
    rng = np.random.default_rng(seed)
    place, power, width = rng.uniform(0, 1, 5), rng.uniform(0.2, 2, 5), 10 ** rng.uniform(-3, 0, 5)
    exact = ((place ** (power + 1) + (1 - place) ** (power + 1)) / (power + 1)).sum()
    exact += (width * (np.arctan((1 - place) / width) + np.arctan(place / width))).sum() + (1 - place).sum()

    def function(owner, u):
        away = u[..., None] - place
        return (np.abs(away) ** power + 1 / (1 + (away / width) ** 2) + (away > 0)).sum(axis=-1)

    found = integrate(function, 1, Line(0, 1))
    assert abs(found.values[0] - exact) <= found.errors[0] + 1e-15 * exact
    assert abs(found.values[0] - exact) <= 1e-10 * exact


# -- refusals ----------------------------------------------------------------------------------------


def refused(kind, call):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_refusals():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.I = pyo.Set(initialize=[1, 2])
    m.x = pyo.Var()
    assert refused(errors.DeclarationError, lambda: osilp.integral(m.I, lambda i: m.x)) == (
        "integral: it goes over a ContinuousSet, RangeSet(a, b, 0) with a < b, or several of them in a tuple (got I); "
        "over samples or a distribution use osilp.expectation, and over an ordinary Set sum()."
    )
    assert refused(errors.DeclarationError, lambda: osilp.integral((m.u,) * 4, lambda *u: m.x)) == (
        "integral: it goes over one to 3 sets (got 4); for more, take the mean of a sample by osilp.expectation."
    )
    assert refused(errors.DeclarationError, lambda: osilp.integral(m.u, m.x + 1)) == (
        "integral: it needs a rule, a function of the index (got LinearExpression)."
    )
    assert refused(errors.DeclarationError, lambda: osilp.integral(m.u, lambda u: m.x * u <= 1)) == (
        "integral over u in [0, 1]: its rule must return an expression (got a relation)."
    )
    assert refused(errors.DeclarationError, lambda: osilp.integral(m.u, lambda u: m.x, weight=2)) == (
        "integral: weight= must be a function of the index, such as a Profile (got int)."
    )
    assert refused(errors.DeclarationError, lambda: osilp.integral(m.u, lambda u: m.x if u > 0.5 else 0)).startswith(
        "integral over u in [0, 1]: its rule cannot be traced (PyomoException: "
    )
    assert refused(
        errors.DeclarationError, lambda: osilp.integral(m.u, lambda u: m.x if isinstance(u, float) else 2 * m.x)
    ) == (
        "integral over u in [0, 1]: traced with a symbol its rule gives another expression than called with a number, "
        "at u = 0.43; write it with Pyomo's functions of the index, and no conditions of Python on it."
    )
    assert refused(errors.NotConvexError, lambda: osilp.integral(m.u, lambda u: abs(m.x - u))) == (
        "integral over u in [0, 1]: abs(x - u) has a kink whose place depends on the variables, so that no fixed nodes "
        "integrate it; take the mean over points by osilp.expectation, or bound it by a curve that is linear in "
        "variables."
    )
    m.o = pyo.Objective(expr=osilp.integral(m.u, lambda u: m.x / u))
    assert refused(errors.DataError, lambda: osilp.solve(m)).startswith(
        "integral over u in [0, 1] of 1/u: it cannot be computed to six digits near u = "
    )
    for call, text in [
        (lambda: osilp.expectation("abc", lambda xi: m.x), "expectation: expected a DataFrame, a Series or an array of "
         "numbers, or a frozen distribution of scipy.stats (got str)."),
        (lambda: osilp.expectation(scipy.stats.norm, lambda xi: m.x), "expectation: the distribution norm_gen is not "
         "frozen; give its parameters, as in scipy.stats.norm(10, 2)."),
        (lambda: osilp.expectation(scipy.stats.multivariate_normal([0, 0]), lambda xi: m.x), "expectation: the "
         "distribution multivariate_normal_frozen has several variables; take a sample of it, as by .rvs(10_000, "
         "random_state=1)."),
        (lambda: osilp.expectation([1, 2], lambda xi: m.x, weights=[1, -1]), "expectation: weights= must be 2 numbers "
         ">= 0, one for each row and not all of them zero (got [ 1. -1.])."),
        (lambda: osilp.expectation(scipy.stats.norm(), lambda xi: m.x, weights=[1]), "expectation: weights= belong to "
         "a sample; a distribution has its own."),
    ]:  # fmt: skip
        assert refused(errors.DeclarationError, call) == text
    m.o.set_value(osilp.expectation(scipy.stats.cauchy(), lambda xi: m.x * xi))
    assert refused(errors.DataError, lambda: osilp.solve(m)).startswith(
        "mean over xi in cauchy() of xi: it cannot be computed to six digits near xi = "
    )
    assert refused(errors.DataError, lambda: osilp.expectation([1.0, np.nan], lambda xi: m.x)) == (
        "expectation: row 1 of the sample holds nan; every entry must be a finite number."
    )


def test_an_integral_of_pyomo_within_a_semi_infinite_row_is_refused():
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.area = Integral(m.u, wrt=m.u, rule=lambda m, u: u * m.x)
    m.o = pyo.Objective(expr=m.x)
    m.c = osilp.SemiInfiniteConstraint(m.v, rule=lambda m, v: m.area >= v)
    assert refused(errors.ModelError, lambda: osilp.solve(m)) == (
        "SemiInfiniteConstraint 'c': it holds the Integral 'area' over 'u', which is not discretized; within a rule "
        "write osilp.integral(m.u, ...)."
    )


def test_arrivals_hold_no_integrals():
    m = pyo.ConcreteModel()
    m.T = pyo.RangeSet(3)
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 1))
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.o = pyo.Objective(expr=sum(m.x.values()), sense=pyo.maximize)

    def heat(m, t, u):
        return osilp.integral(m.v, lambda v: pyo.exp(-((u - v * m.place[t]) ** 2)) * m.x[t])

    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(heat(m, t, u) for t in m.T) <= 1.5)
    assert osilp.solve(m).status == "optimal"
    assert refused(errors.ModelError, lambda: osilp.compile_online(m, stages=m.T)).startswith(
        "compile_online: rows and objectives of arrivals cannot hold an integral or a mean (found the integral over v "
        "in [0, 1] of "
    )
    m.area = Integral(m.u, wrt=m.u, rule=lambda m, u: u * m.x[1])
    m.c.deactivate()
    m.row = pyo.Constraint(expr=m.area + m.x[2] + m.x[3] <= 2)
    assert refused(errors.ModelError, lambda: osilp.compile_online(m, stages=m.T)) == (
        "Integral 'area': the continuous set 'u' is not discretized, so that the integral would be a trapezoid over its "
        "few points; for arrivals give its values as Params."
    )


# -- poles -----------------------------------------------------------------------------------------------------------

NO_INTEGRAL = [
    ((0, 1), lambda u: 1 / (u - 0.3)),
    ((0, 1), lambda u: 1 / (u - 0.3) ** 2),
    ((0, 1), lambda u: 1 / (u - 0.5) ** 3),
    ((0, 1), lambda u: 1 / (2 * u - 0.7)),
    ((0, 2), lambda u: pyo.tan(u)),
    ((0, 2), lambda u: pyo.tan(u) ** 2),
    ((0, 1), lambda u: 1 / (pyo.exp(u) - 2)),
    ((0, 1), lambda u: 1 / (u**2 - 0.5)),
    ((0, 1), lambda u: 1 / (1 - u)),
    ((-1, 1), lambda u: 1 / u),
    ((-1, 1), lambda u: 1 / u**2),
    ((0, 0.5), lambda u: 1 / (u * pyo.log(u))),
    ((1, INF), lambda u: 1 / u),
]


def model_over(ends: tuple[float, float | None]) -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=ends) if ends[1] is not None else pyo.RangeSet(*ends, 0)
    return m


@pytest.mark.parametrize("place", range(len(NO_INTEGRAL)))
def test_what_has_a_pole_without_an_integral_is_refused(place: int) -> None:
    ends, rule = NO_INTEGRAL[place]
    m = model_over(ends)
    m.x = pyo.Var(bounds=(1, 2))
    m.least = pyo.Objective(expr=osilp.integral(m.u, lambda u: rule(u) * m.x))
    with pytest.raises(errors.DataError, match=r"cannot be computed to six digits near u = .* it may not exist"):
        osilp.solve(m)


@pytest.mark.parametrize(
    ("ends", "rule", "value"),
    [
        ((0, 1), lambda u: 1 / pyo.sqrt(1 - u), 2.0),
        ((-1, 1), lambda u: 1 / pyo.sqrt(1 - u**2), PI),
        ((0, 1), lambda u: 1 / pyo.sqrt(abs(u - 0.3)), 2 * np.sqrt(0.7) + 2 * np.sqrt(0.3)),
        ((0, 1), lambda u: 1 / ((u - 0.3) ** 2 + 1e-20), 1e10 * PI - 1 / 0.3 - 1 / 0.7),
    ],
)
def test_poles_with_an_integral_are_as_near_as_is_told(ends: tuple[float, float], rule: Callable, value: float) -> None:
    m = model_over(ends)
    m.x = pyo.Var(bounds=(1, 2))
    m.least = pyo.Objective(expr=osilp.integral(m.u, lambda u: rule(u) * m.x))
    with pytest.warns(errors.AccuracyWarning, match="it is computed to about"):
        result = osilp.solve(m)
    assert abs(result.objective - value) <= result.integrals["error"].max() <= 1e-6 * value


def test_what_no_nodes_can_sum_up_is_refused() -> None:
    m = model_over((0, 1))
    m.x = pyo.Var(bounds=(-1, 1))
    with pytest.raises(errors.DataError) as caught:
        osilp.integral(m.u, lambda u: (m.x - 1 / pyo.sqrt(u)) ** 2)
    told = str(caught.value)
    assert told.startswith(
        "integral over u in [0, 1] of (x - 1/sqrt(u))**2: it cannot be computed to six digits near u = "
    )
    assert told.endswith(
        "with an estimated error of inf); it may not exist. Take the place out of the set, or give it as a point of the "
        "ContinuousSet where the function jumps there."
    )
    m.least = pyo.Objective(expr=osilp.integral(m.u, lambda u: (m.x - u**-0.4) ** 2))
    assert osilp.solve(m).objective == pytest.approx(6 - 2 / 0.6, abs=1e-7)


def test_an_integral_that_depends_on_its_order_is_refused() -> None:
    m = model_over((0, 1))
    m.v = ContinuousSet(bounds=(0, 1))
    with pytest.raises(errors.DataError) as caught:
        osilp.integral((m.u, m.v), lambda u, v: (u - v) / (u + v) ** 3)()
    assert "found 0.5, with an estimated error of 1); it may not exist." in str(caught.value)
    smooth = pyo.value(osilp.integral((m.u, m.v), lambda u, v: 1 / pyo.sqrt(u**2 + v**2)))
    assert smooth == pytest.approx(2 * np.arcsinh(1), abs=1e-12)


def test_an_integral_of_two_variables_does_not_take_for_ever() -> None:
    m = model_over((0, 1))
    m.v = ContinuousSet(bounds=(0, 1))
    with pytest.raises(errors.DataError, match=r"cannot be computed to six digits \(after [0-9,]+ values of it\)"):
        osilp.integral((m.u, m.v), lambda u, v: 1 / abs(u - v))()


def test_heavy_tails_of_whole_numbers_are_refused_at_once() -> None:
    with pytest.raises(errors.DataError) as caught:
        osilp.expectation(scipy.stats.zipf(2), lambda n: n)
    assert str(caught.value) == (
        "expectation: the distribution zipf has more than 1,000,000 values that count; take a sample of it, as by "
        ".rvs(10_000, random_state=1)."
    )


def _bump(place, width, low, high):
    """The integral of exp(-((u - place) / width)^2) from one end to the other."""
    return width * np.sqrt(PI) / 2 * (math.erf((high - place) / width) - math.erf((low - place) / width))


@pytest.mark.parametrize("seed", range(4))
def test_narrow_peaks_of_several_coordinates_are_found_beside_other_terms(seed):
    """Bumps a thousandth wide, and a ridge along the diagonal, on a plane."""
    rng = np.random.default_rng(seed)
    places, width, height = rng.uniform(0.05, 0.95, (2, 2)), 10 ** rng.uniform(-3.5, -2), rng.uniform(5, 100)
    m = pyo.ConcreteModel()
    m.u, m.v = pyo.RangeSet(0, 1, 0), pyo.RangeSet(0, 1, 0)
    m.x = pyo.Var(bounds=(1, 1))

    def rule(u, v):
        bumps = sum(height * pyo.exp(-((u - a) ** 2 + (v - b) ** 2) / width**2) for a, b in places.tolist())
        return (u + 2 * v + bumps) * m.x

    m.o = pyo.Objective(expr=osilp.integral((m.u, m.v), rule))
    value = 1.5 + sum(height * _bump(a, width, 0, 1) * _bump(b, width, 0, 1) for a, b in places)
    assert osilp.solve(m, progress=False).objective == pytest.approx(value, rel=1e-9)


def test_a_ridge_along_the_diagonal():
    m = pyo.ConcreteModel()
    m.u, m.v = pyo.RangeSet(0, 1, 0), pyo.RangeSet(0, 1, 0)
    m.x = pyo.Var(bounds=(1, 1))
    ridge = osilp.integral((m.u, m.v), lambda u, v: (v + 3 * pyo.exp(-(((u - v) / 1e-3) ** 2))) * m.x)
    m.o = pyo.Objective(expr=ridge)
    value = 0.5 + 3 * (1e-3 * np.sqrt(PI) - 1e-6)
    assert osilp.solve(m, progress=False).objective == pytest.approx(value, rel=1e-9)
