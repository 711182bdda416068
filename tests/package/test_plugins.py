"""SolverFactory("osilp") and the transformations."""

import copy
import inspect

import numpy as np
import pyomo.environ as pyo
import pytest
from models import line_above_square, packing, tent, two_families
from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo._options import SOLVE


def test_optimal_termination():
    m = packing()
    results = pyo.SolverFactory("osilp").solve(m)
    pyo.assert_optimal_termination(results)
    assert results.incumbent_objective == pytest.approx(pyo.value(m.reward))
    assert results.objective_bound >= results.incumbent_objective
    assert results.solver.termination_condition == pyo.TerminationCondition.optimal
    assert results.result.price.total > 0


def test_a_bound_is_no_solution():
    results = pyo.SolverFactory("osilp").solve(packing(), method="projected", basis=osilp.RBF(5))
    assert results.solution_status == SolutionStatus.infeasible
    assert not pyo.check_optimal_termination(results)
    assert results.incumbent_objective is None
    assert results.objective_bound > 0


def test_infeasible_and_unbounded_are_conditions():
    m = tent()
    m.low = pyo.Constraint(expr=m.x >= 2)
    results = pyo.SolverFactory("osilp").solve(m)
    assert results.termination_condition == TerminationCondition.provenInfeasible
    assert results.solution_status == SolutionStatus.noSolution
    m = tent()
    m.height.sense = pyo.minimize
    results = pyo.SolverFactory("osilp").solve(m)
    assert results.termination_condition == TerminationCondition.unbounded


def test_options_given_early_or_late():
    m = tent()
    solver = pyo.SolverFactory("osilp", method="discretized", grid=osilp.Midpoint(4))
    assert solver.available()
    assert solver.solve(m).result.objective == pytest.approx(1 + 0.075)
    assert solver.solve(m, grid=osilp.Points([0.3])).result.objective == pytest.approx(1.0)
    solver.solve(m, load_solutions=False, grid=osilp.Points([1.0]))
    assert m.x.value == pytest.approx(1.0)
    with pytest.raises(errors.OptionError) as error:
        solver.solve(m, gird=3)
    assert str(error.value) == (
        "SolverFactory('osilp').solve: there is no option 'gird'; the options are method, grid, basis, tolerance, "
        "iteration_limit, time_limit, fix_integers, solver, proof, load_solutions, tee, progress."
    )


def test_options_are_those_of_solve():
    taken = set(inspect.signature(osilp.solve).parameters) - {"model", "load"} | {"load_solutions"}
    assert set(osilp.plugins.OsilpSolver.CONFIG) == taken
    defaults = {name: each.default for name, each in inspect.signature(osilp.solve).parameters.items()}
    assert {option.name: option.default for option in SOLVE}.items() <= defaults.items()
    assert pyo.SolverFactory("osilp").solve(tent(), solver="highs").result.status == "optimal"


def test_tee_prints(capsys):
    pyo.SolverFactory("osilp").solve(tent(), tee=True)
    assert "exchange: optimal in" in capsys.readouterr().out


@pytest.mark.parametrize("solver", ["appsi_highs", "highs"])
@pytest.mark.parametrize("name", ["osilp.discretize", "osilp.project"])
def test_transformed_models_solve_anywhere(solver, name):
    m = packing()
    grid = osilp.Midpoint(80)
    options = {"grid": grid} if name == "osilp.discretize" else {"grid": grid, "basis": osilp.Hat(8)}
    method = "discretized" if name == "osilp.discretize" else "projected"
    rows = pyo.TransformationFactory(name).create_using(m, **options)
    assert m.usage.active
    pyo.assert_optimal_termination(pyo.SolverFactory(solver).solve(rows))
    assert pyo.value(rows.reward) == pytest.approx(osilp.solve(m, method=method, **options).objective, rel=1e-7)


def test_rows_know_where_they_come_from():
    m = two_families()
    transformation = pyo.TransformationFactory("osilp.discretize")
    transformation.apply_to(m, grid=osilp.Points([0.0, 0.5, 1.0]))
    assert not m.cap["a"].active
    rows = transformation.get_transformed_constraints(m.cap["b"])
    assert [transformation.get_label(row) for row in rows.values()] == [0.0, 0.5, 1.0]
    assert transformation.get_src_constraint(rows[1]) is m.cap["b"]
    pyo.SolverFactory("appsi_highs").solve(m)
    assert pyo.value(m.gain) == pytest.approx(4.0)
    other = m.clone()
    again = transformation.get_transformed_constraints(other.cap["b"])
    assert transformation.get_src_constraint(again[1]) is other.cap["b"]
    with pytest.raises(errors.ModelError) as error:
        transformation.get_transformed_constraints(tent().below)
    assert str(error.value) == "'below' was not transformed by osilp.discretize."


def test_projected_rows_are_labelled_by_their_functions():
    m = tent()
    transformation = pyo.TransformationFactory("osilp.project")
    transformation.apply_to(m, basis=osilp.Hat(3))
    rows = transformation.get_transformed_constraints(m.below)
    assert [transformation.get_label(row) for row in rows.values()] == ["u = 0", "u = 0.5", "u = 1"]


def test_ranged_and_lower_rows_keep_their_sides():
    m = line_above_square()
    m.band = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (-1, m.a + m.b * u, 3))
    pyo.TransformationFactory("osilp.discretize").apply_to(m, grid=osilp.Points([0.0, 1.0]))
    block = m.osilp_discretize
    assert [(row.lb, row.ub) for row in block.above.values()] == [(0.0, None), (1.0, None)]
    assert [(row.lb, row.ub) for row in block.band.values()] == [(-1.0, 3.0), (-1.0, 3.0)]


def test_unknown_options_are_refused_before_anything_changes():
    m = tent()
    with pytest.raises(errors.OptionError) as error:
        pyo.TransformationFactory("osilp.discretize").apply_to(m, basis=osilp.Hat(3))
    assert str(error.value) == (
        "TransformationFactory('osilp.discretize'): there is no option 'basis'; the options are grid."
    )
    assert m.below.active
    assert m.component("osilp_discretize") is None


def test_transforming_twice_adds_a_second_block():
    m = two_families()
    m.cap["a"].deactivate()
    pyo.TransformationFactory("osilp.discretize").apply_to(m, grid=osilp.Points([0.0]))
    m.cap["a"].activate()
    pyo.TransformationFactory("osilp.discretize").apply_to(m, grid=osilp.Points([1.0]))
    pyo.SolverFactory("appsi_highs").solve(m)
    np.testing.assert_allclose([m.x["a"].value, m.x["b"].value], [3.0, 3.0])


def test_results_print_what_was_found_and_their_copies_what_pyomo_keeps():
    results = pyo.SolverFactory("osilp").solve(tent())
    assert str(results).startswith("exchange: optimal in ")
    assert "termination_condition" in str(copy.deepcopy(results))
