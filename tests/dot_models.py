"""Random models written twice: with one term for each variable, and by osilp.dot."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BoxSet, CardinalitySet, DiscreteScenarioSet
from pyomo.core.expr import numeric_expr as numeric
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp


class Data:
    """Numbers of a random model."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.count = int(rng.integers(1, 7))
        self.a, self.b, self.p = rng.uniform(-1, 1, (3, self.count))
        self.a[rng.uniform(size=self.count) < 0.2] = 0.0
        self.w = float(rng.uniform(0.2, 1.0))
        self.dimension = int(rng.integers(1, 4))
        self.factors = rng.normal(size=(self.dimension, self.count))
        self.factors[rng.uniform(size=self.factors.shape) < 0.2] = 0.0
        self.limit = float(rng.uniform(1, 3))


# A formula by arrays and the same for one variable, over one coordinate u.
FORMULAS = {
    "numbers": (lambda d, m, u: d.a + 0 * u, lambda d, m, u, k: float(d.a[k]) + 0 * u),
    "bell": (
        lambda d, m, u: np.exp(-(((u - d.p) / d.w) ** 2)),
        lambda d, m, u, k: pyo.exp(-(((u - float(d.p[k])) / d.w) ** 2)),
    ),
    "line": (lambda d, m, u: d.a + u * d.b, lambda d, m, u, k: float(d.a[k]) + u * float(d.b[k])),
    "powers": (lambda d, m, u: u ** np.arange(d.count), lambda d, m, u, k: u**k),
    "wave": (
        lambda d, m, u: m.scale * np.sin(d.a * (2 * u) + d.b),
        lambda d, m, u, k: m.scale * pyo.sin(float(d.a[k]) * (2 * u) + float(d.b[k])),
    ),
    "kink": (lambda d, m, u: abs(u - d.p), lambda d, m, u, k: abs(u - float(d.p[k]))),
    "larger": (
        lambda d, m, u: np.maximum(u, d.p),
        lambda d, m, u, k: (
            numeric.NPV_MaxExpression((u, float(d.p[k]))) if not isinstance(u, float) else max(u, d.p[k])
        ),
    ),
    "step": (
        lambda d, m, u: np.where(u <= d.p, d.a, d.b),
        lambda d, m, u, k: pyo.Expr_if(u <= float(d.p[k]), float(d.a[k]), float(d.b[k])),
    ),
    "root": (
        lambda d, m, u: np.sqrt(1 + u * u * d.p**2) / (2 + d.a),
        lambda d, m, u, k: pyo.sqrt(1 + u * u * float(d.p[k] ** 2)) / float(2 + d.a[k]),
    ),
    "Params": (
        lambda d, m, u: np.exp(-(((u - m.place) / d.w) ** 2)) * d.b,
        lambda d, m, u, k: pyo.exp(-(((u - m.place[k]) / d.w) ** 2)) * float(d.b[k]),
    ),
    "two Params": (
        lambda d, m, u: (osilp.array(m.place) - m.other) * u,
        lambda d, m, u, k: (m.place[k] - m.other[k]) * u,
    ),
    "Profiles": (lambda d, m, u: m.curve(u), lambda d, m, u, k: m.curve[k](u)),
    "a Profile moved": (lambda d, m, u: m.wide(u - d.p), lambda d, m, u, k: m.wide(u - float(d.p[k]))),
    "list": (lambda d, m, u: [1 + k * u for k in range(d.count)], lambda d, m, u, k: 1 + k * u),
}

# The same over an uncertain vector xi.
VECTOR_FORMULAS = {
    "factors": (
        lambda d, m, xi: d.a + xi @ d.factors,
        lambda d, m, xi, k: float(d.a[k]) + sum(xi[i] * float(d.factors[i, k]) for i in range(d.dimension)),
    ),
    "turned factors": (
        lambda d, m, xi: d.factors.T @ xi - d.a,
        lambda d, m, xi, k: sum(xi[i] * float(d.factors[i, k]) for i in range(d.dimension)) - float(d.a[k]),
    ),
    "one entry": (
        lambda d, m, xi: m.scale * (xi[0] * d.b) + d.a,
        lambda d, m, xi, k: m.scale * (xi[0] * float(d.b[k])) + float(d.a[k]),
    ),
    "Params": (
        lambda d, m, xi: osilp.array(m.place) * xi[-1] + 1,
        lambda d, m, xi, k: m.place[k] * xi[d.dimension - 1] + 1,
    ),
    "slice": (
        lambda d, m, xi: xi[:1] @ d.factors[:1] + 2,
        lambda d, m, xi, k: xi[0] * float(d.factors[0, k]) + 2,
    ),
    "curved": (
        lambda d, m, xi: np.exp(xi[0] * d.a) + xi @ xi,
        lambda d, m, xi, k: pyo.exp(xi[0] * float(d.a[k])) + sum(xi[i] * xi[i] for i in range(d.dimension)),
    ),
}


class Rule:
    """A rule that can be pickled: the row of a random model, by arrays or by terms."""

    def __init__(self, seed: int, formula: str, uncertain: bool, by_dot: bool, plain: bool = False) -> None:
        self.seed, self.formula, self.uncertain, self.by_dot = seed, formula, uncertain, by_dot
        # A plain row holds nothing but its terms, as a row over stages must.
        self.plain = plain

    def __call__(self, m, *index):
        d = Data(self.seed)
        at = index[0] if self.uncertain or len(index) == 1 else index[0] + 2 * index[1]
        whole, single = (VECTOR_FORMULAS if self.uncertain else FORMULAS)[self.formula]
        shape = self.seed % 5
        if self.by_dot:
            body = osilp.dot(whole(d, m, at), m.x)
        else:
            body = sum(single(d, m, at, k) * m.x[k] for k in range(d.count))
        if self.plain:
            return body <= d.limit
        extra = at[0] if self.uncertain else at
        if shape == 1:
            body = m.y + 2 * body - m.x[0] * extra
        elif shape == 2:
            body = -body / 4 + m.y * m.scale
        elif shape == 3:
            return (-d.limit, body + m.y * extra, d.limit * m.scale)
        elif shape == 4:
            return body + m.y >= -d.limit * m.scale + extra
        return body <= d.limit + m.scale * extra


def random_model(seed: int, by_dot: bool) -> pyo.ConcreteModel:
    """A model of one semi-infinite row, an ordinary one and an objective."""
    d = Data(seed)
    rng = np.random.default_rng(seed + 1000)
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(-0.5, 1)), ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(d.count), bounds=(0, 2))
    m.y = pyo.Var(bounds=(-1, 1))
    m.scale = pyo.Param(initialize=float(rng.uniform(0.5, 2)), mutable=True)
    m.place = pyo.Param(m.x.index_set(), initialize=dict(enumerate(d.b)), mutable=True)
    m.other = pyo.Param(m.x.index_set(), initialize=dict(enumerate(d.a)), mutable=bool(seed % 2))
    m.curve = osilp.Profile(
        m.x.index_set(), over=m.u, points=[-0.5, 0, 1], initialize={k: [k, d.a[k], d.b[k]] for k in range(d.count)}
    )
    m.wide = osilp.Profile(over=m.u, points=[-3, 0, 4], initialize=[1, 2, 0])
    uncertain = bool(rng.uniform() < 0.4)
    if uncertain:
        low, high = -np.ones(d.dimension), rng.uniform(0.5, 1, d.dimension)
        sets = [
            BoxSet(list(zip(low.tolist(), high.tolist(), strict=True))),
            CardinalitySet([0.0] * d.dimension, high.tolist(), 1),
            AxisAlignedEllipsoidalSet([0.0] * d.dimension, high.tolist()),
            DiscreteScenarioSet([tuple(row) for row in rng.uniform(-1, 1, (4, d.dimension)).tolist()]),
        ]
        index = [sets[int(rng.integers(len(sets)))]]
        formula = list(VECTOR_FORMULAS)[int(rng.integers(len(VECTOR_FORMULAS)))]
    else:
        formula = list(FORMULAS)[int(rng.integers(len(FORMULAS)))]
        curved = "Profile" in formula
        index = [[m.u], [m.u, m.v], [pyo.RangeSet(-0.5, 1, 0)]][0 if curved else int(rng.integers(3))]
    m.row = osilp.SemiInfiniteConstraint(*index, rule=Rule(seed, formula, uncertain, by_dot))
    numbers = rng.normal(size=d.count)
    if by_dot:
        m.named = pyo.Expression(expr=osilp.dot(numbers, m.x) + m.y)
        m.reward = pyo.Objective(expr=osilp.dot(m.place, m.x) - 2 * m.named)
        m.ordinary = pyo.Constraint(expr=osilp.dot(numbers, [m.x[k] for k in range(d.count)]) <= m.scale)
    else:
        m.named = pyo.Expression(expr=sum(float(numbers[k]) * m.x[k] for k in range(d.count)) + m.y)
        m.reward = pyo.Objective(expr=sum(m.place[k] * m.x[k] for k in range(d.count)) - 2 * m.named)
        m.ordinary = pyo.Constraint(expr=sum(float(numbers[k]) * m.x[k] for k in range(d.count)) <= m.scale)
    if seed % 7 == 3 and d.count > 1:
        m.x[d.count - 1].fix(0.5)
    if seed % 7 == 4:
        m.y.fix(0.25)
    return m


def change(m: pyo.ConcreteModel, seed: int) -> None:
    """Give other values to what may change between two solves."""
    rng = np.random.default_rng(seed + 2000)
    m.scale = float(rng.uniform(0.5, 2))
    for k in m.place:
        m.place[k] = float(rng.uniform(-1, 1))
    if m.y.fixed:
        m.y.unfix()
    else:
        m.x[0].fix(float(rng.uniform(0, 1)))
    m.x[0].unfix()
