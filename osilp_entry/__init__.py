"""What must start in a blink: the help of the command ``osilp``, and what ``pyomo`` is told of this package.

Holds: entry points that other programs load. They are outside of osilp_pyomo, because importing any part of that loads
what a declaration needs, Pyomo with it.
May know: nothing but the standard library, until something is asked for.
Gives: :func:`osilp_entry.command.main`, and the names that ``pyomo help --solvers`` shows.
"""
