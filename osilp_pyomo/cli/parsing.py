"""Policies, grids and bases as they are written on a command line: ``Resolve(exact=True)``, ``RBF(10)``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from osilp_pyomo.errors import OptionError, OsilpError
from osilp_pyomo.index.bases import RBF, Bernstein, BSpline, Hat, Indicator
from osilp_pyomo.index.grids import Chebyshev, GaussLegendre, Midpoint, Random, Sobol
from osilp_pyomo.online.policies import AccelerateThenRefine, GradientDescent, Greedy, MirrorDescent, Policy, SimpleGD
from osilp_pyomo.online.resolve import Resolve

POLICIES: dict[str, Any] = {
    each.__name__: each for each in (AccelerateThenRefine, GradientDescent, Greedy, MirrorDescent, Resolve, SimpleGD)
}
GRIDS: dict[str, Any] = {each.__name__: each for each in (Chebyshev, GaussLegendre, Midpoint, Random, Sobol)}
BASES: dict[str, Any] = {each.__name__: each for each in (BSpline, Bernstein, Hat, Indicator, RBF)}


def made(text: str, known: Mapping[str, Any], what: str) -> Any:
    """What a text calls: a name among the known ones, with plain numbers and texts as arguments or without any.

    Nothing of the text is run as code.

    Examples
    --------
    >>> made("Resolve(exact=True)", POLICIES, "policy")
    Resolve(exact=True, growth=1.3, caution=2.0)
    >>> made("Midpoint(500)", GRIDS, "grid")
    Midpoint(count=500)
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        if not isinstance(call.func, ast.Name) or any(each.arg is None for each in call.keywords):
            raise ValueError("it is no name with arguments")
        name = call.func.id
        arguments = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, TypeError):
        raise OptionError(
            f"{what} '{text}' cannot be read; write it like {_example(known)}, with plain numbers and texts only."
        ) from None
    if name not in known:
        raise OptionError(f"There is no {what} '{name}'; there are {', '.join(known)}.")
    found = known[name]
    if not callable(found):
        if isinstance(node, ast.Call):
            raise OptionError(f"{what} '{text}': '{name}' is made already and takes no arguments; write '{name}'.")
        return found
    try:
        inspect.signature(found).bind(*arguments, **named)
    except TypeError:
        taken = ", ".join(inspect.signature(found).parameters) or "nothing"
        raise OptionError(f"{what} '{text}': {name} takes {taken}; write it like {_example(known)}.") from None
    try:
        return found(*arguments, **named)
    except OsilpError:
        raise
    except (TypeError, ValueError) as error:
        raise OptionError(f"{what} '{text}': {error}.") from None


def with_own(known: Mapping[str, Any], module: Any) -> dict[str, Any]:
    """Known policies and those that a user's module holds, classes or made ones."""
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Policy) or (isinstance(value, type) and issubclass(value, Policy) and value is not Policy)
    }
    return {**known, **own}


def _example(known: Mapping[str, Any]) -> str:
    return next((f"{name}(10)" for name in ("RBF", "Midpoint") if name in known), "Resolve(exact=True)")
