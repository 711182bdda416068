"""Trees of Pyomo nodes whose leaves may be arrays.

An entry of an array is its tree with an entry in place of each array. Operators of Pyomo build the trees, so that an
entry is the very expression that a term written by hand would be.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from copy import deepcopy
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.base.param import ScalarParam
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr.numvalue import NumericValue


class ArraysNeededError(Exception):
    """A plain placeholder met an array: the rule is traced again with symbols that understand numpy."""


#: Whether a rule is being traced with plain placeholders, which are faster where a rule is written term by term.
TRACED_PLAINLY: ContextVar[bool] = ContextVar("traced_plainly", default=False)


class IndexPlaceholder(ScalarParam):
    """Stands for the continuous index while a rule is traced; it never has a value.

    ``index_of`` is the continuous set of which it is a coordinate.
    """

    index_of: Any = None

    def getname(self, *_: Any, **__: Any) -> str:
        """Its name as the user reads it; Pyomo would put quotes around an entry such as xi[0]."""
        return str(self._name)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = ufunc.nin == 1 or any(np.ndim(each) for each in inputs if isinstance(each, np.ndarray))
        if TRACED_PLAINLY.get() and arrays:
            raise ArraysNeededError
        # A number of numpy's beside it, such as an entry of an array; or whatever Pyomo makes of an array.
        return super().__array_ufunc__(ufunc, method, *inputs, **options)


class ArrayNode(NumericValue):
    """A leaf of a tree that stands for an array and has no value of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.getname()

    def __call__(self, exception: bool = True) -> Any:
        if exception:
            raise ValueError(f"the array {self} has no single value")
        return None


class ArrayLeaf(ArrayNode):
    """A leaf of a formula that has one value for each entry of an array.

    ``values`` are numbers (an array of floats, frozen), or an array of what is read when the model is solved: Params,
    Profiles, placeholders and other expressions without a variable.
    """

    __slots__ = ("values",)

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.values.flags.writeable = False

    @property
    def numbers(self) -> bool:
        """Whether its values are numbers."""
        return self.values.dtype != object

    def take(self, key: Any, shape: tuple[int, ...]) -> Any:
        """Some entries, of an array of this shape into which it is broadcast; a bare value if the key is of one."""
        found = np.broadcast_to(self.values, shape)[key]
        if isinstance(found, np.ndarray) and found.ndim:
            return ArrayLeaf(found.copy())
        return found.item() if isinstance(found, np.ndarray | np.generic) else found

    def getname(self, *_: Any, **__: Any) -> str:
        """The component whose members it holds, or its numbers in short."""
        if not self.numbers:
            owners = {id(owner): owner for owner in map(_owner, self.values.flat)}
            if len(owners) == 1 and None not in owners.values():
                return str(next(iter(owners.values())).name)
            shown = [str(each) for each in self.values.flat[:2]]
            return f"[{', '.join(shown)}{', ...' if self.values.size > 2 else ''}]"
        return np.array2string(self.values, precision=4, threshold=4, edgeitems=1, separator=", ")

    def __deepcopy__(self, memo: dict[int, Any]) -> ArrayLeaf:
        if self.numbers:
            # Frozen: a clone of the model may share it.
            return self
        copied = np.empty(self.values.shape, dtype=object)
        for place, value in enumerate(self.values.flat):
            copied.flat[place] = deepcopy(value, memo)
        return ArrayLeaf(copied)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayLeaf, (np.array(self.values),)


def _owner(entry: Any) -> Any:
    """The indexed component that an entry is a member of, or None."""
    owner = entry.parent_component() if hasattr(entry, "parent_component") else None
    return owner if owner is not None and owner.is_indexed() else None


class ArrayProduct(ArrayNode):
    """A leaf of a formula that stands for the array ``entries @ matrix``: a sum of as many rows as there are entries.

    It is one leaf, because rows that are affine in an uncertain vector are read from the matrix as it is; others write
    it out.
    """

    __slots__ = ("entries", "matrix")

    def __init__(self, entries: tuple[Any, ...], matrix: NDArray[np.float64]) -> None:
        self.entries = entries
        self.matrix = matrix
        self.matrix.flags.writeable = False

    def written_out(self) -> Any:
        """The product as a sum of an entry times a row each."""
        return sum_trees([entry * ArrayLeaf(row.copy()) for entry, row in zip(self.entries, self.matrix, strict=True)])

    def take(self, key: Any, shape: tuple[int, ...]) -> Any:
        """Some entries of the product, of an array of this shape into which it is broadcast, or one of them."""
        rest = key if isinstance(key, tuple) else (key,)
        found = np.broadcast_to(self.matrix, (len(self.matrix), *shape))[(slice(None), *rest)]
        if found.ndim > 1:
            return ArrayProduct(self.entries, found.copy())
        return sum_trees([entry * number for entry, number in zip(self.entries, found.tolist(), strict=True) if number])

    def replaced(self, replace: Callable[[Any], Any]) -> ArrayProduct:
        """The product with other leaves in its entries."""
        return ArrayProduct(tuple(rebuild(entry, replace) for entry in self.entries), self.matrix)

    def getname(self, *_: Any, **__: Any) -> str:
        """The vector, or its entries in short, and the size of the matrix."""
        names = {str(entry).rpartition("[")[0] for entry in self.entries}
        vector = names.pop() if len(names) == 1 else None
        shown = ", ".join(map(str, self.entries[:2])) + (", ..." if len(self.entries) > 2 else "")
        rows, columns = self.matrix.shape
        return f"{vector or f'[{shown}]'} @ [{rows} x {columns} numbers]"

    def __deepcopy__(self, memo: dict[int, Any]) -> ArrayProduct:
        return ArrayProduct(tuple(deepcopy(entry, memo) for entry in self.entries), self.matrix)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayProduct, (self.entries, np.array(self.matrix))


def tree_leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree that are no numbers, and the curves of its Profiles."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.__class__ in native_types:
            continue
        if node.is_expression_type():
            if hasattr(node, "curve"):
                yield node.curve
            stack.extend(node.args)
        else:
            yield node


def all_leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree that are no numbers, those within its arrays in their place."""
    for leaf in tree_leaves(tree):
        if leaf.__class__ is ArrayProduct:
            for entry in leaf.entries:
                yield from tree_leaves(entry)
        elif leaf.__class__ is not ArrayLeaf:
            yield leaf
        elif not leaf.numbers:
            for entry in leaf.values.flat:
                yield from tree_leaves(entry)


def scaled_tree(factor: Any, tree: Any) -> Any:
    """A tree times a factor; numbers times a number are numbers."""
    if factor.__class__ in native_numeric_types:
        if factor == 1:
            return tree
        if tree.__class__ is ArrayLeaf and tree.numbers:
            return ArrayLeaf(factor * tree.values)
    return factor * tree


def array_leaves(tree: Any) -> list[ArrayLeaf]:
    """The arrays that a tree holds."""
    return [leaf for leaf in tree_leaves(tree) if leaf.__class__ is ArrayLeaf]


def rebuild(tree: Any, replace: Callable[[Any], Any]) -> Any:
    """A tree with every leaf that is no number replaced; what holds none of them stays as it is."""
    if tree.__class__ in native_types:
        return tree
    if not tree.is_expression_type():
        new = replace(tree)
        return tree.replaced(replace) if new is tree and tree.__class__ is ArrayProduct else new
    arguments = [rebuild(part, replace) for part in tree.args]
    curve = replace(tree.curve) if hasattr(tree, "curve") else None
    same = all(new is old for new, old in zip(arguments, tree.args, strict=True))
    if same and (curve is None or curve is tree.curve):
        return tree
    if curve is not None:
        return tree.__class__(arguments, curve)
    for kind, rule in _ARITHMETIC:
        if isinstance(tree, kind):
            # As the operator would have made it: Pyomo leaves out factors of 1 and what is 0.
            return reduce(rule, arguments) if len(arguments) > 1 else rule(*arguments)
    return tree.create_node_with_local_data(arguments if isinstance(tree, numeric.SumExpression) else tuple(arguments))


# What makes the nodes of sums, products and the like.
_ARITHMETIC: list[tuple[type, Callable[..., Any]]] = [
    (numeric.NegationExpression, operator.neg),
    (numeric.SumExpression, operator.add),
    (numeric.ProductExpression, operator.mul),
    (numeric.DivisionExpression, operator.truediv),
    (numeric.PowExpression, operator.pow),
]


def take_entries(tree: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """The tree of some entries of an array of this shape, or of one of them."""
    return rebuild(tree, lambda leaf: leaf.take(key, shape) if isinstance(leaf, ArrayNode) else leaf)


def is_expression(entry: Any) -> bool:
    """Whether an entry of an array is a tree, and no leaf; a curve of a Profile is none."""
    return entry.__class__ not in native_types and getattr(entry, "is_expression_type", bool)()


def members_of(component: Any) -> list[Any]:
    """All members of an indexed component, in the order of its Set."""
    if len(component._data) == len(component.index_set()):
        return list(component.values())
    # A Param makes members with its default, or without a value, when they are asked for.
    return [component[index] for index in component.index_set()]


def holds_variable(tree: Any) -> bool:
    """Whether a variable occurs in a tree; an Expression of data, which Pyomo takes for variable, holds none."""
    if tree.__class__ in native_types or not tree.is_numeric_type() or not tree.is_potentially_variable():
        return False
    return any(getattr(leaf, "is_variable_type", bool)() for leaf in tree_leaves(tree))


def sum_trees(trees: list[Any]) -> Any:
    """A sum of trees, flat: one node however many there are."""
    if any(map(holds_variable, trees)):
        return sum(trees)
    if all(tree.__class__ in native_numeric_types for tree in trees):
        return sum(trees)
    return numeric.NPV_SumExpression(trees)
