"""Files that are written at once or not at all; a controller in one of them, read without running code."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from osilp_pyomo.errors import SavedStateError

# Raised when what is saved changes its meaning.
FORMAT = 1


def write_state(path: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header and arrays; a reader finds the old file or the new one, whenever the machine stops."""
    named = {f"a:{name}": np.asarray(value) for name, value in arrays.items()}
    text = np.array(json.dumps({"format": FORMAT, **header}))

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, header=text, **named)

    write_at_once(Path(path), write)


def write_at_once(target: Path, write: Callable[[Path], Any]) -> None:
    """Write a file so that a reader finds the old one or the new one, whenever the machine stops.

    ``write(path)`` writes beside the target; what it wrote takes the target's place when it is on the disk.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_state(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a saved controller."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
            header = json.loads(str(saved["header"]))
            arrays = {name[2:]: saved[name] for name in saved.files if name.startswith("a:")}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
        raise SavedStateError(
            f"'{path}' is no file that controller.save wrote, or it is damaged; save it again, or give another path."
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise SavedStateError(
            f"'{path}' was saved in another format than {FORMAT}, which this version reads; use the one that saved it."
        )
    return header, arrays
