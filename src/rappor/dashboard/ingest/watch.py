"""Watch: looks at the collector every few seconds, and remembers an hour of totals, in memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from rappor.dashboard.ingest.metrics import (
    BATCHES,
    COMMITS,
    QUEUE,
    QUEUE_BYTES,
    REFUSED,
    REPORTS,
    Sample,
    fetch,
    grown,
    quantile,
    stepped,
)

EVERY_SECONDS = 5.0
MINUTES = 60
_RECENT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What the page Ingest says about the collector.

    Attributes:
        health: Healthy, Failing, Not answering or Not watched.
        reason: why, where it is not healthy.
        since: from when on the watch has counted, in seconds since 1970.
        rate: reports a second over the last half minute; None before two looks.
        refused: refused requests today by code.
        batches: acknowledged batches today, new and repeated.
        commit: seconds that 99 of 100 commits stay below; None without commits.
        queue_batches: batches that wait for a commit.
        queue_bytes: and their bytes.
        minutes: reports a second by minute, oldest first, with the minute's start.
    """

    health: str
    reason: str = ""
    since: float | None = None
    rate: float | None = None
    refused: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    commit: float | None = None
    queue_batches: int = 0
    queue_bytes: int = 0
    minutes: tuple[tuple[float, float], ...] = ()

    @property
    def refused_share(self) -> float | None:
        """Which share of today's requests was refused; None where there was none."""
        refused = sum(self.refused.values())
        total = refused + self.batches
        return refused / total if total else None


class Watch:
    """Looks at one collector. Nothing is written anywhere; totals only (SECURITY: never written).

    Args:
        collector: its address; None where nobody said it.
        look: how its figures are fetched.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        collector: str | None,
        look: Callable[[str, float], Sample] = fetch,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._collector, self._look_at, self._clock = collector, look, clock
        self._guard = threading.Lock()
        self._samples: deque[Sample] = deque(maxlen=int(_RECENT_SECONDS / EVERY_SECONDS) + 1)
        self._minutes: deque[tuple[float, float]] = deque(maxlen=MINUTES)
        self._minute: tuple[float, float, float] | None = None  # its start, reports, seconds
        self._day = ""
        self._since: float | None = None
        self._refused: dict[str, int] = {}
        self._batches = 0
        self._error = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look, in a thread that ends with the process."""
        if self._collector is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(EVERY_SECONDS)

    def look(self) -> None:
        """Look once."""
        if self._collector is None:
            return
        now = self._clock()
        try:
            sample = stepped(self._look_at(self._collector, now))
        except OSError as error:
            with self._guard:
                self._error = str(error) or type(error).__name__
                self._samples.clear()
            return
        with self._guard:
            self._error = ""
            self._add(sample)

    def _add(self, sample: Sample) -> None:
        day = datetime.fromtimestamp(sample.at, UTC).date().isoformat()
        if day != self._day:
            self._day, self._since = day, sample.at
            self._refused, self._batches = {}, 0
        before = self._samples[-1] if self._samples else None
        self._samples.append(sample)
        if before is None:
            return
        for code, number in grown(before.labels(REFUSED), sample.labels(REFUSED)).items():
            if number:
                self._refused[code] = self._refused.get(code, 0) + int(number)
        self._batches += int(sum(grown(before.labels(BATCHES), sample.labels(BATCHES)).values()))
        self._count_minute(before, sample)

    def _count_minute(self, before: Sample, sample: Sample) -> None:
        start = sample.at // 60 * 60
        if self._minute is not None and self._minute[0] != start:
            first, reports, seconds = self._minute
            if seconds > 0:
                self._minutes.append((first, reports / seconds))
            self._minute = None
        _, reports, seconds = self._minute or (start, 0.0, 0.0)
        reports += _reports(before, sample)
        self._minute = (start, reports, seconds + sample.at - before.at)

    def figures(self) -> Figures:
        """What is known now."""
        if self._collector is None:
            return Figures("Not watched", "Nobody told the dashboard where the collector is.")
        with self._guard:
            known = partial(
                Figures,
                since=self._since,
                refused=dict(self._refused),
                batches=self._batches,
                minutes=self._all_minutes(),
            )
            if not self._samples:
                reason = f"The collector does not answer: {self._error}." if self._error else ""
                health = "Not answering" if self._error else "Looking"
                return known(health, reason)
            first, last = self._samples[0], self._samples[-1]
            healthy = last.value("rappor_healthy") == 1
            rate = None
            if last.at > first.at:
                pairs = zip(list(self._samples)[:-1], list(self._samples)[1:], strict=True)
                rate = sum(_reports(*pair) for pair in pairs) / (last.at - first.at)
            return known(
                "Healthy" if healthy else "Failing",
                "" if healthy else "Batches cannot be stored: the disk is full, or failed.",
                rate=rate,
                commit=quantile(last.labels(COMMITS), 0.99),
                queue_batches=int(last.value(QUEUE)),
                queue_bytes=int(last.value(QUEUE_BYTES)),
            )

    def _all_minutes(self) -> tuple[tuple[float, float], ...]:
        made = list(self._minutes)
        if self._minute is not None and self._minute[2] > 0:
            made.append((self._minute[0], self._minute[1] / self._minute[2]))
        return tuple(made[-MINUTES:])


def _reports(before: Sample, after: Sample) -> float:
    """Reports that were counted between two looks."""
    values = grown({REPORTS: before.value(REPORTS)}, {REPORTS: after.value(REPORTS)})
    return values[REPORTS]
