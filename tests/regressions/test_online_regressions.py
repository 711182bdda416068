"""Models and data that once went wrong without a word: each keeps its right answer, or its refusal."""

import os

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_program
from osilp_pyomo.errors import CurvatureError, DataError, ModelError, OptionError, SavedStateError


def base(count=4):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(count)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.5 + 0.1 * t)
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: t / (count + 1))
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    return m


def kernel(m, u, t):
    return pyo.exp(-(((u - m.place[t]) / 0.2) ** 2))


def with_usage(m, limit=1.2):
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(kernel(m, u, t) * m.x[t] for t in m.T) <= limit)
    return m


def text_of(error, m, **options):
    with pytest.raises(error) as caught:
        osilp.compile_online(m, stages=m.T, **options)
    return str(caught.value)


def test_jumps_narrower_than_a_scan_are_seen():
    m = base(2)
    m.p = pyo.Param(m.T, mutable=True, initialize={1: 0.3, 2: 0.4999999})
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(pyo.Expr_if(abs(u - m.p[t]) <= 0.1, 1, 0) * m.x[t] for t in m.T) <= 1
    )
    program = osilp.compile_online(m, stages=m.T)
    assert program.solve_offline().objective == pytest.approx(osilp.solve(m, load=False).objective, abs=1e-7)


def test_own_rows_that_differ_in_kind_are_refused():
    m = with_usage(base())
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] == 0.5 if t == 1 else m.x[t] <= 0.5)
    assert (
        text_of(ModelError, m) == "Constraint 'own[2]': it is an equation in some stages and an inequality in others."
    )


def test_own_rows_use_their_own_data_only():
    m = with_usage(base())
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] <= m.place[5 - t])
    assert text_of(ModelError, m) == (
        "Constraint 'own[1]': a row of stage 1 uses data of stage 4; each arrival may use its own data only."
    )


def test_options_count_every_constant_of_their_row():
    m = base()
    m.y = pyo.Var(m.T, bounds=(0, 1))
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] + m.y[t] - 0.5 <= 1)
    m.reward.set_value(sum(m.value[t] * (m.x[t] + m.y[t]) for t in m.T))
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(kernel(m, u, t) * (m.x[t] + m.y[t]) for t in m.T) <= 10
    )
    program = osilp.compile_online(m, stages=m.T)
    assert program.stage_solver == "HiGHS LP"
    assert program.replay(osilp.Greedy()).decisions.sum(axis=1).tolist() == pytest.approx([1.5] * 4)


def test_arrays_come_in_the_order_of_the_set():
    m = with_usage(base(), 10)
    m.K = pyo.Set(initialize=["a", "b", "c"])
    m.fare = pyo.Param(m.T, m.K, mutable=True, initialize=0.0)
    m.y = pyo.Var(m.T, m.K, bounds=(0, 1))
    backwards = list(reversed(list(m.K)))
    m.reward.set_value(m.reward.expr + sum(m.fare[t, k] * m.y[t, k] for t in m.T for k in backwards))
    controller = osilp.compile_online(m, stages=m.T).controller(osilp.Greedy())
    data = {"value": 1.0, "place": 0.5}
    for fare in ([1, 0, -1], np.array([1.0, 0.0, -1.0]), {"a": 1, "b": 0, "c": -1}):
        decision = controller.decide(fare=fare, **data)
        assert [decision.x[("y", k)] for k in m.K] == [1.0, 0.0, 0.0]
    with pytest.raises(DataError) as caught:
        controller.decide(fare={"a": 1, "b": 0, "d": 1}, **data)
    assert str(caught.value) == "An arrival's 'fare' has no entry 'd'; its entries are 'a', 'b', 'c'."
    frame = pd.DataFrame({"value": [1.0], "place": [0.5], "fare": [{"a": -1, "b": 2, "c": 3}]})
    assert controller.steps(frame)[[("y", "a"), ("y", "b"), ("y", "c")]].to_numpy().tolist() == [[0.0, 1.0, 1.0]]


def test_curves_alone_are_data():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(4)
    m.a = osilp.Profile(m.T, over=m.u, points=np.linspace(0, 1, 5), initialize=lambda m, t: np.ones(5))
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.x.values()), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.a[t](u) * m.x[t] for t in m.T) <= 4)
    program = osilp.compile_online(m, stages=m.T)
    heavy = {"a": np.full((4, 5), 100.0)}
    assert program.replay(osilp.Greedy(), profiles=heavy).objective == pytest.approx(0.04)
    assert program.solve_offline(profiles=heavy).objective == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("within", "bad", "text"),
    [
        (pyo.PositiveReals, 0.0, "(0, inf)"),
        (pyo.RangeSet(0, 1, 0) | pyo.RangeSet(5, 6, 0), 3.0, "[0, 1] or [5, 6]"),
        (pyo.NonNegativeIntegers, 1.5, "whole numbers in [0, inf)"),
        (pyo.Binary, 2.0, "whole numbers in [0, 1]"),
    ],
)
def test_within_is_enforced(within, bad, text):
    m = with_usage(base())
    m.extra = pyo.Param(m.T, mutable=True, within=within, initialize=1)
    m.reward.set_value(m.reward.expr + sum(m.extra[t] * m.x[t] for t in m.T))
    controller = osilp.compile_online(m, stages=m.T).controller(osilp.Greedy())
    with pytest.raises(DataError) as caught:
        controller.step(value=1.0, place=0.5, extra=bad)
    assert str(caught.value) == f"An arrival's 'extra' must lie in {text} (got {bad:g})."


def test_constants_of_stage_terms_come_with_every_arrival():
    m = base(3)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(kernel(m, u, t) * m.x[t] - 0.1 for t in m.T) <= 3 + 0 * u
    )
    m.reward.set_value(sum(m.value[t] * m.x[t] + 1 for t in m.T) + 5)
    program = osilp.compile_online(m, stages=m.T, horizon=30)
    data = pd.DataFrame({"value": np.zeros(30), "place": np.full(30, 0.5)})
    assert program.solve_offline(data).objective == pytest.approx(35)
    # 3 for the horizon and 0.1 more with each of 30 arrivals.
    data["value"] = 1.0
    assert program.solve_offline(data).objective == pytest.approx(35 + 6, abs=1e-6)


@pytest.mark.parametrize("rule", [
    lambda m, u: sum(kernel(m, u, t) * m.x[t] for t in m.T) >= 0.1,
    lambda m, u: (0.01, sum(kernel(m, u, t) * m.x[t] for t in m.T), 2),
    lambda m, u: sum((kernel(m, u, t) + pyo.Expr_if(abs(u - 0.32) <= 0.001, 0.1, 0)) * m.x[t] for t in m.T) <= 2,
    lambda m, u: sum(m.curve[t](u * 0.5) * m.x[t] for t in m.T) <= 2 + 0 * u,
    lambda m, u: sum(m.shared(u * m.place[t]) * m.x[t] for t in m.T) <= 2 + 0 * u,
    lambda m, u: sum(kernel(m, u, t) * m.x[t] for t in m.T) <= sum(m.place[t] for t in m.T) + u,
    lambda m, u: sum(kernel(m, u, t) * m.x[t] for t in m.T) <= 1 + sum(m.place[t] * u for t in m.T),
])  # fmt: skip
def test_rows_of_many_forms_agree_with_the_offline_solve(rule):
    m = base()
    m.curve = osilp.Profile(m.T, over=m.u, points=[0, 0.5, 1], initialize=lambda m, t: [1, t, 2])
    m.shared = osilp.Profile(over=m.u, initialize=lambda u: 1 + u**2)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    program = osilp.compile_online(m, stages=m.T)
    expected = osilp.solve(m, load=False).objective
    assert program.solve_offline().objective == pytest.approx(expected, rel=1e-7)
    assert len(program.describe()) > 200
    program.replay(osilp.MirrorDescent())


def test_blocks_within_blocks():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.Set(initialize=["p", "q", "r"])

    @m.Block(m.T)
    def stage(b, t):
        b.value = pyo.Param(mutable=True, initialize={"p": 1.0, "q": 2.0, "r": 3.0}[t])
        b.inner = pyo.Block()
        b.inner.size = pyo.Param(mutable=True, initialize=1.0)
        b.x = pyo.Var(bounds=(0, 1))

    m.reward = pyo.Objective(expr=sum(m.stage[t].value * m.stage[t].x for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.stage[t].inner.size * (1 + u) * m.stage[t].x for t in m.T) <= 3
    )
    program = osilp.compile_online(m, stages=m.T)
    assert program.data.to_dict("list") == {"value": [1.0, 2.0, 3.0], "size": [1.0, 1.0, 1.0]}
    assert "decide    x in [0, 1]" in program.describe()
    assert program.solve_offline().objective == pytest.approx(4.0)


def test_data_that_are_no_numbers_are_refused_and_change_nothing():
    controller = osilp.compile_online(*(lambda m: (m, m.T))(with_usage(base()))).controller(osilp.Resolve())
    controller.step(value=1.0, place=0.5)
    before = controller.dual.copy(), controller.t, controller.remaining.copy()
    for bad in (True, np.True_, np.array("0.5"), np.complex128(1), np.datetime64("2026-01-01"), "1", [1.0], 10**400):
        with pytest.raises(DataError):
            controller.step(value=bad, place=0.5)
    for column in (["1", "2"], [True, False], pd.to_datetime(["2026-01-01", "2026-01-02"])):
        with pytest.raises(DataError):
            controller.steps(pd.DataFrame({"value": column, "place": [0.5, 0.5]}))
    assert np.array_equal(before[0], controller.dual)
    assert before[1] == controller.t
    assert before[2].equals(controller.remaining)


def test_steps_that_fail_in_the_middle_change_nothing():
    m = base(20)
    m.cap = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] >= m.cap[t])
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(kernel(m, u, t) * m.x[t] for t in m.T) <= 50)
    program = osilp.compile_online(m, stages=m.T)
    for policy in (osilp.MirrorDescent(), osilp.Resolve()):
        controller = program.controller(policy, "none")
        data = pd.DataFrame({"value": 1.0, "place": 0.5, "cap": [0.5, 0.5, 2.0]})
        dual = controller.dual.copy()
        with pytest.raises(DataError):
            controller.steps(data)
        assert controller.t == 0
        assert np.array_equal(controller.dual, dual)
        assert len(controller.steps(data.iloc[:2])) == 2


def test_wrong_curvature_far_down_the_arrivals_is_refused():
    m = with_usage(base(30))
    m.bend = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 1.0 if t == 29 else -1.0)
    m.reward.set_value(sum(m.bend[t] * m.x[t] ** 2 for t in m.T))
    assert text_of(CurvatureError, m).startswith("The objective is not concave in the decision: for the arrival 29")
    m.bend[29] = -1.0
    program = osilp.compile_online(m, stages=m.T)
    with pytest.raises(CurvatureError):
        program.controller(osilp.Greedy()).step(bend=1.0, place=0.5)


def test_kinks_do_not_make_newton_go_to_and_fro():
    m = base(5)
    m.x.setub(3)
    m.reward.set_value(sum(-((m.x[t] - 1) ** 2) - abs(m.x[t] - 1) for t in m.T))
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) <= 100)
    program = osilp.compile_online(m, stages=m.T)
    assert program.replay(osilp.Greedy()).decisions.tolist() == pytest.approx([1.0] * 5, abs=1e-9)
    assert program.solve_offline(method="projected").objective == pytest.approx(0.0, abs=1e-9)


def test_demand_that_costs_nothing_at_first_is_met():
    m = base(20)
    m.reward.deactivate()
    m.pay = pyo.Objective(expr=sum(m.value[t] * m.x[t] ** 2 for t in m.T))
    m.cover = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(kernel(m, u, t) * m.x[t] for t in m.T) >= 1)
    program = osilp.compile_online(m, stages=m.T)
    for method in ("projected", "exchange"):
        found = program.solve_offline(method=method)
        assert found.status == "optimal"
        assert found.objective > 0.1
        assert found.bound == pytest.approx(found.objective, rel=1e-5)


@pytest.mark.parametrize(("asked", "told"), [("highs", "HiGHS LP"), ("appsi_highs", "the Pyomo solver appsi_highs")])
def test_a_stage_solver_can_be_asked_for(asked, told):
    m = with_usage(base())
    program = osilp.compile_online(m, stages=m.T, stage_solver=asked)
    assert program.stage_solver == told
    run, same = (each.replay(osilp.MirrorDescent()) for each in (program, osilp.compile_online(m, stages=m.T)))
    np.testing.assert_allclose(run.decisions, same.decisions, atol=1e-7)


def test_a_pyomo_solver_solves_quadratic_stages():
    m = with_usage(base())
    m.reward.set_value(sum(m.value[t] * m.x[t] - m.x[t] ** 2 for t in m.T))
    plain = osilp.compile_online(m, stages=m.T)
    batch, price = plain.batch(), np.full(plain.evaluator.resources["projected"].size, 0.05)
    weights = batch.rewards - batch.use["projected"] @ price
    named = osilp.compile_online(m, stages=m.T, stage_solver="slsqp")
    np.testing.assert_allclose(named.solver.best(batch, weights, []), plain.solver.best(batch, weights, []), atol=1e-6)


def test_a_stage_solver_that_is_not_there_is_refused():
    m = with_usage(base())
    assert text_of(OptionError, m, stage_solver="nosuchsolver") == (
        "stage_solver='nosuchsolver' is neither 'closed form', 'highs', 'newton' nor 'slsqp', and no Pyomo solver of that "
        "name is available here."
    )


# -- guards and warm starts that once failed without a word ------------------------------------------------


def test_guards_count_what_is_used_whatever_is_decided():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.v = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.c = pyo.Param(m.T, mutable=True, initialize=0.1)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.v[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[t] + m.c[t] for t in m.T) <= 1 + 0 * u)
    program = osilp.compile_online(m, stages=m.T)
    for policy in (osilp.Greedy(), osilp.SimpleGD()):
        for guard in ("pointwise", "projected"):
            assert program.controller(policy, guard, null=0.0).step(v=1.0, c=0.8).x == pytest.approx(0.2)


def test_functions_as_curves_are_told_apart():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.v = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.a = osilp.Profile(m.T, over=m.u, initialize=lambda m, t: lambda u: 1 + u)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.v[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.a[t](u) * m.x[t] for t in m.T) <= 40)
    controller = osilp.compile_online(m, stages=m.T, horizon=40).controller(osilp.Resolve())
    for slope in np.linspace(0, 8, 30):
        controller.step(v=1.0, a=lambda u, slope=slope: 1 + slope * u)
    assert controller._live.history.size == 30


def test_rows_without_budget_stay_guarded():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.b = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.x.values()), sense=pyo.maximize)
    m.balance = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum((m.a[t] + m.b[t] * u) * m.x[t] for t in m.T) <= 0
    )
    controller = osilp.compile_online(m, stages=m.T).controller(osilp.Greedy())
    controller.step(a=-0.09, b=-1.0)
    controller.step(a=0.7, b=0.3)
    assert controller.step(a=1.0, b=-1.0).x == 0.0
    assert controller.point_remaining.min() > -1e-12


def test_caution_and_guards_stay_within_bounds():
    m = with_usage(base(3), 2.3)
    m.x.setlb(1)
    m.x.setub(2)
    program = osilp.compile_online(m, stages=m.T, horizon=100)
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"value": rng.uniform(size=100), "place": rng.uniform(size=100)})
    assert program.replay(osilp.Resolve(exact=True), data).decisions.between(1, 2).all()
    m = base(3)
    m.low = pyo.Param(m.T, mutable=True, initialize=0.0)
    m.x.setlb(None)
    for t in m.T:
        m.x[t].setlb(m.low[t])
    controller = osilp.compile_online(with_usage(m), stages=m.T).controller(osilp.Greedy())
    with pytest.raises(DataError) as caught:
        controller.step(value=1.0, place=0.5, low=0.5)
    assert str(caught.value) == (
        "guard='pointwise': the arrival 0 does not allow the null action that a guard falls back to where nothing fits; name "
        "another by null=..., or use guard='none'."
    )


def test_warm_starts_keep_places_and_ordinary_rows():
    m = with_usage(base(20), 2.0)
    m.total = pyo.Constraint(expr=sum(m.x.values()) <= 3)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.Dirac([0.1, 0.5, 0.9]), grid=osilp.Midpoint(50))
    best = program.solve_offline()
    dual = program.controller(osilp.FixedPrice(), "none", warm_start=best).dual
    assert dual[-1] / program.evaluator.resources["projected"].unit[-1] == pytest.approx(best.dual("total"))
    points = program.controller(osilp.SimpleGD(), "none", warm_start=best).price
    assert points.integrate(lambda u: u) == pytest.approx(best.price.integrate(lambda u: u), abs=0.02)


def test_overruns_of_ordinary_rows_are_told():
    m = with_usage(base(20), 100.0)
    m.total = pyo.Constraint(expr=sum(m.x.values()) <= 3)
    run = osilp.compile_online(m, stages=m.T).replay(osilp.Greedy(), guard="none")
    assert run.violation == 0.0
    assert run.row_violation["total"] == pytest.approx(17.0)
    assert "17 of the row 'total'" in str(run)
    assert run.test_violation == 0.0


def test_a_held_price_is_that_of_the_first():
    m = with_usage(base(30), 1.0)
    program = osilp.compile_online(m, stages=m.T)
    for policy in (osilp.MirrorDescent("entropy"), osilp.MirrorDescent()):
        controller = program.controller(policy)
        for start in range(0, 20, 5):
            data = program.data.iloc[start : start + 5]
            first = controller.decide(data.iloc[0]).x
            assert controller.steps(data, hold_price=True).x.iloc[0] == pytest.approx(first)
    # A policy that learns from samples has no price at first, and begins with one of the batch.
    controller = program.controller(osilp.Resolve())
    assert controller.decide(program.data.iloc[0]).x > 0
    assert controller.steps(program.data.iloc[:5], hold_price=True).x.iloc[0] == 0


def test_concave_stages_with_ordinary_rows_alone():
    m = base(6)
    m.reward.set_value(sum(pyo.log(1 + m.value[t] * m.x[t]) for t in m.T))
    m.total = pyo.Constraint(expr=sum(m.x.values()) <= 2)
    program = osilp.compile_online(m, stages=m.T)
    exact, projected = (program.solve_offline(method=method) for method in ("exchange", "projected"))
    assert exact.objective == pytest.approx(projected.objective)
    # Equal arrivals but for their value: v / (1 + v x) is the same for all that are served, and the x add up to 2.
    slopes = [pyo.value(m.value[t]) / (1 + pyo.value(m.value[t]) * exact.values[f"x @ {t}"]) for t in m.T]
    served = [slope for t, slope in zip(m.T, slopes, strict=True) if 1e-6 < exact.values[f"x @ {t}"] < 1 - 1e-6]
    assert served == pytest.approx([exact.dual("total")] * len(served), rel=1e-5)
    assert exact.values.sum() == pytest.approx(2.0)


def test_the_audit_finds_out_a_stage_solver_that_is_wrong():
    m = with_usage(base(10))
    m.reward.set_value(sum(pyo.log(1 + m.value[t] * m.x[t]) for t in m.T))
    program = osilp.compile_online(m, stages=m.T)
    assert program.solve_offline(method="projected").audit.dual_infeasibility < 1e-9

    class Timid(type(program.solver)):
        def best(self, batch, weights, densities):
            return 0.9 * super().best(batch, weights, densities)

    program.solver = Timid(program.evaluator)
    with pytest.warns(osilp.errors.AccuracyWarning):
        assert program.solve_offline(method="projected").status == "inaccurate"


def test_a_policy_that_prices_something_else_is_refused_in_words():
    class Elsewhere(osilp.Greedy):
        view = "nonsense"

    program = demo_program()
    with pytest.raises(osilp.errors.OptionError) as error:
        program.replay(Elsewhere())
    assert str(error.value) == f"{Elsewhere()!r}: view must be 'projected' or 'pointwise' (got 'nonsense')."


def test_the_older_word_for_the_pointwise_view_still_works():
    class AtPoints(osilp.GradientDescent):
        view = "points"

    class Pointwise(osilp.GradientDescent):
        view = "pointwise"

    program = demo_program()
    old, new = program.replay(AtPoints()), program.replay(Pointwise())
    assert old.decisions.tolist() == new.decisions.tolist()


@pytest.mark.parametrize("solver", ["newton", "slsqp"])
def test_a_price_stays_what_it_was_where_nothing_keeps_the_budget(solver):
    """The dual of concave stages on a budget below zero leads down without end; when there is plenty again, all go on."""
    m = with_usage(base(3), 5)
    m.reward.set_value(sum(pyo.log(1 + m.value[t] * m.x[t]) for t in m.T))
    program = osilp.compile_online(
        m, stages=m.T, horizon=40, basis=osilp.RBF(4), grid=osilp.Midpoint(50), stage_solver=solver
    )
    rng = np.random.default_rng(1)
    controller, taken, prices = program.controller(osilp.Resolve(), "pointwise"), [], []
    for t in range(40):
        if t == 5:
            controller.add_budget("usage", -20.0)
        if t == 12:
            controller.add_budget("usage", 30.0)
        taken.append(controller.step(value=rng.uniform(0.5, 1), place=rng.uniform()).x)
        prices.append(controller.dual.max())
    assert max(prices) < 10
    assert max(taken[5:12]) == 0.0
    assert sum(taken[12:]) > 10


def broken(at):
    raise LookupError("no such place")


@pytest.mark.parametrize(
    ("error", "call", "text"),
    [
        (
            OptionError,
            lambda c: c.revise(10**400),
            "revise: horizon must be at most 9007199254740992, which is as far as is counted (got a whole number of about "
            "400 digits).",
        ),
        (
            OptionError,
            lambda c: c.revise(2**60),
            "revise: horizon must be at most 9007199254740992, which is as far as is counted (got 1152921504606846976).",
        ),
        (
            OptionError,
            lambda c: c.revise(-(10**5000)),
            "revise: horizon must be a whole number >= 1 (got a whole number of about 5000 digits).",
        ),
        (
            OptionError,
            lambda c: c.add_budget("usage", 10**400),
            "add_budget: the amount for 'usage' must be a finite number (got a whole number of about 400 digits).",
        ),
        (
            OptionError,
            lambda c: c.add_budget("usage", broken),
            "add_budget: the function for 'usage' gives no numbers (LookupError: no such place); it must give one for each "
            "point of the index.",
        ),
        (
            DataError,
            lambda c: c.update(value=0.5, place=0.5, x=[[1], [1, 2]]),
            "x must be numbers (got [[1], [1, 2]]).",
        ),
        (
            DataError,
            lambda c: c.update(value=0.5, place=0.5, x=pd.Series([1.0, 0.0], index=["x", "x"])),
            "x must have exactly the entries 'x' (got 'x', 'x').",
        ),
        (
            DataError,
            lambda c: c.decide(pd.Series([0.9, 0.5, 0.0], index=["value", "place", "value"])),
            "An arrival: the Series has two entries 'value'; give each once.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(error, call, text):
    program = demo_program()
    controller = program.controller(osilp.MirrorDescent())
    controller.step(value=0.5, place=0.5)
    before = (
        controller.t,
        controller.horizon,
        controller.reward,
        controller.dual.tolist(),
        controller.remaining.tolist(),
    )
    with pytest.raises(error) as caught:
        call(controller)
    assert str(caught.value) == text
    assert before == (
        controller.t, controller.horizon, controller.reward, controller.dual.tolist(), controller.remaining.tolist()
    )  # fmt: skip


def test_an_entry_twice_that_is_no_data_is_let_be():
    row = pd.Series([0.9, 0.5, 1.0, 2.0], index=["value", "place", "note", "note"])
    assert demo_program().controller(osilp.MirrorDescent()).decide(row).x == 1.0


def test_a_number_is_no_path_of_a_controller(tmp_path):
    program = demo_program()
    controller = program.controller(osilp.Greedy(), seed=2**60)
    controller.revise(2**53)
    controller.save(tmp_path / "state.npz")
    again = osilp.load_controller(tmp_path / "state.npz", program)
    assert (again.horizon, again.seed) == (2**53, 2**60)
    descriptor = os.open(tmp_path / "state.npz", os.O_RDONLY)
    with pytest.raises(SavedStateError) as caught:
        osilp.load_controller(descriptor, program)
    assert str(caught.value) == f"load_controller: the path of a file is needed (got {descriptor})."
    os.close(descriptor)
