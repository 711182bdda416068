"""Decisions that react in models made robust, and the call of PyROS, beside PyROS itself."""

import itertools
import logging
import warnings

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BoxSet, ObjectiveType
from pyomo.contrib.pyros import pyrosTerminationCondition as Condition

import osilp_pyomo as osilp
from osilp_pyomo import errors


def facility():
    """ROmodel's facilities, opened by parts: flows meet each demand exactly."""
    opening, capacity = [100, 140, 80, 150], [100, 140, 80, 150]
    shipping = [
        [2.0, 3.0, 1.5, 4.0, 3.3],
        [1.5, 0.4, 1.0, 2.2, 3.5],
        [3.4, 1.4, 2.1, 3.3, 1.6],
        [2.6, 2.1, 2.0, 1.4, 1.3],
    ]
    m = pyo.ConcreteModel()
    m.I, m.J = pyo.RangeSet(0, 3), pyo.RangeSet(0, 4)
    m.demand = pyo.Param(m.J, initialize=dict(enumerate([45, 30, 60, 55, 25])), mutable=True)
    m.open = pyo.Var(m.I, bounds=(0, 1), initialize=1)
    m.flow = pyo.Var(m.I, m.J, within=pyo.NonNegativeReals, initialize=1)
    m.room = pyo.Constraint(m.I, rule=lambda m, i: sum(m.flow[i, j] for j in m.J) <= capacity[i] * m.open[i])
    m.met = pyo.Constraint(m.J, rule=lambda m, j: sum(m.flow[i, j] for i in m.I) == m.demand[j])
    m.cost = pyo.Objective(
        expr=sum(opening[i] * m.open[i] for i in m.I) + sum(shipping[i][j] * m.flow[i, j] for i in m.I for j in m.J)
    )
    return m, BoxSet([(0.9 * m.demand[j].value, 1.1 * m.demand[j].value) for j in m.J])


def test_flows_that_react():
    m, demands = facility()
    robust = osilp.robustify(m, [(m.demand, demands)], adjustable=[m.flow])
    assert robust.source(robust.flow) is m.flow
    assert robust.source(robust.met[1]) is m.met[1]
    result = osilp.solve(robust)
    assert result.objective == pytest.approx(514.65, rel=1e-9)
    assert result.certified
    result.load(m)
    # What the rules decide at the nominal demand keeps the rows of the model.
    for row in itertools.chain(m.room.values(), m.met.values()):
        assert row.lslack() > -1e-7
        assert row.uslack() > -1e-7
    copy = robust.clone()
    assert osilp.solve(copy).objective == pytest.approx(514.65, rel=1e-9)


def plan():
    """Two periods: produce before demand is seen, buy once that of the period is; stock follows from the balance."""
    m = pyo.ConcreteModel()
    m.P = pyo.RangeSet(0, 2)
    m.demand = pyo.Param(m.P, initialize=10, mutable=True)
    m.make = pyo.Var(m.P, bounds=(0, 12), initialize=0)
    m.buy = pyo.Var(m.P, bounds=(0, 8), initialize=0)
    m.stock = pyo.Var(m.P, bounds=(0, 20), initialize=0)
    m.balance = pyo.Constraint(
        m.P,
        rule=lambda m, p: m.stock[p] == (3 if p == 0 else m.stock[p - 1]) + m.make[p] + m.buy[p] - m.demand[p],
    )
    m.cost = pyo.Objective(expr=sum(m.make[p] + 2.5 * m.buy[p] + 0.2 * m.stock[p] for p in m.P))
    return m, BoxSet([(8, 14)] * 3)


def test_what_each_period_sees():
    m, demands = plan()
    sees = [
        (m.buy, lambda m, p: [m.demand[q] for q in m.P if q <= p]),
        (m.stock, lambda m, p: [m.demand[q] for q in m.P if q <= p]),
    ]
    robust = osilp.robustify(m, [(m.demand, demands)], adjustable=sees)
    result = osilp.solve(robust)
    assert result.certified
    rule = result.function(robust.buy[1])
    assert set(rule.coefficients.index) == {"1", "demand[0]", "demand[1]"}
    by_hand = by_hand_plan(demands)
    assert result.objective == pytest.approx(by_hand, rel=1e-7)
    blind = osilp.robustify(m, [(m.demand, demands)], adjustable=[m.stock])
    assert osilp.solve(blind).objective > result.objective + 1
    free = osilp.robustify(m, [(m.demand, demands)], adjustable=[m.make, m.buy, m.stock])
    assert osilp.solve(free).objective <= result.objective + 1e-9


def by_hand_plan(demands):
    """The same with FunctionVars."""
    m = pyo.ConcreteModel()
    m.P = pyo.RangeSet(0, 2)
    m.make = pyo.Var(m.P, bounds=(0, 12))
    m.buy = osilp.FunctionVar(m.P, over=demands, sees=lambda m, p: range(p + 1), bounds=(0, 8))
    m.stock = osilp.FunctionVar(m.P, over=demands, sees=lambda m, p: range(p + 1), bounds=(0, 20))
    m.worst = pyo.Var()
    m.cost = pyo.Objective(expr=m.worst)
    m.balance = osilp.SemiInfiniteConstraint(
        m.P,
        demands,
        rule=lambda m, p, xi: (
            m.stock[p](xi) == (3 if p == 0 else m.stock[p - 1](xi)) + m.make[p] + m.buy[p](xi) - xi[p]
        ),
    )
    m.spent = osilp.SemiInfiniteConstraint(
        demands,
        rule=lambda m, xi: sum(m.make[p] + 2.5 * m.buy[p](xi) + 0.2 * m.stock[p](xi) for p in m.P) <= m.worst,
    )
    return osilp.solve(m).objective


def test_bounds_with_data_and_some_members():
    m, demands = plan()
    m.most = pyo.Param(initialize=7.0, mutable=True)
    m.buy[1].setub(m.most)
    m.buy[2].setub(0.5 * m.demand[2])
    robust = osilp.robustify(m, [(m.demand, demands)], adjustable=[m.buy[1], m.buy[2], m.stock])
    assert isinstance(robust.buy, pyo.Var)
    assert robust.source(robust.buy_rule) is m.buy
    assert sorted(robust.buy_upper) == [1, 2]
    result = osilp.solve(robust)
    draws = np.random.default_rng(0).uniform(8, 14, (200, 3))
    bought = result.function(robust.buy_rule[2])(draws)
    assert (bought <= 0.5 * draws[:, 2] + 1e-7).all()
    robust.most.set_value(5.0)
    assert osilp.solve(robust).objective >= result.objective - 1e-9


def test_nominal_and_expected_costs_of_rules():
    m, demands = plan()
    adjustable = [m.buy, m.stock]
    values = {}
    for objective in ("nominal", "expected", "worst"):
        draws = np.array([[10.0, 10, 10]]) if objective == "expected" else None
        robust = osilp.robustify(m, [(m.demand, demands)], adjustable, objective=objective, draws=draws)
        values[objective] = osilp.solve(robust).objective
    assert values["nominal"] == pytest.approx(values["expected"], rel=1e-9)
    assert values["nominal"] < values["worst"]
    robust = osilp.robustify(m, [(m.demand, demands)], adjustable, objective="nominal", nominal=[14, 14, 14])
    result = osilp.solve(robust)
    assert result.objective > values["nominal"]
    assert result.nominal["buy[0]"] == pytest.approx(result.function(robust.buy[0])([14, 14, 14]), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_rules_are_worse_than_recourse_and_better_than_none(seed):
    """Random two-stage models: exact recourse (all vertices) <= affine rules <= decisions before anything is seen."""
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    uses, needs = rng.uniform(0.5, 1.5, (2, count)), rng.uniform(0, 1, (2, size))

    m = pyo.ConcreteModel()
    m.xi = pyo.Param(range(size), initialize=1.0, mutable=True)
    m.x = pyo.Var(range(count), bounds=(0, 10))
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.row = pyo.Constraint(
        range(2),
        rule=lambda m, i: (
            sum(float(uses[i, j]) * m.x[j] for j in range(count)) + m.y[i]
            >= sum(float(needs[i, k]) * m.xi[k] for k in range(size)) + 1
        ),
    )
    m.cost = pyo.Objective(expr=sum(m.x.values()) + 1.5 * m.y[0] + 1.2 * m.y[1])
    box = [(0.0, 2.0)] * size

    static = osilp.solve(osilp.robustify(m, [(m.xi, BoxSet(box))])).objective
    affine = osilp.solve(osilp.robustify(m, [(m.xi, BoxSet(box))], adjustable=[m.y])).objective
    exact = pyo.ConcreteModel()
    exact.x, exact.worst = pyo.Var(range(count), bounds=(0, 10)), pyo.Var()
    exact.rows = pyo.ConstraintList()
    vertices = list(itertools.product(*box))
    exact.y = pyo.Var(range(len(vertices)), range(2), bounds=(0, 10))
    for v, vertex in enumerate(vertices):
        for i in range(2):
            used = sum(float(uses[i, j]) * exact.x[j] for j in range(count)) + exact.y[v, i]
            exact.rows.add(used >= float(needs[i] @ np.array(vertex)) + 1)
        exact.rows.add(exact.worst >= sum(exact.x.values()) + 1.5 * exact.y[v, 0] + 1.2 * exact.y[v, 1])
    exact.o = pyo.Objective(expr=exact.worst)
    recourse = osilp.solve(exact).objective
    assert recourse <= affine + 1e-7
    assert affine <= static + 1e-7
    if size == 1:
        # Between two vertices the rule through both of their decisions is affine.
        assert affine == pytest.approx(recourse, abs=1e-6)


# -- the call of PyROS ---------------------------------------------------------------------------------


def by_pyros(m, first, second, params, over, **options):
    highs = pyo.SolverFactory("appsi_highs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pyo.SolverFactory("pyros").solve(
            m, first, second, params, over, highs, highs, solve_master_globally=True,
            progress_logger=logging.getLogger("quiet"), **options,
        )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("focus", [ObjectiveType.worst_case, ObjectiveType.nominal])
@pytest.mark.parametrize("order", [0, 1])
def test_the_plan_by_both(focus, order):
    m, demands = plan()
    given = ([m.make], [m.buy], [m.demand], demands)
    options = {"objective_focus": focus, "decision_rule_order": order}
    other, _ = plan()
    theirs = by_pyros(other, [other.make], [other.buy], [other.demand], demands, **options)
    ours = pyo.SolverFactory("osilp.robust").solve(m, *given, "any", "any", **options)
    # Without the worst case as its objective PyROS does not call what it found optimal.
    assert theirs.pyros_termination_condition in (Condition.robust_optimal, Condition.robust_feasible)
    assert ours.pyros_termination_condition is Condition.robust_optimal
    assert ours.final_objective_value == pytest.approx(theirs.final_objective_value, rel=1e-5)


@pytest.mark.long
def test_the_facility_by_both():
    m, demands = facility()
    options = {"objective_focus": ObjectiveType.worst_case, "decision_rule_order": 1}
    ours = pyo.SolverFactory("osilp.robust").solve(m, m.open, m.flow, m.demand, demands, **options)
    other, _ = facility()
    theirs = by_pyros(other, [other.open], [other.flow], [other.demand], demands, **options)
    assert ours.final_objective_value == pytest.approx(514.65, rel=1e-9)
    assert theirs.final_objective_value == pytest.approx(514.65, rel=1e-5)


def test_the_fields_and_options_of_pyros():
    m, demands = plan()
    solver = pyo.SolverFactory("osilp.robust")
    assert solver.available()
    results = solver.solve(m, m.make, m.buy, m.demand, demands, decision_rule_order=1, time_limit=60, keepfiles=False)
    assert results.pyros_termination_condition is Condition.robust_optimal
    assert results.final_objective_value == pytest.approx(results.result.objective)
    assert results.iterations >= 1
    assert results.time > 0
    assert results.config["objective_focus"] is ObjectiveType.nominal
    assert "robust_optimal" in str(results)
    # States and decisions at the nominal demand are in the model.
    for p in m.P:
        assert abs(pyo.value(m.balance[p].body) - pyo.value(m.balance[p].upper)) < 1e-6
    at_most = solver.solve(m, m.make, m.buy, m.demand, demands, decision_rule_order=1, load_solution=False,
                           nominal_uncertain_param_vals=[14, 14, 14])  # fmt: skip
    assert at_most.final_objective_value > results.final_objective_value
    for p in m.P:
        m.make[p].setub(1)
        m.buy[p].setub(1)
    none = solver.solve(m, m.make, m.buy, m.demand, demands, decision_rule_order=1)
    assert none.pyros_termination_condition is Condition.robust_infeasible
    assert none.final_objective_value is None
    assert {"balance", "stock"} & {name.split("[")[0] for name in none.result.conflict["name"]}


def test_the_call_of_pyros_takes_names_of_objectives_and_any_iterable():
    def solved(focus, first=lambda m: m.x):
        m = pyo.ConcreteModel()
        m.d = pyo.Param([0, 1], initialize={0: 1.0, 1: 2.0}, mutable=True)
        m.x = pyo.Var([0, 1], bounds=(0, 9))
        m.row = pyo.Constraint([0, 1], rule=lambda m, i: m.x[i] >= m.d[i])
        m.cost = pyo.Objective(expr=m.d[0] * m.x[0] + m.x[1])
        return pyo.SolverFactory("osilp.robust").solve(
            m, first(m), (), m.d.values(), BoxSet([(0, 3), (0, 4)]), None, None, objective_focus=focus
        )

    assert solved("worst_case").final_objective_value == pytest.approx(13)
    assert solved("nominal", lambda m: m.x.values()).final_objective_value == pytest.approx(7)
    assert solved(ObjectiveType.worst_case, lambda m: [[m.x[0]], [m.x[1]]]).final_objective_value == pytest.approx(13)
    with pytest.raises(errors.OptionError) as caught:
        solved("best")
    assert str(caught.value) == (
        "SolverFactory('osilp.robust').solve: objective_focus must be ObjectiveType.worst_case or "
        "ObjectiveType.nominal of PyROS (got 'best')."
    )


def test_rules_over_a_ball():
    m, _ = plan()
    ball = AxisAlignedEllipsoidalSet(center=[11, 11, 11], half_lengths=[3, 3, 3])
    results = pyo.SolverFactory("osilp.robust").solve(
        m, m.make, m.buy, m.demand, ball, decision_rule_order=1, objective_focus=ObjectiveType.worst_case
    )
    assert results.result.certified
    draws = np.random.default_rng(0).normal(size=(500, 3))
    draws = 11 + 3 * draws / np.maximum(1, np.linalg.norm(draws, axis=1, keepdims=True))
    rule = results.result.function(results.robust.stock[2])
    assert (rule(draws) > -1e-6).all()


def test_refusals():
    m, demands = plan()
    m.lots = pyo.Var(domain=pyo.Integers)
    solver = pyo.SolverFactory("osilp.robust")

    def told(kind, call):
        with pytest.raises(kind) as caught:
            call()
        return str(caught.value)

    pairs = [(m.demand, demands)]
    assert told(errors.DeclarationError, lambda: osilp.robustify(m, pairs, adjustable=[m.lots])) == (
        "robustify: the Var 'lots' has whole values, which no decision rule has; decide it before the data are seen, by "
        "leaving it out of adjustable=."
    )
    assert told(errors.DeclarationError, lambda: osilp.robustify(m, pairs, adjustable=[(m.buy, [0, 1])])) == (
        "robustify: 'buy[0]' sees 0; give members of the uncertain Params, such as m.demand[q], and no positions."
    )
    m.other = pyo.Param(initialize=1, mutable=True)
    assert told(errors.DeclarationError, lambda: osilp.robustify(m, pairs, adjustable=[(m.buy, [m.other])])) == (
        "robustify: 'buy[0]' sees 'other', which is not among the uncertain data (demand[0], demand[1], demand[2], ...)."
    )
    assert told(errors.DeclarationError, lambda: osilp.robustify(m, pairs, adjustable=[m.demand])) == (
        "robustify: adjustable= takes Vars, or pairs of a Var and what it sees (got IndexedParam)."
    )
    assert told(errors.DeclarationError, lambda: osilp.robustify(m, pairs, adjustable=[m.buy, m.buy[1]])) == (
        "robustify: 'buy[1]' is named twice among those that react."
    )
    assert told(errors.DeclarationError, lambda: osilp.robustify(m, pairs, nominal=[1])) == (
        "robustify: nominal= has 1 values for 3 uncertain data (demand[0], demand[1], demand[2]); give one for each, in "
        "their order."
    )
    call = (m, m.make, m.buy, m.demand, demands)
    assert told(errors.OptionError, lambda: solver.solve(*call, decision_rules=1)) == (
        "SolverFactory('osilp.robust').solve: there is no option 'decision_rules'; those that count are objective_focus, "
        "nominal_uncertain_param_vals, decision_rule_order, time_limit, max_iter, tee, load_solution."
    )
    assert told(errors.OptionError, lambda: solver.solve(*call, decision_rule_order=3)) == (
        "SolverFactory('osilp.robust').solve: decision_rule_order must be 0, 1 or 2 (got 3)."
    )
    assert told(errors.DeclarationError, lambda: solver.solve(m, m.demand, m.buy, m.demand, demands)) == (
        "SolverFactory('osilp.robust').solve: first_stage_variables takes Vars, their members, or lists of them (got "
        "IndexedParam)."
    )
    m.cost.set_value(m.make[0] * m.make[1])
    with pytest.raises(errors.NotConvexError, match=r"make\[0\]\*make\[1\]"):
        solver.solve(*call)


# -- what is proved of rules ---------------------------------------------------------------------------------------


def two_stages(seed, rows, entries):
    """A plan for the worst case with rules that cost nothing and may be negative, and others that repair at a price."""
    rng = np.random.default_rng(seed)
    over = AxisAlignedEllipsoidalSet(rng.uniform(-2, 2, entries), rng.uniform(0.1, 2, entries))
    fixed, free, uncertain = rng.normal(size=(rows, 2)), rng.normal(size=(rows, rows)), rng.normal(size=(rows, entries))
    need, price = rng.normal(size=rows), rng.uniform(0.5, 3, rows)
    m = pyo.ConcreteModel()
    m.K = pyo.RangeSet(0, rows - 1)
    m.x = pyo.Var([0, 1], bounds=(0, 10))
    m.y = osilp.FunctionVar(m.K, over=over, bounds=(0, None) if seed % 2 else None)
    m.z = osilp.FunctionVar(m.K, over=over, bounds=(0, None))
    m.cost = pyo.Var()
    m.least = pyo.Objective(expr=m.cost)

    @m.SemiInfiniteConstraint(m.K, over)
    def kept(m, i, xi):
        first = sum(float(fixed[i, j]) * m.x[j] for j in (0, 1)) + sum(float(free[i, j]) * m.y[j](xi) for j in m.K)
        return first + m.z[i](xi) >= float(need[i]) + sum(float(uncertain[i, k]) * xi[k] for k in range(entries))

    @m.SemiInfiniteConstraint(over)
    def worst(m, xi):
        return m.cost >= m.x[0] + 2 * m.x[1] + sum(float(price[i]) * m.z[i](xi) + 0.1 * m.y[i](xi) * (seed % 2)
                                                   for i in m.K)  # fmt: skip

    return m


@pytest.mark.parametrize("seed", range(6100, 6124))
def test_rules_over_balls_are_certified(seed):
    """Half of these optima are zero but for rounding; of the others a price stands at one point of each row."""
    result = osilp.solve(two_stages(seed, 2 + seed % 3, 1 + seed % 4))
    assert result.certified
    assert result.status == "optimal"


# -- in the user's names -------------------------------------------------------------------------------------------


def two_markets():
    m = pyo.ConcreteModel()
    m.P = pyo.Set(initialize=["mon", "tue"])
    m.demand = pyo.Param(m.P, initialize=10, mutable=True)
    m.price = pyo.Param(initialize=2, mutable=True)
    m.make = pyo.Var(m.P, bounds=(0, 9))
    m.buy = pyo.Var(m.P, bounds=(0, None))
    m.met = pyo.Constraint(m.P, rule=lambda m, p: m.make[p] + m.buy[p] >= m.demand[p])
    m.cost = pyo.Objective(expr=sum(m.make[p] + m.price * m.buy[p] for p in m.P))
    sets = [(m.demand, BoxSet([(8, 14), (7, 12)])), (m.price, BoxSet([(1.2, 1.9)]))]
    return osilp.robustify(m, sets, [(m.buy, lambda m, p: [m.demand[p]])])


def test_rules_and_rows_speak_of_the_members_of_params():
    robust = two_markets()
    result = osilp.solve(robust)
    assert str(robust.met["mon"]) == (
        "met[mon]: demand[mon] <= buy[mon](demand) + make[mon]  for all demand in BoxSet of dimension 2"
    )
    assert str(robust.cost_worst).endswith("for all demand in BoxSet of dimension 2, price in BoxSet of dimension 1")
    rule = result.function(robust.buy["tue"])
    assert rule.coefficients.index.to_list() == ["1", "demand[tue]"]
    assert "buy[tue](demand) = " in str(rule)
    assert "xi" not in str(result).replace("exist", "")


def test_draws_are_told_apart_by_the_names_of_the_data():
    robust = two_markets()
    result = osilp.solve(robust)
    draws = pd.DataFrame({"price": [1.5, 1.9], "demand[tue]": [8.0, 12.0], "demand[mon]": [13.0, 14.0]})
    seen = result.simulate(draws)
    for name in ("mon", "tue"):
        other = result.function(robust.buy[name])(draws[["demand[mon]", "demand[tue]"]])
        assert seen[f"buy[{name}]"].to_list() == pytest.approx(other.to_list())
    make = sum(robust.make[p].value for p in ("mon", "tue"))
    bought = seen["buy[mon]"] + seen["buy[tue]"]
    assert seen["cost"].to_list() == pytest.approx((make + draws["price"] * bought).to_list())
    assert seen["violation"].max() < 1e-9
    # The row of the cost holds all of them, in the order of uncertain=.
    again = result.simulate(draws[["demand[mon]", "demand[tue]", "price"]].to_numpy())
    pd.testing.assert_frame_equal(seen, again)
    with pytest.raises(errors.DataError) as caught:
        result.simulate(draws[["demand[mon]", "price"]])
    assert str(caught.value) == (
        "result.simulate: its vector has the entries demand[mon], demand[tue], price, 3 in all, and the frame has no "
        "demand[tue]; name them so, or give one column per entry in their order."
    )
