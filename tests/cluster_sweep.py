"""A solve on a cluster of two workers, one of which is killed in the middle: ``python cluster_sweep.py FOLDER``.

Prints as JSON the objectives found here, on the cluster with the worker that dies, and on what is left of it.
"""

import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import distributed
from long_sweep import make_program

import osilp_pyomo as osilp
from osilp_pyomo.lp import wide as wide_lp


class Doomed(ThreadPoolExecutor):
    """Hands everything on to another executor, and kills a process while its second pass is under way."""

    def __init__(self, executor, victim):
        super().__init__(1)
        self.executor, self.victim, self.submitted = executor, victim, 0

    def submit(self, function, /, *arguments, **options):
        future = self.executor.submit(function, *arguments, **options)
        self.submitted += 1
        if self.submitted == 45:
            os.kill(self.victim, signal.SIGKILL)
        return future


def main(folder):
    wide_lp._AT_ONCE, wide_lp._BAND = 300, 30
    program, chunks = make_program(), osilp.Chunks(folder / "a.parquet", rows=30)
    objectives = [program.solve_offline(chunks, "projected").objective]
    # A busy machine may take its time to start processes.
    patient = {"distributed.comm.timeouts.connect": "300s", "distributed.comm.timeouts.tcp": "300s"}
    with (
        dask.config.set(patient),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, timeout=300) as client,
    ):
        doomed = Doomed(client.get_executor(), next(iter(cluster.workers.values())).pid)
        for executor in (doomed, client):
            found = program.solve_offline(chunks, "projected", cache=folder / "cache", executor=executor)
            objectives.append(found.objective)
        killed = doomed.submitted >= 45
    print(json.dumps({"objectives": objectives, "killed": killed}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
