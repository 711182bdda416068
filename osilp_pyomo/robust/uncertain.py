"""What of a model is uncertain: Params and fixed variables, in the order of the vectors of their sets."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyomo.common.collections import ComponentMap
from pyomo.common.numeric_types import native_types
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.param import Param
from pyomo.core.base.var import Var

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError, DeclarationError
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.model.linear import leaves
from osilp_pyomo.model.sets import body_of, is_uncertainty_set, labelled


@dataclass(frozen=True, eq=False)
class UncertainVector:
    """Members of Params, or fixed variables, that are the entries of a set's vectors."""

    members: tuple[Any, ...]
    over: Any

    @property
    def body(self) -> Body:
        """The convex set, or the scenarios, as it is now."""
        return body_of(self.over, f"robustify: the set of '{self.members[0].name}'")

    def nominal(self) -> FloatArray:
        """The values of the members; the centre of the set for those without."""
        found = np.array(self.body.centre, dtype=float)
        for place, member in enumerate(self.members):
            value = member(exception=False)
            found[place] = found[place] if value is None else float(value)
        return found

    def within(self, model: Any) -> UncertainVector:
        """The same of a clone of the model; entries of its vectors are called what they are in the model."""
        members = tuple(model.find_component(member) for member in self.members)
        return UncertainVector(members, labelled(self.over, [member.name for member in self.members]))


def read_uncertain(model: Any, given: Any) -> tuple[UncertainVector, ...]:
    """Pairs of Params and sets as vectors; each member in one of them, and as many as its set has entries."""
    pairs = list(_pairs(given))
    if not pairs:
        raise DeclarationError(
            "robustify: uncertain= names nothing; give pairs of a Param (or several, in the order of the vector) and "
            "its uncertainty set, such as [(m.demand, BoxSet(...))]."
        )
    seen: dict[int, str] = {}
    vectors = []
    for key, over in pairs:
        members = tuple(_members(key))
        if not is_uncertainty_set(over):
            raise DeclarationError(
                f"robustify: '{_name(key)}' needs an uncertainty set of PyROS, or one of osilp.sets "
                f"(got {type(over).__name__})."
            )
        for member in members:
            if member.model() is not model.model():
                raise DeclarationError(f"robustify: '{member.name}' belongs to another model.")
            if id(member) in seen:
                raise DeclarationError(f"robustify: '{member.name}' is named twice; it can lie in one set only.")
            seen[id(member)] = member.name
        if over.dim != len(members):
            raise DeclarationError(
                f"robustify: the set of '{_name(key)}' has vectors of {over.dim} entries, for {len(members)} "
                f"({', '.join(member.name for member in members[:4])}{', ...' if len(members) > 4 else ''}); give as "
                "many as the set has, in its order."
            )
        vectors.append(UncertainVector(members, over))
    return tuple(vectors)


def _pairs(given: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(given, Mapping | ComponentMap):
        return given.items()
    pairs = list(given)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DeclarationError(
                "robustify: uncertain= takes pairs of a Param (or several, in the order of the vector) and its "
                f"uncertainty set, such as [(m.demand, BoxSet(...))] (got {type(pair).__name__})."
            )
    return pairs


def _name(key: Any) -> str:
    if isinstance(key, tuple | list):
        return ", ".join(map(_name, key)) if len(key) <= 3 else f"{_name(key[0])}, ..."
    return str(getattr(key, "name", key))


def _members(key: Any) -> Iterable[Any]:
    """The members of Params and fixed variables, one by one."""
    if isinstance(key, tuple | list):
        for each in key:
            yield from _members(each)
        return
    if key.__class__ in native_types:
        raise DeclarationError(
            f"robustify: uncertain= holds the number {key!r}: a member of a Param that is not mutable is a plain "
            "number in every expression. Declare the Param with mutable=True."
        )
    kind = getattr(key, "ctype", None)
    if kind is Param:
        owner = key.parent_component()
        if not owner.mutable:
            raise DeclarationError(
                f"robustify: the Param '{owner.name}' is not mutable, so that expressions hold its numbers and nobody "
                "can tell where; declare it with mutable=True."
            )
    elif kind is not Var:
        raise DeclarationError(
            f"robustify: '{_name(key)}' is a {type(key).__name__}; uncertain are Params with mutable=True, or fixed "
            "Vars."
        )
    found = (
        [key[index] for index in key.index_set()] if isinstance(key, IndexedComponent) and key.is_indexed() else [key]
    )
    for each in found:
        if kind is Var and not each.fixed:
            raise DeclarationError(
                f"robustify: the Var '{each.name}' is free; only a fixed one can stand for uncertain data."
            )
        yield each


def refuse_missing_values(vectors: Iterable[UncertainVector]) -> None:
    """Refuse uncertain data without a nominal value, where that is needed."""
    for vector in vectors:
        for member in vector.members:
            if member(exception=False) is None:
                raise DataError(
                    f"robustify: '{member.name}' has no value, and objective='nominal' needs one; give it one."
                )


def members_held(expression: Any, wanted: Container[int]) -> Iterator[Any]:
    """Which of some leaves, by their ids, an expression holds."""
    for leaf in leaves(expression):
        if id(leaf) in wanted:
            yield leaf
