"""ExperienceReplay: a first-order policy that learns from every arrival more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.kernels import linear as kernels
from osilp_pyomo.online.kernels.practice import DECAY, LEAST_WINDOW, SCARCE, SCARCER, STEP, STEPS, WINDOW
from osilp_pyomo.online.policies import CAUTION, FirstOrder, Seen, Setting, State
from osilp_pyomo.online.stages.batch import POINTWISE

# How the step falls with the number of steps, over which share of the arrivals so far (or still to come, if they are
# fewer) the price is a mean of the learner, and of how many at least. Chosen on 8 seeds of the README's model and of
# the paper's inputs; those of ``benchmarks/regret.py`` are others.
_DECAY, _WINDOW, _LEAST_WINDOW = 0.4, 0.1, 10.0
# Steps are shorter where arrivals use more than so many times their budget, and by which power of that. Chosen on 6
# seeds of the README's model with its limits cut down to a hundredth.
_SCARCE, _SCARCER = 4.0, 1.5
# A price that is known is worth so many arrivals: the learner leaves it by steps that are no longer than after those.
_WARM = 100


@dataclass(frozen=True)
class ExperienceReplay(FirstOrder):
    """Subgradient steps on the dual after each arrival: on the arrival, and on some drawn from those that came before.

    Not in the paper. Algorithm 1 on points of the index in place of test functions, with experience replay (Lin 1992):
    a learner takes steps ``step * mean|r| / (|D| rms|a - D|) / n**0.4`` on n arrivals, most of them remembered ones;
    the use is compared with what is left an arrival left; the price that decides is a running mean of the learner over
    the last tenth of the arrivals. Where ``rms|a - D|`` is q > 4 times ``|D|``, so that few can be served, steps are
    shorter by the factor ``(4 / q)**1.5``. There is no LP, and nothing grows with the number of arrivals.

    Parameters
    ----------
    replays : int
        Arrivals drawn from those remembered, after each that comes; twice as many where prices are practised at more
        than 500 points.
    step : float
        Factor of the step size; beyond 128 points that prices are practised at, steps grow with the root of their
        number.
    caution : float
        An arrival takes at most caution / sqrt(T - t) of what is left of a resource, if it can take a part: a price
        that is not known well could use a point up for good. Whole decisions are not cut down.
    memory : int
        Arrivals that are remembered at most; of more it remembers as many, drawn from all of them.

    Notes
    -----
    It needs linear stages whose decisions have bounds only, or are one of several options. What is drawn follows from
    the controller's seed. Prices are practised at every 16th point of the guard's grid, if columns and limits are
    straight between those (to a hundredth), else at every 8th, 4th, 2nd, or at all of them.

    The paper's bound on the regret of Algorithm 1 is not proved for it; what it earns is measured in
    ``benchmarks/regret.py``.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_program
    >>> program = demo_program()
    >>> osilp.ExperienceReplay()
    ExperienceReplay(replays=32, step=6.0, caution=2.0, memory=5000)
    >>> program.replay(osilp.ExperienceReplay()).violation
    0.0
    """

    view: ClassVar[str] = POINTWISE  # type: ignore[misc]
    replays: int = 32
    step: float = 6.0
    caution: float = CAUTION
    memory: int = 5000
    algorithm: ClassVar[str] = "dual descent with experience replay"

    def __post_init__(self) -> None:
        for name, least in (("replays", 0), ("memory", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"ExperienceReplay: {name} must be a whole number >= {least} (got {value!r}).")
        for name in ("step", "caution"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
                raise OptionError(f"ExperienceReplay: {name} must be a number > 0 (got {value!r}).")

    def settings(self, setting: Setting) -> FloatArray:
        # The price does not move while an arrival is decided.
        return np.zeros(kernels.SETTINGS)

    @property
    def parameters(self) -> FloatArray:
        """What the kernel that practises needs to know."""
        result = np.zeros(6)
        result[[STEP, DECAY, WINDOW, LEAST_WINDOW]] = self.step, _DECAY, _WINDOW, _LEAST_WINDOW
        result[[SCARCE, SCARCER]] = _SCARCE, _SCARCER
        return result

    def warm(self, state: State, setting: Setting, dual: FloatArray) -> State:
        numbers = state["numbers"].copy()
        numbers[STEPS] = _WARM * (self.replays + 1.0)
        return {**super().warm(state, setting, dual), "numbers": numbers}

    def learn(self, state: State, setting: Setting, seen: Seen) -> State:
        # What is learned is learned from the arrivals that the controller remembers.
        return {name: np.array(value) for name, value in state.items()}
