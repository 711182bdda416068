"""What all tests share, those of modules and pages too."""

import sys

import pytest

# A script that works as soon as it is imported: looking in it for doctests would run it, in every process of the tests.
collect_ignore = ["tests/contract_example.py"]


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test drew: pyplot keeps figures, and warns of the twenty-first in whichever test draws it."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
