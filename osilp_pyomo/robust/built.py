"""What the rules of a model built, each as something that can be built again and compared."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import FunctionType
from typing import Any

import pyomo.environ as pyo
from pyomo.common.log import LoggingIntercept
from pyomo.common.numeric_types import native_types
from pyomo.core.base.block import Block, BlockData
from pyomo.core.base.constraint import Constraint, ConstraintList, ScalarConstraint
from pyomo.core.base.initializer import ConstantInitializer, DataFrameInitializer, ItemInitializer
from pyomo.core.base.objective import ObjectiveList
from pyomo.core.base.piecewise import Piecewise
from pyomo.core.base.set import Set, SetInitializer
from pyomo.core.expr.relational_expr import TrivialRelationalExpression
from pyomo.gdp import Disjunct

from osilp_pyomo.model.arrays.substitute import substituted
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint

_BLOCKS = (Block, Disjunct)
# Rows of a list without end that are compared.
_MOST_ROWS = 100_000
# "Built by hand": compared with nothing.
_UNKNOWN = object()


@dataclass(frozen=True, eq=False)
class Built:
    """One thing that a rule built.

    ``again`` builds it again, and ``held`` is what the model holds now, given what its rule gave; ``what`` the rule
    made: "rule", "bounds", ...
    """

    component: Any
    index: Any
    what: str
    again: Callable[[], Any]
    held: Callable[[Any], Any] = lambda found: found

    @property
    def name(self) -> str:
        """As the user calls it."""
        return str(self.component.name if self.index is None else f"{self.component.name}[{self.index}]")

    def called(self) -> Any:
        """What the rule gives; an error is an answer too."""
        with LoggingIntercept(io.StringIO(), "pyomo"):
            try:
                return self.again()
            except Exception as error:  # the user's code
                return type(error)


def everything_built(model: Any) -> Iterator[Built]:
    """All that rules of a model built; blocks behind what they hold."""
    blocks = []
    for component in model.component_objects(active=None, descend_into=_BLOCKS):
        if component.is_reference() or isinstance(component, SemiInfiniteConstraint):
            continue
        if component.ctype in _BLOCKS:
            blocks.append(component)
        else:
            yield from _of_component(component)
    for block in blocks:
        yield from _of_block(block, model)


def _of_component(component: Any) -> Iterator[Built]:
    if isinstance(component, ConstraintList | ObjectiveList):
        yield from _of_list(component)
    elif isinstance(component, Constraint):
        yield from _by_rule(component, component.rule, _as_row, _row_held)
    elif component.ctype is pyo.Param:
        yield from _by_rule(component, component._rule, pyo.value, _number_held)
        yield from _of_default(component)
    elif component.ctype is pyo.Var:
        yield from _by_rule(component, component._rule_bounds, what="bounds")
        yield from _by_rule(component, component._rule_domain, _as_domain, what="domain", arguments=(component,))
        yield from _by_rule(component, component._rule_init, pyo.value, _value_if_fixed, what="fixed value")
    elif component.ctype in (pyo.Expression, pyo.Objective):
        yield from _by_rule(component, getattr(component, "rule", None) or component._rule)
    elif isinstance(component, Set):
        yield from _of_set(component)
    elif getattr(component, "_init_data", None):
        # A RangeSet between data.
        ends = component._init_data[0]
        yield Built(component, None, "members", lambda: tuple(map(pyo.value, ends)))


def _by_rule(
    component: Any,
    rule: Any,
    normal: Callable[[Any], Any] = lambda found: found,
    held: Callable[[Any, Any, Any], Any] = lambda component, index, found: found,
    what: str = "rule",
    arguments: tuple[Any, ...] = (),
) -> Iterator[Built]:
    """The members of a component whose rule is called for each of them."""
    if rule is None or (component.ctype is not pyo.Param and isinstance(rule, ConstantInitializer)) or _plain(rule):
        return
    for index in component.index_set():
        yield Built(
            component,
            index,
            what,
            lambda index=index: normal(rule(component.parent_block(), index, *arguments)),  # type: ignore[misc]
            lambda found, index=index: held(component, index, found),  # type: ignore[misc]
        )


def _plain(rule: Any) -> bool:
    """Whether it gives numbers that stand in it, computed from nothing any more."""
    rule = rule._set if isinstance(rule, SetInitializer) else rule
    if isinstance(rule, ConstantInitializer):
        return rule.val.__class__ in native_types
    if isinstance(rule, ItemInitializer):
        return all(each.__class__ in native_types for each in rule._dict.values())
    return rule is None or isinstance(rule, DataFrameInitializer)


def _as_row(found: Any) -> Any:
    """An answer as what a Constraint makes of it."""
    if any(found is each for each in (None, Constraint.Skip, Constraint.Feasible)):
        return None
    row = ScalarConstraint(expr=found)
    row.construct()
    return row.expr if len(row) else None


def _row_held(component: Any, index: Any, _: Any) -> Any:
    row = component[index].expr if index in component else None
    return None if isinstance(row, TrivialRelationalExpression) else row


def _number_held(component: Any, index: Any, found: Any) -> Any:
    try:
        return pyo.value(component[index], exception=False)
    except (KeyError, ValueError):
        return found


def _as_domain(found: Any) -> Any:
    return (*found.bounds(), bool(found.isdiscrete()))


def _value_if_fixed(component: Any, index: Any, _: Any) -> Any:
    """The value of a fixed variable; of others it decides nothing."""
    return component[index].value if index in component and component[index].fixed else _UNKNOWN


def _of_default(component: Any) -> Iterator[Built]:
    """The members of a Param that have the number of its default rule."""
    default = component._default_val
    if not isinstance(default, FunctionType) or not component.index_set().isfinite():
        return
    for index in component.index_set():
        members = () if not component.is_indexed() else index if isinstance(index, tuple) else (index,)
        yield Built(
            component,
            index,
            "rule",
            lambda members=members: pyo.value(default(component.parent_block(), *members)),  # type: ignore[misc]
            lambda found, index=index: _number_held(component, index, found),  # type: ignore[misc]
        )


def _of_list(component: Any) -> Iterator[Built]:
    """A list of rows from one rule, whatever was added to it later."""
    if component._rule is None:
        return

    def again() -> tuple[Any, ...]:
        found = []
        for row in islice(component._rule(component.parent_block(), ()), _MOST_ROWS):
            if row is type(component).End:
                break
            found.append(_as_row(row) if isinstance(component, Constraint) else row)
        return tuple(found)

    yield Built(component, None, "rule", again)


def _of_set(component: Any) -> Iterator[Built]:
    values, chosen = component._init_values, component._filter
    if values is None or (isinstance(values._init, ConstantInitializer) and chosen is None):
        return
    for index, data in component.items():

        def again(index: Any = index, data: Any = data) -> tuple[Any, ...]:
            found = values(component.parent_block(), index)
            return tuple(found if chosen is None else data._cb_validate_filter("filter", iter(found)))

        yield Built(component, index, "members", again)


# -- blocks -------------------------------------------------------------------------------------------


def _of_block(component: Any, model: Any) -> Iterator[Built]:
    """The members of a Block whose rule fills them; those of a block that a rule filled are its own affair."""
    if isinstance(component, Piecewise):
        yield from _of_pieces(component)
    elif component._rule is not None and not _within_rule(component, model):
        for index, data in component.items():
            yield Built(
                component,
                index,
                "rule",
                lambda index=index, data=data: _contents(component, index, data),  # type: ignore[misc]
            )


def _within_rule(component: Any, model: Any) -> bool:
    """Whether a block that it lies in is filled by a rule."""
    around = component.parent_block()
    while around is not None and around is not model:
        if around.parent_component()._rule is not None:
            return True
        around = around.parent_block()
    return False


def _of_pieces(component: Any) -> Iterator[Built]:
    rule = component._f_rule
    if not isinstance(rule, FunctionType):
        return
    for index, points in component._domain_points.items():
        members = () if not component.is_indexed() else index if isinstance(index, tuple) else (index,)
        yield Built(
            component,
            index,
            "rule",
            lambda members=members, points=points: tuple(  # type: ignore[misc]
                pyo.value(rule(component.parent_block(), *members, point)) for point in points
            ),
        )


def _contents(component: Any, index: Any, data: Any) -> dict[Any, Any]:
    """What the rule of a Block puts into a new one, in the terms of the one that the model holds."""
    scratch = BlockData(component)
    scratch._index = index
    scratch._constructed = True
    with _undone(data.model()):
        found = component._rule(scratch, index)
        filled = found if isinstance(found, BlockData) else scratch
        same = {id(new): old for new, old in _paired(filled, data)}
        return dict(_facts(filled, (), lambda leaf: same.get(id(leaf), leaf)))


@contextmanager
def _undone(model: Any) -> Iterator[None]:
    """What a rule adds elsewhere in the model, to a list for example, is taken away again."""
    before = [(block, set(block.component_map())) for block in model.block_data_objects(descend_into=_BLOCKS)]
    indexed = model.component_objects((Constraint, pyo.Objective, pyo.Var, pyo.Expression, Set), descend_into=_BLOCKS)
    sizes = [(each, len(each)) for each in indexed if each.is_indexed() or isinstance(each, Set)]
    try:
        yield
    finally:
        for block, names in before:
            for name in set(block.component_map()) - names:
                block.del_component(name)
        for each, size in sizes:
            for added in list(each)[size:]:
                if isinstance(each, Set) and not each.is_indexed():
                    each.remove(added)
                else:
                    del each[added]


def _paired(new: Any, old: Any) -> Iterator[tuple[Any, Any]]:
    """The members of a block beside those of another one of the same names."""
    for name, component in new.component_map().items():
        other = old.component(name)
        if other is None:
            continue
        yield component, other
        for index in component if component.is_indexed() else ():
            if index in other:
                yield component[index], other[index]
        if component.ctype in _BLOCKS:
            for index, data in component.items():
                if index in other:
                    yield from _paired(data, other[index])


def _facts(block: Any, path: tuple[Any, ...], replace: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
    """What the components of a block say, by name and index."""
    for name, component in block.component_map().items():
        if component.ctype in _BLOCKS:
            for index, data in component.items():
                yield from _facts(data, (*path, name, index), replace)
        elif isinstance(component, Set):
            for index, data in component.items():
                yield (*path, name, index), tuple(data) if data.isfinite() else _as_domain(data)
        elif component.ctype in (pyo.Constraint, pyo.Objective, pyo.Expression) and not isinstance(
            component, SemiInfiniteConstraint
        ):
            for index, data in component.items():
                yield (*path, name, index), substituted(data.expr, replace)
        elif component.ctype is pyo.Param:
            for index in component.sparse_keys():
                yield (*path, name, index), pyo.value(component[index], exception=False)
        elif component.ctype is pyo.Var:
            for index, data in component.items():
                bounds = tuple(substituted(each, replace) for each in (data._lb, data._ub))
                yield (*path, name, index), (*bounds, _as_domain(data.domain), data.value if data.fixed else None)
