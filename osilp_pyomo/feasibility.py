"""Points with room: the Slater points that turn a relaxation's answer into a feasible one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from osilp_pyomo.domains import FloatArray
from osilp_pyomo.highs import HighsModel, row_sizes
from osilp_pyomo.problem import Family, FiniteLP, SemiInfiniteLP
from osilp_pyomo.search import Found, Search

_ROUNDS = 30
_ROWS_A_ROUND = 30


@dataclass(frozen=True, eq=False)
class RoomyPoint:
    """A point that satisfies the ordinary rows, and the room it leaves in each family."""

    x: FloatArray
    room: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Widest:
    """The most room that any point can have, in units of each family's scale, up to a factor 2.

    Negative: no point satisfies all rows. ``point`` is one that has room, where there is any.
    """

    room: float
    point: RoomyPoint | None


def slater_point(
    problem: SemiInfiniteLP, searches: Sequence[Search], rows: Sequence[FloatArray], x: FloatArray
) -> RoomyPoint | None:
    """A point with room in every family, integers as in x; None where none is found.

    ``rows`` are points of each family that the LP for the widest room starts with.
    """
    core = problem.core
    # Nothing at all is often feasible with room to spare, and costs one scan to try.
    simple = np.clip(0.0, core.column_lower, core.column_upper)
    simple[core.integer] = x[core.integer]
    if core.violation(simple) <= 1e-12:
        room = tuple(-search.worst(simple).worst for search in searches)
        if min(room, default=1.0) > 0:
            return RoomyPoint(simple, room)
    widest = widest_point(problem, searches, rows, x)
    return None if widest is None else widest.point


def widest_point(
    problem: SemiInfiniteLP, searches: Sequence[Search], rows: Sequence[FloatArray], x: FloatArray | None
) -> Widest | None:
    """Maximize the room common to all families; integers are held at their values in x, if it is given.

    Stops as soon as a point with half the room of the LP is seen to have it on the whole domain.
    """
    core, families = problem.core, problem.families
    scales = [_scale(search) for search in searches]
    model = HighsModel(_with_room(core, x))
    for number, points in enumerate(rows):
        if len(points):
            _add_rows(model, families[number], points, core.columns, scales[number])
    for _ in range(_ROUNDS):
        solution = model.solve()
        if solution.status != "optimal" or solution.x is None:
            return None
        room, point = float(solution.x[-1]), solution.x[:-1]
        if room <= 1e-12:
            return Widest(room, None)
        found = [search.worst(point) for search in searches]
        if all(-each.worst >= 0.5 * room * scale for each, scale in zip(found, scales, strict=True)):
            return Widest(room, RoomyPoint(point, tuple(-each.worst for each in found)))
        for number, each in enumerate(found):
            crowded = each.points[-each.excess < 0.5 * room * scales[number]][:_ROWS_A_ROUND]
            if len(crowded):
                _add_rows(model, families[number], crowded, core.columns, scales[number])
    return None


def repaired(core: FiniteLP, x: FloatArray, found: Sequence[Found], inner: RoomyPoint) -> FloatArray:
    """Move x towards a point with room, just far enough to remove every violation that was found.

    A share v / (v + s) of the way removes a violation v where the other point has room s.
    """
    share = 0.0
    for each, room in zip(found, inner.room, strict=True):
        if each.worst > 0:
            # The rounding of the row's own terms is part of what has to be removed.
            excess = each.worst + 4e-16 * each.scale
            share = max(share, excess / (excess + room))
    moved = x + share * (inner.x - x)
    moved[core.integer] = x[core.integer]
    return np.clip(moved, core.column_lower, core.column_upper)


def _with_room(core: FiniteLP, x: FloatArray | None) -> FiniteLP:
    """The ordinary rows with one more column, the room, which is maximized and at most 1."""
    lower, upper = core.column_lower.copy(), core.column_upper.copy()
    if x is not None:
        lower[core.integer] = upper[core.integer] = x[core.integer]
    return FiniteLP(
        True,
        np.append(np.zeros(core.columns), 1.0),
        0.0,
        np.append(lower, -np.inf),
        np.append(upper, 1.0),
        np.append(core.integer & (x is None), False),
        sparse.csr_array(sparse.hstack([core.matrix, sparse.csr_array((len(core.row_lower), 1))])),
        core.row_lower,
        core.row_upper,
        [],
        [],
    )


def _add_rows(model: HighsModel, family: Family, points: FloatArray, room_column: int, scale: float) -> None:
    columns = np.append(family.rows.columns, room_column)
    matrix = family.matrix(points)
    lower, upper = family.limits(points)
    size = row_sizes(matrix)
    for limit, sign in ((upper, 1.0), (-lower, -1.0)):
        kept = np.isfinite(limit)
        if kept.any():
            rows = np.column_stack([sign * matrix, np.full(len(points), scale)])[kept] / size[kept, None]
            model.add_rows(columns, rows, np.full(len(rows), -np.inf), limit[kept] / size[kept])


def _scale(search: Search) -> float:
    """Typical size of a family's limits, for measuring room."""
    limits = np.concatenate([limit[np.isfinite(limit)] for limit in (search.lower, search.upper)])
    size = float(np.abs(limits).mean()) if len(limits) else 0.0
    return size or 1.0
