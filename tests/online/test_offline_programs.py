"""Programs for other horizons and grids, and the offline problem of arrivals that come more than once."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import packing

import osilp_pyomo as osilp
from osilp_pyomo.errors import OptionError
from osilp_pyomo.offline.exchange import ExchangeOptions
from osilp_pyomo.offline.methods import by_exchange
from osilp_pyomo.online.hindsight.lp import stage_lp
from osilp_pyomo.online.hindsight.merge import merge_equal


def program_of(m, **options):
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(40), **options)


def choices():
    """Two ways to serve an arrival, at most one of them, a row of its own, and a use that no decision changes."""
    m = packing(6)
    m.y = pyo.Var(m.T, bounds=(0, 2))
    m.bonus = pyo.Param(m.T, mutable=True, initialize=0.3)
    m.reward.set_value(sum(m.value[t] * m.x[t] + m.bonus[t] * m.y[t] for t in m.T))
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] + m.y[t] <= 1 + m.bonus[t])
    m.total = pyo.Constraint(expr=sum(m.x[t] + 2 * m.y[t] + 0.1 * m.bonus[t] for t in m.T) <= 4)
    m.shared = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(u * m.y[t] + 0.01 * m.bonus[t] * u for t in m.T) <= 1.5
    )
    return m


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 5), min_size=8, max_size=30), st.booleans())
def test_merging_equal_arrivals_changes_no_optimum(places, several):
    m = choices() if several else packing(6)
    program = program_of(m, horizon=max(2, len(places)))
    arrivals = program.arrivals().take(np.array(places))
    merged = program.solve_offline(arrivals)
    alone = by_exchange(
        stage_lp(program.evaluator, arrivals, np.ones(len(arrivals))), ExchangeOptions(1e-9, 500, None, print)
    )
    assert merged.objective == pytest.approx(alone.objective, rel=1e-7, abs=1e-7)
    # What is given back is a point of the whole problem, with the same objective and within its rows.
    width = len(program.template.decisions)
    x = merged.values.to_numpy().reshape(len(places), width)
    assert len(merged.values) == len(places) * width
    batch = program.batch(arrivals)
    assert program.evaluator.reward(batch, x).sum() == pytest.approx(merged.objective, rel=1e-9)
    assert np.all(
        program.evaluator.used(batch, x, "pointwise").sum(axis=0)
        <= program.evaluator.resources["pointwise"].total + 1e-7
    )
    assert np.all((x >= batch.lower - 1e-9) & (x <= batch.upper + 1e-9))
    if several:
        assert len(merged.duals) == 1 + len(places)


def test_merged_arrivals_keep_the_order_in_which_they_came():
    program = program_of(packing(6))
    merged = merge_equal(program.arrivals().take(np.array([4, 1, 4, 0, 1])), program.template)
    assert merged.counts.tolist() == [2, 2, 1]
    assert merged.which.tolist() == [0, 1, 0, 2, 1]
    assert merged.arrivals.values[0].tolist() == program.arrivals().values[0][[4, 1, 0]].tolist()


def test_whole_decisions_are_not_shared_out():
    m = packing(6)
    m.x.domain = pyo.Binary
    program = program_of(m, horizon=12)
    found = program.solve_offline(program.arrivals().take(np.repeat(np.arange(6), 2)))
    assert set(found.values.round(9)) <= {0.0, 1.0}


def test_curves_tell_arrivals_apart():
    m = packing(4)
    m.shape = osilp.Profile(m.T, over=m.u, points=[0, 1], initialize=lambda m, t: [1.0, 1.0 + (t > 2)])
    m.del_component(m.usage)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.shape[t](u) * m.x[t] for t in m.T) <= 2)
    program = program_of(m)
    data = pd.DataFrame({"value": [1.0, 1.0, 1.0]})
    arrivals = program.arrivals(data, {"shape": np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 1.0]])})
    assert merge_equal(arrivals, program.template).counts.tolist() == [2, 1]


def test_the_three_optima_are_ordered():
    program = program_of(packing(30))
    exact, grid, projected = (
        program.solve_offline(method=method).objective for method in ("exchange", "discretized", "projected")
    )
    assert projected >= grid - 1e-9 >= exact - 1e-7


def test_another_grid_is_that_of_a_program_compiled_with_it():
    m = packing(10)
    moved = program_of(m).regridded(osilp.Midpoint(70))
    again = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(70))
    assert moved.fingerprint == again.fingerprint
    assert moved.replay(osilp.Resolve()).decisions.equals(again.replay(osilp.Resolve()).decisions)


def test_budgets_grow_with_the_horizon_or_stay():
    program = program_of(packing(10))
    assert program.rescaled(30).evaluator.resources["projected"].total == pytest.approx(
        3 * program.evaluator.resources["projected"].total
    )
    assert program.rescaled(30, "total").evaluator.resources["projected"].total == pytest.approx(
        program.evaluator.resources["projected"].total
    )
    assert program.rescaled(30, "total").horizon == 30
    assert "3*(10*(0.06 + 0.02*sin(6*u)))" in program.rescaled(30).describe()
    with pytest.raises(OptionError) as refused:
        program.rescaled(30, "each")
    assert str(refused.value) == "rescaled: budget must be 'per_arrival' or 'total' (got 'each')."


def test_convex_stages_have_no_grid_optimum():
    m = packing(6)
    m.reward.set_value(sum(pyo.log(1 + m.value[t] * m.x[t]) for t in m.T))
    with pytest.raises(OptionError) as refused:
        program_of(m).solve_offline(method="discretized")
    assert str(refused.value) == (
        "solve_offline: method='discretized' is for linear stages only; use 'exchange' or 'projected'."
    )
