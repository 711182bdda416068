"""Some vectors of an uncertainty set, each with recourse of its own, as one finite program.

Every rule has a free value at each vector. What a rule may see makes it a tree: at vectors that agree in the entries
that it sees it has one value. Any policy whatever gives a point of this program, so that its optimum is a bound of what
every policy can reach (Hadjiyiannis, Goulart and Kuhn, 2011).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.adjustable.problem import AdjustableProblem, AdjustableRows

# Entries of vectors that differ by less than this share of the set's width are the same to whoever sees them.
_AGREE = 1e-10


@dataclass(frozen=True, eq=False)
class ScenarioTree:
    """A program over vectors, and where its parts are.

    ``nodes`` has for each rule the column of its value, by the entries that it sees; ``row_points`` for each kind of
    rows the vectors at which it stands, in the order of the program's rows behind the ordinary ones.
    """

    lp: FiniteLP
    nodes: tuple[dict[bytes, int], ...]
    row_points: tuple[FloatArray, ...]

    def value(self, problem: AdjustableProblem, rule: int, vector: FloatArray, x: FloatArray) -> float:
        """What a rule decides at a vector of the tree, at a point of the program."""
        return float(x[self.nodes[rule][_key(vector[list(problem.rules[rule].seen)])]])


def _key(entries: FloatArray) -> bytes:
    return (entries + 0.0).tobytes()


def merged(points: FloatArray, width: FloatArray) -> FloatArray:
    """Vectors without repetition, whose entries are equal where they differ by rounding only."""
    result = points.copy() + 0.0
    for axis, step in enumerate(_AGREE * np.maximum(width, np.abs(points).max(axis=0, initial=0.0))):
        order = np.argsort(result[:, axis], kind="stable")
        values = result[order, axis]
        starts = np.concatenate([[True], np.diff(values) > step])
        result[order, axis] = values[starts][np.cumsum(starts) - 1]
    _, first = np.unique(result, axis=0, return_index=True)
    return result[np.sort(first)]


def tree_of(problem: AdjustableProblem, points: Mapping[int, FloatArray], *, anywhere: bool = False) -> ScenarioTree:
    """The program over vectors, given by their dimension; each row stands at those of its own set, or ``anywhere``."""
    core, count = problem.core, len(problem.here)
    nodes: tuple[dict[bytes, int], ...] = tuple({} for _ in problem.rules)
    bounds: list[tuple[float, float]] = []

    def column(rule: int, entries: FloatArray) -> int:
        known = nodes[rule]
        key = _key(entries)
        if key not in known:
            known[key] = count + len(bounds)
            bounds.append(problem.value_bounds(problem.rules[rule]))
        return known[key]

    parts: list[_Part] = []
    row_points = []
    for rows in problem.rows:
        given = points.get(rows.dimension, np.empty((0, rows.dimension)))
        kept = given if anywhere else rows.kept(given)
        row_points.append(kept)
        if len(kept):
            values = [
                np.array([column(use.rule, entries) for entries in _seen(problem, rows, place, kept)])
                for place, use in enumerate(rows.uses)
            ]
            parts.append(_part(problem, rows, kept, values))
    blocks = [part.triplets for part in parts]
    starts = np.cumsum([len(core.row_lower), *(len(part.lower) for part in parts)])
    ordinary = sparse.coo_array(core.matrix[:, problem.here])
    numbers = np.concatenate([ordinary.data, *(block[0] for block in blocks)])
    lines = np.concatenate([ordinary.coords[0], *(b[1] + start for b, start in zip(blocks, starts, strict=False))])
    places = np.concatenate([ordinary.coords[1], *(block[2] for block in blocks)])
    columns = count + len(bounds)
    own = np.array(bounds).reshape(-1, 2)
    lp = FiniteLP(
        maximize=core.maximize,
        cost=np.concatenate([core.cost[problem.here], np.zeros(len(bounds))]),
        offset=core.offset,
        column_lower=np.concatenate([core.column_lower[problem.here], own[:, 0]]),
        column_upper=np.concatenate([core.column_upper[problem.here], own[:, 1]]),
        integer=np.concatenate([core.integer[problem.here], np.zeros(len(bounds), dtype=bool)]),
        matrix=sparse.csr_array((numbers, (lines, places)), shape=(int(starts[-1]), columns)),
        row_lower=np.concatenate([core.row_lower, *(part.lower for part in parts)]),
        row_upper=np.concatenate([core.row_upper, *(part.upper for part in parts)]),
    )
    lp.matrix.eliminate_zeros()
    return ScenarioTree(lp, nodes, tuple(row_points))


def _seen(problem: AdjustableProblem, rows: AdjustableRows, place: int, points: FloatArray) -> FloatArray:
    """What a rule of a row sees of the row's vectors."""
    use = rows.uses[place]
    return np.ascontiguousarray(points[:, [use.start + k for k in problem.rules[use.rule].seen]])


@dataclass(frozen=True, eq=False)
class _Part:
    """The rows of one family: (numbers, rows, columns) of the program, and limits."""

    triplets: tuple[FloatArray, IntArray, IntArray]
    lower: FloatArray
    upper: FloatArray


def _part(problem: AdjustableProblem, rows: AdjustableRows, points: FloatArray, values: list[IntArray]) -> _Part:
    family = rows.family
    block = family.block(points)
    here = problem.place_of[block.columns]
    lines, places = np.nonzero(block.matrix[:, here >= 0])
    numbers = [block.matrix[:, here >= 0][lines, places]]
    at_rows, at_columns = [lines], [here[here >= 0][places]]
    for use, columns in zip(rows.uses, values, strict=True):
        level = int(np.searchsorted(block.columns, problem.rules[use.rule].level))
        numbers.append(block.matrix[:, level])
        at_rows.append(np.arange(len(points)))
        at_columns.append(columns)
    triplets = np.concatenate(numbers), np.concatenate(at_rows), np.concatenate(at_columns)
    return _Part(triplets, block.lower, block.upper)
