"""
Robust production: half a percent of uncertainty
================================================

Chemical engineering. The drug production of Ben-Tal and Nemirovski: raw materials hold a little less of the active
agent than planned, and the nominal optimum, 8819.658, is useless. The robust one, 8294.567, gives up 6 % and always
has enough.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import BoxSet

import osilp_pyomo as osilp

AGENT = {"I": 0.01, "II": 0.02}  # grams in a kilogram of raw material
PRICE = {"I": 100.0, "II": 199.9}
NEEDED = {"A": 0.5, "B": 0.6}  # grams in a thousand packs
SOLD, COST = {"A": 6200, "B": 6900}, {"A": 700, "B": 800}
HOURS, MACHINE = {"A": 90, "B": 100}, {"A": 40, "B": 50}


def build_model(uncertain=(0.005, 0.02)):
    m = pyo.ConcreteModel("drug production")
    m.raw = pyo.Var(list(AGENT), bounds=(0, None))
    m.drug = pyo.Var(list(NEEDED), bounds=(0, None))
    spent = sum(PRICE[r] * m.raw[r] for r in m.raw) + sum(COST[d] * m.drug[d] for d in m.drug)
    m.profit = pyo.Objective(expr=sum(SOLD[d] * m.drug[d] for d in m.drug) - spent, sense=pyo.maximize)
    m.budget = pyo.Constraint(expr=spent <= 100_000)
    m.storage = pyo.Constraint(expr=m.raw["I"] + m.raw["II"] <= 1000)
    m.labour = pyo.Constraint(expr=sum(HOURS[d] * m.drug[d] for d in m.drug) <= 2000)
    m.machines = pyo.Constraint(expr=sum(MACHINE[d] * m.drug[d] for d in m.drug) <= 800)
    content = BoxSet([(a * (1 - share), a * (1 + share)) for a, share in zip(AGENT.values(), uncertain, strict=True)])

    @m.SemiInfiniteConstraint(content)
    def enough(m, agent):
        return agent[0] * m.raw["I"] + agent[1] * m.raw["II"] >= sum(NEEDED[d] * m.drug[d] for d in m.drug)

    return m


# %%
# Nominal, robust, and the counterpart
# ------------------------------------
# Exchange and the finite LP that duality makes of the robust rows are two ways to one optimum.

nominal, robust = (osilp.solve(build_model(share)) for share in ((1e-9, 1e-9), (0.005, 0.02)))
counterpart = osilp.solve(build_model(), method="counterpart")
print(robust)
print(f"\nnominal {nominal.objective:.3f}, robust {robust.objective:.3f}, counterpart {counterpart.objective:.3f}")
assert abs(nominal.objective - 8819.658) < 2e-3
assert abs(robust.objective - 8294.567) < 1e-3
assert abs(counterpart.objective - robust.objective) < 1e-6

# %%
# What certainty costs
# --------------------

shares = np.linspace(0.0, 0.04, 9)
profits = [osilp.solve(build_model((0.25 * share + 1e-9, share + 1e-9))).objective for share in shares]
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.plot(100 * shares, profits, "o-")
axis.axhline(8294.567, color="grey", linestyle=":", label="Ben-Tal and Nemirovski")
axis.set(xlabel="uncertainty of raw material II (%)", ylabel="robust profit ($)", title="What certainty costs")
axis.legend()
plt.show()
