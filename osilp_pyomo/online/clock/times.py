"""Times as users tell them, numbers or dates, as numbers since a beginning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._options import shown_number
from osilp_pyomo.errors import DataError, OptionError

# Numbers beyond this are no times.
_LARGEST = 1e100
# What times are called where no column is named.
NOW = "now"


@dataclass(frozen=True)
class Times:
    """The times of a run: from ``since`` to ``until``, numbers or dates; ``column`` of a frame holds those of arrivals.

    Examples
    --------
    >>> times = Times.of(8, 18.5, "hour")
    >>> times.number(9.5, "step: now"), times.end
    (1.5, 10.5)
    >>> times.told(1.5)
    9.5
    """

    since: Any
    until: Any
    column: Any = None

    @classmethod
    def of(cls, since: Any, until: Any, column: Any) -> Times:
        """What was given as ``since=``, ``until=`` and ``time=``, looked at."""
        end = _moment(until, "until")
        if since is None and isinstance(end, pd.Timestamp):
            raise OptionError("until= is a date; say by since= when the run begins.")
        begin: Any = 0.0 if since is None else _moment(since, "since")
        if isinstance(begin, pd.Timestamp) != isinstance(end, pd.Timestamp) or (
            isinstance(end, pd.Timestamp) and (begin.tz is None) != (end.tz is None)
        ):
            raise OptionError(
                f"since= and until= must both be numbers, or both be dates with a time zone or without (got "
                f"{since!r} and {until!r})."
            )
        if not begin < end:
            raise OptionError(f"until= must lie after since= (got {until!r} and {0 if since is None else since!r}).")
        try:
            hash(column)
        except TypeError:
            raise OptionError(f"time= must name a column of the arrivals (got {column!r}).") from None
        return cls(begin, end, column)

    @property
    def dates(self) -> bool:
        """Whether times are dates."""
        return isinstance(self.until, pd.Timestamp)

    @property
    def end(self) -> float:
        """The time from the beginning to the end."""
        return self._since(self.until)

    def _since(self, moment: Any) -> float:
        return float((moment - self.since).total_seconds()) if self.dates else float(moment - self.since)

    def number(self, given: Any, what: str) -> float:
        """One time, since the beginning."""
        moment = _moment(given, what, DataError)
        if isinstance(moment, pd.Timestamp) != self.dates or (self.dates and (moment.tz is None) != self._naive):
            raise DataError(f"{what} must be {self._kind} (got {given!r}).")
        return self._since(moment)

    @property
    def _naive(self) -> bool:
        return self.since.tz is None

    @property
    def _kind(self) -> str:
        if not self.dates:
            return "a number, as since= and until= are"
        return f"a date {'without' if self._naive else 'with'} a time zone, as since= and until= are"

    def of_frame(self, frame: Any, what: str) -> FloatArray:
        """The times of a frame's rows, which may stand in any order."""
        if self.column is None:
            raise DataError(f"{what}: which column holds the times of arrivals? Name it by time= beside until=.")
        if not isinstance(frame, pd.DataFrame) or self.column not in frame.columns:
            has = list(frame.columns)[:8] if isinstance(frame, pd.DataFrame) else []
            raise DataError(
                f"{what}: there is no column {self.column!r} of times (the columns are {', '.join(map(repr, has))})."
            )
        return self.of_series(frame[self.column], f"{what}: the column {self.column!r}")

    def of_series(self, given: Any, what: str) -> FloatArray:
        """Several times, since the beginning."""
        if not isinstance(given, pd.Series):
            raise DataError(f"{what} must be one column of times.")
        kind = given.dtype
        right = pd.api.types.is_datetime64_any_dtype(kind) if self.dates else pd.api.types.is_numeric_dtype(kind)
        if not right or kind.kind in "bc" or (self.dates and (given.dt.tz is None) != self._naive):
            raise DataError(f"{what} must hold in every row {self._kind} (it holds {kind}).")
        since = given - self.since
        numbers: FloatArray = np.asarray(since.dt.total_seconds() if self.dates else since, dtype=float)
        if not np.all(np.abs(numbers) <= 2 * _LARGEST):
            raise DataError(f"{what} must hold in every row {self._kind} (a row holds none).")
        return numbers

    def told(self, number: float) -> Any:
        """A time as the user tells it."""
        return self.since + pd.Timedelta(number, unit="s") if self.dates else self.since + number

    # -- saving ------------------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """Everything for a header of a file."""
        moments = [each.isoformat() if self.dates else each for each in (self.since, self.until)]
        column = list(self.column) if isinstance(self.column, tuple) else self.column
        return {"dates": self.dates, "since": moments[0], "until": moments[1], "time": column}

    @classmethod
    def of_record(cls, given: Any) -> Times:
        """What ``record`` told; errors of what a file may hold instead are those of its parts."""
        if not isinstance(given, Mapping) or set(given) != {"dates", "since", "until", "time"}:
            raise ValueError("a clock that is none")
        column = tuple(given["time"]) if isinstance(given["time"], list) else given["time"]
        if not given["dates"]:
            return cls.of(given["since"], given["until"], column)
        return cls.of(pd.Timestamp(given["since"]), pd.Timestamp(given["until"]), column)


def _moment(given: Any, name: str, kind: type[Exception] = OptionError) -> Any:
    """A time: a finite number, or a date."""
    if isinstance(given, date | datetime | np.datetime64):
        stamp: Any = pd.Timestamp(given)
        if stamp is not pd.NaT:
            return stamp
    elif isinstance(given, Real) and not isinstance(given, bool | np.bool_):
        try:
            number = float(given)
        except OverflowError:
            number = np.inf
        if abs(number) <= _LARGEST:
            return number
    what = name if ":" in name else f"{name}="
    raise kind(f"{what} must be a time, a finite number or a date (got {shown_number(given)}).")
