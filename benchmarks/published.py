"""Published robust and distributionally robust models beside the systems that published them.

    python benchmarks/published.py [--quick] [--limit SECONDS] [--only NAME ...]

Run ``pip install -e '.[peers]'`` first; where a peer is not installed, its rows say so. Every model is written twice on
the same data: here as a user of this package writes it, solved by ``osilp.solve(m)`` with nothing else said, and by
RSOME, or by CVXPY where RSOME cannot write it, gives another optimum or is wrong. Both times are wall time from the
first line of the model to the answer, after a small model that loads what comes late, and the median of three where the
first took less than a second. Each side answers from a process of its own, which is ended where it takes too long: the
row says "no end" and the table goes on.

Data that was published without a seed is drawn anew by the published recipe; the docstring of a model says so.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import multiprocessing
import os
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
from figures import Figure
from pyomo.contrib.pyros import (
    AxisAlignedEllipsoidalSet,
    BoxSet,
    CardinalitySet,
    EllipsoidalSet,
    IntersectionSet,
    PolyhedralSet,
)
from tqdm import tqdm

import osilp_pyomo as osilp
from osilp_pyomo import dro

SECONDS_ALLOWED = 60.0
WORTH_REPEATING = 1.0  # seconds: what takes longer is told apart from noise by one run


class Published:
    """A model on its data. Drawing the data is not timed; ``ours`` and ``peer`` are, from their first line."""

    system = "RSOME"
    packages: tuple[str, ...] = ("rsome",)

    def ours(self) -> Any:
        """The result of this package."""
        raise NotImplementedError

    def peer(self) -> float:
        """The optimum by the other system."""
        raise NotImplementedError


class ByRsomeWithCones(Published):
    # RSOME's own solver leaves cones out of the problem, with a warning.
    packages = ("rsome", "ecos")


class ByCvxpy(Published):
    system = "CVXPY"
    packages = ("cvxpy", "clarabel")


# Robust models -------------------------------------------------------------------------------------------------------


def budget_set(dimension: int, budget: float) -> CardinalitySet:
    """All z with entries between -1 and 1 whose absolute values sum to at most the budget."""
    return CardinalitySet(np.zeros(dimension), np.ones(dimension), budget, np.ones(dimension))


class RobustPortfolio(Published):
    """150 stocks, returns in a budget set (RSOME's docs, after Bertsimas and Sim, 2004): 1.1709."""

    stocks, budget = 150, 5

    def __init__(self) -> None:
        i, n = np.arange(1, self.stocks + 1), self.stocks
        self.mean, self.deviation = 1.15 + i * 0.05 / n, 0.05 / 450 * np.sqrt(2 * i * n * (n + 1))

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.stocks), bounds=(0, None))
        m.worst = pyo.Var()
        m.gain = pyo.Objective(expr=m.worst, sense=pyo.maximize)
        m.whole = pyo.Constraint(expr=osilp.dot(np.ones(self.stocks), m.x) == 1)

        @m.SemiInfiniteConstraint(budget_set(self.stocks, self.budget))
        def earned(m, z):
            return osilp.dot(self.mean + self.deviation * z, m.x) >= m.worst

        return osilp.solve(m)

    def peer(self):
        import rsome
        from rsome import ro

        m = ro.Model()
        x, z = m.dvar(self.stocks), m.rvar(self.stocks)
        uncertainty = (rsome.norm(z, np.inf) <= 1, rsome.norm(z, 1) <= self.budget)
        m.maxmin((self.mean + self.deviation * z) @ x, uncertainty)
        m.st(x.sum() == 1, x >= 0)
        m.solve(display=False)
        return m.get()


class Knapsack(Published):
    """50 binaries, weights in a budget set (RSOME's docs, after Bertsimas and Sim, 2004), drawn anew."""

    items, capacity, budget = 50, 2000, 3.0

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.values = 2 * rng.integers(5, 10, self.items)
        self.weights = 2 * rng.integers(10, 41, self.items)
        self.deviations = 0.2 * self.weights

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.items), within=pyo.Binary)
        m.value = pyo.Objective(expr=osilp.dot(self.values, m.x), sense=pyo.maximize)

        @m.SemiInfiniteConstraint(budget_set(self.items, self.budget))
        def weight(m, z):
            return osilp.dot(self.weights + self.deviations * z, m.x) <= self.capacity

        return osilp.solve(m)

    def peer(self):
        import rsome
        from rsome import ro

        m = ro.Model()
        x, z = m.dvar(self.items, vtype="B"), m.rvar(self.items)
        m.max(self.values @ x)
        row = (self.weights + z * self.deviations) @ x <= self.capacity
        m.st(row.forall(abs(z) <= 1, rsome.norm(z, 1) <= self.budget))
        m.solve(display=False)
        return m.get()


class RobustnessKnapsack(Knapsack):
    """The least overrun k per unit of deviation for a target value (RSOME's docs, after Long et al., 2019).

    Data as in Knapsack; the target is the optimum there, as published.
    """

    target = 598

    def ours(self):
        n = self.items
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(n), within=pyo.Binary)
        m.k = pyo.Var(bounds=(0, None))
        m.overrun = pyo.Objective(expr=m.k)
        m.enough = pyo.Constraint(expr=osilp.dot(self.values, m.x) >= self.target)
        one, none = np.eye(n), np.zeros((n, n))
        # (z, u) with |z| <= u <= 1.
        lifted = PolyhedralSet(np.block([[one, -one], [-one, -one], [none, one]]), np.repeat([0.0, 0.0, 1.0], n))

        @m.SemiInfiniteConstraint(lifted)
        def weight(m, zu):
            z, u = zu[:n], zu[n:]
            return osilp.dot(self.weights + self.deviations * z, m.x) - self.capacity <= sum(u) * m.k

        return osilp.solve(m)

    def peer(self):
        from rsome import ro

        m = ro.Model()
        x, k = m.dvar(self.items, vtype="B"), m.dvar()
        z, u = m.rvar(self.items), m.rvar(self.items)
        m.min(k)
        m.st(self.values @ x >= self.target, k >= 0)
        row = (self.weights + z * self.deviations) @ x - self.capacity <= k * u.sum()
        m.st(row.forall(abs(z) <= u, u <= 1))
        m.solve(display=False)
        return m.get()


class ProductionInventory(Published):
    """Three factories, 24 periods, affine decision rules (RSOME's docs, after Ben-Tal et al., 2004): 44272.827493."""

    periods, factories, spread = 24, 3, 0.2
    most_a_period, most_in_all = 567, 13600
    at_first, least, most = 500, 500, 2000

    def __init__(self) -> None:
        season = 1 + 0.5 * np.sin(np.pi * np.arange(self.periods) / 12)
        self.demand = 1000 * season
        self.costs = np.outer([1, 1.5, 2], season)

    def ours(self):
        m = pyo.ConcreteModel()
        m.I, m.T = pyo.RangeSet(0, self.factories - 1), pyo.RangeSet(0, self.periods - 1)
        d = BoxSet([((1 - self.spread) * d, (1 + self.spread) * d) for d in self.demand])
        m.made = osilp.FunctionVar(m.I, m.T, over=d, sees=lambda m, i, t: range(t), bounds=(0, self.most_a_period))
        spent = osilp.worst_case(m, d, lambda m, d: sum(self.costs[i, t] * m.made[i, t](d) for i in m.I for t in m.T))
        m.cost = pyo.Objective(expr=spent)

        @m.SemiInfiniteConstraint(m.I, d)
        def made_in_all(m, i, d):
            return sum(m.made[i, t](d) for t in m.T) <= self.most_in_all

        @m.SemiInfiniteConstraint(m.T, d)
        def stored(m, t, d):
            incoming = sum(m.made[i, s](d) for i in m.I for s in range(t + 1))
            return (self.least, self.at_first + incoming - sum(d[: t + 1]), self.most)

        return osilp.solve(m)

    def peer(self):
        from rsome import ro

        m = ro.Model()
        d, p = m.rvar(self.periods), m.ldr((self.factories, self.periods))
        for t in range(1, self.periods):
            p[:, t].adapt(d[:t])
        demands = (d >= (1 - self.spread) * self.demand, d <= (1 + self.spread) * self.demand)
        m.minmax((self.costs * p).sum(), demands)
        m.st(p >= 0, p <= self.most_a_period, p.sum(axis=1) <= self.most_in_all)
        for t in range(self.periods):
            stored = self.at_first + p[:, : t + 1].sum() - d[: t + 1].sum()
            m.st(stored >= self.least, stored <= self.most)
        m.solve(display=False)
        return m.get()


class LotSizing(Published):
    """Stock in N stores, moved by affine rules (RSOME's docs, after Bertsimas and de Ruiter, 2016), drawn anew."""

    price, most = 20, 20

    def __init__(self, stores: int) -> None:
        places = 10 * np.random.default_rng(2).random((stores, 2))
        self.stores = stores
        self.distance = np.linalg.norm(places[:, None] - places[None], axis=2)

    def ours(self):
        stores = range(self.stores)
        m = pyo.ConcreteModel()
        m.x = pyo.Var(stores, bounds=(0, self.most))
        # Demands between 0 and 20 that sum to at most 20 sqrt(N).
        demands = CardinalitySet(np.zeros(self.stores), np.full(self.stores, self.most), math.sqrt(self.stores))
        m.moved = osilp.FunctionVar(stores, stores, over=demands, bounds=(0, None))

        def spent(m, d):
            moving = sum(self.distance[i, j] * m.moved[i, j](d) for i in stores for j in stores)
            return self.price * sum(m.x[i] for i in stores) + moving

        m.cost = pyo.Objective(expr=osilp.worst_case(m, demands, spent))

        @m.SemiInfiniteConstraint(stores, demands)
        def enough(m, i, d):
            return m.x[i] + sum(m.moved[j, i](d) - m.moved[i, j](d) for j in stores) >= d[i]

        return osilp.solve(m)

    def peer(self):
        from rsome import ro

        m = ro.Model()
        x, d, y = m.dvar(self.stores), m.rvar(self.stores), m.ldr((self.stores, self.stores))
        y.adapt(d)
        demands = (d >= 0, d <= self.most, d.sum() <= self.most * math.sqrt(self.stores))
        m.minmax(self.price * x.sum() + (self.distance * y).sum(), demands)
        m.st(d <= y.sum(axis=0) - y.sum(axis=1) + x, y >= 0, x >= 0, x <= self.most)
        m.solve(display=False)
        return m.get()


class Vehicles(Published):
    """One supply, ten regions, an affine rule over a box (RSOME's docs, after Hao et al., 2020).

    Prices as published; the box of demands is that of a sample drawn here, not of the published one of taxis.
    """

    revenue = np.array([4.50, 4.41, 3.61, 4.49, 4.38, 4.58, 4.53, 4.64, 4.58, 4.32])
    cost, supply = 3, 400

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        sample = rng.gamma(4.0, rng.uniform(2, 15, 10), (57, 10))
        self.low, self.high = sample.min(axis=0), sample.max(axis=0)

    def ours(self):
        regions = range(len(self.revenue))
        m = pyo.ConcreteModel()
        m.x = pyo.Var(regions, bounds=(0, None))
        m.owned = pyo.Constraint(expr=sum(m.x[j] for j in regions) <= self.supply)
        demands = BoxSet(list(zip(self.low, self.high, strict=True)))
        m.idle = osilp.FunctionVar(regions, over=demands, bounds=(0, None))

        def lost(m, d):
            unsold = sum(self.revenue[j] * m.idle[j](d) for j in regions)
            return osilp.dot(self.cost - self.revenue, m.x) + unsold

        m.loss = pyo.Objective(expr=osilp.worst_case(m, demands, lost))

        @m.SemiInfiniteConstraint(regions, demands)
        def unused(m, j, d):
            return m.idle[j](d) >= m.x[j] - d[j]

        return osilp.solve(m)

    def peer(self):
        from rsome import ro

        m = ro.Model()
        regions = len(self.revenue)
        d, x, y = m.rvar(regions), m.dvar(regions), m.ldr(regions)
        y.adapt(d)
        m.minmax((self.cost - self.revenue) @ x + self.revenue @ y, (d <= self.high, d >= self.low))
        m.st(y >= x - d, y >= 0, x.sum() <= self.supply, x >= 0)
        m.solve(display=False)
        return m.get()


class CvarPortfolio(Published):
    """8 stocks, 250 days of uncertain probability (RSOME's docs, after Zhu and Fukushima, 2009), returns drawn anew."""

    level, target = 0.95, 0.001

    def __init__(self) -> None:
        stocks = np.arange(8)
        covariance = np.diag((0.01 + 0.004 * stocks) ** 2) + 5e-5
        self.returns = np.random.default_rng(6).multivariate_normal(0.0005 * (1 + stocks), covariance, size=250)
        self.days, self.stocks = self.returns.shape


class CvarPortfolioBox(CvarPortfolio):
    """Each probability may be 0.0001 off."""

    moved = 0.0001

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.stocks), bounds=(0, 1))
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
        near = dro.Reweighting(self.returns, lower=1 / self.days - self.moved, upper=1 / self.days + self.moved)

        def loss(m, returns):
            return -osilp.dot(returns, m.x)

        m.earned = pyo.Constraint(expr=dro.worst_case_expectation(m, loss, near) <= -self.target)
        m.risk = pyo.Objective(expr=dro.worst_case_cvar(m, loss, near, level=self.level))
        return osilp.solve(m)

    def peer(self):
        from rsome import ro

        m = ro.Model()
        eta = m.rvar(self.days)
        x, u, a = m.dvar(self.stocks), m.dvar(self.days), m.dvar()
        chance = 1 / self.days + eta
        m.minmax(a + 1 / (1 - self.level) * (chance @ u), (eta.sum() == 0, eta >= -self.moved, eta <= self.moved))
        m.st(u >= -self.returns @ x - a, u >= 0, chance @ self.returns @ x >= self.target)
        m.st(x >= 0, x <= 1, x.sum() == 1)
        m.solve(display=False)
        return m.get()


class CvarPortfolioBall(CvarPortfolio, ByCvxpy):
    """Probabilities in a ball of 250 dimensions, cut by their sum and by being >= 0: .0220170504.

    RSOME with ECOS stops "close to optimal" at .0214752, below what a linear program with one bad vector a row proves.
    """

    radius = 0.001

    def ours(self):
        days = range(self.days)
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.stocks), bounds=(0, 1))
        m.u = pyo.Var(days, bounds=(0, None))
        m.a, m.worst = pyo.Var(), pyo.Var()
        m.risk = pyo.Objective(expr=m.worst)
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
        m.beyond = pyo.Constraint(days, rule=lambda m, k: m.u[k] >= -osilp.dot(self.returns[k], m.x) - m.a)
        ball = AxisAlignedEllipsoidalSet(np.zeros(self.days), np.ones(self.days))
        one = np.ones((1, self.days))
        # The least that a probability of zero leaves; the ball has the other end.
        positive = BoxSet([(-1 / self.days / self.radius, 1)] * self.days)
        plane = PolyhedralSet(np.vstack([one, -one]), np.zeros(2))
        near = IntersectionSet(ball=ball, positive=positive, plane=plane)

        @m.SemiInfiniteConstraint(near)
        def tail(m, eta):
            chance = 1 / self.days + self.radius * eta
            return m.a + osilp.dot(chance / (1 - self.level), m.u) <= m.worst

        @m.SemiInfiniteConstraint(near)
        def earned(m, eta):
            chance = 1 / self.days + self.radius * eta
            return osilp.dot(chance @ self.returns, m.x) >= self.target

        return osilp.solve(m)

    def peer(self):
        import cvxpy

        x, u = cvxpy.Variable(self.stocks), cvxpy.Variable(self.days, nonneg=True)
        a, worst = cvxpy.Variable(), cvxpy.Variable()
        rows = [u >= -self.returns @ x - a, x >= 0, x <= 1, cvxpy.sum(x) == 1]
        # Each row is "nominal + slope eta <= 0" on the set, by duality.
        for nominal, slope in (
            (a + cvxpy.sum(u) / self.days / (1 - self.level) - worst, self.radius / (1 - self.level) * u),
            (self.target - cvxpy.sum(self.returns @ x) / self.days, -self.radius * (self.returns @ x)),
        ):
            positive, total = cvxpy.Variable(self.days, nonneg=True), cvxpy.Variable()
            rest = cvxpy.norm(slope + self.radius * positive - total)
            rows.append(nominal + cvxpy.sum(positive) / self.days + rest <= 0)
        return cvxpy.Problem(cvxpy.Minimize(worst), rows).solve(solver=cvxpy.CLARABEL)


class EllipsoidKnapsack(ByRsomeWithCones):
    """Four tools, weights in an ellipsoid (ROmodel): 19."""

    values, weights, capacity = np.array([8, 3, 6, 11]), np.array([5, 7, 4, 3]), 14
    shape = np.linalg.inv([[0.1, 0.01, 0, 0], [0.01, 0.1, 0, 0], [0, 0, 0.1, 0], [0, 0, 0, 0.1]])

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(4), within=pyo.Binary)
        m.value = pyo.Objective(expr=osilp.dot(self.values, m.x), sense=pyo.maximize)

        @m.SemiInfiniteConstraint(EllipsoidalSet(self.weights, self.shape))
        def weight(m, w):
            return osilp.dot(w, m.x) <= self.capacity

        return osilp.solve(m)

    def peer(self):
        import rsome
        from rsome import eco_solver, ro

        m = ro.Model()
        x, z = m.dvar(4, vtype="B"), m.rvar(4)
        m.max(self.values @ x)
        row = (self.weights + np.linalg.cholesky(self.shape) @ z) @ x <= self.capacity
        m.st(row.forall(rsome.norm(z) <= 1))
        m.solve(eco_solver, display=False)
        return m.get()


class EllipsoidPortfolio(ByRsomeWithCones):
    """Five stocks, returns in a ball (ROmodel): .6776393202."""

    mean, radius = np.array([0.1, 0.3, 0.5, 0.7, 0.4]), math.sqrt(0.0005)

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(5), bounds=(0, 1))
        m.z = pyo.Var(within=pyo.NonNegativeReals)
        m.gain = pyo.Objective(expr=m.z, sense=pyo.maximize)
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)

        @m.SemiInfiniteConstraint(AxisAlignedEllipsoidalSet(self.mean, np.full(5, self.radius)))
        def earned(m, r):
            return osilp.dot(r, m.x) >= m.z

        return osilp.solve(m)

    def peer(self):
        import rsome
        from rsome import eco_solver, ro

        m = ro.Model()
        x, r = m.dvar(5), m.rvar(5)
        m.maxmin(r @ x, rsome.norm(r - self.mean) <= self.radius)
        m.st(x >= 0, x <= 1, x.sum() == 1)
        m.solve(eco_solver, display=False)
        return m.get()


class AdjustableFacility(Published):
    """Four sites, five customers, flows that adjust to demand and meet it exactly (ROmodel, affine rules): 572.4."""

    opening = np.array([100, 140, 80, 150])
    shipping = np.array(
        [[2.0, 3.0, 1.5, 4.0, 3.3], [1.5, 0.4, 1.0, 2.2, 3.5], [3.4, 1.4, 2.1, 3.3, 1.6], [2.6, 2.1, 2.0, 1.4, 1.3]]
    )
    demand = np.array([45, 30, 60, 55, 25])
    capacity = np.array([100, 140, 80, 150])

    def ours(self):
        sites, customers = range(4), range(5)
        m = pyo.ConcreteModel()
        m.x = pyo.Var(sites, within=pyo.Binary)
        demands = BoxSet([(0.9 * d, 1.1 * d) for d in self.demand])
        m.flow = osilp.FunctionVar(sites, customers, over=demands, bounds=(0, None))

        def spent(m, d):
            moving = sum(self.shipping[i, j] * m.flow[i, j](d) for i in sites for j in customers)
            return moving + osilp.dot(self.opening, m.x)

        m.cost = pyo.Objective(expr=osilp.worst_case(m, demands, spent))

        @m.SemiInfiniteConstraint(sites, demands)
        def room(m, i, d):
            return sum(m.flow[i, j](d) for j in customers) <= float(self.capacity[i]) * m.x[i]

        @m.SemiInfiniteConstraint(customers, demands)
        def met(m, j, d):
            return sum(m.flow[i, j](d) for i in sites) == d[j]

        return osilp.solve(m)

    def peer(self):
        from rsome import ro

        m = ro.Model()
        x, d, y = m.dvar(4, vtype="B"), m.rvar(5), m.ldr((4, 5))
        y.adapt(d)
        m.minmax((self.shipping * y).sum() + self.opening @ x, (d >= 0.9 * self.demand, d <= 1.1 * self.demand))
        m.st(y.sum(axis=0) == d, y.sum(axis=1) <= self.capacity * x, y >= 0)
        m.solve(display=False)
        return m.get()


class EllipsoidFacility(ByCvxpy):
    """Five sites, eight customers, ten periods, all 80 demands in one ball (LROPT's docs): 3874.5564159.

    The revenue follows the published formula, not the matrix that the notebook multiplies by. The peer is CVXPY, as
    LROPT itself writes such cones for it, with ECOS, which takes binaries beside cones.
    """

    packages = ("cvxpy", "ecos")
    sites, customers, periods, radius, price, large = 5, 8, 10, 0.3, 100.0, 1100

    def __init__(self) -> None:
        draw = np.random.RandomState(1).rand  # the published seed
        self.making, self.storing, self.opening = (draw(self.sites) for _ in range(3))
        self.shipping = draw(self.sites, self.customers)
        self.demand = draw(self.customers * self.periods)
        self.margin = self.price - self.shipping

    def ours(self):
        sites, customers, periods = range(self.sites), range(self.customers), range(self.periods)
        m = pyo.ConcreteModel()
        m.x = pyo.Var(sites, customers, periods, bounds=(0, None))
        m.p = pyo.Var(sites, periods, bounds=(0, None))
        m.z = pyo.Var(sites)
        m.y = pyo.Var(sites, within=pyo.Binary)
        m.worst = pyo.Var()
        m.profit = pyo.Objective(expr=m.worst, sense=pyo.maximize)
        m.share = pyo.Constraint(customers, periods, rule=lambda m, j, t: sum(m.x[i, j, t] for i in sites) <= 1)
        m.stored = pyo.Constraint(sites, periods, rule=lambda m, i, t: m.p[i, t] <= m.z[i])
        m.opened = pyo.Constraint(sites, rule=lambda m, i: m.z[i] <= self.large * m.y[i])
        # Customer j in period t is entry j * periods + t.
        demands = AxisAlignedEllipsoidalSet(self.demand, np.full(self.demand.size, self.radius))

        @m.SemiInfiniteConstraint(demands)
        def earned(m, d):
            sold = sum(osilp.dot(np.repeat(self.margin[i], self.periods) * d, m.x[i, :, :]) for i in sites)
            made = sum(self.making[i] * m.p[i, t] for i in sites for t in periods)
            return sold - made - osilp.dot(self.storing, m.z) - osilp.dot(self.opening, m.y) >= m.worst

        @m.SemiInfiniteConstraint(sites, periods, demands)
        def enough(m, i, t, d):
            return osilp.dot(d[t :: self.periods], m.x[i, :, t]) <= m.p[i, t]

        return osilp.solve(m)

    def peer(self):
        import cvxpy

        y = cvxpy.Variable(self.sites, boolean=True)
        x = [cvxpy.Variable((self.customers, self.periods), nonneg=True) for _ in range(self.sites)]
        p, z = cvxpy.Variable((self.sites, self.periods), nonneg=True), cvxpy.Variable(self.sites)
        demand = self.demand.reshape(self.customers, self.periods)
        sold = sum(cvxpy.multiply(self.margin[i][:, None], x[i]) for i in range(self.sites))
        profit = cvxpy.sum(cvxpy.multiply(demand, sold)) - self.radius * cvxpy.norm(sold, "fro")
        profit -= cvxpy.sum(self.making @ p) + self.storing @ z + self.opening @ y
        rows = [sum(x) <= 1, z <= self.large * y, p <= cvxpy.reshape(z, (self.sites, 1), order="C")]
        for i in range(self.sites):
            worst = cvxpy.sum(cvxpy.multiply(demand, x[i]), axis=0) + self.radius * cvxpy.norm(x[i], axis=0)
            rows.append(worst <= p[i])
        return cvxpy.Problem(cvxpy.Maximize(profit), rows).solve(solver=cvxpy.ECOS_BB)


class SupportVectors(ByRsomeWithCones):
    """Two classes of 100 points, each moved within a ball (LROPT's docs): .9535196655.

    The published margin is 0.5 |w|_2^2 and the second set a ball of the norm 3; here it is 0.5 |w|_1 and both sets are
    balls of the norm 2, so that the model is linear in its variables.
    """

    points, price, radius = 100, 0.01, 1.0

    def __init__(self) -> None:
        draw = np.random.RandomState(1).multivariate_normal  # the published seed
        self.first = draw([0, 0], [[1, 0.5], [0.5, 1]], self.points)
        self.second = draw([3, 3], [[1, -0.7], [-0.7, 1]], self.points)

    def ours(self):
        points = range(self.points)
        m = pyo.ConcreteModel()
        m.w, m.size, m.b = pyo.Var(range(2)), pyo.Var(range(2)), pyo.Var()
        m.slack = pyo.Var(points, bounds=(0, None))
        m.margin = pyo.Objective(expr=0.5 * sum(m.size.values()) + self.price * sum(m.slack.values()))
        m.up = pyo.Constraint(range(2), rule=lambda m, k: m.size[k] >= m.w[k])
        m.down = pyo.Constraint(range(2), rule=lambda m, k: m.size[k] >= -m.w[k])
        ball = AxisAlignedEllipsoidalSet(np.zeros(2), np.full(2, self.radius))

        @m.SemiInfiniteConstraint(points, ball)
        def above(m, i, u):
            return osilp.dot(self.first[i] + u, m.w) + m.b >= 1 - m.slack[i]

        @m.SemiInfiniteConstraint(points, ball)
        def below(m, i, u):
            return osilp.dot(self.second[i] + u, m.w) + m.b <= m.slack[i] - 1

        return osilp.solve(m)

    def peer(self):
        import rsome
        from rsome import eco_solver, ro

        m = ro.Model()
        w, b, slack, u = m.dvar(2), m.dvar(), m.dvar(self.points), m.rvar(2)
        m.min(0.5 * rsome.norm(w, 1) + self.price * slack.sum())
        ball = rsome.norm(u) <= self.radius
        for i in range(self.points):
            m.st(((self.first[i] + u) @ w + b >= 1 - slack[i]).forall(ball))
            m.st(((self.second[i] + u) @ w + b <= slack[i] - 1).forall(ball))
        m.st(slack >= 0)
        m.solve(eco_solver, display=False)
        return m.get()


class QuadraticUncertainty(ByCvxpy):
    """A row concave and quadratic in a vector of a ball (LROPT's docs): -17.358843378.

    The matrices are those of scikit-learn's ``make_spd_matrix``, with the published seeds.
    """

    size = 5

    def __init__(self) -> None:
        self.matrices = [self._positive(np.random.RandomState(i)) for i in range(self.size)]

    def _positive(self, rng):
        start = rng.uniform(size=(self.size, self.size))
        left, _, right = np.linalg.svd(start.T @ start)
        return left @ (1 + np.diag(rng.uniform(size=self.size))) @ right

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.size), bounds=(0.6, 1))
        m.t = pyo.Var()
        m.o = pyo.Objective(expr=m.t)
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 4)

        @m.SemiInfiniteConstraint(AxisAlignedEllipsoidalSet(np.ones(self.size), np.full(self.size, 0.05)))
        def worst(m, u):
            return osilp.dot([-0.5 * (u @ matrix @ u) for matrix in self.matrices], m.x) <= m.t

        return osilp.solve(m)

    def peer(self):
        import cvxpy

        x, t, y = cvxpy.Variable(self.size), cvxpy.Variable(), cvxpy.Variable((self.size, self.size))
        conjugate = 0
        for i, matrix in enumerate(self.matrices):
            root = np.linalg.inv(np.linalg.cholesky((matrix + matrix.T) / 2))
            conjugate += cvxpy.quad_over_lin(root @ y[i], 2 * x[i])
        total = cvxpy.sum(y, axis=0)
        rows = [conjugate + cvxpy.sum(total) + 0.05 * cvxpy.norm(total) <= t]
        rows += [cvxpy.sum(x) == 4, x >= 0.6, x <= 1]
        return cvxpy.Problem(cvxpy.Minimize(t), rows).solve(solver=cvxpy.CLARABEL)


# Distributionally robust models --------------------------------------------------------------------------------------


class Newsvendor(ByRsomeWithCones):
    """Two items, S samples moved in the norm 2 within a box (RSOME's docs, after Chen et al., 2020), drawn anew."""

    items = 2

    def __init__(self, samples: int) -> None:
        rng = np.random.default_rng(3)
        self.prices = 1 + 4 * rng.random(self.items)
        self.most = 100 * rng.random(self.items)
        self.samples = self.most * rng.random((samples, self.items))
        self.radius = 0.01 * self.most.min()

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.items), bounds=(0, None))
        m.budget = pyo.Constraint(expr=sum(m.x.values()) == 50 * self.items)
        near = dro.Wasserstein(self.samples, self.radius, [(0, most) for most in self.most], norm=2)

        def unsold(m, z):  # a sum of maxima is the maximum over all choices of items that are left over
            return [
                sum(chosen * self.prices[i] * (m.x[i] - z[i]) for i, chosen in enumerate(choice))
                for choice in product((0, 1), repeat=self.items)
            ]

        m.loss = pyo.Objective(expr=-osilp.dot(self.prices, m.x) + dro.worst_case_expectation(m, unsold, near))
        return osilp.solve(m)

    def peer(self):
        import rsome
        from rsome import E, eco_solver
        from rsome import dro as rsome_dro

        count = len(self.samples)
        m = rsome_dro.Model(count)
        z, u = m.rvar(self.items), m.rvar()
        near = m.ambiguity()
        for s in range(count):
            near[s].suppset(z >= 0, z <= self.most, rsome.norm(z - self.samples[s]) <= u)
        near.exptset(E(u) <= self.radius)
        near.probset(m.p == 1 / count)
        x, y = m.dvar(self.items), m.dvar(self.items)
        y.adapt(z)
        y.adapt(u)
        for s in range(count):
            y.adapt(s)
        m.minsup(-self.prices @ x + E(self.prices @ y), near)
        m.st(y >= 0, y >= x - z, x >= 0, x.sum() == 50 * self.items)
        m.solve(eco_solver, display=False)
        return m.get()


class MeanRiskPortfolio(Published):
    """Ten assets, 30 years moved in the norm 1 (RSOME's docs, after Esfahani and Kuhn, 2018): -1.1362073575769."""

    years, assets, radius, aversion, tail = 30, 10, 1e-2, 10, 0.2

    def __init__(self) -> None:
        draw = np.random.RandomState(1).normal  # the published seed
        i, shape = np.arange(1, self.assets + 1), (self.years, self.assets)
        common = 0.02 * draw(size=shape)
        self.returns = np.maximum(common + 0.03 * i + 0.025 * i * draw(size=shape), -1)
        # The loss is the largest of a r + b tau, r the portfolio's return.
        steep = self.aversion / self.tail
        self.pieces = ((-1, self.aversion), (-1 - steep, self.aversion - steep))

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.assets), bounds=(0, None))
        m.tau = pyo.Var()
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
        near = dro.Wasserstein(self.returns, self.radius, [(-1, None)] * self.assets, norm=1)

        def loss(m, z):
            return [a * osilp.dot(z, m.x) + b * m.tau for a, b in self.pieces]

        m.risk = pyo.Objective(expr=dro.worst_case_expectation(m, loss, near))
        return osilp.solve(m)

    def peer(self):
        import rsome
        from rsome import E
        from rsome import dro as rsome_dro

        m = rsome_dro.Model(self.years)
        x, tau, z, u = m.dvar(self.assets), m.dvar(), m.rvar(self.assets), m.rvar()
        near = m.ambiguity()
        for s in range(self.years):
            near[s].suppset(rsome.norm(z - self.returns[s], 1) <= u, z >= -1)
        near.exptset(E(u) <= self.radius)
        near.probset(m.p == 1 / self.years)
        m.minsup(E(rsome.maxof(*(a * (z @ x) + b * tau for a, b in self.pieces))), near)
        m.st(x.sum() == 1, x >= 0)
        m.solve(display=False)
        return m.get()


def cross_moments(support: Any, mean: Any, deviation: Any, variance_of_sum: float) -> dro.Moments:
    """Means are known, variances of the entries and of their sum bounded; all in deviations, as the docs advise."""
    entries = range(len(mean))
    return dro.Moments(
        support,
        [
            *((lambda z, j=j: (z[j] - mean[j]) / deviation[j], 0.0) for j in entries),
            *((lambda z, j=j: ((z[j] - mean[j]) / deviation[j]) ** 2, None, 1.0) for j in entries),
            (lambda z: sum(z[j] - mean[j] for j in entries) ** 2 / variance_of_sum, None, 1.0),
        ],
    )


class CrossMomentPortfolio(ByRsomeWithCones):
    """Six stocks, partial cross moments (RSOME's docs, after Bertsimas et al., 2019): .01377485061 is lost.

    Returns drawn anew, with heavy tails, for those of 2020 are no longer served.
    """

    pieces = ((6, 0.02), (3, 0.0), (1, 0.0))

    def __init__(self) -> None:
        stocks = np.arange(6)
        tails = np.random.default_rng(5).standard_t(5, size=(250, 6))
        returns = 0.001 * (1 + stocks) + 0.01 * (1 + 0.5 * stocks) * tails
        self.mean, self.deviation = returns.mean(axis=0), returns.std(axis=0, ddof=1)
        self.low, self.high = returns.min(axis=0), returns.max(axis=0)
        self.variance_of_sum = float(np.cov(returns.T).sum())

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(6), bounds=(0, None))
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
        support = list(zip(self.low.tolist(), self.high.tolist(), strict=True))
        known = cross_moments(support, self.mean.tolist(), self.deviation.tolist(), self.variance_of_sum)

        def disutility(m, z):
            return [-a * osilp.dot(z, m.x) - b for a, b in self.pieces]

        m.loss = pyo.Objective(expr=dro.worst_case_expectation(m, disutility, known))
        return osilp.solve(m)

    def peer(self):
        from rsome import E, eco_solver, square
        from rsome import dro as rsome_dro

        m = rsome_dro.Model()
        d, u, x, y = m.rvar(6), m.rvar(7), m.dvar(6), m.dvar()
        known = m.ambiguity()
        moved = d - self.mean
        known.suppset(d >= self.low, d <= self.high, square(moved) <= u[:-1], square(moved.sum()) <= u[-1])
        # A slice, for RSOME 1.3 does not take the expectation of a single entry.
        known.exptset(E(d) == self.mean, E(u[:-1]) <= self.deviation**2, E(u[6:]) <= np.array([self.variance_of_sum]))
        y.adapt(d)
        y.adapt(u)
        m.maxinf(E(y), known)
        for a, b in self.pieces:
            m.st(y <= a * (d @ x) + b)
        m.st(x.sum() == 1, x >= 0)
        m.solve(eco_solver, display=False)
        return -m.get()


class WorstCvar(ByCvxpy):
    """The worst CVaR of n stocks whose mean and covariance are known (Delage and Ye, 2010, with both certain).

    Moments drawn here. In closed form it is ``-mean x + sqrt(level / (1 - level)) |x|_covariance``, which the peer
    minimizes.
    """

    level = 0.95

    def __init__(self, stocks: int) -> None:
        rng = np.random.default_rng(stocks)
        self.stocks = stocks
        self.mean = 0.05 * rng.random(stocks)
        factor = 0.2 * rng.normal(size=(stocks, stocks))
        self.covariance = factor @ factor.T + 0.01 * np.eye(stocks)

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.stocks), bounds=(0, None))
        m.whole = pyo.Constraint(expr=sum(m.x.values()) == 1)
        known = dro.Moments.mean_covariance([(None, None)] * self.stocks, self.mean, self.covariance)
        m.risk = pyo.Objective(expr=dro.worst_case_cvar(m, lambda m, z: -osilp.dot(z, m.x), known, level=self.level))
        return osilp.solve(m)

    def peer(self):
        import cvxpy

        x = cvxpy.Variable(self.stocks, nonneg=True)
        spread = cvxpy.norm(np.linalg.cholesky(self.covariance).T @ x)
        risk = -self.mean @ x + math.sqrt(self.level / (1 - self.level)) * spread
        return cvxpy.Problem(cvxpy.Minimize(risk), [cvxpy.sum(x) == 1]).solve(solver=cvxpy.CLARABEL)


class Appointments(ByCvxpy):
    """Two patients, partial cross moments of their times (RSOME's docs, after Bertsimas et al., 2019), drawn anew.

    Waiting and overtime are written exactly, by all four ways in which they can come about. RSOME's affine rule gives
    an upper bound of that only, so that the peer is the cone program of the same four pieces.
    """

    patients, overtime, correlation = 2, 2.0, 0.25

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        self.mean = 30 + 30 * rng.random(self.patients)
        self.deviation = self.mean * 0.3 * rng.random(self.patients)
        self.length = self.mean.sum() + 0.5 * np.linalg.norm(self.deviation)
        squares = np.outer(self.deviation, self.deviation)
        self.variance_of_sum = float(self.correlation * squares.sum() + (1 - self.correlation) * np.trace(squares))

    def pieces(self, first: Any, second: Any) -> list[Any]:
        """What waiting and overtime cost, given by how much each patient takes longer than the time kept for them."""
        over = self.overtime
        return [0 * first, first, over * second, first + over * (first + second)]

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(2), bounds=(0, None))
        m.day = pyo.Constraint(expr=sum(m.x.values()) <= self.length)
        known = cross_moments([(0, None)] * 2, self.mean.tolist(), self.deviation.tolist(), self.variance_of_sum)
        waiting = dro.worst_case_expectation(m, lambda m, z: self.pieces(z[0] - m.x[0], z[1] - m.x[1]), known)
        m.cost = pyo.Objective(expr=waiting)
        return osilp.solve(m)

    def peer(self):
        import cvxpy

        x, level, slope = cvxpy.Variable(2, nonneg=True), cvxpy.Variable(), cvxpy.Variable(2)
        curve = cvxpy.Variable(3, nonneg=True)
        # In deviations y from the mean: level + slope y + sum of curve (square of a row times y) >= piece, z >= 0.
        scale = np.diag(self.deviation)
        squared = np.vstack([np.eye(2), self.deviation / math.sqrt(self.variance_of_sum)])
        rows = [cvxpy.sum(x) <= self.length]
        for first, second in ((0.0, 0.0), (1.0, 0.0), (0.0, self.overtime), (1 + self.overtime, self.overtime)):
            weight = np.array([first, second])
            end, dual = cvxpy.Variable(2, nonneg=True), cvxpy.Variable(3)
            rows.append(slope - scale @ weight - end == squared.T @ dual)
            bent = sum(cvxpy.quad_over_lin(dual[k], 4 * curve[k]) for k in range(3))
            rows.append(level - weight @ (self.mean - x) - (self.mean / self.deviation) @ end - bent >= 0)
        return cvxpy.Problem(cvxpy.Minimize(level + cvxpy.sum(curve)), rows).solve(solver=cvxpy.CLARABEL)


class Farmer(ByCvxpy):
    """Three crops, 200 drawn yields, expected cost or its CVaR (InfiniteOpt's docs, after Birge and Louveaux).

    Yields drawn anew. What is sold and bought afterwards follows from the yields: cost is the largest of eight pieces.
    The peer keeps it as variables of every scenario, as published.
    """

    packages = ("cvxpy",)
    land = 500
    planting, buying, selling = np.array([150, 230, 260]), np.array([238, 210]), np.array([170, 150])
    contracts, beet_price, beet_quota = np.array([200, 240]), 36, 6000

    def __init__(self, level: float | None = None) -> None:
        rng = np.random.default_rng(7)
        self.level = level
        self.yields = rng.uniform([0, 0, 10], [5, 5, 30], (200, 3))

    def ours(self):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(3), bounds=(0, self.land))
        m.acres = pyo.Constraint(expr=sum(m.x.values()) <= self.land)
        sample = dro.Reweighting(self.yields, total_variation=0)

        def later(m, grown):
            over = [grown[c] * m.x[c] - float(self.contracts[c]) for c in range(2)]
            ways = [(-float(self.buying[c]) * over[c], -float(self.selling[c]) * over[c]) for c in range(2)]
            beets = (-self.beet_price * grown[2] * m.x[2], -self.beet_price * self.beet_quota)
            return [sum(way) for way in product(*ways, beets)]

        if self.level is None:
            risk = dro.worst_case_expectation(m, later, sample)
        else:
            risk = dro.worst_case_cvar(m, later, sample, level=self.level)
        m.cost = pyo.Objective(expr=osilp.dot(self.planting, m.x) + risk)
        return osilp.solve(m)

    def peer(self):
        import cvxpy

        count = len(self.yields)
        x = cvxpy.Variable(3, nonneg=True)
        bought, sold = cvxpy.Variable((count, 2), nonneg=True), cvxpy.Variable((count, 3), nonneg=True)
        rows = [cvxpy.sum(x) <= self.land, sold[:, 2] <= self.beet_quota, sold[:, 2] <= self.yields[:, 2] * x[2]]
        for c in range(2):
            rows.append(self.yields[:, c] * x[c] + bought[:, c] - sold[:, c] >= self.contracts[c])
        later = bought @ self.buying - sold @ np.append(self.selling, self.beet_price)
        if self.level is None:
            risk = cvxpy.sum(later) / count
        else:
            threshold, beyond = cvxpy.Variable(), cvxpy.Variable(count, nonneg=True)
            rows.append(beyond >= later - threshold)
            risk = threshold + cvxpy.sum(beyond) / count / (1 - self.level)
        return cvxpy.Problem(cvxpy.Minimize(self.planting @ x + risk), rows).solve(solver=cvxpy.HIGHS)


MODELS: Mapping[str, Callable[[], Published]] = {
    "portfolio, budget set, 150 stocks": RobustPortfolio,
    "knapsack, budget set, 50 binaries": Knapsack,
    "robustness knapsack, lifted set": RobustnessKnapsack,
    "production-inventory, affine rules, 24 periods": ProductionInventory,
    "lot sizing, affine rules, N=5": partial(LotSizing, 5),
    "lot sizing, affine rules, N=8": partial(LotSizing, 8),
    "lot sizing, affine rules, N=12": partial(LotSizing, 12),
    "vehicles, affine rule": Vehicles,
    "CVaR portfolio, box of probabilities": CvarPortfolioBox,
    "CVaR portfolio, ball of 250 probabilities": CvarPortfolioBall,
    "knapsack, ellipsoid": EllipsoidKnapsack,
    "portfolio, ellipsoid": EllipsoidPortfolio,
    "facility, adjustable flows": AdjustableFacility,
    "facility, 80-dimensional ball, 5 binaries": EllipsoidFacility,
    "support vectors, norm 1": SupportVectors,
    "quadratic uncertainty": QuadraticUncertainty,
    "newsvendor, Wasserstein norm 2, S=50": partial(Newsvendor, 50),
    "newsvendor, Wasserstein norm 2, S=200": partial(Newsvendor, 200),
    "mean-risk portfolio, Wasserstein norm 1": MeanRiskPortfolio,
    "portfolio, cross moments, 6 stocks": CrossMomentPortfolio,
    **{f"worst CVaR, mean and covariance, n={n}": partial(WorstCvar, n) for n in range(2, 9)},
    "appointments, 2 patients": Appointments,
    "farmer, expectation": Farmer,
    "farmer, CVaR": partial(Farmer, 0.95),
}
# What --quick leaves out: larger sizes of models that stay.
LARGE = frozenset(
    ["lot sizing, affine rules, N=12", "newsvendor, Wasserstein norm 2, S=200"]
    + [f"worst CVaR, mean and covariance, n={n}" for n in (3, 5, 6, 7, 8)]
)


# Measuring -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What one side said of a model: an objective and seconds, or why there is none."""

    objective: float = math.nan
    seconds: float = math.nan
    remark: str = ""


@dataclass(frozen=True)
class Row:
    """A model, answered by both sides."""

    name: str
    system: str
    ours: Answer
    peer: Answer

    @property
    def difference(self) -> float:
        return abs(self.ours.objective - self.peer.objective) / max(abs(self.peer.objective), 1e-12)

    @property
    def ratio(self) -> float:
        return self.ours.seconds / self.peer.seconds

    def __str__(self) -> str:
        remarks = [self.ours.remark, f"{self.system}: {self.peer.remark}" if self.peer.remark else ""]
        return ROW.format(
            self.name,
            _shown(self.ours.objective, ".10g"),
            _shown(self.peer.objective, ".10g"),
            _shown(self.difference, ".1e"),
            _shown(self.ours.seconds, ".3f"),
            _shown(self.peer.seconds, ".3f"),
            _shown(self.ratio, ".2f"),
            self.system,
            "; ".join(filter(None, remarks)),
        ).rstrip()


ROW = "{:50s} {:>14s} {:>14s} {:>10s} {:>8s} {:>8s} {:>8s}  {:5s}  {}"
HEADINGS = ("model", "ours", "peer's", "difference", "ours s", "peer s", "ratio", "peer", "remarks")


def _shown(number: float, form: str) -> str:
    return "-" if math.isnan(number) else format(number, form)


def _warm_up_ours() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(0, 1))
    near = dro.Wasserstein([0.1, 0.2], 0.1, (0, 1))
    m.o = pyo.Objective(expr=dro.worst_case_expectation(m, lambda m, z: [z - m.x[0], m.x[1] - z], near))
    ball = AxisAlignedEllipsoidalSet([0, 0], [1, 1])
    m.c = osilp.SemiInfiniteConstraint(ball, rule=lambda m, u: osilp.dot(u, m.x) <= 0.5)
    osilp.solve(m)


def _warm_up_peers() -> None:
    with contextlib.suppress(ImportError):
        import rsome
        from rsome import eco_solver, ro

        for arguments in ((), (eco_solver,)):
            m = ro.Model()
            x, z = m.dvar(2), m.rvar(2)
            m.minmax(z @ x, rsome.norm(z, 1) <= 1)
            m.st(x >= 1)
            m.solve(*arguments, display=False)
    with contextlib.suppress(ImportError):
        import cvxpy

        x = cvxpy.Variable(2)
        cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(x)), [x >= 1]).solve(solver=cvxpy.CLARABEL)
        cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1]).solve(solver=cvxpy.HIGHS)


def _answer(model: Published, side: str) -> Answer:
    times = []
    while True:
        started = time.perf_counter()
        found = getattr(model, side)()
        times.append(time.perf_counter() - started)
        if times[0] > WORTH_REPEATING or len(times) == 3:
            break
    if side == "peer":
        return Answer(float(found), statistics.median(times))
    remark = "" if found.status == "optimal" else f"status {found.status}"
    return Answer(float(found.objective), statistics.median(times), remark)


def serve(connection: Any, side: str) -> None:
    """Answer for one side until nobody asks any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what solvers print, from C too
    os.dup2(1, 2)
    tqdm.set_lock(threading.RLock())  # its own is shared by processes, and left behind by one that is killed
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    {"ours": _warm_up_ours, "peer": _warm_up_peers}[side]()
    connection.send(None)
    while (name := connection.recv()) is not None:
        try:
            connection.send(_answer(MODELS[name](), side))
        except Exception as error:  # a refusal is an answer too, and the table goes on
            text = " ".join(f"{type(error).__name__}: {error}".split())
            connection.send(Answer(remark=text if len(text) < 100 else f"{text[:97]}..."))


class Side:
    """The process that answers for one side; one that takes too long is ended, and another started when asked."""

    def __init__(self, side: str, limit: float) -> None:
        self.side, self.limit, self._process = side, limit, None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self.side), daemon=True)
        self._process.start()
        theirs.close()
        self._connection.recv()

    def ask(self, name: str) -> Answer:
        if self._process is None:
            self._start()
        self._connection.send(name)
        try:
            if self._connection.poll(self.limit):
                return self._connection.recv()
            remark = f"no end in {self.limit:.0f} s"
        except EOFError:
            remark = "its process died"
        self.stop()
        return Answer(remark=remark)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def measured(names: Iterable[str], limit: float) -> Iterable[Row]:
    """The rows of the table, one by one."""
    ours, peer = Side("ours", limit), Side("peer", limit)
    try:
        for name in names:
            model = MODELS[name]()
            missing = [package for package in model.packages if find_spec(package) is None]
            theirs = Answer(remark=f"{', '.join(missing)} not installed") if missing else peer.ask(name)
            yield Row(name, model.system, ours.ask(name), theirs)
    finally:
        ours.stop()
        peer.stop()


def chosen_names(quick: bool) -> list[str]:
    return [name for name in MODELS if not (quick and name in LARGE)]


def figures(quick: bool = False) -> list[Figure]:
    """Ratios and differences as a suite of ``all.py``; a model without an answer has no number, and keeps no limit."""
    lines = []
    for row in measured(chosen_names(quick), SECONDS_ALLOWED / 3 if quick else SECONDS_ALLOWED):
        lines.append(Figure(f"{row.name}, model to answer", row.ratio, "x", row.system, 4.0))
        lines.append(Figure(f"{row.name}, relative difference of the optima", row.difference, "", row.system, 1e-6))
    return lines


def summary(rows: Sequence[Row]) -> str:
    compared = [row for row in rows if not math.isnan(row.ratio)]
    lines = [f"{len(rows)} models, {len(compared)} answered by both sides"]
    lines += [f"within {times} times the peer: {sum(row.ratio <= times for row in compared)}" for times in (2, 4)]
    if compared:
        worst = max(compared, key=lambda row: row.difference)
        lines.append(f"worst difference: {worst.difference:.1e} ({worst.name})")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the larger sizes, a third of the time allowed")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help=f"allowed each (default {SECONDS_ALLOWED:.0f})")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="models whose names contain one of these")
    chosen = parser.parse_args(arguments)
    names = chosen_names(chosen.quick)
    if chosen.only:
        names = [name for name in names if any(part.lower() in name.lower() for part in chosen.only)]
        if not names:
            parser.error(f"no model is named so; there are: {'; '.join(MODELS)}")
    print(ROW.format(*HEADINGS), flush=True)
    rows = []
    for row in measured(names, chosen.limit or (SECONDS_ALLOWED / 3 if chosen.quick else SECONDS_ALLOWED)):
        print(row, flush=True)
        rows.append(row)
    print(f"\n{summary(rows)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
