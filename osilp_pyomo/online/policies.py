"""Policies: how a price on the resources is found while arrivals come.

Every policy decides by ``x_t = argmax f(x) - w_t'g(x)`` and differs in how it finds w_t. Constructors only store;
:meth:`Policy.start` gives a fresh state, a dictionary of numpy arrays, so that it can be saved without running code.
Nothing looks ahead: a price depends on arrivals that came, and on the budget and the horizon.

The paper is Zong and Jiang, "Online Semi-infinite Linear Programming: Efficient Algorithms via Function
Approximation" (arXiv:2603.16200). Where a class departs from its algorithm, its docstring says how and why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.kernels import linear as kernels
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED

State = dict[str, Any]

#: The caution of policies that price points, if not given: chosen by measurements.
CAUTION = 2.0


@dataclass(frozen=True, eq=False)
class Setting:
    """What a policy knows before the first arrival: how many will come, and the budget of each resource.

    ``budget`` is D, the total divided by the horizon; ``floor`` is the least value of each dual: 0, or -inf for the
    dual of an equality.
    """

    horizon: int
    budget: FloatArray
    floor: FloatArray
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of resources."""
        return len(self.budget)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a policy learns from one arrival.

    Attributes
    ----------
    t : int
        Number of the arrival, from 0.
    used : array (R,)
        Use of the decision that the price asked for, whether or not a guard let it through.
    taken : array (R,)
        Use of what was really done.
    remaining : array (R,)
        Budget that was left before this arrival.
    left : int
        Arrivals still to come, this one included.
    rewards, usage : arrays (K,), (K, R)
        Coefficients of the arrival.
    respond : callable
        ``respond(dual)`` is the use (R,) of the best decision at another dual.
    """

    t: int
    used: FloatArray
    taken: FloatArray
    remaining: FloatArray
    left: int
    rewards: FloatArray
    usage: FloatArray
    respond: Callable[[FloatArray], FloatArray]


class Policy(ABC):
    """A way to price resources.

    A policy of one's own stores its parameters, and has these three methods. ``osilp_pyomo.testing.check_policy``
    tells whether it keeps the contract.

    Examples
    --------
    The price rises with each arrival that was served, and falls otherwise:

    >>> class UpAndDown(Policy):
    ...     def start(self, setting):
    ...         return {"dual": np.zeros(setting.size)}
    ...     def price(self, state, setting):
    ...         return state["dual"]
    ...     def learn(self, state, setting, seen):
    ...         step = 0.1 * np.sign(seen.used - setting.budget)
    ...         return {"dual": np.maximum(state["dual"] + step, setting.floor)}
    >>> UpAndDown().view
    'projected'
    """

    #: Which resources are priced: "projected" (test functions) or "pointwise" (every grid point).
    view: str = PROJECTED
    #: Whether it learns from a sample of arrivals, so that a forecast can be one.
    foresees: ClassVar[bool] = False

    @abstractmethod
    def start(self, setting: Setting) -> State:
        """A fresh state: arrays and numbers by name."""

    @abstractmethod
    def price(self, state: State, setting: Setting) -> FloatArray:
        """The dual w to decide the next arrival by; must not change the state."""

    @abstractmethod
    def learn(self, state: State, setting: Setting, seen: Seen) -> State:
        """The state after an arrival; the old one must stay as it was."""

    def meet(self, state: State, setting: Setting, rewards: FloatArray, usage: FloatArray, reach: FloatArray) -> State:
        """The state after looking at an arrival's coefficients, before it is priced; most policies do not look."""
        return state

    def warm(self, state: State, setting: Setting, dual: FloatArray) -> State:
        """A fresh state that begins at a known price; a policy without a "dual" in its state refuses it."""
        if "dual" not in state:
            raise OptionError(f"{self!r}: it has no dual to begin at; leave warm_start= out.")
        return {**state, "dual": np.maximum(dual, setting.floor)}


def view_of(policy: Policy) -> str:
    """The resources that a policy prices, "projected" or "pointwise"; "points" is an older word for the latter."""
    view = POINTWISE if policy.view == "points" else policy.view
    if view not in (PROJECTED, POINTWISE):
        raise OptionError(f"{policy!r}: view must be 'projected' or 'pointwise' (got {policy.view!r}).")
    return view


class FirstOrder(Policy):
    """Policies whose dual moves a little after each arrival; the kernels know them."""

    #: An arrival takes at most caution / sqrt(T - t) of what is left of a resource; None: whatever is left.
    caution: float | None = None

    @abstractmethod
    def settings(self, setting: Setting) -> FloatArray:
        """The parameters as an array for the kernels."""

    def start(self, setting: Setting) -> State:
        state: State = {name: np.zeros(setting.size) for name in ("dual", "learner", "centre", "average")}
        state["numbers"] = np.zeros(kernels.NUMBERS)
        return state

    def warm(self, state: State, setting: Setting, dual: FloatArray) -> State:
        known = np.maximum(dual, setting.floor)
        return {**state, **{name: known.copy() for name in ("dual", "learner", "centre")}}

    def price(self, state: State, setting: Setting) -> FloatArray:
        return state["dual"]

    def meet(self, state: State, setting: Setting, rewards: FloatArray, usage: FloatArray, reach: FloatArray) -> State:
        new = {**state, "numbers": state["numbers"].copy(), "dual": state["dual"].copy()}
        kernels.look(rewards, usage, reach, setting.budget, new["numbers"])
        kernels.begin(self.settings(setting), setting.budget, new["numbers"], new["dual"])
        return new

    def learn(self, state: State, setting: Setting, seen: Seen) -> State:
        settings = self.settings(setting)
        new = {name: np.array(array) for name, array in state.items()}
        target = setting.budget
        if settings[kernels.REMAINING_TARGET]:
            target = seen.remaining / max(seen.left, 1)
        learner_used = seen.used
        if kernels.accelerating(settings, new["numbers"]):
            learner_used = seen.respond(new["learner"])
        kernels.learn(
            settings, float(setting.horizon), setting.budget, np.ascontiguousarray(target), setting.floor, seen.used,
            learner_used, new["dual"], new["learner"], new["centre"], new["average"], new["numbers"],
        )  # fmt: skip
        return new


def _settings(**entries: float) -> FloatArray:
    result = np.zeros(kernels.SETTINGS)
    for name, value in entries.items():
        result[getattr(kernels, name)] = value
    return result


def _positive(policy: Any, name: str) -> None:
    value = getattr(policy, name)
    if not isinstance(value, int | float) or not 0 < value < np.inf:
        raise OptionError(f"{type(policy).__name__}: {name} must be a number > 0 (got {value!r}).")


_SCALES = ("free", "paper")


def _one_of(policy: Any, name: str, allowed: tuple[str, ...]) -> None:
    value = getattr(policy, name)
    if value not in allowed:
        choices = " or ".join(map(repr, allowed))
        raise OptionError(f"{type(policy).__name__}: {name} must be {choices} (got {value!r}).")


@dataclass(frozen=True)
class GradientDescent(FirstOrder):
    """Algorithm 1: w <- max(w + gamma (C_t x_t - D), 0), gamma = step / sqrt(T).

    Parameters
    ----------
    step : float
        Factor of the step size.
    scale : "free" or "paper"
        "paper" takes gamma = step / sqrt(T) as printed. "free" multiplies it by ``mean|r| / (|D| rms|C - D|)``, means
        of the arrivals seen so far, so that units of money and of the resource do not matter.

    Notes
    -----
    Departures: the scale-free step is the default, because with the printed one regret depends on units.

    Examples
    --------
    >>> GradientDescent()
    GradientDescent(step=1.0, scale='free')
    """

    step: float = 1.0
    scale: str = "free"
    algorithm: ClassVar[str] = "Algorithm 1"

    def __post_init__(self) -> None:
        _positive(self, "step")
        _one_of(self, "scale", _SCALES)

    def settings(self, setting: Setting) -> FloatArray:
        return _settings(KIND=kernels.EUCLIDEAN, STEP=self.step, SCALE_FREE=self.scale == "free")


@dataclass(frozen=True)
class Potential:
    """A separable potential of one's own for mirror descent, by its derivative and that derivative's inverse.

    ``gradient(w)`` is psi'(w), coordinate by coordinate, and ``inverse(z)`` gives back w, both in units of
    ``mean|r| / |D|`` where steps are scale-free; ``start`` is the first dual, as a share of ``|r_1| / (R D_k)``.

    Parameters
    ----------
    gradient : callable
        ``psi'(w)``, coordinate by coordinate.
    inverse : callable
        Gives w back from ``psi'(w)``.
    start : float
        The first dual, as a share of ``|r_1| / (R D_k)``.

    Examples
    --------
    The potential w^3 / 3 on w >= 0:

    >>> Potential(gradient=np.square, inverse=lambda z: np.sqrt(np.maximum(z, 0))).start
    0.0
    """

    gradient: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]
    start: float = 0.0


@dataclass(frozen=True)
class MirrorDescent(FirstOrder):
    """Algorithms 2 and 6: w <- argmin over w >= 0 of gamma (D - C_t x_t)'w + D_psi(w || w_t).

    Parameters
    ----------
    potential : "euclidean", "entropy" or Potential
        "euclidean" is Algorithm 1. "entropy" is psi(w) = sum w log w, that is w <- w exp(-gamma (D - C x)).
    target : "average" or "remaining"
        What the use is compared with: D as in the paper, or what remains of the budget a remaining arrival,
        B_t / (T - t), which corrects what went wrong before.
    step : float
        Factor of the step size.
    scale : "free" or "paper"
        As in :class:`GradientDescent`.
    view : "projected" or "pointwise"
        Which resources are priced: test functions as in the paper, or every point of the grid.
    caution : float, optional
        An arrival takes at most caution / sqrt(T - t) of what is left of a resource, if it can take a part; 2 with
        view="pointwise" if not given, else there is no such limit.

    Notes
    -----
    ``MirrorDescent("entropy", "remaining", view="pointwise")`` is the best policy here that remembers nothing but its
    price: on points, with caution and the target that remains, it comes near re-solving (``benchmarks/regret.py``).

    Departures from the paper: its entropy has the wrong sign, and starts at w = 0, which the update never leaves; here
    it starts at mean|r| / (R D_k), on points at less where arrivals use many times their budget and could not pay that.
    Its scale-free step is sqrt(R) / rms|C - D|, for its duals are multiplied and need no size of their own, and falls
    like 1/sqrt(t) instead of being 1/sqrt(T) throughout: measured better on every instance tried. Exponents are cut at
    30, for a larger factor would never come back.

    Examples
    --------
    >>> MirrorDescent(potential="entropy", target="remaining").algorithm
    'Algorithms 2 and 6'
    """

    potential: str | Potential = "euclidean"
    target: str = "average"
    step: float = 1.0
    scale: str = "free"
    view: str = PROJECTED
    caution: float | None = None
    algorithm: ClassVar[str] = "Algorithms 2 and 6"

    def __post_init__(self) -> None:
        _positive(self, "step")
        _one_of(self, "scale", _SCALES)
        _one_of(self, "view", (PROJECTED, POINTWISE))
        if self.caution is None and self.view == POINTWISE:
            object.__setattr__(self, "caution", CAUTION)
        if self.caution is not None:
            _positive(self, "caution")
        _one_of(self, "target", ("average", "remaining"))
        if not isinstance(self.potential, Potential):
            _one_of(self, "potential", ("euclidean", "entropy"))

    def __repr__(self) -> str:
        told = f"potential={self.potential!r}, target={self.target!r}, step={self.step!r}, scale={self.scale!r}"
        if self.view != PROJECTED or self.caution is not None:
            # What is not in the paper is told where it is asked for.
            told += f", view={self.view!r}, caution={self.caution!r}"
        return f"MirrorDescent({told})"

    def settings(self, setting: Setting) -> FloatArray:
        entropy = self.potential == "entropy"
        if entropy and not np.all(np.isfinite(setting.floor)):
            raise OptionError(
                "MirrorDescent: the entropy needs duals >= 0, and that of an equality is free; use "
                "potential='euclidean'."
            )
        return _settings(
            KIND=kernels.ENTROPY if entropy else kernels.EUCLIDEAN,
            STEP=self.step,
            SCALE_FREE=self.scale == "free",
            REMAINING_TARGET=self.target == "remaining",
            ANYTIME=self.scale == "free" and entropy,
            PAYABLE=self.view == POINTWISE,
        )

    def meet(self, state: State, setting: Setting, rewards: FloatArray, usage: FloatArray, reach: FloatArray) -> State:
        new = super().meet(state, setting, rewards, usage, reach)
        if isinstance(self.potential, Potential) and self.potential.start and new["numbers"][kernels.SEEN] == 1:
            # As the entropy begins, and a share of that.
            kernels.begin(_settings(KIND=kernels.ENTROPY), setting.budget, new["numbers"], new["dual"])
            new["dual"] = np.maximum(self.potential.start * new["dual"], setting.floor)
        return new

    def learn(self, state: State, setting: Setting, seen: Seen) -> State:
        if not isinstance(self.potential, Potential):
            return super().learn(state, setting, seen)
        return self._learn_by(self.potential, state, setting, seen)

    def _learn_by(self, potential: Potential, state: State, setting: Setting, seen: Seen) -> State:
        """One step in the mirror of a potential of the user's."""
        settings = self.settings(setting)
        new = {name: np.array(array) for name, array in state.items()}
        width, spread = kernels.sizes(settings, setting.budget, new["numbers"])
        target = seen.remaining / max(seen.left, 1) if self.target == "remaining" else setting.budget
        dual = new["dual"]
        gradient = self.step * (target - seen.used) / (spread * np.sqrt(setting.horizon))
        if width > 0:
            # In units of the dual's own size the potential sees numbers around 1, whatever the units of money.
            unit = width if self.scale == "free" else 1.0
            moved = potential.inverse(potential.gradient(dual / unit) - gradient) * unit
            dual = np.maximum(np.nan_to_num(moved), setting.floor)
        return {**new, "dual": dual}


@dataclass(frozen=True)
class AccelerateThenRefine(FirstOrder):
    """Algorithms 3 and 4 one after the other, which is Algorithm 5; with convex stages Algorithm 7.

    The accelerate stage runs ``levels`` levels of ``per_level`` arrivals. While one dual decides, a learner takes
    subgradient steps in a ball around the last level's average, and both step and ball are halved from level to
    level. The refine stage starts at the learner's average and takes steps of order 1/T.

    Parameters
    ----------
    levels : int, optional
        L; ceil(log T) if not given.
    per_level : int
        J. The paper's bound asks for 1e5 and more, so that the first stage would never end; 10 is what works.
    step, refine_step : float
        Factors of the two stages' step sizes, 1/log T and 1/T.
    stage : "both", "accelerate" or "refine"
        "accelerate" is Algorithm 3 alone, which goes on halving; "refine" is Algorithm 4 alone, from ``warm_start``.
    scale : "free" or "paper"
        As in :class:`GradientDescent`.

    Notes
    -----
    Departures: the learner steps with the decision at its own dual, as the proof needs (printed: with the decision at
    w_t); the ball and the orthant are projected on together, with the radius V_l; eta_1 is
    ``mean|r| / (3 |D| rms|C - D|)``, the proof's eps_0 / (3 (C + D)^2) in sizes that are seen, and 1/3 with
    scale="paper"; a level's average is that of the points after its steps (printed: before them, so that its last step
    is lost); the refine stage goes on with the budget that is left (printed: it gets the whole budget again, which all
    but switches the guard off). refine_step is 50, for 1 leaves the first stage's error as it is. What each is worth:
    ``benchmarks/corrections.py``.

    Examples
    --------
    >>> AccelerateThenRefine(stage="refine").per_level
    10
    """

    levels: int | None = None
    per_level: int = 10
    step: float = 1.0
    refine_step: float = 50.0
    stage: str = "both"
    scale: str = "free"
    algorithm: ClassVar[str] = "Algorithms 3, 4, 5 and 7"

    def __post_init__(self) -> None:
        for name in ("per_level", "step", "refine_step"):
            _positive(self, name)
        if self.levels is not None:
            _positive(self, "levels")
        _one_of(self, "scale", _SCALES)
        _one_of(self, "stage", ("both", "accelerate", "refine"))

    def settings(self, setting: Setting) -> FloatArray:
        stages = {"both": kernels.BOTH, "accelerate": kernels.ACCELERATE_ONLY, "refine": kernels.REFINE_ONLY}
        return _settings(
            KIND=kernels.TWO_STAGE,
            STEP=self.step,
            SCALE_FREE=self.scale == "free",
            LEVELS=np.ceil(np.log(max(setting.horizon, 2))) if self.levels is None else self.levels,
            PER_LEVEL=self.per_level,
            REFINE_STEP=self.refine_step,
            STAGE=stages[self.stage],
        )


@dataclass(frozen=True)
class SimpleGD(GradientDescent):
    """The baseline of Li, Sun and Ye (2023): Algorithm 1 with one dual for every grid point instead of test functions.

    Parameters
    ----------
    step : float
        Multiplies the step size.
    scale : "free" or "paper"
        Steps in the units of the data, learned on the way, or ``1 / sqrt(T)`` as printed.

    Examples
    --------
    >>> SimpleGD().view
    'pointwise'
    """

    view: ClassVar[str] = POINTWISE  # type: ignore[misc]
    algorithm: ClassVar[str] = "Simple-GD, the paper's baseline"


@dataclass(frozen=True, eq=False)
class FixedPrice(FirstOrder):
    """Decide every arrival by one dual that never changes.

    Parameters
    ----------
    dual : array, optional
        One number a resource; left out, it comes from ``warm_start=`` (such as an offline price).

    Examples
    --------
    >>> FixedPrice([0.1, 0.2]).dual
    [0.1, 0.2]
    """

    dual: ArrayLike | None = None
    algorithm: ClassVar[str] = "a fixed price"

    def settings(self, setting: Setting) -> FloatArray:
        return _settings(KIND=kernels.FIXED)

    def start(self, setting: Setting) -> State:
        state = super().start(setting)
        if self.dual is not None:
            try:
                given = np.asarray(self.dual, dtype=float)
            except (TypeError, ValueError):
                raise OptionError(
                    f"FixedPrice: the dual must be {setting.size} numbers, one a resource (got "
                    f"{type(self.dual).__name__}); a price on the index goes into warm_start=, with FixedPrice()."
                ) from None
            if given.shape != (setting.size,) or not np.all(np.isfinite(given)):
                raise OptionError(
                    f"FixedPrice: the dual must be {setting.size} finite numbers, one a resource (got shape "
                    f"{given.shape})."
                )
            state["dual"] = np.maximum(given, setting.floor)
        return state


@dataclass(frozen=True)
class Greedy(FirstOrder):
    """Take whatever earns something, as long as a guard lets it through: the price is zero.

    Examples
    --------
    >>> Greedy().algorithm
    'greedy'
    """

    algorithm: ClassVar[str] = "greedy"

    def settings(self, setting: Setting) -> FloatArray:
        return _settings(KIND=kernels.FIXED)


def policy_record(policy: Policy) -> dict[str, Any]:
    """A policy as plain text and numbers; the arguments are None where they are more than that."""
    arguments: dict[str, Any] | None = None
    if is_dataclass(policy):
        arguments = {each.name: getattr(policy, each.name) for each in fields(policy)}
        arguments = {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in arguments.items()
        }
        if any(isinstance(value, Potential) for value in arguments.values()):
            arguments = None
    return {"name": type(policy).__name__, "arguments": arguments, "text": repr(policy)}
