"""Mistakes of a first hour: each answer names what stands there and what to write instead."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet
from scipy.interpolate import CubicSpline, interp1d

import osilp_pyomo as osilp
from osilp_pyomo import errors

PROFILE = (
    ", which is every number between its ends and in general none of theirs; give them as a function, m.curve = "
    "osilp.Profile(over=..., points=..., initialize=...), and write m.curve(u)."
)


def limited(limit):
    """The largest x below a limit that is written by somebody in a first hour."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(bounds=(0, 9))
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.cap = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= limit(u))
    return m


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({0: 1.0, 1: 2.0}, "KeyError: 0.43"),
        (pd.Series([1.0, 2.0], index=[0, 1]), "KeyError: 0.43"),
        ([1.0, 2.0], "TypeError: list indices must be integers or slices, not float"),
        (
            np.array([1.0, 2.0]),
            "IndexError: only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
            "are valid indices",
        ),
    ],
    ids=["dict", "Series", "list", "array"],
)
def test_values_looked_up_by_the_index(values, told):
    with pytest.raises(errors.DeclarationError) as refused:
        limited(lambda u: values[u])
    assert (
        str(refused.value) == f"SemiInfiniteConstraint 'cap': its rule looks values up by the index ({told}){PROFILE}"
    )


def test_other_lookups_stay_what_they_are():
    """A missing member of a set of the user's is no lookup by the index."""
    with pytest.raises(KeyError) as missing:
        limited(lambda u: {"a": 1.0}["b"] + u)
    assert missing.value.args == ("b",)


@pytest.mark.parametrize(
    "curve", [CubicSpline([0, 0.5, 1], [1, 2, 4]), interp1d([0, 1], [1, 2])], ids=["CubicSpline", "interp1d"]
)
def test_an_interpolation_of_scipy_is_sampled_and_its_better_form_named(curve):
    with pytest.warns(errors.SamplingWarning) as warned:
        m = limited(curve)
    assert str(warned[0].message) == (
        "SemiInfiniteConstraint 'cap': its rule cannot be traced (scipy's interpolation needs numbers, and the index stands for "
        "every point: give the curve as osilp.Profile(over=..., points=..., initialize=...) and write m.curve(u)); it is called "
        "at each point instead, which is slower. Write it with Pyomo functions of the index (Expr_if for if), or declare "
        "sample=True."
    )
    assert osilp.solve(m).objective == pytest.approx(1.0)


def test_a_row_at_a_point_is_not_a_member():
    m = limited(lambda u: 1 + u)
    with pytest.raises(KeyError) as scalar:
        m.cap[0.5]
    assert scalar.value.args == (
        "SemiInfiniteConstraint 'cap' is one family of rows and has no members (got 0.5); its row at a point is cap.at(point)",
    )
    assert m.cap[None] is m.cap
    assert list(m.cap[:]) == [m.cap]
    m.K = pyo.Set(initialize=["a", "b"])
    m.each = osilp.SemiInfiniteConstraint(m.K, m.u, rule=lambda m, k, u: m.x <= 2 + u)
    with pytest.raises(KeyError) as member:
        m.each["c"]
    assert member.value.args == ("Index 'c' is not valid for indexed component 'each'",)
    assert str(m.each["a"].at(0.5).to_string()) == "x  <=  2.5"


def test_a_program_is_no_model_and_a_frame_no_arrival():
    from osilp_pyomo.demo import demo_program

    program = demo_program()
    with pytest.raises(errors.ModelError) as model:
        osilp.solve(program)
    assert str(model.value) == (
        "solve: expected a Pyomo model or one of its blocks (got OnlineProgram; program.solve_offline() gives its optimum)."
    )
    with pytest.raises(errors.DataError) as arrival:
        program.controller().step(program.data.head(2))
    assert str(arrival.value) == (
        "An arrival's data must come as keywords, a mapping or a Series (got DataFrame; steps(frame) decides several)."
    )


def test_an_interval_is_no_set():
    m = limited(lambda u: 1 + u)
    with pytest.raises(errors.DeclarationError) as refused:
        m.other = osilp.SemiInfiniteConstraint((0, 1), rule=lambda m, u: m.x <= 1)
    assert str(refused.value) == (
        "SemiInfiniteConstraint: it needs a continuous index, a ContinuousSet(bounds=(a, b)), RangeSet(a, b, 0) with a < b, or an "
        "uncertainty set of PyROS; over ordinary sets alone an ordinary Constraint says the same."
    )
