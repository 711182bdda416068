"""Objective and rows split into terms, each of one stage or of none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo.errors import ModelError
from osilp_pyomo.model.arrays.blocks import TermBlock
from osilp_pyomo.model.factor import NotSeparableError, separate
from osilp_pyomo.model.linear import LinearTerms, leaves, linear_terms, short_text, times
from osilp_pyomo.model.stages.locator import StageLocator


@dataclass
class Split:
    """Terms of a row: by stage those that hold a decision or data of the stage, and those of no stage.

    A stage's entry is (coefficient, function); function is a variable, an expression, or None for a constant.
    ``blocks`` hold terms of many stages that share one tree, with the stage of each.
    """

    by_stage: dict[int, list[tuple[Any, Any]]] = field(default_factory=dict)
    blocks: list[tuple[list[int], TermBlock]] = field(default_factory=list)
    #: The variables of its linear terms, by their ids, in the order in which they are written.
    variables: Mapping[int, Any] = field(default_factory=dict)
    mixed: dict[int, list[Any]] = field(default_factory=dict)
    shared: list[Any] = field(default_factory=list)

    def add(self, stage: int, coefficient: Any, function: Any) -> None:
        self.by_stage.setdefault(stage, []).append((coefficient, function))

    def holding(self) -> set[int]:
        """The stages whose decisions it holds."""
        found = {s for s, entries in self.by_stage.items() if any(function is not None for _, function in entries)}
        return found.union(self.mixed, *(stages for stages, _ in self.blocks))

    def entries(self, stage: int) -> list[tuple[Any, Any]]:
        """The terms of one stage, those of blocks among them, in the order in which they are written."""
        found = list(self.by_stage.get(stage, ()))
        if not self.blocks:
            return found
        for stages, block in self.blocks:
            places = [place for place, each in enumerate(stages) if each == stage]
            found += [(block.coefficient(place), block.variables[place]) for place in places]
        wanted = {id(function) for _, function in found}
        ranks = {key: rank for rank, key in enumerate(self.variables) if key in wanted}
        # Constants and functions that are not linear come last.
        return sorted(found, key=lambda entry: ranks.get(id(entry[1]), len(self.variables)))


#: What terms of many stages share: the number of their function, the shape of their coefficient, and which occurrence
#: of the two within a stage they are.
GroupKey = tuple[int, Any, int]


class TermGroups:
    """Terms that share function and shape: their stages, and their leaves slot by slot."""

    def __init__(self) -> None:
        self._found: dict[GroupKey, tuple[list[int], list[list[Any]]]] = {}

    def items(self) -> Iterable[tuple[GroupKey, tuple[list[int], list[list[Any]]]]]:
        """Each group with its stages and leaves."""
        return self._found.items()

    def add(self, key: GroupKey, stage: int, leaves_: Sequence[Any]) -> None:
        """Add the term of one stage."""
        group = self._found.get(key)
        if group is None:
            group = self._found[key] = [], [[] for _ in leaves_]
        group[0].append(stage)
        for column, leaf in zip(group[1], leaves_, strict=True):
            column.append(leaf)

    def extend(self, key: GroupKey, stages: Sequence[int], columns: Sequence[Sequence[Any]]) -> None:
        """Add terms of many stages, their leaves slot by slot."""
        group = self._found.setdefault(key, ([], [[] for _ in columns]))
        group[0].extend(stages)
        for column, found in zip(group[1], columns, strict=True):
            column.extend(found)

    def sort(self, rank: Callable[[int, int], int]) -> None:
        """Put groups, and stages within them, into the order in which a sum over stages would have met them.

        ``rank(function, stage)`` says where a function stands within its stage.
        """
        for key, (stages, columns) in self._found.items():
            if stages != sorted(stages):
                order = sorted(range(len(stages)), key=stages.__getitem__)
                self._found[key] = [stages[k] for k in order], [[column[k] for k in order] for column in columns]
        first = {key: stages[0] for key, (stages, _) in self._found.items()}
        in_order = sorted(self._found, key=lambda key: (first[key], rank(key[0], first[key])))
        self._found = {key: self._found[key] for key in in_order}


class Splitter:
    """Splits sums into terms of stages.

    ``repeated`` says that more arrivals come than stages are declared: constants that stand there once per stage
    then belong to the stages.
    """

    def __init__(self, places: StageLocator, repeated: bool) -> None:
        self.places = places
        self.count = len(places.stages)
        self.repeated = repeated

    def split(self, parts: Sequence[tuple[int, Any]], what: str, placeholders: Mapping[int, int]) -> Split:
        """Split a sum of (sign, expression) into terms of stages."""
        terms = LinearTerms()
        for sign, expression in parts:
            linear_terms(expression, what, sign, terms, keep_nonlinear=True)
        result = Split(variables=terms.variables)
        by_stage, locate = result.by_stage, self.places.of
        for variable, coefficient in terms.items():
            place = locate(variable)
            assert place is not None
            if place.stage in by_stage:
                by_stage[place.stage].append((coefficient, variable))
            else:
                by_stage[place.stage] = [(coefficient, variable)]
        for block in terms.blocks:
            numbers = self.places.stages_of_all(block.variables)
            if len(set(numbers)) > 1:
                result.blocks.append((numbers, block))
            else:
                for k, variable in enumerate(block.variables):
                    result.add(numbers[0], block.coefficient(k), variable)
        for constant in self._constants(terms.constants, what):
            stages = self.stages_of(constant)
            if stages:
                result.add(stages.pop(), constant, None)
            else:
                result.shared.append(constant)
        if self.repeated:
            self._share_out(result)
        for factor, node in terms.nonlinear:
            stages = self.stages_of(node) | self.stages_of(factor)
            if len(stages) > 1:
                raise ModelError(self._across(what, node))
            (stage,) = stages
            try:
                pairs = separate(node, placeholders)
            except NotSeparableError:
                result.mixed.setdefault(stage, []).append(times(factor, node))
                continue
            for a, h in pairs:
                constant = h.__class__ in native_numeric_types
                result.add(stage, times(times(factor, a), h) if constant else times(factor, a), None if constant else h)
        return result

    def _constants(self, constants: Iterable[Any], what: str) -> Iterable[Any]:
        """Constants one by one, sums of several stages' data split into terms."""
        waiting = [(constant, 1) for constant in constants]
        waiting.reverse()
        while waiting:
            node, factor = waiting.pop()
            if len(self.stages_of(node)) + len(self.stages_of(factor)) <= 1:
                yield times(factor, node)
            elif isinstance(node, numeric.SumExpression):
                waiting.extend((part, factor) for part in reversed(node.args))
            elif isinstance(node, numeric.NegationExpression):
                waiting.append((node.args[0], times(-1, factor)))
            elif node.__class__ not in native_numeric_types and node.is_named_expression_type():
                waiting.append((node.args[0], factor))
            elif isinstance(node, numeric.ProductExpression) and not all(map(self.stages_of, node.args)):
                one, other = node.args if not self.stages_of(node.args[0]) else reversed(node.args)
                waiting.append((other, times(factor, one)))
            elif isinstance(node, numeric.DivisionExpression) and not self.stages_of(node.args[1]):
                waiting.append((node.args[0], times(factor, 1 / node.args[1])))
            else:
                raise ModelError(self._across(what, node))

    def _share_out(self, split: Split) -> None:
        """Constants that stand there once per stage belong to the stages: they come again with every arrival."""
        found: dict[str, list[Any]] = {}
        for constant in split.shared:
            found.setdefault(str(constant), []).append(constant)
        split.shared = []
        for same in found.values():
            each = len(same) // self.count
            for stage in range(self.count):
                for constant in same[stage * each : (stage + 1) * each]:
                    split.add(stage, constant, None)
            split.shared += same[self.count * each :]

    def stages_of(self, expression: Any) -> set[int]:
        found = set()
        for leaf in leaves(expression):
            if hasattr(leaf, "parent_component"):
                place = self.places.of(leaf)
                if place is not None and not (leaf.is_variable_type() and leaf.fixed):
                    found.add(place.stage)
        for curve in curves_of(expression):
            place = self.places.of(curve)
            if place is not None:
                found.add(place.stage)
        return found

    def _across(self, what: str, node: Any) -> str:
        return (
            f"{what}: the term {short_text(str(node))} joins several stages; online, objective and rows must be sums "
            "of terms that each belong to one arrival."
        )


def curves_of(expression: Any) -> Iterable[Any]:
    """Profiles that an expression holds."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if node.__class__ in native_numeric_types or not node.is_expression_type():
            continue
        if hasattr(node, "curve"):
            yield node.curve
        stack.extend(node.args)
