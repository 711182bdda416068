"""Audit: check an answer by code that did not compute it.

The rows are evaluated on points that no method uses (a Kronecker sequence, and points crowded around
the worst one known), the dual equations are formed again from the prices, and the gap is the distance
between the objective and the dual objective that follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.lp.finite import excess_of, violation_scale
from osilp_pyomo.offline.problem import SCALE_FLOOR, Family, SemiInfiniteLP
from osilp_pyomo.offline.rows import AffineRows
from osilp_pyomo.offline.search.scan import apart, scan_points

# Coefficients evaluated for one family: a fiftieth of a second at ten nanoseconds each.
_BUDGET = 2_000_000
# Vectors of a set of uncertain ones; where rows are affine they are separated exactly, and this is a second check.
_VECTORS = 128
_FEWEST, _MOST = 2_003, 20_011
# With very many columns fewer points, so that no more coefficients than this are evaluated (some five seconds).
_COEFFICIENTS, _FEWEST_OF_ALL = 500_000_000, 101
# Peaks that the audit of a family reports, and how far they are from each other in widths of the domain.
_PEAKS, _APART = 8, 0.02


@dataclass(frozen=True, eq=False)
class FamilyAudit:
    """Violation of one family on the audit's own points.

    ``violation`` is max(0, largest excess), found at ``worst``; ``relative`` divides each excess by
    ``max(|b(u)|, scale)``, where ``scale`` is the median of ``|b(u)|`` (1 where that is zero). ``scaled`` divides it by
    the size of the row at that very point (:func:`violation_scale`); it is what decides whether an answer is
    feasible, and ``worst_scaled`` is where. ``peaks`` are the highest points that stand apart from each other.
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
        )


@dataclass(frozen=True, eq=False)
class Audit:
    """What an independent check of an answer found.

    ``ordinary_violation`` is that of ordinary rows and bounds, relative to their size; ``dual_infeasibility`` the
    largest amount by which the prices miss the dual equations or their sign, ``dual_bound`` the bound they
    prove up to ``doubt`` (what they miss, times the variables it belongs to), ``gap`` its distance from the
    objective; nan where there are no prices.
    """

    families: tuple[FamilyAudit, ...]
    ordinary_violation: float
    dual_infeasibility: float
    dual_bound: float
    doubt: float
    gap: float

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


def audit_family(family: Family, x: FloatArray, near: FloatArray | None = None) -> FamilyAudit:
    """Evaluate a family at points of the audit's own; ``near`` (k, d) are points to evaluate it around."""
    # A sampled rule is called at each point, which costs as much as many columns.
    columns = len(family.rows.columns) if family.route == "traced" else _BUDGET
    return audit_at(family, x, audit_points(family.domain, columns, near))


def audit_families(families: Sequence[Family], x: FloatArray, near: Sequence[FloatArray]) -> list[FamilyAudit]:
    """Evaluate families at points of the audit's own; affine rows over one uncertainty set together."""
    looks: dict[int, FamilyAudit] = {}
    together: dict[int, list[int]] = {}
    for number, family in enumerate(families):
        if isinstance(family.rows, AffineRows) and family.domain.body is not None:
            together.setdefault(id(family.domain.body), []).append(number)
        else:
            looks[number] = audit_family(family, x, near[number])
    for numbers in together.values():
        chosen = [families[number] for number in numbers]
        looks.update(zip(numbers, _audit_together(chosen, x, [near[number] for number in numbers]), strict=True))
    return [looks[number] for number in range(len(families))]


def _audit_together(families: Sequence[Family], x: FloatArray, near: Sequence[FloatArray]) -> list[FamilyAudit]:
    """Violation of many families of affine rows over one uncertainty set, as by :func:`audit_at`, in one pass."""
    body = families[0].domain.body
    assert body is not None
    drawn = body.cloud(_VECTORS, seed=1)
    own = max(1, max(map(len, near)))
    shape = (len(families), len(drawn) + own)
    points = np.empty((*shape, body.dimension))
    points[:, : len(drawn)] = drawn
    activity, size, lower, upper = (np.empty(shape) for _ in range(4))
    for k, (family, close) in enumerate(zip(families, near, strict=True)):
        points[k, len(drawn) :] = drawn[0] if not len(close) else close[np.arange(own) % len(close)]
        assert isinstance(family.rows, AffineRows)
        terms = (family.rows.matrix[0] + points[k] @ family.rows.matrix[1:]) * x[family.rows.columns]
        activity[k], size[k] = terms.sum(axis=1), np.abs(terms).sum(axis=1)
        lower[k], upper[k] = family.rows.limits(points[k])
    excess = excess_of(activity, lower, upper)
    limit = np.abs(np.where(activity - upper >= lower - activity, upper, lower))
    median = np.median(limit, axis=1)
    scale = np.where(median > 0, median, 1.0)
    relative = (excess / np.maximum(limit, scale[:, None])).max(axis=1)
    sizes = violation_scale(activity, size, lower, upper)
    scaled = excess / np.maximum(sizes, SCALE_FLOOR * np.median(sizes, axis=1)[:, None])
    worst, worst_scaled = np.argmax(excess, axis=1), np.argmax(scaled, axis=1)
    return [
        FamilyAudit(
            family.name,
            shape[1],
            max(0.0, float(excess[k, worst[k]])),
            max(0.0, float(relative[k])),
            points[k, worst[k]],
            float(scale[k]),
            max(0.0, float(scaled[k, worst_scaled[k]])),
            points[k, worst_scaled[k]],
            points[k, worst[k]][None],
        )
        for k, family in enumerate(families)
    ]


def _vectors(body: Body, near: FloatArray | None) -> FloatArray:
    """Vectors of an uncertainty set drawn for the audit alone, and others between them and those given."""
    drawn = body.cloud(_VECTORS, seed=1)
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
        max(0.0, float(excess[worst])),
        max(0.0, relative),
        points[worst],
        scale,
        max(0.0, float(scaled[worst_scaled])),
        points[worst_scaled],
        highest[apart(highest / domain.width, _APART)][:_PEAKS],
    )


def audit_points(domain: Domain, columns: int, near: FloatArray | None) -> FloatArray:
    """Points of a Kronecker sequence, and points crowded around those given."""
    if domain.body is not None:
        return _vectors(domain.body, near)
    dimension = domain.dimension
    fewest = int(np.clip(_COEFFICIENTS // max(1, columns), _FEWEST_OF_ALL, _FEWEST))
    count = int(np.clip(_BUDGET // max(1, columns), fewest, _MOST))
    # The generalised golden ratio gives the most even sequence of this kind in any dimension.
    ratio = 2.0
    for _ in range(40):
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    unit = (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0
    points = domain.lower + unit * domain.width
    if near is not None and len(near):
        spread = np.random.default_rng(0).normal(size=(24, dimension)) * 10.0 ** -np.linspace(2, 7, 24)[:, None]
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
    """
    families = tuple(looks)
    ordinary = problem.core.violation(x)
    if atoms is None or row_duals is None:
        return Audit(families, ordinary, np.nan, np.nan, np.nan, np.nan)
    infeasibility, bound, doubt = _dual_side(problem, x, atoms, row_duals)
    return Audit(families, ordinary, infeasibility, bound, doubt, abs(problem.core.value(x) - bound))


def _dual_side(
    problem: SemiInfiniteLP,
    x: FloatArray,
    atoms: Sequence[tuple[FloatArray, FloatArray]],
    row_duals: FloatArray,
) -> tuple[float, float, float]:
    """How far prices are from dual feasible, the bound they prove, and how uncertain it is.

    Written for a maximum: cost - A'y - (integral of a against the price) = reduced costs, and the
    bound is the sum of each dual times the limit it belongs to. A minimum is a maximum of -cost.
    """
    core = problem.core
    sign = 1.0 if core.maximize else -1.0
    reduced = sign * core.cost - core.matrix.T @ (sign * row_duals)
    missed = [0.0]

    def worth(duals: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
        """Value of duals at the limit their sign points to; one that points to no limit is missed."""
        limit = np.where(duals > 0, upper, lower)
        open_side = ~np.isfinite(limit)
        missed.append(float(np.abs(duals[open_side]).max(initial=0.0)))
        return float(duals[~open_side] @ limit[~open_side])

    bound = sign * core.offset + worth(sign * row_duals, core.row_lower, core.row_upper)
    for family, (points, masses) in zip(problem.families, atoms, strict=True):
        if not len(points):
            continue
        for columns, at, block in family.blocks(points):
            # A column can stand in a block once only, so this adds to each entry once.
            reduced[columns] -= block @ (sign * masses[at])
        bound += worth(sign * masses, *family.limits(points))
    bound += worth(reduced, core.column_lower, core.column_upper)
    # A reduced cost that should be zero moves the bound by itself times the variable at the optimum.
    open_side = ~np.isfinite(np.where(reduced > 0, core.column_upper, core.column_lower))
    doubt = float(np.abs(reduced[open_side]) @ np.abs(x[open_side]))
    return max(missed), sign * bound, doubt
