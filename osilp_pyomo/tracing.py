"""From a Pyomo model to a :class:`SemiInfiniteLP`; the model is read and never changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.constraint import Constraint
from pyomo.core.base.set import SetData
from pyomo.core.expr import relational_expr as relational
from pyomo.core.expr.visitor import ExpressionReplacementVisitor
from pyomo.dae import ContinuousSet, DerivativeVar, Integral
from pyomo.repn.util import categorize_valid_components
from scipy import sparse
from scipy.stats import qmc

from osilp_pyomo.components import SemiInfiniteConstraintData, semi_infinite_families
from osilp_pyomo.domains import BoolArray, Domain, FloatArray, PointFunction
from osilp_pyomo.errors import DataError, ModelError, OsilpError, SamplingWarning, warn_user
from osilp_pyomo.expressions import CannotCompileError, LinearTerms, group_terms, linear_terms
from osilp_pyomo.problem import (
    Family,
    FiniteLP,
    SampledRows,
    SemiInfiniteLP,
    TermGroup,
    TracedRows,
)
from osilp_pyomo.profiles import Profile

# Columns whose coefficients are compared with Pyomo's own evaluation before a trace is trusted (beyond, numpy
# evaluates the rule's numbers), and terms of the rule's rows that are looked at in all.
_CHECKED_COLUMNS, _CHECKED_TERMS = 256, 4000
# Kinks and jumps are looked for one by one up to this many; beyond, the scan is as fine as they are.
_SWITCH_POINTS = 400


@dataclass(frozen=True, eq=False)
class TracedModel:
    """A problem in arrays, and the components of the user's model that its parts stand for."""

    problem: SemiInfiniteLP
    variables: tuple[Any, ...]
    constraints: tuple[Any, ...]
    families: tuple[SemiInfiniteConstraintData, ...]


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


def trace_model(model: Any) -> TracedModel:
    """Read a model: objective, ordinary rows and semi-infinite families, all linear."""
    # Thousands of small expression nodes would set off the garbage collector again and again, in vain.
    with PauseGC():
        return _trace_model(model)


def _trace_model(model: Any) -> TracedModel:
    _refuse_foreign_components(model)
    families = tuple(semi_infinite_families(model))
    columns = _Columns(model)
    objective = _objective(model)
    cost = LinearTerms()
    if objective is not None:
        cost = linear_terms(objective.expr, f"Objective '{objective.name}'")
        columns.register(cost, f"Objective '{objective.name}'")
    constraints, relations = [], []
    for constraint in _ordinary_constraints(model):
        lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        what = f"Constraint '{constraint.name}'"
        terms = linear_terms(body, what)
        columns.register(terms, what)
        constraints.append(constraint)
        relations.append((lower, terms, upper))
    relation_terms = [_relation_terms(family, family.trace) for family in families]
    for family, row in zip(families, relation_terms, strict=True):
        if row is not None:
            columns.register(row.body, f"SemiInfiniteConstraint '{family.name}'")
    names = Names(columns.variables)
    domains = [_domain(family) for family in families]
    compiled = [
        None if row is None else _traced_rows(family, row, columns, domain, names)
        for family, row, domain in zip(families, relation_terms, domains, strict=True)
    ]
    if any(rows is None for rows in compiled):
        # A rule that is called at each point may use any variable at any of them.
        columns.register_all(model)
    core = _core_lp(objective, cost, columns, constraints, relations)
    traced = tuple(
        _family(family, rows, columns, domain, names)
        for family, rows, domain in zip(families, compiled, domains, strict=True)
    )
    return TracedModel(SemiInfiniteLP(core, traced), tuple(columns.variables), tuple(constraints), families)


class _Columns:
    """The variables of the problem in the order in which they were met."""

    def __init__(self, model: Any) -> None:
        self.root = model.model()
        self.variables: list[Any] = []
        self.of: dict[int, int] = {}

    def register(self, terms: LinearTerms, what: str) -> None:
        foreign = self.foreign(terms)
        if foreign is not None:
            raise ModelError(
                f"{what}: it uses the variable '{foreign.name}' of another model (a rule that names the model it was "
                "written for, and not its first argument, does that in a clone); use the rule's own model."
            )
        for key, variable in terms.variables.items():
            if key not in self.of:
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
            result[self.of[id(variable)]] = _number(coefficient, what)
        return result


# -- the ordinary part ---------------------------------------------------------------------------


def _refuse_foreign_components(model: Any) -> None:
    """Refuse active components that would otherwise be left out of the problem without a word."""
    _, unknown = categorize_valid_components(
        model,
        active=True,
        sort=False,
        valid={
            pyo.Block, pyo.Objective, pyo.Constraint, pyo.Var, pyo.Param, pyo.Expression, pyo.ExternalFunction,
            pyo.Set, pyo.RangeSet, pyo.Suffix, pyo.BuildAction, pyo.BuildCheck, ContinuousSet, Profile,
        },
        targets=set(),
    )  # fmt: skip
    for kind, components in unknown.items():
        hint = (
            "discretize it with pyomo.dae first" if kind in (DerivativeVar, Integral) else "transform or deactivate it"
        )
        raise ModelError(
            f"{kind.__name__} '{components[0].name}': the model holds an active {kind.__name__}, which is not linear "
            f"programming; {hint}."
        )
    for each in model.component_objects(DerivativeVar, descend_into=True):
        if not each.is_fully_discretized():
            raise ModelError(
                f"DerivativeVar '{each.name}': its derivative is not discretized, so that it would be a free variable; "
                "discretize it with pyomo.dae first."
            )


def _objective(model: Any) -> Any:
    objectives = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
    if len(objectives) > 1:
        names = ", ".join(objective.name for objective in objectives)
        raise ModelError(f"The model has {len(objectives)} active objectives ({names}); deactivate all but one.")
    return objectives[0] if objectives else None


def _ordinary_constraints(model: Any) -> Iterator[Any]:
    for constraint in model.component_data_objects(Constraint, active=True, descend_into=True):
        if not isinstance(constraint, SemiInfiniteConstraintData):
            _refuse_continuous_index(constraint)
            yield constraint


def _refuse_continuous_index(constraint: Any) -> None:
    """Refuse an ordinary Constraint over a ContinuousSet that was never discretized: it has rows at two points."""
    owner = constraint.parent_component()
    if not owner.is_indexed() or constraint is not next(iter(owner.values())):
        return
    for part in owner.index_set().subsets(expand_all_set_operators=False):
        if isinstance(part, ContinuousSet) and not part.get_discretization_info():
            raise ModelError(
                f"Constraint '{owner.name}': it is indexed by the continuous set '{part.name}', of which it sees "
                f"{len(part)} points only; declare it as a SemiInfiniteConstraint, or discretize it with pyomo.dae "
                "first."
            )


def _core_lp(
    objective: Any, cost: LinearTerms, columns: _Columns, constraints: list[Any], relations: list[Any]
) -> FiniteLP:
    variables = columns.variables
    coefficients = np.zeros(len(variables))
    offset = 0.0
    if objective is not None:
        what = f"Objective '{objective.name}'"
        for column, number in columns.values(cost, what).items():
            coefficients[column] = number
        offset = sum(_number(constant, what) for constant in cost.constants)
    data, column_index, starts, lower, upper = [], [], [0], [], []
    for constraint, (low, terms, high) in zip(constraints, relations, strict=True):
        what = f"Constraint '{constraint.name}'"
        for column, number in columns.values(terms, what).items():
            data.append(number)
            column_index.append(column)
        starts.append(len(data))
        constant = sum(_number(part, what) for part in terms.constants)
        lower.append(-np.inf if low is None else low - constant)
        upper.append(np.inf if high is None else high - constant)
    matrix = sparse.csr_array(
        (np.array(data, dtype=float), np.array(column_index, dtype=np.int32), np.array(starts, dtype=np.int32)),
        shape=(len(constraints), len(variables)),
    )
    bounds = [_bounds(variable) for variable in variables]
    return FiniteLP(
        objective is not None and objective.sense == pyo.maximize,
        coefficients,
        float(offset),
        np.array([low for low, _ in bounds]),
        np.array([high for _, high in bounds]),
        np.array([not variable.is_continuous() for variable in variables], dtype=bool),
        matrix,
        np.array(lower, dtype=float),
        np.array(upper, dtype=float),
        Names(variables),
        Names(constraints),
    )


def _bounds(variable: Any) -> tuple[float, float]:
    if not (variable.is_continuous() or variable.is_integer()):
        raise ModelError(
            f"Var '{variable.name}': its domain {variable.domain} is neither continuous nor integer; split it into "
            "variables that are."
        )
    low, high = variable.lb, variable.ub
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def _number(expression: Any, what: str, infinite: bool = False) -> float:
    """Value of a coefficient; None and nan are refused, and infinity unless it is a limit."""
    if expression.__class__ in native_numeric_types:
        number: Any = float(expression)
    else:
        number = pyo.value(expression, exception=False)
    if number is None:
        missing = next((leaf for leaf in _leaves(expression) if leaf(exception=False) is None), None)
        name = str(expression) if missing is None else missing.name
        raise DataError(f"{what}: '{name}' has no value; give it one before solving.")
    if np.isnan(number) or (np.isinf(number) and not infinite):
        raise DataError(f"{what}: the coefficient {expression} is {number}; every coefficient must be a finite number.")
    return float(number)


def _leaves(expression: Any) -> Iterator[Any]:
    stack = [expression]
    while stack:
        node = stack.pop()
        if node is None or node.__class__ in native_numeric_types:
            continue
        if node.is_expression_type():
            stack.extend(node.args)
        else:
            yield node


# -- families --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _RelationTerms:
    """A relation taken apart: ``lower <= body <= upper``; a limit is a list of terms, or None."""

    body: LinearTerms
    lower: list[Any] | None
    upper: list[Any] | None


def _relation_terms(family: SemiInfiniteConstraintData, relation: Any) -> _RelationTerms | None:
    if relation is None:
        return None
    what = f"SemiInfiniteConstraint '{family.name}'"
    if isinstance(relation, relational.RangedExpression):
        low, middle, high = relation.args
        body = linear_terms(middle, what)
        moved = [-constant for constant in body.constants]
        limits = []
        for limit in (low, high):
            terms = linear_terms(limit, what)
            if terms.variables:
                name = next(iter(terms.variables.values())).name
                raise ModelError(
                    f"{what}: a ranged row (low, body, high) cannot have variables in its limits (found {name}); write "
                    "two constraints."
                )
            limits.append(terms.constants + moved)
        result = _RelationTerms(body, limits[0], limits[1])
    else:
        left, right = relation.args
        body = linear_terms(left, what)
        linear_terms(right, what, sign=-1, into=body)
        moved = [-constant for constant in body.constants]
        result = _RelationTerms(body, None, moved)
        if not any(True for _ in body.variables):
            raise ModelError(f"{what}: the row holds no variable that is free; deactivate it, or unfix one.")
        if _reads_as_lower(relation):
            result = _flipped(result)
    owners = {id(variable.parent_component()): variable for variable in body.variables.values()}
    for variable in owners.values():
        _refuse_continuous_variable(variable, what)
    return result


def _reads_as_lower(relation: Any) -> bool:
    """Whether the user wrote ``>=``: Pyomo turns the sides round, so the variables stand on the right."""
    left, right = relation.args
    return not _potentially_variable(left) and _potentially_variable(right)


def _potentially_variable(node: Any) -> bool:
    return node.__class__ not in native_numeric_types and node.is_potentially_variable()


def _flipped(row: _RelationTerms) -> _RelationTerms:
    """``-body <= b`` as ``body >= -b``, so that the price has the sign of the user's right-hand side."""
    negated = LinearTerms(
        row.body.variables,
        {key: [-part for part in parts] for key, parts in row.body.coefficients.items()},
    )
    assert row.upper is not None
    return _RelationTerms(negated, [-term for term in row.upper], None)


def _refuse_continuous_variable(variable: Any, what: str) -> None:
    owner = variable.parent_component()
    if not owner.is_indexed():
        return
    for part in owner.index_set().subsets():
        if isinstance(part, ContinuousSet) or (isinstance(part, SetData) and not part.isdiscrete()):
            raise ModelError(
                f"{what}: the variable '{owner.name}' is indexed by the continuous set '{part.name}'; a decision that "
                "is a function of the index needs a finite form, such as coefficients of basis functions."
            )


def _family(
    data: SemiInfiniteConstraintData,
    rows: TracedRows | None,
    columns: _Columns,
    domain: Domain,
    names: Sequence[str],
) -> Family:
    if rows is not None:
        return Family(data.name, _with_switch_points(domain, rows), rows, names, "traced")
    _refuse_moody_rule(data, columns, domain)
    called = SampledRows(np.arange(len(columns.variables)), lambda point: _sampled_row(data, point, columns))
    return Family(data.name, domain, called, names, "sampled")


def _traced_rows(
    data: SemiInfiniteConstraintData, row: _RelationTerms, columns: _Columns, domain: Domain, names: Sequence[str]
) -> TracedRows | None:
    """Compiled rows that agree with the rule; None, after a warning, where there are none."""
    try:
        rows = _compile(data, row, columns)
        reason = _disagreement(data, rows, columns, domain, names)
        if reason is None:
            return rows
        # The rule may have read a Param's value when it was traced: trace it again with today's.
        fresh, _ = data.parent_component()._trace(data.index(), data.name)
        again = _relation_terms(data, fresh)
        if again is not None and columns.foreign(again.body) is None:
            columns.register(again.body, f"SemiInfiniteConstraint '{data.name}'")
            rows = _compile(data, again, columns)
            if _disagreement(data, rows, columns, domain, names) is None:
                return rows
    except CannotCompileError as error:
        reason = str(error)
    warn_user(
        f"SemiInfiniteConstraint '{data.name}': its rule cannot be traced ({reason}); it is called at each point "
        "instead, which is slower. Write it with Pyomo functions of the index, or declare sample=True.",
        SamplingWarning,
    )
    return None


def _compile(data: SemiInfiniteConstraintData, row: _RelationTerms, columns: _Columns) -> TracedRows:
    owner = data.parent_component()
    axes = {id(placeholder): axis for axis, placeholder in enumerate(owner.placeholders)}
    what = f"SemiInfiniteConstraint '{data.name}'"
    body = [
        (columns.of[id(variable)], variable.parent_component().name, coefficient)
        for variable, coefficient in row.body.items()
    ]

    def limit(terms: list[Any] | None) -> tuple[TermGroup, ...] | None:
        return None if terms is None else group_terms([(0, "", term) for term in terms], axes, what)

    return TracedRows(group_terms(body, axes, what), limit(row.lower), limit(row.upper))


def _sampled_row(
    data: SemiInfiniteConstraintData, point: FloatArray, columns: _Columns
) -> tuple[dict[int, float], float, float]:
    """Coefficients by column and limits of the row that the rule gives at one point."""
    row = _relation_terms(data, data.at(*map(float, point)))
    assert row is not None
    what = f"SemiInfiniteConstraint '{data.name}'"
    lower = -np.inf if row.lower is None else sum(_number(term, what, infinite=True) for term in row.lower)
    upper = np.inf if row.upper is None else sum(_number(term, what, infinite=True) for term in row.upper)
    return columns.values(row.body, what), lower, upper


def _refuse_moody_rule(data: SemiInfiniteConstraintData, columns: _Columns, domain: Domain) -> None:
    """Refuse a rule that gives another row when it is called again at the same point."""
    for point in _test_points(domain, 2):
        if _sampled_row(data, point, columns) != _sampled_row(data, point, columns):
            raise ModelError(
                f"SemiInfiniteConstraint '{data.name}': its rule gives different rows when it is called twice at "
                f"{domain.describe(point)}; draw random data before the model is declared."
            )


def _disagreement(
    data: SemiInfiniteConstraintData, rows: TracedRows, columns: _Columns, domain: Domain, names: Sequence[str]
) -> str | None:
    """Compare compiled rows with the rule called with numbers; what differs, or None."""
    family = Family(data.name, domain, rows, names)
    # Calling the rule is what costs: more points where it has few terms.
    for point in _test_points(domain, int(np.clip(_CHECKED_TERMS // max(1, len(rows.columns)), 1, 12))):
        row = _row_with_numbers(data, point, columns)
        if row is None:
            continue
        compiled = dict(zip(rows.columns.tolist(), family.matrix_unchecked(point[None])[0], strict=True))
        given = _coefficients_at(row, columns)
        size = max((abs(value) for value in given.values() if np.isfinite(value)), default=0.0)
        for column in compiled.keys() | given.keys():
            exact, traced = given.get(column, 0.0), compiled.get(column, 0.0)
            # Also where the sum of a coefficient's parts cancels, rounding stays far below this.
            if not np.isclose(exact, traced, rtol=1e-8, atol=1e-12 * size, equal_nan=True):
                return (
                    f"at {domain.describe(point)} the rule gives {names[column]} the coefficient {exact:g}, the trace "
                    f"{traced:g}"
                )
        what = f"SemiInfiniteConstraint '{data.name}'"
        for terms, limit in zip((row.lower, row.upper), rows.limits(point[None]), strict=True):
            if terms is None:
                continue
            right = sum(_loose_number(term, what) for term in terms)
            if not np.isclose(right, limit[0], rtol=1e-8, atol=1e-12 * size, equal_nan=True):
                return f"at {domain.describe(point)} the rule's right-hand side is {right:g}, the trace's {limit[0]:g}"
    return None


def _coefficients_at(row: _RelationTerms, columns: _Columns) -> dict[int, float]:
    """Coefficients by column of a row without an index; many of them by numpy, some by Pyomo itself."""
    pairs = list(row.body.items())
    if len(pairs) <= _CHECKED_COLUMNS:
        return {columns.of.get(id(variable), -1): _loose_number(part, "") for variable, part in pairs}
    groups = group_terms([(columns.of.get(id(variable), -1), "", part) for variable, part in pairs], {}, "")
    result: dict[int, float] = {}
    for group in groups:
        values = group.block(slice(None), np.zeros((1, 0)))[:, 0]
        result.update(zip(group.columns.tolist(), values.tolist(), strict=True))
    chosen = np.random.default_rng(0).choice(len(pairs), _CHECKED_COLUMNS, replace=False)
    result.update({columns.of.get(id(pairs[k][0]), -1): _loose_number(pairs[k][1], "") for k in chosen})
    return result


def _loose_number(expression: Any, what: str) -> float:
    """Value of a coefficient; nan where Pyomo has none (a power of a negative number, a pole)."""
    try:
        return _number(expression, what, infinite=True)
    except (DataError, ArithmeticError, ValueError, TypeError):
        return float("nan")


def _row_with_numbers(data: SemiInfiniteConstraintData, point: FloatArray, columns: _Columns) -> _RelationTerms | None:
    """The row that the rule gives for numbers; None where it has no value."""
    try:
        row = _relation_terms(data, data.at(*map(float, point)))
    except OsilpError:
        raise
    except (ArithmeticError, ValueError):
        # Such as the log of a negative number; the scan will say so if it matters.
        return None
    except Exception:
        # Some of Pyomo's own functions (land, lor) take no plain booleans: give it Params with values.
        row = _relation_terms(data, data.at(*map(_held, point)))
    if row is not None and columns.foreign(row.body) is not None:
        # In a clone, a rule that names the original model speaks of the original's variables. The clone's trace
        # is right; what can be compared is the compiled row with the trace itself.
        held = dict(zip(map(id, data.parent_component().placeholders), map(_held, point), strict=True))
        return _relation_terms(data, ExpressionReplacementVisitor(substitute=held).walk_expression(data.trace))
    return row


def _held(number: float) -> Any:
    """A number as a Param, which all of Pyomo's functions take."""
    param = pyo.Param(mutable=True, initialize=float(number))
    param.construct()
    return param


def _test_points(domain: Domain, count: int) -> FloatArray:
    """Points at which rules are called with numbers: inner ones in random strata, then both ends."""
    low = np.where(np.isfinite(domain.lower), domain.lower, np.minimum(domain.upper, 10.0) - 10.0)
    low = np.where(np.isfinite(low), low, -10.0)
    high = np.where(np.isfinite(domain.upper), domain.upper, low + 20.0)
    strata = qmc.LatinHypercube(domain.dimension, rng=20260).random(max(count, 16))
    unit = np.concatenate(
        [strata[: max(1, count - 2)], np.zeros((1, domain.dimension)), np.ones((1, domain.dimension))]
    )
    points = low + unit[:count] * (high - low)
    inside = points[domain.contains(points)]
    if len(inside):
        return inside
    # A small 'where': the rule outside it is compared instead, which is as good.
    return points


# -- domains ---------------------------------------------------------------------------------------


class _Where:
    """The user's ``where`` for one family, as a predicate on points."""

    def __init__(self, data: SemiInfiniteConstraintData) -> None:
        owner, index = data.parent_component(), data.index()
        block = owner.parent_block()
        self._name = data.name
        self._function = PointFunction(lambda *point: _truth(owner.where(block, *owner.arguments(index, point))))

    def __call__(self, points: FloatArray) -> BoolArray:
        values = self._function(points)
        if values.dtype.kind not in "biuf":
            raise ModelError(
                f"SemiInfiniteConstraint '{self._name}': where= must return true or false for numbers "
                f"(got {type(values.flat[0]).__name__})."
            )
        return values.astype(bool)


def _truth(answer: Any) -> Any:
    """What a condition says; a relation with a mutable Param in it is evaluated."""
    return pyo.value(answer) if hasattr(answer, "is_expression_type") else answer


def _domain(data: SemiInfiniteConstraintData) -> Domain:
    owner = data.parent_component()
    bounds = [each.bounds() for each in owner.continuous_sets]
    curves = list(data.model().component_objects(Profile, descend_into=True))
    marks = []
    for each in owner.continuous_sets:
        found = [np.array([float(member) for member in each])] if each.isfinite() else []
        for curve in curves:
            for axis, knots in zip(curve._over, curve.marks(), strict=True):
                if axis is each:
                    found += knots if curve._kind == "linear" else [_from_both_sides(k) for k in knots]
        marks.append(np.unique(np.concatenate([np.empty(0), *found])))
    return Domain(
        tuple(owner.index_names()),
        np.array([-np.inf if low is None else low for low, _ in bounds], dtype=float),
        np.array([np.inf if high is None else high for _, high in bounds], dtype=float),
        None if owner.where is None else _Where(data),
        tuple(marks),
    )


def _from_both_sides(places: FloatArray) -> FloatArray:
    """Places where a row may jump, with the nearest numbers on both sides: its one-sided limits."""
    return np.concatenate([np.nextafter(places, -np.inf), places, np.nextafter(places, np.inf)])


def _with_switch_points(domain: Domain, rows: TracedRows) -> Domain:
    """Mark where abs, Min, Max and Expr_if switch, so that a piece narrower than the scan is seen."""
    if domain.dimension > 1 or not domain.bounded:
        return domain
    found: list[FloatArray] = []
    nodes = np.linspace(domain.lower[0], domain.upper[0], 2049)
    for group in (*rows.groups, *(rows.lower or ()), *(rows.upper or ())):
        if len(group.columns) > _SWITCH_POINTS or len(group.switches) > _SWITCH_POINTS:
            continue
        for switch in group.switches:
            signs = replace(group, kernel=switch).block(slice(None), nodes[:, None]) > 0
            column, left = np.nonzero(signs[:, 1:] != signs[:, :-1])
            low, high = nodes[left], nodes[left + 1]
            # Curves have no entry a column, and no switch calls them: one inside another is left out.
            slots = [slot[column] if isinstance(slot, np.ndarray) else slot for slot in group.slots]
            for _ in range(60):
                middle = (low + high) / 2
                with np.errstate(all="ignore"):
                    value = np.broadcast_to(switch(slots, [middle]), middle.shape)
                same = (value > 0) == signs[column, left]
                low, high = np.where(same, middle, low), np.where(same, high, middle)
            found.append(np.concatenate([low, high]))
    places = np.concatenate([np.empty(0), *found])
    if not len(places) or len(places) > 2 * _SWITCH_POINTS:
        return domain
    return replace(domain, marks=(np.unique(np.concatenate([domain.marks[0], places])),))
