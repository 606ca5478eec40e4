"""Periods: the UTC day or ISO week of a report; a report carries no other time.

A period is written 2026-11-16 (a day) or 2026-W47 (a week from Monday to Sunday, ISO 8601).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from rappor.checks import show
from rappor.errors import ParamsError

PERIODS = {"day": "a UTC day, written 2026-11-16", "week": "an ISO week, written 2026-W47"}
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")


def check_period_kind(kind: object) -> str:
    """`day` or `week`, or ParamsError."""
    if not isinstance(kind, str) or kind not in PERIODS:
        raise ParamsError(f"period must be one of {', '.join(PERIODS)}; got {show(kind)}")
    return kind


def period_of(kind: str, day: datetime.date) -> str:
    """The period of a day.

    >>> period_of("week", datetime.date(2027, 1, 3)), period_of("day", datetime.date(2027, 1, 3))
    ('2026-W53', '2027-01-03')
    """
    check_period_kind(kind)
    if not isinstance(day, datetime.date) or isinstance(day, datetime.datetime):
        raise ParamsError(f"day must be a datetime.date in UTC, got {type(day).__name__}")
    if kind == "day":
        return f"{day.year:04}-{day.month:02}-{day.day:02}"
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def days_of(period: str) -> tuple[datetime.date, datetime.date]:
    """The first and the last day of a period of either kind, or ParamsError.

    >>> [str(day) for day in days_of("2026-W47")]
    ['2026-11-16', '2026-11-22']
    """
    text = period if isinstance(period, str) else ""
    try:
        if found := _DAY.fullmatch(text):
            day = datetime.date(*map(int, found.groups()))
            return day, day
        if found := _WEEK.fullmatch(text):
            year, week = map(int, found.groups())
            monday = datetime.date.fromisocalendar(year, week, 1)
            return monday, monday + datetime.timedelta(days=6)
    except (ValueError, OverflowError):
        pass
    raise ParamsError(
        f"a period must be a day such as 2026-11-16 or a week such as 2026-W47, got {show(period)}"
    )


def check_period(kind: str, text: object) -> str:
    """The period, or ParamsError if it is not of the kind or not in the usual form.

    >>> check_period("week", "2026-W47")
    '2026-W47'
    """
    check_period_kind(kind)
    if isinstance(text, str):
        try:
            first, _ = days_of(text)
            if period_of(kind, first) == text:
                return text
        except ParamsError:
            pass
    raise ParamsError(f"period must be {PERIODS[kind]}, got {show(text)}")


def periods_between(kind: str, first: datetime.date, last: datetime.date) -> int:
    """How many periods have a day from `first` to `last`, both included.

    >>> periods_between("week", datetime.date(2026, 11, 22), datetime.date(2026, 11, 23))
    2
    """
    check_period_kind(kind)
    if last < first:
        return 0
    if kind == "day":
        return (last - first).days + 1
    return (last.toordinal() - 1) // 7 - (first.toordinal() - 1) // 7 + 1  # day 1 was a Monday


def is_older(periods: Sequence[str], others: Sequence[str]) -> bool:
    """Whether periods end before others do: a difference is the newer side minus the older one.

    Sides with the same periods, such as two countries, keep the order in which they were given.

    >>> is_older(["2026-W27"], ["2026-W28"]), is_older(["2026-W28"], ["2026-W28"])
    (True, False)
    """
    return max(periods, default="") < max(others, default="")
