"""The controller: meets arrivals one by one, decides, learns, and can be stopped and resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._files import write_state
from osilp_pyomo._options import shown_number, whole_number
from osilp_pyomo.errors import DataError, HorizonError, OptionError, SavedStateError
from osilp_pyomo.index.domain import on_points
from osilp_pyomo.online.checked_policy import is_built_in
from osilp_pyomo.online.live import Live, too_large
from osilp_pyomo.online.loop import LoopOutcome, StageLoop
from osilp_pyomo.online.policies import Policy, policy_record, view_of
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.saved_state import check_arrays, read_history, read_memory, read_pieces
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, VIEWS, Batch, ProjectedArrival
from osilp_pyomo.online.stages.evaluator import ResourceGroup
from osilp_pyomo.online.stages.pieces import Pieces
from osilp_pyomo.online.stages.template import CONSTANT

REASONS = ("priced", "tie", "guard", "null", "overrun")
GUARDS = ("none", *VIEWS)
BEYOND = ("error", "continue")
# What saved files call the budgets, and what is left of them.
_TOTAL = {PROJECTED: "total", POINTWISE: "point_total"}
_LEFT = {PROJECTED: "remaining", POINTWISE: "point_remaining"}


@dataclass(frozen=True)
class Decision:
    """What was decided for one arrival.

    Attributes
    ----------
    x : float or dict
        A number for a single scalar decision, else keyed by variable, or by the variable and the rest of its index.
    wanted : float or dict
        What the price asked for, before any guard.
    reason : str
        "priced", "tie" (earning and cost balance), "guard" (what remains, or is still needed, allowed nothing else),
        "null" (nothing fitted), "overrun" (nothing fitted, and it had to be served).
    reward : float
        What the decision earns (or costs, where the model minimizes).
    t : int
        Number of the arrival, from 1.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> m = demo_model(arrivals=40)
    >>> controller = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5)).controller(osilp.MirrorDescent())
    >>> decision = controller.step(value=0.9, place=0.5)
    >>> decision
    Decision(x=1.0, wanted=1.0, reason='priced', reward=0.9, t=1)
    """

    x: Any
    wanted: Any
    reason: str
    reward: float
    t: int


def _amount(given: Any, row: str) -> float:
    """An amount of budget: a number, and nothing that merely can be read as one."""
    try:
        amount = float(given) if isinstance(given, Real) and not isinstance(given, bool | np.bool_) else np.nan
    except OverflowError:
        amount = np.inf
    if not np.isfinite(amount):
        raise OptionError(f"add_budget: the amount for '{row}' must be a finite number (got {shown_number(given)}).")
    return amount


def _amounts(function: Callable[..., Any], points: FloatArray, row: str) -> FloatArray:
    """A function of the index at points, as numbers."""
    try:
        values = np.asarray(on_points(function, points))
    except Exception as error:
        # Whatever the user's own function may raise.
        raise OptionError(
            f"add_budget: the function for '{row}' gives no numbers ({type(error).__name__}: {error}); it must give "
            "one for each point of the index."
        ) from error
    if values.dtype.kind not in "iuf" or values.shape != (len(points),):
        raise OptionError(f"add_budget: the function for '{row}' must give one number for each point of the index.")
    return values.astype(float)


# What rounding may leave of a bound, of a whole number, and of a row relative to its terms.
_ROUNDING, _WHOLE, _BROKEN = 1e-9, 1e-6, 1e-6


class Controller:
    """Decides arrivals of an :class:`OnlineProgram` by a policy.

    Made by ``program.controller(policy, guard=...)``. ``decide`` is pure, ``update`` learns, ``step`` does both.

    Attributes
    ----------
    t : int
        Arrivals met so far; saved, so that a caller knows which one to send again.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_program
    >>> program = demo_program()
    >>> controller = program.controller(osilp.MirrorDescent())
    >>> controller.decide(value=0.9, place=0.5).x, controller.t
    (1.0, 0)
    >>> controller.step(value=0.9, place=0.5).x, controller.t
    (1.0, 1)
    >>> controller.update(value=0.2, place=0.1, x=0.0)  # what was really done
    >>> controller.steps(program.data.head(3))["x"].tolist()
    [1.0, 1.0, 0.0]
    >>> controller.release(value=0.9, place=0.5, x=1.0)  # a cancellation
    >>> controller.add_budget("usage", 0.5)
    >>> controller.revise(horizon=60)
    >>> controller.t, controller.horizon, round(controller.reward, 3)
    (5, 60, 1.522)
    >>> controller.remaining.round(3).head(2)
    usage: u = 0      1.670
    usage: u = 0.5    2.197
    Name: remaining, dtype: float64
    >>> round(controller.price(0.5), 3)
    3.741
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     controller.save(f"{folder}/state.npz")
    ...     again = osilp.load_controller(f"{folder}/state.npz", program)
    >>> again.t
    5
    """

    def __init__(
        self,
        program: ProgramData,
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
        self._evaluator = program.evaluator
        self._loop = StageLoop(program, policy, guard, null, seed)
        self._live = self._loop.begin(horizon)
        # A second state of the same size, for steps that must not wait for memory.
        self._spare: Live | None = None
        # Projected arrivals that were found to fit, so that a step need not look at them again.
        self._checked_batch: Batch | None = None
        # Whether a decision is a bare number.
        self._plain = len(program.template.decisions) == 1 and not program.template.decisions[0].key

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
        return np.array(policy.price(live.state, self._loop.setting(live)))

    @property
    def price(self) -> Any:
        """The price as a measure on the index; keyed by row where there are several."""
        return self.program.price_of(self.dual, view_of(self.policy))

    @property
    def gaps(self) -> dict[str, str]:
        """Rows of which a pointwise guard keeps only the points, and why; the others are kept on their whole index."""
        return {**self.program.index_guard.gaps, **self._live.gaps} if self.guard == "pointwise" else {}

    @property
    def remaining(self) -> pd.Series:
        """What is left of each resource against its test function, in the row's own units and sign."""
        evaluator = self._evaluator
        values = self._live.left[PROJECTED] * evaluator.resources[PROJECTED].unit
        for group in evaluator.groups:
            values[group.slices[PROJECTED]] *= group.sign
        return pd.Series(values, index=evaluator.labels(), name="remaining")

    def __repr__(self) -> str:
        return (
            f"Controller({self.policy!r}, guard={self.guard!r}): {self.t} of {self.horizon} arrivals met, "
            f"{'reward' if self.program.template.maximize else 'cost'} {self.reward:.6g}"
        )

    # -- live use ------------------------------------------------------------------------------------------

    def step(self, row: Any = None, /, **theta: Any) -> Decision:
        """Decide an arrival, learn from it, and move on.

        Its data come as keywords (``step(value=0.8, place=0.4)``), as a mapping or Series, or as one of the arrivals
        that ``program.project(frame)`` has projected, which is fastest.
        """
        place = 0
        if row.__class__ is ProjectedArrival:
            batch, place = self._projected(row, theta)
        else:
            batch = self._one(row, theta)
        if self._loop.steps_single and self._plain:
            # Decided in a copy, which one assignment makes the state: a step happens whole or not at all.
            live = self._live if self._live.pack is not None else self._live.packed()
            spare = self._spare
            if spare is None or spare is live or spare.pack is None or not spare.follow(live):
                spare = live.packed()
            x, wanted, reason, reward = self._loop.step(spare, batch, place)
            if batch.gaps:
                spare.gaps = {**spare.gaps, **batch.gaps}
            self._live, self._spare = spare, live
            return Decision(x, wanted, REASONS[reason], reward, spare.t)
        return self._decision(self._live_run(batch), self._live.t)

    def decide(self, row: Any = None, /, **theta: Any) -> Decision:
        """What ``step`` would decide; nothing changes."""
        batch = self._one(row, theta)
        outcome = self._loop.run(self._live.copy(), batch, remember=False)
        outcome = replace(outcome, rewards=self._evaluator.reward(batch, outcome.decided))
        return self._decision(outcome, self._live.t + 1)

    def update(self, row: Any = None, /, x: Any = None, **theta: Any) -> None:
        """Learn an arrival, and what was really done: ``x`` as in ``Decision.x``; what ``decide`` says if not given.

        The price learns from what it asked for, the budget pays for what was done.
        """
        if x is not None and "x" in self.program.intake.by_name and row is None:
            raise DataError(
                "update: this model has data called 'x', so that x= is ambiguous; give the arrival's data as a mapping."
            )
        batch = self._one(row, theta)
        done = None if x is None else self._as_decision(x)[None]
        if done is not None:
            self._refuse_impossible(done[0], batch, "update")
        self._live_run(batch, done)

    def _refuse_impossible(self, x: FloatArray, batch: Batch, what: str) -> None:
        """Refuse what no decision of this arrival can have been."""
        template = self.program.template
        for label, whole, value, low, high in zip(
            template.decisions, template.integer, x, batch.lower[0] + 0.0, batch.upper[0] + 0.0, strict=True
        ):
            if not low - _ROUNDING * max(1.0, abs(low)) <= value <= high + _ROUNDING * max(1.0, abs(high)):
                raise DataError(
                    f"{what}: '{label}' must lie in [{low:g}, {high:g}] for this arrival (got {value:.12g}); give what "
                    "was done within the model's bounds."
                )
            if whole and abs(value - round(value)) > _WHOLE:
                raise DataError(f"{what}: '{label}' must be a whole number (got {value:.12g}).")
        if not template.own_rows:
            return
        excess, size = self.program.evaluator.own_excess(batch, x[None])
        for row, over, terms in zip(template.own_rows, excess[0], size[0], strict=True):
            # An infinite row has infinite terms, and one that is not a number is not kept either.
            if not (over <= 0 or over <= _BROKEN * min(terms, 1e300)):
                raise DataError(
                    f"{what}: '{row.name}', which each arrival has for itself, is broken by {over:.6g}; give what was "
                    "done within the model's constraints."
                )

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
        if data is None and profiles is None:
            raise DataError("steps: a frame of arrivals is needed (got None); replay() runs the model's own.")
        if isinstance(data, pd.DataFrame) and not len(data):
            nothing = np.empty((0, len(self.program.template.decisions)))
            return self._told(nothing, data.index, np.empty(0, dtype=int), np.empty(0))
        batch = self.program.batch(data, profiles)
        self._refuse_beyond(len(batch))
        batch = self._checked(batch)
        if hold_price:
            outcome = self._loop.held(self._live, batch)
            rewards = self._live_run(batch, outcome.decided).rewards
        else:
            outcome = self._live_run(batch)
            rewards = outcome.rewards
        return self._told(outcome.decided, batch.arrivals.index, outcome.reasons.astype(int), rewards)

    def _told(self, decided: FloatArray, index: pd.Index, reasons: Any, rewards: FloatArray) -> pd.DataFrame:
        """Decisions, why, and what they earn."""
        frame = self.program.template.decision_frame(decided, index)
        told = {"reason": np.array(REASONS, dtype=object)[reasons], "reward": rewards}
        # A decision that is itself called "reward" keeps its name.
        return frame.assign(**{name if name not in frame else f"{name}_": value for name, value in told.items()})

    def release(self, row: Any = None, /, x: Any = 1.0, **theta: Any) -> None:
        """Give back what an earlier decision ``x`` uses, as after a cancellation; its reward is taken back too.

        Which decisions were made is not remembered: giving back what was never taken makes room that is not there.
        """
        batch = self._one(row, theta, count=False)
        taken = self._as_decision(x)[None]
        self._refuse_impossible(taken[0], batch, "release")
        if not self._live.t:
            raise DataError(
                "release: no arrival was met yet, so that there is nothing to give back; add_budget makes room."
            )
        live = self._live.copy()
        live.kept = False
        for view in VIEWS:
            live.left[view] += self._evaluator.used(batch, taken, view)[0]
        live.pieces = self._given_back_on_pieces(live, batch, taken[0])
        live.earned -= float(self._evaluator.reward(batch, taken)[0])
        self._refuse_infinite(live, batch)
        self._live = live

    def _given_back_on_pieces(self, live: Live, batch: Batch, x: FloatArray) -> tuple[Pieces, ...]:
        result = []
        for group, pieces, terms in zip(self.program.index_guard.stepped, live.pieces, batch.steps, strict=False):
            for function, steps in terms:
                amount = 1.0 if function == CONSTANT else float(x[function])
                pieces = pieces.paid(steps, np.array([-group.sign * amount]))
            result.append(pieces)
        return tuple(result)

    def add_budget(self, row: Any, amount: Any) -> None:
        """Replenish a row: by a number, or for a semi-infinite row by a function of the index.

        A function is read at the points of the guard, and counts as linear between them.
        """
        name = row if isinstance(row, str) else getattr(row, "name", str(row))
        groups = [group for group in self._evaluator.groups if group.name == name]
        if not groups:
            known = ", ".join(dict.fromkeys(group.name for group in self._evaluator.groups))
            raise OptionError(f"add_budget: there is no row '{name}'; the resources are {known}.")
        live, evaluator = self._live.copy(), self._evaluator
        changes = []
        for group in groups:
            if group.family is None:
                if callable(amount):
                    raise OptionError(f"add_budget: '{name}' is an ordinary row; give a number.")
                values = np.array([_amount(amount, name)])
                projected = values
            else:
                points = evaluator.points[group.family]
                values = (
                    _amounts(amount, points, name) if callable(amount) else np.full(len(points), _amount(amount, name))
                )
                projected = evaluator.project(values, group.family)
            if not np.all(np.isfinite(values)):
                raise OptionError(f"add_budget: the amount for '{name}' must be finite everywhere.")
            changes.append((group, {PROJECTED: projected, POINTWISE: values}))
        live.rules, live.kept = None, False
        live.total = {view: total.copy() for view, total in live.total.items()}
        for group, added in changes:
            for view, amounts in added.items():
                change = group.sign * amounts / evaluator.resources[view].unit[group.slices[view]]
                live.total[view][group.slices[view]] += change
                live.left[view][group.slices[view]] += change
                if view == POINTWISE:
                    live.pieces = self._raised_pieces(live, group, change)
        if not live.finite or not all(np.all(np.isfinite(total)) for total in live.total.values()):
            raise OptionError(f"add_budget: the amount for '{name}' is too large to be counted.")
        self._live = live

    def _raised_pieces(self, live: Live, group: ResourceGroup, change: FloatArray) -> tuple[Pieces, ...]:
        guard = self.program.index_guard
        return tuple(
            pieces.raised(*guard.along(each, change)) if each is group else pieces
            for each, pieces in zip(guard.stepped, live.pieces, strict=False)
        )

    def revise(self, horizon: int) -> None:
        """Expect another number of arrivals in all; the budget stays what it is."""
        horizon = whole_number(horizon, "revise: horizon")
        if horizon < self._live.t:
            raise OptionError(
                f"revise: horizon must be at least {self._live.t}, the arrivals met already (got {horizon})."
            )
        live = self._live.copy()
        live.horizon, live.rules = horizon, None
        self._live = live

    def save(self, path: Any) -> None:
        """Write everything that ``osilp_pyomo.load_controller(path, program)`` needs to go on; atomic."""
        live = self._live
        header = {
            "program": self.program.fingerprint,
            "policy": policy_record(self.policy),
            "guard": self.guard,
            "beyond": self.beyond,
            "seed": self.seed,
            "t": live.t,
            "horizon": live.horizon,
            "earned": live.earned,
            "gaps": dict(live.gaps),
        }
        arrays = self._arrays(live)
        if live.fractions is not None:
            arrays["fractions"] = live.fractions
        if live.history is not None:
            arrays.update({f"history:{name}": value for name, value in live.history.to_arrays().items()})
        if live.memory is not None:
            arrays.update({f"memory:{name}": value for name, value in live.memory.to_arrays().items()})
        write_state(path, header, arrays)

    def _arrays(self, live: Live) -> dict[str, Any]:
        """The arrays that every controller of this program and policy has, by the names that they are saved under."""
        arrays = {_TOTAL[view]: live.total[view] for view in VIEWS} | {_LEFT[view]: live.left[view] for view in VIEWS}
        if live.offers.size:
            arrays["offers"] = live.offers
        for number, pieces in enumerate(live.pieces):
            arrays |= {f"pieces:{number}:{name}": value for name, value in vars(pieces).items()}
        return {**arrays, "null": self._loop.null, **{f"state:{name}": value for name, value in live.state.items()}}

    def resume(self, path: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Take over what ``save`` wrote, after it was looked at in every respect."""
        fresh = self._live
        remembers = (fresh.history is not None, fresh.memory is not None)
        check_arrays(path, arrays, self._arrays(fresh), remembers, not is_built_in(self.policy))
        floor = self._loop.setting(fresh).floor
        if is_built_in(self.policy) and np.any(arrays["state:dual"] < floor):
            raise SavedStateError(f"'{path}' holds a price below the least that there can be; it is damaged.")
        self._live = Live(
            header["t"],
            header["horizon"],
            {name[6:]: np.array(value) for name, value in arrays.items() if name.startswith("state:")},
            {view: np.array(arrays[_TOTAL[view]]) for view in VIEWS},
            {view: np.array(arrays[_LEFT[view]]) for view in VIEWS},
            float(header["earned"]),
            None if fresh.history is None else read_history(path, header["t"], arrays, fresh.history, self._evaluator),
            np.array(arrays["fractions"]) if "fractions" in arrays else None,
            gaps=dict(header.get("gaps", {})),
            offers=np.array(arrays["offers"]) if "offers" in arrays else fresh.offers,
            pieces=read_pieces(path, arrays, fresh.pieces, self._along_stepped(arrays)),
            memory=None if fresh.memory is None else read_memory(path, header["t"], arrays, fresh.memory),
        )

    def _along_stepped(self, arrays: Mapping[str, Any]) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """For each row that is kept piece by piece its points, and budgets and what is left there, as arrays say."""
        if not self._live.pieces:
            return []
        guard, result = self.program.index_guard, []
        for group in guard.stepped:
            points, budget = guard.along(group, arrays[_TOTAL[POINTWISE]][group.slices[POINTWISE]])
            _, left = guard.along(group, arrays[_LEFT[POINTWISE]][group.slices[POINTWISE]])
            result.append((points, budget, left))
        return result

    def begin_at(self, dual: FloatArray) -> None:
        """Begin at a price that is known."""
        live = self._live.copy()
        live.state = self.policy.warm(live.state, self._loop.setting(live), dual)
        self._live = live

    def meet(self, batch: Batch) -> LoopOutcome:
        """Decide and learn a batch of arrivals; what :meth:`steps` and replays are made of."""
        counted = self._checked(batch)
        outcome = self._live_run(counted)
        if counted is batch:
            return outcome
        # The guard has lifted what these arrivals use at points.
        return replace(outcome, point_use=self._evaluator.total_use(batch, outcome.decided)[None])

    def _live_run(self, batch: Batch, forced: FloatArray | None = None) -> LoopOutcome:
        """Decide and learn a batch in a copy, which one assignment makes the state; where it fails, nothing changed."""
        mark = self._live.mark()
        live = self._live.copy()
        try:
            outcome = self._loop.run(live, batch, forced)
            live.kept &= forced is None
            if len(outcome.rewards) < len(batch):
                outcome = replace(outcome, rewards=self._evaluator.reward(batch, outcome.decided))
            live.earned += outcome.rewards.item() if len(batch) == 1 else float(outcome.rewards.sum())
            self._refuse_infinite(live, batch)
            live.gaps = {**live.gaps, **batch.gaps}
            self._live = live
        finally:
            if self._live is not live:
                live.back_to(mark)
        return outcome

    def _refuse_infinite(self, live: Live, batch: Batch) -> None:
        """Refuse arrivals after which a running number is none."""
        if not live.finite:
            raise too_large(batch.arrivals.name(0) if len(batch) == 1 else None)

    @property
    def point_remaining(self) -> FloatArray:
        """What is left at every grid point, and of every ordinary row; signs turned so that use counts against it.

        As the guard counts it: a pointwise one lowers limits and lifts uses by what is between the points.
        """
        return self._live.left[POINTWISE].copy()

    @property
    def projected_remaining(self) -> FloatArray:
        """What is left of each resource of a test function or ordinary row, in the coordinates of the dual."""
        return self._live.left[PROJECTED].copy()

    # -- one arrival -----------------------------------------------------------------------------------------

    def _one(self, row: Any, theta: Mapping[str, Any], count: bool = True) -> Batch:
        arrivals = self.program.intake.row(row, theta)
        if count:
            self._refuse_beyond(1)
        return self._checked(self._evaluator.batch(arrivals), fresh=True)

    def _projected(self, arrival: ProjectedArrival, theta: Mapping[str, Any]) -> tuple[Batch, int]:
        """The batch of a projected arrival and its place there; alone where steps are not taken number by number."""
        if theta:
            raise DataError("step: a projected arrival has all its data; give no keywords beside it.")
        self._refuse_beyond(1)
        if arrival.batch is self._checked_batch:
            return arrival.batch, arrival.place
        if self._loop.steps_single and self._plain and POINTWISE not in arrival.batch.use:
            self._refuse_other_program(arrival.batch)
            self._refuse_without_points()
            self._checked_batch = arrival.batch
            return arrival.batch, arrival.place
        return self._checked(arrival.alone), 0

    def _refuse_other_program(self, batch: Batch) -> None:
        if batch.projection not in ("", self.program.projection):
            raise DataError(
                "These arrivals were projected by another program, with other formulas, test functions or points; "
                "project them by this one."
            )
        if batch.use[PROJECTED].shape[2] != self._evaluator.resources[PROJECTED].size:
            raise DataError(
                f"These arrivals were projected by another program, on {batch.use[PROJECTED].shape[2]} resources where "
                f"this one has {self._evaluator.resources[PROJECTED].size}; project them by this program."
            )

    def _refuse_without_points(self) -> None:
        if self.guard == "pointwise" or view_of(self.policy) == POINTWISE:
            raise OptionError(
                "Projected arrivals do not say what they use at single points; use guard='projected' or 'none' and a "
                "policy on test functions, or give the data themselves."
            )

    def _checked(self, batch: Batch, fresh: bool = False) -> Batch:
        """Arrivals as the guard counts them; those that it could not protect from are refused.

        A single one that is ``fresh``, and nobody else's, is lifted in place where that can be.
        """
        if not fresh:
            self._refuse_other_program(batch)
            if POINTWISE not in batch.use:
                self._refuse_without_points()
        if self.guard != "none":
            self._loop.refuse_null(batch)
        if self.guard == "pointwise":
            if self.program.index_guard.gaps:
                self.program.refuse_narrow(batch)
            if fresh and self.program.index_guard.lift_one(batch):
                return batch
            return self.program.index_guard.lifted(batch)
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
            if missing or not len(given) == len(x) == len(labels):
                raise DataError(
                    f"x must have exactly the entries {', '.join(repr(label.column) for label in labels)} (got "
                    f"{', '.join(map(repr, x.keys()))})."
                )
            x = [given[label.column] for label in labels]
        try:
            entries = np.asarray(x)
        except ValueError:
            # Numpy knows no array with rows of several lengths.
            entries = np.array(None)
        if entries.dtype.kind not in "iuf":
            raise DataError(f"x must be numbers (got {x!r}).")
        values = np.atleast_1d(entries).astype(float)
        if values.shape != (len(labels),):
            raise DataError(f"x must be {len(labels)} numbers, or a mapping by variable (got shape {values.shape}).")
        if not np.all(np.isfinite(values)):
            raise DataError("x must hold finite numbers only.")
        return values

    def _decision(self, outcome: LoopOutcome, t: int) -> Decision:
        reason, reward = REASONS[int(outcome.reasons[0])], float(outcome.rewards[0])
        return Decision(self._given_back(outcome.decided[0]), self._given_back(outcome.wanted[0]), reason, reward, t)

    def _given_back(self, values: FloatArray) -> Any:
        labels = self.program.template.decisions
        if len(labels) == 1 and not labels[0].key:
            return values.item()
        return {label.column: float(value) for label, value in zip(labels, values, strict=True)}
