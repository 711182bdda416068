"""SemiInfiniteConstraint: a Pyomo constraint that holds for every point of a continuous index.

The component *is* a Pyomo Constraint, so that every writer and solver interface meets it. It holds no
rows that they could take; whatever they ask of it while it is active raises one sentence that names
the constraint and says what to do. (A component type of its own would be dropped silently by
several interfaces.)
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from pyomo.common.collections import ComponentSet
from pyomo.common.formatting import tabular_writer
from pyomo.common.gc_manager import PauseGC
from pyomo.core.base.component import ModelComponentFactory
from pyomo.core.base.constraint import Constraint
from pyomo.core.base.global_set import UnindexedComponent_index
from pyomo.core.base.param import Param
from pyomo.core.base.set import Any as AnyValue
from pyomo.core.base.set import process_setarg
from pyomo.core.base.units_container import units as pyomo_units

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import WIDTH, tell
from osilp_pyomo._reporting import warn_user
from osilp_pyomo.errors import DeclarationError, OsilpError, SamplingWarning
from osilp_pyomo.index.grids import Grid
from osilp_pyomo.model.affine import AffineTrace, affine_trace
from osilp_pyomo.model.arrays.expressions import ArrayError, IndexSymbol, NumbersNeededError, Vector
from osilp_pyomo.model.arrays.trees import TRACED_PLAINLY, IndexPlaceholder
from osilp_pyomo.model.constraint.family import SemiInfiniteConstraintData
from osilp_pyomo.model.constraint.looked_at import watched_rule
from osilp_pyomo.model.constraint.reasons import reason_of, refuse_lookup, refuse_missing_member, refuse_wrong_dimension
from osilp_pyomo.model.linear import checked_relation, leaves
from osilp_pyomo.model.mathematics import constraint_card, constraint_latex
from osilp_pyomo.model.sets import (
    body_of,
    is_continuous,
    is_uncertainty_set,
    labels_of,
    single_sets,
    some_number,
    vector_text,
)

#: What is told of a family at the point with least room.
WORST = ("Point", "Lower", "Body", "Upper", "Slack")
# Families that pprint names one by one.
_PRINTED = 100
# Where rules are tried with numbers, as shares of each coordinate's range.
_TRIED = (0.43, 0.0, 1.0, 0.78, 0.15)


@ModelComponentFactory.register("A constraint that holds for every point of a continuous index.")
class SemiInfiniteConstraint(Constraint):
    """A constraint that holds for every point of a continuous index.

    Parameters
    ----------
    *sets : Set
        Any mix of ordinary Sets (one family of rows for each member) and continuous ones
        (ContinuousSet, ``RangeSet(a, b, 0)``; several make a box), and uncertainty sets of PyROS, whose vectors
        the rule gets as tuples.
    rule : callable
        ``rule(model, *members)`` in the order of the sets; returns ``<=``, ``>=`` or a ranged relation
        that is linear in the variables.
    where : callable, optional
        ``where(model, *members)`` with numbers (or arrays): the row holds only where it is true. The set
        it describes is taken as closed.
    sample : bool
        Call the rule at each point instead of tracing it once. Without it, a rule that cannot be traced
        is sampled too, after one warning.
    lipschitz : float or sequence of float, optional
        What a coefficient or limit of the rule changes by at most per unit of the index, or per unit of each of its
        coordinates, fixed variables and Params taken as the numbers that they are: with it, rows that are sampled can
        be proved too.
    equality : "match", "collocate" or Grid
        How a row that is an equation, ``left == right``, holds at every point. "match" makes both sides the same
        function: of an uncertain vector by their coefficients, of curves where both sides lie in one space of
        functions, and is refused elsewhere. "collocate" lets it hold at as many points as there are functions, or at
        those of a grid, and tells what is left between them.

    units : unit or tuple of units, optional
        The unit of the index, such as ``pyo.units.km``: one for all of its coordinates, or one for each. It is read by
        :func:`check_units`, and told with results.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var([0, 1])
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x[0] + m.x[1] * u >= pyo.exp(u)
    >>> m.above
    above: exp(u) <= x[0] + u*x[1]  for all u in [0, 1]

    A cost that is known up to a tenth:

    >>> from pyomo.contrib.pyros import BoxSet
    >>> @m.SemiInfiniteConstraint(BoxSet([(0.9, 1.1), (1.8, 2.2)]))
    ... def affordable(m, cost):
    ...     return cost[0] * m.x[0] + cost[1] * m.x[1] <= 10
    >>> m.affordable
    affordable: cost[0]*x[0] + cost[1]*x[1] <= 10  for all cost in BoxSet of dimension 2
    """

    _ComponentDataClass = SemiInfiniteConstraintData

    def __new__(cls, *args: Any, **kwds: Any) -> Any:
        if cls is not SemiInfiniteConstraint:
            return super().__new__(cls)
        scalar = all(is_continuous(each) for each in single_sets(args))
        return super().__new__(ScalarSemiInfiniteConstraint if scalar else IndexedSemiInfiniteConstraint)

    def __init__(
        self,
        *sets: Any,
        rule: Callable[..., Any] | None = None,
        where: Callable[..., Any] | None = None,
        sample: bool = False,
        lipschitz: Any = None,
        equality: Any = "match",
        units: Any = None,
        **kwds: Any,
    ) -> None:
        """Check what was declared, and sort the sets into ordinary and continuous ones."""
        called = kwds.get("name") or "SemiInfiniteConstraint"
        singles = list(single_sets(sets))
        if not any(is_continuous(each) for each in singles):
            raise DeclarationError(
                f"{called}: it needs a continuous index, a ContinuousSet(bounds=(a, b)), RangeSet(a, b, 0) with a < b, "
                "or an uncertainty set of PyROS; over ordinary sets alone an ordinary Constraint says the same."
            )
        if "expr" in kwds:
            raise DeclarationError(
                f"{called}: expr= cannot hold the index; give rule=..., a function of the model and the index, such as "
                "rule=lambda m, u: ..."
            )
        if not callable(rule):
            raise DeclarationError(
                f"{called}: it needs rule=..., a function of the model and the index (got {type(rule).__name__})."
            )
        if where is not None and not callable(where):
            raise DeclarationError(
                f"{called}: where= must be a function of the model and the index (got {type(where).__name__})."
            )
        if where is not None and any(is_uncertainty_set(each) for each in singles):
            raise DeclarationError(
                f"{called}: where= cannot be combined with an uncertainty set; intersect the set with others by the "
                "IntersectionSet of PyROS, or declare continuous sets with where=..."
            )
        Constraint.__init__(self, *(each for each in singles if not is_continuous(each)), **kwds)
        self.user_rule = rule
        self.where = where
        self.sample = sample
        self._units_given = units
        self.lipschitz = self._lipschitz_constants(lipschitz, called)
        if not isinstance(equality, Grid) and equality not in ("match", "collocate"):
            raise DeclarationError(
                f"{called}: equality= must be 'match', 'collocate' or a grid of points (got {equality!r})."
            )
        self.equality_by = equality
        self.continuous_sets: list[Any] = []
        # For each argument of the rule: its coordinate, its slice of coordinates, or None for an ordinary set.
        self._layout: list[int | slice | None] = []
        self.placeholders: tuple[IndexPlaceholder, ...] = ()
        self._variables: tuple[Any, ...] = ()  # those of the last affine row, which most others share
        # Points at which the rule is tried with numbers.
        self._trials: list[tuple[float, ...]] | None = None
        # Whether its rule needs symbols that understand numpy.
        self._by_arrays = False
        coordinates = 0
        for each in singles:
            if not is_continuous(each):
                self._layout.append(None)
                continue
            if is_uncertainty_set(each):
                self._layout.append(slice(coordinates, coordinates + each.dim))
                coordinates += each.dim
            else:
                each, anonymous = process_setarg(each)
                if anonymous:
                    known = self._anonymous_sets or ()
                    self._anonymous_sets = ComponentSet([*known, *anonymous])
                self._layout.append(coordinates)
                coordinates += 1
            self.continuous_sets.append(each)

    @staticmethod
    def _lipschitz_constants(given: Any, called: str) -> tuple[float, ...] | None:
        """Lipschitz constants as numbers, one for all coordinates or one for each."""
        if given is None:
            return None
        try:
            constants = tuple(map(float, given)) if np.ndim(given) else (float(given),)
        except (TypeError, ValueError):
            constants = ()
        if not constants or not all(0 <= each < np.inf for each in constants):
            raise DeclarationError(
                f"{called}: lipschitz= must be a number >= 0, or one for each coordinate of the index (got {given!r})."
            )
        return constants

    def arguments(self, index: Any, point: Sequence[Any]) -> list[Any]:
        """Arguments of the rule after the model: members of the ordinary sets and coordinates."""
        members = () if not self.is_indexed() else index if isinstance(index, tuple) else (index,)
        ordinary = list(single_sets([self.index_set()])) if self.is_indexed() else []
        arguments: list[Any] = []
        used = 0
        for place in self._layout:
            if place is not None:
                arguments.append(Vector(point[place]) if isinstance(place, slice) else point[place])
                continue
            size = ordinary.pop(0).dimen
            if size is None:
                # A jagged set: its members are what the other sets leave over.
                size = len(members) - used - sum(each.dimen for each in ordinary)
            arguments += members[used : used + size]
            used += size
        return arguments

    @property
    def uncertain(self) -> bool:
        """Whether its index holds an uncertain vector."""
        return any(is_uncertainty_set(each) for each in self.continuous_sets)

    def read_affine(self, relation: Any, noted: bool = False) -> AffineTrace | None:
        """A relation over the placeholders as one affine in them; None if it is not."""
        return affine_trace(relation, {id(each): entry for entry, each in enumerate(self.placeholders)}, noted)

    def _vector_sizes(self) -> list[int]:
        """Dimensions of its uncertain vectors."""
        return [each.dim for each in self.continuous_sets if is_uncertainty_set(each)]

    def call_rule(self, index: Any, point: Sequence[Any]) -> Any:
        """The rule at one point, numbers or placeholders."""
        arguments = self.arguments(index, point)
        with watched_rule(point):
            return self.user_rule(self.parent_block(), *arguments)

    def call_with_numbers(self, index: Any, point: Sequence[Any]) -> Any:
        """The rule at one point, given as numbers; where it takes none, as Params that hold them."""
        try:
            return self.call_rule(index, point)
        except (OsilpError, ArithmeticError, ValueError, LookupError):
            raise
        except Exception:
            # Some of Pyomo's functions (land, lor) take no plain booleans.
            held_numbers = [held(float(number)) for number in point]
        try:
            return self.call_rule(index, held_numbers)
        except (OsilpError, ArithmeticError, ValueError, LookupError):
            raise
        except Exception:
            # Nor does a Param of Pyomo's stand beside a whole array.
            return self.call_rule(index, [IndexSymbol(each) for each in held_numbers])

    def construct(self, data: Any = None) -> None:
        """Trace the rule once for each member of the ordinary sets."""
        if self._constructed:
            return
        self._constructed = True
        try:
            # Thousands of small nodes would set off the garbage collector again and again, in vain.
            with PauseGC():
                self._construct_families()
        except Exception:
            # Pyomo leaves a component that failed on its block; a bad declaration must not change the model.
            block = self.parent_block()
            if block is not None:
                block.del_component(self)
            raise

    def _construct_families(self) -> None:
        for each in self._anonymous_sets or ():
            each.construct()
        # Of Any, for which Pyomo makes no set of its own for each of them.
        names = self.index_names()
        self.placeholders = tuple(IndexPlaceholder(mutable=True, name=name, within=AnyValue) for name in names)
        for placeholder in self.placeholders:
            placeholder.construct()
        # A decision that is a function can then tell over which set it is used.
        sets = (each for each in self.continuous_sets for _ in range(each.dim if is_uncertainty_set(each) else 1))
        for placeholder, each in zip(self.placeholders, sets, strict=True):
            placeholder.index_of = each
        if self._units_given is not None:
            for placeholder, unit in zip(self.placeholders, self._index_units(), strict=True):
                placeholder._units = unit
        for each in self.continuous_sets:
            if is_uncertainty_set(each):
                # A set that cannot be used is refused where it is declared.
                body_of(each, f"SemiInfiniteConstraint '{self.name}'")
            else:
                self._check_bounds(each)
        self._refuse_other_arguments()
        appearing: set[int] = set()
        for index in self.index_set():
            appearing |= self._construct_family(index)
        self._refuse_idle_index(appearing)
        self._warn_of_sampling()

    def _index_units(self) -> tuple[Any, ...]:
        """The unit of each coordinate of the index; None where there is none."""
        given, count = self._units_given, len(self.placeholders)
        listed = tuple(given) if isinstance(given, tuple | list) else (given,) * count
        if len(listed) != count:
            raise DeclarationError(
                f"SemiInfiniteConstraint '{self.name}': units= must be one unit, or one for each of the {count} "
                f"coordinates of its index (got {len(listed)})."
            )
        for each in listed:
            if each is not None and not hasattr(each, "is_potentially_variable"):
                raise DeclarationError(
                    f"SemiInfiniteConstraint '{self.name}': units= must be a unit of Pyomo, such as pyo.units.km (got "
                    f"{each!r})."
                )
        return tuple(None if each is None else pyomo_units.get_units(each) for each in listed)

    def _refuse_other_arguments(self) -> None:
        """Refuse a rule that cannot be called with the model and the index."""
        first = next(iter(self.index_set()), None)
        if first is None and self.is_indexed():
            return
        arguments = self.arguments(first, self.placeholders)
        try:
            # A decorator may give arguments of its own.
            signature = inspect.signature(self.user_rule, follow_wrapped=False)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(self.parent_block(), *arguments)
        except TypeError as error:
            raise DeclarationError(
                f"SemiInfiniteConstraint '{self.name}': its rule is called with {len(arguments) + 1} arguments, the "
                f"model and its index, and takes {signature} ({error}); write it as a function of all of them."
            ) from None

    def _construct_family(self, index: Any) -> set[int]:
        """Make one family; return the ids of the placeholders that its row holds."""
        name = self.name if not self.is_indexed() else f"{self.name}[{index}]"
        relation, reason = None, "sample=True"
        if not self.sample:
            relation, reason = self._trace(index, name)
        if (relation is None or relation is Constraint.Skip) and self._skipped(index, name):
            if relation is None and self._trace(index, name)[0] is not Constraint.Skip:
                raise DeclarationError(
                    f"SemiInfiniteConstraint '{name}': its rule returns Constraint.Skip wherever it was tried, and "
                    "asks for the value of the index before it does, so that it may be a row elsewhere; say where the "
                    "row holds by where=..., or return Constraint.Skip before looking at the index."
                )
            return set()
        if relation is Constraint.Skip:
            relation, reason = None, "it returned Constraint.Skip for a symbol and a row for a number"
        family = self if not self.is_indexed() else self._ComponentDataClass(component=self)
        self._data[index] = family
        family._index = index if self.is_indexed() else UnindexedComponent_index
        family._expr, family.reason = relation, None if relation is not None else reason
        if relation is None:
            return {id(placeholder) for placeholder in self.placeholders}
        if self.uncertain:
            family.affine = self.read_affine(relation)
            if family.affine is not None:
                family.affine = family.affine.sharing(self._variables)
                self._variables = family.affine.variables
                appearing = np.flatnonzero(family.affine.entries())
                if not family.affine.lasting:
                    family.affine = None
                return {id(self.placeholders[k]) for k in appearing}
        return {id(leaf) for leaf in leaves(relation) if leaf.__class__ is IndexPlaceholder}

    def _trace(self, index: Any, name: str) -> tuple[Any, str]:
        """The rule's relation over placeholders, or None with the reason why there is none."""
        # Some of Pyomo's failures also log an error line, which would alarm for nothing.
        with _unlogged():
            try:
                relation = self._call_with_symbols(index)
            except Exception as error:  # any kind was seen: the rule is the user's code
                refuse_wrong_dimension(error, name, self._vector_sizes())
                return None, reason_of(error)
        if relation is Constraint.Skip:
            return relation, ""
        return checked_relation(relation, name), ""

    def _call_with_symbols(self, index: Any) -> Any:
        """The rule over placeholders: plain ones, or symbols that understand numpy where plain ones do not do."""
        if not self._by_arrays:
            token = TRACED_PLAINLY.set(True)
            try:
                return self.call_rule(index, self.placeholders)
            except Exception:
                # Whatever it was is told of the second call.
                self._by_arrays = True
            finally:
                TRACED_PLAINLY.reset(token)
        try:
            return self.call_rule(index, [IndexSymbol(placeholder) for placeholder in self.placeholders])
        except ArrayError:
            raise
        except Exception:
            # Numpy's other functions take arrays of whole expressions, as Pyomo makes them of plain placeholders.
            with contextlib.suppress(Exception):
                return self.call_rule(index, self.placeholders)
            raise

    def _skipped(self, index: Any, name: str) -> bool:
        """Call the rule at a few points: whether it skips this member, at all of them."""
        skips = []
        # Points of a set may cost a program each, and are seldom needed.
        if self._trials is None:
            self._trials = self._trial_points()
        for point in self._trials:
            try:
                relation = self.call_rule(index, point)
            except (KeyError, IndexError) as error:
                refuse_missing_member(error, self)
                refuse_lookup(error, name, point)
                raise
            except ArithmeticError:
                # A pole at an end of the index is looked at when the model is solved.
                continue
            except TypeError as error:
                refuse_lookup(error, name, point)
                if not isinstance(error, NumbersNeededError) and "has no callable" not in str(error):
                    raise
                raise DeclarationError(f"SemiInfiniteConstraint '{name}': {reason_of(error)}.") from error
            skips.append(relation is Constraint.Skip)
            if not skips[-1]:
                checked_relation(relation, name)
        if len(set(skips)) > 1:
            raise DeclarationError(
                f"SemiInfiniteConstraint '{name}': its rule returns Constraint.Skip at some points of the index and a "
                "row at others; say where the row holds by where=..."
            )
        return bool(skips) and skips[0]

    def points_tried(self, count: int) -> FloatArray:
        """Points spread over the index."""
        columns = []
        for each in self.continuous_sets:
            if is_uncertainty_set(each):
                cloud = body_of(each, f"SemiInfiniteConstraint '{self.name}'").cloud(count)
                columns.append(cloud[np.arange(count) % len(cloud)])
            else:
                columns.append(np.array([[some_number(each, k / (count - 1))] for k in range(count)]))
        return np.concatenate(columns, axis=1)

    def _trial_points(self) -> list[tuple[float, ...]]:
        """A few points of the index; the first ones are not special."""
        columns: list[list[tuple[float, ...]]] = []
        for each in self.continuous_sets:
            if is_uncertainty_set(each):
                body = body_of(each, f"SemiInfiniteConstraint '{self.name}'")
                cloud = body.cloud(2 * len(_TRIED))
                columns.append([tuple(map(float, cloud[-1 - k % len(cloud)])) for k in range(len(_TRIED))])
            else:
                columns.append([(some_number(each, share),) for share in _TRIED])
        return [tuple(number for part in row for number in part) for row in zip(*columns, strict=True)]

    def _check_bounds(self, each: Any) -> None:
        low, high = each.bounds()
        if low is not None and high is not None and not low < high:
            raise DeclarationError(
                f"SemiInfiniteConstraint '{self.name}': the index '{each.name}' has the bounds [{low}, {high}], which "
                "hold no interval; the lower bound must be below the upper one."
            )

    def _refuse_idle_index(self, appearing: set[int]) -> None:
        if not len(self) or self.where is not None or self._holds_functions():
            return
        for place in self._layout:
            if place is None:
                continue
            # Rows may use some entries of a vector that is shared by all of them.
            mine = self.placeholders[place] if isinstance(place, slice) else (self.placeholders[place],)
            if not any(id(placeholder) in appearing for placeholder in mine):
                name = mine[0].name if not isinstance(place, slice) else vector_text([each.name for each in mine])
                raise DeclarationError(
                    f"SemiInfiniteConstraint '{self.name}': the index '{name}' appears nowhere in the row, "
                    "so the row is the same at every point; use it, or leave it out of the declaration."
                )

    def _holds_functions(self) -> bool:
        """Whether a decision that is a function stands in its rows; it may be one that sees nothing of the index."""
        found = (leaf for family in self.values() if family.trace is not None for leaf in leaves(family.trace))
        return any(getattr(leaf.parent_block(), "holds_functions", False) for leaf in found if leaf.is_variable_type())

    def _warn_of_sampling(self) -> None:
        sampled = [family for family in self.values() if family.route == "sampled"]
        if sampled and not self.sample:
            warn_user(
                f"SemiInfiniteConstraint '{self.name}': its rule cannot be traced ({sampled[0].reason}); it is called "
                "at each point instead, which is slower. Write it with Pyomo functions of the index (Expr_if for if), "
                "or declare sample=True.",
                SamplingWarning,
            )

    def index_names(self) -> list[str]:
        """Names of the continuous coordinates, as the user wrote them."""
        names: list[str] = []
        anonymous = ComponentSet(self._anonymous_sets or ())
        for number, (each, argument) in enumerate(zip(self.continuous_sets, self._argument_names(), strict=True)):
            labels = labels_of(each)
            if labels is not None:
                names += labels
                continue
            if is_uncertainty_set(each):
                name = argument if f"{argument}[0]" not in names else f"{argument}_{number + 1}"
                names += [f"{name}[{k}]" for k in range(each.dim)]
                continue
            unnamed = each in anonymous or each.parent_block() is None
            name = f"u{number + 1}" if unnamed else each.local_name
            names.append(name if name not in names else f"{name}_{number + 1}")
        return names

    def _argument_names(self) -> list[str]:
        """What the rule calls each of its continuous arguments; "xi" where that cannot be told."""
        try:
            parameters = list(inspect.signature(self.user_rule).parameters.values())[1:]
        except (TypeError, ValueError):
            parameters = []
        plain = all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
        names, position = [], 0
        ordinary = list(single_sets([self.index_set()])) if self.is_indexed() else []
        for place in self._layout:
            if place is None:
                size = ordinary.pop(0).dimen
                plain = plain and isinstance(size, int)
                position += size if isinstance(size, int) else 1
                continue
            names.append(parameters[position].name if plain and position < len(parameters) else "xi")
            position += 1
        return names

    def index_text(self) -> str:
        """The continuous index in words: ``u in [0, 1]``."""
        text = ", ".join(f"{name} in {values}" if values else name for name, values in self.index_parts())
        return text if self.where is None else f"{text} where {self.where_text()}"

    def where_text(self) -> str:
        """The name of the condition ``where=``."""
        return _function_name(self.where) if self.where is not None else ""

    def index_parts(self) -> list[tuple[str, str]]:
        """Name and values of each continuous set: ``("u", "[0, 1]")``; no values before it is constructed."""
        parts = []
        names = iter(self.index_names())
        for each in self.continuous_sets:
            if is_uncertainty_set(each):
                name = vector_text([next(names) for _ in range(each.dim)])
                parts.append((name, f"{type(each).__name__} of dimension {each.dim}"))
                continue
            name = next(names)
            if not each.is_constructed():
                parts.append((name, ""))
                continue
            low, high = each.bounds()
            left = "(-inf" if low is None else f"[{low:g}"
            right = "inf)" if high is None else f"{high:g}]"
            parts.append((name, f"{left}, {right}"))
        return parts

    def add(self, index: Any, expr: Any) -> Any:
        """Refused: a family comes from its rule only."""
        raise DeclarationError(
            f"SemiInfiniteConstraint '{self.name}': families cannot be added one by one; declare it anew with a rule."
        )

    def _setitem_when_not_present(self, index: Any, value: Any = None) -> Any:
        return self.add(index, value)

    def _getitem_when_not_present(self, index: Any) -> Any:
        raise KeyError(
            f"SemiInfiniteConstraint '{self.name}' has no member {index!r}; the row of a member at a point is "
            f"{self.name}[member].at(point)"
        )

    def __repr__(self) -> str:
        if not self._constructed:
            return f"{self.name}: not constructed yet"
        families = list(self.values())
        if not families:
            return f"{self.name}: no rows"
        lines = [family.line_text() for family in (families if len(families) <= 4 else families[:3])]
        if len(families) > 4:
            lines.append(f"... and {len(families) - 3} more, {len(families)} families in all")
        return "\n".join(lines)

    __str__ = __repr__

    def to_latex(self) -> str:
        """All its families in LaTeX, without dollars."""
        return constraint_latex(self, list(self.values()))

    def _repr_latex_(self) -> str | None:
        return f"$\\displaystyle {self.to_latex()}$" if len(self) else None

    def _repr_html_(self) -> str | None:
        return constraint_card(self, list(self.values())) if len(self) else None

    def _pprint(self) -> Any:
        headers = [
            ("Size", len(self)),
            ("Index", self._index_set if self.is_indexed() else None),
            ("For all", self.index_text()),
            ("Active", self.active),
        ]
        # Evaluated once: where there is least room, as far as the variables have values.
        worst = tell("worst rows", self)
        columns = ("Row", "Route", "Active", *(WORST if worst else ()))

        def entries(index: Any, family: Any) -> list[Any]:
            found = worst.get(index, ("",) * len(WORST)) if worst else ()
            return [family.row_text(), family.route, family.active, *found]

        return headers, lambda sort: itertools.islice(self.items(sort), _PRINTED), columns, entries

    def display(self, prefix: str = "", ostream: Any = None) -> None:
        """Print the constraint as mathematics, and body, limits and slack at the point with least room.

        They are those of the values that the variables have now; without values the rows alone are printed.
        """
        if not self.active:
            return
        out = ostream or sys.stdout
        for line in repr(self).splitlines():
            whole = textwrap.fill(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
            out.write(textwrap.indent(f"{whole}\n", prefix))
        worst = tell("worst rows", self)
        if worst:
            out.write(f"{prefix}  least slack, at the values of the variables:\n")
            tabular_writer(out, f"{prefix}    ", worst.items(), WORST, lambda _, found: found)


class ScalarSemiInfiniteConstraint(SemiInfiniteConstraintData, SemiInfiniteConstraint):
    """A SemiInfiniteConstraint over continuous sets only: one family."""

    def __init__(self, *args: Any, **kwds: Any) -> None:
        SemiInfiniteConstraintData.__init__(self, component=self)
        SemiInfiniteConstraint.__init__(self, *args, **kwds)
        self._index = UnindexedComponent_index

    __repr__ = SemiInfiniteConstraint.__repr__
    __str__ = SemiInfiniteConstraint.__repr__
    # A scalar one may be skipped, or not be constructed yet.
    to_latex = SemiInfiniteConstraint.to_latex
    _repr_latex_ = SemiInfiniteConstraint._repr_latex_
    _repr_html_ = SemiInfiniteConstraint._repr_html_

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except KeyError:
            raise KeyError(
                f"SemiInfiniteConstraint '{self.name}' is one family of rows and has no members (got {index!r}); its "
                f"row at a point is {self.name}.at(point)"
            ) from None

    def clear(self) -> None:
        """Forget the family."""
        self._data = {}


class IndexedSemiInfiniteConstraint(SemiInfiniteConstraint):
    """A SemiInfiniteConstraint with one family for each member of its ordinary sets."""


def semi_infinite_families(model: Any, active: bool = True) -> Iterator[SemiInfiniteConstraintData]:
    """Yield every active family of a model, blocks included; or every one, deactivated or not."""
    for constraint in model.component_objects(Constraint, active=True if active else None, descend_into=True):
        if isinstance(constraint, SemiInfiniteConstraint):
            yield from (family for family in constraint.values() if family.active or not active)


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Keep what Pyomo logs from the reader.

    Pyomo's own LoggingIntercept sets a level, for which Python forgets what it knows of all loggers, once a family.
    """
    logger = logging.getLogger("pyomo")
    handlers, propagate = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate


def held(number: float) -> Any:
    """A number as a Param, which all of Pyomo's functions take."""
    param = Param(mutable=True, initialize=number)
    param.construct()
    return param


def _function_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "declared" if name == "<lambda>" else name
