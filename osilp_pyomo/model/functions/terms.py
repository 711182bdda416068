"""Functions of the index times coefficients, as Pyomo expressions: what ``m.order[3](xi)`` and ``m.f(u)`` return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DeclarationError
from osilp_pyomo.index.curves.spaces import CurveFunctions, Curves, Gaussians, VectorFunctions
from osilp_pyomo.model.arrays.blocks import TermBlock, light_node
from osilp_pyomo.model.arrays.expressions import IndexSymbol, apply, as_array, unwrap
from osilp_pyomo.model.arrays.trees import ArrayLeaf, ArrayProduct, IndexPlaceholder
from osilp_pyomo.model.profile import ProfileExpression, profile_node


class BasisCurve:
    """One function of a basis, or a derivative of it, where formulas hold the curve of a Profile.

    ``occurrence`` is the name of the FunctionVar and the order of the derivative along each coordinate.
    """

    __slots__ = ("curve", "name", "occurrence")

    def __init__(self, name: str, curve: Any, occurrence: tuple[str, tuple[int, ...]]) -> None:
        self.name, self.curve, self.occurrence = name, curve, occurrence

    def curve_table(self) -> Any:
        """The curve as plain data."""
        return self.curve

    def value_at(self, *coordinates: float) -> float:
        """The curve at one point."""
        return float(self.curve(*(np.array([value], dtype=float) for value in coordinates))[0])

    # What Pyomo and the readers of trees ask of a leaf; of a Profile's curve they hear the same.
    def is_expression_type(self, *_: Any) -> bool:
        """It is a leaf."""
        return False

    is_variable_type = is_numeric_type = is_parameter_type = is_component_type = is_expression_type

    def __str__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> BasisCurve:
        return self


def is_number(value: Any) -> bool:
    """Whether something is a plain number, of Python or of numpy."""
    return value.__class__ in native_numeric_types or isinstance(value, np.number)


def as_leaf(value: Any, what: object) -> Any:
    """A coordinate as Pyomo takes it; what holds a decision is refused."""
    value = unwrap(value)
    if is_number(value):
        return float(value)
    if not hasattr(value, "is_expression_type") or not value.is_numeric_type():
        raise DeclarationError(f"{what}: it takes numbers and the index of a constraint (got {type(value).__name__}).")
    if value.is_potentially_variable():
        raise DeclarationError(
            f"{what}: a function at a point that is itself a decision ({value}) is not linear in the decisions; give "
            "it numbers, or the index of a constraint."
        )
    return value


def vector_terms(space: VectorFunctions, coefficients: Sequence[Any], point: Sequence[Any], label: str) -> Any:
    """A decision rule at a vector of numbers and placeholders: a sum of coefficient times function."""
    if all(map(is_number, point)):
        values = space.evaluate(np.array([point], dtype=float))[0]
        return _with_numbers(values, coefficients)
    if len(space) == 1:
        return coefficients[0] + 0.0
    form = space.affine_form
    if form is not None:
        entries = tuple(point[place] for place in form[0].tolist())
        if all(entry.__class__ is IndexPlaceholder for entry in entries):
            # The constant, and each entry that is seen, as one array: affine rows are read from it.
            tree = ArrayLeaf(form[1]) + ArrayProduct(entries, form[2])
            return numeric.SumExpression([light_node(TermBlock(tree, tuple(coefficients), label))])
    terms = []
    for each, coefficient in zip(space.monomials, coefficients, strict=True):
        factor: Any = 1.0
        for place in each:
            factor = factor * point[place]
        terms.append(factor * coefficient)
    return sum(terms)


def curve_terms(
    space: CurveFunctions,
    coefficients: Sequence[Any],
    point: Sequence[Any],
    order: tuple[int, ...],
    occurrence: tuple[str, tuple[int, ...]],
    label: str,
) -> Any:
    """A curve, or a derivative of it, at a point of numbers and placeholders."""
    if all(map(is_number, point)):
        return _with_numbers(space.evaluate(np.array([point], dtype=float), order)[0], coefficients, order)
    if space.own:
        space.refuse_derivative(order)
        return sum(
            unwrap(function(*map(_symbol, point))) * c for function, c in zip(space.own, coefficients, strict=True)
        )
    tree: Any = None
    for axis, functions in enumerate(space.axes):
        factor = _axis_tree(functions, space.numbers[:, axis], point[axis], order[axis], occurrence)
        tree = factor if tree is None else tree * factor
    return numeric.SumExpression([light_node(TermBlock(tree, tuple(coefficients), label, tuple(order)))])


def _symbol(value: Any) -> Any:
    return value if is_number(value) else IndexSymbol(value)


def _axis_tree(functions: Any, numbers: Any, at: Any, order: int, occurrence: tuple[str, tuple[int, ...]]) -> Any:
    """The functions along one axis as a tree over arrays."""
    if isinstance(functions, Gaussians):
        chosen = Gaussians(functions.name, functions.centres[numbers], functions.widths[numbers])
        found = chosen.formula(_symbol(at), order, lambda part: apply(pyo.exp, part))
        return as_array(found).tree
    assert isinstance(functions, Curves)
    if is_number(at):
        return ArrayLeaf(functions.evaluate(np.array([at]), order)[0][numbers])
    curves = [BasisCurve(each.name, each, occurrence) for each in functions.derived(order)]
    held = np.empty(len(numbers), dtype=object)
    held[:] = [curves[number] for number in numbers.tolist()]
    return profile_node((at,), ArrayLeaf(held))


def _with_numbers(values: FloatArray, coefficients: Sequence[Any], orders: tuple[int, ...] = ()) -> Any:
    """Numbers times coefficients; functions that are zero there are left out."""
    places = np.flatnonzero(values)
    if not len(places):
        return 0.0 * coefficients[0]
    variables = tuple(coefficients[k] for k in places.tolist())
    block = TermBlock(ArrayLeaf(values[places].copy()), variables, orders=orders)
    return numeric.SumExpression([light_node(block)])


def occurrences(expression: Any) -> dict[tuple[str, tuple[int, ...]], None]:
    """Which FunctionVars stand in an expression over their curves, and by which derivatives."""
    from osilp_pyomo.model.arrays.blocks import light_nodes

    found: dict[tuple[str, tuple[int, ...]], None] = {}
    stack = [expression, *(node._args_.block.tree for node in light_nodes(expression))]
    while stack:
        node = stack.pop()
        if not hasattr(node, "is_expression_type"):
            continue
        if isinstance(node, ProfileExpression):
            curve = node.curve.values.flat[0] if isinstance(node.curve, ArrayLeaf) else node.curve
            if isinstance(curve, BasisCurve):
                found[curve.occurrence] = None
        if node.is_expression_type():
            stack.extend(node.args)
    return found
