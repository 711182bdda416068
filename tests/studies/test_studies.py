"""Studies: what a trial is, what is measured, and that it does not matter where or when trials run."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import packing, two_families
from study_inputs import (
    POLICIES,
    Told,
    few_requests,
    packing_program,
    same,
    scaled_requests,
    steady,
    uniform_requests,
    values_of,
)

import osilp_pyomo as osilp
from osilp_pyomo._files import write_at_once
from osilp_pyomo._reporting import warn_user
from osilp_pyomo.errors import AccuracyWarning, DataError, ExecutorError, OptionError, SavedStateError
from osilp_pyomo.studies import files
from osilp_pyomo.studies.files import read_tables, write_tables, write_trial
from osilp_pyomo.studies.measures import Measure, summarize
from osilp_pyomo.studies.plan import make_plan
from osilp_pyomo.studies.trial import FRAMES, Job

TESTS = Path(__file__).parents[1]


def plan_of(program, **options):
    defaults = {
        "data": None, "profiles": None, "trials": 1, "order": "given", "sampler": None, "horizons": None, "grids": None,
        "guards": None, "benchmarks": ("exchange", "projected"), "budget": "per_arrival", "null": None, "seed": 0,
        "forecast": None,
    }  # fmt: skip
    return make_plan(program, POLICIES, **{**defaults, **options})


# -- what a trial is ---------------------------------------------------------------------------------------------


def test_a_trial_is_a_replay_beside_the_offline_optimum():
    program = packing_program()
    study = osilp.compare(program, [*POLICIES, osilp.SimpleGD()], guards=["none", "projected", "pointwise"])
    assert len(study.runs) == 9
    best = {name: program.solve_offline(method=name) for name in ("exchange", "projected")}
    for record in study.runs.to_dict("records"):
        policy = {"MirrorDescent": POLICIES[0], "Resolve": POLICIES[1], "SimpleGD": osilp.SimpleGD()}[record["policy"]]
        # What is random in a trial, such as the copies of a sample, follows from the study's seed and the trial's number.
        seed = int(np.random.SeedSequence([0, record["trial"]]).generate_state(1)[0])
        run = program.replay(policy, guard=record["guard"], seed=seed)
        assert record["reward"] == pytest.approx(run.objective, rel=1e-12)
        assert record["violation"] == pytest.approx(run.violation, abs=1e-12)
        assert record["relative_violation"] == pytest.approx(run.relative_violation, abs=1e-12)
        assert record["violation_between"] == pytest.approx(run.violation_between, abs=1e-9)
        assert record["test_violation"] == pytest.approx(run.test_violation, abs=1e-9)
        assert record["overrun_points"] == run.uses[0].overrun
        for name, result in best.items():
            assert record[f"regret_{name}"] == pytest.approx(run.regret(result).value, abs=1e-9)
            assert record[f"relative_regret_{name}"] == pytest.approx(run.regret(result).relative, abs=1e-9)


def test_a_permutation_has_every_arrival_once_and_iid_draws_with_replacement():
    program = packing_program(30)
    own = sorted(values_of(program, slice(None)))
    shuffled = plan_of(program, order="permutation", trials=2).arrivals_for(Job(30, 0, 0)).values[0]
    assert sorted(shuffled) == own
    assert shuffled.tolist() != values_of(program, slice(None)).tolist()
    drawn = plan_of(program, order="iid", trials=2, horizons=[300]).arrivals_for(Job(300, 0, 0)).values[0]
    assert set(drawn) <= set(own)
    assert len(drawn) == 300


def test_fewer_arrivals_are_the_first_ones_or_some_of_them():
    program = packing_program(30)
    first = plan_of(program, horizons=[10]).arrivals_for(Job(10, 0, 0)).values[0]
    assert first.tolist() == values_of(program, slice(0, 10)).tolist()
    some = plan_of(program, horizons=[10], order="permutation", trials=9).arrivals_for(Job(10, 0, 3)).values[0]
    assert len(set(some)) == 10


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**31), st.integers(0, 50), st.sampled_from(["permutation", "iid"]))
def test_arrivals_depend_on_seed_trial_and_horizon_only(seed, trial, order):
    program = packing_program(20)
    plans = [plan_of(program, order=order, trials=99, seed=seed, grids=grids) for grids in (None, [osilp.Midpoint(9)])]
    one, other = (plan.arrivals_for(Job(20, 0, trial)).values[0] for plan in plans)
    assert one.tolist() == other.tolist()


def test_a_sampler_draws_each_trial_or_its_support():
    program = packing_program(40)
    study = osilp.compare(program, POLICIES, sampler=uniform_requests, trials=3, seed=2)
    assert study.runs["reward"].nunique() == 6
    plan = plan_of(program, sampler=few_requests, order="iid", trials=2)
    assert len(set(plan.arrivals_for(Job(40, 0, 1)).values[0])) <= 5


def test_a_sampler_may_bring_curves():
    m = packing(4)
    m.shape = osilp.Profile(m.T, over=m.u, points=[0, 1], initialize=lambda m, t: [1.0, 2.0])
    m.del_component(m.usage)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.shape[t](u) * m.x[t] for t in m.T) <= 20)
    program = osilp.compile_online(m, stages=m.T, horizon=30, basis=osilp.RBF(4))

    def sampler(rng, horizon):
        return pd.DataFrame({"value": rng.uniform(size=horizon)}), {"shape": rng.uniform(0.5, 1.5, (horizon, 2))}

    study = osilp.compare(program, osilp.Resolve(), sampler=sampler, trials=2)
    assert (study.runs["violation"] == 0).all()
    assert (study.runs["relative_regret_exchange"] > 0).all()


def test_budgets_follow_the_horizon_or_not():
    program = packing_program(40)
    follow, stay = (
        osilp.compare(program, osilp.Resolve(), order="iid", horizons=[80], trials=2, budget=budget)
        for budget in ("per_arrival", "total")
    )
    assert (follow.offline["objective"].to_numpy() > 1.2 * stay.offline["objective"].to_numpy()).all()


def test_grids_are_seen_with_the_same_arrivals():
    program = packing_program(40)
    study = osilp.compare(
        program,
        osilp.Greedy(),
        order="permutation",
        trials=2,
        guards="none",
        grids=[osilp.Midpoint(20), np.linspace(0, 1, 5)],
    )
    assert sorted(set(study.runs["points"])) == [5, 20]
    by_grid = study.runs.pivot_table(index="trial", columns="points", values="reward")
    assert by_grid[5].tolist() == by_grid[20].tolist()
    exact = study.offline[study.offline["benchmark"] == "exchange"].pivot_table(
        index="trial", columns="points", values="objective"
    )
    assert exact[5].to_numpy() == pytest.approx(exact[20].to_numpy(), rel=1e-7)


@pytest.mark.long
def test_more_trials_begin_with_the_same_ones():
    program = packing_program(30)
    three = osilp.compare(program, POLICIES, trials=3, order="iid", seed=4)
    five = osilp.compare(program, POLICIES, trials=5, order="iid", seed=4)
    pd.testing.assert_frame_equal(steady(three), steady(five)[steady(five)["trial"] < 3], check_exact=True)
    other = osilp.compare(program, POLICIES, trials=3, order="iid", seed=5)
    assert other.runs["reward"].tolist() != three.runs["reward"].tolist()


def test_each_policy_may_have_guards_of_its_own():
    program = packing_program(30)
    study = osilp.compare(
        program, {"a": osilp.Greedy(), "b": osilp.Resolve()}, guards={"a": "none", "b": ["none", "pointwise"]}
    )
    assert list(zip(study.runs["policy"], study.runs["guard"], strict=True)) == [
        ("a", "none"), ("b", "none"), ("b", "pointwise"),
    ]  # fmt: skip


def test_policies_are_called_by_what_they_were_given():
    program = packing_program(20)
    study = osilp.compare(
        program, [osilp.Resolve(), osilp.Resolve(exact=True), osilp.MirrorDescent("entropy"), osilp.Resolve()]
    )
    assert study.runs["policy"].tolist() == [
        "Resolve", "Resolve(exact=True)", "MirrorDescent(entropy)", "Resolve (2)",
    ]  # fmt: skip


# -- models of every kind ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_convex_stages():
    m = packing(20)
    m.reward.set_value(sum(pyo.log(1 + m.value[t] * m.x[t]) for t in m.T))
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4), grid=osilp.Midpoint(30))
    study = osilp.compare(program, [osilp.MirrorDescent(), osilp.Greedy()], order="permutation", trials=2)
    assert study.doubts() == []
    assert (study.runs["regret_exchange"] > 0).all()


@pytest.mark.long
def test_several_rows_an_ordinary_one_a_minimum_and_several_decisions():
    m = packing(20)
    m.y = pyo.Var(m.T, bounds=(0, 1))
    m.reward.set_value(-sum(m.value[t] * m.x[t] + 0.5 * m.y[t] for t in m.T))
    m.reward.sense = pyo.minimize
    m.total = pyo.Constraint(expr=sum(m.x[t] + m.y[t] for t in m.T) <= 8)
    m.S = pyo.Set(initialize=["low", "high"])
    m.more = osilp.SemiInfiniteConstraint(
        m.S, m.u, rule=lambda m, s, u: sum((1 + u) * m.y[t] for t in m.T) <= (6 if s == "low" else 7)
    )
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4), grid=osilp.Midpoint(30))
    study = osilp.compare(program, [osilp.MirrorDescent(), osilp.Greedy()], order="permutation", trials=2)
    assert set(study.rows["row"]) == {"usage", "more[low]", "more[high]", "total"}
    assert (study.runs["regret_exchange"] > 0).all()
    assert (study.runs["row_violation"] == 0).all()
    loose = osilp.compare(program, osilp.Greedy(), guards="none")
    assert loose.runs["row_violation"].iloc[0] == pytest.approx(20 + 20 - 8)
    assert "ordinary rows" in str(loose)
    assert loose.plot() is not None


def test_lower_limits_and_their_picture():
    m = pyo.ConcreteModel()
    m.u = two_families().u.__class__(bounds=(0, 1))
    m.T = pyo.RangeSet(30)
    m.cost = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 1 + (7 * t) % 5)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.spent = pyo.Objective(expr=sum(m.cost[t] * m.x[t] for t in m.T))
    m.cover = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) >= 10)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4), grid=osilp.Midpoint(30))
    study = osilp.compare(program, [osilp.MirrorDescent(), osilp.Resolve()], order="permutation", trials=2)
    assert set(study.runs["guard"]) == {"pointwise"}
    assert (study.runs["violation"] <= 1e-9).all()
    figure = study.plot("violation")
    assert figure.axes[0].get_ylabel() == "limit - use"


def test_whole_numbers_have_no_price_to_draw():
    m = packing(12)
    m.x.domain = pyo.Binary
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4), grid=osilp.Midpoint(30))
    study = osilp.compare(program, osilp.Greedy(), trials=2, order="permutation")
    assert study.doubts() == []
    assert (study.runs["regret_exchange"] >= -1e-9).all()
    study.plot()


def test_an_index_in_the_plane():
    m = pyo.ConcreteModel()
    m.u, m.v = (two_families().u.__class__(bounds=(0, 1)) for _ in range(2))
    m.T = pyo.RangeSet(25)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 1 + t % 3)
    m.a = pyo.Param(m.T, mutable=True, initialize=lambda m, t: (t * 0.37) % 1)
    m.b = pyo.Param(m.T, mutable=True, initialize=lambda m, t: (t * 0.71) % 1)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.near = osilp.SemiInfiniteConstraint(
        m.u, m.v,
        rule=lambda m, u, v: sum(pyo.exp(-((u - m.a[t]) ** 2 + (v - m.b[t]) ** 2) / 0.05) * m.x[t] for t in m.T) <= 2,
    )  # fmt: skip
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(3), grid=osilp.Midpoint(12))
    study = osilp.compare(program, [osilp.MirrorDescent(), osilp.Resolve()], order="permutation", trials=2)
    assert (study.runs["violation"] == 0).all()
    assert "% of the points (u, v)" in [ax.get_xlabel() for ax in study.plot("violation").axes]


def test_hidden_data_can_be_put_in_order():
    m = pyo.ConcreteModel()
    m.u = two_families().u.__class__(bounds=(0, 1))
    m.T = pyo.RangeSet(10)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum((1 + t % 4) * m.x[t] for t in m.T), sense=pyo.maximize)
    m.use = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) <= 6)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(3), grid=osilp.Midpoint(12))
    study = osilp.compare(program, osilp.Resolve(), order="permutation", trials=2)
    assert study.runs["reward"].between(0, 9).all()


def test_a_benchmark_without_an_answer_is_said():
    m = packing(6)
    m.least = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) >= 50)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4), grid=osilp.Midpoint(30))
    study = osilp.compare(program, osilp.Greedy(), guards="none", benchmarks="projected")
    assert study.runs["relative_regret_projected"].isna().all()
    assert study.doubts() == ["careful: projected ended with status 'infeasible' in 1 of 1 trials"]
    assert "careful: projected ended with status 'infeasible'" in str(study)


class Doubtful(osilp.Policy):
    """A policy in whose runs something is less accurate than it should be."""

    def start(self, setting):
        warn_user("HiGHS was not sure", AccuracyWarning)
        return {"dual": np.zeros(setting.size)}

    def price(self, state, setting):
        return state["dual"]

    def learn(self, state, setting, seen):
        return state


def test_doubts_of_a_trial_are_told_once_with_its_number():
    program = packing_program(10)
    with pytest.warns(AccuracyWarning) as told:
        osilp.compare(program, Doubtful(), order="iid", trials=2)
    texts = [str(each.message) for each in told]
    assert texts == [
        "HiGHS was not sure", "trial 0, 10 arrivals: HiGHS was not sure", "trial 1, 10 arrivals: HiGHS was not sure",
    ]  # fmt: skip


@pytest.mark.long
def test_threads_leave_the_warnings_of_others_alone():
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        osilp.compare(packing_program(20), POLICIES, order="iid", trials=6, executor=pool)
    assert warnings.filters == before
    with pytest.warns(UserWarning, match="still heard"):
        warnings.warn("still heard", UserWarning, stacklevel=1)


# -- numbers -----------------------------------------------------------------------------------------------------


def test_intervals_are_those_of_student():
    runs = pd.DataFrame({"policy": ["a"] * 4, "reward": [1.0, 2.0, 3.0, 6.0]})
    found = summarize(runs, [Measure("reward", "reward", "")], ["policy"])
    # Mean 3, standard deviation 2.160247, t(0.975, 3) = 3.182446: half = 3.182446 * 2.160247 / 2.
    assert found["reward", "mean"].iloc[0] == 3
    assert found["reward", "high"].iloc[0] - 3 == pytest.approx(3.437435, abs=1e-5)
    assert found["reward", "low"].iloc[0] == pytest.approx(3 - 3.437435, abs=1e-5)
    single = summarize(runs[:1], [Measure("reward", "reward", "")], ["policy"])
    assert np.isnan(single["reward", "low"].iloc[0])


@pytest.mark.parametrize(
    ("form", "mean", "half", "text"),
    [
        ("percent", 0.1234, 0.004, "12.34 +- 0.4 %"), ("percent", 0.0, 0.0, "0.00 %"), ("percent", 3e-7, np.nan, "3.0e-05 %"),
        ("number", 283.91784, np.nan, "283.92"), ("microseconds", 1234.5, 20.0, "1,234 +- 20 us"),
        ("seconds", 0.1234, 0.01, "0.123 +- 0.01 s"), ("count", 12.0, 3.0, "12 +- 3"), ("number", np.nan, np.nan, ""),
        ("percent", -np.inf, np.nan, "-inf"),
    ],
)  # fmt: skip
def test_numbers_are_written_with_their_units(form, mean, half, text):
    assert Measure("x", "x", "", form).write_interval(mean, half) == text


def test_a_study_prints_a_table_that_names_its_benchmarks():
    study = osilp.compare(packing_program(30), POLICIES, trials=3, order="permutation")
    text = str(study)
    for part in ("3 trials, 30 arrivals in random order, seed 0; T = 30", "regret against R*_T", "regret against R*_Phi",
                 "R*_T: the optimum with all arrivals known", "relative violation", "the paper's v", "time a step"):  # fmt: skip
        assert part in text
    assert list(study.summary().index.names) == ["horizon", "grid", "points", "policy", "guard"]
    assert study.summary()["trials"].squeeze().tolist() == [3, 3]
    with pytest.raises(OptionError) as refused:
        study.table(["luck"])
    assert str(refused.value).startswith("table: there is no measure 'luck'; there are reward, ")


def test_paths_end_with_the_run():
    study = osilp.compare(packing_program(50), POLICIES, trials=2, order="permutation")
    last = study.paths[study.paths["t"] == 50].set_index(["trial", "policy"])["reward"]
    runs = study.runs.set_index(["trial", "policy"])["reward"]
    assert last.loc[runs.index].to_numpy() == pytest.approx(runs.to_numpy(), rel=1e-12)
    assert study.paths.groupby(["trial", "policy"])["used"].apply(lambda used: used.is_monotonic_increasing).all()


# -- where trials run ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_same_numbers_serial_and_in_processes():
    program = packing_program()
    serial = osilp.compare(program, POLICIES, sampler=uniform_requests, trials=4, seed=3)
    same(serial, osilp.compare(program, POLICIES, sampler=uniform_requests, trials=4, seed=3, executor=2))


@pytest.mark.long
def test_the_same_numbers_on_a_dask_cluster():
    distributed = pytest.importorskip("distributed")
    program = packing_program()
    serial = osilp.compare(program, POLICIES, order="permutation", trials=4, seed=3)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        # Workers import what tests define as they import the package.
        client.run(sys.path.insert, 0, str(TESTS))
        same(
            serial,
            osilp.compare(program, POLICIES, order="permutation", trials=4, seed=3, executor=client.get_executor()),
        )


@pytest.mark.long
def test_the_same_numbers_in_threads():
    program = packing_program(30)
    serial = osilp.compare(program, POLICIES, order="permutation", trials=4, seed=3)
    with ThreadPoolExecutor(2) as pool:
        same(serial, osilp.compare(program, POLICIES, order="permutation", trials=4, seed=3, executor=pool))


def test_warnings_of_a_sampler_are_not_swallowed():
    def sampler(rng, horizon):
        warnings.warn("the sensor is old", UserWarning, stacklevel=1)
        return uniform_requests(rng, horizon)

    with pytest.warns(UserWarning, match="the sensor is old"):
        osilp.compare(packing_program(20), osilp.Greedy(), sampler=sampler)


def test_what_cannot_be_sent_is_said():
    with pytest.raises(OptionError) as refused:
        osilp.compare(packing_program(), POLICIES, sampler=lambda rng, horizon: None, trials=2, executor=2)
    assert str(refused.value).startswith(
        "compare: the study cannot be sent to another process, because something in it cannot be pickled ("
    )
    assert str(refused.value).endswith(
        "; define samplers, policies and functions at the top level of a module, or leave executor= out."
    )


@pytest.mark.long
def test_an_unguarded_script_is_told_what_to_do(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from study_inputs import *\n"
        "try:\n"
        "    osilp.compare(packing_program(20), POLICIES, order='iid', trials=2, executor=2)\n"
        "except osilp.errors.ExecutorError as error:\n"
        "    print('REFUSED', error)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert (
        "REFUSED compare: a process died before its trial was done. A script that uses processes must start its work"
        in (done.stdout)
    )
    assert issubclass(ExecutorError, RuntimeError)


# -- on disk -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_saved_and_loaded_is_the_same(tmp_path, file_format):
    study = osilp.compare(packing_program(30), POLICIES, trials=2, order="permutation", guards=["none", "pointwise"])
    study.save(tmp_path / "study", format=file_format)
    again = osilp.load_study(tmp_path / "study")
    same(study, again)
    assert {**again.settings, "format": None} == {**study.settings, "format": None}
    assert str(again) == str(study)
    pd.testing.assert_frame_equal(again.runs, study.runs, check_exact=True)


@pytest.mark.long
def test_a_study_goes_on_where_it_was_and_may_grow(tmp_path):
    program, log = packing_program(), Told(tmp_path / "log")
    whole = osilp.compare(program, POLICIES, sampler=Told(tmp_path / "other"), trials=5, seed=5)
    osilp.compare(program, POLICIES, sampler=log, trials=2, seed=5, path=tmp_path / "study")
    # Two trials, and a first draw by which the study is known.
    assert len(log.calls()) == 2 + 1
    grown = osilp.compare(program, POLICIES, sampler=log, trials=5, seed=5, path=tmp_path / "study")
    assert len(log.calls()) == 5 + 2
    same(whole, grown)
    again = osilp.compare(program, POLICIES, sampler=log, trials=3, seed=5, path=tmp_path / "study")
    assert len(log.calls()) == 5 + 3
    assert again.settings["trials"] == 5
    same(whole, again)


def test_another_study_in_the_folder_is_refused(tmp_path):
    program = packing_program(20)
    osilp.compare(program, POLICIES, order="iid", trials=2, path=tmp_path / "study")
    before = {path.name: path.read_bytes() for path in (tmp_path / "study").iterdir()}
    with pytest.raises(SavedStateError) as refused:
        osilp.compare(program, POLICIES, order="iid", trials=2, seed=1, path=tmp_path / "study")
    assert str(refused.value) == (
        f"'{tmp_path / 'study'}' holds another study: its seed differs (0 there, 1 here); give path= another folder, or "
        "call compare as it was called there."
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "study").iterdir()} == before
    osilp.compare(program, POLICIES, sampler=partial(scaled_requests, 1.0), path=tmp_path / "drawn")
    with pytest.raises(SavedStateError, match="its data differs"):
        osilp.compare(program, POLICIES, sampler=partial(scaled_requests, 9.0), path=tmp_path / "drawn")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(SavedStateError) as refused:
        osilp.compare(program, POLICIES, order="iid", trials=2, path=tmp_path / "mine")
    assert (
        str(refused.value) == f"'{tmp_path / 'mine'}' holds other files than a study; give path= a folder of its own."
    )


@pytest.mark.parametrize("stops_at", ["rows.csv", "offline.csv", "runs.csv"])
def test_tables_cut_short_between_two_writes_lose_and_repeat_nothing(tmp_path, monkeypatch, stops_at):
    study = osilp.compare(packing_program(20), POLICIES, order="iid", trials=3)
    tables = {name: getattr(study, name) for name in FRAMES}

    def of_trials(numbers):
        return {name: frame[frame["trial"].isin(numbers)] for name, frame in tables.items()}

    write_tables(tmp_path, of_trials([0]), "csv")
    for trial in (1, 2):
        records = {name: frame.to_dict("records") for name, frame in of_trials([trial]).items()}
        write_trial(tmp_path, Job(20, 0, trial), records)

    def stopping(path, write):
        """The machine stops when one of the tables is to be written; those before it are new."""
        if path.name == stops_at:
            raise KeyboardInterrupt
        write_at_once(path, write)

    monkeypatch.setattr(files, "write_at_once", stopping)
    with pytest.raises(KeyboardInterrupt):
        write_tables(tmp_path, tables, "csv")
    found = read_tables(tmp_path)
    for name, frame in tables.items():
        pd.testing.assert_frame_equal(found[name], frame, check_exact=True)


def test_fewer_trials_run_nothing_more(tmp_path):
    program, log = packing_program(), Told(tmp_path / "log")
    osilp.compare(program, POLICIES, sampler=log, trials=3, horizons=[60], seed=5, path=tmp_path / "study")
    for path in (tmp_path / "study").glob("*.csv"):
        frame = pd.read_csv(path)
        frame[frame["trial"] != 1].to_csv(path, index=False)
    (tmp_path / "study" / "tables.json").unlink()
    calls = len(log.calls())
    cut = osilp.compare(program, POLICIES, sampler=log, trials=1, horizons=[60], seed=5, path=tmp_path / "study")
    assert len(log.calls()) == calls + 1
    assert (cut.finished, cut.complete) == (2, False)


def test_saving_over_another_study_is_refused_and_leftovers_are_not_adopted(tmp_path):
    program = packing_program(20)
    one, other = (osilp.compare(program, POLICIES, order="iid", trials=2, seed=seed) for seed in (0, 1))
    one.save(tmp_path / "study")
    with pytest.raises(SavedStateError, match="its seed differs"):
        other.save(tmp_path / "study")
    same(one, osilp.load_study(tmp_path / "study"))
    (tmp_path / "file").write_text("")
    with pytest.raises(SavedStateError) as refused:
        one.save(tmp_path / "file")
    assert str(refused.value) == f"'{tmp_path / 'file'}' is a file; a study needs a folder of its own."


def test_saved_files_can_be_read_by_those_who_may(tmp_path):
    osilp.compare(packing_program(20), POLICIES).save(tmp_path / "study")
    umask = os.umask(0)
    os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "study").iterdir()} == {0o666 & ~umask}


def test_a_missing_value_leaves_no_interval():
    runs = pd.DataFrame({"policy": ["a"] * 4, "reward": [1.0, 2.0, np.nan, 6.0]})
    found = summarize(runs, [Measure("reward", "reward", "")], ["policy"])
    assert found["reward", "mean"].iloc[0] == 3
    assert np.isnan(found["reward", "low"].iloc[0])


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(SavedStateError) as refused:
        osilp.load_study(tmp_path)
    assert str(refused.value).startswith(f"'{tmp_path}' holds no study that can be read (JSONDecodeError: ")
    (tmp_path / "study.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(SavedStateError) as refused:
        osilp.load_study(tmp_path)
    assert str(refused.value) == (
        f"'{tmp_path}' was saved in another format than 1, which this version reads; use the one that saved it."
    )
    osilp.compare(packing_program(20), POLICIES).save(tmp_path / "study")
    (tmp_path / "study" / "trials").mkdir()
    damaged = tmp_path / "study" / "trials" / "20-0-1.json"
    damaged.write_text("{")
    with pytest.raises(SavedStateError) as refused:
        osilp.load_study(tmp_path / "study")
    assert str(refused.value).startswith(f"'{damaged}' is damaged (JSONDecodeError: ")
    assert str(refused.value).endswith("; remove it, and its trial is run again.")


def start_long_study(folder, log, trials, seconds, workers, quick=0):
    arguments = [
        sys.executable,
        str(TESTS / "long_study.py"),
        str(folder),
        str(log),
        str(trials),
        str(seconds),
        str(workers),
        str(quick),
    ]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for_trials(folder, count, process):
    deadline = time.monotonic() + 90
    while len(list((folder / "trials").glob("*.json"))) < count:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
def test_a_stopped_study_resumes_without_repeating_or_losing_a_trial(tmp_path, how, workers):
    folder, log = tmp_path / "study", tmp_path / "log"
    whole = osilp.compare(packing_program(), POLICIES, sampler=Told(tmp_path / "other"), trials=8, seed=5)
    stopped_at = []
    for count in (2, 5):
        # The draw that the study is known by and those of the trials to be finished are quick, all others would last.
        missing = count - (stopped_at[-1] if stopped_at else 0)
        process = start_long_study(folder, log, 8, 30, workers, len(Told(log).calls()) + 1 + missing)
        wait_for_trials(folder, count, process)
        os.kill(process.pid, how)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0
        if how == signal.SIGINT:
            assert "StudyInterrupted: stopped after" in said
        time.sleep(0.5)  # what workers had begun is over
        finished = osilp.load_study(folder)
        stopped_at.append(finished.finished)
        assert count <= finished.finished < 8
        assert not finished.complete
        assert f"{finished.finished} of 8 finished: " in str(finished)
    assert stopped_at[1] >= stopped_at[0] + 1
    last = start_long_study(folder, log, 8, 0.0, workers)
    _, said = last.communicate(timeout=90)
    assert last.returncode == 0, said
    same(whole, osilp.load_study(folder))
    # A trial that was finished was never drawn again: each of three calls draws the first one to know the study by, and
    # at most one trial a worker was cut off at each stop.
    drawn = [line.split()[2] for line in Told(log).calls()]
    assert len(set(drawn)) == 8
    assert len(drawn) - 8 - 3 <= 2 * max(1, workers)
    assert not list((folder).glob("trials/*"))


@pytest.mark.long
def test_a_stopped_study_does_not_wait_for_its_processes(tmp_path):
    folder = tmp_path / "study"
    process = start_long_study(folder, tmp_path / "log", 4, 20, 2)
    deadline = time.monotonic() + 60
    while len(Told(tmp_path / "log").calls()) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # The first draw, by which the study is known, takes its time too; then the two processes draw.
    while len(Told(tmp_path / "log").calls()) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    stopped = time.monotonic()
    process.communicate(timeout=60)
    assert time.monotonic() - stopped < 15


def test_an_interrupted_study_holds_what_it_has():
    calls = []

    def sampler(rng, horizon):
        calls.append(horizon)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return uniform_requests(rng, horizon)

    with pytest.raises(osilp.StudyInterrupted) as stopped:
        osilp.compare(packing_program(20), POLICIES, sampler=sampler, trials=9)
    assert str(stopped.value) == "stopped after 2 of 9 trials"
    assert stopped.value.study.runs["trial"].tolist() == [0, 0, 1, 1]


# -- refusals ------------------------------------------------------------------------------------------------------

REFUSED = [
    ({"trials": 2}, OptionError,
     "compare: 2 trials of the same arrivals in the same order would all be equal; use order='permutation' or 'iid', or a "
     "sampler=, or trials=1."),
    ({"trials": 0}, OptionError, "compare: trials must be a whole number >= 1 (got 0)."),
    ({"order": "random"}, OptionError, "compare: order must be one of 'given', 'permutation', 'iid', 'drift', 'season', "
     "'regime', 'blocks', 'sorted' (got 'random')."),
    ({"budget": "b"}, OptionError, "compare: budget must be 'per_arrival' or 'total' (got 'b')."),
    ({"seed": -1}, OptionError, "compare: seed must be a whole number >= 0 (got -1)."),
    ({"sampler": 3}, OptionError, "compare: sampler must be a function of (rng, horizon) (got int)."),
    ({"sampler": uniform_requests, "data": pd.DataFrame()}, OptionError,
     "compare: data= or profiles= came with sampler=; arrivals come from one of them, and a sampler brings the curves of "
     "its arrivals itself."),
    ({"benchmarks": ["best"]}, OptionError,
     "compare: benchmarks must be among 'exchange', 'discretized', 'projected' (got 'best')."),
    ({"guards": ["all"]}, OptionError, "compare: guards must be among 'none', 'projected', 'pointwise' (got 'all')."),
    ({"guards": {"Greed": "none"}}, OptionError,
     "compare: guards= has an entry for 'Greed', which is no policy here; they are 'MirrorDescent', 'Resolve'."),
    ({"horizons": []}, OptionError, "compare: horizons must be a list of whole numbers, at least one (got [])."),
    ({"horizons": [1.5]}, OptionError, "compare: a horizon must be a whole number >= 2 (got 1.5)."),
    ({"horizons": [500]}, DataError,
     "compare: a horizon of 500 was asked for, and there are 20 arrivals; draw with replacement by order='iid', or give "
     "more data."),
    ({"grids": osilp.Midpoint(5)}, OptionError,
     "compare: grids must be a list of grids such as Midpoint(500), at least one (got Midpoint(count=5))."),
    ({"data": pd.DataFrame({"value": [1.0, 2.0], "place": [0.1, 0.2]})}, DataError,
     "compare: there are 2 arrivals, and the program expects 20; say how many a trial has by horizons=[2] (budget= says "
     "whether limits follow), or draw with replacement by order='iid'."),
    ({"executor": 0}, OptionError,
     "compare: executor must be None (one after the other), a number of processes >= 1, or an executor of "
     "concurrent.futures such as dask.distributed.Client().get_executor() (got 0)."),
    ({"sampler": few_requests}, DataError,
     "compare: sampler(rng, horizon) gave 5 arrivals where 20 were asked for; draw as many as the horizon, or let "
     "order='iid' or 'permutation' choose among them."),
    ({"sampler": few_requests, "order": "permutation"}, DataError,
     "compare: 5 arrivals are there where 20 are needed; give horizons= of at most 5, or draw with replacement by "
     "order='iid'."),
]  # fmt: skip


@pytest.mark.parametrize(("options", "error", "text"), REFUSED, ids=[text[9:40] for _, _, text in REFUSED])
def test_bad_input_is_refused_with_a_sentence(tmp_path, options, error, text):
    with pytest.raises(error) as refused:
        osilp.compare(packing_program(20), POLICIES, **options)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        ([], "compare: there is no policy to run; give at least one, such as Resolve()."),
        (osilp.Resolve, "compare: policies must be policies such as Resolve() (got <class 'osilp_pyomo.online.resolve.Resolve'>)."),
        ([3], "compare: policies must be policies such as MirrorDescent() (got 3)."),
        ("Resolve", "compare: policies must be policies such as MirrorDescent() (got 'Resolve')."),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_refused(policies, text):
    with pytest.raises(OptionError) as refused:
        osilp.compare(packing_program(20), policies)
    assert str(refused.value) == text


def test_what_is_no_program_is_refused():
    with pytest.raises(OptionError) as refused:
        osilp.compare(packing(5), POLICIES)
    assert str(refused.value) == (
        "compare: program must be an OnlineProgram, made by compile_online (got ConcreteModel)."
    )


def test_bad_data_in_the_middle_names_the_trial():
    def sampler(rng, horizon):
        return uniform_requests(rng, horizon).assign(value=np.nan)

    with pytest.raises(DataError) as refused:
        osilp.compare(packing_program(20), POLICIES, sampler=sampler)
    assert refused.value.__notes__ == ["(trial 0, 20 arrivals)"]


def test_nothing_finished_is_said():
    study = osilp.compare(packing_program(20), POLICIES)
    empty = osilp.Study(study.settings, {name: pd.DataFrame() for name in FRAMES})
    assert str(empty).startswith("0 of 1 finished: 1 trial, ")
    for ask in (empty.summary, empty.plot, lambda: empty.plot("regret")):
        with pytest.raises(DataError):
            ask()
