"""A finite LP or MILP solved by HiGHS; the only file that knows highspy.

One :class:`HighsModel` lives through a whole exchange: rows are added and dropped, and the dual
simplex goes on from the basis it had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import MissingPackageError, OptionError, SolverError
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.scaling import Scaling

# HiGHS' smallest feasibility tolerance. Exchange needs it: a row is called violated at 1e-9 of its
# scale, which the default 1e-7 could leave in the LP's own answer.
FEASIBILITY_TOLERANCE = 1e-10

# Seconds that a solve after numerical trouble may take: HiGHS was seen to go on for ever there.
_LONGEST_RESTART = 20.0

# Options of HiGHS that its users may not change, and what to do instead.
_OURS = {
    "time_limit": "give time_limit= to solve",
    "solver": "give solver= to solve",
    "output_flag": "give tee=True to solve",
    "log_to_console": "give tee=True to solve",
} | dict.fromkeys(
    (
        "primal_feasibility_tolerance", "dual_feasibility_tolerance", "mip_feasibility_tolerance", "kkt_tolerance",
        "small_matrix_value", "large_matrix_value", "simplex_iteration_limit", "ipm_iteration_limit", "run_crossover",
        "objective_bound", "objective_target", "solve_relaxation", "user_objective_scale", "user_bound_scale",
    ),
    "what is claimed of an answer leans on it",
)  # fmt: skip
# What a user asked of HiGHS; it holds for all its models in a solve.
_asked: ContextVar[Mapping[str, Any]] = ContextVar("asked", default={})  # noqa: B039 - read only

_STATUS = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kUnbounded: "unbounded",
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "infeasible_or_unbounded",
    highspy.HighsModelStatus.kTimeLimit: "time_limit",
    highspy.HighsModelStatus.kIterationLimit: "iteration_limit",
    highspy.HighsModelStatus.kModelEmpty: "optimal",
}


@contextmanager
def asked_of_highs(options: Mapping[str, Any] | None, what: str) -> Iterator[None]:
    """Let options of HiGHS, by its own names, hold for all its models; unknown ones are refused."""
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(
            f"{what}: solver_options must be a dict of HiGHS' options, such as {{'threads': 2}} (got "
            f"{type(options).__name__})."
        )
    trial = highspy.Highs()
    trial.setOptionValue("output_flag", False)
    for name, value in (options or {}).items():
        if name in _OURS:
            raise OptionError(f"{what}: HiGHS' option {name!r} is set by this package: {_OURS[name]}.")
        status, before = trial.getOptionValue(name) if isinstance(name, str) else (highspy.HighsStatus.kError, None)
        if status == highspy.HighsStatus.kError:
            raise OptionError(f"{what}: HiGHS has no option {name!r}; its documentation lists them.")
        try:
            refused = trial.setOptionValue(name, value) == highspy.HighsStatus.kError
        except TypeError:
            refused = True
        if refused:
            raise OptionError(f"{what}: HiGHS does not take {value!r} for its option {name!r} (default {before!r}).")
    token = _asked.set(dict(options or {}))
    # HiGHS keeps the workers that it began with in a thread, and refuses to solve with any other number of them.
    counted = bool(_asked.get().get("threads"))
    if counted:
        highspy.Highs.resetGlobalScheduler(True)
    try:
        yield
    finally:
        _asked.reset(token)
        if counted:
            highspy.Highs.resetGlobalScheduler(True)


@dataclass(frozen=True, eq=False)
class LPSolution:
    """What HiGHS found.

    Row duals and reduced costs are d objective / d right-hand side and d objective / d bound, for
    minimization and maximization alike. ``bound`` is the objective for an LP, the proved bound for
    a model with integers, which has no duals. Arrays are None where there is no solution.
    """

    status: str
    objective: float
    bound: float
    x: FloatArray | None = None
    row_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None


# Coefficients below the second share of their row are lost by programs with integers; below the first share of the
# user's row they are rounding.
_TINY_BESIDE_INTEGERS = (1e-15, 1e-9)


class HighsModel:
    """A warm HiGHS model that starts as a :class:`FiniteLP` and can grow and lose rows.

    ``engine`` is another of HiGHS' solvers that its first solve begins with ("ipm", "hipo", "pdlp"); the simplex goes
    on from the basis that this ends in, so that answers are vertices, as exact as ever.
    """

    def __init__(
        self, lp: FiniteLP, scaling: Scaling | None = None, *, keep_tiny: bool = False, engine: str = ""
    ) -> None:
        self._lp = lp
        self._integer = lp.integer.copy()
        self._scaling = Scaling.none(lp) if scaling is None else scaling
        self._sizes = np.empty(0)  # what each row was divided by
        self.restarts = 0  # solves that met numerical trouble and were restarted in another way
        self.dropped = False  # whether a coefficient was so small beside others of its row that HiGHS left it out
        self.bound_is_loose = False  # whether branch and bound may have left out what matters to its bound
        self._gave_up = False  # whether a restart took too long
        self.strained = False  # whether the last answer leans on the box of hold_columns
        self._box: tuple[FloatArray, FloatArray] | None = None
        self._smallest = 1e-12 if keep_tiny else 1e-9
        self._highs = highspy.Highs()
        self._set("output_flag", False)
        self._set("primal_feasibility_tolerance", FEASIBILITY_TOLERANCE)
        self._set("dual_feasibility_tolerance", FEASIBILITY_TOLERANCE)
        # By default coefficients below 1e-9 are dropped, and what only they bound, or allow, is lost: rows far out on
        # an unbounded index have such. Mostly they are rounding, and keeping them makes trouble.
        self._set("small_matrix_value", self._smallest)
        # The default relative gap of 1e-4 would let exchange stop on a wrong integer answer.
        self._set("mip_rel_gap", 1e-9)
        self._set("mip_abs_gap", 1e-9)
        self._set("mip_feasibility_tolerance", 1e-9)
        for name, value in _asked.get().items():
            self._set(name, value)
        self._engine = engine
        self._pass(lp)

    def _set(self, name: str, value: Any) -> None:
        if self._highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS does not know the option {name!r} with the value {value!r}.")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self._sizes)

    def _pass(self, lp: FiniteLP) -> None:
        units = self._scaling.units
        matrix = self._scaling.matrix(lp.matrix)
        columns, cost_row = self._scaling.rows(np.arange(lp.columns), lp.cost[None])
        cost = np.empty(lp.columns)
        cost[columns] = cost_row[0] / self._scaling.cost
        largest = abs(matrix).max(axis=1).toarray().ravel() if matrix.nnz else np.zeros(matrix.shape[0])
        self._sizes = _sizes(largest, lp.row_lower, lp.row_upper)
        matrix.data /= np.repeat(self._sizes, np.diff(matrix.indptr))
        self._note_dropped(matrix.data, self._shares(lp.matrix.data, np.diff(lp.matrix.indptr)))
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = lp.columns, len(lp.row_lower)
        model.sense_ = highspy.ObjSense.kMaximize if lp.maximize else highspy.ObjSense.kMinimize
        model.col_cost_, model.offset_ = cost, 0.0
        model.col_lower_, model.col_upper_ = lp.column_lower / units, lp.column_upper / units
        model.row_lower_, model.row_upper_ = lp.row_lower / self._sizes, lp.row_upper / self._sizes
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = matrix.indptr
        model.a_matrix_.index_ = matrix.indices
        model.a_matrix_.value_ = matrix.data
        if lp.integer.any():
            model.integrality_ = [
                highspy.HighsVarType.kInteger if flag else highspy.HighsVarType.kContinuous for flag in lp.integer
            ]
        if self._highs.passModel(model) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refused the model; look for bounds or coefficients that are nan or beyond 1e15.")

    def add_rows(self, columns: IntArray, matrix: FloatArray, lower: FloatArray, upper: FloatArray) -> IntArray:
        """Append rows with coefficients ``matrix`` over ``columns``; return their numbers."""
        columns, scaled = self._scaling.rows(columns, matrix)
        sizes = _sizes(np.abs(scaled).max(axis=1, initial=0.0), lower, upper)
        scaled = scaled / sizes[:, None]
        kept = scaled != 0
        shares = None
        if self._integer.any() and self._scaling.mixed is None:
            shares = (np.abs(matrix) / np.maximum(np.abs(matrix).max(axis=1, initial=0.0), 1e-300)[:, None])[kept]
        if scaled.shape[1] and kept.all():
            values = scaled.ravel()
            starts = np.arange(0, scaled.size, scaled.shape[1], dtype=np.int32)
            indices = np.tile(columns.astype(np.int32), len(scaled))
        else:
            values = scaled[kept]
            starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))[:-1]]).astype(np.int32)
            indices = np.broadcast_to(columns.astype(np.int32), scaled.shape)[kept]
        self._note_dropped(values, shares)
        status = self._highs.addRows(len(matrix), lower / sizes, upper / sizes, len(indices), starts, indices, values)
        if status == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refused new rows; look for coefficients that are nan or beyond 1e15.")
        numbers = np.arange(self.rows, self.rows + len(matrix))
        self._sizes = np.concatenate([self._sizes, sizes])
        return numbers

    def _shares(self, coefficients: FloatArray, counts: IntArray) -> FloatArray | None:
        """Coefficients of rows, one row after the other, as shares of the largest of their row in the user's units."""
        if self._scaling.mixed is not None or not len(coefficients):
            return None
        row = np.repeat(np.arange(len(counts)), counts)
        largest = np.zeros(len(counts))
        np.maximum.at(largest, row, np.abs(coefficients))
        return np.abs(coefficients) / np.maximum(largest[row], 1e-300)

    def _note_dropped(self, coefficients: FloatArray, shares: FloatArray | None) -> None:
        """Note which coefficients HiGHS leaves out; ``shares`` are those of the user's rows, where they are known."""
        size = np.abs(coefficients)
        self.dropped |= bool(np.any((size > 0) & (size <= self._smallest)))
        if self._integer.any():
            # Branch and bound, and its presolve, drop what is tiny whatever they are told.
            least, most = _TINY_BESIDE_INTEGERS
            real = size > 0 if shares is None or len(shares) != len(size) else shares > least
            self.bound_is_loose |= bool(np.any(real & (size > 0) & (size <= most)))

    def change_costs(self, cost: FloatArray) -> None:
        """Other costs for all columns; the basis stays feasible, so that the next solve goes on from it."""
        self._lp = replace(self._lp, cost=cost)
        columns, cost_row = self._scaling.rows(np.arange(len(cost)), cost[None])
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), cost_row[0] / self._scaling.cost)

    def start(self, kept: IntArray) -> Any:
        """Where the last solve ended, for :meth:`start_from` of a model that has these rows of it; None if unknown."""
        basis = self._highs.getBasis()
        if not basis.valid or self._integer.any() or self._scaling.mixed is not None:
            return None
        states = list(basis.row_status)
        basis.row_status = [states[k] for k in kept.tolist()]
        return basis

    def start_from(self, start: Any) -> None:
        """Begin the next solve where that of another model of the same size ended; else, as if it were new."""
        if start is None or self._integer.any() or self._scaling.mixed is not None:
            return
        fits = len(start.col_status) == self._lp.columns and len(start.row_status) == self.rows
        # One that does not fit is refused, and the solve begins anew.
        if fits and self._highs.setBasis(start) == highspy.HighsStatus.kOk:
            self._engine = ""

    def delete_rows(self, numbers: IntArray) -> None:
        """Take rows away; those behind them move up."""
        self._highs.deleteRows(len(numbers), np.sort(numbers).astype(np.int32))
        self._sizes = np.delete(self._sizes, numbers)

    def hold_columns(self, size: float) -> None:
        """Keep columns without bounds within a box around zero or their one bound, in the units that HiGHS works in.

        An answer of an LP that does not lean on this box (``strained``) is one of the LP without it. Of a model with
        integers that could not be seen.
        """
        assert not self._integer.any()
        lower, upper = self._lp.column_lower / self._scaling.units, self._lp.column_upper / self._scaling.units
        least = np.where(np.isfinite(lower), lower, np.minimum(-size, np.where(np.isfinite(upper), upper, 0.0) - size))
        most = np.where(np.isfinite(upper), upper, np.maximum(size, np.where(np.isfinite(lower), lower, 0.0) + size))
        # Where a column has a bound of its own, it cannot lean on the box.
        self._box = np.where(np.isfinite(lower), -np.inf, least), np.where(np.isfinite(upper), np.inf, most)
        everywhere = np.arange(self._lp.columns, dtype=np.int32)
        self._highs.changeColsBounds(len(everywhere), everywhere, least, most)

    def _leans_on_box(self, y: FloatArray, reduced: FloatArray) -> bool:
        """Whether a column is held by the box, and the objective would gain without it."""
        if self._box is None:
            return False
        least, most = self._box
        held = (y - least <= 1e-9 * np.abs(least)) | (most - y <= 1e-9 * np.abs(most))
        return bool(np.any(held & (np.abs(reduced) > FEASIBILITY_TOLERANCE)))

    def solve_with_fixed(self, columns: IntArray, values: FloatArray) -> LPSolution:
        """Fix integer columns at values and solve the LP that is left, for the prices of an integer answer."""
        index = columns.astype(np.int32)
        self._highs.changeColsBounds(len(index), index, values, values)
        self._highs.changeColsIntegrality(len(index), index, np.zeros(len(index), dtype=np.uint8))
        self._integer[columns] = False
        return self.solve()

    def solve_with_hessian(self, hessian: FloatArray) -> FloatArray | None:
        """Minimize with a quadratic part ``x' hessian x / 2`` beside the costs; the model must not be scaled."""
        size = len(hessian)
        lower = np.tril(hessian)
        rows, columns = np.nonzero(lower.T)[::-1]
        starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=size))]).astype(np.int32)
        part = highspy.HighsHessian()
        part.dim_ = size
        part.format_ = highspy.HessianFormat.kTriangular
        part.start_, part.index_, part.value_ = starts, rows.astype(np.int32), lower[rows, columns]
        if self._highs.passHessian(part) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refused the quadratic part; it must be concave.")
        self._highs.run()
        if self._status() == "unbounded":
            raise SolverError("HiGHS finds the quadratic problem unbounded.")
        if self._status() != "optimal":
            return None
        return np.array(self._highs.getSolution().col_value)

    def limit_time(self, seconds: float) -> None:
        """Let the next solve take at most so long."""
        # HiGHS counts its run time over all solves of one model.
        self._set("time_limit", float(self._highs.getRunTime() + max(seconds, 0.0)))

    def solve(self) -> LPSolution:
        """Solve from where the last solve ended."""
        # Rows that are almost parallel can make the simplex go round in circles.
        self._set("simplex_iteration_limit", 20_000 + 20 * (self._lp.columns + self.rows))
        self._gave_up = False
        if self._engine and not self._integer.any():
            self._begin_by_engine()
        self._highs.run()
        if self._highs.getModelStatus() not in _STATUS or self._status() == "iteration_limit":
            self._from_the_beginning()
        status = self._status()
        if status == "infeasible_or_unbounded":
            # Presolve could not tell; without it the simplex can.
            self._set("presolve", "off")
            self._highs.run()
            status = self._status()
            self._set("presolve", "choose")
        if status in ("time_limit", "iteration_limit") and self._integer.any():
            return self._incumbent(status)
        if status != "optimal":
            nothing = np.nan
            if status == "unbounded":
                nothing = np.inf if self._lp.maximize else -np.inf
            return LPSolution(status, nothing, nothing)
        found = self._highs.getSolution()
        cost = self._scaling.cost
        self.strained = self._leans_on_box(np.array(found.col_value), np.array(found.col_dual))
        # HiGHS may leave -1e-17 where a bound says 0.
        x = np.clip(self._scaling.point(np.array(found.col_value)), self._lp.column_lower, self._lp.column_upper)
        objective = self._lp.value(x)
        if self._integer.any():
            x[self._integer] = np.round(x[self._integer])
            return LPSolution(status, self._lp.value(x), self._integer_bound(), x)
        row_duals = np.array(found.row_dual) * cost / self._sizes
        reduced_costs = self._scaling.reduced_costs(np.array(found.col_dual))
        return LPSolution(status, objective, objective, x, row_duals, reduced_costs)

    def _begin_by_engine(self) -> None:
        """Bring the model to an optimal basis, or near one, by another solver than the simplex."""
        engine, self._engine = self._engine, ""
        if self._highs.setOptionValue("solver", engine) == highspy.HighsStatus.kError:
            raise MissingPackageError(
                f"solver={engine!r} needs a part of HiGHS that is not installed; pip install highspy-extras, or take "
                "solver='ipm'."
            )
        self._highs.run()
        if engine == "pdlp" and self._status() == "optimal":
            self._highs.crossover(self._highs.getSolution())
        self._set("solver", "choose")

    def _integer_bound(self) -> float:
        """What HiGHS' branch and bound has proved of the objective so far."""
        return float(self._highs.getInfo().mip_dual_bound) * self._scaling.cost + self._lp.offset

    def _incumbent(self, status: str) -> LPSolution:
        """The best integer point before a limit, if there is one, and the bound that is known by then."""
        bound = self._integer_bound()
        if self._highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return LPSolution(status, np.nan, bound if np.isfinite(bound) else np.nan)
        found = np.array(self._highs.getSolution().col_value)
        x = np.clip(self._scaling.point(found), self._lp.column_lower, self._lp.column_upper)
        x[self._integer] = np.round(x[self._integer])
        return LPSolution(status, self._lp.value(x), bound, x)

    def _from_the_beginning(self) -> None:
        """Solve once more without the old basis, in ways that suit other matrices, after numerical trouble."""
        self.restarts += 1
        limit = self._highs.getOptionValue("time_limit")[1]
        self._set("time_limit", min(limit, self._highs.getRunTime() + _LONGEST_RESTART))
        self._set("ipm_iteration_limit", 200)
        for name, value in (("simplex_scale_strategy", 0), ("solver", "ipm")):
            before = self._highs.getOptionValue(name)[1]
            self._highs.clearSolver()
            self._set(name, value)
            self._highs.run()
            self._set(name, before)
            if self._highs.getModelStatus() in _STATUS and self._status() != "iteration_limit":
                break
        # What was given up here is trouble, and not the limit of whoever asked.
        self._gave_up = self._status() == "time_limit" and self._highs.getRunTime() < limit
        self._set("time_limit", limit)

    def _status(self) -> str:
        return "solver_error" if self._gave_up else _STATUS.get(self._highs.getModelStatus(), "solver_error")


def solve_quadratic(lp: FiniteLP, hessian: FloatArray) -> FloatArray | None:
    """Maximize ``cost @ x + x' hessian x / 2`` for a small dense hessian <= 0; None where there is no solution.

    HiGHS' active set method; what it leaves open is closed by the caller.
    """
    model = HighsModel(replace(lp, maximize=False, cost=-lp.cost))
    return model.solve_with_hessian(-hessian)


def _sizes(largest: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """What rows are divided by: their largest coefficient, as a power of two; 1 for a row of zeros.

    HiGHS' tolerances are absolute: rows of size 1 make them mean the same for all rows. A row whose coefficients
    vanish beside its limit is divided by a part of that limit instead.
    """
    for limit in (lower, upper):
        largest = np.maximum(largest, np.where(np.isfinite(limit), 1e-9 * np.abs(limit), 0.0))
    return np.where(largest > 0, 2.0 ** np.round(np.log2(np.where(largest > 0, largest, 1.0))), 1.0)
