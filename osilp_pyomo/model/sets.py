"""Sets of Pyomo and of PyROS as domains of an index."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import singledispatch
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pyomo.contrib.pyros.uncertainty_sets import (
    AxisAlignedEllipsoidalSet,
    BoxSet,
    BudgetSet,
    CardinalitySet,
    CartesianProductSet,
    DiscreteScenarioSet,
    EllipsoidalSet,
    FactorModelSet,
    Geometry,
    IntersectionSet,
    PolyhedralSet,
    UncertaintySet,
)
from pyomo.core.base.range import NumericRange
from pyomo.core.base.set import RangeSet, SetData, SetProduct
from pyomo.dae import ContinuousSet

from osilp_pyomo.errors import DeclarationError, DomainError
from osilp_pyomo.index.convex_sets import (
    Body,
    BoxBody,
    BudgetBody,
    CardinalityBody,
    EllipsoidBody,
    FactorBody,
    ProductBody,
    ScenarioBody,
)


class SetOfEachFamily(UncertaintySet, ABC):
    """An uncertainty set that is another one for each family: the members of the ordinary index tell which."""

    @abstractmethod
    def body_for(self, index: Any) -> Body:
        """The convex set of a family, by its index: () of a row without one; None asks for any of them."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of entries of a vector."""

    @property
    def geometry(self) -> Any:
        """Convex, and no more is known to PyROS."""
        return Geometry.CONVEX_NONLINEAR

    @property
    def parameter_bounds(self) -> list[tuple[float, float]]:
        """None are promised: they differ from family to family."""
        return []

    def set_as_constraint(self, *args: Any, **options: Any) -> Any:
        """Refused: PyROS has no use for a set that depends on the row."""
        raise DomainError("a set of each family has no constraints of its own.")


class OneSet(SetOfEachFamily):
    """A convex set that PyROS does not have, the same for all families."""

    def __init__(self, body: Body) -> None:
        self._only = body

    @property
    def type(self) -> str:
        """How PyROS calls it."""
        return "convex"

    @property
    def dim(self) -> int:
        """Number of entries of a vector."""
        return self._only.dimension

    def body_for(self, index: Any) -> Body:
        """The set itself."""
        return self._only


def same_set(one: Any, other: Any) -> bool:
    """Whether two uncertainty sets are the same: of one kind, and with the same numbers."""
    if one is other:
        return True
    if type(one) is not type(other) or not is_uncertainty_set(one):
        return False
    return _same_data(*({key: value for key, value in vars(each).items() if key != _LABELS} for each in (one, other)))


# Where a set keeps what the entries of its vectors are called.
_LABELS = "_osilp_labels"


def labelled(given: Any, labels: Sequence[str]) -> Any:
    """The same set, with names for the entries of its vectors; the given one stays as it is."""
    found = copy(given)
    setattr(found, _LABELS, tuple(labels))
    return found


def labels_of(given: Any) -> tuple[str, ...] | None:
    """What the entries of a set's vectors are called; None where nobody has said."""
    return getattr(given, _LABELS, None)


def vector_text(names: Sequence[str]) -> str:
    """What a vector is called whose entries have these names: xi of xi[0] and xi[1], or all of them."""
    called = list(dict.fromkeys(name.rpartition("[")[0] or name for name in names))
    return called[0] if len(called) == 1 else f"({', '.join(called)})"


def _same_data(one: Any, other: Any) -> bool:
    """Whether attributes of two sets hold the same numbers, parts and texts."""
    if isinstance(one, UncertaintySet):
        return same_set(one, other)
    if isinstance(one, Mapping):
        return (
            isinstance(other, Mapping)
            and one.keys() == other.keys()
            and all(_same_data(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, str) or one is None or callable(one):
        return bool(one == other)
    try:
        return np.array_equal(np.asarray(one, dtype=float), np.asarray(other, dtype=float))
    except (TypeError, ValueError):
        pass
    if isinstance(one, Sequence):
        return len(one) == len(other) and all(_same_data(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and _same_data(vars(one), vars(other)) if hasattr(one, "__dict__") else one == other


def is_uncertainty_set(candidate: Any) -> bool:
    """Whether something is an uncertainty set of PyROS."""
    return isinstance(candidate, UncertaintySet)


def body_of(uncertainty_set: UncertaintySet, what: str) -> Body:
    """The convex set or scenarios of an uncertainty set as it is now; refuses one not valid, empty or unbounded.

    ``what`` is whose set it is, for the error.
    """
    try:
        return _body(uncertainty_set)
    except (DomainError, ValueError, TypeError) as error:
        raise DeclarationError(
            f"{what}: its {type(uncertainty_set).__name__} cannot be used: {_sentence(error)}"
        ) from error


@singledispatch
def _body(given: UncertaintySet) -> Body:
    """The convex set of an uncertainty set of PyROS; each kind registers its own way here."""
    raise DomainError(
        "it is none of the sets that PyROS brings along; describe it by a PolyhedralSet, an IntersectionSet or "
        "continuous sets with where=..."
    )


def _checked(make: Callable[[Any], Body]) -> Callable[[Any], Body]:
    """Have PyROS check a set first; those whose check needs a solver of the user's are checked by HiGHS later."""

    def convert(given: UncertaintySet) -> Body:
        given.validate(None)
        return make(given)

    return convert


@_body.register(SetOfEachFamily)
def _(given: SetOfEachFamily) -> Body:
    return given.body_for(None)


@_body.register(IntersectionSet)
def _(given: IntersectionSet) -> Body:
    from osilp_pyomo.index.lp_sets import IntersectionBody  # HiGHS and scipy, loaded when a set needs them

    if given.geometry == Geometry.DISCRETE_SCENARIOS:
        return _common_scenarios(given.all_sets)
    parts = [_part(part) for part in given.all_sets]
    numbers = pickle.dumps([part.lift() for part in parts])
    if given not in _intersections or _intersections[given][0] != numbers:
        _intersections[given] = numbers, IntersectionBody(parts)
    return _intersections[given][1]


# Intersections that were looked at, with the numbers they had: points of theirs may cost a cone program each.
_intersections: WeakKeyDictionary[Any, tuple[bytes, Body]] = WeakKeyDictionary()


def _part(given: UncertaintySet) -> Body:
    """A set that others cut: a polyhedron may be unbounded by itself."""
    if not isinstance(given, PolyhedralSet):
        return _body(given)
    from osilp_pyomo.index.lp_sets import PolytopeBody

    return PolytopeBody(np.asarray(given.coefficients_mat), np.asarray(given.rhs_vec), part=True)


@_body.register(CartesianProductSet)
def _(given: CartesianProductSet) -> Body:
    for part in given._all_sets:
        if part.geometry == Geometry.DISCRETE_SCENARIOS:
            raise DomainError("a product of sets cannot have discrete scenarios among its parts.")
    return ProductBody(tuple(_body(part) for part in given._all_sets))


# Polyhedral sets that were looked at, with the numbers they had: their box costs two linear programs a dimension.
_polytopes: WeakKeyDictionary[Any, tuple[bytes, Body]] = WeakKeyDictionary()


@_body.register(PolyhedralSet)
def _(given: PolyhedralSet) -> Body:
    from osilp_pyomo.index.lp_sets import PolytopeBody

    rows, limits = np.asarray(given.coefficients_mat, dtype=float), np.asarray(given.rhs_vec, dtype=float)
    numbers = rows.tobytes() + limits.tobytes()
    if given not in _polytopes or _polytopes[given][0] != numbers:
        _polytopes[given] = numbers, PolytopeBody(rows, limits)
    return _polytopes[given][1]


@_body.register(BoxSet)
@_checked
def _(given: BoxSet) -> Body:
    bounds = np.array(given.bounds, dtype=float)
    return BoxBody(bounds[:, 0], bounds[:, 1])


@_body.register(CardinalitySet)
@_checked
def _(given: CardinalitySet) -> Body:
    origin, positive, negative = _floats(given.origin, given.positive_deviation, given.negative_deviation)
    return CardinalityBody(origin, positive, negative, float(given.gamma))


@_body.register(BudgetSet)
@_checked
def _(given: BudgetSet) -> Body:
    from osilp_pyomo.index.lp_sets import PolytopeBody

    origin, membership, budget = _floats(given.origin, given.budget_membership_mat, given.budget_rhs_vec)
    if BudgetBody.nested(membership):
        return BudgetBody(origin, membership, budget)
    return PolytopeBody(given.coefficients_mat, given.rhs_vec, "the budget set")


@_body.register(FactorModelSet)
@_checked
def _(given: FactorModelSet) -> Body:
    origin, loadings = _floats(given.origin, given.psi_mat)
    return FactorBody(origin, loadings, float(given.beta * given.number_of_factors))


@_body.register(AxisAlignedEllipsoidalSet)
@_checked
def _(given: AxisAlignedEllipsoidalSet) -> Body:
    centre, lengths = _floats(given.center, given.half_lengths)
    return EllipsoidBody(centre, np.diag(lengths)[:, lengths > 0])


@_body.register(EllipsoidalSet)
@_checked
def _(given: EllipsoidalSet) -> Body:
    centre, shape = _floats(given.center, given.shape_matrix)
    if given.scale == 0:
        return EllipsoidBody(centre, np.empty((len(centre), 0)))
    return EllipsoidBody(centre, np.sqrt(given.scale) * np.linalg.cholesky(shape))


@_body.register(DiscreteScenarioSet)
@_checked
def _(given: DiscreteScenarioSet) -> Body:
    return ScenarioBody(np.array(given.scenarios, dtype=float))


#: The uncertainty sets that can be an index, as the documentation lists them.
UNCERTAINTY_SETS: tuple[type, ...] = tuple(kind for kind in _body.registry if kind not in (object, SetOfEachFamily))


def _common_scenarios(sets: Iterable[Any]) -> Body:
    """The scenarios of one set that lie in all others."""
    parts = list(sets)
    discrete = next(part for part in parts if part.geometry == Geometry.DISCRETE_SCENARIOS)
    scenarios = np.array(discrete.scenarios, dtype=float)
    for part in parts:
        if part is not discrete:
            scenarios = scenarios[_body(part).contains(scenarios)]
    if not len(scenarios):
        raise DomainError("it is empty: no scenario lies in all of its sets.")
    return ScenarioBody(scenarios)


def _floats(*arrays: Any) -> list[Any]:
    return [np.array(array, dtype=float) for array in arrays]


def _sentence(error: Exception) -> str:
    """An error's text as the end of a sentence."""
    text = " ".join(str(error).split())
    return text if text.endswith(".") else f"{text}."


def is_continuous(candidate: Any) -> bool:
    """Whether a set is a continuous index: a ContinuousSet, RangeSet(a, b, 0), Reals, or an uncertainty set."""
    if isinstance(candidate, ContinuousSet) or is_uncertainty_set(candidate):
        return True
    if not isinstance(candidate, SetData):
        return False
    if not candidate.is_constructed():
        # Of an abstract model: RangeSet(a, b, 0) is infinite before its ends are known.
        return isinstance(candidate, RangeSet) and not candidate.isfinite()
    if candidate.isdiscrete():
        return False
    ranges = list(candidate.ranges())
    if len(ranges) == 1 and isinstance(ranges[0], NumericRange) and ranges[0].step == 0:
        return True
    raise DeclarationError(
        f"SemiInfiniteConstraint: the set '{candidate.name}' is neither finite nor one interval; give an interval, "
        "with 'where' for a part of it, or one constraint for each piece."
    )


def single_sets(sets: Sequence[Any]) -> Iterator[Any]:
    """The sets one by one, products such as ``m.u * m.v`` split into their factors."""
    for each in sets:
        if isinstance(each, SetProduct):
            yield from each.subsets(expand_all_set_operators=False)
        else:
            yield each


def some_number(each: Any, share: float) -> float:
    """A number of a continuous set; where it is unbounded, one within 10 of its end or of zero."""
    low, high = each.bounds()
    if low is None:
        low = -10.0 if high is None else high - 10.0
    if high is None:
        high = low + 10.0
    return float(low + share * (high - low))
