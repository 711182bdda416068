"""Models and rows as LaTeX and as mathematics of a page: whole texts, and laws of what is written."""

import ast
import io
import re

import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import line_above_square, packing, tent, two_families
from pyomo.contrib.pyros import BoxSet
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import ModelError
from osilp_pyomo.model.mathematics import tree_of
from osilp_pyomo.show.latex import escaped, latex, name
from osilp_pyomo.show.mathml import tree_mathml


def written(component, **how):
    stream = io.StringIO()
    component.display(ostream=stream, **how)
    return stream.getvalue()


def printed(component):
    stream = io.StringIO()
    component.pprint(ostream=stream)
    return stream.getvalue()


def test_a_whole_model():
    assert osilp.to_latex(two_families()) == "\n".join([
        r"\begin{aligned}",
        r"\max\quad & x_{a} + x_{b} \\",
        r"\text{s.t.}\quad & x_{a} \le 2 + u && \forall\, u \in [0, 1] && \text{(cap[a])} \\",
        r"& x_{b} \le 3 - u && \forall\, u \in [0, 1] && \text{(cap[b])} \\",
        r"& x_{i} \in \mathbb{R} \quad i \in S",
        r"\end{aligned}",
    ])  # fmt: skip


def test_every_kind_of_part():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.n = pyo.Var([1, 2], domain=pyo.NonNegativeIntegers)
    m.open = pyo.Var(domain=pyo.Binary)
    m.rate = pyo.Param(mutable=True, initialize=0.5)
    m.z = pyo.Var([1, 2], bounds=lambda m, i: (0, i))
    m.cost = pyo.Objective(expr=3 * m.open - m.n[1] + m.rate * m.z[1] ** 2)
    m.row = pyo.Constraint(expr=(1, m.n[1] + 2 * m.n[2], 1e7))
    m.same = pyo.Constraint(expr=m.n[1] == m.open)
    m.off = pyo.Constraint(expr=m.n[1] <= 3)
    m.off.deactivate()
    m.c = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: pyo.Expr_if(u <= 1, u, pyo.sqrt(u)) * m.n[1] - m.open / (u + 1) >= -pyo.exp(-m.rate * u),
        where=lambda m, u: u <= 5,
    )
    assert osilp.to_latex(m) == "\n".join([
        r"\begin{aligned}",
        r"\min\quad & 3\, \mathrm{open} - n_{1} + \mathrm{rate}\, {z_{1}}^{2} \\",
        r"\text{s.t.}\quad & 1 \le n_{1} + 2\, n_{2} \le 10^{7} && && \text{(row)} \\",
        r"& \mathrm{open} = n_{1} && && \text{(same)} \\",
        r"& -e^{-\mathrm{rate}\, u} \le \begin{cases} u & \text{if } u \le 1 \\ \sqrt{u} & \text{otherwise} \end{cases}\, "
        r"n_{1} - \frac{1}{u + 1}\, \mathrm{open} && \forall\, u \in [0, \infty),\ \text{where declared} && \text{(c)} \\",
        r"& 0 \le n_{i} \in \mathbb{Z} \quad i \in \text{\{1, 2\}} \\",
        r"& \mathrm{open} \in \{0, 1\} \\",
        r"& z_{i} \text{within bounds of its own} \quad i \in \text{\{1, 2\}}",
        r"\end{aligned}",
    ])  # fmt: skip


def test_a_rule_that_is_called_at_each_point_says_so():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u, sample=True)
    assert r"\text{[rule called at each point: sample=True]}" in m.c.to_latex()
    assert "[rule called at each point: sample=True]" in m.c._repr_html_()


def test_uncertain_vectors_and_decision_rules():
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar([1, 2], over=BoxSet([(0, 2)]))
    m.cover = osilp.SemiInfiniteConstraint([1, 2], BoxSet([(0, 2)]), rule=lambda m, i, xi: m.y[i](xi) >= 1 + 3 * xi[0])
    assert m.cover[1].to_latex() == (
        "\\begin{aligned}\n& 1 + 3\\, \\xi_{0} \\le y_{1}\\left(\\xi\\right) && "
        "\\forall\\, \\xi \\in \\text{BoxSet of dimension 1} && \\text{(cover[1])}\n\\end{aligned}"
    )
    assert "coefficients" not in osilp.to_latex(m)


def test_long_sums_and_many_rows_end():
    text = osilp.to_latex(packing(1000))
    assert r"\dots" in text
    assert len(text) < 1_500
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(5_000))
    m.rows = pyo.Constraint(range(5_000), rule=lambda m, i: m.x[i] <= i)
    m.u = ContinuousSet(bounds=(0, 1))
    m.c = osilp.SemiInfiniteConstraint(pyo.RangeSet(5_000), m.u, rule=lambda m, i, u: m.x[i - 1] <= i + u)
    text = osilp.to_latex(m)
    assert text.count(r"\text{(4,990 more") == 2
    assert len(text) < 4_000
    assert len(m.c._repr_html_()) < 12_000
    assert len(m.c._repr_latex_()) < 3_000
    assert len(printed(m.c)) < 12_000


def test_other_things_are_refused_by_name():
    with pytest.raises(ModelError) as refused:
        osilp.to_latex("a text")
    assert str(refused.value) == (
        "to_latex: expected a model, a Block, a Constraint, an Objective or an expression of Pyomo (got str)."
    )


def test_parts_by_themselves():
    m = line_above_square()
    assert osilp.to_latex(m.area) == "\\begin{aligned}\n\\min\\quad & a + 0.5\\, b\n\\end{aligned}"
    assert osilp.to_latex(2 * m.a - m.b) == r"2\, a - b"
    assert m.above._repr_latex_() == f"$\\displaystyle {osilp.to_latex(m.above)}$"
    skipped = pyo.ConcreteModel()
    skipped.u = ContinuousSet(bounds=(0, 1))
    skipped.c = osilp.SemiInfiniteConstraint(skipped.u, rule=lambda m, u: pyo.Constraint.Skip)
    assert skipped.c._repr_latex_() is None
    assert skipped.c._repr_html_() is None


@given(st.text(max_size=30))
def test_no_name_is_a_command(text):
    """Every brace and dollar of a name is escaped, so that groups stay whole."""
    for made in (escaped(text), name(text), latex(ast.Constant(text))):
        bare = re.sub(r"\\[{}$&#%_\\]", "", made)
        assert bare.count("{") == bare.count("}")
        assert "$" not in bare


NUMBERS = st.integers(-9, 9) | st.floats(-1e3, 1e3).map(lambda x: round(x, 3))


@st.composite
def expressions(draw, depth=3):
    m = draw(st.shared(st.builds(_variables), key="model"))
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([m.x, m.y, m.p])) if draw(st.booleans()) else draw(NUMBERS)
    one, other = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    return draw(st.sampled_from([
        lambda: one + other, lambda: one - other, lambda: one * other, lambda: one / (m.p + 2), lambda: pyo.exp(-abs(one)),
        lambda: -one, lambda: abs(one + m.x), lambda: one**2,
    ]))()  # fmt: skip


def _variables():
    m = pyo.ConcreteModel()
    m.x, m.y, m.p = pyo.Var(initialize=1.25), pyo.Var(initialize=-0.75), pyo.Param(mutable=True, initialize=3.0)
    return m


def _value(tree):
    """The value of a tree, computed by Python."""
    names = {"x": 1.25, "y": -0.75, "p": 3.0, "exp": lambda value: float(pyo.exp(value)), "abs": abs}
    return eval(compile(ast.fix_missing_locations(ast.Expression(tree)), "", "eval"), names)


@given(expressions())
def test_trees_say_what_the_expression_says(expression):
    """Signs, brackets and factors that are left out change no value."""
    value = pyo.value(expression)
    tree = tree_of(expression)
    assert _value(tree) == pytest.approx(value, rel=1e-9, abs=1e-9)
    text = latex(tree)
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") == text.count(r"\right")
    written = tree_mathml(tree)
    assert written.count("<mrow>") == written.count("</mrow>")


def test_brackets_where_they_are_needed():
    x, y = ast.Name(id="x"), ast.Name(id="y")
    minus = ast.BinOp(left=x, op=ast.Sub(), right=ast.BinOp(left=y, op=ast.Sub(), right=x))
    assert latex(minus) == r"x - \left(y - x\right)"
    assert latex(ast.BinOp(left=minus, op=ast.Mult(), right=ast.Constant(2.0))) == (
        r"\left(x - \left(y - x\right)\right) \cdot 2"
    )
    assert latex(ast.BinOp(left=ast.UnaryOp(op=ast.USub(), operand=x), op=ast.Pow(), right=ast.Constant(2.0))) == (
        r"{\left(-x\right)}^{2}"
    )


# -- display and pprint ------------------------------------------------------------------------------------------------


def test_display_shows_where_there_is_least_room():
    m = tent()
    line = "below: x <= 1 + abs(u - 0.3)  for all u in [0, 1]\n"
    assert written(m.below) == line
    osilp.solve(m)
    assert written(m.below) == (
        f"{line}"
        "  least slack, at the values of the variables:\n"
        "    Key  : Point   : Lower : Body : Upper : Slack\n"
        "    None : u = 0.3 :  None :    1 :     1 :     0\n"
    )
    m.x.set_value(1.25)
    assert "None : u = 0.3 :  None : 1.25 :     1 : -0.25" in written(m.below)
    m.below.deactivate()
    assert written(m.below) == ""


def test_pprint_shows_it_too():
    m = two_families()
    osilp.solve(m)
    assert printed(m.cap) == (
        "cap : Size=2, Index=S, For all=u in [0, 1], Active=True\n"
        "    Key : Row           : Route  : Active : Point : Lower : Body : Upper : Slack\n"
        "      a : x[a] <= 2 + u : traced :   True : u = 0 :  None :    2 :     2 :     0\n"
        "      b : x[b] <= 3 - u : traced :   True : u = 1 :  None :    2 :     2 :     0\n"
    )


def test_an_index_without_end_and_a_lower_limit():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(initialize=2.0)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 1 / (1 + u))
    assert "None : u = 0 :     1 :    2 :  None :     1" in written(m.c)


def test_rows_that_cannot_be_evaluated_are_printed_alone():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(initialize=1.0)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 1 / (u - u), sample=True)
    assert written(m.c).count("\n") == 1


def test_a_model_with_functions_is_printed_whole():
    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=BoxSet([(0, 2)]))
    assert "y(xi) = c[1] + c[xi[0]]*xi[0]" in printed(m)
