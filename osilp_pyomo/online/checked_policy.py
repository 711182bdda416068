"""A policy of the user's own, looked at while it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.policies import FirstOrder, Policy, Seen, Setting, State
from osilp_pyomo.online.resolve import Resolve


def is_built_in(policy: Policy) -> bool:
    """Whether a policy is one of the package, whose states and prices are known to be right."""
    return isinstance(policy, FirstOrder | Resolve)


class CheckedPolicy(Policy):
    """Does as another policy does, and refuses prices and states that are none.

    What the policy is told beforehand comes in arrays that it cannot write into: they are the program's.
    """

    def __init__(self, own: Policy) -> None:
        self._own = own
        self.view = own.view
        self._shown: tuple[Setting, Setting] | None = None

    def __repr__(self) -> str:
        return repr(self._own)

    def start(self, setting: Setting) -> State:
        return self._state(self._own.start(self._read_only(setting)), "start")

    def meet(self, state: State, setting: Setting, rewards: FloatArray, usage: FloatArray, reach: FloatArray) -> State:
        return self._state(self._own.meet(state, self._read_only(setting), rewards, usage, reach), "meet")

    def learn(self, state: State, setting: Setting, seen: Seen) -> State:
        return self._state(self._own.learn(state, self._read_only(setting), seen), "learn")

    def warm(self, state: State, setting: Setting, dual: FloatArray) -> State:
        return self._state(self._own.warm(state, self._read_only(setting), dual), "warm")

    def price(self, state: State, setting: Setting) -> FloatArray:
        """The price, if it is one: a finite number for each resource, not below the least."""
        given = self._own.price(state, self._read_only(setting))
        try:
            values = np.array(given, dtype=float)
        except (TypeError, ValueError):
            raise OptionError(
                f"{self!r}: price must give {setting.size} numbers, one a resource (got {given!r})."
            ) from None
        if values.shape != (setting.size,):
            raise OptionError(
                f"{self!r}: price must give {setting.size} numbers, one a resource (got shape {values.shape})."
            )
        wrong = np.flatnonzero(~np.isfinite(values) | (values < setting.floor))
        if len(wrong):
            raise OptionError(
                f"{self!r}: the price of resource {wrong[0]} must be a finite number of at least "
                f"{setting.floor[wrong[0]]:g} (got {values[wrong[0]]:g}); cut it off in price or learn."
            )
        return values

    def _state(self, state: Any, method: str) -> State:
        if not isinstance(state, dict):
            raise OptionError(
                f"{self!r}: {method} must give back the new state, a dictionary of arrays (got {type(state).__name__})."
            )
        return dict(state)

    def _read_only(self, setting: Setting) -> Setting:
        # Read once: another thread may ask the same policy.
        shown = self._shown
        if shown is None or shown[0] is not setting:
            copies = [setting.budget.copy(), setting.floor.copy()]
            for each in copies:
                each.setflags(write=False)
            shown = self._shown = setting, replace(setting, budget=copies[0], floor=copies[1])
        return shown[1]
