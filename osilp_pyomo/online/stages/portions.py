"""Arrivals in portions where rows are kept piece by piece: what they use at the points that decide about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.kernels.fitting import make_margins
from osilp_pyomo.online.stages.batch import GUARDED, POINTWISE, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator, ResourceGroup
from osilp_pyomo.online.stages.index_guard import IndexGuard
from osilp_pyomo.online.stages.pieces import Looked, Pieces
from osilp_pyomo.online.stages.steps import Steps
from osilp_pyomo.online.stages.template import CONSTANT

# Numbers of uses at points that are held together, and arrivals at most.
_BLOCK, _TOGETHER = 2**20, 512


@dataclass(frozen=True, eq=False)
class Portion:
    """The first arrivals of a batch, with their use of what is ``GUARDED``, and for each row where it is looked at."""

    batch: Batch
    looked: tuple[Looked, ...]


class Portions:
    """Lays arrivals out for a loop that knows resources only, and no pieces.

    A resource is then one of the points that a guard looks at: first those of rows that are kept at points, then those
    that decide about rows that are kept piece by piece. ``sizes`` are those of the rows at points, by which slacks are
    measured; ``whole`` says that a stage is a single decision to accept or not.
    """

    def __init__(self, guard: IndexGuard, evaluator: Evaluator, sizes: FloatArray, whole: bool) -> None:
        self._guard, self._evaluator = guard, evaluator
        self._sizes, self._whole = sizes, whole

    def first(self, batch: Batch, pieces: Sequence[Pieces], forced: bool) -> Portion:
        """As many of the first arrivals as there is memory for; ``forced`` ones are paid for whatever is left."""
        together = min(len(batch), _TOGETHER)
        while True:
            part = batch.part(slice(0, together))
            looked = self._looked(part, pieces, forced)
            most = _BLOCK // (sum(len(each.points) for each in looked) + len(self._evaluator.template.decisions))
            if together <= max(1, most):
                return Portion(self._laid_out(part, looked), looked)
            together = max(1, most)

    def _looked(self, batch: Batch, pieces: Sequence[Pieces], forced: bool) -> tuple[Looked, ...]:
        uses = None if forced else self._whole_uses(batch)
        if uses is None:
            columns = [[steps for _, steps in terms] for terms in batch.steps]
            return tuple(Looked.everywhere(each, steps) for each, steps in zip(pieces, columns, strict=True))
        looked, refused = [], np.zeros(len(batch), dtype=bool)
        for group, each, use in zip(self._guard.stepped, pieces, uses, strict=True):
            found, refused = Looked.where_it_matters(each, use, self._size(group), refused)
            looked.append(found)
        return tuple(looked)

    def _whole_uses(self, batch: Batch) -> list[Steps] | None:
        """What arrivals use of each row, where each is accepted or not and uses nowhere less than nothing."""
        accepted = self._whole and bool(np.all(batch.lower == 0) and np.all(batch.upper == 1))
        if not accepted or any(len(terms) > 1 for terms in batch.steps):
            return None
        rows = zip(self._guard.stepped, batch.steps, strict=True)
        uses = [Steps(terms[0][1].places, group.sign * terms[0][1].values) for group, terms in rows]
        return uses if all(bool(np.all(each.values >= 0)) for each in uses) else None

    def _size(self, group: ResourceGroup) -> float:
        return float(self._sizes[group.slices[POINTWISE]].max())

    def _laid_out(self, batch: Batch, looked: Sequence[Looked]) -> Batch:
        kept, count, functions = self._guard.kept_at_points, len(batch), len(self._evaluator.template.functions)
        use, fixed = [batch.use[POINTWISE][:, :, kept]], [batch.fixed[POINTWISE][:, kept]]
        for group, look, terms in zip(self._guard.stepped, looked, batch.steps, strict=True):
            values, constant = np.zeros((count, functions, len(look.points))), np.zeros((count, len(look.points)))
            for function, steps in terms:
                if function == CONSTANT:
                    constant += group.sign * steps.at(look.points)
                else:
                    values[:, function] += group.sign * steps.at(look.points)
            use.append(values)
            fixed.append(constant if self._evaluator.has_fixed else constant[:0])
        return replace(
            batch,
            use={**batch.use, GUARDED: np.concatenate(use, axis=2)},
            fixed={**batch.fixed, GUARDED: np.concatenate(fixed, axis=1)},
        )

    def budgets(
        self, portion: Portion, total: FloatArray, left: FloatArray, margins: FloatArray, horizon: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Budgets, what is left of them, and their margins at the points of a portion, from those at all points."""
        kept = self._guard.kept_at_points
        totals, lefts, all_margins = [total[kept]], [left[kept]], [margins[:, kept]]
        for group, look in zip(self._guard.stepped, portion.looked, strict=True):
            totals.append(look.cut.total[look.at])
            lefts.append(look.left)
            all_margins.append(make_margins(totals[-1], self._size(group), horizon, reserve=0.0))
        return np.concatenate(totals), np.concatenate(lefts), np.concatenate(all_margins, axis=1)

    def after(self, portion: Portion, left: FloatArray, taken: FloatArray) -> tuple[FloatArray, tuple[Pieces, ...]]:
        """What is left of rows that are kept at points, and the pieces, from what a portion leaves at its points.

        ``taken`` (B, n) are the decisions.
        """
        ends = np.cumsum([int(self._guard.kept_at_points.sum()), *(len(each.points) for each in portion.looked)])
        at_points, *parts = np.split(left, ends[:-1])
        return at_points, tuple(each.after(part, taken) for each, part in zip(portion.looked, parts, strict=True))
