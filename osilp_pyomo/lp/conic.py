"""A cone program solved by Clarabel; the only file that knows it.

Everything linear and everything with integers is HiGHS'. What is left are second-order, exponential and semidefinite
cones and quadratic objectives, which Clarabel's interior point method solves in some ten iterations.

Its duals are near optimal and not exactly feasible: what they prove is worked out by whoever makes a claim, from the
duals themselves. A status says "optimal" for what Clarabel calls solved or almost solved; how good that is, the bound
tells.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.lp.finite import FiniteLP

SECOND_ORDER, EXPONENTIAL, SEMIDEFINITE = "second-order", "exponential", "semidefinite"

# "Solved" at 1e-8 is not 1e-8 of the objective: more is asked for, and less is taken where it is not reached.
_TOLERANCE = 1e-12
# What "infeasible" and "unbounded" are told by; a proof is asked for elsewhere.
_INFEASIBLE = 1e-9

# Statuses after which another way is tried, and what is as good as solved.
_DOUBTFUL, _GOOD = ("AlmostSolved", "InsufficientProgress", "NumericalError"), 1e-10
# Ways that are tried one after the other: each has solved semidefinite programs that the others have not.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {},
    {"dynamic_regularization_enable": False},
    {"max_step_fraction": 0.95},
    {"equilibrate_enable": False, "max_step_fraction": 0.9},
)

_STATUS = {
    "Solved": "optimal",
    "AlmostSolved": "optimal",
    "PrimalInfeasible": "infeasible",
    "DualInfeasible": "unbounded",
    "MaxTime": "time_limit",
    "MaxIterations": "iteration_limit",
}


@dataclass(frozen=True, eq=False)
class ConeRows:
    """``offset + matrix @ x`` lies in cones of one kind and size, one after the other.

    Parameters
    ----------
    kind : str
        "second-order": the first entry is at least the length of the others. "exponential": ``b exp(a / b) <= c`` for
        entries a, b > 0, c. "semidefinite": the upper triangle of a matrix by columns, entries off the diagonal
        times the root of 2 (see :func:`triangle`).
    size : int
        Entries of one cone.
    matrix : sparse array (cones * size, columns)
    offset : array (cones * size)

    Examples
    --------
    >>> ball = ConeRows.second_order(sparse.csr_array(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])), np.eye(3)[0], 3)
    >>> ball.excess(np.array([3.0, 4.0]))
    4.0
    """

    kind: str
    size: int
    matrix: Any  # scipy.sparse.csr_array
    offset: FloatArray

    @classmethod
    def second_order(cls, matrix: Any, offset: FloatArray, size: int) -> ConeRows:
        """Second-order cones of one size."""
        return cls(SECOND_ORDER, size, sparse.csr_array(matrix), offset)

    def values(self, x: FloatArray) -> FloatArray:
        """The entries at x, an array (cones, size)."""
        return (self.offset + self.matrix @ x).reshape(-1, self.size)

    def excess(self, x: FloatArray) -> float:
        """By how much the worst cone is missed; negative inside of all of them."""
        return float(np.max(missed_by(self.kind, self.values(x)), initial=-np.inf))

    def widened(self, columns: IntArray, total: int) -> ConeRows:
        """The same rows where its columns are some of many."""
        place = sparse.csr_array(
            (np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=(len(columns), total)
        )
        return replace(self, matrix=sparse.csr_array(self.matrix @ place))


def missed_by(kind: str, entries: FloatArray) -> FloatArray:
    """By how much vectors (k, size) miss a cone, in their own unit; negative or zero inside."""
    if kind == SECOND_ORDER:
        result: FloatArray = np.linalg.norm(entries[:, 1:], axis=1) - entries[:, 0]
        return result
    if kind == EXPONENTIAL:
        a, b, c = entries.T
        with np.errstate(all="ignore"):
            inside = b * np.exp(a / b) - c
        # Its border: b = 0, a <= 0, c >= 0.
        return np.where(b > 0, inside, np.maximum(np.maximum(a, -b), -c))
    return np.array([-float(np.linalg.eigvalsh(symmetric(each))[0]) for each in entries])


def middle_of(kind: str, size: int) -> FloatArray:
    """A direction into the middle of a cone."""
    if kind == SECOND_ORDER:
        return np.eye(size)[0]
    if kind == EXPONENTIAL:
        return np.array([-1.0, 1.0, 1.0])
    rows, columns, _ = triangle(round((np.sqrt(8 * size + 1) - 1) / 2))
    return (rows == columns).astype(float)


def triangle(size: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows, columns and factors of a symmetric matrix's entries as a semidefinite cone has them."""
    columns, rows = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def symmetric(entries: FloatArray) -> FloatArray:
    """The matrix of a vector in a semidefinite cone."""
    size = round((np.sqrt(8 * len(entries) + 1) - 1) / 2)
    rows, columns, factors = triangle(size)
    result = np.zeros((size, size))
    result[rows, columns] = result[columns, rows] = entries / factors
    return result


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """A linear program, cones beside its rows, and ``x' quadratic x / 2`` beside its cost; integers are not seen."""

    lp: FiniteLP
    cones: tuple[ConeRows, ...] = ()
    quadratic: Any = None  # scipy.sparse.csr_array, symmetric


@dataclass(frozen=True, eq=False)
class ConeSolution:
    """What Clarabel found.

    Row duals and reduced costs are d objective / d right-hand side and d objective / d bound, for minimization and
    maximization alike. ``cone_duals`` are elements of the dual cones, an array (cones, size) for each of the program's:
    for a minimum ``cost + quadratic x = matrix' row_duals + reduced_costs + sum cone.matrix' cone_dual``, for a maximum
    that of ``-cost``. ``bound`` is the dual objective as Clarabel has it, which proves nothing; ``missed`` is the
    largest of its residuals and its gap, relative.
    """

    status: str
    objective: float
    bound: float
    x: FloatArray | None = None
    row_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None
    cone_duals: tuple[FloatArray, ...] = ()
    missed: float = 0.0


def solve_cones(
    program: ConeProgram, time_limit: float | None = None, tolerance: float = _TOLERANCE, any_point: bool = False
) -> ConeSolution:
    """Solve a cone program.

    With ``any_point`` the last point is given also where numerical trouble kept it from being called solved, for those
    who judge it themselves.

    Examples
    --------
    The point of the unit disc farthest along (3, 4):

    >>> lp = FiniteLP(maximize=True, cost=np.array([3.0, 4.0]), column_lower=np.full(2, -np.inf),
    ...               column_upper=np.full(2, np.inf), matrix=sparse.csr_array((0, 2)), row_lower=np.empty(0),
    ...               row_upper=np.empty(0))
    >>> disc = ConeRows.second_order(sparse.csr_array(np.eye(3)[:, 1:]), np.eye(3)[0], 3)
    >>> found = solve_cones(ConeProgram(lp, (disc,)))
    >>> found.status, found.x.round(6).tolist(), round(found.objective, 6)
    ('optimal', [0.6, 0.8], 5.0)
    """
    lp = program.lp
    sign = -1.0 if lp.maximize else 1.0
    stacked = _Stack.of(program)
    square = sparse.csc_array((lp.columns, lp.columns))
    if program.quadratic is not None:
        square = sparse.csc_array(sparse.triu(sign * program.quadratic))
    given = (_matrix(square), sign * lp.cost, _matrix(stacked.matrix), stacked.right, stacked.cones)
    # A step of a Newton method need not be exact: the next one mends what this one leaves.
    attempts = _ATTEMPTS if program.quadratic is None else _ATTEMPTS[:1]
    found = _best_of(given, tolerance, time_limit, attempts)
    status = _STATUS.get(str(found.status), "undecided")
    x, z = np.array(found.x), np.array(found.z)
    stopped = any_point and status in ("undecided", "iteration_limit") and np.all(np.isfinite([*x, *z]))
    if status != "optimal" and not stopped:
        return ConeSolution(status, np.nan, np.nan)
    row_duals, reduced, cone_duals = stacked.duals(z)
    objective = lp.value(x) + (0.0 if program.quadratic is None else 0.5 * float(x @ (program.quadratic @ x)))
    bound = sign * float(found.obj_val_dual) + lp.offset
    return ConeSolution(status, objective, bound, x, sign * row_duals, sign * reduced, cone_duals, _missed(found))


def _best_of(
    given: tuple[Any, ...], tolerance: float, time_limit: float | None, attempts: Sequence[dict[str, Any]]
) -> Any:
    """Clarabel's answer; where it is far from what was asked for, the best of a few other ways to it."""
    started, best, smallest = time.monotonic(), None, np.inf
    for other in attempts:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        # One thread: what a machine has must not change the last digits of an answer.
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        settings.tol_infeas_abs = settings.tol_infeas_rel = _INFEASIBLE
        for name, value in other.items():
            setattr(settings, name, value)
        if time_limit is not None:
            left = time_limit - (time.monotonic() - started)
            if best is not None and left <= 0:
                break
            settings.time_limit = max(1e-3, left)
        found: Any = clarabel.DefaultSolver(*given, settings).solve()
        missed = _missed(found)
        if best is None or missed < smallest:
            best, smallest = found, missed
        if str(found.status) not in _DOUBTFUL or missed <= _GOOD:
            break
    return best


def _missed(found: Any) -> float:
    """The largest of the residuals and the gap of Clarabel's answer."""
    gap = abs(found.obj_val - found.obj_val_dual) / (1 + abs(found.obj_val))
    return float(max(gap, found.r_prim, found.r_dual))


def _matrix(given: Any) -> Any:
    """A sparse matrix as Clarabel takes it, without zeros that are stored."""
    result = sparse.csc_matrix(given)
    result.eliminate_zeros()
    return result


@dataclass(frozen=True, eq=False)
class _Stack:
    """All rows as Clarabel wants them, ``right - matrix @ x`` in a product of cones: equations, limits, cones."""

    program: ConeProgram
    matrix: Any
    right: FloatArray
    cones: list[Any]
    places: tuple[tuple[str, IntArray, float, int], ...]

    @classmethod
    def of(cls, program: ConeProgram) -> _Stack:
        """Equations first, then upper and lower limits of rows and of columns, then the cones."""
        lp = program.lp
        eye = sparse.eye_array(lp.columns, format="csr")
        parts: list[Any] = []
        rights: list[FloatArray] = []
        cones: list[Any] = []
        places: list[tuple[str, IntArray, float, int]] = []
        counts = [0, 0]
        for equal in (True, False):
            for what, rows, lower, upper in (
                ("row", lp.matrix, lp.row_lower, lp.row_upper),
                ("column", eye, lp.column_lower, lp.column_upper),
            ):
                tied = (lower == upper) & np.isfinite(lower)
                for side, limit in ((1.0, upper), (-1.0, lower)):
                    if equal and side < 0:
                        continue
                    kept = np.flatnonzero(tied if equal else ~tied & np.isfinite(limit))
                    if len(kept):
                        parts.append(side * rows[kept])
                        rights.append(side * limit[kept])
                        places.append((what, kept, side, len(kept)))
                        counts[0 if equal else 1] += len(kept)
        if counts[0]:
            cones.append(clarabel.ZeroConeT(counts[0]))
        if counts[1]:
            cones.append(clarabel.NonnegativeConeT(counts[1]))
        for each in program.cones:
            parts.append(-each.matrix)
            rights.append(each.offset)
            cones += [_cone(each.kind, each.size)] * (len(each.offset) // each.size)
        if not parts:
            parts, rights = [sparse.csr_array((0, lp.columns))], [np.empty(0)]
        return cls(program, sparse.vstack(parts, format="csc"), np.concatenate(rights), cones, tuple(places))

    def duals(self, z: FloatArray) -> tuple[FloatArray, FloatArray, tuple[FloatArray, ...]]:
        """Duals of rows, reduced costs of columns, and duals of cones, for the minimum that Clarabel solved."""
        lp, start = self.program.lp, 0
        found = {"row": np.zeros(len(lp.row_lower)), "column": np.zeros(lp.columns)}
        for what, numbers, side, count in self.places:
            found[what][numbers] -= side * z[start : start + count]
            start += count
        cones = []
        for each in self.program.cones:
            cones.append(z[start : start + len(each.offset)].reshape(-1, each.size))
            start += len(each.offset)
        return found["row"], found["column"], tuple(cones)


def _cone(kind: str, size: int) -> Any:
    if kind == SECOND_ORDER:
        return clarabel.SecondOrderConeT(size)
    if kind == EXPONENTIAL:
        return clarabel.ExponentialConeT()
    return clarabel.PSDTriangleConeT(round((np.sqrt(8 * size + 1) - 1) / 2))


def safe_bound(program: ConeProgram, found: ConeSolution, largest: FloatArray) -> float:
    """What no point of a maximum without quadratic terms can beat, from duals that are made feasible.

    Duals are moved into their cones, those of rows that point to no limit are set to zero, and what the dual equations
    then miss is worth a bound of its column, or ``largest`` where there is none: the bound holds whoever computed the
    duals (Neumaier and Shcherbina, 2004; Jansson, Chaykin and Keil, 2007, for cones).
    """
    lp = program.lp
    assert lp.maximize
    assert found.row_duals is not None
    limit = np.where(found.row_duals > 0, lp.row_upper, lp.row_lower)
    duals = np.where(np.isfinite(limit), found.row_duals, 0.0)
    bound = lp.offset + float(np.where(duals != 0, limit, 0.0) @ duals)
    reduced = lp.cost - lp.matrix.T @ duals
    for rows, given in zip(program.cones, found.cone_duals, strict=True):
        inside = into_dual_cone(rows.kind, given)
        bound += float(rows.offset @ inside.ravel())
        reduced = reduced + rows.matrix.T @ inside.ravel()
    ends = np.where(reduced > 0, np.minimum(lp.column_upper, largest), np.maximum(lp.column_lower, -largest))
    return bound + float(np.where(reduced != 0, reduced, 0.0) @ np.where(reduced != 0, ends, 0.0))


def into_dual_cone(kind: str, entries: FloatArray) -> FloatArray:
    """Vectors (k, size) moved into the dual cone where they miss it a little; not a number where that is not known."""
    result = entries.copy()
    if kind == SECOND_ORDER:
        # A rounding more than the length, so that it is not below it.
        length = np.linalg.norm(entries[:, 1:], axis=1) * (1 + 1e-15 * entries.shape[1])
        result[:, 0] = np.maximum(entries[:, 0], length)
        return result
    if kind == SEMIDEFINITE:
        for number, each in enumerate(entries):
            matrix = symmetric(each)
            values, vectors = np.linalg.eigh(matrix)
            moved = (vectors * np.maximum(values, 0.0)) @ vectors.T
            size = float(np.abs(values).max(initial=0.0))
            # Eigenvalues have roundings: what is added makes up for them.
            moved += 1e-15 * len(matrix) * size * np.eye(len(matrix))
            rows, columns, factors = triangle(len(matrix))
            result[number] = factors * moved[rows, columns]
        return result
    u, v, w = entries.T
    with np.errstate(all="ignore"):
        # (u, v, w) with u < 0 and -u exp(v / u) <= e w, or u = 0 and v, w >= 0.
        least = np.where(u < 0, -u * np.exp(v / u - 1.0) * (1 + 1e-14), 0.0)
    result[:, 1] = np.where(u < 0, v, np.maximum(v, 0.0))
    result[:, 0] = np.minimum(u, 0.0)
    result[:, 2] = np.maximum(w, least)
    return result
