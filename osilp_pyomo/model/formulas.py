"""Coefficient trees as numpy functions.

``group_terms`` sorts trees by shape. Thousands of arrivals usually share one shape, which becomes one numpy
function with an array for each leaf that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_logical_types, native_numeric_types, native_types
from pyomo.core.base.units_container import _PyomoUnit
from pyomo.core.expr import logical_expr as logical
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.formula import Formula, kernel_of
from osilp_pyomo.index.nodes import FUNCTIONS
from osilp_pyomo.index.where import FormulaRegion
from osilp_pyomo.model.arrays.blocks import TermBlock
from osilp_pyomo.model.arrays.trees import ArrayLeaf, ArrayProduct, IndexPlaceholder, array_leaves, is_expression
from osilp_pyomo.model.profile import ProfileExpression
from osilp_pyomo.offline.rows import TermGroup


class CannotCompileError(Exception):
    """An expression node has no numpy counterpart; the rule is then sampled, and told why."""


# -- shapes ------------------------------------------------------------------------------------


def _token(node: Any) -> tuple[str, int]:
    """Name and number of arguments of an expression node."""
    name = _name_of_class(node.__class__)
    if name is None:
        if isinstance(node, relational.InequalityExpression):
            name = "<" if node.strict else "<="
        elif isinstance(node, numeric.UnaryFunctionExpression) and node.getname() in FUNCTIONS:
            name = node.getname()
        elif node.is_named_expression_type():
            name = "same"
        else:
            raise CannotCompileError(f"{type(node).__name__} has no numpy counterpart")
    return name, len(node.args)


@cache
def _name_of_class(kind: type) -> str | None:
    """Name of a node where its class alone tells it."""
    return next((name for base, name in _NODE_NAMES if issubclass(kind, base)), None)


_NODE_NAMES: list[tuple[type, str]] = [
    (ProfileExpression, "curve"),
    (numeric.SumExpression, "+"),
    (numeric.ProductExpression, "*"),
    (numeric.DivisionExpression, "/"),
    (numeric.PowExpression, "**"),
    (numeric.NegationExpression, "-"),
    (numeric.AbsExpression, "abs"),
    (numeric.Expr_ifExpression, "if"),
    (numeric.MinExpression, "min"),
    (numeric.MaxExpression, "max"),
    (relational.RangedExpression, "ranged"),
    (relational.EqualityExpression, "=="),
    (relational.NotEqualExpression, "!="),
    (logical.AndExpression, "and"),
    (logical.OrExpression, "or"),
    (logical.NotExpression, "not"),
]


def shape_of(expression: Any, axes: Mapping[int, int]) -> tuple[tuple[Any, ...], list[Any]]:
    """Write a tree in prefix order: operators and coordinates make the shape, all other leaves are slots.

    ``axes`` maps the id of each placeholder to its coordinate.
    """
    if expression.__class__ in native_numeric_types:
        return ("#",), [expression]
    shape: list[Any] = []
    slots: list[Any] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if node.__class__ in native_types:
            if node.__class__ in native_logical_types:
                node = float(node)
            elif node.__class__ not in native_numeric_types:
                raise CannotCompileError(f"{node!r} is not a number")
            shape.append("#")
            slots.append(node)
        elif id(node) in axes:
            shape.append(axes[id(node)])
        elif node.__class__ is ArrayProduct:
            stack.append(node.written_out())
        elif node.is_expression_type():
            token = _token(node)
            if token[0] == "+" and token[1] == 0:
                shape.append("#")
                slots.append(0.0)
                continue
            shape.append(token)
            if token[0] == "curve":
                slots.append(node.curve)
            elif token[0] == "ranged":
                shape[-1] = (f"ranged{''.join('<' if strict else '=' for strict in _strict(node))}", 3)
            stack.extend(reversed(node.args))
        else:
            shape.append("#")
            slots.append(node)
    return tuple(shape), slots


def _strict(node: Any) -> tuple[bool, bool]:
    strict = node.strict
    return tuple(strict) if isinstance(strict, tuple) else (strict, strict)


#: Terms of a block to be compiled: their columns, the names of their variables, and the block.
BlockTerms = tuple[NDArray[np.int64], tuple[str, ...], TermBlock]

#: For each slot of a group how its data are read again; None where they are numbers that cannot change.
SlotReaders = tuple[Callable[[], tuple[Any, str | None, str | None]] | None, ...]


def group_terms(
    terms: Sequence[tuple[int, str, Any]],
    axes: Mapping[int, int],
    what: str,
    blocks: Sequence[BlockTerms] = (),
    readers: list[SlotReaders] | None = None,
) -> tuple[TermGroup, ...]:
    """Compile (column, variable name, coefficient) terms and blocks of them, one function for each shape.

    To ``readers`` is added, for each group, how its data are read again.

    Raises
    ------
    CannotCompileError
        A node has no numpy counterpart.
    DataError
        A Param in a coefficient has no value.
    """
    groups = []
    if blocks:
        terms = list(terms)
        for columns, variables, block in blocks:
            if has_one_shape(block.tree):
                groups.append(_block_group(columns, variables, block, axes, what, readers))
            else:
                names = variables if len(variables) == 1 else [""] * len(columns)
                terms += [
                    (column, names[place % len(names)], block.coefficient(place))
                    for place, column in enumerate(columns.tolist())
                ]
    members: dict[tuple[Any, ...], list[tuple[int, str, list[Any]]]] = {}
    for column, variable, coefficient in terms:
        shape, slots = shape_of(coefficient, axes)
        members.setdefault(shape, []).append((column, variable, slots))
    for shape, found in members.items():
        slots, parameters, literals, again = [], [], [], []
        for leaves in zip(*(entry[2] for entry in found), strict=True):
            slot, name, literal = slot_of(leaves, what)
            literals.append(literal)
            if literal is None:
                slots.append(slot)
                parameters.append(name)
                if readers is not None:
                    lasting = all(leaf.__class__ in native_numeric_types for leaf in leaves)
                    again.append(None if lasting else partial(slot_of, leaves, what))
        if readers is not None:
            readers.append(tuple(again))
        formula = Formula(shape, tuple(literals))
        source, switches = formula.source(slots)
        groups.append(
            TermGroup(
                kernel_of(source),
                tuple(slots),
                np.array([entry[0] for entry in found], dtype=np.int64),
                tuple(parameters),
                tuple(dict.fromkeys(entry[1] for entry in found)),
                tuple(map(kernel_of, switches)),
                formula,
            )
        )
    return tuple(groups)


def read_again(group: TermGroup, readers: SlotReaders) -> TermGroup:
    """A group with the data of now; the same one where none has changed."""
    slots = tuple(slot if reader is None else reader()[0] for slot, reader in zip(group.slots, readers, strict=True))
    if all(map(_same_data, slots, group.slots)):
        return group
    assert group.formula is not None
    # Knots of curves stand in the source.
    source, switches = group.formula.source(slots)
    return replace(group, kernel=kernel_of(source), slots=slots, switches=tuple(map(kernel_of, switches)))


def _same_data(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return isinstance(one, CurveStack) and isinstance(other, CurveStack) and one.same_values(other)


def condition_region(expression: Any, axes: Mapping[int, int], what: str) -> FormulaRegion | None:
    """A comparison of functions of the index as a region; None where it is none, or holds variables."""
    if not hasattr(expression, "is_relational") or not expression.is_expression_type():
        return None
    shape, leaves = shape_of(expression, axes)
    if any(leaf.__class__ not in native_types and leaf.is_variable_type() and not leaf.fixed for leaf in leaves):
        return None
    found = [slot_of((leaf,), what) for leaf in leaves]
    formula = Formula(shape, tuple(literal for _, _, literal in found))
    return FormulaRegion(formula, tuple(slot for slot, _, literal in found if literal is None))


def has_one_shape(tree: Any) -> bool:
    """Whether all entries of an array's tree have one formula: its arrays hold data, and no placeholders or trees."""
    if any(_has_array_exponent(node) for node in _nodes(tree)):
        # Whole powers are multiplied out, each in its own way.
        return False
    for leaf in array_leaves(tree):
        if not leaf.numbers:
            examples = dict(zip(map(type, leaf.values.flat), leaf.values.flat, strict=True))
            if IndexPlaceholder in examples or any(map(is_expression, examples.values())):
                return False
    return True


def _nodes(tree: Any) -> Iterator[Any]:
    """The inner nodes of a tree."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.__class__ not in native_types and node.is_expression_type():
            yield node
            stack.extend(node.args)


def _has_array_exponent(node: Any) -> bool:
    return isinstance(node, numeric.PowExpression) and bool(array_leaves(node.args[1]))


def _block_group(
    columns: NDArray[np.int64],
    variables: tuple[str, ...],
    block: TermBlock,
    axes: Mapping[int, int],
    what: str,
    readers: list[SlotReaders] | None = None,
) -> TermGroup:
    """The terms of a block as one group."""
    shape, leaves = shape_of(block.tree, axes)
    slots, parameters, literals, again = [], [], [], []
    for leaf in leaves:
        slot, name, literal = array_slot(leaf, len(columns), what)
        literals.append(literal)
        if literal is None:
            slots.append(slot)
            parameters.append(name)
            lasting = leaf.__class__ is ArrayLeaf and leaf.numbers
            again.append(None if lasting else partial(array_slot, leaf, len(columns), what))
    if readers is not None:
        readers.append(tuple(again))
    formula = Formula(shape, tuple(literals))
    source, switches = formula.source(slots)
    kernels = tuple(map(kernel_of, switches))
    return TermGroup(kernel_of(source), tuple(slots), columns, tuple(parameters), variables, kernels, formula)


def array_slot(leaf: Any, count: int, what: str) -> tuple[Any, str | None, str | None]:
    """The data of one slot of a block: (array or curves, Param name, literal)."""
    if leaf.__class__ is not ArrayLeaf:
        if leaf.__class__ in native_numeric_types:
            return None, None, literal_text(leaf)
        return slot_of((leaf,) * count, what)
    values = np.broadcast_to(leaf.values, (count,))
    if not leaf.numbers:
        return slot_of(tuple(values), what)
    if np.all(values == values[0]):
        return None, None, literal_text(values[0])
    return np.array(values), None, None


def block_values(block: TermBlock, what: object) -> FloatArray:
    """The coefficients of a block without an index, as numbers."""
    columns = np.arange(len(block.variables))
    numbers = np.zeros(len(columns))
    for group in group_terms((), {}, str(what), [(columns, (), block)]):
        numbers[group.columns] = group.block(slice(None), np.zeros((1, 0)))[:, 0]
    return numbers


def slot_of(leaves: tuple[Any, ...], what: str) -> tuple[Any, str | None, str | None]:
    """The data of one slot over all columns: (array or curves, Param name, literal)."""
    first = leaves[0]
    if first.__class__ in native_numeric_types:
        if all(leaf.__class__ in native_numeric_types for leaf in leaves):
            if all(leaf == first for leaf in leaves):
                return None, None, literal_text(first)
            return np.array(leaves, dtype=float), None, None
    elif hasattr(first, "curve_table"):
        tables = {id(leaf): leaf.curve_table() for leaf in {id(leaf): leaf for leaf in leaves}.values()}
        return CurveStack.of_tables(tuple(tables[id(leaf)] for leaf in leaves)), None, None
    numbers = np.empty(len(leaves))
    for k, leaf in enumerate(leaves):
        if leaf.__class__ in native_numeric_types:
            numbers[k] = leaf
            continue
        number = leaf(exception=False)
        if number is None:
            raise DataError(f"{what}: '{leaf.name}' has no value; give it one before solving.")
        if number.__class__ not in native_numeric_types:
            raise DataError(f"{what}: '{leaf.name}' is {number!r}, which is not a number.")
        numbers[k] = number
    return numbers, _common_name(leaves), None


def literal_text(number: Any) -> str:
    """A number as it stands in a formula: whole ones without a point, so that they are told as exponents."""
    return repr(int(number) if float(number).is_integer() else float(number))


def _common_name(leaves: tuple[Any, ...]) -> str | None:
    """Name of the one indexed component that holds all the leaves, if there is one."""
    # A unit, such as km, is a leaf of value 1 that belongs to no component.
    if any(leaf.__class__ in native_types or leaf.__class__ is _PyomoUnit for leaf in leaves):
        return None
    owner = leaves[0].parent_component()
    if not owner.is_indexed() or owner.ctype.__name__ == "Var":
        return None
    return str(owner.name) if all(leaf.parent_component() is owner for leaf in leaves) else None
