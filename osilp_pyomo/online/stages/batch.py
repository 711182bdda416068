"""Arrivals in numbers: what each function of the decision earns, and what it uses of every resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.online.stages.steps import Steps
from osilp_pyomo.online.stages.template import Arrivals

# Two views of the resources: rows against test functions, which policies of the paper price, and rows at single points
# of the grid. Whatever exists in both views is a mapping from the view.
PROJECTED, POINTWISE = VIEWS = ("projected", "pointwise")
OTHER = {PROJECTED: POINTWISE, POINTWISE: PROJECTED}
# What a pointwise guard looks at where columns are steps: pieces of the index in place of points.
GUARDED = "guarded"
PerView = Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some arrivals in numbers: B arrivals, K functions, R resources of a view.

    ``rewards`` (B, K) and ``use`` (B, K, R) are the coefficients of the functions; ``earned`` (B,) and ``fixed`` (B or
    0, R) what does not depend on the decision. Where only projections are known, ``use`` has no pointwise entry.
    ``projection`` tells what they were projected by, if that is known; ``gaps`` of which rows nothing is known between
    the points of a guard, and why; ``steps`` are the columns of rows that a guard keeps piece by piece, for each of
    them by the function of the decision; ``harmless`` (B, R) are rows at points that a decision can only add to, before
    its column was lifted.
    """

    arrivals: Arrivals
    rewards: FloatArray
    earned: FloatArray
    use: PerView
    fixed: PerView
    lower: FloatArray
    upper: FloatArray
    own: FloatArray
    own_fixed: FloatArray
    projection: str = ""
    gaps: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[tuple[tuple[int, Steps], ...], ...] = ()
    harmless: BoolArray | None = None

    def __len__(self) -> int:
        return int(self.rewards.shape[0])

    def of_another(self, arrivals: Arrivals, rewards: FloatArray, use: PerView) -> Batch:
        """The same for other arrivals, as many of them; a third of what the constructor costs, for single steps."""
        batch = object.__new__(Batch)
        batch.__dict__.update(self.__dict__, arrivals=arrivals, rewards=rewards, use=use)
        return batch

    def part(self, at: slice) -> Batch:
        """Some of the arrivals."""

        def cut(array: FloatArray) -> FloatArray:
            return array[at] if len(array) else array

        return Batch(
            self.arrivals.part(at), self.rewards[at], self.earned[at],
            {view: use[at] for view, use in self.use.items()}, {view: cut(use) for view, use in self.fixed.items()},
            self.lower[at], self.upper[at], self.own[at], self.own_fixed[at], self.projection, self.gaps,
            tuple(tuple((number, each.part(at)) for number, each in row) for row in self.steps),
            None if self.harmless is None else self.harmless[at],
        )  # fmt: skip

    def with_rewards(self, rewards: FloatArray) -> Batch:
        """The same arrivals with other rewards (B, K)."""
        return replace(self, rewards=rewards)

    def __repr__(self) -> str:
        known = "test functions and grid points" if POINTWISE in self.use else "test functions"
        return f"{len(self)} arrivals, evaluated on {self.use[PROJECTED].shape[2]} {known}, for replay, steps and step"

    def __getitem__(self, place: int) -> ProjectedArrival:
        """One of the arrivals, for ``controller.step``."""
        return ProjectedArrival(self, range(len(self))[place])

    def __iter__(self) -> Iterator[ProjectedArrival]:
        return (ProjectedArrival(self, place) for place in range(len(self)))


class ProjectedArrival:
    """One arrival of a batch; nothing is copied, so that a step costs its arithmetic only."""

    __slots__ = ("batch", "place")

    def __init__(self, batch: Batch, place: int) -> None:
        self.batch, self.place = batch, place

    def __repr__(self) -> str:
        return f"Arrival {self.batch.arrivals.name(self.place)!r}, evaluated, for step"

    @property
    def alone(self) -> Batch:
        """The same as a batch of one."""
        return self.batch.part(slice(self.place, self.place + 1))


def concat_batches(parts: Sequence[Batch], arrivals: Arrivals) -> Batch:
    """Batches one after the other as one, without grid points."""

    def all_of(name: str) -> FloatArray:
        return np.concatenate([getattr(part, name) for part in parts])

    use = {PROJECTED: np.concatenate([part.use[PROJECTED] for part in parts])}
    fixed = {
        PROJECTED: np.concatenate([part.fixed[PROJECTED] for part in parts]),
        POINTWISE: parts[0].fixed[POINTWISE][:0],
    }
    return Batch(
        arrivals, all_of("rewards"), all_of("earned"), use, fixed, all_of("lower"), all_of("upper"), all_of("own"),
        all_of("own_fixed"),
    )  # fmt: skip


def only_adds(batch: Batch, view: str) -> BoolArray:
    """Rows (B, R) of which arrivals use nothing, whatever is decided: all that they can do is add to them."""
    found = np.all(batch.use[view] <= 0, axis=1)
    return found & np.all(batch.fixed[view] <= 0, axis=0) if len(batch.fixed[view]) else found
