"""What ``pyomo`` is told of this package: names of solvers and transformations, which load it when they are used.

Every ``pyomo`` command loads this file, so it is light, and it never fails: a name that cannot be made good is left to
Pyomo, which says of one solver that it is not available, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

SOLVERS = {
    "osilp": "Semi-infinite linear and convex programs, exact over the continuum",
    "osilp.robust": "Robust linear models: the call of PyROS, without subordinate solvers",
}
TRANSFORMATIONS = {
    "osilp.discretize": "Semi-infinite constraints as rows at the points of a grid",
    "osilp.project": "Semi-infinite constraints as rows on test functions",
}


def register() -> None:
    """Tell Pyomo's factories the names that they do not know yet."""
    from pyomo.core.base.transformation import TransformationFactory
    from pyomo.opt import SolverFactory

    for factory, names, instead in (
        (SolverFactory, SOLVERS, _unavailable_solver),
        (TransformationFactory, TRANSFORMATIONS, None),
    ):
        for name, sentence in names.items():
            if name not in factory:
                factory.register(name, doc=sentence)(_loaded_when_made(factory, name, instead))


def _loaded_when_made(factory: Any, name: str, instead: Callable[..., Any] | None) -> Callable[..., Any]:
    """What makes the thing of a name, once osilp_pyomo has registered its own; where that fails, what stands for it."""

    def make(**options: Any) -> Any:
        try:
            import osilp_pyomo  # noqa: F401  it registers its own under the same name

            found = factory.get_class(name)
            if found is make:
                raise RuntimeError(f"osilp_pyomo was imported, and did not register '{name}'")
        except Exception as error:
            if instead is None:
                raise
            return instead(name, error, options)
        return found(**options)

    return make


def _unavailable_solver(name: str, error: Exception, options: dict[str, Any]) -> Any:
    """A solver that Pyomo knows to be unknown, with the attribute that `pyomo help --solvers` asks all solvers for."""
    import logging

    from pyomo.opt.base.solvers import UnknownSolver

    logging.getLogger("pyomo.opt").warning(
        "Solver '%s' is not available, because osilp_pyomo cannot be imported: %s: %s",
        name,
        type(error).__name__,
        error,
    )

    class UnavailableSolver(UnknownSolver):
        _metasolver = False

    solver = UnavailableSolver(type=name, **options)
    solver.name = name
    return solver


# Whatever is wrong here must not end a command that has nothing to do with it.
with suppress(Exception):
    register()
