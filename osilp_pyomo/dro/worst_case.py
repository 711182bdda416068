"""The worst expectation, CVaR or probability over an ambiguity set, and the distribution that attains it.

A loss depends on decisions and on a random number or vector ``xi`` of which only an ambiguity set is known.
:func:`worst_case_expectation` adds the dual of the worst case to a model, variables and semi-infinite rows on one
Block, and gives back an expression for objectives and constraints. After :func:`osilp_pyomo.solve` the price of those
rows is the worst distribution: :func:`worst_case_distribution`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from osilp_pyomo.dro.ambiguity import Ambiguity
from osilp_pyomo.dro.wasserstein import BySample, Wasserstein
from osilp_pyomo.errors import OptionError, PriceError
from osilp_pyomo.model.worst_case import on_new_block
from osilp_pyomo.offline.results import Result

# Mass below this share of the whole is the rounding of a simplex.
_NO_MASS = 1e-12


def worst_case_expectation(m: Any, loss: Any, ambiguity: Ambiguity, *, name: str | None = None) -> Any:
    """The largest expectation of a loss over all distributions of an ambiguity set.

    Parameters
    ----------
    m : model or Block
        Gets one new Block with everything that is added.
    loss : callable, expression, or list of those
        ``loss(m, xi)`` gives an expression linear in the decisions, or a list of them whose maximum is meant; of a
        :class:`Mixture` it may be ``loss(m, xi, scenario)``, of :class:`Wasserstein` ``loss(m, xi, sample)`` with the
        number of the sample and vectors of ``ambiguity.moved``.
    ambiguity : Moments, Wasserstein, Reweighting or Mixture
    name : str, optional
        Name of the Block.

    Returns
    -------
    Expression
        For an objective that is minimized, or the lower side of a constraint: it stands for the worst case only where
        the solver is pressed to make it small.

    Examples
    --------
    The most that ``max(xi - 1, 0)`` can be expected to be if xi >= 0 has mean 1 and variance 1 (Scarf, 1958):

    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> known = osilp.dro.Moments.mean_variance((0, None), mean=1.0, variance=1.0)
    >>> m.worst = pyo.Objective(expr=worst_case_expectation(m, lambda m, xi: [xi - 1, 0], known))
    >>> round(osilp.solve(m).objective, 6)
    0.5
    """
    ambiguity = _told_apart(loss, ambiguity)
    pieces, number = _pieces(loss, ambiguity, m)
    return _on_block(m, name, ambiguity, lambda block: ambiguity.write(block, pieces, number))


def worst_case_cvar(m: Any, loss: Any, ambiguity: Ambiguity, level: float, *, name: str | None = None) -> Any:
    """The largest conditional value at risk of a loss: its mean over the worst ``1 - level`` of cases.

    Rockafellar and Uryasev's formula, the smallest ``t + E[max(loss - t, 0)] / (1 - level)``, with the expectation
    in the worst case (the smallest and the largest may be exchanged: Shapiro and Kleywegt, 2002).

    Parameters
    ----------
    m : ConcreteModel
        The model to add the dual of the worst case to.
    loss : callable
        ``loss(m, xi)``, as in :func:`worst_case_expectation`.
    ambiguity : Moments, Wasserstein, Reweighting or Mixture
        What is known of the distribution.
    level : float
        Between 0 and 1: 0.95 looks at the worst twentieth.
    name : str, optional
        Of the Block that holds what is added; a free one if not given.

    Examples
    --------
    With mean 0 and variance 1 it is ``sqrt(level / (1 - level))``:

    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> known = osilp.dro.Moments.mean_variance((None, None), mean=0.0, variance=1.0)
    >>> m.worst = pyo.Objective(expr=worst_case_cvar(m, lambda m, xi: xi, known, level=0.8))
    >>> round(osilp.solve(m).objective, 5)
    2.0
    """
    if not 0 <= level < 1:
        raise OptionError(f"worst_case_cvar: level must be at least 0 and below 1 (got {level!r}).")
    ambiguity = _told_apart(loss, ambiguity)
    pieces, number = _pieces(loss, ambiguity, m)

    def write(block: Any) -> Any:
        block.threshold = pyo.Var()

        def beyond(parent: Any, xi: Any, *scenario: Any) -> list[Any]:
            threshold = parent.component(block.local_name).threshold
            return [*(piece - threshold for piece in pieces(parent, xi, *scenario)), 0.0]

        return block.threshold + ambiguity.write(block, beyond, number + 1) / (1 - level)

    return _on_block(m, name, ambiguity, write)


def worst_case_probability(m: Any, event: Any, ambiguity: Ambiguity, *, name: str | None = None) -> Any:
    """The largest probability of an event that no decision changes.

    Parameters
    ----------
    m : ConcreteModel
        The model to add the dual of the worst case to.
    event : interval (low, high), continuous set, list of those, uncertainty set of PyROS, or callable
        Where it happens; a callable ``event(xi)`` is true there. The event is taken as closed.
    ambiguity : Moments, Wasserstein, Reweighting or Mixture
        What is known of the distribution.
    name : str, optional
        Of the Block that holds what is added; a free one if not given.

    Examples
    --------
    Cantelli: at least one standard deviation above the mean has a probability of at most 1/2.

    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> known = osilp.dro.Moments.mean_variance((None, None), mean=0.0, variance=1.0)
    >>> m.worst = pyo.Objective(expr=worst_case_probability(m, (1.0, None), known))
    >>> round(osilp.solve(m).objective, 6)
    0.5
    """
    _check(ambiguity)
    return _on_block(m, name, ambiguity, lambda block: ambiguity.write_event(block, event))


def worst_case_distribution(result: Result, of: Any) -> pd.DataFrame:
    """The distribution that attains a worst case, from the price of its rows.

    Parameters
    ----------
    result : Result
        Of the model that was solved.
    of : Expression or Block
        What :func:`worst_case_expectation` and its like gave back, or the Block it is on.

    Returns
    -------
    DataFrame
        One row per atom: its coordinates, the sample or scenario and the piece of the loss it belongs to, and its
        ``probability``. On an unbounded support the worst case may be approached only, by ever smaller
        probabilities ever farther out; such atoms are shown where the solver left them, or left out, and then
        ``attrs["escaping"]`` is what they move the mean by.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> worst = worst_case_expectation(m, lambda m, xi: [xi - 1, 0], osilp.dro.Moments((0, 4), [(lambda xi: xi, 1.0)]))
    >>> m.cost = pyo.Objective(expr=worst)
    >>> worst_case_distribution(osilp.solve(m), worst).round(6)
        xi  piece  probability
    0  4.0      0         0.25
    1  0.0      1         0.75
    """
    block = of if getattr(of, "ctype", None) is pyo.Block else None
    if block is None and hasattr(of, "parent_block"):
        block = of.parent_block()
    ambiguity = getattr(block, "ambiguity", None)
    if block is None or ambiguity is None:
        raise OptionError(
            "worst_case_distribution: give it the expression alone that worst_case_expectation (or its like) gave "
            f"back, or the Block that it is on (got {type(of).__name__})."
        )
    whole = ambiguity.atoms(result, block)
    escaping = whole.attrs.get("escaping")
    total = float(whole["probability"].sum())
    if (not len(whole) or abs(total) < _NO_MASS) and escaping is not None and np.any(escaping):
        raise PriceError(
            f"The worst case of '{block.name}' lies at infinity: probability that tends to zero is moved ever farther, "
            f"along {', '.join(f'{entry:.6g}' for entry in escaping)}, and no distribution is the worst."
        )
    if not len(whole) or abs(total) < _NO_MASS:
        raise PriceError(
            f"The worst case of '{block.name}' has no price: nothing in the solved model depends on it, so that no "
            "distribution is the worst."
        )
    whole["probability"] /= total
    # Far out tiny probabilities may carry a moment.
    kept = whole[whole["probability"] > 0].reset_index(drop=True)
    kept.attrs = {} if escaping is None or not np.any(escaping) else {"escaping": escaping / total}
    return kept


def _check(ambiguity: Any) -> None:
    if not isinstance(ambiguity, Ambiguity):
        raise OptionError(
            "ambiguity: expected Moments(...), Wasserstein(...), Reweighting(...) or Mixture(...) (got "
            f"{type(ambiguity).__name__})."
        )


def _told_apart(loss: Any, ambiguity: Any) -> Any:
    """The ambiguity set by sample, for a loss that knows from which sample probability was moved."""
    given = loss if isinstance(loss, list | tuple) else [loss]
    if isinstance(ambiguity, Wasserstein) and any(_is_function(part) and _takes_scenario(part) for part in given):
        return BySample(ambiguity)
    return ambiguity


def _pieces(loss: Any, ambiguity: Ambiguity, m: Any) -> tuple[Callable[..., list[Any]], int]:
    """A loss as a function that gives the list of its pieces, and their number."""
    _check(ambiguity)

    given = loss if isinstance(loss, list | tuple) else [loss]
    functions = [(part, _takes_scenario(part)) if _is_function(part) else (None, part) for part in given]

    def pieces(parent: Any, xi: Any, *scenario: Any) -> list[Any]:
        found: list[Any] = []
        for function, other in functions:
            value = other if function is None else function(parent, xi, *(scenario if other else ()))
            found += value if isinstance(value, list | tuple) else [value]
        return found

    number = len(pieces(m, ambiguity.example(), *ambiguity.example_scenario))
    if not number:
        raise OptionError("loss: it gives no piece; return an expression, or a list of at least one.")
    return pieces, number


def _is_function(part: Any) -> bool:
    return callable(part) and not hasattr(part, "is_expression_type")


def _takes_scenario(function: Callable[..., Any]) -> bool:
    """Whether a loss has a third argument without a default."""
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [each for each in signature(function).parameters.values()
              if each.kind in places and each.default is Parameter.empty]  # fmt: skip
    return len(needed) > 2


def _on_block(m: Any, wanted: str | None, ambiguity: Ambiguity, write: Callable[[Any], Any]) -> Any:
    """Write on a new Block that knows its ambiguity set, and give back the expression of its value."""

    def written(block: Any) -> Any:
        block.ambiguity = ambiguity
        return write(block)

    return on_new_block(m, wanted, "expectation", written)
