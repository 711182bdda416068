"""
Who is served, and when the capacity went: jobs for a machine hall
==================================================================

Cloud computing. Jobs ask for machines around some hour of tomorrow and say what they pay. They are accepted or refused
as they come, and at no moment of the day may more machines be promised than there are. Three pictures show what
happened: who was served, when the hall filled, and how it stands in the middle of the day before.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

JOBS = 1200

# %%
# The model
# ---------
# A job occupies machines around its hour, most of them in the middle. At night some are being repaired.

m = pyo.ConcreteModel("machine hall")
m.hour = ContinuousSet(bounds=(0, 24))
m.T = pyo.RangeSet(JOBS)
m.pays = pyo.Param(m.T, mutable=True)
m.middle = pyo.Param(m.T, mutable=True)
m.accept = pyo.Var(m.T, bounds=(0, 1))
m.income = pyo.Objective(expr=sum(m.pays[t] * m.accept[t] for t in m.T), sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.hour)
def machines(m, hour):
    busy = sum(pyo.exp(-(((hour - m.middle[t]) / 1.5) ** 2)) * m.accept[t] for t in m.T)
    return busy <= 60 + 15 * pyo.sin((hour - 8) * np.pi / 12)


# %%
# A day of requests
# -----------------
# Most want the afternoon, and those of the evening pay more.

rng = np.random.default_rng(11)
middle = 24 * np.where(rng.uniform(size=JOBS) < 0.6, rng.beta(9, 6, JOBS), rng.uniform(size=JOBS))
jobs = pd.DataFrame({"pays": rng.gamma(4.0, 1 + middle / 24), "middle": middle})
program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(12), grid=osilp.Midpoint(240))
best = program.solve_offline(jobs)
run = program.replay(osilp.Resolve(), jobs, progress=False)
print(run)
print(run.regret(best))

# %%
# Who was served
# --------------
# In hindsight a job is worth taking if it pays more than the machines that it occupies, at their price: that is the
# line. The policy did not know it, and yet most of what it took lies above. Crosses were decided by the guard, which
# lets no hour be promised twice.

run.plot("served", benchmark=best)

# %%
# When the capacity went
# ----------------------
# Each column is the hall as it stood after so many requests. Taking whatever fits fills the afternoon with the first
# third of the requests; the policy spreads every hour over all of them.

first_come = program.replay(osilp.Greedy(), jobs, progress=False)
print(f"first come, first served: {first_come.regret(best)}")
first_come.plot("use")
run.plot("use")

# %%
# In the middle
# -------------
# A controller that decides live can be looked at any time: what is promised so far, and what it asks for a machine.

controller = program.controller(osilp.Resolve())
controller.steps(jobs.head(JOBS // 2))
controller.plot()
plt.show()
