"""What ``regret.py`` runs on: models, arrivals, and optima in hindsight by scipy.

The paper's inputs (:func:`instance`), the README's model (:func:`readme`), its days whose arrivals change (:func:`day`)
or come in continuous time (:func:`timed_day`), requests that tie (:func:`matching`, :func:`unit_requests`), options
(:func:`fares`) and concave stages (:func:`logarithmic`). Whatever is drawn follows from a seed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model

POINTS = 2000
KNOTS = (np.arange(POINTS) + 0.5) / POINTS
# Points of the index of the smaller models, which their optima know too.
FEWER = 400


# -- the paper's inputs ------------------------------------------------------------------------------------


def field(rng, count):
    """Gaussian random fields of length .1 and unit variance at the knots."""
    nodes = np.linspace(0, 1, 120)
    factor = np.linalg.cholesky(np.exp(-((nodes[:, None] - nodes) ** 2) / 0.02) + 1e-8 * np.eye(120))
    weights = np.linalg.solve(factor.T, rng.normal(size=(120, count)))
    return (np.exp(-((KNOTS[:, None] - nodes) ** 2) / 0.02) @ weights).T


def instance(kind, horizon, seed):
    """Different rewards and columns, which of them each arrival is, and the limit an arrival."""
    rng = np.random.default_rng([seed, horizon])
    limit = rng.uniform(2, 3, POINTS)
    support = horizon if kind == "normal fresh" else 100
    if kind.startswith("normal"):
        rewards, columns = rng.normal(1, 1, support), rng.normal(4, 1, (support, POINTS))
    elif kind == "uniform":
        rewards, columns = rng.uniform(0, 1, support), rng.uniform(0, 4, (support, POINTS))
    elif kind == "cauchy":
        rewards, columns = rng.standard_cauchy(support), 2 + rng.standard_cauchy((support, POINTS))
    elif kind == "smooth":
        support = 300
        limit = 2.5 + 0.5 * np.tanh(field(rng, 1)[0])
        rewards, columns = rng.normal(1, 1, support), 4 + field(rng, support)
    else:
        size, support = horizon // 5, horizon
        limit, rewards = rng.uniform(0.4, 0.8, POINTS), rng.uniform(0, 1, horizon)
        columns = np.concatenate([
            rng.uniform(0, 3, (size, POINTS)),
            rng.normal(2, 1, (size, POINTS)),
            rng.uniform(0, 2, (size, 1)) + rng.normal(size=(size, POINTS)),
            rng.uniform(0.5, 1.5, (size, 1)) * rng.normal(size=(size, POINTS)),
            rng.integers(-1, 2, (horizon - 4 * size, POINTS)).astype(float),
        ])  # fmt: skip
        return rewards, columns, rng.permutation(horizon), limit
    which = np.arange(horizon) if support == horizon else rng.integers(support, size=horizon)
    return rewards, columns, which, limit


def program_for(horizon, limit):
    """Two example arrivals without values; the curves of the real ones come beside the data."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.value = pyo.Param(m.T, mutable=True)
    m.column = osilp.Profile(m.T, over=m.u, points=KNOTS, kind="nearest", outside="clamp", initialize=lambda m, t: t)
    m.limit = osilp.Profile(over=m.u, points=KNOTS, kind="nearest", outside="clamp", initialize=limit * horizon)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.column[t](u) * m.x[t] for t in m.T) <= m.limit(u)
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=KNOTS, basis=osilp.RBF(10))


# -- the README's model ------------------------------------------------------------------------------------


def readme(horizon, seed):
    """Arrivals of the README's model, their columns at the knots, and the limit an arrival."""
    rng = np.random.default_rng([seed, horizon])
    data = pd.DataFrame({"value": rng.uniform(size=horizon), "place": rng.uniform(size=horizon)})
    return data, *bumps(data, KNOTS)


def bumps(data, points):
    """Columns of the README's model at points, and its limit an arrival there."""
    columns = np.exp(-(((points - data["place"].to_numpy()[:, None]) / 0.1) ** 2))
    return columns, (60 + 20 * np.sin(6 * points)) / 1000


def band(horizon):
    """The README's model as a program on fewer points."""
    m = demo_model(arrivals=horizon)
    return osilp.compile_online(m, stages=m.T, grid=FEWER, basis=osilp.RBF(10))


def band_optimum(program, data, horizon):
    """The optimum of requests of the README's model, on the points of its program."""
    points = program.evaluator.points[0][:, 0]
    columns, limit = bumps(data, points)
    return optimum(data["value"].to_numpy(), columns, np.ones(len(data)), horizon * limit)


#: How a day changes: not at all, values that grow, places that move, two regimes, and a season.
DAYS = ("iid", "dearer", "moves", "regime", "season")


def day(kind, horizon, seed, times=None):
    """Requests of a day on the README's band; each kind in its own stream, so that two kinds of one seed differ."""
    rng = np.random.default_rng([seed, horizon, DAYS.index(kind)])
    when = np.arange(horizon) / horizon if times is None else times
    value, place = rng.uniform(size=horizon), rng.uniform(size=horizon)
    if kind == "dearer":
        value = value * (0.5 + when)
    elif kind == "moves":
        place = 0.5 * place + 0.5 * when
    elif kind == "regime":
        late = when >= 0.5
        value, place = value * np.where(late, 1.5, 0.75), np.where(late, 0.4 + 0.6 * place, 0.6 * place)
    elif kind == "season":
        value = value * (1 + 0.6 * np.sin(6 * np.pi * when))
    return pd.DataFrame({"value": value, "place": place})


def timed_day(kind, expected, seed):
    """Requests from 8 to 18: a Poisson number of them, half or three halves of what is expected, even or in a rush."""
    rng = np.random.default_rng([seed, expected, 77])
    count = rng.poisson(expected * {"even": 1.0, "rush": 1.0, "half": 0.5, "more": 1.5}[kind])
    when = np.sort(rng.beta(4, 2, size=count) if kind == "rush" else rng.uniform(size=count))
    return day("iid", count, seed).assign(hour=8 + 10 * when)


# -- ties --------------------------------------------------------------------------------------------------


def choosing(requests, servers, room, value):
    """Each request is given to one server at most, and each server has room for so many."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.S = pyo.RangeSet(requests), pyo.RangeSet(servers)
    m.value = pyo.Param(m.T, m.S, mutable=True, initialize=lambda m, t, s: float(value[t - 1, s - 1]))
    m.x = pyo.Var(m.T, m.S, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t, s] * m.x[t, s] for t in m.T for s in m.S), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, s] for s in m.S) <= 1)
    m.room = pyo.Constraint(m.S, rule=lambda m, s: sum(m.x[t, s] for t in m.T) <= room)
    # Never binds: an index is what makes a model one of this package's.
    m.all = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.x[t, s] for t in m.T for s in m.S) <= requests * (1 + u)
    )
    return osilp.compile_online(m, stages=m.T, grid=2, basis=osilp.RBF(2))


def matching(seed, requests=1000, servers=20):
    """b-matching with unit weights: 900 places at 20 servers; each request may use three, seldom the last ones."""
    rng = np.random.default_rng([seed, 5])
    liked = rng.uniform(size=(requests, servers)) ** np.linspace(1, 3, servers)
    edges = np.argsort(-liked, axis=1)[:, :3]
    value = np.zeros((requests, servers))
    np.put_along_axis(value, edges, 1.0, axis=1)
    return value, 0.9 * requests / servers


def unit_requests(seed, requests=200, servers=2):
    """Requests that pay 1 whichever of two ways they are served, and room for half of them."""
    return np.ones((requests, servers)), requests / 2 / servers


def matched(value, room):
    """The most that requests of :func:`choosing` can earn."""
    requests, servers = value.shape
    one = np.kron(np.eye(requests), np.ones(servers))
    full = np.tile(np.eye(servers), requests)
    rows, limits = csr_array(np.vstack([one, full])), np.concatenate([np.ones(requests), np.full(servers, room)])
    return -linprog(-value.ravel(), A_ub=rows, b_ub=limits, bounds=(0, 1)).fun


# -- options and concave stages ------------------------------------------------------------------------------


def fares(horizon, seed):
    """Requests that choose among three products at most: a narrow one, a wide one, and one elsewhere."""
    rng = np.random.default_rng([seed, horizon, 6])
    value = rng.uniform(size=(horizon, 1)) * np.array([1.0, 1.6, 0.8]) * rng.uniform(0.7, 1.3, (horizon, 3))
    place, other = rng.uniform(size=horizon), rng.uniform(size=horizon)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.K = pyo.RangeSet(horizon), pyo.Set(initialize=["narrow", "wide", "elsewhere"])
    column = {name: k for k, name in enumerate(m.K)}
    m.fare = pyo.Param(m.T, m.K, mutable=True, initialize=lambda m, t, k: float(value[t - 1, column[k]]))
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: float(place[t - 1]))
    m.other = pyo.Param(m.T, mutable=True, initialize=lambda m, t: float(other[t - 1]))
    m.x = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.fare[t, k] * m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) <= 1)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            sum(
                pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t, "narrow"]
                + pyo.exp(-(((u - m.place[t]) / 0.2) ** 2)) * m.x[t, "wide"]
                + pyo.exp(-(((u - m.other[t]) / 0.1) ** 2)) * m.x[t, "elsewhere"]
                for t in m.T
            )
            <= (60 + 20 * pyo.sin(6 * u)) * horizon / 1000
        ),
    )
    program = osilp.compile_online(m, stages=m.T, grid=FEWER, basis=osilp.RBF(10))
    points = program.evaluator.points[0][:, 0]

    def bump(centre, width):
        return np.exp(-(((points - centre[:, None]) / width) ** 2))

    columns = np.stack([bump(place, 0.1), bump(place, 0.2), bump(other, 0.1)], axis=1).reshape(3 * horizon, -1)
    return program, value.ravel(), columns, horizon * (60 + 20 * np.sin(6 * points)) / 1000


def logarithmic(horizon):
    """The README's model where a request earns the more, the more of it is served, but less and less."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.3 * t)
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.3 * t)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * pyo.log(1 + 4 * m.x[t]) for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
            <= (60 + 20 * pyo.sin(6 * u)) * horizon / 1000
        ),
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=FEWER, basis=osilp.RBF(10))


# -- optima ------------------------------------------------------------------------------------------------


def optimum(rewards, columns, counts, limit, options=1):
    """The LP over different arrivals, each as often as it comes; rows that are violated are added.

    With ``options`` so many columns in turn are one arrival, and share what it is allowed.
    """
    rows = np.zeros(len(limit), dtype=bool)
    rows[np.linspace(0, len(limit) - 1, min(len(limit), 20)).astype(int)] = True
    choices = csr_array(np.kron(np.eye(len(rewards) // options), np.ones(options))) if options > 1 else None
    while True:
        some, limits = columns[:, rows].T, limit[rows]
        if choices is not None:
            some, limits = vstack([choices, csr_array(some)]), np.concatenate([np.ones(choices.shape[0]), limits])
        found = linprog(-rewards, A_ub=some, b_ub=limits, bounds=list(zip(0 * counts, counts, strict=True)))
        excess = np.where(rows, 0, found.x @ columns - limit)
        if excess.max() <= 1e-9 * np.abs(limit).max():
            return -found.fun
        rows[np.argsort(-excess)[:60]] |= np.sort(-excess)[:60] < 0
