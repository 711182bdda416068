"""Sums of maxima: against all their pieces, at the size of published models, and what is refused."""

import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BoxSet

import osilp_pyomo as osilp
from osilp_pyomo import dro, errors

BOX, RAY, LINE = (-1.0, 5.0), (-1.0, None), (None, None)


def both_ways(known, terms, dimension, level=None):
    """Objectives with the terms as a sum of maxima, and multiplied out; and the summed model's result and expression."""
    found = []
    for summed in (True, False):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(dimension), bounds=(-2, 2))

        def loss(m, xi, summed=summed):
            own = terms(m, xi)
            return dro.SumOfMaxima(*own) if summed else [sum(choice) for choice in itertools.product(*own)]

        if level is None:
            worst = dro.worst_case_expectation(m, loss, known)
        else:
            worst = dro.worst_case_cvar(m, loss, known, level)
        m.objective = pyo.Objective(expr=worst)
        found.append((osilp.solve(m), m, worst))
    (one, m, worst), (other, _, _) = found
    assert one.status == other.status == "optimal"
    assert one.certified
    assert one.objective == pytest.approx(other.objective, rel=1e-6, abs=1e-7)
    return one, m, worst


def drawn_terms(rng, dimension, *, single):
    """Three terms of two or three expressions, in one entry of the vector each, or in all of them."""
    numbers = [rng.normal(size=(rng.integers(2, 4), dimension + 2)) for _ in range(3)]
    entries = rng.integers(dimension, size=(3, 2))

    def terms(m, xi):
        return [
            [
                (float(row[0]) * xi[j] if single else sum(float(a) * entry for a, entry in zip(row, xi, strict=False)))
                + float(row[-1])
                + float(row[-2]) * m.x[k]
                for row in term
            ]
            for term, (j, k) in zip(numbers, entries.tolist(), strict=True)
        ]

    return terms


def expected(frame, value):
    """The expectation of a function over a worst distribution."""
    names = [name for name in frame.columns if name.startswith("xi")]
    return sum(p * value(xi) for xi, p in zip(frame[names].to_numpy(), frame["probability"], strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_scenarios_need_a_variable_for_each_term(seed):
    rng = np.random.default_rng(seed)
    terms, scenarios = drawn_terms(rng, 2, single=False), rng.normal(size=(5, 2))
    near = {"total_variation": 0.3} if seed % 2 else {"chi_square": 0.2}
    result, m, worst = both_ways(dro.Reweighting(scenarios, **near), terms, 2, 0.7 if seed > 1 else None)
    assert len(m.worst_case.terms) > 0
    assert dro.worst_case_distribution(result, worst)["probability"].sum() == pytest.approx(1)


@pytest.mark.parametrize("support", [BOX, RAY, LINE])
@pytest.mark.parametrize("norm", [1, 2])
def test_a_ball_of_distributions(support, norm):
    rng = np.random.default_rng(5)
    known = dro.Wasserstein(rng.uniform(0, 3, (3, 2)), 0.4, [support] * 2, norm=norm)
    _, m, _ = both_ways(known, drawn_terms(rng, 2, single=True), 2)
    assert m.worst_case.way == ("entries" if norm == 1 else "whole space" if support == LINE else "transport")


def test_entries_that_are_moved_for_themselves_attain_the_worst_case():
    rng = np.random.default_rng(8)
    terms = drawn_terms(rng, 3, single=True)
    known = dro.Wasserstein(rng.uniform(0, 3, (4, 3)), 0.4, [BOX] * 3)
    result, m, worst = both_ways(known, lambda m, xi: [*terms(m, xi), [xi[0] * m.x[0] - xi[2] * m.x[1]]], 3)
    frame = dro.worst_case_distribution(result, worst)

    def value(xi):
        return sum(max(map(pyo.value, term)) for term in terms(m, xi)) + xi[0] * m.x[0].value - xi[2] * m.x[1].value

    assert expected(frame, value) == pytest.approx(result.objective, rel=1e-7)
    moved = sum(
        p * np.abs(xi - known.samples[sample]).sum()
        for *xi, sample, p in frame[["xi[0]", "xi[1]", "xi[2]", "sample", "probability"]].to_numpy()
        for sample in [int(sample)]
    )
    assert moved <= 0.4 + 1e-9


def test_of_one_number_the_ends_suffice():
    rng = np.random.default_rng(9)
    terms = drawn_terms(rng, 1, single=True)
    for support in (BOX, RAY, LINE):
        known = dro.Wasserstein(rng.uniform(0, 3, 4), 0.4, support)
        _, m, _ = both_ways(known, lambda m, xi: terms(m, [xi]), 1)
        assert m.worst_case.way == "ends"


def bounded_variances(support, mean, deviation):
    return dro.Moments(
        support,
        [((lambda xi, j=j: (xi[j] - mean[j]) / deviation[j]), 0.0) for j in range(len(mean))]
        + [((lambda xi, j=j: ((xi[j] - mean[j]) / deviation[j]) ** 2), None, 1.0) for j in range(len(mean))],
    )


SUPPORTS = [
    pytest.param([RAY] * 2, id="rays"),
    pytest.param(AxisAlignedEllipsoidalSet([1.0, 1.5], [3.0, 3.0]), id="ball"),
    pytest.param([BOX] * 2, id="box", marks=pytest.mark.long),
    pytest.param([LINE] * 2, id="plane", marks=pytest.mark.long),
    pytest.param(BoxSet([BOX] * 2), id="box set", marks=pytest.mark.long),
]


@pytest.mark.parametrize("support", SUPPORTS)
def test_bounded_variances(support):
    rng = np.random.default_rng(11)
    known = bounded_variances(support, [1.0, 1.5], [0.8, 0.5])
    terms = drawn_terms(rng, 2, single=False)
    result, m, worst = both_ways(known, terms, 2, level=0.6)
    frame = dro.worst_case_distribution(result, worst)
    names = frame.columns[:2]
    assert frame["probability"] @ frame[names].to_numpy() == pytest.approx([1.0, 1.5], abs=1e-4)
    result, m, worst = both_ways(known, terms, 2)
    value = lambda xi: sum(max(map(pyo.value, term)) for term in terms(m, xi))  # noqa: E731
    assert expected(dro.worst_case_distribution(result, worst), value) == pytest.approx(result.objective, rel=1e-5)


def test_mean_and_covariance_make_matrices_of_every_choice():
    rng = np.random.default_rng(12)
    known = dro.Moments.mean_covariance([LINE] * 2, [1.0, 2.0], [[1.0, 0.3], [0.3, 0.5]])
    both_ways(known, drawn_terms(rng, 2, single=False), 2)


def test_means_over_a_box_are_linear_for_every_choice():
    rng = np.random.default_rng(13)
    known = dro.Moments([BOX] * 2, [(lambda xi: xi[0], 1.0), (lambda xi: xi[1], None, 2.0)])
    both_ways(known, drawn_terms(rng, 2, single=False), 2)


def appointments(patients, seed=4, overtime=2.0, correlation=0.25):
    """Times for patients one after the other: who waits, waits for any of those before (Bertsimas et al., 2019)."""
    rng = np.random.default_rng(seed)
    mean = 30 + 30 * rng.random(patients)
    deviation = mean * 0.3 * rng.random(patients)
    squares = np.outer(deviation, deviation)
    variance = float(correlation * squares.sum() + (1 - correlation) * np.trace(squares))
    one = range(patients)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(one, bounds=(0, None))
    m.day = pyo.Constraint(expr=sum(m.x.values()) <= mean.sum() + 0.5 * np.linalg.norm(deviation))
    known = dro.Moments(
        [(0, None)] * patients,
        [
            *((lambda z, j=j: (z[j] - mean[j]) / deviation[j], 0.0) for j in one),
            *((lambda z, j=j: ((z[j] - mean[j]) / deviation[j]) ** 2, None, 1.0) for j in one),
            (lambda z: sum(z[j] - mean[j] for j in one) ** 2 / variance, None, 1.0),
        ],
    )

    def waiting(m, z):
        return dro.SumOfMaxima(
            *(
                [0.0] + [cost * sum(z[k] - m.x[k] for k in range(first, i)) for first in range(i)]
                for i in range(1, patients + 1)
                for cost in [overtime if i == patients else 1.0]
            )
        )

    worst = dro.worst_case_expectation(m, waiting, known)
    m.cost = pyo.Objective(expr=worst)
    return m, worst, waiting, mean


def test_eight_patients_with_a_third_of_a_million_pieces():
    m, worst, waiting, mean = appointments(8)
    assert math.prod(waiting(m, mean.tolist()).counts) == 362_880
    result = osilp.solve(m)
    assert result.certified
    assert result.method == "counterpart"
    assert result.why == "its sums of maxima are written choice by choice, as far as choices matter"
    assert result.objective == pytest.approx(result.bound, rel=1e-7)
    frame = dro.worst_case_distribution(result, worst)
    times = frame[[f"xi_{k + 1}" for k in range(8)]].to_numpy()
    assert frame["probability"].to_numpy() @ times == pytest.approx(mean, rel=1e-5)
    # The distribution by itself proves that no plan waits less in the worst case of these values.
    waited = sum(
        p * sum(max(map(pyo.value, term)) for term in waiting(m, z.tolist()).terms)
        for p, z in zip(frame["probability"], times, strict=True)
    )
    assert waited == pytest.approx(result.objective, rel=1e-5)


def test_whole_minutes_beside_sums_of_maxima():
    m, *_ = appointments(3)
    relaxed = osilp.solve(m).objective
    for j in m.x:
        m.x[j].domain = pyo.NonNegativeIntegers
    result = osilp.solve(m)
    assert result.status == "optimal"
    assert relaxed - 1e-6 <= result.objective <= relaxed + 3


def test_other_methods_say_what_to_use():
    m, *_ = appointments(3)
    with pytest.raises(errors.ModelError) as caught:
        osilp.solve(m, method="exchange")
    assert str(caught.value) == (
        "SemiInfiniteConstraint 'worst_case.sum_0[0]': it has sums of maxima, which exchange does not take; use "
        "method='counterpart', or write the largest of all their sums as a list of pieces."
    )


def test_too_many_pieces_to_be_multiplied_out_are_refused():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(11), bounds=(0, 1))
    known = dro.Wasserstein(np.zeros((2, 11)), 0.1, norm=2)

    def loss(m, xi):
        return dro.SumOfMaxima(*([0, xi[j] - m.x[j]] for j in range(11)))

    with pytest.raises(errors.OptionError) as caught:
        dro.worst_case_expectation(m, loss, known)
    assert str(caught.value) == (
        "Wasserstein: a sum of maxima with 2,048 pieces is too large to be multiplied out; it is taken as it is where "
        "every expression is affine in the random vector, and with norm=1 where each maximum depends on one entry of it "
        "alone."
    )
    assert list(m.component_objects(pyo.Block)) == []
    # Moved in the norm 1 they are no trouble: a fiftieth is moved to 5, which costs 4 more there.
    n = pyo.ConcreteModel()
    n.x = pyo.Var(range(11), bounds=(0, 1))
    n.worst = pyo.Objective(
        expr=dro.worst_case_expectation(n, loss, dro.Wasserstein(np.zeros((2, 11)), 0.1, [(0, 5)] * 11))
    )
    assert osilp.solve(n).objective == pytest.approx(0.08)


def test_an_empty_term_is_refused():
    with pytest.raises(errors.OptionError) as caught:
        dro.SumOfMaxima([1.0], [])
    assert str(caught.value) == (
        "SumOfMaxima: it needs at least one term, and each term at least one expression (got 2 terms with [1, 0] "
        "expressions)."
    )
    assert repr(dro.SumOfMaxima([1, 2], [3, 4, 5])) == "sum of 2 maxima, of 6 pieces"


@pytest.mark.parametrize("seed", range(5))
def test_mass_at_the_end_of_an_interval_is_kept(seed):
    """A sum of maxima beside a plain piece: what is computed of an end may lie beyond it by a rounding."""
    rng = np.random.default_rng(seed)
    low = float(rng.normal())
    high = low + float(rng.uniform(0.5, 3))
    mean = low + 0.4 * (high - low)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(-1, 1))

    def loss(m, z):
        return [dro.SumOfMaxima([m.x - z, 0.0], [z - 1 - m.x, 2 * z - 3]), 0.3 - z]

    worst = dro.worst_case_expectation(m, loss, dro.Moments((low, high), [(lambda z: z, mean)]))
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.certified
    frame = dro.worst_case_distribution(result, worst)
    xi, x = frame["xi"].to_numpy(), m.x.value
    lost = np.maximum(np.maximum(x - xi, 0) + np.maximum(xi - 1 - x, 2 * xi - 3), 0.3 - xi)
    assert frame["probability"] @ xi == pytest.approx(mean)
    assert frame["probability"] @ lost == pytest.approx(result.objective)
