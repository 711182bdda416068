"""Results as Pyomo has them: of ``pyomo.contrib.solver``, with what code for its older results reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo
from pyomo.contrib.solver.common.results import (
    Results,
    SolutionStatus,
    TerminationCondition,
    legacy_solution_status_map,
    legacy_solver_status_map,
    legacy_termination_condition_map,
)
from pyomo.contrib.solver.common.solution_loader import NoSolutionSolutionLoader, SolutionLoader
from pyomo.contrib.solver.common.util import NoDualsError, NoReducedCostsError, NoSolutionError
from pyomo.opt.results.results_ import SolverResults
from pyomo.opt.results.solution import Solution

from osilp_pyomo._version import __version__
from osilp_pyomo.errors import OsilpError

if TYPE_CHECKING:
    from osilp_pyomo.offline.results import Result

#: This package's version as Pyomo has versions.
VERSION = tuple(int(part) for part in __version__.split(".")[:3])

_CONDITIONS = {
    "optimal": TerminationCondition.convergenceCriteriaSatisfied,
    "inaccurate": TerminationCondition.convergenceCriteriaSatisfied,
    "infeasible": TerminationCondition.provenInfeasible,
    "unbounded": TerminationCondition.unbounded,
    "infeasible_or_unbounded": TerminationCondition.infeasibleOrUnbounded,
    "undecided": TerminationCondition.unknown,
    "time_limit": TerminationCondition.maxTimeLimit,
    "iteration_limit": TerminationCondition.iterationLimit,
    "solver_error": TerminationCondition.error,
}


class OsilpSolutionLoader(SolutionLoader):
    """Values, duals and reduced costs by the components of the solved model.

    A dual is d objective / d right-hand side. A semi-infinite constraint has a measure on its index instead,
    ``results.result.price``; so it is no key of :meth:`get_duals`.
    """

    def __init__(self, model: Any, result: Result) -> None:
        self._pyomo_model = model
        self._result = result

    def __reduce__(self) -> Any:
        # Results that are copied or sent elsewhere do not take the model with them.
        return NoSolutionSolutionLoader, (
            None,
            "Results that were copied have no model; use those that solve gave back.",
        )

    def get_number_of_solutions(self) -> int:
        return 0 if self._result.answer is None else 1

    def get_vars(self, vars_to_load: Sequence[Any] | None = None) -> Mapping[Any, float]:
        found = self._by_component("values", NoSolutionError)
        if vars_to_load is None:
            return found
        return pyo.ComponentMap((each, _of(found, each, "values", NoSolutionError)) for each in vars_to_load)

    # As loaders were called before Pyomo 6.10.
    get_primals = get_vars

    def get_duals(self, cons_to_load: Sequence[Any] | None = None) -> Any:
        found = self._by_component("duals", NoDualsError)
        if cons_to_load is None:
            return dict(found.items())
        return {each: _of(found, each, "duals", NoDualsError) for each in cons_to_load}

    def get_reduced_costs(self, vars_to_load: Sequence[Any] | None = None) -> Mapping[Any, float]:
        found = self._by_component("reduced_costs", NoReducedCostsError)
        if vars_to_load is None:
            return found
        return pyo.ComponentMap((each, _of(found, each, "reduced costs", NoReducedCostsError)) for each in vars_to_load)

    def load_vars(self, vars_to_load: Sequence[Any] | None = None) -> None:
        if vars_to_load is None:
            self.load_solution()
            return
        for variable, value in self.get_vars(vars_to_load).items():
            variable.set_value(value, skip_validation=True)
            variable.stale = False

    def load_solution(self) -> None:
        """Put the values into the model; Suffixes dual and rc that import are filled."""
        if self._result.answer is None:
            raise NoSolutionError(_no_answer(self._result))
        self._result.load(self._pyomo_model)
        if self._result.policy is not None:
            # A policy without a formula has no coefficients, and old ones must not pass for its own.
            known = set(self._result.values.index)
            for variable in self._pyomo_model.component_data_objects(pyo.Var, descend_into=True):
                if variable.name not in known and not variable.fixed:
                    variable.set_value(None)

    def load_import_suffixes(self) -> None:
        # Of a model with integers there are none; its Suffixes stay empty, as they do after loading.
        suffixes = self._collect_and_clear_import_suffixes()
        answer = self._result.answer
        if answer is not None and answer.duals is not None and "dual" in suffixes:
            suffixes["dual"].update(self.get_duals())
        if answer is not None and answer.reduced_costs is not None and "rc" in suffixes:
            suffixes["rc"].update(self.get_reduced_costs())

    def _by_component(self, part: str, failure: type[Exception]) -> Any:
        try:
            numbers = getattr(self._result, part)
        except OsilpError as error:
            raise failure(str(error)) from error
        root = self._pyomo_model.model()
        pairs = ((root.find_component(name), number) for name, number in numbers.items())
        # What a transformation of this package added has no component in the user's model.
        return pyo.ComponentMap((component, number) for component, number in pairs if component is not None)


def _of(found: Any, component: Any, what: str, failure: type[Exception]) -> float:
    if component in found:
        return float(found[component])
    cure = ""
    if hasattr(component, "at"):
        cure = "; a semi-infinite constraint has a measure on its index, results.result.price"
    raise failure(f"'{component.name}' is not among the {what} of the solved model{cure}.")


def _no_answer(result: Result) -> str:
    return f"The {result.method} method ended with status '{result.status}', so that there are no values to load."


class OsilpResults(Results):
    """Pyomo's results, with the whole :class:`Result` as ``result``.

    ``solution_status`` is optimal when violation and gap are within tolerance, and infeasible when the
    values violate rows: a discretized or projected answer that does is a bound, not a solution. ``solver``,
    ``problem``, ``solution`` and ``write`` are those of Pyomo's older results.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var()
    >>> m.height = pyo.Objective(expr=m.x)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x >= 4 * u * (1 - u)
    >>> results = pyo.SolverFactory("osilp").solve(m, method="projected")
    >>> print(results.termination_condition, results.solution_status, results.solver.termination_condition)
    TerminationCondition.convergenceCriteriaSatisfied SolutionStatus.infeasible optimal
    >>> round(results.result.violation, 3)  # a bound: single points are violated
    0.005
    >>> round(results.solution_loader.get_vars()[m.x], 3)
    0.995
    """

    def __init__(self, model: Any, result: Result, config: Any, started: datetime, timer: Any) -> None:
        super().__init__()
        object.__setattr__(self, "result", result)
        object.__setattr__(self, "_model", model)
        self.solution_loader = OsilpSolutionLoader(model, result)
        self.termination_condition = _CONDITIONS[result.status]
        self.solution_status = _solution_status(result)
        has_point = self.solution_status in (SolutionStatus.optimal, SolutionStatus.feasible)
        self.incumbent_objective = result.objective if has_point else None
        self.objective_bound = result.bound if result.status in ("optimal", "inaccurate", "time_limit") else None
        self.solver_name = "osilp"
        self.solver_version = VERSION
        self.solver_config = config
        self.solver_log = log_text(result)
        self.timing_info.start_timestamp = started
        self.timing_info.wall_time = result.seconds
        self.timing_info.timer = timer
        self.extra_info.method = config.method
        self.extra_info.iterations = len(result.log)
        self.extra_info.certified = result.certified

    def __setattr__(self, name: str, value: Any) -> None:
        # What `pyomo solve` leaves on the results it was given.
        if name in ("pyomo_solve_time", "_smap_id", "_smap"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def __getstate__(self) -> Any:
        # Values that nobody looked at yet are kept by Pyomo in objects that cannot be pickled.
        for part in (self, self.solver_config):
            if part is not None:
                part.value()
        return super().__getstate__()

    def __str__(self) -> str:
        """What was found, in the words of the result; ``display()`` shows what Pyomo keeps."""
        if hasattr(self, "result"):
            return str(self.result)
        # A copy that Pyomo made knows nothing of ours.
        shown = StringIO()
        self.display(ostream=shown)
        return shown.getvalue()

    def _older(self) -> SolverResults:
        """Results as older Pyomo code reads them, made anew: `pyomo solve` empties the solutions that it finds."""
        from osilp_pyomo.model.trace import active_objective

        older = SolverResults()
        condition = self.termination_condition
        older.solver.status = legacy_solver_status_map[condition]
        older.solver.termination_condition = legacy_termination_condition_map[condition]
        older.solver.termination_message = str(self).partition("\n")[0]
        older.solver.time = self.timing_info.wall_time
        if not hasattr(self, "result"):
            return older
        found = self.result
        low, high = found.bracket
        older.problem.name = self._model.name
        older.problem.sense = pyo.maximize if found.sense == "maximize" else pyo.minimize
        older.problem.lower_bound, older.problem.upper_bound = low, high
        older.problem.number_of_constraints = float("nan")
        older.problem.number_of_variables = float("nan") if found.answer is None else len(found.values)
        if found.answer is not None:
            entry = Solution()
            entry.status, entry.gap = legacy_solution_status_map(self), high - low
            objective = active_objective(self._model)
            if objective is not None:
                entry.objective[objective.name] = {"Value": found.objective}
            entry.variable.update({name: {"Value": value} for name, value in found.values.items()})
            if found.answer.duals is not None:
                entry.constraint.update({name: {"Dual": dual} for name, dual in found.duals.items()})
            older.solution.insert(entry)
        return older

    @property
    def solver(self) -> Any:
        """Status and termination condition as older Pyomo code reads them."""
        return self._older().solver

    @property
    def problem(self) -> Any:
        """Sense and bounds as older Pyomo code reads them."""
        return self._older().problem

    @property
    def solution(self) -> Any:
        """Status, gap, values and duals as older Pyomo code reads them."""
        return self._older().solution

    def write(self, **options: Any) -> None:
        """Write the results as older Pyomo code does: ``filename=``, ``ostream=``, ``format="yaml"`` or ``"json"``."""
        self._older().write(**options)


def _solution_status(result: Result) -> SolutionStatus:
    if result.answer is None:
        return SolutionStatus.noSolution
    if not result.feasible:
        return SolutionStatus.infeasible
    return SolutionStatus.optimal if result.status == "optimal" else SolutionStatus.feasible


def log_text(result: Result) -> str:
    """Iterations, and what came of them."""
    lines = [result.log.to_string(index=False)] if len(result.log) else []
    return "\n".join([*lines, str(result), ""])


def why_not_optimal(results: OsilpResults) -> str:
    """Why an answer does not count as optimal for Pyomo, and what to do."""
    found = results.result
    if found.answer is None:
        why = _no_answer(found).rstrip(".")
        if len(found.conflict):
            why += "; results.result.conflict says what cannot hold together"
    elif not found.feasible:
        worst = max(found.answer.relative_violation.values(), default=0.0)
        why = (
            f"The values of the {found.method} method violate rows by up to {worst:.2g} of their size: they are a "
            "bound, no solution; use method='exchange'"
        )
    else:
        why = f"The {found.method} method ended with status '{found.status}'"
    return f"{why}. With raise_exception_on_nonoptimal_result=False the results come back instead."
