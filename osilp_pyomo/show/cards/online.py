"""Cards of online use: programs, controllers, decisions, runs and regrets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._displays import cut
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.online.describe import formulas
from osilp_pyomo.show.cards.card import Card, count_of, data_table, labelled, number_text
from osilp_pyomo.show.cards.sketches import BLUE, TEXT, Line, sketch
from osilp_pyomo.show.mathml import model_mathml

# Rows of a model that are shown as mathematics, and pictures of one card.
_ROWS, _PICTURES = 6, 3
# Decisions of a run that are shown as a table.
_DECISIONS = 12


def program_card(program: Any) -> str:
    """A program: the model that it understood, as mathematics."""
    model = formulas(program)
    short, more = dict(model), 0
    for part in ("rows", "ordinary", "own", "decisions"):
        more += max(0, len(model[part]) - _ROWS)
        short[part] = [_short(each) for each in model[part][:_ROWS]]
    short["objective"] = cut(model["objective"])
    rest = f"<div class='osilp-dim'>... and {more:,} lines more</div>" if more else ""
    count = program.evaluator.resources["projected"].size
    facts = [
        ("arrivals", f"{program.horizon:,}; each brings {cut(model['data'])}"),
        ("resources", f"{count:,} of test functions and ordinary rows"),
        ("guard", f"{program.default_guard} unless another is named"),
        ("more", "print(program.describe())"),
    ]
    body = f"<div class='osilp-wide'>{model_mathml(short)}{rest}</div>"
    return Card("Online program", f"{count_of(program.horizon, 'arrival')}", facts=facts, body=body).html()


def _short(part: dict[str, Any]) -> dict[str, Any]:
    return {name: cut(text) if isinstance(text, str) else text for name, text in part.items()}


def controller_card(controller: Any) -> str:
    """A controller: how far it is, what it earned, and what is left along the index."""
    earned = "reward so far" if controller.program.template.maximize else "cost so far"
    facts = [
        ("arrivals", f"{controller.t:,} of {controller.horizon:,} met"),
        (earned, number_text(controller.reward)),
        ("policy", cut(repr(controller.policy))),
        ("guard", controller.guard),
    ]
    pictures: list[str] = []
    domains = {family.name: family.domain for family in controller.program.template.families}
    if domains and controller.knows_use_at_points:
        pictures = _use_sketches(controller.remaining_over_index, domains)
    return Card("Controller", facts=facts, pictures=pictures).html()


def decision_card(decision: Any) -> str:
    """What was decided for one arrival."""
    facts = [
        ("reason", decision.reason),
        ("reward", number_text(decision.reward)),
    ]
    if not isinstance(decision.x, dict):
        facts = [("x", number_text(decision.x)), ("wanted", number_text(decision.wanted)), *facts]
        return Card("Decision", f"for arrival {decision.t:,}", facts=facts).html()
    frame = pd.DataFrame(
        {
            "variable": [str(name) for name in decision.x],
            "x": list(decision.x.values()),
            "wanted": list(decision.wanted.values()),
        }
    )
    return Card("Decision", f"for arrival {decision.t:,}", facts=facts, body=data_table(frame)).html()


def regret_card(regret: Any) -> str:
    """How much less a run earned than its benchmark."""
    share = "" if np.isnan(regret.relative) else f" ({100 * regret.relative:.4g} %)"
    facts = [("regret", f"{number_text(regret.value)}{share}"), ("against", regret.benchmark)]
    return Card("Regret", facts=facts).html()


def run_card(run: Any) -> str:
    """A run: what it earned and kept, and use against capacity along the index."""
    head, facts = labelled(run.lines())
    folds = []
    if hasattr(run, "decisions"):
        first = run.decisions.iloc[:_DECISIONS]
        frame = first.to_frame() if isinstance(first, pd.Series) else first.copy()
        frame.columns = [str(name) for name in frame.columns]
        frame["reason"], frame["reward"] = run.reasons.iloc[:_DECISIONS], run.rewards.iloc[:_DECISIONS]
        count = len(run.decisions)
        rest = f"<div class='osilp-dim'>... and {count - len(frame):,} more</div>" if count > len(frame) else ""
        folds.append((f"Decisions: {count:,}", data_table(frame) + rest))
    policy, _, rest = head.rpartition(", guard ")
    guard, _, came = rest.partition(": ")
    pictures = _use_sketches(run.use_along_index(), run.domains) if run.uses else []
    told = [("policy", cut(policy)), ("guard", guard), ("arrivals", came), *facts]
    return Card("Run", facts=told, pictures=pictures, folds=folds).html()


def _use_sketches(left: pd.DataFrame, domains: dict[str, Domain]) -> list[str]:
    """Use against the limit along the index, of the first rows that have one coordinate."""
    found: list[str] = []
    for name, part in left.groupby("row", sort=False):
        domain = domains[str(name)]
        if len(found) == _PICTURES or domain.dimension > 1 or not domain.bounded or domain.body is not None:
            continue
        ends = (float(domain.lower[0]), float(domain.upper[0]))
        at, limit = part["index"].to_numpy(dtype=float), part["limit"].to_numpy()
        lines = [
            Line(at, limit - part["remaining"].to_numpy(), BLUE, "area"),
            Line(at, limit, TEXT, dashed=True),
        ]
        found.append(sketch(lines, domain.names[0], ends, f"use of '{name}' and its limit (dashed)"))
    return found
