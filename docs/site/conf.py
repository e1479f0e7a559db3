# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings. make.py runs it in a folder of sources that it has put together."""

import json
import os

_here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(_here, "facts.json")) as _file:
    version = release = json.load(_file)["version"]

project = "Quern"
author = "Quern's authors"
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosectionlabel"]
autosectionlabel_prefix_document = True
suppress_warnings = ["autosectionlabel.*", "misc.highlighting_failure"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
html_theme = "furo"
html_title = "Quern"
html_static_path = ["_static"]
html_css_files = ["quern.css"]
html_copy_source = False
html_show_sphinx = False
highlight_language = "c"
nitpicky = False
