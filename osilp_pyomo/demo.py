"""The demo: requests that share a band of frequencies, offline three ways and online by five policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

from osilp_pyomo.api import compile_online, solve
from osilp_pyomo.errors import OptionError
from osilp_pyomo.index.bases import RBF
from osilp_pyomo.index.grids import Midpoint
from osilp_pyomo.offline.results import Result
from osilp_pyomo.online.experience.policy import ExperienceReplay
from osilp_pyomo.online.policies import AccelerateThenRefine, MirrorDescent
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.resolve import Resolve
from osilp_pyomo.studies.compare import Study, compare


def demo_model(arrivals: int = 1000, seed: int = 7) -> Any:
    """The README's model: arrivals at places on [0, 1] share a capacity at every place."""
    if arrivals < 2:
        raise OptionError(f"demo: the number of arrivals must be at least 2 (got {arrivals}).")
    random = np.random.default_rng(seed)
    m = pyo.ConcreteModel("spectrum sharing")
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(arrivals)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform())
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform())
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    share = arrivals / 1000

    @m.SemiInfiniteConstraint(m.u)
    def usage(m: Any, u: Any) -> Any:
        taken = sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
        return taken <= share * (60 + 20 * pyo.sin(6 * u))

    return m


def demo_program(arrivals: int = 40) -> OnlineProgram:
    """The demo's model compiled for arrivals, small enough for an example."""
    model = demo_model(arrivals)
    return compile_online(model, stages=model.T, basis=RBF(5))


def demo_study() -> Study:
    """Two trials of one policy on the demo's model, for the examples of pictures."""
    return compare(demo_program(), Resolve(), trials=2, order="permutation", progress=False)


def solve_demo(model: Any) -> list[tuple[str, Result]]:
    """The demo's model offline, by each method."""
    return [
        ("projected on RBF(10)", solve(model, method="projected", basis=RBF(10))),
        ("discretized on Midpoint(500)", solve(model, method="discretized", grid=Midpoint(500))),
        ("exchange, exact on [0, 1]", solve(model, method="exchange")),
    ]


def compare_demo(model: Any, trials: int, progress: bool = True) -> Study:
    """The demo's model online: five policies on its arrivals in random order, no point ever overrun."""
    program = compile_online(model, stages=model.T, basis=RBF(10))
    policies = [MirrorDescent(), AccelerateThenRefine(), Resolve(), Resolve(exact=True), ExperienceReplay()]
    return compare(program, policies, trials=trials, order="permutation", seed=0, progress=progress)


def offline_table(results: Sequence[tuple[str, Result]]) -> pd.DataFrame:
    """One row per method: objective, bound, violation in units of the row, time."""
    return pd.DataFrame([
        {
            "method": name,
            "status": result.status,
            "objective": f"{result.objective:.5f}",
            "bound": f"{result.bound:.5f}",
            "largest violation": f"{result.violation:.2g}",
            "at u": f"{result.worst_index:.4f}",
            "rows": result.rows,
            "seconds": f"{result.seconds:.2f}",
        }
        for name, result in results
    ])  # fmt: skip
