"""Arrivals in chunks: the same decisions and optima as from memory, from files, streams, processes and a cluster."""

import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from long_sweep import make_program
from models import packing
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model
from osilp_pyomo.errors import DataError, NoSolutionError, OptionError, SolverError
from osilp_pyomo.lp import wide as wide_lp
from osilp_pyomo.online.stages.identity import DataMoments
from osilp_pyomo.online.stages.template import Arrivals

COUNT = 900


@pytest.fixture(scope="module")
def program():
    return make_program()


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    return pd.DataFrame({"place": rng.uniform(0, 1, COUNT), "value": rng.uniform(0, 1, COUNT), "note": "kept out"})


@pytest.fixture
def small_steps(monkeypatch):
    """A sample, gathered columns and checks at a size that a test can afford."""
    monkeypatch.setattr(wide_lp, "_AT_ONCE", 300)
    monkeypatch.setattr(wide_lp, "_BAND", 30)


@pytest.fixture
def parquet(frame, tmp_path):
    """Six chunks in a file."""
    path = tmp_path / "arrivals.parquet"
    frame.to_parquet(path, row_group_size=150)
    return osilp.Chunks(path, rows=150)


def sources(frame, folder):
    """The same arrivals in every form."""
    frame.to_parquet(folder / "a.parquet", row_group_size=150)
    frame.to_csv(folder / "a.csv", index=False)
    many = folder / "many"
    many.mkdir()
    frame.iloc[:500].to_parquet(many / "1.parquet")
    frame.iloc[500:].to_csv(many / "2.csv", index=False)
    (many / ".hidden.parquet").write_text("no data")
    (many / "_committed.csv").write_text("no data")
    halves = [frame.iloc[:430], frame.iloc[430:430], frame.iloc[430:]]
    return {
        "parquet": folder / "a.parquet",
        "csv": str(folder / "a.csv"),
        "folder": many,
        "paths": [many / "1.parquet", str(many / "2.csv")],
        "iterator": iter(halves),
        "list": halves,
        "function": lambda: iter(halves),
        "small chunks": osilp.Chunks(folder / "a.parquet", rows=37),
    }


def test_replay_of_every_source_is_that_of_the_frame(program, frame, tmp_path):
    whole = program.replay(osilp.MirrorDescent(), frame, "pointwise")
    for name, source in sources(frame, tmp_path).items():
        run = program.replay(osilp.MirrorDescent(), source, "pointwise", write=tmp_path / "x.parquet")
        written = pd.read_parquet(tmp_path / "x.parquet")
        assert np.array_equal(written["x"], whole.decisions), name
        assert written["reason"].tolist() == whole.reasons.tolist()
        assert run.objective == pytest.approx(whole.objective, rel=1e-12)
        assert run.counts == whole.counts
        assert run.arrivals == COUNT
        assert run.violation == pytest.approx(whole.violation)
        np.testing.assert_allclose(run.remaining, whole.remaining, rtol=1e-9)


def test_optimum_of_every_source_is_that_of_the_frame(program, frame, tmp_path, small_steps):
    whole = program.solve_offline(frame, "projected")
    for name, source in sources(frame, tmp_path).items():
        found = program.solve_offline(source, "projected", write=tmp_path / "x.csv")
        assert found.status == "optimal"
        assert found.objective == pytest.approx(whole.objective, rel=1e-9), name
        assert found.bound == pytest.approx(whole.objective, rel=1e-8)
        assert found.price.total == pytest.approx(whole.price.total, rel=1e-6)
        written = pd.read_csv(tmp_path / "x.csv")
        assert written["arrival"].tolist() == list(range(COUNT))
        assert (written["x"] * frame["value"]).sum() == pytest.approx(whole.objective, rel=1e-9)
        # DualSolution on other points, so that it is alike, not the same.
        assert found.violation == pytest.approx(whole.violation, rel=0.01)
        assert found.test_violation <= 1e-7


def test_other_methods_read_everything(program, parquet, frame):
    assert program.solve_offline(parquet, "exchange").objective == pytest.approx(
        program.solve_offline(frame, "exchange").objective, rel=1e-9
    )


def test_long_run_explains_itself(program, parquet, tmp_path):
    run = program.replay(osilp.Greedy(), parquet, "projected", write=tmp_path / "x.csv")
    best = program.solve_offline(parquet, "projected")
    assert str(run).endswith(f"\n  each one   in '{tmp_path / 'x.csv'}'")
    assert str(program.replay(osilp.Greedy(), parquet)).endswith("\n  each one   not kept; write= keeps them")
    assert run.regret(best).benchmark == "R*_Phi (on the test functions)"
    assert re.search(r"audit +violation .* on 2,222 fresh points", str(best))


def two_resources(least=0.0, most=40.3):
    """Two decisions a stage, two rows, a row over all stages, a sum that is used whatever is decided; a minimum."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(4)
    m.K = pyo.Set(initialize=["a", "b"])
    m.cost = pyo.Param(m.T, m.K, mutable=True, initialize=1.0)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, m.K, bounds=(0, 2))
    m.total = pyo.Objective(expr=sum(m.cost[t, k] * m.x[t, k] for t in m.T for k in m.K) + 5)

    @m.SemiInfiniteConstraint(m.u)
    def served(m, u):
        return sum(pyo.exp(-((u - m.place[t]) ** 2)) * (m.x[t, "a"] + m.x[t, "b"] - 0.1) for t in m.T) >= 100

    m.few = pyo.Constraint(expr=pyo.inequality(least, sum(m.x[t, "b"] for t in m.T), most))
    return m


@pytest.mark.parametrize(("least", "most"), [(0.0, 40.3), (150.7, 600.0)])
def test_several_decisions_rows_and_a_minimum(tmp_path, small_steps, least, most):
    m = two_resources(least, most)
    program = osilp.compile_online(m, stages=m.T, horizon=400, basis=osilp.RBF(4))
    rng = np.random.default_rng(2)
    named = pd.DataFrame(
        {"cost[a]": rng.uniform(1, 2, 400), "cost[b]": rng.uniform(1, 2, 400), "place": rng.uniform(size=400)}
    )
    frame = named.copy()
    frame.columns = pd.Index([("cost", "a"), ("cost", "b"), "place"], tupleize_cols=False)
    named.to_parquet(tmp_path / "a.parquet", row_group_size=70)
    whole = program.solve_offline(frame, "projected")
    found = program.solve_offline(
        osilp.Chunks(tmp_path / "a.parquet", rows=100), "projected", write=tmp_path / "x.parquet"
    )
    assert found.objective == pytest.approx(whole.objective, rel=1e-9)
    assert found.bound == pytest.approx(whole.objective, rel=1e-8)
    assert found.dual("few") == pytest.approx(whole.dual("few"), rel=1e-6)
    written = pd.read_parquet(tmp_path / "x.parquet")
    assert list(written.columns) == ["arrival", "x[a]", "x[b]"]
    assert least - 1e-7 <= written["x[b]"].sum() <= most + 1e-7
    assert whole.dual("few") != 0
    assert (written["x[a]"] * named["cost[a]"] + written["x[b]"] * named["cost[b]"]).sum() + 5 == pytest.approx(
        whole.objective
    )


def test_profiles_in_chunks(tmp_path, small_steps):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.curve = osilp.Profile(m.T, over=m.u, points=[0, 0.5, 1], initialize=lambda m, t: [1.0, 2.0, 1.0])
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        return sum(m.curve[t](u) * m.x[t] for t in m.T) <= 50

    program = osilp.compile_online(m, stages=m.T, horizon=100)
    rng = np.random.default_rng(0)
    curves, values = rng.uniform(0.5, 2, (100, 3)), rng.uniform(size=100)
    frame = pd.DataFrame({"value": values, "curve": list(curves)})
    whole = program.solve_offline(pd.DataFrame({"value": values}), "projected", profiles={"curve": curves})
    found = program.solve_offline([frame.iloc[:40], frame.iloc[40:]], "projected")
    assert found.objective == pytest.approx(whole.objective, rel=1e-9)
    frame["curve"] = [lambda u: 1 + u] * 100
    with pytest.raises(DataError) as told:
        program.solve_offline([frame], "projected")
    assert str(told.value) == (
        "Arrivals in chunks: curves that are functions, or tables on points of their own, cannot be kept on disk; give "
        "them as values at the Profile's points."
    )


# -- on disk -------------------------------------------------------------------------------------------------


def test_blocks_are_made_once_and_known_again(program, parquet, tmp_path):
    cache = tmp_path / "cache"
    first = program.solve_offline(parquet, "projected", cache=cache)
    blocks = sorted(cache.glob("*.npy"))
    times = [block.stat().st_mtime_ns for block in blocks]
    again = program.solve_offline(parquet, "projected", cache=cache)
    assert again.objective == first.objective
    assert [block.stat().st_mtime_ns for block in sorted(cache.glob("*.npy"))] == times
    # Another program has blocks of its own.
    program.rescaled(2 * COUNT).solve_offline(parquet, "projected", cache=cache)
    assert len(list(cache.glob("*.npy"))) == 2 * len(blocks)


def test_a_damaged_block_is_told(program, parquet, tmp_path):
    cache = tmp_path / "cache"
    program.solve_offline(parquet, "projected", cache=cache)
    block = sorted(cache.glob("*.npy"))[0]
    numbers = np.load(block)
    for column in (0, 1, 2, 5):
        damaged = numbers.copy()
        damaged[:, column] += 0.001
        np.save(block, damaged)
        with pytest.raises(SolverError) as told:
            program.solve_offline(parquet, "projected", cache=cache)
        assert str(told.value) == f"The block '{block}' does not hold the columns of its arrivals; empty the cache."
    short = numbers[:10]
    for content in (b"nothing", b"", b"short"):
        if content == b"short":
            np.save(block, short)
        else:
            block.write_bytes(content)
        assert program.solve_offline(parquet, "projected", cache=cache).status == "optimal"


def test_nothing_is_left_behind(program, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bad = frame.copy()
    bad.loc[700, "value"] = np.nan
    target = tmp_path / "x.parquet"
    target.write_text("as it was")
    for act in (
        lambda: program.replay(osilp.Greedy(), [bad], write=target),
        lambda: program.solve_offline([bad], "projected", write=target),
    ):
        with pytest.raises(DataError, match="'value' must be a finite number \\(got nan in row 700\\)"):
            act()
    program.solve_offline([frame], "projected")
    assert [each.name for each in tmp_path.iterdir()] == ["x.parquet"]
    assert target.read_text() == "as it was"


@pytest.mark.long
def test_killed_in_the_middle(tmp_path, frame):
    """A run that is killed leaves no decisions; its blocks serve the next one."""
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=20)
    script = Path(__file__).parents[1] / "long_sweep.py"
    command = [sys.executable, str(script), str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    cache = tmp_path / "cache"
    deadline = time.monotonic() + 60
    while len(list(cache.glob("*.npy"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {block: block.stat().st_mtime_ns for block in cache.glob("*.npy")}
    assert 5 <= len(kept) < 45
    assert not (tmp_path / "x.parquet").exists()
    told = subprocess.run([*command, "fast"], capture_output=True, text=True, check=True)
    assert told.stderr == ""
    assert all(block.stat().st_mtime_ns == written for block, written in kept.items())
    assert len(pd.read_parquet(tmp_path / "x.parquet")) == COUNT


# -- elsewhere -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_threads_and_processes_give_the_same(program, parquet, small_steps):
    serial = program.solve_offline(parquet, "projected")
    with ThreadPoolExecutor(2) as pool:
        threads = program.solve_offline(parquet, "projected", executor=pool)
    assert threads.objective == serial.objective
    processes = program.solve_offline(parquet, "projected", executor=2)
    assert processes.objective == serial.objective
    assert np.array_equal(processes.price.masses, serial.price.masses)


@pytest.mark.long
def test_dask_with_a_worker_that_dies(frame, tmp_path):
    pytest.importorskip("distributed")
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=30)
    script = Path(__file__).parents[1] / "cluster_sweep.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["killed"]
    here, dying, left = told["objectives"]
    assert here == dying == left


# -- refusals ------------------------------------------------------------------------------------------------


def test_refused_sources(program, frame, tmp_path):
    def refused(error, act):
        with pytest.raises(error) as told:
            act()
        return str(told.value)

    policy = osilp.Greedy()
    missing = tmp_path / "none.parquet"
    assert refused(DataError, lambda: program.replay(policy, missing)) == f"Arrivals: there is no file '{missing}'."
    (tmp_path / "a.txt").write_text("value,place\n")
    assert refused(DataError, lambda: program.replay(policy, tmp_path / "a.txt")) == (
        f"Arrivals: '{tmp_path / 'a.txt'}' must be a .parquet or .csv file, or a folder of them."
    )
    (tmp_path / "empty").mkdir()
    assert refused(DataError, lambda: program.replay(policy, tmp_path / "empty")) == (
        f"Arrivals: the folder '{tmp_path / 'empty'}' holds no Parquet or CSV files."
    )
    (tmp_path / "no.parquet").write_text("this is no Parquet file")
    assert refused(DataError, lambda: program.replay(policy, tmp_path / "no.parquet")).startswith(
        f"Arrivals: '{tmp_path / 'no.parquet'}' cannot be read as Parquet (ArrowInvalid: "
    )
    (tmp_path / "no.csv").write_text("")
    assert refused(DataError, lambda: program.replay(policy, tmp_path / "no.csv")).startswith(
        f"Arrivals: '{tmp_path / 'no.csv'}' cannot be read as CSV (EmptyDataError: "
    )
    (tmp_path / "head.csv").write_text("value,place\n")
    assert refused(DataError, lambda: program.replay(policy, tmp_path / "head.csv")) == "replay: there are no arrivals."
    assert refused(DataError, lambda: program.solve_offline(tmp_path / "head.csv", "projected")) == (
        "solve_offline: there are no arrivals."
    )
    assert refused(DataError, lambda: program.replay(policy, iter([1.0]))) == (
        "Chunks: every chunk must be a DataFrame (got float)."
    )
    assert refused(DataError, lambda: program.replay(policy, lambda: 3)) == (
        "Chunks: the function must give DataFrames (got int)."
    )
    assert refused(DataError, lambda: osilp.Chunks(3)) == (
        "Chunks: the source must be a path, a list of paths, an iterable of DataFrames, or a function that gives one "
        "(got int)."
    )
    assert refused(OptionError, lambda: osilp.Chunks([frame], rows=0)) == (
        "Chunks: rows must be a whole number >= 1 (got 0)."
    )
    (tmp_path / "few.csv").write_text("value\n0.5\n")
    assert refused(DataError, lambda: program.replay(policy, tmp_path / "few.csv")) == (
        "Arrivals: the frame has no column 'place' (its columns are 'value'), and the Param has no default."
    )
    too_many = "replay: 1800 arrivals came where the program expects 900; compile with horizon=, or use "
    assert refused(DataError, lambda: program.replay(policy, [frame, frame])).startswith(too_many)


def test_files_that_are_almost_right(program, frame, tmp_path):
    def refused(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError) as told:
            program.replay(osilp.Greedy(), path)
        return str(told.value).replace(str(tmp_path), "")

    # Rows longer than the header would shift their fields, or lose one.
    assert refused("long.csv", b"value,place\n7,0.5,0.5\n7,0.6,0.6\n").startswith(
        "Arrivals: '/long.csv' cannot be read"
    )
    assert refused("one.csv", b"value,place\n0.5,0.5\n0.6,0.6,7\n").startswith("Arrivals: '/one.csv' cannot be read")
    assert refused("twice.csv", b"value,place,value\n1,2,3\n") == "Arrivals: '/twice.csv' has two columns 'value'."
    assert refused("other.csv", b"value;place\n0.5;0.5\n") == (
        "Arrivals: the frame has no column 'value' (its columns are 'value;place'), and the Param has no default."
    )
    assert refused("a.csv.gz", b"not zipped").startswith("Arrivals: '/a.csv.gz' cannot be read as CSV (BadGzipFile: ")
    # A column that pandas keeps as its index is a column all the same.
    indexed = tmp_path / "index.parquet"
    frame.set_index("place").to_parquet(indexed)
    whole = program.replay(osilp.Greedy(), frame)
    assert program.replay(osilp.Greedy(), indexed).objective == pytest.approx(whole.objective)
    with pytest.raises(DataError, match="there are no arrivals"):
        program.solve_offline([frame.iloc[:0]], "exchange")
    twice = pd.concat([frame, frame[["value"]]], axis=1)
    with pytest.raises(DataError, match="two columns 'value'"):
        program.solve_offline([frame, twice], "exchange")


def test_empty_row_groups(program, frame, tmp_path):
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    with parquet.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
        writer.write_table(table.slice(0, 0))
    found = program.solve_offline(osilp.Chunks(tmp_path / "a.parquet", rows=50), "projected")
    assert found.objective == pytest.approx(program.solve_offline(frame, "projected").objective, rel=1e-9)


def test_a_default_is_part_of_a_program(tmp_path):
    objectives = []
    pd.DataFrame({"place": np.linspace(0, 1, 200)}).to_parquet(tmp_path / "a.parquet")
    for default in (1.0, 3.0):
        m = packing(3)
        m.weight = pyo.Param(m.T, mutable=True, default=default)
        m.reward.set_value(sum(m.weight[t] * m.x[t] for t in m.T))
        program = osilp.compile_online(m, stages=m.T, horizon=200)
        objectives.append(
            program.solve_offline(tmp_path / "a.parquet", "projected", cache=tmp_path / "cache").objective
        )
    assert objectives[1] == pytest.approx(3 * objectives[0])


def test_names_in_the_file(tmp_path):
    """Decisions keep their names; arrivals are counted, however the frames are indexed."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.arrival = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.arrival[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        return sum(m.arrival[t] * (1 + u) for t in m.T) <= 3

    program = osilp.compile_online(m, stages=m.T, horizon=4)
    frames = [pd.DataFrame({"value": [1.0, 2.0]}, index=["a", "b"]), pd.DataFrame({"value": [3.0]}, index=[7])]
    for act in (
        lambda path: program.replay(osilp.Greedy(), frames, write=path),
        lambda path: program.solve_offline(frames, "projected", write=path),
    ):
        act(tmp_path / "x.parquet")
        written = pd.read_parquet(tmp_path / "x.parquet")
        assert list(written.columns)[:2] == ["arrival_", "arrival"]
        assert written["arrival_"].tolist() == [0, 1, 2]
        assert written["arrival"].between(0, 1).all()


def test_refused_options(program, frame, parquet, tmp_path):
    def refused(act):
        with pytest.raises(OptionError) as told:
            act()
        return str(told.value)

    policy = osilp.Greedy()
    assert refused(lambda: program.replay(policy, parquet, write="x.xls")) == (
        "write= must name a .parquet or .csv file (got 'x.xls')."
    )
    away = tmp_path / "nowhere" / "x.csv"
    assert refused(lambda: program.replay(policy, parquet, write=away)) == (
        f"write=: there is no folder '{away.parent}'."
    )
    path = parquet.paths[0]
    for act in (
        lambda: program.replay(policy, parquet, write=path),
        lambda: program.solve_offline(parquet, "projected", write=path),
    ):
        assert refused(act) == f"write=: '{path}' is the file that the arrivals are read from."
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert refused(lambda: program.replay(policy, parquet, write=folder)) == f"write=: '{folder}' cannot be written."
    beside = (
        "replay: arrivals in chunks come as a path, Chunks or DataFrames whose columns hold everything; leave profiles= "
        "and write= out for others."
    )
    assert refused(lambda: program.replay(policy, write=tmp_path / "x.csv")) == beside
    assert refused(lambda: program.replay(policy, parquet, profiles={})) == beside
    assert refused(lambda: program.solve_offline(frame, "projected", cache=tmp_path)) == (
        "solve_offline: cache= is for method='projected' with arrivals in chunks, such as a path."
    )
    assert refused(lambda: program.solve_offline(parquet, "projected", executor=0)) == (
        "solve_offline: executor must be None (one after the other), a number of processes >= 1, or an executor of "
        "concurrent.futures such as dask.distributed.Client().get_executor() (got 0)."
    )
    taken = tmp_path / "taken"
    taken.write_text("")
    assert refused(lambda: program.solve_offline(parquet, "projected", cache=taken)).startswith(
        f"cache=: '{taken}' cannot be a folder ("
    )
    assert refused(lambda: program.solve_offline(parquet, "projected", solver="highs")) == (
        "solve_offline: arrivals in chunks are never all columns of one LP; leave solver='highs' out, or give them as "
        "one DataFrame."
    )
    assert refused(lambda: program.solve_offline(parquet, time_limit="5")) == (
        "solve_offline: time_limit must be a number of seconds > 0 (got '5')."
    )
    m = packing(5)
    m.x.setub(None)
    open_ended = osilp.compile_online(m, stages=m.T)
    assert refused(lambda: open_ended.solve_offline([frame], "projected")) == (
        "solve_offline: 'x' has no bound on one side for the arrival 0, and arrivals in chunks are decided by sign "
        "between bounds; give it bounds, or the arrivals as one DataFrame."
    )
    m = packing(5)
    m.x.domain = pyo.Binary
    whole = osilp.compile_online(m, stages=m.T)
    assert refused(lambda: whole.solve_offline([frame], "projected")) == (
        "solve_offline: arrivals in chunks are solved column by column, and these decisions are whole numbers; give "
        "them as one DataFrame."
    )


def test_values_are_in_the_file(program, parquet, tmp_path):
    found = program.solve_offline(parquet, "projected")
    with pytest.raises(NoSolutionError) as told:
        _ = found.values
    assert str(told.value) == (
        "The result of arrivals in chunks holds no values in memory; give write= a file for the decisions."
    )
    found = program.solve_offline(parquet, "projected", write=tmp_path / "x.csv")
    with pytest.raises(NoSolutionError) as told:
        _ = found.reduced_costs
    assert str(told.value) == (
        f"The result of arrivals in chunks holds no reduced costs in memory; read '{tmp_path / 'x.csv'}'."
    )


def test_infeasible_in_chunks(frame):
    m = packing(5)
    m.must = pyo.Constraint(expr=sum(m.x[t] for t in m.T) >= 10_000)
    program = osilp.compile_online(m, stages=m.T, horizon=COUNT)
    found = program.solve_offline([frame], "projected")
    assert (found.status, found.answer) == ("undecided", None)
    assert str(found).endswith("\n  remark     what conflicts is not looked for among arrivals in chunks")
    assert program.solve_offline([frame], "projected", time_limit=1e-9).status == "time_limit"


# -- services ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [osilp.MirrorDescent(), osilp.GradientDescent(), osilp.AccelerateThenRefine(), osilp.Resolve(), osilp.Greedy()],
    ids=lambda policy: type(policy).__name__,
)
def test_projected_arrivals_step_by_step(program, frame, policy):
    projected = program.project(frame.iloc[:200])
    one, many = program.controller(policy, "projected"), program.controller(policy, "projected")
    single = [one.step(arrival) for arrival in projected]
    together = many.steps(frame.iloc[:200])
    assert [decision.x for decision in single] == together["x"].tolist()
    assert [decision.reason for decision in single] == together["reason"].tolist()
    assert one.t == many.t == 200
    assert one.reward == pytest.approx(many.reward)
    np.testing.assert_allclose(one.dual, many.dual)
    assert one.step(projected[-1]).t == 201


def test_projected_arrivals_and_points(program, frame):
    projected = program.project(frame.iloc[:3])
    told_text = (
        "Projected arrivals do not say what they use at single points; use guard='projected' or 'none' and a policy on "
        "test functions, or give the data themselves."
    )
    controller = program.controller(osilp.MirrorDescent(), "pointwise")
    for act in (lambda: controller.step(projected[0]), lambda: controller.steps(projected)):
        with pytest.raises(OptionError) as told:
            act()
        assert str(told.value) == told_text
    with pytest.raises(DataError) as told:
        program.controller(osilp.Greedy(), "none").step(projected[0], value=3.0)
    assert str(told.value) == "step: a projected arrival has all its data; give no keywords beside it."
    with pytest.raises(IndexError):
        projected[3]
    # A single one is as projected as many.
    with pytest.raises(OptionError):
        controller.step(program.project(frame.iloc[:1])[0])
    m = packing(5)
    stranger = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4)).project(frame.iloc[:3])
    for act in (
        lambda: program.controller(osilp.Greedy(), "none").step(stranger[0]),
        lambda: program.controller(osilp.Greedy(), "none").steps(stranger),
    ):
        with pytest.raises(DataError) as told:
            act()
        assert str(told.value) == (
            "These arrivals were projected by another program, with other formulas, test functions or points; project "
            "them by this one."
        )
    assert controller.t == 0


def test_unpickled_programs_stay_here(frame):
    m = packing(5)
    functions = osilp.Functions(lambda u: 1 + 0 * u, lambda u: u)
    program = osilp.compile_online(m, stages=m.T, horizon=COUNT, basis=functions)
    assert program.solve_offline([frame], "projected").status == "optimal"
    with pytest.raises(OptionError, match="the program cannot be sent to another process"):
        program.solve_offline([frame], "projected", executor=2)


@pytest.mark.parametrize("chunk", [1, 7, 60])
def test_a_run_in_chunks_knows_whose_optimum_its_benchmark_is(chunk, tmp_path):
    program = osilp.compile_online(demo_model(arrivals=60), stages="T", basis=osilp.RBF(5))
    frame = program.data
    frame.to_parquet(tmp_path / "a.parquet")
    run = program.replay(osilp.Greedy(), osilp.Chunks(tmp_path / "a.parquet", rows=chunk))
    best = program.solve_offline(frame, "projected")
    whole = program.replay(osilp.Greedy(), frame).regret(best)
    assert run.regret(best).value == pytest.approx(whole.value)
    # In another order, and read from chunks itself.
    mixed = frame.sample(frac=1.0, random_state=0)
    mixed.to_parquet(tmp_path / "b.parquet")
    assert run.regret(program.solve_offline(mixed, "projected")).value == pytest.approx(whole.value, rel=1e-6)
    in_chunks = program.solve_offline(osilp.Chunks(tmp_path / "b.parquet", rows=13), "projected")
    assert run.regret(in_chunks).value == pytest.approx(whole.value, rel=1e-6)
    for other in (frame * 0.5, frame.assign(place=frame.place.to_numpy()[::-1])):
        with pytest.raises(OptionError, match="one of as many arrivals as the run met, but with other data"):
            run.regret(program.solve_offline(other, "projected"))
        other.to_parquet(tmp_path / "c.parquet")
        with pytest.raises(OptionError, match="one of as many arrivals as the run met, but with other data"):
            run.regret(program.solve_offline(osilp.Chunks(tmp_path / "c.parquet", rows=13), "projected"))


@pytest.mark.parametrize("columns", [3, 30, 230])
def test_moments_of_chunks_are_those_of_all(columns):
    """Data of very different size, in any portions and any order; a small column that differs is seen."""
    rng = np.random.default_rng(columns)
    data = rng.uniform(size=(60, columns)) * 10.0 ** rng.uniform(-9, 9, columns)
    small = int(np.argmin(np.abs(data).max(axis=0)))

    def moments(rows):
        return DataMoments.of(Arrivals(tuple(rows.T), pd.RangeIndex(len(rows))))

    whole, parts = moments(data), [moments(part) for part in np.split(rng.permutation(data), [1, 2, 20])]
    joined = parts[3].join(parts[0]).join(parts[2]).join(parts[1])
    assert joined.count == 60
    np.testing.assert_allclose(joined.scales, whole.scales)
    np.testing.assert_allclose(joined.mixed(), whole.mixed(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(joined.thirds, whole.thirds, rtol=1e-9, atol=1e-9)
    other = data.copy()
    top = other[:, small].max()
    other[:, small] = top * (other[:, small] / top) ** 4
    assert np.abs(moments(other).mixed() - whole.mixed()).max() > 1e-6 * 60
