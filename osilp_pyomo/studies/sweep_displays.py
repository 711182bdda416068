"""Pictures of means with their intervals: over T, over the points of the grid, or by policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from osilp_pyomo.show.drawing import Display, in_words, legend, short_name, styles
from osilp_pyomo.studies.measures import measures_for, summarize


class SweepDisplay(Display):
    """Means of some measures with their 95 % intervals: over T, over the points of the grid, or by policy."""

    #: How the columns of the runs begin that are drawn.
    columns: ClassVar[tuple[str, ...]]

    @classmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        if not len(study.runs):
            return pd.DataFrame()
        measures = [each for each in measures_for(study.benchmarks) if each.column.startswith(cls.columns)]
        summary = summarize(study.runs, measures)
        parts = []
        for measure in measures:
            part = summary[measure.column] * (100 if measure.form == "percent" else 1)
            named = part.assign(measure=measure.column, title=measure.title, unit=measure.unit.strip())
            parts.append(named.reset_index())
        if not parts:
            return pd.DataFrame()
        frame = pd.concat(parts, ignore_index=True)
        # Where the points are not swept themselves, runs on several grids are lines of their own.
        several = len(set(frame["grid"])) > 1 and (len(set(frame["horizon"])) > 1 or len(set(frame["points"])) == 1)
        grids = study.settings["grids"]
        frame["line"] = [
            f"{policy}, {grids[grid] or points}" if several else policy
            for policy, grid, points in zip(frame["policy"], frame["grid"], frame["points"], strict=True)
        ]
        return frame

    @property
    def along(self) -> str | None:
        """What is swept: a column that varies, or None."""
        return next((name for name in ("horizon", "points") if len(set(self.frame[name])) > 1), None)

    @property
    def height(self) -> float:
        if self.along is None:
            return 1.2 + 0.28 * len(self.frame[["line", "guard"]].drop_duplicates())
        return 3.3 * len(set(self.frame["guard"])) + 0.5

    def draw(self, figure: Any) -> None:
        measures = list(dict.fromkeys(self.frame["measure"]))
        if self.along is None:
            axes = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
            for ax, measure in zip(axes, measures, strict=True):
                self._draw_dots(ax, self.frame[self.frame["measure"] == measure])
            return
        guards = list(dict.fromkeys(self.frame["guard"]))
        # A policy looks the same in every panel.
        looks = dict(zip(dict.fromkeys(self.frame["line"]), styles(), strict=False))
        axes = figure.subplots(len(guards), len(measures), squeeze=False, sharex=True)
        for row, guard in zip(axes, guards, strict=True):
            for ax, measure in zip(row, measures, strict=True):
                chosen = (self.frame["measure"] == measure) & (self.frame["guard"] == guard)
                self._draw_lines(ax, self.frame[chosen], looks)
        for ax in axes[-1]:
            ax.set_xlabel("arrivals T" if self.along == "horizon" else "points of the grid m")
        legend(figure, *axes[:, 0])

    def _draw_dots(self, ax: Any, part: pd.DataFrame) -> None:
        labels = [
            ", ".join(filter(None, (short_name(line), self.under(guard))))
            for line, guard in zip(part["line"], part["guard"], strict=True)
        ]
        places = np.arange(len(part))[::-1]
        spread = np.nan_to_num(np.array([part["mean"] - part["low"], part["high"] - part["mean"]]))
        ax.errorbar(part["mean"], places, xerr=spread, fmt="o", color="black", capsize=3, markersize=4)
        ax.set_yticks(places, labels)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel(_with_unit(part))
        ax.grid(axis="x", alpha=0.3)

    def _draw_lines(self, ax: Any, part: pd.DataFrame, looks: Mapping[str, Mapping[str, Any]]) -> None:
        along = self.along
        assert along is not None
        for line, own in part.groupby("line", sort=False):
            own, style = own.sort_values(along), looks[str(line)]
            ax.plot(own[along], own["mean"], label=short_name(line), markersize=4, **style)
            ax.fill_between(own[along], own["low"], own["high"], color=style["color"], alpha=0.12, linewidth=0)
        _scale_values(ax, part["mean"])
        sizes = np.unique(part[along])
        if sizes[-1] >= 8 * sizes[0]:
            ax.set_xscale("log")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=30 if len(sizes) > 5 else 0)
        ax.set_xticks([], minor=True)
        ax.set_ylabel(_with_unit(part))
        ax.set_title(self.under(part["guard"].iloc[0]), fontsize="medium")
        ax.grid(alpha=0.3)


class RegretDisplay(SweepDisplay):
    """Mean regret against each benchmark with its 95 % interval: over T, over the points of the grid, or by policy.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = RegretDisplay.from_study(study)
    >>> figure = display.plot()
    >>> display.frame[["measure", "mean"]].round(3)
                         measure    mean
    0   relative_regret_exchange  50.383
    1  relative_regret_projected  54.907
    """

    title = "Regret"
    caption = (
        "Mean over trials of how much less a policy earned than the benchmark, as a share of it, with 95 % intervals. "
        "Below zero it earned more than a point that keeps all rows could: look at its violation."
    )
    columns = ("relative_regret_",)


class OverrunDisplay(SweepDisplay):
    """Mean violation with its 95 % interval, at points and as the paper measures it: over T, grid points, or by policy.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = OverrunDisplay.from_study(study)
    >>> figure = display.plot()
    >>> display.frame[["measure", "mean"]].round(3)
                  measure  mean
    0  relative_violation   0.0
    1      test_violation   0.0
    """

    title = "Violation"
    caption = (
        "Mean over trials of the largest overrun at a single point, as a share of its limit, and of the paper's v, "
        "which averages over the index and can read zero while points are overrun."
    )
    columns = ("relative_violation", "test_violation")

    @property
    def tells(self) -> bool:
        return len(self.frame) > 0 and bool((self.frame["mean"] != 0).any())


def _with_unit(part: pd.DataFrame) -> str:
    title, unit = in_words(part["title"].iloc[0]), part["unit"].iloc[0]
    return f"{title}, {unit}" if unit else title


def _scale_values(ax: Any, values: pd.Series) -> None:
    """Logarithms for what is positive and spans decades; with a straight piece around zero where it is not positive."""
    sizes = np.abs(values[values != 0].to_numpy(dtype=float))
    if not len(sizes) or not np.all(np.isfinite(sizes)) or sizes.max() < 30 * sizes.min():
        ax.axhline(0, color="black", linewidth=0.8)
    elif (values > 0).all():
        ax.set_yscale("log")
    else:
        ax.axhline(0, color="black", linewidth=0.8)
        if sizes.max() > 1000:
            ax.set_yscale("symlog", linthresh=10.0)
