"""What a solve leaves for the next one of nearly the same problem: hints where to begin, and no claims.

Nothing here is believed. Rows that were held are rows of the new problem at the same points, a basis is where a simplex
begins, and a search is used again only for families that are the very same objects, or that have the very same
coefficients and other limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.lp.programs import LastBasis
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import TracedRows
from osilp_pyomo.offline.search.scan import ContinuumSearch, Search


@dataclass(frozen=True, eq=False)
class HeldExchange:
    """What an exchange ended with: its families, its searches, the rows that it held, and where its LP stood.

    ``owners`` and ``points`` are the rows in their order, by the place of their family and the point of its index;
    ``start`` is what :meth:`~osilp_pyomo.lp.highs.HighsModel.start_from` takes; ``inner`` is a point with slack in
    all families, ``cuts`` are where proofs cut their indices, if they are known.
    """

    families: tuple[Family, ...]
    searches: tuple[Search, ...]
    owners: tuple[int, ...]
    points: tuple[FloatArray, ...]
    start: Any
    inner: FloatArray | None = None
    cuts: tuple[FloatArray | None, ...] = ()

    def fits(self, families: Sequence[Family]) -> bool:
        """Whether these rows can be rows of other families: as many, of the same names and dimensions."""
        return len(families) == len(self.families) and all(
            one.name == other.name
            and one.domain.dimension == other.domain.dimension
            and (one.domain.body is None) == (other.domain.body is None)
            for one, other in zip(self.families, families, strict=True)
        )

    def searches_for(self, families: Sequence[Family], fresh: Sequence[Search]) -> list[Search]:
        """Searches for the families of now: fresh ones, but for those that were made for the same rows."""
        known = {tuple(search.numbers.tolist()): search for search in self.searches}
        return [self._search(families, each, known.get(tuple(each.numbers.tolist()))) for each in fresh]

    def _search(self, families: Sequence[Family], fresh: Search, known: Search | None) -> Search:
        if known is None or type(known) is not type(fresh):
            return fresh
        if all(map(is_, known.families, fresh.families)):
            return known
        if isinstance(known, ContinuumSearch) and _other_limits(known.family, families[int(known.numbers[0])]):
            return known.on_families(families)
        return fresh


def _other_limits(one: Family, other: Family) -> bool:
    """Whether two families differ in nothing but the limits of their rows."""
    return (
        one.domain is other.domain
        and isinstance(one.rows, TracedRows)
        and isinstance(other.rows, TracedRows)
        and len(one.rows.groups) == len(other.rows.groups)
        and all(map(is_, one.rows.groups, other.rows.groups))
    )


class Warmth:
    """What solves of one model leave behind: the last exchange, and where finite programs ended."""

    def __init__(self) -> None:
        self.exchange: HeldExchange | None = None
        self.program = LastBasis()

    def forget(self) -> None:
        """Begin the next solve as if there had been none."""
        self.exchange, self.program = None, LastBasis()
