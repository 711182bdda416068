"""Pictures: real figures of real studies, readable without colour; nothing else knows matplotlib."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet
from study_inputs import POLICIES, packing_program

import osilp_pyomo as osilp
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.show.drawing import styles, svg_of
from osilp_pyomo.studies.displays import DISPLAYS, RegretDisplay

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def study():
    return osilp.compare(
        packing_program(60), [*POLICIES, osilp.SimpleGD()], order="iid", trials=3, horizons=[30, 60, 120],
        guards=["none", "pointwise"],
    )  # fmt: skip


@pytest.mark.parametrize("what", DISPLAYS)
def test_each_picture_has_names_and_units_on_its_axes(study, what):
    figure = study.plot(what)
    drawn = [ax for ax in figure.axes if ax.axison]
    assert drawn
    for ax in drawn:
        assert ax.lines or ax.collections or ax.patches
        assert ax.get_ylabel() or what in ("budget", "loss")
    labels = {ax.get_xlabel() for ax in drawn} - {""}
    wanted = {"regret": "arrivals T", "overrun": "arrivals T", "violation": "u", "price": "u", "budget": "arrivals t",
              "bracket": "iteration", "reward": "arrivals t", "loss": None}  # fmt: skip
    assert labels == {wanted[what]} - {None}


def test_all_pictures_below_each_other(study):
    figure = study.plot()
    assert [part.get_suptitle() for part in figure.subfigs] == [kind.title for kind in DISPLAYS.values()]


def test_regret_is_drawn_with_its_interval(study):
    display = RegretDisplay.from_study(study)
    assert set(display.frame["title"]) == {"regret against R*_T", "regret against R*_Phi"}
    summary = study.summary()
    one = display.frame[
        (display.frame["measure"] == "relative_regret_exchange") & (display.frame["policy"] == "Resolve")
    ]
    drawn = one.set_index(["horizon", "grid", "points", "policy", "guard"])[["mean", "low", "high"]]
    pd.testing.assert_frame_equal(
        drawn, 100 * summary.loc[drawn.index, "relative_regret_exchange"], check_names=False, check_column_type=False
    )


def test_one_horizon_is_drawn_by_policy():
    study = osilp.compare(packing_program(30), POLICIES, order="permutation", trials=2)
    (ax, _) = study.plot("regret").axes
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        "MirrorDescent", "Resolve",
    ]  # fmt: skip
    # One guard is no news, and what is zero everywhere is no picture.
    both = osilp.compare(packing_program(30), POLICIES, order="permutation", trials=2, guards=["none", "pointwise"])
    (ax, _) = both.plot("regret").axes
    assert {text.get_text() for text in ax.get_yticklabels()} == {
        f"{policy}, guard {guard}" for policy in ("MirrorDescent", "Resolve") for guard in ("none", "pointwise")
    }
    assert {ax.get_title() for ax in study.plot("budget").axes} == {""}
    assert {ax.get_title() for ax in both.plot("budget").axes} == {"guard none", "guard pointwise"}


def ample_model():
    """Requests that all fit."""
    m = pyo.ConcreteModel()
    m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(4)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: t)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.room = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(u * m.x[t] for t in m.T) <= 9)
    return m


def test_a_picture_of_all_leaves_out_what_shows_nothing():
    study = osilp.compare(
        packing_program(30), {"first come": osilp.Greedy(), "priced": osilp.Resolve()}, order="permutation", trials=2
    )
    assert "Violation" not in [part.get_suptitle() for part in study.plot().subfigs]
    assert len(study.plot("overrun").axes) == 2
    assert [ax.get_title() for ax in study.plot("price").axes if ax.axison] == ["priced, 'usage'"]
    # Where everything fits nothing is lost, nothing has a price, and the first relaxation is the optimum.
    ample = ample_model()
    ample = osilp.compare(osilp.compile_online(ample, stages=ample.T), osilp.Greedy(), progress=False)
    assert [part.get_suptitle() for part in ample.plot().subfigs] == [
        "Regret", "Reward over time", "Violation over the index", "Budget used over time",
    ]  # fmt: skip
    alone = osilp.compare(packing_program(30), osilp.Greedy(), trials=1)
    assert [ax.get_title() for ax in alone.plot("price").axes if ax.axison] == ["Greedy, 'usage'"]


LONG = "a rule with a name that is far longer than anybody would give to it, number {}"


def test_long_names_and_many_policies_leave_room_for_the_picture():
    policies = {LONG.format(k): osilp.MirrorDescent(step=2.0**k) for k in range(14)}
    study = osilp.compare(packing_program(20), policies, order="permutation", trials=2, progress=False)
    assert all(len(line) <= 100 for line in str(study).split("\n"))
    assert "a rule with a name that...it, number 13" in str(study)
    for what in ("regret", "reward", "violation", "price", "budget"):
        figure = study.plot(what)
        figure.draw_without_rendering()
        for ax in figure.axes:
            if ax.axison:
                assert ax.get_position().width > 0.25, what
        for drawn in figure.legends:
            assert drawn.get_window_extent().width <= figure.bbox.width, what
    assert sum(ax.axison for ax in study.plot("price").axes) == 12


def test_lines_differ_without_colour():
    seen = [(str(style["linestyle"]), style["marker"]) for style, _ in zip(styles(), range(40), strict=False)]
    assert len(set(seen)) == 40


def test_a_picture_is_the_same_every_time_and_real_svg(study):
    one, other = (svg_of(RegretDisplay.from_study(study)) for _ in range(2))
    assert one == other
    assert ElementTree.fromstring(one).tag.endswith("svg")


def test_what_cannot_be_drawn_is_said(study):
    with pytest.raises(OptionError) as refused:
        study.plot("luck")
    assert str(refused.value) == (
        "plot: what must be one of 'regret', 'reward', 'loss', 'overrun', 'violation', 'price', 'budget', 'bracket' (got "
        "'luck')."
    )
    empty = osilp.Study(
        study.settings, {name: pd.DataFrame() for name in ("runs", "rows", "offline", "paths", "curves", "iterations")}
    )
    with pytest.raises(DataError) as refused:
        empty.plot("price")
    assert str(refused.value) == ("PriceDisplay: there is nothing to draw, for no trial that shows it is finished.")


@pytest.mark.long
def test_without_matplotlib_everything_but_pictures_works(tmp_path):
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from study_inputs import *
sys.modules["matplotlib"] = None
study = osilp.compare(packing_program(20), POLICIES)
print(study)
study.to_html(sys.argv[2], pictures=False)
for ask in (study.plot, lambda: study.to_html(sys.argv[2] + "2")):
    try:
        ask()
    except osilp.errors.MissingPackageError as error:
        print(error)
"""
    from pathlib import Path

    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parents[1]), str(tmp_path / "page.html")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = "Pictures need matplotlib, which is not installed; pip install 'osilp-pyomo[plot]', or leave them out."
    assert done.stdout.count(text) == 2
    assert "<figure>" not in (tmp_path / "page.html").read_text()
