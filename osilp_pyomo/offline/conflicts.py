"""Conflicts: rows and bounds that no values satisfy together, where a problem is infeasible.

By Farkas' lemma an infeasible system of linear inequalities has a combination that contradicts itself: weights >= 0
with which the sum of the rows asks for more than the bounds allow. The weights are the prices of the LP that relaxes
all rows by one number, as little as possible, each in the size of its coefficients. Those of a basic solution belong
to a system of which nothing can be left out (Gleeson and Ryan, 1990), which is what one wants to read. The
contradiction is checked in plain sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.lp.finite import FiniteLP, RowBlock, balanced
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.scaling import Scaling

# Weights below this share of the largest are rounding.
_ROUNDING = 1e-9
# A column of the sum is zero up to this share of its terms: some roundings. What is left of it must not matter for
# values up to so many of a variable without a bound.
_CANCELLED, VALUES = 4 * 2.0**-53, 1e10
# How often weights are balanced.
_BALANCINGS = 3
# Why a problem that is called infeasible has no conflict.
_WHOLE = "no conflict but that of whole numbers is known: with fractions no contradiction of rows was found"
_NO_PROOF = (
    "no contradiction of finitely many rows was found, so that HiGHS' word is all there is; look for rows that "
    "conflict only in the limit, and for coefficients of very different size"
)
_ROUNDED = (
    "its rows contradict each other in their last digits only, so that rounding may be all there is to it; write them "
    "without large numbers that cancel"
)
# Coefficients of an LP that is solved for nothing but an explanation.
MOST_COEFFICIENTS = 2_000_000


@dataclass(frozen=True)
class Clause:
    """One of the things that conflict.

    ``kind`` is "row" (a semi-infinite one, ``place`` where), "test function" (``place`` which), "constraint" or
    "bound"; ``side`` is "at most" or "at least"; ``weight`` is what it is multiplied with in the contradiction.
    """

    kind: str
    name: str
    place: Any
    side: str
    limit: float
    weight: float


@dataclass(frozen=True)
class Conflict:
    """What cannot hold together; where that is not known, ``why_none`` says why.

    ``rounded`` says that rounding may be all that makes rows contradict each other.
    """

    clauses: tuple[Clause, ...] = ()
    why_none: str = ""
    rounded: bool = False

    @classmethod
    def too_large(cls, count: int) -> Conflict:
        """Not looked for in so many coefficients."""
        most = f"{MOST_COEFFICIENTS:,} are the most"
        return cls(why_none=f"what conflicts was not looked for among {count:,} coefficients; {most}")


NO_CONFLICT = Conflict()


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with what an explanation calls them: a kind for all, a name and a place for each.

    ``sizes`` is what the user's rows were divided by. ``lost`` tells of some rows, by their places here, how far each
    may be from its numbers by rounding, given whether its upper limit counts and how large each variable may be; None
    where the numbers are those of the model itself.
    """

    kind: str
    names: Sequence[str]
    places: Sequence[Any]
    rows: RowBlock
    sizes: FloatArray
    lost: Callable[[IntArray, BoolArray, FloatArray], FloatArray] | None = None


def crossed_bounds(core: FiniteLP) -> Conflict | None:
    """The bounds of a variable that contradict each other, if any do."""
    crossed = np.flatnonzero(core.column_lower > core.column_upper)
    return Conflict(_bound_clauses(core, crossed[[0, 0]], np.array([-1.0, 1.0]))) if len(crossed) else None


def find_conflict(
    core: FiniteLP, families: Sequence[LabelledRows], scaling: Scaling, time_limit: float | None = None
) -> Conflict:
    """What conflicts among ordinary rows, bounds, and rows of families, integers taken as fractions.

    Nothing is found where fractions satisfy all, where infinitely many rows are needed for a contradiction, where the
    LP is very large, or when time runs out.
    """
    if (crossed := crossed_bounds(core)) is not None:
        return crossed
    columns = core.columns
    system = _System(
        sparse.csr_array(sparse.vstack([core.matrix, *(_spread(part.rows, columns) for part in families)])),
        np.concatenate([core.row_lower, *(part.rows.lower for part in families)]),
        np.concatenate([core.row_upper, *(part.rows.upper for part in families)]),
    )
    if system.matrix.nnz > MOST_COEFFICIENTS:
        return Conflict.too_large(system.matrix.nnz)
    status, weights = _weights(core, system, scaling, time_limit)
    if status != "optimal":
        return Conflict(why_none=f"what conflicts is not known: the LP that tells ended with status '{status}'")
    contradicted = None
    if weights is not None:
        for _ in range(_BALANCINGS):
            weights = _balanced_weights(core, system, weights)
        contradicted = _contradiction(core, system, weights)
    if weights is None or contradicted is None:
        return Conflict(why_none=_WHOLE if core.integer.any() else _NO_PROOF)
    bounds, excess = contradicted
    if not excess > _lost_by_rounding(core, families, weights):
        return Conflict(why_none=_ROUNDED, rounded=True)
    used = np.flatnonzero(bounds)
    clauses = (*_row_clauses(core, families, system, weights), *_bound_clauses(core, used, bounds[used]))
    # A contradiction stays one when it is multiplied; weights that sum to 1 do not tell how the LP was scaled.
    total = sum(clause.weight for clause in clauses)
    return Conflict(tuple(replace(clause, weight=clause.weight / total) for clause in clauses))


@dataclass(frozen=True, eq=False)
class _System:
    """All rows: ``lower <= matrix @ x <= upper``."""

    matrix: Any  # scipy.sparse.csr_array
    lower: FloatArray
    upper: FloatArray


def _weights(
    core: FiniteLP, system: _System, scaling: Scaling, time_limit: float | None
) -> tuple[str, FloatArray | None]:
    """How the LP ended, and a weight for each row, positive for its upper and negative for its lower limit.

    There are none where all rows can be satisfied.
    """
    scaled = abs(scaling.matrix(system.matrix))
    size = scaled.max(axis=1).toarray().ravel() if scaled.nnz else np.zeros(len(system.lower))
    # A row without variables has no coefficient to be measured by.
    size = np.where(size > 0, size, 1.0)
    above, below = np.flatnonzero(np.isfinite(system.upper)), np.flatnonzero(np.isfinite(system.lower))
    sides = sparse.vstack([system.matrix[above], -system.matrix[below]])
    limits = np.concatenate([system.upper[above], -system.lower[below]])
    relaxed = sparse.csr_array(sparse.hstack([sides, -size[np.concatenate([above, below])][:, None]]))
    columns = core.columns
    lp = FiniteLP(
        maximize=False,
        cost=np.append(np.zeros(columns), 1.0),
        column_lower=np.append(core.column_lower, 0.0),
        column_upper=np.append(core.column_upper, np.inf),
        matrix=relaxed,
        row_lower=np.full(len(limits), -np.inf),
        row_upper=limits,
    )
    model = HighsModel(lp, scaling.with_column(), keep_tiny=True)
    if time_limit is not None:
        model.limit_time(time_limit)
    solution = model.solve()
    if solution.status != "optimal" or solution.row_duals is None:
        return solution.status, None
    duals = np.maximum(-solution.row_duals, 0.0)
    weights = np.zeros(len(size))
    np.add.at(weights, above, duals[: len(above)])
    np.subtract.at(weights, below, duals[len(above) :])
    shares = np.abs(weights) * size
    weights[shares <= _ROUNDING * shares.max(initial=0.0)] = 0.0
    return "optimal", weights if weights.any() else None


def _sum_of_rows(system: _System, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The weighted sum of all rows by column, in more digits where the machine has them, and that of absolute terms."""
    entries = system.matrix.tocoo()
    products = weights.astype(np.longdouble)[entries.row] * entries.data
    total, terms = (np.zeros(entries.shape[1], dtype=np.longdouble) for _ in range(2))
    np.add.at(total, entries.col, products)
    np.add.at(terms, entries.col, np.abs(products))
    return total.astype(float), terms.astype(float)


def _balanced_weights(core: FiniteLP, system: _System, weights: FloatArray) -> FloatArray:
    """The same weights, but for what the solver missed: columns without a bound must cancel."""
    total, terms = _sum_of_rows(system, weights)
    least = np.where(total > 0, core.column_lower, core.column_upper)
    columns = np.flatnonzero(~np.isfinite(least) & (np.abs(total) > 0) & (np.abs(total) <= _ROUNDING * terms))
    used = np.flatnonzero(weights)
    result = weights.copy()
    result[used] = balanced(system.matrix[used][:, columns].toarray().T, weights[used], total[columns])
    return result


def _contradiction(core: FiniteLP, system: _System, weights: FloatArray) -> tuple[FloatArray, float] | None:
    """Check that no x within the bounds satisfies the weighted sum of the rows; the weights of the bounds it takes.

    They are positive for upper and negative for lower bounds, and with them the sum of all columns is zero. The number
    is by how much the sum asks for more than there is.
    """
    total, terms = _sum_of_rows(system, weights)
    least = np.where(total > 0, core.column_lower, core.column_upper)
    # A column of the sum is worth its bound; where there is none, it must be zero but for rounding.
    rounded = ~np.isfinite(least) & (np.abs(total) <= _CANCELLED * terms)
    left = float(np.abs(total[rounded]).sum()) * VALUES
    total[rounded] = 0.0
    used = np.flatnonzero(weights)
    limits = weights[used] * np.where(weights[used] > 0, system.upper[used], system.lower[used])
    columns = np.flatnonzero(total)
    # The least that the sum can be is at these bounds.
    bounds = total[columns] * np.where(total[columns] > 0, core.column_lower[columns], core.column_upper[columns])
    if not np.all(np.isfinite(bounds)):
        return None
    sides = np.concatenate([bounds, -limits])
    excess = float(sides.sum() - _ROUNDING * np.abs(sides).sum() - left)
    if not excess > 0:
        return None
    # What rounding leaves of a column is counted, and is not worth telling.
    return np.where(np.abs(total) <= _ROUNDING * terms, 0.0, -total), excess


def _lost_by_rounding(core: FiniteLP, families: Sequence[LabelledRows], weights: FloatArray) -> float:
    """How far the weighted sum of the rows may be from what their numbers say, for any values within the bounds."""
    reach = np.maximum(np.abs(core.column_lower), np.abs(core.column_upper))
    total, first = 0.0, len(core.row_lower)
    for part in families:
        own = weights[first : first + len(part.rows)]
        first += len(part.rows)
        used = np.flatnonzero(own)
        if part.lost is not None and len(used):
            total += float(np.abs(own[used]) @ part.lost(used, own[used] > 0, reach))
    return total


def _row_clauses(
    core: FiniteLP, families: Sequence[LabelledRows], system: _System, weights: FloatArray
) -> list[Clause]:
    ordinary = len(core.row_lower)
    kinds = ["constraint"] * ordinary + [part.kind for part in families for _ in part.names]
    names = [*core.row_names, *(name for part in families for name in part.names)]
    places = [None] * ordinary + [place for part in families for place in part.places]
    sizes = np.concatenate([np.ones(ordinary), *(part.sizes for part in families)])
    clauses = []
    for row in np.flatnonzero(weights):
        upper = weights[row] > 0
        limit = (system.upper if upper else system.lower)[row] * sizes[row]
        clauses.append(_clause(kinds[row], names[row], places[row], upper, limit, weights[row] / sizes[row]))
    return clauses


def _bound_clauses(core: FiniteLP, columns: IntArray, weights: FloatArray) -> tuple[Clause, ...]:
    clauses = []
    for column, weight in zip(columns.tolist(), weights.tolist(), strict=True):
        limit = (core.column_upper if weight > 0 else core.column_lower)[column]
        clauses.append(_clause("bound", core.column_names[column], None, weight > 0, limit, weight))
    return tuple(clauses)


def _clause(kind: str, name: str, place: Any, upper: bool, limit: float, weight: float) -> Clause:
    return Clause(kind, name, place, "at most" if upper else "at least", float(limit), abs(float(weight)))


def _spread(block: RowBlock, columns: int) -> Any:
    """A block's rows over all columns."""
    rows, places = np.nonzero(block.matrix)
    return sparse.csr_array((block.matrix[rows, places], (rows, block.columns[places])), shape=(len(block), columns))
