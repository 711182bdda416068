"""What rounding can make of rows at single points.

The numbers of a row at a point are the last digits of its formulas: where large terms cancel they are not what the row
is there. An enclosure at the point tells. Where it is rounding that decides on which side of a condition the point is,
the enclosure holds both sides; then a coefficient counts as its own function gives it, if it has that value right
beside the point, where the condition is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError, Opening, coordinates
from osilp_pyomo.index.sobol import sobol_points
from osilp_pyomo.offline.conflicts import VALUES
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import BLOCK_SIZE, AffineRows, TermGroup, TracedRows

_UNIT = 2.0**-52
# How far beside a point is, in roundings of the largest number of the index. Sides that are longer than the second
# number stand for ones without an end: there the point itself counts. Diagonals are looked at up to some dimension.
_BESIDE, _FAR, _DIAGONALS = 64 * _UNIT, 1e8, 3
# What formulas lose in general, relative to their values; where it is more, they are looked at beside the point too.
USUAL = 64 * _UNIT
# Coefficients of one family that are enclosed at most; of more than that it is assumed that they lose what is usual.
_MOST_ENCLOSED = 2_000_000
# Points of a region are looked for among so many, and so many of them are taken at most.
_TRIED, _OTHERS = 256, 16
# A row of which more than this is lost, relative to its size, is looked for at other points, so many times farther.
_MUCH, _FARTHER = 1e-10, (1.0, 64.0, 4096.0)


def width_beside(points: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """How far beside points (m, d) of a box is, along each axis."""
    whole = np.maximum(np.abs(low), np.abs(high))
    return _BESIDE * np.where(high - low > _FAR, np.maximum(np.abs(points), 1.0), whole)


def points_beside(points: FloatArray, low: FloatArray, high: FloatArray, farther: float = 1.0) -> FloatArray:
    """Points (k, m, d) of a box right beside each of the points (m, d), to all sides."""
    dimension = points.shape[1]
    if dimension <= _DIAGONALS:
        moves = np.array([move for move in product((-1.0, 0.0, 1.0), repeat=dimension) if any(move)])
    else:
        moves = np.concatenate([np.eye(dimension), -np.eye(dimension)])
    return np.clip(points + moves[:, None] * (farther * width_beside(points, low, high)), low, high)


def rounding_of_terms(
    group: TermGroup, points: FloatArray, domain: Domain, values: FloatArray | None = None
) -> FloatArray:
    """How far coefficients (c, m) of a group at points (m, d) of a domain may be from their values.

    Raises
    ------
    NoEnclosureError
        A part of the formula has values that nothing is known of.
    """
    if values is None:
        values = group.block(slice(None), points)
    lost = _away(group, points, values)
    unusual = lost > USUAL * np.abs(values)
    if unusual.any():
        columns, places = np.flatnonzero(unusual.any(axis=1)), np.flatnonzero(unusual.any(axis=0))
        few, at = group.take(columns), np.ix_(columns, places)
        for beside in points_beside(points[places], domain.lower, domain.upper):
            lost[at] = np.minimum(lost[at], _away(few, beside, values[at]))
    return lost


def _away(group: TermGroup, points: FloatArray, values: FloatArray) -> FloatArray:
    """How far coefficients at points may be from given values."""
    at = np.ascontiguousarray(points.T)
    with np.errstate(all="ignore"):
        low, high = group.enclose(slice(None), coordinates(at, at), Opening(len(at), 0)).value
        return np.nan_to_num(np.maximum(np.maximum(high - values, values - low), 0.0), nan=np.inf, posinf=np.inf)


def rounding_of_sum(
    terms: Sequence[tuple[TermGroup, FloatArray]], points: FloatArray, domain: Domain, added: int = 0
) -> FloatArray:
    """How far the sum of all terms, each times a weight, may be at points (m, d) from what it is computed as.

    ``added`` is how many numbers are added up in that.

    Raises
    ------
    NoEnclosureError
        A part of the formula has values that nothing is known of.
    """
    result = np.zeros(len(points))
    for group, weights in terms:
        step = max(1, BLOCK_SIZE // max(1, len(points)))
        for first in range(0, len(weights), step):
            part = np.arange(first, min(first + step, len(weights)))
            chosen, size = group.take(part), np.abs(weights[part])[:, None]
            values = chosen.block(slice(None), points)
            lost = rounding_of_terms(chosen, points, domain, values) + added * _UNIT * np.abs(values)
            with np.errstate(all="ignore"):
                result += np.where((lost > 0) & (size > 0), size * lost, 0.0).sum(axis=0)
    return result


def rounding_at(family: Family, points: FloatArray, above: BoolArray, reach: FloatArray) -> FloatArray:
    """How far ``a(u) x - b(u)`` may be from what the row's own functions give at points (m, d) of its domain.

    ``above`` (m) says which limit b is, the upper or the lower one, ``reach`` how large each variable may be. Where
    that is much, or where it is rounding that decides whether a point belongs to the index, it is how far it may be
    from another row near the point, which is known better; infinite where there is none. Of rules that are called at
    points nothing is known: their numbers count as they are.
    """
    size = family.user_masses(points, np.ones(len(points)))
    points, family = family.user_points(points), family.as_declared
    result = _rounding_of_rows(family, points, above, reach)
    result[~_belong(family.domain, points)] = np.inf
    if not isinstance(family.rows, TracedRows) or family.domain.body is not None:
        return size * result
    for farther in _FARTHER:
        much = np.flatnonzero(result > _MUCH * _size_of_rows(family, points, above, reach))
        if not len(much):
            break
        at, sides = points[much], above[much]
        for moved in _near(family.domain, at, farther):
            there = np.flatnonzero(_belong(family.domain, moved))
            lost = _change(family, at[there], moved[there], sides[there], reach)
            better = lost < result[much[there]]
            there, lost = there[better], lost[better]
            if len(there):
                lost += _rounding_of_rows(family, moved[there], sides[there], reach)
                result[much[there]] = np.minimum(result[much[there]], lost)
    return size * result


def rounding_within_bounds(family: Family, points: FloatArray, above: BoolArray, reach: FloatArray) -> FloatArray:
    """As :func:`rounding_at`, for values up to a reach that is infinite for a variable without a bound.

    Such a variable may be as large as ``VALUES``. What each of its coefficients loses as usual does not count: for the
    row whose coefficients differ from these by some roundings the answer is the same.
    """
    free = ~np.isfinite(reach)
    result = rounding_at(family, points, above, np.where(free, 0.0, reach))
    if free.any() and np.isfinite(result).all():
        one, none = free.astype(float), np.zeros(len(reach))
        lost = rounding_at(family, points, above, one) - rounding_at(family, points, above, none)
        usual = np.zeros(len(points))
        at = family.user_points(points)
        for columns, part, block in family.as_declared.rows.blocks(at):
            usual[part] += one[columns] @ np.abs(block)
        usual *= 2 * USUAL * family.user_masses(points, np.ones(len(points)))
        result += np.where(lost > usual, VALUES * lost, 0.0)
    return result


def _belong(domain: Domain, points: FloatArray) -> BoolArray:
    """Whether points are known to belong to a domain; those of an uncertainty set are told up to rounding anyway."""
    if domain.region is None or domain.body is not None:
        return domain.contains(points)
    at = np.ascontiguousarray(points.T)
    with np.errstate(all="ignore"):
        holds = domain.region.enclose(coordinates(at, at), Opening(domain.dimension, 0)).holds
    within = np.all((points >= domain.lower) & (points <= domain.upper), axis=1)
    return np.broadcast_to(holds, (1, len(points)))[0] & within


def _near(domain: Domain, points: FloatArray, farther: float) -> Iterator[FloatArray]:
    """Points near others: to all sides of each, and towards some points of the domain.

    In a corner of a region no side may lead into it, but the way to other points of it does.
    """
    yield from points_beside(points, domain.lower, domain.upper, farther)
    if domain.inside is not None and domain.bounded:
        step = farther * width_beside(points, domain.lower, domain.upper)
        others = domain.lower + sobol_points(_TRIED, domain.dimension) * domain.width
        for other in others[domain.contains(others)][:_OTHERS]:
            way = (other - points) / domain.width
            yield points + step * way / np.maximum(np.abs(way).max(axis=1, keepdims=True), 1e-300)


def _size_of_rows(family: Family, points: FloatArray, above: BoolArray, reach: FloatArray) -> FloatArray:
    """Sum of the absolute terms of rows, for variables up to their reach."""
    limit = np.where(above, *reversed(family.rows.limits(points)))
    result = np.where(np.isfinite(limit), np.abs(limit), 0.0)
    for columns, at, block in family.rows.blocks(points):
        result[at] += reach[columns] @ np.abs(block)
    return result


def _change(family: Family, one: FloatArray, other: FloatArray, above: BoolArray, reach: FloatArray) -> FloatArray:
    """How far rows at some points are from those at others, for variables up to their reach."""
    limit, beside = (np.where(above, *reversed(family.rows.limits(points))) for points in (one, other))
    with np.errstate(all="ignore"):
        result = np.where(limit == beside, 0.0, np.abs(limit - beside))
        blocks = zip(family.rows.blocks(one), family.rows.blocks(other), strict=True)
        for (columns, at, block), (_, _, moved) in blocks:
            result[at] += reach[columns] @ np.abs(block - moved)
    return np.nan_to_num(result, nan=np.inf, posinf=np.inf)


def _rounding_of_rows(family: Family, points: FloatArray, above: BoolArray, reach: FloatArray) -> FloatArray:
    """What rounding may make of rows at points that belong to the domain."""
    rows, domain = family.rows, family.domain
    lower, upper = rows.limits(points)
    limit = np.where(above, upper, lower)
    if isinstance(rows, AffineRows):
        terms = (np.abs(rows.matrix[0]) + np.abs(points) @ np.abs(rows.matrix[1:])) @ reach[rows.columns]
        return (2 + domain.dimension) * _UNIT * (terms + np.where(np.isfinite(limit), np.abs(limit), 0.0))
    if not isinstance(rows, TracedRows):
        return np.zeros(len(points))
    try:
        if len(rows.columns) * len(points) > _MOST_ENCLOSED:
            raise NoEnclosureError("its coefficients are too many")
        result = rounding_of_sum([(group, reach[group.columns]) for group in rows.groups], points, domain)
    except NoEnclosureError:
        result = np.zeros(len(points))
        for columns, at, block in rows.blocks(points):
            result[at] += USUAL * (reach[columns] @ np.abs(block))
    for side, given in ((above, rows.upper), (~above, rows.lower)):
        if side.any() and given is not None:
            ones = [(group, np.ones(len(group.columns))) for group in given]
            total = sum((group.total(points[side]) for group in given), np.zeros(int(side.sum())))
            # A limit that may be zero counts as zero.
            result[side] += np.abs(total - limit[side])
            try:
                result[side] += rounding_of_sum(ones, points[side], domain, sum(len(each) for _, each in ones))
            except NoEnclosureError:
                result[side] += USUAL * np.abs(total)
    return result
