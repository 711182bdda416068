"""Pictures of results: the prices of an optimum, and what conflicts where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.errors import DataError, PriceError
from osilp_pyomo.offline.results import Result
from osilp_pyomo.offline.units import Units
from osilp_pyomo.show.drawing import LIMIT, PRICE, USE, draw_below_each_other, name_of, new_figure
from osilp_pyomo.show.prices import PriceMeasureDisplay
from osilp_pyomo.show.rows import MOST_PANELS

# Parts of a conflict that are drawn one by one, and letters of one.
_PARTS, _LETTERS = 24, 70
# More bounds of one side than these are one bar.
_BOUNDS = 6
_SIDES = {"at least": (PRICE, "asked for"), "at most": (USE, "allowed")}


@dataclass(frozen=True, eq=False)
class ConflictDisplay:
    """What cannot hold together in an infeasible model: each limit with its place, its weight, and limit times weight.

    What asks for at least something stands above what allows at most something, the largest first. Times their weights
    the former sum to more than the latter, and that is the contradiction.

    Parameters
    ----------
    frame : DataFrame
        ``result.conflict``.
    indices : dict
        Names of the index of each family.
    units : Units, optional
        Units of a result, for the texts.

    Examples
    --------
    >>> frame = pd.DataFrame({"kind": ["row", "bound"], "name": ["above", "x"], "place": [0.5, None]})
    >>> frame["side"], frame["limit"], frame["weight"] = ["at least", "at most"], [1.0, 0.5], [0.5, 0.5]
    >>> figure = ConflictDisplay(frame, {"above": ("u",)}).plot()
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ["'above' at u = 0.5: at least 1", 'bound of x: at most 0.5']
    """

    frame: pd.DataFrame
    indices: Mapping[str, tuple[str, ...]]
    units: Units = Units()  # noqa: RUF009

    title = "What cannot hold together"

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return 1.9 + 0.3 * min(len(self.bars), _PARTS + 1)

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        if not len(self.frame):
            raise DataError("ConflictDisplay: there is nothing to draw, for no conflict is known.")
        figure = new_figure(self.height) if figure is None else figure
        left, right = figure.subplots(1, 2, sharey=True)
        parts = self.bars
        shares = (parts[["weight", "part"]].abs() / parts[["weight", "part"]].abs().max()).max(axis=1)
        heaviest = parts.loc[shares.sort_values(ascending=False, kind="stable").index][:_PARTS]
        shown = pd.concat([heaviest[heaviest["side"] == side] for side in ("at least", "at most")])
        places = np.arange(len(shown))[::-1].astype(float)
        for ax, column in ((left, "weight"), (right, "part")):
            for side, (colour, label) in _SIDES.items():
                own = (shown["side"] == side).to_numpy()
                if own.any():
                    ax.barh(places[own], shown[column][own], height=0.62, color=colour, label=label)
            ax.axvline(0, color=LIMIT, linewidth=0.8)
            ax.margins(y=0.02)
            ax.set_axisbelow(True)
            ax.grid(axis="x", alpha=0.3)
        left.set_yticks(places, [name_of(text) for text in shown["text"]])
        left.set_xlabel("weight in the contradiction")
        right.set_xlabel("limit times weight")
        rest = len(parts) - len(shown)
        more = f"; {rest:,} small ones are left out" if rest else ""
        asked, allowed = (parts.loc[parts["side"] == side, "part"].sum() for side in _SIDES)
        figure.suptitle(
            f"these {len(self.frame):,} limits cannot hold together: {asked:.4g} is asked for, {allowed:.4g} allowed"
            f"{more}",
            fontsize="medium",
        )
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        return figure

    @property
    def bars(self) -> pd.DataFrame:
        """What is drawn: ``text``, ``side``, ``weight`` and ``part``, limit times weight; many bounds are one bar."""
        made = []
        for side, own in self.frame.assign(part=self.frame["limit"] * self.frame["weight"]).groupby("side", sort=False):
            bounds = own[own["kind"] == "bound"]
            together = len(bounds) > _BOUNDS
            for each in (own[own["kind"] != "bound"] if together else own).to_dict("records"):
                made.append((self._text(each), side, each["weight"], each["part"]))
            if together:
                low, high = bounds["limit"].min(), bounds["limit"].max()
                said = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
                text = f"bounds of {len(bounds):,} variables: {side} {said}"
                made.append((text, side, bounds["weight"].sum(), bounds["part"].sum()))
        return pd.DataFrame(made, columns=["text", "side", "weight", "part"])

    def _text(self, part: Mapping[Any, Any]) -> str:
        name, where = f"'{part['name']}'", ""
        if part["kind"] == "row":
            names = self.indices.get(part["name"], ())
            place = part["place"] if isinstance(part["place"], tuple) else (part["place"],)
            known = names if len(names) == len(place) else [""] * len(place)
            said = ", ".join(
                f"{axis} = {value:.4g} {self.units.index.get(axis, '')}".rstrip() if axis else f"{value:.4g}"
                for axis, value in zip(known, place, strict=True)
            )
            where = f" at {said}"
        elif part["kind"] == "test function":
            where = f" on test function {part['place']}"
        elif part["kind"] == "bound":
            name = f"bound of {part['name']}"
        text = f"{name}{where}"
        cut = f"{text[:_LETTERS]}..." if len(text) > _LETTERS else text
        unit = self.units.rows.get(part["name"], "") if part["kind"] == "row" else ""
        return f"{cut}: {part['side']} {part['limit']:.6g} {unit}".rstrip()


class PricesDisplay:
    """The prices of a result, one below the other."""

    def __init__(self, result: Result) -> None:
        try:
            prices = result.prices
        except PriceError:
            raise PriceError(
                "plot: a model with integer variables has no prices to draw; osilp_pyomo.plot_rows(model, result) "
                "draws its rows and limits, and solve(model, fix_integers=True) gives prices at the integers found."
            ) from None
        if not len(prices):
            raise DataError(
                "plot: the solved model has no rows over an index, so that there is no price to draw; result.values "
                "and result.duals hold the numbers."
            )
        if len(prices) > MOST_PANELS:
            raise DataError(
                f"plot: the prices of {len(prices)} families do not fit into one picture, {MOST_PANELS} do; draw some "
                "by result.prices[name].plot()."
            )
        self._displays = [PriceMeasureDisplay(price, result.units) for price in prices.values()]

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        return draw_below_each_other(self._displays, figure)


def result_display(result: Result) -> ConflictDisplay | PricesDisplay:
    """What there is to draw of a result alone: its prices, or what conflicts.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> figure = result_display(osilp.solve(demo_model(arrivals=40))).plot()
    >>> figure.axes[0].get_xlabel()
    'u'
    """
    if len(result.conflict):
        return ConflictDisplay(result.conflict, result.indices, result.units)
    if result.answer is None:
        why = f" ({result.remark})" if result.remark else ""
        raise DataError(
            f"plot: there is nothing to draw, for the {result.method} method ended with status '{result.status}'{why}."
        )
    return PricesDisplay(result)
