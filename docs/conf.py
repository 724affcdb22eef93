"""Sphinx configuration; the reference pages are generated from the declarations when the documentation is built."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import lanescope

project = "lanescope"
author = "the lanescope developers"
release = version = lanescope.__version__
extensions = ["myst_parser", "reference_pages", "page_pictures", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
# Outputs have up to 90 columns: with letters of this size they fit.
html_theme_options = {"light_css_variables": {"code-font-size": "var(--font-size--small--3)"}}
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_copyright = False
html_title = f"lanescope {version}"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
# Rows of wire formats show bits as code of no language; nothing is fetched when pages are built.
suppress_warnings = ["myst.xref_missing"]
