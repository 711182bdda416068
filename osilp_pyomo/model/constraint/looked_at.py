"""Whether a rule looks at values of the model while it is called, instead of writing them into its row as symbols.

Such a row changes with the values, and its trace does not: it can be read again only by calling the rule again. What a
rule calls of Pyomo is seen by Python's own hook for profilers, which is on for as long as the rule runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import pyomo.environ as pyo
from pyomo.common.collections import component_map
from pyomo.contrib.pyros import uncertainty_sets
from pyomo.core.base import expression, param, set, var
from pyomo.dae import contset

from osilp_pyomo.model import profile

_FILES = frozenset(module.__file__ for module in (param, var, expression, set, contset, uncertainty_sets))
# What Pyomo asks of its own components while an expression is written. Which of them are fixed, and the members of
# sets, are compared whenever a model is read.
_HARMLESS = frozenset(
    {
        *("__getitem__", "__iter__", "__len__", "__contains__", "__hash__", "__eq__", "__str__", "__getattr__"),
        *("__init__", "__new__", "construct", "keys", "get", "data", "ordered_iter", "_iter_impl", "_range_gen"),
        *("fixed", "is_fixed", "is_indexed", "is_numeric_type", "is_variable_type", "is_parameter_type"),
        *("is_expression_type", "is_named_expression_type", "is_constant", "is_potentially_variable", "is_reference"),
        *("is_component_type", "is_logical_type", "is_relational", "isdiscrete"),
        *("isfinite", "polynomial_degree", "parent_component", "parent_block", "index", "index_set", "name", "getname"),
        *("local_name", "arg", "args", "nargs", "mutable", "dim", "dimen", "_getitem_when_not_present"),
        *("_processUnhashableIndex", "_not_constructed_error"),
    }
)
# A curve is asked for its value at a number where the rule is called with numbers: at those it is the curve of the
# index, at any other it may be a number in the row.
_MAP = component_map.__file__
_CURVE, _VALUE_AT = profile.__file__, "value_at"


class Watcher:
    """Notes whether any rule that is called meanwhile looks at values; ``point`` is what it is called with."""

    def __init__(self) -> None:
        self.looked = False
        self.point: Sequence[Any] = ()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename == _MAP and isinstance(frame.f_locals.get("self"), pyo.Suffix):
            # Solves write into those, so that they cannot be compared.
            self.looked |= frame.f_locals["self"].import_enabled()
        if code.co_filename == _CURVE and code.co_name == _VALUE_AT:
            known = {each for each in self.point if isinstance(each, float | int)}
            self.looked |= not all(each in known for each in frame.f_locals["coordinates"])
        if code.co_filename not in _FILES or code.co_name in _HARMLESS:
            return
        # What Pyomo's own functions call to do their work does not count.
        caller = frame.f_back
        if caller is None or caller.f_code.co_filename not in _FILES:
            self.looked = True


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching_rules() -> Iterator[Watcher]:
    """Watch every rule that is called within."""
    watcher = Watcher()
    token = _WATCHER.set(watcher)
    try:
        yield watcher
    finally:
        _WATCHER.reset(token)


@contextmanager
def watched_rule(point: Sequence[Any]) -> Iterator[None]:
    """Around the call of a rule at a point: watch it, if anybody asked for that."""
    watcher = _WATCHER.get()
    if watcher is None or watcher.looked:
        yield
        return
    if sys.getprofile() is not None:
        # Somebody else listens: what the rule looks at is not known.
        watcher.looked = True
        yield
        return
    watcher.point = point
    sys.setprofile(watcher)
    try:
        yield
    finally:
        # A rule may have left a profiler of its own.
        if sys.getprofile() is watcher:
            sys.setprofile(None)
