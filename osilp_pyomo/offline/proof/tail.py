"""Beyond every number: what is known of a row far out on an index that has no end.

Boxes are cut up to some far place. What lies beyond is one box for each open end, and it is decided by its enclosure:
the row is not violated anywhere in it, or falls outwards, so that it is highest at the far place, which was proved.
Where the enclosure does not tell, the row is proved up to the far place only. If it is all but binding there and still
moves, as a logarithm does for ever, not even that is worth saying.
"""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import Opening
from osilp_pyomo.offline.proof.enclosed_row import EnclosedRow

# A row is all but binding above minus this share of its size, and moves by more than that share of it between the
# square root of the far place and itself.
_NEARLY, _MOVES = 1e-2, 1e-9
# Places along the other axes at which that is looked at.
_LOOKED_AT = 64


def keeps_tail(row: EnclosedRow, domain: Domain, low: FloatArray, high: FloatArray, allowed: float) -> bool:
    """Whether a row that is at most ``allowed`` over the box between ``low`` and ``high`` is so over its whole domain.

    A point beyond the box along one axis is moved back to it along that axis, then along the next one: each box beyond
    is as wide as the domain along the others.
    """
    for axis in range(len(low)):
        for outwards in (1, -1):
            start, end = domain.lower.copy(), domain.upper.copy()
            if np.isfinite(end[axis] if outwards > 0 else start[axis]):
                continue
            (start if outwards > 0 else end)[axis] = (high if outwards > 0 else low)[axis]
            if not _keeps(row, start[:, None], end[:, None], axis, outwards, allowed):
                return False
    return True


def _keeps(row: EnclosedRow, start: FloatArray, end: FloatArray, axis: int, outwards: int, allowed: float) -> bool:
    inside = row.inside(start, end, Opening(len(start)))
    if inside is not None and bool(np.all(inside.fails)):
        return True
    found = row.enclose(start, end, row.opening(1))
    if bool(found.value[1, 0] <= allowed):
        return True
    slope = found.slopes[:, axis, 0]
    return bool(slope[1] <= 0 if outwards > 0 else slope[0] >= 0) and inside is None


def is_settled(row: EnclosedRow, domain: Domain, low: FloatArray, high: FloatArray, size: float) -> bool:
    """Whether a row, on its way along each axis to a far place, is slack there or has stopped to move.

    Along the other axes it is looked at here and there: at their ends, and between them, near and far.
    """
    others = _places(domain)
    for axis in range(len(low)):
        for end, far in ((domain.upper[axis], high[axis]), (domain.lower[axis], low[axis])):
            if np.isfinite(end):
                continue
            halfway, there = others.copy(), others.copy()
            halfway[axis], there[axis] = np.sign(far) * np.sqrt(abs(far)), far
            before, after = (row.enclose(at, at, row.opening(0)).value[1] for at in (halfway, there))
            least = np.maximum(size, row.smallest_terms(there, there))
            slack, still = after <= -_NEARLY * least, np.abs(after - before) <= _MOVES * least
            if domain.inside is not None:
                slack |= ~domain.contains(there.T)
            if not np.all(slack | still):
                return False
    return True


def _places(domain: Domain) -> FloatArray:
    """Points (d, n) of a domain: its corners as far as it has any, and others, on sides without an end near and far."""
    random = np.random.default_rng(0)
    low = np.where(np.isfinite(domain.lower), domain.lower, 0.0)
    share = np.concatenate([np.zeros((1, len(low))), np.ones((1, len(low))), random.random((_LOOKED_AT, len(low)))])
    wide = np.where(np.isfinite(domain.width), domain.width, 10.0 ** random.uniform(-3, 30, (len(share), len(low))))
    below = np.isneginf(domain.lower) & (random.random(share.shape) < (0.5 if np.isposinf(domain.upper).any() else 1.0))
    places = low + share * wide
    places = np.where(below, np.where(np.isfinite(domain.upper), domain.upper, 0.0) - share * wide, places)
    return places.T
