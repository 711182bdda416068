"""Frames of other libraries, such as Polars and Arrow, as frames of pandas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from osilp_pyomo.errors import DataError, MissingPackageError


def as_pandas(data: Any) -> Any:
    """A table that speaks Arrow (``__arrow_c_stream__``) as a frame of pandas; anything else as it is.

    Whoever gives such a table has no index, so rows are numbered from 0.

    Examples
    --------
    >>> import polars as pl
    >>> as_pandas(pl.DataFrame({"value": [0.5, 0.7]}))
       value
    0    0.5
    1    0.7
    >>> as_pandas("value.csv")
    'value.csv'
    """
    if not is_foreign_table(data):
        return data
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise MissingPackageError(
            f"A {type(data).__name__} of {type(data).__module__.partition('.')[0]} is read by pyarrow, which is not "
            "installed; pip install 'osilp-pyomo[parquet]', or give a DataFrame of pandas."
        ) from None
    try:
        return pyarrow.table(data).to_pandas()
    except (TypeError, ValueError, NotImplementedError) as error:  # Arrow's own errors are of these kinds
        raise DataError(
            f"The {type(data).__name__} of {type(data).__module__.partition('.')[0]} cannot be read as a table "
            f"({error}); give a DataFrame, with one row each."
        ) from None


def is_foreign_table(data: Any) -> bool:
    """Whether something is a table that speaks Arrow, and neither of pandas nor a stream that is read once."""
    if isinstance(data, pd.DataFrame | pd.Series | Iterator | type):
        return False
    return hasattr(data, "__arrow_c_stream__")
