"""A study on disk: a folder with a header, tables, and a file for each trial that is not in the tables yet.

While a study runs, every finished trial is a file of its own, written at once or not at all. When it ends, the tables
are written and those files go. Whatever moment it is stopped at, the folder holds every finished trial once.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from osilp_pyomo._files import sweep_folder, write_at_once
from osilp_pyomo.errors import MissingPackageError, OptionError, SavedStateError
from osilp_pyomo.online.runs import BENCHMARKS
from osilp_pyomo.studies.trial import FRAMES, Job, Records

#: Raised when what is saved changes its meaning.
FORMAT = 1
FILE_FORMATS = ("csv", "parquet")
_HEADER, _TRIALS, _DIGESTS = "study.json", "trials", "tables.json"
_JOB = ("horizon", "grid", "trial")
# How often tables that change while they are read are read again.
_AGAIN = 100
# What a header must say.
_PARTS = {"model", "description", "policies", "guards", "order", "sampler", "trials", "horizons", "grids", "benchmarks",
          "budget", "seed", "versions", "program"}  # fmt: skip
# What is looked at before the entries of a header are used.
_FORMS: dict[str, Callable[[Any], bool]] = {
    "trials": lambda value: type(value) is int and value >= 1,
    "horizons": lambda value: isinstance(value, list) and all(type(each) is int for each in value) and bool(value),
    "grids": lambda value: isinstance(value, list) and bool(value),
    "policies": lambda value: (
        isinstance(value, list) and all(isinstance(each, list) and list(map(type, each)) == [str] * 3 for each in value)
    ),
    "guards": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "benchmarks": lambda value: isinstance(value, list) and set(value) <= set(BENCHMARKS),
    "model": lambda value: isinstance(value, dict),
    "versions": lambda value: isinstance(value, dict),
}
# Columns without which a table says nothing, beside those of its trial.
_COLUMNS = {"runs": ("policy", "guard", "reward", "violation", "relative_violation", "step_microseconds")}
# Columns that hold words.
_TEXTS = ("policy", "guard", "row", "worst_index", "benchmark", "status", "kind", "part")

Tables = dict[str, pd.DataFrame]


def check_file_format(file_format: str) -> None:
    """Refuse a format that cannot be written here."""
    if file_format not in FILE_FORMATS:
        raise OptionError(f"save: format must be 'csv' or 'parquet' (got {file_format!r}).")
    if file_format == "parquet" and find_spec("pyarrow") is None:
        raise MissingPackageError(
            "save: format='parquet' needs pyarrow, which is not installed; pip install 'osilp-pyomo[parquet]', or use "
            "format='csv'."
        )


def write_header(folder: Path, header: Mapping[str, Any]) -> None:
    """Write what a study is."""
    folder.mkdir(parents=True, exist_ok=True)
    write_at_once(folder / _HEADER, lambda path: path.write_text(json.dumps({"format": FORMAT, **header}, indent=1)))


def read_header(folder: Path) -> dict[str, Any]:
    """What the study in a folder is; empty where there is none."""
    try:
        header = json.loads((folder / _HEADER).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SavedStateError(
            f"'{folder}' holds no study that can be read ({type(error).__name__}: {error})."
        ) from None
    if isinstance(header, dict) and header.get("format") == FORMAT and not set(header) >= _PARTS:
        missing = ", ".join(sorted(_PARTS - set(header)))
        raise SavedStateError(f"'{folder}': its {_HEADER} is damaged, for it lacks {missing}.")
    if isinstance(header, dict) and header.get("format") == FORMAT:
        for name, right in _FORMS.items():
            if not right(header[name]):
                raise SavedStateError(f"'{folder}': its {_HEADER} is damaged, for its {name} are {header[name]!r}.")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise SavedStateError(
            f"'{folder}' was saved in another format than {FORMAT}, which this version reads; use the one that saved "
            "it."
        )
    return header


def write_trial(folder: Path, job: Job, records: Records) -> None:
    """Keep a finished trial."""
    path = _trial_path(folder, job)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, lambda path: path.write_text(json.dumps(records)))


def read_tables(folder: Path) -> Tables:
    """Everything that is finished: the tables, and the trials that are not in them yet.

    A study that ends meanwhile moves its trials into the tables: what was read while those changed is read again.
    """
    for attempt in range(_AGAIN):
        before = _stamps(folder)
        try:
            tables = _read_once(folder)
        except (SavedStateError, FileNotFoundError):
            if attempt == _AGAIN - 1 or _stamps(folder) == before:
                raise
            continue
        if _stamps(folder) == before:
            return tables
    raise SavedStateError(f"'{folder}' changes all the time while it is read; try again when its study has ended.")


def _stamps(folder: Path) -> list[tuple[int, int, int] | None]:
    """By what the tables of a folder, and their digests, are told from others that take their places."""
    names = [_DIGESTS, *(f"{name}.{each}" for name in FRAMES for each in FILE_FORMATS)]
    return [_stamp(folder / name) for name in names]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read_once(folder: Path) -> Tables:
    tables = {name: _read_table(folder, name) for name in FRAMES}
    known = set(jobs_of(tables["runs"]))
    # Where writing was cut short, other tables may hold trials that the runs do not; those have files still.
    added = {name: [frame[[job in known for job in jobs_of(frame)]]] for name, frame in tables.items()}
    for path in sorted((folder / _TRIALS).glob("*.json")):
        try:
            job = Job(*map(int, path.stem.split("-")))
            if job in known:
                continue
            records = json.loads(path.read_text())
            frames = {name: pd.DataFrame(records.get(name, [])) for name in FRAMES}
            if set(jobs_of(frames["runs"])) != {job}:
                raise ValueError("it holds no runs of its trial")
        except FileNotFoundError:
            # Its study has ended, and the tables have changed; or somebody has removed it.
            continue
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SavedStateError(
                f"'{path}' is damaged ({type(error).__name__}: {error}); remove it, and its trial is run again."
            ) from None
        for name in FRAMES:
            added[name].append(frames[name])
    return {name: concat_frames(parts) for name, parts in added.items()}


def write_tables(folder: Path, tables: Tables, file_format: str) -> None:
    """Write the tables, then remove the files of single trials, which are in them now.

    ``tables.json`` holds a digest of each, those of before beside the new ones until all are written: whatever moment
    it is stopped at, a table that was cut or changed is told from one that was written.
    """
    check_file_format(file_format)
    folder.mkdir(parents=True, exist_ok=True)
    contents = {name: _content(frame, file_format) for name, frame in tables.items() if len(frame)}
    new = {f"{name}.{file_format}": [_digest(content)] for name, content in contents.items()}
    before = _digests(folder) or {}
    _write_digests(folder, {name: [*before.get(name, []), *new.get(name, [])] for name in {**before, **new}})
    # The table of runs says which trials are there, so that it comes last.
    for name in (*(name for name in FRAMES if name != "runs"), "runs"):
        stale = [folder / f"{name}.{each}" for each in FILE_FORMATS if each != file_format or name not in contents]
        if name in contents:
            write_at_once(folder / f"{name}.{file_format}", partial(_write_bytes, contents[name]))
        for path in stale:
            path.unlink(missing_ok=True)
    _write_digests(folder, new)
    for job in set(jobs_of(tables["runs"])):
        _trial_path(folder, job).unlink(missing_ok=True)
    sweep_folder(folder / _TRIALS)
    if (folder / _TRIALS).is_dir() and not any((folder / _TRIALS).iterdir()):
        (folder / _TRIALS).rmdir()


def _content(frame: pd.DataFrame, file_format: str) -> bytes:
    if file_format == "csv":
        return frame.to_csv(index=False).encode()
    file = io.BytesIO()
    frame.to_parquet(file, index=False)
    return file.getvalue()


def _write_bytes(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_digests(folder: Path, digests: dict[str, list[str]]) -> None:
    write_at_once(folder / _DIGESTS, lambda path: path.write_text(json.dumps(digests, indent=1, sort_keys=True)))


def _digests(folder: Path) -> dict[str, list[str]] | None:
    """The digests that a folder's tables may have; None where they were saved without."""
    try:
        found = json.loads((folder / _DIGESTS).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, list) for each in found.values()):
        raise SavedStateError(f"'{folder}': its {_DIGESTS} is damaged; remove it, and the tables are read as they are.")
    return found


def _refuse_changed(folder: Path, path: Path) -> None:
    """Refuse a table that is not one that was written."""
    digests = _digests(folder)
    if digests is not None and _digest(path.read_bytes()) not in digests.get(path.name, []):
        raise SavedStateError(
            f"'{path}' is cut or was changed since it was saved; run the study again, or remove '{_DIGESTS}' to read "
            "it as it is."
        )


def concat_frames(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Frames of trials one below the other, in the order of the trials and not of their ending."""
    kept = [part for part in parts if len(part)]
    if not kept:
        return pd.DataFrame()
    return pd.concat(kept).sort_values(list(_JOB), kind="stable").reset_index(drop=True)


def jobs_of(frame: pd.DataFrame) -> list[Job]:
    """The trial that each row of a frame belongs to."""
    return [Job(*key) for key in frame[list(_JOB)].itertuples(index=False, name=None)] if len(frame) else []


def _trial_path(folder: Path, job: Job) -> Path:
    return folder / _TRIALS / f"{job.horizon}-{job.grid}-{job.trial}.json"


def _read_table(folder: Path, name: str) -> pd.DataFrame:
    try:
        if (folder / f"{name}.parquet").exists():
            check_file_format("parquet")
            _refuse_changed(folder, folder / f"{name}.parquet")
            return pd.read_parquet(folder / f"{name}.parquet")
        if (folder / f"{name}.csv").exists():
            _refuse_changed(folder, folder / f"{name}.csv")
            frame = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)
            if missing := [column for column in (*_JOB, *_COLUMNS.get(name, ())) if column not in frame]:
                raise ValueError(f"it has no column {', '.join(missing)}")
            return pd.DataFrame({column: _numbers(str(column), frame[column].tolist()) for column in frame})
    except SavedStateError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise SavedStateError(
            f"'{folder}': the table '{name}' cannot be read ({type(error).__name__}: {error})."
        ) from None
    return pd.DataFrame()


def _numbers(column: str, texts: list[str]) -> list[Any]:
    """A column of a CSV file as it was; Python reads every digit of a number, which not every pandas does."""
    if column in _TEXTS:
        return texts
    kind = int if all(text.lstrip("-").isdigit() for text in texts) else float
    return [kind(text) if text else float("nan") for text in texts]
