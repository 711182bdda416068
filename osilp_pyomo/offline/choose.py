"""Which offline method fits a problem: by duality as a finite program, or by exchange.

The choice hangs on what the rows and sets are, never on a clock, so that it is the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osilp_pyomo.index.choice_sets import ChoiceBody
from osilp_pyomo.index.convex_sets import ScenarioBody
from osilp_pyomo.index.extended_form import Lift
from osilp_pyomo.offline.duality.counterpart import objection
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.rows import AffineRows

# Coefficients of a counterpart below which it is solved at once, and above which it is not tried.
_SMALL, _LARGE = 5_000, 5_000_000
# Share of columns without any bound from which on exchange wanders: its first LPs say nothing about most of them.
_FREE = 0.1
# Iterations that exchange may take before a counterpart is tried, and one more for so many coefficients of that.
_PATIENCE, _PER_ITERATION = 40, 10_000
# Ways in which the farthest points of all rows are found at once.
_CHEAP = ("closed form", "enumeration")


@dataclass(frozen=True)
class Choice:
    """A method, why it was chosen, and after how many iterations of exchange a counterpart is to be tried, if ever."""

    method: str
    why: str
    patience: int | None = None


def choose_method(problem: SemiInfiniteLP) -> Choice:
    """The method for a problem, by what its families are."""
    if not problem.families:
        return Choice("exchange", "there are no semi-infinite rows: one program is all there is")
    if all(map(_is_an_interval, problem.families)):
        first = problem.families[0]
        return Choice("exchange", f"the index of '{first.name}' is {first.domain}, along which a scan is fast")
    for family in problem.families:
        if objection(family, problem.core) is not None:
            return Choice("exchange", _why_exchange(family))
    if any(isinstance(family.domain.body, ChoiceBody) for family in problem.families):
        return Choice("counterpart", "its sums of maxima are written choice by choice, as far as choices matter")
    lifts: dict[int, Lift] = {}
    size = sum(_coefficients(family, lifts) for family in problem.families)
    if size > _LARGE:
        return Choice("exchange", f"the counterpart would have some {size:,} coefficients")
    why = _why_counterpart(problem, size)
    if why is not None:
        return Choice("counterpart", why)
    patience = _PATIENCE + size // _PER_ITERATION
    return Choice("exchange", "the worst vectors of its rows have closed forms, and few of them matter", patience)


def _is_an_interval(family: Family) -> bool:
    """Whether its index is one number between two ends, which a scan looks at as fast as a program is solved."""
    return family.domain.body is None and family.domain.dimension == 1 and family.domain.bounded


def _why_exchange(family: Family) -> str:
    if family.domain.body is None:
        return f"the index of '{family.name}' is {family.domain}, which has no counterpart"
    if isinstance(family.domain.body, ChoiceBody):
        return f"the sums of maxima of '{family.name}' are neither affine nor quadratic in the random vector"
    if not isinstance(family.rows, AffineRows):
        return f"the rows of '{family.name}' are neither affine nor quadratic in the uncertain vector"
    return f"'{family.name}' holds over {family.domain.body}, which is not convex"


def _why_counterpart(problem: SemiInfiniteLP, size: int) -> str | None:
    core = problem.core
    used = np.unique(np.concatenate([family.rows.columns for family in problem.families]))
    free = np.isneginf(core.column_lower[used]) & np.isposinf(core.column_upper[used])
    if core.integer.any():
        return "whole numbers are decided once in the counterpart, and again and again in exchange"
    bodies = [family.domain.body for family in problem.families if isinstance(family.rows, AffineRows)]
    if len(bodies) < len(problem.families):
        return "its rows are quadratic in the index, which cones say exactly"
    if any(body is not None and body.separation not in _CHEAP for body in bodies):
        return "each worst vector of its sets would cost a program of its own"
    if free.mean() >= _FREE:
        return "many variables have no bounds, among which exchange would wander"
    return "its counterpart is small" if size <= _SMALL else None


def _coefficients(family: Family, lifts: dict[int, Lift]) -> int:
    """About how many coefficients the counterpart of a family has; ``lifts`` are those of sets that it was asked of."""
    rows, body = family.rows, family.domain.body
    if not isinstance(rows, AffineRows):
        return len(rows.columns) * (1 + family.domain.dimension) ** 2
    assert body is not None
    sides = (rows.upper is not None) + (rows.lower is not None)
    own = int(np.count_nonzero(rows.matrix))
    if isinstance(body, ScenarioBody):
        return sides * len(body.scenarios) * len(rows.columns)
    if id(body) not in lifts:
        lifts[id(body)] = body.lift()
    lift = lifts[id(body)]
    if np.count_nonzero(lift.matrix) > lift.coordinates:
        # A set whose coordinates mix the entries of its vectors fills the rows.
        own = lift.coordinates * len(rows.columns)
    return sides * (own + int(np.count_nonzero(lift.rows)))
