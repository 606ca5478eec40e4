"""Situation: what there is to show of a view, and what has to be said about it first.

One of the states: ready, empty, no list, too few, loading, error, stale, cancelled, no permission.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import CANCELLED as CANCELLED
from rappor.dashboard.jobs.queue import DONE, FAILED, Job
from rappor.dashboard.page_query import PageQuery, Selection
from rappor.dashboard.reach import Reach, reach_of
from rappor.dashboard.results.serialization import StoredDecode, unpack

DECODERS = frozenset({Role.ANALYST})
READY, EMPTY, NO_LIST, TOO_FEW = "ready", "empty", "no list", "too few"
LOADING, ERROR, STALE = "loading", "error", "stale"
NO_PERMISSION = "no permission"
_PATIENCE_SECONDS = 0.1  # a small decode is done by then, and no one sees it load
_MAX_UNPACKED = 8


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is to show.

    Attributes:
        state: one of the states.
        collection: the definition of the view's version.
        reports: reports that are stored for the view now.
        candidates: how many candidates are tested; 0 where that is no question.
        kept: the result, where there is one, up to date or not.
        made: when it was made.
        job: the job under way, or the one that failed or was cancelled.
        reach: what that many reports can show; None without any.
        behind: reports that came since the result was made.
    """

    state: str
    collection: Collection
    reports: int
    candidates: int
    kept: StoredDecode | None = field(default=None, repr=False)
    made: datetime | None = None
    job: Job | None = None
    reach: Reach | None = None
    behind: int = 0

    @property
    def age(self) -> float:
        """Seconds since the result was made."""
        return 0.0 if self.made is None else (datetime.now(UTC) - self.made).total_seconds()


def look(context: Context, query: PageQuery, visitor: Visitor, *, start: bool = True) -> Situation:
    """The situation of a view; where nothing is decoded yet and the visitor may, that is begun."""
    collection = context.catalogue.get(query.collection, query.version)
    reports = _reports(context, query, query.side)
    candidates = candidates_of(context, query, collection)
    base = Situation(READY, collection, reports, candidates)
    if not reports or (query.against is not None and not _reports(context, query, query.against)):
        return _with(base, EMPTY)
    if collection.kind == "string" and query.candidates is None:
        return _with(base, NO_LIST)
    seen = reach_of(collection, query.periods[-1], reports, candidates, query.alpha)
    base = _with(base, READY, reach=seen)
    if seen.too_few and not query.anyway:
        return _with(base, TOO_FEW)
    return _decoded(context, query, visitor, base, start)


def _decoded(
    context: Context, query: PageQuery, visitor: Visitor, base: Situation, start: bool
) -> Situation:
    saved = context.state.result(query.key)
    job = context.jobs.latest(kind_of(query), query.key)
    if saved is None and start and visitor.may(DECODERS) and (job is None or job.state == DONE):
        begun = begin(context, query, visitor)
        job = context.jobs.wait(begun.id, _PATIENCE_SECONDS)
        saved = context.state.result(query.key)
    if saved is not None and saved.table is not None:
        kept = _unpacked(json.dumps(saved.meta), saved.table)
        behind = base.reports - kept.decoded.reports
        if kept.other is not None and query.against is not None:
            behind += _reports(context, query, query.against) - kept.other.reports
        base = _with(base, READY, kept=kept, made=saved.made, behind=behind)
    if job is not None and not job.over:
        return _with(base, LOADING, job=job)
    if job is not None and job.state in (CANCELLED, FAILED):
        return _with(base, ERROR if job.state == FAILED else CANCELLED, job=job)
    if base.kept is None:
        return _with(base, LOADING if job is not None else NO_PERMISSION, job=job)
    return _with(base, STALE) if base.behind else base


def begin(context: Context, query: PageQuery, visitor: Visitor) -> Job:
    """Start the decode of a view, or find the one that is under way."""
    return context.jobs.start(
        kind_of(query),
        lambda: arguments_of(context, query),
        query.key,
        label=label_of(context, query),
        actor=visitor.actor,
        collection=query.collection,
    )


def kind_of(query: PageQuery) -> str:
    """Which task decodes a view."""
    return "decode" if query.against is None else "compare"


def label_of(context: Context, query: PageQuery) -> str:
    """What is being done, in words."""
    collection = context.catalogue.get(query.collection, query.version)
    number = candidates_of(context, query, collection)
    what = {"string": "candidates", "category": "categories", "ordinal": "ranges"}
    noun = what.get(collection.kind, "values")
    verb = "Decoding" if query.against is None else "Comparing"
    return f"{verb} {number:,} {noun}"


def arguments_of(context: Context, query: PageQuery) -> dict[str, Any]:
    """What the tasks of a view are told."""
    listed = None
    if query.candidates is not None:
        listed = context.state.candidates(query.collection, query.candidates)
    against = query.against
    return {
        "data": str(context.settings.data),
        "today": context.catalogue.today().isoformat(),
        "collection": query.collection,
        "version": query.version,
        "periods": list(query.periods),
        "dimensions": [list(pair) for pair in query.dimensions],
        "against": None
        if against is None
        else {
            "periods": list(against.periods),
            "dimensions": [list(pair) for pair in against.dimensions],
        },
        "correction": query.correction,
        "alpha": query.alpha,
        "method": query.method,
        "list": query.candidates,
        "strings": None if listed is None else list(listed.strings),
    }


def _reports(context: Context, query: PageQuery, side: Selection) -> int:
    return context.catalogue.reports(
        query.collection, query.version, side.periods, dict(side.dimensions)
    )


def candidates_of(context: Context, query: PageQuery, collection: Collection) -> int:
    """How many candidates, categories or ranges a view tests."""
    if collection.kind == "string":
        versions = context.state.candidate_versions(query.collection)
        return next((each.size for each in versions if each.version == query.candidates), 0)
    if collection.categories is not None:
        return len(collection.categories)
    if collection.ranges is not None:
        return len(collection.ranges.labels)
    return collection.params.k


def _with(base: Situation, state: str, **more: Any) -> Situation:
    return replace(base, state=state, **more)


@functools.lru_cache(maxsize=_MAX_UNPACKED)
def _unpacked(meta: str, table: bytes) -> StoredDecode:
    """The result behind what is saved; the last few are kept in memory."""
    return unpack(json.loads(meta), table)
