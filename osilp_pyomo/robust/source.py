"""Where the components of a robust model came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from osilp_pyomo.errors import ModelError
from osilp_pyomo.robust.uncertain import UncertainVector


class RobustSource:
    """``source(component)``: the component of the given model that one of the robust model came from."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._pairs: list[tuple[Any, Any]] = []
        self._added: list[Any] = []

    def came_from(self, component: Any, original: Any) -> None:
        """Remember what a component was made of."""
        self._pairs.append((component, original))

    def adds(self, component: Any) -> None:
        """Remember a component that the given model has nothing for."""
        self._added.append(component)

    def __call__(self, component: Any) -> Any:
        owner = component.parent_component()
        for known, original in self._pairs:
            if known is owner:
                return original[component.index()] if component is not owner and original.is_indexed() else original
        if any(each is owner for each in self._added):
            raise ModelError(
                f"'{component.name}' was added by robustify: it stands for the worst value of the objective."
            )
        found = self._model.find_component(component)
        if found is None:
            raise ModelError(f"'{component.name}' is no component of this robust model that came from another one.")
        return found

    def name_of(self, function: Any, index: Any) -> str:
        """The name in the given model of the variable that a function stands for."""
        original = next(each for known, each in self._pairs if known is function)
        return str(original.name if index is None else original[index].name)

    def added(self) -> list[str]:
        """Names of variables that the given model does not have."""
        return [member.name for each in self._added for member in each.values()]


class Nominal:
    """What decision rules decide at the nominal data, for the variables of the given model."""

    def __init__(self, vectors: Sequence[UncertainVector], reactions: Sequence[Any], source: RobustSource) -> None:
        self._vectors = list(vectors)
        self._functions = [
            (each.function, index, each.sets, source.name_of(each.function, index))
            for each in reactions
            for index in each.variables
        ]

    def values(self, values: Mapping[str, float]) -> dict[str, float]:
        """By the variable's name, from the values of all variables by name."""
        nominal = [vector.nominal() for vector in self._vectors]
        found = {}
        for function, index, sets, name in self._functions:
            member = function.function if index is None else function[index]
            at = np.concatenate([nominal[k] for k in sets])
            found[name] = float(member.with_values(values)(at))
        return found
