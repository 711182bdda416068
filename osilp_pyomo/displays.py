"""Pictures of a study: each class draws one, and keeps what it drew (:meth:`osilp_pyomo.Study.plot` calls them)."""

from osilp_pyomo.studies.displays import (
    BracketDisplay,
    BudgetDisplay,
    LossDisplay,
    OverrunDisplay,
    PriceDisplay,
    RegretDisplay,
    RewardDisplay,
    RowsDisplay,
    ViolationDisplay,
)

__all__ = [
    "BracketDisplay",
    "BudgetDisplay",
    "LossDisplay",
    "OverrunDisplay",
    "PriceDisplay",
    "RegretDisplay",
    "RewardDisplay",
    "RowsDisplay",
    "ViolationDisplay",
]
