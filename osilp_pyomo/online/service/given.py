"""What users give a running controller: decisions that were made and amounts of budget, looked at before they count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import shown_number
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.index.domain import on_points
from osilp_pyomo.online.live import Live
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, Batch
from osilp_pyomo.online.stages.evaluator import ResourceGroup
from osilp_pyomo.online.stages.pieces import Pieces

# What rounding may leave of a bound, of a whole number, and of a row relative to its terms.
_ROUNDING, _WHOLE, _BROKEN = 1e-9, 1e-6, 1e-6


def as_decision(program: ProgramData, x: Any) -> FloatArray:
    """What was done, as an array in the order of the decisions."""
    labels = program.template.decisions
    if isinstance(x, Mapping | pd.Series):
        given = dict(x.items())
        missing = [label for label in labels if label.column not in given]
        if missing or not len(given) == len(x) == len(labels):
            raise DataError(
                f"x must have exactly the entries {', '.join(repr(label.column) for label in labels)} (got "
                f"{', '.join(map(repr, x.keys()))})."
            )
        x = [given[label.column] for label in labels]
    try:
        entries = np.asarray(x)
    except ValueError:
        # Numpy knows no array with rows of several lengths.
        entries = np.array(None)
    if entries.dtype.kind not in "iuf":
        raise DataError(f"x must be numbers (got {x!r}).")
    values = np.atleast_1d(entries).astype(float)
    if values.shape != (len(labels),):
        raise DataError(f"x must be {len(labels)} numbers, or a mapping by variable (got shape {values.shape}).")
    if not np.all(np.isfinite(values)):
        raise DataError("x must hold finite numbers only.")
    return values


def refuse_impossible(program: ProgramData, x: FloatArray, batch: Batch, what: str) -> None:
    """Refuse what no decision of this arrival can have been."""
    template = program.template
    for label, whole, value, low, high in zip(
        template.decisions, template.integer, x, batch.lower[0] + 0.0, batch.upper[0] + 0.0, strict=True
    ):
        if not low - _ROUNDING * max(1.0, abs(low)) <= value <= high + _ROUNDING * max(1.0, abs(high)):
            raise DataError(
                f"{what}: '{label}' must lie in [{low:g}, {high:g}] for this arrival (got {value:.12g}); give what "
                "was done within the model's bounds."
            )
        if whole and abs(value - round(value)) > _WHOLE:
            raise DataError(f"{what}: '{label}' must be a whole number (got {value:.12g}).")
    if not template.own_rows:
        return
    excess, size = program.evaluator.own_excess(batch, x[None])
    for row, over, terms in zip(template.own_rows, excess[0], size[0], strict=True):
        # An infinite row has infinite terms, and one that is not a number is not kept either.
        if not (over <= 0 or over <= _BROKEN * min(terms, 1e300)):
            raise DataError(
                f"{what}: '{row.name}', which each arrival has for itself, is broken by {over:.6g}; give what was "
                "done within the model's constraints."
            )


def _amount(given: Any, row: str) -> float:
    """An amount of budget: a number, and nothing that merely can be read as one."""
    try:
        amount = float(given) if isinstance(given, Real) and not isinstance(given, bool | np.bool_) else np.nan
    except OverflowError:
        amount = np.inf
    if not np.isfinite(amount):
        raise OptionError(f"add_budget: the amount for '{row}' must be a finite number (got {shown_number(given)}).")
    return amount


def _amounts(function: Callable[..., Any], points: FloatArray, row: str) -> FloatArray:
    """A function of the index at points, as numbers."""
    try:
        values = np.asarray(on_points(function, points))
    except Exception as error:
        # Whatever the user's own function may raise.
        raise OptionError(
            f"add_budget: the function for '{row}' gives no numbers ({type(error).__name__}: {error}); it must give "
            "one for each point of the index."
        ) from error
    if values.dtype.kind not in "iuf" or values.shape != (len(points),):
        raise OptionError(f"add_budget: the function for '{row}' must give one number for each point of the index.")
    return values.astype(float)


def with_budget(program: ProgramData, live: Live, row: Any, amount: Any) -> Live:
    """The state with more, or less, of a row: by a number, or a function of the index."""
    name = row if isinstance(row, str) else getattr(row, "name", str(row))
    groups = [group for group in program.evaluator.groups if group.name == name]
    if not groups:
        known = ", ".join(dict.fromkeys(group.name for group in program.evaluator.groups))
        raise OptionError(f"add_budget: there is no row '{name}'; the resources are {known}.")
    live, evaluator = live.copy(), program.evaluator
    changes = []
    for group in groups:
        if group.family is None:
            if callable(amount):
                raise OptionError(f"add_budget: '{name}' is an ordinary row; give a number.")
            values = np.array([_amount(amount, name)])
            projected = values
        else:
            points = evaluator.points[group.family]
            values = _amounts(amount, points, name) if callable(amount) else np.full(len(points), _amount(amount, name))
            projected = evaluator.project(values, group.family)
        if not np.all(np.isfinite(values)):
            raise OptionError(f"add_budget: the amount for '{name}' must be finite everywhere.")
        changes.append((group, {PROJECTED: projected, POINTWISE: values}))
    live.rules, live.kept = None, False
    live.total = {view: total.copy() for view, total in live.total.items()}
    for group, added in changes:
        for view, amounts in added.items():
            change = group.sign * amounts / evaluator.resources[view].unit[group.slices[view]]
            live.total[view][group.slices[view]] += change
            live.left[view][group.slices[view]] += change
            if view == POINTWISE:
                live.pieces = _raised_pieces(program, live, group, change)
    if not live.finite or not all(np.all(np.isfinite(total)) for total in live.total.values()):
        raise OptionError(f"add_budget: the amount for '{name}' is too large to be counted.")
    return live


def _raised_pieces(program: ProgramData, live: Live, group: ResourceGroup, change: FloatArray) -> tuple[Pieces, ...]:
    guard = program.index_guard
    return tuple(
        pieces.raised(*guard.along(each, change)) if each is group else pieces
        for each, pieces in zip(guard.stepped, live.pieces, strict=False)
    )
