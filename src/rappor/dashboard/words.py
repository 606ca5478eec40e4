"""Words and dates as pages write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from rappor.charts.numbers import DASH
from rappor.collection import Collection, days_of

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


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


def sentence(text: str) -> str:
    """A text as a sentence.

    >>> sentence("there are no reports left")
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
