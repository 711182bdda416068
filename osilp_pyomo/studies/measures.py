"""What a study measures: the columns of its runs, each with its title, its definition and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.online.runs import BENCHMARKS

#: Columns that tell one run from another.
KEYS = ("horizon", "grid", "points", "policy", "guard")
# The confidence of every interval.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Measure:
    """A column of ``study.runs``.

    ``form`` says how it is written: "number", "percent", "count", "microseconds" or "seconds".
    """

    column: str
    title: str
    definition: str
    form: str = "number"

    @property
    def unit(self) -> str:
        """What stands behind a number, with a space before it."""
        return {"percent": " %", "microseconds": " us", "seconds": " s"}.get(self.form, "")

    @property
    def timing(self) -> bool:
        """Whether it is a time, which no seed repeats."""
        return self.form in ("microseconds", "seconds")

    def write(self, value: float) -> str:
        """A value as text, with its unit."""
        if not np.isfinite(value):
            return "" if np.isnan(value) else f"{value:g}"
        if self.form == "percent":
            return f"{100 * value:.2f} %" if abs(value) >= 5e-5 or value == 0 else f"{100 * value:.1e} %"
        unit = self.unit
        if abs(value) >= 100 and self.form != "number":
            return f"{value:,.0f}{unit}"
        return f"{value:.5g}" if self.form == "number" else f"{value:.3g}{unit}"

    def write_interval(self, mean: float, half: float) -> str:
        """A mean and half the width of its interval as text."""
        if not np.isfinite(half) or half == 0:
            return self.write(mean)
        spread = 100 * half if self.form == "percent" else half
        told = f"{spread:,.0f}" if spread >= 100 else f"{spread:.2g}"
        return f"{self.write(mean).removesuffix(self.unit)} +- {told}{self.unit}"


class Measures(list[Measure]):
    """Measures that are printed as a list of definitions."""

    def __repr__(self) -> str:
        return "\n".join(
            f"{each.column}: {each.title}{each.unit and f' ({each.unit.strip()})'}. {each.definition}" for each in self
        )


def measures_for(benchmarks: Sequence[str]) -> Measures:
    """The measures of a study with these benchmarks, in the order in which they are read."""
    regrets = [
        Measure(
            f"relative_regret_{name}",
            f"regret against {BENCHMARKS[name].split()[0]}",
            "(benchmark - reward) / |benchmark|, for a minimum the other way round; the benchmark is "
            f"{BENCHMARKS[name]}. Negative: the run broke rows that the benchmark keeps.",
            "percent",
        )
        for name in benchmarks
    ]
    absolute = [
        Measure(
            f"regret_{name}",
            f"regret against {BENCHMARKS[name].split()[0]}, absolute",
            f"benchmark - reward in the units of the objective; the benchmark is {BENCHMARKS[name]}.",
        )
        for name in benchmarks
    ]
    times = [
        Measure(f"seconds_{name}", f"time of {BENCHMARKS[name].split()[0]}", "Time of the offline solve.", "seconds")
        for name in benchmarks
    ]
    return Measures([
        Measure("reward", "reward", "The model's objective at the decisions taken."),
        *regrets,
        Measure(
            "violation", "largest violation",
            "Largest a(u)'x - b(u) at a point that guards look at, those of the grid and the ends of the index, over "
            "all semi-infinite rows; 0 if no point is overrun.",
        ),
        Measure(
            "relative_violation", "relative violation",
            "The same, each excess divided by max(|b(u)|, median of |b|) of its row.", "percent",
        ),
        Measure(
            "overrun_points", "points overrun", "How many of the points that guards look at are overrun, in all rows.",
            "count",
        ),
        Measure(
            "violation_between", "violation between points",
            "Largest a(u)'x - b(u) at points other than those of the grid, which no guard looked at.",
        ),
        Measure(
            "test_violation", "the paper's v",
            "Norm of the projection of Ax - b on the cone of the test functions (an average over the index). It can "
            "read zero while single points are overrun.",
        ),
        Measure(
            "row_violation", "ordinary rows",
            "Largest overrun of an ordinary row over all stages; 0 where there is none.",
        ),
        Measure(
            "remaining", "budget left",
            "Share of the budget that is left at the end, averaged over the test functions and ordinary rows with a "
            "budget > 0.", "percent",
        ),
        Measure("least_remaining", "least left", "The same for the one of them with least left.", "percent"),
        Measure("guarded", "guard stepped in", "Share of the arrivals whose decision a guard changed.", "percent"),
        Measure(
            "step_microseconds", "time a step",
            "Time to decide and learn one arrival in a replay, its projection on the test functions not counted.",
            "microseconds",
        ),
        *absolute,
        *times,
    ])  # fmt: skip


def quantile(count: ArrayLike) -> FloatArray:
    """How many standard errors reach from the mean of so many values to an end of its interval, by Student's t.

    Examples
    --------
    >>> float(quantile(11).round(4))
    2.2281
    """
    return np.asarray(stdtrit(np.maximum(np.asarray(count) - 1, 1), 0.5 + CONFIDENCE / 2))


def summarize(runs: pd.DataFrame, measures: Sequence[Measure], keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """Mean over trials and its 95 % interval for each combination of keys.

    The interval is that of Student's t distribution; it has no ends where there is one trial only, or where the value
    of a trial is missing, as a regret is whose benchmark has no answer: the mean is then that of the others.

    Examples
    --------
    >>> runs = pd.DataFrame({"policy": "A", "reward": [1.0, 2.0, 3.0]})
    >>> summarize(runs, [Measure("reward", "reward", "")], ["policy"]).round(3)
           trials reward
                    mean    low   high
    policy
    A           3    2.0 -0.484  4.484
    """
    groups = runs.groupby(list(keys), sort=False)
    columns: dict[tuple[str, str], pd.Series] = {("trials", ""): groups.size()}
    for measure in measures:
        values = groups[measure.column]
        count, mean = values.count(), values.mean()
        half: pd.Series = values.std(ddof=1) * quantile(count) / np.sqrt(count)
        half = half.where((count > 1) & (count == groups.size()))
        columns[measure.column, "mean"] = mean
        columns[measure.column, "low"] = mean - half
        columns[measure.column, "high"] = mean + half
    return pd.DataFrame(columns)


def format_summary(summary: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    """A summary as text: one column per measure, mean and half the width of the interval."""
    shown = {}
    for measure in measures:
        mean, high = summary[measure.column, "mean"], summary[measure.column, "high"]
        shown[measure.title] = [measure.write_interval(one, other - one) for one, other in zip(mean, high, strict=True)]
    return pd.DataFrame(shown, index=summary.index)
