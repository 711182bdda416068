"""Prices from samples: when a policy that re-solves finds its price anew, from which arrivals, and on which budget."""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.experience.memory import uniforms
from osilp_pyomo.online.history import keys_of
from osilp_pyomo.online.kernels import fitting
from osilp_pyomo.online.kernels.linear import LARGEST
from osilp_pyomo.online.live import Live, Rules
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.resolve import Resolve
from osilp_pyomo.online.sampling.copies import TIE_BREAK, breaks_ties, moved_copies
from osilp_pyomo.online.sampling.foresight import Foresight
from osilp_pyomo.online.sampling.problem import SampleAnswer, price_sample
from osilp_pyomo.online.sampling.sample import Sample, joined, shares_of_equals
from osilp_pyomo.online.stages.batch import POINTWISE, Batch

# A share of a whole decision that is this near to a whole number is one.
_WHOLE = 1e-6


class SamplePrices:
    """Finds the prices of :class:`Resolve` and tells what its sample does with arrivals."""

    def __init__(
        self, program: ProgramData, policy: Resolve, guard: str, seed: int, foresight: Foresight | None
    ) -> None:
        self._program = program
        self._policy = policy
        self._guard = guard
        self._seed = seed
        self._foresight = foresight
        self._keeps_points = policy.view == POINTWISE
        self._breaks_ties = breaks_ties(program.template)

    def find(self, live: Live, rules: Rules, until: int, among: Batch | None = None) -> None:
        """Find the price anew, to be used ``until`` so many arrivals were met.

        Arrivals ``among`` which nothing is decided yet, but which are seen, count as well.
        """
        if self._foresight is not None:
            self._foresight.judge(live)
        sample = self._sample(live, among)
        if sample is None:
            return
        answer = self._solve(live, rules, sample, sample.total / max(live.horizon - live.t, 1))
        # A price that cannot be counted is none, in the middle of a batch as after a single step.
        if answer is not None and np.all(np.abs(answer.dual) < LARGEST):
            live.state = {**live.state, "dual": answer.dual}
            live.fractions = self._shares_of(live, sample, answer)
        if self._foresight is not None:
            self._foresight.expect(live, self._seen(live), until)

    def together(self, live: Live, rules: Rules, batch: Batch) -> FloatArray:
        """Decisions (B, n) by the problem of a batch, each of its arrivals once, and of the sample as those after it.

        The price of that problem becomes the price of now; nan stands for decisions that are to be found by it, as of
        concave stages, whose decisions it says uniquely.
        """
        own = Sample.of_batch(self.broken(live, batch))
        parts, ahead = [own], live.horizon - live.t - len(batch)
        sample = self._sample(live, batch) if ahead > 0 else None
        if sample is not None:
            parts.append(sample.scaled(ahead))
        answer = self._solve(live, rules, joined(parts), 1.0)
        unknown = np.full(batch.lower.shape, np.nan)
        if answer is None or not np.all(np.abs(answer.dual) < LARGEST):
            return unknown
        live.state = {**live.state, "dual": answer.dual}
        live.fractions = None
        if answer.shares is None:
            return unknown
        shares = answer.shares[: len(batch)]
        with np.errstate(invalid="ignore"):
            return self._whole(live, batch, batch.lower + shares * (batch.upper - batch.lower))

    def _whole(self, live: Live, batch: Batch, x: FloatArray) -> FloatArray:
        """Decisions in which integers are whole: a share of one is its chance; nan where that might break a row."""
        template = self._program.template
        if not template.integer.any():
            return x
        x = np.where(np.abs(x - np.round(x)) <= _WHOLE, np.round(x), x)
        broken = template.integer & (x != np.round(x))
        if template.chooses_one:
            for b in np.flatnonzero(broken.any(axis=1)):
                coin = uniforms(self._seed, live.t + int(b), 1, 1)[0, 0]
                chosen = int(np.searchsorted(np.cumsum(x[b]), coin, side="right"))
                x[b] = np.arange(x.shape[1]) == chosen if chosen < x.shape[1] or template.options else np.nan
        elif template.own_rows:
            x[broken.any(axis=1)] = np.nan
        else:
            coins = uniforms(self._seed, live.t, *x.shape)
            x = np.where(broken, np.floor(x) + (coins < x - np.floor(x)), x)
        return x

    def _solve(self, live: Live, rules: Rules, sample: Sample, share: float) -> SampleAnswer | None:
        """The problem of a sample on a share of what is left."""
        view = self._policy.view
        # Rows that are used up or overrun get nothing rather than rounding, or less than nothing, which nothing meets;
        # as for the guard, what is rounding beside their whole budget uses nothing of them.
        left, slack = live.left[view], rules.margins[view][fitting.SLACK]
        used_up = (live.total[view] >= 0) & (left <= fitting.USED_UP * slack)
        nothing = np.where(used_up, fitting.USED_UP * slack, fitting.nothing(slack, live.horizon))
        return price_sample(
            self._program.evaluator,
            self._program.solver,
            sample,
            share * np.where(used_up, 0.0, left),
            live.state["dual"],
            view,
            nothing,
            self._policy.solver,
        )

    def _seen(self, live: Live, among: Batch | None = None) -> Sample | None:
        """The arrivals that were met, and those that are seen."""
        assert live.history is not None
        seen = [Sample.of_history(live.history, self._program.evaluator)] if live.history.size else []
        if among is not None and len(among):
            seen.append(Sample.of_batch(among))
        return joined(seen) if seen else None

    def _sample(self, live: Live, among: Batch | None) -> Sample | None:
        """The arrivals that stand for those ahead; None where none is known."""
        known = self._seen(live, among)
        sample = known if self._foresight is None else self._foresight.sample(live, known)
        if sample is None:
            return None
        key = (self._seed, live.t)
        return moved_copies(self._program, sample, self._policy.smoothed, self._guard, self._keeps_points, key)

    def _shares_of(self, live: Live, sample: Sample, answer: SampleAnswer) -> FloatArray | None:
        """What the sample's LP does with each arrival of the history; None where it does not say."""
        assert live.history is not None
        seen = sample.numbers >= 0
        if answer.shares is None or self._breaks_ties or not seen.any():
            return None
        found = answer.shares if seen.all() else shares_of_equals(sample, answer.shares)
        shares = np.full((live.history.size, answer.shares.shape[1]), np.nan)
        shares[sample.numbers[seen]] = found[seen]
        return shares

    # -- one arrival, or several -----------------------------------------------------------------------------

    def broken(self, live: Live, batch: Batch) -> Batch:
        """Arrivals whose options earn a little more or less, so that none of them tie."""
        if not self._breaks_ties:
            return batch
        draws = uniforms(self._seed, live.t, *batch.rewards.shape)
        return batch.with_rewards(batch.rewards * (1 + TIE_BREAK * (draws - 0.5)))

    def fractions(self, live: Live, batch: Batch) -> FloatArray:
        """What the sample's LP does with arrivals like these, where they tie; (0, n) where there is nothing known."""
        count = len(self._program.template.decisions)
        if live.fractions is None or live.history is None:
            return np.empty((0, count))
        numbers = np.array([live.history.number_of(key) for key in keys_of(batch)])
        known = (numbers >= 0) & (numbers < len(live.fractions))
        result = np.full((len(batch), count), np.nan)
        result[known] = live.fractions[numbers[known]]
        for b, j in np.argwhere((result > 0) & (result < 1) & self._program.template.integer):
            coin = np.random.default_rng([self._seed, live.t + int(b), int(j)]).random()
            result[b, j] = float(coin < result[b, j])
        return result
