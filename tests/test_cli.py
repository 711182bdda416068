"""The command line in real processes."""

import subprocess
import sys


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "osilp_pyomo.cli", *arguments], capture_output=True, text=True, check=False
    )


def test_demo_prints_the_table():
    done = run("demo", "--arrivals", "200")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for method in ("projected on RBF(10)", "discretized on Midpoint(500)", "exchange, exact on [0, 1]"):
        assert method in done.stdout
    assert "The optimum lies in [" in done.stdout


def test_errors_are_one_sentence():
    done = run("demo", "--arrivals", "0")
    assert done.returncode == 1
    assert done.stderr == "osilp: demo: the number of arrivals must be at least 1 (got 0).\n"


def test_version_and_help():
    assert run("--version").stdout.startswith("osilp_pyomo 0.")
    assert "demo" in run("--help").stdout
