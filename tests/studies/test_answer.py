"""What the first screen of a report says is what the runs say, whoever wins and however close it is."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from models import packing
from study_inputs import packing_program

import osilp_pyomo as osilp
from osilp_pyomo.errors import OptionError
from osilp_pyomo.show.numbers import Units
from osilp_pyomo.studies.answer import Answer
from osilp_pyomo.studies.bars import bars_of

FRAMES = ("runs", "rows", "offline", "paths", "curves", "iterations")


@pytest.fixture(scope="module")
def study():
    return osilp.compare(
        packing_program(40), {"A": osilp.MirrorDescent(), "B": osilp.Resolve()}, order="permutation", trials=4,
        guards=["pointwise"], progress=False,
    )  # fmt: skip


def told(study, rewards, violation=None, **settings):
    """The study with other rewards of each policy, against an optimum of 100 in every trial."""
    runs, rows, offline = study.runs.copy(), study.rows.copy(), study.offline.copy()
    offline["objective"] = 100.0
    for policy, values in rewards.items():
        where = runs["policy"] == policy
        runs.loc[where, "reward"] = values
        for name in ("exchange", "projected"):
            runs.loc[where, f"relative_regret_{name}"] = (100.0 - np.asarray(values)) / 100
    runs["step_microseconds"] = 20.0
    for policy, excess in (violation or {}).items():
        runs.loc[runs["policy"] == policy, ["violation", "relative_violation"]] = [5 * excess, excess]
    rows["violation_between"] = 0.0
    tables = {"runs": runs, "rows": rows, "offline": offline}
    return osilp.Study(
        {**study.settings, **settings}, {name: tables.get(name, getattr(study, name)) for name in FRAMES}
    )


def answer(study, **units):
    model = study.settings["model"]
    return Answer.of(study, Units(units, ["reward"], "reward", model, "to_html"))


def test_one_that_is_better_on_the_same_arrivals(study):
    found = answer(told(study, {"A": [80, 90, 70, 85.0], "B": [90, 99, 81, 95.0]}), reward="EUR")
    assert found.headline() == (
        "Take B: it earns 91.3 % of the best possible, 91.25 EUR on average, and never exceeds capacity."
    )
    # Differences 10, 9, 11, 10: mean 10, standard deviation sqrt(2/3), 3.1824 * 0.8165 / 2 = 1.3.
    assert found.why() == "On the same arrivals it earns 10.0 EUR (± 1.3) more than A, the next best."
    assert found.table().iloc[0].tolist() == ["B", "91 EUR (± 12)", "91.3 % (± 12.4)", "never exceeded", "50,000"]
    assert list(found.table().columns) == [
        "policy", "earns on average", "share of the best possible", "capacity", "decisions a second",
    ]  # fmt: skip


def test_those_that_the_trials_cannot_tell_apart(study):
    found = answer(told(study, {"A": [80, 90, 70, 85.0], "B": [82, 88, 73, 84.0]}))
    assert found.headline() == (
        "Take B: it earns 81.8 % of the best possible, 81.75 on average, and never exceeds capacity; 4 trials cannot "
        "tell it from A."
    )
    assert found.why() == ""


def test_what_earns_more_by_exceeding_capacity_is_not_taken(study):
    found = answer(told(study, {"A": [120, 121, 119, 120.0], "B": [90, 91, 89, 90.0]}, {"A": 0.345}))
    assert found.headline() == (
        "Take B: it earns 90.0 % of the best possible, 90 on average, and never exceeds capacity."
    )
    assert found.why() == "A earns more, but exceeds capacity by up to 34.5 %."
    assert found.table()["capacity"].tolist() == ["never exceeded", "exceeded by up to 34.5 %"]
    drawn = bars_of(found)
    assert "orange: capacity exceeded" in drawn
    assert drawn.count("class='bar bad'") == 1


def test_what_earns_more_and_exceeds_between_the_points_is_named(study):
    made = told(study, {"A": [120, 121, 119, 120.0], "B": [90, 91, 89, 90.0]})
    limit = made.curves.loc[made.curves["kind"] == "limit", "value"].abs().median()
    made.rows.loc[made.rows["policy"] == "A", "violation_between"] = 0.004 * limit
    found = answer(made)
    assert found.headline().startswith("Take B: it earns 90.0 %")
    assert found.why() == "A earns more, but exceeds capacity between the points that are watched by up to 0.4 %."


def test_where_all_exceed_it_the_least_is_named(study):
    found = answer(told(study, {"A": [120, 121, 119, 120.0], "B": [90, 91, 89, 90.0]}, {"A": 0.3, "B": 0.4}))
    assert found.headline() == (
        "Every policy exceeds capacity; A does so least: by up to 30.0 %, and it earns 120.0 % of the best possible, "
        "120 on average."
    )


def test_a_single_trial_says_that_it_is_one(study):
    one = told(study, {"A": [80, 90, 70, 85.0], "B": [90, 99, 81, 95.0]})
    cut = {name: getattr(one, name)[lambda frame: frame["trial"] == 0] for name in FRAMES}
    found = answer(osilp.Study({**one.settings, "trials": 1}, cut))
    assert found.headline() == (
        "Take B: it earns 90.0 % of the best possible, 90, and never exceeds capacity; one trial cannot tell how much "
        "of this is luck."
    )


def test_what_is_exceeded_between_the_points_is_said(study):
    made = told(study, {"A": [80, 90, 70, 85.0], "B": [90, 99, 81, 95.0]})
    limit = made.curves.loc[made.curves["kind"] == "limit", "value"].abs().median()
    made.rows["violation_between"] = 0.0005 * limit
    found = answer(made)
    assert found.headline().endswith("and never exceeds capacity by more than 0.05 %.")
    assert found.table()["capacity"].iloc[0] == "never exceeded by more than 0.05 %"


def test_a_bound_is_told_from_an_optimum(study):
    made = told(study, {"A": [80, 90, 70, 85.0], "B": [90, 99, 81, 95.0]}, benchmarks=["projected"])
    found = answer(made)
    assert "it earns at least 91.3 % of the best possible" in found.headline()


def test_a_benchmark_without_an_answer_is_not_divided_by(study):
    made = told(study, {"A": [80, 90, 70, 85.0], "B": [90, 99, 81, 95.0]})
    made.offline["status"] = "time_limit"
    found = answer(made)
    assert found.headline() == "Take B: it earns 91.25 on average and never exceeds capacity."
    assert "share of the best possible" not in found.table()
    assert "What is earned" in bars_of(found)


def test_what_is_to_be_small_costs():
    m = packing(40)
    m.reward.deactivate()
    m.cost = pyo.Objective(expr=sum((1 - m.x[t]) * m.value[t] for t in m.T))
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(80))
    study = osilp.compare(program, {"A": osilp.Resolve()}, order="permutation", trials=3, progress=False)
    found = answer(study)
    regret = study.runs["relative_regret_exchange"].mean()
    assert found.headline() == (
        f"A costs {found.best.earned:.4g} on average, {100 * regret:.1f} % more than the least possible, and never "
        "exceeds capacity."
    )
    assert "above the least possible" in found.table()


def test_what_costs_the_least_possible_says_so(study):
    made = told(study, {"A": [100.0] * 4, "B": [100.0] * 4})
    made.offline["objective"] = -1.0  # of no sign that shares could be taken of
    assert answer(made).headline() == (
        "Take A: it earns 100 on average, the best possible, and never exceeds capacity; 4 trials cannot tell it from B."
    )


def test_units_that_mean_nothing_are_refused(study, tmp_path):
    for units, text in (
        ({"price": "EUR"}, "to_html: units= names 'price', which the model does not hold; it has reward, usage, u, value, place, x."),
        ({"reward": 3}, "to_html: the unit of 'reward' must be a text such as 'EUR' (got 3)."),
        ("EUR", "to_html: units must be a mapping such as {'reward': 'EUR'} (got 'EUR')."),
    ):  # fmt: skip
        with pytest.raises(OptionError) as refused:
            study.to_html(tmp_path / "page.html", pictures=False, units=units)
        assert str(refused.value) == text
    assert not list(tmp_path.iterdir())


def test_paths_that_are_none_are_refused(study):
    for path in (None, 3, ""):
        with pytest.raises(OptionError) as refused:
            study.to_html(path, pictures=False)
        assert str(refused.value) == f"to_html: the path of a file is needed, such as 'page.html' (got {path!r})."


def test_a_study_of_an_earlier_version_is_told_without_what_it_lacks(study, tmp_path):
    settings = {name: value for name, value in study.settings.items() if name not in ("name", "goal")}
    tables = {name: getattr(study, name) for name in FRAMES} | {"curves": pd.DataFrame(), "paths": pd.DataFrame()}
    text = osilp.Study(settings, tables).to_html(tmp_path / "page.html", pictures=False).read_text()
    assert "<h1>Which policy to take</h1>" in text
    assert "osilp-stage" not in text.partition("<body>")[2]
