"""Files of the repository on the site: those that have a page, and links to those that have none.

Files such as CONTRIBUTING.md lie outside docs/, where Sphinx does not look. Each has a page in
docs/project/ that includes it, and a link to the file leads to its page. A link to any other file
of the repository downloads it; the name of a folder stays, without a link.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

PAGES = {
    "README.md": "docs/project/overview.md",
    "CONTRIBUTING.md": "docs/project/contributing.md",
    "SECURITY.md": "docs/project/security.md",
    "CHANGELOG.md": "docs/project/changelog.md",
    "docs/README.md": "docs/index.md",
    "examples/README.md": "docs/project/examples.md",
    "examples/node-service/README.md": "docs/project/example-node-service.md",
    "examples/python-app/README.md": "docs/project/example-python-app.md",
    "examples/web/README.md": "docs/project/example-web.md",
}
ROOT = Path(__file__).parents[2]
_INCLUDE = re.compile(r":::\{include\} (\S+)\n:::\n")
_LINK = re.compile(r"\[([^\]]*)\]\(([\w./-]+)(#[\w-]*)?\)")


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put included files in their place and lead links to pages, before a page is parsed."""
    folder = (ROOT / "docs" / docname).parent

    def included(match: re.Match[str]) -> str:
        file = (folder / match[1]).resolve()
        return _LINK.sub(lambda link: _led(link, file.parent, folder), file.read_text("utf-8"))

    text = _LINK.sub(lambda link: _led(link, folder, folder), source[0])
    source[0] = _INCLUDE.sub(included, text)


def _led(link: re.Match[str], written_in: Path, folder: Path) -> str:
    """A link in a file of one folder, as it is written in a page of another."""
    words, name, anchor = link[1], link[2], link[3] or ""
    file = Path(os.path.normpath(written_in / name))
    if file.is_dir():
        return words
    if not file.is_relative_to(ROOT) or not file.exists():
        return link[0]  # an address, or a dead link, which Sphinx reports
    target = ROOT / PAGES.get(str(file.relative_to(ROOT)), file.relative_to(ROOT))
    # Without `path:`, a Markdown file is taken for a page.
    scheme = "" if target.is_relative_to(ROOT / "docs") else "path:"
    return f"[{words}]({scheme}{os.path.relpath(target, folder)}{anchor})"


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to pages as they are read."""
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
