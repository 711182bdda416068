"""Models of strangers that were answered wrongly, or ended in somebody else's traceback."""

from __future__ import annotations

import io
import itertools
import warnings

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.common.log import LoggingIntercept
from pyomo.contrib.pyros import (
    AxisAlignedEllipsoidalSet,
    BoxSet,
    CardinalitySet,
    IntersectionSet,
    PolyhedralSet,
)
from pyomo.dae import ContinuousSet, Integral

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.demo import demo_model
from osilp_pyomo.errors import DeclarationError, OptionError


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
    assert osilp.solve(m).objective == pytest.approx(1.726279776, abs=1e-9)


def test_points_of_an_index_cannot_depend_on_a_decision():
    m = base()
    m.x.setlb(0)
    m.x.set_value(0.5)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u**2, where=lambda m, u: u <= m.x)
    with pytest.raises(errors.ModelError) as caught:
        osilp.solve(m)
    assert str(caught.value).startswith("SemiInfiniteConstraint 'c': where= holds the variable 'x' (")
    assert str(caught.value).endswith("; which points of the index count may depend on data, not on decisions.")


def test_integrals_over_points_of_the_users_are_exact_and_unused_ones_stay():
    m = base()
    m.t = ContinuousSet(initialize=np.linspace(0, 1, 101).tolist())
    m.area = Integral(m.t, wrt=m.t, rule=lambda m, t: t**2 * m.x)
    m.unused = Integral(m.u, wrt=m.u, rule=lambda m, u: u * m.x)
    m.del_component(m.o)
    m.o = pyo.Objective(expr=m.x + m.area)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    assert osilp.solve(m).objective == pytest.approx(4 / 3, rel=1e-9)
    m.b = pyo.Block()
    m.b.t = ContinuousSet(bounds=(0, 1))
    m.b.y = pyo.Var()
    m.b.area = Integral(m.b.t, wrt=m.b.t, rule=lambda b, t: b.y * t)
    m.b.row = pyo.Constraint(expr=m.b.area >= 1)
    m.b.deactivate()
    assert osilp.solve(m).objective == pytest.approx(4 / 3, rel=1e-9)


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


# -- statuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another row"])
def test_a_limit_that_is_rounding_of_data_is_zero(method, beside):
    """0.3 - (0.1 + 0.2) is -5.6e-17."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(bounds=(0, None)), pyo.Var()
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.supply, m.need = pyo.Param(initialize=0.3, mutable=True), pyo.Param(initialize=0.1 + 0.2, mutable=True)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (1 + u) * m.x <= m.supply - m.need)
    if beside:
        m.row = pyo.Constraint(expr=m.x + m.y <= 20)
    result = osilp.solve(m, method=method)
    assert (result.status, result.objective) == ("optimal", 0)


def test_a_small_limit_that_is_none_of_rounding_stays():
    m = base()
    m.x.setlb(0)
    m.supply = pyo.Param(initialize=2e-12, mutable=True)
    m.o.sense = pyo.maximize
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (1 + u) * m.x <= m.supply)
    assert osilp.solve(m).objective == pytest.approx(1e-12, rel=1e-6, abs=0)


def test_what_no_rows_contradict_is_not_called_infeasible():
    """x0 x1 >= 1, so that the optimum is 1e7."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var([0, 1])
    m.o = pyo.Objective(expr=m.x[1])
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: u**2 * m.x[1] - 2 * u + m.x[0] >= 0)
    m.b = pyo.Constraint(expr=m.x[0] <= 1e-7)
    result = osilp.solve(m)
    assert result.status == "undecided" or result.objective == pytest.approx(1e7, rel=1e-3)
    if result.status == "undecided":
        found = pyo.SolverFactory("osilp").solve(m, load_solutions=False)
        assert found.termination_condition.name == "unknown"


def test_a_row_that_is_called_at_points_proves_no_ray():
    m = base()
    m.o.sense = pyo.maximize
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u, sample=True)
    assert osilp.solve(m).status == "undecided"
    m.del_component(m.c)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    assert osilp.solve(m).status == "unbounded"


def facility(sites, customers, seed):
    """Robust facility location with affine flows, what is sent being what is asked for by two rows."""
    rng = np.random.default_rng(seed)
    fixed, cost = rng.uniform(20, 60, sites), rng.uniform(1, 10, (sites, customers))
    nominal = rng.uniform(5, 15, customers)
    demand = CardinalitySet(origin=nominal, positive_deviation=0.3 * nominal, gamma=2)
    m = pyo.ConcreteModel()
    m.I, m.J = pyo.RangeSet(0, sites - 1), pyo.RangeSet(0, customers - 1)
    m.open = pyo.Var(m.I, domain=pyo.Binary)
    m.y, m.slope, m.t = pyo.Var(m.I, m.J), pyo.Var(m.I, m.J), pyo.Var()

    def flow(i, j, xi):
        return m.y[i, j] + m.slope[i, j] * xi[j]

    def sent(j, xi):
        return sum(flow(i, j, xi) for i in m.I)

    m.o = pyo.Objective(expr=sum(fixed[i] * m.open[i] for i in m.I) + m.t)
    m.cost = osilp.SemiInfiniteConstraint(
        demand, rule=lambda m, xi: sum(cost[i, j] * flow(i, j, xi) for i in m.I for j in m.J) <= m.t
    )
    m.least = osilp.SemiInfiniteConstraint(m.J, demand, rule=lambda m, j, xi: sent(j, xi) >= xi[j])
    m.most = osilp.SemiInfiniteConstraint(m.J, demand, rule=lambda m, j, xi: sent(j, xi) <= xi[j])
    m.room = osilp.SemiInfiniteConstraint(
        m.I, demand, rule=lambda m, i, xi: sum(flow(i, j, xi) for j in m.J) <= 60 * m.open[i]
    )
    m.sense = osilp.SemiInfiniteConstraint(m.I, m.J, demand, rule=lambda m, i, j, xi: flow(i, j, xi) >= 0)
    return m


@pytest.mark.parametrize("size", [(3, 3), (4, 5), (5, 8)])
def test_a_robust_facility_is_solved_and_not_called_inaccurate(size):
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.AccuracyWarning)
        exchange = osilp.solve(facility(*size, seed=sum(size)), progress=False)
        counterpart = osilp.solve(facility(*size, seed=sum(size)), method="counterpart", progress=False)
    assert (exchange.status, counterpart.status) == ("optimal", "optimal")
    assert exchange.objective == pytest.approx(counterpart.objective, rel=1e-7)


@pytest.mark.parametrize("dimension", [10, 12, 16])
def test_a_simplex_cut_by_a_ball(dimension):
    """The centre of the ball lies in both; the worst case is its mean plus a radius times a deviation."""
    rows = np.vstack([np.ones(dimension), -np.ones(dimension), -np.eye(dimension)])
    simplex = PolyhedralSet(rows, np.concatenate([[1, -1], np.zeros(dimension)]))
    radius = 0.5 / dimension
    ball = AxisAlignedEllipsoidalSet(np.full(dimension, 1 / dimension), np.full(dimension, radius))
    loss = np.random.default_rng(dimension).normal(size=dimension)
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = osilp.SemiInfiniteConstraint(
        IntersectionSet(simplex=simplex, ball=ball),
        rule=lambda m, xi: m.x >= sum(float(loss[k]) * xi[k] for k in range(dimension)),
    )
    result = osilp.solve(m, progress=False)
    worst = loss.mean() + radius * np.linalg.norm(loss - loss.mean())
    assert result.objective == pytest.approx(worst, abs=1e-8)


# -- limits --------------------------------------------------------------------------------------------


def test_an_integer_program_at_its_limit_has_an_incumbent_and_a_bound():
    """Market splits are hard to solve, and every choice is feasible."""
    rng = np.random.default_rng(0)
    rows, columns = 6, 50
    matrix = rng.integers(0, 100, (rows, columns))
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(columns), domain=pyo.Binary)
    m.short, m.over = pyo.Var(range(rows), bounds=(0, None)), pyo.Var(range(rows), bounds=(0, None))
    m.o = pyo.Objective(expr=sum(m.short[i] + m.over[i] for i in m.short))
    m.split = pyo.Constraint(
        range(rows),
        rule=lambda m, i: (
            sum(int(matrix[i, k]) * m.x[k] for k in m.x) + m.short[i] - m.over[i] == int(matrix[i].sum() // 2)
        ),
    )
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(u * m.x[k] for k in m.x) <= columns)
    result = osilp.solve(m, time_limit=1.0, progress=False)
    assert result.status == "time_limit"
    assert result.values is not None
    assert np.isfinite(result.objective)
    assert result.bound <= result.objective


def test_a_closed_bracket_is_optimal_at_the_limit():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(6))
    m.area = pyo.Objective(expr=sum(m.x[k] / (k + 1) for k in m.x))
    m.above = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.x[k] * u**k for k in m.x) >= pyo.exp(u) * pyo.sin(7 * u)
    )
    whole = osilp.solve(m)
    ended = [osilp.solve(m, iteration_limit=k) for k in range(1, len(whole.log) + 1)]
    for result in ended:
        closed = abs(result.objective - result.bound) <= 1e-9 * (1 + abs(result.objective))
        assert result.status == "optimal" or not closed or result.audit.violation > 0
    assert any(result.status == "optimal" for result in ended)


# -- the first hour ---------------------------------------------------------------------------------------


def test_a_param_over_the_index_is_answered_by_naming_profile():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.p = pyo.Param(m.u, initialize=lambda m, u: u)
    with LoggingIntercept(io.StringIO(), "pyomo"), pytest.raises(DeclarationError) as error:
        m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= m.p[u])
    assert str(error.value) == (
        "SemiInfiniteConstraint 'c': the Param 'p' is indexed by the continuous index, of which it holds a few members "
        "only; give a function of the index as osilp.Profile(over=..., points=..., initialize=...), and write it as "
        "m.profile(u)."
    )


def test_numbers_of_points_and_functions_and_names_of_stages():
    m = demo_model(arrivals=20)
    one = osilp.compile_online(m, stages="T", grid=50, basis=10)
    two = osilp.compile_online(m, stages=m.T, grid=osilp.Midpoint(50), basis=osilp.Hat(10))
    assert one.fingerprint == two.fingerprint
    assert osilp.solve(m, "projected", grid=50, basis=10, load=False).objective == pytest.approx(
        osilp.solve(m, "projected", grid=osilp.Midpoint(50), basis=osilp.Hat(10), load=False).objective
    )
    with pytest.raises(OptionError) as error:
        osilp.compile_online(m, stages="S")
    assert str(error.value) == "compile_online: stages='S': the model has no Set of this name."
