"""Random uncertainty sets of every kind, and robust linear programs over them."""

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import (
    AxisAlignedEllipsoidalSet,
    BoxSet,
    BudgetSet,
    CardinalitySet,
    CartesianProductSet,
    DiscreteScenarioSet,
    EllipsoidalSet,
    FactorModelSet,
    IntersectionSet,
    PolyhedralSet,
)

from osilp_pyomo import SemiInfiniteConstraint

LINEAR = ("box", "cardinality", "nested budgets", "budgets", "polyhedron", "factors", "intersection", "product")
KINDS = (*LINEAR, "ellipsoid", "flat", "lens", "scenarios")


def uncertainty_set(kind, dimension, rng):
    """A random set of a kind, with the origin or a point near it inside."""
    ones = np.ones(dimension)
    if kind == "box":
        return BoxSet(np.column_stack([-rng.uniform(0, 1, dimension), rng.uniform(0, 1, dimension)]).tolist())
    if kind == "cardinality":
        up, down = rng.uniform(0, 1, (2, dimension)) * (rng.random((2, dimension)) > 0.2)
        return CardinalitySet(0.1 * rng.normal(size=dimension), up, float(rng.uniform(0, dimension)), down)
    if kind == "nested budgets":
        groups = np.concatenate([np.eye(dimension), ones[None]]).astype(int)
        return BudgetSet(groups, rng.uniform(0.2, 1, dimension + 1), -rng.uniform(0, 0.5, dimension))
    if kind == "budgets":
        groups = ((rng.random((dimension, dimension)) < 0.5) | np.eye(dimension, dtype=bool)).astype(int)
        return BudgetSet(groups, rng.uniform(0.2, 1, dimension))
    if kind == "polyhedron":
        rows = np.concatenate([rng.normal(size=(2 * dimension, dimension)), np.eye(dimension), -np.eye(dimension)])
        return PolyhedralSet(rows, np.concatenate([rng.uniform(0.3, 1, 2 * dimension), ones, ones]))
    if kind == "factors":
        factors = max(1, dimension // 2)
        return FactorModelSet(0 * ones, factors, rng.normal(size=(dimension, factors)), float(rng.uniform(0, 1)))
    if kind == "intersection":
        return IntersectionSet(
            box=BoxSet([(-0.7, 0.7)] * dimension),
            cardinality=CardinalitySet(0 * ones, ones, min(dimension, 1.7), ones),
        )
    if kind == "product":
        parts = [BoxSet([(-1.0, 1.0)])]
        if dimension > 1:
            parts.append(CardinalitySet(0 * ones[1:], ones[1:], min(dimension - 1, 1.5), ones[1:]))
        return CartesianProductSet(parts)
    if kind == "ellipsoid":
        root = rng.normal(size=(dimension, dimension))
        return EllipsoidalSet(0.1 * ones, root @ root.T + 0.1 * np.eye(dimension), scale=0.5)
    if kind == "flat":
        lengths = rng.uniform(0.2, 1, dimension)
        lengths[0] = 0.0
        return AxisAlignedEllipsoidalSet(0 * ones, lengths)
    if kind == "lens":
        return IntersectionSet(ball=AxisAlignedEllipsoidalSet(0 * ones, ones), box=BoxSet([(-0.7, 0.9)] * dimension))
    return DiscreteScenarioSet([tuple(map(float, row)) for row in rng.normal(size=(7, dimension))])


def robust_model(uncertainty, rng, variables=6, rows=4):
    """Rows of all senses, with uncertain coefficients and right-hand sides; feasible and bounded."""
    dimension = uncertainty.dim
    nominal = rng.uniform(1, 2, (rows, variables))
    moved = 0.3 * rng.normal(size=(rows, variables, dimension))
    right = 0.2 * rng.normal(size=(rows, dimension))
    prices = rng.uniform(1, 2, variables)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(variables), bounds=(-1, 10))
    m.revenue = pyo.Objective(expr=pyo.sum_product(dict(enumerate(prices.tolist())), m.x), sense=pyo.maximize)

    def rule(m, i, xi):
        body = sum(
            (nominal[i, j] + sum(moved[i, j, k] * xi[k] for k in range(dimension))) * m.x[j] for j in range(variables)
        )
        if i == 0:
            return body >= -20 + xi[0]
        if i == 1:
            return (-20, body, 8)
        return body <= 5 + sum(right[i, k] * xi[k] for k in range(dimension))

    m.limits = SemiInfiniteConstraint(range(rows), uncertainty, rule=rule)
    return m
