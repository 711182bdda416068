"""Robust counterparts: rows affine in an uncertain vector as finitely many rows, by the duality of linear programs.

``g_0(x) + g(x) @ xi <= 0`` for all ``xi = offset + matrix z`` with ``lower <= z <= upper``, ``low <= rows z <= high``
says that the linear program ``max (matrix' g(x)) @ z`` stays below ``-g_0(x) - g(x) @ offset``. Its dual has the same
value, and any feasible dual point bounds it: so the row holds exactly if there are multipliers with

    upper' p - lower' q + high' r - low' s <= -g_0(x) - g(x) @ offset,    p - q + rows' (r - s) = matrix' g(x)

and p, q, r, s >= 0 (Ben-Tal and Nemirovski, 1999). The price of such a row is its dual times the vector that the duals
of the equations point to. This way shares nothing with exchange but the rows, which makes each a check of the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import ModelError
from osilp_pyomo.index.convex_sets import ScenarioBody
from osilp_pyomo.index.extended_form import Lift
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.rows import AffineRows


@dataclass(frozen=True, eq=False)
class Counterpart:
    """The finite LP, and for each family where its rows and their equations stand."""

    lp: FiniteLP
    sides: tuple[tuple[_Side, ...], ...]

    def atoms(self, row_duals: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Price of each family as vectors and masses."""
        prices = []
        for sides in self.sides:
            found = [side.atoms(row_duals) for side in sides]
            prices.append((np.concatenate([p for p, _ in found]), np.concatenate([m for _, m in found])))
        return prices


@dataclass(frozen=True, eq=False)
class _Side:
    """One limit of one family: its row, and the equations of its multipliers (or its rows at scenarios)."""

    lift: Lift | None
    scenarios: FloatArray
    rows: IntArray
    equations: IntArray

    def atoms(self, row_duals: FloatArray) -> tuple[FloatArray, FloatArray]:
        masses = row_duals[self.rows]
        if self.lift is None:
            used = masses != 0
            return self.scenarios[used], masses[used]
        if masses[0] == 0:
            return np.empty((0, len(self.lift.offset))), np.empty(0)
        z = row_duals[self.equations] / masses[0]
        return self.lift.points(z[None]), masses


class _Builder:
    """Columns and rows of the growing LP."""

    def __init__(self, core: FiniteLP) -> None:
        self.core = core
        self.columns = core.columns
        self.lower: list[FloatArray] = [core.column_lower]
        self.upper: list[FloatArray] = [core.column_upper]
        self.rows = len(core.row_lower)
        self.entries: list[tuple[FloatArray, IntArray, IntArray]] = []
        self.row_lower: list[FloatArray] = [core.row_lower]
        self.row_upper: list[FloatArray] = [core.row_upper]

    def add_columns(self, free: FloatArray) -> IntArray:
        """Multipliers; those that are not free are >= 0."""
        numbers = np.arange(self.columns, self.columns + len(free))
        self.columns += len(free)
        self.lower.append(np.where(free, -np.inf, 0.0))
        self.upper.append(np.full(len(free), np.inf))
        return numbers

    def add_rows(self, lower: FloatArray, upper: FloatArray) -> IntArray:
        numbers = np.arange(self.rows, self.rows + len(lower))
        self.rows += len(lower)
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        return numbers

    def put(self, values: FloatArray, rows: IntArray, columns: IntArray) -> None:
        """A block of coefficients (rows, columns)."""
        used = values != 0
        at_row, at_column = np.broadcast_to(rows[:, None], used.shape), np.broadcast_to(columns, used.shape)
        self.entries.append((values[used], at_row[used], at_column[used]))

    def lp(self) -> FiniteLP:
        core, own = self.core, self.core.matrix.tocoo()
        data = np.concatenate([own.data, *(values for values, _, _ in self.entries)])
        rows = np.concatenate([own.row, *(rows for _, rows, _ in self.entries)])
        columns = np.concatenate([own.col, *(columns for _, _, columns in self.entries)])
        extra = self.columns - core.columns
        return FiniteLP(
            maximize=core.maximize,
            cost=np.concatenate([core.cost, np.zeros(extra)]),
            offset=core.offset,
            column_lower=np.concatenate(self.lower),
            column_upper=np.concatenate(self.upper),
            integer=np.concatenate([core.integer, np.zeros(extra, dtype=bool)]),
            matrix=sparse.csr_array((data, (rows, columns)), shape=(self.rows, self.columns)),
            row_lower=np.concatenate(self.row_lower),
            row_upper=np.concatenate(self.row_upper),
        )


def counterpart(problem: SemiInfiniteLP) -> Counterpart:
    """Write the counterpart of a problem whose families are affine rows over polytopes or scenarios."""
    builder = _Builder(problem.core)
    lifts: dict[int, Lift | None] = {}
    for family in problem.families:
        _refuse(family)
        body = family.domain.body
        assert body is not None
        if id(body) not in lifts:
            lifts[id(body)] = None if isinstance(body, ScenarioBody) else body.lift()
    sides = []
    for family in problem.families:
        rows, body = family.rows, family.domain.body
        assert isinstance(rows, AffineRows)
        assert body is not None
        lift = lifts[id(body)]
        found = []
        for limit, upper in ((rows.upper, True), (rows.lower, False)):
            if limit is not None:
                scenarios = body.scenarios if isinstance(body, ScenarioBody) else np.empty((0, body.dimension))
                found.append(_dualized(builder, rows, limit, upper, lift, scenarios))
        sides.append(tuple(found))
    return Counterpart(builder.lp(), tuple(sides))


def _refuse(family: Family) -> None:
    body = family.domain.body
    what = f"SemiInfiniteConstraint '{family.name}'"
    if body is None:
        raise ModelError(
            f"{what}: method='counterpart' is for rows over an uncertainty set of PyROS (got {family.domain}); use "
            "method='exchange'."
        )
    if not isinstance(family.rows, AffineRows):
        raise ModelError(
            f"{what}: method='counterpart' is for rows affine in the uncertain vector, which this one is not; use "
            "method='exchange'."
        )
    if not isinstance(body, ScenarioBody) and (not body.convex or body.lift().balls):
        raise ModelError(
            f"{what}: method='counterpart' is for sets bounded by planes (got {body}, whose counterpart is no linear "
            "program); use method='exchange', which is exact there too."
        )


def _dualized(
    builder: _Builder, rows: AffineRows, limit: FloatArray, upper: bool, lift: Lift | None, scenarios: FloatArray
) -> _Side:
    """Rows and multipliers for one limit of one family: (1, xi) (matrix x - limit) <= 0, or >= 0 for a lower one."""
    if lift is None:
        vectors = np.column_stack([np.ones(len(scenarios)), scenarios])
        right, none = vectors @ limit, np.full(len(scenarios), np.inf)
        numbers = builder.add_rows(-none if upper else right, right if upper else none)
        builder.put(vectors @ rows.matrix, numbers, rows.columns)
        return _Side(None, scenarios, numbers, np.empty(0, dtype=np.int64))
    sign = 1.0 if upper else -1.0
    at_offset = np.concatenate([[1.0], lift.offset])
    right = at_offset @ limit
    row = builder.add_rows(np.array([-np.inf if upper else right]), np.array([right if upper else np.inf]))
    builder.put((at_offset @ rows.matrix)[None], row, rows.columns)
    # sign * matrix' g(x) = p - q + rows' (r - s): for a lower limit the worst z makes g(x) @ z smallest.
    equal = lift.matrix.T @ limit[1:]
    equations = builder.add_rows(equal, equal)
    builder.put(lift.matrix.T @ rows.matrix[1:], equations, rows.columns)
    unit = np.eye(lift.coordinates)
    tied = lift.row_lower == lift.row_upper
    for normals, bound, side in (
        (unit, lift.upper, 1.0),
        (unit, lift.lower, -1.0),
        (lift.rows, lift.row_upper, 1.0),
        (lift.rows, lift.row_lower, -1.0),
    ):
        on_rows = normals is lift.rows
        # An equation has one multiplier of either sign.
        kept = np.isfinite(bound) & ~(tied & (side < 0) if on_rows else np.zeros(len(bound), dtype=bool))
        if not kept.any():
            continue
        multipliers = builder.add_columns(tied[kept] if on_rows else np.zeros(int(kept.sum()), dtype=bool))
        builder.put(sign * side * bound[kept][None], row, multipliers)
        builder.put(-sign * side * normals[kept].T, equations, multipliers)
    return _Side(lift, scenarios, row, equations)
