"""Terms that share one tree, as one light node of a Pyomo expression.

The node is a genuine LinearExpression of Pyomo (walkers look for that very class) whose list of arguments is made when
somebody reads it: writers, solvers and transformations of Pyomo see ordinary terms, and this package reads arrays. It
stands alone inside a sum, because adding to a LinearExpression itself would copy its terms one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_types
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo.model.arrays.trees import ArrayLeaf, all_leaves, rebuild, take_entries


@dataclass(frozen=True, eq=False)
class TermBlock:
    """Terms ``coefficient * variable`` whose coefficients are the entries of one tree.

    ``label`` is what they are printed as, where that says more than the tree: a function at a point; ``orders`` is its
    derivative along each coordinate.
    """

    tree: Any
    variables: tuple[Any, ...]
    label: str = ""
    orders: tuple[int, ...] = ()

    def coefficient(self, place: int) -> Any:
        """The coefficient of one variable, as an expression or a number."""
        return take_entries(self.tree, place, (len(self.variables),))

    def take(self, places: NDArray[np.int64]) -> TermBlock:
        """Some of the terms."""
        tree = take_entries(self.tree, places, (len(self.variables),))
        return TermBlock(tree, tuple(self.variables[k] for k in places.tolist()))

    def leaves(self) -> Iterator[Any]:
        """Variables, Params and Profiles of the terms, and the placeholders of the index."""
        yield from self.variables
        yield from all_leaves(self.tree)

    def text(self) -> str:
        """The terms in short."""
        if self.label:
            return self.label
        owners = {id(each.parent_component()): each.parent_component().name for each in self.variables}
        whole = len(owners) == 1 and self.variables[0].parent_component().is_indexed()
        shown = next(iter(owners.values())) if whole else f"[{self.variables[0].name}, ...]"
        if len(self.variables) == 1:
            shown = f"[{self.variables[0].name}]"
        return f"dot({self.tree}, {shown})"


class DotTerms:
    """The arguments of a light node: terms that are made when they are asked for.

    Pyomo asks its ``_args_`` for their number, slices, iteration, ``append`` and ``extend`` only; what is appended
    stands behind the terms, as in a list.
    """

    __slots__ = ("_made", "appended", "block")

    def __init__(self, block: TermBlock) -> None:
        self.block = block
        self.appended: list[Any] = []
        self._made: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.block.variables) + len(self.appended)

    def _terms(self) -> list[Any]:
        """The terms one by one. They are kept: some of Pyomo's walkers know a node again by its identity."""
        if self._made is None:
            tree, variables = self.block.tree, self.block.variables
            if tree.__class__ in native_types:
                coefficients: Iterable[Any] = [tree] * len(variables)
            elif tree.__class__ is ArrayLeaf and tree.numbers:
                coefficients = np.broadcast_to(tree.values, (len(variables),)).tolist()
            else:
                coefficients = (self.block.coefficient(k) for k in range(len(variables)))
            self._made = list(map(numeric.MonomialTermExpression, zip(coefficients, variables, strict=True)))
        return self._made

    def __iter__(self) -> Iterator[Any]:
        return iter([*self._terms(), *self.appended])

    def __getitem__(self, key: Any) -> Any:
        return [*self._terms(), *self.appended][key]

    def append(self, item: Any) -> None:
        self.appended.append(item)

    def extend(self, items: Iterable[Any]) -> None:
        self.appended.extend(items)

    def __deepcopy__(self, memo: dict[int, Any]) -> DotTerms:
        variables = tuple(deepcopy(variable, memo) for variable in self.block.variables)
        copied = DotTerms(replace(self.block, tree=deepcopy(self.block.tree, memo), variables=variables))
        copied.appended = deepcopy(self.appended, memo)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (
            self.block.tree, self.block.variables, self.appended, self.block.label, self.block.orders,
        )  # fmt: skip


def _restored(
    tree: Any, variables: tuple[Any, ...], appended: list[Any], label: str = "", orders: tuple[int, ...] = ()
) -> DotTerms:
    terms = DotTerms(TermBlock(tree, variables, label, orders))
    terms.appended = appended
    return terms


def block_of(node: Any) -> TermBlock | None:
    """The terms of a light node; None where a node is another one."""
    if node.__class__ is numeric.LinearExpression and node._args_.__class__ is DotTerms:
        terms: DotTerms = node._args_
        if node._nargs == len(terms.block.variables):
            return terms.block
    return None


def light_node(block: TermBlock) -> Any:
    """Terms as a node of Pyomo that holds them unexpanded."""
    node = numeric.LinearExpression.__new__(numeric.LinearExpression)
    node._args_ = DotTerms(block)
    node._nargs = len(block.variables)
    return node


def rebuild_relation(node: Any, replace: Any) -> Any:
    """An expression with its leaves replaced, light nodes kept light."""
    block = block_of(node)
    if block is not None:
        tree, variables = rebuild(block.tree, replace), tuple(map(replace, block.variables))
        return light_node(TermBlock(tree, variables, block.label, block.orders))
    if node.__class__ in native_types:
        return node
    if not node.is_expression_type():
        return replace(node)
    parts = [rebuild_relation(part, replace) for part in node.args]
    return node.create_node_with_local_data(parts if isinstance(node, numeric.SumExpression) else tuple(parts))


def light_nodes(node: Any) -> list[Any]:
    """The light nodes of an expression, from left to right."""
    found, stack = [], [node]
    while stack:
        each = stack.pop()
        if block_of(each) is not None:
            found.append(each)
        elif each.__class__ not in native_types and each.is_expression_type():
            stack.extend(reversed(each.args))
    return found


def with_arrays_of(fresh: Any, declared: Any) -> Any:
    """An expression that a rule gave anew, with the arrays of its dots as they were when it was declared.

    The same expression where its dots are not those that were declared.
    """
    new, old = light_nodes(fresh), light_nodes(declared)
    same = len(new) == len(old) and all(
        [*map(id, block_of(one).variables)] == [*map(id, block_of(other).variables)]  # type: ignore[union-attr]
        for one, other in zip(new, old, strict=True)
    )
    if not new or not same:
        return fresh
    return _replace_nodes(fresh, dict(zip(map(id, new), old, strict=True)))


def _replace_nodes(node: Any, replaced: dict[int, Any]) -> Any:
    if id(node) in replaced:
        return replaced[id(node)]
    if node.__class__ in native_types or not node.is_expression_type():
        return node
    parts = [_replace_nodes(part, replaced) for part in node.args]
    return node.create_node_with_local_data(parts if isinstance(node, numeric.SumExpression) else tuple(parts))
