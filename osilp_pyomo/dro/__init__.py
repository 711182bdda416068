"""Distributionally robust optimization: the worst expectation over all distributions that are not ruled out.

Holds: ambiguity sets (moments, Wasserstein balls, reweighted samples, mixtures) and the worst case over them.
May know: model, and what it knows.
Gives: expressions for objectives and constraints, written as semi-infinite rows on one Block; the worst distribution.
"""

from osilp_pyomo.dro.ambiguity import Ambiguity, Moments
from osilp_pyomo.dro.losses import SumOfMaxima
from osilp_pyomo.dro.mixture import Mixture
from osilp_pyomo.dro.reweighting import Reweighting
from osilp_pyomo.dro.wasserstein import Wasserstein
from osilp_pyomo.dro.worst_case import (
    worst_case_cvar,
    worst_case_distribution,
    worst_case_expectation,
    worst_case_probability,
)

#: The ambiguity sets that there are, as the documentation lists them.
AMBIGUITY_SETS: tuple[type[Ambiguity], ...] = (Moments, Wasserstein, Reweighting, Mixture)

__all__ = [
    "Ambiguity",
    "Mixture",
    "Moments",
    "Reweighting",
    "SumOfMaxima",
    "Wasserstein",
    "worst_case_cvar",
    "worst_case_distribution",
    "worst_case_expectation",
    "worst_case_probability",
]
