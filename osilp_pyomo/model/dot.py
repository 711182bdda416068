"""dot: coefficients times variables as one light node of an expression.

The node is a genuine LinearExpression of Pyomo (walkers look for that very class) whose list of arguments is made when
somebody reads it: writers, solvers and transformations of Pyomo see ordinary terms, and this package reads arrays. It
stands alone inside a sum, because adding to a LinearExpression itself would copy its terms one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_types
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.indexed_component_slice import IndexedComponent_slice
from pyomo.core.base.var import Var
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo.model.arrays import (
    ArrayError,
    ArrayExpression,
    ArrayLeaf,
    ArrayProduct,
    Labels,
    align,
    as_array,
    is_expression,
    label_index,
    members_of,
    rebuild,
    take_entries,
    tree_leaves,
)


@dataclass(frozen=True, eq=False)
class TermBlock:
    """Terms ``coefficient * variable`` whose coefficients are the entries of one tree."""

    tree: Any
    variables: tuple[Any, ...]

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
        for leaf in tree_leaves(self.tree):
            if leaf.__class__ is ArrayProduct:
                for entry in leaf.entries:
                    yield from tree_leaves(entry)
            elif leaf.__class__ is not ArrayLeaf:
                yield leaf
            elif not leaf.numbers:
                for entry in leaf.values.flat:
                    yield from tree_leaves(entry)

    def text(self) -> str:
        """The terms in short."""
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
        copied = DotTerms(TermBlock(deepcopy(self.block.tree, memo), variables))
        copied.appended = deepcopy(self.appended, memo)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.block.tree, self.block.variables, self.appended)


def _restored(tree: Any, variables: tuple[Any, ...], appended: list[Any]) -> DotTerms:
    terms = DotTerms(TermBlock(tree, variables))
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
        return light_node(TermBlock(rebuild(block.tree, replace), tuple(map(replace, block.variables))))
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


def dot(coefficients: Any, variables: Any) -> Any:
    """Coefficients times variables, summed: ``sum(c * x)`` as one light node of a Pyomo expression.

    Parameters
    ----------
    coefficients : array, Series, Arrow column, Param or array expression
        One number for each variable, or one formula of the index for all of them, such as
        ``np.exp(-((u - places) / width) ** 2)`` or ``nominal + xi @ factors``. Numbers are copied; mutable Params and
        Profiles are read when the model is solved. What has labels (a Series, a dict, a Param) is aligned with the
        variables by them.
    variables : Var, slice, list or Series of variables
        In the order of their Set.

    Returns
    -------
    Pyomo expression
        Stands beside other terms, in Constraints, Objectives, named Expressions and stages. Writers, solvers and
        transformations see ordinary terms.

    Raises
    ------
    DeclarationError
        Where lengths or labels differ, an entry is no finite number, or something is no variable.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(["a", "b", "c"], bounds=(0, 1))
    >>> places = np.array([0.2, 0.5, 0.9])
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def usage(m, u):
    ...     return osilp.dot(np.exp(-(((u - places) / 0.1) ** 2)), m.x) <= 0.5
    >>> m.reward = pyo.Objective(expr=osilp.dot(pd.Series({"c": 3.0, "b": 2.0, "a": 1.0}), m.x), sense=pyo.maximize)
    >>> round(osilp.solve(m).objective, 4)
    2.9998
    """
    try:
        return _dot(coefficients, variables)
    except ArrayError as error:
        raise ArrayError(f"dot: {error}") from None


def _dot(coefficients: Any, variables: Any) -> Any:
    members, labels, name = _variables(variables)
    array = as_array(coefficients)
    if not array.ndim and len(members) == 1:
        # Pyomo makes one expression of a Param times an array of one number.
        array = ArrayExpression(array.tree, (1,))
    if array.ndim != 1:
        had = "a single coefficient" if not array.ndim else f"coefficients of the shape {array.shape}"
        raise ArrayError(f"expected an array with one coefficient for each variable of {name} (got {had}).")
    if array.labels is not None:
        if labels is None:
            raise ArrayError(
                "its coefficients have labels and its variables have none; give the coefficients by .to_numpy(), or "
                "the variables as a Var or a Series."
            )
        if array.labels is not labels:
            order = align(array.labels, labels, f"the coefficients and the variables of {name}")
            if np.any(order != np.arange(len(order))):
                array = array.take(order)
    if array.shape[0] != len(members):
        raise ArrayError(
            f"there are {array.shape[0]} coefficients and {len(members)} variables of {name}; give one coefficient "
            "for each variable."
        )
    _refuse_numbers(array)
    _refuse_variables(array)
    if not members:
        return 0
    return numeric.SumExpression([light_node(TermBlock(array.tree, members))])


def _refuse_numbers(array: ArrayExpression) -> None:
    """Refuse what is not a finite number."""
    for leaf in tree_leaves(array.tree):
        if leaf.__class__ is ArrayProduct:
            numbers = leaf.matrix
        elif leaf.__class__ is ArrayLeaf and leaf.numbers:
            numbers = leaf.values
        else:
            continue
        if np.isfinite(numbers).all():
            continue
        place = np.argwhere(~np.isfinite(numbers))[0]
        at = f" ({label_index(array.labels)[place[-1]]!r})" if array.labels is not None else ""
        raise ArrayError(
            f"entry {', '.join(map(str, place))}{at} of its array is {numbers[tuple(place)]}; every coefficient must "
            "be a finite number."
        )


def _refuse_variables(array: ArrayExpression) -> None:
    """Refuse coefficients that hold variables."""
    for leaf in tree_leaves(array.tree):
        parts: Sequence[Any] = leaf.entries if leaf.__class__ is ArrayProduct else (leaf,)
        if leaf.__class__ is ArrayLeaf:
            parts = () if leaf.numbers else leaf.values.ravel().tolist()
        # Leaves of one class are alike in this: of Params, one is looked at.
        examples = dict(zip(map(type, parts), parts, strict=True))
        for part in parts if any(map(is_expression, examples.values())) else examples.values():
            for each in tree_leaves(part):
                if getattr(each, "is_variable_type", bool)():
                    raise ArrayError(
                        f"its coefficients hold the variable '{each.name}'; they must be data. A product of variables "
                        "is not linear; for a fixed variable use a mutable Param."
                    )


def _variables(given: Any) -> tuple[tuple[Any, ...], Labels | None, str]:
    """The variables one by one, their labels (or None), and what to call them."""
    name = f"'{given.name}'" if isinstance(given, IndexedComponent) else "the list"
    labels: Labels | None = None
    if isinstance(given, IndexedComponent_slice):
        items = list(given.wildcard_items())
        labels, members = [label for label, _ in items], [member for _, member in items]
        name = f"'{given}'"
    elif isinstance(given, IndexedComponent):
        if given.ctype is Var:
            return (tuple(members_of(given)), given.index_set(), name) if given.is_indexed() else ((given,), None, name)
        members = members_of(given) if given.is_indexed() else [given]
    elif isinstance(given, pd.Series):
        labels, members, name = given.index, given.tolist(), "the Series"
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        members = list(given)
    else:
        raise ArrayError(f"expected a Var, a slice, a list or a Series of variables (got {type(given).__name__}).")
    for place, member in enumerate(members):
        if not (hasattr(member, "is_variable_type") and member.is_variable_type()):
            shown = str(member) if hasattr(member, "is_expression_type") else repr(member)
            raise ArrayError(
                f"entry {place} of its variables is {shown[:60]}, a {type(member).__name__} and no variable; put "
                "expressions beside the dot, multiplied by hand."
            )
    owners = {id(each.parent_component()): each.parent_component() for each in members}
    if labels is None and len(owners) == 1 and next(iter(owners.values())).is_indexed():
        labels = [each.index() for each in members]
    return tuple(members), labels, name


def array(values: Any) -> Any:
    """A Param, a Series or an array as an array expression, for formulas over arrays of data.

    Parameters
    ----------
    values : Param, Series, dict or array
        A Param over a Set becomes an array in the order of the Set; a mutable one is read when the model is solved.

    Returns
    -------
    ArrayExpression
        Takes operators and functions of numpy, and stands in :func:`dot`.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.price = pyo.Param([0, 1], initialize={0: 3, 1: 5}, mutable=True)
    >>> m.cost = pyo.Param([0, 1], initialize={0: 1, 1: 4}, mutable=True)
    >>> m.x = pyo.Var([0, 1], initialize=1)
    >>> profit = osilp.dot(osilp.array(m.price) - m.cost, m.x)
    >>> pyo.value(profit)
    3
    """
    return as_array(values)
