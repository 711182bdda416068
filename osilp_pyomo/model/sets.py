"""Sets of Pyomo and of PyROS as domains of an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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
from pyomo.core.base.set import SetData, SetProduct
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


def _body(given: UncertaintySet) -> Body:
    """The convex set or scenarios of an uncertainty set, in closed form where its class has one."""
    from osilp_pyomo.index.lp_sets import (  # HiGHS and scipy, loaded when a set needs them
        IntersectionBody,
        PolytopeBody,
    )

    if isinstance(given, IntersectionSet):
        if given.geometry == Geometry.DISCRETE_SCENARIOS:
            return _common_scenarios(given.all_sets)
        return IntersectionBody([_body(part) for part in given.all_sets])
    if isinstance(given, CartesianProductSet):
        for part in given._all_sets:
            if part.geometry == Geometry.DISCRETE_SCENARIOS:
                raise DomainError("a product of sets cannot have discrete scenarios among its parts.")
        return ProductBody(tuple(_body(part) for part in given._all_sets))
    if isinstance(given, PolyhedralSet):
        # PyROS checks by a solver of the user's that the set is neither empty nor unbounded; here HiGHS does.
        return PolytopeBody(np.asarray(given.coefficients_mat), np.asarray(given.rhs_vec))
    given.validate(None)
    if isinstance(given, BoxSet):
        bounds = np.array(given.bounds, dtype=float)
        return BoxBody(bounds[:, 0], bounds[:, 1])
    if isinstance(given, CardinalitySet):
        origin, positive, negative = _floats(given.origin, given.positive_deviation, given.negative_deviation)
        return CardinalityBody(origin, positive, negative, float(given.gamma))
    if isinstance(given, BudgetSet):
        origin, membership, budget = _floats(given.origin, given.budget_membership_mat, given.budget_rhs_vec)
        if BudgetBody.nested(membership):
            return BudgetBody(origin, membership, budget)
        return PolytopeBody(given.coefficients_mat, given.rhs_vec, "the budget set")
    if isinstance(given, FactorModelSet):
        origin, loadings = _floats(given.origin, given.psi_mat)
        return FactorBody(origin, loadings, float(given.beta * given.number_of_factors))
    if isinstance(given, AxisAlignedEllipsoidalSet):
        centre, lengths = _floats(given.center, given.half_lengths)
        return EllipsoidBody(centre, np.diag(lengths)[:, lengths > 0])
    if isinstance(given, EllipsoidalSet):
        centre, shape = _floats(given.center, given.shape_matrix)
        if given.scale == 0:
            return EllipsoidBody(centre, np.empty((len(centre), 0)))
        return EllipsoidBody(centre, np.sqrt(given.scale) * np.linalg.cholesky(shape))
    if isinstance(given, DiscreteScenarioSet):
        return ScenarioBody(np.array(given.scenarios, dtype=float))
    raise DomainError(
        "it is none of the sets that PyROS brings along; describe it by a PolyhedralSet, an IntersectionSet or "
        "continuous sets with where=..."
    )


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
    if not isinstance(candidate, SetData) or candidate.isdiscrete():
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


class VectorError(DeclarationError):
    """A rule asks for an entry that its uncertain vector does not have."""


class Vector(tuple[Any, ...]):
    """An uncertain vector as a rule gets it: a tuple whose entries that do not exist are explained."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except IndexError:
            raise VectorError(
                f"its rule asks for entry {key} of an uncertain vector of dimension {len(self)}, whose entries are 0 "
                f"to {len(self) - 1}; give a set of the dimension that the rule needs."
            ) from None
