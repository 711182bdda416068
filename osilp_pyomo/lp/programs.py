"""A finite program with cones and integers, solved by whoever can: HiGHS, Clarabel, or both in turn.

Without cones it is HiGHS'; with cones and no integers Clarabel's. With both, HiGHS solves the program with integers
over planes that touch the cones from outside, and Clarabel the one over the cones with those integers held: the first
gives bounds, the second points and the next planes (outer approximation; Duran and Grossmann, 1986). A second-order
cone of many dimensions is split into small ones, whose planes combine in exponentially many ways to planes of the
whole (Vielma, Dunning, Huchette and Lubin, 2017).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._options import AUTO, ENGINES
from osilp_pyomo.lp.conic import ConeProgram, ConeRows, ConeSolution, solve_cones
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.scaling import scaling_for

# Programs with integers that an outer approximation solves at most.
_ROUNDS = 200
# How exact the relaxation is of which no more than planes is taken: they are valid wherever they touch.
_RELAXED = 1e-7
# Bound and value that differ by less than this share of 1 + |value| are the same.
_CLOSED = 1e-7
# Planes that are added together: their coefficients are full arrays.
_TOGETHER = 256
# Linear programs of so many rows and columns, and at most this share of entries, are begun by an interior point method:
# measured, it takes a quarter to three quarters of the simplex's time there, and more than that where entries are many.
_MANY_ROWS, _SPARSE = 1_500, 0.01


@dataclass(frozen=True, eq=False)
class Ended:
    """How a program ended; arrays are None where there is no answer, duals also where there are integers.

    ``cone_duals`` are as in :class:`~osilp_pyomo.lp.conic.ConeSolution`. ``safe`` says that ``bound`` is one by itself:
    that of a linear or an integer program, as HiGHS gives it; ``missed`` is how far a cone program is from solved.
    """

    status: str
    objective: float = np.nan
    bound: float = np.nan
    x: FloatArray | None = None
    row_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None
    cone_duals: tuple[FloatArray, ...] = ()
    dropped: bool = False
    bound_is_loose: bool = False
    safe: bool = True
    missed: float = 0.0


class LastBasis:
    """Where the last linear program ended: another one of its size begins there, if it can."""

    def __init__(self) -> None:
        self.basis: Any = None


def solve_program(
    program: ConeProgram,
    time_limit: float | None = None,
    *,
    keep_tiny: bool = False,
    fix_integers: bool = False,
    solver: str = AUTO,
    last: LastBasis | None = None,
) -> Ended:
    """Solve a program; with ``fix_integers`` its duals are those of the program with the integers held.

    ``solver`` is how a linear program is solved: by its size, or as the user asked. It begins at the basis of the
    ``last``, if there is one, and leaves its own there.
    """
    if not program.cones:
        return _by_highs(program.lp, time_limit, keep_tiny, fix_integers, solver, last)
    if not program.lp.integer.any():
        return _ended(solve_cones(program, time_limit))
    ended = _OuterApproximation(program, time_limit).run()
    return ended if fix_integers else replace(ended, row_duals=None, reduced_costs=None, cone_duals=())


def _ended(found: ConeSolution) -> Ended:
    return Ended(
        found.status,
        found.objective,
        found.bound,
        found.x,
        found.row_duals,
        found.reduced_costs,
        found.cone_duals,
        safe=False,
        missed=found.missed,
    )


def _engine(lp: FiniteLP, solver: str) -> str:
    """Which of HiGHS' solvers begins: the interior point method where there are many rows with few entries."""
    if solver != AUTO:
        return solver if solver in ENGINES else ""
    rows, columns = lp.matrix.shape
    large = min(rows, columns) >= _MANY_ROWS and lp.matrix.nnz <= _SPARSE * rows * columns
    return "ipm" if large else ""


def _by_highs(
    lp: FiniteLP, time_limit: float | None, keep_tiny: bool, fix_integers: bool, solver: str, last: LastBasis | None
) -> Ended:
    model = HighsModel(lp, scaling_for(lp, []), keep_tiny=keep_tiny, engine=_engine(lp, solver))
    if last is not None:
        model.start_from(last.basis)
    if time_limit is not None:
        model.limit_time(max(1e-3, time_limit))
    solution = priced = model.solve()
    if last is not None:
        last.basis = model.start(np.arange(model.rows)) if solution.status == "optimal" else None
    x, objective = solution.x, solution.objective
    if solution.status == "optimal" and x is not None and lp.integer.any():
        # With the integers held, a simplex keeps rows more exactly than branch and bound does.
        integers = np.flatnonzero(lp.integer)
        priced = model.solve_with_fixed(integers, np.round(x[integers]))
        if priced.status == "optimal" and priced.x is not None:
            x, objective = priced.x, priced.objective
    kept = fix_integers or not lp.integer.any()
    return Ended(
        solution.status,
        objective,
        solution.bound,
        x,
        priced.row_duals if kept else None,
        priced.reduced_costs if kept else None,
        dropped=model.dropped,
        bound_is_loose=model.bound_is_loose,
    )


class _OuterApproximation:
    """Integers by HiGHS over planes, points by Clarabel with the integers held, until both agree."""

    def __init__(self, program: ConeProgram, time_limit: float | None) -> None:
        self.program = program
        self._until = np.inf if time_limit is None else time.monotonic() + time_limit
        self._sense = 1.0 if program.lp.maximize else -1.0
        self._parts: list[_SmallCones] = []
        extended = program.lp
        for rows in program.cones:
            self._parts.append(_SmallCones.of(rows, extended.columns))
            extended = self._parts[-1].added_to(extended)
        self.model = HighsModel(extended, scaling_for(extended, []))
        self.best = Ended("infeasible")
        self.bound = self._sense * np.inf

    def run(self) -> Ended:
        """Outer approximation, from the planes that the relaxation touches."""
        for parts in self._parts:
            parts.add_first_planes(self.model)
        relaxed = solve_cones(self._with_bounds(None), self._left(), _RELAXED)
        if relaxed.status == "infeasible":
            return Ended("infeasible")
        if relaxed.x is not None:
            self._touch(relaxed.x)
        for _ in range(_ROUNDS):
            if (left := self._left()) is not None:
                self.model.limit_time(max(1e-3, left))
            solution = self.model.solve()
            if solution.status == "infeasible" and self.best.x is not None:
                # Rounding of planes that all touch where the best point is.
                self.bound = self.best.objective
                break
            if solution.x is None:
                return self._stopped(solution.status)
            self.bound = self._sense * min(self._sense * self.bound, self._sense * solution.bound)
            if solution.status != "optimal":
                return self._stopped(solution.status)
            if self._closed():
                break
            x = solution.x[: self.program.lp.columns]
            before = self.model.rows
            found = solve_cones(self._with_bounds(x), self._left())
            if (found.x is not None and self._sense * found.objective > self._sense * self.best.objective) or (
                found.x is not None and self.best.x is None
            ):
                # An interior point leaves what is held a rounding away from where it is held.
                whole = np.where(self.program.lp.integer, np.round(found.x), found.x)
                self.best = replace(_ended(found), x=whole)
            if found.x is not None:
                self._touch(found.x)
            self._touch(x)
            if self._closed():
                break
            if self.model.rows == before:
                return self._stopped("undecided")
        else:
            return self._stopped("iteration_limit")
        return replace(self.best, status="optimal", bound=self.bound, safe=True)

    def _left(self) -> float | None:
        return None if np.isinf(self._until) else self._until - time.monotonic()

    def _closed(self) -> bool:
        if self.best.x is None:
            return False
        gap = self._sense * (self.bound - self.best.objective)
        return gap <= _CLOSED * (1 + abs(self.best.objective))

    def _stopped(self, status: str) -> Ended:
        """The best point so far, and the bound."""
        if self.best.x is None:
            return Ended(status, bound=self.bound)
        return replace(self.best, status=status, bound=self.bound, safe=True)

    def _with_bounds(self, x: FloatArray | None) -> ConeProgram:
        """The program without integers, or with the integers held at those of x."""
        lp = self.program.lp
        lower, upper = lp.column_lower.copy(), lp.column_upper.copy()
        if x is not None:
            lower[lp.integer] = upper[lp.integer] = np.round(x[lp.integer])
        free = np.zeros(lp.columns, dtype=bool)
        return replace(self.program, lp=replace(lp, column_lower=lower, column_upper=upper, integer=free))

    def _touch(self, x: FloatArray) -> None:
        for parts in self._parts:
            parts.add_planes(self.model, x)


@dataclass(frozen=True, eq=False)
class _SmallCones:
    """Second-order cones ``|v| <= s`` as ``sum w <= s`` with ``w s >= v^2``, each by planes ``2 a v - a^2 s <= w``.

    Both s and v are ``offset + matrix @ x``. ``part`` and ``whole`` are the rows of v and s of each small cone, without
    those whose v is always zero; ``columns`` are those of w.
    """

    rows: Any
    size: int
    offset: FloatArray
    part: IntArray
    whole: IntArray
    columns: IntArray

    @classmethod
    def of(cls, cones: ConeRows, first: int) -> _SmallCones:
        """The parts of some cones; their columns begin at ``first``."""
        rows = sparse.csr_array(cones.matrix)
        used = (np.diff(rows.indptr) > 0) | (cones.offset != 0)
        used[:: cones.size] = False
        part = np.flatnonzero(used)
        columns = np.arange(first, first + len(part))
        return cls(rows, cones.size, cones.offset, part, part // cones.size * cones.size, columns)

    def added_to(self, lp: FiniteLP) -> FiniteLP:
        """The program with columns w, and rows ``sum w <= s``, ``s >= 0``."""
        extra, total = len(self.part), lp.columns + len(self.part)
        first = np.arange(0, len(self.offset), self.size)
        places = (self.whole // self.size, self.columns)
        sums = sparse.csr_array((np.ones(extra), places), shape=(len(first), total))
        lengths, offset = _padded(self.rows[first], total), self.offset[first]
        none = np.full(len(first), np.inf)
        return replace(
            lp,
            cost=np.concatenate([lp.cost, np.zeros(extra)]),
            column_lower=np.concatenate([lp.column_lower, np.zeros(extra)]),
            column_upper=np.concatenate([lp.column_upper, np.full(extra, np.inf)]),
            integer=np.concatenate([lp.integer, np.zeros(extra, dtype=bool)]),
            matrix=sparse.csr_array(sparse.vstack([_padded(lp.matrix, total), sums - lengths, lengths])),
            row_lower=np.concatenate([lp.row_lower, -none, -offset]),
            row_upper=np.concatenate([lp.row_upper, offset, none]),
        )

    def add_first_planes(self, model: HighsModel) -> None:
        """Planes at the steepest slopes, of both signs."""
        for slope in (1.0, -1.0):
            self._add(model, np.full(len(self.part), slope))

    def add_planes(self, model: HighsModel, x: FloatArray) -> None:
        """The planes that touch the small cones at x."""
        values = self.offset + self.rows @ x
        lengths = np.linalg.norm(values.reshape(-1, self.size)[:, 1:], axis=1)
        # Where x lies outside of a cone, at the point of its border next to it.
        s = np.maximum(values[self.whole], lengths[self.whole // self.size])
        self._add(model, np.divide(values[self.part], s, out=np.zeros(len(s)), where=s > 0))

    def _add(self, model: HighsModel, slopes: FloatArray) -> None:
        """Planes ``2 a v - a^2 s - w <= 0`` at one slope for each small cone, a few hundred at a time."""
        for start in range(0, len(slopes), _TOGETHER):
            at = slice(start, start + _TOGETHER)
            a, part, whole, columns = slopes[at], self.part[at], self.whole[at], self.columns[at]
            planes = sparse.csr_array(
                sparse.diags_array(2 * a) @ self.rows[part] - sparse.diags_array(a**2) @ self.rows[whole]
            )
            used = np.unique(planes.indices).astype(np.int64)
            matrix = np.column_stack([planes[:, used].toarray(), -np.eye(len(a))])
            upper = a**2 * self.offset[whole] - 2 * a * self.offset[part]
            model.add_rows(np.concatenate([used, columns]), matrix, np.full(len(a), -np.inf), upper)


def _padded(matrix: Any, columns: int) -> Any:
    """A matrix with columns of zeros behind its own."""
    rows, own = matrix.shape
    return sparse.csr_array(sparse.hstack([matrix, sparse.csr_array((rows, columns - own))]))
