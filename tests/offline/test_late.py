"""Frames of a result are made when they are first looked at, from what was known when it was made."""

import pickle

import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet

import osilp_pyomo as osilp
from osilp_pyomo.offline.late import changed


def model():
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(0, 5))
    m.most = pyo.Objective(expr=m.x[1] + m.x[2], sense=pyo.maximize)
    m.ordinary = pyo.Constraint(expr=m.x[1] <= 3)
    m.rows = osilp.SemiInfiniteConstraint(
        BoxSet([(-1, 1)]), rule=lambda m, xi: (1 + 0.5 * xi[0]) * m.x[1] + m.x[2] <= 4
    )
    return m


def made(value):
    """Names of the late parts that have been made."""
    late = {name for name in vars(value) if name.startswith("_late_")}
    return {name for name in late if isinstance(vars(value)[name], pd.DataFrame | pd.Series)}


def test_nothing_is_made_before_it_is_looked_at_and_then_once():
    result = osilp.solve(model(), load=False)
    assert made(result) == made(result.answer) == set()
    assert result.log is result.log
    assert result.values is result.values
    assert made(result) == {"_late_log"}
    assert made(result.answer) == {"_late_values"}


def test_a_result_travels_before_and_after_its_frames_are_made():
    m = model()
    result = osilp.solve(m)
    early = pickle.loads(pickle.dumps(result))
    frames = [result.log, result.proof, result.conflict, result.integrals, result.values, result.duals]
    late = pickle.loads(pickle.dumps(result))
    for other in (early, late):
        seen = [other.log, other.proof, other.conflict, other.integrals, other.values, other.duals]
        for one, two in zip(frames, seen, strict=True):
            assert one.equals(two)
            assert list(one.index.names) == list(two.index.names)


def test_names_are_those_of_the_model_that_was_solved():
    m = model()
    result = osilp.solve(m)
    m.del_component(m.ordinary)
    m.add_component("other", pyo.Constraint(expr=m.x[1] <= 1))
    assert list(result.values.index) == ["x[1]", "x[2]"]
    assert list(result.duals.index) == ["ordinary"]


def test_a_part_cannot_be_set_and_a_changed_copy_leaves_the_first_as_it_was():
    result = osilp.solve(model())
    with pytest.raises(AttributeError, match="cannot assign to field 'log'"):
        result.log = pd.DataFrame()
    other = changed(result, log=pd.DataFrame({"a": [1]}), remark="other")
    assert list(other.log.columns) == ["a"]
    assert result.remark != "other"
    assert "a" not in result.log
