"""Checks that the date is plausible before retention deletes by it.

If the clock were set a year ahead, retention would delete every collection that expires in that
year. So while a collector runs, the date must agree with the time that has passed since its start.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

from rappor.store.retention_rules import MAX_DAYS_AHEAD


def uptime() -> float:
    """Seconds since some fixed moment, including the machine's sleep if the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class ClockCheck:
    """Compares the date with the time that has passed since the start.

    >>> passed = iter([0.0, 90_000.0, 90_000.0])
    >>> check = ClockCheck(datetime.date(2026, 11, 16), lambda: next(passed))
    >>> check.leaps(datetime.date(2026, 11, 19)), check.leaps(datetime.date(2027, 11, 17))
    (False, True)
    """

    def __init__(self, today: datetime.date, seconds: Callable[[], float] = uptime) -> None:
        """Trust this date and count from now."""
        self._first, self._seconds = today, seconds
        self._started = seconds()

    def leaps(self, today: datetime.date) -> bool:
        """Whether a date is more than two days ahead of the time that has passed."""
        passed = (self._seconds() - self._started) / 86_400
        return (today - self._first).days > passed + MAX_DAYS_AHEAD
