"""Pictures of prices as measures: spikes or a curve along an index, points or colours over a plane."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.errors import PriceError
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.units import Units
from osilp_pyomo.show.drawing import LIMIT, PRICE, SHADES, name_of, new_figure
from osilp_pyomo.show.numbers import shortened

# Atoms over an index of several dimensions that are named one by one.
_NAMED = 12
# Letters for the numbers of a point.
_LETTERS = 44


@dataclass(frozen=True, eq=False)
class PriceMeasureDisplay:
    """A price along its index: spikes where it sits on single points, else a curve, per unit of the index.

    Over a plane points are as large as their weights, and a density is a colour. In more dimensions the largest atoms
    are bars, and a density is summed up along the first axis.

    Parameters
    ----------
    price : Price
        What ``result.price`` or ``run.price`` gives.
    units : Units, optional
        Units of a result, for the axes.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> price = osilp.solve(demo_model(arrivals=40)).price
    >>> figure = PriceMeasureDisplay(price).plot()
    >>> len(figure.axes[0].collections[0].get_segments()) == len(price.atoms)
    True
    """

    price: Price
    units: Units = Units()  # noqa: RUF009

    title = "Price"

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return 4.2 if self.price.domain.dimension == 2 else 3.0

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        figure = new_figure(self.height) if figure is None else figure
        ax, price = figure.subplots(), self.price
        draw = {1: self._along, 2: self._plane}.get(price.domain.dimension, self._many)
        draw(figure, ax)
        unit = self.units.prices.get(price.family, "")
        total = f"{price.total:.4g} {unit}".strip()
        ax.set_title(name_of(f"price of '{price.family}': {total} for a unit everywhere"), fontsize="medium")
        return figure

    def _along(self, figure: Any, ax: Any) -> None:
        draw_price(ax, self.price, self.price.domain.names[0])
        if self.price.domain.bounded:
            low, high = self.price.domain.lower[0], self.price.domain.upper[0]
            ax.set_xlim(low - 0.01 * (high - low), high + 0.01 * (high - low))
        ax.set_xlabel(name_of(self.units.with_unit(self.price.domain.names[0])))

    def _plane(self, figure: Any, ax: Any) -> None:
        frame, domain = self.price.to_frame(), self.price.domain
        x, y, values = (frame.iloc[:, k].to_numpy() for k in range(3))
        if frame.columns[2] == "weight":
            largest = np.abs(values).max(initial=0.0) or 1.0
            ax.scatter(x, y, s=20 + 280 * np.abs(values) / largest, color=PRICE, alpha=0.75, linewidths=0)
            for one, other, value in sorted(zip(x, y, values, strict=True), key=lambda each: -abs(each[2]))[:_NAMED]:
                ax.annotate(f"{value:.3g}", (one, other), xytext=(7, 5), textcoords="offset points", fontsize="small")
        else:
            cells = ax.tripcolor(x, y, values, cmap=SHADES, shading="gouraud", rasterized=True)
            figure.colorbar(cells, ax=ax, label=name_of(f"price per unit of {' x '.join(domain.names)}"))
        if domain.bounded:
            margin = 0.03 * (domain.upper - domain.lower)
            ax.set(xlim=(domain.lower[0] - margin[0], domain.upper[0] + margin[0]))
            ax.set(ylim=(domain.lower[1] - margin[1], domain.upper[1] + margin[1]))
        first, second = (name_of(self.units.with_unit(name)) for name in domain.names)
        ax.set(xlabel=first, ylabel=second)

    def _many(self, figure: Any, ax: Any) -> None:
        try:
            atoms = self.price.atoms
        except PriceError:
            first = self.price.points[:, 0]
            masses = pd.Series(self.price.masses).groupby(first).sum()
            ax.vlines(masses.index, 0, masses, color=PRICE, linewidth=2)
            ax.set(xlabel=name_of(self.price.domain.names[0]), ylabel="price, summed over the other axes")
        else:
            atoms = atoms.loc[atoms["weight"].abs().sort_values(ascending=False).index][:_NAMED]
            places = np.arange(len(atoms))[::-1]
            ax.barh(places, atoms["weight"], color=PRICE, height=0.6)
            # A few bars stay bars and do not fill the picture.
            ax.set_ylim(-0.75 - max(0, 4 - len(atoms)) / 2, len(atoms) - 0.25 + max(0, 4 - len(atoms)) / 2)
            points = atoms.iloc[:, :-1].to_numpy()
            texts = [shortened(", ".join(f"{value:.3g}" for value in point), _LETTERS) for point in points]
            ax.set_yticks(places, texts)
            largest = ", the largest" if len(self.price.points) > _NAMED else ""
            point = name_of(f"({', '.join(self.price.domain.names)})")
            # Below the axis there is room for a name of many parts; beside it there is not.
            ax.set_xlabel(textwrap.fill(f"price of single points{largest}: {point}", 110))
        ax.grid(alpha=0.3)


def draw_price(ax: Any, price: Price, index: str) -> None:
    """Draw a price along one axis: spikes for atoms, a curve for a density."""
    try:
        atoms = price.atoms
    except PriceError:
        density = price.to_frame()
        at = density.columns[0]
        density = density.sort_values(at)
        ax.plot(density[at], density["density"], color=PRICE, linewidth=1.6)
        ax.set_ylabel(name_of(f"price per\nunit of {index}"))
    else:
        places = atoms.iloc[:, 0]
        ax.vlines(places, 0, atoms["weight"], color=PRICE, linewidth=2)
        ax.plot(places, atoms["weight"], "o", color=PRICE, markersize=4)
        ax.set_ylabel("price of\nsingle points")
    ax.axhline(0, color=LIMIT, linewidth=0.8)
    ax.grid(alpha=0.3)
