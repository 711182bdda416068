"""Pyomo sets as indices: which are continuous, and numbers of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyomo.core.base.range import NumericRange
from pyomo.core.base.set import SetData, SetProduct
from pyomo.dae import ContinuousSet

from osilp_pyomo.errors import DeclarationError
from osilp_pyomo.uncertainty import is_uncertainty_set


def is_continuous(candidate: Any) -> bool:
    """Whether a set is a continuous index: a ContinuousSet, RangeSet(a, b, 0), Reals, or an uncertainty set."""
    if isinstance(candidate, ContinuousSet) or is_uncertainty_set(candidate):
        return True
    if not isinstance(candidate, SetData) or candidate.isdiscrete():
        return False
    ranges = list(candidate.ranges())
    if len(ranges) == 1 and isinstance(ranges[0], NumericRange) and ranges[0].step == 0:
        return True
    raise DeclarationError(
        f"SemiInfiniteConstraint: the set '{candidate.name}' is neither finite nor one interval; give an interval, "
        "with 'where' for a part of it, or one constraint for each piece."
    )


def single_sets(sets: Sequence[Any]) -> Iterator[Any]:
    """The sets one by one, products such as ``m.u * m.v`` taken apart."""
    for each in sets:
        if isinstance(each, SetProduct):
            yield from each.subsets(expand_all_set_operators=False)
        else:
            yield each


def some_number(each: Any, share: float) -> float:
    """A number of a continuous set; where it is unbounded, one within 10 of its end or of zero."""
    low, high = each.bounds()
    if low is None:
        low = -10.0 if high is None else high - 10.0
    if high is None:
        high = low + 10.0
    return float(low + share * (high - low))


class VectorError(DeclarationError):
    """A rule asks for an entry that its uncertain vector does not have."""


class Vector(tuple[Any, ...]):
    """An uncertain vector as a rule gets it: a tuple whose entries that do not exist are explained."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except IndexError:
            raise VectorError(
                f"its rule asks for entry {key} of an uncertain vector of dimension {len(self)}, whose entries are 0 "
                f"to {len(self) - 1}; give a set of the dimension that the rule needs."
            ) from None
