"""Tracing: the compiled row and the user's rule are the same function, or the rule is sampled."""

import math
import warnings

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.core.expr import numeric_expr
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors
from osilp_pyomo.model.trace import trace_model


def model():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0.1, 0.9))
    m.x = pyo.Var(range(4), bounds=(0, 1))
    m.y = pyo.Var(bounds=(0, 1))
    m.p = pyo.Param(range(4), mutable=True, initialize={0: 1.5, 1: -0.5, 2: 2.0, 3: 0.25})
    m.c = pyo.Param(range(4), initialize={0: 1, 1: 0, 2: -1, 3: 3})
    m.q = pyo.Param(initialize=2.5)
    m.fixed = pyo.Var(initialize=3.0)
    m.fixed.fix()
    m.named = pyo.Expression(range(4), rule=lambda m, k: m.p[k] * m.x[k] + 1)
    m.gain = pyo.Objective(expr=m.y + sum(m.x[k] for k in range(4)), sense=pyo.maximize)
    return m


def max_of(*arguments):
    return numeric_expr.MaxExpression(arguments)


def min_of(*arguments):
    return numeric_expr.MinExpression(arguments)


BODIES = {
    "polynomial": lambda m, u: sum(m.x[k] * u**k for k in range(4)),
    "product of sums": lambda m, u: (m.p[0] + m.p[1] * u) * (m.x[0] + 2 * m.y),
    "nested products": lambda m, u: 2 * (u * (m.p[0] * (m.x[0] - m.x[1]) + m.y) - m.x[2] / u),
    "quotients": lambda m, u: m.x[0] / (1 + u) + (m.x[1] + m.y) / m.p[2] / u,
    "quicksum": lambda m, u: pyo.quicksum(pyo.exp(-u * m.p[k]) * m.x[k] for k in range(4)),
    "sum_product": lambda m, u: u * pyo.sum_product(m.c, m.x),
    "named expressions": lambda m, u: u * m.named[0] - m.named[1] + m.y,
    "fixed variable": lambda m, u: m.fixed * u * m.x[0] + m.fixed**2 + m.y / m.fixed,
    "immutable params": lambda m, u: sum(m.c[k] * u ** m.c[k] * m.x[k] for k in range(4)),
    "mutable exponents": lambda m, u: sum(u ** m.p[k] * m.x[k] for k in range(4)),
    "odd powers": lambda m, u: u**-2 * m.x[0] + u**0.5 * m.x[1] + u**7 * m.x[2] + (u - 1) ** 3 * m.x[3] + u**17 * m.y,
    "dictionary": lambda m, u: sum({0: pyo.sin, 1: pyo.cos}[k](u) * m.x[k] for k in (0, 1)),
    "expr_if": lambda m, u: pyo.Expr_if(u <= 0.4, 1 + u, 2 - u) * m.x[0] + m.y,
    "expr_if with variables": lambda m, u: pyo.Expr_if(u >= 0.4, m.x[0] + u, m.x[1] * 2) + m.y,
    "nested expr_if": lambda m, u: pyo.Expr_if(u < 0.3, 1, pyo.Expr_if(u < 0.6, m.p[0], u)) * m.x[0],
    "expr_if of logic": lambda m, u: pyo.Expr_if(pyo.land(u >= 0.2, u <= 0.5), 1, 3) * m.x[0],
    "expr_if of a range": lambda m, u: pyo.Expr_if(pyo.inequality(0.2, u, 0.5), 1, 3) * m.x[0],
    "expr_if of not": lambda m, u: pyo.Expr_if(pyo.lnot(u >= 0.5), 1, 3) * m.x[0],
    "expr_if of data": lambda m, u: pyo.Expr_if(m.p[1] <= 0, u, 2) * m.x[0],
    "abs": lambda m, u: abs(u - m.p[3]) * m.x[0],
    "max": lambda m, u: max_of(u, 0.5, m.p[3]) * m.x[0],
    "min": lambda m, u: min_of(u, 0.5) * m.x[0] + m.y,
    "variables that cancel": lambda m, u: m.x[0] * u - u * m.x[0] + m.y,
    "constants": lambda m, u: m.y * u + pyo.exp(u) - m.p[0],
    "negations": lambda m, u: -(-(m.x[0] - u) - m.y * -u),
    "power one": lambda m, u: u * m.x[0] ** 1 + m.y,
}

INTRINSICS = {
    name: getattr(pyo, name)
    for name in (
        "exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
        "atanh", "ceil", "floor",
    )
}  # fmt: skip


def evaluate(relation, values):
    """Left side minus right side with the variables at values, by Pyomo alone."""
    left, right = relation.args
    old = pyo.ComponentMap()
    for variable, value in values.items():
        old[variable] = variable.value
        variable.set_value(value)
    result = pyo.value(left) - pyo.value(right)
    for variable, value in old.items():
        variable.set_value(value, skip_validation=True)
    return result


def as_param(number):
    """A number that all of Pyomo's functions take: land and lor refuse plain booleans."""
    held = pyo.Param(mutable=True, initialize=number)
    held.construct()
    return held


def assert_same_function(m, rule, points=(0.1, 0.2, 0.37, 0.5, 0.61, 0.9)):
    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    traced = trace_model(m)
    (family,) = traced.problem.families
    assert family.route == "traced"
    random = np.random.default_rng(1)
    for u in points:
        x = random.uniform(size=len(traced.variables))
        lower, upper = family.limits(np.array([[u]]))
        compiled = family.activity(np.array([[u]]), x)[0]
        excess = compiled - upper[0] if np.isfinite(upper[0]) else lower[0] - compiled
        values = pyo.ComponentMap(zip(traced.variables, x, strict=True))
        assert excess == pytest.approx(evaluate(rule(m, as_param(u)), values), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("sense", ["<=", ">="])
def test_the_compiled_row_is_the_rule(case, sense):
    body = BODIES[case]
    if sense == "<=":
        assert_same_function(model(), lambda m, u: body(m, u) <= 1 + m.p[0] * u)
    else:
        assert_same_function(model(), lambda m, u: body(m, u) >= 1 + m.p[0] * u)


@pytest.mark.parametrize("name", INTRINSICS)
def test_every_intrinsic_function(name):
    assert_same_function(model(), lambda m, u: INTRINSICS[name](u) * m.x[0] + m.y <= 2)


def test_acosh_where_it_is_defined():
    assert_same_function(model(), lambda m, u: pyo.acosh(1 + u) * m.x[0] + m.y <= 2)


def test_thousands_of_arrivals_share_one_formula():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(300)
    m.a = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 1 / t)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(pyo.exp(-u * m.a[t]) * m.x[t] for t in m.T) <= 5)
    (family,) = trace_model(m).problem.families
    (group,) = family.rows.groups
    assert group.parameters == ("a",)
    assert group.variables == ("x",)
    assert len(group.columns) == 300


def test_params_changed_after_the_declaration_are_seen():
    m = model()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.y * u <= m.p[3])
    first = osilp.solve(m)
    m.p[3] = 0.5
    second = osilp.solve(m)
    assert first.values["y"] == pytest.approx(0.25 / 0.9)
    assert second.values["y"] == pytest.approx(0.5 / 0.9)


def test_a_rule_that_froze_a_value_is_traced_again():
    m = model()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.y * u <= pyo.value(m.p[3]))
    m.p[3] = 0.5
    with pytest.warns(errors.ChangedRuleWarning) as told:
        assert osilp.solve(m).values["y"] == pytest.approx(0.5 / 0.9)
    assert str(told[0].message) == (
        "SemiInfiniteConstraint 'row': its rule gives another row now than when it was declared, and the row of now is "
        "used. It reads data that has changed, such as a loop's variable: bind it by rule=lambda m, u, i=i: ..., or use a "
        "mutable Param."
    )


def test_variables_fixed_after_the_declaration():
    m = model()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[0] * u + m.x[1] <= 1)
    m.x[1].fix(0.5)
    result = osilp.solve(m)
    assert "x[1]" not in result.values
    assert result.values["x[0]"] == pytest.approx(0.5 / 0.9)
    m.x[1].unfix()
    assert osilp.solve(m).objective == pytest.approx(4 + 0.1)


def step_rule(m, u):
    return m.y * (1 if u > 0.5 else 3) <= 1.5


def math_rule(m, u):
    return m.y * math.exp(u) <= 2


def numpy_rule(m, u):
    return m.y * np.interp(u, [0, 1], [1, 2]) <= 1.4


def table_rule(m, u):
    table = np.array([1.0, 2.0, 4.0])
    return m.y * table[int(3 * u)] <= 2


SAMPLED = {"if": (step_rule, 0.5), "math": (math_rule, 2 / math.exp(0.9)), "numpy": (numpy_rule, 1.4 / 1.9),
           "table": (table_rule, 0.5)}  # fmt: skip


@pytest.mark.parametrize("case", SAMPLED)
def test_rules_that_cannot_be_traced_are_sampled_after_a_warning(case):
    rule, optimum = SAMPLED[case]
    m = model()
    with pytest.warns(errors.SamplingWarning) as caught:
        m.row = SemiInfiniteConstraint(m.u, rule=rule)
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("SemiInfiniteConstraint 'row': its rule cannot be traced (")
    assert text.endswith(
        "); it is called at each point instead, which is slower. Write it with Pyomo functions of the index (Expr_if "
        "for if), or declare sample=True."
    )
    assert "[rule called at each point: " in repr(m.row)
    result = osilp.solve(m)
    assert result.routes == {"row": "sampled"}
    assert result.values["y"] == pytest.approx(optimum, rel=1e-6)


def test_sampling_that_was_declared_is_silent():
    m = model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.row = SemiInfiniteConstraint(m.u, rule=step_rule, sample=True)
        result = osilp.solve(m)
    assert repr(m.row) == "row: [rule called at each point: sample=True]  for all u in [0.1, 0.9]"
    assert result.values["y"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "rule",
    [
        lambda m, u: m.y * (u if isinstance(u, float) else 1 + u) <= 0.5,
        lambda m, u: m.y * (pyo.value(u, exception=False) or u + 1) <= 0.5,
    ],
)
def test_a_trace_that_is_silently_wrong_is_found_out(rule):
    m = model()
    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    with pytest.warns(errors.SamplingWarning, match=r"the rule gives y the coefficient 0\.\d+, the trace 1\.\d+"):
        result = osilp.solve(m)
    assert result.values["y"] == pytest.approx(0.5 / 0.9, rel=1e-6)


def test_both_routes_give_the_same_numbers():
    answers = []
    for sample in (False, True):
        m = model()
        m.row = SemiInfiniteConstraint(
            m.u, rule=lambda m, u: sum(pyo.exp(-m.p[k] * u) * m.x[k] for k in range(4)) <= 1 + u, sample=sample
        )
        answers.append(osilp.solve(m))
    assert answers[0].routes != answers[1].routes
    assert answers[0].objective == pytest.approx(answers[1].objective, abs=1e-8)


def test_an_error_of_the_rule_is_shown_as_it_is():
    m = model()
    with pytest.raises(KeyError):
        m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x["no such"] * u <= 1)
    assert m.component("row") is None


@settings(deadline=None, max_examples=40)
@given(
    st.recursive(
        st.sampled_from(["u", "p", "2", "0.5", "fixed"]),
        lambda inner: (
            st.tuples(st.sampled_from("+-*/"), inner, inner) | st.tuples(st.sampled_from(["sin", "exp", "abs"]), inner)
        ),
        max_leaves=8,
    )
)  # fmt: skip
def test_random_coefficients(tree):
    def build(node, m, u):
        if isinstance(node, str):
            return {"u": u, "p": m.p[0], "2": 2, "0.5": 0.5, "fixed": m.fixed}[node]
        if len(node) == 2:
            function = {"sin": pyo.sin, "exp": lambda e: pyo.exp(pyo.sin(e)), "abs": abs}[node[0]]
            return function(build(node[1], m, u))
        left, right = build(node[1], m, u), build(node[2], m, u)
        if node[0] == "/":
            return left / (2 + right * right)
        return {"+": left + right, "-": left - right, "*": left * right}[node[0]]

    assert_same_function(model(), lambda m, u: (build(tree, m, u) + u) * m.x[0] + m.y * u <= 1 + build(tree, m, u))


def test_a_function_of_numpy_is_told_by_its_name():
    m = model()
    with pytest.warns(errors.SamplingWarning) as caught:
        m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.y * np.interp(u, [0, 1], [1, 2]) <= 2)
    assert (
        "(numpy's interp needs numbers, and the index stands for every point: give the curve as "
        "osilp.Profile(over=..., points=..., initialize=...) and write m.curve(u))"
    ) in str(caught[0].message)
