"""What commands print: sentences for a reader, or one JSON object for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.offline.results import FamilyMap, Result
from osilp_pyomo.show.drawing import can_draw
from osilp_pyomo.studies.compare import Study

# Exit codes of commands that ran to their end.
DONE, NOT_OPTIMAL = 0, 3


def aside(json_only: bool) -> Any:
    """Where standard output is to hold one JSON object, what a user's file prints goes to standard error."""
    return redirect_stdout(sys.stderr) if json_only else nullcontext()


def silent(*_: Any) -> None:
    """Say nothing, where one JSON object is all that is wanted."""


def print_json(record: Any) -> None:
    """Print a record as one JSON object."""
    print(json.dumps(_plain(record), indent=1))


def _plain(value: Any) -> Any:
    """A record that any reader of JSON takes: no NaN, no numpy, keys that are texts."""
    if isinstance(value, dict | FamilyMap):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value


def result_record(result: Result) -> dict[str, Any]:
    """A result as plain numbers and texts; values and prices where there is an answer."""
    record: dict[str, Any] = {
        "method": result.method, "status": result.status, "sense": result.sense, "objective": result.objective,
        "bound": result.bound, "seconds": result.seconds, "rows": result.rows,
    }  # fmt: skip
    if result.answer is not None:
        record.update({
            "violation": dict(result.answer.violation), "worst_index": dict(result.answer.worst_index),
            "certified": result.certified, "values": result.values.to_dict(),
        })  # fmt: skip
        if result.answer.price is not None:
            record["price"] = {name: price.to_frame().to_dict("list") for name, price in result.answer.price.items()}
    if result.remark:
        record["remark"] = result.remark
    if len(result.conflict):
        record["conflict"] = result.conflict.to_dict("records")
    return record


def study_record(study: Study) -> dict[str, Any]:
    """A study as plain lists: what was run, and every run."""
    told = ("policies", "guards", "order", "sampler", "trials", "horizons", "benchmarks", "budget", "seed", "versions")
    summary = study.summary()
    summary.columns = pd.Index(["_".join(filter(None, levels)) for levels in summary.columns.to_list()])
    return {
        "settings": {name: study.settings[name] for name in told},
        "summary": summary.reset_index().to_dict("records"),
        "runs": study.runs.to_dict("records"),
        "doubts": study.doubts(),
    }


def write_report(
    study: Study, path: Path, talk: Callable[..., Any], title: str | None = None, author: str | None = None
) -> Path:
    """Write the page of a study, with pictures where they can be drawn; say where it is."""
    pictures = can_draw()
    written = study.to_html(path, pictures=pictures, title=title, author=author)
    why = "" if pictures else " (without pictures: matplotlib is not installed; pip install 'osilp-pyomo[plot]')"
    talk(f"\nReport: {written}{why}")
    return written
