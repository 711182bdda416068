"""The condition that restricts an index, as a formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.index.enclosures.enclosure import Condition, Enclosure, NoEnclosureError, Opening
from osilp_pyomo.index.enclosures.regions import Region
from osilp_pyomo.index.formula import Formula, kernel_of


@dataclass(frozen=True, eq=False)
class FormulaRegion(Region):
    """Where a formula is true."""

    formula: Formula
    slots: tuple[Any, ...]

    def enclose(self, axes: Sequence[Enclosure], opening: Opening) -> Condition:
        found = self.formula.enclose(self._columns(), axes, opening)
        if not isinstance(found, Condition):
            raise NoEnclosureError("where= is a number, not a comparison")
        return found

    def contains(self, points: FloatArray) -> BoolArray:
        """Tell which of the points (m, d) belong to it."""
        source, _ = self.formula.source(self.slots)
        slots = self._columns()
        with np.errstate(all="ignore"):
            values = kernel_of(source)(slots, [points[None, :, axis] for axis in range(points.shape[1])])
        return np.array(np.broadcast_to(values, (1, len(points)))[0], dtype=bool)

    def _columns(self) -> list[Any]:
        """Its numbers as columns, beside which points and boxes are rows; curves stay as they are."""
        return [slot[:, None] if isinstance(slot, np.ndarray) else slot for slot in self.slots]
