"""Where the components of a robust model came from."""

from __future__ import annotations

from typing import Any

from osilp_pyomo.errors import ModelError


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

    def added(self) -> list[str]:
        """Names of variables that the given model does not have."""
        return [member.name for each in self._added for member in each.values()]
