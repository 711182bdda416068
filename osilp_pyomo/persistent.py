"""Solve a model again and again: what has changed is found, what has not is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from osilp_pyomo._options import SOLVE, check_options, documented_by
from osilp_pyomo._pools import as_executor, mapper
from osilp_pyomo._threads import one_thread
from osilp_pyomo.api import refuse_options_of_other_methods, solve_as_read, tell
from osilp_pyomo.errors import OptionError, SolverError
from osilp_pyomo.lp.highs import asked_of_highs
from osilp_pyomo.model.kept import KeptModel
from osilp_pyomo.model.sets import is_uncertainty_set
from osilp_pyomo.model.trace import TracedModel, active_objective, refuse_no_model
from osilp_pyomo.offline.exchange import ExchangeOptions
from osilp_pyomo.offline.methods import solve_by
from osilp_pyomo.offline.problem import SemiInfiniteLP
from osilp_pyomo.offline.results import Result
from osilp_pyomo.offline.rows import SampledRows
from osilp_pyomo.offline.solved import Solved
from osilp_pyomo.offline.warmth import Warmth

_DEFAULTS: dict[str, Any] = {option.name: option.default for option in SOLVE} | {"solver_options": None}
# Options of a sweep: nothing is put into the model, and nothing printed.
_QUIET = {"load": False, "tee": False, "progress": False}
# What the frame of a sweep says of each point.
_TOLD = ("objective", "bound", "status", "certified", "method", "rows", "seconds")
# Methods whose points can be solved elsewhere: their problems are arrays.
_PORTABLE = ("auto", "exchange", "counterpart")


class PersistentSolver:
    """A solver that stays with a model, for solving it again after some of it has changed.

    Between two solves anything may change: values of Params and of fixed variables, Profiles, bounds, the numbers of
    sets, what is fixed or active, components. Each solve compares the model with what was read last, reads again what
    is another, and begins where the last one ended. What comes back is what :func:`osilp_pyomo.solve` would give: all
    that it says of the answer is proved anew.

    What cannot be seen from the model are Python objects that rules read, such as a dictionary, a loop's variable or
    an array: after a change in those call :meth:`retrace`.

    Parameters
    ----------
    model : ConcreteModel
        Read, and changed only in the values of its variables and of the Suffixes dual and rc.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.height = pyo.Param(mutable=True, initialize=1.0)
    >>> m.x = pyo.Var([0, 1])
    >>> m.area = pyo.Objective(expr=m.x[0] + m.x[1] / 2)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x[0] + m.x[1] * u >= m.height * pyo.exp(u)
    >>> solver = osilp.PersistentSolver(m)
    >>> round(solver.solve().objective, 6)
    1.859141
    >>> m.height = 2.0
    >>> round(solver.solve().objective, 6)
    3.718282
    """

    def __init__(self, model: Any) -> None:
        refuse_no_model(model, "PersistentSolver")
        self._model = model
        self._kept = KeptModel(model)
        self._warmth = Warmth()

    @property
    def model(self) -> Any:
        """The model."""
        return self._model

    @documented_by(SOLVE)
    def solve(self, method: str = "auto", **options: Any) -> Result:
        """Solve the model as it is now.

        Parameters
        ----------
        {options}

        Returns
        -------
        Result
        """
        for name in options:
            if name not in _DEFAULTS:
                raise OptionError(
                    f"PersistentSolver.solve: there is no option {name!r}; there are {', '.join(_DEFAULTS)}."
                )
        try:
            return solve_as_read(
                self._model, self._kept.read, self._warmth, **{**_DEFAULTS, **options, "method": method}
            )
        except BaseException:
            # Whatever it was in the middle of, an interrupt too: the next solve begins from nothing.
            self.retrace()
            raise

    def retrace(self) -> None:
        """Read the whole model anew at the next solve, and call all its rules again."""
        self._kept.forget()
        self._warmth.forget()

    def __getstate__(self) -> dict[str, Any]:
        """The model travels, what was kept of it does not."""
        return {"model": self._model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"PersistentSolver({self._model.name!r})"


def _refuse_unknown(options: Mapping[str, Any], where: str, known: Sequence[str]) -> None:
    for name in options:
        if name not in known:
            raise OptionError(f"{where}: there is no option {name!r}; there are {', '.join(known)}.")


# -- sweeps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Knob:
    """Something that is turned: its name as a column, its values, and how it is set and read."""

    name: str
    values: tuple[Any, ...]
    set: Callable[[Any], None]
    before: Any


def sweep(
    model: Any, over: Sequence[Any], method: str = "auto", *, executor: Any = None, **options: Any
) -> pd.DataFrame:
    """Solve a model for many values of some of its data: a price of robustness, say.

    Parameters
    ----------
    model : ConcreteModel
        Read; it is afterwards as it was before, also after an error or an interrupt.
    over : list of (Param, values), or of (uncertainty set, attribute, values)
        What changes: a mutable Param, or one member of an indexed one; or a number of an uncertainty set of PyROS, such
        as ``(box, "gamma", [0, 1, 2])``. Of several all combinations are solved, the last changing fastest.
    method : str
        As in :func:`solve`.
    executor : int or Executor, optional
        How many processes to use, or where else to solve. Rows that only Python functions know - rules that cannot be
        traced, conditions by ``where=`` - are solved here.
    **options
        Those of :func:`solve`, but for load, tee and progress.

    Returns
    -------
    DataFrame
        A row for each point: its values, then objective, bound, status, certified, method, rows held and seconds. What
        has no solution is a row too, with its status, and without an objective. ``attrs["objective"]`` is what the
        model calls that.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.limit = pyo.Param(mutable=True, initialize=1.0)
    >>> m.x = pyo.Var(bounds=(0, None))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def below(m, u):
    ...     return (1 + u) * m.x <= m.limit
    >>> frame = osilp.sweep(m, [(m.limit, [1, 2, -1])])
    >>> frame[["limit", "objective", "status"]].round(6).values.tolist()
    [[1, 0.5, 'optimal'], [2, 1.0, 'optimal'], [-1, nan, 'infeasible']]
    """
    refuse_no_model(model, "sweep")
    chosen = as_executor(executor, "sweep")
    _refuse_unknown(options, "sweep", [name for name in _DEFAULTS if name not in ("method", *_QUIET)])
    asked = {**_DEFAULTS, **options, **_QUIET, "method": method}
    check_options(SOLVE, asked, "sweep")
    refuse_options_of_other_methods(asked)
    with asked_of_highs(asked["solver_options"], "sweep"):
        # Elsewhere they would be looked at late.
        pass
    knobs = _knobs(model, over)
    points = list(product(*(knob.values for knob in knobs)))
    with _put_back(knobs):
        _try(knobs)
        solver = PersistentSolver(model)
        if chosen is None or method not in _PORTABLE:
            told = [_told_here(solver, knobs, point, asked) for point in points]
        else:
            told = _told_elsewhere(solver, knobs, points, asked, executor)
    frame = pd.concat([pd.DataFrame(points, columns=[knob.name for knob in knobs]), pd.DataFrame(told)], axis=1)
    objective = active_objective(model)
    if objective is not None:
        # What the user calls it, for pictures.
        frame.attrs["objective"] = objective.name
    return frame


def _knobs(model: Any, over: Sequence[Any]) -> list[_Knob]:
    """What is to be turned, checked."""
    if not isinstance(over, Sequence) or not over:
        raise OptionError("sweep: over= must be a list of pairs, such as [(m.gamma, [0, 1, 2])].")
    knobs: list[_Knob] = []
    for pair in over:
        if not isinstance(pair, Sequence) or len(pair) not in (2, 3):
            raise OptionError(
                f"sweep: over= must hold pairs (Param, values), or (uncertainty set, attribute, values) (got {pair!r})."
            )
        *what, values = pair
        # Read once: what gives values one by one has none left the second time.
        listed = () if isinstance(values, str) or not np.iterable(values) else tuple(values)
        if not listed:
            raise OptionError(f"sweep: the values of a pair must be a list of numbers (got {values!r}).")
        knob = _set_knob(what[0], what[1], listed) if len(what) == 2 else _param_knob(model, what[0], listed)
        if any(other.name == knob.name for other in knobs):
            raise OptionError(f"sweep: '{knob.name}' is given twice; each column of the frame needs a name of its own.")
        if knob.name in _TOLD:
            raise OptionError(
                f"sweep: '{knob.name}' is also what the frame calls a part of each answer ({', '.join(_TOLD)}); give "
                "it another name."
            )
        knobs.append(knob)
    return knobs


def _param_knob(model: Any, param: Any, values: tuple[Any, ...]) -> _Knob:
    kind = getattr(param, "ctype", None)
    if kind is not pyo.Param or param.is_indexed():
        raise OptionError(
            f"sweep: only a mutable Param, or one member of an indexed one, can be swept (got {param!s}, a "
            f"{type(param).__name__}); make what is to change one, m.level = pyo.Param(mutable=True, initialize=...), "
            "and write m.level where it is used."
        )
    if not param.parent_component().mutable:
        raise OptionError(f"sweep: the Param '{param.name}' is not mutable; declare it with mutable=True.")
    if param.model() is not model.model():
        raise OptionError(f"sweep: the Param '{param.name}' belongs to another model.")
    before = param(exception=False)
    if before is None:
        raise OptionError(f"sweep: the Param '{param.name}' has no value; give it one, which it will have again.")
    return _Knob(param.name, values, param.set_value, before)


def _set_knob(given: Any, attribute: Any, values: tuple[Any, ...]) -> _Knob:
    if not is_uncertainty_set(given) or not isinstance(attribute, str) or not hasattr(given, attribute):
        raise OptionError(
            f"sweep: three parts are an uncertainty set, the name of one of its numbers, and values (got {given!r} and "
            f"{attribute!r})."
        )

    def change(value: Any) -> None:
        setattr(given, attribute, value)

    return _Knob(attribute, values, change, getattr(given, attribute))


@contextmanager
def _put_back(knobs: Sequence[_Knob]) -> Iterator[None]:
    """Turn everything back at the end, whatever happens."""
    try:
        yield
    finally:
        for knob in knobs:
            knob.set(knob.before)


def _try(knobs: Sequence[_Knob]) -> None:
    """Refuse values that a Param or set does not take before anything is solved."""
    for knob in knobs:
        for value in knob.values:
            try:
                knob.set(value)
            except Exception as error:
                told = " ".join(str(error).split())
                raise OptionError(f"sweep: '{knob.name}' does not take the value {value!r} ({told}).") from None
        knob.set(knob.before)


def _turn(knobs: Sequence[_Knob], point: Sequence[Any]) -> None:
    for knob, value in zip(knobs, point, strict=True):
        knob.set(value)


def _row(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in _TOLD}


def _failed(method: str, seconds: float) -> dict[str, Any]:
    """The row of a point at which a solver gave up."""
    return dict(zip(_TOLD, (np.nan, np.nan, "solver_error", False, method, 0, seconds), strict=True))


def _told_here(
    solver: PersistentSolver, knobs: Sequence[_Knob], point: Sequence[Any], asked: Mapping[str, Any]
) -> dict[str, Any]:
    _turn(knobs, point)
    started = time.monotonic()
    try:
        return _row(solver.solve(**asked))
    except SolverError:
        return _failed(asked["method"], time.monotonic() - started)


def _told_elsewhere(
    solver: PersistentSolver,
    knobs: Sequence[_Knob],
    points: Sequence[Sequence[Any]],
    asked: Mapping[str, Any],
    executor: Any,
) -> list[dict[str, Any]]:
    """Read here, solve elsewhere: neighbouring points together, each beginning where the one before it ended."""
    read: dict[int, TracedModel] = {}
    told: dict[int, dict[str, Any]] = {}
    for number, point in enumerate(points):
        _turn(knobs, point)
        traced = solver._kept.read()
        if _travels(traced.problem):
            read[number] = traced
        else:
            told[number] = _told_here(solver, knobs, point, asked)
    workers = executor if isinstance(executor, int) else getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    numbers = list(read)
    parts = [part.tolist() for part in np.array_split(np.array(numbers, dtype=np.int64), workers) if len(part)]
    work = [(asked, [read[number].problem for number in part]) for part in parts]
    with mapper(executor, "sweep") as run:
        for part, found in zip(parts, run(_solve_part, work), strict=True):
            for number, (solved, seconds) in zip(part, found, strict=True):
                if solved is None:
                    told[number] = _failed(asked["method"], seconds)
                    continue
                _turn(knobs, points[number])
                started = time.monotonic() - seconds
                known = (asked["time_limit"], asked["proof"], asked["method"])
                told[number] = _row(tell(solver.model, read[number], solved, started, *known, ()))
    return [told[number] for number in range(len(points))]


def _travels(problem: SemiInfiniteLP) -> bool:
    """Whether a problem is arrays and formulas only, and no function of the user's."""
    return problem.convex is None and not any(
        isinstance(family.rows, SampledRows) or (family.domain.inside is not None and family.domain.body is None)
        for family in problem.families
    )


def _solve_part(work: tuple[Mapping[str, Any], list[SemiInfiniteLP]]) -> list[tuple[Solved | None, float]]:
    """Solve some problems one after the other; None where the solver gave up."""
    asked, problems = work
    limits = (asked["tolerance"], asked["iteration_limit"], asked["time_limit"])
    warmth, found = Warmth(), []
    for problem in problems:
        options = ExchangeOptions(*limits, solver=asked["solver"], proof=asked["proof"], warmth=warmth)
        started = time.monotonic()
        solved: Solved | None = None
        with asked_of_highs(asked["solver_options"], "sweep"), one_thread():
            try:
                solved = solve_by(asked["method"], problem, (), options, asked["fix_integers"])
            except SolverError:
                warmth.forget()
        found.append((solved, time.monotonic() - started))
    return found
