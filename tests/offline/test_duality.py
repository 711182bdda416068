"""Counterparts: the same optimum as exchange or a closed form, a bracket around it, and proofs by their multipliers."""

import warnings

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros.uncertainty_sets import (
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
from scipy import sparse

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, dro
from osilp_pyomo.lp.conic import (
    EXPONENTIAL,
    SEMIDEFINITE,
    ConeProgram,
    ConeRows,
    into_dual_cone,
    missed_by,
    solve_cones,
)
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.programs import solve_program
from osilp_pyomo.model.sets import body_of
from osilp_pyomo.offline.duality.quadratic import rank_one_parts

DIMENSION = 4


def sets(rng):
    """One of each kind of convex set of PyROS, and scenarios."""
    root, ones = rng.normal(size=(DIMENSION, DIMENSION)), np.ones((1, DIMENSION))
    eye = np.eye(DIMENSION)
    ball = AxisAlignedEllipsoidalSet([0.1] * DIMENSION, [0.8] * DIMENSION)
    return {
        "box": BoxSet([(-1.0, 0.7)] * DIMENSION),
        "cardinality": CardinalitySet([0.0] * DIMENSION, [1.0] * DIMENSION, 1.5, [0.5] * DIMENSION),
        "budget": BudgetSet([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]], [1.0, 1.2, 2.0], [0.0] * DIMENSION),
        "factors": FactorModelSet([0.0] * DIMENSION, 3, rng.normal(size=(DIMENSION, 3)), 0.5),
        "polyhedron": PolyhedralSet(np.vstack([eye, -eye, ones]), np.concatenate([np.ones(2 * DIMENSION), [0.5]])),
        "ellipsoid": EllipsoidalSet([0.1] * DIMENSION, root @ root.T + eye, 0.5),
        "flat ellipsoid": AxisAlignedEllipsoidalSet([0.0] * DIMENSION, [1.0, 0.5, 0.0, 2.0]),
        "ball in a box": IntersectionSet(a=BoxSet([(-0.5, 0.4)] * DIMENSION), b=ball),
        "ball cut by planes": IntersectionSet(a=PolyhedralSet(np.vstack([ones, -ones]), [0.0, 0.0]), b=ball),
        "two balls": IntersectionSet(a=AxisAlignedEllipsoidalSet([0.0] * DIMENSION, [1.0] * DIMENSION), b=ball),
        "product": CartesianProductSet([BoxSet([(0, 1)] * 2), AxisAlignedEllipsoidalSet([0.0] * 2, [1.0] * 2)]),
        "scenarios": DiscreteScenarioSet([tuple(row) for row in rng.normal(size=(9, DIMENSION))]),
    }


def robust(uncertain, rng, *, free=False, integer=False, minimize=False):
    """Packing under uncertain use, with a ranged row beside it."""
    count, rows = 5, 3
    use, moved = rng.uniform(0.5, 1.5, size=(rows, count)), 0.2 * rng.normal(size=(rows, DIMENSION, count))
    earned, limit = rng.uniform(0.5, 1.5, size=count), rng.uniform(2, 4, size=rows)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(count), bounds=(0, 2), domain=pyo.Integers if integer else pyo.Reals)
    m.y = pyo.Var() if free else pyo.Var(bounds=(-3, 3))
    value = osilp.dot(earned, m.x) + 0.1 * m.y
    m.o = pyo.Objective(expr=-value if minimize else value, sense=pyo.minimize if minimize else pyo.maximize)
    m.use = SemiInfiniteConstraint(
        range(rows), uncertain, rule=lambda m, i, xi: osilp.dot(use[i] + xi @ moved[i], m.x) <= limit[i] + 0.1 * xi[0]
    )
    m.level = SemiInfiniteConstraint(uncertain, rule=lambda m, xi: (-1, m.y - (1 + 0.3 * xi[1]) * m.x[0], 1.5))
    return m


KINDS = tuple(sets(np.random.default_rng(0)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("free", [False, True])
def test_a_counterpart_is_the_same_problem(kind, free):
    rng = np.random.default_rng(20261118 + free)
    m = robust(sets(rng)[kind], rng, free=free, minimize=free)
    ours, other = osilp.solve(m, "counterpart"), osilp.solve(m, "exchange")
    assert ours.status == other.status == "optimal"
    assert ours.certified
    assert ours.objective == pytest.approx(other.objective, rel=1e-7)
    assert ours.gap <= 1e-7 * (1 + abs(ours.objective))
    assert ours.relative_violation["level"] <= 1e-7
    for name in ("use[0]", "use[1]", "use[2]", "level"):
        assert ours.prices[name].total == pytest.approx(other.prices[name].total, abs=2e-3)


@pytest.mark.parametrize("kind", ["ellipsoid", "ball in a box", "product", "cardinality"])
def test_integers_beside_cones_are_enumerated(kind):
    """All 243 choices, each judged by the farthest vectors of the set."""
    rng = np.random.default_rng(5)
    uncertain = sets(rng)[kind]
    found = osilp.solve(robust(uncertain, rng, integer=True))
    assert (found.status, found.method) == ("optimal", "counterpart")
    rng = np.random.default_rng(5)
    body = body_of(sets(rng)[kind], kind)
    use, moved = rng.uniform(0.5, 1.5, size=(3, 5)), 0.2 * rng.normal(size=(3, DIMENSION, 5))
    earned, limit = rng.uniform(0.5, 1.5, size=5), rng.uniform(2, 4, size=3)
    axes = np.eye(DIMENSION)
    low, high = (float(body.support(sign * axes[1:2])[0, 1]) for sign in (-1.0, 1.0))
    best = -np.inf
    for x in np.array(list(np.ndindex(3, 3, 3, 3, 3)), dtype=float):
        slopes = moved @ x - 0.1 * axes[0]
        worst = use @ x + (slopes * body.support(slopes)).sum(axis=1)
        least, most = max(-3.0, (1 + 0.3 * high) * x[0] - 1), min(3.0, (1 + 0.3 * low) * x[0] + 1.5)
        if np.all(worst <= limit + 1e-9) and least <= most:
            best = max(best, earned @ x + 0.1 * most)
    assert found.objective == pytest.approx(best, abs=1e-6)


def test_what_is_chosen_and_why():
    rng = np.random.default_rng(1)
    small = osilp.solve(robust(sets(rng)["box"], rng))
    assert (small.method, small.why) == ("counterpart", "its counterpart is small")
    assert "  method     counterpart: its counterpart is small" in str(small)
    asked = osilp.solve(robust(sets(rng)["box"], rng), "exchange")
    assert asked.why == "method='exchange' was asked for"
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 9))
    m.o = pyo.Objective(expr=m.x)
    m.u = pyo.RangeSet(0, 1, 0)
    m.c = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= pyo.sin(u))
    plain = osilp.solve(m)
    assert (plain.method, plain.why) == ("exchange", "the index of 'c' is u in [0, 1], along which a scan is fast")


def test_an_infeasible_counterpart_tells_what_contradicts_itself():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.o = pyo.Objective(expr=m.x)
    m.c = SemiInfiniteConstraint(
        AxisAlignedEllipsoidalSet([0.0, 0.0], [1.0, 1.0]), rule=lambda m, xi: m.x + xi[0] + xi[1] >= 3
    )
    found = osilp.solve(m)
    assert found.status == "infeasible"
    assert set(found.conflict["kind"]) == {"row", "bound"}


def test_a_wrong_answer_is_not_proved():
    """With less than the true worst case as a limit, multipliers prove nothing: a negative control."""
    rng = np.random.default_rng(3)
    for kind in ("ellipsoid", "ball in a box", "polyhedron"):
        m = robust(sets(rng)[kind], rng)
        osilp.solve(m, "counterpart")
        from osilp_pyomo.model.trace import trace_model
        from osilp_pyomo.offline.duality.counterpart import counterpart

        problem = trace_model(m).problem
        finite = counterpart(problem)
        point = np.concatenate([[variable.value for variable in trace_model(m).variables], np.zeros(0)])
        ended = solve_program(finite.program)
        wrong = ended.x.copy()
        wrong[: len(point)] *= 1.001
        assert max(proof.largest for proof in finite.proofs(problem.families, ended.x)) <= 1e-8
        assert max(proof.largest for proof in finite.proofs(problem.families, wrong)) > 1e-4


def test_duals_that_are_rounding_prove_nothing():
    """A row that does not bind has a dual of 1e-13, whose direction means nothing; its vector must not become a row."""
    shape = np.array([[0.546, 0, 0], [-0.627, 0.47, 0], [0.556, 0.805, 0.162]])
    budget = BudgetSet([[0, 1, 1], [1, 0, 0], [1, 0, 1]], [1.1, 0.69, 1.49], [0.24, 0.94, 2.17])
    ball = EllipsoidalSet([-1.15, 2.17, -0.64], (shape @ shape.T).tolist())
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 1])
    m.o = pyo.Objective(expr=-0.1 * m.x[0] - 2.7 * m.x[1], sense=pyo.maximize)
    m.a = SemiInfiniteConstraint(
        budget,
        rule=lambda m, xi: (
            (0.096 * xi[2] - 0.0043 * xi[1]) * m.x[0] - (1.5 + 0.094 * xi[0] + 0.072 * xi[2]) * m.x[1] >= 6
        ),
    )
    m.b = SemiInfiniteConstraint(
        ball, rule=lambda m, xi: (0.3 + 0.5 * xi[0]) * m.x[0] + (1.4 * xi[0] - 0.1) * m.x[1] <= 12.8
    )
    ours, other = osilp.solve(m), osilp.solve(m, "exchange")
    assert ours.objective == pytest.approx(other.objective, rel=1e-7)
    body = body_of(budget, "a")
    assert body.contains(ours.prices[m.a].points).all()


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_units_of_a_set_do_not_matter(unit):
    """All variables at their upper bounds: the row is slack at both ends of a budget of one entry."""
    origin, width = 0.0656 * unit, 1.2147 * unit
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 2], bounds=(-5, 5))
    m.y = pyo.Var(bounds=(-0.005, 0.005))
    m.o = pyo.Objective(expr=-1.8 * m.x[0] - 1200 * m.y - 0.7 * m.x[2])
    m.c = SemiInfiniteConstraint(
        BudgetSet([[1]], [width], [origin]),
        rule=lambda m, xi: (
            (-800 + 600 / unit * xi[0]) * m.x[0]
            - (2e6 + 1e6 / unit * xi[0]) * m.y
            + (-200 + 1000 / unit * xi[0]) * m.x[2]
            <= 5900
        ),
    )
    found = osilp.solve(m)
    assert found.objective == pytest.approx(-18.5)
    assert found.certified


# -- moments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 3, 5, 8])
def test_worst_cvar_of_a_mean_and_covariance(dimension):
    """The worst CVaR of w'xi is ``w'm + sqrt(level / (1 - level)) |S^(1/2) w|`` (El Ghaoui, Oks, Oustry, 2003)."""
    rng = np.random.default_rng(dimension)
    root = rng.normal(size=(dimension, dimension))
    covariance, mean, level = root @ root.T / dimension + 0.1 * np.eye(dimension), rng.normal(size=dimension), 0.9
    weight = rng.uniform(-1, 1, size=dimension)
    m = pyo.ConcreteModel()
    known = dro.Moments.mean_covariance([(None, None)] * dimension, mean, covariance)
    worst = dro.worst_case_cvar(m, lambda m, xi: sum(weight[i] * xi[i] for i in range(dimension)), known, level)
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    right = weight @ mean + np.sqrt(level / (1 - level)) * np.sqrt(weight @ covariance @ weight)
    assert (result.method, result.certified) == ("counterpart", True)
    assert result.objective == pytest.approx(right, abs=2e-6)
    assert result.bracket[0] <= right + 1e-9 <= result.bracket[1] + 2e-9
    atoms = dro.worst_case_distribution(result, worst)
    points, mass = (
        atoms[[f"xi[{k}]" if f"xi[{k}]" in atoms else f"xi_{k + 1}" for k in range(dimension)]],
        atoms["probability"],
    )
    assert mass.to_numpy() @ points.to_numpy() == pytest.approx(mean, abs=1e-3)


def test_bounds_on_moments_over_a_box_are_cones():
    """E[(xi_0 + xi_1)^2] <= 1 on [-3, 3]^2, mean 0: the worst E[max(xi_0 + xi_1, 0)] is 1/2, as Scarf has it."""
    known = dro.Moments(
        BoxSet([(-3, 3)] * 2),
        [(lambda xi: xi[0], 0.0), (lambda xi: xi[1], 0.0), (lambda xi: (xi[0] + xi[1]) ** 2, None, 1.0)],
    )
    m = pyo.ConcreteModel()
    m.o = pyo.Objective(expr=dro.worst_case_expectation(m, lambda m, xi: [xi[0] + xi[1], 0], known))
    result = osilp.solve(m)
    assert (result.method, result.certified) == ("counterpart", True)
    assert result.objective == pytest.approx(0.5, abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_moments_split_into_points_of_the_set(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, size=(7, 2)) * 0.7
    vectors = np.column_stack([np.ones(7), points]) * np.sqrt(rng.dirichlet(np.ones(7)))[:, None]
    moments, ball = vectors.T @ vectors, np.diag([1.0, -1.0, -1.0])
    parts = rank_one_parts(moments, ball)
    assert parts.T @ parts == pytest.approx(moments, abs=1e-12)
    assert np.all(np.linalg.norm(parts[:, 1:], axis=1) <= np.abs(parts[:, 0]) * (1 + 1e-9))


# -- Wasserstein balls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, "inf"])
@pytest.mark.parametrize("support", ["box", "half", "ball", "polyhedron"])
def test_wasserstein_on_every_support(norm, support):
    """The dual over a dense cloud of places is a lower bound, and the worst distribution attains the value."""
    rng = np.random.default_rng(11)
    samples = rng.uniform(-0.5, 0.5, size=(4, 2))
    supports = {
        "box": [(-1.0, 0.8)] * 2,
        "half": [(-1.0, None), (None, 0.9)],
        "ball": AxisAlignedEllipsoidalSet([0.0, 0.0], [1.0, 0.9]),
        "polyhedron": PolyhedralSet([[1, 1], [-1, 0], [0, -1], [1, -1]], [1.0, 0.9, 0.8, 1.2]),
    }
    ambiguity = dro.Wasserstein(samples, 0.3, supports[support], norm=norm)
    pieces = rng.normal(size=(3, 2))
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 1], bounds=(0.2, 1))
    m.s = pyo.Constraint(expr=m.x[0] + m.x[1] == 1)
    worst = dro.worst_case_expectation(
        m,
        lambda m, xi: [sum(p[i] * xi[i] * m.x[i] for i in range(2)) + 0.1 * k for k, p in enumerate(pieces)],
        ambiguity,
    )
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert (result.status, result.method) == ("optimal", "counterpart")
    assert result.certified
    atoms = dro.worst_case_distribution(result, worst)
    x = np.array([m.x[0].value, m.x[1].value])
    places, mass = atoms[["xi[0]", "xi[1]"]].to_numpy(), atoms["probability"].to_numpy()
    loss = np.max(places * x @ pieces.T + 0.1 * np.arange(3), axis=1)
    order = {1: 1, 2: 2, "inf": np.inf}[norm]
    moved = np.linalg.norm(places - samples[atoms["sample"].to_numpy()], order, axis=1)
    assert mass @ loss == pytest.approx(result.objective, abs=1e-5)
    assert mass @ moved <= 0.3 + 1e-6
    for sample in range(4):
        assert mass[atoms["sample"] == sample].sum() == pytest.approx(0.25, abs=1e-6)


# -- cone programs ---------------------------------------------------------------------------------------------


def free_lp(cost, **more):
    count = len(cost)
    given = {
        "column_lower": np.full(count, -np.inf), "column_upper": np.full(count, np.inf),
        "matrix": sparse.csr_array((0, count)), "row_lower": np.empty(0), "row_upper": np.empty(0),
    }  # fmt: skip
    return FiniteLP(maximize=False, cost=np.array(cost, dtype=float), **{**given, **more})


def test_an_exponential_cone():
    """min c with exp(a) <= c at a = 1: e."""
    cone = ConeRows(EXPONENTIAL, 3, sparse.csr_array(np.array([[0.0], [0.0], [1.0]])), np.array([1.0, 1.0, 0.0]))
    found = solve_cones(ConeProgram(free_lp([1.0]), (cone,)))
    assert found.objective == pytest.approx(np.e, rel=1e-8)
    dual = into_dual_cone(EXPONENTIAL, found.cone_duals[0])
    assert dual == pytest.approx(found.cone_duals[0], abs=1e-6)


def test_a_semidefinite_cone_finds_the_largest_eigenvalue():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix = root + root.T
    rows, columns = np.tril_indices(4)[1], np.tril_indices(4)[0]
    factors = np.where(rows == columns, 1.0, np.sqrt(2.0))
    cone = ConeRows(
        SEMIDEFINITE, 10, sparse.csr_array((rows == columns).astype(float)[:, None]), -factors * matrix[rows, columns]
    )
    found = solve_cones(ConeProgram(free_lp([1.0]), (cone,)))
    assert found.objective == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-8)
    assert missed_by(SEMIDEFINITE, cone.values(found.x))[0] <= 1e-9


def test_programs_without_an_answer():
    cone = ConeRows.second_order(np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2), 2)
    below = {"column_upper": np.array([-1.0, np.inf])}
    assert solve_cones(ConeProgram(free_lp([0.0, 1.0], **below), (cone,))).status == "infeasible"
    assert solve_cones(ConeProgram(free_lp([-1.0, 0.0]), (cone,))).status == "unbounded"


def test_no_warning_is_left_over():
    rng = np.random.default_rng(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in KINDS:
            osilp.solve(robust(sets(rng)[kind], rng))


def test_a_support_without_an_end_is_not_for_exchange():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    ambiguity = dro.Wasserstein([[0.0, 0.0], [0.5, 1.0]], 0.5, [(-1, None), (None, None)], norm=2)
    m.o = pyo.Objective(expr=dro.worst_case_expectation(m, lambda m, xi: [xi[0] * m.x, xi[1] - m.x], ambiguity))
    assert osilp.solve(m).method == "counterpart"
    with pytest.raises(osilp.errors.ModelError) as told:
        osilp.solve(m, "exchange")
    assert str(told.value) == (
        "SemiInfiniteConstraint 'worst_case.rows[0,0]': it holds over the support and the distance from a sample, which has "
        "no end; use method='counterpart', or give the support bounds."
    )


def test_a_ball_of_no_radius_is_the_sample():
    samples = np.array([[0.1, -0.2], [0.4, 0.3], [-0.5, 0.2]])
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(-2, 2))
    worst = dro.worst_case_expectation(
        m, lambda m, xi: [xi[0] - m.x, xi[1] + m.x], dro.Wasserstein(samples, 0.0, [(-1, 1), (-1, 1)], norm=2)
    )
    m.o = pyo.Objective(expr=worst)
    result = osilp.solve(m)
    assert result.certified
    right = min(np.mean(np.maximum(samples[:, 0] - x, samples[:, 1] + x)) for x in (samples[:, 0] - samples[:, 1]) / 2)
    assert result.objective == pytest.approx(right)
    assert sorted(set(dro.worst_case_distribution(result, worst)["sample"])) == [0, 1, 2]
