"""What a user writes: the names that stand, as one script; tests/package/test_contract.py runs it."""

import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

rng = np.random.default_rng(7)
m = pyo.ConcreteModel()
m.u = ContinuousSet(bounds=(0, 1))  # the continuous index
m.T = pyo.RangeSet(1000)  # arrivals
m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform())  # revealed at t
m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform())
m.x = pyo.Var(m.T, bounds=(0, 1))
m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)


@m.SemiInfiniteConstraint(m.u)
def usage(m, u):
    return sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T) <= 60 + 20 * pyo.sin(6 * u)


full = osilp.solve(m, method="exchange")  # exact over [0, 1]; loads m.x
proj = osilp.solve(m, method="projected", basis=osilp.RBF(10))  # the paper's LP: a bound
grid = osilp.solve(m, method="discretized", grid=osilp.Midpoint(500))
found = full.status, full.objective, full.bound, full.violation, full.worst_index
atoms = full.price.atoms  # where it binds, and at what price
worth = full.price.integrate(lambda u: 60 + 20 * np.sin(6 * u))
density = proj.price(0.3)  # a density here

program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(10))  # same model, online
controller = program.controller(osilp.MirrorDescent(), guard="pointwise")
decision = controller.step(value=0.8, place=0.4)  # decides, learns, moves on
decided = decision.x  # 0.0 or 1.0 here
run = program.replay(osilp.Resolve())  # the model's own arrivals, in order
decisions = run.decisions  # a Series (a frame for several variables)

study = osilp.compare(
    program,
    [osilp.MirrorDescent(), osilp.AccelerateThenRefine(), osilp.Resolve()],
    trials=20,
    order="permutation",
    seed=0,
)
summary = study.summary()
figure = study.plot()
page = study.to_html("report.html")
