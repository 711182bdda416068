"""Why a rule failed when it was called, with a symbol or with numbers, and what to write instead."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np
from pyomo.core.base.param import Param
from pyomo.core.base.var import Var

from osilp_pyomo.errors import DeclarationError
from osilp_pyomo.model.arrays.expressions import ArrayError, NumbersNeededError


def refuse_wrong_dimension(error: Exception, name: str, sizes: Sequence[int]) -> None:
    """Tell a rule that needs an uncertain vector of another dimension from other failures."""
    if isinstance(error, ArrayError):
        raise DeclarationError(f"SemiInfiniteConstraint '{name}': {error}") from None
    if sizes and isinstance(error, ValueError) and "unpack" in str(error):
        raise DeclarationError(
            f"SemiInfiniteConstraint '{name}': its rule cannot take an uncertain vector of dimension "
            f"{', '.join(map(str, sizes))} apart ({error}); give a set of the dimension that the rule needs."
        ) from None


def refuse_missing_member(error: LookupError, constraint: Any) -> None:
    """Tell a variable or Param over the continuous index from other missing members."""
    for component in constraint.model().component_objects((Param, Var), descend_into=True):
        sets = component.index_set().subsets() if component.is_indexed() else ()
        if not any(each is continuous for each in sets for continuous in constraint.continuous_sets):
            continue
        if component.ctype is Param:
            why = (
                f"the Param '{component.name}' is indexed by the continuous index, of which it holds a few members "
                "only; give a function of the index as osilp.Profile(over=..., points=..., initialize=...), and "
                "write it as m.profile(u)."
            )
        else:
            why = (
                f"the variable '{component.name}' is indexed by the continuous index; a decision that is a "
                "function of the index is declared as osilp.FunctionVar(over=..., basis=...), and written as "
                "m.curve(u)."
            )
        raise DeclarationError(f"SemiInfiniteConstraint '{constraint.name}': {why}") from error


def refuse_lookup(error: Exception, name: str, point: Sequence[float]) -> None:
    """Tell values that are looked up by the index, in a dict, a Series, a list or an array, from other failures."""
    missing = isinstance(error, KeyError) and error.args[:1] in tuple((number,) for number in point)
    places = not isinstance(error, KeyError) and "indices" in str(error) and "integer" in str(error)
    if missing or places:
        raise DeclarationError(
            f"SemiInfiniteConstraint '{name}': its rule looks values up by the index ({reason_of(error)}), "
            "which is every number between its ends and in general none of theirs; give them as a function, "
            "m.curve = osilp.Profile(over=..., points=..., initialize=...), and write m.curve(u)."
        ) from error


def reason_of(error: Exception) -> str:
    """Type and first sentence of an error, for a reason that fits on a line."""
    if by_numpy := re.search(r"has no callable (\w+) method", str(error)):
        return (
            f"numpy's {by_numpy[1]} was given what Pyomo made of the index; write the index first, as in u * m.p in "
            "place of m.p * u, or use pyomo.environ's functions"
        )
    if isinstance(error, TypeError) and (name := _called_from_math(error)):
        known = f"np.{name}" if hasattr(np, name) else "a function of numpy or Pyomo"
        return f"math.{name} needs a number, and the index stands for every point: use {known}"
    if _within_scipy_interpolate(error):
        return (
            "scipy's interpolation needs numbers, and the index stands for every point: give the curve as "
            "osilp.Profile(over=..., points=..., initialize=...) and write m.curve(u)"
        )
    text = " ".join(str(error).split()).split(". ")[0].rstrip(".")
    if isinstance(error, NumbersNeededError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _within_scipy_interpolate(error: Exception) -> bool:
    """Whether an error came up in an interpolation of scipy's that was called by a rule."""
    frames = traceback.extract_tb(error.__traceback__)
    return any("scipy" in frame.filename and "interpolate" in frame.filename for frame in frames)


def _called_from_math(error: Exception) -> str | None:
    """The function of Python's math that stands in the line of the rule where an error came up, if any."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.name in ("__float__", "__int__", "__index__"):
            continue
        found = re.search(r"\bmath\.(\w+)\(", frame.line or "")
        return found[1] if found else None
    return None
