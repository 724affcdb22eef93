"""Sphinx configuration; the reference pages are generated from the declarations when the documentation is built."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import lanescope

project = "lanescope"
author = "the lanescope developers"
release = version = lanescope.__version__
extensions = ["myst_parser", "reference_pages", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"lanescope {version}"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
# Rows of wire formats show bits as code of no language; nothing is fetched when pages are built.
suppress_warnings = ["myst.xref_missing"]
