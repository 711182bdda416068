"""What decisions that react do at draws of the uncertain vector: each rule, the cost, and what rows are violated by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo._frames import as_pandas
from osilp_pyomo.errors import DataError, ModelError, OptionError
from osilp_pyomo.index.curves.spaces import FunctionSpace, VectorFunctions
from osilp_pyomo.lp.finite import FiniteLP, excess_of, violation_scale
from osilp_pyomo.offline.functions.values import vectors_of
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.rows import AffineRows

#: Columns of a simulation beside the decisions.
COST, VIOLATION = "cost", "violation"


@dataclass(frozen=True, eq=False)
class FunctionColumns:
    """One decision that is a function: the columns of its coefficients, or -1 and the number where one is fixed."""

    name: str
    space: FunctionSpace
    columns: IntArray
    numbers: FloatArray

    def values(self, x: FloatArray) -> FloatArray:
        """Its coefficients at an answer."""
        return np.where(self.columns >= 0, x[self.columns], self.numbers)


@dataclass(frozen=True, eq=False)
class Recourse:
    """The decisions and rows of a problem that depend on an uncertain vector.

    Where entries are ``labelled`` an entry of one vector is the same number as that of another of its name.
    """

    functions: tuple[FunctionColumns, ...]
    families: tuple[Family, ...]
    core: FiniteLP
    labelled: bool = False

    def simulate(
        self, x: FloatArray, draws: Any, what: str = "result.simulate", unknown: BoolArray | None = None
    ) -> pd.DataFrame:
        """Decisions, cost and largest relative violation at each draw of the vector.

        Variables that are ``unknown`` must be those that stand for a worst case: the cost says what they are.
        """
        draws = as_pandas(draws)
        frame = draws if isinstance(draws, pd.DataFrame) else pd.DataFrame(_as_matrix(draws, what))
        drawn = self._drawn(frame, what)
        families = [family for family in self.families if drawn.has(family.domain.names)]
        columns: dict[Any, Any] = {
            each.name: each.space.evaluate(drawn.of(each.space.coordinates)) @ each.values(x)
            for each in self.functions
            if isinstance(each.space, VectorFunctions) and drawn.has(each.space.coordinates)
        }
        own = np.zeros(self.core.columns, dtype=bool)
        for each in self.functions:
            own[each.columns[each.columns >= 0]] = True
        cost, replaced = self._cost(x, drawn, families)
        if unknown is not None and np.any(unknown & ~replaced):
            column = int(np.flatnonzero(unknown & ~replaced)[0])
            raise ModelError(f"{what}: it has no value for '{self.core.column_names[column]}'.")
        for column in np.flatnonzero(~own & ~replaced).tolist():
            columns[self.core.column_names[column]] = np.full(len(frame), x[column])
        columns[COST] = cost
        moved = [family for family in families if np.any(replaced[family.rows.columns])]
        columns[VIOLATION] = self._violation(x, drawn, [family for family in families if family not in moved])
        return pd.DataFrame(columns, index=frame.index)

    def entries(self, draws: Any) -> set[Any]:
        """The entries of its vectors that a frame of draws has as columns; none of an array."""
        draws = as_pandas(draws)
        spaces = [each.space.coordinates for each in self.functions if isinstance(each.space, VectorFunctions)]
        names = {name for known in [*spaces, *(family.domain.names for family in self.families)] for name in known}
        return names & set(draws.columns) if isinstance(draws, pd.DataFrame) else set()

    def rules(self, x: FloatArray) -> dict[str, pd.Series]:
        """The coefficients of each decision that is a function, by the functions that they multiply."""
        return {
            each.name: pd.Series(each.values(x), index=pd.Index(each.space.labels, tupleize_cols=False))
            for each in self.functions
        }

    def holding(self, values: pd.Series, rules: Mapping[str, pd.Series]) -> tuple[FloatArray, BoolArray]:
        """Its variables at the decisions of another model that has the same ones, and which of them that does not have.

        A decision that is a number there and a rule here is a constant rule; a rule there must be among the functions
        that the rule here is made of.
        """
        names = pd.Index(self.core.column_names)
        x = values.reindex(names).to_numpy(dtype=float, copy=True)
        for each in self.functions:
            if each.name in rules:
                given = rules[each.name]
            elif each.name in values.index:
                given = pd.Series({"1": values[each.name]})
            else:
                continue
            if not set(given.index) <= set(each.space.labels):
                left = next(label for label in given.index if label not in each.space.labels)
                raise ModelError(
                    f"the rule of '{each.name}' uses {left}, which the rule of the rows does not; take the rows of the "
                    "plan with the richest rules by rows=."
                )
            found = given.reindex(pd.Index(each.space.labels, tupleize_cols=False)).fillna(0.0).to_numpy()
            held = each.columns >= 0
            if np.any(found[~held] != each.numbers[~held]):
                raise ModelError(f"the rule of '{each.name}' has coefficients that are fixed to other numbers.")
            x[each.columns[held]] = found[held]
        return np.nan_to_num(x), np.isnan(x)

    def _drawn(self, frame: pd.DataFrame, what: str) -> _Drawn:
        """The numbers of each vector in a frame: of one of them, or, where entries are labelled, of all."""
        if not self.labelled:
            names = self._coordinates(len(frame.columns), what)
            return _Drawn(vectors_of(frame, names, what), None)
        spaces = [each.space.coordinates for each in self.functions if isinstance(each.space, VectorFunctions)]
        known = [tuple(names) for names in [*spaces, *(family.domain.names for family in self.families)]]
        names = tuple(dict.fromkeys(name for each in known for name in each))
        whole = max(known, key=len)
        if not set(names) <= set(frame.columns) and len(whole) < len(names):
            raise DataError(
                f"{what}: the uncertain data are {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}, and the "
                "draws have other columns; give a frame with a column for each of them."
            )
        names = whole if len(whole) == len(names) else names
        return _Drawn(vectors_of(frame, names, what), {name: place for place, name in enumerate(names)})

    def _coordinates(self, count: int, what: str) -> Sequence[str]:
        """What the entries of the vector are called: of the rules over it, else of the rows."""
        known = {each.space.dimension: each.space.coordinates for each in reversed(self.functions)
                 if isinstance(each.space, VectorFunctions)}  # fmt: skip
        known = {family.domain.dimension: family.domain.names for family in reversed(self.families)} | known
        if not known:
            raise OptionError(
                f"{what}: the model has no rows over an uncertainty set, so that there is nothing to draw."
            )
        if len(known) == 1:
            return next(iter(known.values()))
        if count not in known:
            raise DataError(
                f"{what}: the model has uncertain vectors of the dimensions {', '.join(map(str, sorted(known)))}, and "
                f"the draws have {count} entries; give one column for each entry of one of them."
            )
        return known[count]

    def _cost(self, x: FloatArray, drawn: _Drawn, families: Sequence[Family]) -> tuple[FloatArray, Any]:
        """The objective at each draw, and which variables it moves.

        The variable that stands for a worst case takes the best value that the rows of the draw allow: the only one of
        those with a cost that has no bound on the side where it would be best. (A decision has one: what is bought is
        not negative, and is paid whether it is needed or not.) Only rows over the vector hold it, each with a
        coefficient that does not depend on the vector.
        """
        cost = np.full(len(drawn.vectors), self.core.value(x))
        replaced = np.zeros(self.core.columns, dtype=bool)
        sign = -1.0 if self.core.maximize else 1.0
        costed = np.flatnonzero(self.core.cost)
        best_at = np.where(sign * self.core.cost > 0, self.core.column_lower, self.core.column_upper)
        rules = np.concatenate([np.empty(0, dtype=np.int64), *(each.columns for each in self.functions)])
        costed = costed[np.isinf(best_at[costed]) & ~np.isin(costed, rules)]
        if len(costed) != 1 or self.core.matrix[:, costed].nnz:
            return cost, replaced
        column = int(costed[0])
        best = self._epigraph(column, sign * self.core.cost[column] > 0, x, drawn, families)
        if best is not None:
            cost += self.core.cost[column] * (best - x[column])
            replaced[column] = True
        return cost, replaced

    def _epigraph(
        self, column: int, low: bool, x: FloatArray, drawn: _Drawn, families: Sequence[Family]
    ) -> FloatArray | None:
        """The least (or largest) value of a variable that the rows of each draw allow; None where it is no such one."""
        count = len(drawn.vectors)
        bound = np.full(count, self.core.column_lower[column] if low else self.core.column_upper[column])
        bounding = False
        for family in self.families:
            place = np.flatnonzero(family.rows.columns == column)
            if not len(place):
                continue
            if family not in families:
                return None
            vectors = drawn.of(family.domain.names)
            factor = _steady_coefficient(family, column, vectors)
            if factor is None:
                return None
            if factor == 0:
                continue
            rest = family.activity(vectors, x) - factor * x[column]
            lower, upper = family.limits(vectors)
            limit = lower if (factor > 0) == low else upper
            if np.all(np.isfinite(limit)):
                wanted = (limit - rest) / factor
                bound = np.maximum(bound, wanted) if low else np.minimum(bound, wanted)
                bounding = True
        return bound if bounding else None

    def _violation(self, x: FloatArray, drawn: _Drawn, families: Sequence[Family]) -> FloatArray:
        """The largest violation of a row at each draw, by the size of the row there."""
        worst = np.zeros(len(drawn.vectors))
        for family in families:
            vectors = drawn.of(family.domain.names)
            activity, size = family.activity_and_size(vectors, x)
            lower, upper = family.limits(vectors)
            worst = np.maximum(worst, excess_of(activity, lower, upper) / violation_scale(activity, size, lower, upper))
        return worst


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Draws of one vector, or of labelled entries, of which each vector takes its own."""

    vectors: FloatArray
    places: Mapping[str, int] | None

    def has(self, names: Sequence[str]) -> bool:
        """Whether there are draws of a vector whose entries have these names."""
        if self.places is None:
            return len(names) == self.vectors.shape[1]
        return all(name in self.places for name in names)

    def of(self, names: Sequence[str]) -> FloatArray:
        """The draws of such a vector."""
        return self.vectors if self.places is None else self.vectors[:, [self.places[name] for name in names]]


def _steady_coefficient(family: Family, column: int, vectors: FloatArray) -> float | None:
    """The coefficient of a variable where it is the same at all vectors; None where it is not."""
    if isinstance(family.rows, AffineRows):
        place = np.flatnonzero(family.rows.columns == column)
        return None if np.any(family.rows.matrix[1:, place]) else float(family.rows.matrix[0, place[0]])
    found = np.zeros(len(vectors))
    for columns, at, block in family.blocks(vectors):
        found[at] += block[np.flatnonzero(np.asarray(columns) == column)].sum(axis=0)
    return float(found[0]) if len(found) and np.all(found == found[0]) else None


def _as_matrix(draws: Any, what: str) -> FloatArray:
    try:
        array = np.asarray(draws, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: draws must be a frame or an array with one vector per row ({error}).") from None
    if array.ndim != 2:
        raise DataError(f"{what}: draws must have one vector per row (got an array of shape {array.shape}).")
    return array
