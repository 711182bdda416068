"""``osilp new``: a model to begin with, in a file that ``osilp solve`` and ``osilp compare`` take."""

from __future__ import annotations

import argparse
from pathlib import Path

from osilp_pyomo._files import refuse_unwritable, write_text_at_once
from osilp_pyomo.cli.output import DONE, print_json
from osilp_pyomo.errors import OptionError

_ARRIVALS = '''\
"""Requests that share a band: each takes capacity near its place, and none may be overfull.

Solve it with `osilp solve {file}`, or decide requests as they come with `osilp compare {file} --stages T`.
"""

import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

ARRIVALS = 200
CAPACITY = 12.0
WIDTH = 0.1


def build_model():
    rng = np.random.default_rng(7)
    # What each request brings. To use a table of your own: data = pandas.read_csv("requests.csv"), one row per
    # request, and value = dict(enumerate(data["value"], start=1)).
    value = dict(enumerate(rng.uniform(1, 10, ARRIVALS), start=1))
    place = dict(enumerate(rng.uniform(0, 1, ARRIVALS), start=1))

    m = pyo.ConcreteModel("requests")
    m.u = ContinuousSet(bounds=(0, 1))  # the continuous index: a place on the band
    m.T = pyo.RangeSet(ARRIVALS)  # the requests
    m.value = pyo.Param(m.T, initialize=value, mutable=True)
    m.place = pyo.Param(m.T, initialize=place, mutable=True)
    m.x = pyo.Var(m.T, bounds=(0, 1))  # how much of each is served
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)  # holds at every place, not at some points only
    def usage(m, u):
        return sum(pyo.exp(-(((u - m.place[t]) / WIDTH) ** 2)) * m.x[t] for t in m.T) <= CAPACITY

    return m


if __name__ == "__main__":
    print(osilp.solve(build_model()))
'''

_ROBUST = '''\
"""Money is put into funds before their returns are known: the worst return of a set of them is to be as good as can be.

Solve it with `osilp solve {file}`.
"""

import pyomo.environ as pyo
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet

import osilp_pyomo as osilp

RETURNS = {{"bonds": 1.03, "shares": 1.09, "gold": 1.05}}  # what is expected
SPREAD = {{"bonds": 0.01, "shares": 0.15, "gold": 0.10}}  # how far each may be from that


def build_model():
    m = pyo.ConcreteModel("funds")
    m.funds = pyo.Set(initialize=list(RETURNS))
    m.share = pyo.Var(m.funds, bounds=(0, 1))
    m.worst = pyo.Var()
    m.everything = pyo.Constraint(expr=sum(m.share[f] for f in m.funds) == 1)
    m.guaranteed = pyo.Objective(expr=m.worst, sense=pyo.maximize)
    returns = AxisAlignedEllipsoidalSet(list(RETURNS.values()), list(SPREAD.values()))

    @m.SemiInfiniteConstraint(returns)  # holds for every vector of returns in the set
    def earned(m, xi):
        return m.worst <= sum(xi[k] * m.share[f] for k, f in enumerate(m.funds))

    return m


if __name__ == "__main__":
    print(osilp.solve(build_model()))
'''

#: What a file may hold, and what to do with it next.
KINDS = {
    "arrivals": (_ARRIVALS, ("osilp solve {file}", "osilp compare {file} --stages T --trials 3 --order permutation")),
    "robust": (_ROBUST, ("osilp solve {file}",)),
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("file", metavar="FILE", nargs="?", default="model.py", help="what to write (default model.py)")
    command.add_argument(
        "--kind", choices=tuple(KINDS), default="arrivals",
        help="requests that share a capacity along an index, for solve and compare (arrivals, the default), or a row "
        "that holds for every vector of an uncertainty set (robust)",
    )  # fmt: skip


def run(chosen: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    file = Path(chosen.file)
    if file.suffix != ".py":
        raise OptionError(f"new: the name of the file must end in .py (got '{chosen.file}').")
    if file.exists():
        raise OptionError(f"new: '{chosen.file}' exists already and is left as it is; give another name.")
    refuse_unwritable(file, "new")
    text, commands = KINDS[chosen.kind]
    write_text_at_once(file, text.format(file=chosen.file))
    following = [each.format(file=chosen.file) for each in commands]
    if chosen.json:
        print_json({"file": str(file), "next": following})
    else:
        print(f"Wrote {chosen.file}. Next:")
        print("\n".join(f"  {each}" for each in following))
    return DONE
