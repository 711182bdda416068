"""LPs of few rows and many columns: certificates, laws, and the same answers as HiGHS on everything."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import packing
from pyomo.dae import ContinuousSet
from scipy import sparse

import osilp_pyomo as osilp
from osilp_pyomo.errors import OptionError
from osilp_pyomo.lp import smoothed_dual
from osilp_pyomo.lp import wide as wide_lp
from osilp_pyomo.lp.columns import DenseColumns
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.models import WideModel, lp_model
from osilp_pyomo.lp.scaling import Scaling
from osilp_pyomo.lp.wide import solve_all_columns, solve_wide
from osilp_pyomo.offline import problem
from osilp_pyomo.offline.search import scan as search
from osilp_pyomo.online.hindsight.lp import stage_lp
from osilp_pyomo.online.sampling.problem import solve_sample

KINDS = ("plain", "any sign", "finite support", "many sizes", "bounds", "sparse", "whole numbers", "equations")


@pytest.fixture
def small_steps(monkeypatch):
    """Samples, bands and thresholds at sizes that a test can afford."""
    take_small_steps(monkeypatch)


def take_small_steps(patch):
    patch.setattr(wide_lp, "_AT_ONCE", 300)
    patch.setattr(wide_lp, "_BAND", 20)
    patch.setattr(wide_lp, "_BAND_PER_ROW", 4)


def wide_problem(kind, seed, columns=None, rows=None):
    """Columns, budget and floor of a random LP."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(400, 2500)) if columns is None else columns
    q = int(rng.integers(1, 9)) if rows is None else rows
    values = rng.normal(1, 1, count)
    matrix = np.abs(rng.normal(4, 1, (count, q))) * rng.uniform(0.5, 1.5, (count, 1))
    lower, upper, floor = np.zeros(count), np.ones(count), np.zeros(q)
    if kind == "any sign":
        matrix = rng.normal(0, 1, (count, q))
    elif kind == "finite support":
        which = rng.integers(0, 12, count)
        values, matrix = values[which], matrix[which]
    elif kind == "many sizes":
        matrix = matrix * np.exp(rng.normal(0, 3, (count, 1)))
        values = matrix.sum(axis=1) * rng.uniform(0, 1, count)
    elif kind == "bounds":
        lower = rng.uniform(-2, 1, count)
        upper = lower + rng.exponential(1, count)
    elif kind == "sparse":
        matrix = matrix * (rng.random((count, q)) < 0.2)
    elif kind == "whole numbers":
        values, matrix = np.round(3 * values), np.round(matrix)
    elif kind == "equations":
        floor[rng.random(q) < 0.5] = -np.inf
    point = rng.uniform(0, 1) * rng.random(count) * (upper - lower) + lower
    return DenseColumns(values, matrix, lower, upper), point @ matrix, floor


def assert_certified(columns, budget, floor, answer, x):
    """The decisions keep rows and bounds, the dual proves that none are better, and they are a vertex."""
    size = np.abs(budget) + np.abs(columns.matrix).max(axis=0)
    over = (x @ columns.matrix - budget) / np.where(size > 0, size, 1.0)
    assert np.all(np.where(np.isfinite(floor), over, np.abs(over)) <= 1e-8)
    assert np.all((x >= columns.lower) & (x <= columns.upper))
    objective, scale = x @ columns.values, 1 + abs(x @ columns.values)
    assert answer.objective == pytest.approx(objective, abs=1e-9 * scale)
    assert np.all(answer.dual >= floor)
    margin = columns.values - columns.matrix @ answer.dual
    bound = budget @ answer.dual + margin @ np.where(margin > 0, columns.upper, columns.lower)
    assert answer.bound == pytest.approx(bound, abs=1e-9 * scale)
    assert bound - objective <= 1e-8 * scale
    between = (x > columns.lower + 1e-9) & (x < columns.upper - 1e-9)
    assert between.sum() <= len(budget)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.floats(0, 1), max_size=3))
def test_certificate_and_highs(kind, seed, cuts):
    with pytest.MonkeyPatch.context() as patch:
        take_small_steps(patch)
        columns, budget, floor = wide_problem(kind, seed)
        places = [0, *sorted(int(cut * len(columns)) for cut in cuts), len(columns)]
        blocks = [columns.take(np.arange(first, last)) for first, last in pairwise(places)]
        answer = solve_wide(blocks, budget, floor)
    status, whole = solve_all_columns(columns, budget, floor)
    assert answer.status == status == "optimal"
    x = np.concatenate([answer.decisions(block, number) for number, block in enumerate(blocks)])
    assert_certified(columns, budget, floor, answer, x)
    objective = whole.x @ columns.values
    assert answer.objective == pytest.approx(objective, abs=1e-8 * (1 + abs(objective)))


def test_worked_by_hand(small_steps):
    # Values 1 ... 1000, each uses 1 of 10.5: the ten dearest whole, the eleventh half, at the price 990.
    count = 1000
    columns = DenseColumns(np.arange(1.0, count + 1), np.ones((count, 1)), np.zeros(count), np.ones(count))
    answer = solve_wide([columns], np.array([10.5]), np.zeros(1))
    x = answer.decisions(columns, 0)
    assert answer.dual == pytest.approx([990.0])
    assert answer.objective == pytest.approx(sum(range(991, 1001)) + 495.0)
    assert x[-11:] == pytest.approx([0.5] + [1.0] * 10)
    assert not x[:-11].any()


@pytest.mark.parametrize("blocks", [1, 7])
def test_blocks_and_order_do_not_matter(blocks):
    columns, budget, floor = wide_problem("plain", 3, 60_000, 5)
    parts = [columns.take(places) for places in np.array_split(np.arange(len(columns)), blocks)]
    calls = []

    def backwards(function, every):
        calls.append(function)
        results = [function(block) for block in reversed(every)]
        return results[::-1]

    one, other = solve_wide(parts, budget, floor), solve_wide(parts, budget, floor, run=backwards)
    assert one.objective == other.objective
    assert np.array_equal(one.dual, other.dual)
    assert len(calls) == one.passes <= 4
    x = np.concatenate([one.decisions(part, number) for number, part in enumerate(parts)])
    assert_certified(columns, budget, floor, one, x)


def test_equal_columns_are_one(small_steps):
    columns, budget, floor = wide_problem("finite support", 8, 5_000, 3)
    answer = solve_wide([columns], budget, floor)
    assert_certified(columns, budget, floor, answer, answer.decisions(columns, 0))
    first, group, counts = wide_lp._equal_columns(columns)
    assert len(first) == len(counts) <= 12
    assert np.array_equal(columns.matrix[first][group], columns.matrix)
    assert counts.sum() == len(columns)


@pytest.mark.parametrize("count", [200, 3000])
def test_infeasible_and_idle(small_steps, count):
    columns, budget, floor = wide_problem("plain", 1, count, 3)
    assert solve_wide([columns], -np.abs(budget) - 1, floor).status == "infeasible"
    assert solve_wide([columns], budget, np.full(3, -np.inf)).status == "optimal"
    nothing = solve_wide([columns], np.zeros(3), floor)
    assert (nothing.status, nothing.objective) == ("optimal", 0.0)
    plenty = solve_wide([columns], budget * 1e6, floor)
    assert plenty.objective == pytest.approx(np.maximum(columns.values, 0).sum())
    assert not plenty.dual.any()


def test_unbounded_columns(small_steps):
    columns, budget, floor = wide_problem("plain", 2, 2000, 3)
    upper = columns.upper.copy()
    upper[::500] = np.inf
    opened = DenseColumns(columns.values, columns.matrix, columns.lower, upper)
    answer, whole = solve_wide([opened], budget, floor), solve_all_columns(opened, budget, floor)[1]
    assert answer.objective == pytest.approx(whole.x @ columns.values, rel=1e-9)
    endless = DenseColumns(np.abs(columns.values), -columns.matrix, columns.lower, upper)
    assert solve_wide([endless], budget, floor).status == "unbounded"


def test_more_ties_than_the_band_holds():
    # Every value is twice its use: at the dual 2 all columns tie, and nearly all lie outside of the band.
    rng = np.random.default_rng(0)
    use = rng.uniform(0.5, 1.5, 5000)
    columns = DenseColumns(2 * use, use[:, None], np.zeros(5000), np.ones(5000))
    for dual in (None, np.array([2.0])):
        answer = solve_wide([columns], np.array([3000.0]), np.zeros(1), dual)
        assert answer.objective == pytest.approx(6000.0)
        assert answer.bound == pytest.approx(6000.0)
        assert answer.dual == pytest.approx([2.0])


def test_fixed_columns_that_cancel(small_steps):
    # The equation holds, up to the rounding of its sum.
    rng = np.random.default_rng(1)
    fixed = rng.normal(0, 1, 600)
    columns = DenseColumns(
        np.ones(1200), np.concatenate([fixed, -fixed])[:, None], np.full(1200, 0.3), np.full(1200, 0.3)
    )
    assert solve_wide([columns], np.zeros(1), np.full(1, -np.inf)).status == "optimal"


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e9])
def test_values_of_any_unit(small_steps, unit):
    columns, budget, floor = wide_problem("plain", 9, 2000, 3)
    small = DenseColumns(columns.values * unit, columns.matrix, columns.lower, columns.upper)
    answer = solve_wide([small], budget, floor)
    assert answer.objective / unit == pytest.approx(solve_wide([columns], budget, floor).objective, rel=1e-9)
    assert answer.bound == pytest.approx(answer.objective, rel=1e-8)


@pytest.mark.parametrize("kind", ["infeasible", "unbounded"])
def test_columns_of_zeros_are_never_near(small_steps, kind):
    columns, budget, floor = wide_problem("any sign", 3, 1500, 3)
    columns.matrix[:10] = 0.0
    upper = columns.upper.copy()
    if kind == "unbounded":
        upper[:] = np.inf
        columns.matrix[:] = -np.abs(columns.matrix)
    else:
        budget = np.append(budget[:2], -1e5)
        columns.matrix[:, 2] = np.abs(columns.matrix[:, 2])
    answer = solve_wide([DenseColumns(columns.values, columns.matrix, columns.lower, upper)], budget, floor)
    assert answer.status == kind
    assert answer.passes < 10


def test_without_rows():
    columns = DenseColumns(np.array([1.0, -1.0]), np.empty((2, 0)), np.zeros(2), np.ones(2))
    answer = solve_wide([columns], np.empty(0), np.empty(0))
    assert answer.decisions(columns, 0).tolist() == [1.0, 0.0]
    many = DenseColumns(np.arange(-1500.0, 1500.0), np.empty((3000, 0)), np.zeros(3000), np.ones(3000))
    assert solve_wide([many], np.empty(0), np.empty(0)).objective == sum(range(1500))


def test_deadline(monkeypatch):
    columns, budget, floor = wide_problem("plain", 3, 2000, 3)
    assert solve_wide([columns], budget, floor, deadline=0.0).status == "time_limit"
    # The time may also be over while HiGHS works.
    monkeypatch.setattr(wide_lp, "solve_all_columns", lambda *arguments: ("time_limit", None))
    assert solve_wide([columns], budget, floor, deadline=np.inf).status == "time_limit"


def test_a_scan_that_is_updated(monkeypatch):
    """A scan from the last one is that from nothing."""
    monkeypatch.setattr(search, "CACHE_BYTES", 0)
    monkeypatch.setattr(problem, "_MANY_COLUMNS", 10)
    m = packing(60, seed=2)
    program = osilp.compile_online(m, stages=m.T)
    family = stage_lp(program.evaluator, program.arrivals(), np.ones(60)).families[0]
    looking = search.FiniteSearch(family, np.linspace(0, 1, 50)[:, None])
    rng = np.random.default_rng(0)
    x = np.where(rng.random(60) < 0.5, 1.0, 0.0)
    for _ in range(30):
        found = looking.worst(x)
        direct = family.excess(found.points, x)
        np.testing.assert_allclose(found.excess, direct, rtol=1e-12, atol=1e-12)
        # The caller's own array may change.
        x[rng.integers(0, 60, 3)] = rng.random(3)


def test_the_two_passes_are_one():
    columns, budget, _ = wide_problem("many sizes", 4, 900, 4)
    rng = np.random.default_rng(0)
    dual, rounding = rng.uniform(0, 0.3, 4), rng.uniform(1e-6, 1, len(columns))
    results = []
    for function in (smoothed_dual._pass_loop, smoothed_dual._pass_numpy):
        slope, curvature = budget.copy(), np.zeros((4, 4))
        results.append((*function(columns.values, columns.matrix, columns.upper, rounding, dual, slope, curvature),
                        slope, curvature))  # fmt: skip
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


# -- as a model to which rows are added --------------------------------------------------------------------


def finite_lp(columns, maximize, matrix, lower, upper):
    count = len(columns)
    cost = columns.values if maximize else -columns.values
    return FiniteLP(
        maximize=maximize,
        cost=cost,
        offset=3.0,
        column_lower=columns.lower,
        column_upper=columns.upper,
        matrix=sparse.csr_array(matrix),
        row_lower=lower,
        row_upper=upper,
        column_names=[f"x{k}" for k in range(count)],
        row_names=[f"c{k}" for k in range(len(lower))],
    )


@pytest.mark.parametrize("maximize", [True, False])
def test_model_as_highs(maximize):
    columns, budget, _ = wide_problem("bounds", 5, 1500, 6)
    # A row with two limits, an equation, one with a lower limit, and three added with an upper one.
    lower = np.array([budget[0] - 50, budget[1], budget[2], -np.inf, -np.inf, -np.inf])
    upper = np.array([budget[0] - 10, budget[1], np.inf, *budget[3:]])
    lp = finite_lp(columns, maximize, columns.matrix.T[:3], lower[:3], upper[:3])
    models = WideModel(lp, Scaling.none(lp)), HighsModel(lp)
    for model in models:
        assert np.array_equal(model.add_rows(np.arange(1500), columns.matrix.T[3:], lower[3:], upper[3:]), [3, 4, 5])
    for dropped in ([], [4]):
        for model in models:
            if dropped:
                model.delete_rows(np.array(dropped))
        wide, highs = (model.solve() for model in models)
        assert wide.status == highs.status == "optimal"
        assert wide.objective == pytest.approx(highs.objective, rel=1e-9)
        np.testing.assert_allclose(wide.row_duals, highs.row_duals, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(wide.reduced_costs, highs.reduced_costs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("which", ["all", "last", "free"])
def test_rows_with_lower_limits(maximize, which):
    """Rows that ask for so much at least: all of them, or those behind one with an upper limit; or none that ask."""
    columns, budget, _ = wide_problem("any sign", 11, 1200, 3)
    lower, upper = 0.5 * budget - 10, np.full(3, np.inf)
    if which == "last":
        lower[0], upper[0] = -np.inf, budget[0]
    elif which == "free":
        lower[:] = -np.inf
    lp = finite_lp(columns, maximize, columns.matrix.T, lower, upper)
    wide, highs = WideModel(lp, Scaling.none(lp)).solve(), HighsModel(lp).solve()
    assert wide.status == highs.status == "optimal"
    assert wide.objective == pytest.approx(highs.objective, rel=1e-9)
    np.testing.assert_allclose(wide.row_duals, highs.row_duals, rtol=1e-6, atol=1e-9)


def test_covering_from_a_model():
    """The least cost of covering every point, from 6,000 columns on by the dual, as by HiGHS."""
    rng = np.random.default_rng(0)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.cost = pyo.Param(m.T, mutable=True)
    m.place = pyo.Param(m.T, mutable=True)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.total = pyo.Objective(expr=sum(m.cost[t] * m.x[t] for t in m.T))

    @m.SemiInfiniteConstraint(m.u)
    def covered(m, u):
        return sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T) >= 200 + 50 * u

    program = osilp.compile_online(m, stages=m.T, horizon=6000, grid=osilp.Midpoint(60))
    frame = pd.DataFrame({"cost": rng.uniform(0.1, 1, 6000), "place": rng.uniform(size=6000)})
    auto, highs = (program.solve_offline(frame, "projected", solver=solver) for solver in ("auto", "highs"))
    chunked = program.solve_offline([frame], "projected")
    assert auto.status == highs.status == chunked.status == "optimal"
    assert auto.objective == pytest.approx(highs.objective, rel=1e-8)
    assert chunked.objective == pytest.approx(highs.objective, rel=1e-8)
    assert auto.price.total == pytest.approx(highs.price.total, rel=1e-6)


def test_a_row_over_some_columns():
    columns, budget, _ = wide_problem("plain", 6, 1000, 2)
    lp = finite_lp(columns, True, columns.matrix.T, np.full(2, -np.inf), budget)
    models = WideModel(lp, Scaling.none(lp)), HighsModel(lp)
    for model in models:
        model.add_rows(np.arange(0, 1000, 3), np.ones((1, 334)), np.array([-np.inf]), np.array([20.0]))
    wide, highs = (model.solve() for model in models)
    assert wide.objective == pytest.approx(highs.objective, rel=1e-9)
    assert wide.x[::3].sum() <= 20 + 1e-8


def test_many_rows_are_left_to_highs(monkeypatch):
    monkeypatch.setattr("osilp_pyomo.lp.models._MOST_ROWS", 3)
    columns, budget, _ = wide_problem("plain", 7, 800, 5)
    lp = finite_lp(columns, True, columns.matrix.T[:2], np.full(2, -np.inf), budget[:2])
    model, other = lp_model(lp, Scaling.none(lp), "auto"), WideModel(lp, Scaling.none(lp), "auto")
    assert isinstance(model, HighsModel)
    for each in (model, other):
        each.solve()
        each.add_rows(np.arange(800), columns.matrix.T[2:], np.full(3, -np.inf), budget[2:])
        each.limit_time(60)
    assert other.solve().objective == pytest.approx(model.solve().objective, rel=1e-9)


# -- what users choose ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["projected", pytest.param("exchange", marks=pytest.mark.long), "discretized"])
def test_solvers_agree(small_steps, method):
    m = packing(60, seed=2)
    program = osilp.compile_online(m, stages=m.T)
    rng = np.random.default_rng(1)
    frame = program.data.iloc[rng.integers(0, 60, 1200)].reset_index(drop=True)
    frame = frame * rng.uniform(0.8, 1.2, (1200, 1))
    dual, highs = (program.solve_offline(frame, method, solver=solver) for solver in ("dual", "highs"))
    assert dual.status == highs.status == "optimal"
    assert dual.objective == pytest.approx(highs.objective, rel=1e-8)
    assert dual.audit.violation <= highs.audit.violation + 1e-6


@pytest.mark.parametrize("kind", ["plain", "finite support", "whole numbers"])
def test_resolve_with_both_solvers(small_steps, kind):
    columns, budget, floor = wide_problem(kind, 6, 1500, 4)
    dual, highs = (solve_sample(columns, budget, floor, np.zeros(4), solver) for solver in ("auto", "highs"))
    assert dual.x @ columns.values == pytest.approx(highs.x @ columns.values, rel=1e-8)
    m = packing(60, seed=3)
    program = osilp.compile_online(m, stages=m.T)
    run = program.replay(osilp.Resolve(solver="highs"), guard="projected")
    assert run.objective == pytest.approx(program.replay(osilp.Resolve(), guard="projected").objective, rel=0.02)


def test_refusals():
    m = packing(6)
    with pytest.raises(OptionError) as told:
        osilp.solve(m, solver="simplex")
    assert str(told.value) == (
        "solve: solver must be one of 'auto', 'dual', 'highs', 'ipm', 'hipo', 'pdlp' (got 'simplex'); another solver of "
        "Pyomo takes the rows that TransformationFactory('osilp.discretize') writes."
    )
    with pytest.raises(OptionError) as told:
        osilp.solve(m, method="counterpart", solver="dual")
    assert str(told.value) == (
        "solve: method='counterpart' is one LP with as many rows as columns; use solver='highs'."
    )
    with pytest.raises(OptionError) as told:
        osilp.Resolve(solver="dual")
    assert str(told.value) == "Resolve: solver must be 'auto' or 'highs' (got 'dual')."
    m.x[1].setub(None)
    with pytest.raises(OptionError) as told:
        osilp.solve(m, method="projected", solver="dual")
    assert str(told.value) == (
        "solver='dual' is for many bounded, continuous columns in few rows: x[1] has no bound on one side."
    )


def test_a_large_variable_hides_no_violation():
    core = FiniteLP(
        maximize=False,
        cost=np.zeros(2),
        column_lower=np.zeros(2),
        column_upper=np.full(2, np.inf),
        matrix=sparse.csr_array(np.array([[0.0, 1.0]])),
        row_lower=np.zeros(1),
        row_upper=np.zeros(1),
    )
    assert core.violation(np.array([1.0, 1e-17])) == 0
    assert core.violation(np.array([1e10, 1e-7])) > 0.9
