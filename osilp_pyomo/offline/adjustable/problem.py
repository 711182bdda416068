"""Rows in terms of what rules decide at a vector, instead of the coefficients that the rules are made of.

A row that holds ``a(xi) y(xi)`` has the coefficient ``a(xi) phi_q(xi)`` at the coefficient q of the rule y, and one of
the functions phi_q is the number 1: so ``a(xi)`` is the coefficient at that one, and the others tell whether the row
has this form. With that a rule can be replaced by any policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.errors import ModelError
from osilp_pyomo.index.curves.spaces import VectorFunctions
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.functions.matching import MatchedRows
from osilp_pyomo.offline.functions.simulation import FunctionColumns
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.rows import AffineRows

# Vectors at which a row is compared with the form that it should have, and what may be missed of its coefficients.
_COMPARED, _SAME = 24, 1e-9


@dataclass(frozen=True, eq=False)
class Rule:
    """A decision that reacts: its functions, and the columns of their coefficients."""

    name: str
    space: VectorFunctions
    columns: IntArray

    @property
    def seen(self) -> tuple[int, ...]:
        """Entries of the vector that it may use."""
        return self.space.seen

    @property
    def level(self) -> int:
        """The column of its constant part."""
        return int(self.columns[self.space.monomials.index(())])


@dataclass(frozen=True, eq=False)
class Use:
    """A rule in a row: its number, and the first entry of the row's vector that belongs to the rule's."""

    rule: int
    start: int


@dataclass(frozen=True, eq=False)
class AdjustableRows:
    """One row for every vector, in decisions made before it is seen and values of rules."""

    family: Family
    uses: tuple[Use, ...]

    @property
    def dimension(self) -> int:
        """Entries of its vector."""
        return self.family.domain.dimension

    def kept(self, points: FloatArray) -> FloatArray:
        """Those of some vectors at which it holds."""
        return points[self.family.domain.contains(points)] if len(points) else points


@dataclass(frozen=True, eq=False)
class AdjustableProblem:
    """Decisions made at once, decisions that react, and the rows that hold for every vector.

    ``core`` has the ordinary rows and the costs; ``here`` are the columns of what is decided at once; ``left_out``
    names the rows that do not have the form of this module: without them a bound stays one.
    """

    core: FiniteLP
    here: IntArray
    rules: tuple[Rule, ...]
    rows: tuple[AdjustableRows, ...]
    left_out: tuple[str, ...]

    @classmethod
    def of_problem(
        cls, problem: SemiInfiniteLP, matched: Sequence[MatchedRows], functions: Sequence[FunctionColumns], what: str
    ) -> AdjustableProblem:
        """From a problem with rows of equations over an index behind its ordinary ones."""
        if problem.convex is not None:
            raise ModelError(
                f"{what}: the model has an objective or rows that are not linear in the variables, and it is made for "
                "linear ones."
            )
        core = problem.core
        count = len(core.row_lower) - sum(len(each.block) for each in matched)
        ordinary = replace(
            core,
            matrix=core.matrix[:count],
            row_lower=core.row_lower[:count],
            row_upper=core.row_upper[:count],
            row_names=[core.row_names[k] for k in range(count)],
        )
        return cls.of(ordinary, [*problem.families, *(each.family for each in matched)], functions, what)

    @classmethod
    def of(
        cls, core: FiniteLP, families: Sequence[Family], functions: Sequence[FunctionColumns], what: str
    ) -> AdjustableProblem:
        """From the problem as it was traced; ``core`` has no rows of equations over an index."""
        rules = tuple(_rules(functions, what))
        if not rules:
            raise ModelError(
                f"{what}: the model has no FunctionVar over an uncertainty set, so that no decision reacts to what is "
                "seen, and the optimum is that of every policy; osilp.solve(model).bound says how far it is proved."
            )
        reacting = np.zeros(core.columns, dtype=bool)
        for rule in rules:
            reacting[rule.columns[rule.columns >= 0]] = True
        _refuse_costs_of_rules(core, reacting, what)
        at_vectors = np.flatnonzero(abs(core.matrix) @ reacting.astype(float))
        left_out = [str(core.row_names[k]) for k in at_vectors.tolist()]
        kept = np.setdiff1d(np.arange(len(core.row_lower)), at_vectors)
        core = replace(
            core,
            matrix=core.matrix[kept],
            row_lower=core.row_lower[kept],
            row_upper=core.row_upper[kept],
            row_names=[str(core.row_names[k]) for k in kept.tolist()],
        )
        rows = []
        for family in families:
            uses = _uses(family, rules, reacting)
            if uses is None:
                left_out.append(family.name)
            else:
                rows.append(AdjustableRows(family, uses))
        return cls(core, np.flatnonzero(~reacting), rules, tuple(rows), tuple(left_out))

    @cached_property
    def place_of(self) -> IntArray:
        """For each column what number it has among those decided at once; -1 for coefficients of rules."""
        places = np.full(self.core.columns, -1)
        places[self.here] = np.arange(len(self.here))
        return places

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """Entries of the vectors of its rows."""
        return tuple(sorted({each.dimension for each in self.rows if each.family.domain.body is not None}))

    def value_bounds(self, rule: Rule) -> tuple[float, float]:
        """Bounds of what a rule decides, where they stand at its one coefficient."""
        if len(rule.space) > 1:
            return -np.inf, np.inf
        return float(self.core.column_lower[rule.level]), float(self.core.column_upper[rule.level])


def _rules(functions: Sequence[FunctionColumns], what: str) -> list[Rule]:
    """Rules that decide something; those of which all coefficients are fixed are data."""
    found = []
    for each in functions:
        if not isinstance(each.space, VectorFunctions) or np.all(each.columns < 0):
            continue
        rule = Rule(each.name, each.space, each.columns)
        missing = each.columns < 0
        if rule.level < 0 or np.any(each.numbers[missing] != 0):
            raise ModelError(
                f"{what}: of the rule '{each.name}' some coefficients are fixed and others are not, so that it is not "
                "clear which policies it is to be compared with; fix all of them, or none."
            )
        found.append(rule)
    return found


def _refuse_costs_of_rules(core: FiniteLP, reacting: BoolArray, what: str) -> None:
    costly = np.flatnonzero((core.cost != 0) & reacting)
    if len(costly):
        raise ModelError(
            f"{what}: the objective holds a rule at single vectors or on average (coefficient "
            f"'{core.column_names[int(costly[0])]}'), and the best policy on average is not known from its "
            "coefficients; a worst-case objective, a variable above the cost of every vector, can be bounded."
        )


def _uses(family: Family, rules: Sequence[Rule], reacting: BoolArray) -> tuple[Use, ...] | None:
    """The rules in a row; None where it holds them in another way than each at the row's own vector."""
    columns = family.rows.columns
    own = reacting[columns]
    if not own.any():
        return ()
    body = family.domain.body
    if body is None:
        return None
    points = body.cloud(_COMPARED, seed=11)[: 2 * _COMPARED]
    matrix = family.matrix(points)
    explained = np.zeros(matrix.shape, dtype=bool)
    explained[:, ~own] = True
    place = {column: k for k, column in enumerate(columns.tolist())}
    uses = []
    for number, rule in enumerate(rules):
        places = np.array([place.get(column, -1) for column in rule.columns.tolist()])
        held = places[places >= 0]
        if not len(held) or not np.any(matrix[:, held]):
            explained[:, held] = True
            continue
        start = _start(rule, places, points, matrix)
        if start is None:
            return None
        explained[:, held] = True
        uses.append(Use(number, start))
    return tuple(uses) if explained.all() else None


def _start(rule: Rule, places: IntArray, points: FloatArray, matrix: FloatArray) -> int | None:
    """From which entry on a row's vector is that of a rule, told by its coefficients; None if it is not."""
    level = places[rule.space.monomials.index(())]
    if level < 0:
        return None
    room = points.shape[1] - rule.space.dimension
    if len(rule.space) == 1 and rule.seen and room:
        # A constant does not tell.
        return None
    found = np.where(places >= 0, matrix[:, places], 0.0)
    size = np.abs(found).max()
    for start in range(room + 1):
        wanted = found[:, [rule.space.monomials.index(())]] * rule.space.evaluate(
            points[:, start : start + rule.space.dimension]
        )
        # A coefficient that stands in no row of the model is zero wherever it could be.
        unknown = rule.columns < 0
        if np.all(np.abs(found - wanted)[:, ~unknown] <= _SAME * size):
            return start
    return None


def fixed_recourse(rows: AdjustableRows, rules: Sequence[Rule]) -> FloatArray | None:
    """The coefficients of rules in a row that is affine in the vector, where they do not change with it."""
    found = rows.family.rows
    if not isinstance(found, AffineRows):
        return None
    levels = np.searchsorted(found.columns, [rules[use.rule].level for use in rows.uses])
    if np.any(found.matrix[1:, levels]):
        return None
    return found.matrix[0, levels]
