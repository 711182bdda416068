"""Row generation: many rows, of which a problem is solved with few; those that its answer violates are added."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray

_Answer = TypeVar("_Answer")


def largest(most: int, least: float = 0.0) -> Callable[[FloatArray], IntArray]:
    """The rule "the rows with the largest excess, if it is above ``least``, so many at a time"."""

    def choose(excess: FloatArray) -> IntArray:
        worst = np.argsort(-excess)[:most]
        return worst[excess[worst] > least]

    return choose


def add_violated(
    answer: _Answer | None,
    rows: BoolArray,
    solve: Callable[[BoolArray], _Answer | None],
    excess: Callable[[_Answer], FloatArray],
    choose: Callable[[FloatArray], IntArray],
    rounds: int,
) -> _Answer | None:
    """Go on from an answer to the problem with some of the rows until it violates none of the others.

    Parameters
    ----------
    answer
        An answer for the rows that are there; None ends it at once.
    rows : array of bool
        Which rows are there; it is changed.
    solve : callable
        ``solve(rows)`` gives the answer for these rows, None where there is none.
    excess : callable
        ``excess(answer)`` is by how much each row is overrun.
    choose : callable
        Which rows are added, from the excess of those that are not there yet; none ends it.
    rounds : int
        How often at most; the last answer may then still violate rows, which is for the caller to see.

    Examples
    --------
    The smallest x that is at least every number of a list, one number per round:

    >>> numbers = np.array([1.0, 5.0, 3.0])
    >>> known = np.zeros(3, dtype=bool)
    >>> add_violated(0.0, known, lambda rows: numbers[rows].max(), lambda x: numbers - x, largest(1), 10)
    np.float64(5.0)
    >>> known.tolist()
    [False, True, False]
    """
    for _ in range(rounds):
        if answer is None:
            return None
        new = choose(np.where(rows, 0.0, excess(answer)))
        if not len(new):
            return answer
        rows[new] = True
        answer = solve(rows)
    return answer
