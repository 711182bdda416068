"""The architecture page says what the code is: its orders are those of the imports, its walks name what exists."""

import ast
import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "development" / "architecture.md").read_text()
ORDERS = dict(re.findall(r"^(offline|online): +((?:.+\n)+?)(?=online:|```)", PAGE, re.MULTILINE))
NAMED = re.findall(r"`([a-z_/]+\.py)`[\s(]+`([A-Za-z_.]+)`", PAGE)


@pytest.fixture(scope="module")
def imports():
    return grimp.build_graph("osilp_pyomo")


@pytest.mark.parametrize("room", ["offline", "online"])
def test_the_order_inside_a_room_is_that_of_its_imports(room, imports):
    layers = [set(re.findall(r"\w+", layer)) for layer in ORDERS[room].split(">")]
    depth = {name: number for number, layer in enumerate(layers) for name in layer}
    inside = f"osilp_pyomo.{room}"
    assert set(depth) == {each.removeprefix(f"{inside}.") for each in imports.find_children(inside)}
    for module in imports.find_descendants(inside):
        for imported in imports.find_modules_directly_imported_by(module):
            if imported.startswith(f"{inside}."):
                above, below = module.split(".")[2], imported.split(".")[2]
                assert above == below or depth[above] < depth[below], (module, imported)


def names_in(file):
    """Functions and classes of a file, methods with their classes."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_what_the_walks_name_exists(file, name):
    assert name in set(names_in(ROOT / "osilp_pyomo" / file))


def test_every_file_that_the_page_names_exists():
    assert len(NAMED) > 60
    for name in re.findall(r"`([a-z_/]+\.py)`", PAGE):
        assert (ROOT / "osilp_pyomo" / name).exists() or (ROOT / name).exists(), name
