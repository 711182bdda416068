"""Stages solved by a Pyomo solver of the user's choice: a small model, filled with the data of each arrival."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import ModelError, OptionError, SolverError
from osilp_pyomo.index.nodes import FUNCTIONS, NODES
from osilp_pyomo.online.stages.batch import Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import Densities, StageSolver
from osilp_pyomo.online.stages.template import StageTemplate


class PyomoStage(StageSolver):
    """A stage as a Pyomo model with mutable Params for weights and data, solved by a named solver."""

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        return not any(family.mixed for family in template.families)

    def __init__(self, evaluator: Evaluator, solver: str) -> None:
        super().__init__(evaluator)
        if not self.solves(self.template):
            raise ModelError(
                f"stage_solver={solver!r}: a row mixes the index with the decision, so a stage has as many terms as "
                "there are grid points; leave stage_solver= out."
            )
        self._solver_name = solver
        self._factory = pyo.SolverFactory(solver)
        if not self._factory.available(exception_flag=False):
            raise OptionError(
                f"stage_solver={solver!r} is neither 'closed form', 'highs', 'newton' nor 'slsqp', and no Pyomo solver "
                "of that name is available here."
            )
        self.name = f"the Pyomo solver {solver}"
        self._model = self._build()

    def __reduce__(self) -> Any:
        return type(self), (self.evaluator, self._solver_name)

    def on(self, evaluator: Evaluator) -> StageSolver:
        return PyomoStage(evaluator, self._solver_name)

    def _build(self) -> Any:
        template = self.template
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(len(template.decisions)), initialize=0.0)
        for j, integer in enumerate(template.integer):
            if integer:
                m.x[j].domain = pyo.Integers
        m.theta = pyo.Param(range(len(template.fields)), mutable=True, initialize=0.0)
        m.weight = pyo.Param(range(len(template.functions)), mutable=True, initialize=0.0)
        rows = range(len(template.own_rows))
        m.own = pyo.Param(rows, range(len(template.functions)), mutable=True, initialize=0.0)
        m.fixed = pyo.Param(rows, mutable=True, initialize=0.0)
        functions = []
        for number, function in enumerate(template.functions):
            if function.formula is None:
                functions.append(m.x[number])
                continue
            data = [m.theta[field] for field in function.slots]
            functions.append(function.formula.fold(float, data, m.x.__getitem__, _node))
        m.value = pyo.Objective(expr=sum(m.weight[k] * h for k, h in enumerate(functions)), sense=pyo.maximize)

        def row(m: Any, r: int) -> Any:
            body = sum(m.own[r, k] * h for k, h in enumerate(functions)) + m.fixed[r]
            return body == 0 if template.own_rows[r].equality else body <= 0

        m.rows = pyo.Constraint(rows, rule=row)
        return m

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        return np.stack([self._solve(batch.part(slice(b, b + 1)), weights[b]) for b in range(len(batch))])

    def _solve(self, one: Batch, weights: FloatArray) -> FloatArray:
        m = self._model
        for j in m.x:
            low, high = one.lower[0, j], one.upper[0, j]
            m.x[j].setlb(float(low) if np.isfinite(low) else None)
            m.x[j].setub(float(high) if np.isfinite(high) else None)
            m.x[j].set_value(float(np.clip(0.0, low, high)), skip_validation=True)
        for number, value in enumerate(one.arrivals.values):
            if isinstance(value, np.ndarray):
                m.theta[number] = float(value[0])
        for k, weight in enumerate(weights.tolist()):
            m.weight[k] = weight
            for r in range(len(self.template.own_rows)):
                m.own[r, k] = float(one.own[0, r, k])
        for r in range(len(self.template.own_rows)):
            m.fixed[r] = float(one.own_fixed[0, r])
        results = self._factory.solve(m)
        if not pyo.check_optimal_termination(results):
            raise SolverError(
                f"The Pyomo solver {self._solver_name} ended the stage problem of the arrival {one.arrivals.name(0)!r} "
                f"with '{results.solver.termination_condition}'."
            )
        x = np.array([pyo.value(m.x[j]) for j in m.x], dtype=float)
        return np.clip(x, one.lower[0], one.upper[0])


def _node(name: str, parts: list[Any]) -> Any:
    """A node of a formula as a Pyomo expression again."""
    if name in ("min", "max"):
        return (numeric.MinExpression if name == "min" else numeric.MaxExpression)(parts)
    if name == "if":
        return pyo.Expr_if(*parts)
    build = NODES[name].apply or (getattr(pyo, name) if name in FUNCTIONS else None)
    if build is None:
        raise ModelError(f"stage_solver=: the term {name} cannot be given to a Pyomo solver.")
    return build(*parts)
