"""osilp.dot: the same rows as by terms, bit for bit, in a light node that everybody can read."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

from osilp_pyomo.model.trace import trace_model
from tests.dot_models import change, random_model


def numbers_of(m, seed):
    """Every number of a traced model, the coefficients of its families at some points."""
    traced = trace_model(m)
    lp = traced.problem.core
    found = [lp.cost, lp.offset, lp.matrix.toarray(), lp.row_lower, lp.row_upper, lp.column_lower, lp.column_upper]
    order = np.argsort([variable.name for variable in traced.variables])
    found[0], found[2] = found[0][order], found[2][:, order]
    found[5], found[6] = found[5][order], found[6][order]
    for family in traced.problem.families:
        domain = family.domain
        rng = np.random.default_rng(seed)
        if domain.body is not None:
            points = domain.body.cloud(6)
        else:
            points = domain.lower + rng.uniform(size=(6, domain.dimension)) * (domain.upper - domain.lower)
        matrix = np.zeros((len(points), len(order)))
        matrix[:, family.rows.columns] = family.matrix_unchecked(points)
        found += [matrix[:, order], *family.rows.limits(points)]
    names = sorted(variable.name for variable in traced.variables)
    return names, found, [family.route for family in traced.problem.families]


def assert_same(one, other, seed):
    assert one[0] == other[0]
    assert one[2] == other[2]
    for first, second in zip(one[1], other[1], strict=True):
        np.testing.assert_array_equal(first, second, err_msg=str(seed))


def compare(seed):
    """A model by dot and by terms: as declared, after changes, cloned and pickled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_dot, by_terms = random_model(seed, True), random_model(seed, False)
        assert_same(numbers_of(by_dot, seed), numbers_of(by_terms, seed), seed)
        copies = {0: by_dot.clone, 1: lambda: pickle.loads(pickle.dumps(by_dot))}
        copy = copies[seed % 2]()
        change(copy, seed)
        change(by_terms, seed)
        assert_same(numbers_of(copy, seed), numbers_of(by_terms, seed), seed)


@pytest.mark.parametrize("seed", range(60))
def test_coefficients_are_those_of_terms(seed):
    compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_coefficients_are_those_of_terms_on_many_models(part):
    for seed in range(100 + 50 * part, 150 + 50 * part):
        compare(seed)
