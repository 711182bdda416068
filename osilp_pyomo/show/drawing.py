"""What all pictures share; the only file that knows matplotlib, which is imported when something is drawn.

Lines differ in dash and marker and not only in colour, so that a picture can be read in black and white.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import cycle, islice
from typing import Any, ClassVar

import pandas as pd

from osilp_pyomo.errors import DataError, MissingPackageError

# Colours that people with any kind of colour vision tell apart (Okabe and Ito), dark ones first.
_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# The numbers of colours, dashes and markers have no common divisor, so that hundreds of lines differ.
_DASHES = ("-", "--", "-.", ":", (0, (8, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDTH = 9.0


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

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        if not len(self.frame):
            raise DataError(f"{type(self).__name__}: there is nothing to draw, for no trial that shows it is finished.")
        if figure is None:
            figure = new_figure(self.height)
        self.draw(figure)
        return figure


def new_figure(height: float) -> Any:
    """An empty figure of the usual width, which pyplot shows."""
    return _pyplot().figure(figsize=(WIDTH, height), layout="constrained", FigureClass=_picture_class())


def __getattr__(name: str) -> Any:
    """The class of figures, by which a pickled one is found."""
    if name == "Picture":
        return _picture_class()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


@cache
def _picture_class() -> type[Any]:
    """Figures that a notebook shows once: pyplot shows all that are open at the end of a cell, and a cell its value."""
    from matplotlib import get_backend
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that is closed for pyplot when a notebook has shown it as a value."""

        __module__, __qualname__ = __name__, "Picture"

        def _ipython_display_(self) -> None:
            if not get_backend().endswith("inline"):
                # As any other object; IPython asks for its other forms.
                raise NotImplementedError
            from IPython import get_ipython
            from IPython.display import display

            formatters = get_ipython().display_formatter.formatters
            forms = {kind: write(self) for kind, write in formatters.items() if kind.startswith("image/")}
            shown = {kind: form for kind, form in forms.items() if form is not None}
            display({"text/plain": repr(self), **shown}, raw=True)
            _pyplot().close(self)

    return Picture


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


def legend(figure: Any, *axes: Any) -> None:
    """One legend below a figure for the lines of some of its axes."""
    found: dict[Any, tuple[Any, str]] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault((label, handle.get_color(), str(handle.get_linestyle())), (handle, label))
    handles, labels = zip(*found.values(), strict=True) if found else ((), ())
    columns = min(4, max(1, len(found)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
