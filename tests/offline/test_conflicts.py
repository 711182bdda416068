"""What makes a model infeasible: conflicts that scipy finds infeasible too, and feasible without any one part."""

import re

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optima import PROBLEMS
from pyomo.contrib.pyros import BudgetSet
from pyomo.dae import ContinuousSet
from scipy.optimize import linprog

import osilp_pyomo as osilp
from osilp_pyomo.model.trace import trace_model

# Of one, fractions satisfy all rows.
INFEASIBLE = [known for known in PROBLEMS if known.status == "infeasible" and known.name != "no_integer_in_the_band"]


def capacity_model():
    """A demand of 3 where capacity allows x <= 1 at u = 0 and y <= 1 at u = 1."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y, m.z = pyo.Var(bounds=(0, 4)), pyo.Var(bounds=(0, 4)), pyo.Var(bounds=(0, 4))
    m.gain = pyo.Objective(expr=m.x + m.y + m.z, sense=pyo.maximize)
    m.demand = pyo.Constraint(expr=m.x + m.y >= 3)
    m.other = pyo.Constraint(expr=m.z >= 1)
    m.cap = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * (1 - u) + m.y * u <= 1 + u * (1 - u))
    return m


def four_arrivals():
    """Arrivals without rows; of ``LABELLED``, three are equal."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(4)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 2))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    return m


LABELLED = pd.DataFrame({"value": [1.0, 1.0, 2.0, 1.0]}, index=list("abcd"))


def inequalities(model, conflict):
    """The parts of a conflict as rows ``a x <= b``, formed from the model and not by the code that found them."""
    problem = trace_model(model).problem
    core = problem.core
    families = {family.name: family for family in problem.families}
    names, columns = list(core.row_names), list(core.column_names)
    rows, limits = [], []
    for clause in conflict.itertuples():
        coefficients = np.zeros(core.columns)
        if clause.kind == "row":
            family = families[clause.name]
            block = family.block(np.atleast_2d(np.array(clause.place, dtype=float)))
            coefficients[block.columns] = block.matrix[0]
            lower, upper = block.lower[0], block.upper[0]
        elif clause.kind == "constraint":
            row = names.index(clause.name)
            coefficients = core.matrix[[row]].toarray()[0]
            lower, upper = core.row_lower[row], core.row_upper[row]
        else:
            column = columns.index(clause.name)
            coefficients[column] = 1.0
            lower, upper = core.column_lower[column], core.column_upper[column]
        sign = 1.0 if clause.side == "at most" else -1.0
        limit = upper if clause.side == "at most" else lower
        assert limit == pytest.approx(clause.limit, rel=1e-12)
        rows.append(sign * coefficients)
        limits.append(sign * limit)
    return np.array(rows), np.array(limits)


def satisfiable(rows, limits):
    if not len(rows):
        return True
    size = np.abs(rows).max(axis=1)
    size[size == 0] = 1.0
    # scipy's tolerances are absolute: rows of size 1, and variables in units that make limits so.
    limits = limits / size
    found = linprog(
        np.zeros(rows.shape[1]),
        rows / size[:, None],
        limits / max(np.abs(limits).max(), 1e-300),
        bounds=(None, None),
        options={"primal_feasibility_tolerance": 1e-10},
    )
    assert found.status in (0, 2)
    return found.status == 0


def assert_irreducible(model, conflict):
    """The parts contradict each other, by scipy and by their weights, and without any one of them they do not."""
    rows, limits = inequalities(model, conflict)
    assert not satisfiable(rows, limits)
    weights = conflict["weight"].to_numpy()
    assert np.all(weights > 0)
    np.testing.assert_allclose(weights @ rows, 0, atol=1e-8 * (weights @ np.abs(rows)).max())
    assert weights @ limits < 0
    for left_out in range(len(rows)):
        assert satisfiable(np.delete(rows, left_out, axis=0), np.delete(limits, left_out))


@pytest.mark.parametrize("known", INFEASIBLE, ids=[known.name for known in INFEASIBLE])
def test_known_problems_tell_what_conflicts(known):
    model = known.build()
    result = osilp.solve(model)
    assert len(result.conflict)
    assert_irreducible(model, result.conflict)


def test_by_hand():
    result = osilp.solve(capacity_model())
    frame = result.conflict
    assert frame[["kind", "name", "place", "side", "limit"]].to_numpy().tolist() == [
        ["constraint", "demand", None, "at least", 3.0],
        ["row", "cap", 0.0, "at most", 1.0],
        ["row", "cap", 1.0, "at most", 1.0],
    ]
    np.testing.assert_allclose(frame["weight"], frame["weight"][0])
    assert str(result).partition("\n")[2] == (
        "  conflict   these cannot hold together:\n"
        "             'demand', at least 3\n"
        "             'cap' at u = 0 and u = 1, at most 1"
    )


def test_on_a_grid_and_on_test_functions():
    m = capacity_model()
    on_grid = osilp.solve(m, "discretized", grid=np.array([0.0, 0.5, 1.0]))
    assert_irreducible(m, on_grid.conflict)
    projected = osilp.solve(m, "projected", basis=osilp.Hat(6))
    assert projected.conflict["kind"].tolist() == ["constraint", "test function", "test function"]
    assert projected.conflict["place"].tolist() == [None, 0, 5]
    assert "'cap' against test functions 0, 5, at most " in str(projected)


def test_a_bound_that_takes_part_is_told():
    m = capacity_model()
    m.demand.deactivate()
    m.x.setlb(1.5)
    result = osilp.solve(m)
    assert str(result).endswith("'cap' at u = 0, at most 1\n             bound of x, at least 1.5")
    assert_irreducible(m, result.conflict)


def test_bounds_that_cross():
    m = capacity_model()
    m.x.setlb(5)
    for method in ("exchange", "discretized", "projected"):
        conflict = osilp.solve(m, method).conflict
        assert conflict[["kind", "name", "side", "limit"]].to_numpy().tolist() == [
            ["bound", "x", "at least", 5.0],
            ["bound", "x", "at most", 4.0],
        ]


def test_where_rows_alone_would_leave_the_objective_unbounded():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(), pyo.Var()
    m.cost = pyo.Objective(expr=m.y)
    m.low = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 2 + u)
    m.high = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 1 + u)
    result = osilp.solve(m)
    assert result.status == "infeasible"
    assert_irreducible(m, result.conflict)


def test_on_an_unbounded_index_limits_are_those_of_the_rule():
    """Far out rows are divided by their size while they are solved; that is nobody's business."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x, m.y = pyo.Var(bounds=(None, 0.5)), pyo.Var(bounds=(None, 1))
    m.cost = pyo.Objective(expr=m.x + m.y)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * pyo.exp(-u) + m.y >= 300 * pyo.exp(-u / 5))
    conflict = osilp.solve(m).conflict
    assert_irreducible(m, conflict)
    assert conflict["limit"][0] == pytest.approx(300 * np.exp(-conflict["place"][0] / 5))


def test_where_no_finite_number_of_rows_conflicts_there_is_none():
    """y <= 1 makes x >= 1 + u for every u."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x, m.y = pyo.Var(), pyo.Var(bounds=(None, 1))
    m.cost = pyo.Objective(expr=m.x + m.y)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + m.y * u >= 1 + 2 * u)
    result = osilp.solve(m)
    assert (result.status, len(result.conflict)) == ("undecided", 0)
    assert str(result).splitlines()[0].endswith("; it seems to be infeasible or unbounded, and nothing proves that")
    assert result.remark == (
        "no contradiction of finitely many rows was found, so that HiGHS' word is all there is; look for rows that "
        "conflict only in the limit, and for coefficients of very different size"
    )
    # Far out, x has next to no part in the row.
    assert osilp.solve(m, method="exchange").remark.startswith(
        "HiGHS left out coefficients that are tiny beside others of their row, which may be"
    )


def test_whole_numbers_alone_are_no_conflict_of_rows():
    m = capacity_model()
    m.demand.deactivate()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 1))
    m.half = pyo.Constraint(expr=2 * m.n == 1)
    result = osilp.solve(m)
    assert (result.status, len(result.conflict)) == ("infeasible", 0)
    assert str(result).partition("\n")[2] == (
        "  remark     no conflict but that of whole numbers is known: with fractions no contradiction of rows was found"
    )
    m.demand.activate()
    assert set(osilp.solve(m).conflict["name"]) == {"demand", "cap"}


@pytest.mark.parametrize("method", ["exchange", "counterpart"])
def test_of_a_robust_model_the_vectors_are_told(method):
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 1], bounds=(0, 10))
    m.profit = pyo.Objective(expr=m.x[0] + m.x[1], sense=pyo.maximize)
    m.xi = osilp.SemiInfiniteConstraint(BudgetSet([[1, 1]], [1.0]), rule=lambda m, xi: m.x[0] + xi[1] * m.x[1] >= 11)
    conflict = osilp.solve(m, method).conflict
    assert_irreducible(m, conflict)
    assert conflict["place"][0][1] == 0.0


def test_of_arrivals_each_is_told_with_its_own_limit():
    m = four_arrivals()
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[t] for t in m.T) <= 20 - u)
    m.least = pyo.Constraint(expr=sum(m.x[t] for t in m.T) >= 9)
    program = osilp.compile_online(m, stages=m.T)
    result = program.solve_offline(LABELLED)
    assert result.conflict[["kind", "name", "limit"]].to_numpy().tolist() == [
        ["constraint", "least", 9.0],
        ["bound", "x @ a", 2.0],
        ["bound", "x @ b", 2.0],
        ["bound", "x @ d", 2.0],
        ["bound", "x @ c", 2.0],
    ]
    assert str(result).endswith("bounds of 4 variables, such as x @ a, at most 2")


def test_own_rows_of_equal_arrivals_are_told_of_each():
    m = four_arrivals()
    m.x.setub(9)
    m.y = pyo.Var(m.T, bounds=(0, 9))
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[t] + m.y[t] for t in m.T) <= 200 - u)
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] + m.y[t] <= 2)
    m.least = pyo.Constraint(expr=sum(m.x[t] + m.y[t] for t in m.T) >= 20)
    program = osilp.compile_online(m, stages=m.T)
    result = program.solve_offline(LABELLED)
    told = result.conflict.set_index("name")["limit"]
    assert told.to_dict() == {"least": 20.0, "own @ a": 2.0, "own @ b": 2.0, "own @ d": 2.0, "own @ c": 2.0}


@pytest.mark.long
def test_a_sparse_model_of_many_rows_and_columns_is_explained():
    """What counts is how many coefficients there are, not rows times columns."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.K = pyo.RangeSet(150)
    m.x = pyo.Var(m.K, range(60), bounds=(0, 1))
    m.cost = pyo.Objective(expr=sum(m.x.values()))
    m.row = osilp.SemiInfiniteConstraint(
        m.K, m.u, rule=lambda m, k, u: sum((1 + u * j) * m.x[k, j] for j in range(60)) <= (-1 if k == 7 else 5)
    )
    result = osilp.solve(m)
    assert set(result.conflict["name"][:1]) == {"row[7]"}


def test_a_conflict_that_was_not_looked_for_says_so(monkeypatch):
    monkeypatch.setattr("osilp_pyomo.offline.conflicts.MOST_COEFFICIENTS", 3)
    remark = osilp.solve(capacity_model()).remark
    assert re.fullmatch(r"what conflicts was not looked for among \d+ coefficients; 3 are the most", remark)


def test_of_many_families_some_are_printed():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.K = pyo.RangeSet(8)
    m.x = pyo.Var(m.K)
    m.cost = pyo.Objective(expr=m.x[1])
    m.row = osilp.SemiInfiniteConstraint(m.K, m.u, rule=lambda m, k, u: m.x[k] <= u)
    m.least = pyo.Constraint(expr=sum(m.x.values()) >= 1)
    lines = str(osilp.solve(m)).splitlines()
    assert len(lines) == 2 + 6 + 1
    assert lines[-1] == "             and more, 3 lines like these; all parts are in result.conflict"


def test_names_that_look_like_those_of_arrivals_are_left_alone():
    m = four_arrivals()
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[t] for t in m.T) <= 200 - u)
    m.add_component("least @ a", pyo.Constraint(expr=sum(m.x[t] for t in m.T) >= 20))
    program = osilp.compile_online(m, stages=m.T)
    result = program.solve_offline(LABELLED)
    assert result.conflict[["name", "limit"]].to_numpy().tolist()[0] == ["least @ a", 20.0]


@pytest.mark.parametrize("size", [1e12, 1e9, 1e-9, 1e-12])
def test_numbers_of_any_size(size):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.cost = pyo.Objective(expr=m.x)
    m.most = pyo.Constraint(expr=m.x <= size)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= size * (2 + u))
    result = osilp.solve(m)
    assert result.status == "infeasible"
    assert_irreducible(m, result.conflict)


def test_many_places_of_a_row_are_one_line():
    """A polynomial of degree 6 misses |u - .5| by more than .005 somewhere, above or below, at eight places in turn."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(7))
    m.cost = pyo.Objective(expr=m.x[0])
    m.fit = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            abs(u - 0.5) - 0.005,
            sum(m.x[k] * (2 * u - 1) ** k for k in range(7)),
            abs(u - 0.5) + 0.005,
        ),
    )
    result = osilp.solve(m)
    assert_irreducible(m, result.conflict)
    lines = str(result).splitlines()
    assert len(lines) == 4
    for line in lines[2:]:
        side = "at least" if ", at least " in line else "at most"
        count = int((result.conflict["side"] == side).sum())
        assert count > 3
        assert line.startswith(f"             'fit' at {count} places, such as u = ")


def test_only_some_of_many_are_printed():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(30), bounds=(0, 1))
    m.cost = pyo.Objective(expr=m.x[0])
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x.values()) >= 31 + u)
    result = osilp.solve(m)
    assert len(result.conflict) == 31
    assert str(result).partition("\n")[2] == (
        "  conflict   these cannot hold together:\n"
        "             'row' at u = 1, at least 32\n"
        "             bounds of 30 variables, such as x[0], at most 1"
    )


def test_a_model_with_an_answer_has_no_conflict():
    m = capacity_model()
    m.demand.deactivate()
    frame = osilp.solve(m).conflict
    assert list(frame) == ["kind", "name", "place", "side", "limit", "weight"]
    assert not len(frame)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), columns=st.integers(1, 5), rows=st.integers(1, 8), scale=st.sampled_from([1e-3, 1, 1e5])
)
def test_random_systems(seed, columns, rows, scale):
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(columns), bounds=(0, 5) if seed % 2 else (None, None))
    m.cost = pyo.Objective(expr=sum(m.x.values()))
    slopes, limits = rng.integers(-3, 4, (rows, columns)), rng.integers(-6, 3, rows)
    m.rows = pyo.ConstraintList()
    for slope, limit in zip(slopes.tolist(), limits.tolist(), strict=True):
        m.rows.add(scale * sum(a * m.x[j] for j, a in enumerate(slope)) <= scale * limit + 0 * m.x[0])
    m.curved = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(slope * u**j * m.x[j] for j, slope in enumerate(slopes[0].tolist())) >= 0.5 + u
    )
    result = osilp.solve(m, load=False)
    if result.status == "infeasible":
        assert_irreducible(m, result.conflict)
    else:
        assert not len(result.conflict)


def cancelling(limit, coefficient=1.0):
    """``x >= u`` on [0, 0.3] by terms that cancel, with x at most a limit; without a bound or with one."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 0.3))
    m.x = pyo.Var()
    m.cost = pyo.Objective(expr=m.x)
    m.most = pyo.Constraint(expr=m.x <= limit)
    m.above = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: ((u + coefficient) - u) * m.x / coefficient >= (u + 1e12) - 1e12
    )
    return m


@pytest.mark.parametrize("coefficient", [1.0, 1e-9])
def test_what_rounding_makes_contradictory_is_not_called_infeasible(coefficient):
    """Right: 0.3, for x at most a little more; the row's own numbers ask for 0.300049."""
    result = osilp.solve(cancelling(0.3 + 1e-6, coefficient), progress=False)
    assert result.status != "infeasible"
    assert not result.certified
    assert "rounding" in str(result)


def test_what_no_rounding_explains_is_infeasible():
    result = osilp.solve(cancelling(0.2), progress=False)
    assert result.status == "infeasible"
    assert set(result.conflict["name"]) == {"most", "above"}


@pytest.mark.parametrize(("convex", "whole"), [(True, False), (False, True), (True, True)])
def test_rounding_is_told_beside_convex_terms_and_integers_too(convex, whole):
    m = cancelling(0.3 + 1e-6)
    m.y = pyo.Var(bounds=(0, 3), domain=pyo.Integers if whole else pyo.Reals)
    m.cost.set_value((m.x**2 if convex else m.x) + m.y)
    result = osilp.solve(m, progress=False)
    assert result.status == "undecided"


def test_a_lower_limit_beside_convex_terms_is_told_as_one():
    m = cancelling(0.2)
    m.cost.set_value(m.x**2)
    result = osilp.solve(m, progress=False)
    assert result.status == "infeasible"
    row = result.conflict[result.conflict["name"] == "above"].iloc[0]
    assert row["side"] == "at least"
    assert row["limit"] == pytest.approx(0.3, abs=1e-3)
