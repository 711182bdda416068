"""Expectations of rules: over the rows of a sample, or over a distribution of scipy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError, DeclarationError
from osilp_pyomo.index.quadrature.measures import Measure, PointMeasure, QuantileMeasure
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.integrals.nodes import OverMeasure
from osilp_pyomo.model.integrals.terms import integrated

# Mass of a discrete distribution without end that may be left out, values of it that are looked at, and what the mass
# of a density may be off by.
_LOST, _MOST_VALUES, _MASS = 1e-15, 1_000_000, 1e-8
# How many points a trace is compared at.
_TRIED = 3


class LabelledVector(Vector):
    """A row of a frame: entries by place, or by the name of their column."""

    labels: dict[Hashable, int]

    @classmethod
    def of(cls, entries: Sequence[Any], labels: dict[Hashable, int]) -> LabelledVector:
        """Entries with the names of their columns."""
        found = cls(entries)
        found.labels = labels
        return found

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Hashable) and key in self.labels and not isinstance(key, int):
            key = self.labels[key]
        return Vector.__getitem__(self, key)


def expectation(given: Any, rule: Callable[..., Any], *, weights: Any = None) -> Any:
    """The expectation of a rule over a sample or a distribution, for objectives and constraints.

    Parameters
    ----------
    given : DataFrame, Series, array, or distribution of scipy.stats
        The rows of a sample, each as likely as the others unless ``weights`` are given; or a frozen distribution with
        one variable: a discrete one is summed up, another integrated over its quantiles, with an estimate of the error
        in the result.
    rule : callable
        ``rule(xi)``: an expression, linear in the variables; ``xi`` is a number, or a vector where rows have several
        columns, whose entries are known by place and by the name of their column.
    weights : array or Series, optional
        One for each row, of which none is negative; they are divided by their sum.

    Returns
    -------
    Pyomo expression
        Like :func:`integral`'s. Of a sample what is not linear, or cannot be traced, is added up row by row.

    Examples
    --------
    The newsvendor who buys at 3 and sells at 5, with a demand that is one of three:

    >>> import pyomo.environ as pyo
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.order = pyo.Var(bounds=(0, 100))
    >>> m.sold = pyo.Var([20, 50, 80], bounds=lambda m, d: (0, d))
    >>> m.stock = pyo.Constraint([20, 50, 80], rule=lambda m, d: m.sold[d] <= m.order)
    >>> earned = osilp.expectation([20, 50, 80], lambda d: 5 * m.sold[int(d)])
    >>> m.profit = pyo.Objective(expr=earned - 3 * m.order, sense=pyo.maximize)
    >>> round(osilp.solve(m).objective, 6), m.order.value
    (50.0, 50.0)

    A price that is log-normal:

    >>> import scipy.stats
    >>> m = pyo.ConcreteModel()
    >>> m.x = pyo.Var(bounds=(0, 2))
    >>> price = scipy.stats.lognorm(0.5)
    >>> m.income = pyo.Objective(expr=osilp.expectation(price, lambda p: p * m.x), sense=pyo.maximize)
    >>> round(osilp.solve(m).objective, 9)  # 2 exp(1 / 8)
    2.266296906
    """
    if not callable(rule) or hasattr(rule, "is_expression_type"):
        raise DeclarationError(f"expectation: it needs a rule, a function of the data (got {type(rule).__name__}).")
    name = _argument_name(rule)
    if _is_distribution(given):
        if weights is not None:
            raise DeclarationError("expectation: weights= belong to a sample; a distribution has its own.")
        measure, words = _distribution(given)
        over = OverMeasure(measure, (name,), f"{name} in {words}", _trials(measure, given))
        return integrated(rule, over, None, f"expectation over {words}", "expectation")
    points, labels = _sample(given)
    measure = PointMeasure(points, _weights(weights, given, len(points)))
    words = f"{name} in {len(points)} row{'s' * (len(points) > 1)}"
    what = f"expectation over {words}"
    single = points.shape[1] == 1 and np.ndim(given) == 1
    names = (name,) if single else tuple(f"{name}[{k}]" for k in range(points.shape[1]))
    over = OverMeasure(measure, names, words, points[:: max(1, len(points) // _TRIED)][:_TRIED])

    def of_row(entries: Sequence[Any]) -> Any:
        return rule(entries[0] if single else LabelledVector.of(entries, labels))

    try:
        return integrated(lambda *entries: of_row(entries), over, None, what, "expectation")
    except DeclarationError:
        # A rule that asks for the numbers is called with them.
        pairs = zip(points.tolist(), measure.weights.tolist(), strict=True)
        return sum(weight * of_row(row) for row, weight in pairs if weight)


def _argument_name(rule: Callable[..., Any]) -> str:
    try:
        return next(iter(inspect.signature(rule).parameters), "xi")
    except (TypeError, ValueError):
        return "xi"


# -- samples -------------------------------------------------------------------------------------------------------


def _sample(given: Any) -> tuple[FloatArray, dict[Hashable, int]]:
    """Rows as an array (k, d), and the place of each column by its name."""
    labels: dict[Hashable, int] = {}
    if isinstance(given, pd.DataFrame):
        labels = {label: place for place, label in enumerate(given.columns)}
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise DeclarationError(
            "expectation: expected a DataFrame, a Series or an array of numbers, or a frozen distribution of "
            f"scipy.stats (got {type(given).__name__})."
        ) from None
    if found.ndim not in (1, 2) or not found.size:
        raise DeclarationError(
            f"expectation: a sample has rows, and maybe columns (got an array of the shape {found.shape})."
        )
    found = found.reshape(len(found), -1)
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise DataError(
            f"expectation: row {row} of the sample holds {found[row, column]}; every entry must be a finite number."
        )
    return found, labels


def _weights(weights: Any, given: Any, count: int) -> FloatArray:
    if weights is None:
        return np.full(count, 1 / count)
    if isinstance(weights, pd.Series) and isinstance(given, pd.DataFrame | pd.Series):
        if not (weights.index.is_unique and weights.index.sort_values().equals(given.index.sort_values())):
            raise DeclarationError("expectation: weights= has another index than the sample; give one for each row.")
        weights = weights.reindex(given.index)
    found = np.asarray(weights, dtype=float)
    if found.shape != (count,) or not np.isfinite(found).all() or found.min() < 0 or found.sum() <= 0:
        raise DeclarationError(
            f"expectation: weights= must be {count} numbers >= 0, one for each row and not all of them zero "
            f"(got {np.array2string(found, threshold=6)})."
        )
    return found / found.sum()


# -- distributions ---------------------------------------------------------------------------------------------------


def _is_distribution(given: Any) -> bool:
    return any(hasattr(given, name) for name in ("rvs", "pdf", "pmf", "cdf")) and not hasattr(given, "__array__")


def _distribution(given: Any) -> tuple[Measure, str]:
    """A distribution of one variable as a measure, and its name."""
    if hasattr(given, "xk") and hasattr(given, "pk"):
        return PointMeasure(np.array(given.xk, dtype=float)[:, None], np.array(given.pk, dtype=float)), "a distribution"
    inner = getattr(given, "dist", None)
    name = getattr(inner, "name", None) or type(given).__name__
    if inner is None and not hasattr(given, "icdf"):
        what = "is not frozen; give its parameters, as in scipy.stats.norm(10, 2)"
        if "multivariate" in type(given).__name__ or not hasattr(given, "shapes"):
            what = "has several variables; take a sample of it, as by .rvs(10_000, random_state=1)"
        raise DeclarationError(f"expectation: the distribution {name} {what}.")
    if hasattr(given, "pmf") and not hasattr(given, "icdf"):
        return _discrete(given, name), f"{name}{_parameters(given)}"
    return _continuous(given, name), f"{name}{_parameters(given)}"


def _parameters(given: Any) -> str:
    parts = [f"{each:g}" for each in getattr(given, "args", ()) if np.ndim(each) == 0]
    parts += [f"{key}={each:g}" for key, each in getattr(given, "kwds", {}).items() if np.ndim(each) == 0]
    return f"({', '.join(parts)})"


def _discrete(given: Any, name: str) -> PointMeasure:
    inner = given.dist
    if hasattr(inner, "xk"):
        at = np.array(inner.xk, dtype=float)
        return PointMeasure(at[:, None], np.array(given.pmf(at), dtype=float))
    low, high = (float(np.asarray(end)) for end in given.support())
    # The quantile of a heavy tail would be looked for very long.
    middle = float(given.median())
    reach = [middle - _MOST_VALUES, middle + _MOST_VALUES]
    heavy = (reach[0] > low and given.cdf(reach[0]) > _LOST) or (reach[1] < high and given.sf(reach[1]) > _LOST)
    first = last = np.inf
    if not heavy:
        first, last = max(low, float(given.ppf(_LOST)) - 1), min(high, float(given.isf(_LOST)) + 1)
    if not np.isfinite(first) or not np.isfinite(last) or last - first > _MOST_VALUES:
        raise DataError(
            f"expectation: the distribution {name} has more than {_MOST_VALUES:,} values that count; take a sample of "
            "it, as by .rvs(10_000, random_state=1)."
        )
    at = np.arange(first, last + 1)
    mass = np.array(given.pmf(at), dtype=float)
    if not abs(mass.sum() - 1) <= _MASS:
        raise DataError(
            f"expectation: the distribution {name} has the mass {mass.sum():.9g}, and not 1; check its probabilities."
        )
    at, mass = at[mass > 0], mass[mass > 0]
    return PointMeasure(at[:, None], mass / mass.sum(), float(given.sf(last) + given.cdf(first - 1)))


def _continuous(given: Any, name: str) -> QuantileMeasure:
    below, above = (given.icdf, given.iccdf) if hasattr(given, "icdf") else (given.ppf, given.isf)
    cdf, sf = (given.cdf, given.ccdf) if hasattr(given, "icdf") else (given.cdf, given.sf)
    middle = np.asarray(below(np.array([0.1, 0.4, 0.7])), dtype=float)
    if not np.isfinite(middle).all() or np.any(np.diff(middle) < 0):
        raise DeclarationError(f"expectation: the distribution {name} has no quantiles; check its parameters.")
    return QuantileMeasure(below, above, lambda places: (np.asarray(cdf(places)), np.asarray(sf(places))))


def _trials(measure: Measure, given: Any) -> FloatArray:
    if isinstance(measure, PointMeasure):
        return measure.places[:: max(1, len(measure.places) // _TRIED)][:_TRIED]
    assert isinstance(measure, QuantileMeasure)
    return np.asarray(measure.below(np.array([0.43, 0.08, 0.92])), dtype=float)[:, None]
