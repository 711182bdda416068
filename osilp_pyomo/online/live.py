"""The state of a controller: what changes while arrivals come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.online.experience.memory import Memory
from osilp_pyomo.online.history import History
from osilp_pyomo.online.kernels.linear import LARGEST
from osilp_pyomo.online.policies import Setting, State
from osilp_pyomo.online.stages.batch import PerView
from osilp_pyomo.online.stages.pieces import Pieces


@dataclass(frozen=True, eq=False)
class Rules:
    """What follows from budget and horizon, until one of them changes."""

    setting: Setting
    settings: FloatArray
    margins: PerView


@dataclass
class Live:
    """What changes while arrivals come.

    ``pack`` is the array that all others lie in, where they do; ``gaps`` are rows of which arrivals left nothing known
    between the points of a guard, and why; ``offers`` (2, R) are running sums of what arrivals could have added to rows
    that need something, and of its square; ``pieces`` is what is left on each piece of rows that are kept so; ``kept``
    says that no point of a guard is overrun, and False that this is not known; ``memory`` holds the arrivals that a
    policy goes through again; ``foresight`` is what was learned about a forecast; ``awaited`` are numbers of arrivals
    that were passed over, and are still to be updated; ``projected`` says that arrivals came of which only projections
    are known, so that what is left at points leaves them out; ``clock`` is what changes with time, of arrivals that
    come in continuous time, and then ``horizon`` an estimate.
    """

    t: int
    horizon: int
    state: State
    total: PerView
    left: dict[str, FloatArray]
    earned: float
    history: History | None
    fractions: FloatArray | None
    rules: Rules | None = None
    pack: FloatArray | None = None
    gaps: dict[str, str] = field(default_factory=dict)
    offers: FloatArray = field(default_factory=lambda: np.empty((2, 0)))
    pieces: tuple[Pieces, ...] = ()
    kept: bool = False
    memory: Memory | None = None
    foresight: dict[str, FloatArray] = field(default_factory=dict)
    awaited: tuple[int, ...] = ()
    projected: bool = False
    clock: dict[str, FloatArray] = field(default_factory=dict)

    def copy(self) -> Live:
        """A copy whose arrays can be changed; history and memory are shared, and must not be."""
        state = {name: np.array(value) for name, value in self.state.items()}
        left = {view: each.copy() for view, each in self.left.items()}
        return Live(
            self.t, self.horizon, state, self.total, left, self.earned, self.history, self.fractions, self.rules,
            gaps=self.gaps, offers=self.offers, pieces=self.pieces, kept=self.kept, memory=self.memory,
            foresight=self.foresight, awaited=self.awaited, projected=self.projected, clock=self.clock,
        )  # fmt: skip

    def mark(self) -> tuple[Any, Any]:
        """Where history and memory are, to come back to."""
        return tuple(None if each is None else each.mark() for each in (self.history, self.memory))  # type: ignore[return-value]

    def back_to(self, mark: tuple[Any, Any]) -> None:
        """Forget what came into history and memory after a mark."""
        for each, known in zip((self.history, self.memory), mark, strict=True):
            if each is not None:
                each.back_to(known)

    def packed(self) -> Live:
        """A copy whose arrays, all plain ones, lie in one, so that another can follow it by a single move."""
        arrays = [*self.left.values(), *self.state.values()]
        pack = np.concatenate(arrays)
        parts = iter(np.split(pack, np.cumsum([len(each) for each in arrays])[:-1]))
        left = {view: next(parts) for view in self.left}
        state = {name: next(parts) for name in self.state}
        return Live(
            self.t, self.horizon, state, self.total, left, self.earned, self.history, self.fractions, self.rules, pack,
            self.gaps, kept=self.kept, awaited=self.awaited, projected=self.projected,
        )  # fmt: skip

    def follow(self, other: Live) -> bool:
        """Become equal to another packed state of the same shape; False where it has another."""
        if self.pack is None or other.pack is None or len(self.pack) != len(other.pack):
            return False
        self.pack[:] = other.pack
        self.t, self.horizon, self.earned = other.t, other.horizon, other.earned
        self.total, self.rules, self.gaps, self.kept = other.total, other.rules, other.gaps, other.kept
        self.awaited, self.projected = other.awaited, other.projected
        return True

    @property
    def finite(self) -> bool:
        """Whether all running numbers are finite."""
        # Of very many pieces no array is made.
        if not all(each.left.min() > -LARGEST and each.left.max() < LARGEST for each in self.pieces):
            return False
        arrays = [*self.left.values(), *self.foresight.values(), *self.clock.values(), self.offers]
        arrays += [np.asarray(value) for value in self.state.values()]
        numbers = [each.ravel() for each in arrays if each.dtype.kind == "f"]
        # All in one pass: there are a dozen of them, most of a few numbers.
        return abs(self.earned) < LARGEST and bool((np.abs(np.concatenate(numbers)) < LARGEST).all())


def too_large(name: Any) -> DataError:
    """What is said of arrivals after which a running number is infinite or none."""
    which = "One of these arrivals" if name is None else f"The arrival {name!r}"
    return DataError(
        f"{which} has numbers so large that what is left or the price would no longer be finite; nothing was changed. "
        "Look for a wrong unit, or for a missing value that was written as a number."
    )
