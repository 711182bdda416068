"""The command ``osilp`` as far as it needs no package: its subcommands, its help, its version.

Each subcommand is a module of ``osilp_pyomo.cli`` with ``add_options`` and ``run``, loaded when it is called.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

#: Subcommands and what they do.
COMMANDS = {
    "demo": "run a spectrum-sharing model: offline three ways, online by five policies, a table, and a report",
    "new": "write a model to begin with into a Python file, which solve and compare take",
    "solve": "solve the model of a Python file offline; the file has `model` or `build_model()`",
    "compare": "run policies against the offline optimum on the model of a Python file; the file has `model` or "
    "`build_model()`",
    "reproduce": "run the numerical section of the paper again, and say claim by claim whether it agrees; a run that "
    "was stopped goes on where it was",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if named_in(given) is None:
        parser = build_parser()
        if not given:
            parser.print_help()
            return 0
        # Help, the version, or wrong usage: each ends here.
        parser.parse_args(given)
    from osilp_pyomo.cli.main import main as run

    return run(given)


def named_in(arguments: Iterable[str]) -> str | None:
    """The subcommand that is called, if it is one."""
    first = next((each for each in arguments if not each.startswith("-")), None)
    return first if first in COMMANDS else None


def build_parser(complete: Iterable[str] = ()) -> argparse.ArgumentParser:
    """The commands and their options; the documentation is made from it, too.

    Only commands that are to be ``complete`` have their options, for these are made from what the command runs, which
    takes a while to load.
    """
    parser = argparse.ArgumentParser(
        prog="osilp",
        description="Semi-infinite linear programs in Pyomo: solved offline, and online policies compared with that.",
        epilog="Exit codes: 0 done; 1 refused, with a sentence that says why; 2 wrong usage; 3 solved, but there is no "
        "optimal answer; 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"osilp_pyomo {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        sentence = f"{text[0].upper()}{text[1:]}."
        command = commands.add_parser(name, help=text.partition(";")[0], description=sentence)
        if name in complete:
            module = import_module(f"osilp_pyomo.cli.{name}")
            module.add_options(command)
            command.set_defaults(run=module.run)
        command.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        command.add_argument("--debug", action="store_true", help="show a traceback when something is refused or fails")
    return parser


def _version() -> str:
    """The version of the package, read without loading it."""
    found = find_spec("osilp_pyomo")
    if found is None or found.origin is None:
        return "unknown"
    text = Path(found.origin).with_name("_version.py").read_text(encoding="utf-8")
    return re.findall(r'__version__ = "(.+)"', text)[0]
