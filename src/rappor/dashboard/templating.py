"""Templates: escaping always on, undefined names are errors, numbers by the one formatter."""

from __future__ import annotations

import functools
import json
import math
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup
from starlette.requests import Request

from rappor.charts.numbers import show_count, show_epsilon, show_p, show_percent, show_share
from rappor.dashboard.auth.csrf import FIELD
from rappor.dashboard.auth.visitor import Visitor
from rappor.dashboard.words import (
    bytes_text,
    clock_text,
    day_text,
    duration_text,
    period_text,
    rhythm,
    time_text,
)
from rappor.store.released import STEP

if TYPE_CHECKING:
    from rappor.dashboard.context import Desk

# The bar, in its order: a page's route name and the word for it.
BAR = (("collections", "Collections"), ("ingest", "Ingest"))
# A collection's tabs.
TABS = (
    ("results", "Results"),
    ("trends", "Trends"),
    ("diagnostics", "Diagnostics"),
    ("candidates", "Candidates"),
)


@functools.cache
def environment() -> jinja2.Environment:
    """The templates of the package."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("rappor.dashboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "epsilon": show_epsilon,
        "percent": show_percent,
        "pvalue": show_p,
        "whole": lambda number: f"{number:,}",
        "day": day_text,
        "period": period_text,
        "time": time_text,
        "clock": clock_text,
        "bytes": bytes_text,
        "duration": duration_text,
        "embedded": embedded,
    }
    made.globals |= {
        "show_share": show_share,
        "show_count": show_count,
        "rhythm": rhythm,
        "infinity": math.inf,
    }
    return made


def prepare() -> None:
    """Compile all templates, before a page asks for one."""
    for name in environment().list_templates(["html"]):
        environment().get_template(name)


def embedded(document: Any) -> Markup:
    r"""A JSON document for `<script type="application/json">`, which nothing in it can end.

    >>> str(embedded({"string": "</script>"}))
    '{"string":"\\u003c/script>"}'
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))  # noqa: S704 - made safe


def frame(desk: Desk, request: Request, visitor: Visitor) -> dict[str, Any]:
    """What base.html needs on every page."""
    from rappor.dashboard.routes import NAMED

    def may(name: str) -> bool:
        page = NAMED.get(name)
        return page is not None and visitor.may(page.roles)

    def url(route: str, /, **parts: str) -> str:
        return str(request.app.url_path_for(route, **parts))

    return {
        "visitor": visitor,
        "may": may,
        "url": url,
        "asset": desk.assets.address,
        "bar": [(name, word) for name, word in BAR if may(name)],
        "tabs": [(name, word) for name, word in TABS if may(name)],
        "csrf_field": FIELD,
        "simulated": desk.settings.simulated,
        "step": STEP,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "path": request.url.path,
    }
