"""Decisions written while they are made: a Parquet or CSV file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._files import write_at_once
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.chunks.source import require_parquet

# Takes a chunk: decisions (B, n), and further columns by name.
Sink = Callable[[FloatArray, dict[str, Any]], None]


def decision_file(path: Any, sources: Sequence[Path] | None) -> Path | None:
    """The file that decisions are to be written to, refused before any work is done if that cannot be.

    It must be none of the ``sources`` that are read.
    """
    if path is None:
        return None
    target = Path(path)
    if target.suffix.lower() not in (".parquet", ".csv"):
        raise OptionError(f"write= must name a .parquet or .csv file (got {str(path)!r}).")
    if target.suffix.lower() == ".parquet":
        require_parquet(f"writing '{target}'")
    if not target.parent.is_dir():
        raise OptionError(f"write=: there is no folder '{target.parent}'.")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise OptionError(f"write=: '{target}' cannot be written.")
    if sources is not None and target.resolve() in [source.resolve() for source in sources]:
        raise OptionError(f"write=: '{target}' is the file that the arrivals are read from.")
    return target


def write_decisions(target: Path | None, labels: Sequence[Any], fill: Callable[[Sink], None]) -> None:
    """Let ``fill`` write chunks of decisions into a file; with no file they are let go.

    Columns are "arrival", counted from 0, the decisions under the user's names, and whatever else is told of them.
    """
    if target is None:
        fill(lambda decisions, further: None)
        return
    names = [str(label) for label in labels]
    written = _write_parquet if target.suffix.lower() == ".parquet" else _write_csv
    write_at_once(target, lambda temporary: written(temporary, names, fill))


def _frame(names: Sequence[str], first: int, decisions: FloatArray, further: dict[str, Any]) -> pd.DataFrame:
    told: dict[str, Any] = {"arrival": np.arange(first, first + len(decisions)), **further}
    # A decision that is itself called "reward" keeps its name.
    told = {f"{name}_" if name in names else name: value for name, value in told.items()}
    numbers, *others = told.items()
    return pd.DataFrame(dict([numbers, *((name, decisions[:, k]) for k, name in enumerate(names)), *others]))


def _write_csv(path: Path, names: Sequence[str], fill: Callable[[Sink], None]) -> None:
    with open(path, "w", newline="") as file:
        first = 0

        def sink(decisions: FloatArray, further: dict[str, Any]) -> None:
            nonlocal first
            _frame(names, first, decisions, further).to_csv(file, index=False, header=not first)
            first += len(decisions)

        fill(sink)


def _write_parquet(path: Path, names: Sequence[str], fill: Callable[[Sink], None]) -> None:
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    writer: Any = None
    first = 0

    def sink(decisions: FloatArray, further: dict[str, Any]) -> None:
        nonlocal writer, first
        table = pyarrow.Table.from_pandas(_frame(names, first, decisions, further), preserve_index=False)
        first += len(decisions)
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        fill(sink)
    finally:
        if writer is not None:
            writer.close()
