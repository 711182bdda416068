"""
Safe control over a state interval
==================================

Control. A feedback u(s) = a s + b s^3 with a limited input shall bring the state of s' = s^3 + u back to zero as fast
as can be guaranteed, from *every* state in [-1, 1]. The guaranteed rate is the largest t with s s' <= -t s^2 for all
s.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

LIMIT = 2.0

# %%
# The model
# ---------
# Both rows hold for every state: the first divides the condition by s^2, the second is a ranged row.

m = pyo.ConcreteModel("safe feedback")
m.s = ContinuousSet(bounds=(-1, 1))
m.a, m.b, m.rate = pyo.Var(), pyo.Var(), pyo.Var()
m.margin = pyo.Objective(expr=m.rate, sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.s)
def returns(m, s):
    return s**2 + m.a + m.b * s**2 <= -m.rate


@m.SemiInfiniteConstraint(m.s)
def possible(m, s):
    return (-LIMIT, m.a * s + m.b * s**3, LIMIT)


print(m.returns, m.possible, sep="\n")

# %%
# The answer
# ----------
# At s = 1 the input's limit allows a rate of 1 and no more, which u = -(s + s^3) attains: the known answer.

result = osilp.solve(m)
print(result)
print(f"\nrate {m.rate.value:.8f} (known 1) with u(s) = {m.a.value:.4f} s + {m.b.value:.4f} s^3")
assert abs(m.rate.value - 1) < 1e-7
osilp.plot_rows(m, result)

# %%
# It returns
# ----------
# From any state the square of s falls at least as fast as exp(-2 t).

time, start = np.linspace(0, 3, 301), np.linspace(-1, 1, 9)
state = np.empty((len(time), len(start)))
state[0] = start
for k in range(1, len(time)):
    s, step = state[k - 1], time[1]
    state[k] = s + step * (s**3 + m.a.value * s + m.b.value * s**3)
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.plot(time, state, color="#0072B2", linewidth=1)
axis.plot(time, np.exp(-m.rate.value * time), "k--", label="exp(-t), what is guaranteed")
axis.plot(time, -np.exp(-m.rate.value * time), "k--")
axis.set(xlabel="time", ylabel="state", title="Nine states return")
axis.legend()
assert (np.abs(state) <= np.exp(-0.97 * time)[:, None] + 1e-9).all()
plt.show()
