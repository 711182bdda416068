"""Rules called with numbers: the rows of sampled families, and the check that a trace says what its rule says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo._reporting import warn_user
from osilp_pyomo.errors import ChangedRuleWarning, DataError, DeclarationError, ModelError, OsilpError
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.model.affine import AffineTrace, SharedVariables, affine_trace
from osilp_pyomo.model.arrays.blocks import rebuild_relation, with_arrays_of
from osilp_pyomo.model.columns import Columns
from osilp_pyomo.model.constraint.component import held
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.formulas import block_values, group_terms
from osilp_pyomo.model.linear import SKIP, RelationTerms, number_of, take_apart
from osilp_pyomo.model.same_row import Side, StandIns, same_row
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import TracedRows

# Columns whose coefficients are compared with Pyomo's own evaluation before a trace is trusted (beyond, numpy
# evaluates the rule's numbers), and terms of the rule's rows that are looked at in all.
_CHECKED_COLUMNS, _CHECKED_TERMS = 100, 600
# Points at which a trace is compared with its rule: of one family at most, and of a component's families together. A
# rule is one text for all of its families, so that each of very many needs few.
_CHECKED_POINTS, _CHECKED_TOGETHER, _FEWEST_POINTS = 12, 1200, 3
# Terms of a component's affine rows that are compared with the rule where no Param of the model can have changed.
TRIED_TERMS = 600


def sampled_row(
    data: SemiInfiniteConstraintData, point: FloatArray, columns: Columns
) -> tuple[dict[int, float], float, float]:
    """Coefficients by column and limits of the row that the rule gives at one point."""
    what = f"SemiInfiniteConstraint '{data.name}'"
    row = take_apart(data.at(*map(float, point)), what)
    lower = -np.inf if row.lower is None else sum(number_of(term, what, infinite=True) for term in row.lower)
    upper = np.inf if row.upper is None else sum(number_of(term, what, infinite=True) for term in row.upper)
    return columns.values(row.body, what), lower, upper


def refuse_unstable_rule(data: SemiInfiniteConstraintData, columns: Columns, domain: Domain) -> None:
    """Refuse a rule that gives another row when it is called again at the same point."""
    for point in compared_points(domain, 2):
        if sampled_row(data, point, columns) != sampled_row(data, point, columns):
            raise ModelError(
                f"SemiInfiniteConstraint '{data.name}': its rule gives different rows when it is called twice at "
                f"{domain.describe(point)}; draw random data before the model is declared."
            )


def disagreement(
    data: SemiInfiniteConstraintData, rows: TracedRows, columns: Columns, domain: Domain, names: Sequence[str]
) -> str | None:
    """Compare compiled rows with the rule called with numbers; what differs, or None."""
    family = Family(data.name, domain, rows, names)
    # Calling the rule is what costs: more points where it has few terms and few families.
    most = int(np.clip(_CHECKED_TOGETHER // len(data.parent_component()), _FEWEST_POINTS, _CHECKED_POINTS))
    points = compared_points(domain, int(np.clip(_CHECKED_TERMS // max(1, len(rows.columns)), 1, most)))
    matrix, limits = family.matrix_unchecked(points), np.stack(rows.limits(points), axis=1)
    for point, coefficients, sides in zip(points, matrix, limits, strict=True):
        row = _row_with_numbers(data, point, columns)
        if row is None:
            continue
        reason = _difference(
            row, dict(zip(rows.columns.tolist(), coefficients, strict=True)), sides, data, columns, names
        )
        if reason is not None:
            return f"at {domain.describe(point)} {reason}"
    return None


def _difference(
    row: RelationTerms,
    coefficients: Mapping[int, float],
    limits: FloatArray,
    data: SemiInfiniteConstraintData,
    columns: Columns,
    names: Sequence[str],
) -> str | None:
    """What differs between the row that a rule gives at a point, and coefficients by column and limits there."""
    given = _coefficients_at(row, columns)
    compared = sorted(given.keys() | coefficients.keys())
    exact = np.array([given.get(column, 0.0) for column in compared])
    traced = np.array([coefficients.get(column, 0.0) for column in compared])
    # Pyomo turns the sides of an equation as it likes.
    sign = -1.0 if data.is_equation and exact @ traced < 0 else 1.0
    exact *= sign
    size = float(np.abs(exact[np.isfinite(exact)]).max(initial=0.0))
    # Also where the sum of a coefficient's parts cancels, rounding stays far below this.
    same = _close(exact, traced, size)
    if not same.all():
        k = int(np.argmin(same))
        if compared[k] < 0:
            return "the rule has variables that the trace has not"
        return f"the rule gives {names[compared[k]]} the coefficient {exact[k]:g}, the trace {traced[k]:g}"
    what = f"SemiInfiniteConstraint '{data.name}'"
    for terms, limit in zip((row.lower, row.upper), limits.tolist(), strict=True):
        if terms is None:
            if math.isfinite(limit):
                return "the trace limits the row on a side that the rule leaves open"
            continue
        right = sign * sum(_loose_number(term, what) for term in terms)
        if not _close(np.array(right), np.array(limit), size):
            return f"the rule's right-hand side is {right:g}, the trace's {limit:g}"
    return None


def _close(exact: FloatArray, traced: FloatArray, size: float) -> BoolArray:
    """Whether numbers are the same but for rounding; infinite ones, and those that are none, if they are equal."""
    with np.errstate(all="ignore"):
        near = np.abs(exact - traced) <= 1e-12 * size + 1e-8 * np.abs(traced)
    finite = np.isfinite(exact) & np.isfinite(traced)
    same: BoolArray = np.where(finite, near, (exact == traced) | (np.isnan(exact) & np.isnan(traced)))
    return same


def same_rows(one: TracedRows, other: TracedRows, domain: Domain) -> bool:
    """Whether two rows have the same coefficients and limits at some points."""
    points = compared_points(domain, 4)
    first, second = (Family("", domain, rows, ()).matrix_unchecked(points) for rows in (one, other))
    return (
        np.array_equal(one.columns, other.columns)
        and np.array_equal(first, second, equal_nan=True)
        and all(map(np.array_equal, one.limits(points), other.limits(points)))
    )


def still_affine(
    data: SemiInfiniteConstraintData, domain: Domain, tried: bool, known: SharedVariables, noted: bool = False
) -> tuple[AffineTrace | None, bool]:
    """The numbers of a row that is affine in an uncertain vector, as its rule gives them now; None if it is not.

    ``tried`` asks to compare them with the rule called with numbers; the second answer is whether they have changed.
    ``noted`` asks for a row that can be read again.
    """
    owner = data.parent_component()
    trace = owner.read_affine(data.trace, noted) if data.affine is None else data.affine.unfixed(known)
    if trace is None or not tried or _same_numbers(data, trace, domain):
        return trace, False
    # The rule may have read a Param's value when it was traced: trace it again with today's.
    fresh, _ = owner._trace(data.index(), data.name)
    again = None if fresh is None else owner.read_affine(fresh)
    if again is None or not _same_numbers(data, again, domain):
        return None, False
    # Arrays of a dot are those of its declaration, whatever has become of them.
    kept = owner.read_affine(with_arrays_of(fresh, data.trace))
    if kept is not None and kept.same(trace):
        return trace, False
    return kept, True


def warn_of_change(changed: Sequence[SemiInfiniteConstraintData]) -> None:
    """Tell that a rule's data has changed since it was declared: an ordinary Constraint would have kept what it was."""
    name, told = changed[0].name, "its rule gives another row now than when it was declared, and the row of now is used"
    if len(changed) > 1:
        owner = changed[0].parent_component()
        name = owner.name
        told = (
            f"its rule gives other rows now than when it was declared, in {len(changed)} of {len(owner)} families, and "
            "the rows of now are used"
        )
    warn_user(
        f"SemiInfiniteConstraint '{name}': {told}. It reads data that has changed, such as a loop's variable: bind it "
        "by rule=lambda m, u, i=i: ..., or use a mutable Param.",
        ChangedRuleWarning,
    )


def _generic_vector(body: Body) -> FloatArray:
    """A vector of a set with as few zeros as it has, for where an entry is zero its coefficients do not show."""
    cloud = body.cloud(8, seed=20260)
    if body.convex:
        # A mixture of all of them: an extreme point may be the origin.
        return np.random.default_rng(20260).dirichlet(np.ones(len(cloud))) @ cloud
    return cloud[np.argmax(np.count_nonzero(cloud, axis=1))]


def _same_numbers(data: SemiInfiniteConstraintData, trace: AffineTrace, domain: Domain) -> bool:
    """Whether a rule called with numbers gives the row of its trace at some vector of the set."""
    assert domain.body is not None
    point = _generic_vector(domain.body)
    relation = data.at(*map(float, point))
    called = affine_trace(relation, {})
    if called is None:
        return False
    if any(variable.model() is not data.model() for variable in called.variables[:1]):
        # In a clone, a rule that names the original model speaks of the original's variables.
        return True
    expected, found = trace.at(point), called.at(np.empty(0))
    keys = list(expected[0].keys() | found[0].keys())
    traced, given = (np.array([*(row[0].get(key, 0.0) for key in keys), *row[1:]]) for row in (expected, found))
    small = 1e-12 * np.abs(given[:-2]).max(initial=0.0)
    if data.is_equation and traced @ given < 0:
        # Pyomo turns the sides of an equation as it likes.
        given = -given
    return np.allclose(traced, given, rtol=1e-8, atol=small)


def refuse_other_trace(data: SemiInfiniteConstraintData, domain: Domain) -> None:
    """Refuse a rule whose trace, at some numbers, is another row than the rule gives for those numbers.

    Unlike :func:`disagreement` it needs no values of Params, and no linear row: whatever has no value gets one here.
    Of a row with many terms a sample is compared, large enough that one where a hundredth of the terms is wrong is
    found but for a chance of 1e-9.
    """
    # Terms are walked one by one: fewer points where there are many.
    sides = [Side.of(side) for side in data.trace.args]
    terms = max(len(side.terms) + sum(len(block.variables) for block in side.blocks) for side in sides)
    for point in compared_points(domain, 4 if terms < _CHECKED_TERMS else 1):
        try:
            relation = data.at(*map(float, point))
        except DeclarationError:
            # A Profile that has no values yet: there is nothing to compare with.
            return
        except OsilpError:
            raise
        except (ArithmeticError, ValueError):
            # Such as the log of a negative number, which the data will meet, or not.
            continue
        try:
            same = same_row(sides, relation, StandIns(data.parent_component().placeholders, point))
        except DeclarationError:
            return
        except (ArithmeticError, ValueError):
            continue
        if not same and not _arrays_changed(data, relation, point):
            raise ModelError(
                f"SemiInfiniteConstraint '{data.name}': traced with a symbol its rule gives another row than called "
                f"with a number, at {domain.describe(point)}; online needs a rule that can be traced, written with "
                "Pyomo functions of the index and without looking at values."
            )


def _arrays_changed(data: SemiInfiniteConstraintData, relation: Any, point: FloatArray) -> bool:
    """Whether a rule gives another row only because arrays of its dots have changed since it was declared."""
    fresh, _ = data.parent_component()._trace(data.index(), data.name)
    if fresh is None or fresh is SKIP:
        return False
    numbers = StandIns(data.parent_component().placeholders, point)
    kept = with_arrays_of(fresh, data.trace)
    return (
        kept is not fresh
        and same_row([Side.of(side) for side in fresh.args], relation, numbers)
        and same_row([Side.of(side) for side in kept.args], data.trace, numbers)
    )


def _coefficients_at(row: RelationTerms, columns: Columns) -> dict[int, float]:
    """Coefficients by column of a row without an index; many of them by numpy, some by Pyomo itself."""
    blocks: dict[int, float] = {}
    for block in row.body.blocks:
        found = [columns.of.get(id(each), -1) for each in block.variables]
        blocks.update(zip(found, block_values(block, "").tolist(), strict=True))
    pairs = list(row.body.items())
    if len(pairs) <= _CHECKED_COLUMNS:
        return blocks | {columns.of.get(id(variable), -1): _loose_number(part, "") for variable, part in pairs}
    groups = group_terms([(columns.of.get(id(variable), -1), "", part) for variable, part in pairs], {}, "")
    result: dict[int, float] = blocks
    for group in groups:
        values = group.block(slice(None), np.zeros((1, 0)))[:, 0]
        result.update(zip(group.columns.tolist(), values.tolist(), strict=True))
    chosen = np.random.default_rng(0).choice(len(pairs), _CHECKED_COLUMNS, replace=False)
    result.update({columns.of.get(id(pairs[k][0]), -1): _loose_number(pairs[k][1], "") for k in chosen})
    return result


def _loose_number(expression: Any, what: str) -> float:
    """Value of a coefficient; nan where Pyomo has none (a power of a negative number, a pole)."""
    try:
        return number_of(expression, what, infinite=True)
    except (DataError, ArithmeticError, ValueError, TypeError):
        return float("nan")


def _row_with_numbers(data: SemiInfiniteConstraintData, point: FloatArray, columns: Columns) -> RelationTerms | None:
    """The row that the rule gives for numbers; None where it has no value."""
    what = f"SemiInfiniteConstraint '{data.name}'"
    try:
        row = take_apart(data.at(*map(float, point)), what)
    except OsilpError:
        raise
    except (ArithmeticError, ValueError):
        # Such as the log of a negative number; the scan will say so if it matters.
        return None
    if columns.foreign(row.body) is not None:
        # In a clone, a rule that names the original model speaks of the original's variables. The clone's trace
        # is right; what can be compared is the compiled row with the trace itself.
        at_point = dict(zip(map(id, data.parent_component().placeholders), map(held, map(float, point)), strict=True))
        return take_apart(rebuild_relation(data.trace, lambda leaf: at_point.get(id(leaf), leaf)), what)
    return row


def compared_points(domain: Domain, count: int) -> FloatArray:
    """Points at which rules are called with numbers: inner ones in random strata, then both ends."""
    if domain.body is not None:
        return domain.body.cloud(4 * max(count, 4), seed=20260)[-count:]
    low = np.where(np.isfinite(domain.lower), domain.lower, np.minimum(domain.upper, 10.0) - 10.0)
    low = np.where(np.isfinite(low), low, -10.0)
    high = np.where(np.isfinite(domain.upper), domain.upper, low + 20.0)
    strata = _latin_hypercube(max(count, 16), domain.dimension)
    unit = np.concatenate(
        [strata[: max(1, count - 2)], np.zeros((1, domain.dimension)), np.ones((1, domain.dimension))]
    )
    # The sum may be beyond the end by its rounding.
    points = np.clip(low + unit[:count] * (high - low), low, high)
    inside = points[domain.contains(points)]
    if len(inside):
        return inside
    # A small 'where': the rule outside it is compared instead, which is as good.
    return points


def _latin_hypercube(count: int, dimension: int) -> FloatArray:
    """Points of the unit box, one in each of ``count`` equal strata along every axis."""
    random = np.random.default_rng(20260)
    strata = random.permuted(np.tile(np.arange(count), (dimension, 1)), axis=1).T
    return (strata + random.random((count, dimension))) / count
