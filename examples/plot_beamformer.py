"""
A beamformer with complex weights
=================================

Antennas. Twelve antennas stand on a line, not quite evenly. Their signals are added with complex weights so that the
array hears direction zero with gain one, and everything from elsewhere as little as possible: the absolute value of the
gain is bounded in *every* other direction, a second-order cone for each.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

rng = np.random.default_rng(2)
PLACES = 0.5 * np.arange(12) + rng.uniform(-0.08, 0.08, 12)  # in wavelengths
NEAR = 0.22  # sines of directions that belong to the main lobe

m = pyo.ConcreteModel("beamformer")
m.left, m.right = ContinuousSet(bounds=(-1, -NEAR)), ContinuousSet(bounds=(NEAR, 1))
m.re, m.im = pyo.Var(range(12), bounds=(-2, 2)), pyo.Var(range(12), bounds=(-2, 2))
m.level, m.noise = pyo.Var(bounds=(0, 2)), pyo.Var(bounds=(0, 2))
m.quiet = pyo.Objective(expr=m.level + 0.5 * m.noise)


def gain(m, s):
    """Real and imaginary part of the gain in the direction whose sine is s."""
    phase = [float(2 * np.pi * place) * s for place in PLACES]
    real = sum(m.re[k] * pyo.cos(p) - m.im[k] * pyo.sin(p) for k, p in enumerate(phase))
    return real, sum(m.re[k] * pyo.sin(p) + m.im[k] * pyo.cos(p) for k, p in enumerate(phase))


@m.Constraint([0, 1])
def look(m, part):
    return gain(m, 0.0)[part] == 1 - part


@m.Constraint()
def own_noise(m):
    return sum(m.re[k] ** 2 + m.im[k] ** 2 for k in m.re) <= m.noise


def below(m, s):
    real, imaginary = gain(m, s)
    return pyo.sqrt(real**2 + imaginary**2) <= m.level


m.lower = osilp.SemiInfiniteConstraint(m.left, rule=below)
m.upper = osilp.SemiInfiniteConstraint(m.right, rule=below)

result = osilp.solve(m)
print(result)
print(f"\nSide lobes at {20 * np.log10(m.level.value):.2f} dB, in every direction.")

# %%
# The side lobes that reach the level carry the price: those directions are the ones that cost.

sines = np.linspace(-1, 1, 1501)
weights = np.array([m.re[k].value + 1j * m.im[k].value for k in m.re])
heard = np.abs(np.exp(2j * np.pi * np.outer(sines, PLACES)) @ weights)
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
axis.plot(sines, 20 * np.log10(np.maximum(heard, 1e-4)))
for name in ("lower", "upper"):
    atoms = result.price[name].atoms
    axis.plot(atoms.iloc[:, 0], np.full(len(atoms), 20 * np.log10(m.level.value)), "^", color="#D55E00", label=None)
axis.axhline(20 * np.log10(m.level.value), color="grey", linewidth=0.8)
axis.set(xlabel="sine of the direction", ylabel="gain in dB", ylim=(-50, 3), title="Where the side lobes bind")
plt.show()
