"""One limit of a row that is affine in an uncertain vector: its multipliers in a counterpart, and what they prove.

The mathematics stands in :mod:`osilp_pyomo.offline.duality.counterpart`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.lp.conic import SECOND_ORDER, into_dual_cone
from osilp_pyomo.lp.finite import violation_scale
from osilp_pyomo.offline.duality.builder import ConeBuilder, ConePlace
from osilp_pyomo.offline.duality.frame import Frame, dual_rows
from osilp_pyomo.offline.rows import AffineRows

# What the dual equation of a coordinate without end may miss, as a share of its terms, and count as rounding.
_ROUNDING = 64 * 2.0**-53

# So many units away a point stands for one at infinity.
_FAR = 1e8

Atoms = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Duals:
    """Duals of a program: of its rows, and of its cones for the minimum; ``sign`` is 1 for a maximum, else -1."""

    rows: FloatArray
    cones: tuple[FloatArray, ...]
    sign: float


class Side(ABC):
    """One limit of a family, or both where they share their multipliers."""

    @abstractmethod
    def atoms(self, duals: Duals) -> Atoms:
        """Vectors of the set that the duals point to, and their masses."""

    @abstractmethod
    def proved(self, found: FloatArray) -> tuple[float, float]:
        """What no vector exceeds the limit by, given a point of the program; and that by the size of the row."""


@dataclass(frozen=True, eq=False)
class ScenarioSide(Side):
    """Rows at finitely many vectors: nothing is to be dualized."""

    source: AffineRows
    sign: float
    scenarios: FloatArray
    rows: IntArray

    @classmethod
    def added(cls, builder: ConeBuilder, source: AffineRows, sign: float, scenarios: FloatArray) -> ScenarioSide:
        """The rows, added to a program."""
        vectors = np.column_stack([np.ones(len(scenarios)), scenarios])
        limit = source.upper if sign > 0 else source.lower
        assert limit is not None
        numbers = builder.add_rows(-np.inf, sign * (vectors @ limit))
        builder.put(sign * (vectors @ source.matrix), numbers, source.columns)
        return cls(source, sign, scenarios, numbers)

    def atoms(self, duals: Duals) -> Atoms:
        masses = self.sign * duals.rows[self.rows]
        return self.scenarios[masses != 0], masses[masses != 0]

    def proved(self, found: FloatArray) -> tuple[float, float]:
        return _worst_at(self.source, self.sign, self.scenarios, found)


def _worst_at(source: AffineRows, sign: float, points: FloatArray, x: FloatArray) -> tuple[float, float]:
    """Excess over a limit at some vectors, by itself and by the size of the row there."""
    vectors = np.column_stack([np.ones(len(points)), points])
    matrix = vectors @ source.matrix
    values = x[source.columns]
    lower, upper = source.limits(points)
    activity = matrix @ values
    excess = sign * (activity - (upper if sign > 0 else lower))
    scale = violation_scale(activity, np.abs(matrix) @ np.abs(values), lower, upper)
    return float(np.max(excess)), float(np.max(excess / scale))


@dataclass(frozen=True, eq=False)
class BoxSides(Side):
    """Both limits of a row over a box, whose slopes are the same: they share the positive parts of its slopes."""

    source: AffineRows
    frame: Frame
    rows: IntArray
    equations: IntArray

    @classmethod
    def added(cls, builder: ConeBuilder, source: AffineRows, frame: Frame) -> BoxSides:
        """Multipliers and rows, added to a program."""
        assert source.upper is not None
        assert source.lower is not None
        low, high = (
            np.concatenate([[1.0], frame.offset]),
            np.concatenate([[1.0], frame.points(np.ones(len(frame.boxed)))]),
        )
        rows = builder.add_rows(-np.inf, np.array([low @ source.upper, -(high @ source.lower)]))
        builder.put(np.stack([low @ source.matrix, -(high @ source.matrix)]), rows, source.columns)
        slopes = frame.matrix.T @ source.matrix[1:]
        equations = builder.add_rows(-np.inf, frame.matrix.T @ source.upper[1:])
        builder.put(slopes, equations, source.columns)
        parts = builder.add_columns(frame.coordinates, 0.0)
        builder.put(-np.eye(frame.coordinates), equations, parts)
        builder.put(np.ones((2, frame.coordinates)), rows, parts)
        return cls(source, frame, rows, equations)

    def atoms(self, duals: Duals) -> Atoms:
        above, below = duals.rows[self.rows]
        total = above + below
        share = np.clip(duals.rows[self.equations] / total, 0.0, 1.0) if total else np.zeros(self.frame.coordinates)
        points, masses = self.frame.points(np.stack([share, 1.0 - share])), np.array([above, -below])
        return points[masses != 0], masses[masses != 0]

    def proved(self, found: FloatArray) -> tuple[float, float]:
        assert self.source.upper is not None
        slopes = self.frame.matrix.T @ (self.source.matrix[1:] @ found[self.source.columns] - self.source.upper[1:])
        highest, lowest = self.frame.points(np.stack([slopes > 0, slopes <= 0]).astype(float))
        above = _worst_at(self.source, 1.0, highest[None], found)
        below = _worst_at(self.source, -1.0, lowest[None], found)
        return max(above[0], below[0]), max(above[1], below[1])


@dataclass(frozen=True, eq=False)
class Curve:
    """A term ``w |factor t - centre|^2 / 2`` with ``w = weight x[column]``, or ``w = weight`` without a column."""

    factor: FloatArray
    weight: float
    column: int | None
    centre: FloatArray

    def at(self, x: FloatArray) -> float:
        """The value of w."""
        return self.weight if self.column is None else self.weight * float(x[self.column])


def _add_curve(builder: ConeBuilder, curve: Curve, columns: IntArray) -> IntArray:
    """The rotated cone ``|v|^2 <= 2 w s`` of a curved term: ``|(w - s, sqrt(2) v)| <= w + s``; the column of s."""
    size = 2 + len(columns)
    s = builder.add_columns(1, 0.0)
    by_s, by_v, by_w = np.zeros((size, 1)), np.zeros((size, len(columns))), np.zeros((size, 1))
    by_s[:2, 0] = 1.0, -1.0
    by_w[:2, 0] = curve.weight
    by_v[2:] = np.sqrt(2.0) * np.eye(len(columns))
    if curve.column is None:
        builder.add_cones(SECOND_ORDER, size, by_w[:, 0], (by_s, s), (by_v, columns))
    else:
        builder.add_cones(
            SECOND_ORDER, size, np.zeros(size), (by_s, s), (by_v, columns), (by_w, np.array([curve.column]))
        )
    return s


@dataclass(frozen=True, eq=False)
class DualSide(Side):
    """One limit over any frame: columns of the multipliers, and where rows and cones stand."""

    source: AffineRows
    sign: float
    frame: Frame
    row: int
    equations: IntArray
    of_rows: IntArray
    of_cones: tuple[IntArray, ...]
    solved: tuple[ConePlace, ...]
    curves: tuple[Curve, ...] = ()

    # -- building ----------------------------------------------------------------------------------

    @classmethod
    def added(
        cls, builder: ConeBuilder, source: AffineRows, sign: float, frame: Frame, curves: tuple[Curve, ...] = ()
    ) -> DualSide:
        """Multipliers, rows and cones, added to a program.

        Of a row that is curved too, ``source`` is its tangent plane where the curves have their middle, and ``curves``
        are the terms ``w |Q t - q|^2 / 2`` that it has less. Each is at least ``v @ (Q t - q) - s`` with
        ``|v|^2 <= 2 w s``: v is a multiplier like those of rows, with the limit q, of either sign.
        """
        limit = source.upper if sign > 0 else source.lower
        assert limit is not None
        at = np.concatenate([[1.0], frame.offset])
        slopes, constant = sign * (frame.matrix.T @ source.matrix[1:]), sign * (frame.matrix.T @ limit[1:])
        body, right = sign * (at @ source.matrix), sign * float(at @ limit)
        normals = np.concatenate([frame.rows, *(curve.factor for curve in curves)])
        of_rows = builder.add_columns(len(frame.rows), np.where(frame.tied, -np.inf, 0.0))
        of_curves = [builder.add_columns(len(curve.factor)) for curve in curves]
        of_rows = np.concatenate([of_rows, *of_curves])
        costs, solved = np.concatenate([frame.limits, *(curve.centre for curve in curves)]), []
        of_solved = builder.add_columns(len(frame.solved), 0.0)
        for each, column in zip(frame.solved, of_solved, strict=True):
            own = each.coordinates
            # The multipliers v of the ball are those with which the equations hold: factor v = rows' r - slopes.
            along = each.centre / each.factor
            body = body + along @ slopes[own]
            right += float(along @ constant[own])
            costs = costs - normals[:, own] @ along
            size = 1 + len(own)
            length = np.zeros((size, 1))
            length[0] = 1.0
            by_x, by_rows = np.zeros((size, slopes.shape[1])), np.zeros((size, len(of_rows)))
            by_x[1:], by_rows[1:] = -slopes[own] / each.factor[:, None], (normals[:, own] / each.factor).T
            offset = np.concatenate([[0.0], constant[own] / each.factor])
            solved.append(
                builder.add_cones(
                    SECOND_ORDER, size, offset, (length, np.array([column])), (by_x, source.columns), (by_rows, of_rows)
                )
            )
        row = builder.add_rows(-np.inf, np.array([right]))
        builder.put(body[None], row, source.columns)
        builder.put(costs[None], row, of_rows)
        builder.put(np.ones((1, len(of_solved))), row, of_solved)
        for curve, columns in zip(curves, of_curves, strict=True):
            builder.put(np.ones((1, 1)), row, _add_curve(builder, curve, columns))
        equations, of_cones = cls._add_equations(builder, source, frame, slopes, constant, row, of_rows, normals)
        return cls(source, sign, frame, int(row[0]), equations, of_rows, of_cones, tuple(solved), curves)

    @staticmethod
    def _add_equations(
        builder: ConeBuilder,
        source: AffineRows,
        frame: Frame,
        slopes: FloatArray,
        constant: FloatArray,
        row: IntArray,
        of_rows: IntArray,
        normals: FloatArray,
    ) -> tuple[IntArray, tuple[IntArray, ...]]:
        """The equations of coordinates that no solved cone holds, and multipliers of the other cones."""
        open_ones = frame.equations
        bounded = (frame.boxed | frame.above)[open_ones]
        equations = builder.add_rows(np.where(bounded, -np.inf, constant[open_ones]), constant[open_ones])
        builder.put(slopes[open_ones], equations, source.columns)
        builder.put(-normals[:, open_ones].T, equations, of_rows)
        boxed = frame.boxed[open_ones]
        parts = builder.add_columns(int(boxed.sum()), 0.0)
        builder.put(-np.eye(len(open_ones))[:, boxed], equations, parts)
        builder.put(np.ones((1, len(parts))), row, parts)
        of_cones = []
        for cone in frame.cones:
            columns = builder.add_columns(len(cone.offset))
            builder.put(cone.offset[None], row, columns)
            builder.put(cone.matrix.T.toarray()[open_ones], equations, columns)
            dual = dual_rows(cone, np.arange(len(columns)), len(columns))
            builder.add_cones(dual.kind, dual.size, dual.offset, (dual.matrix.toarray(), columns))
            of_cones.append(columns)
        return equations, tuple(of_cones)

    # -- reading -----------------------------------------------------------------------------------

    def atoms(self, duals: Duals) -> Atoms:
        mass = float(duals.rows[self.row])
        endless = np.isinf(self.frame.largest[self.frame.equations])
        along = np.where(endless, duals.rows[self.equations], 0.0)
        if abs(mass) * _FAR < np.abs(along).max(initial=0.0):
            # A row that binds nowhere but at infinity: there what is left of its mass stands, very far out.
            mass = duals.sign * float(np.abs(along).max()) / _FAR
        if mass == 0:
            return np.empty((0, len(self.frame.offset))), np.empty(0)
        t = np.zeros(self.frame.coordinates)
        t[self.frame.equations] = duals.rows[self.equations] / mass
        for each, (block, places) in zip(self.frame.solved, self.solved, strict=True):
            along = duals.cones[block][places[0]][1:] / (duals.sign * mass)
            # A point of the ball, up to a rounding.
            along = along / max(1.0, float(np.linalg.norm(along)))
            t[each.coordinates] = (each.centre + along) / each.factor
        t = np.where(self.frame.boxed, np.clip(t, 0.0, 1.0), np.where(self.frame.above, np.maximum(t, 0.0), t))
        t = self.frame.pulled_inside(t)
        if not self.frame.holds(t):
            # Duals of a row that does not bind are rounding, and point anywhere.
            return np.empty((0, len(self.frame.offset))), np.empty(0)
        return self.frame.points(t[None]), np.array([self.sign * mass])

    def proved(self, found: FloatArray) -> tuple[float, float]:
        source, frame = self.source, self.frame
        limit = source.upper if self.sign > 0 else source.lower
        assert limit is not None
        x = found[source.columns]
        excess = self.sign * (source.matrix @ x - limit)
        terms = np.abs(frame.matrix).T @ (np.abs(source.matrix[1:]) @ np.abs(x) + np.abs(limit[1:]))
        r = found[self.of_rows[: len(frame.rows)]]
        r = np.where(frame.tied, r, np.maximum(r, 0.0))
        g = frame.matrix.T @ excess[1:] - frame.rows.T @ r
        terms = terms + np.abs(frame.rows).T @ np.abs(r)
        total = excess[0] + frame.offset @ excess[1:] + frame.limits @ r
        for cone, y in zip(frame.cones, self._balanced(found, g), strict=True):
            y = into_dual_cone(cone.kind, y.reshape(-1, cone.size)).ravel()
            g = g + cone.matrix.T @ y
            terms = terms + abs(cone.matrix).T @ np.abs(y)
            total += cone.offset @ y
        bent = self._bent(found, g)
        g, terms, total = g - bent[0], terms + bent[1], total + bent[2]
        worst = np.where(frame.boxed, g > 0, 0.0)
        for each in frame.solved:
            v = -g[each.coordinates] / each.factor
            length = float(np.linalg.norm(v))
            total += length - each.centre @ v
            worst[each.coordinates] = (each.centre - (v / length if length else 0.0)) / each.factor
            g[each.coordinates] = 0.0
        total += np.maximum(g, 0.0) @ frame.boxed
        missed = np.where(frame.boxed, 0.0, np.where(frame.above, np.maximum(g, 0.0), np.abs(g)))
        missed = np.where(missed > _ROUNDING * terms, missed, 0.0)
        total += float(np.where(missed > 0, missed, 0.0) @ np.where(missed > 0, frame.largest, 0.0))
        return float(total), float(total) / self._size(frame.points(worst), found)

    def _balanced(self, found: FloatArray, g: FloatArray) -> list[FloatArray]:
        """Multipliers of the cones, moved by as little as makes g what it must be where coordinates have no end.

        Those of an interior point miss there by a rounding, and would prove nothing. Any in the dual cones are valid:
        those that are inside of them stay in.
        """
        frame = self.frame
        found_ones = [found[columns] for columns in self.of_cones]
        if not found_ones or self.curves:
            return found_ones
        open_ones = ~frame.boxed
        for each in frame.solved:
            open_ones[each.coordinates] = False
        matrix = sparse.hstack([cone.matrix.T for cone in frame.cones]).toarray()[open_ones]
        y = np.concatenate(found_ones)
        for _ in range(2):
            left = g[open_ones] + matrix @ y
            left = np.where(frame.above[open_ones], np.maximum(left, 0.0), left)
            y = y - np.linalg.lstsq(matrix, left, rcond=None)[0]
        return np.split(y, np.cumsum([len(each) for each in found_ones])[:-1])

    def _bent(self, found: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """What the curves take away of g, the size of its terms, and what that costs.

        The multipliers v are moved by as little as makes g what it must be where coordinates have no end: any v bounds
        a curve, and one that misses there by a rounding would prove nothing.
        """
        weights = [curve.at(found) for curve in self.curves]
        starts = len(self.frame.rows) + np.cumsum([0, *(len(curve.factor) for curve in self.curves)])
        kept = [(curve, w, start) for curve, w, start in zip(self.curves, weights, starts, strict=False) if w > 0]
        if not kept:
            return np.zeros(len(g)), np.zeros(len(g)), 0.0
        factor = np.concatenate([curve.factor for curve, _, _ in kept])
        v = np.concatenate([found[self.of_rows[start : start + len(curve.factor)]] for curve, _, start in kept])
        w = np.concatenate([np.full(len(curve.factor), w) for curve, w, _ in kept])
        for _ in range(2):
            left = g - factor.T @ v
            left = np.where(self.frame.above, np.maximum(left, 0.0), left)
            left[self.frame.boxed] = 0.0
            for each in self.frame.solved:
                left[each.coordinates] = 0.0
            open_ones = left != 0
            if not open_ones.any():
                break
            own = factor[:, open_ones]
            v = v + w * (own @ np.linalg.lstsq((own.T * w) @ own, left[open_ones], rcond=None)[0])
        centre = np.concatenate([curve.centre for curve, _, _ in kept])
        return factor.T @ v, np.abs(factor).T @ np.abs(v), float(v @ centre + (v * v / (2 * w)).sum())

    def _size(self, point: FloatArray, found: FloatArray) -> float:
        """Size of the row at a vector."""
        vector = np.concatenate([[1.0], point])
        matrix, x = vector @ self.source.matrix, found[self.source.columns]
        lower, upper = self.source.limits(point[None])
        activity = np.array([matrix @ x])
        return float(violation_scale(activity, np.array([np.abs(matrix) @ np.abs(x)]), lower, upper)[0])
