"""What stages differ in: data of arrivals, found at the leaves of their terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.param import ParamData
from pyomo.core.base.range import AnyRange, NumericRange

from osilp_pyomo.errors import ModelError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.model.arrays.trees import members_of
from osilp_pyomo.model.linear import number_of
from osilp_pyomo.model.profile import Profile
from osilp_pyomo.model.stages.locator import StageLocator, StageRef
from osilp_pyomo.online.stages.template import ANYTHING, Allowed, CurveForm, Field, Interval, Label


class StageData:
    """Fields of the data as they are met, and the values that the model's own stages have."""

    def __init__(self, model: Any, places: StageLocator) -> None:
        self.model = model
        self.places = places
        self.count = len(places.stages)
        self.fields: list[Field] = []
        self.own: list[Any] = []  # own values of each field
        self._numbers: dict[tuple[str, tuple[Any, ...]], int] = {}
        self._orders: dict[int, list[tuple[Any, ...]]] = {}
        self._members: dict[int, list[tuple[Any, StageRef | None]]] = {}

    def stand_ins(self, slots: Sequence[int | CurveStack]) -> list[Any]:
        """For each slot the curves that stand there, for the knots they have in common; None for numbers."""
        found: list[Any] = []
        for slot in slots:
            own = self.own[slot] if isinstance(slot, int) else slot
            if isinstance(own, list):
                known = tuple(curve for curve in own if curve is not None)
                form = self.fields[slot].curve if isinstance(slot, int) else None
                assert form is not None
                own = CurveStack.of_tables(known) if known else CurveStack.without_values(form.dimension)
            found.append(own if isinstance(own, CurveStack) else None)
        return found

    def slot(
        self, stages: Sequence[int], found: Sequence[Any], absent: list[int], what: str
    ) -> tuple[str | None, int | CurveStack | None]:
        """What fills a slot: a literal that all stages share, a field of the data, or a curve that all share.

        ``found`` are the leaves of the stages, in the order of ``stages``.
        """
        keys = self._keys(stages, found, what)
        if len(keys) == 1:
            (kind, content) = keys.pop()
            if kind == "number":
                return literal_of(content), None
            if kind == "field":
                return None, self.field(content, found[0])
            return None, CurveStack.of_tables((found[0].curve_table(),))
        if any(kind == "curve" for kind, _ in keys):
            raise ModelError(f"{what}: the stages use different Profiles; index one Profile by the stages.")
        values = np.full(self.count, np.nan)
        for stage, leaf in zip(stages, found, strict=True):
            number = leaf if leaf.__class__ in native_numeric_types else leaf(exception=False)
            values[stage] = np.nan if number is None else number
        values[absent] = values[stages[0]]
        return None, self.hidden(values, what)

    def _keys(self, stages: Sequence[int], found: Sequence[Any], what: str) -> set[tuple[str, Any]]:
        """What the leaves of a slot are, each kind once."""
        kinds = set(map(type, found))
        if kinds <= native_numeric_types:
            return {("number", float(number)) for number in set(found)}
        if kinds == {ParamData}:
            whole = self.places.of_component(found)
            if whole is not None and whole[1] == stages:
                return {("field", (whole[0], ()))}
            places = self.places.of_all(found)
            if None not in places and [place.stage for place in places] == list(stages):  # type: ignore[union-attr]
                return {("field", place[1:]) for place in places}  # type: ignore[index]
        return {self.leaf_key(leaf, stage, what) for stage, leaf in zip(stages, found, strict=True)}

    def leaf_key(self, leaf: Any, stage: int, what: str) -> tuple[str, Any]:
        if leaf.__class__ in native_numeric_types:
            return "number", float(leaf)
        place = self.places.of(leaf)
        curve = hasattr(leaf, "curve_table")
        if place is None or leaf.is_variable_type():
            if curve:
                return "curve", id(leaf)
            return "number", number_of(leaf, what)
        if place.stage != stage:
            raise ModelError(
                f"{what}: a term of stage {self.places.stages[stage]!r} uses '{leaf.name}', the data of another stage; "
                "each arrival may use its own data only."
            )
        return "field", (place.name, place.key)

    def field(self, key: tuple[str, tuple[Any, ...]], leaf: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.fields)
            owner = leaf.parent_component()
            order = self._order_of(owner)
            at, among = order.index(key[1]), len(order)
            if isinstance(owner, Profile):
                form = CurveForm(owner._knots, owner._kind, owner._outside, owner.dimension)
                self.fields.append(Field(Label(*key), curve=form, place=at, among=among))
                self.own.append(self._own_curves(key, owner))
            else:
                self.fields.append(Field(Label(*key), _default_of(owner), _allowed(owner), place=at, among=among))
                self.own.append(self._own_numbers(key, owner))
        return self._numbers[key]

    def _order_of(self, owner: Any) -> list[tuple[Any, ...]]:
        """What is left of a component's indices beside the stage, in the order of its Set."""
        if self.places.whole(owner)[0]:
            return [()]
        if id(owner) not in self._orders:
            places = (place for _, place in self._located(owner) if place is not None)
            self._orders[id(owner)] = list(dict.fromkeys(place.key for place in places))
        return self._orders[id(owner)]

    def _own_data(self, key: tuple[str, tuple[Any, ...]], owner: Any) -> Iterable[tuple[int, Any]]:
        """The members of a component, or of its fellows in other blocks, by stage."""
        owners = [owner]
        if key[0] != owner.name:
            fellows = self.model.model().component_objects(owner.ctype, descend_into=True)
            owners = [each for each in fellows if each.local_name == owner.local_name]
        for each in owners:
            yield from ((p.stage, data) for data, p in self._located(each) if p is not None and p[1:] == key)

    def _located(self, owner: Any) -> list[tuple[Any, StageRef | None]]:
        """A component's members, or itself where it has no index, each with its place."""
        if id(owner) not in self._members:
            members = members_of(owner) if owner.is_indexed() else [owner]
            self._members[id(owner)] = list(zip(members, self.places.of_all(members), strict=True))
        return self._members[id(owner)]

    def _own_numbers(self, key: tuple[str, tuple[Any, ...]], owner: Any) -> Any:
        values = np.full(self.count, np.nan)
        members, stages = self.places.whole(owner) if key == (owner.name, ()) else ([], [])
        if members and set(map(type, members)) == {ParamData}:
            # None, where a Param has no value, becomes nan.
            values[stages] = np.array([data(exception=False) for data in members], dtype=float)
            return values
        for stage, data in self._own_data(key, owner):
            number = data if data.__class__ in native_numeric_types else data(exception=False)
            values[stage] = np.nan if number is None else number
        return values

    def _own_curves(self, key: tuple[str, tuple[Any, ...]], owner: Any) -> list[Any]:
        curves: list[Any] = [None] * self.count
        for stage, data in self._own_data(key, owner):
            curves[stage] = data._curve
        return curves

    def hidden(self, values: Any, what: str) -> int:
        self.fields.append(Field(Label(f"constant {len(self.fields)}"), hidden=True, row=what))
        self.own.append(values)
        return len(self.fields) - 1


def literal_of(number: float) -> str:
    """A number as it stands in the source of a kernel."""
    return repr(int(number) if float(number).is_integer() and abs(number) < 1e15 else float(number))


def _default_of(owner: Any) -> float | None:
    default = owner.default()
    return float(default) if default.__class__ in native_numeric_types else None


def _allowed(owner: Any) -> Allowed:
    """The numbers that a Param's ``within=`` allows."""
    domain = owner.domain
    found = []
    for each in domain.ranges():
        if isinstance(each, AnyRange):
            return ANYTHING
        if not isinstance(each, NumericRange):
            continue
        ends = [each.start, each.end]
        low, high = (-np.inf if ends[0] is None else float(ends[0])), (np.inf if ends[1] is None else float(ends[1]))
        step = 0.0 if low == high else abs(float(each.step))
        found.append(Interval(min(low, high), max(low, high), bool(each.closed[0]), bool(each.closed[1]), step))
    if any(each == Interval() for each in found):
        return ANYTHING
    return Allowed(tuple(found))
