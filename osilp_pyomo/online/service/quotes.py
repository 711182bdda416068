"""Quotes: what an arrival would have to bring, at the price of now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import OptionError
from osilp_pyomo.online.live import Live
from osilp_pyomo.online.loop import StageLoop
from osilp_pyomo.online.policies import view_of
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.stages.batch import Batch

# How many times all that it costs an arrival brings to find out whether it would be served at any price.
_PLENTY = 1e6


def with_unused_data(program: ProgramData, row: Any, theta: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an arrival; what only its reward depends on may be missing, and is that of the model's first."""
    given = set(theta)
    if isinstance(row, Mapping | pd.Series):
        given |= {key[0] if isinstance(key, tuple) else key for key in row.keys()}  # noqa: SIM118 (a Series)
    free = {field.label.name for number, field in enumerate(program.template.fields) if number not in program.used}
    free -= {field.label.name for number, field in enumerate(program.template.fields) if number in program.used}
    return {**{name: program.first_data(name) for name in free - given if name in program.intake.by_name}, **theta}


def quote(program: ProgramData, loop: StageLoop, live: Live, batch: Batch, dual: FloatArray) -> FloatArray:
    """What a unit of each decision (n,) of an arrival costs at a dual; infinite where nothing of it would fit."""
    if not program.template.linear:
        raise OptionError(
            "quote: a unit of a decision has one price where stages are linear, and these are not; decide(...) says "
            "what would be done."
        )
    cost = batch.use[view_of(loop.policy)][0] @ dual
    size = _PLENTY * (float(np.abs(cost).max()) + float(np.abs(batch.rewards).max()) + 1.0)
    for number in range(len(cost)):
        rewards = np.zeros_like(batch.rewards)
        rewards[0, number] = size
        found = loop.run(live.copy(), batch.with_rewards(rewards), remember=False)
        if found.decided[0, number] <= 0 < batch.upper[0, number]:
            cost[number] = np.inf
    return cost
