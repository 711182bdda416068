"""Runs: what a policy did with many arrivals, and how good that was."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import MOST_SHOWN, Shown, cut, draw, page_of
from osilp_pyomo._files import page_path, write_text_at_once
from osilp_pyomo._options import whole_number
from osilp_pyomo.errors import OptionError
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.offline.audit import audit_points
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.results import FamilyMap, Result
from osilp_pyomo.online.controller import REASONS, Controller
from osilp_pyomo.online.loop import LoopOutcome
from osilp_pyomo.online.policies import view_of
from osilp_pyomo.online.service.along_index import left_along_index
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED
from osilp_pyomo.online.stages.evaluator import Evaluator, ResourceGroup
from osilp_pyomo.online.stages.identity import DataMoments, Identity, ModelIdentity, identity_of
from osilp_pyomo.online.stages.intake import Intake
from osilp_pyomo.online.stages.template import Arrivals

# Why decisions were taken, as the end of "so many ...".
_WHY = {
    "priced": "as the price asked",
    "tie": "on a tie",
    "guard": "changed to what fitted",
    "null": "refused, for nothing fitted",
    "overrun": "served though nothing fitted",
}
#: What each offline method stands for as a benchmark.
BENCHMARKS = {
    "column_generation": "R*_T (the best of all policies)",
    "counterpart": "R*_T (exact, by its counterpart)",
    "exchange": "R*_T (exact over the continuum)",
    "discretized": "R*_m (at the points of the grid)",
    "projected": "R*_Phi (on the test functions)",
}


@dataclass(frozen=True)
class Regret(Shown):
    """How much less a run earned than a benchmark, which is named.

    ``relative`` is a share of the benchmark's size. A negative regret means that the run broke rows that the benchmark
    keeps, or that the benchmark is a problem with more rows than the run was held to.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> m = demo_model(arrivals=40)
    >>> program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5))
    >>> regret = program.replay(osilp.Resolve()).regret(osilp.solve(m))
    >>> regret.benchmark
    'R*_T (exact over the continuum)'
    """

    card = "regret"

    value: float
    relative: float
    benchmark: str

    def __str__(self) -> str:
        return f"regret {self.value:.6g} ({100 * self.relative:.4g} %) against {self.benchmark}"


@dataclass(frozen=True, eq=False)
class RowUse:
    """How far one row was kept at the points of the grid.

    ``overrun`` is how many of those points are overrun; ``relative`` divides by ``max(|b(u)|, median |b|)``;
    ``excess`` is use minus limit at each of them.
    """

    name: str
    violation: float
    relative: float
    worst_index: Any
    overrun: int
    excess: FloatArray

    @property
    def share(self) -> float:
        """Which share of the points is overrun."""
        return self.overrun / len(self.excess)


class RunSummary(Shown, ABC):
    """What is known of a run however long it was; what :class:`Run` and :class:`LongRun` share.

    Attributes
    ----------
    objective : float
        The model's objective at the decisions.
    counts : dict
        How many decisions have each reason.
    price
        The last price, a measure on the index.
    remaining : Series
        What is left of each resource against its test function.
    policy, guard, seconds
        What was run, and how long it took.
    """

    card = "run"

    def __init__(
        self,
        evaluator: Evaluator,
        controller: Controller,
        earned: float,
        reasons: Any,
        seconds: float,
        projected: bool,
        point_use: FloatArray,
    ) -> None:
        self._evaluator, self._projected = evaluator, projected
        self._counted, self._remaining = controller.point_remaining, controller.projected_remaining
        # What a guard counts between points is there to keep the index, and is no use at points.
        total = evaluator.resources[POINTWISE].total
        self._point_remaining = total - point_use.sum(axis=0) if len(point_use) else self._counted
        self.objective = earned + evaluator.template.offset
        self.sense = "maximize" if evaluator.template.maximize else "minimize"
        self.counts = {reason: int(count) for reason, count in zip(REASONS, reasons, strict=True) if count}
        self.policy, self.guard = repr(controller.policy), controller.guard
        self._gaps = controller.gaps
        self.price, self.remaining = controller.price, controller.remaining
        self.dual, self._view = controller.dual, view_of(controller.policy)
        self.seconds = seconds
        self.horizon = controller.horizon
        self.until = controller.until

    @property
    def projected_remaining(self) -> FloatArray:
        """What is left of each resource of a test function or ordinary row, in the coordinates of the dual."""
        return self._remaining

    def _row_prices(self) -> dict[str, float]:
        """The last price of each ordinary row over all stages, d objective / d right-hand side."""
        found: dict[str, float] = {}
        sense = 1.0 if self.sense == "maximize" else -1.0
        for group in self._evaluator.groups:
            if group.family is None:
                at, unit = group.slices[self._view], self._evaluator.resources[self._view].unit
                price = sense * group.sign * float(self.dual[at][0] / unit[at][0])
                found[group.name] = found.get(group.name, 0.0) + price
        return found

    @cached_property
    def uses(self) -> tuple[RowUse, ...]:
        """How far each semi-infinite row was kept at the points of the grid; nothing for projected arrivals."""
        if self._projected:
            return ()
        return tuple(self._use(number) for number in range(len(self._evaluator.template.families)))

    def _use(self, number: int) -> RowUse:
        evaluator, family = self._evaluator, self._evaluator.template.families[number]
        groups = [group for group in evaluator.groups if group.family == number]
        excess = np.max([-self._point_remaining[group.slices[POINTWISE]] for group in groups], axis=0)
        limits = np.max([np.abs(evaluator.limit(group)) for group in groups], axis=0)
        scale = np.maximum(limits, np.median(limits))
        scale = np.where(scale > 0, scale, 1.0)
        # What rounding leaves of a budget that was used up is no violation.
        excess = np.where(excess > 1e-10 * scale, excess, np.minimum(excess, 0.0))
        worst = int(np.argmax(excess))
        return RowUse(
            family.name,
            max(0.0, float(excess[worst])),
            max(0.0, float(np.max(excess / scale))),
            family.domain.label(evaluator.points[number][worst]),
            int(np.sum(excess > 0)),
            excess,
        )

    def _by_row(self, name: str) -> Any:
        entries = {use.name: getattr(use, name) for use in self.uses}
        if not entries:
            return None
        return next(iter(entries.values())) if len(entries) == 1 else FamilyMap(entries)

    @property
    def violation(self) -> Any:
        """Largest overrun of a semi-infinite row at a grid point; keyed by row where there are several."""
        return self._by_row("violation")

    @property
    def relative_violation(self) -> Any:
        """Largest overrun relative to ``max(|b(u)|, median |b|)``."""
        return self._by_row("relative")

    @property
    def worst_index(self) -> Any:
        """Where a row is overrun most, or comes nearest to it."""
        return self._by_row("worst_index")

    @cached_property
    def test_violation(self) -> float:
        """The paper's v: the largest ``<u, Ax - b>`` over ``u = Phi w, w >= 0, |u| = 1``, an average over the index.

        That is the norm of the projection of Ax - b on the cone of Phi, by NNLS, with the quadrature weights as the
        measure; the largest over rows. It can read zero while single points are overrun.
        """
        if self._projected:
            return float("nan")
        families = [group for group in self._evaluator.groups if group.family is not None]
        return max(0.0, *(self._tested(group) for group in families)) if families else 0.0

    @cached_property
    def row_violation(self) -> pd.Series:
        """By how much each ordinary row over all stages is overrun."""
        found: dict[str, float] = {}
        for group in self._evaluator.groups:
            if group.family is None:
                # Ordinary rows are the same among the points and among the test functions.
                at, unit = group.slices[PROJECTED], self._evaluator.resources[PROJECTED].unit
                left = float(self._remaining[at][0] * unit[at][0])
                over = abs(left) if group.equality else max(0.0, -left)
                found[group.name] = max(found.get(group.name, 0.0), over)
        return pd.Series(found, name="violation", dtype=float)

    def _tested(self, group: ResourceGroup) -> float:
        assert group.family is not None
        excess = -self._point_remaining[group.slices[POINTWISE]]
        grid, functionals = self._evaluator.grids[group.family], self._evaluator.functionals[group.family]
        limit = self._evaluator.limit(group)
        if functionals.atomic:
            size, found = limit[: len(functionals)], np.maximum(excess[: len(functionals)], 0.0)
        else:
            weights = np.sqrt(np.maximum(grid.weights, 0.0) / grid.weights.sum())
            size = weights * limit[: len(grid)]
            left = weights[:, None] * functionals.basis.evaluate(grid.domain, grid.points)
            solution, _ = nnls(left, weights * excess[: len(grid)])
            found = left @ solution
        # As at single points, what rounding leaves of a budget that was used up is no violation.
        violation = float(np.linalg.norm(found))
        return violation if violation > 1e-10 * float(np.linalg.norm(size)) else 0.0

    def regret(self, benchmark: Result) -> Regret:
        """How much less this run earned than an offline optimum; ``benchmark`` is a result of ``solve_offline``."""
        if not isinstance(benchmark, Result):
            raise OptionError(
                "regret: the benchmark must be a Result, such as program.solve_offline() (got "
                f"{type(benchmark).__name__})."
            )
        self._refuse_other_problem(benchmark)
        if benchmark.answer is None:
            raise OptionError(f"regret: the benchmark has no value, for it ended with status '{benchmark.status}'.")
        return self.shortfall(benchmark)

    def shortfall(self, benchmark: Result) -> Regret:
        """The regret against a benchmark that is known to be of the same problem; nan where it has no value."""
        sign = 1.0 if self.sense == "maximize" else -1.0
        value = sign * (benchmark.objective - self.objective)
        size = abs(benchmark.objective)
        name = BENCHMARKS[benchmark.method]
        if benchmark.status != "optimal":
            name += f", which ended with status '{benchmark.status}' and is no optimum"
        return Regret(value, value / size if size > 0 else np.nan, name)

    @abstractmethod
    def _identity(self) -> Identity:
        """Which problem was run."""

    def _model_identity(self) -> ModelIdentity | None:
        """What the model of the arrivals has in its objective, where it is known."""
        return None

    def _refuse_other_problem(self, benchmark: Result) -> None:
        """A regret against the optimum of another problem says nothing; of a model only the objective is compared."""
        solved_for, difference = benchmark.solved_for, None
        if isinstance(solved_for, ModelIdentity):
            own = self._model_identity()
            difference = None if own is None else own.difference(solved_for)
            if benchmark.sense != self.sense:
                difference = f"one to {benchmark.sense}"
        elif solved_for is not None:
            difference = self._identity().difference(solved_for)
        if difference is not None:
            raise OptionError(
                f"regret: the benchmark is the optimum of another problem, {difference}. Use "
                "program.solve_offline(data) with the data of the run, or run.shortfall(benchmark) if it is the same "
                "problem written in another way."
            )

    def _kept_where(self, use: RowUse) -> str:
        """Where a row was kept: at points, and by a pointwise guard between them too, if that is known."""
        points = f"at {len(use.excess)} grid points"
        if self.guard != POINTWISE:
            return points
        why = self._gaps.get(use.name)
        if why is not None:
            return f"{points}; between them nothing is kept, for {why}"
        if not self._known_between(use):
            return f"{points}; they are too far apart to tell it of what is between them"
        return f"anywhere on its index, {points} and between them"

    def _known_between(self, use: RowUse) -> bool:
        """Whether what a guard counts at points says that a row is kept between them."""
        groups = [group for group in self._evaluator.groups if group.name == use.name and group.family is not None]
        for group in groups:
            limit = np.abs(self._evaluator.limit(group))
            scale = np.maximum(limit, np.median(limit))
            if np.any(self._counted[group.slices[POINTWISE]] < -1e-10 * np.where(scale > 0, scale, 1.0)):
                return False
        return True

    def lines(self) -> list[str]:
        """What there is to say of it, a line for each thing."""
        told = ", ".join(f"{count} {_WHY[reason]}" for reason, count in self.counts.items())
        met = sum(self.counts.values())
        of = f"all {met}" if met == self.horizon or self.until is not None else f"{met} of {self.horizon}"
        lines = [
            f"{cut(self.policy)}, guard {self.guard}: {of} arrivals in {self.seconds:.2f} s",
            f"  objective  {self.objective:.10g} ({self.sense})",
            f"  decisions  {told}",
        ]
        uses, rows = list(self.uses), self.row_violation
        if len(uses) > MOST_SHOWN:
            uses = sorted(uses, key=lambda use: -use.relative)[:MOST_SHOWN]
        for use in uses:
            if not use.violation:
                lines.append(f"  violation  none of '{use.name}' {self._kept_where(use)}")
                continue
            lines.append(
                f"  violation  {use.violation:.3g} of '{use.name}' at grid points ({100 * use.relative:.3g} % of its "
                f"limit, {100 * use.share:.3g} % of the points), worst at {use.worst_index}"
            )
        if len(self.uses) > MOST_SHOWN:
            lines.append(f"  violation  no larger one of {len(self.uses) - MOST_SHOWN:,} other rows")
        if len(rows) > MOST_SHOWN:
            rows = rows.sort_values(ascending=False, kind="stable").head(MOST_SHOWN)
        for name, over in rows.items():
            lines.append(f"  violation  {over:.3g} of the row '{name}'")
        if len(self.row_violation) > MOST_SHOWN:
            lines.append(f"  violation  no larger one of {len(self.row_violation) - MOST_SHOWN:,} other ordinary rows")
        if self.uses:
            lines.append(
                f"             {self.test_violation:.3g} on average against the test functions (the paper's v)"
            )
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def use_along_index(self) -> pd.DataFrame:
        """Use and limit along the index of each semi-infinite row: ``row``, ``index``, ``limit`` and ``remaining``."""
        self._refuse_projected("use_along_index")
        return left_along_index(self._evaluator, self._point_remaining)

    def _refuse_projected(self, what: str) -> None:
        """Refuse what needs the use at points, where only projections of arrivals are known."""
        if self._projected:
            raise OptionError(
                f"{what}: projected arrivals do not say what they use at single points; replay the data themselves."
            )

    @property
    def domains(self) -> dict[str, Domain]:
        """The index of each semi-infinite row."""
        return {family.name: family.domain for family in self._evaluator.template.families}


class Run(RunSummary):
    """What a policy did with many arrivals.

    Attributes
    ----------
    decisions : Series, or DataFrame for several variables
        On the index of the data; ``wanted`` is what the prices asked for.
    reasons, rewards : Series
        Why and what each decision earned. "priced": as the price asked; "tie": the price left it open; "guard": cut
        down to what fitted, or raised to what was still needed; "null": nothing fitted; "overrun": nothing fitted, and
        it had to be served.
    objective, counts, price, remaining, policy, guard, seconds
        As in :class:`RunSummary`.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> m = demo_model(arrivals=300)
    >>> program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5))
    >>> run = program.replay(osilp.Resolve(exact=True))
    >>> run.decisions.head(3).round(3).to_dict()
    {1: 1.0, 2: 1.0, 3: 1.0}
    >>> run.violation, bool(run.violation_between < 1e-3), run.test_violation  # single points, and the paper's measure
    (0.0, True, 0.0)
    >>> print(run.regret(program.solve_offline()).benchmark)
    R*_T (exact over the continuum)
    >>> run.data.columns.tolist()
    ['value', 'place']
    >>> run.use_over_index(100).round(3).head(2)  # after a hundred arrivals
         row  index    use  lower   upper
    0  usage    0.0  2.079   -inf  18.000
    1  usage    0.0  2.093   -inf  18.018
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = run.to_html(f"{folder}/run.html", title="A band of 100 MHz", units={"reward": "EUR"})
    ...     page.stat().st_size < 1_000_000
    True
    >>> figure = run.plot("served", benchmark=program.solve_offline())
    """

    def __init__(
        self,
        evaluator: Evaluator,
        controller: Controller,
        arrivals: Arrivals,
        outcome: LoopOutcome,
        seconds: float,
        projected: bool = False,
        anew: Callable[[], Controller] | None = None,
    ) -> None:
        codes = outcome.reasons.astype(int)
        counts = np.bincount(codes, minlength=len(REASONS))
        earned, used = float(outcome.rewards.sum()), outcome.point_use
        super().__init__(evaluator, controller, earned, counts, seconds, projected, used)
        template, index = evaluator.template, arrivals.index
        self._arrivals, self._taken, self._anew = arrivals, outcome.decided, anew
        single = len(template.decisions) == 1 and not template.decisions[0].key
        frames = [template.decision_frame(numbers, index) for numbers in (outcome.decided, outcome.wanted)]
        self.decisions, self.wanted = (frame.iloc[:, 0] if single else frame for frame in frames)
        self.reasons = pd.Series(np.array(REASONS, dtype=object)[codes], index=index, name="reason")
        self.rewards = pd.Series(outcome.rewards, index=index, name="reward")

    def _identity(self) -> Identity:
        return identity_of(self._evaluator, self._arrivals)

    def _model_identity(self) -> ModelIdentity | None:
        template = self._evaluator.template
        if not template.linear:
            return None
        return ModelIdentity.of(template.numbers(template.objective, self._arrivals)[0].ravel())

    @property
    def decided(self) -> FloatArray:
        """The decisions as numbers (T, n)."""
        return self._taken

    @property
    def arrivals(self) -> Arrivals:
        """What was decided."""
        return self._arrivals

    @property
    def evaluator(self) -> Evaluator:
        """What turns arrivals into numbers."""
        return self._evaluator

    @property
    def data(self) -> pd.DataFrame:
        """The numbers that each arrival brought, on the index of the decisions."""
        return Intake(self._evaluator.template.fields).to_frame(self._arrivals)

    def anew(self) -> Controller:
        """The controller of this run as it was before the first arrival."""
        if self._anew is None:
            raise OptionError("to_html: this run does not know its beginning; use one that program.replay gave.")
        return self._anew()

    def use_over_index(self, t: int | None = None) -> pd.DataFrame:
        """Use along the index of each semi-infinite row after the first ``t`` arrivals, or after all.

        Columns: ``row``, ``index`` (a number, or a tuple of several), ``use``, and the limits ``lower`` and ``upper``,
        ordered along the index.
        """
        t = len(self._arrivals) if t is None else whole_number(t, "use_over_index: t", 0)
        if t > len(self._arrivals):
            raise OptionError(
                f"use_over_index: t must be at most {len(self._arrivals)}, the arrivals of the run (got {t})."
            )
        some, frames = self._arrivals.part(slice(0, t)), []
        for family, points in zip(self._evaluator.template.families, self._evaluator.points, strict=True):
            points = points[np.lexsort(points.T[::-1])]
            places = pd.Series([family.domain.label(point) for point in points], dtype=object).infer_objects()
            use = self._evaluator.at_points(family, some, self._taken[:t], points)
            lower, upper = family.limits.limits(points)
            frames.append(
                pd.DataFrame({"row": family.name, "index": places, "use": use, "lower": lower, "upper": upper})
            )
        return pd.concat(frames, ignore_index=True)

    def to_html(
        self,
        path: Any,
        *,
        title: str | None = None,
        author: str | None = None,
        units: Mapping[str, str] | None = None,
        benchmark: Result | None = None,
    ) -> Path:
        """Write the run as one page that moves: a slider over time, use, limits and prices along the index, decisions.

        The file needs no server and asks for nothing. Prices along the way are found by deciding the arrivals again.

        Parameters
        ----------
        path : path
            The page; its folder is made where there is none.
        title, author : str, optional
            What stands at its top; the model's own name where there is no title.
        units : dict, optional
            Units by the names of the objective, constraints, axes, data and decisions, such as ``{"reward": "EUR"}``.
        benchmark : Result, optional
            An optimum of the same arrivals, such as ``program.solve_offline()``, which the run is compared with.

        Returns
        -------
        Path
        """
        target = page_path(path)
        self._refuse_projected("to_html")
        write_text_at_once(target, page_of("run", self, title, author, units, benchmark))
        return target

    def plot(self, what: str | None = None, *, benchmark: Result | None = None, figure: Any = None) -> Any:
        """Draw the run; needs matplotlib.

        Parameters
        ----------
        what : "served" or "use", optional
            "served": who was served, with the border where an arrival is worth just what it uses.
            "use": what was used of each row, as a share of its limit, along the index and over time; over an index of
            several dimensions at the end. Both, one below the other, if not given.
        benchmark : Result, optional
            The optimum in hindsight, such as ``program.solve_offline()``, at whose price the border is drawn; at the
            last one of the run if not given. That is zero for policies that know that nothing comes after it, and then
            arrivals are drawn in their order instead.
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Figure or SubFigure
        """
        if benchmark is None:
            prices, row_prices, name = _by_family(self.price), self._row_prices(), "the last price online"
            if not any(len(price.points) and price.masses.any() for price in prices.values()):
                name += ", which is zero"
        else:
            against = self.regret(benchmark).benchmark.split()[0]
            prices, row_prices = benchmark.prices, _numbers_of(benchmark.duals)
            name = "the price in hindsight" if against == "R*_T" else f"the price of {against}"
        border, reasons = (name, prices, row_prices), self.reasons.to_numpy()
        return draw("run", self._evaluator, self._arrivals, self._taken, reasons, border, what, figure=figure)

    @cached_property
    def violation_between(self) -> Any:
        """Largest overrun on points other than those of the grid, which no guard looked at; found when asked for."""
        (found,) = violations_between(self._evaluator, self._arrivals, [self._taken])
        return next(iter(found.values())) if len(found) == 1 else FamilyMap(found)


class LongRun(RunSummary):
    """What a policy did with arrivals that came in chunks; decisions are in a file, not in memory.

    Attributes
    ----------
    arrivals : int
        How many came.
    written : Path or None
        The file with all decisions, their reasons and rewards, if one was asked for; read it by ``pandas``, or in
        chunks by ``Chunks(run.written)``.
    objective, counts, price, remaining, policy, guard, seconds
        As in :class:`RunSummary`.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        controller: Controller,
        earned: float,
        reasons: Any,
        seconds: float,
        written: Path | None,
        data: DataMoments,
        point_use: FloatArray,
    ) -> None:
        super().__init__(evaluator, controller, earned, reasons, seconds, False, point_use)
        self.arrivals = int(np.sum(reasons))
        self.written = written
        self._data = data

    def _identity(self) -> Identity:
        return identity_of(self._evaluator, self._data)

    def plot(self, *, figure: Any = None) -> Any:
        """Draw what was used of each row at the end along its index, with the last price; needs matplotlib."""
        return draw("left", self._evaluator, self._point_remaining, _by_family(self.price), figure=figure)

    def lines(self) -> list[str]:
        kept = "not kept; write= keeps them" if self.written is None else f"in '{self.written}'"
        return [*super().lines(), f"  each one   {kept}"]


def _numbers_of(series: pd.Series) -> dict[str, float]:
    """Numbers by name."""
    return {str(name): float(value) for name, value in series.items()}


def _by_family(price: Any) -> Mapping[str, Price]:
    """A price, or prices, by the rows that they are of."""
    return price if isinstance(price, FamilyMap) else {price.family: price}


def violations_between(
    evaluator: Evaluator, arrivals: Arrivals, decisions: Sequence[FloatArray]
) -> list[dict[str, float]]:
    """For each way to decide the same arrivals the largest overrun of every row on points that no guard looked at."""
    found: list[dict[str, float]] = [{} for _ in decisions]
    for number, family in enumerate(evaluator.template.families):
        points = audit_points(family.domain, len(arrivals), None)
        uses = evaluator.all_at_points(family, arrivals, decisions, points)
        for group in evaluator.groups:
            if group.family == number:
                over = group.sign * (uses - evaluator.limit(group, points))
                for each, worst in zip(found, over.max(axis=1).tolist(), strict=True):
                    each[family.name] = max(each.get(family.name, 0.0), worst)
    return found
