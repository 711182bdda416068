"""Rows that are quadratic in the index, as cones.

``F(t) = c(x) + a(x) @ t + t' H(x) t / 2 >= 0`` for all t of a set, where c, a and H are affine in x:

- where H(x) is a sum of positive semidefinite matrices with multipliers that cannot be negative, as those of bounds on
  moments are, each term ``w |Q t|^2 / 2`` is at least ``v @ Q t - s`` with ``|v|^2 <= 2 w s``: a rotated second-order
  cone, and what is left is affine in t (:class:`~osilp_pyomo.offline.duality.sides.DualSide` has the rest);
- on all of space, or where one quadratic inequality ``(1, t)' G (1, t) >= 0`` describes the set (a ball, an interval, a
  half-line), F >= 0 says that the matrix of F less a multiple >= 0 of G is positive semidefinite (the S-lemma;
  Yakubovich, 1971): a semidefinite cone. Its dual is a matrix of moments, and splits into points of the set (Sturm and
  Zhang, 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.convex_sets import EllipsoidBody
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError, Opening, coordinates
from osilp_pyomo.index.extended_form import Lift
from osilp_pyomo.lp.conic import SEMIDEFINITE, symmetric, triangle
from osilp_pyomo.lp.finite import FiniteLP, violation_scale
from osilp_pyomo.offline.duality.builder import ConeBuilder, ConePlace
from osilp_pyomo.offline.duality.frame import Frame
from osilp_pyomo.offline.duality.sides import Atoms, Curve, Duals, DualSide, Side
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import AffineRows, Rows, TermGroup, TracedRows

# A negative eigenvalue of this share of the largest is rounding.
_ROUNDING = 1e-12
# A limit with a smaller share of the largest mass is one that does not bind.
_NO_MASS = 1e-7
# Dimensions up to which rows are taken as quadratic: their matrices are full.
_MOST_DIMENSIONS = 60
# A point at infinity stands so many units away.
_FAR = 1e9


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Quadratic functions ``constant + linear @ t + t' hessian t / 2``, one for each entry."""

    constant: FloatArray  # (n)
    linear: FloatArray  # (n, d)
    hessian: FloatArray  # (n, d, d)

    def changed(self, matrix: FloatArray) -> Quadratics:
        """The same functions of other coordinates: ``t = matrix s``."""
        return Quadratics(
            self.constant, self.linear @ matrix, np.einsum("ia,nij,jb->nab", matrix, self.hessian, matrix)
        )

    def matrices(self) -> FloatArray:
        """Each function as a matrix M of ``(1, t)' M (1, t)``."""
        size = self.linear.shape[1] + 1
        result = np.empty((len(self.constant), size, size))
        result[:, 0, 0] = self.constant
        result[:, 0, 1:] = result[:, 1:, 0] = self.linear / 2
        result[:, 1:, 1:] = self.hessian / 2
        return result


@dataclass(frozen=True, eq=False)
class QuadraticRow:
    """Coefficients of a family's columns, and its limits, as quadratic functions around a point of its index."""

    columns: IntArray
    body: Quadratics
    lower: Quadratics | None
    upper: Quadratics | None

    def tangent(self, at: FloatArray) -> AffineRows:
        """The row's tangent plane at the point that it is given around."""

        def plane(functions: Quadratics) -> FloatArray:
            return np.concatenate([(functions.constant - functions.linear @ at)[None], functions.linear.T])

        lower, upper = (None if each is None else plane(each)[:, 0] for each in (self.lower, self.upper))
        return AffineRows(self.columns, plane(self.body), lower, upper)

    def slack(self, sign: float) -> tuple[Quadratics, Quadratics]:
        """What is left to a limit: its part for each column, and the limit's own."""
        limit = self.upper if sign > 0 else self.lower
        assert limit is not None
        part = Quadratics(-sign * self.body.constant, -sign * self.body.linear, -sign * self.body.hessian)
        return part, Quadratics(sign * limit.constant, sign * limit.linear, sign * limit.hessian)


def is_quadratic(family: Family) -> bool:
    """Whether all coefficients and limits of a family are polynomials of degree 2 at most, on a plain or convex set."""
    domain = family.domain
    if domain.body is None and domain.inside is not None:
        return False
    if domain.body is not None and not domain.body.convex:
        return False
    return has_quadratic_terms(family.rows)


def has_quadratic_terms(rows: Rows) -> bool:
    """Whether all coefficients and limits are polynomials of degree 2 at most."""
    return isinstance(rows, TracedRows) and all(
        group.formula is not None
        and not group.switches
        and all(isinstance(slot, np.ndarray) for slot in group.slots)
        and (group.formula.degree() or 0) <= 2
        and group.formula.degree() is not None
        for group in (*rows.groups, *(rows.lower or ()), *(rows.upper or ()))
    )


def quadratic_row(family: Family, around: FloatArray) -> QuadraticRow | None:
    """A family's row around a point, by exact derivatives; None where they cannot be had."""
    rows = family.rows
    assert isinstance(rows, TracedRows)
    try:
        body = _read(rows.groups, around, rows.columns)
        lower, upper = (
            None if groups is None else _read(groups, around, np.zeros(1, dtype=np.int64))
            for groups in (rows.lower, rows.upper)
        )
    except NoEnclosureError:
        return None
    return QuadraticRow(rows.columns, body, lower, upper)


def _read(groups: Sequence[TermGroup], around: FloatArray, columns: IntArray) -> Quadratics:
    """Sums of terms by column: their values and derivatives at a point."""
    count, dimension = len(columns), len(around)
    found = Quadratics(np.zeros(count), np.zeros((count, dimension)), np.zeros((count, dimension, dimension)))
    axes = coordinates(around[:, None], around[:, None])
    for group in groups:
        places = np.searchsorted(columns, group.columns)

        def middle(ends: tuple[FloatArray, FloatArray], size: int = len(group.columns)) -> FloatArray:
            return np.broadcast_to((ends[0] + ends[1]) / 2, (size, 1))[:, 0]

        with np.errstate(all="ignore"):
            known = group.enclose(slice(None), axes, Opening(dimension, 2))
        np.add.at(found.constant, places, middle(known.value))
        for axis, slope in known.slopes.items():
            np.add.at(found.linear[:, axis], places, middle(slope))
        for (one, other), bend in known.bends.items():
            np.add.at(found.hessian[:, one, other], places, middle(bend))
            if one != other:
                np.add.at(found.hessian[:, other, one], places, middle(bend))
    if not all(np.all(np.isfinite(each)) for each in (found.constant, found.linear, found.hessian)):
        raise NoEnclosureError("a coefficient is not a finite number")
    return found


# -- multipliers that keep the sign of their matrices ------------------------------------------------------


def convex_curves(
    part: Quadratics, own: Quadratics, columns: IntArray, lower: FloatArray, upper: FloatArray, middle: FloatArray
) -> tuple[Curve, ...] | None:
    """The curved terms of what is left to a limit, where each is convex whatever x within its bounds; else None.

    They are curved around a ``middle``.
    """
    curves = []
    for hessian, column in [*zip(part.hessian, columns.tolist(), strict=True), (own.hessian[0], None)]:
        if not hessian.any():
            continue
        values, vectors = np.linalg.eigh(hessian)
        size = float(np.abs(values).max())
        sign = 1.0 if values[-1] >= -values[0] else -1.0
        if np.any(sign * values < -_ROUNDING * size):
            return None
        if column is None and sign < 0:
            return None
        if column is not None and not (lower[column] >= 0 if sign > 0 else upper[column] <= 0):
            return None
        kept = np.abs(values) > _ROUNDING * size
        factor = np.sqrt(np.abs(values[kept]))[:, None] * vectors[:, kept].T
        curves.append(Curve(factor, sign, column, factor @ middle))
    return tuple(curves)


# -- one quadratic inequality, or none -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates of a set that one quadratic inequality describes: ``offset + matrix t`` with (1, t)' G (1, t) >= 0.

    ``inequality`` is None for all of space; ``reach`` is what no t exceeds in length.
    """

    offset: FloatArray
    matrix: FloatArray
    inequality: FloatArray | None
    reach: float

    def brought_in(self, t: FloatArray) -> FloatArray:
        """Points that the inequality holds at but for what a solver leaves of it, moved to where it does."""
        if self.inequality is None:
            return t
        if np.isinf(self.reach):
            return np.maximum(t, 0.0)
        return t / np.maximum(1.0, np.linalg.norm(t, axis=1, keepdims=True))


def chart_of(domain: Domain, usual: tuple[FloatArray, FloatArray]) -> Chart | None:
    """The chart of a domain; ``usual`` are a point and units for coordinates without ends. None where there is none."""
    dimension = domain.dimension
    middle, unit = usual
    if isinstance(domain.body, EllipsoidBody):
        axes = domain.body.axes
        return Chart(domain.body.middle, axes, np.diag([1.0, *[-1.0] * axes.shape[1]]), 1.0)
    if domain.body is not None:
        return None
    low, high = domain.lower, domain.upper
    if not np.any(np.isfinite(low) | np.isfinite(high)):
        return Chart(middle, np.diag(unit), None, np.inf)
    if dimension > 1:
        return None
    if np.all(np.isfinite(low) & np.isfinite(high)):
        return Chart((low + high) / 2, np.diag((high - low) / 2), np.diag([1.0, -1.0]), 1.0)
    side = 1.0 if np.isfinite(low[0]) else -1.0
    end = low if side > 0 else high
    scale = np.maximum(np.abs(middle - end), unit)
    return Chart(end, np.diag(side * scale), np.array([[0.0, 0.5], [0.5, 0.0]]), np.inf)


def usual_place(row: QuadraticRow, around: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where the curved functions of a row have their middle, and how far from it they change by about 1."""
    curved = row.body.hessian
    total = np.abs(np.einsum("nii->ni", curved)).max(axis=0, initial=0.0)
    unit = np.where(total > 0, 1.0 / np.sqrt(np.where(total > 0, total, 1.0) / 2), 1.0)
    ends = np.linalg.eigvalsh(curved)[:, [0, -1]]
    rounding = _ROUNDING * np.abs(ends).max(axis=1)
    # A row may stand with its variables on either side: what is curved one way only counts, whichever way that is.
    signs = (ends[:, 0] >= -rounding) * 1.0 - (ends[:, 1] <= rounding)
    hessian = np.einsum("n,nij->ij", signs, curved)
    if not hessian.any():
        return around, unit
    linear = np.where(np.abs(curved).max(axis=(1, 2)) > 0, signs, 0.0) @ row.body.linear
    middle = around - np.linalg.pinv(hessian, hermitian=True) @ linear
    return middle, unit


@dataclass(frozen=True, eq=False)
class MatrixSide(Side):
    """One limit of a row as a semidefinite cone."""

    sign: float
    chart: Chart
    columns: IntArray
    parts: FloatArray
    own: FloatArray
    multiplier: IntArray
    place: ConePlace

    @classmethod
    def added(cls, builder: ConeBuilder, sign: float, chart: Chart, row: QuadraticRow) -> MatrixSide:
        """The cone, and the multiple of the set's inequality, added to a program."""
        part, own = (each.changed(chart.matrix).matrices() for each in row.slack(sign))
        multiplier = builder.add_columns(0 if chart.inequality is None else 1, 0.0)
        size = own.shape[1]
        rows, columns, factors = triangle(size)
        entries = (part[:, rows, columns] * factors).T
        extra = [] if chart.inequality is None else [
            ((-chart.inequality[rows, columns] * factors)[:, None], multiplier)
        ]  # fmt: skip
        place = builder.add_cones(
            SEMIDEFINITE, len(rows), own[0][rows, columns] * factors, (entries, row.columns), *extra
        )
        return cls(sign, chart, row.columns, part, own[0], multiplier, place)

    def moments(self, duals: Duals) -> FloatArray:
        """The dual of the cone: mass, first and second moments of the worst distribution of this limit in its chart."""
        block, places = self.place
        return symmetric(duals.cones[block][places[0]])

    def atoms(self, duals: Duals) -> Atoms:
        return self.atoms_of(self.moments(duals), duals.sign)

    def atoms_of(self, moments: FloatArray, sign: float) -> Atoms:
        """Vectors and masses with some moments."""
        vectors = rank_one_parts(moments, self.chart.inequality)
        # Where a part has no constant, its mass is at infinity.
        lengths = np.linalg.norm(vectors, axis=1)
        first = np.where(np.abs(vectors[:, 0]) > lengths / _FAR, np.abs(vectors[:, 0]), lengths / _FAR)
        side = np.where(vectors[:, 0] < 0, -1.0, 1.0)
        kept = lengths > 0
        t = self.chart.brought_in((side * vectors[:, 1:].T / np.where(kept, first, 1.0)).T[kept])
        # The price of a limit: a row of the user's is the slack turned back.
        return self.chart.offset + t @ self.chart.matrix.T, sign * self.sign * (first**2)[kept]

    def bends_like(self, other: MatrixSide) -> bool:
        """Whether both limits hold on all of space and have the same second derivatives, whatever the decisions are."""
        if self.chart.inequality is not None or other.chart.inequality is not None:
            return False
        charts = ((self.chart.offset, other.chart.offset), (self.chart.matrix, other.chart.matrix))
        return all(np.array_equal(one, its) for one, its in charts) and _same_curvature(self, other)

    def proved(self, found: FloatArray) -> tuple[float, float]:
        matrix = self.own + np.einsum("n,nij->ij", found[self.columns], self.parts)
        if self.chart.inequality is not None:
            matrix = matrix - max(0.0, float(found[self.multiplier][0])) * self.chart.inequality
        size = np.abs(self.own).max() + float(np.abs(found[self.columns]) @ np.abs(self.parts).max(axis=(1, 2)))
        lowest = float(np.linalg.eigvalsh(matrix)[0]) - 2.0**-52 * len(matrix) ** 2 * size
        missed = max(0.0, -lowest)
        largest = 0.0 if missed == 0 else missed * (1 + self.chart.reach**2)
        return largest, largest / self._size(found)

    def _size(self, found: FloatArray) -> float:
        """Size of the row in the middle of its chart."""
        terms = self.parts[:, 0, 0] * found[self.columns]
        activity, size = np.array([-terms.sum()]), np.array([np.abs(terms).sum()])
        return float(violation_scale(activity, size, np.array([-np.inf]), self.own[:1, 0])[0])


def _same_curvature(one: MatrixSide, other: MatrixSide) -> bool:
    if not np.array_equal(one.own[1:, 1:], other.own[1:, 1:]):
        return False
    curved = [
        {int(column): part for column, part in zip(side.columns, side.parts[:, 1:, 1:], strict=True) if part.any()}
        for side in (one, other)
    ]
    return curved[0].keys() == curved[1].keys() and all(np.array_equal(curved[0][k], curved[1][k]) for k in curved[0])


def gathered_moments(sides: Sequence[MatrixSide], duals: Duals) -> list[FloatArray]:
    """Moments of each limit; those of limits with next to no mass go to one that bends alike and has the most.

    An interior point spreads what no mass is needed for over all limits: second moments without a mass are a mass at
    infinity, which no simplex can place. Where the curvature is the same they are worth as much beside an atom of
    another limit, to both sides of it.
    """
    moments = [side.moments(duals) for side in sides]
    masses = np.array([each[0, 0] for each in moments])
    for k in np.flatnonzero(masses <= _NO_MASS * masses.max(initial=0.0)).tolist():
        alike = [n for n, side in enumerate(sides) if masses[n] > masses[k] and side.bends_like(sides[k])]
        if alike:
            home = max(alike, key=lambda n: masses[n])
            moments[home] = moments[home] + moments[k]
            moments[k] = np.zeros_like(moments[k])
    return moments


def rank_one_parts(moments: FloatArray, inequality: FloatArray | None) -> FloatArray:
    """Vectors p with ``moments = sum p p'``, all with the same ``p' G p`` (Sturm and Zhang, 2003).

    Without an inequality G is that of the first entry, so that all parts have the same mass.

    Examples
    --------
    >>> parts = rank_one_parts(np.diag([1.0, 4.0]), None)
    >>> (parts[:, 1] / parts[:, 0]).round(6).tolist(), (parts[:, 0] ** 2).round(6).tolist()
    ([-2.0, 2.0], [0.5, 0.5])
    """
    size = len(moments)
    given = np.outer(np.eye(size)[0], np.eye(size)[0]) if inequality is None else inequality
    values, vectors = np.linalg.eigh(moments)
    kept = values > _ROUNDING * max(float(values[-1]), 0.0)
    parts = (vectors[:, kept] * np.sqrt(values[kept])).T
    if not len(parts):
        return np.empty((0, size))
    # Of a limit that is met by rounding only, what is missing counts as nothing.
    wanted = max(0.0, float(np.sum(moments * given))) / len(parts)
    for _ in range(len(parts)):
        excess = np.einsum("ni,ij,nj->n", parts, given, parts) - wanted
        high, low = int(np.argmax(excess)), int(np.argmin(excess))
        if excess[high] <= _ROUNDING * wanted or excess[low] >= -_ROUNDING * wanted:
            break
        p, q = parts[high].copy(), parts[low].copy()
        # (p + a q)' G (p + a q) = wanted (1 + a^2), which has a root of either sign.
        mixed = float(p @ given @ q)
        root = np.roots([excess[low], 2 * mixed, excess[high]])
        a = float(np.max(root.real))
        parts[high], parts[low] = (p + a * q) / np.hypot(1, a), (q - a * p) / np.hypot(1, a)
    return parts[np.argsort(parts[:, 1] / np.where(parts[:, 0] == 0, 1.0, parts[:, 0]), kind="stable")]


# -- which of both a family is -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CurvedSide:
    """One limit of a quadratic family: by a chart, or by a frame and curves that keep their sign."""

    sign: float
    row: QuadraticRow
    chart: Chart | None = None
    frame: Frame | None = None
    curves: tuple[Curve, ...] = ()
    middle: FloatArray | None = None

    def add_to(self, builder: ConeBuilder) -> Side:
        """Its multipliers, rows and cones, added to a program."""
        if self.chart is not None:
            return MatrixSide.added(builder, self.sign, self.chart, self.row)
        assert self.frame is not None
        assert self.middle is not None
        source = self.row.tangent(self.frame.offset + self.frame.matrix @ self.middle)
        return DualSide.added(builder, source, self.sign, self.frame, self.curves)


def curved_sides(family: Family, core: FiniteLP) -> tuple[CurvedSide, ...] | None:
    """The limits of a quadratic family as duality takes them exactly; None where it does not."""
    known = _sides.get(family)
    if known is None or known[0] is not core:
        sides = None
        if is_quadratic(family):
            sides = sides_over(family.domain, lambda around: quadratic_row(family, around), core)
        known = _sides[family] = core, sides
    return known[1]


# What families are as duality takes them, beside the problem they belong to: who chooses a method asks first.
_sides: WeakKeyDictionary[Family, tuple[FiniteLP, tuple[CurvedSide, ...] | None]] = WeakKeyDictionary()


def sides_over(
    domain: Domain,
    read: Callable[[FloatArray], QuadraticRow | None],
    core: FiniteLP,
    usual: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[CurvedSide, ...] | None:
    """The limits of a row that can be read around any point of its domain; ``usual`` as for :func:`chart_of`."""
    if domain.dimension > _MOST_DIMENSIONS:
        return None
    around = somewhere(domain)
    row = read(around)
    if row is None:
        return None
    usual = usual or usual_place(row, around)
    frame, sides = Frame.of(_lift(domain, usual)), []
    middle: FloatArray = np.linalg.pinv(frame.matrix) @ (usual[0] - frame.offset)
    for sign, limit in ((1.0, row.upper), (-1.0, row.lower)):
        if limit is None:
            continue
        # Second derivatives are the same everywhere.
        part, own = (each.changed(frame.matrix) for each in row.slack(sign))
        curves = convex_curves(part, own, row.columns, core.column_lower, core.column_upper, middle)
        chart = chart_of(domain, usual) if curves is None else None
        if curves is None and chart is None:
            return None
        there = read(frame.offset + frame.matrix @ middle if chart is None else chart.offset)
        if there is None:
            return None
        sides.append(CurvedSide(sign, there, chart, frame, curves or (), middle))
    return tuple(sides)


def somewhere(domain: Domain) -> FloatArray:
    """A point to begin with: the middle, an end, or zero."""
    if domain.body is not None:
        return domain.body.centre
    low, high = domain.lower, domain.upper
    ends = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, ends)


def _lift(domain: Domain, usual: tuple[FloatArray, FloatArray]) -> Lift:
    """A convex set, or a box, bounded or not, measured in its usual units."""
    if domain.body is not None:
        return domain.body.lift()
    middle, unit = usual
    return Lift.plain(
        domain.dimension,
        lower=(domain.lower - middle) / unit,
        upper=(domain.upper - middle) / unit,
        offset=middle,
        matrix=np.diag(unit),
    )
