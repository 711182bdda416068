"""How the documentation is built: python -m sphinx -W docs docs/_build/html (no network needed)."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

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
numpydoc_xref_param_type = False

doctest_default_flags = 0b1100  # as in pyproject.toml: NORMALIZE_WHITESPACE and ELLIPSIS

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
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "reference_url": {"osilp_pyomo": None},
    "backreferences_dir": None,
    "copyfile_regex": r"$^",
}
