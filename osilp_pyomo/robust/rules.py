"""Rules of robust rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osilp_pyomo.robust.substitute import substituted


class RobustRule:
    """The rule of a semi-infinite constraint that was an ordinary one: its rows with the uncertain data replaced.

    An object and no function, so that clones and pickles of the model take it along.
    """

    def __init__(self, rows: dict[Any, Any], vectors: Sequence[Sequence[Any]]) -> None:
        self._rows = rows
        self._vectors = [tuple(vector) for vector in vectors]

    def __call__(self, block: Any, *arguments: Any) -> Any:
        count = len(self._vectors)
        members = arguments[: len(arguments) - count]
        index = None if not members else members[0] if len(members) == 1 else tuple(members)
        return self.at(index, arguments[len(arguments) - count :])

    def at(self, index: Any, vectors: Sequence[Any]) -> Any:
        """The row of an index at some vectors, one for each set."""
        known: dict[int, Any] = {}
        for members, vector in zip(self._vectors, vectors, strict=True):
            known.update((id(member), vector[k]) for k, member in enumerate(members))
        return substituted(self._rows[index], lambda leaf: known.get(id(leaf), leaf))
