"""Progress of long work: bars on a terminal once something takes more than two seconds, quiet elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tqdm import tqdm

# Seconds after which a bar appears.
_DELAY = 2


def bar(progress: bool, **options: Any) -> tqdm:
    """A progress bar; ``options`` as tqdm takes them. None is shown where standard error is not a terminal."""
    return tqdm(delay=_DELAY, disable=None if progress else True, **options)


def tracked(items: Iterable[Any], progress: bool, what: str) -> Iterable[Any]:
    """Items to go through, with a bar."""
    return bar(progress, iterable=items, desc=what)


class IterationReporter:
    """Shows iterations of exchange: lines with ``tee``, else a progress bar once it takes long."""

    def __init__(self, method: str, tee: bool, progress: bool) -> None:
        self._tee = tee
        self._bar = bar(progress and not tee, desc=method, unit=" iterations")

    def __enter__(self) -> Callable[[dict[str, Any]], None]:
        return self._line if self._tee else self._advance

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def _line(self, record: dict[str, Any]) -> None:
        if record["iteration"] == 1:
            print(f"{'iteration':>9} {'bound':>16} {'violation':>10} {'rows':>6} {'added':>6} {'seconds':>8}")
        print(
            f"{record['iteration']:>9} {record['bound']:>16.9g} {record['violation']:>10.2e} {record['rows']:>6} "
            f"{record['added']:>6} {record['seconds']:>8.2f}"
        )

    def _advance(self, record: dict[str, Any]) -> None:
        self._bar.set_postfix_str(f"violation {record['violation']:.1e}", refresh=False)
        self._bar.update()
