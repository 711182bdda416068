"""Column blocks on disk: chunks of arrivals, projected once and swept as often as a solver needs.

A block is one file of numbers, mapped into memory while it is looked at, and one with the data of its arrivals. Both
are written at once or not at all. Blocks of files keep their names from run to run, so that a folder given by the user
is filled once.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._files import write_at_once
from osilp_pyomo.errors import DataError, OptionError, SavedStateError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.lp.columns import DenseColumns
from osilp_pyomo.online.chunks.source import ParquetPart
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.stages.batch import PROJECTED, Batch
from osilp_pyomo.online.stages.template import Arrivals

# What reading a damaged file raises.
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
# Numbers of a column before those of its rows: value, lower and upper bound.
_BEFORE = 3


@dataclass(frozen=True, eq=False)
class FileBlock:
    """Columns of some arrivals on disk; what they use and earn whatever is decided stands beside them."""

    path: str
    columns: int
    arrivals: int
    first: int
    fixed: FloatArray
    earned: float

    def __len__(self) -> int:
        return self.columns

    def load(self) -> DenseColumns:
        """The columns, as a map of the file."""
        try:
            numbers = np.asarray(np.load(self.path, mmap_mode="r"))
        except _UNREADABLE as error:
            raise _gone(self.path, error) from None
        return DenseColumns(numbers[:, 0], numbers[:, _BEFORE:], numbers[:, 1], numbers[:, 2])

    def data(self, program: ProgramData) -> Arrivals:
        """The data of its arrivals."""
        values: list[Any] = []
        try:
            with np.load(_data_path(Path(self.path)), allow_pickle=False) as saved:
                arrays = [saved[f"f{number}"] for number in range(len(program.template.fields))]
        except _UNREADABLE as error:
            raise _gone(self.path, error) from None
        for array, field in zip(arrays, program.template.fields, strict=True):
            form = field.curve
            if form is None:
                values.append(array)
            else:
                assert form.knots is not None
                values.append(CurveStack.of_arrays(str(field.label), form.knots, array, form.kind, form.outside))
        return Arrivals(tuple(values), pd.RangeIndex(self.first, self.first + self.arrivals))


@dataclass(frozen=True)
class BlockMaker:
    """Projects chunks of arrivals into blocks in a folder; it can be sent to where the chunks are read."""

    program: ProgramData
    folder: str
    fingerprint: str

    @classmethod
    def of(cls, program: ProgramData, folder: Path) -> BlockMaker:
        """That of a program."""
        return cls(program, str(folder.resolve()), program.fingerprint)

    def __call__(self, part: ParquetPart) -> FileBlock:
        """The block of a part of a file; one that is there already is taken as it is."""
        digest = hashlib.sha256(repr((self.fingerprint, part)).encode()).hexdigest()[:24]
        path = Path(self.folder) / f"{digest}.npy"
        known = self._known(path, part.first)
        if known is not None:
            return known
        return self.write(self.program.arrivals(part.read(self.program.intake.columns)), path, part.first)

    def write(self, arrivals: Arrivals, path: Path, first: int) -> FileBlock:
        """Project arrivals and write their block."""
        batch = self.program.evaluator.batch(arrivals, keep_points=False)
        self._refuse_unbounded(batch)
        count, functions = batch.rewards.shape
        numbers = np.empty((count * functions, _BEFORE + batch.use[PROJECTED].shape[2]))
        numbers[:, 0] = batch.rewards.ravel()
        numbers[:, 1], numbers[:, 2] = batch.lower.ravel(), batch.upper.ravel()
        numbers[:, _BEFORE:] = batch.use[PROJECTED].reshape(count * functions, -1)
        fixed = (
            batch.fixed[PROJECTED].sum(axis=0)
            if len(batch.fixed[PROJECTED])
            else np.zeros(batch.use[PROJECTED].shape[2])
        )
        earned = float(batch.earned.sum())
        told = {"fixed": fixed, "earned": np.array(earned), "arrivals": np.array(count)}
        _save(_data_path(path), {**told, **_arrays(arrivals)})
        write_at_once(path, lambda temporary: _save_array(temporary, numbers))
        return FileBlock(str(path), len(numbers), count, first, fixed, earned)

    def _refuse_unbounded(self, batch: Batch) -> None:
        bounded = np.isfinite(batch.lower) & np.isfinite(batch.upper)
        if not bounded.all():
            arrival, decision = np.argwhere(~bounded)[0]
            raise OptionError(
                f"solve_offline: '{self.program.template.decisions[decision]}' has no bound on one side for the "
                f"arrival {batch.arrivals.name(int(arrival))!r}, and arrivals in chunks are decided by sign between "
                "bounds; give it bounds, or the arrivals as one DataFrame."
            )

    def _known(self, path: Path, first: int) -> FileBlock | None:
        """The block that is there already; None where there is none that can be read."""
        try:
            numbers = np.load(path, mmap_mode="r")
            with np.load(_data_path(path), allow_pickle=False) as saved:
                fixed, earned, arrivals = saved["fixed"], float(saved["earned"]), int(saved["arrivals"])
        except _UNREADABLE:
            return None
        program = self.program
        if numbers.shape != (
            arrivals * len(program.template.decisions),
            _BEFORE + program.evaluator.resources[PROJECTED].size,
        ):
            return None
        return FileBlock(str(path), len(numbers), arrivals, first, fixed, earned)


def _gone(path: str, error: Exception) -> SavedStateError:
    return SavedStateError(
        f"The block '{path}' cannot be read any more ({type(error).__name__}: {error}); keep cache= while a solve runs."
    )


def _arrays(arrivals: Arrivals) -> dict[str, FloatArray]:
    found: dict[str, FloatArray] = {}
    for number, value in enumerate(arrivals.values):
        array = value.array if isinstance(value, CurveStack) else value
        if array is None:
            raise DataError(
                "Arrivals in chunks: curves that are functions, or tables on points of their own, cannot be kept on "
                "disk; give them as values at the Profile's points."
            )
        found[f"f{number}"] = array
    return found


def _data_path(path: Path) -> Path:
    return path.with_suffix(".data.npz")


def _save(path: Path, arrays: dict[str, FloatArray]) -> None:
    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_at_once(path, write)


def _save_array(path: Path, numbers: FloatArray) -> None:
    with open(path, "wb") as file:
        np.save(file, numbers, allow_pickle=False)
