"""Bounds from multipliers: the linear program of all rows that touch the convex ones at one point, and its dual side.

For any masses on points of the index the Lagrange function is convex, and no feasible point is below its minimum. Where
its gradient vanishes at some z, the rows that touch at z, with those masses, are a dual solution of their linear
program. Multipliers of a quadratic program come near to that; z, masses and their points are moved together, as
little as can be, until the dual equations hold up to rounding. What is left is charged by the audit, like that of any
linear program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.audit import Audit, audit
from osilp_pyomo.offline.convex.sources import Cuts, Source
from osilp_pyomo.offline.problem import SemiInfiniteLP

# How often z and masses are moved, and up to which share of its terms a dual equation counts as met.
_MOVES, _MET = 6, 1e-15
# A variable this near to its bound, by its size, may have a reduced cost.
_AT_BOUND = 1e-7
# By what share masses may change in one move.
_MOST_CHANGED = 0.5
# Roundings in the gradient of a formula, per unit of the last place of its terms.
_ROUNDINGS = 16 * 2.0**-53


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Points and masses of each source, and duals (d objective / d right-hand side) of the ordinary linear rows.

    ``kept`` are rows of a source as they were found, for one with kinks: at a kink several rows touch, and which share
    of each it takes, no single point tells. None for a source whose rows are to touch at one point.
    """

    points: tuple[FloatArray, ...]
    masses: tuple[FloatArray, ...]
    ordinary: FloatArray
    kept: tuple[Cuts | None, ...]


class Problem(Protocol):
    """What a bound needs to know of a problem."""

    core: FiniteLP
    sources: tuple[Source, ...]

    def gradient(self, x: FloatArray) -> tuple[float, FloatArray]: ...

    def hessian(self, x: FloatArray, multipliers: Multipliers) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class SafeBound:
    """A bound of a minimum, what proves it, and the linear program that it is the dual side of."""

    value: float
    proved: bool
    multipliers: Multipliers
    sides: tuple[FloatArray, ...]
    at: FloatArray
    linear: SemiInfiniteLP
    duals: FloatArray
    checked: Audit


@dataclass(frozen=True, eq=False)
class _Touching:
    """Everything linearised at a point: objective, rows of the sources, and those of the core."""

    value: float
    gradient: FloatArray
    matrix: FloatArray
    right: FloatArray
    sides: tuple[FloatArray, ...]
    hessian: FloatArray

    def sizes(self, z: FloatArray) -> FloatArray:
        """What gradients are sums of, beyond their own size: they change with the last digits of z by that much."""
        result: FloatArray = np.abs(self.hessian) @ np.abs(z)
        return result


def _touching(problem: Problem, z: FloatArray, multipliers: Multipliers) -> _Touching | None:
    with np.errstate(all="ignore"):
        value, gradient = problem.gradient(z)
        cuts = [
            source.cuts(z, points) if kept is None else kept
            for source, points, kept in zip(problem.sources, multipliers.points, multipliers.kept, strict=True)
        ]
        hessian = problem.hessian(z, multipliers)
    matrix = np.concatenate([np.zeros((0, len(z))), *(each.matrix for each in cuts)])
    right = np.concatenate([np.zeros(0), *(each.right for each in cuts)])
    if not (np.isfinite(value) and np.all(np.isfinite(gradient)) and np.all(np.isfinite(matrix))):
        return None
    if not (np.all(np.isfinite(right)) and np.all(np.isfinite(hessian))):
        return None
    return _Touching(value, gradient, matrix, right, tuple(each.sides for each in cuts), hessian)


def safe_bound(problem: Problem, x: FloatArray, multipliers: Multipliers, turn: bool = False) -> SafeBound | None:
    """The bound that multipliers prove once z and they are moved so that the dual equations hold.

    With ``turn`` the points of the index may move as well.
    """
    core = problem.core
    size = 1 + np.abs(x)
    inside = (x - core.column_lower > _AT_BOUND * size) & (core.column_upper - x > _AT_BOUND * size)
    z, best, smallest = x, None, np.inf
    for _ in range(_MOVES):
        rows = _touching(problem, z, multipliers)
        if rows is None:
            break
        masses = np.concatenate([np.zeros(0), *multipliers.masses])
        missed = rows.gradient + rows.matrix.T @ masses - core.matrix.T @ multipliers.ordinary
        terms = np.abs(rows.gradient) + np.abs(rows.matrix).T @ masses + rows.sizes(z)
        terms += abs(core.matrix).T @ np.abs(multipliers.ordinary)
        share = float(np.max(np.abs(missed[inside]) / np.where(terms > 0, terms, 1.0)[inside], initial=0.0))
        if share < smallest:
            best, smallest = (z, multipliers, rows), share
        if share <= _MET or share > 10 * smallest:
            break
        moved = _balanced(problem, z, multipliers, rows, missed, inside, size, turn)
        if moved is None:
            break
        z, multipliers = moved
        z = np.clip(z, core.column_lower, core.column_upper)
    return None if best is None else _dual_side(problem, x, *best)


def _balanced(
    problem: Problem,
    z: FloatArray,
    multipliers: Multipliers,
    rows: _Touching,
    missed: FloatArray,
    inside: BoolArray,
    size: FloatArray,
    turn: bool,
) -> tuple[FloatArray, Multipliers] | None:
    """A point and multipliers moved by the smallest shares that close the dual equations to first order."""
    core = problem.core
    masses = np.concatenate([np.zeros(0), *multipliers.masses])
    kept = np.flatnonzero(inside)
    turned = [
        source.turned(z, points) if turn and rows_kept is None else np.zeros((len(points), 0, len(z)))
        for source, points, rows_kept in zip(problem.sources, multipliers.points, multipliers.kept, strict=True)
    ]
    by_points = [
        (each * own[:, None, None]).reshape(-1, len(z))[:, kept].T
        for each, own in zip(turned, multipliers.masses, strict=True)
    ]
    system = np.hstack(
        [
            rows.hessian[np.ix_(kept, kept)] * size[kept],
            rows.matrix[:, kept].T * masses,
            -(core.matrix.toarray().T[kept] * multipliers.ordinary),
            *by_points,
        ]
    )
    weight = np.abs(system).sum(axis=1)
    weight = np.where(weight > 0, weight, 1.0)
    if not np.all(np.isfinite(system)):
        return None
    change = np.linalg.lstsq(system / weight[:, None], -missed[kept] / weight, rcond=1e-14)[0]
    counts = [len(kept), len(masses), len(multipliers.ordinary), *(each.shape[0] * each.shape[1] for each in turned)]
    step, of_masses, of_rows, *of_points = np.split(change, np.cumsum(counts)[:-1])
    if np.abs(change[len(kept) :]).max(initial=0.0) > _MOST_CHANGED:
        return None
    z = z.copy()
    z[kept] += step * size[kept]
    masses = masses * (1 + of_masses)
    ends = np.cumsum([0, *(len(each) for each in multipliers.masses)])
    moved = tuple(
        points if not each.size else source.moved(points, each.reshape(len(points), -1))
        for source, points, each in zip(problem.sources, multipliers.points, of_points, strict=True)
    )
    return z, replace(
        multipliers,
        points=moved,
        masses=tuple(masses[first:last] for first, last in pairwise(ends)),
        ordinary=multipliers.ordinary * (1 + of_rows),
    )


def _dual_side(problem: Problem, x: FloatArray, z: FloatArray, multipliers: Multipliers, rows: _Touching) -> SafeBound:
    """What the multipliers prove, by the audit of the linear program of the rows that touch at z."""
    core = problem.core
    matrix: Any = sparse.csr_array(sparse.vstack([core.matrix, sparse.csr_array(rows.matrix)]))
    linear = FiniteLP(
        maximize=False,
        cost=rows.gradient,
        offset=rows.value - float(rows.gradient @ z),
        column_lower=core.column_lower,
        column_upper=core.column_upper,
        matrix=matrix,
        row_lower=np.concatenate([core.row_lower, np.full(len(rows.right), -np.inf)]),
        row_upper=np.concatenate([core.row_upper, rows.right]),
    )
    masses = np.concatenate([np.zeros(0), *multipliers.masses])
    duals = np.concatenate([multipliers.ordinary, -masses])
    whole = SemiInfiniteLP(linear, ())
    checked = audit(whole, x, (), (), duals, rows.sizes(z))
    # Values and slopes of formulas are themselves rounded; a slope counts between z and x.
    terms = np.abs(rows.gradient) + np.abs(rows.matrix).T @ masses + rows.sizes(z)
    lost = _ROUNDINGS * (abs(rows.value) + float(terms @ (np.abs(z) + np.abs(x - z))))
    checked = replace(checked, rounding=checked.rounding + lost)
    value = checked.dual_bound - (checked.doubt if np.isfinite(checked.doubt) else 0.0)
    return SafeBound(value, checked.proves_bound, multipliers, rows.sides, z, whole, duals, checked)
