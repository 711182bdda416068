"""The controller: meets arrivals one by one, decides, learns, and can be stopped and resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo import kernels
from osilp_pyomo.arrivals import whole_number
from osilp_pyomo.batches import POINTS, PROJECTED, Batch
from osilp_pyomo.compiled import CompiledStages
from osilp_pyomo.domains import FloatArray, on_points
from osilp_pyomo.errors import DataError, HorizonError, OptionError
from osilp_pyomo.history import History, keys_of
from osilp_pyomo.policies import (
    AccelerateThenRefine,
    FirstOrder,
    MirrorDescent,
    Policy,
    Potential,
    Seen,
    Setting,
    State,
    described,
)
from osilp_pyomo.resolving import Resolve
from osilp_pyomo.saving import write_state
from osilp_pyomo.smooth_stages import NewtonStage
from osilp_pyomo.stage_problems import BoxStage, Densities, Room

REASONS = ("priced", "tie", "guard", "null")
GUARDS = ("none", PROJECTED, "pointwise")
BEYOND = ("error", "continue")
_SAVED = ("total", "point_total", "remaining", "point_remaining")


@dataclass(frozen=True)
class Decision:
    """What was decided for one arrival.

    Attributes
    ----------
    x : float or dict
        A number for a single scalar decision, else keyed by variable, or (variable, *rest of its index).
    wanted : float or dict
        What the price asked for, before any guard.
    reason : str
        "priced", "tie" (earning and cost balance), "guard" (cut down to what remains), "null" (nothing fitted).
    reward : float
        What the decision earns (or costs, where the model minimizes).
    t : int
        Number of the arrival, from 1.
    """

    x: Any
    wanted: Any
    reason: str
    reward: float
    t: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """Decisions for a batch: (B, n) wanted and taken, reasons (B,) as numbers, and rewards (B,) where known."""

    wanted: FloatArray
    taken: FloatArray
    reasons: FloatArray
    rewards: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Rules:
    """What follows from budget and horizon, until one of them changes."""

    setting: Setting
    settings: FloatArray
    slack: FloatArray
    point_slack: FloatArray


@dataclass
class Live:
    """What changes while arrivals come."""

    t: int
    horizon: int
    state: State
    total: FloatArray
    point_total: FloatArray
    remaining: FloatArray
    point_remaining: FloatArray
    earned: float
    history: History | None
    fractions: FloatArray | None
    rules: Rules | None = None

    def copy(self) -> Live:
        """A copy whose arrays can be changed; the history is shared, and must not be."""
        state = {name: np.array(value) for name, value in self.state.items()}
        return Live(
            self.t, self.horizon, state, self.total, self.point_total, self.remaining.copy(),
            self.point_remaining.copy(), self.earned, self.history, self.fractions, self.rules,
        )  # fmt: skip


class Controller:
    """Decides arrivals of an :class:`OnlineProgram` by a policy.

    Made by ``program.controller(policy, guard=...)``. ``decide`` is pure, ``update`` learns, ``step`` does both.

    Attributes
    ----------
    t : int
        Arrivals met so far; saved, so that a caller knows which one to send again.
    """

    def __init__(
        self,
        program: CompiledStages,
        policy: Policy,
        guard: str,
        null: FloatArray,
        horizon: int,
        beyond: str,
        seed: int,
    ) -> None:
        self.program = program
        self.policy = policy
        self.guard = guard
        self.beyond = beyond
        self.seed = seed
        self._null = null
        self._evaluator = program.evaluator
        self._solver = program.solver
        evaluator = self._evaluator
        total, point_total = evaluator.total.copy(), evaluator.point_total.copy()
        history = History(policy.view == POINTS) if isinstance(policy, Resolve) else None
        self._live = Live(0, horizon, {}, total, point_total, total.copy(), point_total.copy(), 0.0, history, None)
        self._live.state = policy.start(self._setting(self._live))
        self._kernel = self._kernel_runs()
        self._integer = program.template.integer.astype(float)
        bounded = self._evaluator.bounded_box and isinstance(self._solver, BoxStage)
        self._cannot_fail = self._kernel and bounded and not isinstance(policy, Resolve)
        # One bounded decision, one dual, and a guard on the resources that are priced: number by number where compiled.
        own_guard = guard == "none" or (guard == PROJECTED) == (policy.view == PROJECTED)
        single = self._cannot_fail and len(program.template.decisions) == 1 and own_guard
        self._runs_single = kernels.COMPILED and single and not isinstance(policy, AccelerateThenRefine)

    # -- what it is ----------------------------------------------------------------------------------------

    @property
    def t(self) -> int:
        """Arrivals met so far."""
        return self._live.t

    @property
    def horizon(self) -> int:
        """Arrivals that are expected in all."""
        return self._live.horizon

    @property
    def reward(self) -> float:
        """What was earned so far (or spent, where the model minimizes)."""
        return self._live.earned

    @property
    def dual(self) -> FloatArray:
        """The price w as learned so far, one number a resource; ``Resolve`` finds it anew when an arrival comes."""
        policy, live = self.policy, self._live
        return np.array(policy.price(live.state, self._setting(live)))

    @property
    def price(self) -> Any:
        """The price as a measure on the index; keyed by row where there are several."""
        return self.program.price_of(self.dual, self.policy.view)

    @property
    def remaining(self) -> pd.Series:
        """What is left of each resource against its test function, in the row's own units and sign."""
        evaluator = self._evaluator
        values = self._live.remaining * evaluator.unit
        for group in evaluator.groups:
            values[group.projected] *= group.sign
        return pd.Series(values, index=evaluator.labels(), name="remaining")

    def __repr__(self) -> str:
        return (
            f"Controller({self.policy!r}, guard={self.guard!r}): {self.t} of {self.horizon} arrivals met, "
            f"{'reward' if self.program.template.maximize else 'cost'} {self.reward:.6g}"
        )

    # -- live use ------------------------------------------------------------------------------------------

    def step(self, row: Any = None, /, **theta: Any) -> Decision:
        """Decide an arrival, learn from it, and move on.

        Its data come as keywords (``step(value=0.8, place=0.4)``), or as a mapping or Series.
        """
        outcome, rewards = self._live_run(self._one(row, theta))
        return self._decision(outcome, float(rewards[0]), self._live.t)

    def decide(self, row: Any = None, /, **theta: Any) -> Decision:
        """What ``step`` would decide; nothing changes."""
        batch = self._one(row, theta)
        outcome = self._run(self._live.copy(), batch, remember=False)
        return self._decision(outcome, float(self._evaluator.reward(batch, outcome.taken)[0]), self._live.t + 1)

    def update(self, row: Any = None, /, x: Any = None, **theta: Any) -> None:
        """Learn an arrival, and what was really done: ``x`` as in ``Decision.x``; what ``decide`` says if not given.

        The price learns from what it asked for, the budget pays for what was done.
        """
        if x is not None and "x" in self.program.intake.by_name and row is None:
            raise DataError(
                "update: this model has data called 'x', so that x= is ambiguous; give the arrival's data as a mapping."
            )
        self._live_run(self._one(row, theta), None if x is None else self._as_decision(x)[None])

    def steps(self, data: Any, profiles: Mapping[str, Any] | None = None, hold_price: bool = False) -> pd.DataFrame:
        """Decide arrivals that come together, one after the other.

        Parameters
        ----------
        data : DataFrame
            One row an arrival.
        profiles : dict, optional
            Curves of Profiles, one array (arrivals, points) each.
        hold_price : bool
            Decide all by the price of the first, and learn afterwards.

        Returns
        -------
        DataFrame
            The decisions, and the columns ``reason`` and ``reward``, on the index of the data.
        """
        batch = self.program.batch(data, profiles)
        if not len(batch):
            return self.program.decision_frame(np.empty((0, batch.lower.shape[1])), batch.arrivals.index)
        self._refuse_beyond(len(batch))
        if self.guard == "pointwise":
            self.program.refuse_narrow(batch)
        if hold_price:
            outcome = self._held(batch)
            rewards = self._live_run(batch, outcome.taken)[1]
        else:
            outcome, rewards = self._live_run(batch)
        frame = self.program.decision_frame(outcome.taken, batch.arrivals.index)
        told = {"reason": np.array(REASONS, dtype=object)[outcome.reasons.astype(int)], "reward": rewards}
        # A decision that is itself called "reward" keeps its name.
        return frame.assign(**{name if name not in frame else f"{name}_": value for name, value in told.items()})

    def release(self, row: Any = None, /, x: Any = 1.0, **theta: Any) -> None:
        """Give back what an earlier decision ``x`` uses, as after a cancellation; its reward is taken back too."""
        batch = self._one(row, theta, count=False)
        taken = self._as_decision(x)[None]
        live = self._live
        live.remaining += self._evaluator.used(batch, taken)[0]
        live.point_remaining += self._evaluator.used(batch, taken, POINTS)[0]
        live.earned -= float(self._evaluator.reward(batch, taken)[0])

    def add_budget(self, row: Any, amount: Any) -> None:
        """Replenish a row: by a number, or for a semi-infinite row by a function of the index."""
        name = row if isinstance(row, str) else getattr(row, "name", str(row))
        groups = [group for group in self._evaluator.groups if group.name == name]
        if not groups:
            known = ", ".join(dict.fromkeys(group.name for group in self._evaluator.groups))
            raise OptionError(f"add_budget: there is no row '{name}'; the resources are {known}.")
        live, evaluator = self._live, self._evaluator
        changes = []
        for group in groups:
            if group.family is None:
                if callable(amount):
                    raise OptionError(f"add_budget: '{name}' is an ordinary row; give a number.")
                values = np.array([float(amount)])
                projected = values
            else:
                points = evaluator.points[group.family]
                values = (
                    on_points(amount, points).astype(float) if callable(amount) else np.full(len(points), float(amount))
                )
                projected = evaluator.project(values, group.family)
            if not np.all(np.isfinite(values)):
                raise OptionError(f"add_budget: the amount for '{name}' must be finite everywhere.")
            changes.append((group, group.sign * values, group.sign * projected / evaluator.unit[group.projected]))
        live.rules = None
        for group, values, projected in changes:
            for array in (live.total, live.remaining):
                array[group.projected] += projected
            for array in (live.point_total, live.point_remaining):
                array[group.points] += values

    def revise(self, horizon: int) -> None:
        """Expect another number of arrivals in all; the budget stays what it is."""
        horizon = whole_number(horizon, "revise: horizon")
        if horizon < self._live.t:
            raise OptionError(
                f"revise: horizon must be at least {self._live.t}, the arrivals met already (got {horizon})."
            )
        self._live.horizon = horizon
        self._live.rules = None

    def save(self, path: Any) -> None:
        """Write everything that ``osilp_pyomo.load_controller(path, program)`` needs to go on; atomic."""
        live = self._live
        header = {
            "program": self.program.fingerprint,
            "policy": described(self.policy),
            "guard": self.guard,
            "beyond": self.beyond,
            "seed": self.seed,
            "t": live.t,
            "horizon": live.horizon,
            "earned": live.earned,
        }
        arrays = {name: getattr(live, name) for name in _SAVED}
        arrays["null"] = self._null
        if live.fractions is not None:
            arrays["fractions"] = live.fractions
        arrays.update({f"state:{name}": value for name, value in live.state.items()})
        if live.history is not None:
            arrays.update({f"history:{name}": value for name, value in live.history.to_arrays().items()})
        write_state(path, header, arrays)

    def resume(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Take over what ``save`` wrote."""
        live = self._live
        live.t, live.horizon, live.earned = int(header["t"]), int(header["horizon"]), float(header["earned"])
        for name in _SAVED:
            setattr(live, name, np.array(arrays[name]))
        live.fractions = np.array(arrays["fractions"]) if "fractions" in arrays else None
        live.state = {name[6:]: np.array(value) for name, value in arrays.items() if name.startswith("state:")}
        live.rules = None
        kept = {name[8:]: value for name, value in arrays.items() if name.startswith("history:")}
        if kept:
            live.history = History.from_arrays(kept, self.policy.view == POINTS)

    def begin_at(self, dual: FloatArray) -> None:
        """Begin at a price that is known."""
        live = self._live
        live.state = self.policy.warm(live.state, self._setting(live), dual)

    def meet(self, batch: Batch) -> tuple[Outcome, FloatArray]:
        """Decide and learn a batch of arrivals; what :meth:`steps` and replays are made of."""
        if self.guard == "pointwise":
            self.program.refuse_narrow(batch)
        return self._live_run(batch)

    def _live_run(self, batch: Batch, forced: FloatArray | None = None) -> tuple[Outcome, FloatArray]:
        """Decide and learn a batch; where something fails, nothing has changed."""
        history = self._live.history
        mark = None if history is None else history.mark()
        # A box that is bounded always has a best corner: nothing can fail there, and nothing need be copied.
        live = self._live if self._cannot_fail else self._live.copy()
        try:
            outcome = self._run(live, batch, forced)
        except Exception:
            if history is not None and mark is not None:
                history.back_to(mark)
            raise
        rewards = self._evaluator.reward(batch, outcome.taken) if outcome.rewards is None else outcome.rewards
        live.earned += rewards.item() if len(rewards) == 1 else float(rewards.sum())
        self._live = live
        return outcome, rewards

    @property
    def point_remaining(self) -> FloatArray:
        """What is left at every grid point, and of every ordinary row; signs turned so that use counts against it."""
        return self._live.point_remaining.copy()

    # -- one arrival -----------------------------------------------------------------------------------------

    def _one(self, row: Any, theta: Mapping[str, Any], count: bool = True) -> Batch:
        arrivals = self.program.intake.row(row, theta)
        if count:
            self._refuse_beyond(1)
        batch = self._evaluator.batch(arrivals)
        if self.guard == "pointwise":
            self.program.refuse_narrow(batch)
        return batch

    def _refuse_beyond(self, count: int) -> None:
        live = self._live
        if self.beyond == "error" and live.t + count > live.horizon:
            raise HorizonError(
                f"The horizon of {live.horizon} arrivals is reached ({live.t} were met, {count} more came); use "
                "revise(horizon=...), or beyond='continue'."
            )

    def _as_decision(self, x: Any) -> FloatArray:
        labels = self.program.template.decisions
        if isinstance(x, Mapping | pd.Series):
            given = dict(x.items())
            missing = [label for label in labels if label.column not in given]
            if missing or len(given) != len(labels):
                raise DataError(
                    f"x must have exactly the entries {', '.join(repr(label.column) for label in labels)} (got "
                    f"{', '.join(map(repr, given))})."
                )
            x = [given[label.column] for label in labels]
        entries = np.asarray(x)
        if entries.dtype.kind not in "iuf":
            raise DataError(f"x must be numbers (got {x!r}).")
        values = np.atleast_1d(entries).astype(float)
        if values.shape != (len(labels),):
            raise DataError(f"x must be {len(labels)} numbers, or a mapping by variable (got shape {values.shape}).")
        if not np.all(np.isfinite(values)):
            raise DataError("x must hold finite numbers only.")
        return values

    def _decision(self, outcome: Outcome, reward: float, t: int) -> Decision:
        reason = REASONS[int(outcome.reasons[0])]
        return Decision(self._given_back(outcome.taken[0]), self._given_back(outcome.wanted[0]), reason, reward, t)

    def _given_back(self, values: FloatArray) -> Any:
        labels = self.program.template.decisions
        if len(labels) == 1 and not labels[0].key:
            return values.item()
        return {label.column: float(value) for label, value in zip(labels, values, strict=True)}

    # -- many arrivals ---------------------------------------------------------------------------------------

    def _setting(self, live: Live) -> Setting:
        return self._rules(live).setting

    def _rules(self, live: Live) -> Rules:
        if live.rules is None:
            evaluator = self._evaluator
            setting = Setting(live.horizon, live.total / live.horizon, evaluator.floor, tuple(evaluator.labels()))
            if self.policy.view == POINTS:
                setting = Setting(live.horizon, live.point_total / live.horizon, evaluator.point_floor)
            settings = np.zeros(kernels.SETTINGS)
            if isinstance(self.policy, FirstOrder):
                settings = self.policy.settings(setting)
            slacks = (kernels.BUDGET_ROUNDING * np.abs(total) for total in (live.total, live.point_total))
            live.rules = Rules(setting, settings, *slacks)
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
        template = self.program.template
        if self._null.any():
            return False
        return bool(template.integer.all()) if template.options else len(template.decisions) == 1

    def _held(self, batch: Batch) -> Outcome:
        """Decisions that all use the price of now; guards still see what earlier ones of the batch took."""
        live = self._live.copy()
        if self._kernel:
            return self._by_kernel(live, batch, np.zeros(kernels.SETTINGS), None, self._fractions(live, batch))
        pieces = [self._generic(live, batch.part(slice(b, b + 1)), None, learn=False) for b in range(len(batch))]
        return _joined(pieces)

    def _run(self, live: Live, batch: Batch, forced: FloatArray | None = None, remember: bool = True) -> Outcome:
        """Decide and learn a batch; ``live`` is changed, unless it raises."""
        if isinstance(self.policy, Resolve):
            return self._by_resolving(live, batch, forced, remember)
        return self._segment(live, batch, forced)

    def _segment(self, live: Live, batch: Batch, forced: FloatArray | None) -> Outcome:
        if self._kernel:
            return self._by_kernel(live, batch, self._rules(live).settings, forced, self._fractions(live, batch))
        cuts = [slice(b, b + 1) for b in range(len(batch))]
        return _joined([self._generic(live, batch.part(cut), None if forced is None else forced[cut]) for cut in cuts])

    def _by_resolving(self, live: Live, batch: Batch, forced: FloatArray | None, remember: bool) -> Outcome:
        policy, history = self.policy, live.history
        assert isinstance(policy, Resolve)
        assert history is not None
        keys = keys_of(batch)
        pieces, start = [], 0
        while start < len(batch):
            if policy.due(live.t, live.horizon):
                self._reprice(live)
            stop = min(len(batch), start + policy.next_due(live.t, live.horizon) - live.t)
            at = slice(start, stop)
            part = batch.part(at)
            pieces.append(self._segment(live, part, None if forced is None else forced[at]))
            if remember:
                history.add(part, keys[at])
            start = stop
        return _joined(pieces)

    def _reprice(self, live: Live) -> None:
        assert live.history is not None
        if not live.history.met:
            return
        left = max(live.horizon - live.t, 1)
        share = live.history.met / left
        points = self.policy.view == POINTS
        budget = share * np.maximum(live.point_remaining if points else live.remaining, self._least(live, points))
        found = self.program.resolve(live.history, budget, live.state["dual"], self.policy.view)
        if found is not None:
            live.state = {**live.state, "dual": found[0]}
            live.fractions = found[1]

    def _least(self, live: Live, points: bool) -> FloatArray:
        """Rows that are overrun get nothing rather than less than nothing, which no sample could meet."""
        total = live.point_total if points else live.total
        return np.where(total >= 0, 0.0, -np.inf)

    def _fractions(self, live: Live, batch: Batch) -> FloatArray:
        """What the sample's LP does with arrivals like these, where they tie; (0, n) where there is nothing known."""
        count = len(self.program.template.decisions)
        if live.fractions is None or live.history is None:
            return np.empty((0, count))
        numbers = np.array([live.history.number_of(key) for key in keys_of(batch)])
        known = (numbers >= 0) & (numbers < len(live.fractions))
        result = np.full((len(batch), count), np.nan)
        result[known] = live.fractions[numbers[known]]
        for b, j in np.argwhere((result > 0) & (result < 1) & self.program.template.integer):
            coin = np.random.default_rng([self.seed, live.t + int(b), int(j)]).random()
            result[b, j] = float(coin < result[b, j])
        return result

    def _caps(self, live: Live, batch: Batch) -> FloatArray:
        """What share of a resource an arrival may take that is unlike any seen before; (0,) where nothing is capped."""
        if live.history is None or not isinstance(self.policy, Resolve) or self.program.template.integer.any():
            return np.empty(0)
        unseen = np.array([live.history.number_of(key) < 0 for key in keys_of(batch)])
        left = np.maximum(live.horizon - live.t - np.arange(len(batch)), 1)
        return np.where(unseen, self.policy.share(left), 1.0)

    def _by_kernel(
        self, live: Live, batch: Batch, settings: FloatArray, forced: FloatArray | None, fractions: FloatArray
    ) -> Outcome:
        view, rules = self.policy.view, self._rules(live)
        setting, slack, point_slack = rules.setting, rules.slack, rules.point_slack
        usage, fixed = batch.view(view)
        count = len(self.program.template.decisions)
        own, own_slack, other, other_slack = live.remaining, slack, live.point_remaining, point_slack
        if view == POINTS:
            own, own_slack, other, other_slack = live.point_remaining, point_slack, live.remaining, slack
        others: FloatArray = np.empty((0, count, len(other)))
        guard = kernels.NO_GUARD
        if self.guard != "none":
            same = (self.guard == PROJECTED) == (view == PROJECTED)
            guard = kernels.OWN_GUARD if same else kernels.OTHER_GUARD
            if not same:
                others = batch.view(POINTS if view == PROJECTED else PROJECTED)[0]
        if isinstance(self._solver, NewtonStage) and (view == POINTS or batch.points is not None):
            # The loop knows the functions at each decision, so it pays for both kinds of resources.
            others = batch.view(POINTS if view == PROJECTED else PROJECTED)[0]
        state = live.state
        dual = state["dual"]
        if "numbers" in state:
            learner, centre, average, numbers = state["learner"], state["centre"], state["average"], state["numbers"]
        else:
            learner, centre, average, numbers = dual, dual, dual, np.zeros(kernels.NUMBERS)
        wanted, taken, reasons = np.empty((len(batch), count)), np.empty((len(batch), count)), np.empty(len(batch))
        known = (settings, live.t, float(live.horizon), setting.budget, setting.floor)
        tracked = (
            np.empty((0, count)) if forced is None else np.ascontiguousarray(forced), guard,
            np.ascontiguousarray(others), own_slack, other_slack, own, other, dual, learner, centre, average,
            numbers, wanted, taken, reasons,
        )  # fmt: skip
        if isinstance(self._solver, NewtonStage):
            gained = np.empty(len(batch))
            stopped = self._solver.runner(len(batch))(
                *known, self.program.theta(batch), batch.rewards, np.ascontiguousarray(usage), fixed, batch.lower,
                batch.upper, *tracked, gained,
            )  # fmt: skip
            if stopped >= 0:
                # Arrays cope with ends where a derivative is infinite, and say what is wrong; then the loop goes on.
                return self._beyond_scalars(live, batch, settings, forced, (wanted, taken, reasons), stopped)
            live.t += len(batch)
            self._pay_others(live, batch, taken, bool(len(others)))
            earned = gained + batch.earned
            return Outcome(wanted, taken, reasons, earned if self.program.template.maximize else -earned)
        elif self._runs_single and forced is None and not len(fixed):
            stopped = kernels.run_single(
                *known, batch.rewards, np.ascontiguousarray(usage), batch.lower, batch.upper, bool(self._integer[0]),
                guard, own_slack, own, dual, numbers, wanted, taken, reasons,
            )  # fmt: skip
        else:
            stopped = kernels.run(
                *known, batch.rewards, np.ascontiguousarray(usage), fixed, batch.lower, batch.upper, self._integer,
                self.program.template.options, fractions, self._caps(live, batch), *tracked,
            )  # fmt: skip
        if stopped >= 0:
            raise DataError(
                f"The stage problem of the arrival {batch.arrivals.name(stopped)!r} is unbounded: a decision that "
                "earns more than it costs has no bound; give it one."
            )
        live.t += len(batch)
        self._pay_others(live, batch, taken, bool(len(others)))
        return Outcome(wanted, taken, reasons)

    def _pay_others(self, live: Live, batch: Batch, taken: FloatArray, looked_at: bool) -> None:
        """Pay for what the kernel did not look at, all arrivals together."""
        view = self.policy.view
        other = live.point_remaining if view == PROJECTED else live.remaining
        unpaid = batch.point_fixed if view == PROJECTED else batch.fixed
        if not looked_at and (view == POINTS or batch.points is not None):
            values = self.program.template.values(batch.arrivals, taken)
            usage = batch.view(POINTS if view == PROJECTED else PROJECTED)[0]
            if values.size > 1:
                other -= values.ravel() @ usage.reshape(values.size, -1)
            elif values[0, 0] != 0.0:
                other -= values[0, 0] * usage[0, 0]
        if len(unpaid):
            other -= unpaid.sum(axis=0)

    def _beyond_scalars(
        self,
        live: Live,
        batch: Batch,
        settings: FloatArray,
        forced: FloatArray | None,
        done: tuple[FloatArray, FloatArray, FloatArray],
        stopped: int,
    ) -> Outcome:
        """Go on behind arrivals of a batch that the loop has done with one that it cannot solve."""
        before, one, rest = slice(0, stopped), slice(stopped, stopped + 1), slice(stopped + 1, len(batch))
        live.t += stopped
        pieces = [Outcome(done[0][before], done[1][before], done[2][before])] if stopped else []
        if stopped:
            self._pay_others(live, batch.part(before), done[1][before], True)
        pieces.append(self._generic(live, batch.part(one), None if forced is None else forced[one]))
        if rest.start < rest.stop:
            after = None if forced is None else forced[rest]
            pieces.append(self._by_kernel(live, batch.part(rest), settings, after, np.empty((0, 1))))
        return _joined(pieces)

    def _generic(self, live: Live, one: Batch, forced: FloatArray | None, learn: bool = True) -> Outcome:
        """One arrival, whatever its stage problem and policy are."""
        policy, setting, evaluator = self.policy, self._setting(live), self._evaluator
        view = policy.view
        usage, _ = one.view(view)
        reach = self._evaluator.reach(one)[0]
        state = policy.meet(live.state, setting, one.rewards[0], usage[0], reach)
        dual = policy.price(state, setting)
        wanted, weights, densities = self._respond(one, dual)
        reason = kernels.PRICED
        if isinstance(self._solver, BoxStage):
            size = np.abs(one.rewards[0]) + np.abs(usage[0]) @ np.abs(dual)
            tied = np.abs(weights[0]) <= kernels.TIE_SHARE * size
            if tied.any():
                reason = kernels.TIE
                fractions = self._fractions(live, one)
                if len(fractions):
                    share = one.lower + fractions * (one.upper - one.lower)
                    wanted = np.where(tied & np.isfinite(fractions), share, wanted)
            caps = self._caps(live, one)
            if len(caps) and caps[0] < 1.0:
                own = live.remaining if view == PROJECTED else live.point_remaining
                wanted = wanted * kernels.capped(own, float(caps[0]), evaluator.used(one, wanted, view)[0])
        taken = wanted
        if forced is not None:
            taken = forced
        elif self.guard != "none":
            taken, reason = self._guarded(live, one, weights, densities, wanted, reason)
        used, paid = evaluator.used(one, wanted, view)[0], evaluator.used(one, taken, view)[0]
        if learn:
            own = live.remaining if view == PROJECTED else live.point_remaining
            seen = Seen(
                live.t, used, paid, own.copy(), live.horizon - live.t, one.rewards[0], usage[0],
                lambda price: evaluator.used(one, self._respond(one, price)[0], view)[0],
            )  # fmt: skip
            state = policy.learn(state, setting, seen)
        live.state = state
        live.remaining = live.remaining - (paid if view == PROJECTED else evaluator.used(one, taken)[0])
        if one.points is not None:
            live.point_remaining = live.point_remaining - (
                paid if view == POINTS else evaluator.used(one, taken, POINTS)[0]
            )
        live.t += 1
        return Outcome(wanted, taken, np.array([float(reason)]))

    def _respond(self, one: Batch, dual: FloatArray) -> tuple[FloatArray, FloatArray, Densities]:
        """The best decision at a dual, the weights of the functions and the price on points that lead to it."""
        view = self.policy.view
        usage, _ = one.view(view)
        weights = one.rewards - usage @ dual
        densities = self.program.densities(dual, view)
        return self._solver.best(one, weights, densities), weights, densities

    def _guarded(
        self, live: Live, one: Batch, weights: FloatArray, densities: Densities, wanted: FloatArray, reason: int
    ) -> tuple[FloatArray, int]:
        evaluator, which = self._evaluator, PROJECTED if self.guard == PROJECTED else POINTS
        rules = self._rules(live)
        usage, fixed = one.view(which)
        left, spare = (live.remaining, rules.slack) if which == PROJECTED else (live.point_remaining, rules.point_slack)
        room = Room(
            usage[0],
            fixed[0] if len(fixed) else np.zeros(len(left)),
            left,
            spare,
            lambda x: evaluator.used(one, x[None], which)[0],
        )
        if room.fits(wanted[0]):
            return wanted, reason
        x = self._solver.fit(one, weights[0], densities, wanted[0], room, self._null)
        return x[None], kernels.NULL if np.array_equal(x, self._null) else kernels.GUARDED


def _joined(pieces: list[Outcome]) -> Outcome:
    if len(pieces) == 1:
        return pieces[0]
    return Outcome(
        np.concatenate([piece.wanted for piece in pieces]),
        np.concatenate([piece.taken for piece in pieces]),
        np.concatenate([piece.reasons for piece in pieces]),
    )
