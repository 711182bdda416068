"""Variables as columns, members of index sets as domains."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.base.component_namer import index_repr

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DataError, ModelError, OsilpError
from osilp_pyomo.index.convex_sets import Body, BoxBody, ProductBody
from osilp_pyomo.index.domain import Domain, PointFunction
from osilp_pyomo.index.sobol import sobol_points
from osilp_pyomo.index.where import FormulaRegion
from osilp_pyomo.model.arrays.blocks import TermBlock
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint, held
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.formulas import block_values, condition_region
from osilp_pyomo.model.functions.component import function_vars
from osilp_pyomo.model.linear import LinearTerms, leaves, number_of, short_text
from osilp_pyomo.model.profile import Profile
from osilp_pyomo.model.sets import SetOfEachFamily, body_of, is_uncertainty_set

# Points at which a traced condition is compared with the user's function.
_COMPARED = 256


class Names(Sequence[str]):
    """Names of components, asked for one by one: thousands of them take longer than an LP.

    Members know their model by weak references only; it is held here, so that they have names as long as these live.
    """

    def __init__(self, components: Sequence[Any]) -> None:
        self._components = components
        self._model = components[0].model() if len(components) else None
        self._told: list[str] = []

    def __getitem__(self, k: Any) -> Any:
        return self._components[k].name

    def __iter__(self) -> Iterator[str]:
        if len(self._told) != len(self._components):
            self._told = list(self._tell())
        return iter(self._told)

    def _tell(self) -> Iterator[str]:
        # The name of a member is that of its component, which is asked for once, and its index.
        known: dict[int, str] = {}
        for each in self._components:
            owner = each.parent_component()
            if owner is each:
                yield each.name
                continue
            if id(owner) not in known:
                known[id(owner)] = owner.name
            yield known[id(owner)] + _index_text(each.index())

    def __len__(self) -> int:
        return len(self._components)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def _index_text(index: Any) -> str:
    """A member's index as Pyomo writes it; whole numbers, as most are, without its detours."""
    if index.__class__ is int:
        return f"[{index}]"
    if index.__class__ is tuple and all(part.__class__ is int for part in index):
        return f"[{','.join(map(str, index))}]"
    text: str = index_repr(index)
    return text


class Columns:
    """The variables of the problem in the order in which they were met."""

    def __init__(self, model: Any) -> None:
        self.root = model.model()
        self.variables: list[Any] = []
        self.of: dict[int, int] = {}

    def register(self, terms: LinearTerms, what: object) -> None:
        new = {key: variable for key, variable in terms.variables.items() if key not in self.of}
        foreign = self.foreign(LinearTerms(new)) if new else None
        if foreign is not None:
            raise ModelError(
                f"{what}: it uses the variable '{foreign.name}' of another model (a rule that names the model it was "
                "written for, and not its first argument, does that in a clone); use the rule's own model."
            )
        for key, variable in new.items():
            self.of[key] = len(self.variables)
            self.variables.append(variable)

    def foreign(self, terms: LinearTerms) -> Any:
        """A variable of another model among the terms, or None."""
        owners = {id(variable.parent_component()): variable for variable in terms.variables.values()}
        return next((variable for variable in owners.values() if variable.model() is not self.root), None)

    def register_all(self, model: Any) -> None:
        for variable in model.component_data_objects(pyo.Var, active=True, descend_into=True):
            if not variable.fixed and id(variable) not in self.of:
                self.of[id(variable)] = len(self.variables)
                self.variables.append(variable)

    def values(self, terms: LinearTerms, what: object) -> dict[int, float]:
        """Coefficients by column, evaluated."""
        result = {}
        for variable, coefficient in terms.items():
            if id(variable) not in self.of:
                raise ModelError(
                    f"{what}: the variable '{variable.name}' does not belong to an active block of the model."
                )
            result[self.of[id(variable)]] = number_of(coefficient, what)
        for block in terms.blocks:
            numbers = block_values(block, what)
            for place in np.flatnonzero(~np.isfinite(numbers)).tolist():
                number_of(block.coefficient(place), what)
            columns = self.columns_of(block, what)
            # A zero in an array is no term.
            result.update(
                (column, number) for column, number in zip(columns.tolist(), numbers.tolist(), strict=True) if number
            )
        return result

    def columns_of(self, block: TermBlock, what: object) -> NDArray[np.int64]:
        """The columns of a block's variables."""
        found = [self.of.get(id(variable), -1) for variable in block.variables]
        if -1 in found:
            variable = block.variables[found.index(-1)]
            raise ModelError(f"{what}: the variable '{variable.name}' does not belong to an active block of the model.")
        return np.array(found, dtype=np.int64)


class _Where:
    """The user's ``where`` for one family, as a predicate on points.

    A point at which its numbers are not defined, as the logarithm of zero, lies outside.
    """

    def __init__(self, data: SemiInfiniteConstraintData) -> None:
        self._data, self._owner = data, data.parent_component()
        self._function = PointFunction(self._at)

    def __call__(self, points: FloatArray) -> BoolArray:
        with np.errstate(all="ignore"):
            values = self._function(points)
        if values.dtype.kind not in "biuf":
            raise ModelError(
                f"SemiInfiniteConstraint '{self._data.name}': where= must return true or false for numbers "
                f"(got {type(values.flat[0]).__name__})."
            )
        return values.astype(bool) & ~np.isnan(values)

    def _at(self, *point: Any) -> Any:
        """What the condition says at a point, or at arrays of points."""
        try:
            return self._truth(self._called(point))
        except OsilpError:
            raise
        except Exception as error:  # the user's code
            if _is_undefined(error):
                return False
            if np.ndim(point[0]):
                # What is wrong is told of single points.
                raise
            self._refuse_wrong_arguments(point)
            what, names = f"SemiInfiniteConstraint '{self._data.name}'", self._owner.index_names()
            place = ", ".join(f"{name} = {number:g}" for name, number in zip(names, point, strict=True))
            told = str(error).strip().partition("\n")[0]
            raise ModelError(
                f"{what}: where= raises {type(error).__name__} at {place} ({told}); it must say true or false at every "
                "point of the index."
            ) from error

    def _called(self, point: Sequence[Any]) -> Any:
        owner, index = self._owner, self._data.index()
        block = owner.parent_block()
        try:
            return owner.where(block, *owner.arguments(index, point))
        except AttributeError:
            # Pyomo's land and lor take no plain booleans.
            return owner.where(block, *owner.arguments(index, [held(float(number)) for number in point]))

    def _refuse_wrong_arguments(self, point: Sequence[Any]) -> None:
        owner = self._owner
        given = [owner.parent_block(), *owner.arguments(self._data.index(), point)]
        try:
            signature = inspect.signature(owner.where)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*given)
        except TypeError as error:
            called = f"{getattr(owner.where, '__name__', 'where')}{signature}"
            raise ModelError(
                f"SemiInfiniteConstraint '{self._data.name}': where= must take {len(given)} arguments, the model and "
                f"the members of its index, as its rule does ({error}); it is {called}."
            ) from None

    def _truth(self, answer: Any) -> Any:
        """What a condition says; a relation with a mutable Param in it is evaluated, one with a variable refused."""
        if not hasattr(answer, "is_expression_type"):
            return answer
        what = f"SemiInfiniteConstraint '{self._data.name}'"
        for leaf in leaves(answer):
            if leaf.is_variable_type() and not leaf.fixed:
                raise ModelError(
                    f"{what}: where= holds the variable '{leaf.name}' ({short_text(str(answer))}); which points of the "
                    "index count may depend on data, not on decisions."
                )
            if leaf(exception=False) is None:
                raise DataError(f"{what}: where= holds '{leaf.name}', which has no value; give it one before solving.")
        return pyo.value(answer)


# How the errors of numbers that are not defined begin, but for those of arithmetic itself.
_UNDEFINED = re.compile(r"math domain error|expected a (number|positive|nonnegative|noninteger)|.*'complex'")


def _is_undefined(error: Exception) -> bool:
    """Whether an error says that a number is not defined: the root or the logarithm of a negative one, a pole."""
    if isinstance(error, ArithmeticError):
        return True
    return isinstance(error, (ValueError, TypeError)) and _UNDEFINED.match(str(error)) is not None


class Domains:
    """The domains of a model's families; families of one uncertainty set share one convex set.

    ``before`` are convex sets as they were, by the set that they were made of: they are taken again where ``same``
    says of two that they have the same numbers.
    """

    def __init__(
        self, before: Mapping[int, Body] | None = None, same: Callable[[Body, Body], bool] | None = None
    ) -> None:
        self.bodies: dict[int, Body] = {}
        self._uncertain: dict[int, Domain] = {}
        self._before, self._same = before or {}, same

    def of(self, data: SemiInfiniteConstraintData) -> Domain:
        """The domain of a family as declared."""
        owner = data.parent_component()
        if id(owner) in self._uncertain:
            return self._uncertain[id(owner)]
        if not any(is_uncertainty_set(each) for each in owner.continuous_sets):
            return _box_domain(data)
        if isinstance(owner.continuous_sets[0], SetOfEachFamily):
            index = data.index() if owner.is_indexed() else ()
            return Domain.of_body(tuple(owner.index_names()), owner.continuous_sets[0].body_for(index))
        self._uncertain[id(owner)] = self._uncertain_domain(owner)
        return self._uncertain[id(owner)]

    def _uncertain_domain(self, owner: SemiInfiniteConstraint) -> Domain:
        bodies = [self._body(each, owner.name) for each in owner.continuous_sets]
        body = bodies[0] if len(bodies) == 1 else ProductBody(tuple(bodies))
        return Domain.of_body(tuple(owner.index_names()), body)

    def _body(self, each: Any, name: str) -> Body:
        """The convex set, or scenarios, of one set of PyROS; equal for every family that uses it."""
        what = f"SemiInfiniteConstraint '{name}'"
        if is_uncertainty_set(each):
            if id(each) not in self.bodies:
                now, before = body_of(each, what), self._before.get(id(each))
                same = before is not None and self._same is not None and self._same(before, now)
                self.bodies[id(each)] = before if before is not None and same else now
            return self.bodies[id(each)]
        low, high = each.bounds()
        if low is None or high is None:
            raise ModelError(
                f"{what}: the index '{each.name}' is unbounded, which it cannot be beside an uncertainty set; give it "
                "bounds."
            )
        return BoxBody(np.array([float(low)]), np.array([float(high)]))


def domain_of(data: SemiInfiniteConstraintData) -> Domain:
    """The domain of one family as declared."""
    return Domains().of(data)


def _box_domain(data: SemiInfiniteConstraintData) -> Domain:
    owner = data.parent_component()
    bounds = [each.bounds() for each in owner.continuous_sets]
    curves = list(data.model().component_objects(Profile, descend_into=True))
    curved = list(function_vars(data.model()))
    marks = []
    for each in owner.continuous_sets:
        found = [np.array([float(member) for member in each])] if each.isfinite() else []
        found.append(np.array(getattr(each, "looked_at", ()), dtype=float))
        for curve in curves:
            for axis, knots in zip(curve._over, curve.marks(), strict=True):
                if axis is each:
                    found += knots if curve._kind == "linear" else [_from_both_sides(k) for k in knots]
        found += [jump for block in curved for jump in block.marks_along(each)]
        marks.append(np.unique(np.concatenate([np.empty(0), *found])))
    lower = np.array([-np.inf if low is None else low for low, _ in bounds], dtype=float)
    upper = np.array([np.inf if high is None else high for _, high in bounds], dtype=float)
    inside = None if owner.where is None else _Where(data)
    region = None if inside is None else _traced_where(data, inside, lower, upper)
    predicate = inside if region is None else region.contains
    return Domain(tuple(owner.index_names()), lower, upper, predicate, tuple(marks), region=region)


def _traced_where(
    data: SemiInfiniteConstraintData, inside: _Where, lower: FloatArray, upper: FloatArray
) -> FormulaRegion | None:
    """A condition as a formula of the index; None where it cannot be traced, or says something else at numbers."""
    owner = data.parent_component()
    try:
        answer = owner.where(owner.parent_block(), *owner.arguments(data.index(), owner.placeholders))
        axes = {id(placeholder): axis for axis, placeholder in enumerate(owner.placeholders)}
        region = condition_region(answer, axes, f"SemiInfiniteConstraint '{data.name}'")
    except Exception:  # the user's code, which was written for numbers
        return None
    if region is None:
        return None
    finite = np.isfinite(lower) & np.isfinite(upper)
    low = np.where(finite, lower, np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 100, -50.0)))
    high = np.where(finite, upper, low + 100)
    points = low + sobol_points(_COMPARED, len(lower)) * (high - low)
    return region if np.array_equal(region.contains(points), inside(points)) else None


def _from_both_sides(places: FloatArray) -> FloatArray:
    """Places where a row may jump, with the nearest numbers on both sides: its one-sided limits."""
    return np.concatenate([np.nextafter(places, -np.inf), places, np.nextafter(places, np.inf)])
