"""Curvature of rows read from their formulas: quadratic ones by their Hessians, others by the rules of convexity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.expressions import shape_of
from osilp_pyomo.index.convexity import AFFINE, UNKNOWN, Shape, by_rules, plain
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import RowCurvature, TermCurvature, TermGroup, TracedRows
from osilp_pyomo.relations import RelationTerms


def read_curvature(
    row: RelationTerms, placeholders: Sequence[Any], column_of: Mapping[int, int], family: Family
) -> RowCurvature:
    """Curvature of a family's coefficients and limits in the index, from the terms of its row."""
    rows = family.rows
    assert isinstance(rows, TracedRows)
    axes = {id(placeholder): axis for axis, placeholder in enumerate(placeholders)}
    by_column = {column_of[id(variable)]: coefficient for variable, coefficient in row.body.items()}
    body = _terms([by_column[int(column)] for column in rows.columns], rows.groups, rows.columns, axes, family.domain)

    def limit(terms: list[Any] | None, groups: Sequence[TermGroup] | None) -> TermCurvature | None:
        if terms is None or groups is None:
            return None
        return _terms([sum(terms)], groups, np.zeros(1, dtype=np.int64), axes, family.domain)

    return RowCurvature(rows.columns, body, limit(row.lower, rows.lower), limit(row.upper, rows.upper))


def _terms(
    expressions: Sequence[Any], groups: Sequence[TermGroup], columns: Any, axes: Mapping[int, int], domain: Domain
) -> TermCurvature:
    degrees = [_degree(expression, axes) for expression in expressions]
    kinds = [
        AFFINE if degree is not None and degree <= 2 else _by_rules(expression, axes, domain)
        for expression, degree in zip(expressions, degrees, strict=True)
    ]
    hessians = np.zeros((len(expressions), domain.dimension, domain.dimension))
    if 2 in degrees:
        quadratic = np.array([degree == 2 for degree in degrees])
        hessians[quadratic] = _hessians(groups, columns, domain)[quadratic]
    return TermCurvature(tuple(kinds), hessians)


def _degree(node: Any, axes: Mapping[int, int]) -> int | None:
    """Degree of a polynomial in the index; None for what is no polynomial, or of a degree above 2."""
    if node.__class__ in native_types:
        return 0
    if not node.is_expression_type():
        return int(id(node) in axes)
    degrees = [_degree(part, axes) for part in node.args]
    if None in degrees:
        return None
    known = [degree for degree in degrees if degree is not None]
    if not any(known):
        return 0
    result: int | None = None
    if isinstance(node, numeric.SumExpression):
        result = max(known)
    elif isinstance(node, numeric.ProductExpression):
        result = sum(known)
    elif (
        isinstance(node, numeric.NegationExpression)
        or node.is_named_expression_type()
        or (isinstance(node, numeric.DivisionExpression) and known[1] == 0)
    ):
        result = known[0]
    elif isinstance(node, numeric.PowExpression) and node.args[1].__class__ in native_numeric_types:
        exponent = node.args[1]
        result = known[0] * int(exponent) if exponent in (1, 2) else None
    return result if result is not None and result <= 2 else None


def _by_rules(expression: Any, axes: Mapping[int, int], domain: Domain) -> str:
    shape, leaves = shape_of(expression, axes)
    literals: list[str | None] = []
    slots: list[Shape] = []
    for leaf in leaves:
        if leaf.__class__ in native_numeric_types:
            literals.append(repr(float(leaf)))
            continue
        value: Any = None if hasattr(leaf, "curve_table") else leaf(exception=False)
        if value.__class__ not in native_numeric_types:
            return UNKNOWN
        literals.append(None)
        slots.append(Shape("data", float(value), float(value)))
    ranges = {
        axis: Shape(AFFINE, float(domain.lower[axis]), float(domain.upper[axis])) for axis in range(domain.dimension)
    }
    return plain(by_rules(shape, literals, slots, ranges).curvature)


def _hessians(groups: Sequence[TermGroup], columns: Any, domain: Domain) -> FloatArray:
    """Hessians (n, d, d) of quadratic functions by differences, which are exact for them but for rounding."""
    dimension = domain.dimension
    assert domain.body is not None
    step = np.diag(domain.width) / 2
    pairs = [(i, j) for i in range(dimension) for j in range(i)]
    moves = [np.zeros(dimension), *step, *-step, *(step[i] + step[j] for i, j in pairs)]
    values = np.zeros((len(columns), len(moves)))
    points = domain.body.centre + np.array(moves)
    for group in groups:
        np.add.at(values, np.searchsorted(columns, group.columns), group.block(slice(None), points))
    middle, up, down = values[:, 0], values[:, 1 : dimension + 1], values[:, dimension + 1 : 2 * dimension + 1]
    result = np.zeros((len(columns), dimension, dimension))
    width = np.diagonal(step)
    diagonal = np.arange(dimension)
    result[:, diagonal, diagonal] = (up + down - 2 * middle[:, None]) / width**2
    for (i, j), both in zip(pairs, values[:, 2 * dimension + 1 :].T, strict=True):
        result[:, i, j] = result[:, j, i] = (both - up[:, i] - up[:, j] + middle) / (width[i] * width[j])
    return result
