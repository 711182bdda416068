"""Cheapest lamps that light every point of a disc: a two-dimensional index with `where`, and an integer variant."""

import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

PLACES = [(np.cos(a), np.sin(a)) for a in np.linspace(0, 2 * np.pi, 8, endpoint=False)] + [(0.0, 0.0)]


def build_model(whole_lamps=False):
    m = pyo.ConcreteModel("lamps over a disc")
    m.u = ContinuousSet(bounds=(-1, 1))
    m.v = ContinuousSet(bounds=(-1, 1))
    m.power = pyo.Var(range(len(PLACES)), within=pyo.NonNegativeIntegers if whole_lamps else pyo.NonNegativeReals)
    m.cost = pyo.Objective(expr=sum(m.power[k] for k in m.power))

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u**2 + v**2 <= 1)
    def bright(m, u, v):
        light = sum(m.power[k] / (0.2 + (u - x) ** 2 + (v - y) ** 2) for k, (x, y) in enumerate(PLACES))
        return light >= 2

    return m


if __name__ == "__main__":
    print(osilp.solve(build_model()))
    print()
    print(osilp.solve(build_model(whole_lamps=True)))
