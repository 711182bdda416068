"""A pointwise guard over the whole index: budgets at points are lowered, and uses lifted, by what is between them."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError
from osilp_pyomo.online.stages.batch import POINTWISE, Batch
from osilp_pyomo.online.stages.between import Between, objection
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import CONSTANT, Arrivals, StageFamily


class IndexGuard:
    """What the rows of a program can be between its points, as far as it is known."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        # For each family what is known between its points, and what its limits are lowered by on each side.
        self._betweens: dict[int, tuple[Between, dict[int, FloatArray]]] = {}

    @cached_property
    def gaps(self) -> dict[str, str]:
        """Rows of which nothing is known between the points, and why: a pointwise guard keeps only their points."""
        found: dict[str, str] = {}
        families = zip(self._evaluator.template.families, self._evaluator.points, strict=True)
        for number, (family, points) in enumerate(families):
            why = objection(family, points) or self._sign_objection
            if why is None:
                try:
                    self._look_between(number, family)
                except NoEnclosureError as error:
                    why = str(error)
            if why is not None:
                found[family.name] = why
        return found

    @cached_property
    def _sign_objection(self) -> str | None:
        """Why uses may not grow with the decisions: a lift of a column that is taken a negative number of times."""
        template = self._evaluator.template
        if not template.linear:
            return "its use is not linear in the decision"
        for label, low in zip(template.decisions, template.lower, strict=True):
            if (
                low is None
                or any(term.slots for term in low)
                or template.numbers(low, Arrivals((), pd.RangeIndex(1)))[1][0] < 0
            ):
                return f"the decision '{label}' may be negative"
        return None

    def _look_between(self, number: int, family: StageFamily) -> None:
        """Find out what is known of a family between its points, and lower its limits."""
        known = self._evaluator.neighbours[number]
        assert known is not None
        between = Between(family, *known)
        self._betweens[number] = between, {sign: between.lowering(sign) for sign in family.sides}

    def lowered(self) -> FloatArray:
        """Budgets at points, lowered by what limits can be below their chords between them."""
        total = self._evaluator.resources[POINTWISE].total.copy()
        for group in self._evaluator.groups:
            if group.family is not None and group.name not in self.gaps:
                total[group.slices[POINTWISE]] -= self._betweens[group.family][1][group.sign]
        return total

    def lift_one(self, batch: Batch) -> bool:
        """Lift the use of a single arrival in place, where that is known from before; False where it is not."""
        evaluator = self._evaluator
        if not evaluator.simple or batch.rewards.shape[1] > 1 or self.gaps:
            return False
        lift = self._betweens[0][0].known_lift(1, batch.arrivals.values)
        if lift is None:
            return False
        use = batch.use[POINTWISE][0, 0]
        np.add(use, lift, out=use)
        return True

    def lifted(self, batch: Batch) -> Batch:
        """Arrivals with their use at points lifted by what their columns can be above their chords between them."""
        if len(self.gaps) == len(self._evaluator.template.families):
            return batch
        use, fixed = batch.use[POINTWISE], batch.fixed[POINTWISE]
        gaps: dict[str, str] = {}
        for group in self._evaluator.groups:
            if group.family is None or group.name in self.gaps:
                continue
            between, at = self._betweens[group.family][0], group.slices[POINTWISE]
            family = self._evaluator.template.families[group.family]
            for number, term in enumerate(family.terms):
                try:
                    lifts = between.lifts(number, group.sign, batch.arrivals)
                except NoEnclosureError as error:
                    # What comes with an arrival may be a function of which nothing is known but its values.
                    gaps[group.name] = str(error)
                    continue
                self._refuse_infinite_lift(lifts, family, batch.arrivals)
                if term.function != CONSTANT and self._evaluator.simple and use.shape[1] == 1:
                    use = use + lifts[:, None]
                elif term.function != CONSTANT:
                    use = use.copy() if use is batch.use[POINTWISE] else use
                    use[:, term.function, at] += lifts
                elif len(fixed):
                    fixed = fixed.copy() if fixed is batch.fixed[POINTWISE] else fixed
                    fixed[:, at] += lifts
        return Batch(
            batch.arrivals, batch.rewards, batch.earned, {**batch.use, POINTWISE: use},
            {**batch.fixed, POINTWISE: fixed}, batch.lower, batch.upper, batch.own, batch.own_fixed, batch.projection,
            gaps,
        )  # fmt: skip

    def _refuse_infinite_lift(self, lifts: FloatArray, family: StageFamily, arrivals: Arrivals) -> None:
        # Lifts are not negative, so that their sum is as finite as they are.
        if math.isfinite(lifts.max()):
            return
        arrival, point = np.argwhere(~np.isfinite(lifts))[0]
        place = family.domain.describe(self._evaluator.points[self._evaluator.template.families.index(family)][point])
        raise DataError(
            f"SemiInfiniteConstraint '{family.name}': what the arrival {arrivals.name(int(arrival))!r} uses near "
            f"{place} cannot be bounded between the points of the guard, for a part of its formula overflows there; "
            "write it so that it does not, or use guard='projected' or 'none'."
        )
