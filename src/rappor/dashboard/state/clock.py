"""Times in the state: UTC, to the second, as text that sorts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def text_of(when: datetime) -> str:
    """A time as it is stored.

    >>> text_of(datetime(2026, 11, 16, 9, 30, tzinfo=UTC))
    '2026-11-16T09:30:00Z'
    """
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_of(text: str) -> datetime:
    """A stored time.

    >>> time_of("2026-11-16T09:30:00Z").hour
    9
    """
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
