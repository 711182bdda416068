"""The Pyomo ways in: ``SolverFactory("osilp")`` and two transformations.

They exist once osilp_pyomo is imported; Pyomo does not look for other packages by itself. What they need to solve is
loaded when they are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo
from pyomo.common.config import ConfigDict, ConfigValue
from pyomo.common.modeling import unique_component_name
from pyomo.contrib.solver.common.results import (
    Results,
    SolutionStatus,
    TerminationCondition,
    legacy_solver_status_map,
    legacy_termination_condition_map,
)
from pyomo.core.base.transformation import Transformation, TransformationFactory
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.core.expr.relational_expr import RangedExpression
from pyomo.opt import SolverFactory

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import BASIS, GRID, SOLVE, Option
from osilp_pyomo._version import __version__
from osilp_pyomo.errors import ModelError, OptionError
from osilp_pyomo.model.constraint import SemiInfiniteConstraintData

if TYPE_CHECKING:
    from osilp_pyomo.model.trace import TracedModel
    from osilp_pyomo.offline.problem import Family
    from osilp_pyomo.offline.results import Result

__all__ = ["Discretize", "OsilpResults", "OsilpSolver", "Project"]

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


def _declared(options: Iterable[Option], **renamed: str) -> ConfigDict:
    """Options as Pyomo declares them, some under the names that Pyomo has for them."""
    config = ConfigDict()
    for option in options:
        entry = ConfigValue(default=option.default, description=option.sentence)
        config.declare(renamed.get(option.name, option.name), entry)
    return config


def _options(config: ConfigDict, given: dict[str, Any], what: str) -> dict[str, Any]:
    unknown = sorted(set(given) - set(config))
    if unknown:
        raise OptionError(f"{what}: there is no option '{unknown[0]}'; the options are {', '.join(config)}.")
    return {**dict(config.items()), **given}


# -- SolverFactory("osilp") ------------------------------------------------------------------------


class OsilpResults(Results):
    """Pyomo's results, with the whole :class:`Result` as ``result``.

    ``solution_status`` is optimal when violation and gap are within tolerance, and infeasible when the
    values violate rows: a discretized or projected answer that does is a bound, not a solution.

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
    """

    def __init__(self, result: Result, config: dict[str, Any]) -> None:
        super().__init__()
        self.termination_condition = _CONDITIONS[result.status]
        self.solution_status = _solution_status(result)
        has_point = self.solution_status in (SolutionStatus.optimal, SolutionStatus.feasible)
        self.incumbent_objective = result.objective if has_point else None
        self.objective_bound = result.bound if result.status in ("optimal", "inaccurate", "time_limit") else None
        self.solver_name = "osilp"
        self.solver_version = tuple(int(part) for part in __version__.split("."))
        self.timing_info.wall_time = result.seconds
        self.extra_info.method = config["method"]
        object.__setattr__(self, "result", result)

    def __str__(self) -> str:
        """What was found, in the words of the result; ``display()`` shows what Pyomo keeps."""
        if hasattr(self, "result"):
            return str(self.result)
        # A copy that Pyomo made knows nothing of ours.
        shown = StringIO()
        self.display(ostream=shown)
        return shown.getvalue()

    @property
    def solver(self) -> SimpleNamespace:
        """Status and termination condition as older Pyomo code reads them."""
        return SimpleNamespace(
            status=legacy_solver_status_map[self.termination_condition],
            termination_condition=legacy_termination_condition_map[self.termination_condition],
        )


def _solution_status(result: Result) -> SolutionStatus:
    if result.answer is None:
        return SolutionStatus.noSolution
    if not result.feasible:
        return SolutionStatus.infeasible
    return SolutionStatus.optimal if result.status == "optimal" else SolutionStatus.feasible


@SolverFactory.register("osilp", doc="Semi-infinite linear programs by exchange, discretization or projection")
class OsilpSolver:
    """``SolverFactory("osilp")``: :func:`osilp_pyomo.solve` with Pyomo's results.

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
    >>> with pyo.SolverFactory("osilp", tolerance=1e-8) as solver:
    ...     results = solver.solve(m)
    >>> solver.available(), solver.license_is_valid(), solver.version()
    (True, True, (0, 1, 0))
    >>> pyo.check_optimal_termination(results), round(pyo.value(m.x), 6)
    (True, 1.0)
    >>> sorted(OsilpSolver.CONFIG)[:4]
    ['basis', 'fix_integers', 'grid', 'iteration_limit']
    """

    name = "osilp"
    CONFIG = _declared(SOLVE, load="load_solutions")

    def __init__(self, **options: Any) -> None:
        self.options = _options(self.CONFIG, options, "SolverFactory('osilp')")

    def __enter__(self) -> OsilpSolver:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""

    def available(self, exception_flag: bool = True) -> bool:
        """HiGHS is installed with this package, so it always is."""
        return True

    def license_is_valid(self) -> bool:
        """No licence is needed."""
        return True

    def version(self) -> tuple[int, ...]:
        """Version of this package."""
        return tuple(int(part) for part in __version__.split("."))

    def solve(self, model: Any, **options: Any) -> OsilpResults:
        """Solve a model; the options are those of :func:`osilp_pyomo.solve`, ``load_solutions`` for ``load``."""
        from osilp_pyomo.api import solve

        chosen = _options(self.CONFIG, {**self.options, **options}, "SolverFactory('osilp').solve")
        arguments = dict(chosen)
        arguments["load"] = arguments.pop("load_solutions")
        return OsilpResults(solve(model, **arguments), chosen)


# -- transformations ---------------------------------------------------------------------------------


class _ToFiniteRows(Transformation):
    """Replaces each active semi-infinite constraint by ordinary rows on a new Block.

    The rows hold numbers: after a Param changes, transform again. The constraint itself stays on the
    model, deactivated.
    """

    CONFIG: ConfigDict
    name: str

    def _apply_to(self, model: Any, **options: Any) -> None:
        from osilp_pyomo.model.integrals.dae import write_exact_integrals
        from osilp_pyomo.model.trace import trace_model

        chosen = _options(self.CONFIG, options, f"TransformationFactory('{self.name}')")
        traced = trace_model(model)
        rows = self._rows(traced, chosen)
        block = pyo.Block(concrete=True)
        model.add_component(unique_component_name(model, self.name.replace(".", "_")), block)
        equations = [(each.block.matrix, each.block.lower, each.block.upper, each.labels) for each in traced.matched]
        families = [*traced.problem.families, *(each.family for each in traced.matched)]
        for data, family, (matrix, lower, upper, labels) in zip(
            (*traced.families, *traced.equations), families, [*rows, *equations], strict=True
        ):
            constraint = _finite_constraint(traced, family, matrix, lower, upper)
            block.add_component(unique_component_name(block, data.local_name.replace(".", "_")), constraint)
            # Two references and no ids: private data is cloned with the model.
            block.private_data("osilp_pyomo").setdefault("sources", []).append((constraint, data, labels))
        for data in (*traced.families, *traced.equations):
            data.deactivate()
        write_exact_integrals(model)

    def _rows(self, traced: TracedModel, options: dict[str, Any]) -> list[Any]:
        """For each family: matrix, lower, upper, and what each row stands for."""
        raise RuntimeError("abstract")

    def get_src_constraint(self, row: Any) -> SemiInfiniteConstraintData:
        """The semi-infinite constraint that a row was made from."""
        return self._source(row)[1]

    def get_label(self, row: Any) -> Any:
        """What a row stands for: its point of the index, or the name of its test function."""
        return self._source(row)[2][row.index()]

    def get_transformed_constraints(self, family: Any) -> Any:
        """The Constraint that holds the rows of a family; the newest, if it was transformed again."""
        for block in reversed(list(family.model().component_objects(pyo.Block, descend_into=True))):
            for constraint, data, _ in _sources(block):
                if data is family:
                    return constraint
        raise ModelError(f"'{family.name}' was not transformed by {self.name}.")

    def _source(self, row: Any) -> Any:
        owner = row.parent_component()
        for found in _sources(owner.parent_block()):
            if found[0] is owner:
                return found
        raise ModelError(f"'{row.name}' is no row made by {self.name}.")


def _sources(block: Any) -> list[Any]:
    """For each Constraint that a transformation put on a block: itself, its family, and its rows' labels."""
    if block.is_indexed():
        return []
    return block.private_data("osilp_pyomo").get("sources", [])


def _finite_constraint(
    traced: TracedModel, family: Family, matrix: FloatArray, lower: FloatArray, upper: FloatArray
) -> Any:
    variables = [traced.variables[column] for column in family.rows.columns]

    def row(_: Any, k: int) -> Any:
        body = LinearExpression(constant=0, linear_coefs=matrix[k].tolist(), linear_vars=variables)
        low, high = float(lower[k]), float(upper[k])
        if low == -float("inf"):
            return body <= high
        # Not by inequality(low, body, high): of two limits that cross it makes a plain False.
        return body >= low if high == float("inf") else RangedExpression((low, body, high), False)

    return pyo.Constraint(range(len(matrix)), rule=row)


@TransformationFactory.register("osilp.discretize", doc="Semi-infinite constraints as rows at the points of a grid")
class Discretize(_ToFiniteRows):
    """``TransformationFactory("osilp.discretize")``: one ordinary row for each grid point.

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
    >>> rows = pyo.TransformationFactory("osilp.discretize").create_using(m, grid=osilp.Midpoint(50))
    >>> results = pyo.SolverFactory("appsi_highs").solve(rows)  # any solver
    >>> round(rows.x.value, 4), m.x.value
    (0.9996, None)
    """

    name = "osilp.discretize"
    CONFIG = _declared([GRID])

    def _rows(self, traced: TracedModel, options: dict[str, Any]) -> list[Any]:
        placed = traced.place_grids(options["grid"])
        return [
            (family.matrix(each.points), *family.limits(each.points), [each.domain.label(p) for p in each.points])
            for family, each in zip(traced.problem.families, placed, strict=True)
        ]


@TransformationFactory.register("osilp.project", doc="Semi-infinite constraints as rows on test functions")
class Project(_ToFiniteRows):
    """``TransformationFactory("osilp.project")``: one ordinary row for each test function.

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
    >>> rows = pyo.TransformationFactory("osilp.project").create_using(m, basis=osilp.Hat(20))
    >>> results = pyo.SolverFactory("appsi_highs").solve(rows)
    >>> round(rows.x.value, 4)  # below 1: rows hold on average only
    0.9954
    """

    name = "osilp.project"
    CONFIG = _declared([GRID, BASIS])

    def _rows(self, traced: TracedModel, options: dict[str, Any]) -> list[Any]:
        from osilp_pyomo.offline.projection import project

        functionals = traced.place_bases(options["grid"], options["basis"])
        return [
            (part.matrix, part.lower, part.upper, list(part.functionals.labels))
            for part in project(traced.problem, functionals)
        ]
