"""Beyond every number: what is known of a row far out on an index that has no end.

Boxes are cut up to some far place. What lies beyond is one box for each open end, and it is decided by its enclosure:
the row is not violated anywhere in it, or falls outwards, so that it is highest at the far place, which was proved.
Where the enclosure does not tell, nothing is proved beyond.
"""

from __future__ import annotations

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import Opening
from osilp_pyomo.offline.proof.enclosed_row import EnclosedRow


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
