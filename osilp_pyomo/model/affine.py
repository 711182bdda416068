"""Rows affine in an uncertain vector, read from Pyomo relations: bilinear in the vector and the variables.

Ordinary traces keep coefficients as formulas. Where a row is ``sum c xi_k x_j`` its numbers are all there is to know,
and with them the row can be separated exactly. Thousands of terms are walked here, so the loops are short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.model.arrays.blocks import TermBlock, block_of
from osilp_pyomo.model.arrays.trees import ArrayLeaf, ArrayProduct, all_leaves, array_leaves
from osilp_pyomo.model.formulas import CannotCompileError, block_values
from osilp_pyomo.model.linear import LinearTerms, reads_as_lower
from osilp_pyomo.offline.rows import AffineRows

_MONOMIAL, _DATA_PRODUCT = numeric.MonomialTermExpression, numeric.NPV_ProductExpression


class NotAffineError(Exception):
    """A term is no number times an entry of the vector times a variable."""


@dataclass(frozen=True, eq=False)
class AffineTrace:
    """A relation ``lower <= (1, xi) @ matrix @ x <= upper`` with its variables.

    ``lasting`` tells that nothing was read that may change before the model is solved: a mutable Param, the value of
    a fixed variable, a named Expression.
    """

    variables: tuple[Any, ...]
    matrix: FloatArray
    lower: FloatArray | None
    upper: FloatArray | None
    lasting: bool
    #: The row with the numbers of now, where all that may change was noted; None of it if it cannot be had so.
    again: Callable[[], AffineTrace | None] | None = None

    def sharing(self, variables: tuple[Any, ...]) -> AffineTrace:
        """The same with this tuple of variables, where it holds the same ones: what it is asked is then known."""
        if len(variables) != len(self.variables) or not all(map(is_, variables, self.variables)):
            return self
        return AffineTrace(variables, self.matrix, self.lower, self.upper, self.lasting)

    def terms(self) -> LinearTerms:
        """Its variables, as the columns of a problem register them."""
        return LinearTerms({id(variable): variable for variable in self.variables})

    def at(self, point: FloatArray) -> tuple[dict[int, float], float, float]:
        """Coefficients by the id of their variable, and limits, at one vector."""
        vector = np.concatenate([[1.0], point])
        coefficients = dict(zip(map(id, self.variables), (vector @ self.matrix).tolist(), strict=True))
        lower = -np.inf if self.lower is None else float(vector @ self.lower)
        return coefficients, lower, np.inf if self.upper is None else float(vector @ self.upper)

    def same(self, other: AffineTrace) -> bool:
        """Whether another trace holds the same numbers."""
        return (
            (self.variables is other.variables or [*map(id, self.variables)] == [*map(id, other.variables)])
            and np.array_equal(self.matrix, other.matrix)
            and _equal(self.lower, other.lower)
            and _equal(self.upper, other.upper)
        )

    def entries(self) -> BoolArray:
        """Which entries of the vector appear."""
        parts = [self.matrix[1:], *(limit[1:, None] for limit in (self.lower, self.upper) if limit is not None)]
        return np.any(np.column_stack(parts) != 0, axis=1)

    def unfixed(self, known: SharedVariables | None = None) -> AffineTrace:
        """The relation with variables that are fixed now moved to the limits."""
        if not (SharedVariables() if known is None else known).any_fixed(self.variables):
            return self
        free = np.array([not variable.fixed for variable in self.variables])
        values = np.array([0.0 if variable.value is None else variable.value for variable in self.variables])
        moved = self.matrix[:, ~free] @ values[~free]
        return AffineTrace(
            tuple(variable for variable in self.variables if not variable.fixed),
            self.matrix[:, free],
            None if self.lower is None else self.lower - moved,
            None if self.upper is None else self.upper - moved,
            False,
        )


class SharedVariables:
    """What is asked of each tuple of variables while a model is read, answered once for all rows that share it."""

    def __init__(self) -> None:
        # With the tuples themselves: an id is that of one thing only while it lives.
        self._fixed: dict[int, tuple[tuple[Any, ...], bool]] = {}
        self._columns: dict[int, tuple[tuple[Any, ...], IntArray, IntArray]] = {}

    def any_fixed(self, variables: tuple[Any, ...]) -> bool:
        """Whether any of them is fixed."""
        known = self._fixed.get(id(variables))
        if known is None:
            known = self._fixed[id(variables)] = variables, any(variable.fixed for variable in variables)
        return known[1]

    def columns(self, variables: tuple[Any, ...], column_of: Mapping[int, int]) -> tuple[IntArray, IntArray]:
        """Their columns in increasing order, and that order."""
        known = self._columns.get(id(variables))
        if known is None:
            found = np.array([column_of[id(variable)] for variable in variables], dtype=np.int64)
            order = np.argsort(found)
            known = self._columns[id(variables)] = variables, found[order], order
        return known[1:]


def _equal(one: FloatArray | None, other: FloatArray | None) -> bool:
    """Whether two limits are the same, or both missing."""
    return one is other if one is None or other is None else np.array_equal(one, other)


_NUMBERS = (float, int, np.number)


class _Noted(float):
    """A number with how it is computed from data, so that it can be computed again when they have changed."""

    __slots__ = ("node", "parts")

    parts: tuple[Any, ...]
    node: Any

    @classmethod
    def of(cls, value: float, node: Any = None, parts: tuple[Any, ...] = ()) -> _Noted:
        noted = cls(value)
        noted.node, noted.parts = node, parts
        return noted

    def __mul__(self, other: Any) -> Any:
        return _product(self, other) if isinstance(other, _NUMBERS) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return _product(other, self) if isinstance(other, _NUMBERS) else NotImplemented

    def __neg__(self) -> _Noted:
        return _Noted.of(-float(self), None, ("*", -1.0, self))

    def nodes(self) -> set[int]:
        """The ids of the data that it is made of."""
        if self.node is not None:
            return {id(self.node)}
        return set().union(*(part.nodes() for part in self.parts if part.__class__ is _Noted))

    def now(self) -> float:
        """Its value with the data of now; not a number where they have none."""
        if self.node is not None:
            try:
                value = self.node(exception=False)
            except (ArithmeticError, ValueError, TypeError):
                return math.nan
            return float(value) if value.__class__ in native_numeric_types else math.nan
        sign, *parts = self.parts
        one, other = (part.now() if part.__class__ is _Noted else part for part in parts)
        if sign == "*":
            return float(one * other)
        return float(one / other) if other else math.nan


def _product(one: Any, other: Any) -> Any:
    """A product, noted where one of its factors is; numpy's own numbers would forget it."""
    if one.__class__ is _Noted or other.__class__ is _Noted:
        return _Noted.of(float(one) * float(other), None, ("*", one, other))
    return one * other


def _ratio(one: Any, other: Any) -> Any:
    """A ratio, noted where one of its parts is."""
    if one.__class__ is _Noted or other.__class__ is _Noted:
        return _Noted.of(float(one) / float(other), None, ("/", one, other))
    return one / other


class _Terms:
    """Terms ``number * xi_k * variable`` found so far; k = 0 stands for the number 1, variable None for none.

    With ``notes`` numbers that may change are noted: the list of all data that were read, and of places of numbers
    that are made of them.
    """

    def __init__(self, axes: Mapping[int, int], notes: list[Any] | None = None) -> None:
        self.axes = axes
        self.notes = notes
        # Whether something that may change was read and could not be noted.
        self.lost = False
        self.noted: list[tuple[int, int, _Noted]] = []
        # Blocks times a number that may change: their place, the number, and what it multiplies.
        self.noted_blocks: list[tuple[int, _Noted, FloatArray]] = []
        self.factors: list[int] = []
        self.columns: list[int] = []
        self.numbers: list[float] = []
        # The same three of the blocks met so far and of the terms between them, in the order of the row.
        self.parts: list[tuple[Any, Any, Any]] = []
        # Column 0 holds what has no variable.
        self.column_of: dict[int, int] = {0: 0}
        self.variables: list[Any] = []
        self.lasting = True

    def column(self, variable: Any) -> int:
        key = id(variable)
        column = self.column_of.get(key)
        if column is None:
            self.variables.append(variable)
            column = self.column_of[key] = len(self.variables)
        return column

    def add(self, expression: Any, sign: float) -> None:
        """Walk an expression; every entry of the stack is a node in a product with a number, xi_k and a variable."""
        stack: list[tuple[Any, float, int, int]] = [(expression, sign, 0, 0)]
        factors, columns, numbers = self.factors, self.columns, self.numbers
        axes, column_of = self.axes, self.column_of
        while stack:
            node, scale, factor, column = stack.pop()
            kind = node.__class__
            if kind in native_numeric_types:
                factors.append(factor)
                columns.append(column)
                numbers.append(scale * node)
            elif kind in native_types:
                raise NotAffineError
            elif not node.is_expression_type():
                self._leaf(node, scale, factor, column)
            elif (block := block_of(node)) is not None:
                self._add_block(block, scale, factor, column)
            elif isinstance(node, numeric.SumExpression):
                rest = []
                for part in node.args:
                    # Most terms are a number times a variable, or a number times an entry of the vector.
                    if part.__class__ is _MONOMIAL:
                        number, leaf = part._args_
                        if number.__class__ in native_numeric_types and not leaf.fixed and not column:
                            factors.append(factor)
                            columns.append(column_of.get(id(leaf)) or self.column(leaf))
                            numbers.append(scale * number)
                            continue
                    elif part.__class__ is _DATA_PRODUCT:
                        number, leaf = part._args_
                        if number.__class__ in native_numeric_types and id(leaf) in axes and not factor:
                            factors.append(axes[id(leaf)] + 1)
                            columns.append(column)
                            numbers.append(scale * number)
                            continue
                    rest.append((part, scale, factor, column))
                stack.extend(reversed(rest))
            elif isinstance(node, numeric.ProductExpression):
                left, right = node._args_
                self._push_product(stack, left, right, scale, factor, column)
            elif isinstance(node, numeric.NegationExpression):
                stack.append((node.args[0], -scale, factor, column))
            elif isinstance(node, numeric.DivisionExpression):
                below = self._number(node.args[1])
                if below is None or below == 0:
                    raise NotAffineError
                stack.append((node.args[0], _ratio(scale, below), factor, column))
            elif node.is_named_expression_type():
                self.lasting = False
                stack.append((node.args[0], scale, factor, column))
            else:
                number = self._number(node)
                if number is None:
                    raise NotAffineError
                self._put(_product(scale, number), factor, column)

    def _add_block(self, block: TermBlock, scale: float, factor: int, column: int) -> None:
        """The terms of a block, an array for each entry of the vector; its fixed variables are numbers."""
        variables, count = block.variables, len(block.variables)
        column_of = self.column_of
        noted = scale if scale.__class__ is _Noted else None
        weights: Any = float(scale)
        if any(variable.fixed for variable in variables):
            self.lasting = False
            self.lost |= self.notes is not None
            values = [each.value if each.fixed else 1.0 for each in variables]
            if None in values or (column and not all(each.fixed for each in variables)):
                raise NotAffineError
            weights = weights * np.array(values, dtype=float)
            places = np.array([column if each.fixed else self.column(each) for each in variables])
        elif column:
            raise NotAffineError
        else:
            places = np.array([column_of.get(id(each)) or self.column(each) for each in variables])
        self._flush()
        found = self._arrays(block.tree)
        if factor and any(found):
            raise NotAffineError
        rows = np.empty((len(found), count))
        for k, numbers in enumerate(found.values()):
            rows[k] = numbers
        entries = np.array([entry or factor for entry in found])
        if noted is not None:
            self.noted_blocks.append((len(self.parts), noted, rows))
        self.parts.append((entries[:, None], places[None, :], weights * rows))

    def _arrays(self, node: Any) -> dict[int, Any]:
        """A tree of arrays as {entry of the vector, or 0 for none: array or number}, summed and multiplied."""
        if node.__class__ in native_numeric_types:
            return {0: node}
        if node.__class__ is ArrayLeaf:
            return {0: node.values} if node.numbers else self._array_of(node)
        if id(node) in self.axes:
            return {self.axes[id(node)] + 1: 1.0}
        if node.__class__ is ArrayProduct:
            axes = [self.axes.get(id(entry)) for entry in node.entries]
            if None not in axes and len(set(axes)) == len(axes):
                return {axis + 1: row for axis, row in zip(axes, node.matrix, strict=True)}  # type: ignore[operator]
            return self._arrays(node.written_out())
        if node.is_expression_type():
            if isinstance(node, numeric.SumExpression):
                total: dict[int, Any] = {}
                for part in node.args:
                    for entry, numbers in self._arrays(part).items():
                        total[entry] = total[entry] + numbers if entry in total else numbers
                return total
            if isinstance(node, numeric.ProductExpression):
                one, other = map(self._arrays, node.args)
                if any(one) and any(other):
                    raise NotAffineError
                return {k + j: a * b for k, a in one.items() for j, b in other.items()}
            if isinstance(node, numeric.NegationExpression):
                return {entry: -numbers for entry, numbers in self._arrays(node.args[0]).items()}
            if isinstance(node, numeric.DivisionExpression):
                below = self._arrays(node.args[1])
                if any(below) or np.any(np.equal(below[0], 0)):
                    raise NotAffineError
                return {entry: numbers / below[0] for entry, numbers in self._arrays(node.args[0]).items()}
            if array_leaves(node):
                return {0: self._data(node)}
        found = self._apart(node)
        self.lost |= any(number.__class__ is _Noted for number in found.numbers)
        return {k: sum(n for n, f in zip(found.numbers, found.factors, strict=True) if f == k) for k in found.factors}

    def _data(self, node: Any) -> FloatArray:
        """The entries of an array of data, whatever its formula; refused where the vector occurs in it."""
        shape = np.broadcast_shapes(*(leaf.values.shape for leaf in array_leaves(node)))
        leaves = list(all_leaves(node))
        if len(shape) != 1 or any(id(leaf) in self.axes for leaf in leaves):
            raise NotAffineError
        self.lasting = self.lasting and not leaves
        self.lost |= bool(leaves)
        try:
            return block_values(TermBlock(node, (None,) * shape[0]), "")
        except (DataError, CannotCompileError):
            raise NotAffineError from None

    def _array_of(self, leaf: ArrayLeaf) -> dict[int, Any]:
        """An array of placeholders, Params and expressions."""
        result: dict[int, Any] = {}
        for place, each in enumerate(leaf.values.flat):
            for entry, number in self._arrays(each).items():
                result.setdefault(entry, np.zeros(leaf.values.size))[place] += number
        return {entry: numbers.reshape(leaf.values.shape) for entry, numbers in result.items()}

    def _flush(self) -> None:
        """Put the terms since the last block aside, in their order."""
        if self.numbers:
            if self.notes is not None:
                place = len(self.parts)
                self.noted += [(place, k, each) for k, each in enumerate(self.numbers) if each.__class__ is _Noted]
            self.parts.append(
                (np.array(self.factors, dtype=np.int64), np.array(self.columns, dtype=np.int64), np.array(self.numbers))
            )
            for each in (self.factors, self.columns, self.numbers):
                each.clear()

    def _leaf(self, node: Any, scale: float, factor: int, column: int) -> None:
        """A placeholder, a variable or a Param."""
        place = self.axes.get(id(node))
        if place is not None:
            if factor:
                raise NotAffineError
            self._put(scale, place + 1, column)
        elif node.is_variable_type() and not node.fixed:
            if column:
                raise NotAffineError
            self._put(scale, factor, self.column(node))
        else:
            number = node(exception=False)
            if number.__class__ not in native_numeric_types:
                # What has no value is named by the ordinary way of reading rows.
                raise NotAffineError
            self._put(_product(scale, self._note(number, node)), factor, column)

    def _note(self, number: Any, node: Any) -> Any:
        """A number that was read from data, with what it was read from, where that is asked for."""
        self.lasting = False
        if self.notes is None:
            return number
        self.notes.append(node)
        return _Noted.of(number, node)

    def _put(self, number: float, factor: int, column: int) -> None:
        self.factors.append(factor)
        self.columns.append(column)
        self.numbers.append(number)

    def _push_product(
        self, stack: list[tuple[Any, float, int, int]], left: Any, right: Any, scale: float, factor: int, column: int
    ) -> None:
        for one, other in ((left, right), (right, left)):
            if one.__class__ in native_numeric_types:
                stack.append((other, scale * one, factor, column))
                return
            if one.__class__ in native_types:
                raise NotAffineError
            if not one.is_expression_type():
                place = self.axes.get(id(one))
                if place is not None:
                    if factor:
                        raise NotAffineError
                    stack.append((other, scale, place + 1, column))
                elif one.is_variable_type() and not one.fixed:
                    if column:
                        raise NotAffineError
                    stack.append((other, scale, factor, self.column(one)))
                else:
                    number = one(exception=False)
                    if number.__class__ not in native_numeric_types:
                        raise NotAffineError
                    stack.append((other, _product(scale, self._note(number, one)), factor, column))
                return
        self._multiply(stack, left, right, scale, factor, column)

    def _multiply(
        self, stack: list[tuple[Any, float, int, int]], left: Any, right: Any, scale: float, factor: int, column: int
    ) -> None:
        """Two sums: every term of one by every term of the other."""
        first, second = self._apart(left), self._apart(right)
        if first.parts or second.parts:
            # A dot is not taken apart: it is read once for each term of the other sum.
            terms, other = (second, left) if first.parts else (first, right)
            if terms.parts or terms.variables or (factor and any(terms.factors)):
                raise NotAffineError
            for number, k in zip(terms.numbers, terms.factors, strict=True):
                stack.append((other, _product(scale, number), factor or k, column))
            return
        for number, k, j in zip(first.numbers, first.factors, first.columns, strict=True):
            for other, other_k, other_j in zip(second.numbers, second.factors, second.columns, strict=True):
                if (k > 0) + (other_k > 0) + (factor > 0) > 1 or (j > 0) + (other_j > 0) + (column > 0) > 1:
                    raise NotAffineError
                variable = first.variables[j - 1] if j else second.variables[other_j - 1] if other_j else None
                place = column if variable is None else self.column(variable)
                self._put(_product(_product(scale, number), other), factor or k or other_k, place)

    def _apart(self, expression: Any) -> _Terms:
        terms = _Terms(self.axes, self.notes)
        terms.add(expression, 1.0)
        self.lasting = self.lasting and terms.lasting
        self.lost |= terms.lost
        return terms

    def _number(self, node: Any) -> float | None:
        """The value of what holds neither the vector nor a free variable, else None."""
        if node.__class__ in native_numeric_types:
            return float(node)
        stack = [node]
        while stack:
            each = stack.pop()
            if each.__class__ in native_types:
                continue
            if each.is_expression_type():
                block = block_of(each)
                stack.extend(each.args if block is None else block.leaves())
            elif id(each) in self.axes or (each.is_variable_type() and not each.fixed):
                return None
        self.lasting = False
        try:
            value = node(exception=False)
        except (ArithmeticError, ValueError, TypeError):
            return None
        return self._note(float(value), node) if value.__class__ in native_numeric_types else None

    def array(self) -> FloatArray:
        """The terms as an array (1 + d, 1 + variables)."""
        size = (len(self.axes) + 1, len(self.variables) + 1)
        self._flush()
        summed = np.zeros(size)
        for place, (factors, columns, numbers) in enumerate(self.parts):
            # One after the other in the order of the row, so that the same terms give the same bits.
            if numbers.ndim == 2 and len(np.unique(columns)) == columns.size:
                summed[factors, columns] += numbers
            elif numbers.ndim == 1 and place == 0:
                counted = np.bincount(factors * size[1] + columns, numbers, size[0] * size[1])
                summed = counted.astype(float).reshape(size)
            else:
                np.add.at(summed, (factors, columns), numbers)
        return summed


def is_affine(expression: Any, placeholders: Sequence[Any]) -> bool:
    """Whether an expression is affine in the placeholders and in its variables."""
    terms = _Terms({id(each): entry for entry, each in enumerate(placeholders)})
    try:
        terms.add(expression, 1.0)
    except NotAffineError:
        return False
    return True


def affine_trace(relation: Any, axes: Mapping[int, int], noted: bool = False) -> AffineTrace | None:
    """A relation read as affine in the placeholders ``axes`` ({id: entry}) and in its variables; None if it is not.

    Sides are turned as the user wrote them: ``>=`` gives a lower limit. With ``noted`` the row tells itself again when
    data have changed.
    """
    notes: list[Any] | None = [] if noted else None
    terms = _Terms(axes, notes)
    limits: list[_Terms] = []
    try:
        if isinstance(relation, relational.RangedExpression):
            low, body, high = relation.args
            terms.add(body, 1.0)
            limits = [terms._apart(limit) for limit in (low, high)]
            if any(limit.variables for limit in limits):
                return None
        else:
            left, right = relation.args
            terms.add(left, 1.0)
            terms.add(right, -1.0)
    except NotAffineError:
        return None
    found = _trace_of(relation, terms, limits)
    if found is None or notes is None or found.lasting:
        return found
    everything = [terms, *limits]
    numbers = [number for each in everything for _, _, number in each.noted]
    numbers += [number for each in everything for _, number, _ in each.noted_blocks]
    known = set().union(*(number.nodes() for number in numbers))
    if any(each.lost for each in everything) or not {id(node) for node in notes} <= known:
        return found

    def again() -> AffineTrace | None:
        for each in everything:
            for part, place, number in each.noted:
                each.parts[part][2][place] = number.now()
            for part, number, rows in each.noted_blocks:
                each.parts[part][2][...] = number.now() * rows
        renewed = _trace_of(relation, terms, limits)
        # The very same tuple: what it is asked is then known.
        return None if renewed is None else replace(renewed, variables=found.variables, again=again)

    return replace(found, again=again)


def _trace_of(relation: Any, terms: _Terms, limits: Sequence[_Terms]) -> AffineTrace | None:
    """The terms of a relation as arrays; None where they are no finite numbers."""
    sides = [limit.array()[:, 0] for limit in limits] if limits else [None, np.zeros(len(terms.axes) + 1)]
    whole = terms.array()
    matrix, constant = whole[:, 1:], whole[:, 0]
    if not terms.variables or not np.all(np.isfinite(whole)):
        # What is wrong with it is said by the ordinary way of reading rows.
        return None
    lower, upper = (None if side is None or np.isinf(side[0]) else side - constant for side in sides)
    if isinstance(relation, relational.EqualityExpression):
        # Pyomo turns the sides of some; what has variables stands on the left.
        sign = -1.0 if reads_as_lower(relation) else 1.0
        assert upper is not None
        return AffineTrace(tuple(terms.variables), sign * matrix, sign * upper, sign * upper, terms.lasting)
    if not limits and reads_as_lower(relation):
        assert upper is not None
        return AffineTrace(tuple(terms.variables), -matrix, -upper, None, terms.lasting)
    return AffineTrace(tuple(terms.variables), matrix, lower, upper, terms.lasting)


def affine_rows(trace: AffineTrace, column_of: Mapping[int, int], known: SharedVariables) -> AffineRows:
    """The rows of a trace over the columns of a problem ({id of variable: column})."""
    columns, order = known.columns(trace.variables, column_of)
    return AffineRows(columns, trace.matrix[:, order], trace.lower, trace.upper)
