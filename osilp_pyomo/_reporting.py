"""What a user hears while something runs: progress, and warnings that point at the line of the caller."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

# Seconds after which a bar appears.
_DELAY = 2
# Columns of a line of progress in a log.
_COLUMNS = 100
# Seconds after which a log has its first line of progress, and between two of them.
_LOGGED = 30.0


def bar(progress: bool, **options: Any) -> tqdm:
    """A progress bar; ``options`` as tqdm takes them.

    On a terminal and in a notebook it appears after two seconds. Elsewhere, as in the log of a batch job, it is a line
    on standard error every half minute.
    """
    if not progress:
        from tqdm import tqdm  # loaded when something takes long, not when the package is imported

        return tqdm(disable=True, **options)
    if in_notebook():
        # Without ipywidgets it says so once, and is a line of text.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
        return tqdm(delay=_DELAY, file=sys.stdout, **options)
    from tqdm import tqdm

    if sys.stderr is not None and not sys.stderr.isatty():
        return tqdm(
            delay=_LOGGED,
            mininterval=_LOGGED,
            maxinterval=_LOGGED,
            file=_Lines(),
            ascii=True,
            ncols=_COLUMNS,
            **options,
        )
    return tqdm(delay=_DELAY, disable=None, **options)


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    return "ipykernel.zmqshell" in sys.modules


class _Lines:
    """Standard error for a bar that cannot go back to the beginning of its line: each state of it is a line."""

    def write(self, text: str) -> None:
        """Write a state of the bar."""
        state = text.strip("\r\n ")
        if state:
            sys.stderr.write(f"{state}\n")

    def flush(self) -> None:
        """Let it be seen."""
        sys.stderr.flush()


def tracked(items: Iterable[Any], progress: bool, what: str) -> Iterable[Any]:
    """Items to go through, with a bar."""
    return bar(progress, iterable=items, desc=what)


def say_to(tee: bool | Sequence[TextIO], text: object) -> None:
    """Print to standard output, or to each of several streams; to none where ``tee`` is False."""
    streams = ([None] if tee else []) if isinstance(tee, bool) else tee
    for stream in streams:
        print(text, file=stream)


class IterationReporter:
    """Shows iterations of exchange: lines with ``tee``, else a progress bar once it takes long."""

    def __init__(self, method: str, tee: bool | Sequence[TextIO], progress: bool) -> None:
        self._tee = tee
        self._bar = bar(progress and not tee, desc=method, unit=" iterations")

    def __enter__(self) -> Callable[[dict[str, Any]], None]:
        return self._line if self._tee else self._advance

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def _line(self, record: dict[str, Any]) -> None:
        if record["iteration"] == 1:
            heading = f"{'iteration':>9} {'bound':>16} {'violation':>10} {'rows':>6} {'added':>6} {'seconds':>8}"
            say_to(self._tee, heading)
        line = (
            f"{record['iteration']:>9} {record['bound']:>16.9g} {record['violation']:>10.2e} {record['rows']:>6} "
            f"{record['added']:>6} {record['seconds']:>8.2f}"
        )
        say_to(self._tee, line)

    def _advance(self, record: dict[str, Any]) -> None:
        self._bar.set_postfix_str(f"violation {record['violation']:.1e}", refresh=False)
        self._bar.update()


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
