"""recourse_bound: what no policy can beat, against exact optima by enumeration, and where it is refused."""

from itertools import product

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet, CardinalitySet, DiscreteScenarioSet, EllipsoidalSet, PolyhedralSet
from scipy.optimize import linprog
from test_function_var import SIMPLEX, inventory, two_stage

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.model.sets import body_of
from osilp_pyomo.offline.adjustable.vertices import vertices_of


class Data:
    """A small model with numbers at random: ``least t >= c x + d y(xi) + 9 z(xi)`` with ``A x + B y + z >= h + H xi``.

    ``seen[k]`` is what the rule y[k] may see; the rules z see everything and make every here-and-now decision feasible.
    """

    def __init__(self, seed, dimension, stages, *, costly=True):
        rng = np.random.default_rng(seed)
        self.dimension, rows = dimension, rng.integers(2, 5)
        count = rng.integers(1, 4)
        self.seen = [
            range(dimension) if not stages else range(int(rng.integers(0, dimension + 1))) for _ in range(count)
        ]
        self.c, self.d = rng.uniform(1, 4, 2), rng.uniform(2, 6, count)
        self.A, self.B = rng.uniform(0, 1, (rows, 2)), rng.uniform(-0.3, 1, (rows, count))
        self.h, self.H = rng.uniform(0, 2, rows), rng.normal(size=(rows, dimension)) * costly

    def model(self, uncertain, whole=False):
        m = pyo.ConcreteModel()
        m.x = pyo.Var([0, 1], bounds=(0, 8), within=pyo.Integers if whole else pyo.Reals)
        m.t = pyo.Var()
        m.K, m.R = pyo.RangeSet(0, len(self.d) - 1), pyo.RangeSet(0, len(self.h) - 1)
        m.y = osilp.FunctionVar(m.K, over=uncertain, sees=lambda m, k: self.seen[k], bounds=(0, 5))
        m.z = osilp.FunctionVar(m.R, over=uncertain, bounds=(0, None))
        m.least = pyo.Objective(expr=m.t)

        @m.SemiInfiniteConstraint(uncertain)
        def cost(m, xi):
            here = sum(self.c[j] * m.x[j] for j in range(2))
            return m.t >= here + sum(self.d[k] * m.y[k](xi) for k in m.K) + sum(9 * m.z[i](xi) for i in m.R)

        @m.SemiInfiniteConstraint(m.R, uncertain)
        def enough(m, i, xi):
            served = sum(self.A[i, j] * m.x[j] for j in range(2)) + sum(self.B[i, k] * m.y[k](xi) for k in m.K)
            return served + m.z[i](xi) >= self.h[i] + sum(self.H[i, j] * xi[j] for j in range(self.dimension))

        return m

    def optimum(self, scenarios):
        """Over finitely many vectors, by the test's own program: rules share values where they see the same."""
        columns = {"t": 0, ("x", 0): 1, ("x", 1): 2}
        rows, limits = [], []
        for xi in scenarios:
            y = [columns.setdefault((k, tuple(xi[list(s)])), len(columns)) for k, s in enumerate(self.seen)]
            z = [columns.setdefault(("z", i, tuple(xi)), len(columns)) for i in range(len(self.h))]
            row = {0: -1.0, 1: self.c[0], 2: self.c[1]} | dict(zip(y, self.d, strict=True)) | dict.fromkeys(z, 9.0)
            rows.append(row)
            limits.append(0.0)
            for i in range(len(self.h)):
                rows.append(
                    {1: -self.A[i, 0], 2: -self.A[i, 1], z[i]: -1.0}
                    | {column: -self.B[i, k] for k, column in enumerate(y)}
                )
                limits.append(-(self.h[i] + self.H[i] @ xi))
        matrix = np.zeros((len(rows), len(columns)))
        for number, row in enumerate(rows):
            matrix[number, list(row)] = list(row.values())
        bounds = [(None, None), (0, 8), (0, 8)] + [(0, None if key[0] == "z" else 5) for key in list(columns)[3:]]
        return linprog(np.eye(1, len(columns))[0], matrix, limits, bounds=bounds, method="highs").fun


def box(seed, dimension):
    low = np.random.default_rng(seed + 999).uniform(-1, 1, dimension)
    return low, low + np.random.default_rng(seed + 998).uniform(0.2, 2, dimension)


def checked(data, uncertain, scenarios):
    """A bound that is compared with the exact optimum and with the affine rules."""
    m = data.model(uncertain)
    result = osilp.solve(m)
    found = osilp.recourse_bound(m, result)
    exact = data.optimum(scenarios)
    size = 1 + abs(exact)
    values = found.ways["value"].to_numpy()
    assert np.isfinite(values).all(), found.ways
    assert (values <= exact + 1e-9 * size).all()
    assert result.objective >= exact - 1e-7 * size
    assert found.value == values.max()
    return found, exact, result


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stages", [False, True])
def test_never_above_the_exact_optimum(seed, stages):
    """On boxes a tree over the vertices is exact: policies between them are multilinear."""
    dimension = 1 + seed % 3
    low, high = box(seed, dimension)
    corners = np.array(list(product(*zip(low, high, strict=True))))
    found, exact, _ = checked(Data(seed, dimension, stages), BoxSet(list(zip(low, high, strict=True))), corners)
    # All vertices are scenarios, so that the bound is exact.
    assert found.value == pytest.approx(exact, rel=1e-8, abs=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 150))
def test_never_above_the_exact_optimum_of_fifty(seed):
    rng = np.random.default_rng(seed)
    dimension = int(rng.integers(1, 5))
    data = Data(seed, dimension, stages=bool(seed % 2))
    if seed % 3:
        low, high = box(seed, dimension)
        uncertain, corners = BoxSet(list(zip(low, high, strict=True))), None
        corners = np.array(list(product(*zip(low, high, strict=True))))
    else:
        data.seen = [range(dimension) for _ in data.seen]
        gamma = min(dimension, 1.5)
        uncertain = CardinalitySet(np.zeros(dimension), np.ones(dimension), gamma)
        corners = np.array([
            xi for xi in product((0.0, 0.5, 1.0), repeat=dimension)
            if sum(xi) <= gamma and (xi.count(0.5) == 0 or sum(xi) == gamma)
        ])  # fmt: skip
    checked(data, uncertain, corners)


@pytest.mark.parametrize("seed", range(5))
def test_affine_rules_are_optimal_on_a_simplex(seed):
    """Right-hand sides that are uncertain in a simplex: Bertsimas and Goyal (2012)."""
    data = Data(seed, 3, stages=False)
    corners = np.eye(3)
    found, exact, result = checked(data, SIMPLEX, corners)
    assert result.objective == pytest.approx(exact, abs=1e-7)
    assert found.gap < 1e-6
    # Rules for the duals are affine on a simplex too.
    assert (found.ways["gap"] < 1e-6).all()


def test_it_reads_as_a_sentence():
    m = two_stage()
    found = osilp.recourse_bound(m, osilp.solve(m))
    assert str(found) == "no policy can cost less than 10; the rule costs 10, no more than rounding from it"
    assert found.gap <= 1e-9
    assert list(found.ways["way"]) == ["scenarios", "dual rules"]
    assert found.ways["about"][0] == "3 vectors with recourse of their own, all vertices among them"
    assert sorted(found.scenarios["xi[0]"]) == [2, 4, 6]


def test_where_affine_rules_are_not_optimal():
    """|a + b| + |a - b| is 2 at most on the square; an affine rule above |a + b| is 2 at the origin, and so is the other."""
    square = BoxSet([(-1, 1), (-1, 1)])
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar([1, -1], over=square)
    m.t = pyo.Var()
    m.least = pyo.Objective(expr=m.t)
    m.up = osilp.SemiInfiniteConstraint([1, -1], square, rule=lambda m, s, xi: m.y[s](xi) >= xi[0] + s * xi[1])
    m.down = osilp.SemiInfiniteConstraint([1, -1], square, rule=lambda m, s, xi: m.y[s](xi) >= -xi[0] - s * xi[1])
    m.cost = osilp.SemiInfiniteConstraint(square, rule=lambda m, xi: m.t >= m.y[1](xi) + m.y[-1](xi))
    result = osilp.solve(m)
    assert result.objective == pytest.approx(4, abs=1e-7)
    found = osilp.recourse_bound(m, result)
    assert found.value == pytest.approx(2, abs=1e-8)
    assert str(found) == "no policy can cost less than 2; the rule costs 4, at most 100 % more"


def test_a_maximum_has_a_bound_from_above():
    low, high = box(3, 2)
    data = Data(3, 2, stages=True)
    m = data.model(BoxSet(list(zip(low, high, strict=True))))
    least = osilp.recourse_bound(m, osilp.solve(m))
    m.least.deactivate()
    m.most = pyo.Objective(expr=-m.t, sense=pyo.maximize)
    found = osilp.recourse_bound(m, osilp.solve(m))
    assert found.value == pytest.approx(-least.value, rel=1e-9)
    assert found.gap == pytest.approx(least.gap, abs=1e-7)
    assert str(found).startswith("no policy can earn more than ")


def test_whole_numbers_that_are_decided_at_once():
    low, high = box(4, 2)
    data = Data(4, 2, stages=False)
    m = data.model(BoxSet(list(zip(low, high, strict=True))), whole=True)
    result = osilp.solve(m)
    found = osilp.recourse_bound(m, result)
    exact = data.optimum(np.array(list(product(*zip(low, high, strict=True)))))
    assert exact - 1e-9 <= found.value <= result.objective + 1e-9
    assert "(whole numbers: by HiGHS' branch and bound)" in str(found)


def test_constant_rules_are_compared_with_policies_that_see():
    """basis="constant" is a form of the rule, not of what may be seen."""
    m = pyo.ConcreteModel()
    demand = BoxSet([(0, 1)])
    m.y = osilp.FunctionVar(over=demand, basis="constant", bounds=(0, 9))
    m.none = osilp.FunctionVar(over=demand, sees=[], bounds=(0, 9))
    m.t = pyo.Var()
    m.least = pyo.Objective(expr=m.t)
    m.cost = osilp.SemiInfiniteConstraint(demand, rule=lambda m, xi: m.t >= m.y(xi) + 4 * m.none(xi) - xi[0])
    m.serve = osilp.SemiInfiniteConstraint(demand, rule=lambda m, xi: m.y(xi) + m.none(xi) >= xi[0])
    result = osilp.solve(m)
    assert result.objective == pytest.approx(1)
    found = osilp.recourse_bound(m, result)
    assert found.value == pytest.approx(0, abs=1e-9)
    assert str(found).startswith("no policy can cost less than ")
    # What sees nothing is one number for every policy.
    m.y.coefficients.fix(0)
    result = osilp.solve(m)
    assert osilp.recourse_bound(m, result).value == pytest.approx(4, abs=1e-8)


@pytest.mark.parametrize(
    "uncertain",
    [
        EllipsoidalSet([1.0, 1.0], [[0.5, 0.1], [0.1, 0.3]]),
        DiscreteScenarioSet([(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]),
        PolyhedralSet([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.5, 0.0, 0.0]),
    ],
)
def test_other_sets(uncertain):
    data = Data(8, 2, stages=False)
    m = data.model(uncertain)
    result = osilp.solve(m)
    found = osilp.recourse_bound(m, result)
    assert np.isfinite(found.ways["value"]).all()
    assert (found.ways["value"] <= result.objective + 1e-7).all()
    corners = vertices_of(body_of(uncertain, ""), 10)
    if corners is not None:
        assert (found.ways["value"] <= data.optimum(corners) + 1e-9).all()


def test_coefficients_of_rules_that_change_and_rules_at_other_vectors():
    m = pyo.ConcreteModel()
    demand = BoxSet([(1, 2), (0, 1)])
    m.y = osilp.FunctionVar(over=demand, bounds=(0, 9))
    m.t = pyo.Var()
    m.least = pyo.Objective(expr=m.t)
    m.serve = osilp.SemiInfiniteConstraint(demand, rule=lambda m, xi: xi[0] * m.y(xi) >= 3 + xi[1])
    m.cost = osilp.SemiInfiniteConstraint(demand, rule=lambda m, xi: m.t >= m.y(xi))
    m.other = osilp.SemiInfiniteConstraint(demand, rule=lambda m, xi: m.t >= m.y([1, 1]) + xi[1] / 9)
    m.single = pyo.Constraint(expr=m.y([1, 0.5]) <= 8)
    result = osilp.solve(m)
    found = osilp.recourse_bound(m, result)
    assert found.value == pytest.approx(4, abs=1e-8)
    assert set(found.left_out) == {"other", "single"}
    assert "without 1 rows whose coefficients of rules change with the vector" in found.ways["about"][1]
    assert found.ways["value"][1] <= 4


@pytest.mark.long
def test_the_published_inventory_is_as_good_as_any_policy():
    m, _ = inventory()
    found = osilp.recourse_bound(m, osilp.solve(m))
    assert found.gap <= 1e-6 * found.objective
    assert found.ways["gap"][1] <= 1e-4 * found.objective


def test_a_short_inventory():
    m, _ = inventory(4)
    result = osilp.solve(m)
    found = osilp.recourse_bound(m, result)
    assert found.value <= result.objective * (1 + 1e-9)
    assert found.ways["gap"][0] <= 1e-6 * result.objective
    assert found.ways["gap"][1] <= 1e-3 * result.objective


@pytest.mark.parametrize(
    ("uncertain", "count"),
    [
        (BoxSet([(0, 1), (2, 2), (1, 3)]), 4),
        (SIMPLEX, 3),
        (CardinalitySet([0.0] * 5, [20.0] * 5, 5**0.5), 46),
        (CardinalitySet([1.0, 1, 1], [1, 1, 1], 2), 7),
        (PolyhedralSet([[1.0], [-1]], [2, 0]), 2),
        (EllipsoidalSet([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]), None),
        (BoxSet([(0, 1)] * 12), None),
    ],
)
def test_vertices(uncertain, count):
    found = vertices_of(body_of(uncertain, ""), 100)
    assert (None if found is None else len(found)) == count


def no_rules():
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)]), rule=lambda m, xi: m.x >= xi[0])
    return m


def costs_at_single_vectors():
    m = two_stage()
    m.total.deactivate()
    m.nominal = pyo.Objective(expr=m.stock + 3 * m.order([4]))
    return m


def partly_fixed():
    m = two_stage()
    m.order.coefficients["xi[0]"].fix(0.7)
    return m


def curved():
    m = two_stage()
    m.total.deactivate()
    m.square = pyo.Objective(expr=m.cost**2)
    return m


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            no_rules,
            "recourse_bound: the model has no FunctionVar over an uncertainty set, so that no decision reacts to what is "
            "seen, and the optimum is that of every policy; osilp.solve(model).bound says how far it is proved.",
        ),
        (
            costs_at_single_vectors,
            "recourse_bound: the objective holds a rule at single vectors or on average (coefficient "
            "'order.coefficients['1']'), and the best policy on average is not known from its coefficients; a worst-case "
            "objective, a variable above the cost of every vector, can be bounded.",
        ),
        (
            partly_fixed,
            "recourse_bound: of the rule 'order' some coefficients are fixed and others are not, so that it is not clear "
            "which policies it is to be compared with; fix all of them, or none.",
        ),
        (
            curved,
            "recourse_bound: the model has an objective or rows that are not linear in the variables, and it is made for "
            "linear ones.",
        ),
    ],
)
def test_models_that_cannot_be_bounded(make, text):
    m = make()
    result = osilp.solve(m)
    with pytest.raises(errors.ModelError) as caught:
        osilp.recourse_bound(m, result)
    assert str(caught.value) == text


def test_results_that_cannot_be_bounded():
    m = two_stage()
    result = osilp.solve(m)
    with pytest.raises(errors.OptionError) as caught:
        osilp.recourse_bound(inventory(2)[0], result)
    assert str(caught.value) == (
        "recourse_bound: the result is that of another model; solve this one, and give what comes back."
    )
    with pytest.raises(errors.OptionError) as caught:
        osilp.recourse_bound(m, m)
    assert str(caught.value) == "recourse_bound: result must be what solve gives back (got ConcreteModel)."
    with pytest.raises(errors.OptionError) as caught:
        osilp.recourse_bound(m, result, scenarios=0)
    assert str(caught.value) == "recourse_bound: scenarios must be a whole number >= 1 (got 0)."
    with pytest.raises(errors.OptionError) as caught:
        osilp.recourse_bound(m, osilp.solve(m, method="column_generation"))
    assert str(caught.value) == (
        "recourse_bound: the result is that of the best policy already; its bound is result.bound, 10."
    )
    m.cost.setub(5)
    with pytest.raises(errors.OptionError) as caught:
        osilp.recourse_bound(m, osilp.solve(m))
    assert str(caught.value) == (
        "recourse_bound: the result has no values (status 'infeasible'), and no rule to be judged."
    )
