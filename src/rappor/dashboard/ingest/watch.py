"""Watch: fetch the collector's figures every few seconds, and keep an hour of them in memory."""

from __future__ import annotations

import http.client
import math
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

from rappor.host import LOOPBACK_HOSTS
from rappor.store.released import STEP

EVERY_SECONDS = 5.0
MINUTES = 60
_RECENT_SECONDS = 30.0
_LINE = re.compile(r"([a-zA-Z_]\w*)(?:\{(\w+)=\"([^\"]*)\"\})? (\S+)")
_SECONDS = 2.0
REPORTS, BATCHES, REFUSED = "rappor_reports_total", "rappor_batches_total", "rappor_refused_total"
COMMITS = "rappor_commit_seconds_bucket"
QUEUE, QUEUE_BYTES = "rappor_queue_batches", "rappor_queue_bytes"
_STEPS = {REPORTS: STEP, BATCHES: STEP, COMMITS: STEP, QUEUE: STEP, QUEUE_BYTES: 65_536}
_MAX_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """The collector's figures at one moment.

    Attributes:
        at: when, in seconds since 1970.
        values: plain figures by name.
        labelled: figures with one label, by name and label.
    """

    at: float
    values: Mapping[str, float] = field(default_factory=dict)
    labelled: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def value(self, name: str) -> float:
        """A figure; 0 if it is missing."""
        return self.values.get(name, 0.0)

    def labels(self, name: str) -> Mapping[str, float]:
        """A figure by its label."""
        return self.labelled.get(name, {})


def parse(text: str, at: float) -> Sample:
    r"""The figures of a page in Prometheus' text format; other lines are ignored.

    >>> parse('a_total 3\nb{code="x"} 2', 0.0).labels("b")
    {'x': 2.0}
    """
    values: dict[str, float] = {}
    labelled: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        name, _, label, number = found.groups()
        try:
            value = float(number)
        except ValueError:
            continue
        if label is None:
            values[name] = value
        else:
            labelled.setdefault(name, {})[label] = value
    return Sample(at, values, labelled)


def stepped(sample: Sample) -> Sample:
    """A sample as pages may show it: figures that count arrivals go up in steps.

    With a single collection, exact totals would reveal each report. Refusals and health reveal
    nothing about reports.

    >>> stepped(Sample(0.0, {"rappor_reports_total": 149})).value("rappor_reports_total")
    100.0
    """
    values = {name: _down(name, value) for name, value in sample.values.items()}
    labelled = {
        name: {label: _down(name, value) for label, value in labels.items()}
        for name, labels in sample.labelled.items()
    }
    return Sample(sample.at, values, labelled)


def _down(name: str, value: float) -> float:
    """A figure, rounded down to a step if it counts arrivals."""
    step = _STEPS.get(name)
    return value if step is None or not math.isfinite(value) else float(value // step * step)


def fetch(collector: str, at: float) -> Sample:
    """The figures of a collector, or OSError.

    On this machine the certificate is not checked: it is made for the name that clients use.
    """
    parts = urlsplit(collector)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        if host in LOOPBACK_HOSTS:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read(_MAX_BYTES)
        if answer.status != 200:
            raise OSError(f"it answers {answer.status}")
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP: {type(error).__name__}") from None
    finally:
        connection.close()
    return parse(body.decode("utf-8", "replace"), at)


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How much counters grew between two samples; one that fell has restarted from 0.

    >>> grown({"a": 5, "b": 9}, {"a": 7, "b": 2, "c": 1})
    {'a': 2, 'b': 2, 'c': 1}
    """
    return {
        name: value - before.get(name, 0) if value >= before.get(name, 0) else value
        for name, value in after.items()
    }


def quantile(buckets: Mapping[str, float], share: float) -> float | None:
    """A quantile, from the counts below bounds; None without counts.

    It is interpolated between two bounds; above the last bound, it is that bound.

    >>> round(quantile({"0.01": 50, "0.02": 100, "+Inf": 100}, 0.99) or 0, 6)
    0.0198
    """
    bounds = sorted((math.inf if name == "+Inf" else float(name), n) for name, n in buckets.items())
    total = bounds[-1][1] if bounds else 0
    if total <= 0:
        return None
    wanted, low, below = share * total, 0.0, 0.0
    for bound, count in bounds:
        if count >= wanted:
            if bound == math.inf:
                return low
            return low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound, count
    return low


@dataclass(frozen=True, slots=True)
class Figures:
    """The collector's figures on the Ingest page.

    Attributes:
        health: Healthy, Failing, Not answering or Not watched.
        reason: why it is not healthy; empty if it is.
        since: the start of the counts, in seconds since 1970.
        rate: reports a second over the last half minute; None before the second sample.
        refused: refused requests today by code.
        batches: acknowledged batches today, new and repeated.
        commit: the time in seconds of 99 % of commits; None without commits.
        queue_batches: batches that wait for a commit.
        queue_bytes: their bytes.
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
        """The share of today's requests that was refused; None without requests."""
        refused = sum(self.refused.values())
        total = refused + self.batches
        return refused / total if total else None


class Watch:
    """Watches one collector. Totals only, and nothing is written to disk.

    Args:
        collector: its address; None if it is not known.
        look: fetches its figures.
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
        """Start the thread that fetches."""
        if self._collector is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop fetching."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(EVERY_SECONDS)

    def look(self) -> None:
        """Fetch once."""
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
        """The present figures."""
        if self._collector is None:
            return Figures("Not watched", "The dashboard does not know the collector's address.")
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
    """Reports that were counted between two samples."""
    values = grown({REPORTS: before.value(REPORTS)}, {REPORTS: after.value(REPORTS)})
    return values[REPORTS]
