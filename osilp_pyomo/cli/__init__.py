"""The command ``osilp``.

Holds: its subcommands, the reading of their options, and models in files.
May know: everything.
Gives: :func:`main`, which returns an exit code.
"""

from osilp_pyomo.cli.main import main

__all__ = ["main"]
