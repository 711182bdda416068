"""Separation oracle for rows that are not affine in an uncertain vector.

Scenarios are enumerated. Over a convex set local search (SLSQP) starts from the best points of a scan. Where the row is
concave in the vector at the x in question, the point reached is the worst there is; the gradient there proves by how
little it can be missed (the gap of Frank and Wolfe: no tangent plane of a concave function lies below it). Everywhere
else the oracle finds what scan and local search can find, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import lsq_linear

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.convex_sets import Body, BoxBody, ScenarioBody
from osilp_pyomo.index.extended_form import Lift
from osilp_pyomo.index.lp_sets import local_maximum
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.search.local import polish, sweep
from osilp_pyomo.offline.search.scan import ScanSearch, Violations, apart, local_maxima, scan_points

# Points of a scan, and from how many of its maxima local search starts where nothing is known of the row.
_SCANNED, _CLIMBED, _POLISHED = 2048, 8, 32
# Dimensions in which a box is scanned by a grid.
_GRIDDED = 4
# A gap this small, relative to the size of the row, proves a maximum.
_PROVED = 1e-7
# Curvature over the whole set that is rounding, relative to the size of the row.
_BENT = 1e-9
# Steps of differences, in widths of the set.
_STEP = 1e-6
# Iterations of a climb, and how many more for each coordinate: at a kink SLSQP goes to and fro without an end, and what
# it misses the proof finds.
_STEPS, _STEPS_EACH = 30, 3
# How often a local search that did not reach a proved maximum is restarted.
_AGAIN = 3


class BodySearch(ScanSearch):
    """Separation over every vector of an uncertainty set, for one family."""

    def __init__(self, family: Family, number: int = 0) -> None:
        body = family.domain.body
        assert body is not None
        self.body: Body = body
        self._scenarios = isinstance(body, ScenarioBody)
        # A side on which nothing is uncertain is given some width, so that steps can be measured in it.
        flat = body.upper <= body.lower
        low, high = body.lower - 1e-12 * flat, body.upper + 1e-12 * flat
        self._box = replace(family.domain, body=None, inside=None, lower=low, upper=high)
        super().__init__(family, self._scanned(), number)
        if self._scenarios:
            self.separation = "enumeration"

    def _scanned(self) -> FloatArray:
        """All scenarios; of a box in few dimensions a grid with its edges; of other sets points spread over them."""
        if isinstance(self.body, ScenarioBody):
            return self.body.scenarios
        if isinstance(self.body, BoxBody) and self.body.dimension <= _GRIDDED:
            return scan_points(self._box, _SCANNED)
        return self.body.filled(_SCANNED)

    def learn(self, member: int, points: FloatArray) -> bool:
        if self._scenarios:
            return False
        self._lay(np.concatenate([self.points, points]))
        return True

    def worst(self, x: FloatArray) -> Violations:
        excess, typical = self._scan(x)
        peaks = local_maxima(excess, self.neighbours)
        if self._scenarios or not self.body.convex:
            return self._found(self.points[peaks], excess[peaks], typical, x)
        found_points, proofs = [self.points[peaks[:_CLIMBED]]], []
        curvature = self.family.curvature
        for side, limit in ((1.0, self.upper), (-1.0, self.lower)):
            if not np.any(np.isfinite(limit)):
                continue
            scale = float(np.median(self.family.scale(self.points[peaks[:_CLIMBED]], x)))
            width = self.family.domain.width
            concave = curvature is not None and curvature.concave(x, side, width, _BENT * scale)
            starts = self.points[peaks[: 1 if concave else _CLIMBED]]
            function = self._side(x, side)
            for start in starts:
                top, gap = self._climb(function, start, concave, scale)
                found_points.append(top[None])
                proofs.append(concave and gap <= _PROVED * scale)
            if not concave and isinstance(self.body, BoxBody):
                found_points.append(self._polished(function, peaks, excess, scale))
        self.separation = "concave rows" if proofs and all(proofs) else "search"
        points = np.concatenate(found_points)
        values = self.family.excess(points, x)
        order = np.argsort(-values, kind="stable")
        points, values = points[order], values[order]
        kept = apart(points / self.family.domain.width, 1e-8)
        return self._found(points[kept], values[kept], typical, x)

    def _polished(
        self, function: Callable[[FloatArray], FloatArray], peaks: IntArray, excess: FloatArray, scale: float
    ) -> FloatArray:
        """Maxima on a box by the local search of ordinary boxes, which meets kinks and edges."""
        starts, values = self.points[peaks[:_POLISHED]], excess[peaks[:_POLISHED]]
        if self.body.dimension >= 3:
            swept, swept_values = sweep(function, self._box, starts, values)
            starts, values = np.concatenate([starts, swept]), np.concatenate([values, swept_values])
        tops, _ = polish(
            function,
            self._box,
            starts,
            values,
            step=0.5 / len(self.points) ** (1 / self.body.dimension),
            flat=np.full(len(starts), 1e-15 * scale),
        )
        return tops

    def _side(self, x: FloatArray, side: float) -> Callable[[FloatArray], FloatArray]:
        """Excess over one limit at points (m, d); a large negative number where the row has no value."""

        def function(points: FloatArray) -> FloatArray:
            lower, upper = self.family.rows.limits(points)
            with np.errstate(all="ignore"):
                activity = self.family.matrix_unchecked(points) @ x[self.family.rows.columns]
                values = side * (activity - (upper if side > 0 else lower))
            return np.where(np.isfinite(values), values, -1e30)

        return function

    def _gradient(self, function: Callable[[FloatArray], FloatArray], point: FloatArray) -> FloatArray:
        step = _STEP * np.diag(self.family.domain.width)
        values = function(np.concatenate([point + step, point - step]))
        dimension = len(point)
        return (values[:dimension] - values[dimension:]) / (2 * np.diagonal(step))

    def _climb(
        self, function: Callable[[FloatArray], FloatArray], start: FloatArray, concave: bool, scale: float
    ) -> tuple[FloatArray, float]:
        """A local maximum over the set from a start, and what a concave function could still gain."""
        lift = self.body.lift()
        best, gap = start, np.inf
        for _ in range(_AGAIN if concave else 1):
            z = local_maximum(
                lift,
                lambda at: float(function(lift.points(at[None]))[0]),
                lambda at: self._gradient(function, lift.points(at[None])[0]) @ lift.matrix,
                _coordinates(lift, best),
                _STEPS + _STEPS_EACH * lift.coordinates,
            )
            reached = self._inside(lift.points(z[None])[0], best)
            if function(reached[None])[0] >= function(best[None])[0]:
                best = reached
            if not concave:
                break
            gradient = self._gradient(function, best)
            farthest = self.body.support(gradient[None])[0]
            gap = float(gradient @ (farthest - best))
            if gap <= _PROVED * scale:
                break
            # A step towards the farthest point of the tangent plane, at which the next local search starts.
            shares = np.linspace(0, 1, 33)[:, None]
            line = best + shares * (farthest - best)
            best = line[int(np.argmax(function(line)))]
        return best, gap

    def _inside(self, point: FloatArray, member: FloatArray) -> FloatArray:
        """A point, or one on the way to it from a member of the set where rounding left it outside."""
        share = 1.0
        while not self.body.contains(point[None])[0] and share > 1e-12:
            point = member + (1 - share * 1e-9) * (point - member) if share == 1.0 else (point + member) / 2
            share /= 2
        return point


def _coordinates(lift: Lift, point: FloatArray) -> FloatArray:
    """Coordinates of a point of a convex set, as far as its bounds allow."""
    if lift.coordinates == len(point) and np.array_equal(lift.matrix, np.eye(len(point))):
        return np.clip(point - lift.offset, lift.lower, lift.upper)
    if not lift.coordinates:
        return np.empty(0)
    spread = np.where(lift.upper > lift.lower, lift.upper, lift.lower + 1e-12)
    found: FloatArray = np.clip(
        lsq_linear(lift.matrix, point - lift.offset, bounds=(lift.lower, spread)).x, lift.lower, lift.upper
    )
    return found
