"""What arrivals cost at a price: how much of the priced resources a unit of each decision uses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals

# Numbers in one block of arrivals x functions x points.
_BLOCK = 2**22


def costs_of(
    evaluator: Evaluator, arrivals: Arrivals, prices: Mapping[str, Price], row_prices: Mapping[str, float]
) -> tuple[FloatArray, FloatArray]:
    """What a unit of each decision costs (B, n), and what cannot be decided (B,), in the sense of the model.

    A column is integrated against the price of each semi-infinite row; ``row_prices`` are those of ordinary rows, d
    objective / d right-hand side, as all prices are. For linear stages, whose functions are the decisions.
    """
    template = evaluator.template
    costs, fixed = np.zeros((len(arrivals), len(template.functions))), np.zeros(len(arrivals))
    for family in template.families:
        price = prices[family.name]
        if not len(price.points):
            continue
        step = max(1, _BLOCK // (len(price.points) * len(template.functions)))
        for start in range(0, len(arrivals), step):
            at = slice(start, start + step)
            use, constants = template.on_points(family, arrivals.part(at), price.points)
            costs[at] += use @ price.masses
            if constants is not None:
                fixed[at] += constants @ price.masses
    for row in template.rows:
        use, constant = template.numbers(row.terms, arrivals)
        costs += row_prices.get(row.name, 0.0) * use
        fixed += row_prices.get(row.name, 0.0) * constant
    return costs, fixed
