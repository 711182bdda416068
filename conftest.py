"""What all tests share, those of modules and pages too."""

import sys

import pytest


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test drew: pyplot keeps figures, and warns of the twenty-first in whichever test draws it."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
