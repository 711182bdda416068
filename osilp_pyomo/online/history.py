"""Arrivals that were met, each different one once, with how often it came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, VIEWS, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals

# Arrays of a batch that are kept, and what saved files call those that there are for each view.
_PLAIN = ("rewards", "lower", "upper", "own", "own_fixed")
_USE = {PROJECTED: "usage", POINTWISE: "points"}
_FIXED = {PROJECTED: "fixed", POINTWISE: "point_fixed"}


# Arrays of a saved history; those that say when arrivals came are there where older ones count less.
AGES = ("recent", "last")
HISTORY = (*_PLAIN, "theta", *_USE.values(), *_FIXED.values(), "counts", *AGES, "met", "key_lengths", "keys")


def keys_of(batch: Batch) -> list[bytes]:
    """What tells arrivals apart: their data, byte by byte."""
    numbers = _theta(batch)
    keys = [row.tobytes() for row in numbers]
    for value in batch.arrivals.values:
        if isinstance(value, CurveStack):
            array = value.array
            for k in range(len(batch)):
                # A function has no bytes of its own; what it uses tells it apart.
                keys[k] += array[k].tobytes() if array is not None else batch.use[PROJECTED][k].tobytes()
    return keys


def _theta(batch: Batch) -> FloatArray:
    numbers = [value for value in batch.arrivals.values if isinstance(value, np.ndarray)]
    return np.ascontiguousarray(np.stack(numbers, axis=1)) if numbers else np.zeros((len(batch), 0))


class History:
    """Different arrivals in numbers; grows by doubling, and is told in arrays so that it can be saved."""

    def __init__(self, view: str, memory: float = np.inf) -> None:
        self.view = view  # the resources that are priced
        self.memory = memory  # the mean age, in arrivals, of what counts
        self.size = 0  # different arrivals
        self.met = 0  # arrivals
        self.counts = np.zeros(0)
        # How much each counted when it came last, and as which arrival that was; where older ones count less.
        self.recent, self.last = np.zeros(0), np.zeros(0)
        self._arrays: dict[str, FloatArray] = {}
        self._numbers: dict[bytes, int] = {}
        self._keys: list[bytes] = []

    def __getitem__(self, name: str) -> FloatArray:
        """An array of all different arrivals: rewards, lower, upper, own, own_fixed, theta."""
        return self._arrays[name][: self.size]

    @property
    def use(self) -> FloatArray:
        """What the functions of the decision use of the resources that are priced (N, K, R)."""
        return self[_USE[self.view]]

    @property
    def fixed(self) -> FloatArray:
        """What is used of them whatever is decided (N or 0, R)."""
        return self[_FIXED[self.view]]

    @property
    def consistent(self) -> bool:
        """Whether its arrivals are all different, as many as it says."""
        return len(self._numbers) == len(self._keys) == self.size

    @property
    def multiplicity(self) -> FloatArray:
        """How often each different arrival came."""
        return self.counts[: self.size]

    @property
    def weights(self) -> FloatArray:
        """How much each different arrival counts: as often as it came, or less where that is long ago."""
        if np.isinf(self.memory):
            return self.multiplicity
        return self.recent[: self.size] * np.exp((self.last[: self.size] - self.met) / self.memory)

    def number_of(self, key: bytes) -> int:
        """The number of an arrival that came before, or -1."""
        return self._numbers.get(key, -1)

    def add(self, batch: Batch, keys: list[bytes]) -> None:
        """Remember arrivals."""
        fresh: list[int] = []
        for place, key in enumerate(keys):
            number = self._numbers.get(key)
            if number is None:
                self._numbers[key] = number = self.size + len(fresh)
                self._keys.append(key)
                fresh.append(place)
                self._reserve(number + 1)
            self.counts[number] += 1
            if not np.isinf(self.memory):
                came = self.met + place + 1
                self.recent[number] = 1.0 + self.recent[number] * np.exp((self.last[number] - came) / self.memory)
                self.last[number] = came
        self.met += len(keys)
        if fresh:
            self._append(batch, np.array(fresh))

    def copy(self) -> History:
        """The same, to go on by itself."""
        other = History(self.view, self.memory)
        other.size, other.met, other._keys, other._numbers = self.size, self.met, [*self._keys], {**self._numbers}
        other._arrays = {name: array.copy() for name, array in self._arrays.items()}
        other.counts, other.recent, other.last = self.counts.copy(), self.recent.copy(), self.last.copy()
        return other

    def mark(self) -> tuple[int, int, tuple[FloatArray, ...]]:
        """Where it is, to come back to."""
        return self.size, self.met, tuple(each[: self.size].copy() for each in (self.counts, self.recent, self.last))

    def back_to(self, mark: tuple[int, int, tuple[FloatArray, ...]]) -> None:
        """Forget what came after a mark."""
        self.size, self.met, known = mark
        # An interrupt may have come between any two of the lines that remember an arrival.
        self._numbers = {key: number for key, number in self._numbers.items() if number < self.size}
        del self._keys[self.size :]
        for held, before in zip((self.counts, self.recent, self.last), known, strict=True):
            held[len(before) :] = 0.0
            held[: len(before)] = before

    def _reserve(self, size: int) -> None:
        if size > len(self.counts):
            room = np.zeros(max(64, len(self.counts)))
            self.counts = np.concatenate([self.counts, room])
            if not np.isinf(self.memory):
                self.recent, self.last = np.concatenate([self.recent, room]), np.concatenate([self.last, room])

    def shapes(self, evaluator: Evaluator) -> dict[str, tuple[int, ...]]:
        """For each array the shape of what one arrival of a program adds to it, which may be nothing."""
        template, resources = evaluator.template, evaluator.resources
        functions, decisions, rows = len(template.functions), len(template.decisions), len(template.own_rows)
        numbers = sum(field.curve is None for field in template.fields)
        result: dict[str, tuple[int, ...]] = {
            "rewards": (1, functions), "lower": (1, decisions), "upper": (1, decisions), "own": (1, rows, functions),
            "own_fixed": (1, rows), "theta": (1, numbers),
        }  # fmt: skip
        result |= {_FIXED[view]: (int(evaluator.has_fixed), resources[view].size) for view in VIEWS}
        return result | {_USE[view]: (1, functions, resources[view].size) for view in {PROJECTED, self.view}}

    def _append(self, batch: Batch, places: Any) -> None:
        values = {name: getattr(batch, name) for name in _PLAIN}
        values["theta"] = _theta(batch)
        values |= {_FIXED[view]: batch.fixed[view] for view in VIEWS}
        values |= {_USE[view]: batch.use[view] for view in {PROJECTED, self.view}}
        stop = self.size + len(places)
        for name, array in values.items():
            if not len(array):
                self._arrays.setdefault(name, array)
                continue
            held = self._arrays.get(name)
            if held is None or stop > len(held):
                grown = np.empty((max(64, 2 * stop), *array.shape[1:]))
                if held is not None:
                    grown[: self.size] = held[: self.size]
                self._arrays[name] = held = grown
            held[self.size : stop] = array[places]
        self.size = stop

    def batch(self, evaluator: Evaluator) -> Batch:
        """The different arrivals as a batch; curves are not kept, for no function of the decision holds one."""
        numbers = iter(range(self["theta"].shape[1]))
        values = tuple(
            None if field.curve is not None else self["theta"][:, next(numbers)] for field in evaluator.template.fields
        )
        arrivals = Arrivals(values, pd.RangeIndex(self.size))
        use = {view: self[_USE[view]] for view in (PROJECTED, self.view)}
        fixed = {view: self[_FIXED[view]] for view in VIEWS}
        return Batch(
            arrivals, self["rewards"], np.zeros(self.size), use, fixed, self["lower"], self["upper"], self["own"],
            self["own_fixed"],
        )  # fmt: skip

    # -- saving ------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, FloatArray]:
        """Everything as arrays."""
        result: dict[str, Any] = {name: array[: self.size] for name, array in self._arrays.items()}
        result["counts"] = self.multiplicity
        if not np.isinf(self.memory):
            result["recent"], result["last"] = self.recent[: self.size], self.last[: self.size]
        result["met"] = np.array(self.met)
        lengths = np.array([len(key) for key in self._keys], dtype=np.int64)
        result["key_lengths"] = lengths
        result["keys"] = np.frombuffer(b"".join(self._keys), dtype=np.uint8)
        return result

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], view: str, memory: float = np.inf) -> History:
        """What ``to_arrays`` told."""
        history = cls(view, memory)
        names = (*_PLAIN, "theta", *_USE.values(), *_FIXED.values())
        # Arrays that grow have room of their own; those of a file are as long as what they hold.
        history._arrays = {name: np.array(arrays[name]) for name in names if name in arrays}
        history.counts = np.array(arrays["counts"])
        if "recent" in arrays:
            history.recent, history.last = np.array(arrays["recent"]), np.array(arrays["last"])
        history.size, history.met = len(history.counts), int(arrays["met"])
        blob = arrays["keys"].tobytes()
        ends = np.cumsum(arrays["key_lengths"])
        for number, (end, length) in enumerate(zip(ends.tolist(), arrays["key_lengths"].tolist(), strict=True)):
            key = blob[end - length : end]
            history._keys.append(key)
            history._numbers[key] = number
        return history
