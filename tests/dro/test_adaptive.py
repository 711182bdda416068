"""Worst expectations of losses that hold decision rules: adaptive lot sizing over moments, against RSOME's optimum."""

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import PolyhedralSet

import osilp_pyomo as osilp


def lifted(mean, most):
    """Demands z and bounds u of their deviations: 0 <= z <= most, |z - mean| <= u <= most."""
    one, none = np.eye(len(mean)), np.zeros((len(mean), len(mean)))
    rows = np.block([[-one, none], [one, none], [one, -one], [-one, -one], [none, one]])
    top = np.full(len(mean), most)
    return PolyhedralSet(rows, np.concatenate([np.zeros(len(mean)), top, mean, -mean, top]))


@pytest.mark.long
def test_lot_sizing_over_means_and_deviations():
    """Rules that react to demands and to the auxiliary u, as in event-wise affine recourse with one event.

    RSOME 1.3.1 gives 833.276535614267 for the same data: ``minsup(20 x.sum() + E((D * y).sum() + 60 w.sum()))`` over
    ``E(z) == mean, E(u) <= deviation``, y and w adapted to z and u.
    """
    rng = np.random.default_rng(3)
    places = 10 * rng.random((3, 2))
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    mean = rng.uniform(5, 15, 3)
    support = lifted(mean, 20.0)
    conditions = [
        *((lambda xi, i=i: xi[i], float(mean[i])) for i in range(3)),
        *((lambda xi, i=i: xi[3 + i], None, float(0.3 * mean[i])) for i in range(3)),
    ]
    m = pyo.ConcreteModel()
    m.I = pyo.RangeSet(0, 2)
    m.x = pyo.Var(m.I, bounds=(0, 20))
    m.y = osilp.FunctionVar(m.I, m.I, over=support, bounds=(0, None))
    m.w = osilp.FunctionVar(m.I, over=support, bounds=(0, None))

    @m.SemiInfiniteConstraint(m.I, support)
    def served(m, i, xi):
        return m.x[i] + m.w[i](xi) + sum(m.y[j, i](xi) - m.y[i, j](xi) for j in m.I) >= xi[i]

    def loss(m, xi):
        moved = sum(float(distance[i, j]) * m.y[i, j](xi) for i in range(3) for j in range(3))
        return moved + 60 * sum(m.w[i](xi) for i in range(3))

    known = osilp.dro.Moments(support, conditions)
    worst = osilp.dro.worst_case_expectation(m, loss, known)
    m.o = pyo.Objective(expr=20 * sum(m.x[i] for i in m.I) + worst)
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(833.276535614267, abs=1e-6)
    # Here the rules are as good as any policy.
    assert osilp.recourse_bound(m, result).gap < 1e-6
