"""
One million arrivals in a file
==============================

Logistics. A million requests for a place on a road stand in a Parquet file, with what they pay and where. A stretch
around each is worn by it, and no point of the road may be worn too much. They are decided as they come, and compared
with the optimum in hindsight, chunk by chunk: memory does not grow with their number. Needs the extra ``parquet``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

COUNT = 1_000_000
folder = tempfile.TemporaryDirectory()
source, decided, hindsight = (Path(folder.name) / f"{name}.parquet" for name in ("requests", "online", "hindsight"))

# %%
# The model
# ---------
# Three example requests say what a request is; the others are in the file.

m = pyo.ConcreteModel("road")
m.u = ContinuousSet(bounds=(0, 1))
m.T = pyo.RangeSet(3)
m.pays = pyo.Param(m.T, mutable=True)
m.place = pyo.Param(m.T, mutable=True)
m.x = pyo.Var(m.T, bounds=(0, 1))
m.income = pyo.Objective(expr=sum(m.pays[t] * m.x[t] for t in m.T), sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.u)
def wear(m, u):
    worn = sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
    return worn <= COUNT * (0.06 + 0.02 * pyo.sin(6 * u))


rng = np.random.default_rng(0)
frame = pd.DataFrame({"pays": rng.gamma(2.0, 1.0, COUNT), "place": rng.beta(2.0, 3.0, COUNT)})
frame.to_parquet(source, row_group_size=100_000)
program = osilp.compile_online(m, stages=m.T, horizon=COUNT, basis=osilp.RBF(10), grid=osilp.Midpoint(40))

# %%
# Online, then in hindsight
# -------------------------
# The replay reads the file once. The optimum of all million is exact: an LP with ten rows and a million columns, of
# which only those near their threshold are ever gathered.

run = program.replay(osilp.MirrorDescent(), source, "projected", write=decided, progress=False)
best = program.solve_offline(source, "projected", write=hindsight, progress=False)
print(f"online    {run.objective:,.0f} in {run.seconds:.1f} s: {run.arrivals / run.seconds:,.0f} requests a second")
print(f"hindsight {best.objective:,.0f} in {best.seconds:.1f} s")
print(run.regret(best))

# %%
# Who is served
# -------------
# In hindsight a request is served if it pays more than the wear of its place costs: the price is one curve on the road.

online, offline = (pd.read_parquet(path)["x"].to_numpy() for path in (decided, hindsight))
print(f"decided alike: {np.mean(np.isclose(online, offline)):.1%} of the requests")
some = rng.choice(COUNT, 4000, replace=False)
road = np.linspace(0, 1, 201)
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
served = online[some] > 0.5
for chosen, colour, label in ((served, "#0072B2", "served online"), (~served, "0.75", "refused online")):
    axis.plot(frame["place"][some][chosen], frame["pays"][some][chosen], ".", color=colour, markersize=3, label=label)
axis.plot(road, best.price.of(place=road), "k", label="what serving there costs, in hindsight")
axis.set(xlabel="place on the road", ylabel="what a request pays", ylim=(0, 6), title="4,000 of a million requests")
axis.legend(loc="upper right")
folder.cleanup()
plt.show()
