"""Small named models whose answers were worked out by hand, each builder says what they are; and what is asked of any model."""

import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import Profile


def line_above_square():
    """Least area under a + b u >= u**2 on [0, 1]: the chord u, area 1/2.

    Both ends bind; the dual equations w0 + w1 = 1 (of a) and w1 = 1/2 (of b) give the price 1/2 at each end.
    """
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.a = pyo.Var()
    m.b = pyo.Var()
    m.area = pyo.Objective(expr=m.a + m.b / 2)

    @m.SemiInfiniteConstraint(m.u)
    def above(m, u):
        return m.a + m.b * u >= u**2

    return m


def one_variable(bounds=(None, None)):
    """An index u in [0, 1] and a variable x that is to be large; what limits it is added by a test."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(bounds=bounds)
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    return m


def tent():
    """Largest x below 1 + |u - 0.3| for all u: x = 1, price 1 at u = 0.3."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x, sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def below(m, u):
        return m.x <= 1 + abs(u - 0.3)

    return m


def two_families():
    """Members a and b of an ordinary set: x[a] <= 2 + u, x[b] <= 3 - u; the sum is at most 2 + 2."""
    m = pyo.ConcreteModel()
    m.S = pyo.Set(initialize=["a", "b"])
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(m.S)
    m.gain = pyo.Objective(expr=sum(m.x[s] for s in m.S), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.S, m.u)
    def cap(m, s, u):
        return m.x[s] <= (2 + u if s == "a" else 3 - u)

    return m


def packing(arrivals=40, seed=0):
    """A small version of the README's model."""
    random = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(arrivals)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform())
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform())
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        taken = sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
        return taken <= arrivals * (0.06 + 0.02 * pyo.sin(6 * u))

    return m


def measured_cap():
    """x <= a measured curve with its lowest knot 0.5 at u = 0.4."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.cap = Profile(over=m.u, points=[0, 0.4, 1], initialize=[1.0, 0.5, 2.0])
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def below(m, u):
        return m.x <= m.cap(u)

    return m


def whole_number():
    """Largest integer n with n (1 + u) <= 7 for all u in [0, 1]: 3."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.n = pyo.Var(within=pyo.NonNegativeIntegers)
    m.gain = pyo.Objective(expr=m.n, sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def fits(m, u):
        return m.n * (1 + u) <= 7

    return m


def many_kinds():
    """Two indices, variables without and with a set, a Param without a value, and an objective; no rows."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.v = ContinuousSet(bounds=(0, 1))
    m.S = pyo.Set(initialize=[1, 2])
    m.x = pyo.Var(initialize=1.0)
    m.y = pyo.Var(m.S)
    m.p = pyo.Param(mutable=True)
    m.cost = pyo.Objective(expr=m.x)
    return m


def solved(m, **options):
    """The result, which must be an optimum."""
    result = osilp.solve(m, **options)
    assert result.status == "optimal"
    return result


def snapshot(m):
    """What must not change in a model with a variable x: its components, which are active, and the value of x."""
    return [(c.name, type(c), getattr(c, "active", None)) for c in m.component_objects()], m.x.value
