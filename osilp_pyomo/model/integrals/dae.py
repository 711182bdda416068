"""Integrals of pyomo.dae over sets that were never discretized, as integrals of the same rule over the whole set.

Pyomo builds such an Integral as a trapezoid over the few points that its set holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyomo.environ as pyo
from pyomo.common.numeric_types import native_types
from pyomo.core.base.constraint import Constraint
from pyomo.core.expr import numeric_expr as numeric
from pyomo.dae import Integral

from osilp_pyomo.errors import ModelError
from osilp_pyomo.model.arrays.blocks import block_of
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.integrals.terms import integral


def undiscretized_integrals(model: Any) -> list[Any]:
    """Integrals over sets without a discretization that an active objective or row holds."""
    found = [
        each
        for each in model.component_objects(Integral, active=True, descend_into=True)
        if "scheme" not in each.get_continuousset().get_discretization_info()
    ]
    if not found:
        return []
    used = {id(node.parent_component()) for row in _rows(model) for node in _integrals_of(row)}
    return [each for each in found if id(each) in used]


def _rows(model: Any) -> Iterator[Any]:
    for objective in model.component_data_objects(pyo.Objective, active=True, descend_into=True):
        yield objective.expr
    for constraint in model.component_data_objects(Constraint, active=True, descend_into=True):
        yield constraint.trace if isinstance(constraint, SemiInfiniteConstraintData) else constraint.expr


def _integrals_of(expression: Any) -> Iterator[Any]:
    """The Integrals that an expression holds."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if node is None or node.__class__ in native_types or not node.is_expression_type():
            continue
        if _is_integral(node):
            yield node
        elif block_of(node) is None:
            stack.extend(node.args)


def _is_integral(node: Any) -> bool:
    return getattr(node, "is_named_expression_type", bool)() and isinstance(node.parent_component(), Integral)


class ExactIntegrals:
    """A model's Integrals that are not discretized, each as the integral of its rule."""

    def __init__(self, model: Any) -> None:
        self._found = {id(each) for each in undiscretized_integrals(model)}
        self._known: dict[int, Any] = {}
        #: Whether there are any.
        self.found = bool(self._found)
        if self._found:
            self._refuse_within_families(model)

    def _refuse_within_families(self, model: Any) -> None:
        for constraint in model.component_data_objects(Constraint, active=True, descend_into=True):
            if isinstance(constraint, SemiInfiniteConstraintData) and constraint.trace is not None:
                for node in _integrals_of(constraint.trace):
                    if id(node.parent_component()) in self._found:
                        name = node.parent_component().get_continuousset().name
                        raise ModelError(
                            f"SemiInfiniteConstraint '{constraint.name}': it holds the Integral '{node.name}' over "
                            f"'{name}', which is not discretized; within a rule write osilp.integral(m.{name}, ...)."
                        )

    def within(self, expression: Any) -> Any:
        """An expression with exact integrals in place of trapezoids."""
        return self._replaced(expression) if self._found else expression

    def _replaced(self, node: Any) -> Any:
        if node.__class__ in native_types or not node.is_expression_type() or block_of(node) is not None:
            return node
        if _is_integral(node) and id(node.parent_component()) in self._found:
            if id(node) not in self._known:
                self._known[id(node)] = exact_integral(node)
            return self._known[id(node)]
        parts = [self._replaced(part) for part in node.args]
        if all(new is old for new, old in zip(parts, node.args, strict=True)):
            return node
        if node.is_named_expression_type():
            return parts[0]
        return node.create_node_with_local_data(parts if isinstance(node, numeric.SumExpression) else tuple(parts))


def exact_integral(data: Any) -> Any:
    """The integral of an Integral's rule over its whole set."""
    owner = data.parent_component()
    # Pyomo wraps the rule, and keeps it beside the wrapping.
    wrapped = getattr(owner._rule, "_fcn", None)
    rule = getattr(wrapped, "__globals__", {}).get("rule")
    if not callable(rule):
        raise ModelError(
            f"Integral '{owner.name}': its rule cannot be read, and its set '{owner.get_continuousset().name}' is not "
            "discretized; write osilp.integral(set, rule)."
        )
    index = data.index()
    members = () if not owner.is_indexed() else index if isinstance(index, tuple) else (index,)
    before, after = members[: owner.loc], members[owner.loc :]
    return integral(owner.get_continuousset(), lambda u: rule(owner.parent_block(), *before, u, *after))


def write_exact_integrals(model: Any) -> None:
    """Give a model's Integrals that are not discretized the integral of their rule, for solvers of Pyomo."""
    for each in undiscretized_integrals(model):
        for data in each.values():
            data.set_value(exact_integral(data))
