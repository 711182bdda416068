"""Policies by name, as saved controllers, the command line and the documentation's tables know them."""

from __future__ import annotations

from osilp_pyomo.online.experience.policy import ExperienceReplay
from osilp_pyomo.online.policies import (
    AccelerateThenRefine,
    FixedPrice,
    GradientDescent,
    Greedy,
    MirrorDescent,
    Policy,
    SimpleGD,
)
from osilp_pyomo.online.resolve import Resolve

POLICIES: dict[str, type[Policy]] = {
    each.__name__: each
    for each in (
        GradientDescent,
        MirrorDescent,
        AccelerateThenRefine,
        SimpleGD,
        ExperienceReplay,
        Resolve,
        FixedPrice,
        Greedy,
    )
}
