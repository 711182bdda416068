"""
Network revenue with a continuous lead time
===========================================

Revenue management. A hotel sells stays that begin at any moment of a season and last for any length. Requests come
days ahead, one by one, with an offer; a room is needed at every moment of the stay, arrival and departure in
continuous time. Which requests should be taken, and what is a room worth at each moment of the season?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

ROOMS, DAYS, REQUESTS = 20, 30, 400

# %%
# The model
# ---------
# A stay uses its room between two moments. Written with ``Expr_if`` it is traced, and exchange looks at the very
# moments at which a stay begins or ends.

m = pyo.ConcreteModel("hotel")
m.day = ContinuousSet(bounds=(0, DAYS))
m.T = pyo.RangeSet(REQUESTS)
m.offer = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals)
m.begin = pyo.Param(m.T, mutable=True)
m.end = pyo.Param(m.T, mutable=True)
m.take = pyo.Var(m.T, bounds=(0, 1))
m.revenue = pyo.Objective(expr=pyo.sum_product(m.offer, m.take), sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.day)
def rooms(m, day):
    inside = [pyo.Expr_if(abs(day - (m.begin[t] + m.end[t]) / 2) <= (m.end[t] - m.begin[t]) / 2, 1, 0) for t in m.T]
    return sum(inside[k] * m.take[t] for k, t in enumerate(m.T)) <= ROOMS


# %%
# A season of requests
# --------------------
# Weekends are wanted most; longer stays pay less a night.


def season(rng, count):
    begin = np.clip(7 * rng.integers(0, 5, count) + rng.normal(4.5, 1.5, count), 0, DAYS - 1)
    nights = np.minimum(rng.gamma(2.0, 1.5, count) + 0.5, DAYS - begin)
    offer = rng.uniform(60, 140, count) * nights**0.8
    return pd.DataFrame({"offer": offer, "begin": begin, "end": begin + nights})


requests = season(np.random.default_rng(3), REQUESTS)
for name in requests:
    getattr(m, name).store_values(dict(zip(m.T, requests[name], strict=True)))
result = osilp.solve(m)
print(result)
accepted = sum(m.take[t].value > 0.5 for t in m.T)
print(f"{accepted} of {REQUESTS} requests are taken with hindsight, for {result.objective:,.0f}")
osilp.plot_rows(m, result)

# %%
# Online
# ------
# The same model decides each request when it comes. A guard keeps it within the rooms at every point of the grid;
# requests are drawn anew in each trial.

program = osilp.compile_online(m, stages=m.T, basis=osilp.Indicator(30), grid=osilp.Midpoint(300))
policies = {"first come, first served": osilp.Greedy(), "bid prices, re-solved": osilp.Resolve()}
study = osilp.compare(program, policies, sampler=season, trials=4, seed=2, benchmarks=["exchange"], progress=False)
print(study)
study.plot("price")

# %%
# Who gets a room
# ---------------
# A stay is worth taking if its offer is above what its nights cost, at the price in hindsight: above the diagonal. The
# picture needs no more than that, however many numbers a request has.

run = program.replay(osilp.Resolve(), requests, progress=False)
run.plot("served", benchmark=program.solve_offline(requests))
plt.show()
