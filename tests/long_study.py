"""A study in a process of its own, to be stopped: ``long_study.py FOLDER LOG TRIALS SECONDS WORKERS QUICK``.

Calls of the sampler beyond the first QUICK take SECONDS each.
"""

import sys

from study_inputs import POLICIES, Told, heed_interrupts, packing_program

import osilp_pyomo as osilp

if __name__ == "__main__":
    heed_interrupts()
    folder, log, trials, seconds, workers, quick = sys.argv[1:]
    sampler = Told(log, float(seconds), int(quick))
    osilp.compare(
        packing_program(), POLICIES, sampler=sampler, trials=int(trials), seed=5, path=folder,
        executor=int(workers) or None,
    )  # fmt: skip
