"""The program whose saved files lie in ``saved/``: all its numbers are dyadic, so that no machine rounds them."""

import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp


def saved_program():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(16)
    m.value = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals, initialize=lambda m, t: (5 * t % 16) / 16)
    m.slope = pyo.Param(m.T, mutable=True, initialize=lambda m, t: (3 * t % 8) / 8)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def use(m, u):
        return sum((1 + m.slope[t] * u) * m.x[t] for t in m.T) <= 8 + 2 * u

    m.total = pyo.Constraint(expr=sum(m.x[t] for t in m.T) <= 6)
    return osilp.compile_online(m, stages=m.T, basis=osilp.Indicator(4), grid=osilp.Midpoint(16))
