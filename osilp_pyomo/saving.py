"""A controller on disk: arrays and plain text in one file, written at once or not at all, read without running code."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from osilp_pyomo.errors import SavedStateError

# Raised when what is saved changes its meaning.
FORMAT = 1


def write_state(path: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header and arrays; a reader finds the old file or the new one, whenever the machine stops."""
    target = Path(path)
    text = json.dumps({"format": FORMAT, **header})
    handle, temporary = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                header=np.array(text),
                **{f"a:{name}": np.asarray(value) for name, value in arrays.items()},
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_state(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a saved controller."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
            header = json.loads(str(saved["header"]))
            arrays = {name[2:]: saved[name] for name in saved.files if name.startswith("a:")}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise SavedStateError(
            f"'{path}' is no saved controller, or it is damaged ({type(error).__name__}: {error})."
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise SavedStateError(
            f"'{path}' was saved in another format than {FORMAT}, which this version reads; use the one that saved it."
        )
    return header, arrays
