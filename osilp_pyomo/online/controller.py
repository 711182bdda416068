"""The controller: meets arrivals one by one, decides, learns, and can be stopped and resumed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import MOST_SHOWN, Shown, cut, draw, some_of
from osilp_pyomo._files import write_state
from osilp_pyomo._frames import as_pandas
from osilp_pyomo._options import whole_number
from osilp_pyomo._reporting import warn_user
from osilp_pyomo.errors import DataError, HorizonError, HorizonWarning, OptionError, SavedStateError
from osilp_pyomo.offline.results import FamilyMap
from osilp_pyomo.online.checked_policy import is_built_in
from osilp_pyomo.online.clock.clock import Clock
from osilp_pyomo.online.clock.times import NOW as _NOW
from osilp_pyomo.online.clock.times import Times
from osilp_pyomo.online.forecast import Foretold
from osilp_pyomo.online.live import Live, too_large
from osilp_pyomo.online.loop import LoopOutcome, StageLoop
from osilp_pyomo.online.policies import Policy, policy_record, view_of
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.resolve import Resolve
from osilp_pyomo.online.saved_state import check_arrays, forecast_arrays, read_history, read_memory, read_pieces
from osilp_pyomo.online.service.along_index import left_along_index
from osilp_pyomo.online.service.decision_log import DecisionLog
from osilp_pyomo.online.service.given import as_decision, refuse_impossible, with_budget
from osilp_pyomo.online.service.quotes import quote, with_unused_data
from osilp_pyomo.online.service.turns import InTurn, alone
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, VIEWS, Batch, ProjectedArrival
from osilp_pyomo.online.stages.pieces import Pieces
from osilp_pyomo.online.stages.template import CONSTANT, Arrivals

REASONS = ("priced", "tie", "guard", "null", "overrun")
GUARDS = ("none", *VIEWS)
BEYOND = ("error", "continue")
# What saved files call the budgets, and what is left of them.
_TOTAL = {PROJECTED: "total", POINTWISE: "point_total"}
_LEFT = {PROJECTED: "remaining", POINTWISE: "point_remaining"}
_FORESIGHT, _CLOCK = "foresight:", "clock:"
# Arrivals that updates may pass over at a time.
_AWAITED = 100_000


@dataclass(frozen=True)
class Decision(Shown):
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

    card = "decision"

    x: Any
    wanted: Any
    reason: str
    reward: float
    t: int

    def __repr__(self) -> str:
        x, wanted, reward = _short(self.x), _short(self.wanted), _six_digits(self.reward)
        return f"Decision(x={x}, wanted={wanted}, reason={self.reason!r}, reward={reward}, t={self.t!r})"


def _short(decided: Any) -> str:
    """A decision as text, of one with very many parts the first ones."""
    if not isinstance(decided, dict):
        return _six_digits(decided)
    shown = {name: _six_digits(value) for name, value in decided.items()}
    if len(shown) <= MOST_SHOWN + 1:
        return f"{{{', '.join(f'{name!r}: {value}' for name, value in shown.items())}}}"
    parts = some_of(list(shown.items()), lambda item: f"{item[0]!r}: {item[1]}")
    return f"{{{', '.join(parts)}}}"


def _six_digits(number: Any) -> str:
    """A number as people read it; the value itself has all its digits."""
    return repr(float(f"{number:.6g}") if isinstance(number, float) else number)


class Controller(Shown, InTurn):
    """Decides arrivals of an :class:`OnlineProgram` by a policy.

    Made by ``program.controller(policy, guard=...)``. ``decide`` is pure, ``update`` learns, ``step`` does both.
    Threads may share one: their calls are done one after the other.

    Attributes
    ----------
    t : int
        Arrivals met so far; saved, so that a caller knows which one to send again.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_program
    >>> program = demo_program()
    >>> controller = program.controller(osilp.MirrorDescent(), log=100)
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
    >>> round(controller.quote(place=0.5), 3)  # what a request would have to bring there
    0.663
    >>> controller.fork().step(value=0.9, place=0.5).t, controller.t  # a what-if
    (6, 5)
    >>> controller.log["x"].tolist(), controller.awaited
    ([1.0, 0.0, 1.0, 1.0, 0.0], ())
    >>> controller.remaining_over_index.columns.tolist()
    ['row', 'index', 'limit', 'remaining']
    >>> controller.plot().axes[0].get_title()
    "'usage': kept at all 1,002 points"
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     controller.save(f"{folder}/state.npz")
    ...     again = osilp.load_controller(f"{folder}/state.npz", program)
    >>> again.t
    5
    """

    card = "controller"

    def __init__(
        self,
        program: ProgramData,
        policy: Policy,
        guard: str,
        null: FloatArray,
        horizon: int,
        beyond: str,
        seed: int,
        foretold: Foretold | None = None,
        log: Any = None,
        times: Times | None = None,
    ) -> None:
        InTurn.__init__(self)
        self.program = program
        self.policy = policy
        self.guard = guard
        self.beyond = beyond
        self.seed = seed
        self._evaluator = program.evaluator
        self._clock = None
        if times is not None:
            foretold = None if foretold is None else foretold.within(times)
            self._clock = Clock(times, horizon, None if foretold is None else foretold.arrivals.times)
        self._loop = StageLoop(program, policy, guard, null, seed, foretold, self._clock)
        self._live = self._loop.begin(horizon)
        self._log = None if log is None else DecisionLog(program, REASONS, log, times)
        self._warned_of: Any = None
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
        """Arrivals that are expected in all; in continuous time as they were last estimated."""
        return self._live.horizon

    @property
    def now(self) -> Any:
        """In continuous time the time of the last arrival, or that of the beginning; else None."""
        return None if self._clock is None else self._clock.times.told(float(self._live.clock["now"][0]))

    @property
    def until(self) -> Any:
        """In continuous time the end; else None."""
        return None if self._clock is None else self._clock.times.told(float(self._live.clock["until"][0]))

    @property
    def time_columns(self) -> dict[str, Any]:
        """What a replay reads beside the columns of a program: that of times, if there is one."""
        column = None if self._clock is None else self._clock.times.column
        return {} if column is None else {str(column): column}

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

    @property
    def remaining_over_index(self) -> pd.DataFrame:
        """What is left along the index of each semi-infinite row, in the row's own units and sign.

        Columns: ``row``, ``index`` (a number, or a tuple of several), ``limit``, and ``remaining`` as the guard counts
        it, ordered along the index. For a lower limit it is below zero as long as something is needed.
        """
        return left_along_index(self._evaluator, self._left_at_points("remaining_over_index"))

    @property
    def knows_use_at_points(self) -> bool:
        """Whether the use of all arrivals at single points is known; that of projected arrivals is not."""
        return not self._live.projected

    def _left_at_points(self, what: str) -> FloatArray:
        """What is left at points as the guard counts it; refused where that leaves arrivals out."""
        if not self.knows_use_at_points:
            raise OptionError(
                f"{what}: projected arrivals came, which do not say what they use at single points; give their data to "
                "step or steps, or look at controller.remaining, what is left against the test functions."
            )
        return self._live.left[POINTWISE]

    def plot(self, *, figure: Any = None) -> Any:
        """Draw what is used of each row along its index, as the guard counts it, its limit and its price of now.

        Needs matplotlib.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Figure or SubFigure
        """
        names = [family.name for family in self.program.template.families]
        prices = self.price if isinstance(self.price, FamilyMap) else dict(zip(names, [self.price], strict=True))
        return draw("left", self._evaluator, self._left_at_points("plot"), prices, figure=figure)

    @property
    @alone
    def log(self) -> pd.DataFrame:
        """The last decisions by number, as many as ``log=`` says, or those of its file: data, decisions, rewards."""
        if self._log is None:
            raise OptionError(
                "log: this controller keeps none; make it with controller(..., log=10_000) or a .csv path."
            )
        return self._log.frame

    def __repr__(self) -> str:
        met = f"{self.t} of {self.horizon} arrivals met"
        if self._clock is not None:
            ahead = max(self.horizon - self.t, 0)
            met = f"{self.t} arrivals met until {self.now!s}, about {ahead} more expected until {self.until!s}"
        return (
            f"Controller({cut(repr(self.policy))}, guard={self.guard!r}): {met}, "
            f"{'reward' if self.program.template.maximize else 'cost'} {self.reward:.6g}"
        )

    # -- live use ------------------------------------------------------------------------------------------

    @alone
    def step(self, row: Any = None, /, **theta: Any) -> Decision:
        """Decide an arrival, learn from it, and move on.

        Its data come as keywords (``step(value=0.8, place=0.4)``), as a mapping or Series, or as one of the arrivals
        that ``program.project(frame)`` has projected, which is fastest. In continuous time ``now=`` says when it came,
        if a mapping does not (``step(now=9.5, value=0.8, place=0.4)``).
        """
        place = 0
        if row.__class__ is ProjectedArrival:
            batch, place = self._projected(row, theta)
        else:
            batch = self._one(row, theta, "step")
        if self._loop.steps_single and self._plain:
            # Decided in a copy, which one assignment makes the state: a step happens whole or not at all.
            live = self._live if self._live.pack is not None else self._live.packed()
            spare = self._spare
            if spare is None or spare is live or spare.pack is None or not spare.follow(live):
                spare = live.packed()
            x, wanted, reason, reward = self._loop.step(spare, batch, place)
            if batch.gaps:
                spare.gaps = {**spare.gaps, **batch.gaps}
            spare.projected = spare.projected or POINTWISE not in batch.use
            noted = None if self._log is None else self._log.mark()
            try:
                if self._log is not None:
                    one = batch.arrivals.part(slice(place, place + 1))
                    self._log.add(spare.t, one, np.array([[x]]), np.array([float(reason)]), np.array([reward]))
                self._live, self._spare = spare, live
            finally:
                if self._live is not spare and self._log is not None:
                    self._log.back_to(noted)
            # A third of what the constructor costs.
            made = object.__new__(Decision)
            made.__dict__.update(x=x, wanted=wanted, reason=REASONS[reason], reward=reward, t=spare.t)
            return made
        return self._decision(self._live_run(batch), self._live.t)

    @alone
    def decide(self, row: Any = None, /, **theta: Any) -> Decision:
        """What ``step`` would decide; nothing changes."""
        batch = self._one(row, theta, "decide")
        outcome = self._loop.run(self._live.copy(), batch, remember=False)
        outcome = replace(outcome, rewards=self._evaluator.reward(batch, outcome.decided))
        return self._decision(outcome, self._live.t + 1)

    @alone
    def update(self, row: Any = None, /, x: Any = None, t: int | None = None, **theta: Any) -> None:
        """Learn an arrival, and what was really done: ``x`` as in ``Decision.x``; what ``decide`` says if not given.

        The price learns from what it asked for, the budget pays for what was done. Where it is known late what was
        done, ``t`` is the number of the arrival: the next one if not given. A larger one passes over those between,
        which are awaited (``controller.awaited``) and may be updated later in any order. What awaited arrivals use is
        not known to the guard until then. In continuous time ``now=`` says when it came; of those that were awaited it
        may be left out, or lie before the last one's.
        """
        for name, value in (("x", x), ("t", t)):
            if value is not None and name in self.program.intake.by_name and row is None:
                raise DataError(
                    f"update: this model has data called '{name}', so that {name}= is ambiguous; give the arrival's "
                    "data as a mapping."
                )
        start, number = self._passed_over(t)
        batch = self._one(row, theta, "update", count=False, late=number in self._live.awaited)
        done = None if x is None else as_decision(self.program, x)[None]
        if done is not None:
            refuse_impossible(self.program, done[0], batch, "update")
        self._live_run(batch, done, start=start, number=number)

    def _passed_over(self, t: int | None) -> tuple[Live, int]:
        """The state in which an arrival is learned, and its number: the next one, or one that ``update(t=)`` names."""
        live = self._live.copy()
        t = live.t + 1 if t is None else whole_number(t, "update: t")
        if t in live.awaited:
            # It has its place among those met already.
            live.t, live.awaited = live.t - 1, tuple(each for each in live.awaited if each != t)
            return live, t
        if t <= live.t:
            raise DataError(
                f"update: the arrival {t} was met already, and is not awaited; release(...) and add_budget(...) put "
                "right what it used."
            )
        if t - live.t > _AWAITED:
            raise DataError(f"update: {t - live.t - 1} arrivals would be passed over (at most {_AWAITED} can be).")
        if self._clock is None:
            self._refuse_beyond(t - live.t)
        live.awaited = (*live.awaited, *range(live.t + 1, t))
        live.t = t - 1
        return live, t

    @property
    def awaited(self) -> tuple[int, ...]:
        """Numbers of arrivals that were passed over by ``update(t=...)``, and are not known yet."""
        return self._live.awaited

    @alone
    def steps(
        self,
        data: Any,
        profiles: Mapping[str, Any] | None = None,
        hold_price: bool = False,
        *,
        together: bool = False,
    ) -> pd.DataFrame:
        """Decide arrivals that come together, one after the other.

        Parameters
        ----------
        data : DataFrame
            One row an arrival.
        profiles : dict, optional
            Curves of Profiles, one array (arrivals, points) each.
        hold_price : bool
            Decide all by one price, and learn afterwards: that of the first, or of a policy that learns from samples
            one found with all of them in its sample.
        together : bool
            Decide all by one problem: each of them once, and the sample as the arrivals that come after them. For
            policies that learn from samples, such as ``Resolve``; the more come together, the nearer to the optimum in
            hindsight.

        Returns
        -------
        DataFrame
            The decisions, and the columns ``reason`` and ``reward``, on the index of the data.
        """
        if data is None and profiles is None:
            raise DataError("steps: a frame of arrivals is needed (got None); replay() runs the model's own.")
        data = as_pandas(data)
        if isinstance(data, pd.DataFrame) and not len(data):
            nothing = np.empty((0, len(self.program.template.decisions)))
            return self._told(nothing, data.index, np.empty(0, dtype=int), np.empty(0))
        if together and (hold_price or not isinstance(self.policy, Resolve)):
            raise OptionError(
                "steps: together=True decides by one problem and not by a price; leave hold_price= out."
                if hold_price
                else f"steps: together=True needs a policy that learns from samples, such as Resolve() (got "
                f"{self.policy!r}); use hold_price=True."
            )
        batch = self._of_frame(data, profiles)
        self._refuse_beyond(len(batch), batch.arrivals.times)
        batch = self._checked(batch)
        if together:
            outcome = self._live_run(batch, together=True)
            rewards = outcome.rewards
        elif hold_price:
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

    @alone
    def release(self, row: Any = None, /, x: Any = 1.0, **theta: Any) -> None:
        """Give back what an earlier decision ``x`` uses, as after a cancellation; its reward is taken back too.

        Which decisions were made is not remembered: giving back what was never taken makes room that is not there.
        """
        batch = self._one(row, theta, "release", count=False, timeless=True)
        taken = as_decision(self.program, x)[None]
        refuse_impossible(self.program, taken[0], batch, "release")
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

    @alone
    def add_budget(self, row: Any, amount: Any) -> None:
        """Replenish a row: by a number, or for a semi-infinite row by a function of the index.

        A function is read at the points of the guard, and counts as linear between them.
        """
        self._live = with_budget(self.program, self._live, row, amount)

    @alone
    def revise(self, horizon: int | None = None, *, until: Any = None) -> None:
        """Expect another number of arrivals in all, or in continuous time another end; the budget stays what it is."""
        if self._clock is not None:
            self._live = self._revised(self._clock, horizon, until)
            return
        if until is not None or horizon is None:
            raise OptionError(
                "revise: give horizon=, how many arrivals come in all; until= is for controllers in continuous time, "
                "made with program.controller(..., until=...)."
            )
        horizon = whole_number(horizon, "revise: horizon")
        if horizon < self._live.t:
            raise OptionError(
                f"revise: horizon must be at least {self._live.t}, the arrivals met already (got {horizon})."
            )
        live = self._live.copy()
        live.horizon, live.rules = horizon, None
        self._live = live

    def _revised(self, clock: Clock, horizon: Any, until: Any) -> Live:
        if until is None or horizon is not None:
            raise OptionError(
                f"revise: this controller runs in continuous time until {self.until!s}; give another end by until=, "
                "how many arrivals come until then is estimated."
            )
        try:
            end = clock.times.number(until, "revise: until")
        except DataError as error:
            raise OptionError(str(error)) from None
        live = self._live.copy()
        if end < live.clock["now"][0] or end <= 0.0:
            raise OptionError(
                f"revise: until must not lie before {self.now!s}, when the last arrival came (got {until!s})."
            )
        live.clock = clock.revised(live.clock, end)
        return live

    @alone
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
            "awaited": list(live.awaited),
            "projected": live.projected,
            "clock": None if self._clock is None else self._clock.times.record(),
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
        arrays |= {f"{_FORESIGHT}{name}": value for name, value in live.foresight.items()}
        arrays |= {f"{_CLOCK}{name}": value for name, value in live.clock.items()}
        if self._loop.foresight is not None:
            arrays |= forecast_arrays(self._loop.foresight.foretold, self.program)
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
            awaited=tuple(header.get("awaited", ())),
            projected=header.get("projected", False),
            offers=np.array(arrays["offers"]) if "offers" in arrays else fresh.offers,
            pieces=read_pieces(path, arrays, fresh.pieces, self._along_stepped(arrays)),
            memory=None if fresh.memory is None else read_memory(path, header["t"], arrays, fresh.memory),
            foresight={name: np.array(arrays[f"{_FORESIGHT}{name}"]) for name in fresh.foresight},
            clock={name: np.array(arrays[f"{_CLOCK}{name}"]) for name in fresh.clock},
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

    @alone
    def fork(self) -> Controller:
        """A second controller in the same state, for a what-if: what is done to one leaves the other as it is.

        A log in memory is copied; one in a file stays with this controller.
        """
        other = copy(self)
        other._loop = self._loop.fork()
        live = self._live.copy()
        if live.history is not None:
            live.history = live.history.copy()
        if live.memory is not None:
            live.memory = live.memory.copy()
        other._live, other._spare = live, None
        other._log = None if self._log is None else self._log.copy()
        return other

    @alone
    def quote(self, row: Any = None, /, **theta: Any) -> Any:
        """What a unit of this arrival's decision would have to bring to be taken, at the price of now.

        Data that only its reward depends on may be left out. Infinite where a guard would let nothing of it through;
        a number for a single scalar decision, else keyed as ``Decision.x``. For linear stages.
        """
        known = with_unused_data(self.program, row, theta)
        batch = self._one(row, known, "quote", count=False, timeless=True)
        live = self._live.copy()
        return self._given_back(quote(self.program, self._loop, live, batch, self.dual))

    def begin_at(self, dual: FloatArray) -> None:
        """Begin at a price that is known."""
        live = self._live.copy()
        live.state = self.policy.warm(live.state, self._loop.setting(live), dual)
        self._live = live

    @alone
    def meet(self, batch: Batch) -> LoopOutcome:
        """Decide and learn a batch of arrivals; what :meth:`steps` and replays are made of."""
        counted = self._checked(batch)
        outcome = self._live_run(counted)
        if counted is batch:
            return outcome
        # The guard has lifted what these arrivals use at points.
        return replace(outcome, point_use=self._evaluator.total_use(batch, outcome.decided)[None])

    def _live_run(
        self,
        batch: Batch,
        forced: FloatArray | None = None,
        together: bool = False,
        start: Live | None = None,
        number: int | None = None,
    ) -> LoopOutcome:
        """Decide and learn a batch in a copy, which one assignment makes the state; where it fails, nothing changed.

        ``start`` is another state to begin in, ``number`` that of the first arrival where it is not the next one.
        """
        mark, noted = self._live.mark(), None if self._log is None else self._log.mark()
        live = self._live.copy() if start is None else start
        try:
            outcome = self._loop.together(live, batch) if together else self._loop.run(live, batch, forced)
            live.kept &= forced is None
            if len(outcome.rewards) < len(batch):
                outcome = replace(outcome, rewards=self._evaluator.reward(batch, outcome.decided))
            live.earned += outcome.rewards.item() if len(batch) == 1 else float(outcome.rewards.sum())
            self._refuse_infinite(live, batch)
            live.gaps = {**live.gaps, **batch.gaps}
            live.projected |= POINTWISE not in batch.use
            if self._log is not None:
                first = live.t - len(batch) + 1 if number is None else number
                self._log.add(first, batch.arrivals, outcome.decided, outcome.reasons, outcome.rewards)
            self._live = live
        finally:
            if self._live is not live:
                live.back_to(mark)
                if self._log is not None:
                    self._log.back_to(noted)
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

    def _one(
        self,
        row: Any,
        theta: Mapping[str, Any],
        what: str,
        count: bool = True,
        late: bool = False,
        timeless: bool = False,
    ) -> Batch:
        """An arrival evaluated, with its time; one that is ``late`` may have any, or none."""
        if self._clock is not None and not timeless:
            theta, time = self._time_of(self._clock, row, theta, what, late)
            arrivals = self.program.intake.row(row, theta).at(np.array([time]))
            count = not late
        else:
            if _NOW in theta and _NOW not in self.program.intake.by_name:
                raise DataError(
                    f"{what}: now= is for controllers in continuous time, made with program.controller(..., until=...)."
                    if self._clock is None
                    else f"{what}: an arrival's time does not matter here; leave now= out."
                )
            arrivals = self.program.intake.row(row, theta)
        if count:
            self._refuse_beyond(1, arrivals.times)
        return self._checked(self._evaluator.batch(arrivals), fresh=True)

    def _time_of(
        self, clock: Clock, row: Any, theta: Mapping[str, Any], what: str, late: bool
    ) -> tuple[Mapping[str, Any], float]:
        """Keywords that are data, and when an arrival came."""
        column, names = clock.times.column, self.program.intake.by_name
        if _NOW in names and _NOW in theta and row is None and column != _NOW:
            raise DataError(
                f"{what}: this model has data called 'now', so that now= is ambiguous; give the arrival's data as a "
                "mapping."
            )
        given = theta.get(_NOW)
        if given is None and column is not None:
            given = theta.get(column) if isinstance(column, str) else None
            if given is None and isinstance(row, Mapping | pd.Series) and column in row:
                given = row[column]
            elif given is None and hasattr(row, "_asdict"):
                given = row._asdict().get(column)
        kept = {name: value for name, value in theta.items() if name in names or name not in (_NOW, column)}
        if given is None:
            if late:
                return kept, np.nan
            raise DataError(
                f"{what}: this controller runs in continuous time until {self.until!s}; say when the arrival came by "
                f"now={'' if column is None else f', or by {column!r} in a mapping'}."
            )
        number = clock.times.number(given, f"{what}: now")
        last = float(self._live.clock["now"][0])
        if number < (0.0 if late else last):
            raise DataError(
                f"{what}: the arrival came at {given!s}, before "
                + (f"since={clock.times.since!s}." if late or number < 0.0 else f"the last one at {self.now!s}.")
                + " Arrivals come in the order of their times."
            )
        return kept, number

    def _of_frame(self, data: Any, profiles: Any) -> Batch:
        """Arrivals of a frame evaluated, with their times."""
        if self._clock is None:
            return self.program.batch(data, profiles)
        if isinstance(data, Batch):
            raise OptionError("Projected arrivals hold no times; give the data themselves, or step with now=.")
        return self._evaluator.batch(self.timed(self.program.arrivals(data, profiles), data, "steps", to_the_end=False))

    def timed(self, arrivals: Arrivals, data: Any, what: str, to_the_end: bool = True) -> Arrivals:
        """Arrivals with their times, in continuous time; those of the model itself where there is no frame.

        Those after the end are refused where the run is one ``to_the_end``.
        """
        if self._clock is None:
            return arrivals
        times = self._clock.times
        if data is None:
            data = self.program.intake.to_frame(arrivals)
        elif isinstance(data, Mapping):
            data = pd.DataFrame(data)
        numbers = times.of_frame(data, what)
        before = np.concatenate([self._live.clock["now"], numbers[:-1]])
        wrong = numbers < before
        if wrong.any():
            b = int(np.argmax(wrong))
            raise DataError(
                f"{what}: the arrival {arrivals.name(b)!r} came at {times.told(float(numbers[b]))!s}, before "
                + (f"the last one at {times.told(float(before[b]))!s}." if b or self.t else f"since={times.since!s}.")
                + f" Arrivals come in the order of their times; sort them by {times.column!r}."
            )
        if to_the_end and len(numbers) and numbers[-1] > self._live.clock["until"][0]:
            raise DataError(
                f"{what}: an arrival came at {times.told(float(numbers[-1]))!s}, after until={self.until!s}; give a "
                "later end, or leave such arrivals out."
            )
        return arrivals.at(numbers)

    def _projected(self, arrival: ProjectedArrival, theta: Mapping[str, Any]) -> tuple[Batch, int]:
        """The batch of a projected arrival and its place there; alone where steps are not taken number by number."""
        if theta and (self._clock is None or set(theta) != {_NOW}):
            raise DataError("step: a projected arrival has all its data; give no keywords beside it.")
        if self._clock is not None:
            theta, time = self._time_of(self._clock, None, theta, "step", False)
            now = np.array([time])
            self._refuse_beyond(1, now)
            alone = arrival.alone
            return self._checked(alone.of_another(alone.arrivals.at(now), alone.rewards, alone.use)), 0
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

    def _refuse_beyond(self, count: int, times: FloatArray | None = None) -> None:
        live = self._live
        if self._clock is not None:
            assert times is not None
            if not times[-1] > live.clock["until"][0]:
                return
            came, end = self._clock.times.told(float(times[-1])), self.until
            reached = f"The end {end!s} is reached: an arrival came at {came!s}"
            if self.beyond == "error":
                raise HorizonError(f"{reached}; use revise(until=...), or beyond='continue'.")
            if self._warned_of != end:
                self._warned_of = end
                warn_user(
                    f"{reached}; decisions go on at the last price, on what is left. Tell the controller by "
                    "revise(until=...) when the end is.",
                    HorizonWarning,
                )
            return
        if live.t + count <= live.horizon:
            return
        reached = f"The horizon of {live.horizon} arrivals is reached ({live.t} were met, {count} more came)"
        if self.beyond == "error":
            raise HorizonError(f"{reached}; use revise(horizon=...), or beyond='continue'.")
        if self._warned_of != live.horizon:
            self._warned_of = live.horizon
            warn_user(
                f"{reached}; decisions go on at the last price, on what is left. Tell the controller by "
                "revise(horizon=...) how many will come in all.",
                HorizonWarning,
            )

    def _decision(self, outcome: LoopOutcome, t: int) -> Decision:
        reason, reward = REASONS[int(outcome.reasons[0])], float(outcome.rewards[0])
        return Decision(self._given_back(outcome.decided[0]), self._given_back(outcome.wanted[0]), reason, reward, t)

    def _given_back(self, values: FloatArray) -> Any:
        labels = self.program.template.decisions
        if len(labels) == 1 and not labels[0].key:
            return values.item()
        return {label.column: float(value) for label, value in zip(labels, values, strict=True)}
