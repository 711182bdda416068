"""
Where the loss comes from: parcels for a cable car
==================================================

Transport. A cable car runs all day, and parcels ask for a ride around some hour. Who decides as they come earns less
than who knows them all. How much less, from when on, and *why*: for want of knowledge, because of the guard that keeps
every hour within its capacity, or because capacity was saved for parcels that never came?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

PARCELS = 600

# %%
# The model
# ---------

m = pyo.ConcreteModel("cable car")
m.hour = ContinuousSet(bounds=(6, 20))
m.T = pyo.RangeSet(PARCELS)
m.fare = pyo.Param(m.T, mutable=True)
m.wish = pyo.Param(m.T, mutable=True)
m.carry = pyo.Var(m.T, bounds=(0, 1))
m.income = pyo.Objective(expr=sum(m.fare[t] * m.carry[t] for t in m.T), sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.hour)
def cabins(m, hour):
    return sum(pyo.exp(-(((hour - m.wish[t]) / 0.8) ** 2)) * m.carry[t] for t in m.T) <= 35


# %%
# Four ways to decide
# -------------------
# Each meets the same parcels as the others, five days of them.


def day(rng, count):
    return pd.DataFrame({"fare": rng.gamma(3.0, 2.0, count), "wish": 6 + 14 * rng.beta(2, 2, count)})


program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(12), grid=osilp.Midpoint(150))
policies = {
    "first come, first served": osilp.Greedy(),
    "mirror descent": osilp.MirrorDescent(),
    "re-solved": osilp.Resolve(),
}
study = osilp.compare(
    program, policies, sampler=day, trials=5, seed=3, benchmarks=["exchange"], progress=False
)  # fmt: skip
print(study.table(["reward", "relative_regret_exchange", "guarded"]).to_string(index=False))

# %%
# From when on
# ------------
# At first who takes everything is ahead of the optimum, which keeps room for what it knows will come. The right side
# shows who is behind in the end.

study.plot("reward")

# %%
# Why
# ---
# By the prices of the optimum in hindsight every decision, and every bit of capacity, is worth something. So the whole
# loss falls apart, with no rest: decisions by a price that was not yet right, ties, decisions that the guard changed,
# and capacity that nobody used. ``study.losses`` has the numbers of each day.

study.plot("loss")
parts = study.losses.pivot_table(index="policy", columns="part", values="value", aggfunc="mean", sort=False)
print(parts.round(1).to_string())
assert np.allclose(parts.sum(axis=1), study.runs.groupby("policy", sort=False)["regret_exchange"].mean(), atol=1e-5)
plt.show()
