"""Sphinx' settings for the site that build_site.py makes."""
# pylint: disable=invalid-name
import os

project = "Penstock"
release = version = os.environ.get("PENSTOCK_VERSION", "")
copyright = "the authors of Penstock"  # pylint: disable=redefined-builtin
extensions = ["myst_parser"]
root_doc = "docs/README"
exclude_patterns = ["docs/site"]
suppress_warnings = ["toc.not_included", "misc.highlighting_failure"]
myst_heading_anchors = 4  # links to headings go by GitHub's names for them
html_theme = "alabaster"  # plain, and nothing of it comes from the network
html_theme_options = {
    "description": "trains neural networks that do not fit on one machine",
    "fixed_sidebar": True,
    "page_width": "1100px",
    "sidebar_width": "250px",
    "sidebar_collapse": True,
    "show_powered_by": False,
    "font_family": "'DejaVu Sans', Verdana, Arial, sans-serif",
    "font_size": "15px",
    "code_font_size": "13px",
}
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_show_sourcelink = False
html_copy_source = False
