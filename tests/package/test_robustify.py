"""robustify: ordinary models made robust, against scenarios one by one, and what would stay nominal."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.contrib.pyros import (
    AxisAlignedEllipsoidalSet,
    BoxSet,
    CardinalitySet,
    DiscreteScenarioSet,
)

import osilp_pyomo as osilp
from osilp_pyomo import errors


def production(**extra):
    """Three periods; bounds, an Expression and rows hold the demand."""
    m = pyo.ConcreteModel()
    m.P = pyo.RangeSet(0, 2)
    m.demand = pyo.Param(m.P, initialize=1.0, mutable=True)
    m.x = pyo.Var(m.P, bounds=(0, 10))
    m.cap = pyo.Var(bounds=lambda m: (m.demand[0], 10))
    m.need = pyo.Expression(m.P, rule=lambda m, p: 2 * m.demand[p])
    m.meet = pyo.Constraint(m.P, rule=lambda m, p: m.x[p] >= m.need[p])
    m.total = pyo.Constraint(expr=sum(m.x.values()) <= 25)
    for name, component in extra.items():
        m.add_component(name, component)
    m.cost = pyo.Objective(expr=sum(m.x.values()) + m.cap)
    return m


BOX = BoxSet([(1, 1.5)] * 3)


def test_rows_bounds_and_expressions_hold_for_the_whole_set():
    m = production()
    before = str(m.meet[0].expr), m.demand[0].value, [type(c).__name__ for c in m.component_objects()]
    robust = osilp.robustify(m, [(m.demand, BOX)])
    result = osilp.solve(robust)
    assert result.objective == pytest.approx(10.5)
    assert result.certified
    assert str(robust.meet[1]) == "meet[1]: 2*demand[1] <= x[1]  for all demand in BoxSet of dimension 3"
    assert str(robust.cap_lower) == "cap_lower: demand[0] <= cap  for all demand in BoxSet of dimension 3"
    assert not isinstance(robust.total, osilp.SemiInfiniteConstraint)
    assert robust.source(robust.meet) is m.meet
    assert robust.source(robust.meet[1]) is m.meet[1]
    assert robust.source(robust.cap_lower) is m.cap
    assert robust.source(robust.x[2]) is m.x[2]
    assert before == (str(m.meet[0].expr), m.demand[0].value, [type(c).__name__ for c in m.component_objects()])
    result.load(m)
    assert [m.x[p].value for p in m.P] == pytest.approx([3, 3, 3])
    assert m.cap.value == pytest.approx(1.5)


def test_clones_and_pickles_of_a_robust_model():
    # Without rules, which Pyomo cannot pickle where they are lambdas.
    m = pyo.ConcreteModel()
    m.demand = pyo.Param([0, 1], initialize=1.0, mutable=True)
    m.x = pyo.Var([0, 1], bounds=(0, 10))
    m.rows = pyo.ConstraintList()
    m.rows.add(m.x[0] >= 2 * m.demand[0])
    m.rows.add(m.x[0] + m.x[1] >= 2 * m.demand[0] + m.demand[1])
    m.cost = pyo.Objective(expr=m.x[0] + m.x[1])
    robust = osilp.robustify(m, [(m.demand, BoxSet([(0, 2), (0, 3)]))])
    for each in (robust, robust.clone(), pickle.loads(pickle.dumps(robust))):
        assert osilp.solve(each).objective == pytest.approx(7)
        assert each.source(each.rows[1]).name == "rows[1]"
    rows = pyo.TransformationFactory("osilp.discretize").create_using(robust, grid=osilp.Extremes(16))
    pyo.SolverFactory("appsi_highs").solve(rows)
    assert pyo.value(rows.cost) == pytest.approx(7)


def test_what_was_computed_from_uncertain_data_is_found():
    derived = pyo.Param(initialize=lambda m: sum(m.demand[p] for p in m.P), mutable=True)
    fixed = pyo.Param(initialize=lambda m: 2 * pyo.value(m.demand[0]))
    bounds = pyo.Var(bounds=lambda m: (pyo.value(m.demand[0]), None))
    row = pyo.Constraint(rule=lambda m: m.x[0] >= 3 if pyo.value(m.demand[0]) > 1.2 else pyo.Constraint.Feasible)
    number = pyo.Constraint([0], rule=lambda m, p: m.x[p] >= 2 * m.demand[p].value)
    moved = "demand[0] = 1.25 in place of 1, demand[1] = 1.25 in place of 1, demand[2] = 1.25 in place of 1"
    param = (
        "robustify: the Param '{}' was computed from uncertain data (its rule gives another number with {}), and its "
        "number would stay nominal; make it an Expression of them, which follows."
    )
    read = (
        "robustify: the {} the value of uncertain data (called again with {} it gives something else), which would stay "
        "nominal; write it with the Param itself, not with value(...) or a condition of Python."
    )
    for component, text in [
        (derived, param.format("new", moved)),
        (fixed, param.format("new", moved)),
        (bounds, read.format("bounds of the Var 'new' read", moved)),
        (row, read.format("rule of the Constraint 'new' reads", moved)),
        (number, read.format("rule of the Constraint 'new[0]' reads", moved)),
    ]:
        m = production(new=component)
        with pytest.raises(errors.ModelError) as caught:
            osilp.robustify(m, [(m.demand, BOX)])
        assert str(caught.value) == text
        assert [m.demand[p].value for p in m.P] == [1, 1, 1]


def test_blocks_lists_sets_defaults_and_domains_that_were_computed_are_found():
    def block(b, p):
        b.inner = pyo.Param(initialize=2 * pyo.value(b.model().demand[p]))
        b.row = pyo.Constraint(expr=b.model().x[p] >= b.inner)

    def listed(m):
        return (m.x[p] >= 2 * pyo.value(m.demand[p]) for p in m.P)

    moved = "demand[0] = 1.25 in place of 1, demand[1] = 1.25 in place of 1, demand[2] = 1.25 in place of 1"
    number = (
        "robustify: the Param '{}' was computed from uncertain data (its rule gives another number with {}), and its "
        "number would stay nominal; make it an Expression of them, which follows."
    )
    reads = (
        "robustify: the rule of the {} reads the value of uncertain data (called again with {} it gives something else), "
        "which would stay nominal; write it with the Param itself, not with value(...) or a condition of Python."
    )
    stays = (
        "robustify: the {} computed from uncertain data (another answer with {}), and would stay nominal; compute it "
        "from data that are certain, or write a row that holds the uncertain Param itself."
    )
    y = production().x
    cases = [
        (pyo.Block([0, 1, 2], rule=block), reads.format("Block 'new[0]'", moved)),
        (pyo.Block(rule=lambda b: block(b, 0)), reads.format("Block 'new'", moved)),
        (pyo.ConstraintList(rule=listed), reads.format("Constraint 'new'", moved)),
        (pyo.Set(initialize=lambda m: [p for p in m.P if m.demand[p].value > 1.2]),
         stays.format("members of the Set 'new' were", moved)),
        (pyo.Set(initialize=[0, 1], filter=lambda m, p: pyo.value(m.demand[p]) > 1.2),
         stays.format("members of the Set 'new' were", moved)),
        (pyo.Param([0, 1], default=lambda m, p: pyo.value(m.demand[p]), mutable=True), number.format("new[0]", moved)),
        (pyo.Var(domain=lambda m: pyo.RangeSet(pyo.value(m.demand[0]), 9, 0)),
         stays.format("domain of the Var 'new' was", moved)),
        (pyo.Piecewise(y[0], y[1], pw_pts=[0, 5, 10], pw_constr_type="LB", pw_repn="INC", warn_domain_coverage=False,
                       f_rule=lambda m, x: pyo.value(m.parent_block().demand[0] if m.parent_block() else m.demand[0]) * x**2),
         reads.format("Block 'new'", moved)),
    ]  # fmt: skip
    for component, text in cases:
        m = production(new=component)
        names = [each.name for each in m.component_data_objects()]
        with pytest.raises(errors.ModelError) as caught:
            osilp.robustify(m, [(m.demand, BOX)])
        assert str(caught.value) == text
        assert names == [each.name for each in m.component_data_objects()]


def test_numbers_that_were_given_as_data_are_found_where_an_expression_is_left():
    m = production()
    m.first = pyo.Param([0], initialize={0: 2 * m.demand[0]})
    with pytest.raises(errors.ModelError) as caught:
        osilp.robustify(m, [(m.demand, BOX)])
    assert str(caught.value).startswith("robustify: the Param 'first[0]' was computed from uncertain data")
    m = production()
    m.held = pyo.Param(initialize=0, mutable=True, domain=pyo.Any)
    m.held.set_value(2 * m.demand[0])
    with pytest.raises(errors.ModelError) as caught:
        osilp.robustify(m, [(m.demand, BOX)])
    assert str(caught.value) == (
        "robustify: the Param 'held' holds the uncertain 'demand[0]', and would stay nominal; make it an Expression, "
        "which follows."
    )
    m = production()
    m.fixed = pyo.Var(initialize=lambda m: pyo.value(m.demand[0]))
    osilp.robustify(m, [(m.demand, BOX)])
    m.fixed.fix()
    with pytest.raises(errors.ModelError) as caught:
        osilp.robustify(m, [(m.demand, BOX)])
    assert str(caught.value).startswith(
        "robustify: the fixed value of the Var 'fixed' was computed from uncertain data"
    )


def test_a_condition_that_holds_at_one_end_only_is_found():
    """Nothing but the demand of period 2 above 1.499 changes the last of many rows."""
    m = production()
    m.J = pyo.RangeSet(2500)
    m.last = pyo.Constraint(
        m.J,
        rule=lambda m, j: m.x[2] >= 1 if j < 2500 or pyo.value(m.demand[2]) < 1.499 else m.x[2] >= 5,
    )
    with pytest.raises(errors.ModelError) as caught:
        osilp.robustify(m, [(m.demand, BOX)])
    assert str(caught.value).startswith("robustify: the rule of the Constraint 'last[2500]' reads the value of")


def test_rules_that_read_uncertain_data_without_an_effect_are_left_alone():
    def row(m, p):
        assert pyo.value(m.demand[p]) >= 0
        return m.x[p] >= 2 * m.demand[p]

    def block(b):
        assert pyo.value(b.model().demand[0]) >= 0
        b.y = pyo.Var(bounds=(0, 3))
        b.row = pyo.Constraint(rule=lambda b: b.y >= b.model().demand[0])
        b.model().all_rows.add(b.y <= 5)
        b.inner = pyo.Block([0, 1])
        b.inner[1].z = pyo.Constraint(expr=b.y >= b.model().demand[1])

    m = production(checked=pyo.Constraint([0, 1], rule=row), all_rows=pyo.ConstraintList())
    m.b = pyo.Block(rule=block)
    assert len(m.all_rows) == 1
    before = [each.name for each in m.component_data_objects()]
    robust = osilp.robustify(m, [(m.demand, BOX)])
    assert before == [each.name for each in m.component_data_objects()]
    assert len(m.all_rows) == 1
    assert osilp.solve(robust).objective == pytest.approx(10.5)
    assert m.demand[0].value == 1
    assert type(m.demand[0]).__name__ == "ParamData"


def test_rows_that_are_inactive_are_robust_when_they_become_active():
    m = production(extra=pyo.Constraint([0, 1], rule=lambda m, p: m.x[p] >= 3 * m.demand[p]))
    m.b = pyo.Block()
    m.b.more = pyo.Constraint(expr=m.x[2] >= 4 * m.demand[2])
    m.extra.deactivate()
    m.b.deactivate()
    robust = osilp.robustify(m, [(m.demand, BOX)])
    assert osilp.solve(robust, load=False).objective == pytest.approx(10.5)
    robust.extra.activate()
    assert osilp.solve(robust, load=False).objective == pytest.approx(4.5 + 4.5 + 3 + 1.5)
    robust.b.activate()
    assert osilp.solve(robust, load=False).objective == pytest.approx(4.5 + 4.5 + 6 + 1.5)


def test_draws_are_told_apart_by_name_or_have_the_order_of_the_data():
    m = production()
    m.price = pyo.Param(initialize=1.0, mutable=True)
    m.cost.set_value(m.price * m.x[0] + 3 * m.demand[2] * m.x[2] + m.x[1])
    uncertain = [(m.demand, BOX), (m.price, BoxSet([(0, 5)]))]
    rows = np.array([[1.0, 1.25, 1.5, 2.0], [1.5, 1.0, 1.0, 4.0]])
    names = ["demand[0]", "demand[1]", "demand[2]", "price"]
    frame = pd.DataFrame(rows, columns=names)
    value = 3 * 3 + 3 * 1.25 * 3 + 3
    for draws in (rows, frame, frame[names[::-1]], frame[["price", "demand[2]", "demand[1]", "demand[0]"]]):
        robust = osilp.robustify(m, uncertain, objective="expected", draws=draws)
        assert osilp.solve(robust, load=False).objective == pytest.approx(value)
    with pytest.raises(errors.DataError) as caught:
        osilp.robustify(m, uncertain, objective="expected", draws=frame[["price", "demand[1]"]])
    assert str(caught.value) == (
        "robustify: draws= has a column 'demand[1]' and none of 'demand[0]'; name all uncertain data of the objective, "
        "or none."
    )


def test_a_block_of_a_model_is_refused():
    m = production()
    m.b = pyo.Block()
    m.b.p = pyo.Param(initialize=1.0, mutable=True)
    with pytest.raises(errors.DeclarationError) as caught:
        osilp.robustify(m.b, [(m.b.p, BoxSet([(0, 1)]))])
    assert str(caught.value) == (
        "robustify: 'b' is a block of a model, and its rows may hold what lies outside of it; give the whole model, and "
        "deactivate what is not to count."
    )


def test_rules_that_depend_on_something_else_are_left_alone():
    counter = itertools.count()
    m = production(
        random=pyo.Param(initialize=lambda m: next(counter), mutable=True),
        other=pyo.Param(initialize=lambda m: 3.0, mutable=True),
    )
    assert osilp.solve(osilp.robustify(m, [(m.demand, BOX)])).objective == pytest.approx(10.5)


def test_some_members_and_inactive_ones():
    m = production()
    m.meet[2].deactivate()
    robust = osilp.robustify(m, [(m.demand[0], BoxSet([(1, 2)]))])
    assert osilp.solve(robust).objective == pytest.approx(4 + 2 + 0 + 2)
    assert not robust.meet[2].active
    m.meet.deactivate()
    robust = osilp.robustify(m, [(m.demand[0], BoxSet([(1, 2)]))])
    assert osilp.solve(robust).objective == pytest.approx(2)


def test_several_sets_and_an_order_of_ones_own():
    """Demand of 0 and 2 on a budget, that of 1 by itself."""
    m = production()
    budget = CardinalitySet(origin=[1, 1], positive_deviation=[1, 3], gamma=1)
    robust = osilp.robustify(m, [([m.demand[2], m.demand[0]], budget), (m.demand[1], BoxSet([(1, 2)]))])
    assert osilp.solve(robust).objective == pytest.approx(2 * (4 + 2 + 2) + 4)
    m.all = pyo.Constraint(expr=m.x[0] + m.x[1] + m.x[2] >= 3 * (m.demand[0] + m.demand[1] + m.demand[2]))
    robust = osilp.robustify(m, [([m.demand[2], m.demand[0]], budget), (m.demand[1], BoxSet([(1, 2)]))])
    assert osilp.solve(robust).objective == pytest.approx(3 * (1 + 4 + 2) + 4)


def test_a_fixed_variable_is_uncertain():
    m = production()
    m.share = pyo.Var(initialize=1.0)
    m.share.fix()
    m.row = pyo.Constraint(expr=m.share * m.x[0] >= 4)
    robust = osilp.robustify(m, [(m.share, BoxSet([(0.5, 1)]))])
    assert osilp.solve(robust).objective == pytest.approx(8 + 2 + 2 + 1)
    with pytest.raises(errors.DeclarationError) as caught:
        osilp.robustify(m, [(m.x, BoxSet([(0.5, 1)] * 3))])
    assert str(caught.value) == ("robustify: the Var 'x[0]' is free; only a fixed one can stand for uncertain data.")


def uncertain_cost():
    m = pyo.ConcreteModel()
    m.price = pyo.Param([0, 1], initialize={0: 2.0, 1: 1.0}, mutable=True)
    m.x = pyo.Var([0, 1], bounds=(0, 4))
    m.sell = pyo.Constraint(expr=m.x[0] + m.x[1] <= 5)
    m.income = pyo.Objective(expr=m.price[0] * m.x[0] + m.price[1] * m.x[1] + 1, sense=pyo.maximize)
    return m


def test_objectives():
    m = uncertain_cost()
    scenarios = DiscreteScenarioSet([(2.0, 1.0), (0.5, 1.5), (0.5, 0.5)])
    worst = osilp.robustify(m, [(m.price, scenarios)])
    result = osilp.solve(worst)
    # At (0.5, 0.5) every unit earns a half.
    assert result.objective == pytest.approx(3.5)
    assert str(worst.income.expr) == "income_value"
    assert worst.source(worst.income_worst) is m.income
    result.load(m)
    assert sum(m.x[k].value for k in m.x) == pytest.approx(5)
    nominal = osilp.robustify(m, [(m.price, scenarios)], objective="nominal")
    assert osilp.solve(nominal).objective == pytest.approx(8 + 1 + 1)
    mean = osilp.robustify(m, [(m.price, scenarios)], objective="expected")
    assert osilp.solve(mean).objective == pytest.approx(4 + 1 + 1)
    draws = np.array([[1.0, 3.0], [2.0, 3.0]])
    mean = osilp.robustify(m, [(m.price, BoxSet([(0, 3)] * 2))], objective="expected", draws=draws)
    assert osilp.solve(mean).objective == pytest.approx(12 + 1.5 + 1)
    with pytest.raises(errors.DeclarationError) as caught:
        osilp.robustify(m, [(m.price, BoxSet([(0, 3)] * 2))], objective="expected")
    assert str(caught.value) == (
        "robustify: objective='expected' needs draws=, rows of the uncertain vector that the mean goes over; only a "
        "DiscreteScenarioSet has its own."
    )


def test_rows_by_arrays_and_blocks():
    m = pyo.ConcreteModel()
    m.b = pyo.Block()
    m.b.a = pyo.Param(range(3), initialize=1.0, mutable=True)
    m.b.x = pyo.Var(range(3), bounds=(0, 1))
    m.b.row = pyo.Constraint(expr=osilp.dot(m.b.a, m.b.x) <= 3)
    m.gain = pyo.Objective(expr=osilp.dot([3.0, 2.0, 1.0], m.b.x), sense=pyo.maximize)
    robust = osilp.robustify(m, [(m.b.a, BoxSet([(1, 2)] * 3))])
    assert osilp.solve(robust).objective == pytest.approx(3 + 1)
    assert robust.b.row.name == "b.row"


def test_a_conflict_speaks_of_the_rows_of_the_model():
    m = production()
    m.total.set_value(sum(m.x.values()) <= 8)
    result = osilp.solve(osilp.robustify(m, [(m.demand, BOX)]))
    assert result.status == "infeasible"
    assert set(result.conflict["name"]) == {"total", "meet[0]", "meet[1]", "meet[2]"}


# -- a law ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31))
def test_the_robust_optimum_is_that_of_all_vertices(seed):
    """Random models: coefficients, limits, bounds and costs uncertain; over a box all of its vertices are enough."""
    rng = np.random.default_rng(seed)
    count, rows, size = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    moved = rng.uniform(-0.3, 0.3, (rows, count, size))
    nominal, limits = rng.uniform(0.5, 1.5, (rows, count)), rng.uniform(1, 3, (rows, size + 1))
    gains, upper = rng.uniform(-0.5, 2, (count, size + 1)), rng.uniform(0.5, 2, (count, size + 1))

    def model(values, mutable=True):
        m = pyo.ConcreteModel()
        m.xi = pyo.Param(range(size), initialize=dict(enumerate(values)), mutable=mutable)
        vector = [1, *(m.xi[k] for k in range(size))]
        m.x = pyo.Var(
            range(count),
            bounds=lambda m, j: (-1, sum(float(upper[j, k]) * v for k, v in enumerate(vector))),
        )
        m.row = pyo.Constraint(
            range(rows),
            rule=lambda m, i: (
                sum(
                    (float(nominal[i, j]) + sum(float(moved[i, j, k]) * m.xi[k] for k in range(size))) * m.x[j]
                    for j in range(count)
                )
                <= sum(float(limits[i, k]) * v for k, v in enumerate(vector))
            ),
        )
        m.gain = pyo.Objective(
            expr=sum(float(gains[j, k]) * v * m.x[j] for j in range(count) for k, v in enumerate(vector)),
            sense=pyo.maximize,
        )
        return m

    low, high = -rng.uniform(0, 0.4, size), rng.uniform(0, 0.4, size)
    m = model(np.zeros(size))
    ours = osilp.solve(osilp.robustify(m, [(m.xi, BoxSet(list(zip(low, high, strict=True))))]))

    by_vertices = pyo.ConcreteModel()
    by_vertices.x = pyo.Var(range(count), bounds=(-1, None))
    by_vertices.worst = pyo.Var()
    by_vertices.rows = pyo.ConstraintList()
    for vertex in itertools.product(*zip(low, high, strict=True)):
        v = np.array([1, *vertex])
        for i in range(rows):
            coefficients = nominal[i] + moved[i] @ np.array(vertex)
            by_vertices.rows.add(sum(c * by_vertices.x[j] for j, c in enumerate(coefficients)) <= limits[i] @ v)
        for j in range(count):
            by_vertices.rows.add(by_vertices.x[j] <= upper[j] @ v)
        by_vertices.rows.add(by_vertices.worst <= sum(float(gains[j] @ v) * by_vertices.x[j] for j in range(count)))
    by_vertices.o = pyo.Objective(expr=by_vertices.worst, sense=pyo.maximize)
    exact = osilp.solve(by_vertices)
    assert ours.status == exact.status
    if exact.status == "optimal":
        assert ours.objective == pytest.approx(exact.objective, abs=1e-6)
        assert ours.certified


# -- refusals -------------------------------------------------------------------------------------------


def test_refusals():
    m = production()
    n = production()
    m.k = pyo.Param([0, 1], initialize=2.0)
    m.u = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)]), rule=lambda m, xi: m.x[0] >= xi[0] * m.demand[0])
    cases = [
        ([], "robustify: uncertain= names nothing; give pairs of a Param (or several, in the order of the vector) and its "
         "uncertainty set, such as [(m.demand, BoxSet(...))]."),
        ([m.demand], "robustify: uncertain= takes pairs of a Param (or several, in the order of the vector) and its "
         "uncertainty set, such as [(m.demand, BoxSet(...))] (got IndexedParam)."),
        ([(m.demand, [1, 2])], "robustify: 'demand' needs an uncertainty set of PyROS, or one of osilp.sets (got list)."),
        ([(m.demand, BoxSet([(0, 1)]))], "robustify: the set of 'demand' has vectors of 1 entries, for 3 (demand[0], "
         "demand[1], demand[2]); give as many as the set has, in its order."),
        ([(m.k, BoxSet([(0, 1)] * 2))], "robustify: the Param 'k' is not mutable, so that expressions hold its numbers "
         "and nobody can tell where; declare it with mutable=True."),
        ([(m.k[0], BoxSet([(0, 1)]))], "robustify: uncertain= holds the number 2.0: a member of a Param that is not "
         "mutable is a plain number in every expression. Declare the Param with mutable=True."),
        ([(m.meet, BOX)], "robustify: 'meet' is a IndexedConstraint; uncertain are Params with mutable=True, or fixed "
         "Vars."),
        ([(n.demand, BOX)], "robustify: 'demand[0]' belongs to another model."),
        ([([m.demand[0], m.demand[0]], BoxSet([(0, 1)] * 2))], "robustify: 'demand[0]' is named twice; it can lie in one "
         "set only."),
    ]  # fmt: skip
    for uncertain, text in cases:
        with pytest.raises(errors.DeclarationError) as caught:
            osilp.robustify(m, uncertain)
        assert str(caught.value) == text
    with pytest.raises(errors.DeclarationError) as caught:
        osilp.robustify(m, [(m.demand, BOX)], objective="best")
    assert str(caught.value) == ("robustify: objective must be one of 'worst', 'nominal', 'expected' (got 'best').")
    with pytest.raises(errors.ModelError) as caught:
        osilp.robustify(m, [(m.demand, BOX)])
    assert str(caught.value) == (
        "robustify: the SemiInfiniteConstraint 'u' holds the uncertain 'demand[0]'; declare it over the uncertainty set "
        "as well."
    )


def test_an_ellipsoid_is_a_cone():
    m = production()
    ball = AxisAlignedEllipsoidalSet(center=[1, 1, 1], half_lengths=[1, 1, 1])
    m.all = pyo.Constraint(expr=sum(m.x.values()) >= 3 * sum(m.demand.values()))
    robust = osilp.robustify(m, [(m.demand, ball)])
    result = osilp.solve(robust)
    assert result.objective == pytest.approx(9 + 3 * np.sqrt(3) + 2, rel=1e-6)
    assert result.certified
