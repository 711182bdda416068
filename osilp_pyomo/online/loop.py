"""The loop over arrivals: what each stage wants at the price, what fits, what is learned.

Linear stages and smooth stages with one decision run in a compiled kernel; every other stage and policy on the generic
path, one arrival after the other. Both give the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo._jit import HAS_NUMBA
from osilp_pyomo._options import MOST
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.online.checked_policy import CheckedPolicy, is_built_in
from osilp_pyomo.online.clock.clock import Clock
from osilp_pyomo.online.experience.memory import Lesson, Memory
from osilp_pyomo.online.experience.policy import ExperienceReplay
from osilp_pyomo.online.forecast import Foretold
from osilp_pyomo.online.history import History, keys_of
from osilp_pyomo.online.kernels import fitting
from osilp_pyomo.online.kernels import linear as kernels
from osilp_pyomo.online.kernels.practice import run_practising
from osilp_pyomo.online.kernels.single import run_single
from osilp_pyomo.online.live import Live, Rules, too_large
from osilp_pyomo.online.needs import (
    count_offer,
    missing_now,
    offer_of,
    press,
    room_of_needs,
    share_needed,
    surely_coming,
)
from osilp_pyomo.online.policies import FirstOrder, MirrorDescent, Policy, Potential, Seen, Setting, view_of
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.resolve import Resolve
from osilp_pyomo.online.sampling.foresight import Foresight
from osilp_pyomo.online.sampling.prices import SamplePrices
from osilp_pyomo.online.stages.batch import GUARDED, OTHER, POINTWISE, PROJECTED, VIEWS, Batch, only_adds
from osilp_pyomo.online.stages.linear import BoxStage, Densities, Room
from osilp_pyomo.online.stages.newton import NewtonStage
from osilp_pyomo.online.stages.portions import Portion, Portions

_NO_NEIGHBOURS = np.zeros((2, 0), dtype=np.int64)
# What a policy without caution caps.
_NO_CAPS = np.empty(0)


@dataclass(frozen=True, eq=False)
class LoopOutcome:
    """Decisions for a batch: (B, n) wanted and decided, reasons (B,) as numbers, and rewards (B,).

    Where the loop does not know the rewards of all decisions, there are fewer; the controller then computes them.
    ``point_use`` (batches or 0, M) is what the decisions of a batch use at points, where a guard counts otherwise.
    """

    wanted: FloatArray
    decided: FloatArray
    reasons: FloatArray
    rewards: FloatArray = field(default_factory=lambda: np.empty(0))
    point_use: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def concat(cls, pieces: Sequence[LoopOutcome]) -> LoopOutcome:
        """Outcomes of batches that follow each other, as that of one batch."""
        if len(pieces) == 1:
            return pieces[0]
        return cls(*(np.concatenate([getattr(piece, each.name) for piece in pieces]) for each in fields(cls)))


def _whole(ahead: float) -> int:
    """How many arrivals are ahead, as a number that can be counted."""
    return int(min(round(ahead), MOST // 2))


# What is done with a portion of arrivals, and what was really done with them.
Act = Callable[[Batch, FloatArray | None], LoopOutcome]


class StageLoop:
    """Decides and learns arrivals; what changes is in a :class:`Live`, so that the loop can also try things out."""

    def __init__(
        self,
        program: ProgramData,
        policy: Policy,
        guard: str,
        null: FloatArray,
        seed: int,
        foretold: Foretold | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.program = program
        self.clock = clock
        self.policy = policy if is_built_in(policy) else CheckedPolicy(policy)
        self.guard = guard
        self.seed = seed
        self.null = null
        self._evaluator = program.evaluator
        self._solver = program.solver
        # Rows with lower limits are guarded by what can still come, stages that must serve by anything that fits.
        self._needing = program.needs(guard) if guard != "none" else np.zeros(0, dtype=bool)
        self._needs = bool(self._needing.any())
        self._must_serve = guard != "none" and program.must_serve is not None and not null.any()
        self.kernel = self._kernel_runs()
        # Nothing decided is a decision that every arrival allows.
        free = self._evaluator.bounded_box and not program.template.own_rows and not null.any()
        self._null_is_allowed = self._must_serve or free
        self._integer = program.template.integer.astype(float)
        caution = policy.caution if isinstance(policy, FirstOrder | Resolve) else None
        self._caution = None if self._integer.any() else caution
        bounded = self._evaluator.bounded_box and isinstance(self._solver, BoxStage)
        self.cannot_fail = self.kernel and bounded and not isinstance(policy, Resolve)
        # One bounded decision: number by number where compiled.
        self._runs_single = HAS_NUMBA and self.cannot_fail and len(program.template.decisions) == 1
        practises = isinstance(policy, ExperienceReplay)
        if practises and not isinstance(self._solver, BoxStage):
            raise OptionError(
                "ExperienceReplay: it needs linear stages whose decisions have bounds only, or are one of several "
                f"options, and these are solved by '{program.stage_solver}'; use Resolve()."
            )
        # Rows whose columns are steps are guarded piece by piece.
        self._on_pieces = guard == POINTWISE and bool(program.index_guard.stepped)
        self._guard_view = GUARDED if self._on_pieces else guard
        self._neighbours = program.index_guard.beside if guard == POINTWISE else _NO_NEIGHBOURS
        whole = self.kernel and len(program.template.decisions) == 1 and bool(program.template.integer.all())
        self._portions = Portions(program.index_guard, self._evaluator, program.budget_sizes[POINTWISE], whole)
        plain = not self._evaluator.has_fixed and not self._on_pieces
        self.steps_single = self._runs_single and plain and not practises and clock is None
        # What a single step writes, so that nothing need be allocated.
        self._written = np.empty((1, 1)), np.empty((1, 1)), np.empty(1)
        self._no_points = np.empty((0, 1, self._evaluator.resources[POINTWISE].size))
        # What the policy prices, and the other view of the same rows.
        self._view = view_of(policy)
        self.foresight = None if foretold is None else Foresight(program, self._view, guard, foretold)
        self._samples: SamplePrices | None = None
        if isinstance(policy, Resolve):
            self._samples = SamplePrices(program, policy, guard, seed, self.foresight)
        self._other = GUARDED if self._on_pieces else OTHER[self._view]
        self._guarded_view = kernels.NO_GUARD
        if guard != "none":
            self._guarded_view = kernels.OWN_GUARD if self._guard_view == self._view else kernels.OTHER_GUARD

    def fork(self) -> StageLoop:
        """The same loop for another controller, which may run beside this one."""
        other = copy(self)
        other._written = np.empty((1, 1)), np.empty((1, 1)), np.empty(1)
        return other

    def begin(self, horizon: int) -> Live:
        """A fresh state for so many arrivals."""
        total = {view: resources.total.copy() for view, resources in self._evaluator.resources.items()}
        if self.guard == POINTWISE:
            total[POINTWISE] = self.program.index_guard.lowered()
        left = {view: each.copy() for view, each in total.items()}
        history = History(self._view, self.policy.memory) if isinstance(self.policy, Resolve) else None
        offers = np.zeros((2, len(total[self.guard]) if self._needs else 0))
        pieces = self.program.index_guard.pieces() if self._on_pieces else ()
        memory = None
        if isinstance(self.policy, ExperienceReplay):
            memory = Memory(self._evaluator, self.policy.memory, self.seed)
        live = Live(0, horizon, {}, total, left, 0.0, history, None, offers=offers, pieces=pieces, memory=memory)
        if self.clock is not None:
            live.clock = self.clock.begin()
        live.state = self.policy.start(self.setting(live))
        if self.foresight is not None:
            live.foresight = self.foresight.begin()
            self.reprice(live)
        return live

    def refuse_null(self, batch: Batch) -> None:
        """Refuse arrivals that do not allow the null action which a guard falls back to."""
        if self._null_is_allowed:
            return
        wrong = np.any((self.null < batch.lower) | (self.null > batch.upper), axis=1)
        if self.program.template.own_rows:
            values = self.program.template.values(batch.arrivals, np.tile(self.null, (len(batch), 1)))
            excess = np.einsum("brk,bk->br", batch.own, values) + batch.own_fixed
            equality = [row.equality for row in self.program.template.own_rows]
            wrong |= np.any(np.where(equality, np.abs(excess), excess) > 1e-9, axis=1)
        if self.null.any():
            idle = self._evaluator.used(batch, np.tile(self.null, (len(batch), 1)), self.guard)
            if len(batch.fixed[self.guard]):
                idle = idle - batch.fixed[self.guard]
            uses = np.any(idle > 1e-9 * self.program.budget_sizes[self.guard], axis=1)
            if uses.any():
                raise DataError(
                    f"guard={self.guard!r}: the null action uses something of what it is to guard for the arrival "
                    f"{batch.arrivals.name(int(np.argmax(uses)))!r}; name one that uses nothing by null=..., or use "
                    "guard='none'."
                )
        if wrong.any():
            raise DataError(
                f"guard={self.guard!r}: the arrival {batch.arrivals.name(int(np.argmax(wrong)))!r} does not allow the "
                "null action that a guard falls back to where nothing fits; name another by null=..., or use "
                "guard='none'."
            )

    def setting(self, live: Live) -> Setting:
        """What the policy knows beforehand."""
        return self._rules(live).setting

    def _rules(self, live: Live) -> Rules:
        if live.rules is None:
            evaluator, view = self._evaluator, self._view
            labels = tuple(evaluator.labels()) if view == PROJECTED else ()
            setting = Setting(live.horizon, live.total[view] / live.horizon, evaluator.resources[view].floor, labels)
            settings = np.zeros(kernels.SETTINGS)
            if isinstance(self.policy, FirstOrder):
                settings = self.policy.settings(setting)
            sizes = self.program.budget_sizes
            margins = {view: fitting.make_margins(live.total[view], sizes[view], live.horizon) for view in VIEWS}
            live.rules = Rules(setting, settings, margins)
        return live.rules

    def _kernel_runs(self) -> bool:
        """Whether the compiled loop can take the stages: linear, and no decision that needs an LP to fit."""
        smooth = isinstance(self._solver, NewtonStage) and self._solver.has_loop
        if not (isinstance(self._solver, BoxStage) or smooth) or not isinstance(self.policy, FirstOrder | Resolve):
            return False
        if isinstance(self.policy, MirrorDescent) and isinstance(self.policy.potential, Potential):
            return False
        if self.guard == "none":
            return True
        if self._needs or self._must_serve:
            return False
        if self._evaluator.has_fixed:
            # What is used whatever is decided cannot be scaled down with the decision.
            return False
        template = self.program.template
        if self.null.any():
            return False
        return bool(template.integer.all()) if template.options else len(template.decisions) == 1

    def held(self, live: Live, batch: Batch) -> LoopOutcome:
        """Decisions that all use the price of now; guards still see what earlier ones of the batch took."""
        live = live.copy()
        self._seen_together(live, batch)
        self.reprice(live, batch)
        usage, reach = batch.use[self._view], self._evaluator.reach(batch)
        live.state = self.policy.meet(live.state, self.setting(live), batch.rewards[0], usage[0], reach[0])
        return self._in_portions(live, batch, None, lambda part, _: self._without_learning(live, part))

    def together(self, live: Live, batch: Batch) -> LoopOutcome:
        """Decide a batch by one problem, of it and of what comes after it; ``live`` is changed, unless it raises."""
        assert self._samples is not None
        assert live.history is not None
        self._seen_together(live, batch)
        if self.foresight is not None:
            self.foresight.meet(live, batch, live.state["dual"])
        asked = self._samples.together(live, self._rules(live), batch)
        ones = [slice(b, b + 1) for b in range(len(batch))]

        def act(part: Batch, some: FloatArray | None) -> LoopOutcome:
            assert some is not None
            at = ones[: len(part)]
            return LoopOutcome.concat([self._generic(live, part.part(b), None, asked=some[b]) for b in at])

        outcome = self._in_portions(live, batch, asked, act)
        live.history.add(batch, keys_of(batch))
        return outcome

    def _in_portions(self, live: Live, batch: Batch, forced: FloatArray | None, act: Act) -> LoopOutcome:
        """Do something with a batch; where rows are kept piece by piece, with one portion after the other."""
        if not self._on_pieces:
            return act(batch, forced)
        outcomes, start = [], 0
        while start < len(batch):
            portion = self._portions.first(batch.part(slice(start, None)), live.pieces, forced is not None)
            at = slice(start, start + len(portion.batch))
            self._enter(live, portion)
            outcomes.append(act(portion.batch, None if forced is None else forced[at]))
            self._leave(live, portion, outcomes[-1].decided)
            start = at.stop
        return LoopOutcome.concat(outcomes)

    def _enter(self, live: Live, portion: Portion) -> None:
        """Look at the points that decide about a portion as at any other resources."""
        rules = self._rules(live)
        given = live.total[POINTWISE], live.left[POINTWISE], rules.margins[POINTWISE]
        total, live.left[GUARDED], margins = self._portions.budgets(portion, *given, live.horizon)
        live.total = {**live.total, GUARDED: total}
        live.rules = replace(rules, margins={**rules.margins, GUARDED: margins})

    def _leave(self, live: Live, portion: Portion, taken: FloatArray) -> None:
        """Take over what a portion leaves at its points."""
        at_points, live.pieces = self._portions.after(portion, live.left.pop(GUARDED), taken)
        if self._view != POINTWISE:
            # Paid for one arrival after the other, whatever the portions are that they come in.
            live.left[POINTWISE][self.program.index_guard.kept_at_points] = at_points
        rules = self._rules(live)
        live.total = {view: live.total[view] for view in VIEWS}
        live.rules = replace(rules, margins={view: rules.margins[view] for view in VIEWS})

    def _without_learning(self, live: Live, batch: Batch) -> LoopOutcome:
        if self.kernel:
            return self._by_kernel(live, batch, np.zeros(kernels.SETTINGS), None, self._known(live, batch))
        pieces = [self._generic(live, batch.part(slice(b, b + 1)), None, learn=False) for b in range(len(batch))]
        return LoopOutcome.concat(pieces)

    def run(self, live: Live, batch: Batch, forced: FloatArray | None = None, remember: bool = True) -> LoopOutcome:
        """Decide and learn a batch; ``live`` is changed, unless it raises."""

        def act(part: Batch, some: FloatArray | None) -> LoopOutcome:
            return self._run(live, part, some, remember)

        if self.clock is None:
            return self._in_portions(live, batch, forced, act)
        given = self._times_of(batch)
        times, outcomes, start = self.clock.effective(live.clock, given), [], 0
        while start < len(batch):
            self._tick(live, float(times[start]))
            at = slice(start, self.clock.stretch(live.clock, times, start, live.t))
            # A single arrival need not be cut out.
            part = batch if at == slice(0, len(batch)) else batch.part(at)
            outcomes.append(self._in_portions(live, part, None if forced is None else forced[at], act))
            live.clock = self.clock.counted(live.clock, given[at])
            start = at.stop
        return LoopOutcome.concat(outcomes)

    # -- continuous time -------------------------------------------------------------------------------------

    @staticmethod
    def _times_of(batch: Batch) -> FloatArray:
        """When arrivals come; nan where that is not known."""
        times = batch.arrivals.times
        return np.full(len(batch), np.nan) if times is None else times

    def _tick(self, live: Live, now: float) -> None:
        """Estimate anew how many arrivals are ahead, and find the price anew, where that is due before an arrival."""
        clock, policy = self.clock, self.policy
        assert clock is not None
        if not clock.is_due(live.clock, live.t, now):
            return
        live.clock, ahead = clock.estimated(live.clock, now, live.t)
        live.horizon, live.rules = live.t + 1 + _whole(ahead), None
        if isinstance(policy, Resolve) and clock.price_is_due(live.clock, live.t, ahead, policy.growth):
            self.reprice(live)
            live.clock = clock.priced(live.clock, live.t, ahead)

    def _seen_together(self, live: Live, batch: Batch) -> None:
        """Set the clock to the last arrival of a batch that is decided when all of it is there."""
        if self.clock is None:
            return
        times = self._times_of(batch)
        now = float(self.clock.effective(live.clock, times)[-1])
        live.clock = self.clock.counted(live.clock, times)
        live.clock, ahead = self.clock.estimated(live.clock, now, live.t + len(batch) - 1)
        live.horizon, live.rules = live.t + len(batch) + _whole(ahead), None
        live.clock = self.clock.priced(live.clock, live.t + len(batch), ahead)

    def _known(self, live: Live, batch: Batch) -> FloatArray:
        """What a sample does with arrivals like these, where they tie; (0, n) where there is nothing known."""
        if self._samples is None:
            return np.empty((0, len(self.program.template.decisions)))
        return self._samples.fractions(live, batch)

    def _run(self, live: Live, batch: Batch, forced: FloatArray | None, remember: bool) -> LoopOutcome:
        if isinstance(self.policy, Resolve):
            return self._by_resolving(live, batch, forced, remember)
        if isinstance(self.policy, ExperienceReplay):
            return self._by_practising(live, batch, forced, remember)
        return self._segment(live, batch, forced)

    def _segment(self, live: Live, batch: Batch, forced: FloatArray | None) -> LoopOutcome:
        if self.kernel:
            return self._by_kernel(live, batch, self._rules(live).settings, forced, self._known(live, batch))
        cuts = [slice(b, b + 1) for b in range(len(batch))]
        return LoopOutcome.concat(
            [self._generic(live, batch.part(cut), None if forced is None else forced[cut]) for cut in cuts]
        )

    def _by_resolving(self, live: Live, batch: Batch, forced: FloatArray | None, remember: bool) -> LoopOutcome:
        policy, history = self.policy, live.history
        assert isinstance(policy, Resolve)
        assert history is not None
        assert self._samples is not None
        keys = keys_of(batch)
        pieces, start = [], 0
        while start < len(batch):
            stop = len(batch)
            if self.clock is None:
                if policy.due(live.t, live.horizon):
                    self.reprice(live)
                stop = min(stop, start + policy.next_due(live.t, live.horizon) - live.t)
            at = slice(start, stop)
            part = batch.part(at)
            if self.foresight is not None:
                self.foresight.meet(live, part, live.state["dual"])
            pieces.append(self._segment(live, self._samples.broken(live, part), None if forced is None else forced[at]))
            if remember:
                history.add(part, keys[at])
            start = stop
        return LoopOutcome.concat(pieces)

    def reprice(self, live: Live, among: Batch | None = None) -> None:
        """Find the price anew, of a policy that has times for that; arrivals ``among`` are seen but not decided."""
        if self._samples is not None and isinstance(self.policy, Resolve):
            until = self.policy.next_due(live.t, live.horizon)
            if self.clock is not None:
                left = (live.horizon - live.t) / self.policy.growth
                until = max(live.t + 1, min(int(live.t * self.policy.growth) + 1, live.horizon - int(left)))
            until = min(until, live.horizon)
            self._samples.find(live, self._rules(live), until, among)

    def _by_practising(self, live: Live, batch: Batch, forced: FloatArray | None, keep: bool) -> LoopOutcome:
        """Decide arrivals and practise after each; what is not to be kept is forgotten again."""
        memory, policy, outcomes = live.memory, self.policy, []
        assert memory is not None
        assert isinstance(policy, ExperienceReplay)
        mark = None if keep else memory.mark()
        try:
            for at in memory.portions(batch.use[POINTWISE]):
                live.state = memory.begun(live.state)
                lesson = memory.lesson(at.stop - at.start, policy, self._rules(live).setting.budget)
                outcomes.append(self._practised(live, lesson, batch.part(at), None if forced is None else forced[at]))
        finally:
            if mark is not None:
                memory.back_to(mark)
        return LoopOutcome.concat(outcomes)

    def _practised(self, live: Live, lesson: Lesson, batch: Batch, forced: FloatArray | None) -> LoopOutcome:
        if self.kernel:
            return self._by_kernel(live, batch, self._rules(live).settings, forced, np.empty((0, 0)), lesson)
        outcomes = []
        for b in range(len(batch)):
            one = batch.part(slice(b, b + 1))
            outcomes.append(self._generic(live, one, None if forced is None else forced[b : b + 1]))
            lesson.practise(b, one, live.state, live.horizon - live.t, live.left[POINTWISE])
        return LoopOutcome.concat(outcomes)

    def _caps(self, live: Live, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """What share of what is left of a resource arrivals may take, by a cautious policy; (0,) without a cap."""
        caution = self._caution
        if caution is None:
            return _NO_CAPS
        left = np.maximum(live.horizon - live.t - np.arange(len(lower)), 1)
        # Scaling down must stay within the bounds.
        scalable = np.all((lower <= 0) & (upper >= 0), axis=1)
        return np.where(scalable, np.minimum(1.0, caution / np.sqrt(left)), 1.0)

    def step(self, live: Live, batch: Batch, place: int = 0) -> tuple[float, float, int, float]:
        """One arrival, where ``steps_single``: what is taken and wanted, why, and what it earns; changes ``live``."""
        rules, state, view, other = self._rules(live), live.state, self._view, self._other
        setting, (wanted, taken, reasons) = rules.setting, self._written
        rewards, lower, upper = batch.rewards, batch.lower, batch.upper
        usage, others = batch.use[view], batch.use.get(other)
        if len(rewards) > 1:
            at = slice(place, place + 1)
            rewards, usage, lower, upper = rewards[at], usage[at], lower[at], upper[at]
            others = None if others is None else others[at]
        stopped = run_single(
            rules.settings, live.t, float(live.horizon), setting.budget, setting.floor, rewards, usage,
            lower, upper, bool(self._integer[0]), self._caps(live, lower, upper), self._guarded_view,
            self._beside(live),
            # Of projected arrivals the use at points is not known, nor asked for by a guard.
            self._no_points if others is None else others, rules.margins[view], rules.margins[other], live.left[view],
            live.left[other], state["dual"], state["learner"], state["centre"], state["average"], state["numbers"],
            wanted, taken, reasons,
        )  # fmt: skip
        live.t += 1
        # Adding zero takes the sign from -0.0.
        x, asked = taken.item() + 0.0, wanted.item() + 0.0
        reward = x * rewards.item() + batch.earned.item(place)
        reward = reward if self.program.template.maximize else -reward
        live.earned += reward
        if stopped >= 0 or not abs(live.earned) < kernels.LARGEST:
            raise too_large(batch.arrivals.name(place))
        return x, asked, int(reasons.item()), reward

    def _beside(self, live: Live) -> IntArray:
        """Neighbours (2, n) of the points of a guard that keeps the index between them; none while all are kept.

        What is decided under a guard keeps points that are kept.
        """
        count = self._neighbours.shape[1]
        if count and not live.kept:
            left, slack = live.left[self._guard_view], self._rules(live).margins[self._guard_view][fitting.SLACK]
            live.kept = not np.any(left[:count] < -fitting.OVERRUN * slack[:count])
        return _NO_NEIGHBOURS if live.kept else self._neighbours

    def _by_kernel(
        self,
        live: Live,
        batch: Batch,
        settings: FloatArray,
        forced: FloatArray | None,
        fractions: FloatArray,
        lesson: Lesson | None = None,
    ) -> LoopOutcome:
        view, other, rules = self._view, self._other, self._rules(live)
        setting, usage, fixed = rules.setting, batch.use[view], batch.fixed[view]
        count, many = len(self.program.template.decisions), len(batch)
        others: FloatArray = np.empty((0, count, len(live.left[other])))
        # A loop that knows the functions at each decision pays for both kinds of resources.
        pays_both = isinstance(self._solver, NewtonStage) and other in batch.use
        if pays_both or self._guarded_view == kernels.OTHER_GUARD:
            others = batch.use[other]
        state = live.state
        dual = state["dual"]
        if "numbers" in state:
            learner, centre, average, numbers = state["learner"], state["centre"], state["average"], state["numbers"]
        else:
            learner, centre, average, numbers = dual, dual, dual, np.zeros(kernels.NUMBERS)
        wanted, taken, reasons = np.empty((many, count)), np.empty((many, count)), np.empty(many)
        known = (settings, live.t, float(live.horizon), setting.budget, setting.floor)
        tracked = (
            np.empty((0, count)) if forced is None else np.ascontiguousarray(forced), self._guarded_view,
            self._beside(live), np.ascontiguousarray(others), rules.margins[view], rules.margins[other],
            live.left[view], live.left[other], dual, learner, centre, average, numbers, wanted, taken, reasons,
        )  # fmt: skip
        if isinstance(self._solver, NewtonStage):
            gained = np.empty(many)
            stopped = self._solver.runner(many)(
                *known, self.program.theta(batch), batch.rewards, np.ascontiguousarray(usage), fixed, batch.lower,
                batch.upper, *tracked[:2], *tracked[3:], gained,
            )  # fmt: skip
            if stopped >= 0:
                # Arrays cope with ends where a derivative is infinite, and say what is wrong; then the loop goes on.
                return self._finish_with_arrays(live, batch, settings, forced, (wanted, taken, reasons), stopped)
            live.t += many
            self._pay_others(live, batch, taken, bool(len(others)))
            earned = gained + batch.earned if self.program.template.maximize else -(gained + batch.earned)
            return LoopOutcome(wanted + 0.0, taken + 0.0, reasons, earned)
        single, caps = (
            self._runs_single and forced is None and not len(fixed),
            self._caps(live, batch.lower, batch.upper),
        )
        if single and lesson is None:
            stopped = run_single(
                *known, batch.rewards, np.ascontiguousarray(usage), batch.lower, batch.upper, bool(self._integer[0]),
                caps, *tracked[1:],
            )  # fmt: skip
        else:
            run = kernels.run if lesson is None else partial(run_practising, *lesson, single)
            stopped = run(
                *known, batch.rewards, np.ascontiguousarray(usage), fixed, batch.lower, batch.upper, self._integer,
                self.program.template.options, fractions, caps, *tracked,
            )  # fmt: skip
        if stopped >= 0 and single:
            raise too_large(batch.arrivals.name(stopped))
        if stopped >= 0:
            raise DataError(
                f"The stage problem of the arrival {batch.arrivals.name(stopped)!r} is unbounded: a decision that "
                "earns more than it costs has no bound; give it one."
            )
        live.t += many
        self._pay_others(live, batch, taken, bool(len(others)))
        # Adding zero takes the sign from -0.0.
        return LoopOutcome(wanted + 0.0, taken + 0.0, reasons)

    def _pay_others(self, live: Live, batch: Batch, taken: FloatArray, looked_at: bool) -> None:
        """Pay for what the kernel did not look at, all arrivals together."""
        for view in live.left:
            if view == self._view:
                continue
            other, unpaid = live.left[view], batch.fixed[view]
            if not (looked_at and view == self._other) and view in batch.use:
                values, usage = self.program.template.values(batch.arrivals, taken), batch.use[view]
                if values.size > 1:
                    other -= values.ravel() @ usage.reshape(values.size, -1)
                elif values[0, 0] != 0.0:
                    other -= values[0, 0] * usage[0, 0]
            if len(unpaid):
                other -= unpaid.sum(axis=0)

    def _finish_with_arrays(
        self,
        live: Live,
        batch: Batch,
        settings: FloatArray,
        forced: FloatArray | None,
        done: tuple[FloatArray, FloatArray, FloatArray],
        stopped: int,
    ) -> LoopOutcome:
        """Go on behind arrivals of a batch that the loop has done with one that it cannot solve."""
        before, one, rest = slice(0, stopped), slice(stopped, stopped + 1), slice(stopped + 1, len(batch))
        live.t += stopped
        pieces = [LoopOutcome(done[0][before] + 0.0, done[1][before] + 0.0, done[2][before])] if stopped else []
        if stopped:
            self._pay_others(live, batch.part(before), done[1][before], True)
        pieces.append(self._generic(live, batch.part(one), None if forced is None else forced[one]))
        if rest.start < rest.stop:
            after = None if forced is None else forced[rest]
            pieces.append(self._by_kernel(live, batch.part(rest), settings, after, np.empty((0, 1))))
        return LoopOutcome.concat(pieces)

    def _generic(
        self,
        live: Live,
        one: Batch,
        forced: FloatArray | None,
        learn: bool = True,
        asked: FloatArray | None = None,
    ) -> LoopOutcome:
        """One arrival, whatever its stage problem and policy are; ``asked`` is a decision that was found for it."""
        policy, setting, evaluator = self.policy, self.setting(live), self._evaluator
        view, usage, reach = self._view, one.use[self._view], self._evaluator.reach(one)[0]
        state = policy.meet(live.state, setting, one.rewards[0], usage[0], reach)
        dual = policy.price(state, setting)
        wanted, weights, densities = self._respond(one, dual)
        reason = kernels.PRICED
        if asked is not None:
            wanted = asked if np.all(np.isfinite(asked)) else wanted
        elif isinstance(self._solver, BoxStage):
            size = np.abs(one.rewards[0]) + np.abs(usage[0]) @ np.abs(dual)
            tied = np.abs(weights[0]) <= kernels.TIE_SHARE * size
            if tied.any():
                reason = kernels.TIE
                fractions = self._known(live, one)
                if len(fractions):
                    share = one.lower + fractions * (one.upper - one.lower)
                    wanted = np.where(tied & np.isfinite(fractions), share, wanted)
            caps = self._caps(live, one.lower, one.upper)
            if len(caps) and caps[0] < 1.0:
                used, margins = evaluator.used(one, wanted, view)[0], self._rules(live).margins[view]
                wanted = wanted * kernels.capped(live.left[view], margins, float(caps[0]), used)
        taken = wanted
        coming = self._coming(live, one) if self._needs else None
        if forced is not None:
            taken = forced
        elif self.guard != "none":
            asked, left = wanted, live.left[self._guard_view]
            if coming is not None:
                points = live.left[self.guard]
                asked, weights = self._helping(one, weights, densities, wanted, points, coming)
                harmless = only_adds(one, self.guard)[0] if one.harmless is None else one.harmless[0]
                points = room_of_needs(points, coming, self._needing, harmless)
                left = self._as_guarded(points, left)
            taken, reason = self._guarded(live, one, weights, densities, asked, reason, left)
            if reason in (kernels.PRICED, kernels.TIE) and not np.array_equal(taken, wanted):
                reason = kernels.GUARDED
        used, paid = evaluator.used(one, wanted, view)[0], evaluator.used(one, taken, view)[0]
        if learn:
            seen = Seen(
                live.t, used, paid, live.left[view].copy(), live.horizon - live.t, one.rewards[0], usage[0],
                lambda price: evaluator.used(one, self._respond(one, price)[0], view)[0],
            )  # fmt: skip
            state = policy.learn(state, setting, seen)
        live.state = state
        live.left[view] = live.left[view] - paid
        for other in live.left:
            if other != view and other in one.use:
                live.left[other] = live.left[other] - evaluator.used(one, taken, other)[0]
        live.t, live.kept = live.t + 1, False
        # Adding zero takes the sign from -0.0.
        return LoopOutcome(wanted + 0.0, taken + 0.0, np.array([float(reason)]))

    def _respond(self, one: Batch, dual: FloatArray) -> tuple[FloatArray, FloatArray, Densities]:
        """The best decision at a dual, the weights of the functions and the price on points that lead to it."""
        weights = one.rewards - one.use[self._view] @ dual
        densities = self.program.densities(dual, self._view)
        return self._solver.best(one, weights, densities), weights, densities

    def _as_guarded(self, points: FloatArray, rest: FloatArray) -> FloatArray:
        """Numbers of resources at points, as far as a guard looks at them, and beside them others for its pieces."""
        if not self._on_pieces:
            return points
        kept = points[self.program.index_guard.kept_at_points]
        return np.concatenate([kept, rest[len(kept) :]])

    def _coming(self, live: Live, one: Batch) -> FloatArray:
        """What arrivals ahead will bring to rows that need something; the offer of this one is counted."""
        live.offers = count_offer(live.offers, offer_of(self.program.template, one, self.guard))
        return surely_coming(live.offers, live.t + 1, max(live.horizon - live.t - 1, 0))

    def _helping(
        self,
        one: Batch,
        weights: FloatArray,
        densities: Densities,
        wanted: FloatArray,
        left: FloatArray,
        coming: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The decision that adds what will not come, or as much of it as it can, and the weights that lead to it."""
        offer = offer_of(self.program.template, one, self.guard)
        missing = missing_now(left, coming, offer, self.program.budget_sizes[self.guard])
        added = -self._evaluator.used(one, wanted, self.guard)[0]
        if np.all(added >= missing * (1 - 1e-9)):
            return wanted, weights
        pressed = press(weights, one.use[self.guard][0], missing)
        most = self._solver.best(one, pressed, densities)
        if self.program.template.integer.any():
            return most, pressed
        share = share_needed(missing, added, -self._evaluator.used(one, most, self.guard)[0])
        return wanted + share * (most - wanted), pressed

    def _guarded(
        self,
        live: Live,
        one: Batch,
        weights: FloatArray,
        densities: Densities,
        wanted: FloatArray,
        reason: int,
        left: FloatArray,
    ) -> tuple[FloatArray, int]:
        evaluator, view = self._evaluator, self._guard_view
        fixed = one.fixed[view]
        margins = self._rules(live).margins[view].copy()
        margins[fitting.RESERVE] *= fitting.share_ahead(float(live.horizon), live.t)
        beside = self._beside(live)
        left = fitting.left_beside(left, margins[fitting.SLACK], beside) if beside.size else left
        room = Room(
            one.use[view][0],
            fixed[0] if len(fixed) else np.zeros(len(left)),
            left,
            margins,
            lambda x: evaluator.used(one, x[None], view)[0],
        )
        if self._must_serve:
            return self._served(room, live, one, weights, wanted, reason)
        if room.fits(wanted[0]):
            return wanted, reason
        x = self._solver.fit(one, weights[0], densities, wanted[0], room, self.null)
        return x[None], kernels.NULL if np.array_equal(x, self.null) else kernels.GUARDED

    def _served(
        self, room: Room, live: Live, one: Batch, weights: FloatArray, wanted: FloatArray, reason: int
    ) -> tuple[FloatArray, int]:
        """A decision for an arrival that must be served: one that keeps pace, else the one that is least ahead of it.

        A budget that is spent on those who pay best is gone when those come who have no other choice. So it is given
        out little faster than arrivals come, as long as there is another way: nine tenths of what the arrivals ahead
        take on average are kept for them, and a little to the very end for those who have no other choice.
        """
        total = np.maximum(live.total[self._guard_view], 0.0)
        sizes = np.where(total > 0, total, self._as_guarded(self.program.budget_sizes[self.guard], np.ones(len(total))))
        last = np.minimum(fitting.KEPT_USES * np.abs(room.usage).max(axis=0), fitting.MOST_KEPT * total)
        paced = room.margins.copy()
        paced[fitting.RESERVE] = fitting.PACED * fitting.share_ahead(float(live.horizon), live.t) * total + last
        ahead_of_pace = replace(room, margins=paced)
        if ahead_of_pace.fits(wanted[0]):
            return wanted, reason
        nothing_kept = room.margins.copy()
        nothing_kept[fitting.RESERVE] = 0.0
        whole = replace(room, margins=nothing_kept)
        x = self._solver.serve(one, weights[0], ahead_of_pace, whole, sizes)
        return x[None], kernels.GUARDED if whole.fits(x) else kernels.OVERRUN
