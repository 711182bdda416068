"""The command ``osilp``: how a run of a subcommand ends.

Which subcommands there are, and what needs no package, is in ``osilp_entry``. Exit codes: 0 done; 1 refused, with a
sentence that says why; 2 wrong usage; 3 solved, but there is no optimal answer; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from osilp_entry.command import build_parser, named_in
from osilp_entry.command import main as start
from osilp_pyomo.errors import OsilpError

REFUSED, INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    named = named_in(given)
    if named is None:
        return start(given)
    chosen = build_parser([named]).parse_args(given)
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
