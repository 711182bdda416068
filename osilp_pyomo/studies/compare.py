"""compare: policies against the offline optimum on one model, many times; and the study that comes of it."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from osilp_pyomo._displays import WIDTH, Shown
from osilp_pyomo._files import LOCK, is_beside, locked, page_path, write_text_at_once
from osilp_pyomo._pools import as_executor
from osilp_pyomo._reporting import bar, warn_user
from osilp_pyomo.errors import AccuracyWarning, DataError, OptionError, SavedStateError
from osilp_pyomo.online.policies import Policy
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.show.numbers import shortened
from osilp_pyomo.studies.displays import study_figure
from osilp_pyomo.studies.executors import run_all
from osilp_pyomo.studies.files import (
    Tables,
    check_file_format,
    concat_frames,
    jobs_of,
    read_header,
    read_tables,
    write_header,
    write_tables,
    write_trial,
)
from osilp_pyomo.studies.measures import Measure, format_summary, measures_for, summarize
from osilp_pyomo.studies.plan import make_plan, settings_of
from osilp_pyomo.studies.report import answer_of, drawn_text, study_page
from osilp_pyomo.studies.trial import FRAMES, Job, Plan, Records

# What a summary is printed with; all measures are in ``study.summary()``.
_PRINTED = ("reward", "relative_violation", "overrun_points", "test_violation", "step_microseconds")
# Parts of a header that may change when a study goes on.
_MAY_CHANGE = ("trials", "versions", "format", "description", "name", "goal")


# Fewer trials than these give intervals that say little.
_FEW = 5
# Letters of the name of a policy in a printed table.
_NAME = 40
# What stands below a printed table.
_BENCHMARKS = {
    "exchange": "R*_T: the optimum with all arrivals known, rows at every point of the index",
    "discretized": "R*_m: the optimum with all arrivals known, rows at the points of the grid only, a bound",
    "projected": "R*_Phi: the optimum with all arrivals known, rows against the test functions only, a bound",
}
_LEGEND = (
    "regret: how much worse than the benchmark, as a share of it; below zero rows were broken for it",
    "relative violation: largest overrun at a point of the grid, over max(|b(u)|, median |b|)",
    "the paper's v: overrun on average, against the test functions; it can be zero while points are overrun",
    "time a step: of one decision, all that is learned from it included",
)


class StudyInterrupted(KeyboardInterrupt):
    """A study was stopped by the keyboard; ``study`` holds the trials that were finished.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_program
    >>> program = demo_program()
    >>> def requests(rng, horizon):
    ...     raise KeyboardInterrupt  # as if Ctrl-C had been pressed
    >>> try:
    ...     study = osilp.compare(program, osilp.Greedy(), sampler=requests, trials=9)
    ... except osilp.StudyInterrupted as stopped:
    ...     print(stopped, "-", len(stopped.study.runs), "runs")
    stopped after 0 of 9 trials - 0 runs
    """

    def __init__(self, study: Study, where: str) -> None:
        super().__init__(f"stopped after {study.finished} of {study.expected} trials{where}")
        self.study = study


class Study(Shown):
    """What :func:`compare` gives back: every run of every policy, and what they are compared with.

    Attributes
    ----------
    runs : DataFrame
        One row per trial and policy; the columns are those of ``study.measures``, and what tells the run: ``trial``,
        ``horizon``, ``grid`` (its number), ``points`` (how many it has), ``policy``, ``guard``.
    rows : DataFrame
        Violation of each row of the model: one row per trial, policy and row.
    offline : DataFrame
        One row per trial and benchmark: status, objective, bound, violation, rows, seconds.
    paths : DataFrame
        How runs went: at some forty moments ``t`` the ``reward`` so far, the share of the budget that was ``used`` on
        average, that of the resource that was ``most_used``, and what the optimum in ``hindsight`` has earned by then.
    curves : DataFrame
        Functions of the index in the first trial, ``value`` at the place ``at``: "use" and "limit" of each row, and
        "price", per unit of the index, at several moments ``t``, atoms spread by 2 % of the index; "use so far" where
        the index has one axis.
    iterations : DataFrame
        How exchange went in the first trial.
    losses : DataFrame
        Where the regret of each run comes from: ``value`` of each ``part``, "priced" (decided by the price of the
        moment, which was not the one in hindsight), "tie" (the price left it open), "guard" (a guard changed it) and
        "left" (capacity that was left over, at its price in hindsight; below zero where rows were overrun). They sum to
        the regret against ``benchmark``. Empty where no benchmark has prices, and for stages that are not linear.
    settings : dict
        What was run, with versions and seed.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_program
    >>> program = demo_program()
    >>> study = osilp.compare(program, [osilp.Greedy(), osilp.Resolve()], trials=3, order="permutation")
    >>> study.finished, study.expected, study.complete, study.benchmarks
    (3, 3, True, ('exchange', 'projected'))
    >>> study.summary()["relative_regret_exchange"].round(3)
                                            mean    low   high
    horizon grid points policy  guard
    40      0    1000   Greedy  pointwise  0.522  0.016  1.027
                        Resolve pointwise  0.462  0.274  0.651
    >>> study.table(["reward", "relative_regret_exchange"])
        policy      guard         reward regret against R*_T
    0   Greedy  pointwise  4.6292 +- 4.9       52.17 +- 51 %
    1  Resolve  pointwise  5.2027 +- 1.8       46.24 +- 19 %
    >>> [measure.column for measure in study.measures][:3]
    ['reward', 'relative_regret_exchange', 'relative_regret_projected']
    >>> study.doubts()
    []
    >>> print(study.headline())
    Take Resolve: it earns 53.8 % of the best possible, 5.203 on average, and never exceeds capacity; 3 trials cannot
    tell it from Greedy.
    >>> figure = study.plot("regret")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = study.to_html(f"{folder}/report.html", pictures=False)
    ...     study.save(f"{folder}/kept")
    ...     again = osilp.load_study(f"{folder}/kept")
    >>> again.runs.equals(study.runs)
    True
    """

    card = "study"

    def __init__(self, settings: Mapping[str, Any], tables: Tables) -> None:
        self.settings = dict(settings)
        self.runs = tables["runs"]
        self.rows = tables["rows"]
        self.offline = tables["offline"]
        self.paths = tables["paths"]
        self.curves = tables["curves"]
        self.iterations = tables["iterations"]
        # Studies that were saved by an earlier version have none.
        self.losses = tables.get("losses", pd.DataFrame())

    # -- numbers -------------------------------------------------------------------------------------------

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The offline methods that runs are compared with."""
        return tuple(self.settings["benchmarks"])

    @property
    def measures(self) -> list[Measure]:
        """What is measured, with the definition of each."""
        return measures_for(self.benchmarks)

    @property
    def expected(self) -> int:
        """How many trials the study has when it is complete."""
        return len(self.settings["horizons"]) * len(self.settings["grids"]) * self.settings["trials"]

    @property
    def finished(self) -> int:
        """How many trials are finished."""
        return len(set(jobs_of(self.runs)))

    @property
    def complete(self) -> bool:
        """Whether all trials are finished."""
        return self.finished >= self.expected

    def summary(self) -> pd.DataFrame:
        """Mean and 95 % interval of every measure: one row per horizon, grid (by number and points), policy and guard.

        Columns have two levels: the measure, and "mean", "low", "high".
        """
        if not len(self.runs):
            raise DataError("summary: no trial of this study is finished yet.")
        return summarize(self.runs, self.measures)

    def table(self, measures: Iterable[str] | None = None) -> pd.DataFrame:
        """The summary as text, means with half the width of their intervals; ``measures`` are columns of the runs."""
        known = {measure.column: measure for measure in self.measures}
        summary = self.summary()
        chosen = self._printed() if measures is None else list(measures)
        for column in chosen:
            if column not in known:
                raise OptionError(f"table: there is no measure '{column}'; there are {', '.join(known)}.")
        shown = format_summary(summary, [known[column] for column in chosen]).reset_index()
        grids = self.settings["grids"]
        shown["grid"] = [grids[number] if number < len(grids) else None for number in shown["grid"]]
        for key, title in (("horizon", "T"), ("grid", "grid"), ("points", "points")):
            same = len(set(shown[key])) == 1
            shown = shown.drop(columns=key) if same else shown.rename(columns={key: title})
        return shown

    def _printed(self) -> list[str]:
        regrets = [f"relative_regret_{name}" for name in self.benchmarks]
        columns = [_PRINTED[0], *regrets, *_PRINTED[1:]]
        if float(self.runs["row_violation"].abs().max()) > 0:
            columns.insert(-1, "row_violation")
        return columns

    # -- words and pictures --------------------------------------------------------------------------------

    def __str__(self) -> str:
        settings = self.settings
        trials = settings["trials"]
        count = f"{trials} trial{'s' * (trials > 1)}"
        cut = "" if self.complete else f"{self.finished} of {self.expected} finished: "
        spread = "means with 95 % intervals over trials" if trials > 1 else "no intervals, for there is one trial"
        wide = ", which are wide for so few" if 1 < trials < _FEW else ""
        head = (
            f"{cut}{count}, {drawn_text(settings)}, seed {settings['seed']}; "
            f"T = {', '.join(map(str, settings['horizons']))} arrivals; {spread}{wide}"
        )
        first = textwrap.fill(head, WIDTH)
        if not len(self.runs):
            return first
        lines = [first, "", _narrow(self.table(), ["T", "grid", "points", "policy", "guard"]), ""]
        below = [*(_BENCHMARKS[name] for name in self.benchmarks), *_LEGEND, *self.doubts()]
        lines += [textwrap.fill(f"  {text}", WIDTH, subsequent_indent="    ") for text in below]
        return "\n".join(lines)

    __repr__ = __str__

    def doubts(self) -> list[str]:
        """Benchmarks that are not what they should be, in words; nothing where all are."""
        if not len(self.offline):
            return []
        bad = self.offline[self.offline["status"] != "optimal"]
        return [
            f"careful: {name} ended with status '{status}' in {len(part)} of {self.finished} trials"
            for (name, status), part in bad.groupby(["benchmark", "status"], sort=False)
        ]

    def plot(self, what: str | None = None, *, figure: Any = None) -> Any:
        """Draw the study; needs matplotlib.

        Parameters
        ----------
        what : "regret", "reward", "loss", "overrun", "violation", "price", "budget" or "bracket", optional
            One picture; all that there is something to draw for, if not given.
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Figure or SubFigure
        """
        return study_figure(self, what, figure)

    def headline(self, units: Mapping[str, str] | None = None) -> str:
        """Which policy to take, what it earns, and whether limits are kept: the sentence that a page begins with.

        Parameters
        ----------
        units : dict, optional
            As in :meth:`to_html`.
        """
        return answer_of(self, units, "headline").headline()

    def to_html(
        self,
        path: Any,
        pictures: bool = True,
        progress: bool = True,
        *,
        title: str | None = None,
        author: str | None = None,
        units: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the study as one page that needs nothing else: the answer, a picture, a table; all else folded below.

        Below are the first trial over time with a slider, definitions, what was run, all numbers, pictures, the model
        as mathematics, versions and seed.

        Parameters
        ----------
        path : path
            The page; its folder is made where there is none.
        pictures : bool
            Whether to draw those that are folded, which needs matplotlib.
        progress : bool
            Show progress: a bar where it takes more than two seconds; in a log a line each half minute.
        title, author : str, optional
            What stands at its top; the model's own name where there is no title.
        units : dict, optional
            Units by the names of the objective, constraints, axes, data and decisions, such as ``{"reward": "EUR"}``.

        Returns
        -------
        Path
        """
        target = page_path(path)
        write_text_at_once(target, study_page(self, pictures, progress, title, author, units))
        return target

    def save(self, path: Any, format: str = "csv") -> None:
        """Write the study into a folder: ``study.json`` and a table for each frame.

        Parameters
        ----------
        path : path
            The folder; one that holds another study, or more of this one, is refused.
        format : "csv" or "parquet"
            Of the tables; Parquet needs pyarrow.
        """
        check_file_format(format)
        folder = _folder(path)
        _refuse_file(folder)
        with locked(folder):
            self._save(folder, format)

    def _save(self, folder: Path, format: str) -> None:
        _refuse_other(folder, self.settings)
        more = set(jobs_of(read_tables(folder)["runs"])) - set(jobs_of(self.runs))
        if more:
            raise SavedStateError(
                f"'{folder}' holds {len(more)} trials that this study does not; save it elsewhere, or go on with those "
                "by compare(..., path=...)."
            )
        write_tables(folder, self._tables(), format)
        write_header(folder, self.settings)

    def _tables(self) -> Tables:
        return {name: getattr(self, name) for name in FRAMES}


def _narrow(table: pd.DataFrame, keys: Sequence[str]) -> str:
    """A table as text, one that is too wide in parts below each other, each with the columns that tell the rows."""
    table = table.assign(policy=[shortened(str(name), _NAME) for name in table["policy"]])
    named = [key for key in keys if key in table]
    own = max((len(line) for line in table[named].to_string(index=False).split("\n")), default=0)
    parts: list[list[str]] = [[]]
    width = own
    for column in table.columns.drop(named):
        needed = 1 + max(map(len, [column, *table[column].astype(str)]))
        if parts[-1] and width + needed > WIDTH:
            parts.append([])
            width = own
        parts[-1].append(column)
        width += needed
    return "\n\n".join(table[[*named, *part]].to_string(index=False) for part in parts)


def load_study(path: Any) -> Study:
    """A study that was saved, or what a study that was cut short has finished.

    Parameters
    ----------
    path : path
        The folder that ``save`` or ``compare(..., path=...)`` wrote.

    Examples
    --------
    >>> load_study("nowhere")
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.SavedStateError: 'nowhere' holds no study.
    """
    folder = _folder(path)
    header = read_header(folder)
    if not header:
        raise SavedStateError(f"'{path}' holds no study.")
    return Study(header, _load_complete(folder, header))


def compare(
    program: OnlineProgram,
    policies: Policy | Sequence[Policy] | Mapping[str, Policy],
    data: Any = None,
    trials: int = 1,
    order: str = "given",
    sampler: Callable[[np.random.Generator, int], Any] | None = None,
    horizons: Sequence[int] | None = None,
    grids: Sequence[Any] | None = None,
    guards: Sequence[str] | str | Mapping[str, Sequence[str] | str] | None = None,
    benchmarks: Sequence[str] = ("exchange", "projected"),
    budget: str = "per_arrival",
    seed: int = 0,
    executor: Any = None,
    progress: bool = True,
    *,
    profiles: Mapping[str, Any] | None = None,
    null: Any = None,
    forecast: Any = None,
    path: Any = None,
    by: Any = None,
) -> Study:
    """Run policies against the offline optimum on the same arrivals, many times.

    Each trial draws its arrivals, solves the offline benchmarks once, and replays every policy on them.

    Parameters
    ----------
    program : OnlineProgram
        Made by :func:`compile_online`.
    policies : Policy, list of them, or {name: Policy}
        What to compare; a name of one's own stands in all tables and pictures.
    data : DataFrame, optional
        Arrivals to choose from; the model's own if not given.
    trials : int
        How often, for each horizon and grid.
    order : "given", "permutation", "iid", "drift", "season", "regime", "blocks" or "sorted"
        How the arrivals of a trial are made of the data: as they are, in random order, or drawn with replacement. The
        others are random orders that change with time, of arrivals ranked from low to high: "drift" goes from the low
        to the high, "season" up and down three times, "regime" jumps three times and "blocks" twenty times, each with
        noise; "sorted" is without noise. They are the same arrivals as in any other order.
    sampler : callable, optional
        ``sampler(rng, horizon)`` draws the data of a trial: a DataFrame, or a pair of a DataFrame and curves of
        Profiles. ``order`` then says what is done with what it drew: with "iid" it is a finite support. Arrivals that
        change with time in a way of one's own are drawn in their order, ``np.arange(horizon) / horizon`` being their
        times, with order="given".
    horizons : list of int, optional
        Numbers of arrivals T; the program's own if not given. Fewer than the data has are its first ones ("given"), or
        some of them ("permutation").
    grids : list, optional
        Grids to see the index on, each as in ``compile_online``; the program's own if not given.
    guards : list of "none", "projected", "pointwise", optional
        Each policy runs under each of them, or {policy's name: its guards}; the program's default guard if not given.
    benchmarks : list of "exchange", "discretized", "projected"
        R*_T, R*_m and R*_Phi, as in ``program.solve_offline``.
    budget : "per_arrival" or "total"
        Whether limits grow with the horizon or stay.
    seed : int
        The same seed gives the same numbers, wherever trials run.
    executor : int or Executor, optional
        A number of processes, any executor of concurrent.futures, or a client of dask; one trial after the other if
        not given.
    progress : bool
        Show progress: a bar where it takes more than two seconds; in a log a line each half minute.
    profiles : dict, optional
        Curves of Profiles beside ``data``, one array (arrivals, points) each.
    null : number or mapping, optional
        The decision to fall back to where nothing fits, as in ``program.controller``.
    forecast : DataFrame, Chunks or Forecast, optional
        Arrivals that are expected, as in ``program.controller``, for the policies that learn from samples; the others
        run without. One with an order is refused beside ``order="permutation"``.
    by : column, optional
        What arrivals are ranked by in an order that changes with time: a column of their numbers; what the largest
        decision earns if not given.
    path : folder, optional
        Keep every trial as soon as it is finished. A study that was stopped goes on where it was when it is called
        again with the same folder; more ``trials`` may be asked for then.

    Returns
    -------
    Study

    Raises
    ------
    StudyInterrupted
        A KeyboardInterrupt that holds what was finished.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.T = pyo.RangeSet(40)
    >>> m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 1 + t % 7)
    >>> m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: t / 40)
    >>> m.x = pyo.Var(m.T, bounds=(0, 1))
    >>> m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def usage(m, u):
    ...     return sum(pyo.exp(-((u - m.place[t]) / 0.2) ** 2) * m.x[t] for t in m.T) <= 5
    >>> program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5))
    >>> study = compare(program, [osilp.Greedy(), osilp.Resolve()], trials=3, order="permutation", seed=1)
    >>> study.runs[["trial", "policy", "guard", "violation"]].head(2)
       trial   policy      guard  violation
    0      0   Greedy  pointwise        0.0
    1      0  Resolve  pointwise        0.0
    """
    plan = make_plan(
        program, policies, data=data, profiles=profiles, trials=trials, order=order, sampler=sampler, horizons=horizons,
        grids=grids, guards=guards, benchmarks=benchmarks, budget=budget, null=null, forecast=forecast,
        seed=seed, by=by,
    )  # fmt: skip
    executor = as_executor(executor, "compare")
    folder = None if path is None else _folder(path)
    settings = settings_of(plan, int(trials), digest=folder is not None)
    if folder is None:
        return _compare(plan, settings, None, executor, progress)
    _refuse_file(folder)
    with locked(folder):
        return _compare(plan, settings, folder, executor, progress)


def _compare(
    plan: Plan, settings: dict[str, Any], folder: Path | None, executor: Executor | int | None, progress: bool
) -> Study:
    """Run the trials of a plan, in a folder that nobody else writes into."""
    trials = settings["trials"]
    tables = {name: pd.DataFrame() for name in FRAMES} if folder is None else _begin(folder, settings)
    before = set(jobs_of(tables["runs"]))
    jobs = plan.jobs(trials)
    left = [job for job in jobs if job not in before]
    gathered: dict[str, list[pd.DataFrame]] = {name: [frame] for name, frame in tables.items()}
    said: list[str] = []

    def study() -> Study:
        return Study(settings, {name: concat_frames(parts) for name, parts in gathered.items()})

    shown = bar(progress, total=len(jobs), initial=len(jobs) - len(left), desc="trials")
    try:
        # Where trials run in threads of this process, none must take another's limit on BLAS away.
        with shown, threadpool_limits(1, user_api="blas"):
            for job, records in run_all(plan, left, executor):
                said += [record["text"] for record in records.pop("warnings")]
                _keep(folder, job, records, gathered)
                shown.update()
    except KeyboardInterrupt:
        where = "" if folder is None else f"; the same call goes on with them from '{folder}'"
        raise StudyInterrupted(study(), where) from None
    made = study()
    if folder is not None:
        write_tables(folder, made._tables(), _format_of(folder))
    for text in said:
        warn_user(text, AccuracyWarning)
    return made


def _folder(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"compare: path must be the path of a folder (got {path!r}).")
    return Path(path)


def _keep(folder: Path | None, job: Job, records: Records, gathered: dict[str, list[pd.DataFrame]]) -> None:
    if folder is not None:
        write_trial(folder, job, records)
    for name, parts in gathered.items():
        parts.append(pd.DataFrame(records[name]))


def _format_of(folder: Path) -> str:
    """Tables that are there already keep their format."""
    return "parquet" if (folder / "runs.parquet").exists() else "csv"


def _begin(folder: Path, settings: dict[str, Any]) -> Tables:
    """Begin a study in a folder, or go on with the same one."""
    _refuse_other(folder, settings)
    tables = _load_complete(folder, settings)
    if len(tables["runs"]):
        # Trials that are there stay, also where fewer are asked for now.
        settings["trials"] = max(settings["trials"], int(tables["runs"]["trial"].max()) + 1)
    write_header(folder, settings)
    return tables


def _load_complete(folder: Path, settings: Mapping[str, Any]) -> Tables:
    """What a folder holds of a study; every trial in it has all its runs."""
    tables = read_tables(folder)
    expected = sum(len(guards.split(", ")) for _, _, guards in settings["policies"])
    for job, count in Counter(jobs_of(tables["runs"])).items():
        if count != expected:
            raise SavedStateError(
                f"'{folder}' is damaged: trial {job.trial} of {job.horizon} arrivals has {count} runs where there "
                f"should be {expected}. Remove its rows from the table of runs, and it is run again."
            )
    return tables


def _refuse_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise SavedStateError(f"'{folder}' is a file; a study needs a folder of its own.")


def _refuse_other(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a folder that holds something else than this study."""
    before = read_header(folder)
    if not before and folder.exists() and any(each.name != LOCK and not is_beside(each) for each in folder.iterdir()):
        raise SavedStateError(f"'{folder}' holds other files than a study; give path= a folder of its own.")
    for name, value in settings.items():
        there = before.get(name, value)
        # What a sampler draws is not known of a study that was never kept while it ran.
        unknown = name == "data" and (there is None or value is None)
        if name not in _MAY_CHANGE and not unknown and there != value:
            both = f" ({there!r} there, {value!r} here)" if len(repr(there)) + len(repr(value)) <= 120 else ""
            raise SavedStateError(
                f"'{folder}' holds another study: its {name} differs{both}; give path= another folder, or call compare "
                "as it was called there."
            )
