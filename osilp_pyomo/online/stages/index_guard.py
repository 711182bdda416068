"""A pointwise guard over the whole index: budgets at points are lowered, and uses lifted, by what is between them.

Rows whose columns are steps are kept piece by piece instead, between the places where they step.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError
from osilp_pyomo.online.stages.batch import POINTWISE, Batch, only_adds
from osilp_pyomo.online.stages.between import Between, objection
from osilp_pyomo.online.stages.evaluator import Evaluator, ResourceGroup
from osilp_pyomo.online.stages.pieces import Pieces
from osilp_pyomo.online.stages.steps import MOST_SWITCHES, Steps, find_steps
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
            by_pieces = all(self._by_pieces(group) for group in self._evaluator.groups if group.family == number)
            why = objection(family, points) or (None if by_pieces else self._sign_objection)
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

    def _is_stepped(self, family: StageFamily) -> bool:
        """Whether all columns of a family are steps, of which the places can be found for each arrival."""
        template = self._evaluator.template
        fields = [
            template.fields[slot] if isinstance(slot, int) else None for term in family.terms for slot in term.slots
        ]
        if not template.linear or family.mixed or any(each is None or each.curve is not None for each in fields):
            return False
        return any(term.switches for term in family.terms) and all(
            term.formula is not None
            and len(term.switches) <= MOST_SWITCHES
            and term.formula.piecewise_constant([np.zeros(1)] * len(term.slots))
            for term in family.terms
        )

    @cached_property
    def stepped(self) -> tuple[ResourceGroup, ...]:
        """Rows that are kept piece by piece: their columns are steps, and nothing is needed of them."""
        return tuple(
            group for group in self._evaluator.groups if self._by_pieces(group) and group.name not in self.gaps
        )

    def _by_pieces(self, group: ResourceGroup) -> bool:
        """Whether one side of a row can be kept piece by piece."""
        if group.family is None or not self._is_stepped(self._evaluator.template.families[group.family]):
            return False
        return bool(np.all(self._evaluator.resources[POINTWISE].total[group.slices[POINTWISE]] >= 0))

    @cached_property
    def kept_at_points(self) -> BoolArray:
        """Which resources at points a guard looks at: those of the other rows."""
        kept = np.ones(self._evaluator.resources[POINTWISE].size, dtype=bool)
        for group in self.stepped:
            kept[group.slices[POINTWISE]] = False
        return kept

    @cached_property
    def beside(self) -> IntArray:
        """Neighbours (2, n) of the resources at points that a guard looks at; none where no row is kept between."""
        kept = self.kept_at_points
        result = np.tile(np.arange(len(kept)), (2, 1))
        between = [group for group in self._evaluator.groups if self._is_between(group)]
        for group in between:
            assert group.family is not None
            at = group.slices[POINTWISE]
            result[:, at] = at.start + self._betweens[group.family][0].beside
        number = np.cumsum(kept) - 1
        return np.ascontiguousarray(number[result[:, kept]] if between else result[:, :0])

    def _is_between(self, group: ResourceGroup) -> bool:
        """Whether a row is kept between its points by what is counted at them."""
        return group.family is not None and group.name not in self.gaps and group not in self.stepped

    def pieces(self) -> tuple[Pieces, ...]:
        """What is left on each piece before the first arrival, for each of the rows that are kept so."""
        return tuple(Pieces.of_cells(*self.along(group, self._lowered(group))) for group in self.stepped)

    def along(self, group: ResourceGroup, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The points of a row in their order, and values at them."""
        assert group.family is not None
        known = self._evaluator.neighbours[group.family]
        assert known is not None
        return known[1], values[known[0]]

    def _lowered(self, group: ResourceGroup) -> FloatArray:
        """The budget of one row at its points, lowered by what its limit can be below its chords."""
        assert group.family is not None
        total = self._evaluator.resources[POINTWISE].total[group.slices[POINTWISE]]
        return total - self._betweens[group.family][1][group.sign]

    def lowered(self) -> FloatArray:
        """Budgets at points, lowered by what limits can be below their chords between them."""
        total = self._evaluator.resources[POINTWISE].total.copy()
        for group in self._evaluator.groups:
            if self._is_between(group):
                total[group.slices[POINTWISE]] = self._lowered(group)
        return total

    def _steps(self, batch: Batch) -> tuple[tuple[tuple[int, Steps], ...], ...]:
        """For each row that is kept piece by piece the columns of its terms."""
        found = []
        for group in self.stepped:
            assert group.family is not None
            family = self._evaluator.template.families[group.family]
            low, high = float(family.domain.lower[0]), float(family.domain.upper[0])
            try:
                found.append(
                    tuple(
                        (term.function, find_steps(term, batch.arrivals, low, high, group.sign))
                        for term in family.terms
                    )
                )
            except NoEnclosureError as error:
                raise DataError(
                    f"SemiInfiniteConstraint '{family.name}': where the use of these arrivals steps could not be found "
                    f"({error}), so that it cannot be guarded between points; use guard='projected' or 'none'."
                ) from None
        return tuple(found)

    @cached_property
    def _only_between(self) -> Between | None:
        """The only row between its points, where that is all that a guard looks at, and a single decision uses it."""
        evaluator = self._evaluator
        several = not evaluator.simple or len(evaluator.template.functions) > 1
        return None if several or self.gaps or self.stepped else self._betweens[0][0]

    def lift_one(self, batch: Batch) -> bool:
        """Lift the use of a single arrival in place, where that is known from before; False where it is not."""
        between = self._only_between
        lift = None if between is None else between.known_lift(1, batch.arrivals.values)
        if lift is None:
            return False
        use = batch.use[POINTWISE][0, 0]
        np.add(use, lift, out=use)
        return True

    def lifted(self, batch: Batch) -> Batch:
        """Arrivals with their use at points lifted by what their columns can be above their chords between them."""
        if len(self.gaps) == len(self._evaluator.template.families):
            return batch
        steps = self._steps(batch)
        harmless = None
        if any(group.sign < 0 for group in self._evaluator.groups):
            harmless = only_adds(batch, POINTWISE)
        use, fixed = batch.use[POINTWISE], batch.fixed[POINTWISE]
        gaps: dict[str, str] = {}
        for group in self._evaluator.groups:
            if not self._is_between(group):
                continue
            assert group.family is not None
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
            gaps, steps, harmless,
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
