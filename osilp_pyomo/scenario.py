"""The scenario approach: rows at a random sample stand for all of them, with a probability.

A convex problem whose rows hold at ``count`` independent draws violates the rest of the distribution by more than
``violation`` only with probability ``sum_{i < decisions} C(count, i) violation^i (1 - violation)^(count - i)``
(Calafiore and Campi, 2005; in this sharp form Campi and Garatti, 2008). After solving, the number of draws that the
answer rests on gives a better bound (Campi and Garatti, 2018, "wait and judge").

The guarantee is for the distribution that was drawn from, and for problems whose answer is unique; integers have none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import whole_number
from osilp_pyomo.errors import GridError, OptionError
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.grids import Grid
from osilp_pyomo.offline.results import Result

__all__ = ["Scenarios", "binding_scenarios", "scenarios_needed", "violation_bound"]

# Uniform draws from a box that may be thrown away for each one that lies in the set.
_TRIES = 10_000


def scenarios_needed(violation: float, confidence: float, decisions: int) -> int:
    """The smallest number of draws that keeps the probability of violation low with the confidence asked for.

    Parameters
    ----------
    violation : float
        Probability with which a new draw may violate a row.
    confidence : float
        Probability, over the draws, with which that must be achieved.
    decisions : int
        Number of variables of the problem.

    Examples
    --------
    >>> scenarios_needed(violation=0.05, confidence=0.999, decisions=10)
    447
    """
    _check_share("violation", violation)
    _check_share("confidence", confidence)
    whole_number(decisions, "decisions", 1)

    def risk(count: int) -> float:
        return float(binom.cdf(decisions - 1, count, violation))

    low, high = decisions - 1, 2 * decisions
    while risk(high) > 1 - confidence:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if risk(middle) <= 1 - confidence else (middle, high)
    return high


def violation_bound(count: int, binding: int, confidence: float) -> float:
    """What the probability of violation is at most, given how many draws the answer rests on.

    The bound of Campi and Garatti (2018, theorem 2): 1 - t, where t solves
    ``(1 - confidence) / (N + 1) sum_{m=k}^{N} C(m, k) t^(m - k) = C(N, k) t^(N - k)``.

    Parameters
    ----------
    count : int
        Draws whose rows were enforced.
    binding : int
        Draws without which the answer would be another; see :func:`binding_scenarios`.
    confidence : float
        With what probability over the draws the bound is to hold, such as 0.999.

    Examples
    --------
    >>> round(violation_bound(count=500, binding=5, confidence=0.999), 4)
    0.0396
    """
    whole_number(count, "count", 1)
    whole_number(binding, "binding", 0)
    _check_share("confidence", confidence)
    if binding >= count:
        return 1.0
    m = np.arange(binding, count + 1)

    def log_choose(top: FloatArray | float) -> FloatArray:
        return np.asarray(gammaln(np.asarray(top) + 1.0) - gammaln(binding + 1.0) - gammaln(top - binding + 1.0))

    scale = np.log1p(-confidence) - np.log(count + 1)
    terms = log_choose(m.astype(float))

    def balance(t: float) -> float:
        left = scale + logsumexp(terms + (m - binding) * np.log(t))
        return float(left - (log_choose(float(count)) + (count - binding) * np.log(t)))

    # Near t = 0 the left side is larger, near the root below 1 the right one.
    return 1.0 - float(brentq(balance, 1e-12, 1.0 - 1e-12)) if balance(1.0 - 1e-12) < 0 else 1.0


def binding_scenarios(result: Result) -> int:
    """How many draws the answer of a discretized problem rests on: points that carry a price in any family.

    Parameters
    ----------
    result : Result
        Of ``solve(m, method="discretized", grid=Scenarios(...))``.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.pyros import BoxSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.x = pyo.Var([0, 1], bounds=(0, 10))
    >>> m.o = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)
    >>> box = BoxSet([(1, 2), (1, 3)])
    >>> m.c = osilp.SemiInfiniteConstraint(box, rule=lambda m, xi: xi[0] * m.x[0] + xi[1] * m.x[1] <= 1)
    >>> binding_scenarios(osilp.solve(m, method="discretized", grid=Scenarios(200, seed=1)))
    2
    """
    points = [price.points[price.masses != 0] for price in result.prices.values() if len(price.points)]
    if not points:
        return 0
    return sum(len(np.unique(np.concatenate(group), axis=0)) for group in _by_dimension(points))


def _by_dimension(points: list[FloatArray]) -> list[list[FloatArray]]:
    groups: dict[int, list[FloatArray]] = {}
    for each in points:
        groups.setdefault(each.shape[1], []).append(each)
    return list(groups.values())


class Scenarios(Grid):
    """Independent draws of an uncertain vector as a grid: ``solve(m, method="discretized", grid=Scenarios(...))``.

    Parameters
    ----------
    count : int
        Number of draws; see :func:`scenarios_needed`.
    draw : callable, optional
        ``draw(rng, count)`` gives an array (count, d) of members of the set; uniform on the set if not given.
    seed : int

    Examples
    --------
    >>> from osilp_pyomo.index.domain import Domain
    >>> Scenarios(3, lambda rng, count: rng.beta(2, 2, (count, 1))).on(Domain.box(u=(0, 1))).points.shape
    (3, 1)
    """

    def __init__(self, count: int, draw: Callable[..., ArrayLike] | None = None, *, seed: int = 0) -> None:
        whole_number(count, "count", 1)
        if draw is not None and not callable(draw):
            raise OptionError(f"Scenarios: draw must be a function of a generator and a number (got {draw!r}).")
        self.count, self.draw, self.seed = int(count), draw, seed

    def __repr__(self) -> str:
        # Studies on disk are known by this text: no address, and nothing where defaults are meant.
        drawn = "" if self.draw is None else f", draw={getattr(self.draw, '__name__', type(self.draw).__name__)}"
        seeded = "" if self.seed == 0 else f", seed={self.seed}"
        return f"Scenarios({self.count}{drawn}{seeded})"

    def _lay(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        rng = np.random.default_rng(self.seed)
        if self.draw is None:
            points = self._uniform(domain, rng)
        else:
            try:
                drawn = np.asarray(self.draw(rng, self.count), dtype=float)
            except (TypeError, ValueError) as error:
                raise GridError(f"{self!r}: draw(rng, count) must give rows of numbers ({error}).") from error
            points = drawn.reshape(-1, 1) if drawn.ndim == 1 else drawn
            if points.shape != (self.count, domain.dimension) or not domain.contains(points).all():
                raise GridError(
                    f"{self!r}: draw(rng, count) must give {self.count} rows of {domain.dimension} numbers in {domain} "
                    f"(got shape {drawn.shape}"
                    f"{'' if points.shape != (self.count, domain.dimension) else ', with points outside'})."
                )
        return points, np.full(self.count, 1.0 / self.count)

    def _uniform(self, domain: Domain, rng: np.random.Generator) -> FloatArray:
        if not domain.bounded:
            raise GridError(f"{self!r} on {domain}: nothing is uniform on an unbounded set; give draw=...")
        kept: list[FloatArray] = []
        for _ in range(_TRIES):
            points = rng.uniform(domain.lower, domain.upper, (max(64, self.count), domain.dimension))
            kept.append(points[domain.contains(points)])
            if sum(map(len, kept)) >= self.count:
                return np.concatenate(kept)[: self.count]
            if len(kept) == 20 and not any(map(len, kept)):
                break
        raise GridError(
            f"{self!r} on {domain}: too few uniform points of the box around the set lie in it; give draw=..."
        )


def _check_share(what: str, value: float) -> None:
    if not 0 < value < 1:
        raise OptionError(f"{what} must be a probability between 0 and 1 (got {value!r}).")
