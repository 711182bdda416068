"""Learning from arrivals that are remembered: the algorithm, what is remembered, and the points it is practised on.

The laws that hold for every policy are in ``test_controller.py`` and ``test_state.py``.
"""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo._files import read_state, write_state
from osilp_pyomo.errors import OptionError, SavedStateError
from osilp_pyomo.online.experience.memory import uniforms
from osilp_pyomo.online.kernels import practice


def requests(count, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"value": rng.uniform(size=count), "place": rng.uniform(size=count)})


def band(horizon, width=0.1, limit=lambda u: 60 + 20 * pyo.sin(6 * u), kind=pyo.Reals, total=None, grid=None):
    """Requests at places of [0, 1]; ``total`` adds a row over all of them."""
    m = pyo.ConcreteModel()
    m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(2)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: t / 2)
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: t / 3)
    m.width = width
    m.x = pyo.Var(m.T, bounds=(0, 1), domain=kind)
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            sum(pyo.exp(-(((u - m.place[t]) / width) ** 2)) * m.x[t] for t in m.T) <= horizon / 1000 * limit(u)
        ),
    )
    if total is not None:
        m.total = pyo.Constraint(expr=sum(1000 * m.x[t] for t in m.T) <= 1000 * total)
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=grid, basis=osilp.RBF(6))


# -- the algorithm ------------------------------------------------------------------------------------------------


def reference(values, columns, budget, drawn, *, step=6.0, seen_by=lambda k: k):
    """Decisions and prices of one bounded decision without a guard, written from the docstring of the policy.

    Points weigh alike, budgets are in units of their mean, so that the price is found as if their mean were 1.
    """
    count, points = columns.shape
    unit = budget.mean() / count
    uses, left = columns / unit, budget / unit
    average = left / count
    learner, price = np.zeros(points), np.zeros(points)
    rewards, squares, steps, prices, decisions = [], [], 0, [], []
    for t in range(count):
        x = float(values[t] > uses[t] @ price)
        cap, mine = min(1.0, 2 / np.sqrt(count - t)), uses[t] > 0
        # All that is left is no cap: a guard would see to that, and there is none.
        x *= min(1.0, min(cap * left[mine] / uses[t][mine])) if cap < 1 else 1.0
        left = left - x * uses[t]
        rewards.append(abs(values[t]))
        squares.append(np.sum((uses[t] - average) ** 2))
        length, spread = np.linalg.norm(average), np.sqrt(np.mean(squares))
        size = step * np.mean(rewards) / (length * spread) * min(1, 4 * length / spread) ** 1.5
        ahead = count - t - 1
        target = np.maximum(left, 0) / max(ahead, 1)
        window = max(10.0, 0.1 * min(t + 1, ahead + 1))
        for number in [t, *drawn[t]]:
            steps += 1
            wants = float(values[number] > uses[number] @ learner)
            learner = np.maximum(learner + size / steps**0.4 * (wants * uses[number] - target), 0)
            price = price + (learner - price) / min(window * (1 + len(drawn[t])), steps)
        decisions.append(x)
        prices.append(price / unit)
    return np.array(decisions), np.array(prices)


@pytest.mark.parametrize("replays", [0, 5])
def test_prices_are_those_of_the_docstring(replays):
    count, seed = 40, 7
    program = band(count, grid=osilp.Midpoint(12))
    data = requests(count, 3)
    batch = program.batch(data)
    columns, total = batch.use["pointwise"][:, 0], program.evaluator.resources["pointwise"].total
    # Of t + 1 arrivals that are remembered each is drawn as often as the others.
    chances = uniforms(seed, 0, count, replays + 1)[:, 1:]
    drawn = (chances * np.arange(1, count + 1)[:, None]).astype(int)
    expected, prices = reference(data.value.to_numpy(), columns, total, drawn)
    controller = program.controller(osilp.ExperienceReplay(replays=replays), "none", seed=seed)
    for t, (_, row) in enumerate(data.iterrows()):
        assert controller.step(row).x == pytest.approx(expected[t], rel=1e-9)
        np.testing.assert_allclose(controller.dual, prices[t], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.1, 0.01])
def test_few_places_are_sold_to_those_who_pay_most(share):
    """A single request uses up to thousands of times what there is for it."""
    policies = {"replay": osilp.ExperienceReplay(), "descent": osilp.MirrorDescent(), "greedy": osilp.Greedy()}
    policies["entropy"] = osilp.MirrorDescent("entropy", "remaining", view="pointwise")
    earned = dict.fromkeys(policies, 0.0)
    for seed in range(5):
        program = band(150, limit=lambda u: share * (60 + 20 * pyo.sin(6 * u)))
        for name, policy in policies.items():
            earned[name] += program.replay(policy, requests(150, seed), progress=False).objective
    assert min(earned["replay"], earned["entropy"]) >= 1.2 * max(earned["descent"], earned["greedy"])


def test_what_is_drawn_depends_on_the_seed():
    program, data = band(60), requests(60)
    one, same, other = (program.replay(osilp.ExperienceReplay(), data, seed=seed).dual for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_the_loop_that_is_not_compiled_decides_the_same():
    """Without numba the same source runs as it stands."""
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np, osilp_pyomo as osilp\n"
        "from test_experience import band, requests\n"
        "run = band(60, grid=osilp.Midpoint(12)).replay(osilp.ExperienceReplay(replays=8), requests(60))\n"
        "print(repr([*run.decisions, *run.dual]))\n"
    )
    run = band(60, grid=osilp.Midpoint(12)).replay(osilp.ExperienceReplay(replays=8), requests(60))
    command = [sys.executable, "-c", code, os.path.dirname(__file__)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    plain = np.array([float(each) for each in re.findall(r"[-\d.]+(?:e-?\d+)?", found.replace("np.float64", ""))])
    np.testing.assert_allclose(plain, [*run.decisions, *run.dual], rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 2**63), first=st.integers(0, 10**9), count=st.integers(1, 30), each=st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_numbers_that_are_drawn_do_not_depend_on_the_portion(seed, first, count, each):
    together = uniforms(seed, first, count, each)
    assert np.all((together >= 0) & (together < 1))
    np.testing.assert_array_equal(together, np.vstack([uniforms(seed, first + k, 1, each) for k in range(count)]))


def test_numbers_that_are_drawn_are_uniform():
    drawn = uniforms(5, 0, 20_000, 4)
    assert np.abs(np.histogram(drawn, 20, (0, 1))[0] / drawn.size - 0.05).max() < 0.004
    assert np.abs(np.corrcoef(drawn.T) - np.eye(4)).max() < 0.03
    assert np.abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 0.03


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_primitives_are_the_same_in_both_forms(data):
    size = data.draw(st.integers(1, 11))
    vectors = np.random.default_rng(data.draw(st.integers(0, 1000))).normal(size=(6, size))
    assert practice._dot_loop(*vectors[:2]) == pytest.approx(practice._dot_numpy(*vectors[:2]), rel=1e-12, abs=1e-12)
    one, two = vectors[:2].copy(), vectors[:2].copy()
    for form, (learner, mean) in ((practice._move_loop, one), (practice._move_numpy, two)):
        form(learner, mean, 0.3, 0.1, vectors[2], vectors[3], np.zeros(size))
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


# -- what is remembered ---------------------------------------------------------------------------------------------


def test_every_arrival_is_remembered_with_the_same_chance():
    program, data = band(60, grid=osilp.Midpoint(12)), requests(60, 1)
    data["value"] = np.arange(60) / 60
    kept = np.zeros(60)
    for seed in range(200):
        controller = program.controller(osilp.ExperienceReplay(replays=0, memory=15), seed=seed)
        controller.steps(data)
        memory = controller._live.memory
        assert (memory.met, memory.size) == (60, 15)
        kept[np.round(memory.to_arrays()["rewards"][:, 0] * 60).astype(int)] += 1
    # 200 draws with chance 1/4 each: 50 +- 6.1.
    assert kept.min() > 50 - 4 * 6.2
    assert kept.max() < 50 + 4 * 6.2
    assert kept.sum() == 200 * 15


def test_a_copy_of_a_memory_is_another_one():
    program, data = band(60, grid=osilp.Midpoint(12)), requests(60)
    one, other = (program.controller(osilp.ExperienceReplay(memory=10)) for _ in range(2))
    for controller in (one, other):
        controller.steps(data[:30])
    one._live.memory = one._live.memory.copy()
    left = one._live.memory.copy()
    one._live.memory.copy().lesson(20, osilp.ExperienceReplay(), np.ones(len(one.dual))).sample.use[:] = 9.0
    pd.testing.assert_frame_equal(one.steps(data[30:]), other.steps(data[30:]))
    assert left.met == 30


def test_memory_is_flat():
    program = band(3000, grid=osilp.Midpoint(12))
    controller = program.controller(osilp.ExperienceReplay(memory=50))
    controller.steps(requests(3000))
    assert controller._live.memory._sample.use.shape[0] == 51


def test_a_saved_memory_is_that_of_the_program_whatever_was_revised(tmp_path):
    """What is remembered is in units of the program's budget, which a revised horizon or budget does not change."""
    program, data = band(60, grid=osilp.Midpoint(12)), requests(90)
    controller = program.controller(osilp.ExperienceReplay())
    controller.steps(data[:30])
    controller.revise(90)
    controller.add_budget("usage", 1.0)
    controller.release(data.iloc[0], x=0.0)
    controller.update(data.iloc[30], x=0.5)
    controller.save(tmp_path / "state.npz")
    again = osilp.load_controller(tmp_path / "state.npz", program)
    pd.testing.assert_frame_equal(controller.steps(data[31:]), again.steps(data[31:]))
    np.testing.assert_array_equal(controller.dual, again.dual)


# -- the points that are practised on ----------------------------------------------------------------------------------


def points_of(program, data):
    controller = program.controller(osilp.ExperienceReplay())
    controller.steps(data)
    return len(controller._live.memory.spacing.points)


def test_points_are_as_far_apart_as_columns_are_smooth():
    grid = osilp.Midpoint(800)
    smooth, finer, narrow = (points_of(band(40, width, grid=grid), requests(40)) for width in (0.3, 0.05, 0.004))
    assert smooth <= 800 / 16 + 2
    assert smooth < finer < narrow
    assert narrow >= 800
    dented = band(40, 0.3, grid=grid, limit=lambda u: 60 - 50 * pyo.exp(-(((u - 0.5) / 0.002) ** 2)))
    assert points_of(dented, requests(40)) >= 400


def test_an_arrival_that_is_not_smooth_makes_the_points_finer_from_then_on():
    """Steps, batches and one that was saved agree across the change, and what came before it does not know of it."""
    m = pyo.ConcreteModel()
    m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(2)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.shape = osilp.Profile(m.T, over=m.u, points=np.linspace(0, 1, 201), initialize=lambda m, t: np.ones(201) * t)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.use = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.shape[t](u) * m.x[t] for t in m.T) <= 20)
    program = osilp.compile_online(m, stages=m.T, horizon=60, grid=np.linspace(0, 1, 201))
    rng = np.random.default_rng(4)
    data, places = pd.DataFrame({"value": rng.uniform(size=60)}), np.linspace(0, 1, 201)
    shapes = np.exp(-(((places - rng.uniform(size=(60, 1))) / 0.2) ** 2))
    rough = shapes.copy()
    rough[30] = rng.uniform(size=201)
    controller = program.controller(osilp.ExperienceReplay())
    sizes = []
    for t in range(60):
        controller.steps(data.iloc[[t]], profiles={"shape": rough[[t]]})
        sizes.append(len(controller._live.memory.spacing.points))
    assert len(set(sizes[:30])) == 1
    assert set(sizes[30:]) == {201}
    run = program.replay(osilp.ExperienceReplay(), data, profiles={"shape": rough})
    np.testing.assert_allclose(run.dual, controller.dual, rtol=1e-9, atol=1e-12)
    assert run.objective == pytest.approx(controller.reward)
    smooth = program.replay(osilp.ExperienceReplay(), data, profiles={"shape": shapes})
    np.testing.assert_array_equal(run.decisions[:30], smooth.decisions[:30])


# -- what it is for ---------------------------------------------------------------------------------------------------


def test_a_price_that_is_known_is_where_it_begins():
    program = band(300)
    best = program.solve_offline(requests(300, 8)).price
    cold, warm = (
        np.mean([
            program.replay(osilp.ExperienceReplay(), requests(300, seed), warm_start=start).objective
            for seed in range(20, 26)
        ])
        for start in (None, best)
    )  # fmt: skip
    assert warm > cold


def test_caution_leaves_something_for_others():
    program = band(100, width=0.5, limit=lambda u: 3 + 0 * u)
    for policy in (osilp.ExperienceReplay(), osilp.MirrorDescent(target="remaining", view="pointwise")):
        # 2 / sqrt(100) of a limit of .3 is allowed, and it uses 1 at its place.
        assert program.controller(policy).step(value=1.0, place=0.5).x == pytest.approx(0.2 * 0.3, rel=1e-3)
    assert program.controller(osilp.Greedy()).step(value=1.0, place=0.5).x > 0.29


def concave():
    m = pyo.ConcreteModel()
    m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(5)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: t)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(pyo.log(1 + m.value[t] * m.x[t]) for t in m.T), sense=pyo.maximize)
    m.use = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) <= 3)
    return osilp.compile_online(m, stages=m.T)


def test_stages_that_it_cannot_practise_are_refused():
    program = concave()
    assert program.controller().policy == osilp.Resolve()
    with pytest.raises(OptionError) as caught:
        program.controller(osilp.ExperienceReplay())
    assert str(caught.value) == (
        "ExperienceReplay: it needs linear stages whose decisions have bounds only, or are one of several options, and "
        f"these are solved by '{program.stage_solver}'; use Resolve()."
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"replays": 1.5}, "ExperienceReplay: replays must be a whole number >= 0 (got 1.5)."),
        ({"memory": 0}, "ExperienceReplay: memory must be a whole number >= 1 (got 0)."),
        ({"step": 0.0}, "ExperienceReplay: step must be a number > 0 (got 0.0)."),
        ({"caution": True}, "ExperienceReplay: caution must be a number > 0 (got True)."),
    ],
)
def test_settings_that_are_none(given, text):
    with pytest.raises(OptionError) as caught:
        osilp.ExperienceReplay(**given)
    assert str(caught.value) == text


def test_a_memory_that_was_not_saved_is_refused(tmp_path):
    program = band(60, grid=osilp.Midpoint(12))
    controller = program.controller(osilp.ExperienceReplay(memory=20))
    controller.steps(requests(30))
    controller.save(tmp_path / "whole.npz")
    header, arrays = read_state(tmp_path / "whole.npz")
    for name, value, why in (
        ("met", np.array(31), "the memory tells of more arrivals than were met"),
        ("spacing", np.array(3), "the memory's 'spacing' or 'met' is none that this program has"),
        ("rewards", np.zeros((20, 2)), r"the memory's 'rewards' must have the shape \(20, 1\) \(got \(20, 2\)\)"),
        ("lower", None, "the memory's 'lower' is missing"),
    ):
        crafted = {key: each for key, each in {**arrays, f"memory:{name}": value}.items() if each is not None}
        write_state(tmp_path / "crafted.npz", header, crafted)
        with pytest.raises(SavedStateError, match=why):
            osilp.load_controller(tmp_path / "crafted.npz", program)


def test_the_policy_where_none_is_named():
    """What decides follows from the stages, and is told with the reason."""

    def told(program):
        return next(line.strip() for line in program.describe().splitlines() if line.startswith("  policy"))

    grid = osilp.Midpoint(12)
    many, few = band(200, grid=grid), band(60, grid=grid)
    assert many.controller().policy == osilp.ExperienceReplay()
    assert told(many) == (
        "policy    ExperienceReplay() unless another is named (least regret for microseconds an arrival, where stages "
        "are linear)"
    )
    assert few.controller().policy == osilp.Resolve(exact=True)
    assert told(few) == "policy    Resolve(exact=True) unless another is named (fewer than 100 arrivals are expected)"
    data = requests(30)
    assert many.replay(data=data).policy == repr(osilp.ExperienceReplay())
    assert many.replay(data=many.project(data)).policy == repr(osilp.Resolve())
    assert band(200, grid=grid, kind=pyo.Binary).controller().policy == osilp.ExperienceReplay()


@pytest.mark.long
@pytest.mark.parametrize(("kind", "total"), [(pyo.Reals, None), (pyo.Binary, None), (pyo.Reals, 90)])
def test_it_is_near_resolving(kind, total):
    """Within a tenth of solving again from the same sample, and far from mirror descent, also beside other units.

    Moved copies of the sample, which ``Resolve`` learns from by default, are no part of this policy.
    """
    program, relaxed = band(500, kind=kind, total=total), band(500, total=total)
    again = osilp.Resolve(exact=True, smoothed=False)
    regrets = {osilp.ExperienceReplay(): [], again: [], osilp.MirrorDescent(): []}
    for seed in range(2000, 2004):
        data = requests(500, seed)
        best = relaxed.solve_offline(data, progress=False).objective
        for policy, found in regrets.items():
            run = program.replay(policy, data)
            assert run.violation == 0
            found.append(1 - run.objective / best)
    near, exact, first = map(np.mean, regrets.values())
    assert total is not None or near < 1.1 * exact
    assert near < 0.5 * first
