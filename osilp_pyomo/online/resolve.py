"""Resolve: the price comes from the LP of all arrivals seen so far, on the budget that is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import AUTO, HIGHS
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.policies import Policy, Seen, Setting, State
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED


@dataclass(frozen=True)
class Resolve(Policy):
    """Solve the problem of the arrivals seen so far again and again, on the budget that is left.

    Not in the paper. Before arrival t the sample problem of the N arrivals seen gets N / (T - t) of what remains, and
    its dual is the price until the next time. Times are geometric from both ends of the horizon: early because the
    price is not known yet, late because single arrivals begin to matter for what is left. On ties the sample's own
    fraction is taken (of stages without rows of their own). A row that is overrun already gets nothing; where the
    sample problem has no solution all the same, the price stays what it was.

    Parameters
    ----------
    exact : bool
        False: one row for every test function. True: a row for every grid point that the sample would overrun, added
        by exchange, so that no point is overrun rather than no average.
    growth : float
        Ratio of the times.
    caution : float
        An arrival takes at most caution / sqrt(T - t) of what is left of a resource: the sample cannot know how many
        are like it, and a few heavy ones could use a point up for good.
    discount : float, optional
        The mean age, in arrivals, of what counts: one that was seen so many arrivals ago counts 1/e of the last one.
        For arrivals that change while no forecast is known; left out, all count the same.
    smoothed : bool
        Whether the sample holds moved copies of arrivals whose data are numbers that do not repeat: a kernel density of
        what was seen, by Scott's width, in place of the few arrivals themselves. Data of which fewer than nine in ten
        are different, whole numbers, curves, and data that no row uses, such as a reward, are not moved.
    solver : "auto" or "highs"
        How the sample's LP is solved: by its dual in as many dimensions as there are resources, or by HiGHS with a
        column for every arrival seen; they agree to 1e-8.

    Notes
    -----
    Measured regret against the projected optimum, projected guard: a third to a tenth of that of the algorithms of the
    paper, and it does not grow with T on finite support (``benchmarks/regret.py``). Against the optimum of all rows,
    with no point overrun, it grows slowly there as well, about like log T.

    Rewards of stages with rows of their own, such as a choice among options, differ by a hundred thousandth at random,
    in the sample and in decisions, so that options that earn the same are shared as the sample's LP shares them.

    A forecast, ``program.controller(Resolve(), forecast=last_day)``, takes the place of the sample.

    Examples
    --------
    >>> Resolve().times(20).tolist()
    [1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 14, 15, 16, 17, 18, 19]
    """

    exact: bool = False
    growth: float = 1.3
    caution: float = 2.0
    discount: float | None = None
    smoothed: bool = True
    solver: str = field(default=AUTO, repr=False)
    algorithm: ClassVar[str] = "re-solving on the remaining budget"
    foresees: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.growth, int | float) or not 1 < self.growth <= 10:
            raise OptionError(f"Resolve: growth must lie in (1, 10] (got {self.growth!r}).")
        if not isinstance(self.caution, int | float) or not self.caution > 0:
            raise OptionError(f"Resolve: caution must be a number > 0 (got {self.caution!r}).")
        given = self.discount
        if given is not None and (
            isinstance(given, bool) or not isinstance(given, int | float) or not 1 <= given < np.inf
        ):
            raise OptionError(f"Resolve: discount must be a number of arrivals of at least 1 (got {given!r}).")
        if not isinstance(self.smoothed, bool):
            raise OptionError(f"Resolve: smoothed must be True or False (got {self.smoothed!r}).")
        if self.solver not in (AUTO, HIGHS):
            raise OptionError(f"Resolve: solver must be 'auto' or 'highs' (got {self.solver!r}).")

    def __repr__(self) -> str:
        more = f", discount={self.discount!r}" * (self.discount is not None) + ", smoothed=False" * (not self.smoothed)
        return f"Resolve(exact={self.exact!r}, growth={self.growth!r}, caution={self.caution!r}{more})"

    @property
    def view(self) -> str:  # type: ignore[override]
        """Which resources are priced."""
        return POINTWISE if self.exact else PROJECTED

    @property
    def memory(self) -> float:
        """The mean age of what counts, in arrivals; infinite where all count the same."""
        return np.inf if self.discount is None else float(self.discount)

    def times(self, horizon: int) -> FloatArray:
        """How many arrivals have been seen when the price is found anew."""
        return _times(horizon, self.growth)

    def due(self, t: int, horizon: int) -> bool:
        """Whether the price is found anew before arrival t (from 0)."""
        times = self.times(horizon)
        at = int(np.searchsorted(times, t))
        return at < len(times) and int(times[at]) == t

    def next_due(self, t: int, horizon: int) -> int:
        """The first time after t at which the price is found anew."""
        times = self.times(horizon)
        at = int(np.searchsorted(times, t, side="right"))
        return int(times[at]) if at < len(times) else np.iinfo(np.int64).max

    def start(self, setting: Setting) -> State:
        return {"dual": np.zeros(setting.size)}

    def price(self, state: State, setting: Setting) -> FloatArray:
        return state["dual"]

    def learn(self, state: State, setting: Setting, seen: Seen) -> State:
        # The price changes at its times only, from the arrivals that the controller remembers.
        return state


@lru_cache(maxsize=64)
def _times(horizon: int, growth: float) -> FloatArray:
    powers = growth ** np.arange(0, int(np.log(max(horizon, 2)) / np.log(growth)) + 2)
    early = np.unique(np.ceil(powers - 1e-9).astype(np.int64))
    both = np.unique(np.concatenate([early, horizon - early]))
    return both[(both >= 1) & (both < horizon)]
