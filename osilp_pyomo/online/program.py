"""The online program: what was understood of a model, its controllers, replays, and its offline side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import monotonic, perf_counter
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import Shown, some_of
from osilp_pyomo._frames import as_pandas
from osilp_pyomo._options import AUTO, ENGINES, HIGHS, SEED, SOLVER, TIME_LIMIT, whole_number
from osilp_pyomo._reporting import IterationReporter, bar
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.offline.assemble import result_of
from osilp_pyomo.offline.exchange import ExchangeOptions
from osilp_pyomo.offline.late import changed
from osilp_pyomo.offline.methods import solve_by
from osilp_pyomo.offline.results import Result
from osilp_pyomo.online.chunks.replay import replay_chunks
from osilp_pyomo.online.chunks.solve import solve_chunks
from osilp_pyomo.online.chunks.source import Chunks, as_chunks, is_chunked
from osilp_pyomo.online.clock.times import Times
from osilp_pyomo.online.controller import BEYOND, GUARDS, Controller
from osilp_pyomo.online.describe import describe
from osilp_pyomo.online.experience.choose import default_policy, default_text
from osilp_pyomo.online.forecast import Foretold
from osilp_pyomo.online.hindsight.concave import solve_convex
from osilp_pyomo.online.hindsight.lp import stage_lp
from osilp_pyomo.online.hindsight.merge import merge_equal, share_out
from osilp_pyomo.online.loop import LoopOutcome
from osilp_pyomo.online.policies import Policy, view_of
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.runs import Run
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.identity import identity_of
from osilp_pyomo.online.stages.template import StageFamily
from osilp_pyomo.online.warm_start import warm_dual

BUDGETS = ("per_arrival", "total")
OFFLINE = ("exchange", "discretized", "projected")
# Iterations of exchange after which it is given up.
_ITERATIONS = 500


class OnlineProgram(Shown, ProgramData):
    """A model compiled for arrivals that come one by one; made by :func:`compile_online`.

    It holds plain arrays and compiled formulas, no Pyomo model, and can be pickled.

    Attributes
    ----------
    horizon : int
        Arrivals that are expected (T).
    stage_solver : str
        How the problem of a stage is solved.
    default_guard : str
        "pointwise" where guards are allowed, else "none".

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_program
    >>> program = demo_program()
    >>> program
    OnlineProgram: 40 arrivals, 1 decision each, 5 resources of usage; print(program.describe()) tells more
    >>> program.default_guard, program.stage_solver
    ('pointwise', 'closed form: a box')
    >>> program.data.round(3).head(2)
           value  place
    stage
    1      0.625  0.268
    2      0.897  0.880
    >>> controller = program.controller(osilp.MirrorDescent())  # decides arrivals that come one by one
    >>> controller.step(value=0.9, place=0.5).x
    1.0
    >>> run = program.replay(osilp.Resolve())  # the model's own arrivals
    >>> best = program.solve_offline()  # all of them known
    >>> bool(run.objective <= best.objective)
    True
    >>> program.rescaled(4000).horizon, len(program.regridded(osilp.Midpoint(50)).evaluator.functionals[0].points)
    (4000, 50)
    >>> print(program.describe().splitlines()[0])
    40 arrivals are expected; each brings value (a number), place (a number)
    """

    card = "program"

    # -- what it is --------------------------------------------------------------------------------------

    def describe(self) -> str:
        """What was understood of the model, in words."""
        return describe(self, self._own, self.default_guard, default_text(self._default()), self.horizon)

    def _default(self, projected: bool = False, forecast: Any = None) -> tuple[Policy, str]:
        """The policy where none is named, and why."""
        needing = self.needs(POINTWISE)
        return default_policy(self.evaluator, self.solver, self.horizon, needing, projected, forecast is not None)

    def __repr__(self) -> str:
        rows = ", ".join(some_of(list(dict.fromkeys(group.name for group in self.evaluator.groups)), most=4))
        return (
            f"OnlineProgram: {self.horizon} arrivals, {len(self.template.decisions)} decision"
            f"{'s' * (len(self.template.decisions) > 1)} each, {self.evaluator.resources[PROJECTED].size} resources of "
            f"{rows}; "
            "print(program.describe()) tells more"
        )

    # -- online --------------------------------------------------------------------------------------------

    def controller(
        self,
        policy: Policy | None = None,
        guard: str | None = None,
        *,
        null: Any = None,
        warm_start: Any = None,
        forecast: Any = None,
        beyond: str = "continue",
        seed: int = 0,
        log: Any = None,
        until: Any = None,
        since: Any = None,
        time: Any = None,
    ) -> Controller:
        """A controller that meets arrivals one by one.

        Parameters
        ----------
        policy : Policy, optional
            How prices are found, such as ``ExperienceReplay()`` or ``Resolve()``. If not given, the one that lost least
            where it was measured on stages of this kind; ``describe()`` says which and why.
        guard : "pointwise", "projected" or "none", optional
            What keeps decisions within what is left: every grid point, every test function, or nothing. Pointwise
            where that is possible, if not given.
        null : number or mapping, optional
            The decision to fall back to where nothing fits; 0 where that is allowed and uses nothing.
        warm_start : Price, Result, DataFrame or Controller, optional
            A price to begin with: one that is known, that of the offline problem of past arrivals, or that which
            another controller has arrived at.
        forecast : DataFrame, Chunks or Forecast, optional
            Arrivals that are expected, such as those of the last day, in their order: the part after the present one is
            the sample of the arrivals ahead. Its level is corrected by what was seen, and it is left aside while it
            proves wrong. A :class:`Forecast` has times, or no order. For policies that learn from samples.
        beyond : "continue" or "error"
            What to do with arrivals past the horizon: go on at the last price after one warning, or refuse them.
        seed : int
            For what is random: integer decisions on ties, which arrivals a policy goes through again, and the copies of
            a smoothed sample.
        log : int or path, optional
            How many of the last decisions ``controller.log`` holds, or a .csv file that all are appended to.
        until : number or date, optional
            The end, of arrivals that come in continuous time and whose number nobody knows. How many are still to come
            is then estimated: from the horizon of the program, as the number that is expected until the end, from how
            many came when, and from the times of the forecast if it has any.
        since : number or date, optional
            When such arrivals begin to come; 0 if not given.
        time : column, optional
            Which column of frames, forecasts and mappings holds their times; steps by keywords have ``now=``.
        """
        policy = self._default(forecast=forecast)[0] if policy is None else policy
        if not isinstance(policy, Policy):
            hint = f"{policy.__name__}()" if isinstance(policy, type) else "MirrorDescent()"
            raise OptionError(f"controller: policy must be a policy such as {hint} (got {policy!r}).")
        if beyond not in BEYOND:
            raise OptionError(f"controller: beyond must be 'error' or 'continue' (got {beyond!r}).")
        SEED.check(seed, "controller")
        chosen = self._guard(guard, null)
        times = _times_of(until, since, time)
        foretold = read_forecast(self, forecast, (policy,), "controller", time)
        made = Controller(self, policy, chosen, self._null(null), self.horizon, beyond, int(seed), foretold, log, times)
        if warm_start is not None:
            view, read = view_of(policy), self.intake.frame
            size = self.budget_sizes[view]
            made.begin_at(warm_dual(self.evaluator, self.solver, warm_start, view, read, self.horizon, size))
        return made

    def _forecast_frame(self, given: Any, time: Any) -> pd.DataFrame:
        if is_chunked(given):
            given = self._all_of(as_chunks(given), "forecast=", time)
        given = as_pandas(given)
        if not isinstance(given, pd.DataFrame):
            raise OptionError(
                f"forecast= must be a DataFrame of arrivals, Chunks or a Forecast (got {type(given).__name__})."
            )
        return given

    def _guard(self, guard: str | None, null: Any) -> str:
        if guard is None:
            guard = self.default_guard if null is None else "pointwise"
        if guard not in GUARDS:
            raise OptionError(f"guard must be one of {', '.join(map(repr, GUARDS))} (got {guard!r}).")
        if guard != "none" and self.guard_objection is not None:
            raise OptionError(f"guard={guard!r} is not possible, because {self.guard_objection}; use guard='none'.")
        if guard != "none" and null is None and self.null_objection is not None:
            raise OptionError(
                f"guard={guard!r} is not possible, because {self.null_objection}; name a null action by null=..., or "
                "use guard='none'."
            )
        return guard

    def _null(self, null: Any) -> FloatArray:
        labels = self.template.decisions
        if null is None:
            return np.zeros(len(labels))
        if isinstance(null, Mapping):
            unknown = set(null) - {label.column for label in labels}
            if unknown:
                raise OptionError(f"null=: there is no decision {sorted(map(str, unknown))[0]!r}.")
            null = [null.get(label.column, 0.0) for label in labels]
        try:
            values = np.broadcast_to(np.asarray(null, dtype=float), len(labels)).copy()
        except (TypeError, ValueError):
            raise OptionError(
                f"null=: the null action must be a number, or {len(labels)} of them, or a mapping by variable (got "
                f"{null!r})."
            ) from None
        if not np.all(np.isfinite(values)):
            raise OptionError("null=: the null action must be finite numbers.")
        if values.any() and (row := self.null_use(values)) is not None:
            raise OptionError(
                f"null=: this action uses something of '{row}', so that falling back to it would overrun what it is to "
                "guard; name one that uses nothing."
            )
        return values

    def replay(
        self,
        policy: Policy | None = None,
        data: Any = None,
        guard: str | None = None,
        *,
        profiles: Mapping[str, Any] | None = None,
        null: Any = None,
        warm_start: Any = None,
        forecast: Any = None,
        seed: int = 0,
        write: Any = None,
        progress: bool = True,
        until: Any = None,
        since: Any = None,
        time: Any = None,
    ) -> Any:
        """Decide many arrivals in order, at kernel speed: the model's own, those of a frame, projected ones, or chunks.

        The decisions are those of single steps, up to rounding. Arrivals are evaluated and projected in blocks; the
        horizon is the program's, so that fewer arrivals are the beginning of a run.

        Parameters
        ----------
        policy, guard, null, warm_start, forecast, seed, until, since, time
            As in :meth:`controller`.
        data : DataFrame, what :meth:`project` gave, path, Chunks or iterator of DataFrames, optional
            The model's own arrivals if not given. Those of files and iterators are read and forgotten chunk by chunk.
        profiles : dict, optional
            Curves of Profiles, one array (arrivals, points) each.
        write : path, optional
            A .parquet or .csv file for the decisions of arrivals in chunks.
        progress : bool
            Show progress: a bar where it takes more than two seconds; in a log a line each half minute.

        Returns
        -------
        Run, or LongRun for arrivals in chunks
        """
        started = perf_counter()
        policy = self._default(isinstance(data, Batch), forecast)[0] if policy is None else policy
        asked = {"null": null, "warm_start": warm_start, "forecast": forecast, "seed": seed}
        asked |= {"until": until, "since": since, "time": time}
        if is_chunked(data) or write is not None:
            self._refuse_beside_chunks("replay", data, profiles)
            controller = self.controller(policy, guard, **asked)
            return replay_chunks(self, controller, as_chunks(data), write, progress)
        projected = data if isinstance(data, Batch) else None
        arrivals = self.arrivals(data, profiles) if projected is None else projected.arrivals
        if not len(arrivals):
            raise DataError("replay: there are no arrivals.")
        if len(arrivals) > self.horizon and until is None:
            raise DataError(
                f"replay: {len(arrivals)} arrivals came where the program expects {self.horizon}; compile with "
                "horizon=, or use program.rescaled(horizon)."
            )
        if projected is not None:
            self._refuse_projected(policy, guard, null)
            guard = "none" if guard is None else guard
            if until is not None:
                raise OptionError("replay: projected arrivals hold no times; give the data themselves beside until=.")
        anew = partial(self.controller, policy, guard, **asked)
        controller = anew()
        arrivals = controller.timed(arrivals, data, "replay")
        outcomes = []
        with bar(progress, total=len(arrivals), desc="replay", unit=" arrivals") as shown:
            for batch in self.evaluator.batches(arrivals) if projected is None else [projected]:
                outcomes.append(controller.meet(batch))
                shown.update(len(batch))
        outcome, seconds = LoopOutcome.concat(outcomes), perf_counter() - started
        return Run(self.evaluator, controller, arrivals, outcome, seconds, projected is not None, anew)

    def _all_of(self, chunks: Chunks, what: str, time: Any = None) -> pd.DataFrame:
        """All arrivals of chunks as one frame, each looked at by itself; of files with a column of times."""
        frames = list(chunks.frames(self.intake.columns if time is None else {**self.intake.columns, str(time): time}))
        if not frames:
            raise DataError(f"{what}: there are no arrivals.")
        for frame in frames:
            self.intake.frame(frame)
        return pd.concat(frames)

    def _refuse_beside_chunks(self, what: str, data: Any, profiles: Any) -> None:
        if data is None or isinstance(data, Batch) or profiles is not None:
            raise OptionError(
                f"{what}: arrivals in chunks come as a path, Chunks or DataFrames whose columns hold everything; leave "
                "profiles= and write= out for others."
            )

    def _refuse_projected(self, policy: Policy, guard: str | None, null: Any) -> None:
        if view_of(policy) == POINTWISE or guard == "pointwise":
            raise OptionError(
                "replay: projected arrivals do not say what they use at single points; use guard='projected' or 'none' "
                "and a policy on test functions, or replay the data themselves."
            )

    def rescaled(self, horizon: int, budget: str = "per_arrival") -> OnlineProgram:
        """The same program for another number of arrivals.

        Parameters
        ----------
        horizon : int
            How many arrivals will come.
        budget : "per_arrival" or "total"
            Whether all limits grow with the horizon, so that an arrival has the same share as before, or stay.
        """
        horizon = whole_number(horizon, "rescaled: horizon", 2)
        if budget not in BUDGETS:
            raise OptionError(f"rescaled: budget must be 'per_arrival' or 'total' (got {budget!r}).")
        if budget == "total":
            return self._on(self.evaluator, horizon)
        return self._on(self.evaluator.rescaled(horizon / self.horizon), horizon)

    def regridded(self, grid: Any) -> OnlineProgram:
        """The same program, its index seen on other points; ``grid`` as in :func:`compile_online`."""
        bases = {family.name: placed.basis for family, placed in self._families()}
        return self._on(Evaluator.of(self.template, grid, bases), self.horizon)

    def _families(self) -> Iterator[tuple[StageFamily, Functionals]]:
        return zip(self.template.families, self.evaluator.functionals, strict=True)

    def _on(self, evaluator: Evaluator, horizon: int) -> OnlineProgram:
        solver = self.solver if evaluator is self.evaluator else self.solver.on(evaluator)
        return OnlineProgram(evaluator.template, self._own, horizon, evaluator, solver, self.curvature)

    # -- offline -------------------------------------------------------------------------------------------

    def solve_offline(
        self,
        data: Any = None,
        method: str = "exchange",
        *,
        profiles: Mapping[str, Any] | None = None,
        tolerance: float = 1e-9,
        time_limit: float | None = None,
        solver: str = AUTO,
        write: Any = None,
        cache: Any = None,
        executor: Any = None,
        progress: bool = True,
    ) -> Result:
        """The offline optimum of arrivals, all known at once, without building a Pyomo model of them.

        Parameters
        ----------
        data : DataFrame, path, Chunks or iterator of DataFrames, optional
            Arrivals; the model's own if not given. "projected" sweeps those of files and iterators chunk by chunk, and
            never holds them in memory together; the other methods read them all.
        method : "exchange", "discretized" or "projected"
            R*_T, exact over the continuum; R*_m, at the points of the program's grid, or R*_Phi, on its test
            functions, which are bounds. Convex stages know no "discretized".
        profiles : dict, optional
            Curves of Profiles.
        tolerance, time_limit, solver, progress
            As in :func:`osilp_pyomo.solve`.
        write : path, optional
            A .parquet or .csv file for the decisions of arrivals in chunks.
        cache : path, optional
            A folder for column blocks of Parquet files, which stay there and serve again while program and files are
            the same; on a cluster one that all workers see. A temporary one if not given.
        executor : int, Executor or dask client, optional
            Where passes over chunks run: in so many processes, on any executor of concurrent.futures, or on a cluster.

        Returns
        -------
        Result
            Values are called "variable @ arrival". Arrivals with the same data get the same decisions, unless those
            are whole numbers.
        """
        started = monotonic()
        if method not in OFFLINE:
            raise OptionError(f"solve_offline: method must be one of {', '.join(OFFLINE)} (got {method!r}).")
        SOLVER.check(solver, "solve_offline")
        TIME_LIMIT.check(time_limit, "solve_offline")
        if is_chunked(data):
            self._refuse_beside_chunks("solve_offline", data, profiles)
            if method == "projected" and solver in (HIGHS, *ENGINES):
                raise OptionError(
                    f"solve_offline: arrivals in chunks are never all columns of one LP; leave solver={solver!r} out, "
                    "or give them as one DataFrame."
                )
            if method == "projected":
                return solve_chunks(
                    self, as_chunks(data), write=write, cache=cache, executor=executor, time_limit=time_limit,
                    progress=progress,
                )  # fmt: skip
            data = self._all_of(as_chunks(data), "solve_offline")
        for name, value in (("write", write), ("cache", cache), ("executor", executor)):
            if value is not None:
                raise OptionError(
                    f"solve_offline: {name}= is for method='projected' with arrivals in chunks, such as a path."
                )
        arrivals = self.arrivals(data, profiles)
        if not len(arrivals):
            raise DataError("solve_offline: there are no arrivals.")
        if not self.template.linear:
            if method == "discretized":
                raise OptionError(
                    "solve_offline: method='discretized' is for linear stages only; use 'exchange' or 'projected'."
                )
            null = np.zeros(len(self.template.decisions)) if self.idle_objection is None else None
            convex = solve_convex(self.evaluator, self.solver, arrivals, null, method, started)
            return changed(convex, solved_for=identity_of(self.evaluator, arrivals))
        merged = merge_equal(arrivals, self.template)
        problem = stage_lp(self.evaluator, merged.arrivals, merged.counts)
        with IterationReporter(method, False, progress) as report:
            options = ExchangeOptions(tolerance, _ITERATIONS, time_limit, report, solver=solver)
            placed = self.evaluator.functionals if method == "projected" else self.evaluator.grids
            solved = solve_by(method, problem, placed, options)
        result = share_out(
            result_of(problem, method, solved, monotonic() - started), merged, self.template, arrivals.index
        )
        return changed(result, solved_for=identity_of(self.evaluator, arrivals))


def _times_of(until: Any, since: Any, time: Any) -> Times | None:
    """The times of a run in continuous time, if it has an end."""
    if until is not None:
        return Times.of(since, until, time)
    for name, given in (("since", since), ("time", time)):
        if given is not None:
            raise OptionError(f"{name}= is for arrivals in continuous time; say by until= when they end.")
    return None


def read_forecast(
    program: OnlineProgram, given: Any, policies: Sequence[Policy], what: str, time: Any = None
) -> Foretold | None:
    """What was given as a forecast, read; refused where no policy learns from samples."""
    if given is None or isinstance(given, Foretold):
        return given
    if not any(policy.foresees for policy in policies):
        raise OptionError(
            f"{what}: forecast= is for policies that learn from a sample of arrivals, such as Resolve() (got "
            f"{', '.join(map(repr, policies))}); give those arrivals as warm_start=, which begins at their price."
        )
    return Foretold.of(given, program._forecast_frame, program.intake.frame, time)
