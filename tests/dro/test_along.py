"""Losses of one linear function of a vector with a mean and a covariance: rows over a line, not over all of space."""

import numpy as np
import pyomo.environ as pyo
import pytest

import osilp_pyomo as osilp
from osilp_pyomo import dro
from osilp_pyomo.dro.ambiguity import _matrix_conditions

LINE = (None, None)


def everywhere(mean, covariance):
    """The same set by its conditions, whose rows stand over all of space."""
    return dro.Moments([LINE] * len(mean), _matrix_conditions(mean, covariance))


def written(known, pieces, level=None):
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(-1, 1))
    worst = (
        dro.worst_case_expectation(m, pieces, known) if level is None else dro.worst_case_cvar(m, pieces, known, level)
    )
    m.o = pyo.Objective(expr=worst + m.x[0] - 0.5 * m.x[1])
    return m, worst


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [None, 0.8])
def test_pieces_of_one_function_have_the_worst_case_of_all_of_space(seed, level):
    """Multiples of ``w(x) @ xi`` with constants of their own; the worst distribution has the moments and the value."""
    rng = np.random.default_rng(seed)
    size = 2 + seed % 4
    root, mean = rng.normal(size=(size, size)), rng.normal(size=size)
    covariance = root @ root.T + 0.01 * np.eye(size)
    w, factors, constants = rng.normal(size=(size, 3)), rng.normal(size=3), rng.normal(size=3)

    def pieces(m, xi):
        along = sum(xi[i] * (w[i, 0] + w[i, 1] * m.x[0] + w[i, 2] * m.x[1]) for i in range(size))
        return [factors[k] * along + constants[k] + k * m.x[0] for k in range(3)]

    m, worst = written(dro.Moments.mean_covariance([LINE] * size, mean, covariance), pieces, level)
    found = osilp.solve(m)
    other, _ = written(everywhere(mean, covariance), pieces, level)
    right = osilp.solve(other)
    assert found.certified
    assert worst.parent_block().component("deviations") is not None
    assert found.objective == pytest.approx(right.objective, rel=1e-6, abs=1e-6)
    atoms = dro.worst_case_distribution(found, worst)
    points, mass = atoms[[f"xi_{k + 1}" for k in range(size)]].to_numpy(), atoms["probability"].to_numpy()
    assert mass @ points == pytest.approx(mean, abs=1e-6 * np.sqrt(np.abs(covariance).max()))
    assert (points - mean).T @ (mass[:, None] * (points - mean)) == pytest.approx(covariance, abs=1e-4)
    if level is None:
        x = np.array([1.0, m.x[0].value, m.x[1].value])
        values = factors * (points @ w @ x)[:, None] + constants + np.arange(3) * x[1]
        assert mass @ values.max(axis=1) + x[1] - 0.5 * x[2] == pytest.approx(found.objective, abs=1e-5)


def test_pieces_of_two_functions_stand_over_all_of_space():
    mean, covariance = np.zeros(2), np.eye(2)
    known = dro.Moments.mean_covariance([LINE] * 2, mean, covariance)
    m, worst = written(known, lambda m, xi: [xi[0], xi[1], 0 * m.x[0]])
    assert worst.parent_block().component("deviations") is None
    assert osilp.solve(m).certified


def test_data_that_may_change_stand_over_all_of_space():
    """What is read when the model is solved is not frozen when it is declared."""
    m = pyo.ConcreteModel()
    m.p = pyo.Param(initialize=1.0, mutable=True)
    known = dro.Moments.mean_covariance([LINE] * 2, [0.0, 0.0], [[1.0, 0.0], [0.0, 4.0]])
    m.worst = pyo.Objective(expr=dro.worst_case_cvar(m, lambda m, xi: m.p * xi[0] + xi[1], known, 0.5))
    assert osilp.solve(m).objective == pytest.approx(np.sqrt(5), rel=1e-6)
    m.p = 3.0
    assert osilp.solve(m).objective == pytest.approx(np.sqrt(13), rel=1e-6)


def test_a_loss_that_does_not_depend_on_the_vector():
    known = dro.Moments.mean_covariance([LINE] * 3, [1.0, 2.0, 3.0], np.eye(3))
    m, _ = written(known, lambda m, xi: [2.0 * m.x[0] + 0 * xi[0], 3.0])
    assert osilp.solve(m).objective == pytest.approx(3.0 - 1 - 0.5, abs=1e-8)


def test_the_deviation_of_one_multiple_does_not_matter():
    """All pieces grow alike: only the mean counts, and the bound is proved without a deviation."""
    known = dro.Moments.mean_covariance([LINE] * 2, [1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]])
    m, worst = written(known, lambda m, xi: [(1 + m.x[0]) * xi[0] - xi[1] + k * m.x[1] for k in range(2)])
    found = osilp.solve(m)
    assert found.objective == pytest.approx(1.0, abs=1e-7)
    assert found.certified
    assert worst.parent_block().component("deviations") is None
