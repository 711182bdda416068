"""Random rows ``x >= f(u)`` with places where they are highest, or may be: for proofs, and for proofs that must fail."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

KINDS = ("smooth", "kinks", "jump", "ridge", "peak", "minimum", "where", "profile")


@dataclass(frozen=True)
class RandomRow:
    """A function of ``dimension`` coordinates, a condition or None, and places (k, d) where it may be highest."""

    kind: str
    dimension: int
    function: Callable
    where: Callable | None
    places: np.ndarray
    knots: dict | None = None

    def model(self):
        """The smallest x above the function."""
        m = pyo.ConcreteModel()
        sets = []
        for axis in range(self.dimension):
            each = ContinuousSet(bounds=(0, 1))
            m.add_component("uvwr"[axis], each)
            sets.append(each)
        m.x = pyo.Var()
        if self.knots is not None:
            m.p = osilp.Profile(m.u, data=self.knots)
        m.height = pyo.Objective(expr=m.x)
        where = None if self.where is None else lambda m, *u: self.where(u)
        m.above = osilp.SemiInfiniteConstraint(*sets, rule=lambda m, *u: m.x >= self.function(m, u), where=where)
        return m

    def highest(self, model, rng, count=4000):
        """The largest value at many points: everywhere, and ever nearer to the places where it may be highest."""
        spread = rng.uniform(size=(count, self.dimension))
        near = [self.places]
        for width in 10.0 ** -np.arange(1, 10):
            moves = rng.normal(size=(len(self.places), 24, self.dimension)) * width
            near.append((self.places[:, None] + moves).reshape(-1, self.dimension))
        points = np.clip(np.concatenate([spread, *near]), 0, 1)
        rows = osilp.evaluate_rows(model, points, values={"x": 0.0})
        return float(rows["lower"].max()) if len(rows) else -np.inf
