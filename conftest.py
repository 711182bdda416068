"""What all tests share, those of modules and pages too."""

import os
import sys

import pytest
from hypothesis import settings

# Laws are looked at on the same examples at each run, so that a change is what makes a test fail;
# HYPOTHESIS_PROFILE=random draws others.
# Times are no assertions: a machine that does other things too is slow now and then.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A script that works as soon as it is imported: looking in it for doctests would run it, in every process of the tests.
collect_ignore = ["tests/contract_example.py"]

# The problems with known optima that take more than 1.5 seconds, where the others take 0.2 on average.
LONG_PROBLEMS = {
    "ball_in_five_dimensions_by_where",
    "ball_in_six_dimensions",
    "chebyshev_markov_with_eight_moments",
    "chebyshev_of_a_half_plane",
    "chebyshev_outside_a_ball",
    "chebyshev_outside_a_disc_in_the_plane",
    "concave_row_in_five_dimensions",
    "ellipsoid_in_three_dimensions_by_where",
    "exp_above_affine_on_a_ball",
    "exp_above_plane_on_disc",
    "exp_by_plane_on_disc",
    "fejer_kernel_in_three_dimensions",
    "fejer_kernel_in_two_dimensions",
    "fejer_kernel_of_order_150_with_sines",
    "l1_ball_in_five_dimensions",
    "lovasz_number_of_the_five_cycle",
    "mixed_cubic_monomial_by_quadratics",
    "norm_below_affine_in_five_dimensions",
    "robust_three_rows_in_five_dimensions",
    "semidefinite_cut_bound_of_the_five_cycle",
    "spline_of_401_knots_by_expr_if",
    "sum_of_five_squares_by_affine",
    "thin_ellipsoid_in_four_dimensions",
    "thin_shell",
    "two_hundred_caps",
}


def takes_long(item):
    """Whether a test that has no line for a mark takes long: a problem of a table, or a docstring that runs a study."""
    if isinstance(item, pytest.DoctestItem):
        return any(word in example.source for example in item.dtest.examples for word in ("compare(", "demo_study("))
    return item.name.startswith("test_exchange_finds_") and item.callspec.id in LONG_PROBLEMS


def pytest_collection_modifyitems(items):
    """Mark as long what is marked nowhere else."""
    for item in items:
        if takes_long(item):
            item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test drew: pyplot keeps figures, and warns of the twenty-first in whichever test draws it."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
