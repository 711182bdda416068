"""Pictures by name: what values draw of themselves, without knowing who draws it.

The rooms of numbers import no picture. A value that has ``plot()`` names its picture; the file that draws it is loaded
when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The display of each kind of value: a class whose ``plot`` draws it.
_DISPLAYS = {"function": ("osilp_pyomo.show.functions", "FunctionDisplay")}


def draw(kind: str, *values: Any) -> Any:
    """Draw something by the display of its kind; needs matplotlib."""
    module, name = _DISPLAYS[kind]
    return getattr(import_module(module), name)(*values).plot()


# The page of each kind of value: a function that gives its text.
_PAGES = {"run": ("osilp_pyomo.show.run_page", "run_page")}


def page_of(kind: str, *values: Any) -> str:
    """The page of something, as text."""
    module, name = _PAGES[kind]
    return str(getattr(import_module(module), name)(*values))
