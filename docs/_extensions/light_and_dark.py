"""Pictures that follow the reader's theme: next to NAME-light.svg, the site shows NAME-dark.svg.

Pages name one picture, the light or the dark one, as a reader of the repository sees it. If its
partner is there, the site holds both, and the theme's own classes show the one that fits.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

_NAMED = re.compile(r"-(light|dark)(\.\w+)$")


class LightAndDark(SphinxTransform):
    """Put the partner of each picture next to it."""

    default_priority = 200  # before Sphinx collects the files of pictures

    def apply(self) -> None:
        """Mark both by the theme they are for."""
        folder = (Path(self.env.srcdir) / self.env.docname).parent
        for image in list(self.document.findall(nodes.image)):
            named = _NAMED.search(image["uri"])
            if named is None or "://" in image["uri"]:
                continue
            other = "dark" if named[1] == "light" else "light"
            partner = image.deepcopy()
            partner["uri"] = _NAMED.sub(rf"-{other}\2", image["uri"])
            if not (folder / partner["uri"]).exists():
                continue
            image["classes"].append(f"only-{named[1]}")
            partner["classes"].append(f"only-{other}")
            image.parent.insert(image.parent.index(image) + 1, partner)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform."""
    app.add_transform(LightAndDark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
