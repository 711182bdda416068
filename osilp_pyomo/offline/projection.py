"""Projection: replace "for all u" by q rows, the integrals of the row against test functions.

The projected LP is Phi'A x <= Phi'b with the grid's quadrature weights inside Phi. It is a relaxation,
because Phi >= 0: its optimum is a bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import AUTO
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.lp.finite import RowBlock, excess_of, violation_scale
from osilp_pyomo.lp.highs import HighsModel, LPSolution
from osilp_pyomo.lp.models import lp_model
from osilp_pyomo.lp.scaling import example_rows, scaling_for
from osilp_pyomo.offline.conflicts import NO_CONFLICT, Conflict, LabelledRows, find_conflict
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP, examples_at
from osilp_pyomo.offline.rows import BLOCK_SIZE


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """The rows ``lower <= matrix @ x[columns] <= upper`` that stand for one family."""

    family: Family
    functionals: Functionals
    matrix: FloatArray
    lower: FloatArray
    upper: FloatArray

    def violation(self, x: FloatArray) -> tuple[float, float]:
        """Largest violation against a test function (the paper's measure, row by row), and relative to its row."""
        own = x[self.family.rows.columns]
        activity, size = self.matrix @ own, np.abs(self.matrix) @ np.abs(own)
        excess = np.maximum(excess_of(activity, self.lower, self.upper), 0.0)
        scale = violation_scale(activity, size, self.lower, self.upper)
        return float(excess.max()), float(np.max(excess / np.maximum(scale, np.median(scale))))

    def labelled(self) -> LabelledRows:
        """The projected rows with their names; a test function is called by its number."""
        count = len(self.lower)
        block = RowBlock(self.family.rows.columns, self.matrix, self.lower, self.upper)
        return LabelledRows("test function", [self.family.name] * count, range(count), block, np.ones(count))


def project(problem: SemiInfiniteLP, functionals: Sequence[Functionals]) -> tuple[ProjectedRows, ...]:
    """Project every family on its test functions, chunk by chunk."""
    return tuple(
        ProjectedRows(family, phi, *family.project(phi))
        for family, phi in zip(problem.families, functionals, strict=True)
    )


@dataclass(frozen=True, eq=False)
class ProjectedSolution:
    """Solution of the projected LP, with the duals of each family's rows."""

    solution: LPSolution
    priced: LPSolution
    duals: tuple[FloatArray, ...] | None
    memory: int
    conflict: Conflict = NO_CONFLICT
    dropped: bool = False
    bound_is_loose: bool = False


def solve_projected(
    problem: SemiInfiniteLP,
    rows: Sequence[ProjectedRows],
    *,
    time_limit: float | None = None,
    fix_integers: bool = False,
    solver: str = AUTO,
    keep_tiny: bool = False,
) -> ProjectedSolution:
    """Solve the projected LP; ``fix_integers`` asks for prices with the integers at their values."""
    started = time.monotonic()
    most = example_rows(problem.core)
    scaling = scaling_for(problem.core, [examples_at(part.family, part.functionals.points, most) for part in rows])
    model = lp_model(problem.core, scaling, solver, keep_tiny=keep_tiny)
    numbers = [model.add_rows(part.family.rows.columns, part.matrix, part.lower, part.upper) for part in rows]
    if time_limit is not None:
        model.limit_time(time_limit)
    solution = priced = model.solve()
    if fix_integers and solution.x is not None and solution.row_duals is None:
        integers = np.flatnonzero(problem.core.integer)
        assert isinstance(model, HighsModel)
        priced = model.solve_with_fixed(integers, solution.x[integers])
    duals = None
    if priced.row_duals is not None:
        duals = tuple(priced.row_duals[at] for at in numbers)
    # Phi, its points, the projected rows and HiGHS' copy of them, and one block with two temporaries.
    memory = 3 * 8 * BLOCK_SIZE
    for part in rows:
        phi = part.functionals.matrix
        held = phi.nbytes if isinstance(phi, np.ndarray) else phi.data.nbytes + phi.indices.nbytes
        memory += held + part.functionals.points.nbytes + 3 * part.matrix.nbytes
    conflict = NO_CONFLICT
    if solution.status == "infeasible":
        left = None if time_limit is None else max(1e-3, time_limit - (time.monotonic() - started))
        conflict = find_conflict(problem.core, [part.labelled() for part in rows], scaling, left)
    return ProjectedSolution(solution, priced, duals, memory, conflict, model.dropped, model.bound_is_loose)
