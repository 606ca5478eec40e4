"""Stage: how far the work behind a page is, and what was kept of it before."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import CANCELLED, FAILED, Job
from rappor.dashboard.page_state import (
    DECODERS,
    ERROR,
    LOADING,
    NO_PERMISSION,
    READY,
    STALE,
)
from rappor.dashboard.reach import Reach
from rappor.dashboard.state.records import SavedResult

_PATIENCE_SECONDS = 0.1  # a small job is done by then, and no one sees it load
_MAX_READ = 8


@dataclass(frozen=True, slots=True)
class Needed:
    """A job that a page may need.

    Attributes:
        kind: which task.
        key: what its result is kept under.
        label: what it is, in words.
        collection: which collection it is about.
        arguments: what the task is told; asked for only when its turn comes.
    """

    kind: str
    key: str
    label: str
    collection: str
    arguments: Callable[[], dict[str, Any]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """How far it is.

    Attributes:
        state: one of the states of `rappor.dashboard.page_state`.
        reports: reports that are stored for the view now.
        job: the job under way, or the one that failed or was cancelled.
        saved: what was kept last, up to date or not.
        behind: reports that came since then.
        reach: what that many reports can show; None without any.
    """

    state: str
    reports: int = 0
    job: Job | None = None
    saved: SavedResult | None = field(default=None, repr=False)
    behind: int = 0
    reach: Reach | None = None

    @property
    def age(self) -> float:
        """Seconds since the result was made."""
        return 0.0 if self.saved is None else (datetime.now(UTC) - self.saved.made).total_seconds()


def begin(context: Context, work: Needed, visitor: Visitor) -> Job:
    """Start the work, or find it where it is under way."""
    return context.jobs.start(
        work.kind,
        work.arguments,
        work.key,
        label=work.label,
        actor=visitor.actor,
        collection=work.collection,
    )


def stage(
    context: Context,
    work: Needed,
    visitor: Visitor,
    reports: int,
    needs: Callable[[SavedResult], tuple[bool, int]],
    *,
    start: bool = True,
) -> Stage:
    """How far the work is; where its result is missing and the visitor may, it is begun.

    Args:
        context: the parts of the dashboard.
        work: what the page needs.
        visitor: who asks.
        reports: stored now.
        needs: of a kept result, whether something is missing from it, and how many reports came
            since.
        start: whether to begin what is missing.
    """
    saved = context.state.result(work.key)
    job = context.jobs.latest(work.kind, work.key)
    incomplete = saved is None or needs(saved)[0]
    if incomplete and start and visitor.may(DECODERS) and _may_begin(job, saved):
        job = context.jobs.wait(begin(context, work, visitor).id, _PATIENCE_SECONDS)
        saved = context.state.result(work.key)
    behind = 0 if saved is None else needs(saved)[1]
    found = Stage(READY, reports, job, saved, behind)
    if job is not None and not job.over:
        return _as(found, LOADING)
    if job is not None and job.state in (CANCELLED, FAILED) and _is_news(job, saved):
        return _as(found, ERROR if job.state == FAILED else CANCELLED)
    if saved is None:
        return _as(found, LOADING if job is not None else NO_PERMISSION)
    return _as(found, STALE) if behind or needs(saved)[0] else found


def _as(found: Stage, state: str) -> Stage:
    return Stage(state, found.reports, found.job, found.saved, found.behind, found.reach)


def _may_begin(job: Job | None, saved: SavedResult | None) -> bool:
    """Not again by itself what was cancelled or failed."""
    return job is None or job.state == "done" or (job.over and not _is_news(job, saved))


def _is_news(job: Job, saved: SavedResult | None) -> bool:
    return saved is None or (job.ended or job.made) >= saved.made.timestamp()


class Reader:
    """Reads kept results, the last few of them once only. Thread-safe."""

    def __init__(self, read: Callable[[Any, bytes], Any]) -> None:
        """Take the function that reads facts and a table."""
        self._read = read
        self._done: OrderedDict[tuple[str, bytes, str], Any] = OrderedDict()
        self._guard = threading.Lock()

    def __call__(self, saved: SavedResult) -> Any:
        """What a kept result holds."""
        table = saved.table or b""
        # By content: two results of one key may be of one second, and equally long.
        key = (saved.key, blake2b(table, digest_size=16).digest(), json.dumps(saved.meta))
        with self._guard:
            if key in self._done:
                self._done.move_to_end(key)
                return self._done[key]
        found = self._read(saved.meta, table)
        with self._guard:
            self._done[key] = found
            while len(self._done) > _MAX_READ:
                self._done.popitem(last=False)
        return found
