"""What became slower between two commits.

    python benchmarks/compare.py OLD NEW [--quick] [--rounds N] [SUITE ...]

Each commit is checked out into a folder of its own, and each suite runs in turns, old and new, so that what the machine
does besides meets both. Figures are compared by their medians; those that the older commit does not have are left out.
The exit status is 1 if a figure is worse than 1.1 times what it was.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SUITES = ("offline", "online", "robust", "arrays", "scale", "speed")
WORSE = 1.1
# What a commit's own suites measure, as one line of JSON.
_RUN = """
import importlib, json, sys
sys.path.insert(0, "benchmarks")
found = importlib.import_module(sys.argv[1]).figures(sys.argv[2] == "quick")
print(json.dumps([[each.what, each.value, each.at_least] for each in found]))
"""


def measured(folder: Path, suite: str, quick: bool) -> dict[str, tuple[float, bool]]:
    """The figures of a suite in a folder, and whether more is better; none where it does not have the suite."""
    if not (folder / "benchmarks" / f"{suite}.py").exists():
        return {}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, suite, "quick" if quick else "whole"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{suite} failed in {folder.name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    return {what: (value, at_least) for what, value, at_least in json.loads(done.stdout.splitlines()[-1])}


def worsened(rounds: Sequence[tuple[dict[str, tuple[float, bool]], dict[str, tuple[float, bool]]]]) -> list[tuple]:
    """(what, old, new, how many times worse) of every figure that both have, the worst first."""
    lines = []
    for what, (_, at_least) in rounds[0][1].items():
        pairs = [(old[what][0], new[what][0]) for old, new in rounds if what in old and what in new]
        if pairs:
            old, new = (statistics.median(each) for each in zip(*pairs, strict=True))
            better, worse = (new, old) if at_least else (old, new)
            lines.append((what, old, new, worse / better if better else float("inf")))
    return sorted(lines, key=lambda line: -line[3])


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare two commits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer turns")
    parser.add_argument("--rounds", type=int, default=3, help="how often each suite runs for each commit")
    chosen = parser.parse_intermixed_args(arguments)
    repository = Path(__file__).resolve().parents[1]
    slower = 0
    with tempfile.TemporaryDirectory() as place:
        folders = []
        for name, commit in (("old", chosen.old), ("new", chosen.new)):
            folder = Path(place) / name
            subprocess.run(
                ["git", "-C", str(repository), "worktree", "add", "-q", "--detach", str(folder), commit], check=True
            )
            folders.append(folder)
        try:
            for suite in chosen.suites or SUITES:
                rounds = []
                for _ in range(chosen.rounds):
                    old, new = (measured(folder, suite, chosen.quick) for folder in folders)
                    rounds.append((old, new))
                for what, old, new, worse in worsened(rounds):
                    mark = "  SLOWER" if worse > WORSE else ""
                    slower += worse > WORSE
                    print(f"{suite:8} {what:70} {old:10.3g} {new:10.3g} {worse:6.2f} times worse{mark}", flush=True)
        finally:
            for folder in folders:
                subprocess.run(
                    ["git", "-C", str(repository), "worktree", "remove", "--force", str(folder)], check=False
                )
    print(
        f"{slower} figures are more than {WORSE} times worse." if slower else "No figure is more than 1.1 times worse."
    )
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
