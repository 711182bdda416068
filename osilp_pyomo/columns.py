"""The variables of a problem as columns, in the order in which they were met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo

from osilp_pyomo.errors import ModelError
from osilp_pyomo.linear import LinearTerms, number_of


class Names(Sequence[str]):
    """Names of components, asked for one by one: thousands of them take longer than an LP."""

    def __init__(self, components: Sequence[Any]) -> None:
        self._components = components

    def __getitem__(self, k: Any) -> Any:
        return self._components[k].name

    def __len__(self) -> int:
        return len(self._components)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([component.name for component in self._components],)


class Columns:
    """The variables of the problem in the order in which they were met."""

    def __init__(self, model: Any) -> None:
        self.root = model.model()
        self.variables: list[Any] = []
        self.of: dict[int, int] = {}

    def register(self, terms: LinearTerms, what: str) -> None:
        new = {key: variable for key, variable in terms.variables.items() if key not in self.of}
        foreign = self.foreign(LinearTerms(new)) if new else None
        if foreign is not None:
            raise ModelError(
                f"{what}: it uses the variable '{foreign.name}' of another model (a rule that names the model it was "
                "written for, and not its first argument, does that in a clone); use the rule's own model."
            )
        for key, variable in new.items():
            self.of[key] = len(self.variables)
            self.variables.append(variable)

    def foreign(self, terms: LinearTerms) -> Any:
        """A variable of another model among the terms, or None."""
        owners = {id(variable.parent_component()): variable for variable in terms.variables.values()}
        return next((variable for variable in owners.values() if variable.model() is not self.root), None)

    def register_all(self, model: Any) -> None:
        for variable in model.component_data_objects(pyo.Var, active=True, descend_into=True):
            if not variable.fixed and id(variable) not in self.of:
                self.of[id(variable)] = len(self.variables)
                self.variables.append(variable)

    def values(self, terms: LinearTerms, what: str) -> dict[int, float]:
        """Coefficients by column, evaluated."""
        result = {}
        for variable, coefficient in terms.items():
            if id(variable) not in self.of:
                raise ModelError(
                    f"{what}: the variable '{variable.name}' does not belong to an active block of the model."
                )
            result[self.of[id(variable)]] = number_of(coefficient, what)
        return result
