"""Concave stages over polyhedra and general convex sets: quadratic ones by HiGHS, smooth ones by SLSQP."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import CurvatureError, SolverError
from osilp_pyomo.index.formula import define, function_text
from osilp_pyomo.index.nodes import Code
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import solve_quadratic
from osilp_pyomo.lp.row_generation import add_violated, largest
from osilp_pyomo.online.stages.batch import Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import Densities, Room, StageSolver
from osilp_pyomo.online.stages.template import Arrivals, StageTemplate

# Guarded rows that join a quadratic stage in one round, and rounds.
_ROWS_PER_ROUND, _ROUNDS = 30, 30
# Iterations of SLSQP, and the accuracy it is asked for.
_ITERATIONS, _ACCURACY = 300, 1e-12


class QuadraticStage(StageSolver):
    """A concave quadratic stage over a polyhedron.

    One arrival is a QP by HiGHS; many are solved together by a primal-dual interior point method on arrays, for
    HiGHS would spend most of its time on being called.
    """

    name = "HiGHS QP"
    asked_as = "highs"

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        """What a stage earns and uses is quadratic in the decision, and its own rows are linear."""
        if template.linear or any(family.mixed for family in template.families):
            return False
        used = {term.function for row in template.own_rows for term in row.terms}
        if any(number >= len(template.decisions) for number in used):
            return False
        degrees = [each.formula.degree() for each in template.functions if each.formula is not None]
        return all(each is not None and each <= 2 for each in degrees)

    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__(evaluator)
        self._last: tuple[Batch, FloatArray, FloatArray, FloatArray] | None = None

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        if len(batch) == 1:
            none = np.zeros((0, len(self.template.decisions)))
            return self._solve(batch, weights[0], none, np.zeros(0))[None]
        return self._together(batch, weights)[0]

    def sensitivity(
        self, batch: Batch, weights: FloatArray, densities: Densities, x: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How decisions answer to prices: derivatives (B, K, n) of the functions, and dx/d(slope) (B, n, n)."""
        jacobian = np.stack(
            [
                self._values_beside(batch, x, axis, 1.0) - self._values_beside(batch, x, axis, -1.0)
                for axis in range(x.shape[1])
            ],
            axis=2,
        )
        return jacobian / 2, self._together(batch, weights)[1]

    def _values_beside(self, batch: Batch, x: FloatArray, axis: int, step: float) -> FloatArray:
        moved = x.copy()
        moved[:, axis] += step
        return self.template.values(batch.arrivals, moved)

    def _together(self, batch: Batch, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Read once: another thread may solve stages of the same program.
        last = self._last
        if last is not None and last[0] is batch and np.array_equal(last[1], weights):
            return last[2], last[3]
        size = len(self.template.decisions)
        gradient, hessian = self._all_parts(batch, weights)
        own, limits = batch.own[:, :, :size], -batch.own_fixed
        equality = np.array([row.equality for row in self.template.own_rows], dtype=bool)
        unit = np.broadcast_to(np.eye(size), (len(batch), size, size))
        rows = np.concatenate([own[:, ~equality], unit, -unit], axis=1)
        left = np.concatenate([limits[:, ~equality], batch.upper, -batch.lower], axis=1)
        bounded = np.isfinite(left).any(axis=0)
        rows, left = rows[:, bounded], left[:, bounded]
        # A side that only some arrivals have is moved so far away for the others that it never binds.
        far = 1e3 * (1.0 + np.abs(np.where(np.isfinite(left), left, 0.0)).max(initial=0.0))
        left = np.where(np.isfinite(left), left, far)
        x, response = interior_point(gradient, -hessian, rows, left, own[:, equality], limits[:, equality])
        x = np.clip(x, batch.lower, batch.upper)
        excess = np.einsum("bri,bi->br", own, x) - limits
        excess = np.where(equality, np.abs(excess), excess)
        bad = excess.max(axis=1, initial=0.0) > 1e-6 * (1.0 + np.abs(limits).max(axis=1, initial=0.0))
        if bad.any():
            name = batch.arrivals.name(int(np.argmax(bad)))
            raise SolverError(f"The stage problem of the arrival {name!r} has no solution: its own rows contradict.")
        self._last = batch, weights, x, response
        return x, response

    def _all_parts(self, batch: Batch, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradients at zero (B, n) and Hessians (B, n, n) of the priced value, exact for a quadratic."""
        size, zero = len(self.template.decisions), np.zeros((len(batch), len(self.template.decisions)))

        def value(*axes: tuple[int, float]) -> FloatArray:
            moved = zero.copy()
            for axis, step in axes:
                moved[:, axis] += step
            return (self.template.values(batch.arrivals, moved) * weights).sum(axis=1)

        base = value()
        up, down = [value((j, 1.0)) for j in range(size)], [value((j, -1.0)) for j in range(size)]
        gradient = np.stack([(up[j] - down[j]) / 2 for j in range(size)], axis=1)
        hessian = np.zeros((len(batch), size, size))
        for i in range(size):
            hessian[:, i, i] = up[i] + down[i] - 2 * base
            for j in range(i):
                hessian[:, i, j] = hessian[:, j, i] = value((i, 1.0), (j, 1.0)) - up[i] - up[j] + base
        hessian[np.abs(hessian) < 1e-13 * np.abs(weights).max()] = 0.0
        highest = np.linalg.eigvalsh(hessian)[:, -1]
        bends = highest > 1e-9 * (1e-300 + np.abs(hessian).max(axis=(1, 2)))
        if bends.any():
            name = batch.arrivals.name(int(np.argmax(bends)))
            raise CurvatureError(
                f"The stage problem of the arrival {name!r} is not concave: its quadratic part bends upwards; what is "
                "earned must be concave and what is used convex in the decision."
            )
        return gradient, hessian

    def _solve(self, one: Batch, weights: FloatArray, rows: FloatArray, left: FloatArray) -> FloatArray:
        size = len(self.template.decisions)
        gradient, hessian = (part[0] for part in self._all_parts(one, weights[None]))
        own, limits = one.own[0][:, :size], -one.own_fixed[0]
        equality = np.array([row.equality for row in self.template.own_rows], dtype=bool)
        matrix = np.concatenate([own, rows])
        upper = np.concatenate([limits, left])
        lower = np.concatenate([np.where(equality, limits, -np.inf), np.full(len(left), -np.inf)])
        lp = FiniteLP(
            maximize=True,
            cost=gradient,
            column_lower=one.lower[0],
            column_upper=one.upper[0],
            matrix=sparse.csr_array(matrix),
            row_lower=lower,
            row_upper=upper,
            column_names=[str(label) for label in self.template.decisions],
        )
        found = solve_quadratic(lp, hessian)
        if found is None:
            raise SolverError(f"HiGHS finds no solution of the stage problem of the arrival {one.arrivals.name(0)!r}.")
        return np.clip(found, one.lower[0], one.upper[0])

    def fit(
        self,
        batch: Batch,
        weights: FloatArray,
        densities: Densities,
        wanted: FloatArray,
        room: Room,
        null: FloatArray,
    ) -> FloatArray:
        size = len(self.template.decisions)
        if np.abs(room.usage[size:]).max(initial=0.0) > 0:
            # Use is not linear: go from null towards what is wanted.
            return super().fit(batch, weights, densities, wanted, room, null)

        def solve(rows: BoolArray) -> FloatArray | None:
            try:
                return self._solve(batch, weights, room.usage[:size, rows].T, room.spare[rows])
            except SolverError:
                return None

        rows = np.zeros(len(room.left), dtype=bool)
        x = add_violated(wanted, rows, solve, room.excess, largest(_ROWS_PER_ROUND), _ROUNDS)
        if x is None:
            # Nothing satisfies the guarded rows and the stage's own: what guards fall back to then.
            return null
        return x if room.fits(x) else super().fit(batch, weights, densities, x, room, null)


def interior_point(
    gradient: FloatArray,
    hessian: FloatArray,
    rows: FloatArray,
    left: FloatArray,
    equal: FloatArray,
    equal_to: FloatArray,
    iterations: int = 60,
) -> tuple[FloatArray, FloatArray]:
    """Maximize g'x - x'Hx/2 over ``rows x <= left`` and ``equal x == equal_to`` for many small problems at once.

    A primal-dual interior point method with Mehrotra's predictor. Returns x (B, n), and how x answers to g (B, n, n).
    """
    count, size = gradient.shape
    equalities = equal.shape[1]
    x, y = np.zeros((count, size)), np.zeros((count, equalities))
    scale = 1.0 + np.abs(gradient).max(axis=1)
    s = np.maximum(left, 1.0)
    z = np.broadcast_to(scale[:, None], s.shape).copy()
    wide = 1.0 + np.abs(left).max(axis=1, initial=0.0)
    tolerance = 1e-11
    for _ in range(iterations):
        dual = np.einsum("bij,bj->bi", hessian, x) - gradient + np.einsum("bri,br->bi", rows, z)
        if equalities:
            dual = dual + np.einsum("bri,br->bi", equal, y)
        primal = np.einsum("bri,bi->br", rows, x) + s - left
        even = np.einsum("bri,bi->br", equal, x) - equal_to
        gap = (s * z).sum(axis=1) / max(1, s.shape[1])
        matrix = np.zeros((count, size + equalities, size + equalities))
        matrix[:, :size, :size] = hessian + (rows * (z / s)[:, :, None]).transpose(0, 2, 1) @ rows
        matrix[:, :size, :size] += (
            1e-13 * np.eye(size) * np.abs(matrix[:, :size, :size]).max(axis=(1, 2))[:, None, None]
        )
        matrix[:, :size, size:], matrix[:, size:, :size] = equal.transpose(0, 2, 1), equal
        miss = np.maximum(np.abs(dual).max(axis=1) / scale, np.abs(primal).max(axis=1, initial=0.0) / wide)
        miss = np.maximum(miss, np.abs(even).max(axis=1, initial=0.0) / wide)
        done = (gap <= tolerance * scale) & (miss <= 1e-9)
        if np.all(done):
            break

        residuals = dual, primal, even
        dx, _, ds, dz = _direction(matrix, rows, s, z, residuals, s * z)
        share = np.minimum(_furthest(s, ds), _furthest(z, dz))
        ahead = ((s + share[:, None] * ds) * (z + share[:, None] * dz)).sum(axis=1) / max(1, s.shape[1])
        centring = (ahead / np.maximum(gap, 1e-300)) ** 3
        centre = s * z + ds * dz - (centring * gap)[:, None]
        dx, dy, ds, dz = _direction(matrix, rows, s, z, residuals, centre)
        share = 0.995 * np.minimum(_furthest(s, ds), _furthest(z, dz))[:, None]
        share = np.where(done[:, None], 0.0, np.minimum(1.0, share))
        x, y, s, z = (
            x + share * dx,
            y + share * dy,
            np.maximum(s + share * ds, 1e-300),
            np.maximum(z + share * dz, 1e-300),
        )
    return x, np.linalg.inv(matrix)[:, :size, :size]


def _direction(
    matrix: FloatArray,
    rows: FloatArray,
    s: FloatArray,
    z: FloatArray,
    residuals: tuple[FloatArray, FloatArray, FloatArray],
    centre: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Newton directions of x, the equalities' duals, the slacks s and their duals z."""
    dual, primal, even = residuals
    inner = (z * primal - centre) / s
    right = np.concatenate([-dual - np.einsum("bri,br->bi", rows, inner), -even], axis=1)
    both = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    size = rows.shape[2]
    ds = -primal - np.einsum("bri,bi->br", rows, both[:, :size])
    return both[:, :size], both[:, size:], ds, (-centre - z * ds) / s


def _furthest(values: FloatArray, steps: FloatArray) -> FloatArray:
    """The largest step up to a little over 1 that keeps positive values positive, for each problem."""
    with np.errstate(all="ignore"):
        shares = np.where(steps < 0, -values / steps, 2.0)
    return np.minimum(shares.min(axis=1, initial=2.0), 1.0 / 0.995)


class SmoothStage(StageSolver):
    """A smooth concave stage over a convex set: scipy's SLSQP for each arrival, with exact derivatives."""

    name = "SLSQP"
    asked_as = "slsqp"

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        return not template.linear

    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__(evaluator)
        self._jacobian = define(_jacobian_source(self.template), "jacobian")
        self._mixed = [
            (
                number,
                term,
                [_mixed_gradient(self.template, number, k, axis) for axis in range(len(self.template.decisions))],
            )
            for number, family in enumerate(self.template.families)
            for k, term in enumerate(family.mixed)
        ]

    def __reduce__(self) -> Any:
        return type(self), (self.evaluator,)

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        return np.stack([self._solve(batch.part(slice(b, b + 1)), weights[b], densities) for b in range(len(batch))])

    def _solve(self, one: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        arrivals = one.arrivals
        theta = [float(value[0]) if isinstance(value, np.ndarray) else 0.0 for value in arrivals.values]
        low, high = one.lower[0], one.upper[0]
        size = max(float(np.abs(weights).max()), 1e-300)

        def value(x: FloatArray) -> float:
            total = float(self.template.values(arrivals, x[None])[0] @ weights)
            return -(total - self._mixed_cost(arrivals, x, densities)) / size

        def gradient(x: FloatArray) -> FloatArray:
            slope = weights @ np.array(self._jacobian(theta, x.tolist()))
            return -(slope - self._mixed_slope(arrivals, x, densities)) / size

        rows: list[Any] = []
        for number, row in enumerate(self.template.own_rows):
            own, fixed = one.own[0, number], one.own_fixed[0, number]
            rows.append(
                {
                    "type": "eq" if row.equality else "ineq",
                    "fun": lambda x, own=own, fixed=fixed: -(self.template.values(arrivals, x[None])[0] @ own + fixed),
                    "jac": lambda x, own=own: -(own @ np.array(self._jacobian(theta, x.tolist()))),
                }
            )
        # The bounds of SLSQP are kept exactly; from a hair inside, functions such as log and sqrt have derivatives.
        span = np.where(np.isfinite(high - low), high - low, 1.0)
        inner_low = np.where(np.isfinite(low), low + 1e-12 * span, low)
        base = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - span, 0.0))
        starts = [base + share * span for share in (0.5, 0.05, 0.95)]
        best = None
        for start in starts:
            with np.errstate(all="ignore"):
                found = minimize(
                    value, start, jac=gradient, method="SLSQP", bounds=list(zip(inner_low, high, strict=True)),
                    constraints=rows, options={"maxiter": _ITERATIONS, "ftol": _ACCURACY},
                )  # fmt: skip
            # Mode 8 is a line search that gains nothing any more: the end of accuracy, not a failure.
            if (
                (found.success or found.status == 8)
                and np.all(np.isfinite(found.x))
                and self._in_own_rows_nearly(one, found.x)
            ):
                best = found.x
                break
        if best is None:
            raise SolverError(
                f"SLSQP finds no solution of the stage problem of the arrival {arrivals.name(0)!r}: {found.message}."
            )
        return np.clip(np.where(best <= inner_low, low, best), low, high)

    def _in_own_rows_nearly(self, one: Batch, x: FloatArray) -> bool:
        values = self.template.values(one.arrivals, x[None])[0]
        activity = one.own[0] @ values + one.own_fixed[0]
        size = np.abs(one.own[0]) @ np.abs(values) + np.abs(one.own_fixed[0]) + 1e-9
        return bool(np.all(activity <= 1e-7 * size))

    def _mixed_cost(self, arrivals: Arrivals, x: FloatArray, densities: Densities) -> float:
        total = 0.0
        for number, (points, masses) in densities:
            use = self.evaluator.mixed_use(arrivals, x[None], number, points)[0]
            total += float(use @ masses)
        return total

    def _mixed_slope(self, arrivals: Arrivals, x: FloatArray, densities: Densities) -> FloatArray:
        total = np.zeros(len(x))
        by_family = dict(densities)
        for number, term, slopes in self._mixed:
            points, masses = by_family[number]
            at = [points[:, axis] for axis in range(points.shape[1])]
            slots = [arrivals.values[slot][0] if isinstance(slot, int) else slot for slot in term.slots]
            for axis, slope in enumerate(slopes):
                total[axis] += float(np.broadcast_to(slope(slots, at, x), len(points)) @ masses)
        return total


def _jacobian_source(template: StageTemplate) -> str:
    """Source of ``jacobian(theta, x)``: derivative of each function along each variable, a list (K, n)."""
    code = Code(True)
    rows = []
    size = len(template.decisions)
    axes = {axis: f"x[{axis}]" for axis in range(size)}
    for number, function in enumerate(template.functions):
        if function.formula is None:
            rows.append("[" + ", ".join("1.0" if axis == number else "0.0" for axis in range(size)) + "]")
            continue
        slots = [f"theta[{field}]" for field in function.slots]
        entries = []
        for axis in range(size):
            jet = function.formula.derive(code, slots, axes, axis) if axis in function.axes else None
            entries.append("0.0" if jet is None or jet.first is None else jet.first)
        rows.append(f"[{', '.join(entries)}]")
    return function_text("jacobian", "theta, x", code.lines, f"[{', '.join(rows)}]")


def _mixed_gradient(template: StageTemplate, family: int, number: int, axis: int) -> Any:
    term, dimension = template.families[family].mixed[number], template.families[family].domain.dimension
    code = Code(False)
    slots = [f"s[{k}]" for k in range(len(term.slots))]
    axes = {place: f"u[{place}]" for place in range(dimension)}
    axes.update({dimension + place: f"x[{place}]" for place in range(len(template.decisions))})
    jet = term.formula.derive(code, slots, axes, dimension + axis)
    return define(function_text("slope", "s, u, x", code.lines, jet.first or "0.0"), "slope")
