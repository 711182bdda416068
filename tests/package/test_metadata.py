"""Files beside the package that tell others what it is: they say the same as the package."""

import configparser
import importlib
import re
from pathlib import Path

import osilp_pyomo as osilp

ROOT = Path(__file__).parents[2]


def setup():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    return settings


def test_the_version_stands_in_the_citation_and_in_the_readme():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert cited == osilp.__version__
    assert f"Version {osilp.__version__}" in (ROOT / "README.md").read_text()


def test_entry_points_lead_somewhere():
    for lines in setup()["options.entry_points"].values():
        for line in lines.strip().splitlines():
            module, _, name = line.partition("=")[2].strip().partition(":")
            found = importlib.import_module(module)
            assert not name or callable(getattr(found, name))


def test_it_says_that_it_is_typed_and_its_addresses_stand_in_one_place():
    settings = setup()
    assert "Typing :: Typed" in settings["metadata"]["classifiers"]
    assert (ROOT / "osilp_pyomo" / "py.typed").exists()
    text = (ROOT / "setup.cfg").read_text()
    assert len(re.findall(r"project_urls", text)) == 1


def test_the_workflow_and_the_hooks_run_the_checks_of_one_script():
    check = (ROOT / ".ci" / "check").read_text()
    assert ".ci/check .venv/bin" in (ROOT / ".github" / "workflows" / "check.yml").read_text()
    for entry in re.findall(r"entry: \.venv/bin/([\w-]+)", (ROOT / ".pre-commit-config.yaml").read_text()):
        assert f'"$bin/{entry}"' in check
