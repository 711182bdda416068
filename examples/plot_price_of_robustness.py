"""
The price of robustness: a mill that buys wood unseen
=====================================================

Procurement. A mill orders wood from three forests to get enough fibre out of it. How much fibre a log of each forest
holds is known within a share only. The less is left to chance, the more the order costs: how much more, and where does
protection become expensive?
"""

import matplotlib.pyplot as plt
import pandas as pd
import pyomo.environ as pyo
from pyomo.contrib.pyros import BoxSet, CardinalitySet

import osilp_pyomo as osilp

FIBRE, PRICE, MOST = [5.0, 4.0, 3.0], [100.0, 70.0, 48.0], [55, 65, 60]
NEEDED = 500

# %%
# The model
# ---------
# The row holds for every vector of the set: with the fibre that each forest may turn out to have, there is enough.
# ``share`` is a Param, so that one model can be solved for many of its values.


def build_model(uncertain):
    m = pyo.ConcreteModel("mill")
    m.share = pyo.Param(initialize=0.1, mutable=True)
    m.order = pyo.Var(range(3), bounds=lambda m, k: (0, MOST[k]))
    m.cost = pyo.Objective(expr=sum(PRICE[k] * m.order[k] for k in m.order))

    @m.SemiInfiniteConstraint(uncertain)
    def enough(m, z):
        return sum(FIBRE[k] * (1 - m.share * z[k]) * m.order[k] for k in m.order) >= NEEDED

    return m


def solved_for(model, shares):
    """One row for each value of the Param; no cost where nothing protects from so much."""
    rows = []
    for share in shares:
        model.share.set_value(share)
        result = osilp.solve(model, load=False)
        rows.append({"share": share, "status": result.status, "objective": result.objective})
    return pd.DataFrame(rows)


# %%
# What it costs
# -------------
# The right axis reads the price of robustness in percent. Above some share no order is large enough, because the
# forests have no more wood.

shares = [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35]
frame = solved_for(build_model(BoxSet([(0, 1)] * 3)), shares)
print(frame.round(2).to_string(index=False))
osilp.plot_sweep(frame, "share")

# %%
# Against how many bad harvests
# -----------------------------
# It is unlikely that all forests disappoint together. A budget says how many of them may, and each has its own line:
# protection from one bad harvest is cheap at any share.

parts = []
for budget in (0, 1, 2, 3):
    several = solved_for(build_model(CardinalitySet([0, 0, 0], [1, 1, 1], budget)), shares[:-1])
    parts.append(several.assign(forests=budget))
both = pd.concat(parts, ignore_index=True)[["share", "forests", "objective"]]
osilp.plot_sweep(both)
nominal, worst = both["objective"].min(), frame["objective"].max()
print(f"full protection costs {worst / nominal - 1:.0%} more than none")
plt.show()
