"""The README's blocks do what they say."""

import re
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the example leaves behind; it writes files."""
    folder, found = tmp_path_factory.mktemp("readme"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(BLOCKS[0], found)
    return {**found, "folder": folder}


def test_the_example_runs_as_written(names):
    full, proj, grid = names["full"], names["proj"], names["grid"]
    assert (full.status, proj.status, grid.status) == ("optimal", "optimal", "optimal")
    same_grid = names["osilp"].solve(
        names["m"], method="projected", basis=names["osilp"].RBF(10), grid=names["osilp"].Midpoint(500)
    )
    assert same_grid.objective >= grid.objective - 1e-7
    assert proj.objective >= full.objective
    assert grid.objective >= full.objective
    assert full.objective >= feasible_value(names["m"])
    assert full.violation <= 1e-9
    assert proj.price(0.3) > 0
    assert full.price.integrate(lambda u: 60 + 20 * np.sin(6 * u)) == pytest.approx(215.848, abs=1e-2)


def feasible_value(m):
    """Reward of a point that is feasible for sure: everyone gets the same small share."""
    return 0.2 * sum(m.value[t].value for t in m.T)


def test_the_example_compares_online_with_offline(names):
    study = names["study"]
    assert len(study.runs) == 60
    assert study.complete
    assert (study.runs["violation"] == 0).all()
    # The optimum of the same arrivals does not depend on their order.
    best = study.offline[study.offline["benchmark"] == "exchange"]["objective"]
    assert best.to_numpy() == pytest.approx(names["full"].objective, rel=1e-7)
    assert (study.runs["regret_exchange"] > 0).all()
    assert (names["folder"] / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize("number", range(1, len(BLOCKS)))
def test_the_other_blocks_run_too(names, number, monkeypatch):
    # Blocks write files.
    monkeypatch.chdir(names["folder"])
    found = dict(names)
    exec(BLOCKS[number], found)
    assert "m" in found


def test_the_two_commands_are_there():
    assert "osilp demo" in README
    assert "pytest" in README
