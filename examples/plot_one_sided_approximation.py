"""
The best polynomial above a function
====================================

Approximation. Which polynomial of degree four lies above exp on [0, 1] and has the least area below it? Where they
touch, and with which weights, is Radau's quadrature rule: the price of a semi-infinite row is a measure.
"""

import matplotlib.pyplot as plt
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

DEGREE = 4

m = pyo.ConcreteModel("one-sided approximation")
m.u = ContinuousSet(bounds=(0, 1))
m.x = pyo.Var(range(DEGREE + 1))
m.area = pyo.Objective(expr=sum(m.x[k] / (k + 1) for k in m.x))


@m.SemiInfiniteConstraint(m.u)
def above(m, u):
    return sum(m.x[k] * u**k for k in m.x) >= pyo.exp(u)


result = osilp.solve(m)
print(result)
print("\nWhere the polynomial touches exp, with the weights of the Radau quadrature:")
print(result.price.atoms.to_string(index=False))

# %%
# The polynomial is so close that only the difference shows it: below are 801 points of ``evaluate_rows``.

rows = osilp.evaluate_rows(m, result)
figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
axis.plot(rows["u"], rows["body"] - rows["lower"])
axis.plot(
    result.price.atoms["u"],
    0 * result.price.atoms["weight"],
    "^",
    color="#D55E00",
    clip_on=False,
    label="where they touch",
)
axis.set(xlabel="u", ylabel="polynomial - exp(u)", title="Degree four above exp")
axis.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
axis.legend()
plt.show()
