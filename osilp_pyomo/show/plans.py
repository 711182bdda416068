"""Pictures of plans out of sample: what each costs over the draws, and how often it violates a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from osilp_pyomo.offline.plans import PlanComparison
from osilp_pyomo.show.drawing import name_of, new_figure

_COST, _VIOLATED = "#0072B2", "#D55E00"
# The middle of the draws that a thick line shows.
_MIDDLE = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class PlansDisplay:
    """Plans as lines: the middle nine tenths of their costs, mean and range on the left, draws violated on the right.

    Parameters
    ----------
    comparison : PlanComparison
        What :func:`osilp_pyomo.compare_plans` gives.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"plan": ["a", "a", "b", "b"], "draw": [0, 1, 0, 1], "cost": [1.0, 3.0, 2.0, 2.0]})
    >>> frame["violation"], frame["violated"] = [0.0, 0.2, 0.0, 0.0], [False, True, False, False]
    >>> figure = PlansDisplay(PlanComparison(frame, "minimize", "b")).plot()
    >>> figure.axes[1].get_xlabel()
    'draws with a violated row, %'
    """

    comparison: PlanComparison

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return 1.5 + 0.45 * self.comparison.frame["plan"].nunique()

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        figure = new_figure(self.height) if figure is None else figure
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[2, 1])
        frame = self.comparison.frame
        grouped = frame.groupby("plan", sort=False)
        names = list(grouped.groups)
        places = np.arange(len(names))[::-1]
        cost = grouped["cost"]
        left.hlines(places, cost.min(), cost.max(), color=_COST, linewidth=1, label="all draws")
        left.hlines(
            places, cost.quantile(_MIDDLE[0]), cost.quantile(_MIDDLE[1]), color=_COST, linewidth=6, alpha=0.6,
            label="nine of ten draws",
        )  # fmt: skip
        left.plot(cost.mean(), places, "o", color="black", label="mean")
        left.set_yticks(places, [name_of(name) for name in names])
        left.set_ylim(-0.6, len(names) - 0.4)
        left.set_xlabel(f"objective, to {self.comparison.sense}")
        left.grid(axis="x", alpha=0.3)
        share = 100 * grouped["violated"].mean()
        right.barh(places, share, height=0.5, color=_VIOLATED)
        for place, value in zip(places, share, strict=True):
            right.text(value, place, f" {value:.1f} %", va="center")
        right.tick_params(left=False)
        right.set_xlim(0, max(1.0, 1.35 * float(share.max())))
        right.set_xlabel("draws with a violated row, %")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        return figure
