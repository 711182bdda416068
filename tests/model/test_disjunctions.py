"""Disjunctions of pyomo.gdp: solved once they are written with binary variables, refused with the way before."""

import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet
from pyomo.gdp import Disjunct, Disjunction

import osilp_pyomo as osilp
from osilp_pyomo import errors


def choice(inside=False):
    """x + y above a parabola of height 3; x at most 1, or y at most 1/4."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x, m.y = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10))
    m.cost = pyo.Objective(expr=m.x + 2 * m.y)
    m.high = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + m.y >= 12 * u * (1 - u))
    m.d = Disjunct([1, 2])
    m.d[1].row = pyo.Constraint(expr=m.x <= 1)
    m.d[2].row = pyo.Constraint(expr=m.y >= 2.5)
    if inside:
        m.d[1].late = osilp.SemiInfiniteConstraint(m.u, rule=lambda d, u: d.model().y >= u)
    m.either = Disjunction(expr=[m.d[1], m.d[2]])
    return m


@pytest.mark.parametrize("way", ["gdp.bigm", "gdp.hull"])
def test_after_a_transformation_of_gdp_the_better_choice_is_found(way):
    m = choice()
    pyo.TransformationFactory(way).apply_to(m)
    result = osilp.solve(m)
    # x = 1 and y = 2 cost 5; y = 5/2 and x = 1/2 cost 5.5.
    assert result.certified
    assert result.objective == pytest.approx(5.0, abs=1e-6)
    assert (m.x.value, m.y.value) == (pytest.approx(1.0, abs=1e-6), pytest.approx(2.0, abs=1e-6))


def test_a_choice_that_was_made_by_hand_is_solved():
    m = choice()
    m.d[1].deactivate()
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    assert osilp.solve(m).objective == pytest.approx(5.5, abs=1e-6)


@pytest.mark.parametrize("use", ["solve", "discretize", "compile"])
def test_untransformed_disjunctions_are_refused_with_the_way(use):
    m = choice()
    uses = {
        "solve": lambda: osilp.solve(m),
        "discretize": lambda: pyo.TransformationFactory("osilp.discretize").apply_to(m, grid=osilp.Midpoint(9)),
        "compile": lambda: osilp.compile_online(m, stages=m.d.index_set()),
    }
    with pytest.raises(errors.ModelError) as error:
        uses[use]()
    assert str(error.value) == (
        "The model holds active Disjuncts or Disjunctions, choices between sets of rows; write them with binary variables "
        "first, by pyo.TransformationFactory('gdp.bigm').apply_to(model) or 'gdp.hull'."
    )
    assert m.high.active


def test_a_semi_infinite_row_inside_of_a_disjunct_is_refused_before_and_by_gdp():
    m = choice(inside=True)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "Disjunct 'd[1]': it holds the SemiInfiniteConstraint 'd[1].late', which gdp.bigm cannot read; declare that on the "
        "model itself, relaxed where the Disjunct is not chosen, such as m.y >= u - M * (1 - m.d.binary_indicator_var), "
        "and transform the rest by pyo.TransformationFactory('gdp.bigm').apply_to(model)."
    )
    with pytest.raises(errors.UntransformedModelError) as error:
        pyo.TransformationFactory("gdp.bigm").apply_to(m)
    assert str(error.value).endswith(
        "Its row at one point is d[1].late.at(point). It stands in Disjunct 'd[1]': declare it on the model itself, relaxed "
        "where the Disjunct is not chosen, such as m.y >= u - M * (1 - m.d.binary_indicator_var)."
    )


def test_the_way_that_the_refusal_names_works():
    m = choice()
    m.late = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.y >= 2.2 * u - 10 * (1 - m.d[1].binary_indicator_var)
    )
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    # With y at least 2.2 where the first is chosen: x = 0.8, y = 2.2 cost 5.2.
    assert osilp.solve(m).objective == pytest.approx(5.2, abs=1e-6)
