"""Cards of what a solve gives back: results, prices, decisions that are functions, and something for each family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import PriceError
from osilp_pyomo.index.curves.spaces import CurveFunctions
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.offline.late import unmade
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.result_text import result_lines
from osilp_pyomo.offline.units import Units
from osilp_pyomo.show.cards.card import Card, count_of, data_table, escaped, labelled, number_text
from osilp_pyomo.show.cards.sketches import BLUE, RED, Line, sketch
from osilp_pyomo.show.mathml import mathml

# What a result says first; the rest unfolds.
_FIRST = (
    "objective", "remark", "bracket", "bound", "equations", "violation", "price", "worst case", "conflict", "policy",
    "trouble", "units",
)  # fmt: skip
# Values whose names are asked for without being looked at by the user.
_VALUES = 20_000
# Pictures and families of one card; points at which a density is drawn.
_PICTURES, _FAMILIES, _POINTS = 3, 6, 161


def result_card(result: Any) -> str:
    """A result: what was found, prices along the index, and what unfolds: checks, values, atoms, duals, iterations."""
    head, facts = labelled(result_lines(result))
    method, _, ended = head.partition(": ")
    first = [(label, text) for label, text in facts if label in _FIRST]
    rest = [(label, text) for label, text in facts if label not in _FIRST]
    good = result.status == "optimal"
    card = Card(
        "Result",
        f"{method}, {ended.partition(' in ')[2]}",
        result.status + (", certified" if result.certified else ""),
        good,
        first,
        pictures=[]
        if result.answer is None or result.answer.price is None
        else _price_sketches(result.answer.price.values(), result.units),
        folds=[*_checks(rest), *_tables(result)],
    )
    return card.html()


def _checks(facts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    rows = "".join(
        f"<tr><th>{escaped(label)}</th><td>{escaped(text).replace(chr(10), '<br>')}</td></tr>" for label, text in facts
    )
    return [("How it was found and checked", f"<table class='osilp-facts'>{rows}</table>")] if facts else []


def _tables(result: Any) -> list[tuple[str, str]]:
    """What a result holds as tables; nothing that takes long to make."""
    if result.answer is None:
        conflict = result.conflict
        return [(f"Conflict: {count_of(len(conflict), 'part')}", data_table(conflict))] if len(conflict) else []
    found: list[tuple[str, str]] = []
    late = unmade(result.answer, "values")
    # Names of very many variables are not asked for by a look.
    if late is None or (late.args and len(late.args[0]) <= _VALUES):
        values = result.answer.values
        if values is not None:
            frame = pd.DataFrame({"variable": values.index.astype(str), "value": values.to_numpy()})
            found.append((f"Values: {count_of(len(frame), 'variable')}", data_table(frame)))
    for price in list((result.answer.price or {}).values())[:_FAMILIES]:
        if isinstance(atoms := _atoms(price), pd.DataFrame) and len(atoms):
            found.append((f"Price of '{price.family}': {count_of(len(atoms), 'point')}", data_table(atoms)))
    if len(result.proof):
        found.append(
            (f"Proof: {count_of(len(result.proof), 'family')}", data_table(result.proof.rename_axis("family")))
        )
    if len(result.log):
        found.append((f"Iterations: {len(result.log):,}", data_table(result.log)))
    return found


def price_card(price: Any) -> str:
    """A price: what a unit of the right-hand side is worth, along the index."""
    atoms = _atoms(price)
    where = "a density" if atoms is None else f"on {count_of(len(atoms), 'point')}"
    facts = [("total", f"{number_text(price.total)} a unit of right-hand side, {where}"), ("index", str(price.domain))]
    folds = [] if atoms is None or not len(atoms) else [("Points", data_table(atoms))]
    return Card("Price", f"of '{price.family}'", facts=facts, pictures=_price_sketches([price]), folds=folds).html()


def _atoms(price: Price) -> pd.DataFrame | None:
    try:
        return price.atoms
    except PriceError:
        return None


def _price_sketches(prices: Iterable[Price], units: Units | None = None) -> list[str]:
    """Pictures of the largest prices along one coordinate."""
    drawn = [price for price in prices if len(price.masses) and _is_interval(price.domain)]
    drawn.sort(key=lambda price: -abs(price.total))
    return [_price_sketch(price, units or Units()) for price in drawn[:_PICTURES]]


def _is_interval(domain: Domain) -> bool:
    return domain.dimension == 1 and domain.bounded and domain.body is None


def _price_sketch(price: Price, units: Units) -> str:
    domain = price.domain
    ends = (float(domain.lower[0]), float(domain.upper[0]))
    if _atoms(price) is not None:
        line, what = Line(price.points[:, 0], price.masses, RED, "spikes"), "price of single points"
    else:
        at = np.linspace(*ends, _POINTS)
        line, what = Line(at, np.asarray(price(at), dtype=float), RED, "area"), f"price per unit of {domain.names[0]}"
    unit = units.prices.get(price.family, "")
    caption = f"{what} of '{price.family}'" + (f" [{unit}]" if unit and line.kind == "spikes" else "")
    return sketch([line], units.with_unit(domain.names[0]), ends, caption)


def function_card(function: Any) -> str:
    """A decision rule as a formula, or a curve over its index."""
    space = function.space
    text = str(function)
    if not isinstance(space, CurveFunctions):
        head, _, formula = text.partition(" = ")
        shown = f"<math><mi>{escaped(head)}</mi><mo>=</mo>{mathml(formula)}</math>" if len(formula) <= 300 else ""
        folds = [(f"Coefficients: {len(space):,}", data_table(function.coefficients.to_frame("value")))]
        return Card("Decision rule", head, body=f"<div class='osilp-wide'>{shown}</div>", folds=folds).html()
    pictures = []
    if space.dimension == 1:
        ends = (float(space.domain.lower[0]), float(space.domain.upper[0]))
        if np.all(np.isfinite(ends)):
            at: FloatArray = np.linspace(*ends, _POINTS)
            name = space.coordinates[0]
            pictures = [sketch([Line(at, function(at), BLUE)], name, ends, f"{function.name}({name})")]
    facts = [("functions", f"{len(space)} of {space.basis!r}"), ("index", str(space.domain))]
    folds = [("Coefficients", data_table(function.coefficients.to_frame("value")))]
    return Card("Curve", function.name, facts=facts, pictures=pictures, folds=folds).html()


def family_card(entries: Any) -> str:
    """Something for each family: the cards of the first ones, or a table of numbers."""
    count = count_of(len(entries), "family")
    shown = list(entries.items())
    if shown and all(isinstance(value, Price) for _, value in shown):
        facts = [(name, str(price)) for name, price in shown[:_FAMILIES]]
        if len(shown) > _FAMILIES:
            facts.append(("", f"... and {len(shown) - _FAMILIES:,} more"))
        return Card("Prices", count, facts=facts, pictures=_price_sketches(entries.values())).html()
    frame = pd.DataFrame({"family": [name for name, _ in shown], "value": [value for _, value in shown]})
    return Card("By family", count, body=data_table(frame)).html()


def text_card(value: Any) -> str:
    """What a value prints."""
    first, *rest = str(value).split("\n")
    return Card("Bound on all policies", facts=[("", first), *(("", line) for line in rest)]).html()


def plans_card(plans: Any) -> str:
    """Plans side by side."""
    return Card("Plans", plans.head, body=data_table(plans.table())).html()
