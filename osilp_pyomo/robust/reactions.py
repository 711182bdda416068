"""Variables that react to what is seen: each becomes a decision rule, a FunctionVar under its own name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo
from pyomo.common.modeling import unique_component_name
from pyomo.common.numeric_types import native_numeric_types

from osilp_pyomo.errors import DeclarationError
from osilp_pyomo.model.functions.component import FunctionVar
from osilp_pyomo.robust.uncertain import UncertainVector, members_held


@dataclass(frozen=True, eq=False)
class Reaction:
    """Members of one Var that react, and the FunctionVar that stands for them.

    ``sets`` are those that it sees, and ``original`` is the Var of the given model.

    ``bounds`` are limits that are no numbers, by side and member: they become rows.
    """

    variables: dict[Any, Any]
    function: FunctionVar
    sets: tuple[int, ...]
    bounds: dict[str, dict[Any, Any]]
    original: Any

    def member(self, index: Any) -> Any:
        """The function of one member."""
        return self.function.function if index is None else self.function[index]


def read_adjustable(given: Any, adjustable: Any) -> list[tuple[Any, dict[Any, Any]]]:
    """Vars with their members that react, each with what it sees: a list of data, or None for all."""
    pairs = adjustable.items() if isinstance(adjustable, Mapping) or hasattr(adjustable, "items") else adjustable
    if hasattr(pairs, "ctype"):
        pairs = [pairs]
    found: dict[int, tuple[Any, dict[Any, Any]]] = {}
    for pair in pairs:
        key, sees = pair if isinstance(pair, tuple) else (pair, None)
        for member in _members(key):
            owner = member.parent_component()
            if member.model() is not given.model():
                raise DeclarationError(f"robustify: '{member.name}' belongs to another model.")
            _, members = found.setdefault(id(owner), (owner, {}))
            index = member.index() if owner.is_indexed() else None
            if index in members:
                raise DeclarationError(f"robustify: '{member.name}' is named twice among those that react.")
            members[index] = _seen(given, member, index, sees)
    return list(found.values())


def _members(key: Any) -> Iterable[Any]:
    if isinstance(key, list):
        for each in key:
            yield from _members(each)
        return
    if getattr(key, "ctype", None) is not pyo.Var:
        raise DeclarationError(
            f"robustify: adjustable= takes Vars, or pairs of a Var and what it sees (got {type(key).__name__})."
        )
    for each in key.values() if key.is_indexed() else (key,):
        if each.fixed:
            continue
        if not each.is_continuous():
            raise DeclarationError(
                f"robustify: the Var '{each.name}' has whole values, which no decision rule has; decide it before the "
                "data are seen, by leaving it out of adjustable=."
            )
        yield each


def _seen(given: Any, member: Any, index: Any, sees: Any) -> list[Any] | None:
    """The uncertain data that a member sees, as components of the given model."""
    if sees is None:
        return None
    if callable(sees) and not hasattr(sees, "ctype"):
        arguments = () if index is None else index if isinstance(index, tuple) else (index,)
        sees = sees(member.parent_block(), *arguments)
    found: list[Any] = []
    for each in sees if isinstance(sees, list | tuple | set) or not hasattr(sees, "ctype") else [sees]:
        if not hasattr(each, "ctype"):
            raise DeclarationError(
                f"robustify: '{member.name}' sees {each!r}; give members of the uncertain Params, such as m.demand[q], "
                "and no positions."
            )
        found += each.values() if each.is_indexed() else [each]
    return found


def react(
    owner: Any,
    members: Mapping[Any, list[Any] | None],
    model: Any,
    given_vectors: Sequence[UncertainVector],
    vectors: Sequence[UncertainVector],
    basis: str,
) -> Reaction | None:
    """Replace members of a Var of the clone by functions; None where none of them sees anything."""
    variable = model.find_component(owner)
    places = {id(member): (k, n) for k, vector in enumerate(given_vectors) for n, member in enumerate(vector.members)}
    entries = {index: _places(owner, index, sees, places, given_vectors) for index, sees in members.items()}
    sets = tuple(sorted({k for found in entries.values() for k, _ in found}))
    if not sets:
        return None
    starts, start = {}, 0
    for k in sets:
        starts[k], start = start, start + len(vectors[k].members)
    sees = {index: sorted(starts[k] + n for k, n in found) for index, found in entries.items()}
    variables = {index: variable if index is None else variable[index] for index in members}
    limits: dict[Any, tuple[Any, Any]] = {}
    rows: dict[str, dict[Any, Any]] = {"lower": {}, "upper": {}}
    for index, data in variables.items():
        limits[index] = _limits(data, index, rows)
    block, name = variable.parent_block(), variable.local_name
    free = [data for data in (variable.values() if variable.is_indexed() else [variable]) if not data.fixed]
    if len(free) == len(variables):
        # Expressions that nobody reads any more may still hold it, and are cloned with the model.
        block.del_component(variable)
        block.add_component(unique_component_name(block, f"{name}_deterministic"), variable)
    else:
        name = unique_component_name(block, f"{name}_rule")
    over = tuple(vectors[k].over for k in sets)
    unit = next(iter(variable.values())).get_units()
    if variable.is_indexed():
        index_set = pyo.Set(initialize=list(variables), ordered=True)
        index_set.construct()
        function = FunctionVar(index_set, over=over, basis=basis, sees=sees, bounds=_Limits(limits), units=unit)
    else:
        function = FunctionVar(over=over, basis=basis, sees=sees[None], bounds=limits[None], units=unit)
    block.add_component(name, function)
    return Reaction(variables, function, sets, rows, owner)


class _Limits:
    """Bounds of the members of a FunctionVar, as its rule."""

    def __init__(self, limits: Mapping[Any, tuple[Any, Any]]) -> None:
        self._limits = limits

    def __call__(self, block: Any, *index: Any) -> tuple[Any, Any]:
        return self._limits[index[0] if len(index) == 1 else index]


def _places(
    owner: Any, index: Any, sees: list[Any] | None, places: Mapping[int, tuple[int, int]], vectors: Sequence[Any]
) -> list[tuple[int, int]]:
    """Set and entry of each of the data that a member sees."""
    if sees is None:
        return list(places.values())
    for each in sees:
        if id(each) not in places:
            name = owner.name if index is None else owner[index].name
            raise DeclarationError(
                f"robustify: '{name}' sees '{each.name}', which is not among the uncertain data "
                f"({', '.join(member.name for vector in vectors for member in vector.members[:3])}, ...)."
            )
    return [places[id(each)] for each in sees]


def _limits(data: Any, index: Any, rows: dict[str, dict[Any, Any]]) -> tuple[float | None, float | None]:
    """The bounds of a variable that are numbers; others are added to the rows."""
    found: list[float | None] = []
    for side, limit, of_domain, choose in (
        ("lower", data._lb, data.domain.bounds()[0], max),
        ("upper", data._ub, data.domain.bounds()[1], min),
    ):
        number = of_domain
        if limit is not None and (limit.__class__ in native_numeric_types):
            number = limit if number is None else choose(limit, number)
        elif limit is not None:
            rows[side][index] = limit
        found.append(None if number is None else float(number))
    return found[0], found[1]


def reacting_members(expression: Any, reactions: Mapping[int, Reaction]) -> Iterable[tuple[Any, Reaction, Any]]:
    """The variables of an expression that react, each once, with its reaction and its index."""
    seen: set[int] = set()
    for variable in members_held(expression, reactions):
        if id(variable) not in seen:
            seen.add(id(variable))
            reaction = reactions[id(variable)]
            yield variable, reaction, next(i for i, each in reaction.variables.items() if each is variable)
