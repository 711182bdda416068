"""All suites of benchmarks, one after the other, and one page of their figures.

    python benchmarks/all.py [--quick] [--write PATH] [SUITE ...]

Every suite runs in a process of its own, so that none is disturbed by the memory or the compiled state of another. The
exit status is 1 if a figure misses its limit or a suite fails; the other suites run all the same. Where only some
suites run, the others keep what they have on a page that stands there already, so that a page can be made in turns.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from figures import Figure, in_fresh_process, markdown, shown

SUITES = ("offline", "online", "regret", "corrections", "robust", "arrays", "scale", "speed", "published")


def run(suite: str, quick: bool) -> list[Figure]:
    """The figures of a suite, which is imported here and nowhere else."""
    return importlib.import_module(suite).figures(quick)


def machine() -> str:
    """What the figures are measured on."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    packages = f"numpy {version('numpy')}, highspy {version('highspy')}"
    try:
        numba = f"numba {version('numba')}"
    except PackageNotFoundError:
        numba = "without numba"
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, Python {platform.python_version()}, {packages}, {numba}"
    )


def kept_sections(text: str) -> dict[str, str]:
    """The sections of a page by their suites."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {each.partition("\n")[0].strip().lower(): f"## {each.strip()}" for each in sections}


def page(
    figures: Mapping[str, Sequence[Figure]],
    failed: Mapping[str, str],
    about: str,
    quick: bool,
    before: str = "",
) -> str:
    """The page in Markdown: a paragraph, the figures of every suite, and why suites that failed have none.

    Suites that did not run keep what they have on the page as it was ``before``.
    """
    paragraph = (
        f"Measured on {about}. Every figure is a ratio against what its third column names, measured in the same run, "
        "the best of several runs that took turns; a figure with a unit of time or memory has nothing beside it, an "
        "exponent says how time grows with size."
    )
    paragraph += (
        "\n\nRegret: game P is held to averages and compared with R*_Phi, game F keeps every row and is compared with "
        "R*_T; m = 2,000 rows, means over 8 seeds. Inputs as in the paper: normal has a support of 100 columns, normal "
        "fresh draws every column anew, permutation has five groups in random order, smooth has columns smooth along "
        "the index; uniform and cauchy draw from those distributions. 'entropy' and 'remaining' are the arguments of "
        "MirrorDescent. Games R (the README's model), B (batches), C (forecasts), K (ties), T (continuous time), O "
        "(options) and S (concave stages) are described in benchmarks/regret.py. Corrections: game P on normal input, "
        "T = 5,000, corrections to the paper taken back."
    )
    if quick:
        paragraph += " Sizes are smaller and turns fewer than in a full run (`--quick`)."
    sections = kept_sections(before)
    sections |= {suite: _dated(markdown(suite.capitalize(), each)) for suite, each in figures.items()}
    sections |= {suite: f"## {suite.capitalize()}\n\nThis suite failed: {reason}" for suite, reason in failed.items()}
    order = [*(suite for suite in SUITES if suite in sections), *(each for each in sections if each not in SUITES)]
    return "\n\n".join(["# Benchmarks", paragraph, *(sections[each] for each in order)]) + "\n"


def _dated(section: str) -> str:
    """A section with the day on which it was measured, below its heading."""
    heading, _, rest = section.partition("\n")
    return f"{heading}\n\nMeasured on {date.today().isoformat()}.\n{rest}"


def shortfalls(figures: Mapping[str, Sequence[Figure]], failed: Mapping[str, str]) -> list[str]:
    """A line for every figure that misses its limit, and for every suite that failed."""
    lines = []
    for suite, each in figures.items():
        for figure in each:
            if figure.kept is False:
                what, value, peer, limit, _ = figure.cells()
                lines.append(f"{suite}: {what}: {value}{f' against {peer}' if peer else ''}, limit {limit}")
    return lines + [f"{suite}: failed: {reason}" for suite, reason in failed.items()]


def write(path: Path, text: str) -> None:
    """Write the page at once or not at all."""
    # Here, so that the processes of suites, which import this file again, begin without the package.
    from osilp_pyomo._files import write_at_once

    write_at_once(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that are asked for, and say whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer turns")
    parser.add_argument("--write", type=Path, metavar="PATH", help="write the figures to one page in Markdown")
    chosen = parser.parse_args(arguments)
    unknown = [suite for suite in chosen.suites if suite not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    if chosen.write and not chosen.write.absolute().parent.is_dir():
        parser.error(f"no folder {chosen.write.parent}")
    figures, failed = {}, {}
    for suite in dict.fromkeys(chosen.suites or SUITES):
        print(f"{suite} ...", flush=True)
        started = time.perf_counter()
        try:
            figures[suite] = in_fresh_process(run, suite, chosen.quick)
        except Exception as error:  # the figures of the others are worth having
            traceback.print_exc()
            failed[suite] = f"{type(error).__name__}: {error}"
            continue
        print(f"{suite}: {time.perf_counter() - started:.0f} seconds\n", flush=True)
        shown(suite.capitalize(), figures[suite])
        print(flush=True)
    if chosen.write:
        before = chosen.write.read_text(encoding="utf-8") if chosen.suites and chosen.write.exists() else ""
        write(chosen.write, page(figures, failed, machine(), chosen.quick, before))
    lines = shortfalls(figures, failed)
    print("\n  ".join(["These fall short:", *lines]) if lines else "All limits are kept.", flush=True)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
