"""Half a million requests in a file: decided as they come, and compared with hindsight, without holding them in memory.

Requests for a place on a road of unit length come with what they pay and where. A stretch around each is worn by it,
and no point of the road may be worn too much. They stand in a Parquet file, which is read chunk by chunk.
"""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

COUNT = 500_000


def road():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)  # examples only; the requests are in the file
    m.pays = pyo.Param(m.T, mutable=True)
    m.place = pyo.Param(m.T, mutable=True)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.income = pyo.Objective(expr=sum(m.pays[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def wear(m, u):
        worn = sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
        return worn <= COUNT * (0.06 + 0.02 * pyo.sin(6 * u))

    return m


def requests(path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pays": rng.gamma(2.0, 1.0, COUNT), "place": rng.beta(2.0, 3.0, COUNT)})
    frame.to_parquet(path, row_group_size=100_000)


if __name__ == "__main__":
    requests("requests.parquet")
    m = road()
    program = osilp.compile_online(m, stages=m.T, horizon=COUNT, basis=osilp.RBF(10), grid=osilp.Midpoint(40))

    run = program.replay(osilp.MirrorDescent(), "requests.parquet", "projected", write="decisions.parquet")
    print(run, "\n")

    best = program.solve_offline("requests.parquet", "projected", write="hindsight.parquet")
    print(best, "\n")
    print("regret:", run.regret(best))

    online, offline = pd.read_parquet("decisions.parquet"), pd.read_parquet("hindsight.parquet")
    print(f"decided alike: {np.mean(np.isclose(online['x'], offline['x'])):.1%} of the requests")
