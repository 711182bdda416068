"""What a result prints: lines that explain themselves, in the user's own names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from osilp_pyomo._displays import some_of

T = TypeVar("T")

# How a worst row was found, as the end of a sentence.
_HOW = {
    "closed form": "in closed form",
    "linear program": "by linear programs",
    "convex program": "by convex programs that prove it",
    "enumeration": "by trying every scenario",
    "concave rows": "by a climb, for the row is concave in the vector",
    "sweep": "by a sweep over all steps",
}
# A bound that is nothing but what was added lest it be too small.
_NOTHING = 1e-300
# What a violation may be worth, as a share of the objective, without being told.
_OPTIMISM = 1e-6
# What to do where prices do not prove a bound.
_UNPROVED_BOUND = "give the variables bounds, or measure them in units nearer to each other"
_ROUNDED_BOUND = (
    "where the prices are, rounding hides what rows are, of their terms or of where their conditions switch; write "
    "them without large numbers that cancel"
)
# What a status without values means.
_WITHOUT_ANSWER = {
    "infeasible": "no values satisfy all rows, ordinary constraints and bounds together",
    "unbounded": "the objective {moves} without limit: a row or a bound that stops it is missing",
    "infeasible_or_unbounded": "HiGHS could not tell which of both it is",
    "undecided": "it seems to be infeasible or unbounded, and nothing proves that",
    "time_limit": "it was stopped before there was an answer",
    "iteration_limit": "it was stopped before there was an answer",
}
# Families, or parts of a conflict, that a print speaks of one by one.
_MOST_SHOWN = 6
# What is left of an equation, from which on the place is told.
_SHOWN_MISS = 1e-9
# Places or bounds of one line of a conflict that are named one by one.
_MOST_NAMED = 3


def text_of(result: Any) -> str:
    """What a result prints."""
    return "\n".join(result_lines(result))


def result_lines(result: Any) -> list[str]:
    """What there is to say of a result, a line for each thing."""
    lines = [f"{result.method}: {result.status} in {result.seconds:.2f} s"]
    if result.answer is None:
        moves = "grows" if result.sense == "maximize" else "falls"
        why = _WITHOUT_ANSWER.get(result.status, "there is no answer").format(moves=moves)
        more = [*_conflict_lines(result), *_used_lines(result), *_remark_lines(result)]
        return [f"{lines[0]}; {why}", *more]
    unit = f" {result.units.objective}" if result.units.objective else ""
    lines.append(f"  objective  {result.objective:.10g}{unit} ({result.sense})")
    lines += _remark_lines(result)
    if _had_a_choice(result):
        lines.append(f"  method     {result.method}: {result.why}")
    if result.policy is not None:
        return [*lines, *_policy_lines(result)]
    lines.append(_bound_line(result))
    lines += _used_lines(result)
    lines += _equation_lines(result)
    by_size = sorted(
        (item for item in result.answer.violation.items() if item[0] not in result.equations), key=lambda item: -item[1]
    )
    for name, worst in _shown(by_size):
        if worst > 0:
            lines.append(f"  violation  {worst:.2g} of '{name}', worst at {_worst_place(result, name)}")
        else:
            lines.append(f"  violation  none of '{name}', which is tightest at {_worst_place(result, name)}")
    lines += _others(by_size, "  violation  at most {:.2g} of {} other families", lambda item: item[1])
    if np.isfinite(result.test_violation):
        lines.append(f"             {result.test_violation:.2g} against the test functions")
    if result.answer.price is None:
        lines.append("  price      none: the model has integer variables")
    else:
        by_total = sorted(result.answer.price.values(), key=lambda price: -abs(price.total))
        lines.extend(f"  price      {price!r}" for price in _shown(by_total))
        lines += _others(by_total, "  price      total at most {:.6g} for {} other families", lambda p: abs(p.total))
    lines += _unit_lines(result)
    lines += _separation_lines(result)
    lines += _proof_lines(result)
    lines.append(f"  audit      {result.audit}")
    held = "rows that duality made of them" if result.method == "counterpart" else "semi-infinite rows held at the end"
    lines.append(f"  size       {result.rows} {held}, {_bytes(result.memory)}")
    if len(result.integrals):
        worst = result.integrals.loc[result.integrals["error"].idxmax()]
        lines.append(f"  integrals  {len(result.integrals)}, with an estimated error of at most {worst['error']:.1e}")
    restarts = int(result.log["restarts"].iloc[-1]) if "restarts" in result.log else 0
    if restarts:
        lines.append(f"  trouble    HiGHS was begun anew {restarts} times after numerical trouble")
    sampled = [name for name, route in result.routes.items() if route == "sampled"]
    if sampled:
        lines.append(f"  sampled    {', '.join(some_of(sampled))}: the rule was called at each point")
    return lines


def _had_a_choice(result: Any) -> bool:
    """Whether rows are of a kind that exchange and duality both solve, and nobody asked for one of them."""
    return not result.why.endswith("was asked for") and bool(result.proof["how"].isin(["closed form", "cone"]).any())


def _bound_line(result: Any) -> str:
    """What is known of the optimum, and from what."""
    side = "above" if result.sense == "maximize" else "below"
    if not result.answer.audit.families:
        return "  bound      the objective: there are no semi-infinite rows"
    if result.method in ("discretized", "projected") and not result.reached:
        where = "at the grid points" if result.method == "discretized" else "against the test functions"
        return f"  bound      the optimum is not {side} {result.bound:.10g}; the rows hold {where} only"
    if not result.reached:
        return f"  bound      the optimum is not {side} {result.bound:.10g}; stopped early, no feasible values yet"
    if result.method == "counterpart" and result.gap == 0:
        return "  bound      the objective: the counterpart is the same problem in finitely many rows"
    low, high = result.bracket
    how = "feasible values, moved there a little" if result.answer.repaired else "feasible values"
    if not result.certified:
        how = "not certified" if result.feasible else "no feasible values"
    return f"  bracket    [{low:.10g}, {high:.10g}], gap {result.gap:.2g}; {how}"


def _policy_lines(result: Any) -> list[str]:
    """What is known of the best of all policies."""
    low, high = result.bracket
    known = "of all policies" if result.certified else "not certified"
    whole = result.why.partition(": ")[2]
    return [
        f"  bracket    [{low:.10g}, {high:.10g}], gap {result.gap:.2g}; {known}",
        f"  vertices   {whole or 'see result.log'}",
        "  policy     a program for each vector: result.function(...), result.simulate(draws); it has no coefficients",
    ]


def _unit_lines(result: Any) -> list[str]:
    """Units of rows, prices and index, where the model has some."""
    prices = {name: f", price {unit}" for name, unit in result.units.prices.items()}
    told = [f"'{name}' {unit}{prices.get(name, '')}" for name, unit in result.units.rows.items()]
    told = [*_shown(told), *(f"{name} {unit}" for name, unit in result.units.index.items())]
    return [f"  units      {'; '.join(told)}"] if told else []


def _equation_lines(result: Any) -> list[str]:
    """What is left of rows that are equations at every point."""
    lines = []
    for how, told in (("matched", "hold as functions"), ("collocated", "hold at single points only")):
        names = [name for name, each in result.equations.items() if each == how]
        if not names:
            continue
        worst = max(names, key=lambda name: result.answer.violation[name])
        called = f"'{worst}'" if len(names) == 1 else f"{len(names)} '==' rows"
        missed = result.answer.violation[worst]
        at = f", missed by at most {missed:.2g}" if missed > 0 else ""
        where = (
            f" of '{worst}' at {_worst_place(result, worst)}"
            if missed > _SHOWN_MISS and len(names) > 1
            else (f" at {_worst_place(result, worst)}" if missed > _SHOWN_MISS else "")
        )
        verb = told if len(names) > 1 else told.replace("hold", "holds").replace("as functions", "as a function")
        lines.append(f"  equations  {called} {verb}{at}{where}")
    return lines


def _used_lines(result: Any) -> list[str]:
    """Whose rows those are that were written for worst cases."""
    told = []
    for block, users in _shown(list(result.used_by.items())):
        names = " and ".join(f"'{name}'" for name in users[:_MOST_NAMED])
        rest = f" and {len(users) - _MOST_NAMED} others" if len(users) > _MOST_NAMED else ""
        told.append(f"  worst case '{block}' is that in {names}{rest}")
    more = len(result.used_by) - len(told)
    return [*told, *([f"             and {more} others; see result.used_by"] if more else [])]


def _remark_lines(result: Any) -> list[str]:
    return [f"  remark     {result.remark}"] if result.remark else []


def _conflict_lines(result: Any) -> list[str]:
    """What cannot hold together, rows before bounds."""
    if not len(result.conflict):
        return []
    groups: dict[Any, list[Any]] = {}
    for part in result.conflict.itertuples(index=False):
        # A constraint has one part, a family one for each of its places; bounds are alike.
        groups.setdefault((part.kind, part.side, part.name if part.kind != "bound" else ""), []).append(part)
    told = [_conflict_line(result, parts) for parts in groups.values()]
    head = "these cannot hold together:" if len(result.conflict) > 1 else "this cannot hold, whatever the values:"
    rest = [f"and more, {len(told) - _MOST_SHOWN} lines like these; all parts are in result.conflict"]
    shown = told if len(told) <= _MOST_SHOWN else told[:_MOST_SHOWN] + rest
    return [f"  conflict   {head}", *(f"             {text}" for text in shown)]


def _conflict_line(result: Any, parts: Sequence[Any]) -> str:
    """Parts of a conflict that differ in their places only, or bounds on the same side."""
    first, count = parts[0], len(parts)
    limits = sorted({f"{part.limit:.6g}": part.limit for part in parts}.items(), key=lambda item: item[1])
    limit = limits[0][0] if len(limits) == 1 else f"{limits[0][0]} to {limits[-1][0]}"
    if first.kind == "bound":
        names = [part.name for part in parts]
        called = f"bound of {names[0]}" if count == 1 else f"bounds of {', '.join(names)}"
        if count > _MOST_NAMED:
            called = f"bounds of {count:,} variables, such as {names[0]}"
    elif first.kind == "constraint":
        called = f"'{first.name}'"
    elif first.kind == "row":
        where = [_place(result, first.name, part.place) for part in parts[:_MOST_NAMED]]
        called = f"'{first.name}' at {' and '.join(where)}"
        if count > _MOST_NAMED:
            called = f"'{first.name}' at {count:,} places, such as {' and '.join(where[:2])}"
    else:
        numbers = ", ".join(str(part.place) for part in parts[:_MOST_NAMED])
        called = f"'{first.name}' against test function{'s' if count > 1 else ''} {numbers}"
        if count > _MOST_NAMED:
            called = f"'{first.name}' against {count:,} test functions, such as {numbers}"
    return f"{called}, {first.side} {limit}"


def _worst_place(result: Any, family: str) -> str:
    """Where a family is most violated, or tightest."""
    return _place(result, family, result.answer.worst_index[family])


def _place(result: Any, family: str, index: Any) -> str:
    """A point with the names of the family's index."""
    names, place = result.indices[family], _short(index)
    if len(names) == 1:
        return f"{names[0]} = {place}"
    # The entries of a vector are called xi[0], xi[1], ...
    vector = {name.partition("[")[0] for name in names}
    called = vector.pop() if len(vector) == 1 else f"({', '.join(names)})"
    return f"{called} = {place}"


def _separation_lines(result: Any) -> list[str]:
    """How exactly rows were separated."""
    ways: dict[str, int] = {}
    how = result.proof["how"].to_dict()
    for family, way in result.separation.items():
        # A climb is as certain as the proof that nothing is higher.
        proved = way != "concave rows" or how.get(family) == "concave"
        ways[way if proved else "search"] = ways.get(way if proved else "search", 0) + 1
    if set(ways) == {"search"}:
        return []
    lines = [
        f"  exact      the worst row was found for certain {_how(way)}, in {count} of {len(result.separation)} families"
        for way, count in ways.items()
        if way != "search"
    ]
    return lines


def _how(way: str) -> str:
    """The end of the sentence; over a product of sets each part has its way."""
    return " and ".join(_HOW.get(part, part) for part in way.split(" and "))


def _proof_lines(result: Any) -> list[str]:
    """What is proved of the rows, and what to do about the rest."""
    proof, answer = result.proof, result.answer
    if not len(proof):
        return []
    enclosed = proof[proof["how"] == "enclosure"]
    lines = []
    if answer.proved:
        took = f" ({int(enclosed['boxes'].sum()):,} boxes, {enclosed['seconds'].sum():.2g} s)" if len(enclosed) else ""
        largest = float(proof["largest"].max())
        kept = (
            "no row is violated anywhere" if largest <= _NOTHING else f"no row is violated by more than {largest:.2g}"
        )
        lines.append(f"  proof      {kept} on the whole index{took}")
        if not answer.bound_proved:
            hidden = answer.audit.rounding_of_rows > answer.audit.rounding / 2
            lines.append(f"             the bound is not proved: {_ROUNDED_BOUND if hidden else _UNPROVED_BOUND}")
        if answer.optimism > _OPTIMISM:
            lines.append(f"             at the prices that is worth up to {answer.optimism:.2g} of the objective")
        return lines
    told = zip(proof[["how", "largest", "open"]].itertuples(name=None), answer.reasons, strict=True)
    open_ones = [(*line, why) for line, why in told if why]
    for name, how, largest, place, why in open_ones[:_MOST_NAMED]:
        lines.append(f"  proof      none for '{name}': {_why_open(result, name, how, largest, place, why)}")
    if len(open_ones) > _MOST_NAMED:
        lines.append(f"             and none for {len(open_ones) - _MOST_NAMED} other families; see result.proof")
    return lines


def _why_open(result: Any, name: str, how: str, largest: float, place: Any, why: str) -> str:
    if how == "grid":
        return why
    if how == "search":
        return f"{why}; a peak much narrower than the scan's steps can escape"
    if place is None:
        return why
    where = _place(result, name, place)
    if why.startswith("nothing bounds"):
        return f"{why}, near {where}; leave such places out by where="
    limit = f"at most {largest:.2g} can be missed" if np.isfinite(largest) else "its enclosure there is infinite"
    return f"{why} near {where}, where {limit}; proof=True goes on"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1.0, count / 1e3):.0f} kB"


def _shown(entries: Sequence[T]) -> Sequence[T]:
    """The first few of many entries, which come largest first."""
    return entries if len(entries) <= _MOST_SHOWN else entries[: _MOST_SHOWN - 3]


def _others(entries: Sequence[T], text: str, size: Callable[[T], float]) -> list[str]:
    """One line for the entries that are not shown, with the size of the largest."""
    shown = len(_shown(entries))
    return [] if shown == len(entries) else [text.format(size(entries[shown]), len(entries) - shown)]


def _short(index: Any) -> str:
    """A point, long vectors cut short and rounded."""
    if not isinstance(index, tuple):
        return f"{index:.6g}"
    if len(index) == 1:
        return f"{index[0]:.6g}"
    numbers = [f"{number:.6g}" for number in index]
    if len(numbers) > 6:
        numbers = [*numbers[:4], "...", numbers[-1]]
    return f"({', '.join(numbers)})"
