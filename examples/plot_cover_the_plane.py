"""Cheapest lamps that light every point of a disc: a two-dimensional index with `where`, and an integer variant.

The disc and its eight lamps on the rim are symmetric: equal lamps there cost no more. A fine grid bounds the cost from
below.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
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
    m = build_model()
    result = osilp.solve(m)
    print(result)
    print()
    print(osilp.solve(build_model(whole_lamps=True)))
    power = np.array([m.power[k].value for k in m.power])
    symmetric = build_model()
    symmetric.equal = pyo.Constraint(range(7), rule=lambda m, k: m.power[k] == m.power[k + 1])
    assert abs(osilp.solve(symmetric).objective - result.objective) < 1e-6 * result.objective
    bound = osilp.solve(build_model(), method="discretized", grid=osilp.Midpoint(400)).objective
    assert 0 <= result.objective - bound < 1e-3 * result.objective

    side = np.linspace(-1, 1, 201)
    u, v = np.meshgrid(side, side)
    light = sum(p / (0.2 + (u - x) ** 2 + (v - y) ** 2) for p, (x, y) in zip(power, PLACES, strict=True))
    figure, axis = plt.subplots(figsize=(4.8, 4), layout="constrained")
    drawn = axis.contourf(u, v, np.where(u**2 + v**2 <= 1, light, np.nan), levels=15)
    axis.plot(*zip(*PLACES, strict=True), "w*", markersize=10, label="lamps", linestyle="none")
    axis.plot(result.price.atoms["u"], result.price.atoms["v"], "r.", label="where light has a price")
    axis.set(title="Light over the disc, 2 at least", aspect="equal")
    axis.legend(fontsize=8)
    figure.colorbar(drawn)
    figure.savefig("cover_a_disc.png", dpi=120)
