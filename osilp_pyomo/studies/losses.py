"""Where a regret comes from: each part of it is known by the prices of the optimum in hindsight.

Let pi be those prices, d_t = r_t - (what a unit of the decision t uses, at pi) and b the limits. By duality the optimum
is the integral of b against pi plus the sum of max d_t x over what each arrival may be decided. What a run earned is
the sum of d_t x_t plus what it used, at pi. The difference is an identity, whatever the run did::

    R* - R = sum over t of (max d_t x - d_t x_t)  +  integral of (b - what was used) against pi

The first sum has a term >= 0 for each arrival, which is booked on the reason of its decision. The second is what was
left over, at its price; it is negative where rows were overrun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.results import Result
from osilp_pyomo.online.arrival_costs import costs_of
from osilp_pyomo.online.stages.choose import choose_solver
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals

#: The parts, in the order in which they are drawn, with the reasons of decisions that are booked on each.
PARTS = {"priced": ("priced",), "tie": ("tie",), "guard": ("guard", "null", "overrun"), "left": ()}
# By how much a benchmark may miss what its prices prove, as a share of 1 + |objective|, if it is to tell anything.
_PROVED = 1e-5


@dataclass(frozen=True, eq=False)
class Losses:
    """What each decision and each resource is worth by the prices of a benchmark.

    ``worth`` (T, n) is what a unit of each decision earns beyond what it uses, ``best`` (T,) the most that an arrival
    can make of that, ``limits`` what all limits are worth, less what is used whatever is decided; ``costs`` (T, n) is
    what a unit of each decision uses.
    """

    benchmark: str
    worth: FloatArray
    best: FloatArray
    costs: FloatArray
    limits: float

    def of(self, taken: FloatArray, reasons: Any) -> dict[str, float]:
        """Each part of the regret of decisions (T, n) that were taken for reasons (T,)."""
        lost = self.best - (self.worth * taken).sum(axis=1)
        found = {part: float(lost[np.isin(reasons, booked)].sum()) for part, booked in PARTS.items()}
        found["left"] = self.limits - float((self.costs * taken).sum())
        return found


def losses_against(evaluator: Evaluator, arrivals: Arrivals, optima: Mapping[str, Result]) -> Losses | None:
    """What tells where regrets come from, by the first benchmark with prices that prove it; None where none has."""
    template = evaluator.template
    if not template.linear:
        return None
    for name, found in optima.items():
        if found.answer is None or found.answer.price is None:
            continue
        made = _losses(evaluator, arrivals, name, found)
        if made is not None:
            return made
    return None


def _losses(evaluator: Evaluator, arrivals: Arrivals, name: str, found: Result) -> Losses | None:
    template = evaluator.template
    # Everything as in a maximum.
    sense = 1.0 if template.maximize else -1.0
    row_prices = {str(row): float(price) for row, price in found.duals.items()}
    costs, fixed = (sense * each for each in costs_of(evaluator, arrivals, found.prices, row_prices))
    batch = evaluator.without_use(arrivals)
    worth = batch.rewards - costs
    try:
        decided = choose_solver(evaluator).best(batch, worth, ())
    except DataError:
        # A decision without a bound is worth something: the prices prove nothing.
        return None
    best = (worth * decided).sum(axis=1)
    limits = sum(_limit_worth(evaluator, number, found.prices[family.name], sense)
                 for number, family in enumerate(template.families))  # fmt: skip
    for row in template.rows:
        price = sense * row_prices.get(row.name, 0.0)
        limit = row.upper if price > 0 else row.lower
        if price != 0:
            if limit is None:
                return None
            limits += price * limit
    limits -= float(fixed.sum())
    proved = sense * template.offset + float(batch.earned.sum()) + limits + float(best.sum())
    if not abs(proved - sense * found.objective) <= _PROVED * (1 + abs(found.objective)):
        return None
    return Losses(name, worth, best, costs, limits)


def _limit_worth(evaluator: Evaluator, number: int, price: Price, sense: float) -> float:
    """What the limits of a semi-infinite row are worth at its price: the upper where it is positive, else the lower."""
    if not len(price.points):
        return 0.0
    masses, total = sense * price.masses, 0.0
    for group in evaluator.groups:
        if group.family == number:
            part = masses * group.sign > 0
            if part.any():
                total += float(masses[part] @ evaluator.limit(group, price.points[part]))
    return total


def earned_by(evaluator: Evaluator, arrivals: Arrivals, found: Result) -> FloatArray:
    """What the decisions of an optimum in hindsight earn with each arrival (T,)."""
    decided = found.values.to_numpy().reshape(-1, len(evaluator.template.decisions))
    return evaluator.reward(evaluator.without_use(arrivals), decided)
