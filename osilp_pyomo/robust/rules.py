"""Rules of robust rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from osilp_pyomo.model.arrays.substitute import substituted


@dataclass(frozen=True, eq=False)
class Reacting:
    """A variable that a FunctionVar has taken the place of; ``places`` are those of its sets among a row's."""

    variable: Any
    function: Any
    index: Any
    places: tuple[int, ...]

    def at(self, vectors: Sequence[Any]) -> Any:
        """Its value at vectors, one for each set of the row."""
        return self.function.expression(self.index, [vectors[place] for place in self.places])


class RobustRule:
    """The rule of a semi-infinite constraint that was an ordinary one: its rows with the uncertain data replaced.

    An object and no function, so that clones and pickles of the model take it along.
    """

    def __init__(
        self, rows: dict[Any, Any], vectors: Sequence[Sequence[Any]], reacting: Sequence[Reacting] = ()
    ) -> None:
        self._rows = rows
        self._vectors = [tuple(vector) for vector in vectors]
        self._reacting = tuple(reacting)

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
        values: dict[int, Any] = {}
        by_id = {id(each.variable): each for each in self._reacting}

        def replace(leaf: Any) -> Any:
            key = id(leaf)
            if key in by_id and key not in values:
                values[key] = by_id[key].at(vectors)
            return values[key] if key in by_id else known.get(key, leaf)

        return substituted(self._rows[index], replace)
