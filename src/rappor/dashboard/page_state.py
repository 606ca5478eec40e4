"""The state of a page: what it can show, and why it cannot show more.

All pages that show a decode go through `page_state`. A page describes its job as `PageWork`; the
texts for each state are in `rappor.dashboard.page_messages`.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar

from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import CANCELLED, DONE, FAILED, Job
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.query_reading import list_size
from rappor.dashboard.state.saved import SavedResult
from rappor.mechanism.kinds import HASHED
from rappor.planning.reach import ReportReach, reach_of, values_tested

DECODERS = frozenset({Role.ANALYST})
_PATIENCE_SECONDS = 0.1  # a small job is done by then, and no one sees it load
_MAX_READ = 8  # results that a reader keeps in memory

Result = TypeVar("Result")


class PageStatus(StrEnum):
    """The states of a page, in the order in which they are checked."""

    NO_VIEW = "no view"
    EMPTY = "empty"
    NO_LIST = "no list"
    TOO_FEW = "too few"
    LOADING = "loading"
    ERROR = "error"
    CANCELLED = "cancelled"
    NO_PERMISSION = "no permission"
    STALE = "stale"
    READY = "ready"


class Freshness(NamedTuple):
    """How a saved result differs from what is stored now.

    Attributes:
        incomplete: a part of it is missing, such as a period.
        behind: reports that arrived since; below 0 if some were deleted.
    """

    incomplete: bool
    behind: int


@dataclass(frozen=True, slots=True)
class PageWork:
    """The job behind a page.

    Attributes:
        kind: the name of its task.
        key: the key of its result.
        label: what it does, in words.
        collection: the collection it decodes.
        arguments: makes the arguments of the task; called when its turn comes.
        reports: reports that are stored for it now.
        where: which reports, in words.
        freshness: compares a saved result with what is stored now.
        sample: the period and the reports that decide whether there are too few; None shows
            results however few there are.
        needs_list: the job needs a saved list of candidates.
        has_no_view: no view of a tuple serves any pair of its fields.
    """

    kind: str
    key: str
    label: str
    collection: Collection
    arguments: Callable[[], dict[str, Any]] = field(repr=False)
    reports: int
    where: str
    freshness: Callable[[SavedResult], Freshness] = field(repr=False)
    sample: tuple[str, int] | None = None
    needs_list: bool = False
    has_no_view: bool = False


@dataclass(frozen=True, slots=True)
class PageState:
    """The state of a page.

    Attributes:
        status: which of the states.
        collection: the definition of the version that is shown.
        reports: reports that are stored now.
        where: which reports, in words.
        job: the latest job for this page, if there is one.
        saved: the latest result, current or not.
        behind: reports that arrived since it was made.
        reach: what that many reports can show; None if it was not computed.
    """

    status: PageStatus
    collection: Collection
    reports: int = 0
    where: str = ""
    job: Job | None = None
    saved: SavedResult | None = field(default=None, repr=False)
    behind: int = 0
    reach: ReportReach | None = None

    @property
    def age(self) -> float:
        """Seconds since the result was made."""
        return 0.0 if self.saved is None else (datetime.now(UTC) - self.saved.made).total_seconds()


def page_state(
    context: Context, work: PageWork, query: PageQuery, visitor: Visitor, *, start: bool = True
) -> PageState:
    """Decide the state of a page, and start its job if the result is missing.

    Args:
        context: the parts of the dashboard.
        work: the job behind the page.
        query: the address of the page.
        visitor: who asks; only analysts start jobs.
        start: False only looks.
    """
    state = PageState(PageStatus.READY, work.collection, work.reports, work.where)
    if work.has_no_view:
        return replace(state, status=PageStatus.NO_VIEW)
    if not work.reports:
        return replace(state, status=PageStatus.EMPTY)
    if work.needs_list and work.collection.kind in HASHED and query.candidates is None:
        return replace(state, status=PageStatus.NO_LIST)
    if work.sample is not None:
        candidates = candidates_of(context, query, work.collection)
        reach = reach_of(work.collection, *work.sample, candidates, query.alpha)
        state = replace(state, reach=reach)
        too_few = reach.too_few_for_a_part if query.dimensions else reach.too_few
        if too_few and not query.anyway:
            return replace(state, status=PageStatus.TOO_FEW)
    return _state_of_job(context, work, visitor, state, start)


def _state_of_job(
    context: Context, work: PageWork, visitor: Visitor, state: PageState, start: bool
) -> PageState:
    saved = context.state.result(work.key)
    job = context.jobs.latest(work.kind, work.key)
    incomplete = saved is None or work.freshness(saved).incomplete
    if incomplete and start and visitor.may(DECODERS) and _may_begin(job, saved):
        job = context.jobs.wait(begin(context, work, visitor.actor).id, _PATIENCE_SECONDS)
        saved = context.state.result(work.key)
    fresh = Freshness(True, 0) if saved is None else work.freshness(saved)
    state = replace(state, job=job, saved=saved, behind=fresh.behind)
    status = PageStatus.READY
    if job is not None and not job.over:
        status = PageStatus.LOADING
    elif job is not None and job.state in (CANCELLED, FAILED) and _is_news(job, saved):
        status = PageStatus.ERROR if job.state == FAILED else PageStatus.CANCELLED
    elif saved is None:
        status = PageStatus.LOADING if job is not None else PageStatus.NO_PERMISSION
    elif fresh.behind or fresh.incomplete:
        status = PageStatus.STALE
    return replace(state, status=status)


def _may_begin(job: Job | None, saved: SavedResult | None) -> bool:
    """Whether the page may start the job; a job that failed or was cancelled is not repeated."""
    return job is None or job.state == DONE or (job.over and not _is_news(job, saved))


def _is_news(job: Job, saved: SavedResult | None) -> bool:
    """Whether a job ended after the saved result was made."""
    return saved is None or (job.ended or job.made) >= saved.made.timestamp()


def begin(context: Context, work: PageWork, actor: str, *, unasked: bool = False) -> Job:
    """Start a job, or return the one that is already waiting or running."""
    return context.jobs.start(
        work.kind,
        work.arguments,
        work.key,
        label=work.label,
        actor=actor,
        collection=work.collection.name,
        unasked=unasked,
    )


def task_arguments(context: Context, query: PageQuery) -> dict[str, Any]:
    """The arguments that the tasks of all pages share; see `rappor.dashboard.jobs.tasks`."""
    saved_list = None
    if query.candidates is not None:
        saved_list = context.state.candidates(query.collection, query.candidates)
    return {
        "data": str(context.settings.data),
        "today": context.catalogue.today().isoformat(),
        "collection": query.collection,
        "version": query.version,
        "periods": query.periods,
        "dimensions": query.dimensions,
        "against": None if query.against is None else query.against._asdict(),
        "correction": query.correction,
        "alpha": query.alpha,
        "method": query.method,
        "list": query.candidates,
        "strings": None if saved_list is None else list(saved_list.strings),
    }


def candidates_of(context: Context, query: PageQuery, collection: Collection) -> int:
    """The number of candidates, categories or ranges that a decode tests."""
    return values_tested(collection, list_size(context.state, collection, query.candidates))


class ResultReader(Generic[Result]):
    """Reads saved results, and remembers the last few. Thread-safe."""

    def __init__(self, read: Callable[[Any, bytes], Result]) -> None:
        """Take the function that reads facts and a table."""
        self._read = read
        self._done: OrderedDict[tuple[str, bytes, str], Result] = OrderedDict()
        self._guard = threading.Lock()

    def __call__(self, saved: SavedResult) -> Result:
        """What a saved result holds."""
        table = saved.table or b""
        # By content: two results with one key can have the same second and the same length.
        key = (saved.key, blake2b(table, digest_size=16).digest(), json.dumps(saved.meta))
        with self._guard:
            if key in self._done:
                self._done.move_to_end(key)
                return self._done[key]
        result = self._read(saved.meta, table)
        with self._guard:
            self._done[key] = result
            while len(self._done) > _MAX_READ:
                self._done.popitem(last=False)
        return result
