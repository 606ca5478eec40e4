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
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.auth.visitor import Visitor
from rappor.dashboard.context import Desk
from rappor.dashboard.jobs.job import CANCELLED as CANCELLED
from rappor.dashboard.jobs.job import DONE, FAILED, Job
from rappor.dashboard.page_query import Side, View
from rappor.dashboard.reach import Enough, enough
from rappor.dashboard.results.serialization import Kept, unpack

DECODERS = frozenset({Role.ANALYST})
READY, EMPTY, NO_LIST, TOO_FEW = "ready", "empty", "no list", "too few"
LOADING, ERROR, STALE = "loading", "error", "stale"
NO_PERMISSION = "no permission"
_PATIENCE_SECONDS = 0.1  # a small decode is done by then, and no one sees it load
_MOST_UNPACKED = 8


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
        enough: what so many reports can show; None without any.
        behind: reports that came since the result was made.
    """

    state: str
    collection: Collection
    reports: int
    candidates: int
    kept: Kept | None = field(default=None, repr=False)
    made: datetime | None = None
    job: Job | None = None
    enough: Enough | None = None
    behind: int = 0

    @property
    def age(self) -> float:
        """Seconds since the result was made."""
        return 0.0 if self.made is None else (datetime.now(UTC) - self.made).total_seconds()


def look(desk: Desk, view: View, visitor: Visitor, *, start: bool = True) -> Situation:
    """The situation of a view; where nothing is decoded yet and the visitor may, that is begun."""
    collection = desk.catalogue.get(view.collection, view.version)
    reports = _reports(desk, view, view.side)
    candidates = candidates_of(desk, view, collection)
    base = Situation(READY, collection, reports, candidates)
    if not reports or (view.against is not None and not _reports(desk, view, view.against)):
        return _with(base, EMPTY)
    if collection.kind == "string" and view.candidates is None:
        return _with(base, NO_LIST)
    seen = enough(collection, view.periods[-1], reports, candidates, view.alpha)
    base = _with(base, READY, enough=seen)
    if seen.too_few and not view.anyway:
        return _with(base, TOO_FEW)
    return _decoded(desk, view, visitor, base, start)


def _decoded(desk: Desk, view: View, visitor: Visitor, base: Situation, start: bool) -> Situation:
    saved = desk.state.result(view.key)
    job = desk.jobs.latest(kind_of(view), view.key)
    if saved is None and start and visitor.may(DECODERS) and (job is None or job.state == DONE):
        begun = begin(desk, view, visitor)
        job = desk.jobs.wait(begun.id, _PATIENCE_SECONDS)
        saved = desk.state.result(view.key)
    if saved is not None and saved.table is not None:
        kept = _unpacked(json.dumps(saved.meta), saved.table)
        behind = base.reports - kept.decoded.reports
        if kept.other is not None and view.against is not None:
            behind += _reports(desk, view, view.against) - kept.other.reports
        base = _with(base, READY, kept=kept, made=saved.made, behind=behind)
    if job is not None and not job.over:
        return _with(base, LOADING, job=job)
    if job is not None and job.state in (CANCELLED, FAILED):
        return _with(base, ERROR if job.state == FAILED else CANCELLED, job=job)
    if base.kept is None:
        return _with(base, LOADING if job is not None else NO_PERMISSION, job=job)
    return _with(base, STALE) if base.behind else base


def begin(desk: Desk, view: View, visitor: Visitor) -> Job:
    """Start the decode of a view, or find the one that is under way."""
    return desk.jobs.start(
        kind_of(view),
        lambda: arguments_of(desk, view),
        view.key,
        label=label_of(desk, view),
        actor=visitor.actor,
        collection=view.collection,
    )


def kind_of(view: View) -> str:
    """Which task decodes a view."""
    return "decode" if view.against is None else "compare"


def label_of(desk: Desk, view: View) -> str:
    """What is being done, in words."""
    collection = desk.catalogue.get(view.collection, view.version)
    number = candidates_of(desk, view, collection)
    what = {"string": "candidates", "category": "categories", "ordinal": "ranges"}
    noun = what.get(collection.kind, "values")
    verb = "Decoding" if view.against is None else "Comparing"
    return f"{verb} {number:,} {noun}"


def arguments_of(desk: Desk, view: View) -> dict[str, Any]:
    """What the tasks of a view are told."""
    listed = None
    if view.candidates is not None:
        listed = desk.state.candidates(view.collection, view.candidates)
    against = view.against
    return {
        "data": str(desk.settings.data),
        "today": desk.catalogue.today().isoformat(),
        "collection": view.collection,
        "version": view.version,
        "periods": list(view.periods),
        "dimensions": [list(pair) for pair in view.dimensions],
        "against": None
        if against is None
        else {
            "periods": list(against.periods),
            "dimensions": [list(pair) for pair in against.dimensions],
        },
        "correction": view.correction,
        "alpha": view.alpha,
        "method": view.method,
        "list": view.candidates,
        "strings": None if listed is None else list(listed.strings),
    }


def _reports(desk: Desk, view: View, side: Side) -> int:
    return desk.catalogue.reports(
        view.collection, view.version, side.periods, dict(side.dimensions)
    )


def candidates_of(desk: Desk, view: View, collection: Collection) -> int:
    """How many candidates, categories or ranges a view tests."""
    if collection.kind == "string":
        versions = desk.state.candidate_versions(view.collection)
        return next((each.size for each in versions if each.version == view.candidates), 0)
    if collection.categories is not None:
        return len(collection.categories)
    if collection.ranges is not None:
        return len(collection.ranges.labels)
    return collection.params.k


def _with(base: Situation, state: str, **more: Any) -> Situation:
    return replace(base, state=state, **more)


@functools.lru_cache(maxsize=_MOST_UNPACKED)
def _unpacked(meta: str, table: bytes) -> Kept:
    """The result behind what is saved; the last few are kept in memory."""
    return unpack(json.loads(meta), table)
