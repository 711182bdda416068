"""Audit: check an answer by code that did not compute it.

The rows are evaluated on points that no method uses (a Kronecker sequence, and points crowded around
the worst one known), other ones at each look, the dual equations are formed again from the prices, and the gap is the
distance between the objective and the dual objective that follows from them. What looks before the last one find may
be learned from; what the last one finds is reported and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.lp.finite import closing_shares, excess_of, violation_scale
from osilp_pyomo.offline.problem import SCALE_FLOOR, Family, SemiInfiniteLP
from osilp_pyomo.offline.roundings import rounding_at
from osilp_pyomo.offline.rows import AffineRows
from osilp_pyomo.offline.search.scan import apart, scan_points

# Coefficients evaluated for one family: a fiftieth of a second at ten nanoseconds each.
_BUDGET = 2_000_000
# Vectors of a set of uncertain ones; where rows are affine they are separated exactly, and this is a second check.
_VECTORS, _FEW_VECTORS = 128, 8
_FEWEST, _MOST = 2_003, 20_011
# With very many columns fewer points, so that no more coefficients than this are evaluated (some five seconds).
_COEFFICIENTS, _FEWEST_OF_ALL = 500_000_000, 101
# The relative error of one rounding, and products that are added with more digits at most.
_UNIT, _MOST_EXACT = 2.0**-53, 2_000_000
# Peaks that the audit of a family reports, and how far they are from each other in widths of the domain.
_PEAKS, _APART = 8, 0.02
# A reduced cost that should be zero may be this share of the terms that it is the sum of: some roundings, no more.
_CANCELLED = 32 * _UNIT
# What such a reduced cost has left over must not matter for values so many times as large as at this answer.
_FARTHER = 100.0
# Prices are balanced where they miss by more than a rounding and are not plainly wrong, if there are not too many, and
# again while that helps; atoms are spread to both sides by this share of the index where their masses do not suffice.
_BALANCED, _OPEN, _MOST_BALANCED, _BALANCINGS, _SPREAD = 2 * _UNIT, 1e-3, 4_000_000, 4, 1e-7
# A price moves by at most this share of the width of its set.
_MOVED = 1e-9
# A reduced cost that is this share of its terms may be zero but for what a solver leaves.
_NEARLY = 1e-6
# What balancing may cost of a bound, relative to 1 + |bound|.
_SAME_BOUND = 1e-9
# Points at which the usual size of a coefficient is looked at.
_FEW = 32
# Coefficients of affine rows that are looked at together, where each family has few.
_TOGETHER = 500_000


@dataclass(frozen=True, eq=False)
class FamilyAudit:
    """Violation of one family on the audit's own points.

    ``violation`` is max(0, largest excess), found at ``worst``; ``relative`` divides each excess by ``max(|b(u)|,
    scale)``, where ``scale`` is the median of ``|b(u)|`` (1 where that is zero). ``scaled`` divides it by the size of
    the row at that very point (:func:`violation_scale`); it is what decides whether an answer is feasible, and
    ``worst_scaled`` is where; ``size`` is that of most points. ``peaks`` are the highest points that stand apart from
    each other.
    """

    name: str
    points: int
    violation: float
    relative: float
    worst: FloatArray
    scale: float
    scaled: float
    worst_scaled: FloatArray
    peaks: FloatArray
    size: float = 0.0

    def merge(self, other: FamilyAudit) -> FamilyAudit:
        """The worse of two audits in every respect; ``scale`` stays that of the first, which saw the whole domain."""
        worse = self if self.violation >= other.violation else other
        scaled = self if self.scaled >= other.scaled else other
        return FamilyAudit(
            self.name,
            self.points + other.points,
            worse.violation,
            max(self.relative, min(other.relative, other.violation / self.scale)),
            worse.worst,
            self.scale,
            scaled.scaled,
            scaled.worst_scaled,
            self.peaks,
            self.size,
        )


@dataclass(frozen=True, eq=False)
class Audit:
    """What an independent check of an answer found.

    ``ordinary_violation`` is that of ordinary rows and bounds, relative to their size; ``dual_infeasibility`` the
    largest amount by which the prices miss the dual equations or their sign, ``dual_bound`` the bound they
    prove up to ``doubt`` (what they miss, times the variables it belongs to), ``rounding`` what the sums it is made of
    may have lost, and ``rounding_of_rows`` the part of it that their rows have, ``gap`` its distance from the
    objective; nan where there are no prices. ``unbalanced`` is by which share of its terms the dual equation of a
    variable without a bound is missed.
    """

    families: tuple[FamilyAudit, ...]
    ordinary_violation: float
    dual_infeasibility: float
    dual_bound: float
    doubt: float
    gap: float
    rounding: float = 0.0
    unbalanced: float = 0.0
    rounding_of_rows: float = 0.0

    @property
    def proves_bound(self) -> bool:
        """Whether the prices prove the bound they are said to prove, up to a millionth of it.

        Without prices, and with integers there are none, the bound is that of HiGHS.
        """
        return np.isnan(self.dual_bound) or self.doubt + self.rounding <= 1e-6 * (1 + abs(self.dual_bound))

    @property
    def violation(self) -> float:
        """Largest violation of any family."""
        return max((each.violation for each in self.families), default=0.0)

    def to_frame(self) -> pd.DataFrame:
        """One row per family: points evaluated, violation, relative violation."""
        return pd.DataFrame(
            {
                "points": [each.points for each in self.families],
                "violation": [each.violation for each in self.families],
                "relative_violation": [each.relative for each in self.families],
            },
            index=pd.Index([each.name for each in self.families], name="family"),
        )

    def __str__(self) -> str:
        points = sum(each.points for each in self.families)
        text = f"violation {self.violation:.2g} on {points:,} fresh points"
        if not points:
            text = "no semi-infinite rows"
        if np.isfinite(self.gap):
            text += f"; dual equations missed by {self.dual_infeasibility:.2g}, duality gap {self.gap:.2g}"
        return text

    # With thousands of families nobody reads all their numbers; to_frame() has them.
    __repr__ = __str__


def audit_family(
    family: Family,
    x: FloatArray,
    near: FloatArray | None = None,
    look: int = 0,
    hurry: bool = False,
    proved: bool = False,
) -> FamilyAudit:
    """Evaluate a family at points of the audit's own; ``near`` (k, d) are points to evaluate it around."""
    # A sampled rule is called at each point, which costs as much as many columns.
    columns = len(family.rows.columns) if family.route == "traced" else _BUDGET
    columns = max(columns, _COEFFICIENTS if hurry else _BUDGET // _FEWEST if proved else 0)
    return audit_at(family, x, audit_points(family.domain, columns, near, look))


def audit_families(
    families: Sequence[Family],
    x: FloatArray,
    near: Sequence[FloatArray],
    look: int = 0,
    hurry: bool = False,
    proved: bool = False,
) -> list[FamilyAudit]:
    """Evaluate families at points of the audit's own, others at each look; affine rows over one set together.

    In a ``hurry``, because time is up, at as few as there can be; at some thousand where the rows are ``proved``.
    """
    looks: dict[int, FamilyAudit] = {}
    together: dict[int, list[int]] = {}
    for number, family in enumerate(families):
        if isinstance(family.rows, AffineRows) and family.domain.body is not None:
            together.setdefault(id(family.domain.body), []).append(number)
        else:
            looks[number] = audit_family(family, x, near[number], look, hurry, proved)
    for numbers in together.values():
        chosen = [families[number] for number in numbers]
        seen = _audit_together(chosen, x, [near[number] for number in numbers], look, proved)
        looks.update(zip(numbers, seen, strict=True))
    return [looks[number] for number in range(len(families))]


def _audit_together(
    families: Sequence[Family], x: FloatArray, near: Sequence[FloatArray], look: int, proved: bool
) -> list[FamilyAudit]:
    """Violation of many families of affine rows over one uncertainty set, as by :func:`audit_at`, in one pass."""
    body = families[0].domain.body
    assert body is not None
    few = proved and body.separation in ("linear program", "convex program")
    # Where a program is to be solved for each, and the rows are proved, those that are known already will do.
    drawn = body.cloud(_FEW_VECTORS, seed=2 * (1 + look)) if few else body.cloud(_VECTORS, seed=1 + look)
    own = max(1, max(map(len, near)))
    shape = (len(families), len(drawn) + own)
    points = np.empty((*shape, body.dimension))
    points[:, : len(drawn)] = drawn
    for k, close in enumerate(near):
        points[k, len(drawn) :] = drawn[0] if not len(close) else close[np.arange(own) % len(close)]
    activity, size = np.empty(shape), np.empty(shape)
    for at, columns, matrix in _stacked(families, shape[1]):
        coefficients = points[at] @ matrix[:, 1:]
        coefficients += matrix[:, :1]
        activity[at] = coefficients @ x[columns]
        size[at] = np.abs(coefficients, out=coefficients) @ np.abs(x[columns])
    lower, upper = _limits_of(families, points)
    excess = excess_of(activity, lower, upper)
    limit = np.abs(np.where(activity - upper >= lower - activity, upper, lower))
    limit = np.where(np.isfinite(limit), limit, 0.0)
    median = np.median(limit, axis=1)
    scale = np.where(median > 0, median, 1.0)
    relative = (excess / np.maximum(limit, scale[:, None])).max(axis=1)
    sizes = violation_scale(activity, size, lower, upper)
    usual = np.median(sizes, axis=1)
    scaled = excess / np.maximum(sizes, SCALE_FLOOR * usual[:, None])
    worst, worst_scaled = np.argmax(excess, axis=1), np.argmax(scaled, axis=1)
    return [
        FamilyAudit(
            family.name,
            shape[1],
            _positive(float(excess[k, worst[k]])),
            _positive(float(relative[k])),
            points[k, worst[k]],
            float(scale[k]),
            _positive(float(scaled[k, worst_scaled[k]])),
            points[k, worst_scaled[k]],
            points[k, worst[k]][None],
            float(usual[k]),
        )
        for k, family in enumerate(families)
    ]


def _stacked(families: Sequence[Family], points: int) -> Iterator[tuple[slice, IntArray, FloatArray]]:
    """Families of affine rows over the same columns, one after the other, and their matrices (k, 1 + d, n)."""
    first = 0
    while first < len(families):
        columns, last = families[first].rows.columns, first + 1
        most = first + max(1, _TOGETHER // max(1, points * len(columns)))
        while last < min(most, len(families)) and families[last].rows.columns is columns:
            last += 1
        yield slice(first, last), columns, np.array([_affine(family).matrix for family in families[first:last]])
        first = last


def _limits_of(families: Sequence[Family], points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both limits of families of affine rows, each at some points: arrays (k, m) of points (k, m, d)."""
    sides = []
    for none, given in (
        (-np.inf, [_affine(family).lower for family in families]),
        (np.inf, [_affine(family).upper for family in families]),
    ):
        limits = np.array([np.zeros(1 + points.shape[2]) if limit is None else limit for limit in given])
        values = limits[:, :1] + (points @ limits[:, 1:, None])[:, :, 0]
        values[[limit is None for limit in given]] = none
        sides.append(values)
    return sides[0], sides[1]


def _affine(family: Family) -> AffineRows:
    assert isinstance(family.rows, AffineRows)
    return family.rows


def _positive(number: float) -> float:
    """A number, or zero where it is below; what is not a number stays so, and counts as no violation nowhere."""
    return number if number > 0 or number != number else 0.0


def _vectors(body: Body, near: FloatArray | None, look: int) -> FloatArray:
    """Vectors of an uncertainty set drawn for the audit alone, and others between them and those given."""
    drawn = body.cloud(_VECTORS, seed=1 + look)
    if near is None or not len(near):
        return drawn
    if not body.convex:
        return np.concatenate([drawn, near])
    share = np.array([0.5, 0.1, 0.01])[:, None, None]
    between = (near[:8] + share * (drawn[: len(near[:8])] - near[:8])).reshape(-1, body.dimension)
    return np.concatenate([drawn, near, between])


def audit_at(family: Family, x: FloatArray, points: FloatArray) -> FamilyAudit:
    """Violation of a family at given points."""
    family = family.used_by(x)
    lower, upper = family.limits(points)
    return audit_from_values(family.name, family.domain, points, *family.activity_and_size(points, x), lower, upper)


def audit_from_values(
    name: str,
    domain: Domain,
    points: FloatArray,
    activity: FloatArray,
    size: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FamilyAudit:
    """Violation of a family from values of its row at points, sums of the absolute terms there, and limits."""
    excess = excess_of(activity, lower, upper)
    limit = np.abs(np.where(activity - upper >= lower - activity, upper, lower))
    limit = np.where(np.isfinite(limit), limit, 0.0)
    scale = float(np.median(limit)) or 1.0
    worst = int(np.argmax(excess))
    relative = float(np.max(excess / np.maximum(limit, scale)))
    sizes = violation_scale(activity, size, lower, upper)
    scaled = excess / np.maximum(sizes, SCALE_FLOOR * np.median(sizes))
    worst_scaled = int(np.argmax(scaled))
    highest = points[np.argsort(-excess, kind="stable")[:500]]
    return FamilyAudit(
        name,
        len(points),
        _positive(float(excess[worst])),
        _positive(relative),
        points[worst],
        scale,
        _positive(float(scaled[worst_scaled])),
        points[worst_scaled],
        highest[apart(highest / domain.width, _APART, _PEAKS)],
        float(np.median(sizes)),
    )


def audit_points(domain: Domain, columns: int, near: FloatArray | None, look: int = 0) -> FloatArray:
    """Points of a Kronecker sequence, which goes on from look to look, and points crowded around those given."""
    if domain.body is not None:
        return _vectors(domain.body, near, look)
    dimension = domain.dimension
    fewest = int(np.clip(_COEFFICIENTS // max(1, columns), _FEWEST_OF_ALL, _FEWEST))
    count = int(np.clip(_BUDGET // max(1, columns), fewest, _MOST))
    # The generalised golden ratio gives the most even sequence of this kind in any dimension.
    ratio = 2.0
    for _ in range(40):
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    unit = (0.5 + np.arange(1 + look * count, 1 + (look + 1) * count)[:, None] * steps) % 1.0
    points = domain.lower + unit * domain.width
    if near is not None and len(near):
        spread = np.random.default_rng(look).normal(size=(24, dimension)) * 10.0 ** -np.linspace(2, 7, 24)[:, None]
        crowd = (near[:8, None, :] + spread * domain.width).reshape(-1, dimension)
        points = np.concatenate([points, near, np.clip(crowd, domain.lower, domain.upper)])
    if domain.inside is not None:
        points = points[domain.inside(points)]
        if not len(points):
            return scan_points(domain, columns) if near is None or not len(near) else near
    return points


def audit(
    problem: SemiInfiniteLP,
    x: FloatArray,
    looks: Sequence[FamilyAudit],
    atoms: Sequence[tuple[FloatArray, FloatArray]] | None,
    row_duals: FloatArray | None,
    sizes: FloatArray | None = None,
) -> Audit:
    """Audit an answer.

    Parameters
    ----------
    looks : sequence of FamilyAudit
        Violation of each family, as :func:`audit_families` finds it.
    atoms : sequence of (points, masses), optional
        The price of each family; None where there are no prices.
    row_duals : array, optional
        Duals of the ordinary rows.
    sizes : array, optional
        Where the costs are themselves sums: the sums of absolute terms that they have beyond their own size.
    """
    families = tuple(looks)
    ordinary = problem.core.violation(x)
    if atoms is None or row_duals is None:
        return Audit(families, ordinary, np.nan, np.nan, np.nan, np.nan)
    found = _balanced_side(problem, x, atoms, row_duals, sizes)
    of_rows = _rounding_of_rows(problem, found)
    gap = abs(problem.core.value(x) - found.bound)
    return Audit(
        families,
        ordinary,
        found.infeasibility,
        found.bound,
        found.doubt,
        gap,
        found.rounding + of_rows,
        found.unbalanced,
        of_rows,
    )


def _careful_sums(matrix: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``matrix @ weights`` and what its rounding may have lost.

    Where the machine has numbers with more digits, and there are not too many, they are added in those: what is lost
    is then the last rounding.
    """
    used = np.flatnonzero(weights)
    matrix, weights = matrix[:, used], weights[used]
    if matrix.size > _MOST_EXACT or np.finfo(np.longdouble).eps > _UNIT / 1024:
        return matrix @ weights, (2 + len(used)) * _UNIT * (np.abs(matrix) @ np.abs(weights))
    total = np.asarray(matrix.astype(np.longdouble) @ weights.astype(np.longdouble), dtype=float)
    return total, _UNIT * (np.abs(total) + len(used) / 1024 * (np.abs(matrix) @ np.abs(weights)))


Atoms = Sequence[tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class _DualSide:
    """How far prices are from dual feasible, the bound they prove, its doubt, rounding and imbalance.

    ``reduced`` are the reduced costs of all variables. ``open_ones`` are variables whose reduced cost is not zero and
    that have no bound on the side where it would count; ``nearly`` are free variables whose reduced cost is all but
    zero. Both are balanced together, for closing one equation must not open another. ``reach`` is how large each
    variable may be; ``atoms`` are the prices, and ``row_duals`` those of ordinary rows.
    """

    infeasibility: float
    bound: float
    doubt: float
    rounding: float
    unbalanced: float
    reduced: FloatArray
    open_ones: BoolArray
    nearly: BoolArray
    reach: FloatArray
    atoms: Atoms
    row_duals: FloatArray

    def betters(self, other: _DualSide) -> bool:
        """Whether its equations are nearer to hold, and its bound is the same."""
        same = abs(self.bound - other.bound) <= _SAME_BOUND * (1 + abs(other.bound))
        return same and self.unbalanced < other.unbalanced


def _balanced_side(
    problem: SemiInfiniteLP, x: FloatArray, atoms: Atoms, row_duals: FloatArray, sizes: FloatArray | None = None
) -> _DualSide:
    """What prices prove, after they are balanced where a solver has left the dual equations open.

    Where there are fewer atoms than equations, as of the coefficients of decision rules, masses alone cannot close
    them: then an atom may move, within a convex set by a rounding of its size, elsewhere by being spread to both sides
    of where it is. That costs the square of the distance.
    """
    found = _rebalanced(problem, x, atoms, row_duals, sizes)
    if found.unbalanced > _CANCELLED and any(map(_can_move, problem.families)):
        again = _rebalanced(problem, x, found.atoms, found.row_duals, sizes, moving=True)
        found = again if again.betters(found) else found
    if found.unbalanced > _CANCELLED:
        spread = [_spread(family, *each) for family, each in zip(problem.families, atoms, strict=True)]
        again = _rebalanced(problem, x, spread, row_duals, sizes)
        found = again if again.betters(found) else found
    return found


def _rounding_of_rows(problem: SemiInfiniteLP, found: _DualSide) -> float:
    """What the rounding of rows may be worth at the prices; see :mod:`osilp_pyomo.offline.roundings`."""
    total, sign = 0.0, 1.0 if problem.core.maximize else -1.0
    for family, (points, masses) in zip(problem.families, found.atoms, strict=True):
        points, masses = points[masses != 0], masses[masses != 0]
        if len(points):
            # A positive mass points to the upper limits of a maximum.
            total += float(np.abs(masses) @ rounding_at(family, points, sign * masses > 0, found.reach))
    return total


def _spread(family: Family, points: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Atoms with a mass, each shared with points a little to both sides of it along every axis of its box."""
    points, masses = points[masses != 0], masses[masses != 0]
    if family.domain.body is not None or not len(points):
        return points, masses
    axes = np.diag(_SPREAD * family.domain.width)
    moves = np.concatenate([np.zeros((1, len(axes))), axes, -axes])
    moved = points[:, None] + moves
    moved = np.clip(moved, family.domain.lower, family.domain.upper)
    inside = family.domain.contains(moved.reshape(-1, len(axes))).reshape(moved.shape[:2])
    inside[:, 0] = True
    shares = inside / inside.sum(axis=1, keepdims=True)
    return moved[inside], (masses[:, None] * shares)[inside]


def _can_move(family: Family) -> bool:
    """Whether a price on the family may stand at a place nearby: the set is convex, and the row affine on it."""
    body = family.domain.body
    return body is not None and body.convex and isinstance(family.rows, AffineRows)


def _rebalanced(
    problem: SemiInfiniteLP,
    x: FloatArray,
    atoms: Atoms,
    row_duals: FloatArray,
    sizes: FloatArray | None,
    moving: bool = False,
) -> _DualSide:
    """What prices prove once their masses are changed, as little as can be, so that the dual equations hold.

    With ``moving`` their places are changed too, by shares of the width of their sets.
    """
    found = _dual_side(problem, x, atoms, row_duals, sizes)
    for _ in range(_BALANCINGS):
        columns = np.flatnonzero(found.open_ones | found.nearly)
        masses = [each for _, each in atoms]
        unknowns = sum(map(len, masses)) * (1 + max((f.domain.dimension for f in problem.families), default=0) * moving)
        # Where a price stands at a zero up to rounding, a rounding is all of an equation's terms, and a move closes it.
        most = np.inf if moving else _OPEN
        if not _BALANCED < found.unbalanced < most or len(columns) * unknowns > _MOST_BALANCED:
            return found
        weights = np.concatenate([row_duals, *masses])
        blocks = [problem.core.matrix[:, columns].toarray().T]
        moves: list[FloatArray] = []
        for family, (points, own) in zip(problem.families, atoms, strict=True):
            dense = np.zeros((problem.core.columns, len(points)))
            for places, at, block in family.blocks(points) if len(points) else ():
                dense[places, at] += block
            blocks.append(dense[columns])
            if moving and len(points) and _can_move(family):
                moves.append(_terms_of_moves(family, own, columns, problem.core.columns))
        terms = np.hstack([np.hstack(blocks) * weights, *moves])
        used = np.flatnonzero(terms.any(axis=0))
        sign = 1.0 if problem.core.maximize else -1.0
        shares = np.zeros(terms.shape[1])
        closing = closing_shares(terms[:, used], -sign * found.reduced[columns]) if len(used) else None
        if closing is None:
            return found
        shares[used] = closing
        weights = weights * (1 - shares[: len(weights)])
        row_duals, *parts = np.split(weights, np.cumsum([len(row_duals), *map(len, masses)])[:-1])
        moved = _moved(problem.families, atoms, shares[len(weights) :]) if moving else [each for each, _ in atoms]
        if moved is None:
            return found
        atoms = list(zip(moved, parts, strict=True))
        again = _dual_side(problem, x, atoms, row_duals, sizes)
        if not again.betters(found):
            return found
        found = again
    return found


def _terms_of_moves(family: Family, masses: FloatArray, columns: IntArray, count: int) -> FloatArray:
    """What moving each atom by the whole width along each coordinate changes in the equations of some columns."""
    rows = _affine(family)
    slopes = np.zeros((family.domain.dimension, count))
    slopes[:, rows.columns] = rows.matrix[1:] * family.domain.width[:, None]
    along = slopes[:, columns]
    return np.asarray((masses[:, None, None] * along).reshape(-1, len(columns)).T)


def _moved(families: Sequence[Family], atoms: Atoms, shares: FloatArray) -> list[FloatArray] | None:
    """The places of atoms moved by shares of the width; None where that is more than a rounding, or leaves a set."""
    if np.abs(shares).max(initial=0.0) > _MOVED:
        return None
    places, start = [], 0
    for family, (points, _) in zip(families, atoms, strict=True):
        if len(points) and _can_move(family):
            own = shares[start : start + points.size].reshape(points.shape)
            start += points.size
            points = points - own * family.domain.width
            if family.domain.body is not None and not np.all(family.domain.body.contains(points)):
                return None
        places.append(points)
    return places


def _usual_terms(
    problem: SemiInfiniteLP, atoms: Sequence[tuple[FloatArray, FloatArray]], wanted: BoolArray
) -> FloatArray:
    """What rounding of its coefficients can make of each variable's dual equation; only of some variables."""
    result = np.zeros(problem.core.columns)
    for family, (points, masses) in zip(problem.families, atoms, strict=True):
        if np.any(masses) and wanted.any():
            body = family.domain.body
            some = scan_points(family.domain, problem.core.columns) if body is None else body.cloud(_FEW)
            # A coefficient that is zero where the price is has no rounding.
            there = np.zeros(problem.core.columns, dtype=bool)
            for columns, _, block in family.blocks(points[masses != 0]):
                there[columns] |= block.any(axis=1)
            for columns, _, block in family.blocks(some[:: max(1, len(some) // _FEW)]):
                usual = 4 * _UNIT * np.abs(block).max(axis=1, initial=0.0) * np.abs(masses).sum()
                result[columns] += np.where(there[columns], usual, 0.0)
    return np.where(wanted, result, 0.0)


def _priced_rows(
    problem: SemiInfiniteLP, atoms: Atoms
) -> Iterator[tuple[Iterable[tuple[Any, slice, FloatArray]], tuple[FloatArray, FloatArray], FloatArray]]:
    """Coefficients, limits and masses of rows with a price: family by family, small affine ones together."""
    together: dict[int, list[tuple[Family, FloatArray, FloatArray]]] = {}
    for family, (points, masses) in zip(problem.families, atoms, strict=True):
        if not len(points):
            continue
        if isinstance(family.rows, AffineRows) and len(points) * len(family.rows.columns) <= _TOGETHER:
            together.setdefault(id(family.rows.columns), []).append((family, points, masses))
        else:
            yield family.blocks(points), family.limits(points), masses
    for members in together.values():
        families = [family for family, _, _ in members]
        counts = np.array([len(points) for _, points, _ in members])
        for at, columns, matrix in _stacked(families, int(counts.max())):
            points, which = (
                np.concatenate([points for _, points, _ in members[at]]),
                np.repeat(np.arange(at.stop - at.start), counts[at]),
            )
            block = (points[:, None] @ matrix[which, 1:])[:, 0] + matrix[which, 0]
            lower, upper = _limits_of([families[at][k] for k in which], points[:, None])
            masses = np.concatenate([masses for *_, masses in members[at]])
            yield [(columns, slice(None), block.T)], (lower[:, 0], upper[:, 0]), masses


def _dual_side(
    problem: SemiInfiniteLP,
    x: FloatArray,
    atoms: Sequence[tuple[FloatArray, FloatArray]],
    row_duals: FloatArray,
    sizes: FloatArray | None = None,
) -> _DualSide:
    """What some prices prove of the optimum.

    Written for a maximum: cost - A'y - (integral of a against the price) = reduced costs, and the
    bound is the sum of each dual times the limit it belongs to. A minimum is a maximum of -cost.

    Any y gives a bound, whoever computed it: a dual that points to no limit is set to zero, and what the equations then
    miss is a reduced cost, worth its variable's bound on that side (Neumaier and Shcherbina, 2004). Where a
    variable has none, the equations must hold but for some roundings; what those move the bound by at this x is the
    doubt, and for values a hundred times as large it counts as rounding. Where they do not hold, nothing is proved, and
    the doubt is infinite.
    """
    core = problem.core
    sign = 1.0 if core.maximize else -1.0
    missed, rounding, limits = [0.0], 0.0, 0.0

    def safe(duals: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, float]:
        """Duals that all point to a limit, and their value there."""
        nonlocal rounding, limits
        limit = np.where(duals > 0, upper, lower)
        open_side = ~np.isfinite(limit)
        missed.append(float(np.abs(duals[open_side]).max(initial=0.0)))
        kept, limit = np.where(open_side, 0.0, duals), np.where(open_side, 0.0, limit)
        (value,), (lost,) = _careful_sums(limit[None], kept)
        rounding += float(lost)
        limits = max(limits, float(np.abs(limit).max(initial=0.0)))
        return kept, float(value)

    ordinary, value = safe(sign * row_duals, core.row_lower, core.row_upper)
    bound = sign * core.offset + value
    reduced = sign * core.cost - core.matrix.T @ ordinary
    terms = np.abs(core.cost) + np.abs(core.matrix).T @ np.abs(ordinary)
    if sizes is not None:
        terms = terms + sizes
    uncertain = _UNIT * (2 + len(ordinary)) * (np.abs(core.matrix).T @ np.abs(ordinary))
    # The largest coefficient of each variable, in the component where that is smallest.
    largest = abs(core.matrix).max(axis=0).toarray().ravel() if core.matrix.nnz else np.zeros(core.columns)
    largest[largest == 0] = np.inf
    for blocks, rows, masses in _priced_rows(problem, atoms):
        kept, value = safe(sign * masses, *rows)
        bound += value
        own = np.zeros(core.columns)
        for columns, at, block in blocks:
            # A column can stand in a block once only, so this adds to each entry once.
            total, lost = _careful_sums(block, kept[at])
            reduced[columns] -= total
            terms[columns] += np.abs(block) @ np.abs(kept[at])
            own[columns] = np.maximum(own[columns], np.abs(block).max(axis=1, initial=0.0))
            uncertain[columns] += lost + _UNIT * np.abs(reduced[columns])
        largest = np.where(own > 0, np.minimum(largest, own), largest)
    of_rows = limits
    kept, value = safe(reduced, core.column_lower, core.column_upper)
    bound, limits = bound + value, of_rows
    # A reduced cost that should be zero moves the bound by itself times the variable at the optimum. A coefficient that
    # is itself zero but for rounding, as a cosine of pi / 2 is, has nothing to be measured by but what it is elsewhere.
    open_costs, measures = np.abs(reduced - kept), np.where(terms > 0, terms, 1.0)
    unbalanced = float(np.max(open_costs / measures, initial=0.0))
    if unbalanced > _BALANCED:
        missing = np.maximum(open_costs - _usual_terms(problem, atoms, reduced != kept), 0.0)
        unbalanced = float(np.max(missing / measures, initial=0.0))
    doubt = float(open_costs @ np.abs(x)) if unbalanced <= _CANCELLED else np.inf
    # A variable that is zero here may be as large as makes its terms as large as a limit, or 1.
    farther = _FARTHER * np.maximum(
        np.abs(x), np.where(np.isinf(largest), 1.0, np.minimum(1.0, (1 + limits) / largest))
    )
    ends = np.maximum(np.abs(core.column_lower), np.abs(core.column_upper))
    farthest = np.where(np.isfinite(ends), ends, farther)
    rounding += float(open_costs @ farther) + float(uncertain @ farthest)
    free = ~(np.isfinite(core.column_lower) | np.isfinite(core.column_upper))
    nearly = free & (np.abs(reduced) <= _NEARLY * terms)
    bound, worst, open_ones = sign * bound, max(missed), reduced != kept
    return _DualSide(worst, bound, doubt, rounding, unbalanced, reduced, open_ones, nearly, farthest, atoms, row_duals)
