"""SolverFactory("osilp") and the transformations."""

import copy
import inspect
import io
import json
import pickle

import numpy as np
import pyomo.environ as pyo
import pytest
from models import line_above_square, packing, tent, two_families
from pyomo.contrib.solver.common.base import Availability, SolverBase
from pyomo.contrib.solver.common.config import SolverConfig
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
from pyomo.contrib.solver.common.util import (
    NoDualsError,
    NoFeasibleSolutionError,
    NoOptimalSolutionError,
    NoReducedCostsError,
    NoSolutionError,
)
from pyomo.dae import ContinuousSet

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
    assert set(osilp.plugins.OsilpSolver.CONFIG) == taken | set(SolverConfig())
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


def diet(sense):
    """Two ordinary rows beside a semi-infinite one, so that there are duals to look at."""
    m = pyo.ConcreteModel("diet")
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(["a", "b"], bounds=(0, 4))
    m.o = pyo.Objective(expr=3 * m.x["a"] + 2 * m.x["b"], sense=sense)
    m.most = pyo.Constraint(expr=m.x["a"] + m.x["b"] <= 5)
    m.least = pyo.Constraint(expr=m.x["a"] + 2 * m.x["b"] >= 3)
    m.band = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x["a"] + u * m.x["b"] <= 4 + 2 * u)
    return m


def test_one_registration_serves_both_factories():
    today = SolverFactory("osilp", tolerance=1e-8)
    assert isinstance(today, SolverBase)
    assert (today.name, today.available(), today.is_persistent()) == ("osilp", Availability.FullLicense, False)
    older = pyo.SolverFactory("osilp", tolerance=1e-8)
    assert older.version() == today.version()
    found = [each.solve(packing()) for each in (today, older)]
    assert found[0].incumbent_objective == found[1].incumbent_objective


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_values_duals_and_reduced_costs_are_those_of_pyomos_own_interface(sense):
    """The semi-infinite row has its extreme points at both ends, so that two ordinary rows say the same."""
    m, other = diet(sense), diet(sense)
    other.band.deactivate()
    other.ends = pyo.Constraint([0, 1], rule=lambda m, u: m.x["a"] + u * m.x["b"] <= 4 + 2 * u)
    ours = SolverFactory("osilp").solve(m, load_solutions=False)
    theirs = SolverFactory("highs").solve(other, load_solutions=False)
    assert m.x["a"].value is None
    loader, expected = ours.solution_loader, theirs.solution_loader
    assert (loader.get_number_of_solutions(), loader.get_solution_ids()) == (1, [None])
    for key in ("a", "b"):
        assert loader.get_vars()[m.x[key]] == pytest.approx(expected.get_vars()[other.x[key]], abs=1e-7)
        assert loader.get_reduced_costs([m.x[key]])[m.x[key]] == pytest.approx(
            expected.get_reduced_costs()[other.x[key]], abs=1e-7
        )
    duals = loader.get_duals()
    assert set(duals) == {m.most, m.least}
    for name in ("most", "least"):
        assert duals[m.component(name)] == pytest.approx(expected.get_duals()[other.component(name)], abs=1e-7)
    assert ours.result.price.total == pytest.approx(sum(expected.get_duals()[other.ends[u]] for u in (0, 1)), abs=1e-7)
    loader.load_vars([m.x["b"]])
    assert m.x["a"].value is None
    m.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    loader.load_solution()
    assert pyo.value(m.o) == pytest.approx(ours.incumbent_objective)
    assert m.dual[m.most] == duals[m.most]
    m.dual.clear()
    loader.load_import_suffixes()
    assert m.dual[m.most] == duals[m.most]


def test_a_semi_infinite_row_has_no_single_dual():
    m = diet(pyo.minimize)
    loader = SolverFactory("osilp").solve(m).solution_loader
    with pytest.raises(NoDualsError) as error:
        loader.get_duals([m.band])
    assert str(error.value) == (
        "'band' is not among the duals of the solved model; a semi-infinite constraint has a measure on its index, "
        "results.result.price."
    )
    m.x["a"].domain = pyo.Integers
    loader = SolverFactory("osilp").solve(m).solution_loader
    for ask, kind in ((loader.get_duals, NoDualsError), (loader.get_reduced_costs, NoReducedCostsError)):
        with pytest.raises(kind) as error:
            ask()
        assert str(error.value) == (
            "A model with integer variables has no prices; solve with fix_integers=True (and time enough) for those at "
            "the integers found."
        )


def test_results_are_filled():
    m = packing()
    results = SolverFactory("osilp").solve(m, time_limit=60, tolerance=1e-8)
    assert results.termination_condition == TerminationCondition.convergenceCriteriaSatisfied
    assert results.solution_status == SolutionStatus.optimal
    assert (results.solver_name, results.solver_version) == ("osilp", SolverFactory("osilp").version())
    assert (results.solver_config.time_limit, results.solver_config.tolerance) == (60, 1e-8)
    assert results.timing_info.start_timestamp.utcoffset().total_seconds() == 0
    assert 0 < results.timing_info.wall_time <= results.timing_info.timer.get_total_time("osilp")
    assert results.extra_info.certified is True
    assert results.extra_info.iterations == len(results.result.log)
    assert results.solver_log.splitlines()[0].split() == list(results.result.log.columns)
    assert "exchange: optimal in" in results.solver_log


def test_what_is_not_optimal_is_an_error_for_todays_interface():
    m = packing()
    solver = SolverFactory("osilp")
    with pytest.raises(NoOptimalSolutionError) as error:
        solver.solve(m, method="discretized", grid=osilp.Points([0.0]))
    start, _, rest = str(error.value).partition(" by up to ")
    assert start == "The values of the discretized method violate rows"
    assert rest.partition(" of ")[2] == (
        "their size: they are a bound, no solution; use method='exchange'. With "
        "raise_exception_on_nonoptimal_result=False the results come back instead."
    )
    assert m.x[1].value is None
    bound = solver.solve(m, method="discretized", grid=osilp.Points([0.0]), raise_exception_on_nonoptimal_result=False)
    assert bound.solution_status == SolutionStatus.infeasible
    m = tent()
    m.low = pyo.Constraint(expr=m.x >= 2)
    with pytest.raises(NoOptimalSolutionError) as error:
        solver.solve(m)
    assert str(error.value) == (
        "The exchange method ended with status 'infeasible', so that there are no values to load; "
        "results.result.conflict says what cannot hold together. With raise_exception_on_nonoptimal_result=False the "
        "results come back instead."
    )
    with pytest.raises(NoFeasibleSolutionError) as error:
        solver.solve(m, raise_exception_on_nonoptimal_result=False)
    assert str(error.value) == (
        "The exchange method ended with status 'infeasible', and there are no values to load. With "
        "load_solutions=False the results come back."
    )
    results = solver.solve(m, raise_exception_on_nonoptimal_result=False, load_solutions=False)
    assert results.termination_condition == TerminationCondition.provenInfeasible
    assert results.solution_loader.get_solution_ids() == []
    with pytest.raises(NoSolutionError) as error:
        results.solution_loader.load_vars()
    assert str(error.value) == (
        "The exchange method ended with status 'infeasible', so that there are no values to load."
    )
    with pytest.raises(NoOptimalSolutionError):
        pyo.SolverFactory("osilp").solve(m, raise_exception_on_nonoptimal_result=True)


def test_what_scripts_pass_is_understood(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    solver = pyo.SolverFactory("osilp")
    solver.options["timelimit"] = 50
    solver.options.tolerance = 1e-8
    solver.set_options("iteration_limit=90 fix_integers=True")
    results = solver.solve(
        tent(), tee=False, keepfiles=True, symbolic_solver_labels=True, logfile="mine.log", report_timing=True,
        load_solutions=False, options={"method": "exchange"}, solver_io=None, warmstart=False,
    )  # fmt: skip
    config = results.solver_config
    assert (config.time_limit, config.tolerance, config.iteration_limit) == (50, 1e-8, 90)
    assert (config.fix_integers, config.method) == (True, "exchange")
    assert (tmp_path / "osilp.log").read_text() == (tmp_path / "mine.log").read_text() == results.solver_log
    assert "osilp" in capsys.readouterr().out
    here = io.StringIO()
    SolverFactory("osilp").solve(tent(), tee=here)
    assert here.getvalue().startswith("iteration")
    assert "exchange: optimal in" in here.getvalue()
    assert capsys.readouterr().out == ""
    assert (
        SolverFactory("osilp", time_limit=7).solve(tent(), solver_options={"tolerance": 1e-7}).solver_config.time_limit
        == 7
    )


ANOTHER = "no other program lies behind it; leave it out, or, to use another solver, hand it the rows of TransformationFactory('osilp.discretize')"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"solver_io": "lp"}, f"solver_io='lp' cannot be followed: {ANOTHER}."),
        ({"executable": "/usr/bin/cbc"}, f"executable='/usr/bin/cbc' cannot be followed: {ANOTHER}."),
        ({"solver": "ipopt"}, f"solver='ipopt' cannot be followed: {ANOTHER}."),
        ({"warmstart": True}, "warmstart=True cannot be followed: values that variables have are not used as a start; leave it out."),
        ({"solnfile": "a.sol"}, "solnfile='a.sol' cannot be followed: no file is read; write the values by results.result.values.to_csv(path)."),
        ({"writer_config": {"a": 1}}, "writer_config={'a': 1} cannot be followed: no file is written; leave it out."),
        ({"threads": 4}, "threads must be 1 (got 4); a program is solved in one thread, so that its answer is the same everywhere."),
        ({"timelimit": 3, "time_limit": 4}, "timelimit=3 and time_limit=4 are the same option; give one."),
        ({"timelimit": "soon"}, "time_limit cannot be 'soon'; Time limit applied to the solver (in seconds)."),
        ({"suffixes": ["slack"]}, "suffixes may be 'dual' and 'rc' (got 'slack')."),
        ({"suffixes": ["dual"]}, "suffixes=['dual'] needs a place for the numbers: declare m.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT), which is then filled by every solve."),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_by_name(given, text):
    m = tent()
    with pytest.raises(errors.OptionError) as error:
        pyo.SolverFactory("osilp").solve(m, **given)
    assert str(error.value) == f"SolverFactory('osilp').solve: {text}"
    # Told when solving, because Pyomo's factory makes of an error in a constructor a solver that nobody knows.
    with pytest.raises(errors.OptionError):
        pyo.SolverFactory("osilp", **given).solve(m)
    assert m.x.value is None


def test_options_are_given_once_and_can_be_read():
    with pytest.raises(errors.OptionError) as error:
        SolverFactory("osilp").solve(tent(), method="projected", solver_options={"method": "discretized"})
    assert str(error.value) == (
        "SolverFactory('osilp').solve: method is 'projected', and 'discretized' among the solver options; give it once."
    )
    with pytest.raises(errors.OptionError) as error:
        pyo.SolverFactory("osilp").set_options("method exchange")
    assert str(error.value) == (
        "SolverFactory('osilp'): options 'method exchange' cannot be read; write them like 'method=exchange "
        "tolerance=1e-8', without spaces inside."
    )
    with pytest.raises(errors.OptionError) as error:
        pyo.SolverFactory("osilp").solve(tent(), options=["tolerance"])
    assert str(error.value) == (
        "SolverFactory('osilp'): options must be a dict, or a text like 'method=exchange tolerance=1e-8' (got list)."
    )
    with pytest.raises(errors.OptionError) as error:
        SolverFactory("osilp", metod="exchange")
    assert str(error.value).startswith("SolverFactory('osilp'): there is no option 'metod'; the options are method, ")


def test_older_results_are_there_and_copies_leave_the_model_behind():
    m = packing()
    results = pyo.SolverFactory("osilp").solve(m)
    assert (results.problem.lower_bound, results.problem.upper_bound) == results.result.bracket
    assert results.problem.sense == pyo.maximize
    assert results.solution[0].gap == results.result.gap
    assert results.solver.time == results.timing_info.wall_time
    written = io.StringIO()
    results.write(ostream=written, format="json")
    assert json.loads(written.getvalue())["Solver"][0]["Termination condition"] == "optimal"
    again = pickle.loads(pickle.dumps(results))
    assert again.incumbent_objective == results.incumbent_objective
    with pytest.raises(NoSolutionError) as error:
        again.solution_loader.get_vars()
    assert str(error.value) == "Results that were copied have no model; use those that solve gave back."
