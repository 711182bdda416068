"""How the documentation is built: python -m sphinx -W docs docs/_build/html (no network needed)."""

import doctest
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import numpydoc.xref  # noqa: E402

import osilp_pyomo  # noqa: E402

project = "osilp_pyomo"
author = "the osilp_pyomo developers"
copyright = "2026, the osilp_pyomo developers"
version = release = osilp_pyomo.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "option_tables",
    "room_tables",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5", "sg_execution_times.rst"]
html_theme = "furo"
html_title = "osilp_pyomo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
html_show_sphinx = False

# Pages are written so that they can be read as they are, too: tables, fenced code, $mathematics$.
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3

# What can be linked to in Pyomo's documentation is listed here, so that no network is needed.
intersphinx_mapping = {"pyomo": ("https://pyomo.readthedocs.io/en/stable", "pyomo-inventory.txt")}

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False
# Types of parameters link to where they are described, those of Pyomo into its documentation.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
# Those of Python itself would need an inventory that only the network has.
numpydoc.xref.DEFAULT_LINKS.clear()
numpydoc_xref_aliases = {
    "ConcreteModel": "pyomo.core.base.PyomoModel.ConcreteModel",
    "ContinuousSet": "pyomo.dae.contset.ContinuousSet",
    "Set": "pyomo.core.base.set.Set",
    "OnlineProgram": "osilp_pyomo.OnlineProgram",
    "Policy": "osilp_pyomo.Policy",
    "Controller": "osilp_pyomo.Controller",
    "Decision": "osilp_pyomo.Decision",
    "Run": "osilp_pyomo.Run",
    "Regret": "osilp_pyomo.Regret",
    "Price": "osilp_pyomo.Price",
    "Result": "osilp_pyomo.Result",
    "Study": "osilp_pyomo.Study",
    "Chunks": "osilp_pyomo.Chunks",
}

# As in pyproject.toml; examples know the names of their own module, of which these are all that they use.
doctest_default_flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
doctest_global_setup = """
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from osilp_pyomo import *
from osilp_pyomo.displays import *
from osilp_pyomo.dro import *
from osilp_pyomo.errors import *
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.offline.prices import AtomicPrice
from osilp_pyomo.plugins import *
from osilp_pyomo.scenario import *
from osilp_pyomo.sets import *
from osilp_pyomo.testing import *
"""

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "thumbnail_size": (640, 448),
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "reference_url": {"osilp_pyomo": None},
    "backreferences_dir": None,
    "copyfile_regex": r"$^",
}
