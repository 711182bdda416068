"""The controller: laws that hold for every policy, guards, live use, saving and killing."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import packing
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import DataError, HorizonError, HorizonWarning, OptionError, SavedStateError
from osilp_pyomo.online.kernels import fitting
from osilp_pyomo.online.kernels import linear as kernels
from osilp_pyomo.online.stages.identity import identity_of

POLICIES = {
    "gradient": osilp.GradientDescent(),
    "mirror": osilp.MirrorDescent(),
    "entropy": osilp.MirrorDescent("entropy"),
    "remaining": osilp.MirrorDescent("entropy", "remaining"),
    "own": osilp.MirrorDescent(osilp.Potential(np.sinh, np.arcsinh)),
    "two stages": osilp.AccelerateThenRefine(per_level=4),
    "simple": osilp.SimpleGD(),
    "greedy": osilp.Greedy(),
    "points": osilp.MirrorDescent("entropy", "remaining", view="pointwise"),
    "experience": osilp.ExperienceReplay(),
    "few memories": osilp.ExperienceReplay(replays=3, memory=10),
    "resolve": osilp.Resolve(),
    "resolve exact": osilp.Resolve(exact=True),
}
COUNT = 60


def arrivals(seed=0, count=COUNT):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"value": rng.uniform(size=count), "place": rng.uniform(size=count)})


def spectrum(width=1.0, money=1.0, count=COUNT, horizon=None):
    """Requests on a band of the given width; the limit is short of what all of them would use."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, width))
    m.T = pyo.RangeSet(count)
    data = arrivals(count=count)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: money * data.value[t - 1])
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: width * data.place[t - 1])
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        scaled = 6 * u / width
        load = sum(pyo.exp(-(((u - m.place[t]) / (0.1 * width)) ** 2)) * m.x[t] for t in m.T)
        return load <= 4 + pyo.sin(scaled)

    return osilp.compile_online(m, stages=m.T, grid=osilp.Midpoint(200), basis=osilp.RBF(6), horizon=horizon)


PROGRAM = spectrum()


def decided(program, policy, data, guard="pointwise"):
    controller = program.controller(policy, guard)
    return [controller.step(row) for _, row in data.iterrows()], controller


# -- laws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", ["none", "projected", "pointwise"])
@pytest.mark.parametrize("name", POLICIES)
def test_steps_equal_the_replay(name, guard):
    data = arrivals(3)
    steps, controller = decided(PROGRAM, POLICIES[name], data, guard)
    run = PROGRAM.replay(POLICIES[name], data, guard)
    np.testing.assert_allclose([step.x for step in steps], run.decisions, atol=1e-9)
    assert [step.reason for step in steps] == run.reasons.tolist()
    np.testing.assert_allclose(controller.dual, run.dual, atol=1e-9)
    assert controller.reward == pytest.approx(run.objective)


@pytest.mark.parametrize("name", POLICIES)
@given(cut=st.integers(1, COUNT - 1), seed=st.integers(0, 50))
@settings(max_examples=6, deadline=None)
def test_nothing_looks_ahead(name, cut, seed):
    """Changing data after t leaves the decisions up to t as they were."""
    data, other = arrivals(1), arrivals(1)
    other.iloc[cut:] = arrivals(100 + seed).iloc[cut:]
    first, second = (PROGRAM.replay(POLICIES[name], each).decisions.to_numpy()[:cut] for each in (data, other))
    np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("width", "money"), [(1e6, 1.0), (1.0, 1e5), (1e-3, 1e-4)])
def test_units_do_not_matter(name, width, money):
    """Hz instead of MHz, cents instead of millions: the same decisions."""
    data = arrivals(5)
    scaled = pd.DataFrame({"value": money * data.value, "place": width * data.place})
    same = spectrum(width, money).replay(POLICIES[name], scaled).decisions
    np.testing.assert_allclose(same, PROGRAM.replay(POLICIES[name], data).decisions, atol=1e-6)


@pytest.mark.parametrize("guard", ["none", "projected", "pointwise"])
@pytest.mark.parametrize("name", POLICIES)
def test_step_is_decide_and_update(name, guard):
    one, two = (PROGRAM.controller(POLICIES[name], guard) for _ in range(2))
    for _, row in arrivals(7).iterrows():
        before = two.dual.copy(), two.remaining.copy(), two.t
        decision = two.decide(row)
        assert np.array_equal(before[0], two.dual)
        assert before[1].equals(two.remaining)
        assert before[2] == two.t
        two.update(row, x=decision.x)
        assert one.step(row) == decision
    np.testing.assert_allclose(one.dual, two.dual, atol=1e-12)
    np.testing.assert_allclose(one.remaining, two.remaining, atol=1e-12)


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 1000))
@settings(max_examples=5, deadline=None)
def test_guards_hold(name, seed):
    data = arrivals(seed)
    pointwise = PROGRAM.replay(POLICIES[name], data, "pointwise")
    assert pointwise.violation == 0.0
    # Between points h apart the load (5 at most, of kernels with |a''| <= 2 / 0.1^2) and its limit bend by this much.
    assert pointwise.violation_between <= 0.005**2 / 8 * (5 * 2 / 0.1**2 + 36)
    projected = PROGRAM.replay(POLICIES[name], data, "projected")
    assert projected.remaining.min() >= -1e-10
    assert projected.test_violation < 1e-9


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "own"])
def test_the_loop_equals_the_plain_path(name):
    """The compiled or plain kernel decides as the generic path that serves every policy and stage does."""
    for guard in ("none", "projected", "pointwise"):
        batch = PROGRAM.batch(arrivals(11))
        fast, slow = (PROGRAM.controller(POLICIES[name], guard) for _ in range(2))
        slow._loop.kernel = False
        one, two = fast.meet(batch), slow.meet(batch)
        np.testing.assert_allclose(one.decided, two.decided, atol=1e-9)
        assert one.reasons.tolist() == two.reasons.tolist()
        np.testing.assert_allclose(fast.dual, slow.dual, atol=1e-9)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_primitives_are_the_same_in_both_forms(data):
    number = st.floats(-3, 3).map(lambda value: round(value, 3))
    size = data.draw(st.integers(1, 6))
    a, b, c = (np.array(data.draw(st.lists(number, min_size=size, max_size=size))) for _ in range(3))
    share, ahead = data.draw(st.floats(0.1, 2)), data.draw(st.floats(0, 1))
    margins = fitting.make_margins(np.abs(c), np.ones(size), 1000)
    for name, arguments in {
        "inner": (a, b), "inner_abs": (a, b), "distance": (a, share, b), "room": (b, margins, ahead, a),
        "fits": (b, margins, ahead, a), "capped": (b, margins, share, a),
    }.items():  # fmt: skip
        loop, numpy = (getattr(kernels, f"_{name}_{form}")(*arguments) for form in ("loop", "numpy"))
        assert loop == pytest.approx(numpy, rel=1e-12, abs=1e-12)
    for name, arguments in {"add": (share, b), "step": (share, b, c, np.zeros(size))}.items():
        one, two = a.copy(), a.copy()
        getattr(kernels, f"_{name}_loop")(one, *arguments)
        getattr(kernels, f"_{name}_numpy")(two, *arguments)
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_keep_the_contract(name):
    if POLICIES[name].view == "projected":
        osilp.testing.check_policy(POLICIES[name])


def test_a_policy_that_breaks_the_contract_is_told_how():
    class Forgetful(osilp.Policy):
        def start(self, setting):
            return {"dual": np.zeros(setting.size)}

        def price(self, state, setting):
            return state["dual"]

        def learn(self, state, setting, seen):
            state["dual"] += 0.1
            return state

    with pytest.raises(AssertionError, match=r"learn changed the state it was given; give back a new one\."):
        osilp.testing.check_policy(Forgetful())


def test_a_policy_of_ones_own_runs():
    class Steady(osilp.Policy):
        def start(self, setting):
            return {"dual": np.full(setting.size, 0.5)}

        def price(self, state, setting):
            return state["dual"]

        def learn(self, state, setting, seen):
            return state

    osilp.testing.check_policy(Steady())
    own = PROGRAM.replay(Steady(), guard="pointwise")
    fixed = PROGRAM.replay(osilp.FixedPrice(np.full(6, 0.5)), guard="pointwise")
    np.testing.assert_allclose(own.decisions, fixed.decisions, atol=1e-12)


# -- live use ----------------------------------------------------------------------------------------------


def test_release_gives_back_and_takes_back():
    controller = PROGRAM.controller(osilp.Greedy())
    before = controller.remaining.copy()
    decision = controller.step(value=0.7, place=0.4)
    assert controller.reward == pytest.approx(0.7)
    controller.release(value=0.7, place=0.4, x=decision.x)
    np.testing.assert_allclose(controller.remaining, before, atol=1e-14)
    assert controller.reward == pytest.approx(0.0, abs=1e-15)
    assert controller.t == 1


def test_add_budget_by_number_and_by_function():
    one, two = (PROGRAM.controller(osilp.Greedy()) for _ in range(2))
    one.add_budget("usage", 2.0)
    two.add_budget("usage", lambda u: 2.0 + 0 * u)
    assert (one.remaining > PROGRAM.controller(osilp.Greedy()).remaining).all()
    np.testing.assert_allclose(one.remaining, two.remaining)
    with pytest.raises(OptionError) as caught:
        one.add_budget("use", 1.0)
    assert str(caught.value) == "add_budget: there is no row 'use'; the resources are usage."


def test_horizon_ends_unless_it_is_revised_or_goes_on():
    program = spectrum(count=3, horizon=3)
    controller = program.controller(osilp.MirrorDescent(), beyond="error")
    for _ in range(3):
        controller.step(value=0.1, place=0.5)
    state = controller.dual.copy()
    with pytest.raises(HorizonError) as caught:
        controller.step(value=0.1, place=0.5)
    assert str(caught.value) == (
        "The horizon of 3 arrivals is reached (3 were met, 1 more came); use revise(horizon=...), or beyond='continue'."
    )
    assert np.array_equal(state, controller.dual)
    controller.revise(horizon=4)
    assert controller.step(value=0.1, place=0.5).t == 4
    onward = program.controller(osilp.Resolve())
    for _ in range(3):
        onward.step(value=0.1, place=0.5)
    with pytest.warns(HorizonWarning) as warned:
        onward.step(value=0.1, place=0.5)
    assert str(warned[0].message) == (
        "The horizon of 3 arrivals is reached (3 were met, 1 more came); decisions go on at the last price, on what is "
        "left. Tell the controller by revise(horizon=...) how many will come in all."
    )
    for _ in range(4):
        # It is said once.
        onward.step(value=0.1, place=0.5)
    assert onward.t == 8


def test_steps_equal_single_steps_and_can_hold_the_price():
    data = arrivals(9)
    together = PROGRAM.controller(osilp.MirrorDescent()).steps(data)
    singles, _ = decided(PROGRAM, osilp.MirrorDescent(), data)
    np.testing.assert_allclose(together.x, [step.x for step in singles], atol=1e-9)
    assert together.reason.tolist() == [step.reason for step in singles]
    controller = PROGRAM.controller(osilp.MirrorDescent())
    held = controller.steps(data.iloc[:20], hold_price=True)
    # The first price is zero, so all that fits is taken; and learned from afterwards.
    assert set(held.reason) <= {"priced", "guard", "null"}
    assert held.x.iloc[0] == 1.0
    assert controller.t == 20
    assert controller.dual.max() > 0


def test_warm_starts():
    offline = PROGRAM.solve_offline(method="projected")
    warm = PROGRAM.controller(osilp.FixedPrice(), warm_start=offline.price)
    exact = offline.price.of(place=0.4)
    assert warm.price.of(place=0.4) == pytest.approx(exact, rel=1e-6)
    past = PROGRAM.controller(osilp.FixedPrice(), warm_start=PROGRAM.data)
    assert past.price.of(place=0.4) == pytest.approx(exact, rel=1e-6)
    another = PROGRAM.controller(osilp.MirrorDescent(), warm_start=past)
    np.testing.assert_allclose(another.dual, past.dual)
    assert PROGRAM.replay(osilp.FixedPrice(), warm_start=offline, guard="none").objective > 0
    with pytest.raises(OptionError) as caught:
        PROGRAM.controller(osilp.MirrorDescent(), warm_start=3)
    assert str(caught.value) == (
        "warm_start must be a price, a Result, a DataFrame of past arrivals or a Controller (got int)."
    )


def narrow_columns(where=None):
    """Kernels whose width comes with the arrival, under a limit of 1."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.place = pyo.Param(m.T, mutable=True)
    m.width = pyo.Param(m.T, mutable=True)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.x.values()), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: sum(pyo.exp(-(((u - m.place[t]) / m.width[t]) ** 2)) * m.x[t] for t in m.T) <= 1,
        where=where,
    )
    return osilp.compile_online(m, stages=m.T, horizon=50, grid=osilp.Midpoint(100))


def test_a_column_narrower_than_the_grid_is_guarded():
    """No point of the grid sees it, and what it can be between them counts."""
    controller = narrow_columns().controller(osilp.Greedy())
    taken = [controller.step(place=0.2501, width=1e-4).x for _ in range(3)]
    assert taken == pytest.approx([1.0, 0.0, 0.0])
    assert controller.step(place=0.6, width=1e-4).x == pytest.approx(1.0)


def test_a_column_narrower_than_the_grid_is_refused():
    controller = narrow_columns(where=lambda m, u: u <= 0.9).controller(osilp.Greedy())
    assert controller.step(place=0.5, width=0.1).x == 1.0
    with pytest.raises(DataError) as caught:
        controller.step(place=0.2501, width=1e-4)
    assert str(caught.value) == (
        "SemiInfiniteConstraint 'usage': at u = 0.2501 the arrival 0 uses 1, and at the grid points beside it 0 at most: it "
        "is narrower than the grid can see, so no guard could hold. Compile with a finer grid=, or use guard='projected' or "
        "'none'."
    )
    assert controller.t == 1


def test_integers_are_never_scaled():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(4)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.size = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, within=pyo.Integers, bounds=(0, 5))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.size[t] * (1 + u) * m.x[t] for t in m.T) <= 7 + 0 * u
    )
    program = osilp.compile_online(m, stages=m.T, grid=osilp.Midpoint(50), basis=osilp.Hat(3))
    controller = program.controller(osilp.Greedy())
    # At u = 1 a unit uses 2 of 7: three of five fit, then none does.
    assert [controller.step(value=1.0, size=1.0).x for _ in range(2)] == [3.0, 0.0]


def test_options_take_the_best_that_fits():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.K = pyo.RangeSet(5), pyo.Set(initialize=["small", "large"])
    m.fare = pyo.Param(m.T, m.K, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, m.K, within=pyo.Binary)
    m.use = pyo.Param(m.K, initialize={"small": 1.0, "large": 3.0})
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) <= 1)
    m.reward = pyo.Objective(expr=sum(m.fare[t, k] * m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.use[k] * (1 - u / 2) * m.x[t, k] for t in m.T for k in m.K) <= 4 + 0 * u
    )
    program = osilp.compile_online(m, stages=m.T, basis=osilp.Hat(3))
    assert program.stage_solver == "closed form: one of several options"
    controller = program.controller(osilp.Greedy())
    taken = [controller.step(fare={"small": 1.0, "large": 2.0}) for _ in range(3)]
    assert [step.x[("x", "large")] for step in taken] == [1.0, 0.0, 0.0]
    assert [step.x[("x", "small")] for step in taken] == [0.0, 1.0, 0.0]
    assert [step.reason for step in taken] == ["priced", "guard", "null"]


def test_guards_need_a_null_action_where_use_is_fixed():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.pay = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.heat = pyo.Param(m.T, mutable=True, initialize=0.1)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.pay[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] + m.heat[t] for t in m.T) <= 4)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.Hat(3))
    assert program.default_guard == "none"
    with pytest.raises(OptionError) as caught:
        program.controller(osilp.MirrorDescent(), "pointwise")
    assert str(caught.value) == (
        "guard='pointwise' is not possible, because an arrival uses something even if nothing is decided for it; "
        "name a null action by null=..., or use guard='none'."
    )
    assert program.controller(osilp.MirrorDescent(), "pointwise", null=0.0).step(pay=1.0, heat=0.1).t == 1


# -- saving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "own"])
def test_a_saved_controller_goes_on_as_if_never_stopped(name, tmp_path):
    data = arrivals(13)
    whole = PROGRAM.controller(POLICIES[name])
    for _, row in data.iloc[:25].iterrows():
        whole.step(row)
    whole.save(tmp_path / "state")
    again = osilp.load_controller(tmp_path / "state", pickle.loads(pickle.dumps(PROGRAM)))
    assert again.t == 25
    for _, row in data.iloc[25:].iterrows():
        assert whole.step(row) == again.step(row)
    assert os.listdir(tmp_path) == ["state"]


def test_files_that_cannot_be_gone_on_with_are_refused(tmp_path):
    controller = PROGRAM.controller(osilp.Resolve())
    controller.save(tmp_path / "state")
    with pytest.raises(SavedStateError) as caught:
        osilp.load_controller(tmp_path / "state", spectrum(width=2.0))
    assert str(caught.value) == (
        f"'{tmp_path / 'state'}' was saved for another program: its formulas, test functions or budgets differ. Compile the "
        "same model with the same grid and basis."
    )
    (tmp_path / "half").write_bytes((tmp_path / "state").read_bytes()[:200])
    with pytest.raises(SavedStateError, match=r"is no file that controller\.save wrote, or it is damaged"):
        osilp.load_controller(tmp_path / "half", PROGRAM)
    (tmp_path / "code").write_bytes(pickle.dumps(controller.policy))
    with pytest.raises(SavedStateError, match=r"is no file that controller\.save wrote, or it is damaged"):
        osilp.load_controller(tmp_path / "code", PROGRAM)
    own = PROGRAM.controller(POLICIES["own"])
    own.save(tmp_path / "own")
    with pytest.raises(SavedStateError, match=r"which cannot be read from a file; give policy=\.\.\."):
        osilp.load_controller(tmp_path / "own", PROGRAM)
    assert osilp.load_controller(tmp_path / "own", PROGRAM, POLICIES["own"]).t == 0


WORKER = """
import os, pickle, random, signal, sys, time
import osilp_pyomo as osilp

program, data = pickle.load(open(sys.argv[1], "rb"))
path, log, rng = sys.argv[2], os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND), random.Random(20260)
osilp.load_controller(path, program).step(data.iloc[0])  # what is compiled once is compiled now
for kill in range(int(sys.argv[4])):
    child = os.fork()
    if not child:
        controller = osilp.load_controller(path, program)
        for t in range(controller.t, len(data)):
            decision = controller.step(data.iloc[t])
            os.write(log, f"{t} {decision.x.hex()}\\n".encode())
            controller.save(path)
        os._exit(0)
    time.sleep(rng.uniform(0.0, 0.2))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["mirror", "resolve"])
def test_killed_at_random_moments_it_goes_on_the_same(name, tmp_path):
    """SIGKILL while stepping and saving, 25 times for each policy: the decisions are those of an unbroken run."""
    data, program = arrivals(17, 5000), spectrum(count=3, horizon=5000)
    (tmp_path / "program").write_bytes(pickle.dumps((program, data)))
    program.controller(POLICIES[name]).save(tmp_path / "state")
    arguments = [str(tmp_path / each) for each in ("program", "state", "log")]
    subprocess.run(
        [sys.executable, "-c", WORKER, *arguments, "25"], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    resumed = osilp.load_controller(tmp_path / "state", program)
    last = max(int(t) for t, _ in lines)
    assert last >= 25
    assert resumed.t in (last, last + 1)
    unbroken = program.controller(POLICIES[name])
    straight = {t: unbroken.step(data.iloc[t]).x for t in range(last + 1)}
    # An arrival that was decided but not saved was sent again, and decided in the same way.
    assert all(straight[int(t)].hex() == x for t, x in lines)
    assert {int(t) for t, _ in lines} == set(straight)
    assert resumed.reward == pytest.approx(sum(data.value[t] * straight[t] for t in range(resumed.t)))


# -- offline -------------------------------------------------------------------------------------------------


def test_offline_optima_bracket_the_runs():
    exact, projected = PROGRAM.solve_offline(), PROGRAM.solve_offline(method="projected")
    assert projected.objective >= exact.objective
    for name, policy in POLICIES.items():
        run = PROGRAM.replay(policy, guard="pointwise")
        assert run.objective <= exact.objective * (1 + 1e-9), name
        regret = run.regret(exact)
        assert regret.value == pytest.approx(exact.objective - run.objective)
        assert str(regret).endswith("against R*_T (exact over the continuum)")
    data = arrivals(21)
    other = PROGRAM.solve_offline(data)
    assert other.objective != pytest.approx(exact.objective)
    assert other.values.index[0] == "x @ 0"


def test_rescaled_keeps_the_budget_of_an_arrival():
    twice = PROGRAM.rescaled(2 * COUNT)
    data = pd.concat([PROGRAM.data, PROGRAM.data], ignore_index=True)
    assert twice.solve_offline(data).objective == pytest.approx(2 * PROGRAM.solve_offline().objective, rel=1e-6)


def wider(m):
    m.x.setub(2)


def cheaper(m):
    m.reward.set_value(10 * m.reward.expr)


def less(m):
    m.reward.sense = pyo.minimize


def packing_program(change=None, **options):
    m = packing()
    if change is not None:
        change(m)
    return osilp.compile_online(m, stages=m.T, **options)


def test_a_regret_needs_the_optimum_of_the_same_problem():
    program = packing_program()
    best = program.solve_offline()
    data = program.data
    same = [data, data.sample(frac=1, random_state=3), data.astype("float32")]
    for own in same:
        assert program.replay(osilp.Greedy(), own).regret(best).value > 0
    shuffled = data.assign(value=data["value"].sample(frac=1, random_state=4).to_numpy())
    for other, text in (
        (data.head(10), "one of 40 arrivals, and the run met 10"),
        (data.assign(value=1 - data["value"]), "one of as many arrivals as the run met, but with other data"),
        (shuffled, "one of as many arrivals as the run met, but with other data"),
    ):
        run = program.replay(osilp.Greedy(), other)
        with pytest.raises(OptionError) as caught:
            run.regret(best)
        assert str(caught.value) == (
            f"regret: the benchmark is the optimum of another problem, {text}. Use program.solve_offline(data) with the "
            "data of the run, or run.shortfall(benchmark) if it is the same problem written in another way."
        )
    run = program.replay(osilp.Greedy())
    with pytest.raises(OptionError, match="other limits than those of the run"):
        run.regret(program.rescaled(80).rescaled(40, "total").solve_offline(data))
    for change in (wider, cheaper, less):
        with pytest.raises(OptionError, match="one with other formulas or bounds than those of the run"):
            run.regret(packing_program(change).solve_offline())
    # Another grid is another way to see the same problem.
    assert run.regret(program.regridded(osilp.Midpoint(77)).solve_offline()).value > 0


@pytest.mark.parametrize("columns", [["value"], ["place"], ["value", "place"]])
def test_a_regret_knows_data_that_are_turned_round(columns):
    """Turned about their means columns keep their sums, their squares, and all products where all are turned."""
    program = packing_program()
    rng = np.random.default_rng(2)
    half = rng.choice([0.1, 0.2, 0.6], size=(20, 2))
    half = half - half.mean(axis=0)
    data = 0.5 + np.concatenate([half, [[0.5, 0.5], [-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5]]])
    data = pd.DataFrame(data, columns=["value", "place"])
    turned = data.assign(**{column: 1.0 - data[column] for column in columns})
    one, other = (identity_of(program.evaluator, program.arrivals(each)) for each in (data, turned))
    assert one.difference(other) == "one of as many arrivals as the run met, but with other data"


@pytest.mark.parametrize("size", [1e-170, 1.0, 1e160])
def test_a_regret_knows_data_of_any_size(size):
    program = packing_program()
    data = program.data.assign(value=size * program.data["value"])
    run = program.replay(osilp.FixedPrice(), data, "projected")
    one = identity_of(program.evaluator, program.arrivals(data))
    assert one.difference(identity_of(program.evaluator, program.arrivals(data.iloc[::-1]))) is None
    twice = data.assign(value=2 * data["value"])
    assert one.difference(identity_of(program.evaluator, program.arrivals(twice))) is not None
    assert len(run.decisions) == 40


def test_a_regret_knows_curves():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(6)
    m.use = osilp.Profile(m.T, over=m.u, points=[0, 0.5, 1], initialize=lambda m, t: [1.0, t, 2.0])
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.use[t](u) * m.x[t] for t in m.T) <= 5)
    program = osilp.compile_online(m, stages=m.T)
    best = program.solve_offline()
    assert program.replay(osilp.Greedy()).regret(best).value >= 0
    curves = np.array([[1.0, t, 2.0] for t in m.T])
    for other in (np.full((6, 3), 0.3), curves[:, ::-1], np.roll(curves, 1, axis=1)):
        run = program.replay(osilp.Greedy(), pd.DataFrame(index=range(6)), profiles={"use": other})
        with pytest.raises(OptionError, match="but with other data"):
            run.regret(best)


def test_a_regret_says_what_its_benchmark_is_not():
    m = packing()
    program = osilp.compile_online(m, stages=m.T)
    run = program.replay(osilp.Greedy())
    stopped = osilp.solve(m, iteration_limit=1)
    assert str(run.regret(stopped)).endswith(
        "against R*_T (exact over the continuum), which ended with status 'iteration_limit' and is no optimum"
    )
    m.much = pyo.Constraint(expr=sum(m.x[t] for t in m.T) >= 40)
    with pytest.raises(OptionError) as caught:
        run.regret(osilp.solve(m))
    assert str(caught.value) == "regret: the benchmark has no value, for it ended with status 'infeasible'."


def test_what_cannot_have_been_done_is_refused():
    program = packing_program()
    controller = program.controller(osilp.MirrorDescent())
    for what in ("update", "release"):
        with pytest.raises(DataError) as caught:
            getattr(controller, what)(value=0.3, place=0.9, x=7)
        assert str(caught.value) == (
            f"{what}: 'x' must lie in [0, 1] for this arrival (got 7); give what was done within the model's bounds."
        )
    assert controller.t == 0
    assert controller.reward == 0
    controller.update(value=0.3, place=0.9, x=1 + 1e-12)


def test_bounds_that_are_infinite_or_whole_count_too():
    m = packing()
    m.x.setub(None)
    for t in m.T:
        m.x[t].domain = pyo.NonNegativeIntegers
    program = osilp.compile_online(m, stages=m.T)
    controller = program.controller(osilp.FixedPrice(), "none")
    with pytest.raises(DataError, match=r"update: 'x' must lie in \[0, inf\] for this arrival \(got -0.5\)"):
        controller.update(value=0.3, place=0.9, x=-0.5)
    with pytest.raises(DataError, match=r"update: 'x' must be a whole number \(got 0.5\)\."):
        controller.update(value=0.3, place=0.9, x=0.5)


def test_a_regret_needs_the_optimum_of_the_same_model():
    m, other = packing(), packing()
    run = osilp.compile_online(m, stages=m.T).replay(osilp.Greedy())
    assert run.regret(osilp.solve(m)).value > 0
    for t in other.T:
        other.value[t] = 1 - other.value[t].value
    least = packing()
    least.reward.sense = pyo.minimize
    for model, text in (
        (other, "one with other numbers in its objective than the arrivals of the run"),
        (packing(20), "one whose objective has 20 coefficients, and that of the run 40"),
        (least, "one to minimize"),
    ):
        with pytest.raises(OptionError) as caught:
            run.regret(osilp.solve(model))
        assert str(caught.value) == (
            f"regret: the benchmark is the optimum of another problem, {text}. Use program.solve_offline(data) with the "
            "data of the run, or run.shortfall(benchmark) if it is the same problem written in another way."
        )


def test_a_regret_does_not_count_what_is_rounding():
    m = packing()
    m.y = pyo.Var(m.T, bounds=(0, 1))
    nothing = sum((m.value[t] - 0.1 * m.value[t] * 10) * m.y[t] for t in m.T)
    m.reward.set_value(sum(m.value[t] * m.x[t] for t in m.T) + nothing)
    run = osilp.compile_online(m, stages=m.T).replay(osilp.Greedy())
    assert run.regret(osilp.solve(m)).value > 0


def test_nothing_is_given_back_before_anything_was_taken():
    controller = packing_program().controller(osilp.MirrorDescent())
    with pytest.raises(DataError) as caught:
        controller.release(value=0.3, place=0.9, x=1)
    assert str(caught.value) == (
        "release: no arrival was met yet, so that there is nothing to give back; add_budget makes room."
    )


def test_where_an_own_row_is_infinite_it_is_broken():
    m = packing()
    m.y = pyo.Var(m.T, bounds=(0, 1))
    m.own = pyo.Constraint(m.T, rule=lambda m, t: -pyo.log(m.x[t]) - pyo.log(m.y[t]) <= 1)
    controller = osilp.compile_online(m, stages=m.T).controller(osilp.MirrorDescent(), "none")
    for nothing in ({"x": 0.0, "y": 0.0}, {"x": 0.0, "y": 1.0}):
        with pytest.raises(DataError, match="'own', which each arrival has for itself, is broken by inf"):
            controller.update(value=0.3, place=0.9, x=nothing)
    assert controller.t == 0


@pytest.mark.parametrize("curved", [False, True])
def test_what_breaks_a_row_of_the_arrival_itself_is_refused(curved):
    m = packing()
    m.y = pyo.Var(m.T, bounds=(0, 1))
    m.reward.set_value(sum(m.value[t] * (m.x[t] + m.y[t] - (m.y[t] ** 2 if curved else 0)) for t in m.T))
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] + 2 * m.y[t] <= 1.5)
    controller = osilp.compile_online(m, stages=m.T).controller(osilp.MirrorDescent())
    for what in ("update", "release"):
        with pytest.raises(DataError) as caught:
            getattr(controller, what)(value=0.3, place=0.9, x={"x": 1.0, "y": 0.5})
        assert str(caught.value) == (
            f"{what}: 'own', which each arrival has for itself, is broken by 0.5; give what was done within the model's "
            "constraints."
        )
    assert (controller.t, controller.reward) == (0, 0)
    controller.update(value=0.3, place=0.9, x={"x": 1.0, "y": 0.25 + 1e-9})
    assert controller.t == 1


def test_a_price_is_no_list_of_duals():
    program = packing_program(basis=osilp.RBF(5))
    price = program.solve_offline(method="projected").price
    with pytest.raises(OptionError) as caught:
        program.replay(osilp.FixedPrice(price))
    assert str(caught.value) == (
        "FixedPrice: the dual must be 5 numbers, one a resource (got DensityPrice); a price on the index goes into "
        "warm_start=, with FixedPrice()."
    )
    assert len(program.replay(osilp.FixedPrice(), warm_start=price).decisions) == 40
