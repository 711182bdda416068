"""
Bandwidth with log utility and convex use
=========================================

Networks. Users come one by one and are given a rate each. A rate is worth its logarithm, as in proportional fairness,
and the power that it takes grows faster than the rate, spread over the band around the user's frequency. At every
frequency power is limited. Offline it is a convex program, online each user is decided at once by a price on the band.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

USERS, WIDTH = 800, 0.1

# %%
# The model
# ---------
# What is earned is concave and what is used convex in the decision; both are written as they are.

m = pyo.ConcreteModel("bandwidth")
m.f = ContinuousSet(bounds=(0, 1))
m.T = pyo.RangeSet(3)  # examples; 800 will come
m.weight = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals, initialize=1.0)
m.place = pyo.Param(m.T, mutable=True, within=pyo.UnitInterval, initialize=0.5)
m.rate = pyo.Var(m.T, bounds=(0, 4))
m.utility = pyo.Objective(expr=sum(m.weight[t] * pyo.log(1 + m.rate[t]) for t in m.T), sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.f)
def power(m, f):
    used = sum(pyo.exp(-(((f - m.place[t]) / WIDTH) ** 2)) * (pyo.exp(m.rate[t] / 2) - 1) for t in m.T)
    return used <= USERS * (0.16 - 0.06 * f)


program = osilp.compile_online(m, stages=m.T, horizon=USERS, basis=osilp.Hat(12), grid=osilp.Midpoint(120))
print(program.describe())

# %%
# All users known
# ---------------
# Hindsight: a convex program over the whole band, solved by Newton's method on its dual. The price on the band is high
# where users crowd.

rng = np.random.default_rng(5)
users = pd.DataFrame({"weight": rng.uniform(0.5, 1.5, USERS), "place": rng.beta(2, 3, USERS)})
best = program.solve_offline(users)
print(best)

# %%
# One by one
# ----------
# The same users online: mirror descent, and the price of past users re-solved. The guard lets no frequency run over.

runs = {
    "mirror descent": program.replay(osilp.MirrorDescent(target="remaining"), users),
    "re-solve": program.replay(osilp.Resolve(), users),
}
for name, run in runs.items():
    print(f"\n{name}: {run.regret(best)}\n{run}")
    assert run.violation == 0

# %%
# Who gets what, and when it is lost
# ----------------------------------
# In hindsight a user gets more where the band is empty, and the policies find nearly that. What they earn hardly
# differs on the left; how far they are behind the optimum does, on the right.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
order = np.argsort(users["place"].to_numpy())
place = users["place"].to_numpy()[order]
earned = users["weight"].to_numpy() * np.log1p(best.values.to_numpy())
for (name, run), colour, dash in zip(runs.items(), ("#0072B2", "#D55E00"), ("--", "-"), strict=True):
    rates = run.decisions.iloc[order].rolling(40, center=True).mean()
    axes[0].plot(place, rates, color=colour, linestyle=dash, label=name)
    lost = 100 * np.cumsum(earned - run.rewards.to_numpy()) / best.objective
    axes[1].plot(np.arange(1, USERS + 1), lost, color=colour, linestyle=dash, label=name)
rates = best.values.iloc[order].rolling(40, center=True).mean()
axes[0].plot(place, rates, color="#009E73", linewidth=3, alpha=0.7, label="in hindsight")
axes[1].axhline(0, color="#009E73", linewidth=3, alpha=0.7)
axes[0].set(xlabel="frequency of the user", ylabel="rate, mean of 40 neighbours", title="What users get")
axes[1].set(xlabel="users so far", ylabel="behind hindsight, % of its total", title="Utility over time")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()
