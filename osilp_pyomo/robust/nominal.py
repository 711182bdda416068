"""What of a model would silently stay nominal: numbers that were computed from uncertain data when it was built.

A Param that is computed from an uncertain one, a Param that is not mutable, and a rule that reads ``value(...)``, hold
numbers, and no expression tells where they come from. They are found by other values: each rule of the model is called
again, and where it reads uncertain data as numbers, once more while these have another value of their set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr.relational_expr import RelationalExpression

from osilp_pyomo.errors import ModelError
from osilp_pyomo.model.same_row import Side, StandIns, same_expression, same_row
from osilp_pyomo.robust.built import Built, everything_built
from osilp_pyomo.robust.uncertain import UncertainVector, members_held
from osilp_pyomo.robust.watched import watched

# Values of the uncertain data that are always tried; values that are tried where few rules read some, and calls of
# rules for them, at most.
_TRIED, _MOST_VALUES, _MOST_CALLS = 4, 64, 20_000


def refuse_silently_nominal(model: Any, vectors: Sequence[UncertainVector]) -> None:
    """Refuse a model in which something was computed from uncertain data, and would not follow them.

    Raises
    ------
    ModelError
        Names the component, and what to write instead.
    """
    _refuse_params_of_data(model, vectors)
    nominal = [vector.nominal() for vector in vectors]
    suspects, read = _suspects(model, vectors)
    if not suspects:
        return
    for number, values in enumerate(_tried_values(vectors, read)):
        if number >= _TRIED and number * len(suspects) > _MOST_CALLS:
            break
        with held_at(vectors, values):
            for built, before in suspects:
                if not _same(before, built.called()):
                    _refuse(built, vectors, nominal, values)


def _suspects(model: Any, vectors: Sequence[UncertainVector]) -> tuple[list[tuple[Built, Any]], set[int]]:
    """What was built by reading uncertain data, with what it is now, and the ids of the data.

    A rule that gives another answer when it is called twice tells nothing, nor does what was changed since.
    """
    found, everything = [], set()
    with watched(member for vector in vectors for member in vector.members) as read:
        for built in everything_built(model):
            read.clear()
            one = built.called()
            if not read or isinstance(one, type):
                continue
            seen = set(read)
            if _same(one, built.called()) and _same(one, built.held(one)):
                found.append((built, one))
                everything |= seen
    return found, everything


def _refuse_params_of_data(model: Any, vectors: Sequence[UncertainVector]) -> None:
    """Refuse Params that hold an expression of uncertain data in place of a number: rows see the Param only."""
    wanted = {id(member) for vector in vectors for member in vector.members}
    for param in model.component_data_objects(pyo.Param, descend_into=True):
        held = getattr(param, "_value", None)
        if id(param) in wanted or held.__class__ in native_types or not hasattr(held, "is_expression_type"):
            continue
        for member in members_held(held, wanted):
            raise ModelError(
                f"robustify: the Param '{param.name}' holds the uncertain '{member.name}', and would stay nominal; "
                "make it an Expression, which follows."
            )


@contextmanager
def held_at(vectors: Sequence[UncertainVector], values: Sequence[Any]) -> Iterator[None]:
    """The uncertain data at some values, for a moment."""
    members = [member for vector in vectors for member in vector.members]
    kept = [member(exception=False) for member in members]
    try:
        for member, value in zip(members, [float(v) for each in values for v in each], strict=True):
            _give(member, value)
        yield
    finally:
        for member, value in zip(members, kept, strict=True):
            _give(member, value)


def _give(member: Any, value: float | None) -> None:
    if member.ctype is pyo.Var:
        member.set_value(value, skip_validation=True)
    elif value is None:
        member.clear()
    else:
        # Its domain was checked for the nominal value; the set may hold others, which is the user's concern.
        member._value = value


def _tried_values(vectors: Sequence[UncertainVector], read: set[int]) -> Iterator[list[Any]]:
    """Some values of all vectors: corners and inner points, then those at which one that is read is farthest."""
    clouds = [vector.body.cloud(4 * _TRIED, seed=20260) for vector in vectors]
    for place in range(_TRIED):
        yield [cloud[(place * max(1, len(cloud) // _TRIED)) % len(cloud)] for cloud in clouds]
    centres = [vector.nominal() for vector in vectors]
    for number, vector in enumerate(vectors):
        axes = [axis for axis, member in enumerate(vector.members) if id(member) in read][: _MOST_VALUES // 2]
        directions = np.eye(len(vector.members))[axes]
        ends = vector.body.support(np.concatenate([directions, -directions])) if axes else ()
        for point in (*ends, *clouds[number]):
            yield [*centres[:number], point, *centres[number + 1 :]]


def _same(one: Any, other: Any) -> bool:
    """Whether two answers of a rule say the same, whatever the values of variables and Params."""
    if one is None or other is None or isinstance(one, type) or isinstance(other, type):
        return one is other
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(_same, one, other))
    if one.__class__ in native_numeric_types and other.__class__ in native_numeric_types:
        return bool(np.isclose(one, other, rtol=1e-12, atol=0, equal_nan=True))
    if isinstance(one, str | bool) or isinstance(other, str | bool):
        return bool(one == other)
    rows = [isinstance(each, RelationalExpression) for each in (one, other)]
    if not all(each.__class__ in native_numeric_types or hasattr(each, "is_expression_type") for each in (one, other)):
        return bool(one == other)
    numbers = StandIns((), np.empty(0))
    try:
        if any(rows):
            return type(one) is type(other) and same_row([Side.of(side) for side in one.args], other, numbers)
        return same_expression(one, other, numbers)
    except (ArithmeticError, ValueError, TypeError, AttributeError):
        # Neither has a value there.
        return True


def _refuse(built: Built, vectors: Sequence[UncertainVector], nominal: Sequence[Any], values: Sequence[Any]) -> None:
    moved = [
        f"{member.name} = {value:g} in place of {held:g}"
        for vector, at, own in zip(vectors, values, nominal, strict=True)
        for member, value, held in zip(vector.members, at, own, strict=True)
        if value != held
    ]
    where = f"{', '.join(moved[:3])}{', ...' if len(moved) > 3 else ''}"
    kind, what = built.component.ctype.__name__, built.what
    if built.component.ctype is pyo.Param:
        raise ModelError(
            f"robustify: the Param '{built.name}' was computed from uncertain data (its rule gives another number with "
            f"{where}), and its number would stay nominal; make it an Expression of them, which follows."
        )
    if what in ("members", "domain", "fixed value"):
        raise ModelError(
            f"robustify: the {what} of the {kind} '{built.name}' w{'ere' if what == 'members' else 'as'} computed from "
            f"uncertain data (another answer with {where}), and would stay nominal; compute it from data that are "
            "certain, or write a row that holds the uncertain Param itself."
        )
    raise ModelError(
        f"robustify: the {what} of the {kind} '{built.name}' read{'s' * (what == 'rule')} the value of uncertain data "
        f"(called again with {where} it gives something else), which would stay nominal; write it with the Param "
        "itself, not with value(...) or a condition of Python."
    )
