"""The exception tree: every refusal of this package is an :class:`OsilpError`.

::

    OsilpError
     +-- DeclarationError(ValueError)         a component was declared in a way that cannot be meant
     +-- UntransformedModelError(ValueError)  a solver or writer met a constraint that only we can read
     +-- NotLinearError(ValueError)           a row or objective is not linear in the variables
     +-- ModelError(ValueError)               the model holds something that cannot be solved here
     +-- DataError(ValueError)                a coefficient has no value, or is not a finite number
     +-- DomainError(ValueError)              a point lies outside the set it must lie in
     +-- GridError(ValueError)                a grid that cannot stand for the index set
     +-- BasisError(ValueError)               test functions that are negative, zero or not finite
     +-- OptionError(ValueError)              an option that is unknown, misspelled or out of range
     +-- HorizonError(ValueError)             more arrivals came than were expected
     +-- CurvatureError(ValueError)           a stage is not concave in what it earns, or not convex in what it uses
     +-- SavedStateError(ValueError)          a saved controller that cannot be read, or belongs to another program
     +-- PriceError(ValueError)               a price that does not exist, or not in the form asked for
     +-- ExecutorError(RuntimeError)          a process that ran trials of a study died
     +-- MissingPackageError(ImportError)     something optional is asked for, and its package is not installed
     +-- NoSolutionError(RuntimeError)        values were asked of a result that has none
     +-- SolverError(RuntimeError)            HiGHS ended in a way that gives no answer

Each text names the object, the rule it breaks, the value that was got, and the way out.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class OsilpError(Exception):
    """Base class of everything this package raises on purpose."""


class DeclarationError(OsilpError, ValueError):
    """A component was declared in a way that cannot be meant."""


class UntransformedModelError(OsilpError, ValueError):
    """A solver or writer met an active semi-infinite constraint."""


class NotLinearError(OsilpError, ValueError):
    """A row or the objective is not linear in the variables."""


class ModelError(OsilpError, ValueError):
    """The model holds something that cannot be solved here."""


class DataError(OsilpError, ValueError):
    """A coefficient has no value, or is not a finite number."""


class DomainError(OsilpError, ValueError):
    """A point lies outside the set it must lie in."""


class GridError(OsilpError, ValueError):
    """A grid that cannot stand for the index set."""


class BasisError(OsilpError, ValueError):
    """Test functions that are negative, zero everywhere or not finite."""


class OptionError(OsilpError, ValueError):
    """An option that is unknown, misspelled or out of range."""


class HorizonError(OsilpError, ValueError):
    """More arrivals came than were expected."""


class CurvatureError(OsilpError, ValueError):
    """A stage is not concave in what it earns, or not convex in what it uses."""


class SavedStateError(OsilpError, ValueError):
    """A saved controller that cannot be read, or that belongs to another program."""


class PriceError(OsilpError, ValueError):
    """A price that does not exist, or not in the form asked for."""


class ExecutorError(OsilpError, RuntimeError):
    """A process that ran trials of a study died."""


class MissingPackageError(OsilpError, ImportError):
    """Something optional was asked for, and the package that it needs is not installed."""


class NoSolutionError(OsilpError, RuntimeError):
    """Values were asked of a result that has none."""


class SolverError(OsilpError, RuntimeError):
    """HiGHS ended in a way that gives no answer."""


class SamplingWarning(UserWarning):
    """A rule could not be traced and is called at every point instead."""


class ChangedRuleWarning(UserWarning):
    """A rule gives another row than when it was declared; the text says which is used."""


class AccuracyWarning(UserWarning):
    """An answer is less accurate than was asked for; the text says by how much."""


# Where warnings of this package go instead of to the user, in a context that collects them.
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting_warnings() -> Iterator[list[str]]:
    """Collect what this package would warn of, to be told elsewhere; other threads are not touched."""
    said: list[str] = []
    token = _collected.set(said)
    try:
        yield said
    finally:
        _collected.reset(token)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the line of the user's that led here rather than at this package or Pyomo."""
    collected = _collected.get()
    if collected is not None:
        collected.append(message)
        return
    depth = 2  # 1 would be this function
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("osilp_pyomo", "pyomo"):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, category, stacklevel=depth)
