"""PyROS uncertainty sets as bodies: the sets of the field, with PyROS's own validation."""

from __future__ import annotations

from collections.abc import Sequence
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
from osilp_pyomo.index.lp_sets import IntersectionBody, PolytopeBody


def is_uncertainty_set(candidate: Any) -> bool:
    """Whether something is an uncertainty set of PyROS."""
    return isinstance(candidate, UncertaintySet)


def body_of(uncertainty_set: UncertaintySet, what: str) -> Body:
    """The body of an uncertainty set as it is now; one that is not valid, empty or unbounded is refused.

    ``what`` is whose set it is, for the error.
    """
    try:
        return _body(uncertainty_set)
    except (DomainError, ValueError, TypeError) as error:
        raise DeclarationError(
            f"{what}: its {type(uncertainty_set).__name__} cannot be used: {_sentence(error)}"
        ) from error


def _body(given: UncertaintySet) -> Body:
    if isinstance(given, IntersectionSet):
        return _intersection(given)
    if isinstance(given, CartesianProductSet):
        for part in given._all_sets:
            if part.geometry == Geometry.DISCRETE_SCENARIOS:
                raise DomainError("a product of sets cannot have discrete scenarios among its parts.")
        return ProductBody(tuple(_body(part) for part in given._all_sets))
    if isinstance(given, PolyhedralSet):
        # PyROS checks by a solver of the user's that the set is neither empty nor unbounded; the body does it by HiGHS.
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


def _intersection(given: IntersectionSet) -> Body:
    if given.geometry != Geometry.DISCRETE_SCENARIOS:
        return IntersectionBody([_body(part) for part in given.all_sets])
    parts: Sequence[Any] = list(given.all_sets)
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
