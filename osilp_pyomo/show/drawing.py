"""What all pictures share; the only file that knows matplotlib, which is imported when something is drawn.

Lines differ in dash and marker and not only in colour, so that a picture can be read in black and white.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError, MissingPackageError
from osilp_pyomo.show.numbers import shortened

# Colours that people with any kind of colour vision tell apart (Okabe and Ito), dark ones first.
_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Letters of the name of a policy in a picture.
_NAME = 34
# The numbers of colours, dashes and markers have no common divisor, so that hundreds of lines differ.
_DASHES = ("-", "--", "-.", ":", (0, (8, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDTH = 9.0
#: What the same thing is drawn in everywhere: what is used or taken, a limit, a price or what passes a limit, what a
#: benchmark does, and what is left out.
USE, LIMIT, PRICE, BENCHMARK, FAINT = "#0072B2", "#000000", "#D55E00", "#009E73", "0.62"
#: The colours of a heat map, dark where there is little: people with any kind of colour vision see the same order.
SHADES = "cividis"


@dataclass(frozen=True, eq=False)
class Display(ABC):
    """A picture: what it draws, and how its model is called.

    ``frame`` is what is drawn; ``model`` the formulas of the model, whose names stand on the axes.
    """

    frame: pd.DataFrame
    model: Mapping[str, Any]
    title: ClassVar[str]
    #: What the reader sees, in a sentence.
    caption: ClassVar[str]
    #: Why there may be nothing to draw.
    nothing: ClassVar[str] = "no trial that shows it is finished"

    @classmethod
    def from_study(cls, study: Any) -> Display:
        """What there is to draw of a study."""
        return cls(cls._frame(study), study.settings["model"])

    @classmethod
    @abstractmethod
    def _frame(cls, study: Any) -> pd.DataFrame:
        """What is drawn of a study; empty where there is nothing."""

    @property
    @abstractmethod
    def height(self) -> float:
        """Height in inches at a width of nine."""

    @abstractmethod
    def draw(self, figure: Any) -> None:
        """Draw into a matplotlib Figure or SubFigure."""

    @property
    def tells(self) -> bool:
        """Whether there is more to see than zeros: only then it is one of all pictures of a study."""
        return len(self.frame) > 0

    def under(self, guard: str) -> str:
        """How a panel is told from those of other guards; nothing where all runs had the same."""
        return f"guard {guard}" if len(set(self.frame["guard"]) - {""}) > 1 else ""

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        if not len(self.frame):
            raise DataError(f"{type(self).__name__}: there is nothing to draw, for {self.nothing}.")
        if figure is None:
            figure = new_figure(self.height)
        self.draw(figure)
        return figure


def new_figure(height: float) -> Any:
    """An empty figure of the usual width, which pyplot shows, and a notebook once."""
    figure = _pyplot().figure(figsize=(WIDTH, height), layout="constrained")
    figure._ipython_display_ = partial(_display_once, figure)
    return figure


def _display_once(figure: Any) -> None:
    """Take a figure that a notebook shows from those that it would show again at the end of the cell.

    A notebook shows what the last line of a cell gives, and after that all figures that pyplot still holds.
    """
    import matplotlib

    if "inline" in str(matplotlib.get_backend()):
        _pyplot().close(figure)
    # This is how IPython is told to go on as for any other figure.
    raise NotImplementedError


def shades_over(colour: str = PRICE) -> Any:
    """The colours of a heat map, with another one for what is beyond its scale."""
    _pyplot()
    from matplotlib import colormaps

    return colormaps[SHADES].with_extremes(over=colour, bad="white")


def draw_cells(
    ax: Any, first: FloatArray, second: FloatArray, values: FloatArray, *, first_edges: Any = None, **scale: Any
) -> Any:
    """A heat map of values (len(second), len(first)), one cell around each point; as one image in any file.

    Cells drawn one by one would leave white seams between them, and make files of many megabytes.
    """
    edges = cell_edges(first) if first_edges is None else first_edges
    return ax.pcolormesh(edges, cell_edges(second), values, shading="flat", rasterized=True, linewidth=0, **scale)


def draw_below_each_other(displays: Sequence[Any], figure: Any = None) -> Any:
    """Pictures one below the other, each with its title; a single one without."""
    if len(displays) == 1:
        return displays[0].plot(figure)
    heights = [each.height + 0.4 for each in displays]
    figure = new_figure(sum(heights)) if figure is None else figure
    parts = figure.subfigures(len(displays), 1, height_ratios=heights)
    for part, display in zip(parts, displays, strict=True):
        part.suptitle(display.title)
        display.plot(part)
    return figure


def cell_edges(centres: FloatArray) -> FloatArray:
    """The ends of cells around points in increasing order: half way to the next, and as far beyond the ends.

    Examples
    --------
    >>> cell_edges(np.array([0.0, 1.0, 3.0])).tolist()
    [-0.5, 0.5, 2.0, 4.0]
    """
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middles = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middles[0]], middles, [2 * centres[-1] - middles[-1]]])


def svg_of(display: Display) -> str:
    """A display as SVG text, the same for the same display."""
    _pyplot()
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, display.height), layout="constrained")
    display.plot(figure)
    written = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "osilp_pyomo"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingPackageError(
            "Pictures need matplotlib, which is not installed; pip install 'osilp-pyomo[plot]', or leave them out."
        ) from None
    return pyplot


def styles() -> Iterator[dict[str, Any]]:
    """Styles of lines, as many as are asked for."""
    for colour, dash, marker in islice(zip(cycle(_COLOURS), cycle(_DASHES), cycle(_MARKERS), strict=False), 100):
        yield {"color": colour, "linestyle": dash, "marker": marker, "linewidth": 1.4}


def name_of(text: Any) -> str:
    """A name as matplotlib shows it: no dollar begins mathematics, no underscore hides it from a legend."""
    shown = str(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def short_name(text: Any) -> str:
    """The name of a policy as pictures show it: a long one without its middle, for the ends tell it from others."""
    return name_of(shortened(str(text), _NAME))


def in_words(text: Any) -> str:
    """A label that names its benchmark as somebody reads it who sees the picture alone."""
    return str(text).replace("R*_T", "the optimum in hindsight")


def legend(figure: Any, *axes: Any) -> None:
    """One legend below a figure for the lines of some of its axes."""
    found: dict[Any, tuple[Any, str]] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault((label, handle.get_color(), str(handle.get_linestyle())), (handle, label))
    handles, labels = zip(*found.values(), strict=True) if found else ((), ())
    longest = max(map(len, labels), default=0)
    # As many beside each other as the width of a figure takes.
    columns = max(1, min(4, len(found), 110 // (longest + 8)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
