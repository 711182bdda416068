"""A controller in a service: batches, late updates, a log, a what-if, quotes, and what is left along the index."""

import pickle
import resource
import signal
import sys
import threading

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from interrupts import interrupted_after

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model
from osilp_pyomo.errors import DataError, OptionError, SavedStateError

HORIZON = 40


@pytest.fixture(scope="module")
def program():
    m = demo_model(arrivals=HORIZON)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5), grid=40)


def some(seed, count=HORIZON):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"value": rng.uniform(size=count), "place": rng.uniform(size=count)})


# -- batches -----------------------------------------------------------------------------------------------


def test_all_arrivals_together_are_the_optimum_in_hindsight(program):
    data = some(1)
    controller = program.controller(osilp.Resolve(exact=True))
    controller.steps(data, together=True)
    best = program.solve_offline(data, "discretized").objective
    # The guard lifts uses between forty points and keeps a little back, which the optimum at the points does not.
    assert 0.98 * best <= controller.reward <= best * (1 + 1e-9)
    assert controller.point_remaining.min() > -1e-9


def test_batches_together_are_better_than_at_one_price(program):
    rewards = {"together": 0.0, "hold_price": 0.0}
    for seed in range(3):
        data = some(seed)
        for way in rewards:
            controller = program.controller(osilp.Resolve(exact=True))
            for start in range(0, HORIZON, 10):
                controller.steps(data.iloc[start : start + 10], **{way: True})
            rewards[way] += controller.reward
            assert controller.t == HORIZON
            assert controller.point_remaining.min() > -1e-9
    assert rewards["together"] > 1.02 * rewards["hold_price"]


def test_a_first_batch_at_one_price_is_not_free(program):
    """The price of the batch itself: the cheapest arrivals are refused though nothing was met before."""
    found = program.controller(osilp.Resolve(exact=True)).steps(some(1, 20), hold_price=True)
    assert (found["x"] == 0).any()
    assert found.loc[found["x"] == 0, "reason"].eq("priced").any()


def test_batches_of_a_controller_that_was_saved(program, tmp_path):
    data = some(2)
    whole, broken = (program.controller(osilp.Resolve()) for _ in range(2))
    for start in range(0, HORIZON, 20):
        part = data.iloc[start : start + 20]
        kept = whole.steps(part, together=True)
        broken.save(tmp_path / "state.npz")
        broken = osilp.load_controller(tmp_path / "state.npz", program)
        pd.testing.assert_frame_equal(kept, broken.steps(part, together=True))


def test_options_and_whole_numbers_together():
    """Forty requests that pay alike, each with two options on ten places: all places are taken, no option twice."""
    m = pyo.ConcreteModel()
    m.T, m.J = pyo.RangeSet(3), pyo.RangeSet(2)
    m.pay = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, m.J, within=pyo.Binary)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: m.x[t, 1] + m.x[t, 2] <= 1)
    m.reward = pyo.Objective(expr=sum(m.pay[t] * m.x[t, j] for t in m.T for j in m.J), sense=pyo.maximize)
    m.places = pyo.Constraint(m.J, rule=lambda m, j: sum(m.x[t, j] for t in m.T) <= 10)
    options = osilp.compile_online(m, stages=m.T, horizon=40)
    data = pd.DataFrame({"pay": np.ones(40)})
    assert options.replay(osilp.Resolve(), data, progress=False).objective == 20
    controller = options.controller(osilp.Resolve())
    found = [controller.steps(data.iloc[start : start + 20], together=True) for start in (0, 20)]
    taken = pd.concat(found)[[("x", 1), ("x", 2)]].to_numpy()
    assert taken.sum(axis=1).max() == 1
    assert taken.sum(axis=0).max() <= 10
    assert taken.sum() >= 19


def test_together_is_refused_where_nothing_is_learned(program):
    with pytest.raises(OptionError) as caught:
        program.controller(osilp.Greedy()).steps(some(1), together=True)
    assert str(caught.value) == (
        "steps: together=True needs a policy that learns from samples, such as Resolve() (got Greedy()); use "
        "hold_price=True."
    )
    with pytest.raises(OptionError) as caught:
        program.controller(osilp.Resolve()).steps(some(1), together=True, hold_price=True)
    assert str(caught.value) == "steps: together=True decides by one problem and not by a price; leave hold_price= out."


# -- late updates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [osilp.Resolve(), osilp.MirrorDescent(), osilp.ExperienceReplay()])
def test_updates_in_any_order(program, policy, tmp_path):
    data = some(3, 6)
    controller = program.controller(policy)
    done = {1: 1.0, 4: 0.5, 2: 0.0, 3: 1.0, 5: 1.0}
    for t, x in done.items():
        controller.update(data.iloc[t - 1], x=x, t=t)
        if t == 4:
            assert controller.awaited == (2, 3)
            assert controller.t == 4
            controller.save(tmp_path / "state.npz")
            controller = osilp.load_controller(tmp_path / "state.npz", program)
    assert controller.awaited == ()
    assert controller.t == 5
    assert controller.reward == pytest.approx(sum(x * data["value"][t - 1] for t, x in done.items()))
    before = controller.remaining
    with pytest.raises(DataError) as caught:
        controller.update(data.iloc[1], x=0.0, t=2)
    assert str(caught.value) == (
        "update: the arrival 2 was met already, and is not awaited; release(...) and add_budget(...) put right what it "
        "used."
    )
    with pytest.raises(DataError):
        controller.update(data.iloc[1], x=7.0, t=8)
    assert controller.awaited == ()
    assert controller.t == 5
    pd.testing.assert_series_equal(controller.remaining, before)


# -- log, what-if, quote ---------------------------------------------------------------------------------


def test_the_log_holds_the_last_decisions(program, tmp_path):
    data = some(4)
    ways = {"memory": 7, "file": tmp_path / "log.csv"}
    controllers = {way: program.controller(osilp.MirrorDescent(), log=keep) for way, keep in ways.items()}
    for controller in controllers.values():
        assert list(controller.log.columns) == ["value", "place", "x", "reason", "reward"]
        assert len(controller.log) == 0
        for row in data.iloc[:3].to_dict("records"):
            controller.step(**row)
        controller.steps(data.iloc[3:30])
        controller.update(data.iloc[30], x=0.25)
    told, kept = controllers["memory"].log, controllers["file"].log
    assert told.index.tolist() == list(range(25, 32))
    assert kept.index.tolist() == list(range(1, 32))
    pd.testing.assert_frame_equal(told, kept.iloc[-7:], check_index_type=False, check_dtype=False)
    assert kept["reward"].sum() == pytest.approx(controllers["file"].reward)
    assert told.loc[31, "x"] == 0.25
    assert kept["place"].tolist() == data["place"].iloc[:31].tolist()


@pytest.mark.parametrize("left", ["all but the last byte", "half of the last line", "half of the head", "nothing"])
def test_a_log_goes_on_behind_a_line_that_was_torn_off(program, tmp_path, left):
    """A process that was killed while it wrote leaves part of a line; what follows is whole again."""
    path, data = tmp_path / "log.csv", some(4)
    program.controller(osilp.MirrorDescent(), log=path).steps(data.iloc[:5])
    text = path.read_text()
    kept = {"all but the last byte": -1, "half of the last line": -12, "half of the head": 5, "nothing": 0}[left]
    path.write_text(text[:kept])
    controller = program.controller(osilp.MirrorDescent(), log=path)
    before = 4 if kept < 0 else 0
    assert len(controller.log) == before
    controller.steps(data.iloc[:2])
    controller.step(**data.iloc[2])
    assert controller.log.index.tolist() == [*range(1, before + 1), 1, 2, 3]
    assert controller.log["place"].tolist() == [*data["place"].iloc[:before], *data["place"].iloc[:3]]


# Between a file's opening and what closes it an interrupt leaves it to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("policy", [osilp.MirrorDescent(), osilp.Resolve()])
@pytest.mark.parametrize("where", ["memory", "file"])
def test_the_log_holds_nothing_that_was_interrupted(program, tmp_path, policy, where):
    """An interrupt before each line of a step: what did not become the state is not noted either."""
    controller = program.controller(policy, log=tmp_path / "log.csv" if where == "file" else 3)
    row, lines, stopped = {"value": 0.9, "place": 0.2}, 0, 0
    controller.step(**row)
    while interrupted_after(lines, ("controller.py", "decision_log.py"), lambda: controller.step(**row)):
        assert controller.log.index.tolist() == list(range(1, controller.t + 1))[-3 if where == "memory" else None :]
        lines, stopped = lines + 1, stopped + (controller.t == 1)
    assert stopped > 20


def test_a_log_on_a_full_disk(program, tmp_path):
    """What fitted of a line is no decision; when there is room again the log goes on behind whole lines."""
    path, data = tmp_path / "log.csv", some(5).to_dict("records")
    controller = program.controller(osilp.MirrorDescent(), log=path)
    controller.step(**data[0])
    size = path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
        with pytest.raises(SavedStateError, match=r"cannot be written \(.*\); nothing was decided"):
            controller.step(**data[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert controller.t == 1
    controller.step(**data[1])
    controller.step(**data[2])
    assert controller.log.index.tolist() == [1, 2, 3]
    assert controller.log["place"].tolist() == [row["place"] for row in data[:3]]


def test_a_log_of_other_columns_is_refused(program, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t,price\n1,0.5\n")
    controller = program.controller(osilp.MirrorDescent(), log=path)
    with pytest.raises(OptionError) as raised:
        controller.step(value=0.5, place=0.5)
    assert str(raised.value) == (
        f"log: '{path}' has other columns than the decisions of this controller ('t,price' and not "
        "'t,value,place,x,reason,reward'); name another file."
    )
    assert controller.t == 0
    assert path.read_text() == "t,price\n1,0.5\n"


def test_no_log_unless_asked(program):
    with pytest.raises(OptionError) as caught:
        _ = program.controller(osilp.Greedy()).log
    assert str(caught.value) == (
        "log: this controller keeps none; make it with controller(..., log=10_000) or a .csv path."
    )
    for wrong in (0, "log.txt", 2.5, True):
        with pytest.raises(OptionError):
            program.controller(osilp.Greedy(), log=wrong)


@pytest.mark.parametrize("policy", [osilp.Resolve(exact=True), osilp.MirrorDescent(), osilp.ExperienceReplay()])
def test_a_fork_goes_its_own_way(program, policy):
    data = some(5)
    controller = program.controller(policy, log=5)
    controller.steps(data.iloc[:10])
    other = controller.fork()
    before, seen = controller.remaining, controller.log
    other.steps(data.iloc[10:20])
    other.add_budget("usage", -0.5)
    assert (controller.t, other.t) == (10, 20)
    pd.testing.assert_series_equal(controller.remaining, before)
    pd.testing.assert_frame_equal(controller.log, seen)
    again = controller.fork()
    kept = [each.steps(data.iloc[10:]) for each in (controller, again)]
    pd.testing.assert_frame_equal(*kept)


@pytest.mark.parametrize("policy", [osilp.Resolve(exact=True), osilp.MirrorDescent()])
def test_a_quote_is_where_decisions_change(program, policy):
    controller = program.controller(policy, warm_start=some(9))
    controller.steps(some(6, 15))
    state = controller.dual
    for place in (0.2, 0.5, 0.8):
        quote = controller.quote(place=place)
        assert quote == controller.quote({"place": place, "value": 0.3})
        assert controller.fork().decide(value=quote * 1.001 + 1e-9, place=place).wanted > 0
        if quote > 0:
            assert controller.fork().decide(value=quote * 0.999, place=place).wanted == 0
    assert np.array_equal(controller.dual, state)
    assert controller.t == 15


def test_nothing_fits_at_any_price(program):
    controller = program.controller(osilp.Greedy())
    controller.add_budget("usage", -1e6)
    assert controller.quote(place=0.5) == np.inf
    with pytest.raises(DataError) as caught:
        controller.quote(value=0.5)
    assert str(caught.value) == "An arrival must bring 'place' (got nothing, and it has no default)."


def test_what_is_left_along_the_index(program):
    controller = program.controller(osilp.Greedy(), "none")
    first = controller.remaining_over_index
    assert first.columns.tolist() == ["row", "index", "limit", "remaining"]
    assert first["index"].is_monotonic_increasing
    assert np.allclose(first["remaining"], first["limit"])
    controller.step(value=1.0, place=0.5)
    used = first["remaining"] - controller.remaining_over_index["remaining"]
    assert used.max() == pytest.approx(1.0, abs=0.05)
    assert first["index"][used.argmax()] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("way", ["step", "steps", "resumed", "fork"])
def test_what_is_left_along_the_index_is_not_told_of_projected_arrivals(program, way, tmp_path):
    controller = program.controller(osilp.MirrorDescent(), "projected")
    batch = program.project(pd.DataFrame({"value": [0.9, 0.8], "place": [0.4, 0.6]}))
    if way == "steps":
        controller.steps(batch)
    else:
        for arrival in batch:
            controller.step(arrival)
    if way == "resumed":
        controller.save(tmp_path / "state.npz")
        controller = osilp.load_controller(tmp_path / "state.npz", program)
    if way == "fork":
        controller = controller.fork()
        controller.step(value=0.5, place=0.5)
    why = (
        ": projected arrivals came, which do not say what they use at single points; give their data to step or steps, "
        "or look at controller.remaining, what is left against the test functions."
    )
    with pytest.raises(OptionError) as caught:
        _ = controller.remaining_over_index
    assert str(caught.value) == f"remaining_over_index{why}"
    with pytest.raises(OptionError) as caught:
        controller.plot()
    assert str(caught.value) == f"plot{why}"
    assert "Controller" in controller._repr_html_()


def test_a_run_of_projected_arrivals_does_not_tell_its_use_along_the_index(program):
    data = pd.DataFrame({"value": [0.9, 0.8], "place": [0.4, 0.6]})
    run = program.rescaled(2).replay(osilp.MirrorDescent(), program.rescaled(2).project(data), guard="projected")
    with pytest.raises(OptionError) as caught:
        run.use_along_index()
    assert str(caught.value) == (
        "use_along_index: projected arrivals do not say what they use at single points; replay the data themselves."
    )


@pytest.mark.parametrize("policy", [osilp.MirrorDescent(), osilp.ExperienceReplay(replays=4), osilp.Resolve()])
def test_threads_share_a_controller(program, policy):
    """What every thread was told is what was paid for."""
    controller, told = program.rescaled(400).controller(policy, "pointwise", log=400), []
    rows = [some(seed, 60).to_dict("records") for seed in range(4)]

    def serve(mine):
        told.extend((row, controller.step(**row).x, controller.decide(**row).t) for row in mine)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=serve, args=(mine,)) for mine in rows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert controller.t == len(controller.log) == len(told) == 240
    assert controller.reward == pytest.approx(sum(row["value"] * x for row, x, _ in told))


def test_a_controller_can_be_pickled(program):
    controller = program.controller(osilp.MirrorDescent(), log=5)
    controller.step(value=0.5, place=0.5)
    again = pickle.loads(pickle.dumps(controller))
    assert again.step(value=0.9, place=0.2) == controller.step(value=0.9, place=0.2)
    assert again.t == controller.t == 2
