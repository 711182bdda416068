"""
A robust portfolio: what protection costs
=========================================

Finance. Returns of forty assets lie in an ellipsoid around their means; the better the mean, the larger the deviation
(Ben-Tal and Nemirovski, 2000). Which portfolio is best in the worst case, and what does protection cost on average?
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet
from scipy.optimize import brentq

import osilp_pyomo as osilp

ASSETS = 40
NUMBER = np.arange(1, ASSETS + 1)
MEAN = 1.15 + NUMBER * 0.05 / ASSETS
DEVIATION = 0.05 / (3 * ASSETS) * np.sqrt(2 * NUMBER * ASSETS * (ASSETS + 1))

# %%
# The model
# ---------
# An uncertainty set of PyROS is the index; the rule gets its vectors. The worst return is a variable with a row.


def build_model(protection):
    m = pyo.ConcreteModel("portfolio")
    m.x = pyo.Var(range(ASSETS), bounds=(0, 1))
    m.worst = pyo.Var()
    m.all = pyo.Constraint(expr=pyo.quicksum(m.x[i] for i in m.x) == 1)
    m.objective = pyo.Objective(expr=m.worst, sense=pyo.maximize)

    @m.SemiInfiniteConstraint(AxisAlignedEllipsoidalSet([0] * ASSETS, [protection] * ASSETS))
    def earned(m, xi):
        return sum((float(MEAN[i]) + float(DEVIATION[i]) * xi[i]) * m.x[i] for i in m.x) >= m.worst

    return m


def known_optimum(protection):
    """Where the sum of ``(max(p_i - t, 0) / s_i)^2`` is ``protection^2``."""
    return brentq(lambda t: np.sum((np.maximum(MEAN - t, 0) / DEVIATION) ** 2) - protection**2, 0, MEAN.max())


# %%
# Four degrees of protection
# --------------------------

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
protections, worst, expected = (0.5, 1.0, 1.5, 3.0), [], []
looks = zip(("#0072B2", "#E69F00", "#009E73", "#000000"), ("-", "--", "-.", ":"), strict=True)
for protection, (colour, dash) in zip(protections, looks, strict=True):
    m = build_model(protection)
    result = osilp.solve(m, progress=False)
    x = result.values[[f"x[{i}]" for i in range(ASSETS)]].to_numpy()
    worst.append(result.objective)
    expected.append(MEAN @ x)
    known = known_optimum(protection)
    print(f"protection {protection}: worst return {result.objective:.6f} (known {known:.6f}), mean {MEAN @ x:.4f}")
    assert abs(result.objective - known) < 1e-6
    axes[1].plot(NUMBER, 100 * x, color=colour, linestyle=dash, linewidth=2, label=f"protection {protection}")
axes[0].plot(protections, expected, "o-", color="#0072B2", label="mean return")
axes[0].plot(protections, worst, "s--", color="#D55E00", label="worst return")
axes[0].set(xlabel="protection (deviations)", ylabel="return", title="What protection costs")
axes[1].set(xlabel="asset, by mean return", ylabel="share (%)", title="What is held")
for axis in axes:
    axis.legend()

# %%
# How it was found
# ----------------
# The worst return at a portfolio has a closed form over an ellipsoid, so exchange is exact here.

print(result)
plt.show()
