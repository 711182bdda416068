"""What a rule returns: a relation, checked, written out, and taken apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.constraint import Constraint
from pyomo.core.base.set import SetData
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational
from pyomo.dae import ContinuousSet

from osilp_pyomo.errors import DeclarationError, ModelError
from osilp_pyomo.linear import LinearTerms, linear_terms

SKIP = Constraint.Skip
# Terms of a long sum shown in front of the dots.
_SHOWN_TERMS = 2


def checked_relation(relation: Any, name: str) -> Any:
    """The relation a rule returned, if it is one that can hold for every point of an index."""
    what = f"SemiInfiniteConstraint '{name}'"
    if isinstance(relation, tuple):
        if len(relation) == 3:
            low, body, high = relation
            relation = relational.inequality(low, body, high)
        elif len(relation) == 2:
            relation = relational.EqualityExpression(relation)
    if relation is None:
        raise DeclarationError(f"{what}: its rule returned None; end it with 'return left <= right'.")
    if relation is SKIP:
        raise DeclarationError(
            f"{what}: its rule returns Constraint.Skip at some points of the index; say where the row holds by "
            "where=..."
        )
    if relation.__class__ is bool or isinstance(relation, relational.TrivialRelationalExpression):
        raise DeclarationError(
            f"{what}: its rule returned {relation}, which holds no variable; return a relation such as left <= right, "
            "or Constraint.Skip for no row."
        )
    if isinstance(relation, relational.EqualityExpression):
        raise DeclarationError(
            f"{what}: '==' for every point of an index leaves no room to decide (found {relation_text(relation)}); "
            "use a ranged row (low, body, high), or match the functions' parameters by ordinary constraints."
        )
    if not isinstance(relation, relational.InequalityExpression | relational.RangedExpression):
        raise DeclarationError(
            f"{what}: its rule must return a relation such as left <= right (got {type(relation).__name__})."
        )
    strict = relation.strict
    if any(strict) if isinstance(strict, tuple) else strict:
        raise DeclarationError(
            f"{what}: '<' and '>' describe open sets (found {relation_text(relation)}); use <= or >=."
        )
    return relation


def relation_text(relation: Any) -> str:
    """A relation as mathematics, long sums cut short."""
    if isinstance(relation, relational.RangedExpression):
        return " <= ".join(expression_text(part) for part in relation.args)
    sign = "==" if isinstance(relation, relational.EqualityExpression) else "<" if relation.strict else "<="
    return f" {sign} ".join(expression_text(part) for part in relation.args)


def expression_text(expression: Any) -> str:
    """An expression as text; of a long sum the first terms and the last one."""
    if isinstance(expression, numeric.SumExpression) and expression.nargs() > _SHOWN_TERMS + 2:
        shown = [str(part) for part in expression.args[:_SHOWN_TERMS]]
        return f"{' + '.join(shown)} + ... + {expression.args[-1]}  [{expression.nargs()} terms]"
    return str(expression)


@dataclass(frozen=True, eq=False)
class RelationTerms:
    """A relation taken apart: ``lower <= body <= upper``; a limit is a list of terms, or None."""

    body: LinearTerms
    lower: list[Any] | None
    upper: list[Any] | None

    def terms(self) -> LinearTerms:
        """The terms with variables."""
        return self.body


def take_apart(relation: Any, what: str) -> RelationTerms:
    """Split a relation that is linear in its free variables; ``what`` is whose it is, for the errors."""
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
        result = RelationTerms(body, limits[0], limits[1])
    else:
        left, right = relation.args
        body = linear_terms(left, what)
        linear_terms(right, what, sign=-1, into=body)
        moved = [-constant for constant in body.constants]
        result = RelationTerms(body, None, moved)
        if not any(True for _ in body.variables):
            raise ModelError(f"{what}: the row holds no variable that is free; deactivate it, or unfix one.")
        if reads_as_lower(relation):
            result = _flipped(result)
    refuse_continuous_variables(body.variables.values(), what)
    return result


def refuse_continuous_variables(variables: Iterable[Any], what: str) -> None:
    """Refuse variables that are functions of a continuous index."""
    for variable in {id(variable.parent_component()): variable for variable in variables}.values():
        _refuse_continuous_variable(variable, what)


def reads_as_lower(relation: Any) -> bool:
    """Whether the user wrote ``>=``: Pyomo turns the sides round, so the variables stand on the right."""
    left, right = relation.args
    return not _potentially_variable(left) and _potentially_variable(right)


def _potentially_variable(node: Any) -> bool:
    return node.__class__ not in native_numeric_types and node.is_potentially_variable()


def _flipped(row: RelationTerms) -> RelationTerms:
    """``-body <= b`` as ``body >= -b``, so that the price has the sign of the user's right-hand side."""
    negated = LinearTerms(
        row.body.variables,
        {key: [-part for part in parts] for key, parts in row.body.coefficients.items()},
    )
    assert row.upper is not None
    return RelationTerms(negated, [-term for term in row.upper], None)


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
