"""Progress where there is no terminal: a line now and then in a log, nothing where it was not asked for."""

import io
import subprocess
import sys

import pytest

from osilp_pyomo import _reporting


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)


LOGGED = """
import time
from osilp_pyomo import _reporting
_reporting._LOGGED = {seconds}
with _reporting.bar({progress}, total=40, desc="replay", unit=" arrivals") as shown:
    for _ in range(40):
        time.sleep(0.01)
        shown.update(1)
"""


def test_a_log_has_lines_of_progress():
    done = run(LOGGED.format(seconds=0.1, progress=True))
    lines = done.stderr.splitlines()
    assert done.stdout == ""
    assert 2 <= len(lines) <= 8, lines
    assert all(line.startswith("replay: ") and len(line) <= 100 for line in lines), lines
    assert "40/40" in lines[-1]
    assert "\r" not in done.stderr


@pytest.mark.parametrize(("seconds", "progress"), [(30.0, True), (0.1, False)])
def test_what_is_short_or_not_wanted_says_nothing(seconds, progress):
    done = run(LOGGED.format(seconds=seconds, progress=progress))
    assert (done.stdout, done.stderr) == ("", "")


def test_without_a_standard_error_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with _reporting.bar(True, total=2) as shown:
        shown.update(2)


def test_each_state_is_a_line(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    lines = _reporting._Lines()
    for text in ("\r", "\rreplay: 10%", "\rreplay: 20%  ", "\n"):
        lines.write(text)
    lines.flush()
    assert written.getvalue() == "replay: 10%\nreplay: 20%\n"
