"""robustify: an ordinary model made robust, in its own names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.common.modeling import unique_component_name
from pyomo.core.base.constraint import Constraint
from pyomo.core.expr.relational_expr import TrivialRelationalExpression

from osilp_pyomo._frames import as_pandas
from osilp_pyomo.errors import DataError, DeclarationError, ModelError, OsilpError
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.integrals.expectation import expectation
from osilp_pyomo.model.trace import active_objective, refuse_no_model
from osilp_pyomo.model.units import unit_of
from osilp_pyomo.robust.nominal import refuse_silently_nominal
from osilp_pyomo.robust.reactions import Reaction, react, reacting_members, read_adjustable
from osilp_pyomo.robust.rules import Reacting, RobustRule
from osilp_pyomo.robust.source import Nominal, RobustSource
from osilp_pyomo.robust.uncertain import UncertainVector, members_held, read_uncertain, refuse_missing_values

#: What an objective that depends on uncertain data can be.
OBJECTIVES = ("worst", "nominal", "expected")


def robustify(
    model: Any,
    uncertain: Any,
    adjustable: Any = (),
    *,
    objective: str = "worst",
    draws: Any = None,
    basis: str = "affine",
    nominal: Any = None,
) -> Any:
    """A model that holds for all values of its uncertain data, made of one that was written for one of them.

    Parameters
    ----------
    model : ConcreteModel
        An ordinary linear model, which stays as it is.
    uncertain : list of pairs, or ComponentMap
        (Param, set): a mutable Param, a member of one, a fixed Var, or a list of them in the order of the vector, and
        the uncertainty set of PyROS that the vector lies in. Several pairs are independent of each other.
    adjustable : list of Vars, or of pairs
        (Var, sees): variables that are decided once some uncertain data are seen, and become decision rules
        (:class:`FunctionVar`) under their own names. ``sees`` is a list of members of uncertain Params, or a rule
        ``(model, *index)`` that gives one; without it all of them are seen.
    objective : "worst", "nominal" or "expected"
        What an objective with uncertain data is: its worst value, its value at the values that the Params have, or its
        mean over ``draws``.
    draws : DataFrame or array, optional
        Rows for the expected objective: of all uncertain data or of those that it holds, in the order of ``uncertain``,
        or a frame whose columns have their names; the scenarios of a DiscreteScenarioSet if not given.
    basis : "affine", "constant" or "quadratic"
        What the decision rules are.
    nominal : list of float, optional
        Values of the uncertain data, in their order, for objective="nominal" and for what is loaded; those that the
        Params have if not given.

    Returns
    -------
    ConcreteModel
        A clone in which rows, bounds and the objective hold for the whole set, rows under their own names; bounds with
        uncertain data are rows ``<variable>_lower`` and ``<variable>_upper``, a worst objective has the row
        ``<objective>_worst``. ``robust.source(component)`` tells what a component came from;
        ``osilp.solve(robust).load(model)`` puts values into the model that was given, of a decision
        rule what it decides at the nominal data.

    Raises
    ------
    ModelError
        Where something would silently stay nominal: numbers that were computed from uncertain data. They are found by
        calling the model's rules again, those of Blocks, Sets, lists and defaults too, and once more with other values
        where they read uncertain data; what was built without a rule (``expr=``, ``ConstraintList.add``) or by a
        BuildAction cannot be called again, and is taken as it is written.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.pyros import BoxSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.demand = pyo.Param([0, 1], initialize={0: 4, 1: 5}, mutable=True)
    >>> m.x = pyo.Var([0, 1], bounds=(0, 10))
    >>> m.meet = pyo.Constraint([0, 1], rule=lambda m, p: m.x[p] >= m.demand[p])
    >>> m.cost = pyo.Objective(expr=m.x[0] + 2 * m.x[1])
    >>> robust = osilp.robustify(m, uncertain=[(m.demand, BoxSet([(3, 6), (4, 7)]))])
    >>> robust.meet[1]
    meet[1]: demand[1] <= x[1]  for all demand in BoxSet of dimension 2
    >>> result = osilp.solve(robust)
    >>> result.objective, robust.source(robust.meet) is m.meet
    (20.0, True)
    >>> result.load(m)
    >>> m.x[1].value
    7.0
    """
    refuse_no_model(model, "robustify", "robustify")
    if model.model() is not model:
        raise DeclarationError(
            f"robustify: '{model.name}' is a block of a model, and its rows may hold what lies outside of it; give the "
            "whole model, and deactivate what is not to count."
        )
    if objective not in OBJECTIVES:
        raise DeclarationError(
            f"robustify: objective must be one of {', '.join(map(repr, OBJECTIVES))} (got {objective!r})."
        )
    vectors = read_uncertain(model, uncertain)
    values = _nominal_values(vectors, nominal)
    if objective == "nominal" and not values:
        refuse_missing_values(vectors)
    _refuse_other_rows(model, vectors)
    refuse_silently_nominal(model, vectors)
    made = _Robustifier(model, vectors, adjustable, basis)
    for member, value in values:
        member = made.model.find_component(member)
        member.set_value(value)
    return made.model_with(objective, draws)


def _nominal_values(vectors: Sequence[UncertainVector], nominal: Any) -> list[tuple[Any, float]]:
    """Members with the values that were given for them."""
    if nominal is None:
        return []
    members = [member for vector in vectors for member in vector.members]
    if len(nominal) != len(members):
        raise DeclarationError(
            f"robustify: nominal= has {len(nominal)} values for {len(members)} uncertain data "
            f"({', '.join(member.name for member in members[:4])}); give one for each, in their order."
        )
    return [(member, float(value)) for member, value in zip(members, nominal, strict=True)]


def _refuse_other_rows(model: Any, vectors: Sequence[UncertainVector]) -> None:
    """Refuse semi-infinite rows that hold uncertain data already."""
    wanted = {id(member) for vector in vectors for member in vector.members}
    for constraint in model.component_objects(Constraint, active=True, descend_into=True):
        if isinstance(constraint, SemiInfiniteConstraint):
            for family in constraint.values():
                for member in members_held(family.trace, wanted):
                    raise ModelError(
                        f"robustify: the SemiInfiniteConstraint '{constraint.name}' holds the uncertain "
                        f"'{member.name}'; declare it over the uncertainty set as well."
                    )


class _Robustifier:
    """Makes one robust model; holds what is found on the way."""

    def __init__(self, model: Any, vectors: Sequence[UncertainVector], adjustable: Any, basis: str) -> None:
        self._given = model
        self.model = model.clone()
        self.vectors = tuple(vector.within(self.model) for vector in vectors)
        self._vector_of = {id(member): k for k, vector in enumerate(self.vectors) for member in vector.members}
        self.source = RobustSource(model)
        self.reactions: list[Reaction] = []
        for owner, members in read_adjustable(model, adjustable):
            reaction = react(owner, members, self.model, vectors, self.vectors, basis)
            if reaction is not None:
                self.reactions.append(reaction)
                self.source.came_from(reaction.function, owner)
                self.source.came_from(next(iter(reaction.variables.values())).parent_component(), owner)
        self._reacting = {id(data): each for each in self.reactions for data in each.variables.values()}

    def model_with(self, objective: str, draws: Any) -> Any:
        """The robust model."""
        self._replace_objective(objective, draws)
        for constraint in list(self.model.component_objects(Constraint, active=None, descend_into=True)):
            if not isinstance(constraint, SemiInfiniteConstraint):
                self._replace_constraint(constraint)
        self._replace_bounds()
        self.model.source = self.source
        for reaction in self.reactions:
            self.source.adds(reaction.function.coefficients)
        kept = self.model.private_data("osilp_pyomo")
        kept["added"] = self.source.added()
        kept["reactions"] = Nominal(self.vectors, self.reactions, self.source)
        return self.model

    # -- rows --------------------------------------------------------------------------------------

    def _touched(self, expression: Any) -> set[int]:
        """The numbers of the sets on which an expression depends, by its data and by what reacts to them."""
        found = {self._vector_of[id(member)] for member in members_held(expression, self._vector_of)}
        for _, reaction, _ in reacting_members(expression, self._reacting):
            found |= set(reaction.sets)
        return found

    def _replace_constraint(self, constraint: Any) -> None:
        rows = {
            index: data.expr
            for index, data in constraint.items()
            if not isinstance(data.expr, TrivialRelationalExpression)
        }
        inactive = [index for index, data in constraint.items() if not data.active]
        touched = {index: self._touched(row) for index, row in rows.items()}
        if not any(touched.values()):
            return
        sets = sorted(set().union(*touched.values()))
        block, name = constraint.parent_block(), constraint.local_name
        original = self._given.find_component(constraint)
        members = None if not constraint.is_indexed() else pyo.Set(initialize=list(rows), ordered=True)
        block.del_component(constraint)
        try:
            row = self._declare(block, name, rows, sets, members)
        except OsilpError:
            if len(inactive) < len(rows):
                raise
            # Nobody asked for rows that are inactive; left out, they cannot become active as nominal ones.
            return
        for index in inactive:
            if index in rows:
                row[index].deactivate()
        if not constraint.active:
            row.deactivate()
        self.source.came_from(row, original)

    def _declare(
        self, block: Any, name: str, rows: dict[Any, Any], sets: Sequence[int], members: Any = None
    ) -> SemiInfiniteConstraint:
        """Rows for all values of some sets."""
        rule = RobustRule(rows, [self.vectors[k].members for k in sets], self._reacting_in(rows.values(), sets))
        over = [self.vectors[k].over for k in sets]
        units = tuple(each.get_units() for k in sets for each in self.vectors[k].members)
        told = units if any(unit is not None for unit in units) else None
        row = SemiInfiniteConstraint(*([] if members is None else [members]), *over, rule=rule, units=told)
        block.add_component(name, row)
        return row

    def _reacting_in(self, rows: Iterable[Any], sets: Sequence[int]) -> list[Reacting]:
        """What reacts in some rows over some sets."""
        found = {}
        for row in rows:
            for variable, reaction, index in reacting_members(row, self._reacting):
                places = tuple(sets.index(k) for k in reaction.sets)
                found[id(variable)] = Reacting(variable, reaction.function, index, places)
        return list(found.values())

    def _replace_bounds(self) -> None:
        """Bounds with uncertain data as rows; of what reacts those that are no numbers."""
        for reaction in self.reactions:
            for name, limits in reaction.bounds.items():
                if limits:
                    self._bounds_as_rows(next(iter(reaction.variables.values())).parent_component(), limits, name)
        for variable in list(self.model.component_objects(pyo.Var, descend_into=True)):
            for side, name in (("_lb", "lower"), ("_ub", "upper")):
                limits = {index: getattr(data, side) for index, data in variable.items() if not data.fixed}
                limits = {
                    index: limit
                    for index, limit in limits.items()
                    if limit is not None and any(True for _ in members_held(limit, self._vector_of))
                }
                if limits:
                    self._bounds_as_rows(variable, limits, name)

    def _bounds_as_rows(self, variable: Any, limits: dict[Any, Any], name: str) -> None:
        lower = name == "lower"
        reaction = next((self._reacting[id(variable[i])] for i in limits if id(variable[i]) in self._reacting), None)
        original = self._given.find_component(variable) if reaction is None else reaction.original
        rows = {i: variable[i] >= limit if lower else variable[i] <= limit for i, limit in limits.items()}
        sets = sorted(set().union(*(self._touched(row) for row in rows.values())))
        block = variable.parent_block() if reaction is None else reaction.function.parent_block()
        members = None if not variable.is_indexed() else pyo.Set(initialize=list(rows), ordered=True)
        row = self._declare(block, unique_component_name(block, f"{original.local_name}_{name}"), rows, sets, members)
        for index in limits:
            (variable[index].setlb if lower else variable[index].setub)(None)
        self.source.came_from(row, original)

    # -- the objective -----------------------------------------------------------------------------

    def _replace_objective(self, kind: str, draws: Any) -> None:
        objective = active_objective(self.model)
        if objective is None or not self._touched(objective.expr):
            return
        cost, sets = objective.expr, sorted(self._touched(objective.expr))
        owner = objective.parent_component()
        if owner.is_indexed():
            raise ModelError(
                f"robustify: the Objective '{objective.name}' is a member of an indexed one; write it as one by itself."
            )
        original = self._given.find_component(objective)
        if kind == "worst":
            block, name, sense = objective.parent_block(), objective.local_name, objective.sense
            value = pyo.Var(units=unit_of(cost))
            block.add_component(unique_component_name(block, f"{name}_value"), value)
            self.source.adds(value)
            row = value >= cost if sense == pyo.minimize else value <= cost
            found = self._declare(block, unique_component_name(block, f"{name}_worst"), {None: row}, sets)
            self.source.came_from(found, original)
            objective.set_value(value)
        elif kind == "nominal":
            objective.set_value(self._at([vector.members for vector in self.vectors], cost, range(len(self.vectors))))
        else:
            objective.set_value(self._mean(cost, sets, draws))

    def _at(self, vectors: Sequence[Sequence[Any]], cost: Any, sets: Sequence[int]) -> Any:
        """An expression at some vectors."""
        reacting = self._reacting_in([cost], list(sets))
        return RobustRule({None: cost}, [self.vectors[k].members for k in sets], reacting).at(None, vectors)

    def _mean(self, cost: Any, sets: Sequence[int], draws: Any) -> Any:
        sizes = [len(self.vectors[k].members) for k in sets]
        if draws is None:
            draws, weights = self._scenarios(sets), None
        else:
            weights = None
        if getattr(draws, "ndim", 2) == 1 and sum(sizes) == 1:
            draws = [[each] for each in draws]
        else:
            draws = self._entries_drawn(draws, sets)

        def rule(xi: Any) -> Any:
            if len(xi) != sum(sizes):
                raise DeclarationError(
                    f"robustify: draws= has rows of {len(xi)} entries; the uncertain data of the objective are "
                    f"{sum(sizes)} ({', '.join(m.name for k in sets for m in self.vectors[k].members[:4])})."
                )
            entries = [xi[k] for k in range(len(xi))]
            starts = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
            return self._at([entries[a:b] for a, b in pairwise(starts)], cost, sets)

        return expectation(draws, rule, weights=weights)

    def _entries_drawn(self, draws: Any, sets: Sequence[int]) -> Any:
        """The entries of draws that belong to some sets: by name where all have one, else by place."""
        names = [[member.name for member in vector.members] for vector in self.vectors]
        wanted = [name for k in sets for name in names[k]]
        everything = [name for each in names for name in each]
        draws = as_pandas(draws)
        if isinstance(draws, pd.DataFrame):
            if set(wanted) <= set(draws.columns):
                return draws[wanted]
            known = sorted(set(everything) & set(draws.columns))
            if known:
                missing = next(name for name in wanted if name not in draws.columns)
                raise DataError(
                    f"robustify: draws= has a column '{known[0]}' and none of '{missing}'; name all uncertain data of "
                    "the objective, or none."
                )
        found = np.asarray(draws, dtype=float)
        if found.ndim == 2 and found.shape[1] == len(everything) > len(wanted):
            return found[:, [everything.index(name) for name in wanted]]
        return draws

    def _scenarios(self, sets: Sequence[int]) -> Any:
        scenarios = getattr(self.vectors[sets[0]].over, "scenarios", None)
        if len(sets) != 1 or scenarios is None:
            raise DeclarationError(
                "robustify: objective='expected' needs draws=, rows of the uncertain vector that the mean goes over; "
                "only a DiscreteScenarioSet has its own."
            )
        return [list(scenario) for scenario in scenarios]
