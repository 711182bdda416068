"""Convex sets without a closed form: polytopes by linear programs, intersections by linear or convex ones.

Also the local search that all convex sets share: a smooth function maximized by sequential quadratic programming
(scipy's SLSQP) in the coordinates of the set's :class:`~osilp_pyomo.index.extended_form.Lift`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, minimize

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DomainError, SolverError
from osilp_pyomo.index.convex_sets import MEMBERSHIP, Body
from osilp_pyomo.index.enclosures.regions import ConvexRegion, Region
from osilp_pyomo.index.extended_form import Ball, Lift, intersection_lift
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel

# What a convex program's bound may be above its value, relative to 1 + |value|, before it is solved more patiently.
_PROVED = 1e-8
# Tangent planes that a bound may need at most.
_TANGENTS = 400
# Violation of a ball that is rounding.
_ON_BALL = 1e-10


class LinearOracle:
    """Maximizes linear functions over the linear part of a description, one warm HiGHS model for all of them."""

    def __init__(self, lift: Lift, what: str) -> None:
        self._what = what
        self._lift = lift
        self._model = HighsModel(
            FiniteLP(
                maximize=True,
                cost=np.zeros(lift.coordinates),
                column_lower=lift.lower,
                column_upper=lift.upper,
                matrix=sparse.csr_array(lift.rows),
                row_lower=lift.row_lower,
                row_upper=lift.row_upper,
            )
        )

    def maximize(self, cost: FloatArray) -> FloatArray:
        """The coordinates z where ``cost @ z`` is largest; an empty or unbounded set is refused."""
        # HiGHS' tolerances are absolute: a direction in small units must not be taken for none.
        self._model.change_costs(cost / (float(np.abs(cost).max(initial=0.0)) or 1.0))
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

    def add_tangent(self, ball: Ball, at: FloatArray) -> None:
        """Add the half-space that touches a ball where the line from its middle through z leaves it."""
        moved = ball.matrix @ at - ball.centre
        normal = moved / np.linalg.norm(moved)
        row = (normal @ ball.matrix)[None]
        self._model.add_rows(
            np.arange(self._lift.coordinates), row, np.array([-np.inf]), np.array([1.0 + normal @ ball.centre])
        )


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
        self.separation = "convex program" if lift.balls else "linear program"
        self._oracle: LinearOracle | None = None
        if lift.balls:
            self._inner = self._point_inside_balls()
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

    def _linear(self) -> LinearOracle:
        if self._oracle is None:
            self._oracle = LinearOracle(self._lift, self._what)
        return self._oracle

    def support(self, directions: FloatArray) -> FloatArray:
        costs = directions @ self._lift.matrix
        if self._lift.balls:
            z = np.array([self._maximize_in_balls(cost) for cost in costs])
        else:
            oracle = self._linear()
            z = np.array([oracle.maximize(cost) for cost in costs])
        return self._lift.points(z.reshape(len(directions), -1))

    # -- linear rows and balls -------------------------------------------------------------------

    def _point_inside_balls(self) -> FloatArray:
        """Coordinates in all balls, or the proof by tangent planes that there are none."""
        oracle = LinearOracle(self._lift, self._what)
        z = oracle.maximize(np.zeros(self._lift.coordinates))
        # The point nearest to the middles of all balls is in them where they are not far apart; in many dimensions
        # tangent planes take very long to find it.
        nearest = self._nearest_to_middles(z)
        if max(ball.excess(nearest) for ball in self._lift.balls) <= _ON_BALL:
            return nearest
        for _ in range(_TANGENTS):
            worst = max(self._lift.balls, key=lambda ball: ball.excess(z))
            if worst.excess(z) <= _ON_BALL:
                return z
            # Tangent planes that no vector satisfies prove the set empty: the oracle then refuses it.
            for ball in self._lift.balls:
                if ball.excess(z) > 0:
                    oracle.add_tangent(ball, z)
            z = oracle.maximize(np.zeros(self._lift.coordinates))
        raise DomainError(
            f"{self._what} has no point that could be found: its parts at best touch; make one of them larger."
        )

    def _nearest_to_middles(self, start: FloatArray) -> FloatArray:
        """Coordinates in the linear part with the least sum of squared distances to the middles of the balls."""
        linear = replace(self._lift, balls=())
        balls = self._lift.balls

        def nearness(z: FloatArray) -> float:
            return -sum(float(np.sum((ball.matrix @ z - ball.centre) ** 2)) for ball in balls)

        def gradient(z: FloatArray) -> FloatArray:
            return -2.0 * np.sum([(ball.matrix @ z - ball.centre) @ ball.matrix for ball in balls], axis=0)

        return local_maximum(linear, nearness, gradient, start)

    def _maximize_in_balls(self, cost: FloatArray) -> FloatArray:
        """Where a linear function is largest: a local search, which is global here, proved by tangent planes.

        At the true maximum the tangent planes of the balls it lies on leave no better point (its optimality
        conditions say so), so that one linear program bounds what the local search may have missed.
        """
        lift = self._lift
        if not np.any(cost):
            return self._inner
        z = local_maximum(lift, lambda at: float(cost @ at), lambda at: cost, self._inner)
        oracle = LinearOracle(lift, self._what)
        for ball in lift.balls:
            if ball.excess(z) > -1e-6:
                oracle.add_tangent(ball, z)
        top = oracle.maximize(cost)
        scale = 1.0 + abs(float(cost @ z))
        if cost @ top - cost @ z <= _PROVED * scale and max(ball.excess(z) for ball in lift.balls) <= _ON_BALL:
            return z
        for _ in range(_TANGENTS):
            outside = [ball for ball in lift.balls if ball.excess(top) > _ON_BALL]
            if not outside:
                return top
            for ball in outside:
                oracle.add_tangent(ball, top)
            top = oracle.maximize(cost)
        # Nothing proves that this is the farthest point: whoever asks is told that it was looked for only.
        self.separation = "search"
        return self._pulled_inside(top)

    def _pulled_inside(self, z: FloatArray) -> FloatArray:
        """A point between z and one in all balls that is in all balls too."""
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            at = self._inner + middle * (z - self._inner)
            inside = all(ball.excess(at) <= _ON_BALL for ball in self._lift.balls)
            low, high = (middle, high) if inside else (low, middle)
        return self._inner + low * (z - self._inner)


class PolytopeBody(LiftedBody):
    """``rows @ xi <= limits``.

    Examples
    --------
    >>> triangle = PolytopeBody(np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), np.array([1.0, 0.0, 0.0]))
    >>> triangle.support(np.array([[1.0, 2.0]]))
    array([[0., 1.]])
    """

    def __init__(self, rows: FloatArray, limits: FloatArray, what: str = "the polyhedral set") -> None:
        self._rows, self._limits = rows.astype(float), limits.astype(float)
        super().__init__(Lift.plain(rows.shape[1], rows=self._rows, row_upper=self._limits), what)

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
