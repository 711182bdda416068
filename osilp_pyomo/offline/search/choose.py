"""Which separation oracle (search) serves which families."""

from __future__ import annotations

from collections.abc import Sequence

from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import AffineRows
from osilp_pyomo.offline.search.affine import AffineSearch
from osilp_pyomo.offline.search.scan import ContinuumSearch, Search
from osilp_pyomo.offline.search.sets import BodySearch
from osilp_pyomo.offline.search.sweep import sweep_for


def searches_for(families: Sequence[Family], known: Sequence[Search] = ()) -> list[Search]:
    """Separation oracles over the whole index of each family; affine rows over one uncertainty set share theirs.

    ``known`` are those of another time, which are taken again where only limits have changed since.
    """
    searches: list[Search] = []
    by_body: dict[int, list[int]] = {}
    for number, family in enumerate(families):
        if family.domain.body is not None and isinstance(family.rows, AffineRows):
            by_body.setdefault(id(family.domain.body), []).append(number)
        elif family.domain.body is not None:
            searches.append(BodySearch(family, number))
        else:
            searches.append(sweep_for(family, number) or ContinuumSearch(family, number))
    for numbers in by_body.values():
        members = [families[number] for number in numbers]
        body = members[0].domain.body
        assert body is not None
        searches.append(_affine_of(known, members, numbers) or AffineSearch(members, numbers, body))
    return searches


def _affine_of(known: Sequence[Search], families: Sequence[Family], numbers: Sequence[int]) -> AffineSearch | None:
    """The one among known oracles for the same coefficients over the same set, with the limits of now."""
    for each in known:
        if isinstance(each, AffineSearch) and each.numbers.tolist() == list(numbers) and each.serves(families):
            return each.on_members(families)
    return None
