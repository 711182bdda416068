"""
Advertising slots over the day: which online policy is closest to hindsight?
============================================================================

Advertising. Campaigns arrive one by one. Each pays a fee and draws on the audience around its hour, which is limited at
every moment of the day; it is accepted or refused at once. The same model is solved with all campaigns known, and run
online by four policies, on eight days.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

# %%
# One model for both
# ------------------
# The model declares three example campaigns; ``horizon=300`` lets it stand for 300 of them.

m = pyo.ConcreteModel("advertising slots")
m.hour = ContinuousSet(bounds=(0, 24))
m.T = pyo.RangeSet(3)
m.fee = pyo.Param(m.T, mutable=True)
m.peak = pyo.Param(m.T, mutable=True)
m.x = pyo.Var(m.T, bounds=(0, 1))
m.income = pyo.Objective(expr=sum(m.fee[t] * m.x[t] for t in m.T), sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.hour)
def audience(m, hour):
    drawn = sum(pyo.exp(-(((hour - m.peak[t]) / 2) ** 2)) * m.x[t] for t in m.T)
    return drawn <= 20 + 12 * pyo.sin((hour - 8) * np.pi / 12)


program = osilp.compile_online(m, stages=m.T, horizon=300, basis=osilp.Hat(12))
print(program.describe())

# %%
# Eight days
# ----------
# Most campaigns want the evening, and pay more for it.


def campaigns(rng, horizon):
    peak = np.clip(rng.normal(18, 4, horizon), 0, 24)
    return pd.DataFrame({"fee": rng.gamma(2, 50 + 5 * peak), "peak": peak})


policies = {
    "take all that fits": osilp.Greedy(),
    "mirror descent": osilp.MirrorDescent("entropy", target="remaining"),
    "re-solve, averages": osilp.Resolve(),
    "re-solve, every moment": osilp.Resolve(exact=True),
}
study = osilp.compare(program, policies, sampler=campaigns, trials=8, seed=1, benchmarks=["exchange"], progress=False)
print(study)
best = study.summary()["relative_regret_exchange", "mean"].idxmin()
print(f"\nClosest to the plan with hindsight, with no moment of the day overbooked: {best[2]}.")
assert (study.runs["violation"] == 0).all()

# %%
# Pictures
# --------
# The regret of each policy with its interval, and how the audience was drawn on over the first day.

study.plot("regret")
study.plot("violation")
plt.show()
