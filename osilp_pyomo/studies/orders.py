"""In which order arrivals come that change with time: drift, season, regimes, blocks, or sorted.

The arrivals of a trial are put into an order; which of them there are stays as it was, so that the optimum in hindsight
is that of the same arrivals in any other order. They are ranked by one number each, and each moment of the day has a
level; the moment with the k-th lowest level, with some noise added, gets the arrival of rank k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.stages.template import Arrivals

#: Orders that change with time, and the noise beside their levels, which are evenly spread over [0, 1].
CHANGING = {"drift": 0.5, "season": 0.5, "regime": 0.5, "blocks": 0.1, "sorted": 0.0}
# Waves of a season, changes of a regime, and blocks.
_WAVES, _CHANGES, _BLOCKS = 3, 3, 20


def ranked(values: FloatArray, order: str, random: np.random.Generator) -> IntArray:
    """Places of arrivals, ranked by a number each, in an order that changes with time.

    "drift" goes from the lowest to the highest, with as much noise as half of the range; "season" goes up and down
    three times, "regime" changes three times at random moments, "blocks" twenty times on average, and "sorted" goes
    from the lowest to the highest without noise.

    Examples
    --------
    >>> ranked(np.array([3.0, 1.0, 2.0]), "sorted", np.random.default_rng(0)).tolist()
    [1, 2, 0]
    """
    count = len(values)
    # Equal levels are put into a random order, and not that of the data.
    levels = _levels(order, count, random) + 1e-9 * random.random(count)
    evenly = _ranks(levels) / max(count - 1, 1)
    moments = _ranks(evenly + CHANGING[order] * random.random(count))
    by_value = np.lexsort((random.random(count), values))
    found: IntArray = by_value[moments]
    return found


def _levels(order: str, count: int, random: np.random.Generator) -> FloatArray:
    """The level of each moment."""
    when = np.arange(count) / max(count, 1)
    if order == "season":
        waves: FloatArray = np.sin(2 * np.pi * (_WAVES * when + random.random()))
        return waves
    if order in ("regime", "blocks"):
        changes = np.sort(random.random(_CHANGES if order == "regime" else _BLOCKS))
        levels: FloatArray = random.permutation(len(changes) + 1).astype(float)
        return levels[np.searchsorted(changes, when)]
    return when


def _ranks(values: FloatArray) -> IntArray:
    """The rank of each value."""
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


def ranked_by(program: OnlineProgram, by: Any, arrivals: Arrivals) -> FloatArray:
    """The number that each arrival is ranked by: a column of the data, or what its largest decision earns."""
    fields = program.template.fields
    if by is not None:
        value: FloatArray = arrivals.values[_field_of(program, by)]
        return value
    if any(field.hidden for field in fields):
        raise OptionError("compare: arrivals with hidden data are ranked by a column only; name it by by=.")
    batch = program.evaluator.batch(arrivals, keep_points=False)
    most = np.where(np.isfinite(batch.upper), batch.upper, np.maximum(batch.lower, 0.0) + 1.0)
    return program.evaluator.reward(batch, most)


def check_by(program: OnlineProgram, order: str, by: Any) -> None:
    """Refuse a column that arrivals cannot be ranked by."""
    if by is None:
        return
    if order not in CHANGING:
        raise OptionError(
            f"compare: by= says what arrivals are ranked by in an order that changes with time, "
            f"{', '.join(map(repr, CHANGING))} (got order={order!r}); leave by= out."
        )
    _field_of(program, by)


def _field_of(program: OnlineProgram, by: Any) -> int:
    known = {field.label.column: number for number, field in enumerate(program.template.fields) if field.curve is None}
    if by not in known:
        raise OptionError(
            f"compare: by must be a column of the arrivals' numbers: {', '.join(map(repr, known)) or 'there is none'} "
            f"(got {by!r})."
        )
    return known[by]
