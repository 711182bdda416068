"""Functions compiled by numba where it is installed (extra ``fast``); without it they run as they stand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

try:
    import numba
except ImportError:  # an optional extra
    numba = None  # type: ignore[assignment]

HAS_NUMBA = numba is not None


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile by numba where it is installed; the compiled code is kept on disk.

    Numba compiles a function anew when its own file has changed, and does not see that a function of another file has,
    whose code is within it. Here what is kept holds for all files of its folder together.
    """
    if numba is None:
        return function
    compiled = numba.njit(cache=True, fastmath=False, error_model="numpy")(function)
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if kept is not None:
        kept._source_stamp = (kept._source_stamp, _digest(Path(function.__code__.co_filename).parent))
    return compiled


@cache
def _digest(folder: Path) -> str:
    """What all Python files of a folder say."""
    total = sha256()
    for file in sorted(folder.glob("*.py")):
        total.update(file.name.encode() + file.read_bytes())
    return total.hexdigest()


def just_in_time(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that was made for one program, which cannot be kept on disk."""
    assert numba is not None
    return numba.njit(error_model="numpy")(function)
