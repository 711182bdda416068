"""Warnings that point at the user's own line, or are collected to be told elsewhere."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Where warnings of this package go instead of to the user, in a context that collects them.
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting_warnings() -> Iterator[list[str]]:
    """Collect what this package would warn of, to be told elsewhere; other threads are not touched."""
    said: list[str] = []
    token = _collected.set(said)
    try:
        yield said
    finally:
        _collected.reset(token)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the line of the user's that led here rather than at this package or Pyomo."""
    collected = _collected.get()
    if collected is not None:
        collected.append(message)
        return
    depth = 2  # 1 would be this function
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("osilp_pyomo", "pyomo"):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, category, stacklevel=depth)
