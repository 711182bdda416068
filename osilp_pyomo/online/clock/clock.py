"""How many arrivals are still to come until an end: from how many were expected, and from when they came.

Policies count: they spread what is left over the arrivals ahead. Where arrivals come in continuous time and the end is
a time, that number is estimated. Arrivals are taken for a Poisson process. Its rate is even, or has the shape of a
forecast with times; which of both is told by the likelihood of the times so far. Its level is that of the program's
horizon, corrected by how many came, as far as that differs by more than chance (positive-part James-Stein).

The estimate is made anew whenever the number met has grown, or the time left has shrunk, by a small factor. Steps and
replays therefore make it at the same arrivals, and a replay need not stop at every one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.clock.times import Times

State = dict[str, FloatArray]

# By which factor arrivals met grow, or what is left shrinks, until the estimate is made anew.
_GROWTH = 1.02
# Parts of a forecast's time of which the rates are told, at most; the odds of a forecast before anything came, as a
# logarithm; and how far the evidence is counted.
_PARTS, _TRUST, _MOST = 50, 3.0, 30.0
# The variance of a day's rates, as a share of the square of their mean.
_UNEVEN = 0.01
# A level that is off by the factor e^0.5 is as unlikely as one standard deviation.
_LEVEL = 0.5
# A time that never comes, and can be saved.
_NEVER = 1e90
# Prices are found anew only while at least so many arrivals are still to come.
_LAST = 0.5


@dataclass(frozen=True, eq=False)
class Clock:
    """The time of a run; ``expected`` arrivals until the end, ``foretold`` (N,) times of arrivals, maybe none.

    What changes is kept by name in arrays: the time of ``now``, since the beginning; the end, ``until``; when the
    next estimate is due, as a number of arrivals and a time, ``next``; how many were met and ahead when a price was
    ``priced``; and the ``evidence`` for the forecast's shape.

    Examples
    --------
    >>> clock = Clock(Times.of(0, 10, None), 100)
    >>> state = clock.begin()
    >>> clock.ahead(state, 0.0, 0), clock.ahead(state, 5.0, 50), round(clock.ahead(state, 5.0, 200))
    (100.0, 50.0, 197)
    """

    times: Times
    expected: int
    foretold: FloatArray | None = None

    def begin(self) -> State:
        """What is known before the first arrival."""
        return {
            "now": np.zeros(1),
            "until": np.array([self.times.end]),
            "next": np.full(2, -1.0),
            "priced": np.array([0.0, float(self.expected)]),
            "evidence": np.zeros(1),
        }

    def revised(self, state: State, until: float) -> State:
        """Another end; the estimate and the price are made anew at the next arrival."""
        return {**state, "until": np.array([until]), "next": np.full(2, -1.0), "priced": np.array([0.0, -1.0])}

    # -- the shape of a forecast -----------------------------------------------------------------------------

    @cached_property
    def _shape(self) -> tuple[FloatArray, FloatArray] | None:
        """Edges of parts of the time, and the share of the foretold arrivals up to each; None without a forecast."""
        if self.foretold is None:
            return None
        count = len(self.foretold)
        parts = int(np.clip(np.sqrt(count), 1, _PARTS))
        edges = np.linspace(0.0, self.times.end, parts + 1)
        numbers = np.histogram(self.foretold, edges)[0] + 0.5
        return edges, np.concatenate([[0.0], np.cumsum(numbers) / numbers.sum()])

    def _share(self, time: float, by_forecast: bool) -> float:
        """Which share of the arrivals until the planned end is expected by a time; behind that end at an even rate."""
        end = self.times.end
        if not by_forecast or self._shape is None or time >= end:
            return time / end
        return float(np.interp(time, *self._shape))

    def _evidence(self, times: FloatArray) -> float:
        """The logarithm of how much likelier the forecast's rates at these times are than an even rate."""
        if self._shape is None:
            return 0.0
        edges, shares = self._shape
        rates = np.diff(shares) * (len(edges) - 1)
        inside = times[times < self.times.end]
        places = np.minimum((inside / self.times.end * len(rates)).astype(int), len(rates) - 1)
        return float(np.log(rates[places]).sum())

    def _odds(self, state: State, met: int) -> float:
        """How likely the forecast's shape is."""
        now = min(float(state["now"][0]), self.times.end)
        if self._shape is None:
            return 0.0
        told = float(state["evidence"][0])
        if now > 0.0:
            told -= met * math.log(self._share(now, True) / self._share(now, False))
        # Of two shapes that fit what came, the one is likelier by which not many more, or fewer, came than expected.
        told += self._surprise(self._share(now, False), met) - self._surprise(self._share(now, True), met)
        return 1.0 / (1.0 + math.exp(-(_TRUST + min(max(told, -_MOST), _MOST))))

    # -- the estimate ----------------------------------------------------------------------------------------

    def ahead(self, state: State, now: float, met: int) -> float:
        """How many arrivals are expected after one that comes ``now``, when so many were met before it."""
        likely, until = self._odds(state, met), float(state["until"][0])
        result = 0.0
        for by_forecast, weight in ((False, 1.0 - likely), (True, likely)):
            if weight > 0.0:
                share = self._share(now, by_forecast)
                rest = max(self._share(until, by_forecast) - share, 0.0)
                result += weight * self.expected * rest * self._level(share, met, by_forecast)
        return result

    def _level(self, share: float, met: int, by_forecast: bool) -> float:
        """By what expected numbers of arrivals are multiplied: the number that came over the number expected by now."""
        foreseen, came = self.expected * share, met + 1.0
        if foreseen <= 0.0:
            return 1.0
        ratio = came / foreseen
        # A part of a day is no fair sample of it: the smaller, the less.
        spread = max(came, foreseen) / foreseen**2 + ratio**2 * _uneven(share)
        if by_forecast and self.foretold is not None:
            spread += ratio**2 / (len(self.foretold) * share)
        off = (ratio - 1.0) ** 2
        return 1.0 + (ratio - 1.0) * max(0.0, 1.0 - spread / off) if off > 0.0 else 1.0

    def _surprise(self, share: float, met: int) -> float:
        """How unlikely the number that came is, as a logarithm, where such a share of those expected was expected."""
        came = met + 1.0
        off = math.log(came / max(self.expected * share, 1e-9))
        return off**2 / (2.0 * (_LEVEL**2 + 1.0 / came + _uneven(share)))

    def _next(self, state: State, now: float, met: int) -> FloatArray:
        """How many arrivals are met, or what time it is, when the next estimate is due."""
        until = float(state["until"][0])
        if now >= until:
            return np.array([max(met + 1.0, met * _GROWTH), _NEVER])
        later = now + (until - now) * (1.0 - 1.0 / _GROWTH)
        if self._shape is not None and now < self.times.end:
            edges, shares = self._shape
            last = self._share(min(until, self.times.end), True)
            share = self._share(now, True)
            later = min(later, max(float(np.interp(share + (last - share) * (1 - 1 / _GROWTH), shares, edges)), now))
        return np.array([max(met + 1.0, met * _GROWTH), later])

    # -- as arrivals come --------------------------------------------------------------------------------------

    def effective(self, state: State, times: FloatArray) -> FloatArray:
        """Times of arrivals as the clock counts them: of those that come late, or at an unknown time, the last one."""
        result: FloatArray = np.fmax.accumulate(np.fmax(times, state["now"][0]))
        return result

    def is_due(self, state: State, met: int, now: float) -> bool:
        """Whether the estimate is to be made anew before an arrival."""
        return met >= state["next"][0] or now >= state["next"][1]

    def stretch(self, state: State, times: FloatArray, start: int, met: int) -> int:
        """Up to which of the arrivals, in effective times, the estimate serves from ``start`` on, where it was made."""
        by_count = start + max(math.ceil(float(state["next"][0]) - met), 1)
        by_time = int(np.searchsorted(times[start:], state["next"][1], side="left")) + start
        return min(len(times), by_count, max(by_time, start + 1))

    def estimated(self, state: State, now: float, met: int) -> tuple[State, float]:
        """The state after an estimate for an arrival at ``now``, and how many are expected after it."""
        state = {**state, "now": np.array([now])}
        return {**state, "next": self._next(state, now, met)}, self.ahead(state, now, met)

    def counted(self, state: State, times: FloatArray) -> State:
        """The state after arrivals at some times, which may be unknown (nan) or late."""
        known = times[~np.isnan(times)]
        now = float(np.max(known, initial=float(state["now"][0])))
        return {**state, "now": np.array([now]), "evidence": state["evidence"] + self._evidence(known)}

    def price_is_due(self, state: State, met: int, ahead: float, growth: float) -> bool:
        """Whether the price is to be found anew: enough more was met, or enough less is ahead, than at the last."""
        before, left = state["priced"]
        grown = met >= max(before + 1.0, before * growth)
        return ahead >= _LAST and (grown or ahead <= left / growth or left < 0.0)

    def priced(self, state: State, met: int, ahead: float) -> State:
        """The state after a price was found."""
        return {**state, "priced": np.array([float(met), ahead])}


def _uneven(share: float) -> float:
    """By how much a share of a day differs from the rest, as the variance of their ratio."""
    return _UNEVEN * max(1.0 / share - 1.0, 0.0) if share > 0.0 else math.inf
