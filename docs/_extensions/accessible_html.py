"""What the theme leaves out for those who use a keyboard or a screen reader."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

_AFTER_THE_THEME = 900


def complete(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Give headings of the navigation their level, and let code and tables be scrolled by keys."""
    navigation = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = navigation.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
    if "body" in context:
        body = context["body"].replace("<pre>", '<pre tabindex="0">')
        context["body"] = body.replace(
            '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to pages before they are written."""
    app.connect("html-page-context", complete, priority=_AFTER_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
