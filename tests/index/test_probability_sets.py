"""Sets of probabilities: what they give lies in them, and not next to them."""

import numpy as np
import pytest

from osilp_pyomo.index.probability_sets import ProbabilityBody


@pytest.mark.parametrize("limits", [{"chi_square": 0.2}, {"kullback_leibler": 0.1}, {"total_variation": 0.15}])
def test_farthest_points_and_draws_are_within_the_limits(limits):
    weights = np.array([0.5, 0.3, 0.2])
    near = ProbabilityBody(weights, np.zeros(3), np.ones(3), **limits)
    farthest = near.support(np.random.default_rng(3).normal(size=(20, 3)))
    for points in (farthest, near.cloud(200, seed=2)):
        with np.errstate(all="ignore"):
            apart = {
                "chi_square": ((points - weights) ** 2 / weights).sum(axis=1),
                "kullback_leibler": np.where(points > 0, points * np.log(points / weights), 0.0).sum(axis=1),
                "total_variation": np.abs(points - weights).sum(axis=1) / 2,
            }
        ((name, limit),) = limits.items()
        assert np.all(apart[name] <= limit + 1e-15)
        assert np.abs(points.sum(axis=1) - 1).max() <= 1e-12
    # They are not far from the border either.
    assert np.all(near.contains(farthest))
