"""Arrivals that are remembered to be gone through again: all of them, or a sample of them.

What is remembered beyond the first few thousand is drawn from all that came (Vitter's reservoir), so memory stays
flat. Which arrivals it keeps and which are drawn from it follow from a seed and the number of the arrival alone, so
that steps, replays, chunks and controllers that were saved draw the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.online.experience.policy import ExperienceReplay
from osilp_pyomo.online.experience.spacing import Spacing, spacings_of
from osilp_pyomo.online.kernels.practice import Ground, Sample, practise, remember
from osilp_pyomo.online.policies import State
from osilp_pyomo.online.stages.batch import POINTWISE, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator

#: Arrays of a saved memory.
MEMORY = ("met", "spacing", "rewards", "use", "lower", "upper", "idle")
# Numbers that the uses in a memory hold at most; however large one arrival is, some are remembered.
_MOST_NUMBERS, _LEAST_ARRIVALS = 2**24, 200
# Beyond so many points the price of one more of them is learned from twice as many arrivals.
_MANY = 500
# Constants of splitmix64.
_WEYL, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def uniforms(seed: int, first: int, count: int, each: int) -> FloatArray:
    """Numbers (count, each) in [0, 1) that follow from a seed and the number of the row (Steele et al., splitmix64)."""
    rows = np.arange(first, first + count, dtype=np.uint64)[:, None] * np.uint64(each)
    state: Any = (
        np.array([seed % 2**64], dtype=np.uint64) * _SECOND + (rows + np.arange(1, each + 1, dtype=np.uint64)) * _WEYL
    )
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    bits = (state ^ (state >> np.uint64(31))) >> np.uint64(11)
    result: FloatArray = bits.astype(float) * 2.0**-53
    return result


class Lesson(NamedTuple):
    """What arrivals that come are practised with, in the order in which the kernel takes it.

    ``places`` (B,) are those in the sample that they are written into, ``drawn`` (B, K) those of the arrivals that are
    gone through after each. The arrays of the sample are the memory's own.
    """

    parameters: FloatArray
    ground: Ground
    sample: Sample
    places: IntArray
    drawn: IntArray
    options: bool

    def practise(self, b: int, one: Batch, state: State, left: int, remaining: FloatArray) -> None:
        """Remember the arrival with the number b and practise, as the kernel does; ``state`` is changed."""
        fixed = one.fixed[POINTWISE]
        remember(
            self.ground, self.sample, self.places[b], one.rewards[0], one.use[POINTWISE][0],
            fixed[0] if len(fixed) else remaining, one.lower[0], one.upper[0], state["numbers"],
        )  # fmt: skip
        practise(
            self.parameters, self.ground, self.sample, self.places[b], self.drawn[b], self.options, float(left),
            remaining, state["dual"], state["learner"], state["numbers"],
        )  # fmt: skip


class Memory:
    """Arrivals that are remembered, at the points of the widest spacing that fits all of them.

    Attributes
    ----------
    met : int
        Arrivals that came, remembered or not.
    """

    def __init__(self, evaluator: Evaluator, capacity: int, seed: int) -> None:
        resources, template = evaluator.resources[POINTWISE], evaluator.template
        self._spacings = spacings_of(evaluator, resources.total)
        self._scale = _scale_of(evaluator, resources.total)
        self._floor, self._seed = resources.floor, seed
        self._decisions, self._has_fixed = len(template.decisions), evaluator.has_fixed
        self._options = bool(template.options)
        self._capacity = capacity
        self.met = 0
        self._every = max(self._spacings)
        self._sample = self._room_for(0)
        self._before: list[tuple[Sample, IntArray, Sample]] = []

    @property
    def spacing(self) -> Spacing:
        """The points that are practised on now."""
        return self._spacings[self._every]

    @property
    def size(self) -> int:
        """Arrivals that are remembered."""
        return min(self.met, self.capacity)

    @property
    def capacity(self) -> int:
        """Arrivals that there is room for."""
        numbers = max(len(self.spacing.points) * self._decisions, 1)
        return min(self._capacity, max(_MOST_NUMBERS // numbers, _LEAST_ARRIVALS))

    def portions(self, use: FloatArray) -> Iterator[slice]:
        """Arrivals with the use (B, n, R), as many together as the same points do for; those are then the memory's."""
        start = 0
        while start < len(use):
            stop = self.spacing.first_rough(use, start)
            if stop > start:
                yield slice(start, stop)
                start = stop
            else:
                self._refine()

    def begun(self, state: State) -> State:
        """The state before an arrival: before the first a price that is known is moved to the points practised on."""
        if self.met:
            return state
        return {**state, **{name: self.spacing.gathered(state[name]) for name in ("dual", "learner")}}

    def lesson(self, count: int, policy: ExperienceReplay, budget: FloatArray) -> Lesson:
        """Places for arrivals that come, and those of the arrivals that follow each; counts them.

        ``budget`` (R,) is what there is of each resource an arrival. An arrival that is not kept has the place behind
        all others.
        """
        points = self.spacing.points
        ground = Ground(points, self._scale[points], self._floor[points], budget[points] / self._scale[points])
        replays = policy.replays * (1 if len(points) <= _MANY else 2)
        chances = uniforms(self._seed, self.met, count, replays + 1)
        before, capacity = self.met + np.arange(count), self.capacity
        places = np.where(before < capacity, before, (chances[:, 0] * (before + 1)).astype(np.int64))
        places = np.minimum(places, capacity)
        filled = np.minimum(before + 1, capacity)[:, None]
        drawn = np.minimum((chances[:, 1:] * filled).astype(np.int64), filled - 1)
        self._reserve(min(self.met + count, capacity) + 1)
        changed = np.unique(places[places < self.size])
        known = Sample(*(each[changed] if len(each) else each for each in self._sample))
        self._before.append((self._sample, changed, known))
        self.met += count
        return Lesson(policy.parameters, ground, self._sample, places, drawn, self._options)

    def copy(self) -> Memory:
        """Another memory of the same arrivals; what is written into one leaves the other as it is."""
        other = copy(self)
        other._sample = Sample(*(each.copy() for each in self._sample))
        other._before = []
        return other

    # -- coming back -------------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int, Sample]:
        """Where it is, to come back to."""
        self._before = []
        return self.met, self._every, self._sample

    def back_to(self, mark: tuple[int, int, Sample]) -> None:
        """Forget what came after the last mark."""
        for sample, places, known in reversed(self._before):
            for held, old in zip(sample, known, strict=True):
                if len(held):
                    held[places] = old
        self.met, self._every, self._sample = mark
        self._before = []

    # -- growing -----------------------------------------------------------------------------------------

    def _room_for(self, count: int) -> Sample:
        n, points = self._decisions, len(self.spacing.points)
        shapes = ((count, n), (count, n, points), (count, n), (count, n), (count if self._has_fixed else 0, points))
        return Sample(*(np.zeros(shape) for shape in shapes))

    def _reserve(self, count: int) -> None:
        known = self._sample
        if count <= len(known.rewards):
            return
        grown = self._room_for(min(max(64, 2 * count), self.capacity + 1))
        for new, old in zip(grown, known, strict=True):
            new[: len(old)] = old
        self._sample = grown

    def _refine(self) -> None:
        """Practise on more points; what is remembered lies on straight lines between the old ones."""
        wide = self.spacing
        self._every = max(every for every in self._spacings if every < self._every)
        points, count = self.spacing.points, self.size
        known = self._sample
        self._sample = grown = self._room_for(max(len(known.rewards), count))
        for name in Sample._fields:
            old, new = getattr(known, name), getattr(grown, name)
            if name in ("use", "idle"):
                old = wide.between(old * self._scale[wide.points])[..., points] / self._scale[points]
            new[: len(old)] = old[: len(new)]

    # -- saving ------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, Any]:
        """Everything as arrays."""
        kept = {name: each[: self.size] for name, each in self._sample._asdict().items()}
        return {"met": np.array(self.met), "spacing": np.array(self._every), **kept}

    def take_over(self, arrays: dict[str, Any]) -> str | None:
        """Become what ``to_arrays`` told; or why that cannot be."""
        if missing := [name for name in MEMORY if name not in arrays]:
            return f"the memory's '{missing[0]}' is missing"
        for name in ("met", "spacing"):
            if arrays[name].shape != () or arrays[name].dtype.kind != "i":
                return f"the memory's '{name}' is no whole number"
        met, every = int(arrays["met"]), int(arrays["spacing"])
        if every not in self._spacings or met < 0:
            return "the memory's 'spacing' or 'met' is none that this program has"
        self._every, self.met = every, met
        fresh = self._room_for(self.size)
        for name, each in fresh._asdict().items():
            if arrays[name].shape != each.shape or arrays[name].dtype != float:
                return f"the memory's '{name}' must have the shape {each.shape} (got {arrays[name].shape})"
        self._sample = Sample(*(np.array(arrays[name]) for name in Sample._fields))
        return None


def _scale_of(evaluator: Evaluator, budget: FloatArray) -> FloatArray:
    """The size (R,) of the budget, row by row, so that rows in different units weigh alike.

    A row of one number weighs as much as one of many points: what an arrival is charged for it learns as fast.
    """
    scale = np.ones(len(budget))
    most = max(group.slices[POINTWISE].stop - group.slices[POINTWISE].start for group in evaluator.groups)
    for group in evaluator.groups:
        at = group.slices[POINTWISE]
        size = float(np.abs(budget[at]).mean())
        scale[at] = (size if size > 0.0 else 1.0) * np.sqrt((at.stop - at.start) / most)
    return scale
