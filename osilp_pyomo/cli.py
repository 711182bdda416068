"""The command line: ``osilp demo``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

from osilp_pyomo._version import __version__
from osilp_pyomo.bases import RBF
from osilp_pyomo.errors import OsilpError
from osilp_pyomo.grids import Midpoint
from osilp_pyomo.offline import solve
from osilp_pyomo.results import Result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="osilp", description="Semi-infinite linear programming in Pyomo.")
    parser.add_argument("--version", action="version", version=f"osilp_pyomo {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="solve the README's model exactly, on a grid and projected; print a table")
    demo.add_argument("--arrivals", type=int, default=1000, metavar="T", help="number of arrivals (default 1000)")
    chosen = parser.parse_args(arguments)
    try:
        return run_demo(chosen.arrivals)
    except OsilpError as error:
        print(f"osilp: {error}", file=sys.stderr)
        return 1


def demo_model(arrivals: int = 1000, seed: int = 7) -> Any:
    """The README's model: arrivals at places on [0, 1] share a capacity at every place."""
    if arrivals < 1:
        raise OsilpError(f"demo: the number of arrivals must be at least 1 (got {arrivals}).")
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


def run_demo(arrivals: int) -> int:
    """Solve the demo model three ways and print what came out."""
    m = demo_model(arrivals)
    print(f"{arrivals} arrivals, one capacity row for every u in [0, 1]; maximize the reward.\n")
    print(f"{m.usage!r}\n")
    results = [
        ("projected on RBF(10)", solve(m, method="projected", basis=RBF(10))),
        ("discretized on Midpoint(500)", solve(m, method="discretized", grid=Midpoint(500))),
        ("exchange, exact on [0, 1]", solve(m, method="exchange")),
    ]
    print(demo_table(results).to_string(index=False))
    exact = results[-1][1]
    low, high = exact.bracket
    print(f"\nThe optimum lies in [{low:.8g}, {high:.8g}]; the first two objectives are upper bounds, because their")
    print("rows hold against test functions or at grid points only: the violation column shows by how much not.")
    print("\nWhere the capacity binds, and what one more unit there is worth:")
    print(exact.price.atoms.to_string(index=False))
    return 0


def demo_table(results: Sequence[tuple[str, Result]]) -> pd.DataFrame:
    """One row a method: objective, bound, violation in units of the row, time."""
    return pd.DataFrame(
        [
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
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
