"""Threads: none for linear algebra, whose small matrices wait for each other, and some for long formulas on arrays."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

# More threads than these wait for memory.
_MOST = 8

_Part = TypeVar("_Part")
_Value = TypeVar("_Value")
_threads: int | None = None
# Whether a thread is one of the pool: it does not wait for others of it.
_here = threading.local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Have BLAS use one thread; what a machine has does not change the last digits of an answer either."""
    # scipy brings a BLAS of its own, which is loaded late.
    with _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        yield


@cache
def _controller(with_scipy: bool) -> ThreadpoolController:
    """The libraries that are loaded; looking for them takes some milliseconds."""
    return ThreadpoolController()


def threads() -> int:
    """How many threads evaluate formulas: what OSILP_THREADS says, else as many as this process may use cores."""
    if _threads is not None:
        return _threads
    asked = os.environ.get("OSILP_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, _MOST)


def use_threads(count: int) -> None:
    """Evaluate formulas in so many threads; a process among many takes one."""
    global _threads
    _threads = count


def in_threads(function: Callable[[_Part], _Value], parts: Sequence[_Part]) -> Iterator[_Value]:
    """A map in the order of the parts, a few of which are under way at a time; what numpy does there runs at once.

    The values are those of a plain map to the last bit: each part is done by one thread, whoever does it.
    """
    count = threads()
    if count == 1 or len(parts) < 2 or getattr(_here, "of_the_pool", False):
        yield from map(function, parts)
        return
    pool = _pool(count, os.getpid())
    waiting: deque[Future[_Value]] = deque()
    try:
        for part in parts:
            waiting.append(pool.submit(function, part))
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Whoever needed only some of them has gone.
        for each in waiting:
            each.cancel()


@cache
def _pool(count: int, process: int) -> ThreadPoolExecutor:
    """The threads of a process; one that was forked has none of its parent's."""
    return ThreadPoolExecutor(count, "osilp", _begin)


def _begin() -> None:
    _here.of_the_pool = True
