"""Pages that are made from the code: every option with its default and its sentence, and the command line.

The tables are made of signatures, docstrings and declared configurations, so that they cannot fall behind them.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numpydoc.docscrape import FunctionDoc

import osilp_pyomo as osilp
from osilp_entry.command import COMMANDS, build_parser
from osilp_pyomo.dro import AMBIGUITY_SETS
from osilp_pyomo.index.registry import BASES, GRIDS
from osilp_pyomo.online.registry import POLICIES

SECTIONS: dict[str, list[Any]] = {
    "Declaring": [osilp.SemiInfiniteConstraint, osilp.Profile],
    "Solving offline": [osilp.solve, osilp.evaluate_rows, osilp.plot_rows],
    "Grids": [*GRIDS.values(), osilp.scenario.Scenarios],
    "Test functions": list(BASES.values()),
    "Online": [
        osilp.compile_online, osilp.OnlineProgram.controller, osilp.OnlineProgram.replay,
        osilp.OnlineProgram.solve_offline, osilp.OnlineProgram.rescaled, osilp.Controller.steps, osilp.load_controller,
        osilp.Chunks,
    ],
    "Policies": [*(each for each in POLICIES.values() if inspect.signature(each).parameters), osilp.Potential],
    "Studies": [osilp.compare, osilp.Study.plot, osilp.Study.to_html, osilp.Run.to_html, osilp.Study.save],
    "Distributionally robust": [
        *AMBIGUITY_SETS, osilp.dro.worst_case_expectation, osilp.dro.worst_case_cvar, osilp.dro.worst_case_probability,
        osilp.scenario.scenarios_needed, osilp.scenario.violation_bound,
        osilp.sets.from_data, osilp.sets.check,
    ],
}  # fmt: skip
CONFIGURED = {
    'SolverFactory("osilp").solve': osilp.plugins.OsilpSolver,
    'TransformationFactory("osilp.discretize")': osilp.plugins.Discretize,
    'TransformationFactory("osilp.project")': osilp.plugins.Project,
}


def options_page() -> str:
    """Every option of what a user calls, as Markdown."""
    lines = [
        "# Options",
        "",
        "Every option with its default and what it means, taken from the code. No default stands where an option must "
        "be given.",
    ]
    for title, things in SECTIONS.items():
        lines += ["", f"## {title}"]
        for thing in things:
            lines += ["", f"### {thing.__qualname__}", "", *_table(list(_described(thing)))]
    lines += ["", "## From Pyomo"]
    for name, owner in CONFIGURED.items():
        rows = [(key, repr(owner.CONFIG.get(key).value()), owner.CONFIG.get(key)._description) for key in owner.CONFIG]
        lines += ["", f"### {name}", "", *_table(rows)]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, str, str]]) -> list[str]:
    if not rows:
        return ["No options."]
    head = ["| option | default | meaning |", "|---|---|---|"]
    return head + [f"| `{name}` | {f'`{default}`' if default else ''} | {cell(text)} |" for name, default, text in rows]


def cell(text: str) -> str:
    """A docstring's text as Markdown that fits into a cell of a table."""
    plain = re.sub(r"(?::\w+)+:`~?([^`]+)`", r"`\1`", text)
    return plain.replace("|", r"\|").replace("``", "`").replace("\n", " ")


def _described(thing: Callable[..., Any]) -> Iterator[tuple[str, str, str]]:
    """Name, default and meaning of each parameter of a function or class."""
    defaults = {
        name: "" if parameter.default is parameter.empty else repr(parameter.default)
        for name, parameter in inspect.signature(thing).parameters.items()
        if name not in ("self", "args", "kwargs")
    }
    documented: dict[str, str] = {}
    for entry in FunctionDoc(thing)["Parameters"]:
        text = " ".join(line.strip() for line in entry.desc)
        kind = f"*{entry.type}*. " if entry.type else ""
        for name in entry.name.split(","):
            documented[name.strip().lstrip("*")] = f"{kind}{text}".strip()
    if "kwds" in defaults:  # a component of Pyomo, whose class hands everything on
        own = inspect.signature(thing.__init__).parameters
        known = {name: own[name].default for name in documented if name in own}
        defaults = {
            name: "" if known.get(name, inspect.Parameter.empty) is inspect.Parameter.empty else repr(known[name])
            for name in documented
        }
    for name, default in defaults.items():
        if name not in documented:
            raise ValueError(f"{thing.__qualname__}: its docstring has no parameter '{name}'.")
        yield name, default, documented[name]


def command_page() -> str:
    """The commands of osilp and their options, as Markdown."""
    parser = build_parser(COMMANDS)
    (commands,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    lines = ["# The command line", "", "`osilp COMMAND [OPTIONS]`; each command has `--help`."]
    for name, command in commands.choices.items():
        lines += ["", f"## osilp {name}", "", command.description or "", "", "| option | meaning |", "|---|---|"]
        for action in command._actions:
            shown = ", ".join(action.option_strings) or str(action.metavar or action.dest)
            if action.option_strings and action.nargs != 0:
                value = action.metavar or (
                    "{" + ",".join(action.choices) + "}" if action.choices else action.dest.upper()
                )
                shown += f" {value}"
            lines.append(f"| `{shown}` | {cell(action.help or '')} |")
    return "\n".join(lines) + "\n"


def write_page(page: Path, text: str) -> None:
    """Write a page; one that is as it was keeps its time, so that nothing is built again."""
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def _write(app: Any) -> None:
    folder = Path(app.srcdir) / "reference" / "generated"
    write_page(folder / "options.md", options_page())
    write_page(folder / "command-line.md", command_page())


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
