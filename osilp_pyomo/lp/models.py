"""A wide LP with the interface of a HiGHS model: rows come and go, its columns stay too many for a simplex.

Exchange adds rows by violation; this model chooses columns by price (``lp/wide.py``). It holds the coefficients of the
rows that are in it, a few dozen, but no LP of all columns; only where hundreds of rows are needed, HiGHS takes over.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._options import AUTO, DUAL, ENGINES
from osilp_pyomo.errors import OptionError
from osilp_pyomo.lp.columns import DenseColumns
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel, LPSolution
from osilp_pyomo.lp.scaling import Scaling
from osilp_pyomo.lp.wide import solve_wide

# HiGHS alone is as fast below so many columns (more where it can go on from its last basis), and with more rows.
_FEWEST_COLUMNS, _FEWEST_WARM, _MOST_ROWS = 5_000, 50_000, 300


def lp_model(
    lp: FiniteLP, scaling: Scaling, solver: str = AUTO, *, often: bool = False, keep_tiny: bool = False
) -> HighsModel | WideModel:
    """A model of an LP to which rows will be added: wide where that is possible, and faster or asked for.

    ``often`` says that it will be solved again and again, with a few rows more each time.
    """
    objection = _objection(lp)
    if solver == DUAL and objection is not None:
        raise OptionError(f"solver='dual' is for many bounded, continuous columns in few rows: {objection}.")
    fewest = _FEWEST_WARM if often else _FEWEST_COLUMNS
    wide = solver == DUAL or (solver == AUTO and lp.columns >= fewest and objection is None)
    if wide:
        return WideModel(lp, scaling, solver, keep_tiny=keep_tiny)
    return HighsModel(lp, scaling, keep_tiny=keep_tiny, engine=solver if solver in ENGINES else "")


def _objection(lp: FiniteLP) -> str | None:
    if lp.integer.any():
        return f"{lp.column_names[int(np.argmax(lp.integer))]} is a whole number"
    bounded = np.isfinite(lp.column_lower) & np.isfinite(lp.column_upper)
    if not bounded.all():
        return f"{lp.column_names[int(np.argmin(bounded))]} has no bound on one side"
    if len(lp.row_lower) > _MOST_ROWS:
        return f"there are {len(lp.row_lower)} ordinary rows"
    return None


class WideModel:
    """Few rows over very many bounded columns; takes and gives what a :class:`HighsModel` does."""

    restarts = 0
    strained = False

    def __init__(self, lp: FiniteLP, scaling: Scaling, solver: str = AUTO, *, keep_tiny: bool = False) -> None:
        self._lp, self._scaling, self._solver, self._keep_tiny = lp, scaling, solver, keep_tiny
        rows = len(lp.row_lower)
        # One column of numbers per row, so that a column of the LP is a row of numbers; space for rows to come.
        self._matrix = np.empty((lp.columns, rows + 16))
        self._matrix[:, :rows] = lp.matrix.toarray().T
        self._lower, self._upper = lp.row_lower, lp.row_upper
        self._dual: FloatArray = np.zeros(rows)
        self._deadline = np.inf
        self._whole: HighsModel | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self._lower)

    def limit_time(self, seconds: float) -> None:
        """Let the next solve take at most so long."""
        self._deadline = time.monotonic() + seconds
        if self._whole is not None:
            self._whole.limit_time(seconds)

    def add_rows(self, columns: IntArray, matrix: FloatArray, lower: FloatArray, upper: FloatArray) -> IntArray:
        """Append rows with coefficients ``matrix`` over ``columns``; return their numbers."""
        first, last = self.rows, self.rows + len(matrix)
        if last > self._matrix.shape[1]:
            grown = np.empty((self._lp.columns, last + last // 2))
            grown[:, :first] = self._matrix[:, :first]
            self._matrix = grown
        if len(columns) < self._lp.columns:
            self._matrix[:, first:last] = 0.0
        self._matrix[columns, first:last] = matrix.T
        self._lower, self._upper = np.concatenate([self._lower, lower]), np.concatenate([self._upper, upper])
        self._dual = np.concatenate([self._dual, np.zeros(len(matrix))])
        if self._whole is not None:
            self._whole.add_rows(columns, matrix, lower, upper)
        return np.arange(first, last)

    @property
    def bound_is_loose(self) -> bool:
        """Whether branch and bound may have left out what matters to its bound: there is none here."""
        return False

    @property
    def dropped(self) -> bool:
        """Whether HiGHS left a coefficient out, where it has all columns; the dual leaves none out."""
        return self._whole is not None and self._whole.dropped

    def start(self, kept: IntArray) -> Any:
        """The prices of the last solve, for :meth:`start_from` of a model that has these rows of it."""
        return self._dual[kept]

    def start_from(self, start: Any) -> None:
        """Begin the next solve at the prices of another model with as many rows."""
        if isinstance(start, np.ndarray) and len(start) == self.rows:
            self._dual = start.copy()

    def delete_rows(self, numbers: IntArray) -> None:
        """Take rows away; those behind them move up."""
        kept = np.setdiff1d(np.arange(self.rows), numbers)
        self._matrix[:, : len(kept)] = self._matrix[:, kept]
        self._lower, self._upper, self._dual = self._lower[kept], self._upper[kept], self._dual[kept]
        if self._whole is not None:
            self._whole.delete_rows(numbers)

    def solve(self) -> LPSolution:
        """Solve from the prices of the last time."""
        if self._whole is None and self._solver == AUTO and self.rows > _MOST_ROWS:
            # Very many rows are work for a simplex.
            self._whole = HighsModel(self._lp, self._scaling, keep_tiny=self._keep_tiny)
            own = slice(len(self._lp.row_lower), self.rows)
            everywhere = np.arange(self._lp.columns)
            self._whole.add_rows(everywhere, self._matrix[:, own].T, self._lower[own], self._upper[own])
            self._whole.limit_time(self._deadline - time.monotonic())
        if self._whole is not None:
            return self._whole.solve()
        sense = 1.0 if self._lp.maximize else -1.0
        rows, signs, budget, floor = self._sides()
        # Rows with one upper limit each, as they mostly are, need no copy.
        plain = bool(np.all(signs > 0)) and np.array_equal(rows, np.arange(self.rows))
        matrix = self._matrix[:, : self.rows] if plain else self._matrix[:, rows] * signs
        columns = DenseColumns(sense * self._lp.cost, matrix, self._lp.column_lower, self._lp.column_upper)
        start = np.maximum(signs * sense * self._dual[rows], floor) if self._dual.any() else None
        answer = solve_wide([columns], budget, floor, start, deadline=self._deadline)
        if answer.dual is None:
            return LPSolution(answer.status, np.nan, np.nan)
        self._dual = sense * np.bincount(rows, signs * answer.dual, minlength=self.rows).astype(float)
        x = answer.decisions(columns, 0)
        objective = self._lp.value(x)
        reduced = self._lp.cost - matrix @ (sense * answer.dual)
        return LPSolution(answer.status, objective, objective, x, self._dual.copy(), reduced)

    def _sides(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Rows as "use at most this": which row and sign each side has, its budget, and the least price it can have."""
        equality = self._lower == self._upper
        above = np.flatnonzero(np.isfinite(self._upper))
        below = np.flatnonzero(np.isfinite(self._lower) & ~equality)
        rows = np.concatenate([above, below])
        signs = np.concatenate([np.ones(len(above)), -np.ones(len(below))])
        budget = np.concatenate([self._upper[above], -self._lower[below]])
        floor = np.concatenate([np.where(equality[above], -np.inf, 0.0), np.zeros(len(below))])
        return rows, signs, budget, floor
