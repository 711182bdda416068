"""Rules of disciplined convex programming: the curvature of a formula from those of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

AFFINE, CONVEX, CONCAVE, UNKNOWN = "affine", "convex", "concave", "unknown"
_FLIPPED = {CONVEX: CONCAVE, CONCAVE: CONVEX}


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


def plain(curvature: str) -> str:
    """Curvature of a formula; data is affine."""
    return AFFINE if curvature == "data" else curvature


def _curvature(name: str, parts: list[Shape]) -> str:
    kinds = [plain(part.curvature) for part in parts]
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
