"""Curvature by rules: those of disciplined convex programming, and some more that look at what stands inside.

The table of nodes knows the rules of Grant, Boyd and Ye (2006), which see curvature and range of arguments only. Here a
part of a formula is also known by its text (``x * log(x)`` holds one part twice), by its coefficients where it is
quadratic, by whether its root is convex (sums of squares, whose roots are norms) and by whether its logarithm is
(exponentials of convex functions, their sums and products). A function counts as convex where it is so wherever it is
defined, and where that is a convex set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.index.nodes import AFFINE, CONCAVE, CONVEX, DATA, NODES, UNKNOWN, Traits

# Eigenvalues that are negative by no more than this share of the largest entry, times the size, are rounding.
ROUNDING = 64 * 2.0**-52


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``constant + linear @ v + v' matrix v / 2`` of the variables of a term."""

    constant: float
    linear: FloatArray
    matrix: FloatArray

    def plus(self, other: Quadratic, factor: float = 1.0) -> Quadratic:
        """Its sum with a multiple of another one."""
        return Quadratic(
            self.constant + factor * other.constant,
            self.linear + factor * other.linear,
            self.matrix + factor * other.matrix,
        )

    def times(self, other: Quadratic) -> Quadratic | None:
        """A product, where that is quadratic."""
        if not self.matrix.any() and not other.matrix.any():
            outer = np.outer(self.linear, other.linear)
            linear = self.constant * other.linear + other.constant * self.linear
            return Quadratic(self.constant * other.constant, linear, outer + outer.T)
        for one, two in ((self, other), (other, self)):
            if not one.linear.any() and not one.matrix.any():
                return Quadratic(0.0, 0 * two.linear, 0 * two.matrix).plus(two, one.constant)
        return None

    @property
    def kind(self) -> str:
        """Its curvature."""
        if not self.matrix.any():
            return AFFINE
        return CONVEX if semidefinite(self.matrix) else CONCAVE if semidefinite(-self.matrix) else UNKNOWN

    @property
    def rooted(self) -> bool:
        """Whether it is a sum of squares of affine functions."""
        border = self.linear[:, None]
        return semidefinite(np.block([[self.matrix, border], [border.T, np.array([[2 * self.constant]])]]))


def semidefinite(matrix: FloatArray) -> bool:
    """Whether a symmetric matrix is positive semidefinite, but for rounding; scaled to a unit diagonal."""
    diagonal = np.diagonal(matrix)
    used = np.flatnonzero(np.abs(matrix).max(axis=0, initial=0.0))
    if not np.all(np.isfinite(matrix)) or np.any(diagonal[used] <= 0):
        return False
    root = np.sqrt(diagonal[used])
    scaled = matrix[np.ix_(used, used)] / root[:, None] / root[None]
    return not len(used) or float(np.linalg.eigvalsh(scaled)[0]) >= -ROUNDING * len(used)


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a part of a formula.

    ``rooted`` says that it is not negative and its root convex, ``logged`` that it is positive and its logarithm is.
    """

    traits: Traits
    text: str
    parts: tuple[Known, ...] = ()
    quadratic: Quadratic | None = None
    rooted: bool = False
    logged: bool = False

    @property
    def affine(self) -> bool:
        return self.traits.kind == AFFINE

    @property
    def convex(self) -> bool:
        return self.traits.kind in (AFFINE, CONVEX)

    @property
    def concave(self) -> bool:
        return self.traits.kind in (AFFINE, CONCAVE)

    @property
    def nonnegative(self) -> bool:
        return self.traits.low >= 0


def number(value: float, text: str, size: int) -> Known:
    """A number that is known."""
    quadratic = Quadratic(value, np.zeros(size), np.zeros((size, size)))
    traits = Traits(AFFINE, value, value, value)
    return Known(traits, text, quadratic=quadratic, rooted=value >= 0, logged=value > 0)


def data(low: float, high: float, text: str) -> Known:
    """Something that does not depend on the variables."""
    return Known(Traits(DATA, low, high), text, rooted=low >= 0, logged=low > 0)


def variable(place: int, size: int, low: float, high: float) -> Known:
    """A variable between bounds."""
    unit = np.zeros(size)
    unit[place] = 1.0
    return Known(Traits(AFFINE, low, high), f"v{place}", quadratic=Quadratic(0.0, unit, np.zeros((size, size))))


def known_of(formula: Formula, slots: Sequence[Known], axes: Sequence[Known], size: int) -> Known:
    """What the rules know of a formula, from what is known of its data and coordinates."""
    return formula.fold(lambda text: number(float(text), text, size), slots, lambda axis: axes[axis], _node)


def _node(name: str, parts: list[Known]) -> Known:
    if name == "same":
        return parts[0]
    traits = NODES[name].traits([part.traits for part in parts])
    found = Known(traits, f"{name}({','.join(part.text for part in parts)})", tuple(parts), _quadratic(name, parts))
    if traits.constant:
        return replace(found, rooted=traits.low >= 0, logged=traits.low > 0)
    rooted, logged = _rooted(name, parts), _logged(name, parts)
    kind = traits.kind
    if kind == UNKNOWN:
        kind = CONVEX if logged else _more_rules(name, parts)
    if kind == UNKNOWN and found.quadratic is not None:
        kind = found.quadratic.kind
        rooted = rooted or (kind == CONVEX and found.quadratic.rooted)
    low = max(traits.low, 0.0) if rooted or logged else traits.low
    return replace(found, traits=Traits(kind, low, traits.high), rooted=rooted, logged=logged)


def _quadratic(name: str, parts: Sequence[Known]) -> Quadratic | None:
    """Coefficients where a node is quadratic."""
    inner = [part.quadratic for part in parts if part.quadratic is not None]
    if len(inner) < len(parts) or not inner:
        return None
    if name == "+":
        total = inner[0]
        for each in inner[1:]:
            total = total.plus(each)
        return total
    if name == "-":
        return inner[0].plus(inner[0], -2.0)
    if name == "*":
        return inner[0].times(inner[1])
    divisor = parts[-1].traits.literal
    if name == "/" and divisor:
        return Quadratic(0.0, 0 * inner[0].linear, 0 * inner[0].matrix).plus(inner[0], 1 / divisor)
    if name == "**" and divisor in (1.0, 2.0):
        return inner[0] if divisor == 1.0 else inner[0].times(inner[0])
    return None


def _rooted(name: str, parts: Sequence[Known]) -> bool:
    """Whether the root of a node is convex."""
    if name == "+":
        return all(part.rooted for part in parts)
    if name == "*":
        squared = parts[0].text == parts[1].text and _magnitude(parts[0])
        return squared or (any(part.traits.constant for part in parts) and all(part.rooted for part in parts))
    if name == "/":
        return parts[1].traits.constant and parts[1].traits.low > 0 and parts[0].rooted
    if name == "**":
        power = parts[1].traits.literal
        if power is None:
            return False
        return (power == 2 and _magnitude(parts[0])) or (power >= 1 and parts[0].rooted)
    return False


def _magnitude(part: Known) -> bool:
    """Whether the absolute value of a part is convex."""
    return part.affine or (part.convex and part.nonnegative)


def _logged(name: str, parts: Sequence[Known]) -> bool:
    """Whether the logarithm of a node is convex."""
    if name == "exp":
        return parts[0].convex
    if name in ("+", "*"):
        return all(part.logged for part in parts)
    if name == "/":
        return parts[0].logged and parts[1].concave and parts[1].nonnegative
    if name == "**":
        power = parts[1].traits.literal
        if power is None:
            return False
        return (power > 0 and parts[0].logged) or (power < 0 and parts[0].concave and parts[0].nonnegative)
    return False


def _more_rules(name: str, parts: Sequence[Known]) -> str:
    """Curvature by rules that the table of nodes has not."""
    convex = False
    if name == "*":
        one, other = parts
        convex = (one.text == other.text and _magnitude(one)) or _is_entropy(one, other) or _is_entropy(other, one)
    elif name == "/":
        one, other = parts
        below = other.concave and other.nonnegative
        convex = below and (one.rooted or (one.traits.constant and one.nonnegative))
        if below and one.traits.constant and one.traits.high <= 0:
            return CONCAVE
    elif name == "sqrt":
        convex = parts[0].rooted
    elif name == "log":
        convex = parts[0].logged
    elif name == "**":
        power = parts[1].traits.literal
        convex = power is not None and power >= 0.5 and parts[0].rooted
    elif name == "if" and parts[0].traits.constant:
        if all(part.concave for part in parts[1:]):
            return CONCAVE
        convex = all(part.convex for part in parts[1:])
    return CONVEX if convex else UNKNOWN


def _is_entropy(one: Known, other: Known) -> bool:
    """Whether two parts are ``a`` and ``log(a)`` or ``log(a / b)``, of affine a and b that are not negative."""
    if not (one.affine and one.nonnegative and other.text.startswith("log(")):
        return False
    (inner,) = other.parts
    if inner.text == one.text:
        return True
    if not inner.text.startswith("/(") or len(inner.parts) != 2:
        return False
    above, below = inner.parts
    return above.text == one.text and below.affine and below.nonnegative
