"""Solves that once gave a wrong answer or an error that explained nothing, and bad input to them."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from models import many_kinds, one_variable, snapshot, solved, tent
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import Profile, SemiInfiniteConstraint, errors
from osilp_pyomo.model.trace import trace_model
from osilp_pyomo.offline.exchange import ExchangeOptions
from osilp_pyomo.offline.methods import by_exchange


def test_limits_of_very_different_size_do_not_blind_the_search():
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.x * pyo.exp(-(((u - 0.3) / 0.05) ** 2)) <= 1 + pyo.exp(70 * (u - 0.45))
    )
    grid = osilp.Midpoint(1000)
    discretized = solved(m, method="discretized", grid=grid)
    dirac = solved(m, method="projected", grid=grid, basis=osilp.Dirac())
    assert discretized.objective == pytest.approx(dirac.objective, rel=1e-9)
    assert solved(m).objective == pytest.approx(1.0000275, abs=1e-6)


def test_an_ordinary_row_with_tiny_coefficients_is_kept():
    m = one_variable((0, None))
    m.x.setub(5e12)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * (1 + u) <= 1e14)
    m.total = pyo.Constraint(expr=1e-12 * m.x <= 1)
    assert solved(m).objective == pytest.approx(1e12)


@pytest.mark.parametrize("size", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("cost", [1.0, 1e-8])
def test_variables_in_farads(size, cost):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(3))
    m.cost = pyo.Objective(expr=cost * (m.x[0] + m.x[1] / 2 + m.x[2] / 3))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: (m.x[0] + m.x[1] * u + m.x[2] * u**2) / size >= pyo.exp(u))
    exact = 0.75 * np.exp(1 / 3) + 0.25 * np.e
    assert solved(m).objective / (cost * size) == pytest.approx(exact, rel=1e-7)


def test_small_prices_are_prices():
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: 1e13 * (1 + u) * m.x <= 1e13)
    assert solved(m).price.integrate(lambda u: 1e13) == pytest.approx(0.5)


def test_forms_of_one_variable_are_not_added_up():
    m = one_variable((0, 1000))
    m.T = pyo.RangeSet(3)
    m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.y = pyo.Var(m.T, bounds=(0, 1))
    m.row = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.x + sum({1: 1, 2: 2, 3: 2}[t] * m.a[t] * (1 + u) * m.y[t] for t in m.T) <= 1
    )
    with pytest.raises(errors.PriceError) as error:
        solved(m).price.of(a=1.0)
    assert str(error.value) == (
        "The price of 'row' cannot be asked for one arrival: the columns of 'y' have several forms; use integrate(h) "
        "with the column as a function h."
    )


def test_both_sides_of_a_jump_are_rows_of_their_own():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(2), bounds=(0, 9))
    m.gain = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: pyo.Expr_if(u <= 0.3003, m.x[0], m.x[1]) * (1 - abs(u - 0.3003)) <= 1
    )
    assert solved(m).objective == pytest.approx(2.0)


@pytest.mark.parametrize("cost", [1.0, 1e4, 1e6])
def test_the_size_of_the_cost_does_not_make_a_ray(cost):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(3))
    m.cost = pyo.Objective(expr=cost * sum(m.x[k] * 0.9**k for k in range(3)))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[k] * u**k for k in range(3)) >= pyo.exp(u))
    assert solved(m).objective == pytest.approx(cost * np.exp(0.9), rel=1e-7)


TOUCHING = """
import warnings
import numpy as np, pyomo.environ as pyo
from pyomo.dae import ContinuousSet
import osilp_pyomo as osilp

# Tight at one point z only: no finite set of rows without z bounds the objective, however close its points are.
for degree in (2, 3):
    for cost in 10.0 ** np.arange(8):
        for z in (0.1, 0.37, 0.9):
            m = pyo.ConcreteModel()
            m.u = ContinuousSet(bounds=(0, 1))
            m.x = pyo.Var(range(degree + 1))
            m.cost = pyo.Objective(expr=cost * sum(m.x[k] * z**k for k in m.x))
            m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[k] * u**k for k in m.x) >= pyo.exp(u))
            found = osilp.solve(m)
            error = abs(found.objective / (cost * np.exp(z)) - 1)
            assert found.status == "optimal" and error < 1e-6, (degree, cost, z, found.status, error)
print("all of them")
"""


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["Prescott", "Haswell", "SkylakeX"])
def test_the_last_bit_of_a_product_does_not_make_a_ray(kernel):
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
    ended = subprocess.run([sys.executable, "-c", TOUCHING], env=environment, capture_output=True, text=True)
    assert ended.stdout == "all of them\n", ended.stderr


def test_a_box_that_holds_the_lp_is_no_bound():
    # Every LP of the run leans on the box that keeps it from being unbounded: nothing is known of the optimum yet.
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(6))
    m.cost = pyo.Objective(expr=7.5 * sum(m.x[k] * 0.37**k for k in m.x))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[k] * u**k for k in m.x) >= pyo.exp(u))
    best = 7.5 * np.exp(0.37) * (1 + 1e-9)
    for most in range(1, 8):
        found = osilp.solve(m, iteration_limit=most)
        # Where there was no answer yet there is no bound either.
        assert not found.bound > best
        assert not any(found.log.get("bound", pd.Series(dtype=float)) > best)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e10])
@pytest.mark.parametrize("count", [3, 6])
def test_the_box_that_holds_the_lp_is_not_what_makes_it_infeasible(size, count):
    # A constant is feasible, and p(0.3) >= size * exp(0.3) bounds it.
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(count))
    m.cost = pyo.Objective(expr=sum(float(np.cos(0.3 * k)) * m.x[k] for k in m.x))
    m.row = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(pyo.cos(k * u) * m.x[k] for k in m.x) >= size * pyo.exp(u)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.AccuracyWarning)
        found = osilp.solve(m)
    assert found.status in ("optimal", "inaccurate", "infeasible_or_unbounded", "solver_error")
    if found.status == "optimal":
        assert found.objective == pytest.approx(size * np.exp(0.3), rel=1e-6)


def test_the_box_does_not_hold_integers():
    # n = 7 k stops at 994 in a box of 1000, and touches nothing.
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(9))
    m.n, m.k = pyo.Var(domain=pyo.Integers), pyo.Var(domain=pyo.Integers)
    m.w = pyo.Var(bounds=(0, 1))
    m.multiple = pyo.Constraint(expr=m.n == 7 * m.k)
    m.most = pyo.Constraint(expr=m.n + m.w <= 2003)
    m.cost = pyo.Objective(expr=-m.n + sum(0.77**k * m.x[k] for k in m.x))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(u**k * m.x[k] for k in m.x) >= pyo.exp(u))
    found = osilp.solve(m)
    if found.status == "optimal":
        assert found.objective == pytest.approx(-2002 + np.exp(0.77), rel=1e-6)
    else:
        assert found.status == "infeasible_or_unbounded"


def test_the_box_leaves_a_bound_where_it_is():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(4))
    m.a, m.b, m.w = pyo.Var(bounds=(1e4, None)), pyo.Var(bounds=(0, 1e6)), pyo.Var(bounds=(0, 1))
    m.below = pyo.Constraint(expr=m.b <= m.a)
    m.above = pyo.Constraint(expr=m.a - m.w >= 5e3)
    m.cost = pyo.Objective(expr=2 * m.a - 1.5 * m.b + sum(float(np.cos(0.77 * k)) * m.x[k] for k in m.x))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(pyo.cos(k * u) * m.x[k] for k in m.x) >= pyo.exp(u))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.AccuracyWarning)
        found = osilp.solve(m)
    if found.status in ("optimal", "inaccurate"):
        assert found.objective == pytest.approx(5000 + np.exp(0.77), rel=1e-5)
    else:
        assert found.status == "infeasible_or_unbounded"


def test_a_fine_grid_that_misses_the_tight_point_is_not_called_unbounded():
    # It is: but by a direction along which the objective falls by 1e-11 of its cost, which no LP in doubles can tell.
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(3))
    m.cost = pyo.Objective(expr=sum(m.x[k] * 0.3700001**k for k in m.x))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[k] * u**k for k in m.x) >= pyo.exp(u))
    found = osilp.solve(m, method="discretized", grid=osilp.Midpoint(200_000))
    assert found.status in ("optimal", "infeasible_or_unbounded")
    if found.status == "optimal":
        assert found.objective == pytest.approx(np.exp(0.3700001), rel=1e-6)


@pytest.mark.parametrize("width", [1e-5, 1e-3, 0.3])
def test_smoothing_keeps_all_mass(width):
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.x * (1 + (u - 0.5) ** 2) <= 5 - u, where=lambda m, u: u <= 0.7
    )
    price = solved(m).price
    assert price.smooth(width).total == pytest.approx(price.total, rel=1e-9)


def test_knots_behind_a_formula_are_seen():
    m = one_variable((0, 1000))
    knots = [-1, 0.5, 0.50001, 0.50002, 2]
    m.p = Profile(over=m.u, points=knots, initialize=[1, 1, 3, 1, 1])
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * m.p(1.2 * u - 0.1234) <= 5)
    assert solved(m).objective == pytest.approx(5 / 3)


def test_errors_on_an_unbounded_index_speak_of_the_users_index():
    m = one_variable((0, 1000))
    m.v = pyo.RangeSet(0, None, 0)
    m.row = SemiInfiniteConstraint(m.v, rule=lambda m, v: m.x * pyo.sqrt(100 - v) <= 50)
    with pytest.raises(errors.DataError) as error:
        osilp.solve(m)
    assert "keep the rule finite on v in [0, inf)" in str(error.value)


def test_results_with_a_condition_pickle_and_say_what_they_left_behind():
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * (1 + u) <= 5, where=lambda m, u: u <= 0.5)
    price = pickle.loads(pickle.dumps(solved(m, method="projected"))).price
    assert price.integrate(lambda u: 5.0) > 0
    with pytest.raises(errors.DomainError) as error:
        price(0.2)
    assert str(error.value) == (
        "Index u in [0, 1] where declared: its 'where' condition was left behind when the result was saved; solve the "
        "model again."
    )


@pytest.mark.parametrize("right", [0.0, 0.1 + 0.2 - 0.3, 1e-12, 1e-9])
@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
def test_a_limit_that_is_rounding_does_not_change_the_units(right, method):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(2), bounds=(0, 100))
    m.gain = pyo.Objective(expr=m.x[0] + 2 * m.x[1], sense=pyo.maximize)
    m.same = pyo.Constraint(expr=m.x[0] - m.x[1] == right)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[0] * (1 + u) + m.x[1] * (2 - u) <= 6)
    assert solved(m, method=method).objective == pytest.approx(6.0, abs=1e-6)


def test_prices_with_integers_fixed_do_not_freeze_the_search():
    """The audit finds a peak that the scan misses; the integers must still be free to move."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.n = pyo.Var(within=pyo.NonNegativeIntegers)
    m.y = pyo.Var(bounds=(0, 1))
    m.gain = pyo.Objective(expr=m.n + m.y, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.n + m.y <= 5.3 - 2 * pyo.exp(-(((u - 0.43814977695812674) / 1.2e-5) ** 2))
    )
    free = solved(m)
    fixed = solved(m, fix_integers=True)
    assert fixed.objective == pytest.approx(free.objective)
    assert fixed.price.total == pytest.approx(1.0)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_limit_is_not_a_ray(limit):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 2 * np.pi))
    m.a = pyo.Var(range(25))
    m.b = pyo.Var(range(1, 25))
    m.cost = pyo.Objective(expr=m.a[0])
    m.row = SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            sum(m.a[k] * pyo.cos(k * u) for k in m.a) + sum(m.b[k] * pyo.sin(k * u) for k in m.b) >= pyo.exp(pyo.sin(u))
        ),
    )
    assert osilp.solve(m, iteration_limit=limit).status == "iteration_limit"
    assert osilp.solve(m).status == "optimal"


@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
def test_small_coefficients_of_large_variables_are_kept(method):
    m = one_variable((0, 10))
    m.y = pyo.Var(bounds=(0, 1e12))
    m.gain.deactivate()
    m.both = pyo.Objective(expr=m.x + 1e-9 * m.y, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + 1e-10 * m.y * (1 + u) <= 1 + u)
    # Ten of the reward for each unit of the row: all of it goes to y.
    assert solved(m, method=method).objective == pytest.approx(10.0, rel=2e-2)


@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
def test_nan_coefficients(method):
    m = many_kinds()
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
    m = many_kinds()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 1 / u)
    with pytest.raises(errors.DataError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': the left-hand side is inf at u = 0; keep the rule finite on u in [0, 1], or "
        "leave such points out by 'where'."
    )


OPTIONS = {
    "method": (
        {"method": "magic"},
        "solve: method must be one of auto, exchange, counterpart, discretized, projected, column_generation "
        "(got 'magic').",
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


def test_results_without_values():
    m = many_kinds()
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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"time_limit": True}, "solve: time_limit must be a number of seconds > 0 (got True)."),
        ({"tolerance": True}, "solve: tolerance must be a number between 0 and 1 (got True)."),
        (
            {"solver": ["highs"]},
            "solve: solver must be one of 'auto', 'dual', 'highs', 'ipm', 'hipo', 'pdlp' (got ['highs']); another "
            "solver of Pyomo takes the rows that TransformationFactory('osilp.discretize') writes.",
        ),
        (
            {"method": np.array(["exchange", "x"])},
            "solve: method must be one of auto, exchange, counterpart, discretized, projected, column_generation (got "
            f"{np.array(['exchange', 'x'])!r}).",
        ),
    ],
)
def test_options_of_another_kind_are_refused_in_words(options, sentence):
    with pytest.raises(errors.OptionError) as error:
        osilp.solve(one_variable(), **options)
    assert str(error.value) == sentence


def test_a_time_limit_may_be_any_number():
    m = one_variable()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u <= 5)
    assert osilp.solve(m, time_limit=np.float32(30)).objective == pytest.approx(5.0)


@pytest.mark.parametrize("begun", [[-19.0, 30.0], [-20.0, 1e70], [-45.0, -20.0 - 1e-9]])
def test_exchange_begins_with_rows_of_the_index_only(begun):
    """Points that a counterpart points to are in the user's coordinates, and on an index without end a box is scanned."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var()
    m.cost = pyo.Objective(expr=m.y)
    index = pyo.RangeSet(-20, None, 0)
    m.row = SemiInfiniteConstraint(index, rule=lambda m, u: m.y >= 5 - u)
    found = by_exchange(trace_model(m).problem, ExchangeOptions(), begun=[np.array(begun)[:, None]])
    assert found.status == "optimal"
    assert found.objective == pytest.approx(25.0)
    assert found.bound == pytest.approx(25.0)


@pytest.mark.parametrize(
    "limit", [lambda u: (u + 1) ** 2 - u**2 - 2 * u - 1 / (1 + u), lambda u: (u**2 + 1) ** 2 - u**4 - 2 * u**2]
)
def test_rounding_that_binds_far_out_is_no_optimum(limit):
    """Terms that cancel on an index without end leave their rounding, which grows with them; the optimum is 1."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.y = pyo.Var()
    m.cost = pyo.Objective(expr=m.y)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.y >= limit(u))
    with pytest.warns(errors.AccuracyWarning, match="rounding of the row is worth"):
        result = osilp.solve(m)
    assert result.status == "inaccurate"
    assert not result.certified


def test_a_convex_row_that_does_not_bind_stands_beside_families():
    m = pyo.ConcreteModel()
    m.u, m.x = ContinuousSet(bounds=(0, 1)), pyo.Var([1, 2, 3], bounds=(0, 5))
    m.total = pyo.Objective(expr=pyo.quicksum(m.x.values()), sense=pyo.maximize)
    m.round = pyo.Constraint(expr=m.x[1] ** 2 + m.x[2] <= 1)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + 0.1 * t) * m.x[t] for t in m.x) * (1 + u) <= 2)
    result = solved(m)
    assert result.objective == pytest.approx(1 / 1.1)
    assert result.certified


def test_a_convex_model_is_solved_again_from_its_own_answer():
    value, weight, total = (
        [0.5975690819588868, 1.390653589794824, 1.2522048310714928, 1.2363468438373446],
        [0.90386703061315, 1.5129047988052626, 1.6987908117546366, 0.5009071241875536],
        3.7773704686237486,
    )
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y, m.v = pyo.Var(range(4), bounds=(0, 2.918081345815849)), pyo.Var(bounds=(-1, 1)), pyo.Var(bounds=(0, 2))
    m.gain = pyo.Objective(expr=sum(value[t] * m.x[t] for t in range(4)) + 0.1 * m.y + 0.2 * m.v, sense=pyo.maximize)
    m.most = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(weight[t] * m.x[t] for t in range(4)) + u * m.y <= 2 * total
    )
    m.first = SemiInfiniteConstraint(m.u, rule=lambda m, u: total * u * m.x[1] + m.x[0] <= 4)
    m.both = SemiInfiniteConstraint(m.u, rule=lambda m, u: (-2, pyo.cos(3 * weight[0] * u) * m.y + u * m.v, 1.5))
    m.round = SemiInfiniteConstraint(m.u, rule=lambda m, u: weight[0] * m.x[0] ** 2 + u * m.x[1] <= 2 * total)
    m.least = pyo.Constraint(expr=m.v + m.x[0] >= -0.5)
    first = solved(m, load=True)
    second = solved(m)
    assert (first.status, second.status, second.certified) == ("optimal", "optimal", True)
    assert second.objective == pytest.approx(first.objective, rel=1e-9)
