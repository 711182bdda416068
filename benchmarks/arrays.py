"""Rows by osilp.dot beside the same rows by terms: declaring, compiling online, cloning and pickling.

``python benchmarks/arrays.py`` takes about five minutes, most of them RSOME's; ``--quick`` half a minute. RSOME is left
out where it is not installed.
"""

import pickle
import sys
import time
from functools import partial

import numpy as np
import pyomo.environ as pyo
from figures import Figure, shown, timed
from pyomo.dae import ContinuousSet
from robust import KINDS, Instance, installed, silence

import osilp_pyomo as osilp


def declared_by_dot(instance, kind):
    """The robust model of an instance, a dot a row."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(instance.variables), bounds=(0, 10))
    m.gain = pyo.Objective(expr=osilp.dot(instance.gains, m.x), sense=pyo.maximize)
    m.rows = osilp.SemiInfiniteConstraint(
        range(instance.rows), instance.set_of(kind), rule=Row(instance.nominal, instance.moved, instance.limits)
    )
    return m


class Row:
    """The rule of the robust rows; a class, so that models can be pickled."""

    def __init__(self, nominal, moved, limits):
        self.nominal, self.moved, self.limits = nominal, moved, limits

    def __call__(self, m, i, xi):
        return osilp.dot(self.nominal[i] + xi @ self.moved[i], m.x) <= self.limits[i]


def arrivals(count, by_dot):
    """The README's model with so many arrivals."""
    rng = np.random.default_rng(7)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(count)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform())
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform())
    m.x = pyo.Var(m.T, bounds=(0, 1))
    if by_dot:
        m.reward = pyo.Objective(expr=osilp.dot(m.value, m.x), sense=pyo.maximize)
    else:
        m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        limit = 60 + 20 * pyo.sin(6 * u)
        if by_dot:
            return osilp.dot(np.exp(-(((u - m.place) / 0.1) ** 2)), m.x) <= limit
        return sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T) <= limit

    return m


def robust_figures(quick):
    instance = Instance(50, 30, 10) if quick else Instance(200, 300, 30)
    result = []
    peers = installed()
    for kind in KINDS:
        (declare, whole), (_, answer) = timed(
            lambda kind=kind: declared_by_dot(instance, kind),
            lambda kind=kind: osilp.solve(declared_by_dot(instance, kind)),
            turns=5,
        )
        name = f"{kind}, {instance}, by dot"
        result.append(Figure(f"{name}: declaring", declare / (whole - declare), "x", "solving it", 0.5))
        by_terms, (other,) = timed(lambda kind=kind: osilp.solve(instance.declared(kind)), turns=1)
        result.append(Figure(f"{name}: the whole", whole / by_terms[0], "x", "the same by terms"))
        apart = abs(answer.objective - other.objective) / abs(other.objective)
        result.append(Figure(f"{name}: optima apart, relative", apart, "", "the same by terms", 1e-9))
        if "rsome" in peers:
            started = time.perf_counter()
            with silence():
                peers["rsome"](instance, kind)
            took = time.perf_counter() - started
            result.append(Figure(f"{name}: the whole", whole / took, "x", "rsome, the whole", 0.2))
    m = declared_by_dot(instance, "box")
    (clone, pickled, declared), (_, content, _) = timed(
        m.clone, lambda: pickle.dumps(m), lambda: declared_by_dot(instance, "box"), turns=3
    )
    numbers = instance.nominal.nbytes + instance.moved.nbytes
    result.append(Figure(f"{instance}, by dot: cloning", clone / declared, "x", "declaring it"))
    result.append(Figure(f"{instance}, by dot: pickling", pickled / declared, "x", "declaring it"))
    result.append(
        Figure(f"{instance}, by dot: bytes of the pickle", len(content) / numbers, "x", "bytes of its numbers")
    )
    return result


def compiling_figures(quick):
    result = []
    for count in (2_000,) if quick else (20_000, 100_000):
        times = {}
        for by_dot in (False, True):
            (declare,), (m,) = timed(partial(arrivals, count, by_dot), turns=2)
            (compiled,), _ = timed(partial(osilp.compile_online, m, stages=m.T, basis=osilp.RBF(10)), turns=3)
            times[by_dot] = declare, compiled
        (declare, compiled), (by_dot_declare, by_dot_compiled) = times[False], times[True]
        name = f"README's model, {count:,} arrivals"
        result.append(Figure(f"{name}, by sums: compiling", compiled / declare, "x", "declaring it", 2.0))
        result.append(
            Figure(
                f"{name}, by dot: compiling", by_dot_compiled / (2 * declare), "x", "twice declaring it by sums", 0.1
            )
        )
        result.append(Figure(f"{name}, by dot: compiling", by_dot_compiled / compiled, "x", "compiling it by sums"))
        result.append(Figure(f"{name}, by dot: declaring", by_dot_declare / declare, "x", "declaring it by sums"))
    return result


def figures(quick=False):
    """The figures of the suite."""
    return robust_figures(quick) + compiling_figures(quick)


if __name__ == "__main__":
    shown("Arrays", figures("--quick" in sys.argv))
