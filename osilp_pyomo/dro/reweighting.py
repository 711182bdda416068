"""Scenarios whose probabilities are known in part: the dual of a linear program, or a row over probabilities."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.dro.ambiguity import Ambiguity, Loss, refuse_negative
from osilp_pyomo.dro.losses import PiecesAtPoints, at_a_point
from osilp_pyomo.dro.supports import Support, event_region
from osilp_pyomo.errors import OptionError
from osilp_pyomo.index.convex_sets import Body, ScenarioBody
from osilp_pyomo.index.probability_sets import ProbabilityBody
from osilp_pyomo.model.arrays.dot import dot
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.sets import OneSet
from osilp_pyomo.offline.results import Result


class Reweighting(Ambiguity):
    """All probabilities of finitely many scenarios, near given ones.

    Parameters
    ----------
    scenarios : array
        n numbers, or an array (n, d).
    weights : array, optional
        Nominal probabilities; equal if not given.
    total_variation : float, optional
        Half the sum of ``|p_i - weights_i|`` may be at most this.
    lower, upper : numbers or arrays, optional
        Bounds on each probability.
    kullback_leibler : float, optional
        ``sum p_i log(p_i / weights_i)`` may be at most this: an exponential cone a scenario.
    chi_square : float, optional
        ``sum (p_i - weights_i)^2 / weights_i`` may be at most this: one second-order cone.

    Notes
    -----
    With a divergence the worst expectation is the largest ``sum_i p_i s_i`` over the probabilities p that are allowed,
    with ``s_i >= loss(xi_i)``: one row over a convex set (Ben-Tal, den Hertog, De Waegenaere, Melenberg and Rennen,
    2013).

    Examples
    --------
    >>> Reweighting([1.0, 2.0, 3.0], total_variation=0.2)
    Reweighting: 3 scenarios, their probabilities known in part
    """

    def __init__(
        self,
        scenarios: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        total_variation: float | None = None,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = 1.0,
        kullback_leibler: float | None = None,
        chi_square: float | None = None,
    ) -> None:
        points = np.array(scenarios, dtype=float)
        self._vector = points.ndim == 2
        self.scenarios = points.reshape(-1, 1) if points.ndim == 1 else points
        count = len(self.scenarios)
        if self.scenarios.ndim != 2 or not count or not np.all(np.isfinite(self.scenarios)):
            raise OptionError(
                f"Reweighting: scenarios must be finite numbers or rows of them (got shape {points.shape})."
            )
        self.weights = probabilities(weights, count, "Reweighting")
        self.radius = total_variation
        self._divergences = {"kullback_leibler": kullback_leibler, "chi_square": chi_square}
        for what, limit in (("total_variation", total_variation), *self._divergences.items()):
            if limit is not None:
                refuse_negative(what.replace("_", " "), limit)
        self.lower = np.maximum(np.broadcast_to(np.asarray(lower, dtype=float), count), 0.0)
        self.upper = np.minimum(np.broadcast_to(np.asarray(upper, dtype=float), count), 1.0)
        if np.any(self.lower > self.upper) or self.lower.sum() > 1 + 1e-12 or self.upper.sum() < 1 - 1e-12:
            raise OptionError(
                "Reweighting: no probabilities lie within lower and upper (they sum to "
                f"{self.lower.sum():g} and {self.upper.sum():g}); they must allow a sum of 1."
            )

    def __repr__(self) -> str:
        return f"Reweighting: {len(self.scenarios)} scenarios, their probabilities known in part"

    def _scenario(self, number: int) -> Any:
        point = self.scenarios[number].tolist()
        return Vector(point) if self._vector else point[0]

    def example(self) -> Any:
        return self._scenario(0)

    def atoms(self, result: Result, block: Any) -> pd.DataFrame:
        names = ["xi"] if not self._vector else [f"xi[{k}]" for k in range(self.scenarios.shape[1])]
        found = []
        for (scenario, piece), row in block.rows.items():
            at = dict(zip(names, self.scenarios[scenario].tolist(), strict=True))
            found.append({**at, "scenario": scenario, "piece": piece, "probability": abs(result.dual(row))})
        return pd.DataFrame(found)

    def write_event(self, block: Any, event: Any) -> Any:
        support = Support([(None, None)] * self.scenarios.shape[1] if self._vector else (None, None), "Reweighting")
        region = event_region(event, support)
        inside = [
            region is not None
            and region.support.contains(point[None])
            and (region.condition is None or bool(region.condition(self._scenario(number))))
            for number, point in enumerate(self.scenarios)
        ]
        known = {tuple(point): float(hit) for point, hit in zip(self.scenarios.tolist(), inside, strict=True)}
        return self.write(block, lambda m, xi: [known[tuple(xi) if self._vector else (xi,)]], 1)

    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        """The dual of the linear program over the probabilities: finitely many ordinary rows, or one over a set."""
        count = len(self.scenarios)
        if any(limit is not None for limit in self._divergences.values()):
            return self._write_divergence(block, loss, pieces)
        if self.radius == 0 and np.all((self.lower <= self.weights) & (self.weights <= self.upper)):
            # The probabilities are known, and nothing is to be dualized.
            self._write_levels(block, loss, pieces)
            return sum(float(w) * block.level[i] for i, w in enumerate(self.weights))
        block.level = pyo.Var()
        block.above = pyo.Var(range(count), bounds=(0, None))
        block.below = pyo.Var(range(count), bounds=(0, None))
        value = block.level + sum(
            float(self.upper[i]) * block.above[i] - float(self.lower[i]) * block.below[i] for i in range(count)
        )
        if self.radius is not None:
            block.price = pyo.Var(bounds=(0, None))
            block.moved = pyo.Var(range(count))
            value = (
                value
                + 2 * self.radius * block.price
                + sum(float(w) * block.moved[i] for i, w in enumerate(self.weights))
            )
            block.up = pyo.Constraint(range(count), rule=lambda b, i: b.moved[i] <= b.price)
            block.down = pyo.Constraint(range(count), rule=lambda b, i: -b.moved[i] <= b.price)

        def rule(b: Any, scenario: int, piece: int) -> Any:
            left = b.level + b.above[scenario] - b.below[scenario]
            if self.radius is not None:
                left = left + b.moved[scenario]
            return left >= at_a_point(b, found(b.parent_block(), scenario, partial(self._scenario, scenario))[piece])

        with PiecesAtPoints(loss) as found:
            block.rows = pyo.Constraint(range(count), range(pieces), rule=rule)
        return value

    def _write_levels(self, block: Any, loss: Loss, pieces: int) -> None:
        """A level for each scenario, above all pieces there."""
        count = len(self.scenarios)
        block.level = pyo.Var(range(count))

        def rule(b: Any, scenario: int, piece: int) -> Any:
            pieces_there = found(b.parent_block(), scenario, partial(self._scenario, scenario))
            return b.level[scenario] >= at_a_point(b, pieces_there[piece])

        with PiecesAtPoints(loss) as found:
            block.rows = pyo.Constraint(range(count), range(pieces), rule=rule)

    def _write_divergence(self, block: Any, loss: Loss, pieces: int) -> Any:
        """Levels above the pieces of each scenario, and a row over all probabilities."""
        self._write_levels(block, loss, pieces)
        block.value = pyo.Var()
        near: Body = ScenarioBody(self.weights[None])
        if 0.0 not in (self.radius, *self._divergences.values()):
            near = ProbabilityBody(
                self.weights, self.lower, self.upper, total_variation=self.radius, **self._divergences
            )
        block.worst = SemiInfiniteConstraint(OneSet(near), rule=lambda b, p: b.value >= dot(np.array(p), b.level))
        return block.value


def probabilities(weights: ArrayLike | None, count: int, what: str) -> FloatArray:
    """Probabilities that sum to 1; equal ones where none are given."""
    if weights is None:
        return np.full(count, 1.0 / count)
    result = np.array(weights, dtype=float)
    if result.shape != (count,) or not np.all(result >= 0) or not np.isclose(result.sum(), 1.0, rtol=0, atol=1e-9):
        raise OptionError(
            f"{what}: weights must be {count} probabilities that sum to 1 (got {result.size} with the sum "
            f"{result.sum():g})."
        )
    return result / result.sum()
