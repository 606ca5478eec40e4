"""Whether the date can be believed: retention deletes by it, and what is gone is gone.

A clock that is set a year ahead would end every collection that expires before then. While a
collector runs, the date may not run away from the time that has passed since its start.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

MOST_AHEAD = 2  # days: time zones and leap seconds are nothing beside this


def uptime() -> float:
    """Seconds that have passed, a machine's sleep included where the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Calendar:
    """Compares the date with the time that has passed since it was made.

    >>> passed = iter([0.0, 90_000.0, 90_000.0])
    >>> calendar = Calendar(datetime.date(2026, 11, 16), lambda: next(passed))
    >>> calendar.leaps(datetime.date(2026, 11, 19)), calendar.leaps(datetime.date(2027, 11, 17))
    (False, True)
    """

    def __init__(self, today: datetime.date, seconds: Callable[[], float] = uptime) -> None:
        """Believe this date, and count from now."""
        self._first, self._seconds = today, seconds
        self._started = seconds()

    def leaps(self, today: datetime.date) -> bool:
        """Whether a date lies more than two days ahead of the time that has passed."""
        passed = (self._seconds() - self._started) / 86_400
        return (today - self._first).days > passed + MOST_AHEAD
