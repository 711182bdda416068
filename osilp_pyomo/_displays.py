"""Pictures by name: what values draw of themselves, without knowing who draws it.

The rooms of numbers import no picture. A value that has ``plot()`` names its picture; the file that draws it is loaded
when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The display of each kind of value: a class or function of values that gives something with ``plot(figure)``.
_DISPLAYS = {
    "function": ("osilp_pyomo.show.functions", "FunctionDisplay"),
    "run": ("osilp_pyomo.show.runs", "RunDisplays"),
    "left": ("osilp_pyomo.show.runs", "left_display"),
    "price": ("osilp_pyomo.show.prices", "PriceMeasureDisplay"),
    "result": ("osilp_pyomo.show.results", "result_display"),
}


def draw(kind: str, *values: Any, figure: Any = None) -> Any:
    """Draw something by the display of its kind, into a figure or a new one; needs matplotlib."""
    module, name = _DISPLAYS[kind]
    return getattr(import_module(module), name)(*values).plot(figure)
