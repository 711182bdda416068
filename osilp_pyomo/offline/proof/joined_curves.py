"""Curves of many columns at a given x as one: a weighted sum of piecewise polynomials is a piecewise polynomial.

Column by column, the enclosure of a spline is as wide as those of all of its functions together; the spline itself is
enclosed as tightly as any polynomial, in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.curves.splines import PiecewisePolynomial
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.offline.rows import TermGroup

Terms = list[tuple[TermGroup, FloatArray]]

_UNIT = 2.0**-52
_CURVE = ("curve", 1)


def join_curves(terms: Terms) -> Terms:
    """Terms with one curve in place of all that are splines of one coordinate on the same breaks."""
    joined: dict[tuple[int, bytes], list[tuple[list[PiecewisePolynomial], FloatArray]]] = {}
    kept: Terms = []
    examples: dict[tuple[int, bytes], TermGroup] = {}
    for group, weights in terms:
        found = _splines(group, weights)
        if found is None:
            kept.append((group, weights))
            continue
        axis, curves, factors = found
        key = axis, curves[0].breaks.tobytes()
        joined.setdefault(key, []).append((curves, factors))
        examples.setdefault(key, group)
    for key, parts in joined.items():
        curve = _joined([each for curves, _ in parts for each in curves], np.concatenate([w for _, w in parts]))
        formula = Formula((_CURVE, key[0]), (None,))
        columns = examples[key].columns[:1]
        group = replace(examples[key], slots=(CurveStack.of_tables((curve,)),), columns=columns, formula=formula)
        kept.append((group, np.ones(1)))
    return kept


def _splines(group: TermGroup, weights: FloatArray) -> tuple[int, list[PiecewisePolynomial], FloatArray] | None:
    """Axis, curves and weights of a group of numbers times splines of one coordinate; None if it is another one."""
    if group.formula is None or not len(weights):
        return None
    shape, literals, slots = list(group.formula.shape), list(group.formula.literals), list(group.slots)
    factor: Any = 1.0
    while shape:
        if shape[0] == ("-", 1):
            shape, factor = shape[1:], -factor
        elif shape[:2] == [("*", 2), "#"]:
            literal = literals.pop(0)
            number = float(literal) if literal is not None else slots.pop(0)
            if not isinstance(number, float | np.ndarray):
                return None
            shape, factor = shape[2:], factor * number
        else:
            break
    if len(shape) != 2 or shape[0] != _CURVE or not isinstance(shape[1], int) or len(slots) != 1:
        return None
    curves = slots[0].members() if isinstance(slots[0], CurveStack) else ()
    if not curves or not all(isinstance(each, PiecewisePolynomial) for each in curves):
        return None
    first = curves[0]
    if not all(np.array_equal(each.breaks, first.breaks) for each in curves):
        return None
    return shape[1], list(curves), factor * weights


def _joined(curves: Sequence[PiecewisePolynomial], weights: FloatArray) -> PiecewisePolynomial:
    """The weighted sum of curves, with what its coefficients lost by rounding."""
    degree = max(each.coefficients.shape[1] for each in curves)
    stacked = np.stack([np.pad(e.coefficients, ((0, 0), (0, degree - e.coefficients.shape[1]))) for e in curves])
    total = np.tensordot(weights, stacked, axes=1)
    # Factors were multiplied, and products summed in any order.
    doubt = (len(weights) + 4) * _UNIT * np.tensordot(np.abs(weights), np.abs(stacked), axes=1)
    return PiecewisePolynomial(curves[0].name, curves[0].breaks, total, doubt)
