"""Forecasts: arrivals that are expected, and which of them stand for those still to come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._frames import as_pandas
from osilp_pyomo._options import whole_number
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.online.clock.times import Times
from osilp_pyomo.online.stages.template import Arrivals


@dataclass(frozen=True, eq=False)
class Forecast:
    """Arrivals that are expected, such as those of the last day, for ``forecast=``.

    A plain frame given as ``forecast=`` is read as arrivals in their order, which is what a record of an earlier run
    is. This class says more: that the arrivals come in the order of a column, or that they have no order.

    Parameters
    ----------
    frame : DataFrame or Chunks
        One row an arrival, with the columns that arrivals have. How many rows there are does not matter: they stand for
        all arrivals of the horizon.
    time : column, optional
        Times by which the rows are put into order, numbers or dates. Left out, the rows have no order: all of them are
        a sample of the arrivals ahead, whenever that is.
    profiles : dict, optional
        Curves of Profiles, one array (arrivals, points) each.

    Examples
    --------
    >>> day = pd.DataFrame({"hour": [20, 8, 14, 11], "value": [4.0, 1.0, 3.0, 2.0]})
    >>> Forecast(day, time="hour").after(50, horizon=100)["value"].tolist()
    [3.0, 4.0]
    >>> len(Forecast(day).after(50, horizon=100))
    4
    """

    frame: Any
    time: Any = None
    profiles: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_pandas(self.frame))
        if self.time is not None and isinstance(self.frame, pd.DataFrame):
            self._times()

    def _times(self) -> Any:
        if self.time not in self.frame.columns:
            raise OptionError(
                f"Forecast: there is no column {self.time!r} of times (the columns are "
                f"{', '.join(map(repr, list(self.frame.columns)[:8]))})."
            )
        times = self.frame[self.time]
        known = pd.api.types.is_numeric_dtype(times) or pd.api.types.is_datetime64_any_dtype(times)
        if isinstance(times, pd.DataFrame) or not known or times.isna().any():
            raise OptionError(f"Forecast: the column {self.time!r} must hold a number or a date in every row.")
        return times

    @property
    def order(self) -> Any:
        """Places of the rows in the order of their times; None where they have no order."""
        return None if self.time is None else np.argsort(self._times().to_numpy(), kind="stable")

    def after(self, met: int, horizon: int) -> pd.DataFrame:
        """The rows that stand for the arrivals after the first ``met`` of a horizon: all, where they have no order."""
        whole_number(met, "Forecast.after: met", 0)
        whole_number(horizon, "Forecast.after: horizon")
        if not isinstance(self.frame, pd.DataFrame):
            raise OptionError("Forecast.after: arrivals in chunks are read by a controller only; give a DataFrame.")
        if self.time is None:
            return self.frame
        return self.frame.iloc[self.order[place_of(len(self.frame), met, horizon) :]]


def place_of(count: int, met: int, horizon: int) -> int:
    """Before which of so many foretold arrivals a run stands that has met some of its horizon; the last one stays."""
    return min(round(count * met / max(horizon, 1)), count - 1)


@dataclass(frozen=True, eq=False)
class Foretold:
    """A forecast that was read: arrivals, in their order where they have one.

    ``moments`` are their times as the user tells them, and ``arrivals.times`` those since the beginning of a run, once
    that is known.
    """

    arrivals: Arrivals
    ordered: bool
    moments: pd.Series | None = None

    @classmethod
    def of(
        cls,
        given: Any,
        frame_of: Callable[[Any, Any], pd.DataFrame],
        read: Callable[[pd.DataFrame, Any], Arrivals],
        column: Any = None,
    ) -> Foretold:
        """Read a frame, whose rows are in order, or a :class:`Forecast`.

        ``frame_of`` makes a frame of what was given, with a column of times; ``column`` holds the times of a plain
        frame, if it has such a column.
        """
        forecast = given if isinstance(given, Forecast) else None
        source, profiles = (given, None) if forecast is None else (forecast.frame, forecast.profiles)
        frame = frame_of(source, column if forecast is None else forecast.time)
        arrivals = read(frame, profiles)
        if not len(arrivals):
            raise DataError("forecast=: there are no arrivals in it; leave it out where nothing is known.")
        if forecast is None and column is not None and column in frame.columns:
            forecast = Forecast(frame, column)
        elif forecast is None or forecast.time is None:
            return cls(arrivals, ordered=forecast is None)
        timed = Forecast(frame, forecast.time)
        return cls(arrivals.take(timed.order), True, timed._times().iloc[timed.order])

    def within(self, times: Times) -> Foretold:
        """The same with its times since the beginning of a run, which it must lie in."""
        if self.moments is None:
            return self
        numbers = times.of_series(self.moments, "forecast=: its times")
        outside = (numbers < 0.0) | (numbers > times.end)
        if outside.any():
            first = self.moments.iloc[int(np.argmax(outside))]
            raise DataError(
                f"forecast=: one of its times is {first!s}, and arrivals come from {times.since!s} to {times.until!s}; "
                "leave such rows out, or move the times of another day to this one."
            )
        return replace(self, arrivals=self.arrivals.at(numbers))

    def thinned(self, most: int) -> Foretold:
        """No more than so many of the arrivals, evenly spread over their order."""
        if len(self.arrivals) <= most:
            return self
        places = np.unique(np.linspace(0, len(self.arrivals) - 1, most).round().astype(int))
        times = self.arrivals.times
        arrivals = self.arrivals.take(places)
        return Foretold(arrivals if times is None else arrivals.at(times[places]), self.ordered)
