"""Trucks on a stretch of road with a measured capacity: a Profile, two families, and three methods side by side."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

CAPACITY = pd.Series([9.0, 7.5, 6.0, 8.0, 5.5, 7.0, 9.0], index=[0, 15, 25, 45, 60, 80, 100], name="trucks an hour")


def build_model(requests=60, seed=1):
    random = np.random.default_rng(seed)
    m = pyo.ConcreteModel("road")
    m.km = ContinuousSet(bounds=(0, 100))
    m.lane = pyo.Set(initialize=["day", "night"])
    m.R = pyo.RangeSet(requests)
    m.fare = pyo.Param(m.R, mutable=True, initialize=lambda m, r: random.uniform(1, 5))
    m.centre = pyo.Param(m.R, mutable=True, initialize=lambda m, r: random.uniform(0, 100))
    m.accept = pyo.Var(m.R, m.lane, bounds=(0, 1))
    m.capacity = osilp.Profile(over=m.km, initialize=CAPACITY)
    m.income = pyo.Objective(expr=sum(m.fare[r] * m.accept[r, k] for r in m.R for k in m.lane), sense=pyo.maximize)
    m.once = pyo.Constraint(m.R, rule=lambda m, r: sum(m.accept[r, k] for k in m.lane) <= 1)

    @m.SemiInfiniteConstraint(m.lane, m.km)
    def load_on_road(m, k, km):
        load = sum(m.accept[r, k] / (1 + ((km - m.centre[r]) / 10) ** 4) for r in m.R)
        return load <= m.capacity(km) * (1 if k == "day" else 0.6)

    return m


if __name__ == "__main__":
    model = build_model()
    for method in ("projected", "discretized", "exchange"):
        result = osilp.solve(model, method=method)
        worst = max(result.violation.values())
        print(f"{method:12} income {result.objective:9.4f}   largest violation {worst:.2g} trucks an hour")
    print("\nWhere the road is scarce by day, and what one more truck an hour there is worth:")
    print(result.price["load_on_road[day]"].atoms.to_string(index=False))
