"""Numbers as people write them, and the units that stand behind them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from osilp_pyomo.errors import OptionError


def plain(value: float, digits: int = 4, unit: str = "") -> str:
    """A number with so many digits that count, thousands apart.

    Examples
    --------
    >>> plain(1234.5), plain(0.043217), plain(98765432.1, unit="EUR"), plain(-0.5), plain(2e-9), plain(0)
    ('1,234', '0.04322', '98,765,432 EUR', '-0.5', '2e-09', '0')
    """
    if not math.isfinite(value):
        text = "unknown" if math.isnan(value) else f"{value:g}"
    elif value and not 1e-4 <= abs(value) < 1e12:
        text = f"{value:.{digits - 1}g}"
    else:
        after = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
        text = f"{value:,.{after}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} {unit}" if unit else text


def with_half(mean: float, half: float, unit: str = "") -> str:
    """A mean and half the width of its interval, to two digits of the latter.

    Examples
    --------
    >>> print(with_half(105.1234, 1.57, "EUR"), with_half(12345.6, 321), with_half(2.5, float("nan")), sep="; ")
    105.1 EUR (± 1.6); 12,346 (± 321); 2.5
    """
    if not (math.isfinite(half) and half > 0):
        return plain(mean, unit=unit)
    after = max(0, 1 - math.floor(math.log10(half)))
    if after > 6:
        return f"{plain(mean, unit=unit)} (\u00b1 {plain(half, 2)})"
    return f"{mean:,.{after}f}{f' {unit}' if unit else ''} (\u00b1 {half:,.{after}f})"


def about(value: float) -> str:
    """A number to two digits.

    Examples
    --------
    >>> about(12807), about(0.0123)
    ('13,000', '0.012')
    """
    return plain(float(f"{value:.2g}"), 2)


def percent(share: float, up: bool = False) -> str:
    """A share as percent, with one place behind the point, more where it is close to none or to all.

    What is told as the most that there is must not be rounded down: ``up`` rounds up.

    Examples
    --------
    >>> percent(0.0432), percent(1.0), percent(0.99987), percent(0.00004), percent(0), percent(0.32)
    ('4.3 %', '100 %', '99.99 %', '0.004 %', '0 %', '32.0 %')
    >>> percent(0.000142), percent(0.000142, up=True), percent(0.345, up=True)
    ('0.01 %', '0.02 %', '34.5 %')
    """
    if not math.isfinite(share):
        return "unknown"
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    near = min(abs(share), abs(1 - share))
    places = 1 if near >= 1e-3 else min(6, max(1, math.ceil(-math.log10(near)) - 2))
    if up:
        share = math.ceil(share * 10 ** (places + 2) - 1e-6) / 10 ** (places + 2)
    text = f"{100 * share:,.{places}f}".rstrip("0") if places > 1 else f"{100 * share:,.1f}"
    return f"{text.rstrip('.')} %"


def shortened(text: str, most: int) -> str:
    """A text of at most so many letters; the middle of a longer one is left out.

    Examples
    --------
    >>> shortened("re-solve every moment", 30), shortened("re-solve every moment of the day", 20)
    ('re-solve every moment', 're-solve ev...he day')
    """
    if len(text) <= most:
        return text
    end = (most - 3) * 2 // 5
    return f"{text[: most - 3 - end].rstrip()}...{text[len(text) - end :].lstrip()}"


def per(goal: str, *others: str) -> str:
    """The unit of a price, where all that it is made of have one.

    Examples
    --------
    >>> per("EUR", "MW", "GHz"), per("EUR", "MW", "")
    ('EUR/MW/GHz', '')
    """
    return "/".join([goal, *others]) if goal and all(others) else ""


class Units:
    """What stands behind numbers, by the name of what they measure.

    Where the objective has no unit of its own, it is that of the only data it holds, as in ``value[t]*x[t]``; not where
    that is a rate ("EUR/MW"), or where the decisions have a unit too.

    Examples
    --------
    >>> model = {"objective": "value[t]*x[t]", "decisions": [{"name": "x"}]}
    >>> units = Units({"value": "EUR", "usage": "MHz"}, ["reward", "usage", "value", "x"], "reward", model, "to_html")
    >>> units["usage"], units.goal, units["x"]
    ('MHz', 'EUR', '')
    """

    def __init__(
        self, given: Mapping[str, Any] | None, known: Iterable[str], goal: str, model: Mapping[str, Any], what: str
    ) -> None:
        self._given = checked(given, list(dict.fromkeys(each for each in known if each)), what)
        self.goal = self[goal] or self["objective"] or self._of_data(model)

    def __getitem__(self, name: str) -> str:
        return self._given.get(name, "")

    def _of_data(self, model: Mapping[str, Any]) -> str:
        decisions = [str(each["name"]) for each in model["decisions"]]
        if any(self[name] or self[name.partition("[")[0]] for name in decisions):
            return ""
        text = str(model["objective"])
        held = {unit for name, unit in self._given.items() if re.search(rf"\b{re.escape(name)}\[", text)}
        (unit,) = held if len(held) == 1 else ("",)
        # Powers, functions and further data would make another unit of it.
        plain_sum = all(_PRODUCT.fullmatch(part) for part in re.split(r" [+-] ", text))
        return unit if plain_sum and "/" not in unit else ""


# A summand that is one number of an arrival times a decision.
_PRODUCT = re.compile(r"-?\w+\[t[^\]]*\]\*\w+\[t[^\]]*\]")


def checked(given: Mapping[str, Any] | None, known: list[str], what: str) -> dict[str, str]:
    """Units under names that exist, as texts; anything else is refused."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OptionError(f"{what}: units must be a mapping such as {{'{known[0]}': 'EUR'}} (got {given!r}).")
    for name, unit in given.items():
        if name != "objective" and name not in known:
            raise OptionError(
                f"{what}: units= names {name!r}, which the model does not hold; it has {', '.join(known)}."
            )
        if not isinstance(unit, str):
            raise OptionError(f"{what}: the unit of '{name}' must be a text such as 'EUR' (got {unit!r}).")
    return {str(name): str(unit) for name, unit in given.items()}
