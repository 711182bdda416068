"""The README's example does what it says, and its commands are there."""

import subprocess
import sys
from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.long
def test_the_example_prints_what_stands_below_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ((printed, said),) = pages.run(README, {})
    assert pages.same(printed, said), printed
    (code,) = [text for language, text in pages.blocks(README) if language == "python"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 26


def test_the_comparison_sees_other_numbers():
    """It is no comparison that anything passes."""
    assert pages.same("took 0.31 s, gap 1e-09, value 2.5\n", "took 0.30 s, gap 0, value 2.5\n")
    assert not pages.same("value 2.6\n", "value 2.5\n")
    assert not pages.same("violation 0.5\n", "violation 0\n")
    assert not pages.same("violation 9e-05\n", "violation 0\n")
    assert pages.same("950 us and 0.9 MB\n", "1.1 ms and 1,100 kB\n")


def test_the_two_commands_are_there():
    commands = [line for language, text in pages.blocks(README) if language == "sh" for line in text.splitlines()]
    assert len(commands) == 2
    assert commands[0].endswith(".venv/bin/osilp demo")
    assert commands[1].endswith(".venv-test/bin/python -m pytest -q -n 2")


@pytest.mark.long
def test_its_pictures_can_be_drawn_again(tmp_path):
    drawn = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "draw_pictures.py"), str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    # On a slow machine long work says how far it is.
    assert [line for line in drawn.stderr.splitlines() if "%|" not in line] == []
    assert drawn.stdout.split() == sorted(path.name for path in (ROOT / "docs" / "pictures").glob("*.png"))
