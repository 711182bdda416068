"""From a Pyomo model to a :class:`SemiInfiniteLP`; the model is read and never changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.constraint import Constraint
from pyomo.dae import ContinuousSet, DerivativeVar, Integral
from pyomo.gdp import Disjunct, Disjunction
from pyomo.repn.util import categorize_valid_components
from scipy import sparse

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo._reporting import warn_user
from osilp_pyomo.errors import ModelError, SamplingWarning
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.index.choose import names_of, place_bases, place_grids
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.index.grids import GridPoints
from osilp_pyomo.index.nodes import AFFINE, DATA, UNKNOWN, Traits
from osilp_pyomo.index.quadrature.measures import without_record
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.model.affine import AffineTrace, SharedVariables, affine_rows
from osilp_pyomo.model.agreement import (
    TRIED_TERMS,
    disagreement,
    refuse_unstable_rule,
    same_rows,
    sampled_row,
    still_affine,
    warn_of_change,
)
from osilp_pyomo.model.arrays.blocks import TermBlock, with_arrays_of
from osilp_pyomo.model.arrays.trees import ArrayLeaf
from osilp_pyomo.model.columns import Columns, Domains, Names
from osilp_pyomo.model.constraint.component import semi_infinite_families
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.convex_terms import CurvedReader
from osilp_pyomo.model.formulas import (
    CannotCompileError,
    SlotReaders,
    group_terms,
    has_one_shape,
    literal_text,
    read_again,
    shape_of,
)
from osilp_pyomo.model.functions.component import FunctionVar, function_vars
from osilp_pyomo.model.functions.equalities import equality_rows
from osilp_pyomo.model.integrals.dae import ExactIntegrals
from osilp_pyomo.model.linear import (
    SKIP,
    LinearTerms,
    RelationTerms,
    Whose,
    linear_terms,
    number_of,
    refuse_continuous_variables,
    take_apart,
)
from osilp_pyomo.model.profile import Profile
from osilp_pyomo.model.sets import is_uncertainty_set, labels_of
from osilp_pyomo.offline.functions.matching import MatchedRows, with_matched_rows
from osilp_pyomo.offline.functions.simulation import FunctionColumns, Recourse
from osilp_pyomo.offline.prepare import with_switch_points
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.rows import RowCurvature, Rows, SampledRows, TermCurvature, TermGroup, TracedRows


@dataclass(frozen=True, eq=False)
class TracedModel:
    """A problem in arrays, and the components of the user's model that its parts stand for."""

    problem: SemiInfiniteLP
    variables: tuple[Any, ...]
    constraints: tuple[Any, ...]
    families: tuple[SemiInfiniteConstraintData, ...]
    #: Rows that are equations over their index; the problem holds them among its ordinary rows.
    matched: tuple[MatchedRows, ...] = ()
    equations: tuple[SemiInfiniteConstraintData, ...] = ()
    functions: tuple[FunctionColumns, ...] = ()

    @property
    def recourse(self) -> Recourse | None:
        """What depends on uncertain vectors; None where nothing does."""
        families = (*self.problem.families, *(each.family for each in self.matched))
        uncertain = tuple(family for family in families if family.domain.body is not None)
        sets = (each for data in (*self.families, *self.equations) for each in data.parent_component().continuous_sets)
        labelled = all(labels_of(each) is not None for each in sets if is_uncertainty_set(each))
        return Recourse(self.functions, uncertain, self.problem.core, labelled) if uncertain else None

    def place_grids(self, grid: Any) -> tuple[GridPoints, ...]:
        """Place the chosen grid, or the default one, on each family's domain."""
        return place_grids(names_of(self.families), [family.domain for family in self.problem.families], grid)

    def place_bases(self, grid: Any, basis: Any) -> tuple[Functionals, ...]:
        """Place the chosen basis, or the default one, on each family's grid."""
        return place_bases(names_of(self.families), self.place_grids(grid), basis)


def trace_model(model: Any, convex: bool = False) -> TracedModel:
    """Read a model: objective, ordinary rows and semi-infinite families, all linear, or convex where they may be."""
    # Thousands of small expression nodes would set off the garbage collector again and again, in vain.
    with PauseGC():
        refuse_foreign_components(model)
        return _trace_model(model, tuple(semi_infinite_families(model)), alone=False, convex=convex)


def trace_families(model: Any, families: Sequence[SemiInfiniteConstraintData]) -> TracedModel:
    """Read some semi-infinite families and nothing else, whatever the rest of the model is."""
    with PauseGC():
        return _trace_model(model, tuple(families), alone=True)


def _trace_model(
    model: Any, families: tuple[SemiInfiniteConstraintData, ...], alone: bool, convex: bool = False
) -> TracedModel:
    """Read objective and ordinary rows, unless the families are to be read ``alone``, and compile the families."""
    return assembled(read_model(model, families, alone, convex))


@dataclass(eq=False)
class ModelReading:
    """What was read of a model: terms with their coefficients as expressions, and rows compiled.

    ``readers`` say for each family how the data of its rows are read again, where that was asked for; ``lasting`` is
    whether all of it stays right while no part of the model changes but data: nothing curved, no rule that is called
    at points or that gives another row now than when it was declared.
    """

    model: Any
    alone: bool
    families: tuple[SemiInfiniteConstraintData, ...]
    columns: Columns
    curved: CurvedReader
    objective: Any
    cost: LinearTerms
    constraints: list[Any]
    relations: list[Any]
    domains: list[Domain]
    readings: list[AffineTrace | RelationTerms | None]
    compiled: list[Rows | None]
    readers: list[RowReaders | None]
    lasting: bool
    #: Convex sets by the id of the uncertainty set that they were made of.
    bodies: dict[int, Body]
    shared_variables: SharedVariables
    names: Names | None = None
    #: Families as they were assembled last, with their rows and domain, and the equations among them.
    known: dict[int, tuple[Rows | None, Domain, Family, MatchedRows | None]] = field(default_factory=dict)


def read_model(
    model: Any,
    families: tuple[SemiInfiniteConstraintData, ...],
    alone: bool = False,
    convex: bool = False,
    noted: bool = False,
) -> ModelReading:
    """Read objective, ordinary rows and families; with ``noted``, so that data can be read again."""
    # Equations last: what is left of the families without them keeps its numbers.
    families = tuple(
        sorted(
            (family for family in families if alone or not _is_bound_of_fixed(family)),
            key=lambda family: family.is_equation and not alone,
        )
    )
    columns = Columns(model)
    curved = CurvedReader(columns)
    integrals = ExactIntegrals(model)
    objective = None if alone else active_objective(model)
    cost = LinearTerms()
    if objective is not None:
        cost = linear_terms(integrals.within(objective.expr), f"Objective '{objective.name}'", keep_nonlinear=convex)
        columns.register(cost, f"Objective '{objective.name}'")
        curved.read_objective(cost, objective)
    constraints: list[Any] = []
    relations: list[Any] = []
    for constraint in () if alone else ordinary_constraints(model):
        lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        row_of = Whose("Constraint", constraint)
        terms = linear_terms(integrals.within(body), row_of, keep_nonlinear=convex)
        columns.register(terms, row_of)
        curved.read_row(terms, constraint, len(constraints), lower, upper)
        constraints.append(constraint)
        relations.append((lower, terms, upper))
    known_domains = Domains()
    domains = [known_domains.of(family) for family in families]
    tried = _families_to_try(model, families)
    shared = SharedVariables()
    odd: list[Any] = []
    readings = _read_families(families, domains, tried, convex, shared, odd, noted)
    nonlinear = bool(cost.nonlinear) or any(terms.nonlinear for _, terms, _ in relations)
    nonlinear |= any(isinstance(row, RelationTerms) and bool(row.body.nonlinear) for row in readings)
    readings = [
        curved.read_family(row, family, number, domains[number]) if isinstance(row, RelationTerms) else row
        for number, (family, row) in enumerate(zip(families, readings, strict=True))
    ]
    last: tuple[Any, ...] = ()
    for family, row in zip(families, readings, strict=True):
        if row is None or (isinstance(row, AffineTrace) and row.variables is last):
            continue
        what = f"SemiInfiniteConstraint '{family.name}'"
        if isinstance(row, AffineTrace):
            refuse_continuous_variables([each for each in row.variables if id(each) not in columns.of], what)
            last = row.variables
        columns.register(row.terms(), what)
    names = Names(columns.variables)
    readers: list[RowReaders | None] = [RowReaders() if noted else None for _ in families]
    compiled: list[Rows | None] = [
        affine_rows(row, columns.of, shared)
        if isinstance(row, AffineTrace)
        else None
        if row is None
        else _compile(family, row, columns)
        if row.body.nonlinear
        else _traced_rows(family, row, columns, domain, names, odd, again)
        for family, row, domain, again in zip(families, readings, domains, readers, strict=True)
    ]
    sampled = any(rows is None for rows in compiled)
    if sampled:
        # A rule that is called at each point may use any variable at any of them.
        columns.register_all(model)
    lasting = not (nonlinear or odd or sampled or integrals.found)
    return ModelReading(
        model, alone, families, columns, curved, objective, cost, constraints, relations, domains, readings, compiled,
        readers, lasting, known_domains.bodies, shared,
    )  # fmt: skip


def assembled(read: ModelReading) -> TracedModel:
    """The problem in arrays of what was read."""
    columns, families, domains = read.columns, read.families, read.domains
    # One for all readings: names are asked for once.
    read.names = names = Names(columns.variables) if read.names is None else read.names
    core = _core_lp(read.objective, read.cost, columns, read.constraints, read.relations, names)
    made = [_made(read, number, names) for number in range(len(families))]
    traced = tuple(family for family, _ in made)
    kept = sum(read.alone or not family.is_equation for family in families)
    matched = tuple(each for _, each in made if each is not None)
    core = with_matched_rows(core, matched)
    problem = SemiInfiniteLP(core, traced[:kept], read.curved.part(core, domains))
    functions = () if read.alone else tuple(_function_columns(read.model, columns))
    return TracedModel(
        problem,
        tuple(columns.variables),
        tuple(read.constraints),
        families[:kept],
        matched,
        families[kept:],
        functions,
    )


def _made(read: ModelReading, number: int, names: Names) -> tuple[Family, MatchedRows | None]:
    """One family in arrays, and its ordinary rows if it is an equation; those of the last time if nothing changed."""
    data, rows = read.families[number], read.compiled[number]
    domain, row = read.domains[number], read.readings[number]
    last = read.known.get(number)
    if last is not None and rows is not None and last[0] is rows and last[1] is domain:
        return last[2], last[3]
    family = _family(data, rows, read.columns, domain, names)
    if isinstance(row, RelationTerms) and family.domain.body is not None and isinstance(family.rows, TracedRows):
        curvature = read_curvature(row, data.parent_component().placeholders, read.columns.of, family)
        family = replace(family, curvature=curvature)
    equation = equality_rows(data, family) if data.is_equation and not read.alone else None
    read.known[number] = rows, domain, family, equation
    return family, equation


def _is_bound_of_fixed(family: SemiInfiniteConstraintData) -> bool:
    """Whether a family bounds a decision that is a function and whose coefficients are all fixed."""
    owner = family.parent_block()
    if not isinstance(owner, FunctionVar) or family.parent_component() is not owner.component("limits"):
        return False
    return owner.refuse_fixed_outside(family.index())


def _function_columns(model: Any, columns: Columns) -> Iterator[FunctionColumns]:
    """The columns of every decision that is a function."""
    for owner in function_vars(model):
        for _, function in owner.items():
            coefficients = function.coefficients.values()
            found = [columns.of.get(id(each), -1) for each in coefficients]
            numbers = [0.0 if each.value is None else float(each.value) for each in coefficients]
            yield FunctionColumns(function.name, function.space, np.array(found), np.array(numbers))


def fixed_variables(model: Any) -> dict[str, float]:
    """The numbers of all variables that are fixed, by their names."""
    owners = model.component_objects(pyo.Var, active=True, descend_into=True)
    fixed = (each for owner in owners for each in owner.values() if each.fixed and each.value is not None)
    return {each.name: float(each.value) for each in fixed}


def refuse_no_model(model: Any, what: str, verb: str | None = None) -> None:
    """Refuse anything but a model, or one of its blocks, that holds data."""
    if getattr(model, "ctype", None) is not pyo.Block or not hasattr(model, "component_data_objects"):
        offline = "; program.solve_offline() gives its optimum" if hasattr(model, "solve_offline") else ""
        raise ModelError(f"{what}: expected a Pyomo model or one of its blocks (got {type(model).__name__}{offline}).")
    if not model.is_constructed():
        raise ModelError(
            f"{what}: the model is abstract; call model.create_instance() and {verb or what} the instance."
        )


# -- the ordinary part ---------------------------------------------------------------------------


def refuse_foreign_components(model: Any) -> None:
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
    if Disjunct in unknown or Disjunction in unknown:
        _refuse_disjunctions(model)
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


def _refuse_disjunctions(model: Any) -> None:
    """Refuse what generalized disjunctive programming is to be written without, with the way to do so."""
    for disjunct in model.component_data_objects(Disjunct, active=True, descend_into=(pyo.Block, Disjunct)):
        for family in semi_infinite_families(disjunct):
            raise ModelError(
                f"Disjunct '{disjunct.name}': it holds the SemiInfiniteConstraint '{family.name}', which gdp.bigm "
                "cannot read; declare that on the model itself, relaxed where the Disjunct is not chosen, such as "
                "m.y >= u - M * (1 - m.d.binary_indicator_var), and transform the rest by "
                "pyo.TransformationFactory('gdp.bigm').apply_to(model)."
            )
    raise ModelError(
        "The model holds active Disjuncts or Disjunctions, choices between sets of rows; write them with binary "
        "variables first, by pyo.TransformationFactory('gdp.bigm').apply_to(model) or 'gdp.hull'."
    )


def active_objective(model: Any) -> Any:
    """The model's one active objective, or None."""
    objectives = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
    if len(objectives) > 1:
        names = ", ".join(objective.name for objective in objectives)
        raise ModelError(f"The model has {len(objectives)} active objectives ({names}); deactivate all but one.")
    return objectives[0] if objectives else None


def ordinary_constraints(model: Any) -> Iterator[Any]:
    """Active constraints that are not semi-infinite."""
    for owner in model.component_objects(Constraint, active=True, descend_into=True):
        ordinary = [each for each in owner.values() if not isinstance(each, SemiInfiniteConstraintData)]
        if ordinary:
            _refuse_continuous_index(owner)
        yield from (constraint for constraint in ordinary if constraint.active)


def _refuse_continuous_index(owner: Any) -> None:
    """Refuse an ordinary Constraint over a ContinuousSet that was never discretized: it has rows at two points."""
    if not owner.is_indexed() or not len(owner):
        return
    for part in owner.index_set().subsets(expand_all_set_operators=False):
        if isinstance(part, ContinuousSet) and not part.get_discretization_info():
            raise ModelError(
                f"Constraint '{owner.name}': it is indexed by the continuous set '{part.name}', of which it sees "
                f"{len(part)} points only; declare it as a SemiInfiniteConstraint, or discretize it with pyomo.dae "
                "first."
            )


def _core_lp(
    objective: Any, cost: LinearTerms, columns: Columns, constraints: list[Any], relations: list[Any], names: Names
) -> FiniteLP:
    """The ordinary part of a model in arrays: objective, ordinary rows and bounds."""
    variables = columns.variables
    coefficients = np.zeros(len(variables))
    offset = 0.0
    if objective is not None:
        what = f"Objective '{objective.name}'"
        for column, number in columns.values(cost, what).items():
            coefficients[column] = number
        offset = sum(number_of(constant, what) for constant in cost.constants)
    data, column_index, starts, lower, upper = [], [], [0], [], []
    for constraint, (low, terms, high) in zip(constraints, relations, strict=True):
        row_of = Whose("Constraint", constraint)
        for column, number in columns.values(terms, row_of).items():
            data.append(number)
            column_index.append(column)
        starts.append(len(data))
        constants = [number_of(part, row_of) for part in terms.constants]
        lower.append(-np.inf if low is None else _difference(low, constants))
        upper.append(np.inf if high is None else _difference(high, constants))
    matrix = sparse.csr_array(
        (np.array(data, dtype=float), np.array(column_index, dtype=np.int32), np.array(starts, dtype=np.int32)),
        shape=(len(constraints), len(variables)),
    )
    column_lower, column_upper, integer = _bounds(variables)
    return FiniteLP(
        maximize=objective is not None and objective.sense == pyo.maximize,
        cost=coefficients,
        offset=float(offset),
        column_lower=column_lower,
        column_upper=column_upper,
        integer=integer,
        matrix=matrix,
        row_lower=np.array(lower, dtype=float),
        row_upper=np.array(upper, dtype=float),
        column_names=names,
        row_names=Names(constraints),
    )


_ROUNDING = 4 * float(np.finfo(float).eps)


def _difference(limit: float, constants: Sequence[float]) -> float:
    """A limit less some constants; zero where nothing but their rounding is left."""
    if not constants:
        return float(limit)
    left = limit - sum(constants)
    size = abs(limit) + sum(map(abs, constants))
    return 0.0 if abs(left) <= _ROUNDING * size else left


def refuse_odd_domain(variable: Any) -> None:
    """Refuse domains that are neither continuous nor all integers."""
    if not (variable.is_continuous() or variable.is_integer()):
        raise ModelError(
            f"Var '{variable.name}': its domain {variable.domain} is neither continuous nor integer; split it into "
            "variables that are."
        )


def _bounds(variables: Sequence[Any]) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Bounds of variables, infinite where there are none, and which of them are integers."""
    # Thousands of variables share a few domains.
    whole: dict[int, bool] = {}
    bounds = np.empty((len(variables), 2))
    integer = np.empty(len(variables), dtype=bool)
    for number, variable in enumerate(variables):
        domain = id(variable.domain)
        if domain not in whole:
            refuse_odd_domain(variable)
            whole[domain] = not variable.is_continuous()
        integer[number] = whole[domain]
        low, high = variable.bounds
        bounds[number] = -np.inf if low is None else low, np.inf if high is None else high
    return bounds[:, 0].copy(), bounds[:, 1].copy(), integer


# -- families --------------------------------------------------------------------------------------


def _families_to_try(model: Any, families: Sequence[SemiInfiniteConstraintData]) -> set[int]:
    """Ids of the families whose rule is called with numbers, to see that their numbers are still those of the rule.

    All of them where a rule may have read a Param that has another value now; else a few of each component.
    """
    if any(param.mutable for param in model.component_objects(pyo.Param, descend_into=True)):
        return set(map(id, families))
    chosen: list[Any] = []
    for owner in {id(family.parent_component()): family.parent_component() for family in families}.values():
        own = [family for family in owner.values() if family.active]
        size = max((1 if family.affine is None else family.affine.matrix.size for family in own), default=1)
        count = min(len(own), max(1, TRIED_TERMS // size))
        chosen += [own[len(own) * (2 * k + 1) // (2 * count)] for k in range(count)]
    return set(map(id, chosen))


def _read_families(
    families: Sequence[SemiInfiniteConstraintData],
    domains: Sequence[Domain],
    tried: set[int],
    convex: bool,
    known: SharedVariables,
    odd: list[Any],
    noted: bool = False,
) -> list[AffineTrace | RelationTerms | None]:
    """The rows of all families; where one that was tried has changed, all others of its component are tried too.

    Those whose rule gives another row now than when it was declared are added to ``odd``.
    """
    changed: dict[int, list[SemiInfiniteConstraintData]] = {}

    def read(data: SemiInfiniteConstraintData, domain: Domain, try_it: bool) -> AffineTrace | RelationTerms | None:
        """Its numbers where it is affine in an uncertain vector, else its terms; None if it has none."""
        if data.trace is None:
            return None
        if data.parent_component().uncertain:
            trace, differs = still_affine(data, domain, try_it, known, noted)
            if differs:
                changed.setdefault(id(data.parent_component()), []).append(data)
            if trace is not None:
                return trace
        return take_apart(data.trace, f"SemiInfiniteConstraint '{data.name}'", keep_nonlinear=convex)

    readings = [read(family, domain, id(family) in tried) for family, domain in zip(families, domains, strict=True)]
    for place, (family, domain) in enumerate(zip(families, domains, strict=True)):
        if id(family.parent_component()) in changed and id(family) not in tried:
            readings[place] = read(family, domain, True)
    for found in changed.values():
        warn_of_change(found)
        odd += found
    return readings


def _family(
    data: SemiInfiniteConstraintData,
    rows: Rows | None,
    columns: Columns,
    domain: Domain,
    names: Sequence[str],
) -> Family:
    if isinstance(rows, TracedRows):
        return Family(data.name, with_switch_points(domain, rows), rows, names, "traced")
    if rows is not None:
        return Family(data.name, domain, rows, names, "traced")
    refuse_unstable_rule(data, columns, domain)
    called = SampledRows(np.arange(len(columns.variables)), lambda point: sampled_row(data, point, columns))
    return Family(data.name, domain, called, names, "sampled", lipschitz=_lipschitz(data, domain))


def _lipschitz(data: SemiInfiniteConstraintData, domain: Domain) -> FloatArray | None:
    """What a family's rule changes by at most along each coordinate, as declared."""
    constants = data.parent_component().lipschitz
    if constants is None:
        return None
    if len(constants) not in (1, domain.dimension):
        raise ModelError(
            f"SemiInfiniteConstraint '{data.name}': lipschitz= has {len(constants)} numbers, and its index has "
            f"{domain.dimension} coordinates; give one number, or one for each of them."
        )
    return np.broadcast_to(np.array(constants), domain.dimension)


def _traced_rows(
    data: SemiInfiniteConstraintData,
    row: RelationTerms,
    columns: Columns,
    domain: Domain,
    names: Sequence[str],
    odd: list[Any],
    readers: RowReaders | None,
) -> TracedRows | None:
    """Compiled rows that agree with the rule; None, after a warning, where there are none."""
    try:
        rows = _compile(data, row, columns, readers)
        with without_record():
            reason = disagreement(data, rows, columns, domain, names)
        if reason is None:
            return rows
        odd.append(data)
        # The rule may have read a Param's value when it was traced: trace it again with today's.
        fresh, _ = data.parent_component()._trace(data.index(), data.name)
        what = f"SemiInfiniteConstraint '{data.name}'"
        again = None if fresh is None or fresh is SKIP else take_apart(fresh, what)
        if again is not None and columns.foreign(again.body) is None:
            columns.register(again.body, what)
            of_now = _compile(data, again, columns)
            if disagreement(data, of_now, columns, domain, names) is None:
                # Arrays of a dot are those of its declaration, whatever has become of them.
                kept = with_arrays_of(fresh, data.trace)
                if kept is not fresh:
                    of_now = _compile(data, take_apart(kept, what), columns)
                    if same_rows(of_now, rows, domain):
                        return rows
                warn_of_change([data])
                return of_now
    except CannotCompileError as error:
        reason = str(error)
    warn_user(
        f"SemiInfiniteConstraint '{data.name}': its rule cannot be traced ({reason}); it is called at each point "
        "instead, which is slower. Write it with Pyomo functions of the index, or declare sample=True.",
        SamplingWarning,
    )
    return None


@dataclass(eq=False)
class RowReaders:
    """How the data of compiled rows are read again, group by group."""

    groups: list[SlotReaders] = field(default_factory=list)
    lower: list[SlotReaders] = field(default_factory=list)
    upper: list[SlotReaders] = field(default_factory=list)

    def read_again(self, rows: TracedRows) -> TracedRows:
        """Rows with the data of now; the same ones where nothing has changed."""
        parts = []
        for groups, readers in ((rows.groups, self.groups), (rows.lower, self.lower), (rows.upper, self.upper)):
            parts.append(None if groups is None else tuple(map(read_again, groups, readers)))
        groups, lower, upper = parts
        pairs = ((groups, rows.groups), (lower, rows.lower), (upper, rows.upper))
        if all(one is other or (one and all(map(is_, one, other or ()))) for one, other in pairs):
            return rows
        return TracedRows(groups or (), lower, upper)


def _compile(
    data: SemiInfiniteConstraintData, row: RelationTerms, columns: Columns, readers: RowReaders | None = None
) -> TracedRows:
    owner = data.parent_component()
    axes = {id(placeholder): axis for axis, placeholder in enumerate(owner.placeholders)}
    what = f"SemiInfiniteConstraint '{data.name}'"
    body = [
        (columns.of[id(variable)], variable.parent_component().name, coefficient)
        for variable, coefficient in row.body.items()
    ]
    blocks = [(columns.columns_of(block, what), owner_names(block), block) for block in row.body.blocks]

    again = RowReaders()

    def limit(terms: list[Any] | None, into: list[SlotReaders]) -> tuple[TermGroup, ...] | None:
        return None if terms is None else group_terms([(0, "", term) for term in terms], axes, what, readers=into)

    groups = group_terms(body, axes, what, blocks, again.groups)
    rows = TracedRows(groups, limit(row.lower, again.lower), limit(row.upper, again.upper))
    if readers is not None:
        readers.groups, readers.lower, readers.upper = again.groups, again.lower, again.upper
    return rows


def owner_names(block: TermBlock) -> tuple[str, ...]:
    """Names of the variable components of a block."""
    owners = {id(owner): owner for owner in (variable.parent_component() for variable in block.variables)}
    return tuple(owner.name for owner in owners.values())


def read_curvature(
    row: RelationTerms, placeholders: Sequence[Any], column_of: Mapping[int, int], family: Family
) -> RowCurvature:
    """Curvature of a family's coefficients and limits in the index, from the terms of its row."""
    rows = family.rows
    assert isinstance(rows, TracedRows)
    axes = {id(placeholder): axis for axis, placeholder in enumerate(placeholders)}
    by_column = {column_of[id(variable)]: shape_of(part, axes) for variable, part in row.body.items()}
    for block in row.body.blocks:
        # One formula, with other data for each column.
        shape, leaves = shape_of(block.tree, axes) if has_one_shape(block.tree) else (None, [])
        for place, variable in enumerate(block.variables):
            if shape is None:
                by_column[column_of[id(variable)]] = shape_of(block.coefficient(place), axes)
            else:
                count = (len(block.variables),)
                data = [leaf.take(place, count) if leaf.__class__ is ArrayLeaf else leaf for leaf in leaves]
                by_column[column_of[id(variable)]] = shape, data
    body = _terms([by_column[int(column)] for column in rows.columns], rows.groups, rows.columns, family.domain)

    def limit(terms: list[Any] | None, groups: Sequence[TermGroup] | None) -> TermCurvature | None:
        if terms is None or groups is None:
            return None
        return _terms([shape_of(sum(terms), axes)], groups, np.zeros(1, dtype=np.int64), family.domain)

    return RowCurvature(rows.columns, body, limit(row.lower, rows.lower), limit(row.upper, rows.upper))


def _terms(
    expressions: Sequence[tuple[Any, Any]], groups: Sequence[TermGroup], columns: Any, domain: Domain
) -> TermCurvature:
    degrees, kinds = [], []
    for shape, leaves in expressions:
        degree, kind = _degree_and_kind(shape, leaves, domain)
        degrees.append(degree)
        kinds.append(kind)
    hessians = np.zeros((len(expressions), domain.dimension, domain.dimension))
    if 2 in degrees:
        quadratic = np.array([degree == 2 for degree in degrees])
        hessians[quadratic] = _hessians(groups, columns, domain)[quadratic]
    return TermCurvature(tuple(kinds), hessians)


def _degree_and_kind(shape: Any, leaves: Sequence[Any], domain: Domain) -> tuple[int | None, str]:
    """Degree in the index where it is at most 2, else None; curvature by the rules, "affine" up to degree 2."""
    literals: list[str | None] = []
    slots: list[Traits] = []
    for leaf in leaves:
        if leaf.__class__ in native_numeric_types:
            literals.append(literal_text(leaf))
            continue
        value: Any = None if hasattr(leaf, "curve_table") else leaf(exception=False)
        if value.__class__ not in native_numeric_types:
            return None, UNKNOWN
        literals.append(None)
        slots.append(Traits(DATA, float(value), float(value)))
    formula = Formula(shape, tuple(literals))
    degree = formula.degree()
    if degree is not None and degree <= 2:
        return degree, AFFINE
    ranges = {
        axis: Traits(AFFINE, float(domain.lower[axis]), float(domain.upper[axis])) for axis in range(domain.dimension)
    }
    return None, formula.traits(slots, ranges).kind


def _hessians(groups: Sequence[TermGroup], columns: Any, domain: Domain) -> FloatArray:
    """Hessians (n, d, d) of quadratic functions by differences, which are exact for them but for rounding."""
    dimension = domain.dimension
    assert domain.body is not None
    step = np.diag(domain.width) / 2
    pairs = [(i, j) for i in range(dimension) for j in range(i)]
    moves = [np.zeros(dimension), *step, *-step, *(step[i] + step[j] for i, j in pairs)]
    values = np.zeros((len(columns), len(moves)))
    points = domain.body.centre + np.array(moves)
    for group in groups:
        np.add.at(values, np.searchsorted(columns, group.columns), group.block(slice(None), points))
    middle, up, down = values[:, 0], values[:, 1 : dimension + 1], values[:, dimension + 1 : 2 * dimension + 1]
    result = np.zeros((len(columns), dimension, dimension))
    width = np.diagonal(step)
    diagonal = np.arange(dimension)
    result[:, diagonal, diagonal] = (up + down - 2 * middle[:, None]) / width**2
    for (i, j), both in zip(pairs, values[:, 2 * dimension + 1 :].T, strict=True):
        result[:, i, j] = result[:, j, i] = (both - up[:, i] - up[:, j] + middle) / (width[i] * width[j])
    return result
