"""What of a model would silently stay nominal: numbers that were computed from uncertain data when it was built.

A Param that is computed from an uncertain one, a Param that is not mutable, and a rule that reads ``value(...)``, hold
numbers, and no expression tells where they come from. They are found by other values: each rule of the model is called
again while the uncertain data have another value of their set, and what it gives is compared with what the model holds.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.log import LoggingIntercept
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.constraint import Constraint, ScalarConstraint
from pyomo.core.base.initializer import ConstantInitializer
from pyomo.core.expr.relational_expr import RelationalExpression, TrivialRelationalExpression

from osilp_pyomo.errors import ModelError
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.same_row import Side, StandIns, same_expression, same_row
from osilp_pyomo.robust.uncertain import UncertainVector

# Values of the uncertain data that are tried, and rows of a component that are called again at each, at most.
_TRIED, _MOST_ROWS = 4, 2000


def refuse_silently_nominal(model: Any, vectors: Sequence[UncertainVector]) -> None:
    """Refuse a model in which something was computed from uncertain data, and would not follow them.

    Raises
    ------
    ModelError
        Names the component, and what to write instead.
    """
    nominal = [vector.nominal() for vector in vectors]
    before = _rule_results(model)
    for values in _tried_values(vectors):
        with held_at(vectors, values):
            for component, index, of_rule in _results_again(model, before):
                if not _same(before[id(component), index], of_rule):
                    _refuse(component, index, vectors, nominal, values)


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


def _tried_values(vectors: Sequence[UncertainVector]) -> Iterator[list[Any]]:
    """Some values of all vectors: corners and inner points."""
    clouds = [vector.body.cloud(4 * _TRIED, seed=20260) for vector in vectors]
    for place in range(_TRIED):
        yield [cloud[(place * max(1, len(cloud) // _TRIED)) % len(cloud)] for cloud in clouds]


def _components(model: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Components with a rule, the rule, and their index."""
    kinds = (pyo.Param, pyo.Expression, pyo.Objective, Constraint, pyo.Var)
    for component in model.component_objects(kinds, active=None, descend_into=True):
        rule = getattr(component, "rule", None) or getattr(component, "_rule", None)
        if component.ctype is pyo.Var:
            rule = component._rule_bounds
        if rule is None or isinstance(rule, ConstantInitializer) or isinstance(component, SemiInfiniteConstraint):
            continue
        for number, index in enumerate(component.index_set()):
            if number >= _MOST_ROWS:
                break
            yield component, rule, index


def _called(component: Any, rule: Any, index: Any) -> Any:
    """What a rule gives; an error is an answer too."""
    with LoggingIntercept(io.StringIO(), "pyomo"):
        try:
            return _normal(component, rule(component.parent_block(), index))
        except Exception as error:  # the user's code
            return type(error)


def _normal(component: Any, found: Any) -> Any:
    """An answer as what a component makes of it."""
    if isinstance(component, Constraint):
        if any(found is each for each in (None, Constraint.Skip, Constraint.Feasible)):
            return None
        row = ScalarConstraint(expr=found)
        row.construct()
        return row.expr if len(row) else None
    if component.ctype is pyo.Param:
        return pyo.value(found)
    return found


def _rule_results(model: Any) -> dict[tuple[int, Any], Any]:
    """What the rules give now; of a rule that gives another answer when it is called twice nothing."""
    found = {}
    for component, rule, index in _components(model):
        one, other = (_called(component, rule, index) for _ in range(2))
        if _same(one, other) and not isinstance(one, type) and _same(one, _held(component, index, one)):
            found[id(component), index] = one
    return found


def _held(component: Any, index: Any, rule_result: Any) -> Any:
    """What the model holds there, where that can have been set by hand; else what the rule gave."""
    if component.ctype is pyo.Param:
        try:
            held = component[index]
        except (KeyError, ValueError):
            return rule_result
        return pyo.value(held, exception=False)
    if isinstance(component, Constraint):
        row = component[index].expr if index in component else None
        return None if isinstance(row, TrivialRelationalExpression) else row
    return rule_result


def _results_again(model: Any, before: dict[tuple[int, Any], Any]) -> Iterator[tuple[Any, Any, Any]]:
    for component, rule, index in _components(model):
        if (id(component), index) in before:
            yield component, index, _called(component, rule, index)


def _same(one: Any, other: Any) -> bool:
    """Whether two answers of a rule say the same, whatever the values of variables and Params."""
    if one is None or other is None or isinstance(one, type) or isinstance(other, type):
        return one is other
    if isinstance(one, tuple):
        return isinstance(other, tuple) and all(map(_same, one, other))
    if one.__class__ in native_numeric_types and other.__class__ in native_numeric_types:
        return bool(np.isclose(one, other, rtol=1e-12, atol=0, equal_nan=True))
    if isinstance(one, str | bool) or isinstance(other, str | bool):
        return bool(one == other)
    numbers = StandIns((), np.empty(0))
    try:
        if isinstance(one, RelationalExpression) and isinstance(other, RelationalExpression):
            return type(one) is type(other) and same_row([Side.of(side) for side in one.args], other, numbers)
        return same_expression(one, other, numbers)
    except (ArithmeticError, ValueError, TypeError, AttributeError):
        return True


def _refuse(
    component: Any, index: Any, vectors: Sequence[UncertainVector], nominal: Sequence[Any], values: Sequence[Any]
) -> None:
    moved = [
        f"{member.name} = {value:g} in place of {held:g}"
        for vector, at, own in zip(vectors, values, nominal, strict=True)
        for member, value, held in zip(vector.members, at, own, strict=True)
        if value != held
    ]
    name = component.name if index is None else f"{component.name}[{index}]"
    where = f"{', '.join(moved[:3])}{', ...' if len(moved) > 3 else ''}"
    if component.ctype is pyo.Param:
        raise ModelError(
            f"robustify: the Param '{name}' was computed from uncertain data (its rule gives another number with "
            f"{where}), and its number would stay nominal; make it an Expression of them, which follows."
        )
    kind = component.ctype.__name__
    what = "bounds" if component.ctype is pyo.Var else "rule"
    raise ModelError(
        f"robustify: the {what} of the {kind} '{name}' read{'s' * (what == 'rule')} the value of uncertain data "
        f"(called again with {where} it gives something else), which would stay nominal; write it with the Param "
        "itself, not with value(...) or a condition of Python."
    )
