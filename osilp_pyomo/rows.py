"""Rows of a model along their index, as numbers and as a picture, whoever solved the model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import MOST_SHOWN
from osilp_pyomo.errors import DataError, GridError, OptionError
from osilp_pyomo.index.choose import by_family, default_grid, names_of, place_grids
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.grids import Grid, Midpoint, Points
from osilp_pyomo.lp.finite import excess_of
from osilp_pyomo.model.constraint.component import semi_infinite_families
from osilp_pyomo.model.trace import TracedModel, refuse_no_model, trace_families
from osilp_pyomo.model.units import units_told
from osilp_pyomo.offline.prepare import compactify
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.results import Result
from osilp_pyomo.offline.search.choose import searches_for
from osilp_pyomo.show.rows import RowsDisplay

# Points along an interval, its ends among them, and along each side of a plane.
_ALONG, _ASIDE = 801, 100
# Vectors of an uncertainty set: half of them extreme, half inside.
_INSIDE = 1024
_COLUMNS = ("family", "lower", "body", "upper", "violation")


def evaluate_rows(
    model: Any, result: Result | None = None, *, grid: Any = None, families: Sequence[Any] | None = None
) -> pd.DataFrame:
    """Semi-infinite rows at many points of their index, at the values of the variables or those of a result.

    The model is read only, and nothing but the rows is looked at, so that an answer of any solver can be checked.

    Parameters
    ----------
    model : ConcreteModel
        The model whose active :class:`SemiInfiniteConstraint` are evaluated; all of them where none is active, as in a
        model that was transformed.
    result : Result, optional
        Whose values to use; those in the model's variables if not given.
    grid : Grid, array of points, or {component: grid}, optional
        Where, if not at 801 points of an interval, its ends and knots; 100 times 100 of a plane; a few thousand in more
        dimensions; some thousand vectors of an uncertainty set. An unbounded index needs it.
    families : list, optional
        Constraints, or some families of them, by component or by name; all if not given.

    Returns
    -------
    DataFrame
        One row per family and point: ``family``, the index under its own name (with "_" behind it if that is one of the
        others), ``lower``, ``body`` and ``upper`` of the row with all terms of free variables in the body and all
        others in the limits (infinite where there is none), and ``violation``, by how much a limit is passed.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(initialize=1.0)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x >= 4 * u * (1 - u) + u / 10
    >>> evaluate_rows(m, grid=[0, 0.5, 1])
      family    u  lower  body  upper  violation
    0  above  0.0   0.00   1.0    inf       0.00
    1  above  0.5   1.05   1.0    inf       0.05
    2  above  1.0   0.10   1.0    inf       0.00
    """
    return pd.concat([frame for _, frame in _frames(model, result, grid, families)], ignore_index=True)


def plot_rows(
    model: Any,
    result: Result | None = None,
    *,
    grid: Any = None,
    families: Sequence[Any] | None = None,
    figure: Any = None,
) -> Any:
    """Draw semi-infinite rows over their index: body, limits, and the price where a result has one; needs matplotlib.

    Parameters
    ----------
    model, result, grid, families
        As in :func:`evaluate_rows`. With a result its prices are drawn too.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Figure or SubFigure

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var()
    >>> m.o = pyo.Objective(expr=m.x)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x >= 4 * u * (1 - u)
    >>> figure = osilp.plot_rows(m, osilp.solve(m))
    >>> figure.axes[0].get_title()
    "'above': kept at all 801 points"
    """
    return rows_display(model, result, grid, families).plot(figure)


def rows_display(
    model: Any, result: Result | None = None, grid: Any = None, families: Sequence[Any] | None = None
) -> RowsDisplay:
    """What :func:`plot_rows` draws."""
    found = _frames(model, result, grid, families)
    prices = {} if result is None or result.answer is None or result.answer.price is None else result.prices
    return RowsDisplay(
        pd.concat([frame for _, frame in found], ignore_index=True),
        {family.name: _index_names(family.domain) for family, _ in found},
        {family.name: prices[family.name] for family, _ in found if family.name in prices},
        {family.name: family.domain.inside for family, _ in found if family.domain.inside is not None},
        units=units_told(model, _every_family(model)),
    )


def worst_rows(constraint: Any) -> dict[Any, tuple[str, ...]]:
    """Point, lower limit, body, upper limit and slack where each family has least room, by its index, as texts.

    At the values that the variables have now, found as exchange finds violated rows. Nothing where variables have no
    values or rows cannot be evaluated; of very many families the first ones are looked at.
    """
    families = list(itertools.islice(constraint.items(), MOST_SHOWN))
    try:
        model = constraint.model()
        traced = trace_families(model, [family for _, family in families])
        x = _values(model, traced, None)
        by_name = {family.name: index for index, family in families}
        found = {by_name[family.name]: _worst(family, x) for family in traced.problem.families}
    except Exception:  # what is printed must not fail, and a rule is the user's own code
        return {}
    return {index: found[index] for index, _ in families if index in found}


def _worst(family: Family, x: FloatArray) -> tuple[str, ...]:
    # An index without end is looked at on a box that stands for it.
    within = compactify(family)
    (search,) = searches_for([within])
    point = within.user_points(search.worst(x).points[:1])
    lower, upper = (float(limit[0]) for limit in family.limits(point))
    body = float(family.activity(point, x)[0])
    slack = min(body - lower, upper - body)
    ends = ["None" if np.isinf(limit) else f"{limit:.6g}" for limit in (lower, upper)]
    place = family.domain.describe(point[0])
    return place, ends[0], f"{body:.6g}", ends[1], f"{slack:.3g}"


def _every_family(model: Any) -> list[Any]:
    """All active families, or all there are where none is active, as in a model that was transformed."""
    return list(semi_infinite_families(model)) or list(semi_infinite_families(model, active=False))


def _frames(
    model: Any, result: Result | None, grid: Any, families: Sequence[Any] | None
) -> list[tuple[Family, pd.DataFrame]]:
    refuse_no_model(model, "evaluate")
    if result is not None and not isinstance(result, Result):
        raise OptionError(f"evaluate: result must be what solve gives back (got {type(result).__name__}).")
    every = _every_family(model)
    if not every:
        raise DataError("The model has no SemiInfiniteConstraint, so that there are no rows to look at.")
    names = names_of(every)
    wanted = None if families is None else dict.fromkeys(_listed(families), True)
    chosen = [
        (family, given)
        for family, kept, given in zip(
            every, by_family(wanted, names, "families"), by_family(grid, names, "grid"), strict=True
        )
        if kept or families is None
    ]
    traced = trace_families(model, [family for family, _ in chosen])
    x = _values(model, traced, result)
    made = []
    for (own, given), family in zip(chosen, traced.problem.families, strict=True):
        placed = place_grids(names_of([own]), [family.domain], _along(family.domain) if given is None else given)[0]
        made.append((family, _frame(family, placed.points, x)))
    return made


def _listed(families: Any) -> list[str]:
    if isinstance(families, str) or not isinstance(families, Sequence) or not families:
        raise OptionError(f"families= must be a list of constraints or of their names (got {families!r}).")
    return [each if isinstance(each, str) else getattr(each, "name", str(each)) for each in families]


def _along(domain: Domain) -> Grid:
    """The points of a picture: those of an interval with its ends, knots and kinks, or a lattice of a plane."""
    if not domain.bounded:
        raise GridError(f"The index {domain} is unbounded; give grid=[...] with the points to look at.")
    if domain.body is not None:
        return Points(domain.body.filled(_INSIDE))
    if domain.dimension > 2:
        return default_grid(domain)
    if domain.dimension == 2:
        return Midpoint(_ASIDE)
    low, high = domain.lower[0], domain.upper[0]
    marks = domain.marks[0]
    return Points(np.unique(np.concatenate([np.linspace(low, high, _ALONG), marks[(marks >= low) & (marks <= high)]])))


def _values(model: Any, traced: TracedModel, result: Result | None) -> FloatArray:
    if result is None:
        for variable in traced.variables:
            if variable.value is None:
                raise DataError(f"Var '{variable.name}' has no value; solve the model first, or give a result.")
        return np.array([variable.value for variable in traced.variables], dtype=float)
    names = [variable.name for variable in traced.variables]
    known = result.values.reindex(names)
    missing = known.index[known.isna()]
    if len(missing):
        raise DataError(
            f"The result has no value of '{missing[0]}'; give the result of this model, or none for the values in its "
            "variables."
        )
    for name in result.values.index.difference(names):
        variable = model.model().find_component(name)
        if variable is not None and variable.fixed and variable.value != result.values[name]:
            raise DataError(
                f"Var '{name}' is fixed at {variable.value:g}, and the result has {result.values[name]:g}; unfix it, "
                "or give no result for the values in the model's variables."
            )
    return known.to_numpy(dtype=float)


def _index_names(domain: Domain) -> tuple[str, ...]:
    """Columns of the index; a name that is a column already has "_" behind it."""
    return tuple(f"{name}_" if name in _COLUMNS else name for name in domain.names)


def _frame(family: Family, points: FloatArray, x: FloatArray) -> pd.DataFrame:
    lower, upper = family.limits(points)
    body = family.activity(points, x)
    index = {name: points[:, axis] for axis, name in enumerate(_index_names(family.domain))}
    violation = np.maximum(excess_of(body, lower, upper), 0.0)
    return pd.DataFrame(
        {"family": family.name, **index, "lower": lower, "body": body, "upper": upper, "violation": violation}
    )
