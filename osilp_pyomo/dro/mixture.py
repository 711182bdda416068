"""Mixtures: what is known of a random vector depends on a scenario, whose probability may be known in part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from osilp_pyomo.dro.ambiguity import Ambiguity, Loss, condition_of, signed_multipliers
from osilp_pyomo.dro.reweighting import Reweighting
from osilp_pyomo.errors import OptionError
from osilp_pyomo.offline.results import Result

# Columns of atoms that are no coordinates.
_LABELS = ("sample", "scenario", "piece", "probability")


class Mixture(Ambiguity):
    """Distributions that are mixed of one for each scenario: scenario-wise supports, means and samples.

    Parameters
    ----------
    parts : {scenario: ambiguity}, or list of them
        What is known of the random vector in each scenario: :class:`Moments`, :class:`Wasserstein` or
        :class:`Reweighting`, all for vectors of the same size.
    weights : array, optional
        Probabilities of the scenarios; equal if not given.
    total_variation, lower, upper, kullback_leibler, chi_square : optional
        How far the probabilities of the scenarios may be from ``weights``, as for :class:`Reweighting`; they are the
        weights if nothing is given.
    conditions : list, optional
        Expectations over all scenarios together, as for :class:`Moments`.

    Notes
    -----
    The worst expectation is the smallest ``sup_p sum_s p_s v_s + q'b``, with ``v_s`` the worst expectation of
    ``loss(xi) - q'f(xi)`` over the part of scenario s (event-wise ambiguity sets: Chen, Sim and Xiong, 2020). A loss
    may take the scenario as its third argument, for decisions that are taken when it is known.

    Examples
    --------
    Demand has the mean 5 on dry days and 15 on wet ones, and four days of ten are wet, give or take one:

    >>> import pyomo.environ as pyo, osilp_pyomo as osilp
    >>> from osilp_pyomo import dro
    >>> m = pyo.ConcreteModel()
    >>> m.stock = pyo.Var(bounds=(0, 30))
    >>> days = {
    ...     "dry": dro.Moments((0, 10), [(lambda d: d, 5.0)]),
    ...     "wet": dro.Moments((10, 20), [(lambda d: d, 15.0)]),
    ... }
    >>> known = dro.Mixture(days, [0.6, 0.4], total_variation=0.1)
    >>> known
    Mixture of 2 scenarios, their probabilities known in part
    >>> lost = dro.worst_case_expectation(m, lambda m, d: [-3 * d, -3 * m.stock], known)
    >>> m.cost = pyo.Objective(expr=m.stock + lost)
    >>> result = osilp.solve(m)
    >>> round(result.objective, 6)
    -9.5
    >>> dro.worst_case_distribution(result, lost).groupby("scenario")["probability"].sum().round(4).to_dict()
    {'dry': 0.7, 'wet': 0.3}
    """

    def __init__(
        self,
        parts: Mapping[Any, Ambiguity] | Iterable[Ambiguity],
        weights: ArrayLike | None = None,
        *,
        total_variation: float | None = None,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = 1.0,
        kullback_leibler: float | None = None,
        chi_square: float | None = None,
        conditions: Iterable[Sequence[Any]] = (),
    ) -> None:
        self.parts = dict(parts) if isinstance(parts, Mapping) else dict(enumerate(parts))
        self._refuse_bad_parts()
        limits = (total_variation, kullback_leibler, chi_square)
        bounded = np.any(np.asarray(lower) != 0) or np.any(np.asarray(upper) != 1)
        free = bounded or any(limit is not None for limit in limits)
        self.probabilities = Reweighting(
            np.arange(float(len(self.parts))), weights, total_variation=total_variation if free else 0.0, lower=lower,
            upper=upper, kullback_leibler=kullback_leibler, chi_square=chi_square,
        )  # fmt: skip
        self._free = bool(free)
        self.conditions = tuple(condition_of(each) for each in conditions)

    def _refuse_bad_parts(self) -> None:
        if not self.parts:
            raise OptionError("Mixture: there is no scenario; give what is known in each, {scenario: ambiguity}.")
        sizes = {}
        for scenario, part in self.parts.items():
            if not isinstance(part, Ambiguity) or isinstance(part, Mixture):
                raise OptionError(
                    f"Mixture: what is known in scenario {scenario!r} must be Moments(...), Wasserstein(...) or "
                    f"Reweighting(...) (got {type(part).__name__})."
                )
            sizes[scenario] = np.size(np.array(part.example(), dtype=float))
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{size} in scenario {scenario!r}" for scenario, size in sizes.items())
            raise OptionError(f"Mixture: the random vector must have the same size in all scenarios (got {told}).")

    def __repr__(self) -> str:
        count = len(self.parts)
        known = "their probabilities known in part" if self._free else "their probabilities known"
        return f"Mixture of {count} scenario{'s' * (count > 1)}, {known}"

    def example(self) -> Any:
        return next(iter(self.parts.values())).example()

    @property
    def example_scenario(self) -> tuple[Any, ...]:
        return (next(iter(self.parts)),)

    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        """One dual for each scenario on a Block of its own, and that of their probabilities on another."""
        functions = list(self._multiply(block))

        def of_scenario(scenario: Any) -> Loss:
            def net(parent: Any, xi: Any) -> list[Any]:
                # The parts lie on blocks of the mixture's own block.
                paid = sum(function(xi) * parent.multiplier[k] for k, function in functions)
                return [piece - paid if functions else piece for piece in loss(parent.parent_block(), xi, scenario)]

            return net

        return self._mixed(block, lambda part, own, scenario: part.write(own, of_scenario(scenario), pieces))

    def write_event(self, block: Any, event: Any) -> Any:
        if self.conditions:
            raise OptionError(
                "worst_case_probability: a Mixture with conditions on all scenarios together has no events; state the "
                "conditions within the scenarios, or bound the expectation of a loss that is at least 1 on the event "
                "and at least 0 elsewhere."
            )
        return self._mixed(block, lambda part, own, _: part.write_event(own, event))

    def _multiply(self, block: Any) -> Iterator[tuple[int, Callable[[Any], Any]]]:
        """Multipliers of the conditions on all scenarios together, with the function of each."""
        block.multiplier = pyo.VarList()
        for condition in self.conditions:
            for _, sign in signed_multipliers(condition):
                multiplier = block.multiplier.add()
                multiplier.setlb(0.0 if sign > 0 else None)
                multiplier.setub(0.0 if sign < 0 else None)
                yield len(block.multiplier), condition.function

    def _mixed(self, block: Any, write: Callable[[Ambiguity, Any, Any], Any]) -> Any:
        """Write every part; the worst mixture of their values, and what the conditions on all of them are worth."""
        new_block: Any = pyo.Block
        block.part = new_block(range(len(self.parts)), concrete=True)
        for k, (scenario, part) in enumerate(self.parts.items()):
            block.part[k].ambiguity = part
            block.part[k].expectation = pyo.Expression(expr=write(part, block.part[k], scenario))
        block.mixing = new_block(concrete=True)
        value = self.probabilities.write(block.mixing, lambda parent, k: [parent.part[int(k)].expectation], 1)
        bounds = [bound for condition in self.conditions for bound, _ in signed_multipliers(condition)]
        return value + sum(bound * block.multiplier[k] for k, bound in enumerate(bounds, start=1))

    def atoms(self, result: Result, block: Any) -> pd.DataFrame:
        frames, escaping = [], 0.0
        for k, (scenario, part) in enumerate(self.parts.items()):
            frame = part.atoms(result, block.part[k])
            escaping = escaping + frame.attrs.get("escaping", 0.0)
            size = int(np.argmax(frame.columns.isin(_LABELS)))
            names = ["xi"] if size == 1 else [f"xi[{entry}]" for entry in range(size)]
            # Scenarios within a scenario keep their numbers under another name.
            own = ["case" if name == "scenario" else name for name in frame.columns[size:]]
            frame = frame.set_axis([*names, *own], axis=1)
            frame.insert(size, "scenario", scenario)
            frames.append(frame)
        whole = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
        whole.attrs = {"escaping": escaping} if np.any(escaping) else {}
        return whole
