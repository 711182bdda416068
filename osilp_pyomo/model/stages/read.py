"""From a Pyomo model to the template that all its stages share; the model is read and never changed.

Objective and rows are split into terms; each term belongs to the stage of its variables and Params, or to none
(then it is part of a right-hand side, a total over the horizon). The terms of one stage become kernels whose slots
are filled from the data of an arrival; all other stages must have the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo.errors import ModelError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.formula import Formula, kernel_of
from osilp_pyomo.model.agreement import refuse_other_trace
from osilp_pyomo.model.arrays.blocks import TermBlock
from osilp_pyomo.model.arrays.trees import ArrayLeaf
from osilp_pyomo.model.columns import domain_of
from osilp_pyomo.model.constraint.component import semi_infinite_families
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.formulas import CannotCompileError, group_terms, has_one_shape, shape_of
from osilp_pyomo.model.functions.component import function_vars
from osilp_pyomo.model.integrals.dae import undiscretized_integrals
from osilp_pyomo.model.linear import free_variables, leaves, number_of, reads_as_lower, short_text
from osilp_pyomo.model.stages.data import StageData, literal_of
from osilp_pyomo.model.stages.locator import StageLocator
from osilp_pyomo.model.stages.terms import Split, Splitter, TermGroups, curves_of
from osilp_pyomo.model.trace import active_objective, ordinary_constraints, refuse_foreign_components, refuse_odd_domain
from osilp_pyomo.offline.rows import TracedRows
from osilp_pyomo.online.stages.template import (
    CONSTANT,
    Arrivals,
    Field,
    Label,
    MixedTerm,
    OwnRow,
    StageFamily,
    StageFunction,
    StageRow,
    StageTemplate,
    Term,
)


@dataclass(frozen=True, eq=False)
class ReadModel:
    """The template of a model's stages, and the data of its own arrivals."""

    template: StageTemplate
    arrivals: Arrivals


def read_stages(model: Any, stages: Any, horizon: int | None = None) -> ReadModel:
    """Read a model as an online program for so many arrivals; as many as it has stages if not given."""
    with PauseGC():
        return _Reader(model, stages, horizon).read()


def _refuse_functions(model: Any) -> None:
    """Refuse decisions that are functions, and equations over an index: both are decided once, for all arrivals."""
    for owner in function_vars(model):
        raise ModelError(
            f"compile_online: the model holds the FunctionVar '{owner.name}', a decision that is made once, for every "
            "point of its index, while online one is made for each arrival; solve the model offline, "
            "osilp.solve(model), and apply the rule it gives to what arrives, result.function(...), or write arrivals "
            "as stages."
        )
    for family in semi_infinite_families(model):
        if family.is_equation:
            raise ModelError(
                f"compile_online: SemiInfiniteConstraint '{family.name}' is an equation at every point of "
                f"{family.parent_component().index_text()}, which no single arrival can keep; use a row with '<=' or "
                "'>='."
            )


class _Reader:
    """Reads one model; holds what is found on the way."""

    def __init__(self, model: Any, stages: Any, horizon: int | None) -> None:
        refuse_foreign_components(model)
        for each in undiscretized_integrals(model):
            raise ModelError(
                f"Integral '{each.name}': the continuous set '{each.get_continuousset().name}' is not discretized, so "
                "that the integral would be a trapezoid over its few points; for arrivals give its values as Params."
            )
        _refuse_functions(model)
        self.model = model
        self.places = StageLocator(model, stages)
        self.places.discover()
        self.count = len(self.places.stages)
        if self.count < 2:
            raise ModelError(
                f"compile_online: there must be at least two example stages, so that data of a stage can be told from "
                f"shared data (got {self.count}); declare two or more, and horizon= for how many will come."
            )
        # Where more arrivals come than stages are declared, constants of stage terms come again with each of them.
        self.splitter = Splitter(self.places, horizon is not None and horizon != self.count)
        self.data = StageData(model, self.places)
        self.decisions: dict[tuple[str, tuple[Any, ...]], int] = {}
        self.variables: list[dict[int, Any]] = []  # for each decision: stage -> variable
        self.functions: dict[Any, int] = {}
        self.function_list: list[StageFunction] = []
        self.texts: dict[str, str] = {}

    # -- the model ---------------------------------------------------------------------------------

    def read(self) -> ReadModel:
        """Read decisions, objective and rows, and make the template and the arrivals of them."""
        objective = active_objective(self.model)
        families = list(semi_infinite_families(self.model))
        constraints = list(ordinary_constraints(self.model))
        self._find_decisions(objective, families, constraints)
        objective_terms, offset = self._objective(objective)
        stage_families = tuple(self._family(family) for family in families)
        rows, own_rows = self._constraints(constraints)
        if not stage_families and not rows:
            raise ModelError(
                "compile_online: nothing couples the stages: the model has no semi-infinite row and no ordinary row "
                "over all stages; each arrival could be decided alone."
            )
        lower, upper, integer = self._bounds()
        names = self._plain_names()
        template = StageTemplate(
            objective is not None and objective.sense == pyo.maximize,
            tuple(Label(names[name], key) for name, key in self.decisions),
            integer,
            tuple(each if each.hidden else _renamed(each, names[each.label.name]) for each in self.data.fields),
            tuple(self.function_list),
            objective_terms,
            offset,
            stage_families,
            rows,
            own_rows,
            lower,
            upper,
            self.texts,
            _name_of(self.model),
            "" if objective is None else str(objective.name),
        )
        index = pd.Index(self.places.stages, name="stage", tupleize_cols=False)
        own = tuple(CurveStack.of_tables(tuple(value)) if isinstance(value, list) else value for value in self.data.own)
        return ReadModel(template, Arrivals(own, index))

    def _find_decisions(self, objective: Any, families: list[Any], constraints: list[Any]) -> None:
        """The variables that are used, by stage; each stage must have the same ones."""
        used: dict[int, Any] = {}
        expressions = [] if objective is None else [objective.expr]
        expressions += [constraint.expr for constraint in constraints]
        for family in families:
            if family.trace is None:
                raise ModelError(
                    f"SemiInfiniteConstraint '{family.name}': its rule is called at each point ({family.reason}), "
                    "which holds for the declared stages only; online needs a rule that can be traced, written with "
                    "Pyomo functions of the index."
                )
            expressions.append(family.trace)
        for expression in expressions:
            for variables in free_variables(expression):
                whole = self.places.of_component(variables) if len(variables) > 1 else None
                if whole is None:
                    used.update(zip(map(id, variables), variables, strict=True))
                else:
                    # Decisions are numbered in the order in which they are met.
                    self._add_decisions(used)
                    used.clear()
                    self._refuse_foreign(variables[:1])
                    self._add_decision(variables, *whole)
        self._add_decisions(used)
        for number, members in enumerate(self.variables):
            # Dictionaries go by stages, however their variables were found.
            if list(members) != sorted(members):
                self.variables[number] = dict(sorted(members.items()))
        if not self.decisions:
            raise ModelError("compile_online: the model has no free variable that is indexed by the stages.")
        for (name, key), members in zip(self.decisions, self.variables, strict=True):
            for number, stage in enumerate(self.places.stages) if len(members) < self.count else ():
                if number not in members:
                    raise ModelError(
                        f"compile_online: stage {stage!r} has no free variable {Label(name, key)} in the objective or "
                        "a row, where other stages have one; all stages must have the same decisions."
                    )
        for number, ((name, key), members) in enumerate(zip(self.decisions, self.variables, strict=True)):
            self.functions[number] = number
            self.function_list.append(StageFunction(str(Label(name, key)), None, (), (number,)))
            self.functions.update(dict.fromkeys(map(id, members.values()), number))

    def _refuse_foreign(self, variables: Iterable[Any]) -> None:
        """Refuse variables of another model."""
        for variable in variables:
            if variable.model() is not self.model.model():
                raise ModelError(
                    f"The variable '{variable.name}' belongs to another model (a rule that names the model it was "
                    "written for, and not its first argument, does that in a clone); use the rule's own model."
                )

    def _add_decisions(self, used: Mapping[int, Any]) -> None:
        """Take variables as decisions of their stages, one by one."""
        found = list(used.values())
        owners = {id(owner): variable for variable in found for owner in (variable.parent_component(),)}
        self._refuse_foreign(owners.values())
        for variable, place in zip(found, self.places.of_all(found), strict=True):
            if place is None:
                raise ModelError(
                    f"compile_online: the variable '{variable.name}' has no stage; every decision must belong to one "
                    "arrival. Fix it, or index it by the stages."
                )
            number = self.decisions.setdefault((place.name, place.key), len(self.decisions))
            if number == len(self.variables):
                self.variables.append({})
            self.variables[number][place.stage] = variable

    def _add_decision(self, variables: Sequence[Any], name: str, stages: Sequence[int]) -> None:
        """Take a whole Var over the stages as a decision."""
        number = self.decisions.setdefault((name, ()), len(self.decisions))
        if number == len(self.variables):
            self.variables.append(dict(zip(stages, variables, strict=True)))
        elif len(self.variables[number]) < len(stages):
            self.variables[number].update(zip(stages, variables, strict=True))

    def _plain_names(self) -> dict[str, str]:
        """Local names where they are unique among variables and data, else whole ones."""
        whole = {name for name, _ in self.decisions} | {each.label.name for each in self.data.fields if not each.hidden}
        locals_: dict[str, list[str]] = {}
        for name in whole:
            locals_.setdefault(name.split(".")[-1], []).append(name)
        return {name: name.split(".")[-1] if len(locals_[name.split(".")[-1]]) == 1 else name for name in whole}

    # -- splitting ---------------------------------------------------------------------------------

    def _terms(self, split: Split, what: str, axes: Mapping[int, int]) -> tuple[Term, ...]:
        """The terms of a row as kernels that serve every stage."""
        groups = TermGroups()
        for stage, entries in sorted(split.by_stage.items()):
            seen: dict[Any, int] = {}
            for coefficient, function in entries:
                number = CONSTANT if function is None else self._function(function, stage, what)
                shape, slots = self._shape(coefficient, axes, what)
                key = (number, shape)
                occurrence = seen[key] = seen.get(key, -1) + 1
                groups.add((number, shape, occurrence), stage, slots)
        for block_stages, block in split.blocks:
            self._group_block(groups, block_stages, block, axes, what)
        if split.blocks:
            groups.sort(lambda number, stage: self._rank(number, stage, split))
        return tuple(
            self._term(number, shape, stages, found, what) for (number, shape, _), (stages, found) in groups.items()
        )

    def _rank(self, number: int, stage: int, split: Split) -> int:
        """Where a function of one stage stands in a row as it is written; decisions come before all others."""
        if not CONSTANT < number < len(self.decisions):
            return len(split.variables)
        wanted = id(self.variables[number][stage])
        return next(rank for rank, variable in enumerate(split.variables) if variable == wanted)

    def _shape(self, coefficient: Any, axes: Mapping[int, int], what: str) -> tuple[Any, list[Any]]:
        try:
            return shape_of(coefficient, axes)
        except CannotCompileError as error:
            raise ModelError(
                f"{what}: the coefficient {short_text(str(coefficient))} cannot be compiled ({error})."
            ) from None

    def _group_block(
        self, groups: TermGroups, stages: Sequence[int], block: TermBlock, axes: Mapping[int, int], what: str
    ) -> None:
        """Put the terms of a block into groups: one for each decision, read from its arrays."""
        whole = self.places.of_component(block.variables)
        if whole is not None:
            numbers = np.full(len(stages), self.decisions[whole[0], ()])
        else:
            numbers = np.array([self.functions[id(variable)] for variable in block.variables])
        if not has_one_shape(block.tree):
            for place, number in enumerate(numbers.tolist()):
                shape, slots = self._shape(block.coefficient(place), axes, what)
                groups.add((number, shape, 0), stages[place], slots)
            return
        at = np.array(stages)
        shape, slots = self._shape(block.tree, axes, what)
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            places = places[np.argsort(at[places], kind="stable")]
            columns = [
                np.broadcast_to(leaf.values, at.shape)[places].tolist()
                if leaf.__class__ is ArrayLeaf
                else [leaf] * len(places)
                for leaf in slots
            ]
            groups.extend((number, shape, 0), at[places].tolist(), columns)

    def _term(self, number: int, shape: Any, stages: Sequence[int], found: Sequence[Sequence[Any]], what: str) -> Term:
        """A term of some stages, from the leaves in each slot of its shape."""
        here = set(stages)
        absent = [stage for stage in range(self.count) if stage not in here] if len(here) < self.count else []
        literals: list[str | None] = []
        slots: list[int | CurveStack] = []
        for each in found:
            literal, slot = self.data.slot(stages, each, absent, what)
            literals.append(literal)
            if slot is not None:
                slots.append(slot)
        formula = Formula(shape, tuple(literals))
        source, switches = formula.source(self.data.stand_ins(slots))
        if absent:
            present = np.array([float(stage in here) for stage in range(self.count)])
            source = f"np.where(s[{len(slots)}] != 0, {source}, 0.0)"
            slots.append(self.data.hidden(present, what))
            formula = formula.weighted()
        return Term(number, kernel_of(source), tuple(slots), tuple(map(kernel_of, switches)), formula)

    def _function(self, function: Any, stage: int, what: str) -> int:
        """Number of a function of the decision; the same in all stages, apart from data."""
        known = self.functions.get(id(function))
        if known is not None:
            return known
        axes = {id(members[stage]): number for number, members in enumerate(self.variables)}
        try:
            shape, slots = shape_of(function, axes)
        except CannotCompileError as error:
            raise ModelError(f"{what}: the term {short_text(str(function))} cannot be compiled ({error}).") from None
        keys = tuple(self.data.leaf_key(slot, stage, what) for slot in slots)
        key = (shape, keys)
        if key not in self.functions:
            literals, fields = [], []
            for (kind, content), leaf in zip(keys, slots, strict=True):
                literals.append(literal_of(content) if kind == "number" else None)
                if kind == "field":
                    fields.append(self.data.field(content, leaf))
            formula = Formula(shape, tuple(literals))
            used = tuple(sorted({token for token in shape if isinstance(token, int)}))
            self.functions[key] = len(self.function_list)
            self.function_list.append(
                StageFunction(
                    self._neutral(str(function)), kernel_of(formula.source()[0]), tuple(fields), used, formula
                )
            )
        return self.functions[key]

    def _refuse_missing(self, split: Split, what: str) -> None:
        """Refuse rows that hold some stages only."""
        present = split.holding()
        for number, stage in enumerate(self.places.stages):
            if number not in present:
                held = self.places.stages[min(present)] if present else None
                raise ModelError(
                    f"{what}: it holds decisions of stage {held!r} but none of stage {stage!r}; online, the objective "
                    "and every row that joins stages must hold all of them (rows over part of the past, ramps and "
                    "running sums cannot be decided arrival by arrival)."
                )

    def _refuse_differing(self, split: Split, what: str) -> None:
        """Refuse functions of the decision that some stages have and others not."""
        known = self.functions
        if all(h is None or id(h) in known for entries in split.by_stage.values() for _, h in entries):
            return
        found = [
            {self._function(h, stage, what): h for _, h in split.by_stage.get(stage, ()) if h is not None}
            for stage in range(self.count)
        ]
        for stage in range(self.count):
            for one, other in ((stage, 0), (0, stage)):
                missing = [n for n in found[one] if n not in found[other] and n >= len(self.decisions)]
                if missing:
                    raise ModelError(
                        f"{what}: stage {self.places.stages[one]!r} has the term "
                        f"{short_text(str(found[one][missing[0]]))}, for which stage {self.places.stages[other]!r} has "
                        "no fellow; constants inside a nonlinear term must be the same in all stages, or a mutable "
                        "Param indexed by the stages."
                    )

    # -- objective and rows ------------------------------------------------------------------------

    def _objective(self, objective: Any) -> tuple[tuple[Term, ...], float]:
        if objective is None:
            raise ModelError("compile_online: the model has no active objective.")
        what = f"Objective '{objective.name}'"
        split = self.splitter.split([(1, objective.expr)], what, {})
        self._describe("objective", split)
        self._refuse_differing(split, what)
        return self._terms(split, what, {}), float(sum(number_of(constant, what) for constant in split.shared))

    def _family(self, data: SemiInfiniteConstraintData) -> StageFamily:
        """A semi-infinite row over all stages: its terms by stage, and what no stage holds moved to the limits."""
        owner = data.parent_component()
        what = f"SemiInfiniteConstraint '{data.name}'"
        domain = domain_of(data)
        refuse_other_trace(data, domain)
        axes = {id(placeholder): axis for axis, placeholder in enumerate(owner.placeholders)}
        relation = data.trace
        if isinstance(relation, relational.RangedExpression):
            low, body, high = relation.args
            parts, sign = [(1, body)], 1
        else:
            left, right = relation.args
            sign = -1 if reads_as_lower(relation) else 1
            parts, low, high = [(sign, left), (-sign, right)], None, None
        split = self.splitter.split(parts, what, axes)
        if self.places.of(data) is not None and len(split.by_stage) <= 1 and not split.blocks:
            raise ModelError(
                f"{what}: it is a row of one stage alone; online, a stage's own rows must be ordinary constraints. "
                "Put points of the index into an ordinary Set, or let all stages share the row."
            )
        self._refuse_missing(split, what)
        self._describe(data.name, split)
        if split.mixed:
            self._describe_mixed(data.name, split)
        self._refuse_differing(split, what)
        terms = self._terms(split, what, axes)
        moved = [-constant for constant in split.shared]
        sides: list[Any] = [None, None]
        if isinstance(relation, relational.RangedExpression):
            sides = [[limit, *moved] for limit in (low, high)]
        else:
            sides[0 if sign < 0 else 1] = moved
        for name, side in zip(("lower", "upper"), sides, strict=True):
            self.texts[f"{name} limit {data.name}"] = "" if side is None else _sum_text(side)
        limits = [None if side is None else self._limit(side, axes, what) for side in sides]
        mixed = self._mixed(split, what, axes)
        return StageFamily(data.name, domain, terms, TracedRows((), *limits), mixed, owner.name)

    def _limit(self, terms: list[Any], axes: Mapping[int, int], what: str) -> Any:
        for term in terms:
            if self.splitter.stages_of(term):
                raise ModelError(f"{what}: a limit of a ranged row holds data of a stage ({short_text(str(term))}).")
        try:
            return group_terms([(0, "", term) for term in terms], axes, what)
        except CannotCompileError as error:
            raise ModelError(f"{what}: its right-hand side cannot be compiled ({error}).") from None

    def _mixed(self, split: Split, what: str, axes: Mapping[int, int]) -> tuple[MixedTerm, ...]:
        """The terms that mix index and decision as formulas of both, which all stages must share."""
        result = []
        first = split.mixed.get(0, [])
        if split.mixed and any(len(split.mixed.get(stage, ())) != len(first) for stage in range(self.count)):
            raise ModelError(f"{what}: the stages have different numbers of terms that mix the index and the decision.")
        for place in range(len(first)):
            members: dict[int, list[Any]] = {}
            shapes = set()
            for stage in range(self.count):
                shape, slots = shape_of(split.mixed[stage][place], _joint_axes(axes, self.variables, stage))
                shapes.add(shape)
                members[stage] = slots
            if len(shapes) > 1:
                raise ModelError(
                    f"{what}: the term {short_text(str(first[place]))} has another form in other stages; use mutable "
                    "Params indexed by the stages for what differs."
                )
            literals, kept = [], []
            for k in range(len(members[0])):
                literal, slot = self.data.slot(list(members), [found[k] for found in members.values()], [], what)
                literals.append(literal)
                if slot is not None:
                    kept.append(slot)
            (shape,) = shapes
            formula = Formula(shape, tuple(literals))
            result.append(
                MixedTerm(
                    self._neutral(str(first[place]), first[place]),
                    formula,
                    kernel_of(formula.source(self.data.stand_ins(kept))[0]),
                    tuple(kept),
                )
            )
        return tuple(result)

    def _constraints(self, constraints: list[Any]) -> tuple[tuple[StageRow, ...], tuple[OwnRow, ...]]:
        rows: list[StageRow] = []
        own: dict[tuple[str, tuple[Any, ...], int], tuple[bool, Split]] = {}
        for constraint in constraints:
            what = f"Constraint '{constraint.name}'"
            lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=False)
            split = self.splitter.split([(1, body)], what, {})
            holding = split.holding()
            if not holding:
                self._check_settled(constraint, what)
                continue
            if len(holding) == 1:
                self._own_row(constraint, lower, body, upper, next(iter(holding)), own)
                continue
            self._refuse_missing(split, what)
            self._describe(constraint.name, split)
            self._refuse_differing(split, what)
            constant = sum(number_of(term, what) for term in split.shared)
            limits = [_total(limit, constant, what) for limit in (lower, upper)]
            rows.append(StageRow(constraint.name, self._terms(split, what, {}), limits[0], limits[1]))
        return tuple(rows), self._own_rows(own)

    def _check_settled(self, constraint: Any, what: str) -> None:
        """A row without free variables holds, or the model has no solution."""
        body = constraint.body(exception=False)
        if body is None or constraint.slack() < -1e-8 * (1 + abs(body)):
            raise ModelError(f"{what}: it holds no free variable and is not satisfied by what it holds (got {body}).")

    def _own_row(self, constraint: Any, lower: Any, body: Any, upper: Any, stage: int, own: dict[Any, Any]) -> None:
        """A row of one stage alone, as sums that are <= 0 or == 0."""
        what = f"Constraint '{constraint.name}'"
        place = self.places.of(constraint)
        if place is None or place.stage != stage:
            raise ModelError(
                f"{what}: it holds decisions of stage {self.places.stages[stage]!r} only and is not indexed by the "
                "stages, so other stages have no such row; index it by the stages."
            )
        equality = constraint.equality
        sides = [(1, upper)] if equality else [(1, upper), (-1, lower)]
        for sign, limit in sides:
            if limit is None:
                continue
            split = self.splitter.split([(sign, body), (-sign, limit)], what, {})
            if set(split.by_stage) - {stage}:
                other = self.places.stages[(set(split.by_stage) - {stage}).pop()]
                raise ModelError(
                    f"{what}: a row of stage {self.places.stages[stage]!r} uses data of stage {other!r}; each arrival "
                    "may use its own data only."
                )
            for constant in split.shared:
                split.add(stage, constant, None)
            # One dictionary for all stages: row, side -> terms by stage.
            kind, merged = own.setdefault((place.name, place.key, sign), (equality, Split()))
            if kind != equality:
                raise ModelError(f"{what}: it is an equation in some stages and an inequality in others.")
            merged.by_stage[stage] = split.by_stage.get(stage, [])

    def _own_rows(self, own: Mapping[Any, tuple[bool, Split]]) -> tuple[OwnRow, ...]:
        result = []
        for (name, key, _), (equality, split) in own.items():
            what = f"Constraint '{Label(name, key)}'"
            self._refuse_missing(split, what)
            self._refuse_differing(split, what)
            self._describe(f"own {Label(name, key)}", split)
            result.append(OwnRow(str(Label(name, key)), self._terms(split, what, {}), equality))
        return tuple(result)

    def _bounds(self) -> tuple[Any, Any, Any]:
        sides: list[list[Any]] = [[], []]
        integer = []
        for number, ((name, key), members) in enumerate(zip(self.decisions, self.variables, strict=True)):
            what = f"Variable '{Label(name, key)}'"
            by_domain = {id(variable.domain): variable for variable in reversed(members.values())}
            for variable in by_domain.values():
                refuse_odd_domain(variable)
            kinds = {variable.is_continuous() for variable in by_domain.values()}
            if len(kinds) > 1:
                raise ModelError(f"{what}: it is integer in some stages and not in others.")
            integer.append(not kinds.pop())
            for side, attribute in zip(sides, ("lower", "upper"), strict=True):
                limits = [getattr(variable, attribute) for variable in members.values()]
                missing = type(None) in set(map(type, limits))
                if missing and any(limit is not None for limit in limits):
                    raise ModelError(f"{what}: it has a {attribute} bound in some stages and none in others.")
                side.append(None if missing else self._limit_terms(list(members), limits, what))
                self.texts[f"{attribute} {number}"] = "" if missing else self._neutral(str(limits[0]), limits[0])
        return tuple(sides[0]), tuple(sides[1]), np.array(integer, dtype=bool)

    def _limit_terms(self, stages: Sequence[int], limits: Sequence[Any], what: str) -> tuple[Term, ...]:
        """Bounds of a variable by stage; where all are one number, as most are, one term of it."""
        if set(map(type, limits)) <= native_numeric_types and len(set(limits)) == 1:
            return (self._term(CONSTANT, ("#",), stages, [limits], what),)
        split = Split()
        for stage, limit in zip(stages, limits, strict=True):
            split.add(stage, limit, None)
        return self._terms(split, what, {})

    # -- words -------------------------------------------------------------------------------------

    def _describe(self, name: str, split: Split) -> None:
        """Keep the first stage's terms as text, with t in place of the stage."""
        pieces = []
        entries = split.entries(0)
        for coefficient, function in entries:
            if function is None:
                pieces.append(str(coefficient))
            elif coefficient.__class__ in native_numeric_types and coefficient == 1:
                pieces.append(str(function))
            else:
                pieces.append(f"{_in_brackets(coefficient)}*{_in_brackets(function)}")
        parts = [part for pair in entries for part in pair if part is not None]
        self.texts[name] = self._neutral(" + ".join(pieces).replace("+ -", "- "), *parts)

    def _describe_mixed(self, name: str, split: Split) -> None:
        found = split.mixed.get(0, [])
        mixed = self._neutral(" + ".join(map(str, found)), *found)
        self.texts[name] = " + ".join(part for part in (self.texts[name], mixed) if part)

    def _neutral(self, text: str, *expressions: Any) -> str:
        """A text about the first stage with t in its place, the stage's index written first."""
        found: dict[str, str] = {}
        for expression in expressions:
            for leaf in [*leaves(expression), *curves_of(expression)]:
                place = self.places.of(leaf) if hasattr(leaf, "parent_component") else None
                if place is not None:
                    found[leaf.name] = f"{place.name}[{','.join(['t', *map(str, place.key)])}]"
        for name in sorted(found, key=len, reverse=True):
            text = text.replace(name, found[name])
        return text


def _total(limit: Any, constant: float, what: str) -> float | None:
    """A limit of a row over the horizon without the row's constants; None where there is none."""
    if limit is None:
        return None
    number = number_of(limit, what, infinite=True)
    return None if np.isinf(number) else number - constant


def _joint_axes(axes: Mapping[int, int], variables: Sequence[dict[int, Any]], stage: int) -> dict[int, int]:
    """Axes of a mixed term: the coordinates of the index, then the decisions."""
    joint = dict(axes)
    joint.update({id(members[stage]): len(axes) + number for number, members in enumerate(variables)})
    return joint


def _sum_text(terms: Sequence[Any]) -> str:
    text = " + ".join(_without_brackets(str(term)) for term in terms) or "0"
    return text.replace("+ -", "- ")


def _without_brackets(text: str) -> str:
    """A text without brackets around the whole of it."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def _in_brackets(expression: Any) -> str:
    text = str(expression)
    return f"({text})" if " + " in text or " - " in text else text


def _renamed(each: Field, name: str) -> Field:
    return replace(each, label=Label(name, each.label.key))


def _name_of(model: Any) -> str:
    """A model's name as the user gave it: Pyomo puts one with dots in quotes, and calls one without "unknown"."""
    name = str(model.name or "")
    if name == "unknown":
        return ""
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] == '"' else name
