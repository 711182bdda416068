"""Files that the version before the rooms (commit 29dd310) saved: this version goes on with them."""

import shutil
from pathlib import Path

import pytest
from saved_model import saved_program

import osilp_pyomo as osilp

SAVED = Path(__file__).parents[1] / "saved"
# Reward and the last nine decisions, as the version that saved the files went on.
WENT_ON = {
    "mirror": (4.0625, [1, 1, 0, 0, 0, 0, 0, 0, 0]),
    "accelerate": (3.6875, [1, 0, 0, 1, 0, 0, 0, 0, 0]),
    "resolve": (4.1875, [0, 0, 0, 0, 1, 0, 0, 1, 0]),
    "exact": (4.1875, [0, 0, 0, 0, 1, 0, 0, 1, 0]),
    "simple": (4.0625, [1, 1, 0, 0, 0, 0, 0, 0, 0]),
    "greedy": (3.5625, [0, 0, 0, 0, 0, 0, 0, 0, 0]),
    "gradient": (4.0625, [1, 1, 0, 0, 0, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", WENT_ON)
def test_a_controller_saved_before_goes_on(name):
    program = saved_program()
    controller = osilp.load_controller(SAVED / f"{name}.npz", program)
    assert controller.t == 7
    rest = program.data.tail(9)
    decisions = [controller.step(value=row.value, slope=row.slope).x for row in rest.itertuples()]
    assert (controller.reward, decisions) == WENT_ON[name]


def test_a_study_saved_before_is_read_and_gone_on_with(tmp_path):
    study = osilp.load_study(SAVED / "study")
    assert list(study.summary()["trials", ""]) == [2, 2]
    folder = shutil.copytree(SAVED / "study", tmp_path / "study")
    policies = [osilp.MirrorDescent(), osilp.Resolve()]
    program = saved_program()
    options = {"trials": 3, "order": "permutation", "seed": 3, "progress": False}
    longer = osilp.compare(program, policies, path=folder, **options)
    anew = osilp.compare(program, policies, **options)
    assert longer.runs["reward"].tolist() == pytest.approx(anew.runs["reward"].tolist())
    assert longer.runs["reward"][:2].tolist() == study.runs["reward"][:2].tolist()
