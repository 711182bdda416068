"""The command ``osilp``: which subcommands there are, and how a run of one ends.

Each subcommand is a module of this subpackage with ``add_options`` and ``run``. Exit codes: 0 done; 1 refused, with a
sentence that says why; 2 wrong usage; 3 solved, but there is no optimal answer; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from osilp_pyomo._version import __version__
from osilp_pyomo.errors import OsilpError

REFUSED, INTERRUPTED = 1, 130
#: Subcommands and what they do; the module of that name in this subpackage runs them.
COMMANDS = {
    "demo": "run a spectrum-sharing model: offline three ways, online by five policies, a table, and a report",
    "solve": "solve the model of a Python file offline; the file has `model` or `build_model()`",
    "compare": "run policies against the offline optimum on the model of a Python file; the file has `model` or "
    "`build_model()`",
    "reproduce": "run the numerical section of the paper again, and say claim by claim whether it agrees; a run that "
    "was stopped goes on where it was",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    named = next((each for each in given if not each.startswith("-")), None)
    chosen = build_parser([named] if named in COMMANDS else []).parse_args(given)
    command: Callable[[argparse.Namespace], int] = chosen.run
    try:
        return command(chosen)
    except (OsilpError, OSError) as error:
        if chosen.debug:
            raise
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has seen enough; nothing more is to be written to it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return _refuse(str(error), error)
    except KeyboardInterrupt as error:
        if chosen.debug:
            raise
        print(f"osilp: {str(error) or 'stopped'}.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # a sampler's or a policy's own, for instance
        if chosen.debug:
            raise
        return _refuse(f"{type(error).__name__}: {error} (--debug shows where)", error)


def _refuse(sentence: str, error: Exception) -> int:
    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    print(f"osilp: {sentence}{notes}", file=sys.stderr)
    return REFUSED


def build_parser(complete: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
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
    parser.add_argument("--version", action="version", version=f"osilp_pyomo {__version__}")
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
