"""Models of strangers that were answered wrongly, or ended in somebody else's traceback."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet
from pyomo.dae import ContinuousSet, Integral

import osilp_pyomo as osilp
from osilp_pyomo import errors


def base():
    """One variable and an index."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    return m


# -- integers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_integers_with_bounds_that_are_no_whole_numbers(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    cost, matrix = rng.uniform(0, 1, count), rng.uniform(0, 1, (3, count)) ** 3
    upper, limits = rng.uniform(0.5, 2.9, count), rng.uniform(0.5, 2, 3)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(count), domain=pyo.Integers, bounds=lambda m, i: (-0.5, float(upper[i])))
    m.o = pyo.Objective(expr=osilp.dot(cost, m.x), sense=pyo.maximize)
    m.rows = pyo.ConstraintList()
    for row, limit in zip(matrix, limits, strict=True):
        m.rows.add(osilp.dot(row, m.x) <= limit)
    m.s = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: osilp.dot(u * np.ones(count), m.x) <= 4)
    points = itertools.product(*(range(int(np.floor(each)) + 1) for each in upper))
    best = max(cost @ x for x in map(np.array, points) if np.all(matrix @ x <= limits + 1e-9) and x.sum() <= 4)
    for method in ("exchange", "discretized"):
        assert osilp.solve(m, method=method).objective == pytest.approx(best, abs=1e-7)


def test_no_whole_number_between_two_bounds_is_infeasible():
    m = base()
    m.k = pyo.Var(domain=pyo.Integers, bounds=(0.2, 0.8))
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + m.k * u >= 0)
    assert osilp.solve(m).status == "infeasible"


# -- prices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Param", "Expression", "fixed Var", "condition"])
def test_a_price_has_the_sign_of_the_right_hand_side_as_written(kind):
    m = base()
    m.p = pyo.Param(initialize=2.0, mutable=True)
    m.e = pyo.Expression(expr=2.0)
    m.f = pyo.Var(initialize=2.0)
    m.f.fix()

    def rule(m, u):
        factors = {"Param": m.p, "Expression": m.e, "fixed Var": m.f, "condition": pyo.Expr_if(u <= 0.5, 1, 2)}
        return m.x >= factors[kind] * u

    m.c = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(2.0)
    assert result.price.total == pytest.approx(1.0)


# -- what is refused ---------------------------------------------------------------------------------


def test_an_integral_over_a_set_that_is_not_discretized():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.a = pyo.Var(range(3))
    m.area = Integral(m.u, wrt=m.u, rule=lambda m, u: m.a[0] + m.a[1] * u + m.a[2] * u**2)
    m.o = pyo.Objective(expr=m.area)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.a[0] + m.a[1] * u + m.a[2] * u**2 >= pyo.exp(u))
    with pytest.raises(errors.ModelError) as caught:
        osilp.solve(m)
    assert str(caught.value) == (
        "Integral 'area': the continuous set 'u' is not discretized, so that the integral would be a trapezoid over its "
        "two ends; discretize it with pyomo.dae first, or write the integral as a number."
    )


def test_points_of_an_index_cannot_depend_on_a_decision():
    m = base()
    m.x.setlb(0)
    m.x.set_value(0.5)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u**2, where=lambda m, u: u <= m.x)
    with pytest.raises(errors.ModelError) as caught:
        osilp.solve(m)
    assert str(caught.value).startswith("SemiInfiniteConstraint 'c': where= holds the variable 'x' (")
    assert str(caught.value).endswith("; which points of the index count may depend on data, not on decisions.")


def test_integrals_over_points_of_the_users_and_unused_ones_stay():
    m = base()
    m.t = ContinuousSet(initialize=np.linspace(0, 1, 101).tolist())
    m.area = Integral(m.t, wrt=m.t, rule=lambda m, t: t**2 * m.x)
    m.unused = Integral(m.u, wrt=m.u, rule=lambda m, u: u * m.x)
    m.del_component(m.o)
    m.o = pyo.Objective(expr=m.x + m.area)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    assert osilp.solve(m).objective == pytest.approx(1.33335)
    m.b = pyo.Block()
    m.b.t = ContinuousSet(bounds=(0, 1))
    m.b.y = pyo.Var()
    m.b.area = Integral(m.b.t, wrt=m.b.t, rule=lambda b, t: b.y * t)
    m.b.row = pyo.Constraint(expr=m.b.area >= 1)
    m.b.deactivate()
    assert osilp.solve(m).objective == pytest.approx(1.33335)


def test_points_of_an_index_may_depend_on_what_is_fixed():
    m = base()
    m.f = pyo.Var(initialize=0.5)
    m.f.fix()
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u**2, where=lambda m, u: u <= m.f)
    assert osilp.solve(m).objective == pytest.approx(0.25)


# -- declarations ------------------------------------------------------------------------------------


def test_an_interval_of_an_abstract_model():
    a = pyo.AbstractModel()
    a.hi = pyo.Param()
    a.v = pyo.RangeSet(0, a.hi, 0)
    a.x = pyo.Var()
    a.o = pyo.Objective(expr=a.x)
    a.c = osilp.SemiInfiniteConstraint(a.v, rule=lambda m, v: m.x >= 2 * v)
    m = a.create_instance({None: {"hi": {None: 3}}})
    assert osilp.solve(m).objective == pytest.approx(6.0)


@pytest.mark.parametrize("by_param", [True, False])
def test_limits_that_cross_make_a_model_infeasible(by_param):
    m = base()
    m.p = pyo.Param(initialize=0.0, mutable=True)
    moved = m.p if by_param else 0.0
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (u + moved, m.x, 0.5 + moved))
    assert osilp.solve(m).status == "infeasible"
    rows = pyo.TransformationFactory("osilp.discretize").create_using(m, grid=[0.0, 1.0])
    solver = pyo.SolverFactory("appsi_highs")
    found = solver.solve(rows, load_solutions=False)
    assert found.solver.termination_condition != pyo.TerminationCondition.optimal


# -- rows that have changed, and rows with jumps ------------------------------------------------------


def test_data_of_many_families_are_all_old_or_all_new():
    data = dict.fromkeys(range(2000), 1.0)
    m = pyo.ConcreteModel()
    m.S = pyo.RangeSet(0, 1999)
    m.x = pyo.Var(m.S)
    m.o = pyo.Objective(expr=sum(m.x[i] for i in m.S))
    m.c = osilp.SemiInfiniteConstraint(m.S, BoxSet([(0, 1)]), rule=lambda m, i, xi: m.x[i] >= data[i] * xi[0])
    assert osilp.solve(m).objective == pytest.approx(2000)
    data.update(dict.fromkeys(data, 2.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert osilp.solve(m).objective == pytest.approx(4000)
    assert [str(each.message) for each in caught] == [
        "SemiInfiniteConstraint 'c': its rule gives other rows now than when it was declared, in 2000 of 2000 families, "
        "and the rows of now are used. It reads data that has changed, such as a loop's variable: bind it by "
        "rule=lambda m, u, i=i: ..., or use a mutable Param."
    ]


@pytest.mark.long
def test_switches_of_many_columns_are_seen_as_before():
    count = 1800
    places = np.linspace(0.01, 0.98, count) + 1e-4 / 3
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(count), bounds=(0, 2))
    m.o = pyo.Objective(expr=osilp.dot(np.ones(count), m.x))

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        inside = np.where(u >= places, 1.0, 0.0) * np.where(u <= places + 1e-6, 1.0, 0.0)
        return osilp.dot(inside, m.x) >= inside.sum()

    assert osilp.solve(m).objective == pytest.approx(count)


@pytest.mark.parametrize(
    "narrow",
    [
        lambda u: pyo.Expr_if(u > 0.3, 2, 0) * pyo.Expr_if(u < 0.30001, 1, 0),
        lambda u: pyo.Expr_if(u >= 0.3, 2, 0) * pyo.Expr_if(u < 0.30001, 1, 0),
        lambda u: pyo.Expr_if(pyo.inequality(0.3, u, 0.3 + 1e-7), 2, 0),
    ],
)
def test_open_slots_between_strict_comparisons_are_seen(narrow):
    m = base()
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= narrow(u))
    assert osilp.solve(m).objective == pytest.approx(2.0)
