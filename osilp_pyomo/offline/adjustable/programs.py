"""Bounding programs, solved, with bounds that hold in floating point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.lp.conic import ConeProgram
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.programs import solve_program
from osilp_pyomo.offline.audit import audit
from osilp_pyomo.offline.problem import SemiInfiniteLP


@dataclass(frozen=True, eq=False)
class Bounded:
    """How a program ended: its status, its point and duals, and what no point of it can beat (nan: nothing proved)."""

    status: str
    bound: float = np.nan
    x: FloatArray | None = None
    row_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None


def solve_bounding(lp: FiniteLP, time_limit: float | None = None) -> Bounded:
    """Solve a program for its bound.

    Any duals give one: those that point to no limit are set to zero, and what the dual equations then miss is worth the
    bound of its variable (Neumaier and Shcherbina, 2004); what is left open at variables without bounds is
    balanced, and taken off as a doubt. With integers it is what HiGHS' branch and bound says.
    """
    found = solve_program(ConeProgram(lp, ()), time_limit)
    if lp.integer.any():
        return Bounded(found.status, np.nan if found.bound_is_loose else found.bound, found.x)
    if found.x is None or found.row_duals is None:
        return Bounded(found.status)
    checked = audit(SemiInfiniteLP(lp, ()), found.x, [], [], found.row_duals)
    sense = 1.0 if lp.maximize else -1.0
    lost = checked.doubt + checked.rounding
    bound = sense * (max(sense * found.objective, sense * checked.dual_bound) + lost)
    return Bounded(found.status, bound if np.isfinite(bound) else np.nan, found.x, found.row_duals, found.reduced_costs)
