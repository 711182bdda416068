"""Plans out of sample: what each costs and violates at the same draws of the uncertain vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._displays import Shown, draw
from osilp_pyomo.errors import ModelError
from osilp_pyomo.offline.functions.simulation import COST, VIOLATION
from osilp_pyomo.offline.results import Result

# A violation below this share of a row's size is one of rounding.
_ROUNDING = 1e-6
# The share of draws that are better than the cost of a bad draw.
BAD = 0.95
# Half the width of a normal 95 % interval, in standard errors.
_NORMAL = 1.96


@dataclass(frozen=True, eq=False)
class PlanComparison(Shown):
    """Plans against each other at draws of the uncertain vector (see :func:`compare_plans`).

    Attributes
    ----------
    frame : DataFrame
        One row per plan and draw: ``plan``, ``draw``, ``cost``, ``violation`` (relative to the row's size) and
        ``violated`` (above 1e-6).
    sense : "minimize" or "maximize"
        Of the objective that ``cost`` is.
    rows : str
        The plan by whose rows all of them were judged.
    """

    card = "plans"

    frame: pd.DataFrame
    sense: str
    rows: str

    @property
    def summary(self) -> pd.DataFrame:
        """One row per plan: mean, bad and worst cost, how it differs from the first, how often rows are violated.

        ``bad`` is the cost that 95 % of the draws are better than, ``difference`` the mean difference from the first
        plan at the same draws, ``plus_minus`` half the width of its normal 95 % interval, ``violated`` the share of
        draws with a violated row, and ``worst_violation`` the largest violation, relative to the row's size.
        """
        bad = BAD if self.sense == "minimize" else 1 - BAD
        grouped = self.frame.groupby("plan", sort=False)
        cost = grouped[COST]
        # Each plan has the same draws in the same order, whatever their labels are.
        by_plan = self.frame[COST].to_numpy().reshape(len(grouped), -1)
        differences = by_plan - by_plan[0]
        half = _NORMAL * differences.std(axis=1, ddof=min(1, differences.shape[1] - 1)) / np.sqrt(differences.shape[1])
        return pd.DataFrame(
            {
                "mean": cost.mean(),
                "bad": cost.quantile(bad),
                "worst": cost.max() if self.sense == "minimize" else cost.min(),
                "difference": differences.mean(axis=1),
                "plus_minus": half,
                "violated": grouped["violated"].mean(),
                "worst_violation": grouped[VIOLATION].max(),
            }
        ).rename_axis("plan")

    def plot(self, *, figure: Any = None) -> Any:
        """Draw the cost of each plan over its draws, and how often it violates a row; needs matplotlib.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Figure or SubFigure
        """
        return draw("plans", self, figure=figure)

    def table(self) -> pd.DataFrame:
        """The summary as text, one row per plan."""
        told = self.summary
        return pd.DataFrame(
            {
                "mean": told["mean"].map("{:,.6g}".format),
                f"95 % {'below' if self.sense == 'minimize' else 'above'}": told["bad"].map("{:,.6g}".format),
                "worst": told["worst"].map("{:,.6g}".format),
                "against first": [
                    f"{value:+,.4g}" + (f" +- {half:.2g}" if half > _ROUNDING * abs(value) else "") if number else ""
                    for number, (value, half) in enumerate(zip(told["difference"], told["plus_minus"], strict=True))
                ],
                "violated": told["violated"].map("{:.1%}".format).str.replace("%", " %"),
                "by at most": told["worst_violation"].map(lambda value: f"{value:.2g}" if value > _ROUNDING else "0"),
            }
        )

    @property
    def head(self) -> str:
        """How many plans and draws there are, and by whose rows they are judged."""
        count = self.frame["plan"].nunique()
        draws = len(self.frame) // count
        return f"{count} plans at the same {draws:,} draws; objective to {self.sense}, by the rows of '{self.rows}'"

    def __str__(self) -> str:
        return f"{self.head}\n{self.table().to_string(index_names=False)}"

    __repr__ = __str__


def judge(plans: Mapping[str, Result], rows: str, draws: Any, what: str) -> pd.DataFrame:
    """Cost and violation of each plan at each draw, all by the rows of one of them."""
    judging = plans[rows]
    parts = []
    for name, plan in plans.items():
        told = _simulated(plan, judging, draws, f"{what}: plan '{name}'")
        parts.append(
            pd.DataFrame(
                {
                    "plan": name,
                    "draw": told.index,
                    COST: told[COST].to_numpy(),
                    VIOLATION: told[VIOLATION].to_numpy(),
                    "violated": told[VIOLATION].to_numpy() > _ROUNDING,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _simulated(plan: Result, judging: Result, draws: Any, what: str) -> pd.DataFrame:
    recourse = judging.recourse
    assert recourse is not None
    if plan.recourse is recourse and plan.solution is not None:
        return recourse.simulate(plan.solution, draws, what)
    rules = {} if plan.recourse is None or plan.solution is None else plan.recourse.rules(plan.solution)
    decided = pd.concat(
        [plan.values, pd.Series(dict(plan.fixed), dtype=float).drop(plan.values.index, errors="ignore")]
    )
    try:
        _refuse_other_numbers(decided, judging.fixed)
        x, unknown = recourse.holding(decided, rules)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    return recourse.simulate(x, draws, what, unknown)


def _refuse_other_numbers(decided: pd.Series, fixed: Mapping[str, float]) -> None:
    """Refuse decisions that are other numbers than the rows hold in their place."""
    for name, number in fixed.items():
        if name in decided.index and not np.isclose(decided[name], number, rtol=1e-9, atol=1e-9):
            raise ModelError(
                f"its '{name}' is {decided[name]:.10g}, and the rows were made with {number:.10g}, at which it was "
                "fixed there; take the rows of a plan in which it is free by rows=."
            )
