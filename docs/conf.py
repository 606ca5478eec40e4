"""Sphinx's settings for the documentation site: `make docs` builds build/docs/index.html."""

from __future__ import annotations

import sys
from pathlib import Path

from rappor import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "rappor"
author = "the authors of rappor"
version = release = __version__
html_title = f"rappor {__version__}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxarg.ext",
    "sphinxcontrib.openapi",
    "accessible_html",
    "light_and_dark",
    "public_names",
    "repository_pages",
]
exclude_patterns = ["_extensions", "README.md"]

# Pages are Markdown, and so that they read well in the repository too, they use little of MyST.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the tests execute notebooks; the site shows the outputs they have

smartquotes = False  # options of commands begin with two hyphens
default_role = "code"  # in docstrings `x` is code, as in Markdown
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes as a list: members have entries of their own
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}

suppress_warnings = ["myst.domains"]  # of the domain of sphinx-argparse
http_strict_mode = False  # sphinxcontrib-httpdomain does not know 431, which RFC 6585 defines
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
