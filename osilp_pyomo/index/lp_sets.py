"""Convex sets without a closed form: polytopes by linear programs, intersections by linear or convex ones.

Also the local search that all convex sets share: a smooth function maximized by sequential quadratic programming
(scipy's SLSQP) in the coordinates of the set's :class:`~osilp_pyomo.index.extended_form.Lift`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, minimize

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DomainError, SolverError
from osilp_pyomo.index.convex_sets import MEMBERSHIP, Body
from osilp_pyomo.index.enclosures.regions import ConvexRegion, Region
from osilp_pyomo.index.extended_form import Lift, intersection_lift
from osilp_pyomo.lp.conic import safe_bound, solve_cones
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.scaling import scaling_for

# What a cone program's safe bound may be above its value, relative to 1 + |value|, for its point to be the farthest.
_PROVED = 1e-8
# Directions, each to both sides, whose farthest points have the centre in their middle where there would be many.
_CENTRED = 2
# Dimensions up to which a set has its smallest box and its centre in the middle of that, at two programs each: cone
# programs, and linear ones.
_BOXED, _BOXED_BY_LP = 8, 32
# How often bounds of coordinates are taken from those of others, in how many entries of the rows at most, and by which
# share of the terms they are wider than computed.
_PASSES, _PASSED_ENTRIES, _PASSED_ROUNDING = 4, 4_000_000, 1e-12


class LinearOracle:
    """Maximizes linear functions over the linear part of a description, one warm HiGHS model for all of them."""

    def __init__(self, lift: Lift, what: str) -> None:
        self._what = what
        self._lift = lift
        program = FiniteLP(
            maximize=True,
            cost=np.zeros(lift.coordinates),
            column_lower=lift.lower,
            column_upper=lift.upper,
            matrix=sparse.csr_array(lift.rows),
            row_lower=lift.row_lower,
            row_upper=lift.row_upper,
        )
        # HiGHS' tolerances are absolute: a coordinate counts in units of what the rows let it be.
        scaling = scaling_for(program, [])
        self._units = scaling.units
        self._model = HighsModel(program, scaling)

    def maximize(self, cost: FloatArray) -> FloatArray:
        """The coordinates z where ``cost @ z`` is largest; an empty or unbounded set is refused."""
        # Nor must a direction in small units be taken for none.
        self._model.change_costs(cost / (float(np.abs(cost * self._units).max(initial=0.0)) or 1.0))
        solution = self._model.solve()
        if solution.x is not None:
            return solution.x
        if solution.status == "infeasible":
            raise DomainError(f"{self._what} is empty: no vector satisfies all of its rows; look for rows in conflict.")
        if solution.status in ("unbounded", "infeasible_or_unbounded"):
            raise DomainError(
                f"{self._what} is unbounded: a row can be violated without end there; add bounds to the set."
            )
        raise SolverError(f"{self._what}: HiGHS ended with status '{solution.status}' while looking for a point of it.")


def local_maximum(
    lift: Lift,
    function: Callable[[FloatArray], float],
    gradient: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    iterations: int = 300,
) -> FloatArray:
    """Coordinates z of a local maximum of a smooth function of z, by SLSQP from a start.

    What SLSQP leaves outside of the set by rounding is for the caller to judge.
    """
    constraints: list[dict[str, Any]] = []
    equal = lift.row_lower == lift.row_upper
    if equal.any():
        rows, right = lift.rows[equal], lift.row_upper[equal]
        constraints.append({"type": "eq", "fun": lambda z: rows @ z - right, "jac": lambda z: rows})
    for limit, sign in ((lift.row_upper, 1.0), (lift.row_lower, -1.0)):
        kept = ~equal & np.isfinite(limit)
        if kept.any():
            side, end = -sign * lift.rows[kept], sign * limit[kept]
            constraints.append({"type": "ineq", "fun": lambda z, s=side, r=end: s @ z + r, "jac": lambda z, s=side: s})
    for ball in lift.balls:
        constraints.append(
            {
                "type": "ineq",
                "fun": lambda z, b=ball: 1.0 - float(np.sum((b.matrix @ z - b.centre) ** 2)),
                "jac": lambda z, b=ball: -2.0 * (b.matrix @ z - b.centre) @ b.matrix,
            }
        )
    size = max(1e-300, float(np.abs(gradient(start)).max(initial=0.0)))
    solver: Any = minimize
    found = solver(
        lambda z: -function(z) / size,
        start,
        jac=lambda z: -gradient(z) / size,
        bounds=Bounds(lift.lower, lift.upper),
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": iterations},
    )
    reached: FloatArray = np.clip(found.x, lift.lower, lift.upper)
    return reached if np.all(np.isfinite(reached)) else start


class LiftedBody(Body):
    """A convex set known by its description only."""

    def __init__(self, lift: Lift, what: str) -> None:
        self._lift = lift
        self._what = what
        self.dimension = len(lift.offset)
        self.separation = "convex program" if lift.cones else "linear program"
        self._oracle: LinearOracle | None = None
        self._find_box()

    def _find_box(self) -> None:
        """The smallest box around the set; an empty or unbounded set is refused."""
        axes = np.eye(self.dimension)
        self.upper = np.diagonal(self.support(axes)).copy()
        self.lower = np.diagonal(self.support(-axes)).copy()

    def __getstate__(self) -> dict[str, Any]:
        """HiGHS models do not travel; a new one is made where it is needed."""
        return {**self.__dict__, "_oracle": None}

    def __str__(self) -> str:
        return self._what

    def lift(self) -> Lift:
        return self._lift

    @cached_property
    def centre(self) -> FloatArray:
        """A point in its middle: where farthest points cost a program each, and are many, that of a few of them."""
        if not self._lift.cones and self.dimension <= _BOXED_BY_LP:
            return super().centre
        some = np.random.default_rng(0).normal(size=(_CENTRED, self.dimension))
        return self.support(np.concatenate([some, -some])).mean(axis=0)

    def _linear(self) -> LinearOracle:
        if self._oracle is None:
            self._oracle = LinearOracle(self._lift, self._what)
        return self._oracle

    def support(self, directions: FloatArray) -> FloatArray:
        costs = directions @ self._lift.matrix
        if self._lift.cones:
            z = self._in_cones(costs)
        else:
            oracle = self._linear()
            z = np.array([oracle.maximize(cost) for cost in costs])
        return self._lift.points(z.reshape(len(directions), -1))

    def _in_cones(self, costs: FloatArray) -> FloatArray:
        """Where linear functions are largest, by a cone program each; the largest doubt is kept as ``margin``."""
        found = []
        for cost in costs:
            size = float(np.abs(cost).max(initial=0.0))
            program = self._lift.program(cost / (size or 1.0))
            solution = solve_cones(program)
            if solution.x is None:
                raise DomainError(self._why_no_point(solution.status))
            reached = float(program.lp.cost @ solution.x)
            bound = safe_bound(program, solution, self._lift.largest)
            if not bound - reached <= _PROVED * (1.0 + abs(reached)):
                # Nothing proves that this is the farthest point: whoever asks is told that it was looked for only.
                self.separation = "search"
            found.append(solution.x)
        return np.array(found).reshape(len(costs), -1)

    def _why_no_point(self, status: str) -> str:
        if status == "infeasible":
            return f"{self._what} is empty: no vector satisfies all of its rows; look for rows in conflict."
        if status == "unbounded":
            return f"{self._what} is unbounded: a row can be violated without end there; add bounds to the set."
        return f"{self._what} has no point that could be found: its parts at best touch; make one of them larger."


class PolytopeBody(LiftedBody):
    """``rows @ xi <= limits``; bounded, unless it is a ``part`` of an intersection.

    Examples
    --------
    >>> triangle = PolytopeBody(np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), np.array([1.0, 0.0, 0.0]))
    >>> triangle.support(np.array([[1.0, 2.0]]))
    array([[0., 1.]])
    """

    def __init__(
        self, rows: FloatArray, limits: FloatArray, what: str = "the polyhedral set", *, part: bool = False
    ) -> None:
        self._rows, self._limits = rows.astype(float), limits.astype(float)
        self._part = part
        super().__init__(Lift.plain(rows.shape[1], rows=self._rows, row_upper=self._limits), what)

    def _find_box(self) -> None:
        if self._part:
            # Another part may bound it.
            self.lower, self.upper = np.full(self.dimension, -np.inf), np.full(self.dimension, np.inf)
            return
        self.lower, self.upper = self._bounds_in_rows()
        if self.dimension <= _BOXED_BY_LP or not np.all(np.isfinite(self.lower) & np.isfinite(self.upper)):
            super()._find_box()
        else:
            # That there is a point at all.
            self.support(np.zeros((1, self.dimension)))
        self._lift = replace(self._lift, known_largest=np.maximum(np.abs(self.lower), np.abs(self.upper)))

    def _bounds_in_rows(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of single coordinates among the rows."""
        single = np.flatnonzero(np.count_nonzero(self._rows, axis=1) == 1)
        column = np.argmax(self._rows[single] != 0, axis=1)
        factor = self._rows[single, column]
        ends = self._limits[single] / factor
        lower, upper = np.full(self.dimension, -np.inf), np.full(self.dimension, np.inf)
        np.minimum.at(upper, column[factor > 0], ends[factor > 0])
        np.maximum.at(lower, column[factor < 0], ends[factor < 0])
        for _ in range(_PASSES if self._rows.size <= _PASSED_ENTRIES else 0):
            if np.all(np.isfinite(lower) & np.isfinite(upper)):
                break
            lower, upper = self._bounds_by_others(lower, upper)
        return lower, upper

    def _bounds_by_others(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of coordinates by rows whose other coordinates have bounds, a rounding wider."""
        rows = self._rows
        with np.errstate(invalid="ignore"):
            least = np.where(rows > 0, rows * lower, np.where(rows < 0, rows * upper, 0.0))
        endless = np.isinf(least)
        least = np.where(endless, 0.0, least)
        others = endless.sum(axis=1)[:, None] - endless
        room = self._limits[:, None] - (least.sum(axis=1)[:, None] - least)
        room = room + _PASSED_ROUNDING * (np.abs(self._limits) + np.abs(least).sum(axis=1))[:, None]
        room = np.where(others == 0, room, np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(rows != 0, room / rows, np.nan)
        upper = np.minimum(upper, np.nanmin(np.where(rows > 0, ends, np.inf), axis=0, initial=np.inf))
        lower = np.maximum(lower, np.nanmax(np.where(rows < 0, ends, -np.inf), axis=0, initial=-np.inf))
        return lower, upper

    def contains(self, points: FloatArray) -> BoolArray:
        size = 1.0 + np.abs(points) @ np.abs(self._rows.T)
        return np.all(points @ self._rows.T - self._limits <= MEMBERSHIP * size, axis=1)


class IntersectionBody(LiftedBody):
    """The intersection of several convex sets.

    Examples
    --------
    >>> from osilp_pyomo.index.convex_sets import BoxBody, EllipsoidBody
    >>> disc, square = EllipsoidBody(np.zeros(2), np.eye(2)), BoxBody(np.full(2, -0.6), np.full(2, 0.6))
    >>> np.round(IntersectionBody((disc, square)).support(np.array([[1.0, 0.1]])), 6)
    array([[0.6, 0.6]])
    """

    def __init__(self, parts: Sequence[Body], what: str = "the intersection of sets") -> None:
        self.parts = tuple(parts)
        super().__init__(intersection_lift([part.lift() for part in self.parts]), what)

    def _find_box(self) -> None:
        """The smallest box; where farthest points cost a cone program each, what its parts have in common."""
        lower = np.max([part.lower for part in self.parts], axis=0)
        upper = np.min([part.upper for part in self.parts], axis=0)
        cheap = not self._lift.cones or self.dimension <= _BOXED
        if cheap or not np.all(np.isfinite(lower) & np.isfinite(upper)):
            super()._find_box()
        else:
            inside = self.support(np.zeros((1, self.dimension)))[0]
            self.lower, self.upper = np.minimum(lower, inside), np.maximum(upper, inside)
        if self._lift.plain_coordinates:
            self._lift = replace(self._lift, known_largest=np.maximum(np.abs(self.lower), np.abs(self.upper)))

    def region(self) -> Region | None:
        known = [region for region in (part.region() for part in self.parts) if isinstance(region, ConvexRegion)]
        if not known:
            return None
        # Parts that nothing is known of are left out, which makes the region larger.
        return ConvexRegion(
            np.concatenate([region.rows for region in known]),
            np.concatenate([region.limits for region in known]),
            tuple(ball for region in known for ball in region.balls),
            exact=len(known) == len(self.parts) and all(region.exact for region in known),
        )

    def contains(self, points: FloatArray) -> BoolArray:
        return np.all([part.contains(points) for part in self.parts], axis=0)
