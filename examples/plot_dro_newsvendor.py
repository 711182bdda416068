"""
A newsvendor who knows mean and variance only
=============================================

Operations management. How much to order when of demand only mean and variance are known (Scarf, 1958), and what if
thirty past demands are known, but not quite trusted?
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo

import osilp_pyomo as osilp
from osilp_pyomo import dro

COST, PRICE, MEAN, DEVIATION = 1.0, 3.0, 10.0, 3.0

# %%
# The model
# ---------
# The loss has two pieces, of which the larger counts: sell the demand, or sell the order. The worst expectation over
# all distributions that fit is an expression like any other.


def build_model(ambiguity):
    m = pyo.ConcreteModel("newsvendor")
    m.order = pyo.Var(bounds=(0, None))
    sales = dro.worst_case_expectation(m, lambda m, demand: [-PRICE * demand, -PRICE * m.order], ambiguity, name="risk")
    m.loss = pyo.Objective(expr=COST * m.order + sales)
    return m


# %%
# Mean and variance
# -----------------
# Scarf's order is ``m + s (p - 2c) / (2 sqrt(c (p - c)))``. The worst demand has two values only; it comes back as the
# price of the semi-infinite rows.

m = build_model(dro.Moments.mean_variance((0, None), MEAN, DEVIATION**2))
result = osilp.solve(m)
root = np.sqrt(COST * (PRICE - COST))
scarf = MEAN + DEVIATION * (PRICE - 2 * COST) / (2 * root)
print(f"order {m.order.value:.4f} (Scarf {scarf:.4f}); worst expected profit {-result.objective:.6f}")
assert abs(-result.objective - ((PRICE - COST) * MEAN - DEVIATION * root)) < 1e-6
worst = dro.worst_case_distribution(result, m.risk)
print(worst.round(4).to_string(index=False))
print(f"its mean {worst.probability @ worst.xi:.4f}, its second moment {worst.probability @ worst.xi**2:.4f}")

# %%
# A sample, not quite trusted
# ---------------------------
# All distributions within a Wasserstein distance of thirty past demands: with a radius of 0 the sample is believed.

history = np.random.default_rng(1).gamma((MEAN / DEVIATION) ** 2, DEVIATION**2 / MEAN, 30)
radii = np.array([0.0, 0.1, 0.3, 1.0, 3.0])
profits = [-osilp.solve(build_model(dro.Wasserstein(history, radius, (0, None)))).objective for radius in radii]
for radius, profit in zip(radii, profits, strict=True):
    print(f"30 past demands moved by at most {radius} on average: {profit:.4f} expected")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
axes[0].hist(history, bins=12, density=True, alpha=0.4, label="30 past demands")
axes[0].vlines(worst.xi, 0, worst.probability, lw=3, color="#D55E00", label="the worst two values")
axes[0].axvline(m.order.value, color="k", linestyle=":", label="order")
axes[0].set(xlabel="demand", ylabel="probability", title="Mean and variance known")
axes[0].legend(loc="upper right")
axes[1].plot(radii, profits, "o-")
axes[1].set(
    xlabel="radius of the Wasserstein ball", ylabel="worst expected profit", title="A sample, not quite trusted"
)
plt.show()
