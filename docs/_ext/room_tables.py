"""A page made from the package itself: every room with what it holds, and every file with its first sentence.

A new file stands there as soon as it is written. The order of the rooms is that of the layers in pyproject.toml.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from option_tables import cell, write_page

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "osilp_pyomo"
TABLE = ["", "| file | what it holds |", "|---|---|"]


def rooms_page() -> str:
    """Rooms and files of the package, as Markdown."""
    lines = [
        "# Which file answers which question",
        "",
        "Every file with the first sentence of its docstring, the rooms from the top layer to the lowest. Taken from "
        "the code. [The architecture](../architecture.md) says how they work together.",
        "",
        "## The files outside of rooms",
        *_table(PACKAGE),
    ]
    for room in _rooms():
        lines += ["", f"## {room.relative_to(PACKAGE)}", "", *_contract(room), *_table(room)]
    return "\n".join(lines) + "\n"


def _rooms() -> list[Path]:
    """The folders of the package in the order of the layers, a room within a room after it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in declared if each["type"] == "layers")
    order = re.findall(r"\w+", " ".join(layers))
    folders = {each.parent for each in PACKAGE.rglob("__init__.py")} - {PACKAGE}
    return sorted(folders, key=lambda each: (order.index(each.relative_to(PACKAGE).parts[0]), each))


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def _contract(room: Path) -> list[str]:
    """What a room says of itself: a sentence, and what it holds, may know and gives."""
    sentence, _, rest = _docstring(room / "__init__.py").partition("\n\n")
    return [cell(sentence), "", *(f"- {cell(line)}" for line in rest.splitlines())]


def _table(folder: Path) -> list[str]:
    files = [each for each in sorted(folder.glob("*.py")) if each.name != "__init__.py"]
    sentences = [cell(_docstring(file).partition("\n\n")[0]) for file in files]
    return [*TABLE, *(f"| `{file.name}` | {text} |" for file, text in zip(files, sentences, strict=True))]


def _write(app: Any) -> None:
    write_page(Path(app.srcdir) / "development" / "generated" / "rooms.md", rooms_page())


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
