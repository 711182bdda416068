"""A stage as data: what any arrival brings, may decide, earns and uses.

All stages of an online program have one form, filled with other data theta_t::

    earn   sum_k f_k(theta) h_k(x, theta)
    use    sum_k a_k(u, theta) h_k(x, theta)   of a resource at every point u of an index,
           sum_k a_k(theta) h_k(x, theta)      of an ordinary resource,
    with   lower(theta) <= x <= upper(theta)   and the stage's own rows.

The first functions h_k are the decisions themselves, so a linear stage has no others. Only the a_k depend on u:
evaluating and projecting them is one vectorised pass over arrivals and points, whatever x will be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.formula import CompiledKernel, Formula
from osilp_pyomo.offline.rows import Kernel, TermGroup, TracedRows

# The function of a term that does not depend on the decision.
CONSTANT = -1


@dataclass(frozen=True)
class Label:
    """A name of the user's model: a component and, where it has more indices than the stage, the rest of them."""

    name: str
    key: tuple[Any, ...] = ()

    @property
    def column(self) -> Any:
        """How it is called in a frame: the name, or a tuple that begins with it."""
        return (self.name, *self.key) if self.key else self.name

    def __str__(self) -> str:
        return f"{self.name}[{','.join(map(str, self.key))}]" if self.key else self.name


@dataclass(frozen=True)
class Interval:
    """Numbers from low to high, with or without its ends; every ``step``-th only, where that is not zero."""

    low: float = -np.inf
    high: float = np.inf
    with_low: bool = True
    with_high: bool = True
    step: float = 0.0

    def holds(self, values: FloatArray) -> Any:
        """Which of the values lie in it."""
        above = values >= self.low if self.with_low else values > self.low
        below = values <= self.high if self.with_high else values < self.high
        if self.step == 0:
            return above & below
        start = self.low if np.isfinite(self.low) else self.high if np.isfinite(self.high) else 0.0
        steps = (values - start) / self.step
        return above & below & (steps == np.round(steps))

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:g}"
        left = f"[{self.low:g}" if self.with_low and np.isfinite(self.low) else f"({self.low:g}"
        right = f"{self.high:g}]" if self.with_high and np.isfinite(self.high) else f"{self.high:g})"
        kind = "" if self.step == 0 else "whole numbers in " if self.step == 1 else f"steps of {self.step:g} in "
        return f"{kind}{left}, {right}"


@dataclass(frozen=True)
class Allowed:
    """Which numbers a Param may hold, from its ``within=``."""

    intervals: tuple[Interval, ...] = (Interval(),)

    @property
    def lower(self) -> float:
        """The least of them."""
        return min((each.low for each in self.intervals), default=-np.inf)

    @property
    def upper(self) -> float:
        """The largest of them."""
        return max((each.high for each in self.intervals), default=np.inf)

    def bad(self, values: FloatArray) -> Any:
        """Which of the values are not allowed."""
        wrong = np.ones(np.shape(values), dtype=bool)
        for each in self.intervals:
            wrong &= ~each.holds(values)
        return wrong

    def __str__(self) -> str:
        if all(each.low == each.high for each in self.intervals):
            return f"{{{', '.join(map(str, self.intervals))}}}"
        return " or ".join(map(str, self.intervals))


#: Any finite number.
ANYTHING = Allowed()


@dataclass(frozen=True, eq=False)
class CurveForm:
    """How values of a Profile are read when they come as an array: at these knots."""

    knots: tuple[FloatArray, ...] | None
    kind: str
    outside: str
    dimension: int


@dataclass(frozen=True, eq=False)
class Field:
    """One piece of an arrival's data: a number, or a curve over the index.

    A hidden field holds constants that differ between the stages of the model without being a mutable Param; no one
    could give them for a new arrival. ``row`` then says where they stand. ``place`` is where it stands ``among`` the
    members of its component, in the order of the Set.
    """

    label: Label
    default: float | None = None
    allowed: Allowed = ANYTHING
    curve: CurveForm | None = None
    hidden: bool = False
    row: str = ""
    place: int = 0
    among: int = 1


class Arrivals:
    """Data of some arrivals: for each field an array (B,) or a stack of B curves, and what they are called.

    ``times`` (B,) says when they come, where that matters.
    """

    __slots__ = ("_count", "index", "times", "values")

    def __init__(self, values: tuple[Any, ...], index: pd.Index, times: FloatArray | None = None) -> None:
        self.values = values
        self.index = index
        self.times = times
        # Asked for dozens of times a step, and slow to ask of pandas.
        self._count = len(index)

    @classmethod
    def single(cls, values: tuple[Any, ...], index: pd.Index) -> Arrivals:
        """One arrival, without asking its index how long it is."""
        made = cls.__new__(cls)
        made.values, made.index, made.times, made._count = values, index, None, 1
        return made

    def __len__(self) -> int:
        return self._count

    def name(self, place: int) -> Any:
        """What one of them is called, as the user would write it."""
        name = self.index[place]
        return name.item() if isinstance(name, np.generic) else name

    def part(self, at: slice) -> Arrivals:
        """Some of the arrivals."""
        times = None if self.times is None else self.times[at]
        return Arrivals(tuple(value[at] for value in self.values), self.index[at], times)

    def at(self, times: FloatArray) -> Arrivals:
        """The same arrivals, which come at some times."""
        return Arrivals(self.values, self.index, times)

    def take(self, places: Any) -> Arrivals:
        """Arrivals at some places, in that order and as often as a place comes; they are called 1, 2, ..."""
        values = tuple(value.take(places) if isinstance(value, CurveStack) else value[places] for value in self.values)
        return Arrivals(values, pd.RangeIndex(1, len(places) + 1))

    def filled(self, slots: Sequence[int | CurveStack]) -> list[Any]:
        """What fills the slots of a formula: numbers (B, 1) of fields, and curves as they are."""
        given = [self.values[slot] if isinstance(slot, int) else slot for slot in slots]
        return [value[:, None] if isinstance(value, np.ndarray) else value for value in given]

    def identities(self) -> FloatArray:
        """Numbers (B, fields) that are the same, row by row, for arrivals with the same data and for no others."""
        columns = []
        for value in self.values:
            if isinstance(value, CurveStack):
                numbers: dict[Any, int] = {}
                columns.append([float(numbers.setdefault(each, len(numbers))) for each in value.identities()])
            else:
                columns.append(value)
        return np.array(columns, dtype=float).T if columns else np.zeros((len(self), 0))


@dataclass(frozen=True, eq=False)
class Term:
    """A summand a(u, theta) h(x, theta) of a row: the kernel of a, the data of its slots, the number of h."""

    function: int
    kernel: Kernel
    slots: tuple[int | CurveStack, ...]
    switches: tuple[Kernel, ...] = ()
    formula: Formula | None = None

    def values(self, arrivals: Arrivals, coordinates: Sequence[FloatArray]) -> Any:
        """Its coefficient a for each arrival, something that broadcasts to (B, m)."""
        return self.kernel(arrivals.filled(self.slots), coordinates)

    def of_one(self, arrivals: Arrivals, coordinates: Sequence[FloatArray]) -> Any:
        """Its coefficient for a single arrival whose data are numbers, something that broadcasts to (m,)."""
        values, kernel = arrivals.values, self.kernel
        # Without the object around the function.
        function = kernel.function if isinstance(kernel, CompiledKernel) else kernel
        return function([values[slot] for slot in self.slots], coordinates)  # type: ignore[index]

    def group(
        self, arrivals: Arrivals, columns: Any, parameters: tuple[str | None, ...] = (), variables: tuple[str, ...] = ()
    ) -> TermGroup:
        """The same term as a group of columns of an LP."""
        slots = tuple(
            arrivals.values[slot] if isinstance(slot, int) else slot.repeated(len(arrivals)) for slot in self.slots
        )
        return TermGroup(self.kernel, slots, columns, parameters, variables, self.switches, self.formula)


@dataclass(frozen=True, eq=False)
class StageFunction:
    """A function h(x, theta) of the decision: its text, its kernel on the decisions, and what it depends on.

    ``derivatives`` maps an axis to the source of (h, h', h'') along it; none for a bare decision.
    """

    text: str
    kernel: Kernel | None
    slots: tuple[int, ...]
    axes: tuple[int, ...]
    formula: Formula | None = None


@dataclass(frozen=True, eq=False)
class MixedTerm:
    """A term g(u, x, theta) that cannot be taken apart into functions of u times functions of x."""

    text: str
    formula: Formula
    kernel: Kernel
    slots: tuple[int | CurveStack, ...]


@dataclass(frozen=True, eq=False)
class StageFamily:
    """A semi-infinite row that every arrival uses; ``limits`` gives its right-hand sides, totals of the horizon.

    ``component`` is the SemiInfiniteConstraint that it is one family of.
    """

    name: str
    domain: Domain
    terms: tuple[Term, ...]
    limits: TracedRows
    mixed: tuple[MixedTerm, ...] = ()
    component: str = ""

    @property
    def sides(self) -> tuple[int, ...]:
        """1 for an upper limit, -1 for a lower one."""
        return tuple(sign for sign, limit in ((1, self.limits.upper), (-1, self.limits.lower)) if limit is not None)


@dataclass(frozen=True, eq=False)
class StageRow:
    """An ordinary row that every arrival uses, with limits for the whole horizon."""

    name: str
    terms: tuple[Term, ...]
    lower: float | None
    upper: float | None

    @property
    def equality(self) -> bool:
        """Whether it holds with ``==``."""
        return self.lower is not None and self.lower == self.upper


@dataclass(frozen=True, eq=False)
class OwnRow:
    """A row of one stage alone, a part of X: the sum of its terms is <= 0, or == 0."""

    name: str
    terms: tuple[Term, ...]
    equality: bool


@dataclass(frozen=True, eq=False)
class StageTemplate:
    """The form that all stages share."""

    maximize: bool
    decisions: tuple[Label, ...]
    integer: Any  # (n,) bool
    fields: tuple[Field, ...]
    functions: tuple[StageFunction, ...]
    objective: tuple[Term, ...]
    offset: float
    families: tuple[StageFamily, ...]
    rows: tuple[StageRow, ...]
    own_rows: tuple[OwnRow, ...]
    lower: tuple[tuple[Term, ...] | None, ...]
    upper: tuple[tuple[Term, ...] | None, ...]
    texts: dict[str, str]
    # How the model and its objective are called; nothing depends on it.
    model: str = ""
    goal: str = ""

    @property
    def linear(self) -> bool:
        """Whether f, g and the stage's own rows are linear in the decision."""
        return len(self.functions) == len(self.decisions) and not any(family.mixed for family in self.families)

    @property
    def options(self) -> bool:
        """Whether a stage chooses at most one of several options: 0 <= x <= 1 and one row sum(x) <= 1."""
        return self.chooses_one and not self.own_rows[0].equality

    @property
    def must_choose(self) -> bool:
        """Whether a stage chooses exactly one of several options: 0 <= x <= 1 and one row sum(x) == 1."""
        return self.chooses_one and self.own_rows[0].equality

    @cached_property
    def chooses_one(self) -> bool:
        """Whether a stage chooses one of several options, or perhaps none."""
        if len(self.own_rows) != 1 or not self.linear or len(self.decisions) < 2:
            return False
        (row,) = self.own_rows
        if any(term.slots for term in row.terms):
            return False
        found: dict[int, float] = {}
        for term in row.terms:
            found[term.function] = found.get(term.function, 0.0) + (_constant((term,)) or 0.0)
        one_of_all = {**dict.fromkeys(range(len(self.decisions)), 1.0), CONSTANT: -1.0}
        turned = {function: -value for function, value in found.items()}
        if found != one_of_all and not (row.equality and turned == one_of_all):
            return False
        lower = [_constant(terms) for terms in self.lower]
        upper = [np.inf if terms is None else _constant(terms) for terms in self.upper]
        return all(low == 0 for low in lower) and all(high is not None and high >= 1 for high in upper)

    @property
    def indices(self) -> dict[str, tuple[str, ...]]:
        """For each family the names of its index."""
        return {family.name: family.domain.names for family in self.families}

    def decision_frame(self, decisions: FloatArray, index: pd.Index) -> pd.DataFrame:
        """Decisions under the user's names, one row an arrival."""
        frame = pd.DataFrame(decisions, index=index)
        frame.columns = pd.Index([label.column for label in self.decisions], tupleize_cols=False)
        return frame

    def data_names(self, term: Term) -> tuple[str | None, ...]:
        """How the numbers in a term's slots are called; None for curves and hidden constants."""
        names: list[str | None] = []
        for slot in term.slots:
            field = None if isinstance(slot, CurveStack) else self.fields[slot]
            named = field is not None and not field.hidden and field.curve is None
            names.append(str(field.label) if field is not None and named else None)
        return tuple(names)

    @cached_property
    def hidden(self) -> Field | None:
        """A field that no one could give for a new arrival."""
        return next((field for field in self.fields if field.hidden), None)

    def rescaled(self, share: float) -> StageTemplate:
        """The same stages with all limits of the horizon multiplied."""
        families = tuple(
            replace(
                family,
                limits=TracedRows((), *(_scaled(side, share) for side in (family.limits.lower, family.limits.upper))),
            )
            for family in self.families
        )
        rows = tuple(
            replace(
                row,
                lower=None if row.lower is None else share * row.lower,
                upper=None if row.upper is None else share * row.upper,
            )
            for row in self.rows
        )
        texts = {
            name: f"{share:g}*({text})" if text and " limit " in name and share != 1 else text
            for name, text in self.texts.items()
        }
        return replace(self, families=families, rows=rows, texts=texts)

    def numbers(self, terms: Sequence[Term], arrivals: Arrivals) -> tuple[FloatArray, FloatArray]:
        """Coefficients (B, K) of the functions, and the constants (B,), of a row without index."""
        count = len(arrivals)
        result, constants = np.zeros((count, len(self.functions))), np.zeros(count)
        for term in terms:
            values = np.asarray(term.values(arrivals, ()), dtype=float).reshape(-1)
            if term.function == CONSTANT:
                constants += values
            else:
                result[:, term.function] += values
        return result, constants

    def limits(self, sides: Sequence[tuple[Term, ...] | None], none: float, arrivals: Arrivals) -> FloatArray:
        """Bounds of the decisions (B, n)."""
        result = np.full((len(arrivals), len(sides)), none)
        for j, terms in enumerate(sides):
            if terms is not None:
                result[:, j] = self.numbers(terms, arrivals)[1]
        return result

    def on_points(
        self, family: StageFamily, arrivals: Arrivals, points: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Use of a family at points: coefficients (B, K, M) of the functions, and constants (B, M) or None."""
        count, coordinates = len(arrivals), [points[None, :, axis] for axis in range(points.shape[1])]
        shape = (count, len(points))
        result: FloatArray | None = None
        constants: FloatArray | None = None
        # Several functions of the decision often share one coefficient, as in a(u) (x + x^2).
        known: dict[Any, Any] = {}
        written: set[int] = set()
        with np.errstate(all="ignore"):
            for term in family.terms:
                key = (term.kernel, term.slots)
                values = known[key] if key in known else term.values(arrivals, coordinates)
                known[key] = values
                if term.function == CONSTANT:
                    constants = np.broadcast_to(values, shape) + (0.0 if constants is None else constants)
                elif len(family.terms) == 1 and len(self.functions) == 1 and np.shape(values) == shape:
                    # Nothing will be added to it, for it may be the data of a curve themselves.
                    result = np.asarray(values, dtype=float)[:, None, :]
                else:
                    if result is None:
                        result = np.zeros((count, len(self.functions), len(points)))
                    if term.function in written:
                        result[:, term.function] += values
                    else:
                        result[:, term.function] = values
                        written.add(term.function)
        if result is None:
            result = np.zeros((count, len(self.functions), len(points)))
        self._refuse_infinite(family, result, arrivals, points)
        if constants is not None:
            self._refuse_infinite(family, constants[:, None], arrivals, points)
        return result, constants

    def _refuse_infinite(self, family: StageFamily, values: FloatArray, arrivals: Arrivals, points: FloatArray) -> None:
        # As dot products, that need no array of their own and warn of nothing.
        if math.isfinite(np.vdot(values, values)):
            return
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            arrival, function, point = bad[0]
            raise DataError(
                f"SemiInfiniteConstraint '{family.name}': the coefficient of {self.functions[function].text} is "
                f"{values[arrival, function, point]} at {family.domain.describe(points[point])} for the arrival "
                f"{arrivals.name(arrival)!r}; keep the row finite for its data."
            )

    def values(self, arrivals: Arrivals, x: FloatArray) -> FloatArray:
        """The functions h (B, K) at decisions x (B, n); a hair beside an end where they have no value there."""
        if len(self.functions) == len(self.decisions):
            return x
        result = self._values(arrivals, x)
        for nudge in (1e-12, -1e-12):
            if np.isnan(result).any():
                result = np.where(np.isnan(result), self._values(arrivals, x + nudge * (1 + np.abs(x))), result)
        return result

    def _values(self, arrivals: Arrivals, x: FloatArray) -> FloatArray:
        columns = [x[:, j] for j in range(x.shape[1])]
        result = np.empty((len(x), len(self.functions)))
        with np.errstate(all="ignore"):
            for k, function in enumerate(self.functions):
                result[:, k] = (
                    columns[k]
                    if function.kernel is None
                    else function.kernel([arrivals.values[slot] for slot in function.slots], columns)
                )
        return result


def _constant(terms: Sequence[Term] | None) -> float | None:
    """The number that terms without data add up to; None where they have data."""
    if terms is None or any(term.slots for term in terms):
        return None
    return float(sum(np.asarray(term.kernel((), ())) for term in terms))


@dataclass(frozen=True)
class Multiplied:
    """A kernel times the number in one further slot, the last one, as :meth:`Formula.weighted` is of a formula."""

    kernel: Kernel

    def __call__(self, slots: Sequence[Any], coordinates: Sequence[FloatArray]) -> Any:
        return slots[-1] * self.kernel(slots[:-1], coordinates)


def _scaled(groups: tuple[TermGroup, ...] | None, share: float) -> tuple[TermGroup, ...] | None:
    if groups is None:
        return None
    return tuple(
        replace(
            group,
            kernel=Multiplied(group.kernel),
            slots=(*group.slots, np.full(len(group.columns), share)),
            formula=None if group.formula is None else group.formula.weighted(),
        )
        for group in groups
    )
