"""``SolverFactory("osilp.robust")``: the call of PyROS, answered by duality and exact separation.

It exists once osilp_pyomo is imported. What it needs to solve is loaded when it is used.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo
from pyomo.opt import SolverFactory

from osilp_pyomo._version import __version__
from osilp_pyomo.errors import DeclarationError, OptionError

if TYPE_CHECKING:
    from osilp_pyomo.offline.results import Result

# What decision rules of an order are; states follow the decisions, and the data affinely in any case.
_RULES = {0: "constant", 1: "affine", 2: "quadratic"}
# Options of PyROS that choose how its subproblems are solved, of which there are none here.
_NOT_NEEDED = (
    "keepfiles", "symbolic_solver_labels", "solve_master_globally", "robust_feasibility_tolerance",
    "separation_priority_order", "progress_logger", "backup_local_solvers", "backup_global_solvers",
    "subproblem_file_directory", "subproblem_format_options", "bypass_local_separation", "bypass_global_separation",
    "p_robustness",
)  # fmt: skip


@SolverFactory.register("osilp.robust", doc="Robust linear models: the call of PyROS, without subordinate solvers")
class RobustSolver:
    """``SolverFactory("osilp.robust")`` takes what ``SolverFactory("pyros")`` takes, by position too.

    First-stage variables are decided before the uncertain data are seen; second-stage variables are decision rules of
    ``decision_rule_order`` 0, 1 or 2 that see all of them; all other variables are states, which equations determine,
    and are matched as affine functions. The local and global solver are not needed. What is not linear is refused.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.pyros import BoxSet, ObjectiveType
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.demand = pyo.Param(initialize=4, mutable=True)
    >>> m.make, m.buy, m.stock = pyo.Var(bounds=(0, 5)), pyo.Var(bounds=(0, None)), pyo.Var(bounds=(0, None))
    >>> m.balance = pyo.Constraint(expr=m.stock == m.make + m.buy - m.demand)
    >>> m.cost = pyo.Objective(expr=m.make + 3 * m.buy)
    >>> results = pyo.SolverFactory("osilp.robust").solve(
    ...     m, [m.make], [m.buy], [m.demand], BoxSet([(2, 7)]),
    ...     decision_rule_order=1, objective_focus=ObjectiveType.worst_case)
    >>> print(results.pyros_termination_condition, round(results.final_objective_value, 6), round(m.make.value, 6))
    pyrosTerminationCondition.robust_optimal 11.0 5.0
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def available(self, exception_flag: bool = True) -> bool:
        """It needs nothing that is not installed."""
        return True

    def license_is_valid(self) -> bool:
        """It needs none."""
        return True

    def version(self) -> tuple[int, ...]:
        """The version of this package."""
        return tuple(int(part) for part in __version__.split("."))

    def __enter__(self) -> RobustSolver:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def solve(
        self,
        model: Any,
        first_stage_variables: Any,
        second_stage_variables: Any,
        uncertain_params: Any,
        uncertainty_set: Any,
        local_solver: Any = None,
        global_solver: Any = None,
        **options: Any,
    ) -> Any:
        """Solve a deterministic model robustly.

        Parameters
        ----------
        model : ConcreteModel
            Linear in its variables, and in its uncertain data for given variables.
        first_stage_variables, second_stage_variables : Var, member of one, or list of them
        uncertain_params : Param, fixed Var, member of one, or list of them
        uncertainty_set : UncertaintySet
        local_solver, global_solver : optional
            Not needed.
        **options
            Those of PyROS. ``objective_focus``, ``nominal_uncertain_param_vals``, ``decision_rule_order``,
            ``time_limit``, ``max_iter``, ``tee`` and ``load_solution`` mean the same; others choose how subproblems are
            solved, of which there are none.

        Returns
        -------
        ROSolveResults
            That of PyROS, with the whole :class:`Result` as ``result`` and the robust model as ``robust``.
        """
        from pyomo.contrib.pyros.solve_data import ROSolveResults

        from osilp_pyomo.api import solve
        from osilp_pyomo.robust.robustify import robustify

        started = time.monotonic()
        chosen = self._chosen(options)
        first, second = _variables(first_stage_variables, "first"), _variables(second_stage_variables, "second")
        uncertain = _listed(uncertain_params)
        order = chosen["decision_rule_order"]
        rules = [] if order == 0 else second
        states = _states(model, [*first, *second], uncertain)
        robust = robustify(
            model,
            [(uncertain, uncertainty_set)],
            adjustable=[*rules, *states],
            objective=chosen["objective"],
            basis=_RULES[max(order, 1)],
            nominal=chosen["nominal_uncertain_param_vals"] or None,
        )
        limit = chosen["time_limit"]
        result = solve(
            robust,
            load=False,
            tee=chosen["tee"],
            progress=False,
            time_limit=None if limit is None else max(1e-3, limit - (time.monotonic() - started)),
            iteration_limit=500 if chosen["max_iter"] == -1 else chosen["max_iter"],
        )
        if chosen["load_solution"] and result.answer is not None:
            result.load(model)
        found = ROSolveResults(
            config=chosen,
            iterations=max(1, len(result.log)),
            time=time.monotonic() - started,
            final_objective_value=None if result.answer is None else result.objective,
            pyros_termination_condition=_condition(result),
        )
        found.result, found.robust = result, robust
        return found

    def _chosen(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options that mean something here, checked."""
        from pyomo.contrib.pyros.util import ObjectiveType

        given = {**self.options, **options.pop("options", {}), **options}
        chosen: dict[str, Any] = {
            "objective_focus": ObjectiveType.nominal,
            "nominal_uncertain_param_vals": [],
            "decision_rule_order": 0,
            "time_limit": None,
            "max_iter": -1,
            "tee": False,
            "load_solution": True,
        }
        unknown = sorted(set(given) - set(chosen) - set(_NOT_NEEDED))
        if unknown:
            raise OptionError(
                f"SolverFactory('osilp.robust').solve: there is no option '{unknown[0]}'; those that count are "
                f"{', '.join(chosen)}."
            )
        chosen |= {name: value for name, value in given.items() if name in chosen}
        if chosen["decision_rule_order"] not in _RULES:
            raise OptionError(
                "SolverFactory('osilp.robust').solve: decision_rule_order must be 0, 1 or 2 "
                f"(got {chosen['decision_rule_order']!r})."
            )
        focus = chosen["objective_focus"]
        try:
            focus = ObjectiveType[focus] if isinstance(focus, str) else ObjectiveType(focus)
        except (KeyError, ValueError):
            raise OptionError(
                "SolverFactory('osilp.robust').solve: objective_focus must be ObjectiveType.worst_case or "
                f"ObjectiveType.nominal of PyROS (got {focus!r})."
            ) from None
        chosen["objective"] = "worst" if focus is ObjectiveType.worst_case else "nominal"
        return chosen


def _listed(given: Any) -> list[Any]:
    """Components one by one; lists may hold lists."""
    if hasattr(given, "ctype") or not isinstance(given, Iterable) or isinstance(given, str):
        return [given]
    return [one for each in given for one in _listed(each)]


def _variables(given: Any, stage: str) -> list[Any]:
    """Members of Vars one by one; fixed ones are data."""
    found = []
    for each in _listed(given):
        if getattr(each, "ctype", None) is not pyo.Var:
            raise DeclarationError(
                f"SolverFactory('osilp.robust').solve: {stage}_stage_variables takes Vars, their members, or lists of "
                f"them (got {type(each).__name__})."
            )
        members = each.values() if each.is_indexed() else [each]
        found += [member for member in members if not member.fixed]
    return found


def _states(model: Any, known: list[Any], uncertain: list[Any]) -> list[Any]:
    """Free variables of the active rows and objective that belong to no stage."""
    from pyomo.core.expr.visitor import identify_variables

    seen = {id(each) for each in known}
    found = []
    for kind in (pyo.Objective, pyo.Constraint):
        for row in model.component_data_objects(kind, active=True, descend_into=True):
            for variable in identify_variables(row.expr, include_fixed=False):
                if id(variable) not in seen:
                    seen.add(id(variable))
                    found.append(variable)
    return found


def _condition(result: Result) -> Any:
    """How PyROS would say that it ended."""
    from pyomo.contrib.pyros.util import pyrosTerminationCondition as Condition

    known = {
        "optimal": Condition.robust_optimal,
        "inaccurate": Condition.robust_feasible if result.feasible else Condition.subsolver_error,
        "infeasible": Condition.robust_infeasible,
        "time_limit": Condition.time_out,
        "iteration_limit": Condition.max_iter,
    }
    return known.get(result.status, Condition.subsolver_error)
