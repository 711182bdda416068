"""worst_case: the worst value of an expression, against numbers by hand."""

import cloudpickle
import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet, DiscreteScenarioSet, EllipsoidalSet
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import DeclarationError, OptionError

PRICES = BoxSet([(0.9, 1.1), (0.7, 1.3)])


def shares(*names):
    m = pyo.ConcreteModel()
    m.x = pyo.Var(names or ("a", "b"), bounds=(0, 1))
    m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
    return m


def cost(m, price):
    return price[0] * m.x["a"] + price[1] * m.x["b"]


def test_the_largest_cost_and_the_smallest_reward():
    m = shares()
    m.cost = pyo.Objective(expr=osilp.worst_case(m, PRICES, cost))
    assert osilp.solve(m).objective == pytest.approx(1.1, abs=1e-9)
    assert m.x["a"].value == pytest.approx(1.0)
    m = shares()
    m.reward = pyo.Objective(expr=osilp.worst_case(m, PRICES, cost, sense=pyo.maximize), sense=pyo.maximize)
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(0.9, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_variable_and_the_row_that_one_would_write(seed):
    rng = np.random.default_rng(seed)
    centre, turn = rng.uniform(0.5, 1.5, 3), rng.normal(size=(3, 3))
    over = EllipsoidalSet(centre, 0.01 * turn @ turn.T + 0.001 * np.eye(3))
    names, fixed = ("a", "b", "c"), rng.uniform(0, 0.2, 3)

    def spent(m, xi):
        return sum(xi[k] * m.x[name] for k, name in enumerate(names)) + m.x["a"] ** 2

    short, long = shares(*names), shares(*names)
    known = osilp.dot(fixed, short.x)
    short.cost = pyo.Objective(expr=known + osilp.worst_case(short, over, spent))
    long.t = pyo.Var()
    long.cost = pyo.Objective(expr=osilp.dot(fixed, long.x) + long.t)
    long.spent = osilp.SemiInfiniteConstraint(over, rule=lambda m, xi: spent(m, xi) <= long.t)
    assert osilp.solve(short).objective == pytest.approx(osilp.solve(long).objective, abs=1e-8)


def test_in_a_row_and_over_scenarios():
    m = shares()
    worst = osilp.worst_case(m, DiscreteScenarioSet([(1.0, 3.0), (2.0, 1.0)]), cost, name="dear")
    m.kept = pyo.Constraint(expr=worst <= 1.5)
    m.most = pyo.Objective(expr=m.x["a"], sense=pyo.maximize)
    result = osilp.solve(m)
    # 2 a + (1 - a) <= 1.5, and a + 3 (1 - a) <= 1.5 asks for a >= .75
    assert result.status == "infeasible"
    m.kept.deactivate()
    m.kept_above = pyo.Constraint(expr=worst <= 1.8)
    assert osilp.solve(m).objective == pytest.approx(0.8)
    assert worst.name == "dear.value"


def test_over_a_continuous_index_and_a_set_of_groups():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.c = pyo.Var([0, 1])
    m.off = pyo.Objective(
        expr=osilp.worst_case(m, (["over", "under"], m.u), lambda m, side, u: (
            m.c[0] + m.c[1] * u - pyo.exp(u) if side == "over" else pyo.exp(u) - m.c[0] - m.c[1] * u
        ))
    )  # fmt: skip
    slope = np.e - 1
    # The best line is parallel to the chord, half way between it and the tangent.
    assert osilp.solve(m).objective == pytest.approx((1 - slope + slope * np.log(slope)) / 2, abs=1e-7)


def test_names_clones_and_pickles():
    m = shares()
    m.cost = pyo.Objective(expr=osilp.worst_case(m, PRICES, cost))
    assert str(m.worst_case.rows) == (
        "worst_case.rows: price[0]*x[a] + price[1]*x[b] <= worst_case.worst  for all price in BoxSet of dimension 2"
    )
    for other in (m.clone(), cloudpickle.loads(cloudpickle.dumps(m))):
        other.x["a"].fix(0.5)
        assert osilp.solve(other).objective == pytest.approx(1.2)
        assert m.x["a"].value is None
    assert osilp.solve(m).used_by == {"worst_case": ("cost",)}


def test_what_is_refused_leaves_nothing_behind():
    m = shares()
    refused = {
        "worst_case: sense must be pyo.minimize or pyo.maximize (got 'largest').": {"sense": "largest"},
        "the worst case cannot be named 'x': the model has a component of that name.": {"name": "x"},
        "worst_case: its rule gives a relation; return the expression whose worst value is meant, such as a cost, without "
        "<= or >=.": {"rule": lambda m, xi: xi[0] * m.x["a"] <= 1},
        "worst_case: it needs a function of the model and the index, such as lambda m, xi: xi[0] * m.x (got "
        "LinearExpression).": {"rule": m.x["a"] + m.x["b"]},
        "worst_case: its rule must give one expression, such as a cost (got NoneType).": {"rule": lambda m, xi: None},
        "worst_case: its rule must give one expression, such as a cost (got list).": {"rule": lambda m, xi: [xi[0]]},
    }
    for why, options in refused.items():
        with pytest.raises(OptionError) as caught:
            osilp.worst_case(m, PRICES, **{"rule": cost, **options})
        assert str(caught.value) == why
    with pytest.raises(DeclarationError) as caught:
        osilp.worst_case(m, ["a"], lambda m, name: m.x[name])
    assert "needs a continuous index" in str(caught.value)
    with pytest.raises(DeclarationError) as caught:
        osilp.worst_case(m, PRICES, lambda m: m.x["a"])
    assert str(caught.value) == (
        "SemiInfiniteConstraint 'worst_case.rows': its rule is called with 2 arguments, the model and its index, and takes "
        "(m) (too many positional arguments); write it as a function of all of them."
    )
    with pytest.raises(OptionError) as caught:
        osilp.worst_case(m.x, PRICES, cost)
    assert str(caught.value) == "the worst case needs a model or Block to be written on (got IndexedVar)."
    assert not list(m.component_objects(pyo.Block, descend_into=False))
