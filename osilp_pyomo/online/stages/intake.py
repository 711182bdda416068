"""Data of arrivals as it comes: a frame, a row, keywords; named, checked, and in the order of the fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._frames import as_pandas
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.curves.stack import CurveStack, Function, Table
from osilp_pyomo.online.stages.template import ANYTHING, Arrivals, Field

_INFINITE = float("inf")


class Intake:
    """Turns data under the user's names into :class:`Arrivals`."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)
        self.by_name: dict[str, list[int]] = {}
        for number, field in enumerate(self.fields):
            if not field.hidden:
                self.by_name.setdefault(field.label.name, []).append(number)
        for numbers in self.by_name.values():
            numbers.sort(key=lambda number: self.fields[number].place)
        # Most programs have one plain number a name; those are read without detours.
        self._plain = {name: numbers[0] for name, numbers in self.by_name.items() if self._is_plain(numbers)}
        self._all_plain = len(self._plain) == len(self.fields)
        self._one = pd.RangeIndex(1)
        self._simple = [(field.label.name, field.allowed is ANYTHING, field) for field in self.fields]
        self._hidden = next((field for field in self.fields if field.hidden), None)

    def _is_plain(self, numbers: list[int]) -> bool:
        return len(numbers) == 1 and not self.fields[numbers[0]].label.key and self.fields[numbers[0]].curve is None

    @cached_property
    def columns(self) -> dict[str, Any]:
        """What the columns of a file may be called, and what they are: "demand[a]" for the entry a of demand."""
        named: dict[str, Any] = {name: name for name in self.by_name}
        for field in self.fields:
            if not field.hidden:
                named |= {str(field.label.column): field.label.column, str(field.label): field.label.column}
        return named

    def refuse_hidden(self, what: str) -> None:
        """Refuse new arrivals where the model's stages differ in constants that have no name."""
        field = self._hidden
        if field is not None:
            raise DataError(
                f"{what}: {field.row} holds constants that differ between the stages and are no mutable Param, so a "
                "new arrival cannot bring its own; declare them as Param(m.T, mutable=True). The model's own arrivals "
                "can be replayed."
            )

    # -- one arrival -----------------------------------------------------------------------------------

    def row(self, row: Any, theta: Mapping[str, Any]) -> Arrivals:
        """One arrival from a mapping or Series (what is not data is ignored) and from keywords (nothing is)."""
        self.refuse_hidden("step")
        given = self._mapping(row)
        for name in theta:
            if name not in self.by_name:
                raise DataError(f"An arrival has no data '{name}'; its data are {', '.join(self.by_name) or 'none'}.")
        if self._all_plain and given is None:
            return self._plain_row(theta)
        values: list[Any] = [None] * len(self.fields)
        for name, numbers in self.by_name.items():
            for number in numbers:
                values[number] = self._value(self.fields[number], self._content(name, number, theta, given))
        return Arrivals(tuple(values), self._one)

    def _plain_row(self, theta: Mapping[str, Any]) -> Arrivals:
        values = []
        for name, anything, field in self._simple:
            content = theta.get(name)
            if anything and content.__class__ is float and -_INFINITE < content < _INFINITE:
                values.append(np.array([content]))
            else:
                values.append(self._value(field, content))
        return Arrivals.single(tuple(values), self._one)

    def _mapping(self, row: Any) -> Mapping[Any, Any] | None:
        if row is None:
            return None
        if isinstance(row, pd.Series):
            found: dict[Any, Any] = {}
            for key, value in row.items():
                name = _column(key, row.index.nlevels > 1)
                if name in found and self._is_data(name):
                    raise DataError(f"An arrival: the Series has two entries {name!r}; give each once.")
                found[name] = value
            return found
        if isinstance(row, Mapping):
            return row
        if hasattr(row, "_asdict"):
            return dict(row._asdict())
        several = "; steps(frame) decides several" if isinstance(row, pd.DataFrame) else ""
        raise DataError(
            f"An arrival's data must come as keywords, a mapping or a Series (got {type(row).__name__}{several})."
        )

    def _is_data(self, name: Any) -> bool:
        """Whether an entry or a column belongs to the data of an arrival."""
        return name in self.by_name or (isinstance(name, tuple) and name[0] in self.by_name)

    def _content(self, name: str, number: int, theta: Mapping[str, Any], given: Mapping[Any, Any] | None) -> Any:
        """What was given for one field; keywords count for more than a row."""
        field = self.fields[number]
        if name in theta:
            return self._member(theta[name], field) if field.label.key else theta[name]
        if given is None:
            return None
        if field.label.column in given:
            return given[field.label.column]
        whole = given.get(name)
        return None if whole is None else self._member(whole, field) if field.label.key else whole

    def _member(self, whole: Any, field: Field) -> Any:
        """The entry of a Param over more sets than the stages: by key, or by its place in the Set's order."""
        name, key = field.label.name, field.label.key
        if isinstance(whole, Mapping | pd.Series):
            known = [self.fields[number].label.key for number in self.by_name[name]]
            known += [single[0] for single in known if len(single) == 1]
            for entry in whole.keys():  # noqa: SIM118 (the items of a Series are its values)
                if entry not in known and len(self.by_name[name]) == field.among:
                    raise DataError(f"An arrival's '{name}' has no entry {entry!r}; its entries are {_listed(known)}.")
            index = key if len(key) > 1 else key[0]
            return whole.get(index)
        if np.ndim(whole) != 1 or len(whole) != field.among:
            raise DataError(
                f"An arrival's '{name}' must be a mapping by its index, or {field.among} numbers in the order of its "
                f"Set (got {_kind(whole)})."
            )
        return whole[field.place]

    def _value(self, field: Field, content: Any) -> Any:
        if field.curve is not None:
            return CurveStack.of_tables((_curve(field, content, str(field.label)),))
        if content.__class__ is float and field.allowed is ANYTHING and -np.inf < content < np.inf:
            return np.array([content])
        if content is None:
            if field.default is None:
                raise DataError(f"An arrival must bring '{field.label}' (got nothing, and it has no default).")
            content = field.default
        number = _number(content)
        if number is None:
            raise DataError(f"An arrival's '{field.label}' must be one number (got {_kind(content)}).")
        if not -np.inf < number < np.inf:
            raise DataError(f"An arrival's '{field.label}' must be a finite number (got {number}).")
        value = np.array([number])
        if field.allowed is not ANYTHING and field.allowed.bad(value).any():
            raise DataError(f"An arrival's '{field.label}' must lie in {field.allowed} (got {number:g}).")
        return value

    # -- many arrivals ---------------------------------------------------------------------------------

    def frame(self, data: Any, profiles: Mapping[str, Any] | None = None) -> Arrivals:
        """Arrivals from the rows of a frame; curves come beside it, one array (arrivals, points) a Profile."""
        self.refuse_hidden("These arrivals")
        data = as_pandas(data)
        if isinstance(data, Mapping):
            try:
                data = pd.DataFrame(data)
            except ValueError as error:
                raise DataError(f"Arrivals: the mapping is no table ({error}).") from None
        if not isinstance(data, pd.DataFrame):
            lazy = ", which is to be collected first" if hasattr(data, "collect") else ""
            raise DataError(f"Arrivals must come as a DataFrame, one row each (got {type(data).__name__}{lazy}).")
        profiles = {} if profiles is None else profiles
        if not isinstance(profiles, Mapping):
            raise DataError(f"profiles= must be a mapping from a Profile's name (got {type(profiles).__name__}).")
        for name in profiles:
            if name not in self.by_name or not any(self.fields[k].curve for k in self.by_name[name]):
                raise DataError(f"profiles=: the program has no Profile '{name}' among its data.")
        columns: dict[Any, int] = {}
        for place, column in enumerate(data.columns):
            name = _column(column, data.columns.nlevels > 1)
            if name in columns and self._is_data(name):
                raise DataError(f"Arrivals: the frame has two columns {name!r}.")
            columns[name] = place
        values = [
            self._curves(field, profiles, data, columns)
            if field.curve is not None
            else self._numbers(field, data, columns)
            for field in self.fields
        ]
        return Arrivals(tuple(values), data.index)

    def _numbers(self, field: Field, data: pd.DataFrame, columns: Mapping[Any, int]) -> FloatArray:
        place = columns.get(field.label.column)
        whole = columns.get(field.label.name) if field.label.key else None
        if place is None and whole is None:
            if field.default is None:
                raise DataError(
                    f"Arrivals: the frame has no column {field.label.column!r} (its columns are "
                    f"{', '.join(map(repr, list(data.columns)[:8]))}), and the Param has no default."
                )
            return np.full(len(data), field.default)
        if place is None:
            cells = [self._member(cell, field) for cell in data.iloc[:, whole or 0]]
            entries = pd.Series([field.default if cell is None else cell for cell in cells], index=data.index)
        else:
            entries = data.iloc[:, place]
        values = _numbers(entries)
        if values is None:
            raise DataError(f"Arrivals: the column {field.label.column!r} must hold numbers only.")
        bad = ~np.isfinite(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"Arrivals: '{field.label}' must be a finite number (got {values[row]} in row {data.index[row]!r})."
            )
        bad = field.allowed.bad(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"Arrivals: '{field.label}' must lie in {field.allowed} (got {values[row]:g} in row "
                f"{data.index[row]!r})."
            )
        return values

    def _curves(
        self, field: Field, profiles: Mapping[str, Any], data: pd.DataFrame, columns: Mapping[Any, int]
    ) -> CurveStack:
        whole = profiles.get(field.label.name)
        if isinstance(whole, Mapping):
            whole = whole.get(field.label.key if len(field.label.key) != 1 else field.label.key[0])
        if whole is None and field.label.column in columns:
            whole = list(data.iloc[:, columns[field.label.column]])
        if whole is None:
            raise DataError(
                f"Arrivals: there are no curves for the Profile '{field.label}'; give profiles={{'{field.label.name}': "
                "array with one row an arrival and one column a point}."
            )
        if not isinstance(whole, np.ndarray | pd.DataFrame | list | tuple) or np.ndim(whole) == 0:
            raise DataError(
                f"Arrivals: the curves of the Profile '{field.label}' must come as an array or a list, one an arrival "
                f"(got {_kind(whole)})."
            )
        if isinstance(whole, pd.DataFrame) and not whole.index.equals(data.index):
            raise DataError(f"Arrivals: the curves of the Profile '{field.label}' have another index than the data.")
        if len(whole) != len(data):
            raise DataError(
                f"Arrivals: the Profile '{field.label}' must have one curve an arrival, {len(data)} of them (got "
                f"{len(whole)})."
            )
        form = field.curve
        assert form is not None
        values = _array(whole, str(field.label)) if isinstance(whole, np.ndarray | pd.DataFrame) else None
        if values is not None and form.knots is not None:
            wanted = tuple(len(knots) for knots in form.knots)
            if values.shape[1:] != wanted:
                raise DataError(
                    f"Arrivals: a curve of the Profile '{field.label}' must have the shape {wanted}, one value a point "
                    f"(got {values.shape[1:]})."
                )
            if not np.all(np.isfinite(values)):
                raise DataError(f"Arrivals: every value of the Profile '{field.label}' must be a finite number.")
            return CurveStack.of_arrays(str(field.label), form.knots, values, form.kind, form.outside)
        return CurveStack.of_tables(tuple(_curve(field, content, str(field.label)) for content in whole))

    def to_frame(self, arrivals: Arrivals) -> pd.DataFrame:
        """The numbers of arrivals as a frame under the user's names."""
        named = [
            (field.label.column, values)
            for field, values in zip(self.fields, arrivals.values, strict=True)
            if not field.hidden and field.curve is None
        ]
        frame = pd.DataFrame({place: values for place, (_, values) in enumerate(named)}, index=arrivals.index)
        frame.columns = pd.Index([column for column, _ in named], dtype=object, tupleize_cols=False)
        return frame

    def refuse_missing(self, arrivals: Arrivals) -> None:
        """Refuse the model's own arrivals where Params have no value."""
        for field, values in zip(self.fields, arrivals.values, strict=True):
            if isinstance(values, CurveStack):
                if values.missing:
                    raise DataError(
                        f"Profile '{field.label}' has no values in the model; give data=... and profiles=..."
                    )
            elif np.isnan(values).any():
                stage = arrivals.name(int(np.argmax(np.isnan(values))))
                raise DataError(
                    f"Param '{field.label}' has no value for stage {stage!r} of the model; give it one, or data=..."
                )


def _column(key: Any, levels: bool) -> Any:
    """A column's name; of several levels the empty ones, with which pandas fills up short names, are left out."""
    if levels and isinstance(key, tuple):
        kept = tuple(part for part in key if part != "")
        return kept[0] if len(kept) == 1 else kept
    return key


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(repr(name) for name in names if not isinstance(name, tuple) or len(name) > 1)


def _number(content: Any) -> float | None:
    """One number, or None for anything else: texts, truth values, dates, arrays of several."""
    if isinstance(content, np.ndarray) and content.ndim == 0:
        content = content[()]
    if isinstance(content, bool | np.bool_) or not isinstance(content, int | float | np.integer | np.floating):
        return None
    try:
        return float(content)
    except OverflowError:
        return float("inf")


def _numbers(entries: pd.Series) -> FloatArray | None:
    """A column as numbers, or None where it holds something else."""
    if entries.dtype.kind in "iuf":
        return entries.to_numpy(dtype=float, na_value=np.nan)
    if entries.dtype.kind != "O":
        return None
    found = [_number(entry) for entry in entries]
    return None if any(number is None for number in found) else np.array(found, dtype=float)


def _array(content: Any, name: str) -> FloatArray:
    array = np.asarray(content)
    if array.dtype.kind not in "iuf":
        raise DataError(f"An arrival's curve '{name}' must hold numbers (got {_kind(content)}).")
    return array.astype(float)


def _curve(field: Field, content: Any, name: str) -> Table | Function:
    form = field.curve
    assert form is not None
    if content is None:
        raise DataError(f"An arrival must bring the curve '{name}' (got nothing).")
    if callable(content) and not isinstance(content, pd.Series):
        return Function(name, content, form.dimension)
    knots = form.knots
    if isinstance(content, pd.Series) and form.dimension == 1:
        places = content.index
        if not len(places) or places.dtype.kind not in "iuf":
            raise DataError(f"An arrival's curve '{name}': the index of its Series must be numbers.")
        knots, content = (places.to_numpy(dtype=float),), content.to_numpy()
        if not np.all(np.isfinite(knots[0])) or np.any(np.diff(knots[0]) <= 0):
            raise DataError(f"An arrival's curve '{name}': its index must increase.")
    if knots is None:
        raise DataError(
            f"An arrival's curve '{name}' must be a Series or a function of the index, for the Profile has no points "
            f"(got {_kind(content)})."
        )
    values = _array(content, name)
    wanted = tuple(len(axis) for axis in knots)
    if values.shape != wanted:
        raise DataError(
            f"An arrival's curve '{name}' must have one value a point, shape {wanted} (got {values.shape})."
        )
    if not np.all(np.isfinite(values)):
        raise DataError(f"An arrival's curve '{name}' must hold finite numbers only.")
    return Table(name, knots, values, form.kind, form.outside)


def _kind(content: Any) -> str:
    shape = np.shape(content) if not isinstance(content, Mapping) else ()
    return f"{type(content).__name__} of shape {shape}" if shape else f"{type(content).__name__} {content!r}"
