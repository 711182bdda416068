"""A result as one page: what was found, a picture, prices, what conflicts, and values."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from osilp_pyomo._version import __version__
from osilp_pyomo.offline.results import Result
from osilp_pyomo.show.numbers import about, plain
from osilp_pyomo.show.pages.html import heading, page, paragraph, picture, preformatted, table

# Lines of a table; all values are in the CSV file of --values.
_LINES = 200


def result_page(result: Result, title: str, svg: str | None) -> str:
    """The page of a result; ``svg`` is the picture of its rows, if there is one."""
    return page(title, _parts(result, svg))


def _parts(result: Result, svg: str | None) -> Iterator[str]:
    if result.answer is None:
        yield paragraph(f"There is no answer: the {result.method} method ended with status '{result.status}'.", "note")
    elif result.certified:
        low, high = result.bracket
        by = f" by more than {about(high - low)}" if high > low else ""
        best = "most" if result.sense == "maximize" else "least"
        yield paragraph(
            f"The {best} that is possible is {plain(result.objective, 6)}. It is proved that the values below keep "
            f"every row at every point of its index, and that no others are better{by}."
        )
    else:
        yield paragraph(
            f"The objective of the values below is {plain(result.objective, 6)}. It is not proved that they keep every "
            "row at every point of its index; what is known stands further down.",
            "note",
        )
    if svg is not None:
        yield picture(svg, "Rows", "Rows, limits and prices along the index.")
    yield heading("What was found")
    yield preformatted(str(result))
    if len(result.conflict):
        yield heading("What cannot hold together")
        yield table(result.conflict.astype(str))
    if result.answer is not None and result.answer.price is not None:
        yield heading("Prices")
        yield paragraph("What one more unit of the right-hand side is worth, and where.")
        for name, price in result.answer.price.items():
            yield heading(name, 3)
            yield from _shortened(price.to_frame())
    if result.answer is not None:
        yield heading("Values")
        values = result.values.rename("value").rename_axis("variable").reset_index()
        yield from _shortened(values[values["value"] != 0])
        zeros = int((values["value"] == 0).sum())
        if zeros:
            yield paragraph(f"{zeros:,} more variables are 0.")
    yield heading("Version")
    yield paragraph(f"osilp_pyomo {__version__}; {result.seconds:.2g} s.")


def _shortened(frame: pd.DataFrame) -> Iterator[str]:
    """A table of the first lines, and how many there are."""
    shown = frame.head(_LINES)
    yield table(shown.map(lambda entry: f"{entry:.6g}" if isinstance(entry, float) else str(entry)))
    if len(frame) > _LINES:
        yield paragraph(f"{len(frame) - _LINES:,} more lines are left out.")
