"""Which uncertain data are read as numbers while something is built from them.

A rule that writes expressions never asks a Param for its value; one that computes with numbers, or chooses by them,
does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# The ids of members that were read since they were last asked for.
_READ: set[int] = set()
# The classes that tell when they are read, by those that they stand for.
_WATCHING: dict[type, type] = {}


@contextmanager
def watched(members: Iterable[Any]) -> Iterator[set[int]]:
    """The ids of members whose values are read, as a set that fills; the reader empties it."""
    members = list(members)
    kinds = [type(member) for member in members]
    _READ.clear()
    try:
        for member, kind in zip(members, kinds, strict=True):
            member.__class__ = _watching(kind)
        yield _READ
    finally:
        for member, kind in zip(members, kinds, strict=True):
            member.__class__ = kind


def _watching(kind: type) -> type:
    """The same class, but that its value tells when it is read."""
    if kind in _WATCHING:
        return _WATCHING[kind]
    slot: Any = kind._value  # type: ignore[attr-defined]

    def read(member: Any) -> Any:
        _READ.add(id(member))
        return slot.__get__(member)

    def write(member: Any, value: Any) -> None:
        slot.__set__(member, value)

    inherited = {"__slots__": (), "__module__": kind.__module__}
    _WATCHING[kind] = type(kind.__name__, (kind,), {**inherited, "_value": property(read, write)})
    return _WATCHING[kind]
