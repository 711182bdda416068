"""Pages of HTML that need nothing else: no network, no scripts, pictures inside."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 70rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid #bbb; }
h3 { font-size: 1.05rem; margin-bottom: .3rem; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table.data { font-size: .86rem; } table.data th, table.data td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; }
table.data th { text-align: left; border-bottom: 2px solid #111; vertical-align: bottom; }
table.data td { white-space: nowrap; } table.data td.words { white-space: normal; }
table.data td.number { text-align: right; }
table.model td { padding: .3rem .7rem; vertical-align: middle; } table.model math { font-size: 1.1rem; }
dt { font-weight: 600; margin-top: .5rem; } dd { margin-left: 1.2rem; }
figure { margin: 1.2rem 0; } figure img { width: 100%; height: auto; } figcaption { color: #444; font-size: .9rem; }
pre { background: #f4f4f4; padding: .7rem; overflow-x: auto; font-size: .8rem; }
.note { border-left: 4px solid #111; padding: .1rem .8rem; background: #f4f4f4; }
.verdict { font-weight: 700; white-space: nowrap; }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page."""
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{''.join(f'{part}' + chr(10) for part in parts)}</body></html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    mark = f" class='{kind}'" if kind else ""
    return f"<p{mark}>{html.escape(text)}</p>"


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
