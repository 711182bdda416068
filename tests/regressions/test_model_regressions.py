"""Bad input: a clear error each, its whole text, and the model as it was."""

import functools

import numpy as np
import pyomo.environ as pyo
import pytest
from models import packing, tent, two_families
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors
from osilp_pyomo.index.domain import Domain


def small():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.v = ContinuousSet(bounds=(0, 1))
    m.S = pyo.Set(initialize=[1, 2])
    m.x = pyo.Var(initialize=1.0)
    m.y = pyo.Var(m.S)
    m.p = pyo.Param(mutable=True)
    m.cost = pyo.Objective(expr=m.x)
    return m


def snapshot(m):
    return [(c.name, type(c), getattr(c, "active", None)) for c in m.component_objects()], m.x.value


DECLARATIONS = {
    "none": (
        lambda m: {"rule": lambda m, u: None},
        "SemiInfiniteConstraint 'bad': its rule returned None; end it with 'return left <= right'.",
    ),
    "true": (
        lambda m: {"rule": lambda m, u: True},
        "SemiInfiniteConstraint 'bad': its rule returned True, which holds no variable; return a relation such as "
        "left <= right, or Constraint.Skip for no row.",
    ),
    "feasible": (
        lambda m: {"rule": lambda m, u: pyo.Constraint.Feasible},
        "SemiInfiniteConstraint 'bad': its rule returned Feasible, which holds no variable; return a relation such as "
        "left <= right, or Constraint.Skip for no row.",
    ),
    "equality": (
        lambda m: {"rule": lambda m, u: m.x * u == 1},
        "SemiInfiniteConstraint 'bad': '==' for every point of an index leaves no room to decide (found u*x == 1); use "
        "a ranged row (low, body, high), or match the functions' parameters by ordinary constraints.",
    ),
    "equality tuple": (
        lambda m: {"rule": lambda m, u: (m.x * u, 1)},
        "SemiInfiniteConstraint 'bad': '==' for every point of an index leaves no room to decide (found u*x == 1); use "
        "a ranged row (low, body, high), or match the functions' parameters by ordinary constraints.",
    ),
    "strict": (
        lambda m: {"rule": lambda m, u: m.x * u < 1},
        "SemiInfiniteConstraint 'bad': '<' and '>' describe open sets (found u*x < 1); use <= or >=.",
    ),
    "expression": (
        lambda m: {"rule": lambda m, u: m.x * u},
        "SemiInfiniteConstraint 'bad': its rule must return a relation such as left <= right "
        "(got MonomialTermExpression).",
    ),
    "idle index": (
        lambda m: {"rule": lambda m, u: m.x <= 1},
        "SemiInfiniteConstraint 'bad': the index 'u' appears nowhere in the row, so the row is the same at every "
        "point; use it, or leave it out of the declaration.",
    ),
    "no rule": (
        lambda m: {},
        "SemiInfiniteConstraint: it needs rule=..., a function of the model and the index (got NoneType).",
    ),
    "an expression": (
        lambda m: {"expr": m.x <= 1},
        "SemiInfiniteConstraint: expr= cannot hold the index; give rule=..., a function of the model and the index, such "
        "as rule=lambda m, u: ...",
    ),
    "a rule without the index": (
        lambda m: {"rule": lambda m: m.x <= 1},
        "SemiInfiniteConstraint 'bad': its rule is called with 2 arguments, the model and its index, and takes (m) (too "
        "many positional arguments); write it as a function of all of them.",
    ),
    "a rule with too many arguments": (
        lambda m: {"rule": lambda m, u, v: m.x * u <= v},
        "SemiInfiniteConstraint 'bad': its rule is called with 2 arguments, the model and its index, and takes (m, u, v) "
        "(missing a required argument: 'v'); write it as a function of all of them.",
    ),
    "where is no function": (
        lambda m: {"rule": lambda m, u: m.x * u <= 1, "where": True},
        "SemiInfiniteConstraint: where= must be a function of the model and the index (got bool).",
    ),
}


@pytest.mark.parametrize("case", DECLARATIONS)
def test_bad_declarations(case):
    keywords, text = DECLARATIONS[case]
    m = small()
    before = snapshot(m)
    with pytest.raises(errors.DeclarationError) as error:
        m.bad = SemiInfiniteConstraint(m.u, **keywords(m))
    assert str(error.value) == text
    assert snapshot(m) == before


def test_one_of_two_indices_is_idle():
    m = small()
    with pytest.raises(errors.DeclarationError) as error:
        m.bad = SemiInfiniteConstraint(m.u, m.v, rule=lambda m, u, v: m.x * u <= 1)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'bad': the index 'v' appears nowhere in the row, so the row is the same at every "
        "point; use it, or leave it out of the declaration."
    )


def test_an_index_without_an_interval():
    m = small()
    with pytest.raises(errors.DeclarationError) as error:
        m.bad = SemiInfiniteConstraint(pyo.RangeSet(1, 1, 0), rule=lambda m, u: m.x * u <= 1)
    assert str(error.value) == (
        "SemiInfiniteConstraint: it needs a continuous index, a ContinuousSet, RangeSet(a, b, 0) with a < b, or an "
        "uncertainty set of PyROS; over ordinary sets alone an ordinary Constraint says the same."
    )
    with pytest.raises(ValueError) as reversed_bounds:
        m.w = pyo.RangeSet(1, 0, 0)
    assert str(reversed_bounds.value) == "NumericRange: start must be <= end for continuous ranges (got 1..0)"
    with pytest.raises(errors.DomainError) as domain:
        Domain.box(u=(1, 0))
    assert str(domain.value) == (
        "Index 'u': its bounds [1, 0] hold no interval; the lower bound must be below the upper one."
    )


@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
def test_nan_coefficients(method):
    m = small()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * pyo.sqrt(u - 0.5) >= 1)
    before = snapshot(m)
    with pytest.raises(errors.DataError) as error:
        osilp.solve(m, method=method)
    text = str(error.value)
    place = text.split("u = ")[1].split(";")[0]
    assert text == (
        f"SemiInfiniteConstraint 'row': the coefficient of x is nan at u = {place}; keep the rule finite on u in "
        "[0, 1], or leave such points out by 'where'."
    )
    assert float(place) < 0.5
    assert snapshot(m) == before


def test_infinite_right_hand_side():
    m = small()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 1 / u)
    with pytest.raises(errors.DataError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': the left-hand side is inf at u = 0; keep the rule finite on u in [0, 1], or "
        "leave such points out by 'where'."
    )


def test_a_param_without_a_value():
    m = small()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.p * m.x * u >= 1)
    before = snapshot(m)
    with pytest.raises(errors.DataError) as error:
        osilp.solve(m)
    assert str(error.value) == "SemiInfiniteConstraint 'row': 'p' has no value; give it one before solving."
    assert snapshot(m) == before


NOT_LINEAR = {
    "product": (lambda m, u: m.x * m.y[1] * u <= 1, "x*y[1]"),
    "square": (lambda m, u: u * m.x**2 <= 1, "x**2"),
    "function": (lambda m, u: m.y[1] + pyo.exp(u * m.x) <= 1, "exp(u*x)"),
    "quotient": (lambda m, u: u / m.x <= 1, "u/x"),
    "absolute": (lambda m, u: abs(m.x - u) <= 1, "abs(x - u)"),
}


@pytest.mark.parametrize("case", NOT_LINEAR)
def test_terms_that_are_not_linear_are_shown(case):
    rule, term = NOT_LINEAR[case]
    m = small()
    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    with pytest.raises(errors.NotLinearError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        f"SemiInfiniteConstraint 'row': it is not linear in the variables (found {term}); offline only linear rows and "
        "objectives can be solved. Keep products and nonlinear functions of Vars out of it; if they belong to arrivals "
        "use compile_online(model, stages=...).solve_offline()."
    )


def test_a_variable_over_the_continuous_index():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.z = pyo.Var(m.u)
    m.cost = pyo.Objective(expr=m.z[0])
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.z[0] * u >= 1)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': the variable 'z' is indexed by the continuous set 'u'; a decision that is a "
        "function of the index needs a finite form, such as coefficients of basis functions."
    )


OPTIONS = {
    "method": (
        {"method": "magic"},
        "solve: method must be one of exchange, counterpart, discretized, projected (got 'magic').",
    ),
    "tolerance": ({"tolerance": 0}, "solve: tolerance must be a number between 0 and 1 (got 0)."),
    "time": ({"time_limit": -1}, "solve: time_limit must be a number of seconds > 0 (got -1)."),
    "iterations": ({"iteration_limit": 0}, "solve: iteration_limit must be a whole number >= 1 (got 0)."),
    "basis": (
        {"method": "exchange", "basis": osilp.RBF(10)},
        "solve: basis= is for method='projected' only (got it with method='exchange').",
    ),
    "grid": (
        {"method": "exchange", "grid": osilp.Midpoint(10)},
        "solve: method='exchange' works on the continuum and takes no grid=; use 'discretized'.",
    ),
    "component": (
        {"method": "discretized", "grid": {"other": osilp.Midpoint(10)}},
        "grid=: there is an entry for 'other', which is no active SemiInfiniteConstraint of the model; it has below.",
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(case):
    options, text = OPTIONS[case]
    with pytest.raises(errors.OptionError) as error:
        osilp.solve(tent(), **options)
    assert str(error.value) == text


GRIDS = {
    "no points": (lambda: osilp.Points([]), "Points: the grid is empty; give at least one point."),
    "zero count": (
        lambda: osilp.Midpoint(0),
        "Midpoint: the number of points along an axis must be a whole number >= 1 (got 0).",
    ),
    "nan": (
        lambda: osilp.Points([0.1, np.nan]),
        "Points: every coordinate must be a finite number (found nan or inf).",
    ),
    "weights": (
        lambda: osilp.Points([0.1, 0.2], weights=[1.0]),
        "Points: there must be one weight a point (got 1 weights for 2 points).",
    ),
    "outside": (
        lambda: osilp.solve(tent(), method="discretized", grid=[0.5, 2.0]),
        "Points(2 points): Index u in [0, 1]: the point u = 2 lies outside; give points within the bounds.",
    ),
    "other thing": (
        lambda: osilp.solve(tent(), method="discretized", grid="fine"),
        "grid: expected a grid such as Midpoint(500) or an array of points (got str).",
    ),
}


@pytest.mark.parametrize("case", GRIDS)
def test_bad_grids(case):
    action, text = GRIDS[case]
    with pytest.raises(errors.GridError) as error:
        action()
    assert str(error.value) == text


def test_a_grid_that_where_leaves_empty():
    m = small()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u >= 1, where=lambda m, u: u >= 0.999)
    with pytest.raises(errors.GridError) as error:
        osilp.solve(m, method="discretized", grid=osilp.Midpoint(10))
    assert str(error.value) == (
        "Midpoint(count=10) on u in [0, 1] where declared: no grid point is left (the 'where' condition is false at "
        "all of them); use a finer grid, or give points of the set by Points(...)."
    )


BASES = {
    "negative": (
        osilp.Functions(lambda u: u - 0.5),
        "Functions(1 functions): test functions must be finite and >= 0, or projecting is no relaxation; column 0 "
        "(<lambda>) is -0.499 at u = 0.001.",
    ),
    "zero": (
        osilp.Functions(np.ones_like, np.zeros_like),
        "Functions(2 functions): column 1 (zeros_like) is zero at every point of the grid on u in [0, 1], so it says "
        "nothing; use a finer grid or fewer test functions.",
    ),
    "too fine": (
        osilp.Indicator(600),
        "Indicator(count=600): column 2 (u = 0.004167) is zero at every point of the grid on u in [0, 1], so it says "
        "nothing; use a finer grid or fewer test functions.",
    ),
    "a number": (10, "basis: expected a basis such as RBF(10) or a list of functions of the index (got 10)."),
    "a class": (
        osilp.RBF,
        "basis: expected a basis such as RBF(10) or a list of functions of the index (got the class RBF; write RBF(...)).",
    ),
    "another class": (
        osilp.Midpoint,
        "basis: expected a basis such as RBF(10) or a list of functions of the index (got the class Midpoint).",
    ),
    "no basis": ("RBF", "basis: expected a basis such as RBF(10) or a list of functions of the index (got str)."),
}


@pytest.mark.parametrize("case", BASES)
def test_bad_bases(case):
    basis, text = BASES[case]
    m = packing(5)
    before = [m.x[t].value for t in m.T]
    with pytest.raises(errors.BasisError) as error:
        osilp.solve(m, method="projected", basis=basis, grid=osilp.Midpoint(500))
    assert str(error.value) == text
    assert [m.x[t].value for t in m.T] == before


def test_assignments_and_added_families():
    m = two_families()
    with pytest.raises(errors.DeclarationError) as assigned:
        m.cap["a"] = m.x["a"] <= 1
    assert str(assigned.value) == (
        "SemiInfiniteConstraint 'cap[a]': it cannot be assigned an expression, because an expression has no index; "
        "declare it anew with a rule."
    )
    with pytest.raises(errors.DeclarationError) as added:
        m.cap.add("a", m.x["a"] <= 1)
    assert str(added.value) == (
        "SemiInfiniteConstraint 'cap': families cannot be added one by one; declare it anew with a rule."
    )


def test_several_objectives():
    m = small()
    m.second = pyo.Objective(expr=-m.x)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == "The model has 2 active objectives (cost, second); deactivate all but one."


def test_a_component_that_is_no_linear_programming():
    m = small()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    m.sos = pyo.SOSConstraint(var=m.y, sos=1)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SOSConstraint 'sos': the model holds an active SOSConstraint, which is not linear programming; transform or "
        "deactivate it."
    )


def test_results_without_values():
    m = small()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    m.low = pyo.Constraint(expr=m.x <= 0.5)
    result = osilp.solve(m)
    assert result.status == "infeasible"
    assert m.x.value == 1.0
    with pytest.raises(errors.NoSolutionError) as error:
        _ = result.values
    assert str(error.value) == (
        "The result has no values: the exchange method ended with status 'infeasible'; result.conflict says what cannot "
        "hold together."
    )


def test_every_error_is_in_the_tree():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    ours = [kind for kind in kinds if not issubclass(kind, Warning)]
    assert all(issubclass(kind, errors.OsilpError) for kind in ours)
    assert all(kind.__name__ in errors.__doc__ for kind in ours)


def test_a_decorator_may_give_arguments_of_its_own():
    def scaled(rule):
        @functools.wraps(rule)
        def called(m, u):
            return rule(m, u, 2.0)

        return called

    m = small()

    @scaled
    def rule(m, u, scale):
        return m.x >= scale * u

    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    assert osilp.solve(m).values["x"] == pytest.approx(2.0)
