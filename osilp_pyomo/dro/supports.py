"""Where random vectors lie, and where events happen: sets for semi-infinite rows of a worst case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros.uncertainty_sets import IntersectionSet

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DeclarationError, OptionError
from osilp_pyomo.index.choice_sets import OpenBoxBody
from osilp_pyomo.index.convex_sets import Body, BoxBody, ProductBody
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.sets import body_of, is_continuous, is_uncertainty_set, some_number


class Support:
    """Where a random number or vector may lie: continuous sets, or an uncertainty set of PyROS.

    One continuous set gives a loss a number, several or an uncertainty set give it a tuple.
    """

    def __init__(self, given: Any, what: str, near: Sequence[float] = ()) -> None:
        # Numbers around which something happens, for an interval whose ends do not tell.
        self.near = tuple(near)
        several = isinstance(given, list)
        self.sets = (
            [_interval(each, what) if isinstance(each, tuple) else each for each in given]
            if several
            else [_interval(given, what) if isinstance(given, tuple) else given]
        )
        for each in self.sets:
            if not is_continuous(each):
                raise OptionError(
                    f"{what}: the support must be a continuous set, an interval (low, high), a list of those, or an "
                    f"uncertainty set of PyROS (got {type(each).__name__})."
                )
        self.vector = several or is_uncertainty_set(self.sets[0])

    def on(self, block: Any, name: str) -> list[Any]:
        """The sets for rows of a block; intervals become sets of the block, so that columns have a name."""
        placed = []
        for number, each in enumerate(self.sets):
            if is_uncertainty_set(each) or each.parent_block() is not None:
                placed.append(each)
                continue
            own = name if len(self.sets) == 1 else f"{name}_{number + 1}"
            low, high = each.bounds()
            block.add_component(own, pyo.RangeSet(low, high, 0))
            interval = block.component(own)
            interval.looked_at = [at for at in self.near if (low is None or at >= low) and (high is None or at <= high)]
            placed.append(interval)
        return placed

    @property
    def dimension(self) -> int:
        """Number of entries of the random vector."""
        return sum(each.dim if is_uncertainty_set(each) else 1 for each in self.sets)

    def names(self, name: str) -> list[str]:
        """What columns are called that hold the entries of the random vector, as rows over its sets have them."""
        found = []
        for number, each in enumerate(self.sets):
            if is_uncertainty_set(each):
                found += [f"{name if number == 0 else f'{name}_{number + 1}'}[{k}]" for k in range(each.dim)]
            else:
                own = each.local_name if each.parent_block() is not None else None
                found.append(own or (name if len(self.sets) == 1 else f"{name}_{number + 1}"))
        return found

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of each entry, infinite where there are none."""
        lows, highs = [np.empty(0)], [np.empty(0)]
        for each in self.sets:
            if is_uncertainty_set(each):
                body = body_of(each, "support")
                lows.append(body.lower)
                highs.append(body.upper)
                continue
            low, high = each.bounds()
            lows.append(np.array([-np.inf if low is None else float(low)]))
            highs.append(np.array([np.inf if high is None else float(high)]))
        return np.concatenate(lows), np.concatenate(highs)

    def body(self) -> Body:
        """The support as one set."""
        lower, upper = self.ends()
        if not any(map(is_uncertainty_set, self.sets)):
            bounded = np.all(np.isfinite(lower) & np.isfinite(upper))
            return BoxBody(lower, upper) if bounded else OpenBoxBody(lower, upper)
        boxes: list[Body] = []
        start = 0
        for each in self.sets:
            size = each.dim if is_uncertainty_set(each) else 1
            at = slice(start, start + size)
            boxes.append(body_of(each, "support") if is_uncertainty_set(each) else BoxBody(lower[at], upper[at]))
            start += size
        return boxes[0] if len(boxes) == 1 else ProductBody(tuple(boxes))

    def random(self, arguments: Sequence[Any]) -> Any:
        """What a loss gets for the arguments of a rule over the sets."""
        if not self.vector:
            return arguments[0]
        return Vector(entry for each in arguments for entry in (each if isinstance(each, tuple) else (each,)))

    def example(self) -> Any:
        """Some value of the random vector."""
        arguments = [
            tuple(map(float, body_of(each, "support").centre)) if is_uncertainty_set(each) else some_number(each, 0.43)
            for each in self.sets
        ]
        return self.random(arguments)

    def entries(self, value: Any) -> list[Any]:
        """The entries of what a loss gets."""
        return list(value) if self.vector else [value]

    def contains(self, points: FloatArray) -> bool:
        """Whether all points (n, d) lie in the support."""
        start = 0
        for each in self.sets:
            size = each.dim if is_uncertainty_set(each) else 1
            part = points[:, start : start + size]
            start += size
            if is_uncertainty_set(each):
                if not body_of(each, "support").contains(part).all():
                    return False
                continue
            low, high = each.bounds()
            if (low is not None and part.min() < low) or (high is not None and part.max() > high):
                return False
        return True


def _interval(ends: tuple[Any, ...], what: str) -> Any:
    if len(ends) != 2:
        raise OptionError(f"{what}: an interval has two ends, (low, high) (got {ends!r}).")
    low, high = (None if end is None or np.isinf(end) else float(end) for end in ends)
    if low is not None and high is not None and not low < high:
        raise OptionError(
            f"{what}: the interval ({low:g}, {high:g}) is empty or one point; its low end must be below its high end."
        )
    interval = pyo.RangeSet(low, high, 0)
    interval.construct()
    return interval


@dataclass(frozen=True)
class Region:
    """Where rows of a piece hold: sets, and a condition on them or None."""

    support: Support
    name: str
    condition: Callable[[Any], Any] | None = None

    def constraint(self, block: Any, *ordinary: Any, rule: Callable[..., Any]) -> SemiInfiniteConstraint:
        """Rows over the region; the rule gets the block, ordinary members and the random vector."""
        count = len(ordinary)

        def with_vector(b: Any, *arguments: Any) -> Any:
            return rule(b, *arguments[:count], self.support.random(arguments[count:]))

        condition, where = self.condition, None
        if condition is not None:

            def where(b: Any, *arguments: Any) -> Any:
                return condition(self.support.random(arguments[count:]))

        return SemiInfiniteConstraint(*ordinary, *self.support.on(block, self.name), rule=with_vector, where=where)


def event_region(event: Any, support: Support) -> Region | None:
    """The part of a support where an event happens: a condition, or a set cut to the support; None if there is none."""
    if callable(event):
        return Region(support, "xi_event", event)
    own = Support(event, "event")
    if own.dimension != support.dimension:
        raise OptionError(f"event: it has {own.dimension} dimensions, the random vector has {support.dimension}.")
    if len(own.sets) != len(support.sets) or any(
        is_uncertainty_set(one) != is_uncertainty_set(other) for one, other in zip(own.sets, support.sets, strict=True)
    ):
        raise OptionError(
            "event: it must be of the same kind as the support, intervals for intervals and an uncertainty set for an "
            "uncertainty set; or give a condition event(xi)."
        )
    if is_uncertainty_set(own.sets[0]):
        both = IntersectionSet(event=own.sets[0], support=support.sets[0])
        try:
            body_of(both, "event")
        except DeclarationError:
            return None
        return Region(Support(both, "event"), "xi_event")
    ends = [_common(one, other) for one, other in zip(own.sets, support.sets, strict=True)]
    if any(low > high for low, high in ends):
        return None
    if any(low == high for low, high in ends):
        # Of an interval one point of the support is left.
        return Region(support, "xi_event", lambda xi: lies_within(support.entries(xi), ends))
    return Region(Support(ends if own.vector else ends[0], "event", support.near), "xi_event")


def _common(one: Any, other: Any) -> tuple[float, float]:
    """The ends of what two intervals have in common; the first is above the second where that is nothing."""
    lows, highs = zip(one.bounds(), other.bounds(), strict=True)
    return (
        max(-np.inf if end is None else float(end) for end in lows),
        min(np.inf if end is None else float(end) for end in highs),
    )


def lies_within(entries: Sequence[Any], ends: Sequence[tuple[float, float]]) -> Any:
    """Whether each entry, a number or an array, lies between its ends."""
    inside = [(low <= entry) & (entry <= high) for entry, (low, high) in zip(entries, ends, strict=True)]
    return np.logical_and.reduce(inside)
