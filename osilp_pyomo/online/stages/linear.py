"""The problem of one stage: x = argmax over X of sum_k weights_k h_k(x), the weights being f_k - w'C_k.

A solver is chosen by what the expressions are. Each solves many stages at once (``best``), and one stage within what
remains of guarded resources (``fit``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel
from osilp_pyomo.lp.row_generation import add_violated, largest
from osilp_pyomo.lp.scaling import scaling_for
from osilp_pyomo.online.kernels.fitting import RESERVE, SLACK, USED_UP, fits_into
from osilp_pyomo.online.kernels.linear import TIE_SHARE
from osilp_pyomo.online.stages.batch import Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import StageTemplate

# Guarded rows that join the problem of a stage in one round, and rounds.
_ROWS_PER_ROUND, _ROUNDS = 50, 40
# What a guarded row may be overrun by, as a share of its whole budget.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Room:
    """Guarded resources of one stage: use must stay below ``left``.

    ``usage`` (K, N) holds the coefficients of the functions, ``fixed`` (N,) what no decision changes; ``used`` maps a
    decision to its whole use.
    """

    usage: FloatArray
    fixed: FloatArray
    left: FloatArray
    margins: FloatArray
    used: Callable[[FloatArray], FloatArray]

    def excess(self, x: FloatArray) -> FloatArray:
        """By how much a decision overruns each row; negative where it does not."""
        use = self.used(x)
        over = use - self.left + self.margins[RESERVE]
        return np.where(fits_into(use, self.left, *self.margins), -1.0, over)

    @property
    def spare(self) -> FloatArray:
        """What is left for the decision; nothing where only rounding is left."""
        return np.where(self._used_up, 0.0, self.left - self.margins[RESERVE]) - self.fixed

    @property
    def _used_up(self) -> BoolArray:
        return np.asarray(self.left - self.margins[RESERVE] <= USED_UP * self.margins[SLACK])

    def used_up(self, x: FloatArray) -> bool:
        """Whether a row that a decision overruns has nothing left worth dividing."""
        return bool(np.any((self.excess(x) > 0) & self._used_up))

    def fits(self, x: FloatArray) -> bool:
        """Whether a decision fits."""
        return not np.any(self.excess(x) > 0)

    def narrowed(self) -> Room:
        """The same with a little less left, so that what is found by halving fits for certain."""
        return replace(self, left=self.left - self.margins[SLACK])


# Prices of terms that mix index and decision: for each family its number, points, and the price that sits on them.
Densities = Sequence[tuple[int, tuple[FloatArray, FloatArray]]]


class StageSolver(ABC):
    """What every stage solver can do.

    ``asked_as`` is what ``stage_solver=`` calls it, ``name`` how it is told in full.
    """

    name: str
    asked_as: str

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.template: StageTemplate = evaluator.template

    @classmethod
    @abstractmethod
    def solves(cls, template: StageTemplate) -> bool:
        """Whether it can solve such stages."""

    def on(self, evaluator: Evaluator) -> StageSolver:
        """The same solver for stages with other budgets."""
        return type(self)(evaluator)

    @abstractmethod
    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        """The best decisions (B, n) for weights (B, K); ``densities`` price terms that mix index and decision."""

    def fit(
        self,
        batch: Batch,
        weights: FloatArray,
        densities: Densities,
        wanted: FloatArray,
        room: Room,
        null: FloatArray,
    ) -> FloatArray:
        """A decision of a single arrival that fits; from null towards what is wanted as far as it goes.

        Use is convex, so that what fits is an interval, and for one variable its end is the best that fits.
        """
        if not room.fits(null) or room.used_up(wanted):
            return null
        low, high = 0.0, 1.0
        room = room.narrowed()
        for _ in range(60):
            middle = 0.5 * (low + high)
            if room.fits(null + middle * (wanted - null)):
                low = middle
            else:
                high = middle
        found = null + low * (wanted - null)
        if self.template.integer.any():
            rounded = np.where(self.template.integer, null + np.fix(found - null + 1e-9), found)
            return rounded if room.fits(rounded) and self._in_own_rows(batch, rounded) else null
        return found

    def serve(self, batch: Batch, weights: FloatArray, paced: Room, whole: Room, sizes: FloatArray) -> FloatArray:
        """A decision of an arrival that must be served: the best that keeps pace, else what is least ahead of it.

        That is looked for among those that fit into the ``whole`` of what is left; where none does, what overruns that
        least. Both are measured by ``sizes`` (N,), the budgets. For linear stages only.
        """
        return _serve_linear(self.template, batch, weights, paced, whole, sizes)

    def _in_own_rows(self, batch: Batch, x: FloatArray) -> bool:
        values = self.template.values(batch.arrivals, x[None])[0]
        activity = batch.own[0] @ values + batch.own_fixed[0]
        size = np.abs(batch.own[0]) @ np.abs(values) + np.abs(batch.own_fixed[0]) + 1e-12
        for row, value, scale in zip(self.template.own_rows, activity, size, strict=True):
            if value > 1e-9 * scale or (row.equality and value < -1e-9 * scale):
                return False
        return True


class _LinearFit(StageSolver):
    """What linear stages have in common: a decision that does not fit is solved for anew, as an LP or MILP."""

    def fit(
        self,
        batch: Batch,
        weights: FloatArray,
        densities: Densities,
        wanted: FloatArray,
        room: Room,
        null: FloatArray,
    ) -> FloatArray:
        return _fit_linear(self.template, batch, weights, wanted, room, null)


class LinearStage(_LinearFit):
    """A linear stage with rows of its own: an LP or MILP by HiGHS for each arrival."""

    asked_as = "highs"

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        return template.linear

    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__(evaluator)
        self.name = "HiGHS MILP" if self.template.integer.any() else "HiGHS LP"

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        nothing = np.zeros((len(self.template.functions), 0))
        return np.stack(
            [self._solve(batch.part(slice(b, b + 1)), weights[b], nothing, np.zeros(0)) for b in range(len(batch))]
        )

    def _solve(self, one: Batch, weights: FloatArray, usage: FloatArray, left: FloatArray) -> FloatArray:
        found = _linear(self.template, one, weights, usage, left)
        if found is None:
            raise _no_decision(one, "it has no solution")
        return found


class BoxStage(_LinearFit):
    """A linear stage over a box: each variable at its bound by the sign of its priced value."""

    name = "closed form: a box"
    asked_as = "closed form"

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        return template.linear and not template.options and not template.own_rows

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        rest = np.clip(0.0, batch.lower, batch.upper)
        size = np.abs(batch.rewards) + np.abs(batch.rewards - weights)
        tie = np.abs(weights) <= TIE_SHARE * size
        chosen = np.where(weights > 0, batch.upper, batch.lower)
        result = np.where(tie, rest, chosen)
        if not np.all(np.isfinite(result)):
            raise _no_decision(batch, "it is unbounded: a decision that earns more than it costs has no bound")
        return result


class OptionsStage(BoxStage):
    """At most one of several options, each with its own reward and use."""

    name = "closed form: one of several options"

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        return template.linear and bool(template.options)

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        size = np.abs(batch.rewards) + np.abs(batch.rewards - weights)
        worth = np.where(weights > TIE_SHARE * size, weights, 0.0)
        result = np.zeros_like(worth)
        chosen = np.argmax(worth, axis=1)
        rows = np.arange(len(batch))
        result[rows, chosen] = (worth[rows, chosen] > 0).astype(float)
        return result


class ExactlyOneStage(_LinearFit):
    """Exactly one of several options, each with its own reward and use."""

    name = "closed form: exactly one of several options"
    asked_as = "closed form"

    @classmethod
    def solves(cls, template: StageTemplate) -> bool:
        return template.must_choose

    def best(self, batch: Batch, weights: FloatArray, densities: Densities) -> FloatArray:
        result = np.zeros_like(weights)
        result[np.arange(len(batch)), np.argmax(weights, axis=1)] = 1.0
        return result

    def serve(self, batch: Batch, weights: FloatArray, paced: Room, whole: Room, sizes: FloatArray) -> FloatArray:
        if not self.template.integer.all():
            # A mixture of options may fit where none of them does.
            return super().serve(batch, weights, paced, whole, sizes)
        options = np.eye(len(weights))
        fitting = np.array([whole.fits(option) for option in options])
        room = paced if fitting.any() else whole
        over = np.array([max(0.0, float((room.excess(option) / sizes).max(initial=0.0))) for option in options])
        over = np.where(fitting | ~fitting.any(), over, np.inf)
        least = over <= over.min() * (1 + 1e-9)
        return options[int(np.argmax(np.where(least, weights, -np.inf)))]


def _serve_linear(
    template: StageTemplate, one: Batch, weights: FloatArray, paced: Room, whole: Room, sizes: FloatArray
) -> FloatArray:
    """The stage's LP or MILP with one more variable, the share of budgets that rows are overrun by: first as little of
    it as can be, then the best decision with no more.
    """
    for room, strict in ((paced, whole), (whole, None)):
        share = _with_overrun(template, one, np.zeros(len(weights)), room, strict, sizes, np.inf)
        if share is not None:
            found = _with_overrun(template, one, weights, room, strict, sizes, share[-1] * (1 + 1e-9) + 1e-12)
            return (share if found is None else found)[:-1]
    raise _no_decision(one, "it has no solution")


def _with_overrun(
    template: StageTemplate,
    one: Batch,
    weights: FloatArray,
    room: Room,
    strict: Room | None,
    sizes: FloatArray,
    most: float,
) -> FloatArray | None:
    """The best decision, and the share of budgets that it overruns rows by, at most so much; None where there is none.

    Without weights that share is as small as can be. ``strict`` is room that must be kept.
    """
    left = room.left - room.margins[RESERVE] - room.fixed

    def solve(rows: BoolArray) -> FloatArray | None:
        usage, limits, elastic = room.usage[:, rows], left[rows], sizes[rows]
        if strict is not None:
            usage, limits = np.concatenate([usage, usage], axis=1), np.concatenate([limits, strict.spare[rows]])
            elastic = np.concatenate([elastic, np.zeros(len(elastic))])
        return _linear(template, one, weights, usage, limits, elastic, most)

    def excess(found: FloatArray) -> FloatArray:
        x, share = found[:-1], found[-1]
        over = np.where(room.excess(x) > 0, room.used(x) - room.fixed - left - (share + _ROUNDING) * sizes, -1.0)
        return over if strict is None else np.maximum(over, strict.excess(x))

    rows = np.zeros(len(room.left), dtype=bool)
    found = add_violated(solve(rows), rows, solve, excess, largest(_ROWS_PER_ROUND), _ROUNDS)
    if found is not None and strict is not None and not strict.fits(found[:-1]):
        return None
    return found


def _fit_linear(
    template: StageTemplate, one: Batch, weights: FloatArray, wanted: FloatArray, room: Room, null: FloatArray
) -> FloatArray:
    """The stage's LP or MILP with guarded rows added where they are overrun; null where nothing fits."""
    x = add_violated(
        wanted,
        np.zeros(len(room.left), dtype=bool),
        lambda rows: _linear(template, one, weights, room.usage[:, rows], room.spare[rows]),
        room.excess,
        largest(_ROWS_PER_ROUND),
        _ROUNDS,
    )
    return null if x is None or not room.fits(x) else x


def _linear(
    template: StageTemplate,
    one: Batch,
    weights: FloatArray,
    usage: FloatArray,
    left: FloatArray,
    sizes: FloatArray | None = None,
    most: float = np.inf,
) -> FloatArray | None:
    """The best decision within rows of its own and others; with ``sizes``, those may be overrun by a share of them.

    That share, at most so much, is then the last number of the answer; without weights it is as small as can be.
    """
    own = one.own[0]
    limits = -one.own_fixed[0]
    equality = np.array([row.equality for row in template.own_rows], dtype=bool)
    matrix = np.concatenate([own, usage.T])
    upper = np.concatenate([limits, left])
    lower = np.concatenate([np.where(equality, limits, -np.inf), np.full(len(left), -np.inf)])
    lp = FiniteLP(
        maximize=True,
        cost=weights,
        column_lower=one.lower[0],
        column_upper=one.upper[0],
        integer=template.integer,
        matrix=sparse.csr_array(matrix),
        row_lower=lower,
        row_upper=upper,
        column_names=[str(label) for label in template.decisions],
    )
    if sizes is not None:
        lp = replace(
            lp,
            cost=np.append(weights, 0.0 if weights.any() else -1.0),
            column_lower=np.append(lp.column_lower, 0.0),
            column_upper=np.append(lp.column_upper, most),
            integer=np.append(template.integer, False),
            matrix=sparse.csr_array(np.column_stack([matrix, np.concatenate([np.zeros(len(own)), -sizes])])),
            column_names=[*lp.column_names, "overrun"],
        )
    # What a stage decides may be measured in billionths, and HiGHS' tolerances are absolute.
    scaling = scaling_for(lp, [])
    model = HighsModel(lp, scaling)
    found = model.solve()
    if found.x is None and model.dropped:
        # A coefficient that HiGHS took for rounding may be what bounds it, or allows an answer.
        found = HighsModel(lp, scaling, keep_tiny=True).solve()
    if found.status == "unbounded":
        raise _no_decision(one, "it is unbounded: a decision that earns more than it costs has no bound")
    if found.x is None:
        return None
    # Adding zero takes the sign from -0.0.
    return np.clip(found.x, lp.column_lower, lp.column_upper) + 0.0


def _no_decision(batch: Batch, why: str) -> Exception:
    name = batch.arrivals.name(0) if len(batch) == 1 else "one of them"
    return DataError(f"The stage problem of the arrival {name!r} cannot be solved: {why}; give its decisions bounds.")
