"""What a FunctionVar was declared as, and what it is called with: sets, members, entries and bounds, each checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pyomo.core.base.set import SetData

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._reporting import warn_user
from osilp_pyomo.errors import DeclarationError, OtherSetWarning
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.functions.terms import as_leaf, is_number
from osilp_pyomo.model.sets import (
    SetOfEachFamily,
    body_of,
    is_continuous,
    is_uncertainty_set,
    labels_of,
    same_set,
    single_sets,
)


def continuous_sets(over: Any, block: Any, what: str) -> tuple[Any, ...]:
    """The sets it is a function of: uncertainty sets, or continuous ones."""
    if callable(over) and not isinstance(over, SetData) and not is_uncertainty_set(over):
        over = over(block)
    parts = tuple(single_sets(over if isinstance(over, tuple | list) else (over,)))
    for each in parts:
        if not is_uncertainty_set(each) and not isinstance(each, SetData):
            raise DeclarationError(
                f"{what}: over= must be a ContinuousSet, RangeSet(a, b, 0) or an uncertainty set of PyROS "
                f"(got {type(each).__name__})."
            )
        if not is_uncertainty_set(each) and not each.is_constructed():
            each.construct()
        if not is_continuous(each):
            raise DeclarationError(
                f"{what}: over= is the finite set '{each.name}'; give it as an index, FunctionVar(sets, "
                "over=...), or declare an ordinary Var over it."
            )
    kinds = {is_uncertainty_set(each) for each in parts}
    if len(kinds) > 1:
        raise DeclarationError(
            f"{what}: over= mixes an uncertainty set with an interval; declare one rule for each of some "
            "points of the interval, FunctionVar(points, over=uncertainty_set), and write what holds between them."
        )
    return parts


def members_of(sets: Sequence[Any], what: str) -> tuple[list[Any], int]:
    """Members of the ordinary sets, [None] where there are none, and how many entries each has."""
    if not sets:
        return [None], 1
    members: list[tuple[Any, ...]] = [()]
    for each in single_sets(sets):
        if isinstance(each, SetData) and not each.is_constructed():
            each.construct()
        if is_uncertainty_set(each) or is_continuous(each):
            raise DeclarationError(
                f"{what}: it is indexed by the continuous set "
                f"'{getattr(each, 'name', type(each).__name__)}'; what it is a function of is given by over=..."
            )
        parts = [each_one if isinstance(each_one, tuple) else (each_one,) for each_one in each]
        members = [(*left, *right) for left in members for right in parts]
    if not members:
        raise DeclarationError(f"{what}: its index sets have no members.")
    sizes = {len(member) for member in members}
    if len(sizes) > 1:
        raise DeclarationError(f"{what}: members of its index set have different lengths.")
    return [member[0] if len(member) == 1 else member for member in members], sizes.pop()


def box_of(over: Sequence[Any], what: str) -> Domain:
    """The box that continuous sets make together."""
    bounds = [each.bounds() for each in over]
    names = coordinate_names(over)
    for name, (low, high) in zip(names, bounds, strict=True):
        if low is None or high is None:
            raise DeclarationError(
                f"{what}: its index '{name}' is unbounded, and functions of a basis need an interval; give it bounds."
            )
        if not low < high:
            raise DeclarationError(f"{what}: its index '{name}' has the bounds [{low}, {high}].")
    lower, upper = (np.array([pair[side] for pair in bounds], dtype=float) for side in (0, 1))
    return Domain(names, lower, upper)


def coordinate_names(over: Sequence[Any]) -> tuple[str, ...]:
    """What the coordinates are called: names of continuous sets, entries of an uncertain vector ``xi``."""
    if not is_uncertainty_set(over[0]):
        names = []
        for number, each in enumerate(over):
            named = each.parent_block() is not None and each.local_name not in names
            names.append(each.local_name if named else f"u{number + 1}")
        return tuple(names)
    several = len(over) > 1
    return tuple(
        name
        for n, each in enumerate(over)
        for name in labels_of(each) or [f"xi{n + 1 if several else ''}[{k}]" for k in range(each.dim)]
    )


def coordinate_sizes(over: Sequence[Any], domain: Domain | None, what: str) -> FloatArray:
    """The largest absolute value of each coordinate, for what of a function counts."""
    if domain is not None:
        return np.maximum(np.abs(domain.lower), np.abs(domain.upper))
    ends = []
    for each in over:
        if isinstance(each, SetOfEachFamily):
            ends += [np.array(each.parameter_bounds).T] if each.parameter_bounds else []
        else:
            body = body_of(each, what)
            ends.append(np.stack([body.lower, body.upper]))
    return np.concatenate([np.abs(pair).max(axis=0) for pair in ends])


def seen_entries(index: Any, sees: Any, over: Sequence[Any], block: Any, what: str) -> list[int]:
    """The entries of the vector that a rule may use."""
    dimension = sum(each.dim for each in over)
    if sees is None:
        return list(range(dimension))
    member = () if index is None else index if isinstance(index, tuple) else (index,)
    found = sees(block, *member) if callable(sees) else sees
    if isinstance(found, Mapping):
        if index not in found:
            raise DeclarationError(f"{what}: sees= says nothing of the member {index!r}.")
        found = found[index]
    try:
        entries = [entry.item() if isinstance(entry, np.generic) else entry for entry in found]
    except TypeError:
        raise DeclarationError(
            f"{what}: sees= must give entries of the uncertain vector, such as range(p) (got {found!r})."
        ) from None
    for entry in entries:
        if not isinstance(entry, int) or isinstance(entry, bool) or not 0 <= entry < dimension:
            raise DeclarationError(
                f"{what}: sees= gives {entry!r} for {index!r}; entries of its uncertain vector are the whole "
                f"numbers 0 to {dimension - 1}."
            )
    return sorted(set(entries))


def limits_of(index: Any, bounds: Any, within: Any, block: Any, what: str) -> tuple[Any, Any]:
    """Lower and upper bound of one function, None where there is none."""
    member = () if index is None else index if isinstance(index, tuple) else (index,)
    found = bounds(block, *member) if callable(bounds) else bounds
    pair = (None, None) if found is None else found
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise DeclarationError(
            f"{what}: bounds= must be a pair (lower, upper), with None for a bound that is not there (got {found!r})."
        )
    low, high = pair
    least, most = (None, None) if within is None else within.bounds()
    low, high = _tighter(low, least, max, what), _tighter(high, most, min, what)
    if is_number(low) and is_number(high) and low > high:
        raise DeclarationError(f"{what}: its lower bound {low} is above its upper bound {high}.")
    return low, high


def _tighter(bound: Any, other: Any, choose: Any, what: str) -> Any:
    """A bound and that of the domain as one."""
    if is_number(bound) and np.isinf(bound):
        bound = None
    if other is None or (is_number(other) and np.isinf(other)):
        return bound
    if bound is None:
        return other
    if not is_number(bound):
        raise DeclarationError(
            f"{what}: within= and a bound that is no number ({bound}) cannot be made one; leave within= out "
            "and write both as rows."
        )
    return choose(float(bound), float(other))


def scalar_of(value: Any, what: object) -> Any:
    """A coordinate; arrays of them are refused."""
    if np.ndim(value) and not hasattr(value, "as_numeric"):
        raise DeclarationError(
            f"{what}: it takes one point of the index (got an array of shape {np.shape(value)}); write one row for "
            "each point, or evaluate the function of a result, result.function(...)."
        )
    return value


def orders_of(order: Any, dimension: int, what: object) -> tuple[int, ...]:
    """The order of a derivative along each coordinate."""
    if order is None:
        return (0,) * dimension
    orders = tuple(order) if isinstance(order, tuple | list) else (order,)
    whole = all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in orders)
    if len(orders) != dimension or not whole:
        raise DeclarationError(
            f"{what}: the order of a derivative must be a whole number for each of its {dimension} coordinates "
            f"(got {order!r})."
        )
    return orders


def entries_of(point: Sequence[Any], over: Sequence[Any], what: object) -> list[Any]:
    """The entries of the vectors that it is called with, one behind the other."""
    entries: list[Any] = []
    for given, each in zip(point, over, strict=True):
        if given.__class__ is Vector and getattr(given, "read_over", None) is each:
            # A rule calls many functions with one vector.
            entries += given.read_as
            continue
        vector = list(given.values()) if isinstance(given, Mapping) else given
        if not isinstance(vector, tuple | list | np.ndarray) and not hasattr(vector, "__len__"):
            vector = [vector]
        if len(vector) != each.dim:
            raise DeclarationError(
                f"{what}: it is a function of a vector of dimension {each.dim} (got {len(vector)} entries)."
            )
        same = _compare_sets(vector, each, what)
        read = [as_leaf(entry, what) for entry in vector]
        if same and given.__class__ is Vector:
            given.read_over, given.read_as = each, read
        entries += read
    return entries


def _compare_sets(vector: Any, own: Any, what: object) -> bool:
    """Whether a vector is one of the set that it was declared over; a warning where it is not."""
    other = getattr(vector[0], "index_of", None) if len(vector) else None
    if other is None or other is own:
        return True
    if hasattr(other, "holds_vectors_of") and other.holds_vectors_of(own):
        return True
    if not same_set(own, other):
        warn_user(
            f"{what}: it was declared over a {type(own).__name__} and is used over another "
            f"{type(other).__name__} of the same dimension; its bounds hold on the first, and the row on the "
            "second.",
            OtherSetWarning,
        )
        return False
    return True
