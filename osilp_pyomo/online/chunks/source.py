"""Arrivals in chunks: files and streams of frames, read part by part, so that they need not fit into memory."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from osilp_pyomo._frames import as_pandas, is_foreign_table
from osilp_pyomo._options import whole_number
from osilp_pyomo.errors import DataError, MissingPackageError

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".csv.zip", ".csv.bz2", ".csv.xz")


@dataclass(frozen=True)
class ParquetPart:
    """Some row groups of a Parquet file: what a worker reads by itself; ``version`` tells the file from a later one."""

    path: str
    groups: tuple[int, ...]
    first: int
    count: int
    version: tuple[int, int]

    def read(self, renamed: Mapping[str, Any]) -> pd.DataFrame:
        """Its rows; only columns that are asked for, under other names."""
        path = Path(self.path)
        with _opened(path) as file:
            table = _read_from(
                path, lambda: file.read_row_groups(list(self.groups), columns=_known(file.schema_arrow.names, renamed))
            )
        if _version(path) != self.version:
            raise DataError(f"Arrivals: '{path}' was changed while it was read; read it again.")
        return _named(table.to_pandas(ignore_metadata=True), renamed, self.first)


class Chunks:
    """Arrivals that are read in chunks, in their order.

    Parameters
    ----------
    source : path, list of paths, iterable of DataFrames, or function that gives one
        A Parquet or CSV file, a folder of such files (in the order of their names), several of them, or frames. A
        plain iterator can be read once; a function without arguments that gives a new one can be read again and again.
    rows : int
        Rows read at a time, at most; of a Parquet file at least one row group where processes read by themselves.

    Examples
    --------
    >>> import pandas as pd
    >>> halves = [pd.DataFrame({"value": [0.5, 0.7]}), pd.DataFrame({"value": [0.1]})]
    >>> [len(frame) for frame in Chunks(halves).frames()]
    [2, 1]
    """

    def __init__(self, source: Any, rows: int = 100_000) -> None:
        self.rows = whole_number(rows, "Chunks: rows")
        #: The files that are read; None for streams of frames.
        self.paths: list[Path] | None = None
        self._frames: Any = None
        if isinstance(source, pd.DataFrame) or is_foreign_table(source):
            source = [source]
        if isinstance(source, str | Path):
            self.paths = _files(Path(source))
        elif isinstance(source, Sequence) and source and all(isinstance(each, str | Path) for each in source):
            self.paths = [path for each in source for path in _files(Path(each))]
        elif callable(source) or isinstance(source, Iterable):
            self._frames = source
        else:
            raise DataError(
                "Chunks: the source must be a path, a list of paths, an iterable of DataFrames, or a function that "
                f"gives one (got {type(source).__name__})."
            )

    def __repr__(self) -> str:
        source = "frames" if self.paths is None else f"{len(self.paths)} file{'s' * (len(self.paths) > 1)}"
        return f"Chunks of {self.rows:,} arrivals from {source}"

    @property
    def count(self) -> int | None:
        """How many arrivals there are, where files say so without being read."""
        parts = self.parts()
        return None if parts is None else sum(part.count for part in parts)

    def parts(self) -> list[ParquetPart] | None:
        """Parts that can be read by themselves and in any order; None where reading goes from the first to the last."""
        if self.paths is None or any(not _is_parquet(path) for path in self.paths):
            return None
        found: list[ParquetPart] = []
        first = 0
        for path in self.paths:
            with _opened(path) as file:
                sizes = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
            version = _version(path)
            groups: list[int] = []
            held = 0
            for number, size in enumerate(sizes):
                if held and held + size > self.rows:
                    found.append(ParquetPart(str(path.resolve()), tuple(groups), first, held, version))
                    first, groups, held = first + held, [], 0
                groups.append(number)
                held += size
            if held:
                found.append(ParquetPart(str(path.resolve()), tuple(groups), first, held, version))
                first += held
        return found

    def frames(self, renamed: Mapping[str, Any] | None = None) -> Iterator[pd.DataFrame]:
        """The chunks as frames; of files only the columns in ``renamed``, under their new names, if given."""
        first = 0
        for found in self._read({} if renamed is None else renamed):
            frame = as_pandas(found)
            if not isinstance(frame, pd.DataFrame):
                raise DataError(f"Chunks: every chunk must be a DataFrame (got {type(frame).__name__}).")
            for start in range(0, len(frame), self.rows):
                part = frame.iloc[start : start + self.rows]
                if self.paths is not None:
                    part = part.set_axis(pd.RangeIndex(first, first + len(part)), axis=0)
                first += len(part)
                yield part

    def _read(self, renamed: Mapping[str, Any]) -> Iterator[Any]:
        if self._frames is not None:
            source = self._frames() if callable(self._frames) else self._frames
            if not isinstance(source, Iterable):
                raise DataError(f"Chunks: the function must give DataFrames (got {type(source).__name__}).")
            yield from source
            return
        for path in self.paths or ():
            read = _read_parquet if _is_parquet(path) else _read_csv
            yield from read(path, renamed, self.rows)


def is_chunked(data: Any) -> bool:
    """Whether arrivals come in chunks rather than as one frame."""
    if isinstance(data, Chunks | str | Path):
        return True
    if data is None or isinstance(data, pd.DataFrame | Mapping) or is_foreign_table(data):
        return False
    if isinstance(data, Sequence):
        return bool(data) and all(
            isinstance(each, pd.DataFrame | str | Path) or is_foreign_table(each) for each in data
        )
    return isinstance(data, Iterator) or (callable(data) and not isinstance(data, type))


def as_chunks(data: Any) -> Chunks:
    """Arrivals as chunks, whatever they came as."""
    return data if isinstance(data, Chunks) else Chunks(data)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        # Writers of such folders mark what is no data by a dot or an underscore in front.
        shown = [each for each in path.iterdir() if not each.name.startswith((".", "_"))]
        found = sorted(each for each in shown if _is_parquet(each) or _is_csv(each))
        if not found:
            raise DataError(f"Arrivals: the folder '{path}' holds no Parquet or CSV files.")
        return found
    if not path.exists():
        raise DataError(f"Arrivals: there is no file '{path}'.")
    if not _is_parquet(path) and not _is_csv(path):
        raise DataError(f"Arrivals: '{path}' must be a .parquet or .csv file, or a folder of them.")
    return [path]


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(_PARQUET)


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith(_CSV)


def _version(path: Path) -> tuple[int, int]:
    """What tells a file from a later one."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _opened(path: Path) -> Any:
    require_parquet(f"reading '{path}'")
    from pyarrow import parquet  # type: ignore[import-untyped]

    # Reading ahead would hold the whole file in memory.
    return _read_from(path, lambda: parquet.ParquetFile(path, pre_buffer=False))


def _read_from(path: Path, read: Callable[[], Any]) -> Any:
    """What reading gives; what pyarrow says of a damaged file is told with its name."""
    from pyarrow import ArrowException

    try:
        return read()
    except (ArrowException, OSError) as error:
        raise DataError(f"Arrivals: '{path}' cannot be read as Parquet ({type(error).__name__}: {error}).") from None


def require_parquet(what: str) -> None:
    """Refuse Parquet where pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise MissingPackageError(
            f"{what} needs pyarrow, which is not installed; pip install 'osilp-pyomo[parquet]', or use CSV."
        )


def _read_parquet(path: Path, renamed: Mapping[str, Any], rows: int) -> Iterator[pd.DataFrame]:
    with _opened(path) as file:
        batches = file.iter_batches(batch_size=rows, columns=_known(file.schema_arrow.names, renamed))
        while (batch := _read_from(path, lambda: next(batches, None))) is not None:
            yield _named(batch.to_pandas(ignore_metadata=True), renamed, 0)


def _read_csv(path: Path, renamed: Mapping[str, Any], rows: int) -> Iterator[pd.DataFrame]:
    def read(task: Callable[[], Any]) -> Any:
        try:
            with warnings.catch_warnings():
                # A row that is longer than the header would lose, or shift, its fields.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return task()
        except (ValueError, OSError, EOFError, zlib.error, pd.errors.ParserWarning) as error:
            raise DataError(f"Arrivals: '{path}' cannot be read as CSV ({type(error).__name__}: {error}).") from None

    names = read(lambda: pd.read_csv(path, nrows=1, header=None, dtype=str)).iloc[0].tolist()
    twice = [name for name in names if names.count(name) > 1 and name in renamed]
    if twice:
        raise DataError(f"Arrivals: '{path}' has two columns {twice[0]!r}.")
    with read(lambda: pd.read_csv(path, chunksize=rows, index_col=False)) as reader:
        while (frame := read(lambda: next(reader, None))) is not None:
            known = _known(list(frame.columns), renamed)
            yield _named(frame if known is None else frame[known].copy(), renamed, 0)


def _known(names: list[str], renamed: Mapping[str, Any]) -> list[str] | None:
    """The columns to read; all of them where none is known, so that what is missing can be told by name."""
    return [name for name in names if name in renamed] or None


def _named(frame: pd.DataFrame, renamed: Mapping[str, Any], first: int) -> pd.DataFrame:
    frame.columns = pd.Index([renamed.get(name, name) for name in frame.columns], dtype=object, tupleize_cols=False)
    return frame.set_axis(pd.RangeIndex(first, first + len(frame)), axis=0)
