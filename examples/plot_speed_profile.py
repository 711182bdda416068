"""
A speed profile: fast within limits at every metre
==================================================

Vehicles. Along a road of two kilometres the speed limit changes, and the car may neither accelerate nor brake hard. In
the square of the speed both are linear: along the road its derivative is twice the acceleration. The profile is a
curve, a spline whose coefficients are decided, and both limits hold at every metre, not at those of a grid.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

SIGNS, LIMITS = [0, 400, 700, 1400, 1600, 2000], [50, 80, 30, 100, 50, 50]  # metres, km/h
ACCELERATION, BRAKING = 1.5, 2.0  # metres per second per second
square = (np.array(LIMITS) / 3.6) ** 2


def build_model(functions):
    m = pyo.ConcreteModel("speed profile")
    m.s = ContinuousSet(bounds=(0, 2000))
    m.limit = osilp.Profile(over=m.s, points=SIGNS, initialize=square, kind="previous")
    m.w = osilp.FunctionVar(over=m.s, basis=osilp.BSpline(functions, degree=2), bounds=(0, m.limit))

    @m.SemiInfiniteConstraint(m.s)
    def gentle(m, s):
        return (-2 * BRAKING, m.w.derivative(s), 2 * ACCELERATION)

    m.from_rest = pyo.Constraint(expr=m.w(0) == 0)
    m.to_rest = pyo.Constraint(expr=m.w(2000) == 0)
    # The area below the profile, by the middles of many equal parts.
    middles = (np.arange(500) + 0.5) * 4
    m.fast = pyo.Objective(expr=sum(m.w(float(each)) for each in middles) * 4, sense=pyo.maximize)
    return m


# %%
# The profile
# -----------

model = build_model(80)
result = osilp.solve(model)
print(result)
curve = result.function(model.w)
s = np.linspace(0, 2000, 8001)
assert result.certified
assert np.all(curve(s) <= square[np.searchsorted(SIGNS, s, side="right") - 1] + 1e-4)

figure, (top, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
top.step(SIGNS, LIMITS, where="post", color="black", linewidth=1, label="limit")
top.plot(s, 3.6 * np.sqrt(np.maximum(curve(s), 0)), label="speed")
top.set_ylabel("km/h")
top.legend(frameon=False)
below.plot(s, curve.derivative(s) / 2)
for level in (-BRAKING, ACCELERATION):
    below.axhline(level, color="black", linewidth=1)
below.set(xlabel="metres", ylabel="m/s per second")
plt.show()

# %%
# Finer curves
# ------------
# More functions come closer to the best profile of all; every one of them keeps the limits.

for functions in (20, 40):
    print(f"{functions} functions: {osilp.solve(build_model(functions)).objective:.1f}")
print(f"80 functions: {result.objective:.1f}")
