"""What a study is asked to do: checked, made a plan, and told for the record."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from osilp_pyomo._options import SEED, whole_number
from osilp_pyomo._version import __version__
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.index.grids import Points
from osilp_pyomo.online.controller import GUARDS
from osilp_pyomo.online.describe import formulas
from osilp_pyomo.online.forecast import Foretold
from osilp_pyomo.online.policies import Policy, policy_record
from osilp_pyomo.online.program import BUDGETS, OFFLINE, OnlineProgram, read_forecast
from osilp_pyomo.online.stages.template import Arrivals
from osilp_pyomo.studies.orders import check_by
from osilp_pyomo.studies.trial import ORDERS, Entrant, Job, Plan


def make_plan(
    program: OnlineProgram,
    policies: Any,
    *,
    data: Any,
    profiles: Any,
    trials: int,
    order: str,
    sampler: Any,
    horizons: Any,
    grids: Any,
    guards: Any,
    benchmarks: Any,
    budget: str,
    null: Any,
    forecast: Any,
    seed: int,
    by: Any = None,
) -> Plan:
    """The plan of a study; all that was asked for is checked before anything runs."""
    if not isinstance(program, OnlineProgram):
        raise OptionError(
            f"compare: program must be an OnlineProgram, made by compile_online (got {type(program).__name__})."
        )
    trials = whole_number(trials, "compare: trials")
    if order not in ORDERS:
        raise OptionError(f"compare: order must be one of {', '.join(map(repr, ORDERS))} (got {order!r}).")
    if budget not in BUDGETS:
        raise OptionError(f"compare: budget must be 'per_arrival' or 'total' (got {budget!r}).")
    SEED.check(seed, "compare")
    if sampler is not None and not callable(sampler):
        raise OptionError(f"compare: sampler must be a function of (rng, horizon) (got {type(sampler).__name__}).")
    if sampler is not None and (data is not None or profiles is not None):
        raise OptionError(
            "compare: data= or profiles= came with sampler=; arrivals come from one of them, and a sampler brings the "
            "curves of its arrivals itself."
        )
    check_by(program, order, by)
    if trials > 1 and order == "given" and sampler is None:
        raise OptionError(
            f"compare: {trials} trials of the same arrivals in the same order would all be equal; use "
            "order='permutation' or 'iid', or a sampler=, or trials=1."
        )
    chosen = _chosen(benchmarks, OFFLINE, "benchmarks")
    if "discretized" in chosen and not program.template.linear:
        raise OptionError("compare: the benchmark 'discretized' is for linear stages only.")
    source = None if sampler is not None else program.arrivals(data, profiles)
    sizes = _horizons(program, source, order, horizons)
    if trials > 1 and order == "sorted" and source is not None and len(source) in sizes:
        raise OptionError(
            f"compare: {trials} trials of the same arrivals sorted would all be equal; use order='drift', fewer "
            "arrivals by horizons=, or a sampler=, or trials=1."
        )
    placed = _several(grids, "grids", "grids such as Midpoint(500)")
    entrants = _entrants(program, policies, guards)
    foretold = read_forecast(program, forecast, [entrant.policy for entrant in entrants], "compare")
    if foretold is not None and foretold.ordered and order == "permutation":
        raise OptionError(
            "compare: the forecast has an order, and order='permutation' takes it away from the arrivals; give it as "
            "osilp_pyomo.Forecast(frame), without times, so that it has none."
        )
    plan = Plan(program, entrants, source, sampler, order, sizes, placed, chosen, budget, null, int(seed), foretold, by)
    for grid in range(len(placed)):
        # What a policy or a grid refuses, it refuses now and not in the middle.
        fitted = plan.program_for(sizes[0], grid)
        for entrant in entrants:
            fitted.controller(entrant.policy, entrant.guard, null=null, forecast=plan.forecast_of(entrant))
    return plan


def _several(given: Any, name: str, what: str) -> tuple[Any, ...]:
    if given is None:
        return (None,)
    chosen = () if isinstance(given, str | Mapping) or not isinstance(given, Iterable) else tuple(given)
    if not chosen:
        raise OptionError(f"compare: {name} must be a list of {what}, at least one (got {given!r}).")
    return chosen


def _chosen(given: Any, known: Sequence[str], name: str) -> tuple[str, ...]:
    chosen = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not chosen:
        raise OptionError(f"compare: {name} must name at least one of {', '.join(map(repr, known))} (got {given!r}).")
    for each in chosen:
        if each not in known:
            raise OptionError(f"compare: {name} must be among {', '.join(map(repr, known))} (got {each!r}).")
    return tuple(dict.fromkeys(chosen))


def _horizons(program: OnlineProgram, source: Arrivals | None, order: str, horizons: Any) -> tuple[int, ...]:
    sizes: tuple[int, ...] = (program.horizon,)
    if horizons is not None:
        given = _several([horizons] if isinstance(horizons, int) else horizons, "horizons", "whole numbers")
        sizes = tuple(dict.fromkeys(whole_number(each, "compare: a horizon", 2) for each in given))
    if source is None:
        return sizes
    if not len(source):
        raise DataError("compare: there are no arrivals.")
    if order == "iid":
        return sizes
    if horizons is None and len(source) != program.horizon:
        raise DataError(
            f"compare: there are {len(source)} arrivals, and the program expects {program.horizon}; say how many a "
            f"trial has by horizons=[{min(len(source), program.horizon)}] (budget= says whether limits follow), or "
            "draw with replacement by order='iid'."
        )
    if max(sizes) > len(source):
        raise DataError(
            f"compare: a horizon of {max(sizes)} was asked for, and there are {len(source)} arrivals; draw with "
            "replacement by order='iid', or give more data."
        )
    return sizes


def _entrants(program: OnlineProgram, policies: Any, guards: Any) -> tuple[Entrant, ...]:
    """Every policy under every guard that it runs under, guard by guard."""
    if isinstance(guards, Iterable) and not isinstance(guards, str | Mapping):
        guards = tuple(guards)
    named = _policies(policies)
    under = {name: _guards_of(program, name, guards) for name in named}
    if isinstance(guards, Mapping):
        for name in guards:
            if name not in named:
                raise OptionError(
                    f"compare: guards= has an entry for '{name}', which is no policy here; they are "
                    f"{', '.join(map(repr, named))}."
                )
    order = dict.fromkeys(guard for each in under.values() for guard in each)
    return tuple(
        Entrant(name, policy, guard) for guard in order for name, policy in named.items() if guard in under[name]
    )


def _policies(given: Any) -> dict[str, Policy]:
    """The policies by name: the names that were given, or what they are."""
    if isinstance(given, Mapping):
        named = dict(given)
        for name in named:
            if not isinstance(name, str) or not name.strip() or not name.isprintable():
                raise OptionError(f"compare: a policy's name must be a text that can be printed (got {name!r}).")
    else:
        several = isinstance(given, Iterable) and not isinstance(given, str)
        named = _named(list(given) if several else [given])
    if not named:
        raise OptionError("compare: there is no policy to run; give at least one, such as Resolve().")
    for policy in named.values():
        if not isinstance(policy, Policy):
            hint = f"{policy.__name__}()" if isinstance(policy, type) else "MirrorDescent()"
            raise OptionError(f"compare: policies must be policies such as {hint} (got {policy!r}).")
    return named


def _guards_of(program: OnlineProgram, name: str, guards: Any) -> tuple[str, ...]:
    """The guards that one policy runs under."""
    chosen = guards.get(name) if isinstance(guards, Mapping) else guards
    if chosen is None:
        return (program.default_guard,)
    return _chosen(chosen, GUARDS, "guards")


def _named(policies: Sequence[Any]) -> dict[str, Any]:
    """Policies by their class and what they were given beyond the defaults; a number tells equal ones apart."""
    named: dict[str, Any] = {}
    for policy in policies:
        name = unique = _text(policy)
        count = 2
        while unique in named:
            unique, count = f"{name} ({count})", count + 1
        named[unique] = policy
    return named


def _text(policy: Any) -> str:
    """A policy with the arguments that are not at their defaults."""
    arguments = policy_record(policy)["arguments"] if isinstance(policy, Policy) else None
    if arguments is None:
        text = _without_address(repr(policy))
        return type(policy).__name__ if text.startswith("<") else text
    defaults = {name: field.default for name, field in type(policy).__dataclass_fields__.items()}
    changed = {name: value for name, value in arguments.items() if value != defaults.get(name)}
    told = [value if isinstance(value, str) else f"{name}={value!r}" for name, value in changed.items()]
    return f"{type(policy).__name__}({', '.join(told)})" if told else type(policy).__name__


def settings_of(plan: Plan, trials: int, digest: bool) -> dict[str, Any]:
    """What a study is, for the record: texts and numbers, with versions and seed.

    With ``digest`` it tells the data of one study from those of another; a sampler is known by what it draws first.
    """
    program = plan.program
    under: dict[tuple[str, str], list[str]] = {}
    for entrant in plan.entrants:
        under.setdefault((entrant.name, _text_of(entrant.policy)), []).append(entrant.guard)
    sampler = plan.sampler if plan.sampler is None or hasattr(plan.sampler, "__qualname__") else type(plan.sampler)
    first = plan.source
    if digest and first is None:
        first = plan.arrivals_for(Job(min(plan.horizons), 0, 0))
    return {
        "program": program.fingerprint,
        "model": formulas(program),
        "description": program.describe(),
        "policies": [[name, text, ", ".join(guards)] for (name, text), guards in under.items()],
        "guards": list(dict.fromkeys(entrant.guard for entrant in plan.entrants)),
        "order": plan.order if plan.by is None else f"{plan.order} by {plan.by}",
        "sampler": None if sampler is None else sampler.__qualname__,
        "data": None if first is None else _digest(first),
        "arrivals": None if plan.source is None else len(plan.source),
        "trials": trials,
        "horizons": list(plan.horizons),
        "grids": [None if grid is None else _grid_text(grid) for grid in plan.grids],
        "benchmarks": list(plan.benchmarks),
        "budget": plan.budget,
        "null": None if plan.null is None else repr(plan.null),
        "forecast": None if plan.foretold is None else _forecast_text(plan.foretold),
        "seed": plan.seed,
        "versions": _versions(),
        "name": program.template.model,
        "goal": program.template.goal,
    }


def _forecast_text(foretold: Foretold) -> str:
    """A forecast for the record: how many arrivals, whether in order, and a digest of them."""
    order = "in order" if foretold.ordered else "without an order"
    return f"{len(foretold.arrivals)} arrivals {order}, {_digest(foretold.arrivals)[:12]}"


def _text_of(policy: Policy) -> str:
    """A policy with all that it was given, so that two different ones have different texts."""
    text = repr(policy)
    if " at 0x" in text or "..." in text:
        given = policy_record(policy)["arguments"] or getattr(policy, "__dict__", {})
        text = f"{type(policy).__qualname__}({', '.join(f'{name}={_short(value)}' for name, value in given.items())})"
    return text


def _short(value: Any) -> str:
    """A value as text; a long one by its digest."""
    text = _without_address(repr(value.tolist() if isinstance(value, np.ndarray) else value))
    return text if len(text) <= 80 else f"<{hashlib.sha256(text.encode()).hexdigest()[:12]}>"


def _grid_text(grid: Any) -> str:
    if isinstance(grid, Mapping):
        return ", ".join(f"{getattr(key, 'name', key)}: {_grid_text(value)}" for key, value in grid.items())
    if isinstance(grid, list | tuple | np.ndarray):
        grid = Points(grid)
    if isinstance(grid, Points):
        return f"{grid!r} {_short(grid.points)} {'' if grid.weights is None else _short(grid.weights)}".rstrip()
    return repr(grid)


def _without_address(text: str) -> str:
    """Where something in memory has no text of its own, its address must not tell two calls apart."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _digest(arrivals: Arrivals) -> str:
    digest = hashlib.sha256(str(len(arrivals)).encode())
    for value in arrivals.values:
        array = value if isinstance(value, np.ndarray) else value.array
        digest.update(b"functions" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {"osilp_pyomo": __version__, "python": platform.python_version()}
    for name in ("pyomo", "highspy", "numpy", "scipy", "pandas", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
