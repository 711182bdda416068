"""Rows of a model along their index, as numbers and as a picture, whoever solved the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.choices import by_family, default_grid, lay_grids, names_of
from osilp_pyomo.domains import Domain, FloatArray
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.grids import Grid, Midpoint, Points
from osilp_pyomo.problem import Family, excess_of
from osilp_pyomo.results import Result
from osilp_pyomo.row_displays import RowsDisplay
from osilp_pyomo.tracing import TracedModel, trace_model

# Points along an interval, its ends among them, and along each side of a plane.
_ALONG, _ASIDE = 801, 100


def evaluate_rows(
    model: Any, result: Result | None = None, *, grid: Any = None, families: Sequence[Any] | None = None
) -> pd.DataFrame:
    """Semi-infinite rows at many points of their index, at the values of the variables or those of a result.

    The model is read only, so that an answer of any solver can be looked at, such as that of a discretized copy.

    Parameters
    ----------
    model : ConcreteModel
        The model whose active :class:`SemiInfiniteConstraint` are evaluated.
    result : Result, optional
        Whose values to use; those in the model's variables if not given.
    grid : Grid, array of points, or {component: grid}, optional
        Where; 801 points of an interval with its ends, 100 times 100 of a plane, and a few thousand in more dimensions,
        if not given.
    families : list, optional
        Constraints, or some families of them, by component or by name; all if not given.

    Returns
    -------
    DataFrame
        One row a family and point: ``family``, the index under its own name, ``lower``, ``body`` and ``upper`` as in a
        Pyomo constraint (infinite where there is no such limit), and ``violation``, by how much a limit is passed.

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
    traced = trace_model(model)
    return pd.concat([frame for _, frame in _frames(traced, result, grid, families)], ignore_index=True)


def plot_rows(
    model: Any, result: Result | None = None, *, grid: Any = None, families: Sequence[Any] | None = None
) -> Any:
    """Draw semi-infinite rows over their index: body, limits, and the price where a result has one; needs matplotlib.

    Parameters
    ----------
    model, result, grid, families
        As in :func:`evaluate_rows`. With a result its prices are drawn too.

    Returns
    -------
    matplotlib Figure

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
    "'above': kept at every point"
    """
    traced = trace_model(model)
    found = list(_frames(traced, result, grid, families))
    prices = {} if result is None or result.answer is None or result.answer.price is None else result.prices
    return RowsDisplay(
        pd.concat([frame for _, frame in found], ignore_index=True) if found else pd.DataFrame(),
        {family.name: family.domain.names for family, _ in found},
        {family.name: prices[family.name] for family, _ in found if family.name in prices},
    ).plot()


def _frames(
    traced: TracedModel, result: Result | None, grid: Any, families: Sequence[Any] | None
) -> list[tuple[Family, pd.DataFrame]]:
    names = names_of(traced.families)
    if not names:
        raise DataError("The model has no active SemiInfiniteConstraint, so that there are no rows to look at.")
    chosen = by_family(None if families is None else dict.fromkeys(_listed(families), True), names, "families")
    kept = [number for number, wanted in enumerate(chosen) if wanted or families is None]
    given = by_family(grid, names, "grid")
    x = _values(traced, result)
    made = []
    for number in kept:
        family = traced.problem.families[number]
        own = _along(family.domain) if given[number] is None else given[number]
        laid = lay_grids([names[number]], [family.domain], own)[0]
        made.append((family, _frame(family, laid.points, x)))
    return made


def _listed(families: Any) -> list[Any]:
    if isinstance(families, str) or not isinstance(families, Sequence):
        raise OptionError(f"families= must be a list of constraints or of their names (got {families!r}).")
    return list(families)


def _along(domain: Domain) -> Grid:
    """The points of a picture: those of an interval with its ends, knots and kinks, or a lattice of a plane."""
    if domain.dimension > 2 or domain.body is not None or not domain.bounded:
        return default_grid(domain)
    if domain.dimension == 2:
        return Midpoint(_ASIDE)
    even = np.linspace(domain.lower[0], domain.upper[0], _ALONG)
    return Points(np.unique(np.concatenate([even, *domain.marks])))


def _values(traced: TracedModel, result: Result | None) -> FloatArray:
    if result is not None:
        known = result.values.reindex([variable.name for variable in traced.variables])
        missing = known.index[known.isna()]
        if len(missing):
            raise DataError(
                f"The result has no value of '{missing[0]}'; give the result of this model, or none for the values in "
                "its variables."
            )
        return known.to_numpy(dtype=float)
    for variable in traced.variables:
        if variable.value is None:
            raise DataError(f"Var '{variable.name}' has no value; solve the model first, or give a result.")
    return np.array([variable.value for variable in traced.variables], dtype=float)


def _frame(family: Family, points: FloatArray, x: FloatArray) -> pd.DataFrame:
    lower, upper = family.limits(points)
    body = family.activity(points, x)
    index = {name: points[:, axis] for axis, name in enumerate(family.domain.names)}
    violation = np.maximum(excess_of(body, lower, upper), 0.0)
    return pd.DataFrame(
        {"family": family.name, **index, "lower": lower, "body": body, "upper": upper, "violation": violation}
    )
