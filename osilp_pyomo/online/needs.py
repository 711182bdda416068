"""Rows that need something (covering): what is still needed, and what can still come.

A row ``sum a_t(u) x_t >= b(u)`` reads ``-sum a_t(u) x_t <= -b(u)``: its budget is below zero, and is filled up by
decisions of negative use. Nothing is lost by waiting while enough can still come. What an arrival could add at most is
its offer; from the offers of the arrivals met so far follows what the arrivals ahead will surely bring, for arrivals
that are alike and come in any order: with the mean m and the mean square s of an offer, n of them bring at least
``n m - 4 sqrt(n s)`` but for a chance of some 1e-5 (and far less where offers are all or nothing). Where less than that
is missing an arrival is decided by its price; where more is, it adds what it can.

The mean of very few is not known: after one arrival that offers 1 it would be 1. So m and s are counted as if a few
more had come that offer nothing, which soon makes no difference.
"""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.online.stages.batch import Batch
from osilp_pyomo.online.stages.template import StageTemplate

# By how many standard deviations what comes may fall behind what is expected.
_DEVIATIONS = 4.0
# As if so many more arrivals had come that offer nothing.
_MORE = 5
# What is missing below this share of an offer is rounding.
_ROUNDING = 1e-9
# What an arrival is asked to add at least, as a share of what a row needs in all.
_LEAST = 1e-6
# By how much what is needed counts more than everything that an arrival can earn.
_FIRST = 1e6


def needs_something(total: FloatArray, size: FloatArray) -> BoolArray:
    """Which budgets are below zero by more than rounding, as those of lower limits are."""
    return total < -_ROUNDING * size


def offer_of(template: StageTemplate, one: Batch, view: str) -> FloatArray:
    """What a single arrival can add at most to each row (R,), whatever it is decided for."""
    helps = -one.use[view][0]
    with np.errstate(invalid="ignore"):
        each = np.maximum(helps * one.upper[0][:, None], helps * one.lower[0][:, None])
        each = np.where(helps == 0, 0.0, each)
    offer = np.maximum(each.max(axis=0) if template.chooses_one else each.sum(axis=0), 0.0)
    if not np.all(np.isfinite(offer)):
        raise DataError(
            f"The arrival {one.arrivals.name(0)!r} could add anything to a row with a lower limit, for a decision has "
            "no bound, so that what can still come is not known; give it one, or use guard='none'."
        )
    return offer


def count_offer(offers: FloatArray, offer: FloatArray) -> FloatArray:
    """Running sums (2, R) of offers and of their squares, one more counted."""
    return offers + np.stack([offer, offer**2])


def surely_coming(offers: FloatArray, met: int, ahead: int) -> FloatArray:
    """What so many arrivals ahead will bring at least to each row, as far as those met so far tell."""
    mean, square = offers / (met + _MORE)
    return np.maximum(ahead * mean - _DEVIATIONS * np.sqrt(ahead * square), 0.0)


def missing_now(left: FloatArray, coming: FloatArray, offer: FloatArray, size: FloatArray) -> FloatArray:
    """What this arrival has to add to each row (R,): what is needed and will not come, as far as it can help.

    An offer that is next to nothing beside what the row needs in all, its ``size``, is none, as a kernel's tail.
    """
    missing = np.minimum(-(left + coming), offer)
    return np.where((offer > _LEAST * size) & (missing > _ROUNDING * offer), missing, 0.0)


def room_of_needs(left: FloatArray, coming: FloatArray, needing: BoolArray, harmless: BoolArray) -> FloatArray:
    """What is left of each row for a decision that uses more of it: of rows that need something, what comes too much.

    Of a row that an arrival can only add to it uses nothing, ``harmless``, whatever its column is lifted by between the
    points of a guard. The lift is paid for all the same, and counts as needed.
    """
    return np.where(harmless, np.inf, np.where(needing & (left < 0), left + coming, left))


def press(weights: FloatArray, use: FloatArray, missing: FloatArray) -> FloatArray:
    """Weights (1, K) of the functions of a decision by which adding what is missing comes before all they earn.

    ``use`` (K, R) is that of the functions; a row counts by the share of what it misses.
    """
    short = missing > 0
    helps = -use[:, short] @ (1.0 / missing[short])
    size = float(np.abs(helps).max(initial=0.0))
    if size == 0.0:
        return weights
    pressed: FloatArray = weights + _FIRST * max(float(np.abs(weights).max()), 1e-300) * helps / size
    return pressed


def share_needed(missing: FloatArray, without: FloatArray, with_it: FloatArray) -> float:
    """Which share of the way from one decision to another, which add so much (R,), adds all that is missing."""
    short = missing > np.maximum(without, 0.0)
    gained = with_it[short] - without[short]
    wanted = missing[short] - without[short]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(gained > 0, wanted / gained, 0.0)
    return float(np.clip(shares.max(initial=0.0), 0.0, 1.0))
