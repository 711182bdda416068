"""Rows affine in an uncertain vector that all arrivals share, met one arrival at a time."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BoxSet, CardinalitySet, FactorModelSet

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.model.sets import body_of

FACTORS = 3
SETS = {
    "cardinality": CardinalitySet([0] * FACTORS, [1] * FACTORS, 2.0, [1] * FACTORS),
    "ellipsoid": AxisAlignedEllipsoidalSet([0] * FACTORS, [1] * FACTORS),
    "flat": FactorModelSet([0] * FACTORS, 2, [[1, 0], [0, 1], [0.5, 0.5]], 0.5),
}


def packing(uncertainty, arrivals=50):
    """Accept arrivals whose use of one resource moves with shared factors; the resource lasts whatever they are."""
    m = pyo.ConcreteModel()
    m.T = pyo.RangeSet(1, arrivals)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.value = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals)
    m.use = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals)
    m.shift = pyo.Param(m.T, range(FACTORS), mutable=True, within=pyo.Reals)
    m.total = pyo.Objective(expr=pyo.sum_product(m.value, m.x), sense=pyo.maximize)
    m.resource = SemiInfiniteConstraint(
        uncertainty,
        rule=lambda m, xi: sum(
            (m.use[t] + sum(m.shift[t, k] * xi[k] for k in range(FACTORS))) * m.x[t] for t in m.T
        ) <= 0.25 * arrivals,
    )  # fmt: skip
    return m


def requests(rng, count):
    columns = {"value": rng.uniform(0.5, 1.5, count), "use": rng.uniform(0.5, 1.0, count)}
    columns |= {("shift", k): 0.2 * rng.normal(size=count) for k in range(FACTORS)}
    return pd.DataFrame(columns)


@pytest.mark.parametrize("kind", SETS)
def test_online_within_the_robust_optimum(kind):
    m = packing(SETS[kind])
    program = osilp.compile_online(m, stages=m.T).rescaled(800)
    arrivals = requests(np.random.default_rng(1), 800)
    best = program.solve_offline(arrivals)
    assert best.status == "optimal"
    assert best.separation == {"resource": "closed form"}
    run = program.replay(osilp.Resolve(), arrivals, guard="pointwise")
    regret = 1 - run.objective / best.objective
    assert 0 <= regret < 0.06
    # The use of what was accepted is affine in the vector: the set tells where it is largest.
    x = run.decisions.to_numpy()
    gradient = np.array([arrivals[("shift", k)].to_numpy() @ x for k in range(FACTORS)])
    farthest = body_of(SETS[kind], "it").support(gradient[None])[0]
    worst = arrivals["use"].to_numpy() @ x + gradient @ farthest
    assert worst <= 200 * (1.002 if kind == "ellipsoid" else 1 + 1e-9)


def test_cells_and_extremes():
    box = Domain.box(u=(0, 1), v=(0, 1))
    cells = osilp.Cells(4).on(osilp.Midpoint(10).on(box))
    assert len(cells) == 4
    np.testing.assert_allclose(np.asarray(cells.matrix.sum(axis=0)).ravel(), 0.25)
    body = body_of(SETS["ellipsoid"], "it")
    ball = Domain.of_body(("a", "b", "c"), body)
    laid = osilp.Extremes(100).on(ball)
    np.testing.assert_allclose(np.linalg.norm(laid.points, axis=1), 1.0)
    functions = osilp.Cells(12).on(laid)
    assert len(functions) == 12
    # Every point belongs to exactly one cell.
    np.testing.assert_array_equal(osilp.Cells(12).evaluate(ball, laid.points).sum(axis=1), 1.0)
    corners = Domain.of_body(("a", "b"), body_of(BoxSet([(0, 1), (0, 1)]), "it"))
    assert len(osilp.Cells(9).on(osilp.Extremes(64).on(corners))) == 4
    with pytest.raises(errors.BasisError) as error:
        osilp.Cells(0)
    assert str(error.value) == "Cells: the number of cells must be a whole number >= 1 (got 0)."
    with pytest.raises(errors.BasisError) as error:
        osilp.Cells(3).middles(Domain.box(u=(0, np.inf)))
    assert str(error.value) == "Cells cannot be laid on u in [0, inf): they need an uncertainty set or a bounded box."


def test_a_grid_that_misses_a_flat_set_says_what_does_not():
    flat = Domain.of_body(("a", "b", "c"), body_of(SETS["flat"], "it"))
    with pytest.raises(errors.GridError) as error:
        osilp.Midpoint(4).on(flat)
    assert str(error.value) == (
        "Midpoint(count=4) on a, b, c in a factor model of dimension 3 with 2 factors: no grid point is left (none of "
        "them lies in the set, for which Extremes(...) has points); use a finer grid, or give points of the set by "
        "Points(...)."
    )
    assert len(osilp.Extremes(50).on(flat)) > 3
