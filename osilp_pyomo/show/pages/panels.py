"""The parts of what moves on a page: what the script draws of each, as plain numbers and texts.

Many numbers travel as base64 of float32, which takes half the room of their digits and keeps seven of those.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from osilp_pyomo._arrays import FloatArray

Panel = dict[str, Any]


def packed(values: ArrayLike) -> str:
    """Numbers as the script reads them.

    Examples
    --------
    >>> packed([1.0])
    'AACAPw=='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def spread(*parts: ArrayLike, least: float = 0.0) -> list[float]:
    """The lowest and the highest of some numbers, with room above; zero is among them.

    Examples
    --------
    >>> spread([1.0, 100.0], [np.nan])
    [0.0, 106.0]
    """
    values = np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    low, high = min(0.0, float(values.min(initial=0.0))), max(least, float(values.max(initial=0.0)))
    if low == high:
        high = low + 1.0
    return [1.06 * low, 1.06 * high]


def named(name: str, unit: str) -> str:
    """What stands on an axis.

    Examples
    --------
    >>> named("u", "GHz"), named("u", "")
    ('u (GHz)', 'u')
    """
    return f"{name} ({unit})" if unit else name


def curve(
    title: str, row: str, axis: tuple[str, str], at: FloatArray, unit: str, lines: Sequence[Panel],
    still: Sequence[Panel], bounds: Sequence[float], upper: bool = True, peak: str = "", nothing: str = "",
    note: str = "",
) -> Panel:  # fmt: skip
    """Functions of the index that move: ``lines`` with frames, ``still`` without; ``axis`` is its name and unit."""
    return {
        "kind": "curve", "title": title, "row": row,
        "x": {"name": axis[0], "unit": axis[1], "label": named(*axis), "at": packed(at)},
        "y": {"unit": unit, "range": list(bounds)}, "lines": list(lines), "still": list(still), "upper": upper,
        "peak": peak, "nothing": nothing, "note": note,
    }  # fmt: skip


def moving_line(series: int, label: str, frames: FloatArray, moments: Sequence[int] | None = None) -> Panel:
    """A function of the index at each moment (M, P); ``moments`` says which frame stands at each, -1 for none."""
    return {"series": series, "label": label, "frames": packed(frames), "moments": moments}


def still_line(kind: str, label: str, values: FloatArray) -> Panel:
    """A function of the index that stays: a "limit", a "lower" limit, or what is "best"."""
    return {"kind": kind, "label": label, "values": packed(values)}


def path(
    title: str, total: int, unit: str, lines: Sequence[tuple[int, str, ArrayLike]], levels: Sequence[tuple[str, float]],
    note: str = "", row: str | None = None,
) -> Panel:  # fmt: skip
    """Numbers over time, and levels that they are compared with."""
    shown = [{"series": series, "label": label, "values": np.asarray(values, dtype=float).tolist()}
             for series, label, values in lines]  # fmt: skip
    heights = [value for _, value in levels]
    return {
        "kind": "path", "title": title, "row": row, "x": {"label": "arrivals"}, "lines": shown, "note": note,
        "y": {"unit": unit, "range": spread(*(each["values"] for each in shown), heights)},
        "levels": [{"label": label, "value": float(value)} for label, value in levels],
    }  # fmt: skip


def stack(title: str, edges: Sequence[int], parts: Sequence[tuple[int, str, Sequence[int]]], note: str) -> Panel:
    """How many arrivals of each bin ended in each way."""
    return {
        "kind": "stack", "title": title, "x": {"label": "arrivals (up: share of them, %)"}, "y": {"unit": "%"},
        "note": note,
        "edges": list(edges),
        "parts": [{"way": way, "label": label, "counts": list(counts)} for way, label, counts in parts],
    }  # fmt: skip


def heat(
    title: str, row: str, axes: Sequence[Panel], frames: FloatArray, scale: Panel, what: str, peak: str, over: str = "",
    note: str = "",
) -> Panel:  # fmt: skip
    """A function over two axes at each moment (M, ny, nx), as colours."""
    return {
        "kind": "heat", "title": title, "row": row, "x": axes[0], "y": axes[1], "frames": packed(frames),
        "size": [frames.shape[2], frames.shape[1]], "scale": scale, "what": what, "peak": peak, "over": over,
        "note": note,
    }  # fmt: skip


def tile(name: str, label: str, unit: str, values: Any, notes: Any = None, row: str | None = None) -> Panel:
    """A number that is told, for each of the series at each moment, with a word below it."""
    return {"name": name, "label": label, "unit": unit, "values": values, "notes": notes, "row": row}
