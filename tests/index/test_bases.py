"""Bases: non-negative, as printed in the paper, and exact where they should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import osilp_pyomo as osilp
from osilp_pyomo.index.curves.splines import spline_curves
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.domain import Domain

UNIT = Domain.box(u=(0, 1))
PARTITIONS = [osilp.Hat(7), osilp.BSpline(7), osilp.BSpline(7, degree=1), osilp.BSpline(5, degree=0),
              osilp.Bernstein(7), osilp.Indicator(7)]  # fmt: skip


@pytest.mark.parametrize("basis", PARTITIONS)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_partitions_of_unity(basis, places):
    phi = basis.evaluate(UNIT, np.array(places)[:, None])
    assert phi.min() >= 0
    np.testing.assert_allclose(phi.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("basis", [*PARTITIONS, osilp.RBF(7), osilp.Tensor(osilp.RBF(4), osilp.Hat(3))])
def test_tensor_products_are_products(basis):
    box = Domain.box(u=(0, 1), v=(2, 6))
    points = np.random.default_rng(0).uniform([0, 2], [1, 6], size=(30, 2))
    phi = basis.evaluate(box, points)
    first, second = basis.bases if isinstance(basis, osilp.Tensor) else (basis, basis)
    left = first.evaluate(UNIT, points[:, :1])
    right = second.evaluate(Domain.box(v=(2, 6)), points[:, 1:])
    np.testing.assert_allclose(phi, np.einsum("mi,mj->mij", left, right).reshape(30, -1))
    assert len(basis.labels(box)) == phi.shape[1]


def test_rbf_as_the_paper_prints_it():
    centres, sigma = osilp.RBF(10).layers(10)
    np.testing.assert_allclose(centres, [0, 0.2, 0.4, 0.6, 0.8, 1, 0.1, 0.3, 0.5, 0.7])
    np.testing.assert_allclose(sigma[:6], 0.2 / (2 * np.log(1 / 0.6)))
    np.testing.assert_allclose(sigma[6:], 0.2 / (2 * np.log(1 / 0.3)))
    value = osilp.RBF(10).evaluate(UNIT, np.array([[0.25]]))[0, 1]
    assert value == pytest.approx(np.exp(-((0.25 - 0.2) ** 2) / (2 * sigma[1] ** 2)))


def test_rbf_whose_neighbours_overlap_by_rho():
    basis = osilp.RBF(10, width="overlap")
    phi = basis.evaluate(UNIT, np.array([[0.2]]))
    assert phi[0, 0] == pytest.approx(0.6)
    assert phi[0, 2] == pytest.approx(0.6)
    fine = basis.evaluate(UNIT, np.array([[0.3]]))
    assert fine[0, 6] == pytest.approx(0.3)


@pytest.mark.parametrize("count", range(2, 60))
def test_rbf_splits_its_layers_by_the_ceiling(count):
    from fractions import Fraction
    from math import ceil

    centres, _ = osilp.RBF(count).layers(count)
    coarse = ceil(Fraction(6, 10) * count)
    np.testing.assert_allclose(centres[:coarse], np.linspace(0, 1, coarse))
    assert len(centres) == count
    assert np.all((centres >= 0) & (centres < 1 + 1e-12))


def test_nothing_depends_on_how_fine_the_grid_is():
    def mass(count):
        return osilp.RBF(10).on(osilp.Midpoint(count).on(UNIT)).matrix.sum(axis=0)

    np.testing.assert_allclose(mass(1000), mass(2000), rtol=1e-5)


def test_local_bases_are_sparse():
    from scipy import sparse

    matrix = osilp.Hat(50).on(osilp.Midpoint(2000).on(UNIT)).matrix
    assert sparse.issparse(matrix)
    assert matrix.nnz <= 2 * 2000


def test_dirac_is_a_choice_of_rows():
    laid = osilp.Midpoint(10).on(UNIT)
    everywhere = osilp.Dirac().on(laid)
    np.testing.assert_array_equal(everywhere.matrix.toarray(), np.eye(10))
    chosen = osilp.Dirac([0.33]).on(laid)
    np.testing.assert_array_equal(chosen.points, [[0.33]])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: osilp.RBF(1), "RBF: the number of functions along an axis must be a whole number >= 2 (got 1)."),
        (lambda: osilp.RBF(10, share=2), "RBF: the share of coarse centres must lie in (0, 1] (got 2)."),
        (lambda: osilp.RBF(10, width="wide"), "RBF: width must be 'paper' or 'overlap' (got 'wide')."),
        (
            lambda: osilp.RBF(10, overlap=(0.6, 1.3)),
            "RBF: the two overlap degrees must lie between 0 and 1 (got (0.6, 1.3)).",
        ),
        (lambda: osilp.BSpline(3), "BSpline: degree 3 needs at least 4 functions along an axis (got 3)."),
        (
            lambda: osilp.Hat(2.5),
            "Hat: the number of functions along an axis must be a whole number >= 2 (got 2.5).",
        ),
        (lambda: osilp.Tensor(osilp.Hat(3)), "Tensor: give one basis for each axis, at least two, none of them Dirac."),
        (
            lambda: osilp.Functions(3),
            "Functions: give one or more callables of the index, such as lambda u: u**2.",
        ),
    ],
)
def test_bad_arguments(make, text):
    with pytest.raises(osilp.errors.BasisError) as error:
        make()
    assert str(error.value) == text


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_curves_of_a_basis_are_its_functions_for_any_shape_of_coordinates(degree):
    basis = osilp.BSpline(9, degree=degree)
    curves = spline_curves("f", basis._knots(9), degree)
    stack, alone = CurveStack.of_tables(tuple(curves)), CurveStack.of_tables((curves[3],))
    rng = np.random.default_rng(0)

    def values(at):
        return basis.evaluate(Domain.box(u=(0, 1)), at[:, None]).T

    line, rows, others = rng.random(50), rng.random((9, 20)), rng.random((4, 20))
    assert stack(line) == pytest.approx(values(line))
    assert stack[2:5](line) == pytest.approx(values(line)[2:5])
    assert stack(rows) == pytest.approx(np.stack([values(row)[k] for k, row in enumerate(rows)]))
    for single in (alone, curves[3]):
        assert single(others) == pytest.approx(np.stack([values(row)[3] for row in others]))
    assert curves[3](line) == pytest.approx(values(line)[3])
    assert float(curves[3](np.array(0.3))) == pytest.approx(values(np.array([0.3]))[3, 0])
