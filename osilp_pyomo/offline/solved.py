"""How a method ended: an answer with its prices and audit, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.offline.audit import Audit
from osilp_pyomo.offline.conflicts import NO_CONFLICT, Conflict
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.problem import SemiInfiniteLP
from osilp_pyomo.offline.proof.certify import FamilyProof


@dataclass(frozen=True, eq=False)
class Point:
    """An answer: where, how good, at what prices (None for a model with integers), and its audit.

    ``x`` is None where values are not kept in memory.
    """

    x: FloatArray | None
    audit: Audit
    prices: tuple[Price, ...] | None
    core_duals: FloatArray | None
    reduced_costs: FloatArray | None
    repaired: bool = False
    test_violation: float = np.nan


@dataclass(frozen=True, eq=False)
class Solved:
    """How a method ended.

    ``conflict`` is what cannot hold together where the problem is infeasible; ``dropped`` says whether HiGHS left out
    coefficients that are tiny beside others of their row, ``bound_is_loose`` that its bound of an integer program does
    not know them; ``complaint`` is what is wrong with an answer that is less
    accurate than it should be; ``proofs`` say for each family how surely its rows hold. ``method`` and ``why`` are what
    was chosen, where that was left open; ``remark`` is what else should be known.
    """

    status: str
    objective: float
    bound: float
    point: Point | None = None
    rows: int = 0
    memory: int = 0
    log: tuple[dict[str, Any], ...] = ()
    separation: tuple[str, ...] = ()
    conflict: Conflict = NO_CONFLICT
    dropped: bool = False
    bound_is_loose: bool = False
    complaint: str | None = None
    proofs: tuple[FamilyProof, ...] = ()
    method: str = ""
    why: str = ""
    remark: str = ""


def as_proved(solved: Solved, integers: bool = False) -> Solved:
    """A problem without integers is infeasible where rows are told that contradict each other, else undecided.

    With integers HiGHS' word is taken, unless it did not see all coefficients, or rounding may be behind it.
    """
    known = integers and not (solved.dropped or solved.conflict.rounded)
    if solved.status != "infeasible" or solved.conflict.clauses or known:
        return solved
    return replace(solved, status="undecided")


def integers_fixed(problem: SemiInfiniteLP, x: FloatArray) -> SemiInfiniteLP:
    """The problem that prices of an integer answer belong to: its integers held at their values."""
    core = problem.core
    if not core.integer.any():
        return problem
    lower, upper = np.where(core.integer, x, core.column_lower), np.where(core.integer, x, core.column_upper)
    return SemiInfiniteLP(replace(core, column_lower=lower, column_upper=upper), problem.families)
