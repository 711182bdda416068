"""Which problem a run or an optimum is of: its arrivals, by what their data add up to, and the limits that they share.

A regret compares a run with an optimum, and means nothing where they are of different problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.online.stages.batch import PROJECTED
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals

# Data read from a file in single precision are still the same, and so are sums in another order.
_SAME = 1e-6
_OTHER_DATA = "one of as many arrivals as the run met, but with other data"
# What rounding leaves of a coefficient that is zero, relative to the largest.
_NOTHING = 1e-12
_OTHER_NUMBERS = "one with other numbers in its objective than the arrivals of the run"
# More columns than these are mixed at random into so many; of very many not all products are formed.
_COLUMNS, _MOST_COLUMNS = 20, 200


@dataclass(frozen=True, eq=False)
class Identity:
    """What tells one problem from another.

    ``moments`` are the sums of products of any two columns of the data, each divided by its largest entry in
    ``scales``, with a column of ones: they do not depend on the order of the arrivals, but on which numbers belong to
    the same one. ``thirds`` tell data apart that are turned round, about their means, say. ``limits`` are right-hand
    sides at a few points, ``formulas`` the rest of the model as texts.
    """

    count: int
    formulas: tuple[str, ...]
    limits: FloatArray
    scales: FloatArray
    moments: FloatArray
    thirds: FloatArray

    def difference(self, other: Identity) -> str | None:
        """In which way another problem is not this one, as far as both tell; None if it is the same."""
        if self.formulas != other.formulas:
            return "one with other formulas or bounds than those of the run"
        if self.count != other.count:
            return f"one of {other.count} arrivals, and the run met {self.count}"
        if self.limits.shape != other.limits.shape or not _alike(self.limits, other.limits):
            return "one with other limits than those of the run"
        if self.scales.shape != other.scales.shape or not _alike(self.scales, other.scales):
            return _OTHER_DATA
        pairs = ((self.moments, other.moments), (self.thirds, other.thirds))
        same = all(np.all(np.abs(one - another) <= _SAME * self.count) for one, another in pairs)
        return None if same else _OTHER_DATA


@dataclass(frozen=True, eq=False)
class ModelIdentity:
    """What a model that was solved offline has in common with a run on its arrivals: the numbers of its objective."""

    costs: FloatArray

    @classmethod
    def of(cls, costs: FloatArray) -> ModelIdentity:
        """From coefficients in any order; variables that earn nothing do not count."""
        return cls(np.sort(costs[np.abs(costs) > _NOTHING * np.abs(costs).max(initial=0.0)]))

    def difference(self, other: ModelIdentity) -> str | None:
        """In which way another model is not this one, as far as both tell; None if it may be the same."""
        if len(self.costs) != len(other.costs):
            return f"one whose objective has {len(other.costs)} coefficients, and that of the run {len(self.costs)}"
        size = float(np.abs(self.costs).max(initial=0.0))
        return None if np.allclose(self.costs, other.costs, rtol=_SAME, atol=_SAME * size) else _OTHER_NUMBERS


@dataclass(frozen=True, eq=False)
class DataMoments:
    """What the data of some arrivals add up to; those of chunks can be joined in any order.

    ``scales`` (c,) are the largest entries of the columns. ``moments`` are the sums of products of any two columns,
    each divided by its scale, with a column of ones (c + 1, c + 1); of very many columns sums, squares, and products
    with the next column only (3, c). ``thirds`` (2, c) are the sums of cubes, and of squares times the next column.
    """

    count: int
    scales: FloatArray
    moments: FloatArray
    thirds: FloatArray

    @classmethod
    def of(cls, arrivals: Arrivals) -> DataMoments:
        """Those of some arrivals; curves count by random sums of their values."""
        columns: list[FloatArray] = []
        for value in arrivals.values:
            columns += value.sums() if isinstance(value, CurveStack) else [value]
        data = np.array(columns, dtype=float).T if columns else np.zeros((len(arrivals), 0))
        scales = np.abs(data).max(axis=0, initial=0.0)
        data = data / np.where(scales > 0, scales, 1.0)
        beside = np.roll(data, -1, axis=1)
        thirds = np.stack([(data**3).sum(axis=0), (data**2 * beside).sum(axis=0)])
        if data.shape[1] > _MOST_COLUMNS:
            parts = (data, data**2, data * beside)
            return cls(len(arrivals), scales, np.stack([part.sum(axis=0) for part in parts]), thirds)
        data = np.column_stack([np.ones(len(data)), data])
        # A product this thin is slower in several threads.
        with threadpool_limits(1, user_api="blas"):
            return cls(len(arrivals), scales, data.T @ data, thirds)

    def join(self, other: DataMoments) -> DataMoments:
        """Those of both together."""
        scales = np.maximum(self.scales, other.scales)
        moments, thirds = (
            one + another for one, another in zip(self._divided_by(scales), other._divided_by(scales), strict=True)
        )
        return DataMoments(self.count + other.count, scales, moments, thirds)

    def _divided_by(self, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The moments of columns that are divided by larger scales."""
        share = np.divide(self.scales, scales, out=np.ones_like(scales), where=scales > 0)
        beside = np.roll(share, -1)
        thirds = self.thirds * np.stack([share**3, share**2 * beside])
        if len(scales) > _MOST_COLUMNS:
            return self.moments * np.stack([share, share**2, share * beside]), thirds
        share = np.append(1.0, share)
        return share[:, None] * self.moments * share, thirds

    def mixed(self) -> FloatArray:
        """The moments of at most so many columns: more are mixed at random."""
        count = len(self.scales)
        if not _COLUMNS < count <= _MOST_COLUMNS:
            return self.moments
        mixing = np.zeros((count + 1, _COLUMNS + 1))
        mixing[0, 0] = 1.0
        mixing[1:, 1:] = _mixing(count)
        return mixing.T @ self.moments @ mixing


def _mixing(count: int) -> FloatArray:
    return np.random.default_rng(0).normal(size=(count, _COLUMNS)) / np.sqrt(count)


def identity_of(evaluator: Evaluator, arrivals: Arrivals | DataMoments) -> Identity:
    """The identity of a problem, from its arrivals or from what their data add up to."""
    template = evaluator.template
    formulas = tuple(f"{name}: {text}" for name, text in sorted(template.texts.items()) if " limit " not in name)
    data = arrivals if isinstance(arrivals, DataMoments) else DataMoments.of(arrivals)
    sense = "maximize" if template.maximize else "minimize"
    return Identity(data.count, (sense, *formulas), _limits(evaluator), data.scales, data.mixed(), data.thirds)


def _limits(evaluator: Evaluator) -> FloatArray:
    """Right-hand sides of all rows, semi-infinite ones at a few points that no grid changes."""
    found = []
    for group in evaluator.groups:
        if group.family is None:
            found.append(
                evaluator.resources[PROJECTED].total[group.slices[PROJECTED]]
                * evaluator.resources[PROJECTED].unit[group.slices[PROJECTED]]
            )
        else:
            found.append(evaluator.limit(group, _some_points(evaluator.template.families[group.family].domain)))
    return np.concatenate(found) if found else np.zeros(0)


def _some_points(domain: Domain) -> FloatArray:
    if domain.body is not None:
        return domain.body.cloud(3, seed=0)
    share = np.array([[0.31], [0.5], [0.77]])
    return domain.lower + share * (domain.upper - domain.lower)


def _alike(one: FloatArray, other: FloatArray) -> bool:
    return bool(np.allclose(one, other, rtol=_SAME, atol=0.0, equal_nan=True))
