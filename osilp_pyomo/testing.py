"""check_policy: does a policy of one's own keep the contract?"""

from __future__ import annotations

from typing import Any

import numpy as np

from osilp_pyomo.online.policies import Policy, Seen, Setting, view_of
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED

__all__ = ["PolicyContractError", "check_policy"]


class PolicyContractError(AssertionError):
    """A policy breaks the contract; the text says which part.

    Examples
    --------
    >>> check_policy("mirror descent")
    Traceback (most recent call last):
    ...
    osilp_pyomo.testing.PolicyContractError: 'mirror descent' is no osilp_pyomo.Policy; derive it from that class.
    """


def check_policy(policy: Policy, resources: int = 4, arrivals: int = 30, seed: int = 0) -> None:
    """Try out whether a policy keeps the contract of :class:`osilp_pyomo.Policy`.

    Checked are: a fresh state of arrays that can be saved; a finite price of the right size, at or above its floor;
    that pricing and learning leave the old state alone, and that the same arrivals give the same prices.

    Parameters
    ----------
    policy : Policy
        What to try.
    resources, arrivals : int
        Size of the problems that it is tried on.
    seed : int
        Of the arrivals, which are random.

    Raises
    ------
    PolicyContractError
        Says which part of the contract is broken.

    Examples
    --------
    >>> from osilp_pyomo import MirrorDescent
    >>> check_policy(MirrorDescent())
    """
    if not isinstance(policy, Policy):
        raise PolicyContractError(f"{policy!r} is no osilp_pyomo.Policy; derive it from that class.")
    if view_of(policy) not in (PROJECTED, POINTWISE):
        raise PolicyContractError(f"{policy!r}: view must be '{PROJECTED}' or '{POINTWISE}' (got {policy.view!r}).")
    first, second = (_prices(policy, resources, arrivals, seed) for _ in range(2))
    if not all(map(np.array_equal, first, second)):
        raise PolicyContractError(
            f"{policy!r}: the same arrivals gave other prices the second time; keep all that changes in the state, and "
            "draw random numbers from a seed kept there."
        )


def _prices(policy: Policy, resources: int, arrivals: int, seed: int) -> list[Any]:
    """Run a policy on random arrivals, checking each of its states and prices; its prices."""
    rng = np.random.default_rng(seed)
    setting = Setting(arrivals, rng.uniform(0.5, 1.5, resources), np.zeros(resources))
    state = policy.start(setting)
    _check_state(policy, state, "start")
    remaining, prices = setting.budget * arrivals, []
    for t in range(arrivals):
        rewards, usage = rng.normal(1, 1, 1), rng.uniform(0, 2, (1, resources))
        before = _frozen(state)
        met = policy.meet(state, setting, rewards, usage, np.ones(1))
        _unchanged(policy, state, before, "meet")
        _check_state(policy, met, "meet")
        before = _frozen(met)
        price = np.array(policy.price(met, setting))
        _unchanged(policy, met, before, "price")
        if price.shape != (resources,) or not np.all(np.isfinite(price)):
            raise PolicyContractError(
                f"{policy!r}: price must give {resources} finite numbers, one a resource (got {price!r} at arrival "
                f"{t + 1})."
            )
        if np.any(price < setting.floor):
            raise PolicyContractError(
                f"{policy!r}: a price lies below its floor ({price.min():g} at arrival {t + 1}); use np.maximum(dual, "
                "setting.floor)."
            )
        prices.append(price)

        def respond(dual: Any, rewards: Any = rewards, usage: Any = usage) -> Any:
            return usage[0] * float(rewards[0] > usage[0] @ dual)

        used = respond(price)
        taken = used * float(np.all(used <= remaining))
        seen = Seen(t, used, taken, remaining.copy(), arrivals - t, rewards, usage, respond)
        state = policy.learn(met, setting, seen)
        _unchanged(policy, met, before, "learn")
        _check_state(policy, state, "learn")
        remaining = remaining - taken
    return prices


def _check_state(policy: Policy, state: Any, where: str) -> None:
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise PolicyContractError(f"{policy!r}: {where} must give a dictionary by name (got {type(state).__name__}).")
    for name, value in state.items():
        if np.asarray(value).dtype.kind not in "biuf":
            raise PolicyContractError(
                f"{policy!r}: the state must hold arrays of numbers, so that it can be saved ('{name}' is "
                f"{type(value).__name__})."
            )


def _frozen(state: Any) -> dict[str, Any]:
    return {name: np.array(value) for name, value in state.items()}


def _unchanged(policy: Policy, state: Any, before: dict[str, Any], where: str) -> None:
    if set(state) != set(before) or not all(
        np.array_equal(state[name], before[name], equal_nan=True) for name in before
    ):
        raise PolicyContractError(f"{policy!r}: {where} changed the state it was given; give back a new one.")
