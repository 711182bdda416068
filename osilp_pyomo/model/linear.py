"""Pyomo expressions as linear terms: coefficient * variable, with the coefficients left as they are.

Pyomo's own standard representation evaluates coefficients, or misses terms whose coefficients are conditions;
here anything without a free variable is a coefficient.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types, native_types
from pyomo.core.base.constraint import Constraint
from pyomo.core.base.set import SetData
from pyomo.core.base.var import ScalarVar, VarData
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational
from pyomo.core.expr.numvalue import NumericValue
from pyomo.dae import ContinuousSet

from osilp_pyomo.errors import DataError, DeclarationError, ModelError, NotLinearError, OsilpError
from osilp_pyomo.model.arrays.blocks import TermBlock, block_of
from osilp_pyomo.model.arrays.trees import scaled_tree


@dataclass
class LinearTerms:
    """``sum(coefficients) * variable`` terms and constant terms; nothing is evaluated.

    ``blocks`` are terms that share one tree; a variable stands in one of them or among ``coefficients``, and
    ``variables`` holds all. ``nonlinear`` holds pairs (factor, node) that are not linear, where those are asked for.
    """

    variables: dict[int, Any] = field(default_factory=dict)
    coefficients: dict[int, list[Any]] = field(default_factory=dict)
    blocks: list[TermBlock] = field(default_factory=list)
    # For each block, how many coefficients its variables had before it, where they had some.
    before: list[dict[int, int]] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    nonlinear: list[tuple[Any, Any]] = field(default_factory=list)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Pairs of variable and its whole coefficient, for variables that stand in no block."""
        for key, parts in self.coefficients.items():
            whole = parts[0]
            for part in parts[1:]:
                whole = whole + part
            yield self.variables[key], whole

    def add_block(self, block: TermBlock, factor: Any) -> None:
        """Add the terms of a block times a factor; those of fixed variables are constants."""
        if any(variable.fixed for variable in block.variables):
            places = range(len(block.variables))
            for place in places:
                variable = block.variables[place]
                if variable.fixed:
                    self.constants.append(times(factor, times(block.coefficient(place), variable)))
            block = block.take(np.array([k for k in places if not block.variables[k].fixed], dtype=np.int64))
        if block.variables:
            known = self.coefficients
            keys = map(id, block.variables) if known else ()
            self.before.append({key: len(known[key]) for key in keys if key in known})
            self.blocks.append(TermBlock(scaled_tree(factor, block.tree), block.variables))
            self.variables.update(zip(map(id, block.variables), block.variables, strict=True))

    def expanded(self) -> LinearTerms:
        """The same terms without blocks."""
        for block in self.blocks:
            for place, variable in enumerate(block.variables):
                self.coefficients.setdefault(id(variable), []).append(block.coefficient(place))
        self.blocks, self.before = [], []
        return self

    def settle(self) -> None:
        """Take variables that stand in several places out of their blocks, so that each has one coefficient."""
        if len(self.coefficients) + sum(len(block.variables) for block in self.blocks) == len(self.variables):
            return
        places = [*self.coefficients, *(id(variable) for block in self.blocks for variable in block.variables)]
        seen: set[int] = set()
        repeated = {key for key in places if key in seen or seen.add(key)}  # type: ignore[func-returns-value]
        kept = []
        inserted: dict[int, int] = {}
        for block, before in zip(self.blocks, self.before, strict=True):
            rest = []
            for place, variable in enumerate(block.variables):
                key = id(variable)
                if key in repeated:
                    # Where the block stood among the variable's other coefficients.
                    at = before.get(key, 0) + inserted.get(key, 0)
                    inserted[key] = inserted.get(key, 0) + 1
                    self.coefficients.setdefault(key, []).insert(at, block.coefficient(place))
                else:
                    rest.append(place)
            kept.append((block.take(np.array(rest, dtype=np.int64)), before))
        self.blocks = [block for block, _ in kept if block.variables]
        self.before = [before for block, before in kept if block.variables]


@dataclass(frozen=True, eq=False)
class Whose:
    """A component as errors name it; its name is asked for when there is one, for thousands of them take long."""

    kind: str
    component: Any

    def __str__(self) -> str:
        return f"{self.kind} '{self.component.name}'"


# The classes of most variables, which need no look at what else they may be.
_PLAIN_VARIABLES = {ScalarVar, VarData}


def linear_terms(
    expression: Any, what: object, sign: int = 1, into: LinearTerms | None = None, *, keep_nonlinear: bool = False
) -> LinearTerms:
    """Split an expression that is linear in its free variables.

    Parameters
    ----------
    expression : Pyomo expression or number
    what : text, or what turns into it
        Whose expression it is, for the error.
    sign : 1 or -1
        Factor of the whole expression.
    into : LinearTerms, optional
        Terms to add to.
    keep_nonlinear : bool
        Keep terms that are not linear apart instead of refusing them.

    Raises
    ------
    NotLinearError
        Names the first term that is not linear.
    """
    terms = LinearTerms() if into is None else into
    variables, coefficients = terms.variables, terms.coefficients
    # With each node whether it is known to hold a free variable, which takes a walk through it to see.
    stack: list[tuple[Any, Any, bool]] = [(expression, sign, False)]
    while stack:
        node, factor, free = stack.pop()
        kind = node.__class__
        if kind is numeric.MonomialTermExpression and not node._args_[1].fixed:
            number, variable = node._args_
            variables[id(variable)] = variable
            plain = number.__class__ in native_numeric_types and factor.__class__ in native_numeric_types
            coefficients.setdefault(id(variable), []).append(factor * number if plain else times(factor, number))
        elif kind in _PLAIN_VARIABLES and not node.fixed:
            variables[id(node)] = node
            coefficients.setdefault(id(node), []).append(factor)
        elif kind in native_numeric_types or not (free or has_free_variable(node)):
            if kind not in native_numeric_types or node != 0:
                terms.constants.append(times(factor, node))
        elif not node.is_expression_type():
            variables[id(node)] = node
            coefficients.setdefault(id(node), []).append(factor)
        elif (block := block_of(node)) is not None:
            terms.add_block(block, factor)
        elif isinstance(node, numeric.SumExpression):
            stack.extend([(part, factor, False) for part in reversed(node.args)])
        elif isinstance(node, numeric.NegationExpression):
            stack.append((node.args[0], times(-1, factor), True))
        elif node.is_named_expression_type():
            stack.append((_content(node, what), factor, False))
        elif isinstance(node, numeric.ProductExpression):
            left, right = node.args
            if left.__class__ in native_numeric_types or not has_free_variable(left):
                stack.append((right, times(factor, left), True))
            elif not has_free_variable(right):
                stack.append((left, times(factor, right), True))
            elif keep_nonlinear:
                terms.nonlinear.append((factor, node))
            else:
                raise _not_linear(what, node)
        elif isinstance(node, numeric.DivisionExpression) and not has_free_variable(node.args[1]):
            stack.append((node.args[0], times(factor, 1 / node.args[1]), True))
        elif isinstance(node, numeric.PowExpression) and _is_one(node.args[1]):
            stack.append((node.args[0], factor, True))
        elif isinstance(node, numeric.Expr_ifExpression) and not has_free_variable(node.args[0]):
            try:
                _branch_terms(node, factor, what, terms)
            except NotLinearError:
                if not keep_nonlinear:
                    raise
                terms.nonlinear.append((factor, node))
        elif keep_nonlinear:
            terms.nonlinear.append((factor, node))
        else:
            raise _not_linear(what, node)
    if terms.blocks:
        terms.settle()
    return terms


def _content(node: Any, what: object) -> Any:
    """What a named Expression holds."""
    if node.args[0] is None:
        raise DataError(f"{what}: the Expression '{node.name}' is empty; give it an expression before solving.")
    return node.args[0]


def _branch_terms(node: Any, factor: Any, what: object, into: LinearTerms) -> None:
    """``Expr_if(test, then, other)`` with variables in its branches: the test moves to the coefficients."""
    test, then, other = node.args
    yes, no = linear_terms(then, what).expanded(), linear_terms(other, what).expanded()
    yes_by_id = {id(variable): (variable, coefficient) for variable, coefficient in yes.items()}
    no_by_id = {id(variable): (variable, coefficient) for variable, coefficient in no.items()}
    for key in dict.fromkeys([*yes_by_id, *no_by_id]):
        variable = (yes_by_id.get(key) or no_by_id[key])[0]
        choice = numeric.Expr_ifExpression((test, yes_by_id.get(key, (None, 0))[1], no_by_id.get(key, (None, 0))[1]))
        into.variables[key] = variable
        into.coefficients.setdefault(key, []).append(times(factor, choice))
    if yes.constants or no.constants:
        choice = numeric.Expr_ifExpression((test, sum(yes.constants), sum(no.constants)))
        into.constants.append(times(factor, choice))


def _not_linear(what: object, node: Any) -> NotLinearError:
    return NotLinearError(
        f"{what}: it is not linear in the variables (found {short_text(str(node))}); only linear rows and objectives "
        "can be used here. Keep products and nonlinear functions of Vars out of it; convex ones are solved by "
        "osilp.solve(model), and if they belong to arrivals by compile_online(model, stages=...)."
    )


def has_free_variable(node: Any) -> bool:
    """Whether a Var that is not fixed occurs; also where Pyomo calls the node "potentially variable"."""
    if node.__class__ is numeric.SumExpression:
        # In most sums it is one of the terms.
        for part in node.args:
            if part.__class__ is numeric.MonomialTermExpression:
                part = part._args_[1]
            if part.__class__ in _PLAIN_VARIABLES and not part.fixed:
                return True
    if node.__class__ in native_types or not node.is_potentially_variable():
        # A relation between two pure data expressions calls itself not potentially variable: right.
        return False
    stack = [node]
    while stack:
        current = stack.pop()
        if current.__class__ in native_types:
            continue
        if current.__class__ is numeric.MonomialTermExpression:
            if not current._args_[1].fixed:
                return True
        elif current.is_expression_type():
            block = block_of(current)
            stack.extend(current.args if block is None else block.variables)
        elif current.is_variable_type() and not current.fixed:
            return True
    return False


def free_variables(expression: Any) -> Iterator[Sequence[Any]]:
    """The variables of an expression that are not fixed, from left to right, those of a block together."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if node.__class__ in native_types:
            continue
        if not node.is_expression_type():
            if node.is_variable_type() and not node.fixed:
                yield (node,)
        elif (block := block_of(node)) is not None:
            fixed = any(variable.fixed for variable in block.variables)
            yield [variable for variable in block.variables if not variable.fixed] if fixed else block.variables
        elif node.is_potentially_variable() or not node.is_numeric_type():
            stack.extend(reversed(node.args))


def _is_one(node: Any) -> bool:
    return node.__class__ in native_numeric_types and node == 1


def times(factor: Any, node: Any) -> Any:
    """A product, without factors of 1."""
    if _is_one(factor):
        return node
    if _is_one(node):
        return factor
    if _is_minus_one(factor) and _is_minus_one(node):
        return 1
    return factor * node


def _is_minus_one(node: Any) -> bool:
    return node.__class__ in native_numeric_types and node == -1


def short_text(text: str, length: int = 160) -> str:
    """A text cut to a length that fits into an error."""
    return text if len(text) <= length else f"{text[:length]}..."


def number_of(expression: Any, what: object, infinite: bool = False) -> float:
    """Value of a coefficient; None and nan are refused, and infinity unless it is a limit."""
    number: Any
    if expression.__class__ in native_numeric_types:
        number = float(expression)
        if math.isfinite(number):
            return number
    else:
        number = pyo.value(expression, exception=False)
    if number is None:
        missing = next((leaf for leaf in leaves(expression) if leaf(exception=False) is None), None)
        if missing is None:
            _raise_own_error(expression)
        name = str(expression) if missing is None else missing.name
        raise DataError(f"{what}: '{name}' has no value; give it one before solving.")
    if np.isnan(number) or (np.isinf(number) and not infinite):
        raise DataError(f"{what}: the coefficient {expression} is {number}; every coefficient must be a finite number.")
    return float(number)


def _raise_own_error(expression: Any) -> None:
    """What a part of an expression says itself of why it has no value."""
    try:
        expression()
    except OsilpError:
        raise
    except Exception:  # such as the logarithm of a negative number
        return


def leaves(expression: Any) -> Iterator[Any]:
    """Variables and Params of an expression."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if node is None or node.__class__ in native_types:
            continue
        if (block := block_of(node)) is not None:
            yield from block.leaves()
        elif node.is_expression_type():
            stack.extend(node.args)
        else:
            yield node


SKIP = Constraint.Skip
# Terms of a long sum shown in front of the dots.
_SHOWN_TERMS = 2


def checked_relation(relation: Any, name: str) -> Any:
    """The relation a rule returned, if it is one that can hold for every point of an index."""
    what = f"SemiInfiniteConstraint '{name}'"
    if isinstance(relation, tuple):
        if len(relation) == 3:
            low, body, high = relation
            numbers = low.__class__ in native_numeric_types and high.__class__ in native_numeric_types
            if numbers and low > high and potentially_variable(body):
                # A row that nothing satisfies; inequality() would make a plain False of it.
                relation = relational.RangedExpression((low, body, high), False)
            else:
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
        return relation
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
    """An expression as text; of long sums the first terms and the last one, of a dot its formula."""
    return _sum_text(expression) if _is_long_sum(expression) else _text(expression)


def _is_long_sum(node: Any) -> bool:
    return isinstance(node, numeric.SumExpression) and block_of(node) is None and len(node.args) > _SHOWN_TERMS + 2


def _sum_text(node: Any) -> str:
    parts = node.args
    first, *shown = (_text(part) for part in (*parts[:_SHOWN_TERMS], parts[-1]))
    signed = [f"- {text[1:].lstrip()}" if text.startswith("-") else f"+ {text}" for text in shown]
    return f"{first} {' '.join(signed[:-1])} + ... {signed[-1]}  [{len(parts)} terms]"


class _Label(NumericValue):
    """A leaf that prints as a text."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def getname(self, *_: Any, **__: Any) -> str:
        return self.text


# A number of many digits; and what stands in brackets, which is a name.
_LONG_NUMBER = re.compile(r"\[[^\]]*\]|(?<![\w.])\d+\.\d{7,}(?:e[+-]?\d+)?")


def _text(expression: Any) -> str:
    """The text of an expression; its numbers with six digits, as formulas are read and not computed with."""
    return _LONG_NUMBER.sub(_six_digits, str(_with_labels(expression)))


def _six_digits(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("[") else f"{float(found[0]):.6g}"


def _with_labels(node: Any) -> Any:
    """An expression with a short text in place of each dot and each long sum; one without any is left as it is."""
    if (block := block_of(node)) is not None:
        return _Label(block.text())
    if node.__class__ in native_types or not node.is_expression_type():
        return node
    if _is_long_sum(node):
        return _Label(f"({_sum_text(node)})")
    parts = node.args
    labelled = [_with_labels(part) for part in parts]
    if all(new is old for new, old in zip(labelled, parts, strict=True)):
        return node
    return node.create_node_with_local_data(labelled if isinstance(node, numeric.SumExpression) else tuple(labelled))


@dataclass(frozen=True, eq=False)
class RelationTerms:
    """A relation decomposed: ``lower <= body <= upper``; a limit is a list of terms, or None."""

    body: LinearTerms
    lower: list[Any] | None
    upper: list[Any] | None

    def terms(self) -> LinearTerms:
        """The terms with variables."""
        return self.body


def take_apart(relation: Any, what: str, *, keep_nonlinear: bool = False) -> RelationTerms:
    """Split a relation that is linear in its free variables; ``what`` is whose it is, for the errors.

    Terms that are not linear are kept apart in its body, where that is asked for.
    """
    if isinstance(relation, relational.RangedExpression):
        low, middle, high = relation.args
        body = linear_terms(middle, what, keep_nonlinear=keep_nonlinear)
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
        body = linear_terms(left, what, keep_nonlinear=keep_nonlinear)
        linear_terms(right, what, sign=-1, into=body, keep_nonlinear=keep_nonlinear)
        moved = [-constant for constant in body.constants]
        result = RelationTerms(body, None, moved)
        if not any(True for _ in body.variables) and not body.nonlinear:
            raise ModelError(f"{what}: the row holds no variable that is free; deactivate it, or unfix one.")
        if reads_as_lower(relation):
            result = _flipped(result)
        if isinstance(relation, relational.EqualityExpression):
            limit = result.upper if result.lower is None else result.lower
            result = RelationTerms(result.body, limit, limit)
    refuse_continuous_variables(body.variables.values(), what)
    return result


def refuse_continuous_variables(variables: Iterable[Any], what: str) -> None:
    """Refuse variables that are functions of a continuous index."""
    for variable in {id(variable.parent_component()): variable for variable in variables}.values():
        _refuse_continuous_variable(variable, what)


def reads_as_lower(relation: Any) -> bool:
    """Whether the user wrote ``>=``: Pyomo turns the sides round, so the variables stand on the right.

    Expressions of data, fixed variables and conditions, which Pyomo takes for variable, count as data.
    """
    left, right = relation.args
    return not has_free_variable(left) and has_free_variable(right)


def potentially_variable(node: Any) -> bool:
    """Whether Pyomo takes a node for variable."""
    return node.__class__ not in native_numeric_types and node.is_potentially_variable()


def _flipped(row: RelationTerms) -> RelationTerms:
    """``-body <= b`` as ``body >= -b``, so that the price has the sign of the user's right-hand side."""
    negated = LinearTerms(
        row.body.variables,
        {key: [-part for part in parts] for key, parts in row.body.coefficients.items()},
        [TermBlock(scaled_tree(-1, block.tree), block.variables) for block in row.body.blocks],
        row.body.before,
        nonlinear=[(times(-1, factor), node) for factor, node in row.body.nonlinear],
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
                "is a function of the index is declared as osilp.FunctionVar(over=..., basis=...), and written as "
                "m.curve(u)."
            )
