"""A clock that a test sets, for `Client.open(clock=...)` and `MemoryCollector`."""

from __future__ import annotations

import datetime
import time

_EPOCH = datetime.date(1970, 1, 1)


class ManualClock:
    """Starts at noon (UTC) and stays there until `forward()`, so that no test crosses midnight.

    Its monotonic side is the machine's: threads wait by it.

    >>> clock = ManualClock(datetime.date(2026, 11, 16))
    >>> clock.forward(days=1)
    >>> clock.today()
    datetime.date(2026, 11, 17)
    """

    def __init__(self, day: datetime.date | None = None) -> None:
        """Start on a day; on today's if None."""
        day = day or datetime.datetime.now(datetime.UTC).date()
        self._now = (day - _EPOCH).days * 86_400.0 + 43_200.0

    def forward(self, *, days: float = 0.0, seconds: float = 0.0) -> None:
        """Let time pass."""
        self._now += days * 86_400.0 + seconds

    def today(self) -> datetime.date:
        """The day, in UTC."""
        return _EPOCH + datetime.timedelta(days=int(self._now // 86_400))

    def time(self) -> float:
        """Seconds since 1970, as `time.time`."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since some moment, as `time.monotonic`; `forward` does not change it."""
        return time.monotonic()
