"""
Robust and online: shared factors move what a request takes
===========================================================

Cloud computing. Requests come one by one, and what each takes of a resource moves with four factors that all of them
share. The resource must last for every value of the factors in an ellipsoid. The program prices points of its boundary;
the benchmark is the robust optimum in hindsight, which is exact.
"""

import matplotlib.pyplot as plt
import pandas as pd
import pyomo.environ as pyo
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet

import osilp_pyomo as osilp

FACTORS = range(4)

m = pyo.ConcreteModel("robust admission")
m.T = pyo.RangeSet(100)
m.accept = pyo.Var(m.T, bounds=(0, 1))
m.value = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals)
m.use = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals)
m.shift = pyo.Param(m.T, FACTORS, mutable=True, within=pyo.Reals)
m.total = pyo.Objective(expr=pyo.sum_product(m.value, m.accept), sense=pyo.maximize)


@m.SemiInfiniteConstraint(AxisAlignedEllipsoidalSet([0] * 4, [1] * 4))
def resource(m, xi):
    taken = sum((m.use[t] + sum(m.shift[t, k] * xi[k] for k in FACTORS)) * m.accept[t] for t in m.T)
    return taken <= 25


program = osilp.compile_online(m, stages=m.T)
print(program.describe())

# %%
# Regret falls with the number of requests
# ----------------------------------------
# Limits grow with the horizon, so that a request has the same share of the resource.


def draw(rng, count):
    columns = {"value": rng.uniform(0.5, 1.5, count), "use": rng.uniform(0.5, 1.0, count)}
    return pd.DataFrame(columns | {("shift", k): 0.1 + 0.2 * rng.normal(size=count) for k in FACTORS})


study = osilp.compare(
    program,
    [osilp.MirrorDescent(), osilp.Resolve()],
    sampler=draw,
    horizons=[100, 400, 1600],
    trials=3,
    seed=1,
    guards=["pointwise"],
    benchmarks=["exchange"],
    progress=False,
)
print(study)
study.plot("regret")
plt.show()
