"""Units of Pyomo (by pint) in a model with semi-infinite constraints: whether they fit together, and what they are.

Pyomo's own check asks every constraint for its body, which a semi-infinite one refuses. Where a model has no units,
pint is never imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.base.units_container import PintUnitExtractionVisitor, _PyomoUnit, units
from pyomo.core.base.units_container import UnitsError as PyomoUnitsError
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr.expr_common import ExpressionType

from osilp_pyomo.errors import UnitsError
from osilp_pyomo.index.curves.spaces import VectorFunctions
from osilp_pyomo.model.arrays.blocks import block_of
from osilp_pyomo.model.arrays.trees import ArrayLeaf, ArrayProduct
from osilp_pyomo.model.constraint.component import semi_infinite_families
from osilp_pyomo.model.profile import NPVProfileExpression, ProfileExpression
from osilp_pyomo.model.trace import active_objective, ordinary_constraints, refuse_no_model
from osilp_pyomo.offline.units import Units

# How a number without a unit is told.
_NONE = "no unit"
_SUMS = (numeric.SumExpression, numeric.NPV_SumExpression, numeric.LinearExpression)


def check_units(model: Any) -> dict[str, str]:
    """Check that units fit together in every active row and in the objective, the index's own unit among them.

    Params, variables, Profiles and FunctionVars are declared with ``units=``, and the index of a
    :class:`SemiInfiniteConstraint` with ``units=`` of the constraint: one unit, or one for each coordinate.
    A number without a unit is dimensionless; 0 fits everything. In ``where=`` a number has the unit of what it bounds.

    Parameters
    ----------
    model : ConcreteModel
        Read only.

    Returns
    -------
    dict
        For each row and the objective its unit; "not checked: ..." for a rule that is called at each point, and for
        terms whose units nobody knows. Empty for a model without units.

    Raises
    ------
    UnitsError
        Where two units do not fit together; the text names both.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 10))
    >>> m.place = pyo.Param(initialize=3, mutable=True, units=pyo.units.km)
    >>> m.width = pyo.Param(initialize=500, mutable=True, units=pyo.units.m)
    >>> m.power = pyo.Var(units=pyo.units.MW)
    >>> m.least = pyo.Objective(expr=m.power)
    >>> m.kept = osilp.SemiInfiniteConstraint(
    ...     m.u, units=pyo.units.km, rule=lambda m, u: m.power >= 4 * pyo.units.MW * pyo.exp(-(u - m.place) / m.width))
    >>> check_units(m)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.UnitsError: 'kept': exp takes a number without a unit (got ...).
    >>> m.del_component(m.kept)
    >>> m.kept = osilp.SemiInfiniteConstraint(
    ...     m.u, units=pyo.units.km, rule=lambda m, u: m.power >= 4 * pyo.units.MW * (u / m.place))
    >>> check_units(m)
    {'kept': 'MW', 'least': 'MW'}
    """
    refuse_no_model(model, "check", "check_units")
    if not _any_units():
        return {}
    found: dict[str, str] = {}
    for family in semi_infinite_families(model):
        if family.trace is None:
            found[family.name] = "not checked: its rule is called at each point"
        else:
            reader = _Reader(family.parent_component().placeholders)
            # Bounds that are numbers are in the unit of what they bound, as those of a Var are.
            reader.numbers_fit = getattr(family.parent_block(), "holds_functions", False)
            found[family.name] = _checked(family.name, reader, family.trace)
        _check_condition(family)
    for row in ordinary_constraints(model):
        found[row.name] = _checked(row.name, _Reader(), row.expr)
    objective = active_objective(model)
    if objective is not None:
        found[objective.name] = _checked(objective.name, _Reader(), objective.expr)
    return found if any(text not in (_NONE, "") for text in found.values()) else {}


def units_told(model: Any, families: Sequence[Any]) -> Units:
    """Units as texts, for what is printed; of a sum the first term is read, for :func:`check_units` checks the rest."""
    if not _any_units():
        return Units()
    rows, prices, index = {}, {}, {}
    objective = active_objective(model)
    earned = None if objective is None else _first_unit(_Reader(), objective.expr)
    for family in families:
        placeholders = family.parent_component().placeholders
        for placeholder in placeholders:
            if placeholder.get_units() is not None:
                index[str(placeholder)] = str(placeholder.get_units())
        side = None if family.trace is None else _side_unit(_Reader(placeholders), family.trace)
        if side is None:
            continue
        rows[family.name] = _text(side)
        if earned is not None:
            prices[family.name] = _text(earned / side)
    told = Units("" if earned is None else _text(earned), rows, prices, index)
    return told if _says_something(told) else Units()


def unit_of(expression: Any) -> Any:
    """The unit of an expression as Pyomo has units, for a variable that stands for it; None where there is none."""
    if not _any_units():
        return None
    unit = _first_unit(_Reader(), expression)
    return None if unit is None or unit.dimensionless else _PyomoUnit(unit, units._pint_registry)


def _any_units() -> bool:
    # A unit cannot be made without pint.
    return "pint" in sys.modules


def _says_something(told: Units) -> bool:
    texts = [told.objective, *told.rows.values(), *told.index.values()]
    return any(text not in (_NONE, "") for text in texts)


def _text(unit: Any) -> str:
    """A unit as Pyomo prints it."""
    return str(f"{unit:~C}").replace("**", "^") or _NONE


def _named(unit: Any) -> str:
    text = _text(unit)
    return text if text == _NONE else f"the unit {text}"


# -- reading expressions -----------------------------------------------------------------------------------------


class _UnknownUnitError(Exception):
    """An expression whose units nobody knows."""


class _Reader(PintUnitExtractionVisitor):
    """Units of expressions, with nodes and leaves of this package; ``placeholders`` are those of the index."""

    def __init__(self, placeholders: Sequence[Any] = ()) -> None:
        super().__init__(units)
        self._placeholders = tuple(placeholders)
        self.numbers_fit = False

    def unit_of(self, expression: Any) -> Any:
        """The unit of an expression, checked."""
        try:
            return units._pint_registry.Unit(self.walk_expression(expression))
        except TypeError as error:
            raise _UnknownUnitError(str(error).partition(" was encountered")[0]) from None

    def same(self, named: Sequence[tuple[Any, Any]]) -> Any:
        """The one unit of several things, each given with what it is called."""
        first, unit = named[0]
        for other, another in named[1:]:
            if not self._equivalent_pint_units(unit, another):
                raise UnitsError(f"{_short(first)} has {_named(unit)}, and {_short(other)} has {_named(another)}")
        return unit

    def beforeChild(self, node: Any, child: Any, child_idx: int) -> Any:  # noqa: N802
        kind = child.__class__
        if kind in native_types:
            return super().beforeChild(node, child, child_idx)
        block = block_of(child)
        if block is not None:
            return False, self._unit_of_block(block)
        if kind is ArrayLeaf:
            return False, self._unit_of_array(child)
        if kind is ArrayProduct:
            return False, self.same([(entry, self.walk_expression(entry)) for entry in child.entries])
        owner = child.parent_block() if hasattr(child, "parent_block") else None
        if getattr(owner, "holds_functions", False) and child.is_variable_type():
            return False, self._unit_of_coefficient(owner, child)
        return super().beforeChild(node, child, child_idx)

    def exitNode(self, node: Any, data: Any) -> Any:  # noqa: N802
        if isinstance(node, ProfileExpression | NPVProfileExpression):
            curve = node.curve.values.flat[0] if isinstance(node.curve, ArrayLeaf) else node.curve
            owner = curve.parent_component() if hasattr(curve, "parent_component") else None
            return self._plain(getattr(owner, "_units", None))
        return super().exitNode(node, data)

    def _get_unit_for_equivalent_children(self, node: Any, child_units: Sequence[Any]) -> Any:
        pairs = list(zip(node.args, child_units, strict=True))
        # Zero fits everything.
        counted = [(arg, unit) for arg, unit in pairs if arg.__class__ not in native_numeric_types or arg != 0]
        return self.same(counted or pairs)

    def _get_dimensionless_with_dimensionless_children(self, node: Any, child_units: Sequence[Any]) -> Any:
        for unit in child_units:
            if not self._equivalent_to_dimensionless(unit):
                raise UnitsError(
                    f"{node.getname()} takes a number without a unit (got {_text(unit)} in {_short(node)})"
                )
        return self._pint_dimensionless

    def _plain(self, unit: Any) -> Any:
        return self._pint_dimensionless if unit is None else units._get_pint_units(unit)

    def _unit_of_array(self, leaf: ArrayLeaf) -> Any:
        if leaf.numbers:
            return self._pint_dimensionless
        # Members of one component have one unit.
        owners: dict[Any, Any] = {}
        for entry in leaf.values.flat:
            owner = entry.parent_component() if hasattr(entry, "parent_component") else None
            owners.setdefault(id(entry) if owner is None else id(owner), entry)
        return self.same([(entry, self.walk_expression(entry)) for entry in owners.values()])

    def _unit_of_block(self, block: Any) -> Any:
        owner = block.variables[0].parent_block()
        if not getattr(owner, "holds_functions", False):
            parts = {id(each.parent_component()): each for each in block.variables}
            variables = self.same([(each, self.walk_expression(each)) for each in parts.values()])
            return self.walk_expression(block.tree) * variables
        unit = self._plain(owner.units_of_values)
        for order, coordinate in zip(block.orders, self._coordinates(owner), strict=False):
            unit = unit / coordinate**order
        return unit

    def _coordinates(self, owner: Any) -> list[Any]:
        """Units of the coordinates of a FunctionVar where it is used."""
        found = [self._plain(each.get_units()) for each in self._placeholders if each.index_of in list(owner.over)]
        return found or [self._pint_dimensionless] * 64

    def _unit_of_coefficient(self, owner: Any, coefficient: Any) -> Any:
        """That of the function, divided by that of the entries whose product it multiplies."""
        unit = self._plain(owner.units_of_values)
        label = coefficient.index()[-1] if isinstance(coefficient.index(), tuple) else coefficient.index()
        space = next(iter(owner.spaces.values()))
        if isinstance(space, VectorFunctions) and label in space.labels:
            coordinates = self._coordinates(owner)
            for place in space.monomials[space.labels.index(label)]:
                unit = unit / coordinates[place]
        return unit


# Pyomo finds what reads a node in two tables of functions: ours stand where they replace one of its own.
_REPLACED = {
    getattr(PintUnitExtractionVisitor, name): getattr(_Reader, name)
    for name in ("_get_unit_for_equivalent_children", "_get_dimensionless_with_dimensionless_children")
}
for _table in ("node_type_method_map", "unary_function_method_map"):
    _own = {kind: _REPLACED.get(read, read) for kind, read in getattr(PintUnitExtractionVisitor, _table).items()}
    setattr(_Reader, _table, _own)


def _checked(name: str, reader: _Reader, expression: Any, sides: Sequence[Any] = ()) -> str:
    """The unit of a row or an objective, as a text; of a relation some ``sides`` may be chosen."""
    try:
        if sides:
            return _text(reader.same([(side, reader.unit_of(side)) for side in sides]))
        if expression.is_expression_type(ExpressionType.RELATIONAL):
            return _text(reader.same(list(_sides(reader, expression))))
        return _text(reader.unit_of(expression))
    except _UnknownUnitError as error:
        return f"not checked: {error}"
    except UnitsError as error:
        raise UnitsError(f"'{name}': {error}.") from None
    except PyomoUnitsError as error:
        raise UnitsError(f"'{name}': {str(error).rstrip('.')}.") from None


def _check_condition(family: Any) -> None:
    """Check the condition of a family, where it can be read; numbers in it are in the unit of what they bound."""
    owner = family.parent_component()
    if owner.where is None:
        return
    try:
        answer = owner.where(owner.parent_block(), *owner.arguments(family.index(), owner.placeholders))
    except Exception:  # the user's code, which may be written for numbers
        return
    parts = [answer]
    while parts:
        part = parts.pop()
        if part.__class__ in native_types or not hasattr(part, "is_expression_type"):
            continue
        if part.is_expression_type(ExpressionType.RELATIONAL):
            sides = [side for side in part.args if side is not None and side.__class__ not in native_numeric_types]
            if len(sides) > 1:
                _checked(family.name, _Reader(owner.placeholders), part, sides)
        elif part.is_expression_type(ExpressionType.LOGICAL):
            parts += part.args


def _sides(reader: _Reader, relation: Any) -> Iterator[tuple[Any, Any]]:
    """The sides of a relation with their units; a side that is 0 fits everything."""
    sides = [each for each in relation.args if each is not None]
    zeros = [each for each in sides if each.__class__ in native_numeric_types and (each == 0 or np.isinf(each))]
    counted = [each for each in sides if not any(each is zero for zero in zeros)] or sides
    for side in counted:
        unit = reader.unit_of(side)
        plain = reader.numbers_fit and not getattr(side, "is_potentially_variable", bool)()
        if not (plain and unit.dimensionless):
            yield side, unit


def _side_unit(reader: _Reader, relation: Any) -> Any:
    for side in relation.args:
        if side is not None and (side.__class__ not in native_numeric_types or side != 0):
            unit = _first_unit(reader, side)
            if unit is not None:
                return unit
    return None


def _first_unit(reader: _Reader, expression: Any) -> Any:
    """The unit of the first term; None where it is not known."""
    while expression.__class__ in _SUMS and block_of(expression) is None and expression.nargs():
        expression = expression.arg(0)
    try:
        return reader.unit_of(expression)
    except (_UnknownUnitError, UnitsError, PyomoUnitsError):
        return None


def _short(expression: Any) -> str:
    text = str(expression)
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"
