"""The example notebook, run by a kernel and looked at in a browser: every object shows itself, pictures once, nothing wraps."""

import re
import subprocess
from pathlib import Path

import pytest
from browser import CHROMIUM

NOTEBOOK = Path(__file__).parents[2] / "examples" / "in_a_notebook.ipynb"
pytestmark = pytest.mark.long
# The title of the card that each cell ends with, by its last line; those with a picture have none.
SHOWN = {
    "m.usage": "Semi-infinite constraint", "result": "Result", "result.price": "Price", "program": "Online program",
    "controller.step(value=0.8, place=0.4)": "Decision", "controller": "Controller", "run": "Run",
    "run.regret(result)": "Regret", "study": "Study", "robust.function(cautious.order)": "Decision rule",
    'osilp.compare_plans({"robust": robust, "nominal": osilp.solve(plan(0.5))}, draws)': "Plans",
}  # fmt: skip
PICTURES = ("result.plot()", 'run.plot("use")')


def executed(cells, folder):
    """Cells run by a kernel of this Python, outputs of a stream joined as a page joins them."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(cells, 4) if isinstance(cells, Path) else nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells]
    )  # fmt: skip
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return notebook


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    return executed(NOTEBOOK, tmp_path_factory.mktemp("kernel"))


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def images(cell):
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


def test_it_is_kept_without_outputs():
    text = NOTEBOOK.read_text()
    assert len(text) < 12_000
    assert '"outputs": []' in text
    assert '"output_type"' not in text
    for line in text.splitlines():
        assert len(line) <= 130


def test_every_object_shows_itself(notebook):
    found = {}
    for cell in code(notebook):
        assert not any(output.get("name") == "stderr" for output in cell.outputs), cell.source
        last = cell.source.splitlines()[-1]
        for output in cell.outputs:
            if card := output.get("data", {}).get("text/html"):
                found[last] = re.search(r"<div class='osilp-head'><b>(.*?)</b>", card)[1]
    assert found == SHOWN


def test_pictures_are_shown_once(notebook):
    for cell in code(notebook):
        assert images(cell) == (cell.source.splitlines()[-1] in PICTURES), cell.source


def test_nothing_that_is_printed_is_wider_than_a_hundred_columns(notebook):
    for cell in code(notebook):
        for output in cell.outputs:
            for line in output.get("text", "").split("\n"):
                assert len(line.rpartition("\r")[2]) <= 100, line


def test_progress_is_seen_and_pictures_in_the_middle_of_a_cell_are_shown_once(tmp_path):
    done = executed(
        [
            "import time\nfrom osilp_pyomo._reporting import bar\n"
            "with bar(True, total=4, desc='trials') as shown:\n"
            "    for _ in range(4):\n        time.sleep(0.8)\n        shown.update()",
            "import osilp_pyomo as osilp\nfrom osilp_pyomo.demo import demo_model\nresult = osilp.solve(demo_model(30))\n"
            "kept = result.plot()\nprint('after it')",
            "kept",
            "result.plot()",
        ],
        tmp_path,
    )
    progress, *pictures = done.cells
    if not any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in progress.outputs):
        assert [output.name for output in progress.outputs] == ["stdout"]
        assert re.search(r"trials: 100%.* 4/4 ", progress.outputs[0].text)
    assert [images(cell) for cell in pictures] == [1, 1, 1]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_it(notebook, tmp_path):
    nbconvert = pytest.importorskip("nbconvert")
    page, _ = nbconvert.HTMLExporter(template_name="lab", mathjax_url="", require_js_url="").from_notebook_node(
        notebook
    )
    script = (
        "<script>addEventListener('load', () => {"
        "const cards = [...document.querySelectorAll('.osilp-card')];"
        "const broken = [...document.images].filter(each => !each.naturalWidth).length;"
        "const seen = cards.filter(each => each.getBoundingClientRect().height > 40).length;"
        "const cut = cards.flatMap(each => [...each.querySelectorAll('.osilp-more, .osilp-wide, .osilp-facts')])"
        ".filter(each => each.scrollWidth > each.clientWidth + 1).length;"
        "const wrapped = [...document.querySelectorAll('.osilp-short')].filter(each => each.getClientRects().length > 1).length;"
        "const formula = document.querySelector('.osilp-card math').getBoundingClientRect();"
        "const left = [...document.querySelectorAll('.osilp-facts td')]"
        ".every(each => getComputedStyle(each).textAlign === 'left');"
        "document.title = [cards.length, seen, document.images.length, broken, cut, wrapped, formula.width > 200, left,"
        "document.documentElement.scrollWidth <= innerWidth].join(' '); })</script>"
    )
    probed = tmp_path / "probed.html"
    probed.write_text(page.replace("</body>", f"{script}</body>"))
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1000,5000",
    ]  # fmt: skip
    shown = subprocess.run(
        [*command, "--dump-dom", "--virtual-time-budget=5000", probed.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # Eleven cards, all to be seen; two pictures, none broken; nothing cut off, wrapped or wider than the window.
    assert re.search(r"<title>(.*?)</title>", shown.stdout).group(1) == "11 11 2 0 0 0 true true true"
    picture = tmp_path / "notebook.png"
    subprocess.run([*command, f"--screenshot={picture}", probed.as_uri()], capture_output=True, timeout=120, check=True)
    assert picture.stat().st_size > 100_000
