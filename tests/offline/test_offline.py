"""solve: three methods, one optimum, and certificates for it."""

import pickle
import re

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import line_above_square, measured_cap, one_variable, packing, tent, two_families, whole_number
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors

METHODS = ("exchange", "discretized", "projected")


def test_worked_by_hand():
    result = osilp.solve(line_above_square())
    assert result.objective == pytest.approx(0.5, abs=1e-9)
    np.testing.assert_allclose(result.price.atoms.to_numpy(), [[0, 0.5], [1, 0.5]], atol=1e-9)
    result = osilp.solve(tent())
    assert result.objective == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(result.price.atoms.to_numpy(), [[0.3, 1.0]], atol=1e-6)


def test_values_land_in_the_model_and_stay_in_the_result():
    m = line_above_square()
    result = osilp.solve(m, load=False)
    assert m.a.value is None
    result.load(m)
    assert m.b.value == pytest.approx(1.0)
    assert result.values["b"] == m.b.value
    other = m.clone()
    other.b.set_value(None)
    result.load(other)
    assert other.b.value == m.b.value


def test_results_pickle_without_the_model():
    result = pickle.loads(pickle.dumps(osilp.solve(packing())))
    assert result.status == "optimal"
    assert result.price.of(place=0.3) > 0


def test_loading_into_another_model_is_refused():
    result = osilp.solve(line_above_square())
    with pytest.raises(errors.ModelError) as error:
        result.load(tent())
    assert str(error.value) == ("The model has no variable 'a'; load the result into the model it was solved for.")


@pytest.mark.long
@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(20, 200),
    basis=st.sampled_from([osilp.RBF(5), osilp.Hat(6), osilp.BSpline(6), osilp.Bernstein(5), osilp.Indicator(6)]),
)
def test_projecting_relaxes_discretizing_relaxes(seed, count, basis):
    m = packing(25, seed)
    grid = osilp.Midpoint(count)
    projected = osilp.solve(m, method="projected", grid=grid, basis=basis)
    discretized = osilp.solve(m, method="discretized", grid=grid)
    exact = osilp.solve(m)
    slack = 1e-8 * (1 + abs(exact.objective))
    assert projected.objective >= discretized.objective - slack
    assert discretized.objective >= exact.objective - slack
    assert exact.bound >= exact.objective - slack
    assert exact.gap <= 1e-6 * (1 + abs(exact.objective))
    # A feasible value: shrink any point until it fits everywhere.
    fitting = min(1.0, 25 * 0.04 / 25)
    assert exact.objective >= fitting * sum(m.value[t].value for t in m.T) - slack


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.integers(3, 40))
def test_nested_grids_are_monotone(seed, count):
    m = packing(20, seed)
    coarse = osilp.solve(m, method="discretized", grid=osilp.Midpoint(count))
    # Midpoints of three times as many cells contain the midpoints of the coarse ones.
    fine = osilp.solve(m, method="discretized", grid=osilp.Midpoint(3 * count))
    assert fine.objective <= coarse.objective + 1e-8


def test_dirac_makes_projected_the_discretized_method():
    m = packing()
    grid = osilp.Midpoint(60)
    dirac = osilp.solve(m, method="projected", grid=grid, basis=osilp.Dirac())
    discretized = osilp.solve(m, method="discretized", grid=grid)
    assert dirac.objective == pytest.approx(discretized.objective, abs=1e-8)
    assert list(dirac.price.atoms.columns) == ["u", "weight"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sense", [pyo.maximize, pyo.minimize])
@pytest.mark.parametrize("form", ["<=", ">=", "ranged"])
def test_prices_have_the_sign_of_the_right_hand_side(method, sense, form):
    """integrate(h) is the derivative of the objective when the right-hand side moves by h."""

    def solve_with(step):
        m = pyo.ConcreteModel()
        m.u = ContinuousSet(bounds=(0, 1))
        m.x = pyo.Var(range(3), bounds=(-5, 5))
        m.cost = pyo.Objective(expr=m.x[0] + 0.4 * m.x[1] + 0.2 * m.x[2], sense=sense)

        def row(m, u):
            body = m.x[0] + m.x[1] * u + m.x[2] * u**2
            moved = step * (1 + pyo.sin(3 * u))
            if form == "<=":
                return body <= 1 + pyo.exp(u) + moved
            if form == ">=":
                return body >= -1 - pyo.exp(u) + moved
            return (-1 - pyo.exp(u) + moved, body, 1 + pyo.exp(u) + moved)

        m.row = SemiInfiniteConstraint(m.u, rule=row)
        options = {} if method == "exchange" else {"grid": osilp.Midpoint(300)}
        return osilp.solve(m, method=method, tolerance=1e-11, **options)

    price = solve_with(0.0).price
    step = 1e-5
    slope = (solve_with(step).objective - solve_with(-step).objective) / (2 * step)
    assert price.integrate(lambda u: 1 + np.sin(3 * u)) == pytest.approx(slope, abs=2e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sense", [pyo.maximize, pyo.minimize])
def test_duals_and_reduced_costs_have_pyomo_signs(method, sense):
    def build(step=0.0, bound_step=0.0):
        m = pyo.ConcreteModel()
        m.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
        m.rc = pyo.Suffix(direction=pyo.Suffix.IMPORT)
        sign = 1 if sense == pyo.maximize else -1
        m.u = ContinuousSet(bounds=(0, 1))
        m.x = pyo.Var(range(2))
        m.x[1].setub(0.3 + bound_step)
        m.x[0].setlb(-9)
        m.x[1].setlb(-9)
        m.gain = pyo.Objective(expr=sign * (2 * m.x[0] + m.x[1]), sense=sense)
        m.total = pyo.Constraint(expr=m.x[0] + m.x[1] <= 1.2 + step)
        m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[0] - m.x[1] * u <= 50 + u)
        return m

    m = build()
    result = osilp.solve(m, method=method)
    h = 1e-3
    slope = (osilp.solve(build(h), method=method).objective - osilp.solve(build(-h), method=method).objective) / (2 * h)
    assert result.dual(m.total) == pytest.approx(slope, abs=1e-6)
    assert m.dual[m.total] == result.dual(m.total)
    reference = build()
    reference.row.deactivate()
    pyo.SolverFactory("appsi_highs").solve(reference)
    assert m.dual[m.total] == pytest.approx(reference.dual[reference.total])
    assert m.rc[m.x[1]] == pytest.approx(reference.rc[reference.x[1]])


def test_duals_of_semi_infinite_rows_are_prices():
    m = tent()
    result = osilp.solve(m)
    with pytest.raises(errors.PriceError) as error:
        result.dual(m.below)
    assert str(error.value) == (
        "'below' is no ordinary constraint of the solved model; semi-infinite ones have result.price."
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_audit_closes_the_gap(method):
    result = osilp.solve(packing(), method=method)
    assert result.audit.gap <= 1e-6 * (1 + result.objective)
    assert result.audit.dual_infeasibility <= 1e-8
    assert result.audit.ordinary_violation <= 1e-9
    frame = result.audit.to_frame()
    assert list(frame.columns) == ["points", "violation", "relative_violation"]
    assert frame.loc["usage", "points"] > 2000


def test_several_families_are_keyed_by_name_and_component():
    m = two_families()
    result = osilp.solve(m)
    assert list(result.violation) == ["cap[a]", "cap[b]"]
    assert result.worst_index[m.cap["b"]] == pytest.approx(1.0)
    assert result.price["cap[a]"].total == pytest.approx(1.0)
    with pytest.raises(KeyError):
        result.price["other"]


def test_grids_and_bases_by_family():
    m = two_families()
    grids = {m.cap["a"]: osilp.Midpoint(4), "cap[b]": osilp.Points([0.5])}
    result = osilp.solve(m, method="discretized", grid=grids)
    assert result.objective == pytest.approx(2.125 + 2.5)
    by_component = osilp.solve(m, method="discretized", grid={m.cap: osilp.Points([0.25])})
    assert by_component.objective == pytest.approx(2.25 + 2.75)
    bases = osilp.solve(m, method="projected", basis={m.cap["a"]: osilp.Hat(3), m.cap["b"]: osilp.Dirac([1.0])})
    assert bases.price["cap[b]"].atoms["u"].tolist() == [1.0]
    assert bases.price["cap[a]"](0.0) > 0


def test_discretized_and_exchange_meet_when_the_grid_holds_the_binding_points():
    grid = osilp.Points([0.0, 0.5, 1.0])
    assert osilp.solve(line_above_square(), method="discretized", grid=grid).feasible


@pytest.mark.parametrize("method", METHODS)
def test_integer_variables(method):
    options = {} if method == "exchange" else {"grid": osilp.Points([0.0, 0.5, 1.0])}
    if method == "projected":
        options["basis"] = osilp.Dirac()
    m = whole_number()
    result = osilp.solve(m, method=method, **options)
    assert result.objective == 3
    assert m.n.value == 3
    with pytest.raises(errors.PriceError) as error:
        _ = result.price
    assert str(error.value) == (
        "A model with integer variables has no prices; solve with fix_integers=True (and time enough) for those at the integers found."
    )
    priced = osilp.solve(m, method=method, fix_integers=True, **options)
    assert priced.price.total == pytest.approx(0.0)


def test_no_semi_infinite_rows_is_an_ordinary_lp():
    m = tent()
    m.below.deactivate()
    m.x.setub(4)
    result = osilp.solve(m)
    assert (result.status, result.objective, len(result.price)) == ("optimal", 4.0, 0)


def test_no_objective_asks_for_any_feasible_point():
    m = tent()
    m.height.deactivate()
    result = osilp.solve(m)
    assert result.status == "optimal"
    assert result.violation <= 1e-9


def test_limits_are_statuses():
    m = packing(60)
    assert osilp.solve(m, iteration_limit=2).status == "iteration_limit"
    assert osilp.solve(m, time_limit=1e-4).status == "time_limit"


@pytest.mark.parametrize("limit", [7, 8, 9, 10, 11])
def test_prices_of_an_early_end_belong_to_its_bound(limit):
    """Rows are dropped and added between the last solve and the end; duals must stay with their points."""
    result = osilp.solve(packing(300, seed=3), iteration_limit=limit)
    assert result.audit.dual_bound == pytest.approx(result.bound, rel=1e-8)


def test_memory_stays_far_below_the_matrix():
    m = packing(40)
    count = 200_000
    result = osilp.solve(m, method="projected", grid=osilp.Midpoint(count), basis=osilp.Indicator(8))
    assert result.memory < 0.5 * count * 40 * 8


def test_the_model_is_left_as_it_was():
    m = packing(10)
    m.more = pyo.Constraint(expr=m.x[1] + m.x[2] <= 1)
    before = {c.name: (type(c), getattr(c, "active", None)) for c in m.component_objects()}
    bounds = [(m.x[t].lb, m.x[t].ub, m.x[t].fixed) for t in m.T]
    for method in METHODS:
        osilp.solve(m, method=method)
    assert {c.name: (type(c), getattr(c, "active", None)) for c in m.component_objects()} == before
    assert [(m.x[t].lb, m.x[t].ub, m.x[t].fixed) for t in m.T] == bounds


def test_it_prints_what_it_found(capsys):
    result = osilp.solve(measured_cap(), tee=True)
    out = capsys.readouterr().out
    assert "iteration            bound  violation   rows  added  seconds" in out
    lines = str(result).splitlines()
    assert lines[0].startswith("exchange: optimal in ")
    assert lines[1] == "  objective  0.5 (maximize)"
    assert lines[2].startswith("  bracket    [0.5, 0.5], gap ")
    assert lines[3].startswith("  violation  none of 'below', which is tightest at u = 0.4")
    assert lines[4] == "  price      1 a unit of right-hand side of 'below', on 1 point of u in [0, 1]"
    assert re.fullmatch(
        r"  proof      no row is violated (anywhere|by more than [\d.]+e-1\d) on the whole index \(\d+ boxes, [\d.e-]+ s\)",
        lines[5],
    )


def wavy():
    """A polynomial above a function that needs several iterations."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(6))
    m.area = pyo.Objective(expr=sum(m.x[k] / (k + 1) for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def above(m, u):
        return sum(m.x[k] * u**k for k in m.x) >= pyo.exp(u) * pyo.sin(7 * u)

    return m


def test_a_bound_is_no_bracket():
    """Rows at grid points or on test functions, or not satisfied yet, leave one end of the bracket open."""
    for model, low, high in ((packing(), -np.inf, None), (wavy(), None, np.inf)):
        exact = osilp.solve(model)
        for options in ({"method": "discretized"}, {"method": "projected"}, {"iteration_limit": 1}):
            result = osilp.solve(model, **options)
            bound = result.bound
            assert result.bracket == ((low, bound) if high is None else (bound, high))
            assert result.gap == np.inf
            assert result.bracket[0] <= exact.objective <= result.bracket[1]
        text = f"not {'above' if high is None else 'below'} {bound:.10g}; stopped early, no feasible values yet"
        assert str(result).splitlines()[2] == f"  bound      the optimum is {text}"


def test_a_discretized_answer_that_violates_nothing_is_an_optimum():
    m = one_variable()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * (1 + u) <= 2)
    result = osilp.solve(m, method="discretized", grid=[0, 0.5, 1])
    assert result.certified
    assert result.bracket == (1.0, 1.0)
    assert str(result).splitlines()[2] == "  bracket    [1, 1], gap 0; feasible values"


def test_the_index_is_named_beside_integers_too():
    m = tent()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 1))
    text = str(osilp.solve(m))
    assert "'below', which is tightest at u = " in text


def test_a_model_without_an_objective_says_so():
    m = tent()
    m.height.deactivate()
    result = osilp.solve(m)
    assert str(result).splitlines()[2] == (
        "  remark     the model has no active objective: any feasible values are an answer"
    )


@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
@pytest.mark.parametrize("tiny", [1e-8, 1e-9, 1e-10, 1e-11])
def test_coefficients_beside_much_larger_ones_bound(tiny, method):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(), pyo.Var(bounds=(-1, 3))
    m.gain = pyo.Objective(expr=tiny * m.x, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.y + tiny * m.x <= 5 + 0 * u)
    result = osilp.solve(m, method)
    assert (result.status, result.objective) == ("optimal", pytest.approx(6.0))


def test_coefficients_that_are_left_out_are_told():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(), pyo.Var(bounds=(-1, 3))
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.y + 1e-14 * m.x <= 5 + u)
    result = osilp.solve(m)
    assert result.status == "undecided"
    assert str(result).endswith(
        "\n  remark     HiGHS left out coefficients that are tiny beside others of their row, which may be why; measure "
        "variables in units that bring them nearer to each other"
    )


@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
@pytest.mark.parametrize("tiny", [1e-8, 1e-9, 1e-10, 1e-11])
def test_coefficients_beside_much_larger_ones_count(tiny, method):
    """y >= -1 is possible only because x may be as large as it has to."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(-1, 3))
    m.cost = pyo.Objective(expr=m.y)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.y + tiny * m.x >= 5 + u)
    result = osilp.solve(m, method)
    assert (result.status, result.objective) == ("optimal", pytest.approx(-1.0))


def test_without_an_answer_it_says_why():
    m = tent()
    m.much = pyo.Constraint(expr=m.x >= 3)
    text = str(osilp.solve(m))
    assert text.splitlines()[0].endswith(" s; no values satisfy all rows, ordinary constraints and bounds together")
    assert osilp.solve(m).bracket == (-np.inf, np.inf)
    m.much.deactivate()
    m.below.deactivate()
    text = str(osilp.solve(m))
    assert text.endswith(" s; the objective grows without limit: a row or a bound that stops it is missing")


def test_without_semi_infinite_rows_every_method_is_exact():
    m = tent()
    m.below.deactivate()
    m.x.setub(3)
    for method in ("exchange", "discretized", "projected"):
        result = osilp.solve(m, method=method)
        assert result.bracket == (3.0, 3.0)
        assert "grid points" not in str(result)


def test_several_families_ask_for_a_choice():
    result = osilp.solve(two_families())
    with pytest.raises(AttributeError) as missing:
        result.violation.largest  # noqa: B018
    assert str(missing.value) == "'FamilyMap' object has no attribute 'largest'"
    with pytest.raises(AttributeError) as caught:
        result.price.atoms  # noqa: B018
    assert str(caught.value) == (
        "There are several families (cap[a], cap[b]), each with its own; choose one first, such as ['cap[a]'].atoms."
    )


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_unbounded_indices(dimension):
    """Largest x with x <= 1 + |u - (1, 2, ...)|^2 on a half-line, a quadrant, an octant: 1."""
    m = pyo.ConcreteModel()
    m.sets = [pyo.RangeSet(0, None, 0) for _ in range(dimension)]
    m.x = pyo.Var()
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(
        *m.sets, rule=lambda m, *u: m.x <= 1 + sum((u[k] - k - 1) ** 2 for k in range(dimension))
    )
    result = osilp.solve(m)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(1.0, abs=1e-6)
    place = np.atleast_1d(result.worst_index)
    np.testing.assert_allclose(place, np.arange(dimension) + 1, atol=1e-3)


def test_the_tail_of_an_unbounded_index_counts():
    """min b with a + b u >= u on [0, inf) needs b >= 1, which only the tail says."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.a = pyo.Var(bounds=(0, 100))
    m.b = pyo.Var(bounds=(0, None))
    m.cost = pyo.Objective(expr=m.b)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.a + m.b * u >= u)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(1.0, abs=1e-6)
    sampled = osilp.solve(m, method="discretized", grid=osilp.Points([0, 10, 1000]))
    assert sampled.objective == pytest.approx(0.9)


def test_narrow_pieces_are_seen():
    m = tent()
    m.del_component(m.below)
    m.below = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.x <= pyo.Expr_if(pyo.inequality(0.123456, u, 0.123457), 0.5, 1 + u)
    )
    assert osilp.solve(m).objective == pytest.approx(0.5)


@pytest.mark.parametrize("width", [1e-2, 1e-3])
def test_narrow_peaks_are_found(width):
    m = tent()
    m.del_component(m.below)
    m.below = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.x <= 1 - 0.5 * pyo.exp(-(((u - 0.71234567) / width) ** 2))
    )
    assert osilp.solve(m).objective == pytest.approx(0.5, abs=1e-8)
