"""Clock: the time a client works by. Only the UTC day or week of a report is ever sent."""

from __future__ import annotations

import datetime
import time
from typing import Protocol

_EPOCH = datetime.date(1970, 1, 1)
_DAY = 86_400  # seconds
_LAST = (datetime.date.max - _EPOCH).days - 400


class Clock(Protocol):
    """Two clocks: one that people can set, one that only goes forward."""

    def time(self) -> float:
        """Seconds since 1970, UTC; can jump in both directions."""

    def monotonic(self) -> float:
        """Seconds that only grow, for waiting."""


class SystemClock:
    """The operating system's clock."""

    def time(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()


def day_of(when: float) -> datetime.date:
    """The UTC day of a time; any float is accepted, since clocks can be wrong.

    >>> day_of(0.0), day_of(86_399.9), day_of(-1e300)
    (datetime.date(1970, 1, 1), datetime.date(1970, 1, 1), datetime.date(1970, 1, 1))
    """
    if not when > 0:  # NaN too
        return _EPOCH
    return _EPOCH + datetime.timedelta(days=min(int(min(when, 1e15) // _DAY), _LAST))


def start_of(day: datetime.date) -> float:
    """The time at which a UTC day begins."""
    return float((day - _EPOCH).days * _DAY)
