"""
Covering in the plane: the cheapest lamps over a disc
=====================================================

Facility location. Every point of a disc must be lit by lamps on its rim and in its middle; light falls with the square
of the distance. What is the least total power, and which points decide it?
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

PLACES = [(np.cos(a), np.sin(a)) for a in np.linspace(0, 2 * np.pi, 8, endpoint=False)] + [(0.0, 0.0)]

# %%
# The model
# ---------
# Two continuous sets make a square, ``where=`` cuts the disc out of it.


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


m = build_model()
result = osilp.solve(m)
print(result)
osilp.plot_rows(m, result)

# %%
# Checks
# ------
# The disc and the eight lamps on its rim are symmetric, so equal lamps there cost no more; and a fine grid bounds the
# cost from below.

symmetric = build_model()
symmetric.equal = pyo.Constraint(range(7), rule=lambda m, k: m.power[k] == m.power[k + 1])
assert abs(osilp.solve(symmetric).objective - result.objective) < 1e-6 * result.objective
bound = osilp.solve(build_model(), method="discretized", grid=osilp.Midpoint(400)).objective
assert 0 <= result.objective - bound < 1e-3 * result.objective
print(f"exact {result.objective:.6f}; on 400 x 400 points {bound:.6f}, a bound from below")

# %%
# Whole lamps
# -----------
# Integer variables stay what they are: each linear program becomes a mixed-integer one. There are no prices then.

whole = osilp.solve(build_model(whole_lamps=True))
print(whole)
plt.show()
