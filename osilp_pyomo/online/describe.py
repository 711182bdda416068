"""What was understood of a model, in words, with the constants of the paper's assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from osilp_pyomo._displays import MOST_SHOWN, cut
from osilp_pyomo._jit import HAS_NUMBA
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, Batch
from osilp_pyomo.online.stages.template import Arrivals

# Arrivals that the constants are taken from.
_ARRIVALS = 2000


def describe(program: ProgramData, own: Arrivals, guard: str, policy: str, horizon: int) -> str:
    """Objective, rows, decisions, data, resources, solver, guard, and the assumptions with their constants."""
    template, evaluator = program.template, program.evaluator
    # Sums of thousands of terms are cut short, and of thousands of rows or decisions the first ones are told.
    texts = {name: cut(text) for name, text in template.texts.items()}
    lines = [
        f"{horizon} arrivals are expected; each brings {_data(program)}",
        f"  {'earn' if template.maximize else 'pay':4}      f = {texts['objective'] or 0}",
    ]
    for family in template.families[:MOST_SHOWN]:
        sides = " and ".join(
            f"at most {texts[f'upper limit {family.name}']}"
            if sign > 0
            else f"at least {texts[f'lower limit {family.name}']}"
            for sign in family.sides
        )
        lines.append(f"  use       g = {texts[family.name]}")
        lines.append(f"            of '{family.name}', for all {family.domain}, {sides} over the horizon")
        if family.mixed:
            lines.append(
                f"            {family.mixed[0].text} mixes index and decision: each step looks at every grid point"
            )
    lines += _more(template.families, "rows over an index")
    for row in template.rows[:MOST_SHOWN]:
        kind = "exactly" if row.equality else "between" if None not in (row.lower, row.upper) else (
            "at most" if row.lower is None else "at least"
        )  # fmt: skip
        limits = [f"{limit:g}" for limit in dict.fromkeys((row.lower, row.upper)) if limit is not None]
        lines.append(
            f"  use       g = {texts[row.name]} of '{row.name}', {kind} {' and '.join(limits)} over the horizon"
        )
    lines += _more(template.rows, "ordinary rows")
    decisions = list(zip(template.decisions, template.integer, strict=True))
    for number, (label, integer) in enumerate(decisions[:MOST_SHOWN]):
        low, high = (_end(texts[f"{side} {number}"], side) for side in ("lower", "upper"))
        within = "0 or 1" if integer and (low, high) == ("0", "1") else f"in [{low}, {high}]"
        lines.append(f"  decide    {label} {within}{', whole numbers' if integer and within != '0 or 1' else ''}")
    lines += _more(decisions, "decisions")
    for own_row in template.own_rows[:MOST_SHOWN]:
        sign = "==" if own_row.equality else "<="
        lines.append(f"            with '{own_row.name}': {texts[f'own {own_row.name}']} {sign} 0")
    lines += _more(template.own_rows, "rows of a stage")
    if template.hidden is not None:
        lines.append(
            f"  hidden    {template.hidden.row} holds constants that are no mutable Param: replay works, step does not"
        )
    for number in range(len(template.families[:MOST_SHOWN])):
        basis = evaluator.functionals[number].basis
        lines.append(
            f"  resources {len(evaluator.functionals[number])} of '{template.families[number].name}', by {basis!r}; "
            f"guards look at {len(evaluator.points[number])} points"
        )
    lines.append(f"  stage     {program.stage_solver}; f and g are {program.curvature}")
    lines.append(
        f"  loop      {'compiled by numba' if HAS_NUMBA else 'plain numpy (pip install osilp-pyomo[fast] compiles it)'}"
    )
    lines.append(f"  policy    {policy}")
    why = program.guard_objection or program.null_objection
    lines.append(f"  guard     {guard} unless another is named{f' ({why})' if why else ''}")
    if why is None and program.must_serve is not None:
        lines.append(f"            every arrival must be served ({program.must_serve}): by any decision that fits")
    if why is None and program.needs(POINTWISE).any():
        lines.append("            lower limits are kept by what is still needed and what can still come")
    return "\n".join(lines + _assumptions(program, own, horizon))


def _more(entries: Sequence[Any], what: str) -> list[str]:
    """A line for those that are not told."""
    return [f"            ... and {len(entries) - MOST_SHOWN:,} more {what}"] if len(entries) > MOST_SHOWN else []


def _end(text: str, side: str) -> str:
    """A bound as text; that of a binary variable without bounds of its own is 'max(0, 0)'."""
    if not text:
        return "-inf" if side == "lower" else "inf"
    return {"max(0, 0)": "0", "min(1, 1)": "1"}.get(text, text)


def formulas(program: ProgramData) -> dict[str, Any]:
    """What the model says, as texts by part, for pages that show it as mathematics."""
    template = program.template
    texts = template.texts
    rows = [
        {
            "name": family.name,
            "use": texts[family.name],
            "side": "<=" if sign > 0 else ">=",
            "limit": texts[f"{'upper' if sign > 0 else 'lower'} limit {family.name}"],
            "index": str(family.domain),
            "axes": list(family.domain.names),
        }
        for family in template.families
        for sign in family.sides
    ]
    ordinary = [
        {"name": row.name, "use": texts[row.name], "side": side, "limit": f"{limit:g}"}
        for row in template.rows
        for side, limit in (("==", row.upper),) * row.equality or (("<=", row.upper), (">=", row.lower))
        if limit is not None
    ]
    own = [
        {"name": row.name, "use": texts[f"own {row.name}"], "side": "==" if row.equality else "<=", "limit": "0"}
        for row in template.own_rows
    ]
    decisions = [
        {
            "name": str(label),
            "lower": texts[f"lower {number}"] or "-inf",
            "upper": texts[f"upper {number}"] or "inf",
            "integer": bool(integer),
        }
        for number, (label, integer) in enumerate(zip(template.decisions, template.integer, strict=True))
    ]
    return {
        "sense": "maximize" if template.maximize else "minimize",
        "horizon": program.horizon,
        "objective": texts["objective"] or "0",
        "offset": f"{template.offset:g}",
        "rows": rows,
        "ordinary": ordinary,
        "own": own,
        "decisions": decisions,
        "data": _data(program),
    }


def _data(program: ProgramData) -> str:
    names = []
    for name, numbers in program.intake.by_name.items():
        field = program.template.fields[numbers[0]]
        kind = "a curve" if field.curve is not None else f"{len(numbers)} numbers" if len(numbers) > 1 else "a number"
        names.append(f"{name} ({kind})")
    return ", ".join(names) or "no data"


def _assumptions(program: ProgramData, own: Arrivals, horizon: int) -> list[str]:
    """Assumptions 1 and 6 of the paper on the model's own arrivals, and the bound that follows where they hold."""
    for value in own.values:
        if value.missing if isinstance(value, CurveStack) else np.isnan(value).any():
            return ["  theory    the model's own arrivals have no values, so the constants are not known"]
    batch = program.evaluator.batch(own.part(slice(0, _ARRIVALS)), keep_points=False)
    evaluator = program.evaluator
    budget = evaluator.resources[PROJECTED].total / horizon
    some = batch.part(slice(0, 200))
    failing = _failing(program, budget, some)
    if failing:
        return [f"  theory    an assumption of the paper fails: {failing}; its bounds do not hold"]
    ends = [some.lower, some.upper]
    largest_reward = max(float(np.abs(evaluator.reward(some, end)).max()) for end in ends)
    largest_use = max(float(np.abs(evaluator.used(some, end)).max()) for end in ends)
    count = len(budget)
    lines = [
        f"  theory    an arrival earns up to {largest_reward:.3g} and uses up to {largest_use:.3g} of a resource;",
        f"            there is {budget.min():.3g} to {budget.max():.3g} an arrival of each of the {count} (looked at: "
        f"{len(some)} arrivals of the model)",
    ]
    step = count * (largest_use + float(budget.max())) ** 2
    bound = np.sqrt(horizon) * (step / 2 + largest_reward**2 / (2 * float(budget.min()) ** 2))
    told = f"is {bound:.3g}"
    if bound > horizon * largest_reward:
        told = "says nothing here: it is more than all arrivals could earn"
    lines.append(f"            the paper's bound on the regret of its Algorithms 1 and 2 (i.i.d., no guard) {told}")
    return lines


def _failing(program: ProgramData, budget: object, batch: Batch) -> str | None:
    """Which of the paper's assumptions fails, if one does."""
    if np.min(np.asarray(budget)) <= 0:
        at = int(np.argmin(np.asarray(budget)))
        return (
            f"every test function needs a budget > 0, as its Theorem 1 uses (min Phi'd >= D > 0), and "
            f"'{program.evaluator.labels()[at]}' has {np.min(np.asarray(budget)):.3g}"
        )
    if (why := program.guard_objection or program.idle_objection) is not None:
        return f"0 must be allowed and use nothing, and {why}"
    if not (np.all(np.isfinite(batch.lower)) and np.all(np.isfinite(batch.upper))):
        return "decisions must be bounded, and some have no bound"
    return None
