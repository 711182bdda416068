"""The projected optimum of arrivals that come in chunks: the columns pass by, and never stand in memory together.

One sweep over the data projects every chunk into a block of columns on disk. The wide LP needs a sample and a few
passes over the blocks (``lp/wide.py``). A last sweep over the data looks at the decisions with code that did not
compute them, and writes them where they are wanted. Each sweep is a map over chunks and a sum: here, in processes or on
a cluster.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._pools import as_executor, mapper
from osilp_pyomo._reporting import bar
from osilp_pyomo.errors import DataError, OptionError, SolverError
from osilp_pyomo.lp.columns import Threshold, decisions
from osilp_pyomo.lp.wide import WideAnswer, solve_wide
from osilp_pyomo.offline.assemble import make_result
from osilp_pyomo.offline.audit import Audit, FamilyAudit, audit_from_values, audit_points
from osilp_pyomo.offline.conflicts import Conflict
from osilp_pyomo.offline.late import changed
from osilp_pyomo.offline.results import FEASIBLE, Result
from osilp_pyomo.offline.solved import Point, Solved, as_proved
from osilp_pyomo.online.chunks.blocks import BlockMaker, FileBlock
from osilp_pyomo.online.chunks.decision_files import Sink, decision_file, write_decisions
from osilp_pyomo.online.chunks.source import Chunks
from osilp_pyomo.online.hindsight.lp import ordinary_duals, stage_subject
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.stages.batch import PROJECTED
from osilp_pyomo.online.stages.identity import DataMoments, identity_of
from osilp_pyomo.online.stages.template import CONSTANT, Arrivals, StageFamily

# Arrivals of a block whose columns are computed once more, and what they may differ by.
_LOOKED_AT, _SAME = 16, 1e-9
# Numbers evaluated at a time in the last sweep.
_TOGETHER = 2**20


def solve_chunks(
    program: ProgramData,
    chunks: Chunks,
    *,
    write: Any = None,
    cache: Any = None,
    executor: Any = None,
    time_limit: float | None = None,
    progress: bool = True,
) -> Result:
    """R*_Phi of arrivals in chunks.

    Parameters
    ----------
    write : path, optional
        A .parquet or .csv file for the decisions.
    cache : path, optional
        A folder for the column blocks of Parquet files, which stay there and serve again while program and files are
        the same; on a cluster one that all workers see. A temporary one if not given.
    executor : int, Executor or dask client, optional
        Where passes over the chunks run.
    """
    _refuse_stages(program)
    target = decision_file(write, chunks.paths)
    if as_executor(executor, "solve_offline") is not None:
        _refuse_unpickled(program)
    started = time.monotonic()
    deadline = np.inf if time_limit is None else started + time_limit
    with _folder(cache, chunks) as folder, mapper(executor, "solve_offline") as run:
        blocks = _make_blocks(program, chunks, folder, run, deadline, progress)
        if blocks is None:
            return _without_answer(program, WideAnswer("time_limit"), time.monotonic() - started)
        fixed = sum((block.fixed for block in blocks), np.zeros(program.evaluator.resources[PROJECTED].size))
        evaluator = program.evaluator
        answer = solve_wide(
            blocks,
            evaluator.resources[PROJECTED].total - fixed,
            evaluator.resources[PROJECTED].floor,
            run=run,
            deadline=deadline,
        )
        if answer.dual is None:
            return _without_answer(program, answer, time.monotonic() - started)
        settled = _Settling(program, folder, answer, blocks)
        keep = target is not None
        write_decisions(target, program.template.decisions, lambda sink: settled.sweep(run, sink, keep, progress))
        return settled.result(time.monotonic() - started, target)


def _refuse_stages(program: ProgramData) -> None:
    template = program.template
    wrong = None
    if not template.linear:
        wrong = "these stages are not linear"
    elif template.integer.any():
        wrong = "these decisions are whole numbers"
    elif template.own_rows:
        wrong = f"the stage's own row '{template.own_rows[0].name}' ties decisions together"
    if wrong is not None:
        raise OptionError(
            f"solve_offline: arrivals in chunks are solved column by column, and {wrong}; give them as one DataFrame."
        )


def _refuse_unpickled(program: ProgramData) -> None:
    try:
        pickle.dumps(program)
    except Exception as error:
        raise OptionError(
            "solve_offline: the program cannot be sent to another process, because something in it cannot be pickled "
            f"({type(error).__name__}: {error}); define its functions at the top level of a module, or leave executor= "
            "out."
        ) from None


@contextmanager
def _folder(cache: Any, chunks: Chunks) -> Iterator[Path]:
    """Where blocks go: the user's folder if they can be known again, else one that is gone afterwards."""
    folder = None
    if cache is not None:
        folder = Path(cache)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"cache=: '{folder}' cannot be a folder ({error}).") from None
        if not os.access(folder, os.W_OK):
            raise OptionError(f"cache=: '{folder}' cannot be written.")
        if chunks.parts() is not None:
            yield folder
            return
    # A stream has no name by which its blocks could be known again.
    with tempfile.TemporaryDirectory(prefix="osilp-", dir=folder, ignore_cleanup_errors=True) as made:
        yield Path(made)


def _make_blocks(
    program: ProgramData, chunks: Chunks, folder: Path, run: Callable[..., Any], deadline: float, progress: bool
) -> list[FileBlock] | None:
    """Project all chunks: where they can be read by themselves wherever that is done, else here one after the other.

    None where the time is over before.
    """
    maker = BlockMaker.of(program, folder)
    parts = chunks.parts()
    blocks: list[FileBlock] = []
    with bar(progress, total=chunks.count, desc="projecting", unit=" arrivals") as shown:
        made = _made_in_order(program, maker, chunks, folder) if parts is None else run(maker, parts)
        for block in made:
            blocks.append(block)
            shown.update(block.arrivals)
            if time.monotonic() > deadline:
                return None
    if not blocks:
        raise DataError("solve_offline: there are no arrivals.")
    return blocks


def _made_in_order(program: ProgramData, maker: BlockMaker, chunks: Chunks, folder: Path) -> Iterator[FileBlock]:
    first = 0
    for number, frame in enumerate(chunks.frames(program.intake.columns)):
        if len(frame):
            block = maker.write(program.arrivals(frame), folder / f"{number:06d}.npy", first)
            first += block.arrivals
            yield block


def _without_answer(program: ProgramData, answer: WideAnswer, seconds: float) -> Result:
    why = "what conflicts is not looked for among arrivals in chunks" if answer.status == "infeasible" else ""
    solved = Solved(
        answer.status, np.nan, np.nan, rows=program.evaluator.resources[PROJECTED].size, conflict=Conflict(why_none=why)
    )
    subject = stage_subject(program.template)
    return make_result(subject, "projected", as_proved(solved), seconds)


# -- the last sweep --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Seen:
    """What one block adds: use and absolute use of each family at points, use of ordinary rows, reward, decisions.

    ``data`` is what the data of its arrivals add up to.
    """

    activity: list[FloatArray]
    size: list[FloatArray]
    rows: FloatArray
    reward: float
    decisions: FloatArray | None
    data: DataMoments


@dataclass(frozen=True, eq=False)
class _Look:
    """Looks at the decisions of a block, from its data anew; can be sent to where the block is."""

    maker: BlockMaker
    threshold: Threshold
    points: list[FloatArray]
    keep: bool

    def __call__(self, item: tuple[FileBlock, tuple[IntArray, FloatArray]]) -> _Seen:
        block, near = item
        program = self.maker.program
        x = decisions(block, self.threshold, *near).reshape(block.arrivals, -1)
        arrivals = block.data(program)
        self._refuse_changed(program, block, arrivals)
        pairs = [
            self._use(program, family, arrivals, x, points)
            for family, points in zip(program.template.families, self.points, strict=True)
        ]
        template = program.template
        totals = []
        for row in template.rows:
            coefficients, constants = template.numbers(row.terms, arrivals)
            totals.append(float((coefficients * x).sum() + constants.sum()))
        cost, earned = template.numbers(template.objective, arrivals)
        reward = float((cost * x).sum() + earned.sum())
        return _Seen(
            [first for first, _ in pairs], [second for _, second in pairs], np.array(totals), reward,
            x if self.keep else None, DataMoments.of(arrivals),
        )  # fmt: skip

    def _refuse_changed(self, program: ProgramData, block: FileBlock, arrivals: Arrivals) -> None:
        """Compute some columns once more: blocks may have lain on a disk for long."""
        some = np.unique(np.linspace(0, len(arrivals) - 1, _LOOKED_AT).astype(int))
        batch = program.evaluator.batch(arrivals.take(some), keep_points=False)
        width = batch.rewards.shape[1]
        places = (some[:, None] * width + np.arange(width)).ravel()
        kept = block.load().take(places)
        pairs = (
            (kept.matrix, batch.use[PROJECTED].reshape(len(places), -1)), (kept.values, batch.rewards.ravel()),
            (kept.lower, batch.lower.ravel()), (kept.upper, batch.upper.ravel()),
        )  # fmt: skip
        if not all(np.allclose(one, other, rtol=_SAME, atol=_SAME * np.abs(other).max()) for one, other in pairs):
            raise SolverError(f"The block '{block.path}' does not hold the columns of its arrivals; empty the cache.")

    @staticmethod
    def _use(
        program: ProgramData, family: StageFamily, arrivals: Arrivals, x: FloatArray, points: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        activity, size = np.zeros(len(points)), np.zeros(len(points))
        step = max(1, _TOGETHER // max(1, len(points) * x.shape[1]))
        fixed = any(term.function == CONSTANT for term in family.terms)
        # Arrivals that get nothing use nothing, unless they do so whatever is decided.
        taken = np.arange(len(x)) if fixed else np.flatnonzero(x.any(axis=1))
        for start in range(0, len(taken), step):
            places = taken[start : start + step]
            use, constants = program.template.on_points(family, arrivals.take(places), points)
            own = x[places].ravel()
            flat = use.reshape(len(own), -1)
            activity += own @ flat
            size += np.abs(own) @ np.abs(flat)
            if constants is not None:
                activity += constants.sum(axis=0)
                size += np.abs(constants).sum(axis=0)
        return activity, size


class _Settling:
    """Sums up what the last sweep sees, and makes a result of it."""

    def __init__(self, program: ProgramData, folder: Path, answer: WideAnswer, blocks: Sequence[FileBlock]) -> None:
        self.program, self.answer, self.blocks = program, answer, blocks
        self._maker = BlockMaker.of(program, folder)
        total = sum(block.arrivals for block in blocks)
        self.points = [audit_points(family.domain, total, None) for family in program.template.families]
        self.data: DataMoments | None = None

    def sweep(self, run: Callable[..., Any], sink: Sink, keep: bool, progress: bool) -> None:
        """Look at all blocks; hand decisions on where they are kept."""
        assert self.answer.threshold is not None
        look = _Look(self._maker, self.answer.threshold, self.points, keep)
        self.activity = [np.zeros(len(points)) for points in self.points]
        self.size = [np.zeros(len(points)) for points in self.points]
        self.rows, self.reward = np.zeros(len(self.program.template.rows)), self.program.template.offset
        items = list(zip(self.blocks, self.answer.near, strict=True))
        total = sum(block.arrivals for block in self.blocks)
        with bar(progress, total=total, desc="audit", unit=" arrivals") as shown:
            for block, seen in zip(self.blocks, run(look, items), strict=True):
                for number in range(len(self.points)):
                    self.activity[number] += seen.activity[number]
                    self.size[number] += seen.size[number]
                self.data = seen.data if self.data is None else self.data.join(seen.data)
                self.rows += seen.rows
                self.reward += seen.reward
                if seen.decisions is not None:
                    sink(seen.decisions, {})
                shown.update(block.arrivals)

    def result(self, seconds: float, written: Path | None) -> Result:
        """The result, with what the audit says of it."""
        program, answer, template = self.program, self.answer, self.program.template
        assert answer.dual is not None
        sense = 1.0 if template.maximize else -1.0
        constant = template.offset + sense * sum(block.earned for block in self.blocks)
        bound = sense * answer.bound + constant
        looks = [self._look(number, family) for number, family in enumerate(template.families)]
        checked = Audit(tuple(looks), self._ordinary(), 0.0, bound, 0.0, abs(self.reward - bound))
        over = self._overrun()
        evaluator, dual = program.evaluator, answer.dual
        limits = np.maximum(
            np.abs(evaluator.resources[PROJECTED].total), np.median(np.abs(evaluator.resources[PROJECTED].total))
        )
        overrun = float(np.max(over / np.where(limits > 0, limits, 1.0), initial=0.0))
        complaint = None
        if max(checked.ordinary_violation, overrun) > FEASIBLE or checked.gap > FEASIBLE * (1.0 + abs(self.reward)):
            complaint = (
                f"objective {self.reward:.10g}, bound {bound:.10g}, ordinary rows violated by "
                f"{checked.ordinary_violation:.2g}"
            )
        point = Point(
            None,
            checked,
            tuple(program.price_on(number, dual) for number in range(len(template.families))),
            ordinary_duals(
                evaluator,
                lambda _, group: float(
                    dual[group.slices[PROJECTED]][0] / evaluator.resources[PROJECTED].unit[group.slices[PROJECTED]][0]
                ),
            ),
            None,
            test_violation=max(0.0, float(np.max(over * evaluator.resources[PROJECTED].unit, initial=0.0))),
        )
        memory = answer.gathered * (evaluator.resources[PROJECTED].size + 3) * 8 * 3
        solved = Solved(
            answer.status, self.reward, bound, point, evaluator.resources[PROJECTED].size, memory, complaint=complaint
        )
        result = make_result(stage_subject(template), "projected", solved, seconds)
        assert self.data is not None
        return changed(result, written=written, solved_for=identity_of(evaluator, self.data))

    def _look(self, number: int, family: StageFamily) -> FamilyAudit:
        points = self.points[number]
        limits = family.limits.limits(points)
        return audit_from_values(family.name, family.domain, points, self.activity[number], self.size[number], *limits)

    def _ordinary(self) -> float:
        """Largest violation of an ordinary row, as a share of its limit."""
        worst = 0.0
        for row, use in zip(self.program.template.rows, self.rows.tolist(), strict=True):
            for limit, sign in ((row.upper, 1.0), (row.lower, -1.0)):
                if limit is not None:
                    worst = max(worst, sign * (use - limit) / max(1.0, abs(limit)))
        return worst

    def _overrun(self) -> FloatArray:
        """By how much each test function and ordinary row is overrun, from the columns that were swept."""
        assert self.answer.left is not None
        return np.where(
            np.isfinite(self.program.evaluator.resources[PROJECTED].floor), -self.answer.left, np.abs(self.answer.left)
        )
