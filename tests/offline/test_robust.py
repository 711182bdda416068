"""Robust models: exchange over uncertainty sets against counterparts, hand-worked answers, and refusals."""

import pickle

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import (
    AxisAlignedEllipsoidalSet,
    BoxSet,
    BudgetSet,
    CardinalitySet,
    DiscreteScenarioSet,
    EllipsoidalSet,
    PolyhedralSet,
)
from pyomo.dae import ContinuousSet
from robust_models import LINEAR, robust_model, uncertainty_set
from scipy.optimize import brentq

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors

SQUARE = BoxSet([(-1, 1), (-1, 1)])


def profit_model(uncertainty, rule, sense=pyo.maximize):
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 1], bounds=(0, 10))
    m.profit = pyo.Objective(expr=m.x[0] + m.x[1], sense=sense)
    m.c = SemiInfiniteConstraint(uncertainty, rule=rule)
    return m


# -- exchange and counterpart ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*LINEAR, "scenarios"])
@pytest.mark.parametrize("dimension", [1, 2, 5, 10])
def test_exchange_and_counterpart_agree(kind, dimension):
    rng = np.random.default_rng(dimension)
    uncertainty = uncertainty_set(kind, dimension, rng)
    m = robust_model(uncertainty, rng)
    exact = osilp.solve(m)
    finite = osilp.solve(m, method="counterpart")
    assert exact.status == finite.status == "optimal"
    assert exact.objective == pytest.approx(finite.objective, rel=1e-8, abs=1e-8)
    assert exact.certified
    assert set(exact.separation.values()) <= {
        "closed form", "linear program", "enumeration", "closed form and linear program"
    }  # fmt: skip
    # Prices of both prove the optimum, by code that computed neither.
    assert exact.audit.gap < 1e-7
    assert finite.audit.gap < 1e-7
    assert finite.audit.violation < 1e-7


@pytest.mark.parametrize("turned", [False, True])
def test_products_are_proved_in_any_order(turned):
    """max over both parts of a[0] + 2 b[0] by hand, with an equation that is matched."""
    triangle = PolyhedralSet([[1, 1], [-1, 0], [0, -1]], [1, 0, 0])
    scenarios = DiscreteScenarioSet([(0.0,), (0.5,), (1.0,)])
    for other, reach in ((BoxSet([(0, 1)]), 1), (scenarios, 1), (AxisAlignedEllipsoidalSet([0], [2]), 2)):
        sets = (other, triangle) if turned else (triangle, other)
        m = pyo.ConcreteModel()
        m.x = pyo.Var(bounds=(0, 9))
        m.y = osilp.FunctionVar(over=sets)
        m.cost = pyo.Objective(expr=m.x)
        m.c = SemiInfiniteConstraint(*sets, rule=lambda m, a, b: m.y(a, b) == a[0] + 2 * b[0])
        m.d = SemiInfiniteConstraint(*sets, rule=lambda m, a, b: m.x >= m.y(a, b))
        result = osilp.solve(m)
        assert result.objective == pytest.approx(reach + 2 if turned else 1 + 2 * reach)
        assert result.certified
        assert set(result.proof["how"]) <= {"closed form", "cone"}


@pytest.mark.parametrize("dimension", [1, 3, 10])
def test_an_ellipsoid_is_its_cone(dimension):
    """max sum x, (1 + xi) @ x <= 1 over |xi| <= rho: by symmetry x = 1 / (d + rho sqrt(d))."""
    rho = 0.3
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(dimension), bounds=(0, 10))
    m.total = pyo.Objective(expr=sum(m.x[j] for j in range(dimension)), sense=pyo.maximize)
    m.c = SemiInfiniteConstraint(
        EllipsoidalSet(np.zeros(dimension), np.eye(dimension), scale=rho**2),
        rule=lambda m, xi: sum((1 + xi[j]) * m.x[j] for j in range(dimension)) <= 1,
    )
    result = osilp.solve(m, "exchange")
    assert result.objective == pytest.approx(dimension / (dimension + rho * np.sqrt(dimension)), abs=1e-7)
    assert result.separation["c"] == "closed form"
    by_cone = osilp.solve(m, "counterpart")
    assert by_cone.objective == pytest.approx(dimension / (dimension + rho * np.sqrt(dimension)), rel=1e-9)
    assert by_cone.certified
    assert by_cone.proof["how"]["c"] == "cone"


def portfolio(count, protection, sense=1):
    """The worst return of a portfolio over an ellipsoid, and its known optimum."""
    number = np.arange(1, count + 1)
    mean = 1.15 + number * 0.05 / count
    deviation = 0.05 / (3 * count) * np.sqrt(2 * number * count * (count + 1))
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(count), bounds=(0, 1))
    m.t = pyo.Var()
    m.all = pyo.Constraint(expr=sum(m.x[i] for i in range(count)) == 1)
    m.o = pyo.Objective(expr=sense * m.t, sense=pyo.maximize if sense > 0 else pyo.minimize)

    def rule(m, xi):
        worth = sum((float(mean[i]) + float(deviation[i]) * xi[i]) * m.x[i] for i in range(count))
        return worth >= m.t if sense > 0 else m.t - worth <= 0

    m.earned = SemiInfiniteConstraint(AxisAlignedEllipsoidalSet([0] * count, [protection] * count), rule=rule)
    known = brentq(lambda t: np.sum((np.maximum(mean - t, 0) / deviation) ** 2) - protection**2, 0, mean.max())
    return m, known


@pytest.mark.parametrize(("count", "protection", "sense"), [(20, 0.5, 1), (30, 2.0, 1), (20, 1.0, -1)])
def test_cones_of_many_dimensions_are_taken_apart(count, protection, sense):
    m, known = portfolio(count, protection, sense)
    result = osilp.solve(m)
    assert result.status == "optimal"
    assert sense * result.objective == pytest.approx(known, abs=2e-8)
    assert result.certified
    assert result.gap < 2e-8
    # One atom inside of the ellipsoid carries the price, and proves the bound.
    assert result.audit.gap < 2e-8
    assert len(result.price.atoms) == 1
    assert np.linalg.norm(result.price.points[0]) <= protection * (1 + 1e-9)


def test_cones_beside_other_rows_integers_and_rays():
    m, _ = portfolio(12, 1.0)
    m.few = SemiInfiniteConstraint(BoxSet([(0.9, 1.1)]), rule=lambda m, xi: xi[0] * (m.x[0] + m.x[11]) <= 0.3)
    m.hold = pyo.Var(domain=pyo.Binary)
    m.link = pyo.Constraint(expr=m.x[10] <= m.hold)
    m.cost = pyo.Constraint(expr=m.t <= 1.2 - 0.001 * m.hold)
    result = osilp.solve(m)
    assert result.status == "optimal"
    assert result.feasible
    by_parts = result.objective
    m.hold.fix(round(m.hold.value))
    assert osilp.solve(m).objective == pytest.approx(by_parts, abs=1e-7)
    m.few.deactivate()
    m.x.setub(None)
    m.all.deactivate()
    m.cost.deactivate()
    assert osilp.solve(m).status == "unbounded"


def test_price_atoms_are_members_and_prove_the_value():
    m = robust_model(uncertainty_set("ellipsoid", 3, np.random.default_rng(5)), np.random.default_rng(6))
    result = osilp.solve(m)
    for family in m.limits.values():
        atoms = result.price[family].atoms
        for atom in atoms[["xi[0]", "xi[1]", "xi[2]"]].to_numpy():
            assert family.parent_component().continuous_sets[0].point_in_set(atom * (1 - 1e-12))
    assert result.audit.gap < 1e-7


def test_uncertain_right_hand_side_and_objective_by_hand():
    """min worst cost: t >= c @ x over c in a box, x_1 + x_2 >= demand in [1, 2]: demand 2, the dear corner (1, 3)."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 1], bounds=(0, None))
    m.t = pyo.Var()
    m.cost = pyo.Objective(expr=m.t)
    m.worst = SemiInfiniteConstraint(
        BoxSet([(0.5, 1.0), (2.0, 3.0)]), rule=lambda m, c: c[0] * m.x[0] + c[1] * m.x[1] <= m.t
    )
    m.demand = SemiInfiniteConstraint(BoxSet([(1.0, 2.0)]), rule=lambda m, d: m.x[0] + m.x[1] >= d[0])
    result = osilp.solve(m)
    assert result.objective == pytest.approx(2.0, abs=1e-8)
    assert result.price["demand"].atoms["d[0]"].tolist() == pytest.approx([2.0])
    assert osilp.solve(m, method="counterpart").objective == pytest.approx(2.0, abs=1e-8)


def test_integer_first_stage():
    m = profit_model(SQUARE, lambda m, xi: (2 + xi[0]) * m.x[0] + (2 + 0.5 * xi[1]) * m.x[1] <= 10)
    m.x.domain = pyo.Integers
    # Worst: 3 x + 2.5 y <= 10 over whole numbers: (0, 4).
    for method in ("exchange", "counterpart"):
        result = osilp.solve(m, method=method)
        assert result.objective == pytest.approx(4.0)
        with pytest.raises(errors.PriceError):
            _ = result.price
    priced = osilp.solve(m, fix_integers=True)
    assert priced.price.total == pytest.approx(0.0)


def test_a_set_beside_an_interval_and_ordinary_members():
    """Rows for i in {1, 2}, u in [0, 1] and |xi| <= 1: (1 + u xi) x <= i, worst at u = 1, xi = 1."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(bounds=(0, 10))
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = SemiInfiniteConstraint([1, 2], m.u, BoxSet([(-1, 1)]), rule=lambda m, i, u, xi: (1 + u * xi[0]) * m.x <= i)
    assert m.c.index_names() == ["u", "xi[0]"]
    result = osilp.solve(m)
    assert result.objective == pytest.approx(0.5, abs=1e-8)
    assert result.worst_index["c[1]"] == pytest.approx((1.0, 1.0))


# -- rows that are not affine ------------------------------------------------------------------------


def test_concave_rows_are_certified_as_such():
    """x (1 - xi^2 / 2 + xi / 2) <= 1 over |xi| <= 1: concave, largest at xi = 1/2 with 9/8."""
    m = profit_model(
        AxisAlignedEllipsoidalSet([0.0], [1.0]), lambda m, xi: (1 - xi[0] ** 2 / 2 + xi[0] / 2) * m.x[0] + m.x[1] <= 1
    )
    m.x[1].fix(0)
    result = osilp.solve(m, "exchange")
    assert result.objective == pytest.approx(8 / 9, abs=1e-8)
    assert result.separation == {"c": "concave rows"}
    assert (
        "the worst row was found for certain by a climb, for the row is concave in the vector, in 1 of 1 families"
        in str(result)
    )


def test_full_quadratic_forms_are_known_to_be_concave_by_their_eigenvalues():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    curved = -(root @ root.T) - 0.1 * np.eye(4)
    linear = rng.normal(size=4)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 10))
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = SemiInfiniteConstraint(
        BoxSet([(-5, 5)] * 4),
        rule=lambda m, xi: (
            10 + sum(linear[i] * xi[i] for i in range(4))
            + sum(curved[i, j] * xi[i] * xi[j] for i in range(4) for j in range(4))
        ) * m.x <= 1,
    )  # fmt: skip
    top = 10 - linear @ np.linalg.solve(curved, linear) / 4
    result = osilp.solve(m, "exchange")
    assert result.objective == pytest.approx(1 / top, rel=1e-8)
    assert result.separation == {"c": "concave rows"}
    by_cones = osilp.solve(m)
    assert (by_cones.method, by_cones.certified) == ("counterpart", True)
    assert by_cones.objective == pytest.approx(1 / top, rel=1e-7)


def test_convex_rows_are_searched_and_said_to_be():
    m = profit_model(SQUARE, lambda m, xi: (1 + xi[0] ** 2) * m.x[0] + (1 + xi[1] ** 2 / 2) * m.x[1] <= 2)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(4 / 3, abs=1e-7)
    assert result.separation == {"c": "search"}


def test_an_edge_of_a_box_is_searched_too():
    """A row with kinks and products whose maximum lies within an edge; the answer on a grid of three million points."""
    base, cost = (1.88251529, 1.90258658, 1.38472904), (-0.02267144, -0.30910096, -1.41324878)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(-3, 3))
    m.o = pyo.Objective(expr=sum(cost[j] * m.x[j] for j in range(3)))

    def rule(m, a):
        moved = [
            0.37 * pyo.sqrt(a[0] ** 2 + a[1] ** 2) - 1.58 * pyo.log(pyo.exp(a[0]) + pyo.exp(a[1])),
            -0.85 * pyo.exp(a[1]),
            0.71 * a[0] * a[1],
        ]
        return sum((base[j] + moved[j]) * m.x[j] for j in range(3)) <= 4 + 0.57 * pyo.sqrt(3 + a[0] + a[1])

    m.c = SemiInfiniteConstraint(BoxSet([(-1, 1), (-1, 0.7)]), rule=rule)
    assert osilp.solve(m).objective == pytest.approx(-4.035818, abs=2e-6)


def test_corners_of_a_box_in_many_dimensions():
    rng = np.random.default_rng(0)
    low, high = rng.uniform(0.5, 1, 15), rng.uniform(0.5, 1, 15)
    m = pyo.ConcreteModel()
    m.t = pyo.Var()
    m.o = pyo.Objective(expr=m.t)
    m.c = SemiInfiniteConstraint(
        BoxSet(np.column_stack([-low, high]).tolist()), rule=lambda m, xi: sum(xi[k] ** 2 for k in range(15)) <= m.t
    )
    assert osilp.solve(m).objective == pytest.approx(np.square(np.maximum(low, high)).sum(), abs=1e-6)


def test_curved_rows_over_scenarios_are_enumerated():
    m = profit_model(
        DiscreteScenarioSet([(0.0, 0.0), (1.0, 0.5), (-1.0, 1.0)]),
        lambda m, xi: pyo.exp(xi[0]) * m.x[0] + (1 + xi[1] ** 2) * m.x[1] <= 2,
    )
    result = osilp.solve(m)
    rows = [(np.exp(a), 1 + b * b) for a, b in ((0.0, 0.0), (1.0, 0.5), (-1.0, 1.0))]
    assert result.separation == {"c": "enumeration"}
    values = result.values.to_numpy()
    assert max(np.dot(row, values) for row in rows) == pytest.approx(2.0, abs=1e-8)


def test_a_flat_set_can_be_searched():
    m = profit_model(
        AxisAlignedEllipsoidalSet([0.0, 1.0], [1.0, 0.0]), lambda m, xi: (1 + xi[0] ** 2 * xi[1]) * m.x[0] + m.x[1] <= 2
    )
    m.x[1].fix(0)
    assert osilp.solve(m).objective == pytest.approx(1.0, abs=1e-7)


# -- the model as it is today --------------------------------------------------------------------


def test_params_variables_and_sets_may_change_after_the_declaration():
    uncertainty = CardinalitySet([0.0, 0.0], [1.0, 1.0], 1.0, [1.0, 1.0])
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 1], bounds=(0, 10))
    m.p = pyo.Param(initialize=2.0, mutable=True)
    m.profit = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)
    m.c = SemiInfiniteConstraint(uncertainty, rule=lambda m, xi: (m.p + xi[0]) * m.x[0] + (m.p + xi[1]) * m.x[1] <= 6)
    # Split evenly: 2 p x + x = 6, profit 12 / (2 p + 1).
    assert osilp.solve(m).objective == pytest.approx(12 / 5, abs=1e-8)
    m.p = 3.0
    assert osilp.solve(m).objective == pytest.approx(12 / 7, abs=1e-8)
    uncertainty.gamma = 2.0
    assert osilp.solve(m).objective == pytest.approx(6 / 4, abs=1e-8)
    m.x[0].fix(0.5)
    assert osilp.solve(m).objective == pytest.approx(0.5 + (6 - 4 * 0.5) / 4, abs=1e-8)


def test_numbers_that_a_rule_read_when_it_was_declared_are_read_again():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 10))
    m.p = pyo.Param(initialize=2.0, mutable=True)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.c = SemiInfiniteConstraint(BoxSet([(0, 1)]), rule=lambda m, xi: (pyo.value(m.p) + xi[0]) * m.x <= 6)
    assert osilp.solve(m).objective == pytest.approx(2.0)
    m.p = 5.0
    with pytest.warns(errors.ChangedRuleWarning, match="its rule gives another row now than when it was declared"):
        assert osilp.solve(m).objective == pytest.approx(1.0)


def test_rules_made_in_a_loop_keep_what_is_bound_and_tell_what_is_not():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 10))
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)
    for i in range(3):
        m.add_component(f"c{i}", SemiInfiniteConstraint(BoxSet([(1, 2)]), rule=lambda m, xi, i=i: xi[0] * m.x <= 6 + i))
    assert osilp.solve(m).objective == pytest.approx(3.0)
    for i in range(3):
        m.add_component(f"d{i}", SemiInfiniteConstraint(BoxSet([(1, 2)]), rule=lambda m, xi: xi[0] * m.x <= 2 + i))  # noqa: B023
    with pytest.warns(errors.ChangedRuleWarning):
        osilp.solve(m)


def test_a_row_convex_in_some_entries_is_not_called_concave():
    """However large the concave part of another entry is in its own units."""
    m = pyo.ConcreteModel()
    m.t = pyo.Var()
    m.o = pyo.Objective(expr=m.t)
    m.c = SemiInfiniteConstraint(
        BoxSet([(-1, 1.1), (-1.2, 1)]), rule=lambda m, xi: -1e10 * xi[0] ** 2 + xi[1] ** 2 <= m.t
    )
    assert osilp.solve(m).separation == {"c": "search"}


@pytest.mark.parametrize("unit", [1e-6, 1e6, 1e8])
def test_sets_in_other_units(unit):
    m = profit_model(
        BudgetSet([[1, 1, 0], [0, 1, 1]], [1.5 * unit, unit]),
        lambda m, xi: sum(xi[i] / unit * m.x[i] for i in (0, 1)) <= 2,
    )
    assert osilp.solve(m).objective == pytest.approx(8 / 3, abs=1e-6)


def test_clones_and_saved_results():
    m = robust_model(uncertainty_set("polyhedron", 3, np.random.default_rng(1)), np.random.default_rng(2))
    result = osilp.solve(m)
    copy = m.clone()
    assert osilp.solve(copy).objective == pytest.approx(result.objective, rel=1e-9)
    again = pickle.loads(pickle.dumps(result))
    assert again.objective == result.objective
    assert again.worst_index["limits[0]"] == result.worst_index["limits[0]"]


def test_other_ways_to_write_the_same_row():
    matrix = np.array([[1.0, 0.2], [0.5, -0.3]])
    rules = {
        "sum of products": lambda m, xi: sum(
            (2 + matrix[j, 0] * xi[0] + matrix[j, 1] * xi[1]) * m.x[j] for j in (0, 1)
        ) <= 7,
        "factors first": lambda m, xi: 2 * m.x[0] + 2 * m.x[1]
        + sum(xi[k] * sum(matrix[j, k] * m.x[j] for j in (0, 1)) for k in (0, 1)) <= 7,
        "numpy": lambda m, xi: np.dot(2 + matrix @ np.array(xi), [m.x[0], m.x[1]]) <= 7,
        "divided and negated": lambda m, xi: -(
            -(4 + 2 * (matrix[0] @ np.array(xi))) * m.x[0] - (4 + 2 * (matrix[1] @ np.array(xi))) * m.x[1]
        ) / 2 - 7 <= 0,
        "turned round": lambda m, xi: sum((2 + sum(matrix[j, k] * xi[k] for k in (0, 1))) * m.x[j] for j in (0, 1)) <= 7,
        "products of sums": lambda m, xi: (1 + xi[0] * 0) * (2 * m.x[0] + 2 * m.x[1])
        + (xi[0] + 0) * (m.x[0] + 0.5 * m.x[1]) + 0.1 * (2 * xi[1]) * (m.x[0] - 1.5 * m.x[1]) <= 7,
    }  # fmt: skip
    answers = {name: osilp.solve(profit_model(SQUARE, rule), "exchange") for name, rule in rules.items()}
    for name, answer in answers.items():
        assert answer.objective == pytest.approx(answers["factors first"].objective, rel=1e-9), name
        assert answer.separation == {"c": "closed form"}, name


# -- prints and refusals -----------------------------------------------------------------------------


def test_what_a_robust_constraint_prints(capsys):
    m = profit_model(SQUARE, lambda m, cost: cost[0] * m.x[0] + cost[1] * m.x[1] <= 1)
    assert repr(m.c) == "c: cost[0]*x[0] + cost[1]*x[1] <= 1  for all cost in BoxSet of dimension 2"
    assert str(m.c.at((0.5, 0.25))) == "0.5*x[0] + 0.25*x[1]  <=  1"
    assert str(m.c.at(0.5, 0.25)) == str(m.c.at((0.5, 0.25)))
    m.c.pprint()
    assert "For all=cost in BoxSet of dimension 2" in capsys.readouterr().out


def test_a_result_with_many_families_stays_short():
    m = robust_model(uncertainty_set("box", 8, np.random.default_rng(3)), np.random.default_rng(4), rows=30)
    text = str(osilp.solve(m, "exchange"))
    assert len(text.splitlines()) < 18
    assert " other families" in text
    assert "the worst row was found for certain in closed form, in 30 of 30 families" in text
    assert ", ..., " in text


@pytest.mark.parametrize(
    ("uncertainty", "rule", "why"),
    [
        (
            SQUARE,
            lambda m, xi: xi[2] * m.x[0] <= 1,
            "its rule asks for entry 2 of an uncertain vector of dimension 2, whose entries are 0 to 1; give a set of "
            "the dimension that the rule needs.",
        ),
        (
            SQUARE,
            lambda m, xi: next(a * m.x[0] <= 1 for a, b, c in [xi]),
            "its rule cannot take an uncertain vector of dimension 2 apart (not enough values to unpack (expected 3, "
            "got 2)); give a set of the dimension that the rule needs.",
        ),
        (
            SQUARE,
            lambda m, xi: m.x[0] <= 1,
            "the index 'xi' appears nowhere in the row, so the row is the same at every point; use it, or leave it out "
            "of the declaration.",
        ),
        (
            PolyhedralSet([[1, 0], [-1, 0], [0, 1]], [1, 1, 1]),
            lambda m, xi: xi[0] * m.x[0] <= 1,
            "its PolyhedralSet cannot be used: the polyhedral set is unbounded: a row can be violated without end "
            "there; add bounds to the set.",
        ),
    ],
)
def test_declarations_that_cannot_be_meant(uncertainty, rule, why):
    with pytest.raises(errors.DeclarationError) as error:
        profit_model(uncertainty, rule)
    assert str(error.value) == f"SemiInfiniteConstraint 'c': {why}"


def test_where_is_not_for_uncertainty_sets():
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    with pytest.raises(errors.DeclarationError) as error:
        m.c = SemiInfiniteConstraint(SQUARE, rule=lambda m, xi: xi[0] * m.x <= 1, where=lambda m, xi: xi[0] > 0)
    assert str(error.value) == (
        "SemiInfiniteConstraint: where= cannot be combined with an uncertainty set; intersect the set with others by "
        "the IntersectionSet of PyROS, or declare continuous sets with where=..."
    )


def test_an_unbounded_interval_beside_a_set_is_refused():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(bounds=(0, 1))
    m.o = pyo.Objective(expr=m.x)
    m.c = SemiInfiniteConstraint(m.u, SQUARE, rule=lambda m, u, xi: (u + xi[0]) * m.x >= 0)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'c': the index 'u' is unbounded, which it cannot be beside an uncertainty set; give it "
        "bounds."
    )


def interval_model():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var([0, 1], bounds=(0, 10))
    m.o = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)
    m.c = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[0] + pyo.exp(u) * m.x[1] <= 1)
    return m


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (
            interval_model,
            "method='counterpart' is for rows over an uncertainty set of PyROS, or quadratic in an index without ends (got u in [0, 1]); use method='exchange'.",
        ),
        (
            lambda: profit_model(SQUARE, lambda m, xi: xi[0] ** 2 * m.x[0] <= 1),
            "method='counterpart' is for rows affine in the uncertain vector, or quadratic in a way that duality is exact "
            "for, which this one is not; use method='exchange'.",
        ),
    ],
)
def test_rows_without_a_counterpart(model, why):
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(model(), method="counterpart")
    assert str(error.value) == f"SemiInfiniteConstraint 'c': {why}"


@pytest.mark.parametrize("method", ["exchange", "counterpart"])
def test_robust_models_without_an_answer(method):
    impossible = profit_model(BudgetSet([[1, 1]], [1.0]), lambda m, xi: m.x[0] + xi[1] * m.x[1] >= 11)
    assert osilp.solve(impossible, method=method).status == "infeasible"
    endless = profit_model(SQUARE, lambda m, xi: (xi[0] - 2) * m.x[0] + (xi[1] - 2) * m.x[1] <= 1)
    endless.x.setub(None)
    assert osilp.solve(endless, method=method).status == "unbounded"


@pytest.mark.parametrize("kind", ["ellipsoid", "flat", "polyhedron", "scenarios"])
def test_grids_of_a_set_give_bounds_and_their_worst_row_is_found(kind):
    rng = np.random.default_rng(11)
    m = robust_model(uncertainty_set(kind, 3, rng), rng)
    exact = osilp.solve(m)
    sampled = osilp.solve(m, method="discretized", grid=osilp.Extremes(40))
    assert sampled.objective >= exact.objective - 1e-7
    projected = osilp.solve(m, method="projected")
    assert projected.objective >= exact.objective - 1e-7
    # What is said of the violation is what the exact separation finds at the answer.
    rows = pyo.TransformationFactory("osilp.discretize").create_using(m, grid=osilp.Extremes(40))
    pyo.SolverFactory("appsi_highs").solve(rows)
    assert pyo.value(rows.revenue) == pytest.approx(sampled.objective, rel=1e-6)
    if sampled.objective > exact.objective + 1e-6:
        assert max(sampled.violation.values()) > 0


ZERO_IS_A_VERTEX = {
    "cardinality": (lambda: CardinalitySet([0] * 3, [1] * 3, 2), 6.25),
    "box": (lambda: BoxSet([(0, 1)] * 3), 10 / 1.9),
    "budget": (lambda: BudgetSet([[1, 1, 1]], [2]), 6.25),
    "scenarios": (lambda: DiscreteScenarioSet([(0, 0, 0), (1, 1, 0), (0, 1, 1), (1, 0, 1)]), 6.25),
}


@pytest.mark.parametrize("name", ZERO_IS_A_VERTEX)
def test_a_rule_that_has_changed_is_seen_where_zero_is_a_vertex(name):
    """At the zero vector no uncertain coefficient shows, so that it cannot tell whether one has changed."""
    make, known = ZERO_IS_A_VERTEX[name]
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 10))
    m.gain = pyo.Objective(expr=sum(m.x[i] for i in range(3)), sense=pyo.maximize)
    m.deviation = pyo.Param(range(3), mutable=True, initialize=0.1)

    @m.SemiInfiniteConstraint(make())
    def enough(m, xi):
        return sum((1 + pyo.value(m.deviation[i]) * xi[i]) * m.x[i] for i in range(3)) <= 10

    for i in range(3):
        m.deviation[i] = 0.9
    with pytest.warns(osilp.errors.ChangedRuleWarning):
        result = osilp.solve(m)
    assert result.objective == pytest.approx(known, rel=1e-6)
