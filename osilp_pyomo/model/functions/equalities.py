"""``==`` for every point of an index: which rows it can be matched by, and which it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import ModelError
from osilp_pyomo.index.bases import BSpline
from osilp_pyomo.index.curves.spaces import CurveFunctions
from osilp_pyomo.index.grids import Chebyshev, Grid
from osilp_pyomo.model.functions.component import FunctionVar
from osilp_pyomo.model.functions.terms import occurrences
from osilp_pyomo.offline.functions.matching import (
    MatchedRows,
    collocate,
    compared_points,
    match_affine,
    match_functions,
    rank_of,
    values_at,
)
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import AffineRows, SampledRows

#: How ``equality=`` is asked for.
MATCH, COLLOCATE = "match", "collocate"

Occurrence = tuple[str, tuple[int, ...]]


def equality_rows(data: Any, family: Family) -> MatchedRows:
    """The ordinary rows of an equation over an index.

    Raises
    ------
    ModelError
        Its two sides do not lie in one space of functions, so that matching them would leave nothing to decide.
    """
    what = f"SemiInfiniteConstraint '{data.name}'"
    if isinstance(family.rows, SampledRows):
        why = data.reason or "its trace is another row than the rule gives"
        raise ModelError(
            f"{what}: '==' needs a rule that can be traced ({why}); write it with Pyomo functions of the index, and "
            "without looking at its value."
        )
    asked = data.parent_component().equality_by
    if family.domain.body is not None:
        if asked != MATCH:
            raise ModelError(
                f"{what}: equality={asked!r} is for curves; over an uncertainty set coefficients are matched."
            )
        return match_affine(family) if isinstance(family.rows, AffineRows) else match_functions(family)
    if data.parent_component().where is not None:
        raise ModelError(
            f"{what}: '==' with where= cannot be matched; write two rows, '<=' and '>=', or leave where= out."
        )
    spaces = _spaces_of(data)
    if asked == MATCH:
        _refuse_different_spaces(family, spaces, what)
        return match_functions(family)
    return collocate(family, _collocation_points(family, spaces, asked, what))


def _spaces_of(data: Any) -> dict[Occurrence, CurveFunctions]:
    """The spaces of the curves in a row, by FunctionVar and order of the derivative."""
    found: dict[Occurrence, CurveFunctions] = {}
    for name, order in occurrences(data.trace):
        owner = data.model().find_component(name)
        space = next(iter(owner.spaces.values())) if isinstance(owner, FunctionVar) else None
        if isinstance(space, CurveFunctions):
            found[name, order] = space
    return found


def _refuse_different_spaces(family: Family, spaces: dict[Occurrence, CurveFunctions], what: str) -> None:
    """Refuse a row whose functions do not all lie in the space of one of its curves, or of its variables."""
    points = compared_points(family.domain, len(family.rows.columns))
    matrix, limits = values_at(family, points)
    whole = np.column_stack([matrix, limits])
    if not spaces:
        if rank_of(whole) > rank_of(matrix):
            raise ModelError(
                f"{what}: '==' holds for no choice of its variables at every point of {family.user_domain}, because "
                "its right-hand side is no combination of what they are multiplied by; use two rows with a tolerance, "
                "or more functions."
            )
        return
    sizes: dict[Occurrence, int] = {}
    for occurrence, space in spaces.items():
        own = space.evaluate(points, occurrence[1])
        sizes[occurrence] = rank_of(own)
        if rank_of(np.column_stack([own, whole])) == sizes[occurrence]:
            return
    told = ", ".join(f"{_text(occurrence)} {size}" for occurrence, size in sizes.items())
    together = rank_of(np.column_stack([whole, *(space.evaluate(points, o) for (_, o), space in spaces.items())]))
    raise ModelError(
        f"{what}: its two sides lie in different spaces of functions (dimensions: {told}, together with the data "
        f"{together}), so that '==' at every point would leave nothing, or next to nothing, to decide. "
        f"{_advice(spaces)}equality='collocate' on the constraint lets it hold at as many points as there are "
        "functions, and tells what is left between them."
    )


def _text(occurrence: Occurrence) -> str:
    name, order = occurrence
    return name + ("'" * order[0] if len(order) == 1 else f" (derivative {order})" if any(order) else "")


def _advice(spaces: dict[Occurrence, CurveFunctions]) -> str:
    """The basis with which a curve would lie in the space of another one's derivative, where both are splines."""
    derived = [(name, order[0], s.basis) for (name, order), s in spaces.items() if len(order) == 1 and order[0]]
    plain = [name for name, order in spaces if not any(order)]
    for name, order, basis in derived:
        others = [each for each in plain if each != name]
        if isinstance(basis, BSpline) and isinstance(basis.count, int) and others and basis.degree >= order:
            fits = f"osilp.BSpline({basis.count - order}, degree={basis.degree - order})"
            return f"Give '{others[0]}' the basis {fits}, whose functions are the derivatives of those of '{name}'; or "
    return "Choose bases of one space; or "


def _collocation_points(family: Family, spaces: dict[Occurrence, CurveFunctions], asked: Any, what: str) -> FloatArray:
    """The points of a grid that was given; else as many as the highest derivative has functions.

    For splines these are the averages of neighbouring knots (Greville's points) of the derivative's own splines.
    """
    domain = family.domain
    if isinstance(asked, Grid):
        return asked.on(domain).points
    if domain.dimension > 1 or not spaces:
        raise ModelError(
            f"{what}: equality='collocate' chooses points for curves of one coordinate; give a grid, such as "
            "equality=osilp.Chebyshev(10)."
        )
    (_, (order, *_)), space = max(spaces.items(), key=lambda each: (each[0][1], len(each[1])))
    basis = space.basis
    if isinstance(basis, BSpline) and basis.degree > order:
        knots = basis._knots(len(space))[order : len(space) + basis.degree + 1 - order]
        degree = basis.degree - order
        unit = np.array([knots[k + 1 : k + 1 + degree].mean() for k in range(len(space) - order)])
        return (space.domain.lower + unit[:, None] * space.domain.width).clip(domain.lower, domain.upper)
    return Chebyshev(max(1, len(space) - order)).on(domain).points
