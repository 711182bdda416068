"""Whether two relations say the same: sums compared term by term, dots array by array, at some numbers.

A rule's trace and what the rule gives for numbers are compared here without knowing which of the two is right, and
without needing values: whatever has none gets one, the same in both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr.visitor import ExpressionReplacementVisitor

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.model.arrays.blocks import TermBlock, block_of
from osilp_pyomo.model.arrays.trees import ArrayLeaf, ArrayProduct, rebuild, take_entries
from osilp_pyomo.model.formulas import CannotCompileError, block_values, group_terms
from osilp_pyomo.model.linear import leaves, potentially_variable, times

# Terms of a large row that are compared with the rule before it is compiled online. Where a hundredth of the terms is
# wrong, a sample misses them all with a probability of 0.99 ** 2063 < 1e-9.
SAMPLED_TERMS = math.ceil(math.log(1e-9) / math.log(0.99))


def same_row(traced: list[Side], relation: Any, numbers: StandIns) -> bool:
    """Whether a relation that a rule gave for numbers is the one of its trace at that point."""
    called = [Side.of(side) for side in relation.args]
    if len(traced) != len(called):
        return False
    if any(one.variables() != other.variables() for one, other in zip(traced, called, strict=True)):
        # Sides may have been turned, or terms have vanished: what counts is the row as a whole.
        return _same_sums(traced, called, numbers)
    for one, other in zip(traced, called, strict=True):
        for first, second in zip(one.blocks, other.blocks, strict=True):
            if not _same_blocks(first, second, numbers):
                return False
    for one, other in zip(traced, called, strict=True):
        if len(one.terms) != len(other.terms) or not _same_terms(one.terms, other.terms, numbers):
            # The same terms in another order are the same row.
            return _same_sums(traced, called, numbers, blocks=False)
    return True


def same_expression(traced: Any, given: Any, numbers: StandIns) -> bool:
    """Whether two expressions have the same value at some numbers."""
    return _same_sums([Side.of(traced)], [Side.of(given)], numbers)


class StandIns:
    """Numbers for the leaves of expressions: those of the point, the values of Params, and else random ones."""

    def __init__(self, placeholders: Sequence[Any], point: FloatArray) -> None:
        self._axes = {id(placeholder): axis for axis, placeholder in enumerate(placeholders)}
        self._point = point[None]
        self._known: dict[int, float] = dict(zip(self._axes, map(float, point), strict=True))
        self._rng = np.random.default_rng(20260)

    def of(self, leaf: Any) -> float:
        """The number of a leaf, the same each time."""
        if leaf.__class__ in native_numeric_types:
            return float(leaf)
        if id(leaf) not in self._known:
            free = leaf.is_variable_type() and not leaf.fixed
            value = None if free else leaf(exception=False)
            self._known[id(leaf)] = float(self._rng.uniform(0.3, 0.9) if value is None else value)
        return self._known[id(leaf)]

    def of_expression(self, expression: Any) -> float:
        """The value of an expression, by Pyomo's own evaluation."""
        if expression.__class__ in native_numeric_types:
            return float(expression)
        if not expression.is_expression_type():
            return self.of(expression)
        if expression.__class__ is numeric.MonomialTermExpression:
            coefficient, variable = expression.args
            if not any(id(leaf) in self._axes for leaf in leaves(coefficient)):
                number = pyo.value(coefficient, exception=False)
                if number is not None:
                    return float(number) * self.of(variable)
        substitute = {id(leaf): self.of(leaf) for leaf in leaves(expression)}
        return float(pyo.value(ExpressionReplacementVisitor(substitute=substitute).walk_expression(expression)))

    def of_terms(self, terms: list[tuple[float, Any]]) -> FloatArray:
        """The values of terms of a trace: of numbers times variables by numpy, of others by Pyomo."""
        values = np.empty(len(terms))
        linear: list[tuple[int, str, Any]] = []
        for place, (factor, term) in enumerate(terms):
            if term.__class__ is numeric.MonomialTermExpression:
                coefficient, variable = term.args
                values[place] = factor * self.of(variable)
                linear.append((place, "", coefficient))
            else:
                values[place] = factor * self.of_expression(term)
        try:
            groups = group_terms(linear, self._axes, "")
        except (CannotCompileError, DataError):
            return np.array([factor * self.of_expression(term) for factor, term in terms])
        for group in groups:
            values[group.columns] *= group.block(slice(None), self._point)[:, 0]
        return values

    def of_entries(self, tree: Any, count: int) -> FloatArray:
        """The entries of an array's tree, by numpy."""

        def number(leaf: Any) -> Any:
            if hasattr(leaf, "curve_table"):
                return leaf
            if leaf.__class__ is ArrayProduct:
                return ArrayLeaf(np.array([self.of_expression(entry) for entry in leaf.entries]) @ leaf.matrix)
            if leaf.__class__ is not ArrayLeaf:
                return self.of(leaf)
            if leaf.numbers or hasattr(leaf.values.flat[0], "curve_table"):
                return leaf
            found = [self.of_expression(each) for each in leaf.values.flat]
            return ArrayLeaf(np.array(found).reshape(leaf.values.shape))

        return block_values(TermBlock(rebuild(tree, number), (None,) * count), "")


@dataclass(frozen=True)
class Side:
    """A side of a relation as a sum: its blocks, and its terms one by one with their signs."""

    blocks: list[TermBlock]
    terms: list[tuple[float, Any]]

    @classmethod
    def of(cls, side: Any) -> Side:
        blocks: list[TermBlock] = []
        terms: list[tuple[float, Any]] = []
        stack: list[tuple[float, Any]] = [(1.0, side)]
        while stack:
            factor, node = stack.pop()
            if (block := block_of(node)) is not None:
                blocks.append(TermBlock(times(factor, block.tree), block.variables))
            elif isinstance(node, numeric.SumExpression) and node.is_potentially_variable():
                stack.extend((factor, part) for part in reversed(node.args))
            elif isinstance(node, numeric.NegationExpression):
                stack.append((-factor, node.args[0]))
            elif isinstance(node, numeric.ProductExpression) and node.args[0].__class__ in native_numeric_types:
                stack.append((factor * node.args[0], node.args[1]))
            elif getattr(node, "is_named_expression_type", bool)():
                stack.append((factor, node.args[0]))
            else:
                terms.append((factor, node))
        return cls(blocks, terms)

    def variables(self) -> list[list[int]]:
        """The ids of the variables of its blocks."""
        return [list(map(id, block.variables)) for block in self.blocks]

    def sum(self, numbers: StandIns, blocks: bool) -> float:
        """Its value."""
        total = sum(factor * numbers.of_expression(term) for factor, term in self.terms)
        for block in self.blocks if blocks else ():
            values = np.array([numbers.of(variable) for variable in block.variables])
            total += float(values @ numbers.of_entries(block.tree, len(values)))
        return float(total)


def _same_sums(traced: list[Side], called: list[Side], numbers: StandIns, blocks: bool = True) -> bool:
    """Whether two relations have the same values; of two sides their difference counts."""
    one, other = ([side.sum(numbers, blocks) for side in sides] for sides in (traced, called))
    if len(one) == 2:
        one, other = [one[0] - one[1]], [other[0] - other[1]]
    return np.allclose(one, other, rtol=1e-8, atol=1e-12 * np.abs(other).max())


def _same_terms(traced: list[Any], called: list[Any], numbers: StandIns) -> bool:
    """Whether a sample of terms has the same values."""
    count = min(SAMPLED_TERMS, len(traced))
    chosen = np.random.default_rng(20260).choice(len(traced), count, replace=False).tolist()
    # Terms without a variable are few, and may be a whole limit: all of them are looked at.
    alone = [k for k, (_, term) in enumerate(traced) if not potentially_variable(term)]
    if len(alone) <= SAMPLED_TERMS:
        chosen = list(dict.fromkeys([*chosen, *alone]))
    one = numbers.of_terms([traced[k] for k in chosen])
    other = [factor * numbers.of_expression(term) for factor, term in (called[k] for k in chosen)]
    return np.allclose(one, other, rtol=1e-8, atol=1e-12 * np.abs(other).max(initial=0.0))


def _same_blocks(traced: TermBlock, called: TermBlock, numbers: StandIns) -> bool:
    """Whether a sample of the coefficients of two blocks is the same; some of them by Pyomo's own evaluation."""
    count = len(traced.variables)
    chosen = np.random.default_rng(20260).choice(count, min(SAMPLED_TERMS, count), replace=False)
    one, other = (
        numbers.of_entries(take_entries(block.tree, chosen, (count,)), len(chosen)) for block in (traced, called)
    )
    some = min(20, len(chosen))
    by_pyomo = [numbers.of_expression(traced.coefficient(int(k))) for k in chosen[:some]]
    scale = np.abs(other).max(initial=0.0)
    return all(
        np.allclose(found, other[: len(found)], rtol=1e-8, atol=1e-12 * scale, equal_nan=True)
        for found in (one, by_pyomo)
    )
