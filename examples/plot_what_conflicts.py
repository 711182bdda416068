"""
What conflicts: a filter that cannot be built
=============================================

Signal processing. A filter is to let low frequencies pass and stop high ones. With few coefficients the two wishes
contradict each other. Which frequencies are it that cannot be had together, and how many coefficients does it take?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

PASSED, STOPPED = 0.8, 1.4  # the ends of the two bands; between them anything goes

# %%
# The model
# ---------
# What the filter does to a frequency is a sum of cosines. It is to be within 2 % of one in the band that passes, and
# within 2 % of nothing in the band that is stopped.


def build_model(count):
    m = pyo.ConcreteModel("filter")
    m.passing = ContinuousSet(bounds=(0, PASSED))
    m.stopping = ContinuousSet(bounds=(STOPPED, np.pi))
    m.a = pyo.Var(range(count))
    m.small = pyo.Objective(expr=m.a[0])

    def response(w):
        return sum(m.a[k] * pyo.cos(k * w) for k in range(count))

    m.passes = osilp.SemiInfiniteConstraint(m.passing, rule=lambda m, w: (0.98, response(w), 1.02))
    m.stops = osilp.SemiInfiniteConstraint(m.stopping, rule=lambda m, w: (-0.02, response(w), 0.02))
    return m


# %%
# Six are not enough
# ------------------
# The result of an infeasible model has no values, but it knows what cannot hold together: these frequencies, from
# either side in turn, as Chebyshev would have it. What is asked for there is more than what is allowed.

result = osilp.solve(build_model(6))
print(result)
result.plot()

# %%
# How many it takes
# -----------------
# A few more coefficients, and there is a filter; its response touches the limits at as many frequencies as it has
# coefficients.

tried = {count: osilp.solve(build_model(count)).status for count in range(5, 13)}
print(pd.Series(tried, name="status").to_string())
enough = next(count for count, status in tried.items() if status == "optimal")
m = build_model(enough)
osilp.plot_rows(m, osilp.solve(m))
plt.show()
