"""
Monotone and convex regression
==============================

Statistics. A polynomial is fitted to noisy data by least squares, and knows that what it fits never falls and bends
upwards only, at every point and not just at the data. A band around the fit holds every curve of this shape that fits
almost as well: its ends at a point are two more convex programs.
"""

from itertools import pairwise
from math import comb

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

rng = np.random.default_rng(4)
WHERE = np.sort(rng.uniform(0, 1, 40))
SEEN = np.maximum(0, WHERE - 0.4) ** 2 * 3 + rng.normal(0, 0.12, 40)
DEGREE = 7


def bernstein(k, u, degree=DEGREE):
    """Bernstein's polynomials: as good as powers, and numerically far better."""
    return comb(degree, k) * u**k * (1 - u) ** (degree - k)


def shaped(orders):
    """The fit whose derivatives of these orders are not negative anywhere."""
    m = pyo.ConcreteModel("regression")
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(DEGREE + 1), bounds=(-9, 9))
    fitted = [sum(m.x[k] * bernstein(k, float(w)) for k in m.x) for w in WHERE]
    m.misfit = pyo.Expression(expr=sum((f - float(y)) ** 2 for f, y in zip(fitted, SEEN, strict=True)))
    m.best = pyo.Objective(expr=m.misfit)

    def derivative(m, u, order):
        differences = [m.x[k] for k in m.x]
        for _ in range(order):
            differences = [after - before for before, after in pairwise(differences)]
        return sum(bernstein(k, u, DEGREE - order) * each for k, each in enumerate(differences)) >= 0

    m.shape = osilp.SemiInfiniteConstraint(orders, m.u, rule=lambda m, order, u: derivative(m, u, order))
    return m


def curve(m, at):
    return sum(m.x[k].value * bernstein(k, at) for k in m.x)


grid, curves = np.linspace(0, 1, 201), {}
for name, orders, dash in (("monotone", [1], "-"), ("monotone and convex", [1, 2], "--")):
    m = shaped(orders)
    result = osilp.solve(m)
    print(f"{name}: misfit {result.objective:.6f}, {result.remark}, certified {result.certified}")
    curves[name] = (curve(m, grid), dash)

# %%
# The band: the lowest and the highest value at a place, of all monotone and convex curves whose misfit is at most a
# tenth above the least one. The misfit is now an ordinary convex constraint.

m.best.deactivate()
m.close = pyo.Constraint(expr=m.misfit <= 1.1 * result.objective)
places, ends = np.linspace(0, 1, 9), []
for place in places:
    for sense in (pyo.minimize, pyo.maximize):
        m.del_component("end")
        m.end = pyo.Objective(expr=sum(m.x[k] * bernstein(k, float(place)) for k in m.x), sense=sense)
        ends.append(osilp.solve(m).objective)
low, high = np.reshape(ends, (-1, 2)).T
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.plot(WHERE, SEEN, ".", color="grey", label="data")
for name, (fit, dash) in curves.items():
    axis.plot(grid, fit, linestyle=dash, linewidth=2, label=name)
axis.fill_between(places, low, high, alpha=0.2, label="fits a tenth worse")
axis.set(xlabel="u", title="Curves that never fall and bend upwards")
axis.legend()
plt.show()
