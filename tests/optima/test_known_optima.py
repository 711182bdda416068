"""Semi-infinite programs with independently known optima, and what every exact answer must satisfy."""

import pytest

import osilp_pyomo as osilp
from optima import PROBLEMS


@pytest.mark.parametrize("known", PROBLEMS, ids=[known.name for known in PROBLEMS])
def test_exchange_finds_the_known_optimum(known):
    result = osilp.solve(known.build())
    assert result.status == known.status, known.reason
    if known.optimum is None:
        return
    size = 1 + abs(known.optimum)
    assert result.objective == pytest.approx(known.optimum, abs=1e-6 * size)
    assert result.audit.violation <= 1e-6
    low, high = result.bracket
    assert low - 1e-9 * size <= known.optimum <= high + 1e-9 * size
    assert result.audit.ordinary_violation <= 1e-9 * size


def test_there_are_enough_of_them_in_every_dimension():
    dimensions = [known.dimension for known in PROBLEMS if known.status == "optimal"]
    assert len(dimensions) >= 25
    assert set(dimensions) == {1, 2, 3, 4, 5}
    assert {known.status for known in PROBLEMS} == {"optimal", "infeasible", "unbounded"}


def test_names_are_told_apart():
    names = [known.name for known in PROBLEMS]
    assert len(names) == len(set(names))
