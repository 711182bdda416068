"""Formulas as LaTeX: the trees of which ``mathml`` makes MathML, as text for papers and notebooks."""

from __future__ import annotations

import ast

# How tightly a node holds together: relations, sums, products, powers, single things.
_RELATION, _SUM, _PRODUCT, _POWER, _SINGLE = range(-1, 4)
_SIGNS: dict[type, str] = {ast.LtE: r"\le", ast.GtE: r"\ge", ast.Lt: "<", ast.Gt: ">", ast.Eq: "=", ast.And: r"\wedge",
                           ast.Or: r"\vee"}  # fmt: skip
# How LaTeX calls letters and functions as people do.
_GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi",
    "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega",
}  # fmt: skip
_FUNCTIONS = {"sin", "cos", "tan", "sinh", "cosh", "tanh", "log", "min", "max"}
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
#: What stands for the terms that are left out of a long sum.
DOTS = "..."


def latex(node: ast.expr) -> str:
    r"""A formula, as a tree of Python's, in LaTeX without dollars.

    Examples
    --------
    >>> latex(ast.parse("exp(-u/2)*x[1] + abs(xi - 3)", mode="eval").body)
    'e^{\\frac{-u}{2}}\\, x_{1} + \\left|\\xi - 3\\right|'
    """
    return _written(node)[0]


def escaped(text: str) -> str:
    """A text with LaTeX's special characters as they are."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def words(text: str) -> str:
    """A text within mathematics."""
    return rf"\text{{{escaped(text)}}}"


def _written(node: ast.expr) -> tuple[str, int]:
    """A formula, and how tightly it holds together."""
    if isinstance(node, ast.BinOp):
        return _written_pair(node)
    if isinstance(node, ast.UnaryOp):
        return f"-{_inside(node.operand, _PRODUCT)}", _SUM
    if isinstance(node, ast.Constant):
        value = node.value
        return number(value) if isinstance(value, int | float) else words(str(value)), _SINGLE
    if isinstance(node, ast.Name):
        return name(node.id), _SINGLE
    if isinstance(node, ast.Attribute):
        return name(ast.unparse(node)), _SINGLE
    if isinstance(node, ast.Subscript):
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return f"{_written(node.value)[0]}_{{{','.join(_written(entry)[0] for entry in entries)}}}", _SINGLE
    if isinstance(node, ast.Compare):
        parts = [_inside(node.left, _SUM)]
        for sign, part in zip(node.ops, node.comparators, strict=True):
            parts += [_SIGNS[type(sign)], _inside(part, _SUM)]
        return " ".join(parts), _RELATION
    if isinstance(node, ast.BoolOp):
        return f" {_SIGNS[type(node.op)]} ".join(_inside(part, _SUM) for part in node.values), _RELATION
    if isinstance(node, ast.IfExp):
        cases = rf"{latex(node.body)} & \text{{if }} {latex(node.test)} \\ {latex(node.orelse)} & \text{{otherwise}}"
        return rf"\begin{{cases}} {cases} \end{{cases}}", _SINGLE
    if isinstance(node, ast.Call):
        return _written_call(node)
    return words(ast.unparse(node)), _SINGLE


def _written_pair(node: ast.BinOp) -> tuple[str, int]:
    if isinstance(node.op, ast.Div):
        return rf"\frac{{{latex(node.left)}}}{{{latex(node.right)}}}", _PRODUCT
    if isinstance(node.op, ast.Pow):
        return f"{{{_inside(node.left, _SINGLE)}}}^{{{latex(node.right)}}}", _POWER
    if isinstance(node.op, ast.Mult):
        right = _inside(node.right, _PRODUCT)
        sign = r" \cdot " if right[:1].isdigit() else r"\, "
        return f"{_inside(node.left, _PRODUCT)}{sign}{right}", _PRODUCT
    if isinstance(node.op, ast.Sub):
        return f"{_inside(node.left, _SUM)} - {_inside(node.right, _PRODUCT)}", _SUM
    if isinstance(node.op, ast.Add):
        return f"{_inside(node.left, _SUM)} + {_inside(node.right, _SUM)}", _SUM
    return words(ast.unparse(node)), _SINGLE


def _written_call(node: ast.Call) -> tuple[str, int]:
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    inside = ", ".join(latex(each) for each in node.args)
    if called == "sqrt":
        return rf"\sqrt{{{inside}}}", _SINGLE
    if called == "abs":
        return rf"\left|{inside}\right|", _SINGLE
    if called == "exp":
        return f"e^{{{inside}}}", _POWER
    function = rf"\{called}" if called in _FUNCTIONS else _written(node.func)[0]
    return rf"{function}\left({inside}\right)", _SINGLE


def _inside(node: ast.expr, least: int) -> str:
    text, level = _written(node)
    return text if level >= least else rf"\left({text}\right)"


def name(text: str) -> str:
    r"""A name of the user's: a letter as it is, a Greek letter as one, others upright.

    Examples
    --------
    >>> [name(each) for each in ("x", "xi", "rate", "a_b", "1")]
    ['x', '\\xi', '\\mathrm{rate}', '\\mathrm{a\\_b}', '1']
    """
    if text == DOTS:
        return r"\dots"
    if text in _GREEK:
        return rf"\{text}"
    if (len(text) == 1 and text.isalnum()) or text.isdecimal():
        return text
    return rf"\mathrm{{{escaped(text)}}}" if text.isascii() and " " not in text else words(text)


def number(value: float) -> str:
    r"""A number, large and small ones with a power of ten.

    Examples
    --------
    >>> number(0.25), number(-2.0), number(1e-9), number(float("inf"))
    ('0.25', '-2', '10^{-9}', '\\infty')
    """
    if value in (float("inf"), float("-inf")):
        return r"\infty" if value > 0 else r"-\infty"
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    if not exponent:
        return mantissa
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else f"-{power}" if mantissa == "-1" else rf"{mantissa} \cdot {power}"
