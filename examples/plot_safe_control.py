"""A feedback that is safe at every state: s' = s^3 + u(s) with u(s) = a s + b s^3 and |u| <= 2 on [-1, 1].

The state returns at a rate of at least t if s s' <= -t s^2 for all s. At s = 1 the input's limit allows t = 1 and no
more, which u = -(s + s^3) attains: the known answer.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp


def build_model(limit=2.0):
    m = pyo.ConcreteModel("safe feedback")
    m.s = ContinuousSet(bounds=(-1, 1))
    m.a, m.b, m.rate = pyo.Var(), pyo.Var(), pyo.Var()
    m.margin = pyo.Objective(expr=m.rate, sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.s)
    def returns(m, s):
        return s**2 + m.a + m.b * s**2 <= -m.rate

    @m.SemiInfiniteConstraint(m.s)
    def possible(m, s):
        return (-limit, m.a * s + m.b * s**3, limit)

    return m


if __name__ == "__main__":
    m = build_model()
    result = osilp.solve(m)
    print(result)
    print(f"\nrate {m.rate.value:.8f} (known 1) with u(s) = {m.a.value:.4f} s + {m.b.value:.4f} s^3")
    assert abs(m.rate.value - 1) < 1e-7
    s = np.linspace(-1, 1, 401)
    u = m.a.value * s + m.b.value * s**3
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    axes[0].plot(s, u, label="input")
    axes[0].hlines([-2, 2], -1, 1, color="grey", linestyle=":", label="its limits")
    axes[0].set(xlabel="state", ylabel="u(s)", title="The feedback")
    axes[1].plot(s, s * (s**3 + u), label="s s'")
    axes[1].plot(s, -m.rate.value * s**2, "--", label="-rate s^2")
    axes[1].set(xlabel="state", ylabel="change of s^2 / 2", title="The margin")
    for axis in axes:
        axis.legend()
    figure.savefig("safety_margin.png", dpi=120)
