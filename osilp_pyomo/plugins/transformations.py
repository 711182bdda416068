"""``TransformationFactory("osilp.discretize")`` and ``("osilp.project")``: rows as ordinary ones, for any solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo
from pyomo.common.config import ConfigDict
from pyomo.common.modeling import unique_component_name
from pyomo.core.base.transformation import Transformation, TransformationFactory
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.core.expr.relational_expr import RangedExpression

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import BASIS, GRID
from osilp_pyomo.errors import ModelError
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.plugins.options import declared, given_over

if TYPE_CHECKING:
    from osilp_pyomo.model.trace import TracedModel
    from osilp_pyomo.offline.problem import Family


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

        chosen = given_over(self.CONFIG, options, f"TransformationFactory('{self.name}')")
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
    CONFIG = declared([GRID])

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
    CONFIG = declared([GRID, BASIS])

    def _rows(self, traced: TracedModel, options: dict[str, Any]) -> list[Any]:
        from osilp_pyomo.offline.projection import project

        functionals = traced.place_bases(options["grid"], options["basis"])
        return [
            (part.matrix, part.lower, part.upper, list(part.functionals.labels))
            for part in project(traced.problem, functionals)
        ]
