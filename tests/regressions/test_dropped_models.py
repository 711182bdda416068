"""Results of models that nobody holds any longer."""

import gc

import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet

import osilp_pyomo as osilp


def solved():
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], bounds=(0, 9))
    m.y = osilp.FunctionVar(over=BoxSet([(0, 2)]))
    m.cover = osilp.SemiInfiniteConstraint(BoxSet([(0, 2)]), rule=lambda m, xi: m.y(xi) + m.x[1] >= 1 + 3 * xi[0])
    m.least = pyo.Objective(expr=m.y([1.0]) + 2 * m.x[1] + m.x[2])
    return osilp.solve(m)


def test_they_still_know_their_variables():
    """Members of a component know it by a weak reference, and had no names once their model was gone."""
    result = solved()
    gc.collect()
    assert result.simulate([[0.0], [2.0]]).columns.to_list() == ["y", "x[1]", "x[2]", "cost", "violation"]
    assert result.simulate([[2.0]])["y"].to_numpy() == pytest.approx([7.0])
