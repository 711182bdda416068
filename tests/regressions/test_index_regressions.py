"""Bad grids and bases: a clear error each, its whole text, and the model as it was."""

import numpy as np
import pyomo.environ as pyo
import pytest
from models import many_kinds, packing, tent
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors

GRIDS = {
    "no points": (lambda: osilp.Points([]), "Points: the grid is empty; give at least one point."),
    "zero count": (
        lambda: osilp.Midpoint(0),
        "Midpoint: the number of points along an axis must be a whole number >= 1 (got 0).",
    ),
    "nan": (
        lambda: osilp.Points([0.1, np.nan]),
        "Points: every coordinate must be a finite number (found nan or inf).",
    ),
    "weights": (
        lambda: osilp.Points([0.1, 0.2], weights=[1.0]),
        "Points: there must be one weight a point (got 1 weights for 2 points).",
    ),
    "outside": (
        lambda: osilp.solve(tent(), method="discretized", grid=[0.5, 2.0]),
        "Points(2 points): Index u in [0, 1]: the point u = 2 lies outside; give points within the bounds.",
    ),
    "other thing": (
        lambda: osilp.solve(tent(), method="discretized", grid="fine"),
        "grid: expected a grid such as Midpoint(500) or an array of points (got str).",
    ),
}


@pytest.mark.parametrize("case", GRIDS)
def test_bad_grids(case):
    action, text = GRIDS[case]
    with pytest.raises(errors.GridError) as error:
        action()
    assert str(error.value) == text


def test_a_grid_that_where_leaves_empty():
    m = many_kinds()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u >= 1, where=lambda m, u: u >= 0.999)
    with pytest.raises(errors.GridError) as error:
        osilp.solve(m, method="discretized", grid=osilp.Midpoint(10))
    assert str(error.value) == (
        "Midpoint(count=10) on u in [0, 1] where declared: no grid point is left (the 'where' condition is false at "
        "all of them); use a finer grid, or give points of the set by Points(...)."
    )


BASES = {
    "negative": (
        osilp.Functions(lambda u: u - 0.5),
        "Functions(1 functions): test functions must be finite and >= 0, or projecting is no relaxation; column 0 "
        "(<lambda>) is -0.499 at u = 0.001.",
    ),
    "zero": (
        osilp.Functions(np.ones_like, np.zeros_like),
        "Functions(2 functions): column 1 (zeros_like) is zero at every point of the grid on u in [0, 1], so it says "
        "nothing; use a finer grid or fewer test functions.",
    ),
    "too fine": (
        osilp.Indicator(600),
        "Indicator(count=600): column 2 (u = 0.004167) is zero at every point of the grid on u in [0, 1], so it says "
        "nothing; use a finer grid or fewer test functions.",
    ),
    "a number": (1.5, "basis: expected a basis such as RBF(10) or a list of functions of the index (got 1.5)."),
    "a class": (
        osilp.RBF,
        "basis: expected a basis such as RBF(10) or a list of functions of the index (got the class RBF; write RBF(...)).",
    ),
    "another class": (
        osilp.Midpoint,
        "basis: expected a basis such as RBF(10) or a list of functions of the index (got the class Midpoint).",
    ),
    "no basis": ("RBF", "basis: expected a basis such as RBF(10) or a list of functions of the index (got str)."),
}


@pytest.mark.parametrize("case", BASES)
def test_bad_bases(case):
    basis, text = BASES[case]
    m = packing(5)
    before = [m.x[t].value for t in m.T]
    with pytest.raises(errors.BasisError) as error:
        osilp.solve(m, method="projected", basis=basis, grid=osilp.Midpoint(500))
    assert str(error.value) == text
    assert [m.x[t].value for t in m.T] == before


@pytest.mark.parametrize("kind", ["previous", "nearest", "linear"])
def test_a_curve_that_goes_round_ends_before_its_last_knot(kind):
    """A turn begins again at its end; by rounding alone a number just before it was taken for the last knot."""
    knots = np.array([0.553184117, 0.7, 0.726344691])
    end = 0.20686296900000006
    assert knots[0] + np.mod(end - knots[0], knots[-1] - knots[0]) == knots[-1]
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.p = osilp.Profile(over=m.u, points=knots, initialize=[1.0, 2.0, 9.0], kind=kind, outside="wrap")
    values = [m.p(end - 1e-9), m.p(end), m.p(end + 1e-9)]
    assert min(values[0], values[2]) - 1e-6 <= values[1] <= max(values[0], values[2]) + 1e-6
