"""Pictures of decisions that are functions: a curve over its index, a rule by what each entry of the vector changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from osilp_pyomo.index.curves.spaces import CurveFunctions, VectorFunctions
from osilp_pyomo.offline.functions.values import FunctionValue
from osilp_pyomo.show.drawing import name_of, new_figure

# Points of a curve, along an axis and along each of two; entries of a vector that are named one by one.
_ALONG, _ASIDE, _NAMED = 801, 81, 40
_LINE, _UP, _DOWN = "#0072B2", "#0072B2", "#D55E00"


@dataclass(frozen=True, eq=False)
class FunctionDisplay:
    """A decision rule as bars, one for what each entry of the vector changes it by at most, or a curve over its index.

    Parameters
    ----------
    function : FunctionValue
        What ``result.function(...)`` gives.

    Examples
    --------
    >>> rule = FunctionValue("order", VectorFunctions.affine(("xi[0]",), [0]), np.array([2.0, 0.5]), np.array([4.0]))
    >>> FunctionDisplay(rule).plot().axes[0].get_title()
    'order(xi) = 2 + 0.5*xi[0]'
    """

    function: FunctionValue

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return 4.6 if self.function.space.dimension == 2 and not self._is_rule else 3.2

    @property
    def _is_rule(self) -> bool:
        return isinstance(self.function.space, VectorFunctions)

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        figure = new_figure(self.height) if figure is None else figure
        ax = figure.subplots()
        if self._is_rule:
            self._draw_rule(ax)
        else:
            self._draw_curve(figure, ax)
        return figure

    def _draw_rule(self, ax: Any) -> None:
        rule, space = self.function, self.function.space
        assert isinstance(space, VectorFunctions)
        effects = np.array(
            [
                number * np.prod(rule.sizes[list(each)])
                for number, each in zip(rule.numbers, space.monomials, strict=True)
            ]
        )
        places = np.arange(len(effects))
        ax.bar(places, effects, color=np.where(effects >= 0, _UP, _DOWN), width=0.7)
        ax.axhline(0, color="black", linewidth=0.8)
        if len(places) <= _NAMED:
            ax.set_xticks(places, [name_of(text) for text in space.texts()], rotation=60 if len(places) > 8 else 0)
        else:
            ax.set_xlabel("functions of the uncertain vector, in their order")
        ax.set_ylabel("change at the largest entry")
        text = str(rule)
        ax.set_title(name_of(text if len(text) <= 100 else f"{text[:100]}..."), fontsize="medium")
        ax.grid(axis="y", alpha=0.3)

    def _draw_curve(self, figure: Any, ax: Any) -> None:
        curve, space = self.function, self.function.space
        assert isinstance(space, CurveFunctions)
        axes = [np.linspace(low, high, _ALONG if space.dimension == 1 else _ASIDE)
                for low, high in zip(space.domain.lower, space.domain.upper, strict=True)]  # fmt: skip
        names = [name_of(name) for name in space.coordinates]
        if space.dimension == 1:
            ax.plot(axes[0], curve(axes[0]), color=_LINE, linewidth=1.6)
            ax.set_ylabel(name_of(f"{curve.name}({space.coordinates[0]})"))
            ax.margins(x=0.01)
            ax.grid(alpha=0.3)
        else:
            first, second = np.meshgrid(axes[0], axes[1], indexing="ij")
            rest = [np.full(first.shape, (low + high) / 2)
                    for low, high in zip(space.domain.lower[2:], space.domain.upper[2:], strict=True)]  # fmt: skip
            mesh = ax.pcolormesh(first, second, curve(first, second, *rest), shading="gouraud", cmap="viridis")
            figure.colorbar(mesh, ax=ax, label=name_of(curve.name))
            ax.set_ylabel(names[1])
        ax.set_xlabel(names[0])
        ax.set_title(name_of(f"{curve.name}({', '.join(space.coordinates)})"), fontsize="medium")
