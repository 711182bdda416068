"""What a forecast says of the arrivals ahead, corrected by what was seen, and as far as it is to be trusted.

One earlier day tells more of a day that changes than all of its own past (one sample of each period is enough for
polylogarithmic regret: arXiv:2603.14673, 2602.18114). But it may be wrong. Three things are done about that:

- Its level: the mean reward and use of what it foretold up to now are compared with those that came, and what is still
  to come is multiplied by their ratio, as far as that differs from 1 by more than chance (positive-part James-Stein).
- Its order: where the foretold arrivals do not show by a test of Kruskal and Wallis that they change with time, they
  are a sample of any time, and count beside those that were seen. Where they do, but arrivals would be the likelier
  ones without that order, by their level, by how their rewards change, and by what they use, it is left aside.
- Its shape: at every new price it is noted what arrivals should earn and use at that price, by the forecast and by the
  arrivals seen. When the next price is due, the squares of both errors are compared, each in units of what chance
  explains. The sum of the differences is kept between two bounds, as in Page's test, so that an old success saves no
  wrong forecast: below zero the forecast is left aside, and taken up again when it becomes the better one.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammainccinv
from scipy.stats import rankdata

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.online.forecast import Foretold, place_of
from osilp_pyomo.online.kernels.linear import TIE_SHARE
from osilp_pyomo.online.live import Live
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.sampling.sample import Sample, joined, taken
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, Batch

# Numbers of a forecast's uses that are held in memory.
_NUMBERS = 2**23
# Foretold arrivals that a sample holds at least: near the end the last of them.
_LEAST = 50
# Parts of a forecast that are compared to find out whether its order matters, and the chance of a false alarm.
_PARTS, _ALARM = 8, 1e-3
# What is foretold for the next arrivals is read from at least this share of the forecast.
_WINDOW = 1 / 40
# How many independent numbers the means of earnings and uses are worth; up to which misfit the arrivals seen are no
# better than the forecast; and the bounds of trust.
_WORTH, _CHANCE, _MOST = 3.0, 1.25, 6.0
# Digits of levels and trust behind the point.
_DIGITS = 9
# Rewards and uses beyond this are none: their squares would be infinite.
_LARGEST = 1e100
# A level that is off by the factor e^0.12 is as unlikely as one standard deviation.
_LEVEL = 0.12
# Means that differ by no more than this share of them say nothing about an order, however sure they are.
_ALIKE = 0.03


class Foresight:
    """A forecast as a sample of the arrivals ahead; what it learns is kept in ``live.foresight``, arrays by name."""

    def __init__(self, program: ProgramData, view: str, guard: str, foretold: Foretold) -> None:
        evaluator = program.evaluator
        width = max(1, evaluator.resources[POINTWISE].size * len(program.template.functions))
        self.foretold = foretold.thinned(max(2 * _LEAST, _NUMBERS // width))
        self._program = program
        self._view = view
        # When they come, where that is known and arrivals come in continuous time.
        self._times = self.foretold.arrivals.times
        batch = program.evaluator.batch(self.foretold.arrivals, keep_points=view == POINTWISE)
        if guard == POINTWISE and view == POINTWISE:
            batch = program.index_guard.lifted(batch)
        self._batch = taken(batch, slice(None))
        self._sizes = _sizes(self._batch)
        if not np.all(self._sizes < _LARGEST):
            raise DataError(
                "forecast=: some of its numbers are so large that they cannot be counted with; look for a wrong unit, "
                "or for a missing value that was written as a number."
            )
        self.ordered = self.foretold.ordered and _changes(self._batch)

    def begin(self) -> dict[str, FloatArray]:
        """What is known before the first arrival."""
        features = 1 + self._program.evaluator.resources[PROJECTED].size
        return {
            "trust": np.array([_MOST]),
            "levels": np.zeros((3, 2)),  # how many sizes were seen, their sums, and the sums of their squares
            "judged": np.zeros(2),  # the first two of them for rewards, when the last price was found
            # Sums over the times between prices, of means of rewards squared, times what was foretold, and of that
            # squared, each time counted by how sure it is; and the same for a forecast that is the same all the time.
            "order": np.zeros(6),
            "met": np.zeros(1 + features),  # arrivals since the last price, and what they earned and used
            "seen": np.zeros(1 + features),  # how many had been seen by then, and what those earn and use at its price
            "window": np.zeros(2),  # which foretold arrivals stood for those that came since
            "spread": np.zeros(features),
        }

    def _place(self, live: Live) -> int:
        """Before which of the foretold arrivals a run stands: by the clock, or by how many it has met."""
        if self._times is None:
            return place_of(len(self._batch), live.t, live.horizon)
        passed = int(np.searchsorted(self._times, live.clock["now"][0], side="right"))
        return min(passed, len(self._batch) - 1)

    # -- the sample ------------------------------------------------------------------------------------------

    def trusts(self, live: Live, seen: Sample) -> bool:
        """Whether the forecast is believed.

        It is not where arrivals contradicted it, nor where they would be the likelier ones without its order: where
        requests are worth twice what they should be by now, but what they should be on average; or where they keep
        their worth while it says that they rise.
        """
        in_order, without = (np.log(self._level(live, ordered)[0]) / _LEVEL for ordered in (self.ordered, False))
        levels = float(in_order**2 - without**2) / 2
        doubt = levels
        if self.ordered:
            in_order, without = (self._uses_against(live, seen, ordered) for ordered in (True, False))
            doubt += (self._change_against(live) + in_order - without) / 2
        # Rounding, which differs between steps and batches, must not decide.
        return float(live.foresight["trust"][0]) >= round(max(doubt, min(levels, 0.0)), _DIGITS)

    def _change_against(self, live: Live) -> float:
        """What means of rewards between prices say against their order: squared errors, more than without it."""
        by_order, by_none = live.foresight["order"].reshape(2, 3)
        count, sums, squares = live.foresight["levels"][:, 0]
        if count < 2 or not (by_order[2] > 0 and by_none[2] > 0):
            return 0.0
        mean = sums / count
        errors = [each[0] - each[1] ** 2 / each[2] for each in (by_order, by_none)]
        variance = max(squares / count - mean**2, 0.0) + (_ALIKE * mean) ** 2
        return float((errors[0] - errors[1]) / variance) if variance > 0 else 0.0

    def _uses_against(self, live: Live, seen: Sample, ordered: bool) -> float:
        """What uses seen say against those foretold, with their order or without; nothing, where chance explains it."""
        place = self._place(live) if ordered else len(self._batch)
        if place < 2:
            return 0.0
        weights = np.ones(place)
        if ordered and live.history is not None and np.isfinite(live.history.memory):
            # What was seen counts the less the older it is.
            weights = np.exp(np.arange(1 - place, 1) * (live.t / place / live.history.memory))
        level = self._level(live, ordered)[1]
        foretold, its_variance = _mean(level * self._batch.use[PROJECTED][:place].sum(axis=1), weights)
        mean, variance = _mean(seen.batch.use[PROJECTED].sum(axis=1), seen.weights)
        return _WORTH * max(0.0, _misfit(mean - foretold, variance + its_variance + (_ALIKE * mean) ** 2) - 1)

    def sample(self, live: Live, seen: Sample | None) -> Sample:
        """The arrivals that stand for those ahead: foretold, seen, or both."""
        if seen is not None and not self.trusts(live, seen):
            return seen
        count = len(self._batch)
        first = 0
        if self.ordered:
            first = max(0, min(self._place(live), count - _LEAST))
        level = self._level(live, self.ordered)
        ahead = Sample.of_batch(taken(self._batch, slice(first, count))).at_level(*level.tolist())
        return ahead if self.ordered or seen is None else joined([ahead, seen])

    def _level(self, live: Live, ordered: bool) -> FloatArray:
        """By what rewards and uses of the forecast are multiplied, as one with an order or without."""
        count, sums, squares = live.foresight["levels"]
        known = self._sizes
        if ordered:
            known = known[: self._place(live)]
        if count[0] < 2 or len(known) < 2:
            return np.ones(2)
        mean, foretold = sums / count, known.mean(axis=0)
        ratio = np.where((mean > 0) & (foretold > 0), mean / np.where(foretold > 0, foretold, 1.0), 1.0)
        spread = np.maximum(squares / count - mean**2, 0.0) / (count * np.where(mean > 0, mean, 1.0) ** 2)
        spread = spread + known.var(axis=0) / (len(known) * np.where(foretold > 0, foretold, 1.0) ** 2)
        chance = ratio**2 * spread / np.maximum((ratio - 1) ** 2, 1e-300)
        level: FloatArray = 1 + (ratio - 1) * np.maximum(0.0, 1 - chance)
        # Sums over a batch and sums over single arrivals differ by rounding, which must not decide between ties.
        return level.round(_DIGITS)

    # -- what it learns -------------------------------------------------------------------------------------

    def meet(self, live: Live, batch: Batch, dual: FloatArray) -> None:
        """Count arrivals: their sizes, and what they earn and use at the price of now."""
        known = live.foresight
        sizes, seen = _sizes(batch), self._features(batch, dual, np.ones(2))
        levels, met = known["levels"].copy(), known["met"].copy()
        levels += [np.full(2, len(batch)), sizes.sum(axis=0), (sizes**2).sum(axis=0)]
        met += [len(batch), *seen.sum(axis=0)]
        live.foresight = {**known, "levels": levels, "met": met}

    def judge(self, live: Live) -> None:
        """Compare what came since the last price with what was to be expected then.

        The forecast is read at the level of now, so that a level that was wrong is not taken for a wrong shape.
        """
        known = live.foresight
        count, trust, seen, order = known["met"][0], known["trust"], known["seen"], known["order"]
        if count > 0 and seen[0] > 0:
            first, stop = np.clip(known["window"], [0, 1], [len(self._batch) - 1, len(self._batch)]).astype(int)
            window = taken(self._batch, slice(first, max(stop, first + 1)))
            foretold = self._features(window, live.state["dual"], self._level(live, self.ordered))
            misfits = [
                _misfit(known["met"][1:] / count - mean, known["spread"] * (1 / count + 1 / size))
                for size, mean in ((seen[0], seen[1:]), (len(foretold), foretold.mean(axis=0)))
            ]
            trust = np.clip(trust + _WORTH / 2 * (max(misfits[0], _CHANCE) - misfits[1]), -_MOST, _MOST).round(_DIGITS)
            order = order + self._errors(live, first, max(stop, first + 1))
        judged = known["levels"][:2, 0].copy()
        live.foresight = {**known, "trust": trust, "met": np.zeros_like(known["met"]), "judged": judged, "order": order}

    def _errors(self, live: Live, first: int, stop: int) -> FloatArray:
        """What the arrivals since the last price add to ``order``, by those foretold from the first to the stop."""
        count, total = live.foresight["levels"][:2, 0] - live.foresight["judged"]
        if count < 1:
            return np.zeros(6)
        mean, foretold = total / count, float(self._sizes[first:stop, 0].mean())
        sure = 1 / (1 / count + 1 / (stop - first))
        return np.concatenate([
            sure * np.array([mean**2, mean * foretold, foretold**2]), count * np.array([mean**2, mean, 1.0]),
        ])  # fmt: skip

    def expect(self, live: Live, seen: Sample | None, until: int) -> None:
        """Note what arrivals seen earn and use at the price of now, and which are foretold until the next price."""
        dual, count = live.state["dual"], len(self._batch)
        past = np.zeros((0, len(live.foresight["spread"])))
        told = np.zeros_like(live.foresight["seen"])
        if seen is not None:
            past = self._features(seen.batch, dual, np.ones(2))
            told = np.array([seen.total, *(seen.weights @ past / seen.total)])
        window = np.array([0.0, count])
        if self.ordered:
            ahead, middle = (until - live.t) * count / live.horizon, (until + live.t) / 2 * count / live.horizon
            if self._times is not None:
                place = self._place(live)
                ahead = (until - live.t) * (count - place) / max(live.horizon - live.t, 1)
                middle = place + ahead / 2
            wide = min(max(_WINDOW * count, ahead, 1.0), float(count))
            middle = np.clip(middle, wide / 2, count - wide / 2)
            first = int(middle - wide / 2)
            window = np.array([first, max(first + 1.0, np.ceil(middle + wide / 2))])
        foretold = self._features(self._batch, dual, self._level(live, self.ordered))
        spread = np.concatenate([foretold, past]).var(axis=0)
        live.foresight = {**live.foresight, "seen": told, "window": window, "spread": spread}

    def _features(self, batch: Batch, dual: FloatArray, level: FloatArray) -> FloatArray:
        """What arrivals earn above their price, and use (N, 1 + R): the dual function and its gradient, one by one."""
        program, use = self._program, level[1] * batch.use[self._view]
        weights = level[0] * batch.rewards - use @ dual
        if program.template.linear:
            # What earns as much as it costs takes nothing, whatever rounding says.
            rounding = TIE_SHARE * (level[0] * np.abs(batch.rewards) + np.abs(use) @ np.abs(dual))
            values = np.where(weights > rounding, program.evaluator.reach(batch), 0.0)
            if program.template.own_rows:
                gains = weights * values
                near = gains >= (gains - rounding * values).max(axis=1, keepdims=True)
                best = np.arange(weights.shape[1]) == np.argmax(near, axis=1)[:, None]
                values = np.where(best, values, 0.0)
        else:
            x = program.solver.best(batch, weights, program.densities(dual, self._view))
            values = program.template.values(batch.arrivals, x)
        used = np.einsum("bk,bkr->br", values, level[1] * batch.use[PROJECTED])
        return np.column_stack([(weights * values).sum(axis=1), used])


def _sizes(batch: Batch) -> FloatArray:
    """How large rewards and uses are (N, 2), all options and resources together."""
    return np.column_stack([np.abs(batch.rewards).sum(axis=1), np.abs(batch.use[PROJECTED]).sum(axis=(1, 2))])


def _mean(numbers: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of rows (N, R) that count as often as their weights say, and its variance."""
    share = weights / weights.sum()
    mean = share @ numbers
    return mean, share @ (numbers - mean) ** 2 / weights.sum()


def _misfit(differences: FloatArray, variances: FloatArray) -> float:
    """The mean square of differences, each measured by its variance: 1 where nothing but chance is in them."""
    kept = variances > 1e-12 * variances.max(initial=0.0)
    return float(np.mean(differences[kept] ** 2 / variances[kept])) if kept.any() else 1.0


def _changes(batch: Batch) -> bool:
    """Whether arrivals change along their order: the test of Kruskal and Wallis on their sizes, part against part."""
    count = len(batch)
    if count < 5 * _PARTS:
        return True
    reward, use = batch.rewards.sum(axis=1), batch.use[PROJECTED].sum(axis=1)
    looked_at = np.column_stack([reward, np.abs(reward - np.median(reward)), use, reward[:, None] * use])
    looked_at = looked_at[:, np.ptp(looked_at, axis=0) > 0]
    if not looked_at.shape[1]:
        return False
    ranks = rankdata(looked_at, axis=0)
    part = np.arange(count) * _PARTS // count
    sizes = np.bincount(part)
    means = np.stack([ranks[part == each].mean(axis=0) for each in range(_PARTS)])
    statistic = 12 / (count * (count + 1)) * (sizes[:, None] * (means - (count + 1) / 2) ** 2).sum(axis=0)
    limit = 2 * gammainccinv((_PARTS - 1) / 2, _ALARM / looked_at.shape[1])
    return bool(statistic.max() > limit)
