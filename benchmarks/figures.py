"""What the suites of benchmarks share: figures beside their limits, best times in turns, peak memory, and tables."""

from __future__ import annotations

import multiprocessing
import re
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import osilp_pyomo

HEADINGS = ("what", "figure", "against", "limit", "kept")


@dataclass(frozen=True)
class Figure:
    """One line of a suite.

    Parameters
    ----------
    what : str
        What was measured.
    value : float
        A ratio against the peer, measured in the same run; or a time or size where a suite cannot avoid it.
    unit : str
        "x" for a ratio.
    peer : str
        What the ratio is against.
    limit : float, optional
        What the value must keep: at most this much.
    at_least : bool
        The limit is at least this much instead.
    """

    what: str
    value: float
    unit: str = ""
    peer: str = ""
    limit: float | None = None
    at_least: bool = False

    @property
    def kept(self) -> bool | None:
        """Whether the limit is kept, None without one; a value that is not a number keeps none."""
        if self.limit is None:
            return None
        return bool(self.value >= self.limit if self.at_least else self.value <= self.limit)

    def cells(self) -> tuple[str, ...]:
        """The texts of its row, one for each heading."""
        limit = "" if self.limit is None else f"{'at least' if self.at_least else 'at most'} {_number(self.limit)}"
        kept = {None: "", True: "yes", False: "NO"}[self.kept]
        return self.what, f"{_number(self.value)} {self.unit}".rstrip(), self.peer, limit, kept


def _number(value: float) -> str:
    return f"{value:,.0f}" if 100 <= abs(value) < 1e7 else f"{value:.3g}"


@cache
def _load_package() -> None:
    """Load every public name, which come when they are first used: what is timed is what they do."""
    for name in dir(osilp_pyomo):
        getattr(osilp_pyomo, name)


def timed(*tasks: Callable[[], Any], turns: int = 7) -> tuple[list[float], list[Any]]:
    """Best seconds and last answer of each task, taking turns: the machine may be busy with other things."""
    _load_package()
    best, answers = [np.inf] * len(tasks), [None] * len(tasks)
    for _ in range(turns):
        for k, task in enumerate(tasks):
            started = time.perf_counter()
            answers[k] = task()
            best[k] = min(best[k], time.perf_counter() - started)
    return best, answers


def seconds(*tasks: Callable[[], Any], turns: int = 7) -> list[float]:
    """Best seconds of each task, taking turns."""
    return timed(*tasks, turns=turns)[0]


def growth(name: str, sizes: Sequence[float], seconds: Sequence[float], limit: float | None = None) -> Figure:
    """The exponent of time by size: the slope of a line through their logarithms."""
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return Figure(f"growth of {name}, {min(sizes):,} to {max(sizes):,}", float(slope), "exponent", "size", limit)


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function of a module returns in a process of its own, which may start others."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peak_memory(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """What the function of a module returns in a process of its own, and the bytes that process held at its peak."""
    return in_fresh_process(_with_peak, function, *arguments)


def _with_peak(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    result = function(*arguments)
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: on Linux that of a child starts at what its parent held.
        return result, 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1])
    return result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def table(title: str, figures: Sequence[Figure]) -> str:
    """The figures as plain text."""
    rows = [HEADINGS, *(figure.cells() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        parts = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        parts[1] = row[1].rjust(widths[1])
        lines.append("  ".join(parts).rstrip())
    return "\n".join([title, "-" * len(title), *lines])


def markdown(title: str, figures: Sequence[Figure]) -> str:
    """The figures as a section in Markdown."""
    rows = [HEADINGS, ("---", "---:", "---", "---", "---"), *(figure.cells() for figure in figures)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"## {title}", "", *lines])


def shown(title: str, figures: Sequence[Figure]) -> None:
    """Print the figures as plain text."""
    print(table(title, figures), flush=True)
