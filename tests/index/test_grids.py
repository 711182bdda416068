"""Grids: where points lie, and that their weights integrate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import osilp_pyomo as osilp
from osilp_pyomo.index.choose import default_grid
from osilp_pyomo.index.domain import Domain, on_points

BOX = Domain.box(u=(-1, 2), v=(0, 0.5))


@pytest.mark.parametrize("grid", [osilp.Midpoint(7), osilp.GaussLegendre(7), osilp.Chebyshev(7), osilp.Sobol(40),
                                  osilp.Random(40), osilp.Points([[0.0, 0.1], [1.0, 0.2]])])  # fmt: skip
def test_weights_sum_to_the_volume_and_points_lie_inside(grid):
    laid = grid.on(BOX)
    assert laid.weights.sum() == pytest.approx(1.5)
    assert laid.points.shape == (len(laid), 2)
    assert BOX.contains(laid.points).all()


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5])
def test_default_grids_reach_five_dimensions(dimension):
    box = Domain.box(**{f"u{k}": (0, 1) for k in range(dimension)})
    laid = default_grid(box).on(box)
    assert 1000 <= len(laid) <= 20_000
    assert laid.weights @ laid.points.prod(axis=1) == pytest.approx(0.5**dimension, rel=1e-2)


@given(st.integers(1, 12), st.floats(-5, 5), st.floats(0.1, 10))
def test_gauss_is_exact_for_polynomials_of_twice_its_size(count, low, width):
    laid = osilp.GaussLegendre(count).on(Domain.box(u=(low, low + width)))
    t = (laid.points[:, 0] - low) / width
    for power in range(2 * count):
        assert laid.weights @ t**power == pytest.approx(width / (power + 1), rel=1e-10)


@given(st.integers(2, 15))
def test_clenshaw_curtis_is_exact_for_polynomials_of_its_size(count):
    laid = osilp.Chebyshev(count).on(Domain.box(u=(0, 1)))
    for power in range(count):
        assert laid.weights @ laid.points[:, 0] ** power == pytest.approx(1 / (power + 1), rel=1e-12)
    assert laid.points[0, 0] == 0
    assert laid.points[-1, 0] == 1


def test_numbers_along_each_axis():
    assert len(osilp.Midpoint((3, 4)).on(BOX)) == 12
    with pytest.raises(osilp.errors.GridError) as error:
        osilp.Midpoint((3, 4, 5)).on(BOX)
    assert str(error.value) == (
        "Midpoint(count=(3, 4, 5)) on u in [-1, 2], v in [0, 0.5]: give one number of points, or one for each of the 2 "
        "axes (got 3)."
    )


def test_points_without_weights_get_their_cells():
    laid = osilp.Points([0.9, 0.1, 0.1]).on(Domain.box(u=(0, 1)))
    np.testing.assert_allclose(laid.weights, [0.5, 0.25, 0.25])


def test_masks_drop_points_and_keep_weights():
    disc = Domain.box(inside=lambda points: (points**2).sum(axis=1) <= 1, u=(-1, 1), v=(-1, 1))
    laid = osilp.Midpoint(200).on(disc)
    assert laid.weights.sum() == pytest.approx(np.pi, rel=1e-3)


def test_unbounded_domains_take_points_only():
    half_line = Domain.box(u=(0, np.inf))
    with pytest.raises(osilp.errors.GridError) as error:
        osilp.Midpoint(5).on(half_line)
    assert str(error.value) == (
        "Midpoint(count=5) cannot be laid on u in [0, inf): it is unbounded; use method='exchange', or give the points "
        "by Points(...)."
    )
    assert len(osilp.Points([0, 3, 100]).on(half_line)) == 3


def test_same_seed_same_points():
    one, two = osilp.Random(20, seed=4).on(BOX), osilp.Random(20, seed=4).on(BOX)
    np.testing.assert_array_equal(one.points, two.points)
    assert not np.array_equal(one.points, osilp.Random(20, seed=5).on(BOX).points)


@pytest.mark.parametrize(
    "function",
    [lambda u: u * 2, lambda u: 2.0 * u if u > 0.5 else u + u, lambda u: float(u) * 2, lambda u: max(2 * u, 0)],
)
def test_functions_of_points_are_called_as_they_allow(function):
    points = np.linspace(0, 1, 9)[:, None]
    np.testing.assert_allclose(on_points(function, points), 2 * points[:, 0])


def test_a_function_that_looks_at_all_points_at_once_is_found_out():
    points = np.linspace(0, 1, 9)[:, None]
    np.testing.assert_allclose(on_points(lambda u: u / np.max(u) if np.max(u) > 0 else u, points)[1:], 1.0)
