"""A study in a process of its own, to be stopped: ``long_study.py FOLDER LOG TRIALS SECONDS WORKERS``."""

import sys

from study_inputs import POLICIES, Told, packing_program

import osilp_pyomo as osilp

if __name__ == "__main__":
    folder, log, trials, seconds, workers = sys.argv[1:]
    osilp.compare(
        packing_program(), POLICIES, sampler=Told(log, float(seconds)), trials=int(trials), seed=5, path=folder,
        executor=int(workers) or None,
    )  # fmt: skip
