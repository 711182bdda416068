"""Solve a model again and again: what has changed is found, what has not is kept."""

from __future__ import annotations

from typing import Any

from osilp_pyomo._options import SOLVE, documented_by
from osilp_pyomo.api import solve_as_read
from osilp_pyomo.errors import OptionError
from osilp_pyomo.model.kept import KeptModel
from osilp_pyomo.model.trace import refuse_no_model
from osilp_pyomo.offline.results import Result
from osilp_pyomo.offline.warmth import Warmth

_DEFAULTS = {option.name: option.default for option in SOLVE}


class PersistentSolver:
    """A solver that stays with a model, for solving it again after some of it has changed.

    Between two solves anything may change: values of Params and of fixed variables, Profiles, bounds, the numbers of
    sets, what is fixed or active, components. Each solve compares the model with what was read last, reads again what
    is another, and begins where the last one ended. What comes back is what :func:`osilp_pyomo.solve` would give: all
    that it says of the answer is proved anew.

    What cannot be seen from the model are Python objects that rules read, such as a dictionary, a loop's variable or
    an array: after a change in those call :meth:`retrace`.

    Parameters
    ----------
    model : ConcreteModel
        Read, and changed only in the values of its variables and of the Suffixes dual and rc.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.height = pyo.Param(mutable=True, initialize=1.0)
    >>> m.x = pyo.Var([0, 1])
    >>> m.area = pyo.Objective(expr=m.x[0] + m.x[1] / 2)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x[0] + m.x[1] * u >= m.height * pyo.exp(u)
    >>> solver = osilp.PersistentSolver(m)
    >>> round(solver.solve().objective, 6)
    1.859141
    >>> m.height = 2.0
    >>> round(solver.solve().objective, 6)
    3.718282
    """

    def __init__(self, model: Any) -> None:
        refuse_no_model(model, "PersistentSolver")
        self._model = model
        self._kept = KeptModel(model)
        self._warmth = Warmth()

    @property
    def model(self) -> Any:
        """The model."""
        return self._model

    @documented_by(SOLVE)
    def solve(self, method: str = "auto", **options: Any) -> Result:
        """Solve the model as it is now.

        Parameters
        ----------
        {options}

        Returns
        -------
        Result
        """
        for name in options:
            if name not in _DEFAULTS:
                raise OptionError(f"PersistentSolver.solve: there is no option {name!r}; there are {', '.join(_DEFAULTS)}.")
        try:
            return solve_as_read(
                self._model, self._kept.read, self._warmth, **{**_DEFAULTS, **options, "method": method}
            )
        except BaseException:
            # Whatever it was in the middle of, an interrupt too: the next solve begins from nothing.
            self.retrace()
            raise

    def retrace(self) -> None:
        """Read the whole model anew at the next solve, and call all its rules again."""
        self._kept.forget()
        self._warmth.forget()

    def __getstate__(self) -> dict[str, Any]:
        """The model travels, what was kept of it does not."""
        return {"model": self._model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"PersistentSolver({self._model.name!r})"
