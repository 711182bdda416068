"""What a run was like after so many arrivals: use along the index, prices on the way."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import packing

import osilp_pyomo as osilp
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.over_time import moments_of, prices_over_time, row_use_over_time, use_over_time
from osilp_pyomo.show.pages.run import _density


@pytest.fixture(scope="module")
def program():
    m = packing(60)
    m.total = pyo.Constraint(expr=sum(m.x[t] for t in m.T) <= 30)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(80))


@given(st.integers(1, 10_000), st.integers(1, 200))
def test_moments_are_spread_evenly_and_end_with_the_last(count, most):
    moments = moments_of(count, most)
    assert moments[-1] == count
    assert len(moments) == min(count, most)
    steps = np.diff([0, *moments])
    assert steps.min() >= 1
    assert steps.max() - steps.min() <= 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 60))
def test_use_after_some_arrivals_is_the_sum_of_what_those_use(program, t):
    run = program.replay(osilp.Resolve())
    frame = run.use_over_index(t)
    at = frame["index"].to_numpy()
    data, x = run.data.iloc[:t], run.decisions.to_numpy()[:t]
    # The rule of the model, written again.
    column = np.exp(-(((at[None, :] - data["place"].to_numpy()[:, None]) / 0.1) ** 2))
    np.testing.assert_allclose(frame["use"], x @ column, rtol=1e-10, atol=1e-12)
    assert (np.diff(at) > 0).all()
    assert (frame["lower"] == -np.inf).all()


def test_at_the_end_it_is_what_the_run_says_of_violation(program):
    run = program.replay(osilp.MirrorDescent(), guard="none")
    frame = run.use_over_index()
    assert (frame["use"] - frame["upper"]).max() == pytest.approx(run.violation, rel=1e-9)


def test_moments_at_once_are_moments_one_by_one(program):
    run = program.replay(osilp.Resolve())
    (family,), (points,) = program.template.families, program.evaluator.points
    moments = moments_of(60, 7)
    (found,) = use_over_time(program.evaluator, family, run.arrivals, [run.decided], points, moments)
    for t, use in zip(moments, found, strict=True):
        one = program.evaluator.at_points(family, run.arrivals.part(slice(0, t)), run.decided[:t], points)
        np.testing.assert_allclose(use, one, rtol=1e-12, atol=1e-12)
    (row,) = program.template.rows
    spent = row_use_over_time(program.evaluator, row, run.arrivals, run.decided, moments)
    np.testing.assert_allclose(spent, run.decisions.cumsum().to_numpy()[np.array(moments) - 1], rtol=1e-12)


@pytest.mark.parametrize(
    "policy", [osilp.MirrorDescent(), osilp.Resolve(exact=True), osilp.ExperienceReplay()], ids=repr
)
def test_prices_on_the_way_are_those_of_a_controller_that_steps(program, policy):
    run = program.replay(policy, seed=3)
    moments = [1, 7, 8, 40, 60]
    prices = prices_over_time(run.anew(), program.evaluator.batches(run.arrivals), moments)
    controller = program.controller(policy, seed=3)
    stepped = [controller.price]
    for _, row in program.data.iterrows():
        controller.step(row)
        if controller.t in moments:
            stepped.append(controller.price)
    for one, other in zip(prices, stepped, strict=True):
        assert one.total == pytest.approx(other.total, rel=1e-9, abs=1e-12)
    assert prices[-1].total == pytest.approx(run.price.total, rel=1e-12)


def test_atoms_are_spread_as_the_price_itself_spreads_them():
    result = osilp.solve(packing(60))
    at = np.linspace(0, 1, 50)
    np.testing.assert_allclose(_density(result.price, at), result.price.smooth(0.02)(at), rtol=1e-12)


def test_refusals(program):
    run = program.replay(osilp.Resolve(), program.data.head(10))
    with pytest.raises(OptionError) as refused:
        run.use_over_index(11)
    assert str(refused.value) == "use_over_index: t must be at most 10, the arrivals of the run (got 11)."
    with pytest.raises(OptionError) as refused:
        run.use_over_index(-1)
    assert "use_over_index: t" in str(refused.value)
    assert isinstance(run.use_over_index(0), pd.DataFrame)
    assert not run.use_over_index(0)["use"].any()
