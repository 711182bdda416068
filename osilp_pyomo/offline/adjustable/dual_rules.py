"""What no policy can beat, by affine rules for the duals.

For a distribution P of the vector, a row's slack that is not negative anywhere has moments ``E[slack (1, xi)]`` that
lie in the cone of multiples of points (1, xi) of the set's convex hull, and an equation has moments that are zero. Rows
with fixed coefficients of rules tell these moments by those of P and by ``E[rule (1, xi)]``: a finite program, whose
optimum is a bound for every policy, and whose dual is the dual problem restricted to affine rules (Kuhn, Wiesemann and
Georghiou, 2011).

There the objective is an expectation under P. Here it is a worst case: a row with a variable above the cost of every
vector. Rows that hold at every vector of the set hold P-almost surely, whatever P is on it, so that every P gives a
bound, and several are tried. What a rule sees enters as in that paper where the entries of the vector are independent:
then the expectation of what is not seen is its mean. Under another distribution the moments of a rule are left free,
which makes the program larger and its optimum a bound still. Sets with cones are enlarged to the box around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.index.convex_sets import Body, BoxBody
from osilp_pyomo.index.extended_form import Lift
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.adjustable.problem import AdjustableProblem, AdjustableRows, fixed_recourse
from osilp_pyomo.offline.rows import AffineRows

# How far distributions lean towards the worst case; vectors of a set without known vertices that they are mixed with.
_SHARES, _FEW_SHARES = (0.0, 0.9, 0.99, 0.9999), (0.0, 0.5)
_SPREAD = 256


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of (1, e) for the vector ``xi = mean + unit * e``, and whether its entries are independent.

    In these units, its own mean and deviations, the moments are of size 1 whatever the vector is measured in.
    """

    name: str
    mean: FloatArray
    unit: FloatArray
    matrix: FloatArray
    independent: bool
    #: The vectors that it is on; of independent entries the two corners of a box.
    points: FloatArray

    @classmethod
    def of_atoms(cls, name: str, points: FloatArray, weights: FloatArray) -> Moments:
        """Those of a distribution on finitely many vectors."""
        shares = weights / weights.sum()
        mean = shares @ points
        deviation = np.sqrt(shares @ (points - mean) ** 2)
        unit = np.where(deviation > 0, deviation, 1.0)
        ones = np.column_stack([np.ones(len(points)), (points - mean) / unit])
        return cls(name, mean, unit, ones.T @ (ones * shares[:, None]), False, points)

    @classmethod
    def of_ends(cls, name: str, body: Body, mean: FloatArray) -> Moments:
        """Those of independent entries at the two ends of a box, with a mean."""
        mean = np.clip(mean, body.lower, body.upper)
        variance = (body.upper - mean) * (mean - body.lower)
        unit = np.where(variance > 0, np.sqrt(variance), 1.0)
        matrix = np.diag(np.concatenate([[1.0], (variance > 0).astype(float)]))
        return cls(name, mean, unit, matrix, True, np.stack([body.lower, body.upper]))

    def lies_in(self, body: Body) -> bool:
        """Whether a set holds all of its vectors."""
        return (isinstance(body, BoxBody) or not self.independent) and bool(np.all(body.contains(self.points)))

    def in_units(self, affine: FloatArray) -> FloatArray:
        """Functions ``(1, xi) @ affine`` as functions of (1, e)."""
        shifted: FloatArray = affine.copy()
        shifted[0] = affine[0] + self.mean @ affine[1:]
        shifted[1:] = (affine[1:].T * self.unit).T
        return shifted

    def lift(self, of_set: Lift) -> Lift:
        """The set of all e."""
        if not of_set.plain_coordinates:
            return replace(of_set, offset=(of_set.offset - self.mean) / self.unit,
                           matrix=of_set.matrix / self.unit[:, None])  # fmt: skip
        along = of_set.rows @ self.mean
        return replace(
            of_set,
            lower=(of_set.lower - self.mean) / self.unit,
            upper=(of_set.upper - self.mean) / self.unit,
            rows=of_set.rows * self.unit,
            row_lower=of_set.row_lower - along,
            row_upper=of_set.row_upper - along,
        )


def distributions(
    body: Body, critical: FloatArray, weights: FloatArray, vertices: FloatArray | None
) -> Iterator[Moments]:
    """Distributions on a set that are tried, ever nearer to the vectors that the worst case puts its weight on.

    On a box the entries are independent at its ends, and the mean moves from the middle to that of the critical
    vectors. On other sets the critical vectors are mixed with the vertices, or with vectors all over the set.
    """
    total = float(weights.sum())
    if not len(critical) or total <= 0:
        critical, weights, total = body.centre[None], np.ones(1), 1.0
    if isinstance(body, BoxBody):
        worst = weights @ critical / total
        for share in _SHARES:
            name = f"independent ends, mean {share:.2%} of the way to the worst case"
            yield Moments.of_ends(name, body, (1 - share) * body.centre + share * worst)
        return
    spread = body.cloud(_SPREAD, seed=9) if vertices is None else vertices
    about = "points of the set" if vertices is None else "vertices"
    even = np.full(len(spread), 1.0 / len(spread))
    for share in _FEW_SHARES:
        points = np.concatenate([spread, critical])
        mixed = np.concatenate([(1 - share) * even, share * weights / total])
        yield Moments.of_atoms(f"{about}, {share:.2%} at the worst case", points, mixed)


@dataclass(frozen=True, eq=False)
class MomentProgram:
    """The program of moments, and the rows that it leaves out because their coefficients of rules change."""

    lp: FiniteLP
    left_out: tuple[str, ...]


class _Builder:
    """Triplets of rows that are written one family after the other."""

    def __init__(self) -> None:
        self.numbers: list[FloatArray] = []
        self.lines: list[IntArray] = []
        self.places: list[IntArray] = []
        self.lower: list[FloatArray] = []
        self.upper: list[FloatArray] = []
        self.rows = 0

    def add(self, matrix: FloatArray, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Rows with a dense matrix over some columns."""
        lines, places = np.nonzero(matrix)
        self.numbers.append(matrix[lines, places])
        self.lines.append(lines + self.rows)
        self.places.append(columns[places])
        self.lower.append(lower)
        self.upper.append(upper)
        self.rows += len(matrix)


def moment_program(problem: AdjustableProblem, moments: Moments, body: Body) -> MomentProgram:
    """The program for a distribution on a set; rows over sets that do not hold it are left out."""
    core, here = problem.core, len(problem.here)
    maps, starts, columns = [], [], here
    for rule in problem.rules:
        maps.append(_map(rule.seen, moments))
        starts.append(columns)
        columns += maps[-1].shape[1]
    cone = _Cone.of(moments.lift(_polyhedral(body)))
    builder, left_out = _Builder(), []
    extra = columns
    for rows in problem.rows:
        shape = _usable(problem, rows, moments)
        if shape is None:
            left_out.append(rows.family.name)
            continue
        matrix, places, constant = _moments_of_row(problem, rows, shape, moments, maps, starts)
        extra += _add_row(builder, rows, matrix, places, constant, cone, extra)
    _bound_values(problem, builder, maps, starts, moments)
    ordinary = sparse.coo_array(core.matrix[:, problem.here])
    built = sparse.coo_array(
        (np.concatenate(builder.numbers), (np.concatenate(builder.lines), np.concatenate(builder.places))),
        shape=(builder.rows, extra),
    )
    ordinary = sparse.coo_array((ordinary.data, ordinary.coords), shape=(len(core.row_lower), extra))
    free = np.full(extra - here, np.inf)
    lp = FiniteLP(
        maximize=core.maximize,
        cost=np.concatenate([core.cost[problem.here], np.zeros(extra - here)]),
        offset=core.offset,
        column_lower=np.concatenate([core.column_lower[problem.here], -free]),
        column_upper=np.concatenate([core.column_upper[problem.here], free]),
        integer=np.concatenate([core.integer[problem.here], np.zeros(extra - here, dtype=bool)]),
        matrix=sparse.csr_array(sparse.vstack([ordinary, built])),
        row_lower=np.concatenate([core.row_lower, *builder.lower]),
        row_upper=np.concatenate([core.row_upper, *builder.upper]),
    )
    return MomentProgram(lp, tuple(left_out))


def _map(seen: Sequence[int], moments: Moments) -> FloatArray:
    """From the moments of a rule that are variables to all of them, ``E[rule (1, e)]``.

    With independent entries those with what is not seen are zero, as its mean is.
    """
    dimension = len(moments.matrix) - 1
    if not seen:
        # A rule that sees nothing is a number, whatever the distribution is.
        return moments.matrix[:, :1]
    if not moments.independent:
        return np.eye(1 + dimension)
    own = [0, *(1 + k for k in seen)]
    result = np.zeros((1 + dimension, len(own)))
    result[own, np.arange(len(own))] = 1.0
    return result


def _polyhedral(body: Body) -> Lift:
    if body.convex and not body.lift().cones:
        return body.lift()
    return Lift.plain(body.dimension, lower=body.lower, upper=body.upper)


def _usable(problem: AdjustableProblem, rows: AdjustableRows, moments: Moments) -> FloatArray | None:
    """The coefficients of rules in a row that this way can use."""
    body = rows.family.domain.body
    if body is None or rows.dimension != len(moments.mean) or any(use.start for use in rows.uses):
        return None
    return fixed_recourse(rows, problem.rules) if moments.lies_in(body) else None


def _moments_of_row(
    problem: AdjustableProblem,
    rows: AdjustableRows,
    factors: FloatArray,
    moments: Moments,
    maps: Sequence[FloatArray],
    starts: Sequence[int],
) -> tuple[FloatArray, IntArray, tuple[FloatArray | None, FloatArray | None]]:
    """``E[body (1, e)]`` as a matrix over columns, and the moments of the limits."""
    found = rows.family.rows
    assert isinstance(found, AffineRows)
    here = problem.place_of[found.columns]
    parts = [moments.matrix @ moments.in_units(found.matrix[:, here >= 0])]
    places = [here[here >= 0]]
    for use, factor in zip(rows.uses, factors.tolist(), strict=True):
        parts.append(factor * maps[use.rule])
        places.append(np.arange(starts[use.rule], starts[use.rule] + maps[use.rule].shape[1]))
    limits = tuple(
        None if limit is None else moments.matrix @ moments.in_units(limit) for limit in (found.lower, found.upper)
    )
    return np.hstack(parts), np.concatenate(places), (limits[0], limits[1])


@dataclass(frozen=True, eq=False)
class _Cone:
    """Multiples of the points (1, e) of a set: ``tested @ p >= 0``, or with coordinates of their own a description."""

    tested: FloatArray
    lift: Lift | None

    @classmethod
    def of(cls, lift: Lift) -> _Cone:
        lift = _without_fixed(lift)
        count = lift.coordinates
        if lift.matrix.shape[0] != count or np.linalg.matrix_rank(lift.matrix) < count:
            return cls(np.zeros((1, 0)), lift)
        inverse = np.linalg.inv(lift.matrix)
        # Rows of the coordinates as rows of the vectors.
        along = np.concatenate([np.eye(count), lift.rows]) @ inverse
        shift = along @ lift.offset
        lower = np.concatenate([lift.lower, lift.row_lower]) + shift
        upper = np.concatenate([lift.upper, lift.row_upper]) + shift
        below, above = np.isfinite(lower), np.isfinite(upper)
        sides = np.concatenate([np.column_stack([-lower[below], along[below]]),
                                np.column_stack([upper[above], -along[above]])])  # fmt: skip
        return cls(np.concatenate([np.eye(1, 1 + count), sides]), None)

    def add(self, builder: _Builder, matrix: FloatArray, constant: FloatArray, places: IntArray, extra: int) -> int:
        """Write that ``constant + matrix @ x`` lies in it; how many columns that took."""
        none = np.inf
        if self.lift is None:
            right = -(self.tested @ constant)
            builder.add(self.tested @ matrix, places, right, np.full(len(right), none))
            return 0
        # Coordinates of the set, times the first moment.
        lift, count = self.lift, self.lift.coordinates
        both = np.concatenate([places, np.arange(extra, extra + count)])
        whole = np.hstack([matrix[1:] - np.outer(lift.offset, matrix[0]), -lift.matrix])
        right = -(constant[1:] - lift.offset * constant[0])
        builder.add(whole, both, right, right)
        builder.add(matrix[:1], places, -constant[:1], np.full(1, none))
        for rows, lows, highs in ((np.eye(count), lift.lower, lift.upper), (lift.rows, lift.row_lower, lift.row_upper)):
            for sign, ends in ((1.0, highs), (-1.0, lows)):
                kept = np.isfinite(ends)
                if kept.any():
                    side = np.hstack([sign * np.outer(ends[kept], matrix[0]), -sign * rows[kept]])
                    builder.add(side, both, -sign * ends[kept] * constant[0], np.full(int(kept.sum()), none))
        return count


def _without_fixed(lift: Lift) -> Lift:
    """A description without coordinates that are fixed by their bounds."""
    free = lift.lower < lift.upper
    if free.all():
        return lift
    held = np.where(free, 0.0, lift.lower)
    along = lift.rows @ held
    return replace(
        lift,
        offset=lift.offset + lift.matrix @ held,
        matrix=lift.matrix[:, free],
        lower=lift.lower[free],
        upper=lift.upper[free],
        rows=lift.rows[:, free],
        row_lower=lift.row_lower - along,
        row_upper=lift.row_upper - along,
        known_largest=None,
    )


def _add_row(
    builder: _Builder,
    rows: AdjustableRows,
    matrix: FloatArray,
    places: IntArray,
    limits: tuple[FloatArray | None, FloatArray | None],
    cone: _Cone,
    extra: int,
) -> int:
    """Write what the moments of a row's slack satisfy; how many columns that took."""
    found = rows.family.rows
    assert isinstance(found, AffineRows)
    low, high = limits
    if found.lower is not None and found.upper is not None and np.array_equal(found.lower, found.upper):
        assert high is not None
        builder.add(matrix, places, high, high)
        return 0
    taken = 0
    for sign, limit in ((1.0, high), (-1.0, low)):
        if limit is not None:
            # The slack's moments are sign * (limit - matrix @ x).
            taken += cone.add(builder, -sign * matrix, sign * limit, places, extra + taken)
    return taken


def _bound_values(
    problem: AdjustableProblem, builder: _Builder, maps: Sequence[FloatArray], starts: Sequence[int], moments: Moments
) -> None:
    """Bounds of rules that stand at their one coefficient: their mean lies within them."""
    for rule, own, start in zip(problem.rules, maps, starts, strict=True):
        low, high = problem.value_bounds(rule)
        if np.isfinite(low) or np.isfinite(high):
            columns = np.arange(start, start + own.shape[1])
            builder.add(own[:1], columns, np.array([low]), np.array([high]))
