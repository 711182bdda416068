"""Every code block of the documentation runs and prints what stands below it, every example runs, every link leads on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).parents[2]
# What Sphinx makes itself is made of the code.
MADE = {"_build", "generated", "gallery"}
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(page.parts)]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Pages that run in less than a second; most others run studies.
QUICK = {"first-model.md", "choose-a-grid.md", "choose-a-basis.md"}
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page.name in QUICK else pytest.mark.long) for page in PAGES],
    ids=name_of,
)
def test_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    # Pages write files.
    monkeypatch.chdir(tmp_path)
    names = {}
    for printed, said in pages.run(page.read_text(), names):
        if not pages.same(printed, said or ""):
            assert printed == said
    assert ("osilp" in names) == bool(names)


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_no_other_block_looks_like_python(page):
    """What is not run says so by its language."""
    for language, text in pages.blocks(page.read_text()):
        assert language in ("python", "output", "sh", "text", "bibtex", "eval", ""), language
        assert language != "" or "import" not in text


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        if not target.startswith("http") and not MADE & set(Path(target).parts):
            assert (page.parent / target).exists(), target


@pytest.mark.long
def test_the_frames_have_the_columns_that_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "reference" / "frames.md").read_text()
    names = {}
    pages.run(text, names)
    sections = re.findall(r"^### `([^\n]*)`$(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    assert len(sections) == 23
    for expression, body in sections:
        assert list(eval(expression, names)) == re.findall(r"^\| `(.*?)` \|", body, re.MULTILINE), expression


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_examples_run(example, tmp_path):
    assert example.name.startswith("plot_")
    assert len(example.read_text().splitlines()) <= 100
    # Without a screen matplotlib says that it shows nothing.
    quiet = {"MPLBACKEND": "agg", "PYTHONWARNINGS": "ignore:FigureCanvasAgg is non-interactive:UserWarning"}
    done = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | quiet,
    )
    assert done.returncode == 0, done.stderr
    # On a slow machine long work says how far it is.
    assert [line for line in done.stderr.splitlines() if "%|" not in line] == []
    assert done.stdout
    assert list(tmp_path.iterdir()) == []
