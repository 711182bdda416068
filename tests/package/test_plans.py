"""Plans against each other out of sample."""

import matplotlib.figure
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet

import osilp_pyomo as osilp
from osilp_pyomo import errors


def shop(sense=pyo.minimize):
    """Two weeks of demand for one product: made beforehand, or bought at twice the price once demand is seen."""
    m = pyo.ConcreteModel()
    m.P = pyo.Set(initialize=[0, 1])
    m.demand = pyo.Param(m.P, initialize={0: 4, 1: 6}, mutable=True)
    m.make = pyo.Var(m.P, bounds=(0, 10))
    m.buy = pyo.Var(m.P, bounds=(0, 10))
    m.meet = pyo.Constraint(m.P, rule=lambda m, p: m.make[p] + m.buy[p] >= m.demand[p])
    sign = 1 if sense == pyo.minimize else -1
    m.cost = pyo.Objective(expr=sign * sum(m.make[p] + 2 * m.buy[p] for p in m.P), sense=sense)
    return m


DEMAND = BoxSet([(2, 6), (4, 8)])
DRAWS = pd.DataFrame({"xi[0]": [2.0, 4.0, 6.0, 5.0], "xi[1]": [4.0, 6.0, 8.0, 6.0]}, index=list("abcd"))


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_costs_and_violations_worked_by_hand(sense):
    m = shop(sense)
    static = osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)]))
    compared = osilp.compare_plans({"nominal": osilp.solve(m, load=False), "robust": static}, DRAWS)
    sign = 1 if sense == pyo.minimize else -1
    nominal = compared.frame[compared.frame["plan"] == "nominal"]
    assert nominal["draw"].tolist() == list("abcd")
    assert nominal["cost"].to_numpy() == pytest.approx(sign * np.full(4, 10.0))
    # Demands of 6 and 5 where 4 was made; the rows' sizes are the demands.
    assert nominal["violation"].to_numpy() == pytest.approx([0, 0, 2 / 6, 1 / 5], rel=1e-3)
    assert nominal["violated"].tolist() == [False, False, True, True]
    told = compared.summary
    assert told.loc["robust", "mean"] == pytest.approx(sign * 14.0)
    assert told.loc["robust", "difference"] == pytest.approx(sign * 4.0)
    assert told.loc["robust", "violated"] == 0
    assert told.loc["nominal", ["violated", "worst_violation"]].tolist() == pytest.approx([0.5, 1 / 3], rel=1e-3)


def test_rules_are_followed_and_numbers_stay():
    m = shop()
    rules = osilp.robustify(m, [(m.demand, DEMAND)], [m.buy])
    plans = {"numbers": osilp.solve(m, load=False), "rules": osilp.solve(rules)}
    compared = osilp.compare_plans(plans, DRAWS)
    assert compared.rows == "rules"
    own = plans["rules"].simulate(DRAWS)
    found = compared.frame[compared.frame["plan"] == "rules"]
    assert found["cost"].to_numpy() == pytest.approx(own["cost"].to_numpy())
    numbers = compared.frame[compared.frame["plan"] == "numbers"]
    assert numbers["violated"].tolist() == [False, False, True, True]


def test_plans_are_judged_by_the_rows_that_hold_all_rules():
    """A static plan comes first; its rows know no rule that uses what is seen."""
    m = shop()
    plans = {
        "static": osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)], [m.buy], basis="constant")),
        "affine": osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)], [m.buy])),
    }
    compared = osilp.compare_plans(plans, DRAWS)
    assert compared.rows == "affine"
    assert not compared.frame["violated"].any()
    for name, plan in plans.items():
        mine = compared.frame[compared.frame["plan"] == name]
        assert mine["cost"].to_numpy() == pytest.approx(plan.simulate(DRAWS)["cost"].to_numpy())
    with pytest.raises(errors.ModelError) as refused:
        osilp.compare_plans(plans, DRAWS, rows="static")
    assert str(refused.value) == (
        "compare_plans: plan 'affine': the rule of 'buy[0]' uses demand[0], which the rule of the rows does not; take the "
        "rows of the plan with the richest rules by rows=."
    )


def test_equations_are_violated_by_numbers_that_cannot_follow():
    """A stock that is a number does not balance when demand is another."""
    m = pyo.ConcreteModel()
    m.demand = pyo.Param(initialize=5, mutable=True)
    m.make, m.stock = pyo.Var(bounds=(0, 20)), pyo.Var(bounds=(0, 20))
    m.balance = pyo.Constraint(expr=m.stock == m.make - m.demand)
    m.cost = pyo.Objective(expr=m.make + m.stock)
    robust = osilp.robustify(m, [(m.demand, BoxSet([(4, 6)]))], [m.stock])
    plans = {"nominal": osilp.solve(m, load=False), "robust": osilp.solve(robust)}
    frame = osilp.compare_plans(plans, pd.DataFrame([[4.0], [5.0], [6.0]], index=["day"] * 3)).frame
    assert frame["violated"].tolist() == [True, False, True, False, False, False]


def test_variables_that_are_fixed_are_decisions_too():
    """What one plan fixed is a decision at the rows of another; rows in which it is another number cannot judge it."""
    m = shop()
    free = osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)]))
    m.buy[0].fix(3.0)
    fixed = osilp.solve(m, load=False)
    compared = osilp.compare_plans({"fixed": fixed, "free": free}, DRAWS)
    told = compared.frame[compared.frame["plan"] == "fixed"]
    assert told["cost"].to_numpy() == pytest.approx(np.full(4, 1 + 2 * 3 + 6.0))
    assert told["violation"].to_numpy() == pytest.approx([0, 0, 2 / 6, 1 / 5], rel=1e-3)
    m.buy[0].fix(0.0)
    other = osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)]))
    with pytest.raises(errors.ModelError) as refused:
        osilp.compare_plans({"fixed": fixed, "other": other}, DRAWS)
    assert str(refused.value) == (
        "compare_plans: plan 'fixed': its 'buy[0]' is 3, and the rows were made with 0, at which it was fixed there; take "
        "the rows of a plan in which it is free by rows=."
    )
    # Rows that can judge them all are looked for.
    assert osilp.compare_plans({"fixed": fixed, "other": other, "free": free}, DRAWS).rows == "free"


def test_rows_that_know_all_that_is_drawn_judge_in_any_order():
    m = shop()
    m.price = pyo.Param(initialize=2, mutable=True)
    m.cost.set_value(sum(m.make[p] + m.price * m.buy[p] for p in m.P))
    m.make.setub(2)
    prices = (m.price, BoxSet([(1, 3)]))
    plans = {
        "nominal": osilp.solve(m, load=False),
        "demand": osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)])),
        "both": osilp.solve(osilp.robustify(m, [(m.demand, DEMAND), prices])),
    }
    draws = pd.DataFrame({"demand[0]": [2.0, 4.0], "demand[1]": [4.0, 6.0], "price": [1.0, 3.0]})
    for names in (["nominal", "demand", "both"], ["both", "demand", "nominal"]):
        compared = osilp.compare_plans({name: plans[name] for name in names}, draws)
        assert compared.rows == "both"
        nominal = compared.frame[compared.frame["plan"] == "nominal"]
        # Two are made of each, and 2 and 4 bought.
        assert nominal["cost"].to_numpy() == pytest.approx([4 + 6.0, 4 + 18.0])
    assert osilp.compare_plans(plans, draws, rows="demand").rows == "demand"


def test_a_decision_without_bounds_below_its_worst_case_is_not_changed_by_the_draw():
    """What is made is paid for, whether it is needed or not; a variable that stands for a worst case is not."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, None))
    m.meet = osilp.SemiInfiniteConstraint(BoxSet([(4, 6)]), rule=lambda m, xi: m.x >= xi[0])
    m.cost = pyo.Objective(expr=2 * m.x)
    assert osilp.solve(m).simulate([[4.0], [5.0]])["cost"].tolist() == pytest.approx([12.0, 12.0])
    m.t = pyo.Var()
    m.pays = osilp.SemiInfiniteConstraint(BoxSet([(4, 6)]), rule=lambda m, xi: m.t >= xi[0] * m.x)
    m.cost.set_value(m.t)
    told = osilp.solve(m).simulate([[4.0], [5.0], [9.0]])
    assert told["cost"].tolist() == pytest.approx([24.0, 30.0, 54.0])
    # The row of the worst case says what the cost is, and is not violated by a draw outside of the set; the other is.
    assert told["violation"].tolist() == pytest.approx([0.0, 0.0, 1 / 3], rel=1e-3)


def test_what_is_no_plan_is_refused():
    m = shop()
    nominal = osilp.solve(m, load=False)
    robust = osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)]))
    other = pyo.ConcreteModel()
    other.z = pyo.Var(bounds=(0, 1))
    other.o = pyo.Objective(expr=other.z)
    refused = {
        "compare_plans: plans must be a dict of results by the plan's name (got list), such as {'nominal': r0, "
        "'robust': r1}.": ([nominal], DRAWS, {}),
        "compare_plans: plan 'a' must be what solve gives back (got int).": ({"a": 3}, DRAWS, {}),
        "compare_plans: no plan has rows over an uncertainty set, so that nothing says what a draw changes; give the "
        "result of the robust model, or of robustify, among them.": ({"a": nominal}, DRAWS, {}),
        "compare_plans: rows must name a plan with rows over an uncertainty set ('r'; got 'n').": (
            {"n": nominal, "r": robust}, DRAWS, {"rows": "n"},
        ),
        "compare_plans: plan 'other': it has no value for 'make[0]'.": (
            {"r": robust, "other": osilp.solve(other)}, DRAWS, {},
        ),
        "compare_plans: there are no draws; give at least one vector.": ({"r": robust}, DRAWS.iloc[:0], {}),
        "compare_plans: some plans minimize and some maximize, so that their costs are not the same thing.": (
            {"r": robust, "o": osilp.solve(shop(pyo.maximize))}, DRAWS, {},
        ),
    }  # fmt: skip
    for text, (plans, draws, options) in refused.items():
        with pytest.raises(errors.OsilpError) as error:
            osilp.compare_plans(plans, draws, **options)
        assert str(error.value) == text


def test_the_picture_shows_the_frame():
    m = shop()
    plans = {"nominal": osilp.solve(m, load=False), "robust": osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)]))}
    figure = osilp.compare_plans(plans, DRAWS).plot()
    cost, violated = figure.axes
    assert [label.get_text() for label in cost.get_yticklabels()] == ["nominal", "robust"]
    assert [bar.get_width() for bar in violated.patches] == pytest.approx([50.0, 0.0])
    assert [text.get_text() for text in violated.texts] == [" 50.0 %", " 0.0 %"]


def test_the_picture_goes_into_a_figure_of_ones_own():
    m = shop()
    above, below = matplotlib.figure.Figure(layout="constrained").subfigures(2, 1)
    robust = osilp.solve(osilp.robustify(m, [(m.demand, DEMAND)]))
    assert osilp.compare_plans({"robust": robust}, DRAWS).plot(figure=below) is below
    assert (len(above.axes), len(below.axes)) == (0, 2)
    below.figure.canvas.draw()
