"""Where abs, Min, Max and Expr_if switch along an index: places that a scan must not miss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.rows import TracedRows

# Coefficients that a scan may have at places where rows switch; with more, those places are left out.
_SWITCH_COEFFICIENTS = 20_000_000


def with_switch_points(domain: Domain, rows: TracedRows) -> Domain:
    """Mark where abs, Min, Max and Expr_if switch, so that a piece narrower than the scan is seen."""
    if domain.dimension > 1 or not domain.bounded:
        return domain
    found: list[FloatArray] = []
    nodes = np.linspace(domain.lower[0], domain.upper[0], 2049)
    for group in (*rows.groups, *(rows.lower or ()), *(rows.upper or ())):
        if len(group.columns) * len(nodes) * len(group.switches) > 4 * _SWITCH_COEFFICIENTS:
            continue
        for switch in group.switches:
            signs = replace(group, kernel=switch).block(slice(None), nodes[:, None]) > 0
            column, left = np.nonzero(signs[:, 1:] != signs[:, :-1])
            low, high = nodes[left], nodes[left + 1]
            # Curves have no entry a column, and no switch calls them: one inside another is left out.
            slots = [slot[column] if isinstance(slot, np.ndarray) else slot for slot in group.slots]
            for _ in range(60):
                middle = (low + high) / 2
                with np.errstate(all="ignore"):
                    value = np.broadcast_to(switch(slots, [middle]), middle.shape)
                same = (value > 0) == signs[column, left]
                low, high = np.where(same, middle, low), np.where(same, high, middle)
            found.append(np.concatenate([low, high]))
    places = np.unique(np.concatenate([np.empty(0), *found]))
    if not len(places) or len(places) * len(rows.columns) > _SWITCH_COEFFICIENTS:
        return domain
    return replace(domain, marks=(np.unique(np.concatenate([domain.marks[0], places])),))
