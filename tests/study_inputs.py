"""Programs and samplers of studies that other processes can import."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
from models import packing

import osilp_pyomo as osilp


def packing_program(arrivals=60, **options):
    m = packing(arrivals)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(80), **options)


def uniform_requests(rng, horizon):
    return pd.DataFrame({"value": rng.uniform(size=horizon), "place": rng.uniform(size=horizon)})


def scaled_requests(scale, rng, horizon):
    return pd.DataFrame({"value": scale * rng.uniform(size=horizon), "place": rng.uniform(size=horizon)})


def few_requests(rng, horizon):
    """A support of five."""
    return uniform_requests(rng, 5)


def heed_interrupts():
    """For a process of its own: a shell that runs the tests in the background leaves SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Told:
    """A sampler that tells a file about each of its calls, and takes its time from a certain call on."""

    def __init__(self, path, seconds=0.0, quick=0):
        self.path, self.seconds, self.quick = str(path), seconds, quick

    def __call__(self, rng, horizon):
        import time

        drawn = uniform_requests(rng, horizon)
        with open(self.path, "a") as file:
            file.write(f"{os.getpid()} {horizon} {drawn['value'].iloc[0]!r}\n")
        if len(self.calls()) > self.quick:
            time.sleep(self.seconds)
        return drawn

    def calls(self):
        text = Path(self.path).read_text() if Path(self.path).exists() else ""
        return text.splitlines()


POLICIES = (osilp.MirrorDescent(), osilp.Resolve())


def steady(study):
    """The runs of a study without what depends on the clock."""
    timing = [measure.column for measure in study.measures if measure.timing]
    return study.runs.drop(columns=timing)


def same(one, other):
    pd.testing.assert_frame_equal(steady(one), steady(other), check_exact=True)
    for name in ("rows", "paths", "curves"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)
    times = ["seconds"]
    pd.testing.assert_frame_equal(one.offline.drop(columns=times), other.offline.drop(columns=times), check_exact=True)


def values_of(program, positions):
    return np.asarray(program.arrivals().values[0])[positions]
