"""Pictures of studies: what happened along the index and over time, and all pictures of a study together.

A display holds what it draws as a frame, found once, and can be drawn often::

    display = RegretDisplay.from_study(study)
    display.frame
    display.plot()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.show.drawing import Display, draw_below_each_other, legend, name_of, short_name, styles
from osilp_pyomo.show.rows import MOST_PANELS, RowsDisplay
from osilp_pyomo.studies.earning_displays import LossDisplay, RewardDisplay, first_grid_last_horizon
from osilp_pyomo.studies.sweep_displays import OverrunDisplay, RegretDisplay

__all__ = [
    "BracketDisplay",
    "BudgetDisplay",
    "LossDisplay",
    "OverrunDisplay",
    "PriceDisplay",
    "RegretDisplay",
    "RewardDisplay",
    "RowsDisplay",
    "ViolationDisplay",
]


# What the optima that a study compares with are called in its pictures.
_HINDSIGHT = {
    "offline, exchange": "in hindsight",
    "offline, discretized": "in hindsight, at the grid's points",
    "offline, projected": "in hindsight, kept on average",
}


class ViolationDisplay(Display):
    """Use minus limit over the index at the end of the first trial, of every policy and of the offline optima.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = ViolationDisplay.from_study(study)
    >>> figure = display.plot()  # into a figure of its own, or one that is given
    >>> len(figure.axes), sorted(display.frame)
    (1, ['at', 'grid', 'guard', 'horizon', 'kind', 'points', 'policy', 'row', 't', 'trial', 'value'])
    """

    title = "Violation over the index"
    caption = (
        "Use minus limit at the end of the first trial, for each row; above zero (shaded) the row is overrun there. "
        "Over an index of several dimensions the points are sorted by it."
    )

    @classmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        curves = study.curves
        if not len(curves):
            return pd.DataFrame()
        curves = first_grid_last_horizon(curves[~curves["kind"].isin(["price", "use so far"])])
        return curves

    @property
    def _panels(self) -> list[tuple[str, str, str]]:
        """Row, which of its limits, and guard of each panel."""
        used = self.frame[(self.frame["kind"] == "use") & (self.frame["guard"] != "")]
        guards = list(dict.fromkeys(used["guard"]))
        limits = self.frame[self.frame["kind"] != "use"]
        kinds = list(dict.fromkeys(zip(limits["row"], limits["kind"], strict=True)))
        return [(row, kind, guard) for row, kind in kinds for guard in guards]

    @property
    def height(self) -> float:
        return 2.9 * len(self._panels) + 0.5

    def draw(self, figure: Any) -> None:
        axes = figure.subplots(len(self._panels), 1, squeeze=False)[:, 0]
        for ax, (row, kind, guard) in zip(axes, self._panels, strict=True):
            self._draw_row(ax, row, kind, guard)
        legend(figure, axes[0])

    def _draw_row(self, ax: Any, row: str, kind: str, guard: str) -> None:
        part = self.frame[self.frame["row"] == row]
        names = _axes_of(self.model, row)
        limit = part[part["kind"] == kind]
        uses = part[(part["kind"] == "use") & part["guard"].isin([guard, ""])]
        # An upper limit is overrun from below, a lower one from above.
        below = kind == "lower limit" or (kind == "limit" and _side_of(self.model, row) == ">=")
        looks = styles()
        for (policy, under), own in uses.groupby(["policy", "guard"], sort=False):
            label = short_name(policy) if under else _HINDSIGHT.get(str(policy), str(policy))
            style = next(looks) if under else {"color": "0.6", "linestyle": "-", "linewidth": 2.5}
            style = {**style, "linestyle": ":" if (policy, under) == ("offline, projected", "") else style["linestyle"]}
            style.pop("marker", None)
            excess = own["value"].to_numpy() - limit["value"].to_numpy()
            excess = -excess if below else excess
            if len(names) == 1:
                ax.plot(own["at"], excess, label=label, **style)
            else:
                share = 100 * (np.arange(len(excess)) + 0.5) / len(excess)
                ax.plot(share, np.sort(excess)[::-1], label=label, **style)
        ax.axhline(0, color="black", linewidth=0.8)
        top = ax.get_ylim()[1]
        if top > 0:
            ax.axhspan(0, top, color="0.5", alpha=0.12, linewidth=0)
            ax.set_ylim(top=top)
        ax.margins(x=0)
        ax.set_xlabel(names[0] if len(names) == 1 else f"% of the points ({', '.join(names)})")
        ax.set_ylabel("limit - use" if below else "use - limit")
        told = (f"'{row}'", "" if kind == "limit" else kind, self.under(guard))
        ax.set_title(name_of(", ".join(filter(None, told))), fontsize="medium")


class PriceDisplay(Display):
    """The price as a function of the index: the offline ones, and those of each policy at several moments.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = PriceDisplay.from_study(study)
    >>> figure = display.plot()  # into a figure of its own, or one that is given
    >>> len(figure.axes), sorted(display.frame)
    (2, ['at', 'grid', 'guard', 'horizon', 'kind', 'points', 'policy', 'row', 't', 'trial', 'value'])
    """

    title = "Price over the index"
    caption = (
        "What one more unit of the limit is worth, per unit of the index, in the first trial: offline (known after the "
        "last arrival) and as each policy has it at several moments. Prices on single points are spread by 2 % of the "
        "index; over several dimensions the first is shown. Prices above three times the largest offline one are cut; "
        "policies that have no prices are left out, and of many the last."
    )

    @classmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        curves = study.curves
        if not len(curves):
            return pd.DataFrame()
        prices = first_grid_last_horizon(curves[curves["kind"] == "price"])
        guards = [guard for guard in dict.fromkeys(prices["guard"]) if guard]
        return prices[prices["guard"].isin(["", *guards[:1]])]

    @property
    def tells(self) -> bool:
        return len(self.frame) > 0 and bool((self.frame["value"] != 0).any())

    @property
    def _panels(self) -> list[tuple[str, str]]:
        online = self.frame[self.frame["guard"] != ""]
        # A policy without prices, as first come, first served is, has no picture of them.
        priced = online[online.groupby("policy")["value"].transform(lambda own: own.abs().max()) > 0]
        shown = priced if len(priced) else online
        # The picture of more could not be read.
        policies = list(dict.fromkeys(shown["policy"]))[: max(1, MOST_PANELS // shown["row"].nunique())]
        shown = shown[shown["policy"].isin(policies)]
        return list(dict.fromkeys(zip(shown["row"], shown["policy"], strict=True)))

    @property
    def height(self) -> float:
        return 2.6 * -(-len(self._panels) // 2) + 0.5

    def draw(self, figure: Any) -> None:
        panels = self._panels
        axes = figure.subplots(-(-len(panels) // 2), 2, squeeze=False, sharex="col" if len(panels) <= 2 else False)
        for ax, (row, policy) in zip(axes.flat, panels, strict=False):
            self._draw_panel(ax, row, policy)
        for ax in list(axes.flat)[len(panels) :]:
            ax.set_axis_off()
        legend(figure, axes[0, 0])

    def _draw_panel(self, ax: Any, row: str, policy: str) -> None:
        part = self.frame[self.frame["row"] == row]
        for name, own in part[part["guard"] == ""].groupby("policy", sort=False):
            dash = "-" if name == "offline, exchange" else "--"
            ax.plot(
                own["at"],
                own["value"],
                color="0.65",
                linewidth=3,
                linestyle=dash,
                label=_HINDSIGHT.get(str(name), str(name)),
            )
        online = part[(part["policy"] == policy) & (part["guard"] != "")]
        for (t, own), dash, width in zip(online.groupby("t"), (":", "--", "-"), (1.0, 1.2, 1.6), strict=False):
            ax.plot(own["at"], own["value"], color="black", linestyle=dash, linewidth=width, label=f"online, t = {t:,}")
        names = _axes_of(self.model, row)
        ax.margins(x=0)
        offline = part.loc[part["guard"] == "", "value"].abs().max()
        low, high = ax.get_ylim()
        if offline > 0:
            ax.set_ylim(max(low, -3 * offline), min(high, 3 * offline))
        ax.set_xlabel(names[0])
        ax.set_ylabel(f"price per unit of {names[0]}")
        ax.set_title(short_name(policy) + name_of(f", '{row}'"), fontsize="medium")


class BudgetDisplay(Display):
    """Share of the budget used while arrivals come, averaged over test functions and trials.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = BudgetDisplay.from_study(study)
    >>> figure = display.plot()  # into a figure of its own, or one that is given
    >>> len(figure.axes), sorted(display.frame)
    (1, ['guard', 'horizon', 'policy', 't', 'used'])
    """

    title = "Budget used over time"
    caption = (
        "Share of the budget used so far, averaged over the test functions and over the trials; the thin line is what "
        "an even pace would use."
    )

    @classmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        if not len(study.paths):
            return pd.DataFrame()
        paths = first_grid_last_horizon(study.paths)
        return paths.groupby(["horizon", "policy", "guard", "t"], sort=False)["used"].mean().reset_index()

    @property
    def height(self) -> float:
        return 3.3

    def draw(self, figure: Any) -> None:
        guards = list(dict.fromkeys(self.frame["guard"]))
        axes = figure.subplots(1, len(guards), squeeze=False, sharey=True)[0]
        for ax, guard in zip(axes, guards, strict=True):
            part = self.frame[self.frame["guard"] == guard]
            for style, (policy, own) in zip(styles(), part.groupby("policy", sort=False), strict=False):
                own = own.sort_values("t")
                ax.plot(own["t"], 100 * own["used"], label=short_name(policy), markevery=8, markersize=4, **style)
            last = int(part["t"].max())
            ax.plot([0, last], [0, 100], color="0.5", linewidth=0.8)
            ax.margins(x=0)
            ax.set_xlabel("arrivals t")
            ax.set_title(self.under(guard), fontsize="medium")
            ax.grid(alpha=0.3)
        axes[0].set_ylabel("budget used, %")
        legend(figure, axes[0])


class BracketDisplay(Display):
    """How exchange closed in on the optimum: the bound, and the violation of its point, by iteration.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> display = BracketDisplay.from_study(study)
    >>> figure = display.plot()  # into a figure of its own, or one that is given
    >>> len(figure.axes), sorted(display.frame)
    (2, ['bound', 'grid', 'horizon', 'iteration', 'objective', 'points', 'rows', 'trial', 'violation'])
    """

    title = "Offline bracket by iteration"
    caption = (
        "Exchange in the first trial: how far its bound is from the objective of the feasible point that it ends with, "
        "and the largest violation of the point behind the bound."
    )

    @classmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        if not len(study.iterations):
            return pd.DataFrame()
        return first_grid_last_horizon(study.iterations)

    @property
    def tells(self) -> bool:
        return len(self.frame) > 1

    @property
    def height(self) -> float:
        return 3.0

    def draw(self, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        objective = float(self.frame["objective"].iloc[-1])
        gap = np.abs(self.frame["bound"] - objective)
        self._draw_falling(left, gap, f"|bound - {objective:.6g}|")
        left.set_title(f"the optimum lies in [{objective:.8g}, bound]", fontsize="medium")
        if self.model["sense"] == "minimize":
            left.set_title(f"the optimum lies in [bound, {objective:.8g}]", fontsize="medium")
        self._draw_falling(right, self.frame["violation"], "violation of the bound's point")

    def _draw_falling(self, ax: Any, values: pd.Series, label: str) -> None:
        ax.plot(self.frame["iteration"], values, color="black", marker="o", markersize=4)
        if (values > 0).any():
            ax.set_yscale("log")
        ax.set_xlabel("iteration")
        ax.set_ylabel(label)
        ax.grid(alpha=0.3)


DISPLAYS: dict[str, type[Display]] = {
    "regret": RegretDisplay,
    "reward": RewardDisplay,
    "loss": LossDisplay,
    "overrun": OverrunDisplay,
    "violation": ViolationDisplay,
    "price": PriceDisplay,
    "budget": BudgetDisplay,
    "bracket": BracketDisplay,
}


def study_figure(study: Any, what: str | None, figure: Any = None) -> Any:
    """One picture of a study, or all of them below each other.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> [axis.get_xlabel() for axis in study_figure(study, "budget").axes]
    ['arrivals t']
    """
    if what is not None:
        if what not in DISPLAYS:
            raise OptionError(f"plot: what must be one of {', '.join(map(repr, DISPLAYS))} (got {what!r}).")
        return DISPLAYS[what].from_study(study).plot(figure)
    displays = list(displays_of(study))
    if not displays:
        raise DataError("plot: no trial of this study is finished yet.")
    return draw_below_each_other(displays, figure)


def displays_of(study: Any) -> Iterator[Display]:
    """The pictures that have something to tell: no violations where nothing was ever violated.

    Examples
    --------
    >>> from osilp_pyomo.demo import demo_study
    >>> study = demo_study()
    >>> [display.title for display in displays_of(study)][:2]
    ['Regret', 'Reward over time']
    """
    for kind in DISPLAYS.values():
        display = kind.from_study(study)
        if display.tells:
            yield display


def _rows_of(model: Mapping[str, Any], row: str) -> Sequence[Mapping[str, Any]]:
    return [each for each in model["rows"] if each["name"] == row]


def _axes_of(model: Mapping[str, Any], row: str) -> Sequence[str]:
    return _rows_of(model, row)[0]["axes"]


def _side_of(model: Mapping[str, Any], row: str) -> str:
    return str(_rows_of(model, row)[0]["side"])
