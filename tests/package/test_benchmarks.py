"""The benchmarks' own tools: figures, tables, memory and the page; the suites themselves are not run here."""

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name):
    """A module of the benchmarks by its path; the next one loaded finds it by its name."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


figures = load("figures")
benchmarks = load("all")
Figure = figures.Figure
LINES = [
    Figure("solve", 0.25, "x", "a peer", 0.5),
    Figure("speedup", 1234.5, "x", "another|peer", 2000, at_least=True),
    Figure("memory", 0.75, "GB"),
]


@pytest.fixture
def importable(monkeypatch):
    """Processes started afresh find the modules of the benchmarks by their names."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])


def allocated(count):
    return float(np.ones(count).sum())


@pytest.mark.parametrize(
    ("value", "limit", "at_least", "kept"),
    [
        (1, None, False, None),
        (1, 1, False, True),
        (2, 1, False, False),
        (1, 1, True, True),
        (0.5, 1, True, False),
        (np.nan, 1, False, False),
        (np.nan, 1, True, False),
    ],
)
def test_limits(value, limit, at_least, kept):
    assert Figure("", value, limit=limit, at_least=at_least).kept is kept


def test_table(capsys):
    expected = (
        "A title\n"
        "-------\n"
        "what      figure  against       limit           kept\n"
        "solve     0.25 x  a peer        at most 0.5     yes\n"
        "speedup  1,234 x  another|peer  at least 2,000  NO\n"
        "memory   0.75 GB"
    )
    assert figures.table("A title", LINES) == expected
    figures.shown("A title", LINES)
    assert capsys.readouterr().out == expected + "\n"


def test_markdown():
    assert figures.markdown("A title", LINES) == (
        "## A title\n"
        "\n"
        "| what | figure | against | limit | kept |\n"
        "| --- | ---: | --- | --- | --- |\n"
        "| solve | 0.25 x | a peer | at most 0.5 | yes |\n"
        "| speedup | 1,234 x | another\\|peer | at least 2,000 | NO |\n"
        "| memory | 0.75 GB |  |  |  |"
    )


def test_growth_of_a_power():
    sizes = np.array([10, 100, 3000])
    figure = figures.growth("a solve by columns", sizes, 1e-4 * sizes**1.5)
    assert figure.value == pytest.approx(1.5, rel=1e-12)
    assert (figure.what, figure.unit, figure.peer) == (
        "growth of a solve by columns, 10 to 3,000",
        "exponent",
        "size",
    )


def test_tasks_take_turns():
    order = []
    taken, answers = figures.timed(lambda: order.append("a"), lambda: order.append("b") or len(order), turns=2)
    assert order == ["a", "b", "a", "b"]
    assert answers == [None, 4]
    assert all(np.isfinite(taken))
    assert len(figures.seconds(list, dict, set, turns=1)) == 3


@pytest.mark.long
def test_peak_memory_is_that_of_the_child_alone(importable):
    ours = np.ones(60_000_000)
    result, peak = figures.peak_memory(allocated, 25_000_000)
    assert result == 25_000_000
    assert 200e6 < peak < 400e6 < ours.nbytes


def test_page(tmp_path):
    page = benchmarks.page({"offline": LINES}, {"scale": "KeyError: 'x'"}, "a machine", quick=True)
    assert page.startswith(
        "# Benchmarks\n\nMeasured on a machine. Every figure is a ratio against what its third column"
    )
    assert "(`--quick`).\n\n## Offline\n\nMeasured on 2" in page
    assert page.endswith("\n\n## Scale\n\nThis suite failed: KeyError: 'x'\n")
    path = tmp_path / "page.md"
    path.write_text("old")
    benchmarks.write(path, page)
    assert path.read_text() == page
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "page.md"
    path.write_text("old")

    def failing(*_):
        raise OSError

    monkeypatch.setattr("os.replace", failing)
    with pytest.raises(OSError):
        benchmarks.write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_machine_is_told():
    assert all(word in benchmarks.machine() for word in ("cores", "GiB", "Python 3.", "numpy 2", "highspy 1", "numba"))


def made_up(suite, quick):
    if suite == "scale":
        raise ModuleNotFoundError("No module named 'scale'")
    return LINES[:1] if quick else LINES


def test_all_suites(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmarks, "in_fresh_process", lambda run, *arguments: made_up(*arguments))
    path = tmp_path / "page.md"
    assert benchmarks.main(["--quick", "--write", str(path), "robust", "offline"]) == 0
    assert capsys.readouterr().out.endswith("\nAll limits are kept.\n")
    page = path.read_text()
    assert page.index("## Offline") < page.index("## Robust")
    assert benchmarks.main(["--write", str(path), "speed", "offline"]) == 1
    capsys.readouterr()
    later = path.read_text()
    assert [line for line in later.splitlines() if line.startswith("## ")] == ["## Offline", "## Robust", "## Speed"]
    # What did not run is as it was, what did is new.
    assert later.split("## Robust")[1].split("## Speed")[0].strip() == page.split("## Robust")[1].strip()
    assert later.count("| speedup |") == 2

    assert benchmarks.main(["offline", "scale"]) == 1
    assert capsys.readouterr().out.endswith(
        "\nThese fall short:\n"
        "  offline: speedup: 1,234 x against another|peer, limit at least 2,000\n"
        "  scale: failed: ModuleNotFoundError: No module named 'scale'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["offlime"],
            "no suite offlime; there are offline, online, regret, corrections, robust, arrays, scale, speed, published",
        ),
        (["--write", "no/such/page.md"], "no folder no/such"),
    ],
)
def test_bad_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        benchmarks.main(arguments)
    assert capsys.readouterr().err.endswith(f"error: {message}\n")


def test_a_suite_runs_in_a_process_of_its_own(importable, tmp_path, monkeypatch):
    (tmp_path / "small.py").write_text(
        "import os\nfrom figures import Figure\n\n\n"
        "def figures(quick=False):\n    return [Figure('process', os.getpid()), Figure('quick', quick)]\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    process, quick = figures.in_fresh_process(benchmarks.run, "small", True)
    assert process.value != os.getpid()
    assert quick == Figure("quick", True)


def test_the_plain_two_stages_of_the_corrections_decide_as_the_package_does(importable):
    """What the benchmark takes back, it takes back from the algorithm of the package."""
    # Not above: processes that this file starts afresh would hold them too.
    import pandas as pd

    import osilp_pyomo as osilp

    corrections = load("corrections")
    rng = np.random.default_rng(3)
    program = corrections.program_for(2000, rng.uniform(2, 3, corrections.POINTS))
    profiles = {"column": rng.normal(4, 1, (2000, corrections.POINTS))}
    arrivals = program.project(pd.DataFrame({"value": rng.normal(1, 1, 2000)}), profiles)
    ours, plain, printed = (
        program.replay(policy, arrivals, "projected").decisions.to_numpy()
        for policy in (osilp.AccelerateThenRefine(), corrections.TwoStage(), corrections.TwoStage(own=False))
    )
    np.testing.assert_allclose(plain, ours, atol=1e-9)
    assert np.abs(printed - ours).max() > 0.5


def test_what_became_slower_comes_first():
    compare = load("compare")
    old = {"time": (2.0, False), "speedup": (3.0, True), "gone": (1.0, False)}
    new = {"time": (2.1, False), "speedup": (1.5, True), "new": (1.0, False)}
    assert compare.worsened([(old, new)] * 3) == [("speedup", 3.0, 1.5, 2.0), ("time", 2.0, 2.1, 1.05)]
