"""Orders that change with time: the same arrivals, moved to other moments."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_inputs import packing_program, uniform_requests

import osilp_pyomo as osilp
from osilp_pyomo.errors import OptionError
from osilp_pyomo.studies.orders import CHANGING, ranked
from osilp_pyomo.studies.report import drawn_text


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(list(CHANGING)), st.integers(0, 10_000), st.integers(1, 80))
def test_every_arrival_comes_once(order, seed, count):
    values = np.random.default_rng(seed).normal(size=count).round(1)
    assert sorted(ranked(values, order, np.random.default_rng(seed))) == list(range(count))


def mean_by_tenths(order, count=20_000):
    values = np.random.default_rng(1).uniform(size=count)
    return values[ranked(values, order, np.random.default_rng(2))].reshape(10, -1).mean(axis=1)


def test_sorted_and_drift_rise():
    assert np.all(np.diff(mean_by_tenths("sorted")) > 0.09)
    drift = mean_by_tenths("drift")
    assert np.all(np.diff(drift) > 0)
    assert drift[0] > 0.1  # noise: the first tenth is not the lowest tenth, whose mean is .05


def test_a_season_goes_up_and_down_three_times():
    values = np.random.default_rng(1).uniform(size=30_000)
    means = values[ranked(values, "season", np.random.default_rng(2))].reshape(60, -1).mean(axis=1)
    around = np.append(means, means[0]) > 0.5
    assert np.count_nonzero(around[1:] != around[:-1]) == 6


@pytest.mark.parametrize(("order", "levels"), [("regime", 4), ("blocks", 21)])
def test_levels_stay_until_they_jump(order, levels):
    values = np.arange(40_000) / 40_000
    moved = values[ranked(values, order, np.random.default_rng(3))]
    # Neighbours of one block differ by noise only, whose size does not change within it.
    means = moved.reshape(400, -1).mean(axis=1)
    assert np.count_nonzero(np.abs(np.diff(means)) > 0.1) <= 2 * levels
    assert means.max() - means.min() > 0.4


def test_arrivals_are_ranked_by_what_they_earn_or_by_a_column():
    program = packing_program(40)
    for by, column in ((None, "value"), ("place", "place")):
        drawn = []

        def sampler(rng, horizon, drawn=drawn):
            drawn.append(uniform_requests(rng, horizon))
            return drawn[-1]

        study = osilp.compare(program, osilp.Greedy(), sampler=sampler, order="sorted", by=by, seed=3)
        rows = drawn[0].sort_values(column)
        run = program.replay(osilp.Greedy(), rows)
        assert study.runs["reward"].iloc[0] == pytest.approx(run.objective)


def test_the_optimum_does_not_depend_on_the_order():
    program = packing_program(40)
    found = {order: osilp.compare(program, osilp.Greedy(), order=order) for order in ("given", *CHANGING)}
    optima = [study.offline["objective"].iloc[0] for study in found.values()]
    np.testing.assert_allclose(optima, optima[0], rtol=1e-6)


def test_what_a_study_says_of_its_order():
    program = packing_program(20)
    study = osilp.compare(program, osilp.Greedy(), order="drift", by="place")
    assert study.settings["order"] == "drift by place"
    assert drawn_text(study.settings) == "20 arrivals drifting from low to high, ranked by place"
    assert (
        drawn_text(osilp.compare(program, osilp.Greedy(), order="season").settings) == "20 arrivals going up and down"
    )


def test_columns_that_nothing_can_be_ranked_by():
    program = packing_program(20)
    with pytest.raises(OptionError) as caught:
        osilp.compare(program, osilp.Greedy(), order="drift", by="colour")
    assert str(caught.value) == (
        "compare: by must be a column of the arrivals' numbers: 'value', 'place' (got 'colour')."
    )
    with pytest.raises(OptionError) as caught:
        osilp.compare(program, osilp.Greedy(), order="sorted", trials=2)
    assert str(caught.value) == (
        "compare: 2 trials of the same arrivals sorted would all be equal; use order='drift', fewer arrivals by "
        "horizons=, or a sampler=, or trials=1."
    )
    with pytest.raises(OptionError) as caught:
        osilp.compare(program, osilp.Greedy(), order="permutation", by="place")
    assert str(caught.value) == (
        "compare: by= says what arrivals are ranked by in an order that changes with time, 'drift', 'season', "
        "'regime', 'blocks', 'sorted' (got order='permutation'); leave by= out."
    )


def test_one_of_several_numbers():
    """A Param over (T, K) has a column for each member of K."""
    import pyomo.environ as pyo
    from pyomo.dae import ContinuousSet

    m = pyo.ConcreteModel()
    m.u, m.T, m.K = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(10), pyo.Set(initialize=["a", "b"])
    m.value = pyo.Param(m.T, m.K, mutable=True, initialize=lambda m, t, k: t + (k == "b"))
    m.x = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t, k] * m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize)
    m.use = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t, k] for t in m.T for k in m.K) <= 9)
    program = osilp.compile_online(m, stages=m.T)
    data = pd.DataFrame({("value", "a"): np.arange(10.0), ("value", "b"): np.arange(10.0)[::-1]})
    study = osilp.compare(program, osilp.Greedy(), data, order="sorted", by=("value", "b"))
    run = program.replay(osilp.Greedy(), data.iloc[::-1])
    assert study.runs["reward"].iloc[0] == pytest.approx(run.objective)
