"""FunctionVar: decision rules and curves, declared, used in rows, equated, given back and simulated."""

import io
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import (
    BoxSet,
    BudgetSet,
    CardinalitySet,
    DiscreteScenarioSet,
    EllipsoidalSet,
    IntersectionSet,
    PolyhedralSet,
)
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.index.curves.spaces import VectorFunctions
from osilp_pyomo.offline.functions.values import FunctionValue


def printed(component, **how):
    stream = io.StringIO()
    component.pprint(ostream=stream, **how)
    return stream.getvalue()


def two_stage():
    """Stock at 1 now, orders at 3 once the demand in [2, 6] is seen, room for 4.

    The worst case is the demand 6: 4 + 3 * 2 = 10. With s in stock the order max(0, xi - s) is needed at both ends, so
    that an affine one is (6 - s)(xi - 2)/4 if s >= 2: cost s + 3 (6 - s), least at s = 4.
    """
    m = pyo.ConcreteModel()
    m.demand = BoxSet([(2, 6)])
    m.stock = pyo.Var(bounds=(0, 4))
    m.order = osilp.FunctionVar(over=m.demand, bounds=(0, None))
    m.cost = pyo.Var()
    m.total = pyo.Objective(expr=m.cost)

    @m.SemiInfiniteConstraint(m.demand)
    def enough(m, xi):
        return m.stock + m.order(xi) >= xi[0]

    @m.SemiInfiniteConstraint(m.demand)
    def worst(m, xi):
        return m.cost >= m.stock + 3 * m.order(xi)

    return m


def inventory(periods=24, sides=0.2):
    """Production and inventory of Ben-Tal, Goryashko, Guslitzer and Nemirovski (2004), as its balance is written."""
    level = 1000 * (1 + 0.5 * np.sin(np.pi * np.arange(periods) / 12))
    price = np.outer([1, 1.5, 2], 1 + 0.5 * np.sin(np.pi * np.arange(periods) / 12))
    demand = BoxSet([((1 - sides) * each, (1 + sides) * each) for each in level])
    m = pyo.ConcreteModel()
    m.P, m.I = pyo.RangeSet(0, periods - 1), pyo.RangeSet(0, 2)
    m.order = osilp.FunctionVar(m.I, m.P, over=demand, sees=lambda m, i, p: range(p), bounds=(0, 567))
    m.stock = osilp.FunctionVar(m.P, over=demand, sees=lambda m, p: range(p + 1), bounds=(500, 2000))

    @m.SemiInfiniteConstraint(m.P, demand)
    def balance(m, p, xi):
        before = 500 if p == 0 else m.stock[p - 1](xi)
        return m.stock[p](xi) == before + sum(m.order[i, p](xi) for i in m.I) - xi[p]

    @m.SemiInfiniteConstraint(m.I, demand)
    def capacity(m, i, xi):
        return sum(m.order[i, p](xi) for p in m.P) <= 13600 * periods / 24

    m.largest = pyo.Var()
    m.total = pyo.Objective(expr=m.largest)

    @m.SemiInfiniteConstraint(demand)
    def worst(m, xi):
        return m.largest >= sum(price[i, p] * m.order[i, p](xi) for i in m.I for p in m.P)

    return m, demand


def transfer(speed=None, functions=14):
    """A double integrator from rest to rest within a unit of time, as far as it gets with |acceleration| <= 4.

    Half the time at 4, half at -4: distance 1, largest speed 2. With the speed held at s it needs s/4 of the time to
    reach it and as much to stop: distance s (1 - s/4).
    """
    m = pyo.ConcreteModel()
    m.t = ContinuousSet(bounds=(0, 1))
    m.x = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(functions, degree=3))
    m.v = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(functions - 1, degree=2), bounds=(None, speed))
    m.a = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(functions - 2, degree=1), bounds=(-4, 4))
    m.speed = osilp.SemiInfiniteConstraint(m.t, rule=lambda m, t: m.x.derivative(t) == m.v(t))
    m.acceleration = osilp.SemiInfiniteConstraint(m.t, rule=lambda m, t: m.v.derivative(t) == m.a(t))
    m.ends = pyo.ConstraintList()
    for end in (m.x(0) == 0, m.v(0) == 0, m.v(1) == 0):
        m.ends.add(end)
    m.distance = pyo.Objective(expr=m.x(1), sense=pyo.maximize)
    return m


# -- what it looks like ----------------------------------------------------------------------------


def test_it_reads_like_mathematics():
    m = two_stage()
    assert repr(m.order) == ("order(xi) = c[1] + c[xi[0]]*xi[0], 0 <= order(xi) for all xi in BoxSet of dimension 1")
    assert str(m.order) == "order"
    assert repr(m.enough) == "enough: xi[0] <= order(xi) + stock  for all xi in BoxSet of dimension 1"
    assert repr(m.order.limits) == "order.limits: 0 <= order(xi)  for all xi in BoxSet of dimension 1"
    assert printed(m.order) == (
        "order : 1 functions of xi in BoxSet of dimension 1, 2 coefficients\n"
        "    order(xi) = c[1] + c[xi[0]]*xi[0], 0 <= order(xi) for all xi in BoxSet of dimension 1\n"
    )
    t = transfer()
    assert repr(t.speed) == "speed: x'(t) == v(t)  for all t in [0, 1]"
    assert repr(t.a) == "a(t) = sum of 12 functions, BSpline(count=12, degree=1), -4 <= a(t) <= 4 for all t in [0, 1]"


def test_members_are_those_of_its_sets():
    m, _ = inventory(3)
    assert len(m.order) == 9
    assert list(m.order)[:4] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert (2, 1) in m.order
    assert (3, 0) not in m.order
    assert [each.name for each in m.order[1, :]] == ["order[1,0]", "order[1,1]", "order[1,2]"]
    assert list(m.order[1, 2].coefficients) == ["1", "xi[0]", "xi[1]"]
    assert m.order[1, 2].coefficients["xi[1]"] is m.order.coefficients[1, 2, "xi[1]"]
    assert m.order[0, 0] == m.order[0, 0]
    with pytest.raises(KeyError, match="has no member 7; its members are 0, 1, 2"):
        m.stock[7]
    assert {v.name for v in m.component_data_objects(pyo.Var) if v.name.startswith("stock")} == {
        v.name for v in m.stock.coefficients.values()
    }


# -- rules -----------------------------------------------------------------------------------------


def test_a_rule_of_one_number():
    m = two_stage()
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(10)
    rule = result.function(m.order)
    assert repr(rule) == "order(xi) = -1 + 0.5*xi[0]"
    assert rule([6.0]) == pytest.approx(2)
    assert rule(np.array([[2.0], [6.0]])) == pytest.approx([0, 2])
    assert rule(pd.DataFrame({"xi[0]": [4.0]}, index=["a"])).to_dict() == pytest.approx({"a": 1.0})
    assert rule.coefficients.to_dict() == pytest.approx({"1": -1.0, "xi[0]": 0.5})
    assert json.loads(json.dumps(rule.to_dict()))["products"] == [[], [0]]
    assert m.order([6.0])() == pytest.approx(2)


@pytest.mark.long
def test_the_published_inventory_by_its_own_balance():
    m, demand = inventory()
    result = osilp.solve(m)
    assert result.method == "counterpart"
    assert result.certified
    assert result.objective == pytest.approx(44272.827493, abs=1e-4)
    # What is ordered in a period does not react to what is seen later.
    assert list(result.function(m.order[0, 2]).coefficients.index) == ["1", "xi[0]", "xi[1]"]
    duals = result.dual(m.balance[2])
    assert list(duals.index) == ["1", "xi[0]", "xi[1]", "xi[2]"]
    draws = np.random.default_rng(3).uniform(*np.array(demand.bounds).T, size=(50, 24))
    seen = result.simulate(draws)
    assert (seen["cost"] <= result.objective * (1 + 1e-9)).all()
    assert (seen["violation"] <= 1e-9).all()
    # The stock of the last period, by the balance of each period.
    made = seen[[f"order[{i},{p}]" for i in range(3) for p in range(24)]].sum(axis=1)
    assert seen["stock[23]"].to_numpy() == pytest.approx(500 + made.to_numpy() - draws.sum(axis=1))
    price = np.outer([1, 1.5, 2], 1 + 0.5 * np.sin(np.pi * np.arange(24) / 12))
    cost = sum(price[i, p] * seen[f"order[{i},{p}]"] for i in range(3) for p in range(24))
    assert seen["cost"].to_numpy() == pytest.approx(cost.to_numpy())


def test_the_dual_of_a_matched_row_is_the_change_of_the_optimum():
    def optimum(by):
        m, _ = inventory(4)
        m.shift = pyo.Param(mutable=True, initialize=by)
        m.del_component("balance")
        uncertain = m.capacity.continuous_sets[0]

        @m.SemiInfiniteConstraint(m.P, uncertain)
        def balance(m, p, xi):
            before = 500 if p == 0 else m.stock[p - 1](xi)
            return m.stock[p](xi) - before - sum(m.order[i, p](xi) for i in m.I) == m.shift * float(p == 1) - xi[p]

        result = osilp.solve(m)
        return result.objective, result.dual(m.balance[1])["1"]

    (value, dual), (more, _) = optimum(0.0), optimum(1e-3)
    assert (more - value) / 1e-3 == pytest.approx(dual, rel=1e-5)
    assert dual != 0


def vertices_of(body_set, dimension):
    """Extreme points of a polyhedral set, or its scenarios, by the test's own means."""
    if isinstance(body_set, DiscreteScenarioSet):
        return np.array(body_set.scenarios)
    if isinstance(body_set, BoxSet):
        low, high = np.array(body_set.bounds).T
        corners = np.array(np.meshgrid(*[[0, 1]] * dimension)).reshape(dimension, -1).T
        return low + corners * (high - low)
    rows, limits = np.array(body_set.coefficients_mat), np.array(body_set.rhs_vec)
    from itertools import combinations

    found = []
    for chosen in combinations(range(len(rows)), dimension):
        part = rows[list(chosen)]
        if abs(np.linalg.det(part)) > 1e-9:
            point = np.linalg.solve(part, limits[list(chosen)])
            if np.all(rows @ point <= limits + 1e-9):
                found.append(point)
    return np.unique(np.round(found, 9), axis=0)


SIMPLEX = PolyhedralSet(np.vstack([-np.eye(3), np.ones((1, 3)), -np.ones((1, 3))]), [0, 0, 0, 1, -1])


@pytest.mark.parametrize(
    ("uncertain", "hull"),
    [
        (BoxSet([(0, 1), (0, 2), (1, 3)]), 3),
        (BoxSet([(0, 1), (2, 2), (1, 3)]), 2),
        (SIMPLEX, 2),
        (DiscreteScenarioSet([(0.0, 0, 0), (1, 1, 0), (0, 1, 1)]), 2),
        (CardinalitySet([1.0, 1, 1], [1, 1, 1], 2), 3),
        (BudgetSet([[1, 1, 0], [0, 1, 1]], [1, 1.5]), 3),
        (EllipsoidalSet([1, 1, 1], np.diag([1.0, 4, 9])), 3),
        (IntersectionSet(box=BoxSet([(0, 1)] * 3), plane=SIMPLEX), 2),
    ],
)
def test_equal_on_the_set_and_nowhere_else(uncertain, hull):
    """y(xi) == xi[0] + 2 xi[1] fixes y along the affine hull of the set, and nothing more."""
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=uncertain)
    m.same = osilp.SemiInfiniteConstraint(uncertain, rule=lambda m, xi: m.y(xi) == xi[0] + 2 * xi[1])
    m.any = pyo.Objective(expr=m.y([0.3, 0.3, 0.4]) * 0)
    result = osilp.solve(m)
    assert result.status == "optimal"
    rule = result.function(m.y)
    from osilp_pyomo.model.sets import body_of

    points = body_of(uncertain, "test").cloud(50)
    assert rule(points) == pytest.approx(points[:, 0] + 2 * points[:, 1], abs=1e-8)
    assert len(result.dual(m.same)) == 1 + hull
    assert result.certified


def test_what_cannot_be_equal_is_told_as_a_conflict():
    """A rule that sees nothing cannot be what is drawn."""
    uncertain = BoxSet([(0, 1)])
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=uncertain, sees=[])
    m.same = osilp.SemiInfiniteConstraint(uncertain, rule=lambda m, xi: m.y(xi) == xi[0])
    m.any = pyo.Objective(expr=m.y([0.5]))
    result = osilp.solve(m)
    assert result.status == "infeasible"
    assert list(result.conflict["name"]) == ["same (xi[0])"]


def test_quadratic_rules():
    """A rule between two parabolas that touch: only the parabola itself is one."""
    uncertain = BoxSet([(-1, 1)])
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=uncertain, basis="quadratic")
    m.below = osilp.SemiInfiniteConstraint(uncertain, rule=lambda m, xi: m.y(xi) >= 2 * xi[0] ** 2 - 1)
    m.above = osilp.SemiInfiniteConstraint(uncertain, rule=lambda m, xi: m.y(xi) <= 2 * xi[0] ** 2 - 1 + 1e-3)
    m.least = pyo.Objective(expr=m.y([0.5]))
    result = osilp.solve(m)
    assert result.objective == pytest.approx(-0.5, abs=1e-6)
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=uncertain, basis="quadratic")
    m.z = osilp.FunctionVar(over=uncertain)
    m.same = osilp.SemiInfiniteConstraint(uncertain, rule=lambda m, xi: m.y(xi) == xi[0] * m.z(xi) + 3)
    m.fixed = pyo.Constraint(expr=m.z([1.0]) == 2)
    m.also = pyo.Constraint(expr=m.z([0.0]) == 1)
    m.any = pyo.Objective(expr=m.y([0.0]))
    result = osilp.solve(m)
    assert result.certified
    assert repr(result.function(m.y)) == "y(xi) = 3 + xi[0] + xi[0]*xi[0]"


def test_bounds_hold_everywhere_and_follow_params():
    uncertain = BoxSet([(0, 1), (0, 1)])
    m = pyo.ConcreteModel()
    m.most = pyo.Param(mutable=True, initialize=3.0)
    m.J = pyo.Set(initialize=["a", "b", "c"])
    m.y = osilp.FunctionVar(
        m.J,
        over=uncertain,
        sees={"a": [0], "b": [0, 1], "c": []},
        bounds=lambda m, j: (None, m.most) if j != "c" else (0, 2),
        within=pyo.Reals,
    )
    m.gain = pyo.Objective(expr=sum(m.y[j]([1, 1]) for j in m.J), sense=pyo.maximize)
    assert osilp.solve(m).objective == pytest.approx(8)
    m.most = 4.0
    assert osilp.solve(m).objective == pytest.approx(10)
    assert (m.y["c"].coefficients["1"].lb, m.y["c"].coefficients["1"].ub) == (0, 2)
    assert len(m.y.limits) == 2
    m.y.coefficients["a", "1"].fix(1)
    m.y.coefficients["a", "xi[0]"].fix(0)
    assert osilp.solve(m).objective == pytest.approx(7)


def test_fixing_a_rule_to_that_of_an_earlier_result():
    m = two_stage()
    earlier = osilp.solve(m)
    m.order.function.fix(earlier.function(m.order))
    again = osilp.solve(m)
    assert again.objective == pytest.approx(10)
    assert again.function(m.order)([6.0]) == pytest.approx(2)
    with pytest.raises(errors.DataError) as caught:
        m.order.function.fix({"1": 0.0})
    assert str(caught.value) == (
        "FunctionVar 'order': its coefficients are '1', 'xi[0]' (got '1'); fix it to a function of the same basis."
    )


def test_several_vectors_and_vectors_of_numbers():
    cost, demand = BoxSet([(1, 2)]), BoxSet([(0, 1), (0, 1)])
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=(cost, demand), bounds=(0, None))
    m.t = pyo.Var()
    m.o = pyo.Objective(expr=m.t)
    m.enough = osilp.SemiInfiniteConstraint(cost, demand, rule=lambda m, c, d: m.y(c, d) >= d[0] + d[1])
    m.worst = osilp.SemiInfiniteConstraint(cost, demand, rule=lambda m, c, d: m.t >= m.y(c, d))
    result = osilp.solve(m)
    assert result.objective == pytest.approx(2)
    assert result.function(m.y)([1.5], [1.0, 1.0]) == pytest.approx(2)


def test_another_set_is_told():
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=BoxSet([(0, 1)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.fine = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)]), rule=lambda m, xi: m.y(xi) <= xi[0])
    with pytest.warns(errors.OtherSetWarning) as caught:
        m.other = osilp.SemiInfiniteConstraint(BoxSet([(0, 2)]), rule=lambda m, xi: m.y(xi) <= xi[0])
    assert str(caught[0].message) == (
        "FunctionVar 'y': it was declared over a BoxSet and is used over another BoxSet of the same dimension; its "
        "bounds hold on the first, and the row on the second."
    )


# -- curves ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_farthest_transfer_with_a_bound_on_the_speed():
    m = transfer(speed=0.5)
    result = osilp.solve(m)
    assert result.certified
    # 0.4375 but for the knots, between which the acceleration cannot jump.
    assert 0.43 < result.objective <= 0.4375
    v, a, x = (result.function(each) for each in (m.v, m.a, m.x))
    t = np.linspace(0, 1, 1001)
    assert v(t).max() <= 0.5 + 1e-8
    assert x.derivative(t) == pytest.approx(v(t), abs=1e-9)
    assert x.derivative(t, order=2) == pytest.approx(a(t), abs=1e-8)
    assert x(1.0) == pytest.approx(result.objective)
    assert list(result.proof["how"]) == ["enclosure"] * 4
    finer = osilp.solve(transfer(speed=0.5, functions=43))
    assert result.objective < finer.objective <= 0.4375
    assert finer.objective == pytest.approx(0.4375, abs=1e-3)


@pytest.mark.parametrize(
    ("speed", "energy"),
    [
        # a(t) = 6 - 12 t.
        (None, 12.0),
        # Held at V, it accelerates for tau = 1.5 (1 - 1 / V): 8 V^2 / (3 tau).
        (1.2, 15.36),
    ],
)
def test_the_transfer_of_least_energy(speed, energy):
    """From rest to rest over a distance of 1 in a time of 1, with as little of the integral of a^2 as can be."""
    m = transfer(speed=speed, functions=18)
    m.a.limits.deactivate()
    m.distance.deactivate()
    m.there = pyo.Constraint(expr=m.x(1) == 1)
    # The square of straight pieces is a parabola on each: two points of Gauss and Legendre are exact.
    pieces = np.linspace(0, 1, 16)
    middles, half = (pieces[1:] + pieces[:-1]) / 2, (pieces[1] - pieces[0]) / 2
    places = np.concatenate([middles - half / np.sqrt(3), middles + half / np.sqrt(3)])
    m.energy = pyo.Objective(expr=sum(half * m.a(float(each)) ** 2 for each in places))
    result = osilp.solve(m)
    assert result.objective == pytest.approx(energy, rel=1e-7 if speed is None else 2e-3)
    assert result.objective >= energy * (1 - 1e-7)
    assert result.certified
    assert result.function(m.v)(np.linspace(0, 1, 2001)).max() <= (1.5 if speed is None else speed) + 1e-4


@pytest.mark.long
def test_the_least_time_by_bisection():
    """From rest to rest over a distance of 1 with |a| <= 4 takes a time of 1: the distance grows as its square."""
    low, high = 0.5, 2.0
    while high - low > 1e-3:
        time = (low + high) / 2
        m = transfer(functions=20)
        # In units of the time: x'' = time^2 a.
        m.a.limits.deactivate()
        m.limit = osilp.SemiInfiniteConstraint(m.t, rule=lambda m, t, s=time: (-4 * s**2, m.a(t), 4 * s**2))
        low, high = (low, time) if osilp.solve(m, load=False).objective >= 1 else (time, high)
    # An acceleration that cannot jump takes a little longer.
    assert 1.0 <= high <= 1.005


@pytest.mark.parametrize(
    "basis",
    [
        osilp.BSpline(8),
        osilp.BSpline(9, degree=2),
        osilp.Hat(9),
        osilp.Bernstein(6),
        osilp.RBF(8),
        osilp.Indicator(12),
        osilp.Functions(lambda u: u, lambda u: np.exp(u)),
    ],
)
def test_any_basis_bounds_a_curve_from_above(basis):
    """The least curve above exp on average."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.f = osilp.FunctionVar(over=m.u, basis=basis)
    m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.f(u) >= pyo.exp(u))
    places = (np.arange(50) + 0.5) / 50
    m.o = pyo.Objective(expr=sum(m.f(each) for each in places) / 50)
    result = osilp.solve(m)
    assert result.certified
    f = result.function(m.f)
    u = np.linspace(0, 1, 4001)
    assert (f(u) - np.exp(u)).min() >= -1e-7
    assert result.objective == pytest.approx(f(places).mean())
    assert result.objective >= np.exp(places).mean() - 1e-9


@pytest.mark.long
def test_curves_of_two_coordinates():
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 2))
    m.f = osilp.FunctionVar(over=(m.u, m.v), basis=osilp.Tensor(osilp.BSpline(4, degree=2), osilp.Hat(3)))
    m.above = osilp.SemiInfiniteConstraint(m.u, m.v, rule=lambda m, u, v: m.f(u, v) >= u * (2 - v))
    m.o = pyo.Objective(expr=sum(m.f(a, b) for a in (0, 0.5, 1) for b in (0, 1, 2)))
    result = osilp.solve(m)
    # u (2 - v) lies in the space: nothing less is above it.
    assert result.objective == pytest.approx(sum(a * (2 - b) for a in (0, 0.5, 1) for b in (0, 1, 2)), abs=1e-7)
    assert result.function(m.f)(0.25, 0.5) == pytest.approx(0.375, abs=1e-6)
    m.slope = pyo.Constraint(expr=m.f.derivative(0.5, 1.0, order=(1, 0)) >= 1.5)
    assert osilp.solve(m).objective > result.objective + 1e-3


def test_different_spaces_are_refused_and_collocation_is_said():
    m = pyo.ConcreteModel()
    m.t = ContinuousSet(bounds=(0, 1))
    m.x = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(12))
    m.v = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(12))
    m.o = pyo.Objective(expr=m.x(1))
    m.start = pyo.Constraint(expr=m.x(0) == 1)
    m.speed = osilp.SemiInfiniteConstraint(m.t, rule=lambda m, t: m.x.derivative(t) == m.v(t))
    with pytest.raises(errors.ModelError) as caught:
        osilp.solve(m)
    assert str(caught.value) == (
        "SemiInfiniteConstraint 'speed': its two sides lie in different spaces of functions (dimensions: v 12, x' 11, "
        "together with the data 20), so that '==' at every point would leave nothing, or next to nothing, to decide. "
        "Give 'v' the basis osilp.BSpline(11, degree=2), whose functions are the derivatives of those of 'x'; or "
        "equality='collocate' on the constraint lets it hold at as many points as there are functions, and tells what "
        "is left between them."
    )
    m.del_component("speed")
    m.decay = osilp.SemiInfiniteConstraint(m.t, rule=lambda m, t: m.x.derivative(t) == -m.x(t), equality="collocate")
    result = osilp.solve(m)
    assert not result.certified
    assert result.objective == pytest.approx(np.exp(-1), abs=1e-6)
    line = result.proof.loc["decay"]
    assert line["how"] == "collocated"
    t = np.linspace(0, 1, 2001)
    x = result.function(m.x)
    assert line["largest"] == pytest.approx(np.abs(x.derivative(t) + x(t)).max(), rel=0.05)
    assert "'decay' holds at single points only, missed by at most" in str(result)
    assert len(result.dual(m.decay)) == 11


def test_an_equation_that_nothing_satisfies():
    """x u == 1 for all u: the right-hand side is no multiple of u."""
    for rule in (lambda m, u: m.x * u == 1, lambda m, u: (m.x * u, 1)):
        m = pyo.ConcreteModel()
        m.u, m.x = ContinuousSet(bounds=(0, 1)), pyo.Var()
        m.o = pyo.Objective(expr=m.x)
        m.row = osilp.SemiInfiniteConstraint(m.u, rule=rule)
        with pytest.raises(errors.ModelError, match="holds for no choice of its variables at every point"):
            osilp.solve(m)


def test_equations_without_a_curve():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.a, m.b = pyo.Var(), pyo.Var()
    m.o = pyo.Objective(expr=m.a)
    m.same = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.a + m.b * u == 3 - 2 * u)
    result = osilp.solve(m)
    assert result.certified
    assert (m.a.value, m.b.value) == pytest.approx((3, -2))
    m.del_component("same")
    m.same = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.a + m.b * u == pyo.exp(u))
    with pytest.raises(errors.ModelError) as caught:
        osilp.solve(m)
    assert str(caught.value) == (
        "SemiInfiniteConstraint 'same': '==' holds for no choice of its variables at every point of u in [0, 1], because "
        "its right-hand side is no combination of what they are multiplied by; use two rows with a tolerance, or more "
        "functions."
    )


# -- a citizen of Pyomo ------------------------------------------------------------------------------


def enough(m, xi):
    return m.stock + m.order(xi) >= xi[0]


def steady(m, u):
    return m.f.derivative(u) <= m.stock


def slope(m, u):
    return m.f.derivative(u) == m.g(u)


def picklable():
    """A rule and two curves, with rules that pickle knows; the steepest slope and the stock are to be least."""
    m = pyo.ConcreteModel()
    m.demand, m.u = BoxSet([(2, 6)]), ContinuousSet(bounds=(0, 1))
    m.stock = pyo.Var(bounds=(0, 8))
    m.order = osilp.FunctionVar(over=m.demand, bounds=lambda m: (0, 1), sees=lambda m: [0])
    m.f = osilp.FunctionVar(over=m.u, basis=osilp.BSpline(6))
    m.g = osilp.FunctionVar(over=m.u, basis=osilp.BSpline(5, degree=2))
    m.enough = osilp.SemiInfiniteConstraint(m.demand, rule=enough)
    m.steady = osilp.SemiInfiniteConstraint(m.u, rule=steady)
    m.slope = osilp.SemiInfiniteConstraint(m.u, rule=slope)
    m.rise = pyo.Constraint(expr=m.f(1) - m.f(0) >= 7)
    m.start = pyo.Constraint(expr=m.f(0) == 1)
    m.least = pyo.Objective(expr=m.stock + m.g(0.5))
    return m


@pytest.mark.parametrize("copied", [lambda m: m.clone(), lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_models_of_their_own(copied):
    m = picklable()
    other = copied(m)
    assert osilp.solve(other).objective == pytest.approx(osilp.solve(m).objective)
    for mine, theirs in zip(m.component_data_objects(pyo.Var), other.component_data_objects(pyo.Var), strict=True):
        assert mine is not theirs
        assert mine.name == theirs.name
    other.extra = osilp.SemiInfiniteConstraint(other.demand, rule=lambda m, xi: m.order(xi) + m.stock <= 5)
    assert osilp.solve(other).status == "infeasible"
    assert osilp.solve(m).status == "optimal"


def test_abstract_models_and_blocks():
    a = pyo.AbstractModel()
    a.n = pyo.Param()
    a.P = pyo.RangeSet(0, a.n)
    a.b = pyo.Block()
    a.b.y = osilp.FunctionVar(a.P, over=lambda m: BoxSet([(0, 1)] * 3), sees=lambda m, p: range(p), bounds=(0, 1))
    a.o = pyo.Objective(rule=lambda m: sum(m.b.y[p]([1, 1, 1]) for p in m.P), sense=pyo.maximize)
    m = a.create_instance({None: {"n": {None: 2}}})
    assert osilp.solve(m).objective == pytest.approx(3)
    assert m.b.y[2].name == "b.y[2]"
    assert [len(each.coefficients) for each in m.b.y.values()] == [1, 2, 3]


def test_no_solver_takes_it_without_its_bounds():
    m = two_stage()
    with pytest.raises(errors.UntransformedModelError):
        pyo.SolverFactory("appsi_highs").solve(m)
    with pytest.raises(errors.DeclarationError) as caught:
        m.order.deactivate()
    assert str(caught.value) == (
        "FunctionVar 'order': deactivated, it would drop its bounds, and rows would still use it; fix its coefficients, "
        "order.coefficients.fix(...), or deactivate order.limits alone."
    )


def test_transformed_it_is_solved_by_any_solver():
    m = transfer(speed=0.5)
    exact = osilp.solve(m).objective
    rows = pyo.TransformationFactory("osilp.discretize").create_using(m, grid=osilp.Midpoint(400))
    pyo.SolverFactory("appsi_highs").solve(rows)
    assert rows.x(1)() == pytest.approx(exact, abs=1e-3)
    assert rows.x(1)() >= exact - 1e-9
    projected = osilp.solve(m, method="projected")
    assert projected.objective >= exact - 1e-9


def test_it_is_refused_online():
    m = two_stage()
    m.T = pyo.RangeSet(3)
    m.z = pyo.Var(m.T, bounds=(0, 1))
    with pytest.raises(errors.ModelError) as caught:
        osilp.compile_online(m, stages=m.T)
    assert str(caught.value) == (
        "compile_online: the model holds the FunctionVar 'order', a decision that is made once, for every point of its "
        "index, while online one is made for each arrival; solve the model offline, osilp.solve(model), and apply the "
        "rule it gives to what arrives, result.function(...), or write arrivals as stages."
    )


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    m = two_stage()
    figure = osilp.solve(m).function(m.order).plot()
    assert figure.axes[0].get_title() == "order(xi) = -1 + 0.5*xi[0]"
    t = transfer()
    figure = osilp.solve(t).function(t.v).plot()
    assert figure.axes[0].get_xlabel() == "t"


# -- refusals ----------------------------------------------------------------------------------------

U = ContinuousSet(bounds=(0, 1))
BOX = BoxSet([(0, 1), (0, 1)])


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (
            {},
            "FunctionVar: say what it is a function of, by over=model.u or an uncertainty set of PyROS; a decision that "
            "is a number is an ordinary Var.",
        ),
        (
            {"over": BOX, "within": pyo.Integers},
            "FunctionVar: within=Integers asks for a function with whole values, which is no combination of functions; "
            "decide whole numbers before the index is seen, by an ordinary Var.",
        ),
        (
            {"over": BOX, "within": 3},
            "FunctionVar: within= must be a set of real numbers (got int).",
        ),
        (
            {"over": BOX, "basis": "cubic"},
            "FunctionVar 'y': over an uncertainty set basis= must be one of 'constant', 'affine', 'quadratic' (got "
            "'cubic').",
        ),
        (
            {"over": BOX, "sees": [2]},
            "FunctionVar 'y': sees= gives 2 for None; entries of its uncertain vector are the whole numbers 0 to 1.",
        ),
        (
            {"over": BOX, "sees": 1},
            "FunctionVar 'y': sees= must give entries of the uncertain vector, such as range(p) (got 1).",
        ),
        (
            {"over": BOX, "bounds": 3},
            "FunctionVar 'y': bounds= must be a pair (lower, upper), with None for a bound that is not there (got 3).",
        ),
        (
            {"over": BOX, "bounds": (2, 1)},
            "FunctionVar 'y': its lower bound 2 is above its upper bound 1.",
        ),
        (
            {"over": "u"},
            "FunctionVar 'y': over= must be a ContinuousSet, RangeSet(a, b, 0) or an uncertainty set of PyROS (got str).",
        ),
        (
            {"over": pyo.RangeSet(0, None, 0), "basis": osilp.BSpline(5)},
            "FunctionVar 'y': its index 'u1' is unbounded, and functions of a basis need an interval; give it bounds.",
        ),
        (
            {"over": pyo.RangeSet(0, 1, 0), "basis": 5},
            "FunctionVar 'y': over a continuous set basis= must be a basis such as osilp.BSpline(10) (got 5).",
        ),
        (
            {"over": pyo.RangeSet(0, 1, 0), "basis": osilp.Dirac([0.5])},
            "'y': its functions cannot be those of " + repr(osilp.Dirac([0.5])) + "; use BSpline, Bernstein, Hat, "
            "Indicator, RBF, Functions, or a Tensor of them.",
        ),
        (
            {"over": pyo.RangeSet(0, 1, 0), "sees": [0]},
            "FunctionVar 'y': sees= says which entries of an uncertain vector a rule may use; a curve sees its point.",
        ),
        (
            {"over": (pyo.RangeSet(0, 1, 0), BOX)},
            "FunctionVar 'y': over= mixes an uncertainty set with an interval; declare one rule for each of some points "
            "of the interval, FunctionVar(points, over=uncertainty_set), and write what holds between them.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(how, text):
    m = pyo.ConcreteModel()
    with pytest.raises(errors.OsilpError) as caught:
        m.y = osilp.FunctionVar(**how)
    assert str(caught.value) == text
    assert m.component("y") is None


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda m: m.y(0.5), "FunctionVar 'y': it is a function of a vector of dimension 2 (got 1 entries)."),
        (lambda m: m.y([1, 2], 3), "FunctionVar 'y': it is a function of xi, 1 argument (got 2)."),
        (
            lambda m: m.y([m.x, 1]),
            "FunctionVar 'y': a function at a point that is itself a decision (x) is not linear in the decisions; give it "
            "numbers, or the index of a constraint.",
        ),
        (lambda m: m.y.derivative([1, 2]), "FunctionVar 'y': a rule over an uncertain vector has no derivative here; it "
         "has curves."),
        (lambda m: m.y.function + 1, "FunctionVar 'y': it is a function, not a number; say where, as in y(xi)."),
        (lambda m: m.f(np.array([0.1, 0.2])), "FunctionVar 'f': it takes one point of the index (got an array of shape "
         "(2,)); write one row for each point, or evaluate the function of a result, result.function(...)."),
        (lambda m: m.f.derivative(0.5, order=-1), "FunctionVar 'f': the order of a derivative must be a whole number for "
         "each of its 1 coordinates (got -1)."),
        (lambda m: m.f(1.5), "FunctionVar 'f': asked for its value at u = 1.5, outside of [0, 1], on which it is declared."),
        (lambda m: m.s.derivative(0.5), "'s': its derivative of order 1 does not exist, because its functions jump; give "
         "it a basis of a higher degree, such as BSpline(count, degree=2)."),
        (lambda m: m.p(1), "FunctionVar 'p': it has one function for each member of its index; choose one, such as "
         "p[1](xi)."),
    ],
)  # fmt: skip
def test_wrong_uses_are_told(use, text):
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.u = ContinuousSet(bounds=(0, 1))
    m.y = osilp.FunctionVar(over=BOX)
    m.f = osilp.FunctionVar(over=m.u, basis=osilp.BSpline(5))
    m.s = osilp.FunctionVar(over=m.u, basis=osilp.Indicator(5))
    m.p = osilp.FunctionVar([1, 2], over=BOX)
    with pytest.raises(errors.OsilpError) as caught:
        use(m)
    assert str(caught.value) == text


@pytest.mark.parametrize("bounds", [(None, None), (0, None)])
def test_what_is_decided_at_once_costs_the_same_for_every_draw(bounds):
    """A stock at 2 beside a worst case: at a draw only the worst case is less."""
    m = two_stage()
    m.total.deactivate()
    m.spent = pyo.Var(bounds=bounds)
    m.both = pyo.Objective(expr=2 * m.stock + m.spent)
    m.later = osilp.SemiInfiniteConstraint(m.demand, rule=lambda m, xi: m.spent >= 3 * m.order(xi))
    result = osilp.solve(m)
    seen = result.simulate([[2.0], [6.0]])
    stock, order = m.stock.value, result.function(m.order)
    later = [3 * order([2.0]), 3 * order([6.0])] if bounds[0] is None else [m.spent.value] * 2
    assert seen["cost"].to_numpy() == pytest.approx([2 * stock + each for each in later])
    assert (seen["stock"] == stock).all()


def test_wrong_draws_are_told():
    result = osilp.solve(two_stage())
    for draws, text in (
        (pd.DataFrame({"a": [1.0], "b": [2.0]}), "result.simulate: its vector has the entries xi[0], 1 in all, and the "
         "frame has 2 columns; name them so, or give one column per entry in their order."),
        (pd.DataFrame({"xi[0]": [1.0, np.nan]}), "result.simulate: row 1 of the frame of vectors holds no finite number."),
        ([1.0, 2.0], "result.simulate: draws must have one vector per row (got an array of shape (2,))."),
        (pd.DataFrame({"xi[0]": ["a"]}), "result.simulate: the frame of vectors must hold numbers (could not convert "
         "string to float: 'a')."),
    ):  # fmt: skip
        with pytest.raises(errors.DataError) as caught:
            result.simulate(draws)
        assert str(caught.value) == text
    with pytest.raises(errors.ModelError) as caught:
        result.function(two_stage().stock)
    assert str(caught.value) == (
        "result.function: expected a FunctionVar or one of its members (got ScalarVar); variables that are numbers are "
        "in result.values."
    )


def test_a_rule_takes_entries_by_their_names():
    m = pyo.ConcreteModel()
    over = BoxSet([(0, 10), (5, 6)])
    m.w = osilp.FunctionVar(over=over, bounds=(0, None))
    m.cost = pyo.Var()
    m.least = pyo.Objective(expr=m.cost)
    m.enough = osilp.SemiInfiniteConstraint(over, rule=lambda m, xi: m.w(xi) == xi[0] + 3 * xi[1])
    m.worst = osilp.SemiInfiniteConstraint(over, rule=lambda m, xi: m.cost >= m.w(xi))
    rule = osilp.solve(m).function(m.w)
    turned = {"xi[1]": 5.5, "xi[0]": 1.0}
    for given in ([1.0, 5.5], turned, pd.Series(turned), {1: 5.5, 0: 1.0}, pd.Series([1.0, 5.5])):
        assert rule(given) == pytest.approx(17.5)
    assert rule(pd.DataFrame([turned]))[0] == pytest.approx(17.5)
    for given, text in [
        ("ab", "'w': it is a function of a vector of dimension 2, numbers in a list, an array, a dict, a Series or the "
         "rows of a frame (could not convert string to float: 'ab')."),
        ({"xi[0]": 1.0, "other": 2.0}, "'w': its vector has the entries xi[0], xi[1], 2 in all, and the frame has no "
         "xi[1]; name them so, or give one column per entry in their order."),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["xi[0]", "xi[1]", "xi[1]"]), "'w': the frame of vectors has two "
         "columns of one name; give one for each entry."),
    ]:  # fmt: skip
        with pytest.raises(errors.DataError) as caught:
            rule(given)
        assert str(caught.value) == text


@pytest.mark.parametrize("basis", [osilp.BSpline(6), osilp.Hat(4), osilp.RBF(5), osilp.Bernstein(4)])
def test_a_curve_is_not_continued_beyond_its_ends(basis):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.f = osilp.FunctionVar(over=m.u, basis=basis, bounds=(0, 5))
    with pytest.raises(errors.DeclarationError) as caught:
        m.f(2)
    assert str(caught.value) == (
        "FunctionVar 'f': asked for its value at u = 2, outside of [0, 1], on which it is declared."
    )
    m.most = pyo.Objective(expr=m.f(1), sense=pyo.maximize)
    curve = osilp.solve(m).function(m.f)
    assert curve(1.0) == pytest.approx(5)
    with pytest.raises(errors.DomainError) as caught:
        curve(np.array([0.5, -0.25]))
    assert str(caught.value) == "'f': asked for its value at u = -0.25, outside of [0, 1], on which it is declared."


def test_one_term_that_changes_nothing_is_told_in_the_singular():
    rule = FunctionValue("w", VectorFunctions.affine(("xi[0]",), [0]), np.array([5.0, 1e-12]), np.ones(1))
    assert str(rule) == "w(xi) = 5  (1 term below 1e-07 of the largest left out)"
