"""
Spectrum sharing: twelve transmitters below one mask
====================================================

Telecommunications. Transmitters share a band; each spreads its power around its own frequency, and together they must
stay below a mask *at every frequency*. How much power can they send, and where is the mask worth moving?
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

WIDTH = 0.08  # half the width of a spectrum at half its height

# %%
# The model
# ---------
# The constraint is declared once, with the frequency as an ordinary argument of its rule.


def build_model(places, mask):
    m = pyo.ConcreteModel("spectrum")
    m.frequency = ContinuousSet(bounds=(-1, 1))
    m.power = pyo.Var(range(len(places)), bounds=(0, None))
    m.total = pyo.Objective(expr=sum(m.power[k] for k in m.power), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.frequency)
    def below(m, frequency):
        return sum(m.power[k] / (1 + ((frequency - at) / WIDTH) ** 2) for k, at in enumerate(places)) <= mask(frequency)

    return m


# %%
# A case with a known answer
# --------------------------
# Two equal transmitters at a distance of one half width have their sum highest in the middle, and each may send
# ``(1 + (1/2)**2) / 2 = 0.625`` below a mask of 1.

pair = osilp.solve(build_model([-WIDTH / 2, WIDTH / 2], lambda frequency: 1.0))
print(f"two transmitters: {pair.objective / 2:.8f} each (known 0.625)")
assert abs(pair.objective / 2 - 0.625) < 1e-7

# %%
# Twelve transmitters
# -------------------
# The mask has a dent that protects a receiver. The spikes below the curves are the price: what one more unit of mask
# at a frequency adds to the total power.

places = np.sort(np.random.default_rng(4).uniform(-0.9, 0.9, 12)).tolist()
m = build_model(places, lambda frequency: 1 - 0.6 * pyo.exp(-(((frequency - 0.2) / 0.15) ** 2)))
result = osilp.solve(m)
print(result)
osilp.plot_rows(m, result)

# %%
# What a coarse grid would have hidden
# ------------------------------------
# With rows at twenty frequencies only, the mask is passed between them, and the promised power cannot be sent.

coarse = osilp.solve(m, method="discretized", grid=osilp.Midpoint(20))
print(f"promised {coarse.objective:.4f} instead of {result.objective:.4f}, mask passed by {coarse.violation:.2f}")
osilp.plot_rows(m, coarse)
plt.show()
