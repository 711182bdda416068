"""Models that were once called optimal, certified, infeasible or unbounded, and were not.

Coefficients, limits and values of very different size, infima that are not attained, one single feasible point. What
such a model ends with may be that nothing is known; what is claimed must be true.
"""

import decimal
import io
import time
from fractions import Fraction

import numpy as np
import pyomo.contrib.pyros as pyros
import pyomo.environ as pyo
import pytest
from pyomo.common.log import LoggingIntercept
from pyomo.core.expr.numeric_expr import MaxExpression
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import DeclarationError, ModelError

pytestmark = pytest.mark.filterwarnings("ignore::osilp_pyomo.errors.AccuracyWarning")

row = osilp.SemiInfiniteConstraint


def begin(**variables):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    for name, bounds in variables.items():
        m.add_component(name, pyo.Var(bounds=bounds))
    return m


POSITIVE, FREE = (0, None), (None, None)


def tiny_coefficient(size):
    m = begin(x=POSITIVE, w=POSITIVE)
    m.o = pyo.Objective(expr=size * m.x + 10 * m.w)
    m.c = row(m.u, rule=lambda m, u: size * (1 + u) * m.x + m.w >= 2)
    return m


def tiny_share_of_a_large_stock():
    m = begin(x=FREE, z=POSITIVE)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = row(m.u, rule=lambda m, u: m.x <= 9e-10 * m.z * (1 + u))
    m.d = row(m.u, rule=lambda m, u: (1 + u) * m.z <= 2e9)
    return m


def dear_substitute():
    m = begin(x=FREE, w=FREE)
    m.o = pyo.Objective(expr=m.x + 1e12 * m.w)
    m.c = row(m.u, rule=lambda m, u: (1 + u) * m.x + 1e9 * m.w >= 2)
    m.d = row(m.u, rule=lambda m, u: (1 + u) * m.w <= 1)
    m.e = pyo.Constraint(expr=m.w >= 0)
    return m


def tiny_reward(size):
    m = begin(y=FREE, z=POSITIVE, w=POSITIVE)
    m.o = pyo.Objective(expr=m.y + size * m.z - m.w, sense=pyo.maximize)
    m.c = row(m.u, rule=lambda m, u: (1 + u) * m.y <= 2)
    m.d = row(m.u, rule=lambda m, u: (1 + u) * m.z - 1e3 * m.w <= 2 / size)
    m.e = row(m.u, rule=lambda m, u: u * m.z - m.w <= 1 / size)
    return m


def almost_parallel(difference):
    m = begin(x=POSITIVE, y=POSITIVE)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.y - m.x >= u)
    m.d = row(m.u, rule=lambda m, u: (1 + difference) * m.x - m.y >= u)
    return m


def peak_in_no_units(width, whole):
    m = begin(x=FREE)
    m.k = pyo.Var(domain=pyo.Integers if whole else pyo.Reals, bounds=(0, 3))
    m.o = pyo.Objective(expr=m.x + m.k)
    m.c = row(m.u, rule=lambda m, u: m.x >= pyo.exp(-(((u - 0.3) / width) ** 2)))
    return m


def bounded_beside_a_large_coefficient(size):
    m = begin(x=POSITIVE, w=POSITIVE)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = row(m.u, rule=lambda m, u: (1 + u) * m.x + size * m.w <= 2)
    m.d = pyo.Constraint(expr=m.w <= 1)
    return m


def almost_a_ray(share):
    m = begin(x=POSITIVE, y=POSITIVE)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = row(m.u, rule=lambda m, u: u * (1 + share) * m.x - m.y <= 1)
    m.d = row(m.u, rule=lambda m, u: m.y - m.x <= 1 + u)
    return m


def small_beside_a_large_value():
    size = 1e12
    m = begin(y=POSITIVE, z=(size, 2 * size))
    m.o = pyo.Objective(expr=m.y)
    m.c = row(m.u, rule=lambda m, u: m.y >= 1e-4 / size * m.z * (pyo.exp(-(((u - 0.3) / 0.02) ** 2)) - 0.5))
    return m


def penalty_of_a_million_millions():
    m = begin(a=FREE, b=FREE, y=POSITIVE)
    m.o = pyo.Objective(expr=m.a + m.b / 2 + 1e14 * m.y)
    m.c = row(m.u, rule=lambda m, u: m.a + m.b * u + 1e12 * m.y >= pyo.exp(u) * pyo.sin(7 * u))
    return m


def stock_at_its_bound():
    m = begin(x=FREE, z=(None, 1e12))
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = row(m.u, rule=lambda m, u: m.x <= 1e-11 * m.z * (1 + u))
    return m


def switch(size, semi_infinite):
    m = begin(x=POSITIVE)
    m.b = pyo.Var(domain=pyo.Binary)
    m.o = pyo.Objective(expr=m.x - 30 * m.b, sense=pyo.maximize)
    if semi_infinite:
        m.c = row(m.u, rule=lambda m, u: m.x <= size * m.b * (1 + u))
    else:
        m.c = pyo.Constraint(expr=m.x <= size * m.b)
    m.d = row(m.u, rule=lambda m, u: m.x * (1 + u) <= 40)
    return m


def infimum_that_is_not_attained(price):
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var()
    m.o = pyo.Objective(expr=price * m.x)
    m.c = row(pyo.NonNegativeReals, rule=lambda m, u: m.x + u * u * m.y >= 2 * u)
    return m


def hyperbola(price, most):
    m = begin(x=FREE, y=(None, most))
    m.o = pyo.Objective(expr=price * m.x)
    m.c = row(m.u, rule=lambda m, u: (1 - u) ** 2 * m.x + u * u * m.y >= 2 * u * (1 - u))
    return m


def single_point():
    m = begin(x=FREE, y=FREE)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: 4 * u * u * m.x + m.y >= 4 * u)
    m.d = pyo.Constraint(expr=m.x + m.y <= 2)
    return m


def dropped_whole_numbers():
    m = begin(x=(None, 1))
    m.z = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.o = pyo.Objective(expr=m.z)
    m.c = row(m.u, rule=lambda m, u: m.x + m.z * (1 + u) / 1e12 >= 3)
    return m


# A model, and its optimum.
MODELS = {
    "a coefficient of 9e-10": (tiny_coefficient(9e-10), 2.0),
    "a coefficient of 1e-12": (tiny_coefficient(1e-12), 2.0),
    "a tiny share of a large stock": (tiny_share_of_a_large_stock(), 0.9),
    "a dear substitute": (dear_substitute(), 2.0),
    "a reward of 1e-11": (tiny_reward(1e-11), 2.0),
    "a reward of 1e-9": (tiny_reward(1e-9), 2.0),
    "rows that differ by 1e-10": (almost_parallel(1e-10), 2e10),
    "rows that differ by 1e-11": (almost_parallel(1e-11), 2e11),
    "a peak of width 1e-4": (peak_in_no_units(1e-4, False), 1.0),
    "a peak of width 1e-4, whole": (peak_in_no_units(1e-4, True), 1.0),
    "a peak of width 2e-4, whole": (peak_in_no_units(2e-4, True), 1.0),
    "a coefficient of 1e13": (bounded_beside_a_large_coefficient(1e13), 1.0),
    "almost a ray, 1e-11": (almost_a_ray(1e-11), 2e11),
    "almost a ray, 5e-12": (almost_a_ray(5e-12), 4e11),
    "a value of 1e12 beside one of 1e-5": (small_beside_a_large_value(), 5e-5),
    "a penalty of 1e14": (penalty_of_a_million_millions(), 1.44313331),
    "a stock at its bound": (stock_at_its_bound(), 10.0),
    "a switch of 1e9 over the index": (switch(1e9, True), 0.0),
    "a switch of 1e9": (switch(1e9, False), 0.0),
    "an infimum": (infimum_that_is_not_attained(1.0), 0.0),
    "an infimum a million times as dear": (infimum_that_is_not_attained(1e6), 0.0),
    "a hyperbola": (hyperbola(1e6, None), 0.0),
    "a hyperbola with an end": (hyperbola(1e9, 1e9), 1.0),
    "a single point": (single_point(), 1.0),
    "whole numbers that are dropped": (dropped_whole_numbers(), 2e12),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_claimed_is_true(name):
    model, optimum = MODELS[name]
    result = osilp.solve(model, progress=False)
    assert result.status not in ("infeasible", "unbounded")
    close = 1e-6 * (1 + abs(optimum))
    if result.status == "optimal":
        assert result.objective == pytest.approx(optimum, abs=3 * close)
    if result.answer is not None and result.certified:
        low, high = result.bracket
        assert low - close <= optimum <= high + close
        assert result.audit.ordinary_violation <= 1e-6


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e-7, 1e-9, 1e9])
def test_two_free_variables_in_any_unit(scale):
    m = begin(x=FREE, y=FREE)
    m.o = pyo.Objective(expr=m.x + m.y)
    m.c = row(
        m.u,
        rule=lambda m, u: (
            scale * (pyo.sin(5.379923679441424 * u) - 0.86 * 1.001),
            scale * (m.x + m.y * u),
            scale * (pyo.sin(5.379923679441424 * u) + 0.86 * 1.001),
        ),
    )
    result = osilp.solve(m, progress=False)
    assert result.status == "optimal"
    assert result.certified
    assert result.objective == pytest.approx(-1.32437914686, abs=1e-6)


def test_a_counterpart_of_very_different_coefficients():
    m = begin(x=POSITIVE, w=POSITIVE)
    m.o = pyo.Objective(expr=m.x + 1e11 * m.w)
    m.c = row(pyros.BoxSet([(0, 1)]), rule=lambda m, xi: (1 + xi[0]) * m.x + 1e10 * m.w >= 2)
    result = osilp.solve(m, method="counterpart", progress=False)
    if result.certified:
        assert result.objective == pytest.approx(2.0)


# -- rows that were proved wrongly --------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [3, 4, 5])
def test_a_kink_has_no_tangent_plane_by_differences(dimension):
    """At x = y = z the differences of a minimum along the axes are halves, and no tangent plane has such slopes."""
    correlation = -0.9 / (dimension - 1)
    shape = np.full((dimension, dimension), correlation) + np.eye(dimension) * (1 - correlation)
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = row(
        pyros.EllipsoidalSet(np.zeros(dimension), shape.tolist()),
        rule=lambda m, q: (
            m.x + MaxExpression(tuple(q[i] for i in range(dimension))) >= 10 + 0.5 * sum(q[i] for i in range(dimension))
        ),
    )
    result = osilp.solve(m, progress=False)
    worst = np.sqrt(np.linalg.eigvalsh(shape).min()) * np.ones(dimension) / np.sqrt(dimension)
    needed = 10 + 0.5 * worst.sum() - worst.max()
    assert result.objective >= needed - 1e-5
    assert not result.certified or abs(result.objective - needed) <= 1e-5


@pytest.mark.parametrize("options", [{}, {"sample": True}, {"sample": True, "lipschitz": 1}])
def test_a_row_that_is_skipped_where_it_is_tried_is_not_dropped(options):
    m = begin(x=(-10, 10))
    with LoggingIntercept(io.StringIO(), "pyomo"), pytest.raises(DeclarationError) as error:
        m.c = row(m.u, rule=lambda m, u: m.x >= 1 if 0.5 <= u <= 0.7 else pyo.Constraint.Skip, **options)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'c': its rule returns Constraint.Skip wherever it was tried, and asks for the value of "
        "the index before it does, so that it may be a row elsewhere; say where the row holds by where=..., or return "
        "Constraint.Skip before looking at the index."
    )


def test_a_member_that_is_skipped_whatever_the_index_is_left_out():
    m = begin(x=(-10, 10))
    m.o = pyo.Objective(expr=m.x)

    def rule(m, k, u):
        return pyo.Constraint.Skip if k == 1 else m.x >= k * float(u)

    m.c = row([1, 2], m.u, rule=rule, sample=True)
    assert osilp.solve(m, progress=False).objective == pytest.approx(2.0)


def test_a_limit_that_comes_and_goes_contradicts_a_lipschitz_constant():
    m = begin(x=(-10, 10))
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x <= 5 if u < 0.5 else m.x >= u, sample=True, lipschitz=1)
    result = osilp.solve(m, progress=False)
    assert not result.certified
    assert "one has a limit and the other has none" in str(result)


def test_a_row_without_a_limit_where_it_was_called():
    m = begin(x=(-10, 10))
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x >= (1 if abs(u - 0.123456) < 1e-6 else -np.inf), sample=True, lipschitz=1)
    result = osilp.solve(m, progress=False)
    assert not result.certified
    assert "its limits are infinite wherever it was called" in str(result)


def test_a_stretch_without_a_limit_does_not_blur_the_others():
    m = begin(x=(-10, 10))
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = row(m.u, rule=lambda m, u: m.x <= pyo.Expr_if(u <= 0.3, 1e15, pyo.Expr_if(u <= 0.6, -0.1, 1e15)))
    result = osilp.solve(m, progress=False)
    assert result.certified
    assert result.objective == pytest.approx(-0.1, abs=1e-12)


def test_a_peak_over_a_set_is_no_affine_row():
    """Taken for affine by its values at some points, the row of hindsight would be too weak."""
    m = pyo.ConcreteModel()
    m.T = pyo.RangeSet(2)
    m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.o = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    peak = lambda q: q[0] + 5 * pyo.exp(-(((q[0] - 0.3331) / 1e-4) ** 2))  # noqa: E731
    m.c = row(pyros.BoxSet([(0, 1)]), rule=lambda m, q: sum(m.a[t] * peak(q) * m.x[t] for t in m.T) <= 3.0)
    program = osilp.compile_online(m, stages=m.T)
    found = program.solve_offline(method="exchange")
    assert found.objective == pytest.approx(3 / 5.3331, rel=1e-3) or not found.certified


def test_a_sum_that_is_too_long_to_compile():
    m = begin(x=(-10, 10))
    m.o = pyo.Objective(expr=m.x)
    expression = lambda u: sum(pyo.Expr_if(0.0001 * k <= u, 1.0 + k, 0.0) * (1 - u) for k in range(3000))  # noqa: E731
    m.c = row(m.u, rule=lambda m, u: m.x >= expression(u) * 1e-9)
    with pytest.raises(
        ModelError, match=r"is too long to be compiled; write long sums by osilp\.dot, or as several rows"
    ):
        osilp.solve(m, progress=False)


@pytest.mark.parametrize("method", ["exchange", "discretized"])
def test_a_slow_rule_is_not_called_long_after_the_time_limit(method):
    called = []

    def slow(m, u):
        called.append(u)
        time.sleep(0.01)
        return m.x + m.y * u >= np.exp(float(u)) * np.sin(7 * float(u))

    m = begin(x=FREE, y=FREE)
    m.o = pyo.Objective(expr=m.x + 0.5 * m.y)
    m.c = row(m.u, rule=slow, sample=True)
    result = osilp.solve(m, method, time_limit=0.2, progress=False)
    assert result.status == "time_limit"
    # Some thirty in the time, half as many to finish, and those that look at the rule when it is declared and traced.
    assert len(called) < 300


# -- slopes that are not numbers, duals of variables without bounds, sums that nearly cancel ----------


def test_a_slope_that_is_no_number_proves_no_concave_row():
    """0 * inf in the slope of a root: at a kink with equal slopes all around, differences see a maximum."""
    count, shared = 6, -0.16
    shape = np.full((count, count), shared) + np.eye(count) * (1 - shared)
    m = pyo.ConcreteModel()
    m.x, m.sigma = pyo.Var(), pyo.Param(mutable=True, initialize=0.0)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(
        pyros.EllipsoidalSet(np.zeros(count), shape.tolist()),
        rule=lambda m, q: (
            m.x + MaxExpression(tuple(q[i] for i in range(count)))
            >= 10 + 0.5 * sum(q[i] for i in range(count)) + pyo.sqrt(m.sigma * q[0])
        ),
    )
    result = osilp.solve(m, progress=False)
    step = np.sqrt(1 / (np.ones(count) @ np.linalg.solve(shape, np.ones(count))))
    assert not result.certified or result.objective >= 10 + 2 * step - 1e-5


DRIFTS = [
    ([2.86, 4.84], [2.859999999990214, 4.84000000006008], [6287.0, 291908.0]),
    ([12.11, 0.36], [12.109999999938564, 0.3600000000048632], [93740.0, 52941.0]),
    ([80.47, 0.13], [80.46999999457692, 0.1300000000030379], [1125401193.0, 180846639.0]),
    ([25.51, 0.33], [25.51000000079867, 0.3299999999893002], [2673381050.0, 2088291.0]),
]


@pytest.mark.parametrize(("earned", "cost", "most"), DRIFTS)
def test_costs_that_drift_over_a_long_way(earned, cost, most):
    """Two variables without bounds of their own, each worth a little more than it costs, up to a constraint far away."""
    m = begin(t=FREE)
    m.z = pyo.Var([0, 1])
    m.o = pyo.Objective(expr=m.t + sum(cost[i] * m.z[i] for i in (0, 1)))
    m.c = row(m.u, rule=lambda m, u: m.t + sum(earned[i] * m.z[i] for i in (0, 1)) >= 2 + pyo.sin(5 * u))
    m.d = pyo.Constraint([0, 1], rule=lambda m, i: m.z[i] <= most[i] if cost[i] < earned[i] else m.z[i] >= -most[i])
    result = osilp.solve(m, progress=False)
    z = [Fraction(most[i]) if cost[i] < earned[i] else -Fraction(most[i]) for i in (0, 1)]
    t = 3 - sum(Fraction(earned[i]) * z[i] for i in (0, 1))
    reached = float(t + sum(Fraction(cost[i]) * z[i] for i in (0, 1)))
    assert not result.certified or result.bound <= reached + 1e-6 * (1 + abs(reached))


@pytest.mark.parametrize(
    ("small", "large"), [(1e-3, 1e5), (1e-3, 1e9), (1.0, 1e8), (1.0, 1e12), (1e-2, 1e9), (1e-6, 1e10)]
)
def test_an_equality_of_two_rows_with_prices_beyond_rounding(small, large):
    m = begin(x=POSITIVE, w=FREE, v=FREE)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.a = row(m.u, rule=lambda m, u: m.w >= m.x * u)
    m.b = row(m.u, rule=lambda m, u: (1 + u) * m.v <= (1 + u) * m.w)
    m.b2 = row(m.u, rule=lambda m, u: (1 + u) * m.v >= (1 + u) * m.w)
    m.c = row(m.u, rule=lambda m, u: small * m.x + large * m.w - large * m.v <= 1 + u)
    result = osilp.solve(m, progress=False)
    # x = w = v = 1 / small keeps every row exactly.
    assert not result.certified or result.bound >= (1 - 1e-6) / small


@pytest.mark.parametrize("share", [2e-13, 1e-12])
def test_rows_that_nearly_cancel_are_not_infeasible(share):
    m = begin(x=POSITIVE, y=POSITIVE)
    m.o = pyo.Objective(expr=m.y)
    m.c = row(m.u, rule=lambda m, u: 1e6 * m.x - m.y >= u)
    m.d = row(m.u, rule=lambda m, u: m.y - 1e6 * (1 - share) * m.x >= u)
    assert osilp.solve(m, progress=False).status != "infeasible"


@pytest.mark.parametrize("extra", [1e-12, 1e-13, 5e-14, 2e-14, 1e-14])
@pytest.mark.parametrize("low", [0, None])
def test_rows_whose_difference_is_some_last_digits(extra, low):
    m = begin(x=(low, None), y=(low, None))
    m.o = pyo.Objective(expr=m.y)
    m.c = row(m.u, rule=lambda m, u: m.y - m.x >= u)
    m.d = row(m.u, rule=lambda m, u: (1 + extra) * m.x - m.y >= u)
    assert osilp.solve(m, progress=False).status != "infeasible"


@pytest.mark.parametrize("tiny", [2e-9, 1e-9, 1e-10, 1e-12])
def test_an_integer_with_a_tiny_coefficient(tiny):
    m = begin(x=POSITIVE)
    m.k = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.o = pyo.Objective(expr=tiny * m.k + 10 * m.x)
    m.c = row(m.u, rule=lambda m, u: tiny * m.k * (1 + u) + m.x >= 1)
    result = osilp.solve(m, progress=False)
    assert not result.certified or result.bound <= 1.001


@pytest.mark.parametrize("kind", ["linear", "previous", "nearest"])
def test_a_profile_in_where(kind):
    m = begin(x=FREE)
    m.p = osilp.Profile(over=m.u, points=[0, 0.5, 0.8, 1], initialize=[0.0, 1.0, 0.2, 0.7], kind=kind)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x >= u, where=lambda m, u: m.p(u) <= 0.5)
    result = osilp.solve(m, progress=False)
    highest = {"linear": 0.92, "previous": 1.0, "nearest": 0.9}[kind]
    assert result.objective == pytest.approx(highest, abs=1e-6)
    assert result.certified


@pytest.mark.parametrize("name", ["log", "log of a log", "root that falls"])
def test_what_only_infinity_shows_is_not_certified(name):
    rule = {
        "log": lambda u: pyo.log(1 + u),
        "log of a log": lambda u: pyo.log(1 + pyo.log(1 + u)),
        "root that falls": lambda u: -((1 + u) ** -0.01),
    }[name]
    m = pyo.ConcreteModel()
    m.u, m.x = pyo.RangeSet(0, None, 0), pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x >= rule(u))
    result = osilp.solve(m, progress=False)
    assert not result.certified
    assert "it holds up to 1e+60 on its index, which has no end, and beyond nothing is proved" in str(result)


@pytest.mark.parametrize("name", ["falls", "rational", "bounded wave"])
def test_a_tail_that_is_proved(name):
    rule, highest = {
        "falls": (lambda u: pyo.exp(-u), 1.0),
        "rational": (lambda u: 1 / (1 + (u - 2) ** 2), 1.0),
        "bounded wave": (lambda u: pyo.sin(u) / (1 + u), 0.4246078),
    }[name]
    m = pyo.ConcreteModel()
    m.u, m.x = pyo.RangeSet(0, None, 0), pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x >= rule(u))
    result = osilp.solve(m, progress=False)
    assert result.objective == pytest.approx(highest, abs=1e-5)
    assert result.certified
    assert "on the whole index" in str(result)


def test_a_tail_that_is_proved_up_to_a_number_only_is_not_certified():
    m = pyo.ConcreteModel()
    m.u, m.x = pyo.RangeSet(0, None, 0), pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x >= pyo.Expr_if(u >= 1e70, 1, 0) + u * pyo.exp(-u))
    result = osilp.solve(m, progress=False)
    assert not result.certified
    assert "it holds up to 1e+60 on its index, which has no end, and beyond nothing is proved" in str(result)


# -- regions that nothing is known of, limits that are rounding, tails along slanted ways --------------


def of_hours(m, u):
    return 0.2 <= u <= 0.3 or 0.7131 <= u <= 0.71312


def tongue(m, u, v):
    return u <= 0.9 if abs(v - 0.3337) <= 1e-5 else u <= 0.5


@pytest.mark.parametrize(("where", "highest"), [(of_hours, 0.71312), (tongue, 0.8996)], ids=["hours", "tongue"])
def test_a_condition_that_cannot_be_traced_is_no_region(where, highest):
    """A rising row is left from box to box up to the end of the index, which lies outside of the region."""
    m = begin(x=FREE)
    m.v = ContinuousSet(bounds=(0, 1))
    m.o = pyo.Objective(expr=m.x)
    if where is tongue:
        m.c = row(m.u, m.v, rule=lambda m, u, v: m.x >= u - v * 1e-3, where=where)
    else:
        m.c = row(m.u, rule=lambda m, u: m.x >= u, where=where)
    result = osilp.solve(m, progress=False)
    assert not result.certified or result.objective >= highest - 1e-4


@pytest.mark.parametrize("limit", [0.1 + 0.2 - 0.3, 1e-10, 1e-14, 1e-33])
@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
def test_a_limit_that_is_rounding_gives_no_unit(limit, method):
    m = begin(x=(0, 50), w=(3, 10))
    m.z = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, 10))
    m.o = pyo.Objective(expr=m.x + 10 * m.z)
    m.c = row(m.u, rule=lambda m, u: m.x + (1 + u) * m.z >= m.w)
    m.d = pyo.Constraint(expr=m.x >= limit)
    m.e = row(m.u, rule=lambda m, u: m.x * (1 + u) >= limit * (1 + u))
    result = osilp.solve(m, method, progress=False)
    assert result.objective == pytest.approx(3)


@pytest.mark.parametrize("limit", [1e-20, 1e-100])
def test_a_tiny_limit_beside_ordinary_terms(limit):
    m = begin(x=FREE, y=(-5, 5))
    m.o = pyo.Objective(expr=m.x - 0.05 * m.y)
    m.c = row(m.u, rule=lambda m, u: m.x - (1 + u) * m.y >= limit * (1 + u))
    result = osilp.solve(m, progress=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(-4.75)


@pytest.mark.parametrize("rule", [lambda t, v: pyo.log(1 + t * v) / 100, lambda t, v: 1 + 1.4e-8 * pyo.log(1 + t + v)])
def test_a_log_along_a_slanted_way(rule):
    m = begin(x=FREE)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(pyo.NonNegativeReals, m.u, rule=lambda m, t, v: m.x >= rule(t, v))
    assert not osilp.solve(m, progress=False).certified


@pytest.mark.parametrize(("steep", "cost"), [(1e6, 1e-11), (1e9, 1e-8), (1e12, 1e-5)])
def test_a_free_variable_without_a_coefficient_where_the_price_is(steep, cost):
    m = begin(x=FREE, y=FREE)
    m.o = pyo.Objective(expr=m.x + cost * m.y)
    m.c = row(m.u, rule=lambda m, u: m.x - steep * u * m.y >= 1)
    assert not osilp.solve(m, progress=False).certified


def test_rows_that_differ_by_some_roundings_are_not_infeasible():
    m = begin(x=FREE, y=FREE)
    m.o = pyo.Objective(expr=m.x)
    m.c = pyo.Constraint(expr=m.y + m.x >= 1e-6)
    m.d = pyo.Constraint(expr=-m.y - (1 - 7 * 2.0**-53) * m.x >= 1e-6)
    m.e = row(m.u, rule=lambda m, u: m.x >= u)
    assert osilp.solve(m, progress=False).status != "infeasible"


# -- terms that cancel, conditions that rounding decides -------------------------------------------------

LARGE = np.exp(30.0)


def logarithm(argument):
    """The natural logarithm with fifty digits."""
    with decimal.localcontext(prec=50):
        return decimal.Decimal(argument).ln()


CANCELLING = {
    "shift": (lambda u: (u + 1e12) - 1e12, 0.3001, 0.3001),
    "logarithm": (lambda u: 1e10 * (pyo.log(LARGE + u) - 30), 1.0, 1e10 * float(logarithm(LARGE + 1) - 30)),
    "square": (lambda u: (u + 1e6) ** 2 - 1e12 - 2e6 * u, 0.3, 0.09),
    "step at the end": (lambda u: pyo.Expr_if(3 * u >= 0.8999999999999999, (u + 1e12) - 1e12, 0), 0.3, 0.3),
    "steps": (lambda u: pyo.Expr_if(u <= 0.1, (HELD + 1e12) - 1e12, 0), 0.3, 0.3001),
}
HELD = pyo.Param(initialize=0.3001, mutable=True)
HELD.construct()


@pytest.mark.parametrize("name", CANCELLING)
def test_terms_that_cancel_are_not_certified(name):
    """A row is what its formula says, and not what is left of it after its terms were rounded."""
    formula, end, highest = CANCELLING[name]
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, end))
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x >= formula(u))
    result = osilp.solve(m, progress=False)
    proof = result.proof.loc["c"]
    assert not proof["largest"] < highest - result.objective
    assert not result.certified


def test_scenarios_at_which_terms_cancel():
    m = begin(x=FREE, y=(0, 1))
    m.o = pyo.Objective(expr=m.x)
    m.c = row(pyros.DiscreteScenarioSet([(0.3001,), (0.1,)]), rule=lambda m, q: m.x >= (q[0] + 1e12) - 1e12 + 0 * m.y)
    result = osilp.solve(m, progress=False)
    assert result.proof["largest"].iloc[0] >= 0.3001 - result.objective > 0
    assert not result.certified


def test_the_print_says_that_terms_cancel():
    m = begin(x=FREE)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=lambda m, u: m.x >= (0.3001 * u + 1e12) - 1e12)
    text = str(osilp.solve(m, progress=False))
    assert (
        "  proof      none for 'c': rounding hides up to 0.00081 of its size, of its terms or of where its conditions "
        "switch; write it without large numbers that cancel\n" in text
    )
    m.del_component(m.c)
    m.c = row(m.u, rule=exclusive(2, 2.1, strictly=False))
    text = str(osilp.solve(m, progress=False))
    assert (
        "             the bound is not proved: where the prices are, rounding hides what rows are, of their terms or of "
        "where their conditions switch; write them without large numbers that cancel\n" in text
    )


@pytest.mark.parametrize("grid", [None, 20, 64])
@pytest.mark.parametrize("kind", ["half open", "closed", "sloping"])
def test_bookings_that_meet_are_certified(grid, kind):
    """Where one ends and another begins, rounding decides which of them hold; both are what they are beside it."""
    rng = np.random.default_rng(3)
    start, length = rng.uniform(0, 0.9, 60), rng.uniform(0.01, 0.2, 60)
    if grid:
        start, length = np.round(start * grid) / grid, np.maximum(1, np.round(length * grid)) / grid
    m = begin()
    m.T = pyo.RangeSet(0, 59)
    m.start = pyo.Param(m.T, mutable=True, initialize=dict(enumerate(start.tolist())))
    m.length = pyo.Param(m.T, mutable=True, initialize=dict(enumerate(length.tolist())))
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.o = pyo.Objective(expr=sum((1 + t % 7) * m.x[t] for t in m.T), sense=pyo.maximize)

    def use(m, t, u):
        end = m.start[t] + m.length[t]
        if kind == "closed":
            return pyo.Expr_if(pyo.inequality(m.start[t], u, end), 1, 0)
        return pyo.Expr_if(pyo.land(m.start[t] <= u, u < end), 1 + u if kind == "sloping" else 1, 0)

    m.c = row(m.u, rule=lambda m, u: sum(use(m, t, u) * m.x[t] for t in m.T) <= 4)
    assert osilp.solve(m, progress=False).certified


def exclusive(shift, border, strictly):
    """One if u is at most some number, and one if it is larger: the first is computed with a shift."""
    first = pyo.Expr_if
    return lambda m, u: (
        m.x
        >= first(u + shift < border if strictly else u + shift <= border, 1, 0)
        + pyo.Expr_if(u > border - shift - (3e-14 if strictly else 0), 1, 0)
    )


@pytest.mark.parametrize(("shift", "border"), [(100, 100.1), (2, 2.1), (1e6, 1e6 + 0.5 + 2.0**-31)])
def test_conditions_that_both_hold_by_rounding_bound_nothing(shift, border):
    m = begin(x=FREE)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=exclusive(shift, border, strictly=False))
    result = osilp.solve(m, progress=False)
    assert not result.certified or result.bracket[0] <= 1 + 1e-6


def test_conditions_of_which_none_holds_by_rounding_are_not_proved():
    """Thousands of numbers are below the border and above the other one, and none of them is by rounding."""
    m = begin(x=FREE)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(m.u, rule=exclusive(1000, 1000.1, strictly=True))
    at = 1000.1 - 1000 - 1e-14
    assert Fraction(at) + 1000 < Fraction(1000.1)
    assert at > 1000.1 - 1000 - 3e-14
    result = osilp.solve(m, progress=False)
    assert not result.certified or result.objective >= 2 - 1e-6


@pytest.mark.parametrize(("shift", "border"), [(100, 100.1), (2, 2.1)])
def test_a_region_to_which_points_belong_by_rounding_bounds_nothing(shift, border):
    m = begin(x=FREE)
    m.o = pyo.Objective(expr=m.x)
    m.c = row(
        m.u,
        rule=lambda m, u: m.x >= pyo.Expr_if(u > border - shift, 2, 1),
        where=lambda m, u: u + shift <= border,
    )
    result = osilp.solve(m, progress=False)
    assert not result.certified or result.bracket[0] <= 1 + 1e-6


@pytest.mark.parametrize("corner", [False, True])
def test_a_price_on_the_border_of_a_region_is_certified(corner):
    m = begin(x=FREE)
    m.v = ContinuousSet(bounds=(0, 1))
    m.o = pyo.Objective(expr=m.x)
    inside = (
        (lambda m, u, v: pyo.land(3 * u + 3 * v <= 2.1, 7 * u >= 2.1))
        if corner
        else (lambda m, u, v: u**2 + v**2 <= 0.5)
    )
    m.c = row(m.u, m.v, rule=lambda m, u, v: m.x >= u + 2 * v, where=inside)
    result = osilp.solve(m, progress=False)
    assert result.certified
    assert result.objective == pytest.approx(1.1 if corner else np.sqrt(2.5), abs=1e-6)
