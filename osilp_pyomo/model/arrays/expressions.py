"""Arrays of expressions: one formula for all entries, written with numpy over the index, Params and Profiles.

``np.exp(-((u - places) / width) ** 2)`` over 10,000 places is one tree of Pyomo nodes in which one leaf stands for the
places.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.indexed_component_slice import IndexedComponent_slice
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo.errors import DeclarationError
from osilp_pyomo.model.arrays.trees import (
    TRACED_PLAINLY,
    ArrayLeaf,
    ArrayNode,
    ArrayProduct,
    ArraysNeededError,
    holds_variable,
    is_expression,
    members_of,
    rebuild,
    sum_trees,
    take_entries,
)


class NumbersNeededError(TypeError):
    """A function was given the index, or an array of expressions, and takes numbers only."""


class ArrayError(DeclarationError):
    """Arrays in a rule or a dot that do not fit together; whoever calls the rule says whose it is."""


# What numpy's functions are on trees. Each gets trees and gives one.
_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "float_power": operator.pow,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": abs,
    "fabs": abs,
    "square": lambda tree: tree**2,
    "reciprocal": lambda tree: 1 / tree,
    "exp": numeric.exp,
    "log": numeric.log,
    "log10": numeric.log10,
    "sqrt": numeric.sqrt,
    "sin": numeric.sin,
    "cos": numeric.cos,
    "tan": numeric.tan,
    "sinh": numeric.sinh,
    "cosh": numeric.cosh,
    "tanh": numeric.tanh,
    "arcsin": numeric.asin,
    "arccos": numeric.acos,
    "arctan": numeric.atan,
    "arcsinh": numeric.asinh,
    "arccosh": numeric.acosh,
    "arctanh": numeric.atanh,
    "floor": numeric.floor,
    "ceil": numeric.ceil,
    "less_equal": operator.le,
    "less": operator.lt,
    "greater_equal": operator.ge,
    "greater": operator.gt,
    "equal": operator.eq,
}


# What to write instead of functions of numpy that need numbers.
_INSTEAD = {
    "interp": "give the curve as osilp.Profile(over=..., points=..., initialize=...) and write m.curve(u)",
    "polyval": "write the powers out, or osilp.dot(coefficients, u ** np.arange(n)) where they are variables",
    "searchsorted": "give the steps as osilp.Profile(..., kind='previous')",
    "piecewise": "use pyo.Expr_if, or np.where over arrays",
    "select": "use pyo.Expr_if, or np.where over arrays",
    "sign": "use pyo.Expr_if",
    "heaviside": "use pyo.Expr_if",
    "expm1": "use np.exp(...) - 1",
    "log1p": "use np.log(1 + ...)",
    "log2": "use np.log(...) / np.log(2)",
    "mod": "use a Profile with outside='wrap'",
    "remainder": "use a Profile with outside='wrap'",
    "hypot": "use np.sqrt(a ** 2 + b ** 2)",
}


def _binary(rule: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator and its turned form. (Numpy's own mixin would leave the turned one to a Param on its left.)"""

    def operate(self: Any, other: Any) -> Any:
        return _operate(rule, apply, self, other)

    def turned(self: Any, other: Any) -> Any:
        return _operate(rule, apply, other, self)

    return operate, turned


def _operate(rule: Callable[..., Any], general: Callable[..., Any], *inputs: Any) -> Any:
    """An operator: by numpy where all are numbers, else by the general way of trees."""
    plain = [each.as_numbers() if isinstance(each, Vector) else each for each in inputs]
    if any(isinstance(each, ArrayExpression | IndexedComponent) or _is_pyomo(each) for each in plain):
        return general(rule, *plain)
    return rule(*plain)


class _Operators:
    """Operators of arrays, each by :func:`apply`, or by :func:`matmul`."""

    __slots__ = ()

    __add__, __radd__ = _binary(operator.add)
    __sub__, __rsub__ = _binary(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv)
    __pow__, __rpow__ = _binary(operator.pow)
    __le__, __ge__ = _binary(operator.le)[0], _binary(operator.ge)[0]
    __lt__, __gt__ = _binary(operator.lt)[0], _binary(operator.gt)[0]

    def __matmul__(self, other: Any) -> Any:
        return _operate(operator.matmul, _matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _operate(operator.matmul, _matmul, other, self)

    def __neg__(self) -> Any:
        return _operate(operator.neg, apply, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _operate(abs, apply, self)


def _matmul(_: Any, one: Any, other: Any) -> Any:
    return matmul(one, other)


#: What entries of an array are called: an index of pandas, the Set of a component, or a list.
Labels = Any


class ArrayExpression(_Operators):
    """An array of expressions of the index and of data, one formula for all entries.

    Numpy's operators and functions, slices and ``@`` work on it. A pandas Series or a Param in it brings its labels
    along, by which :func:`dot` finds the variables.
    """

    # Pandas leaves operators to it, as numpy does.
    __pandas_priority__ = 10_000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tree: Any, shape: tuple[int, ...], labels: Labels | None = None) -> None:
        self.tree = tree
        self.shape = shape
        self.labels = labels

    # Pyomo asks this of what stands in its operators; "no" makes Python ask the array itself.
    def is_numeric_type(self) -> bool:
        return False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("the index is one symbol and has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def entries(self) -> list[Any]:
        """The trees of its entries, of one dimension."""
        if self.tree.__class__ is ArrayLeaf and self.tree.values.shape == self.shape:
            return list(self.tree.values.tolist())
        return [take_entries(self.tree, k, self.shape) for k in range(self.shape[0])]

    def __getitem__(self, key: Any) -> Any:
        if not self.shape:
            raise TypeError(f"the index '{self.tree}' is one symbol and has no entries")
        shape = np.empty(self.shape, dtype=bool)[key].shape
        labels = label_index(self.labels)[key] if self.labels is not None and shape else None
        return _array(take_entries(self.tree, key, self.shape), shape, labels)

    def sum(self, axis: int | None = None) -> Any:
        """The sum of its entries, all of them or along an axis."""
        if axis is None or self.ndim == 1:
            return matmul(np.ones(self.size), self.ravel())
        if not isinstance(axis, int):
            raise ArrayError(f"a sum goes along one axis, or all of them (got axis={axis!r}).")
        moved = np.moveaxis(np.arange(self.size).reshape(self.shape), axis, 0)
        flat = self.ravel()
        return sum(flat[places] for places in moved[1:]) + flat[moved[0]]

    def mean(self) -> Any:
        """The mean of its entries."""
        return self.sum() / self.size

    def ravel(self) -> ArrayExpression:
        """Its entries in one dimension."""
        if self.ndim == 1:
            return self
        shape = self.shape
        tree = rebuild(
            self.tree,
            lambda leaf: leaf.take(..., shape) if isinstance(leaf, ArrayNode) else leaf,
        )
        return ArrayExpression(rebuild(tree, _flattened), (self.size,))

    def take(self, places: NDArray[np.int64]) -> ArrayExpression:
        """Some entries of one dimension, with their labels."""
        labels = None if self.labels is None else label_index(self.labels)[places]
        return ArrayExpression(take_entries(self.tree, places, self.shape), (len(places),), labels)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__":
            return matmul(*inputs)
        if method == "reduce" and ufunc is np.add and options.keys() <= {"axis"}:
            return as_array(inputs[0]).sum(options.get("axis", 0))
        rule = _UFUNCS.get(ufunc.__name__)
        if rule is None or method != "__call__" or any(value is not None for value in options.values()):
            return _refuse_function(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")
        return apply(rule, *inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        rule = _FUNCTIONS.get(function.__name__)
        if rule is None:
            return _refuse_function(function.__name__)
        try:
            inspect.signature(rule).bind(*arguments, **options)
        except TypeError:
            given = ", ".join(f"{option}=" for option in options) or f"{len(arguments)} arguments"
            return _refuse_function(f"{function.__name__} with {given}")
        return rule(*arguments, **options)

    def __eq__(self, other: Any) -> Any:
        return apply(operator.eq, self, other)

    def __bool__(self) -> bool:
        raise TypeError(f"{self._text()} stands for every point and is neither true nor false; use pyo.Expr_if")

    def __float__(self) -> float:
        raise TypeError(f"{self._text()} stands for every point and is no number; use functions of numpy or Pyomo")

    __int__ = __index__ = __complex__ = __float__

    def _text(self) -> str:
        return f"'{self.tree}'"

    def __repr__(self) -> str:
        return f"array of shape {self.shape}: {self.tree}" if self.shape else str(self.tree)


class IndexSymbol(ArrayExpression):
    """The index, or a formula of it that is no array, for rules that use numpy.

    It answers to Pyomo's protocol for what can become a number, so that it stands in any expression of Pyomo.
    """

    def __init__(self, tree: Any) -> None:
        super().__init__(tree, ())

    def as_numeric(self) -> Any:
        return self.tree

    __iter__ = None  # type: ignore[assignment]


def _array(tree: Any, shape: tuple[int, ...], labels: Labels | None = None) -> Any:
    """A tree as an array, as a symbol, or as what Pyomo made of it: a number, a relation, a sum with variables."""
    if shape:
        return ArrayExpression(tree, shape, labels)
    if tree.__class__ in native_types or tree.is_potentially_variable() or not tree.is_numeric_type():
        return tree
    return IndexSymbol(tree)


def _flattened(leaf: Any) -> Any:
    """An array of several dimensions in one."""
    if leaf.__class__ is ArrayLeaf:
        return ArrayLeaf(leaf.values.ravel())
    return (
        ArrayProduct(leaf.entries, leaf.matrix.reshape(len(leaf.matrix), -1)) if isinstance(leaf, ArrayNode) else leaf
    )


def unwrap(value: Any) -> Any:
    """What Pyomo can take: a symbol's tree, anything else as it is."""
    return value.tree if value.__class__ is IndexSymbol else value


def as_array(value: Any) -> ArrayExpression:
    """Anything that can stand in an array expression as one.

    Numbers, numpy arrays, Series and Arrow columns are copied; Params, Profiles and expressions are read when the model
    is solved.
    """
    if isinstance(value, ArrayExpression):
        return value
    if isinstance(value, Vector):
        return value.as_array()
    if isinstance(value, np.generic):
        value = value.item()
    if value.__class__ is bool:
        # A condition of Python's, such as t == 3, counts as 0 or 1.
        return ArrayExpression(int(value), ())
    if value.__class__ in native_numeric_types:
        return ArrayExpression(value, ())
    if isinstance(value, pd.DataFrame):
        raise ArrayError("a DataFrame cannot stand in an array of coefficients; take a column, or .stack() it.")
    if isinstance(value, pd.Series):
        return ArrayExpression(ArrayLeaf(_numbers(value)), (len(value),), value.index)
    if isinstance(value, dict):
        return as_array(pd.Series(value, dtype=object if any(map(_is_pyomo, value.values())) else None))
    if isinstance(value, IndexedComponent) and value.is_indexed():
        return _members(value)
    if isinstance(value, IndexedComponent_slice):
        items = list(value.wildcard_items())
        labels = pd.Index([label for label, _ in items], tupleize_cols=False)
        return ArrayExpression(ArrayLeaf(_numbers([member for _, member in items])), (len(items),), labels)
    if _is_pyomo(value):
        return ArrayExpression(value, ())
    if value is NotImplemented:
        raise ArrayError("functions of pyomo.environ take no arrays; use those of numpy, such as np.exp.")
    if isinstance(value, str | bytes) or not (hasattr(value, "__len__") or hasattr(value, "__array__")):
        raise ArrayError(f"expected an array of numbers or a formula of the index (got {type(value).__name__}).")
    numbers = _numbers(value)
    return ArrayExpression(ArrayLeaf(numbers), numbers.shape) if numbers.ndim else as_array(numbers.item())


def _is_pyomo(value: Any) -> bool:
    return hasattr(value, "is_expression_type") or value.__class__ is IndexSymbol


def _numbers(value: Any) -> NDArray[Any]:
    """A copy of an array, of floats where they are numbers and else of objects; what is neither is refused."""
    if isinstance(value, pd.Series):
        found = value.to_numpy(dtype=float, na_value=np.nan) if _is_number_type(value.dtype) else value.to_numpy()
    elif isinstance(value, list | tuple) and any(map(_is_pyomo, value)):
        # Numpy would look into Pyomo's components for entries of their own.
        found = np.empty(len(value), dtype=object)
        found[:] = value
    elif isinstance(value, np.ma.MaskedArray):
        raise ArrayError("a masked array has entries without a number; fill them, as by .filled(0).")
    elif hasattr(value, "toarray"):
        raise ArrayError(f"a sparse array ({type(value).__name__}) cannot stand here; write it out by .toarray().")
    else:
        try:
            found = np.asarray(value)
        except ValueError as error:
            raise ArrayError(f"it is no array of numbers ({error}).") from None
    if found.dtype.kind in "biuf":
        return np.array(found, dtype=float)
    if found.dtype.kind != "O":
        raise ArrayError(f"its numbers must be real numbers (got an array of {found.dtype}).")
    found = np.array(found, dtype=object)
    flat = found.reshape(-1)
    for place, entry in enumerate(flat):
        entry = flat[place] = unwrap(entry)
        if entry is None or (entry.__class__ not in native_numeric_types and not _is_pyomo(entry)):
            shown = "None" if entry is None else f"a {type(entry).__name__}"
            raise ArrayError(f"entry {place} of an array is {shown}; every entry must be a number or an expression.")
    if set(map(type, flat)) <= native_numeric_types:
        try:
            return found.astype(float)
        except OverflowError as error:
            raise ArrayError(f"it holds a number that is too large ({error}).") from None
    if TRACED_PLAINLY.get() and any(is_expression(entry) for entry in flat):
        # Pyomo has made an object array of whole trees; symbols make one tree of it.
        raise ArraysNeededError
    return found


def _is_number_type(kind: Any) -> bool:
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)


def _members(component: Any) -> ArrayExpression:
    """A Param or Profile over a set as an array, labelled by its index."""
    if component.ctype is pyo.Var:
        raise ArrayError(
            f"the Var '{component.name}' stands among data; write osilp.dot(coefficients, {component.local_name})."
        )
    members = members_of(component)
    found = np.empty(len(members), dtype=object)
    found[:] = members
    if set(map(type, members)) <= native_numeric_types:
        found = found.astype(float)
    return ArrayExpression(ArrayLeaf(found), (len(members),), component.index_set())


def apply(rule: Callable[..., Any], *inputs: Any) -> Any:
    """A function of trees on arrays, entry by entry."""
    arrays = [as_array(each) for each in inputs]
    arrays = _aligned(arrays)
    try:
        shape = np.broadcast_shapes(*(each.shape for each in arrays))
    except ValueError:
        shapes = " and ".join(str(each.shape) for each in arrays)
        raise ArrayError(f"arrays of the shapes {shapes} do not fit together.") from None
    tree = rule(*(each.tree for each in arrays))
    if any(each.labels is not None and each.shape != shape for each in arrays):
        raise ArrayError(
            f"an array with labels, of a Series or a Param, cannot be spread over the shape {shape}; use .to_numpy() "
            "where the order is what counts."
        )
    if shape and holds_variable(tree):
        raise ArrayError("an array of expressions cannot hold variables; write osilp.dot(coefficients, variables).")
    labels = next((each.labels for each in arrays if each.labels is not None), None)
    return _array(tree, shape, labels)


def _aligned(arrays: list[ArrayExpression]) -> list[ArrayExpression]:
    """Arrays with labels in the order of the first that has some."""
    first = next((each for each in arrays if each.labels is not None), None)
    if first is None:
        return arrays
    return [
        each if each.labels is None or each.labels is first.labels else each.take(align(each.labels, first.labels))
        for each in arrays
    ]


def label_index(labels: Labels) -> pd.Index:
    """Labels as pandas has them."""
    return labels if isinstance(labels, pd.Index) else pd.Index(list(labels), tupleize_cols=False)


def align(labels: Labels, wanted: Labels, what: str = "the labels of two arrays") -> NDArray[np.int64]:
    """Where each wanted label stands among others; both must hold the same labels, each once."""
    labels, wanted_index = label_index(labels), label_index(wanted)
    if len(labels) == len(wanted_index) and labels.equals(wanted_index) and labels.is_unique:
        return np.arange(len(labels))
    for each in (labels, wanted_index):
        if not each.is_unique:
            raise ArrayError(f"{what} do not align: {_label(each[each.duplicated()][0])} occurs more than once.")
    by_label = {label: place for place, label in enumerate(labels)}
    missing = [label for label in wanted_index if label not in by_label]
    if missing:
        raise ArrayError(f"{what} do not align: {_label(missing[0])} is missing{_more(missing)}.")
    if len(by_label) > len(wanted_index):
        known = set(wanted_index)
        beyond = [label for label in by_label if label not in known]
        raise ArrayError(f"{what} do not align: {_label(beyond[0])} belongs to nothing{_more(beyond)}.")
    return np.array([by_label[label] for label in wanted_index], dtype=np.int64)


def _label(label: Any) -> str:
    """A label as the user wrote it; numpy would add its type."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def _more(found: Sequence[Any]) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""


def matmul(one: Any, other: Any) -> Any:
    """The product ``one @ other`` of arrays with one or two dimensions."""
    left, right = as_array(one), as_array(other)
    if left.ndim == right.ndim == 1:
        left, right = _aligned([left, right])
    if not (0 < left.ndim <= 2 and 0 < right.ndim <= 2) or left.shape[-1] != right.shape[0]:
        raise ArrayError(f"arrays of the shapes {left.shape} and {right.shape} cannot be multiplied by '@'.")
    count = right.shape[0]
    if not count:
        raise ArrayError("arrays without entries cannot be multiplied by '@'.")
    for vector, matrix, numbers in ((left, right, right.tree), (right, left, left.tree)):
        if vector.ndim == 1 and matrix.ndim == 2 and numbers.__class__ is ArrayLeaf and numbers.numbers:
            entries = tuple(vector.entries())
            rows = numbers.values if vector is left else numbers.values.T
            return ArrayExpression(ArrayProduct(entries, rows.copy()), rows.shape[1:])
    products = []
    for k in range(count):
        first, second = (
            left[:, k : k + 1] if left.ndim == right.ndim == 2 else left[..., k],
            right[k : k + 1, :] if left.ndim == right.ndim == 2 else right[k],
        )
        products.append(apply(operator.mul, first, second))
    arrays = [as_array(each) for each in products]
    trees = [each.tree for each in arrays if each.tree.__class__ not in native_numeric_types or each.tree != 0]
    tree = trees[0] if len(trees) == 1 else sum_trees(trees)
    shape = left.shape[:-1] + right.shape[1:]
    return _array(tree, shape)


def _where(condition: Any, then: Any, other: Any) -> Any:
    if any(isinstance(as_array(each).labels, pd.Index) for each in (condition, then, other)):
        raise ArrayError("np.where drops the labels of a Series; give it by .to_numpy(), in the order of variables.")

    def choose(*trees: Any) -> Any:
        kind = numeric.Expr_ifExpression if any(map(holds_variable, trees)) else numeric.NPV_Expr_ifExpression
        return kind(trees)

    return apply(choose, condition, then, other)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    found = a if low is None else apply(_UFUNCS["maximum"], a, low)
    return found if high is None else apply(_UFUNCS["minimum"], found, high)


def _inner(a: Any, b: Any) -> Any:
    if as_array(a).ndim != 1 or as_array(b).ndim != 1:
        raise ArrayError("np.inner and np.vdot take arrays of one dimension here; write '@' for others.")
    return matmul(a, b)


def _sum(a: Any, axis: int | None = None) -> Any:
    return as_array(a).sum(axis)


def _mean(a: Any) -> Any:
    return as_array(a).mean()


def _ravel(a: Any) -> Any:
    return as_array(a).ravel()


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one dimension one behind the other; each entry keeps a tree of its own."""
    found = [as_array(each) for each in arrays]
    if axis != 0 or any(each.ndim != 1 for each in found):
        raise ArrayError("np.concatenate takes arrays of one dimension here.")
    trees = [tree for each in found for tree in each.entries()]
    values = np.empty(len(trees), dtype=object)
    values[:] = trees
    return ArrayExpression(ArrayLeaf(values), (len(trees),))


# Functions of numpy that are no ufuncs.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dot": matmul,
    "inner": _inner,
    "vdot": _inner,
    "sum": _sum,
    "mean": _mean,
    "where": _where,
    "clip": _clip,
    "ravel": _ravel,
    "concatenate": _concatenate,
    "hstack": lambda tup: _concatenate(tup),
    "shape": lambda a: as_array(a).shape,
    "ndim": lambda a: as_array(a).ndim,
    "size": lambda a: as_array(a).size,
}


def _extreme(plain: type, general: type) -> Callable[..., Any]:
    """The larger or smaller of two trees; with a variable in it, the node that Pyomo knows to hold one."""

    def choose(*trees: Any) -> Any:
        return (general if any(map(holds_variable, trees)) else plain)(trees)

    return choose


_UFUNCS["maximum"] = _UFUNCS["fmax"] = _extreme(numeric.NPV_MaxExpression, numeric.MaxExpression)
_UFUNCS["minimum"] = _UFUNCS["fmin"] = _extreme(numeric.NPV_MinExpression, numeric.MinExpression)


def _refuse_function(name: str) -> Any:
    way = _INSTEAD.get(name, "use functions that numpy and Pyomo share, such as np.exp, np.sin, np.maximum")
    raise NumbersNeededError(f"numpy's {name} needs numbers, and the index stands for every point: {way}")


class Vector(_Operators, tuple[Any, ...]):
    """An uncertain vector as a rule gets it: a tuple that adds and multiplies as numpy's arrays do.

    Entries that do not exist are explained, and slices are vectors again.
    """

    __pandas_priority__ = 10_000

    #: The set over which a function read it last, and its entries as that took them.
    read_over: Any = None
    read_as: Sequence[Any] = ()

    def as_array(self) -> Any:
        """The vector as an array expression; its entries are what they are."""
        values = np.empty(len(self), dtype=object)
        values[:] = [unwrap(entry) for entry in self]
        if all(entry.__class__ in native_numeric_types for entry in values):
            values = values.astype(float)
        return ArrayExpression(ArrayLeaf(values), (len(self),))

    def as_numbers(self) -> Any:
        """The vector for numpy: an array of numbers where it holds numbers."""
        numbers = all(entry.__class__ in native_numeric_types for entry in self)
        return np.array(self, dtype=float) if numbers else self.as_array()

    def __getitem__(self, key: Any) -> Any:
        try:
            # Rules written term by term come here for every term.
            found = tuple.__getitem__(self, key)
        except TypeError:
            return self._take(key)
        except IndexError:
            raise ArrayError(
                f"its rule asks for entry {key} of an uncertain vector of dimension {len(self)}, whose entries are 0 "
                f"to {len(self) - 1}; give a set of the dimension that the rule needs."
            ) from None
        return Vector(found) if found.__class__ is tuple else found

    def _take(self, key: Any) -> Any:
        """Entries by what numpy takes for an index: a mask, a list, None, several of them."""
        try:
            places = np.arange(len(self))[key]
        except IndexError as error:
            raise ArrayError(
                f"its rule asks for {key!r} of an uncertain vector of dimension {len(self)} ({error}); give an index "
                "that numpy takes for an array of that length."
            ) from None
        return Vector(self[k] for k in places.tolist()) if np.ndim(places) == 1 else self.as_numbers()[key]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [each.as_numbers() if isinstance(each, Vector) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return function(*(_without_vectors(each) for each in arguments), **options)

    def sum(self) -> Any:
        """The sum of its entries."""
        return sum(self)

    def dot(self, other: Any) -> Any:
        """The product ``self @ other``."""
        return self @ other

    @property
    def shape(self) -> tuple[int]:
        """Its length, as numpy tells it."""
        return (len(self),)

    ndim = 1

    @property
    def size(self) -> int:
        """Its length."""
        return len(self)

    @property
    def T(self) -> Vector:  # noqa: N802 (numpy's name)
        """Itself: it has one dimension."""
        return self


def _without_vectors(argument: Any) -> Any:
    """An argument of a function of numpy with arrays in place of vectors, those in a list too."""
    if isinstance(argument, Vector):
        return argument.as_numbers()
    return type(argument)(map(_without_vectors, argument)) if isinstance(argument, list | tuple) else argument
