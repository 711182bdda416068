"""Pages of HTML that need nothing else: no network, pictures and numbers inside, one script where something moves."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

_SHEET, _SCRIPT = "page.css", "page.js"


def page(title: str, parts: Iterable[str], moving: Mapping[str, Any] | None = None, byline: str = "") -> str:
    """A whole page; with ``moving``, what its script shows where :func:`moving_part` stands.

    A policy of contents lets it run that one script and nothing else, and ask for nothing.
    """
    style = _file(_SHEET)
    script = "" if moving is None else _file(_SCRIPT)
    allowed = f"script-src 'sha256-{_digest(script)}'; " if script else ""
    policy = (
        f"default-src 'none'; {allowed}style-src 'sha256-{_digest(style)}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    tail = ""
    if moving is not None:
        tail = f"<script type='application/json' id='osilp-data'>{json_text(moving)}</script><script>{script}</script>"
    below = f"<p class='byline'>{html.escape(byline)}</p>\n" if byline else ""
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{style}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{below}{''.join(f'{part}' + chr(10) for part in parts)}{tail}"
        "</body></html>\n"
    )


@cache
def _file(name: str) -> str:
    return (files("osilp_pyomo.show.pages") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def json_text(value: Any) -> str:
    """A value as JSON that no name in it can end: what HTML reads is written as escapes.

    Examples
    --------
    >>> text = json_text({"name": "</script>"})
    >>> text.count("<"), json.loads(text)
    (0, {'name': '</script>'})
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def moving_part() -> str:
    """The place of what moves on a page."""
    return "<div id='osilp-stage'></div><noscript><p class='note'>What moves here needs scripts.</p></noscript>"


def folded(title: str, parts: Iterable[str], hint: str = "") -> str:
    """Parts of a page behind a line that opens them."""
    told = f" <span class='small'>{html.escape(hint)}</span>" if hint else ""
    return f"<details><summary>{html.escape(title)}{told}</summary>{''.join(parts)}</details>"


def heading(text: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    mark = f" class='{kind}'" if kind else ""
    return f"<p{mark}>{html.escape(text)}</p>"


def sentence(text: str, kind: str, strong: Iterable[str] = ()) -> str:
    """A sentence of plain text in which no line ends between a number and its unit; some of its words stand out."""
    written = unbroken(text)
    for words in strong:
        written = written.replace(unbroken(words), f"<strong>{unbroken(words)}</strong>", 1)
    return f"<p class='{kind}'>{written}</p>"


def unbroken(text: str) -> str:
    """Text for HTML with numbers, their units and their intervals kept together.

    Examples
    --------
    >>> unbroken("4.3 % < 5 %"), unbroken("(± 5)")
    ('4.3&#xA0;% &lt; 5&#xA0;%', '(±&#xA0;5)')
    """
    return re.sub(r"(?<=\d) (?=%|[A-Z]{3}\b)|(?<=±) ", "&#xA0;", html.escape(text))


def answer_table(frame: pd.DataFrame) -> str:
    """A small table in words whose first row is the one to take."""
    titles = [html.escape(str(column), quote=True) for column in frame.columns]
    heads = "".join(f"<th scope='col'>{title}</th>" for title in titles)
    rows = []
    for number, entries in enumerate(frame.itertuples(index=False, name=None)):
        first, *rest = (unbroken(str(entry)) for entry in entries)
        # On a narrow screen each cell stands on its own line, with its title before it.
        cells = "".join(f"<td data-title='{title}'>{cell}</td>" for title, cell in zip(titles[1:], rest, strict=True))
        rows.append(f"<tr{' class=take' * (number == 0)}><th scope='row'>{first}</th>{cells}</tr>")
    return (
        f"<div class='wide'><table class='data answer'><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def preformatted(text: str) -> str:
    """Text as it was printed."""
    return f"<pre>{html.escape(text)}</pre>"


def table(frame: pd.DataFrame, wordy: Sequence[str] = ()) -> str:
    """A frame as a table; columns in ``wordy`` may break over lines, numbers stand to the right."""
    heads = "".join(f"<th>{html.escape(str(column))}</th>" for column in frame.columns)
    rows = []
    for entries in frame.itertuples(index=False, name=None):
        cells = "".join(
            f"<td class='{_kind(entry, column in wordy)}'>{_cell(entry)}</td>"
            for column, entry in zip(frame.columns, entries, strict=True)
        )
        rows.append(f"<tr>{cells}</tr>")
    return f"<div class='wide'><table class='data'><tr>{heads}</tr>{''.join(rows)}</table></div>"


def _cell(entry: object) -> str:
    return html.escape(str(entry)).replace(" +- ", " &#xB1; ")


def _kind(entry: object, wordy: bool) -> str:
    if wordy:
        return "words"
    return "number" if str(entry)[:1].isdigit() or str(entry)[:2].lstrip("-")[:1].isdigit() else "name"


def definitions(entries: Mapping[str, str]) -> str:
    """Terms and what they mean."""
    told = "".join(f"<dt>{html.escape(term)}</dt><dd>{html.escape(text)}</dd>" for term, text in entries.items())
    return f"<dl>{told}</dl>"


def picture(svg: str, title: str, caption: str) -> str:
    """A picture with what it shows; as an image, so that the names inside one do not meet those inside another."""
    code = base64.b64encode(svg.encode()).decode()
    return (
        f"<figure><img alt='{html.escape(title + ': ' + caption, quote=True)}' src='data:image/svg+xml;base64,{code}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )
