"""One problem with its known answer, and tables of such problems."""

from collections.abc import Callable
from dataclasses import dataclass

import pyomo.environ as pyo


@dataclass(frozen=True)
class Known:
    """One problem with its independently known answer."""

    name: str
    kind: str
    dimension: int
    optimum: float | None
    status: str
    reason: str
    build: Callable[[], pyo.ConcreteModel]


def table(kind, *rows):
    """Problems of one kind from rows of (name, optimum, program, reason)."""
    return [
        Known(name, kind, program.dimension, float(optimum), "optimal", reason, program.build)
        for name, optimum, program, reason in rows
    ]


def table_without_optimum(status, *rows):
    """Infeasible or unbounded problems from rows of (name, program, reason)."""
    return [
        Known(name, status, program.dimension, None, status, reason, program.build) for name, program, reason in rows
    ]
