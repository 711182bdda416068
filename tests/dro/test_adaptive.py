"""Worst expectations of losses that hold decision rules, over moments and Wasserstein balls, against RSOME's optima."""

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet, PolyhedralSet

import osilp_pyomo as osilp
from osilp_pyomo import dro, errors


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


# -- Wasserstein balls -----------------------------------------------------------------------------------------------


def lot_sizing(seed, sites, count, radius, by_sample):
    """Bertsimas, Shtern and Sturt's lot sizing; rules that know the sample and how far it was moved, or neither."""
    rng = np.random.default_rng(seed)
    most = 20 / (sites - 1) / rng.uniform(0.3, 1, (sites, sites))
    place = 10 * rng.random((2, sites))
    cost = ((place[[0]] - place[[0]].T) ** 2 + (place[[1]] - place[[1]].T) ** 2) ** 0.5
    box = BoxSet([(0, 20)] * sites)
    known = dro.Wasserstein(rng.uniform(0, 20, (count, sites)), radius, box)
    m = pyo.ConcreteModel()
    m.I, m.S = pyo.RangeSet(0, sites - 1), pyo.RangeSet(0, count - 1 if by_sample else 0)
    over = known.moved if by_sample else box
    m.x = pyo.Var(m.I, bounds=(0, 20))
    m.y = osilp.FunctionVar(m.S, m.I, m.I, over=over, bounds=lambda m, s, i, j: (0, float(most[i, j])))
    m.w = osilp.FunctionVar(m.S, m.I, over=over, bounds=(0, None))

    @m.SemiInfiniteConstraint(m.S, m.I, over)
    def served(m, s, i, d):
        return m.x[i] + m.w[s, i](d) + sum(m.y[s, j, i](d) - m.y[s, i, j](d) for j in m.I) >= d[i]

    def loss(m, d, s=0):
        moved = sum(float(cost[i, j]) * m.y[s, i, j](d) for i in m.I for j in m.I)
        return moved + 5 * sum(m.w[s, i](d) for i in m.I)

    told = (lambda m, d, s: loss(m, d, s)) if by_sample else (lambda m, d: loss(m, d))
    worst = dro.worst_case_expectation(m, told, known)
    m.least = pyo.Objective(expr=sum(m.x.values()) + worst)
    return m, known, worst


def test_rules_that_know_the_sample_and_how_far_it_was_moved():
    """RSOME 1.3.1, "Wass SW", with y and w adapted to d, u and the sample, and u at most the longest distance."""
    m, known, worst = lot_sizing(21, 3, 5, 0.5, by_sample=True)
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(41.6576793420834, abs=1e-9)
    rule = result.function(m.w[1, 0])
    assert rule.coefficients.index.to_list() == ["1", "xi[0]", "xi[1]", "xi[2]", "distance"]
    assert str(rule).startswith("w[1,0](xi, distance) = ")
    atoms = dro.worst_case_distribution(result, worst)
    assert atoms.groupby("sample")["probability"].sum().to_list() == pytest.approx([0.2] * 5)
    moved = np.abs(atoms[["xi[0]", "xi[1]", "xi[2]"]].to_numpy() - known.samples[atoms["sample"]]).sum(axis=1)
    assert atoms["probability"] @ moved <= 0.5 + 1e-7


def test_rules_that_know_no_sample():
    """RSOME 1.3.1: y and w adapted to d alone."""
    m, *_ = lot_sizing(21, 3, 5, 0.5, by_sample=False)
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(60.0, abs=1e-7)


def test_inventory_over_ten_periods_in_a_wasserstein_ball():
    """RSOME 1.3.1's multi-stage inventory (See and Sim, 2010), rules of v: 202.54620564448953."""
    periods, samples = 10, (1 - 2 * np.random.default_rng(3).random((20, 10))) * 10
    back = [0.4] * 9 + [4.0]
    carried = 0.25 * np.triu(np.ones((periods, periods))) + 0.75 * np.eye(periods)
    box = BoxSet([(-10, 10)] * periods)
    m = pyo.ConcreteModel()
    m.T = pyo.RangeSet(0, periods - 1)
    m.order = osilp.FunctionVar(m.T, over=box, sees=lambda m, t: range(t), bounds=(0, 260))
    m.stock = osilp.FunctionVar(m.T, over=box, sees=lambda m, t: range(t + 1))
    m.cost = osilp.FunctionVar(m.T, over=box, sees=lambda m, t: range(t + 1))

    @m.SemiInfiniteConstraint(m.T, box)
    def balance(m, t, v):
        before = m.stock[t - 1](v) if t else 0
        return m.stock[t](v) == before + m.order[t](v) - 200 - sum(float(carried[k, t]) * v[k] for k in m.T)

    m.held = osilp.SemiInfiniteConstraint(m.T, box, rule=lambda m, t, v: m.cost[t](v) >= 0.02 * m.stock[t](v))
    m.owed = osilp.SemiInfiniteConstraint(m.T, box, rule=lambda m, t, v: m.cost[t](v) >= -back[t] * m.stock[t](v))
    worst = dro.worst_case_expectation(
        m, lambda m, v: sum(0.1 * m.order[t](v) + m.cost[t](v) for t in m.T), dro.Wasserstein(samples, 0.2, box)
    )
    m.least = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(202.54620564448953, abs=1e-8)


@pytest.mark.parametrize("norm", [1, 2, "inf"])
@pytest.mark.parametrize("support", [BoxSet([(0, 4)] * 2), [(0, 4), (0, 4)]])
def test_moved_vectors_are_those_within_the_longest_distance(norm, support):
    samples = np.array([[1.0, 2.5], [3.0, 0.5]])
    body = dro.Wasserstein(samples, 0.5, support, norm=norm).moved.body_for((1,))
    order = np.inf if norm == "inf" else norm
    axis = np.linspace(0, 4, 41)
    places = np.array([[one, other] for one in axis for other in axis])
    far = np.linalg.norm(places - samples[1], order, axis=1)
    longest = np.linalg.norm(np.maximum(4 - samples[1], samples[1]), order)
    for direction in np.random.default_rng(4).normal(size=(20, 3)):
        top = body.support(direction[None])[0]
        assert body.contains(top[None])[0]
        reached = places @ direction[:2] + direction[2] * (longest if direction[2] > 0 else far)
        assert -1e-9 <= direction @ top - reached.max() <= 0.1 * np.abs(direction).sum()


def test_refusals_of_rules_by_sample():
    box = BoxSet([(0, 4)] * 2)
    known = dro.Wasserstein([[1.0, 2.0], [3.0, 1.0]], 0.5, box)

    def refused(declare):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(bounds=(0, 10))
        m.least = pyo.Objective(expr=m.x)
        try:
            declare(m)
            osilp.solve(m)
        except errors.OptionError as error:
            return str(error)
        raise AssertionError("it was not refused")

    def without_sample(m):
        m.row = osilp.SemiInfiniteConstraint(known.moved, rule=lambda m, d: m.x >= d[0] + d[2])

    def beyond(m):
        m.row = osilp.SemiInfiniteConstraint([5], known.moved, rule=lambda m, s, d: m.x >= d[0] + d[2])

    def sums(m):
        dro.worst_case_expectation(m, lambda m, d, s: dro.SumOfMaxima([d[0] - m.x, 0], [d[1] - m.x, 0]), known)

    start = "Wasserstein: rows and rules over .moved have the sample as their first index, 0 to 1 "
    assert refused(without_sample) == start + "(got None)."
    assert refused(beyond) == start + "(got 5)."
    assert refused(sums) == (
        "Wasserstein: a loss that knows the sample cannot be a SumOfMaxima; write the largest of all its sums as a list "
        "of pieces."
    )
