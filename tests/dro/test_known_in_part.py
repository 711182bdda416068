"""Moments bounded by matrices, distance at a price, data that is read late, and mass that goes to infinity."""

import numpy as np
import pyomo.environ as pyo
import pytest

import osilp_pyomo as osilp
from osilp_pyomo import dro, errors

LINE = (None, None)


def spread(frame, centre):
    """Mean and second moments around a centre of a worst distribution."""
    points = frame[[name for name in frame.columns if name.startswith("xi")]].to_numpy()
    mass = frame["probability"].to_numpy()
    moved = points - centre
    return mass @ points, moved.T @ (mass[:, None] * moved)


@pytest.mark.parametrize("near", [0.0, 0.2])
def test_delage_and_ye_in_closed_form(near):
    """One piece: ``mean a + sqrt(near) |a|``; the CVaR of one has both parts of what is not known."""
    mean, covariance = np.array([1.0, -0.5]), np.array([[1.0, 0.4], [0.4, 0.5]])
    slope = np.array([0.7, 0.3])
    length = float(np.sqrt(slope @ covariance @ slope))
    known = dro.Moments.delage_ye([LINE] * 2, mean, covariance, mean_within=near, covariance_within=1.5)
    m = pyo.ConcreteModel()
    worst = dro.worst_case_expectation(m, lambda m, xi: 0.7 * xi[0] + 0.3 * xi[1], known)
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(slope @ mean + np.sqrt(near) * length, abs=1e-7)
    n = pyo.ConcreteModel()
    worst = dro.worst_case_cvar(n, lambda m, xi: 0.7 * xi[0] + 0.3 * xi[1], known, 0.8)
    n.o = pyo.Objective(expr=worst)
    result = osilp.solve(n)
    # Along one direction: mean at most sqrt(near) away, second moment at most 1.5.
    drift = np.linspace(-np.sqrt(near), np.sqrt(near), 20001)
    best = np.max(drift + 2 * np.sqrt(1.5 - drift**2))
    assert result.objective == pytest.approx(slope @ mean + best * length, abs=1e-6)
    assert result.certified
    found, second = spread(dro.worst_case_distribution(result, worst), mean)
    moved = found - mean
    assert moved @ np.linalg.solve(covariance, moved) <= near + 1e-6
    assert np.linalg.eigvalsh(1.5 * covariance - second)[0] >= -1e-5


def test_a_price_of_distance_that_is_decided_upon():
    """Robust satisficing: everywhere, the least price is the slope of the loss of what keeps the target."""
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(8, 3)) + 0.5

    def model(support, target):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(3), bounds=(0, 1))
        m.k = pyo.Var(bounds=(0, None))
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
        known = dro.Wasserstein(samples, support=support, norm="inf", price=m.k)
        worst = dro.worst_case_expectation(m, lambda m, z: -2 * sum(z[j] * m.x[j] for j in range(3)), known)
        m.kept = pyo.Constraint(expr=worst <= target)
        m.fragile = pyo.Objective(expr=m.k)
        return m, worst, osilp.solve(m)

    _, worst, result = model(None, -0.1)
    assert result.objective == pytest.approx(2.0)
    with pytest.raises(errors.PriceError) as caught:
        dro.worst_case_distribution(result, worst)
    assert str(caught.value).startswith(
        "The worst case of 'worst_case' lies at infinity: probability that tends to zero is moved ever farther, along "
    )
    m, worst, result = model([(-4.0, 4.0)] * 3, -0.1)
    assert result.objective < 2.0
    x = np.array([m.x[j].value for j in range(3)])
    frame = dro.worst_case_distribution(result, worst)
    points, mass = frame[["xi[0]", "xi[1]", "xi[2]"]].to_numpy(), frame["probability"].to_numpy()
    distance = np.abs(points - samples[frame["sample"]]).max(axis=1)
    # At its own worst distribution the target is kept by the price alone.
    assert mass @ (points @ (-2 * x)) - result.objective * (mass @ distance) == pytest.approx(-0.1, abs=1e-6)
    assert repr(dro.Wasserstein([1.0, 2.0], price=3.0)) == "Wasserstein distance from 2 samples at a price"


def test_radius_and_bounds_are_read_when_the_model_is_solved():
    m = pyo.ConcreteModel()
    m.radius = pyo.Param(initialize=0.1, mutable=True)
    m.x = pyo.Var(bounds=(0, 5))

    def loss(m, z):
        return [m.x - z, 3 * (z - m.x)]

    m.o = pyo.Objective(expr=dro.worst_case_expectation(m, loss, dro.Wasserstein([1.0, 2.0, 4.0], m.radius, (0, 10))))
    for radius in (0.0, 0.1, 0.5):
        m.radius = radius
        n = pyo.ConcreteModel()
        n.x = pyo.Var(bounds=(0, 5))
        n.o = pyo.Objective(expr=dro.worst_case_expectation(n, loss, dro.Wasserstein([1.0, 2.0, 4.0], radius, (0, 10))))
        assert osilp.solve(m).objective == pytest.approx(osilp.solve(n).objective)
    p = pyo.ConcreteModel()
    p.variance = pyo.Param(initialize=1.0, mutable=True)
    known = dro.Moments((0, None), [(lambda xi: xi, 1.0), (lambda xi: (xi - 1) ** 2, None, p.variance)])
    p.o = pyo.Objective(expr=dro.worst_case_expectation(p, lambda m, xi: [xi - 1, 0], known))
    for variance, bound in ((1.0, 0.5), (4.0, 0.8)):  # Scarf (1958)
        p.variance = variance
        assert osilp.solve(p).objective == pytest.approx(bound, abs=1e-6)


def test_a_radius_that_is_decided_upon_is_refused():
    m = pyo.ConcreteModel()
    m.r = pyo.Var()
    with pytest.raises(errors.OptionError) as caught:
        dro.Wasserstein([1.0], m.r)
    assert str(caught.value) == (
        "radius of a Wasserstein ball: it holds a decision, by which the multipliers of the worst case would be "
        "multiplied; give a number, a Param or an Expression of data. For a price of distance that is decided upon use "
        "Wasserstein(samples, price=...)."
    )
    for given in ({}, {"radius": 0.1, "price": 1.0}):
        with pytest.raises(errors.OptionError) as caught:
            dro.Wasserstein([1.0], **given)
        assert str(caught.value) == (
            "Wasserstein: give either the radius of the ball, or the price of a unit of distance."
        )


def test_what_goes_to_infinity_is_told():
    """Half of a unit of distance, all of it for the steep side: probability tends to zero there."""
    m = pyo.ConcreteModel()
    worst = dro.worst_case_expectation(
        m, lambda m, z: dro.SumOfMaxima([0, z[0] - 1], [0, -z[1]]), dro.Wasserstein([[0.0, 5.0]], 0.5)
    )
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(0.5)
    frame = dro.worst_case_distribution(result, worst)
    assert frame[["xi[0]", "xi[1]"]].to_numpy().tolist() == [[0.0, 5.0]]
    assert np.abs(frame.attrs["escaping"]).sum() == pytest.approx(0.5)


def test_one_piece_at_the_mean_is_proved():
    """The worst distribution is one atom at the mean, up to a rounding that a free multiplier must not lose."""
    rng = np.random.default_rng(2)
    mean = rng.uniform(-0.5, 1.5, 3)
    known = dro.Moments(
        [(-2.0, None)] * 3,
        [(lambda z, j=j: (z[j] - mean[j]) / 0.7, 0.0) for j in range(3)]
        + [(lambda z, j=j: ((z[j] - mean[j]) / 0.7) ** 2, None, 1.0) for j in range(3)],
    )
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 2))
    loss = lambda m, z: sum((z[j] - 0.3) * m.x[j] for j in range(3))  # noqa: E731
    m.o = pyo.Objective(expr=dro.worst_case_expectation(m, loss, known))
    result = osilp.solve(m)
    assert result.objective == pytest.approx(2 * np.minimum(mean - 0.3, 0.0).sum(), abs=1e-8)
    assert result.certified


def test_known_probabilities_are_an_expectation():
    rng = np.random.default_rng(6)
    scenarios, weights = rng.normal(size=6), rng.dirichlet(np.ones(6))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(-1, 1))

    def loss(m, z):
        return [m.x - z, 2 * (z - m.x)]

    worst = dro.worst_case_expectation(m, loss, dro.Reweighting(scenarios, weights, total_variation=0))
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    x = m.x.value
    assert result.objective == pytest.approx(weights @ np.maximum(x - scenarios, 2 * (scenarios - x)))
    frame = dro.worst_case_distribution(result, worst)
    found = frame.groupby("scenario")["probability"].sum()
    assert found.reindex(range(6), fill_value=0.0).to_numpy() == pytest.approx(weights)
    n = pyo.ConcreteModel()
    n.x = pyo.Var(bounds=(-1, 1))
    near = dro.Reweighting(scenarios, weights, lower=weights - 1e-12, upper=weights + 1e-12)
    n.o = pyo.Objective(expr=dro.worst_case_expectation(n, loss, near))
    assert osilp.solve(n).objective == pytest.approx(result.objective)


def singular(rng, size, rank):
    """A covariance of a rank below its size, in units far from each other."""
    axes = rng.normal(size=(size, rank)) * (10.0 ** rng.uniform(-3, 3, size))[:, None]
    return axes @ axes.T


@pytest.mark.parametrize("known", [dro.Moments.mean_covariance, dro.Moments.delage_ye])
@pytest.mark.parametrize(("size", "rank"), [(2, 1), (3, 1), (4, 2)])
def test_singular_covariances_are_those_of_a_plane(known, size, rank):
    """The worst CVaR of one piece has a closed form; the worst distribution lies in the plane."""
    rng = np.random.default_rng([size, rank])
    mean, covariance = rng.normal(size=size), singular(rng, size, rank)
    slope = rng.normal(size=size) / np.sqrt(np.diagonal(covariance))
    m = pyo.ConcreteModel()
    worst = dro.worst_case_cvar(
        m, lambda m, xi: sum(slope[k] * xi[k] for k in range(size)), known([LINE] * size, mean, covariance), 0.8
    )
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    deviation = float(np.sqrt(slope @ covariance @ slope))
    # Where the second moments are bounds only, the worst has the mean and all of them.
    assert result.objective == pytest.approx(slope @ mean + 2 * deviation, rel=1e-6)
    assert result.certified
    centre, moments = spread(dro.worst_case_distribution(result, worst), mean)
    assert slope @ centre == pytest.approx(slope @ mean, abs=1e-5 * deviation)
    assert slope @ moments @ slope == pytest.approx(deviation**2, rel=1e-4)
    _, out = np.linalg.eigh(covariance / np.sqrt(np.outer(np.diagonal(covariance), np.diagonal(covariance))))
    normal = out[:, 0] / np.sqrt(np.diagonal(covariance))
    assert normal @ moments @ normal == pytest.approx(0.0, abs=1e-12)


def test_pieces_with_a_singular_covariance_are_those_of_its_plane():
    """The second entry is the first, turned round: the same as one number with a mean and a variance."""
    one, two = pyo.ConcreteModel(), pyo.ConcreteModel()
    pieces = lambda first, second: [first - 1, 2 * second - 3, 0.5 * first + second]  # noqa: E731
    plane = dro.Moments.delage_ye([LINE] * 2, [1.0, 2.0], [[4.0, -2.0], [-2.0, 1.0]], mean_within=0.3)
    line = dro.Moments.delage_ye([LINE], [0.0], [[1.0]], mean_within=0.3)
    level = 0.7
    two.o = pyo.Objective(expr=dro.worst_case_cvar(two, lambda m, xi: pieces(xi[0], xi[1]), plane, level))
    one.o = pyo.Objective(expr=dro.worst_case_cvar(one, lambda m, z: pieces(1 + 2 * z[0], 2 - z[0]), line, level))
    assert osilp.solve(two).objective == pytest.approx(osilp.solve(one).objective, rel=1e-8)


def test_an_event_of_a_vector_with_a_singular_covariance():
    """Cantelli for the first entry, whatever the second, which is the same."""
    for event in ([(1.0, None), LINE], lambda xi: xi[0] >= 1):
        m = pyo.ConcreteModel()
        known = dro.Moments.mean_covariance([LINE] * 2, [0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]])
        m.o = pyo.Objective(expr=dro.worst_case_probability(m, event, known))
        assert osilp.solve(m).objective == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("seed", [1, 4, 7, 10, 12])
def test_distances_over_a_support_with_one_end_are_proved(seed):
    """Multipliers of an interior point miss what must hold exactly where an entry has no end by a rounding."""
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(3, 2))
    slopes, turns = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(-1, 1))

    def loss(m, z):
        return [
            sum((slopes[k, j] + 0.5 * turns[k, j] * m.x) * z[j] for j in range(2)) + turns[k, 0] * m.x for k in range(2)
        ]

    known = dro.Wasserstein(samples, 0.3, [LINE, (None, float(samples[:, 1].max()) + 0.5)], norm=2)
    m.o = pyo.Objective(expr=dro.worst_case_expectation(m, loss, known))
    result = osilp.solve(m)
    assert result.status == "optimal"
    assert result.certified
