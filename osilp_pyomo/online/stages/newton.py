"""Smooth concave stages over a box, one variable at a time: safeguarded Newton on the derivative.

Each function of the decision depends on one variable, so that a stage falls apart into problems of one variable: find
the zero of a decreasing derivative. Newton steps are taken where they stay in the bracket, bisections else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._jit import HAS_NUMBA, just_in_time
from osilp_pyomo.errors import CurvatureError, DataError
from osilp_pyomo.index.formula import define, function_text
from osilp_pyomo.index.nodes import Code
from osilp_pyomo.online.kernels.smooth import BENDS, FAR, ITERATIONS, make_newton, make_run, make_values
from osilp_pyomo.online.stages.batch import Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import Densities, StageSolver
from osilp_pyomo.online.stages.template import StageTemplate

# Arrivals from which it pays to compile their loop.
_WORTH_COMPILING = 20_000
# Numbers in one block of arrivals x points of terms that mix index and decision.
_BLOCK = 2**20


def slope_source(template: StageTemplate, axis: int, scalar: bool) -> str:
    """Source of ``slope(theta, p, x)``: first and second derivative of sum_k p_k h_k along one variable.

    ``theta[f]`` is field f, ``p[k]`` the weight of function k, ``x`` the variable.
    """
    code = Code(scalar)
    first, second = [f"p[{axis}]"], []
    for number, function in enumerate(template.functions):
        if function.formula is None or axis not in function.axes:
            continue
        slots = [f"theta[{field}]" for field in function.slots]
        jet = function.formula.derive(code, slots, {axis: "x"}, axis)
        if jet.first is not None:
            first.append(f"p[{number}] * {jet.first}")
        if jet.second is not None:
            second.append(f"p[{number}] * {jet.second}")
    result = f"({' + '.join(first)}), ({' + '.join(second) or '0.0'})"
    return function_text("slope", "theta, p, x", code.lines, result)


def slopes_source(template: StageTemplate, axis: int) -> str:
    """Source of ``slopes(theta, x)`` for arrays: the derivative of every function along one variable, a list (K,)."""
    code = Code(False)
    entries = []
    for number, function in enumerate(template.functions):
        if function.formula is None:
            entries.append("1.0" if number == axis else "0.0")
            continue
        if axis not in function.axes:
            entries.append("0.0")
            continue
        slots = [f"theta[{field}]" for field in function.slots]
        entries.append(function.formula.derive(code, slots, {axis: "x"}, axis).first or "0.0")
    return function_text("slopes", "theta, x", code.lines, f"[{', '.join(entries)}]")


def values_source(template: StageTemplate) -> str:
    """Source of ``values(theta, x, out)`` for a single variable: all functions of the decision."""
    code = Code(True)
    writes = []
    for number, function in enumerate(template.functions):
        if function.formula is None:
            writes.append(f"out[{number}] = x")
            continue
        slots = [f"theta[{field}]" for field in function.slots]
        # Differentiated along no axis: values only.
        jet = function.formula.derive(code, slots, {0: "x"}, -1)
        writes.append(f"out[{number}] = {jet.value}")
    return function_text("values", "theta, x, out", [*code.lines, *writes], "0")


class NewtonStage(StageSolver):
    """Safeguarded Newton, for all arrivals of a batch at once."""

    name = "safeguarded Newton on the derivative, variable by variable"
    asked_as = "newton"

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        """The stage falls apart into problems of one variable over a box."""
        if template.linear or template.own_rows or any(len(function.axes) > 1 for function in template.functions):
            return False
        return len(template.decisions) == 1 or not any(family.mixed for family in template.families)

    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__(evaluator)
        template = self.template
        axes = range(len(template.decisions))
        self._slopes = [define(slope_source(template, axis, False), "slope") for axis in axes]
        slopes = [define(slope_source(template, axis, True), "slope") for axis in axes]
        self._newtons = [make_newton(slope, False) for slope in slopes]
        self._runners: dict[bool, Callable[..., int]] = {}
        self._met = 0
        self._all_slopes = [define(slopes_source(template, axis), "slopes") for axis in axes]
        self.mixed = any(family.mixed for family in template.families)
        self._mixed_slopes = [[_mixed_slope(self.template, number, k) for k in range(len(family.mixed))]
                              for number, family in enumerate(template.families)]  # fmt: skip

    def __reduce__(self) -> Any:
        return type(self), (self.evaluator,)

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        if len(batch) == 1 and not self.mixed:
            found = self._best_of_one(batch, weights[0])
            if not np.isnan(found).any():
                return found
            # Arrays cope with ends where a derivative is infinite, and say what is wrong.
        return self._best_of_all(batch, weights, densities)

    @property
    def has_loop(self) -> bool:
        """Whether a compiled loop can take the stages: one decision, and nothing that mixes it with the index."""
        return len(self.template.decisions) == 1 and not self.mixed

    def runner(self, arrivals: int) -> Callable[..., int]:
        """The loop over arrivals; compiled where there are many of them and numba is installed."""
        self._met += arrivals
        compile_it = HAS_NUMBA and self._met >= _WORTH_COMPILING
        if compile_it not in self._runners:
            slope, values = (
                define(slope_source(self.template, 0, True), "slope"),
                define(values_source(self.template), "values"),
            )
            if compile_it:
                slope = just_in_time(slope)
            newton, values = make_newton(slope, compile_it), make_values(values, compile_it)
            self._runners[compile_it] = make_run(newton, values, compile_it)
        return self._runners[compile_it]

    def _best_of_all(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        result = np.empty((len(batch), len(self.template.decisions)))
        theta = [value if isinstance(value, np.ndarray) else None for value in batch.arrivals.values]
        columns = [weights[:, k] for k in range(weights.shape[1])]
        for axis, slope in enumerate(self._slopes):

            def derivative(x: FloatArray, slope: Any = slope) -> tuple[FloatArray, FloatArray]:
                with np.errstate(all="ignore"):
                    first, second = (np.broadcast_to(part, x.shape) for part in slope(theta, columns, x))
                if self.mixed:
                    more = self._mixed_derivative(batch, x, densities)
                    first, second = first - more[0], second - more[1]
                return first, second

            limits = batch.lower[:, axis], batch.upper[:, axis]
            result[:, axis] = _zeros(derivative, *limits, self._complain(batch, axis))
        return result

    def sensitivity(
        self, batch: Batch, weights: FloatArray, densities: Densities, x: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How decisions answer to prices: derivatives (B, K, n) of the functions, and dx/d(slope) (B, n, n)."""
        theta = [value if isinstance(value, np.ndarray) else None for value in batch.arrivals.values]
        columns = [weights[:, k] for k in range(weights.shape[1])]
        size = len(self.template.decisions)
        jacobian, response = np.zeros((len(batch), weights.shape[1], size)), np.zeros((len(batch), size, size))
        for axis in range(size):
            along = x[:, axis]
            with np.errstate(all="ignore"):
                for number, slope in enumerate(self._all_slopes[axis](theta, along)):
                    jacobian[:, number, axis] = slope
                _, bend = (np.broadcast_to(part, along.shape) for part in self._slopes[axis](theta, columns, along))
                if self.mixed:
                    bend = bend - self._mixed_derivative(batch, along, densities)[1]
                inside = (along > batch.lower[:, axis]) & (along < batch.upper[:, axis]) & (bend < 0)
                response[:, axis, axis] = np.where(inside, -1.0 / np.where(inside, bend, -1.0), 0.0)
        return np.nan_to_num(jacobian), response

    def mixed_slopes(self, batch: Batch, x: FloatArray, family: int, points: FloatArray) -> FloatArray:
        """Derivatives (B, M) along the one decision of a family's terms that mix it with the index."""
        at = [points[None, :, axis] for axis in range(points.shape[1])]
        total = np.zeros((len(batch), len(points)))
        for term, slope in zip(self.template.families[family].mixed, self._mixed_slopes[family], strict=True):
            with np.errstate(all="ignore"):
                total += slope(batch.arrivals.filled(term.slots), at, x)[0]
        return total

    def _mixed_derivative(self, batch: Batch, x: FloatArray, densities: Densities) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the cost of terms that mix index and decision (one variable)."""
        first, second = np.zeros(len(x)), np.zeros(len(x))
        for number, (points, masses) in densities:
            family = self.template.families[number]
            priced = masses != 0
            if not priced.any():
                continue
            density = masses[priced]
            at = [points[None, priced, axis] for axis in range(points.shape[1])]
            step = max(1, _BLOCK // int(priced.sum()))
            for term, slope in zip(family.mixed, self._mixed_slopes[number], strict=True):
                for start in range(0, len(x), step):
                    part = slice(start, start + step)
                    slots = batch.arrivals.part(part).filled(term.slots)
                    with np.errstate(all="ignore"):
                        one, two = slope(slots, at, x[part][:, None])
                    shape = (len(x[part]), int(priced.sum()))
                    first[part] += np.broadcast_to(one, shape) @ density
                    second[part] += np.broadcast_to(two, shape) @ density
        return first, second

    def _best_of_one(self, batch: Batch, weights: FloatArray) -> FloatArray:
        """One arrival on plain numbers, which is several times faster than arrays of one."""
        theta = [float(value[0]) if isinstance(value, np.ndarray) else 0.0 for value in batch.arrivals.values]
        p = weights.tolist()
        result = np.empty((1, len(self._newtons)))
        for axis, newton in enumerate(self._newtons):
            result[0, axis] = newton(theta, p, float(batch.lower[0, axis]), float(batch.upper[0, axis]))
        return result

    def _complain(self, batch: Batch, axis: int) -> Callable[[str, int, float], Exception]:
        label = self.template.decisions[axis]

        def complaint(kind: str, arrival: int, x: float) -> Exception:
            name = batch.arrivals.name(arrival)
            if kind == "curvature":
                return CurvatureError(
                    f"The stage problem of the arrival {name!r} is not concave: at {label} = {x:.6g} the priced value "
                    "bends upwards; what is earned must be concave and what is used convex in the decision."
                )
            if kind == "unbounded":
                return DataError(
                    f"The stage problem of the arrival {name!r} is unbounded in {label}: it earns more than it costs "
                    f"up to {x:.3g}; give the variable an upper bound."
                )
            return DataError(
                f"The stage problem of the arrival {name!r} has no number for its derivative along {label} near "
                f"{x:.6g}; give the variable bounds within which its functions are defined."
            )

        return complaint


def _mixed_slope(template: StageTemplate, family: int, number: int) -> Callable[..., Any]:
    term, dimension = template.families[family].mixed[number], template.families[family].domain.dimension
    code = Code(False)
    slots = [f"s[{k}]" for k in range(len(term.slots))]
    axes = {axis: f"u[{axis}]" for axis in range(dimension)}
    axes[dimension] = "x"
    jet = term.formula.derive(code, slots, axes, dimension)
    return define(
        function_text("slope", "s, u, x", code.lines, f"{jet.first or '0.0'}, {jet.second or '0.0'}"), "slope"
    )


def _zeros(
    derivative: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    low: FloatArray,
    high: FloatArray,
    complain: Callable[[str, int, float], Exception],
) -> FloatArray:
    """The same for many arrivals at once."""
    left = np.where(np.isfinite(low), low, np.minimum(-1.0, np.where(np.isfinite(high), high - 1.0, -1.0)))
    right = np.where(np.isfinite(high), high, np.maximum(1.0, left + 1.0))
    at_left, at_right = _inside(derivative, left, right), _inside(derivative, right, left)
    for _ in range(45):
        grow = ~np.isfinite(high) & (at_right > 0)
        if not grow.any():
            break
        left, right = np.where(grow, right, left), np.where(grow, 2 * right, right)
        at_right = np.where(grow, _inside(derivative, right, left), at_right)
        if np.any(right > FAR):
            arrival = int(np.argmax(right))
            raise complain("unbounded", arrival, float(right[arrival]))
    for _ in range(45):
        grow = ~np.isfinite(low) & (at_left < 0)
        if not grow.any():
            break
        left, right = np.where(grow, 2 * left, left), np.where(grow, left, right)
        at_left = np.where(grow, _inside(derivative, left, right), at_left)
        if np.any(left < -FAR):
            arrival = int(np.argmin(left))
            raise complain("unbounded", arrival, float(left[arrival]))
    bad = np.isnan(at_left) | np.isnan(at_right)
    if bad.any():
        arrival = int(np.argmax(bad))
        raise complain("undefined", arrival, float(left[arrival]))
    at_low, at_high = (at_left <= 0) & np.isfinite(low), (at_right >= 0) & np.isfinite(high)
    settled = at_low | at_high
    x = 0.5 * (left + right)
    for end in (left, right):
        _refuse_bend(*derivative(end), end, complain)
    last, before = right - left, right - left
    for _ in range(ITERATIONS):
        first, second = derivative(x)
        _refuse_bend(first, second, x, complain)
        left, right = np.where(first > 0, x, left), np.where(first < 0, x, right)
        with np.errstate(all="ignore"):
            moved = x - first / second
        # Across a kink Newton goes to and fro: steps that do not get shorter are replaced by bisections.
        usable = (moved >= left) & (moved <= right) & (second < 0) & (np.abs(moved - x) <= 0.5 * before)
        moved = np.where(usable, moved, 0.5 * (left + right))
        moved = np.where(first == 0, x, moved)
        last, before = np.abs(moved - x), last
        x = moved
        if np.all((last <= 1e-13 * (1 + np.abs(x))) | settled):
            break
    else:
        open_ones = (last > 1e-9 * (1 + np.abs(x))) & ~settled
        if open_ones.any():
            arrival = int(np.argmax(open_ones))
            raise complain("undefined", arrival, float(x[arrival]))
    return np.where(at_low, low, np.where(at_high, high, x)) if settled.any() else x


def _refuse_bend(
    first: FloatArray, second: FloatArray, x: FloatArray, complain: Callable[[str, int, float], Exception]
) -> None:
    """Refuse a stage whose priced value bends upwards somewhere."""
    with np.errstate(all="ignore"):
        bends = (second > BENDS * (1 + np.abs(second))) & (second > BENDS * np.abs(first)) & np.isfinite(second)
    if bends.any():
        arrival = int(np.argmax(bends))
        raise complain("curvature", arrival, float(x[arrival]))


def _inside(
    derivative: Callable[[FloatArray], tuple[FloatArray, FloatArray]], at: FloatArray, other: FloatArray
) -> FloatArray:
    """The derivative at the end of a bracket; a hair inside where it has no value there."""
    first, _ = derivative(at)
    if np.isnan(first).any():
        nudged, _ = derivative(at + 1e-12 * (other - at))
        first = np.where(np.isnan(first), nudged, first)
    return first
