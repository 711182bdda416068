"""
Facilities: sites now, flows when the demand is seen
====================================================

Location. Which of four sites are opened is decided now; how much each sends to each of five customers once their
demands are seen. The flows are decision rules that meet every demand exactly, and the sites are binary. With demands
known up to a tenth the published optimum (ROmodel) is 572.4.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import BoxSet

import osilp_pyomo as osilp

OPENING = [100, 140, 80, 150]
CAPACITY = [100, 140, 80, 150]
SHIPPING = np.array([[2, 3, 1.5, 4, 3.3], [1.5, 0.4, 1, 2.2, 3.5], [3.4, 1.4, 2.1, 3.3, 1.6], [2.6, 2.1, 2, 1.4, 1.3]])
EXPECTED = [45, 30, 60, 55, 25]
SITES, CUSTOMERS = range(4), range(5)


def build_model(share, basis="affine"):
    demand = BoxSet([((1 - share) * each, (1 + share) * each) for each in EXPECTED])
    m = pyo.ConcreteModel("facilities")
    m.opened = pyo.Var(SITES, within=pyo.Binary)
    m.flow = osilp.FunctionVar(SITES, CUSTOMERS, over=demand, basis=basis, bounds=(0, None))
    m.cost = pyo.Var()
    m.least = pyo.Objective(expr=m.cost)

    @m.SemiInfiniteConstraint(demand)
    def spent(m, d):
        moved = sum(SHIPPING[i, j] * m.flow[i, j](d) for i in SITES for j in CUSTOMERS)
        return moved + sum(OPENING[i] * m.opened[i] for i in SITES) <= m.cost

    @m.SemiInfiniteConstraint(SITES, demand)
    def room(m, i, d):
        return sum(m.flow[i, j](d) for j in CUSTOMERS) <= CAPACITY[i] * m.opened[i]

    @m.SemiInfiniteConstraint(CUSTOMERS, demand)
    def met(m, j, d):
        sent = sum(m.flow[i, j](d) for i in SITES)
        return sent == d[j] if basis == "affine" else sent >= d[j]

    return m


# %%
# Sites and rules
# ---------------

model = build_model(0.1)
result = osilp.solve(model)
opened = [i for i in SITES if model.opened[i].value > 0.5]
print(f"{result.status}, worst cost {result.objective:.1f}, sites {opened}, certified {result.certified}")
for i in opened:
    print(result.function(model.flow[i, 2]))
assert abs(result.objective - 572.4) < 1e-5

# %%
# What reacting is worth
# ----------------------
# Flows that are fixed at once must send the largest demand to everybody (and may send too much).

shares = [0.0, 0.05, 0.1, 0.15, 0.2]
costs = {
    "flows react (affine)": [osilp.solve(build_model(share + 1e-9)).objective for share in shares],
    "flows fixed at once": [osilp.solve(build_model(share + 1e-9, "constant")).objective for share in shares],
}
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for (name, values), marker in zip(costs.items(), "os", strict=True):
    axis.plot([100 * share for share in shares], values, marker=marker, label=name)
axis.set(xlabel="demand uncertain by (%)", ylabel="worst cost", title="What reacting is worth")
axis.legend(frameon=False)
plt.show()
