"""method="column_generation": the best of all policies, against exact optima, what it gives back, what it refuses."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from pyomo.contrib.pyros import BoxSet, CardinalitySet, EllipsoidalSet
from test_function_var import inventory, two_stage
from test_recourse_bound import Data, box

import osilp_pyomo as osilp
from osilp_pyomo import errors


def by_columns(m, **options):
    return osilp.solve(m, method="column_generation", **options)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_exact_optimum(seed):
    dimension = 1 + seed % 3
    low, high = box(seed, dimension)
    data = Data(seed, dimension, stages=False)
    result = by_columns(data.model(BoxSet(list(zip(low, high, strict=True)))))
    exact = data.optimum(np.array(list(product(*zip(low, high, strict=True)))))
    assert result.status == "optimal"
    assert result.certified
    assert result.objective == pytest.approx(exact, rel=1e-8, abs=1e-8)
    assert result.bound <= exact + 1e-9 * (1 + abs(exact))
    # What is decided at once can be completed everywhere between the vertices, at no more than the worst case.
    draws = np.random.default_rng(seed).uniform(low, high, size=(10, dimension))
    seen = result.simulate(draws)
    assert (seen["cost"] <= result.objective + 1e-6 * (1 + abs(exact))).all()


def test_a_set_that_is_no_box():
    demand = CardinalitySet([0.0] * 3, [1.0] * 3, 1.5)
    data = Data(11, 3, stages=False)
    vertices = [
        xi for xi in product((0.0, 0.5, 1.0), repeat=3) if sum(xi) <= 1.5 and (xi.count(0.5) == 0 or sum(xi) == 1.5)
    ]
    result = by_columns(data.model(demand))
    assert result.objective == pytest.approx(data.optimum(np.array(vertices)), rel=1e-8, abs=1e-8)
    affine = osilp.solve(data.model(demand))
    assert osilp.recourse_bound(data.model(demand), affine).value == pytest.approx(result.objective, rel=1e-7)


def test_what_comes_back_is_a_policy_and_no_formula():
    m = two_stage()
    result = by_columns(m)
    assert result.certified
    assert result.values.round(6).to_dict() == {"cost": 10.0, "stock": 4.0}
    assert (round(m.stock.value, 6), m.order.coefficients["1"].value) == (4.0, None)
    order = result.function(m.order)
    assert repr(order) == "order(xi): the best that can follow, by a program for each vector (no formula)"
    # Nothing is ordered where the stock is enough; an affine rule would order -1 + 0.5 xi.
    assert [order([2.0]), order([5.0])] == pytest.approx([0, 1], abs=1e-7)
    assert order(pd.DataFrame({"xi[0]": [6.0]}, index=["a"])).to_dict() == pytest.approx({"a": 2.0})
    assert order(np.array([[4.0], [4.5]])) == pytest.approx([0, 0.5], abs=1e-7)
    seen = result.simulate([[2.0], [6.0], [9.0]])
    assert list(seen.columns) == ["order", "stock", "cost"]
    assert seen["cost"].to_numpy() == pytest.approx([4, 10, 19], abs=1e-6)
    assert "of 2 vertices " in result.why
    assert "policy     a program for each vector" in str(result)
    with pytest.raises(errors.DataError) as caught:
        order([1.0, 2.0])
    assert str(caught.value) == "'order': it is a function of a vector of dimension 1 (got an array of shape (2,))."


def test_where_nothing_can_follow_it_says_so():
    m = two_stage()
    m.order.limits.deactivate()
    m.few = osilp.SemiInfiniteConstraint(m.demand, rule=lambda m, xi: (0, m.order(xi), 2))
    seen = by_columns(m).simulate([[6.0], [9.0]])
    assert seen["cost"].isna().tolist() == [False, True]
    assert seen["order"].isna().tolist() == [False, True]
    m.stock.setub(1)
    result = by_columns(m)
    assert result.status in ("undecided", "infeasible")
    assert result.answer is None


def test_whole_numbers_are_decided_at_once():
    low, high = box(4, 2)
    data = Data(4, 2, stages=False)
    m = data.model(BoxSet(list(zip(low, high, strict=True))), whole=True)
    result = by_columns(m)
    assert result.objective <= osilp.solve(m).objective + 1e-7
    assert result.values[["x[0]", "x[1]"]].tolist() == result.values[["x[0]", "x[1]"]].round().tolist()


def changing_coefficients():
    m = two_stage()
    m.half = osilp.SemiInfiniteConstraint(m.demand, rule=lambda m, xi: xi[0] * m.order(xi) <= 90)
    return m


def round_set():
    return Data(1, 2, stages=False).model(EllipsoidalSet([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: inventory(3)[0],
            "solve: method='column_generation': 'order[0,0]' sees 0 of the 3 entries of its vector, and the method is for "
            "decisions that see all; solve for affine rules, method='auto'.",
        ),
        (
            changing_coefficients,
            "solve: method='column_generation': in 'half' coefficients of what reacts change with the vector, or it is "
            "not affine in it, so that vertices do not tell all; solve for affine rules, method='auto'.",
        ),
        (
            round_set,
            "solve: method='column_generation': the worst vector of an ellipsoid of dimension 2 is found by looking at "
            "each of its vertices, and they are more than 1,024, or not known; solve for affine rules, method='auto', and "
            "see how good they are by recourse_bound.",
        ),
    ],
)
def test_what_it_is_not_for(make, text):
    m = make()
    with pytest.raises(errors.ModelError) as caught:
        by_columns(m)
    assert str(caught.value) == text
