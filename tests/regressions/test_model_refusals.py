"""A model with an active semi-infinite constraint is refused by every way out of Pyomo."""

import pyomo.environ as pyo
import pytest
from models import two_families
from pyomo.contrib.solver.common.factory import SolverFactory as ContribSolverFactory

from osilp_pyomo.errors import UntransformedModelError

SENTENCE = (
    "SemiInfiniteConstraint 'cap[a]' holds for every point of u in [0, 1]: no solver or writer can take it as it "
    "stands. Use osilp_pyomo.solve(model), SolverFactory('osilp').solve(model), "
    "TransformationFactory('osilp.discretize') or ('osilp.project'), or deactivate it. Its row at one point is "
    "cap[a].at(point)."
)


def writers():
    return ["lp", "lp_v1", "lp_v2", "nl", "nl_v1", "nl_v2", "mps", "gams", "bar"]


@pytest.mark.parametrize("form", writers())
def test_every_writer_refuses(form, tmp_path):
    endings = {"gams": "gms"}
    with pytest.raises(UntransformedModelError) as refusal:
        two_families().write(str(tmp_path / f"model.{endings.get(form, form.split('_')[0])}"), format=form)
    assert str(refusal.value) == SENTENCE


@pytest.mark.parametrize("solver", ["appsi_highs", "highs", "glpk", "cbc", "scip", "gurobi", "ipopt", "gams", "baron"])
def test_every_solver_refuses(solver):
    chosen = pyo.SolverFactory(solver)
    if not chosen.available(exception_flag=False):
        pytest.skip(f"{solver} is not installed")
    with pytest.raises(UntransformedModelError) as refusal:
        chosen.solve(two_families())
    assert str(refusal.value) == SENTENCE


@pytest.mark.parametrize("solver", ["highs", "gurobi_direct", "scip_direct", "scip_persistent", "ipopt"])
def test_every_new_solver_interface_refuses(solver):
    if solver not in ContribSolverFactory:
        pytest.skip(f"this Pyomo has no {solver}")
    chosen = ContribSolverFactory(solver)
    if not chosen.available():
        pytest.skip(f"{solver} is not installed")
    with pytest.raises(UntransformedModelError) as refusal:
        chosen.solve(two_families())
    assert str(refusal.value) == SENTENCE


def test_the_standard_form_refuses():
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    with pytest.raises(UntransformedModelError) as refusal:
        LinearStandardFormCompiler().write(two_families())
    assert str(refusal.value) == SENTENCE


def test_transformations_that_do_not_read_rows_pass():
    relaxed = pyo.TransformationFactory("core.relax_integer_vars").create_using(two_families())
    assert relaxed.cap["a"].active


@pytest.mark.parametrize("solver", ["appsi_highs", "highs"])
def test_one_family_that_is_left_active_is_enough(solver):
    m = two_families()
    m.cap["a"].deactivate()
    with pytest.raises(UntransformedModelError) as refusal:
        pyo.SolverFactory(solver).solve(m)
    assert str(refusal.value) == SENTENCE.replace("cap[a]", "cap[b]")


@pytest.mark.parametrize("solver", ["appsi_highs", "highs"])
def test_clones_refuse_and_deactivated_models_solve(solver):
    m = two_families()
    for s in m.S:
        m.x[s].setub(1.5)
    with pytest.raises(UntransformedModelError):
        pyo.SolverFactory(solver).solve(m.clone())
    m.cap.deactivate()
    pyo.SolverFactory(solver).solve(m)
    assert pyo.value(m.gain) == pytest.approx(3.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.body, lambda c: c.expr, lambda c: c.lower, lambda c: c.upper, lambda c: c.lb, lambda c: c.ub,
        lambda c: c.equality, lambda c: c.to_bounded_expression(), lambda c: c.has_lb(), lambda c: c.has_ub(),
        lambda c: c.slack(), lambda c: c.lslack(), lambda c: c.uslack(), lambda c: c(), lambda c: c.get_value(),
    ],
)  # fmt: skip
def test_nothing_can_be_read_from_an_active_family(ask):
    m = two_families()  # held: a member whose model was collected has no name
    with pytest.raises(UntransformedModelError) as refusal:
        ask(m.cap["a"])
    assert str(refusal.value) == SENTENCE


def test_the_size_report_reads_an_inactive_family():
    from pyomo.util.model_size import build_model_size_report

    m = two_families()
    m.cap.deactivate()
    assert build_model_size_report(m).overall.constraints == 2
