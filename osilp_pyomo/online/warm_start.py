"""Prices to begin with: from an offline result, from past arrivals, or from another controller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._frames import as_pandas
from osilp_pyomo.errors import OptionError
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.results import Result
from osilp_pyomo.online.controller import Controller
from osilp_pyomo.online.history import History, keys_of
from osilp_pyomo.online.kernels.fitting import SLACK, make_margins, nothing
from osilp_pyomo.online.policies import view_of
from osilp_pyomo.online.sampling.problem import price_sample
from osilp_pyomo.online.sampling.sample import Sample
from osilp_pyomo.online.stages.batch import POINTWISE
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.linear import StageSolver
from osilp_pyomo.online.stages.template import Arrivals


def warm_dual(
    evaluator: Evaluator, solver: StageSolver, source: Any, view: str, read: Any, horizon: int, size: FloatArray
) -> FloatArray:
    """A dual in the coordinates of a policy from whatever the user has; ``size`` measures rounding of budgets."""
    if isinstance(source, Controller):
        if view_of(source.policy) != view or len(source.dual) != evaluator.resources[view].size:
            raise OptionError("warm_start: the other controller prices other resources; give its price instead.")
        return source.dual
    source = as_pandas(source)
    if isinstance(source, pd.DataFrame):
        return _from_arrivals(evaluator, solver, read(source), view, horizon, size)
    duals: dict[str, float] = {}
    if isinstance(source, Result):
        duals = {str(name): float(value) for name, value in source.duals.items()}
        source = source.price
    prices = [source] if isinstance(source, Price) else list(source.values()) if hasattr(source, "values") else None
    if prices is None or not all(isinstance(price, Price) for price in prices):
        raise OptionError(
            "warm_start must be a price, a Result, a DataFrame of past arrivals or a Controller (got "
            f"{type(source).__name__})."
        )
    return _from_prices(evaluator, {price.family: price for price in prices}, duals, view)


def _from_arrivals(
    evaluator: Evaluator, solver: StageSolver, arrivals: Arrivals, view: str, horizon: int, size: FloatArray
) -> FloatArray:
    """The dual of the offline problem of past arrivals with the program's budget an arrival."""
    history = History(view)
    batch = evaluator.batch(arrivals)
    history.add(batch, keys_of(batch))
    total = evaluator.resources[view].total
    tails = nothing(make_margins(total, size, horizon)[SLACK], horizon)
    budget, dual = total * len(arrivals) / horizon, np.zeros(len(total))
    found = price_sample(evaluator, solver, Sample.of_history(history, evaluator), budget, dual, view, tails)
    if found is None:
        raise OptionError("warm_start: the offline problem of these arrivals has no solution.")
    return found.dual


def _from_prices(evaluator: Evaluator, prices: dict[str, Price], duals: dict[str, float], view: str) -> FloatArray:
    """The dual whose density comes nearest to a price, as the test functions (or grid points) see it."""
    sense = 1.0 if evaluator.template.maximize else -1.0
    resources = evaluator.resources[view]
    result = np.zeros(resources.size)
    for group in evaluator.groups:
        at = group.slices[view]
        if group.family is None:
            dual = sense * group.sign * duals.get(group.name, 0.0)
            result[at] = resources.unit[at] * (dual if group.equality else max(dual, 0.0))
            continue
        if group.name not in prices:
            continue
        price = prices[group.name]
        masses = np.maximum(sense * group.sign * price.masses, 0.0)
        if not len(masses):
            continue
        functionals, points = evaluator.functionals[group.family], evaluator.points[group.family]
        if view == POINTWISE or functionals.atomic:
            known = points if view == POINTWISE else functionals.points
            width = functionals.domain.width
            nearest = [int(np.argmin(np.abs((known - point) / width).sum(axis=1))) for point in price.points]
            np.add.at(result, at.start + np.array(nearest), masses)
            result[at] *= resources.unit[at]
            continue
        grid = evaluator.grids[group.family]
        at_price = functionals.basis.evaluate(grid.domain, price.points)
        at_grid = functionals.basis.evaluate(grid.domain, grid.points)
        gram = at_grid.T @ np.asarray(functionals.matrix @ np.eye(len(functionals)))
        weights, _ = nnls(gram, at_price.T @ masses)
        result[at] = weights * evaluator.masses[group.family] * resources.unit[at]
    return result
