"""Files that are written at once or not at all; a controller in one of them, read without running code."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import platform
import re
import secrets
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from osilp_pyomo.errors import OptionError, SavedStateError

# Raised when what is saved changes its meaning. Files of format 1 have no digest.
FORMAT = 2
_READ = (1, 2)
# What reading a damaged file may end with.
_DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, RuntimeError, MemoryError, ArithmeticError,
    SyntaxError, zipfile.BadZipFile,
)  # fmt: skip
# Kinds of numbers that arrays of a state may hold.
_KINDS = "fiub"


def write_state(path: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header and arrays; a reader finds the old file or the new one, whenever the machine stops.

    The file is one of ``numpy.savez``. Its header tells the name of every array, and a digest of all of it.
    """
    named = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    full = {"format": FORMAT, **header, "arrays": sorted(named)}
    full["digest"] = _digest(full, named)
    text = np.array(json.dumps(full))

    entries = {"header": text, **{f"a:{name}": array for name, array in named.items()}}
    write_at_once(_named(path, "save"), lambda temporary: _write_archive(temporary, entries))


def _write_archive(path: Path, entries: Mapping[str, Any]) -> None:
    with open(path, "wb") as file:
        archive = zipfile.ZipFile(file, "w")
        try:
            for name, array in entries.items():
                content = io.BytesIO()
                np.lib.format.write_array(content, array, allow_pickle=False)
                archive.writestr(f"{name}.npy", content.getbuffer())
            archive.close()
        except BaseException:
            # Within an entry it refuses to be closed, and would say so instead of what happened.
            archive.fp = None
            raise


def _named(path: Any, what: str) -> Path:
    try:
        target = Path(path)
        # Where a link leads is where the file is written.
        is_folder, folder = target.is_dir(), Path(os.path.realpath(target)).parent
    except TypeError:
        raise SavedStateError(f"{what}: the path of a file is needed (got {path!r}).") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SavedStateError(f"{what}: {path!r} cannot be the name of a file ({why.lower()}).") from None
    if is_folder:
        raise SavedStateError(f"{what}: '{path}' is a folder; give the path of a file in it.")
    if not folder.is_dir():
        shown = target.parent if not target.is_symlink() else folder
        raise SavedStateError(f"{what}: there is no folder '{shown}'; make it first.")
    return target


def _digest(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """A digest of everything that is saved: the header but for itself, and names, kinds, shapes and bytes of arrays."""
    digest = hashlib.sha256()
    digest.update(json.dumps({name: header[name] for name in sorted(header) if name != "digest"}).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_at_once(target: Path, write: Callable[[Path], Any]) -> None:
    """Write a file so that a reader finds the old one or the new one, whenever the machine stops.

    ``write(path)`` writes beside the target; what it wrote takes the target's place when it is on the disk. Where the
    target is a link, the file that it leads to is replaced.
    """
    target = Path(os.path.realpath(target))
    temporary = _beside(target)
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _keep_names(target.parent)
    _sweep(target)


# What is written beside its place: a dot, the name of the place, the process and something random.
_BESIDE = re.compile(r"\..+\.(\d+)\.[0-9a-f]+\.tmp")


def _beside(target: Path) -> Path:
    """A new name beside a file's place, by which :func:`is_beside` knows what was left there."""
    return target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


def is_beside(path: Path) -> bool:
    """Whether a file is one that this package writes beside its place, or left there when it was killed."""
    return _BESIDE.fullmatch(path.name) is not None


def _keep_names(folder: Path) -> None:
    """Put a folder's own entries on the disk too, so that a new name outlives a power cut; where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sweep(target: Path) -> None:
    """Remove what processes left beside a file that were killed while they wrote it."""
    _remove_stale(target.parent.glob(f".{glob_escaped(target.name)}.*"))


def sweep_folder(folder: Path) -> None:
    """Remove what processes left in a folder that were killed while they wrote files of it."""
    _remove_stale(folder.glob(".*"))


def _remove_stale(found: Iterable[Path]) -> None:
    for path in found:
        match = _BESIDE.fullmatch(path.name)
        owner = int(match[1]) if match else os.getpid()
        if owner != os.getpid() and not is_running(owner):
            with contextlib.suppress(OSError):
                path.unlink()


def glob_escaped(name: str) -> str:
    """A name with what patterns of files would read otherwise put in brackets."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def is_running(process: int) -> bool:
    """Whether a process of this machine is still there; in doubt, yes."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def refuse_unwritable(path: Any, what: str) -> None:
    """Refuse a file that could not be written when it is needed, by beginning one beside it; folders are made."""
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = _beside(target)
        beside.touch()
        beside.unlink()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise OptionError(f"{what}: '{path}' cannot be written ({why}); give another path.") from None


def page_path(path: Any) -> Path:
    """The path of a page that is to be written; one that cannot be is refused."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise OptionError(f"to_html: the path of a file is needed, such as 'page.html' (got {path!r}).")
    refuse_unwritable(path, "to_html")
    return Path(path)


def write_text_at_once(path: Any, text: str) -> None:
    """Write a text, whole or not at all."""
    write_at_once(Path(path), lambda beside: beside.write_text(text, encoding="utf-8"))


# Folders that this process holds, lest two of its threads take the same one.
_held: set[str] = set()
_holding = threading.Lock()
#: The file of a folder that its writer holds.
LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only one who writes into a folder; the owner stands in its file ``.lock``.

    What a process left that is no longer there is taken over. Of other machines nobody knows whether they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name, path = os.path.realpath(folder), folder / LOCK
    with _holding:
        if name in _held:
            raise SavedStateError(f"'{folder}' is being written by this very process; wait until it has done.")
        _held.add(name)
    try:
        _take(folder, path)
        try:
            sweep_folder(folder)
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        with _holding:
            _held.discard(name)


# Seconds after which a lock without an owner, as a crash may leave it, is taken for none.
_OLD = 10.0


def _take(folder: Path, path: Path) -> None:
    for _ in range(2):
        try:
            _put(path, json.dumps({"process": os.getpid(), "machine": platform.node()}))
            return
        except FileExistsError:
            owner = _owner(path)
        here = owner.get("machine") == platform.node()
        process = owner.get("process")
        gone = here and isinstance(process, int) and (process == os.getpid() or not is_running(process))
        if not gone and not (not owner and _age(path) > _OLD):
            raise SavedStateError(
                f"'{folder}' is being written by process {process} on {owner.get('machine') or 'an unknown machine'}; "
                f"wait until it has done, or remove '{path}' if it is no longer there."
            )
        path.unlink(missing_ok=True)
    raise SavedStateError(f"'{folder}' was taken by another process this very moment; try again.")


def _put(path: Path, text: str) -> None:
    """A new file with a text, whole or not at all; an error where there is one."""
    beside = _beside(path)
    try:
        with open(beside, "w") as file:
            file.write(text)
        try:
            os.link(beside, path)
        except FileExistsError:
            raise
        except OSError:
            # A disk without links.
            with open(path, "x") as file:
                file.write(text)
    finally:
        beside.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """How many seconds ago a file was written; none where it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _owner(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def read_state(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a saved controller; nothing larger than the file is ever made of it."""
    if not isinstance(path, str | os.PathLike):
        # A number would be read as somebody's open file, and closed.
        raise SavedStateError(f"load_controller: the path of a file is needed (got {path!r}).")
    try:
        with _Bounded(io.FileIO(path)) as file:
            header, arrays = _read(file)
    except FileNotFoundError:
        raise
    except _DAMAGED:
        raise SavedStateError(
            f"'{path}' is no file that controller.save wrote, or it is damaged; save it again, or give another path."
        ) from None
    if header.get("format") not in _READ:
        raise SavedStateError(
            f"'{path}' was saved in another format than {FORMAT}, which this version reads; use the one that saved it."
        )
    if header["format"] > 1 and header.get("digest") != _digest(header, arrays):
        raise SavedStateError(
            f"'{path}' is damaged: its content is not what controller.save wrote; save it again, or give another path."
        )
    return header, arrays


class _Bounded(io.BufferedReader):
    """A file that is never asked for more than it holds: whatever is asked for, memory is taken beforehand."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__(file)
        self.size = os.fstat(file.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self.size - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


def _read(file: _Bounded) -> tuple[dict[str, Any], dict[str, Any]]:
    size = file.size
    arrays: dict[str, Any] = {}
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("numbers are saved as they are, not packed")
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError("an entry is larger than the file")
        for entry in entries:
            if entry.filename in arrays:
                raise ValueError("a name stands there twice")
            arrays[entry.filename] = _array(archive.read(entry))
    header = json.loads(str(arrays.pop("header.npy")))
    if not isinstance(header, dict):
        raise ValueError("the header is no mapping")
    wrong = [name for name in arrays if not (name.startswith("a:") and name.endswith(".npy"))]
    found = {name[2:-4]: array for name, array in arrays.items()}
    if wrong or (header.get("format") != 1 and header.get("arrays") != sorted(found)):
        raise ValueError("the arrays are not those that the header tells")
    if any(array.dtype.kind not in _KINDS for array in found.values()):
        raise ValueError("an array holds no numbers")
    return header, found


def _array(content: bytes) -> Any:
    """An array from the bytes of an .npy file, whose header may say anything."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject or fortran or any(each < 0 for each in shape):
        raise ValueError("no plain numbers")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError("another size than its header tells")
    return np.frombuffer(content, dtype=dtype, offset=file.tell()).reshape(shape).copy()
