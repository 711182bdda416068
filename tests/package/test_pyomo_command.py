"""What Pyomo's own command knows of this package, in real processes with the entry points of setup.cfg."""

import configparser
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODEL = """
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet
import osilp_pyomo as osilp

model = m = pyo.ConcreteModel("tent")
m.u = ContinuousSet(bounds=(0, 1))
m.x = pyo.Var()
m.height = pyo.Objective(expr=m.x)
m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 4 * u * (1 - u))
"""
PLAIN = """
import pyomo.environ as pyo

model = m = pyo.ConcreteModel()
m.x = pyo.Var(bounds=(2, 3))
m.o = pyo.Objective(expr=m.x)
"""


@pytest.fixture
def pyomo(tmp_path):
    """Pyomo's command, where this package is installed with the entry points of setup.cfg; ``first`` comes before it."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    installed = tmp_path / "installed"
    told = installed / "osilp_pyomo-0.1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: osilp-pyomo\nVersion: 0.1.0\n")
    (told / "entry_points.txt").write_text(
        "".join(f"[{group}]\n{lines.strip()}\n" for group, lines in settings["options.entry_points"].items())
    )
    (tmp_path / "tent.py").write_text(MODEL)
    (tmp_path / "plain.py").write_text(PLAIN)

    def run(*arguments, first=()):
        path = os.pathsep.join(map(str, [*first, installed, ROOT]))
        return subprocess.run(
            [sys.executable, "-m", "pyomo.scripting.pyomo_main", *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    run.folder = tmp_path
    return run


@pytest.fixture
def broken(tmp_path):
    """A package of this name that cannot be imported."""
    folder = tmp_path / "broken" / "osilp_pyomo"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('half of it is missing')\n")
    return folder.parent


@pytest.mark.long
def test_help_lists_solvers_and_transformations(pyomo):
    done = pyomo("help", "--solvers")
    assert done.returncode == 0
    found = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if line.startswith("   +osilp")}
    assert set(found) == {"+osilp", "+osilp.robust"}
    listed = pyomo("help", "--transformations").stdout
    for name in ("osilp.discretize", "osilp.project"):
        assert f"  {name}\n" in listed


@pytest.mark.long
def test_pyomo_solves_a_file(pyomo):
    done = pyomo(
        "solve",
        "--solver=osilp",
        "--solver-options=method=exchange timelimit=60",
        "--summary",
        "--keepfiles",
        "tent.py",
    )
    assert done.returncode == 0, done.stderr
    assert "Function Value: 1.0" in done.stdout
    assert "None :  None :   1.0" in done.stdout
    assert "Termination condition: optimal" in (pyomo.folder / "results.yml").read_text()
    assert "exchange: optimal in" in (pyomo.folder / "osilp.log").read_text()
    done = pyomo("solve", "--solver=osilp", "--solver-options=metod=exchange", "tent.py")
    assert done.returncode != 0
    assert "there is no option 'metod'; the options" in done.stdout + done.stderr


@pytest.mark.long
def test_a_broken_package_breaks_no_other_command(pyomo, broken):
    done = pyomo("help", "--solvers", first=[broken])
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["osilp"]]
    assert "+" not in line
    # Its own solver says what is wrong with it.
    done = pyomo("solve", "--solver=osilp", "plain.py", first=[broken])
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert (
        "Solver 'osilp' is not available, because osilp_pyomo cannot be imported: ImportError: half of it is missing"
        in said
    )
    assert "Unknown solver 'osilp'" in said


def test_other_commands_do_not_load_the_package(pyomo):
    """Pyomo reads every entry point before each of its commands."""
    code = (
        "import sys, runpy\nsys.argv = ['pyomo', 'help', '--transformations']\n"
        "try: runpy.run_module('pyomo.scripting.pyomo_main', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print('osilp_entry.pyomo_command' in sys.modules, 'osilp_pyomo' in sys.modules)"
    )
    path = os.pathsep.join([str(pyomo.folder / "installed"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout.splitlines()[-1] == "True False"
