"""
Inventory: orders that follow the demand
========================================

Operations. Three factories serve one store for 24 periods, and what is demanded is known up to a fifth. Orders react to
the demand that was seen: affine decision rules, as Ben-Tal, Goryashko, Guslitzer and Nemirovski (2004) have them. The
balance of the store is an equation for every demand. Their optimum is 44272.827.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import BoxSet

import osilp_pyomo as osilp

PERIODS, FACTORIES = range(24), range(3)
SEASON = 1 + 0.5 * np.sin(np.pi * np.arange(24) / 12)
EXPECTED, PRICE = 1000 * SEASON, np.outer([1, 1.5, 2], SEASON)
DEMAND = BoxSet([(0.8 * each, 1.2 * each) for each in EXPECTED])


def build_model():
    m = pyo.ConcreteModel("inventory")
    m.order = osilp.FunctionVar(FACTORIES, PERIODS, over=DEMAND, sees=lambda m, i, p: range(p), bounds=(0, 567))
    m.stock = osilp.FunctionVar(PERIODS, over=DEMAND, sees=lambda m, p: range(p + 1), bounds=(500, 2000))

    @m.SemiInfiniteConstraint(PERIODS, DEMAND)
    def balance(m, p, xi):
        before = 500 if p == 0 else m.stock[p - 1](xi)
        return m.stock[p](xi) == before + sum(m.order[i, p](xi) for i in FACTORIES) - xi[p]

    @m.SemiInfiniteConstraint(FACTORIES, DEMAND)
    def capacity(m, i, xi):
        return sum(m.order[i, p](xi) for p in PERIODS) <= 13_600

    m.largest = pyo.Var()
    m.cost = pyo.Objective(expr=m.largest)

    @m.SemiInfiniteConstraint(DEMAND)
    def worst(m, xi):
        return m.largest >= sum(PRICE[i, p] * m.order[i, p](xi) for i in FACTORIES for p in PERIODS)

    return m


# %%
# The best rules in the worst case
# --------------------------------

model = build_model()
result = osilp.solve(model)
print(result)
assert result.certified
assert abs(result.objective - 44272.827) < 1e-3

# %%
# The store on draws of the demand
# --------------------------------
# ``result.simulate`` applies the rules to a thousand demands that were drawn from the box: the stock stays between its
# bounds for all of them, as it does for every other demand of the box.

draws = np.random.default_rng(5).uniform(0.8, 1.2, size=(1000, 24)) * EXPECTED
seen = result.simulate(draws)
stock = seen[[f"stock[{p}]" for p in PERIODS]].to_numpy()
made = sum(seen[[f"order[{i},{p}]" for p in PERIODS]].to_numpy() for i in FACTORIES)
print(f"cost: at most {seen['cost'].max():.0f} of {result.objective:.0f}, {seen['cost'].mean():.0f} on average")
assert seen["violation"].max() < 1e-9

figure, (top, below) = plt.subplots(2, 1, figsize=(8, 5.5), sharex=True, layout="constrained")
for axis, values, name in ((top, stock, "stock"), (below, made, "orders of all factories")):
    axis.fill_between(PERIODS, *np.quantile(values, [0.05, 0.95], axis=0), alpha=0.3, label="90 % of the draws")
    axis.plot(PERIODS, values.mean(axis=0), label="mean")
    axis.set_ylabel(name)
top.axhline(500, color="black", linewidth=0.8)
top.axhline(2000, color="black", linewidth=0.8, label="bounds")
top.legend(frameon=False)
below.set_xlabel("period")
plt.show()

# %%
# One rule
# --------
# What the cheapest factory makes in period 18, by the demand of each period before; long bars matter. In the first
# periods it makes all that it can, whatever is demanded.

result.function(model.order[0, 18]).plot()
plt.show()
