"""Terms that are not linear in the variables, read into convex terms; what is not convex is refused.

Objective, ordinary constraints and semi-infinite rows are each split into linear terms, which are read as everywhere,
and the rest, which is compiled here: one formula for all terms of a shape, whose coordinates are those of the index and
after them the variables of the term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from osilp_pyomo.errors import DeclarationError, ModelError, NotConvexError, OsilpError
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.model.agreement import compared_points, warn_of_change
from osilp_pyomo.model.columns import Columns
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.formulas import CannotCompileError, shape_of, slot_of
from osilp_pyomo.model.linear import (
    SKIP,
    LinearTerms,
    RelationTerms,
    free_variables,
    refuse_continuous_variables,
    short_text,
    take_apart,
    times,
)
from osilp_pyomo.model.same_row import Side, StandIns, same_row
from osilp_pyomo.offline.curved.curvature import CONCAVE_SIDE, CONVEX_SIDE, Subject, refuse_wrong_curvature
from osilp_pyomo.offline.curved.terms import ConvexPart, CurvedGroup, CurvedTerm

# Points at which a traced rule is compared with the rule itself.
_COMPARED = 4


class CurvedReader:
    """Collects the nonlinear terms of a model while it is read."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._objective: tuple[CurvedTerm, Subject] | None = None
        self._rows: dict[int, tuple[CurvedTerm, Subject]] = {}
        self._families: dict[int, tuple[CurvedTerm, Subject]] = {}

    def read_objective(self, terms: LinearTerms, objective: Any) -> None:
        """Keep what is not linear of an objective."""
        if terms.nonlinear:
            what = f"Objective '{objective.name}'"
            sign = CONCAVE_SIDE if objective.sense == pyo.maximize else CONVEX_SIDE
            self._objective = self._term(terms, what, {}), Subject(what, sign)

    def read_row(self, terms: LinearTerms, constraint: Any, number: int, lower: Any, upper: Any) -> None:
        """Keep what is not linear of an ordinary constraint."""
        if not terms.nonlinear:
            return
        what = f"Constraint '{constraint.name}'"
        if lower is not None and upper is not None:
            raise NotConvexError(
                f"{what}: it is not linear in the variables (found {_first_text(terms)}) and has limits on both sides, "
                "which no convex constraint has; write a relation with one limit, or make it linear."
            )
        self._rows[number] = self._term(terms, what, {}), Subject(what, CONCAVE_SIDE if upper is None else CONVEX_SIDE)

    def read_family(
        self, row: RelationTerms, data: SemiInfiniteConstraintData, number: int, domain: Domain
    ) -> RelationTerms:
        """Keep what is not linear of a semi-infinite row; the row, or that of today's rule where that has changed."""
        if not row.body.nonlinear:
            return row
        what = f"SemiInfiniteConstraint '{data.name}'"
        row = _as_the_rule_is(data, row, domain, what)
        if row.lower is not None and row.upper is not None:
            raise NotConvexError(
                f"{what}: it is not linear in the variables (found {_first_text(row.body)}) and has limits on both "
                "sides, which no convex row has; write a relation with one limit, or make it linear."
            )
        if not domain.bounded:
            raise ModelError(
                f"{what}: its index {domain} is unbounded, which works for linear rows only (found "
                f"{_first_text(row.body)}); give the index bounds."
            )
        axes = {id(placeholder): axis for axis, placeholder in enumerate(data.parent_component().placeholders)}
        sign = CONCAVE_SIDE if row.upper is None else CONVEX_SIDE
        self._families[number] = self._term(row.body, what, axes), Subject(what, sign, domain)
        return row

    def _term(self, terms: LinearTerms, what: str, axes: Mapping[int, int]) -> CurvedTerm:
        """Compile the nonlinear terms, one formula for each shape."""
        members: dict[tuple[Any, ...], list[tuple[list[Any], list[Any], str]]] = {}
        dimension = len(axes)
        for factor, node in terms.nonlinear:
            tree = times(factor, node)
            variables = {id(each): each for found in free_variables(tree) for each in found}
            refuse_continuous_variables(variables.values(), what)
            self._columns.register(LinearTerms(variables), what)
            own = {key: dimension + place for place, key in enumerate(variables)}
            try:
                shape, leaves = shape_of(tree, {**axes, **own})
            except CannotCompileError as error:
                raise ModelError(
                    f"{what}: {short_text(str(node))} cannot be read ({error}); write it with Pyomo's functions."
                ) from None
            members.setdefault(shape, []).append(([*variables], leaves, short_text(str(tree))))
        return CurvedTerm(
            tuple(self._group(shape, found, dimension, what) for shape, found in members.items()), dimension
        )

    def _group(
        self, shape: tuple[Any, ...], found: Sequence[tuple[list[Any], list[Any], str]], dimension: int, what: str
    ) -> CurvedGroup:
        slots, literals = [], []
        for leaves in zip(*(entry[1] for entry in found), strict=True):
            slot, _, literal = slot_of(leaves, what)
            literals.append(literal)
            if literal is None:
                slots.append(slot)
        columns = np.array([[self._columns.of[key] for key in entry[0]] for entry in found], dtype=np.int64)
        texts = tuple(entry[2] for entry in found)
        return CurvedGroup(Formula(shape, tuple(literals)), tuple(slots), columns, dimension, texts)

    def part(self, core: FiniteLP, domains: Sequence[Domain]) -> ConvexPart | None:
        """What of the model is convex, all of it proved to be so; None where everything is linear."""
        if self._objective is None and not self._rows and not self._families:
            return None
        read = [*([] if self._objective is None else [self._objective]), *self._rows.values(), *self._families.values()]
        for term, subject in read:
            refuse_wrong_curvature(term, subject, core)
        return ConvexPart(
            None if self._objective is None else self._objective[0],
            {number: term for number, (term, _) in self._rows.items()},
            {number: term for number, (term, _) in self._families.items()},
            np.array([_value(variable) for variable in self._columns.variables]),
        )


def _value(variable: Any) -> float:
    value = variable.value
    return np.nan if value is None else float(value)


def _first_text(terms: LinearTerms) -> str:
    factor, node = terms.nonlinear[0]
    return short_text(str(times(factor, node)))


def _as_the_rule_is(data: SemiInfiniteConstraintData, row: RelationTerms, domain: Domain, what: str) -> RelationTerms:
    """A row that says at numbers what its rule says there; it may have read Params that have changed since."""
    if _agrees(data, data.trace, domain):
        return row
    fresh, _ = data.parent_component()._trace(data.index(), data.name)
    if fresh is not None and fresh is not SKIP and _agrees(data, fresh, domain):
        warn_of_change([data])
        return take_apart(fresh, what, keep_nonlinear=True)
    raise ModelError(
        f"{what}: traced with a symbol its rule gives another row than called with a number; rows that are not linear "
        "must be traced: write the rule with Pyomo's functions of the index, and no conditions of Python on it."
    )


def _agrees(data: SemiInfiniteConstraintData, trace: Any, domain: Domain) -> bool:
    """Whether a trace says what its rule says at some numbers."""
    sides = [Side.of(side) for side in trace.args]
    for point in compared_points(domain, _COMPARED):
        try:
            relation = data.at(*map(float, point))
            if not same_row(sides, relation, StandIns(data.parent_component().placeholders, point)):
                return False
        except DeclarationError:
            return True
        except OsilpError:
            raise
        except (ArithmeticError, ValueError):
            continue
    return True
