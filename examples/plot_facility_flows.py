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
from pyomo.contrib.pyros import BoxSet, CardinalitySet

import osilp_pyomo as osilp

OPENING = [100, 140, 80, 150]
CAPACITY = [100, 140, 80, 150]
SHIPPING = np.array([[2, 3, 1.5, 4, 3.3], [1.5, 0.4, 1, 2.2, 3.5], [3.4, 1.4, 2.1, 3.3, 1.6], [2.6, 2.1, 2, 1.4, 1.3]])
EXPECTED = [45, 30, 60, 55, 25]
SITES, CUSTOMERS = range(4), range(5)


def build_model(demand, basis="affine"):
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

model = build_model(BoxSet([(0.9 * each, 1.1 * each) for each in EXPECTED]))
result = osilp.solve(model)
opened = [i for i in SITES if model.opened[i].value > 0.5]
print(f"{result.status}, worst cost {result.objective:.1f}, sites {opened}, certified {result.certified}")
for i in opened:
    print(result.function(model.flow[i, 2]))
assert abs(result.objective - 572.4) < 1e-5

# %%
# What reacting is worth
# ----------------------
# If all may want more, who reacts has to pay for just that as well. But seldom do all of them want more together. With
# a limit on how many do, flows that react cost less; those that are fixed must be the largest for everybody.

counts = [0, 1, 2, 3, 4, 5]
sets = [CardinalitySet(EXPECTED, [0.05 * each for each in EXPECTED], count) for count in counts]
costs = {
    "flows fixed at once": [osilp.solve(build_model(each, "constant")).objective for each in sets],
    "flows that react": [osilp.solve(build_model(each)).objective for each in sets],
}
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for (name, values), marker, colour in zip(costs.items(), "os", ("#D55E00", "#0072B2"), strict=True):
    axis.plot(counts, values, marker=marker, color=colour, label=name)
    print(name, np.round(values, 1))
axis.fill_between(counts, *costs.values(), color="#0072B2", alpha=0.12)
axis.set(xlabel="customers that may want 5 % more, at most", ylabel="worst cost", title="What reacting is worth")
axis.legend(frameon=False)
plt.show()
