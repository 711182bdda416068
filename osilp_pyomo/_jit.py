"""Functions compiled by numba where it is installed (extra ``fast``); without it they run as they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import numba
except ImportError:  # an optional extra
    numba = None  # type: ignore[assignment]

HAS_NUMBA = numba is not None


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile by numba where it is installed; the compiled code is kept on disk."""
    if numba is None:
        return function
    return numba.njit(cache=True, fastmath=False, error_model="numpy")(function)


def just_in_time(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that was made for one program, which cannot be kept on disk."""
    assert numba is not None
    return numba.njit(error_model="numpy")(function)
