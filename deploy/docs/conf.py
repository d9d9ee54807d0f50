"""Sphinx's settings for the documentation.

Build it from the checkout, with `pip install -e '.[docs]'`:
    sphinx-build --fail-on-warning --nitpicky deploy/docs build/docs
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from reference import pages  # noqa: E402

from streamdp import __version__  # noqa: E402

project = "streamdp"
author = "The streamdp contributors"
version = release = __version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"streamdp {__version__}"
html_copy_source = False
html_show_copyright = False
templates_path: list[str] = []


def setup(app: Sphinx) -> None:
    """Write the pages that follow from the code before the others are read."""
    app.connect("builder-inited", lambda _: write(HERE / "reference"))


def write(folder: Path) -> None:
    """Write every generated page that is not there as it should be."""
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
