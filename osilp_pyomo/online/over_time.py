"""What happened while arrivals came: the use of rows along their index, and the price, after so many of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.controller import Controller
from osilp_pyomo.online.stages.batch import Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals, StageFamily, StageRow


def moments_of(count: int, most: int) -> list[int]:
    """Numbers of arrivals at which a run of ``count`` is looked at: at most ``most``, evenly spread, the last too.

    Examples
    --------
    >>> moments_of(10, 4), moments_of(3, 40)
    ([2, 5, 8, 10], [1, 2, 3])
    """
    return np.unique(np.linspace(0, count, min(count, most) + 1).round().astype(int))[1:].tolist()


def use_over_time(
    evaluator: Evaluator,
    family: StageFamily,
    arrivals: Arrivals,
    decisions: Sequence[FloatArray],
    points: FloatArray,
    moments: Sequence[int],
) -> FloatArray:
    """Use (S, M, P) of a family at points (P, d) after each of M moments, under S ways to decide the same arrivals."""
    total = np.zeros((len(decisions), len(moments), len(points)))
    before = 0
    for number, t in enumerate(moments):
        at = slice(before, t)
        total[:, number] = evaluator.all_at_points(family, arrivals.part(at), [x[at] for x in decisions], points)
        before = t
    return total.cumsum(axis=1)


def row_use_over_time(
    evaluator: Evaluator, row: StageRow, arrivals: Arrivals, decisions: FloatArray, moments: Sequence[int]
) -> FloatArray:
    """Use (M,) of an ordinary row over all stages after each of M moments."""
    coefficients, constant = evaluator.template.numbers(row.terms, arrivals)
    spent = (evaluator.template.values(arrivals, decisions) * coefficients).sum(axis=1) + constant
    return spent.cumsum()[np.asarray(moments) - 1]


def prices_over_time(controller: Controller, batches: Iterable[Batch], moments: Sequence[int]) -> list[Any]:
    """The price of a fresh controller before the first arrival, and after each moment of those that it meets here."""
    wanted, prices = set(moments), [controller.price]
    for batch in batches:
        start, first = controller.t, 0
        for last in sorted({t - start for t in wanted if start < t < start + len(batch)} | {len(batch)}):
            controller.meet(batch.part(slice(first, last)))
            first = last
            if controller.t in wanted:
                prices.append(controller.price)
    return prices
