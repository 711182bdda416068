"""What is left of semi-infinite rows along their index, as a frame."""

from __future__ import annotations

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.stages.batch import POINTWISE
from osilp_pyomo.online.stages.evaluator import Evaluator


def left_along_index(evaluator: Evaluator, left_at_points: FloatArray) -> pd.DataFrame:
    """Row, index, limit and what remains, in the rows' own units and sign, ordered along the index."""
    parts = []
    for group in evaluator.groups:
        if group.family is None:
            continue
        points = evaluator.points[group.family]
        order = np.lexsort(points.T[::-1])
        left = group.sign * left_at_points[group.slices[POINTWISE]]
        index = points[order, 0] if points.shape[1] == 1 else list(map(tuple, points[order].tolist()))
        parts.append(
            pd.DataFrame(
                {
                    "row": group.name,
                    "index": index,
                    "limit": evaluator.limit(group)[order],
                    "remaining": left[order],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)
