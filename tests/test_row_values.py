"""Rows along their index, as numbers and as pictures."""

import numpy as np
import pyomo.environ as pyo
import pytest
from models import packing, tent, two_families
from pyomo.contrib.pyros import BoxSet
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import errors


def test_numbers_are_those_of_the_rule():
    m = two_families()
    osilp.solve(m)
    rows = osilp.evaluate_rows(m, grid=osilp.Midpoint(7))
    at = (np.arange(7) + 0.5) / 7
    assert rows["family"].tolist() == ["cap[a]"] * 7 + ["cap[b]"] * 7
    assert rows["u"].to_numpy() == pytest.approx(np.tile(at, 2))
    assert rows["upper"].to_numpy() == pytest.approx(np.concatenate([2 + at, 3 - at]))
    assert rows["body"].to_numpy() == pytest.approx(2.0)
    assert np.isneginf(rows["lower"]).all()


def test_violation_is_that_of_the_result():
    m = packing()
    result = osilp.solve(m, "projected", basis=osilp.RBF(3))
    assert osilp.evaluate_rows(m, result)["violation"].max() == pytest.approx(result.violation, rel=1e-3)


def test_a_result_counts_more_than_the_values_in_the_model():
    m = tent()
    result = osilp.solve(m, load=False)
    values = osilp.evaluate_rows(m, result)["body"]
    for variable in m.component_data_objects(pyo.Var):
        variable.set_value(100.0)
    assert osilp.evaluate_rows(m, result)["body"].tolist() == values.tolist()
    assert osilp.evaluate_rows(m)["body"].tolist() != values.tolist()


def test_a_box_an_uncertainty_set_and_an_interval_in_one_frame():
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(2, 3))
    m.x = pyo.Var(initialize=2.0)
    m.plane = osilp.SemiInfiniteConstraint(m.u, m.v, rule=lambda m, u, v: m.x * u * v <= 6)
    m.line = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (0, m.x * u, 1))
    m.vector = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)] * 3), rule=lambda m, xi: sum(xi) * m.x <= 5)
    rows = osilp.evaluate_rows(m)
    by_family = rows.groupby("family")["violation"].max()
    assert by_family.to_dict() == {"line": pytest.approx(1.0), "plane": 0.0, "vector": pytest.approx(1.0)}
    assert set(rows[rows["family"] == "line"].dropna(axis="columns")) == {
        "family", "u", "lower", "body", "upper", "violation",
    }  # fmt: skip
    only = osilp.evaluate_rows(m, families=["line", m.plane], grid={"plane": [(0, 2), (1, 3)]})
    assert only.groupby("family").size().to_dict() == {"line": 801, "plane": 2}
    figure = osilp.plot_rows(m)
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["'plane': kept at every point", "'line': passed by up to 1", "'vector': passed by up to 1"]


def test_a_picture_shows_the_price():
    m = packing()
    for result, label in (
        (osilp.solve(m), "price of\nsingle points"),
        (osilp.solve(m, "projected"), "price per\nunit of u"),
    ):
        assert [axis.get_ylabel() for axis in osilp.plot_rows(m, result).axes] == ["", label]


def without_value():
    m = tent()
    for variable in m.component_data_objects(pyo.Var):
        variable.set_value(None)
    return m


REFUSED = {
    "no value": (
        lambda: osilp.evaluate_rows(without_value()),
        "Var 'x' has no value; solve the model first, or give a result.",
    ),
    "another model": (
        lambda: osilp.evaluate_rows(two_families(), osilp.solve(tent())),
        "The result has no value of 'x[a]'; give the result of this model, or none for the values in its variables.",
    ),
    "no rows": (
        lambda: osilp.plot_rows(pyo.ConcreteModel()),
        "The model has no active SemiInfiniteConstraint, so that there are no rows to look at.",
    ),
    "one name": (
        lambda: osilp.plot_rows(tent(), families="cover"),
        "families= must be a list of constraints or of their names (got 'cover').",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused(case):
    call, text = REFUSED[case]
    with pytest.raises(errors.OsilpError) as caught:
        call()
    assert str(caught.value) == text


def test_too_many_families_for_a_picture():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(initialize=0.5)
    m.many = osilp.SemiInfiniteConstraint(range(13), m.u, rule=lambda m, k, u: m.x * u <= k + 1)
    with pytest.raises(errors.DataError) as caught:
        osilp.plot_rows(m)
    assert str(caught.value) == (
        "RowsDisplay: 13 families do not fit into one picture, 12 do; name some of them by families=[...]."
    )
    assert len(osilp.plot_rows(m, families=["many[0]", "many[4]"]).axes) == 2
