"""A model solved again and again against the same model solved anew, whatever is changed in between; and sweeps."""

import copy
import pickle
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.contrib.pyros import BoxSet, CardinalitySet, EllipsoidalSet
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.model.kept import KeptModel


def many_kinds():
    """A model with something of everything that can be changed."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.S = pyo.RangeSet(4), pyo.Set(initialize=[1, 2, 3])
    m.a = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.3 + 0.1 * t)
    m.p, m.low, m.cut = (pyo.Param(mutable=True, initialize=value) for value in (2.0, 0.0, 0.7))
    m.given = pyo.Param(initialize=1.5)
    m.sparse = pyo.Param(m.T, mutable=True, default=1.0)
    m.x, m.y = pyo.Var(m.T, bounds=(m.low, 3)), pyo.Var(bounds=(0, 1))
    m.curve = osilp.Profile(over=m.u, points=[0, 0.5, 1], initialize=[1, 2, 1])
    m.curves = osilp.Profile(m.S, over=m.u, points=[0, 1], initialize={1: [1, 2], 2: [2, 1], 3: [1, 1]})
    m.part = pyo.Expression(expr=m.x[1] + m.p)
    m.array = np.array([1.0, 2.0, 3.0, 4.0])
    m.gain = pyo.Objective(expr=sum(m.a[t] * m.x[t] for t in m.T) + 0.01 * m.y, sense=pyo.maximize)
    m.other = pyo.Objective(expr=m.x[1] + m.x[2])
    m.other.deactivate()
    m.sum = pyo.Constraint(expr=m.x[1] + m.x[2] <= m.p + m.given)
    m.between = pyo.Constraint(expr=(m.low, m.x[3] - m.y, m.p))
    m.listed = pyo.ConstraintList()
    m.listed.add(m.x[4] + m.y <= 2.5)
    m.b = pyo.Block()
    m.b.v, m.b.p = pyo.Var(bounds=(0, 1)), pyo.Param(mutable=True, initialize=1.0)
    m.b.row = pyo.Constraint(expr=m.b.v + m.x[1] <= 2)

    @m.SemiInfiniteConstraint(m.u, where=lambda m, u: u <= m.cut)
    def used(m, u):
        terms = sum((1 + u * m.a[t]) * m.x[t] for t in m.T)
        return terms + m.part * u <= m.p * (2 + pyo.sin(3 * u)) + m.curve(u)

    @m.SemiInfiniteConstraint(m.S, m.u)
    def each(m, s, u):
        return m.x[s] * m.curves[s](u) + m.y * u <= m.p + 1

    @m.SemiInfiniteConstraint(m.u)
    def dots(m, u):
        return osilp.dot(m.a, m.x) * (1 + u) + osilp.dot(m.array * u, m.x) <= 6 * m.sparse[2] * m.b.p

    @m.SemiInfiniteConstraint(m.u)
    def reads_value(m, u):
        return m.x[1] * pyo.value(m.p) * u + m.x[2] <= 4

    @m.SemiInfiniteConstraint(m.u)
    def reads_curve(m, u):
        return m.x[1] * u + m.x[4] <= 0.5 + m.curve(0.5)

    @m.SemiInfiniteConstraint(m.u)
    def reads_bound(m, u):
        return m.x[3] * m.x[2].ub * u <= 2

    for name in ("reads_value", "reads_curve", "reads_bound"):
        m.component(name).deactivate()
    return m


def redeclare(m, name, component):
    m.del_component(name)
    m.add_component(name, component)


# What is done, by its name: ways to change a model between two solves.
CHANGES = {
    "a member of a Param": lambda m: m.a.__setitem__(2, 0.9),
    "a Param": lambda m: m.p.set_value(1.2),
    "a Param of a bound": lambda m: m.low.set_value(0.1),
    "a Param in where=": lambda m: m.cut.set_value(0.2),
    "a member that had the default": lambda m: m.sparse.__setitem__(2, 0.5),
    "a Param on a block": lambda m: m.b.p.set_value(0.4),
    "a Param that is zero": lambda m: m.p.set_value(0.0),
    "a Param that makes it infeasible": lambda m: m.p.set_value(-50.0),
    "a Param that is no number": lambda m: m.p.set_value(float("nan")),
    "a Param without end": lambda m: m.p.set_value(float("inf")),
    "a Param without members": lambda m: m.a.clear(),
    "an upper bound": lambda m: m.x[1].setub(0.2),
    "a lower bound": lambda m: m.x[3].setlb(0.5),
    "no upper bound": lambda m: m.y.setub(None),
    "a fixed variable": lambda m: m.x[1].fix(0.3),
    "another value of a fixed one": lambda m: (m.x[1].fix(0.3), m.x[1].set_value(0.1)),
    "unfixed again": lambda m: (m.x[1].fix(0.3), m.x[1].unfix()),
    "all fixed": lambda m: m.x.fix(0.2),
    "a variable of a block fixed": lambda m: m.b.v.fix(0.5),
    "a row that is not active": lambda m: m.sum.deactivate(),
    "a family that is not active": lambda m: m.used.deactivate(),
    "a member that is not active": lambda m: m.each[2].deactivate(),
    "a block that is not active": lambda m: m.b.deactivate(),
    "a rule that reads a value": lambda m: m.reads_value.activate(),
    "a rule that reads a curve at a point": lambda m: m.reads_curve.activate(),
    "a rule that reads a bound": lambda m: m.reads_bound.activate(),
    "the other objective": lambda m: (m.gain.deactivate(), m.other.activate()),
    "two objectives": lambda m: m.other.activate(),
    "no objective": lambda m: m.gain.deactivate(),
    "the sense": lambda m: setattr(m.gain, "sense", pyo.minimize),
    "the objective's expression": lambda m: m.gain.set_value(m.x[1]),
    "a new row": lambda m: setattr(m, "more", pyo.Constraint(expr=m.x[2] <= 0.4)),
    "a row of a list": lambda m: m.listed.add(m.x[4] <= 0.1),
    "another expression of a row": lambda m: m.sum.set_value(m.x[1] <= 0.1),
    "a row that is gone": lambda m: m.del_component(m.sum),
    "a row declared anew": lambda m: redeclare(m, "sum", pyo.Constraint(expr=m.x[1] <= 0.25)),
    "a new family": lambda m: m.add_component(
        "more", osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[2] * u <= 0.3)
    ),
    "a family declared anew": lambda m: redeclare(
        m, "dots", osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[2] * u <= 0.3)
    ),
    "a Param declared anew": lambda m: redeclare(m, "given", pyo.Param(initialize=0.5)),
    "a variable that is gone": lambda m: m.del_component(m.y),
    "another member of a set": lambda m: m.S.add(4),
    "a member less": lambda m: m.S.discard(3),
    "a point of the index": lambda m: m.u.add(0.37),
    "what an Expression holds": lambda m: m.part.set_value(m.x[1] * 2 + m.p),
    "an Expression that is a number": lambda m: m.part.set_value(3.0),
    "a Profile": lambda m: m.curve.set_value([0.5, 0.1, 0.5]),
    "a Profile that is a function": lambda m: m.curve.set_value(lambda u: 0.2 + u),
    "a member of a Profile": lambda m: m.curves[1].set_value([3, 3]),
    "an array in place": lambda m: m.array.__imul__(3),
    "a whole variable": lambda m: setattr(m.x[1], "domain", pyo.Integers),
    "values of variables": lambda m: [variable.set_value(0.123) for variable in m.x.values()],
    "a Suffix": lambda m: setattr(m, "dual", pyo.Suffix(direction=pyo.Suffix.IMPORT)),
    "a convex row": lambda m: setattr(m, "more", pyo.Constraint(expr=m.x[1] ** 2 + m.x[2] ** 2 <= 1)),
    "a component of another kind": lambda m: setattr(m, "more", pyo.SOSConstraint(var=m.x, sos=1)),
    "an integral": lambda m: m.gain.set_value(m.gain.expr + osilp.integral(m.u, lambda u: m.x[1] * u)),
}


def outcome(solve):
    """What a solve says, or how it fails; and what it warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = solve()
        except (errors.OsilpError, ValueError) as error:
            return type(error).__name__, str(error)
    kinds = sorted({warning.category.__name__ for warning in told})
    return result.status, result.objective, result.bound, result.certified, kinds


def check(solver, what):
    """Compare a solve with one of the same model by a new solver."""
    again, anew = outcome(solver.solve), outcome(lambda: osilp.solve(solver.model))
    assert again[0] == anew[0], (what, again, anew)
    if len(anew) == 2:
        assert again == anew, what
        return
    assert again[1:3] == pytest.approx(anew[1:3], rel=1e-6, abs=1e-6, nan_ok=True), what
    assert again[3:] == anew[3:], what


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found(what):
    m = many_kinds()
    solver = osilp.PersistentSolver(m)
    solver.solve()
    CHANGES[what](m)
    check(solver, what)
    m.p = 1.7
    check(solver, f"{what}, then a Param")


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(sorted(CHANGES)), min_size=2, max_size=4))
def test_sequences_of_changes(names):
    m = many_kinds()
    solver = osilp.PersistentSolver(m)
    for place, name in enumerate(names):
        try:
            CHANGES[name](m)
        except (RuntimeError, AttributeError, KeyError, ValueError):
            # Pyomo refuses some on top of others.
            continue
        check(solver, names[: place + 1])


def robust():
    """Rows over an ellipsoid and a cardinality set, whose numbers hold Params, and a product of Params."""
    rng = np.random.default_rng(5)
    nominal, factors = rng.uniform(size=(3, 5)), 0.2 * rng.normal(size=(3, 3, 5))
    m = pyo.ConcreteModel()
    m.x, m.I = pyo.Var(range(5), bounds=(0, 1)), pyo.RangeSet(0, 2)
    m.limit = pyo.Param(m.I, mutable=True, initialize=lambda m, i: 2 + 0.2 * i)
    m.q = pyo.Param(mutable=True, initialize=0.5)
    m.gain = pyo.Objective(expr=sum((1 + 0.1 * j) * m.x[j] for j in range(5)), sense=pyo.maximize)
    m.ball = EllipsoidalSet([0] * 3, np.eye(3).tolist(), 1.0)
    m.few = CardinalitySet([0] * 3, [1] * 3, 1.0)

    @m.SemiInfiniteConstraint(m.I, m.ball)
    def row(m, i, xi):
        parts = (
            (nominal[i, j] + m.q * sum(factors[i, k, j] * xi[k] for k in range(3)) / m.limit[i]) * m.x[j]
            for j in range(5)
        )
        return sum(parts) <= m.limit[i]

    @m.SemiInfiniteConstraint(m.few)
    def dots(m, xi):
        return m.q * osilp.dot(nominal[0] + xi @ factors[1], m.x) + m.q * m.x[0] * xi[0] <= m.limit[0]

    @m.SemiInfiniteConstraint(m.few)
    def ranged(m, xi):
        return (-1, sum(m.x[j] * (1 - 0.1 * xi[1] * m.q) for j in range(5)), m.limit[1] + xi[2] * m.q)

    return m


ROBUST_CHANGES = {
    "limit": lambda m, number: m.limit.__setitem__(1, 1 + 2 * number),
    "factor": lambda m, number: m.q.set_value(number),
    "radius": lambda m, number: setattr(m.ball, "scale", 0.2 + number),
    "shape": lambda m, number: setattr(m.ball, "shape_matrix", ((0.5 + number) * np.eye(3)).tolist()),
    "gamma": lambda m, number: setattr(m.few, "gamma", 3 * number),
    "deviation": lambda m, number: setattr(m.few, "positive_deviation", [0.5 + number] * 3),
    "fixed": lambda m, number: m.x[2].unfix() if m.x[2].fixed else m.x[2].fix(number / 2),
    "bound": lambda m, number: m.x[3].setub(0.5 + number),
    "active": lambda m, number: m.row[0].activate() if not m.row[0].active else m.row[0].deactivate(),
}


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(ROBUST_CHANGES)), st.floats(0.01, 1)), min_size=1, max_size=5))
def test_robust_models(changes):
    m = robust()
    solver = osilp.PersistentSolver(m)
    solver.solve()
    for name, number in changes:
        ROBUST_CHANGES[name](m, number)
        check(solver, changes)


def inventory():
    """Orders that react to demand: equations over a box, decision rules, a worst cost."""
    m = pyo.ConcreteModel()
    m.P, m.demand = pyo.RangeSet(0, 2), BoxSet([(1, 3)] * 3)
    m.cost = pyo.Param(m.P, mutable=True, initialize=lambda m, p: 1 + 0.5 * p)
    m.most = pyo.Param(mutable=True, initialize=6.0)
    m.order = osilp.FunctionVar(m.P, over=m.demand, sees=lambda m, p: range(p), bounds=(0, 10))
    m.stock = osilp.FunctionVar(m.P, over=m.demand, sees=lambda m, p: range(p + 1))
    m.worst = pyo.Var()
    m.least = pyo.Objective(expr=m.worst)

    @m.SemiInfiniteConstraint(m.P, m.demand)
    def balance(m, p, xi):
        return m.stock[p](xi) == (2 if p == 0 else m.stock[p - 1](xi)) + m.order[p](xi) - xi[p]

    @m.SemiInfiniteConstraint(m.P, m.demand)
    def enough(m, p, xi):
        return m.stock[p](xi) >= 0

    @m.SemiInfiniteConstraint(m.P, m.demand)
    def limited(m, p, xi):
        return m.order[p](xi) <= m.most

    @m.SemiInfiniteConstraint(m.demand)
    def spent(m, xi):
        return m.worst >= sum(m.cost[p] * m.order[p](xi) + 0.5 * m.stock[p](xi) for p in m.P)

    return m


def test_decisions_that_are_functions():
    m = inventory()
    solver = osilp.PersistentSolver(m)
    solver.solve()
    coefficient = list(m.order[2].coefficients.values())[-1]
    changes = {
        "a cost": lambda: m.cost.__setitem__(1, 2.5),
        "a limit": lambda: m.most.set_value(3.0),
        "the set": lambda: setattr(m.demand, "bounds", [(0.5, 2)] * 3),
        "a fixed coefficient": lambda: coefficient.fix(0.1),
        "another value of it": lambda: coefficient.set_value(0.3),
        "a family less": lambda: m.limited[1].deactivate(),
        "unfixed": lambda: coefficient.unfix(),
    }
    for what, change in changes.items():
        change()
        check(solver, what)


def test_integers_begin_with_the_rows_of_the_last_solve():
    m = many_kinds()
    for t in m.T:
        m.x[t].domain = pyo.Integers
    solver = osilp.PersistentSolver(m)
    for value in (2.0, 3.0, 1.0):
        m.p = value
        check(solver, value)


def test_what_has_not_changed_is_not_read_again():
    m = many_kinds()
    kept = KeptModel(m)
    first = kept.read()
    second = kept.read()
    assert kept.readings == 1
    assert all(one is other for one, other in zip(first.problem.families, second.problem.families, strict=True))
    m.p = 1.0
    third = kept.read()
    assert kept.readings == 1
    # The coefficients of the first family have no p in them, its limit has.
    assert third.problem.families[0].rows.groups[0] is first.problem.families[0].rows.groups[0]
    assert third.problem.families[0].rows is not first.problem.families[0].rows
    m.sum.deactivate()
    kept.read()
    assert kept.readings == 2


def test_a_rule_that_reads_values_is_called_at_each_solve():
    m = many_kinds()
    m.reads_value.activate()
    kept = KeptModel(m)
    kept.read()
    kept.read()
    assert kept.readings == 2


def plain_model():
    m = pyo.ConcreteModel()
    m.u, m.x = ContinuousSet(bounds=(0, 1)), pyo.Var([0, 1], bounds=(0, 9))
    m.gain = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)
    m.limit = pyo.Param(mutable=True, initialize=2.0)
    m.weight = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.weight[m.x[0]] = 1.0
    m.rate, m.share, m.none = 1.0, np.float64(1.0), None
    m.table, m.column = {"rate": 1.0}, np.array([1.0, 2.0])
    m.part = pyo.Expression([0, 1], rule=lambda m, i: m.x[i])
    m.many = pyo.Param([0, 1], mutable=True, initialize=1.0)
    m.row = pyo.Constraint(expr=m.x[0] + m.x[1] <= 9)
    m.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    m.dual[m.row] = 1.0
    return m


def made_anew(component, values):
    """Clear a component and fill it again: its members are others now."""
    component.clear()
    for key, value in values.items():
        component[key] = value


RULES_AND_CHANGES = {
    "a number of a Suffix": (
        lambda m, u: (1 + u) * m.x[0] + m.weight[m.x[0]] * m.x[1] <= m.limit,
        lambda m: m.weight.__setitem__(m.x[0], 0.5),
    ),
    "a number that is an attribute": (
        lambda m, u: (1 + u) * m.x[0] + m.rate * m.x[1] <= m.limit,
        lambda m: setattr(m, "rate", 0.5),
    ),
    "a number of numpy that is an attribute": (
        lambda m, u: (1 + u) * m.x[0] + m.share * m.x[1] <= m.limit,
        lambda m: setattr(m, "share", np.float64(0.5)),
    ),
    "an attribute that was None": (
        lambda m, u: (1 + u) * m.x[0] + (1 if m.none is None else m.none[0]) * m.x[1] <= m.limit,
        lambda m: setattr(m, "none", (0.5,)),
    ),
    "a member of a dictionary that is an attribute": (
        lambda m, u: (1 + u) * m.x[0] + m.table["rate"] * m.x[1] <= m.limit,
        lambda m: m.table.update(rate=0.5),
    ),
    "an array that is an attribute, in place": (
        lambda m, u: (1 + u) * m.x[0] + m.column[0] * m.x[1] <= m.limit,
        lambda m: m.column.__imul__(0.5),
    ),
    "a price of the last solve": (
        lambda m, u: (1 + u) * m.x[0] + m.dual[m.row] * m.x[1] <= m.limit,
        lambda m: m.dual.__setitem__(m.row, 0.5),
    ),
    "members of a Param made anew": (
        lambda m, u: (1 + u) * m.x[0] + m.many[1] * m.x[1] <= m.limit,
        lambda m: made_anew(m.many, {0: 1.0, 1: 0.5}),
    ),
    "members of an Expression made anew": (
        lambda m, u: (1 + u) * m.x[0] + m.part[1] <= m.limit,
        lambda m: made_anew(m.part, {0: m.x[0], 1: 0.5 * m.x[1]}),
    ),
    "a domain": (
        lambda m, u: (1 + u) * m.x[0] + (0.5 if m.x[1].is_integer() else 1) * m.x[1] <= m.limit,
        lambda m: setattr(m.x[1], "domain", pyo.Integers),
    ),
}


@pytest.mark.parametrize("what", RULES_AND_CHANGES)
def test_what_a_rule_reads_without_a_call_is_compared(what):
    rule, change = RULES_AND_CHANGES[what]
    m = plain_model()
    m.below = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    solver = osilp.PersistentSolver(m)
    assert solver.solve(load=False).objective == pytest.approx(2.0)
    change(m)
    with pytest.warns(errors.ChangedRuleWarning):
        assert solver.solve(load=False).objective == pytest.approx(4.0)


OUTSIDE = {
    "no longer fixed": lambda m: m.x[0].unfix(),
    "a member of a set": lambda m: m.S.add(1),
    "what is active": lambda m: m.row.deactivate(),
    "what an Expression holds": lambda m: m.part.set_value(0.3),
}


@pytest.mark.filterwarnings("ignore::osilp_pyomo.errors.ChangedRuleWarning")
@pytest.mark.parametrize("what", OUTSIDE)
def test_of_a_block_what_lies_outside_is_compared_too(what):
    m = plain_model()
    m.x[0].fix(0.5)
    m.gain.deactivate()
    m.S, m.part, m.row = pyo.Set(initialize=[0]), pyo.Expression(expr=0.1), pyo.Constraint(expr=m.x[1] <= 1)
    m.b = pyo.Block()
    m.b.v = pyo.Var([0, 1], bounds=(0, 3))
    m.b.gain = pyo.Objective(expr=m.b.v[0] + m.b.v[1], sense=pyo.maximize)

    @m.b.SemiInfiniteConstraint(m.u)
    def below(b, u):
        limit = m.limit if m.row.active else 2 * m.limit
        return sum((1 + u) * b.v[i] for i in m.S) + m.x[0] + m.part <= limit

    solver = osilp.PersistentSolver(m.b)
    solver.solve()
    OUTSIDE[what](m)
    check(solver, what)


def test_a_profiler_that_a_rule_leaves_is_left():
    m = plain_model()
    before = sys.getprofile()
    listening = []

    def rule(m, u):
        if listening:
            sys.setprofile(listening[0])
        return (1 + u) * m.x[0] + m.x[1] <= m.limit

    m.below = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    listening.append(lambda *_: None)
    try:
        osilp.PersistentSolver(m).solve()
        assert sys.getprofile() is listening[0]
    finally:
        sys.setprofile(before)


def test_python_data_is_read_by_retrace():
    m = pyo.ConcreteModel()
    m.u, m.x = ContinuousSet(bounds=(0, 1)), pyo.Var(bounds=(0, 9))
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    data = {"limit": 2.0}

    @m.SemiInfiniteConstraint(m.u)
    def below(m, u):
        return (1 + u) * m.x <= data["limit"]

    solver = osilp.PersistentSolver(m)
    assert solver.solve().objective == pytest.approx(1.0)
    data["limit"] = 4.0
    assert solver.solve().objective == pytest.approx(1.0)
    solver.retrace()
    with pytest.warns(errors.ChangedRuleWarning):
        assert solver.solve().objective == pytest.approx(2.0)


def test_another_profiler_makes_it_read_anew():
    m = many_kinds()
    kept = KeptModel(m)
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        kept.read()
        kept.read()
    finally:
        sys.setprofile(before)
    assert kept.readings == 2


def test_after_an_error_the_next_solve_is_right():
    m = many_kinds()
    solver = osilp.PersistentSolver(m)
    solver.solve()
    m.a[1] = float("nan")
    with pytest.raises(errors.DataError):
        solver.solve()
    m.a[1] = 0.7
    m.p = 1.4
    check(solver, "after an error")


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
@pytest.mark.parametrize("seconds", [0.001, 0.005, 0.01, 0.02, 0.05])
def test_after_an_interrupt_the_next_solve_is_right(seconds):
    m = many_kinds()
    solver = osilp.PersistentSolver(m)
    solver.solve()
    m.p = 1.3

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        solver.solve()
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    check(solver, "after an interrupt")


def test_a_clone_and_a_pickled_solver_begin_anew():
    m = inventory()
    solver = osilp.PersistentSolver(m)
    value = solver.solve().objective
    other = m.clone()
    other.most = 3.0
    check(osilp.PersistentSolver(other), "clone")
    assert solver.solve().objective == pytest.approx(value)
    assert copy.deepcopy(solver).solve().objective == pytest.approx(value)


def module_rule(m, u):
    """A rule that can be pickled."""
    return (1 + u) * m.x <= m.limit


def small():
    m = pyo.ConcreteModel(name="small")
    m.u, m.x = ContinuousSet(bounds=(0, 1)), pyo.Var(bounds=(0, 9))
    m.limit = pyo.Param(mutable=True, initialize=1.0)
    m.cost = pyo.Param([1, 2], mutable=True, initialize={1: 1.0, 2: 2.0})
    m.gain = pyo.Objective(expr=m.cost[1] * m.x, sense=pyo.maximize)
    m.below = osilp.SemiInfiniteConstraint(m.u, rule=module_rule)
    return m


def test_a_solver_is_pickled_with_its_model():
    solver = osilp.PersistentSolver(small())
    solver.solve()
    other = pickle.loads(pickle.dumps(solver))
    other.model.limit = 4.0
    assert other.solve().objective == pytest.approx(2.0)
    assert solver.solve().objective == pytest.approx(0.5)
    assert repr(other) == "PersistentSolver('small')"


def test_options_are_those_of_solve():
    solver = osilp.PersistentSolver(small())
    assert solver.solve("discretized", grid=11).method == "discretized"
    assert solver.solve(load=False).objective == pytest.approx(0.5)
    with pytest.raises(errors.OptionError) as told:
        solver.solve(tolerence=1e-3)
    assert str(told.value).startswith("PersistentSolver.solve: there is no option 'tolerence'; there are method, grid,")
    with pytest.raises(errors.ModelError):
        osilp.PersistentSolver(3)


# -- sweeps ----------------------------------------------------------------------------------------


def test_a_sweep_is_as_many_solves():
    m = small()
    frame = osilp.sweep(m, [(m.limit, [1, 2, -1, 4]), (m.cost[1], [1, 3])])
    assert [*frame.columns] == [
        "limit", "cost[1]", "objective", "bound", "status", "certified", "method", "rows", "seconds",
    ]  # fmt: skip
    assert frame["limit"].tolist() == [1, 1, 2, 2, -1, -1, 4, 4]
    assert frame["status"].tolist() == ["optimal"] * 4 + ["infeasible"] * 2 + ["optimal"] * 2
    expected = [0.5, 1.5, 1.0, 3.0, np.nan, np.nan, 2.0, 6.0]
    assert frame["objective"].tolist() == pytest.approx(expected, nan_ok=True)
    assert frame["certified"].tolist() == [True] * 4 + [False] * 2 + [True] * 2
    assert (m.limit.value, m.cost[1].value, m.x.value) == (1.0, 1.0, None)


def test_a_sweep_over_the_size_of_a_set():
    m = robust()
    frame = osilp.sweep(m, [(m.few, "gamma", [0, 0.5, 1, 2]), (m.ball, "scale", [0.5, 1])])
    assert m.few.gamma == 1.0
    assert m.ball.scale == 1.0
    for row in frame.itertuples():
        m.few.gamma, m.ball.scale = row.gamma, row.scale
        assert row.objective == pytest.approx(osilp.solve(m).objective, rel=1e-7)
    # Larger sets leave less.
    table = frame.pivot_table(index="gamma", columns="scale", values="objective").to_numpy()
    assert (np.diff(table, axis=0) <= 1e-7).all()
    assert (np.diff(table, axis=1) <= 1e-7).all()


@pytest.mark.parametrize("make", [many_kinds, robust, inventory])
def test_a_sweep_elsewhere_says_the_same(make):
    m = make()
    param = m.most if make is inventory else m.q if make is robust else m.p
    values = [0.4, 0.6, 1.0, 1.3] if make is not inventory else [3.0, 4.0, 5.0, -1.0]
    here = osilp.sweep(m, [(param, values)])
    with ThreadPoolExecutor(2) as threads:
        there = osilp.sweep(m, [(param, values)], executor=threads)
    assert there["objective"].tolist() == pytest.approx(here["objective"].tolist(), rel=1e-7, nan_ok=True)
    same = ["status", "certified", "method"]
    assert there[same].to_numpy().tolist() == here[same].to_numpy().tolist()


def test_values_of_a_sweep_may_come_one_by_one():
    m = small()
    frame = osilp.sweep(m, [(m.limit, (value for value in [1, 2]))])
    assert frame["objective"].tolist() == pytest.approx([0.5, 1.0])


def test_a_sweep_elsewhere_has_the_same_options():
    m = small()
    refused = (
        {"solver_options": {"nonsense": 1}},
        {"grid": 5},
        {"basis": 5},
        {"method": "counterpart", "solver": "highs-dual"},
    )
    with ThreadPoolExecutor(1) as threads:
        for options in refused:
            with pytest.raises(errors.OptionError) as here:
                osilp.sweep(m, [(m.limit, [1])], **options)
            with pytest.raises(errors.OptionError) as there:
                osilp.sweep(m, [(m.limit, [1])], executor=threads, **options)
            assert str(here.value) == str(there.value)


@pytest.mark.long
def test_a_sweep_in_processes():
    m = robust()
    here = osilp.sweep(m, [(m.q, [0.1, 0.5, 0.9])])
    there = osilp.sweep(m, [(m.q, [0.1, 0.5, 0.9])], executor=2)
    assert there["objective"].tolist() == pytest.approx(here["objective"].tolist(), rel=1e-7)


def test_after_an_error_or_an_interrupt_a_sweep_leaves_the_model_as_it_was():
    m = small()
    with pytest.raises(errors.DataError):
        osilp.sweep(m, [(m.limit, [2.0, float("nan"), 3.0])])
    assert m.limit.value == 1.0

    m.tripped = False

    def rule(m, u):
        if m.tripped:
            raise KeyboardInterrupt
        return m.x * u <= 5

    m.more = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    m.tripped = True
    with pytest.raises(KeyboardInterrupt):
        osilp.sweep(m, [(m.limit, [2.0, 3.0])])
    assert m.limit.value == 1.0


def test_what_a_sweep_refuses():
    m, other = small(), small()
    m.fixed = pyo.Param(initialize=1.0)
    m.empty = pyo.Param(mutable=True)
    m.positive = pyo.Param(mutable=True, initialize=1.0, within=pyo.PositiveReals)

    def told(over, **options):
        with pytest.raises(errors.OptionError) as error:
            osilp.sweep(m, over, **options)
        return str(error.value)

    assert told([]) == "sweep: over= must be a list of pairs, such as [(m.gamma, [0, 1, 2])]."
    assert told([(m.limit, [])]) == "sweep: the values of a pair must be a list of numbers (got [])."
    assert told([(m.x, [1])]) == (
        "sweep: only a mutable Param, or one member of an indexed one, can be swept (got x, a ScalarVar); make what is to change one, m.level = pyo.Param(mutable=True, initialize=...), and write m.level where it is used."
    )
    assert told([(m.cost, [1])]) == (
        "sweep: only a mutable Param, or one member of an indexed one, can be swept (got cost, a IndexedParam); make what is to change one, m.level = pyo.Param(mutable=True, initialize=...), and write m.level where it is used."
    )
    assert told([(m.fixed, [1])]) == "sweep: the Param 'fixed' is not mutable; declare it with mutable=True."
    assert told([(other.limit, [1])]) == "sweep: the Param 'limit' belongs to another model."
    assert told([(m.empty, [1])]) == ("sweep: the Param 'empty' has no value; give it one, which it will have again.")
    assert told([(m.limit, [1]), (m.limit, [2])]) == (
        "sweep: 'limit' is given twice; each column of the frame needs a name of its own."
    )
    m.bound = pyo.Param(mutable=True, initialize=1.0)
    assert told([(m.bound, [1])]) == (
        "sweep: 'bound' is also what the frame calls a part of each answer (objective, bound, status, certified, "
        "method, rows, seconds); give it another name."
    )
    assert told([(m.positive, [1, -1])]).startswith("sweep: 'positive' does not take the value -1 (")
    assert m.positive.value == 1.0
    assert told([(m.limit, "gamma", [1])]).startswith("sweep: three parts are an uncertainty set, the name of one")
    assert told([(m.limit, [1])], load=True).startswith("sweep: there is no option 'load'; there are grid, basis,")


def test_rows_of_a_set_that_is_read_anew_stay_where_they_are():
    m = inventory()
    before = KeptModel(m).read().problem.families[0].domain
    after = KeptModel(m).read().problem.families[0].domain
    corners = np.array([[1.0, 3.0, 1.0], [3.0, 3.0, 1.0]])
    assert before is not after
    assert before.moved_to(after, corners).tolist() == corners.tolist()
    m.demand.bounds = [(1, 5)] * 3
    grown = KeptModel(m).read().problem.families[0].domain
    assert before.moved_to(grown, corners) == pytest.approx(np.array([[1.0, 5.0, 1.0], [5.0, 5.0, 1.0]]))
