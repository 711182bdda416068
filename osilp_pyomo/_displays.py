"""What values show of themselves: pictures, cards in notebooks and texts, without knowing who makes them.

The rooms of numbers import no picture and no page. A value that is to be seen names its kind; the file that shows it is
loaded when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")

# The display of each kind of value: a class or function of values that gives something with ``plot(figure)``.
_DISPLAYS = {
    "function": ("osilp_pyomo.show.functions", "FunctionDisplay"),
    "run": ("osilp_pyomo.show.runs", "RunDisplays"),
    "left": ("osilp_pyomo.show.runs", "left_display"),
    "price": ("osilp_pyomo.show.prices", "PriceMeasureDisplay"),
    "result": ("osilp_pyomo.show.results", "result_display"),
    "plans": ("osilp_pyomo.show.plans", "PlansDisplay"),
}

# What is told of each kind of value: a function that gives a text, HTML for the cards of notebooks.
_TELLERS = {
    "result": ("osilp_pyomo.show.cards.offline", "result_card"),
    "price": ("osilp_pyomo.show.cards.offline", "price_card"),
    "function": ("osilp_pyomo.show.cards.offline", "function_card"),
    "by family": ("osilp_pyomo.show.cards.offline", "family_card"),
    "bound": ("osilp_pyomo.show.cards.offline", "text_card"),
    "plans": ("osilp_pyomo.show.cards.offline", "plans_card"),
    "program": ("osilp_pyomo.show.cards.online", "program_card"),
    "controller": ("osilp_pyomo.show.cards.online", "controller_card"),
    "decision": ("osilp_pyomo.show.cards.online", "decision_card"),
    "run": ("osilp_pyomo.show.cards.online", "run_card"),
    "regret": ("osilp_pyomo.show.cards.online", "regret_card"),
    "study": ("osilp_pyomo.studies.cards", "study_card"),
    "worst rows": ("osilp_pyomo.rows", "worst_rows"),
}

#: Columns of a terminal and of a notebook's output, within which tables stay.
WIDTH = 100
# Entries of a long print that are named one by one.
MOST_SHOWN = 10


def draw(kind: str, *values: Any, figure: Any = None) -> Any:
    """Draw something by the display of its kind, into a figure or a new one; needs matplotlib."""
    module, name = _DISPLAYS[kind]
    return getattr(import_module(module), name)(*values).plot(figure)


# The page of each kind of value: a function that gives its text.
_PAGES = {"run": ("osilp_pyomo.show.pages.run", "run_page")}


def page_of(kind: str, *values: Any) -> str:
    """The page of something, as text."""
    module, name = _PAGES[kind]
    return str(getattr(import_module(module), name)(*values))


def tell(kind: str, *values: Any) -> Any:
    """What there is to tell of values by the function of their kind."""
    module, name = _TELLERS[kind]
    return getattr(import_module(module), name)(*values)


class Shown:
    """A value that notebooks show as a card; ``card`` names its kind."""

    card: ClassVar[str]

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The card that a notebook shows."""
        text: str = tell(self.card, self)
        return text


def cut(text: str, most: int = 400) -> str:
    """A text, one of very many letters as its beginning."""
    return text if len(text) <= most else f"{text[:most]} ..."


def some_of(entries: Sequence[T], write: Callable[[T], str] = str, most: int = MOST_SHOWN) -> list[str]:
    """Entries as texts, of many of them the first ones and how many more there are."""
    if len(entries) <= most + 1:
        return [write(each) for each in entries]
    return [*(write(each) for each in entries[:most]), f"... and {len(entries) - most:,} more"]
