"""The scenario approach: numbers against their definition, guarantees tried out, and a model solved three ways."""

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BoxSet
from scipy.special import comb
from scipy.stats import binom

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, dro, errors, scenario
from osilp_pyomo.index.domain import Domain


@pytest.mark.parametrize(("violation", "confidence", "decisions"), [(0.05, 0.999, 10), (0.01, 0.9, 3), (0.3, 0.5, 1)])
def test_the_number_needed_is_the_smallest(violation, confidence, decisions):
    count = scenario.scenarios_needed(violation, confidence, decisions)
    assert binom.cdf(decisions - 1, count, violation) <= 1 - confidence
    assert binom.cdf(decisions - 1, count - 1, violation) > 1 - confidence


@pytest.mark.parametrize(("count", "binding"), [(30, 0), (40, 3), (60, 10)])
def test_the_bound_solves_its_equation(count, binding):
    t = 1 - scenario.violation_bound(count, binding, 0.99)
    left = 0.01 / (count + 1) * sum(comb(m, binding) * t ** (m - binding) for m in range(binding, count + 1))
    assert left == pytest.approx(comb(count, binding) * t ** (count - binding), rel=1e-9)
    assert 0 < t < 1


def test_fewer_binding_draws_prove_more():
    bounds = [scenario.violation_bound(200, k, 0.999) for k in (0, 2, 5, 50, 199, 200)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == 1.0


def interval_model():
    """max x with x xi <= 1, xi uniform on [1, 2]: the answer is 1 / max of the draws."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 10))
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = SemiInfiniteConstraint(BoxSet([(1, 2)]), rule=lambda m, xi: xi[0] * m.x <= 1)
    return m


@pytest.mark.long
def test_the_guarantee_holds_as_often_as_it_says():
    """P(violation > 0.1) <= 0.05 for one decision: measured over 200 samples, where the violation is known exactly."""
    count = scenario.scenarios_needed(0.1, 0.95, 1)
    m = interval_model()
    failures = 0
    for seed in range(200):
        result = osilp.solve(m, method="discretized", grid=scenario.Scenarios(count, seed=seed), load=False)
        violated = 2 - 1 / result.objective  # P(xi > 1 / x) on [1, 2]
        failures += violated > 0.1
        assert scenario.binding_scenarios(result) == 1
    # With probability 5 % each, more than 20 of 200 happen once in a thousand times.
    assert failures <= 20


def test_robust_robust_in_distribution_and_sampled_on_one_model():
    """One portfolio three ways: the sampled answer earns most, the robust one least, each as its rows demand."""

    def portfolio():
        m = pyo.ConcreteModel()
        m.x = pyo.Var([0, 1, 2], bounds=(0, 1))
        m.t = pyo.Var(bounds=(-10, 10))
        m.all = pyo.Constraint(expr=sum(m.x[j] for j in range(3)) == 1)
        return m

    returns, moves = np.array([1.05, 1.1, 1.2]), np.array([0.0, 0.03, 0.2])
    ball = AxisAlignedEllipsoidalSet([0.0] * 3, [1.0] * 3)

    def worth(m, xi):
        return sum((returns[j] + moves[j] * xi[j]) * m.x[j] for j in range(3))

    m = portfolio()
    m.o = pyo.Objective(expr=m.t, sense=pyo.maximize)
    m.worst = SemiInfiniteConstraint(ball, rule=lambda m, xi: worth(m, xi) >= m.t)
    robust = osilp.solve(m)
    sampled = osilp.solve(m, method="discretized", grid=scenario.Scenarios(400, seed=1))
    n = portfolio()
    known = dro.Moments(ball, [(lambda xi, j=j: xi[j], 0.0) for j in range(3)])
    n.o = pyo.Objective(expr=dro.worst_case_expectation(n, lambda m, xi: -worth(m, xi), known))
    expected = osilp.solve(n)
    assert robust.objective < sampled.objective < -expected.objective
    # With the mean known, the worst expectation is that of the mean.
    assert -expected.objective == pytest.approx(1.2, abs=1e-7)
    assert 1 <= scenario.binding_scenarios(sampled) <= 4
    assert scenario.violation_bound(400, scenario.binding_scenarios(sampled), 0.99) < 0.05


def test_uniform_draws_lie_in_the_set():
    laid = scenario.Scenarios(50, seed=3).on(Domain.box(u=(0, 1), v=(0, 2)))
    assert laid.points.shape == (50, 2)
    again = scenario.Scenarios(50, seed=3).on(Domain.box(u=(0, 1), v=(0, 2)))
    np.testing.assert_array_equal(laid.points, again.points)


@pytest.mark.parametrize(
    ("make", "kind", "why"),
    [
        (
            lambda: scenario.scenarios_needed(1.5, 0.9, 3),
            errors.OptionError,
            "violation must be a probability between 0 and 1 (got 1.5).",
        ),
        (
            lambda: scenario.scenarios_needed(0.1, 0.9, 0),
            errors.OptionError,
            "decisions must be a whole number >= 1 (got 0).",
        ),
        (
            lambda: scenario.Scenarios(5, lambda rng, count: np.ones((count, 2))).on(Domain.box(u=(0, 1))),
            errors.GridError,
            "Scenarios(5, draw=<lambda>): draw(rng, count) must give 5 rows of 1 numbers in u in [0, 1] (got shape (5, 2)).",
        ),
        (
            lambda: scenario.Scenarios(5, lambda rng, count: np.full(count, 2.0)).on(Domain.box(u=(0, 1))),
            errors.GridError,
            "Scenarios(5, draw=<lambda>): draw(rng, count) must give 5 rows of 1 numbers in u in [0, 1] (got shape (5,), with points "
            "outside).",
        ),
        (
            lambda: scenario.Scenarios(5).on(Domain.box(u=(0, np.inf))),
            errors.GridError,
            "Scenarios(5) on u in [0, inf): nothing is uniform on an unbounded set; give draw=...",
        ),
    ],
)
def test_refusals(make, kind, why):
    with pytest.raises(kind) as error:
        make()
    assert str(error.value) == why
