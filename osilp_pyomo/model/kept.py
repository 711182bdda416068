"""What was read of a model is kept, and read again only where the model has changed.

Structure is compared part by part: which components there are, which are active, their expressions by identity (Pyomo
never changes an expression in place), what named Expressions hold, which variables are fixed, the members of sets.
Where any of it is another, the whole model is read anew. Where nothing but data may have changed - Params, values of
fixed variables, bounds, Profiles, the bounds of continuous sets, the parameters of uncertainty sets - all of them are
looked at again, and arrays that hold the same numbers are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from operator import is_
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.common.numeric_types import native_types
from pyomo.core.base.constraint import Constraint
from pyomo.core.base.set import SetData, SetOperator

from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.where import FormulaRegion
from osilp_pyomo.model.affine import AffineTrace, SharedVariables, affine_rows
from osilp_pyomo.model.arrays.blocks import block_of
from osilp_pyomo.model.arrays.trees import ArrayLeaf, ArrayProduct
from osilp_pyomo.model.columns import Domains
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint, semi_infinite_families
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.constraint.looked_at import watching_rules
from osilp_pyomo.model.trace import (
    ModelReading,
    TracedModel,
    assembled,
    read_model,
    refuse_foreign_components,
)
from osilp_pyomo.offline.rows import AffineRows, Rows, TracedRows

_PLAIN = frozenset({int, float, bool, str})
_HOLDERS = frozenset({list, tuple, dict, set, frozenset})


class KeptModel:
    """A model with what was read of it last."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._structure: _Structure | None = None
        self._reading: ModelReading | None = None
        #: How often the whole model was read.
        self.readings = 0

    def forget(self) -> None:
        """Read the whole model anew the next time."""
        self._structure = self._reading = None

    def read(self, integrals: Sequence[Any] = ()) -> TracedModel:
        """The problem in arrays as the model is now; ``integrals`` is where those are recorded that are computed."""
        with PauseGC():
            refuse_foreign_components(self.model)
            kept, self._reading = self._reading, None
            if kept is not None and self._structure is not None and self._structure.is_of(self.model):
                again = _read_again(kept)
                if again is not None:
                    traced = assembled(again)
                    self._reading = again
                    return traced
            return self._read_anew(integrals)

    def _read_anew(self, integrals: Sequence[Any]) -> TracedModel:
        self.forget()
        self.readings += 1
        with watching_rules() as watcher:
            reading = read_model(self.model, tuple(semi_infinite_families(self.model)), convex=True, noted=True)
            traced = assembled(reading)
        if reading.lasting and not watcher.looked and not integrals:
            self._structure, self._reading = _Structure.of(self.model, reading), reading
        return traced


# -- structure -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Structure:
    """Parts of a model that are compared by identity, and plain values that are compared as they are.

    ``expressions`` are the named Expressions that its rows hold, with what they held.
    """

    parts: list[Any]
    values: list[Any]
    expressions: list[tuple[Any, Any]]

    @classmethod
    def of(cls, model: Any, reading: ModelReading) -> _Structure:
        """The structure of a model that was read just now."""
        parts, values = _parts_of(model)
        roots = [data.trace for data in reading.families]
        roots += [constraint.expr for constraint in reading.constraints]
        roots += [] if reading.objective is None else [reading.objective.expr]
        return cls(parts, values, [(each, each.expr) for each in _named_expressions(roots)])

    def is_of(self, model: Any) -> bool:
        """Whether a model has this structure now."""
        parts, values = _parts_of(model)
        return (
            len(parts) == len(self.parts)
            and all(map(is_, parts, self.parts))
            and values == self.values
            and all(each.expr is held for each, held in self.expressions)
        )


def _parts_of(model: Any) -> tuple[list[Any], list[Any]]:
    """What a model is made of, and what tells how it is used; of a block all of its model, which its rows may use."""
    root = model.model()
    parts: list[Any] = [model, root]
    values: list[Any] = []
    for block in root.block_data_objects(active=None, descend_into=True):
        parts.append(block)
        values.append(block.active)
        for found, listed in zip(_attributes(block), (parts, values), strict=True):
            listed += found
    for component in root.component_objects(descend_into=True, active=None):
        parts.append(component)
        values.append(component.local_name)
        kind = component.ctype
        if kind is pyo.Var:
            # In one pass each: there may be many thousands.
            members = list(component.values())
            parts += members
            values.append([each.fixed for each in members])
        elif isinstance(component, SetData):
            values.append(_members(component))
        elif kind is pyo.Suffix:
            # Solves themselves change those that they import.
            if not component.import_enabled():
                parts += chain.from_iterable(component.items())
        elif kind is Constraint or kind is pyo.Objective:
            for each in component.values():
                parts.append(each)
                values.append(each.active)
                if isinstance(each, SemiInfiniteConstraintData):
                    parts += (each.trace, each.affine)
                else:
                    parts.append(each.expr)
            if kind is pyo.Objective:
                values.append([each.sense for each in component.values()])
            if isinstance(component, SemiInfiniteConstraint):
                parts += (component.user_rule, component.where, component.equality_by, *component.continuous_sets)
                values += (component.sample, component.lipschitz)
        elif component.is_indexed():
            # As they are held: asking a Param for a member that has the default would make it. One that was deleted and
            # made anew is another, and rows hold the one of then.
            values.append(list(component._data))
            parts += component._data.values()
    return parts, values


def _attributes(block: Any) -> tuple[list[Any], list[Any]]:
    """Data that are attributes of a block, as parts and as values: no part of the model, but easily compared."""
    parts: list[Any] = []
    values: list[Any] = []
    for name, held in vars(block).items():
        kind = held.__class__
        if kind in _PLAIN or isinstance(held, np.generic):
            values.append((name, held))
        elif name.startswith("_"):
            # Pyomo's own.
            continue
        elif kind in _HOLDERS:
            members = list(chain.from_iterable(held.items()) if kind is dict else held)
            values.append((name, kind, len(members)))
            parts += members
        elif kind is np.ndarray and held.dtype != object:
            # As bytes: they may be changed in place.
            values.append((name, held.dtype.str, held.shape, held.tobytes()))
        else:
            parts.append(held)
    return parts, values


def _members(component: Any) -> Any:
    """What tells one set from another; of a continuous one only how it is, its numbers are read whenever it is used."""
    if isinstance(component, SetOperator):
        return [_members(each) for each in component.subsets(expand_all_set_operators=True)]
    if component.is_indexed():
        return [(index, _members(each)) for index, each in component.items()]
    if not component.isdiscrete():
        return component.dimen
    if isinstance(component, pyo.RangeSet):
        return [str(each) for each in component.ranges()]
    return tuple(component.data()) if component.isfinite() else str(component)


def _named_expressions(roots: Iterable[Any]) -> Iterator[Any]:
    """The named Expressions in some trees, once each."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node is None or node.__class__ in native_types:
            continue
        if (block := block_of(node)) is not None:
            stack.append(block.tree)
        elif node.__class__ is ArrayLeaf:
            if not node.numbers:
                stack.extend(node.values.flat)
        elif node.__class__ is ArrayProduct:
            stack.extend(node.entries)
        elif node.is_expression_type():
            if node.is_named_expression_type():
                if id(node) in seen:
                    continue
                seen.add(id(node))
                yield node
            stack.extend(node.args)


# -- data ------------------------------------------------------------------------------------------


def _read_again(read: ModelReading) -> ModelReading | None:
    """A reading with the data of now; None where the model has to be read anew."""
    known, shared = Domains(read.bodies, same_body), read.shared_variables
    relations: list[Any] = []
    for constraint, (_, terms, _) in zip(read.constraints, read.relations, strict=True):
        lower, _, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        relations.append((lower, terms, upper))
    read.relations = relations
    read.domains = _same_domains(read.domains, [known.of(family) for family in read.families])
    read.bodies = known.bodies
    for number, data in enumerate(read.families):
        row, rows = read.readings[number], read.compiled[number]
        if isinstance(row, AffineTrace):
            again = _row_again(data, row, shared)
            if again is None:
                return None
            if again is not row:
                read.readings[number], read.compiled[number] = again, _affine_again(rows, again, read, shared)
        else:
            readers = read.readers[number]
            if not isinstance(rows, TracedRows) or readers is None:
                return None
            read.compiled[number] = readers.read_again(rows)
    return read


def _row_again(data: SemiInfiniteConstraintData, row: AffineTrace, shared: SharedVariables) -> AffineTrace | None:
    """A row that is affine in an uncertain vector with the numbers of now; None where it is not affine any more."""
    if data.affine is not None:
        again: AffineTrace | None = data.affine.unfixed(shared)
    elif row.again is not None:
        again = row.again()
    else:
        again = data.parent_component().read_affine(data.trace, noted=True)
    if again is None or len(again.variables) != len(row.variables):
        return None
    if (again.lower is None) != (row.lower is None):
        return None
    if again.variables is not row.variables:
        if not all(map(is_, again.variables, row.variables)):
            return None
        again = replace(again, variables=row.variables)
    return row if again is row or (again.same(row) and (again.upper is None) == (row.upper is None)) else again


def _affine_again(rows: Rows | None, again: AffineTrace, read: ModelReading, shared: SharedVariables) -> AffineRows:
    """The rows of a trace, with the columns of the last time, which other rows share."""
    made = affine_rows(again, read.columns.of, shared)
    if isinstance(rows, AffineRows) and np.array_equal(rows.columns, made.columns):
        made.columns = rows.columns
        if np.array_equal(rows.matrix, made.matrix):
            # Only its limits are others: searches know it again by its matrix.
            made.matrix = rows.matrix
    return made


def _same_domains(before: list[Domain], now: list[Domain]) -> list[Domain]:
    """Domains of now, each as the object of the last time where it has not changed."""
    by_body: dict[int, bool] = {}

    def same(one: Domain, other: Domain) -> bool:
        if one.body is not None and other.body is not None:
            if id(other.body) not in by_body:
                by_body[id(other.body)] = same_body(one.body, other.body)
            return one.names == other.names and by_body[id(other.body)]
        return same_box(one, other)

    pairs = list(zip(before, now, strict=True))
    kept = [same(one, other) for one, other in pairs]
    # Families that share a set go on sharing it.
    return [one if unchanged else other for (one, other), unchanged in zip(pairs, kept, strict=True)]


def same_box(one: Domain, other: Domain) -> bool:
    """Whether two boxes are the same, with conditions that can be compared."""
    if one.names != other.names or one.body is not None or other.body is not None:
        return False
    arrays = [(one.lower, other.lower), (one.upper, other.upper), *zip(one.marks, other.marks, strict=True)]
    if not all(np.array_equal(first, second) for first, second in arrays):
        return False
    if one.inside is None or other.inside is None:
        return one.inside is other.inside
    first, second = one.region, other.region
    return (
        isinstance(first, FormulaRegion)
        and isinstance(second, FormulaRegion)
        and first.formula == second.formula
        and len(first.slots) == len(second.slots)
        and all(
            isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
            for a, b in zip(first.slots, second.slots, strict=True)
        )
    )


def same_body(one: Body, other: Body) -> bool:
    """Whether two sets are of one kind and have the same numbers; False where that cannot be told."""
    if one is other:
        return True
    if type(one) is not type(other) or not is_dataclass(one):
        return False
    return all(_same_numbers(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))


def _same_numbers(one: Any, other: Any) -> bool:
    if isinstance(one, Body):
        return isinstance(other, Body) and same_body(one, other)
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(_same_numbers, one, other))
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype != object and np.array_equal(one, other)
    return isinstance(one, float | int | str) and bool(one == other)
