"""LPs of few rows and very many bounded columns: an exact vertex from a few passes over the columns.

Almost every column is decided by the sign of its margin r - C w at the optimal dual w; only those near their threshold
need an LP. So a dual is found on a sample, the columns near it are gathered in one pass, their LP is solved with all
others fixed by sign, and a second pass checks that no column outside disagrees with the new dual. If one does, more
columns are gathered around the better dual. What ends without disagreement is optimal: the decisions satisfy the rows,
and every one of them is best at the prices.

Columns in memory are narrowed down once more: Newton's method on the smoothed dual (``lp/smoothed_dual.py``)
finds a dual of the columns gathered, and HiGHS solves the LP of the few hundred nearest to its threshold.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.lp.columns import (
    Block,
    DenseColumns,
    Threshold,
    by_sign,
    check,
    decisions,
    disagreeing,
    gather,
    least_use,
    sample,
)
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.scaling import Scaling
from osilp_pyomo.lp.smoothed_dual import anchors, minimize_smoothed, sizes_of

# Columns in the first LP, and for each row more: enough for the threshold to move, few enough for a fast one.
_BAND, _BAND_PER_ROW = 400, 20
# Columns that are solved for at once, without a sample; beyond it a sample of at least so many.
_AT_ONCE = 40_000
# By what the width of a threshold grows where columns outside of it disagree, or those inside have no solution.
_WIDER, _MUCH_WIDER = 3.0, 30.0
# The least width, and how often a threshold is tried before all columns are taken.
_LEAST, _ATTEMPTS = 1e-6, 6
# A gap between objective and bound, relative to their terms, that rounding can leave.
_CLOSED = 1e-7

# Runs a function on every block and gives the results in order.
Mapper = Callable[[Callable[[Block], Any], Sequence[Block]], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class WideAnswer:
    """How a wide LP ended: its dual (q,), the objective of the decisions and the bound that the dual proves.

    ``near`` holds places and decisions of the columns near the threshold, block by block, from which ``decisions``
    finds all of a block; ``left`` is what they leave of the budget (q,). ``gathered`` says how many columns the last
    LP was chosen from, ``passes`` how often all columns were looked at.
    """

    status: str
    objective: float = np.nan
    bound: float = np.nan
    dual: FloatArray | None = None
    threshold: Threshold | None = None
    near: tuple[tuple[IntArray, FloatArray], ...] = ()
    left: FloatArray | None = None
    gathered: int = 0
    passes: int = 0

    def decisions(self, block: Block, number: int) -> FloatArray:
        """The decisions of a block, which must be the ``number``-th of those that were solved for."""
        assert self.threshold is not None
        return decisions(block, self.threshold, *self.near[number])


@dataclass(frozen=True, eq=False)
class ColumnAnswer:
    """Dual of the rows and decisions of columns in memory."""

    dual: FloatArray
    x: FloatArray


def solve_wide(
    blocks: Sequence[Block],
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray | None = None,
    run: Mapper = map,
    deadline: float = np.inf,
    seed: int = 0,
) -> WideAnswer:
    """Maximize ``values @ x`` over ``x @ matrix <= budget`` (``==`` where the floor is -inf) and bounds.

    Parameters
    ----------
    blocks : sequence of Block
        The columns.
    budget, floor : arrays (q,)
        Right-hand sides of the rows, and the least price that each can have: 0, or -inf for an equation.
    dual : array (q,), optional
        A dual that is thought to be near.
    run : callable
        Applies a function to all blocks; ``map``, or that of an executor.
    deadline : float
        When to give up, by ``time.monotonic``.
    seed : int
        For the sample.
    """
    total = sum(map(len, blocks))
    if total <= _AT_ONCE:
        threshold = Threshold(np.zeros(len(budget)), np.ones(len(budget)), np.inf)
        passes = 0
    else:
        threshold = _from_sample(blocks, total, budget, floor, dual, run, seed)
        passes = 1
    least = _LEAST
    for attempt in itertools.count():
        if time.monotonic() > deadline:
            return WideAnswer("time_limit", passes=passes)
        if attempt == _ATTEMPTS:
            # What an LP without solution lacks, and what rounding hides, only all columns together can tell.
            threshold = replace(threshold, width=np.inf)
        found = list(run(partial(gather, threshold=threshold), blocks))
        near = DenseColumns.concat([each.near for each in found])
        passes += 1
        left = budget - sum((each.used for each in found), np.zeros(len(budget)))
        everything = len(near) == total
        start = threshold.dual if not everything or dual is None else dual
        status, answer = solve_columns(near, left, floor, start, threshold.width, deadline)
        if answer is None and (everything or status == "time_limit"):
            break
        if answer is None:
            if attempt == 0:
                passes += 1
                if _proved_infeasible(blocks, budget, threshold.dual, run):
                    status = "infeasible"
                    break
            threshold = replace(threshold, width=_MUCH_WIDER * threshold.width)
            continue
        sizes = anchors(answer.dual)
        seen = list(run(partial(check, threshold=threshold, dual=answer.dual, anchors=sizes), blocks))
        passes += 1
        earned = sum(each.earned for each in found) + float(answer.x @ near.values)
        bound = float(budget @ answer.dual) + sum(each.bound for each in seen)
        size = abs(earned) + abs(bound) + float(np.abs(budget) @ np.abs(answer.dual))
        closed = bound - earned <= _CLOSED * size
        if everything or (closed and not any(each.wrong for each in seen)):
            ends = np.cumsum([len(each.places) for each in found])[:-1]
            own = tuple(zip([each.places for each in found], np.split(answer.x, ends), strict=True))
            rest = left - answer.x @ near.matrix
            return WideAnswer("optimal", earned, bound, answer.dual, threshold, own, rest, len(near), passes)
        # The new dual is better than that of the sample: what disagrees with it says how far it may be off.
        least *= _WIDER if closed else _MUCH_WIDER
        threshold = Threshold(answer.dual, sizes, max(least, _WIDER * max(each.farthest for each in seen)))
    return WideAnswer(status, passes=passes)


def _from_sample(
    blocks: Sequence[Block],
    total: int,
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray | None,
    run: Mapper,
    seed: int,
) -> Threshold:
    """A dual from two samples, and a width that covers what their duals differ by: twice what their mean is off."""
    wanted = max(_AT_ONCE, int(100 * np.sqrt(total)))
    drawn = list(run(_Sampler(wanted / total, seed), blocks))
    halves = [
        _bounded(DenseColumns.concat([each.take(np.arange(first, len(each), 2)) for each in drawn])) for first in (0, 1)
    ]
    found, start = [], dual
    for half in halves:
        found.append(_smoothed(half, budget * (len(half) / total), floor, start, None if start is dual else 0.05))
        start = found[-1]
    middle, apart = (found[0] + found[1]) / 2, found[0] - found[1]
    size = sizes_of(halves[0].matrix, middle)
    share = np.abs(halves[0].matrix @ apart) / np.where(size > 0, size, 1.0)
    return Threshold(middle, anchors(middle), max(float(share.max(initial=0.0)), _LEAST))


@dataclass(frozen=True)
class _Sampler:
    """Draws a share of the columns of a block."""

    share: float
    seed: int

    def __call__(self, block: Block) -> DenseColumns:
        return sample(block, max(2, round(self.share * len(block))), self.seed)


def _bounded(columns: DenseColumns) -> DenseColumns:
    kept = columns.bounded
    return columns if kept.all() else columns.take(np.flatnonzero(kept))


def _smoothed(
    columns: DenseColumns, budget: FloatArray, floor: FloatArray, dual: FloatArray | None, first: float | None
) -> FloatArray:
    """Newton's dual of bounded columns, with rows in units of what they are used by."""
    if not len(columns):
        return np.zeros(len(budget))
    use = np.abs(columns.matrix).mean(axis=0)
    units = np.where(use > 0, use, 1.0)
    start = np.zeros(len(budget)) if dual is None else np.maximum(dual, floor) * units
    left = (budget - columns.lower @ columns.matrix) / units
    span = columns.upper - columns.lower
    return minimize_smoothed(columns.values, columns.matrix / units, span, left, floor, start, first) / units


def _proved_infeasible(blocks: Sequence[Block], budget: FloatArray, dual: FloatArray, run: Mapper) -> bool:
    """Whether the rows, weighted by the dual, allow less than the columns use at least (Farkas)."""
    seen = list(run(partial(least_use, dual=dual), blocks))
    size = float(np.abs(budget) @ np.abs(dual)) + sum(absolute for _, absolute in seen)
    return sum(least for least, _ in seen) - float(budget @ dual) > 1e-9 * size


def solve_columns(
    columns: DenseColumns,
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray,
    width: float = np.inf,
    deadline: float = np.inf,
) -> tuple[str, ColumnAnswer | None]:
    """Solve the LP of columns in memory, from a dual that may be off by ``width`` of each column's size.

    Status and answer depend on the data and the dual only, not on a solver's memory, so that a run that was stopped
    and resumed goes on exactly as if it never was.
    """
    groups = _equal_columns(columns)
    if groups is None:
        return _solve_near(columns, budget, floor, dual, width, deadline)
    first, group, counts = groups
    merged = columns.take(first)
    merged = DenseColumns(merged.values, merged.matrix, merged.lower * counts, merged.upper * counts)
    status, found = _solve_near(merged, budget, floor, dual, width, deadline)
    if found is None:
        return status, None
    return status, ColumnAnswer(found.dual, _shared(found.x, columns, group, counts))


def _solve_near(
    columns: DenseColumns, budget: FloatArray, floor: FloatArray, dual: FloatArray, width: float, deadline: float
) -> tuple[str, ColumnAnswer | None]:
    """Solve the LP of the columns nearest to their threshold, the others fixed by sign, until none disagrees."""
    band = _BAND + _BAND_PER_ROW * len(budget)
    unbounded = ~columns.bounded
    smooth = len(columns) > band and not unbounded.any()
    # A dual that stood for a similar problem may do as it is.
    familiar = np.isinf(width) and bool(dual.any())
    while True:
        if smooth and not familiar:
            dual = _smoothed(columns, budget, floor, dual, width if np.isfinite(width) else None)
            smooth = False
        margin = columns.values - columns.matrix @ dual
        work = np.ones(len(columns), dtype=bool)
        if band < len(columns):
            size = sizes_of(columns.matrix, dual)
            distance = np.where(size > 0, np.abs(margin) / np.where(size > 0, size, 1.0), np.inf)
            work[:] = unbounded
            work[np.argpartition(distance, band)[:band]] = True
        fixed = np.where(work, 0.0, by_sign(columns, margin))
        left = budget - fixed @ columns.matrix
        status, found = solve_all_columns(columns if work.all() else columns.take(work), left, floor, deadline)
        if found is not None:
            after = columns.values - columns.matrix @ found.dual
            if not np.any(~work & disagreeing(columns, found.dual, margin, after)):
                fixed[work] = found.x
                return status, ColumnAnswer(found.dual, fixed)
            dual = found.dual
        elif work.all() or status == "time_limit":
            return status, None
        if smooth:
            familiar = False
        else:
            band *= 4


def solve_all_columns(
    columns: DenseColumns, budget: FloatArray, floor: FloatArray, deadline: float = np.inf
) -> tuple[str, ColumnAnswer | None]:
    """The LP of all columns, by HiGHS."""
    rows, count = len(budget), len(columns)
    if not count:
        # HiGHS calls an empty model optimal whatever its rows ask for.
        kept = np.where(np.isfinite(floor), budget >= 0, budget == 0).all()
        return ("optimal", ColumnAnswer(np.zeros(rows), np.empty(0))) if kept else ("infeasible", None)
    model = column_model(columns, np.ones(rows, dtype=bool), budget, floor)
    if np.isfinite(deadline):
        model.limit_time(deadline - time.monotonic())
    found = model.solve()
    if found.x is None or found.row_duals is None:
        return found.status, None
    return found.status, ColumnAnswer(np.maximum(found.row_duals, floor), found.x)


def column_model(columns: DenseColumns, rows: BoolArray, budget: FloatArray, floor: FloatArray) -> HighsModel:
    """The LP of all columns with some of its rows, to which others can be added."""
    lp = FiniteLP(
        maximize=True,
        cost=columns.values,
        column_lower=columns.lower,
        column_upper=columns.upper,
        matrix=sparse.csr_array(columns.matrix[:, rows].T),
        row_lower=np.where(np.isfinite(floor), -np.inf, budget)[rows],
        row_upper=budget[rows],
    )
    units = _units(columns)
    # HiGHS' tolerances are absolute: values of any size are measured by the largest of them.
    dearest = float(np.abs(columns.values * units).max(initial=0.0))
    cost = float(2.0 ** np.round(np.log2(dearest))) if dearest > 0 else 1.0
    return HighsModel(lp, Scaling(units, cost), keep_tiny=True)


def _units(columns: DenseColumns) -> FloatArray:
    """Units in which columns use about the same, as powers of two: HiGHS' tolerances are absolute."""
    row = np.abs(columns.matrix).max(axis=0)
    size = (np.abs(columns.matrix) / np.where(row > 0, row, 1.0)).max(axis=1, initial=0.0)
    middle = float(np.median(size[size > 0])) if np.any(size > 0) else 1.0
    ratio = np.where(size > 0, np.clip(middle / np.where(size > 0, size, 1.0), 1e-6, 1e6), 1.0)
    return np.exp2(np.round(np.log2(ratio)))


# -- equal columns -------------------------------------------------------------------------------------


def _equal_columns(columns: DenseColumns) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Columns that are equal as one: the first of each group, the group of each column, and how many it has.

    None where all differ. Arrivals from a finite support tie by the thousand; as one column they are one tie.
    """
    if len(columns) < 2:
        return None
    weights = np.random.default_rng(0).uniform(1, 2, columns.matrix.shape[1] + 3)
    with np.errstate(invalid="ignore"):
        bounds = np.where(columns.bounded, columns.lower * weights[1] + columns.upper * weights[2], 0.0)
    key = columns.values * weights[0] + bounds + columns.matrix @ weights[3:]
    order = np.argsort(key, kind="stable")
    same = np.diff(key[order]) == 0
    if not same.any():
        return None
    for array in (columns.values, columns.lower, columns.upper):
        same &= array[order[1:]] == array[order[:-1]]
    alike = np.flatnonzero(same)
    same[alike] = np.all(columns.matrix[order[alike + 1]] == columns.matrix[order[alike]], axis=1)
    if not same.any():
        return None
    numbers = np.concatenate([[0], np.cumsum(~same)])
    group = np.empty(len(columns), dtype=np.int64)
    group[order] = numbers
    first = order[np.concatenate([[True], ~same])]
    return first, group, np.bincount(numbers).astype(float)


def _shared(x: FloatArray, columns: DenseColumns, group: IntArray, counts: FloatArray) -> FloatArray:
    """The decision for a group handed out: as many as can at their upper bound, one between, so that it is a vertex.

    Columns without two bounds share evenly.
    """
    span = columns.upper - columns.lower
    open_span = ~np.isfinite(span)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(group))
    rank[order] = np.arange(len(group)) - np.repeat(starts, counts.astype(np.int64))
    with np.errstate(invalid="ignore", divide="ignore"):
        above = x[group] - np.where(open_span, 0.0, columns.lower * counts[group])
        own = np.where(open_span, above / counts[group], columns.lower + np.clip(above - rank * span, 0.0, span))
    return np.clip(own, columns.lower, columns.upper)
