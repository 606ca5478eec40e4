"""Ahead: decodes the newest period of each active collection before anybody asks.

So the first page has numbers. It waits until reports stop coming in for a moment, starts one decode
at a time, only while no other job is under way, and gives way to every job that somebody asks for.
What was decoded once is not decoded again: pages say how old it is.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass

from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import Job
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import PageStatus, begin, page_state
from rappor.dashboard.results.page_context import decode_work
from rappor.dashboard.snapshot import Entry, Standing
from rappor.errors import RapporError

ACTOR = "dashboard"
SWITCH = "RAPPOR_DECODE_AHEAD"  # in the environment; "off" has nothing decoded unasked
TICK_SECONDS = 2.0
_WAIT_SECONDS = 0.5
PATIENCE = 30  # ticks after which a period is decoded that never comes to rest
_LOG = logging.getLogger("rappor.dashboard.prefetch")
_NOBODY = Visitor()


def is_enabled() -> bool:
    """Whether the environment leaves it on."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("off", "0", "no", "false")


@dataclass(slots=True)
class _Held:
    """How the newest period of a collection was found last.

    Attributes:
        of: version and period.
        reports: at the last look.
        looks: since it was first seen, or last tried.
        tried: how many reports there were when it was tried last.
    """

    of: tuple[int, str]
    reports: int = -1
    looks: int = 0
    tried: int = -1


class Prefetcher:
    """The thread that does it. `due` is one look at all collections, `begin` starts one decode."""

    def __init__(self, context: Context) -> None:
        """Take the parts of a dashboard; nothing is decoded before `start`."""
        self._desk = context
        self._held: dict[str, _Held] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look every two seconds, until `close`."""
        self._thread = threading.Thread(target=self._run, name="ahead", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def due(self) -> list[str]:
        """The active collections whose newest period came to rest since the last look.

        One that never does is due after a minute; one that was tried, when more reports are there.
        """
        return [
            entry.name
            for entry in self._desk.catalogue.collections()
            if entry.standing is Standing.ACTIVE and entry.periods and self._is_due(entry)
        ]

    def begin(self, name: str) -> Job | None:
        """Start the decode of what the collection's page shows first.

        None where that is decoded already, was tried, cannot be decoded, or where a job is at work.
        """
        context = self._desk
        if any(not job.over for job in context.jobs.all()):
            return None
        held = self._held.get(name)
        if held is not None:
            held.tried, held.looks = held.reports, 0
        query = PageQuery.of({}, context.catalogue, context.state, name)
        work = decode_work(context, query)
        if page_state(context, work, query, _NOBODY, start=False).status != (
            PageStatus.NO_PERMISSION
        ):
            return None
        return begin(context, work, ACTOR, unasked=True)

    def _is_due(self, entry: Entry) -> bool:
        newest, of = entry.periods[-1], (entry.collection.version, entry.periods[-1].period)
        held = self._held.get(entry.name)
        if held is None or held.of != of:
            held = self._held[entry.name] = _Held(of)
        at_rest, held.reports = held.reports == newest.reports, newest.reports
        held.looks += 1
        return held.tried != newest.reports and (at_rest or held.looks > PATIENCE)

    def _run(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            try:
                for name in self.due():
                    job = self.begin(name)
                    while job is not None and not job.over and not self._stop.is_set():
                        job = self._desk.jobs.wait(job.id, _WAIT_SECONDS)
            except RapporError as error:  # a page says it, too, where somebody looks
                _LOG.warning("nothing was decoded ahead: %s", error)
            except Exception:
                _LOG.exception("decoding ahead")
                return
