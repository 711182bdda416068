"""osilp.dot: the same rows as by terms, bit for bit, in a light node that everybody can read."""

from __future__ import annotations

import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.contrib.fbbt.fbbt import fbbt
from pyomo.contrib.latex_printer import latex_printer
from pyomo.contrib.pyros import BoxSet
from pyomo.core.expr.calculus.derivatives import differentiate
from pyomo.core.expr.visitor import identify_variables, replace_expressions
from pyomo.dae import ContinuousSet
from pyomo.repn import generate_standard_repn
from scipy import sparse
from scipy.optimize import linprog

import osilp_pyomo as osilp
from osilp_pyomo.model.arrays.blocks import DotTerms, block_of
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.trace import trace_model
from tests.dot_models import change, random_model


def numbers_of(m, seed):
    """Every number of a traced model, the coefficients of its families at some points."""
    traced = trace_model(m)
    lp = traced.problem.core
    found = [lp.cost, lp.offset, lp.matrix.toarray(), lp.row_lower, lp.row_upper, lp.column_lower, lp.column_upper]
    order = np.argsort([variable.name for variable in traced.variables])
    found[0], found[2] = found[0][order], found[2][:, order]
    found[5], found[6] = found[5][order], found[6][order]
    for family in traced.problem.families:
        domain = family.domain
        rng = np.random.default_rng(seed)
        if domain.body is not None:
            points = domain.body.cloud(6)
        else:
            points = domain.lower + rng.uniform(size=(6, domain.dimension)) * (domain.upper - domain.lower)
        matrix = np.zeros((len(points), len(order)))
        matrix[:, family.rows.columns] = family.matrix_unchecked(points)
        found += [matrix[:, order], *family.rows.limits(points)]
    names = sorted(variable.name for variable in traced.variables)
    return names, found, [family.route for family in traced.problem.families]


def assert_same(one, other, seed):
    assert one[0] == other[0]
    assert one[2] == other[2]
    for first, second in zip(one[1], other[1], strict=True):
        np.testing.assert_array_equal(first, second, err_msg=str(seed))


def compare(seed):
    """A model by dot and by terms: as declared, after changes, cloned and pickled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_dot, by_terms = random_model(seed, True), random_model(seed, False)
        assert_same(numbers_of(by_dot, seed), numbers_of(by_terms, seed), seed)
        copies = {0: by_dot.clone, 1: lambda: pickle.loads(pickle.dumps(by_dot))}
        copy = copies[seed % 2]()
        change(copy, seed)
        change(by_terms, seed)
        assert_same(numbers_of(copy, seed), numbers_of(by_terms, seed), seed)


@pytest.mark.parametrize("seed", range(60))
def test_coefficients_are_those_of_terms(seed):
    compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_coefficients_are_those_of_terms_on_many_models(part):
    for seed in range(100 + 50 * part, 150 + 50 * part):
        compare(seed)


# -- stages ------------------------------------------------------------------------------------------


def stage_model(by_dot, kind):
    """An online model over six arrivals, by sums or by dot."""
    rng = np.random.default_rng(3)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(6)
    m.K = pyo.Set(initialize=["a", "b"])
    several = kind == "several decisions"
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform())
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform())
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.fare = pyo.Param(m.T, m.K, mutable=True, initialize=lambda m, t, k: rng.uniform())
    m.y = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.curve = osilp.Profile(m.T, over=m.u, points=[0, 0.5, 1], initialize=lambda m, t: rng.uniform(size=3))
    numbers = np.linspace(0.5, 1, 6)
    if by_dot:
        reward = osilp.dot(m.value, m.x) + (osilp.dot(m.fare, m.y) if several else 0)
    else:
        reward = sum(m.value[t] * m.x[t] for t in m.T)
        reward += sum(m.fare[t, k] * m.y[t, k] for t in m.T for k in m.K) if several else 0
    m.reward = pyo.Objective(expr=reward, sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        if kind == "curves":
            body = osilp.dot(m.curve(u), m.x) if by_dot else sum(m.curve[t](u) * m.x[t] for t in m.T)
        elif by_dot:
            body = osilp.dot(np.exp(-(((u - m.place) / 0.1) ** 2)), m.x)
        else:
            body = sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T)
        if several:
            body += osilp.dot(u * osilp.array(m.fare), m.y) if by_dot else sum(
                u * m.fare[t, k] * m.y[t, k] for t in m.T for k in m.K
            )  # fmt: skip
        return body <= 2 + u

    if kind == "rows":
        if by_dot:
            m.budget = pyo.Constraint(expr=osilp.dot(m.place, m.x) <= 2)
            m.own = pyo.Constraint(
                m.T, rule=lambda m, t: osilp.dot([m.fare[t, "a"], m.fare[t, "b"]], [m.x[t]] * 2) <= 1
            )
        else:
            m.budget = pyo.Constraint(expr=sum(m.place[t] * m.x[t] for t in m.T) <= 2)
            m.own = pyo.Constraint(m.T, rule=lambda m, t: m.fare[t, "a"] * m.x[t] + m.fare[t, "b"] * m.x[t] <= 1)
    if several:
        if by_dot:
            m.choice = pyo.Constraint(m.T, rule=lambda m, t: osilp.dot([1.0, 1.0], m.y[t, :]) <= 1)
        else:
            m.choice = pyo.Constraint(m.T, rule=lambda m, t: m.y[t, "a"] + m.y[t, "b"] <= 1)
    if kind == "hidden":
        if by_dot:
            m.shared = pyo.Constraint(expr=osilp.dot(numbers, m.x) <= 2)
        else:
            m.shared = pyo.Constraint(expr=sum(float(numbers[t - 1]) * m.x[t] for t in m.T) <= 2)
    return m


@pytest.mark.parametrize("kind", ["plain", "several decisions", "curves", "rows", "hidden"])
def test_stages_by_dot_have_the_template_of_sums(kind):
    programs = [
        osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))
        for m in (stage_model(True, kind), stage_model(False, kind))
    ]
    one, other = programs
    assert one.fingerprint == other.fingerprint
    assert str(one.describe()) == str(other.describe())
    runs = [program.replay(osilp.MirrorDescent()) for program in programs]
    assert np.array_equal(np.asarray(runs[0].decisions), np.asarray(runs[1].decisions))
    assert one.solve_offline().objective == other.solve_offline().objective


def test_decisions_keep_the_order_of_sums():
    programs = []
    for by_dot in (True, False):
        m = stage_model(by_dot, "plain")
        m.del_component(m.reward)
        if by_dot:
            m.reward = pyo.Objective(expr=osilp.dot(m.fare, m.y) + osilp.dot(m.value, m.x) + m.x[3], sense=pyo.maximize)
        else:
            gain = sum(m.fare[i] * m.y[i] for i in m.fare) + sum(m.value[t] * m.x[t] for t in m.T) + m.x[3]
            m.reward = pyo.Objective(expr=gain, sense=pyo.maximize)
        programs.append(osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4)))
    one, other = programs
    assert [str(label) for label in one.template.decisions] == ["y[a]", "y[b]", "x"]
    assert one.fingerprint == other.fingerprint
    assert str(one.describe()) == str(other.describe())


def test_dots_over_parts_of_the_stages_are_one_sum():
    m, other = stage_model(True, "plain"), stage_model(False, "plain")
    m.del_component(m.reward)
    stages = list(m.T)
    halves = [osilp.dot([m.value[t] for t in half], [m.x[t] for t in half]) for half in (stages[:3], stages[3:])]
    m.reward = pyo.Objective(expr=halves[0] + halves[1], sense=pyo.maximize)
    programs = [osilp.compile_online(each, stages=each.T, basis=osilp.RBF(4)) for each in (m, other)]
    assert programs[0].fingerprint == programs[1].fingerprint
    assert programs[0].controller(osilp.Greedy()).step(value=1.0, place=0.5).x == 1.0


@pytest.mark.parametrize("by_dot", [True, False])
def test_named_expressions_of_data_stay_data(by_dot):
    m = stage_model(by_dot, "plain")
    m.names = pyo.Set(initialize=list("abcdef"))
    m.size = pyo.Expression(m.names, rule=lambda m, name: 2 * m.value["abcdef".index(name) + 1])
    sizes = [m.size[name] for name in m.names]
    for t in m.T:
        m.value[t] = 1.0

    @m.SemiInfiniteConstraint(m.u)
    def used(m, u):
        return (1 + u) * (
            osilp.dot(sizes, m.x) if by_dot else sum(e * m.x[t] for e, t in zip(sizes, m.T, strict=True))
        ) <= 4

    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))
    assert program.controller(osilp.Greedy()).step(value=50.0, place=0.5).x == pytest.approx(0.02)


def test_a_wrong_limit_among_thousands_of_terms_is_found():
    m = pyo.ConcreteModel()
    m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(4000)
    m.p = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.o = pyo.Objective(expr=osilp.dot(np.ones(4000), m.x), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def row(m, u):
        limit = (3 if isinstance(u, float) else 4000) * (1 + u)
        return sum((1 + u * m.p[t]) * m.x[t] for t in m.T) - limit <= 0

    with pytest.raises(osilp.errors.ModelError, match="traced with a symbol its rule gives another row"):
        osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))


PLACES = np.array([0.1, 0.3, 0.5, 0.9, 0.7, 0.2])
BY_NUMPY = {
    "vstack": lambda m, u: sum(np.vstack([u * PLACES, PLACES])[0, t - 1] * m.x[t] for t in m.T) <= 3,
    "outer": lambda m, u: sum(np.outer(u * PLACES, PLACES)[0, t - 1] * m.x[t] for t in m.T) <= 3,
    "reshape": lambda m, u: sum((u * PLACES).reshape(2, 3)[0, 1] * m.x[t] for t in m.T) <= 3,
    "tolist": lambda m, u: sum(a * x for a, x in zip((u * PLACES).tolist(), m.x.values(), strict=True)) <= 3,
    "a condition of Python's": lambda m, u: sum((1 + u * (t == 3)) * m.x[t] for t in m.T) <= 3,
    "an array of exponents": lambda m, u: osilp.dot((1 + u) ** osilp.array(m.place), m.x) <= 3,
}


@pytest.mark.parametrize("name", BY_NUMPY)
def test_other_functions_of_numpy_are_traced_too(name):
    m = stage_model(True, "plain")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.row = osilp.SemiInfiniteConstraint(m.u, rule=BY_NUMPY[name])
        osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))
    assert m.row.route == "traced"


def test_a_row_with_a_hundredth_of_its_terms_wrong_is_found():
    """A rule that looks at the number in one term of a hundred is refused, for any hundred."""
    count = 3000

    def model(first):
        m = pyo.ConcreteModel()
        m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(0, count - 1)
        m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
        m.x = pyo.Var(m.T, bounds=(0, 1))
        m.o = pyo.Objective(expr=sum(m.a[t] * m.x[t] for t in m.T), sense=pyo.maximize)

        def rule(m, u):
            wrong = 2.0 if isinstance(u, float) else 1.0
            return sum(
                (wrong if t % 100 == first else 1.0) * m.a[t] * u * m.x[t] for t in m.T
            ) <= 5  # fmt: skip

        m.row = osilp.SemiInfiniteConstraint(m.u, rule=rule)
        return m

    for first in (0, 57):
        m = model(first)
        with pytest.raises(osilp.errors.ModelError, match="traced with a symbol its rule gives another row"):
            osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))


def test_terms_in_another_order_are_the_same_row():
    m = stage_model(False, "plain")
    order = [0]

    def rule(m, u):
        order[0] += 1
        stages = list(m.T) if order[0] % 2 else list(m.T)[::-1]
        return sum((u - m.place[t]) ** 2 * m.x[t] for t in stages) <= 5

    m.again = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))
    assert [family.name for family in program.template.families] == ["usage", "again"]
    # The rule was really asked again, and answered in the other order.
    assert order[0] >= 2


# -- everybody reads it ------------------------------------------------------------------------------


def plain_model(by_dot):
    """An ordinary linear model."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(["a", "b", "c"], bounds=(0, 4))
    m.y = pyo.Var(bounds=(0, 1))
    m.p = pyo.Param(initialize=2.0, mutable=True)
    m.w = pyo.Param(m.x.index_set(), initialize={"a": 1.0, "b": 2.0, "c": 4.0}, mutable=True)
    numbers = [1.0, 2.5, -1.0]
    if by_dot:
        body, weighted = osilp.dot(numbers, m.x), osilp.dot(m.w, m.x)
    else:
        body = sum(c * v for c, v in zip(numbers, m.x.values(), strict=True))
        weighted = sum(m.w[k] * m.x[k] for k in m.x)
    m.e = pyo.Expression(expr=body - m.y)
    m.row = pyo.Constraint(expr=body + m.p * m.y <= 5)
    m.turned = pyo.Constraint(expr=m.y - 2 * weighted >= -12)
    m.between = pyo.Constraint(expr=(-3, m.e / 2, 3))
    m.gain = pyo.Objective(expr=weighted + 3 * m.e, sense=pyo.maximize)
    return m


@pytest.mark.parametrize("ending", ["lp", "nl", "mps", "gms", "bar"])
def test_writers_write_the_same_file(tmp_path, ending):
    texts = []
    for by_dot in (True, False):
        path = tmp_path / f"{by_dot}.{ending}"
        plain_model(by_dot).write(str(path), io_options={"symbolic_solver_labels": ending in ("lp", "mps")})
        # Terms may come in another order, and 1 as 1.0.
        text = re.sub(r"(\d)\.0\b", r"\1", path.read_text().replace(str(path), ""))
        texts.append(sorted(text.split()))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("solver", ["appsi_highs", "highs"])
def test_solvers_find_the_same_optimum(solver):
    values = []
    for by_dot in (True, False):
        m = plain_model(by_dot)
        pyo.assert_optimal_termination(pyo.SolverFactory(solver).solve(m))
        values.append(pyo.value(m.gain))
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_readers_of_pyomo_see_terms():
    m, other = plain_model(True), plain_model(False)
    for name in ("row", "turned", "between"):
        body, expected = m.component(name).body, other.component(name).body
        assert [v.name for v in identify_variables(body)] == [v.name for v in identify_variables(expected)]
        assert body.polynomial_degree() == 1
        one, two = generate_standard_repn(body), generate_standard_repn(expected)
        assert sorted(zip(map(str, one.linear_vars), one.linear_coefs, strict=True)) == sorted(
            zip(map(str, two.linear_vars), two.linear_coefs, strict=True)
        )
    for v in (*m.x.values(), m.y):
        v.set_value(0.5)
    for v in (*other.x.values(), other.y):
        v.set_value(0.5)
    assert pyo.value(m.gain) == pyo.value(other.gain)
    assert str(differentiate(m.row.body, wrt=m.x["b"])) == str(differentiate(other.row.body, wrt=other.x["b"]))
    replaced = replace_expressions(m.row.body, {id(m.x["a"]): m.y})
    assert m.x["a"].name not in [v.name for v in identify_variables(replaced)]
    assert "2.5*x[b]" in str(m.row.expr)
    assert "2.5 x[b]" in latex_printer(m.row)


def test_adding_to_a_dot_leaves_it_as_it_is():
    m = plain_model(True)
    body = osilp.dot([1.0, 2.0, 3.0], m.x)
    text = str(body)
    sums = [body + m.y, body - m.y, m.y + body, body + 1, 1 - body, body + body, 2 * body, -body, body / 2, body * m.p]
    sums.append(sum([body, m.y, body]))
    sums.append(pyo.quicksum([m.y, body, 3]))
    added = body
    added += m.y
    for v in m.x.values():
        v.set_value(1.0)
    m.y.set_value(10.0)
    assert [pyo.value(each) for each in sums] == [16, -4, 16, 7, -5, 12, 12, -6, 3, 12, 22, 19]
    assert pyo.value(added) == 16
    assert str(body) == text


def test_clones_and_pickles_stay_light():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(500))
    m.rows = pyo.ConstraintList()
    for i in range(1, 21):
        m.rows.add(osilp.dot(np.arange(500.0) + i, m.x) <= i)
    size = len(pickle.dumps(m))
    by_terms = pyo.ConcreteModel()
    by_terms.x = pyo.Var(range(500))
    by_terms.rows = pyo.ConstraintList()
    for i in range(1, 21):
        by_terms.rows.add(sum((k + i) * by_terms.x[k] for k in range(500)) <= i)
    assert size < len(pickle.dumps(by_terms)) / 1.5
    for copy in (m.clone(), pickle.loads(pickle.dumps(m))):
        (node,) = copy.rows[3].body.args
        block = block_of(node)
        assert block is not None
        assert block.variables[7] is copy.x[7]
        assert copy.rows[3].body(exception=False) is None
        for v in copy.x.values():
            v.set_value(1.0)
        assert pyo.value(copy.rows[3].body) == sum(range(500)) + 1500


def test_no_reader_of_this_package_expands_a_dot(monkeypatch):
    """Declaring, solving, compiling and printing read the arrays, and never the terms."""

    def refuse(self):
        raise AssertionError("expanded")

    m = stage_model(True, "several decisions")
    robust = pyo.ConcreteModel()
    robust.x = pyo.Var(range(4), bounds=(0, 1))
    monkeypatch.setattr(DotTerms, "_terms", refuse)
    factors = np.ones((2, 4))

    @robust.SemiInfiniteConstraint(BoxSet([(-1, 1)] * 2))
    def row(m, xi):
        return osilp.dot(2 + xi @ factors, m.x) <= 3

    robust.o = pyo.Objective(expr=osilp.dot(np.ones(4), robust.x), sense=pyo.maximize)
    assert osilp.solve(robust).objective == pytest.approx(0.75)
    assert "dot(" in repr(robust.row)
    assert osilp.solve(m).status == "optimal"
    osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))
    m.clone()


def test_an_array_changed_after_declaring_does_not_matter():
    places, gains = np.array([0.2, 0.5, 0.9]), np.array([1.0, 2.0, 3.0])
    factors = np.array([[0.1, 0.2, 0.3]])
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(3), bounds=(0, 1))
    m.o = pyo.Objective(expr=osilp.dot(gains, m.x), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: osilp.dot(np.exp(-(((u - places) / 0.3) ** 2)), m.x) <= 1
    )
    m.robust = osilp.SemiInfiniteConstraint(BoxSet([(-1, 1)]), rule=lambda m, xi: osilp.dot(1 + xi @ factors, m.x) <= 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = osilp.solve(m).objective
        for array in (places, gains, factors):
            array += 0.5
        assert osilp.solve(m).objective == before
        assert osilp.solve(m.clone()).objective == before


# -- alignment and refusals --------------------------------------------------------------------------


def test_labels_decide_the_order():
    m = plain_model(True)
    for v, value in zip(m.x.values(), (1.0, 10.0, 100.0), strict=True):
        v.set_value(value)
    shuffled = pd.Series({"c": 3.0, "a": 1.0, "b": 2.0})
    variables = pd.Series({"b": m.x["b"], "c": m.x["c"], "a": m.x["a"]})
    assert pyo.value(osilp.dot(shuffled, m.x)) == 321
    assert pyo.value(osilp.dot(shuffled.to_dict(), m.x)) == 321
    assert pyo.value(osilp.dot(shuffled, variables)) == 321
    assert pyo.value(osilp.dot(m.w, variables)) == 421
    assert pyo.value(osilp.dot(shuffled, [m.x["b"], m.x["a"], m.x["c"]])) == 321
    assert pyo.value(osilp.dot(np.array([3, 1, 2]), [m.x["c"], m.x["a"], m.x["b"]])) == 321
    assert pyo.value(osilp.dot(shuffled + osilp.array(m.w), m.x)) == 742
    m.z = pyo.Var([1, 2], ["p", "q"], initialize=lambda m, i, k: i * 10 + (k == "q"))
    assert pyo.value(osilp.dot(pd.Series({"q": 1.0, "p": 100.0}), m.z[2, :])) == 2021
    table = pd.Series([1.0, 2.0, 3.0, 4.0], index=pd.MultiIndex.from_product([[1, 2], ["p", "q"]]))
    assert pyo.value(osilp.dot(table[::-1], m.z)) == 10 + 22 + 60 + 84


def test_columns_of_arrow_are_arrays():
    pa = pytest.importorskip("pyarrow")
    m = plain_model(True)
    for v in m.x.values():
        v.set_value(1.0)
    assert pyo.value(osilp.dot(pa.array([1.0, 2.0, 3.5]), m.x)) == 6.5
    assert pyo.value(osilp.dot(pa.chunked_array([[1.0, 2.0], [3.5]]), m.x)) == 6.5


REFUSED = {
    "a masked array": (
        lambda m: osilp.dot(np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), m.x),
        "dot: a masked array has entries without a number; fill them, as by .filled(0).",
    ),
    "a sparse array": (
        lambda m: osilp.dot(sparse.eye_array(3), m.x),
        "dot: a sparse array (dia_array) cannot stand here; write it out by .toarray().",
    ),
    "nan beside a Param": (
        lambda m: osilp.dot([m.p, np.nan, 3.0], m.x),
        "dot: entry 1 of its array is nan; every coefficient must be a finite number.",
    ),
    "a relation": (
        lambda m: osilp.dot([m.p <= 1, 1.0, 2.0], m.x),
        "dot: its coefficients hold a relation (p  <=  1); say what holds by np.where.",
    ),
    "relations": (
        lambda m: osilp.dot(osilp.array(m.w) <= 1, m.x),
        "dot: its coefficients are relations (w  <=  1); say what holds by np.where.",
    ),
    "too few": (
        lambda m: osilp.dot([1.0, 2.0], m.x),
        "dot: there are 2 coefficients and 3 variables of 'x'; give one coefficient for each variable.",
    ),
    "a matrix": (
        lambda m: osilp.dot(np.ones((3, 2)), m.x),
        "dot: expected an array with one coefficient for each variable of 'x' (got coefficients of the shape (3, 2)).",
    ),
    "a number": (
        lambda m: osilp.dot(2.0, m.x),
        "dot: expected an array with one coefficient for each variable of 'x' (got a single coefficient).",
    ),
    "a missing label": (
        lambda m: osilp.dot(pd.Series({"a": 1.0, "b": 2.0, "d": 3.0}), m.x),
        "dot: the coefficients and the variables of 'x' do not align: 'c' is missing.",
    ),
    "a label too many": (
        lambda m: osilp.dot(pd.Series({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}), m.x),
        "dot: the coefficients and the variables of 'x' do not align: 'd' belongs to nothing, and 1 more.",
    ),
    "a label twice": (
        lambda m: osilp.dot(pd.Series([1.0, 2.0, 3.0], index=["a", "b", "b"]), m.x),
        "dot: the coefficients and the variables of 'x' do not align: 'b' occurs more than once.",
    ),
    "labels and none": (
        lambda m: osilp.dot(pd.Series([1.0, 2.0]), [m.x["a"], m.y]),
        "dot: its coefficients have labels and its variables have none; give the coefficients by .to_numpy(), or the "
        "variables as a Var or a Series.",
    ),
    "two Series that do not fit": (
        lambda m: osilp.array(pd.Series({"a": 1.0})) + pd.Series({"b": 1.0}),
        "the labels of two arrays do not align: 'a' is missing.",
    ),
    "nan": (
        lambda m: osilp.dot([1.0, np.nan, 2.0], m.x),
        "dot: entry 1 of its array is nan; every coefficient must be a finite number.",
    ),
    "an infinite entry of a Series": (
        lambda m: osilp.dot(pd.Series({"a": 1.0, "b": np.inf, "c": 2.0}), m.x),
        "dot: entry 1 ('b') of its array is inf; every coefficient must be a finite number.",
    ),
    "None": (
        lambda m: osilp.dot([1.0, None, 2.0], m.x),
        "dot: entry 1 of an array is None; every entry must be a number or an expression.",
    ),
    "texts": (
        lambda m: osilp.dot(["1", "2", "3"], m.x),
        "dot: its numbers must be real numbers (got an array of <U1).",
    ),
    "a text": (
        lambda m: osilp.dot("abc", m.x),
        "dot: expected an array of numbers or a formula of the index (got str).",
    ),
    "complex numbers": (
        lambda m: osilp.dot(np.array([1j, 2, 3]), m.x),
        "dot: its numbers must be real numbers (got an array of complex128).",
    ),
    "a frame": (
        lambda m: osilp.dot(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), m.x),
        "dot: a DataFrame cannot stand in an array of coefficients; take a column, or .stack() it.",
    ),
    "a Param for variables": (
        lambda m: osilp.dot([1.0, 2.0, 3.0], m.w),
        "dot: entry 0 of its variables is w[a], a ParamData and no variable; put expressions beside the dot, "
        "multiplied by hand.",
    ),
    "an expression for a variable": (
        lambda m: osilp.dot([1.0], [m.y + 1]),
        "dot: entry 0 of its variables is y + 1, a LinearExpression and no variable; put expressions beside the dot, "
        "multiplied by hand.",
    ),
    "no variables": (
        lambda m: osilp.dot([1.0], 3.0),
        "dot: expected a Var, a slice, a list or a Series of variables (got float).",
    ),
    "a variable among coefficients": (
        lambda m: osilp.dot([m.y, 1.0, 2.0], m.x),
        "dot: its coefficients hold the variable 'y'; they must be data. A product of variables is not linear; for a "
        "fixed variable use a mutable Param.",
    ),
    "a Var as data": (
        lambda m: osilp.array(m.x),
        "the Var 'x' stands among data; write osilp.dot(coefficients, x).",
    ),
    "shapes that do not fit": (
        lambda m: osilp.array(np.ones(2)) + np.ones(3),
        "arrays of the shapes (2,) and (3,) do not fit together.",
    ),
    "shapes that cannot be multiplied": (
        lambda m: osilp.array(np.ones(2)) @ np.ones((3, 2)),
        "arrays of the shapes (2,) and (3, 2) cannot be multiplied by '@'.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_words(name):
    m = plain_model(True)
    call, text = REFUSED[name]
    with pytest.raises(osilp.errors.DeclarationError) as caught:
        call(m)
    assert str(caught.value) == text


IN_RULES = {
    "shapes": (
        lambda m, u: osilp.dot(u - np.ones(2), m.x) <= 1,
        "SemiInfiniteConstraint 'row': dot: there are 2 coefficients and 3 variables of 'x'; give one coefficient for "
        "each variable.",
    ),
    "an array times a variable": (
        lambda m, u: (u - np.ones(3)) * m.y <= 1,
        "SemiInfiniteConstraint 'row': an array of expressions cannot hold variables; write osilp.dot(coefficients, "
        "variables).",
    ),
    "a Param in front": (
        lambda m, u: osilp.dot(np.exp(m.p * u - np.ones(3)), m.x) <= 1,
        "SemiInfiniteConstraint 'row': numpy's exp was given what Pyomo made of the index; write the index first, as in "
        "u * m.p in place of m.p * u, or use pyomo.environ's functions.",
    ),
    "a function of Pyomo on an array": (
        lambda m, u: osilp.dot(pyo.exp(u - np.ones(3)), m.x) <= 1,
        "SemiInfiniteConstraint 'row': dot: functions of pyomo.environ take no arrays; use those of numpy, such as np.exp.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_RULES)
def test_rules_that_cannot_be_are_refused_by_name(name):
    m = plain_model(True)
    m.u = ContinuousSet(bounds=(0, 1))
    rule, text = IN_RULES[name]
    with pytest.raises(osilp.errors.DeclarationError) as caught:
        m.row2 = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    assert str(caught.value) == text.replace("'row'", "'row2'")
    assert m.component("row2") is None


SAMPLED = {
    "math": (
        lambda m, u: math.exp(u) * m.y <= 1,
        "math.exp needs a number, and the index stands for every point: use np.exp",
    ),
    "interp": (
        lambda m, u: np.interp(u, [0, 1], [1, 2]) * m.y <= 1,
        "numpy's interp needs numbers, and the index stands for every point: give the curve as "
        "osilp.Profile(over=..., points=..., initialize=...) and write m.curve(u)",
    ),
    "float": (
        lambda m, u: float(u) * m.y <= 1,
        "TypeError: 'u' stands for every point and is no number; use functions of numpy or Pyomo",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLED)
def test_what_needs_numbers_is_told_by_name(name):
    m = plain_model(True)
    m.u = ContinuousSet(bounds=(0, 1))
    rule, reason = SAMPLED[name]
    with pytest.warns(osilp.errors.SamplingWarning):
        m.row2 = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    assert m.row2.reason == reason


# -- vectors and arrays ------------------------------------------------------------------------------


def vector_row(rule, dimension=3):
    """The coefficients (1 + d, 3) that a rule over a box gives x, and what it prints."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3))
    m.row = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)] * dimension), rule=rule)
    return m.row.affine.matrix


def test_vectors_are_arrays():
    a = np.array([1.0, 2.0, 3.0])
    eye = np.vstack([np.zeros(3), np.eye(3)])
    cases = [
        (lambda m, xi: osilp.dot(2 * xi, m.x) <= 1, 2 * eye),
        (lambda m, xi: osilp.dot(xi * a + a, m.x) <= 1, eye * a + np.vstack([a, np.zeros((3, 3))])),
        (lambda m, xi: osilp.dot(-xi / 4, m.x) <= 1, -eye / 4),
        (lambda m, xi: osilp.dot(xi + xi, m.x) <= 1, 2 * eye),
        (lambda m, xi: osilp.dot(np.diag(a) @ xi, m.x) <= 1, np.vstack([np.zeros(3), np.diag(a)])),
        (lambda m, xi: osilp.dot(xi[1:], [m.x[0], m.x[1]]) + m.x[2] <= xi[0], None),
        (lambda m, xi: (xi @ a) * m.x[0] + xi.sum() * m.x[1] + np.sum(xi[:2]) * m.x[2] <= 1,
         np.array([[0, 0, 0], [1, 1, 1], [2, 1, 1], [3, 1, 0.0]])),
    ]  # fmt: skip
    for rule, expected in cases:
        found = vector_row(rule)
        if expected is not None:
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(vector_row(cases[5][0]), [[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0]])


def test_a_vector_of_numbers_is_numpys():
    xi = Vector((1.0, 2.0, 3.0))
    assert isinstance(2 * xi, np.ndarray)
    assert (2 * xi).tolist() == [2, 4, 6]
    assert (xi @ np.ones((3, 2))).tolist() == [6, 6]
    assert isinstance(xi[1:], Vector)
    assert xi[1:] == (2.0, 3.0)
    assert xi[[0, 2]] == (1.0, 3.0)
    assert np.linalg.norm(2 * xi) == pytest.approx(2 * 14**0.5)
    assert np.exp(xi).shape == (3,)
    assert xi.sum() == 6


@pytest.mark.parametrize("key", [[0, 4], [True, False], "a", 1.0])
def test_entries_that_a_vector_does_not_have_are_explained(key):
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3))
    with pytest.raises(osilp.errors.DeclarationError, match="of an uncertain vector of dimension 3"):
        m.row = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)] * 3), rule=lambda m, xi: m.x[0] >= np.sum(xi[key]))


def test_arrays_of_one_entry_stay_arrays():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var([0], bounds=(0, 10))
    place = np.array([0.5])
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: osilp.dot(np.exp(-((2 * u - place) ** 2)), m.x) <= 1)
    m.o = pyo.Objective(expr=osilp.dot([1.0], m.x), sense=pyo.maximize)
    assert m.row.route == "traced"
    assert osilp.solve(m).objective == pytest.approx(1.0)


# -- what went wrong once ----------------------------------------------------------------------------

MASK = np.array([False, False, True])
SERIES = pd.Series({"b": 2.0, "a": 3.0})
MOVED = np.array([[1.0, 0.5, 0.2], [0.3, 0.1, 0.9], [0.0, 0.0, 0.0]])
# Rules y >= f over xi in [1, 2] x [10, 20] x [100, 200], and the least y by numpy's meaning.
MEANINGS = {
    "a mask": (lambda m, xi: m.y >= sum(xi[MASK]), 200),
    "a list of booleans": (lambda m, xi: m.y >= sum(xi[[False, False, True]]), 200),
    "clipped by keywords": (lambda m, xi: m.y >= np.clip(xi[0] * osilp.array(m.q), a_min=None, a_max=10.0).sum(), 12),
    "clipped by new keywords": (lambda m, xi: m.y >= np.clip(xi[0] * osilp.array(m.q), min=None, max=10.0).sum(), 12),
    "labels on both sides of @": (lambda m, xi: m.y >= (xi[0] * osilp.array(m.q)) @ SERIES, 406),
    "labels on both sides of *": (lambda m, xi: m.y >= (xi[0] * osilp.array(m.q) * SERIES).sum(), 406),
    "one behind the other": (lambda m, xi: m.y >= np.concatenate([xi, [1]]).sum(), 223),
    "a product of products": (lambda m, xi: m.y >= (xi @ np.ones((3, 2))) @ np.array([1.0, 2.0]), 666),
    "a quadratic form": (lambda m, xi: m.y >= xi @ np.eye(3) @ xi, 4 + 400 + 40000),
    "what an array has": (
        lambda m, xi: m.y >= xi.T.dot(np.ones(3)) + xi.shape[0] + (xi[:, None] * np.ones((3, 2))).sum(),
        669,
    ),
    "a sum along an axis": (lambda m, xi: m.y >= np.add.reduce(xi[0] * np.array([[1.0, 2.0], [3.0, 4.0]]))[1], 12),
    "a mean": (lambda m, xi: m.y >= (2 * xi).mean(), 148),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_arrays_mean_what_they_mean_in_numpy(name):
    rule, least = MEANINGS[name]
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1e6), initialize=1)
    m.q = pyo.Param(["a", "b"], mutable=True, initialize={"a": 1.0, "b": 100.0})
    m.c = osilp.SemiInfiniteConstraint(BoxSet([(1, 2), (10, 20), (100, 200)]), rule=rule)
    m.o = pyo.Objective(expr=m.y)
    assert m.c.route == "traced"
    assert osilp.solve(m).objective == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(
    "formula", [np.square, lambda q: 1 / (3 + q**2), np.exp, lambda q: np.maximum(q, 1.5), np.ceil]
)
def test_rows_stay_affine_whatever_their_data(formula):
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 10))
    m.q = pyo.Param(range(3), mutable=True, initialize={0: 1.0, 1: 2.0, 2: 3.0})
    rule = lambda m, xi: osilp.dot((xi @ MOVED) * formula(osilp.array(m.q)), m.x) <= 6  # noqa: E731
    m.c = osilp.SemiInfiniteConstraint(BoxSet([(0, 1)] * 3), rule=rule)
    m.o = pyo.Objective(expr=osilp.dot(np.ones(3), m.x), sense=pyo.maximize)
    values = np.asarray(formula(np.array([1.0, 2.0, 3.0])), dtype=float)
    best = scipy_optimum(values * MOVED.sum(axis=0), 6.0)
    assert osilp.solve(m, method="counterpart").objective == pytest.approx(best, rel=1e-9)
    m.q[0] = 2.0
    values = np.asarray(formula(np.array([2.0, 2.0, 3.0])), dtype=float)
    assert osilp.solve(m).objective == pytest.approx(scipy_optimum(values * MOVED.sum(axis=0), 6.0), rel=1e-9)


def scipy_optimum(row, limit):
    """The largest sum of three variables in [0, 10] under one row."""
    return -linprog(-np.ones(3), A_ub=row[None], b_ub=[limit], bounds=[(0, 10)] * 3).fun


NOT_LINEAR = [
    lambda m, u: np.maximum(u, m.y) + m.x["a"] >= 3,
    lambda m, u: np.clip(u, 0.2, m.y) <= m.x["a"],
    lambda m, u: m.y * osilp.dot([1.0, 2.0, 3.0], m.x) <= u,
]


@pytest.mark.parametrize("rule", NOT_LINEAR)
def test_variables_within_functions_are_not_taken_for_data(rule):
    m = plain_model(True)
    m.u = ContinuousSet(bounds=(0, 1))
    m.y.set_value(1.0)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    with pytest.raises(osilp.errors.NotLinearError):
        osilp.solve(m)


def test_a_convex_function_of_variables_is_one():
    m = plain_model(True)
    m.u = ContinuousSet(bounds=(0, 1))
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: np.maximum(u, osilp.dot([1.0, 2.0, 3.0], m.x)) <= m.y)
    result = osilp.solve(m)
    assert result.certified
    x = result.values
    assert max(1.0, x["x[a]"] + 2 * x["x[b]"] + 3 * x["x[c]"]) <= x["y"] + 1e-9


REFUSED_IN_NUMPY = {
    "options of sum": (
        lambda m, u: m.y >= np.sum(u * osilp.array(m.w), where=[True, False, True]),
        "numpy's sum with where= needs numbers, and the index stands for every point: use functions that numpy and Pyomo "
        "share, such as np.exp, np.sin, np.maximum.",
    ),
    "labels over two dimensions": (
        lambda m, u: osilp.dot((u * osilp.array(m.w) * np.ones((2, 3)))[1], m.x) <= 1,
        "an array with labels, of a Series or a Param, cannot be spread over the shape (2, 3); use .to_numpy() where the "
        "order is what counts.",
    ),
    "labels within where": (
        lambda m, u: osilp.dot(np.where(u <= pd.Series({"c": 0.1, "a": 0.2, "b": 0.3}), 1.0, 2.0), m.x) <= 1,
        "np.where drops the labels of a Series; give it by .to_numpy(), in the order of variables.",
    ),
    "inner products of matrices": (
        lambda m, u: m.y >= np.inner(u * np.ones(2), np.ones((2, 2)))[0],
        "np.inner and np.vdot take arrays of one dimension here; write '@' for others.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_IN_NUMPY)
def test_what_numpy_would_mean_otherwise_is_refused(name):
    m = plain_model(True)
    m.u = ContinuousSet(bounds=(0, 1))
    rule, text = REFUSED_IN_NUMPY[name]
    with pytest.raises(osilp.errors.DeclarationError) as caught:
        m.c = osilp.SemiInfiniteConstraint(m.u, rule=rule)
    assert str(caught.value) == f"SemiInfiniteConstraint 'c': {text}"


def test_bounds_and_derivatives_by_pyomo():
    m = plain_model(True)
    fbbt(m)
    for v in (*m.x.values(), m.y):
        v.set_value(0.5)
    assert differentiate(m.row.body, wrt=m.x["b"], mode=differentiate.Modes.reverse_numeric) == 2.5


def test_a_slice_of_a_product_is_read_as_pyomo_walks_it():
    m = pyo.ConcreteModel()
    m.S = pyo.Set(initialize=[3, 1, 2])
    m.x = pyo.Var(range(2), ["b", "a"], m.S)
    m.pairs = pyo.Set(initialize=[(1, 1), (1, 2), (3, 1)])
    m.y, m.z = pyo.Var(m.pairs), pyo.Var(m.S)
    for each in (m.x[1, :, 2], m.x[0, "a", :], m.x[:, "b", 1], m.x[1, :, :], m.y[1, :], m.y[:, 1], m.z[:]):
        walked = [variable.name for variable in each]
        assert [variable.name for variable in identify_variables(osilp.dot([1.0] * len(walked), each))] == walked
