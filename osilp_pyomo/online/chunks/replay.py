"""Replay of arrivals that come in chunks: one pass, in memory that does not grow with them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._reporting import bar
from osilp_pyomo.errors import DataError
from osilp_pyomo.online.chunks.decision_files import Sink, decision_file, write_decisions
from osilp_pyomo.online.chunks.source import Chunks
from osilp_pyomo.online.controller import REASONS, Controller
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.runs import LongRun
from osilp_pyomo.online.stages.identity import DataMoments

_REASONS = np.array(REASONS, dtype=object)


def replay_chunks(program: ProgramData, controller: Controller, chunks: Chunks, write: Any, progress: bool) -> LongRun:
    """Decide the arrivals of all chunks in order; what is remembered is budgets, prices and sums."""
    started = time.perf_counter()
    target = decision_file(write, chunks.paths)
    expected = chunks.count
    counted = controller.until is None
    if expected is not None and counted:
        _refuse_too_many(expected, controller.horizon)
    earned, reasons = 0.0, np.zeros(len(REASONS), dtype=np.int64)
    data: DataMoments | None = None
    used: FloatArray = np.empty((0, 0))

    def fill(sink: Sink) -> None:
        nonlocal earned, reasons, data, used
        met = 0
        with bar(progress, total=expected, desc="replay", unit=" arrivals") as shown:
            for frame in chunks.frames({**program.intake.columns, **controller.time_columns}):
                arrivals = controller.timed(program.arrivals(frame), frame, "replay")
                met += len(arrivals)
                if counted:
                    _refuse_too_many(met, controller.horizon)
                if len(arrivals):
                    moments = DataMoments.of(arrivals)
                    data = moments if data is None else data.join(moments)
                for batch in program.evaluator.batches(arrivals):
                    outcome = controller.meet(batch)
                    more = outcome.point_use
                    used = used + more if len(used) else more
                    codes = outcome.reasons.astype(np.int64)
                    earned += float(outcome.rewards.sum())
                    reasons += np.bincount(codes, minlength=len(REASONS))
                    sink(outcome.decided, {"reason": _REASONS[codes], "reward": outcome.rewards})
                    shown.update(len(batch))
        if not met:
            raise DataError("replay: there are no arrivals.")

    write_decisions(target, program.template.decisions, fill)
    assert data is not None
    return LongRun(program.evaluator, controller, earned, reasons, time.perf_counter() - started, target, data, used)


def _refuse_too_many(count: int, horizon: int) -> None:
    if count > horizon:
        raise DataError(
            f"replay: {count} arrivals came where the program expects {horizon}; compile with horizon=, or use "
            "program.rescaled(horizon)."
        )
