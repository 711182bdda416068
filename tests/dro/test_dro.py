"""Distributionally robust models against closed forms, finite linear programs, and their own worst distributions."""

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet, CardinalitySet, DiscreteScenarioSet
from pyomo.dae import ContinuousSet
from scipy.optimize import brentq, linprog

import osilp_pyomo as osilp
from osilp_pyomo import dro, errors

ANYWHERE = (None, None)


def solved(write):
    """The worst case that ``write(m)`` puts onto a model, minimized: model, result and expression."""
    m = pyo.ConcreteModel()
    worst = write(m)
    m.objective = pyo.Objective(expr=worst)
    return m, osilp.solve(m), worst


def check_distribution(worst, result, loss, conditions):
    """The worst distribution is one, has the moments, and attains the value."""
    frame = dro.worst_case_distribution(result, worst)
    xi, probability = frame["xi"].to_numpy(), frame["probability"].to_numpy()
    assert probability.sum() == pytest.approx(1.0)
    assert np.all(probability > 0)
    for function, value in conditions:
        assert probability @ function(xi) == pytest.approx(value, abs=1e-5)
    assert probability @ loss(xi) == pytest.approx(result.objective, abs=1e-5)


# -- moments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strike", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("support", [ANYWHERE, (0, None)])
def test_scarf_bounds_a_call(strike, support):
    mean, variance = 1.0, 1.0
    known = dro.Moments.mean_variance(support, mean, variance)
    m, result, worst = solved(lambda m: dro.worst_case_expectation(m, lambda m, xi: [xi - strike, 0], known))
    bound = (np.sqrt(variance + (strike - mean) ** 2) - (strike - mean)) / 2
    if support[0] == 0 and strike < (mean**2 + variance) / (2 * mean):
        bound = mean - strike * mean**2 / (mean**2 + variance)
    assert result.objective == pytest.approx(bound, abs=1e-7)
    assert result.status == "optimal"
    check_distribution(
        worst, result, lambda xi: np.maximum(xi - strike, 0), [(lambda xi: xi, 1.0), (lambda xi: xi**2, 2.0)]
    )
    del m


@pytest.mark.parametrize("distance", [0.5, 2.0])
def test_cantelli_and_chebyshev(distance):
    known = dro.Moments.mean_variance(ANYWHERE, 0.0, 1.0)
    m, result, worst = solved(lambda m: dro.worst_case_probability(m, (distance, None), known))
    assert result.objective == pytest.approx(1 / (1 + distance**2), abs=1e-7)
    check_distribution(worst, result, lambda xi: xi >= distance - 1e-6, [(lambda xi: xi, 0.0), (lambda xi: xi**2, 1.0)])
    n, result, worst = solved(lambda m: dro.worst_case_probability(m, lambda xi: abs(xi) >= distance, known))
    assert result.objective == pytest.approx(min(1.0, 1 / distance**2), abs=1e-7)
    del m, n


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_worst_cvar_of_a_mean_and_a_variance(level):
    known = dro.Moments.mean_variance(ANYWHERE, 2.0, 4.0)
    _, result, _ = solved(lambda m: dro.worst_case_cvar(m, lambda m, xi: xi, known, level))
    assert result.objective == pytest.approx(2 + 2 * np.sqrt(level / (1 - level)), abs=1e-6)


def test_scarf_s_newsvendor():
    """Buy at 1, sell at 3, demand of mean 10 and deviation 3: Scarf's order and profit."""
    mean, deviation, cost, price = 10.0, 3.0, 1.0, 3.0
    known = dro.Moments.mean_variance((0, None), mean, deviation**2)
    m = pyo.ConcreteModel()
    m.order = pyo.Var(bounds=(0, None))
    m.worst = pyo.Objective(
        expr=cost * m.order + dro.worst_case_expectation(m, lambda m, xi: [-price * xi, -price * m.order], known)
    )
    result = osilp.solve(m)
    root = np.sqrt(cost * (price - cost))
    assert -result.objective == pytest.approx((price - cost) * mean - deviation * root, abs=1e-6)
    assert m.order.value == pytest.approx(mean + deviation / 2 * (price - 2 * cost) / root, abs=1e-3)
    frame = dro.worst_case_distribution(result, m.component("worst_case"))
    assert frame["probability"] @ frame["xi"] == pytest.approx(mean, abs=1e-5)
    assert frame["probability"] @ frame["xi"] ** 2 == pytest.approx(mean**2 + deviation**2, abs=1e-4)


def test_four_moments():
    """The normal's first four moments: P(xi >= 2) is at most 2/19, the Christoffel function of degree 2 there."""
    conditions = [(lambda xi: xi, 0.0), (lambda xi: xi**2, 1.0), (lambda xi: xi**3, 0.0), (lambda xi: xi**4, 3.0)]
    known = dro.Moments(ANYWHERE, conditions)
    m, result, worst = solved(lambda m: dro.worst_case_probability(m, (2.0, None), known))
    # The largest mass at one point beyond all others is 1 / sum of squared orthonormal polynomials there.
    hermite = [1.0, 2.0, (2.0**2 - 1) / np.sqrt(2)]
    assert result.objective == pytest.approx(1 / np.square(hermite).sum(), abs=1e-7)
    check_distribution(worst, result, lambda xi: xi >= 2 - 1e-6, conditions)
    del m


def test_bounds_on_moments_and_an_index_set_of_the_model():
    """Mean at most 1 on [0, 4]: the worst of max(xi - 1, 0) is a quarter at 4."""
    m = pyo.ConcreteModel()
    m.demand = ContinuousSet(bounds=(0, 4))
    worst = dro.worst_case_expectation(
        m, lambda m, xi: [xi - 1, 0], dro.Moments(m.demand, [(lambda xi: xi, None, 1.0)])
    )
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(0.75, abs=1e-8)
    frame = dro.worst_case_distribution(result, worst)
    assert list(frame.columns) == ["demand", "piece", "probability"]


def test_moments_of_a_vector_over_an_uncertainty_set():
    """Means of a vector in a box: the worst of max(xi_0 + xi_1 - 1, 0) is known from a linear program on corners."""
    box = BoxSet([(0, 1), (0, 2)])
    known = dro.Moments(box, [(lambda xi: xi[0], 0.5), (lambda xi: xi[1], 0.6)])
    _, result, _ = solved(lambda m: dro.worst_case_expectation(m, lambda m, xi: [xi[0] + xi[1] - 1, 0], known))
    corners = np.array(list(itertools.product((0, 1), (0, 2))))
    value = linprog(
        -np.maximum(corners.sum(axis=1) - 1, 0), A_eq=np.vstack([corners.T, np.ones(4)]), b_eq=[0.5, 0.6, 1.0]
    )
    assert result.objective == pytest.approx(-value.fun, abs=1e-8)
    assert result.method == "counterpart"
    assert set(result.proof["how"]) == {"closed form"}


def test_the_worst_case_in_a_constraint():
    """The most x with a worst expected loss of xi x - 1 of at most 1, where E xi = 1/2 on [0, 1]: x = 4."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 100))
    known = dro.Moments((0, 1), [(lambda xi: xi, 0.5)])
    worst = dro.worst_case_expectation(m, lambda m, xi: xi * m.x - 1, known, name="risk")
    m.limit = pyo.Constraint(expr=worst <= 1)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(4.0, abs=1e-7)
    frame = dro.worst_case_distribution(result, m.risk)
    assert frame["probability"] @ frame["xi"] == pytest.approx(0.5, abs=1e-7)
    assert osilp.solve(m.clone()).objective == pytest.approx(4.0, abs=1e-7)


# -- Wasserstein ------------------------------------------------------------------------------------


def newsvendor(ambiguity):
    m = pyo.ConcreteModel()
    m.order = pyo.Var(bounds=(0, None))
    worst = dro.worst_case_expectation(m, lambda m, xi: [-3 * xi, -3 * m.order], ambiguity)
    m.objective = pyo.Objective(expr=m.order + worst)
    return m, worst


SAMPLES = np.random.default_rng(0).uniform(0, 10, 20)


def test_wasserstein_newsvendor_on_the_line():
    """Everywhere, the worst case adds the loss's slope times the radius to the sample's own optimum."""
    m, worst = newsvendor(dro.Wasserstein(SAMPLES, 0.5))
    result = osilp.solve(m)
    of_samples = min(q + np.mean(np.maximum(-3 * SAMPLES, -3 * q)) for q in SAMPLES)
    assert result.objective == pytest.approx(of_samples + 1.5, abs=1e-8)
    frame = dro.worst_case_distribution(result, worst)
    moved = np.abs(frame["xi"] - SAMPLES[frame["sample"]])
    assert frame["probability"] @ moved == pytest.approx(0.5, abs=1e-7)
    order = m.order.value
    attained = order + frame["probability"] @ np.maximum(-3 * frame["xi"], -3 * order)
    assert attained == pytest.approx(result.objective, abs=1e-7)


@pytest.mark.parametrize("radius", [0.2, 3.0])
def test_wasserstein_newsvendor_on_a_half_line(radius):
    """Against the finite program over where each sample may go: where it is, or to 0."""
    m, worst = newsvendor(dro.Wasserstein(SAMPLES, radius, (0, None)))
    result = osilp.solve(m)
    count = len(SAMPLES)

    def worst_of(order):
        # Shares of each sample moved to zero; losses fall in demand, so nothing else is worth moving to.
        gain = np.maximum(0, -3 * order) - np.maximum(-3 * SAMPLES, -3 * order)
        best = linprog(-gain / count, A_ub=[SAMPLES / count], b_ub=[radius], bounds=(0, 1))
        return order + np.mean(np.maximum(-3 * SAMPLES, -3 * order)) - best.fun

    assert result.objective == pytest.approx(worst_of(m.order.value), abs=1e-6)
    assert result.objective <= min(worst_of(q) for q in SAMPLES) + 1e-7
    frame = dro.worst_case_distribution(result, worst)
    assert frame["probability"].sum() == pytest.approx(1.0)
    assert np.allclose(frame.groupby("sample")["probability"].sum(), 1 / count)


GRADIENTS = np.random.default_rng(1).normal(size=(4, 3))
OFFSETS = np.random.default_rng(2).normal(size=4)


def planes(m, xi):
    return [sum(g * xi[j] for j, g in enumerate(row)) + b for row, b in zip(GRADIENTS.tolist(), OFFSETS, strict=True)]


@pytest.mark.parametrize(("norm", "dual"), [(1, np.inf), (2, 2), ("inf", 1)])
def test_wasserstein_in_space_adds_the_steepest_slope(norm, dual):
    samples = np.random.default_rng(3).normal(size=(15, 3))
    ambiguity = dro.Wasserstein(samples, 0.3, norm=norm)
    m, result, worst = solved(lambda m: dro.worst_case_expectation(m, planes, ambiguity))
    steepest = max(np.linalg.norm(row, dual) for row in GRADIENTS)
    expected = np.mean((samples @ GRADIENTS.T + OFFSETS).max(axis=1)) + 0.3 * steepest
    assert result.objective == pytest.approx(expected, abs=1e-7)
    frame = dro.worst_case_distribution(result, worst)
    at = frame[["xi[0]", "xi[1]", "xi[2]"]].to_numpy()
    length = np.linalg.norm(at - samples[frame["sample"]], np.inf if norm == "inf" else norm, axis=1)
    assert frame["probability"] @ length <= 0.3 + 1e-7
    del m


def transport(samples, radius, low, high):
    """The worst expectation of the planes on a box by the transport program: every sample to any mix of ends."""
    columns, losses = [], []
    for number, sample in enumerate(samples):
        for place in itertools.product(*((low, high, entry) for entry in sample)):
            columns.append((number, np.abs(np.array(place) - sample).sum()))
            losses.append((GRADIENTS[:, : len(sample)] @ place + OFFSETS).max())
    owner = np.array([number for number, _ in columns])
    equal = (owner[None] == np.arange(len(samples))[:, None]).astype(float)
    found = linprog(
        -np.array(losses), A_ub=[[distance for _, distance in columns]], b_ub=[radius], A_eq=equal,
        b_eq=np.full(len(samples), 1 / len(samples)),
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("support", [BoxSet([(-1, 1)] * 2), [(-1, 1), (-1, 1)]])
def test_wasserstein_on_a_box(support):
    samples = np.random.default_rng(4).uniform(-1, 1, (8, 2))
    ambiguity = dro.Wasserstein(samples, 0.3, support)
    loss = lambda m, xi: [  # noqa: E731
        g[0] * xi[0] + g[1] * xi[1] + b for g, b in zip(GRADIENTS.tolist(), OFFSETS, strict=True)
    ]
    m, result, worst = solved(lambda m: dro.worst_case_expectation(m, loss, ambiguity))
    assert result.objective == pytest.approx(transport(samples, 0.3, -1, 1), abs=1e-7)
    frame = dro.worst_case_distribution(result, worst)
    at = frame[["xi[0]", "xi[1]"]].to_numpy()
    assert np.all(np.abs(at) <= 1 + 1e-9)
    assert frame["probability"] @ (at @ GRADIENTS[:, :2].T + OFFSETS).max(axis=1) == pytest.approx(
        result.objective, abs=1e-7
    )
    assert frame["probability"] @ np.abs(at - samples[frame["sample"]]).sum(axis=1) <= 0.3 + 1e-7
    del m


def test_wasserstein_on_other_sets_is_no_worse_than_on_the_box_around_them():
    samples = np.array([[0.1, 0.0], [-0.2, 0.3]])
    diamond = CardinalitySet([0, 0], [1, 1], 1.0, [1, 1])
    values = []
    for support in (diamond, BoxSet([(-1, 1)] * 2)):
        ambiguity = dro.Wasserstein(samples, 5.0, support, norm="inf")
        _, result, _ = solved(lambda m, a=ambiguity: dro.worst_case_expectation(m, lambda m, xi: xi[0] + xi[1], a))
        values.append(result.objective)
    # A radius of 5 reaches everything: the largest values of xi_0 + xi_1 on the sets.
    assert values == pytest.approx([1.0, 2.0], abs=1e-7)


def test_a_curved_loss_is_looked_for_everywhere():
    """max of -(xi - 1)^2 + ... over a ball around 0: moving all to xi = r < 1 is best for a concave loss."""
    ambiguity = dro.Wasserstein([0.0], 0.4, (-2, 2))
    m, result, worst = solved(lambda m: dro.worst_case_expectation(m, lambda m, xi: -((xi - 1) ** 2), ambiguity))
    assert result.objective == pytest.approx(-(0.6**2), abs=1e-6)
    assert dro.worst_case_distribution(result, worst)["xi"].tolist() == pytest.approx([0.4], abs=1e-3)
    del m


def test_wasserstein_probability():
    """Samples 0, 1, 2 and an event beyond 3: with radius 1/3 the nearest one goes there whole."""
    ambiguity = dro.Wasserstein([0.0, 1.0, 2.0], 1 / 3)
    m, result, worst = solved(lambda m: dro.worst_case_probability(m, (3.0, None), ambiguity))
    assert result.objective == pytest.approx(1 / 3, abs=1e-7)
    frame = dro.worst_case_distribution(result, worst)
    assert frame["probability"] @ (frame["xi"] >= 3 - 1e-6) == pytest.approx(1 / 3, abs=1e-6)
    assert frame["probability"].sum() == pytest.approx(1.0)
    del m


# -- scenarios ----------------------------------------------------------------------------------------


def test_total_variation_moves_mass_from_the_best_to_the_worst():
    ambiguity = dro.Reweighting(SAMPLES, total_variation=0.2)
    m, result, worst = solved(lambda m: dro.worst_case_expectation(m, lambda m, xi: xi, ambiguity))
    ordered = np.sort(SAMPLES)
    assert result.objective == pytest.approx(ordered[4:].sum() / 20 + 0.2 * ordered[-1], abs=1e-8)
    frame = dro.worst_case_distribution(result, worst)
    assert frame["probability"] @ frame["xi"] == pytest.approx(result.objective, abs=1e-8)
    del m


def test_bounds_on_probabilities_are_a_cvar():
    """Each of n equal scenarios at most 1 / (n (1 - level)): the worst mean is the CVaR."""
    ambiguity = dro.Reweighting(SAMPLES, upper=1 / (20 * 0.25))
    _, result, _ = solved(lambda m: dro.worst_case_expectation(m, lambda m, xi: xi, ambiguity))
    assert result.objective == pytest.approx(np.sort(SAMPLES)[-5:].mean(), abs=1e-8)
    _, cvar, _ = solved(
        lambda m: dro.worst_case_cvar(m, lambda m, xi: xi, dro.Reweighting(SAMPLES, total_variation=0), 0.75)
    )
    assert cvar.objective == pytest.approx(result.objective, abs=1e-8)
    _, chance, _ = solved(
        lambda m: dro.worst_case_probability(m, lambda xi: xi >= 5, dro.Reweighting(SAMPLES, total_variation=0.1))
    )
    assert chance.objective == pytest.approx(np.mean(SAMPLES >= 5) + 0.1, abs=1e-8)


# -- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda: dro.Moments((0, 1), [(lambda xi: xi, 2.0, 1.0)]),
            "Moments: an expectation must lie between bounds low <= high, one of them finite (got (2.0, 1.0)).",
        ),
        (lambda: dro.Moments((1, 0), [(lambda xi: xi, 0.5)]), "Moments: the interval (1, 0) is empty or one point; its low end must be below "
         "its high end."),
        (
            lambda: dro.Moments((0, 1), []),
            "Moments: there is no condition, so that any value of the support may occur for certain; declare the loss as "
            "a SemiInfiniteConstraint over the support instead.",
        ),
        (lambda: dro.Moments.mean_variance((0, 1), 0.0, -1.0), "the variance must be a number > 0 (got -1.0); with "
         "0 the mean occurs for certain, and nothing is left to be worst."),
        (
            lambda: dro.Moments([1, 2, 3], []),
            "Moments: the support must be a continuous set, an interval (low, high), a list of those, or an "
            "uncertainty set of PyROS (got int).",
        ),
        (
            lambda: dro.Moments.mean_covariance([(0, 1)] * 2, [0, 0], [[1, 2], [2, 1]]),
            "Moments: the covariance has a negative eigenvalue, which no distribution has.",
        ),
        (lambda: dro.Wasserstein([1.0], -0.1), "the radius of a Wasserstein ball must be a number >= 0 (got -0.1)."),
        (lambda: dro.Wasserstein([1.0], 0.1, norm=3), "Wasserstein: norm must be 1, 2 or 'inf' (got 3)."),
        (
            lambda: dro.Wasserstein([1.0, 5.0], 0.1, (0, 2)),
            "Wasserstein: a sample lies outside of the support; widen the support, or leave it out.",
        ),
        (
            lambda: dro.Wasserstein([[1.0, 5.0]], 0.1, (0, 2)),
            "Wasserstein: the support has 1 dimensions, the samples have 2.",
        ),
        (
            lambda: dro.Reweighting([1.0, 2.0], [0.5, 0.6]),
            "Reweighting: weights must be 2 probabilities that sum to 1 (got 2 with the sum 1.1).",
        ),
        (
            lambda: dro.Reweighting([1.0, 2.0], upper=0.4),
            "Reweighting: no probabilities lie within lower and upper (they sum to 0 and 0.8); they must allow a sum of "
            "1.",
        ),
        (
            lambda: dro.worst_case_cvar(pyo.ConcreteModel(), lambda m, xi: xi, dro.Reweighting([1.0]), 1.0),
            "worst_case_cvar: level must be at least 0 and below 1 (got 1.0).",
        ),
        (
            lambda: dro.worst_case_expectation(pyo.ConcreteModel(), lambda m, xi: xi, [1.0]),
            "ambiguity: expected Moments(...), Wasserstein(...), Reweighting(...) or Mixture(...) (got list).",
        ),
        (
            lambda: dro.worst_case_probability(pyo.ConcreteModel(), [(0, 1), (0, 1)], dro.Moments((0, 1), [(lambda xi: xi, 0.5)])),
            "event: it has 2 dimensions, the random vector has 1.",
        ),
    ],
)  # fmt: skip
def test_refusals(make, why):
    with pytest.raises(errors.OptionError) as error:
        make()
    assert str(error.value) == why


def test_a_loss_that_fails_leaves_the_model_as_it_was():
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    with pytest.raises(errors.OsilpError):
        dro.worst_case_expectation(
            m, lambda m, xi: m.x * xi[3], dro.Moments(BoxSet([(0, 1)]), [(lambda xi: xi[0], 0.5)])
        )
    assert [component.name for component in m.component_objects()] == ["x"]


def test_a_worst_case_that_nothing_depends_on_has_no_distribution():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    worst = dro.worst_case_expectation(m, lambda m, xi: xi * m.x, dro.Moments((0, 1), [(lambda xi: xi, 0.5)]))
    m.loose = pyo.Constraint(expr=worst <= 10)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    result = osilp.solve(m)
    with pytest.raises(errors.PriceError) as error:
        dro.worst_case_distribution(result, worst)
    assert str(error.value) == (
        "The worst case of 'worst_case' has no price: nothing in the solved model depends on it, so that no "
        "distribution is the worst."
    )
    with pytest.raises(errors.OptionError) as error:
        dro.worst_case_distribution(result, 1 + worst)
    assert str(error.value) == (
        "worst_case_distribution: give it the expression alone that worst_case_expectation (or its like) gave back, or "
        "the Block that it is on (got SumExpression)."
    )


def test_moments_that_no_distribution_has_are_told():
    """E xi = 2 on [0, 1]: the dual is unbounded."""
    _, result, _ = solved(
        lambda m: dro.worst_case_expectation(m, lambda m, xi: xi, dro.Moments((0, 1), [(lambda xi: xi, 2.0)]))
    )
    assert result.status == "unbounded"


# -- far out, and in other units -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("mean", "deviation"), [(1e5, 1e4), (1e4, 1.0), (1e-3, 1e-4)])
def test_moments_in_any_unit(mean, deviation):
    known = dro.Moments.mean_variance((0, None), mean, deviation**2)
    _, chance, _ = solved(lambda m: dro.worst_case_probability(m, (mean + deviation, None), known))
    assert chance.objective == pytest.approx(0.5, abs=1e-6)
    _, call, _ = solved(lambda m: dro.worst_case_expectation(m, lambda m, xi: [xi - mean, 0], known))
    assert call.objective == pytest.approx(deviation / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "ambiguity"),
    [
        (lambda m, x: x**2, dro.Moments((0, None), [(lambda x: x, 3.0)])),
        (lambda m, x: x**1.5, dro.Moments((0, None), [(lambda x: x, 3.0)])),
        (lambda m, x: x**3, dro.Moments.mean_variance((0, None), 3, 1)),
        (lambda m, x: [x - 1, 0], dro.Moments(ANYWHERE, [(lambda x: x, 3.0)])),
        (lambda m, x: x**2, dro.Wasserstein([0.0, 1.0], 0.1)),
    ],
)
def test_losses_that_outgrow_what_is_known_have_no_worst_expectation(loss, ambiguity):
    """It is infinite: no finite number of rows proves that, so that it stays undecided."""
    _, result, _ = solved(lambda m: dro.worst_case_expectation(m, loss, ambiguity))
    assert result.status == "undecided"


def test_events_are_cut_to_the_support():
    def chance(event, ambiguity):
        _, result, _ = solved(lambda m: dro.worst_case_probability(m, event, ambiguity))
        return result.objective

    assert chance((8, None), dro.Wasserstein([1.0, 2.0, 5.0], 1.0, (0, 7))) == pytest.approx(0.0, abs=1e-9)
    # Only the end of the support: moving 5 there costs 2, moving 2 costs 5.
    assert chance((7, None), dro.Wasserstein([1.0, 2.0, 5.0], 1.0, (0, 7))) == pytest.approx(0.4, abs=1e-7)
    # A face of a box: both samples can be moved there.
    on_a_face = dro.Wasserstein([[1.0, 1.0], [2.0, 1.0]], 1.0, [(0, 4), (0, 2)])
    assert chance([(4, None), (0, 2)], on_a_face) == pytest.approx(0.5, abs=1e-6)
    known = dro.Moments.mean_variance((0, 10), 5, 20)
    assert chance((8, None), known) == pytest.approx(chance((8, 10), known), abs=1e-8)
    box = dro.Moments(BoxSet([(0, 1), (0, 1)]), [(lambda xi: xi[0], 0.5)])
    assert chance(BoxSet([(0.9, 5), (0, 1)]), box) == pytest.approx(0.5 / 0.9, abs=1e-7)
    assert chance(BoxSet([(2, 5), (0, 1)]), box) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(errors.OptionError) as error:
        chance([(0, 1), (0, 1)], box)
    assert str(error.value) == (
        "event: it must be of the same kind as the support, intervals for intervals and an uncertainty set for an "
        "uncertainty set; or give a condition event(xi)."
    )


@pytest.mark.parametrize("weight", [0.1, 10.0])
def test_the_distribution_of_an_event_does_not_depend_on_its_weight(weight):
    m = pyo.ConcreteModel()
    worst = dro.worst_case_probability(m, (4, None), dro.Wasserstein([1.0, 2.0, 3.0], 0.3))
    m.o = pyo.Objective(expr=weight * worst)
    result = osilp.solve(m)
    frame = dro.worst_case_distribution(result, worst)
    assert result.objective / weight == pytest.approx(0.3, abs=1e-7)
    assert frame.loc[frame["xi"] >= 4 - 1e-6, "probability"].sum() == pytest.approx(0.3, abs=1e-6)


def test_probability_far_out_that_carries_a_moment_is_shown():
    moments = [(lambda x: x, 3.0), (lambda x: x**2, 12.0), (lambda x: x**3, 58.0), (lambda x: x**4, 320.0)]
    m, result, worst = solved(
        lambda m: dro.worst_case_expectation(m, lambda m, x: [x - 4, 0], dro.Moments((0, None), moments))
    )
    frame = dro.worst_case_distribution(result, worst)
    assert (frame["probability"] * frame["xi"] ** 4).sum() == pytest.approx(320.0, rel=1e-6)
    del m


def test_a_ball_on_scenarios():
    scenarios = DiscreteScenarioSet([(0, 0), (1, 1), (2, 0)])
    ambiguity = dro.Wasserstein([[0, 0], [1, 1]], 0.3, scenarios)
    _, result, _ = solved(lambda m: dro.worst_case_expectation(m, lambda m, xi: xi[0] - xi[1], ambiguity))
    # From (0, 0) or from (1, 1) to (2, 0) costs 2 and gains 2.
    assert result.objective == pytest.approx(0.3, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_chi_square_has_a_closed_form(seed):
    """Where no probability becomes zero the worst mean is ``mean + sqrt(radius * variance)`` (Cauchy and Schwarz)."""
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=12), rng.dirichlet(np.full(12, 5.0))
    mean = weights @ points
    variance = weights @ (points - mean) ** 2
    m = pyo.ConcreteModel()
    worst = dro.worst_case_expectation(m, lambda m, xi: xi, dro.Reweighting(points, weights, chi_square=0.02))
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(mean + np.sqrt(0.02 * variance), rel=1e-8)
    atoms = dro.worst_case_distribution(result, worst)
    found = atoms.set_index("scenario")["probability"].to_numpy()
    assert np.sum((found - weights) ** 2 / weights) == pytest.approx(0.02, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_kullback_leibler_tilts_exponentially(seed):
    """The worst probabilities are ``weights exp(xi / t)``, normalised, with the t that uses up the radius."""
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=12), rng.dirichlet(np.full(12, 5.0))

    def tilted(t):
        raw = weights * np.exp((points - points.max()) / t)
        p = raw / raw.sum()
        return p, float(p @ np.log(p / weights))

    t = brentq(lambda t: tilted(t)[1] - 0.1, 0.05, 50.0, xtol=1e-14)
    m = pyo.ConcreteModel()
    worst = dro.worst_case_expectation(m, lambda m, xi: xi, dro.Reweighting(points, weights, kullback_leibler=0.1))
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(tilted(t)[0] @ points, rel=1e-8)
    found = dro.worst_case_distribution(result, worst).set_index("scenario")["probability"].to_numpy()
    assert found == pytest.approx(tilted(t)[0], abs=1e-5)


def test_no_divergence_and_a_negative_one():
    for radius in ({"chi_square": 0.0}, {"kullback_leibler": 0.0}):
        m = pyo.ConcreteModel()
        m.o = pyo.Objective(
            expr=dro.worst_case_expectation(m, lambda m, xi: xi, dro.Reweighting([1.0, 3.0], [0.25, 0.75], **radius))
        )
        assert osilp.solve(m).objective == pytest.approx(2.5)
    with pytest.raises(osilp.errors.OptionError) as told:
        dro.Reweighting([1.0, 2.0], chi_square=-1)
    assert str(told.value) == "the chi square must be a number >= 0 (got -1)."


def test_a_result_says_whose_worst_cases_its_rows_are():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 9))
    known = dro.Moments((0, 4), [(lambda xi: xi, 1.0)])
    m.enough = pyo.Constraint(expr=m.x >= 1 + dro.worst_case_expectation(m, lambda m, xi: [xi - m.x, 0], known))
    m.cost = pyo.Objective(expr=m.x + 2 * dro.worst_case_expectation(m, lambda m, xi: [xi - 3, 0], known))
    dro.worst_case_expectation(m, lambda m, xi: xi, known, name="unused")
    result = osilp.solve(m.clone())
    assert result.used_by == {"worst_case": ("enough",), "worst_case_2": ("cost",)}
    assert "  worst case 'worst_case' is that in 'enough'" in str(result).splitlines()


@pytest.mark.parametrize(
    "known",
    [
        dro.Reweighting([1.0, 2.0, 4.0], total_variation=0.1),
        dro.Reweighting([1.0, 2.0, 4.0], total_variation=0),
        dro.Wasserstein([1.0, 2.0, 4.0], 0.5, (0, 5)),
        dro.Wasserstein([1.0, 2.0, 4.0], 0, (0, 5)),
    ],
)
def test_a_loss_is_called_once_for_its_pieces_and_anew_when_rows_are_made_again(known):
    calls = []
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 5))
    data = {"factor": 3.0}

    def loss(m, xi):
        calls.append(xi)
        return [data["factor"] * (xi - m.x), m.x - xi, 0.1]

    m.cost = pyo.Objective(expr=dro.worst_case_expectation(m, loss, known))
    at_points = [each for each in calls if isinstance(each, float)]
    assert len(at_points) <= 9  # three samples, two ends, and the examples that tell how many pieces there are
    data["factor"] = 4.0
    rows = m.worst_case.rows
    again = rows.rule(m.worst_case, next(iter(rows)))
    assert "4.0" in str(again)
