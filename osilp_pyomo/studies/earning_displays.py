"""Pictures of what policies earn: over time beside the optimum in hindsight, and where the rest of it was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.online.runs import BENCHMARKS
from osilp_pyomo.show.drawing import BENCHMARK, FAINT, LIMIT, PRICE, USE, Display, in_words, legend, short_name, styles
from osilp_pyomo.studies.losses import PARTS
from osilp_pyomo.studies.measures import quantile

# What each part of a loss is called below its bar, and its colour.
_CALLED = {
    "priced": ("wrong price", USE),
    "tie": ("ties", "#CC79A7"),
    "guard": ("guard", PRICE),
    "left": ("left over", "#E69F00"),
}


def first_grid_last_horizon(frame: pd.DataFrame) -> pd.DataFrame:
    """The part of a frame that pictures of single runs show: the largest horizon, on the first grid."""
    if not len(frame):
        return frame
    return frame[(frame["horizon"] == frame["horizon"].max()) & (frame["grid"] == frame["grid"].min())]


def _means(values: pd.Series, keys: list[str], frame: pd.DataFrame) -> pd.DataFrame:
    """Mean over trials and the ends of its 95 % interval; without ends where there is one trial."""
    groups = frame.assign(value=values).groupby(keys, sort=False)["value"]
    count = groups.count()
    half: pd.Series = (groups.std(ddof=1) * quantile(count) / np.sqrt(count)).where(count > 1)
    mean = groups.mean()
    return pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half}).reset_index()


class RewardDisplay(Display):
    """Reward so far of each policy beside that of the optimum in hindsight, and how far each is behind it.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = RewardDisplay.from_study(study)
    >>> figure = display.plot()  # into a figure of its own, or one that is given
    >>> len(figure.axes), display.frame["measure"].unique().tolist()
    (2, ['reward', 'hindsight', 'behind'])
    """

    title = "Reward over time"
    caption = (
        "Left: what was earned so far, mean over trials, with 95 % intervals. Right: how much less that is than what "
        "the optimum in hindsight, which knows all arrivals, has earned by the same arrival; it can be below zero "
        "before the end, for the optimum may keep capacity for what it knows will come."
    )

    @classmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        if not len(study.paths):
            return pd.DataFrame()
        paths = first_grid_last_horizon(study.paths)
        measured = {"reward": paths["reward"]}
        if "hindsight" in paths and paths["hindsight"].notna().all():
            sign = 1.0 if study.settings["model"]["sense"] == "maximize" else -1.0
            measured |= {
                "hindsight": paths["hindsight"], "behind": sign * (paths["hindsight"] - paths["reward"]),
            }  # fmt: skip
        parts = [
            _means(values, ["policy", "guard", "t"], paths).assign(measure=name) for name, values in measured.items()
        ]
        return pd.concat(parts, ignore_index=True)

    @property
    def height(self) -> float:
        return 3.3 * len(set(self.frame["guard"])) + 0.4

    def draw(self, figure: Any) -> None:
        guards = list(dict.fromkeys(self.frame["guard"]))
        several = "behind" in set(self.frame["measure"])
        looks = dict(zip(dict.fromkeys(self.frame["policy"]), styles(), strict=False))
        axes = figure.subplots(len(guards), 1 + several, squeeze=False, sharex=True)
        earned = "earned" if self.model["sense"] == "maximize" else "paid"
        for row, guard in zip(axes, guards, strict=True):
            part = self.frame[self.frame["guard"] == guard]
            own = part[part["measure"] == "hindsight"]
            if len(own):
                known = own[own["policy"] == own["policy"].iloc[0]]
                row[0].plot(known["t"], known["mean"], color=BENCHMARK, linewidth=3.5, alpha=0.7, label="in hindsight")
            self._draw(row[0], part[part["measure"] == "reward"], looks)
            row[0].set_ylabel(f"{earned} so far")
            if several:
                row[1].axhline(0, color=BENCHMARK, linewidth=3.5, alpha=0.7)
                self._draw(row[1], part[part["measure"] == "behind"], looks)
                row[1].set_ylabel("behind the optimum\nin hindsight")
            for ax in row:
                ax.set_title(self.under(guard), fontsize="medium")
                ax.set_xlabel("arrivals t")
                ax.margins(x=0)
                ax.grid(alpha=0.3)
        legend(figure, axes[0, 0])

    def _draw(self, ax: Any, part: pd.DataFrame, looks: Mapping[str, Mapping[str, Any]]) -> None:
        for policy, own in part.groupby("policy", sort=False):
            own, style = own.sort_values("t"), looks[str(policy)]
            ax.plot(own["t"], own["mean"], label=short_name(policy), markevery=8, markersize=4, **style)
            ax.fill_between(own["t"], own["low"], own["high"], color=style["color"], alpha=0.15, linewidth=0)


class LossDisplay(Display):
    """Where the regret of each policy comes from, part by part, until the whole of it.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = LossDisplay.from_study(study)
    >>> figure = display.plot()  # into a figure of its own, or one that is given
    >>> [text.get_text() for text in figure.axes[0].get_xticklabels()]
    ['wrong price', 'ties', 'guard', 'left over', 'in all']
    """

    title = "Where the loss comes from"
    caption = (
        "The regret in parts that sum to it, each by the prices of the optimum in hindsight, means over trials. Wrong "
        "price: decided by the price of the moment, which was not yet that one, for what would come was not known. "
        "Ties: the price of the moment left it open. Guard: changed to what fitted, or nothing fitted. Left over: "
        "capacity that was never used, at its price; below zero where rows were overrun."
    )
    nothing = (
        "no trial is finished, or none tells where its regret comes from: that takes stages that are linear in the "
        "decision, and a benchmark whose prices prove its optimum, as whole numbers have none; plot('regret') shows "
        "how much it is"
    )

    @classmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        if not len(study.losses):
            return pd.DataFrame()
        losses = first_grid_last_horizon(study.losses)
        # Trials are told by one benchmark each; what only some of them were told by is left out.
        benchmark = losses["benchmark"].value_counts().index[0]
        losses = losses[losses["benchmark"] == benchmark]
        keys = ["trial", "horizon", "grid"]
        optima = study.offline[study.offline["benchmark"] == benchmark].set_index(keys)["objective"].abs()
        size = losses[keys].merge(optima, left_on=keys, right_index=True, how="left")["objective"]
        relative = bool((size > 0).all())
        values = 100 * losses["value"] / size.to_numpy() if relative else losses["value"]
        frame = _means(values, ["policy", "guard", "part"], losses)
        return frame.assign(benchmark=benchmark, unit="%" if relative else "")

    @property
    def tells(self) -> bool:
        # Less than that, in percent, is rounding.
        return len(self.frame) > 0 and bool((self.frame["mean"].abs() > 1e-9).any())

    @property
    def _panels(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys(zip(self.frame["policy"], self.frame["guard"], strict=True)))

    @property
    def _columns(self) -> int:
        return min(len(self._panels), 4 if len(self._panels) % 4 == 0 else 3)

    @property
    def height(self) -> float:
        return 3.0 * -(-len(self._panels) // self._columns) + 0.2

    def draw(self, figure: Any) -> None:
        panels = self._panels
        columns = self._columns
        axes = figure.subplots(-(-len(panels) // columns), columns, squeeze=False)
        unit = self.frame["unit"].iloc[0]
        against = in_words(BENCHMARKS[self.frame["benchmark"].iloc[0]].split()[0])
        for ax, (policy, guard) in zip(axes.flat, panels, strict=False):
            own = self.frame[(self.frame["policy"] == policy) & (self.frame["guard"] == guard)].set_index("part")
            self._draw_panel(ax, own["mean"].reindex(list(PARTS)))
            ax.set_title("\n".join(filter(None, (short_name(policy), self.under(guard)))), fontsize="medium")
        for ax in list(axes.flat)[len(panels) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel(f"lost, % of {against}" if unit else f"lost against {against}")
        # What can be compared has one scale; without a guard losses are of another size.
        for guard in {guard for _, guard in panels}:
            alike = [ax for ax, (_, under) in zip(axes.flat, panels, strict=False) if under == guard]
            ends = [ax.get_ylim() for ax in alike]
            for ax in alike:
                ax.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))

    @staticmethod
    def _draw_panel(ax: Any, parts: pd.Series) -> None:
        ends = np.concatenate([[0.0], parts.cumsum()])
        labels, colours = zip(*_CALLED.values(), strict=True)
        ax.bar(range(len(parts)), parts, bottom=ends[:-1], color=colours, width=0.72)
        ax.bar(len(parts), ends[-1], color="0.25", width=0.72)
        for place, level in enumerate(ends[1:]):
            # A step leads from the end of one bar to the beginning of the next.
            ax.plot([place - 0.36, place + 1.36], [level, level], color=FAINT, linewidth=0.9)
        tops = np.maximum([*ends[1:], 0.0], [*ends[:-1], ends[-1]])
        for place, (value, top) in enumerate(zip([*parts, ends[-1]], tops, strict=True)):
            text = f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
            ax.annotate(text, (place, top), xytext=(0, 2), textcoords="offset points", ha="center",
                        fontsize="small")  # fmt: skip
        ax.set_xticks(range(len(parts) + 1), [*labels, "in all"], rotation=30, ha="right", rotation_mode="anchor")
        ax.axhline(0, color=LIMIT, linewidth=0.8)
        # Room for the numbers above the bars.
        ax.use_sticky_edges = False
        ax.margins(y=0.12)
        ax.set_axisbelow(True)
        ax.grid(axis="y", alpha=0.3)
