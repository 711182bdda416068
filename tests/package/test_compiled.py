"""Compiled functions: what is kept on disk is what the files say."""

import subprocess
import sys

import pytest

pytest.importorskip("numba")

CALLEE = "from osilp_pyomo._jit import jit\n\n\n@jit\ndef length(x):\n    return {} * x\n"
CALLER = (
    "from callee import length\nfrom osilp_pyomo._jit import jit\n\n\n@jit\ndef both(x):\n    return length(x) + 1.0\n"
)
ASKED = "from caller import both\nprint(both(3.0), sum(both.stats.cache_hits.values()))\n"


def test_a_caller_is_compiled_anew_when_what_it_calls_has_changed(tmp_path):
    def asked():
        done = subprocess.run([sys.executable, "-c", ASKED], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(2.0))
    assert asked() == ["7.0", "0"]
    assert asked() == ["7.0", "1"]
    (tmp_path / "callee.py").write_text(CALLEE.format(5.0))
    assert asked() == ["16.0", "0"]
    assert asked() == ["16.0", "1"]
