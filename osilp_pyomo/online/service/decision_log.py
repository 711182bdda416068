"""The log of a controller: its last decisions in memory, or all of them in a file."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import whole_number
from osilp_pyomo.errors import OptionError, SavedStateError
from osilp_pyomo.online.clock.times import NOW, Times
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.stages.template import Arrivals

# A file is looked at from its end in blocks of so many bytes.
_BLOCK = 2**16


class DecisionLog:
    """Decisions with their data, why they were taken and what they earned; memory does not grow with them.

    ``keep`` is how many of the last ones are held in memory, or the path of a CSV file that all are appended to.
    """

    def __init__(self, program: ProgramData, reasons: tuple[str, ...], keep: Any, times: Times | None = None) -> None:
        self._program = program
        self._reasons = np.array(reasons, dtype=object)
        self._times = times
        self._path: Path | None = None
        self._written = False
        if isinstance(keep, str | Path):
            self._path, most = Path(keep), 0
            if self._path.suffix.lower() != ".csv" or not self._path.parent.is_dir():
                raise OptionError(f"controller: log= must be a number, or the path of a .csv file (got {str(keep)!r}).")
        else:
            most = whole_number(keep, "controller: log")
        self._most = most
        self._held = 0
        self._parts: deque[pd.DataFrame] = deque()

    def copy(self) -> DecisionLog | None:
        """The same log, to go on by itself; None for a file, which only one can write."""
        if self._path is not None:
            return None
        other = DecisionLog(self._program, tuple(self._reasons), self._most, self._times)
        other._parts, other._held = self._parts.copy(), self._held
        return other

    def add(
        self, first: int, arrivals: Arrivals, decided: FloatArray, reasons: FloatArray, rewards: FloatArray
    ) -> None:
        """Note decisions on arrivals, the first of which has the number ``first``."""
        if self._path is None and len(arrivals) > self._most:
            cut = len(arrivals) - self._most
            first, arrivals = first + cut, arrivals.part(slice(cut, None))
            decided, reasons, rewards = decided[cut:], reasons[cut:], rewards[cut:]
        part = self._frame(first, arrivals, decided, reasons, rewards)
        if self._path is not None:
            self._append(part)
            return
        # The last part stays until another one follows, lest it be needed to come back to.
        while len(self._parts) > 1 and self._held - len(self._parts[0]) >= self._most:
            self._held -= len(self._parts.popleft())
        self._parts.append(part)
        self._held += len(part)

    def mark(self) -> Any:
        """Where it is, to come back to before anything else but one more note comes."""
        if self._path is None:
            return self._parts[-1] if self._parts else None
        try:
            if not self._path.exists():
                return 0
            if self._written:
                return self._path.stat().st_size
            with self._path.open("rb") as file:
                return _whole_lines(file)
        except OSError:
            return None

    def back_to(self, mark: Any) -> None:
        """Forget what was noted, or half noted, after a mark."""
        if self._path is None:
            while self._parts and self._parts[-1] is not mark:
                self._parts.pop()
            self._held = sum(len(part) for part in self._parts)
            return
        # What of it is left is looked at before the next note.
        self._written = False
        with contextlib.suppress(OSError):
            if mark is not None and self._path.exists() and self._path.stat().st_size > mark:
                os.truncate(self._path, mark)

    def _frame(
        self, first: int, arrivals: Arrivals, decided: FloatArray, reasons: FloatArray, rewards: FloatArray
    ) -> pd.DataFrame:
        index = pd.RangeIndex(first, first + len(arrivals), name="t")
        data = self._program.intake.to_frame(Arrivals(arrivals.values, index))
        decisions = self._program.template.decision_frame(decided, index)
        frame = pd.concat([data, decisions], axis=1)
        if self._times is not None and self._when not in frame:
            times = np.full(len(index), np.nan) if arrivals.times is None else arrivals.times
            frame.insert(
                0, self._when, [np.nan if np.isnan(time) else self._times.told(time) for time in times.tolist()]
            )
        told = {"reason": self._reasons[reasons.astype(int)], "reward": rewards}
        return frame.assign(**{name if name not in frame else f"{name}_": value for name, value in told.items()})

    @property
    def _when(self) -> Any:
        """The column of times."""
        assert self._times is not None
        return NOW if self._times.column is None else self._times.column

    def _append(self, part: pd.DataFrame) -> None:
        assert self._path is not None
        try:
            self._begin(part)
            part.to_csv(self._path, mode="a", header=not self._written)
        except OSError as error:
            raise SavedStateError(f"log: '{self._path}' cannot be written ({error}); nothing was decided.") from None
        self._written = True

    def _begin(self, part: pd.DataFrame) -> None:
        """Look at a file that is there, once: a torn last line is taken away, other columns are refused."""
        assert self._path is not None
        if self._written or not self._path.exists():
            return
        with self._path.open("rb+") as file:
            file.truncate(_whole_lines(file))
            file.seek(0)
            head = file.readline().decode()
        wanted = part.head(0).to_csv(lineterminator="\n")
        if head and head.rstrip("\r\n") != wanted.rstrip("\n"):
            raise OptionError(
                f"log: '{self._path}' has other columns than the decisions of this controller "
                f"({head.strip()[:80]!r} and not {wanted.strip()[:80]!r}); name another file."
            )
        self._written = bool(head)

    @property
    def frame(self) -> pd.DataFrame:
        """What was noted, one row a decision, by its number."""
        if self._path is not None:
            if not self._path.exists():
                return self._nothing
            with self._path.open("rb") as file:
                whole = _whole_lines(file)
                file.seek(0)
                # "null" is a reason here, and no missing value.
                told = BytesIO(file.read(whole))
            return pd.read_csv(told, index_col="t", keep_default_na=False) if whole else self._nothing
        return pd.concat(self._parts).iloc[-self._most :] if self._parts else self._nothing

    @property
    def _nothing(self) -> pd.DataFrame:
        template = self._program.template
        arrivals = self._program.intake.to_frame(self._program.no_arrivals)
        when = [] if self._times is None or self._when in arrivals.columns else [self._when]
        columns = [*when, *arrivals.columns, *(label.column for label in template.decisions), "reason", "reward"]
        return pd.DataFrame(columns=pd.Index(columns, tupleize_cols=False), index=pd.RangeIndex(0, name="t"))


def _whole_lines(file: BinaryIO) -> int:
    """How many bytes of a file are whole lines; the rest is what was left of a line when a process was killed."""
    stop = file.seek(0, SEEK_END)
    while stop:
        start = max(0, stop - _BLOCK)
        file.seek(start)
        found = file.read(stop - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        stop = start
    return 0
