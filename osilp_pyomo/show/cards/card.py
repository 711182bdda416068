"""Cards: what a notebook shows of a value, a heading, some facts, a small picture, and tables that unfold.

A card is plain HTML with its own few rules of style: no script, nothing fetched, colours that follow the page's own,
and all that comes from the user escaped. Where a notebook is not trusted and drops the style, tables and texts remain.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

# Rows and columns of a table in a card, and letters of one of its cells.
_ROWS, _COLUMNS, _LETTERS = 12, 10, 120
# Cells up to so many letters are not broken over lines.
_SHORT = 32
# Lines of one fact.
_LINES = 8

_STYLE = """<style>
.osilp-card{border:1px solid rgba(128,128,128,.35);border-radius:8px;padding:.7em 1em .8em;max-width:60em;margin:.3em 0;
font:14px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
.osilp-card .osilp-head{margin:0 0 .45em}.osilp-card .osilp-head b{font-size:1.07em}
.osilp-card .osilp-tag{
border-radius:1em;padding:.05em .65em;margin:0 .5em;font-size:.86em;border:1px solid currentColor}
.osilp-card .osilp-good{color:#008a68}.osilp-card .osilp-bad{color:#d35400}
.osilp-card .osilp-dim{opacity:.68}
.osilp-card .osilp-body{display:flex;flex-wrap:wrap;gap:.6em 1.6em;align-items:flex-start}
.osilp-card .osilp-body>*{flex:0 1 auto}.osilp-card .osilp-facts{flex:1 1 22em}
.osilp-card table{border-collapse:collapse;margin:0!important;font-size:1em;font-variant-numeric:tabular-nums;
border:0!important}
.osilp-card tr,.osilp-card tr:hover,.osilp-card td,.osilp-card th{background:none!important;border:0;max-width:none}
.osilp-card td,.osilp-card th{padding:.1em .9em .1em 0;text-align:left!important;vertical-align:top;white-space:normal}
.osilp-card .osilp-facts th{font-weight:400;opacity:.68;white-space:nowrap}.osilp-card .osilp-facts td{width:99%}
.osilp-card .osilp-data{font-size:.88em;margin:.35em 0 .2em!important}
.osilp-card .osilp-data th{border-bottom:1px solid rgba(128,128,128,.6);font-weight:600;vertical-align:bottom}
.osilp-card .osilp-data td{border-bottom:1px solid rgba(128,128,128,.2)}
.osilp-card .osilp-data td,.osilp-card .osilp-data th{padding:.18em .8em .18em 0;overflow-wrap:normal}
.osilp-card .osilp-data td.osilp-short{white-space:nowrap}
.osilp-card .osilp-data .osilp-number{text-align:right!important;white-space:nowrap}
.osilp-card table.model td{padding:.18em .9em .18em 0;vertical-align:middle;font-size:1em}
.osilp-card table.model math{font-size:1.08em}
.osilp-card .osilp-more{margin-top:.5em}
.osilp-card details{margin-top:.45em}.osilp-card summary{cursor:pointer;opacity:.85}
.osilp-card .osilp-wide{overflow-x:auto;max-width:100%}
.osilp-card pre{white-space:pre-wrap;font-size:.88em;margin:.3em 0;background:none;padding:0}
.osilp-card figure{margin:0;max-width:100%}.osilp-card figcaption{font-size:.86em;opacity:.75;margin:0}
.osilp-card svg{max-width:100%;height:auto;display:block}
</style>"""


@dataclass(frozen=True)
class Card:
    """What a card has; texts are escaped when it is written, ``pictures`` and the bodies of ``folds`` are HTML.

    ``tag`` is a word about how it went, good where ``good`` says so; ``facts`` are pairs of label and text.

    Examples
    --------
    >>> text = Card("Regret", facts=[("value", "12.3 <EUR>")]).html()
    >>> "<th>value</th><td>12.3 &lt;EUR&gt;</td>" in text
    True
    """

    title: str
    subtitle: str = ""
    tag: str = ""
    good: bool = True
    facts: Sequence[tuple[str, str]] = ()
    pictures: Sequence[str] = ()
    body: str = ""
    folds: Sequence[tuple[str, str]] = field(default=())

    def html(self) -> str:
        """The card."""
        tag = ""
        if self.tag:
            tag = f"<span class='osilp-tag osilp-{'good' if self.good else 'bad'}'>{escaped(self.tag)}</span>"
        subtitle = f" <span class='osilp-dim'>{escaped(self.subtitle)}</span>" if self.subtitle else ""
        parts = [f"<div class='osilp-head'><b>{escaped(self.title)}</b>{tag}{subtitle}</div>"]
        facts = facts_table(self.facts)
        if facts or self.pictures:
            parts.append(f"<div class='osilp-body'>{facts}{''.join(self.pictures)}</div>")
        parts.append(f"<div class='osilp-more'>{self.body}</div>" if self.body else "")
        parts += [
            f"<details><summary>{escaped(title)}</summary><div class='osilp-wide'>{inner}</div></details>"
            for title, inner in self.folds
        ]
        return f"<div class='osilp-card'>{_STYLE}{''.join(parts)}</div>"


def escaped(text: Any) -> str:
    """A text of the user's as HTML shows it."""
    return html.escape(str(text)).replace(" +- ", " &#xB1; ")


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """Labels and texts, one below the other."""
    rows = "".join(
        f"<tr><th>{escaped(label)}</th><td>{'<br>'.join(escaped(line) for line in shortened(text))}</td></tr>"
        for label, text in facts
    )
    return f"<table class='osilp-facts'>{rows}</table>" if rows else ""


def shortened(text: str) -> list[str]:
    """The lines of a text, of many the first ones."""
    lines = text.split("\n")
    return lines if len(lines) <= _LINES else [*lines[: _LINES - 1], f"... and {len(lines) - _LINES + 1:,} more"]


def labelled(lines: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    r"""Lines as values print them, ``  objective  283.9``: the first one, and label and text of the others.

    Examples
    --------
    >>> labelled(["a run", "  objective  3", "  violation  none of 'c'", "             at 5 points"])
    ('a run', [('objective', '3'), ('violation', "none of 'c'\nat 5 points")])
    """
    facts: list[tuple[str, str]] = []
    for line in lines[1:]:
        label, text = line[2:13].strip(), line[13:]
        if facts and (not label or label == facts[-1][0]):
            facts[-1] = (facts[-1][0], f"{facts[-1][1]}\n{text}")
        else:
            facts.append((label, text))
    return lines[0] if lines else "", facts


def count_of(number: int, what: str) -> str:
    """How many there are: "1 row", "2,000 families"."""
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else several}"


def data_table(frame: pd.DataFrame, rows: int = _ROWS, letters: int = _LETTERS) -> str:
    """The first rows of a frame with its index, and how many more there are."""
    shown = frame.iloc[:rows, :_COLUMNS]
    if not isinstance(shown.index, pd.RangeIndex):
        shown = shown.reset_index(allow_duplicates=True)
    kinds = [_kind(shown.iloc[:, place]) for place in range(shown.shape[1])]
    heads = "".join(f"<th class='{kind}'>{_cell(name)}</th>" for kind, name in zip(kinds, shown, strict=True))
    lines = []
    for entries in shown.itertuples(index=False, name=None):
        cells = [f"<td class='{kind}'>{_cell(entry, letters)}</td>" for kind, entry in zip(kinds, entries, strict=True)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = [f"... and {len(frame) - rows:,} more"] if len(frame) > rows else []
    more += [f"{frame.shape[1] - _COLUMNS:,} more columns"] if frame.shape[1] > _COLUMNS else []
    rest = f"<div class='osilp-dim'>{escaped('; '.join(more))}</div>" if more else ""
    return f"<table class='osilp-data'><tr>{heads}</tr>{''.join(lines)}</table>{rest}"


def _kind(column: Any) -> str:
    if pd.api.types.is_numeric_dtype(column):
        return "osilp-number"
    return "osilp-short" if all(len(str(entry)) <= _SHORT for entry in column) else "osilp-name"


def _cell(entry: Any, letters: int = _LETTERS) -> str:
    if entry is None or (isinstance(entry, float) and entry != entry):
        return ""
    if isinstance(entry, float):
        return escaped(number_text(entry))
    if isinstance(entry, tuple):
        return escaped(place_text(entry))
    text = str(entry)
    return escaped(text if len(text) <= letters else f"{text[:letters]}...")


def number_text(number: float, unit: str = "") -> str:
    """A number as people write it, with its unit where that is known."""
    size = abs(number)
    text = f"{number:,.0f}" if size >= 1e5 and size < 1e15 else f"{number:,.6g}" if size >= 1e3 else f"{number:.6g}"
    return f"{text} {unit}".rstrip()


def place_text(place: Any) -> str:
    """A point of an index in short."""
    if not isinstance(place, tuple):
        return number_text(place) if isinstance(place, float) else str(place)
    parts = [number_text(part) if isinstance(part, float) else str(part) for part in place]
    return f"({', '.join(parts if len(parts) <= 6 else [*parts[:4], '...', parts[-1]])})"
