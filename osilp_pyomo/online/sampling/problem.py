"""The problem of a sample, each arrival as often as it counts: its dual, and what it does on ties."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo._options import AUTO, HIGHS
from osilp_pyomo.errors import OptionError
from osilp_pyomo.lp.columns import DenseColumns
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel, LPSolution
from osilp_pyomo.lp.row_generation import add_violated
from osilp_pyomo.lp.wide import ColumnAnswer, column_model, solve_all_columns, solve_wide
from osilp_pyomo.offline.search.scan import peaks_of
from osilp_pyomo.online.hindsight.concave_dual import ConcaveProblem, ResourceUse, minimize_dual, projected_rows
from osilp_pyomo.online.sampling.sample import Sample
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import StageSolver

# Points that join the rows of an exact sample LP in one round, and rounds.
_ROWS_PER_ROUND, _ROUNDS = 40, 60
# Columns up to which one model of HiGHS is kept while rows join; of more only those that matter are looked at.
_WARM = 5000
# A violation, relative to the budget, that counts as none.
_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class SampleAnswer:
    """The dual (R,) of a sample problem, and the share (N, n) of each decision's range that it takes, if it tells."""

    dual: FloatArray
    shares: FloatArray | None


def price_sample(
    evaluator: Evaluator,
    solver: StageSolver,
    sample: Sample,
    budget: FloatArray,
    dual: FloatArray,
    view: str,
    nothing: FloatArray,
    lp_solver: str = AUTO,
) -> SampleAnswer | None:
    """Solve the problem of a sample, each arrival as often as its weight says, on a budget.

    Uses of linear stages that are no more than ``nothing`` (R,) are none: where there is no budget at all, each of them
    would ask for a price of its own inverse. None where the sample problem has no solution; the price then stays what
    it was.
    """
    template, batch = evaluator.template, sample.batch
    floor = evaluator.resources[view].floor
    if len(batch.fixed[view]):
        budget = budget - sample.weights @ batch.fixed[view]
    if not template.linear:
        return _concave(evaluator, solver, sample, budget, floor, dual, view)
    usage = _without_tails(batch, batch.use[view], nothing)
    if template.own_rows:
        return _with_own_rows(evaluator, sample, usage, budget, floor, view)
    count, width, resources = usage.shape
    times = np.repeat(sample.weights, width)
    lower, upper = batch.lower.ravel(), batch.upper.ravel()
    solve = solve_exact_sample if view == POINTWISE else solve_sample
    columns = DenseColumns(batch.rewards.ravel(), usage.reshape(count * width, resources), lower * times, upper * times)
    found = solve(columns, budget, floor, dual, lp_solver)
    return None if found is None else SampleAnswer(found.dual, _shares(batch, found.x, times))


def _shares(batch: Batch, x: FloatArray, times: FloatArray) -> FloatArray:
    """Which share (N, n) of the range of each decision is taken; nan where it has no end."""
    lower, upper = batch.lower.ravel(), batch.upper.ravel()
    span = upper - lower
    share = (x / times - lower) / np.where(span > 0, span, 1.0)
    share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), np.nan)
    return share.reshape(batch.lower.shape)


def _without_tails(batch: Batch, use: FloatArray, nothing: FloatArray) -> FloatArray:
    """Uses (N, n, R), without those that are nothing whatever is decided."""
    reach = np.maximum(np.abs(batch.lower), np.abs(batch.upper))
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(use) * reach[:, :, None] <= nothing, 0.0, use)


def _concave(
    evaluator: Evaluator,
    solver: StageSolver,
    sample: Sample,
    budget: FloatArray,
    floor: FloatArray,
    dual: FloatArray,
    view: str,
) -> SampleAnswer | None:
    """The dual of concave stages, each as often as its weight says."""
    if view == POINTWISE:
        raise OptionError("Resolve(exact=True) needs linear stages; use Resolve() with guard='pointwise'.")
    rows = projected_rows(evaluator, sample.batch)
    problem = ConcaveProblem(evaluator, solver, sample.batch, sample.weights)
    found = minimize_dual(problem, ResourceUse(rows.usage, budget, floor, rows.parts), dual, 1e-6)
    return SampleAnswer(found.dual, None) if found.solvable else None


def _with_own_rows(
    evaluator: Evaluator, sample: Sample, usage: FloatArray, budget: FloatArray, floor: FloatArray, view: str
) -> SampleAnswer | None:
    """The dual of linear stages with rows of their own: one LP of all of them, rows of grid points as needed."""
    template, batch = evaluator.template, sample.batch
    times = sample.weights
    count, width, resources = usage.shape
    columns = usage.reshape(count * width, resources)
    stretched = np.repeat(times, width)
    own, limits = batch.own, -batch.own_fixed * times[:, None]
    rows = own.shape[1]
    places = np.arange(count * width).reshape(count, 1, width)
    numbers = np.arange(count * rows).reshape(count, rows, 1)
    shape = (count, rows, width)
    block = sparse.csr_array(
        (own.ravel(), (np.broadcast_to(numbers, shape).ravel(), np.broadcast_to(places, shape).ravel())),
        shape=(count * rows, count * width),
    )
    equality = np.tile([row.equality for row in template.own_rows], count)
    core = FiniteLP(
        maximize=True,
        cost=batch.rewards.ravel(),
        column_lower=batch.lower.ravel() * stretched,
        column_upper=batch.upper.ravel() * stretched,
        matrix=block,
        row_lower=np.where(equality, limits.ravel(), -np.inf),
        row_upper=limits.ravel(),
    )
    model = HighsModel(core)
    known: list[int] = []

    def solve(wanted: BoolArray) -> LPSolution | None:
        new = np.setdiff1d(np.flatnonzero(wanted), known)
        if len(new):
            low = np.where(np.isfinite(floor[new]), -np.inf, budget[new])
            model.add_rows(np.arange(count * width), columns[:, new].T, low, budget[new])
            known.extend(new.tolist())
        found = model.solve()
        return None if found.x is None or found.row_duals is None else found

    def excess(found: LPSolution) -> FloatArray:
        assert found.x is not None
        return (found.x @ columns - budget) / scale

    start = np.full(resources, view == PROJECTED) | ~np.isfinite(floor)
    scale = np.maximum(np.abs(budget), np.median(np.abs(budget))) + 1e-300
    found = add_violated(solve(start), start, solve, excess, _peaks, _ROUNDS)
    if found is None or found.row_duals is None:
        return None
    dual = np.zeros(resources)
    dual[known] = found.row_duals[count * rows :]
    assert found.x is not None
    return SampleAnswer(np.maximum(dual, floor), _shares(batch, found.x, stretched))


def _peaks(excess: FloatArray) -> IntArray:
    """Rows that join in one round: peaks of the excess along the grid."""
    return peaks_of(excess, _TOLERANCE)[:_ROWS_PER_ROUND]


def solve_sample(
    columns: DenseColumns, budget: FloatArray, floor: FloatArray, dual: FloatArray, solver: str
) -> ColumnAnswer | None:
    """Maximize ``values @ x`` over ``x @ matrix <= budget`` (``==`` where the floor is -inf) and bounds.

    None where that has no solution. The answer depends on the data and the dual it starts from only, not on a solver's
    memory, so that a run that was stopped and resumed goes on exactly as if it never was.
    """
    if solver == HIGHS:
        return solve_all_columns(columns, budget, floor)[1]
    answer = solve_wide([columns], budget, floor, dual)
    return None if answer.dual is None else ColumnAnswer(answer.dual, answer.decisions(columns, 0))


def solve_exact_sample(
    columns: DenseColumns, budget: FloatArray, floor: FloatArray, dual: FloatArray, solver: str
) -> ColumnAnswer | None:
    """The answer of :func:`solve_sample` with a row for every grid point, by row generation."""
    points = columns.matrix
    rows = (dual != 0) | ~np.isfinite(floor)
    # Where use is negative the bound of a column may hold nothing; one point is as good a start as any.
    if not rows.any():
        rows[int(np.argmin(budget))] = True
    scale = np.maximum(np.abs(budget), np.median(np.abs(budget)))
    scale = np.where(scale > 0, scale, 1.0)

    def excess(answer: ColumnAnswer) -> FloatArray:
        return np.asarray((answer.x @ points - budget) / scale)

    def solve_anew(rows: BoolArray) -> ColumnAnswer | None:
        nonlocal dual
        some = replace(columns, matrix=np.ascontiguousarray(points[:, rows]))
        found = solve_sample(some, budget[rows], floor[rows], dual[rows], solver)
        if found is None:
            return None
        dual = np.zeros(len(budget))
        dual[rows] = found.dual
        return ColumnAnswer(dual, found.x)

    def solve_on(rows: BoolArray) -> ColumnAnswer | None:
        new = np.setdiff1d(np.flatnonzero(rows), known)
        if len(new):
            low = np.where(np.isfinite(floor[new]), -np.inf, budget[new])
            model.add_rows(np.arange(len(columns)), np.ascontiguousarray(points[:, new].T), low, budget[new])
            known.extend(new.tolist())
        found = model.solve()
        if found.x is None or found.row_duals is None:
            return None
        dual = np.zeros(len(budget))
        dual[known] = np.maximum(found.row_duals, floor[known])
        return ColumnAnswer(dual, found.x)

    if len(columns) > _WARM:
        return add_violated(solve_anew(rows), rows, solve_anew, excess, _peaks, _ROUNDS)
    model, known = column_model(columns, rows, budget, floor), np.flatnonzero(rows).tolist()
    return add_violated(solve_on(rows), rows, solve_on, excess, _peaks, _ROUNDS)
