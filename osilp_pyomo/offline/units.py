"""Units of a result, as texts: nothing is computed with them here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Units:
    """Units of what a result holds; a text is empty, or an entry missing, where the model has none.

    Attributes
    ----------
    objective : str
    rows, prices : dict
        For each family the unit of its sides, and of what one more unit of the right-hand side is worth.
    index : dict
        For each name of a coordinate its unit.

    Examples
    --------
    >>> units = Units("EUR", {"usage": "MW"}, {"usage": "EUR/MW"}, {"u": "km"})
    >>> units.with_unit("u")
    'u [km]'
    """

    objective: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    index: Mapping[str, str] = field(default_factory=dict)

    def with_unit(self, name: str) -> str:
        """A coordinate as an axis names it."""
        unit = self.index.get(name, "")
        return f"{name} [{unit}]" if unit else name
