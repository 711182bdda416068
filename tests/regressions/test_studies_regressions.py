"""Studies used in ways that their author did not think of; each of these once went wrong without a word."""

import os

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from models import packing
from study_inputs import packing_program, uniform_requests

import osilp_pyomo as osilp
from osilp_pyomo.errors import DataError, ExecutorError, OptionError, SavedStateError
from osilp_pyomo.show.mathml import mathml


def dying(rng, horizon):
    """A sampler whose process ends in the middle of its second trial, as if memory had run out."""
    drawn = uniform_requests(rng, horizon)
    if drawn["value"].iloc[0] > 0.5:
        os._exit(9)
    return drawn


@pytest.mark.long
def test_a_process_that_dies_is_an_error_and_not_a_long_wait():
    with pytest.raises(ExecutorError) as refused:
        osilp.compare(packing_program(10), osilp.Greedy(), sampler=dying, trials=6, executor=2)
    assert str(refused.value).startswith("compare: a process died before its trial was done.")


def test_a_sampler_that_forgets_its_return_is_refused():
    for nothing in (None, (None, None)):
        with pytest.raises(DataError) as refused:
            osilp.compare(packing_program(10), osilp.Greedy(), sampler=lambda rng, horizon, what=nothing: what)
        assert str(refused.value) == (
            "compare: sampler(rng, horizon) gave None; it must return a DataFrame with one row an arrival, or a pair of "
            "that and the curves of Profiles."
        )


def test_grids_with_as_many_points_are_not_one_grid():
    study = osilp.compare(
        packing_program(20), osilp.Greedy(), order="permutation", trials=2, grids=[osilp.Midpoint(50), osilp.Chebyshev(50)],
    )  # fmt: skip
    assert study.summary()["trials"].squeeze().tolist() == [2, 2]
    assert study.table()["grid"].tolist() == ["Midpoint(count=50)", "Chebyshev(count=50)"]
    labels = [text.get_text() for text in study.plot("regret").axes[0].get_yticklabels()]
    assert labels == ["Greedy, Midpoint(count=50)", "Greedy, Chebyshev(count=50)"]


def test_grids_and_horizons_swept_together_are_lines_of_their_own():
    study = osilp.compare(
        packing_program(20), osilp.Greedy(), order="iid", trials=2, horizons=[10, 20],
        grids=[osilp.Midpoint(30), osilp.Midpoint(60)],
    )  # fmt: skip
    lines = [line for line in study.plot("regret").axes[0].lines if not line.get_label().startswith("_child")]
    assert [line.get_label() for line in lines] == ["Greedy, Midpoint(count=30)", "Greedy, Midpoint(count=60)"]
    assert all(line.get_xdata().tolist() == [10, 20] for line in lines)


def test_iterators_are_lists_too():
    program = packing_program(12)
    study = osilp.compare(
        program, (each for each in (osilp.Greedy(), osilp.Resolve())), horizons=(size for size in (6, 8)),
        grids=map(osilp.Midpoint, (20, 40)), guards=(guard for guard in ("none", "pointwise")),
        benchmarks=(name for name in ("projected",)),
    )  # fmt: skip
    assert len(study.runs) == 2 * 2 * 2 * 2
    assert study.complete


class Constant(osilp.Policy):
    """A policy without a text of its own."""

    def __init__(self, price):
        self.level = price

    def start(self, setting):
        return {"dual": np.full(setting.size, self.level)}

    def price(self, state, setting):
        return state["dual"]

    def learn(self, state, setting, seen):
        return state


def shaped(heights):
    """A program with a curve that all stages share."""
    m = packing(6)
    m.shape = osilp.Profile(over=m.u, points=[0, 0.5, 1], initialize=heights)
    m.del_component(m.usage)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.shape(u) * m.place[t] * m.x[t] for t in m.T) <= 2
    )
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(3), grid=osilp.Midpoint(20))


LONG = np.zeros(2000)
LONGER = np.where(np.arange(2000) == 1000, 0.5, 0.0)


def fine_program():
    m = packing(6)
    return osilp.compile_online(m, stages=m.T, basis=osilp.Indicator(2000), grid=osilp.Midpoint(2000))


@pytest.mark.parametrize(
    ("program", "one", "program_too", "other"),
    [
        (packing_program(6), {"policies": Constant(0.0)}, None, {"policies": Constant(9.0)}),
        (packing_program(6), {"grids": [osilp.Points(np.linspace(0, 0.1, 30))]}, None,
         {"grids": [osilp.Points(np.linspace(0, 1, 30))]}),
        (shaped([1, 1, 1]), {}, shaped([1, 5, 1]), {}),
        pytest.param(fine_program(), {"policies": osilp.FixedPrice(LONG)}, None,
                     {"policies": osilp.FixedPrice(LONGER)}, marks=pytest.mark.long),
    ],
    ids=["policy", "points", "curve", "price"],
)  # fmt: skip
def test_a_study_that_differs_in_small_print_is_another_one(tmp_path, program, one, program_too, other):
    options = {
        "policies": osilp.Greedy(),
        "order": "iid",
        "guards": "none",
        "benchmarks": "projected",
        "path": tmp_path / "s",
    }
    osilp.compare(program, **{**options, **one})
    osilp.compare(program, **{**options, **one})
    with pytest.raises(SavedStateError, match="holds another study"):
        osilp.compare(program_too or program, **{**options, **other})


def test_saving_over_trials_that_are_not_in_the_study_is_refused(tmp_path):
    program = packing_program(10)
    osilp.compare(program, osilp.Greedy(), order="iid", trials=4, path=tmp_path / "s")
    short = osilp.compare(program, osilp.Greedy(), order="iid", trials=1)
    with pytest.raises(SavedStateError) as refused:
        short.save(tmp_path / "s")
    assert str(refused.value) == (
        f"'{tmp_path / 's'}' holds 3 trials that this study does not; save it elsewhere, or go on with those by "
        "compare(..., path=...)."
    )
    assert osilp.load_study(tmp_path / "s").finished == 4


@pytest.mark.parametrize(
    "name",
    [
        "offline, exchange",
        *(pytest.param(odd, marks=pytest.mark.long) for odd in ("$\\bad{$", "_hidden", "cost $5 to $6", "<b>&\"'")),
    ],
)
def test_names_of_policies_are_only_names(tmp_path, name):
    study = osilp.compare(packing_program(12), {name: osilp.Greedy(), "other": osilp.Resolve()})
    study.to_html(tmp_path / "page.html")
    figure = study.plot("violation")
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(shown) == 4
    assert any(text.strip().replace("\\$", "$") == name for text in shown)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"guards": []}, "compare: guards must name at least one of 'none', 'projected', 'pointwise' (got ())."),
        ({"guards": {"Greedy": []}}, "compare: guards must name at least one of 'none', 'projected', 'pointwise' (got [])."),
        ({"guards": 5}, "compare: guards must be among 'none', 'projected', 'pointwise' (got 5)."),
        ({"benchmarks": None}, "compare: benchmarks must be among 'exchange', 'discretized', 'projected' (got None)."),
        ({"benchmarks": ()},
         "compare: benchmarks must name at least one of 'exchange', 'discretized', 'projected' (got ())."),
        ({"null": "a"}, "null=: the null action must be a number, or 1 of them, or a mapping by variable (got 'a')."),
        ({"null": [1, 2, 3]}, "null=: the null action must be a number, or 1 of them, or a mapping by variable (got [1, 2, 3])."),
        ({"path": 5}, "compare: path must be the path of a folder (got 5)."),
        ({"policies": {1: osilp.Greedy(), "1": osilp.Resolve()}},
         "compare: a policy's name must be a text that can be printed (got 1)."),
        ({"policies": {"a\rb": osilp.Greedy()}}, "compare: a policy's name must be a text that can be printed (got 'a\\rb')."),
    ],
)  # fmt: skip
def test_odd_options_are_refused_with_a_sentence(options, text):
    with pytest.raises(OptionError) as refused:
        osilp.compare(packing_program(10), **{"policies": [osilp.Greedy()], **options})
    assert str(refused.value) == text


def test_numbers_of_numpy_are_numbers(tmp_path):
    study = osilp.compare(
        packing_program(10), osilp.Greedy(), order="iid", trials=np.int64(2), seed=np.int64(3), horizons=np.array([5, 10]),
        path=tmp_path / "s",
    )  # fmt: skip
    assert study.complete


def test_a_table_of_nothing_is_refused():
    study = osilp.compare(packing_program(10), osilp.Greedy())
    empty = osilp.Study(study.settings, {name: pd.DataFrame() for name in
                        ("runs", "rows", "offline", "paths", "curves", "iterations")})  # fmt: skip
    with pytest.raises(DataError) as refused:
        empty.table()
    assert str(refused.value) == "summary: no trial of this study is finished yet."


@pytest.mark.parametrize(
    ("name", "content"),
    [("10-0-1.json", "[]"), ("10-0-1.json", '{"runs": [{"a": 1}]}'), ("10-0-1.json", "null"), ("notes.json", "{}")],
)
def test_damaged_trials_are_named(tmp_path, name, content):
    osilp.compare(packing_program(10), osilp.Greedy(), path=tmp_path / "s")
    (tmp_path / "s" / "trials").mkdir()
    (tmp_path / "s" / "trials" / name).write_text(content)
    with pytest.raises(SavedStateError, match="is damaged"):
        osilp.load_study(tmp_path / "s")


def test_a_lost_run_is_noticed(tmp_path):
    folder = tmp_path / "s"
    osilp.compare(packing_program(10), [osilp.Greedy(), osilp.Resolve()], order="iid", trials=2, path=folder)
    lines = (folder / "runs.csv").read_text().splitlines()
    (folder / "runs.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(SavedStateError) as refused:
        osilp.load_study(folder)
    assert str(refused.value) == (
        f"'{folder / 'runs.csv'}' is cut or was changed since it was saved; run the study again, or remove 'tables.json' "
        "to read it as it is."
    )
    (folder / "tables.json").unlink()
    with pytest.raises(SavedStateError) as refused:
        osilp.load_study(folder)
    assert str(refused.value) == (
        f"'{folder}' is damaged: trial 1 of 10 arrivals has 1 runs where there should be 2. Remove its rows from the table "
        "of runs, and it is run again."
    )
    (folder / "runs.csv").write_text("\n".join(line.replace("horizon", "h") for line in lines) + "\n")
    with pytest.raises(SavedStateError, match="the table 'runs' cannot be read"):
        osilp.load_study(folder)
    (folder / "study.json").write_text('{"format": 1}')
    with pytest.raises(SavedStateError, match="is damaged, for it lacks"):
        osilp.load_study(folder)


def test_a_budget_of_nothing_has_no_share_left():
    m = packing(6)
    m.del_component(m.usage)
    m.y = pyo.Var(m.T, bounds=(0, 1))
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * (m.x[t] - m.y[t]) for t in m.T) <= 0)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(3), grid=osilp.Midpoint(20))
    study = osilp.compare(program, osilp.Greedy(), guards="none")
    assert study.runs[["remaining", "least_remaining"]].isna().all(axis=None)


def test_factors_that_begin_with_digits_do_not_run_into_each_other():
    assert mathml("2*3**u") == "<mn>2</mn><mo>&#x22C5;</mo><msup><mn>3</mn><mi>u</mi></msup>"
    assert mathml("1234567*u").startswith("<mn>1234567</mn>")
