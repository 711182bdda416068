"""Decisions written while they are made: a Parquet or CSV file that is there whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.chunks import require_parquet
from osilp_pyomo.domains import FloatArray
from osilp_pyomo.errors import OptionError
from osilp_pyomo.saving import write_at_once

# Takes a chunk: the index of its arrivals, decisions (B, n), and further columns by name.
Sink = Callable[[pd.Index, FloatArray, dict[str, Any]], None]


def write_decisions(path: Any, labels: Sequence[Any], fill: Callable[[Sink], None]) -> Path | None:
    """Let ``fill`` write chunks of decisions into a file; with no path they are let go.

    Columns are "arrival", the decisions under the user's names, and whatever else is told of them.
    """
    if path is None:
        fill(lambda index, decisions, further: None)
        return None
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".parquet", ".csv"):
        raise OptionError(f"write= must name a .parquet or .csv file (got {str(path)!r}).")
    if kind == ".parquet":
        require_parquet(f"writing '{target}'")
    if not target.parent.is_dir():
        raise OptionError(f"write=: there is no folder '{target.parent}'.")
    names = [str(label) for label in labels]
    written = _write_parquet if kind == ".parquet" else _write_csv
    write_at_once(target, lambda temporary: written(temporary, names, fill))
    return target


def _frame(names: Sequence[str], index: pd.Index, decisions: FloatArray, further: dict[str, Any]) -> pd.DataFrame:
    columns = {"arrival": np.asarray(index), **{name: decisions[:, k] for k, name in enumerate(names)}}
    # A decision that is itself called "reward" keeps its name.
    columns |= {name if name not in columns else f"{name}_": value for name, value in further.items()}
    return pd.DataFrame(columns)


def _write_csv(path: Path, names: Sequence[str], fill: Callable[[Sink], None]) -> None:
    with open(path, "w", newline="") as file:
        fresh = True

        def sink(index: pd.Index, decisions: FloatArray, further: dict[str, Any]) -> None:
            nonlocal fresh
            _frame(names, index, decisions, further).to_csv(file, index=False, header=fresh)
            fresh = False

        fill(sink)


def _write_parquet(path: Path, names: Sequence[str], fill: Callable[[Sink], None]) -> None:
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    writer: Any = None

    def sink(index: pd.Index, decisions: FloatArray, further: dict[str, Any]) -> None:
        nonlocal writer
        table = pyarrow.Table.from_pandas(_frame(names, index, decisions, further), preserve_index=False)
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        fill(sink)
    finally:
        if writer is not None:
            writer.close()
