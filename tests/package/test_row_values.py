"""Rows along their index, as numbers and as pictures."""

import matplotlib.figure
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
    assert titles == ["'plane': kept at all 10,000 points", "'line': passed by up to 1", "'vector': passed by up to 1"]


def test_a_picture_shows_the_price():
    m = packing()
    for result, label in (
        (osilp.solve(m), "price of\nsingle points"),
        (osilp.solve(m, "projected"), "price per\nunit of u"),
    ):
        assert [axis.get_ylabel() for axis in osilp.plot_rows(m, result).axes] == ["", label]


def test_a_picture_goes_into_a_part_of_a_figure():
    m = tent()
    whole = matplotlib.figure.Figure(layout="constrained")
    _, below = whole.subfigures(2, 1)
    assert osilp.plot_rows(m, osilp.solve(m), figure=below) is below
    whole.canvas.draw()
    assert len(whole.axes) == 2
    assert max(axis.get_window_extent().y1 for axis in whole.axes) <= whole.bbox.height / 2


def without_value():
    m = tent()
    for variable in m.component_data_objects(pyo.Var):
        variable.set_value(None)
    return m


def fixed_since():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    m.gain = pyo.Objective(expr=m.x + m.y, sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + m.y * u <= 2)
    result = osilp.solve(m)
    m.y.fix(5)
    return m, result


def half_line():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(initialize=1.0)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 1 + u)
    return m


def test_only_the_rows_are_looked_at():
    """A model that no linear solver takes, and one that was transformed."""
    m = tent()
    m.y = pyo.Var()
    m.curved = pyo.Objective(expr=m.y**2)
    m.also = pyo.Constraint(expr=m.y**3 <= 1)
    m.x.set_value(1.2)
    assert osilp.evaluate_rows(m)["violation"].max() == pytest.approx(0.2)
    plain = tent()
    rows = pyo.TransformationFactory("osilp.discretize").create_using(plain, grid=osilp.Midpoint(10))
    rows.x.set_value(1.1)
    assert osilp.evaluate_rows(rows)["violation"].max() == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["family", "lower", "body", "upper", "violation"])
def test_an_index_may_be_called_like_a_column(name):
    m = pyo.ConcreteModel()
    m.add_component(name, ContinuousSet(bounds=(0, 1)))
    m.x = pyo.Var(initialize=1.0)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(m.component(name), rule=lambda m, u: m.x * u <= 0.5)
    rows = osilp.evaluate_rows(m)
    assert rows[f"{name}_"].tolist() == pytest.approx(np.linspace(0, 1, 801).tolist())
    assert rows["violation"].max() == pytest.approx(0.5)
    figure = osilp.plot_rows(m, osilp.solve(m, method="projected", load=False))
    assert figure.axes[0].get_title().startswith("'row': passed by up to ")


def test_no_line_crosses_a_hole():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(initialize=1.0)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u <= 2, where=lambda m, u: abs(u - 0.5) >= 0.2)
    line = osilp.plot_rows(m).axes[0].get_lines()[0]
    inside = np.abs(line.get_xdata() - 0.5) < 0.19
    assert inside.sum() == 1
    assert np.isnan(line.get_ydata()[inside]).all()


@pytest.mark.parametrize("kind", ["previous", "nearest", "linear"])
@pytest.mark.parametrize("knots", [[0, 0.25, 1], [-1, 0.2, 2]])
def test_knots_at_and_beyond_the_ends(kind, knots):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(initialize=3.0)
    m.cap = osilp.Profile(over=m.u, points=knots, initialize=[1, 2, 5], kind=kind)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= m.cap(u))
    rows = osilp.evaluate_rows(m)
    assert rows["upper"].tolist() == pytest.approx([m.cap(float(u)) for u in rows["u"]])


def test_the_middle_of_an_uncertainty_set_is_looked_at():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(initialize=1.0)
    m.row = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)]), rule=lambda m, xi: 4 * xi[0] * (1 - xi[0]) * m.x <= 0.5)
    assert osilp.evaluate_rows(m)["violation"].max() == pytest.approx(0.5, abs=1e-4)


def test_uneven_points_are_no_holes():
    line = osilp.plot_rows(half_line(), grid=np.geomspace(1e-3, 1e3, 60)).axes[0].get_lines()[0]
    assert np.isfinite(line.get_ydata()).all()
    assert len(line.get_ydata()) == 60


def test_a_small_violation_beside_large_numbers_is_said():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(initialize=1.0)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (1e12 * u**8 + 1) * m.x <= 2e12 * u**8 + 0.5)
    assert osilp.plot_rows(m).axes[0].get_title() == "'row': passed by up to 0.5"


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
        "The model has no SemiInfiniteConstraint, so that there are no rows to look at.",
    ),
    "no model": (
        lambda: osilp.plot_rows("m"),
        "evaluate: expected a Pyomo model or one of its blocks (got str).",
    ),
    "no result": (
        lambda: osilp.evaluate_rows(tent(), "abc"),
        "evaluate: result must be what solve gives back (got str).",
    ),
    "no name": (
        lambda: osilp.evaluate_rows(tent(), families=[]),
        "families= must be a list of constraints or of their names (got []).",
    ),
    "no constraint": (
        lambda: osilp.evaluate_rows(tent(), families=[[1]]),
        "families=: there is an entry for '[1]', which is no active SemiInfiniteConstraint of the model; it has below.",
    ),
    "fixed since": (
        lambda: osilp.evaluate_rows(*fixed_since()),
        "Var 'y' is fixed at 5, and the result has 1; unfix it, or give no result for the values in the model's variables.",
    ),
    "unbounded": (
        lambda: osilp.plot_rows(half_line()),
        "The index u in [0, inf) is unbounded; give grid=[...] with the points to look at.",
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
