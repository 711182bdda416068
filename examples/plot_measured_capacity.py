"""
Trucks on a road with a measured capacity
=========================================

Transport. Requests load a stretch of road around them, by day or by night; the capacity along the road was measured at
seven places. A ``Profile`` brings the measurements into the model, an ordinary Set beside the continuous one makes two
families of rows, and three methods are put side by side.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

capacity = pd.Series([9.0, 7.5, 6.0, 8.0, 5.5, 7.0, 9.0], index=[0, 15, 25, 45, 60, 80, 100], name="trucks an hour")

# %%
# The model
# ---------
# The knots of a Profile are always among the points that are looked at: capacity is scarcest there.

random = np.random.default_rng(1)
m = pyo.ConcreteModel("road")
m.km = ContinuousSet(bounds=(0, 100))
m.lane = pyo.Set(initialize=["day", "night"])
m.R = pyo.RangeSet(60)
m.fare = pyo.Param(m.R, mutable=True, initialize=lambda m, r: random.uniform(1, 5))
m.centre = pyo.Param(m.R, mutable=True, initialize=lambda m, r: random.uniform(0, 100))
m.accept = pyo.Var(m.R, m.lane, bounds=(0, 1))
m.capacity = osilp.Profile(over=m.km, initialize=capacity)
m.income = pyo.Objective(expr=sum(m.fare[r] * m.accept[r, k] for r in m.R for k in m.lane), sense=pyo.maximize)
m.once = pyo.Constraint(m.R, rule=lambda m, r: sum(m.accept[r, k] for k in m.lane) <= 1)


@m.SemiInfiniteConstraint(m.lane, m.km)
def load_on_road(m, k, km):
    load = sum(m.accept[r, k] / (1 + ((km - m.centre[r]) / 10) ** 4) for r in m.R)
    return load <= m.capacity(km) * (1 if k == "day" else 0.6)


# %%
# Three methods
# -------------
# Projected and discretized incomes are promises that cannot be kept: the violation says by how much.

for method in ("projected", "discretized", "exchange"):
    result = osilp.solve(m, method=method)
    worst = max(result.violation.values())
    print(f"{method:12} income {result.objective:9.4f}   largest violation {worst:.2g} trucks an hour")
print("\nWhere the road is scarce by day, and what one more truck an hour there is worth:")
print(result.price["load_on_road[day]"].atoms.to_string(index=False))
osilp.plot_rows(m, result)
plt.show()
