"""Prefetch: decode the newest period of each active collection before a visitor opens its page.

The prefetcher waits until no report arrived for a moment, starts one decode at a time, only while
no other job runs, and gives way to every job that a visitor starts. It decodes a period again when
more reports came and none for a while, so that it computes for a small part of the time only.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass

from rappor.dashboard.associations.page import association_work
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import Job
from rappor.dashboard.page_state import PageStatus, begin, page_state
from rappor.dashboard.query_reading import read_query
from rappor.dashboard.results.page_context import decode_work
from rappor.dashboard.snapshot import Entry, Standing
from rappor.errors import RapporError

ACTOR = "dashboard"
SWITCH = "RAPPOR_DECODE_AHEAD"  # in the environment; "off" turns prefetching off
TICK_SECONDS = 2.0
_WAIT_SECONDS = 0.5
REST_SECONDS = 6.0  # without a report, after which a period is decoded again
REST_PER_SECOND = 4.0  # seconds of rest for each second that the last decode took
PATIENCE = 30  # looks after which a period is decoded even if reports still arrive
_LOG = logging.getLogger("rappor.dashboard.prefetch")
_NOBODY = Visitor()


def is_enabled() -> bool:
    """Whether the environment leaves prefetching on."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("off", "0", "no", "false")


@dataclass(slots=True)
class _Held:
    """What the last look found of a collection's newest period.

    Attributes:
        of: version and period.
        reports: their number at the last look.
        looks: their number since the period was first seen, or last tried.
        tried: the number of reports when it was last tried.
        rested: looks since the last report.
        seconds: how long its last decode took.
    """

    of: tuple[int, str]
    reports: int = -1
    looks: int = 0
    tried: int = -1
    rested: int = 0
    seconds: float = 0.0

    @property
    def is_rested(self) -> bool:
        """Whether no report came for so long that another decode is worth its time."""
        return self.rested * TICK_SECONDS >= max(REST_SECONDS, REST_PER_SECOND * self.seconds)


class Prefetcher:
    """The thread that prefetches. `due` looks at all collections, `begin` starts one decode."""

    def __init__(self, context: Context) -> None:
        """Take the context; decode nothing before `start`."""
        self._desk = context
        self._held: dict[str, _Held] = {}
        self._has_worker = False  # the first job takes the seconds that a process needs to start
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look every two seconds, until `close`."""
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def due(self) -> list[str]:
        """The active collections whose newest period got no report since the last look.

        A period that always gets reports is due after a minute. One that was tried is due again
        when more reports arrive.
        """
        return [
            entry.name
            for entry in self._desk.catalogue.collections()
            if entry.standing is Standing.ACTIVE and entry.periods and self._is_due(entry)
        ]

    def begin(self, name: str) -> Job | None:
        """Start the decode that the collection's page shows first.

        Returns None if it is decoded, was tried, cannot be decoded, if another job runs, or if
        reports may still arrive for a period that was decoded before.
        """
        context = self._desk
        if any(not job.over for job in context.jobs.all()):
            return None
        query = read_query({}, context.catalogue, context.state, name)
        kind = context.catalogue.get(name, query.version).kind
        work = (association_work if kind == "tuple" else decode_work)(context, query)
        status = page_state(context, work, query, _NOBODY, start=False).status
        held = self._held.get(name)
        if status is PageStatus.STALE and (held is None or not held.is_rested):
            return None
        if held is not None:
            held.tried, held.looks = held.reports, 0
        if status not in (PageStatus.NO_PERMISSION, PageStatus.STALE):
            return None
        return begin(context, work, ACTOR, unasked=True)

    def _is_due(self, entry: Entry) -> bool:
        newest, of = entry.periods[-1], (entry.collection.version, entry.periods[-1].period)
        held = self._held.get(entry.name)
        if held is None or held.of != of:
            held = self._held[entry.name] = _Held(of)
        at_rest, held.reports = held.reports == newest.reports, newest.reports
        held.looks += 1
        held.rested = held.rested + 1 if at_rest else 0
        return held.tried != newest.reports and (at_rest or held.looks > PATIENCE)

    def _run(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            try:
                for name in self.due():
                    job = self.begin(name)
                    while job is not None and not job.over and not self._stop.is_set():
                        job = self._desk.jobs.wait(job.id, _WAIT_SECONDS)
                    if job is not None and self._has_worker:
                        self._held[name].seconds = job.seconds
                    self._has_worker = self._has_worker or job is not None
            except RapporError as error:  # the page says it too
                _LOG.warning("prefetch failed: %s", error)
            except Exception:
                _LOG.exception("prefetch stopped")
                return
