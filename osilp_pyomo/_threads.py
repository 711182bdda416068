"""Linear algebra in one thread: for small matrices, threads that wait for each other take longer than one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


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
