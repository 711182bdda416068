"""Pictures of a model that was solved again for other values of its Params, such as the price of robustness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.show.drawing import LIMIT, PRICE, SHADES, USE, draw_cells, legend, name_of, new_figure, styles

# Lines for the values of a second Param; more are a heat map.
_LINES = 7


@dataclass(frozen=True, eq=False)
class ParamSweepDisplay:
    """The objective over the values of one Param, or of two: as lines, or as a heat map where there are many.

    Values for which there is no optimum are crosses at the foot.

    Parameters
    ----------
    frame : DataFrame
        One row for each solve.
    along : tuple of str
        The columns with the values of one Param or two.
    value : str
        The column that is drawn.
    label : str
        What it is called in the picture.

    Examples
    --------
    >>> frame = pd.DataFrame({"radius": [0.0, 0.5, 1.0], "objective": [10.0, 9.0, 7.5]})
    >>> figure = ParamSweepDisplay(frame, ("radius",), "objective", "cost").plot()
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [10.0, 9.0, 7.5]
    """

    frame: pd.DataFrame
    along: tuple[str, ...]
    value: str
    label: str

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return 3.8 if len(self.along) == 1 else 4.2

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        figure = new_figure(self.height) if figure is None else figure
        ax = figure.subplots()
        if len(self.along) == 1:
            self._draw_line(ax, self.frame, {"color": USE, "marker": "o", "linewidth": 1.8}, None)
            self._draw_share(ax)
        elif self.frame[self.along[1]].nunique() <= _LINES:
            for (held, own), style in zip(self.frame.groupby(self.along[1]), styles(), strict=False):
                self._draw_line(ax, own, style, f"{self.along[1]} = {held:.6g}")
            legend(figure, ax)
        else:
            self._draw_cells(figure, ax)
            return figure
        ax.set(xlabel=name_of(self.along[0]), ylabel=name_of(self.label))
        ax.grid(alpha=0.3)
        ax.margins(x=0.02)
        return figure

    def _draw_line(self, ax: Any, own: pd.DataFrame, style: dict[str, Any], label: str | None) -> None:
        own = own.sort_values(self.along[0])
        known = own[self.value].notna()
        ax.plot(own[self.along[0]], own[self.value], label=label and name_of(label), markersize=5, **style)
        missing = own.loc[~known, self.along[0]]
        if len(missing):
            # At the foot of the picture, wherever that is.
            ax.plot(missing, np.full(len(missing), 0.03), "x", color=PRICE, transform=ax.get_xaxis_transform(),
                    clip_on=False, label="no optimum")  # fmt: skip
            if label is None:
                ax.legend(frameon=False)

    def _draw_share(self, ax: Any) -> None:
        """The same in percent of the first, on the other side: what each step away from it costs."""
        known = self.frame.dropna(subset=[self.value]).sort_values(self.along[0])
        first = float(known[self.value].iloc[0])
        if first == 0:
            return
        size = abs(first)
        other = ax.secondary_yaxis(
            "right", functions=(lambda y: 100 * (y - first) / size, lambda share: first + size * share / 100)
        )
        other.set_ylabel(name_of(f"% against {self.along[0]} = {known[self.along[0]].iloc[0]:.4g}"))
        ax.axhline(first, color=LIMIT, linewidth=0.8, linestyle=":")

    def _draw_cells(self, figure: Any, ax: Any) -> None:
        first, second = self.along
        table = self.frame.pivot_table(index=second, columns=first, values=self.value, dropna=False)
        cells = draw_cells(ax, table.columns.to_numpy(dtype=float), table.index.to_numpy(dtype=float),
                           table.to_numpy(), cmap=SHADES)  # fmt: skip
        figure.colorbar(cells, ax=ax, label=name_of(self.label))
        ax.set(xlabel=name_of(first), ylabel=name_of(second))
        if table.isna().any(axis=None):
            ax.set_title("white: no optimum", fontsize="medium")


def plot_sweep(
    frame: pd.DataFrame, along: str | Sequence[str] | None = None, *, value: str = "objective", figure: Any = None
) -> Any:
    """Draw what a model is worth over the values of a Param, or of two: the price of robustness; needs matplotlib.

    Parameters
    ----------
    frame : DataFrame
        One row for each solve, with a column for each Param that was changed, and one for what is drawn.
    along : column or list of two, optional
        The Params; all columns of numbers before ``value`` that change, if not given.
    value : column
        What is drawn; rows where it is missing are shown as having no optimum.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Figure or SubFigure

    Examples
    --------
    >>> import pandas as pd
    >>> import osilp_pyomo as osilp
    >>> frame = pd.DataFrame({"radius": [0.0, 0.5, 1.0], "objective": [10.0, 9.0, 7.5]})
    >>> figure = osilp.plot_sweep(frame)
    >>> [axis.get_ylabel() for axis in figure.axes[0].child_axes]
    ['% against radius = 0']
    """
    if not isinstance(frame, pd.DataFrame):
        raise OptionError(
            f"plot_sweep: frame must be a DataFrame with a row for each solve (got {type(frame).__name__})."
        )
    columns = list(map(str, frame.columns))
    if value not in columns:
        raise DataError(
            f"plot_sweep: the frame has no column '{value}'; it has {', '.join(columns)}. Name one by value=."
        )
    if not pd.api.types.is_numeric_dtype(frame[value]):
        raise DataError(f"plot_sweep: the column '{value}' holds no numbers ({frame[value].dtype}).")
    if along is None:
        before = columns[: columns.index(value)]
        numbers = [name for name in before if pd.api.types.is_numeric_dtype(frame[name])]
        chosen = [name for name in numbers if len(set(frame[name])) > 1]
    else:
        chosen = [along] if isinstance(along, str) else list(along)
    for name in chosen:
        if name not in columns:
            raise DataError(f"plot_sweep: the frame has no column '{name}'; it has {', '.join(columns)}.")
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise DataError(f"plot_sweep: the column '{name}' holds no numbers ({frame[name].dtype}).")
    if len(chosen) not in (1, 2):
        found = f"{len(chosen)}: {', '.join(chosen)}" if chosen else "none"
        raise DataError(
            f"plot_sweep: one Param can be drawn, or two, and {found} changed; name them by along=, and keep the "
            "others at one value."
        )
    if not frame[value].notna().any():
        raise DataError(f"plot_sweep: there is nothing to draw, for no row has a value of '{value}'.")
    if frame.duplicated(chosen).any():
        raise DataError(
            f"plot_sweep: some values of {' and '.join(chosen)} stand in several rows; keep what else changed at one "
            "value."
        )
    # A sweep knows what its model calls the objective.
    label = str(frame.attrs.get(value, value))
    return ParamSweepDisplay(frame, tuple(chosen), value, label).plot(figure)
