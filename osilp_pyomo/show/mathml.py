"""Formulas as mathematics: texts such as ``exp(-((u - place[t])/0.1)**2)*x[t]`` as MathML, which browsers show."""

from __future__ import annotations

import ast
import html
from collections.abc import Mapping, Sequence
from typing import Any

_SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "&#x2212;", ast.Mult: "&#x2062;"}
_SIDES = {"<=": "&#x2264;", ">=": "&#x2265;", "==": "="}
# How tightly a node holds together: relations, sums, products, powers, single things.
_RELATION, _SUM, _PRODUCT, _POWER, _SINGLE = range(-1, 4)
_RELATIONS: dict[type, str] = {ast.LtE: "&#x2264;", ast.GtE: "&#x2265;", ast.Lt: "&lt;", ast.Gt: "&gt;", ast.Eq: "="}
_GREEK = {"xi": "\u03be"}  # what rules call an uncertain vector


def mathml(text: str) -> str:
    """A formula as the inside of a ``<math>`` element; what cannot be read as one stays a text.

    Examples
    --------
    >>> mathml("a/2")
    '<mfrac><mi>a</mi><mn>2</mn></mfrac>'
    >>> mathml("x[t]**2")
    '<msup><mrow><msub><mi>x</mi><mi>t</mi></msub></mrow><mn>2</mn></msup>'
    """
    return _parsed(text)[0]


def tree_mathml(node: ast.expr) -> str:
    """A formula, as a tree of Python's, as the inside of a ``<math>`` element."""
    return _written(node)[0]


def model_mathml(model: Mapping[str, Any]) -> str:
    """The formulas of a model, as ``formulas(program)`` gives them, one below the other."""
    offset = model["offset"]
    if offset == "0":
        offset = ""
    elif offset.startswith("-"):
        offset = f"<mo>&#x2212;</mo>{mathml(offset[1:])}"
    else:
        offset = f"<mo>+</mo>{mathml(offset)}"
    lines = [formula_line(model["sense"], f"{_sum(model['objective'])}{offset}")]
    word = "subject to"
    for row in model["rows"]:
        scope = f"for all {row['index']}"
        lines.append(formula_line(word, f"{_sum(row['use'])}{_side(row)}{mathml(row['limit'])}", scope, row["name"]))
        word = ""
    for row in model["ordinary"]:
        lines.append(formula_line(word, f"{_sum(row['use'])}{_side(row)}{mathml(row['limit'])}", "", row["name"]))
        word = ""
    for row in model["own"]:
        lines.append(
            formula_line(word, f"{mathml(row['use'])}{_side(row)}{mathml(row['limit'])}", "each t", row["name"])
        )
        word = ""
    for each in model["decisions"]:
        middle = f"<mo>&#x2264;</mo>{mathml(_of_stage(each['name']))}<mo>&#x2264;</mo>"
        scope = "each t, whole numbers" if each["integer"] else "each t"
        lines.append(formula_line("", f"{_bound(each['lower'])}{middle}{_bound(each['upper'])}", scope))
    return f"<table class='model'>{''.join(lines)}</table>"


def formula_line(word: str, formula: str, scope: str = "", name: str = "") -> str:
    """A line of a model: a word, a formula, where it holds, and its name."""
    cells = [html.escape(word), f"<math>{formula}</math>", html.escape(scope), f"<i>{html.escape(name)}</i>"]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _sum(text: str) -> str:
    inner, level = _parsed(text)
    return f"<munder><mo>&#x2211;</mo><mi>t</mi></munder>{_bracketed(inner, level, _PRODUCT)}"


def _parsed(text: str) -> tuple[str, int]:
    try:
        return _written(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, RecursionError):
        return f"<mtext>{html.escape(text)}</mtext>", _SINGLE


def _side(row: Mapping[str, Any]) -> str:
    return f"<mo>{_SIDES[row['side']]}</mo>"


def _bound(text: str) -> str:
    signs = {"-inf": "<mo>&#x2212;</mo><mi>&#x221E;</mi>", "inf": "<mi>&#x221E;</mi>"}
    return signs.get(text) or mathml(text)


def _of_stage(name: str) -> str:
    """A decision's name with the stage among its indices."""
    base, bracket, rest = name.partition("[")
    return f"{base}[t,{rest}" if bracket else f"{name}[t]"


def _written(node: ast.expr) -> tuple[str, int]:
    """A formula, and how tightly it holds together."""
    if isinstance(node, ast.BinOp):
        return _written_pair(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"<mo>&#x2212;</mo>{_inside(node.operand, _PRODUCT)}", _SUM
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return f"<mn>{node.value:.12g}</mn>", _SINGLE
    if isinstance(node, ast.Name):
        shown = "&#x2026;" if node.id == "..." else html.escape(_GREEK.get(node.id, node.id))
        return f"<mi>{shown}</mi>", _SINGLE
    if isinstance(node, ast.Compare | ast.BoolOp | ast.IfExp):
        return _written_condition(node)
    if isinstance(node, ast.Attribute):
        return f"<mi>{html.escape(ast.unparse(node))}</mi>", _SINGLE
    if isinstance(node, ast.Subscript):
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        inside = "<mo>,</mo>".join(_written(entry)[0] for entry in entries)
        inside = inside if len(entries) == 1 else f"<mrow>{inside}</mrow>"
        return f"<msub>{_written(node.value)[0]}{inside}</msub>", _SINGLE
    if isinstance(node, ast.Call) and not node.keywords:
        return _written_call(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return f"<mtext>{html.escape(node.value)}</mtext>", _SINGLE
    raise ValueError("no formula")


def _written_condition(node: ast.Compare | ast.BoolOp | ast.IfExp) -> tuple[str, int]:
    """Relations, conditions, and what depends on one."""
    if isinstance(node, ast.IfExp):
        cases = (
            (node.body, f"<mtext>if&#xA0;</mtext>{_written(node.test)[0]}"),
            (node.orelse, "<mtext>otherwise</mtext>"),
        )
        rows = "".join(f"<mtr><mtd>{_written(value)[0]}</mtd><mtd>{when}</mtd></mtr>" for value, when in cases)
        return f"<mrow><mo>{{</mo><mtable columnalign='left'>{rows}</mtable></mrow>", _SINGLE
    if isinstance(node, ast.BoolOp):
        sign = "&#x2227;" if isinstance(node.op, ast.And) else "&#x2228;"
        return f"<mo>{sign}</mo>".join(_inside(part, _SUM) for part in node.values), _RELATION
    parts = [_inside(node.left, _SUM)]
    for relation, part in zip(node.ops, node.comparators, strict=True):
        parts += [f"<mo>{_RELATIONS[type(relation)]}</mo>", _inside(part, _SUM)]
    return "".join(parts), _RELATION


def _written_pair(node: ast.BinOp) -> tuple[str, int]:
    if isinstance(node.op, ast.Div):
        return f"<mfrac>{_row(_written(node.left)[0])}{_row(_written(node.right)[0])}</mfrac>", _PRODUCT
    if isinstance(node.op, ast.Pow):
        return f"<msup>{_row(_inside(node.left, _SINGLE))}{_row(_written(node.right)[0])}</msup>", _POWER
    level = _PRODUCT if isinstance(node.op, ast.Mult) else _SUM
    # What is subtracted keeps its brackets when it is a sum itself.
    right = _PRODUCT if isinstance(node.op, ast.Sub | ast.Mult) else _SUM
    sign = _SIGNS[type(node.op)]
    if isinstance(node.op, ast.Mult) and _begins_with_number(node.right):
        sign = "&#x22C5;"
    return f"{_inside(node.left, level)}<mo>{sign}</mo>{_inside(node.right, right)}", level


def _written_call(node: ast.Call) -> tuple[str, int]:
    arguments: Sequence[ast.expr] = node.args
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    inside = "<mo>,</mo>".join(_written(each)[0] for each in arguments)
    if name == "sqrt":
        return f"<msqrt>{inside}</msqrt>", _SINGLE
    if name == "abs":
        return f"<mrow><mo>|</mo>{inside}<mo>|</mo></mrow>", _SINGLE
    if name == "exp":
        return f"<msup><mi>e</mi>{_row(inside)}</msup>", _POWER
    return f"{_written(node.func)[0]}<mo>&#x2061;</mo><mrow><mo>(</mo>{inside}<mo>)</mo></mrow>", _SINGLE


def _begins_with_number(node: ast.expr) -> bool:
    """Whether a factor begins with a digit, which would run into one before it."""
    while isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div):
        node = node.left
    return isinstance(node, ast.Constant)


def _inside(node: ast.expr, least: int) -> str:
    return _bracketed(*_written(node), least)


def _bracketed(text: str, level: int, least: int) -> str:
    return text if level >= least else f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


def _row(text: str) -> str:
    """One element, as fractions and powers need it."""
    return text if text.count("<m") == 1 else f"<mrow>{text}</mrow>"
