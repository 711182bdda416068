"""Formulas beyond a far place: no value lies outside of what is said of them there."""

import numpy as np
import pyomo.environ as pyo
import pytest
from drawn_formulas import random_formula
from optima import PROBLEMS

import osilp_pyomo as osilp
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError
from osilp_pyomo.index.formula import Formula, kernel_of
from osilp_pyomo.index.growth import Growth, axis_between, axis_beyond, growth_of, weighted_sum


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("seed", range(3))
def test_no_value_lies_outside_of_its_range(seed, side):
    """Values at random places beyond, and divided by the power that is said to lead."""
    rng = np.random.default_rng([seed, side + 1])
    far, known = 20.0, 0
    v = far * np.concatenate([[1.0, 1.0 + 1e-12], 10.0 ** rng.uniform(0, 5, 60)])
    aside = rng.uniform(-1, 1, len(v))
    for _ in range(400):
        shape, literals = random_formula(int(rng.integers(1, 5)), rng)
        formula = Formula(tuple(shape), tuple(literals))
        with np.errstate(all="ignore"):
            true = np.broadcast_to(np.asarray(kernel_of(formula.source([])[0])([], [side * v, aside]), float), v.shape)
            try:
                found = growth_of(formula, [], [axis_beyond(far, side), axis_between(-1.0, 1.0, far)])
            except NoEnclosureError:
                continue
            known += 1
            low, high = (float(np.squeeze(end)) for end in found.range())
            slack = 1e-9 * (1 + np.abs(true))
            finite = np.isfinite(true)
            assert np.all(((low - slack <= true) & (true <= high + slack))[finite]), formula
            top, (least, most) = found.leading()
            share = true / v**top
            slack = 1e-9 * (1 + np.abs(share))
            assert np.all(((np.squeeze(least) - slack <= share) & (share <= np.squeeze(most) + slack))[finite]), formula
    assert known >= 150


def test_columns_are_added_with_their_weights():
    """1 - 3 v + 2 v**2 from three columns with an exponent each."""
    far = 10.0
    powers = Formula((("**", 2), 0, "#"), (None,))
    columns = growth_of(powers, [np.array([[0.0], [1.0], [2.0]])], [axis_beyond(far, 1)])
    total = weighted_sum([(columns, np.array([1.0, -3.0, 2.0]))], far)
    top, (least, most) = total.leading()
    assert top == 2
    # At v = 10 it is 171, and 2 v**2 from there on the limit.
    assert least <= 1.71
    assert 2.0 <= most <= 2.02


def test_what_cancels_is_gone():
    u = axis_beyond(10.0, 1)
    assert isinstance(u, Growth)
    top, (least, most) = (u * u + -(u * u) + -u).leading()
    assert (top, float(least), float(most)) == (1, -1.0, -1.0)


ENDLESS = [
    "cantelli_on_the_whole_line",
    "scarf_bound_on_the_half_line",
    "two_sided_with_four_moments",
    "worst_cvar_on_the_whole_line",
    "largest_laplace_transform",
    "line_above_a_hump",
    "exponential_sums_on_the_half_line",
]


@pytest.mark.parametrize("known", [each for each in PROBLEMS if each.name in ENDLESS], ids=lambda known: known.name)
def test_optima_over_an_index_without_end_are_certified(known):
    result = osilp.solve(known.build())
    assert result.certified
    assert result.objective == pytest.approx(known.optimum, abs=1e-6 * (1 + abs(known.optimum)))


@pytest.mark.parametrize("slope", [1e-9, 1e-12])
def test_what_is_violated_beyond_every_scan_is_not_certified(slope):
    """The row holds up to 1 / slope and no further; a coefficient that is fixed keeps exchange from mending it."""
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var(bounds=(0, 2))
    m.cost = pyo.Objective(expr=m.x)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x + 1e-80 * u >= 1 + 1e-80 * (1 + slope) * u)
    assert not osilp.solve(m).certified
