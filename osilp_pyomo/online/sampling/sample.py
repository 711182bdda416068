"""A sample: arrivals in numbers that stand for those ahead, each with a weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.online.history import History
from osilp_pyomo.online.stages.batch import VIEWS, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals

_ARRAYS = ("rewards", "earned", "lower", "upper", "own", "own_fixed")


@dataclass(frozen=True, eq=False)
class Sample:
    """Arrivals in numbers, each with a weight (N,): as how many of those ahead it counts, up to a common factor.

    ``numbers`` (N,) says which arrivals of a history they are, -1 for others; ``met`` of how many arrivals they were
    the different ones. ``levels`` (N, 2) are factors of rewards and uses beyond what the arrivals' data say, which the
    batch has already.
    """

    batch: Batch
    weights: FloatArray
    numbers: IntArray
    met: int
    levels: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def total(self) -> float:
        """The weight of all of them."""
        return float(self.weights.sum())

    @classmethod
    def of_batch(cls, batch: Batch, weights: FloatArray | None = None) -> Sample:
        """Arrivals of no history, each as one unless weights are given."""
        count = len(batch)
        return cls(batch, np.ones(count) if weights is None else weights, np.full(count, -1), count)

    @classmethod
    def of_history(cls, history: History, evaluator: Evaluator) -> Sample:
        """The different arrivals that were met, each as often as it came."""
        return cls(history.batch(evaluator), history.weights, np.arange(history.size), history.met)

    def take(self, places: Any) -> Sample:
        """Some of them, as often as a place comes."""
        levels = None if self.levels is None else self.levels[places]
        return Sample(taken(self.batch, places), self.weights[places], self.numbers[places], self.met, levels)

    def at_level(self, reward: float, use: float) -> Sample:
        """The same whose arrivals earn and use more, or less, than their data say."""
        levels = np.tile([reward, use], (len(self), 1))
        return replace(self, batch=at_levels(self.batch, levels), levels=levels)

    def scaled(self, total: float) -> Sample:
        """The same with weights of another total."""
        return replace(self, weights=self.weights * (total / self.total))


def joined(samples: Sequence[Sample]) -> Sample:
    """Samples side by side."""
    some = [sample for sample in samples if len(sample)]
    if len(some) == 1:
        return some[0]
    batches = [sample.batch for sample in some]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in _ARRAYS}
    views = [view for view in VIEWS if all(view in batch.use for batch in batches)]
    use = {view: np.concatenate([batch.use[view] for batch in batches]) for view in views}
    fixed = {view: np.concatenate([batch.fixed[view] for batch in batches]) for view in VIEWS}
    values = tuple(
        np.concatenate(parts) if all(isinstance(part, np.ndarray) for part in parts) else None
        for parts in zip(*(batch.arrivals.values for batch in batches), strict=True)
    )
    weights = np.concatenate([sample.weights for sample in some])
    arrivals = Arrivals(values, pd.RangeIndex(len(weights)))
    numbers = np.concatenate([sample.numbers for sample in some])
    levels = None
    if any(sample.levels is not None for sample in some):
        levels = np.concatenate([np.ones((len(each), 2)) if each.levels is None else each.levels for each in some])
    met = sum(sample.met for sample in some)
    return Sample(Batch(arrivals, use=use, fixed=fixed, **arrays), weights, numbers, met, levels)


def at_levels(batch: Batch, levels: FloatArray) -> Batch:
    """Arrivals whose rewards and uses are multiplied by factors (B, 2)."""
    use = {view: levels[:, 1, None, None] * each for view, each in batch.use.items()}
    return replace(batch, rewards=batch.rewards * levels[:, :1], use=use)


def shares_of_equals(sample: Sample, shares: FloatArray) -> FloatArray:
    """Shares (N, n) of a sample's problem, the same for arrivals with the same data: how it splits them is chance."""
    values = sample.batch.arrivals.values
    if not all(isinstance(value, np.ndarray) for value in values):
        return shares
    levels = np.ones((len(sample), 2)) if sample.levels is None else sample.levels
    _, which = np.unique(np.column_stack([*values, levels]), axis=0, return_inverse=True)
    which = which.reshape(-1)
    sums = np.zeros((int(which.max()) + 1, shares.shape[1]))
    np.add.at(sums, which, sample.weights[:, None] * shares)
    result: FloatArray = (sums / np.bincount(which, sample.weights)[:, None])[which]
    return result


def taken(batch: Batch, places: Any) -> Batch:
    """Some arrivals of a batch, as often as a place comes; their curves are not kept, for they are evaluated."""
    arrays: dict[str, Any] = {name: getattr(batch, name)[places] for name in _ARRAYS}
    use = {view: use[places] for view, use in batch.use.items()}
    fixed = {view: fixed[places] if len(fixed) else fixed for view, fixed in batch.fixed.items()}
    values = tuple(value[places] if isinstance(value, np.ndarray) else None for value in batch.arrivals.values)
    count = len(arrays["rewards"])
    return Batch(Arrivals(values, pd.RangeIndex(count)), use=use, fixed=fixed, **arrays)
