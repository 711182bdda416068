"""Where independent work runs: here, in processes, or on any executor of concurrent.futures, such as dask's."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from osilp_pyomo._threads import use_threads
from osilp_pyomo.errors import ExecutorError, OptionError

# How often a result may fail to come because a process of ours has died.
_TRIES = 3
# Parts of a pass that are under way, or done and waiting for their turn.
_WINDOW = 256

# What a process of :func:`processes` was given when it began.
_given: Any = None


def as_executor(executor: Any, what: str) -> Executor | int | None:
    """What may be given as ``executor=``; a client of dask stands for its executor."""
    if executor is None or isinstance(executor, Executor):
        return executor
    if hasattr(executor, "get_executor"):
        found: Executor = executor.get_executor()
        return found
    if isinstance(executor, bool) or not isinstance(executor, int) or executor < 1:
        raise OptionError(
            f"{what}: executor must be None (one after the other), a number of processes >= 1, or an executor of "
            f"concurrent.futures such as dask.distributed.Client().get_executor() (got {executor!r})."
        )
    return executor


@contextmanager
def mapper(executor: Any, what: str) -> Iterator[Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]]:
    """A ``map`` that runs on an executor, and gives results in the order of what it was given.

    Only for functions without effects: where a process has died, its part is done again.
    """
    chosen = as_executor(executor, what)
    if chosen is None:
        yield map
    elif isinstance(chosen, Executor):
        try:
            yield partial(_in_order, chosen)
        except BrokenExecutor as error:
            raise ExecutorError(
                f"{what}: the executor broke before its work was done ({type(error).__name__}: {error})."
            ) from None
    else:
        with _Renewed(chosen, what) as renewed:
            yield renewed.map


class _Renewed:
    """Processes that are restarted where one of them has died."""

    def __init__(self, workers: int, what: str) -> None:
        self._workers, self._what = workers, what
        self._context: Any = None

    def __enter__(self) -> _Renewed:
        self._begin()
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def _begin(self) -> None:
        self._context = processes(self._workers)
        self._pool: ProcessPoolExecutor = self._context.__enter__()

    def map(self, function: Callable[[Any], Any], every: Sequence[Any]) -> Iterator[Any]:
        """The results in order; where a process has died, those that are missing are computed again."""
        done, deaths = 0, 0
        while done < len(every):
            try:
                for result in _in_order(self._pool, function, every[done:]):
                    done, deaths = done + 1, 0
                    yield result
            except BrokenExecutor:
                deaths += 1
                if deaths == _TRIES:
                    raise ExecutorError(
                        f"{self._what}: processes died {_TRIES} times in a row. A script that uses processes must "
                        "start its work under `if __name__ == '__main__':`; else the machine may have run out of "
                        "memory."
                    ) from None
                self._context.__exit__(None, None, None)
                self._begin()


def _in_order(executor: Executor, function: Callable[[Any], Any], every: Sequence[Any]) -> Iterator[Any]:
    """Results in the order of what they belong to; no more of them wait at a time than a window holds."""
    waiting: deque[Future[Any]] = deque()
    try:
        for item in every:
            waiting.append(executor.submit(function, item))
            if len(waiting) == _WINDOW:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@contextmanager
def processes(workers: int, given: Any = None) -> Iterator[ProcessPoolExecutor]:
    """Processes that work can share; all have what is ``given`` to them. They end at once when it is left.

    Threads of HiGHS and BLAS do not survive a fork, so processes are started afresh.
    """
    context = multiprocessing.get_context("spawn")
    # Nobody ever writes into this pipe: its end is read when this process closes it, or is no more.
    over, lifeline = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _begin_process, (given, over))
    try:
        yield pool
    except BaseException:
        lifeline.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        lifeline.close()
        over.close()


def payload() -> Any:
    """What this process was given when it began."""
    return _given


def _begin_process(what: Any, over: Any) -> None:
    """Settle a process: it takes no interrupts of its own, and ends with its parent or with its work."""
    global _given
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after, args=(over,), daemon=True).start()
    _given = what
    # The other cores belong to the other processes.
    use_threads(1)


def _end_after(over: Any) -> None:
    over.poll(None)
    os._exit(1)
