"""Where trials run: here one after the other, in processes, or on any executor of concurrent.futures."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from osilp_pyomo.errors import ExecutorError, OptionError
from osilp_pyomo.trials import Job, Plan, Records, run_trial

# The plan of this process, where it was started for one study.
_plan: Plan | None = None


def check_executor(executor: Any) -> None:
    """Refuse what is no way to run trials."""
    if executor is None or isinstance(executor, Executor):
        return
    if isinstance(executor, bool) or not isinstance(executor, int) or executor < 1:
        raise OptionError(
            "compare: executor must be None (one trial after the other), a number of processes >= 1, or an executor of "
            f"concurrent.futures such as dask.distributed.Client().get_executor() (got {executor!r})."
        )


def run_all(plan: Plan, jobs: Sequence[Job], executor: Executor | int | None) -> Iterator[tuple[Job, Records]]:
    """Run trials, and give each back with its records as soon as it is done."""
    if executor is None:
        for job in jobs:
            yield job, run_trial(plan, job)
        return
    packed = _packed(plan)
    if isinstance(executor, Executor):
        yield from _finished({executor.submit(_unpack_and_run, packed, job): job for job in jobs})
        return
    with processes(min(executor, max(1, len(jobs))), packed) as pool:
        yield from _finished({pool.submit(_run_here, job): job for job in jobs})


@contextmanager
def processes(workers: int, packed: bytes | None = None) -> Iterator[ProcessPoolExecutor]:
    """Processes that studies can share, or that all have the packed plan of one; they end at once when it is left.

    Threads of HiGHS and BLAS do not survive a fork, so processes are started afresh. A trial that was cut off is run
    again by whoever goes on with its study.
    """
    context = multiprocessing.get_context("spawn")
    # Nobody ever writes into this pipe: its end is read when this process closes it, or is no more.
    over, lifeline = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _begin_process, (packed, over))
    try:
        yield pool
    except BaseException:
        lifeline.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        lifeline.close()
        over.close()


def _finished(futures: dict[Future[Records], Job]) -> Iterator[tuple[Job, Records]]:
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenExecutor:
        raise ExecutorError(
            "compare: a process died before its trial was done. A script that uses processes must start its work under "
            "`if __name__ == '__main__':`; else the machine may have run out of memory. Finished trials are kept where "
            "path= was given."
        ) from None
    finally:
        for future in futures:
            future.cancel()


def _packed(plan: Plan) -> bytes:
    try:
        return pickle.dumps(plan)
    except Exception as error:
        raise OptionError(
            "compare: the study cannot be sent to another process, because something in it cannot be pickled "
            f"({type(error).__name__}: {error}); define samplers, policies and functions at the top level of a module, "
            "or leave executor= out."
        ) from None


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Plan:
    """The plan of the study that this process works at."""
    return pickle.loads(packed)


def _unpack_and_run(packed: bytes, job: Job) -> Records:
    return run_trial(_unpacked(packed), job)


def _begin_process(packed: bytes | None, over: Any) -> None:
    """Settle a process of a study: it takes no interrupts of its own, and ends with its parent or the study."""
    global _plan
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after, args=(over,), daemon=True).start()
    _plan = None if packed is None else pickle.loads(packed)


def _end_after(over: Any) -> None:
    over.poll(None)
    os._exit(1)


def _run_here(job: Job) -> Records:
    assert _plan is not None
    return run_trial(_plan, job)
