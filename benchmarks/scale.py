"""Scale: wide LPs against HiGHS and numpy, exchange against the full LP, files, a cluster, services.

Run ``python benchmarks/scale.py``; it takes about ten minutes, with ``--quick`` one.
"""

import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from dense_highs import dense_highs
from figures import Figure, growth, peak_memory, seconds, shown
from online import arrivals, compiled

import osilp_pyomo as osilp
from osilp_pyomo._pools import mapper
from osilp_pyomo.lp.columns import DenseColumns, Threshold, gather
from osilp_pyomo.lp.smoothed_dual import anchors
from osilp_pyomo.lp.wide import solve_wide
from osilp_pyomo.online.chunks.blocks import FileBlock

ROWS = 10
GIGABYTE = 1e9
CHUNK = 100_000


def figures(quick=False):
    """All of them; ``quick`` with a tenth of the columns."""
    size = 100_000 if quick else 1_000_000
    found = [
        *wide_figures(size),
        *exchange_figures(3_000 if quick else 10_000, 10_000 if quick else 100_000),
        *replay_figures(size),
        *cluster_figures(10 * size),
        *service_figures(size),
    ]
    # The limits are meant for the whole sizes.
    return [replace(figure, limit=None) for figure in found] if quick else found


def program_for(count, points=200):
    """A program for so many arrivals, of which the budget 0.05 T (1 + u) lets a part be served."""
    return compiled(2_000_000, points=points).rescaled(count)


# -- few rows, very many columns ---------------------------------------------------------------------------


def wide_columns(count, rows=ROWS, seed=1):
    """Columns and budget of a projected LP, as in the paper's first experiment."""
    rng = np.random.default_rng(seed)
    matrix = np.abs(rng.normal(4, 1, (count, rows))) * rng.uniform(0.5, 1.5, (count, 1))
    return DenseColumns(rng.normal(1, 1, count), matrix, np.zeros(count), np.ones(count)), np.full(rows, 2.0 * count)


def solve(columns, budget):
    """The wide LP in memory."""
    return solve_wide([columns], budget, np.zeros(len(budget)))


def certificate(count):
    """Relative gap, and how many columns lie between their bounds, of a wide LP."""
    columns, budget = wide_columns(count)
    answer = solve(columns, budget)
    x = answer.decisions(columns, 0)
    over = max(0.0, float((x @ columns.matrix - budget).max() / budget[0]))
    gap = abs(answer.bound - float(x @ columns.values)) / abs(answer.bound)
    return max(gap, over), int(np.sum((x > 0) & (x < 1)))


def wide_figures(count):
    """Time against HiGHS and numpy, memory at ten times the columns, growth."""
    solve(*wide_columns(50_000))
    columns, budget = wide_columns(count)
    price = np.full(ROWS, 0.02)
    own, one_pass, copied = seconds(
        lambda: solve(columns, budget),
        lambda: columns.values - columns.matrix @ price,
        lambda: columns.matrix.copy(),
        turns=5,
    )
    highs = dense_highs(columns.values, 1.0, np.ascontiguousarray(columns.matrix.T), budget)
    highs.setOptionValue("solver", "ipm")
    started = time.perf_counter()
    highs.run()
    interior = time.perf_counter() - started
    objective = highs.getInfo().objective_function_value
    answer = solve(columns, budget)
    (gap, between), memory = peak_memory(certificate, 10 * count)
    name = f"projected LP, {ROWS} rows, {count:,} columns"
    sizes = [count // 10, count // 3, count]
    by_columns = [seconds(partial(solve, *wide_columns(each)), turns=3)[0] for each in sizes]
    widths = [5, 10, 20, 40]
    by_rows = [seconds(partial(solve, *wide_columns(count // 5, rows)), turns=3)[0] for rows in widths]
    return [
        Figure(f"{name}: times as fast", interior / own, "x", "HiGHS, ipm", 20, at_least=True),
        Figure(f"{name}", own / one_pass, "x", "a numpy pass r - C @ w", 150),
        Figure(f"{name}", own / copied, "x", "copying its matrix once (memory bandwidth)"),
        Figure("the same: objectives apart, relative", abs(answer.objective / objective - 1), "", "HiGHS, ipm", 1e-7),
        Figure(f"{10 * count:,} columns: gap and violation, relative", gap, "", "its own certificate", 1e-8),
        Figure(f"{10 * count:,} columns: between their bounds", between, "columns", "rows of the LP (a vertex)", ROWS),
        Figure(f"{10 * count:,} columns: peak memory", memory / GIGABYTE, "GB", "", 4),
        growth("its time with columns", sizes, by_columns),
        growth("its time with rows", widths, by_rows),
    ]


# -- rows by violation, columns by price ---------------------------------------------------------------------


def offline(count, method):
    """Objective and status of the optimum of many arrivals on 2,000 points, or over the continuum."""
    found = program_for(count, 2000).solve_offline(arrivals(count), method)
    return found.objective, found.status


def exchange_figures(small, large):
    """The full optimum against the LP with all rows and columns, memory at ten times the columns."""
    points = 2000
    program, data = program_for(small, points), arrivals(small)
    u = (np.arange(points) + 0.5) / points
    matrix = np.exp(-(((u[:, None] - data["place"].to_numpy()) / 0.1) ** 2))

    def full():
        highs = dense_highs(data["value"].to_numpy(), 1.0, matrix, 0.05 * small * (1 + u))
        highs.run()
        return highs.getInfo().objective_function_value

    started = time.perf_counter()
    objective = full()
    peer = time.perf_counter() - started
    discretized, exact = seconds(
        lambda: program.solve_offline(data, "discretized"), lambda: program.solve_offline(data, "exchange"), turns=3
    )
    found = program.solve_offline(data, "discretized").objective
    lines = [
        Figure(f"optimum on {points:,} points, {small:,} arrivals: times as fast", peer / discretized, "x",
               "HiGHS on the full LP", 10, at_least=True),
        Figure(f"optimum over the continuum, {small:,} arrivals: times as fast", peer / exact, "x",
               "HiGHS on the full LP of the points", 10, at_least=True),
        Figure("objectives apart on the points", abs(found / objective - 1), "", "HiGHS on the full LP", 1e-8),
    ]  # fmt: skip
    for method in ("discretized", "exchange"):
        started = time.perf_counter()
        (_, status), memory = peak_memory(offline, large, method)
        taken = time.perf_counter() - started
        assert status == "optimal"
        lines += [
            Figure(f"{method}, {large:,} arrivals: peak memory", memory / GIGABYTE, "GB", "", 2),
            Figure(f"{method}, {large:,} arrivals", taken / discretized, "x", f"discretized, {small:,} arrivals"),
        ]
    sizes, grids = [small // 4, small // 2, small], [500, 1000, 2000, 4000]
    by_columns = [seconds(partial(_offline, each, points), turns=2)[0] for each in sizes]
    by_points = [seconds(partial(_offline, small // 4, each), turns=2)[0] for each in grids]
    return [
        *lines,
        growth("discretized with arrivals", sizes, by_columns),
        growth("discretized with points", grids, by_points),
    ]


def _offline(count, points):
    return program_for(count, points).solve_offline(arrivals(count), "discretized")


# -- from files ----------------------------------------------------------------------------------------------


def write_arrivals(path, count):
    """A Parquet file of arrivals, made chunk by chunk."""
    import pyarrow
    from pyarrow import parquet

    writer = None
    for number in range(count // CHUNK):
        table = pyarrow.Table.from_pandas(arrivals(CHUNK, seed=number), preserve_index=False)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def replay(path, count):
    """Seconds and objective of a replay, beside those of reading and projecting the same chunks."""
    program = program_for(count)
    program.replay(osilp.MirrorDescent(), [arrivals(2000)], "projected", progress=False)
    started = time.perf_counter()
    for frame in osilp.Chunks(path).frames(program.intake.columns):
        program.project(frame)
    alone = time.perf_counter() - started
    started = time.perf_counter()
    run = program.replay(osilp.MirrorDescent(), path, "projected", progress=False)
    return time.perf_counter() - started, alone, run.arrivals


def replay_figures(count):
    """Time and memory of a replay from Parquet at one and ten times the arrivals."""
    with tempfile.TemporaryDirectory() as folder:
        memory = []
        for each in (count, 10 * count):
            path = str(Path(folder) / f"{each}.parquet")
            write_arrivals(path, each)
            (taken, alone, met), peak = peak_memory(replay, path, each)
            assert met == each
            memory.append(peak)
    return [
        Figure(f"replay from Parquet, {10 * count:,} arrivals", taken / alone, "x", "reading and projecting them", 1.5),
        Figure(f"its peak memory ({memory[1] / GIGABYTE:.2f} GB)", memory[1] / memory[0], "x",
               f"that of {count:,} arrivals", 1.1),
        Figure("arrivals replayed from Parquet in a second", 10 * count / taken, "/s", ""),
    ]  # fmt: skip


# -- on a cluster ----------------------------------------------------------------------------------------------


def write_blocks(folder, count):
    """Column blocks on disk, as a sweep over chunks leaves them."""
    blocks = []
    for number in range(count // CHUNK):
        columns, _ = wide_columns(CHUNK, seed=number)
        path = Path(folder) / f"{number:06d}.npy"
        np.save(path, np.column_stack([columns.values, columns.lower, columns.upper, columns.matrix]))
        blocks.append(FileBlock(str(path), CHUNK, CHUNK, number * CHUNK, np.zeros(ROWS), 0.0))
    return blocks


def cluster_figures(count):
    """A pricing pass over blocks on disk, by one and by two workers of dask, and the whole solve."""
    from dask.distributed import Client, LocalCluster

    budget, floor = np.full(ROWS, 2.0 * count), np.zeros(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        blocks = write_blocks(folder, count)
        serial = solve_wide(blocks, budget, floor)
        price = partial(gather, threshold=Threshold(serial.dual, anchors(serial.dual), 0.01))
        (here,) = seconds(lambda: list(map(price, blocks)), turns=3)
        passes, same = [], []
        for workers in (1, 2):
            with (
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                with mapper(client, "scale") as run:
                    passes += seconds(partial(_complete, run, price, blocks), turns=4)
                    answer = solve_wide(blocks, budget, floor, run=run)
                same.append(answer.objective == serial.objective and np.array_equal(answer.dual, serial.dual))
    name = f"pricing pass over {count:,} columns on disk"
    return [
        Figure(
            f"{name}, two workers: times as fast", passes[0] / passes[1], "x", "one worker of dask", 1.3, at_least=True
        ),
        Figure(f"{name}, one worker", passes[0] / here, "x", "the same without dask"),
        Figure(f"{name}: seconds a block of {CHUNK:,}", here / len(blocks), "s", ""),
        Figure(
            "the same answer to the last bit, one and two workers", float(all(same)), "", "serial", 1, at_least=True
        ),
        Figure("passes over all columns until it is solved", serial.passes, "passes", ""),
        Figure("columns gathered for the last LP", serial.gathered / count, "x", "all columns"),
    ]


def _complete(run, function, blocks):
    return list(run(function, blocks))


# -- services ------------------------------------------------------------------------------------------------


def service_figures(count):
    """Decisions a second on projected arrivals, together and one by one."""
    program = compiled(100 * count)
    projected = program_for(100 * count).project(arrivals(count))
    small = program.project(arrivals(20_000))
    policy = osilp.MirrorDescent()
    batch = program_for(100 * count).controller(policy, "projected")
    single = program.controller(policy, "projected")

    def one_by_one():
        for arrival in small:
            single.step(arrival)

    together, apart = seconds(lambda: batch.steps(projected), one_by_one, turns=4)
    return [
        Figure("steps(projected), decisions in a second", count / together, "/s", "", 1e6, at_least=True),
        Figure("step(projected arrival), 2,000 points", 1e6 * apart / len(small), "us", "", 10),
    ]


if __name__ == "__main__":
    shown("Scale", figures("--quick" in sys.argv[1:]))
