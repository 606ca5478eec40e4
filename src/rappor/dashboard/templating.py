"""Templates, and the words, dates and sizes that they write.

Escaping is always on, and undefined names are errors.
"""

from __future__ import annotations

import functools
import json
import math
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request

from rappor.charts.numbers import (
    DASH,
    show_count,
    show_epsilon,
    show_epsilon_sum,
    show_finding,
    show_p,
    show_part,
    show_percent,
    show_share,
)
from rappor.collection import Collection, days_of
from rappor.dashboard.auth.cookies import CSRF_FIELD
from rappor.dashboard.auth.roles import Visitor
from rappor.store.released import STEP

if TYPE_CHECKING:
    from rappor.dashboard.context import Context

# The main menu: a page's route name and its word.
BAR = (("collections", "Collections"), ("ingest", "Ingest"))
# A collection's tabs.
TABS = (
    ("results", "Results"),
    ("trends", "Trends"),
    ("diagnostics", "Diagnostics"),
    ("associations", "Associations"),
    ("candidates", "Candidates"),
)
_UNBROKEN = re.compile(r"\d{4}-(?:\d\d-\d\d|W\d\d)|\d %")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


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
        "epsilon_sum": show_epsilon_sum,
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
        "unbroken": unbroken,
    }
    made.globals |= {
        "show_share": show_share,
        "show_count": show_count,
        "show_finding": show_finding,
        "show_part": show_part,
        "rhythm": rhythm,
        "infinity": math.inf,
    }
    return made


def prepare() -> None:
    """Compile all templates, before a page asks for one."""
    for name in environment().list_templates(["html"]):
        environment().get_template(name)


def embedded(document: Any) -> Markup:
    r"""A JSON document for `<script type="application/json">`; no text in it can end the script.

    >>> str(embedded({"string": "</script>"}))
    '{"string":"\\u003c/script>"}'
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))  # noqa: S704 - made safe


def unbroken(sentence: str) -> Markup:
    """A sentence whose periods and percentages stay on one line.

    >>> str(unbroken("5 % in 2026-11-18"))
    '<span class="whole">5 %</span> in <span class="whole">2026-11-18</span>'
    """
    safe = str(escape(sentence))
    return Markup(_UNBROKEN.sub(r'<span class="whole">\g<0></span>', safe))  # noqa: S704 - escaped


def frame(context: Context, request: Request, visitor: Visitor) -> dict[str, Any]:
    """The values of base.html on every page."""
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
        "asset": context.assets.address,
        "bar": [(name, word) for name, word in BAR if may(name)],
        "tabs": [(name, word) for name, word in TABS if may(name)],
        "csrf_field": CSRF_FIELD,
        "simulated": context.settings.simulated,
        "step": STEP,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "path": request.url.path,
    }


def day_text(day: date | None) -> str:
    """A day.

    >>> day_text(date(2026, 12, 31)), day_text(None)
    ('31 Dec 2026', '–')
    """
    return DASH if day is None else f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def time_text(when: datetime | str) -> str:
    """A time in UTC, to the minute.

    >>> time_text("2026-11-16T09:30:12Z")
    '16 Nov 2026, 09:30 UTC'
    """
    moment = datetime.fromisoformat(when) if isinstance(when, str) else when
    return f"{day_text(moment.date())}, {moment:%H:%M} UTC"


def clock_text(seconds: float) -> str:
    """A time of today in UTC, given in seconds since 1970.

    >>> clock_text(3600 * 9.5)
    '09:30 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M} UTC"


def period_text(period: str) -> str:
    """A period, a week with its days.

    >>> period_text("2026-W28"), period_text("2026-W27"), period_text("2026-07-06")
    ('2026-W28 (6–12 Jul)', '2026-W27 (29 Jun – 5 Jul)', '2026-07-06')
    """
    first, last = days_of(period)
    if first == last:
        return period
    end = f"{last.day} {_MONTHS[last.month - 1]}"
    if first.month == last.month:
        return f"{period} ({first.day}{DASH}{end})"
    return f"{period} ({first.day} {_MONTHS[first.month - 1]} {DASH} {end})"


def rhythm(collection: Collection) -> str:
    """How often a client reports.

    >>> from rappor.params import Params
    >>> rhythm(Collection("homepage", 1, Params.preset("windows"), period="week"))
    'One report a week.'
    """
    if collection.one_time:
        return "One report ever."
    if collection.reports_per_period == 1:
        return f"One report a {collection.period}."
    return f"At most {collection.reports_per_period} reports a {collection.period}."


def bytes_text(size: float) -> str:
    """A size.

    >>> bytes_text(3.21e9), bytes_text(900), bytes_text(45_600)
    ('3.2 GB', '900 B', '46 kB')
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return (
                f"{size / factor:.2g} {unit}"
                if size < 99.5 * factor
                else (f"{size / factor:,.0f} {unit}")
            )
    return f"{size:.0f} B"


def as_sentence(text: str) -> str:
    """A text as a sentence.

    >>> as_sentence("there are no reports left")
    'There are no reports left.'
    """
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def duration_text(seconds: float) -> str:
    """A time span.

    >>> duration_text(0.018), duration_text(4.2), duration_text(1085)
    ('18 ms', '4 s', '18 minutes')
    """
    if seconds < 1:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours" if seconds < 129_600 else f"{seconds / 86_400:.0f} days"
