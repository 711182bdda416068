"""How much to order when only the mean and the variance of demand are known: Scarf's newsvendor, and a sampled one.

Scarf (1958): with cost c, price p, mean m and deviation s, order ``m + s (p - 2c) / (2 sqrt(c (p - c)))``. The worst
demand has two values only; it comes back as the price of the semi-infinite rows.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo

import osilp_pyomo as osilp
from osilp_pyomo import dro

COST, PRICE, MEAN, DEVIATION = 1.0, 3.0, 10.0, 3.0


def build_model(ambiguity):
    m = pyo.ConcreteModel("newsvendor")
    m.order = pyo.Var(bounds=(0, None))
    sales = dro.worst_case_expectation(m, lambda m, demand: [-PRICE * demand, -PRICE * m.order], ambiguity, name="risk")
    m.loss = pyo.Objective(expr=COST * m.order + sales)
    return m


if __name__ == "__main__":
    known = dro.Moments.mean_variance((0, None), MEAN, DEVIATION**2)
    m = build_model(known)
    result = osilp.solve(m)
    root = np.sqrt(COST * (PRICE - COST))
    scarf = MEAN + DEVIATION * (PRICE - 2 * COST) / (2 * root)
    print(f"order {m.order.value:.4f} (Scarf {scarf:.4f}); worst expected profit {-result.objective:.6f}")
    assert abs(-result.objective - ((PRICE - COST) * MEAN - DEVIATION * root)) < 1e-6
    worst = dro.worst_case_distribution(result, m.risk)
    print(worst.round(4).to_string(index=False))
    print(f"its mean {worst.probability @ worst.xi:.4f}, its second moment {worst.probability @ worst.xi**2:.4f}")

    history = np.random.default_rng(1).gamma((MEAN / DEVIATION) ** 2, DEVIATION**2 / MEAN, 30)
    radii = np.array([0.0, 0.1, 0.3, 1.0, 3.0])
    profits = []
    for radius in radii:
        sampled = build_model(dro.Wasserstein(history, radius, (0, None)))
        profits.append(-osilp.solve(sampled).objective)
        print(f"30 past demands moved by at most {radius} on average: {profits[-1]:.4f} expected")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    axes[0].hist(history, bins=12, density=True, alpha=0.4, label="30 past demands")
    axes[0].vlines(worst.xi, 0, worst.probability, lw=3, color="C3", label="the worst two values")
    axes[0].axvline(m.order.value, color="k", linestyle=":", label="order")
    axes[0].set(xlabel="demand", ylabel="probability", title="Mean and variance known")
    axes[1].plot(radii, profits, "o-")
    axes[1].set(
        xlabel="radius of the Wasserstein ball", ylabel="worst expected profit", title="A sample, not quite trusted"
    )
    axes[0].legend(loc="upper right")
    figure.savefig("dro_newsvendor.png", dpi=120)
