"""Beyond every number: what is known of a row far out on an index that has no end.

Boxes are cut up to some far place. What lies beyond is one box for each open end, and it is decided by its enclosure:
the row is not violated anywhere in it, or falls outwards, so that it is highest at the far place, which was proved.
Where both ends of an enclosure are infinite, the row is compared power by power (``index/growth.py``). Where
neither tells, nothing is proved beyond.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError, Opening
from osilp_pyomo.index.growth import Growth, axis_between, axis_beyond, growth_of, weighted_sum
from osilp_pyomo.offline.proof.enclosed_row import EnclosedRow
from osilp_pyomo.offline.rows import TermGroup


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
    falls = bool(slope[1] <= 0 if outwards > 0 else slope[0] >= 0) and inside is None
    return falls or _outgrown(row, start, end, axis, outwards, allowed)


def _outgrown(row: EnclosedRow, start: FloatArray, end: FloatArray, axis: int, outwards: int, allowed: float) -> bool:
    """Whether the row, as a sum of powers of the coordinate, is not violated beyond the far place."""
    place = (start if outwards > 0 else end)[axis, 0]
    far = float(outwards * place)
    if not far > 1:
        return False
    try:
        with np.errstate(all="ignore"):
            axes = [
                axis_beyond(far, outwards) if k == axis else axis_between(float(start[k, 0]), float(end[k, 0]), far)
                for k in range(len(start))
            ]
            parts = [(_growth(group, axes), weights) for group, weights in row.terms]
            top, (_, most) = weighted_sum(parts, far).leading()
    except NoEnclosureError:
        return False
    return bool(most <= (allowed if top == 0 else 0.0))


def _growth(group: TermGroup, axes: Sequence[Growth]) -> Growth:
    if group.formula is None:
        raise NoEnclosureError("its formula is not known")
    return growth_of(
        group.formula, [slot[:, None] if isinstance(slot, np.ndarray) else slot for slot in group.slots], axes
    )
