"""
Optimal control: a swing brought to rest
========================================

Control. A swing of natural frequency 2 hangs at angle 0.6 and is to be at rest after four seconds, with as little push
as possible at any moment, and never beyond an angle of 0.25 on the other side. Angle, speed and push are curves. The
speed is the derivative of the angle: an equation between splines, which is matched. Newton's law, which no space of
splines holds, is collocated, and the result tells what is left of it between the points. Bounds hold at every moment.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

FREQUENCY, LOWEST = 2.0, -0.25


def build_model(functions):
    m = pyo.ConcreteModel("swing")
    m.t = ContinuousSet(bounds=(0, 4))
    m.angle = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(functions, degree=4), bounds=(LOWEST, None))
    m.speed = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(functions - 1, degree=3))
    m.push = osilp.FunctionVar(over=m.t, basis=osilp.BSpline(functions - 2, degree=2))
    m.most = pyo.Var()
    m.least = pyo.Objective(expr=m.most)

    @m.SemiInfiniteConstraint(m.t)
    def moves(m, t):
        return m.angle.derivative(t) == m.speed(t)

    m.newton = osilp.SemiInfiniteConstraint(
        m.t,
        rule=lambda m, t: m.speed.derivative(t) == m.push(t) - FREQUENCY**2 * m.angle(t),
        equality="collocate",
    )

    @m.SemiInfiniteConstraint(["left", "right"], m.t)
    def gentle(m, side, t):
        return m.push(t) <= m.most if side == "right" else -m.push(t) <= m.most

    m.ends = pyo.ConstraintList()
    for end in (m.angle(0) == 0.6, m.speed(0) == 0, m.angle(4) == 0, m.speed(4) == 0):
        m.ends.add(end)
    return m


# %%
# The push
# --------

model = build_model(24)
result = osilp.solve(model)
print(result)
angle, speed, push = (result.function(each) for each in (model.angle, model.speed, model.push))
t = np.linspace(0, 4, 2001)
residual = speed.derivative(t) - push(t) + FREQUENCY**2 * angle(t)
print(f"largest push {result.objective:.4f}; the equation of motion is missed by at most {np.abs(residual).max():.1e}")
assert angle(t).min() >= LOWEST - 1e-6

figure, (top, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
top.plot(t, angle(t), label="angle")
top.plot(t, speed(t), linestyle="--", label="speed")
top.axhline(LOWEST, color="black", linewidth=1, label="lowest angle")
top.legend(frameon=False)
below.plot(t, push(t))
below.set(xlabel="seconds", ylabel="push")
plt.show()

# %%
# Finer splines
# -------------

for functions in (10, 16, 24):
    found = osilp.solve(build_model(functions))
    print(
        f"{functions} functions: push {found.objective:.5f}, left of the equation "
        f"{found.proof.loc['newton', 'largest']:.1e}"
    )
