"""Guards beyond packing: rows that need something, and stages that must serve."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.online import needs

POLICIES = [osilp.Greedy(), osilp.MirrorDescent(), osilp.Resolve(), osilp.SimpleGD()]


# -- covering ---------------------------------------------------------------------------------------


def road(domain=pyo.Binary, horizon=1000, half=0.05, needed=2.0, grid=200):
    """Crews that cover an interval around a place; every point of a road is to be covered so often, as cheaply as can be."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.cost = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, domain=domain)
    m.pay = pyo.Objective(expr=sum(m.cost[t] * m.x[t] for t in m.T))

    @m.SemiInfiniteConstraint(m.u)
    def cover(m, u):
        near = (pyo.Expr_if(pyo.inequality(m.place[t] - half, u, m.place[t] + half), 1.0, 0.0) for t in m.T)
        return sum(each * m.x[t] for t, each in zip(m.T, near, strict=True)) >= needed

    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=osilp.Midpoint(grid), basis=osilp.Hat(10))


def crews(seed, count=1000):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"cost": rng.uniform(0.2, 2, count), "place": rng.uniform(size=count)})


def covered(data, x, half=0.05):
    """How often the least covered point of the road is: between all ends of intervals, and at them."""
    low, high = data.place.to_numpy() - half, data.place.to_numpy() + half
    ends = np.unique(np.clip(np.concatenate([[0, 1], low, high, np.nextafter(low, -1), np.nextafter(high, 2)]), 0, 1))
    return float((((low <= ends[:, None]) & (ends[:, None] <= high)) @ x).min())


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("domain", [pyo.Binary, pyo.UnitInterval], ids=["whole", "parts"])
def test_every_point_of_a_road_is_covered(policy, domain):
    program, data = road(domain), crews(1)
    run = program.replay(policy, data)
    assert run.guard == "pointwise"
    assert covered(data, run.decisions.to_numpy()) >= 2 - 1e-9
    # Without the guard most of it is not.
    assert covered(data, program.replay(osilp.Greedy(), data, "none").decisions.to_numpy()) == 0


def test_what_is_covered_anyway_is_left_to_the_price():
    """Crews that earn something are taken by their price, and no more than those are needed."""
    program, data = road(), crews(2).assign(cost=-1.0)
    run = program.replay(osilp.Greedy(), data)
    assert run.counts == {"priced": 1000}


def test_a_covering_guard_waits_while_enough_can_come():
    program, data = road(), crews(3)
    run = program.replay(osilp.Greedy(), data)
    first = int(np.argmax(run.reasons.to_numpy() == "guard"))
    assert first > 600


def test_few_arrivals_are_no_promise():
    """After one arrival that offers 1 nobody knows that 99 more will; after many nearly as much comes as they say."""
    one = needs.count_offer(np.zeros((2, 1)), np.ones(1))
    assert needs.surely_coming(one, 1, 99) < 1
    assert needs.surely_coming(500 * one, 500, 500) == pytest.approx(500 - 4 * np.sqrt(500), abs=10)


def test_a_short_road_with_a_quarter_of_room_is_covered():
    program = road(pyo.UnitInterval, horizon=100, needed=4.0, grid=100)
    tried = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        data = pd.DataFrame({"place": rng.uniform(-0.05, 1.05, 100), "cost": rng.uniform(0.2, 2, 100)})
        if covered(data, np.ones(100)) >= 5:
            tried += 1
            assert covered(data, program.replay(osilp.MirrorDescent(), data).decisions.to_numpy()) >= 4 - 1e-9
    assert tried > 10


def test_both_limits_of_a_row_are_guarded():
    """At least 1 and at most 2 everywhere: the guard of the upper limit has the last word."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.gain = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.slope = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.gain[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.band = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: (1, sum(0.02 * (1 + m.slope[t] * u) * m.x[t] for t in m.T), 2)
    )
    program = osilp.compile_online(m, stages=m.T, horizon=200, basis=osilp.Hat(3), grid=50)
    rng = np.random.default_rng(0)
    for sign in (1, -1):
        data = pd.DataFrame({"gain": sign * rng.uniform(0.5, 1, 200), "slope": rng.uniform(0, 0.5, 200)})
        run = program.replay(osilp.Greedy(), data)
        use = (0.02 * run.decisions.to_numpy()) @ (1 + data.slope.to_numpy()[:, None] * np.linspace(0, 1, 101))
        assert use.min() >= 1 - 1e-9
        assert use.max() <= 2 + 1e-9


def test_a_covering_controller_goes_on_where_it_was_saved(tmp_path):
    program, data = road(horizon=300, grid=50), crews(4, 300)
    whole = program.replay(osilp.MirrorDescent(), data)
    controller = program.controller(osilp.MirrorDescent())
    taken = [controller.step(**row).x for row in data.iloc[:170].to_dict("records")]
    controller.save(tmp_path / "state.npz")
    again = osilp.load_controller(tmp_path / "state.npz", program)
    taken += again.steps(data.iloc[170:])["x"].tolist()
    assert taken == whole.decisions.tolist()


def test_nothing_changes_where_a_decision_is_only_asked_for():
    controller = road(horizon=20, grid=50).controller(osilp.Greedy())
    before = controller.decide(cost=1.0, place=0.5)
    assert [controller.decide(cost=1.0, place=0.5) for _ in range(3)] == [before] * 3
    assert controller.t == 0


def test_offers_are_what_a_stage_can_add():
    offers = needs.count_offer(np.zeros((2, 2)), np.array([1.0, 0.0]))
    for _ in range(99):
        offers = needs.count_offer(offers, np.array([0.0, 0.5]))
    # A hundredth of the arrivals offers 1: a hundred more may bring none of it.
    coming = needs.surely_coming(offers, 100, 1000)
    assert coming[0] == 0.0
    # The others are counted as if five more had come that offer nothing.
    assert coming[1] == pytest.approx(1000 * 49.5 / 105 - 4 * np.sqrt(1000 * 24.75 / 105))


def test_what_can_come_must_be_bounded():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.cost = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, None))
    m.pay = pyo.Objective(expr=sum(m.cost[t] * m.x[t] for t in m.T))
    m.cover = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) >= 1)
    program = osilp.compile_online(m, stages=m.T)
    assert program.default_guard == "none"
    for null in ({}, {"null": 1.0}):
        with pytest.raises(OptionError) as caught:
            program.controller(osilp.MirrorDescent(), "pointwise", **null)
        assert str(caught.value) == (
            "guard='pointwise' is not possible, because the row 'cover' needs something from the beginning, and what can "
            "still come is not known, for the decision 'x' has no upper bound; use guard='none'."
        )


def test_an_upper_bound_that_comes_with_the_data_must_be_finite():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.size = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=lambda m, t: (0, 1 / m.size[t]))
    m.pay = pyo.Objective(expr=sum(m.x[t] for t in m.T))
    m.cover = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) >= 1)
    controller = osilp.compile_online(m, stages=m.T).controller(osilp.Greedy())
    with pytest.raises(DataError) as caught:
        controller.step(size=0.0)
    assert str(caught.value) == (
        "The arrival 0 could add anything to a row with a lower limit, for a decision has no bound, so that what can still "
        "come is not known; give it one, or use guard='none'."
    )
    assert controller.t == 0


def test_an_equality_over_all_arrivals_is_not_guarded():
    m = pyo.ConcreteModel()
    m.T = pyo.RangeSet(3)
    m.pay = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.pay[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.total = pyo.Constraint(expr=sum(m.x[t] for t in m.T) == 2)
    program = osilp.compile_online(m, stages=m.T)
    with pytest.raises(OptionError) as caught:
        program.controller(osilp.MirrorDescent(), "pointwise", null=0.0)
    assert str(caught.value) == (
        "guard='pointwise' is not possible, because the row 'total' is an equality over all arrivals, which holds at the end "
        "or not at all; use guard='none'."
    )


def kernels(width, needed, horizon=600, grid=100, domain=pyo.Binary):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.cost = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, domain=domain)
    m.pay = pyo.Objective(expr=sum(m.cost[t] * m.x[t] for t in m.T))
    m.cover = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(pyo.exp(-(((u - m.place[t]) / width) ** 2)) * m.x[t] for t in m.T) >= needed(u)
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=grid, basis=6)


@pytest.mark.parametrize("domain", [pyo.Binary, pyo.UnitInterval], ids=["whole", "parts"])
@pytest.mark.parametrize("part", [False, True], ids=["everywhere", "on a part"])
def test_kernels_a_few_cells_wide_cover(domain, part):
    """Their lifts between points are uses where they add nothing; that keeps nobody from adding elsewhere."""
    program = kernels(0.03, lambda u: pyo.Expr_if(u < 0.5, 3.0, 0.0) if part else 3.0, domain=domain)
    data = crews(5, 600)
    run = program.replay(osilp.Greedy(), data)
    at = np.linspace(0, 0.5 if part else 1, 4001)[: -1 if part else None]
    columns = np.exp(-(((at - data.place.to_numpy()[:, None]) / 0.03) ** 2))
    assert columns.sum(axis=0).min() > 10
    assert (run.decisions.to_numpy() @ columns).min() >= 3 - 1e-9


@pytest.mark.parametrize("tiny", [0.0, 1e-200, 1e-310, 1e-40])
def test_a_tail_is_no_offer(tiny):
    m = pyo.ConcreteModel()
    m.T, m.K = pyo.RangeSet(3), pyo.RangeSet(2)
    m.a = pyo.Param(m.T, m.K, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, domain=pyo.Binary)
    m.pay = pyo.Objective(expr=sum(m.x[t] for t in m.T))
    m.need = pyo.Constraint(m.K, rule=lambda m, k: sum(m.a[t, k] * m.x[t] for t in m.T) >= 3)
    controller = osilp.compile_online(m, stages=m.T, horizon=10).controller(osilp.Greedy())
    taken = [controller.step(a={1: 1.0, 2: tiny} if t % 2 else {1: tiny, 2: 1.0}).x for t in range(10)]
    assert taken == [1.0] * 6 + [0.0] * 4


# -- stages that must serve --------------------------------------------------------------------------


def servers(domain=pyo.Binary, count=10, options=3, capacity=110.0, horizon=1000, extra=False):
    """Every arrival goes to one of some servers; each server has room for so many."""
    m = pyo.ConcreteModel()
    m.T, m.K, m.S = pyo.RangeSet(3), pyo.RangeSet(options), pyo.RangeSet(count)
    m.pay = pyo.Param(m.T, m.K, mutable=True, initialize=1.0)
    m.uses = pyo.Param(m.T, m.K, m.S, mutable=True, initialize=0.0)
    m.x = pyo.Var(m.T, m.K, domain=domain)
    m.reward = pyo.Objective(expr=sum(m.pay[t, k] * m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) == 1)
    if extra:
        # One more row of the stage, so that it is no longer a plain choice.
        m.half = pyo.Constraint(m.T, rule=lambda m, t: m.x[t, 1] + 0.5 * m.x[t, 2] <= 1)
    m.room = pyo.Constraint(
        m.S, rule=lambda m, s: sum(m.uses[t, k, s] * m.x[t, k] for t in m.T for k in m.K) <= capacity
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon)


def requests(seed, skew, count=10, options=3, horizon=1000):
    """Requests with options on different servers; with a skew all pay better on the first ones."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(horizon):
        chosen = rng.choice(count, options, replace=False)
        pay = rng.uniform(size=options) + skew * (count - chosen) / count
        row = {("pay", k + 1): float(pay[k]) for k in range(options)}
        row |= {("uses", k + 1, s + 1): float(chosen[k] == s) for k in range(options) for s in range(count)}
        rows.append(row)
    return pd.DataFrame(rows)


def loads(data, run, count=10, options=3):
    total = np.zeros(count)
    for k in range(1, options + 1):
        uses = np.stack([data[("uses", k, s)] for s in range(1, count + 1)], axis=1)
        total += run.decisions[("x", k)].to_numpy() @ uses
    return total


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("skew", [0.0, 1.0, 5.0])
def test_everybody_is_served_and_no_server_overrun(policy, skew):
    data = requests(1, skew)
    program = servers()
    run = program.replay(policy, data)
    assert run.guard == "pointwise"
    assert (run.decisions.sum(axis=1) == 1).all()
    assert loads(data, run).max() <= 110
    assert "overrun" not in run.counts


@pytest.mark.parametrize("domain", [pyo.Binary, pyo.UnitInterval], ids=["whole", "parts"])
def test_stages_with_more_rows_of_their_own_serve_too(domain):
    data = requests(2, 2.0, horizon=200)
    program = servers(domain, capacity=22.0, horizon=200, extra=True)
    assert program.stage_solver.startswith("HiGHS")
    run = program.replay(osilp.Greedy(), data)
    assert run.decisions.sum(axis=1).to_numpy() == pytest.approx(1.0)
    # So few arrivals may leave no way out; that is said, and rare.
    over = run.counts.get("overrun", 0)
    assert over <= 2
    assert loads(data, run).max() <= 22 + over + 1e-9


def test_where_nothing_fits_the_least_is_overrun_and_said():
    program = servers(count=3, options=2, capacity=1.0, horizon=4)
    controller = program.controller(osilp.Greedy())
    first = {"pay": [1.0, 0.5], "uses": [[1.0, 0, 0], [0, 1.0, 0]]}

    def step():
        uses = {(k, s): first["uses"][k - 1][s - 1] for k in (1, 2) for s in (1, 2, 3)}
        return controller.step(pay=dict(zip((1, 2), first["pay"], strict=True)), uses=uses)

    steps = [step() for _ in range(3)]
    assert [each.x[("x", 1)] for each in steps][:2] == [1.0, 0.0]
    assert [each.reason for each in steps] == ["priced", "guard", "overrun"]
    assert sum(steps[2].x.values()) == 1.0


def test_a_stage_that_must_serve_says_so():
    text = servers().describe()
    assert "stage     closed form: exactly one of several options" in text
    assert (
        "            every arrival must be served (0 does not satisfy the stage's own row 'one'): by any decision that fits"
    ) in text.splitlines()


def test_a_null_action_that_uses_something_is_refused():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.pay = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.pay[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) <= 4)
    program = osilp.compile_online(m, stages=m.T)
    with pytest.raises(OptionError) as caught:
        program.controller(osilp.Greedy(), "pointwise", null=0.5)
    assert str(caught.value) == (
        "null=: this action uses something of 'usage', so that falling back to it would overrun what it is to guard; name "
        "one that uses nothing."
    )


def test_a_null_action_of_its_own_for_those_who_must_be_served():
    """The second option uses nothing: it is what a guard falls back to where it is named."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.K = pyo.RangeSet(3), pyo.Set(initialize=["here", "elsewhere"])
    m.pay = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, m.K, domain=pyo.Binary)
    m.reward = pyo.Objective(expr=sum(m.pay[t] * m.x[t, "here"] for t in m.T), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) == 1)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t, "here"] for t in m.T) <= 4.5)
    program = osilp.compile_online(m, stages=m.T)
    named = program.controller(osilp.Greedy(), "pointwise", null={("x", "elsewhere"): 1.0})
    assert [named.step(pay=1.0).x[("x", "here")] for _ in range(3)] == [1.0, 1.0, 0.0]
    unnamed = program.controller(osilp.Greedy(), "pointwise")
    assert sum(unnamed.step(pay=1.0).x[("x", "here")] for _ in range(3)) == 2.0


def two_servers(domain, capacity, horizon, extra):
    m = pyo.ConcreteModel()
    m.T, m.K = pyo.RangeSet(3), pyo.RangeSet(2)
    m.pay = pyo.Param(m.T, m.K, mutable=True, initialize=1.0)
    m.size = pyo.Param(m.T, m.K, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, m.K, domain=domain)
    m.reward = pyo.Objective(expr=sum(m.pay[t, k] * m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) == 1)
    if extra:
        m.half = pyo.Constraint(m.T, rule=lambda m, t: m.x[t, 1] + 0.5 * m.x[t, 2] <= 1)
    m.room = pyo.Constraint(m.K, rule=lambda m, k: sum(m.size[t, k] * m.x[t, k] for t in m.T) <= capacity)
    return osilp.compile_online(m, stages=m.T, horizon=horizon).controller(osilp.Greedy(), "pointwise")


def arrival(pay, size):
    return {"pay": dict(zip((1, 2), pay, strict=True)), "size": dict(zip((1, 2), size, strict=True))}


FIRST, SECOND = {("x", 1): 1.0, ("x", 2): 0.0}, {("x", 1): 0.0, ("x", 2): 1.0}


@pytest.mark.parametrize(
    ("domain", "extra"), [(pyo.Binary, False), (pyo.Binary, True), (pyo.UnitInterval, True)], ids=["one", "MILP", "LP"]
)
def test_nothing_is_overrun_while_something_fits(domain, extra):
    """Both servers are ahead of their pace, one is used up, the other has room; and a budget beside which one is little."""
    controller = two_servers(domain, 100.0, 100, extra)
    controller.update(arrival([1.0, 1.0], [100.0, 0.0]), x=FIRST)
    for _ in range(97):
        controller.update(arrival([1.0, 1.0], [0.0, 96 / 97]), x=SECOND)
    decision = controller.decide(arrival([1.0, 1.0], [0.1, 3.0]))
    assert decision.x == pytest.approx(SECOND)
    assert decision.reason == "guard"
    controller = two_servers(domain, 20_000.0, 30_000, extra)
    controller.update(arrival([1.0, 1.0], [20_000.0, 0.0]), x=FIRST)
    decision = controller.decide(arrival([1.0, 0.0], [1.0, 1.0]))
    assert decision.x == pytest.approx(SECOND)
    assert decision.reason == "guard"


def test_a_null_action_that_uses_something_of_a_new_arrival_is_refused():
    m = pyo.ConcreteModel()
    m.T, m.K = pyo.RangeSet(3), pyo.Set(initialize=["here", "elsewhere"])
    m.far = pyo.Param(m.T, mutable=True, initialize=0.0)
    m.x = pyo.Var(m.T, m.K, domain=pyo.Binary)
    m.reward = pyo.Objective(expr=sum((1 + m.far[t]) * m.x[t, "here"] for t in m.T), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) == 1)
    m.room = pyo.Constraint(expr=sum(m.x[t, "here"] + m.far[t] * m.x[t, "elsewhere"] for t in m.T) <= 2)
    controller = osilp.compile_online(m, stages=m.T).controller(osilp.Greedy(), null={("x", "elsewhere"): 1.0})
    assert controller.step(far=0.0).t == 1
    with pytest.raises(DataError) as caught:
        controller.step(far=1.0)
    assert str(caught.value) == (
        "guard='pointwise': the null action uses something of what it is to guard for the arrival 0; name one that uses "
        "nothing by null=..., or use guard='none'."
    )
    assert controller.t == 1


@pytest.mark.parametrize("most", [1.0, 0.9999])
def test_a_mixture_fits_where_no_option_does(most):
    m = pyo.ConcreteModel()
    m.T, m.R = pyo.RangeSet(3), pyo.RangeSet(0, 1)
    m.pay = pyo.Param(m.T, m.R, mutable=True, initialize=1.0)
    m.size = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, m.R, bounds=(0, most))
    m.reward = pyo.Objective(expr=sum(m.pay[t, r] * m.x[t, r] for t in m.T for r in m.R), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: m.x[t, 0] + m.x[t, 1] == 1)
    m.room = pyo.Constraint(m.R, rule=lambda m, r: sum(m.size[t] * m.x[t, r] for t in m.T) <= 1.0)
    controller = osilp.compile_online(m, stages=m.T, horizon=3).controller(osilp.Greedy(), "pointwise")
    decision = controller.step({"size": 1.6, ("pay", 0): 1.0, ("pay", 1): 0.5})
    assert decision.reason == "guard"
    assert max(decision.x.values()) <= 1 / 1.6 + 1e-9
    assert sum(decision.x.values()) == pytest.approx(1.0)


def test_stays_that_end_where_the_index_ends_are_no_violation():
    """A column that ends at the last point is lifted by nothing there that could be missing."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.cost = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, domain=pyo.Binary)
    m.total = pyo.Objective(expr=sum(m.cost[t] * m.x[t] for t in m.T))
    m.cover = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            sum(pyo.Expr_if(u >= m.place[t], 1, 0) * pyo.Expr_if(u <= m.place[t] + 0.3, 1, 0) * m.x[t] for t in m.T)
            >= 20
        ),
    )
    program = osilp.compile_online(m, stages=m.T, horizon=400, grid=osilp.Midpoint(100), basis=osilp.RBF(6))
    rng = np.random.default_rng(0)
    place = rng.permutation(np.repeat([0.0, 0.25, 0.45, 0.69, 0.7], 80))
    run = program.replay(osilp.MirrorDescent(), pd.DataFrame({"cost": rng.uniform(0.2, 2, 400), "place": place}))
    at = np.linspace(0, 1, 1001)
    covered = ((place <= at[:, None]) & (at[:, None] <= place + 0.3)) @ run.decisions.to_numpy()
    assert covered.min() >= 20
    assert (run.violation, run.violation_between) == (0.0, 0.0)
