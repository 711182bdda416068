"""Integrals and expectations of rules: linear terms whose coefficients are integrals, read when the model is solved.

The rule is traced once over placeholders. Each coefficient and constant becomes a node of a Pyomo expression that is a
function of the data in it (Params, fixed variables, another index): it has the number that its integral has now, for
every solver. Terms that share one formula stand in one light node, and are integrated together.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyomo.common.log import LoggingIntercept
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError, DeclarationError, NotConvexError, OsilpError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.index.quadrature.measures import Integrand, Measure, refuse_inaccurate
from osilp_pyomo.model.arrays.blocks import TermBlock, block_of, light_node
from osilp_pyomo.model.arrays.expressions import ArrayError, IndexSymbol, Vector, unwrap
from osilp_pyomo.model.arrays.substitute import substituted
from osilp_pyomo.model.arrays.trees import TRACED_PLAINLY, ArrayLeaf, IndexPlaceholder, all_leaves
from osilp_pyomo.model.formulas import CannotCompileError, block_values, literal_text, shape_of
from osilp_pyomo.model.integrals.nodes import (
    WORDS,
    IntegralCurve,
    IntegralExpression,
    NPVIntegralExpression,
    Over,
    OverMeasure,
    OverSets,
)
from osilp_pyomo.model.linear import LinearTerms, free_variables, leaves, linear_terms, short_text, times
from osilp_pyomo.model.same_row import StandIns, same_expression
from osilp_pyomo.model.sets import is_continuous, is_uncertainty_set

# Coordinates of an integral at most: one lies within the other.
_MOST_AXES = 3
# Values of the variables for which the nodes of an integrand that is not linear are chosen, beside those they have.
_DRAWS = 6
# Share of the nodes at which such an integrand must be a number for values of the variables to tell anything.
_DEFINED = 0.9


# -- the public functions --------------------------------------------------------------------------------------------


def integral(sets: Any, rule: Callable[..., Any], *, weight: Callable[..., Any] | None = None) -> Any:
    """The integral of a rule over a continuous set, for objectives and constraints.

    Coefficients are integrated when the model is solved, by adaptive Gauss-Kronrod quadrature, to nearly full
    precision; the result says what was reached, and warns above a share of 1e-9 of the integral of the absolute value.
    Kinks and jumps are found where conditions, ``abs``, ``Min`` and ``Max`` switch, at knots of Profiles,
    and at the points that the ContinuousSet holds.

    Parameters
    ----------
    sets : ContinuousSet, RangeSet(a, b, 0), or up to three of them in a tuple
        What is integrated over; ends may be infinite.
    rule : callable
        ``rule(u)``, or ``rule(u, v)`` over two sets: an expression, linear in the variables. Convex ones are added up
        at nodes that are chosen when this is called.
    weight : callable, optional
        A function of the index by which the rule is multiplied, such as a Profile.

    Returns
    -------
    Pyomo expression
        A sum of variables times integrals; every solver of Pyomo sees their numbers.

    Raises
    ------
    DeclarationError
        Where the rule cannot be traced, or a set is not continuous.
    DataError
        When the model is solved: an integral that cannot be computed to six digits, with the place.

    Examples
    --------
    The best parabola above exp on [0, 1] in the sense of area:

    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var([0, 1, 2])
    >>> m.area = pyo.Objective(expr=osilp.integral(m.u, lambda u: m.x[0] + m.x[1] * u + m.x[2] * u**2))
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x[0] + m.x[1] * u + m.x[2] * u**2 >= pyo.exp(u)
    >>> result = osilp.solve(m)
    >>> round(result.objective, 9), bool(result.integrals["error"].max() < 1e-14)
    (1.726279776, True)
    """
    over = _over_sets(sets)
    return integrated(rule, over, weight, f"integral over {over.text()}", "integral")


def _over_sets(sets: Any) -> OverSets:
    singles = tuple(sets) if isinstance(sets, tuple | list) else (sets,)
    names: list[str] = []
    for number, each in enumerate(singles):
        if is_uncertainty_set(each) or not hasattr(each, "construct") or not _continuous(each):
            raise DeclarationError(
                "integral: it goes over a ContinuousSet, RangeSet(a, b, 0) with a < b, or several of them in a tuple "
                f"(got {getattr(each, 'name', type(each).__name__)}); over samples or a distribution use "
                "osilp.expectation, and over an ordinary Set sum()."
            )
        named = each.parent_block() is not None
        name = each.local_name if named else f"u{number + 1}" if len(singles) > 1 else "u"
        names.append(name if name not in names else f"{name}_{number + 1}")
    if not 1 <= len(singles) <= _MOST_AXES:
        raise DeclarationError(
            f"integral: it goes over one to {_MOST_AXES} sets (got {len(singles)}); for more, take the mean of a "
            "sample by osilp.expectation."
        )
    return OverSets(singles, tuple(names))


def _continuous(each: Any) -> bool:
    try:
        if not each.is_constructed():
            each.construct()
        return is_continuous(each)
    except (AttributeError, DeclarationError):
        return False


# -- from a rule to terms --------------------------------------------------------------------------------------------


def integrated(
    rule: Callable[..., Any], over: Over, weight: Callable[..., Any] | None, what: str, verb: str, vector: bool = False
) -> Any:
    """The integral of a rule over a measure as an expression."""
    if not callable(rule) or hasattr(rule, "is_expression_type"):
        raise DeclarationError(f"{verb}: it needs a rule, a function of the index (got {type(rule).__name__}).")
    if weight is not None and not callable(weight):
        raise DeclarationError(
            f"{verb}: weight= must be a function of the index, such as a Profile (got {type(weight).__name__})."
        )
    placeholders = tuple(IndexPlaceholder(mutable=True, name=name) for name in over.names)
    for placeholder in placeholders:
        placeholder.construct()

    def called(point: Sequence[Any]) -> Any:
        arguments = [Vector(point)] if vector else list(point)
        found = unwrap(rule(*arguments))
        if found.__class__ is not bool and not _is_expression(found):
            got = "a relation" if hasattr(found, "is_relational") else type(found).__name__
            raise DeclarationError(f"{what}: its rule must return an expression (got {got}).")
        return found if weight is None else unwrap(weight(*arguments)) * found

    traced = _traced(called, placeholders, what)
    _refuse_other_values(traced, called, placeholders, over, what)
    terms = linear_terms(traced, what, keep_nonlinear=True)
    axes = {id(placeholder): axis for axis, placeholder in enumerate(placeholders)}
    return _expression(terms, axes, placeholders, over, what)


def _is_expression(found: Any) -> bool:
    if found.__class__ in native_types:
        return found.__class__ in native_numeric_types
    return hasattr(found, "is_numeric_type") and bool(found.is_numeric_type())


def _traced(called: Callable[[Sequence[Any]], Any], placeholders: Sequence[Any], what: str) -> Any:
    """What the rule gives for symbols; those that understand numpy where plain ones do not do."""
    with LoggingIntercept(io.StringIO(), "pyomo"):
        token = TRACED_PLAINLY.set(True)
        try:
            return called(placeholders)
        except Exception:
            # Whatever it was is told of the second call.
            pass
        finally:
            TRACED_PLAINLY.reset(token)
        token = TRACED_PLAINLY.set(False)
        try:
            return called([IndexSymbol(placeholder) for placeholder in placeholders])
        except ArrayError as error:
            raise DeclarationError(f"{what}: {error}") from None
        except OsilpError:
            raise
        except Exception as error:
            first = " ".join(str(error).split()).split(". ")[0].rstrip(".")
            raise DeclarationError(
                f"{what}: its rule cannot be traced ({type(error).__name__}: {first}); write it with Pyomo's functions "
                "of the index, Expr_if for if, and tables of numbers as a Profile."
            ) from error
        finally:
            TRACED_PLAINLY.reset(token)


def _refuse_other_values(
    traced: Any, called: Callable[[Sequence[Any]], Any], placeholders: Sequence[Any], over: Over, what: str
) -> None:
    """Refuse a rule that for numbers says something else than its trace."""
    for point in over.trials():
        try:
            given = called([float(number) for number in point])
            same = same_expression(traced, given, StandIns(placeholders, point))
        except DeclarationError:
            # A Profile without values yet: there is nothing to compare with.
            return
        except OsilpError:
            raise
        except (ArithmeticError, ValueError):
            continue
        except TypeError:
            # Pyomo's land and lor take no plain booleans.
            continue
        if not same:
            at = ", ".join(f"{name} = {number:g}" for name, number in zip(over.names, point, strict=True))
            raise DeclarationError(
                f"{what}: traced with a symbol its rule gives another expression than called with a number, at {at}; "
                "write it with Pyomo's functions of the index, and no conditions of Python on it."
            )


def _expression(terms: LinearTerms, axes: dict[int, int], placeholders: Sequence[Any], over: Over, what: str) -> Any:
    """Terms with their coefficients integrated, as one expression."""
    pairs: list[tuple[Any, Any]] = list(terms.items())
    parts: list[Any] = []
    for block in terms.blocks:
        if _has_array_curve(block.tree):
            pairs += [(each, block.coefficient(place)) for place, each in enumerate(block.variables)]
        else:
            tree = _integral_of_block(block, axes, over, what)
            parts.append(light_node(TermBlock(tree, block.variables)))
    groups: dict[Any, list[tuple[Any, Any, list[Any]]]] = {}
    for variable, coefficient in pairs:
        outside, inside = _factored(coefficient, axes)
        if any(map(_holds_variable, leaves(outside))):
            # Fixed variables stay outside where they can: other solvers know products of them.
            shape, slots = _shape(inside, axes, what)
            node = _node(shape, [(slot,) for slot in slots], over, short_text(str(inside), 60))
            parts.append(outside * node * variable)
            continue
        shape, slots = _shape(coefficient, axes, what)
        key = (shape, *((id(slot) if hasattr(slot, "curve_table") else _kind(slot)) for slot in slots))
        groups.setdefault(key, []).append((variable, coefficient, slots))
    for found in groups.values():
        shape, _ = _shape(found[0][1], axes, what)
        columns = list(zip(*(slots for _, _, slots in found), strict=True))
        text = short_text(str(found[0][1]), 60) + (", ..." if len(found) > 1 else "")
        variables = tuple(variable for variable, _, _ in found)
        held = any(_holds_variable(slot) for column in columns for slot in column)
        if held or len(found) == 1:
            for variable, coefficient, slots in found:
                own = short_text(str(coefficient), 60)
                parts.append(_node(shape, [(slot,) for slot in slots], over, own) * variable)
        else:
            parts.append(light_node(TermBlock(_node(shape, columns, over, text), variables)))
    for constant in terms.constants:
        outside, inside = _factored(constant, axes)
        shape, slots = _shape(inside, axes, what)
        parts.append(times(outside, _node(shape, [(slot,) for slot in slots], over, short_text(str(inside), 60))))
    parts += _at_nodes(terms.nonlinear, axes, placeholders, over, what)
    if not parts:
        return 0
    return parts[0] if len(parts) == 1 and not terms.variables else numeric.SumExpression(parts)


def _factored(coefficient: Any, axes: dict[int, int]) -> tuple[Any, Any]:
    """A coefficient as a factor that does not depend on the coordinates, and one that does."""
    if coefficient.__class__ in native_types or not isinstance(coefficient, numeric.ProductExpression):
        return 1, coefficient
    outside, inside = 1, 1
    for part in coefficient.args:
        if any(id(leaf) in axes for leaf in leaves(part)):
            factor, rest = _factored(part, axes)
            outside, inside = times(outside, factor), times(inside, rest)
        else:
            outside = times(outside, part)
    return outside, inside


def _shape(coefficient: Any, axes: dict[int, int], what: str) -> tuple[Any, list[Any]]:
    try:
        return shape_of(coefficient, axes)
    except CannotCompileError as error:
        raise DeclarationError(
            f"{what}: {short_text(str(coefficient))} cannot be read ({error}); write it with Pyomo's functions."
        ) from None


def _kind(slot: Any) -> str:
    return "number" if slot.__class__ in native_numeric_types else "data"


def _holds_variable(slot: Any) -> bool:
    return slot.__class__ not in native_types and getattr(slot, "is_variable_type", bool)()


def _has_array_curve(tree: Any) -> bool:
    """Whether each entry of an array's tree has a Profile of its own."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.__class__ in native_types or not node.is_expression_type():
            continue
        if getattr(node, "curve", None).__class__ is ArrayLeaf:
            return True
        stack.extend(node.args)
    return False


def _integral_of_block(block: TermBlock, axes: dict[int, int], over: Over, what: str) -> Any:
    """The coefficients of a block, integrated: one tree again, whose arrays are its arguments."""
    shape, slots = _shape(block.tree, axes, what)
    return _node(shape, [(slot,) for slot in slots], over, short_text(str(block.tree), 60))


def _node(shape: Any, columns: Sequence[Sequence[Any]], over: Over, text: str) -> Any:
    """The node of one formula with data in its slots, each a column with an entry for each term."""
    literals: list[str | None] = []
    fill: list[Any] = []
    arguments: list[Any] = []
    for column in columns:
        first = column[0]
        if all(each.__class__ in native_numeric_types and each == first for each in column):
            literals.append(literal_text(first))
            continue
        literals.append(None)
        if hasattr(first, "curve_table"):
            fill.append(first)
            continue
        fill.append(len(arguments))
        if all(each is first for each in column):
            arguments.append(first)
        else:
            numbers = all(each.__class__ in native_numeric_types for each in column)
            array = np.array(column, dtype=float) if numbers else np.empty(len(column), dtype=object)
            if not numbers:
                array[:] = column
            arguments.append(ArrayLeaf(array))
    formula = written = Formula(shape, tuple(literals))
    if not arguments:
        # A node needs something that it depends on.
        formula = formula.weighted()
        fill.append(0)
        arguments.append(1.0)
    name = f"{WORDS[isinstance(over, OverMeasure)]} over {over.text()} of {text}"
    curve = IntegralCurve(formula, tuple(fill), over, name, len(arguments), written)
    kind = IntegralExpression if any(map(_holds_variable, arguments)) else NPVIntegralExpression
    return kind(arguments, curve)  # type: ignore[arg-type]


# -- what is not linear in the variables -----------------------------------------------------------------------------


def _at_nodes(
    nonlinear: Sequence[tuple[Any, Any]], axes: dict[int, int], placeholders: Sequence[Any], over: Over, what: str
) -> list[Any]:
    """Terms that are not linear as sums over nodes, which are chosen for some values of the variables."""
    parts = []
    for factor, node in nonlinear:
        tree = times(factor, node)
        places, weights = _nodes_for(tree, axes, over, what)
        for point, weight in zip(places, weights.tolist(), strict=True):
            if weight == 0:
                continue
            at = dict(zip(map(id, placeholders), map(float, point), strict=True))
            parts.append(weight * _with_numbers(tree, at))
    return parts


def _with_numbers(tree: Any, at: Mapping[int, float]) -> Any:
    """A tree at numbers, its dots too where nothing but numbers is left in them."""

    def in_dot(node: Any) -> Any:
        block = block_of(node)
        if block is not None:
            if not all(hasattr(leaf, "curve_table") for leaf in all_leaves(block.tree)):
                return node
            return light_node(TermBlock(ArrayLeaf(block_values(block, "integral")), block.variables))
        if node.__class__ in native_types or not node.is_expression_type():
            return node
        parts = [in_dot(part) for part in node.args]
        if all(new is old for new, old in zip(parts, node.args, strict=True)):
            return node
        return node.create_node_with_local_data(parts if isinstance(node, numeric.SumExpression) else tuple(parts))

    return in_dot(substituted(tree, lambda leaf: at.get(id(leaf), leaf)))


def _nodes_for(tree: Any, axes: dict[int, int], over: Over, what: str) -> tuple[FloatArray, FloatArray]:
    """Points and weights that integrate a tree well for several values of its variables."""
    variables = [each for found in free_variables(tree) for each in found]
    shape, leaves = _shape(tree, axes, what)
    own = {id(each) for each in variables}
    random = np.random.default_rng(20260)
    draws = {key: random.uniform(-1, 1, _DRAWS) for key in dict.fromkeys(map(id, variables))}
    for each in variables:
        draws[id(each)] = _values_of(each, draws[id(each)])
    literals: list[str | None] = []
    slots: list[Any] = []
    for leaf in leaves:
        if leaf.__class__ in native_numeric_types:
            literals.append(literal_text(leaf))
            continue
        literals.append(None)
        if hasattr(leaf, "curve_table"):
            slots.append(CurveStack.of_tables((leaf.curve_table(),)))
        elif id(leaf) in own:
            slots.append(draws[id(leaf)])
        else:
            value = None if leaf.__class__ is IndexPlaceholder else leaf(exception=False)
            if value is None:
                raise DataError(
                    f"{what}: {short_text(str(tree))} is not linear in the variables, and its nodes are chosen for the "
                    f"data that it holds: '{leaf.name}' has no value."
                )
            slots.append(np.full(_DRAWS, float(value)))
    moving = Integrand(Formula(shape, tuple(literals)), slots)
    _refuse_moving_kinks(moving, tree, over, what)
    measure = over.measure()
    places, weights = measure.points(moving, _DRAWS)
    _refuse_no_integral(moving, places, weights, measure, tree, over, what)
    return places, weights


def _refuse_no_integral(
    moving: Integrand, places: FloatArray, weights: FloatArray, measure: Measure, tree: Any, over: Over, what: str
) -> None:
    """Refuse what has no integral, or none that the nodes give; values at which it is not defined tell nothing."""
    everyone = np.arange(_DRAWS)
    with np.errstate(all="ignore"):
        terms = moving.values(everyone, [np.broadcast_to(axis, (_DRAWS, len(axis))) for axis in places.T]) * weights
        defined = np.isfinite(terms).mean(axis=1) > _DEFINED
        at_nodes = np.where(np.isfinite(terms), terms, 0.0).sum(axis=1)
        found = measure.integrate(moving, _DRAWS)
        apart = np.abs(found.values - at_nodes)
    found = replace(
        found,
        errors=np.where(defined, np.maximum(found.errors, np.where(np.isfinite(apart), apart, np.inf)), 0.0),
        values=np.where(defined, found.values, 0.0),
        rounding=np.where(defined, found.rounding, 0.0),
    )
    refuse_inaccurate(found, f"{what} of {short_text(str(tree), 60)}", ", ".join(over.names), measure)


def _values_of(variable: Any, draws: FloatArray) -> FloatArray:
    """Some values of a variable within its bounds: its own, if it has one, and others."""
    low, high = variable.lb, variable.ub
    if low is not None and high is not None:
        values = low + (high - low) * (draws + 1) / 2
    else:
        start = 0.0 if variable.value is None else float(variable.value)
        values = start + draws * max(1.0, abs(start))
        if low is not None:
            values = low + np.abs(values - low)
        elif high is not None:
            values = high - np.abs(high - values)
    if variable.value is not None:
        values[0] = variable.value
    return np.asarray(values)


def _refuse_moving_kinks(integrand: Integrand, tree: Any, over: Over, what: str) -> None:
    """Refuse kinks whose place depends on the variables: no nodes that stay where they are see them."""
    if not integrand.switches or not isinstance(over, OverSets):
        return
    axes = [np.broadcast_to(axis, (_DRAWS, len(axis))) for axis in over.trials().T]
    for switch in integrand.switches:
        found = switch(np.arange(_DRAWS), axes)
        if not np.allclose(found, found[:1], rtol=1e-12, atol=0, equal_nan=True):
            raise NotConvexError(
                f"{what}: {short_text(str(tree))} has a kink whose place depends on the variables, so that no fixed "
                "nodes integrate it; take the mean over points by osilp.expectation, or bound it by a curve that is "
                "linear in variables."
            )
