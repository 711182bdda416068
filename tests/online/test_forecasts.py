"""Forecasts: what they are read as, that nothing looks ahead, and that every way to run gives the same decisions."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model
from osilp_pyomo.errors import DataError, OptionError, SavedStateError
from osilp_pyomo.online.forecast import place_of
from osilp_pyomo.online.sampling.copies import moved_copies, moved_data
from osilp_pyomo.online.sampling.sample import Sample
from osilp_pyomo.online.stages.batch import VIEWS

HORIZON = 24


@pytest.fixture(scope="module")
def program():
    m = demo_model(arrivals=HORIZON)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5), grid=40)


def day(seed, count=HORIZON, growing=False):
    rng = np.random.default_rng(seed)
    value = rng.uniform(size=count) * (0.5 + np.arange(count) / count if growing else 1.0)
    return pd.DataFrame({"value": value, "place": rng.uniform(size=count)})


FORECASTS = {
    "none": None,
    "in order": day(8, growing=True),
    "no order": osilp.Forecast(day(8)),
    "wrong": day(8, 30).assign(value=5.0),
    "in chunks": osilp.Chunks(lambda: iter([day(8, 20), day(9, 20)])),
}
POLICIES = {
    "exact": osilp.Resolve(exact=True),
    "projected": osilp.Resolve(),
    "discounted": osilp.Resolve(exact=True, discount=10.0),
    "plain": osilp.Resolve(exact=True, smoothed=False),
}


@pytest.mark.parametrize(
    ("policy", "forecast"),
    [
        ("projected", "wrong"),
        ("plain", "in order"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in
          (("exact", "none"), ("exact", "in order"), ("exact", "no order"), ("discounted", "in chunks"))),
    ],
)  # fmt: skip
def test_steps_replay_chunks_and_a_saved_controller_decide_alike(program, policy, forecast, tmp_path):
    data, given = day(3), FORECASTS[forecast]
    run = program.replay(POLICIES[policy], data, forecast=given, progress=False)
    controller = program.controller(POLICIES[policy], forecast=given)
    steps = []
    for t in range(HORIZON):
        if t in (0, 1, 17, HORIZON - 1):
            controller.save(tmp_path / "state.npz")
            controller = osilp.load_controller(tmp_path / "state.npz", program)
        row = data.iloc[t].to_dict()
        asked = controller.decide(**row) if t % 10 == 0 else None
        decision = controller.step(**row)
        assert asked in (None, decision)
        steps.append(decision.x)
    assert run.decisions.to_numpy() == pytest.approx(steps, abs=1e-9)
    long = program.replay(POLICIES[policy], [data.iloc[:9], data.iloc[9:]], forecast=given, progress=False)
    assert long.objective == pytest.approx(run.objective, rel=1e-9)
    assert run.violation == 0


@pytest.mark.parametrize("forecast", ["none", "in order", "no order"])
def test_nothing_looks_ahead(program, forecast):
    """Other arrivals after the twelfth leave the first twelve decisions as they were."""
    data = day(3)
    other = pd.concat([data.iloc[:12], day(4).iloc[12:]])
    found = [
        program.replay(osilp.Resolve(exact=True), each, forecast=FORECASTS[forecast], progress=False).decisions
        for each in (data, other)
    ]
    assert found[0].iloc[:12].tolist() == found[1].iloc[:12].tolist()
    assert found[0].iloc[12:].tolist() != found[1].iloc[12:].tolist()


def test_a_forecast_prices_the_first_arrival(program):
    assert program.controller(osilp.Resolve(exact=True)).dual.max() == 0
    controller = program.controller(osilp.Resolve(exact=True), forecast=day(8))
    assert controller.dual.max() > 0
    assert controller.decide(value=0.01, place=0.5).x == 0


def test_where_no_policy_is_named_a_forecast_gets_one_that_takes_it():
    m = demo_model(arrivals=150)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5), grid=40)
    assert program.controller().policy == osilp.ExperienceReplay()
    assert program.controller(forecast=day(1)).policy == osilp.Resolve(exact=True)


def test_rows_after_an_arrival():
    frame = pd.DataFrame({"value": range(10)})
    assert place_of(10, 3, 100) == 0
    assert place_of(10, 50, 100) == 5
    assert place_of(10, 100, 100) == 9
    dates = pd.date_range("2026-01-10", periods=10, freq="-1D")
    ahead = osilp.Forecast(frame.assign(day=dates), time="day").after(80, 100)
    assert ahead["value"].tolist() == [1, 0]
    assert len(osilp.Forecast(frame).after(80, 100)) == 10


def test_what_is_refused(program):
    frame = day(8)
    for make, kind, text in (
        (
            lambda: osilp.Forecast(frame, time="hour"),
            OptionError,
            "Forecast: there is no column 'hour' of times (the columns are 'value', 'place').",
        ),
        (
            lambda: osilp.Forecast(frame.assign(hour="noon"), time="hour"),
            OptionError,
            "Forecast: the column 'hour' must hold a number or a date in every row.",
        ),
        (
            lambda: osilp.Forecast(frame.assign(hour=np.nan), time="hour"),
            OptionError,
            "Forecast: the column 'hour' must hold a number or a date in every row.",
        ),
        (
            lambda: program.controller(osilp.Resolve(), forecast=frame.iloc[:0]),
            DataError,
            "forecast=: there are no arrivals in it; leave it out where nothing is known.",
        ),
        (
            lambda: program.controller(osilp.Resolve(), forecast=7),
            OptionError,
            "forecast= must be a DataFrame of arrivals, Chunks or a Forecast (got int).",
        ),
        (
            lambda: program.controller(osilp.Resolve(), forecast=frame[["value"]]),
            DataError,
            "Arrivals: the frame has no column 'place' (its columns are 'value'), and the Param has no default.",
        ),
        (
            lambda: program.controller(osilp.Greedy(), forecast=frame),
            OptionError,
            "controller: forecast= is for policies that learn from a sample of arrivals, such as Resolve() (got "
            "Greedy()); give those arrivals as warm_start=, which begins at their price.",
        ),
        (
            lambda: osilp.compare(program, osilp.Resolve(), frame, trials=2, order="permutation", forecast=frame),
            OptionError,
            "compare: the forecast has an order, and order='permutation' takes it away from the arrivals; give it as "
            "osilp_pyomo.Forecast(frame), without times, so that it has none.",
        ),
        (
            lambda: osilp.Resolve(discount=0.5),
            OptionError,
            "Resolve: discount must be a number of arrivals of at least 1 (got 0.5).",
        ),
        (
            lambda: osilp.Resolve(smoothed=1),
            OptionError,
            "Resolve: smoothed must be True or False (got 1).",
        ),
    ):
        with pytest.raises(kind) as raised:
            make()
        assert str(raised.value) == text


def test_comparing_with_a_forecast(program):
    """Policies that learn from samples have it, others run without."""
    policies = [osilp.Resolve(exact=True), osilp.Greedy()]
    asked = {"trials": 2, "order": "permutation", "seed": 1, "benchmarks": ["exchange"], "progress": False}
    studies = [
        osilp.compare(program, policies, day(3), forecast=forecast, **asked)
        for forecast in (None, osilp.Forecast(day(8)))
    ]
    rewards = [study.runs.set_index(["policy", "trial"])["reward"] for study in studies]
    assert rewards[0]["Greedy"].tolist() == rewards[1]["Greedy"].tolist()
    assert rewards[0]["Resolve(exact=True)"].tolist() != rewards[1]["Resolve(exact=True)"].tolist()
    assert studies[1].settings["forecast"].startswith("24 arrivals without an order, ")


def test_a_file_without_the_whole_forecast(program, tmp_path):
    from osilp_pyomo._files import read_state, write_state

    controller = program.controller(osilp.Resolve(), forecast=day(8))
    controller.save(tmp_path / "state.npz")
    header, arrays = read_state(tmp_path / "state.npz")
    kept = {name: value for name, value in header.items() if name not in ("format", "arrays", "digest")}
    crafted = {
        "forecast:numbers": arrays["forecast:numbers"][:, :1],
        "foresight:levels": -arrays["foresight:levels"] - 1,
        "foresight:trust": np.array([np.nan]),
    }
    for name, value in crafted.items():
        write_state(tmp_path / "other.npz", kept, {**arrays, name: value})
        with pytest.raises(SavedStateError):
            osilp.load_controller(tmp_path / "other.npz", program)


def lost(program, data, forecast=None):
    """What is lost of the optimum in hindsight."""
    best = program.solve_offline(data, progress=False).objective
    return best - program.replay(osilp.Resolve(exact=True), data, forecast=forecast, progress=False).objective


@pytest.fixture(scope="module")
def longer():
    m = demo_model(arrivals=600)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(8), grid=60)


def test_a_day_whose_places_move_is_no_forecast_of_one_whose_places_do_not(longer):
    """It is not believed again when its arrivals have gone halfway, and their average is that of those seen."""
    data, moves = day(0, 600), day(50, 600)
    moves["place"] = (moves["place"] + np.arange(600) / 600) / 2
    assert lost(longer, data, moves) < 1.3 * lost(longer, data)


def test_what_is_used_tells_the_order_of_a_forecast_whose_level_is_wrong(longer):
    """Values 30 % too low look like those of the whole day at its beginning; places do not."""
    late = np.arange(600) >= 300
    data, yesterday = (
        each.assign(value=each["value"] * (0.75 + 0.75 * late), place=0.6 * each["place"] + 0.4 * late)
        for each in (day(0, 600), day(50, 600))
    )
    low = yesterday.assign(value=0.7 * yesterday["value"])
    assert lost(longer, data, low) < 1.2 * lost(longer, data, yesterday)


def test_moved_copies_keep_the_level_of_a_forecast(program):
    """Copies are evaluated anew from data that say nothing of what a forecast was corrected by."""
    sample = Sample.of_batch(program.batch(day(8)))
    plain, scaled = (
        moved_copies(program, each, True, "pointwise", True, (0, 0)) for each in (sample, sample.at_level(1.5, 0.8))
    )
    assert len(plain) == len(scaled) > len(sample)
    assert scaled.batch.rewards == pytest.approx(1.5 * plain.batch.rewards)
    for view in VIEWS:
        assert scaled.batch.use[view] == pytest.approx(0.8 * plain.batch.use[view])


@pytest.mark.parametrize("seed", range(3))
def test_ties_are_judged_alike_in_steps_and_replays(seed):
    """Equal requests at four places earn what they cost up to rounding, which differs between steps and batches."""
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(40)
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: float(rng.integers(4)) / 4)
    m.x = pyo.Var(m.T, domain=pyo.Binary)
    m.served = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(pyo.exp(-(((u - m.place[t]) / 0.3) ** 2)) * m.x[t] for t in m.T) <= 8
    )
    program = osilp.compile_online(m, stages=m.T, grid=30, basis=osilp.RBF(4))
    forecast = program.data.sample(frac=1, random_state=seed)
    run = program.replay(osilp.Resolve(), forecast=forecast, guard="none", progress=False)
    controller = program.controller(osilp.Resolve(), forecast=forecast, guard="none")
    steps = [controller.step(row).x for row in program.data.to_dict("records")]
    assert run.decisions.tolist() == steps


@pytest.mark.parametrize(("clustered", "beyond"), [(True, 0.05), (False, 0.6)])
def test_copies_of_places_in_clusters_stay_in_them(clustered, beyond):
    """Their variance is that of all places, and a kernel of its width would fill the space between clusters."""
    rng = np.random.default_rng(4)
    centres = np.array([0.2, 0.5, 0.85])
    places = rng.choice(centres, 200) + 0.02 * rng.normal(size=200) if clustered else rng.uniform(size=200)
    moved = moved_data(places[:, None], np.ones(200), np.arange(200), rng)
    far = np.abs(moved - centres).min(axis=1) > 0.08
    assert np.mean(far) < beyond
    assert np.std(moved[:, 0] - places) > (0.002 if clustered else 0.03)
