"""Equal arrivals as one: the offline problem of arrivals drawn from a finite support has a column for each of those.

A linear stage that comes n times is one stage n times as large: its decisions are the sums over its arrivals, and by
convexity all of them may decide alike. That is exact, and makes the problem of a million arrivals from a thousand
different ones a problem of a thousand columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.offline.late import changed
from osilp_pyomo.offline.results import Result
from osilp_pyomo.online.hindsight.lp import DecisionNames
from osilp_pyomo.online.stages.template import Arrivals, StageTemplate


@dataclass(frozen=True, eq=False)
class Merged:
    """Different arrivals in the order in which they first came, how often each came, and which of them each one is."""

    arrivals: Arrivals
    counts: FloatArray
    which: Any  # (T,) int


def merge_equal(arrivals: Arrivals, template: StageTemplate) -> Merged:
    """Put equal arrivals together; each stays alone where decisions are whole numbers, which cannot be shared out."""
    alone = Merged(arrivals, np.ones(len(arrivals)), np.arange(len(arrivals)))
    if template.integer.any() or not arrivals.values:
        return alone
    _, first, which, counts = np.unique(
        arrivals.identities(), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    if len(first) == len(arrivals):
        return alone
    order = np.argsort(first)
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    return Merged(arrivals.take(first[order]), counts[order].astype(float), place[which.ravel()])


def share_out(result: Result, merged: Merged, template: StageTemplate, index: pd.Index) -> Result:
    """The result of merged arrivals as that of all of them: equal arrivals get equal decisions."""
    if len(merged.arrivals) == len(index):
        return result
    if result.answer is None:
        return changed(result, conflict=_share_out_conflict(result.conflict, merged, template, index))
    answer, which = result.answer, merged.which
    names = pd.Index(list(DecisionNames(template, index)), dtype=object, name="variable")
    rows = pd.Index(
        [row.name for row in template.rows] + [f"{row.name} @ {name}" for row in template.own_rows for name in index],
        dtype=object, name="constraint",
    )  # fmt: skip

    def spread(values: FloatArray) -> FloatArray:
        return values.reshape(len(merged.counts), -1)[which].ravel()

    shares = result.values.to_numpy() / np.repeat(merged.counts, len(template.decisions))
    duals, costs = answer.duals, answer.reduced_costs
    if duals is not None:
        over_all, own = np.split(duals.to_numpy(), [len(template.rows)])
        each = own.reshape(len(template.own_rows), len(merged.counts))[:, which].ravel()
        duals = pd.Series(np.concatenate([over_all, each]), index=rows, name="dual")
    if costs is not None:
        costs = pd.Series(spread(costs.to_numpy()), index=names, name="rc")
    values = pd.Series(spread(shares), index=names, name="value")
    return changed(result, answer=changed(answer, values=values, duals=duals, reduced_costs=costs))


def _share_out_conflict(
    conflict: pd.DataFrame, merged: Merged, template: StageTemplate, index: pd.Index
) -> pd.DataFrame:
    """Limits of one of several equal arrivals as those of each."""
    place = {str(label): k for k, label in enumerate(merged.arrivals.index)}
    over_all, own = {row.name for row in template.rows}, {row.name for row in template.own_rows}
    parts = []
    for clause in conflict.to_dict("records"):
        what, _, label = clause["name"].rpartition(" @ ")
        kind = clause["kind"]
        of_arrival = kind == "bound" or (kind == "constraint" and what in own and clause["name"] not in over_all)
        stage = place.get(label) if of_arrival else None
        if stage is None:
            parts.append(clause)
            continue
        limit = clause["limit"] / merged.counts[stage]
        parts += [{**clause, "name": f"{what} @ {each}", "limit": limit} for each in index[merged.which == stage]]
    return pd.DataFrame(parts, columns=conflict.columns)
