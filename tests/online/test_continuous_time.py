"""Arrivals in continuous time: an end in place of a count, and that every way to run gives the same decisions."""

import warnings

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest

import osilp_pyomo as osilp
from osilp_pyomo._files import read_state, write_state
from osilp_pyomo.demo import demo_model
from osilp_pyomo.errors import DataError, HorizonError, HorizonWarning, OptionError, SavedStateError
from osilp_pyomo.online.clock.clock import Clock
from osilp_pyomo.online.clock.times import Times

EXPECTED = 30
HOURS = {"until": 18, "since": 8, "time": "hour"}


@pytest.fixture(scope="module")
def program():
    m = demo_model(arrivals=EXPECTED)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5), grid=40)


def day(seed, count=40, rush=False):
    rng = np.random.default_rng(seed)
    hour = 8 + 10 * np.sort(rng.beta(4, 2, size=count) if rush else rng.uniform(size=count))
    return pd.DataFrame({"hour": hour, "value": rng.uniform(size=count), "place": rng.uniform(size=count)})


POLICIES = {
    "exact": osilp.Resolve(exact=True),
    "projected": osilp.Resolve(),
    "replay": osilp.ExperienceReplay(),
    "refined": osilp.AccelerateThenRefine(),
    "entropy": osilp.MirrorDescent("entropy", "remaining", view="pointwise"),
}
FORECASTS = {"none": None, "times": day(8, 35, rush=True), "no order": osilp.Forecast(day(8, 35))}
WAYS = [(name, "none") for name in POLICIES] + [("exact", "times"), ("exact", "no order")]


@pytest.mark.parametrize(("policy", "forecast"), WAYS)
def test_steps_replay_chunks_and_a_saved_controller_decide_alike(program, policy, forecast, tmp_path):
    data = day(3, rush=True)
    # Several at once are no exception.
    data.loc[10:13, "hour"] = data["hour"][10]
    settings = {**HOURS, "forecast": FORECASTS[forecast]}
    run = program.replay(POLICIES[policy], data, **settings, progress=False)
    controller = program.controller(POLICIES[policy], **settings)
    steps = []
    for t, row in enumerate(data.to_dict("records")):
        if t in (0, 1, 12, 29):
            controller.save(tmp_path / "state.npz")
            controller = osilp.load_controller(tmp_path / "state.npz", program)
        asked = controller.decide(row) if t % 7 == 0 else None
        decision = controller.step(row)
        assert asked in (None, decision)
        steps.append(decision.x)
    assert run.decisions.to_numpy() == pytest.approx(steps, abs=1e-9)
    chunks = [data.iloc[:1], data.iloc[1:12], data.iloc[12:37], data.iloc[37:]]
    long = program.replay(POLICIES[policy], chunks, **settings, progress=False)
    assert long.objective == pytest.approx(run.objective, rel=1e-9)
    parts = program.controller(POLICIES[policy], **settings)
    found = pd.concat([parts.steps(part) for part in chunks])
    assert found["x"].to_numpy() == pytest.approx(steps, abs=1e-9)
    assert run.violation == 0


@pytest.mark.parametrize(("policy", "forecast"), [("exact", "none"), ("exact", "times"), ("replay", "none")])
def test_nothing_looks_ahead(program, policy, forecast):
    """Other arrivals after the twelfth, at other times and more of them, leave the first twelve decisions."""
    data, more = day(3), day(4, 80)
    other = pd.concat([data.iloc[:12], more[more["hour"] > data["hour"][11]]])
    found = [
        program.replay(POLICIES[policy], each, **HOURS, forecast=FORECASTS[forecast], progress=False).decisions
        for each in (data, other)
    ]
    assert found[0].iloc[:12].tolist() == found[1].iloc[:12].tolist()


def test_units_and_origin_of_time_do_not_matter(program):
    """Hours, seconds and dates give the same decisions."""
    data = day(5)
    midnight = pd.Timestamp("2026-03-01")
    asked = [
        (data, HOURS),
        (data.assign(hour=3600 * data["hour"]), {"until": 18 * 3600, "since": 8 * 3600, "time": "hour"}),
        (
            data.assign(hour=midnight + pd.to_timedelta(data["hour"], unit="h")),
            {"until": midnight + pd.Timedelta(hours=18), "since": midnight + pd.Timedelta(hours=8), "time": "hour"},
        ),
    ]
    found = [program.replay(osilp.Resolve(exact=True), *each[:1], **each[1], progress=False) for each in asked]
    for other in found[1:]:
        assert other.decisions.to_numpy() == pytest.approx(found[0].decisions.to_numpy(), abs=1e-6)


def test_how_many_are_ahead():
    """Even rates, the shape of a forecast, and which of both is believed."""
    clock = Clock(Times.of(0, 10, None), 100)
    state = clock.begin()
    assert clock.ahead(state, 0.0, 0) == 100
    assert clock.ahead(state, 5.0, 50) == 50
    # What chance explains changes nothing; twice as many do.
    assert clock.ahead(state, 5.0, 55) == 50
    assert 95 < clock.ahead(state, 5.0, 100) < 100
    # Nobody came for most of the time.
    assert clock.ahead(state, 8.0, 0) < 1
    # All are foretold in the second half.
    late = Clock(Times.of(0, 10, None), 100, np.linspace(5, 10, 400))
    state = late.begin()
    assert 90 < late.ahead({**state, "now": np.array([4.9])}, 4.9, 1) <= 105
    # But come at an even rate from the beginning: the forecast is not believed.
    state = late.counted(state, np.linspace(0.05, 4.9, 49))
    assert 45 < late.ahead(state, 4.9, 49) < 60
    # Behind the planned end they go on at the mean rate.
    longer = clock.revised(clock.begin(), 12.0)
    assert clock.ahead(longer, 10.0, 100) == pytest.approx(20)
    assert clock.ahead(longer, 12.0, 120) == 0


def test_a_known_rate_costs_little(program):
    """Where as many come as are expected, the end serves as well as the count."""
    gaps = []
    for seed in range(6):
        data = day(seed, EXPECTED)
        known = program.replay(osilp.Resolve(exact=True), data, progress=False).objective
        gaps.append(program.replay(osilp.Resolve(exact=True), data, **HOURS, progress=False).objective / known - 1)
    assert abs(np.mean(gaps)) < 0.05


def test_batches_are_decided_when_all_of_them_are_there(program):
    data = day(6)
    controller = program.controller(osilp.Resolve(exact=True), **HOURS)
    first = controller.steps(data.iloc[:15], together=True)
    assert controller.t == 15
    assert controller.now == pytest.approx(data["hour"][14])
    held = controller.steps(data.iloc[15:30], hold_price=True)
    last = controller.steps(data.iloc[30:], together=True)
    assert (controller.point_remaining >= -1e-9).all()
    assert min(part["x"].sum() for part in (first, held, last)) > 0
    # Nobody comes after the last batch, and the controller knows that almost nobody does.
    assert controller.horizon - controller.t <= 5


def test_another_end_and_what_comes_after_it(program):
    data = day(7)
    controller = program.controller(osilp.Resolve(exact=True), **HOURS)
    controller.steps(data[data["hour"] < 12])
    before = controller.horizon
    controller.revise(until=13)
    controller.step(now=12.0, value=0.5, place=0.5)
    assert controller.until == 13
    assert controller.horizon < before
    controller.revise(until=20)
    controller.step(now=12.0, value=0.5, place=0.5)
    assert controller.horizon > before
    controller.revise(until=13)
    with pytest.warns(HorizonWarning) as warned:
        controller.step(now=13.5, value=0.5, place=0.5)
    # Only once: warnings are errors.
    controller.step(now=14, value=0.5, place=0.5)
    assert [str(each.message) for each in warned] == [
        "The end 13.0 is reached: an arrival came at 13.5; decisions go on at the last price, on what is left. Tell the "
        "controller by revise(until=...) when the end is."
    ]
    controller.revise(until=15)
    assert controller.step(now=15, value=0.9, place=0.1).t == controller.t


def test_late_arrivals_need_no_time(program):
    """An awaited arrival may bring an earlier time, or none; the clock does not go back."""
    controller = program.controller(osilp.Resolve(exact=True), **HOURS, log=10)
    controller.update(now=9, value=0.5, place=0.5, x=1.0)
    controller.update(now=12, value=0.5, place=0.4, x=0.0, t=4)
    assert controller.awaited == (2, 3)
    controller.update(value=0.5, place=0.3, x=0.0, t=3)
    controller.update(now=10, value=0.5, place=0.2, x=0.0, t=2)
    assert controller.awaited == ()
    assert controller.now == 12
    assert controller.log["hour"].isna().sum() == 1
    assert controller.log["hour"][2] == 10
    controller.release(value=0.5, place=0.5, x=1.0)
    assert controller.quote(place=0.5) >= 0


def test_time_may_be_data_too():
    """A Param holds the time of arrivals, so that keywords bring it once; the model's own arrivals have it."""
    m = demo_model(arrivals=EXPECTED)
    m.hour = pyo.Param(m.T, mutable=True, initialize={t: 8 + t / 4 for t in m.T})
    m.reward.expr = sum(m.value[t] * (1 + m.hour[t] / 18) * m.x[t] for t in m.T)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5), grid=40)
    run = program.replay(osilp.Resolve(exact=True), **HOURS, progress=False)
    controller = program.controller(osilp.Resolve(exact=True), **HOURS)
    steps = [controller.step(**row).x for row in program.data.to_dict("records")]
    assert run.decisions.to_numpy() == pytest.approx(steps, abs=1e-9)


REFUSED = [
    ({"now": np.nan}, "step: now must be a time, a finite number or a date (got nan)."),
    ({"now": np.inf}, "step: now must be a time, a finite number or a date (got inf)."),
    ({"now": "noon"}, "step: now must be a time, a finite number or a date (got 'noon')."),
    ({"now": True}, "step: now must be a time, a finite number or a date (got True)."),
    ({"now": pd.NaT}, "step: now must be a time, a finite number or a date (got NaT)."),
    (
        {"now": pd.Timestamp("2026-01-01")},
        "step: now must be a number, as since= and until= are (got Timestamp('2026-01-01 00:00:00')).",
    ),
    (
        {"now": 7},
        "step: the arrival came at 7, before since=8.0. Arrivals come in the order of their times.",
    ),
    (
        {"now": 9.5},
        "step: the arrival came at 9.5, before the last one at 10.0. Arrivals come in the order of their times.",
    ),
    (
        {},
        "step: this controller runs in continuous time until 18.0; say when the arrival came by now=, or by 'hour' in "
        "a mapping.",
    ),
]


@pytest.mark.parametrize(("given", "text"), REFUSED)
def test_times_that_are_refused_change_nothing(program, given, text):
    controller = program.controller(osilp.MirrorDescent(), **HOURS)
    controller.step(now=10, value=0.5, place=0.5)
    before = controller.remaining
    with pytest.raises(DataError) as raised:
        controller.step(**given, value=0.5, place=0.5)
    assert str(raised.value) == text
    assert (controller.t, controller.now) == (1, 10)
    assert controller.remaining.equals(before)


def test_frames_that_are_refused(program):
    data = day(3)
    turned = data.assign(hour=data["hour"].to_numpy()[::-1])
    early, late = data.assign(hour=data["hour"] - 8), data.assign(hour=data["hour"] + 5)
    for frame, settings, text in (
        (turned, HOURS, "replay: the arrival 1 came at 17."),
        (early, HOURS, "replay: the arrival 0 came at 0."),
        (late, HOURS, "replay: an arrival came at 22."),
        (data, {"until": 18}, "replay: which column holds the times of arrivals? Name it by time= beside until=."),
        (
            data.drop(columns="hour"),
            HOURS,
            "replay: there is no column 'hour' of times (the columns are 'value', 'place').",
        ),
        (
            data.assign(hour="noon"),
            HOURS,
            "replay: the column 'hour' must hold in every row a number, as since= and until= are",
        ),
        (
            data.assign(hour=data["hour"].where(data.index != 5)),
            HOURS,
            "replay: the column 'hour' must hold in every row a number, as since= and until= are (a row holds none).",
        ),
        (None, HOURS, "replay: there is no column 'hour' of times (the columns are 'value', 'place')."),
    ):
        with pytest.raises(DataError) as raised:
            program.replay(osilp.MirrorDescent(), frame, **settings, progress=False)
        assert str(raised.value).startswith(text)
        if frame is not None:
            with pytest.raises(DataError):
                program.replay(osilp.MirrorDescent(), [frame.iloc[:20], frame.iloc[20:]], **settings, progress=False)


def test_settings_that_are_refused(program):
    stamp = pd.Timestamp("2026-01-01")
    for settings, kind, text in (
        ({"since": 8}, OptionError, "since= is for arrivals in continuous time; say by until= when they end."),
        ({"time": "hour"}, OptionError, "time= is for arrivals in continuous time; say by until= when they end."),
        ({"until": 5, "since": 8}, OptionError, "until= must lie after since= (got 5 and 8)."),
        ({"until": 0}, OptionError, "until= must lie after since= (got 0 and 0)."),
        ({"until": np.nan}, OptionError, "until= must be a time, a finite number or a date (got nan)."),
        ({"until": "18:00"}, OptionError, "until= must be a time, a finite number or a date (got '18:00')."),
        ({"until": stamp}, OptionError, "until= is a date; say by since= when the run begins."),
        (
            {"until": stamp, "since": 8},
            OptionError,
            "since= and until= must both be numbers, or both be dates with a time zone or without (got 8 and "
            "Timestamp('2026-01-01 00:00:00')).",
        ),
        ({"until": 18, "time": ["hour"]}, OptionError, "time= must name a column of the arrivals (got ['hour'])."),
        (
            {**HOURS, "forecast": day(3).assign(hour=day(3)["hour"] + 24)},
            DataError,
            "forecast=: one of its times is 32.",
        ),
    ):
        with pytest.raises(kind) as raised:
            program.controller(osilp.Resolve(), **settings)
        assert str(raised.value).startswith(text)
    controller = program.controller(osilp.Resolve(), **HOURS)
    for revise, text in (
        ({"horizon": 50}, "revise: this controller runs in continuous time until 18.0; give another end by until=,"),
        ({"until": 7}, "revise: until must not lie before 8.0, when the last arrival came (got 7)."),
        ({"until": stamp}, "revise: until must be a number, as since= and until= are"),
    ):
        with pytest.raises(OptionError) as raised:
            controller.revise(**revise)
        assert str(raised.value).startswith(text)
    counting = program.controller(osilp.Resolve())
    with pytest.raises(OptionError, match=r"^revise: give horizon=, how many arrivals come in all; until= is for"):
        counting.revise(until=18)
    with pytest.raises(DataError) as raised:
        counting.step(now=9, value=0.5, place=0.5)
    assert str(raised.value) == (
        "step: now= is for controllers in continuous time, made with program.controller(..., until=...)."
    )
    strict = program.controller(osilp.Resolve(), **HOURS, beyond="error")
    with pytest.raises(HorizonError) as raised:
        strict.step(now=19, value=0.5, place=0.5)
    assert str(raised.value) == (
        "The end 18.0 is reached: an arrival came at 19.0; use revise(until=...), or beyond='continue'."
    )


def test_a_damaged_file_is_refused(program, tmp_path):
    controller = program.controller(osilp.Resolve(), **HOURS, forecast=day(8, rush=True))
    controller.steps(day(3))
    controller.save(tmp_path / "state.npz")
    header, arrays = read_state(tmp_path / "state.npz")
    kept = {name: value for name, value in header.items() if name not in ("format", "arrays", "digest")}
    clocks = [None, {}, "noon", {**kept["clock"], "until": 3}, {**kept["clock"], "since": None, "dates": True}]
    crafted = [({**kept, "clock": clock}, arrays) for clock in clocks]
    for name, value in (
        ("clock:now", np.array([-1.0])),
        ("clock:until", np.array([np.nan])),
        ("clock:next", np.zeros(3)),
        ("forecast:times", arrays["forecast:times"][::-1]),
        ("forecast:times", arrays["forecast:times"][:-1]),
    ):
        crafted.append((kept, {**arrays, name: value}))
    for head, some in crafted:
        write_state(tmp_path / "other.npz", head, some)
        with pytest.raises(SavedStateError):
            osilp.load_controller(tmp_path / "other.npz", program)


def test_the_log_is_a_forecast_with_times(program, tmp_path):
    """What one day logged, the next one takes as its forecast; a file as well."""
    path = tmp_path / "today.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for log in (100, path):
            controller = program.controller(osilp.Resolve(exact=True), **HOURS, log=log)
            controller.steps(day(3))
            told = controller.log
            assert told.columns.tolist() == ["hour", "value", "place", "x", "reason", "reward"]
            tomorrow = program.controller(osilp.Resolve(exact=True), **HOURS, forecast=told)
            assert tomorrow.step(now=9, value=0.9, place=0.5).t == 1
    chunks = osilp.Forecast(osilp.Chunks(path), time="hour")
    from_file = program.controller(osilp.Resolve(exact=True), until=18, since=8, forecast=chunks)
    assert from_file.step(now=9, value=0.9, place=0.5) == program.controller(
        osilp.Resolve(exact=True), **HOURS, forecast=told
    ).step(now=9, value=0.9, place=0.5)


def test_a_queue_at_the_opening_is_no_rate():
    """Many who come at once at the beginning say little of how many come later."""
    clock = Clock(Times.of(0, 10, None), 100)
    assert clock.ahead(clock.begin(), 1e-6, 60) < 110
    assert clock.ahead(clock.begin(), 4.0, 80) > 100


def test_a_forecast_of_numbers_that_cannot_be_counted(program):
    with pytest.raises(DataError) as raised:
        program.controller(osilp.Resolve(), forecast=day(8).assign(value=1e200))
    assert str(raised.value) == (
        "forecast=: some of its numbers are so large that they cannot be counted with; look for a wrong unit, or for a "
        "missing value that was written as a number."
    )


def test_times_that_are_no_numbers(program):
    data = day(3)
    for hour in (data["hour"] + 0j, pd.to_timedelta(data["hour"], unit="h"), data["hour"] > 10):
        with pytest.raises(DataError, match=r"^replay: the column 'hour' must hold in every row a number"):
            program.replay(osilp.MirrorDescent(), data.assign(hour=hour), **HOURS, progress=False)
    with pytest.raises(OptionError, match=r"^until= must be a time, a finite number or a date \(got 1e\+300\)"):
        program.controller(osilp.MirrorDescent(), until=1e300)
