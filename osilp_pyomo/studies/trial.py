"""One trial of a study: arrivals are drawn, their offline optima found, and every policy meets them.

A :class:`Plan` is all that a trial needs, plain arrays and formulas without a Pyomo model, so that it can travel to
another process or machine. What a trial gives back are records of numbers and texts, one dictionary per row of a frame.
Arrivals are evaluated and projected once for all policies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._reporting import collecting_warnings
from osilp_pyomo.errors import DataError, OsilpError
from osilp_pyomo.offline.prices import AtomicPrice, Price
from osilp_pyomo.offline.results import FamilyMap, Result
from osilp_pyomo.online.controller import Controller
from osilp_pyomo.online.forecast import Foretold
from osilp_pyomo.online.loop import LoopOutcome
from osilp_pyomo.online.over_time import moments_of, use_over_time
from osilp_pyomo.online.policies import Policy
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.runs import BENCHMARKS, Run, violations_between
from osilp_pyomo.online.stages.batch import PROJECTED, Batch
from osilp_pyomo.online.stages.template import Arrivals
from osilp_pyomo.studies.losses import earned_by, losses_against
from osilp_pyomo.studies.orders import CHANGING, ranked, ranked_by

ORDERS = ("given", "permutation", "iid", *CHANGING)
#: The frames that a study is made of.
FRAMES = ("runs", "rows", "offline", "paths", "curves", "iterations", "losses")

Records = dict[str, list[dict[str, Any]]]

# Moments of a run that paths are told at.
_MOMENTS = 40
# Points of the index that uses and prices are told at, and moments at which prices are.
_CURVE = 2000
_PRICE_POINTS = 201
_PRICED = (0.1, 0.5, 0.9)
# Points and moments at which use is told while arrivals come.
_SO_FAR = 120
# Atoms are spread by this share of the index, to be drawn beside densities.
_SPREAD = 0.02


@dataclass(frozen=True)
class Entrant:
    """A policy with the guard that it runs under, and what it is called."""

    name: str
    policy: Policy
    guard: str


@dataclass(frozen=True)
class Job:
    """One trial: for how many arrivals, on which grid (by number), and the number of the trial."""

    horizon: int
    grid: int
    trial: int


@dataclass(frozen=True, eq=False)
class Plan:
    """All that the trials of a study need.

    ``source`` holds the arrivals to choose from, or ``sampler`` draws them; ``order`` says how the arrivals of a trial
    are made of those, and ``by`` what they are ranked by where it changes with time. ``grids`` are as in
    ``compile_online``; None stands for the program's own.
    """

    program: OnlineProgram
    entrants: tuple[Entrant, ...]
    source: Arrivals | None
    sampler: Callable[[np.random.Generator, int], Any] | None
    order: str
    horizons: tuple[int, ...]
    grids: tuple[Any, ...]
    benchmarks: tuple[str, ...]
    budget: str
    null: Any
    seed: int
    foretold: Foretold | None = None
    by: Any = None

    def forecast_of(self, entrant: Entrant) -> Foretold | None:
        """The forecast, for policies that learn from samples; others have no use for it."""
        return self.foretold if entrant.policy.foresees else None

    def jobs(self, trials: int) -> list[Job]:
        """All trials of the study, the cheaper horizons first."""
        return [
            Job(horizon, grid, trial)
            for horizon in sorted(self.horizons)
            for grid in range(len(self.grids))
            for trial in range(trials)
        ]

    def program_for(self, horizon: int, grid: int) -> OnlineProgram:
        """The program for a horizon and a grid."""
        program = self.program
        if self.grids[grid] is not None:
            program = program.regridded(self.grids[grid])
        return program if horizon == program.horizon else program.rescaled(horizon, self.budget)

    def arrivals_for(self, job: Job) -> Arrivals:
        """The arrivals of a trial; the same on every grid."""
        random = np.random.default_rng([self.seed, job.trial, job.horizon])
        source = self.source if self.sampler is None else self._sampled(random, job.horizon)
        assert source is not None
        if self.order == "iid":
            return source.take(random.integers(len(source), size=job.horizon))
        if len(source) < job.horizon:
            raise DataError(
                f"compare: {len(source)} arrivals are there where {job.horizon} are needed; give horizons= of at most "
                f"{len(source)}, or draw with replacement by order='iid'."
            )
        if self.order == "permutation":
            return source.take(random.permutation(len(source))[: job.horizon])
        if self.order in CHANGING:
            some = source.take(random.permutation(len(source))[: job.horizon])
            return some.take(ranked(ranked_by(self.program, self.by, some), self.order, random))
        return source.take(np.arange(job.horizon))

    def _sampled(self, random: np.random.Generator, horizon: int) -> Arrivals:
        assert self.sampler is not None
        drawn = self.sampler(random, horizon)
        data, profiles = drawn if isinstance(drawn, tuple) and len(drawn) == 2 else (drawn, None)
        if data is None:
            raise DataError(
                "compare: sampler(rng, horizon) gave None; it must return a DataFrame with one row an arrival, or a "
                "pair of that and the curves of Profiles."
            )
        found = self.program.arrivals(data, profiles)
        if not len(found):
            raise DataError("compare: sampler(rng, horizon) gave no arrivals; give a DataFrame with one row each.")
        if self.order == "given" and len(found) != horizon:
            raise DataError(
                f"compare: sampler(rng, horizon) gave {len(found)} arrivals where {horizon} were asked for; draw as "
                "many as the horizon, or let order='iid' or 'permutation' choose among them."
            )
        return found


def run_trial(plan: Plan, job: Job) -> Records:
    """Run one trial; the records of each frame, and under "warnings" what was said on the way."""
    # How many threads BLAS has here or elsewhere must not change a bit of the numbers.
    with threadpool_limits(1, user_api="blas"), collecting_warnings() as said:
        try:
            records = _Trial(plan, job).records()
        except OsilpError as error:
            error.add_note(f"(trial {job.trial}, {job.horizon} arrivals)")
            raise
    where = f"trial {job.trial}, {job.horizon} arrivals"
    records["warnings"] = [{"text": f"{where}: {text}"} for text in dict.fromkeys(said)]
    return records


class _Trial:
    """What happens in one trial, step by step."""

    def __init__(self, plan: Plan, job: Job) -> None:
        self.plan, self.job = plan, job
        self.program = plan.program_for(job.horizon, job.grid)
        self.arrivals = plan.arrivals_for(job)
        self.points = sum(len(grid) for grid in self.program.evaluator.grids)
        self.key = {"trial": job.trial, "horizon": job.horizon, "grid": job.grid, "points": self.points}
        # Whole curves are kept of the first trial only.
        self.tells_curves = job.trial == 0

    def records(self) -> Records:
        self.frames: Records = {name: [] for name in FRAMES}
        optima = {name: self._optimum(name) for name in self.plan.benchmarks}
        # That of the optimum which keeps the most rows is the path to compare with.
        answered = {name: optima[name] for name in BENCHMARKS if name in optima and optima[name].answer is not None}
        best = next(iter(answered.values()), None)
        self.hindsight = None if best is None else earned_by(self.program.evaluator, self.arrivals, best).cumsum()
        told = losses_against(self.program.evaluator, self.arrivals, answered)
        runs = self._replays()
        between = violations_between(self.program.evaluator, self.arrivals, [run.decided for run in runs])
        for entrant, run, found in zip(self.plan.entrants, runs, between, strict=True):
            self._record_run(entrant, run, optima, found)
            if told is not None:
                for part, value in told.of(run.decided, run.reasons.to_numpy()).items():
                    self.frames["losses"].append({
                        **self.key, "policy": entrant.name, "guard": entrant.guard, "benchmark": told.benchmark,
                        "part": part, "value": value,
                    })  # fmt: skip
        if self.tells_curves:
            self._record_use(runs, optima)
        if self.tells_curves and self.job.grid == 0 and self.job.horizon == max(self.plan.horizons):
            self._record_use_so_far(runs)
        return self.frames

    def _optimum(self, method: str) -> Result:
        found = self.program.solve_offline(self.arrivals, method, progress=False)
        self.frames["offline"].append({
            **self.key, "benchmark": method, "status": found.status, "objective": found.objective,
            "bound": found.bound, "violation": _largest(found.violation) if found.answer is not None else np.nan,
            "rows": found.rows, "seconds": found.seconds,
        })  # fmt: skip
        if self.tells_curves:
            if method == "exchange" and "bound" in found.log:
                for record in found.log.to_dict("records"):
                    told = {name: float(record[name]) for name in ("iteration", "bound", "violation", "rows")}
                    self.frames["iterations"].append({**self.key, **told, "objective": found.objective})
            if found.answer is not None and found.answer.price is not None:
                self._record_price(found.price, f"offline, {method}", "", self.job.horizon)
        return found

    def _replays(self) -> list[Run]:
        """Every entrant on the same arrivals, which are evaluated and projected once for all of them."""
        program, arrivals, plan = self.program, self.arrivals, self.plan
        # A first look compiles what is compiled, so that no step's time holds that.
        self._meet(self._controllers(), program.evaluator.batch(arrivals.part(slice(0, 2))))
        controllers = self._controllers()
        outcomes: list[list[LoopOutcome]] = [[] for _ in controllers]
        used: list[list[FloatArray]] = [[] for _ in controllers]
        spent = np.zeros(len(controllers))
        for start, stop, priced in self._segments():
            batch = program.evaluator.batch(arrivals.part(slice(start, stop)))
            found, seconds = self._meet(controllers, batch)
            spent += seconds
            for number, outcome in enumerate(found):
                before = used[number][-1][-1] if used[number] else 0.0
                outcomes[number].append(outcome)
                used[number].append(before + program.evaluator.used(batch, outcome.decided).cumsum(axis=0))
            if priced:
                for entrant, controller in zip(plan.entrants, controllers, strict=True):
                    self._record_price(controller.price, entrant.name, entrant.guard, controller.t)
        runs = []
        for number, (entrant, controller) in enumerate(zip(plan.entrants, controllers, strict=True)):
            whole = LoopOutcome.concat(outcomes[number])
            self._record_path(entrant, whole.rewards, np.concatenate(used[number]))
            runs.append(Run(program.evaluator, controller, arrivals, whole, float(spent[number])))
        return runs

    def _controllers(self) -> list[Controller]:
        # Coins for integer decisions on ties differ between trials.
        seed = int(np.random.SeedSequence([self.plan.seed, self.job.trial]).generate_state(1)[0])
        return [
            self.program.controller(
                entrant.policy, entrant.guard, null=self.plan.null, forecast=self.plan.forecast_of(entrant), seed=seed
            )
            for entrant in self.plan.entrants
        ]

    def _meet(self, controllers: Sequence[Controller], batch: Batch) -> tuple[list[LoopOutcome], FloatArray]:
        found, seconds = [], []
        for controller in controllers:
            started = time.perf_counter()
            found.append(controller.meet(batch))
            seconds.append(time.perf_counter() - started)
        return found, np.array(seconds)

    def _segments(self) -> Iterator[tuple[int, int, bool]]:
        """Parts of the arrivals, as long as memory allows; in the first trial cut where prices are told."""
        count = self.job.horizon
        priced = {max(1, round(share * count)) for share in _PRICED} if self.tells_curves else set()
        cuts = sorted({*priced, *range(0, count, self.program.evaluator.block), count} - {0})
        for start, stop in zip([0, *cuts[:-1]], cuts, strict=True):
            yield start, stop, stop in priced

    # -- records ---------------------------------------------------------------------------------------------

    def _record_path(self, entrant: Entrant, rewards: FloatArray, used: FloatArray) -> None:
        """How a run went: what was earned, and the use (T, R) of the resources, after each arrival."""
        count, earned = len(rewards), rewards.cumsum()
        total = self.program.evaluator.resources[PROJECTED].total
        for t in moments_of(count, _MOMENTS):
            shares = used[t - 1][total > 0] / total[total > 0]
            self.frames["paths"].append({
                **self.key, "policy": entrant.name, "guard": entrant.guard, "t": t, "reward": float(earned[t - 1]),
                "used": float(shares.mean()) if len(shares) else np.nan,
                "most_used": float(shares.max(initial=-np.inf)),
                "hindsight": np.nan if self.hindsight is None else float(self.hindsight[t - 1]),
            })  # fmt: skip

    def _left(self, remaining: FloatArray) -> FloatArray:
        """Shares of the budgets > 0 that are left."""
        total = self.program.evaluator.resources[PROJECTED].total
        return remaining[total > 0] / total[total > 0]

    def _record_run(
        self, entrant: Entrant, run: Run, optima: Mapping[str, Result], between: Mapping[str, float]
    ) -> None:
        """All measures of a run, and the violation of each row of the model."""
        left = self._left(run.projected_remaining)
        record: dict[str, Any] = {
            **self.key, "policy": entrant.name, "guard": entrant.guard, "reward": run.objective,
        }  # fmt: skip
        for name, found in optima.items():
            regret = run.shortfall(found)
            record[f"relative_regret_{name}"], record[f"regret_{name}"] = regret.relative, regret.value
        record.update({
            "violation": max((use.violation for use in run.uses), default=0.0),
            "relative_violation": max((use.relative for use in run.uses), default=0.0),
            "overrun_points": sum(use.overrun for use in run.uses),
            "violation_between": max(between.values(), default=0.0),
            "test_violation": run.test_violation,
            "row_violation": float(run.row_violation.max()) if len(run.row_violation) else 0.0,
            "remaining": float(left.mean()) if len(left) else np.nan,
            "least_remaining": float(left.min()) if len(left) else np.nan,
            "guarded": float(run.reasons.isin(["guard", "null", "overrun"]).mean()),
            "step_microseconds": 1e6 * run.seconds / len(run.reasons),
        })  # fmt: skip
        record.update({f"seconds_{name}": found.seconds for name, found in optima.items()})
        self.frames["runs"].append(record)
        for use in run.uses:
            self.frames["rows"].append({
                **self.key, "policy": entrant.name, "guard": entrant.guard, "row": use.name,
                "violation": use.violation, "relative_violation": use.relative, "overrun_points": use.overrun,
                "violation_between": between[use.name], "worst_index": str(use.worst_index),
            })  # fmt: skip
        for row, over in run.row_violation.items():
            self.frames["rows"].append({
                **self.key, "policy": entrant.name, "guard": entrant.guard, "row": str(row), "violation": float(over),
                "relative_violation": np.nan, "overrun_points": int(over > 0), "violation_between": np.nan,
                "worst_index": "",
            })  # fmt: skip

    def _record_use(self, runs: Sequence[Run], optima: Mapping[str, Result]) -> None:
        """Use minus limit over the index, of every run and of every offline optimum."""
        evaluator = self.program.evaluator
        width = len(self.program.template.decisions)
        offline = {
            f"offline, {name}": found.values.to_numpy().reshape(-1, width)
            for name, found in optima.items()
            if found.answer is not None
        }
        labels = [(entrant.name, entrant.guard) for entrant in self.plan.entrants]
        labels += [(name, "") for name in offline]
        decisions = [*(run.decided for run in runs), *offline.values()]
        for number, family in enumerate(evaluator.template.families):
            points = evaluator.points[number]
            order = _order_told(points)
            uses = evaluator.all_at_points(family, self.arrivals, decisions, points[order])
            for group in evaluator.groups:
                if group.family != number:
                    continue
                limit = evaluator.limit(group, points[order])
                side = "limit" if len(family.sides) == 1 else "upper limit" if group.sign > 0 else "lower limit"
                self._record_curve(side, "", "", family.name, points[order], limit)
                if group.sign < 0 and len(family.sides) > 1:
                    continue
                for (name, guard), use in zip(labels, uses, strict=True):
                    self._record_curve("use", name, guard, family.name, points[order], use)

    def _record_use_so_far(self, runs: Sequence[Run]) -> None:
        """Use along an index of one axis while arrivals came, at every second moment of the paths, for pages."""
        evaluator = self.program.evaluator
        moments = moments_of(self.job.horizon, _MOMENTS)[::-2][::-1]
        decisions = [run.decided for run in runs]
        for number, family in enumerate(evaluator.template.families):
            points = evaluator.points[number]
            if points.shape[1] > 1:
                continue
            told = _order_told(points)
            points = points[told[:: max(1, len(told) // _SO_FAR)]]
            uses = use_over_time(evaluator, family, self.arrivals, decisions, points, moments)
            for entrant, use in zip(self.plan.entrants, uses, strict=True):
                for t, values in zip(moments, use, strict=True):
                    self._record_curve("use so far", entrant.name, entrant.guard, family.name, points, values, t)

    def _record_price(self, price: Any, policy: str, guard: str, t: int) -> None:
        """A price as a density along the index; of several dimensions along the first."""
        for each in price.values() if isinstance(price, FamilyMap) else [price]:
            at, density = _density(each)
            self._record_curve("price", policy, guard, each.family, at[:, None], density, t)

    def _record_curve(
        self, kind: str, policy: str, guard: str, row: str, points: FloatArray, values: FloatArray, t: int | None = None
    ) -> None:
        t = self.job.horizon if t is None else t
        for point, value in zip(points[:, 0].tolist(), values.tolist(), strict=True):
            self.frames["curves"].append({
                **self.key, "kind": kind, "policy": policy, "guard": guard, "row": row, "t": t, "at": point,
                "value": value,
            })  # fmt: skip


def _order_told(points: FloatArray) -> Any:
    """Places of points in order along the index, as many as are told."""
    return np.lexsort(points.T[::-1])[:: max(1, len(points) // _CURVE)]


def _density(price: Price) -> tuple[FloatArray, FloatArray]:
    """A price along the first axis of its index: places, and mass per unit there."""
    low, high = float(price.domain.lower[0]), float(price.domain.upper[0])
    if price.domain.dimension > 1:
        masses, edges = np.histogram(price.points[:, 0], bins=40, range=(low, high), weights=price.masses)
        return (edges[1:] + edges[:-1]) / 2, masses / np.diff(edges)
    at = np.linspace(low, high, _PRICE_POINTS)
    if isinstance(price, AtomicPrice):
        price = price.smooth(_SPREAD * (high - low))
    return at, np.asarray(price(at), dtype=float)


def _largest(violation: Any) -> float:
    return float(max(violation.values(), default=0.0)) if isinstance(violation, FamilyMap) else float(violation)
