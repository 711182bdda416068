"""
Uncertainty sets from data: four shapes, one promise
====================================================

Logistics. Two depots share a fleet; their daily demands rise together, and there is a record of 400 days. Each set
below holds the demands of a new day with a probability of at least 90 %, with confidence 95 %, whatever their
distribution. What does each shape ask the fleet for?
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo

import osilp_pyomo as osilp

DAYS, COVERAGE = 400, 0.9


def draw_days(rng, count):
    """Skewed, and correlated by a season that both depots share."""
    season = rng.gamma(4, 3, size=(count, 1))
    return season * [1.0, 0.6] + rng.gamma(2, [2.0, 1.5], size=(count, 2))


rng = np.random.default_rng(3)
record, later = draw_days(rng, DAYS), draw_days(rng, 5000)

# %%
# The model
# ---------
# Vehicles stand at a depot or in a pool that serves both, where they cost a third more. They suffice for every pair of
# demands in the set.


def build_model(demands):
    m = pyo.ConcreteModel("fleet")
    m.own = pyo.Var([0, 1], bounds=(0, 200))
    m.pool = pyo.Var(bounds=(0, 200))
    m.cost = pyo.Objective(expr=3 * m.own[0] + 3 * m.own[1] + 4 * m.pool)

    @m.SemiInfiniteConstraint(["first", "second", "both"], demands)
    def served(m, depot, d):
        if depot == "both":
            return m.own[0] + m.own[1] + m.pool >= d[0] + d[1]
        return m.own[0 if depot == "first" else 1] + m.pool >= d[0 if depot == "first" else 1]

    return m


# %%
# Four sets of the same days
# --------------------------
# Half of the days shape a set, the other half sizes it. Days that came later tell how much it really holds, and how
# often the fleet suffices, which is more often: a set is left on sides, too, where no vehicle is missing. The promise
# is the same for each; which set is cheapest depends on the rows that it meets.

figure, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True, sharey=True, layout="constrained")
across, up = np.meshgrid(np.linspace(0, 40, 300), np.linspace(-1, 28, 300))
plane = np.column_stack([across.ravel(), up.ravel()])
for kind, axis in zip(("box", "ellipsoid", "budget", "polyhedron"), axes.flat, strict=True):
    demands = osilp.sets.from_data(record, COVERAGE, kind)
    held = osilp.sets.check(demands, later)
    m = build_model(demands)
    result = osilp.solve(m, progress=False)
    own, pool = np.array([m.own[0].value, m.own[1].value]), m.pool.value
    # What the depots lack must come from the pool.
    enough = np.mean(np.maximum(later - own, 0).sum(axis=1) <= pool)
    print(f"{kind}: {held}")
    print(f"  own {own.round(1)}, pool {pool:.1f}, cost {result.objective:.2f}; enough on {enough:.1%} of later days")
    assert result.certified
    assert held.upper >= COVERAGE
    outside = np.isin(np.arange(len(later)), held.outside)
    axis.plot(*later[~outside][:600].T, ".", ms=3, color="#0072B2", alpha=0.5)
    axis.plot(*later[outside][:60].T, "x", ms=4, color="#D55E00")
    in_set = np.ones(len(plane))
    in_set[list(osilp.sets.check(demands, plane).outside)] = 0
    axis.contour(across, up, in_set.reshape(across.shape), levels=[0.5], colors="k")
    axis.set_title(f"{kind}: {held.share:.1%} inside, cost {result.objective:.1f}")
for axis in axes[1]:
    axis.set_xlabel("demand of the first depot")
for axis in axes[:, 0]:
    axis.set_ylabel("demand of the second depot")
plt.show()
