"""Arrivals in numbers: what each function of the decision earns, and what it uses of every resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.stages.template import Arrivals

# Which resources a policy prices.
PROJECTED, POINTS = "projected", "points"


@dataclass(frozen=True, eq=False)
class Batch:
    """Some arrivals in numbers: B arrivals, K functions, R projected resources, M grid resources.

    ``rewards`` (B, K) and ``usage`` (B, K, R) are the coefficients of the functions; ``earned`` (B,) and ``fixed`` (B
    or 0, R) what does not depend on the decision. ``points`` (B, K, M) is the use at grid points, None where only
    projections are known.
    """

    arrivals: Arrivals
    rewards: FloatArray
    earned: FloatArray
    usage: FloatArray
    fixed: FloatArray
    lower: FloatArray
    upper: FloatArray
    own: FloatArray
    own_fixed: FloatArray
    points: FloatArray | None
    point_fixed: FloatArray

    def __len__(self) -> int:
        return len(self.rewards)

    def part(self, at: slice) -> Batch:
        """Some of the arrivals."""

        def cut(array: FloatArray) -> FloatArray:
            return array[at] if len(array) else array

        return Batch(
            self.arrivals.part(at), self.rewards[at], self.earned[at], self.usage[at], cut(self.fixed),
            self.lower[at], self.upper[at], self.own[at], self.own_fixed[at],
            None if self.points is None else self.points[at], cut(self.point_fixed),
        )  # fmt: skip

    def __repr__(self) -> str:
        known = "test functions" if self.points is None else "test functions and grid points"
        return f"{len(self)} arrivals, evaluated on {self.usage.shape[2]} {known}, for replay, steps and step"

    def __getitem__(self, place: int) -> ProjectedArrival:
        """One of the arrivals, for ``controller.step``."""
        return ProjectedArrival(self, range(len(self))[place])

    def __iter__(self) -> Iterator[ProjectedArrival]:
        return (ProjectedArrival(self, place) for place in range(len(self)))

    def view(self, which: str) -> tuple[FloatArray, FloatArray]:
        """Use (B, K, R or M) and fixed use of the resources that a policy prices."""
        if which == PROJECTED:
            return self.usage, self.fixed
        assert self.points is not None
        return self.points, self.point_fixed


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


def joined(parts: Sequence[Batch], arrivals: Arrivals) -> Batch:
    """Batches one after the other as one, without grid points."""

    def all_of(name: str) -> FloatArray:
        return np.concatenate([getattr(part, name) for part in parts])

    return Batch(
        arrivals, all_of("rewards"), all_of("earned"), all_of("usage"), all_of("fixed"), all_of("lower"),
        all_of("upper"), all_of("own"), all_of("own_fixed"), None, parts[0].point_fixed[:0],
    )  # fmt: skip
