"""The names that users' scripts rest on, in one script that is run as it is."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.long
EXAMPLE = Path(__file__).parents[1] / "contract_example.py"


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the script leaves behind; it writes a page."""
    folder = tmp_path_factory.mktemp("contract")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found = runpy.run_path(str(EXAMPLE))
    return {**found, "folder": folder}


def test_offline(names):
    full, proj, grid, osilp = (names[name] for name in ("full", "proj", "grid", "osilp"))
    assert (full.status, proj.status, grid.status) == ("optimal", "optimal", "optimal")
    same_grid = osilp.solve(names["m"], method="projected", basis=osilp.RBF(10), grid=osilp.Midpoint(500))
    assert same_grid.objective >= grid.objective - 1e-7
    assert proj.objective >= full.objective
    assert grid.objective >= full.objective
    # Everyone gets the same small share: feasible for sure.
    assert full.objective >= 0.2 * sum(names["m"].value[t].value for t in names["m"].T)
    assert full.violation <= 1e-9
    assert names["found"][:2] == ("optimal", full.objective)
    assert names["density"] > 0
    assert names["worth"] == pytest.approx(215.848, abs=1e-2)
    assert list(names["atoms"]) == ["u", "weight"]


def test_online(names):
    assert names["decided"] in (0.0, 1.0)
    assert isinstance(names["decisions"], pd.Series)
    assert len(names["decisions"]) == 1000


def test_online_against_offline(names):
    study = names["study"]
    assert len(study.runs) == 60
    assert study.complete
    assert (study.runs["violation"] == 0).all()
    # The optimum of the same arrivals does not depend on their order.
    best = study.offline[study.offline["benchmark"] == "exchange"]["objective"]
    assert best.to_numpy() == pytest.approx(names["full"].objective, rel=1e-7)
    assert (study.runs["regret_exchange"] > 0).all()
    assert np.isfinite(names["summary"]["reward"]["mean"]).all()
    assert (names["folder"] / "report.html").stat().st_size > 100_000
