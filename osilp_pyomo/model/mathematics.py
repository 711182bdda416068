"""Expressions of Pyomo as mathematics: trees of Python's grammar, which are written as LaTeX or MathML.

Pyomo's own printer knows exact classes only: neither the nodes of Profiles, integrals and arrays nor a component that
holds at every point. Here whatever is not known stands as the text that it prints.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.common.numeric_types import native_types
from pyomo.core.expr import logical_expr as logical
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo._displays import MOST_SHOWN
from osilp_pyomo.model.arrays.blocks import block_of
from osilp_pyomo.show.cards.card import Card, escaped
from osilp_pyomo.show.latex import DOTS, latex, words
from osilp_pyomo.show.mathml import formula_line, tree_mathml

# Letters of a set without a name.
_SHORT = 40
# Terms of a long sum that are written at its beginning.
_TERMS = 3
_OPERATORS: list[tuple[Any, ast.operator]] = [
    (numeric.ProductExpression, ast.Mult()),
    (numeric.DivisionExpression, ast.Div()),
    (numeric.PowExpression, ast.Pow()),
]
_CALLS: list[tuple[Any, str]] = [
    (numeric.AbsExpression, "abs"),
    (numeric.MaxExpression, "max"),
    (numeric.MinExpression, "min"),
]


def tree_of(expression: Any) -> ast.expr:
    """An expression or a relation of Pyomo as a tree; long sums are cut short."""
    try:
        return _tree(expression)
    except RecursionError:
        return ast.Constant(str(expression))


def _tree(node: Any) -> ast.expr:
    if node.__class__ in native_types or not hasattr(node, "is_expression_type"):
        return _number(node)
    if (block := block_of(node)) is not None:
        return _parsed(block.text())
    if not node.is_expression_type():
        return _leaf(node)
    if node.is_named_expression_type():
        return _tree(node.expr)
    if isinstance(node, relational.RelationalExpression):
        return _relation(node)
    if isinstance(node, numeric.SumExpression):
        return _sum(list(node.args))
    if isinstance(node, numeric.NegationExpression):
        return _negative(_tree(node.args[0]))
    for kind, operator in _OPERATORS:
        if isinstance(node, kind):
            left, right = map(_tree, node.args)
            return _pair(operator, left, right)
    for kind, name in _CALLS:
        if isinstance(node, kind):
            return _call(name, node.args)
    if isinstance(node, numeric.UnaryFunctionExpression):
        return _call(node.getname(), node.args)
    if isinstance(node, numeric.Expr_ifExpression):
        test, then, other = map(_tree, node.args)
        return ast.IfExp(test=test, body=then, orelse=other)
    if isinstance(node, logical.AndExpression | logical.OrExpression):
        joined = ast.And() if isinstance(node, logical.AndExpression) else ast.Or()
        return ast.BoolOp(op=joined, values=list(map(_tree, node.args)))
    if hasattr(node, "curve"):
        return _call(str(node.curve.name), node.args)
    return _parsed(str(node))


def _number(value: Any) -> ast.expr:
    if isinstance(value, str) or not hasattr(value, "__float__"):
        return ast.Constant(str(value))
    found = float(value)
    return _negative(ast.Constant(-found)) if found < 0 else ast.Constant(found)


def _leaf(leaf: Any) -> ast.expr:
    """A variable, a Param, or the index, with its subscripts."""
    owner = leaf.parent_component() if hasattr(leaf, "parent_component") else None
    if owner is not None and owner.is_indexed() and owner is not leaf:
        index = leaf.index()
        return named(str(owner.name), index if isinstance(index, tuple) else (index,))
    base, bracket, rest = str(getattr(leaf, "name", leaf)).partition("[")
    return named(base, rest.rstrip("]").split(",")) if bracket else named(base)


def named(name: str, subscripts: Sequence[Any] = ()) -> ast.expr:
    """A name with subscripts."""
    if not subscripts:
        return ast.Name(id=name, ctx=ast.Load())
    entries: list[ast.expr] = [ast.Name(id=str(each), ctx=ast.Load()) for each in subscripts]
    return ast.Subscript(
        value=ast.Name(id=name, ctx=ast.Load()), slice=ast.Tuple(elts=entries, ctx=ast.Load()), ctx=ast.Load()
    )


def _relation(node: Any) -> ast.expr:
    parts = list(map(_tree, node.args))
    sign: ast.cmpop = ast.Eq() if isinstance(node, relational.EqualityExpression) else ast.LtE()
    if isinstance(node, relational.InequalityExpression) and node.strict:
        sign = ast.Lt()
    if isinstance(node, relational.NotEqualExpression):
        return ast.Constant(str(node))
    return ast.Compare(left=parts[0], ops=[sign] * (len(parts) - 1), comparators=parts[1:])


def _sum(parts: list[Any]) -> ast.expr:
    cut: list[Any] = parts if len(parts) <= _TERMS + 2 else [*parts[:_TERMS], None, parts[-1]]
    total: ast.expr | None = None
    for part in cut:
        tree = ast.Name(id=DOTS, ctx=ast.Load()) if part is None else _tree(part)
        if total is None:
            total = tree
        elif isinstance(tree, ast.UnaryOp):
            total = _pair(ast.Sub(), total, tree.operand)
        else:
            total = _pair(ast.Add(), total, tree)
    return ast.Constant(0.0) if total is None else total


def _pair(operator: ast.operator, left: ast.expr, right: ast.expr) -> ast.expr:
    if isinstance(operator, ast.Mult):
        if isinstance(left, ast.UnaryOp):
            return _negative(_pair(operator, left.operand, right))
        for one, other in ((left, right), (right, left)):
            if isinstance(one, ast.Constant) and one.value == 1:
                return other
    return ast.BinOp(left=left, op=operator, right=right)


def _negative(tree: ast.expr) -> ast.expr:
    return tree.operand if isinstance(tree, ast.UnaryOp) else ast.UnaryOp(op=ast.USub(), operand=tree)


def _call(name: str, arguments: Sequence[Any]) -> ast.expr:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(map(_tree, arguments)), keywords=[])


def _parsed(text: str) -> ast.expr:
    """What prints as a formula as that, anything else as a text."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return ast.Constant(text)
    return tree if isinstance(tree, ast.Call | ast.Subscript | ast.Name) else ast.Constant(text)


# -- rows that hold at every point -------------------------------------------------------------------------------------


def family_lines(constraint: Any, families: Sequence[Any]) -> list[str]:
    """Families of a SemiInfiniteConstraint as lines of an aligned block, of many the first ones."""
    where = index_latex(constraint)
    lines = [f"{_row_latex(family)} && {where} && {words(f'({family.name})')}" for family in families[:MOST_SHOWN]]
    if len(families) > MOST_SHOWN:
        lines.append(rf"& \dots && && {words(f'({len(families) - MOST_SHOWN:,} more rows)')}")
    return lines


def _row_latex(family: Any) -> str:
    return f"& {words(family.row_text()) if family.trace is None else latex(tree_of(family.trace))}"


def index_latex(constraint: Any) -> str:
    r"""The continuous index of a constraint: ``\forall\, u \in [0, 1]``."""
    parts = []
    for name, values in constraint.index_parts():
        told = words(values) if values[:1] not in "[(" else values.replace("inf", r"\infty")
        parts.append(rf"{latex(named(name))} \in {told}" if values else latex(named(name)))
    where = f",\\ {words('where ' + constraint.where_text())}" if constraint.where is not None else ""
    return rf"\forall\, {', '.join(parts)}{where}"


def constraint_latex(constraint: Any, families: Sequence[Any]) -> str:
    """Families of a SemiInfiniteConstraint in LaTeX, without dollars."""
    return aligned(family_lines(constraint, families))


def aligned(lines: Sequence[str]) -> str:
    """Lines below each other."""
    body = " \\\\\n".join(lines)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


def constraint_card(constraint: Any, families: Sequence[Any]) -> str:
    """What a notebook shows of families of a SemiInfiniteConstraint: their rows as mathematics."""
    where = f"for all {constraint.index_text()}"
    lines = []
    for family in families[:MOST_SHOWN]:
        if family.trace is None:
            lines.append(formula_line("", f"<mtext>{escaped(family.row_text())}</mtext>", where, family.name))
        else:
            lines.append(formula_line("", tree_mathml(tree_of(family.trace)), where, family.name))
    if len(families) > MOST_SHOWN:
        lines.append(f"<tr><td></td><td>... and {len(families) - MOST_SHOWN:,} more</td></tr>")
    count = "" if len(families) == 1 else f"{len(families):,} families of rows"
    state = "" if constraint.active else "deactivated"
    folds = [("As LaTeX", f"<pre>{escaped(constraint_latex(constraint, families))}</pre>")]
    body = f"<div class='osilp-wide'><table class='model'>{''.join(lines)}</table></div>"
    return Card("Semi-infinite constraint", count, state, False, body=body, folds=folds).html()


def domain_latex(variables: Sequence[Any]) -> str:
    """Bounds and kind of the variables of one component, where they are all the same."""
    first = variables[0]
    kinds = {(each.lower is None, each.upper is None, each.is_integer(), each.is_binary()) for each in variables}
    bounds = {(pyo.value(each.lower), pyo.value(each.upper)) for each in variables}
    owner = first.parent_component()
    name = latex(named(str(owner.name), ["i"] if owner.is_indexed() else ()))
    member = rf" \quad i \in {_set_latex(owner.index_set())}" if owner.is_indexed() else ""
    if len(kinds) > 1 or len(bounds) > 1:
        return rf"& {name} {words('within bounds of its own')}{member}"
    if first.is_binary():
        return rf"& {name} \in \{{0, 1\}}{member}"
    low, high = (latex(_number(end)) if end is not None else None for end in next(iter(bounds)))
    within = name if low is None else rf"{low} \le {name}"
    within = within if high is None else rf"{within} \le {high}"
    whole = r" \in \mathbb{Z}" if first.is_integer() else r" \in \mathbb{R}" if low is None and high is None else ""
    return f"& {within}{whole}{member}"


def _set_latex(members: Any) -> str:
    """An index set by its name, or by its members where it has none."""
    text = str(members)
    if text.startswith("{"):
        return words(text if len(text) <= _SHORT else f"{text[:_SHORT]} ...")
    return latex(named(text))
