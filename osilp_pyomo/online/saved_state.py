"""What a saved controller must be before one of its numbers is used.

Kernels write without looking at bounds. So every name, shape, kind and range is compared with those of a fresh
controller of the same program and policy, whoever wrote the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import MOST
from osilp_pyomo.errors import OsilpError, SavedStateError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.online.experience.memory import MEMORY, Memory
from osilp_pyomo.online.forecast import Foretold
from osilp_pyomo.online.history import AGES, HISTORY, History
from osilp_pyomo.online.kernels.linear import LARGEST
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.pieces import Pieces

_FRACTIONS = "fractions"
_FORECAST = "forecast:"
# What rounding may have made of sums at points and on pieces, in very many arrivals.
_AT_POINTS = 1e-7


def check_header(path: Any, header: Mapping[str, Any], choices: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a header whose entries are not what ``save`` writes; ``choices`` are the words that entries may be."""
    for name, least, most in (("t", 0, MOST), ("horizon", 1, MOST), ("seed", 0, math.inf)):
        value = header.get(name)
        if type(value) is not int or not least <= value <= most:
            raise _wrong(path, f"'{name}' must be a whole number of at least {least} (got {value!r})")
    for name, words in choices.items():
        if header.get(name) not in words:
            raise _wrong(path, f"'{name}' must be one of {', '.join(map(repr, words))} (got {header.get(name)!r})")
    if header["beyond"] == "error" and header.get("clock") is None and header["t"] > header["horizon"]:
        raise _wrong(path, f"{header['t']} arrivals were met of {header['horizon']}")
    gaps = header.get("gaps", {})
    if not isinstance(gaps, dict) or not all(isinstance(why, str) for why in gaps.values()):
        raise _wrong(path, "'gaps' must say why rows are kept at points only")
    awaited = header.get("awaited", [])
    if not isinstance(awaited, list) or not all(type(each) is int and 1 <= each <= header["t"] for each in awaited):
        raise _wrong(path, "'awaited' must be numbers of arrivals that were passed over")
    if not isinstance(header.get("projected", False), bool):
        raise _wrong(path, "'projected' must say whether arrivals came as projections")
    earned = header.get("earned")
    if isinstance(earned, bool) or not isinstance(earned, int | float) or not abs(earned) <= LARGEST:
        raise _wrong(path, f"'earned' must be a finite number (got {earned!r})")
    policy = header.get("policy")
    if not isinstance(policy, dict) or not isinstance(policy.get("name"), str):
        raise _wrong(path, f"'policy' must name a policy (got {policy!r})")
    if not isinstance(policy.get("arguments"), dict | None):
        raise _wrong(path, "the policy's arguments must be a mapping")


def check_arrays(
    path: Any, arrays: Mapping[str, Any], fresh: Mapping[str, Any], remembers: tuple[bool, bool], free_state: bool
) -> None:
    """Refuse arrays that those of a fresh controller could not have become.

    ``remembers`` says whether the policy has a history, and whether it has a memory; with ``free_state`` it is the
    user's own, whose arrays may have any shape.
    """
    expected = {name for name in fresh if not (free_state and name.startswith("state:"))}
    more = {name for name in arrays if name not in expected}
    if missing := sorted(expected - set(arrays)):
        raise _wrong(path, f"'{missing[0]}' is missing")
    allowed = {_FRACTIONS, *(f"history:{name}" for name in HISTORY)} if remembers[0] else set()
    allowed |= {f"memory:{name}" for name in MEMORY} if remembers[1] else set()
    for name in sorted(more):
        if name not in allowed and not (free_state and name.startswith("state:")):
            raise _wrong(path, f"'{name}' does not belong there")
    for name in sorted(arrays):
        array = arrays[name]
        free = name.startswith("pieces:")
        if (
            name in expected
            and not free
            and (array.shape != np.shape(fresh[name]) or array.dtype != np.asarray(fresh[name]).dtype)
        ):
            raise _wrong(path, f"'{name}' must have the shape {np.shape(fresh[name])} (got {array.shape})")
        # An array of a user's own may have fewer digits, whose largest number is below the one here.
        if array.dtype.kind == "f" and name != _FRACTIONS and not np.all(np.abs(array.astype(float)) <= LARGEST):
            raise _wrong(path, f"'{name}' must hold finite numbers")
    foresight = (f"foresight:{name}" for name in ("levels", "judged", "order", "spread", "window"))
    for name in (*foresight, "clock:now", "clock:until"):
        if name in arrays and np.any(arrays[name] < 0):
            raise _wrong(path, f"'{name}' must not be negative")
    if "offers" in arrays and np.any(arrays["offers"] < 0):
        raise _wrong(path, "'offers' must not be negative")
    if not free_state and "state:numbers" in arrays and np.any(arrays["state:numbers"] < 0):
        raise _wrong(path, "'state:numbers' must not be negative")


def forecast_arrays(foretold: Foretold, program: ProgramData) -> dict[str, Any]:
    """A forecast as arrays, from which :func:`read_forecast` makes it anew."""
    numbers = program.intake.to_frame(foretold.arrivals).to_numpy(dtype=float)
    arrays: dict[str, Any] = {f"{_FORECAST}numbers": numbers, f"{_FORECAST}ordered": np.array(foretold.ordered)}
    if foretold.arrivals.times is not None:
        arrays[f"{_FORECAST}times"] = foretold.arrivals.times
    for field, value in zip(program.template.fields, foretold.arrivals.values, strict=True):
        if isinstance(value, CurveStack):
            if value.array is None or field.label.key:
                raise SavedStateError(
                    f"save: the forecast's '{field.label}' comes as functions, which no file holds; give its values "
                    "at the knots of the Profile."
                )
            arrays[f"{_FORECAST}curve:{field.label.name}"] = value.array
    return arrays


def read_forecast(path: Any, arrays: Mapping[str, Any], program: ProgramData) -> Foretold | None:
    """The forecast that a file holds, read as any other; None where it holds none."""
    given = {name[len(_FORECAST) :]: value for name, value in arrays.items() if name.startswith(_FORECAST)}
    if not given:
        return None
    fields = [field for field in program.template.fields if not field.hidden and field.curve is None]
    numbers, ordered = given.get("numbers"), given.get("ordered")
    right = numbers is not None and numbers.ndim == 2 and numbers.dtype == float and numbers.shape[1] == len(fields)
    if numbers is None or not right or ordered is None or ordered.shape != () or ordered.dtype != bool:
        raise _wrong(path, "the forecast is not what was saved")
    frame = pd.DataFrame(numbers)
    frame.columns = pd.Index([field.label.column for field in fields], dtype=object, tupleize_cols=False)
    curves = {name[6:]: value for name, value in given.items() if name.startswith("curve:")}
    try:
        arrivals = program.intake.frame(frame, curves or None)
    except OsilpError as error:
        raise _wrong(path, f"the forecast cannot be read ({error})") from None
    if not len(arrivals):
        raise _wrong(path, "the forecast holds no arrivals")
    times = given.get("times")
    if times is not None:
        if times.shape != (len(arrivals),) or times.dtype != float or np.any(np.diff(times) < 0):
            raise _wrong(path, "the times of the forecast are not what was saved")
        arrivals = arrivals.at(np.array(times))
    return Foretold(arrivals, bool(ordered))


def read_pieces(
    path: Any,
    arrays: Mapping[str, Any],
    fresh: tuple[Pieces, ...],
    at_points: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
) -> tuple[Pieces, ...]:
    """What a file says is left on the pieces of rows, where those belong together.

    ``at_points`` are, for each row, points in their order, the budget there and what is left of it, as the same file
    has them. Pieces may have less, for limits are lowered between points and pieces taken together, but no more.
    """
    result = []
    for number, (known, (points, budget, remaining)) in enumerate(zip(fresh, at_points, strict=True)):
        places, total, left = (arrays[f"pieces:{number}:{name}"] for name in ("places", "total", "left"))
        right = all(
            each.ndim == 1 and each.dtype == float and len(each) == len(places) for each in (places, total, left)
        )
        if not right or not len(places) or places[0] != known.places[0] or np.any(np.diff(places) <= 0):
            raise _wrong(path, "the pieces of a row do not belong together")
        pieces, limit = Pieces(np.array(places), np.array(total), np.array(left)), Pieces.of_cells(points, budget)
        rounding = _AT_POINTS * (np.abs(budget).max() + np.abs(remaining).max())
        more = np.any(total > limit.total[limit.holding(places)] + rounding)
        if places[-1] > points[-1] or more or np.any(left[pieces.holding(points)] > remaining + rounding):
            raise _wrong(path, "the pieces of a row have more left than its points")
        result.append(pieces)
    return tuple(result)


def read_history(path: Any, met: int, arrays: Mapping[str, Any], fresh: History, evaluator: Evaluator) -> History:
    """The history of a file, and its shares of ties looked at, where ``met`` arrivals are said to have been met."""
    kept = {name[8:]: value for name, value in arrays.items() if name.startswith("history:")}
    ages = () if np.isinf(fresh.memory) else AGES
    size = _check_history(path, kept, fresh.shapes(evaluator), ages)
    history = History.from_arrays(kept, fresh.view, fresh.memory)
    if not history.consistent or history.met > met:
        raise _wrong(path, "the history tells other arrivals than were met")
    if _FRACTIONS in arrays:
        _check_fractions(path, arrays[_FRACTIONS], size, len(evaluator.template.decisions))
    return history


def read_memory(path: Any, met: int, arrays: Mapping[str, Any], fresh: Memory) -> Memory:
    """The memory of a file, where ``met`` arrivals are said to have been met; ``fresh`` becomes it."""
    why = fresh.take_over({name[7:]: value for name, value in arrays.items() if name.startswith("memory:")})
    if why is None and fresh.met > met:
        why = "the memory tells of more arrivals than were met"
    if why is not None:
        raise _wrong(path, why)
    return fresh


def _check_history(
    path: Any, arrays: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], ages: tuple[str, ...]
) -> int:
    """Refuse a history whose arrays do not belong together; how many different arrivals it holds.

    ``shapes`` are those of what a single arrival adds to it, ``ages`` names of what is told of when it came.
    """
    if set(arrays) - {"met", "counts", *ages, "key_lengths", "keys"} - set(shapes):
        raise _wrong(path, "the history holds arrays that this program does not")
    for name, kind in (("met", np.int64), ("counts", np.float64), ("key_lengths", np.int64), ("keys", np.uint8)):
        if name not in arrays or arrays[name].dtype != kind or arrays[name].ndim != int(name != "met"):
            raise _wrong(path, f"the history's '{name}' is not what was saved")
    size, counts, lengths = len(arrays["counts"]), arrays["counts"], arrays["key_lengths"]
    together = len(lengths) == size and lengths.min(initial=1) >= 0 and int(lengths.sum()) == len(arrays["keys"])
    counted = counts.min(initial=1.0) >= 1 and float(counts.sum()) == float(arrays["met"])
    if not (together and counted):
        raise _wrong(path, "the history's arrivals do not add up")
    for name in ages:
        told = arrays.get(name)
        if told is None or told.shape != counts.shape or told.dtype != float or np.any(told < 0):
            raise _wrong(path, f"the history's '{name}' is not what was saved")
    for name, (each, *shape) in shapes.items():
        if size and name not in arrays:
            raise _wrong(path, f"the history's '{name}' is missing")
        wanted = (size * each, *shape)
        if name in arrays and (arrays[name].shape != wanted or arrays[name].dtype != float):
            raise _wrong(path, f"the history's '{name}' must have the shape {wanted} (got {arrays[name].shape})")
    return size


def _check_fractions(path: Any, fractions: FloatArray, size: int, decisions: int) -> None:
    """Refuse shares of ties that are none."""
    right = fractions.ndim == 2 and fractions.dtype == float and fractions.shape[1] == decisions
    if not right or len(fractions) > size or not np.all(np.isnan(fractions) | ((fractions >= 0) & (fractions <= 1))):
        raise _wrong(path, "'fractions' are not shares of the arrivals that were met")


def _wrong(path: Any, why: str) -> SavedStateError:
    return SavedStateError(f"'{path}' is no state that controller.save wrote for this program and policy: {why}.")
