"""Bodies of uncertain vectors: farthest points against linear programs, members against PyROS."""

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.contrib.pyros import (
    AxisAlignedEllipsoidalSet,
    BoxSet,
    BudgetSet,
    CardinalitySet,
    CartesianProductSet,
    DiscreteScenarioSet,
    EllipsoidalSet,
    FactorModelSet,
    IntersectionSet,
    PolyhedralSet,
)
from pyomo.contrib.pyros.uncertainty_sets import UncertaintySet
from robust_models import KINDS, uncertainty_set
from scipy.optimize import linprog

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.index.convex_sets import BudgetBody, CardinalityBody, EllipsoidBody, ScenarioBody
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.lp_sets import IntersectionBody, PolytopeBody
from osilp_pyomo.model.sets import body_of

seeds = st.integers(0, 10**6)


def farthest(lift, direction):
    """The largest value over the linear part of a description, by scipy's own entry to HiGHS."""
    equal = lift.row_lower == lift.row_upper
    above, below = ~equal & np.isfinite(lift.row_upper), ~equal & np.isfinite(lift.row_lower)
    solved = linprog(
        -(direction @ lift.matrix),
        A_ub=np.concatenate([lift.rows[above], -lift.rows[below]]),
        b_ub=np.concatenate([lift.row_upper[above], -lift.row_lower[below]]),
        A_eq=lift.rows[equal],
        b_eq=lift.row_upper[equal],
        bounds=np.column_stack([lift.lower, lift.upper]),
    )
    return direction @ lift.offset - solved.fun


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scenarios", "ellipsoid", "flat", "lens")])
@settings(max_examples=25, deadline=None)
@given(seed=seeds, dimension=st.integers(1, 6))
def test_closed_forms_are_the_optimum_of_the_linear_program(kind, seed, dimension):
    rng = np.random.default_rng(seed)
    body = body_of(uncertainty_set(kind, dimension, rng), "it")
    directions = rng.normal(size=(4, body.dimension))
    points = body.support(directions)
    assert body.contains(points).all()
    lift = body.lift()
    expected = [farthest(lift, direction) for direction in directions]
    np.testing.assert_allclose(np.einsum("kd,kd->k", directions, points), expected, atol=1e-8)
    axes = np.eye(body.dimension)
    np.testing.assert_allclose(np.diagonal(body.support(axes)), body.upper, atol=1e-9)
    np.testing.assert_allclose(np.diagonal(body.support(-axes)), body.lower, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None)
@given(seed=seeds, dimension=st.integers(1, 4))
def test_members_are_those_of_pyros(kind, seed, dimension):
    rng = np.random.default_rng(seed)
    given_set = uncertainty_set(kind, dimension, rng)
    body = body_of(given_set, "it")
    inside = body.cloud(12)
    assert body.contains(inside).all()
    # The method of its own that PyROS gives cardinality sets calls most members strangers; that of all sets does not.
    told = DiscreteScenarioSet.point_in_set if kind == "scenarios" else UncertaintySet.point_in_set
    assert all(told(given_set, point.tolist()) for point in inside)
    if kind == "factors" and given_set.number_of_factors < dimension:
        return  # PyROS calls points beside the plane of the factors members
    around = body.centre + 1.5 * (rng.uniform(body.lower, body.upper, (12, dimension)) - body.centre)
    for point, member in zip(around, body.contains(around), strict=True):
        assert member == bool(told(given_set, point.tolist()))


@settings(max_examples=25, deadline=None)
@given(seed=seeds, dimension=st.integers(1, 6))
def test_no_point_of_an_ellipsoid_beats_its_farthest(seed, dimension):
    rng = np.random.default_rng(seed)
    body = body_of(uncertainty_set("ellipsoid", dimension, rng), "it")
    directions = rng.normal(size=(3, dimension))
    best = np.einsum("kd,kd->k", directions, body.support(directions))
    # Cauchy and Schwarz: d'xi <= d'centre + |axes' d|, attained.
    bound = directions @ body.centre + np.linalg.norm(directions @ body.axes, axis=1)
    np.testing.assert_allclose(best, bound, rtol=1e-12, atol=1e-12)
    assert np.all(directions @ body.cloud(200, seed=3).T <= best[:, None] + 1e-9)


def test_budgets_that_cross_are_solved_by_linear_programs():
    crossing = BudgetSet([[1, 1, 0], [0, 1, 1]], [1.0, 1.0])
    assert not BudgetBody.nested(np.array([[1, 1, 0], [0, 1, 1]]))
    body = body_of(crossing, "it")
    assert body.separation == "linear program"
    # Greedy would take the middle first, for 3; the ends together give 4.
    assert body.support(np.array([[2.0, 3.0, 2.0]]))[0] @ [2.0, 3.0, 2.0] == pytest.approx(4.0)


def test_lens_of_two_discs():
    left, right = EllipsoidBody(np.array([-0.5, 0.0]), np.eye(2)), EllipsoidBody(np.array([0.5, 0.0]), np.eye(2))
    lens = IntersectionBody((left, right))
    top = lens.support(np.array([[0.0, 1.0]]))[0]
    np.testing.assert_allclose(top, [0.0, np.sqrt(0.75)], atol=1e-8)
    np.testing.assert_allclose(lens.lower, [-0.5, -np.sqrt(0.75)], atol=1e-8)
    assert lens.separation == "convex program"
    assert lens.contains(lens.cloud(30)).all()


def test_flat_sets_have_points():
    segment = body_of(AxisAlignedEllipsoidalSet([1.0, 2.0], [0.0, 3.0]), "it")
    np.testing.assert_allclose(segment.support(np.array([[5.0, 1.0]])), [[1.0, 5.0]])
    point = body_of(EllipsoidalSet([1.0, 2.0], np.eye(2), scale=0), "it")
    np.testing.assert_allclose(point.support(np.array([[5.0, 1.0]])), [[1.0, 2.0]])
    assert point.cloud(10).shape[1] == 2


def test_scenarios_in_a_set_are_what_is_left_of_them():
    both = IntersectionSet(
        listed=DiscreteScenarioSet([(0.0, 0.0), (1.0, 1.0), (3.0, 0.0)]), near=BoxSet([(-1, 2), (-1, 2)])
    )
    body = body_of(both, "it")
    assert isinstance(body, ScenarioBody)
    np.testing.assert_array_equal(body.scenarios, [[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("given_set", "why"),
    [
        (
            PolyhedralSet([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, -2, 1, 1]),
            "the polyhedral set is empty: no vector satisfies all of its rows; look for rows in conflict.",
        ),
        (
            PolyhedralSet([[1, 0], [-1, 0], [0, 1]], [1, 1, 1]),
            "the polyhedral set is unbounded: a row can be violated without end there; add bounds to the set.",
        ),
        (
            IntersectionSet(a=AxisAlignedEllipsoidalSet([0, 0], [1, 1]), b=AxisAlignedEllipsoidalSet([3, 0], [1, 1])),
            "the intersection of sets is empty: no vector satisfies all of its rows; look for rows in conflict.",
        ),
        (
            IntersectionSet(a=DiscreteScenarioSet([(0.0,), (1.0,)]), b=BoxSet([(2, 3)])),
            "it is empty: no scenario lies in all of its sets.",
        ),
        (
            CartesianProductSet([DiscreteScenarioSet([(0.0,), (1.0,)]), BoxSet([(2, 3)])]),
            "a product of sets cannot have discrete scenarios among its parts.",
        ),
        (BoxSet([(2, 1)]), "Lower bound 2 exceeds upper bound 1."),
        (
            CardinalitySet([0, 0], [1, 1], 3),
            "CardinalitySet attribute 'gamma' must be a real number between 0 and dimension 2 (provided value 3).",
        ),
        (
            FactorModelSet([0, 0], 1, [[0], [0]], 0.5),
            "Attribute 'psi_mat' should be full column rank. (Got a matrix of shape (2, 1) and rank 0.) Ensure "
            "`psi_mat` does not have more columns than rows, and the columns of `psi_mat` are linearly independent.",
        ),
    ],
)
def test_sets_that_cannot_be_used_are_refused(given_set, why):
    with pytest.raises(errors.DeclarationError) as error:
        body_of(given_set, "SemiInfiniteConstraint 'c'")
    assert str(error.value) == (f"SemiInfiniteConstraint 'c': its {type(given_set).__name__} cannot be used: {why}")


def test_a_polytope_forgets_its_solver_when_it_travels():
    import pickle

    body = PolytopeBody(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0]))
    again = pickle.loads(pickle.dumps(body))
    np.testing.assert_allclose(again.support(np.array([[1.0], [-1.0]])), [[2.0], [-1.0]])


@pytest.mark.parametrize("negative", [[0.0, 0.0, 0.0], [0.5, 0.0, 2.0], [1.0, 1.0, 1.0]])
def test_a_cardinality_set_by_its_rows(negative):
    """The rows by which it is told over boxes have the same members as the set."""
    body = CardinalityBody(np.array([1.0, -2.0, 0.5]), np.array([1.0, 0.0, 0.3]), np.array(negative), 1.4)
    points = np.random.default_rng(0).uniform(body.lower - 0.2, body.upper + 0.2, (4000, 3))
    points[::3, 1] = -2.0
    region = body.region()
    assert region is not None
    told = np.all(points @ region.rows.T <= region.limits + 1e-9, axis=1)
    assert np.array_equal(told, body.contains(points))
    assert 50 < told.sum() < 3900


@given(st.integers(0, 10**6), st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_bounds_by_rows_hold_the_polytope(seed, dimension):
    """What bounds of other coordinates say of one is no tighter than the smallest box, which programs find."""
    rng = np.random.default_rng(seed)
    some = [np.eye(dimension)[rng.random(dimension) < 0.7], -np.eye(dimension)[rng.random(dimension) < 0.7]]
    rows = np.concatenate([rng.integers(-3, 4, (int(rng.integers(1, 8)), dimension)).astype(float), *some])
    try:
        body = PolytopeBody(rows, rng.uniform(0, 3, len(rows)))
    except errors.DomainError:
        return
    lower, upper = body._bounds_in_rows()
    assert np.all(lower <= body.lower + 1e-8)
    assert np.all(upper >= body.upper - 1e-8)


def test_a_lifted_box_of_many_dimensions_has_bounds_without_a_program():
    """|z| <= u <= 1: the bounds of z follow from those of u."""
    one, none = np.eye(40), np.zeros((40, 40))
    body = PolytopeBody(np.block([[one, -one], [-one, -one], [none, one]]), np.repeat([0.0, 0.0, 1.0], 40))
    assert body.lower == pytest.approx(-np.ones(80))
    assert body.upper == pytest.approx(np.ones(80))
    assert body.contains(body.cloud(20)).all()


@given(st.floats(0.1, 3), st.floats(0.1, 3), seeds)
def test_vectors_of_a_set_move_with_it(one, other, seed):
    rng = np.random.default_rng(seed)
    factor, names = np.tril(rng.normal(size=(3, 3))) + 2 * np.eye(3), ("a", "b", "c")
    before, after = (Domain.of_body(names, EllipsoidBody(rng.normal(size=3), size * factor)) for size in (one, other))
    points = before.body.support(rng.normal(size=(20, 3)))
    moved = before.moved_to(after, points)
    # Farthest vectors stay farthest ones of a set of the same shape, but for a hair.
    there, here = moved - after.body.centre, points - before.body.centre
    assert np.allclose(there / other, here / one, rtol=0, atol=1e-7)
    assert after.body.contains(moved).all()
    assert before.moved_to(before, points) is points
    assert before.moved_to(Domain.of_body(names, ScenarioBody(points)), points) is points


@pytest.mark.parametrize("method", ["exchange", "counterpart"])
def test_a_polytope_that_is_narrow_along_a_coordinate(method):
    """The first coordinate is below 1e-9, what HiGHS takes for nothing; with all of it the second one has no room."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    vectors = PolyhedralSet([[1e9, 1], [-1, 0], [0, -1], [0, 1]], [1, 0, 0, 1])
    m.above = osilp.SemiInfiniteConstraint(vectors, rule=lambda m, xi: m.x >= 1e9 * xi[0] + xi[1])
    result = osilp.solve(m, method=method, progress=False)
    assert result.certified
    assert result.objective == pytest.approx(1, abs=1e-7)
