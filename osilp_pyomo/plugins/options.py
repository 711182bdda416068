"""Options of :func:`osilp_pyomo.solve` as Pyomo declares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyomo.common.config import ConfigDict, ConfigValue
from pyomo.contrib.solver.common.config import SolverConfig

from osilp_pyomo._options import SOLVE, Option
from osilp_pyomo.errors import OptionError

#: What Pyomo calls an option of ``solve``.
RENAMED = {"load": "load_solutions"}
#: Options of ``solve`` under the names that Pyomo has for them, in their order.
NAMES = tuple(RENAMED.get(option.name, option.name) for option in SOLVE)


def declared(options: Iterable[Option]) -> ConfigDict:
    """Options as Pyomo declares them."""
    config = ConfigDict()
    for option in options:
        config.declare(option.name, ConfigValue(default=option.default, description=option.sentence))
    return config


def given_over(config: ConfigDict, given: dict[str, Any], what: str) -> dict[str, Any]:
    """The declared options with what was given in their place; unknown ones are refused."""
    refuse_unknown(given, config, what)
    return {**dict(config.items()), **given}


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse the first option that nobody declared."""
    known = list(known)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise OptionError(f"{what}: there is no option '{unknown[0]}'; the options are {', '.join(known)}.")


class OsilpConfig(SolverConfig):
    """What every solver of Pyomo is told, and the options of :func:`osilp_pyomo.solve`."""

    def __init__(
        self,
        description: str | None = None,
        doc: str | None = None,
        implicit: bool = False,
        implicit_domain: Any = None,
        visibility: int = 0,
    ) -> None:
        super().__init__(description, doc, implicit, implicit_domain, visibility)
        for name, option in zip(NAMES, SOLVE, strict=True):
            if name not in self:
                self.declare(name, ConfigValue(default=option.default, description=option.sentence))
