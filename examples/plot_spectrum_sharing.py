"""Transmitters share a band: their spectra together stay below a mask at every frequency.

Two equal transmitters at +-d with Lorentzian spectra of half width w, d <= w / sqrt(3), leave their sum highest in the
middle: each may send (1 + (d / w)^2) / 2 below a mask of 1. That is the check; twelve of them are the example.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

WIDTH = 0.08


def build_model(places, mask):
    m = pyo.ConcreteModel("spectrum")
    m.frequency = ContinuousSet(bounds=(-1, 1))
    m.power = pyo.Var(range(len(places)), bounds=(0, None))
    m.total = pyo.Objective(expr=sum(m.power[k] for k in m.power), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.frequency)
    def below(m, frequency):
        return sum(m.power[k] / (1 + ((frequency - at) / WIDTH) ** 2) for k, at in enumerate(places)) <= mask(frequency)

    return m


if __name__ == "__main__":
    pair = osilp.solve(build_model([-WIDTH / 2, WIDTH / 2], lambda frequency: 1.0))
    print(f"two transmitters: {pair.objective / 2:.8f} each (known 0.625)")
    assert abs(pair.objective / 2 - 0.625) < 1e-7

    places = np.sort(np.random.default_rng(4).uniform(-0.9, 0.9, 12)).tolist()
    m = build_model(places, lambda frequency: 1 - 0.6 * pyo.exp(-(((frequency - 0.2) / 0.15) ** 2)))
    result = osilp.solve(m)
    print(result)
    band = np.linspace(-1, 1, 1201)
    spectra = np.array([m.power[k].value / (1 + ((band - at) / WIDTH) ** 2) for k, at in enumerate(places)])
    figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
    axis.fill_between(band, spectra.sum(axis=0), alpha=0.3, label="all spectra")
    axis.plot(band, spectra.T, lw=0.8, color="C0")
    axis.plot(band, 1 - 0.6 * np.exp(-(((band - 0.2) / 0.15) ** 2)), "k", label="mask")
    atoms = result.price.atoms
    axis.plot(atoms["frequency"], 0 * atoms["weight"], "r^", clip_on=False, label="where the mask has a price")
    axis.set(xlabel="frequency", ylabel="power density", title="Twelve transmitters below one mask")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig("spectrum_sharing.png", dpi=120)
