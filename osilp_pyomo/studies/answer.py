"""What a study says to somebody who has to choose: which policy, what it earns, and whether limits are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.errors import DataError
from osilp_pyomo.online.runs import BENCHMARKS
from osilp_pyomo.show.numbers import Units, about, percent, plain, with_half
from osilp_pyomo.studies.measures import quantile

# What is exceeded by less than this share of its limit is kept, as for solvers.
KEPT = 1e-6
# What is exceeded by less than this share between the points that guards look at is no reason to take another policy.
_BETWEEN = 1e-3
# Policies that a sentence names.
_NAMES = 4
# From the sharpest benchmark to the loosest.
_SHARPEST = ("exchange", "discretized", "projected")
#: Guards in words.
GUARDED = {"none": "no guard", "projected": "guarded on average", "pointwise": "guarded"}


@dataclass(frozen=True)
class Line:
    """One policy under one guard, over all trials.

    ``share`` is what was earned of the best possible, or lost against it where ``Answer.loses``; ``half`` and
    ``share_half`` are half the widths of 95 % intervals, nan for one trial. ``exceeded`` is the largest excess at any
    point in any trial as a share of the limit, ``between`` that at points that no guard looks at.
    """

    name: str
    key: tuple[str, str]
    earned: float
    half: float
    share: float
    share_half: float
    exceeded: float
    between: float
    per_second: float

    @property
    def keeps(self) -> bool:
        """Whether limits were kept in every trial, between the points too."""
        return max(self.exceeded, self.between) <= KEPT

    @property
    def keeps_points(self) -> bool:
        """Whether they were kept at the points that guards look at."""
        return self.exceeded <= KEPT

    @property
    def sound(self) -> bool:
        """Whether it can be taken: limits were kept but for a trifle between the points."""
        return self.keeps_points and self.between <= _BETWEEN


@dataclass(frozen=True)
class Answer:
    """The policies of a study from the one to take down, and what is said of them.

    ``same`` are those that the trials cannot tell from the first; ``loses`` says that shares are losses, as where the
    objective is minimized; ``bound`` that they are measured against a bound and not an optimum.
    """

    lines: tuple[Line, ...]
    same: tuple[Line, ...]
    benchmark: str
    loses: bool
    bound: bool
    capacity: bool
    maximize: bool
    trials: int
    horizon: int
    unit: str
    lead: tuple[float, float]

    @classmethod
    def of(cls, study: Any, units: Units, what: str = "to_html") -> Answer:
        """The answer of a study: of the most arrivals that it ran, on its first grid."""
        if not len(study.runs):
            raise DataError(f"{what}: no trial of this study is finished yet.")
        runs = _shown(study.runs)
        maximize = study.settings["model"]["sense"] == "maximize"
        benchmark = _benchmark(study)
        best = _shown(study.offline)
        values = best.loc[best["benchmark"] == benchmark, "objective"] if benchmark else pd.Series(dtype=float)
        loses = not (maximize and len(values) and bool((values > 0).all()))
        scales = _scales(study)
        lines = [_line(key, part, benchmark, loses, study, scales) for key, part in _groups(runs)]
        lines = _in_order(lines, maximize)
        same, lead = _told_apart(lines, runs, maximize)
        rows = [*study.settings["model"]["rows"], *study.settings["model"]["ordinary"]]
        return cls(
            tuple(lines), same, benchmark, loses, benchmark not in ("", "exchange"),
            all(row["side"] == "<=" for row in rows), maximize, runs["trial"].nunique(), int(runs["horizon"].iloc[0]),
            units.goal, lead,
        )  # fmt: skip

    @property
    def best(self) -> Line:
        """The one to take."""
        return self.lines[0]

    @property
    def excess(self) -> str:
        """What limits that are not kept are: a capacity is exceeded, where there are upper limits only."""
        return "exceeds capacity" if self.capacity else "breaks a limit"

    @property
    def excessive(self) -> str:
        """The same of what is not kept itself."""
        return "exceeded" if self.capacity else "broken"

    @property
    def said_loudly(self) -> tuple[str, ...]:
        """Words of the headline that stand out."""
        known = (
            () if np.isnan(self.best.share) or (self.loses and self.best.share == 0) else (percent(self.best.share),)
        )
        return (self.best.name, *known)

    # -- sentences -----------------------------------------------------------------------------------------

    def headline(self) -> str:
        """The answer in one sentence."""
        best = self.best
        if not best.keeps_points:
            begin = f"{'Every policy' if len(self.lines) > 1 else best.name} {self.excess}"
            least = f" {best.name} does so least:" if len(self.lines) > 1 else ""
            excess = f"by up to {percent(best.exceeded, up=True)}, and it {self._what_it_earns().rstrip(',')}"
            return f"{begin}{';' if least else ','}{least} {excess}{self._how_sure()}."
        take = f"Take {best.name}: it" if len(self.lines) > 1 else best.name
        return f"{take} {self._what_it_earns()} and {self._kept(best)}{self._how_sure()}."

    def _what_it_earns(self) -> str:
        best = self.best
        amount = f"{plain(best.earned, unit=self.unit)}{' on average' if self.trials > 1 else ''}"
        if np.isnan(best.share):
            return f"{'earns' if self.maximize else 'costs'} {amount}"
        if not self.loses:
            least = "at least " if self.bound else ""
            return f"earns {least}{percent(best.share)} of the best possible, {amount},"
        most = "at most " if self.bound else ""
        if best.share == 0:
            return f"{f'earns {amount}' if self.maximize else f'costs {amount}'}, the {self._extreme} possible,"
        if self.maximize:
            return f"earns {amount}, {most}{percent(best.share)} short of the best possible,"
        return f"costs {amount}, {most}{percent(best.share)} more than the least possible,"

    @property
    def _extreme(self) -> str:
        return "best" if self.maximize else "least"

    def _kept(self, line: Line) -> str:
        if line.keeps:
            return "never exceeds capacity" if self.capacity else "keeps every limit"
        return f"never {self.excess} by more than {percent(line.between, up=True)}"

    def _how_sure(self) -> str:
        if self.trials == 1:
            return "; one trial cannot tell how much of this is luck"
        if not self.same:
            return ""
        return f"; {self.trials} trials cannot tell it from {_listed([line.name for line in self.same])}"

    def why(self) -> str:
        """What stands below the headline: how far the next one is, and why those that earn more are not taken."""
        told = []
        rest = [line for line in self.lines[1:] if line not in self.same and line.sound]
        if rest and self.trials > 1 and self.best.sound:
            mean, half = self.lead
            further = "the next best" if not self.same else "the next that can be told from it"
            told.append(
                f"On the same arrivals it {'earns' if self.maximize else 'costs'} {with_half(mean, half, self.unit)} "
                f"{'more' if self.maximize else 'less'} than {rest[0].name}, {further}."
            )
        quicker = [line for line in self.same if line.per_second > 5 * self.best.per_second]
        if quicker:
            fastest = max(quicker, key=lambda line: line.per_second)
            told.append(
                f"{fastest.name} decides about {about(fastest.per_second / self.best.per_second)} times as fast."
            )
        if self.best.keeps_points:
            told += self._why_not([line for line in self.lines if not line.keeps_points], "")
        if self.best.sound:
            between = [line for line in self.lines if line.keeps_points and not line.sound]
            told += self._why_not(between, " between the points that are watched")
        return " ".join(told)

    def _why_not(self, lines: Sequence[Line], where: str) -> list[str]:
        """Those of some policies that do better than the first, and by how much they exceed a limit."""
        more = [line for line in lines if self._beats(line)]
        if not more:
            return []
        one = len(more) == 1
        what = ("earns" if one else "earn", "more") if self.maximize else ("costs" if one else "cost", "less")
        excess = self.excess if one else self.excess.replace("s ", " ", 1)
        most = max(line.between if where else line.exceeded for line in more)
        names = _listed([line.name for line in more])
        return [f"{names} {' '.join(what)}, but {excess}{where} by up to {percent(most, up=True)}."]

    def _beats(self, line: Line) -> bool:
        return line.earned > self.best.earned if self.maximize else line.earned < self.best.earned

    # -- the table -----------------------------------------------------------------------------------------

    def table(self) -> pd.DataFrame:
        """The policies in plain words, one row each."""
        told = [self._row(line) for line in self.lines]
        return pd.DataFrame(told)

    def _row(self, line: Line) -> dict[str, str]:
        row = {"policy": line.name}
        verb = "earns" if self.maximize else "costs"
        row[f"{verb} on average" if self.trials > 1 else verb] = with_half(line.earned, line.half, self.unit)
        if self.benchmark:
            spread = f" (\u00b1 {100 * line.share_half:.1f})" if line.share_half > 5e-4 else ""
            row[self.share_title] = f"{percent(line.share)}{spread}"
        row["capacity" if self.capacity else "limits"] = self.kept_text(line)
        row["decisions a second"] = about(line.per_second)
        return row

    @property
    def share_title(self) -> str:
        """What the shares are of."""
        if not self.loses:
            return "share of the best possible"
        return "lost against the best possible" if self.maximize else "above the least possible"

    def kept_text(self, line: Line) -> str:
        """Whether limits were kept, in a few words."""
        if line.keeps:
            return "never exceeded" if self.capacity else "always kept"
        if line.keeps_points:
            return f"never {self.excessive} by more than {percent(line.between, up=True)}"
        return f"{self.excessive} by up to {percent(line.exceeded, up=True)}"


def _listed(names: Sequence[str]) -> str:
    if len(names) > _NAMES:
        names = [*names[: _NAMES - 1], f"{len(names) - _NAMES + 1} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """The largest number of arrivals, on the first grid."""
    if not len(frame):
        return frame.reindex(columns=["benchmark", "objective"])
    return frame[(frame["horizon"] == frame["horizon"].max()) & (frame["grid"] == frame["grid"].min())]


def _benchmark(study: Any) -> str:
    """The sharpest benchmark that has an answer in every trial; empty where there is none."""
    offline = _shown(study.offline)
    for name in _SHARPEST:
        part = offline[offline["benchmark"] == name]
        if name in study.benchmarks and len(part) and (part["status"] == "optimal").all():
            return name
    return ""


def _groups(runs: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    groups = runs.groupby(["policy", "guard"], sort=False)
    return [((str(policy), str(guard)), part) for (policy, guard), part in groups]


def _scales(study: Any) -> dict[str, float]:
    """The size of the limits of each row, by its name: that which excesses at points between are divided by."""
    scales: dict[str, float] = {}
    curves = study.curves
    if len(curves):
        limits = _shown(curves)
        limits = limits[limits["kind"].isin(["limit", "upper limit", "lower limit"])]
        sizes = limits.assign(value=limits["value"].abs()).groupby("row")["value"].median()
        scales = {str(row): float(size) for row, size in sizes.items() if size > 0}
    settings = study.settings
    # Limits of ordinary rows are told of the model's own number of arrivals.
    grown = max(settings["horizons"]) / settings["model"]["horizon"] if settings["budget"] == "per_arrival" else 1.0
    for row in settings["model"]["ordinary"]:
        scales[row["name"]] = max(scales.get(row["name"], 0.0), abs(float(row["limit"])) * grown)
    return {row: size for row, size in scales.items() if size > 0}


def _line(
    key: tuple[str, str], part: pd.DataFrame, benchmark: str, loses: bool, study: Any, scales: Mapping[str, float]
) -> Line:
    policy, guard = key
    several = len(study.settings["guards"]) > 1
    share = pd.Series(np.nan, index=part.index)
    if benchmark:
        regret = part[f"relative_regret_{benchmark}"]
        share = regret if loses else 1.0 - regret
    rows = _shown(study.rows)
    rows = rows[(rows["policy"] == policy) & (rows["guard"] == guard)] if len(rows) else rows
    between = ordinary = 0.0
    for row, own in rows.groupby("row") if len(rows) else []:
        scale = scales.get(str(row), 1.0)
        if own["relative_violation"].isna().all():
            ordinary = max(ordinary, float(own["violation"].max()) / scale)
        else:
            between = max(between, float(own["violation_between"].max()) / scale)
    return Line(
        f"{policy} ({GUARDED[guard]})" if several else policy, (policy, guard), *_mean(part["reward"]), *_mean(share),
        max(float(part["relative_violation"].max()), ordinary), max(0.0, between),
        1e6 / max(float(part["step_microseconds"].median()), 1e-3),
    )  # fmt: skip


def _mean(values: pd.Series) -> tuple[float, float]:
    count = len(values)
    half = float(values.std(ddof=1) * quantile(count) / np.sqrt(count)) if count > 1 else float("nan")
    return float(values.mean()), half


def _in_order(lines: list[Line], maximize: bool) -> list[Line]:
    """Those that keep their limits first, the better before the worse; where none does, the least excess first."""
    sign = -1.0 if maximize else 1.0
    if not any(line.keeps_points for line in lines):
        return sorted(lines, key=lambda line: line.exceeded)
    return sorted(lines, key=lambda line: (not line.sound, not line.keeps_points, sign * line.earned))


def _told_apart(lines: list[Line], runs: pd.DataFrame, maximize: bool) -> tuple[tuple[Line, ...], tuple[float, float]]:
    """Those that the trials cannot tell from the first, by differences on the same arrivals; how far the next is."""
    sign = 1.0 if maximize else -1.0
    rewards = {key: part.set_index("trial")["reward"] for key, part in _groups(runs)}
    same, lead = [], (float("nan"), float("nan"))
    for line in lines[1:]:
        if not line.sound or not lines[0].sound:
            continue
        mean, half = _mean(sign * (rewards[lines[0].key] - rewards[line.key]))
        if half >= abs(mean):
            same.append(line)
        elif np.isnan(lead[0]) and not np.isnan(half):
            lead = (mean, half)
    return tuple(same), lead


def names_of(settings: Mapping[str, Any]) -> list[str]:
    """Names that a unit may be given for: objective, rows, axes, data, decisions."""
    model = settings["model"]
    names = [settings.get("goal", ""), *(row["name"] for part in ("rows", "ordinary") for row in model[part])]
    names += [axis for row in model["rows"] for axis in row["axes"]]
    names += re.findall(r"(\S+) \((?:a number|a curve|\d+ numbers)\)", model["data"])
    return [*names, *(each["name"].partition("[")[0] for each in model["decisions"])]


def benchmark_text(answer: Answer) -> str:
    """What shares are measured against, in words."""
    if not answer.benchmark:
        return "No benchmark has an answer in every trial, so that shares of the best possible are not known."
    what = (
        "What could have been earned or spent with all arrivals known in advance and every limit kept: "
        f"{BENCHMARKS[answer.benchmark]}. No policy knows that much, so that a part of what is missing cannot be had."
    )
    if answer.bound:
        what += " It is a bound that keeps fewer rows than the model has, so that the true optimum is no better."
    return what
