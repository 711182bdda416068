"""Parts of a value that are made when they are first looked at, as frames are that most solves make for nobody."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
Value = TypeVar("Value")


class Late(Generic[T]):
    """A field of a frozen dataclass that may be given as a ``partial``, which is called when it is first looked at.

    What the partial holds must be picklable, and no part of a user's model, which may change until then.
    """

    def __init__(self, default: Callable[[], T]) -> None:
        self._default = default
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_late_{name}"

    @overload
    def __get__(self, instance: None, owner: type) -> partial[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            # This is how a dataclass asks for the default of a field.
            return partial(self._default)
        kept = vars(instance)[self._name]
        if isinstance(kept, partial):
            kept = vars(instance)[self._name] = kept()
        return kept

    def __set__(self, instance: object, value: T | partial[T]) -> None:
        vars(instance)[self._name] = value


def changed(value: Value, **parts: Any) -> Value:
    """A copy of a frozen dataclass with other parts, as by ``replace``; what is made late is not made for it."""
    other = copy.copy(value)
    for name, part in parts.items():
        object.__setattr__(other, name, part)
    return other


def unmade(value: object, name: str) -> partial[Any] | None:
    """The call that makes a late part; None where the part was looked at before, and costs nothing."""
    kept = vars(value).get(f"_late_{name}")
    return kept if isinstance(kept, partial) else None
