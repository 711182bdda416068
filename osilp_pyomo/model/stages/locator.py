"""Which stage a variable, Param or Profile belongs to, and what is left of its index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import is_ as _is
from typing import Any, NamedTuple

import pyomo.environ as pyo
from pyomo.core.base.set import SetData
from pyomo.core.base.units_container import _PyomoUnit

from osilp_pyomo.errors import ModelError, OptionError
from osilp_pyomo.model.arrays.trees import members_of
from osilp_pyomo.model.sets import is_continuous

# Members of a component that are located one by one before all of them are.
_MANY = 8


class StageRef(NamedTuple):
    """Stage of a component, its name without that stage, and the rest of its index."""

    stage: int
    name: str
    key: tuple[Any, ...]


class StageLocator:
    """Finds the stage of components of a model.

    ``stages`` is a Set of the model, its name, or a function that maps an index to its stage (None for an index that
    has none). The stage stands in a component's own index, in the members of a sparse set, or in the index of a Block
    that holds the component.
    """

    def __init__(self, model: Any, stages: Any) -> None:
        self._model = model
        self._function: Callable[[Any], Any] | None = None
        self._set: Any = None
        self._members: dict[Any, int] = {}
        if isinstance(stages, str):
            named = model.component(stages) if hasattr(model, "component") else None
            if named is None:
                raise OptionError(f"compile_online: stages={stages!r}: the model has no Set of this name.")
            stages = named
        if isinstance(stages, SetData) or (
            hasattr(stages, "is_component_type") and stages.ctype in (pyo.Set, pyo.RangeSet)
        ):
            if is_continuous(stages) or not stages.isfinite():
                raise OptionError(
                    f"compile_online: stages='{stages.name}' must be a finite Set of arrivals (got one that is not)."
                )
            if stages.parent_block() is not None and stages.model() is not model.model():
                raise OptionError(
                    f"compile_online: stages='{stages.name}' is a Set of another model; give that of the model itself."
                )
            self._set = stages
            self._members = {member: number for number, member in enumerate(stages)}
        elif callable(stages) and not hasattr(stages, "is_component_type"):
            self._function = stages
        else:
            raise OptionError(
                "compile_online: stages must be a Set of the model, such as stages=m.T, or a function of an index "
                f"(got {type(stages).__name__})."
            )
        # For each indexed component: where in its index the stage stands, (position, width), or None.
        self._positions: dict[int, tuple[int, int] | None] = {}
        self._known: dict[int, StageRef | None] = {}
        # How often members of a component were asked for, and what is known of components as a whole.
        self._asked: dict[int, int] = {}
        self._whole: dict[int, tuple[list[Any], list[int]]] = {}
        self._looked_at: dict[int, tuple[Sequence[Any], bool]] = {}

    @property
    def stages(self) -> list[Any]:
        """The stages, in the order of the Set, or as met."""
        return list(self._members)

    def discover(self) -> None:
        """Let a function name the stages: those of all variables, in their order."""
        if self._function is not None:
            for variable in self._model.component_data_objects(pyo.Var, active=True, descend_into=True):
                self.of(variable)

    def of(self, data: Any) -> StageRef | None:
        """The place of a variable, Param, Profile or constraint; None where it has no stage."""
        key = id(data)
        if data.__class__ is _PyomoUnit:
            return None  # a factor of 1
        if key not in self._known:
            if not hasattr(data, "parent_component"):
                raise ModelError(
                    "compile_online: rows and objectives of arrivals cannot hold an integral or a mean (found the "
                    f"{data.name}); give its values as a Param, or over the index of a row as a Profile."
                )
            component = data.parent_component()
            asked = self._asked[id(component)] = self._asked.get(id(component), 0) + 1
            if asked == _MANY and self._leads(component):
                self._locate_members(component)
            if key not in self._known:
                self._known[key] = self._locate(data)
        return self._known[key]

    def _leads(self, component: Any) -> bool:
        """Whether the stage is the first of a component's indices, and a single one."""
        if not component.is_indexed() or self._function is not None or not isinstance(component.dim(), int):
            return False
        return self._position(component) == (0, 1)

    def stages_of_all(self, found: Sequence[Any]) -> list[int]:
        """The stages of variables that all have one."""
        whole = self.of_component(found)
        if whole is not None:
            return whole[1]
        return [place.stage for place in self.of_all(found) if place is not None]

    def of_component(self, found: Sequence[Any]) -> tuple[str, list[int]] | None:
        """Name and stages of what are all the members of one component that is indexed by stages alone, in order."""
        if not len(found):
            return None
        component = found[0].parent_component()
        known, stages = self.whole(component)
        if not known or len(known) != len(found):
            return None
        if id(found) not in self._looked_at:
            # The sequence is kept with the answer, so that its id stays its own.
            self._looked_at[id(found)] = found, all(map(_is, known, found))
        return (component.name, stages) if self._looked_at[id(found)][1] else None

    def whole(self, component: Any) -> tuple[list[Any], list[int]]:
        """Members and stages of a component that is indexed by stages alone; empty where it is another."""
        if id(component) not in self._whole:
            members: list[Any] = []
            stages: list[Any] = []
            if self._leads(component) and component.dim() == 1 and len(component._data) == len(component.index_set()):
                members = members_of(component)
                # Most components share the Set of the stages itself.
                alike = component.index_set() is self._set
                stages = list(range(len(members)) if alike else map(self._members.get, component.index_set()))
            self._whole[id(component)] = ([], []) if None in stages else (members, stages)
        return self._whole[id(component)]

    def of_all(self, found: Sequence[Any]) -> list[StageRef | None]:
        """The places of many."""
        known = self._known
        try:
            return [known[id(data)] for data in found]
        except KeyError:
            return [self.of(data) for data in found]

    def _locate_members(self, component: Any) -> None:
        """Locate all members of a component at once whose only index, or first one, is the stage."""
        numbers, name, known = self._members, component.name, self._known
        alone = component.dim() == 1
        for index, data in component._data.items():
            stage = numbers.get(index if alone else index[0])
            if stage is not None:
                known[id(data)] = StageRef(stage, name, () if alone else index[1:])

    def _locate(self, data: Any) -> StageRef | None:
        component = data.parent_component()
        found = self._stage_in(component, data.index()) if component.is_indexed() else None
        if found is not None:
            return StageRef(found[0], component.name, found[1])
        own = _as_tuple(data.index()) if component.is_indexed() else ()
        names = [component.local_name]
        for block in _blocks_above(data):
            owner = block.parent_component()
            if owner.is_indexed():
                found = self._stage_in(owner, block.index())
                if found is not None:
                    return StageRef(found[0], ".".join([owner.name, *names]), found[1] + own)
                own = _as_tuple(block.index()) + own
            names.insert(0, owner.local_name)
        return None

    def _stage_in(self, component: Any, index: Any) -> tuple[int, tuple[Any, ...]] | None:
        """Number of the stage in an index of a component, and the rest of that index."""
        members = _as_tuple(index)
        if self._function is not None:
            stage = self._called(index)
            if stage is None:
                return None
            number = self._members.setdefault(stage, len(self._members))
            removed = list(_as_tuple(stage))
            rest = []
            for member in members:
                if member in removed:
                    removed.remove(member)
                else:
                    rest.append(member)
            return number, tuple(rest)
        position = self._position(component)
        if position is None:
            return None
        first, width = position
        stage = members[first] if width == 1 else members[first : first + width]
        if stage not in self._members:
            return None
        return self._members[stage], members[:first] + members[first + width :]

    def _called(self, index: Any) -> Any:
        """What the user's function says of an index."""
        assert self._function is not None
        try:
            stage = self._function(index)
            hash(stage)
        except Exception as error:
            raise OptionError(
                f"compile_online: stages(...) failed for the index {index!r} ({type(error).__name__}: {error}); "
                "give back a stage that can be a key of a dictionary, or None for an index that has none."
            ) from error
        return stage

    def _position(self, component: Any) -> tuple[int, int] | None:
        key = id(component)
        if key not in self._positions:
            self._positions[key] = self._find_position(component)
        return self._positions[key]

    def _find_position(self, component: Any) -> tuple[int, int] | None:
        index_set = component.index_set()
        candidates = list(_positions_by_set(index_set, self._set))
        if not candidates:
            candidates = list(self._positions_by_value(index_set))
        if len(candidates) > 1:
            raise ModelError(
                f"'{component.name}': the stage set '{self._set.name}' may stand at {len(candidates)} places of its "
                "index; give stages= as a function of the index instead."
            )
        return candidates[0] if candidates else None

    def _positions_by_value(self, index_set: Any) -> Iterator[tuple[int, int]]:
        """Places of a sparse set of tuples where every member is a stage."""
        dimension = index_set.dimen
        if not isinstance(dimension, int) or dimension < 2 or _has_parts(index_set) or self._set.dimen != 1:
            return
        members = list(index_set)
        for place in range(dimension):
            if members and all(member[place] in self._members for member in members):
                yield place, 1


def _positions_by_set(index_set: Any, stages: Any) -> Iterator[tuple[int, int]]:
    if index_set is stages or _within(index_set, stages):
        yield 0, stages.dimen
        return
    own = list(stages.subsets(expand_all_set_operators=False))
    parts = _parts(index_set)
    first = 0
    for number, part in enumerate(parts):
        product = len(own) > 1 and len(parts) >= number + len(own) and all(map(_is, parts[number:], own))
        if part is stages or _within(part, stages) or product:
            yield first, stages.dimen
        first += part.dimen if isinstance(part.dimen, int) else 1


def _parts(index_set: Any) -> list[Any]:
    parts = list(index_set.subsets(expand_all_set_operators=False))
    if len(parts) == 1 and parts[0] is index_set and _has_parts(index_set):
        return list(index_set.domain.subsets(expand_all_set_operators=False))
    return parts


def _has_parts(index_set: Any) -> bool:
    """Whether a set was declared within a product of sets that tell its members apart."""
    domain = getattr(index_set, "domain", None)
    return isinstance(domain, SetData) and domain.dimen == index_set.dimen and domain.isfinite()


def _within(part: Any, stages: Any) -> bool:
    """Whether a set was declared within the stage set (``Set(within=m.T)``)."""
    return getattr(part, "domain", None) is stages


def _blocks_above(data: Any) -> Iterator[Any]:
    block = data.parent_block()
    while block is not None and block.parent_block() is not None:
        yield block
        block = block.parent_block()


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)
