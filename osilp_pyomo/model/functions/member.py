"""One decision that is a function, as a rule of a constraint meets it: called with the index, or with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from osilp_pyomo.errors import DataError, DeclarationError
from osilp_pyomo.index.curves.spaces import FunctionSpace
from osilp_pyomo.offline.functions.values import FunctionValue


class DecisionFunction:
    """One function of a :class:`FunctionVar`: called with the index of a constraint, or with numbers.

    Attributes
    ----------
    name : str
        As Pyomo would call a variable there, such as ``order[3]``.
    space : FunctionSpace
        The functions of which it is a combination.
    coefficients : dict
        The variables, by the function that each multiplies: "1", "xi[0]", ... of a rule, 0, 1, ... of a curve.
    """

    __slots__ = ("_index", "_owner")

    def __init__(self, owner: Any, index: Any) -> None:
        self._owner, self._index = owner, index

    @property
    def name(self) -> str:
        return self._owner.name_of(self._index)

    @property
    def owner(self) -> Any:
        """The FunctionVar that it is a member of."""
        return self._owner

    def index(self) -> Any:
        """The member of the FunctionVar's sets; None if it has none."""
        return self._index

    @property
    def space(self) -> FunctionSpace:
        return self._owner.spaces[self._index]

    @property
    def coefficients(self) -> dict[Any, Any]:
        owner = self._owner
        return {label: owner.coefficients[owner.key(self._index, label)] for label in self.space.labels}

    def __call__(self, *point: Any) -> Any:
        return self._owner.expression(self._index, point)

    def derivative(self, *point: Any, order: Any = 1) -> Any:
        """The derivative at a point of a curve's index; with several coordinates ``order`` is one number for each."""
        return self._owner.expression(self._index, point, order)

    def fix(self, value: FunctionValue | Mapping[Any, float]) -> None:
        """Fix it to the function of an earlier result, or to coefficients by label."""
        given = value.coefficients if isinstance(value, FunctionValue) else value
        own = self.coefficients
        if set(given.keys()) != set(own):
            raise DataError(
                f"FunctionVar '{self.name}': its coefficients are {listed(own)} (got {listed(given.keys())}); fix it "
                "to a function of the same basis."
            )
        for label, variable in own.items():
            variable.fix(float(given[label]))

    def with_values(self, values: Mapping[str, float]) -> FunctionValue:
        """It as a function of numbers, at the values of variables by name; of others the value that they have."""
        numbers = []
        for variable in self.coefficients.values():
            number = values.get(variable.name)
            if number is None:
                number = variable.value if variable.fixed or variable.value is not None else 0.0
            numbers.append(float(number))
        return FunctionValue(self.name, self.space, np.array(numbers), self._owner.sizes)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self._owner.line_text(self._index)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DecisionFunction):
            return self._owner is other._owner and self._index == other._index
        raise DeclarationError(
            f"FunctionVar '{self.name}': it is a function and cannot be compared with {other!r}; compare its value at "
            f"a point, as in {self.name}(u) == ..., or fix its coefficients."
        )

    def __hash__(self) -> int:
        return hash((id(self._owner), self._index))

    def _refuse_arithmetic(self, *_: Any) -> Any:
        raise DeclarationError(
            f"FunctionVar '{self.name}': it is a function, not a number; say where, as in {self.name}"
            f"({self._owner.argument_text()})."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_arithmetic
    __neg__ = __pow__ = __rpow__ = __le__ = __lt__ = __ge__ = __gt__ = __abs__ = __float__ = _refuse_arithmetic


def listed(members: Any) -> str:
    """Some members in short."""
    listed = list(members)
    return ", ".join(map(repr, listed[:5])) + (f", ... ({len(listed)} in all)" if len(listed) > 5 else "")
