"""Options on a command line: those that functions declare, and things written like ``RBF(10)``."""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Mapping
from typing import Any

from osilp_pyomo._options import PROOF, Option
from osilp_pyomo.errors import OptionError, OsilpError
from osilp_pyomo.online.policies import Policy


def add_option(command: argparse.ArgumentParser, option: Option, note: str = "") -> None:
    """Declare an option of a function as one of a command: ``time_limit`` becomes ``--time-limit``."""
    flag = f"--{option.name.replace('_', '-')}"
    if option.default is False:
        command.add_argument(flag, action="store_true", help=option.sentence)
        return
    note = f" {note}" if note else ""
    default = "" if option.default is None else f" (default {option.default})"
    reads = {"int": int, "float": float, "float, optional": float}.get(option.kind, str)
    if option.name == PROOF.name:
        command.add_argument(
            flag,
            type=_read_proof,
            default=option.default,
            metavar="{auto,yes,no}",
            help=f"{option.sentence} (default {option.default})",
        )
        return
    shown = None if option.choices else option.name.rpartition("_")[2].upper()
    command.add_argument(
        flag,
        type=reads,
        default=option.default,
        choices=option.choices or None,
        metavar=shown,
        help=option.sentence + note + default,
    )


def _read_proof(text: str) -> str | bool:
    known: dict[str, str | bool] = {"auto": "auto", "yes": True, "no": False}
    if text not in known:
        raise argparse.ArgumentTypeError(f"must be auto, yes or no (got {text!r})")
    return known[text]


def parse_call(text: str, known: Mapping[str, Any], what: str) -> Any:
    """What a text calls: a name among the known ones, with plain numbers and texts as arguments or without any.

    Nothing of the text is run as code.

    Examples
    --------
    >>> from osilp_pyomo.index.registry import GRIDS
    >>> from osilp_pyomo.online.registry import POLICIES
    >>> parse_call("Resolve(exact=True)", POLICIES, "policy")
    Resolve(exact=True, growth=1.3, caution=2.0)
    >>> parse_call("Midpoint(500)", GRIDS, "grid")
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


def with_module(known: Mapping[str, Any], module: Any) -> dict[str, Any]:
    """Known policies and those that a user's module holds, classes or made ones."""
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Policy) or (isinstance(value, type) and issubclass(value, Policy) and value is not Policy)
    }
    return {**known, **own}


def _example(known: Mapping[str, Any]) -> str:
    return next((f"{name}(10)" for name in ("RBF", "Midpoint") if name in known), "Resolve(exact=True)")
