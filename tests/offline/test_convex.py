"""Convex programs offline: known optima, brackets, prices, refusals, bad input, and what cannot be solved."""

import numpy as np
import pyomo.environ as pyo
import pytest
from optima.convex import PROBLEMS, model, variables
from pyomo.contrib.pyros import EllipsoidalSet
from pyomo.dae import ContinuousSet
from scipy.optimize import minimize

import osilp_pyomo as osilp
from osilp_pyomo import errors

FREE = (None, None)


@pytest.mark.parametrize("known", PROBLEMS, ids=[known.name for known in PROBLEMS])
def test_the_known_optimum_is_found_and_certified(known):
    result = osilp.solve(known.build())
    assert result.status == "optimal", known.reason
    size = 1 + abs(known.optimum)
    assert result.objective == pytest.approx(known.optimum, abs=1e-6 * size)
    low, high = result.bracket
    assert low - 1e-9 * size <= known.optimum <= high + 1e-9 * size
    assert high - low <= 1e-6 * size
    assert result.certified
    assert result.feasible
    assert result.method == "exchange"
    assert result.remark.startswith("convex: ")
    assert len(result.log) <= 25


def test_there_are_enough_of_them():
    names = [known.name for known in PROBLEMS]
    assert len(set(names)) == len(names) >= 25


# -- prices ---------------------------------------------------------------------------------------------------------


def disc(room, sense=pyo.minimize, sign=1.0):
    """The nearest point of a disc of radius 1 + room, as a minimum, or its negative as a maximum."""
    return model(
        lambda m, u: m.x * pyo.cos(u) + m.y * pyo.sin(u) <= 1 + room,
        lambda m: sign * ((m.x - 2) ** 2 + (m.y - 1) ** 2),
        variables(x=FREE, y=FREE),
        [(0, 2 * np.pi)],
        sense=sense,
    )


def arc(room):
    """The smallest ball around three quarters of a circle, each point of which may stick out by room."""
    return model(
        lambda m, u: pyo.sqrt((m.x - pyo.cos(u)) ** 2 + (m.y - 0.5 * pyo.sin(u)) ** 2) <= m.t + room,
        lambda m: m.t**2 + 0.1 * m.x,
        variables(x=FREE, y=FREE, t=(0, None)),
        [(0, 4.5)],
    )


def growth(room):
    """The least cost with a concave row from below."""
    return model(
        lambda m, u: pyo.log(1 + m.x + u * m.y) >= u + room,
        lambda m: pyo.exp(m.x) + m.y**2,
        variables(x=(0, 9), y=(0, 9)),
    )


@pytest.mark.parametrize("build", [disc, arc, growth, lambda h: disc(h, pyo.maximize, -1.0)])
def test_prices_are_the_derivatives_of_the_optimum(build):
    step = 1e-4
    up, down = (osilp.solve(build(h)).objective for h in (step, -step))
    result = osilp.solve(build(0.0))
    assert result.certified
    assert result.price.total == pytest.approx((up - down) / (2 * step), rel=1e-5)


def test_a_price_knows_where_more_room_counts():
    """Room that is a function of the index is worth its integral against the price."""
    h = 1e-4

    def build(room):
        return model(
            lambda m, u: (m.x - u) ** 2 + (m.y - u**2) ** 2 <= m.t + room * (1 + u),
            lambda m: m.t + 0.2 * m.y,
            variables(x=FREE, y=FREE, t=FREE),
        )

    result = osilp.solve(build(0.0))
    up, down = (osilp.solve(build(room)).objective for room in (h, -h))
    assert result.price.integrate(lambda u: 1 + u) == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_duals_of_ordinary_constraints_and_reduced_costs():
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var(bounds=(0, 1))
    m.gain = pyo.Objective(expr=m.x + 2 * m.y, sense=pyo.maximize)
    m.disc = pyo.Constraint(expr=m.x**2 + m.y**2 <= 4)
    m.dual, m.rc = pyo.Suffix(direction=pyo.Suffix.IMPORT), pyo.Suffix(direction=pyo.Suffix.IMPORT)
    result = osilp.solve(m)
    # y = 1 and x = sqrt(3): 1 = 2 x dual, and 2 - 2 y dual is what the bound is worth.
    assert result.objective == pytest.approx(2 + np.sqrt(3), rel=1e-9)
    assert m.dual[m.disc] == pytest.approx(1 / (2 * np.sqrt(3)), rel=1e-6)
    assert m.rc[m.y] == pytest.approx(2 - 1 / np.sqrt(3), rel=1e-6)
    assert m.x.value == pytest.approx(np.sqrt(3), rel=1e-9)


# -- other ways to write them -------------------------------------------------------------------------------------------


def test_products_of_one_variable_with_itself_and_expanded_squares():
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var()
    m.cost = pyo.Objective(expr=m.x * m.x - m.x * m.y + m.y * m.y - 3 * m.x)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(-3.0, rel=1e-9)  # at (2, 1)
    assert result.certified


def test_parameters_profiles_and_named_expressions():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(bounds=(-9, 9))
    m.p = pyo.Param(initialize=2.0, mutable=True)
    m.curve = osilp.Profile(over=m.u, points=[0, 0.5, 1], initialize=[1.0, 3.0, 1.0], kind="linear")
    m.square = pyo.Expression(expr=(m.x - m.p) ** 2)
    m.cost = pyo.Objective(expr=m.x)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.curve(u) * m.square <= 3)
    assert osilp.solve(m).objective == pytest.approx(1.0, rel=1e-9)
    m.p.set_value(4.0)
    assert osilp.solve(m).objective == pytest.approx(3.0, rel=1e-9)


def test_linear_rows_without_an_end_beside_a_convex_objective():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x, m.y = pyo.Var(), pyo.Var()
    m.cost = pyo.Objective(expr=m.x**2 + (m.y - 1) ** 2)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + m.y * pyo.exp(-u) >= 2 * pyo.exp(-u))
    result = osilp.solve(m)
    # x >= 0 far out, x + y >= 2 at zero: the nearest point of both to (0, 1).
    assert result.objective == pytest.approx(0.5, rel=1e-7)


def test_a_standard_deviation_over_an_ellipsoid_agrees_with_scipy():
    root = np.array([[2.0, 0.3], [0.0, 1.0]])
    square = root.T @ root
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(0, 1))
    m.cost = pyo.Objective(
        expr=pyo.sqrt(sum(float(square[i, j]) * m.x[i] * m.x[j] for i in range(2) for j in range(2))) - 0.2 * m.x[0]
    )
    m.row = osilp.SemiInfiniteConstraint(
        EllipsoidalSet([1.0, 1.5], [[0.05, 0.0], [0.0, 0.2]], 1), rule=lambda m, r: r[0] * m.x[0] + r[1] * m.x[1] >= 0.6
    )
    result = osilp.solve(m)
    spread = np.diag([0.05, 0.2])
    checked = minimize(
        lambda x: np.sqrt(x @ square @ x) - 0.2 * x[0],
        [0.5, 0.5],
        bounds=[(0, 1)] * 2,
        constraints={"type": "ineq", "fun": lambda x: x @ [1.0, 1.5] - np.sqrt(x @ spread @ x) - 0.6},
        options={"ftol": 1e-14},
    )
    assert result.certified
    assert result.objective == pytest.approx(checked.fun, rel=1e-6)


def test_integers_are_the_best_of_all():
    def build(chosen=None):
        m = pyo.ConcreteModel()
        m.u = ContinuousSet(bounds=(0, 1))
        m.x = pyo.Var(range(2), bounds=(-5, 5))
        m.k = pyo.Var(range(2), domain=pyo.Integers, bounds=(0, 3))
        m.cost = pyo.Objective(
            expr=(m.x[0] - 1.3) ** 2
            + pyo.exp(0.3 * m.x[1])
            + abs(m.k[0] - 1.4)
            + 0.3 * (m.k[1] - 1.6) ** 2
            + 0.2 * m.k[0] * m.k[1]
            + 0.2 * m.k[0] ** 2
        )
        m.row = osilp.SemiInfiniteConstraint(
            m.u, rule=lambda m, u: m.x[0] + m.x[1] * u + m.k[0] * u**2 + m.k[1] * u**3 >= pyo.exp(2 * u)
        )
        for k, value in enumerate(chosen or ()):
            m.k[k].fix(value)
        return m

    best = min(osilp.solve(build((i, j))).objective for i in range(4) for j in range(4))
    result = osilp.solve(build(), fix_integers=True)
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.bound <= best + 1e-6
    assert result.values[["k[0]", "k[1]"]].tolist() == result.values[["k[0]", "k[1]"]].round().tolist()
    assert result.price.total > 0
    with pytest.raises(errors.PriceError):
        _ = osilp.solve(build()).price


# -- refusals ------------------------------------------------------------------------------------------------------------

RULES = {
    "Objective": "an objective is minimized where it is convex and maximized where it is concave",
    "Constraint": "a constraint '<=' must be convex, one '>=' concave",
    "SemiInfiniteConstraint": "a row '<=' must be convex in the variables, one '>=' concave",
}


def told(kind, name, curvature, term, between):
    return (
        f"{kind} '{name}': it is not {curvature} in the variables (found {term}): between {between} it bends the wrong "
        f"way. Offline {RULES[kind]}; give the variables bounds within which it is, or write it in another way; if such "
        "terms belong to arrivals use compile_online(model, stages=...).solve_offline()."
    )


WRONG_OBJECTIVES = {
    "product": (lambda m: m.x * m.y, "x*y", "(x = -1, y = 2) and (x = 2, y = -1)"),
    "root": (lambda m: pyo.sqrt(m.x + 1), "sqrt(x + 1)", "(x = -1) and (x = 2)"),
    "cube": (lambda m: m.x**3, "x**3", "(x = 0.5) and (x = -1)"),
    "negative square": (lambda m: -(m.x**2), "- x**2", "(x = -1) and (x = 2)"),
    "logarithm": (lambda m: pyo.log(m.x + 2), "log(x + 2)", "(x = -1) and (x = 2)"),
    "indefinite": (lambda m: m.x**2 - 3 * m.x * m.y + m.y**2, "- (3*x*y)", "(x = -1, y = -1) and (x = 2, y = 2)"),
    "minimum": (lambda m: -abs(m.x), "- abs(x)", "(x = -1) and (x = 2)"),
    "wave": (lambda m: pyo.sin(2 * m.x), "sin(2*x)", "(x = 0.5) and (x = 2)"),
}


@pytest.mark.parametrize("case", WRONG_OBJECTIVES)
def test_objectives_that_bend_the_wrong_way(case):
    expression, term, between = WRONG_OBJECTIVES[case]
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(-1, 2)), pyo.Var(bounds=(-1, 2))
    m.cost = pyo.Objective(expr=expression(m))
    with pytest.raises(errors.NotConvexError) as error:
        osilp.solve(m)
    text = str(error.value)
    if case == "wave":
        assert text.startswith("Objective 'cost': it is not convex in the variables (found sin(2*x)): between (x = ")
    else:
        assert text == told("Objective", "cost", "convex", term, between)
    assert isinstance(error.value, errors.NotLinearError)


def test_a_product_that_is_convex_on_a_part_of_the_box_only():
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(-1, 1)), pyo.Var(bounds=(0, 2))
    m.cost = pyo.Objective(expr=m.x**2 * m.y + m.x**2)
    with pytest.raises(errors.NotConvexError, match=r"it is not convex in the variables \(found x\*\*2\*y\)"):
        osilp.solve(m)


def test_rows_and_constraints_that_bend_the_wrong_way():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(bounds=(-2, 2))
    m.cost = pyo.Objective(expr=m.x)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x**2 >= u)
    with pytest.raises(errors.NotConvexError) as row:
        osilp.solve(m)
    between = "(x = -2) and (x = 2) at u = 0.5"
    assert str(row.value) == told("SemiInfiniteConstraint", "row", "concave", "x**2", between)
    m.row.deactivate()
    m.far = pyo.Constraint(expr=m.x**2 >= 1)
    with pytest.raises(errors.NotConvexError) as constraint:
        osilp.solve(m)
    # Pyomo turns it round: 1 - x**2 <= 0 and x**2 >= 1 are the same relation.
    assert "it is not concave in the variables (found x**2): between (x = -2) and (x = 2)" in str(constraint.value)


def test_what_cannot_be_decided_is_refused_with_what_to_do():
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(0, 2)), pyo.Var(bounds=(0, 2))
    m.cost = pyo.Objective(expr=-pyo.sqrt(m.x * m.y))
    with pytest.raises(errors.NotConvexError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "Objective 'cost': it could not be proved to be convex in the variables (found - sqrt(x*y)); write it by "
        "functions whose curvature is known (squares, exp, log, sqrt of sums of squares, abs, maxima of linear terms), "
        "or give its variables bounds within which it is."
    )


def test_two_sides_are_refused():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(bounds=(-2, 2))
    m.cost = pyo.Objective(expr=m.x)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (0, u * m.x**2, 1))
    with pytest.raises(errors.NotConvexError) as row:
        osilp.solve(m)
    assert str(row.value) == (
        "SemiInfiniteConstraint 'row': it is not linear in the variables (found u*x**2) and has limits on both sides, "
        "which no convex row has; write a relation with one limit, or make it linear."
    )
    m.row.deactivate()
    m.circle = pyo.Constraint(expr=m.x**2 == 1)
    with pytest.raises(errors.NotConvexError) as constraint:
        osilp.solve(m)
    assert str(constraint.value) == (
        "Constraint 'circle': it is not linear in the variables (found x**2) and has limits on both sides, which no "
        "convex constraint has; write a relation with one limit, or make it linear."
    )


def test_a_convex_row_without_an_end_is_refused():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(bounds=(-2, 2))
    m.cost = pyo.Objective(expr=m.x)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: pyo.exp(-u) * m.x**2 <= 1)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': its index u in [0, inf) is unbounded, which works for linear rows only (found "
        "exp(- u)*x**2); give the index bounds."
    )


def test_other_methods_need_linear_models():
    m = disc(0.0)
    with pytest.raises(errors.NotLinearError) as error:
        osilp.solve(m, "discretized")
    assert str(error.value) == (
        "solve: method='discretized' needs linear rows and a linear objective, and the model has convex ones; use "
        "method='exchange'."
    )


# -- bad input, and what has no answer -----------------------------------------------------------------------------------


def one(expression, bounds=FREE, value=None, **more):
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=bounds, initialize=value)
    m.goal = pyo.Objective(expr=expression(m.x), **more)
    return m


def test_functions_that_end_at_a_bound_are_no_obstacle():
    assert osilp.solve(one(lambda x: x - pyo.log(x), (0, 5))).objective == pytest.approx(1.0, rel=1e-9)
    assert osilp.solve(one(lambda x: x * pyo.log(x), (0, 5))).objective == pytest.approx(-np.exp(-1), rel=1e-9)
    # A start at which it has no value, and one outside of the bounds.
    assert osilp.solve(one(lambda x: x + 1 / x, (0, 5), 0.0)).objective == pytest.approx(2.0, rel=1e-9)
    assert osilp.solve(one(lambda x: x + 1 / x, (0, 5), -7.0)).objective == pytest.approx(2.0, rel=1e-9)
    assert osilp.solve(one(lambda x: x - pyo.log(x))).objective == pytest.approx(1.0, rel=1e-9)


def test_a_function_without_values_within_the_bounds():
    with pytest.raises(errors.DataError) as error:
        osilp.solve(one(lambda x: -pyo.log(x), (-3, -1)))
    assert str(error.value) == (
        "The functions of the objective have no value at any of the values that were tried; give the variables bounds, "
        "or initial values, at which they are defined."
    )


@pytest.mark.filterwarnings("ignore::osilp_pyomo.errors.AccuracyWarning")
def test_a_minimum_that_is_not_attained_is_not_optimal():
    falls = osilp.solve(one(lambda x: pyo.exp(x)))
    assert falls.status != "optimal"
    assert not falls.certified
    m = one(lambda x: -x)
    m.row = pyo.Constraint(expr=pyo.exp(-m.x) <= 1)
    assert osilp.solve(m).status == "undecided"
    assert osilp.solve(one(lambda x: pyo.log(x), (0, None), sense=pyo.maximize)).status != "optimal"


def test_what_contradicts_itself_is_told():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(), pyo.Var()
    m.goal = pyo.Objective(expr=m.x)
    m.near = pyo.Constraint(expr=m.x**2 + m.y**2 <= 1)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + u * m.y >= 2 + u)
    result = osilp.solve(m)
    assert result.status == "infeasible"
    assert set(result.conflict["name"]) == {"near", "row"}
    assert "these cannot hold together" in str(result)
    assert "rows that are convex stand there as linear ones that touch them" in str(result)


@pytest.mark.filterwarnings("ignore::osilp_pyomo.errors.AccuracyWarning")
def test_rows_that_only_just_miss_each_other_are_not_called_infeasible():
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(0, 9)), pyo.Var(bounds=(0, 9))
    m.goal = pyo.Objective(expr=m.x)
    m.near = pyo.Constraint(expr=m.x**2 + m.y**2 <= 2)
    m.far = pyo.Constraint(expr=m.x + m.y >= 2)  # they touch at (1, 1)
    assert osilp.solve(m).status != "infeasible"


def test_a_variable_that_is_fixed_is_a_number():
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var()
    m.goal = pyo.Objective(expr=(m.x - 1) ** 2 + m.x * m.y)
    m.y.fix(2.0)
    assert osilp.solve(m).objective == pytest.approx(1.0, rel=1e-9)


def test_a_rule_that_reads_a_changed_number_is_read_again():
    factor = [1.0]
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(bounds=(-9, 9))
    m.goal = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: factor[0] * (1 + u) * m.x**2 <= 8)
    factor[0] = 4.0
    with pytest.warns(errors.ChangedRuleWarning):
        assert osilp.solve(m).objective == pytest.approx(1.0, rel=1e-9)


def test_the_model_is_not_changed_and_limits_are_kept():
    m = disc(0.0)
    m.x.set_value(0.25)
    result = osilp.solve(m, load=False, iteration_limit=1)
    assert result.status == "iteration_limit"
    assert not result.certified
    assert m.x.value == 0.25
    assert osilp.solve(m, time_limit=30).certified
