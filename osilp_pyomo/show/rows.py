"""Pictures of rows along their index: how much of each limit is used, and what the rest is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError, PriceError
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.units import Units
from osilp_pyomo.show.drawing import LIMIT, PRICE, SHADES, USE, draw_cells, name_of, new_figure
from osilp_pyomo.show.prices import draw_price

# The picture of more families could not be read.
MOST_PANELS = 12
# A violation below this share of the row's size there, or this one of its size anywhere, is not worth a word.
_ROUNDING, _LEAST = 1e-9, 1e-13


@dataclass(frozen=True, eq=False)
class RowsDisplay:
    """Rows over their index: body and limits, the places where a limit is passed, and the price.

    Along one axis the row's body is drawn as a curve between its limits, with the price below: spikes where it sits on
    single points, else a curve. Over a plane the slack is a colour, with a star where the price sits; in
    more dimensions it is sorted over the share of the points.

    Parameters
    ----------
    frame : DataFrame
        What :func:`osilp_pyomo.evaluate_rows` gives.
    axes : dict
        Names of the index for each family.
    prices : dict, optional
        The price of each family.
    inside : dict, optional
        For families with ``where=``, a function that tells which points (m, d) it leaves.
    body : str
        What the row's body is called.
    units : Units, optional
        Units of rows, prices and index, which the axes then name.

    Examples
    --------
    >>> rows = pd.DataFrame({"family": "c", "u": [0.0, 0.5, 1.0], "lower": -np.inf, "body": [1.0, 2.0, 1.5]})
    >>> rows["upper"], rows["violation"] = 1.8, [0.0, 0.2, 0.0]
    >>> figure = RowsDisplay(rows, {"c": ("u",)}).plot()
    >>> figure.axes[0].get_title()
    "'c': passed by up to 0.2"
    """

    frame: pd.DataFrame
    axes: Mapping[str, tuple[str, ...]]
    prices: Mapping[str, Price] = field(default_factory=dict)
    inside: Mapping[str, Callable[[FloatArray], Any]] = field(default_factory=dict)
    body: str = "body of the row"
    units: Units = Units()  # noqa: RUF009

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return sum(self._panel_height(family) for family in self.axes)

    def _panel_height(self, family: str) -> float:
        return {1: 4.1 if family in self.prices else 3.1, 2: 4.6}.get(len(self.axes[family]), 2.9)

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        if not len(self.frame):
            raise DataError(
                "RowsDisplay: there is nothing to draw, for the model has no active SemiInfiniteConstraint."
            )
        if len(self.axes) > MOST_PANELS:
            raise DataError(
                f"RowsDisplay: {len(self.axes)} families do not fit into one picture, {MOST_PANELS} do; name some of "
                "them by families=[...]."
            )
        figure = new_figure(self.height) if figure is None else figure
        parts = figure.subfigures(len(self.axes), 1, height_ratios=[self._panel_height(name) for name in self.axes])
        for part, family in zip(np.atleast_1d(parts), self.axes, strict=True):
            rows = self.frame[self.frame["family"] == family]
            dimension = len(self.axes[family])
            draw = self._curve if dimension == 1 else self._plane if dimension == 2 else self._sorted
            draw(part, family, rows)
        return figure

    def _title(self, family: str, rows: pd.DataFrame) -> str:
        violation, body = rows["violation"].to_numpy(), rows["body"].abs().to_numpy()
        limit = np.where(rows["body"] > rows["upper"], rows["upper"], rows["lower"])
        size = np.maximum(body, np.where(np.isfinite(limit), np.abs(limit), 0.0))
        passed = violation > np.maximum(_ROUNDING * size, _LEAST * size.max())
        worst = violation.max(where=passed, initial=0.0)
        return name_of(
            f"'{family}': " + (f"passed by up to {worst:.2g}" if worst > 0 else f"kept at all {len(rows):,} points")
        )

    def _curve(self, figure: Any, family: str, rows: pd.DataFrame) -> None:
        (index,) = self.axes[family]
        title = self._title(family, rows)
        rows = _with_holes(rows.sort_values(index), index, self.inside.get(family))
        price = self.prices.get(family)
        heights = [1.0] if price is None else [2.4, 1.0]
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        ax, at, body = panels[0], rows[index], rows["body"]
        ax.plot(at, body, color=USE, linewidth=1.6, label=self.body)
        for side, dash in (("upper", "-"), ("lower", "--")):
            if np.isfinite(rows[side]).any():
                ax.plot(at, rows[side], color=LIMIT, linewidth=1.2, linestyle=dash, label=f"{side} limit")
                beyond = body > rows[side] if side == "upper" else body < rows[side]
                ax.fill_between(at, body, rows[side], where=beyond, color=PRICE, alpha=0.5, linewidth=0)
        ax.set_title(title, fontsize="medium")
        figure.legend(
            *ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize="small"
        )
        ax.margins(x=0.01)
        ax.grid(alpha=0.3)
        if price is not None:
            draw_price(panels[1], price, index)
            if self.units.prices.get(family):
                panels[1].set_ylabel(f"{panels[1].get_ylabel()} [{name_of(self.units.prices[family])}]")
        if self.units.rows.get(family):
            ax.set_ylabel(name_of(self.units.rows[family]))
        panels[-1].set_xlabel(name_of(self.units.with_unit(index)))

    def _plane(self, figure: Any, family: str, rows: pd.DataFrame) -> None:
        first, second = self.axes[family]
        ax = figure.subplots()
        room = rows.assign(room=_room(rows))
        sides = rows[first].nunique(), rows[second].nunique()
        if sides[0] * sides[1] <= 2 * len(rows):
            # A lattice, perhaps with points left out.
            table = room.pivot_table(index=second, columns=first, values="room")
            dots = draw_cells(ax, table.columns.to_numpy(), table.index.to_numpy(), table.to_numpy(), cmap=SHADES)
        else:
            dots = ax.scatter(rows[first], rows[second], c=room["room"], s=10, linewidths=0, cmap=SHADES)
        if np.ptp(rows[first]) < 3 * np.ptp(rows[second]) < 9 * np.ptp(rows[first]):
            ax.set_aspect("equal")
        figure.colorbar(dots, ax=ax, label="room to the limit")
        price = self.prices.get(family)
        try:
            atoms = None if price is None else price.atoms
        except PriceError:
            atoms = None
        if atoms is not None and len(atoms):
            ax.plot(atoms.iloc[:, 0], atoms.iloc[:, 1], "*", color=PRICE, markersize=11, label="where it has a price")
            # Beside the colours, not over them.
            ax.legend(loc="upper right", bbox_to_anchor=(-0.12, 1.0), frameon=False, fontsize="small")
        ax.set(xlabel=name_of(self.units.with_unit(first)), ylabel=name_of(self.units.with_unit(second)))
        ax.set_title(self._title(family, rows), fontsize="medium")

    def _sorted(self, figure: Any, family: str, rows: pd.DataFrame) -> None:
        ax = figure.subplots()
        room = np.sort(_room(rows))
        ax.plot(100 * (np.arange(len(room)) + 0.5) / len(room), room, color=USE, linewidth=1.6)
        ax.axhline(0, color=LIMIT, linewidth=0.8)
        ax.margins(x=0)
        ax.set(xlabel=name_of(f"% of the points ({', '.join(self.axes[family])})"), ylabel="room to the limit")
        ax.set_title(self._title(family, rows), fontsize="medium")
        ax.grid(alpha=0.3)


def _with_holes(rows: pd.DataFrame, index: str, inside: Callable[[FloatArray], Any] | None) -> pd.DataFrame:
    """Rows in order, with an empty one wherever ``where=`` leaves a hole, so that no line crosses it."""
    at = rows[index].to_numpy()
    if inside is None or len(at) < 2:
        return rows
    between = (at[1:] + at[:-1]) / 2
    empty = pd.DataFrame({index: between[~np.asarray(inside(between[:, None]), dtype=bool)]})
    return pd.concat([rows.drop(columns="family"), empty]).sort_values(index) if len(empty) else rows


def _room(rows: pd.DataFrame) -> Any:
    """Distance to the nearer limit at each point; negative where it is passed."""
    return np.minimum((rows["upper"] - rows["body"]).to_numpy(), (rows["body"] - rows["lower"]).to_numpy())
