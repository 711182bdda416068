"""The card of a study: policies side by side, and what they lose against the optimum."""

from __future__ import annotations

from typing import Any

import pandas as pd

from osilp_pyomo.show.cards.card import Card, count_of, data_table
from osilp_pyomo.show.cards.sketches import intervals
from osilp_pyomo.studies.report import drawn_text

# Letters of a definition.
_DEFINITION = 1_000


def study_card(study: Any) -> str:
    """A study: a table of means with their intervals, and a picture of the regrets."""
    settings = study.settings
    done = f"{study.finished:,} of {count_of(study.expected, 'trial')}"
    sizes = ", ".join(f"{size:,}" for size in settings["horizons"])
    facts = [("arrivals", f"T = {sizes}; {drawn_text(settings)}, seed {settings['seed']}")]
    facts += [("careful", text.removeprefix("careful: ")) for text in study.doubts()]
    if not len(study.runs):
        return Card("Study", done, "no trial is finished", False, facts).html()
    table = study.table()
    rest = [measure.column for measure in study.measures if measure.title not in table.columns]
    meant = pd.DataFrame(
        [(measure.title, measure.definition) for measure in study.measures], columns=["measure", "what it means"]
    )
    card = Card(
        "Study",
        "means with 95 % intervals over trials" if settings["trials"] > 1 else "one trial, so no intervals",
        done,
        study.complete,
        facts,
        pictures=_regrets(study),
        body=f"<div class='osilp-wide'>{data_table(table)}</div>",
        folds=[
            ("The other measures", data_table(_upright(study.table(rest), rest, study.measures), rows=len(rest))),
            ("What every number means", data_table(meant, rows=len(meant), letters=_DEFINITION)),
        ],
    )
    return card.html()


def _upright(table: pd.DataFrame, columns: list[str], measures: Any) -> pd.DataFrame:
    """A table of many measures with a line for each, and a column for each policy."""
    titles = [measure.title for measure in measures if measure.column in columns]
    keys = [name for name in table if name not in titles]
    upright = table.set_index(keys)[titles].T.rename_axis("measure")
    upright.columns = [", ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in upright.columns]
    return upright


def _regrets(study: Any) -> list[str]:
    """Regrets of the policies against the first benchmark, where one horizon and one grid were run."""
    if not study.benchmarks:
        return []
    summary = study.summary()
    if len(summary.index.droplevel(["policy", "guard"]).unique()) > 1:
        return []
    column = f"relative_regret_{study.benchmarks[0]}"
    measure = next(each for each in study.measures if each.column == column)
    guards = summary.index.get_level_values("guard")
    rows = [
        (policy if len(set(guards)) == 1 else f"{policy}, {guard}", *(100 * numbers).tolist())
        for policy, guard, numbers in zip(
            summary.index.get_level_values("policy"), guards, summary[column].to_numpy(dtype=float), strict=True
        )
    ]
    return [intervals(rows, "%", measure.title)]
