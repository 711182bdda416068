"""Where trials run: here one after the other, in processes, or on any executor of concurrent.futures."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from functools import lru_cache

from osilp_pyomo._pools import payload, processes
from osilp_pyomo.errors import ExecutorError, OptionError
from osilp_pyomo.studies.trial import Job, Plan, Records, run_trial

# How often trials are tried in processes of ours that die.
_TRIES = 3


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
    left = list(jobs)
    for attempt in range(_TRIES):
        with processes(min(executor, max(1, len(left))), packed) as pool:
            try:
                for job, records in _finished({pool.submit(_run_here, job): job for job in left}):
                    left.remove(job)
                    yield job, records
                return
            except ExecutorError:
                # What a process died of may have been the machine's memory: what it had not done is done again.
                if attempt == _TRIES - 1:
                    raise


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


def _run_here(job: Job) -> Records:
    return run_trial(_unpacked(payload()), job)
