"""Requests come one by one, and what each takes of a resource moves with factors that all of them share.

The resource must last for every value of the factors in an ellipsoid. The program prices points of its boundary; the
benchmark is the robust optimum in hindsight, which is exact.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
import pyomo.environ as pyo
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet

import osilp_pyomo as osilp

FACTORS = range(4)


def build_model(requests=100):
    m = pyo.ConcreteModel("robust admission")
    m.T = pyo.RangeSet(requests)
    m.accept = pyo.Var(m.T, bounds=(0, 1))
    m.value = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals)
    m.use = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeReals)
    m.shift = pyo.Param(m.T, FACTORS, mutable=True, within=pyo.Reals)
    m.total = pyo.Objective(expr=pyo.sum_product(m.value, m.accept), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(AxisAlignedEllipsoidalSet([0] * 4, [1] * 4))
    def resource(m, xi):
        taken = sum((m.use[t] + sum(m.shift[t, k] * xi[k] for k in FACTORS)) * m.accept[t] for t in m.T)
        return taken <= 0.25 * requests

    return m


def draw(rng, count):
    columns = {"value": rng.uniform(0.5, 1.5, count), "use": rng.uniform(0.5, 1.0, count)}
    return pd.DataFrame(columns | {("shift", k): 0.1 + 0.2 * rng.normal(size=count) for k in FACTORS})


if __name__ == "__main__":
    m = build_model()
    program = osilp.compile_online(m, stages=m.T)
    print(program.describe())
    study = osilp.compare(
        program,
        [osilp.MirrorDescent(), osilp.Resolve()],
        sampler=draw,
        horizons=[100, 400, 1600],
        trials=3,
        seed=1,
        guards=["pointwise"],
        benchmarks=["exchange"],
        progress=False,
    )
    print(study)
    regret = study.runs.pivot_table(index="horizon", columns="policy", values="relative_regret_exchange")
    figure, axis = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
    axis.semilogx(regret.index, 100 * regret, "o-", label=list(regret.columns))
    axis.set(xlabel="requests", ylabel="regret (%)", title="Against the robust optimum in hindsight")
    axis.set_xticks(regret.index, [f"{count:,}" for count in regret.index])
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    axis.legend()
    figure.savefig("robust_online.png", dpi=120)
