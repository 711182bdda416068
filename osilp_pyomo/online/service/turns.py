"""Calls of one controller from several threads: one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class InTurn:
    """Something whose methods marked by :func:`alone` wait for each other; a copy has turns of its own."""

    def __init__(self) -> None:
        self._turn = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = RLock()


def alone(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """A method that waits until no other thread is in one of the same object."""

    @wraps(method)
    def in_turn(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        one: Any = args[0]
        with one._turn:
            return method(*args, **kwargs)

    return in_turn
