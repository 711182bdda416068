"""Mixtures: what is known depends on a scenario. Against linear programs over distributions on a grid."""

import numpy as np
import pyomo.environ as pyo
import pytest
from scipy.optimize import linprog

import osilp_pyomo as osilp
from osilp_pyomo import dro
from osilp_pyomo.errors import OptionError

GRIDS = (np.linspace(0, 10, 401), np.linspace(8, 20, 481))


def newsvendor(known):
    m = pyo.ConcreteModel()
    m.stock = pyo.Var(bounds=(0, 30))
    lost = dro.worst_case_expectation(m, lambda m, d: [-3 * d, -3 * m.stock], known)
    m.cost = pyo.Objective(expr=m.stock + lost)
    return m, lost


def worst_loss(stock, weights, means, overall=None):
    """The largest expected loss over distributions on the grids, scenario by scenario."""
    points = np.concatenate(GRIDS)
    wet = np.repeat([0.0, 1.0], [len(grid) for grid in GRIDS])
    rows = [1 - wet, wet]
    if overall is None:
        rows, right = [*rows, points * (1 - wet), points * wet], [*weights, *(np.array(weights) * means)]
    else:
        rows, right = [*rows, points], [*weights, overall]
    found = linprog(3 * np.minimum(points, stock), A_eq=np.array(rows), b_eq=right)
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("weights", [(0.6, 0.4), (0.1, 0.9)])
def test_the_worst_mixture_is_that_of_a_linear_program(weights):
    parts = [dro.Moments((0, 10), [(lambda d: d, 4.0)]), dro.Moments((8, 20), [(lambda d: d, 15.0)])]
    m, _ = newsvendor(dro.Mixture(parts, weights))
    result = osilp.solve(m)
    assert result.certified
    best = min(stock + worst_loss(stock, weights, (4.0, 15.0)) for stock in np.linspace(0, 20, 81))
    # The optimum is a vertex of the piecewise linear function of the stock, where supports end.
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.objective == pytest.approx(m.stock.value + worst_loss(m.stock.value, weights, (4.0, 15.0)), abs=1e-6)


def test_conditions_on_all_scenarios_together():
    parts = {
        "dry": dro.Moments((0, 10), [(lambda d: d, 0.0, 10.0)]),
        "wet": dro.Moments((8, 20), [(lambda d: d, 8, 20)]),
    }
    m, lost = newsvendor(dro.Mixture(parts, (0.6, 0.4), conditions=[(lambda d: d, 9.0)]))
    result = osilp.solve(m)
    assert result.objective == pytest.approx(
        m.stock.value + worst_loss(m.stock.value, (0.6, 0.4), None, overall=9.0), abs=1e-6
    )
    worst = dro.worst_case_distribution(result, lost)
    assert worst["probability"] @ worst["xi"] == pytest.approx(9.0, abs=1e-6)
    assert worst.groupby("scenario")["probability"].sum().to_dict() == pytest.approx({"dry": 0.6, "wet": 0.4})


def test_probabilities_known_in_part_go_to_the_worse_scenario():
    """Scarf's bound in each scenario, and a tenth of the probability where it is larger."""
    parts = [dro.Moments.mean_variance((None, None), mean, variance) for mean, variance in ((10, 9), (20, 4))]
    m = pyo.ConcreteModel()
    known = dro.Mixture(parts, (0.5, 0.5), total_variation=0.1)
    m.worst = pyo.Objective(expr=dro.worst_case_expectation(m, lambda m, z: [z - 14, 0], known))
    scarf = [(np.sqrt(v + (14 - mean) ** 2) - (14 - mean)) / 2 for mean, v in ((10, 9), (20, 4))]
    result = osilp.solve(m)
    assert result.objective == pytest.approx(0.4 * scarf[0] + 0.6 * scarf[1], abs=1e-6)
    assert result.certified


def test_a_loss_may_know_the_scenario():
    """Decisions of each scenario: two problems that know nothing of each other."""
    parts = {"low": dro.Wasserstein([1.0, 2.0], 0.3, (0, 5)), "high": dro.Reweighting([3.0, 4.0], total_variation=0.2)}
    m = pyo.ConcreteModel()
    m.y = pyo.Var(["low", "high"], bounds=(0, 10))
    loss = dro.worst_case_expectation(
        m, lambda m, z, scenario: [m.y[scenario] - z, 2 * (z - m.y[scenario])], dro.Mixture(parts, (0.25, 0.75))
    )
    m.cost = pyo.Objective(expr=loss)
    alone = []
    for part in parts.values():
        one = pyo.ConcreteModel()
        one.y = pyo.Var(bounds=(0, 10))
        one.cost = pyo.Objective(expr=dro.worst_case_expectation(one, lambda m, z: [m.y - z, 2 * (z - m.y)], part))
        alone.append(osilp.solve(one).objective)
    assert osilp.solve(m).objective == pytest.approx(0.25 * alone[0] + 0.75 * alone[1], abs=1e-6)
    assert osilp.solve(m.clone()).objective == pytest.approx(0.25 * alone[0] + 0.75 * alone[1], abs=1e-6)


@pytest.mark.parametrize("how", [{}, {"chi_square": 0.2}, {"total_variation": 0.2}])
def test_parts_of_all_kinds_in_a_worst_tail(how):
    """Written by hand, the same mixture of the same parts."""
    parts = [
        dro.Wasserstein([[1.0, 2.0], [3.0, 1.0]], 0.3, [(0, 5)] * 2),
        dro.Moments.mean_covariance([(None, None)] * 2, [1, 2], [[1, 0.2], [0.2, 1]]),
        dro.Reweighting([[1.0, 1.0], [4.0, 4.0]], chi_square=0.1),
    ]
    weights = [0.2, 0.3, 0.5]

    def model():
        m = pyo.ConcreteModel()
        m.y = pyo.Var([0, 1], bounds=(-5, 5))
        m.whole = pyo.Constraint(expr=m.y[0] + m.y[1] >= 1)
        return m

    m = model()
    tail = dro.worst_case_cvar(m, lambda m, z: m.y[0] * z[0] + m.y[1] * z[1], dro.Mixture(parts, weights, **how), 0.8)
    m.risk = pyo.Objective(expr=tail)
    by_hand = model()
    by_hand.t = pyo.Var()
    beyond = [
        dro.worst_case_expectation(by_hand, lambda m, z: [m.y[0] * z[0] + m.y[1] * z[1] - m.t, 0.0], part)
        for part in parts
    ]
    mixed = dro.worst_case_expectation(
        by_hand, lambda m, k: beyond[int(k)], dro.Reweighting(range(3), weights, **(how or {"total_variation": 0.0}))
    )
    by_hand.risk = pyo.Objective(expr=by_hand.t + mixed / (1 - 0.8))
    ours, theirs = osilp.solve(m), osilp.solve(by_hand)
    assert ours.certified
    assert ours.objective == pytest.approx(theirs.objective, abs=1e-6)
    worst = dro.worst_case_distribution(ours, tail)
    assert list(worst.columns) == ["xi[0]", "xi[1]", "scenario", "sample", "piece", "probability", "case"]


def test_probability_of_an_event():
    """Markov's bound below 8, and certainty above."""
    parts = [dro.Moments((0, 10), [(lambda d: d, 5.0)]), dro.Moments((8, 20), [(lambda d: d, 10.0)])]
    m = pyo.ConcreteModel()
    m.worst = pyo.Objective(expr=dro.worst_case_probability(m, (8, None), dro.Mixture(parts)))
    assert osilp.solve(m).objective == pytest.approx((5 / 8 + 1) / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dro.Mixture([]), "Mixture: there is no scenario; give what is known in each, {scenario: ambiguity}."),
        (
            lambda: dro.Mixture({"dry": (0, 10)}),
            "Mixture: what is known in scenario 'dry' must be Moments(...), Wasserstein(...) or Reweighting(...) (got "
            "tuple).",
        ),
        (
            lambda: dro.Mixture([dro.Reweighting([1.0, 2.0]), dro.Reweighting([[1.0, 2.0]])]),
            "Mixture: the random vector must have the same size in all scenarios (got 1 in scenario 0, 2 in scenario 1).",
        ),
        (
            lambda: dro.worst_case_probability(
                pyo.ConcreteModel(),
                (1, 2),
                dro.Mixture([dro.Moments((0, 3), [(lambda d: d, 1.0)])], conditions=[(lambda d: d, 1.0)]),
            ),
            "worst_case_probability: a Mixture with conditions on all scenarios together has no events; state the "
            "conditions within the scenarios, or bound the expectation of a loss that is at least 1 on the event and at "
            "least 0 elsewhere.",
        ),
    ],
)
def test_refusals(make, text):
    with pytest.raises(OptionError) as told:
        make()
    assert str(told.value) == text


@pytest.mark.parametrize("size", [2, 4])
def test_pieces_that_do_not_count_leave_the_rest_certified(size):
    """A piece below the others everywhere gets second moments without mass, which belong beside other atoms."""
    rng = np.random.default_rng(size)
    factor = rng.normal(size=(size, size))
    known = dro.Moments.mean_covariance([(None, None)] * size, np.arange(size), factor @ factor.T)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(size), bounds=(0, 1))
    m.whole = pyo.Constraint(expr=sum(m.y[k] for k in m.y) == 1)
    m.risk = pyo.Objective(
        expr=dro.worst_case_cvar(m, lambda m, z: [sum(m.y[k] * z[k] for k in m.y), -1000.0], known, 0.8)
    )
    result = osilp.solve(m)
    y = np.array([m.y[k].value for k in m.y])
    # The closed form of the worst CVaR of a linear loss.
    assert result.objective == pytest.approx(y @ np.arange(size) + 2 * np.linalg.norm(factor.T @ y), rel=1e-6)
    assert result.certified
