"""Vectors of a convex set together with one choice out of each of several groups.

``(xi, chosen)`` with xi in the set and one entry of each group of ``chosen`` equal to 1, the others 0. A row with the
largest of several functions in each of several terms holds exactly if it holds for all choices of them; nobody has to
write them down.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.errors import DomainError
from osilp_pyomo.index.convex_sets import Body, BoxBody
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.regions import Region
from osilp_pyomo.index.extended_form import Lift

# How far members that count as nearby are from each other, relative to their size.
_NEARBY = 1e-6
# How far from the ends of a box without some of them points are drawn.
_USUAL = 4.0


class OpenBoxBody(BoxBody):
    """``lower <= xi <= upper`` where any bound may be infinite; points are drawn near those that are not.

    Examples
    --------
    >>> ray = OpenBoxBody(np.array([0.0]), np.array([np.inf]))
    >>> ray.contains(np.array([[-1.0], [1e9]])), ray.centre
    (array([False,  True]), array([1.]))
    """

    @cached_property
    def _window(self) -> tuple[FloatArray, FloatArray]:
        """A box of usual size within it."""
        low, high = self.lower, self.upper
        some = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        far = np.maximum(1.0, np.abs(some))
        one = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2 * far, -far))
        other = np.where(np.isfinite(high), high, one + 2 * far)
        return one, other

    @cached_property
    def centre(self) -> FloatArray:
        """The middle of the window where points are usually."""
        low, high = self._window
        return (low + high) / 2

    def support(self, directions: FloatArray) -> FloatArray:
        raise DomainError(f"{self} has no end, and no farthest points.")

    def contains(self, points: FloatArray) -> BoolArray:
        return np.all((points >= self.lower) & (points <= self.upper), axis=1)

    def nearby(self, point: FloatArray) -> FloatArray:
        moves = np.diag(_NEARBY * np.maximum(1.0, np.abs(point)))
        return np.clip(point + np.concatenate([moves, -moves]), self.lower, self.upper)

    def _drawn(self, count: int, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        low, high = self._window
        moves = rng.normal(size=(count, self.dimension)) * rng.choice([0.5, 1.0, _USUAL], size=(count, 1))
        return np.clip(self.centre + moves * (high - low) / 2, self.lower, self.upper)

    def region(self) -> Region | None:
        return None

    def __str__(self) -> str:
        return f"a box without some of its ends, of dimension {self.dimension}"


class ChoiceBody(Body):
    """Members of a convex set, each with one choice out of each group.

    Parameters
    ----------
    inner : Body
    counts : sequence of int
        What each group has to choose from.

    Examples
    --------
    >>> both = ChoiceBody(BoxBody(np.zeros(1), np.ones(1)), (2, 2))
    >>> both.contains(np.array([[0.5, 1, 0, 0, 1], [0.5, 1, 1, 0, 1], [2.0, 1, 0, 1, 0]]))
    array([ True, False, False])
    """

    separation = "choices"
    convex = False

    def __init__(self, inner: Body, counts: Sequence[int]) -> None:
        self.inner, self.counts = inner, tuple(counts)
        self.own = inner.dimension
        self.dimension = self.own + sum(self.counts)
        ends = np.zeros(sum(self.counts))
        self.lower, self.upper = np.append(inner.lower, ends), np.append(inner.upper, ends + 1)
        #: Where each group begins among the entries that choose.
        self.starts = np.cumsum([0, *self.counts[:-1]])

    def marks(self, choices: IntArray) -> FloatArray:
        """The entries that choose, (m, sum of counts), for choices (m, groups)."""
        result = np.zeros((len(choices), sum(self.counts)))
        np.put_along_axis(result, choices + self.starts, 1.0, axis=1)
        return result

    def choices(self, points: FloatArray) -> IntArray:
        """What is chosen at points, (m, groups)."""
        parts = np.split(points[:, self.own :], self.starts[1:], axis=1)
        return np.stack([np.argmax(part, axis=1) for part in parts], axis=1)

    def inner_domain(self, names: tuple[str, ...]) -> Domain:
        """The convex set by itself; a box, bounded or not, as such."""
        names = names[: self.own]
        if isinstance(self.inner, BoxBody) and np.all(self.inner.lower < self.inner.upper):
            return Domain(names, self.inner.lower, self.inner.upper)
        return Domain.of_body(names, self.inner)

    def support(self, directions: FloatArray) -> FloatArray:
        marks = self.marks(self.choices(directions))
        return np.column_stack([self.inner.support(directions[:, : self.own]), marks])

    @cached_property
    def centre(self) -> FloatArray:
        """The middle of the set, with the first choice of each group."""
        return np.append(self.inner.centre, self.marks(np.zeros((1, len(self.counts)), dtype=np.int64)))

    def contains(self, points: FloatArray) -> BoolArray:
        marks = self.marks(self.choices(points))
        return self.inner.contains(points[:, : self.own]) & np.all(points[:, self.own :] == marks, axis=1)

    def _drawn(self, count: int, seed: int) -> FloatArray:
        vectors = self.inner.cloud(count, seed)
        drawn = np.random.default_rng(seed).integers(self.counts, size=(len(vectors), len(self.counts)))
        return np.column_stack([vectors, self.marks(drawn)])

    def nearby(self, point: FloatArray) -> FloatArray:
        """Other vectors with the same choice."""
        near = self.inner.nearby(point[: self.own])
        return np.column_stack([near, np.broadcast_to(point[self.own :], (len(near), self.dimension - self.own))])

    def lift(self) -> Lift:
        raise DomainError(f"{self} is not convex and has no description by rows.")

    def __str__(self) -> str:
        return f"{self.inner}, with one choice out of each of {len(self.counts)} groups"
