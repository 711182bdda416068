"""Curvature: is what a stage earns concave, and what it uses convex, in the decision?

Rules of disciplined convex programming settle it where they can, from the ranges of data (``within=``) and decisions.
Whatever they leave open is tried out at sampled decisions; a pair whose middle is on the wrong side refuses the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from osilp_pyomo.batches import Batch, Evaluator
from osilp_pyomo.curves import CurveStack
from osilp_pyomo.domains import FloatArray
from osilp_pyomo.errors import CurvatureError
from osilp_pyomo.templates import Arrivals, Field, StageTemplate

AFFINE, CONVEX, CONCAVE, UNKNOWN = "affine", "convex", "concave", "unknown"
_FLIPPED = {CONVEX: CONCAVE, CONCAVE: CONVEX}
# Arrivals, pairs of decisions and points of the index that are tried.
_ARRIVALS, _PAIRS, _POINTS = 1000, 48, 25


@dataclass(frozen=True)
class Shape:
    """What the rules know of a formula: its curvature, and an interval that holds its values."""

    curvature: str
    low: float
    high: float
    literal: float | None = None


def by_rules(
    shape: Sequence[Any], literals: Sequence[str | None], slots: Sequence[Shape], axes: Mapping[int, Shape]
) -> Shape:
    """Curvature and range of a formula; ``slots`` are the ranges of its data, ``axes`` those of its decisions."""
    stack: list[Shape] = []
    place, rest = len(literals), len(slots)
    for token in reversed(shape):
        if token == "#":
            place -= 1
            literal = literals[place]
            if literal is None:
                rest -= 1
                stack.append(slots[rest])
            else:
                number = float(literal)
                stack.append(Shape(AFFINE, number, number, number))
        elif isinstance(token, int):
            stack.append(axes[token])
        else:
            name, count = token
            arguments = [stack.pop() for _ in range(count)]
            stack.append(_rule(name, arguments))
    return stack[0]


def _constant(shape: Shape) -> bool:
    return shape.literal is not None or shape.curvature == "data"


def _rule(name: str, parts: list[Shape]) -> Shape:
    if all(_constant(part) for part in parts):
        low, high = _range(name, parts)
        return Shape("data", low, high)
    low, high = _range(name, parts)
    return Shape(_curvature(name, parts), low, high)


def _plain(curvature: str) -> str:
    return AFFINE if curvature == "data" else curvature


def _curvature(name: str, parts: list[Shape]) -> str:
    kinds = [_plain(part.curvature) for part in parts]
    first = parts[0]
    if name == "same":
        return kinds[0]
    if name == "+":
        return _sum(kinds)
    if name == "-":
        return _FLIPPED.get(kinds[0], kinds[0])
    if name in ("*", "/"):
        return _scaled(name, parts, kinds)
    if name == "**":
        return _power(first, kinds[0], parts[1])
    if name == "abs":
        return CONVEX if kinds[0] == AFFINE or (kinds[0] == CONVEX and first.low >= 0) else UNKNOWN
    if name == "max":
        return CONVEX if all(kind in (AFFINE, CONVEX) for kind in kinds) else UNKNOWN
    if name == "min":
        return CONCAVE if all(kind in (AFFINE, CONCAVE) for kind in kinds) else UNKNOWN
    if name in ("exp", "cosh") and kinds[0] in (AFFINE, CONVEX) and (name == "exp" or kinds[0] == AFFINE):
        return CONVEX
    if name in ("log", "log10", "sqrt") and kinds[0] in (AFFINE, CONCAVE):
        return CONCAVE
    if name in ("sinh", "tan") and kinds[0] == AFFINE and first.low >= 0:
        return CONVEX if name == "sinh" or first.high < np.pi / 2 else UNKNOWN
    if name in ("tanh", "atan", "asinh") and kinds[0] in (AFFINE, CONCAVE) and first.low >= 0:
        return CONCAVE
    return UNKNOWN


def _sum(kinds: list[str]) -> str:
    found = {kind for kind in kinds if kind != AFFINE}
    return AFFINE if not found else found.pop() if len(found) == 1 else UNKNOWN


def _scaled(name: str, parts: list[Shape], kinds: list[str]) -> str:
    one, other = parts
    if name == "/" and not _constant(other):
        if _constant(one) and kinds[1] in (AFFINE, CONCAVE) and other.low > 0:
            return CONVEX if one.low >= 0 else CONCAVE if one.high <= 0 else UNKNOWN
        return UNKNOWN
    factor, kind = (one, kinds[1]) if _constant(one) else (other, kinds[0])
    if not _constant(factor):
        return UNKNOWN
    if kind == AFFINE:
        return AFFINE
    return kind if factor.low >= 0 else _FLIPPED.get(kind, kind) if factor.high <= 0 else UNKNOWN


def _power(base: Shape, kind: str, exponent: Shape) -> str:
    power = exponent.literal
    if power is None:
        return UNKNOWN
    if power == 1:
        return kind
    whole = power == int(power)
    if whole and power > 0 and power % 2 == 0 and (kind == AFFINE or (kind == CONVEX and base.low >= 0)):
        return CONVEX
    if power > 1 and base.low >= 0 and kind in (AFFINE, CONVEX):
        return CONVEX
    if 0 < power < 1 and kind in (AFFINE, CONCAVE):
        return CONCAVE
    if power < 0 and base.low > 0 and kind in (AFFINE, CONCAVE):
        return CONVEX
    return UNKNOWN


def _range(name: str, parts: list[Shape]) -> tuple[float, float]:
    """An interval that holds the values; as wide as need be where a rule is missing."""
    first = parts[0]
    with np.errstate(all="ignore"):
        if name == "same":
            return first.low, first.high
        if name == "+":
            return sum(part.low for part in parts), sum(part.high for part in parts)
        if name == "-":
            return -first.high, -first.low
        if name in ("*", "/"):
            return _product_range(name, parts)
        if name == "**" and parts[1].literal is not None:
            return _power_range(first, parts[1].literal)
        if name == "abs":
            least = 0.0 if first.low <= 0 <= first.high else min(abs(first.low), abs(first.high))
            return least, max(abs(first.low), abs(first.high))
        if name in ("min", "max"):
            pick = min if name == "min" else max
            return pick(part.low for part in parts), pick(part.high for part in parts)
        if name == "if":
            return min(parts[1].low, parts[2].low), max(parts[1].high, parts[2].high)
        if name == "exp":
            return float(np.exp(first.low)), float(np.exp(first.high))
        if name == "sqrt":
            return float(np.sqrt(max(first.low, 0.0))), float(np.sqrt(max(first.high, 0.0)))
        if name == "log" and first.low > 0:
            return float(np.log(first.low)), float(np.log(first.high))
        if name in ("sin", "cos", "tanh"):
            return -1.0, 1.0
        if name == "cosh":
            return 1.0, np.inf
    return -np.inf, np.inf


def _product_range(name: str, parts: list[Shape]) -> tuple[float, float]:
    one, other = parts
    low, high = other.low, other.high
    if name == "/":
        if low <= 0 <= high:
            return -np.inf, np.inf
        low, high = 1 / high, 1 / low
    corners = np.array([one.low * low, one.low * high, one.high * low, one.high * high])
    corners = np.where(np.isnan(corners), 0.0, corners)
    return float(corners.min()), float(corners.max())


def _power_range(base: Shape, power: float) -> tuple[float, float]:
    if power == int(power) and power > 0:
        ends = [base.low ** int(power), base.high ** int(power)]
        if int(power) % 2 == 0 and base.low <= 0 <= base.high:
            return 0.0, max(ends)
        return min(ends), max(ends)
    if base.low >= 0 and power > 0:
        return base.low**power, base.high**power
    return (0.0, np.inf) if base.low >= 0 else (-np.inf, np.inf)


# -- a whole stage --------------------------------------------------------------------------------------------


def function_curvatures(template: StageTemplate, lower: FloatArray, upper: FloatArray) -> list[str]:
    """Curvature of each function of the decision by the rules, for decisions within bounds."""
    axes = {axis: Shape(AFFINE, float(lower[axis]), float(upper[axis])) for axis in range(len(template.decisions))}
    found = []
    for function in template.functions:
        if function.kernel is None:
            found.append(AFFINE)
            continue
        slots = [_data_shape(template.fields[field]) for field in function.slots]
        found.append(_plain(by_rules(function.shape, function.literals, slots, axes).curvature))
    return found


def _data_shape(field: Field) -> Shape:
    return Shape("data", field.allowed.lower, field.allowed.upper)


def check_curvature(evaluator: Evaluator, own: Arrivals) -> str:
    """Refuse stages that are not concave in what they earn or not convex in what they use; say how it was settled."""
    template = evaluator.template
    if template.linear:
        return "linear"
    arrivals = _examples(template, own)
    batch = evaluator.batch(arrivals)
    low = np.where(np.isfinite(batch.lower), batch.lower, np.where(np.isfinite(batch.upper), batch.upper - 10, -10.0))
    high = np.where(np.isfinite(batch.upper), batch.upper, low + 20.0)
    rng = np.random.default_rng(20260)
    for _ in range(_PAIRS):
        shares = rng.random((2, *low.shape))
        _try_pair(evaluator, batch, low + shares[0] * (high - low), low + shares[1] * (high - low), rng)
    kinds = function_curvatures(template, batch.lower.min(axis=0), batch.upper.max(axis=0))
    mixed = any(family.mixed for family in template.families)
    if not mixed and UNKNOWN not in kinds and _signs_agree(template, batch, kinds):
        return "concave and convex by the rules of convex programming, with the signs of the data at hand"
    return f"concave and convex as far as {_PAIRS * len(arrivals)} pairs of decisions show"


def _examples(template: StageTemplate, own: Arrivals) -> Arrivals:
    """Some of the model's own arrivals; data without values get numbers of their range."""
    some = own.part(slice(0, None, max(1, len(own) // _ARRIVALS)))
    rng = np.random.default_rng(7)
    values: list[Any] = []
    for field, value in zip(template.fields, some.values, strict=True):
        if isinstance(value, CurveStack):
            values.append(value)
            continue
        low = field.allowed.lower if np.isfinite(field.allowed.lower) else min(0.1, field.allowed.upper)
        high = field.allowed.upper if np.isfinite(field.allowed.upper) else low + 1.0
        values.append(np.where(np.isnan(value), rng.uniform(low, high, len(value)), value))
    return Arrivals(tuple(values), some.index)


def _signs_agree(template: StageTemplate, batch: Batch, kinds: list[str]) -> bool:
    for k, kind in enumerate(kinds):
        if kind == AFFINE:
            continue
        earns, uses = batch.rewards[:, k], batch.points[:, k] if batch.points is not None else batch.usage[:, k]
        good_earning = earns >= 0 if kind == CONCAVE else earns <= 0
        good_using = uses >= 0 if kind == CONVEX else uses <= 0
        own = batch.own[:, :, k]
        good_own = own >= 0 if kind == CONVEX else own <= 0
        if not (np.all(good_earning) and np.all(good_using) and np.all(good_own)):
            return False
    return True


def _try_pair(evaluator: Evaluator, batch: Batch, x: FloatArray, y: FloatArray, rng: np.random.Generator) -> None:
    template, middle = evaluator.template, (x + y) / 2
    ends, centre = [template.values(batch.arrivals, each) for each in (x, y)], template.values(batch.arrivals, middle)
    sense = "concave" if template.maximize else "convex"
    mean = (ends[0] + ends[1]) / 2

    def refuse(what: str, kind: str, arrival: int) -> None:
        raise CurvatureError(
            f"{what} is not {kind} in the decision: for the arrival {batch.arrivals.name(arrival)!r} it fails between "
            f"{_text(template, x[arrival])} and {_text(template, y[arrival])}; online stages must earn concavely and "
            "use convexly."
        )

    with np.errstate(all="ignore"):
        parts = (mean - centre) * batch.rewards
        wrong = parts.sum(axis=1) > 1e-9 * (np.abs(mean) * np.abs(batch.rewards)).sum(axis=1)
        if wrong.any():
            refuse("The objective", sense, int(np.argmax(wrong)))
        for number, row in enumerate(template.own_rows):
            bend = ((centre - mean) * batch.own[:, number]).sum(axis=1)
            size = 1e-9 * (np.abs(mean) * np.abs(batch.own[:, number])).sum(axis=1)
            wrong = np.abs(bend) > size if row.equality else bend > size
            if wrong.any():
                refuse(
                    f"The stage's own row '{row.name}'", "linear" if row.equality else "convex", int(np.argmax(wrong))
                )
        assert batch.points is not None
        for group in evaluator.groups:
            count = group.points.stop - group.points.start
            some = rng.choice(count, min(_POINTS, count), replace=False)
            use = batch.points[:, :, group.points][:, :, some]
            bend = np.einsum("bk,bkm->bm", centre - mean, use)
            size = np.einsum("bk,bkm->bm", np.abs(mean) + np.abs(centre), np.abs(use))
            if group.family is not None and template.families[group.family].mixed:
                at = evaluator.points[group.family][some]
                uses = [evaluator.mixed_use(batch.arrivals, each, group.family, at) for each in (x, y, middle)]
                bend = bend + group.sign * (uses[2] - (uses[0] + uses[1]) / 2)
                size = size + np.abs(uses[0]) + np.abs(uses[1])
            wrong = bend > 1e-9 * size if not group.equality else np.abs(bend) > 1e-9 * size
            if wrong.any():
                kind = "linear" if group.equality else "convex" if group.sign > 0 else "concave"
                refuse(f"The row '{group.name}'", kind, int(np.argwhere(wrong)[0][0]))


def _text(template: StageTemplate, x: FloatArray) -> str:
    return ", ".join(f"{label} = {value:.4g}" for label, value in zip(template.decisions, x, strict=True))
