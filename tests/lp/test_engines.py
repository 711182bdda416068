"""LPs begun by another of HiGHS' solvers, and options passed to it."""

from concurrent.futures import ThreadPoolExecutor

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from models import packing
from pyomo.contrib.pyros import BoxSet
from scipy import sparse

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.highs import HighsModel, asked_of_highs


def robust(seed, size=12):
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(size), bounds=(0, 1))
    m.reward = pyo.Objective(expr=osilp.dot(rng.uniform(1, 2, size), m.x), sense=pyo.maximize)
    use, factors = rng.uniform(0.5, 1.5, (6, size)), rng.normal(0, 0.1, (6, 3, size))
    m.cap = osilp.SemiInfiniteConstraint(
        range(6), BoxSet([(-1, 1)] * 3), rule=lambda m, i, xi: osilp.dot(use[i] + xi @ factors[i], m.x) <= size / 4
    )
    return m


@pytest.mark.parametrize("engine", ["ipm", "pdlp"])
@pytest.mark.parametrize("method", ["exchange", "counterpart"])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_the_simplex(engine, method, seed):
    m = robust(seed)
    one = osilp.solve(m, method=method, solver="highs")
    two = osilp.solve(m, method=method, solver=engine)
    assert two.certified
    assert two.objective == pytest.approx(one.objective, rel=1e-8)
    # Of one optimum both end at the same vertex, and not near it.
    assert two.values.to_numpy() == pytest.approx(one.values.to_numpy(), abs=1e-7)


@pytest.mark.parametrize("engine", ["ipm", "pdlp"])
def test_what_has_no_answer_has_none(engine):
    m = robust(0)
    m.much = pyo.Constraint(expr=sum(m.x.values()) >= 13)
    assert osilp.solve(m, method="counterpart", solver=engine).status == "infeasible"
    m.much.deactivate()
    m.free = pyo.Var()
    m.reward.set_value(m.reward.expr + m.free)
    assert osilp.solve(m, method="counterpart", solver=engine).status == "unbounded"


def test_a_missing_part_of_highs_is_named():
    if highspy.Highs().setOptionValue("solver", "hipo") != highspy.HighsStatus.kError:
        pytest.skip("highspy-extras is installed")
    with pytest.raises(errors.MissingPackageError) as missing:
        osilp.solve(packing(), solver="hipo")
    assert str(missing.value) == (
        "solver='hipo' needs a part of HiGHS that is not installed; pip install highspy-extras, or take solver='ipm'."
    )


def test_options_reach_highs_and_are_forgotten():
    m = robust(1)
    plain = osilp.solve(m, method="exchange")
    asked = osilp.solve(m, method="exchange", solver_options={"presolve": "off", "random_seed": 5, "threads": 1})
    assert asked.certified
    assert asked.objective == pytest.approx(plain.objective, rel=1e-8)
    lp = FiniteLP(
        maximize=True,
        cost=np.ones(1),
        column_lower=np.zeros(1),
        column_upper=np.ones(1),
        matrix=sparse.csr_array((0, 1)),
        row_lower=np.empty(0),
        row_upper=np.empty(0),
    )
    with asked_of_highs({"random_seed": 5}, "here"):
        assert HighsModel(lp)._highs.getOptionValue("random_seed")[1] == 5
    assert HighsModel(lp)._highs.getOptionValue("random_seed")[1] == 0


def test_any_number_of_threads_follows_any_other():
    m = packing()
    expected = osilp.solve(m).objective
    for count in (2, 1, 3, 0, 2):
        assert osilp.solve(m, solver_options={"threads": count}).objective == pytest.approx(expected, rel=1e-9)
    assert osilp.solve(m).objective == pytest.approx(expected, rel=1e-9)


def test_solves_in_threads_have_options_of_their_own():
    expected = osilp.solve(packing()).objective
    asked = [{"threads": 1 + k % 3, "random_seed": k} for k in range(6)]
    with ThreadPoolExecutor(3) as threads:
        found = threads.map(lambda options: osilp.solve(packing(), solver_options=options), asked)
        assert [each.objective for each in found] == pytest.approx([expected] * len(asked), rel=1e-9)


@pytest.mark.parametrize("name", ["objective_bound", "objective_target", "user_objective_scale", "user_bound_scale"])
def test_options_that_would_make_a_bound_wrong_are_refused(name):
    value = type(highspy.Highs().getOptionValue(name)[1])(1)
    with pytest.raises(errors.OptionError, match="what is claimed of an answer leans on it"):
        osilp.solve(packing(), solver_options={name: value})
    with pytest.raises(errors.OptionError, match="'solve_relaxation' is set by this package"):
        osilp.solve(packing(), solver_options={"solve_relaxation": True})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["threads"], "solve: solver_options must be a dict of HiGHS' options, such as {'threads': 2} (got list)."),
        ({"thread": 2}, "solve: HiGHS has no option 'thread'; its documentation lists them."),
        ({3: 2}, "solve: HiGHS has no option 3; its documentation lists them."),
        ({"threads": "many"}, "solve: HiGHS does not take 'many' for its option 'threads' (default 0)."),
        ({"presolve": "maybe"}, "solve: HiGHS does not take 'maybe' for its option 'presolve' (default 'choose')."),
        ({"time_limit": 3.0}, "solve: HiGHS' option 'time_limit' is set by this package: give time_limit= to solve."),
        (
            {"primal_feasibility_tolerance": 1e-3},
            "solve: HiGHS' option 'primal_feasibility_tolerance' is set by this package: what is claimed of an answer "
            "leans on it.",
        ),
    ],
)
def test_options_that_highs_does_not_take_are_refused(options, text, capfd):
    with pytest.raises(errors.OptionError) as refused:
        osilp.solve(packing(), solver_options=options)
    assert str(refused.value) == text
    assert capfd.readouterr().out == ""


def test_a_solver_that_is_kept_takes_engines_and_options():
    m = robust(2)
    solver = osilp.PersistentSolver(m)
    first = solver.solve("counterpart", solver="ipm", solver_options={"presolve": "off"})
    assert solver.solve("counterpart", solver="ipm").objective == pytest.approx(first.objective, rel=1e-9)
    with pytest.raises(errors.OptionError, match="HiGHS has no option 'presolv'"):
        solver.solve(solver_options={"presolv": "off"})
    assert solver.solve().certified
