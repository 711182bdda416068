"""One side of a family whose rule is called at points, enclosed over boxes by a Lipschitz constant.

The user says by how much a coefficient or a limit changes at most along each coordinate; the excess then changes by at
most that times ``1 + sum |x_j|``, and its value in the middle of a box bounds it all over the box. (Bounds of this kind
are those of Piyavskii and Shubert, 1972; they need many more points than enclosures do.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.enclosures.enclosure import Condition, NoEnclosureError, Opening, coordinates
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.proof.enclosed_row import Expansion
from osilp_pyomo.offline.rows import SampledRows

# What one call of a rule costs, in columns of a formula.
_CALL = 250
# Points at which a constant is tried, those of earlier calls, and what rounding may add to a change.
_TRIED, _CALLED, _ROUNDING = 48, 4000, 1e-9


class LipschitzRow:
    """The excess of one side of a sampled family at x, by the values of its rule and its Lipschitz constants.

    Raises
    ------
    NoEnclosureError
        The rule changes faster than its constants say.
    """

    columns = 1
    cost = float(_CALL)
    block = 256

    def __init__(self, family: Family, x: FloatArray, values: Callable[[FloatArray], FloatArray]) -> None:
        assert family.lipschitz is not None
        self.dimension = family.domain.dimension
        self.region = family.domain.region
        self._values = values
        self._steep = family.lipschitz * (1 + float(np.abs(x).sum()))

    def work(self, boxes: int, passes: int = 3) -> float:
        """What a look at boxes costs: a call of the rule for each."""
        return boxes * self.cost

    def opening(self, order: int, **how: object) -> Opening:
        """Nothing is known of kinks and conditions."""
        return Opening(self.dimension, order)

    def enclose(self, low: FloatArray, high: FloatArray, opening: Opening) -> Expansion:
        """The excess over boxes with ends (d, n); minus infinity where the middle lies outside of the domain."""
        boxes = low.shape[1]
        middle = self._values((low + (high - low) / 2).T)
        # A middle outside of the domain says nothing of the part inside.
        middle = np.where(np.isneginf(middle), np.nan, middle)
        reach = (self._steep[:, None] * (high - low) / 2).sum(axis=0)
        slopes = np.broadcast_to(np.stack([-self._steep, self._steep])[:, :, None], (2, self.dimension, boxes))
        unknown = np.full((2, self.dimension, self.dimension, boxes), np.nan)
        value = np.stack([middle - reach, middle + reach])
        return Expansion(value, slopes, value, slopes, unknown, np.zeros((2, boxes)))

    def inside(self, low: FloatArray, high: FloatArray, opening: Opening) -> Condition | None:
        """What is known over boxes of the condition that the row is restricted to."""
        if self.region is None:
            return None
        return self.region.enclose(coordinates(low, high), opening)

    def rounding(self, points: FloatArray) -> FloatArray:
        """Numbers that a rule gives count as they are."""
        return np.zeros(len(points))

    def smallest_terms(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Nothing is known of the size of its terms."""
        return np.zeros(low.shape[1])


def refuse_wrong_constant(family: Family, points: FloatArray) -> None:
    """Refuse Lipschitz constants that the rule contradicts at some of the points, or wherever it was called before."""
    assert family.lipschitz is not None
    constants = family.lipschitz
    called = family.rows.known_points() if isinstance(family.rows, SampledRows) else points
    points = np.concatenate([points[:: max(1, len(points) // _TRIED)], called[-_CALLED:]])
    limits = family.rows.limits(points)
    for limit in limits:
        finite = np.isfinite(limit)
        if finite.any() and not finite.all():
            where = " and ".join(
                family.user_domain.describe(points[int(np.argmax(each))]) for each in (finite, ~finite)
            )
            raise NoEnclosureError(f"lipschitz= is contradicted: of {where} one has a limit and the other has none")
    if not any(np.isfinite(limit).any() for limit in limits):
        raise NoEnclosureError("its limits are infinite wherever it was called")
    lower, upper = (np.nan_to_num(limit, posinf=0.0, neginf=0.0) for limit in limits)
    numbers = np.column_stack([family.matrix_unchecked(points), lower, upper])
    # All pairs of a few points, and each of the others with those nearest to it.
    few = np.arange(min(len(points), _TRIED))
    scaled = points * np.where(constants > 0, constants, 1.0)
    _, nearest = cKDTree(scaled).query(scaled, k=min(3, len(points)))
    one = np.concatenate([np.repeat(few, len(few)), np.repeat(np.arange(len(points)), nearest.shape[1])])
    other = np.concatenate([np.tile(few, len(few)), nearest.ravel()])
    allowed = (np.abs(points[one] - points[other]) * constants).sum(axis=1)
    change = np.abs(numbers[one] - numbers[other]).max(axis=1)
    excess = change - allowed - _ROUNDING * (1 + np.abs(numbers).max())
    worst = int(np.argmax(excess))
    if excess[worst] > 0:
        where = " and ".join(family.user_domain.describe(points[k]) for k in (one[worst], other[worst]))
        raise NoEnclosureError(
            f"lipschitz={_written(constants)} is contradicted: between {where} a coefficient or limit changes "
            f"by {change[worst]:.6g}, and may change by {allowed[worst]:.6g}"
        )


def _written(constants: FloatArray) -> str:
    return f"{constants[0]:g}" if np.all(constants == constants[0]) else f"[{', '.join(f'{c:g}' for c in constants)}]"
